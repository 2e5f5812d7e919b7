"""TensorRT-LLM perf tables: `base_perf*.csv` (baselines) and `*perf_script_test_results*.csv` (results), one row a metric.

The rows of one test case are one measurement. All that a row says of the test stands in its name. Facts: TensorRT-LLM
`tests/integration/defs/perf/` (`test_perf.py`, `disagg/`; Apache-2.0), and real tables.
Traps read here: one metric type means another thing by the tool that ran the test; a row's time has no zone; a throughput may be
a GPU's or the whole system's; a size of 0 was not read; the accelerator stands in the name, if anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pipelines.ingest import tabular
from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.declarations import placed
from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.numbers import metric
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools import trtllm_case
from pipelines.ingest.tools.fields import text as text_of
from pipelines.ingest.tools.trtllm_case import Case
from warehouse.errors import InputError

COLUMNS = frozenset({"network_name", "perf_case_name", "metric_type", "perf_metric"})
MARKERS = frozenset({"network_name", "perf_case_name", "perf_metrics"})
DEFINITION = "trtllm perf"
_SHARED = ("network_name", "start_timestamp", "end_timestamp", "state", "sm_clk", "mem_clk")
_OWN = ("metric_type", "perf_metric", "threshold", "absolute_threshold")
_PLACE = re.compile(r"([^/\[]+)/perf/")
_NAME = re.compile(r"::test_perf_metric_\w+\[")
_OPTIONS = re.compile(r"--(?:model=[\w.-]+|fp4|fp8|bf16|concurrency=\d+)(?=\s|$)")
"""Words of a command that are kept; the others may hold paths."""
_MS = 1000.0


def unfold(text: str) -> Iterator[Item | Fault] | None:
    """Return the test cases of a table, each with its metrics; None where it is no such table."""
    return _cases(text) if frozenset(tabular.header(text)) >= COLUMNS else None


def _cases(text: str) -> Iterator[Item | Fault]:
    """Yield the cases in the order of their first rows; a metric that a case has already begins another measurement of it."""
    found: dict[tuple[str, ...], Item] = {}
    for row in tabular.rows(text):
        if isinstance(row, Fault):
            yield row
            continue
        key = (row.value["network_name"], row.value.get("start_timestamp", ""), _place(row.value["perf_case_name"]))
        if key in found and _has(found[key].value, row.value["metric_type"]):
            yield found.pop(key)
        if key not in found:
            found[key] = Item(row.position, _case(row.value))
        found[key].value["perf_metrics"].append({name: row.value[name] for name in _OWN if row.value.get(name)})
    yield from found.values()


def _place(name: str) -> str:
    """Return the part of a case's name that tells where it ran: `H100_PCIe-PyTorch-Perf-1`; empty where none does."""
    found = _PLACE.match(name)
    return found[1] if found else ""


def _has(case: dict[str, Any], metric_type: str) -> bool:
    return any(entry.get("metric_type") == metric_type for entry in case["perf_metrics"])


def _case(row: dict[str, str]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: row[name] for name in _SHARED if row.get(name)}
    kept["perf_case_name"] = _NAME.sub("::test_perf_metric[", row["perf_case_name"])
    if options := " ".join(_OPTIONS.findall(row.get("command", ""))):
        kept["command"] = options
    return kept | {"perf_metrics": []}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return one test case as a reading; raises InputError naming the field that is wrong or asking for what nobody said."""
    if (state := text_of(record, "state") or "valid").lower() != "valid":
        raise InputError(f"state: {state[:60]!r}: the test's own harness says that it does not count")
    name = text_of(record, "network_name") or ""
    case = trtllm_case.parsed(name, _place(text_of(record, "perf_case_name") or ""), text_of(record, "command") or "")
    values = _values(record)
    metrics, throughput, other = _metrics(case, values)
    told = Told(
        definition=f"{DEFINITION}, {case.tool}",
        engine="trtllm",
        **case.told,
        throughput=throughput,
        metrics=metrics,
        other=other,
        measured_at=placed_or_none(_clock(record), given, "start_timestamp"),
        duration_s=values["INFERENCE_TIME"] / _MS if case.tool == trtllm_case.BENCH and "INFERENCE_TIME" in values else None,
    )
    return assembled(told, given)


def origin(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of the day that a case began on; None where the table has no times (baselines). Raises InputError."""
    clock = _clock(record)
    return None if clock is None else day_run(placed(clock, given.declared, "start_timestamp"))


