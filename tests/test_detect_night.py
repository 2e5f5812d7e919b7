"""All of detection in order: the same points give the same bytes, and what is added leaves the rest its name."""

import math
import random
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.detect.night import Detection, detect
from tests.fleet import CELLS, curve, points, quiet
from warehouse.digest import content_hash
from warehouse.schemas import DIFFS, NOISE, POINTS, SHIFTS


def fleet():
    """Return frames with every kind of shift in them."""
    jitter = random.Random(7)
    frames = [curve("A", day, math.exp(jitter.gauss(0, 0.003)), isl=2000 + n) for n in range(8) for day in range(4)]
    for n in range(4):
        frames += [curve("A", 0, isl=n + 1), curve("B", 1.5, 0.92, isl=n + 1), curve("B", 2.5, 0.92, isl=n + 1)]
    frames += [curve("A", 0, isl=50, recipe="aa"), curve("A", 1, 1.2, isl=50, recipe="bb")]
    frames += [curve("A", 0, isl=60), curve("A", 1, cold=(4, 8), isl=60), curve("A", 2, 0.9, isl=60)]
    return frames


def hashes(found: Detection):
    return [content_hash(frame) for frame in (found.noise, found.diffs, found.shifts)]


def test_the_tables_have_their_schema():
    found = detect(points(*fleet()))
    assert (found.noise.schema, found.diffs.schema, found.shifts.schema) == (NOISE.schema, DIFFS.schema, SHIFTS.schema)
    assert set(found.shifts["attribution"]) == {"engine", "recipe", "measurement", "environment"}


def test_no_points_no_rows():
    found = detect(pl.DataFrame(schema=POINTS.schema))
    assert [frame.height for frame in (found.noise, found.diffs, found.shifts)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed):
    whole = points(*fleet())
    shuffled = whole.sample(fraction=1, shuffle=True, seed=seed)
    assert not shuffled.equals(whole)
    assert hashes(detect(shuffled)) == hashes(detect(whole))


def test_how_the_rows_were_cut_does_not_matter():
    frames = fleet()
    whole = points(*frames).rechunk()
    parts = [whole[start : start + 17] for start in range(0, whole.height, 17)]
    random.Random(3).shuffle(parts)
    assert hashes(detect(pl.concat(parts, rechunk=False))) == hashes(detect(whole))


def test_a_record_that_stands_twice_changes_nothing():
    whole = points(*fleet())
    assert hashes(detect(pl.concat([whole, whole]))) == hashes(detect(whole))


def test_an_unrelated_curve_leaves_ids_alone():
    before = detect(points(*fleet()))
    after = detect(points(*fleet(), curve("A", 0, isl=99), curve("B", 1.5, isl=99)))
    assert set(before.shifts["shift_id"]) == set(after.shifts["shift_id"])
    assert set(before.diffs["diff_id"]) < set(after.diffs["diff_id"])


def test_a_later_day_leaves_ids_alone():
    frames = fleet()
    repeated = [*frames, *(curve("B", 5, 0.92, isl=n + 1) for n in range(4))]
    followed = [*repeated, *(curve("C", 6, 1.1, isl=n + 1) for n in range(4))]
    seen = [detect(points(*days)) for days in (frames, repeated, followed)]
    for earlier, later in pairwise(seen):
        assert set(earlier.diffs["diff_id"]) <= set(later.diffs["diff_id"])
        assert set(earlier.shifts["shift_id"]) <= set(later.shifts["shift_id"])
        keys = earlier.shifts.select("shift_id", "curve_id", "from_run_id", "to_run_id")
        assert keys.join(later.shifts, on=keys.columns).height == keys.height


def test_ids_are_unique_and_a_shift_is_its_comparison():
    found = detect(points(*fleet()))
    assert found.diffs["diff_id"].is_unique().all()
    assert set(found.shifts["shift_id"]) == set(found.diffs.filter("flagged")["diff_id"])


def test_a_comparison_has_its_sides_and_its_days():
    (row,) = detect(points(curve("A", 0), curve("B", 2.25, 0.94))).shifts.to_dicts()
    assert row["gap_days"] == 2.25
    assert (row["from_image_ref"], row["to_image_ref"]) == ("vllm/vllm-openai:vA", "vllm/vllm-openai:vB")
    assert (row["night"], row["cells"], row["cells_total"], row["direction"]) == ("2026-01-03", 5, 5, "regression")
    assert [row[f"{name}_pct"] for name in ("size", "reported", "steady", "tpot", "ttft")] == pytest.approx([-6] * 5)


def test_a_speed_up_is_positive():
    (row,) = detect(points(curve("A", 0), curve("B", 1, 1.1))).shifts.to_dicts()
    assert (row["direction"], row["size_pct"], row["agreeing"]) == ("speedup", pytest.approx(10), 5)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 100))
def test_a_faster_machine_gives_the_same_log(scale):
    """Every speed times a constant, on all sides: sizes stay, and with them all that is decided."""
    speeds = [1.0, 1.004, 0.93, 0.931, 0.90]
    first, second = (
        detect(points(*quiet(3), *(curve("AABBC"[day], day, speed * factor) for day, speed in enumerate(speeds))))
        for factor in (1.0, scale)
    )
    assert first.diffs["size"].to_list() == pytest.approx(second.diffs["size"].to_list(), abs=1e-9)
    decided = ["diff_id", "flagged", "attribution", "metric", "part"]
    # The quiet curves are exactly still, so that the sign of their nothing may differ; what is flagged may not.
    moved = [found.diffs.filter(pl.col("size").abs() > 1e-6).select(decided) for found in (first, second)]
    assert moved[0].equals(moved[1])
    said = [found.shifts.select("shift_id", "status", "attribution") for found in (first, second)]
    assert said[0].equals(said[1])


@settings(max_examples=40, deadline=None)
@example([0.0, 0.001953125, 0.00390625, -0.009765625], ["A"] * 8)
@given(st.lists(st.floats(-0.0099, 0.0099), min_size=2, max_size=8), st.lists(st.sampled_from("AB"), min_size=8, max_size=8))
def test_noise_of_less_than_one_percent_is_never_flagged(percents, builds):
    frames = [curve(builds[day], day, 1 + percent) for day, percent in enumerate(percents)]
    assert detect(points(*frames)).shifts.is_empty()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(-0.012, 0.012), min_size=5, max_size=5), min_size=2, max_size=5))
def test_small_noise_of_single_cells_is_never_flagged(noise):
    frames = [
        curve("AB"[day % 2], day, cells={cell: 1 + jitter for cell, jitter in zip(CELLS, cells, strict=True)})
        for day, cells in enumerate(noise)
    ]
    assert detect(points(*frames)).shifts.is_empty()
