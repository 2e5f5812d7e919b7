"""The noise floor: robust scale of one observation, shrinkage, floors, priors, levels, nights, all worked out by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from pipelines.detect.baseline import baselines
from pipelines.detect.comparison import compare
from pipelines.detect.night import detect
from pipelines.detect.noise import NoiseModel, Scale, measure
from pipelines.detect.observations import E2EL, REPORTED, STEADY, TPOT, TTFT, observe
from pipelines.detect.public import Public, of_line
from tests.fleet import CELLS, curve, points
from warehouse.schemas import CONTEXT

LINE = {"engine": "vllm", "hardware": "mi355x", "framework": "vllm", "precision": "fp8", "disagg": False}
FIRST, SECOND, THIRD = "2026-01-01", "2026-01-02", "2026-01-03"
CURVE_PRIOR, POINT_PRIOR = 0.0035, 0.006
NOTHING = NoiseModel({}, {})


def raw(size):
    """Return the scale of one observation whose pairs moved by a median of *size*: 1.4826 MAD, √2 for the two sides."""
    return 1.4826 * size / 2**0.5


def shrunk(repeats, own, parent):
    return ((repeats * own**2 + 5 * parent**2) / (repeats + 5)) ** 0.5


def table_of(*frames):
    return {
        (row["level"], row["hardware"], row["metric"], row["unit"]): row
        for row in detect(points(*frames)).noise.iter_rows(named=True)
    }


def model_of(*frames):
    """Return the noise of *frames*, all of which are taken for repeats."""
    names = tuple(column.name for column in CONTEXT)
    histories = observe(points(*frames), names).values()
    pairs = [pair for history in histories for pair in zip(history, baselines(history), strict=True)]
    return measure(compare(new, baseline) for new, baseline in pairs if baseline is not None)


def steps(percents, **identity):
    """Return repeats of one curve, a night each, whose consecutive log-ratios are *percents* / 100."""
    level, frames = 0.0, [curve("A", 0, **identity)]
    for number, step in enumerate(percents, 1):
        level += step / 100
        frames.append(curve("A", number, speed=math.exp(level), **identity))
    return frames


def test_scale_is_the_median_size_over_root_two_shrunk_towards_the_parent():
    # Sizes 2, 6 and 10 %: median 6 %. With no other stack, all levels have the same three repeats, against a weight of 5.
    row = table_of(*steps((2, -6, 10)))
    expected = CURVE_PRIOR
    for level, hardware in (("global", None), ("engine", None), ("stack", "mi355x"), ("line", "mi355x")):
        expected = shrunk(3, raw(0.06), expected)
        found = row[level, hardware, STEADY, "curve"]
        assert (found["raw_scale"], found["scale"]) == (pytest.approx(raw(0.06)), pytest.approx(expected)), level
        assert found["repeats"] == 3


def test_a_stack_is_shrunk_to_its_own_engine():
    fleet = [*steps((4, -4)), *steps((1, -1), engine="sglang", framework="sglang"), *steps((1, 1), hardware="b200")]
    # Sizes in all: 4 4 1 1 1 1 → 1 %; of vllm: 4 4 1 1 → 2.5 %; of vllm on mi355x: 4 4 → 4 %.
    world = shrunk(6, raw(0.01), CURVE_PRIOR)
    engine = shrunk(4, raw(0.025), world)
    found = detect(points(*fleet)).noise.filter(metric=STEADY, unit="curve")
    vllm = found.filter(engine="vllm")
    assert vllm.filter(level="engine")["scale"].item() == pytest.approx(engine)
    assert vllm.filter(level="stack", hardware="mi355x")["scale"].item() == pytest.approx(shrunk(2, raw(0.04), engine))
    assert found.filter(level="global")["scale"].item() == pytest.approx(world)


def test_a_line_is_shrunk_to_its_own_stack():
    fleet = [*steps((4, -4)), *steps((1, -1), precision="fp4"), *steps((6,), disagg=True), *steps((8,), framework="dynamo-vllm")]
    # Of all, of vllm and of its stack: 4 4 1 1 6 8 → 4 %.
    stack = shrunk(6, raw(0.04), shrunk(6, raw(0.04), shrunk(6, raw(0.04), CURVE_PRIOR)))
    lines = detect(points(*fleet)).noise.filter(level="line", metric=STEADY, unit="curve")
    by_name = {(row["framework"], row["precision"], row["deployment"]): row["scale"] for row in lines.to_dicts()}
    assert by_name == {
        ("vllm", "fp8", "single"): pytest.approx(shrunk(2, raw(0.04), stack)),
        ("vllm", "fp4", "single"): pytest.approx(shrunk(2, raw(0.01), stack)),
        ("vllm", "fp8", "disaggregated"): pytest.approx(shrunk(1, raw(0.06), stack)),
        ("dynamo-vllm", "fp8", "single"): pytest.approx(shrunk(1, raw(0.08), stack)),
    }


def test_quiet_repeats_do_not_go_below_the_floor():
    siblings = [frame for isl in (1, 2, 3) for frame in steps([0.01] * 8, isl=isl)]
    row = table_of(*siblings)
    floors = {"curve": 0.002, "point": 0.0035, "run": 0.002, "cell": 0.0035}
    for unit, floor in floors.items():
        for metric in (REPORTED, STEADY, TPOT, E2EL):
            assert row["stack", "mi355x", metric, unit]["scale"] == floor, (unit, metric)
        assert row["stack", "mi355x", TTFT, unit]["scale"] == pytest.approx(6 * floor), unit
    assert row["stack", "mi355x", STEADY, "curve"]["raw_scale"] == pytest.approx(raw(0.0001))


def test_a_repeat_is_a_pair_of_observations_whatever_the_unit_and_short_curves_have_points_only():
    row = table_of(*steps((1, 1, 1)), *steps((1,), isl=8192, cells=(4, 8, 16)), *steps((1,), isl=4096, cells=(4, 8, 16, 32)))
    assert row["stack", "mi355x", STEADY, "point"]["repeats"] == 3 + 1 + 1
    assert row["stack", "mi355x", STEADY, "curve"]["repeats"] == 3 + 1
    assert row["stack", "mi355x", STEADY, "cell"]["repeats"] == 3 + 1


def test_the_cells_of_one_pair_weigh_as_one_repeat():
    found = table_of(*steps((6,)))["global", None, STEADY, "point"]
    assert found["raw_scale"] == pytest.approx(raw(0.06))
    assert found["scale"] == pytest.approx(shrunk(1, raw(0.06), POINT_PRIOR))


UNEVEN = {cell: math.exp(percent / 100) for cell, percent in zip(CELLS, (1, 2, 3, 4, 10), strict=True)}


def test_curve_point_and_cell_tell_apart_what_is_common_and_what_is_not():
    # Median 3 %: so moved the curve, and half of its cells by more; about it -2 -1 0 1 7 %: by 1 % in the median.
    row = table_of(curve("A", 0), curve("A", 1, cells=UNEVEN))
    raws = {unit: row["line", "mi355x", STEADY, unit]["raw_scale"] for unit in ("curve", "point", "cell")}
    assert raws == pytest.approx({"curve": raw(0.03), "point": raw(0.03), "cell": raw(0.01)})
    # The prior of a cell is that of a point.
    assert row["global", None, STEADY, "cell"]["scale"] == pytest.approx(shrunk(1, raw(0.01), POINT_PRIOR))


def siblings(percents, **later):
    """Return curves of one run, each moved by its own percentage in the next."""
    moved = enumerate(percents, 2000)
    return [f for isl, step in moved for f in (curve("A", 0, isl=isl), curve("A", 1, math.exp(step / 100), isl=isl, **later))]


def test_a_run_is_the_median_of_three_sibling_curves_and_one_repeat():
    row = table_of(*siblings((1, 2, 6)))
    for level, hardware in (("global", None), ("engine", None), ("stack", "mi355x")):
        found = row[level, hardware, STEADY, "run"]
        assert (found["raw_scale"], found["repeats"]) == (pytest.approx(raw(0.02)), 1), level
    assert ("line", "mi355x", STEADY, "run") not in row
    assert row["global", None, STEADY, "run"]["scale"] == pytest.approx(shrunk(1, raw(0.02), CURVE_PRIOR))


@pytest.mark.parametrize("third", [{"run": "other"}, {"attempt": 2}, {"hardware": "b200"}, {"values": {"run_source": "other"}}])
def test_two_siblings_and_a_curve_of_another_run_or_stack_are_no_run(third):
    one = [curve("A", 0, isl=9, **third), curve("A", 1, 1.06, isl=9, **third)]
    assert ("global", None, STEADY, "run") not in table_of(*siblings((1, 2)), *one)


def test_the_scale_of_a_run_is_that_of_its_stack_else_wider():
    model = model_of(*siblings((1, 2, 6)))
    engine = shrunk(1, raw(0.02), shrunk(1, raw(0.02), CURVE_PRIOR))
    assert model.of_run(LINE, STEADY, SECOND) == Scale(pytest.approx(shrunk(1, raw(0.02), engine)), "stack", 1)
    assert model.of_run(LINE | {"hardware": "b200"}, STEADY, SECOND) == Scale(pytest.approx(1.5 * engine), "engine", 1)
    assert model.of_run(LINE, STEADY, FIRST) == Scale(0.0035, "prior", 0)


def test_unfit_cells_say_nothing_of_the_noise_of_the_headline():
    row = table_of(curve("A", 0), curve("A", 1, cold=(4, 8, 16)), curve("A", 2, cold=(32,)))
    assert row["stack", "mi355x", REPORTED, "point"]["raw_scale"] == pytest.approx(0, abs=1e-12)
    # Two fit cells are no curve, four are; steady state keeps all five.
    assert row["stack", "mi355x", REPORTED, "point"]["repeats"] == 2
    assert row["stack", "mi355x", STEADY, "curve"]["repeats"] == 2
    assert row["stack", "mi355x", REPORTED, "curve"]["repeats"] == 1


def test_without_repeats_the_prior_stands_and_is_wider_than_the_floor():
    assert NOTHING.scale(LINE, STEADY, 5, SECOND) == Scale(0.0035, "prior", 0)
    assert NOTHING.scale(LINE | {"engine": "sglang"}, REPORTED, 4, SECOND) == Scale(0.0035, "prior", 0)
    assert NOTHING.scale(LINE, STEADY, 2, SECOND) == NOTHING.scale(LINE, STEADY, 1, SECOND) == Scale(0.006, "prior", 0)
    assert NOTHING.scale(LINE, TTFT, 5, SECOND).scale == pytest.approx(6 * 0.0035)
    assert NOTHING.scale(LINE, TTFT, 2, SECOND).scale == pytest.approx(6 * 0.006)
    assert NOTHING.of_run(LINE, STEADY, SECOND) == Scale(0.0035, "prior", 0)
    assert NOTHING.version(SECOND) == ""


def test_three_cells_are_between_a_curve_and_a_point():
    assert NOTHING.scale(LINE, STEADY, 3, SECOND).scale == pytest.approx(((0.0035**2 + 0.006**2) / 2) ** 0.5)
    # Level and count are those of the points: a curve of three cells has them, and none of curves.
    assert model_of(*steps((1,), cells=(4, 8, 16))).scale(LINE, STEADY, 3, SECOND).level == "line"
    found = model_of(*steps((1,)), *steps((1,), isl=9, cells=(4, 8, 16))).scale(LINE, STEADY, 3, SECOND)
    assert (found.level, found.repeats) == ("line", 2)


def test_the_narrowest_level_with_repeats_is_chosen_and_ignorance_widens():
    model = model_of(*steps((4, 4)))

    def found(**other):
        return model.scale(LINE | other, STEADY, 5, THIRD)

    world = shrunk(2, raw(0.04), CURVE_PRIOR)
    engine = shrunk(2, raw(0.04), world)
    stack = shrunk(2, raw(0.04), engine)
    assert found() == Scale(pytest.approx(shrunk(2, raw(0.04), stack)), "line", 2)
    for other in ({"precision": "fp4"}, {"framework": "dynamo-vllm"}, {"disagg": True}):
        assert found(**other) == Scale(pytest.approx(stack), "stack", 2), other
    assert found(hardware="b200") == Scale(pytest.approx(1.5 * engine), "engine", 2)
    assert found(engine="sglang") == Scale(pytest.approx(1.5 * world), "global", 2)


@pytest.mark.parametrize(
    ("level", "repeats", "insufficient", "known"),
    [
        ("line", 8, False, True),
        ("line", 7, False, False),
        ("line", 3, False, False),
        ("line", 2, True, False),
        ("stack", 8, False, True),
        ("stack", 7, False, False),
        ("stack", 3, False, False),
        ("stack", 2, True, False),
        ("engine", 90, True, False),
        ("global", 90, True, False),
        ("public", 0, True, True),
        ("prior", 0, True, False),
    ],
)
def test_three_repeats_are_enough_to_tell_the_noise_and_eight_to_trust_small_changes(level, repeats, insufficient, known):
    scale = Scale(0.01, level, repeats)
    assert (scale.insufficient, scale.known) == (insufficient, known)
    # Where public fleets of the line are known, its own repeats need not be many.
    assert Scale(0.01, level, repeats, public=True).known


def test_a_night_is_judged_by_the_repeats_up_to_it():
    model = model_of(*steps((2, 6)))
    assert model.scale(LINE, STEADY, 5, FIRST).level == "prior"
    # One repeat of 2 %; then two of 4 % in the median.
    for until, repeats, size in ((SECOND, 1, 0.02), (THIRD, 2, 0.04), ("2027-01-01", 2, 0.04)):
        expected = CURVE_PRIOR
        for _level in range(4):
            expected = shrunk(repeats, raw(size), expected)
        assert model.scale(LINE, STEADY, 5, until) == Scale(pytest.approx(expected), "line", repeats)


def test_a_version_names_the_repeats_up_to_a_night():
    first, both = model_of(*steps((2,))), model_of(*steps((2, 6)))
    assert (both.version(FIRST), both.version(SECOND)) == ("", first.version(SECOND))
    assert both.version(SECOND) != both.version(THIRD) == both.version("2027-01-01")
    assert first.version(THIRD) == first.version(SECOND) != ""
    # All repeats up to a night are in it, those of earlier nights as well.
    assert model_of(*steps((2, 6)), *steps((2,), isl=9)).version(THIRD) != both.version(THIRD)
    # Of another run it is another one.
    assert model_of(curve("A", 0), curve("A", 1, run="other")).version(SECOND) != first.version(SECOND)


def test_the_table_tells_its_last_night_and_version():
    model = model_of(*steps((2, 6)))
    frame = model.frame()
    assert set(frame["until"]) == {THIRD}
    assert set(frame["version"]) == {model.version(THIRD)}
    assert frame.filter(level="line", unit="curve", metric=STEADY).select("engine", "framework", "precision", "deployment").row(
        0
    ) == (
        "vllm",
        "vllm",
        "fp8",
        "single",
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("vllm", "h100", "vllm", "fp8", "single"), Public(0.0011, 8)),
        (("vllm", "h200", "dynamo-vllm", "fp4", "disaggregated"), Public(0.0011, 8)),
        (("sglang", "mi355x", "sglang", "fp4", "single"), Public(0.0011, 8)),
        (("sglang", "mi355x", "sglang", "fp8", "single"), None),
        (("sglang", "mi355x", "mori-sglang", "fp4", "disaggregated"), Public(0.042, 8)),
        (("sglang", "mi355x", "mori-sglang", "fp8", "disaggregated"), Public(0.042, 8)),
        (("sglang", "h100", "sglang", "fp8", "single"), None),
        (("vllm", "mi355x", "vllm", "fp8", "single"), None),
    ],
)
def test_what_public_fleets_tell_of_a_line(line, expected):
    assert of_line(line) == expected


def test_public_scales_come_from_the_largest_moves_seen():
    # Largest moves 0.5 % and 19 %, the 95 % quantile of Student's t with three degrees of freedom, √2 for two observations.
    per_scale = student.ppf(0.975, 3) * math.sqrt(2)
    assert of_line(("vllm", "h100", "vllm", "fp8", "single")).curve == pytest.approx(0.005 / per_scale, rel=0.02)
    assert of_line(("sglang", "mi355x", "x", "fp8", "disaggregated")).curve == pytest.approx(0.19 / per_scale, rel=0.02)


H100 = LINE | {"hardware": "h100"}


def test_a_line_of_which_public_fleets_are_known_has_eight_repeats_before_its_first():
    expected = ((5 * 0.0035**2 + 8 * 0.0011**2) / 13) ** 0.5
    for metric in (REPORTED, STEADY, TPOT, E2EL):
        assert NOTHING.scale(H100, metric, 5, SECOND) == Scale(pytest.approx(expected), "public", 0)
    loud = LINE | {"engine": "sglang", "framework": "sglang", "disagg": True}
    assert NOTHING.scale(loud, STEADY, 5, SECOND).scale == pytest.approx(((5 * 0.0035**2 + 8 * 0.042**2) / 13) ** 0.5)
    # Curves of four cells and more are known, of throughput and latency, and nothing else.
    assert NOTHING.scale(H100, STEADY, 2, SECOND) == Scale(0.006, "prior", 0)
    assert NOTHING.scale(H100, TTFT, 2, SECOND) == Scale(pytest.approx(6 * 0.006), "prior", 0)
    assert NOTHING.scale(H100, TTFT, 5, SECOND) == Scale(pytest.approx(6 * 0.0035), "prior", 0)
    assert NOTHING.of_run(H100, STEADY, SECOND) == Scale(0.0035, "prior", 0)


def test_a_public_line_without_repeats_of_its_stack_is_shrunk_to_its_engine():
    count, own = 3, raw(0.02)
    engine = shrunk(count, own, shrunk(count, own, CURVE_PRIOR))
    model = model_of(*steps((2, -2, 2), hardware="b200"))
    expected = ((5 * engine**2 + 8 * 0.0011**2) / 13) ** 0.5
    assert model.scale(H100, STEADY, 5, "2026-02-01") == Scale(pytest.approx(expected), "public", 0)


@pytest.mark.parametrize(("percents", "level"), [((2, -2), "public"), ((2, -2, 2), "line")])
def test_own_repeats_join_those_of_public_fleets(percents, level):
    count, own = len(percents), raw(0.02)
    stack = CURVE_PRIOR
    for _level in range(3):
        stack = shrunk(count, own, stack)
    expected = ((count * own**2 + 5 * stack**2 + 8 * 0.0011**2) / (count + 13)) ** 0.5
    model = model_of(*steps(percents, hardware="h100"))
    assert model.scale(H100, STEADY, 5, "2026-02-01") == Scale(pytest.approx(expected), level, count)


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
    noise = detect(points(curve("A", 0), curve("A", 1, label="mi355x-amd_7", cells=(4, 8, 16, 32)))).noise
    assert noise.filter(level="stack", unit="curve", metric=STEADY)["repeats"].to_list() == [1]


def test_no_repeats_no_table():
    assert measure([]).frame().is_empty()


@settings(max_examples=6, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(percents, random):
    whole = points(*steps(percents))
    order = list(range(whole.height))
    random.shuffle(order)
    assert detect(whole).noise.equals(detect(whole[order]).noise)
