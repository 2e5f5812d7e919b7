"""LoadGen's logs of one MLPerf Inference run: `mlperf_log_summary.txt` and `mlperf_log_detail.txt` (`:::MLLOG` lines).

Both tell what was measured and neither what ran: model, system and software stand in the names of the folders of a submission
or must be declared. Times are nanoseconds. The summary has no clock, the detail log a UTC one. Latencies count from the time at
which a request was scheduled. Belongs here: both texts and what their numbers mean. Does not: result lists (`mlperf`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.declarations import placed
from pipelines.ingest.json_text import EXCERPT, Fault, Item
from pipelines.ingest.numbers import finite, is_number, metric, whole
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools.mlperf_systems import folder_hints
from pipelines.ingest.tools.mlperf_units import scenario_of
from warehouse.errors import InputError

DEFINITION = "mlperf loadgen"
PER_SECOND = 1e9
"""Nanoseconds a second."""
ARRIVALS = {"Offline": "offline", "Server": "poisson", "MultiStream": "batch"}
IN_FLIGHT = {"SingleStream": 1, "MultiStream": 8}
MAX_LINE = 20_000
_SUMMARY = "MLPerf Results Summary"
_DETAIL = ":::MLLOG"
_LINE = re.compile(r"([A-Za-z0-9][^:]{0,70}?)\s*:\s*(\S.{0,200})")
_KEY = re.compile(r'"key":\s*"([\w.]{1,80})"')
_WANTED = re.compile(
    r"loadgen_version|test_datetime|effective_\w+|generated_\w+|early_stopping_\w+|num_errors|num_warnings|result_[\w.]+"
)
_LIMITS = re.compile(r"requested_server_(?:ttft|tpot|target)_latency(?:_ns)?")
_DROPPED = frozenset({"SUT name"})
_PERCENTILE = {"50.00": "median", "90.00": "p90", "95.00": "p95", "97.00": "p97", "99.00": "p99", "99.90": "p999"}
_STATISTIC = {"Mean": "mean", "Min": "min", "Max": "max", **_PERCENTILE}
COLUMNS = ("mean", "median", "p90", "p95", "p99", "p999")
"""Statistics that have columns; others stand in `metrics_other`."""
_SUMMARY_FAMILIES = (
    ("ttft", re.compile(r"(\S+)(?: percentile)? first token latency \(ns\)", re.IGNORECASE)),
    ("tpot", re.compile(r"(\S+)(?: percentile)? time to output token \(ns\)", re.IGNORECASE)),
    ("latency", re.compile(r"(\S+)(?: percentile)? latency \(ns\)", re.IGNORECASE)),
)
_DETAIL_FAMILIES = (
    ("ttft", re.compile(r"result_first_token_(\S+?)(?:_percentile)?_latency_ns")),
    ("tpot", re.compile(r"result_time_per_output_token_(\S+?)_percentile_ns")),
    ("tpot", re.compile(r"result_time_to_output_token_(mean|min|max)")),
    ("query_latency", re.compile(r"result_(\S+?)(?:_percentile_per)?_query_latency_ns")),
    ("latency", re.compile(r"result_(\S+?)(?:_percentile)?_latency_ns")),
)


def summary_text(text: str) -> Iterator[Item | Fault] | None:
    """Return the one record of a `mlperf_log_summary.txt`: its `name : value` lines; None where it is no such text."""
    return _summary(text) if _SUMMARY in text[:1000] else None


def _summary(text: str) -> Iterator[Item | Fault]:
    record: dict[str, Any] = {}
    for line in text[: MAX_LINE * 20].splitlines():
        match = _LINE.fullmatch(line.strip())
        if match and match[1] not in _DROPPED:
            record.setdefault(match[1], match[2].strip())
    if record.keys() >= SUMMARY.markers:
        yield Item("", record)
    else:
        yield Fault("", f"MLPerf summary without {', '.join(sorted(SUMMARY.markers - record.keys()))}", text[:EXCERPT])


def detail_text(text: str) -> Iterator[Item | Fault] | None:
    """Return the one record of a `mlperf_log_detail.txt`: its results and settings by key; None where it is no such text."""
    return _detail(text) if text[:1000].lstrip("\ufeff \r\n").startswith(_DETAIL) else None


def _detail(text: str) -> Iterator[Item | Fault]:
    record: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key = _KEY.search(line[:400]) if line.startswith(_DETAIL) else None
        if key is None or len(line) > MAX_LINE or not (_WANTED.fullmatch(key[1]) or _LIMITS.fullmatch(key[1])):
            continue
        try:
            record.setdefault(key[1], json.loads(line[len(_DETAIL) :])["value"])
        except (ValueError, RecursionError, KeyError, TypeError):
            yield Fault(f"line {number}", f"{key[1]}: no line of LoadGen's log", line[:EXCERPT])
    if record.keys() >= DETAIL.markers:
        yield Item("", record)
    else:
        yield Fault("", f"LoadGen log without {', '.join(sorted(DETAIL.markers - record.keys()))}", text[:EXCERPT])


def read_summary(record: dict[str, Any], given: Given) -> Reading:
    """Return a summary as a reading; raises InputError naming the line that is wrong, or asking for what is missing."""
    _valid(record, "Result is", "Mode")
    rates = {
        "samples_per_second": record.get("Samples per second"),
        "scheduled_samples_per_second": record.get("Scheduled samples per second"),
        "completed_samples_per_second": record.get("Completed samples per second"),
        "tokens": record.get("Tokens per second", record.get("Completed tokens per second")),
    }
    timings = _timings(record, _SUMMARY_FAMILIES)
    if record["Scenario"] == "MultiStream":  # the summary then tells of queries, the detail log of both
        timings = {name.replace("latency", "query_latency"): value for name, value in timings.items()}
    return _reading(record, "Scenario", rates, timings, given)


def read_detail(record: dict[str, Any], given: Given) -> Reading:
    """Return a detail log as a reading; raises InputError naming the key that is wrong, or asking for what is missing."""
    _valid(record, "result_validity", "effective_test_mode")
    rates = {
        "samples_per_second": record.get("result_samples_per_second"),
        "scheduled_samples_per_second": record.get("result_scheduled_samples_per_sec"),
        "completed_samples_per_second": record.get("result_completed_samples_per_sec"),
        "tokens": record.get("result_tokens_per_second", record.get("result_completed_tokens_per_second")),
    }
    return _reading(record, "effective_scenario", rates, _timings(record, _DETAIL_FAMILIES), given)


def _valid(record: dict[str, Any], validity: str, mode: str) -> None:
    """Refuse what is no measurement: accuracy runs, and runs that LoadGen itself calls invalid."""
    if (how := record.get(mode)) != "PerformanceOnly":
        raise InputError(f"{mode}: {str(how)[:60]!r}; only PerformanceOnly runs measure performance")
    if (verdict := record.get(validity)) != "VALID":
        raise InputError(f"{validity}: {str(verdict)[:60]!r}; LoadGen does not count this run")


def _timings(record: dict[str, Any], families: Any) -> dict[str, float]:
    """Return every latency in seconds by family and statistic; `latency` is of a sample, in MultiStream summaries of a query."""
    found: dict[str, float] = {}
    for key, value in record.items():
        for family, pattern in families:
            if match := pattern.fullmatch(key):
                statistic = _STATISTIC.get(match[1].capitalize()) or _STATISTIC.get(match[1])
                if statistic:
                    found.setdefault(f"{family}_{statistic}", _seconds(key, value))
                break
    return found


def _seconds(key: str, value: Any) -> float:
    """Return nanoseconds as seconds; an hour in nanoseconds lies beyond the bounds of `numbers.metric`, so it divides first."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value):
        value = int(value)
    if not is_number(value):
        raise InputError(f"{key}: {str(value)[:60]!r} is not a number")
    return metric(key, finite(key, value) / PER_SECOND)


