"""Accelerators to which an entry of a recipe log confines itself in words, though its keys name more.

`Update the image; Set FLAG=1 on H100 and H200`, for keys of B200, H100 and H200, changes nothing but the image on B200.
Belongs here: accelerators in sentences. Does not: what the keys name (`pipelines.detect.recipes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from changelog.recipe_kinds import lines_of_cause
from warehouse import vocabulary


def confined_to(keys: Iterable[str], lines: Iterable[str]) -> tuple[str, ...]:
    """Return the accelerators that every line of a cause is for, where they are fewer than those of the keys; else none."""
    of_keys = [_in_key(key) for key in keys]
    of_lines = [_in_line(line) for line in lines_of_cause(lines)]
    if not of_lines or None in of_keys or not all(of_lines):
        return ()
    named, told = set(of_keys), set[str]().union(*of_lines)
    return tuple(sorted(told)) if told < named else ()


def _in_key(key: str) -> str | None:
    """Return the accelerator that a key names; None where it stands for any."""
    return next((name for part in key.lower().split("-") if (name := _spellings().get(part))), None)


def _in_line(line: str) -> set[str]:
    """Return the accelerators behind `to`, `for`, `on` or `in`: what is done there and nowhere else."""
    phrases = _phrase().findall(" ".join(line[:1000].lower().split()))
    return {_spellings()[name] for phrase in phrases for name in re.findall(_name(), phrase)}


@cache
def _spellings() -> dict[str, str]:
    """Return accelerators by their names, the x behind AMD's left out as well."""
    names = {
        text: name
        for name in vocabulary.names("hardware")
        for text in (name, *vocabulary.entry("hardware", name).get("aliases", ()))
    }
    return {text[:-1]: name for text, name in names.items() if re.fullmatch(r"mi\d+x", text)} | names


@cache
def _name() -> str:
    return r"\b(?:" + "|".join(map(re.escape, sorted(_spellings(), key=len, reverse=True))) + r")\b"


@cache
def _phrase() -> re.Pattern[str]:
    return re.compile(rf"\b(?:to|for|on|in) (?:the |all |both )?({_name()}(?:(?:, and |, | and |/| & ){_name()}){{0,20}})")
