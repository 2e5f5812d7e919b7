"""vllm bench latency and throughput: a batch's latency is no request's, and what the file does not say is asked for. By hand."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given as given_cases
from hypothesis import strategies as st

from pipelines.ingest.reading import Given
from pipelines.ingest.tools.vllm_offline import LATENCY_FORMAT, THROUGHPUT_FORMAT, read_latency, read_throughput
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

LATENCY: dict[str, Any] = {
    "avg_latency": 2.0,
    "std_latency": 0.1,
    "latencies": [1.9, 2.0, 2.1],
    "percentiles": {"10": 1.92, "25": 1.95, "50": 2.0, "75": 2.05, "90": 2.08, "99": 2.098},
}
THROUGHPUT: dict[str, Any] = {
    "elapsed_time": 20.0,
    "num_requests": 200,
    "total_num_tokens": 80000,
    "requests_per_second": 10.0,
    "tokens_per_second": 4000.0,
}
DECLARED = {"hardware": "h100", "model": "meta-llama/Llama-3.1-8B-Instruct", "precision": "bf16", "tp": "4"}
BATCH = {"isl": "32", "osl": "128", "concurrency": "8"}


def test_latency() -> None:
    found = read_latency(LATENCY, Given(declared={**DECLARED, **BATCH}))
    assert not [name for name in found.metrics if name.startswith(("e2el", "ttft", "tpot"))]
    assert found.metrics_other["batch_latency_mean"] == 2.0 and found.metrics_other["batch_latency_median"] == 2.0
    assert found.metrics_other["batch_latency_p99"] == 2.098 and found.metrics_other["batch_latency_std"] == 0.1
    assert found.metrics["tput_per_gpu"] == 160.0  # 8 * (32 + 128) tokens / 2 s / 4 GPUs
    assert found.metrics["output_tput_per_gpu"] == 128.0
    assert found.identity["arrival"] == "batch" and found.concurrency == 8 and found.identity["engine"] == "vllm"
    assert found.num_gpus == 4 and found.duration_s == pytest.approx(6.0) and found.metric_definition == "vllm bench latency"
    assert set(found.declared) == {*DECLARED, *BATCH}


def test_latency_asks_for_what_makes_the_cell() -> None:
    with pytest.raises(InputError, match=r"^isl, osl: not in the record; declare .*--set isl=1024"):
        read_latency(LATENCY, Given(declared=DECLARED))
    with pytest.raises(InputError, match=r"^concurrency: not in the record"):
        read_latency(LATENCY, Given(declared={**DECLARED, "isl": "32", "osl": "128"}))
    with pytest.raises(InputError, match=r"^hardware, num_gpus, model, precision: not in the record"):
        read_latency(LATENCY, Given(declared=BATCH))


def test_throughput() -> None:
    found = read_throughput(THROUGHPUT, Given(declared={**DECLARED, "workload": "sharegpt"}))
    assert found.metrics == {"tput_per_gpu": 1000.0} and found.metrics_other["request_throughput"] == 10.0
    assert (found.identity["arrival"], found.concurrency, found.requests, found.duration_s) == ("offline", 200, 200, 20.0)
    with pytest.raises(InputError, match=r"^workload: not in the record"):
        read_throughput(THROUGHPUT, Given(declared=DECLARED))
    assert read_throughput(THROUGHPUT, Given(declared={**DECLARED, "isl": "512", "osl": "512"})).identity["isl"] == 512


def test_what_is_kept() -> None:
    assert LATENCY_FORMAT.clean is not None and THROUGHPUT_FORMAT.clean is not None
    assert LATENCY_FORMAT.clean({**LATENCY, "host": "node1"}) == LATENCY
    assert len(LATENCY_FORMAT.clean({**LATENCY, "latencies": [1.0] * 5000})["latencies"]) == 1000
    assert THROUGHPUT_FORMAT.clean({**THROUGHPUT, "cmd": "vllm --api-key x"}) == THROUGHPUT


def test_neither_states_a_run_and_names_tell_sizes() -> None:
    assert LATENCY_FORMAT.origin is None and THROUGHPUT_FORMAT.origin is None
    assert LATENCY_FORMAT.hints(PurePosixPath("latency_llama8B_tp4.json")) == {"tp": "4"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"percentiles": [1.0]}, "percentiles: "),
        ({"percentiles": {"p50": 1.0}}, "percentiles: 'p50'"),
        ({"percentiles": {"50": None}}, "percentiles/50: "),
        ({"latencies": "1.0"}, "latencies: "),
        ({"avg_latency": -2.0}, "avg_latency: "),
    ],
)
def test_wrong_values_are_told_by_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        read_latency({**LATENCY, **change}, Given(declared={**DECLARED, **BATCH}))


@given_cases(st.data())
def test_a_mutated_record_is_refused_or_finite(data: st.DataObject) -> None:
    declared = {**DECLARED, **BATCH, "workload": "random"}
    refused_or_finite(read_latency, data.draw(mutations(LATENCY)), Given(declared=declared))
    refused_or_finite(read_throughput, data.draw(mutations(THROUGHPUT)), Given(declared=declared))
