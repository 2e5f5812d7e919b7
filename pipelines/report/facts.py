"""What the page says of the data behind it: span, counts, noise floors, builds, what could not be read.

Belongs here: choosing and ordering rows. Does not: shifts (`shifts`), markup (the templates).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from pipelines.report.words import Row
from warehouse.schemas import IDENTITY

MAX_CURVES = 400
"""Curves whose history is in the page besides those of shifts, the ones measured last; how many are left out is said."""
MAX_ROWS = 300
"""Rows of the noise and builds tables."""
MAX_QUARANTINE = 50
"""Quarantined inputs that are listed; all are counted."""


@dataclass(frozen=True)
class Summary:
    """Span and size of the data: times are UTC instants, None where there is no data."""

    first: datetime | None
    last: datetime | None
    recorded: datetime | None
    runs: int
    points: int
    curves: int
    builds: int
    comparisons: int
    quarantined: int


@dataclass(frozen=True)
class Listing:
    """The rows of one table that are shown, and how many there are."""

    rows: tuple[Row, ...]
    total: int

    @property
    def left_out(self) -> int:
        """Rows that are not shown."""
        return self.total - len(self.rows)


def summary(tables: dict[str, pl.DataFrame]) -> Summary:
    """Return span and size of *tables*; "data up to" is the latest instant in them, never the clock."""
    points = tables["points"]
    bounds: dict[str, Any] = points.select(
        first=pl.col("measured_at").min(), last=pl.col("measured_at").max(), recorded=pl.col("recorded_at").max()
    ).row(0, named=True)
    return Summary(
        **bounds,
        runs=tables["runs"].height,
        points=points.height,
        curves=points["curve_id"].n_unique(),
        builds=tables["builds"].height,
        comparisons=tables["diffs"].height,
        quarantined=tables["quarantine"].height,
    )


def curves(points: pl.DataFrame) -> pl.DataFrame:
    """Return one row a curve: its identity as last recorded, `points`, `observations`, `builds`, `last`; by stack, then model."""
    observation = pl.struct("measured_at", "run_source", "run_id", "run_attempt")
    identity = [column.name for column in IDENTITY]
    return (
        points.sort("measured_at", "point_id")
        .group_by("curve_id")
        .agg(
            pl.col(identity).last(),
            points=pl.len(),
            observations=observation.n_unique(),
            builds=pl.col("build_id").n_unique(),
            last=pl.col("measured_at").max(),
        )
        .sort("engine", "hardware", "model", "precision", "isl", "osl", "curve_id", nulls_last=True)
    )


def shown_curves(curves: pl.DataFrame, of_shifts: pl.Series) -> pl.DataFrame:
    """Return the curves whose history goes into the page: those of shifts, and MAX_CURVES others that were measured last."""
    needed = pl.col("curve_id").is_in(of_shifts.implode())
    recent = curves.filter(~needed).sort("last", "curve_id", descending=True, nulls_last=True).head(MAX_CURVES)
    return curves.filter(needed | pl.col("curve_id").is_in(recent["curve_id"].implode()))


def noise(table: pl.DataFrame) -> Listing:
    """Return the noise floors, widest level first."""
    level = pl.col("level").replace_strict({"global": 0, "engine": 1, "stack": 2}, default=3, return_dtype=pl.Int64)
    return _listing(table.sort(level, "engine", "hardware", "metric", "unit", nulls_last=True), MAX_ROWS)


def builds(table: pl.DataFrame) -> Listing:
    """Return the builds, by engine, the latest first."""
    return _listing(table.sort("engine", "build_order", "build_id", descending=[False, True, False], nulls_last=True), MAX_ROWS)


def quarantine(table: pl.DataFrame) -> Listing:
    """Return the inputs that could not be read, the latest first."""
    order = ("recorded_at", "name", "position", "event_id")
    return _listing(table.sort(*order, descending=[True, False, False, False], nulls_last=True), MAX_QUARANTINE)


def _listing(table: pl.DataFrame, limit: int) -> Listing:
    return Listing(tuple(table.head(limit).to_dicts()), table.height)
