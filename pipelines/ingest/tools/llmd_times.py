"""Times in an llm-d benchmark report: when it was measured, how long, and the run that it states by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pipelines.ingest.declarations import placed
from pipelines.ingest.numbers import LAST_CLOCK, metric
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Given, Origin
from pipelines.ingest.tools.llmd_fields import mapping, told
from pipelines.ingest.tools.llmd_load import GUIDELLM
from warehouse.clock import parse_instant
from warehouse.errors import InputError

SOURCE = "llm-d"
MAX_RUN_ID = 80
_DURATION = re.compile(r"P(?:(\d{1,5})D)?T(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,30})?)S)?")


def epoch(value: Any) -> datetime | None:
    """Return Unix seconds as an instant; 0 and what is missing are None."""
    if value is None or value in (0, "", "0"):
        return None
    seconds = metric("metrics.time.start", value)
    if not 0 < seconds < LAST_CLOCK:
        raise InputError(f"metrics.time.start: {seconds} is no time in Unix seconds")
    return datetime.fromtimestamp(seconds, UTC)


def _instant(value: Any, field: str, given: Given, strict: bool) -> datetime | None:
    """Return an ISO 8601 time; one without a zone is placed by the declared zone, or asked for where *strict*, else None."""
    if value is None or value == "":
        return None
    try:
        naive = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InputError(f"{field}: {str(value)[:60]!r} is not a time") from None
    if naive.tzinfo is not None:
        return parse_instant(value, field)
    return placed(naive, given.declared, field) if strict else placed_or_none(naive, given, field)


def clock_v02(record: Mapping[str, Any], given: Given, strict: bool) -> datetime | None:
    """Return the start of the run; some converters state its end alone."""
    times = mapping(mapping(record, "run", ""), "time", "run")
    start = _instant(times.get("start"), "run.time.start", given, strict)
    return start or _instant(times.get("end"), "run.time.end", given, strict)


def duration(times: Mapping[str, Any], tool: str, given: Given, whole_run: bool) -> float | None:
    """Return the length of the measurement, s.

    Where a harness wrapped the client, a duration equal to end - start is of the harness, with its start and all its stages.
    """
    text = times.get("duration")
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if not match or not any(match.groups()):
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    seconds = metric("run.time.duration", ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4] or 0))
    start, end = (_instant(times.get(key), f"run.time.{key}", given, strict=False) for key in ("start", "end"))
    if (
        whole_run
        and tool != GUIDELLM
        and start
        and end
        and abs(end - start - timedelta(seconds=min(seconds, 1e9))) <= timedelta(seconds=2)
    ):
        return None
    return seconds or None


def origin_v01(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the run of a report of version 0.1: its experiment, else its day."""
    clock = epoch(mapping(mapping(record, "metrics", ""), "time", "metrics").get("start"))
    return _origin(clock, mapping(record, "metadata", "").get("eid"))


def origin_v02(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of a report of version 0.2: its experiment, else its day; asks for `timezone` where its time has none."""
    return _origin(clock_v02(record, given, strict=True), mapping(record, "run", "").get("eid"))


def _origin(clock: datetime | None, experiment: Any) -> Origin | None:
    """Return the run of an experiment; it starts with its day, because its reports state starts of their own."""
    if clock is None:
        return None
    day, name = day_run(clock), told(experiment)
    if name is None or len(name) > MAX_RUN_ID:
        return day
    return Origin(SOURCE, name, day.started_at, name="llm-d experiment")