def _clock(record: dict[str, Any]) -> datetime | None:
    value = text_of(record, "start_timestamp")
    if value is None:
        return None
    try:
        clock = datetime.fromisoformat(value)
    except ValueError:
        raise InputError(f"start_timestamp: {value[:60]!r} is no time such as 2025-10-31 00:53:53") from None
    return clock.replace(tzinfo=None)


def _values(record: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a case by type; raises InputError where one is no number."""
    entries = record.get("perf_metrics")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("perf_metrics: a list of objects is wanted")
    told = [entry for entry in entries if entry.get("perf_metric") not in (None, "")]
    names = [(text_of(entry, "metric_type") or "").upper() for entry in told]
    if not all(names):
        raise InputError("perf_metrics: metric_type: a text is wanted")
    return {name: metric(name[:60], entry["perf_metric"]) for name, entry in zip(names, told, strict=True)}


_LATENCIES = {
    "FIRST_TOKEN_TIME": "ttft",
    "OUTPUT_TOKEN_TIME": "tpot",
    "INTER_TOKEN_TIME": "itl",
    "INFERENCE_TIME": "e2el",
    "SEQ_LATENCY": "e2el",
}
_ROLE = re.compile(r"(?:DISAGG|WIDEEP|WIDEP)_SERVER_(?:(MEAN|MEDIAN|P99)_)?(TTFT|TPOT|ITL|E2EL)")
_STATISTIC = re.compile(r"(?:(MEDIAN|P99)_)?(\w+)")


def _latency(case: Case, name: str) -> str | None:
    """Return the column of a latency; servers by role write the median where they name no statistic, the others the mean.

    INFERENCE_TIME is the length of the whole run, but where a client measured a server it is the latency of a request.
    """
    if role := _ROLE.fullmatch(name):
        return f"{role[2]}_{role[1] or 'MEDIAN'}".lower()
    found = _STATISTIC.fullmatch(name)
    family = _LATENCIES.get(found[2]) if found else None
    if found is None or family is None or (found[2] == "INFERENCE_TIME" and case.tool != trtllm_case.CLIENT):
        return None
    return f"{family}_{(found[1] or 'MEAN').lower()}"


_WHOLE = {"TOTAL_OUTPUT_THROUGHPUT": "output", "TOTAL_TOKEN_THROUGHPUT": "total"}
_UNREAD = ("KV_CACHE_SIZE",)


def _metrics(case: Case, values: dict[str, float]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return columns, throughput of the whole system by kind, and other numbers."""
    metrics, throughput, other = {}, {}, {}
    for name, value in values.items():
        if column := _latency(case, name):
            metrics[column] = value / _MS
        elif name in _WHOLE:
            throughput[_WHOLE[name]] = value
        elif name == "SEQ_THROUGHPUT":
            other["request_throughput"] = value
        elif name == "TOKEN_THROUGHPUT":
            per_gpu, whole = _output(case, values)
            metrics |= {} if per_gpu is None else {"output_tput_per_gpu": per_gpu}
            throughput |= {} if whole is None else {"output": whole}
            other |= {name.lower(): value} if per_gpu is None and whole is None else {}
        elif (value or name not in _UNREAD) and not (name == "INFERENCE_TIME" and case.tool == trtllm_case.BENCH):
            other[name.lower()[:60]] = value
    return metrics, throughput, other


def _output(case: Case, values: dict[str, float]) -> tuple[float | None, float | None]:
    """Return output tokens a second and GPU, or of the whole system: TOKEN_THROUGHPUT was both in its time.

    A client measures the system. Else requests a second times output tokens tell which it is; on one GPU it is both.
    """
    value, gpus = values["TOKEN_THROUGHPUT"], case.told.get("num_gpus")
    if case.tool == trtllm_case.CLIENT or gpus == 1:
        return None, value
    expected = values.get("SEQ_THROUGHPUT", 0.0) * (case.told.get("osl") or 0)
    if not gpus or not expected:
        return None, None
    near = [abs(value * factor / expected - 1) < _CLOSE for factor in (gpus, 1)]
    return (value, None) if near[0] else (None, value if near[1] else None)


_CLOSE = 0.05
"""Two throughputs that differ by less are the same one."""

FORMAT = RecordFormat(
    "trtllm-perf",
    "TensorRT-LLM perf tables (base_perf*.csv, *perf_script_test_results*.csv)",
    MARKERS,
    read,
    text=unfold,
    origin=origin,
    dictionary=Dictionary(
        fields=(
            Field("perf_case_name", "hardware", note="what stands before `/perf/`: H100_PCIe-PyTorch-Perf-1"),
            Field("network_name: first word", "model"),
            Field("network_name: bench, disagg_server …", "metric_definition", note="the tool that measured"),
            Field("network_name: pytorch, _autodeploy", "framework", note="none of them: an engine built by TensorRT"),
            Field("network_name: quant:, type, model", "precision"),
            Field("network_name: input_output_len:, 8k1k", "isl", "tokens", "and `osl`"),
            Field("network_name: con:, reqs:", "concurrency", "requests", "bench without con: sends all at once"),
            Field("network_name: tp:, pp:, ep:, gpus:", "num_gpus", note="and `tp`, `pp`, `ep`; by role as dep:, tep:, ctx, gen"),
            Field("network_name: mtp:", "spec_decoding"),
            Field("network_name: ccbackend:", "kv_transfer"),
            Field("network_name: all that is left", "workload", note="so that no two cases are one cell"),
            Field("start_timestamp", "measured_at", note="without a zone"),
            Field("INFERENCE_TIME", "duration_s", "ms", "of bench; of a client against a server it is `e2el_mean`"),
            Field("SEQ_THROUGHPUT", "request_throughput", "requests/s"),
            Field("TOKEN_THROUGHPUT", "output_tput_per_gpu", "tok/s", "a GPU's or the system's: SEQ_THROUGHPUT tells which"),
            Field("TOTAL_OUTPUT_THROUGHPUT", "output_tput_per_gpu", "tok/s", "whole system"),
            Field("TOTAL_TOKEN_THROUGHPUT", "tput_per_gpu", "tok/s", "whole system"),
            Field("[MEDIAN_|P99_]FIRST_TOKEN_TIME", "ttft_*", "ms", "mean where no statistic is named"),
            Field("[MEDIAN_|P99_]OUTPUT_TOKEN_TIME", "tpot_*", "ms", "mean where no statistic is named"),
            Field("[MEDIAN_|P99_]INTER_TOKEN_TIME", "itl_*", "ms", "mean where no statistic is named"),
            Field("DISAGG_SERVER_TTFT, WIDEEP_SERVER_TTFT", "ttft_median", "ms", "median where no statistic is named"),
            Field("DISAGG_SERVER_E2EL, WIDEEP_SERVER_E2EL", "e2el_median", "ms", "median where no statistic is named"),
            Field("KV_CACHE_SIZE, BUILD_TIME …", "metrics_other", "GiB, s", "0 GiB was not read"),
        ),
        left_out=(
            ("command", "all but model, precision and concurrency: it may hold paths"),
            ("total_time__sec", "with the start of servers"),
            (
                "threshold, absolute_threshold",
                "their gate: kept, not mapped. Its sign gives the direction: + lower is better, - higher",
            ),
        ),
        traps=(
            "base_perf*.csv has no times: it is a table of baselines, whose git history is theirs. Date it with --measured-at.",
            "No version is written.",
            "Signs of TOTAL_TOKEN_THROUGHPUT and USER_THROUGHPUT are wrong there (+0.1): the definition gives the direction.",
        ),
        needs=("timezone",),
    ),
)
