"""Series of one cell: which results are compared, what is told of what differs, and that nothing is more than suspected."""

import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.night import detect
from pipelines.detect.rare import NEEDED, PAIRS, rare_pairs
from pipelines.detect.rare_rows import GATE, PRIOR, rare_rows
from pipelines.fold.small import whole_tables
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from tests import frames
from tests.fleet import build_of, curve, unknown_build
from tests.fleet import points as together
from warehouse.canonical import content_id
from warehouse.cell import IDENTITY_FIELDS, curve_id
from warehouse.log import EventLog
from warehouse.schemas import DIFFS, SHIFTS
from warehouse.store import Store

ROUNDS = {
    "v3.1": datetime(2023, 9, 11, tzinfo=UTC),
    "v4.0": datetime(2024, 3, 27, tzinfo=UTC),
    "v4.1": datetime(2024, 8, 28, tzinfo=UTC),
}
BOX = "Lab: Box (8x H100)"
LABEL = "NVIDIA H100, available"


def version(number: str) -> frames.Row:
    return {"build_id": f"version:trtllm/{number}", "image_ref": None, "image_digest": None, "engine_version": number}


def result(
    value: float = 100.0,
    where: str = "v3.1",
    *,
    system: str = BOX,
    gpus: int | None = 8,
    hardware: str = "h100",
    label: str = LABEL,
    build: frames.Row | None = None,
    platform: str | None = "box-h100x8",
    definition: str = "mlperf samples",
    name: str = "samples_per_second",
    workload: str = "gptj-99.9",
    scenario: str = "mlperf-offline",
    engine: str = "trtllm",
    **values: Any,
) -> frames.Row:
    """Return one result of a round: *value* is of the whole system."""
    identity = {"hardware": hardware, "engine": engine, "framework": "tensorrt", "model": "gptj", "spec_decoding": "none"}
    identity |= {
        "disagg": False,
        "is_multinode": False,
        "scenario": scenario,
        "workload": workload,
        "arrival": "offline",
        "system": system,
    }
    other = [{"name": "accuracy", "value": 43.0}, {"name": name, "value": float(value)}]
    if gpus and name.endswith("second"):
        other.append({"name": f"{name}_per_gpu", "value": value / gpus})
    blank = {"precision": None, "tp": None, "isl": None, "osl": None, "concurrency": None, "tput_per_gpu": None}
    numbers = {"steady_output_tput_per_gpu": None, "metrics_other": other, "num_gpus": gpus, "metric_definition": definition}
    run = {"run_source": "mlcommons", "run_id": where, "measured_at": ROUNDS[where], "run_started_at": ROUNDS[where]}
    about = {"record_format": "mlperf", "hardware_label": label, "checkpoint": "gptj", "recipe_fingerprint": platform}
    row = {**blank, **identity, **(build or version("9.0")), **numbers, **run, **about, **values}
    row["curve_id"] = row["cell_id"] = curve_id({**dict.fromkeys(IDENTITY_FIELDS), **identity})
    row["record_hash"] = row["point_id"] = content_id("test", repr(sorted(row.items(), key=str)))
    return frames.point(**row)


def points(*rows: frames.Row) -> pl.DataFrame:
    return frames.frame("points", list(rows))


def pair(*rows: frames.Row) -> dict[str, Any]:
    (found,) = rare_pairs(points(*rows)).to_dicts()
    return found


def shift(*rows: frames.Row) -> dict[str, Any]:
    (found,) = rare_rows(points(*rows))[1].to_dicts()
    return found


def test_one_system_in_two_rounds() -> None:
    found = pair(result(100), result(250, "v4.0", build=version("9.3")))
    assert (found["from_run_id"], found["to_run_id"], found["metric"]) == ("v3.1", "v4.0", "samples_per_second_per_gpu")
    assert (found["from_value"], found["to_value"], found["factor"]) == tuple(map(pytest.approx, (12.5, 31.25, 2.5)))
    assert found["change_set"] == ["build", "harness"] and found["attribution"] == "mixed"
    assert found["change_detail"] == [
        "build: version:trtllm/9.0 → version:trtllm/9.3",
        "harness and rules: mlperf v3.1 → mlperf v4.0",
    ]


