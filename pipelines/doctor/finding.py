"""What `shiftlog doctor` says of one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "error"]
RESTORE = "restore the table `events` from a backup (docs/upkeep.md)"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: how bad it is, what was found, what to do ("" where there is nothing to do)."""

    level: Level
    what: str
    fix: str = ""


def told(size: int) -> str:
    """Return *size*, in bytes, for people."""
    power, unit = next((each for each in ((3, "GiB"), (2, "MiB")) if size >= 1024 ** each[0]), (1, "KiB"))
    return f"{size / 1024**power:.1f} {unit}"
