"""Detection on real CI runs: what is known of them by hand or from the raw records, recomputed here in plain Python."""

import copy
import json
import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from pipelines.detect.night import detect
from pipelines.fold.small import whole_tables
from pipelines.ingest import runs
from warehouse.canonical import canonical_json, text_id
from warehouse.events import ResultRecorded, RunReported, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "runs"
NOW = datetime(2026, 2, 1, tzinfo=UTC)
COLD_PAIR = ("20613446912", "20621824084")
VLLM_FIRST, VLLM_LAST = "20218553330", "20662362255"
COPIED = "20587342927"
IDENTITY = ("hw", "framework", "infmax_model_prefix", "precision", "spec_decoding", "isl", "osl", "tp", "ep", "dp_attention")


def read(folder):
    return json.loads((folder / "run.json").read_text()), json.loads((folder / "agg_bmk.json").read_text())


@pytest.fixture(scope="module")
def raw():
    """Run number → (run object, records)."""
    if not FOLDER.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    found = [read(folder) for folder in sorted(FOLDER.iterdir())]
    assert len(found) == 20
    return {str(run["id"]): (run, records) for run, records in found}


def points_of(folder, pairs):
    """Return the points of (run object, records), through the log and the reader."""
    log, events = EventLog(Store(str(folder))), []
    for run, records in pairs:
        reported = runs.read_run(run)
        assert isinstance(reported, RunReported)
        results = [ResultRecorded(run=reported.run, record_format="inferencex", record=record) for record in records]
        started = datetime.fromisoformat(reported.started_at)
        events += [event_of(p, occurred_at=started, recorded_at=NOW, source=Source(name="test")) for p in (reported, *results)]
    log.append(events)
    tables = whole_tables(log, log.last_sequence())
    assert tables["quarantine"].is_empty()
    return tables["points"]


@pytest.fixture(scope="module")
def points(raw, tmp_path_factory):
    return points_of(tmp_path_factory.mktemp("real"), raw.values())


@pytest.fixture(scope="module")
def found(points):
    return detect(points)


def between(frame, first, last):
    return frame.filter(from_run_id=first, to_run_id=last)


def test_every_record_is_a_point(raw, points):
    assert points.height == sum(len(records) for _run, records in raw.values()) == 1119


def test_no_cold_start_is_blamed_on_the_engine(found):
    shifts = between(found.shifts, *COLD_PAIR)
    assert shifts.height >= 1
    assert set(shifts["attribution"]) <= {"measurement", "environment"}
    assert between(found.diffs, *COLD_PAIR)["same_build"].all()


def test_the_pair_of_the_design_document_is_a_notice(found):
    """906 and 1,437 tok/s/GPU at concurrency 8 on one image, six hours apart: +58.6 %, and no steady state moved."""
    shifts = between(found.shifts, *COLD_PAIR)
    (row,) = shifts.filter((pl.col("size_pct") - 100 * (1437 / 906 - 1)).abs() < 0.2).to_dicts()
    assert (row["isl"], row["osl"], row["attribution"]) == (8192, 1024, "measurement")
    assert abs(row["steady_pct"]) < 0.5
    assert "cold_start" in row["health"]


def test_cold_points_are_those_of_the_raw_records(raw, points):
    health = dict(points.select("record_hash", "health").iter_rows())
    verdicts = dict(points.select("record_hash", "verdict").iter_rows())
    counted = defaultdict(int)
    for run in COLD_PAIR:
        for record in raw[run][1]:
            key = text_id(canonical_json(record))
            pulled = record["mean_e2el"] / record["median_e2el"]
            if record["mean_ttft"] >= 3 * record["median_ttft"] and pulled >= 1.1:
                assert "cold_start" in health[key]
                assert verdicts[key] == "unfit"
                counted["cold"] += 1
            elif pulled < 1.03:
                assert "cold_start" not in health[key]
                counted["warm"] += 1
    assert counted["cold"] > 5
    assert counted["warm"] > 20


def test_no_image_that_ran_twice_blames_the_engine(found):
    twice = found.shifts.filter("same_build")
    assert twice.height > 0
    assert set(twice["attribution"]) <= {"measurement", "environment"}
    # In these twenty runs nothing but vLLM 0.11.2 → 0.13.0 changed its image alone, and that did not move.
    assert found.shifts.filter(attribution="engine").is_empty()


def curve_ratios(earlier, later, metric, sign):
    """Return by curve the log-ratios of two lists of records at equal concurrency."""

    def key(record):
        return tuple(record[name] for name in IDENTITY)

    before = {(key(record), record["conc"]): record[metric] for record in earlier}
    ratios = defaultdict(list)
    for record in later:
        value = before.get((key(record), record["conc"]))
        if value is not None:
            ratios[key(record)].append(sign * math.log(record[metric] / value))
    return ratios


