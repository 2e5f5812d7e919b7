"""What the command line says: data on stdout, narration on stderr. Owns exit statuses, tables, progress, escaping.

Strangers' text never reaches a terminal raw: control and direction characters are shown as their escapes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from enum import IntEnum
from typing import Any

from warehouse.clock import iso

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
QUIET_SECONDS = 2.0
"""Work that takes longer shows its progress."""
STEP_SECONDS = 0.2


class ExitStatus(IntEnum):
    """Exit statuses: all good; failed; wrong usage; done, but some input went to quarantine; interrupted; terminated."""

    OK = 0
    FAILED = 1
    USAGE = 2
    QUARANTINED = 3
    INTERRUPTED = 130
    TERMINATED = 143


def safe(text: object) -> str:
    """Return *text* for a terminal, control characters as escapes."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def clipped(text: str, width: int) -> str:
    """Return *text* with at most *width* characters on a terminal, an ellipsis at its end; whole in a pipe or file."""
    return text if len(text) <= width or not sys.stdout.isatty() else text[: width - 1] + "…"


def out(text: str) -> None:
    """Write one line of data to stdout."""
    sys.stdout.write(text + "\n")


def say(text: str) -> None:
    """Write one line of narration to stderr."""
    sys.stderr.write(safe(text) + "\n")


def out_json(value: Any) -> None:
    """Write *value* as JSON, and nothing else, to stdout."""
    out(json.dumps(value, ensure_ascii=False, indent=2, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value) if value.tzinfo else value.isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def finite(value: Any) -> Any:
    """Return *value* with NaN and infinities as None, because JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value


def out_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as CSV to stdout; lists as JSON, times as ISO 8601."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    sys.stdout.write(buffer.getvalue())


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return _plain(value) if isinstance(value, date) else value


def out_table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()) -> None:
    """Write rows as an aligned table to stdout; *right* names the columns that are numbers."""
    shown = [[safe(_text(value)).replace("\n", " ") for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in shown)]) for i, name in enumerate(header)]
    for row in [list(header), ["─" * width for width in widths], *shown]:
        out(
            "  ".join(
                value.rjust(width) if i in right else value.ljust(width)
                for i, (value, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
        )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(_plain(value) if isinstance(value, date) else value)


class Progress:
    """One line on stderr that tells what is being done; silent for the first two seconds, and rewritten only on a terminal."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._start = self._last = time.monotonic()
        self._count = 0
        self._shown = False

    def step(self, name: str) -> None:
        """Count one more and show *name* where it is time to."""
        self._count += 1
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self._start < QUIET_SECONDS or now - self._last < (STEP_SECONDS if terminal else QUIET_SECONDS):
            return
        self._last = now
        line = f"{self._verb} {self._count}: {safe(name)[-60:]}"
        sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        self._shown = terminal

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
