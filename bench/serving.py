"""Records of `vllm bench serve` and of SGLang's `bench_serving` for `make bench`: the invented fleet as JSON lines.

One folder a run with one file of 143 lines, as `--append-result` and `--output-file` leave them: the same cells and the same
noise as the rows of `fleet`, in milliseconds and tokens a second of the whole system. vLLM's lines have their own clock, SGLang's
a `run.json` beside them. What no record tells is declared in one `shiftlog.yaml`.
Belongs here: records of clients. Does not: speeds of stacks (`fleet`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from fleet import LANES, PART_USED, ROWS_PER_RUN, START, STEP, Floats, Numbers, numbers_of, record_count, run_id, run_object

DECLARED = "hardware: h100\nprecision: fp8\nengine: {}\ntimezone: UTC\n"
STATISTICS = ("mean", "median", "std", "p90", "p99")
PER_CONCURRENCY = 10
"""Requests that a client sends for each that may be in flight."""
Columns = dict[str, Any]
"""A column of a run's records: a value that all share, or an array or list of one value a record."""


def write_lines(folder: Path, tool: str, runs: int) -> int:
    """Write *runs* run folders of *tool* (vllm, sglang) under *folder* and return the records written."""
    folder.mkdir(parents=True)
    (folder / "shiftlog.yaml").write_text(DECLARED.format(tool), "utf-8")
    for run in range(runs):
        target = folder / f"run_{run_id(run)}"
        target.mkdir()
        (target / "serve.jsonl").write_bytes(_lines(TOOLS[tool](run)))
        if tool == "sglang":
            (target / "run.json").write_bytes(json.dumps(run_object(run)).encode())
    return record_count(runs)


def _lines(columns: Columns) -> bytes:
    whole = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in columns.items()}
    each = [value if isinstance(value, list) else [value] * ROWS_PER_RUN for value in whole.values()]
    return "".join(json.dumps(dict(zip(whole, values, strict=True))) + "\n" for values in zip(*each, strict=True)).encode()


def _vllm(run: int) -> Columns:
    sweep, lane = divmod(run, len(LANES))
    numbers, start = numbers_of(run), START + timedelta(days=sweep) + lane * STEP
    requests, duration = _load(numbers)
    return {
        "date": [f"{start + timedelta(seconds=25 * cell):%Y%m%d-%H%M%S}" for cell in range(ROWS_PER_RUN)],
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": LANES[lane].model,
        "tokenizer_id": LANES[lane].model,
        "num_prompts": requests,
        "version": f"0.{number(run)}.0",
        "tensor_parallel_size": [str(gpus) for gpus in _whole(numbers.gpus).tolist()],
        "input_len": [str(length) for length in _whole(numbers.isl).tolist()],
        "output_len": [str(length) for length in _whole(numbers.osl).tolist()],
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": _whole(numbers.conc),
        "duration": duration,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": _whole(requests * numbers.isl * PART_USED),
        "total_output_tokens": _whole(requests * numbers.osl * PART_USED),
        "request_throughput": requests / duration,
        "request_goodput": None,
        "output_throughput": numbers.metrics["output_tput_per_gpu"] * numbers.gpus,
        "total_token_throughput": numbers.metrics["tput_per_gpu"] * numbers.gpus,
        "max_output_tokens_per_s": numbers.metrics["output_tput_per_gpu"] * numbers.gpus * 1.3,
        "max_concurrent_requests": _whole(numbers.conc * 1.2 + 1),
        "rtfx": 0.0,
        **_times(
            numbers,
            {family: family for family in ("ttft", "tpot", "itl", "e2el")},
            ("mean", "median", "std", "p50", "p90", "p99"),
        ),
    }


def _sglang(run: int) -> Columns:
    lane = run % len(LANES)
    numbers = numbers_of(run)
    requests, duration = _load(numbers)
    server: dict[str, Any] = {
        "version": f"0.{number(run)}.1",
        "model_path": LANES[lane].model,
        "dtype": "auto",
        "quantization": "fp8",
    }
    server |= {"speculative_algorithm": None, "enable_dp_attention": False, "kv_cache_dtype": "auto", "page_size": 1}
    rates = {kind: numbers.metrics[f"{kind}tput_per_gpu"] * numbers.gpus for kind in ("input_", "output_", "")}
    return {
        "tag": None,
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": "Infinity",
        "max_concurrency": _whole(numbers.conc),
        "sharegpt_output_len": None,
        "random_input_len": _whole(numbers.isl),
        "random_output_len": _whole(numbers.osl),
        "random_range_ratio": 0.8,
        "server_info": [{**server, "tp_size": gpus} for gpus in _whole(numbers.gpus).tolist()],
        "duration": duration,
        "completed": requests,
        "total_input_tokens": _whole(requests * numbers.isl * PART_USED),
        "total_output_tokens": _whole(requests * numbers.osl * PART_USED),
        "total_output_tokens_retokenized": _whole(requests * numbers.osl * PART_USED - 3),
        "request_throughput": requests / duration,
        "input_throughput": rates["input_"],
        "output_throughput": rates["output_"],
        "total_throughput": rates[""],
        **_times(numbers, {"e2el": "e2e_latency", "ttft": "ttft", "tpot": "tpot", "itl": "itl"}, STATISTICS),
        "concurrency": numbers.conc * 0.97,
        "accept_length": None,
        "max_output_tokens_per_s": rates["output_"] * 1.3,
        "max_concurrent_requests": _whole(numbers.conc * 1.2 + 1),
    }


def _times(numbers: Numbers, families: dict[str, str], statistics: tuple[str, ...]) -> Columns:
    """Return the latencies of a run in milliseconds; p50 is the median."""
    of = {"p50": "median"}
    return {
        f"{statistic}_{name}_ms": numbers.metrics[f"{of.get(statistic, statistic)}_{family}"] * 1000
        for family, name in families.items()
        for statistic in statistics
    }


def _load(numbers: Numbers) -> tuple[Any, Floats]:
    """Return requests and duration, s."""
    requests = _whole(numbers.conc * PER_CONCURRENCY)
    return requests, requests / numbers.conc * numbers.metrics["mean_e2el"]


def _whole(values: Any) -> Any:
    return np.asarray(values).astype(np.int64)


def number(run: int) -> int:
    """Return the minor number of the engine's version: another one every thirty sweeps."""
    return 8 + run // len(LANES) // 30


TOOLS: dict[str, Callable[[int], Columns]] = {"vllm": _vllm, "sglang": _sglang}
