"""The rows of `builds`: the software that points were measured on, in order.

Belongs here: what points tell of builds, joined with what registries and upstream tell. Does not: the order
(`changelog.order`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
from packaging.version import InvalidVersion, Version

from changelog.history import History
from changelog.order import BuildEnd, build_order
from pipelines.fold.upstream import Upstream
from pipelines.ingest.columns import reference
from warehouse.schemas import BUILDS

READ = ("engine", "build_id", "image_ref", "image_digest", "engine_version", "measured_at", "recorded_at", "retraction")
"""Columns of `points` that tell of builds."""
RECORD = "record"
"""Source of a version or commit that a record states or a user declared."""
DIGEST = "digest:"
"""How the id of a build begins whose digest a record holds."""
SURE = ("high", "medium")
"""Confidence from which a version is the release of that name: of a dated build it is only what it was built on top of."""
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


def stored(builds: pl.LazyFrame) -> pl.LazyFrame:
    """Return from rows of the table what points told of each build (_SEEN), without what came from elsewhere."""
    pinned = pl.col("build_id").str.strip_prefix(DIGEST)
    own = pl.when(pl.col("build_id").str.starts_with(DIGEST)).then(pinned)
    return builds.with_columns(engine_version=pl.col("stated_version"), image_digest=own).select(_SEEN)


def table(builds: pl.DataFrame, upstream: Upstream) -> pl.DataFrame:
    """Return rows of `builds` from what points tell (_SEEN) and what is known upstream, in `build_order`."""
    rows = []
    for engine, part in sorted(builds.partition_by("engine", as_dict=True).items(), key=lambda item: str(item[0])):
        told = {row["build_id"]: _build(row, upstream) for row in part.iter_rows(named=True)}
        rows += [
            {**told[key], "build_order": number} for number, key in enumerate(_order(told, str(engine[0]), upstream), start=1)
        ]
    return pl.DataFrame(rows, schema=BUILDS.schema)


def _order(builds: dict[str, dict[str, Any]], engine: str, upstream: Upstream) -> list[str]:
    """Return the ids of one engine's builds in order; with less than two commits there is no ancestry to look at."""
    commits = {key: _commits(row, engine, upstream) for key, row in builds.items()}
    history = History(upstream.commits(engine)) if sum(map(bool, commits.values())) > 1 else None
    known = {key: next((name for name in commits[key] if history and history.number(name) is not None), None) for key in builds}
    dates = _dates(builds)
    ends = (BuildEnd(key, known[key], row["engine_version"], dates[key]) for key, row in builds.items())
    return [end.key for end in build_order(ends, history)]


def _dates(builds: dict[str, dict[str, Any]]) -> dict[str, datetime]:
    """Return when each build was first measured; those that have a version share out their times in the order of versions.

    An old release is often measured after a new one, and what has no version stands between them by time.
    """
    by_time = sorted((row["first_measured_at"], key) for key, row in builds.items())
    versions = {key: version for _at, key in by_time if (version := _version(builds[key]["engine_version"]))}
    times = [at for at, key in by_time if key in versions]
    shared = zip(sorted(versions, key=lambda key: versions[key]), times, strict=True)
    return {key: at for at, key in by_time} | dict(shared)


def _commits(row: dict[str, Any], engine: str, upstream: Upstream) -> list[str]:
    """Return the commits that a build can be placed by: its own, else those of the release that it is."""
    if row["commit"]:
        return [row["commit"]]
    version = _version(row["engine_version"])
    return upstream.released(engine).get(str(version), []) if version and row["confidence"] in SURE else []


def _build(row: dict[str, Any], upstream: Upstream) -> dict[str, Any]:
    """Return a row of `builds`: what a registry tells of the image, else its tag, else what records and users say."""
    known, label = reference(row["image_ref"]), upstream.label(row)
    commit = _commit(row["build_id"])
    told = bool(row["engine_version"] or commit) and not (known and (known.version or known.commit))
    read = {
        **{name: row[name] for name in _SEEN},
        "stated_version": row["engine_version"],
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
    if label is None:
        return read
    digest = row["image_digest"] or label.digest
    found = {"engine_version": label.version or read["engine_version"], "commit": label.commit or read["commit"]}
    return {**read, **found, "image_digest": digest, "source": label.source, "confidence": "high"}


def _commit(build_id: str) -> str | None:
    """Return the commit that a build without an image is known by."""
    return build_id.rsplit("/", 1)[-1] if build_id.startswith("commit:") else None


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None
