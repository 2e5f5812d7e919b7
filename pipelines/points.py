"""Points, runs, builds and quarantine as tables: the fold of what was recorded, through today's readers and vocabulary.

A record is mapped each time the tables are built, so a better alias or a mended reader reaches all history. A record that its
reader no longer takes goes to `quarantine`. Belongs here: the fold. Does not: reading files, judging shifts.
"""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

import polars as pl
from packaging.version import InvalidVersion, Version

from pipelines.detect import health
from pipelines.ingest import formats
from pipelines.ingest.reading import Reading
from warehouse import image
from warehouse.canonical import content_id
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.events import RecordQuarantined, RunReported
from warehouse.image import ImageReference
from warehouse.log import EventLog
from warehouse.schemas import BUILDS, METRIC_COLUMNS, POINTS, QUARANTINE, RUNS

RunId = tuple[str, str, int]
Reported = dict[RunId, tuple[dict[str, Any], RunReported]]
"""Of every run the last report and its row of the log."""
FACT_TYPES = ("RunReported", "ResultRecorded", "RecordQuarantined")
"""Event types that these tables follow from."""


def project(log: EventLog) -> dict[str, pl.DataFrame]:
    """Return the frames of `runs`, `points`, `builds` and `quarantine`."""
    reported = {_run_id(run): (row, run) for row, run in log.payloads("RunReported") if isinstance(run, RunReported)}
    points, refused = _points(log, reported)
    return {
        "runs": _runs(reported, points),
        "points": points,
        "builds": _builds(points),
        "quarantine": _quarantine(log, refused),
    }


def _run_id(run: RunReported) -> RunId:
    return (run.run.run_source, run.run.run_id, run.run.run_attempt)


def _instant(text: str | None) -> datetime | None:
    return parse_instant(text, "time") if text else None


def _points(log: EventLog, reported: Reported) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for event in log.read("ResultRecorded").iter_rows(named=True):
        payload = json.loads(event["payload"])
        key = (payload["run"]["run_source"], payload["run"]["run_id"], payload["run"].get("run_attempt", 1))
        started = parse_instant(reported[key][1].started_at, "started_at") if key in reported else event["occurred_at"]
        try:
            reading = formats.by_name(payload["record_format"]).read(payload["record"], started)
            rows.append(_point(event, payload, key, started, reading))
        except (InputError, KeyError) as error:
            refused.append({**event, "reason": f"recorded, but this version cannot read it: {error}"})
    frame = pl.DataFrame(rows, schema=_unjudged()) if rows else pl.DataFrame(schema=_unjudged())
    return health.judge(frame).select(POINTS.schema.names()), refused


def _unjudged() -> pl.Schema:
    return pl.Schema({name: dtype for name, dtype in POINTS.schema.items() if name not in ("health", "verdict")})


def _point(event: dict[str, Any], payload: dict[str, Any], key: RunId, started: datetime, reading: Reading) -> dict[str, Any]:
    curve = curve_id(reading.identity)
    build = _reference(reading.image)
    return {
        "point_id": event["event_id"],
        "record_hash": content_id("record", payload["record"]),
        "record_format": payload["record_format"],
        "cell_id": cell_id(curve, reading.concurrency),
        "curve_id": curve,
        "run_source": key[0],
        "run_id": key[1],
        "run_attempt": key[2],
        "measured_at": reading.measured_at or started,
        "published_at": event["published_at"],
        "recorded_at": event["recorded_at"],
        "build_id": build.build_id if build else f"unknown:{reading.identity['engine']}",
        "image_ref": build.ref if build else reading.image,
        "image_digest": build.digest if build else None,
        "engine_version": build.version if build else None,
        **{name: reading.identity[name] for name in IDENTITY_FIELDS},
        "concurrency": reading.concurrency,
        "num_gpus": reading.num_gpus,
        "hardware_label": reading.hardware_label,
        "model_source": reading.model_source,
        "checkpoint": reading.checkpoint,
        "recipe_fingerprint": reading.recipe_fingerprint,
        "metric_definition": reading.metric_definition,
        **{column.name: reading.metrics.get(column.name) for column in METRIC_COLUMNS},
        "steady_output_tput_per_gpu": _steady(reading),
        "metrics_other": [{"name": name, "value": value} for name, value in sorted(reading.metrics_other.items())],
    }


