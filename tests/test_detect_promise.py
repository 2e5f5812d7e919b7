"""The promise: nothing that is said of an engine may be producible by running the same image again.

One image under everything that we know to go wrong; two images that are one machine under another name; and real changes, which
must still be found.
"""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from pipelines.detect.night import detect
from tests.fleet import CELLS, curve, points, quiet
from tests.lengths import either

HARMLESS = {"environment", "measurement"}
SLOW = 0.92
QUIET = points(*quiet(4))


def attributions(*frames):
    return {row["attribution"] for row in detect(points(*frames)).shifts.to_dicts()}


ONE_IMAGE = {
    "cold before": [curve("A", 0, cold=CELLS), curve("A", 1)],
    "cold after": [curve("A", 0), curve("A", 1, cold=CELLS)],
    "a blip": [curve("A", 0), curve("A", 1, SLOW), curve("A", 2)],
    "a step of the host": [curve("A", 0), curve("A", 1), curve("A", 2, SLOW), curve("A", 3, SLOW)],
    "partial sweeps": [curve("A", 0), curve("A", 1, SLOW, cells=(4, 8)), curve("A", 2, cells=(16, 32, 64)), curve("A", 3, SLOW)],
    "unfit and slow": [curve("A", 0, cold=(4, 8, 16)), curve("A", 1, SLOW, cold=(32, 64)), curve("A", 2)],
    "another runner label": [curve("A", 0), curve("A", 1, SLOW, label="mi355x-tw_0"), curve("A", 2)],
    "half the sweep on other hosts": [
        curve("A", 0),
        curve("A", 1, cells=(4, 8), run="x"),
        curve("A", 1, SLOW, cells=(16, 32, 64), label="mi355x-tw_0", run="x"),
    ],
    "points gained": [curve("A", 0), curve("A", 1, SLOW, cells=(*CELLS, 128, 256))],
    "points lost": [curve("A", 0), curve("A", 1, SLOW, cells=(4, 8))],
    "attempts": [curve("A", 0, run="x"), curve("A", 0.2, SLOW, run="x", attempt=2)],
    "one instant": [curve("A", 0, run="x"), curve("A", 0, SLOW, run="y"), curve("A", 1)],
    "records twice in a run": [curve("A", 0), curve("A", 1, SLOW, run="x"), curve("A", 1, SLOW, run="x", copy=1)],
    "a recipe on one side": [curve("A", 0), curve("A", 1, SLOW, recipe="cafe"), curve("A", 2)],
    "no medians of latency": [
        curve("A", 0, without=("e2el_median", "steady_output_tput_per_gpu")),
        curve("A", 1, cold=CELLS, without=("e2el_median", "steady_output_tput_per_gpu")),
    ],
    "no latencies at all": [
        curve("A", day, speed, without=("e2el_median", "steady_output_tput_per_gpu", "tpot_median", "ttft_median"))
        for day, speed in ((0, 1.0), (1, SLOW))
    ],
    "zero and NaN": [curve("A", 0, values={"tpot_median": 0.0}), curve("A", 1, SLOW, values={"ttft_median": float("nan")})],
    "another metric definition": [curve("A", 0), curve("A", 1, 0.5, definition="per role"), curve("A", 2, 0.5)],
    "one digest, two tags": [curve("A", 0, digest="a"), curve("B", 1, SLOW, digest="a")],
    "one cell": [curve("A", 0, cells=(8,)), curve("A", 1, 0.5, cells=(8,)), curve("A", 2, cells=(8,), cold=(8,))],
}


@pytest.mark.parametrize("case", ONE_IMAGE)
@pytest.mark.parametrize("floor", [(), (QUIET,)], ids=["no repeats", "quiet stack"])
def test_one_image_never_blames_the_engine(case, floor):
    assert attributions(*floor, *ONE_IMAGE[case]) <= HARMLESS


