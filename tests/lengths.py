"""The two forms of a long test: a short one in `make test`, a full one where SHIFTLOG_SOAK=1 (`make soak`)."""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("SHIFTLOG_SOAK") == "1"
ONLY_FULL = pytest.mark.skipif(not FULL, reason="a variant that only `make soak` runs")


def either(short: int, full: int) -> int:
    """Return which of two numbers counts: of cases, of rounds."""
    return full if FULL else short