def _reading(record: dict[str, Any], key: str, rates: dict[str, Any], timings: dict[str, float], given: Given) -> Reading:
    scenario = scenario_of(said) if isinstance(said := record.get(key), str) else None
    if scenario is None:
        raise InputError(f"{key}: {str(said)[:60]!r} is none of Offline, Server, SingleStream, MultiStream")
    rate = {name: metric(name, value) for name, value in rates.items() if value is not None}
    tokens = rate.pop("tokens", None)
    done = rate.get("samples_per_second") or rate.get("completed_samples_per_second")
    columns, other = _placed(timings, tokens is not None or any(name.startswith("ttft") for name in timings))
    requests = _requests(record)
    told = Told(
        definition=DEFINITION,
        scenario=f"mlperf-{scenario.lower()}",
        arrival=ARRIVALS.get(scenario),
        concurrency=IN_FLIGHT.get(scenario),
        system=given.named.get("recipe"),
        throughput={"output": tokens} if tokens else {},
        metrics=columns,
        other={**other, **rate, **_bound(record, columns), **({"output_tokens_per_second": tokens} if tokens else {})},
        measured_at=_clock(record, given),
        requests=requests,
        duration_s=requests / done if requests and done else None,
        osl_mean=tokens / done if tokens and done else None,
        needs=("engine", "hardware", "num_gpus", "model"),
    )
    return assembled(told, given)


