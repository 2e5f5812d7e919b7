"""SGLang one-batch records: forward passes are no TTFT and no TPOT, and throughputs say what they are over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from pipelines.ingest.reading import Given
from pipelines.ingest.tools.sglang_batch import SERVED_FORMAT, STATIC_FORMAT, clean, read_served, read_static
from pipelines.ingest.tools.sglang_server import from_arguments
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

DECLARED = Given(declared={"hardware": "h100", "num_gpus": "2", "model": "org/Tiny-1B", "precision": "bf16"})
STATIC: dict[str, Any] = {
    "run_name": "default",
    "batch_size": 4,
    "input_len": 100,
    "output_len": 11,
    "prefill_latency": 0.5,
    "prefill_throughput": 800.0,
    "median_decode_latency": 0.05,
    "median_decode_throughput": 80.0,
    "total_latency": 1.0,
    "overall_throughput": 444.0,
}
SERVED: dict[str, Any] = {
    "run_name": "default",
    "batch_size": 4,
    "input_len": 100,
    "output_len": 20,
    "latency": 2.0,
    "input_throughput": 800.0,
    "output_throughput": 53.33,
    "overall_throughput": 240.0,
    "last_ttft": 0.5,
    "last_gen_throughput": 55.0,
    "acc_length": -1,
    "cache_hit_rate": None,
}


def test_a_batch_without_a_server() -> None:
    found = read_static(STATIC, DECLARED)
    assert (found.concurrency, found.identity["arrival"], found.identity["isl"], found.identity["osl"]) == (4, "batch", 100, 11)
    assert found.metrics == {"tput_per_gpu": 222.0, "input_tput_per_gpu": 200.0, "output_tput_per_gpu": 22.0}
    assert found.metrics_other["prefill_step"] == 0.5
    assert found.metrics_other["decode_step_median"] == 0.05
    assert (found.duration_s, found.requests, found.isl_mean, found.osl_mean) == (1.0, 4, 100.0, 11.0)
    assert found.identity["engine"] == "sglang"


def test_a_batch_on_a_server() -> None:
    found = read_served(SERVED, DECLARED)
    assert found.metrics == {"tput_per_gpu": 120.0, "input_tput_per_gpu": 100.0, "output_tput_per_gpu": 20.0}
    assert found.metrics_other == {
        "batch_latency": 2.0,
        "last_ttft": 0.5,
        "prefill_phase_throughput": 800.0,
        "decode_phase_throughput": 53.33,
        "last_gen_throughput": 55.0,
    }
    assert found.metric_definition != read_static(STATIC, DECLARED).metric_definition


def test_output_throughput_was_over_the_whole_latency() -> None:
    old = {key: SERVED[key] for key in ("run_name", "batch_size", "input_len", "output_len", "latency", "overall_throughput")}
    found = read_served({**old, "output_throughput": 40.0}, DECLARED)
    assert found.metrics["output_tput_per_gpu"] == 20.0
    assert "decode_phase_throughput" not in found.metrics_other
    middle = read_served({**old, "output_throughput": 53.33, "last_gen_throughput": 55.0}, DECLARED)
    assert middle.metrics_other["decode_phase_throughput"] == 53.33
    assert middle.metrics["output_tput_per_gpu"] == 20.0


def test_requests_that_stopped_early_have_their_own_tokens() -> None:
    found = read_served({**SERVED, "total_output_tokens": 60}, DECLARED)
    assert (found.metrics["output_tput_per_gpu"], found.osl_mean, found.identity["osl"]) == (15.0, 15.0, 20)


def test_nightly_records_name_model_and_server() -> None:
    arguments = [
        "--tp",
        "8",
        "--enable-dp-attention",
        "--quantization=modelopt_fp4",
        "--api-key",
        "sk-secret",
        "--speculative-algo",
        "EAGLE",
    ]
    link = "/home/someone/profiles/x.trace.json.gz"
    nightly = {
        **SERVED,
        "model_path": "/data/DeepSeek-R1",
        "server_args": arguments,
        "profile_link_decode": link,
        "acc_length": 2.7,
    }
    kept = clean(nightly)
    assert "secret" not in json.dumps(kept)
    assert "someone" not in json.dumps(kept)
    assert clean(kept) == kept
    for record in (nightly, kept):
        found = read_served(record, Given(declared={"hardware": "b200"}))
        assert (found.identity["model"], found.identity["tp"], found.num_gpus) == ("dsr1", 8, 8)
        assert (found.identity["precision"], found.identity["spec_decoding"], found.identity["dp_attention"]) == (
            "fp4",
            "eagle",
            True,
        )


def test_arguments_come_in_several_spellings() -> None:
    told = from_arguments(["--tensor-parallel-size=4", "--trust-remote-code", "--ep", "4", "--model", "/x/y/Tiny"])
    assert told == {"tp_size": "4", "ep_size": "4", "model_path": "Tiny"}


def test_more_than_one_token_a_step_asks_for_the_method() -> None:
    with pytest.raises(InputError, match="spec_decoding: not in the record"):
        read_served({**SERVED, "acc_length": 2.7}, DECLARED)


def test_the_engine_of_a_server_may_be_declared() -> None:
    assert read_served(SERVED, Given(declared={**DECLARED.declared, "engine": "vllm"})).identity["engine"] == "vllm"


def test_the_two_are_told_apart_by_their_keys() -> None:
    assert STATIC_FORMAT.recognises(STATIC)
    assert not SERVED_FORMAT.recognises(STATIC)
    assert SERVED_FORMAT.recognises(SERVED)
    assert not STATIC_FORMAT.recognises(SERVED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latency": 0}, "latency: 0 seconds"),
        ({"batch_size": 0}, "batch_size"),
        ({"overall_throughput": None}, "overall_throughput"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_served({**SERVED, **changes}, DECLARED)


@given(mutations({**SERVED, "server_args": ["--tp", "8", "--x"], "model_path": "a/b"}))
def test_a_strange_served_record_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read_served, record, DECLARED)
    refused_or_finite(read_served, clean(record), DECLARED)


@given(mutations(STATIC))
def test_a_strange_static_record_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read_static, record, DECLARED)
    refused_or_finite(read_static, clean(record), DECLARED)
