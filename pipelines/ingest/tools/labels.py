"""What short labels tell: the accelerator in `4xNVIDIA_L40S`, sizes and lengths in the names of files and their folders.

Belongs here: labels that many tools write in many spellings. Does not: canonical names (`warehouse.vocabulary`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import PurePosixPath

from pipelines.ingest.tools.plain_names import device_name
from warehouse import vocabulary

MAX_LABEL = 200
_COUNT_FIRST = re.compile(r"(\d{1,6})\s*[x×*]\s*(\D.*)", re.IGNORECASE)
_COUNT_LAST = re.compile(r"(.*\S)[\s_]+[x×*]\s*(\d{1,6})", re.IGNORECASE)
_OTHER_PRODUCT = frozenset({"pcie", "nvl"})
"""Words that make another accelerator of a name that is known."""


def accelerator(label: str) -> tuple[int | None, str]:
    """Return number (where told) and name in a label: `4xNVIDIA_L40S` → 4, l40s; `linux.aws.h100.8` → None, h100.

    The name is what `warehouse.vocabulary.hardware` looks up.
    """
    text, count = label.strip()[:MAX_LABEL], None
    if match := _COUNT_FIRST.fullmatch(text):
        count, text = int(match[1]), match[2]
    elif match := _COUNT_LAST.fullmatch(text):
        count, text = int(match[2]), match[1]
    name = device_name(text) or text.lower()
    words = set(re.split(r"[^a-z0-9]+", text.lower()))
    known = words & {*vocabulary.names("hardware")}
    if vocabulary.hardware(name).known or len(known) != 1 or words & _OTHER_PRODUCT:
        return count, name
    return count, known.pop()


Finder = Callable[[str], Collection[str]]


def _number(word: str) -> Finder:
    pattern = re.compile(rf"(?<![a-z0-9]){word}[_=-]?(\d{{1,7}})(k?)(?![a-z0-9])")
    return lambda name: {str(int(match[1]) * (1024 if match[2] else 1)) for match in pattern.finditer(name) if int(match[1])}


def _pair(place: int) -> Finder:
    pattern = re.compile(r"(?<![a-z0-9])(\d{1,4})k(\d{1,4})k(?![a-z0-9])")
    return lambda name: {str(int(match[place]) * 1024) for match in pattern.finditer(name) if int(match[place])}


def _word(kind: str, aliases: tuple[str, ...] = ()) -> Finder:
    def find(name: str) -> Collection[str]:
        words = re.split(r"[^a-z0-9]+", name)
        known = {*vocabulary.names(kind), *aliases}
        return {
            word for before, word in zip(["", *words], words, strict=False) if word in known and before not in ("kv", "cache")
        }

    return find


def _any(*finders: Finder) -> Finder:
    return lambda name: {value for find in finders for value in find(name)}


_WORKLOADS = ("sharegpt", "sonnet", "burstgpt", "random")
_FINDERS: dict[str, Finder] = {
    "tp": _any(_number("tp"), _number("tep"), _number("dep")),
    "pp": _number("pp"),
    "ep": _any(_number("ep"), _number("tep"), _number("dep")),
    "dp_attention": lambda name: {"true"} if _number("dep")(name) else set(),
    "isl": _any(_number("isl"), _pair(1)),
    "osl": _any(_number("osl"), _pair(2)),
    "concurrency": _any(_number("conc"), _number("concurrency")),
    "engine": _any(_word("engine", ("trt",))),
    "hardware": _word("hardware"),
    "precision": _word("precision", ("nvfp4", "mxfp4")),
    "workload": lambda name: {word for word in re.split(r"[^a-z0-9]+", name) if word in _WORKLOADS},
}


@lru_cache(maxsize=4096)
def _found(name: str) -> dict[str, Collection[str]]:
    """Return what a name tells, by key; folders are asked for every file in them, and most tell nothing."""
    return {key: values for key, find in _FINDERS.items() if (values := find(name))}


def told_by_names(path: PurePosixPath, keys: Collection[str]) -> dict[str, str]:
    """Return what the name of a file, else of its folders, tells of *keys* (of `declarations.KEYS`).

    Such names hold `tp8`, `tep8` (tensor- and expert-parallel), `dep8` (with data-parallel attention), `isl8192`, `1k8k`,
    `conc32`, `fp8`, `h100`. The nearest name counts; one that tells two things of a key tells nothing.
    """
    telling = [told for part in reversed(path.parts) if (told := _found(part.lower()[:MAX_LABEL]))]
    found = {}
    for key in keys if telling else ():
        values = next((told[key] for told in telling if key in told), ())
        if len(values) == 1:
            found[key] = next(iter(values))
    return found