def _placed(timings: dict[str, float], has_tokens: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Return columns and others: a sample's latency is that of a request's last token only where samples have tokens."""
    columns: dict[str, float] = {}
    other: dict[str, float] = {}
    for name, value in timings.items():
        family, statistic = name.rsplit("_", 1)
        if family == "latency":
            family = "e2el" if has_tokens else "sample_latency"
        into = columns if statistic in COLUMNS and not family.endswith("latency") else other
        into[f"{family}_{statistic}"] = value
    return columns, other


def _bound(record: dict[str, Any], columns: dict[str, float]) -> dict[str, float]:
    """Return the early-stopping bound, s; of runs with tokens that field is of the first token and is left out."""
    if any(name.startswith("ttft") for name in columns):
        return {}
    keys = {"query_latency_bound_p90": "early_stopping_latency_ss", "query_latency_bound_p99": "early_stopping_latency_ms"}
    return {name: _seconds(key, record[key]) for name, key in keys.items() if record.get(key)}


def _requests(record: dict[str, Any]) -> int | None:
    """Return the samples of the run: its queries times their samples (one query of all in Offline); the summary has no count."""
    queries, samples = record.get("result_query_count"), record.get("generated_samples_per_query")
    if not is_number(queries) or not is_number(samples):
        return None
    return whole("result_query_count", queries) * whole("generated_samples_per_query", samples) or None


def _stamp(record: dict[str, Any]) -> datetime | None:
    """Return the start of the test; the detail log writes it in UTC (`power_begin` beside it is local)."""
    value = record.get("test_datetime")
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(str(value)[:40])
        return found if 2000 < found.year < 2200 else None
    except ValueError:
        raise InputError(f"test_datetime: {str(value)[:40]!r} is no time") from None


def _clock(record: dict[str, Any], given: Given) -> datetime | None:
    found = _stamp(record)
    return placed_or_none(found, given, "test_datetime") if found is not None and found.tzinfo is None else found


def origin(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of the day of a detail log's clock; None for a summary, which has none."""
    found = _stamp(record)
    if found is None:
        return None
    return day_run(placed(found, given.declared, "test_datetime") if found.tzinfo is None else found)


_TRAPS = (
    "The folder `Interactive` holds runs of scenario Server; only names of folders tell them apart.",
    "`result_token_throughput` is tokens per nanosecond of one request; `…_with_loadgen_overhead` is no completed rate.",
    "`early_stopping_latency_ss` is of the first token where requests have tokens.",
    "`result_overlatency_query_count` counts every query of runs without a latency target; these are no failures.",
    "`test_datetime` is UTC, `power_begin` and `power_end` are local.",
    "Completed tokens per second stands twice in newer summaries, and lines have no fixed order.",
    "An Offline log counts one query of all samples.",
    "A MultiStream query is eight samples: its latency is not theirs, and the summary shows that of queries alone.",
    "Requests wait from their scheduled time on, so that Offline latencies are mostly waiting.",
)
_LEFT_OUT = (
    ("SUT name, qsl_name, power_begin, …", "names and local times of the machine"),
    ("metadata of lines", "paths and process numbers"),
    ("seeds and requested settings", "the effective ones are kept"),
)
SUMMARY = RecordFormat(
    "mlperf-log-summary",
    "LoadGen's summary of one MLPerf run (mlperf_log_summary.txt)",
    frozenset({"Scenario", "Mode", "Result is"}),
    read_summary,
    text=summary_text,
    hints=folder_hints,
    dictionary=Dictionary(
        (
            Field("Samples per second", "samples_per_second", "samples/s"),
            Field("Scheduled samples per second", "scheduled_samples_per_second", "samples/s"),
            Field("Completed samples per second", "completed_samples_per_second", "samples/s"),
            Field("Tokens per second, Completed tokens per second", "output_tput_per_gpu", "tok/s"),
            Field("… first token latency (ns)", "ttft_*", "ns"),
            Field("… time to output token (ns)", "tpot_*", "ns"),
            Field("… latency (ns)", "e2el_*", "ns", "of runs with tokens"),
            Field("… latency (ns)", "sample_latency_*", "ns", "of other runs; query_latency_* of MultiStream"),
        ),
        _LEFT_OUT,
        _TRAPS,
        needs=("engine", "hardware", "num_gpus", "model", "measured_at"),
    ),
)
DETAIL = RecordFormat(
    "mlperf-log-detail",
    "LoadGen's detailed log of one MLPerf run (mlperf_log_detail.txt)",
    frozenset({"effective_scenario", "effective_test_mode"}),
    read_detail,
    text=detail_text,
    hints=folder_hints,
    origin=origin,
    dictionary=Dictionary(
        (
            Field("result_samples_per_second", "samples_per_second", "samples/s"),
            Field("result_scheduled_samples_per_sec", "scheduled_samples_per_second", "samples/s"),
            Field("result_completed_samples_per_sec", "completed_samples_per_second", "samples/s"),
            Field("result_tokens_per_second, result_completed_tokens_per_second", "output_tput_per_gpu", "tok/s"),
            Field("result_first_token_*_latency_ns", "ttft_*", "ns"),
            Field("result_time_per_output_token_*_ns, result_time_to_output_token_mean", "tpot_*", "ns"),
            Field("result_*_latency_ns", "e2el_*", "ns", "of runs with tokens"),
            Field("result_*_latency_ns", "sample_latency_*", "ns", "of other runs"),
            Field("result_*_query_latency_ns", "query_latency_*", "ns", "MultiStream"),
            Field("early_stopping_latency_ss, early_stopping_latency_ms", "query_latency_bound_*", "ns"),
            Field("result_query_count × generated_samples_per_query", "requests"),
            Field("test_datetime", "measured_at", note="UTC"),
        ),
        _LEFT_OUT,
        _TRAPS,
        needs=("engine", "hardware", "num_gpus", "model"),
    ),
)
FORMATS = (SUMMARY, DETAIL)
