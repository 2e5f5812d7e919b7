"""AIPerf's summary, `profile_export_aiperf.json`: one object a benchmark, metric blocks that state their unit.

Facts: real exports of AIPerf 0.11 and 0.13 (schema 1.3, 1.4) and the metric classes of the 0.3, 0.8 and 0.13 packages
(Apache-2.0). Traps read here: lengths by the tokenizer of the client although the server told its own, a TPOT that follows them,
throughput over another span than `benchmark_duration`, an error count that is missing where it is nought, naive local times.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.declarations import placed
from pipelines.ingest.json_text import LeftOut
from pipelines.ingest.numbers import is_number, whole
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools.aiperf_config import clean, load, model, workload
from pipelines.ingest.tools.taming import at
from pipelines.ingest.tools.unit_blocks import REQUEST_RATES, REQUESTS, TIMES, TOKEN_RATES, TOKENS, need, seconds, statistic
from warehouse.errors import InputError

MARKERS = frozenset({"aiperf_version", "request_latency"})
"""Two, so that AIPerf's other exports (server metrics: `aiperf_version` without a latency) are no near misses."""
EARLY_MARKERS = frozenset({"was_cancelled", "request_latency"})
"""Exports of versions that did not write their own (0.3 and before)."""
_YEARS = range(2000, 2097)


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return an export as a reading; raises InputError naming the field that is wrong, or asking for what it does not hold."""
    if record.get("was_cancelled") is True:
        raise InputError("was_cancelled: the benchmark was cancelled, so that its numbers are of a part of the load")
    if record.get("is_complete") is False:
        raise InputError("is_complete: false: the benchmark broke off, so that its numbers are of a part of the load")
    need(record, "request_latency")
    counter, throughput, lengths = _tokens(record)
    succeeded, failed = _count(record, "request_count"), _failed(record)
    return assembled(
        Told(
            definition=f"aiperf, {counter} tokens",
            model=model(record),
            **load(record),
            **workload(record),
            throughput=throughput,
            metrics=_metrics(record, counter),
            other=_other(record, counter),
            measured_at=_measured(record, given),
            requests=None if succeeded is None else succeeded + failed,
            requests_failed=failed,
            duration_s=statistic(record, "benchmark_duration", TIMES),
            isl_mean=lengths[0],
            osl_mean=lengths[1],
        ),
        given,
    )


# --- tokens -----------------------------------------------------------------------------------------------------------------


def _tokens(record: dict[str, Any]) -> tuple[str, dict[str, float], tuple[float | None, float | None]]:
    """Return who counted the tokens, throughput of the system in tok/s by kind, and mean input and output length.

    The server's count holds where it covers every request. Rates of it are tokens a request times requests a second, so that they
    are over the same span as AIPerf's own.
    """
    own = (statistic(record, "input_sequence_length", TOKENS), statistic(record, "output_sequence_length", TOKENS))
    usage = (_covering(record, "usage_prompt_tokens"), _covering(record, "usage_completion_tokens"))
    if _by_server(record) or usage[0] is None or usage[1] is None:
        rates = (
            _rate(record, "input_token_throughput", own[0]),
            _rate(record, "output_token_throughput", own[1]),
        )
        return "server" if _by_server(record) else "client", _by_kind(*rates), own
    return "server", _by_kind(_rate(record, "", usage[0]), _rate(record, "", usage[1])), usage


def _by_kind(inputs: float | None, outputs: float | None) -> dict[str, float]:
    total = None if inputs is None or outputs is None else inputs + outputs
    return {kind: value for kind, value in (("input", inputs), ("output", outputs), ("total", total)) if value is not None}


def _rate(record: dict[str, Any], name: str, each: float | None) -> float | None:
    """Return the rate that the record states as *name*, else requests a second times tokens *each*."""
    told = statistic(record, name, TOKEN_RATES) if name else None
    requests = statistic(record, "request_throughput", REQUEST_RATES)
    return told if told is not None or each is None or requests is None else each * requests


def _covering(record: dict[str, Any], name: str) -> float | None:
    """Return the mean of a count that the server told for every successful request; None where it did so for some or none."""
    told, all_ = at(record, name, "count"), at(record, "request_latency", "count")
    mean = statistic(record, name, TOKENS)
    return mean if mean and is_number(told) and told == all_ else None


def _by_server(record: dict[str, Any]) -> bool:
    """Say whether AIPerf took the server's counts for its own (`--use-server-token-count`)."""
    return at(record, "input_config", "endpoint", "use_server_token_count") is True


