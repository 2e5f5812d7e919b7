"""Fields of an llm-d benchmark report, read strictly: an error names the place of the field in the report.

Belongs here: one field at a time. Does not: what a field means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.ingest.numbers import whole
from warehouse.errors import InputError

MAX_SIZE = 1_000_000
"""Largest count of ranks, replicas and accelerators that is believed."""
UNKNOWN = frozenset({"", "unknown", "none", "null"})
"""Texts that converters write for what they do not know."""


def mapping(record: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return the object in *name*, empty where it is missing or null; raises InputError where it is none."""
    return object_at(record.get(name), f"{where}.{name}" if where else name)


def listed(record: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """Return the list in *name*, empty where it is missing or null; raises InputError where it is none."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}.{name}: a list is wanted (found {str(value)[:60]!r})")
    return value


def object_at(value: Any, where: str) -> Mapping[str, Any]:
    """Return an object, empty where it is null; raises InputError naming *where* where it is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: an object is wanted (found {str(value)[:60]!r})")
    return value


def size(record: Mapping[str, Any], name: str, where: str) -> int | None:
    """Return a count; 0, -1 (what the producer writes where it knows nothing) and what is missing are None."""
    value = record.get(name)
    if value is None or value in (0, -1, "", "0", "-1"):
        return None
    return whole(f"{where}.{name}", value, least=1, largest=MAX_SIZE)


def told(value: Any) -> str | None:
    """Return a text that tells something, else None."""
    text = value.strip() if isinstance(value, str) else ""
    return None if text.lower() in UNKNOWN else text
