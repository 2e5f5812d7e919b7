"""InferenceX agentic rows of three generations: metrics by definition, sizes by role, requests without warm-up; by hand."""

from __future__ import annotations

import math
import tomllib
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.reading import Given, Reading
from pipelines.ingest.tools import inferencex
from pipelines.ingest.tools.inferencex_agentic import FORMAT, read
from warehouse.cell import cell_id, curve_id
from warehouse.errors import InputError

START = datetime(2026, 8, 15, tzinfo=UTC)
SETUP: dict[str, Any] = {
    "hw": "cluster:b300-nv",
    "conc": 16,
    "image": "vllm/vllm-openai:v0.24.0",
    "model": "deepseek-ai/DeepSeek-V4-Pro",
    "infmax_model_prefix": "dsv4",
    "framework": "vllm",
    "precision": "fp4",
    "spec_decoding": "mtp",
    "disagg": False,
    "scenario_type": "agentic-coding",
    "is_multinode": False,
    "tp": 8,
    "ep": 8,
    "dp_attention": "true",
}
V1: dict[str, Any] = {
    **SETUP,
    "offloading": "cpu",
    "num_requests_total": 100,
    "num_requests_successful": 90,
    "mean_ttft": 2.0,
    "median_ttft": 1.5,
    "p99.9_ttft": 9.0,
    "p99_e2el": 40.0,
    "mean_itl": 0.02,
    "median_itl": 0.02,
    "mean_tpot": 0.02,
    "median_tpot": 0.02,
    "std_tpot": 0.001,
    "median_intvty": 50.0,
    "p99_intvty": 90.0,
    "mean_input_tokens": 50000.0,
    "mean_output_tokens_actual": 400.0,
    "p90_input_tokens": 90000.0,
    "mean_qps": 0.5,
    "median_qps": 0.25,
    "theoretical_cache_hit_rate": 0.95,
    "server_gpu_cache_hit_rate": 0.9,
    "server_cpu_cache_hit_rate": None,
    "input_tput_tps": 8000.0,
    "output_tput_tps": 64.0,
    "total_tput_tps": 8064.0,
    "duration_seconds": 600.5,
    "tput_per_gpu": 1008.0,
    "output_tput_per_gpu": 8.0,
    "input_tput_per_gpu": 1000.0,
}
V2: dict[str, Any] = {
    **{key: value for key, value in V1.items() if "median" not in key and "p99" not in key},
    "num_requests_total": 90,
    "p75_ttft": 2.5,
    "p95_tpot": 0.04,
    "p75_tpot": 0.03,
    "p95_intvty": 80.0,
    "response_cache_hit_rate": 0.9,
}


def spread(value: float, **others: float) -> dict[str, float]:
    return {"mean": value, "p50": value, "p75": value, "p90": 2 * value, "p95": 2 * value, "std": value / 4, **others}


