"""Metric blocks that state their unit, `{"unit": "ms", "avg": 1.5, "p99": 2.0, …}`, as AIPerf and genai-perf write them.

A number is converted by the unit that stands beside it, never by its name; a unit that we do not know is an error that names it.
"""

from __future__ import annotations

from typing import Any

from pipelines.ingest.numbers import finite, is_number, metric
from pipelines.ingest.reading import MAX_OTHER
from warehouse.errors import InputError

STATISTICS = {"avg": "mean", "p50": "median", "std": "std", "p90": "p90", "p95": "p95", "p99": "p99"}
"""Statistics of a block and the columns that they fill."""
_OF_BLOCKS = frozenset({"unit", "min", "max", "count", "sum", *STATISTICS})
TIMES = {"ns": 1e9, "us": 1e6, "ms": 1e3, "sec": 1.0, "s": 1.0}
"""Units of time and how many there are in a second."""
TOKENS = {"tokens": 1.0}
REQUESTS = {"requests": 1.0, "count": 1.0}
TOKEN_RATES = {"tokens/sec": 1.0}
REQUEST_RATES = {"requests/sec": 1.0}


def is_block(value: Any) -> bool:
    """Say whether *value* is a metric block."""
    return isinstance(value, dict) and "unit" in value and "avg" in value


def kept(record: dict[str, Any]) -> dict[str, Any]:
    """Return the blocks and bare numbers of *record*, also those that are damaged, so that reading them says what is wrong."""
    return {
        key[:MAX_OTHER]: {inner: part for inner, part in value.items() if _may_stay(inner, part)}
        if isinstance(value, dict)
        else value
        for key, value in record.items()
        if is_number(value) or (isinstance(value, dict) and "unit" in value)
    }


def _may_stay(name: str, part: Any) -> bool:
    """Say whether a part of a block is kept: a number, or a text where a unit or a statistic should stand."""
    return part is None or isinstance(part, bool) or is_number(part) or (isinstance(part, str) and name in _OF_BLOCKS)


def need(record: dict[str, Any], name: str) -> None:
    """Raise InputError where the block *name* is missing or none."""
    if not is_block(record.get(name)):
        raise InputError(f"{name}: a block of unit, avg, p99 … is wanted")


def statistic(record: dict[str, Any], name: str, units: dict[str, float], key: str = "avg") -> float | None:
    """Return one statistic of the block *name* in the base unit of *units* (s, tokens, tok/s …); None where it is not told.

    Raises InputError that names the block and its unit, or the number.
    """
    block = record.get(name)
    if block is None:
        return None
    need(record, name)
    per = units.get(block["unit"]) if isinstance(block["unit"], str) else None
    if per is None:
        raise InputError(f"{name}: unit {str(block['unit'])[:40]!r} is not known; known are {', '.join(units)}")
    value = block.get(key)
    if value is None:
        return None
    if not is_number(value):
        raise InputError(f"{name}.{key}: {str(value)[:60]!r} is not a number")
    return metric(f"{name}.{key}", finite(f"{name}.{key}", value) / per)


def seconds(record: dict[str, Any], name: str, family: str, share: float = 1.0) -> dict[str, float]:
    """Return the statistics of a time as `family_mean`, `family_p99` …, in seconds divided by *share*; empty where not told."""
    found = {told: statistic(record, name, TIMES, key) for key, told in STATISTICS.items()}
    return {f"{family}_{told}": value / share for told, value in found.items() if value is not None}
