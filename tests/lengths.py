"""The two forms of a long test: a short one in `make test`, a full one where SHIFTLOG_SOAK=1 (`make soak`)."""

from __future__ import annotations

import os

FULL = os.environ.get("SHIFTLOG_SOAK") == "1"


def either(short: int, full: int) -> int:
    """Return which of two numbers counts: of cases, of rounds."""
    return full if FULL else short
