"""InferenceX agentic rows (AgentX): traces of coding agents replayed against a deployment; three generations of one row.

Facts: InferenceX `utils/process_agentic_result.py` (v1: 2026-05-01, v2: 2026-05-17) and `utils/agentic/aggregation`
(v3: 2026-07-02, metrics nested); kv-cache-tester `trace_replay_tester.py` for v1; what the app keeps of v3 rows
(`etl/agentic-v3-flatten.ts`), which is a flat row again. The deployment is told by the fields of fixed-sequence rows
(`inferencex_setup`); there are no nominal lengths.

Traps read here: what is named `itl` is the mean gap of each request, that is TPOT; v1 counts tokens with the client's tokenizer;
`intvty` of v1 and v2 is a percentile of rates (the fast tail); `tp` of several nodes is prefill_tp + decode_tp; totals of v3
count warm-up requests, those of v2 leave failed ones out.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, ValidationError

from pipelines.ingest.assembling import INTERACTIVITY, Facts
from pipelines.ingest.numbers import finite, is_number, metric, whole
from pipelines.ingest.reading import MAX_OTHER, Given, Reading, RecordFormat
from pipelines.ingest.runs import first_problem
from pipelines.ingest.tools import inferencex_dictionary as dictionary
from pipelines.ingest.tools import inferencex_power as power
from pipelines.ingest.tools import inferencex_setup as setups
from pipelines.ingest.tools.inferencex_setup import Setup
from warehouse import vocabulary
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_THROUGHPUTS = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu")
_STATISTICS = {"p50": "median", "p99.9": "p999"}
_STATISTIC = re.compile(r"(mean|median|std|p50|p75|p90|p95|p99|p99\.9)_([a-z0-9_]+)")
_LATENCIES = frozenset({"ttft", "e2el", "tpot", "itl", "intvty", "e2e_norm_intvty", "full_response_itl", "full_response_intvty"})
_TOKENS = {"input": "input_tokens", "output_actual": "output_tokens_actual", "output_expected": "output_tokens_expected"}
_PATHS = {
    "request_metrics.throughput.duration_seconds": "duration_seconds",
    "request_metrics.throughput.per_gpu.total_tput_tps": "tput_per_gpu",
    "request_metrics.throughput.per_gpu.output_tput_tps": "output_tput_per_gpu",
    "request_metrics.throughput.per_gpu.input_tput_tps": "input_tput_per_gpu",
    "request_metrics.cache.theoretical_cache_hit_rate": "theoretical_cache_hit_rate",
    **{
        f"server_metrics.cache.{name}_cache_hit_rate": f"server_{name}_cache_hit_rate"
        for name in ("gpu", "cpu", "external", "overall")
    },
    "server_metrics.kv_cache.gpu_usage_pct": "gpu_kv_cache_usage_pct",
    "server_metrics.kv_cache.cpu_usage_pct": "cpu_kv_cache_usage_pct",
    "server_metrics.tokens.prompt_total": "total_prompt_tokens",
    "server_metrics.tokens.generation_total": "total_generation_tokens",
    "server_metrics.tokens.requests_completed": "total_requests_completed",
    **{
        f"server_metrics.kv_offload.{what}_{way}": f"kv_offload_{what}_{way}"
        for what in ("bytes", "time")
        for way in ("gpu_to_cpu", "cpu_to_gpu")
    },
}
"""Numbers of a nested row → their names in flat rows."""
_COUNTED = {"duration_seconds": "duration_s", "mean_input_tokens": "isl_mean", "mean_output_tokens_actual": "osl_mean"}
_REDUNDANT = frozenset({"input_tput_tps", "output_tput_tps", "total_tput_tps", "users"})
_NOT_METRICS = frozenset(
    {*Setup.model_fields, *_REDUNDANT, *_COUNTED, "num_requests_total", "num_requests_successful", "isl", "osl"}
)
MARKERS = frozenset({"hw", "framework", "scenario_type", "num_requests_total"})


class _Row(Setup):
    """An agentic row; `offloading` (v1, v2) and `offload_mode` (API) say less of what `kv_offloading` says."""

    scenario_type: Annotated[str, Field(pattern=r"^agentic[a-z0-9-]{0,60}$")]
    dataset: dict[str, Any] | None = None


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong."""
    facts = Facts(given)
    try:
        row = _Row.model_validate(_own(record, facts))
    except ValidationError as error:
        raise InputError(first_problem(error)) from None
    if row.precision is None:
        facts.text("precision", needed=True)
        facts.ask()
    generation = _generation(record)
    flat = _flat(record) if generation == _NESTED else record
    metrics, other = _metrics(flat, generation)
    identity, unknown = setups.identity(row, given.started_at)
    return Reading(
        identity={**identity, "scenario": row.scenario_type, "workload": facts.text("workload", _data_set(row))},
        concurrency=row.conc,
        num_gpus=setups.num_gpus(row),
        image=row.image,
        metrics=metrics,
        metrics_other=other,
        metric_definition=f"inferencex agentic v{generation}",
        hardware_label=row.hw,
        model_source=row.model,
        checkpoint=vocabulary.checkpoint(row.model) if row.model else None,
        recipe_fingerprint=row.recipe_fingerprint.lower() if row.recipe_fingerprint else facts.text("recipe"),
        engine_version=facts.text("engine_version"),
        engine_commit=facts.text("engine_commit"),
        **_counts(record, generation),
        **_sizes(flat),
        declared=tuple(sorted(set(facts.declared))),
        unknown_names=unknown,
    )


