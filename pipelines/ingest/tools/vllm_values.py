"""What clients of vLLM's kind write alike: numbers as texts, the load, counts, throughput, latencies, the clock.

Belongs here: fields that vLLM's bench serve, vllm-bench and InferenceX's client share. Does not: what only one of them writes.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pipelines.ingest.declarations import placed
from pipelines.ingest.numbers import LAST_CLOCK, is_number, metric, whole
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Given, Origin
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

MAX_GPUS = 1_000_000
"""GPUs of one deployment, far above any that exists."""
NOTHING = ("", "none", "null", "nan")
"""Texts that stand for a missing value, in lower case."""
_STATISTIC = re.compile(r"(mean|median|std|p\d|p\d\d(?:\.\d{1,6})?)_(ttft|tpot|itl|e2el)(_ms)?")
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")


def text(record: dict[str, Any], *keys: str) -> str | None:
    """Return the first text of *keys* that says something; a number is a text, too."""
    for key in keys:
        value = record.get(key)
        value = str(value) if is_number(value) else value
        if isinstance(value, str) and value.strip().lower() not in NOTHING and len(value) <= 512:
            return value.strip()
    return None


def number(record: dict[str, Any], key: str, per: float = 1.0) -> float | None:
    """Return the number of *key* divided by *per*, None where there is none; raises InputError where it is no number."""
    value = record.get(key)
    if value is None or (isinstance(value, str) and value.strip().lower() in NOTHING):
        return None
    return metric(key, value, per)


def size(record: dict[str, Any], *keys: str) -> int | None:
    """Return the first of *keys* that is there, a whole number from 1; raises InputError where it is none."""
    for key in keys:
        if (value := number(record, key)) is not None:
            return whole(key, value, least=1, largest=100_000_000)
    return None


def deployment(sizes: dict[str, int | None]) -> int | None:
    """Return the GPUs by tensor-, pipeline- and data-parallel ranks, where the first are known; raises InputError."""
    if not sizes.get("tp"):
        return None
    gpus = math.prod(sizes.get(name) or 1 for name in ("tp", "pp", "dp"))
    return whole("tensor_parallel_size", gpus, least=1, largest=MAX_GPUS)


def is_multi_turn(record: dict[str, Any]) -> bool:
    """Say whether *record* is of a benchmark of conversations."""
    return record.get("mode") == "multi_turn"


def load(record: dict[str, Any]) -> dict[str, Any]:
    """Return concurrency, request_rate and arrival as fields of Told; raises InputError.

    A closed loop has a concurrency; a rate has an arrival, and a cap on requests in flight is part of it; without either all
    requests are sent at once.
    """
    if is_multi_turn(record):
        return {"concurrency": size(record, "multi_turn_concurrency", "max_concurrency")}
    cap = size(record, "max_concurrency")
    limit = f", at most {cap}" if cap else ""
    if (strategy := text(record, "ramp_up_strategy")) is not None:
        ends = [f"{number(record, f'ramp_up_{end}_rps') or 0.0:g}" for end in ("start", "end")]
        return {"arrival": f"{strategy[:20]} ramp-up from {ends[0]} to {ends[1]} requests/s{limit}"}
    rate = _rate(record.get("request_rate"))
    if rate is not None:
        return {"request_rate": rate, "arrival": _arrival(record.get("burstiness")) + limit}
    if cap is not None:
        return {"concurrency": cap}
    return {"concurrency": whole("num_prompts", record.get("num_prompts"), least=1, largest=100_000_000), "arrival": "burst"}


def _infinite(value: Any) -> bool:
    return value == math.inf or (isinstance(value, str) and value.strip().lower() in ("inf", "infinity"))


def _rate(value: Any) -> float | None:
    if _infinite(value):
        return None
    if not (rate := metric("request_rate", value)):
        raise InputError("request_rate: 0 requests a second")
    return rate


def _arrival(burstiness: Any) -> str:
    """Return how requests arrive: gaps are gamma with this shape, 1 is a Poisson process, infinity is a constant pace."""
    if _infinite(burstiness):
        return "constant"
    shape = 1.0 if burstiness is None else metric("burstiness", burstiness)
    return "poisson" if shape == 1.0 else f"gamma {shape:g}"


def health(record: dict[str, Any]) -> dict[str, Any]:
    """Return requests sent and failed as fields of Told; a data set may give fewer requests than `num_prompts`."""
    counts = {key: number(record, key) for key in ("completed", "failed", "num_prompts")}
    done, failed, asked = (None if value is None else whole(key, value, largest=100_000_000) for key, value in counts.items())
    if done is not None and failed is not None:
        return {"requests": done + failed, "requests_failed": failed}
    if asked is None or done is None:
        return {"requests": asked, "requests_failed": None}
    return {"requests": max(asked, done), "requests_failed": max(asked - done, 0)}


def throughput(record: dict[str, Any]) -> dict[str, float]:
    """Return tok/s of the whole system by kind, as told, else from tokens and duration; what is nought was not measured."""
    duration = number(record, "duration")
    found = {}
    for kind in ("input", "output"):
        rate, tokens = number(record, f"{kind}_throughput"), number(record, f"total_{kind}_tokens")
        found[kind] = rate if rate is not None or not duration or tokens is None else tokens / duration
    total = number(record, "total_token_throughput")
    if total is None and None not in found.values():
        total = sum(value for value in found.values() if value is not None)
    return {kind: value for kind, value in {**found, "total": total}.items() if value}


@lru_cache(maxsize=4096)
def _latency_name(key: str) -> tuple[str, str, str] | None:
    match = _STATISTIC.fullmatch(key)
    return (match[2], match[1].replace(".", ""), match[3] or "") if match else None


def latency_name(key: str, suffix: str) -> tuple[str, str] | None:
    """Return family and statistic of a time's key that ends in *suffix*: `p99.9_ttft_ms` → ttft, p999; None of another key."""
    name = _latency_name(key) if len(key) <= 40 else None
    return name[:2] if name and name[2] == suffix else None