def test_a_series_is_compared_with_its_own_last_result() -> None:
    rows = [result(100), result(110, "v4.0"), result(121, "v4.1")]
    assert [row["from_run_id"] for row in rare_pairs(points(*rows)).sort("to_run_id").to_dicts()] == ["v3.1", "v4.0"]


def test_a_latency_that_falls_is_better() -> None:
    old, new = (
        result(
            value, where, name="query_latency_bound_p90", definition="mlperf latency bound p90", scenario="mlperf-singlestream"
        )
        for value, where in ((0.4, "v3.1"), (0.1, "v4.0"))
    )
    found = pair(old, new)
    assert (found["from_value"], found["to_value"], found["factor"]) == tuple(map(pytest.approx, (0.4, 0.1, 4.0)))


@pytest.mark.parametrize(
    ("change", "names", "detail"),
    [
        ({"system": "Lab: Box II (8x H100)"}, ["system"], f"system: {BOX} → Lab: Box II (8x H100)"),
        ({"gpus": 4, "value": 50.0}, ["accelerators"], "accelerators: 8 → 4"),
        ({"hardware": "h200", "label": "NVIDIA H200, available"}, ["hardware", "environment"], "accelerator: h100 → h200"),
        ({"label": "NVIDIA H100, preview"}, ["availability"], "availability: available → preview"),
        ({"label": "NVIDIA H100 PG1, available"}, ["environment"], "label: NVIDIA H100 → NVIDIA H100 PG1"),
        ({"platform": "box-h100x8-maxq"}, ["recipe"], "recipe fingerprint: box-h100x8 → box-h100x8-maxq"),
        ({"engine": "vllm"}, ["software"], "software: trtllm in tensorrt → vllm in tensorrt"),
        ({"build": unknown_build() | {"build_id": "unknown:trtllm"}}, ["build"], "build: version:trtllm/9.0 → not recorded"),
    ],
)
def test_what_differs_is_told(change: dict[str, Any], names: list[str], detail: str) -> None:
    found = pair(result(100), result(**({"value": 100.0} | change), where="v4.0"))
    assert set(found["change_set"]) == {*names, "harness"} and detail in found["change_detail"]
    assert found["factor"] == pytest.approx(1.0)
    assert found["attribution"] == "mixed"


@pytest.mark.parametrize(
    ("change", "attribution"),
    [
        ({}, "environment"),
        # One result and no second witness: the build may be all that differs and is not blamed for it.
        ({"build": version("9.3")}, "unknown"),
        ({"system": "Lab: Box II (8x H100)"}, "environment"),
        ({"label": "NVIDIA H100, preview"}, "environment"),
        # A name of another system, label and configuration follow from other accelerators.
        (
            {"hardware": "h200", "label": "NVIDIA H200, available", "platform": "box-h200x8", "system": "Lab: Box (8x H200)"},
            "hardware",
        ),
        ({"gpus": 4, "value": 125.0}, "hardware"),
        ({"build": version("9.3"), "gpus": 4, "value": 125.0}, "mixed"),
        ({"platform": "box-h100x8-maxq"}, "recipe"),
        ({"build": unknown_build() | {"build_id": "unknown:trtllm"}}, "unknown"),
    ],
)
def test_attribution_where_the_client_is_the_same(change: dict[str, Any], attribution: str) -> None:
    """Runs that are no round of MLPerf do not differ in the client."""
    old, new = (result(**told, run_source="local") for told in ({"value": 100.0}, {"value": 250.0, "where": "v4.0"} | change))
    assert pair(old, new)["attribution"] == attribution


