"""Frontiers, mostly of points on y = K / x, which is a straight line in logarithms: a change of K is the same everywhere."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.frontier import (
    DRAWS,
    MIN_CELLS,
    TARGETS,
    Cloud,
    change,
    detect_frontiers,
    draws,
    frontiers,
    log_hypervolume,
    move,
    previous,
    read,
)
from tests import fleet, frames
from warehouse.canonical import content_id
from warehouse.schemas import FRONTIER_DIFFS, POINTS

K = 50_000.0
AT = (100.0, 50.0, 25.0)


def points(day, values, build="A", steady=None, digest=None, **columns):
    """One run: `values` maps interactivity of a cell (its name, too) to K, or to (interactivity now, K)."""
    rows = []
    for cell, value in values.items():
        x, k = value if isinstance(value, tuple) else (cell, value)
        row = {
            "cell_id": f"cell {cell}",
            "curve_id": f"curve {cell > 60}",
            "run_id": f"r{day}",
            "measured_at": frames.day(day),
            **fleet.build_of(build, digest),
            "tput_per_gpu": k / x,
            "steady_output_tput_per_gpu": (steady or k) / x / 2,
            "tpot_median": 1 / x,
            "metric_definition": "inferencex",
            **columns,
        }
        row["record_hash"] = row["point_id"] = content_id(repr(sorted(row.items())))
        rows.append(frames.point(**row))
    return pl.DataFrame(rows, schema=POINTS.schema)


def even(k=K, at=AT):
    return dict.fromkeys(at, k)


def rows(*parts):
    found = detect_frontiers(pl.concat(parts))
    assert found.schema == FRONTIER_DIFFS.schema
    return {row["interactivity"]: row for row in found.iter_rows(named=True)}


def clouds(values):
    return Cloud.of(np.array([x for x, _ in values], dtype=float), np.array([y for _, y in values], dtype=float))


def test_ten_percent_more_is_ten_percent_at_every_place_that_both_cover():
    found = rows(points(0, even()), points(1, even(1.1 * K), "B"))
    assert set(found) == {None, *TARGETS}
    for place in (None, 35.0, 50.0, 75.0, 100.0):
        row = found[place]
        assert row["size_pct"] == row["steady_size_pct"] == row["raw_pct"] == row["matched_pct"] == pytest.approx(10)
        assert row["size"] == pytest.approx(math.log(1.1))
        assert row["coverage_pct"] == pytest.approx(0, abs=1e-9) and row["missing"] is None
    assert found[50.0]["from_tput_per_gpu"] == pytest.approx(1000) and found[50.0]["to_tput_per_gpu"] == pytest.approx(1100)
    assert found[None]["interval_low_pct"] == found[None]["interval_high_pct"] == pytest.approx(10)
    # Dominated areas: 25 · K/25 + 25 · K/50 + 50 · K/100 = 2 K.
    assert found[None]["hypervolume_pct"] == found[None]["raw_hypervolume_pct"] == pytest.approx(10)
    assert found[50.0]["hypervolume_pct"] is None


def test_outside_the_data_of_either_side_nothing_is_said():
    found = rows(points(0, even()), points(1, even(), "B"))
    assert found[20.0]["missing"] == "outside the data"
    assert (
        found[20.0]["size"] is found[20.0]["interval_low_pct"] is found[20.0]["raw_pct"] is found[20.0]["to_tput_per_gpu"] is None
    )


def test_the_interval_at_the_end_of_the_data_needs_half_of_the_draws():
    # 100 is read off the last cell alone: 1 - (2/3)^3 = 70 % of the draws of three cells hold it.
    assert rows(points(0, even()), points(1, even(), "B"))[100.0]["interval_low_pct"] == pytest.approx(0, abs=1e-9)
    three = clouds([(math.log(x), 0.0) for x in AT])
    absent = np.zeros((3, DRAWS), dtype=bool)
    absent[:, : DRAWS // 2 - 1] = True
    assert np.isnan(change(three, three, absent).low).all()


def test_what_moved_because_cells_were_gained_is_coverage():
    found = rows(points(0, even()), points(1, even() | {49.9: (50.0, 2 * K)}, "B"))
    row = found[50.0]
    assert row["size_pct"] == pytest.approx(0, abs=1e-9)
    assert row["raw_pct"] == row["coverage_pct"] == pytest.approx(100)
    assert (row["cells_shared"], row["cells_gained"], row["cells_lost"]) == (3, 1, 0)
    assert row["change_set"] == ["build", "search_space"] and not row["stands_out"]


def test_what_moved_because_cells_and_their_curve_were_lost_is_coverage():
    found = rows(points(0, {100.0: 2 * K} | even(at=(50.0, 40.0, 25.0))), points(1, even(at=(50.0, 40.0, 25.0)), "B"))
    row = found[None]
    assert row["size_pct"] == pytest.approx(0, abs=1e-9)
    assert (row["cells_lost"], row["curves_lost"], row["curves_gained"]) == (1, 1, 0)
    assert found[100.0]["missing"] == "outside the data"
    assert row["raw_hypervolume_pct"] < -20 and row["hypervolume_pct"] == pytest.approx(0, abs=1e-9)


def test_without_a_shared_cell_there_is_no_speed():
    found = rows(points(0, even()), points(1, even(3 * K, at=(99.0, 49.0, 24.0)), "B"))
    assert {row["missing"] for row in found.values()} == {"no shared cells"}
    assert found[50.0]["raw_pct"] == pytest.approx(200) and found[50.0]["size"] is None


def test_an_unfit_cell_lends_its_reported_throughput_to_nobody():
    cold = points(1, {50.0: K / 2}, "B", steady=K, verdict="unfit", health=["cold_start"])
    found = rows(points(0, even()), points(1, even(at=(100.0, 25.0)), "B"), cold)
    row = found[None]
    assert row["cells_unfit"] == 1 and row["cells_shared"] == 3
    assert row["size_pct"] == row["steady_size_pct"] == pytest.approx(0, abs=1e-9)
    assert row["interval_low_pct"] is None and row["steady_interval_low_pct"] == pytest.approx(0, abs=1e-9)
    other = points(1, {50.0: K / 2}, "B", steady=K / 2, verdict="unfit", health=["failures"])
    assert rows(points(0, even()), points(1, even(at=(100.0, 25.0)), "B"), other)[None]["steady_interval_low_pct"] is None


def reruns(count, k):
    """Other frontiers of the stack, each rerun on one build and back at *k*."""
    return [points(day, even(value), "A", isl=9_000 + n) for n in range(count) for day, value in ((0, K), (1, k))]


def test_another_build_stands_out_only_beyond_what_reruns_of_the_stack_do():
    pair = points(0, even()), points(1, even(1.1 * K), "B")

    def judged(*others):
        found = detect_frontiers(pl.concat([*pair, *others])).filter(pl.col("isl") == 1024, pl.col("interactivity").is_null())
        return found.select("rerun_pct", "rerun_level", "rerun_pairs", "stands_out").row(0)

    assert judged() == (None, None, None, False)
    assert judged(*reruns(5, 1.01 * K)) == (pytest.approx(1), "stack", 5, True)
    assert judged(*reruns(4, 1.01 * K)) == (pytest.approx(1), "global", 4, True)
    assert judged(*reruns(5, 1.12 * K)) == (pytest.approx(12), "stack", 5, False)
    moved = [frame.with_columns(hardware=pl.lit("h100")) for frame in reruns(5, 1.01 * K)]
    assert judged(*moved)[1] == "engine"


def test_one_build_never_stands_out_and_a_build_that_may_be_the_same_neither():
    quiet = reruns(5, K)
    sides = {"A": ("A", None, True), "digest": ("A", "a", None), "other": ("B", "a", False)}
    for build, digest, same in sides.values():
        pair = points(0, even(), "A"), points(1, even(1.5 * K), build, digest=digest)
        found = detect_frontiers(pl.concat([*pair, *quiet])).filter(pl.col("isl") == 1024)
        assert found["same_build"].unique().to_list() == [same]
        assert found["stands_out"].any() == (same is False)
    nameless = points(1, even(1.5 * K), **fleet.unknown_build())
    found = detect_frontiers(pl.concat([points(0, even(), **fleet.unknown_build()), nameless, *quiet]))
    assert not found["stands_out"].any()


def test_a_witness_that_stands_still_keeps_a_change_from_standing_out():
    pair = points(0, even()), points(1, even(1.2 * K), "B", steady=K)
    assert not detect_frontiers(pl.concat([*pair, *reruns(5, K)]))["stands_out"].any()


def test_two_configurations_side_by_side_do_not_make_a_speed_up():
    # Seen on real reruns: 46.4 → 2,353 and 46.6 → 1,404 tok/s/GPU became 46.1 → 1,400 and 46.6 → 2,365. Read at 50, +50 %.
    old = {25.0: K, 46.4: 46.4 * 2353, 46.6: 46.6 * 1404, 100.0: 100.0 * 300}
    new = {25.0: K, 46.4: (46.6, 46.6 * 2365), 46.6: (46.1, 46.1 * 1400), 100.0: 100.0 * 300}
    found = detect_frontiers(pl.concat([points(0, old), points(1, new, "B"), *reruns(5, K)])).filter(pl.col("isl") == 1024)
    row = found.row(by_predicate=pl.col("interactivity") == 50, named=True)
    assert row["size_pct"] > 40 and row["fronts_differ"] == 1
    assert abs(row["matched_pct"]) < 2 and not row["stands_out"]


def test_recipe_checkpoint_and_host_that_differ_are_told():
    old = points(0, even(), recipe_fingerprint="r", checkpoint="c", hardware_label="h")
    new = points(1, even(), recipe_fingerprint="r2", checkpoint="c2", hardware_label="h2")
    assert rows(old, new)[None]["change_set"] == ["recipe", "checkpoint", "environment"]
    assert rows(old, points(1, even()))[None]["change_set"] == []
    hosts = points(0, even(), hardware_label="mi355x-amd_0"), points(1, even(), hardware_label="mi355x-amd_1")
    assert rows(*hosts)[None]["change_set"] == []


def test_fewer_than_three_shared_cells_have_a_size_and_no_interval():
    found = rows(points(0, even(at=(100.0, 25.0))), points(1, even(1.1 * K, at=(100.0, 25.0)), "B"))[50.0]
    assert found["size_pct"] == pytest.approx(10) and found["interval_low_pct"] is None and not found["stands_out"]
    single = rows(points(0, even(at=(50.0,))), points(1, even(1.1 * K, at=(50.0,)), "B"))
    assert single[50.0]["size_pct"] == pytest.approx(10) and single[None]["missing"] == "no overlap"


def test_a_frontier_is_of_one_run_and_build_and_key():
    parts = [points(0, even()), points(0, even(), "B"), points(0, even(), isl=8192), points(0, even(), scenario="agentic-coding")]
    assert len(frontiers(pl.concat(parts))) == 4
    assert detect_frontiers(pl.concat(parts)).is_empty()


def test_a_cell_measured_twice_counts_by_its_median_and_a_reused_record_not_at_all():
    twice = pl.concat([points(0, even(k)) for k in (0.5 * K, K, 2 * K)])
    (one,) = frontiers(twice)
    assert np.exp(one.throughput["tput_per_gpu"]) == pytest.approx([500, 2000, 1000])  # by cell id: 100.0, 25.0, 50.0
    assert np.exp(one.interactivity) == pytest.approx([100, 25, 50])
    copy = points(1, even(3 * K), "B", reused=True)
    assert detect_frontiers(pl.concat([twice, copy])).is_empty()


def test_the_previous_frontier_is_the_latest_that_shares_enough():
    history = frontiers(
        pl.concat([points(0, even()), points(1, even(at=(50.0, 25.0))), points(2, even(), "B"), points(2, even(), "C")])
    )
    assert previous(history, 0) is None
    assert previous(history, 1).side["run_id"] == "r0"
    assert previous(history, 2).side["run_id"] == "r0"
    later = frontiers(pl.concat([points(0, even(), "C"), points(0, even(), "B"), points(3, even(), "B")]))
    assert previous(later, 2).side["build_id"] == later[2].side["build_id"]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_points_in_any_order_give_the_same_bytes(seed):
    rng = np.random.default_rng(seed)
    parts = [
        points(day, {x: (x * rng.normal(1, 0.02), K * rng.normal(1, 0.05)) for x in (30.0, 45.0, 60.0, 90.0)}, build)
        for day, build in enumerate("AABBC")
    ]
    table = pl.concat(parts)
    first = detect_frontiers(table)
    assert first.equals(detect_frontiers(table.sample(fraction=1, shuffle=True, seed=seed)))
    assert first.equals(first.sort(FRONTIER_DIFFS.order)) and not first["comparison_id"].is_null().any()


def test_no_points_give_an_empty_table():
    assert detect_frontiers(frames.frame("points")).schema == FRONTIER_DIFFS.schema


CLOUDS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=9)


@given(CLOUDS)
def test_a_point_is_on_the_frontier_if_no_other_beats_it(values):
    cloud = clouds(values)
    kept = {(x, y) for x, y, on in zip(cloud.x, cloud.y, cloud.front()[:, 0], strict=True) if on}
    beaten = {(x, y) for x, y in values if any(a >= x and b >= y and (a, b) != (x, y) for a, b in values)}
    assert kept == set(values) - beaten


@given(CLOUDS, st.lists(st.floats(0, 13), min_size=1, max_size=5))
def test_reading_is_linear_between_frontier_points_and_nothing_outside(values, at):
    cloud = clouds(values)
    on = cloud.front()
    x, y = cloud.x[on[:, 0]], cloud.y[on[:, 0]]
    expected = np.interp(at, x, y, left=math.nan, right=math.nan)
    assert read(cloud, on, np.array(at))[:, 0] == pytest.approx(expected, nan_ok=True)


@given(CLOUDS, CLOUDS)
def test_back_is_the_opposite_of_forth(one, other):
    first, second = clouds(one), clouds(other)
    at = np.concatenate((np.linspace(2, 5, 25), np.arange(5.0)))
    forth, back = move(first, second, at), move(second, first, at)
    assert forth.size == pytest.approx(-back.size, nan_ok=True)
    assert forth.hypervolume == pytest.approx(-back.hypervolume)


@given(CLOUDS, st.floats(-1, 1))
def test_a_frontier_that_rises_everywhere_alike_rose_by_that(values, rise):
    low = clouds(values)
    high = clouds([(x, y + rise) for x, y in values])
    found = change(low, high, draws(len(values), "seed"))
    assert found.fronts_differ == 0 and log_hypervolume(high, high.front()) - log_hypervolume(low, low.front()) == pytest.approx(
        rise
    )
    for number in (*found.move.size, *found.low, *found.high, *found.matched):
        assert math.isnan(number) or number == pytest.approx(rise, abs=1e-9)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.floats(3, 5), st.floats(5, 9), st.floats(-0.1, 0.1)), min_size=MIN_CELLS, max_size=8))
def test_the_interval_is_that_of_draws_taken_one_by_one(values):
    old, new = clouds([(x, y) for x, y, _ in values]), clouds([(x, y + rise) for x, y, rise in values])
    members = draws(len(values), "seed")
    found, at = change(old, new, members), math.log(50)
    sizes = []
    for chosen in members.T:
        levels = []
        for lift in (0, 1):
            held = [(x, y + lift * rise) for (x, y, rise), inside in zip(values, chosen, strict=True) if inside]
            best = [(x, y) for x, y in held if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in held)]
            levels.append(np.interp(at, *np.array(sorted(best)).T, left=math.nan, right=math.nan))
        sizes.append(levels[1] - levels[0])
    reached = np.isfinite(sizes)
    place = 1 + TARGETS.index(50.0)
    if reached.mean() < 0.5:
        assert math.isnan(found.low[place])
    else:
        expected = np.quantile(np.array(sizes)[reached], (0.05, 0.95))
        assert (found.low[place], found.high[place]) == pytest.approx(tuple(expected), abs=1e-9)


def test_draws_are_a_bootstrap_sample_that_its_seed_alone_decides():
    members = draws(10, "seed")
    assert members.shape == (10, DRAWS) and members.any(axis=0).all()
    assert np.array_equal(members, draws(10, "seed")) and not np.array_equal(members, draws(10, "another"))
    # A cell is in a sample with probability 1 - 0.9^10 = 0.651.
    assert members.mean() == pytest.approx(1 - 0.9**10, abs=0.01)
    assert draws(MIN_CELLS - 1, "seed") is None
