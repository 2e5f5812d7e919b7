"""Rows of PyTorch's benchmark format (one a metric) put together to measurements, without what is private.

Belongs here: what is one measurement, what of it is kept. Does not: what it means (`pytorch_hud`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.numbers import is_number
from pipelines.ingest.tools import vllm_offline, vllm_serve
from pipelines.ingest.tools.vllm_kept import clean as clean_result

ROW = frozenset({"benchmark", "model", "metric"})
"""Keys of one row as the tools write it."""
MARKERS = frozenset({"benchmark", "model", "metrics", "result", "args"})
"""Keys of what is kept: the rows of one measurement, put together. A row has less than half, so that it is no near miss."""
BENCHMARK = "vllm"
"""What the name of the benchmark holds, in lower case."""
UPLOADED = ("repo", "head_branch", "head_sha", "workflow_id", "run_attempt", "job_id", "timestamp", "schema_version", "name")
RUNNER = ("name", "type", "cpu_info", "cpu_count", "avail_mem_in_gb", "gpu_info", "gpu_count", "avail_gpu_mem_in_gb")
ARGUMENTS = (
    *("backend", "model", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel"),
    *("quantization", "dtype", "kv_cache_dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "load_format"),
    *("enable_prefix_caching", "enforce_eager", "gpu_memory_utilization", "async_engine", "input_len", "output_len"),
    *("random_input_len", "random_output_len", "random_prefix_len", "random_range_ratio", "batch_size", "n", "num_prompts"),
    *("num_iters", "dataset_name", "request_rate", "burstiness", "max_concurrency", "ignore_eos", "seed", "num_warmups"),
)
"""Arguments that are kept; others name hosts, paths and users."""
MAX_VALUES = vllm_offline.MAX_ITERATIONS


def unpack(value: Any) -> Iterator[Item | Fault] | None:
    """Return the measurements in a list of rows, or in one row; None where *value* is no such thing."""
    rows = value if isinstance(value, list) else [value]
    first = next((row for row in rows if not isinstance(row, Fault)), None)
    if isinstance(first, list):  # lines of lists
        first = first[0] if first else None
    if not (isinstance(first, dict) and _is_row(first) and _is_known(first)):
        return None
    return _measurements(_flat(rows) if isinstance(value, list) else iter([("", value)]))


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= ROW


def _is_known(row: dict[str, Any]) -> bool:
    """Say whether a row is of a vLLM benchmark; the database has many others, which are no serving benchmarks."""
    name = row["benchmark"].get("name") if isinstance(row["benchmark"], dict) else None
    return isinstance(name, str) and BENCHMARK in name.lower()


_Key = tuple[str, int]


def _measurements(rows: Iterator[tuple[str, Any]]) -> Iterator[Item | Fault]:
    """Yield every measurement at the place of its first row, and every row that is none."""
    groups: dict[_Key, dict[str, Any]] = {}
    places: dict[_Key, str] = {}
    faults = []
    for place, row in rows:
        if isinstance(row, Fault):
            faults.append(row)
        elif not (_is_row(row) and _is_known(row) and isinstance(row["metric"], dict)):
            faults.append(Fault(place, "no row of a vLLM benchmark in PyTorch's format (benchmark, model, metric)"))
        else:
            try:
                _join(groups, places, place, row)
            except RecursionError:
                faults.append(Fault(place, "nested too deep"))
    yield from (Item(places[key], measurement(group)) for key, group in groups.items())
    yield from faults


def _flat(rows: list[Any]) -> Iterator[tuple[str, Any]]:
    for index, row in enumerate(rows):
        if isinstance(row, list):
            yield from ((f"/{index}/{below}", part) for below, part in enumerate(row))
        else:
            yield f"/{index}", row


def _join(groups: dict[_Key, dict[str, Any]], places: dict[_Key, str], place: str, row: dict[str, Any]) -> None:
    """Put a row to those that share all but the metric's name and values; a name that comes again begins another measurement."""
    metric, rest = row["metric"], {key: value for key, value in row.items() if key != "metric"}
    name, values = str(metric.get("name")), metric.get("benchmark_values")
    shared = json.dumps([rest, metric.get("extra_info")], sort_keys=True)
    again = 0
    while (key := (shared, again)) in groups and _held(groups[key], name, values):
        again += 1
    if key not in groups:
        groups[key] = {**rest, "result": metric.get("extra_info"), "metrics": {}}
        places[key] = place
    groups[key]["metrics"][name] = values


def _held(group: dict[str, Any], name: str, values: Any) -> bool:
    """Say whether a group has other values of that name already; the same again is the same row twice."""
    return name in group["metrics"] and group["metrics"][name] != values


def measurement(group: dict[str, Any]) -> dict[str, Any]:
    """Return the record of one measurement: that of `bench serve` itself, else one of this format, without what is private."""
    result = object_of(group.get("result"))
    whole = {**result, **{name: first_of(values) for name, values in group["metrics"].items()}}
    if not any(key in group for key in ("head_sha", "runners")) and vllm_serve.FORMAT.recognises(whole):
        return clean_result(whole)
    return clean({**group, "result": result, "args": _arguments(group)})


def object_of(value: Any) -> dict[str, Any]:
    """Return an object, empty where *value* is none; the database keeps objects as texts of JSON."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return value if isinstance(value, dict) else {}


def first_of(values: Any) -> Any:
    """Return the first of the values of a metric; as a rule there is one."""
    return values[0] if isinstance(values, list) and values else values


def _arguments(group: dict[str, Any]) -> dict[str, Any]:
    return object_of(object_of(object_of(group.get("benchmark")).get("extra_info")).get("args"))


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of this format without host names, paths, addresses and per-request lists; it may be cleaned again."""
    args = object_of(record.get("args"))
    kept = clean_result({key: args[key] for key in ARGUMENTS if key in args})
    if isinstance(args.get("speculative_config"), dict):
        kept["speculative_config"] = clean_result(args["speculative_config"])
    runners = record.get("runners")
    return {
        "benchmark": clean_result({key: object_of(record.get("benchmark")).get(key) for key in ("name", "mode", "dtype")}),
        "model": clean_result({key: object_of(record.get("model")).get(key) for key in ("name", "type", "backend")}),
        "metrics": {key[:120]: _values(value) for key, value in list(object_of(record.get("metrics")).items())[:200]},
        "result": _result(object_of(record.get("result"))),
        "args": kept,
        **clean_result({key: record[key] for key in UPLOADED if key in record}),
        **({"runners": [_runner(each) for each in runners[:16]]} if isinstance(runners, list) else {}),
        **({"dependencies": _dependencies(record)} if record.get("dependencies") else {}),
    }


def _values(values: Any) -> list[Any]:
    """Return the values of a metric; the database writes some numbers as texts."""
    listed = values if isinstance(values, list) else [values]
    return [value for value in listed[:MAX_VALUES] if is_number(value) or (isinstance(value, str) and len(value) <= 40)]


def _result(result: dict[str, Any]) -> dict[str, Any]:
    if not result.keys() >= vllm_offline.LATENCY_MARKERS:
        return clean_result(result)
    return vllm_offline.clean_latency({**result, "percentiles": object_of(result["percentiles"])})


def _runner(runner: Any) -> dict[str, Any]:
    return clean_result({key: runner[key] for key in RUNNER if key in runner}) if isinstance(runner, dict) else {}


def _dependencies(record: dict[str, Any]) -> dict[str, Any]:
    found = object_of(record.get("dependencies"))
    return {name[:120]: clean_result(object_of(each)) for name, each in list(found.items())[:50]}
