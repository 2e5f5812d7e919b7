"""TensorRT-LLM perf tables: rows of a case are one measurement, and a metric means what the tool of the case says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.reading import Given
from pipelines.ingest.tools.trtllm_csv import FORMAT, origin, read, unfold
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

HEADER = "network_name,perf_case_name,test_name,threshold,absolute_threshold,metric_type,perf_metric"
BENCH = "tiny_1b-bench-pytorch-float16-maxbs:512-maxnt:2048-input_output_len:100,10-reqs:1000"
ROLES = "test_benchmark[disagg_perf_file:deepseek-r1-fp4_015_8k1k_dep:16_bs:64_mtp:0_ccbackend:UCX]_con:1075"
RESULT: dict[str, Any] = {
    "network_name": ROLES,
    "perf_case_name": ROLES,
    "start_timestamp": "2025-10-31 00:53:53",
    "state": "valid",
    "command": "--model=deepseek-r1-fp4 --fp4 --concurrency=1075",
    "perf_metrics": [
        {"metric_type": "DISAGG_SERVER_TTFT", "perf_metric": "1122.5"},
        {"metric_type": "DISAGG_SERVER_E2EL", "perf_metric": "22521.0"},
    ],
}
DECLARED = Given(declared={"hardware": "gb200", "num_gpus": "20", "timezone": "+08:00"})


def row(name: str, metric: str, value: str, threshold: str = "0.1", place: str = "H100_PCIe-PyTorch-Perf-1") -> str:
    test = f"test_perf_metric_{metric.lower()}[{name}]"
    return f'"{name}","{place}/perf/test_perf.py::{test}","{test}",{threshold},50,{metric},{value}'


def cases(*rows: str, header: str = HEADER) -> list[Item | Fault]:
    found = unfold("\n".join((header, *rows)))
    assert found is not None
    return list(found)


def case(*metrics: tuple[str, float], name: str = BENCH) -> Any:
    return {
        "network_name": name,
        "perf_case_name": f"B200-X/perf/t.py::t[{name}]",
        "perf_metrics": [entry(*one) for one in metrics],
    }


def entry(metric_type: str, value: float) -> dict[str, str]:
    return {"metric_type": metric_type, "perf_metric": str(value)}


def test_rows_of_one_case_are_one_measurement() -> None:
    other = BENCH.replace("pytorch", "_autodeploy")
    found = cases(
        row(BENCH, "INFERENCE_TIME", "50000"),
        row(BENCH, "SEQ_THROUGHPUT", "20", "-0.1"),
        row(other, "INFERENCE_TIME", "80000"),
        row(other, "KV_CACHE_SIZE", "0.0", "-0.3"),
        row(BENCH, "TOKEN_THROUGHPUT", "200", "-0.1"),
    )
    assert [item.position for item in found] == ["line 2", "line 4"]
    assert all(isinstance(item, Item) and FORMAT.recognises(item.value) for item in found)
    first, second = (read(item.value, Given()) for item in found if isinstance(item, Item))
    assert (first.duration_s, first.metrics, first.metrics_other) == (
        50.0,
        {"output_tput_per_gpu": 200.0},
        {"request_throughput": 20.0},
    )
    names = ("hardware", "framework", "model", "precision", "tp", "isl", "osl", "arrival", "workload")
    told = ["h100pcie", "trt", "tiny-1b", "fp16", 1, 100, 10, "offline", "maxbs:512 maxnt:2048"]
    assert [first.identity[name] for name in names] == told
    assert (first.num_gpus, first.concurrency, first.requests) == (1, 1000, 1000)
    assert first.hardware_label == "H100_PCIe-PyTorch-Perf-1"
    assert (second.identity["framework"], second.metrics_other) == ("trt-autodeploy", {})


def test_a_metric_told_twice_begins_another_measurement() -> None:
    found = cases(row(BENCH, "SEQ_THROUGHPUT", "20"), row(BENCH, "SEQ_THROUGHPUT", "21"))
    assert [item.value["perf_metrics"][0]["perf_metric"] for item in found if isinstance(item, Item)] == ["20", "21"]


def test_a_bad_row_costs_no_neighbour() -> None:
    found = cases(row(BENCH, "SEQ_THROUGHPUT", "20"), "a,b,c", row(BENCH, "INFERENCE_TIME", "50000"))
    assert [type(item).__name__ for item in found] == ["Fault", "Item"]


def test_the_sign_of_a_threshold_is_kept_and_the_definition_counts() -> None:
    (item,) = cases(row(BENCH, "SEQ_THROUGHPUT", "20", "-0.1"))
    assert isinstance(item, Item)
    assert item.value["perf_metrics"] == [
        {"metric_type": "SEQ_THROUGHPUT", "perf_metric": "20", "threshold": "-0.1", "absolute_threshold": "50"}
    ]


def test_token_throughput_is_a_gpus_or_the_systems() -> None:
    eight = f"{BENCH}-gpus:8"
    per_gpu = read(case(("SEQ_THROUGHPUT", 80), ("TOKEN_THROUGHPUT", 100), name=eight), Given())
    whole = read(case(("SEQ_THROUGHPUT", 80), ("TOKEN_THROUGHPUT", 800), name=eight), Given())
    assert per_gpu.metrics == whole.metrics == {"output_tput_per_gpu": 100.0}
    assert (per_gpu.num_gpus, per_gpu.identity["tp"]) == (8, 8)
    unknown = read(case(("TOKEN_THROUGHPUT", 800), name=eight), Given())
    assert (unknown.metrics, unknown.metrics_other) == ({}, {"token_throughput": 800.0})
    total = read(case(("TOTAL_OUTPUT_THROUGHPUT", 800), name=eight), Given())
    assert total.metrics == {"output_tput_per_gpu": 100.0}


def test_latencies_have_the_statistic_that_their_tool_writes() -> None:
    found = read(case(("FIRST_TOKEN_TIME", 500), ("MEDIAN_OUTPUT_TOKEN_TIME", 20), ("P99_INTER_TOKEN_TIME", 40)), Given()).metrics
    assert (found["ttft_mean"], found["tpot_median"], found["itl_p99"]) == (0.5, 0.02, 0.04)
    roles = {**RESULT, "perf_metrics": [entry("WIDEEP_SERVER_TTFT", 500), entry("WIDEEP_SERVER_MEAN_TPOT", 20)]}
    assert read(roles, DECLARED).metrics["ttft_median"] == 0.5
    assert read(roles, DECLARED).metrics["tpot_mean"] == 0.02


def test_sizes_quantization_and_load_stand_in_the_name() -> None:
    name = "llama_v3.1_70b-bench-bfloat16-maxbs:1-maxnt:2-input_output_len:128,64-quant:fp8-con:16-ep:2-tp:4-pp:2-gpus:8"
    found = read(case(("SEQ_THROUGHPUT", 1), name=name), Given())
    assert [found.identity[key] for key in ("framework", "precision", "tp", "pp", "ep", "arrival")] == [
        "trt-engine",
        "fp8",
        4,
        2,
        2,
        None,
    ]
    assert (found.concurrency, found.num_gpus, found.requests) == (16, 8, None)
    assert read(case(("SEQ_THROUGHPUT", 1), name=BENCH.replace("tiny_1b", "tiny_1b_fp8")), Given()).identity["precision"] == "fp8"


def test_several_lengths_are_no_nominal_length() -> None:
    found = read(case(("SEQ_THROUGHPUT", 1), name=BENCH.replace("100,10", "100,10+200,20")), Given())
    assert (found.identity["isl"], found.identity["workload"]) == (None, "maxbs:512 maxnt:2048 input_output_len:100,10+200,20")


def test_separate_prefill_and_decode() -> None:
    found = read(RESULT, DECLARED)
    assert found.metrics == {"ttft_median": 1.1225, "e2el_median": 22.521}
    names = ("disagg", "decode_tp", "decode_ep", "decode_dp_attention", "kv_transfer", "isl", "osl", "spec_decoding", "precision")
    assert [found.identity[name] for name in names] == [True, 16, 16, True, "ucx", 8192, 1024, "none", "fp4"]
    assert (found.identity["model"], found.identity["workload"], found.concurrency) == ("dsr1", "bs:64 mtp:0 file:015", 1075)
    assert found.measured_at == datetime(2025, 10, 30, 16, 53, 53, tzinfo=UTC)


def test_hardware_and_gpus_are_asked_for_where_no_name_tells_them() -> None:
    with pytest.raises(InputError, match="hardware, num_gpus: not in the record"):
        read(RESULT, Given())


def test_a_newer_name_tells_roles_and_accelerator() -> None:
    name = "test_benchmark[gb200-deepseek-r1-fp4_1k1k_ctx2_dep4_gen1_tep8_eplb0_mtp3_ccb-NIXL]-con-4"
    found = read({**RESULT, "network_name": name}, Given())
    names = (
        "hardware",
        "prefill_tp",
        "prefill_num_workers",
        "num_prefill_gpus",
        "decode_tp",
        "decode_dp_attention",
        "num_decode_gpus",
    )
    assert [found.identity[key] for key in names] == ["gb200", 4, 2, 8, 8, False, 8]
    assert (found.num_gpus, found.identity["spec_decoding"], found.identity["kv_transfer"]) == (16, "mtp", "nixl")


def test_times_have_no_zone() -> None:
    assert read(RESULT, Given(declared={"hardware": "gb200", "num_gpus": "20"})).measured_at is None
    with pytest.raises(InputError, match="declare timezone"):
        origin(RESULT, Given())
    run = origin(RESULT, DECLARED)
    assert run is not None
    assert run.run_id == "day-2025-10-30"
    assert origin(case(("SEQ_THROUGHPUT", 1)), Given()) is None


def test_commands_keep_no_paths() -> None:
    header = HEADER + ",command"
    command = "trtllm-bench --model=tiny --model_path=/home/someone/tiny --concurrency=8 --dataset=/tmp/x"
    (item,) = cases(row(BENCH, "SEQ_THROUGHPUT", "20") + f",{command}", header=header)
    assert isinstance(item, Item)
    assert item.value["command"] == "--model=tiny --concurrency=8"


def test_another_table_is_not_read() -> None:
    assert unfold("a,b\n1,2\n") is None
    assert unfold("{}") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "invalid"}, "state"),
        ({"network_name": "perf_sanity-config"}, "network_name"),
        ({"network_name": "x[nothing]"}, "network_name"),
        ({"perf_metrics": []}, "perf_metrics"),
        ({"perf_metrics": [{"metric_type": "A", "perf_metric": "nan"}]}, "A: 'nan' is not a number"),
        ({"start_timestamp": "yesterday"}, "start_timestamp"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({**RESULT, **changes}, DECLARED)


@given(mutations(RESULT))
def test_a_strange_case_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read, record, DECLARED)


@given(
    st.text("abcdefgtp:,-_[]0123456789k+ ", max_size=80),
    st.sampled_from(["", "m-bench-", "[m_1k1k_", "m-cpp-bs:8-", "disagg_perf_"]),
)
def test_any_name_is_refused_in_words_or_read(name: str, head: str) -> None:
    refused_or_finite(read, {**RESULT, "network_name": head + name}, DECLARED)


@given(st.text('",ab\n\r1/[', max_size=80))
def test_any_table_gives_items_and_faults(text: str) -> None:
    assert all(isinstance(item, Item | Fault) for item in unfold(HEADER + "\n" + text) or ())


def test_real_tables(shared_data: Path) -> None:
    folder = shared_data / "formats" / "trtllm"
    baselines = list(unfold((folder / "base_perf_pytorch.csv").read_text()) or ())
    assert len(baselines) == 2
    first = read(baselines[0].value, Given())
    assert (first.metrics, first.duration_s) == ({"output_tput_per_gpu": 8093.6228}, 129.555827)
    assert (first.identity["hardware"], first.concurrency) == ("h100pcie", 8192)
    results = [
        read(item.value, DECLARED) for item in unfold((folder / "disagg_perf_script_test_results.head.csv").read_text()) or ()
    ]
    assert len(results) == 12
    assert results[0].metrics == {"ttft_median": 1.12263, "e2el_median": 22.52171}
    assert len({(str(found.identity), found.concurrency) for found in results}) == 12
