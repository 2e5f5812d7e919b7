"""Time as shiftlog keeps it: UTC instants, parsed strictly, and a clock that is passed in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from warehouse.errors import InputError

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the present instant in UTC; the only wall clock of the project, used for `recorded_at` alone."""
    return datetime.now(UTC)


def parse_instant(text: str, field: str) -> datetime:
    """Return *text* (ISO 8601 with a zone, or a bare date = midnight UTC) as a UTC instant.

    Raises InputError naming *field*: a time without a zone is refused, because guessing one has moved runs by a day.
    """
    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InputError(f"{field}: {str(text)[:60]!r} is not a time; write it as 2025-12-31T06:10:00Z") from None
    if instant.tzinfo is None:
        if len(text) > len("2025-12-31"):
            raise InputError(f"{field}: {text!r} has no time zone; add Z for UTC or an offset such as +01:00")
        instant = instant.replace(tzinfo=UTC)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InputError(f"{field}: {text!r} is outside the years that can be stored") from None


def iso(instant: datetime | None) -> str | None:
    """Return *instant* as `2025-12-31T06:10:09Z` (microseconds only where there are any), or None."""
    if instant is None:
        return None
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
