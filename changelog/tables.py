"""The tables `commits`, `releases` and `dependencies`, folded from the event log.

Belongs here: events of upstream facts to frames of exact schema. Does not: reading sources, asking the frames anything.
"""

from __future__ import annotations

import polars as pl

from warehouse.log import EventLog
from warehouse.schemas import COMMITS, DEPENDENCIES, RELEASES, TABLES, Table

EVENT_OF_TABLE = {"CommitLanded": COMMITS, "ReleasePublished": RELEASES, "DependencyPinned": DEPENDENCIES}

_KEYS = {
    "commits": ["project", "commit"],
    "releases": ["project", "version", "evidence", "tag", "commit", "url"],
    "dependencies": ["project", "version", "dependency", "evidence"],
}
_TIMES = ("author_date", "committer_date", "published_at")


def read_tables(log: EventLog) -> dict[str, pl.DataFrame]:
    """Return the frames of `commits`, `releases`, `dependencies`; of two statements of one fact the later in the log counts."""
    events = log.read(*EVENT_OF_TABLE)
    return {table.name: _fold(events, event_type, table) for event_type, table in EVENT_OF_TABLE.items()}


def _fold(events: pl.DataFrame, event_type: str, table: Table) -> pl.DataFrame:
    wanted = events.filter(pl.col("event_type") == event_type).sort("sequence")
    if wanted.is_empty():
        return table.schema.to_frame()
    raw = pl.Struct({name: pl.String() if name in _TIMES else dtype for name, dtype in table.schema.items()})
    decoded = wanted.select(pl.col("payload").str.json_decode(raw).alias("payload")).unnest("payload")
    typed = decoded.with_columns(_instant(name) for name in _TIMES if name in table.schema)
    unique = typed.unique(_KEYS[table.name], keep="last", maintain_order=True)
    return unique.select(table.schema.names()).sort(TABLES[table.name].order, nulls_last=True, maintain_order=True)


def _instant(name: str) -> pl.Expr:
    """Payloads hold times as `warehouse.clock.iso` writes them: UTC with a Z, fractions only where there are any."""
    return pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC", strict=True)
