"""GuideLLM reports (`benchmarks.json`, `.yaml`): one file, many benchmarks, one record each, without its requests.

Facts: real reports of GuideLLM 0.8 (schema 2), a fixture of 0.3 in its repository, and the code of 0.2 to 0.8 (Apache-2.0). Traps
read here: `request_latency` in seconds beside `*_ms`; a metric that changed its meaning under one name in 0.4; zeros that stand
for "not told"; rates whose mean alone is comparable; requests that were cut off at the end and are no failures.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import LAST_CLOCK, is_number, metric, whole
from pipelines.ingest.origins import LOCAL, day_run
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools.guidellm_report import STATUSES, text, unpack
from pipelines.ingest.tools.guidellm_workload import workload
from pipelines.ingest.tools.taming import at, text_at
from warehouse.errors import InputError

MARKERS = frozenset({"guidellm", "benchmark"})
STATISTICS = {"mean": ("mean",), "median": ("median",), "std": ("std_dev",)} | {
    name: ("percentiles", name) for name in ("p90", "p95", "p99", "p999")
}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return a benchmark as a reading; raises InputError naming the field that is wrong, or asking for what it does not hold."""
    benchmark = record.get("benchmark")
    if not isinstance(benchmark, dict):
        raise InputError("benchmark: an object is wanted")
    totals = at(benchmark, "metrics", "request_totals") or at(benchmark, "request_totals")
    counts = {status: whole(f"metrics.request_totals.{status}", at(totals, status) or 0) for status in STATUSES}
    if not counts["successful"]:
        raise InputError("metrics.request_totals.successful: 0: no request succeeded, so that nothing was measured")
    client = at(benchmark, "config", "prefer_response_metrics") is False
    return assembled(
        Told(
            definition=_definition(benchmark, client),
            engine="vllm" if (_backend(record) or "").startswith("vllm_python") else None,
            model=_model(record),
            **_load(benchmark),
            **workload(record),
            throughput=_throughput(benchmark),
            metrics=_metrics(benchmark, client),
            other=_other(benchmark, client),
            measured_at=_start(benchmark, "start_time"),
            requests=counts["total"] or counts["successful"] + counts["incomplete"] + counts["errored"],
            requests_failed=counts["errored"],
            duration_s=_duration(benchmark),
            isl_mean=_told(benchmark, "prompt_token_count", "mean") or None,
            osl_mean=_told(benchmark, "output_token_count", "mean") or None,
        ),
        given,
    )


def _early(benchmark: dict[str, Any]) -> bool:
    """Say whether a benchmark is of a version before 0.4: its strategy stands in `args`."""
    return "config" not in benchmark


def _definition(benchmark: dict[str, Any], client: bool) -> str:
    if _early(benchmark):
        return "guidellm before 0.4"
    return "guidellm, client tokens" if client else "guidellm"


def _load(benchmark: dict[str, Any]) -> dict[str, Any]:
    """Return concurrency, or rate and arrival, of the strategy that scheduled the requests."""
    strategy = at(benchmark, "config", "strategy") or at(benchmark, "args", "strategy")
    kind = text_at(strategy, "type_")
    if kind == "synchronous":
        return {"concurrency": 1}
    if kind == "concurrent":
        return {"concurrency": whole("config.strategy.streams", at(strategy, "streams"), 1)}
    if kind == "throughput":
        limit = at(strategy, "max_concurrency")
        return {"arrival": "burst", "concurrency": None if limit is None else whole("config.strategy.max_concurrency", limit, 1)}
    if kind in ("constant", "poisson"):
        return _rate(benchmark, strategy, kind)
    if kind == "trace":
        return {"arrival": "trace"}
    raise InputError(f"config.strategy.type_: {str(kind)[:40]!r} is not known")


def _rate(benchmark: dict[str, Any], strategy: Any, kind: str) -> dict[str, Any]:
    """Return rate and arrival; only the profile tells a limit that was asked for, the strategy always has one of its own."""
    if not (rate := metric("config.strategy.rate", at(strategy, "rate"))):
        raise InputError("config.strategy.rate: 0 is no rate")
    limit = at(benchmark, "config", "profile", "max_concurrency")
    return {"request_rate": rate, "arrival": kind if limit is None else f"{kind}, at most {whole('max_concurrency', limit, 1)}"}


def _told(benchmark: dict[str, Any], name: str, statistic: str, per: float = 1.0) -> float | None:
    """Return a statistic of successful requests; None where it is not told."""
    value = at(benchmark, "metrics", name, "successful", *STATISTICS.get(statistic, (statistic,)))
    return None if value is None else metric(f"metrics.{name}.successful.{statistic}", value, per)


