"""LLMPerf `token_benchmark_ray.py`: summaries, and lists of individual responses put together into one.

Facts: LLMPerf `token_benchmark_ray.py`, its clients and `utils.py` (Apache-2.0), and real records.
Traps read here: `inter_token_latency_s` is the whole latency over the output tokens, so it holds the first token; tokens are
counted by the client with one tokenizer for every model; least and greatest counts and the map of errors are texts; every
statistic is of the requests that survived, and there are records where seven of eight failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.numbers import LAST_CLOCK, is_number, metric
from pipelines.ingest.origins import day_run
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools.fields import count, number, text
from pipelines.ingest.tools.plain_names import model_name
from warehouse import vocabulary
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

MARKERS = frozenset({"results_ttft_s_mean", "results_inter_token_latency_s_mean", "results_num_requests_started"})
RESPONSE = frozenset({"error_code", "inter_token_latency_s", "ttft_s", "end_to_end_latency_s", "number_output_tokens"})
DEFINITION = "llmperf"
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_FAMILIES = {"inter_token_latency_s": "tpot_with_first_client_tokens", "ttft_s": "ttft", "end_to_end_latency_s": "e2el"}
_COUNTS = ("number_input_tokens", "number_output_tokens")
_QUANTILES = (25, 50, 75, 90, 95, 99)
_STATISTICS = {
    "mean": "mean", "quantiles_p50": "median", "quantiles_p90": "p90", "quantiles_p95": "p95", "quantiles_p99": "p99",
    "stddev": "std",
}  # fmt: skip
_KEPT = frozenset({
    "version", "model", "model_size", "framework", "mean_input_tokens", "stddev_input_tokens", "mean_output_tokens",
    "stddev_output_tokens", "num_concurrent_requests", "timestamp",
})  # fmt: skip
_NAMES = ("_summary", "_individual_responses")


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without addresses and whatever else a user added; of the model no folders."""
    kept = {
        key: value
        for key, value in record.items()
        if (key in _KEPT or key.startswith("results_")) and not isinstance(value, list | dict)
    }
    if isinstance(kept.get("model"), str):
        kept["model"] = model_name(kept["model"])
    return kept


def unpack(value: Any) -> Iterator[Item | Fault] | None:
    """Return the summary of a list of individual responses, as the tool would have written it; None: it is no such list."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict) or not value[0].keys() >= RESPONSE:
        return None
    odd = next((place for place, one in enumerate(value) if not isinstance(one, dict)), None)
    return iter([_summary(value) if odd is None else _no_response(value[odd], odd)])


def _no_response(odd: Any, place: int) -> Fault:
    """Return why a list is not summed up: without one of its responses it would pass for another measurement."""
    return odd if isinstance(odd, Fault) else Fault(f"/{place}", f"/{place}: no response; the list is not summed up")


def _summary(responses: Sequence[dict[str, Any]]) -> Item | Fault:
    survived = [one for one in responses if one.get("error_code") is None]
    record: dict[str, Any] = {
        "results_num_requests_started": len(responses),
        "results_number_errors": len(responses) - len(survived),
        "results_num_completed_requests": len(survived),
    }
    for key in (*_FAMILIES, *_COUNTS):
        try:
            values = [metric(key, one.get(key)) for one in survived]
        except InputError as error:
            return Fault("", f"of a response that survived: {error}")
        record |= {f"results_{key}_{name}": found for name, found in _statistics(values).items()}
    return Item("", record)


def _statistics(values: list[float]) -> dict[str, float | None]:
    """Return mean, deviation of a sample and quantiles, between neighbours in proportion, as the tool does."""
    if not values:
        return {"mean": None}
    mean = math.fsum(values) / len(values)
    ordered = sorted(values)
    found: dict[str, float | None] = {f"quantiles_p{share}": _quantile(ordered, share / 100) for share in _QUANTILES}
    if len(values) > 1:
        found["stddev"] = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return {"mean": mean, **found}


def _quantile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return a summary as a reading; raises InputError naming the field that is wrong or asking for what nobody said."""
    completed = count(record, "results_num_completed_requests")
    if completed == 0 or record.get("results_ttft_s_mean") is None:
        raise InputError("results_num_completed_requests: no request succeeded")
    output = number(record, "results_mean_output_throughput_token_per_s")
    metrics, other = _metrics(record)
    told = Told(
        definition=DEFINITION,
        framework=_framework(record),
        model=model_name(text(record, "model")),
        **_workload(record),
        concurrency=count(record, "num_concurrent_requests", least=1),
        throughput={} if output is None else {"output": output},
        metrics=metrics,
        other=other,
        measured_at=_clock(record),
        requests=count(record, "results_num_requests_started"),
        requests_failed=count(record, "results_number_errors"),
        duration_s=_duration(record, completed),
        isl_mean=number(record, "results_number_input_tokens_mean"),
        osl_mean=number(record, "results_number_output_tokens_mean"),
    )
    return assembled(told, given)


