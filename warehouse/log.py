"""The append-only event log over the store: total order, one row a fact, any number of writers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

import polars as pl
from pydantic import ValidationError

from warehouse import subjects
from warehouse.errors import StoreError
from warehouse.events import Event, Payload, payload_of
from warehouse.schemas import EVENTS
from warehouse.store import Change, Mark, Store

BATCH = 50_000
"""Events per commit: one commit a batch, not a file (docs/architecture.md, storage)."""
FAR = 100_000
"""Sequences of other events after which a table that has nothing to add says that it has seen them."""
ROWS = pl.Schema(list(EVENTS.schema.items())[1:])
"""A row of the log before it has its sequence."""


class EventLog:
    """Reads and appends events; `sequence` is their total order, from 1, without gaps."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def append(self, events: Iterable[Event]) -> Counter[str]:
        """Append the events whose ids are not in the log yet, in the order given; return how many were new, by type.

        *events* is read in batches of BATCH, each one commit, so that a long stream does not sit in memory; after a crash
        the same input appends what is missing.
        """
        new: Counter[str] = Counter()
        stream = iter(events)
        while batch := list(islice(stream, BATCH)):
            new.update(self.append_frame(frame_of(batch))["event_type"].to_list())
        return new

    def append_frame(self, events: pl.DataFrame) -> pl.DataFrame:
        """Append, in one commit, the rows of *events* (the table's columns but `sequence`) that the log does not hold.

        Returns them with their sequences.
        """
        incoming = events.unique("event_id", keep="first", maintain_order=True)

        def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
            last = mark.up_to if mark else 0
            subjects.check_not_ahead(self.store, last, self.last_sequence)
            known = subjects.known_events(self.store, scan, incoming["subject"], last, "event_id")
            fresh = incoming.join(known, on="event_id", how="anti", maintain_order="left")
            if fresh.is_empty():
                return None
            numbers = pl.int_range(last + 1, last + 1 + fresh.height, dtype=pl.Int64, eager=True).alias("sequence")
            frame = fresh.select(numbers, *EVENTS.schema.names()[1:])
            return Change(frame, Mark(last + fresh.height))

        change = self.store.commit("events", attempt)
        if change is None:
            return EVENTS.schema.to_frame()
        self.extend_index()
        return change.frame

    def extend_index(self, *, force: bool = False) -> None:
        """Bring the index of subjects up to the log; make it anew with *force*."""
        scan, mark = self.store.scan_marked("events")
        if mark is not None:
            subjects.extend(self.store, scan, mark.up_to, force=force)

    def last_sequence(self) -> int:
        """Return the sequence of the newest event; 0 where there is none."""
        mark = self.store.mark("events")
        return mark.up_to if mark else 0

    def scan(self, *event_types: str, after: int = 0, up_to: int | None = None) -> pl.LazyFrame:
        """Return events, in no order: only *event_types* where any are given, only sequences in (*after*, *up_to*]."""
        frame = self.store.scan("events").filter(pl.col("sequence") > after)
        if up_to is not None:
            frame = frame.filter(pl.col("sequence") <= up_to)
        return frame.filter(pl.col("event_type").is_in(event_types)) if event_types else frame

    def read(self, *event_types: str, after: int = 0, up_to: int | None = None) -> pl.DataFrame:
        """Return events in log order: only *event_types* where any are given, only sequences in (*after*, *up_to*]."""
        return self.store.collect("events", self.scan(*event_types, after=after, up_to=up_to).sort("sequence"))

    def has(self, *event_types: str, after: int = 0, up_to: int | None = None) -> bool:
        """Say whether there is an event: of *event_types* where any are given, with a sequence in (*after*, *up_to*]."""
        found = self.scan(*event_types, after=after, up_to=up_to).select("sequence").head(1)
        return not self.store.collect("events", found).is_empty()

    def about(self, wanted: Collection[str], *event_types: str, up_to: int | None = None) -> pl.DataFrame:
        """Return the events about the subjects in *wanted*, in log order: only *event_types* where any are given."""
        scan, mark = self.store.scan_marked("events")
        if event_types:
            scan = scan.filter(pl.col("event_type").is_in(event_types))
        if up_to is not None:
            scan = scan.filter(pl.col("sequence") <= up_to)
        about = pl.Series("subject", sorted(wanted), dtype=pl.String)
        found = subjects.known_events(self.store, scan, about, mark.up_to if mark else 0, *EVENTS.schema.names())
        return found.sort("sequence")

    def standing(self, wanted: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return between which sequences the events about each subject in *wanted* stand; none where there is no such event."""
        about = pl.Series("subject", sorted(wanted), dtype=pl.String)
        last = self.last_sequence()
        known = subjects.standing(self.store, about, last)
        rows = known.rows
        if known.up_to < last:
            tail = subjects.read(self.store, self.store.scan("events"), known.up_to, last)
            rows = subjects.joined(pl.concat([rows, tail.filter(pl.col("subject").is_in(about.implode()))]))
        return {subject: (first, final) for subject, first, final in rows.iter_rows()}

    def payloads(self, event_type: str, after: int = 0, up_to: int | None = None) -> Iterator[tuple[dict[str, object], Payload]]:
        """Yield (row, typed payload) of every event of one type, in log order; raises StoreError for one that cannot be one."""
        yield from typed(self.read(event_type, after=after, up_to=up_to))


def typed(events: pl.DataFrame) -> Iterator[tuple[dict[str, object], Payload]]:
    """Yield (row, typed payload) of *events*, rows of the log; raises StoreError for one that cannot be one."""
    for row in events.iter_rows(named=True):
        try:
            yield row, payload_of(row["event_type"], row["payload"], row["schema_version"])
        except ValidationError:
            raise StoreError(f"event {row['sequence']} is no {row['event_type']}; run `shiftlog verify`") from None


def frame_of(events: list[Event]) -> pl.DataFrame:
    """Return *events* as rows of the log, without `sequence`."""
    rows = [
        (
            e.event_id,
            e.event_type,
            e.subject,
            e.occurred_at,
            e.published_at,
            e.recorded_at,
            e.source.name,
            e.source.sha256,
            e.source.position,
            e.source.reader,
            e.schema_version,
            e.payload,
        )
        for e in events
    ]
    return pl.DataFrame(rows, schema=ROWS, orient="row")