def _steady(reading: Reading) -> float | None:
    """Little's law from the median latency: concurrency · osl / e2el_median / GPUs; a cold first burst does not touch it."""
    latency, osl = reading.metrics.get("e2el_median"), reading.identity["osl"]
    steady = reading.concurrency * osl / latency / reading.num_gpus if latency and osl else math.inf
    return steady if math.isfinite(steady) else None


def _reference(text: str | None) -> ImageReference | None:
    """Return what an image text holds, or None where it is absent or not a reference (then the build is unknown)."""
    try:
        return image.parse(text) if text else None
    except InputError:
        return None


def _runs(reported: Reported, points: pl.DataFrame) -> pl.DataFrame:
    counted = points.group_by("run_source", "run_id", "run_attempt").len().iter_rows()
    counts = {(run_source, run_id, attempt): count for run_source, run_id, attempt, count in counted}
    rows = [
        {
            "run_source": key[0],
            "run_id": key[1],
            "run_attempt": key[2],
            "name": run.name,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
            "trigger": run.trigger,
            "status": run.status,
            "conclusion": run.conclusion,
            "created_at": _instant(run.created_at),
            "started_at": _instant(run.started_at),
            "url": run.url,
            "declared": run.declared,
            "points": counts.get(key, 0),
            "recorded_at": row["recorded_at"],
        }
        for key, (row, run) in reported.items()
    ]
    return pl.DataFrame(rows, schema=RUNS.schema)


def _builds(points: pl.DataFrame) -> pl.DataFrame:
    """One row a build and engine; order: version where both have one, then date in the tag, then first measured."""
    seen = points.group_by("build_id", "engine", maintain_order=True).agg(
        pl.col("image_ref", "image_digest").first(),
        first=pl.col("measured_at").min(),
        last=pl.col("measured_at").max(),
        points=pl.len(),
    )
    rows = [_build(row) for row in seen.iter_rows(named=True)]
    rows.sort(
        key=lambda row: (
            row["engine"],
            _version_key(row["engine_version"]),
            row["date"] or "",
            row["first_measured_at"],
            row["build_id"],
        )
    )
    position: dict[str, int] = {}
    for row in rows:
        row["build_order"] = position[row["engine"]] = position.get(row["engine"], 0) + 1
    return pl.DataFrame(rows, schema=BUILDS.schema)


def _build(row: dict[str, Any]) -> dict[str, Any]:
    reference = _reference(row["image_ref"])
    return {
        "build_id": row["build_id"],
        "image_ref": row["image_ref"],
        "image_digest": row["image_digest"],
        "repo": reference.repo if reference else None,
        "tag": reference.tag if reference else None,
        "engine": row["engine"],
        "engine_version": reference.version if reference else None,
        "commit": reference.commit if reference else None,
        "date": reference.date if reference else None,
        "wrapper": reference.wrapper if reference else None,
        "wrapper_version": reference.wrapper_version if reference else None,
        "source": reference.source if reference else "unknown",
        "confidence": reference.confidence if reference else "none",
        "first_measured_at": row["first"],
        "last_measured_at": row["last"],
        "points": row["points"],
    }


def _version_key(text: str | None) -> tuple[int, Version]:
    try:
        return (1, Version(text)) if text else (0, Version("0"))
    except InvalidVersion:
        return (0, Version("0"))


def _quarantine(log: EventLog, refused: list[dict[str, Any]]) -> pl.DataFrame:
    rows = [
        {
            "event_id": row["event_id"],
            "name": payload.name,
            "sha256": payload.sha256,
            "position": payload.position,
            "reason": payload.reason,
            "excerpt": payload.excerpt,
            "recorded_at": row["recorded_at"],
        }
        for row, payload in log.payloads("RecordQuarantined")
        if isinstance(payload, RecordQuarantined)
    ]
    rows += [
        {
            "event_id": row["event_id"],
            "name": row["source_name"],
            "sha256": row["source_sha256"],
            "position": row["source_position"],
            "reason": row["reason"],
            "excerpt": "",
            "recorded_at": row["recorded_at"],
        }
        for row in refused
    ]
    return pl.DataFrame(rows, schema=QUARANTINE.schema)