def _framework(record: Mapping[str, Any]) -> str | None:
    """Return the serving stack, where the user's own `framework` is one that is known: it may name a company as well."""
    name = text(record, "framework")
    return name if name and vocabulary.framework(name).known else None


def _workload(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return nominal lengths and workload: lines of sonnets, lengths drawn from a normal distribution."""
    isl, osl = count(record, "mean_input_tokens", least=1), count(record, "mean_output_tokens", least=1)
    spread = [number(record, f"stddev_{side}_tokens") or 0.0 for side in ("input", "output")]
    drawn = f", deviation {spread[0]:g}, {spread[1]:g}" if any(spread) else ""
    return {"isl": isl, "osl": osl, "workload": f"sonnet{drawn}"}


def _duration(record: Mapping[str, Any], completed: int | None) -> float | None:
    """Return the length of the test, s: completed requests over completed requests a minute."""
    rate = number(record, "results_num_completed_requests_per_min")
    return completed / rate * 60 if completed and rate else None


def _metrics(record: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return latencies by column, s, and other numbers; a deviation of one request is no number and left out."""
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    for key, family in _FAMILIES.items():
        for name, statistic in _STATISTICS.items():
            value = record.get(field := f"results_{key}_{name}")
            if value is not None and not (statistic == "std" and value == "NaN"):
                column = f"{family}_{statistic}"
                (metrics if column in _COLUMNS else other)[column] = metric(field, value)
    if (rate := number(record, "results_num_completed_requests_per_min", per=60)) is not None:
        other["request_throughput"] = rate
    return metrics, other


def origin(record: dict[str, Any], given: Given) -> Origin | None:  # noqa: ARG001 the contract's shape
    """Return the run of the UTC day on which the summary was written; None where it has no time (individual responses)."""
    clock = _clock(record)
    return None if clock is None else day_run(clock)


def _clock(record: Mapping[str, Any]) -> datetime | None:
    """Return when the summary was written, which is the end of the test; raises InputError."""
    value = record.get("timestamp")
    if value is None:
        return None
    if not is_number(value) or not 0 < value < LAST_CLOCK:
        raise InputError(f"timestamp: {str(value)[:60]} is not a time in seconds")
    return datetime.fromtimestamp(value, UTC)


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return the nominal lengths in a file's name: `…_550_150_individual_responses.json`. Its model lost dots and slashes."""
    stem = path.stem
    for name in _NAMES:
        if stem.endswith(name):
            parts = stem[: -len(name)].rsplit("_", 2)
            if len(parts) == 3 and all(part.isascii() and part.isdigit() and int(part[:9]) > 0 for part in parts[1:]):
                return {"isl": parts[1][:9], "osl": parts[2][:9]}
    return {}


FORMAT = RecordFormat(
    "llmperf",
    "LLMPerf token benchmark results (summary and individual responses)",
    MARKERS,
    read,
    unpack=unpack,
    origin=origin,
    hints=hints,
    clean=clean,
    dictionary=Dictionary(
        fields=(
            Field("model", "model"),
            Field("framework", "framework", note="where it is a known one; users write companies there"),
            Field("num_concurrent_requests", "concurrency", "requests"),
            Field("mean_input_tokens, mean_output_tokens", "isl", "tokens", "and `osl`; of individual responses the file's name"),
            Field("stddev_input_tokens, stddev_output_tokens", "workload", "tokens"),
            Field("timestamp", "measured_at", "Unix s", "the end of the test"),
            Field("results_num_requests_started", "requests"),
            Field("results_number_errors", "requests_failed"),
            Field("results_num_completed_requests_per_min", "duration_s", note="completed over it; and request_throughput"),
            Field("results_ttft_s_*", "ttft_*", "s"),
            Field("results_end_to_end_latency_s_*", "e2el_*", "s"),
            Field("results_inter_token_latency_s_*", "tpot_with_first_client_tokens_*", "s", "the first token is in it"),
            Field("results_mean_output_throughput_token_per_s", "output_tput_per_gpu", "tok/s", "whole system"),
            Field("results_number_input_tokens_mean", "isl_mean", "tokens"),
            Field("results_number_output_tokens_mean", "osl_mean", "tokens"),
        ),
        left_out=(
            ("api and other metadata of the user's", "may hold addresses"),
            ("name", "the file's name, in which the model lost its dots"),
            ("results_request_output_throughput_token_per_s", "counts chunks, not tokens, in real records: a fifth of the speed"),
            ("error_msg", "answers of servers"),
            ("results_*_min, results_*_max", "single requests; of token counts they are texts"),
        ),
        traps=(
            "Tokens are counted by the client; older versions count by the Llama tokenizer, whatever the model.",
            "Statistics are of the requests that survived: error rates of 0.87 and 0.33 exist.",
            "A summary and its individual responses are one measurement: give one. Only the summary tells model and load.",
            "Clients wait for each other: as many requests as are asked for are in flight only at times.",
        ),
        needs=("engine", "hardware", "num_gpus", "precision"),
    ),
)