ONE = {"cells": (8,)}


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (curve("B", 1, 0.6, **ONE), ["engine"]),
        # Steady state, 87.5 tok/s/GPU before, shows more than half of it (67.7 would be half), less, and the other way.
        (curve("B", 1, 0.6, **ONE, values={"steady_output_tput_per_gpu": 60.0}), ["engine"]),
        (curve("B", 1, 0.6, **ONE, values={"steady_output_tput_per_gpu": 75.0}), ["measurement"]),
        (curve("B", 1, 0.6, **ONE, values={"steady_output_tput_per_gpu": 120.0}), ["measurement"]),
        # Without any median there is no second witness.
        (curve("B", 1, 0.6, **ONE, without=("steady_output_tput_per_gpu", "tpot_median", "e2el_median")), ["unknown"]),
        # TPOT and end-to-end latency stand in.
        (curve("B", 1, 0.6, **ONE, without=("steady_output_tput_per_gpu",)), ["engine"]),
        # A cold start: a notice, once, and no word of the engine.
        (curve("B", 1, **ONE, cold=(8,)), ["measurement"]),
        (curve("B", 1, **ONE, cold={8: 1.5}), ["measurement"]),
        (curve("B", 1, 0.95, **ONE), []),
    ],
)
def test_a_single_cell_blames_an_engine_with_two_witnesses_only_and_is_never_more_than_suspected(
    later: pl.DataFrame, said: list[str]
) -> None:
    found = detect(together(curve("A", 0, **ONE), later))
    assert found.shifts["attribution"].to_list() == said
    assert set(found.shifts["status"]) <= {"suspected"}
    assert found.diffs["diff_id"].is_unique().all()


def test_a_build_that_neither_side_records_is_not_cleared() -> None:
    unknown = unknown_build() | {"build_id": "unknown:trtllm"}
    assert pair(result(100, build=unknown), result(250, "v4.0", build=unknown))["attribution"] == "unknown"


def test_one_side_with_a_build_and_another_round_are_several() -> None:
    unknown = unknown_build() | {"build_id": "unknown:trtllm"}
    found = pair(result(100, build=unknown), result(250, "v4.0", build=version("9.3")))
    assert (found["change_set"], found["attribution"]) == (["build", "harness"], "mixed")
    assert found["change_detail"][0] == "build: not recorded → version:trtllm/9.3"


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Other: Box (8x H100)"},
        {"workload": "gptj-99"},
        {"scenario": "mlperf-server"},
        {"hardware": "h200", "gpus": 4},
        {"hardware": "h200", "engine": "vllm"},
        {"where": "v3.1"},
    ],
)
def test_what_is_not_compared(change: dict[str, Any]) -> None:
    """Another submitter, target or scenario, two things at once, or the same round."""
    change = {"system": "Lab: New", "where": "v4.0", **change}
    assert rare_pairs(points(result(100), result(100, **change))).is_empty()


def test_the_nearest_system_of_the_submitter_is_taken() -> None:
    rows = [
        result(100, system="Lab: Big (8x H200)", hardware="h200", label="NVIDIA H200, available"),
        result(50, system="Lab: Box (4x H100)", gpus=4),
        result(90, system="Lab: Bax (8x H100)"),
        result(99, system="Lab: Quite another (8x H100)"),
        result(200, "v4.0", system="Lab: Box (8x NVIDIA H100)"),
    ]
    assert pair(*rows)["from_system"] == "Lab: Bax (8x H100)"
    # One under the same name of the configuration is nearer still.
    rows[3]["recipe_fingerprint"], rows[2]["recipe_fingerprint"] = "box-h100x8", "bax"
    assert pair(*rows)["from_system"] == "Lab: Quite another (8x H100)"


