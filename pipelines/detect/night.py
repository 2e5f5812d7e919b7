"""Detection from points to `noise`, `diffs` and `shifts`: every curve's observations in order, each against its baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipelines.detect.baseline import baselines
from pipelines.detect.changes import ENVIRONMENT, ChangeSet, differences
from pipelines.detect.comparison import Comparison, compare, percent
from pipelines.detect.decision import Verdict, control, judge, night
from pipelines.detect.lifecycle import Shift, follow
from pipelines.detect.noise import measure
from pipelines.detect.observations import REPORTED, STEADY, TPOT, TTFT, Observation, observe
from warehouse.canonical import content_id
from warehouse.schemas import CONTEXT, DIFFS, SHIFTS


@dataclass(frozen=True)
class Detection:
    """The frames of `noise`, `diffs` and `shifts`."""

    noise: pl.DataFrame
    diffs: pl.DataFrame
    shifts: pl.DataFrame


Part = tuple[dict[str, list[Observation]], list[tuple[Comparison, ChangeSet]]]
"""The observations of some curves, and each compared with its baseline."""


def detect(points: pl.DataFrame) -> Detection:
    """Return what *points* (`observations.COLUMNS`, any order) say of shifts; the same points give the same bytes."""
    return conclude([compared(points)])


def compared(points: pl.DataFrame) -> Part:
    """Return the observations of the curves of *points*, and each compared with its baseline."""
    curves = observe(points, tuple(column.name for column in CONTEXT))
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
    model = measure(comparison for comparison, changes in pairs if _is_repeat(changes))
    judged = [verdict for comparison, changes in pairs if (verdict := judge(comparison, changes, model)) is not None]
    verdicts = control(judged)
    shifts = follow(verdicts, curves)
    settled = {_pair_id(shift.verdict): shift.attribution for shift in shifts}
    return Detection(
        model.frame(),
        pl.DataFrame([_diff_row(verdict, settled) for verdict in verdicts], schema=DIFFS.schema),
        pl.DataFrame([_shift_row(shift) for shift in shifts], schema=SHIFTS.schema),
    )


def _pairs(curves: dict[str, list[Observation]]) -> Iterable[tuple[Comparison, ChangeSet]]:
    for curve in sorted(curves):
        history = curves[curve]
        for new, baseline in zip(history, baselines(history), strict=True):
            if baseline is not None:
                yield compare(new, baseline), differences(new, baseline)


def _is_repeat(changes: ChangeSet) -> bool:
    """Say whether nothing that could move a cell is known to differ."""
    return changes.attribution == ENVIRONMENT and ENVIRONMENT not in changes.names


def _diff_row(verdict: Verdict, settled: dict[str, str]) -> dict[str, Any]:
    """What did not move is attributed to nothing; a shift's attribution, which repeats may have changed, stands here as well."""
    pair = _pair_id(verdict)
    return {"diff_id": pair, **_comparison_row(verdict, settled.get(pair))}


def _shift_row(shift: Shift) -> dict[str, Any]:
    return {
        "shift_id": _pair_id(shift.verdict),
        "event_key": shift.event_key,
        "status": shift.status,
        "status_reason": shift.reason,
        "direction": shift.direction,
        "siblings": shift.siblings,
        "siblings_total": shift.siblings_total,
        **_comparison_row(shift.verdict, shift.attribution),
    }


def _pair_id(verdict: Verdict) -> str:
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    return content_id(
        "diff",
        new.curve_id,
        *(part for side in (old, new) for part in (side.run_source, side.run_id, side.run_attempt, *side.setup)),
    )


def _comparison_row(verdict: Verdict, attribution: str | None) -> dict[str, Any]:
    comparison = verdict.comparison
    new, baseline = comparison.new, comparison.baseline
    low, high = verdict.interval
    return {
        "curve_id": new.curve_id,
        "night": night(comparison),
        **new.context,
        **_side("from", baseline.observation),
        **_side("to", new),
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
        "p_value": verdict.p_value,
        "q_value": verdict.q_value,
        "change_set": list(verdict.changes.names),
        "change_detail": list(verdict.changes.details),
        "same_build": baseline.observation.build_id == new.build_id,
        "attribution": attribution,
        "health": _health(comparison),
        "flagged": verdict.flagged,
    }


def _side(prefix: str, side: Observation) -> dict[str, Any]:
    names = (
        "measured_at",
        "recorded_at",
        "run_id",
        "run_source",
        "run_attempt",
        "build_id",
        "image_ref",
        "image_digest",
        "engine_version",
    )
    return {f"{prefix}_{name}": getattr(side, name) for name in names}


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
