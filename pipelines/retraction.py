"""Deciding that a run, or one result of it, does not count: a decision is an event, and its reason stays visible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from pipelines.fold.runs import KEY
from warehouse.errors import InputError
from warehouse.events import Event, ResultRetracted, RunKey, Source, event_of
from warehouse.log import EventLog, typed

SHORTEST = 8
"""Characters of a point's id that must be given."""


def retract(log: EventLog, target: str, reason: str, recorded_at: datetime, *, reinstate: bool = False) -> list[str]:
    """Record the decision about *target* and return what it concerns, in words; nothing where it stands so already.

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
    news = [(run, point) for run, point in found if not _stands(log, run, point, None if reinstate else reason.strip())]
    log.append(_events(log, news, reason, recorded_at, reinstate))
    return [f"point {point} of run {run}" if point else f"run {run}" for run, point in news]


def _stands(log: EventLog, run: RunKey, point: str | None, reason: str | None) -> bool:
    """Say whether it has been decided so already: that it does not count, for this reason, or (None) that it does."""
    held = None
    for _row, decision in typed(log.about({run.subject}, "ResultRetracted")):
        if isinstance(decision, ResultRetracted) and decision.point_id == point:
            held = None if decision.reinstated else decision.reason
    return held == reason


def _events(
    log: EventLog, found: list[tuple[RunKey, str | None]], reason: str, recorded_at: datetime, reinstate: bool
) -> Iterator[Event]:
    for run, point in found:
        decisions = log.about({run.subject}, "ResultRetracted").height
        decision = ResultRetracted(run=run, point_id=point, reason=reason.strip(), reinstated=reinstate, revision=decisions + 1)
        yield event_of(decision, occurred_at=recorded_at, recorded_at=recorded_at, source=Source(name="retract"))


def _runs(log: EventLog, target: str) -> list[tuple[RunKey, str | None]]:
    name = pl.format("{}/{}", "run_source", "run_id")
    readings = (pl.format("{}/{}", name, "run_attempt") == target, name == target, pl.col("run_id") == target)
    found = [log.store.collect("runs", log.store.scan("runs").filter(named).select(KEY).sort(KEY)) for named in readings]
    rows = pl.concat(found).unique(maintain_order=True).rows()
    if len({(source, number) for source, number, _attempt in rows}) > 1:
        raise InputError(
            f"{target[:60]!r}: several runs can be meant; name one as SOURCE/NUMBER/ATTEMPT, or its points by point_id"
        )
    return [(RunKey(run_source=source, run_id=number, run_attempt=attempt), None) for source, number, attempt in rows]


def _point(log: EventLog, target: str) -> list[tuple[RunKey, str | None]]:
    if len(target) < SHORTEST:
        return []
    points = log.store.scan("points").filter(pl.col("point_id").str.starts_with(target.lower()))
    rows = log.store.collect("points", points.select(*KEY, "point_id").head(2)).rows()
    if len(rows) > 1:
        raise InputError(f"{target[:60]!r}: several points begin so; give more characters")
    return [(RunKey(run_source=source, run_id=number, run_attempt=attempt), point) for source, number, attempt, point in rows]