# --- latencies --------------------------------------------------------------------------------------------------------------


def _metrics(record: dict[str, Any], counter: str) -> dict[str, float]:
    found = seconds(record, "request_latency", "e2el")
    if _streams(record):
        found |= seconds(record, "time_to_first_token", "ttft") | seconds(record, "inter_chunk_latency", "itl")
        if _tpot_name(record) == "tpot":
            found |= seconds(record, "inter_token_latency", "tpot")
        elif counter == "server":
            found |= _tpot_of_equal_lengths(record)
    return found


def _streams(record: dict[str, Any]) -> bool:
    return at(record, "input_config", "endpoint", "streaming") is not False


def _tpot_name(record: dict[str, Any]) -> str:
    """Return the definition of `inter_token_latency`: what stands below the line depends on who counted."""
    if not _by_server(record):
        return "tpot_client_tokens"
    return "tpot_after_first_chunk" if at(record, "input_config", "endpoint", "per_chunk_usage") is True else "tpot"


def _tpot_of_equal_lengths(record: dict[str, Any]) -> dict[str, float]:
    """Return TPOT by the server's count where that was one for all requests: time after the first token over tokens after it."""
    least, most = (statistic(record, "usage_completion_tokens", TOKENS, key) for key in ("min", "max"))
    if least is None or least != most or least < 2:
        return {}
    return seconds(record, "decode_duration", "tpot", share=least - 1)


def _other(record: dict[str, Any], counter: str) -> dict[str, float]:
    found: dict[str, float | None] = {
        "request_throughput": statistic(record, "request_throughput", REQUEST_RATES),
        "request_goodput": statistic(record, "goodput", REQUEST_RATES),
    }
    if _streams(record):
        found |= seconds(record, "time_to_first_output_token", "ttfot")
        if (name := _tpot_name(record)) != "tpot":
            found |= seconds(record, "inter_token_latency", name)
    if counter == "server" and not _by_server(record):
        found["client_osl_mean"] = statistic(record, "output_sequence_length", TOKENS)
    return {name: value for name, value in found.items() if value is not None}


# --- counts and time -------------------------------------------------------------------------------------------------------


def _count(record: dict[str, Any], name: str) -> int | None:
    value = statistic(record, name, REQUESTS)
    return None if value is None else whole(f"{name}.avg", value)


def _failed(record: dict[str, Any]) -> int:
    """Return the failed requests; a run without any writes no count of them."""
    told = _count(record, "error_request_count")
    if told is None and isinstance(entries := record.get("error_summary"), list):
        return sum(whole("error_summary.count", at(entry, "count")) for entry in entries)
    return told or 0


def _clock(record: dict[str, Any]) -> datetime | None:
    """Return `start_time` as it is written; raises InputError where it is no time."""
    told = record.get("start_time")
    if told is None:
        return None
    try:
        clock = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        raise InputError(f"start_time: {str(told)[:60]!r} is no time") from None
    if clock.year not in _YEARS:
        raise InputError(f"start_time: {clock.year} is no year in which a benchmark can have run")
    return clock


def _measured(record: dict[str, Any], given: Given) -> datetime | None:
    clock = _clock(record)
    return clock if clock is None or clock.tzinfo else placed_or_none(clock, given, "start_time")