def test_tokens_are_never_compared_with_samples() -> None:
    """As for Llama 2 70B between v4.0 and v4.1: labels lie, definitions do not. The pair is told, and nothing is said of it."""
    rows = [result(100), result(21000, "v4.0", definition="mlperf tokens", name="output_tokens_per_second", gpus=8)]
    found = pair(*rows)
    assert (found["factor"], found["attribution"]) == (None, None)
    assert "metric_definition" in found["change_set"]
    assert "what was measured: mlperf samples (samples_per_second_per_gpu) → mlperf tokens" in found["change_detail"][-1]
    assert all(frame.is_empty() for frame in rare_rows(points(*rows)))


def test_an_older_result_of_the_same_definition_is_compared_past_another_one() -> None:
    other = {"definition": "mlperf tokens", "name": "output_tokens_per_second"}
    rows = rare_pairs(points(result(100), result(9000, "v4.0", **other), result(130, "v4.1"))).filter(to_run_id="v4.1")
    assert (rows["from_run_id"].item(), rows["factor"].item()) == ("v3.1", pytest.approx(1.3))


def test_what_was_worked_out_is_compared_with_nothing() -> None:
    inferred = {"definition": "mlperf Offline inferred", "name": "mlperf_inferred_rate"}
    assert rare_pairs(points(result(100, **inferred), result(250, "v4.0", **inferred))).is_empty()


def test_curves_are_left_to_the_others() -> None:
    frame = together(curve("A", 0), curve("B", 1), curve("A", 0, cells=(4,), isl=8192), curve("A", 1, cells=(8,), isl=8192))
    assert rare_pairs(frame).is_empty()


def test_a_single_cell_of_any_tool_is_a_rare_series() -> None:
    frame = together(curve("A", 0, cells=(64,)), curve("B", 1, 1.5, cells=(64,)))
    (found,) = rare_pairs(frame).to_dicts()
    assert (found["metric"], found["factor"], found["attribution"]) == ("tput_per_gpu", pytest.approx(1.5), "engine")


def test_a_row_of_shifts() -> None:
    found = shift(result(100), result(250, "v4.0", build=version("9.3")))
    assert (found["status"], found["direction"], found["cells"], found["cells_total"]) == ("suspected", "speedup", 1, 1)
    assert "insufficient repeats" in found["status_reason"]
    assert (found["size"], found["size_pct"]) == (pytest.approx(math.log(2.5)), pytest.approx(150))
    # t = 0.9163 / (0.05 √2) = 12.96 with three degrees of freedom: p = 0.00099 (table of Student's t); alone in its round.
    assert found["p_value"] == pytest.approx(0.00099, rel=0.02) and found["q_value"] == found["p_value"]
    # 90 % interval: t₀.₉₅(3) = 2.3534, margin 0.1664.
    assert found["interval_low_pct"] == pytest.approx(100 * math.expm1(math.log(2.5) - 0.1664), abs=0.05)
    assert (found["noise_level"], found["noise_repeats"], found["noise_scale"]) == ("prior", 0, PRIOR)
    assert (found["night"], found["gap_days"]) == ("2024-03-27", pytest.approx(198))
    assert (found["from_engine_version"], found["to_engine_version"], found["same_build"]) == ("9.0", "9.3", False)
    assert (found["attribution"], found["siblings"], found["siblings_total"]) == ("mixed", 1, 1)


def test_frames_are_those_of_the_tables() -> None:
    frame = points(result(100), result(250, "v4.0"))
    diffs, shifts = rare_rows(frame)
    assert (diffs.schema, shifts.schema, rare_pairs(frame).schema) == (DIFFS.schema, SHIFTS.schema, PAIRS)
    assert diffs["diff_id"].to_list() == shifts["shift_id"].to_list()
    assert [each.height for each in rare_rows(points())] == [0, 0] and rare_pairs(points()).is_empty()
    assert rare_pairs(frame.select(NEEDED)).height == 1


def test_small_changes_are_no_shifts() -> None:
    diffs, shifts = rare_rows(points(result(100), result(109, "v4.0", build=version("9.3"))))
    assert shifts.is_empty() and diffs["attribution"].to_list() == [None] and not diffs["flagged"].item()


