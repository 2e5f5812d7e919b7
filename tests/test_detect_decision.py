"""The decision: p and q against scipy, gates, the two witnesses, families of questions, intervals, halves, notices."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from pipelines.detect.baseline import baselines
from pipelines.detect.changes import differences
from pipelines.detect.comparison import CURVE, HIGH, LOW, Movement, compare, night
from pipelines.detect.decision import benjamini_hochberg, control, gate, judge
from pipelines.detect.night import compared, detect
from pipelines.detect.noise import NoiseModel, Scale, measure
from pipelines.detect.observations import observe
from tests.fleet import CELLS, curve, points, quiet
from warehouse.schemas import CONTEXT

CURVE_PRIOR, POINT_PRIOR, FLOOR = 0.0035, 0.006, 0.002
LATENCY = ("e2el_median", "steady_output_tput_per_gpu")
QUIET = points(*quiet(8))
"""Four repeats that stood still: noise is at its floor, and known."""


class Fixed:
    """Noise of one scale, whatever is asked for."""

    def __init__(self, scale, level="prior", repeats=0):
        self._scale = Scale(scale, level, repeats)

    def scale(self, _context, _metric, _cells, _until):
        return self._scale


def only_diff(*frames):
    (row,) = detect(points(*frames)).diffs.to_dicts()
    return row


def judged(*frames, noise=None):
    """Return the verdict on the last observation, judged by the prior scales unless *noise* is given."""
    (history,) = observe(points(*frames), tuple(column.name for column in CONTEXT)).values()
    baseline = baselines(history)[-1]
    return judge(compare(history[-1], baseline), differences(history[-1], baseline), noise or NoiseModel({}, {}))


def moved(factor, scale, level="prior", repeats=0, cells=CELLS):
    """Return the verdict, q included, on a whole curve that is *factor* as fast on the next build."""
    verdict = judged(curve("A", 0, cells=cells), curve("B", 1, factor, cells=cells), noise=Fixed(scale, level, repeats))
    return control([verdict])[0]


def tail(size, scale):
    """Return p by scipy: both observations carry the scale."""
    return 2 * student.sf(abs(size) / (scale * math.sqrt(2)), 4)


def size_of(p, scale):
    """Return the size whose p is *p*, by scipy."""
    return scale * math.sqrt(2) * student.isf(p / 2, 4)


def pair(**later):
    return only_diff(curve("A", 0), curve(**{"build": "B", "day": 1, **later}))


def reported(factor):
    """Return the `skew` that multiplies reported throughput by *factor* and leaves every median: 1.01 / (1.01 + s) = factor."""
    return dict.fromkeys(CELLS, 1.01 / factor - 1.01)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_q_is_that_of_scipy(p_values):
    assert benjamini_hochberg(p_values, len(p_values)) == pytest.approx(list(false_discovery_control(p_values)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 30))
def test_tests_that_are_not_given_count_as_tried(p_values, others):
    whole = list(false_discovery_control([*p_values, *[1.0] * others]))
    assert benjamini_hochberg(p_values, len(p_values) + others) == pytest.approx(whole[: len(p_values)])


def test_q_of_nothing():
    assert benjamini_hochberg([], 0) == []


def test_p_is_student_with_four_degrees_of_freedom_on_root_two_scales():
    # No repeats: the prior scale of one observation is 0.35 %.
    row = pair(speed=0.96)
    assert row["noise_scale"] == CURVE_PRIOR
    assert row["p_value"] == pytest.approx(2 * student.sf(-math.log(0.96) / (0.0035 * math.sqrt(2)), 4))
    assert row["q_value"] == pytest.approx(row["p_value"])


@pytest.mark.parametrize(
    ("cells", "scale"),
    [((4, 8), POINT_PRIOR), ((4, 8, 16), ((0.0035**2 + 0.006**2) / 2) ** 0.5), ((4, 8, 16, 32), CURVE_PRIOR)],
)
def test_a_few_cells_are_judged_by_what_so_many_move(cells, scale):
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells=cells, speed=0.94))
    assert row["noise_scale"] == pytest.approx(scale)
    assert row["p_value"] == pytest.approx(tail(math.log(0.94), scale))


def test_the_interval_is_ninety_percent_of_the_same_law():
    row = pair(speed=0.94)
    margin = student.ppf(0.95, 4) * 0.0035 * math.sqrt(2)
    assert row["interval_low_pct"] == pytest.approx(100 * math.expm1(math.log(0.94) - margin))
    assert row["interval_high_pct"] == pytest.approx(100 * math.expm1(math.log(0.94) + margin))
    assert row["interval_low_pct"] < row["size_pct"] < row["interval_high_pct"]
    assert row["size_pct"] == pytest.approx(-6)


def test_p_is_the_larger_of_the_two_witnesses():
    # Steady state shows 5 %, the headline 8 %: the size is the headline's, the p that of 5 %.
    row = pair(speed=0.95, skew=reported(0.92 / 0.95))
    assert row["size_pct"] == pytest.approx(-8)
    assert row["p_value"] == pytest.approx(tail(math.log(0.95), CURVE_PRIOR))
    # The other way round it is that of the headline.
    row = pair(speed=0.92, skew=reported(0.95 / 0.92))
    assert row["size_pct"] == pytest.approx(-5)
    assert row["p_value"] == pytest.approx(tail(math.log(0.95), CURVE_PRIOR))


@pytest.mark.parametrize(
    ("part", "cells", "level", "repeats", "scale", "expected"),
    [
        # The least change worth a look, where four scales are less.
        (CURVE, 5, "line", 8, 0.002, math.log(1.012)),
        (CURVE, 4, "stack", 8, 0.002, math.log(1.012)),
        (CURVE, 4, "public", 0, 0.002, math.log(1.012)),
        (CURVE, 5, "line", 7, 0.002, math.log(1.03)),
        (CURVE, 5, "engine", 90, 0.002, math.log(1.03)),
        (CURVE, 5, "prior", 0, 0.0035, math.log(1.03)),
        (CURVE, 3, "line", 3, 0.002, math.log(1.03)),
        (CURVE, 3, "prior", 0, 0.0035, math.log(1.03)),
        (CURVE, 2, "line", 3, 0.0035, math.log(1.035)),
        (LOW, 2, "line", 3, 0.002, math.log(1.07)),
        (HIGH, 3, "prior", 0, 0.006, math.log(1.07)),
        # Four scales, where they are more.
        (CURVE, 5, "line", 9, 0.0031, 0.0124),
        (CURVE, 5, "prior", 0, 0.01, 0.04),
        (CURVE, 2, "prior", 0, 0.01, 0.04),
        (LOW, 2, "line", 9, 0.02, 0.08),
    ],
)
def test_gates_follow_the_noise_floor(part, cells, level, repeats, scale, expected):
    assert gate(part, Movement(-0.5, True, cells, cells), Scale(scale, level, repeats)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("factor", "cells", "level", "flagged"),
    [
        (1.0121, CELLS, "line", True),
        (1.0119, CELLS, "line", False),
        (1.0301, CELLS, "prior", True),
        (1.0299, CELLS, "prior", False),
        (1.0301, (4, 8, 16), "line", True),
        (1.0299, (4, 8, 16), "line", False),
        (1.0301, (4, 8, 16), "prior", True),
        (1.0299, (4, 8, 16), "prior", False),
        (1.0351, (4, 8), "line", True),
        (1.0349, (4, 8), "line", False),
    ],
)
def test_changes_from_the_gate_on_are_found(factor, cells, level, flagged):
    # Noise of 0.2 %, so that p is small.
    for change in (factor, 1 / factor):
        assert moved(change, 0.002, level, 9, cells).flagged == flagged


def test_a_change_within_four_scales_moves_nothing():
    assert [moved(math.exp(-size), 0.01).gated for size in (0.0399, 0.0401)] == [False, True]


@pytest.mark.parametrize(("percent", "found"), [(2, True), (-2, True), (1, False), (-1, False)])
def test_a_quiet_stack_shows_two_percent_and_not_one(percent, found):
    later = curve("B", 1, 1 + percent / 100)
    row = detect(points(QUIET, curve("A", 0), later)).diffs.filter(to_engine_version="B").row(0, named=True)
    assert (row["noise_scale"], row["noise_level"]) == (FLOOR, "line")
    assert row["p_value"] == pytest.approx(tail(math.log(1 + percent / 100), FLOOR))
    assert (row["flagged"], row["attribution"]) == (found, "engine" if found else None)


@pytest.mark.parametrize(("percent", "found"), [(2, False), (-2, False), (5, True), (-5, True)])
def test_a_stack_that_nobody_knows_shows_five_percent_and_not_two(percent, found):
    row = pair(speed=1 + percent / 100)
    assert row["noise_level"] == "prior"
    assert row["flagged"] == found


@pytest.mark.parametrize(
    ("steady", "headline", "attribution", "flagged"),
    [
        (0.94, 0.94, "engine", True),  # both move
        (1.06, 1.06, "engine", True),
        (1.00, 0.90, "measurement", True),  # the headline alone
        (1.00, 1.10, "measurement", True),
        (0.97, 0.92, "measurement", True),  # less than half of it is in the steady state: 3.0 of 8.3
        (0.95, 0.92, "engine", True),  # more than half: 5.1 of 8.3
        (0.94, 1.00, "engine", False),  # the steady state alone is no headline
        (1.06, 0.94, "measurement", True),  # opposite
        (0.94, 1.06, "measurement", True),
        (0.98, 0.98, "engine", False),  # below the gate
        (1.00, 1.00, "engine", False),
    ],
)
def test_two_witnesses(steady, headline, attribution, flagged):
    frames = curve("A", 0), curve("B", 1, speed=steady, skew=reported(headline / steady))
    row, verdict = only_diff(*frames), judged(*frames)
    assert (verdict.attribution, verdict.flagged) == (attribution, False)  # no q yet
    assert (row["attribution"], row["flagged"]) == (attribution if flagged else None, flagged)
    assert row["reported_pct"] == pytest.approx(100 * (headline - 1))
    assert row["steady_pct"] == pytest.approx(100 * (steady - 1))


def test_the_second_witness_needs_half_of_the_gate_and_cells_that_agree():
    # The headline falls by 3.1 %, the steady state by 1.6 or by 1.4 %: the gate of a curve is 3 %, its half 1.5 %.
    for steady, attribution in ((0.984, "engine"), (0.986, "measurement")):
        assert judged(curve("A", 0), curve("B", 1, speed=steady, skew=reported(0.969 / steady))).attribution == attribution
    # All headlines fall by 10 %; the steady states by 6, 6, 6 and not at all twice; or they do not agree at all.
    agree, odd = (
        dict(zip(CELLS, (0.94, 0.94, 0.94, 1, 1), strict=True)),
        dict(zip(CELLS, (0.94, 1.3, 0.7, 0.6, 1.4), strict=True)),
    )
    for cells, attribution in ((agree, "engine"), (odd, "measurement")):
        skew = {cell: 1.01 * factor / 0.9 - 1.01 for cell, factor in cells.items()}
        assert judged(curve("A", 0), curve("B", 1, cells=cells, skew=skew)).attribution == attribution


def test_tpot_stands_in_where_the_median_latency_is_missing():
    moved = only_diff(curve("A", 0, without=LATENCY), curve("B", 1, speed=0.94, without=LATENCY))
    assert (moved["attribution"], moved["flagged"], moved["steady_pct"]) == ("engine", True, None)
    # It was picked from two pairs of witnesses.
    assert moved["p_value"] == pytest.approx(2 * tail(math.log(0.94), CURVE_PRIOR))
    cold = only_diff(curve("A", 0, without=LATENCY), curve("B", 1, cold=CELLS, without=LATENCY))
    assert (cold["attribution"], cold["flagged"]) == ("measurement", True)


def test_steady_state_and_tpot_decide_where_no_headline_is_fit():
    row = only_diff(curve("A", 0), curve("B", 1, speed=0.94, cold=CELLS))
    assert (row["metric"], row["attribution"], row["flagged"]) == ("steady_output_tput_per_gpu", "engine", True)
    assert row["size_pct"] == pytest.approx(-6)
    assert row["p_value"] == pytest.approx(tail(math.log(0.94), CURVE_PRIOR))
    assert row["health"] == ["cold_start"]


def test_one_witness_is_not_enough():
    absent = (*LATENCY, "tpot_median")
    row = only_diff(curve("A", 0, without=absent), curve("B", 1, speed=0.9, without=absent))
    assert row["attribution"] == "measurement"


def open_loop(build, day, speed=1.0, asked=1.0, **values):
    """Return a curve of request rates: throughput is what was asked for (times *asked*), and there is no steady state."""
    closed = curve(build, day, speed, without=("steady_output_tput_per_gpu",), values=values)
    return closed.with_columns(
        request_rate=pl.col("concurrency").cast(pl.Float64) / 8,
        concurrency=pl.lit(None, closed.schema["concurrency"]),
        tput_per_gpu=pl.col("concurrency") * 100.0 * asked,
    )


@pytest.mark.parametrize(("factor", "found"), [(0.94, True), (1.06, True), (0.98, False)])
def test_of_an_open_loop_the_two_latencies_bear_witness(factor, found):
    row = only_diff(open_loop("A", 0), open_loop("B", 1, factor))
    assert (row["reported_pct"], row["steady_pct"]) == (pytest.approx(0), None)
    assert (row["flagged"], row["attribution"]) == (found, "engine" if found else None)
    if found:
        assert (row["metric"], row["size_pct"]) == ("tpot_median", pytest.approx(100 * (factor - 1)))
        # The second of two pairs of witnesses.
        assert row["p_value"] == pytest.approx(2 * tail(math.log(factor), CURVE_PRIOR))


def test_of_an_open_loop_one_latency_alone_is_not_enough():
    assert not only_diff(open_loop("A", 0, tpot_median=0.010), open_loop("B", 1, tpot_median=0.012))["flagged"]
    assert not only_diff(open_loop("A", 0, e2el_median=10.0), open_loop("B", 1, e2el_median=12.0))["flagged"]


def test_of_an_open_loop_throughput_and_tpot_come_first():
    # More was asked for than the machine can give: throughput falls with its speed.
    row = only_diff(open_loop("A", 0), open_loop("B", 1, 0.94, asked=0.93))
    assert (row["metric"], row["size_pct"], row["attribution"]) == ("tput_per_gpu", pytest.approx(-7), "engine")
    # Throughput alone says nothing of the engine.
    row = only_diff(open_loop("A", 0), open_loop("B", 1, asked=0.93))
    assert (row["metric"], row["attribution"]) == ("tput_per_gpu", "measurement")


def test_latencies_decide_where_nothing_else_is_known():
    absent = ("steady_output_tput_per_gpu", "tput_per_gpu")
    row = only_diff(curve("A", 0, without=absent), curve("B", 1, 0.94, without=absent))
    assert (row["metric"], row["attribution"], row["flagged"]) == ("tpot_median", "engine", True)
    alone = [
        curve(build, day, without=absent, values={"tpot_median": tpot}) for build, day, tpot in (("A", 0, 0.010), ("B", 1, 0.012))
    ]
    assert not only_diff(*alone)["flagged"]
    assert row["p_value"] == pytest.approx(tail(math.log(0.94), CURVE_PRIOR))


@pytest.mark.parametrize(("half", "part"), [((4, 8, 16), "low_concurrency"), ((32, 64, 128), "high_concurrency")])
def test_a_half_moves_from_seven_percent(half, part):
    # The median of -10 -10 -10 0 0 0 % lies between, and no cell agrees with it; the half by itself is plain.
    cells = (4, 8, 16, 32, 64, 128)
    earlier = curve("A", 0, cells=cells)
    row = only_diff(earlier, curve("B", 1, cells={cell: 0.9 if cell in half else 1.0 for cell in cells}))
    assert (row["part"], row["attribution"], row["flagged"]) == (part, "engine", True)
    assert (row["size_pct"], row["coherent"], row["agreeing"]) == (pytest.approx(-10), True, 3)
    small = only_diff(earlier, curve("B", 1, cells={cell: 0.935 if cell in half else 1.0 for cell in cells}))
    assert not small["flagged"]


def test_a_half_whose_cells_do_not_all_move_its_way_does_not_move():
    # Of four cells three fall by 10 %; of a curve that would be enough.
    cells = (4, 8, 16, 32, 64, 128, 256, 512)
    factors = dict(zip(cells, (1.01, 0.9, 0.9, 0.9, 1, 1, 1, 1), strict=True))
    assert not only_diff(curve("A", 0, cells=cells), curve("B", 1, cells=factors))["flagged"]
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells=factors | {4: 0.99}))
    assert (row["part"], row["flagged"]) == ("low_concurrency", True)


@pytest.mark.parametrize(("second", "flagged"), [(0.93, True), (0.97, False)])
def test_two_cells_each_show_half_of_the_change(second, flagged):
    # -10 and -7 %: median -8.9. -10 and -3 %: median -6.8, of which 3.0 is less than half.
    cells = (4, 8)
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells={4: 0.9, 8: second}))
    assert row["coherent"]
    assert row["flagged"] == flagged


def test_one_point_is_never_a_shift():
    assert not pair(cells={**dict.fromkeys(CELLS, 1.0), 16: 0.5})["flagged"]
    assert judged(curve("A", 0, cells=(4,)), curve("B", 1, cells=(4,), speed=0.5)) is None


def test_incoherent_cells_are_no_shift():
    real = {4: 0.995, 8: 1.46, 16: 0.64, 32: 1.27, 64: 0.994}
    assert not pair(cells=real)["flagged"]


def test_unfit_cells_make_a_notice_that_names_the_worst():
    row = pair(cold={8: 0.4, 32: 0.2})
    assert (row["attribution"], row["part"], row["flagged"]) == ("measurement", "unfit_cells", True)
    assert row["size_pct"] == pytest.approx(100 * (1.01 / 1.41 - 1))
    assert (row["agreeing"], row["health"]) == (2, ["cold_start"])
    assert row["steady_pct"] == pytest.approx(0)


def test_an_unfit_cell_whose_headline_did_not_move_is_no_notice():
    # Cold on both sides alike.
    row = only_diff(curve("A", 0, cold=(8,)), curve("B", 1, cold=(8,)))
    assert not row["flagged"]


@pytest.mark.parametrize(("headline", "notice"), [(0.969, True), (0.972, False)])
def test_a_notice_of_a_curve_is_of_three_percent_however_quiet_the_stack(headline, notice):
    verdict = judged(curve("A", 0), curve("B", 1, skew=reported(headline)), noise=Fixed(0.002, "line", 9))
    assert (verdict.attribution, verdict.gated) == (("measurement", True) if notice else ("engine", False))


def test_a_notice_follows_the_noise_floor_as_well():
    for headline, notice in ((math.exp(-0.0399), False), (math.exp(-0.0401), True)):
        assert judged(curve("A", 0), curve("B", 1, skew=reported(headline)), noise=Fixed(0.01)).gated == notice


@pytest.mark.parametrize(
    ("later", "share"),
    [
        ({"skew": reported(0.9)}, 1.0),  # the steady state stood still
        ({"speed": 0.97, "skew": reported(0.92 / 0.97)}, 1 - math.log(0.97) / math.log(0.92)),
        ({"speed": 1.03, "skew": reported(0.92 / 1.03)}, 1.0),  # it moved the other way: more than all of it
        ({"cold": {8: 0.4, 32: 0.2}}, 1.0),
        # Of the unfit cell alone: its steady state shows 3.0 of 12.5 %.
        ({"cold": {8: 0.1}, "cells": {4: 1, 8: 0.97, 16: 1, 32: 1, 64: 1}}, 1 - math.log(0.97) / math.log(0.97 * 1.01 / 1.11)),
        ({"speed": 0.94}, None),  # a claim explains nothing away
        ({}, None),
    ],
)
def test_how_much_of_a_notice_vanishes_in_the_steady_state(later, share):
    explained = judged(curve("A", 0), curve("B", 1, **later)).explained
    assert explained == (None if share is None else pytest.approx(share))


def test_a_notice_is_explained_by_its_own_part_and_fit_cells():
    # The headline of the high half falls by 15 %, the steady state of its cells by 3 %; the low half is another matter.
    cells = dict(zip((4, 8, 16, 32, 64, 128), (1, 1, 1, 0.97, 0.97, 0.97), strict=True))
    skew = dict.fromkeys((32, 64, 128), 1.01 * 0.97 / 0.85 - 1.01)
    verdict = judged(curve("A", 0, cells=tuple(cells)), curve("B", 1, cells=cells, skew=skew))
    assert (verdict.part, verdict.attribution) == ("high_concurrency", "measurement")
    assert verdict.explained == pytest.approx(1 - math.log(0.97) / math.log(0.85))


def test_what_has_no_steady_state_is_explained_by_nothing():
    verdict = judged(open_loop("A", 0), open_loop("B", 1, asked=0.9))
    assert (verdict.attribution, verdict.explained) == ("measurement", None)


def repeated(isl, day, factor=1.0, build="A"):
    return [curve("A", 0, isl=isl), curve(build, day, factor, isl=isl)]


def test_three_questions_are_controlled_apart():
    # One night: two builds (three curves), one build (four), one notice; q by scipy within each question.
    two = [frame for isl, factor in ((1, 0.96), (2, 0.97), (3, 1.0)) for frame in repeated(isl, 1, factor, "B")]
    one = [frame for isl, factor in ((11, 0.9), (12, 1.0), (13, 1.001), (14, 1.0)) for frame in repeated(isl, 1, factor)]
    notice = [curve("A", 0, isl=21), curve("B", 1, isl=21, cold=(8,))]
    rows = detect(points(*two, *one, *notice)).diffs.sort("isl")
    p, q = rows["p_value"].to_list(), rows["q_value"].to_list()
    assert q[:3] == pytest.approx(list(false_discovery_control(p[:3])))
    assert q[3:7] == pytest.approx(list(false_discovery_control(p[3:7])))
    # A notice was picked from all eight comparisons because it moved.
    assert q[7] == pytest.approx(min(1, 8 * p[7]))


def test_notices_do_not_count_as_claims():
    frames = [curve("A", 0), curve("B", 1, speed=0.94)]
    for number in range(6):
        frames += [curve("A", 0, isl=2000 + number), curve("A", 1, isl=2000 + number, cold=(4, 8))]
    rows = detect(points(*frames)).diffs
    engine = rows.filter(attribution="engine")
    assert engine["q_value"].to_list() == engine["p_value"].to_list()
    assert rows.filter(attribution="measurement").height == 6


def test_each_night_is_a_family_of_its_own():
    # Two comparisons of two builds on one day, one on the next.
    frames = [curve("A", 0), curve("B", 1, speed=0.94), curve("C", 2, speed=0.88), *repeated(8192, 1, 0.97, "B")]
    rows = detect(points(*frames)).diffs
    by_night = {day: part for (day,), part in rows.partition_by("night", as_dict=True).items()}
    assert {day: part.height for day, part in by_night.items()} == {"2026-01-02": 2, "2026-01-03": 1}
    for part in by_night.values():
        assert part["q_value"].to_list() == pytest.approx(list(false_discovery_control(part["p_value"].to_list())))


@pytest.mark.parametrize(("p", "flagged"), [(0.0499, True), (0.0501, False)])
def test_a_single_comparison_is_flagged_up_to_five_in_a_hundred(p, flagged):
    # Alone in its night, so that q is p; the size is beyond its gate, four scales; two pairs of witnesses double its p.
    size = size_of(p / 2, 0.01)
    assert size > 0.04
    verdict = control([judged(open_loop("A", 0), open_loop("B", 1, math.exp(-size)), noise=Fixed(0.01))])[0]
    assert (verdict.gated, verdict.p_value, verdict.q_value) == (True, pytest.approx(p), pytest.approx(p))
    assert verdict.flagged == flagged


@pytest.mark.parametrize(("p", "flagged"), [(0.0199, True), (0.0201, False)])
def test_one_in_ten_of_what_is_flagged_may_be_false(p, flagged):
    # One of five comparisons, the others without any change: q is five times p.
    still = [moved(1.0, 0.01) for _number in range(4)]
    verdict, *others = control([moved(math.exp(-size_of(p, 0.01)), 0.01), *still])
    assert (verdict.q_value, verdict.flagged) == (pytest.approx(5 * p), flagged)
    assert not any(other.flagged for other in others)


@pytest.mark.parametrize(("share", "attribution"), [(0.51, "engine"), (0.49, "measurement")])
def test_the_second_witness_shows_half_of_it(share, attribution):
    steady = 0.90**share
    assert pair(speed=steady, skew=reported(0.90 / steady))["attribution"] == attribution


def test_what_did_not_move_has_the_larger_p_as_well():
    row = pair(speed=0.99, skew=reported(0.98 / 0.99))
    assert not row["flagged"]
    assert row["p_value"] == pytest.approx(tail(math.log(0.99), CURVE_PRIOR))


def test_a_half_is_one_of_three_parts():
    cells = (4, 8, 16, 32, 64, 128)
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells={cell: 0.85 if cell < 32 else 1.0 for cell in cells}))
    assert row["part"] == "low_concurrency"
    # Of three cells: between a curve and a point.
    assert row["p_value"] == pytest.approx(3 * tail(math.log(0.85), ((0.0035**2 + 0.006**2) / 2) ** 0.5))


def test_a_notice_of_a_half_is_one_of_three_parts():
    cells = (4, 8, 16, 32, 64, 128)
    skew = dict.fromkeys((32, 64, 128), 1.01 / 0.85 - 1.01)
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells=cells, skew=skew))
    assert (row["attribution"], row["part"], row["flagged"]) == ("measurement", "high_concurrency", True)
    assert row["p_value"] == pytest.approx(3 * tail(math.log(0.85), ((0.0035**2 + 0.006**2) / 2) ** 0.5))


@pytest.mark.parametrize("cold", [(8,), (4, 8, 16), CELLS])
def test_the_worst_of_several_unfit_cells_is_a_point_and_one_of_them(cold):
    row = pair(cold=dict.fromkeys(cold, 0.9))
    assert row["noise_scale"] == POINT_PRIOR
    assert row["p_value"] == pytest.approx(len(cold) * tail(math.log(1.01 / 1.91), POINT_PRIOR))


def test_p_stays_a_probability():
    # A stack on which nothing is ever the same twice, and five unfit cells that moved by a little more than the gate.
    wild = [curve("A", day, speed, isl=9000 + n) for n in range(9) for day, speed in ((-1, 1.0), (-0.5, 4.0))]
    row = detect(points(*wild, curve("A", 0), curve("B", 1, cold=dict.fromkeys(CELLS, 0.1), isl=1024))).diffs.filter(isl=1024)
    assert row["part"].to_list() == ["unfit_cells"]
    assert row["p_value"].to_list() == [1.0]


@pytest.mark.parametrize(("speed", "notice"), [(1.02, True), (1.03, False)])
def test_an_unfit_cell_goes_astray_from_seven_percent(speed, notice):
    # A wait of a tenth takes log(1.01 / 1.11) = -9.4 % of the headline; the cell's own speed gives some of it back.
    row = pair(cold={8: 0.1}, cells={**dict.fromkeys(CELLS, 1.0), 8: speed})
    assert (abs(math.log(speed * 1.01 / 1.11)) >= math.log(1.07)) == notice
    assert row["part"] == ("unfit_cells" if notice else "curve")


def test_an_unfit_cell_that_its_steady_state_follows_is_not_astray():
    # Steady state -22 %, headline -32 %: more than half of it is real, and of one cell nothing is said.
    row = pair(cold={8: 0.1}, cells={**dict.fromkeys(CELLS, 1.0), 8: 0.8})
    assert (row["part"], row["flagged"]) == ("curve", False)


def verdicts(frames):
    """Return what each night says of each comparison before later runs are heard, as plain values in a fixed order."""
    _curves, pairs = compared(points(*frames))
    repeats = (pair for pair, changes in pairs if changes.attribution == "environment" and "environment" not in changes.names)
    noise = measure(repeats)
    found = control([verdict for pair, changes in pairs if (verdict := judge(pair, changes, noise)) is not None])
    return sorted(
        (night(v.comparison), v.comparison.new.curve_id, v.part, v.size, v.noise, v.p_value, v.q_value, v.flagged, v.attribution)
        for v in found
    )


def noise_of(frames):
    names = ("night", "curve_id", "noise_scale", "noise_level", "noise_repeats", "noise_version")
    return detect(points(*frames)).diffs.select(names).sort("night", "curve_id")


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("AAAB"),
            st.sampled_from([1.0, 1.0, 0.995, 1.02, 0.97, 0.9]),
            st.sampled_from([1024, 8192]),
            st.booleans(),
        ),
        min_size=3,
        max_size=8,
    ),
    st.integers(1, 7),
)
def test_what_a_night_said_does_not_change_when_later_runs_arrive(runs, nights):
    frames = [curve(build, day, speed, isl=isl, cold=(8,) if cold else ()) for day, (build, speed, isl, cold) in enumerate(runs)]
    replayed = verdicts(frames[:nights])
    assert verdicts(frames)[: len(replayed)] == replayed


def test_a_later_repeat_moves_the_noise_of_later_nights_only():
    frames = [curve("A", 0), curve("A", 1, 0.99), curve("B", 2, 0.96), curve("B", 3, 0.9), curve("B", 4, 0.96)]
    early, late = noise_of(frames[:3]), noise_of(frames)
    assert late.filter(pl.col("night") <= "2026-01-03").equals(early)
    # On the third day one repeat was known, of 1 %; on the last three.
    assert late["noise_repeats"].to_list() == [1, 1, 2, 3]
    # The third day added no repeat.
    versions = late["noise_version"].to_list()
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


@settings(max_examples=6, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random):
    frames = [QUIET, curve("A", 0), curve("B", 1, 0.94, cold=(8,)), *repeated(8192, 1, 0.97), curve("C", 2, cold=CELLS)]
    whole = points(*frames)
    order = list(range(whole.height))
    random.shuffle(order)
    assert detect(whole).diffs.equals(detect(whole[order]).diffs)
