"""Is the warehouse what it says it is: every hash, the order, nothing twice or cut off, and tables that follow from the log.

Everything is looked at as of one version of the log, so that a writer at work is no finding.
Belongs here: what is looked for, and what to do about it. Does not: the folds.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from changelog.tables import FOLDS, LINKED, SOURCES, read_table
from pipelines.announcing import Announce, silent
from pipelines.fold.code import DETECTION
from pipelines.fold.code import FACTS as FACTS_CODE
from pipelines.fold.small import BUILDS_FROM, whole_tables
from pipelines.fold.table import EVENT_TYPES
from pipelines.following import FACTS, UPSTREAM
from pipelines.projections import DETECTED, DETECTED_FROM, detected, is_detection_current, linked
from warehouse import subjects
from warehouse.code import version
from warehouse.errors import StoreError
from warehouse.events import PAYLOADS, event_id
from warehouse.log import EventLog
from warehouse.schemas import TABLES
from warehouse.store import Mark

SHOWN = 20
PART = 50_000
"""Events whose hashes are recomputed together."""
RESTORE = "restore the events table from a backup (docs/upkeep.md)"
REBUILD = "run `shiftlog rebuild`"


def verify(log: EventLog, announce: Announce = silent) -> list[str]:
    """Return what is wrong, one line each with what to do; empty where all is sound.

    Tables of an unsound log are not looked at; one that is behind the log, or was made by other code, is no finding, because the
    next command brings it up.
    """
    try:
        mark = log.store.mark("events")
    except StoreError as error:
        return [f"{error}; {RESTORE}"]
    if mark is None:
        return [f"the log cannot be opened with the schema of this version; {RESTORE}"]
    return list(_log(log, mark, announce)) or list(_tables(log, mark, announce))


def _log(log: EventLog, mark: Mark, announce: Announce) -> Iterator[str]:
    heights = log.scan().select(
        rows=pl.len(),
        first=pl.col("sequence").min(),
        final=pl.col("sequence").max(),
        sequences=pl.col("sequence").n_unique(),
        ids=pl.col("event_id").n_unique(),
        beyond=(pl.col("sequence") > mark.up_to).sum(),
    )
    try:
        found = log.store.collect("events", heights).row(0, named=True)
    except StoreError as error:
        yield f"{error}; {RESTORE}"
        return
    rows = found["rows"] - found["beyond"]
    if doubles := found["rows"] - found["ids"]:
        yield f"{doubles:,} events stand twice in the log: something else than shiftlog wrote to it; {RESTORE}"
    if found["sequences"] != found["rows"] or (rows and (found["first"], rows) != (1, mark.up_to)):
        yield f"the log's sequence has gaps or repeats ({rows:,} events up to sequence {mark.up_to:,}); {RESTORE}"
    if found["beyond"] and log.last_sequence() == mark.up_to:
        yield f"{found['beyond']:,} events stand beyond the end of the log: something else than shiftlog wrote to it; {RESTORE}"
    forged = 0
    parts: list[tuple[int, int | None]] = [(after, min(after + PART, mark.up_to)) for after in range(0, mark.up_to, PART)]
    for after, up_to in [*parts, (mark.up_to, None)]:  # the last part holds what a writer just added, or what nobody may have
        announce(f"hashes up to event {up_to or mark.up_to:,} of {mark.up_to:,}")
        for finding in _forged(log, after, up_to):
            forged += 1
            if forged <= SHOWN:
                yield finding
    if forged > SHOWN:
        yield f"… and {forged - SHOWN:,} more events like it"
    yield from _shorter(log, mark)


def _forged(log: EventLog, after: int, up_to: int | None) -> Iterator[str]:
    """Yield the events whose content and id differ, or that this version cannot know."""
    span = log.scan(after=after, up_to=up_to).select("sequence", "event_id", "event_type", "subject", "schema_version", "payload")
    for sequence, stored, event_type, subject, shape, payload in log.store.collect("events", span.sort("sequence")).iter_rows():
        if event_id(event_type, subject, payload) != stored:
            yield f"event {sequence} ({event_type}): its content and its id differ; {RESTORE}"
        elif event_type not in PAYLOADS or shape > PAYLOADS[event_type].schema_version:
            yield f"event {sequence} ({event_type}, version {shape}): this shiftlog does not know it; upgrade shiftlog"


def _shorter(log: EventLog, mark: Mark) -> Iterator[str]:
    """Yield the tables that have seen more of a log than there is."""
    for name in (*FACTS, *UPSTREAM, *DETECTED, "links", "subjects"):
        try:
            seen = log.store.mark(name)
        except StoreError as error:
            yield f"{error}; delete the folder of that table and {REBUILD}"
            continue
        if seen is not None and seen.up_to > log.last_sequence():
            yield (
                f"table {name} has seen {seen.up_to:,} events and the log has {mark.up_to:,}: the log was cut off or is an older "
                f"copy; {RESTORE}, or {REBUILD} to go on with what is left"
            )


def _tables(log: EventLog, mark: Mark, announce: Announce) -> Iterator[str]:
    announce("folding the log again")
    upstream = {table.name: read_table(log, table.name, mark.up_to) for _event_type, table in FOLDS}
    for name, frame in whole_tables(log, mark.up_to, upstream.__getitem__).items():
        told = BUILDS_FROM if name == "builds" else EVENT_TYPES
        yield from _table(log, name, frame, mark, version(FACTS_CODE), *told)
    for event_type, table in FOLDS:
        yield from _table(log, table.name, upstream[table.name], mark, version(SOURCES), event_type)
    yield from _index(log, mark)
    if is_detection_current(log):
        announce("detecting again")
        frames = {**detected(log), "links": linked(log)}
        for name, frame in frames.items():
            yield from _table(log, name, frame, mark, version(DETECTION), *DETECTED_FROM, *LINKED)


def _table(log: EventLog, name: str, expected: pl.DataFrame, mark: Mark, code: int, *event_types: str) -> Iterator[str]:
    """Yield what is wrong with one table: absent, unreadable, or other rows than *expected* where it stands there."""
    if not log.store.exists(name):
        yield f"table {name} is missing; {REBUILD}"
        return
    try:
        before, stored, after = log.store.mark(name), log.store.read(name), log.store.mark(name)
    except StoreError as error:
        yield f"{error}; {REBUILD}"
        return
    if before is None or before != after or before.code != code:
        return
    first, last = sorted((before.up_to, mark.up_to))
    if log.has(*event_types, after=first, up_to=last):  # it stands elsewhere than where we looked
        return
    if not stored.equals(expected.sort(TABLES[name].order, maintain_order=True)):
        yield f"table {name} does not follow from the log; {REBUILD}"


def _index(log: EventLog, mark: Mark) -> Iterator[str]:
    """Yield whether the index of subjects misses something: then a fact may be appended twice."""
    expected = subjects.read(log.store, log.store.scan("events"), 0, mark.up_to)
    try:
        scan, seen = log.store.scan_marked("subjects")
        stored = log.store.collect("subjects", scan)
    except StoreError as error:
        yield f"{error}; {REBUILD}"
        return
    if seen is not None and seen.up_to == mark.up_to and not subjects.joined(stored).equals(expected):
        yield f"table subjects does not follow from the log; {REBUILD}"
