"""One entry of a benchmark's recipe log: its fields, its pull request, and what makes two of them the same entry.

Belongs here: an entry by itself, bounds on its text. Does not: syntax (`changelog.recipe_files`), successive versions of a log
(`changelog.recipe_history`), the table (`changelog.recipe_table`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from changelog.benchmarks import benchmark_of
from changelog.facts import line_of
from warehouse.errors import InputError
from warehouse.events import RecipeChanged

MAX_NAME = 200
MAX_LINK = 500
MAX_LINE = 2000
"""Longest line of a description that is kept, characters; the longest real one has 1,081."""
MAX_LINES = 200
MAX_KEYS = 1000
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "": False, "null": False, "~": False}
_LINK = re.compile(r"https://[\w.-]{1,100}/([\w.-]{1,100}/[\w.-]{1,100})/pull/(\d{1,9})(?=/|$)")
_LAST_LINE = re.compile(r"PR:[ \t]*(https?://\S{1,400})", re.IGNORECASE)


class PullRequest(NamedTuple):
    """A pull request: its repository in lower case, by its present name where it was renamed, and its number."""

    repository: str
    number: int


@dataclass(frozen=True)
class LogEntry:
    """One entry as a log spells it: texts printable and bounded, flags as they are meant where they are left out."""

    config_keys: tuple[str, ...]
    description: tuple[str, ...]
    pr_link: str | None
    append_only: bool
    evals_only: bool
    scenario_types: tuple[str, ...]

    @property
    def text(self) -> Text:
        """What the entry says, without its pull request."""
        return text_of(self.config_keys, self.description)

    def told(self, **more: Any) -> RecipeChanged:
        """Return the payload of the entry, with what is known besides."""
        return RecipeChanged(**vars(self), **more)


Text = tuple[tuple[str, ...], tuple[str, ...]]
"""Keys and lines of an entry in no order of their own: entries that agree in it say the same."""


def text_of(keys: Iterable[str], lines: Iterable[str]) -> Text:
    """Return what keys and lines say, whatever their order, their white space and the case of keys."""
    return tuple(sorted({key.strip().lower() for key in keys})), tuple(sorted({" ".join(line.split()) for line in lines}))


@lru_cache(maxsize=8192)
def pull_request(link: str | None) -> PullRequest | None:
    """Return the pull request of a link; None where it stands for one that had no number yet (`XXX`)."""
    match = _LINK.match(link or "")
    return PullRequest(benchmark_of(match[1]), int(match[2])) if match else None


def entry_of(item: object) -> LogEntry:
    """Return the entry of one element of a log; raises InputError naming the field."""
    if not isinstance(item, dict):
        raise InputError("is not a mapping with config-keys, description and pr-link")
    keys = lines_of(_texts(item, "config-keys"), MAX_NAME)[:MAX_KEYS]
    if not keys:
        raise InputError("config-keys: is missing or empty; name the configurations that the entry is about")
    lines, link = _description(item)
    told = _text(item, "pr-link")
    return LogEntry(
        config_keys=keys,
        description=lines[:MAX_LINES],
        pr_link=line_of(told or link, MAX_LINK) or None,
        append_only=_flag(item, "append-only"),
        evals_only=_flag(item, "evals-only"),
        scenario_types=lines_of(_texts(item, "scenario-type"), MAX_NAME)[:MAX_KEYS],
    )


def lines_of(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return *texts* line by line, printable and bounded, without empty ones: an API joins what an artifact lists."""
    lines = (line_of(line, limit) for text in texts for line in text.split("\n"))
    return tuple(line for line in lines if line)


def _description(item: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Return the lines, and the link that stands last where they are one text: bullets, each of them over several lines."""
    told = item.get("description")
    if not isinstance(told, str):
        return lines_of(_texts(item, "description"), MAX_LINE), ""
    bullets: list[str] = []
    link = ""
    for line in told.split("\n")[: 10 * MAX_LINES]:
        if match := _LAST_LINE.fullmatch(line.strip()):
            link = match[1]
        elif line.startswith(("- ", "* ")) or not bullets:
            bullets.append(line.removeprefix("- ").removeprefix("* "))
        else:
            bullets[-1] += f" {line.strip()}"
    return lines_of(bullets, MAX_LINE), link


def _texts(item: dict[str, Any], field: str) -> tuple[str, ...]:
    value = item.get(field)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{field}: must be a list of texts")
    return tuple(value)


def _text(item: dict[str, Any], field: str) -> str:
    value = item.get(field, "")
    if not isinstance(value, str):
        raise InputError(f"{field}: must be a text")
    return value


def _flag(item: dict[str, Any], field: str) -> bool:
    told = _text(item, field).strip().lower()
    if told not in _FLAGS:
        raise InputError(f"{field}: {told[:40]!r} is neither true nor false")
    return _FLAGS[told]
