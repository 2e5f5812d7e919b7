"""Deciding that a run, or one result of it, does not count: a decision is an event, and its reason stays visible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from warehouse.errors import InputError
from warehouse.events import Event, ResultRetracted, RunKey, Source, event_of
from warehouse.log import EventLog

SHORTEST = 8
"""Characters of a point's id that must be given."""


def retract(log: EventLog, target: str, reason: str, recorded_at: datetime, *, reinstate: bool = False) -> list[RunKey]:
    """Record the decision about *target* and return the runs that it concerns.

    *target*: a run as `source/number/attempt` (all attempts without the last part; the number alone where one source has it), or
    the beginning of a point's id. Raises InputError where it names nothing, or several things.
    """
    if not reason.strip():
        raise InputError("--reason: say why; the decision stays visible with it")
    found = _runs(log, target) or _point(log, target)
    if not found:
        raise InputError(
            f"{target[:60]!r}: no such run or point; name a run as SOURCE/NUMBER/ATTEMPT (`shiftlog sql 'FROM runs'`) or a point "
            f"by {SHORTEST} or more characters of its point_id"
        )
    log.append(_events(log, found, reason, recorded_at, reinstate))
    return [run for run, _point in found]


def _events(
    log: EventLog, found: list[tuple[RunKey, str | None]], reason: str, recorded_at: datetime, reinstate: bool
) -> Iterator[Event]:
    for run, point in found:
        decisions = log.about({f"run:{run}"}, "ResultRetracted").height
        decision = ResultRetracted(run=run, point_id=point, reason=reason.strip(), reinstated=reinstate, revision=decisions + 1)
        yield event_of(decision, occurred_at=recorded_at, recorded_at=recorded_at, source=Source(name="retract"))


def _runs(log: EventLog, target: str) -> list[tuple[RunKey, str | None]]:
    name = pl.format("{}/{}", "run_source", "run_id")
    named = (name == target) | (pl.format("{}/{}", name, "run_attempt") == target) | (pl.col("run_id") == target)
    columns = ("run_source", "run_id", "run_attempt")
    rows = log.store.collect("runs", log.store.scan("runs").filter(named).select(columns).sort(columns)).rows()
    if len({source for source, _number, _attempt in rows}) > 1:
        raise InputError(f"{target[:60]!r}: runs of several sources have that number; name it as SOURCE/NUMBER/ATTEMPT")
    return [(RunKey(run_source=source, run_id=number, run_attempt=attempt), None) for source, number, attempt in rows]


def _point(log: EventLog, target: str) -> list[tuple[RunKey, str | None]]:
    if len(target) < SHORTEST:
        return []
    points = log.store.scan("points").filter(pl.col("point_id").str.starts_with(target.lower()))
    rows = log.store.collect("points", points.select("run_source", "run_id", "run_attempt", "point_id").head(2)).rows()
    if len(rows) > 1:
        raise InputError(f"{target[:60]!r}: several points begin so; give more characters")
    return [(RunKey(run_source=source, run_id=number, run_attempt=attempt), point) for source, number, attempt, point in rows]
