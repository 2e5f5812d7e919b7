"""The rows of `quarantine`: faults that still stand."""

from __future__ import annotations

from typing import Any

import polars as pl

from warehouse.events import RecordQuarantined
from warehouse.log import typed
from warehouse.schemas import QUARANTINE, TEXT

REFUSED = "recorded, but this version cannot read it: "
"""How the reason of a fault begins that is not of a place, but of a result in the log."""


def met(events: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `quarantine` for every event of *events*, rows of the log, that tells of a fault."""
    quarantined = events.filter(pl.col("event_type") == "RecordQuarantined")
    rows = [_row(row, payload) for row, payload in typed(quarantined) if isinstance(payload, RecordQuarantined)]
    return pl.DataFrame(rows, schema=QUARANTINE.schema)


def _row(event: dict[str, Any], fault: RecordQuarantined) -> dict[str, Any]:
    return {
        "event_id": event["event_id"],
        "name": fault.name,
        "sha256": fault.sha256,
        "position": fault.position,
        "reason": fault.reason,
        "excerpt": fault.excerpt,
        "recorded_at": event["recorded_at"],
    }


def refused(events: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `quarantine` for every result that was recorded and that today's readers do not take (rows of REFUSED)."""
    told = pl.format(REFUSED + "{}", "reason")
    joined = events.join(reasons, on="sequence", how="inner").sort("sequence")
    return joined.select(
        "event_id",
        name="source_name",
        sha256="source_sha256",
        position="source_position",
        reason=told,
        excerpt=pl.lit("", dtype=TEXT),
        recorded_at="recorded_at",
    ).select(QUARANTINE.schema.names())


def standing(faults: pl.DataFrame, read: pl.DataFrame, whole: pl.Series) -> pl.DataFrame:
    """Return the faults but those whose very place (sha256, position) was read after all, or whose file was read whole (hashes).

    A result that was recorded and refused stays one, whatever else was read from its place.
    """
    places = read.unique().with_columns(read=pl.lit(True))
    found = faults.join(places, on=["sha256", "position"], how="left", maintain_order="left")
    unread = pl.col("read").is_null() & ~pl.col("sha256").is_in(whole.unique().implode())
    return found.filter(unread | pl.col("reason").str.starts_with(REFUSED)).drop("read")
