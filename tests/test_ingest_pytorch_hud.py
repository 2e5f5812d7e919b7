"""PyTorch's format: twelve records of one run are one measurement, and the same one as the JSON beside them. Values by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_cases
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.reading import Given
from pipelines.ingest.tools import vllm_serve
from pipelines.ingest.tools.pytorch_hud import FORMAT, read
from pipelines.ingest.tools.pytorch_rows import unpack
from tests.mutated import mutations, refused_or_finite
from tests.test_ingest_vllm_offline import LATENCY, THROUGHPUT
from tests.test_ingest_vllm_serve import NEW
from warehouse.canonical import canonical_json
from warehouse.errors import InputError

METRICS = [f"{statistic}_{family}_ms" for family in ("ttft", "tpot", "itl") for statistic in ("median", "mean", "std", "p99")]
LISTS = ("ttfts", "itls", "generated_texts", "errors")
ARGS = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "dataset_name": "random",
    "random_input_len": 1000,
    "random_output_len": 200,
    "random_prefix_len": 24,
    "host": "10.0.0.1",
    "result_dir": "/home/bob/out",
    "tensor_parallel_size": "2",
}
UPLOAD: dict[str, Any] = {
    "timestamp": 1753000000,
    "schema_version": "v3",
    "name": "vLLM benchmark",
    "repo": "vllm-project/vllm",
    "head_branch": "main",
    "head_sha": "2d234357c6e69fa514f6e9b4d4a5ad3bc431c4a6",
    "workflow_id": 17000000001,
    "run_attempt": 2,
    "job_id": 48000000001,
    "runners": [
        {
            "name": "cuda",
            "type": "NVIDIA H100 80GB HBM3",
            "gpu_info": "NVIDIA H100 80GB HBM3",
            "gpu_count": 8,
            "extra_info": {"hostname": "node17.example.org"},
        }
    ],
}


def rows(metrics: dict[str, list[Any]], rest: dict[str, Any] | None, args: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [
        {
            **more,
            "benchmark": {"name": "vLLM benchmark", "extra_info": {"args": args, "use_compile": True}},
            "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
            "metric": {"name": name, "benchmark_values": values, "extra_info": rest},
        }
        for name, values in metrics.items()
    ]


def serve_rows(record: dict[str, Any] = NEW, **more: Any) -> list[dict[str, Any]]:
    rest = {key: value for key, value in record.items() if key not in METRICS and key not in LISTS}
    return rows({name: [record[name]] for name in METRICS}, rest, ARGS, **more)


def items(value: Any) -> list[Item | Fault]:
    found = unpack(value)
    assert found is not None
    return list(found)


def only(value: Any) -> dict[str, Any]:
    (item,) = items(value)
    assert isinstance(item, Item) and isinstance(item.value, dict)
    return item.value


def test_twelve_records_are_the_record_of_the_file_beside_them() -> None:
    assert len(serve_rows()) == 12 and vllm_serve.FORMAT.clean is not None
    record = only(serve_rows())
    assert vllm_serve.FORMAT.recognises(record) and not FORMAT.recognises(record)
    assert canonical_json(record) == canonical_json(vllm_serve.FORMAT.clean(NEW))
    found = vllm_serve.read(record, Given(declared={"engine": "vllm", "hardware": "h100", "precision": "bf16"}))
    assert found.metrics["tpot_mean"] == pytest.approx(0.00431)


def test_runs_are_told_apart_and_rows_may_be_shuffled_or_come_twice() -> None:
    other = {**NEW, "date": "20260801-111500", "mean_ttft_ms": 99.0}
    both = serve_rows() + serve_rows(other)
    found = items([both[index] for index in (*range(0, 24, 2), *range(1, 24, 2), 3)])
    assert [item.position for item in found] == ["/0", "/6"]
    assert sorted(item.value["mean_ttft_ms"] for item in found if isinstance(item, Item)) == [80.0, 99.0]


def test_one_damaged_row_costs_itself_alone() -> None:
    listed: list[Any] = [
        *serve_rows(),
        {"benchmark": {"name": "TorchInductor"}, "model": {}, "metric": {}},
        7,
        Fault("line 14", "cut"),
    ]
    found = items(listed)
    assert isinstance(found[0], Item) and [item.position for item in found] == ["/0", "/12", "/13", "line 14"]
    assert all(isinstance(item, Fault) for item in found[1:])


def test_lines_of_lists() -> None:
    found = items([serve_rows(), serve_rows({**NEW, "date": "20260801-111500"})])
    assert [item.position for item in found] == ["/0/0", "/1/0"]


@pytest.mark.parametrize("value", [[], {}, 7, None, [NEW], NEW, [[]], [{"benchmark": 1, "model": 2, "metric": 3}]])
def test_what_is_not_of_this_format(value: Any) -> None:
    assert unpack(value) is None


def test_rows_of_other_benchmarks_are_nobodys_near_miss() -> None:
    row = {"benchmark": {"name": "TorchInductor"}, "model": {}, "metric": {}}
    assert unpack([row]) is None and not FORMAT.lacks(row)


def test_uploaded_rows_tell_machine_and_commit() -> None:
    record = only(serve_rows(**UPLOAD))
    assert FORMAT.recognises(record) and not vllm_serve.FORMAT.recognises(record)
    text = canonical_json(record)
    assert not [word for word in ("node17", "10.0.0.1", "/home", "secret words") if word in text]
    assert FORMAT.clean is not None and FORMAT.clean(record) == record
    found = read(record, Given(declared={"precision": "bf16"}))
    assert found.identity["hardware"] == "h100" and found.identity["engine"] == "vllm"
    assert found.engine_commit == UPLOAD["head_sha"] and found.engine_version == "0.24.0"
    assert found.num_gpus == 2, "eight GPUs are those of the machine"
    assert (found.identity["isl"], found.identity["osl"], found.identity["workload"]) == (1024, 200, "random")
    assert found.metrics["tput_per_gpu"] == 2280.0 and found.metrics["tpot_mean"] == pytest.approx(0.00431)
    assert found.concurrency == 64 and found.declared == ("precision",)


def test_commit_of_another_repository_is_not_the_engines() -> None:
    other = {**UPLOAD, "repo": "pytorch/pytorch"}
    given = Given(declared={"precision": "bf16", "engine": "vllm"})
    assert read(only(serve_rows(**other)), given).engine_commit is None
    carried = {"vllm-project/vllm": {"branch": "main", "sha": "0123456789"}}
    assert (
        read(only(serve_rows(**{**UPLOAD, "repo": "pytorch/pytorch", "dependencies": carried})), given).engine_commit
        == "0123456789"
    )


def test_timestamp_is_no_run_time() -> None:
    assert FORMAT.origin is not None
    record = only(serve_rows(**UPLOAD))
    run = FORMAT.origin(record, Given(declared={"timezone": "UTC"}))
    assert run is not None and (run.run_source, run.run_id, run.run_attempt) == ("pytorch-hud", "17000000001", 2)
    assert run.started_at == datetime(2026, 8, 1, tzinfo=UTC), "not July 2025, when the commit was made"
    with pytest.raises(InputError, match="timezone"):
        FORMAT.origin(record, Given())
    fallback = only(serve_rows(**{**UPLOAD, "workflow_id": UPLOAD["timestamp"]}))
    assert (found := FORMAT.origin(fallback, Given(declared={"timezone": "UTC"}))) and found.run_id == "day-2026-08-01"
    offline = only(rows({"latency": LATENCY["latencies"]}, {"avg_latency": 2.0, "percentiles": {"50": 2.0}}, ARGS, **UPLOAD))
    assert FORMAT.origin(offline, Given(declared={"timezone": "UTC"})) is None


def latency_rows(**more: Any) -> list[dict[str, Any]]:
    args = {
        "model": "m/x",
        "tensor_parallel_size": 4,
        "input_len": 32,
        "output_len": 128,
        "batch_size": 8,
        "n": 1,
        "api_key": "k",
    }
    rest = {key: LATENCY[key] for key in ("avg_latency", "percentiles")}
    return rows({"latency": LATENCY["latencies"]}, rest, args, **more)


def test_bench_latency() -> None:
    record = only(latency_rows())
    assert FORMAT.recognises(record) and "api_key" not in record["args"]
    found = read(record, Given(declared={"hardware": "h100", "precision": "bf16"}))
    assert found.metrics_other["batch_latency_mean"] == 2.0 and found.metrics["tput_per_gpu"] == 160.0
    assert (found.concurrency, found.num_gpus, found.requests, found.identity["isl"]) == (8, 4, 24, 32)
    assert found.model_source == "m/x" and found.identity["engine"] == "vllm" and found.duration_s == pytest.approx(6.0)


def test_bench_throughput() -> None:
    args = {"model": "m/x", "tensor_parallel_size": 4, "data_parallel_size": 2, "dataset_name": "sharegpt", "quantization": "fp8"}
    args |= {"speculative_config": {"method": "eagle3", "model": "/home/bob/draft"}}
    metrics = {key: [THROUGHPUT[key]] for key in ("requests_per_second", "tokens_per_second")}
    rest = {key: THROUGHPUT[key] for key in ("elapsed_time", "num_requests", "total_num_tokens")}
    record = only(rows(metrics, rest, args))
    assert record["args"]["speculative_config"] == {"method": "eagle3", "model": "draft"}
    found = read(record, Given(declared={"hardware": "h100"}))
    assert found.num_gpus == 8 and found.metrics == {"tput_per_gpu": 500.0} and found.identity["precision"] == "fp8"
    assert found.identity["spec_decoding"] == "eagle3" and found.identity["workload"] == "sharegpt"


def test_texts_of_the_database() -> None:
    """ClickHouse keeps objects as texts of JSON and their values as texts."""
    listed = latency_rows(**UPLOAD)
    for row in listed:
        row["benchmark"]["extra_info"]["args"] = json.dumps(row["benchmark"]["extra_info"]["args"])
        row["metric"]["extra_info"] = {"avg_latency": "2.0", "percentiles": json.dumps(LATENCY["percentiles"])}
    found = read(only(listed), Given(declared={"precision": "bf16"}))
    assert found.metrics_other["batch_latency_mean"] == 2.0 and found.metrics_other["batch_latency_p99"] == 2.098


def test_other_metrics_are_refused() -> None:
    with pytest.raises(InputError, match=r"^metrics: avg_cold_startup_time: not of vllm bench"):
        read(only(rows({"avg_cold_startup_time": [1.0]}, {}, ARGS)), Given())


@given_cases(st.data())
def test_a_mutated_record_is_refused_or_finite(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([serve_rows(**UPLOAD)[:3], latency_rows(**UPLOAD)]))
    declared = Given(
        declared={"precision": "bf16", "hardware": "h100", "model": "x", "engine": "vllm", "tp": "2", "timezone": "UTC"}
    )
    refused_or_finite(read, data.draw(mutations(only(base))), declared)
    broken = [data.draw(mutations(row)) for row in base]
    for item in unpack(broken) or ():
        if isinstance(item, Item) and FORMAT.recognises(item.value):
            assert FORMAT.clean is not None
            refused_or_finite(read, FORMAT.clean(item.value), declared)


def test_real_lists_are_the_records_beside_them(shared_data: Path) -> None:
    lists = sorted((shared_data / "formats" / "vllm").rglob("*.pytorch.json"))
    assert len(lists) == 4 and vllm_serve.FORMAT.clean is not None
    for path in lists:
        beside = path.with_name(path.name.replace(".pytorch", "")).read_text("utf-8").splitlines()
        last = vllm_serve.FORMAT.clean(json.loads(beside[-1]))
        assert canonical_json(only(json.loads(path.read_text("utf-8")))) == canonical_json(last)
