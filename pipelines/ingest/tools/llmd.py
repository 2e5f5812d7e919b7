"""llm-d benchmark reports, versions 0.1, 0.2 and 0.2.1, YAML or JSON: one report is one load on one deployment.

Facts: llm-d-benchmark `analysis/benchmark_report` (schemas, the converters `native_to_br0_*`), inference-perf `reportgen/br`
(both Apache-2.0). Every statistic states its unit and is converted by it. The report takes its numbers from a client, and clients
mean different things by one name, so that the client decides what a latency is (`FAMILIES`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.ingest import yaml_text
from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.numbers import metric, whole
from pipelines.ingest.reading import Given, Reading, RecordFormat
from pipelines.ingest.tools import llmd_load, llmd_stack
from pipelines.ingest.tools.llmd_dictionary import V01_DICTIONARY, V02_DICTIONARY
from pipelines.ingest.tools.llmd_fields import mapping, told
from pipelines.ingest.tools.llmd_kept import kept_v01, kept_v02
from pipelines.ingest.tools.llmd_load import AIPERF, GUIDELLM, INFERENCE_MAX, INFERENCE_PERF, VLLM, Load
from pipelines.ingest.tools.llmd_stack import DECODE, PREFILL, Stack
from pipelines.ingest.tools.llmd_times import clock_v02, duration, epoch, origin_v01, origin_v02
from pipelines.ingest.tools.plain_names import precision_of
from warehouse.errors import InputError

TIME = {"s": 1.0, "ms": 1000.0}
TIME_PER_TOKEN = {"s/token": 1.0, "ms/token": 1000.0}
RATE = {"tokens/s": 1.0}
REQUEST_RATE = {"queries/s": 1.0}
COUNT = {"count": 1.0}
STATISTICS = {"mean": "mean", "p50": "median", "stddev": "std", "p90": "p90", "p95": "p95", "p99": "p99", "p99p9": "p999"}
"""Statistics that have a column, by the report's names."""
_BY_CLIENT = {"time_to_first_token": "ttft", "request_latency": "e2el"}
_BENCH_SERVE = {"time_per_output_token": "tpot", "inter_token_latency": "itl"}
FAMILIES: dict[str, dict[str, str]] = {
    VLLM: _BENCH_SERVE,
    INFERENCE_MAX: _BENCH_SERVE,
    INFERENCE_PERF: {
        "time_per_output_token": "tpot_client_tokens",
        "inter_token_latency": "itl_client_tokens",
        "normalized_time_per_output_token": "tpot_with_first_client_tokens",
    },
    GUIDELLM: {"inter_token_latency": "tpot"},  # its time_per_output_token changed its meaning in 0.4
    AIPERF: {"inter_token_latency": "tpot_client_tokens"},
}
"""What each client means by a latency; one that is not listed stays under the report's own name, nobody says what it is."""
_COLUMN_FAMILIES = frozenset({"ttft", "tpot", "itl", "e2el"})
SHORTEST_SHARE = 0.999
"""A mean end-to-end latency below this share of the mean time to first token is impossible."""
_LIKE_V01 = re.compile(r"^[\"']?metrics[\"']?:", re.M)
_LIKE_V02 = re.compile(r"^[\"']?results[\"']?:", re.M)


