"""How long another machine asks to wait before it is asked again.

Belongs here: `Retry-After` (seconds, or a date) and GitHub's `X-RateLimit-Reset`. Does not: waiting (`changelog.web`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which the same question may be answered."""
LONGEST = 10 * 365 * 86400.0
"""Seconds; who says more means never."""
_DIGITS = re.compile(r"[0-9]{1,12}")


def wait(status: int, headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how many seconds an answer asks to wait, or None where it asks nothing (names of headers in any case).

    GitHub says with 403 or 429 that no request remains, and when it counts anew.
    """
    if status not in (403, *AGAIN):
        return None
    seconds = _seconds(headers.get("retry-after", ""), now)
    if seconds is None and headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = headers.get("x-ratelimit-reset", "").strip()
        seconds = int(reset) - now.timestamp() if _DIGITS.fullmatch(reset) else None
    return None if seconds is None else min(max(0.0, seconds), LONGEST)


def _seconds(told: str, now: datetime) -> float | None:
    if _DIGITS.fullmatch(told.strip()):
        return float(told)
    try:
        when = parsedate_to_datetime(told[:100])
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now.timestamp()