V3: dict[str, Any] = {
    **SETUP,
    "pp": 2,
    "dcp_size": 1,
    "pcp_size": 1,
    "recipe_fingerprint": "ab" * 32,
    "kv_offloading": "dram",
    "kv_offload_backend": {"name": "lmcache", "version": "0.4"},
    "allocated_cpu_dram_gb": 1200,
    "num_requests_total": 130,
    "num_requests_successful": 95,
    "request_accounting": {
        "records_total": 130,
        "records_profiled": 95,
        "records_dropped_total": 35,
        "records_warmup_dropped": 30,
        "records_error_dropped": 6,
        "error_categories": {"Cannot connect to node-7.lab": 6},
    },
    "dataset": {"hf_dataset_name": "semianalysisai/cc-traces-weka-062126", "loader": "weka", "num_dataset_entries": 393},
    "request_metrics": {
        "qps": {"window_seconds": 1.0, "samples": 600, **spread(0.5)},
        "latency": {
            "ttft": spread(2.0),
            "e2el": spread(20.0),
            "itl": spread(0.02),
            "tpot": spread(0.02),
            "intvty": spread(50.0),
            "e2e_norm_intvty": {"mean": 25.0, "p50": 20.0, "p95": 10.0, "std": 5.0},
            "full_response_itl": spread(0.025),
            "full_response_intvty": spread(40.0),
        },
        "tokens": {"input": spread(50000.0), "output_actual": spread(400.0), "output_expected": {}},
        "throughput": {
            "input": {"tokens_per_second": 16000.0},
            "output": {"tokens_per_second": 128.0},
            "total": {"tokens_per_second": 16128.0},
            "duration_seconds": 600,
            "per_gpu": {"total_tput_tps": 1008, "output_tput_tps": 8, "input_tput_tps": 1000},
        },
        "cache": {"theoretical_cache_hit_rate": 0.95},
    },
    "server_metrics": {
        "present": True,
        "adapter": "vllm",
        "cache": {"gpu_cache_hit_rate": 0.9, "cpu_cache_hit_rate": None, "cached_tokens_by_source": {}},
        "kv_cache": {"gpu_usage_pct": 0.5, "gpu_total_tokens": 1000000},
        "kv_offload": {"bytes_gpu_to_cpu": 5000},
        "tokens": {"prompt_total": 4750000, "generation_total": 38000, "requests_completed": 95},
        "sources": [{"endpoint": "http://node-7.lab:8000/metrics"}],
    },
    "kv_cache_pool_tokens": 1000000,
    "warnings": ["node-7.lab was slow"],
    "avg_power_w": 800.0,
    "power_valid": 1,
    "power_metric_schema_version": 2,
}
ROLES: dict[str, Any] = {
    "is_multinode": True,
    "disagg": True,
    "tp": 12,
    "ep": 8,
    "prefill_tp": 4,
    "prefill_ep": 4,
    "prefill_dp_attention": "true",
    "prefill_num_workers": 2,
    "num_prefill_gpu": 8,
    "decode_tp": 8,
    "decode_ep": 8,
    "decode_dp_attention": "false",
    "decode_num_workers": 1,
    "num_decode_gpu": 8,
}


def of(record: dict[str, Any], **changes: Any) -> Reading:
    return read({key: value for key, value in {**record, **changes}.items() if value is not ...}, Given(START))


