"""GuideLLM reports taken apart: one record a benchmark, without its requests, keys, addresses and paths.

Facts: `guidellm` reads the records and names the sources. Belongs here: what is kept of a report. Does not: what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipelines.ingest import yaml_text
from pipelines.ingest.json_text import Fault, Item, LeftOut
from pipelines.ingest.numbers import is_number
from pipelines.ingest.tools.taming import at, tamed, text_at
from warehouse.errors import InputError

KIND = "generative_benchmark"
STATUSES = ("successful", "incomplete", "errored", "total")
_MODALITIES = frozenset({"text", "image", "video", "audio", "tool_call", "turns"})
_METADATA = ("version", "guidellm_version", "python_version", "platform")
_TEXTS = frozenset(
    {
        *("kind", "type_", "strategy_type", "id_", "run_id", "mode", "stopping_scope", "split", "profile", "rate_type"),
        *("model", "backend", "backend_model", "backend_type", "request_format", "request_type"),
        *("data", "source", "path", "processor", "guidellm_version", "python_version", "platform"),
    }
)
_SPEC = ("backend", "profile", "constraints", "tokenizer", "data", "data_loader", "seed", "metrics")
_ARGS = (
    *("profile", "rate", "backend", "backend_kwargs", "model", "data", "data_args", "data_samples", "processor", "random_seed"),
    *("warmup", "cooldown", "rampup", "prefer_response_metrics", "max_seconds", "max_requests", "max_errors", "max_error_rate"),
)
_CONFIG = (
    *("id_", "run_id", "run_index", "strategy", "constraints", "warmup", "cooldown", "prefer_response_metrics", "slo"),
    *("confidence", "backend", "profile"),
)
MAX_WORD = 60
"""Longest text that is kept among metrics, where none is wanted, characters."""
_TIMES = ("start_time", "end_time", "duration", "warmup_duration", "cooldown_duration")
_REPORT_YAML = re.compile(r"^benchmarks:", re.MULTILINE)


def unpack(value: Any) -> Iterator[Item | Fault] | None:
    """Return the benchmarks of a report; None where *value* is none."""
    benchmarks = at(value, "benchmarks")
    if not isinstance(benchmarks, list):
        return None
    if text_at(value, "metadata", "guidellm_version") is None and at(benchmarks, 0, "type_") != KIND:
        return None
    return _records(value, benchmarks)


def _records(report: dict[str, Any], benchmarks: list[Any]) -> Iterator[Item | Fault]:
    if not benchmarks:
        yield Fault("/benchmarks", "no benchmark: the run ended before one was done")
    starts = [start for start in (at(benchmark, "start_time") for benchmark in benchmarks) if is_number(start)]
    shared = {
        "guidellm": _sections(report.get("metadata"), _METADATA) or {},
        "spec": _sections(at(report, "config", "spec"), _SPEC),
        "args": _sections(report.get("args"), _ARGS),
        "report": {"benchmarks": len(benchmarks), "start_time": min(starts, default=None)},
    }
    shared = {name: part for name, part in shared.items() if part is not None}
    for index, benchmark in enumerate(benchmarks):
        position = f"/benchmarks/{index}"
        if not isinstance(benchmark, dict) or benchmark.get("type_", KIND) != KIND:
            yield Fault(position, f"type_: {str(at(benchmark, 'type_'))[:60]!r} is not read; {KIND} is")
        else:
            yield Item(position, {**shared, "benchmark": _benchmark(benchmark)})


def _sections(value: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    parts = {name: tamed(value[name], _TEXTS, name) for name in names if value.get(name) is not None}
    return {name: part for name, part in parts.items() if part is not None}


def _benchmark(benchmark: dict[str, Any]) -> dict[str, Any]:
    """Return a benchmark without requests, texts and distributions of nothing."""
    kept = {name: benchmark[name] for name in _TIMES if is_number(benchmark.get(name))}
    parts = {
        "config": _sections(benchmark.get("config"), _CONFIG),
        "scheduler_metrics": tamed(benchmark.get("scheduler_metrics"), _TEXTS),
        "metrics": _distributions(benchmark.get("metrics")),
        # before 0.4
        "run_id": text_at(benchmark, "run_id"),
        "id_": text_at(benchmark, "id_"),
        "args": tamed(benchmark.get("args"), _TEXTS),
        "run_stats": tamed(benchmark.get("run_stats"), _TEXTS),
        "worker": tamed(benchmark.get("worker"), _TEXTS),
        "request_loader": tamed(benchmark.get("request_loader"), _TEXTS),
        "request_totals": tamed(benchmark.get("request_totals"), _TEXTS),
    }
    return kept | {name: part for name, part in parts.items() if part is not None}


def _distributions(metrics: Any) -> Any:
    """Return the metrics without modalities, without what was drawn from nothing, and without what is not a number there."""
    if not isinstance(metrics, dict):
        return None
    return {str(name): _by_status(part) for name, part in metrics.items() if part is not None and name not in _MODALITIES}


def _by_status(part: Any) -> Any:
    if not isinstance(part, dict):
        return _leaf(part)
    kept = {key: value for key, value in part.items() if key != "pdf" and not (key in STATUSES and at(value, "count") == 0)}
    return {str(key): _plain(value) for key, value in kept.items()}


def _plain(value: Any) -> Any:
    """Return a distribution without lists, or a count; what is no number stays, so that reading it says what is wrong."""
    if not isinstance(value, dict):
        return _leaf(value)
    inner = {str(key): _leaf(part) for key, part in value.items() if not isinstance(part, dict | list)}
    shares = value.get("percentiles")
    if isinstance(shares, dict):
        inner["percentiles"] = {str(key): _leaf(part) for key, part in shares.items()}
    return inner


def _leaf(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_WORD]
    return None if isinstance(value, dict | list) else value


def text(text: str) -> Iterator[Item | Fault | LeftOut] | None:
    """Return the benchmarks of a report that was saved as YAML; None where *text* is none. The CSV export is left out."""
    if text.lstrip("\ufeff").startswith("Run Info,"):
        return iter([LeftOut("the same measurement as the JSON beside it; a second point would pass for a repeat")])
    if KIND not in text or not _REPORT_YAML.search(text):
        return None
    try:
        return unpack(yaml_text.value(text))
    except InputError as error:
        return iter([Fault("", f"{error}; save the report as JSON")])
