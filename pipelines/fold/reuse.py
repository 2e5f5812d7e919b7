"""Which of several records of one measurement counts: equal to the last digit means re-used, told twice, or dated twice.

The record that may claim a measurement best: one that counts before one that was retracted, one whose run has a record of its own
before one that the user declared, the run that started first, the tool's own record before one that restates it, what needs least
declaring. Of declared ones the last declaration, because it corrects the others. One record of one run that was taken in more
than once, with other declarations or without any, is what was said of it last.
"""

from __future__ import annotations

import polars as pl

from pipelines.ingest.formats import FORMATS

_RECORD = ("measurement_key",)
ONE_RECORD = ("record_hash", "run_source", "run_id", "run_attempt")
"""Columns that are equal where one record of one run was taken in again."""
CLAIM = (
    *(*_RECORD, *ONE_RECORD),
    *("retraction", "declared", "run_started_at", "sequence", "measured_at", "record_format", "declared_fields"),
)
"""Columns of `points` that decide."""
RESTATING = tuple(own.name for own in FORMATS if own.restates)


def marked(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* (any frame with the CLAIM columns, all claims of each record) with `reused` and, by it, `measured_at`.

    A measurement that is re-used in a later run keeps its time: that of the run which may claim it.
    """
    corrects = pl.col("declared") | (pl.col("declared_fields").list.len() > 0)
    rank = [
        pl.col("retraction").is_not_null(),
        pl.col("_superseded"),
        pl.col("declared"),
        pl.when(pl.col("declared")).then(None).otherwise(pl.col("run_started_at")),
        pl.col("record_format").is_in(RESTATING),
        pl.when(corrects).then(-pl.col("sequence")).otherwise(pl.col("sequence")),
    ]
    placed = points.lazy().select(CLAIM).with_row_index("_place").with_columns(_superseded(points))
    ranked = placed.sort(*_RECORD, *rank, nulls_last=True)
    first = pl.struct(_RECORD).is_first_distinct()
    told = ranked.select("_place", reused=~first | pl.col("_superseded"), measured_at=pl.col("measured_at").first().over(_RECORD))
    return points.with_columns(told.sort("_place").collect()["reused", "measured_at"])


def _superseded(points: pl.DataFrame) -> pl.Series:
    """Say of every point whether its record was taken in again with something else declared; a retracted one supersedes none."""
    no = pl.Series("_superseded", [False], dtype=pl.Boolean).new_from_index(0, points.height)
    if not points["record_hash"].is_duplicated().any():  # as a rule
        return no
    counts = pl.col("retraction").is_null()
    newest = pl.col("sequence").filter(counts).max().over(ONE_RECORD)
    return points.select((counts & (pl.col("sequence") < newest)).fill_null(False).alias("_superseded")).to_series()
