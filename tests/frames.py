"""Hand-made rows and frames in the exact schema of a table, for tests.

`point(concurrency=8)` is a whole row whose other values are plain defaults; `frame("points", [..])` a frame with every column,
null where a row says nothing. A name that the table does not have is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from warehouse.schemas import TABLES

Row = dict[str, Any]
START = datetime(2026, 1, 1, 6, tzinfo=UTC)
IDENTITY: Row = {
    "hardware": "mi355x",
    "engine": "vllm",
    "framework": "vllm",
    "model": "dsr1",
    "precision": "fp8",
    "spec_decoding": "none",
    "disagg": False,
    "is_multinode": False,
    "tp": 8,
    "scenario": "fixed-seq-len",
    "isl": 1024,
    "osl": 1024,
}
CONTEXT = {
    name: IDENTITY[name]
    for name in ("hardware", "engine", "framework", "model", "precision", "spec_decoding", "disagg", "isl", "osl")
}


def day(number: float) -> datetime:
    """Return the instant *number* days after START."""
    return START + timedelta(days=number)


def row(table: str, defaults: Row, overrides: Row) -> Row:
    """Return a row of *table*: nulls, then *defaults*, then *overrides*."""
    schema = TABLES[table].schema
    unknown = [name for name in (*defaults, *overrides) if name not in schema]
    assert not unknown, f"{table} has no {unknown}"
    return {**dict.fromkeys(schema.names()), **defaults, **overrides}


def frame(table: str, rows: list[Row] | None = None) -> pl.DataFrame:
    """Return *rows* as a frame in the schema of *table*."""
    return pl.DataFrame(rows or [], schema=TABLES[table].schema)


def build_of(version: str) -> Row:
    """Return the four columns of a build that a point or one side of a comparison carries."""
    ref = f"vllm/vllm-openai:v{version}"
    return {"build_id": f"tag:{ref}", "image_ref": ref, "image_digest": None, "engine_version": version}


def point(**overrides: Any) -> Row:
    defaults = {
        "point_id": "p0",
        "sequence": 1,
        "record_hash": "r0",
        "measurement_key": 0,
        "record_format": "inferencex",
        "cell_id": "cell",
        "curve_id": "curve",
        "run_source": "local",
        "run_id": "100",
        "run_attempt": 1,
        "measured_at": START,
        "run_started_at": START,
        "recorded_at": day(60),
        "declared": False,
        **build_of("0.90.0"),
        **IDENTITY,
        "concurrency": 8,
        "num_gpus": 8,
        "tput_per_gpu": 1000.0,
        "steady_output_tput_per_gpu": 500.0,
        "health": [],
        "verdict": "fit",
    }
    return row("points", defaults, overrides)


def comparison(**overrides: Any) -> Row:
    """Return the columns that `diffs` and `shifts` share: v0.90.0 → v0.91.0, -8.1 %, six of six cells."""
    sides = {
        f"{side}_{name}": value
        for side, version, at, run in (("from", "0.90.0", START, "100"), ("to", "0.91.0", day(3), "103"))
        for name, value in {
            "measured_at": at,
            "recorded_at": day(60),
            "run_id": run,
            "run_source": "local",
            "run_attempt": 1,
            **build_of(version),
        }.items()
    }
    return {
        "curve_id": "curve",
        **CONTEXT,
        **sides,
        "gap_days": 3.0,
        "cells": 6,
        "cells_total": 6,
        "metric": "steady_output_tput_per_gpu",
        "part": "curve",
        "size": -0.0845,
        "size_pct": -8.1,
        "interval_low_pct": -8.9,
        "interval_high_pct": -7.3,
        "coherent": True,
        "agreeing": 6,
        "reported_pct": -7.9,
        "steady_pct": -8.1,
        "tpot_pct": -8.4,
        "ttft_pct": -2.0,
        "noise_scale": 0.006,
        "noise_level": "stack",
        "noise_repeats": 14,
        "p_value": 0.00012,
        "q_value": 0.004,
        "change_set": ["build"],
        "change_detail": ["build: 0.90.0 → 0.91.0"],
        "same_build": False,
        "attribution": "engine",
        "health": [],
        "flagged": True,
        **overrides,
    }


def diff(**overrides: Any) -> Row:
    return row("diffs", {"diff_id": "d0", **comparison()}, overrides)


def shift(**overrides: Any) -> Row:
    defaults = {
        "shift_id": "s0",
        "event_key": "e0",
        "status": "confirmed",
        "status_reason": "3 of 3 sibling curves",
        "direction": "regression",
        "siblings": 3,
        "siblings_total": 3,
        **comparison(),
    }
    return row("shifts", defaults, overrides)


def link(**overrides: Any) -> Row:
    defaults = {
        "shift_id": "s0",
        "change_id": "vllm@0123456789ab",
        "rank": 1,
        "score": 4.0,
        "evidence": ["changes the AMD attention path"],
        "candidates": 212,
        "range_how": "between tags v0.90.0 and v0.91.0",
        "open_ended": False,
        "project": "vllm",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "pr": 4242,
        "title": "[ROCm][Perf] Change the default backend (#4242)",
        "kind": "commit",
        "narrowed": True,
    }
    return row("links", defaults, overrides)


def noise(**overrides: Any) -> Row:
    defaults = {
        "level": "stack",
        "hardware": "mi355x",
        "engine": "vllm",
        "metric": "steady_output_tput_per_gpu",
        "unit": "curve",
        "scale": 0.006,
        "raw_scale": 0.005,
        "repeats": 14,
    }
    return row("noise", defaults, overrides)


def build(version: str = "0.90.0", **overrides: Any) -> Row:
    defaults = {
        **build_of(version),
        "repo": "vllm/vllm-openai",
        "tag": f"v{version}",
        "engine": "vllm",
        "source": "tag",
        "confidence": "high",
        "build_order": 1,
        "first_measured_at": START,
        "last_measured_at": day(3),
        "first_recorded_at": day(60),
        "points": 6,
    }
    return row("builds", defaults, overrides)


def run(**overrides: Any) -> Row:
    defaults = {
        "run_source": "local",
        "run_id": "100",
        "run_attempt": 1,
        "started_at": START,
        "declared": False,
        "reports": 1,
        "points": 6,
        "recorded_at": day(60),
    }
    return row("runs", defaults, overrides)


def quarantined(**overrides: Any) -> Row:
    defaults = {
        "event_id": "q0",
        "name": "bad.json",
        "sha256": "0" * 64,
        "position": "row 3",
        "reason": "tput is not a number",
        "excerpt": "{",
        "recorded_at": day(60),
    }
    return row("quarantine", defaults, overrides)


COMMIT = ("project", "commit", "parents", "author_date", "committer_date", "title", "pr", "paths", "paths_omitted", "recorded_at")


def commits(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Return a frame of `commits` from rows whose values are those of COMMIT, in this order."""
    return frame("commits", [dict(zip(COMMIT, row, strict=True)) for row in rows])
