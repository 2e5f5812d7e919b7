"""Registry of benchmark record formats: one module and one line each."""

from __future__ import annotations

from typing import Any

from pipelines.ingest import inferencex
from pipelines.ingest.reading import RecordFormat

FORMATS: tuple[RecordFormat, ...] = (inferencex.FORMAT,)


def by_name(name: str) -> RecordFormat:
    """Return the format called *name*; raises KeyError."""
    return {record_format.name: record_format for record_format in FORMATS}[name]


def recognise(record: Any) -> RecordFormat | None:
    """Return the format that *record* is of, judged by its content, or None."""
    return next((record_format for record_format in FORMATS if record_format.recognises(record)), None)


def near_miss(record: Any) -> str | None:
    """Return in words which format *record* is nearly of and what it lacks, or None."""
    for record_format in FORMATS:
        if missing := record_format.lacks(record):
            return f"looks like {record_format.name}, but lacks {', '.join(sorted(missing))}"
    return None
