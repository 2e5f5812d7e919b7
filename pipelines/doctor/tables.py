"""Each table against the log: schema, mark, code, files, checkpoints; and the log against the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from changelog.tables import FOLDS, LINKED
from changelog.tables import SOURCES as UPSTREAM_CODE
from pipelines.doctor.finding import RESTORE, Finding, told
from pipelines.doctor.place import look_at_space
from pipelines.fold.code import DETECTION, FACTS
from pipelines.fold.table import EVENT_TYPES
from pipelines.following import FACTS as FACT_TABLES
from pipelines.projections import DETECTED, DETECTED_FROM
from warehouse.clock import iso
from warehouse.code import version
from warehouse.errors import SchemaError, ShiftlogError
from warehouse.layout import LARGE_FILE
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.store import Store
from warehouse.subjects import CODE as INDEX_CODE

MANY_FILES = 100
"""Small data files (less than half of what `shiftlog compact` makes) of one table beyond which every scan feels them."""
MANY_COMMITS = 200
"""Commits behind the last checkpoint beyond which something keeps it from being written: every tenth writes one."""
SKEW = timedelta(minutes=5)
"""How far a recorded time may lie ahead of the clock."""
BY_ITSELF = "nothing to do: the next `shiftlog ingest`, `detect` or `sql` does it"
DETECT = "run `shiftlog detect`"


def look_at_tables(store: Store, now: datetime) -> Iterator[Finding]:
    """Say how every table stands against the log, and the log against the clock, which says *now*."""
    there: dict[str, int] = {}
    for name in ("events", *PROJECTIONS):
        try:
            number = store.version(name)
        except ShiftlogError as error:
            yield Finding("error", str(error), _mend(store, name))
            if name == "events":
                return
            continue
        there |= {} if number is None else {name: number}
    if "events" in there:
        yield from _against_log(EventLog(store), there, now)
    else:
        yield _without_log(store, list(there))


def _mend(store: Store, name: str) -> str:
    if name == "events":
        return RESTORE if store.local else f"check address, network and credentials, else {RESTORE}"
    return f"delete {store.table_uri(name)} and run `shiftlog rebuild`"


def _against_log(log: EventLog, there: dict[str, int], now: datetime) -> Iterator[Finding]:
    store, sizes = log.store, {}
    last = log.last_sequence()
    for name, number in there.items():
        try:
            sizes[name] = store.file_sizes(name)
            yield from _table(log, name, last, number, sizes[name])
        except ShiftlogError as error:
            yield Finding("error", str(error), _mend(store, name))
    yield from _absent([name for name in PROJECTIONS if not store.exists(name)])
    if store.local:
        yield look_at_space(Path(store.uri), {name: sum(each) for name, each in sizes.items()})
    yield from _clock(log, last, now)


def _without_log(store: Store, present: list[str]) -> Finding:
    if present:
        return Finding("error", f"{store.uri} has the tables {', '.join(present)} and no log", RESTORE)
    return Finding("note", f"no warehouse at {store.uri} yet", "run `shiftlog ingest PATH`, or name one with --warehouse")


def _table(log: EventLog, name: str, last: int, number: int, sizes: list[int]) -> Iterator[Finding]:
    """Say what is amiss with one table that is there, else what it consists of."""
    found = [*_standing(log, name, last), *_files(name, sizes, _since_checkpoint(log.store, name, number))]
    yield from found
    if all(finding.level == "note" for finding in found):
        yield Finding(
            "ok", f"table {name}: {len(sizes)} file{'' if len(sizes) == 1 else 's'}, {told(sum(sizes))}, version {number}"
        )


def _standing(log: EventLog, name: str, last: int) -> Iterator[Finding]:
    """Compare the mark of a table with the log and with today's code."""
    mark = log.store.mark(name)
    if mark is None:
        yield _unmarked(log.store, name)
    elif name != "events":
        code, types, fix = _follows(name)
        if mark.up_to > last and mark.up_to > log.last_sequence():  # asked again: a writer may have gone on
            what = f"table {name} follows from event {mark.up_to} and the log ends at {last}: an older log was put in its place"
            yield Finding("error", what, f"{RESTORE}, or keep this log: run `shiftlog rebuild` before anything else")
        elif mark.code != code:
            yield Finding("note", f"table {name} was made by another version of the code and is made again, once", fix)
        elif mark.up_to < last and log.has(*types, after=mark.up_to):
            yield Finding("note", f"table {name} is behind the log: it knows {mark.up_to} of {last} events", fix)