def latencies(record: dict[str, Any], suffix: str = "_ms", per: float = 1000.0) -> tuple[dict[str, float], dict[str, float]]:
    """Return times in seconds by column, and those that have none; `p50` is the median.

    *suffix* stands behind the names, *per* divides the values. The tool writes 0 for a family where nothing was measured.
    """
    found: dict[str, dict[str, float]] = {}
    for key in record:
        if (name := latency_name(key, suffix)) and (value := number(record, key, per)) is not None:
            found.setdefault(name[0], {})[name[1]] = value
    columns, other = {}, {}
    for family, values in found.items():
        if "p50" in values:
            values.setdefault("median", values.pop("p50"))
        if any(value for statistic, value in values.items() if statistic != "std"):
            named = {f"{family}_{statistic}": value for statistic, value in values.items()}
            columns.update({name: value for name, value in named.items() if name in _COLUMNS})
            other.update({name: value for name, value in named.items() if name not in _COLUMNS})
    return columns, other


def rates(record: dict[str, Any]) -> dict[str, float]:
    """Return requests and good requests a second under the names of their definitions."""
    goodput = number(record, "request_goodput")
    found = {
        "request_throughput": number(record, "request_throughput"),
        "request_goodput": number(record, "request_goodput:") if goodput is None else goodput,
    }
    return {name: value for name, value in found.items() if value is not None}


def each(record: dict[str, Any], key: str, completed: float | None) -> float | None:
    """Return the total of *key* over the completed requests."""
    total = number(record, key)
    return total / completed if total is not None and completed else None


def clock(record: dict[str, Any]) -> datetime | None:
    """Return the time that *record* states, naive where it has no zone; None where it states none that is one."""
    start: Any = record.get("benchmark_start_time_unix")
    if is_number(start) and 1e9 < start < LAST_CLOCK:
        return datetime.fromtimestamp(start, UTC)
    value = record.get("date")
    return _dated(value) if isinstance(value, str) and 15 <= len(value) <= 40 else None


@lru_cache(maxsize=32_768)
def _dated(value: str) -> datetime | None:
    """Return the time of a date; it is asked for twice, for the run and for the record."""
    match = _DATE.fullmatch(value)
    try:
        found = datetime(*map(int, match.groups())) if match else datetime.fromisoformat(value)  # type: ignore[arg-type]
    except ValueError:
        return None
    return found if 2000 <= found.year <= 2096 else None


def measured_at(record: dict[str, Any], given: Given) -> datetime | None:
    """Return the clock as an instant where its zone is known."""
    found = clock(record)
    return placed_or_none(found, given) if found is None or found.tzinfo is None else found.astimezone(UTC)


def origin(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of the day that *record* states; raises InputError asking for `timezone` where it has no zone."""
    found = clock(record)
    if found is None:
        return None
    return day_run(placed(found, given.declared, "date") if found.tzinfo is None else found)
