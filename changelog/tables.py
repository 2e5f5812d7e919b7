"""The tables `commits`, `releases` and `dependencies`, folded from the event log.

Belongs here: events of upstream facts to frames of exact schema. Does not: reading sources, asking the frames anything.
"""

from __future__ import annotations

import polars as pl

from warehouse.code import version
from warehouse.log import FAR, EventLog
from warehouse.schemas import COMMITS, DEPENDENCIES, EVENTS, RELEASES, Table
from warehouse.store import Change, Mark, trusted

EVENT_OF_TABLE = {"CommitLanded": COMMITS, "ReleasePublished": RELEASES, "DependencyPinned": DEPENDENCIES}

SOURCES = ("changelog/tables.py", "warehouse/schemas.py", "warehouse/events.py")
"""What the tables follow from besides the log (`warehouse.code`)."""
_KEYS = {
    "commits": ["project", "commit"],
    "releases": ["project", "version", "evidence", "tag", "commit", "url"],
    "dependencies": ["project", "version", "dependency", "evidence"],
}
_TIMES = ("author_date", "committer_date", "published_at")


def bring_tables(log: EventLog, *, force: bool = False) -> list[str]:
    """Bring the three tables up to the log; return the names of those that were behind (all with *force*).

    New facts are added; where one restates a fact that is there, the table is written again.
    """
    return [table.name for event_type, table in EVENT_OF_TABLE.items() if _bring(log, event_type, table, force)]


def read_table(log: EventLog, name: str, up_to: int | None = None) -> pl.DataFrame:
    """Return the table called *name* as it follows from the log alone."""
    event_type = next(event_type for event_type, table in EVENT_OF_TABLE.items() if table.name == name)
    return fold(log.read(event_type, up_to=up_to), EVENT_OF_TABLE[event_type])


def _bring(log: EventLog, event_type: str, table: Table, force: bool) -> bool:
    code = version(SOURCES)

    def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
        last = log.last_sequence()  # read behind the mark: the table cannot be ahead of it but by a log that was cut off
        known = None if force else trusted(mark, code, last)
        whole, after = known is None, known.up_to if known else 0
        events = log.read(event_type, after=after, up_to=last) if last > after else EVENTS.schema.to_frame()
        if events.is_empty() and not whole and last - after < FAR:
            return None
        new, done = fold(events, table), Mark(last, code)
        if whole:
            return Change(new, done, "overwrite")
        keys = _KEYS[table.name]
        if scan.select(keys).join(new.lazy().select(keys), on=keys, how="semi", nulls_equal=True).collect().is_empty():
            return Change(new, done)
        return Change(_ordered(pl.concat([scan.collect(), new]), table), done, "overwrite")

    return log.store.commit(table.name, attempt) is not None


def fold(events: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the rows of *table* that *events*, of its type and in log order, give; of two about one thing the later counts."""
    if events.is_empty():
        return table.schema.to_frame()
    raw = pl.Struct(
        {name: pl.String() if name in _TIMES else dtype for name, dtype in table.schema.items() if name != "recorded_at"}
    )
    decoded = events.select("recorded_at", pl.col("payload").str.json_decode(raw).alias("payload")).unnest("payload")
    return _ordered(decoded.with_columns(_instant(name) for name in _TIMES if name in table.schema), table)


def _ordered(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    unique = rows.unique(_KEYS[table.name], keep="last", maintain_order=True)
    return unique.select(table.schema.names()).sort(table.order, nulls_last=True, maintain_order=True)


def _instant(name: str) -> pl.Expr:
    """Payloads hold times as `warehouse.clock.iso` writes them: UTC with a Z, fractions only where there are any."""
    return pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC", strict=True)