def test_a_pair_on_two_accelerators_is_told_and_never_judged() -> None:
    diffs, shifts = rare_rows(points(result(100), result(400, "v4.0", hardware="h200", label="NVIDIA H200, available")))
    assert shifts.is_empty() and diffs["change_set"].to_list()[0][1:] == ["hardware", "environment"]
    assert diffs["p_value"].item() is None and diffs["size_pct"].item() == pytest.approx(300)


@pytest.mark.parametrize(
    ("history", "attribution"),
    [
        ([("A", 0, 1.0), ("B", 1, 2.0)], "engine"),
        # The same image again, before or after: it stands at the other side, so that the build is not what moved it.
        ([("A", 0, 2.0), ("A", 1, 1.0), ("B", 2, 2.0)], "environment"),
        ([("A", 0, 1.0), ("B", 1, 2.0), ("B", 2, 1.0)], "environment"),
        ([("A", 0, 1.0), ("B", 1, 2.0), ("A", 2, 2.0)], "environment"),
        ([("A", 0, 1.0), ("B", 1, 2.0), ("B", 2, 2.0)], "engine"),
        ([("A", 0, 1.0), ("A", 1, 2.0)], "environment"),
    ],
)
def test_runs_of_one_image_are_heard(history: list[tuple[str, int, float]], attribution: str) -> None:
    frame = together(*(curve(build, day, speed, cells=(64,)) for build, day, speed in history))
    shifts = rare_rows(frame)[1].filter(pl.col("size") > 0)
    assert set(shifts["attribution"]) == {attribution} and set(shifts["status"]) == {"suspected"}


SYSTEMS = st.sampled_from([BOX, "Lab: Box II (8x H100)", "Other: Box"])
RESULT = st.fixed_dictionaries(
    {
        "value": st.sampled_from([50.0, 100.0, 101.0, 250.0]),
        "where": st.sampled_from(sorted(ROUNDS)),
        "system": SYSTEMS,
        "gpus": st.sampled_from([None, 4, 8]),
        "hardware": st.sampled_from(["h100", "h200"]),
        "build": st.sampled_from([version("9.0"), version("9.3"), build_of("A", "a"), unknown_build()]),
        "definition": st.sampled_from(["mlperf samples", "mlperf tokens"]),
        "run_source": st.sampled_from(["mlcommons", "local"]),
    }
)


@settings(max_examples=15)
@given(st.lists(RESULT, max_size=6), st.randoms(use_true_random=False))
def test_rows_in_any_order_give_the_same_bytes_and_no_promise_is_broken(told: list[dict[str, Any]], shuffled: Any) -> None:
    rows = [result(**each) for each in told]
    ordered, (diffs, shifts) = rare_pairs(points(*rows)), rare_rows(points(*rows))
    shuffled.shuffle(rows)
    assert rare_pairs(points(*rows)).equals(ordered)
    assert rare_rows(points(*rows))[0].equals(diffs) and rare_rows(points(*rows))[1].equals(shifts)
    assert set(shifts["status"]) <= {"suspected"} and (shifts["size"].abs() >= GATE).all()
    for row in shifts.to_dicts():
        assert row["attribution"] != "engine" or row["change_set"] == ["build"]
        assert row["attribution"] not in ("engine", "mixed") or not row["same_build"] or len(row["change_set"]) > 1


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Points of GPT-J and BERT, Offline and Server, of MLPerf v3.1 and v4.0."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "mlperf"
    if not folder.is_dir():
        pytest.skip("real data (../shared/data/mlperf) absent")
    log = EventLog(Store(str(tmp_path_factory.mktemp("mlperf"))))
    paths = tuple(str(path) for path in sorted(folder.glob("*--language-processing--*")))
    now = datetime(2026, 2, 1, tzinfo=UTC)
    ingest(log, paths, Declared(None, {}), recorded_at=now, mirrors=folder, announce=lambda *_: None, workers="serial")
    return whole_tables(log, log.last_sequence())["points"]


