"""vllm bench serve, old and new: each field where it belongs, in its unit, and nothing that nobody said. Values by hand."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given as given_cases
from hypothesis import strategies as st

from pipelines.ingest.reading import Given, Reading
from pipelines.ingest.tools.vllm_serve import BEST_OF, FORMAT, MARKERS, MULTI_TURN, POOLING, UNNAMED
from warehouse import vocabulary
from warehouse.canonical import canonical_json
from warehouse.errors import InputError

DECLARED = {"engine": "vllm", "hardware": "h100", "precision": "bf16"}
NEW: dict[str, Any] = {
    "date": "20260801-101500",
    "endpoint_type": "openai",
    "backend": "openai",
    "label": None,
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 200,
    "version": "0.24.0",
    "tensor_parallel_size": "2",
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 64,
    "duration": 50.0,
    "completed": 190,
    "failed": 10,
    "total_input_tokens": 190000,
    "total_output_tokens": 38000,
    "request_throughput": 3.8,
    "request_goodput": 3.5,
    "output_throughput": 760.0,
    "total_token_throughput": 4560.0,
    "input_lens": [1000] * 200,
    "ttfts": [0.1] * 200,
    "generated_texts": ["secret words"] * 200,
    "errors": [""] * 200,
    "max_output_tokens_per_s": 900.0,
    "max_concurrent_requests": 80,
    "rtfx": 0.0,
    "mean_ttft_ms": 80.0,
    "median_ttft_ms": 75.0,
    "std_ttft_ms": 9.0,
    "p99_ttft_ms": 140.0,
    "p99.9_ttft_ms": 150.0,
    "p75_ttft_ms": 90.0,
    "mean_tpot_ms": 4.31,
    "median_tpot_ms": 4.25,
    "std_tpot_ms": 0.2,
    "p99_tpot_ms": 5.0,
    "mean_itl_ms": 4.04,
    "median_itl_ms": 4.2,
    "std_itl_ms": 1.0,
    "p99_itl_ms": 7.0,
}
OLD: dict[str, Any] = {
    "date": "20250530-203806",
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.2-3B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.2-3B-Instruct",
    "num_prompts": 300,
    "gpu": "4xNVIDIA_L40S",
    "model": "meta-llama/Llama-3.2-3B-Instruct",
    "gateway": "kgateway",
    "prefill_replicas": "0",
    "decode_replicas": "4",
    "input_len": "1000",
    "output_len": "500",
    "request_rate": 10.0,
    "burstiness": 1.0,
    "max_concurrency": None,
    "duration": 40.0,
    "completed": 300,
    "total_input_tokens": 300000,
    "total_output_tokens": 90000,
    "request_throughput": 7.5,
    "request_goodput:": 7.25,
    "output_throughput": 2250.0,
    "total_token_throughput": 9750.0,
    "mean_ttft_ms": 54.0,
    "p99_ttft_ms": 90.0,
    "mean_tpot_ms": 13.5,
}
BEST: dict[str, Any] = {
    "date": "20250304-014141",
    "backend": "vllm",
    "model_id": "/root/someone/cache/models/Meta-Llama-3-8B-Instruct",
    "tokenizer_id": "/root/someone/cache/models/Meta-Llama-3-8B-Instruct",
    "best_of": 1,
    "num_prompts": 200,
    "request_rate": 1.0,
    "burstiness": 1.0,
    "max_concurrency": None,
    "mean_ttft_ms": 111.0,
    "mean_tpot_ms": 40.0,
}


def reading(record: dict[str, Any], **declared: str) -> Reading:
    found = FORMAT.read(FORMAT.clean(record) if FORMAT.clean else record, Given(declared={**DECLARED, **declared}))
    assert isinstance(found, Reading)
    return found


def test_new_record() -> None:
    found = reading(NEW)
    assert found.identity["engine"] == "vllm" and found.engine_version == "0.24.0"
    assert found.identity["hardware"] == "h100" and found.identity["tp"] == 2 and found.num_gpus == 2
    assert (found.concurrency, found.request_rate, found.identity["arrival"]) == (64, None, None)
    assert found.metrics["tput_per_gpu"] == 2280.0 and found.metrics["output_tput_per_gpu"] == 380.0
    assert found.metrics["input_tput_per_gpu"] == 1900.0  # 190,000 tokens / 50 s / 2 GPUs
    assert found.metrics["tpot_mean"] == pytest.approx(0.00431) and found.metrics["itl_mean"] == pytest.approx(0.00404)
    assert found.metrics["intvty_mean"] == pytest.approx(1 / 0.00431)
    assert found.metrics["ttft_p999"] == pytest.approx(0.15) and found.metrics_other["ttft_p75"] == pytest.approx(0.09)
    assert (found.requests, found.requests_failed, found.duration_s) == (200, 10, 50.0)
    assert (found.isl_mean, found.osl_mean) == (1000.0, 200.0)
    assert found.identity["isl"] is None, "lengths that nobody called nominal"
    assert found.metrics_other["request_goodput"] == 3.5 and found.metrics_other["max_concurrent_requests"] == 80
    assert found.metric_definition == "vllm bench serve" and found.declared == ("engine", "hardware", "precision")


def test_old_record_with_metadata() -> None:
    found = FORMAT.read(OLD, Given(declared={"precision": "bf16"}))
    assert found.identity["engine"] == "vllm" and found.identity["hardware"] == "l40s" and found.num_gpus == 4
    assert (found.identity["isl"], found.identity["osl"]) == (1000, 500)
    assert (found.request_rate, found.concurrency, found.identity["arrival"]) == (10.0, None, "poisson")
    assert found.metrics["tput_per_gpu"] == 2437.5 and found.metrics_other["request_goodput"] == 7.25
    assert (found.requests, found.requests_failed) == (300, 0) and found.osl_mean == 300.0
    assert found.hardware_label == "4xNVIDIA_L40S" and found.identity["router"] == "kgateway"
    assert (found.identity["prefill_num_workers"], found.identity["decode_num_workers"]) == (0, 4)
    assert found.identity["disagg"] is False and found.declared == ("precision",)
    assert FORMAT.read({**OLD, "prefill_replicas": "2"}, Given(declared={"precision": "bf16"})).identity["disagg"] is True


def test_best_of_record_has_no_throughput_and_no_path_of_a_user() -> None:
    found = reading(BEST, tp="1")
    assert not {"tput_per_gpu", "output_tput_per_gpu"} & found.metrics.keys() and found.metrics["tpot_mean"] == 0.04
    assert found.model_source == "Meta-Llama-3-8B-Instruct" and found.metric_definition == BEST_OF
    assert (found.requests, found.requests_failed, found.duration_s) == (200, None, None)


@pytest.mark.parametrize(
    ("change", "concurrency", "rate", "arrival"),
    [
        ({"request_rate": "inf", "max_concurrency": None}, 200, None, "burst"),
        ({"request_rate": math.inf, "max_concurrency": 8}, 8, None, None),
        ({"request_rate": 4.0, "max_concurrency": None}, None, 4.0, "poisson"),
        ({"request_rate": 4.0, "max_concurrency": 64}, None, 4.0, "poisson, at most 64"),
        ({"request_rate": 4.0, "burstiness": 0.5, "max_concurrency": None}, None, 4.0, "gamma 0.5"),
        ({"request_rate": "4.0", "burstiness": "inf", "max_concurrency": None}, None, 4.0, "constant"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 10, "max_concurrency": None},
            None,
            None,
            "linear ramp-up from 1 to 10 requests/s",
        ),
    ],
)
def test_load(change: dict[str, Any], concurrency: int | None, rate: float | None, arrival: str | None) -> None:
    found = reading({**NEW, **change})
    assert (found.concurrency, found.request_rate, found.identity["arrival"]) == (concurrency, rate, arrival)


def test_what_the_user_declares_counts_before_the_protocol_of_the_client() -> None:
    assert reading(OLD, engine="sglang").identity["engine"] == "sglang"
    with pytest.raises(InputError, match=r"^engine: not in the record"):
        FORMAT.read(NEW, Given(declared={"hardware": "h100", "precision": "bf16"}))


def test_zeros_of_what_was_not_measured_are_left_out() -> None:
    zeros = dict.fromkeys(("mean_itl_ms", "median_itl_ms", "std_itl_ms", "p99_itl_ms"), 0.0)
    found = reading({**NEW, **zeros, "completed": 0, "failed": 200, "total_token_throughput": 0.0, "output_throughput": 0.0})
    assert not [name for name in found.metrics if name.startswith("itl") or name == "tput_per_gpu"]
    assert (found.requests, found.requests_failed, found.isl_mean) == (200, 200, None)


def test_speculation_that_nobody_names() -> None:
    record = {**NEW, "spec_decode_acceptance_rate": 80.0, "spec_decode_acceptance_length": 3.4, "spec_decode_num_drafts": 1000}
    found = reading(record)
    assert found.identity["spec_decoding"] == UNNAMED and found.metrics_other["spec_acceptance_rate"] == pytest.approx(0.8)
    assert found.metrics_other["spec_acceptance_length"] == 3.4
    assert reading(record, spec_decoding="eagle3").identity["spec_decoding"] == "eagle3"
    assert reading(NEW).identity["spec_decoding"] == "none"


def test_rust_writer() -> None:
    record = {
        **NEW,
        "date": "2026-08-01T10:15:00Z",
        "input_throughput": 3900.0,
        "steady_state": {"mean_ttft_ms": 70.0, "window": {}},
    }
    record.pop("median_tpot_ms")
    found = reading({**record, "p50_tpot_ms": 4.2})
    assert found.measured_at == datetime(2026, 8, 1, 10, 15, tzinfo=UTC)
    assert found.metrics["tpot_median"] == pytest.approx(0.0042) and found.metrics["input_tput_per_gpu"] == 1950.0
    assert "tpot_p50" not in found.metrics_other


def test_conversations() -> None:
    record = {
        key: value for key, value in NEW.items() if key not in ("num_prompts", "request_rate", "burstiness", "max_concurrency")
    }
    record |= {
        "mode": "multi_turn",
        "num_conversations": 50,
        "turns_per_conversation": 4,
        "multi_turn_concurrency": 16,
        "per_turn_metrics": [{"turn_index": 0, "mean_ttft_ms": 50.0, "note": "no"}],
    }
    assert MULTI_TURN.recognises(record) and not FORMAT.recognises(record)
    assert MULTI_TURN.clean is not None
    kept = MULTI_TURN.clean(record)
    assert kept["per_turn_metrics"] == [{"turn_index": 0, "mean_ttft_ms": 50.0}]
    found = MULTI_TURN.read(kept, Given(declared=DECLARED))
    assert found.concurrency == 16 and found.identity["scenario"] == "multi-turn"
    assert found.identity["workload"] == "conversations of 4 turns" and found.requests == 200


def test_pooling_has_another_definition() -> None:
    record = {key: value for key, value in NEW.items() if key not in ("output_throughput", "total_output_tokens")}
    assert reading({**record, "total_token_throughput": 3800.0}).metric_definition == POOLING


def test_clock() -> None:
    assert FORMAT.origin is not None
    with pytest.raises(InputError, match=r"date: .*timezone"):
        FORMAT.origin(NEW, Given())
    assert reading(NEW).measured_at is None, "without a zone the run's time counts"
    berlin = Given(declared={"timezone": "Europe/Berlin"})
    run = FORMAT.origin({**NEW, "date": "20260801-003000"}, berlin)
    assert run is not None and run.started_at == datetime(2026, 7, 31, tzinfo=UTC)
    assert reading(NEW, timezone="+02:00").measured_at == datetime(2026, 8, 1, 8, 15, tzinfo=UTC)
    start = {**NEW, "benchmark_start_time_unix": 1_785_000_000.5}
    assert reading(start).measured_at == datetime.fromtimestamp(1_785_000_000.5, UTC)
    for date in ("nightly", "2026-08-01", "00010101-000000", "20261399-000000", 20260801, None, ["x"]):
        assert FORMAT.origin({**NEW, "date": date}, berlin) is None
        assert reading({**NEW, "date": date}).measured_at is None


def test_what_is_kept() -> None:
    assert FORMAT.clean is not None
    private = {
        "hf_token": "hf_abc",
        "API_KEY": "x",
        "hostname": "node17",
        "user": "bob",
        "base_url": "http://10.0.0.1:8000",
        "note": "see http://10.0.0.1/x",
        "log": "kept in /home/bob/log",
        "contact": "bob@example.org",
        "failed_requests": [{"error": "x"}],
        "rps_change_events": [{"rps": 1}],
        "k" * 200: 1,
        "long": "x" * 600,
    }
    public = {"spec_decode_per_position_acceptance_rates": [0.9, 0.8], "dataset_path": "/data/x/share.json"}
    kept = FORMAT.clean({**NEW, **private, **public})
    lists = {"input_lens", "ttfts", "generated_texts", "errors"}
    assert kept.keys() == NEW.keys() - lists | public.keys()
    assert kept["dataset_path"] == "share.json" and kept["tokenizer_id"] == NEW["tokenizer_id"] and kept["label"] is None
    assert FORMAT.clean(kept) == kept
    cached = FORMAT.clean({**NEW, "model_id": "/home/bob/.cache/hub/models--Qwen--Qwen3-8B/snapshots/0123abc"})
    assert cached["model_id"] == "Qwen/Qwen3-8B"
    assert FORMAT.clean({**NEW, "model_id": "s3://bucket/models/Qwen3-8B/"})["model_id"] == "Qwen3-8B"


def test_hints() -> None:
    assert FORMAT.hints(PurePosixPath("h100/serving_llama8B_tp4_sharegpt_qps_inf.json")) == {
        "tp": "4",
        "hardware": "h100",
        "workload": "sharegpt",
    }
    assert FORMAT.hints(PurePosixPath("openai-infqps-concurrency4-tiny-llm-20261130-120459.json")) == {}


def test_known_by_keys_alone() -> None:
    sglang = {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": 4.0,
        "random_input_len": 32,
        "sharegpt_output_len": None,
    }
    assert FORMAT.recognises(NEW) and FORMAT.recognises(OLD) and FORMAT.recognises(BEST)
    assert not FORMAT.recognises(sglang) and not FORMAT.lacks(sglang)
    assert not FORMAT.recognises({**NEW, "good_completed": None}), "InferenceX's client"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"request_rate": "trace"}, "request_rate: "),
        ({"request_rate": 0}, "request_rate: 0"),
        ({"request_rate": None}, "request_rate: "),
        ({"mean_tpot_ms": "NaN ms"}, "mean_tpot_ms: "),
        ({"mean_tpot_ms": -1.0}, "mean_tpot_ms: "),
        ({"mean_tpot_ms": [4.0]}, "mean_tpot_ms: "),
        ({"duration": True}, "duration: "),
        ({"completed": 1.5}, "completed: "),
        ({"tensor_parallel_size": "auto"}, "tensor_parallel_size: "),
        ({"max_concurrency": 0}, "max_concurrency: "),
        ({"tensor_parallel_size": "1000000", "pp": 1000000}, "tensor_parallel_size: "),
    ],
)
def test_wrong_values_are_told_by_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        reading({**NEW, **change})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["inf", "1e999", "-0", "20.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


KEYS = st.sampled_from(sorted({*NEW, *OLD, "mode", "dp", "num_gpus", "spec_decode_num_drafts"}))


@given_cases(base=st.sampled_from([NEW, OLD, BEST]), changes=st.dictionaries(KEYS, JSON, max_size=5))
def test_a_mutated_record_gives_a_finite_reading_or_an_input_error(base: dict[str, Any], changes: dict[str, Any]) -> None:
    record = {**base, **changes}
    for kept in (record, FORMAT.clean(record) if FORMAT.clean else record):
        try:
            found = FORMAT.read(kept, Given(declared={**DECLARED, "tp": "1"}))
        except InputError:
            continue
        assert all(map(math.isfinite, [*found.metrics.values(), *found.metrics_other.values()]))
        assert all(value is None or 0 <= value < 2**63 for value in (found.num_gpus, found.concurrency, found.requests))


@given_cases(st.dictionaries(st.text(max_size=12), JSON, max_size=6))
def test_cleaning_twice_is_cleaning_once(record: dict[str, Any]) -> None:
    assert FORMAT.clean is not None
    once = FORMAT.clean({**record, "steady_state": record, "per_turn_metrics": [record]})
    assert repr(FORMAT.clean(once)) == repr(once)


def real(shared_data: Path, name: str) -> list[dict[str, Any]]:
    folder = shared_data / "formats" / "vllm"
    lines = ((folder if folder.is_dir() else shared_data) / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def test_real_tpot_of_the_five_tools(shared_data: Path) -> None:
    """The one run of the note's table: TPOT 4.31 ms, ITL 4.04 ms."""
    (record,) = real(shared_data, "mock_run_new/serve_detailed.json")
    found = reading(record)
    assert round(found.metrics["tpot_mean"], 5) == 0.00431 and round(found.metrics["itl_mean"], 5) == 0.00404
    assert found.identity["arrival"] == "poisson, at most 4" and found.request_rate == 20.0
    assert found.engine_version == "0.24.0" and found.num_gpus == 1 and found.isl_mean == 63.0
    assert found.metrics_other["max_concurrent_requests"] == 20