def refusal(record: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(InputError) as refused:
        of(record, **changes)
    return str(refused.value)


def test_a_nested_row() -> None:
    reading = of(V3)
    assert reading.metrics == {
        "tput_per_gpu": 1008.0,
        "output_tput_per_gpu": 8.0,
        "input_tput_per_gpu": 1000.0,
        **{f"ttft_{name}": value for name, value in STATISTICS(2.0)},
        **{f"e2el_{name}": value for name, value in STATISTICS(20.0)},
        **{f"tpot_{name}": value for name, value in STATISTICS(0.02)},
        "intvty_mean": 50.0,
        "intvty_median": 50.0,
        "intvty_p90": 25.0,
    }
    assert (reading.requests, reading.requests_failed, reading.duration_s) == (100, 5, 600.0)
    assert (reading.isl_mean, reading.osl_mean) == (50000.0, 400.0)
    assert reading.metric_definition == "inferencex agentic v3"
    assert reading.recipe_fingerprint == "ab" * 32


def STATISTICS(value: float) -> list[tuple[str, float]]:
    return [("mean", value), ("median", value), ("p90", 2 * value), ("p95", 2 * value), ("std", value / 4)]


def test_numbers_of_a_nested_row_without_a_column() -> None:
    other = of(V3).metrics_other
    assert {name: other[name] for name in ("ttft_p75", "tpot_full_response_median", "tpot_full_response_p75")} == {
        "ttft_p75": 2.0,
        "tpot_full_response_median": 0.025,
        "tpot_full_response_p75": 0.025,
    }
    assert (other["tpot_with_first_mean"], other["tpot_with_first_median"], other["tpot_with_first_p95"]) == (0.04, 0.05, 0.1)
    assert (other["completions_per_second_mean"], other["theoretical_cache_hit_rate"]) == (0.5, 0.95)
    assert (other["server_gpu_cache_hit_rate"], other["kv_offload_bytes_gpu_to_cpu"], other["kv_cache_pool_tokens"]) == (
        0.9,
        5000,
        1e6,
    )
    assert other["gpu_power_w"] == 800.0
    assert not [name for name in other if "itl" in name or "intvty" in name or "valid" in name or name.endswith("with_first_std")]


def test_identity() -> None:
    identity = of(V3).identity
    assert {name: value for name, value in identity.items() if value is not None} == {
        "hardware": "b300",
        "engine": "vllm",
        "framework": "vllm",
        "model": "dsv4",
        "precision": "fp4",
        "spec_decoding": "mtp",
        "disagg": False,
        "is_multinode": False,
        "tp": 8,
        "pp": 2,
        "ep": 8,
        "dcp": 1,
        "pcp": 1,
        "dp_attention": True,
        "kv_offload": "dram lmcache 0.4",
        "scenario": "agentic-coding",
        "workload": "semianalysisai/cc-traces-weka-062126",
    }
    assert of(V3).num_gpus == 16


def test_sizes_of_a_row_with_roles_are_those_by_role() -> None:
    """`tp` 12 is prefill_tp + decode_tp and no size of anything."""
    reading = of(V3, **ROLES, pp=..., dcp_size=..., pcp_size=...)
    identity = reading.identity
    assert (identity["tp"], identity["ep"], identity["dp_attention"]) == (None, None, None)
    assert (identity["prefill_tp"], identity["decode_tp"], identity["prefill_dp_attention"]) == (4, 8, True)
    assert reading.num_gpus == 16
    whole = of(V3, **{**ROLES, "disagg": False, "decode_tp": 0, "decode_ep": 0, "num_decode_gpu": 0, "decode_num_workers": 0})
    assert whole.num_gpus == 8


def test_the_first_generation_counts_tokens_itself() -> None:
    reading = of(V1)
    assert reading.metrics == {
        "tput_per_gpu": 1008.0,
        "output_tput_per_gpu": 8.0,
        "input_tput_per_gpu": 1000.0,
        "ttft_mean": 2.0,
        "ttft_median": 1.5,
        "ttft_p999": 9.0,
        "e2el_p99": 40.0,
    }
    other = reading.metrics_other
    assert (other["tpot_client_tokens_median"], other["tpot_client_tokens_std"]) == (0.02, 0.001)
    assert (reading.requests, reading.requests_failed) == (100, 10)
    assert reading.identity["kv_offload"] == "cpu"
    assert reading.metric_definition == "inferencex agentic v1"
    assert not [name for name in other if "itl" in name or "intvty" in name]


def test_the_second_generation_leaves_failures_out() -> None:
    reading = of(V2)
    assert (reading.requests, reading.requests_failed) == (90, None)
    assert (reading.metrics["tpot_mean"], reading.metrics["tpot_p95"], reading.metrics["intvty_mean"]) == (0.02, 0.04, 50.0)
    assert "intvty_p95" not in reading.metrics
    assert reading.metrics_other["tpot_p75"] == 0.03
    assert reading.metric_definition == "inferencex agentic v2"


def test_what_is_named_itl_is_tpot() -> None:
    without = {key: value for key, value in V2.items() if not key.endswith("_tpot")}
    assert of(without).metrics["tpot_mean"] == 0.02
    assert "tpot_mean" not in of({**without, "mean_full_response_itl": 0.03}).metrics


def test_conc_was_once_called_users() -> None:
    assert of(V1, conc=..., users=8).concurrency == 8
    assert refusal(V1, conc=...) == "conc: field required"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"offloading": "none"}, None),
        ({"offloading": ..., "offload_mode": "on"}, "on"),
        ({"offloading": ..., "offload_mode": "off"}, None),
        ({"kv_offloading": "none"}, None),
    ],
)
def test_offloading_under_its_names(fields: dict[str, Any], shown: str | None) -> None:
    assert of(V1, **fields).identity["kv_offload"] == shown


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"request_metrics": [1]}, "request_metrics: "),
        ({"request_metrics": {"latency": {"ttft": 5}}}, "request_metrics.latency.ttft: "),
        ({"request_metrics": {}}, "tput_per_gpu: "),
        ({"request_metrics": None}, "tput_per_gpu: "),
        ({"request_accounting": 7}, "request_accounting: "),
        ({"request_accounting": {"records_total": 5, "records_profiled": 6}}, "num_requests_total: "),
        ({"request_accounting": {"records_total": "x"}}, "request_accounting.records_total: "),
        ({"scenario_type": "fixed-seq-len"}, "scenario_type: "),
        ({"precision": ""}, "precision: "),
        ({"tp": ...}, "tp: "),
        ({"dataset": "x"}, "dataset: "),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], field: str) -> None:
    assert refusal(V3, **changes).startswith(field)