def read_v01(record: dict[str, Any], given: Given) -> Reading:
    """Return a report of version 0.1 as a reading; raises InputError naming the field that is wrong or missing."""
    if str(record.get("version")) != "0.1":
        raise InputError(f"version: {str(record.get('version'))[:20]!r} is not known (0.1, 0.2 and 0.2.1 are)")
    scenario, metrics = mapping(record, "scenario", ""), mapping(record, "metrics", "")
    load = llmd_load.load_v01(scenario)
    if load.tool == "nop" or _is_sessions(scenario):
        raise InputError("scenario.load: no requests were timed one by one, so that the latencies in the report mean nothing")
    stack = llmd_stack.stack_v01(scenario)
    model = mapping(scenario, "model", "scenario")
    times, requests = mapping(metrics, "time", "metrics"), mapping(metrics, "requests", "metrics")
    throughput = mapping(metrics, "throughput", "metrics")
    rates = {
        kind: metric(f"metrics.throughput.{kind}_tokens_per_sec", throughput[f"{kind}_tokens_per_sec"])
        for kind in ("total", "output", "input")
        if throughput.get(f"{kind}_tokens_per_sec") is not None
    }
    other = {}
    if throughput.get("requests_per_sec") is not None:
        other["request_throughput"] = metric("metrics.throughput.requests_per_sec", throughput["requests_per_sec"])
    sent, failed = _requests(requests, load.tool, "metrics.requests", completed_only=load.tool in (VLLM, INFERENCE_MAX))
    length = times.get("duration")
    return _reading(
        given,
        stack,
        load,
        model=told(model.get("name")),
        precision=told(model.get("quantization")),
        latency=(mapping(metrics, "latency", "metrics"), "metrics.latency"),
        rates=rates,
        other=other,
        lengths=(requests, "metrics.requests"),
        requests=sent,
        requests_failed=failed,
        duration_s=None if length is None else metric("metrics.time.duration", length) or None,
        measured_at=epoch(times.get("start")),
    )


def read_v02(record: dict[str, Any], given: Given) -> Reading:
    """Return a report of version 0.2 or 0.2.1 as a reading; raises InputError naming the field that is wrong or missing."""
    if str(record.get("version")) not in ("0.2", "0.2.1"):
        raise InputError(f"version: {str(record.get('version'))[:20]!r} is not known (0.1, 0.2 and 0.2.1 are)")
    run, scenario = mapping(record, "run", ""), mapping(record, "scenario", "")
    results = mapping(record, "results", "")
    where = "results.request_performance.aggregate"
    aggregate = mapping(mapping(results, "request_performance", "results"), "aggregate", "results.request_performance")
    if not aggregate:
        raise InputError(f"{where}: not in the report, so that no request is timed in it (a report of sessions has none)")
    load = llmd_load.load_v02(scenario, str(run.get("uid")))
    stack = llmd_stack.stack_v02(scenario)
    requests, throughput = mapping(aggregate, "requests", where), mapping(aggregate, "throughput", where)
    means = {
        name: _mean(throughput, name, f"{where}.throughput", REQUEST_RATE if name == "request_rate" else RATE)
        for name in ("total_token_rate", "output_token_rate", "input_token_rate", "request_rate")
    }
    sent, failed = _requests(requests, load.tool, f"{where}.requests")
    times = mapping(run, "time", "run")
    return _reading(
        given,
        stack,
        load,
        model=llmd_stack.same(engine.model for engine in stack.engines),
        precision=None,
        latency=(mapping(aggregate, "latency", where), f"{where}.latency"),
        rates={kind: value for kind in ("total", "output", "input") if (value := means[f"{kind}_token_rate"]) is not None},
        other={} if means["request_rate"] is None else {"request_throughput": means["request_rate"]},
        lengths=(requests, f"{where}.requests"),
        requests=sent,
        requests_failed=failed,
        duration_s=duration(times, load.tool, given, whole_run=bool(scenario)),
        measured_at=clock_v02(record, given, strict=False),
    )


