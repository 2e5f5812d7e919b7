"""Fitness of curves and runs: fabricated curves of one simple machine, and the real runs that the rules were measured on."""

import json
import math
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.fitness import MIN_RUNS, explained, incoherence, judge_curves, waits
from pipelines.fold.small import whole_tables
from pipelines.ingest import runs
from tests import fleet, frames
from warehouse.events import ResultRecorded, RunReported, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import FITNESS
from warehouse.store import Store

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "runs"


def judged(*parts, level="curve"):
    found = judge_curves(pl.concat(parts))
    assert found.schema == FITNESS.schema
    return found.filter(pl.col("level") == level).to_dicts()


@cache
def siblings(day, speed=1.0, count=3, build="A", **columns):
    """Curves of one run and stack; they are built once, for that takes longer than to judge them."""
    return [fleet.curve(build, day, speed=speed * (1 + 0.001 * n), isl=2_000 + n, **columns) for n in range(count)]


def test_a_plain_curve_is_fit_and_so_is_its_run():
    (curve,) = judged(fleet.curve())
    (run,) = judged(fleet.curve(), level="run")
    for row in (curve, run):
        assert (row["verdict"], row["reasons"], row["points"], row["unfit"], row["suspect"]) == ("fit", [], 5, 0, 0)
        assert row["waits"] == [] and row["excess_s"] is row["explained_share"] is None
    assert curve["ratio_off"] == pytest.approx(0, abs=1e-12) and curve["step_off"] == 0
    assert (run["curves"], run["curves_unfit"], run["curve_id"]) == (1, 0, None) and curve["curves"] is None


def test_one_cell_whose_headline_left_the_curve_makes_it_incoherent():
    # Its mean latency is 1.01 + 0.4 of the median where the others have 1.01: ln(1.01 / 1.41).
    (row,) = judged(fleet.curve(cold=[16]))
    assert (row["verdict"], row["reasons"], row["incoherent_at"], row["unfit"]) == ("unfit", ["incoherent_curve"], 16, 1)
    assert row["ratio_off"] == pytest.approx(math.log(1.01 / 1.41))


@pytest.mark.parametrize(("skew", "reasons"), [(0.069, []), (0.095, ["incoherent_curve"])])
def test_the_gate_lies_between_the_healthy_cells_and_the_broken_ones(skew, reasons):
    wait = 1.01 * math.exp(skew) - 1.01
    (row,) = judged(fleet.curve(skew={8: wait}))
    assert row["ratio_off"] == pytest.approx(-skew) and row["reasons"] == reasons


def test_an_engine_that_slows_down_under_load_is_no_fault_of_the_measurement():
    (row,) = judged(fleet.curve(cells={4: 1.0, 8: 1.0, 16: 0.3, 32: 0.15, 64: 0.3}))
    assert row["verdict"] == "fit" and row["step_off"] == 0 and row["ratio_off"] == pytest.approx(0, abs=1e-12)


def two(first, second):
    """Two cells, at 4 and 8, whose steady state rises by half of the load; reported as told."""
    parts = [
        fleet.curve(cells=[c], run="r", values={"tput_per_gpu": value, "steady_output_tput_per_gpu": 50.0 * c**0.5})
        for c, value in ((4, first), (8, second))
    ]
    return judged(*parts)[0]


def test_throughput_neither_falls_under_load_nor_gains_more_than_the_load():
    assert two(100, 100)["step_off"] == 0 and two(100, 200)["step_off"] == pytest.approx(0)
    fallen, leapt = two(100, 94), two(100, 213)
    assert fallen["step_off"] == pytest.approx(math.log(100 / 94)) and fallen["reasons"] == ["incoherent_curve"]
    assert leapt["step_off"] == pytest.approx(math.log(213 / 200)) and leapt["reasons"] == ["incoherent_curve"]
    assert two(100, 96)["reasons"] == two(100, 209)["reasons"] == []
    assert fallen["ratio_off"] is None  # of two cells nobody knows which is the odd one


