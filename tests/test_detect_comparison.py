"""Numbers of one pair: median, coherence, halves and signs, worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.detect.baseline import baselines
from pipelines.detect.comparison import CURVE, HIGH, LOW, compare, movement, moves, night, parts, percent
from pipelines.detect.observations import E2EL, REPORTED, STEADY, TPOT, TTFT, observe
from tests.fleet import curve, points

CONTEXT = ("hardware", "engine")


def compared(*frames):
    (history,) = observe(points(*frames), CONTEXT).values()
    return compare(history[-1], baselines(history)[-1])


@pytest.mark.parametrize(
    ("values", "median", "coherent", "agreeing"),
    [
        # Deviations of 1, 2, 3, 4, 10 from 3: 2, 1, 0, 1, 7, so MAD 1; 3 > 1.4826.
        ((1, 2, 3, 4, 10), 3, True, 5),
        # Median 1, deviations 3, 1, 0, 2, 4: MAD 2; 1 < 2.9652.
        ((-2, 0, 1, 3, 5), 1, False, 3),
        # The incoherent real curve of B200 SGLang, %: median (-0.5 + 12) / 2 = 5.75 …
        ((-0.5, 46, -36, 27, -0.6, 12), 5.75, False, 3),
        # … and the coherent one of MI355X ATOM: deviations 8.75, 6.75, 0.75, 2.45, 0.75, 3.85 from 7.25, MAD 3.15 → 4.67.
        ((16, 14, 6.5, 4.8, 8, 3.4), 7.25, True, 6),
        # All alike: no spread at all.
        ((-5, -5), -5, True, 2),
        # Two cells: median 1.5, MAD 0.5 → 0.74; then median 1, MAD 1 → 1.48.
        ((1, 2), 1.5, True, 2),
        ((0, 2), 1, False, 1),
        # No movement agrees with nothing but itself.
        ((0, 0, 0), 0, False, 3),
    ],
)
def test_movement(values, median, coherent, agreeing):
    moved = movement(np.array(values, dtype=float))
    assert moved.median == pytest.approx(median)
    assert (moved.coherent, moved.agreeing, moved.cells) == (coherent, agreeing, len(values))


def test_gates_are_reached_by_coherent_movement_only():
    gate = math.log(1.03)
    assert moves(movement(np.array([gate] * 3)), gate)
    assert moves(movement(np.array([-gate] * 3)), gate)
    assert not moves(movement(np.array([gate - 1e-9] * 3)), gate)
    assert not moves(movement(np.array([-2.0, 0.5, 3.0])), gate)
    assert not moves(None, gate)


def test_every_metric_counts_up_as_better():
    pair = compared(curve("A", 0), curve("B", 1, speed=0.8))
    for metric in (REPORTED, STEADY, TPOT, TTFT, E2EL):
        assert pair.ratios[metric] == pytest.approx([math.log(0.8)] * 5), metric
    assert percent(pair.movement(TPOT).median) == pytest.approx(-20)


def test_a_metric_that_moves_alone_keeps_its_own_sign():
    pair = compared(curve("A", 0), curve("A", 1, values={"tpot_median": 0.02}))
    # 0.010 · (1 + c / 64) s before: 0.010625 s at 4, 0.02 s at 64.
    assert pair.ratios[TPOT][0] == pytest.approx(-math.log(0.02 / 0.010625))
    assert pair.ratios[TPOT][4] == pytest.approx(0)
    assert pair.movement(STEADY).median == pytest.approx(0)


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ((4, 8, 16, 32), (4, 8), (16, 32)),
        ((4, 8, 16, 32, 64), (4, 8), (32, 64)),
        ((4, 8, 16, 32, 64, 128), (4, 8, 16), (32, 64, 128)),
        ((4, 8, 16, 32, 64, 128, 256), (4, 8, 16), (64, 128, 256)),
    ],
)
def test_halves_leave_the_middle_cell_out(cells, low, high):
    pair = compared(curve("A", 0, cells=cells), curve("B", 1, cells=cells))
    assert pair.concurrencies_of(LOW) == low
    assert pair.concurrencies_of(HIGH) == high
    assert pair.concurrencies_of(CURVE) == cells
    assert parts(pair) == (CURVE, LOW, HIGH)


def test_the_middle_cell_moves_neither_half():
    pair = compared(curve("A", 0), curve("B", 1, cells={4: 0.9, 8: 0.9, 16: 0.1, 32: 1.1, 64: 1.1}))
    low, high = pair.movement(STEADY, LOW), pair.movement(STEADY, HIGH)
    assert (low.median, low.cells) == (pytest.approx(math.log(0.9)), 2)
    assert (high.median, high.cells) == (pytest.approx(math.log(1.1)), 2)


def test_three_cells_have_no_halves():
    pair = compared(curve("A", 0, cells=(4, 8, 16)), curve("B", 1, cells=(4, 8, 16)))
    assert parts(pair) == (CURVE,)


@pytest.mark.parametrize(
    ("values", "unanimous"),
    [
        ((-10, -10), True),
        # Median -6.5, half of it -3.25; then -6.75 and -3.375.
        ((-10, -3), False),
        ((-10, -3.5), True),
        # Exactly half: median 3, its half 1.5.
        ((4.5, 1.5), True),
        ((2, 4, 40), True),
        ((2, 4, -40), False),
        ((1.9, 4, 5), False),
        # What did not move shows nothing.
        ((0, 0), False),
    ],
)
def test_unanimous_cells_each_show_half_of_the_median(values, unanimous):
    assert movement(np.array(values, dtype=float)).unanimous == unanimous


@pytest.mark.parametrize(
    ("values", "curve_moves", "half_moves"),
    [
        # Two cells: coherent (MAD 3.5 → 5.2 < 6.5), but one shows less than half of it.
        ((-10, -3), False, False),
        ((-10, -3.5), True, True),
        # Three: all the same way, whatever they show; one the other way is too many.
        ((-1, -5, -6), True, True),
        ((1, -5, -6), False, False),
        # Four and more: of a curve the MAD decides, of a half all move the same way.
        ((1, -5, -5, -6), True, False),
        ((-1, -5, -5, -6), True, True),
        ((0, -5, -5, -5, -6), True, False),
        ((4, 4, -5, -5, -5, -5, -5), True, False),
    ],
)
def test_the_shorter_a_part_the_more_of_its_cells_must_agree(values, curve_moves, half_moves):
    moved = movement(np.array(values, dtype=float))
    assert moved.coherent
    assert moves(moved, 1.0) == moves(moved, 1.0, CURVE) == curve_moves
    assert moves(moved, 1.0, LOW) == moves(moved, 1.0, HIGH) == half_moves


def test_agreement_without_coherence_is_no_movement():
    # All four fall, by 1, 3, 9 and 12: median 6, deviations 5 3 3 6, MAD 4 → 5.93; then by 1, 2, 10, 12: 5 4 4 6, 4.5 → 6.67.
    assert moves(movement(np.array([-1.0, -3.0, -9.0, -12.0])), 1.0, LOW)
    assert not moves(movement(np.array([-1.0, -2.0, -10.0, -12.0])), 1.0, LOW)


def test_a_night_is_the_utc_day_of_the_later_side():
    # Runs start at 06:00 UTC on 1 January.
    assert night(compared(curve("A", 0), curve("B", 1.74))) == "2026-01-02"
    assert night(compared(curve("A", 0), curve("B", 1.76))) == "2026-01-03"


def test_reported_throughput_is_judged_on_fit_cells_of_both_sides():
    pair = compared(curve("A", 0, cold=(4,)), curve("B", 1, speed=0.9, cold=(8, 16)))
    assert pair.fit.tolist() == [False, False, False, True, True]
    assert pair.movement(REPORTED).cells == 2
    assert pair.movement(REPORTED).median == pytest.approx(math.log(0.9))
    assert pair.movement(STEADY).cells == 5


def test_fewer_than_two_cells_say_nothing():
    assert compared(curve("A", 0, cells=(4,)), curve("B", 1, cells=(4,))).movement(STEADY) is None
    assert compared(curve("A", 0, cold=(4, 8, 16, 32)), curve("B", 1)).movement(REPORTED) is None


def test_missing_zero_and_nan_are_no_pair():
    for value in (None, 0.0, float("nan"), -1.0):
        pair = compared(curve("A", 0), curve("B", 1, values={"tpot_median": value}))
        assert np.isnan(pair.ratios[TPOT]).all()
        assert pair.movement(TPOT) is None
        assert pair.movement(STEADY).cells == 5


def test_two_records_of_a_cell_are_joined_by_the_median_of_their_logarithms():
    twice = points(curve("B", 1, speed=0.5), curve("B", 1, speed=2.0))
    pair = compared(curve("A", 0), twice)
    assert pair.ratios[STEADY] == pytest.approx([0.0] * 5)  # √(0.5 · 2) = 1


def test_one_unfit_record_of_a_cell_makes_it_unfit():
    twice = points(curve("B", 1, run="x"), curve("B", 1, run="x", cold=(8,)))
    pair = compared(curve("A", 0), twice)
    assert pair.fit.tolist() == [True, False, True, True, True]


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=12))
def test_turning_the_sides_round_turns_the_sign(values):
    there, back = movement(np.array(values)), movement(-np.array(values))
    assert there.median == -back.median
    assert (there.coherent, there.agreeing, there.unanimous) == (back.coherent, back.agreeing, back.unanimous)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_cells_does_not_matter(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert movement(np.array(values)) == movement(np.array(shuffled))


def test_a_change_beyond_all_numbers_is_still_a_number():
    assert percent(1e4) == percent(700.0) > 1e300
    assert percent(-1e4) == -100
