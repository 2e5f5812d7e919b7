"""An observation: the points of one curve from one run on one build, side by side.

Values are natural logarithms, signed so that more is better; NaN where a record lacks the metric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median
from typing import Any

import polars as pl

from pipelines.detect.health import FAILURES, LENGTHS
from warehouse.schemas import CONTEXT

REPORTED, STEADY, TPOT, TTFT = "tput_per_gpu", "steady_output_tput_per_gpu", "tpot_median", "ttft_median"
METRICS = {REPORTED: 1.0, STEADY: 1.0, TPOT: -1.0, TTFT: -1.0}
"""Metrics that are compared, with the sign of their better direction."""

_SAME = (
    "curve_id",
    "run_source",
    "run_id",
    "run_attempt",
    "build_id",
    "recipe_fingerprint",
    "checkpoint",
    "hardware_label",
    "metric_definition",
)
"""Columns in which all points of an observation agree, so that what is said to differ holds for each of its cells."""
LOAD = ("concurrency", "request_rate")
"""Columns that tell a cell of a curve: the first that is not null."""
_READ = (
    *_SAME,
    "measured_at",
    "recorded_at",
    "image_ref",
    "image_digest",
    "engine_version",
    *LOAD,
    "record_hash",
    "reused",
    *METRICS,
    "health",
    "verdict",
)
COLUMNS = (*_READ, *(column.name for column in CONTEXT))
"""Columns of `points` that detection reads, in no particular order; the table has four times as many."""
OTHER_WORK = frozenset({FAILURES, LENGTHS})
"""Findings that spoil medians as well as means: what was done is not what was asked for."""
UNFIT = "unfit"
_RUNNER_NUMBER = r"_\d+$"
"""Number of the single runner at the end of a label: `mi355x-amd_0` and `mi355x-amd_1` are one kind of host."""


@dataclass(frozen=True)
class Cell:
    """One concurrency (or request rate) of an observation: its logarithms by metric, its health."""

    values: dict[str, float]
    health: tuple[str, ...]
    unfit: bool


@dataclass(frozen=True)
class Observation:
    """One curve measured once. `setup` is all that must be the same for two observations to be repeats.

    `hardware_label` is without the number of the single runner.
    """

    curve_id: str
    measured_at: datetime
    recorded_at: datetime
    """When we knew the whole of it."""
    run_source: str
    run_id: str
    run_attempt: int
    build_id: str
    image_ref: str | None
    image_digest: str | None
    engine_version: str | None
    recipe_fingerprint: str | None
    checkpoint: str | None
    hardware_label: str | None
    metric_definition: str
    context: dict[str, Any]
    cells: dict[float, Cell]

    @property
    def setup(self) -> tuple[str | None, ...]:
        return (self.build_id, self.recipe_fingerprint, self.checkpoint, self.hardware_label, self.metric_definition)

    @property
    def has_build(self) -> bool:
        """Say whether the record names its build at all."""
        return not self.build_id.startswith("unknown:")

    def repeats(self, other: Observation) -> bool:
        """Say whether both ran one recorded build and nothing else is known to differ (what one side lacks is not known)."""
        known = [(own, theirs) for own, theirs in zip(self.setup, other.setup, strict=True) if None not in (own, theirs)]
        return self.has_build and all(own == theirs for own, theirs in known)


def observe(points: pl.DataFrame, context: tuple[str, ...]) -> dict[str, list[Observation]]:
    """Return the observations of every curve in order of time; *context* names identity columns to carry along.

    Two records of one cell in one observation are joined by the median of their logarithms.
    """
    curves: dict[str, list[Observation]] = {}
    order = ("curve_id", "measured_at", *_SAME[1:], *LOAD, "record_hash")
    ordered = _spread(points.select(*_READ, *context)).sort(*order, nulls_last=True)
    for key, rows in groupby(ordered.iter_rows(named=True), key=lambda row: tuple(row[name] for name in _SAME)):
        curves.setdefault(str(key[0]), []).append(_observation(list(rows), context))
    return curves


def _spread(points: pl.DataFrame) -> pl.DataFrame:
    """Date every point of an observation by its first, so that one sweep of a curve stays one observation.

    A re-used record is left out: it was measured once, and a copy of itself would confirm it.
    """
    own = points.filter(~pl.col("reused").fill_null(False))
    labelled = own.with_columns(pl.col("hardware_label").str.replace(_RUNNER_NUMBER, ""))
    return labelled.with_columns(measured_at=pl.col("measured_at").min().over(_SAME))


def _observation(rows: list[dict[str, Any]], context: tuple[str, ...]) -> Observation:
    head = rows[0]
    cells = {load: _cell(list(same)) for load, same in groupby(rows, key=load_of)}
    return Observation(
        curve_id=head["curve_id"],
        measured_at=head["measured_at"],
        recorded_at=max(row["recorded_at"] for row in rows),
        run_source=head["run_source"],
        run_id=head["run_id"],
        run_attempt=head["run_attempt"],
        build_id=head["build_id"],
        image_ref=head["image_ref"],
        image_digest=head["image_digest"],
        engine_version=head["engine_version"],
        recipe_fingerprint=head["recipe_fingerprint"],
        checkpoint=head["checkpoint"],
        hardware_label=head["hardware_label"],
        metric_definition=head["metric_definition"],
        context={name: head[name] for name in context},
        cells=cells,
    )


def load_of(row: dict[str, Any]) -> float:
    """Return what tells a point of a curve from the others: its concurrency, else its request rate, else nothing."""
    loads = (row[name] for name in LOAD)
    return next((load for load in loads if load is not None), 0)


def _cell(rows: list[dict[str, Any]]) -> Cell:
    values = {metric: _logarithm([_value(row, metric) for row in rows], sign) for metric, sign in METRICS.items()}
    health = tuple(sorted({reason for row in rows for reason in row["health"]}))
    return Cell(values, health, any(row["verdict"] == UNFIT for row in rows))


def _value(row: dict[str, Any], metric: str) -> float | None:
    """Return a number that may be compared: none of a point whose very work was another, for then its medians are, too."""
    number: float | None = row[metric]
    return None if row["verdict"] == UNFIT and not OTHER_WORK.isdisjoint(row["health"]) else number


def _logarithm(values: list[float | None], sign: float) -> float:
    logarithms = [math.log(value) for value in values if value is not None and value > 0]
    return sign * median(logarithms) if logarithms else math.nan
