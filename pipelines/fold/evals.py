"""The rows of `evals`: scores of evaluations, mapped from the log whenever the table is made, joined with their runs.

Belongs here: the mapping of recorded evaluations and the join. Does not: what a field means (the formats), committing (`small`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
import polars as pl

from pipelines.fold.records import REFUSED, given_of, record_hash
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
    rows = [
        row
        for event, payload, started, said in _read(events, runs)
        if not isinstance(said, InputError)
        for row in _rows(event, payload, started, said, held.get(event["subject"]), runs)
    ]
    latest = {(row["record_hash"], row["task"], row["metric"]): row for row in rows}  # a later declaration of one record holds
    return pl.DataFrame(list(latest.values()), schema=EVALS.schema)


def refused(events: pl.DataFrame, runs: Runs) -> pl.DataFrame:
    """Return rows of REFUSED for recorded evaluations that today's readers do not take."""
    read = _read(events, runs)
    told = [(event["sequence"], str(said)) for event, _payload, _started, said in read if isinstance(said, InputError)]
    return pl.DataFrame(told, schema=REFUSED, orient="row")


_Read = tuple[dict[str, Any], dict[str, Any], datetime, list[EvalReading] | InputError]
"""The event of an evaluation, its payload, the start of its run, and what it says or why it is not taken."""


def _read(events: pl.DataFrame, runs: Runs) -> Iterator[_Read]:
    starts = runs.starts()
    for event in events.iter_rows(named=True):
        payload, started = orjson.loads(event["payload"]), starts.get(event["subject"], event["occurred_at"])
        try:
            yield event, payload, started, _readings(payload, started)
        except InputError as error:
            yield event, payload, started, error


def _readings(payload: dict[str, Any], started: datetime) -> list[EvalReading]:
    try:
        own = formats.by_name(payload["record_format"])
    except KeyError:
        raise InputError(f"no reader called {str(payload['record_format'])[:60]!r}; upgrade shiftlog") from None
    return list(formats.read(own, payload["record"], given_of(payload, started)))


def _rows(
    event: dict[str, Any],
    payload: dict[str, Any],
    started: datetime,
    readings: list[EvalReading],
    held: dict[str, Any] | None,
    runs: Runs,
) -> list[dict[str, Any]]:
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


def _scored(event_id: str, reading: EvalReading, started: datetime) -> dict[str, Any]:
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