def test_real_appended_lines(shared_data: Path) -> None:
    for folder, version in (("mock_run_new", "0.24.0"), ("mock_run_old", "0.9.2")):
        first, second = (reading(record) for record in real(shared_data, f"{folder}/serve_append.json"))
        assert (first.request_rate, first.identity["arrival"]) == (20.0, "poisson")
        assert (second.concurrency, second.identity["arrival"]) == (24, "burst")
        assert first.engine_version == second.engine_version == version


def test_real_measured_records(shared_data: Path) -> None:
    (gateway,) = real(shared_data, "real/llmd_gateway_llama3.2-3b_10qps_20250530.json")
    found = FORMAT.read(gateway, Given(declared={"precision": "bf16"}))
    assert found.num_gpus == 4 and vocabulary.hardware("l40s").known and found.identity["hardware"] == "l40s"
    assert found.metrics["tput_per_gpu"] == pytest.approx(10566.328606120898 / 4)
    assert round(found.isl_mean or 0) == 999 and found.identity["isl"] == 1000
    (ascend,) = real(shared_data, "real/ascend_nightly_serving_llama8B_tp1_20250304.json")
    found = reading(ascend, tp="1")
    assert found.metrics["tpot_mean"] == pytest.approx(0.04048013) and "/root" not in canonical_json(FORMAT.clean(ascend))  # type: ignore[misc]


def test_every_real_record_is_known(shared_data: Path) -> None:
    paths = [path for path in (shared_data / "formats" / "vllm").rglob("*.json") if ".pytorch." not in path.name]
    assert len(paths) == 7
    for path in paths:
        assert all(record.keys() >= MARKERS and FORMAT.recognises(record) for record in real(path.parent, path.name))
