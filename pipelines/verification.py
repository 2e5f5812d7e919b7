"""Is the warehouse what it says it is: hashes, order, duplicates, and tables that follow from the log."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipelines.projections import GROUPS, detected, is_detection_current, linked
from warehouse.errors import StoreError
from warehouse.events import event_id
from warehouse.log import EventLog
from warehouse.schemas import TABLES

SHOWN = 20
RESTORE = "restore the events table from a backup"
REBUILD = "run `shiftlog rebuild`"


def verify(log: EventLog) -> list[str]:
    """Return what is wrong, one line each with what to do; empty where all is sound.

    Tables of an unsound log are not looked at.
    """
    return list(_log(log)) or list(_tables(log))


def _log(log: EventLog) -> Iterator[str]:
    events = log.read()
    forged = events.filter(
        pl.struct("event_type", "subject", "payload", "event_id").map_elements(
            lambda row: event_id(row["event_type"], row["subject"], row["payload"]) != row["event_id"], return_dtype=pl.Boolean
        )
    )
    for row in forged.head(SHOWN).iter_rows(named=True):
        yield f"event {row['sequence']} ({row['event_type']}): its content and its id differ; {RESTORE}"
    if forged.height > SHOWN:
        yield f"… and {forged.height - SHOWN} more events like it"
    if doubles := events.height - events["event_id"].n_unique():
        yield f"{doubles} events stand twice in the log: something else than shiftlog wrote to it; {RESTORE}"
    if events["sequence"].to_list() != list(range(1, events.height + 1)):
        yield f"the log's sequence has gaps or repeats; {RESTORE}"


def _tables(log: EventLog) -> Iterator[str]:
    for group in GROUPS:
        frames = group.fold(log)
        yield from (finding for name in group.tables for finding in _table(log, name, frames[name]))
    if is_detection_current(log):
        frames = {**detected(log), "links": linked(log)}
        yield from (finding for name, frame in frames.items() for finding in _table(log, name, frame))


def _table(log: EventLog, name: str, expected: pl.DataFrame) -> Iterator[str]:
    """Yield what is wrong with one table: absent, unreadable, or other rows than *expected*."""
    if not log.store.exists(name):
        yield f"table {name} is missing; {REBUILD}"
        return
    try:
        stored = log.store.read(name)
    except StoreError as error:
        yield str(error)
        return
    if not stored.equals(expected.sort(TABLES[name].order, maintain_order=True)):
        yield f"table {name} does not follow from the log; {REBUILD}"
