"""Points, runs, builds and quarantine as tables: the fold of what was recorded, through today's readers and vocabulary.

A record is mapped each time the tables are built, so a better alias or a mended reader reaches all history. A record that its
reader no longer takes goes to `quarantine`. Belongs here: the fold. Does not: reading files, judging shifts.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
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
    standing: list[tuple[Any, ...]] = []
    refused: list[dict[str, Any]] = []
    for event in log.read("ResultRecorded").iter_rows(named=True):
        payload = json.loads(event["payload"])
        key = (payload["run"]["run_source"], payload["run"]["run_id"], payload["run"].get("run_attempt", 1))
        started = parse_instant(reported[key][1].started_at, "started_at") if key in reported else event["occurred_at"]
        try:
            reading = formats.by_name(payload["record_format"]).read(payload["record"], started)
            rows.append(_point(event, payload, key, started, reading))
            standing.append(_standing(reported.get(key), started, event["sequence"]))
        except (InputError, KeyError) as error:
            refused.append({**event, "reason": f"recorded, but this version cannot read it: {error}"})
    _mark_reused(rows, standing)
    frame = pl.DataFrame(rows, schema=_unjudged()) if rows else pl.DataFrame(schema=_unjudged())
    return health.judge(frame).select(POINTS.schema.names()), refused


def _standing(reported: tuple[dict[str, Any], RunReported] | None, started: datetime, sequence: int) -> tuple[Any, ...]:
    """Return how well a run may claim a record, least = best: recorded before declared, the first run, the last declaration."""
    if reported is not None and reported[1].declared:
        return (1, datetime.max.replace(tzinfo=UTC), -sequence)
    return (0, started, sequence)


def _mark_reused(rows: list[dict[str, Any]], standing: list[tuple[Any, ...]]) -> None:
    """Set `reused`: of records equal to the last digit only one was measured; the others re-use it or correct its time."""
    best: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row, claim in zip(rows, standing, strict=True):
        record = (row["record_format"], row["record_hash"])
        best[record] = min(best.get(record, claim), claim)
    for row, claim in zip(rows, standing, strict=True):
        row["reused"] = claim != best[row["record_format"], row["record_hash"]]


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
    return reading.concurrency * osl / latency / reading.num_gpus if latency and osl else None


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
    """One row a build and engine, in `build_order`: see `_ordered`."""
    seen = points.sort(POINTS.order).group_by("engine", "build_id", maintain_order=True)
    frame = seen.agg(
        pl.col("image_ref", "image_digest").first(),
        first=pl.col("measured_at").min(),
        last=pl.col("measured_at").max(),
        points=pl.len(),
    )
    rows = []
    for _engine, part in sorted(frame.partition_by("engine", as_dict=True).items(), key=lambda item: str(item[0])):
        ordered = _ordered([_build(row) for row in part.iter_rows(named=True)])
        rows += [{**row, "build_order": place} for place, row in enumerate(ordered, start=1)]
    return pl.DataFrame(rows, schema=BUILDS.schema)


def _ordered(builds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one engine's builds in order of first measurement, those that have a version in PEP 440 order among themselves."""
    by_time = sorted(builds, key=lambda row: (row["first_measured_at"], row["build_id"]))
    versions = {row["build_id"]: version for row in by_time if (version := _version(row["engine_version"]))}
    by_version = iter(sorted((row for row in by_time if row["build_id"] in versions), key=lambda row: versions[row["build_id"]]))
    return [next(by_version) if row["build_id"] in versions else row for row in by_time]


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


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def _quarantine(log: EventLog, refused: list[dict[str, Any]]) -> pl.DataFrame:
    """One row a fault that still stands: one whose very place was read later, with a time or a mended reader, is gone."""
    results = log.read("ResultRecorded").select("source_sha256", "source_position")
    read_since = set(results.iter_rows())
    met = [
        _fault(row, payload.name, payload.sha256, payload.position, payload.reason, payload.excerpt)
        for row, payload in log.payloads("RecordQuarantined")
        if isinstance(payload, RecordQuarantined) and (payload.sha256, payload.position) not in read_since
    ]
    met += [_fault(row, row["source_name"], row["source_sha256"], row["source_position"], row["reason"]) for row in refused]
    return pl.DataFrame(met, schema=QUARANTINE.schema)


def _fault(event: dict[str, Any], name: str, sha256: str, position: str, reason: str, excerpt: str = "") -> dict[str, Any]:
    return {
        "event_id": event["event_id"],
        "name": name,
        "sha256": sha256,
        "position": position,
        "reason": reason,
        "excerpt": excerpt,
        "recorded_at": event["recorded_at"],
    }
