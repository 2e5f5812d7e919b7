"""Shifts, their explanation, and upstream changes as JSON-ready objects: shapes that other tools rely on."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl

from changelog.answer import changes
from changelog.facets import Configuration
from pipelines.detect.observations import LOAD, load_of
from pipelines.projections import upstream
from warehouse.cell import IDENTITY_FIELDS
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.store import Store

SHORTEST_PREFIX = 6
_TOP = (
    "shift_id",
    "event_key",
    "status",
    "status_reason",
    "direction",
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
_KEY = ("run_source", "run_id", "run_attempt", "build_id")
_SHOWN = ("tput_per_gpu", "steady_output_tput_per_gpu", "tpot_median", "ttft_mean", "ttft_median", "verdict")


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
    """Return one shift with its ranked upstream changes; *prefix* is its id or a unique beginning of it."""
    found = [shift for shift in find_shifts(store) if shift["shift_id"].startswith(prefix.lower())]
    if len(prefix) < SHORTEST_PREFIX or not found:
        raise InputError(
            f"shift {prefix[:40]!r}: no such shift; `shiftlog shifts` lists them (at least {SHORTEST_PREFIX} characters)"
        )
    if len(found) > 1:
        raise InputError(f"shift {prefix!r}: {len(found)} shifts begin so; give more characters")
    links = store.collect("links", store.scan("links").filter(pl.col("shift_id") == found[0]["shift_id"]).sort("rank"))
    return {**found[0], "concurrencies": _concurrencies(store, found[0]), "upstream": _upstream(links)}


def upstream_changes(
    store: Store, span: tuple[str, str, str], facets: dict[str, Any], limit: int | None = None
) -> dict[str, Any]:
    """Return what upstream did between two builds; *span* is engine, FROM, TO (`changelog.answer.changes` has the shape)."""
    return changes(upstream(store), *span, Configuration(**facets), limit)


def _concurrencies(store: Store, shift: dict[str, Any]) -> list[dict[str, Any]]:
    """Return both sides of a comparison by concurrency; a side that its run did not measure is absent (a repeat stood for it)."""
    live = store.scan("points").filter(pl.col("retraction").is_null() & (pl.col("curve_id") == shift["curve_id"]))
    curve = live.select(*LOAD, *_KEY, *_SHOWN)
    points = store.collect("points", curve.sort(*LOAD, *_KEY)).to_dicts()
    rows: dict[float, dict[str, Any]] = {}
    for side in ("from", "to"):
        for point in points:
            if all(point[name] == shift[side][name] for name in _KEY):
                row = rows.setdefault(load_of(point), {name: point[name] for name in LOAD})
                row[side] = {name: point[name] for name in _SHOWN}
    return [{**dict.fromkeys(("from", "to")), **row} for _load, row in sorted(rows.items())]


def _curves(store: Store, wanted: list[str]) -> dict[str, dict[str, Any]]:
    fields = store.scan("points").filter(pl.col("curve_id").is_in(wanted)).select("curve_id", *IDENTITY_FIELDS)
    rows = store.collect("points", fields.unique("curve_id")).iter_rows(named=True)
    return {row["curve_id"]: {name: row[name] for name in IDENTITY_FIELDS} for row in rows}


def _shift(row: dict[str, Any], curve: dict[str, Any]) -> dict[str, Any]:
    scale = row["noise_scale"]
    return {
        **{name: row[name] for name in _TOP},
        "interval_pct": [row["interval_low_pct"], row["interval_high_pct"]],
        "noise_pct": scale * 100 if scale is not None else None,
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
        "changes": links.select("rank", "score", "change_id", "commit", "pr", "title", "evidence").to_dicts(),
    }
