"""How well the second pass finds changes in series of days: real residuals with planted steps, nulls, TCPD, and its speed.

`evaluate` returns plain numbers. Residuals are log-ratios of reported throughput (median over the cells of a curve, unfit cells
kept) between consecutive repeats of one build on one curve; series are drawn from them with replacement, seeded. A log-ratio has
the noise of two observations, which makes the series harder than life. The settings were chosen on TensorRT-LLM and vLLM; the
scores are of SGLang, whose figures were seen while settings were compared.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import polars as pl

from bench.evaluation import tcpd
from bench.evaluation.rivals import RIVALS, Rival, Rule
from pipelines.detect.observations import REPORTED, Observation, observe
from pipelines.detect.partition import Floats, partitions
from pipelines.detect.replay import CONFIRMED, replay_many
from pipelines.detect.series import DAYS, FLOOR, Rules, describe, penalties, segment_many

TUNED_ON, SCORED_ON = ("trtllm", "vllm"), ("sglang",)
SEED = 20260301
STEP = 0.05
"""Planted change, logarithmic."""
MARGIN = 1
"""Observations by which a change point may miss the planted step."""
EDGE = 3
"""Observations at least before a planted step, and two after it."""
LENGTHS = (10, 20, 40, 90)
T3_SCALE = 1.134
"""1.4826 × median absolute value of Student's t with 3 degrees of freedom: what a robust scale makes of it."""

SOME = 300
"""Series on which others are replayed."""

Found = list[tuple[int, ...]]


def evaluate(points: pl.DataFrame, data: Path, *, series: int = 1000, nulls: int = 3000) -> dict[str, Any]:
    """Return all figures; *points* are those of the real runs, *data* is the folder of real data."""
    pools = residuals(points)
    scored = np.concatenate([pools[engine] for engine in SCORED_ON])
    tuned = np.concatenate([pools[engine] for engine in TUNED_ON])
    return {
        "residuals": {"tuned on": _spread(tuned), "scored on": _spread(scored)},
        "days": {"scored": day_series(scored, series), "tuned": day_series(tuned, series, rivals=False)},
        "replay": {"scored": replayed(scored, series), "tuned": replayed(tuned, series, rivals=False)},
        "nulls": null_rates(nulls),
        "tcpd": tcpd.evaluate(data / "detect" / "tcpd"),
        "speed": speed(),
    }


def residuals(points: pl.DataFrame) -> dict[str, Floats]:
    """Return by engine the log-ratios between each observation and the latest earlier repeat of its setup."""
    found: dict[str, list[float]] = {}
    for history in observe(points, ("engine",)).values():
        for index, new in enumerate(history):
            old = next((earlier for earlier in reversed(history[:index]) if earlier.repeats(new)), None)
            moved = None if old is None else _moved(old, new)
            if moved is not None:
                found.setdefault(str(new.context["engine"]), []).append(moved)
    return {engine: np.array(values) for engine, values in sorted(found.items())}


def _moved(old: Observation, new: Observation) -> float | None:
    ratios = [new.cells[load].values[REPORTED] - old.cells[load].values[REPORTED] for load in new.cells if load in old.cells]
    there = [ratio for ratio in ratios if math.isfinite(ratio)]
    return median(there) if len(there) > 1 else None


def _spread(pool: Floats) -> dict[str, float]:
    away = np.abs(pool)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "max": 1.0}
    return {"count": len(pool), **{name: float(np.quantile(away, share)) for name, share in shares.items()}}


def _planted(pool: Floats, count: int, series: int) -> tuple[list[Floats], list[Floats], list[int]]:
    """Return series without a change, the same with a step up or down, and where it is."""
    random = np.random.default_rng((SEED, count))
    flat = random.choice(pool, (series, count))
    at = random.integers(EDGE, count - 1, series)
    step = np.where(np.arange(count) >= at[:, None], STEP, 0.0) * random.choice((-1.0, 1.0), (series, 1))
    return list(flat), list(flat + step), at.tolist()


def day_series(pool: Floats, series: int, *, rivals: bool = True) -> list[dict[str, Any]]:
    """Return F1 at a planted step, and how often anything is found without one, for each length and rule."""
    rows = []
    for count in LENGTHS:
        flat, stepped, at = _planted(pool, count, series)
        for name, find in _finders(rivals).items():
            rows.append({"n": count, "rule": name, "f1": _f1(find(stepped), at), "null": mean(map(bool, find(flat)))})
    return rows


def _finders(rivals: bool) -> dict[str, Callable[[list[Floats]], Found]]:
    ours: dict[str, Callable[[list[Floats]], Found]] = {"ours": lambda many: segment_many(many, [FLOOR] * len(many))}
    return {**ours, **{name: _one_by_one(rival.find) for name, rival in RIVALS.items()}} if rivals else ours


def _one_by_one(rule: Rule) -> Callable[[list[Floats]], Found]:
    return lambda many: [rule(levels, FLOOR) for levels in many]


def _f1(found: Found, at: list[int]) -> float:
    hits = sum(any(_near(start, place) for start in starts) for starts, place in zip(found, at, strict=True))
    return 2 * hits / (sum(map(len, found)) + len(at))


def _near(start: int, place: int) -> bool:
    return abs(start - place) <= MARGIN


