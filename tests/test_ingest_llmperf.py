"""LLMPerf summaries and individual responses: latencies that hold the first token, counts of those that failed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.reading import Given
from pipelines.ingest.tools.llmperf import FORMAT, clean, hints, origin, read, unpack
from tests.mutated import STRANGE, mutations, refused_or_finite
from warehouse.errors import InputError

DECLARED = Given(declared={"engine": "vllm", "hardware": "h100", "num_gpus": "4", "precision": "bf16"})
SUMMARY: dict[str, Any] = {
    "version": "2023-08-31",
    "name": "org-Tiny-1B_550_150_summary",
    "model": "org/Tiny-1B",
    "mean_input_tokens": 550,
    "stddev_input_tokens": 0,
    "mean_output_tokens": 150,
    "stddev_output_tokens": 0,
    "num_concurrent_requests": 5,
    "results_inter_token_latency_s_quantiles_p50": 0.02,
    "results_inter_token_latency_s_quantiles_p99": 0.04,
    "results_inter_token_latency_s_mean": 0.025,
    "results_inter_token_latency_s_stddev": 0.004,
    "results_ttft_s_quantiles_p50": 0.2,
    "results_ttft_s_quantiles_p90": 0.3,
    "results_ttft_s_mean": 0.25,
    "results_end_to_end_latency_s_mean": 2.5,
    "results_end_to_end_latency_s_quantiles_p95": 3.5,
    "results_request_output_throughput_token_per_s_mean": 12.0,
    "results_number_input_tokens_mean": 551.0,
    "results_number_output_tokens_mean": 100.0,
    "results_number_output_tokens_min": "22",
    "results_num_requests_started": 160,
    "results_error_rate": 0.25,
    "results_number_errors": 40,
    "results_error_code_frequency": "{429: 40}",
    "results_mean_output_throughput_token_per_s": 200.0,
    "results_num_completed_requests": 120,
    "results_num_completed_requests_per_min": 60.0,
    "framework": "anyscale",
    "api": "https://internal.example/v1",
    "timestamp": 1703136129,
}


def response(latency: float, ttft: float, tokens: int, error: int | None = None) -> dict[str, Any]:
    return {
        "error_code": error,
        "error_msg": "" if error is None else "token sk-secret refused",
        "inter_token_latency_s": latency / tokens if tokens else 0,
        "ttft_s": ttft,
        "end_to_end_latency_s": latency,
        "request_output_throughput_token_per_s": 1.0,
        "number_total_tokens": tokens + 550,
        "number_output_tokens": tokens,
        "number_input_tokens": 550,
    }


RESPONSES = [response(1.0, 0.1, 10), response(2.0, 0.2, 10), response(3.0, 0.3, 10), response(0.0, 0.0, 0, 429)]


def test_numbers_stand_by_their_definitions() -> None:
    found = read(SUMMARY, DECLARED)
    assert found.metrics == {
        "ttft_mean": 0.25,
        "ttft_median": 0.2,
        "ttft_p90": 0.3,
        "e2el_mean": 2.5,
        "e2el_p95": 3.5,
        "output_tput_per_gpu": 50.0,
    }
    assert found.metrics_other == {
        "tpot_with_first_client_tokens_mean": 0.025,
        "tpot_with_first_client_tokens_median": 0.02,
        "tpot_with_first_client_tokens_p99": 0.04,
        "tpot_with_first_client_tokens_std": 0.004,
        "request_throughput": 1.0,
    }


def test_those_that_failed_are_counted() -> None:
    found = read(SUMMARY, DECLARED)
    assert (found.requests, found.requests_failed, found.duration_s, found.isl_mean, found.osl_mean) == (
        160,
        40,
        120.0,
        551.0,
        100.0,
    )


def test_load_and_lengths() -> None:
    found = read(SUMMARY, DECLARED)
    assert (found.concurrency, found.identity["isl"], found.identity["osl"], found.identity["workload"]) == (
        5,
        550,
        150,
        "sonnet",
    )
    spread = read({**SUMMARY, "stddev_input_tokens": 150}, DECLARED)
    assert spread.identity["workload"] == "sonnet, deviation 150, 0"


def test_a_company_is_no_framework() -> None:
    with pytest.raises(InputError, match="engine, hardware, num_gpus, precision: not in the record"):
        read(SUMMARY, Given())
    assert read({**SUMMARY, "framework": "dynamo-trt"}, DECLARED).identity["framework"] == "dynamo-trt"


def test_the_summary_dates_itself() -> None:
    assert read(SUMMARY, DECLARED).measured_at == datetime(2023, 12, 21, 5, 22, 9, tzinfo=UTC)
    run = origin(SUMMARY, Given())
    assert run is not None
    assert run.run_id == "day-2023-12-21"


def test_addresses_and_names_are_not_kept() -> None:
    kept = clean({**SUMMARY, "model": "/home/someone/Tiny-1B", "owner": "someone"})
    assert not any(word in json.dumps(kept) for word in ("internal", "someone", "_summary"))
    assert kept["model"] == "Tiny-1B"
    assert clean(kept) == kept
    assert read(clean(SUMMARY), DECLARED) == read(SUMMARY, DECLARED)


def test_individual_responses_are_put_together_as_the_tool_does() -> None:
    (item,) = unpack(RESPONSES) or ()
    assert isinstance(item, Item)
    assert FORMAT.recognises(item.value)
    assert "secret" not in json.dumps(item.value)
    load = Given(declared={**DECLARED.declared, "model": "org/Tiny-1B", "concurrency": "2"}, named={"isl": "550", "osl": "10"})
    found = read(item.value, load)
    assert (found.requests, found.requests_failed, found.isl_mean, found.osl_mean) == (4, 1, 550.0, 10.0)
    assert (found.metrics["e2el_mean"], found.metrics["e2el_median"], found.metrics["e2el_std"]) == (2.0, 2.0, 1.0)
    assert round(found.metrics["e2el_p90"], 9) == 2.8
    assert round(found.metrics_other["tpot_with_first_client_tokens_mean"], 9) == 0.2
    assert found.measured_at is None
    assert origin(item.value, Given()) is None
    assert (found.identity["isl"], found.identity["osl"]) == (550, 10)


def test_what_is_no_list_of_responses_is_left_alone() -> None:
    assert unpack([]) is None
    assert unpack([1, 2]) is None
    assert unpack([{"a": 1}]) is None
    assert unpack(SUMMARY) is None


def test_a_run_in_which_all_failed_is_no_measurement() -> None:
    (item,) = unpack([response(0.0, 0.0, 0, 500)]) or ()
    assert isinstance(item, Item)
    with pytest.raises(InputError, match="no request succeeded"):
        read(item.value, DECLARED)
    with pytest.raises(InputError, match="no request succeeded"):
        read({**SUMMARY, "results_num_completed_requests": 0}, DECLARED)


def test_a_deviation_of_one_request_is_left_out() -> None:
    found = read({**SUMMARY, "results_inter_token_latency_s_stddev": "NaN"}, DECLARED)
    assert "tpot_with_first_client_tokens_std" not in found.metrics_other
    with pytest.raises(InputError, match="results_ttft_s_mean"):
        read({**SUMMARY, "results_ttft_s_mean": "NaN"}, DECLARED)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("org-Tiny-1B_550_150_individual_responses.json", {"isl": "550", "osl": "150"}),
        ("org-Tiny-1B_550_150_summary.json", {"isl": "550", "osl": "150"}),
        ("results_0_150_summary.json", {}),
        ("summary.json", {}),
        ("a_1_2.json", {}),
    ],
)
def test_names_of_files_tell_lengths(name: str, told: dict[str, str]) -> None:
    assert hints(PurePosixPath("night", name)) == told


@given(mutations(SUMMARY))
def test_a_strange_summary_is_refused_in_words_or_read(record: dict[str, Any]) -> None:
    refused_or_finite(read, record, DECLARED)
    refused_or_finite(read, clean(record), DECLARED)


@given(st.sampled_from(sorted(RESPONSES[0])), STRANGE)
def test_a_strange_response_is_a_fault_or_part_of_a_reading(key: str, value: Any) -> None:
    found = list(unpack([RESPONSES[0], {**RESPONSES[1], key: value}]) or ())
    assert len(found) == 1
    if not isinstance(found[0], Fault):
        refused_or_finite(read, found[0].value, DECLARED)


def test_real_summaries(shared_data: Path) -> None:
    found = {}
    for path in sorted((shared_data / "formats" / "llmperf").rglob("*.json")):
        record = json.loads(path.read_text())
        assert FORMAT.recognises(record)
        found[path.name] = read(clean(record), DECLARED)
    anyscale = found["anyscale_70b.json"]
    assert (anyscale.requests, anyscale.requests_failed, anyscale.osl_mean) == (150, 0, 146.94666666666666)
    assert round((anyscale.duration_s or 0) * 207.52121071152493 / 150, 3) == round(anyscale.osl_mean or 0, 3)
    per_token = anyscale.metrics_other["tpot_with_first_client_tokens_mean"]
    whole = per_token * (anyscale.osl_mean or 0) / anyscale.metrics["e2el_mean"]
    assert 0.95 < whole < 1.01
    assert len(found) == 3
