"""Detection from points to `noise`, `diffs`, `shifts`, `levels`: every curve's observations, each against its baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, TagLog
from pipelines.detect.baseline import baselines
from pipelines.detect.changes import ChangeSet, differences
from pipelines.detect.comparison import Comparison, compare, night, percent
from pipelines.detect.days import Days, second_pass
from pipelines.detect.decision import Verdict, control, judge
from pipelines.detect.lifecycle import Shift, follow
from pipelines.detect.noise import NoiseModel, measure
from pipelines.detect.notices import with_notices
from pipelines.detect.observations import REPORTED, STEADY, TPOT, TTFT, Observation, observe
from pipelines.detect.rare import NEEDED as RARE_COLUMNS
from pipelines.detect.rare_rows import rare_rows
from pipelines.detect.recipes import NO_LOG, RecipeLog
from pipelines.detect.series import DRIFT
from warehouse.canonical import content_id
from warehouse.schemas import CONTEXT, DIFFS, LEVELS, SHIFTS


@dataclass(frozen=True)
class Detection:
    """The frames of `noise`, `diffs`, `shifts` and `levels`."""

    noise: pl.DataFrame
    diffs: pl.DataFrame
    shifts: pl.DataFrame
    levels: pl.DataFrame


Part = tuple[dict[str, list[Observation]], list[tuple[Comparison, ChangeSet]]]
"""The observations of some curves, and each compared with its baseline."""


def detect(points: pl.DataFrame, log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS) -> Detection:
    """Return what *points* (columns of the table, any order) say of shifts; the same points give the same bytes."""
    return with_rare(conclude([compared(points, log, tags)]), points, log, tags)


def compared(points: pl.DataFrame, log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS) -> Part:
    """Return the observations of the curves of *points* (`observations.COLUMNS`), and each compared with its baseline."""
    curves = observe(points, tuple(column.name for column in CONTEXT), log, tags)
    return curves, list(_pairs(curves))


def conclude(parts: Iterable[Part]) -> Detection:
    """Return what the comparisons of all curves say together; *parts* are in the order of their curves' ids.

    Noise, false-discovery control and lifecycle look at all curves, so this runs in one place.
    """
    curves: dict[str, list[Observation]] = {}
    pairs: list[tuple[Comparison, ChangeSet]] = []
    for seen, comparisons in parts:
        curves |= seen
        pairs += comparisons
    model = measure(comparison for comparison, changes in pairs if changes.is_repeat)
    judged = [verdict for comparison, changes in pairs if (verdict := judge(comparison, changes, model)) is not None]
    controlled = control(judged)
    days = second_pass(controlled, model)
    verdicts = [replace(verdict, kind=days.kinds.get(id(verdict.comparison.new), "")) for verdict in controlled]
    steps = (days.steps.get(id(verdict.comparison.new), verdict) for verdict in verdicts)
    shifts = follow([*steps, *days.drifts], curves)
    settled = {_pair_id(shift.verdict): shift.attribution for shift in shifts}
    return Detection(
        model.frame(),
        pl.DataFrame([_diff_row(verdict, settled, model) for verdict in verdicts], schema=DIFFS.schema),
        pl.DataFrame([_shift_row(shift, model) for shift in shifts], schema=SHIFTS.schema),
        pl.DataFrame(_level_rows(days), schema=LEVELS.schema).unique(_LEVEL_KEY, keep="first", maintain_order=True),
    )


def with_rare(found: Detection, points: pl.DataFrame, log: RecipeLog, tags: TagLog = NO_TAGS) -> Detection:
    """Return a detection with what rare series (one cell, a result now and then) add to it, and all shifts with their notices."""
    rows = rare_rows(points.select(RARE_COLUMNS), log, tags)
    diffs = rows[0].join(found.diffs, on="diff_id", how="anti")  # an unfit cell may have had its notice
    shifts = rows[1].join(diffs.select(shift_id="diff_id"), on="shift_id", how="semi")
    together = pl.concat([found.shifts, shifts])
    return replace(found, diffs=pl.concat([found.diffs, diffs]), shifts=with_notices(together))


def _pairs(curves: dict[str, list[Observation]]) -> Iterable[tuple[Comparison, ChangeSet]]:
    for curve in sorted(curves):
        history = curves[curve]
        for new, baseline in zip(history, baselines(history), strict=True):
            if baseline is not None:
                yield compare(new, baseline), differences(new, baseline)


def _diff_row(verdict: Verdict, settled: dict[str, str], model: NoiseModel) -> dict[str, Any]:
    """What did not move is attributed to nothing; a shift's attribution, which repeats may have changed, stands here as well."""
    pair = _pair_id(verdict)
    attribution = settled.get(pair) if verdict.flagged else None  # a step that took two observations stands in `shifts` alone
    return {"diff_id": pair, **_comparison_row(verdict, attribution, model)}


