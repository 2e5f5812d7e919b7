"""What a night said of shifts, as events: so that a later night can confirm, change or retract it by name, never silently."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from warehouse.events import Event, ShiftReported, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import SHIFTS

RETRACTED = "retracted"
_KEPT = (
    "shift_id",
    "event_key",
    "status",
    "direction",
    "attribution",
    "metric",
    "part",
    "curve_id",
    "night",
    "hardware",
    "engine",
    "framework",
    "model",
    "precision",
    "spec_decoding",
    "disagg",
    "isl",
    "osl",
    "from_run_id",
    "from_build_id",
    "from_image_ref",
    "from_engine_version",
    "to_run_id",
    "to_build_id",
    "to_image_ref",
    "to_engine_version",
)
"""Columns of a shift that a statement repeats; numbers that every new point nudges stay out, so that a statement is news."""


def statements(shifts: pl.DataFrame, log: EventLog, recorded_at: datetime) -> Iterator[Event]:
    """Yield a statement for every shift that was never stated, or is now stated differently."""
    latest = _latest(log)
    for row in shifts.sort(SHIFTS.order).iter_rows(named=True):
        before = latest.get(row["shift_id"])
        revision = before.revision + 1 if before else 1
        stated = ShiftReported(
            shift_id=row["shift_id"],
            revision=revision,
            size_pct=round(row["size_pct"], 1),
            facts={name: row[name] for name in _KEPT if row[name] is not None},
            from_measured_at=row["from_measured_at"],
            to_measured_at=row["to_measured_at"],
        )
        if before is None or before.model_copy(update={"revision": revision}) != stated:
            yield event_of(stated, occurred_at=row["to_measured_at"], recorded_at=recorded_at, source=Source(name="detect"))


def with_retracted(shifts: pl.DataFrame, log: EventLog) -> pl.DataFrame:
    """Return *shifts* and, with status `retracted`, those that an earlier night stated and this one does not find."""
    found = set(shifts["shift_id"].to_list())
    rows = [_retracted(stated) for shift_id, stated in sorted(_latest(log).items()) if shift_id not in found]
    return pl.concat([shifts, pl.DataFrame(rows, schema=SHIFTS.schema)]) if rows else shifts


def _latest(log: EventLog) -> dict[str, ShiftReported]:
    return {payload.shift_id: payload for _row, payload in log.payloads("ShiftReported") if isinstance(payload, ShiftReported)}


def _retracted(stated: ShiftReported) -> dict[str, Any]:
    return {
        **dict.fromkeys(SHIFTS.schema.names()),
        **stated.facts,
        "status": RETRACTED,
        "status_reason": "an earlier night stated it; with what is known now it is not found",
        "size_pct": stated.size_pct,
        "from_measured_at": stated.from_measured_at,
        "to_measured_at": stated.to_measured_at,
        "change_set": [],
        "change_detail": [],
        "health": [],
        "flagged": False,
    }
