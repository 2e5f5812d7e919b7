"""The load in an llm-d benchmark report: which client sent it, at which rate or concurrency, what the prompts were.

Facts: llm-d-benchmark `analysis/benchmark_report` (Apache-2.0). Version 0.2 has it in one form for all clients; in 0.1 it is
the client's own configuration. A length that is no whole number is the mean of what was measured and no setting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.ingest.numbers import metric, whole
from pipelines.ingest.tools.llmd_fields import mapping
from warehouse.errors import InputError

VLLM, INFERENCE_MAX, INFERENCE_PERF, GUIDELLM, AIPERF = "vllm-benchmark", "inferencemax", "inference-perf", "guidellm", "aiperf"
MAX_CONCURRENCY = 100_000_000
_ENDLESS = frozenset({"inf", "+inf", ".inf", "infinity"})
_OPEN = "open"
"""How requests arrive where all that is told is their rate."""


@dataclass(frozen=True)
class Load:
    """What a client sent. `rate` in requests a second; `arrival` None: a closed loop of `concurrency`."""

    tool: str = ""
    isl: int | None = None
    osl: int | None = None
    concurrency: int | None = None
    rate: float | None = None
    arrival: str | None = None
    workload: str | None = None
    scenario: str = "fixed-seq-len"


def load_v02(scenario: Mapping[str, Any], uid: str) -> Load:
    """Return the load of a report of version 0.2; a part of a report by inference-perf alone has none, but names its client."""
    load = mapping(scenario, "load", "scenario")
    if not load:
        return Load(tool=INFERENCE_PERF if uid.startswith(INFERENCE_PERF) else "")
    where = "scenario.load.standardized"
    told, native = mapping(load, "standardized", "scenario.load"), mapping(load, "native", "scenario.load")
    tool = _word(told.get("tool"))
    rate, endless = _rate(told.get("rate_qps"), f"{where}.rate_qps")
    concurrency, unbounded = _concurrency(told.get("concurrency"), f"{where}.concurrency")
    lengths = {name: mapping(told, name, where) for name in ("input_seq_len", "output_seq_len")}
    turns = mapping(told, "multi_turn", where)
    concurrency, arrival = _open_or_closed(tool, rate, concurrency, endless or unbounded, native)
    return Load(
        tool=tool,
        isl=_nominal(lengths["input_seq_len"]),
        osl=_nominal(lengths["output_seq_len"]),
        concurrency=concurrency,
        rate=rate,
        arrival=arrival,
        workload=_workload(told, native, lengths, turns),
        scenario="multi-turn" if turns and turns.get("enabled", True) is True else "fixed-seq-len",
    )


def load_v01(scenario: Mapping[str, Any]) -> Load:
    """Return the load of a report of version 0.1."""
    load = mapping(scenario, "load", "scenario")
    tool, args = _word(load.get("name")), mapping(load, "args", "scenario.load")
    where = "scenario.load.args"
    stage = mapping(load, "metadata", "scenario.load").get("stage")
    rates = mapping(args, "load", where).get("stages")
    staged = _stage(rates, stage) if tool == INFERENCE_PERF else {}
    rate, endless = _rate(staged.get("rate", args.get("request_rate", args.get("request-rate"))), f"{where}.request_rate")
    given = staged.get("concurrency_level", args.get("max_concurrency", args.get("max-concurrency")))
    concurrency, unbounded = _concurrency(given, f"{where}.max_concurrency")
    data = mapping(args, "data", where)
    kind = load.get("type") or data.get("type") or args.get("dataset_name")
    concurrency, arrival = _open_or_closed(tool, rate, concurrency, endless or unbounded, {"config": args, "args": args})
    return Load(
        tool=tool,
        isl=_mean(data.get("input_distribution")),
        osl=_mean(data.get("output_distribution")),
        concurrency=concurrency,
        rate=rate,
        arrival=arrival,
        workload=_word(kind) or None,
    )


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _endless(value: Any) -> bool:
    return (isinstance(value, float) and math.isinf(value) and value > 0) or _word(value) in _ENDLESS


def _rate(value: Any, field: str) -> tuple[float | None, bool]:
    """Return a rate, and whether it is stated as endless (all requests at once)."""
    if value is None or value == "":
        return None, False
    if _endless(value):
        return None, True
    rate = metric(field, value)
    return (rate or None), False


def _concurrency(value: Any, field: str) -> tuple[int | None, bool]:
    """Return a concurrency, and whether it is stated as unbounded; 0 means so, too."""
    if value is None or value == "":
        return None, False
    if _endless(value) or value in (0, "0"):
        return None, True
    return whole(field, value, least=1, largest=MAX_CONCURRENCY), False


def _open_or_closed(
    tool: str, rate: float | None, concurrency: int | None, endless: bool, native: Mapping[str, Any]
) -> tuple[int | None, str | None]:
    """Return concurrency and arrival: a cap on requests in flight beside a rate is part of how they arrive."""
    if rate is None:
        return concurrency, "burst" if endless and concurrency is None else None
    return None, _arrival(tool, native) + (f", at most {concurrency}" if concurrency else "")


def _arrival(tool: str, native: Mapping[str, Any]) -> str:
    config, args = (part if isinstance(part, Mapping) else {} for part in (native.get("config"), native.get("args")))
    kind = mapping(config, "load", "load").get("type") or config.get("profile") or config.get("rate_type")
    if (stated := _word(kind)) in ("constant", "poisson"):
        return stated
    if tool not in (VLLM, INFERENCE_MAX):
        return _OPEN
    shape = metric("burstiness", args.get("burstiness", 1))
    return "poisson" if shape == 1 else f"gamma {shape:g}"


def _nominal(length: Mapping[str, Any]) -> int | None:
    """Return the length that was asked for, tokens; a fraction is the mean of what came."""
    value = length.get("value")
    if value is None:
        return None
    number = metric("seq_len.value", value)
    return int(number) if number == int(number) and number >= 1 else None


def _mean(distribution: Any) -> int | None:
    return _nominal({"value": distribution.get("mean")}) if isinstance(distribution, Mapping) else None


def _stage(stages: Any, stage: Any) -> Mapping[str, Any]:
    if not isinstance(stages, list) or isinstance(stage, bool) or not isinstance(stage, int) or not 0 <= stage < len(stages):
        return {}
    found = stages[stage]
    return found if isinstance(found, Mapping) else {}


def _workload(
    told: Mapping[str, Any], native: Mapping[str, Any], lengths: Mapping[str, Mapping[str, Any]], turns: Mapping[str, Any]
) -> str | None:
    """Return in words what the prompts were: data, lengths that vary, common prefixes, turns. It is part of the identity."""
    config, args = native.get("config"), native.get("args")
    data = config.get("data") if isinstance(config, Mapping) else None
    name = _word(data.get("type")) if isinstance(data, Mapping) else ""
    name = name or (_word(args.get("dataset-name")) if isinstance(args, Mapping) else "") or _word(told.get("source"))
    parts = ["" if name == "unknown" else name]
    for label, length in (("input", lengths["input_seq_len"]), ("output", lengths["output_seq_len"])):
        if _word(length.get("distribution")) in ("gaussian", "uniform") and _nominal(length):
            parts.append(_spread(label, length))
    prefix = mapping(told, "prefix", "scenario.load.standardized")
    if prefix:
        size = _number(mapping(prefix, "prefix_len", "prefix").get("value"))
        counts = [_number(prefix.get(key)) for key in ("num_groups", "num_users_per_group", "num_prefixes")]
        parts.append(f"prefix {size}, {' x '.join(counts)}")
    if turns and turns.get("enabled", True) is True:
        parts.append(f"turns {_number(mapping(turns, 'max_turns', 'multi_turn').get('value'))}")
    return "; ".join(part for part in parts if part) or None


def _spread(label: str, length: Mapping[str, Any]) -> str:
    told = [f"{name} {_number(length[name])}" for name in ("std_dev", "min", "max") if length.get(name) is not None]
    return f"{label} {_word(length.get('distribution'))} {' '.join(told)}".strip()


def _number(value: Any) -> str:
    if value is None:
        return "?"
    try:
        return f"{metric('load', value):g}"
    except InputError:
        return str(value)[:20]