def _shift_row(shift: Shift, model: NoiseModel) -> dict[str, Any]:
    return {
        "shift_id": _pair_id(shift.verdict),
        "event_key": shift.event_key,
        "status": shift.status,
        "status_reason": shift.reason,
        "direction": shift.direction,
        "kind": shift.verdict.kind or None,
        "siblings": shift.siblings,
        "siblings_total": shift.siblings_total,
        **_comparison_row(shift.verdict, shift.attribution, model),
    }


def _pair_id(verdict: Verdict) -> str:
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    return content_id(
        "drift" if verdict.kind == DRIFT else "diff",
        new.curve_id,
        *(part for side in (old, new) for part in (side.run_source, side.run_id, side.run_attempt, *side.setup)),
    )


def _comparison_row(verdict: Verdict, attribution: str | None, model: NoiseModel) -> dict[str, Any]:
    comparison = verdict.comparison
    new, baseline = comparison.new, comparison.baseline
    low, high = verdict.interval
    return {
        "curve_id": new.curve_id,
        "night": night(comparison),
        **new.context,
        **baseline.observation.as_side("from"),
        **new.as_side("to"),
        "gap_days": (new.measured_at - baseline.observation.measured_at).total_seconds() / 86400,
        "cells": len(comparison.concurrencies),
        "cells_total": len(new.cells.keys() | baseline.cells.keys()),
        "metric": verdict.metric,
        "part": verdict.part,
        "size": verdict.size,
        "size_pct": percent(verdict.size),
        "interval_low_pct": percent(low),
        "interval_high_pct": percent(high),
        "coherent": verdict.moved.coherent,
        "agreeing": verdict.moved.agreeing,
        "reported_pct": _moved(comparison, REPORTED),
        "steady_pct": _moved(comparison, STEADY),
        "tpot_pct": _moved(comparison, TPOT),
        "ttft_pct": _moved(comparison, TTFT),
        "noise_scale": verdict.noise.scale,
        "noise_level": verdict.noise.level,
        "noise_repeats": verdict.noise.repeats,
        "noise_version": model.version(night(comparison)),
        "explained_share": verdict.explained,
        "p_value": verdict.p_value,
        "q_value": None if verdict.by_days else verdict.q_value,
        "change_set": list(verdict.changes.names),
        "change_detail": list(verdict.changes.details),
        "same_build": baseline.observation.same_build(new),
        "attribution": attribution,
        "health": _health(comparison),
        "flagged": verdict.flagged,
    }


def _moved(comparison: Comparison, metric: str) -> float | None:
    """Median change of the metric's better direction over all cells, %; reported throughput over fit cells."""
    moved = comparison.movement(metric)
    return percent(moved.median) if moved is not None else None


def _health(comparison: Comparison) -> list[str]:
    return sorted(
        {
            reason
            for c in comparison.concurrencies
            for cell in (comparison.new.cells[c], comparison.baseline.cells[c])
            for reason in cell.health
        }
    )


_LEVEL_KEY = ("curve_id", "run_source", "run_id", "run_attempt", "build_id", "measured_at")


def _level_rows(days: Days) -> Iterable[dict[str, Any]]:
    """Yield a row an observation of each line; where lines share a beginning, the longest tells of it."""
    for line in days.lines:
        for observation, level in zip(line.observations, line.levels, strict=True):
            yield {
                **{name: getattr(observation, name) for name in _LEVEL_KEY},
                **observation.context,
                "engine_version": observation.engine_version,
                "level": level,
                "scale": line.scale,
                "kind": days.kinds.get(id(observation)),
            }
