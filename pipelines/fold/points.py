"""The rows of `points`: mapped records joined with what is known of their runs, judged for health.

Belongs here: the join. Does not: mapping (`records`), which of equal records counts (`reuse`), committing (`table`).
"""

from __future__ import annotations

import polars as pl

from pipelines.detect import health
from pipelines.fold import measurement
from pipelines.fold.runs import KEY, Runs
from warehouse.schemas import INT, POINTS, TEXT


def completed(recorded: pl.DataFrame, runs: Runs) -> pl.DataFrame:
    """Return rows of `points`, `reused` still null, for rows of RECORDED; *runs* knows their runs."""
    retracted = pl.DataFrame(list(runs.retracted.items()), schema={"point_id": TEXT, "point_retraction": TEXT}, orient="row")
    joined = recorded.join(runs.held().drop(KEY), on="subject", how="left", maintain_order="left").join(
        retracted, on="point_id", how="left", maintain_order="left"
    )
    started = pl.coalesce("run_started_at", "occurred_at")
    dated = joined.with_columns(
        measurement_key=measurement.key(joined),
        run_started_at=started,
        measured_at=pl.coalesce("clock", started),
        declared=pl.col("declared").fill_null(False),
        retraction=pl.coalesce("run_retraction", "point_retraction"),
        reused=pl.lit(None, dtype=pl.Boolean),
    )
    return health.judge(dated).select(POINTS.schema.names())


def counts(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return how many points of each run count: run_source, run_id, run_attempt, points."""
    live = points.filter(pl.col("retraction").is_null())
    return live.group_by(KEY).agg(points=pl.len().cast(INT))


def clustered(points: pl.DataFrame) -> pl.DataFrame:
    """Return the rows as they are stored: those of one cell together, so that a lookup by cell decodes little."""
    return points.sort("cell_id", "measured_at", "point_id")
