"""The image that an entry of a recipe log moves a configuration to, by its words, and whether a run used it.

A run that uses it has the entry, though the entry may have been merged later: benchmarks measure a change before they take it.
What is named without a move (`Image: …`) does not count: both sides of the entry may run it. Belongs here: names of images in
sentences. Does not: references themselves (`warehouse.image`), kinds (`changelog.recipe_kinds`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_SUBJECT = re.compile(r"\b(?:images?|containers?|versions?|tags?|bump\w*|upgrad\w+|updat\w+)\b", re.IGNORECASE)
_TOLD = re.compile(
    r"(?:\bto\s+(?:(?:the|upstream|latest|stable|official|new|mainline)\s+){0,3}|->\s*|→\s*)[`'\"]?([\w./:@#+-]{3,300})",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v?\d+(?:\.\d+)+[\w.+-]*|nightly-[\w.-]*[0-9a-f]{7,40}", re.IGNORECASE)
MAX_LINES = 50


def images_named(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the references, tags or versions that the lines of an entry move to, lower case, in the order of their names."""
    found = set()
    for line in list(lines)[:MAX_LINES]:
        if _SUBJECT.search(line):
            found |= {name for text in _TOLD.findall(line[:1000]) if (name := _name(text)) is not None}
    return tuple(sorted(found))


def _name(text: str) -> str | None:
    plain = text.lower().replace("#", "/").rstrip(".,;:-'\"`")
    tag = plain.rsplit("/", 1)[-1].partition(":")[2] if "/" in plain else plain
    return plain if _VERSION.search(tag) else None


@lru_cache(maxsize=8192)
def is_named(reference: str, named: tuple[str, ...]) -> bool:
    """Say whether an image reference is one of those that an entry names: as a whole, or by its tag or its version."""
    whole = reference.lower().replace("#", "/").partition("@")[0]
    tag = whole.rsplit("/", 1)[-1].partition(":")[2]
    return any(_is_one(name, whole, tag) for name in named)


def _is_one(name: str, whole: str, tag: str) -> bool:
    if "/" in name:
        return whole == name.partition("@")[0] or whole.endswith("/" + name.partition("@")[0])
    plain = name.rpartition(":")[2].removeprefix("v")
    mine = tag.removeprefix("v")
    return bool(plain) and (mine == plain or mine.startswith(plain + "-"))