def test_most_points_unfit():
    (row,) = judged(fleet.curve(cold=[4, 8, 16]))
    assert row["reasons"] == ["incoherent_curve", "mostly_unfit"] and row["verdict"] == "unfit"
    (alike,) = judged(fleet.curve(cold=fleet.CELLS))
    assert alike["reasons"] == ["mostly_unfit"] and alike["ratio_off"] == pytest.approx(0, abs=1e-12)
    (run,) = judged(fleet.curve(cold=fleet.CELLS), level="run")
    assert run["reasons"] == ["mostly_unfit"] and run["curves_unfit"] == 1


def test_a_run_with_one_unfit_curve_is_suspect_and_with_most_of_them_incoherent_unfit():
    curves = [fleet.curve(isl=2_000 + n, cold=[16] if n < 1 else []) for n in range(3)]
    (run,) = judged(*curves, level="run")
    assert (run["verdict"], run["reasons"], run["curves"], run["curves_unfit"]) == ("suspect", [], 3, 1)
    curves = [fleet.curve(isl=2_000 + n, cold=[16] if n < 2 else []) for n in range(3)]
    (run,) = judged(*curves, level="run")
    assert (run["verdict"], run["reasons"]) == ("unfit", ["incoherent_curve"])


def test_one_unfit_or_half_suspect_points_make_a_curve_suspect():
    (row,) = judged(fleet.curve(cells=[4, 8], cold={8: 0.12}))  # throughput still rises from 4 to 8, only less than it might
    assert (row["verdict"], row["unfit"], row["reasons"]) == ("suspect", 1, [])
    (row,) = judged(fleet.curve(cells=[4, 8, 16], values={"requests": 5, "requests_failed": 0}))
    assert (row["verdict"], row["suspect"], row["reasons"]) == ("suspect", 3, [])


def test_a_run_that_stands_off_alone_from_the_same_build_is_a_host_anomaly():
    runs = [curve for day in range(3) for curve in siblings(day)]
    found = judged(*runs, *siblings(3, 1.1), level="run")
    assert [row["reasons"] for row in found] == [[], [], [], ["lone_run"]]
    lone = found[-1]
    assert lone["verdict"] == "unfit" and lone["run_shift"] == pytest.approx(math.log(1.1))
    assert (lone["run_spread"], lone["run_curves"], lone["run_repeats"]) == (0.005, 3, 4)
    slow = judged(*runs, *siblings(3, speed=0.9), level="run")[-1]
    assert slow["reasons"] == ["lone_run"] and slow["run_shift"] == pytest.approx(math.log(0.9))


def test_nobody_is_alone_without_repeats_siblings_or_agreement():
    assert MIN_RUNS == 3
    pair = judged(*siblings(2), *siblings(3, 1.1), level="run")
    few = judged(*(curve for day, speed in enumerate((1.0, 1.0, 1.0, 1.1)) for curve in siblings(day, speed)[:2]), level="run")
    split = judged(*(curve for day, speed in enumerate((0.8, 1.0, 1.2)) for curve in siblings(day, speed)), level="run")
    apart = [fleet.curve(day=3, isl=2_000 + n, speed=s) for n, s in enumerate((1.1, 1.0, 0.9))]
    scattered = judged(*(curve for day in range(3) for curve in siblings(day)), *apart, level="run")
    another = judged(*(curve for day in range(3) for curve in siblings(day)), *siblings(3, 1.2, build="B"), level="run")
    for found in (pair, few, split, scattered, another):
        assert all(row["reasons"] == [] for row in found)


def test_a_cold_start_does_not_make_a_lone_run():
    runs = [curve for day in range(3) for curve in siblings(day)]
    found = judged(*runs, *siblings(3, cold=(16, 32)), level="run")
    assert found[-1]["reasons"] == ["incoherent_curve"] and found[-1]["run_shift"] == pytest.approx(0, abs=1e-9)


