"""Software velocity: how a stack's speed on one model moved from build to build, like for like.

Each comparison of a curve with its previous comparable observation says by how much (log-ratio of steady-state throughput)
one build is faster than another. A build's level is the median, over the comparisons that lead to it, of the earlier build's
level plus that size; the first build of a line is 100. A comparison within one build says nothing of velocity, and one that
is put down to the measurement or the environment, by itself or once later runs were seen, says nothing at all.

Belongs here: levels of builds and their noise. Does not: drawing (`charts`), the noise floor itself (`pipelines.detect`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

import polars as pl

from pipelines.detect.states import GONE
from pipelines.report import words

GROUP = ("engine", "hardware", "model", "precision")
"""One line of the chart."""
_RUN = ("measured_at", "run_source", "run_id", "run_attempt")
PAIR = ("curve_id", *(f"{side}_{name}" for side in ("from", "to") for name in _RUN))
"""One comparison, in `diffs` and in `shifts`."""
NOT_THE_ENGINE = ("measurement", "environment")
"""Attributions that a run of the same image could earn."""
T_95 = 2.3534
"""95 % point of Student's t with 3 degrees of freedom (the test that detection uses): both tails make a 90 % interval."""

SCHEMA = pl.Schema(
    {
        **{name: pl.String() for name in GROUP},
        "build_id": pl.String(),
        "build": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "until": pl.Datetime("us", "UTC"),
        "index": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "comparisons": pl.Int64(),
        "mixed": pl.Boolean(),
        "linked": pl.Boolean(),
    }
)
"""`at`: first measured; `until`: last comparison of the line; `mixed`: more than the build differs in some comparison that
leads here; `linked`: false where no comparison leads here, so that the level is only carried on."""


class Level(NamedTuple):
    """Level of one build: log of its speed over the first build's, and the build changes since the line (re)started."""

    log: float
    changes: int
    comparisons: int = 0
    mixed: bool = False
    linked: bool = False


def velocity(diffs: pl.DataFrame, shifts: pl.DataFrame, noise: pl.DataFrame) -> pl.DataFrame:
    """Return one row a build and line, in SCHEMA, ordered by line and time; lines of one build alone are left out.

    A shift's attribution is newer than that of its comparison, so it counts.
    """
    scales = _scales(noise)
    rows: list[dict[str, Any]] = []
    ordered = _settled(diffs, shifts).sort("to_measured_at", "curve_id", "diff_id", nulls_last=True)
    for key, part in sorted(ordered.partition_by(GROUP, as_dict=True).items(), key=lambda item: tuple(map(str, item[0]))):
        moves = part.filter(_counts()).to_dicts()
        if moves:
            floor = _scale_of(scales, key[0], key[1])
            rows += [{**dict(zip(GROUP, key, strict=True)), **row} for row in _line(moves, part, floor)]
    return pl.DataFrame(rows, schema=SCHEMA)


def _settled(diffs: pl.DataFrame, shifts: pl.DataFrame) -> pl.DataFrame:
    withdrawn = pl.col("status").is_in(GONE) | pl.col("attribution").is_in(NOT_THE_ENGINE)
    return diffs.join(shifts.filter(withdrawn), on=PAIR, how="anti", nulls_equal=True)


def _counts() -> pl.Expr:
    moved = ~pl.col("same_build").fill_null(True) & pl.col("from_build_id").ne(pl.col("to_build_id"))
    sized = pl.col("steady_pct").is_finite() & (pl.col("steady_pct") > -100)
    timed = pl.col("from_measured_at").is_not_null() & pl.col("to_measured_at").is_not_null()
    return moved & sized & timed & ~pl.col("attribution").fill_null("unknown").is_in(NOT_THE_ENGINE)


def _line(moves: list[dict[str, Any]], compared: pl.DataFrame, floor: float | None) -> list[dict[str, Any]]:
    names: dict[str, str] = {}
    into: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for move in moves:
        for side, name in zip(("from", "to"), words.transition(move), strict=True):
            names.setdefault(move[f"{side}_build_id"], name)
        into[move["to_build_id"]].append(move)
    seen = _first_seen(compared)
    builds = sorted(names, key=lambda build: (seen[build], build))
    levels, until = _levels(builds, into), compared["to_measured_at"].max()
    return [_row(build, names[build], seen[build], until, levels[build], floor) for build in builds]


def _first_seen(compared: pl.DataFrame) -> dict[str, datetime]:
    sides = [compared.select(build=f"{side}_build_id", at=f"{side}_measured_at") for side in ("from", "to")]
    first = pl.concat(sides).drop_nulls().group_by("build").agg(pl.col("at").min())
    return dict(first.iter_rows())


def _levels(builds: list[str], into: dict[str, list[dict[str, Any]]]) -> dict[str, Level]:
    levels: dict[str, Level] = {}
    last = Level(0.0, 0)
    for build in builds:
        known = [move for move in into[build] if move["from_build_id"] in levels]
        if known:
            sizes = [levels[move["from_build_id"]].log + math.log1p(move["steady_pct"] / 100) for move in known]
            changes = 1 + max(levels[move["from_build_id"]].changes for move in known)
            mixed = any(len(set(move["change_set"] or ()) - {"search_space"}) > 1 for move in known)
            levels[build] = Level(median(sizes), changes, len(known), mixed, True)
        else:
            levels[build] = Level(last.log, 0)
        last = levels[build]
    return levels


def _row(build: str, name: str, at: datetime, until: Any, level: Level, floor: float | None) -> dict[str, Any]:
    # Each build change adds the noise of two observations: s * sqrt(2) a change, independent of one another.
    reach = None if floor is None else T_95 * floor * math.sqrt(2 * level.changes)
    low, high = (None, None) if reach is None else (100 * math.exp(level.log - reach), 100 * math.exp(level.log + reach))
    return {
        "build_id": build,
        "build": name,
        "at": at,
        "until": until,
        "index": 100 * math.exp(level.log),
        "low": low,
        "high": high,
        "comparisons": level.comparisons,
        "mixed": level.mixed,
        "linked": level.linked,
    }


def _scales(noise: pl.DataFrame) -> dict[tuple[str, str, str], float]:
    curves = noise.filter((pl.col("unit") == "curve") & pl.col("scale").is_finite())
    found: dict[tuple[str, str, str], float] = {}
    for metric in ("tput_per_gpu", "steady_output_tput_per_gpu"):  # the later one wins: the sizes are of steady-state throughput
        for row in curves.filter(pl.col("metric") == metric).iter_rows(named=True):
            found[row["level"], row["engine"] or "", row["hardware"] or ""] = row["scale"]
    return found


def _scale_of(scales: dict[tuple[str, str, str], float], engine: Any, hardware: Any) -> float | None:
    order = (("stack", engine or "", hardware or ""), ("engine", engine or "", ""), ("global", "", ""))
    return next((scales[key] for key in order if key in scales), None)