def vllm(records, image):
    return [record for record in records if record["framework"] == "vllm" and record["image"] == f"vllm/vllm-openai:v{image}"]


def test_vllm_0_13_is_as_fast_as_0_11_2(raw, found):
    ratios = curve_ratios(vllm(raw[VLLM_FIRST][1], "0.11.2"), vllm(raw[VLLM_LAST][1], "0.13.0"), "tput_per_gpu", 1)
    medians = [100 * math.expm1(median(values)) for values in ratios.values() if len(values) >= 3]
    assert len(medians) > 20
    assert -2.6 <= min(medians) <= max(medians) <= 2.0
    diffs = found.diffs.filter(engine="vllm", from_engine_version="0.11.2", to_engine_version="0.13.0")
    assert set(diffs["hardware"]) == {"h100", "h200", "b200"}
    assert not diffs["flagged"].any()
    assert found.shifts.filter(engine="vllm", to_engine_version="0.13.0").is_empty()
    ours = diffs.filter(pl.col("cells") >= 3)
    for column in ("reported_pct", "steady_pct"):
        assert -2.6 <= ours[column].min() <= ours[column].max() <= 2.0, column
    # One to one, where the earlier side is that run alone.
    alone = sorted(ours.filter(from_run_id=VLLM_FIRST)["reported_pct"])
    assert alone
    assert all(min(abs(value - other) for other in medians) < 1e-6 for value in alone)


def slowed(pair, factor):
    """Return a copy of a run, one day later, on the next image, as a machine that is *factor* as fast would give it."""
    run, records = copy.deepcopy(pair)
    run["id"] = 29999999999
    started = datetime.fromisoformat(run["run_started_at"]) + timedelta(days=1)
    run["run_started_at"] = run["created_at"] = started.isoformat().replace("+00:00", "Z")
    for record in records:
        record["image"] = "lmsysorg/sglang:v0.5.7-rocm700-mi35x"
        for name, value in record.items():
            if name.endswith(("tput_per_gpu", "_intvty")):
                record[name] = value * factor
            elif name.endswith(("_ttft", "_tpot", "_itl", "_e2el")):
                record[name] = value / factor
    return run, records


def curves_of(records):
    return {tuple(record[name] for name in ("infmax_model_prefix", "precision", "isl", "osl", "tp")) for record in records}


@pytest.mark.parametrize("alone", [False, True], ids=["all runs", "two runs"])
def test_a_planted_engine_change_is_found_exactly(raw, tmp_path, alone):
    planted = slowed(raw[COPIED], 0.94)
    others = [raw[COPIED]] if alone else list(raw.values())
    shifts = detect(points_of(tmp_path, [*others, planted])).shifts.filter(to_run_id=str(planted[0]["id"]))
    flagged = [tuple(row[name] for name in ("model", "precision", "isl", "osl")) for row in shifts.iter_rows(named=True)]
    assert sorted(flagged) == sorted(curve[:4] for curve in curves_of(planted[1]))
    assert set(shifts["attribution"]) == {"engine"}
    assert set(shifts["from_run_id"]) == {COPIED}
    assert set(shifts["direction"]) == {"regression"}
    assert all(-7 <= size <= -5 for size in shifts["size_pct"])
    assert set(shifts["status"]) == {"suspected"}  # the curves are siblings, but one run on one stack gave them all
    assert set(shifts["status_reason"]) == {"seen once; 4 of 4 curves of this run moved alike"}


def test_the_planted_change_alone_is_all_that_is_found_of_two_runs(raw, tmp_path):
    found = detect(points_of(tmp_path, [raw[COPIED], slowed(raw[COPIED], 0.94)]))
    assert found.diffs["flagged"].all()
    # No repeats of their own: what is known of SGLang with FP4 on MI355X are eight repeats of public fleets, 0.11 %, against a
    # prior of 0.35 % that weighs as five.
    assert set(found.shifts.select("engine", "hardware", "precision", "disagg").rows()) == {("sglang", "mi355x", "fp4", False)}
    assert set(found.shifts["noise_level"]) == {"public"}
    assert found.shifts["noise_scale"].to_list() == pytest.approx([((5 * 0.0035**2 + 8 * 0.0011**2) / 13) ** 0.5] * 4)


def test_the_same_run_again_under_another_image_moves_nothing(raw, tmp_path):
    found = detect(points_of(tmp_path, [*raw.values(), slowed(raw[COPIED], 1.0)]))
    assert found.shifts.filter(to_run_id="29999999999").is_empty()