def test_hosts_of_one_build_are_judged_apart():
    quiet = [curve for day in range(4) for curve in siblings(day)]
    others = [
        curve.with_columns(hardware=pl.lit("h200"))
        for day in range(4)
        for curve in (siblings(3, 1.1) if day == 3 else siblings(day))
    ]
    found = judged(*quiet, *others, level="run")
    assert [(row["hardware"], row["reasons"]) for row in found if row["reasons"]] == [("h200", ["lone_run"])]


def test_a_reused_record_is_not_judged_again():
    copy = fleet.curve(day=1, cold=[16]).with_columns(reused=pl.lit(True))
    assert len(judged(fleet.curve(), copy)) == 1


def cold_point(**columns):
    """Mean TTFT 6.4 s over a median of 0.4 s, mean latency 18 s over 12 s at concurrency 8."""
    numbers = {"ttft_mean": 6.4, "ttft_median": 0.4, "e2el_mean": 18.0, "e2el_median": 12.0, "metric_definition": "inferencex"}
    return frames.frame("points", [frames.point(**{"health": ["cold_start"], "verdict": "unfit", **numbers, **columns})])


def test_the_wait_of_the_first_burst_in_seconds():
    def told(**columns):
        return waits(cold_point(**columns)).select("excess_s", "burst_wait_s", "explained_share").row(0)

    # 6 s a request: of 80 requests 480 s, over the eight of the first burst 60 s each.
    assert told(requests=80) == pytest.approx((6, 60, 1))
    assert told(requests=90, requests_failed=10) == pytest.approx((6, 60, 1))
    assert told() == pytest.approx((6, 60, 1))  # InferenceX sends ten for each place
    assert told(metric_definition="aiperf")[1] is told(scenario="agentic-coding")[1] is None
    assert told(e2el_mean=24.0)[2] == pytest.approx(0.5)
    assert told(e2el_mean=14.0)[2] == 1 and told(ttft_mean=0.3) == pytest.approx((-0.1, None, 0))
    assert told(e2el_mean=12.0)[2] is told(e2el_median=None)[2] is None
    (row,) = judged(cold_point())
    assert row["waits"] == [{"load": 8, "excess_s": pytest.approx(6), "burst_wait_s": pytest.approx(60), "explained_share": 1}]
    assert (row["excess_s"], row["burst_wait_s"], row["explained_share"]) == pytest.approx((6, 60, 1))


@pytest.mark.parametrize(
    ("reported", "steady", "share"),
    [(2, 1, 1), (2, 2, 0), (4, 2, 0.5), (0.25, 0.5, 0.5), (2, 4, 0), (2, 0.5, 1), (1, 1, 0), (1, 2, 0)],
)
def test_the_share_of_a_change_that_vanishes_in_steady_state(reported, steady, share):
    old = {"tput_per_gpu": 100.0, "steady_output_tput_per_gpu": 10.0}
    assert explained(old, {"tput_per_gpu": 100.0 * reported, "steady_output_tput_per_gpu": 10.0 * steady}) == pytest.approx(share)


def test_what_is_not_recorded_explains_nothing():
    old = {"tput_per_gpu": 100.0, "steady_output_tput_per_gpu": 10.0}
    for new in ({}, {"tput_per_gpu": 50.0}, {"tput_per_gpu": 50.0, "steady_output_tput_per_gpu": None}):
        assert math.isnan(explained(old, new)) and math.isnan(explained(new, old))
    (row,) = judged(fleet.curve(without=["steady_output_tput_per_gpu"]))
    assert (row["verdict"], row["ratio_off"], row["step_off"], row["incoherent_at"]) == ("fit", None, None, None)


def test_no_points_give_an_empty_table():
    assert judge_curves(frames.frame("points")).schema == FITNESS.schema


@pytest.mark.parametrize("seed", range(2))
def test_the_same_points_in_any_order_give_the_same_bytes(seed):
    parts = [curve for day in range(4) for curve in siblings(day, cold=(8, 16))]
    table = pl.concat([*parts, fleet.curve(build=""), fleet.curve(cold=[4], copy=1), fleet.curve(cold=[8], copy=2)])
    found = judge_curves(table)
    assert found.equals(judge_curves(table.sample(fraction=1, shuffle=True, seed=seed)))
    assert found.equals(found.sort(FITNESS.order, nulls_last=True))


