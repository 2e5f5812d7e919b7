"""MLPerf result lists: which rows are one measurement, what each number is; values by hand, and from the published rounds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.reading import Given, Reading, RecordFormat
from pipelines.ingest.tools.mlperf import FORMAT, SUMMARY_FORMAT
from pipelines.ingest.tools.mlperf_rows import ALSO
from warehouse.canonical import canonical_json
from warehouse.cell import curve_id
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

ROW: dict[str, Any] = {
    "Accuracy": 43.0,
    "Availability": "available",
    "Division": "closed",
    "Location": "closed/Lab/results/Box_H100x8_TRT/gptj-99.9/Offline",
    "MlperfModel": "gptj-99.9",
    "Model": "gptj-99.9",
    "Organization": "Lab",
    "Platform": "Box_H100x8_TRT",
    "Result": 106.0,
    "Result_Units": "Samples/s",
    "Scenario": "Offline",
    "SystemName": "Box (8x H100-SXM-80GB, TensorRT)",
    "SystemType": "datacenter",
    "Units": "Samples/s",
    "accelerator_model_name": "NVIDIA H100-SXM-80GB",
    "accelerators_per_node": 8,
    "framework": "TensorRT 9.0.0, CUDA 12.2",
    "has_power": False,
    "host_processor_core_count": 56,
    "host_processor_model_name": "Intel(R) Xeon(R) Platinum 8480C",
    "inferred": 0,
    "notes": "",
    "number_of_nodes": 1,
    "operating_system": "Ubuntu 22.04.3 LTS (Linux secret-host 5.15.0-76-generic x86_64)",
    "uid": "b",
    "version": "v3.1",
}
SUMMARY: dict[str, Any] = {
    "ID": "v4.1-0043",
    "Submitter": "Lab",
    "Availability": "available",
    "Category": "closed",
    "Suite": "datacenter",
    "System": "Box",
    "Platform": "8xMI300X",
    "UsedModel": "llama2-70b-99",
    "Model": "llama2-70b-99",
    "Scenario": "Server",
    "Accuracy": "ROUGE1: 44.5  ROUGE2: 22.0  TOKENS_PER_SAMPLE: 293.7",
    "Nodes": 2,
    "Processor": "AMD EPYC 9575F",
    "Accelerator": "AMD Instinct MI300X 192GB HBM3",
    "a#": 8.0,
    "Location": "closed/Lab/results/8xMI300X/llama2-70b-99/Server",
    "Software": "vLLM 0.9.0.2.dev108+g71faa1880.d20250717.rocm641, Pytorch 2.7.0+gitf717b2a",
    "version": "v4.1",
    "inferred": 0,
    "has_power": False,
    "weight_data_types": "fp16",
    "Unique ID (e.g. for Audit)": "datacenter/closed/Lab/8xMI300X",
    "Performance_Result": 20000.0,
    "Performance_Units": "Queries/s",
}


def row(**changes: Any) -> dict[str, Any]:
    return {**ROW, **changes}


def twin(**changes: Any) -> dict[str, Any]:
    location = "closed/Lab/results/Box_H100x8_TRT/gptj-99/Offline"
    return row(**{"MlperfModel": "gptj-99", "Model": "gptj-99", "Location": location, "uid": "c", **changes})


def of(record: dict[str, Any], record_format: RecordFormat = FORMAT) -> Reading:
    assert record_format.recognises(record)
    found = record_format.read(record, Given())
    assert isinstance(found, Reading)
    return found


def records(rows: list[Any], record_format: RecordFormat = FORMAT) -> list[dict[str, Any]]:
    return [item.value for item in parts(rows, record_format) if isinstance(item, Item)]


def parts(rows: list[Any], record_format: RecordFormat = FORMAT) -> list[Item | Fault]:
    assert record_format.unpack is not None
    found = record_format.unpack(rows)
    assert found is not None
    return list(found)


# --- what a row means ---


def test_a_row_of_v31() -> None:
    reading = of(ROW)
    assert reading.metrics == {}
    assert reading.metrics_other == {"samples_per_second": 106.0, "samples_per_second_per_gpu": 13.25, "accuracy": 43.0}
    assert reading.metric_definition == "mlperf samples"
    identity = reading.identity
    assert (identity["hardware"], identity["model"], identity["scenario"]) == ("h100", "gptj", "mlperf-offline")
    assert (identity["workload"], identity["arrival"]) == ("gptj-99.9", "offline")
    assert identity["system"] == "Lab: Box (8x H100-SXM-80GB, TensorRT)"
    assert identity["precision"] is None and identity["is_multinode"] is False
    assert (reading.num_gpus, reading.concurrency, reading.request_rate) == (8, None, None)
    assert reading.hardware_label == "NVIDIA H100-SXM-80GB, available"


def test_the_round_is_the_run() -> None:
    assert FORMAT.origin is not None
    origin = FORMAT.origin(ROW, Given())
    assert origin is not None and (origin.run_source, origin.run_id) == ("mlcommons", "v3.1")
    assert origin.started_at.isoformat() == "2023-09-11T00:00:00+00:00" == (origin.published_at or origin.started_at).isoformat()
    assert FORMAT.origin(row(version="v9.9"), Given()) is FORMAT.origin(row(version=7), Given()) is None
    assert SUMMARY_FORMAT.origin is not None
    by_id = SUMMARY_FORMAT.origin({**SUMMARY, "version": None, "ID": "5.1-0072"}, Given())
    assert by_id is not None and by_id.run_id == "v5.1"


def test_server_results_are_scheduled_up_to_v40_and_completed_after() -> None:
    old, new = (
        of(row(Scenario="Server", version="v4.0", Units="Queries/s")),
        of(row(Scenario="Server", version="v4.1", Result=690)),
    )
    assert old.metrics_other["scheduled_samples_per_second"] == 106.0
    assert new.metrics_other["completed_samples_per_second"] == 10.0  # 690 / 69
    assert old.metric_definition != new.metric_definition
    assert old.identity["arrival"] == "poisson" and curve_id(old.identity) == curve_id(new.identity)


def test_tokens_of_an_llm_are_output_throughput_whatever_the_label_says() -> None:
    reading = of(row(MlperfModel="llama2-70b-99.9", Model="llama2-70b-99.9", version="v4.0", Result=21805.8))
    assert reading.metrics == {"output_tput_per_gpu": 21805.8 / 8}
    assert reading.metrics_other["output_tokens_per_second"] == 21805.8
    assert "samples_per_second" not in reading.metrics_other


def test_a_row_of_a_summary() -> None:
    reading = of(SUMMARY, SUMMARY_FORMAT)
    assert reading.num_gpus == 16 and reading.identity["is_multinode"] is True
    assert reading.metrics == {"output_tput_per_gpu": 1250.0}
    assert reading.metric_definition == "mlperf completed tokens"
    assert (reading.identity["engine"], reading.engine_commit) == ("vllm", "71faa1880")
    assert reading.engine_version == "0.9.0.2.dev108+g71faa1880.d20250717.rocm641"
    assert reading.identity["precision"] is None  # weight_data_types is not reliable
    assert reading.identity["system"] == "Lab: Box, 16x"
    assert reading.metrics_other["accuracy_rouge1"] == 44.5 and reading.metrics_other["accuracy_tokens_per_sample"] == 293.7


def test_llms_on_tensorrt_run_tensorrt_llm_and_others_tensorrt() -> None:
    gptj = of(row(Organization="NVIDIA", version="v4.0", framework="TensorRT 9.3.0, CUDA 12.2"))
    assert (gptj.identity["engine"], gptj.identity["framework"], gptj.engine_version) == ("trtllm", "tensorrt", None)
    assert gptj.engine_commit == "eb8f26c7e40f07067884b96c3637652351d13d04"
    before = of(row(Organization="NVIDIA"))
    assert (before.identity["engine"], before.engine_commit) == ("trtllm", None)  # v3.1: no public commit, open below
    resnet = of(row(MlperfModel="resnet", Model="resnet50"))
    assert (resnet.identity["engine"], resnet.engine_version, resnet.engine_commit) == ("tensorrt", "9.0.0", None)
    assert of(row(framework="")).identity["engine"] == "unknown"


def test_a_system_without_accelerator_is_its_processor() -> None:
    for nothing, number in (("N/A", "N/A"), ("", 0), ("-", 0)):
        reading = of(row(accelerator_model_name=nothing, accelerators_per_node=number))
        assert reading.identity["hardware"] == "intel-xeon-platinum-8480c"
        assert reading.num_gpus is None and "samples_per_second_per_gpu" not in reading.metrics_other


def test_preview_and_available_never_compare_without_saying_so() -> None:
    available, preview = of(ROW), of(row(Availability="preview"))
    assert available.hardware_label != preview.hardware_label
    assert curve_id(available.identity) == curve_id(preview.identity)


def test_divisions_are_different_measurements() -> None:
    closed, open_ = of(ROW), of(row(Division="open"))
    other = of(row(Division="open", Model="gptj-pruned-99.9"))
    assert len({curve_id(reading.identity) for reading in (closed, open_, other)}) == 3
    assert other.checkpoint == "gptj-pruned-99.9" and other.identity["model"] == "gptj"
    assert closed.checkpoint == of(row(Model="gptj-99")).checkpoint == "gptj"


def test_accuracy_targets_are_different_measurements() -> None:
    assert curve_id(of(ROW).identity) != curve_id(of(twin()).identity)


def test_spellings_of_a_benchmark_are_one() -> None:
    one, other = ({**SUMMARY, "version": "v5.1", "Model": m, "UsedModel": m} for m in ("llama3.1-8b", "llama3_1-8b"))
    assert of(one, SUMMARY_FORMAT).identity == of(other, SUMMARY_FORMAT).identity


@pytest.mark.parametrize(
    ("scenario", "result", "name", "seconds", "in_flight"),
    [("SingleStream", 4000, "query_latency_bound_p90", 4.0, 1), ("MultiStream", 16, "query_latency_bound_p99", 0.016, 8)],
)
def test_latencies_are_milliseconds(scenario: str, result: int, name: str, seconds: float, in_flight: int) -> None:
    reading = of(row(Scenario=scenario, Result=result, Units="Latency (ms)"))
    assert reading.metrics_other[name] == seconds and reading.concurrency == in_flight


def test_inferred_results_and_rounds_without_a_rule_are_compared_with_nothing() -> None:
    inferred, unknown = of(row(inferred=1)), of(row(version="v9.9"))
    assert len({of(ROW).metric_definition, inferred.metric_definition, unknown.metric_definition}) == 3
    assert inferred.metrics_other["mlperf_inferred_rate"] == unknown.metrics_other["mlperf_rate_as_labelled"] == 106.0


def test_power_is_watts_and_energy_joules() -> None:
    assert of(row(Result_Power=6068.5, Result_Power_Units="Watts")).metrics_other["system_power"] == 6068.5
    assert of(row(Result_Power=1500, Result_Power_Units="millijoules")).metrics_other["query_energy"] == 1.5
    assert of({**SUMMARY, "Power_Result": 900.0, "Power_Units": "Watts"}, SUMMARY_FORMAT).metrics_other["system_power"] == 900.0
    assert "system_power" not in of(row(Result_Power=5.0)).metrics_other


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"Result": None}, "Result"),
        ({"Result": "NaN"}, "Result"),
        ({"Result": 0}, "Result"),
        ({"Result": -1}, "Result"),
        ({"Result": 1e300}, "Result"),
        ({"Scenario": "Nowhere"}, "Scenario"),
        ({"Scenario": None}, "Scenario"),
        ({"MlperfModel": ["gptj"]}, "MlperfModel"),
        ({"Organization": ""}, "Organization"),
        ({"SystemName": 7}, "SystemName"),
        ({"framework": "x" * 600}, "framework"),
        ({"Accuracy": "high"}, "Accuracy"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: "):
        FORMAT.read(row(**changes), Given())


def test_what_the_user_declares_counts_where_the_row_says_nothing() -> None:
    reading = FORMAT.read(row(framework=""), Given(declared={"precision": "FP8", "engine_commit": "abc1234"}))
    assert reading.identity["precision"] == "fp8" and reading.engine_commit == "abc1234"
    assert reading.declared == ("engine_commit", "precision")


# --- which rows are one measurement ---


def test_twins_of_accuracy_targets_are_one_record_that_names_both() -> None:
    (record,) = records([ROW, twin()])
    assert record["MlperfModel"] == "gptj-99.9" and [other["MlperfModel"] for other in record[ALSO]] == ["gptj-99"]
    assert of(record).identity == of(ROW).identity
    assert canonical_json(records([twin(), ROW])) == canonical_json([record])


@pytest.mark.parametrize(
    "changes", [{"Result": 107.0}, {"Accuracy": 42.9}, {"Platform": "Other"}, {"Scenario": "Server"}, {"Availability": "preview"}]
)
def test_rows_that_differ_are_never_merged(changes: dict[str, Any]) -> None:
    """Two Server runs with one target rate have one scheduled rate; their accuracy runs tell them apart."""
    assert len(records([ROW, twin(**changes)])) == 2


def test_equal_results_of_different_benchmarks_are_never_merged() -> None:
    assert len(records([ROW, row(MlperfModel="bert-99", Model="bert-99")])) == 2
    assert len(records([row(MlperfModel="resnet", Model="a"), row(MlperfModel="resnet", Model="b")])) == 2


def test_two_results_of_one_run_stay_two() -> None:
    assert sorted(record["Result"] for record in records([ROW, row(Result=105.0, uid="z")])) == [105.0, 106.0]


def test_duplicates_with_another_uid_are_dropped_in_any_order() -> None:
    power = {"Result_Power": 900.0, "Result_Power_Units": "Watts", "has_power": True}
    first, second = row(**power), row(**power, uid="a")
    assert records([first, second]) == records([second, first])
    assert [record["uid"] for record in records([first, second])] == ["a"]


def test_power_rows_are_joined_with_their_performance() -> None:
    power = row(Result=None, Result_Units="Watts", Units="Watts", Result_Power=900.0, uid="p", version="v4.0")
    (record,) = records([power, row(version="v4.0"), {**power, "uid": "q"}])
    assert record["Result"] == 106.0 and (record["Result_Power"], record["Result_Power_Units"]) == (900.0, "Watts")
    assert of(record).metrics_other["system_power"] == 900.0
    assert of(record).metrics_other["samples_per_second"] == 106.0


def test_twins_with_power_are_joined_too_and_different_powers_keep_them_apart() -> None:
    def power(base: dict[str, Any], watts: float) -> dict[str, Any]:
        return {**base, "Result": None, "Units": "Watts", "Result_Power": watts, "uid": "p"}

    assert len(records([ROW, twin(), power(ROW, 9.0), power(twin(), 9.0)])) == 1
    assert len(records([ROW, twin(), power(ROW, 9.0), power(twin(), 8.0)])) == 2


def test_power_that_is_alone_or_ambiguous_is_a_fault_and_costs_no_neighbour() -> None:
    power = row(Result=None, Units="Watts", Result_Power=900.0)
    alone = parts([{**power, "Location": "elsewhere"}, ROW])
    assert [part.position for part in alone if isinstance(part, Fault)] == ["/0"] and len(alone) == 2
    several = parts([power, {**power, "Result_Power": 901.0}, ROW])
    assert [type(part) for part in several] == [Fault, Item]
    assert "Result_Power" not in several[1].value  # type: ignore[union-attr]


def test_twins_of_summaries() -> None:
    strict = {**SUMMARY, "Model": "llama2-70b-99.9", "UsedModel": "llama2-70b-99.9", "Location": "elsewhere"}
    (record,) = records([SUMMARY, strict], SUMMARY_FORMAT)
    assert record["Model"] == "llama2-70b-99.9" and record[ALSO][0]["Model"] == "llama2-70b-99"


def test_names_of_hosts_and_unknown_keys_are_not_kept() -> None:
    (record,) = records([row(secret="key")])
    assert record["operating_system"] == "Ubuntu 22.04.3 LTS" and "secret" not in record
    assert FORMAT.clean is not None and FORMAT.clean(row(secret="key")) == record


def test_other_lists_are_left_to_others_and_strange_rows_are_faults() -> None:
    assert FORMAT.unpack is not None and SUMMARY_FORMAT.unpack is not None
    for value in ([], {}, ROW, [1], [{"a": 1}], "text", None, [SUMMARY]):
        assert FORMAT.unpack(value) is None
    assert SUMMARY_FORMAT.unpack([ROW]) is None
    found = parts([ROW, 7, {"a": 1}, Fault("line 9", "broken")])
    assert [part.position for part in found] == ["/1", "/2", "line 9", "/0"]


junk: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from(["N/A", "NaN", "1e999", "99", "v4.0", "Server", "Offline", "gptj-99", "Watts", 1e308, 10**400]),
)


@pytest.mark.parametrize(("base", "record_format"), [(ROW, FORMAT), (SUMMARY, SUMMARY_FORMAT)])
@given(data=st.data())
def test_a_mutated_record_gives_a_finite_reading_or_an_input_error(
    base: dict[str, Any], record_format: RecordFormat, data: st.DataObject
) -> None:
    record = {**base, **data.draw(st.dictionaries(st.sampled_from(sorted({*base, ALSO})), junk, max_size=5))}
    try:
        reading = record_format.read(record, Given())
    except InputError as error:
        assert ": " in str(error)
    else:
        _is_finite(reading)
        assert record_format.origin is not None
        record_format.origin(record, Given())


@pytest.mark.parametrize(("base", "record_format"), [(ROW, FORMAT), (SUMMARY, SUMMARY_FORMAT)])
@given(data=st.data())
def test_any_list_is_unpacked_and_no_row_is_lost(base: dict[str, Any], record_format: RecordFormat, data: st.DataObject) -> None:
    changes = st.dictionaries(st.sampled_from(sorted(base)), junk, max_size=3)
    rows = [base, *({**base, **change} for change in data.draw(st.lists(changes, max_size=4)))]
    found = parts(rows, record_format)
    assert 1 <= len(found) <= 2 * len(rows)
    assert all(record_format.recognises(part.value) for part in found if isinstance(part, Item))


def _is_finite(reading: Reading) -> None:
    assert reading.metrics.keys() <= {column.name for column in METRIC_COLUMNS}
    for value in (*reading.metrics.values(), *reading.metrics_other.values()):
        assert isinstance(value, float) and value == value and abs(value) < float("inf")
    canonical_json(reading.identity)


# --- the published rounds ---


@pytest.fixture(scope="module")
def published(shared_data: Path) -> list[tuple[dict[str, Any], Reading]]:
    folder = shared_data / "mlperf"
    if not folder.is_dir():
        pytest.skip("MLPerf results (../shared/data/mlperf) absent")
    return [
        (record, FORMAT.read(record, Given()))
        for file in sorted(folder.glob("*/cm-result.json"))
        for record in records(json.loads(file.read_text("utf-8")))
    ]


def one(found: Iterable[tuple[dict[str, Any], Reading]], **wanted: str) -> Reading:
    (reading,) = [reading for record, reading in found if all(record[key] == value for key, value in wanted.items())]
    return reading


H100X8 = "DGX-H100_H100-SXM-80GBx8_TRT"


@pytest.mark.parametrize(
    ("platform", "scenario", "name", "ratio"),
    [
        (H100X8, "Offline", "samples_per_second", 2.256),
        (H100X8, "Server", "scheduled_samples_per_second", 2.792),
        ("DGX-H100_H100-SXM-80GBx1_TRT", "Offline", "samples_per_second", 2.378),
        ("DGX-H100_H100-SXM-80GBx1_TRT", "Server", "scheduled_samples_per_second", 2.910),
        ("GH200-GraceHopper-Superchip_GH200-96GB_aarch64x1_TRT", "Offline", "samples_per_second", 2.393),
        ("GH200-GraceHopper-Superchip_GH200-96GB_aarch64x1_TRT", "Server", "scheduled_samples_per_second", 2.860),
    ],
)
def test_gains_of_gptj_between_v31_and_v40(
    published: list[tuple[dict[str, Any], Reading]], platform: str, scenario: str, name: str, ratio: float
) -> None:
    wanted = {"Organization": "NVIDIA", "Platform": platform, "Scenario": scenario, "MlperfModel": "gptj-99.9"}
    old, new = (one(published, version=version, **wanted) for version in ("v3.1", "v4.0"))
    assert new.metrics_other[name] / old.metrics_other[name] == pytest.approx(ratio, abs=5e-4)
    assert curve_id(old.identity) == curve_id(new.identity) and old.metric_definition == new.metric_definition
    assert (old.engine_commit, new.engine_commit) == (None, "eb8f26c7e40f07067884b96c3637652351d13d04")


def test_llama2_on_eight_h200_against_eight_h100(published: list[tuple[dict[str, Any], Reading]]) -> None:
    wanted = {"Organization": "NVIDIA", "MlperfModel": "llama2-70b-99.9", "version": "v4.0"}
    h100 = one(published, Platform=H100X8, Scenario="Offline", **wanted)
    h200 = one(published, Platform="H200-SXM-141GBx8_TRT", Scenario="Offline", **wanted)
    assert h100.metrics_other["output_tokens_per_second"] == 21805.8
    assert h200.metrics_other["output_tokens_per_second"] == 27738.3
    assert h200.metrics["output_tput_per_gpu"] == 27738.3 / 8
    assert h200.hardware_label == "NVIDIA H200-SXM-141GB, preview"
    server = one(published, Platform=H100X8, Scenario="Server", **wanted)
    assert server.metrics == {} and server.metrics_other["completed_samples_per_second"] == 70.4164


def test_every_published_row_is_read_once_for_each_measurement(published: list[tuple[dict[str, Any], Reading]]) -> None:
    rows = sum(1 + len(record.get(ALSO, ())) for record, _reading in published)
    assert rows == 1340
    points = [(record["version"], curve_id(reading.identity), reading.recipe_fingerprint) for record, reading in published]
    assert len(set(points)) == len(points)
    assert all(reading.identity["hardware"] and reading.identity["engine"] != "unknown" for _record, reading in published)