H100X8 = "NVIDIA: NVIDIA DGX H100 (8x H100-SXM-80GB, TensorRT)"
H100X1 = "NVIDIA: NVIDIA DGX H100 (1x H100-SXM-80GB, TensorRT)"
GH200 = "NVIDIA: NVIDIA GH200-GraceHopper-Superchip (1x GH200-96GB_aarch64, TensorRT)"
KNOWN = {
    (H100X8, "mlperf-offline"): 2.256,
    (H100X8, "mlperf-server"): 2.792,
    (H100X1, "mlperf-offline"): 2.378,
    (H100X1, "mlperf-server"): 2.910,
    (GH200, "mlperf-offline"): 2.393,
    (GH200, "mlperf-server"): 2.860,
}
"""GPT-J 99.9 from v3.1 to v4.0, published results divided by hand."""


def test_gptj_nearly_tripled_on_hopper(published: pl.DataFrame) -> None:
    found = rare_pairs(published).filter(workload="gptj-99.9", from_run_id="v3.1", to_run_id="v4.0")
    same = found.filter(pl.col("curve_id") == pl.col("from_curve_id"), pl.col("to_system").is_in([H100X8, H100X1, GH200]))
    factors = {(row["to_system"], row["scenario"]): row["factor"] for row in same.to_dicts()}
    assert factors == {key: pytest.approx(factor, abs=5e-4) for key, factor in KNOWN.items()}
    for row in same.to_dicts():
        assert (row["change_set"], row["attribution"]) == (["build", "harness"], "mixed")
        assert "not recorded → commit:trtllm/eb8f26c7" in row["change_detail"][0]


def test_gptj_is_in_the_table_of_shifts_and_only_suspected(published: pl.DataFrame) -> None:
    diffs, shifts = rare_rows(published)
    wanted = {round(math.log(factor), 2) for factor in KNOWN.values()}
    assert wanted <= {round(size, 2) for size in shifts["size"]}
    assert set(shifts["status"]) == {"suspected"} and "engine" not in set(shifts["attribution"])
    # BERT hardly moved on any accelerator that stayed: not one of its pairs is a shift.
    assert Counter(shifts["model"]) == {"gptj": shifts.height} and "bert" in set(diffs["model"])
    assert not shifts["change_set"].list.contains("hardware").any()


def test_a_renamed_system_is_found_again(published: pl.DataFrame) -> None:
    found = rare_pairs(published).filter(
        workload="gptj-99.9", scenario="mlperf-offline", to_system="Dell: Dell PowerEdge XE8640 (4x H100-SXM-80GB, TensorRT)"
    )
    assert found["from_system"].item() == "Dell: Dell PowerEdge XE8640 (4x NVIDIA H100-SXM-80GB, TensorRT)"
    assert found["factor"].item() == pytest.approx(116.996 / 51.7954, abs=5e-4)
    assert found["change_set"].to_list() == [["harness", "system"]] and found["attribution"].item() == "unknown"


def test_a_wider_sweep_later_does_not_undo_what_was_compared() -> None:
    before = [curve("A", 0, **ONE), curve("B", 1, 0.5, **ONE), curve("B", 2, 0.5, **ONE)]
    wider = curve("B", 3, 0.5, cells=(8, 16))
    first, second = detect(together(*before)).diffs, detect(together(*before, wider)).diffs
    assert first.height == 2
    judged = ["diff_id", "size", "p_value", "q_value", "flagged", "attribution"]
    assert second.join(first.select("diff_id"), on="diff_id", how="semi").select(judged).equals(first.select(judged))
    # From then on it is a curve, and its single cells are compared as parts of it.
    assert rare_pairs(together(*before, wider, curve("B", 4, 0.5, **ONE))).height == 2
