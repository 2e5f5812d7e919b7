"""Same-image pairs of real runs: how often they are blamed on an engine under another name, and which planted shifts are found.

A pair is one curve in two runs of one build, the later one against its baseline. The later side is given a newer image; nothing
that was measured after its night is shown, which is the worst case for a suspicion. `plant` puts a known change into that side.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import numpy as np
import polars as pl

from pipelines.detect import health
from pipelines.detect.night import detect

NEWER = {"build_id": "tag:renamed/image:v99", "image_ref": "renamed/image:v99", "image_digest": None, "engine_version": "99"}
SLOW_DOWN = ("ttft", "tpot", "itl", "e2el")
"""Families of latencies; throughput is the reverse."""
RATES = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu", "steady_output_tput_per_gpu")

Plant = Callable[[pl.DataFrame], pl.DataFrame]
"""Changes the points of one observation (the later side of a pair)."""


@dataclass(frozen=True)
class Pair:
    """One curve in two runs of one build, where and on what."""

    curve_id: str
    from_run: str
    to_run: str
    to_build: str
    hardware: str
    engine: str
    precision: str
    disagg: bool
    cells: int


def same_image_pairs(points: pl.DataFrame, least_cells: int = 2) -> list[Pair]:
    """Return the pairs of *points* that share at least *least_cells* cells."""
    diffs = detect(points).diffs.filter(pl.col("same_build") & (pl.col("cells") >= least_cells))
    names = ("curve_id", "from_run_id", "to_run_id", "to_build_id", "hardware", "engine", "precision", "disagg", "cells")
    return [Pair(*row) for row in diffs.select(names).sort("to_run_id", "curve_id", "to_build_id").iter_rows()]


def as_seen(points: pl.DataFrame, pairs: Iterable[Pair], plant: Plant | None = None, *, alone: bool = False) -> pl.DataFrame:
    """Return *points* up to the night of *pairs* (of one later run), their later sides renamed and changed by *plant*.

    With *alone* only the two runs of the pairs are there: a warehouse that has never seen a repeat.
    """
    pairs = list(pairs)
    run, curves = pairs[0].to_run, [pair.curve_id for pair in pairs]
    night = points.filter(pl.col("run_id") == run)["measured_at"].max()
    seen = points.filter(pl.col("measured_at") <= night)
    if alone:
        seen = seen.filter(pl.col("run_id").is_in([run, *(pair.from_run for pair in pairs)]))
    own = (pl.col("run_id") == run) & pl.col("curve_id").is_in(curves) & (pl.col("build_id") == pairs[0].to_build)
    renamed = seen.filter(own).with_columns(**{name: pl.lit(value, pl.String) for name, value in NEWER.items()})
    changed = plant(renamed) if plant else renamed
    return pl.concat([seen.filter(~own), health.judge(changed.drop("health", "verdict")).select(points.columns)])


def scaled(factor: float, part: str = "all", families: tuple[str, ...] = (*RATES, *SLOW_DOWN)) -> Plant:
    """Return a plant that makes an engine *factor* times as fast: on `all` cells, the `low` or `high` half, or `one` of them."""

    def plant(points: pl.DataFrame) -> pl.DataFrame:
        inside = _inside(part)
        rates = [name for name in RATES if name in families]
        times = [name for name in points.columns if name.rsplit("_", 1)[0] in families]
        return points.with_columns(
            *(pl.when(inside).then(pl.col(name) * factor).otherwise(name).alias(name) for name in rates),
            *(pl.when(inside).then(pl.col(name) / factor).otherwise(name).alias(name) for name in times),
        )

    return plant


def cold(share: float, part: str = "low") -> Plant:
    """Return a plant that lets the first burst wait: *share* of the median latency on the means, throughput falls with them."""

    def plant(points: pl.DataFrame) -> pl.DataFrame:
        inside, wait = _inside(part), pl.col("e2el_median") * share
        slower = pl.col("e2el_mean") / (pl.col("e2el_mean") + wait)
        return points.with_columns(
            *(pl.when(inside).then(pl.col(name) * slower).otherwise(name).alias(name) for name in RATES[:3]),
            *(pl.when(inside).then(pl.col(name) + wait).otherwise(name).alias(name) for name in ("ttft_mean", "e2el_mean")),
        )

    return plant


def _inside(part: str) -> pl.Expr:
    """Which cells belong to a part of each curve, by rank of the load."""
    load = pl.coalesce("concurrency", "request_rate")
    rank, count = load.rank("dense").over("curve_id"), load.n_unique().over("curve_id")
    return {
        "all": pl.lit(True),
        "low": rank <= (count + 1) // 2,
        "high": rank > count // 2,
        "one": rank == (count + 1) // 2,
    }[part]


@dataclass(frozen=True)
class Outcome:
    """What was said of one pair: attribution, status and size, or nothing; and which of the plain rules fire."""

    pair: Pair
    said: str | None
    status: str | None
    size_pct: float | None
    plain: dict[str, bool]

    def blames(self, direction: int = 0) -> bool:
        """Say whether the engine is blamed, for a change of that direction (0: any)."""
        return self.said == "engine" and (not direction or direction * (self.size_pct or 0) > 0)


def outcomes(points: pl.DataFrame, pairs: list[Pair], plant: Plant | None = None, how: str = "curve") -> Iterator[Outcome]:
    """Yield what detection says of each pair; *how*: renamed with its whole `stack` in the run, as one `curve`, or `alone`."""
    for group in _groups(pairs, how):
        seen = as_seen(points, group, plant, alone=how == "alone")
        shifts = detect(seen).shifts
        ours = shifts.filter((pl.col("to_build_id") == NEWER["build_id"]) & (pl.col("to_run_id") == group[0].to_run))
        by_curve: dict[str, dict[str, Any]] = {row["curve_id"]: row for row in ours.iter_rows(named=True)}
        for pair in group:
            row = by_curve.get(pair.curve_id, {})
            yield Outcome(pair, row.get("attribution"), row.get("status"), row.get("size_pct"), plain_rules(seen, pair))


def _groups(pairs: list[Pair], how: str) -> Iterator[list[Pair]]:
    def key(pair: Pair) -> tuple[str, ...]:
        return (pair.to_run, pair.to_build, pair.hardware if how == "stack" else pair.curve_id)

    for _key, group in itertools.groupby(sorted(pairs, key=key), key=key):
        yield list(group)


FIVE, TWENTY, LAST = math.log(1.05), math.log(1.2), 5


def plain_rules(seen: pl.DataFrame, pair: Pair) -> dict[str, bool]:
    """Return which rules of others fire on reported throughput of any one cell of the later side."""
    curve = seen.filter((pl.col("curve_id") == pair.curve_id) & ~pl.col("reused").fill_null(False))
    moved: dict[str, list[float]] = {"5 %": [], "last 5": []}
    for _load, cell in curve.sort("measured_at").group_by(pl.coalesce("concurrency", "request_rate"), maintain_order=True):
        new = cell.filter(pl.col("run_id") == pair.to_run)["tput_per_gpu"].log().to_list()
        old = cell.filter(pl.col("run_id") != pair.to_run)["tput_per_gpu"].log().to_list()
        if new and old:
            moved["5 %"].append(new[-1] - old[-1])
            moved["last 5"].append(new[-1] - median(old[-LAST:]))
    return {
        "5 % on any point": any(abs(value) >= FIVE for value in moved["5 %"]),
        "±20 % on any point": any(abs(value) >= TWENTY for value in moved["5 %"]),
        "5 % from the median of the last five": any(abs(value) >= FIVE for value in moved["last 5"]),
    }


@dataclass(frozen=True)
class Scenario:
    """What is planted in the later side of every pair that is long enough, and its direction (0: nothing happened)."""

    name: str
    plant: Plant | None
    direction: int
    least_cells: int = 2
    how: str = "curve"


LATENCIES = ("tpot", "itl")
SCENARIOS = (
    Scenario("nothing", None, 0),
    Scenario("nothing, the whole stack renamed", None, 0, how="stack"),
    Scenario("nothing, no history", None, 0, how="alone"),
    Scenario("cold starts on the lower half", cold(0.4), 0),
    Scenario("one cell 30 % slower", scaled(1 / 1.3, "one"), 0, 3),
    Scenario("TPOT alone 10 % slower", scaled(1 / 1.1, "all", LATENCIES), -1),
    Scenario("5 % faster", scaled(1.05), 1),
    Scenario("5 % slower", scaled(1 / 1.05), -1),
    Scenario("5 % slower, no history", scaled(1 / 1.05), -1, how="alone"),
    Scenario("10 % faster", scaled(1.1), 1),
    Scenario("10 % slower", scaled(1 / 1.1), -1),
    Scenario("10 % faster, lower half", scaled(1.1, "low"), 1, 4),
    Scenario("10 % slower, lower half", scaled(1 / 1.1, "low"), -1, 4),
    Scenario("10 % faster, upper half", scaled(1.1, "high"), 1, 4),
    Scenario("10 % slower, upper half", scaled(1 / 1.1, "high"), -1, 4),
)
QUIET = (
    Scenario("nothing", None, 0),
    Scenario("2 % faster", scaled(1.02), 1),
    Scenario("2 % slower", scaled(1 / 1.02), -1),
)


def is_quiet(pair: Pair) -> bool:
    """Say whether the stack is one of those whose curve medians are known to stay within half a percent."""
    vllm = pair.engine == "vllm" and pair.hardware in ("h100", "h200")
    return vllm or (pair.engine == "sglang" and pair.hardware == "mi355x" and pair.precision == "fp4" and not pair.disagg)


def false_discoveries(points: pl.DataFrame, pairs: list[Pair], rounds: int, seed: int) -> tuple[int, int, float]:
    """Return planted shifts found, others found, and the mean share of false ones among what is found in a night.

    Every night the stacks' later sides are renamed and a fifth of their curves is made 6 % faster or slower.
    """
    random = np.random.default_rng(seed)
    true = false = 0
    shares: list[float] = []
    for _round in range(rounds):
        for group in _groups(pairs, "stack"):
            chosen = [pair for pair in group if random.random() < PLANTED]
            seen = as_seen(points, group)
            for pair in chosen:
                own = (pl.col("curve_id") == pair.curve_id) & (pl.col("build_id") == NEWER["build_id"])
                changed = scaled(1.06 ** random.choice((-1.0, 1.0)))(seen.filter(own))
                seen = pl.concat([seen.filter(~own), changed.select(seen.columns)])
            found = detect(seen).shifts.filter((pl.col("to_build_id") == NEWER["build_id"]) & (pl.col("attribution") == "engine"))
            blamed = set(found["curve_id"].to_list())
            hits = len(blamed & {pair.curve_id for pair in chosen})
            true, false = true + hits, false + len(blamed) - hits
            shares.append((len(blamed) - hits) / max(1, len(blamed)))
    return true, false, mean(shares)


PLANTED = 0.2


def cold_starts(points: pl.DataFrame) -> dict[str, int]:
    """Return how many points must be called cold, must not be, and how many of either are told wrongly (D8)."""
    ttft, e2el = pl.col("ttft_mean") / pl.col("ttft_median"), pl.col("e2el_mean") / pl.col("e2el_median")
    flagged = pl.col("health").list.contains(health.COLD_START)
    must, must_not = (ttft >= 3) & (e2el >= 1.1), e2el < 1.03
    return {
        "must": points.filter(must).height,
        "missed": points.filter(must & ~flagged).height,
        "must not": points.filter(must_not).height,
        "wrong": points.filter(must_not & flagged).height,
    }


def whole(points: pl.DataFrame, rounds: int = 5) -> tuple[int, float]:
    """Return how many points there are, and the least processor seconds of detection over some rounds."""
    spent = []
    for _round in range(rounds):
        start = time.process_time()
        detect(points)
        spent.append(time.process_time() - start)
    return points.height, min(spent)


def one_build(points: pl.DataFrame) -> tuple[int, dict[str, int]]:
    """Return how many comparisons have one build on both sides, and what was said of those that moved (D12)."""
    found = detect(points)
    said = found.shifts.filter("same_build").group_by("attribution").len().sort("attribution")
    return found.diffs.filter("same_build").height, dict(said.iter_rows())
