"""A changed speed and a lost score at one change of builds are one finding.

Both are measured in their own runs, so the two comparisons may have different builds at their ends. Builds of one stack are put
in the order in which either table saw them first; two changes meet where their intervals of that order overlap. Neither side may
be one that repeats of a build explain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from pipelines.detect.changes import ENVIRONMENT, MEASUREMENT
from pipelines.detect.states import GONE, RECOVERED

LINKED = pl.Schema({"shift_id": pl.String(), "score_diff_id": pl.String(), "text": pl.String()})
STACK = ("engine", "hardware", "framework", "model", "precision")
_BLAMELESS = (ENVIRONMENT, MEASUREMENT)
_GONE = (*GONE, RECOVERED)

_Row = dict[str, Any]
_Stack = tuple[Any, ...]


def linked(shifts: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Return which flagged drops of *scores* (`score_diffs`) happened at the change of builds of each of *shifts*, in words."""
    drops = list(_standing(scores.filter(pl.col("flagged") & (pl.col("size_points") < 0))))
    moved = list(_standing(shifts))
    order = _order([*moved, *drops])
    by_stack: dict[_Stack, list[_Row]] = defaultdict(list)
    for drop in drops:
        by_stack[_stack(drop)].append(drop)
    found = [
        (shift["shift_id"], drop["score_diff_id"], _text(drop, where))
        for shift in moved
        for drop in by_stack[_stack(shift)]
        if (where := _meet(shift, drop, order))
    ]
    return pl.DataFrame(found, schema=LINKED, orient="row").sort("shift_id", "score_diff_id")


def with_scores(shifts: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Return *shifts* with the column `linked`: the drops of *scores* that belong to the same finding, in words."""
    texts = linked(shifts, scores).group_by("shift_id", maintain_order=True).agg(pl.col("text").alias("linked"))
    joined = shifts.drop("linked").join(texts, on="shift_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("linked").fill_null([])).select(shifts.columns)


def _standing(rows: pl.DataFrame) -> Iterator[_Row]:
    """Yield rows that stand and whose builds are recorded and differ, on a stack that is wholly known."""
    for row in rows.iter_rows(named=True):
        builds = (row["from_build_id"], row["to_build_id"])
        known = all(build and not build.startswith("unknown:") for build in builds) and None not in _stack(row)
        if known and builds[0] != builds[1] and row["status"] not in _GONE and row["attribution"] not in _BLAMELESS:
            yield row


def _stack(row: _Row) -> _Stack:
    return tuple(row[name] for name in STACK)


def _order(rows: list[_Row]) -> dict[tuple[_Stack, str], int]:
    """Return the place of every build in the order in which its stack met it; builds of one instant by their id."""
    first: dict[tuple[_Stack, str], datetime] = {}
    for row in rows:
        for side in ("from", "to"):
            key = (_stack(row), row[f"{side}_build_id"])
            first[key] = min(first.get(key, row[f"{side}_measured_at"]), row[f"{side}_measured_at"])
    ordered = sorted(first, key=lambda key: (first[key], key[1]))
    return {key: place for place, key in enumerate(ordered)}


def _meet(shift: _Row, drop: _Row, order: dict[tuple[_Stack, str], int]) -> str:
    """Say where the two changes meet; empty: nowhere. A change to an earlier build goes the other way and meets only its like."""
    ends = [(row["from_build_id"], row["to_build_id"]) for row in (shift, drop)]
    if ends[0] == ends[1]:
        return "at the same build change"
    stack = _stack(shift)
    (first, last), (begin, end) = ((order[stack, old], order[stack, new]) for old, new in ends)
    return "over builds that overlap with this change" if max(first, begin) < min(last, end) else ""


def _text(drop: _Row, where: str) -> str:
    return f"{drop['task']} ({drop['metric']}) fell by {-drop['size_points']:.1f} points {where} ({drop['status']})"
