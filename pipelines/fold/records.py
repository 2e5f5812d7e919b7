"""Recorded results to mapped rows: a part of the log at a time, by itself, so that parts may be mapped anywhere.

A record is mapped whenever the table is made, with today's readers and vocabulary, so that a better alias or a mended reader
reaches all history. Belongs here: reading results from the log and mapping them. Does not: run, health, reuse (`points`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import polars as pl

from pipelines.ingest.columns import SCHEMA
from pipelines.ingest.reading import Given
from pipelines.ingest.results import RECORD, mapper_of
from pipelines.workers.parcels import packed, unpacked
from warehouse.canonical import text_id
from warehouse.log import EventLog
from warehouse.schemas import INT, POINTS, TEXT, TIME
from warehouse.store import Store

RECORDED = pl.Schema(
    {
        "sequence": INT,
        "point_id": TEXT,
        "subject": TEXT,
        "occurred_at": TIME,
        "recorded_at": TIME,
        **{name: POINTS.schema[name] for name in ("record_format", "record_hash", "run_source", "run_id", "run_attempt")},
        "mapped_for": TIME,
        **{name: dtype for name, dtype in SCHEMA.items() if name != "row"},
    }
)
"""A result of the log with its record mapped, for a run that started at `mapped_for`."""
REFUSED = pl.Schema({"sequence": INT, "reason": TEXT})
_READ = ("sequence", "event_id", "subject", "occurred_at", "recorded_at", "payload")


@dataclass(frozen=True)
class Part:
    """The results of the log of a warehouse with sequences in (after, up_to], and the starts of their runs."""

    store: Store
    after: int
    up_to: int
    starts: dict[str, datetime]


@dataclass(frozen=True)
class Recorded:
    """Rows of RECORDED, and of REFUSED: results that today's readers do not take. It travels between processes as parcels."""

    rows: pl.DataFrame
    refused: pl.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (packed(self.rows), packed(self.refused))


def _unpacked(rows: bytes, refused: bytes) -> Recorded:
    return Recorded(unpacked(rows), unpacked(refused))


def read_part(part: Part) -> Recorded:
    """Read a part of the log and map it."""
    log = EventLog(part.store)
    scan = log.scan("ResultRecorded", after=part.after, up_to=part.up_to).select(_READ).sort("sequence")
    return recorded(log.store.collect("events", scan), part.starts)


def recorded(events: pl.DataFrame, starts: Mapping[str, datetime]) -> Recorded:
    """Map *events*, rows of the log of type ResultRecorded; *starts* tells when their runs started, by subject.

    A result of a run that nobody reported keeps the time of its event.
    """
    if events.is_empty():
        return Recorded(RECORDED.to_frame(), REFUSED.to_frame())
    payloads = [orjson.loads(text) for text in events["payload"].to_list()]
    named = [str(payload["record_format"]) for payload in payloads]
    begun = [starts.get(subject, at) for subject, at in events.select("subject", "occurred_at").iter_rows()]
    known = _givens(payloads, begun)
    head = events.select("sequence", pl.col("event_id").alias("point_id"), "subject", "occurred_at", "recorded_at").with_columns(
        pl.Series("record_format", named, dtype=TEXT),
        pl.Series("record_hash", [record_hash(text) for text in events["payload"].to_list()], dtype=TEXT),
        pl.Series("run_source", [payload["run"]["run_source"] for payload in payloads], dtype=TEXT),
        pl.Series("run_id", [payload["run"]["run_id"] for payload in payloads], dtype=TEXT),
        pl.Series("run_attempt", [payload["run"].get("run_attempt", 1) for payload in payloads], dtype=INT),
        pl.Series("mapped_for", begun, dtype=TIME),
    )
    parts, refused = [], []
    for name in sorted(set(named)):
        rows = [row for row, format_name in enumerate(named) if format_name == name]
        frame, faults = _mapped(name, [payloads[row]["record"] for row in rows], [known[row] for row in rows])
        parts.append(
            pl.concat(
                [head[frame["row"].to_list() if len(rows) == len(named) else [rows[i] for i in frame["row"]]], frame.drop("row")],
                how="horizontal",
            )
        )
        refused += [(int(events["sequence"][rows[row]]), reason) for row, reason in sorted(faults.items())]
    return Recorded(
        pl.concat(parts).select(RECORDED.names()).sort("sequence"),
        pl.DataFrame(refused, schema=REFUSED, orient="row").sort("sequence"),
    )


def given_of(payload: dict[str, Any], started: datetime) -> Given:
    """Return what else is known of the record of a stored result or evaluation, of a run that started at *started*."""
    return Given(started, payload.get("settings") or {}, payload.get("settings_named") or {})


def _givens(payloads: list[dict[str, Any]], begun: list[datetime]) -> list[Given]:
    """Return what else is known of each record; those alike share one, because the mapper looks at each once."""
    distinct: dict[tuple[Any, ...], Given] = {}
    found = []
    for payload, started in zip(payloads, begun, strict=True):
        given = given_of(payload, started)
        key = (started, tuple(given.declared.items()), tuple(given.named.items()))
        found.append(distinct.setdefault(key, given))
    return found


def _mapped(name: str, records: list[dict[str, Any]], known: list[Given]) -> tuple[pl.DataFrame, dict[int, str]]:
    try:
        mapped = mapper_of(name).map(records, known)
    except KeyError:
        return SCHEMA.to_frame(), dict.fromkeys(range(len(records)), f"no reader called {name[:60]!r}; upgrade shiftlog")
    return mapped.frame(), mapped.faults


_BEHIND = ',"record_format":"'


def record_hash(payload: str) -> str:
    """Return the hash of the record inside the canonical JSON of a result, whose keys are record, record_format and run."""
    end = payload.rindex(_BEHIND)
    return text_id(payload[len(RECORD) : end])
