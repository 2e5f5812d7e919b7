"""Rows that rare series add to `diffs` and `shifts`: a wide prior as noise, false-discovery control, never more than suspected.

Belongs here: judging and rows. Does not: which results are paired and what differs between them (`rare`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, TagLog
from pipelines.detect.comparison import CURVE, percent
from pipelines.detect.decision import FALSE_DISCOVERY_RATE, benjamini_hochberg, margin, tail
from pipelines.detect.observations import REPORTED
from pipelines.detect.rare import HARDWARE, Pair, pairs_of
from pipelines.detect.recipes import NO_LOG, RecipeLog
from warehouse.canonical import content_id
from warehouse.schemas import CONTEXT, DIFFS, SHIFTS

PRIOR = 0.05
"""Noise of one rare result, log-ratio. Single cells of real repeats of one image move by 12 % (p95) and 36 % (p99) between two
runs; Student's t with three degrees of freedom has those quantiles at a scale of 2.8 % and 4.3 %."""
SPREAD = PRIOR * math.sqrt(2)
"""Scale of a change: both results carry the noise."""
DEGREES_OF_FREEDOM = 3
GATE = math.log(1.10)
SUSPECTED = "suspected"
REASON = "one cell, one result on each side: insufficient repeats to confirm"
CONTRADICTED = "another run of one of the two builds stands nearer to the other side"
Judged = tuple[Pair, float | None, float | None, bool]
"""A pair, its p and q values, whether it is flagged."""


def rare_rows(points: pl.DataFrame, log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that rare series add to `diffs` and `shifts`; pairs that are not comparable add none."""
    judged = _judged([pair for pair in pairs_of(points, log, tags) if pair.size is not None])
    family: Counter[tuple[str, ...]] = Counter(_family(pair) for pair, _p, _q, flagged in judged if flagged)
    compared: Counter[tuple[str, ...]] = Counter(_change(pair) for pair, *_rest in judged)
    diffs = [_diff_row(*each) for each in judged]
    shifts = [_shift_row(*each, family, compared) for each in judged if each[3]]
    return _frame(diffs, DIFFS.schema), _frame(shifts, SHIFTS.schema)


def _judged(pairs: list[Pair]) -> list[Judged]:
    """Return pairs with p, q and whether they are flagged: Benjamini-Hochberg over the rare pairs of one day.

    A pair on two accelerators has neither p nor q.
    """
    days: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if HARDWARE not in pair.names:
            days[pair.new.night].append(pair)
    values: dict[int, tuple[float, float]] = {}
    for together in days.values():
        p_values = [tail(_size(pair), SPREAD, DEGREES_OF_FREEDOM) for pair in together]
        q_values = benjamini_hochberg(p_values, len(together))
        values |= {id(pair): (p, q) for pair, p, q in zip(together, p_values, q_values, strict=True)}
    return [_flagged(pair, *values.get(id(pair), (None, None))) for pair in pairs]


def _flagged(pair: Pair, p_value: float | None, q_value: float | None) -> Judged:
    flagged = q_value is not None and abs(_size(pair)) >= GATE and q_value <= FALSE_DISCOVERY_RATE
    return pair, p_value, q_value, flagged


def _size(pair: Pair) -> float:
    assert pair.size is not None, "only comparable pairs are judged"
    return pair.size


def _frame(rows: Iterable[dict[str, Any]], schema: pl.Schema) -> pl.DataFrame:
    """Return rows in a table's schema; columns that a rare series has nothing for are null."""
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema=schema)


def _change(pair: Pair) -> tuple[str, ...]:
    """What siblings share: engine, hardware, both builds, both runs."""
    old, new = pair.old, pair.new
    return (new.context["engine"], new.context["hardware"], old.build_id, new.build_id, old.run_id, new.run_source, new.run_id)


def _family(pair: Pair) -> tuple[str, ...]:
    return (*_change(pair), "up" if _size(pair) > 0 else "down", pair.attribution)


def _pair_id(pair: Pair) -> str:
    """Return the hash of both observations, as of any comparison; of another system with that one's curve."""
    old, new = pair.old, pair.new
    sides = (part for side in (old, new) for part in (side.run_source, side.run_id, side.run_attempt, *side.setup))
    return content_id("diff", new.curve_id, *([old.curve_id] if old.curve_id != new.curve_id else []), *sides)


def _diff_row(pair: Pair, p_value: float | None, q_value: float | None, flagged: bool) -> dict[str, Any]:
    return {"diff_id": _pair_id(pair), **_comparison_row(pair, p_value, q_value, flagged)}


def _shift_row(
    pair: Pair,
    p_value: float | None,
    q_value: float | None,
    flagged: bool,
    family: Counter[tuple[str, ...]],
    compared: Counter[tuple[str, ...]],
) -> dict[str, Any]:
    return {
        "shift_id": _pair_id(pair),
        "event_key": content_id("shift-event", *_family(pair)),
        "status": SUSPECTED,
        "status_reason": CONTRADICTED if pair.contradicted else REASON,
        "direction": "speedup" if _size(pair) > 0 else "regression",
        "siblings": family[_family(pair)],
        "siblings_total": compared[_change(pair)],
        **_comparison_row(pair, p_value, q_value, flagged),
    }


def _comparison_row(pair: Pair, p_value: float | None, q_value: float | None, flagged: bool) -> dict[str, Any]:
    old, new, size = pair.old, pair.new, _size(pair)
    half = margin(SPREAD, DEGREES_OF_FREEDOM)
    return {
        "curve_id": new.curve_id,
        "night": pair.new.night,
        **{column.name: new.context[column.name] for column in CONTEXT},
        **old.as_side("from"),
        **new.as_side("to"),
        "gap_days": (new.measured_at - old.measured_at).total_seconds() / 86400,
        "cells": 1,
        "cells_total": 1,
        "metric": new.context["headline"],
        "part": CURVE,
        "size": size,
        "size_pct": percent(size),
        "interval_low_pct": percent(size - half),
        "interval_high_pct": percent(size + half),
        "coherent": None,
        "agreeing": 1,
        "reported_pct": percent(size) if new.context["headline"] == REPORTED else None,
        "noise_scale": PRIOR,
        "noise_level": "prior",
        "noise_repeats": 0,
        "p_value": p_value,
        "q_value": q_value,
        "change_set": list(pair.names),
        "change_detail": list(pair.details),
        "same_build": old.same_build(new) and old.has_build,
        "attribution": pair.attribution if flagged else None,
        "health": sorted({reason for side in (old, new) for cell in side.cells.values() for reason in cell.health}),
        "flagged": flagged,
    }
