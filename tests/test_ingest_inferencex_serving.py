"""Raw output of the client under InferenceX sweeps: seconds stay seconds, the setup comes from the file's name. By hand."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given as given_cases
from hypothesis import strategies as st

from pipelines.ingest.reading import Given
from pipelines.ingest.tools import vllm_serve
from pipelines.ingest.tools.inferencex_serving import FORMAT, hints, read
from tests.mutated import mutations, refused_or_finite
from warehouse.errors import InputError

RAW: dict[str, Any] = {
    "date": "20260214-151209",
    "model_id": "MiniMaxAI/MiniMax-M2.5",
    "tokenizer_id": "MiniMaxAI/MiniMax-M2.5",
    "num_prompts": 160,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 16,
    "duration": 80.0,
    "completed": 160,
    "good_completed": None,
    "total_input_tokens": 1638400,
    "total_output_tokens": 20480,
    "request_throughput": 2.0,
    "request_goodput": None,
    "input_throughput": 20480.0,
    "output_throughput": 256.0,
    "median_ttft": 3.98,
    "p99_ttft": 11.7,
    "median_e2el": 7.3,
    "p99_e2el": 15.9,
    "median_tpot": 0.022,
    "p99_tpot": 0.077,
}
NAME = PurePosixPath("raw/minimax_m25_vllm_tep8_isl10240_osl128_conc16.json")
DECLARED = {"hardware": "mi355x", "precision": "fp8"}


def test_record_and_name() -> None:
    found = read(RAW, Given(declared=DECLARED, named=hints(NAME)))
    assert found.metrics["ttft_median"] == 3.98 and found.metrics["tpot_median"] == 0.022 and found.metrics["e2el_p99"] == 15.9
    assert (found.identity["tp"], found.identity["ep"], found.num_gpus) == (8, 8, 8)
    assert found.metrics["tput_per_gpu"] == 2592.0  # (20,480 + 256) tok/s over 8 GPUs
    assert found.metrics["input_tput_per_gpu"] == 2560.0 and found.metrics["output_tput_per_gpu"] == 32.0
    assert (found.identity["isl"], found.identity["osl"], found.isl_mean, found.osl_mean) == (10240, 128, 10240.0, 128.0)
    assert (found.concurrency, found.identity["arrival"], found.identity["engine"]) == (16, None, "vllm")
    assert (found.requests, found.requests_failed, found.duration_s) == (160, 0, 80.0)
    assert "engine (file name)" in found.declared and "hardware" in found.declared
    assert found.metric_definition == "inferencex serving client"


def test_what_is_declared_counts_before_the_name() -> None:
    found = read(RAW, Given(declared={**DECLARED, "tp": "4", "num_gpus": "4", "engine": "sglang"}, named=hints(NAME)))
    assert found.identity["tp"] == 4 and found.num_gpus == 4 and found.identity["engine"] == "sglang"


def test_asks_for_what_neither_record_nor_name_tells() -> None:
    with pytest.raises(InputError, match=r"^hardware, precision: not in the record"):
        read(RAW, Given(named=hints(NAME)))
    assert FORMAT.origin is not None
    with pytest.raises(InputError, match="timezone"):
        FORMAT.origin(RAW, Given())
    run = FORMAT.origin(RAW, Given(declared={"timezone": "UTC"}))
    assert run is not None and run.run_id == "day-2026-02-14"


def test_is_no_record_of_vllms_own_client() -> None:
    assert FORMAT.recognises(RAW) and not vllm_serve.FORMAT.recognises(RAW)
    assert not FORMAT.recognises({**RAW, "backend": "vllm"})


@given_cases(st.data())
def test_a_mutated_record_is_refused_or_finite(data: st.DataObject) -> None:
    refused_or_finite(read, data.draw(mutations(RAW)), Given(declared=DECLARED, named=hints(NAME)))


def test_real_files(shared_data: Path) -> None:
    paths = sorted((shared_data / "inferencex" / "raw_serving").glob("*.json"))
    assert len(paths) == 12
    for path in paths:
        record = json.loads(path.read_text("utf-8"))
        assert FORMAT.recognises(record) and FORMAT.clean is not None and FORMAT.clean(record) == record
        found = read(record, Given(declared=DECLARED, named=hints(PurePosixPath(path.name))))
        assert found.num_gpus == 8 and found.concurrency == record["max_concurrency"]
        assert found.identity["isl"] == found.isl_mean and found.identity["osl"] == found.osl_mean == 128
        assert found.metrics["ttft_median"] == record["median_ttft"]
        total = (record["total_input_tokens"] + record["total_output_tokens"]) / record["duration"] / 8
        assert found.metrics["tput_per_gpu"] == pytest.approx(total)
