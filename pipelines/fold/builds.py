"""The rows of `builds`: the software that points were measured on, in order."""

from __future__ import annotations

from typing import Any

import polars as pl
from packaging.version import InvalidVersion, Version

from pipelines.ingest.columns import reference
from warehouse.schemas import BUILDS

READ = ("engine", "build_id", "image_ref", "image_digest", "engine_version", "measured_at", "recorded_at", "retraction")
"""Columns of `points` that tell of builds."""
RECORD = "record"
"""Source of a version or commit that a record states or a user declared."""
_SEEN = (
    "engine",
    "build_id",
    "image_ref",
    "image_digest",
    "engine_version",
    "first_measured_at",
    "last_measured_at",
    "first_recorded_at",
    "points",
)


def seen(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return what *points* (READ columns) tell of each build and engine: _SEEN. The reference is the first measured one."""
    live = points.filter(pl.col("retraction").is_null())
    return live.group_by("engine", "build_id").agg(
        pl.col("image_ref").filter(pl.col("measured_at") == pl.col("measured_at").min()).min(),
        pl.col("image_digest").min(),
        pl.col("engine_version").min(),
        first_measured_at=pl.col("measured_at").min(),
        last_measured_at=pl.col("measured_at").max(),
        first_recorded_at=pl.col("recorded_at").min(),
        points=pl.len().cast(pl.Int64),
    )


def joined(earlier: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    """Return what two sets of points tell together, from what each tells (_SEEN columns)."""
    both = pl.concat([earlier.select(_SEEN), later.select(_SEEN)])
    first = pl.col("first_measured_at") == pl.col("first_measured_at").min()
    return both.group_by("engine", "build_id").agg(
        pl.col("image_ref").filter(first).min(),
        pl.col("image_digest").min(),
        pl.col("engine_version").min(),
        pl.col("first_measured_at").min(),
        pl.col("last_measured_at").max(),
        pl.col("first_recorded_at").min(),
        pl.col("points").sum(),
    )


def table(builds: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `builds`, in `build_order`: see `_ordered`."""
    rows = []
    for _engine, part in sorted(builds.partition_by("engine", as_dict=True).items(), key=lambda item: str(item[0])):
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
    """Return a row of `builds`: what the image tells, else version and commit as records and users say."""
    known = reference(row["image_ref"])
    commit = _commit(row["build_id"])
    told = bool(row["engine_version"] or commit) and not (known and (known.version or known.commit))
    return {
        **{name: row[name] for name in _SEEN},
        "repo": known.repo if known else None,
        "tag": known.tag if known else None,
        "engine_version": (known.version if known else None) or row["engine_version"],
        "commit": known.commit if known else commit,
        "date": known.date if known else None,
        "wrapper": known.wrapper if known else None,
        "wrapper_version": known.wrapper_version if known else None,
        "source": RECORD if told else known.source if known else "unknown",
        "confidence": "medium" if told else known.confidence if known else "none",
    }


def _commit(build_id: str) -> str | None:
    """Return the commit that a build without an image is known by."""
    return build_id.rsplit("/", 1)[-1] if build_id.startswith("commit:") else None


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None
