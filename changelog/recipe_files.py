"""A benchmark's recipe log as a file (YAML, a list of entries), and the list that tells when its entries came into it.

An entry: `config-keys`, `description`, `pr-link`, and where it has them `append-only`, `evals-only`, `scenario-type`. Each is
read by itself, so that one that is no YAML spoils no other. A list of dates: JSON objects of `pr_link`, `commit`,
`first_added_at`. Belongs here: syntax, and dates that tell nothing because many entries came at once. Does not: what an entry
means (`changelog.recipe_entries`), the log over time (`changelog.recipe_history`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, hash_of, instant_of, line_of
from changelog.recipe_entries import MAX_LINK, LogEntry, entry_of, pull_request
from changelog.yaml_text import document
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.events import RecipeChanged

BULK = 10
"""Entries that one commit brings from which on it dates none: real ones bring up to 3, rewritings of the whole log 11 to 78."""
MAX_CHARACTERS = 16_000_000
MAX_ENTRY = 200_000
"""Characters of one entry; the longest real one has 14,000."""
MAX_ENTRIES = 50_000

Told = UpstreamFact | UpstreamFault

_ENTRY = re.compile(r"^- ", re.MULTILINE)
_KEYS = re.compile(r"^(?:- |  )[ \t]*config-keys[ \t]*:", re.MULTILINE)
_SAID = re.compile(r"^(?:- |  )[ \t]*(?:description|pr-link)[ \t]*:", re.MULTILINE)


def is_log(head: str) -> bool:
    """Say whether the head of a text is that of a recipe log: a list whose entries have `config-keys` and say something."""
    return _ENTRY.search(head) is not None and _KEYS.search(head) is not None and _SAID.search(head) is not None


def log_facts(text: str) -> Iterator[Told]:
    """Yield the entries of a log, none of them dated, and a fault for each that cannot be read; raises InputError."""
    for place, piece in pieces(text):
        try:
            yield UpstreamFact(parsed(piece).told(), None, None, place)
        except InputError as error:
            yield UpstreamFault(place, f"{place}: {line_of(str(error), 300)}", line_of(piece, MAX_EXCERPT))


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of a log as texts, each with its place; raises InputError for what no log can be."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{len(text):,} characters; a recipe log may have {MAX_CHARACTERS:,}")
    starts = [match.start() for match in _ENTRY.finditer(text)]
    if len(starts) > MAX_ENTRIES:
        raise InputError(f"{len(starts):,} entries; a recipe log may have {MAX_ENTRIES:,}")
    line, done = 1, 0
    for number, (start, end) in enumerate(zip([0, *starts], [*starts, len(text)], strict=True)):
        line, done = line + text.count("\n", done, start), start
        piece = text[start:end]
        if number or piece.strip():
            if not number and all(_is_blank(each) for each in piece.split("\n")):
                continue
            yield f"entry {number} (line {line})" if number else f"line {line}", piece


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#") or line.strip() == "---"


@lru_cache(maxsize=4096)
def parsed(piece: str) -> LogEntry:
    """Return the entry that a piece of a log is; raises InputError. The versions of one log share nearly all of them."""
    if len(piece) > MAX_ENTRY:
        raise InputError(f"{len(piece):,} characters; an entry may have {MAX_ENTRY:,}")
    whole = document(piece)
    if not isinstance(whole, list) or len(whole) != 1:
        raise InputError("is not one element of a list")
    return entry_of(whole[0])


def date_facts(text: str) -> Iterator[Told]:
    """Yield what a list of dates tells: for each pull request the commit that brought its entries, and when."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({line_of(str(error), 100)})") from None
    if not isinstance(rows, list) or len(rows) > MAX_ENTRIES:
        raise InputError(f"must be a list of at most {MAX_ENTRIES:,} dates")
    brought = Counter(row.get("commit") for row in rows if isinstance(row, dict) and isinstance(row.get("commit"), str))
    for number, row in enumerate(rows, start=1):
        place = f"item {number}"
        try:
            fact = _date(row, place, brought)
        except InputError as error:
            yield UpstreamFault(place, f"{place}: {line_of(str(error), 300)}", line_of(str(row)[: 4 * MAX_EXCERPT], MAX_EXCERPT))
            continue
        if fact is not None:
            yield fact


def _date(row: Any, place: str, brought: Counter[Any]) -> UpstreamFact | None:
    """Return the date of a pull request's entries; None where the link is none yet (`XXX`): it dates nobody."""
    if not isinstance(row, dict):
        raise InputError("is not a JSON object")
    link = row.get("pr_link")
    if not isinstance(link, str):
        raise InputError("pr_link: must be a text")
    added = instant_of(row.get("first_added_at"), "first_added_at")
    told = RecipeChanged(
        config_keys=(),
        pr_link=line_of(link, MAX_LINK),
        added_at=iso(added),
        added_in=hash_of(row.get("commit"), "commit"),
        dated_by=dating(brought[row.get("commit")]),
    )
    return UpstreamFact(told, added, added, place) if pull_request(told.pr_link) else None


def dating(entries: int) -> Literal["commit", "bulk"]:
    """Return what the date of a commit that brought so many entries is worth."""
    return "bulk" if entries >= BULK else "commit"