def _unmarked(store: Store, name: str) -> Finding:
    try:
        store.scan(name)
    except SchemaError as error:
        if name == "events":
            return Finding("error", str(error), "use that version, or the one that follows it")
        return Finding("note", f"table {name} has the schema of another version and is made again, once", _follows(name)[2])
    if name == "events":
        return Finding("note", "the log is empty", "run `shiftlog ingest PATH`")
    return Finding("note", f"table {name} was never filled", _follows(name)[2])


def _follows(name: str) -> tuple[int, tuple[str, ...], str]:
    """Return what makes a table stale: its code, the event types it follows from (none: all); and what makes it fresh."""
    if name == "subjects":
        return INDEX_CODE, (), "nothing to do: the next `shiftlog ingest` does it"
    if name in FACT_TABLES:
        return version(FACTS), EVENT_TYPES, BY_ITSELF
    if name in DETECTED or name == "links":
        return version(DETECTION), DETECTED_FROM if name in DETECTED else (*EVENT_TYPES, *LINKED), DETECT
    return version(UPSTREAM_CODE), tuple(kind for kind, table in FOLDS if table.name == name), BY_ITSELF


def _files(name: str, sizes: list[int], commits: int | None) -> Iterator[Finding]:
    small = sum(2 * size < LARGE_FILE for size in sizes)
    if small > MANY_FILES:
        yield Finding("warning", f"table {name} has {small} small files of {len(sizes)}", "run `shiftlog compact`")
    if commits is not None and commits > MANY_COMMITS:
        what = f"table {name} has {commits} commits since its last checkpoint, all of which every command reads"
        yield Finding("warning", what, "run `shiftlog compact`")


def _since_checkpoint(store: Store, name: str, number: int) -> int | None:
    """Return how many commits stand behind the last checkpoint of a table on disk; None where that cannot be told."""
    if not store.local:
        return None
    try:
        last = json.loads(Path(store.table_uri(name), "_delta_log", "_last_checkpoint").read_bytes())["version"]
    except FileNotFoundError:
        return number + 1
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return number - last if isinstance(last, int) else None


def _absent(names: list[str]) -> Iterator[Finding]:
    for fix in dict.fromkeys(_follows(name)[2] for name in names):
        group = [name for name in names if _follows(name)[2] == fix]
        slow = "; until then an append looks through the whole log" if "subjects" in group else ""
        yield Finding("note", f"not there yet: {', '.join(group)}{slow}", fix)


def _clock(log: EventLog, last: int, now: datetime) -> Iterator[Finding]:
    """Look for events recorded after *now*; statistics of the files say where there can be any."""
    latest = pl.col("recorded_at").max()
    found = (
        latest.alias("at"),
        pl.col("sequence").filter(pl.col("recorded_at") == latest).max(),
        pl.col("sequence").max().alias("end"),
    )
    try:
        rows = log.store.collect("events", log.scan().filter(pl.col("recorded_at") > now + SKEW).select(found))
    except ShiftlogError as error:
        yield Finding("error", str(error), RESTORE)
        return
    at, sequence, end = rows.row(0)
    if at is None:
        return
    whose = "this machine's clock is slow, or the last writer's was fast" if end == last else ""
    whose = whose or f"the clock of the machine that recorded event {sequence} was fast, for later events are not ahead"
    what = f"event {sequence} was recorded at {iso(at)} and here it is {iso(now)}: {whose}"
    yield Finding("warning", what, "compare the clocks of all machines that ingest with a time server")
