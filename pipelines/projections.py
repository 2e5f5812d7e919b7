"""Keeping the tables in step with the log: each group is rebuilt when the log holds newer events of its kind.

Facts and upstream tables follow by themselves; `noise`, `diffs`, `shifts` and `links` are what a detection run says, so they are
written by `detect` and `rebuild` only. Belongs here: which table follows from which events. Does not: the folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from changelog.linking import link
from changelog.tables import EVENT_OF_TABLE, read_tables
from pipelines import points, statements
from pipelines.announcing import Announce, silent
from pipelines.detect.night import detect
from warehouse.digest import content_hash
from warehouse.errors import StoreError
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.store import Store


@dataclass(frozen=True)
class Group:
    """Tables that follow from the same events, and their fold."""

    tables: tuple[str, ...]
    event_types: tuple[str, ...]
    fold: Callable[[EventLog], dict[str, pl.DataFrame]]


FACTS = Group(("runs", "points", "builds", "quarantine"), points.FACT_TYPES, points.project)
UPSTREAM = Group(tuple(table.name for table in EVENT_OF_TABLE.values()), tuple(EVENT_OF_TABLE), read_tables)
GROUPS = (FACTS, UPSTREAM)


def refresh(log: EventLog, *, force: bool = False) -> list[str]:
    """Bring the fact and upstream tables up to the log; return the names of those that were rebuilt."""
    newest = log.last_sequences()
    rebuilt: list[str] = []
    for group in GROUPS:
        wanted = _newest(newest, group)
        if force or any(_is_behind(log.store, name, wanted) for name in group.tables):
            frames = group.fold(log)
            for name in group.tables:
                log.store.overwrite(name, frames[name], wanted)
            rebuilt += group.tables
    return rebuilt


def _is_behind(store: Store, name: str, wanted: int) -> bool:
    """Say whether a table is missing or follows from an older log than *wanted*."""
    up_to = store.up_to(name)
    return up_to is None or up_to < wanted


def run_detection(log: EventLog, recorded_at: datetime, announce: Announce = silent) -> int:
    """Detect, link and state; write the detection tables and return how many statements are new."""
    announce("bringing tables up to the log")
    refresh(log)
    announce("comparing observations")
    new = write_shifts(log, recorded_at)
    announce("linking shifts to upstream changes")
    write_links(log)
    return new


def write_shifts(log: EventLog, recorded_at: datetime) -> int:
    """Detect from `points`, write `noise`, `diffs` and `shifts`, state what is news; return how many statements are new."""
    up_to = log.store.up_to("points") or 0  # before the reads: what lands meanwhile has not been seen
    frames = detected(log)
    new = log.append(statements.statements(frames["shifts"], log, recorded_at))
    for name, frame in frames.items():
        log.store.overwrite(name, frame, up_to)
    return sum(new.values())


def write_links(log: EventLog) -> None:
    """Link every shift of the table to the upstream changes that could have done it; write `links`."""
    up_to = max(log.store.up_to("shifts") or 0, log.store.up_to("commits") or 0)
    log.store.overwrite("links", linked(log), up_to)


def detected(log: EventLog) -> dict[str, pl.DataFrame]:
    """Return the frames of `noise`, `diffs` and `shifts` that follow from `points` and from what was stated before."""
    detection = detect(log.store.read("points"))
    shifts = statements.with_retracted(detection.shifts, log)
    return {"noise": detection.noise, "diffs": detection.diffs, "shifts": shifts}


def linked(log: EventLog) -> pl.DataFrame:
    """Return the frame of `links` that follows from `shifts` and the upstream tables."""
    return link(log.store.read("shifts"), upstream(log.store))


def upstream(store: Store) -> dict[str, pl.DataFrame]:
    """Return the upstream tables by name."""
    return {name: store.read(name) for name in UPSTREAM.tables}


def is_detection_current(log: EventLog) -> bool:
    """Say whether the last detection saw every result of the log, and the last linking every upstream fact."""
    newest = log.last_sequences()
    facts, every = _newest(newest, FACTS), max(_newest(newest, group) for group in GROUPS)
    behind = [_is_behind(log.store, name, facts) for name in ("noise", "diffs", "shifts")]
    return not any(behind) and not _is_behind(log.store, "links", every)


def _newest(newest: dict[str, int], group: Group) -> int:
    return max((newest.get(event_type, 0) for event_type in group.event_types), default=0)


def rebuild(log: EventLog, recorded_at: datetime, announce: Announce = silent) -> dict[str, tuple[str | None, str]]:
    """Build every projection again from the log alone; return each table's content hash before and after."""
    before = {name: _hash(log.store, name) for name in PROJECTIONS}
    announce("folding the log")
    refresh(log, force=True)
    run_detection(log, recorded_at, announce)
    return {name: (before[name], content_hash(log.store.read(name))) for name in PROJECTIONS}


def _hash(store: Store, name: str) -> str | None:
    """Return a table's content hash, or None where there is none or it cannot be read: a rebuild is what mends it."""
    try:
        return content_hash(store.read(name)) if store.exists(name) else None
    except StoreError:
        return None
