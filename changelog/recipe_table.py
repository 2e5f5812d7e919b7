"""The rows of `recipes`: what runs, the log, its history and a list of dates tell of one entry is one row a run, else one.

Belongs here: which facts tell of one entry, and what is known of its date. Does not: decoding events (`changelog.tables`), what
an entry says (`changelog.recipe_entries`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from changelog.recipe_entries import PullRequest, Text, pull_request, text_of
from changelog.recipe_kinds import MEASUREMENT, judged
from warehouse.schemas import RECIPES

Row = dict[str, Any]
FLAGS = ("append_only", "evals_only", "scenario_types")
DATES = ("added_at", "added_in", "dated_by")
_SPOKEN = tuple(name for name in RECIPES.schema.names() if name not in ("recorded_at", "kind"))
_SAYS = ("config_keys", "description", "pr_link")
_ENTRY = ("run_source", "run_id", "base_ref", "head_ref", "config_keys", "description")
"""What one entry of a run is, whichever source tells of it."""


class _Said(NamedTuple):
    """What an entry says, and of what kind of measurement: entries that agree in it are one, where their numbers allow it."""

    text: Text
    flags: tuple[Any, ...]


def recipe_rows(told: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the table; *told* are the facts in the order of the log, the run in its own columns.

    Of one entry of a run the source with its flags counts, and the last attempt. What the log itself, its history and a list of
    dates tell of the same entry is added to it; an entry that no run told of is a row of its own.
    """
    of_log = told.filter(pl.col("run_id").is_null()).to_dicts()
    dates = _dates_of_requests(row for row in of_log if not row["config_keys"])
    logged = _edited_joined(_logged(row for row in of_log if row["config_keys"]))
    places = _Places(logged)
    rows: list[Row] = []
    used: set[int | None] = set()
    for row in _of_runs(told.filter(pl.col("run_id").is_not_null())).to_dicts():
        place = places.of(row)
        used.add(place)
        rows.append(_completed(row, logged[place] if place is not None else None))
    rows += [row for place, row in enumerate(logged) if place not in used]
    finished = [_finished(row, dates) for row in rows]
    return pl.DataFrame(sorted(finished, key=_spelled), schema=RECIPES.schema)


def _of_runs(rows: pl.DataFrame) -> pl.DataFrame:
    told = rows.sort("run_attempt", maintain_order=True)
    untold = pl.col("append_only").is_null()
    counted = told.filter(~untold | untold.all().over(_ENTRY))
    return counted.unique([*_ENTRY, *FLAGS], keep="last", maintain_order=True)


def _logged(rows: Iterable[Row]) -> list[Row]:
    """Return one row an entry that the log, its versions or others without a run tell of."""
    said: dict[_Said, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=_spelled):
        said[_said(row)].append(row)
    return [_one_of(group) for same in said.values() for group in _by_request(same)]


def _by_request(rows: list[Row]) -> list[list[Row]]:
    """Split rows that say the same by their pull request; those without a number belong to the only one there is."""
    numbered: dict[PullRequest | None, list[Row]] = defaultdict(list)
    for row in rows:
        numbered[pull_request(row["pr_link"])].append(row)
    if len(numbered) == 2 and None in numbered:
        return [rows]
    return list(numbered.values())


def _one_of(group: list[Row]) -> Row:
    """Return the row of one entry: told by a commit first, with the earliest date that any tells."""
    first = min(group, key=lambda row: (row["head_ref"] is None, _date_order(row), _spelled(row)))
    link = next((row["pr_link"] for row in [first, *group] if pull_request(row["pr_link"])), first["pr_link"])
    touched = first["touched"] or next((row["touched"] for row in group if row["touched"]), None)
    return {**first, "pr_link": link, "touched": touched, "recorded_at": min(row["recorded_at"] for row in group)}