def test_a_run_in_which_nothing_succeeded_is_no_point() -> None:
    nothing = {"latency": {}, "throughput": {}, "cache": {"theoretical_cache_hit_rate": None}}
    assert "no request succeeded" in refusal(V3, request_metrics=nothing, num_requests_successful=0)


def test_lengths_are_none_and_may_not_be_declared() -> None:
    reading = read(V3, Given(START, {"isl": "1024", "workload": "other", "image": "x/y:v1"}, {"osl": "8"}))
    assert (reading.identity["isl"], reading.identity["osl"], reading.declared) == (None, None, ())
    assert reading.identity["workload"] == "semianalysisai/cc-traces-weka-062126"
    assert read({**V1, "image": None}, Given(START, {"workload": "traces", "image": "x/y:v1"})).declared == ("image", "workload")


@pytest.mark.parametrize("record", [V1, V2, V3])
def test_each_generation_is_known_by_its_keys(record: dict[str, Any]) -> None:
    assert FORMAT.recognises(record)
    assert not inferencex.FORMAT.recognises(record)


def test_texts_and_addresses_are_not_kept() -> None:
    assert FORMAT.clean is not None
    kept = FORMAT.clean(V3)
    assert "node-7" not in str(kept)
    assert read(kept, Given(START)) == of(V3)


def test_every_definition_is_defined() -> None:
    defined = set(tomllib.loads(files("warehouse").joinpath("data/metrics.toml").read_text("utf-8")))
    for name in (
        "tpot_full_response",
        "tpot_with_first",
        "tpot_client_tokens",
        "completions_per_second",
        "theoretical_cache_hit_rate",
    ):
        assert name in defined


def test_one_deployment_is_one_cell_through_the_generations() -> None:
    plain = {"dataset": ..., "pp": ..., "kv_offload_backend": ..., "kv_offloading": "cpu"}
    readings = [of(V1), of(V2), of(V3, **plain)]
    assert len({cell_id(curve_id(reading.identity), reading.concurrency) for reading in readings}) == 1


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "1e999", "", "nan"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["mean", "p50", "ttft", "latency", "cache"]), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from([V1, V2, V3, {**V3, **ROLES}]), st.data())
def test_any_row_is_read_or_refused(record: dict[str, Any], data: st.DataObject) -> None:
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(record)), ANYTHING, max_size=4))
    try:
        reading = read({**record, **changes}, Given(START))
    except InputError as refused:
        assert "\n" not in str(refused)
        return
    numbers = (*reading.metrics.values(), *reading.metrics_other.values())
    assert all(math.isfinite(value) for value in numbers)
