"""What an AIPerf export says besides its metrics: load, workload, model, in both shapes of it; and what is kept.

Facts: real exports of 0.11 and 0.13, the configuration classes of the 0.3, 0.8 and 0.13 packages (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

from pipelines.ingest.numbers import is_number, metric, whole
from pipelines.ingest.reading import MAX_OTHER
from pipelines.ingest.tools import unit_blocks
from pipelines.ingest.tools.taming import at, tamed, text_at
from warehouse.errors import InputError

_ABOUT = ("schema_version", "aiperf_version", "benchmark_id", "was_cancelled", "is_complete", "start_time", "end_time")
_SECTIONS = ("models", "endpoint", "datasets", "dataset", "phases", "slos", "tokenizer", "loadgen", "input")
_TEXTS = frozenset(
    {
        *("name", "strategy", "type", "kind", "dataset", "format", "sampling", "hf_subset", "path", "revision", "corpus", "file"),
        *("public_dataset", "custom_dataset_type", "arrival_pattern", "request_rate_mode", "model_names"),
    }
)
_RUN_INFO = frozenset({"benchmark_id", "sweep_id", "run_label", "variation_label"})


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record without addresses, keys, command lines, host names and paths; every metric block is kept."""
    kept: dict[str, Any] = {key: record[key] for key in _ABOUT if not isinstance(record.get(key, {}), dict | list)}
    kept |= unit_blocks.kept(record)
    config = record.get("input_config")
    if isinstance(config, dict):
        kept["input_config"] = {name: tamed(config[name], _TEXTS, name) for name in _SECTIONS if name in config}
    if isinstance(record.get("run_info"), dict):
        kept["run_info"] = tamed(record["run_info"], _RUN_INFO)
    if isinstance(record.get("error_summary"), list):
        kept["error_summary"] = [
            {"count": at(entry, "count")} for entry in record["error_summary"] if is_number(at(entry, "count"))
        ]
    if names := _gpu_names(record):
        kept["gpu_names"] = names
    return kept


def _gpu_names(record: dict[str, Any]) -> list[str]:
    """Return the names of the GPUs that telemetry saw, one each; no metric rests on them, but they may be wanted one day."""
    endpoints = at(record, "telemetry_data", "endpoints")
    gpus = [at(endpoint, "gpus") for endpoint in endpoints.values()] if isinstance(endpoints, dict) else []
    found = [text_at(gpu, "gpu_name") for some in gpus if isinstance(some, dict) for gpu in some.values()]
    return [name[:80] for name in found if name]


def load(record: dict[str, Any]) -> dict[str, Any]:
    """Return concurrency, or rate and arrival, of the phase that was measured."""
    phases = at(record, "input_config", "phases")
    if not isinstance(phases, list):
        return _early_load(at(record, "input_config", "loadgen"), at(record, "input_config", "input", "fixed_schedule"))
    measured = [phase for phase in phases if (text_at(phase, "kind") or text_at(phase, "name")) != "warmup"]
    if len(measured) != 1:
        raise InputError(f"input_config.phases: {len(measured)} measured phases in one export; one is wanted")
    phase, kind = measured[0], text_at(measured[0], "type")
    if kind == "concurrency":
        told = at(phase, "concurrency")
        return {"concurrency": 1 if told is None else whole("input_config.phases.concurrency", told, 1)}
    if kind == "fixed_schedule":
        return {"arrival": "trace"}
    if kind not in ("poisson", "gamma", "constant", "user_centric"):
        raise InputError(f"input_config.phases.type: {str(kind)[:40]!r} is not known")
    limit = at(phase, "concurrency")
    return {
        "arrival": kind if limit is None else f"{kind}, at most {whole('input_config.phases.concurrency', limit, 1)}",
        "request_rate": _positive("input_config.phases.rate", at(phase, "rate")),
    }


def _early_load(loadgen: Any, fixed_schedule: Any) -> dict[str, Any]:
    """Return the load that AIPerf before 0.11 states; a concurrency beside a rate is a limit of it."""
    if fixed_schedule is True:
        return {"arrival": "trace"}
    told = at(loadgen, "concurrency")
    limit = None if told is None else whole("input_config.loadgen.concurrency", told, 1)
    if (rate := at(loadgen, "request_rate")) is not None:
        arrival = (text_at(loadgen, "arrival_pattern") or text_at(loadgen, "request_rate_mode") or "poisson").lower()[:40]
        return {
            "arrival": arrival if limit is None else f"{arrival}, at most {limit}",
            "request_rate": _positive("input_config.loadgen.request_rate", rate),
        }
    return {} if limit is None else {"concurrency": limit}


def _positive(field: str, value: Any) -> float | None:
    if value is None:
        return None
    if not (number := metric(field, value)):
        raise InputError(f"{field}: 0 is no rate")
    return number


def workload(record: dict[str, Any]) -> dict[str, Any]:
    """Return nominal lengths and the name of the data set; lengths that vary are part of the name."""
    config = record.get("input_config")
    data = at(config, "datasets", 0) or at(config, "dataset") or _early_data(at(config, "input"))
    if data is None:
        return {}
    lengths = [at(data, "prompts", key) or at(data, key) for key in ("isl", "osl")]
    turns = nominal(at(data, "turns"))
    spread = [f"{key} ±{at(value, 'stddev')}" for key, value in zip(("isl", "osl"), lengths, strict=True) if at(value, "stddev")]
    name = text_at(data, "dataset") or text_at(data, "path") or text_at(data, "type")
    return {
        "isl": nominal(lengths[0]),
        "osl": nominal(lengths[1]),
        "workload": ", ".join([name, *spread])[:MAX_OTHER] if name else None,
        "scenario": "multi-turn" if turns and turns > 1 else "fixed-seq-len",
    }


def _early_data(inputs: Any) -> dict[str, Any] | None:
    if not isinstance(inputs, dict):
        return None
    lengths = {"isl": at(inputs, "prompt", "input_tokens"), "osl": at(inputs, "prompt", "output_tokens")}
    named = text_at(inputs, "public_dataset") or text_at(inputs, "file")
    return {**lengths, "dataset": named or "synthetic", "turns": at(inputs, "conversation", "turn")}


def nominal(value: Any) -> int | None:
    """Return a nominal length: a number, or the mean (or fixed value) of a distribution; None where it is not whole."""
    for key in ("mean", "value"):
        value = at(value, key) if isinstance(value, dict) and key in value else value
    return int(value) if is_number(value) and 1 <= value <= 100_000_000 and value == int(value) else None


def model(record: dict[str, Any]) -> str | None:
    """Return the model; None where several shared the load, so that the user is asked."""
    config = record.get("input_config")
    items = at(config, "models", "items")
    names = [text_at(item, "name") for item in items] if isinstance(items, list) else at(config, "endpoint", "model_names")
    return names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else None
