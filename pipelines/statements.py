"""What a night said of shifts, as events: so that a later night can confirm, change or retract it by name, never silently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from pipelines.detect.states import RETRACTED, SUPERSEDED
from warehouse.events import Event, ShiftReported, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import SHIFTS

_KEPT = (
    "shift_id",
    "event_key",
    "dedupe_key",
    "status",
    "superseded_by",
    "direction",
    "kind",
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
    """Return *shifts* and those that an earlier night stated and this one does not find.

    Such a one is `superseded` where another shift of the same curve and direction now covers some of the same time (a run that
    came late, a step that is seen elsewhere), and names it; else `retracted`.
    """
    found = set(shifts["shift_id"].to_list())
    gone = [stated for shift_id, stated in sorted(_latest(log).items()) if shift_id not in found]
    if not gone:
        return shifts
    heirs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in shifts.sort("to_measured_at", "shift_id").iter_rows(named=True):
        heirs[row["curve_id"], row["direction"]].append(row)
    rows = [_gone(stated, _heir(stated, heirs)) for stated in gone]
    return pl.concat([shifts, pl.DataFrame(rows, schema=SHIFTS.schema)])


def _heir(stated: ShiftReported, heirs: dict[tuple[str, str], list[dict[str, Any]]]) -> str | None:
    """Return the id of the shift that stands in place of one that is not found any more, the nearest in time, if there is one."""
    same = heirs.get((str(stated.facts.get("curve_id")), str(stated.facts.get("direction"))), [])
    covering = [
        row for row in same if row["from_measured_at"] < stated.to_measured_at and stated.from_measured_at < row["to_measured_at"]
    ]
    nearest = min(covering, key=lambda row: (abs(row["to_measured_at"] - stated.to_measured_at), row["shift_id"]), default=None)
    return nearest["shift_id"] if nearest else None


def _latest(log: EventLog) -> dict[str, ShiftReported]:
    return {payload.shift_id: payload for _row, payload in log.payloads("ShiftReported") if isinstance(payload, ShiftReported)}


def _gone(stated: ShiftReported, heir: str | None) -> dict[str, Any]:
    why = f"shift {heir} stands in its place" if heir else "with what is known now it is not found"
    return {
        **dict.fromkeys(SHIFTS.schema.names()),
        **stated.facts,
        "status": SUPERSEDED if heir else RETRACTED,
        "status_reason": f"an earlier night stated it; {why}",
        "superseded_by": heir,
        "linked": [],
        "size_pct": stated.size_pct,
        "from_measured_at": stated.from_measured_at,
        "to_measured_at": stated.to_measured_at,
        "change_set": [],
        "change_detail": [],
        "health": [],
        "flagged": False,
    }
