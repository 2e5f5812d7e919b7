"""How long to wait, from headers as they come."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.retry_after import LONGEST, wait

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = 1_772_366_400
"""The same instant in seconds since 1970 (date -u -d 2026-03-01T12:00:00 +%s)."""


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"retry-after": "7"}, 7.0),
        (503, {"retry-after": " 0 "}, 0.0),
        (429, {"retry-after": "Sun, 01 Mar 2026 12:00:09 GMT"}, 9.0),
        (429, {"retry-after": "Sun, 01 Mar 2026 14:00:09 +0200"}, 9.0),
        (429, {"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        (429, {"retry-after": "Fri, 31 Dec 9999 23:59:59 -1200"}, LONGEST),
        (429, {"retry-after": "999999999999"}, LONGEST),
        (429, {"retry-after": "-5"}, None),
        (429, {"retry-after": "²"}, None),
        (429, {"retry-after": "soon"}, None),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH + 11)}, 11.0),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH + 11), "retry-after": "soon"}, 11.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH - 11)}, 0.0),
        (403, {"x-ratelimit-remaining": "1", "x-ratelimit-reset": str(EPOCH + 11)}, None),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "²"}, None),
        (403, {}, None),
        (404, {"retry-after": "7"}, None),
        (200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(EPOCH + 11)}, None),
    ],
)
def test_what_is_asked(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert wait(status, headers, NOW) == seconds


TEXT = st.text(max_size=60) | st.from_regex(
    r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,5} \d\d:\d\d:\d\d [+-]?\w{0,6}", fullmatch=True
)


@given(TEXT, TEXT)
def test_any_header_is_a_bounded_wait_or_none(after: str, reset: str) -> None:
    found = wait(429, {"retry-after": after, "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}, NOW)
    assert found is None or 0.0 <= found <= LONGEST