def _family(benchmark: dict[str, Any], name: str, family: str, per: float) -> dict[str, float]:
    """Return the statistics of a latency in seconds (*per* of its units are one); empty where a request has none.

    GuideLLM writes 0 for a request that told none (no stream, no first token), which spoils every statistic: no latency is 0.
    """
    if _told(benchmark, name, "min") == 0:
        return {}
    found = {statistic: _told(benchmark, name, statistic, per) for statistic in STATISTICS}
    return {f"{family}_{statistic}": value for statistic, value in found.items() if value is not None}


def _metrics(benchmark: dict[str, Any], client: bool) -> dict[str, float]:
    found = _family(benchmark, "request_latency", "e2el", 1) | _family(benchmark, "time_to_first_token_ms", "ttft", 1000)
    return found if client else found | _family(benchmark, "inter_token_latency_ms", "tpot", 1000)


def _other(benchmark: dict[str, Any], client: bool) -> dict[str, float]:
    """Return what has no column; `time_per_output_token_ms` before 0.4 left the first token's time out and counted the token."""
    found: dict[str, float | None] = {
        "request_throughput": _per_second(benchmark, "request_latency", "requests_per_second", "count"),
        "request_goodput": _told(benchmark, "request_goodput", "mean"),
        "request_concurrency_mean": _told(benchmark, "request_concurrency", "mean"),
        "output_tokens_per_iteration_mean": _told(benchmark, "output_tokens_per_iteration", "mean"),
    }
    found |= _family(benchmark, "time_to_first_output_token_ms", "ttfot", 1000)
    if client:
        found |= _family(benchmark, "inter_token_latency_ms", "tpot_client_tokens", 1000)
    elif not _early(benchmark):
        found |= _family(benchmark, "time_per_output_token_ms", "tpot_with_first", 1000)
    return {name: value for name, value in found.items() if value is not None}


def _throughput(benchmark: dict[str, Any]) -> dict[str, float]:
    """Return throughput of the system, tok/s, by kind."""
    sides = {"input": "prompt", "output": "output"}
    found = {kind: _per_second(benchmark, f"{name}_token_count", f"{name}_tokens_per_second") for kind, name in sides.items()}
    if found["input"] is not None and found["output"] is not None:
        found["total"] = found["input"] + found["output"]
    return {kind: value for kind, value in found.items() if value}


def _per_second(benchmark: dict[str, Any], counts: str, rates: str, sum_of: str = "total_sum") -> float | None:
    """Return what successful requests brought in a second: their sum over the duration.

    Where warm-up or cool-down were cut off, requests that reach over the edge count in full in the sum, so that the tool's own
    mean rate holds, which counts tokens and not requests. It is not used else: before 0.4 it was wrong for the total.
    """
    if any(at(benchmark, f"{edge}_duration") for edge in ("warmup", "cooldown")):
        return _told(benchmark, rates, "mean")
    total, duration = _told(benchmark, counts, sum_of), _duration(benchmark)
    return total / duration if total is not None and duration else None


def _duration(benchmark: dict[str, Any]) -> float | None:
    value = benchmark.get("duration")
    return None if value is None else metric("duration", value)


def _backend(record: dict[str, Any]) -> str | None:
    return text_at(record, "benchmark", "config", "backend", "kind") or text_at(record, "spec", "backend", "kind")


def _model(record: dict[str, Any]) -> str | None:
    """Return the model; the benchmark's own counts first, because a report may leave it to the server."""
    return (
        text_at(record, "benchmark", "config", "backend", "model")
        or text_at(record, "spec", "backend", "model")
        or text_at(record, "benchmark", "worker", "backend_model")
        or text_at(record, "args", "model")
        or text_at(record, "args", "backend_kwargs", "model")
    )


def _start(holder: Any, field: str) -> datetime | None:
    """Return an instant that is told in Unix seconds; raises InputError where it is none."""
    value = at(holder, field)
    if value is None:
        return None
    if not is_number(value) or not 0 < value < LAST_CLOCK:
        raise InputError(f"{field}: {str(value)[:60]!r} is no Unix time in seconds")
    return datetime.fromtimestamp(value, UTC)


