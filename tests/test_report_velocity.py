"""Levels of builds, against chains worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.velocity import SCHEMA, T_95, velocity
from tests import frames


def step(old: str, new: str, pct: float, start: float, end: float, **overrides: Any) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": value
        for side, version, at in (("from", old, start), ("to", new, end))
        for name, value in {**frames.build_of(version), "measured_at": frames.day(at), "run_id": str(at)}.items()
    }
    return frames.diff(
        **{
            "diff_id": f"{old}-{new}-{start}-{end}-{overrides.get('curve_id', '')}",
            "steady_pct": pct,
            "same_build": old == new,
            "flagged": False,
            **sides,
            **overrides,
        }
    )


def levels(
    *diffs: dict[str, Any], shifts: list[dict[str, Any]] | None = None, noise: list[dict[str, Any]] | None = None
) -> pl.DataFrame:
    found = velocity(frames.frame("diffs", list(diffs)), frames.frame("shifts", shifts), frames.frame("noise", noise))
    assert found.schema == SCHEMA
    return found


def test_a_chain_multiplies_and_a_repeat_of_a_build_does_not_move_it():
    found = levels(
        step("1.0", "1.0", 4.0, 0, 1),
        step("1.0", "1.1", 10.0, 1, 2),
        step("1.1", "1.1", -3.0, 2, 3),
        step("1.1", "1.2", -50.0, 3, 4),
    )
    assert found["build"].to_list() == ["1.0", "1.1", "1.2"]
    assert found["index"].to_list() == pytest.approx([100, 110, 55])
    assert found["at"].to_list() == [frames.day(0), frames.day(2), frames.day(4)]
    assert found["until"].to_list() == [frames.day(4)] * 3
    assert found["linked"].to_list() == [False, True, True]


def test_a_level_is_the_median_over_curves_and_a_curve_that_skips_a_build_counts_once():
    found = levels(
        step("1.0", "1.1", 10, 0, 1, curve_id="a"),
        step("1.0", "1.1", 12, 0, 1, curve_id="b"),
        step("1.0", "1.1", 90, 0, 1, curve_id="c"),
        step("1.1", "1.2", 0, 1, 2, curve_id="a"),
        step("1.0", "1.2", 12, 0, 2, curve_id="d"),
        step("1.1", "1.2", 0, 1, 2, curve_id="b"),
    )
    assert found["index"].to_list() == pytest.approx([100, 112, 112])
    assert found["comparisons"].to_list() == [0, 3, 3]


@pytest.mark.parametrize("attribution", ["measurement", "environment"])
def test_what_the_same_image_could_show_does_not_move_the_index(attribution):
    assert levels(step("1.0", "1.1", -30, 0, 1, attribution=attribution)).is_empty()


def test_a_shift_that_was_put_down_to_the_environment_later_takes_its_comparison_out():
    moved = step("1.0", "1.1", -30, 0, 1, curve_id="a")
    pair = {name: moved[name] for name in frames.shift() if name in moved}
    quiet = step("1.0", "1.1", 1, 0, 1, curve_id="b")
    assert levels(moved, quiet, shifts=[frames.shift(**pair | {"attribution": "environment"})])[
        "index"
    ].to_list() == pytest.approx([100, 101])
    assert levels(moved, quiet, shifts=[frames.shift(**pair | {"status": "retracted"})])["index"].to_list() == pytest.approx(
        [100, 101]
    )
    assert levels(moved, shifts=[frames.shift(**pair)])["index"].to_list() == pytest.approx([100, 70])


def test_a_build_that_nothing_leads_to_carries_the_level_on_and_says_so():
    found = levels(step("1.0", "1.1", 10, 0, 1), step("2.0", "2.1", 20, 5, 6))
    assert found["index"].to_list() == pytest.approx([100, 110, 110, 132])
    assert found["linked"].to_list() == [False, True, False, True]


def test_going_back_to_an_older_build_leaves_its_level():
    assert levels(step("1.0", "1.1", 10, 0, 1), step("1.1", "1.0", -20, 1, 2))["index"].to_list() == pytest.approx([100, 110])


def test_the_noise_band_uses_the_narrowest_level_and_grows_with_the_root_of_the_changes():
    wide = [
        frames.noise(level="global", hardware=None, engine=None, scale=0.5),
        frames.noise(level="engine", hardware=None, scale=0.2),
    ]
    diffs = [step("1.0", "1.1", 0, 0, 1), step("1.1", "1.2", 0, 1, 2)]
    found = levels(
        *diffs,
        noise=[
            *wide,
            frames.noise(scale=0.01),
            frames.noise(metric="tpot_median", scale=0.9),
            frames.noise(unit="point", scale=0.9),
        ],
    )
    assert found["low"].to_list() == pytest.approx([100 * math.exp(-T_95 * 0.01 * math.sqrt(2 * k)) for k in (0, 1, 2)])
    assert found["high"].to_list() == pytest.approx([100 * math.exp(T_95 * 0.01 * math.sqrt(2 * k)) for k in (0, 1, 2)])
    assert levels(*diffs, noise=wide)["high"][1] == pytest.approx(100 * math.exp(T_95 * 0.2 * math.sqrt(2)))
    assert levels(*diffs)["high"].to_list() == [None, None, None]


def test_lines_are_apart_and_a_mixed_comparison_is_marked():
    found = levels(
        step("1.0", "1.1", 10, 0, 1),
        step("1.0", "1.1", 20, 0, 1, hardware="h100", change_set=["build", "recipe"]),
        step("1.0", "1.1", None, 0, 1, hardware="b200"),
        step("1.0", "1.1", -100.0, 0, 1, hardware="h200"),
    )
    assert found.select("hardware", "build", "mixed").rows() == [
        ("h100", "1.0", False),
        ("h100", "1.1", True),
        ("mi355x", "1.0", False),
        ("mi355x", "1.1", False),
    ]


@given(st.lists(st.floats(-60, 150), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_last_level_is_the_product_of_the_steps_in_whatever_order_they_come(sizes, random):
    diffs = [step(f"1.{n}", f"1.{n + 1}", size, n, n + 1) for n, size in enumerate(sizes)]
    found = levels(*diffs)
    assert found["index"][-1] == pytest.approx(100 * math.prod(1 + size / 100 for size in sizes))
    random.shuffle(diffs)
    assert levels(*diffs).equals(found)
