"""The rows of `evals`: scores of evaluations, mapped from the log whenever the table is made, joined with their runs.

Belongs here: the mapping of recorded evaluations and the join. Does not: what a field means (the formats), committing (`small`).
"""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl

from pipelines.fold.records import given_of, record_hash
from pipelines.fold.runs import Runs
from pipelines.ingest import formats
from pipelines.ingest.columns import build_of
from pipelines.ingest.reading import EvalReading
from warehouse.canonical import content_id
from warehouse.cell import curve_id
from warehouse.errors import InputError
from warehouse.schemas import EVALS, IDENTITY

_SCORED = (
    "concurrency",
    "hardware_label",
    "model_source",
    "checkpoint",
    "task",
    "metric",
    "score",
    "score_stderr",
    "samples",
    "samples_total",
    "few_shot",
    "harness_version",
    "task_version",
)


def table(events: pl.DataFrame, runs: Runs) -> pl.DataFrame:
    """Return rows of `evals` for *events*, rows of the log of type EvalRecorded in its order; *runs* knows their runs."""
    held = {row["subject"]: row for row in runs.held().iter_rows(named=True)}
    rows = [row for event in events.iter_rows(named=True) for row in _rows(event, held.get(event["subject"]), runs)]
    latest = {(row["record_hash"], row["task"], row["metric"]): row for row in rows}  # a later declaration of one record holds
    return pl.DataFrame(list(latest.values()), schema=EVALS.schema)


def refused(events: pl.DataFrame, runs: Runs) -> list[tuple[int, str]]:
    """Return sequence and reason of recorded evaluations that today's readers do not take."""
    starts = runs.starts()
    found = []
    for event in events.iter_rows(named=True):
        try:
            _readings(orjson.loads(event["payload"]), starts.get(event["subject"], event["occurred_at"]))
        except InputError as error:
            found.append((event["sequence"], str(error)))
    return found


def _readings(payload: dict[str, Any], started: Any) -> list[EvalReading]:
    try:
        own = formats.by_name(payload["record_format"])
    except KeyError:
        raise InputError(f"no reader called {str(payload['record_format'])[:60]!r}; upgrade shiftlog") from None
    return list(formats.read(own, payload["record"], given_of(payload, started)))


def _rows(event: dict[str, Any], held: dict[str, Any] | None, runs: Runs) -> list[dict[str, Any]]:
    payload = orjson.loads(event["payload"])
    started = held["run_started_at"] if held else event["occurred_at"]
    try:
        readings = _readings(payload, started)
    except InputError:
        return []  # told in quarantine
    run = payload["run"]
    shared = {
        "event_id": event["event_id"],
        "sequence": event["sequence"],
        "record_hash": record_hash(event["payload"]),
        "record_format": payload["record_format"],
        "run_source": run["run_source"],
        "run_id": run["run_id"],
        "run_attempt": run.get("run_attempt", 1),
        "run_started_at": started,
        "published_at": held["published_at"] if held else None,
        "recorded_at": event["recorded_at"],
        "declared": bool(held and held["declared"]),
        "retraction": (held["run_retraction"] if held else None) or runs.retracted.get(event["event_id"]),
    }
    return [{**shared, **_scored(event["event_id"], reading, started)} for reading in readings]


def _scored(event_id: str, reading: EvalReading, started: Any) -> dict[str, Any]:
    identity = reading.identity
    build = build_of(reading.image, identity["engine"], reading.engine_version, None)
    return {
        "eval_id": content_id("eval", event_id, reading.task, reading.metric),
        "curve_id": curve_id(identity),
        "measured_at": reading.measured_at or started,
        **dict(zip(("build_id", "image_ref", "image_digest", "engine_version"), build, strict=True)),
        **{column.name: identity[column.name] for column in IDENTITY},
        **{name: getattr(reading, name) for name in _SCORED},
        "declared_fields": list(reading.declared),
    }
