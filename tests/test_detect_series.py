"""The second pass over days: where levels change, of what kind each change is, what was said on which day."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.evaluation import tcpd
from bench.evaluation.series import T3_SCALE
from pipelines.detect.drift import MIN_SPAN
from pipelines.detect.partition import CAP, Floats, partitions
from pipelines.detect.replay import CLEARED, CONFIRMED, RETRACTED, replay, replay_many
from pipelines.detect.series import (
    BLIP,
    DAYS,
    DRIFT,
    FLOOR,
    RECOVERED,
    STEP,
    SUSPECTED,
    Rules,
    describe,
    gated,
    level,
    penalties,
    segment,
    segment_many,
)

seeds = st.integers(0, 2**32 - 1)
SEVERAL, FEW = settings(max_examples=25), settings(max_examples=8)
SMOOTH = Rules(floor=0.0, gate=0.0)


def noisy(seed: int, count: int, scale: float = 0.01) -> Floats:
    """Return t3 noise with up to three steps and a blip: anything that a series may hold."""
    random = np.random.default_rng(seed)
    values = random.standard_t(3, count) * scale
    for start in random.integers(0, count, random.integers(0, 4)):
        values[start:] += random.uniform(-8, 8) * scale
    values[random.integers(0, count)] += random.uniform(-40, 40) * scale
    return values


def flat(*parts: tuple[float, int]) -> Floats:
    return np.concatenate([np.full(count, value) for value, count in parts])


# --- the division ---


def free_cost(values: Floats, cap: float) -> float:
    """Return the least biweight cost over any level: some window of the sorted values counts as squares, the rest as outliers."""
    ordered = np.sort(values)
    windows = [ordered[low:high] for low, high in itertools.combinations(range(len(values) + 1), 2)]
    return min(float(((own - own.mean()) ** 2).sum()) + cap**2 * (len(values) - len(own)) for own in windows)


def total(values: Floats, starts: tuple[int, ...], prices: Floats, cap: float) -> float:
    return sum(free_cost(part, cap) for part in np.split(values, starts)) + float(prices[list(starts)].sum())


def allowed(starts: tuple[int, ...], count: int) -> bool:
    lengths = np.diff((0, *starts, count))
    return bool(lengths[0] >= 2 and lengths[-1] >= 2 and (lengths[1:-1] >= 3).all())


@SEVERAL
@given(seeds, st.integers(4, 10))
def test_no_division_is_cheaper_by_more_than_the_grid_allows(seed: int, count: int) -> None:
    values, prices = noisy(seed, count, 1.0), np.full(count, 4.0)
    found = partitions([values], [prices])[0].starts(count)
    others = [starts for size in range(4) for starts in itertools.combinations(range(1, count), size) if allowed(starts, count)]
    assert allowed(found, count)
    assert total(values, found, prices, CAP) <= min(total(values, own, prices, CAP) for own in others) + count / 256 + 1e-9


def least_squares(values: Floats, price: float) -> tuple[int, ...]:
    """Return the optimal partition under squared loss (Jackson et al., 2005), segments of two and more."""
    best: list[tuple[float, tuple[int, ...]]] = [(-price, ()), (math.inf, ())]
    for end in range(2, len(values) + 1):
        costs = [best[start][0] + price + len(values[start:end]) * float(values[start:end].var()) for start in range(end - 1)]
        start = int(np.argmin(costs))
        best.append((costs[start], (*best[start][1], start)))
    return best[-1][1][1:]


@SEVERAL
@given(seeds, st.integers(12, 40))
def test_without_cap_the_division_is_that_of_least_squares(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    steps = np.sort(random.choice(np.arange(1, (count + 1) // 4), 2, replace=False)) * 4 - 1
    values = 12.0 * (np.arange(count) >= steps[0]) - 9.0 * (np.arange(count) >= steps[1]) + 0.3 * random.standard_normal(count)
    found = partitions([values], [np.full(count, 12.0)], cap=math.inf)[0].starts(count)
    assert found == least_squares(values, 12.0) == tuple(steps)


def test_a_blip_of_any_size_is_no_change_and_hides_none() -> None:
    values = flat((0.0, 10), (-0.05, 10))
    for size in (0.1, 1.0, 30.0):
        struck = values.copy()
        struck[[4, 15]] += size
        assert segment(struck, 0.01) == (10,)


def test_a_change_is_seen_at_its_second_observation_however_long_the_history() -> None:
    for before in (3, 10, 200, 2000):
        assert segment(flat((0.0, before), (-0.05, 1)), 0.01) == ()
        assert segment(flat((0.0, before), (-0.05, 2)), 0.01) == (before,)


def test_what_returned_within_two_observations_is_no_change() -> None:
    assert segment(flat((0.0, 10), (-0.2, 2), (0.0, 1)), 0.01) == ()
    assert segment(flat((0.0, 10), (-0.2, 2), (0.0, 10)), 0.01) == ()


@pytest.mark.parametrize("levels", [[], [0.0], [0.0, 5.0], [1.0, 1.0, 1.0]])
def test_series_too_short_or_still_have_no_change(levels: list[float]) -> None:
    values = np.array(levels)
    assert segment(values, 0.01) == ()
    assert all(event.kind == SUSPECTED for event in describe(values, 0.01))
    assert replay(values, 0.01).standing == ()


def test_penalties_are_those_of_the_formula() -> None:
    # 7 + 3 ln 10 = 13.908; 7 + 3 ln 20 = 15.987; 7 + 3 ln 29 = 17.102, more than the dearest
    assert penalties(30)[[1, 10, 20, 29]] == pytest.approx([7.0, 13.908, 15.987, 17.0], abs=1e-3)


# --- invariances ---


@SEVERAL
@given(seeds, st.integers(0, 60))
def test_sign_and_unit_change_nothing(seed: int, count: int) -> None:
    values = noisy(seed, count) if count else np.zeros(0)
    found = segment(values, 0.02, SMOOTH)
    assert segment(-values, 0.02, SMOOTH) == found
    assert segment(4 * values, 0.08, SMOOTH) == found


@FEW
@given(st.lists(st.tuples(seeds, st.integers(1, 40)), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_many_at_once_is_the_same_as_one_by_one_in_any_order(cases: list[tuple[int, int]], random: object) -> None:
    series = [noisy(seed, count) for seed, count in cases]
    scales = [0.005 + 0.005 * (seed % 3) for seed, _count in cases]
    found = segment_many(series, scales)
    assert found == [segment(levels, scale) for levels, scale in zip(series, scales, strict=True)]
    assert segment_many(series[::-1], scales[::-1]) == found[::-1]
    assert replay_many(series, scales) == [replay(levels, scale) for levels, scale in zip(series, scales, strict=True)]


@FEW
@given(seeds, st.integers(2, 40))
def test_the_division_of_a_prefix_is_known_from_the_whole(seed: int, count: int) -> None:
    values = noisy(seed, count, 1.0)
    whole = partitions([values], [penalties(count)])[0]
    for known in range(count + 1):
        assert whole.starts(known) == partitions([values[:known]], [penalties(known)])[0].starts(known)


@SEVERAL
@given(seeds, st.integers(2, 60))
def test_what_was_said_does_not_depend_on_what_came_after(seed: int, count: int) -> None:
    values = noisy(seed, count)
    said = replay(values, 0.01).said
    for known in (count // 3, count // 2, count - 1):
        assert replay(values[:known], 0.01).said == tuple(one for one in said if one.day < known)


@SEVERAL
@given(seeds, st.integers(2, 60))
def test_what_stands_is_what_was_confirmed_and_not_taken_back(seed: int, count: int) -> None:
    history = replay(noisy(seed, count), 0.01)
    standing: set[int] = set()
    for one in history.said:
        if one.status == CONFIRMED:
            assert one.start < one.day and one.start not in standing
            standing.add(one.start)
        elif one.status == RETRACTED:
            standing.remove(one.start)
    assert history.standing == tuple(sorted(standing))


# --- levels and gates ---


def test_a_level_is_the_mean_without_outliers() -> None:
    assert level(np.array([0.0, 0.01, 0.02, 5.0]), 0.01) == pytest.approx(0.01)
    assert level(np.array([0.0, 1.0]), 0.01) == pytest.approx(0.5)


def test_changes_below_the_gate_go_the_smallest_first() -> None:
    # 0 -> 1.2 % -> 2.5 %: neither is 2 %, their sum is; the smaller first one goes, the level before is then (10·0 + 10·1.2)/20
    values = flat((0.0, 10), (0.012, 10), (0.025 + 0.003, 20))
    assert gated(values, (10, 20), 0.01) == (20,)
    assert gated(flat((0.0, 10), (0.019, 10)), (10,), 0.01) == ()


def test_a_scale_below_the_floor_counts_as_the_floor() -> None:
    values = noisy(5, 40)
    assert segment(values, 0.0001) == segment(values, FLOOR)


# --- kinds of event ---


def kinds(values: Floats) -> list[tuple[str, int, int, float, int | None]]:
    return [(event.kind, event.start, event.end, round(event.size, 4), event.recovered_at) for event in describe(values, 0.01)]


def test_a_step_that_stays() -> None:
    assert kinds(flat((0.0, 10), (-0.05, 10))) == [(STEP, 10, 10, -0.05, None)]


def test_a_step_that_came_back_by_half_is_recovered() -> None:
    assert kinds(flat((0.0, 10), (-0.08, 6), (-0.04, 8))) == [(RECOVERED, 10, 10, -0.08, 16), (STEP, 16, 16, 0.04, None)]
    assert kinds(flat((0.0, 10), (-0.08, 6), (-0.05, 8)))[0] == (STEP, 10, 10, -0.08, None)


def test_an_excursion_of_three_observations_is_recovered_whether_divided_or_not() -> None:
    assert kinds(flat((0.0, 10), (-0.05, 3), (0.0, 10))) == [(RECOVERED, 10, 10, -0.05, 13)]


@pytest.mark.parametrize("length", [1, 2])
def test_an_excursion_of_one_or_two_observations_is_a_blip(length: int) -> None:
    assert kinds(flat((0.0, 10), (-0.05, length), (0.0, 10))) == [(BLIP, 10, 10 + length, -0.05, None)]


def test_the_last_observation_alone_is_suspected() -> None:
    assert kinds(flat((0.0, 10), (-0.05, 1))) == [(SUSPECTED, 10, 11, -0.05, None)]


def test_a_slope_without_any_large_step_is_a_drift() -> None:
    slope = np.concatenate([np.zeros(10), np.linspace(0, -0.1, 11)[1:], np.full(10, -0.1)])
    ((kind, start, end, size, back),) = kinds(slope)
    # off the old level at 10, at the new one at 19
    assert (kind, back) == (DRIFT, None)
    assert abs(start - 10) <= 1 and abs(end - 19) <= 1 and size == pytest.approx(-0.1, abs=0.003)
    assert end - start + 1 >= MIN_SPAN


def test_a_slope_of_less_than_five_percent_is_none() -> None:
    assert DRIFT not in {kind for kind, *_rest in kinds(np.linspace(0, -0.045, 40))}


@SEVERAL
@given(seeds)
def test_two_steps_far_apart_are_no_drift(seed: int) -> None:
    noise = 0.004 * np.random.default_rng(seed).standard_normal(40)
    found = kinds(flat((0.0, 14), (-0.05, 12), (-0.1, 14)) + noise)
    assert [(kind, start) for kind, start, *_rest in found] == [(STEP, 14), (STEP, 26)]


# --- day by day ---


def days(values: Floats) -> list[tuple[int, str, int]]:
    return [(one.day, one.status, one.start) for one in replay(values, 0.01).said]


def test_a_step_is_suspected_at_once_and_confirmed_at_its_second_observation() -> None:
    assert days(flat((0.0, 10), (-0.05, 10))) == [(10, SUSPECTED, 10), (11, CONFIRMED, 10)]


def test_a_blip_is_suspected_and_cleared() -> None:
    assert days(flat((0.0, 10), (-0.05, 1), (0.0, 10))) == [(10, SUSPECTED, 10), (11, CLEARED, 10)]


def test_two_odd_observations_are_confirmed_and_taken_back_when_the_old_level_is_confirmed() -> None:
    said = days(flat((0.0, 10), (-0.05, 2), (0.0, 10)))
    assert (11, CONFIRMED, 10) in said
    assert (13, RETRACTED, 10) in said
    assert replay(flat((0.0, 10), (-0.05, 2), (0.0, 10)), 0.01).standing == ()


def test_a_change_that_was_said_stays_where_the_penalty_would_have_been_missed_by_a_little() -> None:
    # three observations away and back: 3 · CAP² = 27 squared scales saved, two new changes cost 34, a known and a new one 25.5
    values = flat((0.0, 30), (-0.05, 3), (0.0, 10))
    assert segment(values, 0.01) == ()
    assert replay(values, 0.01).standing == (30, 33)


# --- calibration ---


@pytest.mark.parametrize("rules", [DAYS, tcpd.WHOLE], ids=["days", "whole"])
@pytest.mark.parametrize("tails", ["normal", "t3"])
def test_noise_alone_seldom_has_a_change_at_any_length(tails: str, rules: Rules) -> None:
    """Nominal 2 % + 1 point; the bound here is three standard errors of 300 series wider."""
    random = np.random.default_rng(7)
    values = random.standard_normal((300, 200)) if tails == "normal" else random.standard_t(3, (300, 200)) / T3_SCALE
    found = partitions(list(values), [penalties(200, rules)] * len(values), rules.cap)
    rates = np.mean([part.last > 0 for part in found], axis=0)
    assert rates[5:].max() <= 0.03 + 3 * math.sqrt(0.03 * 0.97 / 300)


# --- scores of others ---


def test_scores_of_a_small_case_by_hand() -> None:
    annotations = {"a": [10], "b": [10, 50]}
    # found 12 and 80: {0, 12, 80}; hits of {0, 10, 50}: 0 and 10; precision 2/3; recall (2/2 + 2/3)/2 = 5/6; F1 = 20/27
    assert tcpd.f1(annotations, [12, 80]) == pytest.approx(20 / 27)
    # a: [0,10) by [0,12) 10/12, [10,100) by [12,80) 68/90; b: 10/12, [10,50) by [12,80) 38/70, [50,100) by [12,80) 30/88
    #    or by [80,100) 20/50
    one = 0.1 * 10 / 12 + 0.9 * 68 / 90
    other = 0.1 * 10 / 12 + 0.4 * 38 / 70 + 0.5 * 20 / 50
    assert tcpd.cover(annotations, [12, 80], 100) == pytest.approx((one + other) / 2)


def test_change_points_of_the_public_dataset(shared_data: Path) -> None:
    figures = tcpd.evaluate(shared_data / "detect" / "tcpd")
    ours, zero = figures["ours"], figures["zero"]
    assert isinstance(ours, dict) and isinstance(zero, dict)
    assert (round(zero["f1"], 3), round(zero["cover"], 3)) == (0.668, 0.575)  # as published
    assert ours["f1"] >= 0.71
    assert ours["cover"] >= 0.69
