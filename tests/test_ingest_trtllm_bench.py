"""trtllm-bench reports: units, GPUs, precision and what a report does not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pipelines.ingest.reading import Given
from pipelines.ingest.tools.trtllm_bench import FORMAT, clean, read
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

REPORT: dict[str, Any] = {
    "engine": {
        "model": "nvidia/DeepSeek-R1-FP4",
        "model_path": "/home/someone/DeepSeek-R1-FP4",
        "engine_dir": "/home/someone/engine",
        "version": "1.2.0",
        "backend": "Pytorch",
        "dtype": "bfloat16",
        "kv_cache_dtype": "FP8",
        "quantization": "NVFP4",
    },
    "machine": {"name": "NVIDIA B200", "memory.total": 180.0, "clocks.mem": 4.0, "hostname": "node-17"},
    "world_info": {"tp_size": 4, "pp_size": 2, "ep_size": 4, "world_size": 8, "max_batch_size": 64, "issue_rate": 1e15},
    "request_info": {
        "num_requests": 100,
        "avg_num_concurrent_requests": 12.5,
        "avg_input_length": 1000.0,
        "avg_output_length": 200.0,
    },
    "performance": {
        "total_latency_ms": 50000.0,
        "avg_request_latency_ms": 6000.0,
        "request_throughput_req_s": 2.0,
        "system_output_throughput_tok_s": 400.0,
        "system_total_throughput_tok_s": 2400.0,
        "output_throughput_per_user_tok_s": 33.0,
        "output_throughput_per_gpu_tok_s": 50.0,
        "request_latency_percentiles_ms": {
            "p50": 5000.0,
            "p90": 7000.0,
            "p95": 8000.0,
            "p99": 9000.0,
            "minimum": 1.0,
            "average": 6000.0,
        },
    },
    "streaming_metrics": {
        "token_output_speed_tok_s": 45.0,
        "avg_ttft_ms": 500.0,
        "avg_tpot_ms": 25.0,
        "tpot_percentiles": {"p50": 20.0, "p99": 40.0},
        "ttft_percentiles": {"p50": 400.0, "p99": 900.0},
    },
    "decoding_stats": {"mode": "MTP", "acceptance_length_percentiles": {"average": 2.5, "p50": 2.4}},
    "dataset": {
        "num_requests": 100,
        "max_isl": 1000,
        "max_osl": 200,
        "avg_isl": 1000,
        "avg_osl": 200,
        "dataset_path": "/home/someone/d",
    },
}
LOAD = Given(declared={"concurrency": "16"})


def changed(**parts: dict[str, Any]) -> dict[str, Any]:
    return {**REPORT, **{key: {**REPORT.get(key, {}), **value} for key, value in parts.items()}}


def test_numbers_stand_in_seconds_and_per_gpu() -> None:
    found = read(REPORT, LOAD)
    assert [found.metrics[f"e2el_{name}"] for name in ("mean", "median", "p90", "p95", "p99")] == [6.0, 5.0, 7.0, 8.0, 9.0]
    assert [found.metrics[f"ttft_{name}"] for name in ("mean", "median", "p99")] == [0.5, 0.4, 0.9]
    assert [found.metrics[f"tpot_{name}"] for name in ("mean", "median", "p99")] == [0.025, 0.02, 0.04]
    assert (found.metrics["intvty_median"], found.metrics["intvty_p99"]) == (50.0, 25.0)
    assert (found.metrics["tput_per_gpu"], found.metrics["output_tput_per_gpu"]) == (300.0, 50.0)
    assert found.metrics_other["request_throughput"] == 2.0
    assert found.metrics_other["acceptance_length"] == 2.5
    assert found.metrics_other["concurrency_realised"] == 12.5
    assert (found.requests, found.duration_s, found.isl_mean, found.osl_mean) == (100, 50.0, 1000.0, 200.0)


def test_the_report_tells_what_was_measured() -> None:
    found = read(REPORT, LOAD)
    names = ("hardware", "engine", "framework", "model", "precision", "spec_decoding", "tp", "pp", "ep", "isl", "osl", "workload")
    told = ["b200", "trtllm", "trt", "dsr1", "fp4", "mtp", 4, 2, 4, 1000, 200, None]
    assert [found.identity[name] for name in names] == told
    assert (found.num_gpus, found.engine_version, found.hardware_label, found.concurrency) == (8, "1.2.0", "NVIDIA B200", 16)
    assert found.declared == ("concurrency",)


def test_requests_in_flight_are_asked_for() -> None:
    with pytest.raises(InputError, match="concurrency: not in the record"):
        read(REPORT, Given())
    assert read(changed(request_info={"num_requests": 1}), Given()).concurrency == 1


def test_an_engine_built_by_tensorrt_is_another_stack() -> None:
    found = read(changed(engine={"backend": "TRT", "quantization": None}), LOAD)
    assert (found.identity["framework"], found.identity["engine"], found.identity["precision"]) == (
        "trt-engine",
        "trtllm",
        "bf16",
    )


def test_lengths_that_vary_are_told_by_the_longest() -> None:
    found = read(changed(dataset={"max_isl": 4000}), LOAD)
    assert (found.identity["isl"], found.identity["workload"]) == (1000, "lengths up to 4000, 200")


def test_a_report_without_streaming_has_no_first_token() -> None:
    found = read({key: value for key, value in REPORT.items() if key not in ("streaming_metrics", "decoding_stats")}, LOAD)
    assert not any(name.startswith(("ttft", "tpot", "intvty")) for name in found.metrics)
    assert found.identity["spec_decoding"] == "none"


def test_nothing_private_is_kept() -> None:
    kept = clean({**REPORT, "extra": {"path": "/home/someone"}})
    assert not any(word in json.dumps(kept) for word in ("someone", "node-17", "issue_rate", "engine_dir"))
    assert clean(kept) == kept
    assert FORMAT.recognises(kept)
    assert read(kept, LOAD) == read(REPORT, LOAD)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"world_info": {"tp_size": 0}}, "world_info.tp_size"),
        ({"performance": {"total_latency_ms": "NaN"}}, "performance.total_latency_ms"),
        ({"performance": {"request_latency_percentiles_ms": [1]}}, "request_latency_percentiles_ms"),
        ({"streaming_metrics": {"ttft_percentiles": {"p50": -1}}}, "streaming_metrics.ttft_percentiles.p50"),
    ],
)
def test_what_is_wrong_is_named(parts: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(changed(**parts), LOAD)


@given(mutations(REPORT))
def test_a_strange_report_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read, record, LOAD)
    refused_or_finite(read, clean(record), LOAD)


def test_a_real_report(shared_data: Path) -> None:
    record = json.loads((shared_data / "formats" / "trtllm" / "trtllm_bench_report_fixture.json").read_text())
    assert FORMAT.recognises(record)
    found = read(clean(record), Given())
    assert (found.identity["hardware"], found.identity["precision"], found.num_gpus) == ("gb10", "fp4", 1)
    assert (found.metrics["e2el_mean"], found.metrics["ttft_median"], found.metrics["output_tput_per_gpu"]) == (
        4.7435,
        4.5331,
        3.37,
    )
    assert round(found.metrics["tpot_mean"] * 15 + found.metrics["ttft_mean"], 3) == 4.744
    assert (found.engine_version, found.concurrency, found.isl_mean, found.osl_mean) == ("1.2", 1, 64.0, 16.0)
