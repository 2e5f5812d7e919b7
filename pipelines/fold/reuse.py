"""Which of several equal records was measured: equal to the last digit means re-used in another run, or dated twice.

The run that may claim a record best: one that counts before one that was retracted, one with a record of its own before one that
the user declared, the first that started; of declared ones the last declaration, because it corrects the others.
"""

from __future__ import annotations

import polars as pl

_RECORD = ("record_format", "record_hash")
CLAIM = (*_RECORD, "retraction", "declared", "run_started_at", "sequence", "measured_at")
"""Columns of `points` that decide."""


def marked(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* (any frame with the CLAIM columns, all claims of each record) with `reused` and, by it, `measured_at`.

    A record that is re-used in a later run keeps its measured time: that of the run which may claim it.
    """
    rank = [
        pl.col("retraction").is_not_null(),
        pl.col("declared"),
        pl.when(pl.col("declared")).then(None).otherwise(pl.col("run_started_at")),
        pl.when(pl.col("declared")).then(-pl.col("sequence")).otherwise(pl.col("sequence")),
    ]
    placed = points.lazy().select(CLAIM).with_row_index("_place").sort(*_RECORD, *rank, nulls_last=True)
    first = pl.struct(_RECORD).is_first_distinct()
    told = (
        placed.select("_place", reused=~first, measured_at=pl.col("measured_at").first().over(_RECORD)).sort("_place").collect()
    )
    return points.with_columns(told["reused"], told["measured_at"])
