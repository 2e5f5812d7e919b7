"""Identity of a measurement: which cell and which curve it belongs to.

A curve is every identity field (`warehouse.schemas.IDENTITY`); a cell is the curve and the load: concurrency, or request rate.
Build and time are no part of it, so that a cell can be followed through builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from warehouse.canonical import content_id
from warehouse.schemas import IDENTITY, LATER_IDENTITY

IDENTITY_FIELDS: tuple[str, ...] = tuple(column.name for column in IDENTITY)


def curve_id(fields: Mapping[str, Any]) -> str:
    """Return the id of the curve that *fields* describe; raises KeyError where an identity field is absent."""
    return _curve_id(tuple((type(fields[name]), fields[name]) for name in IDENTITY_FIELDS))


@lru_cache(maxsize=65_536)
def _curve_id(values: tuple[tuple[type, Any], ...]) -> str:
    """Types are part of the key, because True and 1 are equal to a cache and not to JSON."""
    fields = {name: value for name, (_type, value) in zip(IDENTITY_FIELDS, values, strict=True)}
    return content_id("curve", {name: value for name, value in fields.items() if value is not None or name not in LATER_IDENTITY})


def cell_id(curve: str, concurrency: int | None, request_rate: float | None = None) -> str:
    """Return the id of one cell of a curve."""
    return (
        content_id("cell", curve, concurrency) if request_rate is None else content_id("cell", curve, concurrency, request_rate)
    )
