"""Noise of public fleets (`data/noise.toml`): it stands in while a warehouse has few repeats of a line of its own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "data" / "noise.toml"
FIELDS = ("engine", "hardware", "framework", "precision", "deployment")
"""Fields of a line, in the order of a noise group."""


@dataclass(frozen=True)
class Public:
    """Scale of one observation of a curve's median, log-ratio, and how many repeats it weighs as."""

    curve: float
    repeats: int


@cache
def of_line(line: tuple[str, ...]) -> Public | None:
    """Return what is known of the line (its values in the order of FIELDS), or None."""
    named = dict(zip(FIELDS, line, strict=True))
    for entry in _entries():
        if all(entry.get(name, value) == value for name, value in named.items()):
            return Public(float(entry["curve"]), int(entry["repeats"]))
    return None


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads(_FILE.read_text("utf-8"))["line"])
