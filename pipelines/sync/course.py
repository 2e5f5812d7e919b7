"""What every sync does: facts of a source go into the log in batches; what could not be had is told and costs nothing else.

Belongs here: appending, counting, what went wrong in which part. Does not: any source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from changelog.facts import UpstreamFact, UpstreamFault
from changelog.image_facts import Unresolved
from changelog.web import WebError
from pipelines.announcing import Announce
from pipelines.ingest.files import fact_event, quarantine_event
from warehouse.errors import InputError, UpstreamError
from warehouse.events import Event, RecordQuarantined
from warehouse.log import EventLog

BATCH = 20_000
"""Facts per commit of the log."""


@dataclass(frozen=True)
class Request:
    """What a sync is asked for: which projects ("" stands for those that were measured), since when, and from where."""

    log: EventLog
    recorded_at: datetime
    mirrors: Path
    cache: Path
    announce: Announce
    projects: tuple[str, ...] = ()
    locations: dict[str, str] = field(default_factory=dict)
    """Repository by project, instead of the one that `projects.toml` names."""
    since: date | None = None


@dataclass
class Part:
    """What one part of a sync brought: new events by type, and what went wrong. `temporary`: trying again may help."""

    name: str
    new: Counter[str] = field(default_factory=Counter)
    read: int = 0
    quarantined: list[RecordQuarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trouble: str | None = None
    temporary: bool = False


def take(request: Request, name: str, reader: str, facts: Iterable[UpstreamFact | UpstreamFault | Unresolved]) -> Part:
    """Append what *facts* yields; what came before a source broke off stays, and the next sync goes on from there."""
    part, events = Part(name), []
    request.announce(name)
    try:
        for fact in facts:
            if isinstance(fact, Unresolved):
                part.notes.append(f"{fact.reference}: {fact.why}")
                continue
            events.append(_event(part, name, reader, fact, request.recorded_at))
            if len(events) >= BATCH:
                _append(request.log, part, events)
                events = []
    except (InputError, UpstreamError) as error:
        part.trouble, part.temporary = str(error), isinstance(error, WebError) and error.temporary
    _append(request.log, part, events)
    return part


def _event(part: Part, name: str, reader: str, fact: UpstreamFact | UpstreamFault, recorded_at: datetime) -> Event:
    part.read += 1
    event = fact_event(name, None, reader, fact, recorded_at)
    if isinstance(event, RecordQuarantined):
        part.quarantined.append(event)
        return quarantine_event(event, recorded_at)
    return event


def _append(log: EventLog, part: Part, events: list[Event]) -> None:
    if events:
        part.new.update({kind: count for kind, count in log.append(events).items() if count})