def test_a_jump_of_one_image_is_seen_where_the_stack_is_quiet():
    """The cases above are no empty promise: such jumps are flagged, and named for what they are."""
    assert attributions(QUIET, *ONE_IMAGE["a blip"]) == {"environment"}
    assert attributions(QUIET, *ONE_IMAGE["cold after"]) == {"measurement"}


def test_a_digest_on_one_side_only_blames_nobody():
    assert attributions(curve("A", 0), curve("A", 1, SLOW, digest="a")) == {"unknown"}


def test_two_builds_in_one_run_are_followed_apart():
    # B is slower than A, in every run; neither moved.
    frames = [curve(build, day, speed, run=f"n{day}") for day in range(4) for build, speed in (("A", 1.0), ("B", SLOW))]
    assert attributions(*frames) == set()


def test_two_builds_in_one_run_that_move_together():
    frames = [curve(build, day, SLOW if day else 1.0, run=f"n{day}") for day in range(2) for build in "AB"]
    assert attributions(QUIET, *frames) == {"environment"}


SAME_IMAGE_RUN = st.fixed_dictionaries(
    {
        "speed": st.sampled_from([1.0, 1.0, 0.99, SLOW, 1.1, 0.6]),
        "cold": st.sets(st.sampled_from(CELLS)),
        "cells": st.sampled_from([CELLS, (4, 8), (16, 32, 64), (4,), (*CELLS, 128), {4: 1.0, 8: 1.4, 16: 0.7, 32: 1.2, 64: 1.0}]),
        "label": st.sampled_from(["mi355x-amd_0", "mi355x-amd_1", "mi355x-tw_0"]),
        "recipe": st.sampled_from([None, "cafe"]),
        "definition": st.sampled_from(["inferencex", "inferencex", "per role"]),
        "attempt": st.sampled_from([1, 2]),
        "day": st.sampled_from([0, 1, 1.25, 2, 3, 4]),
        "run": st.sampled_from(["x", "y", None]),
        "without": st.sampled_from([(), (), ("e2el_median", "steady_output_tput_per_gpu"), ("tpot_median",)]),
        "copy": st.integers(0, 3),
    }
)


@settings(max_examples=either(40, 200), deadline=None)
@given(st.lists(SAME_IMAGE_RUN, min_size=2, max_size=7), st.booleans())
def test_one_image_whatever_happens(runs, floor):
    found = attributions(*((QUIET,) if floor else ()), *(curve("A", **run) for run in runs))
    assert found <= HARMLESS


@cache
def run(build, day, slow):
    return curve(build, day, SLOW if slow else 1.0)


def sides(runs, row):
    """Return how many runs of the two builds of a claim stand on their own side and on the other: old, old odd, new odd, new."""
    now_slow = row["direction"] == "regression"
    old = [slow != now_slow for build, slow in runs if build == row["from_engine_version"]]
    new = [slow == now_slow for build, slow in runs if build == row["to_engine_version"]]
    return sum(old), len(old) - sum(old), len(new) - sum(new), sum(new)


@settings(max_examples=either(40, 300), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("AB"), st.booleans()), min_size=2, max_size=9), st.booleans())
def test_a_claim_needs_builds_that_stand_apart(runs, floor):
    """The host has two levels, and the builds are one machine: a claim may only stand where the runs themselves separate.

    Most runs of either build lie on its side; where any does not, or where runs of one image moved the curve as far, the two
    builds are apart by Fisher's exact test.
    """
    frames = [run(build, day, slow) for day, (build, slow) in enumerate(runs)]
    restless = any(old[0] == new[0] and old[1] != new[1] for old, new in pairwise(runs))
    for row in detect(points(*((QUIET,) if floor else ()), *frames)).shifts.filter(attribution="engine").to_dicts():
        right_old, odd_old, odd_new, right_new = sides(runs, row)
        assert right_old > odd_old, (runs, row["status_reason"])
        assert right_new > odd_new, (runs, row["status_reason"])
        chance = fisher_exact([[right_old, odd_old], [odd_new, right_new]], alternative="greater").pvalue
        assert chance <= 0.05 + 1e-9 or not (restless or odd_old or odd_new), (runs, row["status_reason"])


