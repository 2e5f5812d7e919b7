"""What is kept of an llm-d benchmark report: an allow-list by place, because reports embed manifests, environments and endpoints.

Host names, user names, environment variables, endpoints, paths, per-pod tables and time series are left out. What is kept has the
report's own keys and values; infinity is the text `inf`, because JSON has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 512
MAX_OBJECT = 64 * 1024


def _each(names: str, shape: Any = None) -> dict[str, Any]:
    """Return a shape with the keys in *names*, each of *shape*."""
    return dict.fromkeys(names.split(), shape)


ARGUMENTS = frozenset(
    _each(
        "async-scheduling attention-backend block-size data-parallel-size data-parallel-size-local dtype enable-chunked-prefill "
        "enable-expert-parallel enable-prefix-caching gpu-memory-utilization kv-cache-dtype max-model-len max-num-batched-tokens "
        "max-num-seqs moe-backend pipeline-parallel-size quantization tensor-parallel-size"
    )
)
"""Arguments of an engine that are kept; others may hold keys, hosts and paths."""
PARTS_OF_ARGUMENTS = {
    "kv-transfer-config": frozenset({"kv_connector", "kv_role"}),
    "speculative-config": frozenset({"method", "num_speculative_tokens"}),
}
"""Arguments that are objects, and what is kept of them."""


_STATISTICS = _each("units mean mode stddev min p0p1 p1 p5 p10 p25 p50 p75 p90 p95 p99 p99p9 max")
_PARALLELISM = _each("tp pp ep dp dp_local dpLocal workers")
_LENGTH = _each("distribution value std_dev min max")
_WORKLOAD: dict[str, Any] = {
    "load": {
        **_each("type interval num_workers worker_max_concurrency"),
        "stages": [_each("rate duration concurrency_level num_requests")],
    },
    "data": {
        "type": None,
        **_each("input_distribution output_distribution", _each("type mean std std_dev min max")),
        "shared_prefix": _each(
            "num_groups num_prompts_per_group system_prompt_len question_len output_len enable_multi_turn_chat"
        ),
    },
    "api": _each("type streaming"),
}
_CLIENT_ARGUMENTS = _each(
    "burstiness dataset-name dataset_name max-concurrency max_concurrency num-prompts num_prompts profile random-input-len "
    "random-output-len random-range-ratio rate rate_type request-rate request_rate"
)
_LATENCIES = _each(
    "time_to_first_token normalized_time_per_output_token time_per_output_token inter_token_latency request_latency", _STATISTICS
)
_REQUESTS = {**_each("total failures incomplete"), **_each("input_length output_length", _STATISTICS)}
_STACK = {
    "metadata": _each("cfg_id schema_version"),
    "standardized": {
        **_each("kind tool tool_version role replicas"),
        "model": _each("name"),
        "accelerator": {**_each("model count"), "parallelism": _PARALLELISM},
    },
    "native": {"args": ARGUMENTS},
}
_LOAD = {
    "metadata": _each("cfg_id"),
    "standardized": {
        **_each("tool tool_version parallelism source stage rate_qps concurrency"),
        **_each("input_seq_len output_seq_len", _LENGTH),
        "prefix": {"prefix_len": _LENGTH, **_each("num_groups num_users_per_group num_prefixes")},
        "multi_turn": {"enabled": None, "max_turns": _LENGTH},
    },
    "native": {"args": _CLIENT_ARGUMENTS, "config": {**_WORKLOAD, **_CLIENT_ARGUMENTS}},
}
_MEDIA = _each("image video audio", _each("count filesize pixels aspect_ratio frames duration", _STATISTICS))
_SESSIONS = {
    **_each("total succeeded failed total_events total_events_completed total_events_cancelled"),
    **_each("session_rate session_duration events_per_session events_cancelled_per_session", _STATISTICS),
    **_each("input_tokens_per_session output_tokens_per_session", _STATISTICS),
}
_AGGREGATE = {
    "requests": {**_REQUESTS, "request_size": _STATISTICS, "multimodal": _MEDIA},
    "latency": _LATENCIES,
    "throughput": _each(
        "input_token_rate output_token_rate total_token_rate request_rate image_rate video_rate audio_rate", _STATISTICS
    ),
}
_V02: dict[str, Any] = {
    "version": None,
    "run": {**_each("uid eid description"), "time": _each("start end duration"), "keywords": [None]},
    "scenario": {"stack": [_STACK], "load": _LOAD},
    "results": {
        "request_performance": {"aggregate": _AGGREGATE},
        "session_performance": {"sessions": _SESSIONS},
        "component_health": [_each("total_restarts failed_replicas")],
    },
}
_V01: dict[str, Any] = {
    "version": None,
    "metadata": _each("eid"),
    "scenario": {
        "description": None,
        "host": {"type": [None], "accelerator": [{**_each("model memory count"), "parallelism": _PARALLELISM}]},
        "platform": {"engine": [{**_each("name version"), "args": ARGUMENTS}]},
        "model": _each("name quantization"),
        "load": {**_each("name type"), "args": {**_WORKLOAD, **_CLIENT_ARGUMENTS}, "metadata": _each("stage file_type")},
    },
    "metrics": {
        "time": _each("duration start stop"),
        "requests": _REQUESTS,
        "latency": _LATENCIES,
        "throughput": _each("input_tokens_per_sec output_tokens_per_sec total_tokens_per_sec requests_per_sec"),
    },
}
_MAX_LIST = 1000


def kept_v01(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a report of version 0.1."""
    found: dict[str, Any] = _pruned(report, _V01)
    return found


def kept_v02(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a report of version 0.2 or 0.2.1."""
    found: dict[str, Any] = _pruned(report, _V02)
    return found


def argument(name: Any) -> str:
    """Return the name of an argument as it is known: `--dtype`, `dtype` and, with underscores, `kv_cache_dtype` are alike."""
    return str(name).lstrip("-").replace("_", "-")


def _pruned(value: Any, shape: Any) -> Any:
    """Return *value* by *shape*: None keeps a single value, a mapping its keys, a list each element, a set arguments.

    What has not the shape (a text where an object should be) is kept as a short text, so that its reader can name it.
    """
    if isinstance(shape, Mapping) and isinstance(value, Mapping):
        return {key: _pruned(value[key], below) for key, below in shape.items() if key in value}
    if isinstance(shape, frozenset) and isinstance(value, Mapping):
        return _arguments(value)
    if isinstance(shape, list) and isinstance(value, list):
        return [_pruned(element, shape[0]) for element in value[:_MAX_LIST]]
    return _single(value)


def _arguments(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the arguments of an engine that are kept, under the names that the report gives them."""
    found = {}
    for name, given in value.items():
        plain = argument(name)
        if plain in ARGUMENTS:
            found[str(name)] = _single(given)
        elif plain in PARTS_OF_ARGUMENTS and isinstance(parts := _object(given), Mapping):
            found[str(name)] = {key: _single(parts[key]) for key in sorted(PARTS_OF_ARGUMENTS[plain]) if key in parts}
    return found


def _object(value: Any) -> Any:
    """Return an argument that is an object; on a command line it stands as JSON."""
    if not isinstance(value, str) or not value.lstrip(" '").startswith("{") or len(value) > MAX_OBJECT:
        return value
    try:
        return json.loads(value.strip(" '"))
    except (ValueError, RecursionError):
        return None


def _single(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return [_single(element) if not isinstance(element, list) else "a list" for element in value[:_MAX_LIST]]
    return "an object" if isinstance(value, Mapping) else str(value)[:MAX_TEXT]