def _edited_joined(rows: list[Row]) -> list[Row]:
    """Join what the history tells of an entry as it first was with what the log tells of it after an edit.

    They are one where a pull request has just one of either, for the same configurations or, where these were edited, at all.
    """
    for keys_count in (True, False):
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in rows:
            if (number := pull_request(row["pr_link"])) is not None:
                groups[number, _said(row).text[0] if keys_count else None].append(row)
        gone: set[int] = set()
        for group in groups.values():
            dated = [row for row in group if row["head_ref"] is not None]
            plain = [row for row in group if row["head_ref"] is None]
            if len(dated) == len(plain) == 1:
                gone.add(id(plain[0]))
                dated[0].update({name: plain[0][name] for name in (*_SAYS, *FLAGS)})
        rows = [row for row in rows if id(row) not in gone]
    return rows


class _Places:
    """Finds which logged entry a run told of."""

    def __init__(self, logged: list[Row]) -> None:
        self.logged = logged
        self.by_text: dict[Text, list[int]] = defaultdict(list)
        self.by_request: dict[tuple[PullRequest, tuple[str, ...]], list[int]] = defaultdict(list)
        for place, row in enumerate(logged):
            text = _said(row).text
            self.by_text[text].append(place)
            if (number := pull_request(row["pr_link"])) is not None:
                self.by_request[number, text[0]].append(place)

    def of(self, row: Row) -> int | None:
        """Return the place of one that says the same, with the same flags first, else of the only one of its request and keys."""
        said, number = _said(row), pull_request(row["pr_link"])
        same = [
            (row["append_only"] is not None and _said(self.logged[place]).flags != said.flags, place)
            for place in self.by_text.get(said.text, ())
            if None in (number, its := pull_request(self.logged[place]["pr_link"])) or number == its
        ]
        if same:
            return min(same)[1]
        alike = self.by_request.get((number, said.text[0]), []) if number is not None else []
        return alike[0] if len(alike) == 1 else None


def _completed(row: Row, logged: Row | None) -> Row:
    """Return the row of a run with what the log tells besides: its date, its link, flags that the run's source does not tell."""
    if logged is None:
        return row
    found = {name: logged[name] for name in (*DATES, "touched")}
    found["added_in"] = found["added_in"] or (logged["head_ref"] if logged["added_at"] else None)
    if row["append_only"] is None:
        found |= {name: logged[name] for name in FLAGS}
    return {**row, **found, "pr_link": row["pr_link"] or logged["pr_link"]}


def _finished(row: Row, dates: dict[PullRequest, Row]) -> Row:
    """Return a row with the date that counts and its kind."""
    of_request = dates.get(number) if (number := pull_request(row["pr_link"])) else None
    known = [told for told in (row, of_request) if told and told["added_at"]]
    own = row["dated_by"] == "commit"
    best = row if own else min(known, key=_date_order, default=row)
    found = {name: best[name] for name in DATES}
    if best is row and found["added_at"] and not found["added_in"]:
        found["added_in"] = row["head_ref"]
    kind = MEASUREMENT if row["evals_only"] else judged(row["description"] or (), row["touched"])[0]
    return {**row, **found, "kind": kind}


def _dates_of_requests(rows: Iterable[Row]) -> dict[PullRequest, Row]:
    """Return the earliest date of every pull request that a list dates."""
    found: dict[PullRequest, Row] = {}
    for row in rows:
        number = pull_request(row["pr_link"])
        if number is not None and row["added_at"] and (number not in found or _date_order(row) < _date_order(found[number])):
            found[number] = row
    return found


def _date_order(row: Row) -> tuple[Any, ...]:
    """Order dates: the earliest first, of the same instant the one that is worth less; none last."""
    told = row["added_at"]
    return (told is None, told.timestamp() if told else 0, row["dated_by"] or "", row["added_in"] or row["head_ref"] or "")


def _said(row: Row) -> _Said:
    kinds = row["scenario_types"]
    flags = (row["append_only"], row["evals_only"], None if kinds is None else tuple(sorted(kinds)))
    return _Said(text_of(row["config_keys"], row["description"] or ()), flags)


def _spelled(row: Row) -> str:
    """Return what orders rows, whatever the order in which they were read."""
    return repr([row[name] for name in _SPOKEN])
