"""What is on record round one comparison: both sides by load, fitness of their runs, frontiers of the same runs, other runs.

Belongs here: reading tables into JSON-ready objects. Does not: judging (`pipelines.detect`), sentences (`explanation`, `doubts`).
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import polars as pl

from pipelines.detect.fitness import CURVE_LEVEL
from pipelines.detect.observations import LOAD, load_of
from pipelines.detect.rare import HEADLINES
from warehouse.schemas import CONTEXT
from warehouse.store import Store

Answer = dict[str, Any]
"""A shift or another comparison as `pipelines.answers` gives it."""
SIDES = ("from", "to")
_KEY = ("run_source", "run_id", "run_attempt", "build_id")
_SHOWN = ("tput_per_gpu", "steady_output_tput_per_gpu", "tpot_median", "ttft_mean", "ttft_median", "verdict")
_SETUP = ("recipe_fingerprint", "hardware_label", "checkpoint")
_STACK = ("hardware", "engine", "framework")
_FITNESS = (
    "verdict",
    "reasons",
    "points",
    "unfit",
    "incoherent_at",
    "excess_s",
    "burst_wait_s",
    "explained_share",
    "run_shift",
    "run_curves",
    "run_repeats",
)
_FRONTIER = (
    "interactivity",
    "size_pct",
    "interval_low_pct",
    "interval_high_pct",
    "steady_size_pct",
    "coverage_pct",
    "cells_shared",
    "cells_gained",
    "cells_lost",
    "rerun_pct",
    "rerun_level",
    "rerun_pairs",
    "matched_pct",
    "fronts_differ",
    "stands_out",
    "missing",
    "from_run_id",
)
_NARROWER = ("scenario", "workload", "arrival", "system")
"""What a frontier is told apart by besides the columns of a comparison."""


def is_rare(answer: Answer) -> bool:
    """Say whether a comparison is one of a rare series: a single cell on either side."""
    return bool(answer["cells"] == answer["cells_total"] == 1)


def evidence(store: Store, answer: Answer) -> dict[str, Any]:
    """Return what the tables hold round a comparison, by the names of the fields of `shiftlog explain --format json`."""
    points = _points(store, answer)
    return {
        "concurrencies": _concurrencies(points, answer),
        "headline": _headline(points, answer) if is_rare(answer) else None,
        "recorded": {side: _setup(_of(points, answer, side)) for side in SIDES},
        "runs": {side: _runs(points, answer[side]["build_id"]) for side in SIDES},
        "fitness": _fitness(store, answer),
        "frontier": _frontier(store, answer),
    }


def _points(store: Store, answer: Answer) -> list[dict[str, Any]]:
    """Return the live points of the curve."""
    live = store.scan("points").filter(pl.col("retraction").is_null() & (pl.col("curve_id") == answer["curve_id"]))
    names = dict.fromkeys((*LOAD, *_KEY, *_SHOWN, *_SETUP, "reused", "record_hash", *_headline_column(answer)))
    return store.collect("points", live.select(list(names)).sort(*LOAD, *_KEY, "record_hash")).to_dicts()


def _headline_column(answer: Answer) -> tuple[str, ...]:
    """Return the column that holds the result of a rare series: its own, or the one for all others."""
    if not is_rare(answer):
        return ()
    return (answer["metric"],) if answer["metric"].endswith("tput_per_gpu") else ("metrics_other",)


def _of(points: list[dict[str, Any]], answer: Answer, side: str) -> list[dict[str, Any]]:
    return [point for point in points if all(point[name] == answer[side][name] for name in _KEY)]


def _concurrencies(points: list[dict[str, Any]], answer: Answer) -> list[dict[str, Any]]:
    """Return both sides by load; a side that its run did not measure is absent (a repeat stood for it)."""
    rows: dict[float, dict[str, Any]] = {}
    for side in SIDES:
        for point in _of(points, answer, side):
            row = rows.setdefault(load_of(point), {name: point[name] for name in LOAD})
            row[side] = {name: point[name] for name in _SHOWN}
    return [{**dict.fromkeys(SIDES), **row} for _load, row in sorted(rows.items())]


def _headline(points: list[dict[str, Any]], answer: Answer) -> dict[str, Any] | None:
    """Return the result of a rare series on both sides; the earlier one, maybe another system's, follows from the change."""
    values = [value for point in _of(points, answer, "to") for value in _values(point, answer["metric"]) if value > 0]
    if not values:
        return None
    latest = math.exp(median(math.log(value) for value in values))
    factor = (1 + answer["size_pct"] / 100) ** HEADLINES[answer["metric"]]
    return {"metric": answer["metric"], "from": latest / factor, "to": latest}


def _values(point: dict[str, Any], metric: str) -> list[float]:
    if metric in point:
        return [point[metric]] if point[metric] is not None else []
    return [float(other["value"]) for other in point["metrics_other"] or () if other["name"] == metric]


def _setup(points: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what records tell of how a side was launched and where, null where they do not; None where there is no record."""
    if not points:
        return None
    return {name: next((point[name] for point in points if point[name] is not None), None) for name in _SETUP}


def _runs(points: list[dict[str, Any]], build_id: str | None) -> int:
    """Return how many runs measured this curve on a build; a record that stands under another run as well counts there only."""
    return len({tuple(p[name] for name in _KEY) for p in points if p["build_id"] == build_id and not p["reused"]})


def _fitness(store: Store, answer: Answer) -> dict[str, Any]:
    """Return for each side what was found about its curve and about the whole run, None where nothing is on record."""
    runs = [answer[side]["run_id"] for side in SIDES]
    rows = store.collect("fitness", store.scan("fitness").filter(pl.col("run_id").is_in(runs))).to_dicts()
    return {side: _fitness_of([row for row in rows if _is_side(row, answer, side)], answer) for side in SIDES}


def _is_side(row: dict[str, Any], answer: Answer, side: str) -> bool:
    same_stack = all(row[name] == answer[name] for name in _STACK)
    return same_stack and all(row[name] == answer[side][name] for name in _KEY)


def _fitness_of(rows: list[dict[str, Any]], answer: Answer) -> dict[str, Any] | None:
    curve = next((row for row in rows if row["level"] == CURVE_LEVEL and row["curve_id"] == answer["curve_id"]), None)
    run = next((row for row in rows if row["level"] != CURVE_LEVEL), None)
    if curve is None:
        return None
    return {**{name: curve[name] for name in _FITNESS[:8]}, "run": {name: run[name] for name in _FITNESS} if run else None}


def _frontier(store: Store, answer: Answer) -> list[dict[str, Any]]:
    """Return how the frontier of the later run and stack moved: the whole first, then each target that both sides reach."""
    same = [pl.col(f"to_{name}").eq_missing(pl.lit(answer["to"][name])) for name in _KEY]
    same += [pl.col(column.name).eq_missing(pl.lit(answer[column.name])) for column in CONTEXT]
    same += [pl.col(name).eq_missing(pl.lit(answer["curve"].get(name))) for name in _NARROWER]
    found = store.collect("frontier_diffs", store.scan("frontier_diffs").filter(*same))
    run = answer["from"]["run_id"]
    best = found.sort((pl.col("from_run_id") == run).not_(), "comparison_id", "interactivity", nulls_last=False).to_dicts()
    rows = [row for row in best if row["comparison_id"] == best[0]["comparison_id"]]
    return [{name: row[name] for name in _FRONTIER} for row in rows if row["interactivity"] is None or row["missing"] is None]
