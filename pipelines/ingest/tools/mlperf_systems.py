"""MLPerf systems: what software strings and names of hardware say, and `systems/*.json`, which describe and measure nothing.

A description is known and left out, with what it holds in the keys that may be declared, because the logs beside it lack just
that. Belongs here: names of systems. Does not: results, units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.json_text import LeftOut
from pipelines.ingest.tools.mlperf_units import CACHED, benchmark_of, facts, scenario_of
from warehouse import vocabulary

MAX_TEXT = 600
"""Longest name or software string that is looked into, characters."""
MAX_ACCELERATORS = 1_000_000
_NOTHING = frozenset({"", "-", "n/a", "na", "none", "null", "undefined", "0"})
_COMMIT = re.compile(r"(?:\+g|\+git|^git@|^)([0-9a-f]{7,40})(?![0-9a-z])")
_VERSION = r"(?![a-z0-9])[\s:_-]{0,3}(?P<version>git@[0-9a-f]{7,40}|v?\d[\w.+!]*|[0-9a-f]{7,40}(?![\w.]))?"
_COUNTED = re.compile(r"(?<![0-9a-z])\d{1,4}x(?=[a-z])|(?<=[0-9a-z])x\d{1,4}(?![0-9a-z])")
_NUMBER = re.compile(r"(?<=[A-Za-z0-9])x(\d{1,4})(?=_|$)|(?:^|_)(\d{1,4})x(?=[A-Z]+\d)")
_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]|@.*|\b\d{1,3}-core\b|\bcpu\b|\bprocessor\b|^\s*\d{1,2}x\s*")


@dataclass(frozen=True)
class Software:
    """What a software string names: the engine in canonical spelling, its version and commit where it holds them."""

    engine: str
    version: str | None = None
    commit: str | None = None
    stack: str | None = None
    """The serving stack round the engine, where the string begins with another name."""


@lru_cache(maxsize=CACHED)
def software(text: str) -> Software | None:
    """Return what a software string says: `vLLM 0.9.0.2.dev108+g71faa1880.d20250717` → vllm, that version, commit 71faa1880.

    An engine of the vocabulary counts wherever it stands, then other known software, else the head of the string. None: empty.
    """
    plain = text[:MAX_TEXT].strip().lower()
    if plain in _NOTHING:
        return None
    head = plain.split(",", 1)[0].strip() or plain
    for word, name in _software_words():
        if match := re.search(rf"(?<![a-z0-9]){re.escape(word)}{_VERSION}", plain):
            known = vocabulary.engine(name).known
            stack = None if not known or word in head else vocabulary.framework(head).value
            return _software(name, match["version"], stack)
    match = re.match(r"(?P<name>\D{2,}?)[\s:_-]+(?P<version>v?\d[\w.+!-]*)$", head)
    return _software(match["name"], match["version"], None) if match else _software(head, None, None)


def _software(name: str, version: str | None, stack: str | None) -> Software:
    commit = _COMMIT.search(version or "")
    shown = (version or "").removeprefix("v").rstrip(".")
    told = shown if shown and not (commit and commit.start() == 0) else None
    return Software(vocabulary.engine(name).value, told, commit[1] if commit else None, stack)


@cache
def _software_words() -> tuple[tuple[str, str], ...]:
    """Words in the order in which they count, longest spelling of an engine first, and the name that each stands for."""
    spellings = {
        alias: name
        for name in vocabulary.names("engine")
        for alias in (name, *vocabulary.entry("engine", name).get("aliases", ()))
    }
    spellings |= {"tensorrt llm": "trtllm"}
    return (*sorted(spellings.items(), key=lambda pair: -len(pair[0])), *facts()["software"].items())


@lru_cache(maxsize=CACHED)
def accelerator(text: str) -> str | None:
    """Return the accelerator by its short name: `NVIDIA H100-SXM-80GB` → h100, several kinds joined by `+`; None: there is none.

    A name that is not in the table is returned in short; the spellings fit `vocabulary.hardware`.
    """
    if text.strip().lower() in _NOTHING:
        return None
    found = accelerators(text)
    return "+".join(found) if found else plain_name(text)


def accelerators(text: str) -> list[str]:
    """Return the accelerators of the table that *text* names, also in names such as `DGX-H100_H100-SXM-80GBx8_TRT`."""
    words = frozenset(re.split(r"[^a-z0-9.]+", _COUNTED.sub("", _COUNTED.sub("", text[:MAX_TEXT].lower()))))
    fitting = {
        name: frozenset(wanted)
        for name, spellings in facts()["accelerators"].items()
        for wanted in spellings
        if words.issuperset(wanted)
    }
    return sorted(name for name, wanted in fitting.items() if not any(wanted < other for other in fitting.values()))


@lru_cache(maxsize=CACHED)
def plain_name(text: str) -> str | None:
    """Return a name of hardware without marks, clock and core count: `Intel(R) Xeon(R) 6787P @ 2 GHz` → intel xeon 6787p."""
    words = re.sub(r"[-_\s:/,;()\[\]]+", " ", _MARKS.sub(" ", text[:MAX_TEXT].lower())).split()
    return " ".join(words) or None


def count(value: Any) -> int | None:
    """Return a count that is a number, a text or nothing (`8`, `8.0`, `"4"`, `""`, `"N/A"`); None: not told, or none at all."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,7}(\.0)?\s*", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_ACCELERATORS or value != int(value):
        return None
    return int(value)


