"""The second pass on curves: steps that no single night shows, blips and their way back, drifts; who is blamed for which."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.night import detect
from tests.fleet import curve, points
from tests.lengths import either


def history(levels, **identity):
    """Return a curve a day; *levels* are (build, percent of log-ratio to the first day)."""
    return [curve(build, day, math.exp(percent / 100), **identity) for day, (build, percent) in enumerate(levels)]


def shifts(levels, **identity):
    return detect(points(*history(levels, **identity))).shifts.sort("to_measured_at").to_dicts()


RESTLESS = [("A", 0), ("A", 1), ("A", 0), ("A", 1), ("A", 0), ("A", 1)]
"""One image that moves by 1 % from day to day: a scale of some 0.9 %, so that a night must show 3.6 %."""
SMALL_STEP = [*RESTLESS, ("B", -2.5), ("B", -3.5), ("B", -2.5), ("B", -3.5)]


def test_a_small_step_is_found_once_a_second_observation_agrees():
    assert shifts(SMALL_STEP[:7]) == []
    (found,) = shifts(SMALL_STEP)
    assert (found["kind"], found["attribution"], found["status"]) == ("step", "engine", "confirmed")
    # The mean of 0 and 1 against the mean of -2.5 and -3.5.
    assert found["size"] == pytest.approx(-0.035, abs=0.004)
    assert (found["from_run_id"], found["to_run_id"]) == ("r0005.000", "r0006.000")


def test_the_same_step_within_one_image_is_no_engine():
    (found,) = shifts([("A", percent) for _build, percent in SMALL_STEP])
    assert (found["kind"], found["attribution"]) == ("step", "environment")


def test_a_blip_and_its_way_back_are_told_apart_from_steps():
    found = shifts([*[("A", 0)] * 6, ("A", -10), ("A", 0), ("A", 0), ("A", 0)])
    assert [(row["kind"], row["direction"]) for row in found] == [("blip", "regression"), ("return", "speedup")]
    assert {row["attribution"] for row in found} == {"environment"}


def test_a_step_that_stays_is_a_step_and_one_that_is_undone_later_has_recovered():
    stays = [("A", 0)] * 4 + [("B", -8)] * 4
    assert [row["kind"] for row in shifts(stays)] == ["step"]
    undone = [*stays, ("C", 0), ("C", 0), ("C", 0)]
    assert [(row["kind"], row["direction"]) for row in shifts(undone)] == [("recovered", "regression"), ("step", "speedup")]


def test_too_few_days_are_not_judged():
    assert [row["kind"] for row in shifts([("A", 0), ("B", -8)])] == [None]


def drifting(builds):
    return [(build, -1.15 * day) for day, build in enumerate(builds)]


def test_a_drift_is_named_by_its_ends_and_blames_no_engine_alone():
    found = [row for row in shifts(drifting("ABCDEFGH")) if row["kind"] == "drift"]
    assert len(found) == 1
    assert found[0]["size"] == pytest.approx(-0.0115 * 7, rel=0.25)
    assert found[0]["attribution"] == "mixed"
    assert any("slow change over" in detail for detail in found[0]["change_detail"])
    assert {row["attribution"] for row in shifts(drifting("AAAAAAAA"))} <= {"environment"}


def test_levels_add_up_the_comparisons():
    levels = detect(points(*history([("A", 0), ("A", 2), ("B", -5), ("B", -4)]))).levels
    assert levels["level"].to_list() == pytest.approx([0, 0.02, -0.05, -0.04])
    assert levels["build_id"].n_unique() == 2


def test_three_observations_have_no_levels():
    assert detect(points(*history([("A", 0), ("A", 2), ("B", -5)]))).levels.is_empty()


def test_two_builds_in_every_run_have_a_line_each():
    frames = [curve(build, day, speed, run=f"n{day}") for day in range(6) for build, speed in (("A", 1.0), ("B", 0.8))]
    levels = detect(points(*frames)).levels
    assert levels.filter(engine_version="A")["level"].to_list() == pytest.approx([0.0] * 6)
    assert levels.filter(engine_version="B")["level"].n_unique() == 1
    assert levels["kind"].drop_nulls().is_empty()


@settings(max_examples=either(8, 60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.floats(-12, 12)), min_size=4, max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter_and_one_image_is_never_blamed(days, random):
    whole = points(*history(days))
    order = list(range(whole.height))
    random.shuffle(order)
    first, second = detect(whole), detect(whole[order])
    assert first.shifts.equals(second.shifts)
    assert first.levels.equals(second.levels)
    one = detect(points(*history([("A", percent) for _build, percent in days]))).shifts
    assert set(one["attribution"]) <= {"environment", "measurement"}


@settings(max_examples=either(8, 60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from([0.0, -1.0, 1.0, -8.0])), min_size=5, max_size=12))
def test_another_day_leaves_sizes_and_probabilities_of_the_past(days):
    before, after = (detect(points(*history(part))).diffs for part in (days[:-1], days))
    judged = ["diff_id", "noise_scale", "noise_repeats", "noise_version"]
    assert after.join(before.select("diff_id"), on="diff_id", how="semi").select(judged).equals(before.select(judged))