LOGS = st.floats(-1, 1)


@settings(max_examples=25)
@given(st.lists(st.tuples(LOGS, LOGS), min_size=3, max_size=6), LOGS, LOGS)
def test_coherence_does_not_depend_on_units(values, reported_unit, steady_unit):
    def found(shift, other):
        rows = [
            frames.point(concurrency=2**n, cell_id=f"c{n}", tput_per_gpu=r + shift, steady_output_tput_per_gpu=s + other)
            for n, (r, s) in enumerate(values)
        ]
        return incoherence(frames.frame("points", rows)).row(0, named=True)

    plain, scaled = found(0, 0), found(reported_unit, steady_unit)
    assert abs(plain["ratio_off"]) == pytest.approx(abs(scaled["ratio_off"]), abs=1e-9)
    ratios = sorted(r - s for r, s in values)
    half = len(ratios) // 2
    middle = ratios[half] if len(ratios) % 2 else (ratios[half - 1] + ratios[half]) / 2
    assert abs(plain["ratio_off"]) == pytest.approx(max(abs(ratio - middle) for ratio in ratios))


COLD_PAIR = ("20613446912", "20621824084")
VLLM = ("20218553330", "20662362255")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The points of both cold SGLang runs and of both vLLM runs."""
    if not SHARED.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    log, events = EventLog(Store(str(tmp_path_factory.mktemp("real")))), []
    for number in (*COLD_PAIR, *VLLM):
        folder = SHARED / f"run_{number}"
        run = json.loads((folder / "run.json").read_text())
        reported = runs.read_run(run)
        assert isinstance(reported, RunReported)
        records = json.loads((folder / "agg_bmk.json").read_text())
        results = [ResultRecorded(run=reported.run, record_format="inferencex", record=record) for record in records]
        at, known = datetime.fromisoformat(reported.started_at), datetime(2026, 2, 1, tzinfo=UTC)
        events += [event_of(e, occurred_at=at, recorded_at=known, source=Source(name="test")) for e in (reported, *results)]
    log.append(events)
    return whole_tables(log, log.last_sequence())["points"]


def test_the_cold_runs_of_b200_sglang_are_caught_and_no_other(real):
    found = judge_curves(real)
    caught = found.filter(pl.col("verdict") != "fit").select("hardware", "engine").unique().rows()
    assert caught == [("b200", "sglang")]
    whole = found.filter(pl.col("level") == "run", pl.col("verdict") == "unfit")
    assert whole["run_id"].sort().to_list() == list(COLD_PAIR)
    # Counted in the records: of 9 curves of each run, 5 and 6 have an unfit point in ratio or number that leaves the rest behind.
    assert whole.sort("run_id")["curves_unfit"].to_list() == [5, 6]
    assert found.filter(pl.col("engine") == "vllm")["ratio_off"].abs().max() < 0.03


def test_nearly_all_of_what_the_cold_runs_seem_to_have_gained_vanishes_in_steady_state(real):
    cells = real.filter(pl.col("hardware") == "b200", pl.col("engine") == "sglang")
    first, second = ({row["cell_id"]: row for row in cells.filter(run_id=run).iter_rows(named=True)} for run in COLD_PAIR)
    moved = [c for c in first if abs(math.log(second[c]["tput_per_gpu"] / first[c]["tput_per_gpu"])) > 0.05]
    assert len(moved) == 13
    assert min(explained(first[c], second[c]) for c in moved) > 0.98
    (known,) = (row for row in first.values() if round(row["tput_per_gpu"]) == 906)  # the example of the design
    assert explained(known, second[known["cell_id"]]) > 0.99
    told = waits(real.filter(point_id=known["point_id"])).row(0, named=True)
    assert told["excess_s"] == pytest.approx(6.39 - 0.28, abs=0.01) and told["burst_wait_s"] == pytest.approx(61, abs=1)
