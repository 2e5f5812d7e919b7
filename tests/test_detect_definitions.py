"""Numbers of different definitions never meet: not in a comparison, not in a baseline pooled from repeats, not in the noise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect import health
from pipelines.detect.night import compared, detect
from tests.fleet import CELLS, curve, points, quiet
from tests.lengths import either

DEFINITIONS = ("inferencex", "per role", "vllm bench serve")
FACTOR = dict(zip(DEFINITIONS, (1.0, 0.5, 1.9), strict=True))
"""What a definition makes of one machine's speed, so that numbers of two never look alike."""
RUN = st.fixed_dictionaries(
    {
        "definition": st.sampled_from(DEFINITIONS),
        "build": st.sampled_from(["A", "A", "B", ""]),
        "speed": st.sampled_from([1.0, 1.0, 0.99, 0.92, 1.1]),
        "day": st.sampled_from([0, 0.25, 1, 2, 3, 4]),
        "cells": st.sampled_from([CELLS, (4, 8), (16, 32, 64), (4,), (*CELLS, 128)]),
        "cold": st.sets(st.sampled_from(CELLS)),
        "recipe": st.sampled_from([None, "cafe"]),
        "attempt": st.sampled_from([1, 2]),
    }
)
RUNS = st.lists(RUN, min_size=2, max_size=9)


def measured(runs, run_of):
    """Return one curve measured as *runs* say; *run_of* names the run of the run at a place."""
    return [
        (run["definition"], curve(**(run | {"speed": run["speed"] * FACTOR[run["definition"]]}), run=run_of(place), copy=place))
        for place, run in enumerate(runs)
    ]


def facts(frames):
    """Return what is compared with what, and by which numbers, over all curves of *frames*."""
    _curves, pairs = compared(points(*frames))
    return sorted(
        repr(
            (
                pair.new.run_id,
                pair.new.metric_definition,
                *((old.run_id, old.metric_definition) for old in pair.baseline.repeats),
                pair.concurrencies,
                {metric: np.round(ratios, 9).tolist() for metric, ratios in pair.ratios.items()},
                pair.fit.tolist(),
                changes,
            )
        )
        for pair, changes in pairs
    )


@settings(max_examples=either(40, 200), deadline=None)
@given(RUNS, st.booleans())
def test_no_diff_is_of_two_definitions(runs, floor):
    frames = measured(runs, lambda place: f"run {place}")
    definition = {f"run {place}": name for place, (name, _frame) in enumerate(frames)}
    found = detect(points(*(quiet(4) if floor else ()), *(frame for _name, frame in frames)))
    own = found.diffs.filter(found.diffs["to_run_id"].is_in(list(definition)))
    for row in own.to_dicts():
        assert definition[row["from_run_id"]] == definition[row["to_run_id"]]
    for row in found.shifts.to_dicts():
        assert definition.get(row["from_run_id"]) == definition.get(row["to_run_id"])


@settings(max_examples=either(40, 200), deadline=None)
@given(RUNS, st.booleans())
def test_a_curve_says_of_each_definition_what_it_says_without_the_others(runs, one_run):
    """Baselines pooled from repeats included; also where one run measured a curve by two definitions."""
    frames = measured(runs, (lambda place: "x") if one_run else lambda place: f"run {place}")
    apart = [facts([frame for name, frame in frames if name == own]) for own in {name for name, _frame in frames}]
    assert facts([frame for _name, frame in frames]) == sorted(fact for part in apart for fact in part)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(DEFINITIONS), min_size=2, max_size=8))
def test_another_definition_is_no_repeat_that_tells_the_noise(names):
    """One steady machine: its repeats are those of one definition with itself, and none of them moved."""
    frames = [curve("A", day, FACTOR[name], definition=name) for day, name in enumerate(names)]
    noise = detect(points(*frames)).noise
    repeats = sum(names.count(name) - 1 for name in set(names))
    assert set(noise["repeats"]) <= {repeats}
    assert all(scale < 1e-9 for scale in noise["raw_scale"].drop_nulls())
    assert noise.is_empty() == (repeats == 0)


def test_a_definition_that_changes_and_changes_back_is_compared_across_the_gap():
    frames = [curve("A", 0), curve("A", 1, 0.5, definition="per role"), curve("B", 2, 0.9)]
    (row,) = detect(points(*frames)).diffs.to_dicts()
    assert (row["gap_days"], round(row["steady_pct"])) == (2.0, -10)


def test_a_point_whose_very_work_was_another_is_no_witness():
    """Four in ten output tokens, or one request in eight failed: medians are spoilt as means are, so no build may be blamed."""
    for spoilt in ({"osl_mean": 400.0}, {"requests": 800, "requests_failed": 100}):
        sound = curve("B", 1, cells=(4, 8, 16), speed=0.6)
        unfit = health.judge(curve("B", 1, cells=(4, 8, 16), speed=0.6, values=spoilt))
        assert set(unfit["verdict"]) == {"unfit"}
        assert detect(points(curve("A", 0, cells=(4, 8, 16)), sound)).diffs.height == 1
        assert detect(points(curve("A", 0, cells=(4, 8, 16)), unfit)).diffs.is_empty()
