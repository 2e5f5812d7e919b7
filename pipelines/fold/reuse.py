"""Which of several equal records was measured: equal to the last digit means re-used in another run, or dated twice.

The run that may claim a record best: one that counts before one that was retracted, one with a record of its own before one that
the user declared, the first that started; of declared ones the last declaration, because it corrects the others.
"""

from __future__ import annotations

import polars as pl

CLAIM = ("record_format", "record_hash", "retraction", "declared", "run_started_at", "sequence")
"""Columns of `points` that decide."""


def marked(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* (any frame with the CLAIM columns, all claims of each record) with `reused`."""
    rank = [
        pl.col("retraction").is_not_null(),
        pl.col("declared"),
        pl.when(pl.col("declared")).then(None).otherwise(pl.col("run_started_at")),
        pl.when(pl.col("declared")).then(-pl.col("sequence")).otherwise(pl.col("sequence")),
    ]
    placed = points.with_row_index("_place").sort("record_format", "record_hash", *rank, nulls_last=True)
    first = pl.struct("record_format", "record_hash").is_first_distinct()
    return placed.with_columns(reused=~first).sort("_place").drop("_place")
