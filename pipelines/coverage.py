"""Which curves were compared with nothing, and why: so that few comparisons, or none, never stand without a reason."""

from __future__ import annotations

import polars as pl

from pipelines.detect.observations import COLUMNS, LOAD, SAME, UNFIT
from warehouse.store import Store

_READ = tuple(name for name in COLUMNS if name in {*SAME, *LOAD, "measured_at", "reused", "verdict"})
ONCE = "measured once"
DEFINITIONS = "measured under different metric definitions"
NOTHING_SHARED = "with no load that two runs share"
ALONE = "with a single load and no result that is compared"
ONE_SHARED = "with one load only that two runs share (nothing is judged on one)"
ALL_UNFIT = "with nothing but unfit points"
NO_NUMBERS = "with too few numbers that can be compared"
REASONS = (ONCE, DEFINITIONS, NOTHING_SHARED, ALONE, ONE_SHARED, ALL_UNFIT, NO_NUMBERS)
"""Why a curve is compared with nothing, in the order in which they are looked for."""


def uncompared(store: Store) -> tuple[dict[str, int], int]:
    """Return how many live curves have no comparison, by reason, in the order of REASONS; and how many curves there are."""
    live = store.scan("points").filter(pl.col("retraction").is_null() & ~pl.col("reused").fill_null(False))
    points = store.collect("points", live.select(_READ))
    compared = store.collect("diffs", store.scan("diffs").select("curve_id").unique())
    curves = points.select("curve_id").n_unique()
    counted = dict(_reasons(points.join(compared, on="curve_id", how="anti")).iter_rows())
    return {reason: counted[reason] for reason in REASONS if reason in counted}, curves


def _reasons(points: pl.DataFrame) -> pl.DataFrame:
    """Return reason and number of curves for *points* of curves that have no comparison."""
    observation = pl.struct(*SAME)
    load = pl.coalesce(*(pl.col(name).cast(pl.Float64) for name in LOAD)).fill_null(0.0)
    cells = points.with_columns(load=load, seen=observation)
    by_definition = (
        cells.group_by("curve_id", "metric_definition", "load")
        .agg(runs=pl.col("seen").n_unique())
        .group_by("curve_id", "metric_definition")
        .agg(shared=(pl.col("runs") > 1).sum())
        .group_by("curve_id")
        .agg(shared=pl.col("shared").max())
    )
    curves = cells.group_by("curve_id").agg(
        observations=pl.col("seen").n_unique(),
        loads=pl.col("load").n_unique(),
        most=pl.col("seen").unique().struct.field("metric_definition").value_counts().struct.field("count").max(),
        unfit=(pl.col("verdict") == UNFIT).all(),
    )
    return curves.join(by_definition, on="curve_id").group_by(_reason()).len()


def _reason() -> pl.Expr:
    """Return the first of REASONS that holds for a curve."""
    holds = (
        pl.col("observations") == 1,
        pl.col("most") == 1,
        pl.col("shared") == 0,
        pl.col("loads") == 1,
        pl.col("shared") == 1,
        pl.col("unfit"),
        pl.lit(True),
    )
    return pl.coalesce(*(pl.when(held).then(pl.lit(reason)) for held, reason in zip(holds, REASONS, strict=True))).alias("reason")