def origin(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of the day on which an export was measured; raises InputError that asks for `timezone`."""
    clock = _clock(record)
    if clock is None:
        return None
    return day_run(clock if clock.tzinfo else placed(clock, given.declared, "start_time"))


REQUEST_LINE = frozenset({"metadata", "metrics"})
"""Keys of a line of `profile_export.jsonl`."""
_REPEATED = "the same measurement as the JSON beside it"


def unpack(value: Any) -> Iterator[LeftOut] | None:
    """Know `profile_export.jsonl`, its lines or one of them, and take nothing: a second point would pass for a repeat."""
    lines = value if isinstance(value, list) else [value]
    if not lines or not all(isinstance(line, dict) and line.keys() >= REQUEST_LINE for line in lines):
        return None
    told = lines[0]["metadata"]
    return iter((LeftOut(f"one line a request of {_REPEATED}"),)) if isinstance(told, dict) and "x_request_id" in told else None


def text(content: str) -> Iterator[LeftOut] | None:
    """Know the CSV export and take nothing."""
    known = content.lstrip("\ufeff").startswith("Metric,avg,min,max,")
    return iter((LeftOut(f"{_REPEATED}, rounded, without load, model and time"),)) if known else None


FORMAT = RecordFormat(
    "aiperf",
    "AIPerf summaries (profile_export_aiperf.json)",
    MARKERS,
    read,
    origin=origin,
    clean=clean,
    unpack=unpack,
    text=text,
    dictionary=Dictionary(
        fields=(
            Field("request_latency", "e2el_*", "as stated"),
            Field("time_to_first_token", "ttft_*", "as stated", "streaming runs"),
            Field("inter_chunk_latency", "itl_*", "as stated", "over all chunks of all requests"),
            Field("inter_token_latency", "tpot_client_tokens_*", "as stated", "tokens by the client's tokenizer, the default"),
            Field("inter_token_latency", "tpot_*", "as stated", "with --use-server-token-count"),
            Field("inter_token_latency", "tpot_after_first_chunk_*", "as stated", "with --per-chunk-usage as well"),
            Field(
                "decode_duration", "tpot_*", "as stated", "over usage_completion_tokens - 1, where that was one for all", "0.13"
            ),
            Field("time_to_first_output_token", "ttfot_*", "as stated"),
            Field(
                "usage_prompt_tokens", "input_tput_per_gpu", "tokens", "times request_throughput, where told for every request"
            ),
            Field("usage_completion_tokens", "output_tput_per_gpu", "tokens", "times request_throughput, as above"),
            Field("input_token_throughput", "input_tput_per_gpu", "tokens/sec", "else; by the client's count"),
            Field("output_token_throughput", "output_tput_per_gpu", "tokens/sec", "else; by the client's count"),
            Field("input and output rate", "tput_per_gpu", "tokens/sec", "their sum, by one count"),
            Field("request_throughput", "request_throughput", "requests/sec"),
            Field("goodput", "request_goodput", "requests/sec"),
            Field("request_count", "requests", "requests", "and the failed ones"),
            Field("error_request_count", "requests_failed", "requests", "missing: none failed, or as error_summary counts"),
            Field("benchmark_duration", "duration_s", "as stated"),
            Field("usage_prompt_tokens, else input_sequence_length", "isl_mean", "tokens"),
            Field("usage_completion_tokens, else output_sequence_length", "osl_mean", "tokens"),
            Field("input_config.phases", "concurrency", "", "of the one phase that is no warm-up; before 0.11 in loadgen"),
            Field("input_config.phases", "request_rate", "requests/sec"),
            Field("input_config.phases", "arrival", "", "poisson, gamma, constant, user_centric; a fixed schedule: trace"),
            Field("input_config.datasets", "isl", "tokens", "nominal, of the first data set; before 0.11 in input.prompt"),
            Field("input_config.datasets", "osl", "tokens", "nominal"),
            Field("input_config.datasets", "workload", "", "its name; lengths that vary are part of it"),
            Field("input_config.models", "model", "", "the user is asked where there are several"),
            Field("start_time", "measured_at", "", "naive local time: declare timezone"),
        ),
        left_out=(
            ("profile_export_aiperf.csv", "the same measurement as the JSON beside it, rounded, without load, model and time"),
            ("profile_export.jsonl", "one line a request of the same measurement; a second point would pass for a repeat"),
            ("http_req_*, effective_*, active_*", "kept in the log, without a definition here"),
            ("warmup_metrics", "requests that warm up are no measurement"),
            ("input_config.endpoint.urls, run_info.cli_command, artifacts, telemetry_data", "addresses, paths, keys, host names"),
        ),
        traps=(
            "metric_definition tells who counted the tokens: `aiperf, server tokens` or `aiperf, client tokens`; the two differ "
            "by the tokenizer (a mock run: 9 against 16 tokens an answer).",
            "Throughputs of AIPerf 0.13 are over start_time to end_time, which is longer than benchmark_duration.",
            "A cancelled or broken-off run (was_cancelled, is_complete) is refused.",
        ),
        needs=("engine", "hardware", "num_gpus", "precision", "timezone"),
    ),
)
EARLY = RecordFormat(
    "aiperf-early",
    "AIPerf summaries before 0.4, which do not name their version",
    EARLY_MARKERS,
    read,
    without=frozenset({"aiperf_version"}),
    origin=origin,
    clean=clean,
    dictionary=Dictionary(
        text="Read as `aiperf`; load and lengths stand in `input_config.loadgen` and `input_config.input`.",
        needs=FORMAT.dictionary.needs,
    ),
)
