"""The append-only event log over the store: total order, one row a fact, any number of writers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import polars as pl
from pydantic import ValidationError

from warehouse.errors import StoreError
from warehouse.events import Event, Payload, payload_of
from warehouse.schemas import EVENTS
from warehouse.store import Store

BATCH = 50_000
"""Events per commit: one commit a batch, not a file (docs/architecture.md, storage)."""


class EventLog:
    """Reads and appends events; `sequence` is their total order."""

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
            new.update(self._append_batch(batch))
        return new

    def read(self, *event_types: str, after: int = 0) -> pl.DataFrame:
        """Return events in log order: only *event_types* where any are given, only those behind sequence *after*."""
        frame = self.store.scan("events").filter(pl.col("sequence") > after)
        if event_types:
            frame = frame.filter(pl.col("event_type").is_in(event_types))
        return self.store.collect("events", frame.sort("sequence"))

    def last_sequences(self) -> dict[str, int]:
        """Return the sequence of the newest event of every type that the log has."""
        newest = self.store.scan("events").group_by("event_type").agg(pl.col("sequence").max())
        frame = self.store.collect("events", newest)
        return dict(frame.iter_rows())

    def payloads(self, event_type: str) -> Iterator[tuple[dict[str, object], Payload]]:
        """Yield (row, typed payload) of every event of one type, in log order; raises StoreError for one that cannot be one."""
        for row in self.read(event_type).iter_rows(named=True):
            try:
                yield row, payload_of(event_type, row["payload"])
            except ValidationError:
                raise StoreError(f"event {row['sequence']} is no {event_type}; run `shiftlog verify`") from None

    def _append_batch(self, batch: list[Event]) -> Counter[str]:
        incoming = _frame(batch).unique("event_id", keep="first", maintain_order=True)

        def unseen() -> pl.DataFrame:
            scan = self.store.scan("events")
            last = self.store.collect("events", scan.select(pl.col("sequence").max())).item() or 0
            known = self.store.collect("events", scan.select("event_id"))
            fresh = incoming.join(known, on="event_id", how="anti", maintain_order="left")
            return fresh.with_columns(sequence=pl.int_range(last + 1, last + 1 + fresh.height, dtype=pl.Int64))

        return Counter(self.store.append_fenced("events", unseen)["event_type"].to_list())


def _frame(events: list[Event]) -> pl.DataFrame:
    rows = [
        (
            0,
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
    return pl.DataFrame(rows, schema=EVENTS.schema, orient="row")
