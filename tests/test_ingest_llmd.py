"""llm-d benchmark reports: units as stated, latencies as their client means them, deployments as they stand. Values by hand."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from pipelines.ingest.reading import Given, Reading
from pipelines.ingest.tools import llmd_stack
from pipelines.ingest.tools.llmd import FORMAT_V01, FORMAT_V02, FORMATS, read_v01, read_v02
from tests.lengths import either
from tests.mutated import mutations, refused_or_finite
from warehouse.canonical import canonical_json
from warehouse.errors import InputError

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "formats" / "llm-d"
NOTHING = Given()


def engine(role: str = "replica", **changes: Any) -> dict[str, Any]:
    """Return a component of version 0.2: 2 replicas of one engine on 4 GPUs."""
    standardized = {
        "kind": "inference_engine",
        "tool": "vllm",
        "tool_version": "vllm/vllm-openai:v0.11.0",
        "role": role,
        "replicas": 2,
        "model": {"name": "meta-llama/Llama-3.3-70B-Instruct"},
        "accelerator": {
            "model": "NVIDIA-H100-80GB-HBM3",
            "count": 4,
            "parallelism": {"tp": 4, "dp": 1, "dp_local": 1, "workers": 1, "ep": 1, "pp": 1},
        },
    }
    accelerator = changes.pop("accelerator", {})
    parallelism = accelerator.pop("parallelism", {})
    standardized["accelerator"] |= accelerator  # type: ignore[operator]
    standardized["accelerator"]["parallelism"] |= parallelism  # type: ignore[index]
    return {
        "metadata": {"label": "vllm-0", "cfg_id": "c0ffee"},
        "standardized": standardized | changes,
        "native": {"args": {"quantization": "fp8"}, "envars": {"HF_TOKEN": "hf_secret", "HOST": "10.0.0.7"}},
    }


def report(tool: str = "vllm-benchmark", stack: list[dict[str, Any]] | None = None, **load: Any) -> dict[str, Any]:
    """Return a report of version 0.2: 100 requests at concurrency 16, 2000 tok/s in all."""
    return {
        "version": "0.2",
        "run": {
            "uid": "u-1",
            "eid": "e-1",
            "user": "namespace=somebody",
            "time": {"start": "2026-03-02T10:00:00Z", "end": "2026-03-02T10:02:00Z", "duration": "PT1M4.5S"},
        },
        "scenario": {
            "stack": [engine()] if stack is None else stack,
            "load": {
                "metadata": {"cfg_id": "f00d"},
                "standardized": {
                    "tool": tool,
                    "tool_version": "0.11.0",
                    "source": "random",
                    "input_seq_len": {"distribution": "fixed", "value": 1024},
                    "output_seq_len": {"distribution": "fixed", "value": 128},
                    "concurrency": 16,
                    **load,
                },
                "native": {
                    "args": {"dataset-name": "random"},
                    "config": {"server": {"base_url": "http://10.0.0.7:80", "api_key": "k"}},
                },
            },
        },
        "results": {
            "request_performance": {
                "aggregate": {
                    "requests": {
                        "total": 100,
                        "failures": 3,
                        "input_length": {"units": "count", "mean": 1000.5},
                        "output_length": {"units": "count", "mean": 120.25},
                    },
                    "latency": {
                        "time_to_first_token": {"units": "ms", "mean": 250.0, "p50": 200.0, "stddev": 50.0, "p99p9": 900.0},
                        "time_per_output_token": {"units": "ms/token", "mean": 20.0, "p50": 10.0, "p90": 25.0},
                        "inter_token_latency": {"units": "s/token", "mean": 0.015, "p99": 0.1},
                        "normalized_time_per_output_token": {"units": "s/token", "mean": 0.025},
                        "request_latency": {"units": "s", "mean": 3.0, "p95": 4.5},
                    },
                    "throughput": {
                        "output_token_rate": {"units": "tokens/s", "mean": 400.0, "p50": 1.0},
                        "input_token_rate": {"units": "tokens/s", "mean": 1600.0},
                        "total_token_rate": {"units": "tokens/s", "mean": 2000.0},
                        "request_rate": {"units": "queries/s", "mean": 1.5},
                    },
                }
            },
            "observability": {"components": [{"component_label": "node-7"}]},
        },
    }


def old_report(tool: str = "guidellm", **args: Any) -> dict[str, Any]:
    """Return a report of version 0.1: one prefill engine of 2 GPUs, two decode engines of 4."""
    size = {"tp": 4, "pp": 1, "dp": 1, "ep": 1}
    return {
        "version": "0.1",
        "scenario": {
            "host": {
                "type": ["prefill", "decode", "decode"],
                "accelerator": [
                    {"model": "H200", "count": 2, "parallelism": size | {"tp": 2}},
                    {"model": "H100", "count": 4, "parallelism": size},
                    {"model": "H100", "count": 4, "parallelism": size},
                ],
            },
            "platform": {"engine": [{"name": "vllm", "version": "0.9.0", "args": {"--api-key": "secret"}}] * 3},
            "model": {"name": "deepseek-ai/DeepSeek-R1-0528", "quantization": "fp8"},
            "load": {"name": tool, "args": args},
        },
        "metrics": {
            "time": {"duration": 60.0, "start": 1767225600.5, "stop": 1767225660.5},
            "requests": {
                "total": 50,
                "failures": 1,
                "input_length": {"units": "count", "mean": 100.0},
                "output_length": {"units": "count", "mean": 10.0},
            },
            "latency": {
                "time_to_first_token": {"units": "ms", "mean": 100.0},
                "request_latency": {"units": "s", "mean": 2.0},
                "time_per_output_token": {"units": "ms/token", "mean": 30.0},
                "inter_token_latency": {"units": "ms/token", "mean": 20.0},
            },
            "throughput": {"total_tokens_per_sec": 500.0, "output_tokens_per_sec": 80.0, "input_tokens_per_sec": 420.0},
        },
    }


def of(record: dict[str, Any], **declared: str) -> Reading:
    return read_v02(record, Given(declared=declared))


def aggregate(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record["results"]["request_performance"]["aggregate"]
    return found


def refusal(record: dict[str, Any], **declared: str) -> str:
    read = read_v01 if record.get("version") == "0.1" else read_v02
    with pytest.raises(InputError) as refused:
        read(record, Given(declared=declared))
    return str(refused.value)


def test_every_statistic_is_converted_by_its_unit() -> None:
    metrics = of(report()).metrics
    assert metrics["ttft_mean"] == 0.25
    assert (metrics["ttft_median"], metrics["ttft_std"], metrics["ttft_p999"]) == (0.2, 0.05, 0.9)
    assert (metrics["tpot_mean"], metrics["tpot_median"], metrics["tpot_p90"]) == (0.02, 0.01, 0.025)
    assert (metrics["itl_mean"], metrics["itl_p99"]) == (0.015, 0.1)
    assert (metrics["e2el_mean"], metrics["e2el_p95"]) == (3.0, 4.5)
    assert metrics["intvty_median"] == 100.0
    assert "output_tput_per_gpu_median" not in metrics


def test_throughput_is_divided_by_the_gpus_of_all_replicas() -> None:
    reading = of(report())
    assert reading.num_gpus == 8  # 4 a replica, 2 replicas
    assert reading.metrics["tput_per_gpu"] == 250.0
    assert (reading.metrics["output_tput_per_gpu"], reading.metrics["input_tput_per_gpu"]) == (50.0, 200.0)
    assert reading.metrics_other["request_throughput"] == 1.5


def test_an_aggregated_deployment() -> None:
    reading = of(report())
    told = {key: value for key, value in reading.identity.items() if value not in (None, False)}
    assert told == {
        "hardware": "h100",
        "engine": "vllm",
        "framework": "vllm",
        "model": "llama70b",
        "precision": "fp8",
        "spec_decoding": "none",
        "tp": 4,
        "pp": 1,
        "ep": 1,
        "scenario": "fixed-seq-len",
        "isl": 1024,
        "osl": 128,
        "workload": "random",
        "system": "2 replicas",
    }
    assert (reading.concurrency, reading.request_rate) == (16, None)
    assert (reading.image, reading.engine_version) == ("vllm/vllm-openai:v0.11.0", None)
    assert reading.recipe_fingerprint == "c0ffee"
    assert (reading.requests, reading.requests_failed, reading.isl_mean, reading.osl_mean) == (100, 3, 1000.5, 120.25)
    assert reading.measured_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert reading.duration_s == 64.5
    assert reading.metric_definition == "llm-d report, vllm-benchmark"
    assert reading.hardware_label == "NVIDIA-H100-80GB-HBM3"
    assert reading.declared == ()


def test_a_latency_is_what_its_client_means_by_it() -> None:
    by_client = {
        "vllm-benchmark": ("tpot_mean", "itl_mean", "normalized_time_per_output_token_mean"),
        "inferencemax": ("tpot_mean", "itl_mean", "normalized_time_per_output_token_mean"),
        "inference-perf": ("tpot_client_tokens_mean", "itl_client_tokens_mean", "tpot_with_first_client_tokens_mean"),
        "guidellm": ("time_per_output_token_mean", "tpot_mean", "normalized_time_per_output_token_mean"),
        "aiperf": ("time_per_output_token_mean", "tpot_client_tokens_mean", "normalized_time_per_output_token_mean"),
        "somebody's": ("time_per_output_token_mean", "inter_token_latency_mean", "normalized_time_per_output_token_mean"),
    }
    for tool, names in by_client.items():
        reading = of(report(tool))
        found = {**reading.metrics, **reading.metrics_other}
        assert [found[name] for name in names] == [0.02, 0.015, 0.025], tool
        assert set(reading.metrics) - {"ttft_mean"} >= {"e2el_mean"}
        assert not {name for name in reading.metrics_other if name.startswith(("ttft", "e2el", "tpot_mean", "itl_mean"))}


def test_a_unit_that_is_none_is_refused() -> None:
    for unit in ("h", "s/token", None, 3, "S"):
        record = report()
        aggregate(record)["latency"]["time_to_first_token"]["units"] = unit
        assert "latency.time_to_first_token.units" in refusal(record)
    record = report()
    aggregate(record)["throughput"]["total_token_rate"]["units"] = "tokens/min"
    assert "tokens/min" in refusal(record)


def test_seconds_that_are_called_ms_are_refused_where_they_contradict_themselves() -> None:
    record = report("guidellm")
    aggregate(record)["latency"]["request_latency"] = {"units": "ms", "mean": 3.0}  # 3 s, shorter than a first token after 250 ms
    message = refusal(record)
    assert "request_latency: mean 0.003 s is shorter than the time to first token, 0.25 s" in message
    assert "2026-08-17" in message


def test_prefill_and_decode() -> None:
    prefill = engine("prefill", replicas=3, accelerator={"count": 1, "model": "NVIDIA-L40S", "parallelism": {"tp": 1}})
    scheduler = {"standardized": {"kind": "generic", "tool": "llm-d-inference-scheduler", "tool_version": "0.3.2"}}
    decode = engine("decode", tool="llm-d", tool_version="ghcr.io/llm-d/llm-d-cuda:0.3.1")
    decode["native"]["args"] |= {"--kv-transfer-config": {"kv_connector": "NixlConnector", "kv_ip": "10.0.0.7"}}
    reading = of(report(stack=[prefill, decode, scheduler]))
    identity = reading.identity
    assert (identity["disagg"], identity["tp"], identity["framework"], identity["engine"]) == (True, None, "llmd-vllm", "vllm")
    assert (identity["prefill_tp"], identity["prefill_num_workers"], identity["num_prefill_gpus"]) == (1, 3, 3)
    assert (identity["decode_tp"], identity["decode_num_workers"], identity["num_decode_gpus"]) == (4, 2, 8)
    assert (identity["hardware"], identity["prefill_hardware"], identity["decode_hardware"]) == ("h100", "l40s", None)
    assert identity["kv_transfer"] == "NixlConnector"
    assert identity["router"] == "llm-d-inference-scheduler 0.3.2"
    assert identity["system"] is None
    assert reading.num_gpus == 11
    assert reading.metrics["tput_per_gpu"] == 2000 / 11
    assert reading.metrics["output_tput_per_gpu"] == 50.0  # 400 over 8 that decode
    assert reading.metrics["input_tput_per_gpu"] == 1600 / 3
    assert reading.metric_definition.endswith("per role")
    assert reading.image is None  # two images, and no build that is both


def test_decode_alone_is_no_disaggregation() -> None:
    identity = of(report(stack=[engine("decode")])).identity
    assert (identity["disagg"], identity["tp"], identity["decode_tp"]) == (False, 4, None)
    assert "none that decodes" in refusal(report(stack=[engine("prefill")]))
    assert "in one deployment" in refusal(report(stack=[engine("prefill"), engine("replica")]))


def test_engines_that_differ_within_a_role_are_another_system() -> None:
    small = engine(replicas=1, accelerator={"count": 2, "parallelism": {"tp": 2}})
    reading = of(report(stack=[engine(), small]))
    assert (reading.identity["tp"], reading.num_gpus) == (None, 10)
    assert reading.identity["system"] == "1 x tp2 pp1 ep1 dp1, 2 x tp4 pp1 ep1 dp1"


@pytest.mark.parametrize(
    ("count", "replicas", "parallelism", "gpus"),
    [
        (4, 2, {"tp": 4}, 8),  # of a pod
        (8, 2, {"tp": 4}, 8),  # of all
        (8, 1, {"tp": 1, "dp": 16, "dp_local": 8, "workers": 2}, 16),  # of one of two pods of a replica
        (16, 3, {"tp": 2, "pp": 1, "dp": 8, "dp_local": 1}, 48),  # of a replica
        (8, 1, {"tp": 4, "pp": 2}, 8),
        (8, 1, {"tp": 4}, None),
        (16, 1, {"tp": 16, "workers": 2}, 16),  # an engine has as many GPUs as ranks
        (8, 1, {"tp": 16, "workers": 2}, None),
        (0, 1, {"tp": 1}, None),
        (-1, 1, {"tp": -1}, None),
    ],
)
def test_gpus_follow_where_count_and_parallelism_agree(
    count: int, replicas: int, parallelism: dict[str, int], gpus: int | None
) -> None:
    one = engine(replicas=replicas, accelerator={"count": count, "parallelism": {"pp": 1, "dp": 1, "dp_local": 1} | parallelism})
    assert llmd_stack.total_gpus(llmd_stack.stack_v02({"stack": [one]}).engines) == gpus
    record = report(stack=[one])
    if gpus is None:
        assert refusal(record).startswith("num_gpus:")
        assert of(record, num_gpus="6").num_gpus == 6
    else:
        assert of(record).num_gpus == gpus


def test_sizes_of_a_deployment_that_the_converter_did_not_see_are_not_believed() -> None:
    unseen = engine(tool="", tool_version="", replicas=1, accelerator={"count": 0, "model": "", "parallelism": {"tp": 1}})
    record = report(stack=[unseen])
    reading = of(record, num_gpus="8", engine="vllm", hardware="h200", tp="8")
    assert (reading.identity["tp"], reading.identity["hardware"], reading.recipe_fingerprint) == (8, "h200", None)
    assert set(reading.declared) == {"engine", "hardware", "num_gpus", "tp"}


def test_data_parallel_ranks_are_another_system() -> None:
    one = engine(replicas=1, accelerator={"count": 8, "parallelism": {"tp": 1, "dp": 8, "dp_local": 8}})
    identity = of(report(stack=[one])).identity
    assert (identity["dp_attention"], identity["system"]) == (True, "dp 8")


@pytest.mark.parametrize(
    ("load", "concurrency", "rate", "arrival"),
    [
        ({"concurrency": 16, "rate_qps": None}, 16, None, None),
        ({"concurrency": 16, "rate_qps": float("inf")}, 16, None, None),
        ({"concurrency": "inf", "rate_qps": 4.0}, None, 4.0, "poisson"),
        ({"concurrency": 16, "rate_qps": 4.0}, None, 4.0, "poisson, at most 16"),
        ({"concurrency": None, "rate_qps": "Infinity"}, 100, None, "burst"),
        ({"concurrency": 0, "rate_qps": 2}, None, 2.0, "poisson"),
    ],
)
def test_load(load: dict[str, Any], concurrency: int | None, rate: float | None, arrival: str | None) -> None:
    reading = of(report(**load))
    assert (reading.concurrency, reading.request_rate, reading.identity["arrival"]) == (concurrency, rate, arrival)


def test_a_rate_of_another_client_is_open() -> None:
    reading = of(report("inference-perf", concurrency=None, rate_qps=10))
    assert reading.identity["arrival"] == "open"
    record = report("inference-perf", concurrency=None, rate_qps=10)
    record["scenario"]["load"]["native"]["config"]["load"] = {"type": "constant"}
    assert of(record).identity["arrival"] == "constant"
    assert "concurrency" in refusal(report(concurrency=None))


def test_the_workload_is_part_of_the_identity() -> None:
    lengths = {"input_seq_len": {"distribution": "gaussian", "value": 2000, "std_dev": 100.0}, "output_seq_len": {"value": 33.5}}
    prefix = {"prefix_len": {"value": 1000}, "num_groups": 32, "num_users_per_group": 10, "num_prefixes": 8}
    turns = {"enabled": True, "max_turns": {"value": 20}}
    identity = of(report(**lengths, prefix=prefix, multi_turn=turns)).identity
    assert identity["workload"] == "random; input gaussian std_dev 100; prefix 1000, 32 x 10 x 8; turns 20"
    assert (identity["isl"], identity["osl"], identity["scenario"]) == (2000, None, "multi-turn")


def test_counts_that_mean_something_else_are_left_out() -> None:
    assert of(report("aiperf")).requests_failed is None  # kinds of errors
    old = read_v01(old_report("vllm-benchmark", max_concurrency=8), NOTHING)
    assert (old.requests, old.requests_failed) == (None, None)  # completed ones


def test_a_duration_of_the_harness_is_none_of_the_measurement() -> None:
    record = report()
    record["run"]["time"]["duration"] = "PT120S"
    assert of(record).duration_s is None
    record["scenario"]["load"]["standardized"]["tool"] = "guidellm"
    assert of(record).duration_s == 120.0


def test_version_0_1() -> None:
    reading = read_v01(old_report(), Given(declared={"concurrency": "32"}))
    identity = reading.identity
    assert (identity["hardware"], identity["prefill_hardware"], identity["model"], identity["precision"]) == (
        "h100",
        "h200",
        "dsr1",
        "fp8",
    )
    assert (identity["prefill_tp"], identity["prefill_num_workers"], identity["num_prefill_gpus"]) == (2, 1, 2)
    assert (identity["decode_tp"], identity["decode_num_workers"], identity["num_decode_gpus"]) == (4, 2, 8)
    assert reading.metrics["tput_per_gpu"] == 50.0
    assert reading.metrics["output_tput_per_gpu"] == 10.0
    assert reading.metrics["input_tput_per_gpu"] == 210.0
    assert (reading.metrics["ttft_mean"], reading.metrics["e2el_mean"], reading.metrics["tpot_mean"]) == (0.1, 2.0, 0.02)
    assert reading.metrics_other == {"time_per_output_token_mean": 0.03}
    assert (reading.requests, reading.requests_failed, reading.duration_s) == (50, 1, 60.0)
    assert reading.measured_at == datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC)
    assert (reading.engine_version, reading.concurrency, reading.declared) == ("0.9.0", 32, ("concurrency",))


def test_loads_of_version_0_1_are_in_the_clients_own_words() -> None:
    reading = read_v01(old_report("vllm-benchmark", request_rate=2.5, burstiness=1.0), NOTHING)
    assert (reading.request_rate, reading.identity["arrival"]) == (2.5, "poisson")
    record = old_report("inference-perf", load={"type": "poisson", "stages": [{"rate": 1.0}, {"rate": 7.0}]})
    record["scenario"]["load"]["metadata"] = {"stage": 1}
    reading = read_v01(record, NOTHING)
    assert (reading.request_rate, reading.identity["arrival"]) == (7.0, "poisson")


def test_reports_without_timed_requests_are_refused() -> None:
    assert "no requests were timed" in refusal(old_report("nop"))
    sessions = report()
    sessions["results"] = {"session_performance": {"sessions": {"total": 3}}}
    assert "no request is timed" in refusal(sessions)
    assert "'1.7' is not known" in refusal(report() | {"version": "1.7"})


def test_lists_that_do_not_go_together_are_refused() -> None:
    record = old_report()
    record["scenario"]["host"]["type"].pop()
    assert "scenario.host.type: 2 entries, but there are 3" in refusal(record)


def test_an_image_may_stand_for_the_engines_name() -> None:
    assert llmd_stack.software("ghcr.io/llm-d/llm-d:v0.2.0", None) == ("vllm", None, "ghcr.io/llm-d/llm-d:v0.2.0", True)
    assert llmd_stack.software("vllm", "0.9.0.1") == ("vllm", "0.9.0.1", None, False)
    assert llmd_stack.software("//:", "unknown") == (None, None, None, False)
    simulator = llmd_stack.software("llm-d", "ghcr.io/llm-d/llm-d-inference-sim:v0.5.0")
    assert simulator == (None, None, "ghcr.io/llm-d/llm-d-inference-sim:v0.5.0", True)  # it is no engine


def test_a_part_of_a_report_by_inference_perf_asks_for_the_rest() -> None:
    record = report()
    del record["scenario"]
    record["run"] = {"uid": "inference-perf-stage-0-ab12cd34", "time": record["run"]["time"]}
    assert refusal(record).startswith("engine, hardware, num_gpus, model, precision, concurrency: not in the record")
    declared = {"engine": "vllm", "hardware": "h100", "num_gpus": "4", "model": "Qwen/Qwen3.5-9B", "precision": "bf16"}
    declared |= {"request_rate": "5"}
    reading = of(record, **declared)
    assert reading.metrics_other["tpot_client_tokens_mean"] == 0.02
    assert reading.metrics["tput_per_gpu"] == 500.0
    assert reading.declared == tuple(sorted(declared))


def test_origin_is_the_experiment_else_the_day() -> None:
    origin = FORMAT_V02.origin
    assert origin is not None
    found = origin(report(), NOTHING)
    assert found and (found.run_source, found.run_id, found.started_at) == ("llm-d", "e-1", datetime(2026, 3, 2, tzinfo=UTC))
    record = report()
    del record["run"]["eid"]
    assert (found := origin(record, NOTHING)) and found.run_id == "day-2026-03-02"
    record["run"]["time"] = {"end": "2026-03-02T00:30:00"}
    with pytest.raises(InputError, match="timezone"):
        origin(record, NOTHING)
    assert (found := origin(record, Given(declared={"timezone": "+01:00"}))) and found.run_id == "day-2026-03-01"
    assert of(record).measured_at is None
    assert FORMAT_V01.origin and (found := FORMAT_V01.origin(old_report(), NOTHING)) and found.run_id == "day-2026-01-01"
    record["run"]["time"] = None
    assert origin(record, NOTHING) is None


def test_what_is_kept_holds_no_host_and_no_key_and_reads_the_same() -> None:
    for record_format, record in ((FORMAT_V02, report()), (FORMAT_V01, old_report("vllm-benchmark", max_concurrency=8))):
        assert record_format.clean
        before = copy.deepcopy(record)
        kept = record_format.clean(record)
        assert record == before
        text = canonical_json(kept)
        for secret in ("10.0.0.7", "secret", "somebody", "node-7", "api_key", "api-key"):
            assert secret not in text
        assert record_format.recognises(kept)
        assert record_format.clean(kept) == kept
        assert record_format.read(kept, NOTHING) == record_format.read(record, NOTHING)


def test_arguments_of_a_command_line_are_read_alike() -> None:
    one = engine()
    one["native"]["args"]["speculative-config"] = '{"method": "eagle3", "model": "/home/somebody/draft"}'
    assert FORMAT_V02.clean
    kept = FORMAT_V02.clean(report(stack=[one]))
    assert kept["scenario"]["stack"][0]["native"]["args"]["speculative-config"] == {"method": "eagle3"}
    assert of(kept).identity["spec_decoding"] == "eagle3"


def test_yaml_and_json_are_one_report() -> None:
    record = report(concurrency=float("inf"), rate_qps=4.0)
    lines = "\n".join(f"{key}: {json.dumps(value).replace('Infinity', '.inf')}" for key, value in record.items())
    assert FORMAT_V02.text and FORMAT_V01.text
    items = FORMAT_V02.text(lines)
    assert items is not None
    (item,) = items
    assert item.value["scenario"]["load"]["standardized"]["concurrency"] == "inf"  # type: ignore[union-attr]
    assert of(item.value).request_rate == 4.0  # type: ignore[union-attr]
    assert FORMAT_V01.text(lines) is None
    assert FORMAT_V01.text("metrics: 3\n") is None


def test_formats_do_not_clash() -> None:
    for record, own in ((report(), FORMAT_V02), (old_report(), FORMAT_V01)):
        assert [one for one in FORMATS if one.recognises(record)] == [own]


@hypothesis_settings(max_examples=either(50, 200), deadline=None)
@given(record=mutations(report()))
def test_a_mutated_report_is_refused_or_finite(record: dict[str, Any]) -> None:
    refused_or_finite(read_v02, record, NOTHING)
    _stored(FORMAT_V02, record)


@hypothesis_settings(max_examples=either(50, 200), deadline=None)
@given(record=mutations(old_report("vllm-benchmark", max_concurrency=8)))
def test_a_mutated_old_report_is_refused_or_finite(record: dict[str, Any]) -> None:
    refused_or_finite(read_v01, record, NOTHING)
    _stored(FORMAT_V01, record)


def _stored(record_format: Any, record: dict[str, Any]) -> None:
    """Check that what is kept can be read or refused as well, and that its run is told or refused."""
    refused_or_finite(record_format.read, record_format.clean(record), NOTHING)
    try:
        record_format.origin(record, NOTHING)
    except InputError as error:
        assert str(error)


@pytest.fixture(scope="module")
def published() -> dict[str, dict[str, Any]]:
    """Name of a published example → what is kept of it."""
    if not REAL.is_dir():
        pytest.skip("shared/data/formats/llm-d absent")
    found = {}
    for path in sorted(REAL.iterdir()):
        text = path.read_text("utf-8")
        (items,) = [items for one in FORMATS if one.text and (items := one.text(text)) is not None]
        (item,) = items
        found[path.name] = item.value  # type: ignore[union-attr]
    assert len(found) == 3
    return found


def test_published_example_of_0_1(published: dict[str, dict[str, Any]]) -> None:
    """It calls its seconds ms; the units are taken as stated, so that 0.80 s becomes 0.80 ms."""
    record = published["br_v0_1_example.yaml"]
    assert refusal(record).startswith("concurrency:")
    reading = read_v01(record, Given(declared={"request_rate": "1.34"}))
    assert reading.metrics["ttft_mean"] == pytest.approx(0.000800974442732916)
    assert reading.metrics["e2el_p90"] == pytest.approx(0.00594717199734878)
    assert (reading.identity["num_prefill_gpus"], reading.identity["num_decode_gpus"]) == (1, 16)
    assert reading.metrics["tput_per_gpu"] == pytest.approx(676.121568007739 / 17)
    assert (reading.requests, reading.requests_failed) == (32, 0)
    assert "10.12.33.212" not in canonical_json(record)


@pytest.mark.parametrize("name", ["br_v0_2_example.yaml", "br_v0_2_1_example.yaml"])
def test_published_examples_of_0_2(published: dict[str, dict[str, Any]], name: str) -> None:
    record = published[name]
    assert refusal(record).startswith("precision:")
    reading = of(record, precision="bf16")
    assert reading.metrics["ttft_p999"] == 0.057014757215045425
    assert reading.metrics["e2el_mean"] == 0.0368578234128654
    assert (reading.num_gpus, reading.identity["framework"], reading.identity["system"]) == (16, "llmd-vllm", "2 replicas")
    assert reading.metrics["tput_per_gpu"] == pytest.approx(2262.448 / 16)
    assert (reading.request_rate, reading.identity["arrival"]) == (10.0, "constant")
    assert (reading.identity["isl"], reading.identity["osl"]) == (2148, 1000)
    assert reading.duration_s == pytest.approx(49.97206788184121)
    assert reading.measured_at == datetime(2025, 11, 5, 18, 0, 42, tzinfo=UTC)
    text = canonical_json(record)
    assert not [secret for secret in ("namasluk", "10.39.39.3", "gpu-node-01", "base_url") if secret in text]