def _own(record: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """Return the row with what was declared, and with one name for what generations name otherwise."""
    row = {key: value for key, value in record.items() if key not in ("isl", "osl") and (value != "" or key == "scenario_type")}
    if row.get("conc") is None:
        row["conc"] = row.get("users")
    if row.get("kv_offloading") is None:
        mode = row.get("offloading") or row.get("offload_mode")
        row["kv_offloading"] = "none" if mode == "off" else mode
    if row.get("prefill_tp") is not None:
        row = {key: value for key, value in row.items() if key not in ("tp", "ep", "dp_attention")}  # sums over roles, no sizes
    return setups.filled(row, facts, lengths=False)


def _data_set(row: _Row) -> str | None:
    """Return the name of the traces that were replayed, where the row tells it (since July 2026)."""
    names = [(row.dataset or {}).get(key) for key in ("hf_dataset_name", "loader")]
    return next((name[:200] for name in names if isinstance(name, str) and name.strip()), None)


_NESTED = 3


def _generation(record: dict[str, Any]) -> int:
    """Return the row's generation by the statistics that each writes; a flat row with medians alone is a v3 row of the API."""
    if "request_metrics" in record:
        return _NESTED
    keys = [key for key in record if key.endswith(("_ttft", "_e2el"))]
    if any(key.startswith("p99") for key in keys):
        return 1
    return _NESTED if any(key.startswith(("median_", "p50_")) for key in keys) else 2


def _inside(record: dict[str, Any], path: str) -> Any:
    """Return what stands at a path of keys, None where a part of it is missing; raises InputError where a part is no object."""
    value: Any = record
    done: list[str] = []
    for key in path.split("."):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"{'.'.join(done)}: an object is wanted")
        value = value.get(key)
        done.append(key)
    return value


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a nested row under the names of flat rows, beside its other fields."""
    found = {key: value for key, value in record.items() if not isinstance(value, dict)}
    for name in _LATENCIES:
        found |= _statistics(record, f"request_metrics.latency.{name}", name)
    for name, plain in _TOKENS.items():
        found |= _statistics(record, f"request_metrics.tokens.{name}", plain)
    found |= _statistics(record, "request_metrics.qps", "qps")
    return found | {name: value for path, name in _PATHS.items() if (value := _inside(record, path)) is not None}


def _statistics(record: dict[str, Any], path: str, name: str) -> dict[str, Any]:
    block = _inside(record, path)
    if block is not None and not isinstance(block, dict):
        raise InputError(f"{path}: an object is wanted")
    named = {f"{statistic}_{name}": value for statistic, value in (block or {}).items()}
    return {key: value for key, value in named.items() if _STATISTIC.fullmatch(key)}


def _metrics(flat: dict[str, Any], generation: int) -> tuple[dict[str, float], dict[str, float]]:
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    renamed = power.names(flat)
    has_tpot = any(key.endswith(("_tpot", "_full_response_itl")) for key in flat)  # the API puts the latter into itl
    for key, value in flat.items():
        if value is None or key in _NOT_METRICS:
            continue
        if key in _THROUGHPUTS:
            metrics[key] = metric(key, value)
        elif (match := _STATISTIC.fullmatch(key)) is not None and match[2] in _LATENCIES:
            name = _latency(match[2], generation, has_tpot)
            if name is not None:
                _put(metrics, other, f"{name}_{_STATISTICS.get(match[1], match[1])}", _second(key, match[2], value))
        elif is_number(value) and (named := renamed.get(key, key[:MAX_OTHER])) is not None:
            other[_plain(named)] = finite(key, value)
    if not metrics.get("tput_per_gpu"):
        raise InputError("tput_per_gpu: field required (request_metrics.throughput.per_gpu.total_tput_tps): no request succeeded")
    return _with_interactivity(metrics), other


def _latency(name: str, generation: int, has_tpot: bool) -> str | None:
    """Return the name of the definition of a latency; None where another key says the same, or where it says nothing."""
    if name in ("ttft", "e2el"):
        return name
    if name == "tpot" or (name == "itl" and not has_tpot):
        return "tpot_client_tokens" if generation == 1 else "tpot"
    return {"full_response_itl": "tpot_full_response", "e2e_norm_intvty": "tpot_with_first"}.get(name)


def _second(key: str, name: str, value: Any) -> float | None:
    """Return a latency in seconds; a rate of tokens is turned into one, but for its spread, which no latency follows from."""
    number = metric(key, value)
    if name != "e2e_norm_intvty":
        return number
    return 1.0 / number if number and not key.startswith("std_") else None


def _put(metrics: dict[str, float], other: dict[str, float], name: str, value: float | None) -> None:
    if value is not None:
        (metrics if name in _COLUMNS else other)[name] = value


def _plain(name: str) -> str:
    """Return `mean_qps` as the definition that it is."""
    match = _STATISTIC.fullmatch(name)
    if match is None or match[2] != "qps":
        return name
    return f"completions_per_second_{_STATISTICS.get(match[1], match[1])}"


def _with_interactivity(metrics: dict[str, float]) -> dict[str, float]:
    """Add interactivity from TPOT: what rows call so was a percentile of rates until v3."""
    derived = {f"intvty_{name}": 1.0 / metrics[f"tpot_{name}"] for name in INTERACTIVITY if metrics.get(f"tpot_{name}")}
    return {**metrics, **derived}


def _counts(record: dict[str, Any], generation: int) -> dict[str, Any]:
    """Return requests that were measured and those of them that failed, where told: v2 rows leave the failed ones out."""
    if record.get("request_accounting") is not None:
        total, warm, good = (
            _count(record, f"request_accounting.records_{key}") for key in ("total", "warmup_dropped", "profiled")
        )
        sent, told = total - warm, True
    elif None in (record.get("num_requests_total"), record.get("num_requests_successful")):
        return {}
    else:
        sent, good = (_count(record, f"num_requests_{key}") for key in ("total", "successful"))
        told = generation == 1
    if sent < good:
        raise InputError("num_requests_total: fewer requests than succeeded")
    return {"requests": sent, "requests_failed": sent - good if told else None}


def _count(record: dict[str, Any], path: str) -> int:
    value = _inside(record, path)
    return whole(path, 0 if value is None else value)


def _sizes(flat: dict[str, Any]) -> dict[str, Any]:
    """Return duration in seconds and the mean lengths that were sent and came, tokens."""
    return {column: metric(key, flat[key]) for key, column in _COUNTED.items() if flat.get(key) is not None}


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without error texts, warnings and the addresses that server metrics were read from."""
    kept = {key: value for key, value in setups.without_hosts(record).items() if key != "warnings"}
    for outer, inner in (("server_metrics", "sources"), ("request_accounting", "error_categories")):
        if isinstance(kept.get(outer), dict):
            kept[outer] = {key: value for key, value in kept[outer].items() if key != inner}
    return kept


FORMAT = RecordFormat(
    "inferencex-agentic",
    "InferenceX agentic rows (AgentX, v1 to v3); docs/formats.md",
    MARKERS,
    read,
    clean=clean,
    dictionary=dictionary.AGENTIC,
)
