"""SGLang bench_serving records: each number by its definition, lengths as they were sent, nothing private kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pipelines.ingest.json_text import Item, items
from pipelines.ingest.reading import Given
from pipelines.ingest.tools import sglang_serving
from pipelines.ingest.tools.plain_names import device_name, model_name, precision_of
from pipelines.ingest.tools.sglang_serving import FORMAT, clean, read
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

DECLARED = Given(declared={"hardware": "h100", "num_gpus": "2", "model": "org/Tiny-1B", "precision": "bf16"})

RECORD: dict[str, Any] = {
    "tag": "night",
    "backend": "sglang-oai",
    "dataset_name": "random",
    "request_rate": "Infinity",
    "max_concurrency": 4,
    "sharegpt_output_len": None,
    "random_input_len": 64,
    "random_output_len": 32,
    "random_range_ratio": 0.5,
    "server_info": None,
    "duration": 10.0,
    "completed": 20,
    "total_input_tokens": 1000,
    "total_output_tokens": 500,
    "total_output_tokens_retokenized": 480,
    "request_throughput": 2.0,
    "input_throughput": 100.0,
    "output_throughput": 50.0,
    "total_throughput": 150.0,
    "mean_e2e_latency_ms": 1500.0,
    "median_e2e_latency_ms": 1400.0,
    "p99_e2e_latency_ms": 2000.0,
    "mean_ttft_ms": 250.0,
    "median_ttft_ms": 200.0,
    "std_ttft_ms": 50.0,
    "mean_tpot_ms": 40.0,
    "median_tpot_ms": 50.0,
    "p90_tpot_ms": 80.0,
    "mean_itl_ms": 41.0,
    "median_itl_ms": 39.0,
    "p95_itl_ms": 60.0,
    "concurrency": 3.0,
    "accept_length": None,
    "max_concurrent_requests": 9,
}
SERVER: dict[str, Any] = {
    "version": "0.5.6",
    "model_path": "/home/someone/models/DeepSeek-R1",
    "tokenizer_path": "/home/someone/models/DeepSeek-R1",
    "host": "node-17.internal",
    "api_key": "sk-secret",
    "tp_size": 8,
    "pp_size": 1,
    "dp_size": 8,
    "ep_size": 8,
    "nnodes": 1,
    "enable_dp_attention": True,
    "quantization": "modelopt_fp4",
    "speculative_algorithm": "EAGLE",
    "attention_backend": "trtllm_mla",
    "disaggregation_mode": "null",
    "internal_states": [{"last_gen_throughput": 1.0}],
}


def reading(given: Given = DECLARED, **changes: Any) -> Any:
    return read({**RECORD, **changes}, given)


def test_numbers_stand_in_seconds_and_per_gpu() -> None:
    found = reading()
    assert (found.metrics["ttft_mean"], found.metrics["ttft_median"], found.metrics["ttft_std"]) == (0.25, 0.2, 0.05)
    assert (found.metrics["tpot_mean"], found.metrics["tpot_p90"]) == (0.04, 0.08)
    assert (found.metrics["itl_mean"], found.metrics["itl_p95"]) == (0.041, 0.06)
    assert (found.metrics["e2el_mean"], found.metrics["e2el_p99"]) == (1.5, 2.0)
    assert found.metrics["intvty_median"] == 20.0
    assert [found.metrics[f"{kind}tput_per_gpu"] for kind in ("", "output_", "input_")] == [75.0, 25.0, 50.0]
    assert found.metrics_other["request_throughput"] == 2.0
    assert found.metrics_other["concurrency_realised"] == 3.0
    assert "concurrency" not in found.metrics_other
    assert (found.duration_s, found.isl_mean, found.osl_mean) == (10.0, 50.0, 25.0)
    assert found.metric_definition == "sglang bench_serving"
    assert found.measured_at is None


def test_a_range_of_lengths_is_part_of_the_workload() -> None:
    assert (reading().identity["workload"], reading().identity["isl"], reading().identity["osl"]) == ("random 0.5..1.0", 64, 32)
    assert reading(random_range_ratio=0).identity["workload"] == "random 0.0..1.0"
    assert reading(random_range_ratio=0).identity != reading(random_range_ratio=1.0).identity


def test_lengths_of_random_prompts_mean_nothing_for_other_data_sets() -> None:
    found = reading(dataset_name="sharegpt", random_input_len=1024, random_output_len=1024)
    assert (found.identity["workload"], found.identity["isl"], found.identity["osl"]) == ("sharegpt", None, None)
    assert reading(dataset_name="sharegpt", sharegpt_output_len=128).identity["osl"] == 128


@pytest.mark.parametrize(
    ("rate", "limit", "concurrency", "sent", "arrival"),
    [
        ("inf", 4, 4, None, None),
        (float("inf"), 4, 4, None, None),
        ("Infinity", None, 20, None, "burst"),
        (5.0, None, None, 5.0, "poisson"),
        (5.0, 8, None, 5.0, "poisson, at most 8"),
        ("trace", None, None, None, "trace"),
    ],
)
def test_the_load_is_a_limit_or_a_rate_and_never_what_came_about(
    rate: Any, limit: Any, concurrency: Any, sent: Any, arrival: Any
) -> None:
    found = reading(request_rate=rate, max_concurrency=limit)
    assert (found.concurrency, found.request_rate, found.identity["arrival"]) == (concurrency, sent, arrival)


def test_one_name_of_itl_stands_for_three_definitions() -> None:
    native, accepted = reading(backend="sglang"), {"accept_length": 2.5}
    assert native.metrics_other["itl_per_token_mean"] == 0.041
    assert "itl_mean" not in native.metrics
    method = Given(declared={**DECLARED.declared, "spec_decoding": "eagle"})
    by_client = reading(method, **accepted)
    assert by_client.metrics_other["itl_per_client_token_p95"] == 0.06
    assert "itl_mean" not in by_client.metrics
    assert reading(method, backend="vllm", **accepted).metrics["itl_mean"] == 0.041


def test_accepted_tokens_ask_for_the_method() -> None:
    with pytest.raises(InputError, match="spec_decoding: not in the record"):
        reading(accept_length=2.5)


def test_a_latency_of_nought_was_not_measured() -> None:
    found = reading(mean_ttft_ms=0.0, median_ttft_ms=0.0, std_ttft_ms=0.0)
    assert not any(name.startswith("ttft") for name in found.metrics)
    assert found.metrics["tpot_mean"] == 0.04


def test_older_records_are_read() -> None:
    new = ("tag", "server_info", "total_throughput", "max_concurrency", "concurrency", "accept_length", "max_concurrent_requests")
    old = {key: value for key, value in RECORD.items() if key not in new}
    assert FORMAT.recognises(old)
    found = read({**old, "request_rate": 2.0}, DECLARED)
    assert found.metrics["tput_per_gpu"] == 75.0
    assert (found.request_rate, found.identity["arrival"]) == (2.0, "poisson")


def test_turns_of_a_conversation_have_no_count_of_input() -> None:
    found = reading(total_input_tokens=0, input_throughput=0.0, total_throughput=50.0)
    assert found.isl_mean is None
    assert {"tput_per_gpu", "input_tput_per_gpu"}.isdisjoint(found.metrics)
    assert found.metrics["output_tput_per_gpu"] == 25.0


def test_the_server_tells_build_and_sizes() -> None:
    found = read({**RECORD, "server_info": SERVER}, Given(declared={"hardware": "b200"}))
    assert (found.engine_version, found.model_source, found.identity["model"]) == ("0.5.6", "DeepSeek-R1", "dsr1")
    assert [found.identity[name] for name in ("tp", "pp", "ep", "dp_attention")] == [8, 1, 8, True]
    assert (found.identity["precision"], found.identity["spec_decoding"], found.num_gpus) == ("fp4", "eagle", 8)
    assert found.declared == ("hardware",)


def test_replicas_without_data_parallel_attention_have_gpus_of_their_own() -> None:
    server = {**SERVER, "tp_size": 2, "dp_size": 4, "enable_dp_attention": False}
    assert read({**RECORD, "server_info": server}, DECLARED).num_gpus == 8  # what the record says counts before what is declared
    assert read({**RECORD, "server_info": server}, Given(declared={"hardware": "b200"})).num_gpus == 8


def test_the_type_of_the_model_does_not_tell_its_precision() -> None:
    with pytest.raises(InputError, match="precision: not in the record"):
        read({**RECORD, "server_info": {**SERVER, "quantization": None}}, Given(declared={"hardware": "b200"}))


def test_servers_by_role_are_sizes_by_role() -> None:
    prefill = {**SERVER, "tp_size": 4, "dp_size": 1, "enable_dp_attention": False}
    info = {"prefill": [prefill, prefill], "decode": [SERVER]}
    kept = clean({**RECORD, "server_info": info})
    found = read(kept, Given(declared={"hardware": "b200"}))
    names = ("prefill_tp", "prefill_num_workers", "num_prefill_gpus", "decode_tp", "num_decode_gpus", "tp", "disagg")
    assert [found.identity[name] for name in names] == [4, 2, 8, 8, 8, None, True]
    assert found.num_gpus == 16
    assert "secret" not in json.dumps(kept)
    alone = {**RECORD, "server_info": {**SERVER, "disaggregation_mode": "decode"}}
    with pytest.raises(InputError, match="num_gpus: not in the record"):
        read(alone, Given(declared={"hardware": "b200"}))


def test_nothing_private_is_kept() -> None:
    details = {
        "input_lens": [1, 2],
        "ttfts": [0.1, 0.2],
        "itls": [[0.1], [0.2]],
        "generated_texts": ["a letter", "another"],
        "errors": ["", "Traceback: /home/someone/x.py"],
        "note": "see /home/someone",
    }
    kept = clean({**RECORD, **details, "server_info": SERVER})
    text = json.dumps(kept)
    assert not any(word in text for word in ("someone", "secret", "internal", "letter", "Traceback", "ttfts"))
    assert kept["server_info"]["attention_backend"] == "trtllm_mla"
    assert kept["errors"] == {"requests": 2, "failed": 1}
    assert clean(kept) == kept
    assert FORMAT.recognises(kept)
    found = read(kept, DECLARED)
    assert (found.requests, found.requests_failed) == (2, 1)
    assert read({**RECORD, **details, "server_info": SERVER}, DECLARED) == found


def test_an_openai_path_may_be_declared_to_lead_elsewhere() -> None:
    elsewhere = Given(declared={**DECLARED.declared, "engine": "trtllm"})
    assert reading().identity["engine"] == "sglang"
    assert reading(elsewhere).identity["engine"] == "trtllm"
    assert reading(elsewhere, backend="sglang").identity["engine"] == "sglang"
    assert reading(backend="vllm-chat").identity["engine"] == "vllm"
    with pytest.raises(InputError, match="engine: not in the record"):
        reading(backend="truss")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"completed": 0}, "completed: 0: no request succeeded"),
        ({"completed": None}, "completed"),
        ({"request_rate": 0}, "request_rate: 0"),
        ({"request_rate": ["inf"]}, "request_rate"),
        ({"mean_tpot_ms": "NaN"}, "mean_tpot_ms"),
        ({"mean_tpot_ms": -1}, "mean_tpot_ms"),
        ({"server_info": "busy"}, "server_info"),
        ({"server_info": {"tp_size": 0}}, "server_info.tp_size"),
        ({"max_concurrency": 2.5}, "max_concurrency"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reading(**changes)


@given(mutations({**RECORD, "server_info": {**SERVER, "prefill": [SERVER], "decode": [SERVER]}, "errors": ["", "x"]}))
def test_a_strange_record_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read, record, DECLARED)
    kept = clean(record)
    assert "secret" not in repr({key: value for key, value in kept.items() if key == "server_info"})
    refused_or_finite(read, kept, DECLARED)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/home/someone/models/DeepSeek-R1/", "DeepSeek-R1"),
        ("~/models/x", "x"),
        ("/cache/hub/models--deepseek-ai--DeepSeek-R1/snapshots/0a1b2c", "deepseek-ai/DeepSeek-R1"),
        ("C:\\models\\qwen", "qwen"),
        ("None", None),
        (None, None),
    ],
)
def test_names_of_models_hold_no_folders(path: str | None, name: str | None) -> None:
    assert model_name(path) == name


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100pcie"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA GeForce RTX 5090", "rtx5090"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000"),
        ("", None),
    ],
)
def test_product_names_reduce_to_accelerators(product: str, name: str | None) -> None:
    assert device_name(product) == name


def test_methods_reduce_to_precisions() -> None:
    told = {
        method: precision_of(method) for method in ("modelopt_fp4", "FP8_BLOCK_SCALES", "W4A16_AWQ", "w8a8_int8", "gptq", None)
    }
    assert list(told.values()) == ["fp4", "fp8", "int4", "int8", None, None]


def test_real_records(shared_data: Path) -> None:
    folder = shared_data / "formats" / "sglang"
    found = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for item in items(path.read_bytes()):
            assert isinstance(item, Item)
            assert FORMAT.recognises(item.value)
            found[path.name] = read(clean(item.value), DECLARED)
    mock, real = found["bench_serving.jsonl"], found["bench_serving_sharegpt_rate5.jsonl"]
    assert (round(mock.metrics["tpot_mean"], 5), round(mock.metrics["itl_mean"], 5)) == (0.00419, 0.00418)
    assert (mock.requests, mock.requests_failed, mock.isl_mean, mock.osl_mean) == (24, 0, 350 / 24, 234 / 24)
    assert (mock.request_rate, mock.identity["workload"], mock.identity["isl"]) == (20.0, "random-ids 0.0..1.0", 32)
    assert (real.request_rate, real.identity["arrival"], real.identity["isl"]) == (5.0, "poisson, at most 256", None)
    assert real.metrics["tput_per_gpu"] == (1477.0827846460556 + 957.162043188693) / 2
    assert real.isl_mean == 302.118


def test_markers_are_fields_of_the_record() -> None:
    assert RECORD.keys() >= sglang_serving.MARKERS
