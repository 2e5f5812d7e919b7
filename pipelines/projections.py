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
from changelog.tables import read_tables
from pipelines import points, statements
from pipelines.detect.night import detect
from warehouse.digest import content_hash
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.store import Store

UPSTREAM_TYPES = ("CommitLanded", "ReleasePublished", "DependencyPinned")
DETECTION = ("noise", "diffs", "shifts", "links")


Announce = Callable[[str], None]


def silent(_step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Group:
    """Tables that follow from the same events, and their fold."""

    tables: tuple[str, ...]
    event_types: tuple[str, ...]
    fold: Callable[[EventLog], dict[str, pl.DataFrame]]


GROUPS = (
    Group(("runs", "points", "builds", "quarantine"), points.FACT_TYPES, points.project),
    Group(("commits", "releases", "dependencies"), UPSTREAM_TYPES, read_tables),
)


def refresh(log: EventLog, *, force: bool = False) -> list[str]:
    """Bring the fact and upstream tables up to the log; return the names of those that were rebuilt."""
    newest = log.last_sequences()
    rebuilt: list[str] = []
    for group in GROUPS:
        wanted = max((newest.get(event_type, 0) for event_type in group.event_types), default=0)
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
    detection = detect(log.store.read("points"))
    shifts = statements.with_retracted(detection.shifts, log)
    new = log.append(statements.statements(shifts, log, recorded_at))
    up_to = _facts_up_to(log)
    for name, frame in (("noise", detection.noise), ("diffs", detection.diffs), ("shifts", shifts)):
        log.store.overwrite(name, frame, up_to)
    return sum(new.values())


def write_links(log: EventLog) -> None:
    """Link every shift of the table to the upstream changes that could have done it; write `links`."""
    store = log.store
    upstream = {name: store.read(name) for name in ("commits", "releases", "dependencies")}
    store.overwrite("links", link(store.read("shifts"), upstream), _facts_up_to(log))


def is_detection_current(log: EventLog) -> bool:
    """Say whether the last detection saw every result and every upstream fact of the log."""
    wanted = _facts_up_to(log)
    return not any(_is_behind(log.store, name, wanted) for name in DETECTION)


def _facts_up_to(log: EventLog) -> int:
    newest = log.last_sequences()
    return max((newest.get(kind, 0) for group in GROUPS for kind in group.event_types), default=0)


def rebuild(log: EventLog, recorded_at: datetime) -> dict[str, tuple[str | None, str]]:
    """Build every projection again from the log alone; return each table's content hash before and after."""
    before = {name: content_hash(log.store.read(name)) if log.store.exists(name) else None for name in PROJECTIONS}
    refresh(log, force=True)
    run_detection(log, recorded_at)
    return {name: (before[name], content_hash(log.store.read(name))) for name in PROJECTIONS}