@pytest.mark.parametrize("floor", [(), (QUIET,)], ids=["no repeats", "quiet stack"])
@pytest.mark.parametrize("runs", ["FSFSF SS", "FSFSF SSSSS", "FSF SFS", "FS SS FF", "FFSS SSFF", "FSSF SSS"])
def test_a_host_with_two_levels_names_no_engine(floor, runs):
    builds = [(build, letter == "S") for build, letters in zip("ABC", runs.split(), strict=False) for letter in letters]
    frames = [run(build, day, slow) for day, (build, slow) in enumerate(builds)]
    assert attributions(*floor, *frames) <= HARMLESS | {"unknown"}


@pytest.mark.parametrize("floor", [(), (QUIET,)], ids=["no repeats", "quiet stack"])
def test_a_long_clean_history_with_one_odd_run_names_the_engine(floor):
    frames = [run("A", day, False) for day in range(6)] + [run("B", 6 + day, day != 3) for day in range(6)]
    rows = detect(points(*floor, *frames)).shifts.filter(from_engine_version="A", to_engine_version="B").to_dicts()
    assert [(row["attribution"], row["status"]) for row in rows] == [("engine", "confirmed")]


@pytest.mark.parametrize("percent", [-6, 6, -10, 15])
def test_a_real_change_is_found_with_nothing_but_two_runs(percent):
    moved = [(1024, 1024), (8192, 1024), (1024, 8192)]
    frames = [curve("A", 0, isl=isl, osl=osl) for isl, osl in moved]
    frames += [curve("B", 1, 1 + percent / 100, isl=isl, osl=osl) for isl, osl in moved]
    rows = detect(points(*frames)).shifts.to_dicts()
    assert [(row["attribution"], row["status"]) for row in rows] == [("engine", "suspected")] * 3
    assert {(row["isl"], row["osl"]) for row in rows} == set(moved)
    assert [row["size_pct"] for row in rows] == pytest.approx([percent] * 3, abs=1)


@pytest.mark.parametrize("curves", [3, 8])
def test_one_bad_host_confirms_nothing(curves):
    """All curves of a run share its host: what one run of one stack says is never more than suspected."""
    frames = [curve(build, day, speed, isl=n) for n in range(curves) for build, day, speed in (("A", 0, 1.0), ("B", 1, 0.9))]
    for floor in ((), (QUIET,)):
        found = detect(points(*floor, *frames)).shifts
        assert found.height == curves
        assert set(found["status"]) == {"suspected"}


def test_a_real_change_is_found_on_its_curves_only():
    still = [curve(build, day, isl=5000 + n) for n in range(3) for build, day in (("A", 0), ("B", 1))]
    moved = [curve(build, day, speed, isl=n) for n in (1024, 8192) for build, day, speed in (("A", 0, 1.0), ("B", 1, 0.94))]
    rows = detect(points(QUIET, *still, *moved)).shifts.to_dicts()
    assert {(row["isl"], row["attribution"]) for row in rows} == {(1024, "engine"), (8192, "engine")}
    assert all(-7 <= row["size_pct"] <= -5 for row in rows)
    assert all(row["interval_low_pct"] <= row["size_pct"] <= row["interval_high_pct"] for row in rows)


def test_a_real_change_is_found_through_cold_starts_on_both_sides():
    rows = detect(points(curve("A", 0, cold=(4, 8)), curve("B", 1, 0.94, cold=(8, 64)))).shifts.to_dicts()
    assert [(row["attribution"], row["size_pct"]) for row in rows] == [("engine", pytest.approx(-6))]


def test_a_real_change_is_found_from_a_partial_baseline():
    earlier = [curve("A", 0), curve("A", 1, cells=(4, 8)), curve("B", 2, 0.94, cells=(64,))]
    rows = detect(points(*earlier, curve("B", 3, 0.94))).shifts.to_dicts()
    assert [(row["attribution"], row["cells"]) for row in rows] == [("engine", 5)]
