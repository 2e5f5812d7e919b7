"""What an SGLang server says of itself (`server_info`, launch arguments), reduced to what identifies build and parallel sizes.

`server_info` holds every launch argument: paths, host names, keys. What is kept is on a list; the rest is never stored.
With prefill and decode on separate servers it holds one object a server, by role.
Field meanings: SGLang `python/sglang/srt/server_args.py` (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from pipelines.ingest.tools.fields import count, flag, plain, text
from pipelines.ingest.tools.plain_names import model_name, precision_of
from warehouse.errors import InputError

_PATHS = ("model_path", "served_model_name", "speculative_draft_model_path")
ALLOWED = frozenset({
    "version", "model_path", "served_model_name", "tp_size", "pp_size", "dp_size", "ep_size", "moe_dp_size", "attn_cp_size",
    "nnodes", "enable_dp_attention", "quantization", "dtype", "kv_cache_dtype", "load_format", "speculative_algorithm",
    "speculative_draft_model_path", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "moe_a2a_backend", "moe_runner_backend",
    "disaggregation_mode", "disaggregation_transfer_backend", "chunked_prefill_size", "max_running_requests",
    "mem_fraction_static", "page_size", "schedule_policy", "disable_radix_cache", "disable_cuda_graph", "device",
})  # fmt: skip
"""Keys of `server_info` that are kept."""
ROLES = ("prefill", "decode")
MAX_SERVERS = 1000
MAX_REMEMBERED = 64 * 1024
"""Longest text of a `server_info` that is reduced once for all records alike (a sweep shares its server)."""
_FLAGS = {
    "model": "model_path", "tp": "tp_size", "tensor_parallel_size": "tp_size", "pp": "pp_size",
    "pipeline_parallel_size": "pp_size", "dp": "dp_size", "data_parallel_size": "dp_size", "ep": "ep_size",
    "expert_parallel_size": "ep_size", "speculative_algo": "speculative_algorithm",
}  # fmt: skip
"""Other spellings of launch arguments."""


def reduced(info: Any) -> Any:
    """Return the part of a `server_info` that is kept; of what is no object its kind, so that reading tells of it."""
    if not isinstance(info, dict):
        return info if info is None else f"({type(info).__name__})"
    try:
        told = orjson.dumps(info)
    except TypeError:  # an integer beyond 64 bits, or too many levels
        return _reduced(info)
    return dict(_reduced_text(told)) if len(told) <= MAX_REMEMBERED else _reduced(info)


@lru_cache(maxsize=256)
def _reduced_text(info: bytes) -> dict[str, Any]:
    return _reduced(orjson.loads(info))


def _reduced(info: dict[str, Any]) -> dict[str, Any]:
    kept = plain(info, ALLOWED)
    for key in _PATHS:
        if isinstance(kept.get(key), str):
            kept[key] = model_name(kept[key])
    for role in ROLES:
        if isinstance(servers := info.get(role), list):
            kept[role] = [reduced(server) for server in servers[:MAX_SERVERS] if isinstance(server, dict)]
    return kept


def from_arguments(arguments: Any) -> dict[str, Any]:
    """Return launch arguments (`--tp 8 --enable-dp-attention`, a list of texts) as a reduced `server_info`."""
    words = [str(word) for word in arguments] if isinstance(arguments, list) else str(arguments or "").split()
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    found: dict[str, Any] = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name = word.lstrip("-").replace("-", "_")
            follows = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("--") else True
            found[_FLAGS.get(name, name)] = follows
    kept: dict[str, Any] = reduced(found)
    return kept


def facts(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Told` that a reduced `server_info` tells; raises InputError naming the field.

    What it does not tell is not among them. Without a quantization method the precision is the checkpoint's: not told.
    """
    if not info:
        return {}
    by_role = {role: servers for role in ROLES if isinstance(servers := info.get(role), list) and servers}
    if by_role:
        return _of_roles(by_role)
    mode = (text(info, "disaggregation_mode", _WHERE) or "null").lower()
    return _of_roles({mode: [dict(info)]}, alone=True) if mode in ROLES else {**_common(info), **_sizes(info), "disagg": False}


_WHERE = "server_info."


def _common(info: Mapping[str, Any]) -> dict[str, Any]:
    method = text(info, "speculative_algorithm", _WHERE)
    return {
        "engine_version": text(info, "version", _WHERE),
        "model": model_name(text(info, "model_path", _WHERE)),
        "precision": precision_of(text(info, "quantization", _WHERE)),
        "spec_decoding": method.lower() if method else ("none" if "speculative_algorithm" in info else None),
        "dp_attention": flag(info, "enable_dp_attention", _WHERE),
    }


def _sizes(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return parallel sizes and GPUs; without data-parallel attention every data-parallel rank has GPUs of its own."""
    sizes = {name: count(info, f"{name}_size", _WHERE, least=1) for name in ("tp", "pp", "ep")}
    nodes = count(info, "nnodes", _WHERE, least=1)
    return {
        **sizes,
        "num_gpus": _gpus(info, sizes),
        "identity": {} if nodes is None else {"is_multinode": nodes > 1},
    }


def _gpus(info: Mapping[str, Any], sizes: Mapping[str, int | None]) -> int | None:
    if sizes["tp"] is None:
        return None
    replicas = 1 if flag(info, "enable_dp_attention", _WHERE) else count(info, "dp_size", _WHERE, least=1) or 1
    return sizes["tp"] * (sizes["pp"] or 1) * replicas


def _of_roles(by_role: Mapping[str, Sequence[Any]], alone: bool = False) -> dict[str, Any]:
    """Return what servers by role tell; one that answered *alone* does not know how many there are.

    The GPUs of the whole are known where both roles answered.
    """
    identity: dict[str, Any] = {}
    gpus: dict[str, int | None] = {}
    for role, servers in by_role.items():
        if not all(isinstance(server, dict) for server in servers):
            raise InputError(f"server_info.{role}: a list of objects is wanted")
        first = servers[0]
        sizes = _sizes(first)
        identity |= {f"{role}_{name}": sizes[name] for name in ("tp", "pp", "ep")}
        identity[f"{role}_dp_attention"] = flag(first, "enable_dp_attention", _WHERE)
        identity[f"{role}_num_workers"] = None if alone else len(servers)
        found = [_sizes(server)["num_gpus"] for server in servers]
        gpus[role] = None if alone or None in found else sum(found)
        identity[f"num_{role}_gpus"] = gpus[role]
    last = by_role.get("decode", by_role.get("prefill", [{}]))[0]
    known = [number for number in gpus.values() if number is not None]
    whole = sum(known) if len(known) == len(ROLES) else None
    identity["kv_transfer"] = text(last, "disaggregation_transfer_backend", _WHERE)
    return {**_common(last), "dp_attention": None, "disagg": True, "num_gpus": whole, "identity": identity}