def replayed(pool: Floats, series: int, *, rivals: bool = True) -> list[dict[str, Any]]:
    """Return what is said day by day over series with one planted step each, for each length and rule.

    Retracted: change points that a later day no longer has, of those said. A rule that looks at one day never takes back.
    """
    rows = []
    for count in LENGTHS:
        _flat, stepped, at = _planted(pool, count, series)
        said = [_ours(history.said) for history in replay_many(stepped, [FLOOR] * series)]
        rows.append({"n": count, "rule": "ours", **_course(said, at, count)})
        for name, rival in RIVALS.items() if rivals else ():
            days = [_said(rival, levels) for levels in stepped[:SOME]]
            rows.append({"n": count, "rule": name, **_course(days, at[:SOME], count)})
    return rows


Statement = tuple[int, int, bool]
"""Day, place of the change, whether it is said (or taken back)."""


def _ours(said: Any) -> list[Statement]:
    return [(one.day, one.start, one.status == CONFIRMED) for one in said if one.status in (CONFIRMED, "retracted")]


def _said(rival: Rival, levels: Floats) -> list[Statement]:
    if rival.delay is None:
        return _day_by_day(rival.find, levels)
    return [(start + rival.delay, start, True) for start in rival.find(levels, FLOOR)]


def _day_by_day(rule: Rule, levels: Floats) -> list[Statement]:
    """Return what a rule says of every prefix that it did not say the day before; a place may move by the margin."""
    said: list[Statement] = []
    standing: set[int] = set()
    for day in range(1, len(levels)):
        now = rule(levels[: day + 1], FLOOR)
        gone = {old for old in standing if not any(_near(old, start) for start in now)}
        fresh = {start for start in now if not any(_near(old, start) for old in standing)}
        said += [(day, old, False) for old in sorted(gone)] + [(day, start, True) for start in sorted(fresh)]
        standing = (standing - gone) | fresh
    return said


def _course(said: list[list[Statement]], at: list[int], count: int) -> dict[str, float]:
    first = [(day, place, own) for own, statements in enumerate(said) for day, place, fresh in statements if fresh]
    taken_back = sum(not fresh for statements in said for _day, _place, fresh in statements)
    hits: dict[int, int] = {}
    for day, place, own in sorted(first):
        if _near(place, at[own]):
            hits.setdefault(own, day - at[own])
    false = sum(not _near(place, at[own]) for _day, place, own in first)
    return {
        "retracted": taken_back / max(1, len(first)),
        "false_per_100_days": 100 * false / (len(at) * count),
        "recall": len(hits) / len(at),
        "delay_median": float(median(hits.values())) if hits else math.nan,
        "delay_mean": mean(hits.values()) if hits else math.nan,
    }


def null_rates(series: int, lengths: tuple[int, ...] = tuple(range(6, 201))) -> dict[str, dict[str, float]]:
    """Return the worst share, over *lengths*, of unchanged series in which any change is found, and where; no effect gate.

    Known: the scale is given, robust (that of a normal core). Own: it is the standard deviation of the series itself.
    """
    random = np.random.default_rng(SEED)
    drawn = {
        "normal": random.standard_normal((series, max(lengths))),
        "t3": random.standard_t(3, (series, max(lengths))) / T3_SCALE,
    }
    rates = {}
    for name, rules in itertools.product(drawn, (DAYS, tcpd.WHOLE)):
        kind = f"{name}, known scale, {'days' if rules is DAYS else 'whole'}"
        rates[kind] = _worst(lengths, _known(drawn[name], rules))
    for name, values in drawn.items():
        rates[f"{name}, own scale, whole"] = _worst(lengths, {count: _own(values[:, :count]) for count in lengths[::8]})
    return rates


def _known(values: Floats, rules: Rules) -> dict[int, float]:
    """Return the rates of all lengths from one pass: the best division of every prefix is known."""
    found = partitions(list(values), [penalties(values.shape[1], rules)] * len(values), rules.cap)
    changed = np.mean([part.last > 0 for part in found], axis=0)
    return {count + 1: float(rate) for count, rate in enumerate(changed)}


def _own(values: Floats) -> float:
    return mean(
        bool(starts) for starts in segment_many(list(values / values.std(axis=1)[:, None]), [1.0] * len(values), tcpd.WHOLE)
    )


def _worst(lengths: tuple[int, ...], rates: dict[int, float]) -> dict[str, float]:
    worst = max((count for count in lengths if count in rates), key=lambda count: rates[count])
    return {"worst": rates[worst], "at": worst, "mean": mean(rates[count] for count in lengths if count in rates)}


def speed(series: int = 10_000, count: int = 90) -> dict[str, float]:
    """Return seconds of processor time: all series cold, the same a day later, their events, and their whole replay.

    One in ten has a step, one in seven a blip, all the noise of the floor. Nothing is carried from one day to the next.
    """
    random = np.random.default_rng(SEED)
    values = FLOOR * random.standard_normal((series, count + 1))
    values[::10, count // 2 :] -= STEP
    values[::7, count // 4] -= 6 * STEP
    scales = [FLOOR] * series
    cold, starts = _timed(lambda: segment_many(list(values[:, :count]), scales))
    later, _starts = _timed(lambda: segment_many(list(values), scales))
    events, _events = _timed(
        lambda: [describe(own[:count], FLOOR, starts=found) for own, found in zip(values, starts, strict=True)]
    )
    whole, _said = _timed(lambda: replay_many(list(values[:, :count]), scales))
    return {"cold": cold, "one_day_later": later, "events": events, "replay": whole}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
