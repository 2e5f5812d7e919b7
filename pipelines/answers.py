"""Shifts, their explanation, noise floors and upstream changes as JSON-ready objects: shapes that other tools rely on."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl

from changelog.answer import changes
from changelog.facets import Configuration
from pipelines.detect.noise import FEW, LEVELS, Scale
from pipelines.detect.observations import METRICS
from pipelines.detect.states import GONE
from pipelines.doubts import unknowns, why_not
from pipelines.evidence import evidence
from pipelines.projections import upstream as upstream_tables
from warehouse import vocabulary
from warehouse.cell import IDENTITY_FIELDS
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.store import Store

SHORTEST_PREFIX = 6
_TOP = (
    "shift_id",
    "event_key",
    "dedupe_key",
    "echo_of",
    "status",
    "status_reason",
    "superseded_by",
    "direction",
    "kind",
    "linked",
    "metric",
    "part",
    "size_pct",
    "cells",
    "cells_total",
    "agreeing",
    "coherent",
    "p_value",
    "q_value",
    "engine",
    "hardware",
    "framework",
    "model",
    "precision",
    "spec_decoding",
    "disagg",
    "isl",
    "osl",
    "curve_id",
    "gap_days",
    "night",
    "reported_pct",
    "steady_pct",
    "tpot_pct",
    "ttft_pct",
    "siblings",
    "siblings_total",
    "change_set",
    "change_detail",
    "attribution",
    "health",
    "noise_repeats",
    "noise_level",
    "noise_version",
    "explained_share",
)
_SIDE = (
    "measured_at",
    "recorded_at",
    "run_source",
    "run_id",
    "run_attempt",
    "build_id",
    "image_ref",
    "image_digest",
    "engine_version",
)
_NOISE = ("level", "hardware", "engine", "framework", "precision", "deployment", "metric", "unit")


def find_shifts(
    store: Store, *, engine: str | None = None, since: date | None = None, status: str | None = None, prefix: str = ""
) -> list[dict[str, Any]]:
    """Return the shifts that match, oldest first; *prefix* is a beginning of their ids."""
    frame = store.scan("shifts").filter(pl.col("shift_id").str.starts_with(prefix))
    if engine:
        frame = frame.filter(pl.col("engine") == engine)
    if since:
        frame = frame.filter(pl.col("night") >= since.isoformat())
    if status:
        frame = frame.filter(pl.col("status") == status)
    rows = store.collect("shifts", frame.sort("to_measured_at", "shift_id"))
    curves = _curves(store, rows["curve_id"].unique().to_list())
    return [_shift(row, curves.get(row["curve_id"], {})) for row in rows.iter_rows(named=True)]


def explain(store: Store, prefix: str) -> dict[str, Any]:
    """Return one shift, or a comparison that is none, with all that is on record round it.

    *prefix* is its id or a unique beginning of it. Raises InputError where none begins so, or several do.
    """
    prefix = prefix.lower()
    found = _found(store, prefix) if len(prefix) >= SHORTEST_PREFIX else []
    if not found:
        raise InputError(
            f"shift {prefix[:40]!r}: no such shift or comparison; `shiftlog shifts` lists the shifts "
            f"(at least {SHORTEST_PREFIX} characters)"
        )
    if len(found) > 1:
        raise InputError(f"shift {prefix!r}: {len(found)} shifts or comparisons begin so; give more characters")
    return _told(store, found[0])


def noise_scales(
    store: Store, *, engine: str | None = None, hardware: str | None = None, metric: str | None = None
) -> list[dict[str, Any]]:
    """Return the noise floors, widest level first: scales in % of one observation, and whether there are too few repeats."""
    if metric and metric not in METRICS:
        raise InputError(f"--metric {metric[:40]!r} has no noise floor; use one of {', '.join(METRICS)}")
    frame = store.read("noise").sort(pl.col("level").replace_strict(LEVELS, range(len(LEVELS)), default=9), maintain_order=True)
    wanted = {"engine": engine, "hardware": vocabulary.hardware(hardware).value if hardware else None, "metric": metric}
    for name, value in wanted.items():
        frame = frame.filter(pl.col(name) == value) if value else frame
    return [_noise(row) for row in frame.iter_rows(named=True)]


def _noise(row: dict[str, Any]) -> dict[str, Any]:
    raw = row["raw_scale"]
    return {
        **{name: row[name] for name in _NOISE},
        "scale_pct": row["scale"] * 100,
        "raw_scale_pct": raw * 100 if raw is not None else None,
        "repeats": row["repeats"],
        "insufficient": row["repeats"] < FEW,
        "until": row["until"],
        "version": row["version"],
    }


def upstream_changes(
    store: Store, span: tuple[str, str, str], facets: dict[str, Any], limit: int | None = None
) -> dict[str, Any]:
    """Return what upstream did between two builds; *span* is engine, FROM, TO (`changelog.answer.changes` has the shape)."""
    return changes(upstream_tables(store), *span, Configuration(**facets), limit)


def _found(store: Store, prefix: str) -> list[dict[str, Any]]:
    """Return the shifts whose id begins so, then the comparisons that are no shifts."""
    shifts = find_shifts(store, prefix=prefix)
    return shifts + [row for row in _diffs(store, prefix) if row["diff_id"] not in {shift["shift_id"] for shift in shifts}]


def _diffs(store: Store, prefix: str) -> list[dict[str, Any]]:
    frame = store.scan("diffs").filter(pl.col("diff_id").str.starts_with(prefix)).sort("to_measured_at", "diff_id")
    rows = store.collect("diffs", frame)
    curves = _curves(store, rows["curve_id"].unique().to_list())
    return [
        {"diff_id": row["diff_id"], "flagged": row["flagged"], **_shift(row, curves.get(row["curve_id"], {}))}
        for row in rows.iter_rows(named=True)
    ]


def _told(store: Store, answer: dict[str, Any]) -> dict[str, Any]:
    """Return a shift or comparison with evidence, upstream changes, and what is not known of it."""
    links = store.collect("links", store.scan("links").filter(pl.col("shift_id") == (answer["shift_id"] or "")).sort("rank"))
    told = {"diff_id": answer["shift_id"], "flagged": answer["status"] not in GONE, **answer}
    told |= {**evidence(store, answer), "upstream": _upstream(links), "now": None}
    if answer["status"] in GONE:
        told["now"] = next(map(_judged, _diffs(store, answer["shift_id"])), None)
    return {**told, "why_not": [] if answer["shift_id"] else why_not(told), "unknown": unknowns(told)}


def _judged(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "why_not": why_not(answer)}


def _curves(store: Store, wanted: list[str]) -> dict[str, dict[str, Any]]:
    fields = store.scan("points").filter(pl.col("curve_id").is_in(wanted)).select("curve_id", *IDENTITY_FIELDS)
    rows = store.collect("points", fields.unique("curve_id")).iter_rows(named=True)
    return {row["curve_id"]: {name: row[name] for name in IDENTITY_FIELDS} for row in rows}


def _shift(row: dict[str, Any], curve: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `shifts`, or of `diffs`, where what only a shift has is null."""
    scale = row["noise_scale"]
    return {
        **{name: row.get(name) for name in _TOP},
        "linked": row.get("linked") or [],
        "interval_pct": [row["interval_low_pct"], row["interval_high_pct"]],
        "noise_pct": scale * 100 if scale is not None else None,
        "noise_insufficient": Scale(scale, row["noise_level"], row["noise_repeats"]).insufficient if scale is not None else None,
        "curve": curve,
        "from": _side(row, "from"),
        "to": _side(row, "to"),
    }


def _side(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    values = {name: row[f"{prefix}_{name}"] for name in _SIDE}
    return {name: iso(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _upstream(links: pl.DataFrame) -> dict[str, Any] | None:
    if links.is_empty():
        return None
    head = links.row(0, named=True)
    return {
        "project": head["project"],
        "candidates": head["candidates"],
        "range_how": head["range_how"],
        "open_ended": head["open_ended"],
        "narrowed": head["narrowed"],
        "changes": links.select("rank", "score", "change_id", "kind", "commit", "pr", "title", "evidence").to_dicts(),
    }
