"""The run of a record that has its own clock and no run of its own: all that were measured on one UTC day are one run."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from functools import lru_cache

from pipelines.ingest.declarations import placed
from pipelines.ingest.reading import Given, Origin

LOCAL = "local"
"""Where the names of runs that nobody named are unique."""


def day_run(clock: datetime) -> Origin:
    """Return the run of the UTC day of *clock*: a sweep of many files is one run, and the next night's is another."""
    return _run_of(clock.astimezone(UTC).date())


@lru_cache(maxsize=1024)
def _run_of(day: date) -> Origin:
    return Origin(LOCAL, f"day-{day.isoformat()}", datetime.combine(day, time(), UTC), name="results of one UTC day")


def placed_or_none(naive: datetime | None, given: Given, field: str = "date") -> datetime | None:
    """Return a time without a zone as an instant where the user declared the zone, else None: the run's time counts then."""
    if naive is None or "timezone" not in given.declared:
        return None
    return placed(naive, given.declared, field)