def gpus(name: str | None, per_node: Any, nodes: Any) -> int | None:
    """Return the accelerators of the whole system: those of a node times the nodes; None: there are none, or it is not told."""
    each, number = count(per_node), count(nodes)
    total = each * (number or 1) if each and name else None
    return total if total and total <= MAX_ACCELERATORS else None


MARKERS = frozenset({"accelerators_per_node", "accelerator_model_name", "system_name", "submitter", "framework"})
"""Keys of a system description; those of a result row differ (`SystemName`, `System`)."""


def declarable(record: dict[str, Any]) -> dict[str, str]:
    """Return what a system description holds, by key of `declarations.KEYS`, so that it can be declared for its logs."""
    name = _text(record, "accelerator_model_name")
    found = accelerator(name)
    ran = software(_text(record, "framework"))
    rest = software_commit(_text(record, "other_software_stack"), ran.engine) if ran else None
    values = {
        "engine": ran.engine if ran else None,
        "engine_version": ran.version if ran else None,
        "engine_commit": (ran.commit or rest) if ran else None,
        "hardware": found or plain_name(_text(record, "host_processor_model_name")),
        "num_gpus": gpus(found, record.get("accelerators_per_node"), record.get("number_of_nodes")),
    }
    return {key: str(value) for key, value in values.items() if value}


@lru_cache(maxsize=CACHED)
def software_commit(text: str, engine: str) -> str | None:
    """Return the commit of *engine* in a list of further software: `hipblaslt-8b71e7a, vllm-a8cff57` → a8cff57 for vllm."""
    for part in text[:MAX_TEXT].split(","):
        ran = software(part)
        if ran and ran.engine == engine and ran.commit:
            return ran.commit
    return None


def folder_hints(path: PurePosixPath) -> dict[str, str]:
    """Return what the folders of a submission tell: `closed/NVIDIA/results/<system>/llama2-70b-99.9/Server/performance/run_1`.

    Division, submitter and system are in `recipe`; audits, ranging runs and the Interactive scenario are other workloads.
    """
    parts = path.parts
    root = max((place for place, part in enumerate(parts) if part in ("results", "compliance")), default=len(parts))
    scenario = scenario_of(parts[root + 3]) if len(parts) > root + 4 else None
    if scenario is None:
        return {}
    benchmark = benchmark_of(parts[root + 2])
    division = parts[root - 2].lower() if root > 1 else "closed"
    audit = next((part.lower() for part in parts[root + 4 :] if part.upper().startswith("TEST") or part == "ranging"), "")
    notes = (division if division != "closed" else "", "interactive" if scenario == "Interactive" else "", audit)
    return {
        "model": benchmark.family,
        "workload": " ".join((benchmark.name, *filter(None, notes))),
        "recipe": "/".join((*parts[max(0, root - 2) : root], parts[root + 1])),
        **_named_accelerators(parts[root + 1]),
    }


def _named_accelerators(system: str) -> dict[str, str]:
    """Return accelerator and number where a folder's name tells one of each: `DGX-H100_H100-SXM-80GBx8_TRT` → h100, 8."""
    names = accelerators(system)
    if len(names) != 1 or re.search(r"x\d+x\d", system):
        return {"hardware": names[0]} if len(names) == 1 else {}
    numbers = {int(behind or before) for behind, before in _NUMBER.findall(system)} - {0}
    return {"hardware": names[0], **({"num_gpus": str(numbers.pop())} if len(numbers) == 1 else {})}


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def left_out(value: Any) -> Iterator[LeftOut] | None:
    """Know a description of a system and take nothing; the reason names what can be declared from it for the logs beside it."""
    if not isinstance(value, dict) or not value.keys() >= MARKERS:
        return None
    told = " ".join(f"{key}={value!r}" for key, value in declarable(value).items())
    reason = f"a description of a system, no measurement; for its logs it tells: {told or 'nothing'}"
    return iter((LeftOut(reason[:MAX_TEXT]),))