def _reading(
    given: Given,
    stack: Stack,
    load: Load,
    *,
    model: str | None,
    precision: str | None,
    latency: tuple[Mapping[str, Any], str],
    rates: Mapping[str, float],
    other: Mapping[str, float],
    lengths: tuple[Mapping[str, Any], str],
    **rest: Any,
) -> Reading:
    metrics, named = _latencies(*latency, load.tool)
    gpus = _gpus(stack, given)
    by_role, throughput = _throughput(stack, rates)
    sizes = llmd_stack.single_sizes(stack)
    engine = llmd_stack.same(engine.name for engine in stack.engines)
    requests, where = lengths
    return assembled(
        Told(
            definition=f"llm-d report, {load.tool or 'client not told'}{', per role' if stack.disaggregated else ''}",
            engine=engine,
            framework=_framework(stack, engine),
            engine_version=llmd_stack.same(engine.version for engine in stack.engines),
            image=llmd_stack.same(engine.image for engine in stack.engines),
            hardware=_hardware(stack),
            hardware_label=llmd_stack.joined(engine.accelerator for engine in stack.engines),
            num_gpus=gpus,
            model=model,
            precision=_precision(precision, stack),
            spec_decoding=_spec_decoding(stack),
            tp=sizes.tp,
            pp=sizes.pp,
            ep=sizes.ep,
            dp_attention=None if sizes.dp is None else sizes.dp > 1,
            disagg=stack.disaggregated if stack.engines else None,
            isl=load.isl,
            osl=load.osl,
            concurrency=rest["requests"] if load.arrival == "burst" else load.concurrency,
            request_rate=load.rate,
            workload=load.workload,
            recipe=llmd_stack.joined(engine.recipe for engine in stack.engines),
            arrival=load.arrival,
            scenario=load.scenario,
            identity=llmd_stack.identity(stack),
            throughput=throughput,
            metrics={**metrics, **by_role},
            other={**named, **other},
            isl_mean=_mean(requests, "input_length", where, COUNT),
            osl_mean=_mean(requests, "output_length", where, COUNT),
            **rest,
        ),
        given,
    )


def _gpus(stack: Stack, given: Given) -> int | None:
    """Return the GPUs of the deployment; asks for them where the report has sizes that its count contradicts.

    Sizes of one engine say nothing of the number of replicas, so that tensor-parallel ranks alone are no answer.
    """
    found = llmd_stack.total_gpus(stack.engines)
    if found is None and stack.engines and "num_gpus" not in given.declared:
        raise InputError(
            "num_gpus: accelerator.count and parallelism do not tell it (of a pod, a replica or all?); "
            "declare it in a shiftlog.yaml beside the report or with --set num_gpus=8"
        )
    return found


