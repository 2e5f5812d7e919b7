"""Measured power in InferenceX rows: three generations of one set of names, told apart by two flags.

Facts: InferenceX `utils/aggregate_power.py` and `utils/aggregate_power_multinode.py` (PRs 1558, 2323, 2437, 2553, 2599).
The first generation (since 2026-05-26) has no flag: mean of samples, times GPUs and duration. The second (since 2026-08-05) has
`power_valid`: energy integrated device by device; whether of the deployment or of one role, the row does not say. The third
(since 2026-08-18) has `power_metric_schema_version` 2: energy of the whole deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLAGS = ("power_valid", "power_metric_schema_version")
"""They tell how the others are to be read and are no metrics."""
_POWER = {
    "avg_power_w": "gpu_power_w",
    "avg_total_gpu_power_w": "deployment_power_w",
    "total_gpu_energy_j": "deployment_energy_j",
}
"""Integrated power, of the same meaning in the second generation and the third."""
_PER_TOKEN = {
    "joules_per_successful_query": "joules_per_query",
    "joules_per_input_token": "joules_per_input_token",
    "joules_per_output_token": "joules_per_output_token",
    "joules_per_total_token": "joules_per_total_token",
}
_BY_ROLE = frozenset(
    {
        "prefill_avg_power_w",
        "decode_avg_power_w",
        "prefill_gpu_energy_j",
        "decode_gpu_energy_j",
        "prefill_joules_per_input_token",
        "decode_joules_per_output_token",
    }
)
KEYS = frozenset({*_POWER, *_PER_TOKEN, *_BY_ROLE})
WHOLE_DEPLOYMENT = 2
"""The schema version that says: energy of the whole deployment."""


def flags(record: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the values of FLAGS, from which the names of the others follow."""
    return record.get("power_valid"), record.get("power_metric_schema_version")


def names(record: Mapping[str, Any]) -> dict[str, str | None]:
    """Return under which name each power key of *record* is kept, None for those that are none or not to be used."""
    found: dict[str, str | None] = dict.fromkeys(flag for flag in FLAGS if flag in record)
    if not found:
        return {}
    believed = record.get("power_valid") in (None, 1, "1")
    for key in KEYS & record.keys():
        found[key] = _name(key, record.get("power_metric_schema_version")) if believed else None
    return found


def _name(key: str, version: Any) -> str | None:
    """Return the name of the definition; a version that we do not know means something that we do not know."""
    if version not in (None, WHOLE_DEPLOYMENT, str(WHOLE_DEPLOYMENT)):
        return None
    if key in _PER_TOKEN:
        return f"{'integrated' if version is None else 'deployment'}_{_PER_TOKEN[key]}"
    return _POWER.get(key, key)
