"""Rows of InferenceX's public read API (`/api/v1/benchmarks`, `/api/v1/benchmarks/history`), turned back into the rows they were.

Facts: InferenceX-app `packages/db/src/etl/benchmark-mapper.ts` and `normalizers.ts` (how an artifact's row becomes a row of its
database) and `packages/db/src/queries/benchmarks.ts` (what the API shows of it). The app writes the sizes of a deployment without
roles into both roles and takes tp·ep for its GPUs; numbers that it has no column for stand among `metrics`, with parallel sizes.
What is read is the artifact's row, by the artifact's reader, so that one measurement is one cell wherever it came from.

Lost in the app, and with it the equality of cells: hardware by role (`prefill_hw`), `mtp` of rows before 2025-12-05, GPUs by role
of 2025-11-17 to 2025-12-05, the data set of agentic rows and what v1 and v2 of them say of offloading.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from pipelines.ingest.reading import Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools import inferencex, inferencex_agentic
from pipelines.ingest.tools import inferencex_dictionary as dictionary
from pipelines.ingest.tools import inferencex_setup as setups
from warehouse.clock import parse_instant
from warehouse.errors import InputError

MARKERS = frozenset({"hardware", "framework", "model", "spec_method", "conc", "prefill_tp", "metrics"})
_NAMES = {
    "hw": "hardware",
    "framework": "framework",
    "infmax_model_prefix": "model",
    "precision": "precision",
    "spec_decoding": "spec_method",
    "disagg": "disagg",
    "is_multinode": "is_multinode",
    "isl": "isl",
    "osl": "osl",
    "conc": "conc",
    "image": "image",
}
"""Fields of an artifact's row → the same of the API's."""
_ROLE = ("tp", "ep", "dp_attention", "num_workers")
_PARTS = {"router": "router", "kv_offload_backend": "kv_offload_backend"}
_NO_NUMBER = frozenset({"recipe_fingerprint", "router_name", "router_version", "kv_offload_backend_version", "offload_mode"})
"""Keys of `metrics` that are no metrics; the app reads a fingerprint such as `12ab…` as the number 12."""
_AGENTIC = "agentic_traces"
_RUN_URL = re.compile(r"https://github\.com/([\w.-]{1,100}/[\w.-]{1,100})/actions/runs/(\d{1,20})(?:/attempts/(\d{1,4}))?/?")


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong, as the API calls it."""
    row = as_artifact(record)
    read_row = inferencex_agentic.read if "scenario_type" in row else inferencex.read
    try:
        return read_row(row, given)
    except InputError as error:
        field, colon, wrong = str(error).partition(":")
        name = {**_NAMES, "tp": "prefill_tp", "ep": "prefill_ep", "num_prefill_gpu": "num_prefill_gpu"}.get(field, field)
        raise InputError(f"{name}{colon}{wrong}") from None


def as_artifact(record: dict[str, Any]) -> dict[str, Any]:
    """Return the artifact's row that the app made *record* of, as far as it shows; raises InputError."""
    metrics = record.get("metrics")
    if not isinstance(metrics, dict):
        raise InputError("metrics: an object is wanted")
    row = {key: value for key, value in metrics.items() if key not in _NO_NUMBER}
    row |= {name: record.get(key) for name, key in _NAMES.items()} | _sizes(record)
    row["precision"] = row["precision"] or None  # "" before 2025-09-15
    row |= {name: part for name, key in _PARTS.items() if (part := _part(metrics, key)) is not None}
    if _is_agentic(record):
        row |= {"scenario_type": "agentic-coding", "offload_mode": record.get("offload_mode", metrics.get("offload_mode"))}
    return row


def _is_agentic(record: dict[str, Any]) -> bool:
    return record.get("benchmark_type") == _AGENTIC


def _part(metrics: dict[str, Any], key: str) -> Any:
    """Return router or offload backend with its version; the app keeps both as texts."""
    if key == "kv_offload_backend":
        name, version = metrics.get(key), metrics.get(f"{key}_version")
    else:
        name, version = metrics.get(f"{key}_name"), metrics.get(f"{key}_version")
    return name if version is None else {"name": name, "version": version}


def _sizes(record: dict[str, Any]) -> dict[str, Any]:
    """Return the parallel sizes as the artifact's row had them: of the whole, by role, or of workers that do both."""
    if not record.get("is_multinode") and not record.get("prefill_num_workers") and not record.get("decode_num_workers"):
        if any(record.get(f"prefill_{name}") != record.get(f"decode_{name}") for name in _ROLE):
            raise InputError("decode_tp: one deployment without roles, yet prefill and decode differ")
        return {name: record.get(f"prefill_{name}") for name in ("tp", "ep", "dp_attention")}
    sizes = {f"{role}_{name}": record.get(f"{role}_{name}") for role in ("prefill", "decode") for name in _ROLE}
    sizes |= {key: record.get(key) for key in ("num_prefill_gpu", "num_decode_gpu")}
    return sizes if record.get("disagg") else sizes | _NO_DECODE


_NO_DECODE = {
    "decode_tp": 0,
    "decode_ep": 0,
    "decode_pp": 1,
    "decode_dcp_size": 1,
    "decode_pcp_size": 1,
    "decode_dp_attention": False,
    "decode_num_workers": 0,
    "num_decode_gpu": 0,
}
"""What an artifact says of decode where the same workers prefill and decode; the app repeats the workers there."""


def origin(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the CI run that the row names; it started when the row says, else on the UTC day that it says."""
    url = record.get("run_url")
    match = _RUN_URL.fullmatch(url) if isinstance(url, str) else None
    started = _started(record)
    if match is None or started is None:
        return None
    return Origin(match[1], match[2], started, run_attempt=int(match[3] or 1), url=url)


def _started(record: dict[str, Any]) -> datetime | None:
    for field in ("run_started_at", "date"):
        value = record.get(field)
        if isinstance(value, str) and value:
            instant = parse_instant(value, field)
            return instant.astimezone(UTC)
    return None


FORMAT = RecordFormat(
    "inferencex-api",
    "rows of InferenceX's public API (/api/v1/benchmarks, /api/v1/benchmarks/history); docs/formats.md",
    MARKERS,
    read,
    without=frozenset({"task"}),
    origin=origin,
    clean=setups.without_hosts,
    restates=True,
    dictionary=dictionary.API,
)
