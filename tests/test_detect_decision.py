"""The decision: p and q against scipy, the two witnesses, intervals, halves, notices."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from pipelines.detect.baseline import baselines
from pipelines.detect.changes import differences
from pipelines.detect.comparison import compare
from pipelines.detect.decision import benjamini_hochberg, judge
from pipelines.detect.night import detect
from pipelines.detect.noise import NoiseModel
from pipelines.detect.observations import observe
from tests.fleet import CELLS, curve, points


def only_diff(*frames):
    (row,) = detect(points(*frames)).diffs.to_dicts()
    return row


def judged(*frames):
    """Return the verdict on the last observation, judged by the prior scales."""
    (history,) = observe(points(*frames), ("hardware", "engine")).values()
    baseline = baselines(history)[-1]
    return judge(compare(history[-1], baseline), differences(history[-1], baseline), NoiseModel({}))


def tail(size, scale):
    """Return p by scipy: both observations carry the scale."""
    return 2 * student.sf(abs(size) / (scale * math.sqrt(2)), 3)


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


def test_p_is_student_with_three_degrees_of_freedom_on_root_two_scales():
    # No repeats: the prior scale of one observation is 1 %.
    row = pair(speed=0.94)
    assert row["noise_scale"] == 0.01
    assert row["p_value"] == pytest.approx(2 * student.sf(-math.log(0.94) / (0.01 * math.sqrt(2)), 3))
    assert row["q_value"] == pytest.approx(row["p_value"])


def test_two_cells_are_judged_by_the_scale_of_points():
    row = only_diff(curve("A", 0, cells=(4, 8)), curve("B", 1, cells=(4, 8), speed=0.94))
    assert row["noise_scale"] == pytest.approx(0.015)
    assert row["p_value"] == pytest.approx(2 * student.sf(-math.log(0.94) / (0.015 * math.sqrt(2)), 3))


def test_the_interval_is_ninety_percent_of_the_same_law():
    row = pair(speed=0.94)
    margin = student.ppf(0.95, 3) * 0.01 * math.sqrt(2)
    assert row["interval_low_pct"] == pytest.approx(100 * math.expm1(math.log(0.94) - margin))
    assert row["interval_high_pct"] == pytest.approx(100 * math.expm1(math.log(0.94) + margin))
    assert row["interval_low_pct"] < row["size_pct"] < row["interval_high_pct"]
    assert row["size_pct"] == pytest.approx(-6)


def test_p_is_the_larger_of_the_two_witnesses():
    # Steady state shows 5 %, the headline 8 %: the size is the headline's, the p that of 5 %.
    row = pair(speed=0.95, skew=reported(0.92 / 0.95))
    assert row["size_pct"] == pytest.approx(-8)
    assert row["p_value"] == pytest.approx(2 * student.sf(-math.log(0.95) / (0.01 * math.sqrt(2)), 3))


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


def test_tpot_stands_in_where_the_median_latency_is_missing():
    absent = ("e2el_median", "steady_output_tput_per_gpu")
    moved = only_diff(curve("A", 0, without=absent), curve("B", 1, speed=0.94, without=absent))
    assert (moved["attribution"], moved["flagged"], moved["steady_pct"]) == ("engine", True, None)
    cold = only_diff(curve("A", 0, without=absent), curve("B", 1, cold=CELLS, without=absent))
    assert (cold["attribution"], cold["flagged"]) == ("measurement", True)


def test_steady_state_and_tpot_decide_where_no_headline_is_fit():
    row = only_diff(curve("A", 0), curve("B", 1, speed=0.94, cold=CELLS))
    assert (row["metric"], row["attribution"], row["flagged"]) == ("steady_output_tput_per_gpu", "engine", True)
    assert row["size_pct"] == pytest.approx(-6)
    assert row["health"] == ["cold_start"]


def test_one_witness_is_not_enough():
    absent = ("e2el_median", "steady_output_tput_per_gpu", "tpot_median")
    row = only_diff(curve("A", 0, without=absent), curve("B", 1, speed=0.9, without=absent))
    assert row["attribution"] == "measurement"


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


def test_one_point_is_never_a_shift():
    assert not pair(cells={**dict.fromkeys(CELLS, 1.0), 16: 0.5})["flagged"]
    assert detect(points(curve("A", 0, cells=(4,)), curve("B", 1, cells=(4,), speed=0.5))).diffs.is_empty()


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


def test_notices_are_controlled_apart_from_the_rest():
    frames = [curve("A", 0), curve("B", 1, speed=0.94)]
    for number in range(6):
        frames += [curve("A", 0, isl=2000 + number), curve("A", 1, isl=2000 + number, cold=(4, 8))]
    rows = detect(points(*frames)).diffs
    engine = rows.filter(attribution="engine")
    assert engine["q_value"].to_list() == engine["p_value"].to_list()
    assert rows.filter(attribution="measurement").height == 6


def test_each_night_is_a_family_of_its_own():
    # Two comparisons on one day, one on the next.
    frames = [curve("A", 0), curve("B", 1, speed=0.94), curve("C", 2, speed=0.88)]
    rows = detect(points(*frames, curve("A", 0, isl=8192), curve("A", 1, isl=8192))).diffs
    by_night = {night[0]: part for night, part in rows.partition_by("night", as_dict=True).items()}
    assert {night: part.height for night, part in by_night.items()} == {"2026-01-02": 2, "2026-01-03": 1}
    for part in by_night.values():
        assert part["q_value"].to_list() == pytest.approx(list(false_discovery_control(part["p_value"].to_list())))


@pytest.mark.parametrize(("p", "flagged"), [(0.051, True), (0.099, True), (0.101, False)])
def test_one_in_ten_of_what_is_flagged_may_be_false(p, flagged):
    # One comparison on its night, so that q is p; both sizes are beyond the gate of 3 %.
    size = 0.01 * math.sqrt(2) * student.isf(p / 2, 3)
    assert size > math.log(1.03)
    row = pair(speed=math.exp(-size))
    assert (row["q_value"], row["flagged"]) == (pytest.approx(p), flagged)


@pytest.mark.parametrize(("share", "attribution"), [(0.51, "engine"), (0.49, "measurement")])
def test_the_second_witness_shows_half_of_it(share, attribution):
    steady = 0.90**share
    assert pair(speed=steady, skew=reported(0.90 / steady))["attribution"] == attribution


def test_what_did_not_move_has_the_larger_p_as_well():
    row = pair(speed=0.99, skew=reported(0.98 / 0.99))
    assert not row["flagged"]
    assert row["p_value"] == pytest.approx(tail(math.log(0.99), 0.01))


def test_a_half_is_one_of_three_parts():
    cells = (4, 8, 16, 32, 64, 128)
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells={cell: 0.85 if cell < 32 else 1.0 for cell in cells}))
    assert row["part"] == "low_concurrency"
    assert row["p_value"] == pytest.approx(3 * tail(math.log(0.85), 0.01))


def test_a_notice_of_a_half_is_one_of_three_parts():
    cells = (4, 8, 16, 32, 64, 128)
    skew = dict.fromkeys((32, 64, 128), 1.01 / 0.85 - 1.01)
    row = only_diff(curve("A", 0, cells=cells), curve("B", 1, cells=cells, skew=skew))
    assert (row["attribution"], row["part"], row["flagged"]) == ("measurement", "high_concurrency", True)
    assert row["p_value"] == pytest.approx(3 * tail(math.log(0.85), 0.01))


@pytest.mark.parametrize("cold", [(8,), (4, 8, 16), CELLS])
def test_the_worst_of_several_unfit_cells_is_a_point_and_one_of_them(cold):
    row = pair(cold=dict.fromkeys(cold, 0.9))
    assert row["noise_scale"] == pytest.approx(0.015)
    assert row["p_value"] == pytest.approx(len(cold) * tail(math.log(1.01 / 1.91), 0.015))


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


def test_a_notice_counts_among_all_comparisons_of_its_night():
    still = [curve(build, day, isl=2000 + n) for n in range(6) for build, day in (("A", 0), ("B", 1))]
    rows = detect(points(*still, curve("A", 0), curve("B", 1, cold=(8,)))).diffs
    notice = rows.filter(isl=1024).row(0, named=True)
    assert notice["part"] == "unfit_cells"
    assert notice["q_value"] == pytest.approx(7 * notice["p_value"])
