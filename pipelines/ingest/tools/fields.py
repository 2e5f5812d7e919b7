"""Fields of a record that may be missing or null, read strictly: an error names the field.

Belongs here: one field at a time. Does not: bounds of numbers (`numbers`), what a field means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.ingest.numbers import metric, whole
from warehouse.errors import InputError

MAX_TEXT = 512


def text(record: Mapping[str, Any], key: str, where: str = "") -> str | None:
    """Return the text of *key*; None where it is missing, null or empty. Raises InputError."""
    value = record.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InputError(f"{where}{key}: {str(value)[:60]!r} is not a text of up to {MAX_TEXT} characters")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"{where}{key}: {value[:60]!r} holds half a surrogate pair")
    return value.strip() or None


def number(record: Mapping[str, Any], key: str, where: str = "", per: float = 1.0) -> float | None:
    """Return the number of *key* over *per* (1000 for milliseconds); None where it is missing or null. Raises InputError."""
    value = record.get(key)
    return None if value is None else metric(where + key, value, per)


def count(record: Mapping[str, Any], key: str, where: str = "", least: int = 0) -> int | None:
    """Return the whole number of *key*; None where it is missing or null. Raises InputError."""
    value = record.get(key)
    return None if value is None else whole(where + key, value, least, 100_000_000)


def flag(record: Mapping[str, Any], key: str, where: str = "") -> bool | None:
    """Return the truth of *key*; None where it is missing or null. Raises InputError."""
    value = record.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{where}{key}: {str(value)[:60]!r} is neither true nor false")
    return value


def part(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object of *key*; empty where it is missing or null. Raises InputError."""
    value = record.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{key}: {str(value)[:60]!r} is not an object")
    return value


def plain(record: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """Return the single values of *record* whose keys are *allowed*; lists and objects are left out."""
    return {key: value for key, value in record.items() if key in allowed and not isinstance(value, list | dict)}
