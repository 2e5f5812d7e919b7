"""What several shifts share, so that one cause is one notice: the key that tells them apart, and the time of quiet after one.

Mozilla's and Skia's lists are long because every curve and every day alerts anew; vLLM's dashboard has one endless issue because
nothing does. A shift whose like was told less than fourteen days ago updates that notice instead of making another.
"""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from warehouse.canonical import content_id
from warehouse.schemas import SHIFTS

COOL_DOWN = timedelta(days=14)
_KEY = ("engine", "hardware", "model", "family", "from_build_id", "to_build_id")
_THROUGHPUT = "tput"


def with_notices(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return *shifts* with `dedupe_key` and `echo_of`: the first shift of the same key and direction that it repeats, if any."""
    if shifts.is_empty():
        return shifts
    family = pl.when(pl.col("metric").str.contains(_THROUGHPUT)).then(pl.lit("throughput")).otherwise(pl.lit("latency"))
    keys = shifts.with_columns(family=family).select(_KEY).iter_rows()
    keyed = shifts.with_columns(dedupe_key=pl.Series([content_id("notice", *key) for key in keys], dtype=pl.String))
    return keyed.with_columns(echo_of=pl.Series(_echoes(keyed), dtype=pl.String)).select(SHIFTS.schema.names())


def _echoes(shifts: pl.DataFrame) -> list[str | None]:
    """Return for each shift the one whose notice it belongs to: told of the same key less than the cool-down before."""
    rows = shifts.select("shift_id", "dedupe_key", "direction", "to_measured_at").with_row_index("place")
    found: dict[int, str | None] = {}
    told: dict[tuple[str, str], tuple[str, object]] = {}
    for place, shift, key, direction, at in rows.sort("to_measured_at", "shift_id").iter_rows():
        head = told.get((key, direction))
        echo = head is not None and at - head[1] < COOL_DOWN
        found[place] = head[0] if head is not None and echo else None
        told[key, direction] = (head[0] if head is not None and echo else shift, at)
    return [found[place] for place in range(shifts.height)]