def origin(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the run that a report states (`run_id`, from its first benchmark on); a report of one benchmark is of its day.

    A loop over concurrencies in a shell writes a report for each, and together they are one sweep.
    """
    benchmark = record.get("benchmark")
    start = _start(record.get("report"), "start_time") or _start(benchmark, "start_time")
    if start is None:
        return None
    run_id = text_at(benchmark, "config", "run_id") or text_at(benchmark, "run_id")
    alone = at(record, "report", "benchmarks") == 1
    return day_run(start) if alone or run_id is None else Origin(LOCAL, run_id[:200], start, name="GuideLLM report")


FORMAT = RecordFormat(
    "guidellm",
    "GuideLLM reports (benchmarks.json, benchmarks.yaml), schemas 1 and 2 and those before",
    MARKERS,
    read,
    unpack=unpack,
    text=text,
    origin=origin,
    dictionary=Dictionary(
        fields=(
            Field("metrics.request_latency", "e2el_*", "s", "of successful requests, as all below"),
            Field("metrics.time_to_first_token_ms", "ttft_*", "ms"),
            Field("metrics.inter_token_latency_ms", "tpot_*", "ms", "of a request; the statistics are weighted by its tokens"),
            Field("metrics.inter_token_latency_ms", "tpot_client_tokens_*", "ms", "with prefer_response_metrics false"),
            Field("metrics.time_per_output_token_ms", "tpot_with_first_*", "ms", "weighted by tokens", "0.4"),
            Field("metrics.time_to_first_output_token_ms", "ttfot_*", "ms", "", "0.8"),
            Field("metrics.prompt_token_count", "input_tput_per_gpu", "tokens", "sum over duration"),
            Field("metrics.output_token_count", "output_tput_per_gpu", "tokens", "sum over duration"),
            Field("prompt and output rate", "tput_per_gpu", "tok/s", "their sum"),
            Field(
                "metrics.prompt_tokens_per_second", "input_tput_per_gpu", "tok/s", "mean, where warm-up or cool-down were cut off"
            ),
            Field("metrics.output_tokens_per_second", "output_tput_per_gpu", "tok/s", "mean, as above"),
            Field("metrics.request_latency.successful.count", "request_throughput", "requests", "over duration"),
            Field("metrics.request_goodput", "request_goodput", "requests/s", "mean"),
            Field("metrics.request_concurrency", "metrics_other", "requests", "mean"),
            Field("metrics.output_tokens_per_iteration", "metrics_other", "tokens", "mean"),
            Field("metrics.request_totals.total", "requests", "requests"),
            Field("metrics.request_totals.errored", "requests_failed", "requests", "incomplete ones were cut off at the end"),
            Field("metrics.prompt_token_count", "isl_mean", "tokens"),
            Field("metrics.output_token_count", "osl_mean", "tokens"),
            Field("duration", "duration_s", "s"),
            Field("start_time", "measured_at", "s", "Unix time"),
            Field("config.strategy", "concurrency", "", "concurrent: streams; synchronous: 1; throughput: its limit, if any"),
            Field("config.strategy", "request_rate", "requests/s", "constant, poisson"),
            Field("config.strategy", "arrival", "", "constant, poisson, trace; throughput: burst"),
            Field("config.spec.data, args.data", "isl", "tokens", "nominal, of synthetic text"),
            Field("config.spec.data, args.data", "osl", "tokens", "nominal, of synthetic text"),
            Field("config.spec.data, args.data", "workload", "", "the data set's name, or synthetic with its spread"),
            Field("config.backend.model", "model"),
            Field("config.backend.kind", "engine", "", "vllm_python: vllm; an HTTP backend tells none"),
        ),
        left_out=(
            ("requests", "prompts and outputs"),
            ("config.spec.backend.api_key, target, paths", "keys, addresses, paths"),
            ("metrics.text, image, video, audio, tool_call", "words, pixels and bytes; no metric here is defined by them"),
            ("median, percentiles of *_per_second", "weighted momentary rates: a real file has median 0.4 beside mean 3.2"),
            ("time_per_output_token_ms before 0.4", "(last - first token) / tokens: neither of the two definitions"),
            ("benchmarks.csv", "the same measurement as the JSON beside it; a second point would pass for a repeat"),
        ),
        traps=(
            "p001 is the share 0.1 %, p999 is 99.9 %.",
            "0 stands for a latency that a request did not tell; a metric with such a request is not read.",
            "Tokens are those that the server told; where it told none, GuideLLM counts chunks without saying so.",
            "A report of several benchmarks is a run (run_id); reports of one benchmark are of the run of their UTC day.",
        ),
        needs=("engine", "hardware", "num_gpus", "precision"),
    ),
)
