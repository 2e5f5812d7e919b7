"""The noise floor: robust scale of one observation, shrinkage, floors, prior and level, worked out by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.night import detect
from pipelines.detect.noise import NoiseModel, measure
from pipelines.detect.observations import REPORTED, STEADY, TPOT, TTFT
from tests.fleet import curve, points


def table_of(*frames):
    return {
        (row["level"], row["hardware"], row["metric"], row["unit"]): row
        for row in detect(points(*frames)).noise.iter_rows(named=True)
    }


def steps(percents, **identity):
    """Return repeats of one curve whose consecutive log-ratios are *percents* / 100."""
    level, frames = 0.0, [curve("A", 0, **identity)]
    for number, step in enumerate(percents, 1):
        level += step / 100
        frames.append(curve("A", number, speed=math.exp(level), **identity))
    return frames


def test_scale_is_the_median_size_over_root_two_shrunk_towards_the_parent():
    # Sizes 2, 6 and 10 %: median 6 %, raw 1.4826 · 0.06 / √2. With no other stack, engine and global shrink it first:
    # global to the prior 1 %, engine to global, stack to engine, each with 3 repeats against a weight of 5.
    row = table_of(*steps((2, -6, 10)))
    raw = 1.4826 * 0.06 / 2**0.5
    world = ((3 * raw**2 + 5 * 0.01**2) / 8) ** 0.5
    engine = ((3 * raw**2 + 5 * world**2) / 8) ** 0.5
    stack = ((3 * raw**2 + 5 * engine**2) / 8) ** 0.5
    for level, hardware, expected in (("global", None, world), ("engine", None, engine), ("stack", "mi355x", stack)):
        found = row[level, hardware, STEADY, "curve"]
        assert (found["raw_scale"], found["scale"]) == (pytest.approx(raw), pytest.approx(expected)), level
        assert found["repeats"] == 3


def test_a_stack_is_shrunk_to_its_own_engine():
    fleet = [*steps((4, -4)), *steps((1, -1), engine="sglang", framework="sglang"), *steps((1, 1), hardware="h100")]

    def raw(size):
        return 1.4826 * size / 2**0.5

    # Sizes in all: 4 4 1 1 1 1 → 1 %; of vllm: 4 4 1 1 → 2.5 %; of vllm on mi355x: 4 4 → 4 %.
    world = ((6 * raw(0.01) ** 2 + 5 * 0.01**2) / 11) ** 0.5
    engine = ((4 * raw(0.025) ** 2 + 5 * world**2) / 9) ** 0.5
    stack = ((2 * raw(0.04) ** 2 + 5 * engine**2) / 7) ** 0.5
    found = detect(points(*fleet)).noise
    vllm = found.filter(engine="vllm", metric=STEADY, unit="curve")
    assert vllm.filter(level="engine")["scale"].item() == pytest.approx(engine)
    assert vllm.filter(level="stack", hardware="mi355x")["scale"].item() == pytest.approx(stack)
    assert found.filter(level="global", metric=STEADY, unit="curve")["scale"].item() == pytest.approx(world)


def test_quiet_repeats_do_not_go_below_the_floor():
    row = table_of(*steps([0.01] * 60))
    assert row["stack", "mi355x", STEADY, "curve"]["scale"] == 0.005
    assert row["stack", "mi355x", TPOT, "curve"]["scale"] == 0.005
    assert row["stack", "mi355x", REPORTED, "point"]["scale"] == 0.005
    assert row["stack", "mi355x", TTFT, "curve"]["scale"] == 0.03
    assert row["stack", "mi355x", STEADY, "curve"]["raw_scale"] == pytest.approx(1.4826 * 0.0001 / 2**0.5)


def test_a_repeat_is_a_pair_of_observations_whatever_the_unit_and_short_curves_have_points_only():
    row = table_of(*steps((1, 1, 1)), *steps((1,), isl=8192, cells=(4, 8)))
    assert row["stack", "mi355x", STEADY, "point"]["repeats"] == 3 + 1
    assert row["stack", "mi355x", STEADY, "curve"]["repeats"] == 3


def test_the_cells_of_one_pair_weigh_as_one_repeat():
    # Five cells that each moved by 6 %, in one pair, against a prior of 1.5 % with the weight of five.
    raw = 1.4826 * 0.06 / 2**0.5
    found = table_of(*steps((6,)))["global", None, STEADY, "point"]
    assert found["raw_scale"] == pytest.approx(raw)
    assert found["scale"] == pytest.approx(((raw**2 + 5 * 0.015**2) / 6) ** 0.5)


def test_unfit_cells_say_nothing_of_the_noise_of_the_headline():
    row = table_of(curve("A", 0), curve("A", 1, cold=(4, 8, 16)), curve("A", 2, cold=(32,)))
    assert row["stack", "mi355x", REPORTED, "point"]["raw_scale"] == pytest.approx(0, abs=1e-12)
    # Fewer than three fit cells are no curve; steady state keeps them all.
    assert row["stack", "mi355x", REPORTED, "point"]["repeats"] == 2
    assert row["stack", "mi355x", STEADY, "curve"]["repeats"] == 2
    assert row["stack", "mi355x", REPORTED, "curve"]["repeats"] == 1


def test_without_repeats_the_prior_stands_and_is_wider_than_the_floor():
    model = NoiseModel({})
    assert model.scale("h100", "vllm", STEADY, 5) == model.scale("b200", "sglang", REPORTED, 3)
    assert (model.scale("h100", "vllm", STEADY, 5).scale, model.scale("h100", "vllm", STEADY, 5).level) == (0.01, "prior")
    assert model.scale("h100", "vllm", STEADY, 2).scale == pytest.approx(0.015)
    assert model.scale("h100", "vllm", TTFT, 5).scale == pytest.approx(0.06)
    assert model.scale("h100", "vllm", STEADY, 5).repeats == 0


def test_the_narrowest_level_with_repeats_is_chosen():
    def level(**identity):
        other = [curve(build, day, **identity) for build, day in (("X", 20), ("Y", 21))]
        row = detect(points(*steps((4, 4)), *other)).diffs.filter(to_engine_version="Y").row(0, named=True)
        return row["noise_level"], row["noise_repeats"]

    assert level() == ("stack", 2)
    assert level(hardware="h100") == ("engine", 2)
    assert level(hardware="h100", engine="sglang", framework="sglang") == ("global", 2)


@pytest.mark.parametrize(
    "second",
    [
        {"build": "B"},
        {"recipe": "beef"},
        {"checkpoint": "other"},
        {"label": "mi355x-tw_0"},
        {"build": ""},
    ],
)
def test_what_differs_in_anything_known_is_no_repeat(second):
    first = {"recipe": "cafe"} if "recipe" in second else {}
    assert detect(points(curve("A", 0, **first), curve(**{"build": "A", "day": 1, **second}))).noise.is_empty()


def test_unrecorded_builds_are_no_repeats():
    assert detect(points(curve("", 0), curve("", 1, speed=0.9))).noise.is_empty()


def test_runner_number_and_search_space_leave_a_repeat():
    noise = detect(points(curve("A", 0), curve("A", 1, label="mi355x-amd_7", cells=(4, 8, 16)))).noise
    assert noise.filter(level="stack", unit="curve", metric=STEADY)["repeats"].to_list() == [1]


def test_no_repeats_no_table():
    assert measure([]).frame().is_empty()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(percents, random):
    whole = points(*steps(percents))
    order = list(range(whole.height))
    random.shuffle(order)
    assert detect(whole).noise.equals(detect(whole[order]).noise)
