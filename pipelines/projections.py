"""What a detection run says, as tables (DETECTED and `links`), written by `detect` and `rebuild` only.

Belongs here: the order of things. Does not: the rules, and the tables that follow the log by themselves (`pipelines.following`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from datetime import datetime

import polars as pl

from changelog.linking import link
from changelog.sightings import tag_log
from changelog.tables import LINKED
from pipelines import statements
from pipelines.announcing import Announce, silent
from pipelines.detect import evaluations, fitness, frontier
from pipelines.detect.scores import detect_scores, with_scores
from pipelines.detect.spans import detect_stored
from pipelines.fold.code import DETECTION
from pipelines.fold.reach import reach
from pipelines.fold.table import EVENT_TYPES
from pipelines.following import UPSTREAM, Workers, refresh
from pipelines.workers.registry import open_workers
from warehouse import subjects
from warehouse.code import version
from warehouse.digest import content_hash
from warehouse.errors import StoreError
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.store import Mark, Store, trusted

DETECTED = ("noise", "diffs", "shifts", "levels", "frontier_diffs", "fitness", "score_diffs")
DETECTED_FROM = (*EVENT_TYPES, "RecipeChanged", "ImageResolved")
"""Events that they follow from."""


def run_detection(log: EventLog, recorded_at: datetime, announce: Announce = silent, workers: Workers = "serial") -> int:
    """Detect, link and state; write the detection tables and return how many statements are new."""
    announce("bringing tables up to the log")
    refresh(log, workers=workers)
    announce("comparing observations")
    new = write_shifts(log, recorded_at, workers)
    announce("linking shifts to upstream changes")
    write_links(log)
    return new


def write_shifts(log: EventLog, recorded_at: datetime, workers: Workers = "serial") -> int:
    """Detect from `points` and `evals`, write DETECTED, state what is news; return how many statements are new."""
    mark = Mark(_seen(log), version(DETECTION))  # before the reads: what lands meanwhile has not been seen
    frames = detected(log, workers)
    new = log.append(statements.statements(frames["shifts"], log, recorded_at))
    for name, frame in frames.items():
        log.store.overwrite(name, frame, mark, log.last_sequence())
    return sum(new.values())


def write_links(log: EventLog) -> None:
    """Link every shift of the table to the upstream changes that could have done it; write `links`."""
    up_to = max(_up_to(log.store, name) for name in ("shifts", *UPSTREAM))
    log.store.overwrite("links", linked(log), Mark(up_to, version(DETECTION)), log.last_sequence())


def detected(log: EventLog, workers: Workers = "serial") -> dict[str, pl.DataFrame]:
    """Return the frames of DETECTED that follow from the fact tables and from what was stated before."""
    store = log.store
    with closing(open_workers(workers)) as hands:
        detection = detect_stored(store, hands)
    tags = tag_log(store.read("images"))
    scores = detect_scores(_live(store, "evals", evaluations.COLUMNS), tags)
    shifts = statements.with_retracted(with_scores(detection.shifts, scores), log)
    return {
        "noise": detection.noise,
        "diffs": detection.diffs,
        "shifts": shifts,
        "levels": detection.levels,
        "frontier_diffs": frontier.detect_frontiers(_live(store, "points", frontier.COLUMNS), tags),
        "fitness": fitness.judge_curves(_live(store, "points", fitness.COLUMNS)),
        "score_diffs": scores,
    }


def _live(store: Store, name: str, columns: Iterable[str]) -> pl.DataFrame:
    """Return columns of what was not retracted."""
    return store.collect(name, store.scan(name).filter(pl.col("retraction").is_null()).select(list(dict.fromkeys(columns))))


def linked(log: EventLog) -> pl.DataFrame:
    """Return the frame of `links` that follows from `shifts`, `diffs` and the upstream tables."""
    return link(log.store.read("shifts"), upstream(log.store), log.store.read("diffs"))


def upstream(store: Store) -> dict[str, pl.DataFrame]:
    """Return the upstream tables by name."""
    return {name: store.read(name) for name in UPSTREAM}


def is_detection_current(log: EventLog) -> bool:
    """Say whether the last detection, by this code, saw every result of the log, and the last linking every upstream fact."""
    types = dict.fromkeys(DETECTED, DETECTED_FROM) | {"links": (*EVENT_TYPES, *LINKED)}
    return not any(_is_behind(log, name, event_types) for name, event_types in types.items())


def _is_behind(log: EventLog, name: str, event_types: tuple[str, ...]) -> bool:
    mark = trusted(log.store.mark(name), version(DETECTION), log.last_sequence())
    return mark is None or log.has(*event_types, after=mark.up_to)


def _seen(log: EventLog) -> int:
    """Return up to where the fact tables, `recipes` and `images` have seen the log: where the one that is behind stands."""
    return reach(log, {"points": EVENT_TYPES, "recipes": ("RecipeChanged",), "images": ("ImageResolved",)})


def _up_to(store: Store, name: str) -> int:
    mark = store.mark(name)
    return mark.up_to if mark else 0


def rebuild(
    log: EventLog, recorded_at: datetime, announce: Announce = silent, workers: Workers = "serial"
) -> dict[str, tuple[str | None, str]]:
    """Build every projection again from the log alone; return each table's content hash before and after."""
    before = {name: _hash(log.store, name) for name in PROJECTIONS}
    announce("folding the log")
    log.extend_index(force=True)
    refresh(log, force=True, workers=workers)
    run_detection(log, recorded_at, announce, workers)
    return {name: (before[name], _content(log.store, name)) for name in PROJECTIONS}


def _hash(store: Store, name: str) -> str | None:
    """Return a table's content hash, or None where there is none or it cannot be read: a rebuild is what mends it."""
    try:
        return _content(store, name) if store.exists(name) else None
    except StoreError:
        return None


def _content(store: Store, name: str) -> str:
    """Return the content hash of a table; rows of the index of subjects add up, in however many steps they were written."""
    frame = store.read(name)
    return content_hash(subjects.joined(frame) if name == "subjects" else frame)
