"""What did we know on that day: a warehouse as it would stand, had nothing been recorded after an instant.

The log is the base's own, seen up to the instant; the tables are made from it, by today's code, in a folder that is thrown away.
Belongs here: the view of the past. Does not: any fold.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime

import polars as pl

from pipelines.announcing import Announce, silent
from pipelines.following import refresh
from pipelines.projections import detected, linked
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, StoreError
from warehouse.log import EventLog
from warehouse.schemas import EVENTS
from warehouse.store import Change, Mark, Store


class Past(Store):
    """A store whose log is that of *base*, without what was recorded after *instant*; its other tables are its own."""

    def __init__(self, base: Store, instant: datetime, folder: str) -> None:
        super().__init__(folder)
        self.base, self.instant = base, instant

    def exists(self, name: str) -> bool:
        return self.base.exists(name) if name == EVENTS.name else super().exists(name)

    def scan(self, name: str) -> pl.LazyFrame:
        return self._known(self.base.scan(name)) if name == EVENTS.name else super().scan(name)

    def scan_marked(self, name: str) -> tuple[pl.LazyFrame, Mark | None]:
        if name != EVENTS.name:
            return super().scan_marked(name)
        scan = self._known(self.base.scan_marked(name)[0])
        return scan, _last(self, scan)

    def mark(self, name: str) -> Mark | None:
        return self.scan_marked(name)[1] if name == EVENTS.name else super().mark(name)

    def commit(self, name: str, attempt: Callable[[pl.LazyFrame, Mark | None], Change | None]) -> Change | None:
        if name == EVENTS.name:
            raise StoreError("what was known in the past cannot be changed")
        return super().commit(name, attempt)

    def _known(self, events: pl.LazyFrame) -> pl.LazyFrame:
        return events.filter(pl.col("recorded_at") <= self.instant)


def _last(store: Store, scan: pl.LazyFrame) -> Mark | None:
    last = store.collect(EVENTS.name, scan.select(pl.col("sequence").max())).item()
    return None if last is None else Mark(last)


def instant_of(text: str) -> datetime:
    """Return the instant that `--as-of` names: a time, or the end of a day (UTC); raises InputError."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return parse_instant(text, "--as-of")
    return datetime(day.year, day.month, day.day, 23, 59, 59, 999_999, tzinfo=UTC)


@contextmanager
def known(log: EventLog, as_of: str | None, announce: Announce = silent, *, detection: bool = True) -> Iterator[EventLog]:
    """Give the log as it was known at *as_of* with all its tables; the log itself where that is None.

    With *detection* the tables of a detection run are made as well. Raises InputError where nothing was known yet.
    """
    if as_of is None:
        yield log
        return
    instant = instant_of(as_of)
    with tempfile.TemporaryDirectory(prefix="shiftlog-as-of-") as folder:
        past = EventLog(Past(log.store, instant, folder))
        if not past.last_sequence():
            raise InputError(f"--as-of {as_of[:40]}: nothing had been recorded by then; {_first(log)}")
        announce("folding what was known")
        past.extend_index()
        refresh(past)
        if detection:
            announce("detecting on what was known")
            _detect(past)
        yield past


def _first(log: EventLog) -> str:
    """Return in words when the first event was recorded."""
    first = log.store.collect("events", log.scan().select(pl.col("recorded_at").min())).item()
    return f"this warehouse's first event was recorded at {iso(first)}"


def _detect(past: EventLog) -> None:
    mark = Mark(past.last_sequence())
    for name, frame in detected(past).items():
        past.store.overwrite(name, frame, mark)
    past.store.overwrite("links", linked(past), mark)