def _throughput(stack: Stack, rates: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return output per decode GPU and input per prefill GPU of a disaggregated deployment, and what is divided by all GPUs."""
    if not stack.disaggregated:
        return {}, dict(rates)
    found = {}
    for kind, role in (("output", DECODE), ("input", PREFILL)):
        gpus = llmd_stack.total_gpus(stack.of_role(role))
        if kind in rates and gpus:
            found[f"{kind}_tput_per_gpu"] = rates[kind] / gpus
    return found, {kind: rate for kind, rate in rates.items() if kind == "total"}


def _framework(stack: Stack, engine: str | None) -> str | None:
    """Return the serving stack: llm-d's where it is named or where its router stands before the engines."""
    llmd = bool(stack.router) or any(part.llmd for part in stack.engines)
    return f"llmd-{engine}" if llmd and engine else None


def _hardware(stack: Stack) -> str | None:
    return llmd_stack.hardware_of(stack.of_role(DECODE) if stack.disaggregated else stack.engines)


def _precision(stated: str | None, stack: Stack) -> str | None:
    """Return the precision of the weights where it is stated; `dtype` is none, because a quantised checkpoint has one as well."""
    if stated:
        return stated
    found: str | None = llmd_stack.same(precision_of(told(engine.arguments.get("quantization"))) for engine in stack.engines)
    return found


def _spec_decoding(stack: Stack) -> str | None:
    parts = (engine.arguments.get("speculative-config") for engine in stack.engines)
    return llmd_stack.joined(told(part.get("method")) for part in parts if isinstance(part, Mapping))


def _latencies(latency: Mapping[str, Any], where: str, tool: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return latencies that have columns, and the others by the name of their definition, all in seconds."""
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    for name in ("time_to_first_token", "request_latency", *_BENCH_SERVE, "normalized_time_per_output_token"):
        family = _BY_CLIENT.get(name) or FAMILIES.get(tool, {}).get(name, name)
        units = TIME if name in _BY_CLIENT else TIME_PER_TOKEN
        for statistic, value in _statistics(latency, name, where, units).items():
            (metrics if family in _COLUMN_FAMILIES else other)[f"{family}_{statistic}"] = value
    ttft, e2el = metrics.get("ttft_mean"), metrics.get("e2el_mean")
    if ttft and e2el is not None and e2el < SHORTEST_SHARE * ttft:
        raise InputError(
            f"{where}.request_latency: mean {e2el:g} s is shorter than the time to first token, {ttft:g} s; "
            "one of the two has the wrong units (reports of GuideLLM results made before 2026-08-17 call seconds ms)"
        )
    return metrics, other


def _statistics(parent: Mapping[str, Any], name: str, where: str, units: Mapping[str, float]) -> dict[str, float]:
    """Return the statistics that have columns, in the base unit; raises InputError for a unit that is none of *units*."""
    given = mapping(parent, name, where)
    if all(given.get(key) is None for key in STATISTICS):
        return {}
    unit = given.get("units")
    if not isinstance(unit, str) or unit not in units:
        raise InputError(f"{where}.{name}.units: {str(unit)[:40]!r} is none of {', '.join(units)}")
    return {
        statistic: metric(f"{where}.{name}.{key}", given[key], per=units[unit])
        for key, statistic in STATISTICS.items()
        if given.get(key) is not None
    }


def _mean(parent: Mapping[str, Any], name: str, where: str, units: Mapping[str, float]) -> float | None:
    return _statistics(parent, name, where, units).get("mean")


def _requests(requests: Mapping[str, Any], tool: str, where: str, completed_only: bool = False) -> tuple[int | None, int | None]:
    """Return requests sent and failed; both None where the converter writes something else by those names."""
    if completed_only or tool == AIPERF:
        return None, None
    total, failures = requests.get("total"), requests.get("failures")
    return (
        None if total is None else whole(f"{where}.total", total),
        None if failures is None else whole(f"{where}.failures", failures),
    )


def _is_sessions(scenario: Mapping[str, Any]) -> bool:
    load = mapping(scenario, "load", "scenario")
    return mapping(load, "metadata", "scenario.load").get("file_type") == "session_lifecycle"


def text_v01(text: str) -> Iterator[Item | Fault] | None:
    """Return the report in a YAML text of version 0.1; None where it is none."""
    return _yaml(text, FORMAT_V01) if _LIKE_V01.search(text) and "scenario" in text else None


def text_v02(text: str) -> Iterator[Item | Fault] | None:
    """Return the report in a YAML text of version 0.2; None where it is none."""
    return _yaml(text, FORMAT_V02) if _LIKE_V02.search(text) and "request_performance" in text else None


def _yaml(text: str, record_format: RecordFormat) -> Iterator[Item | Fault] | None:
    try:
        value = yaml_text.value(text)
    except InputError as error:
        return iter([Fault("", str(error), text[:200])])
    if not record_format.recognises(value) or record_format.clean is None:
        return None
    return iter([Item("", record_format.clean(value))])


FORMAT_V01 = RecordFormat(
    "llm-d-0.1",
    "llm-d benchmark report, version 0.1 (YAML or JSON)",
    frozenset({"scenario", "metrics"}),
    read_v01,
    without=frozenset({"results", "benchmarks"}),
    text=text_v01,
    origin=origin_v01,
    clean=kept_v01,
    dictionary=V01_DICTIONARY,
)
FORMAT_V02 = RecordFormat(
    "llm-d-0.2",
    "llm-d benchmark report, versions 0.2 and 0.2.1 (YAML or JSON), and inference-perf's own part of one",
    frozenset({"run", "results"}),
    read_v02,
    without=frozenset({"metrics", "configs"}),
    text=text_v02,
    origin=origin_v02,
    clean=kept_v02,
    dictionary=V02_DICTIONARY,
)
FORMATS = (FORMAT_V01, FORMAT_V02)
