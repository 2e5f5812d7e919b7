"""SGLang `bench_serving --output-file`: one JSON object a line, of every generation since 2024.

Facts: SGLang `python/sglang/benchmark/serving.py` (before: `bench_serving.py`) and its history (Apache-2.0), and real records.
Traps read here: no time and no model outside `server_info`; lengths of random prompts are drawn, so that nominal lengths were
not sent; `random_input_len` is written for other data sets, too, where it means nothing; `concurrency` is what came about, not
the limit; the same ITL name stands for three definitions; a latency of 0 means that there was none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import finite, is_number, metric, whole
from pipelines.ingest.reading import MAX_OTHER, Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools import sglang_server
from pipelines.ingest.tools.fields import count, number, part, text
from pipelines.ingest.tools.sglang_parts import FAMILIES, LATENCY, MS, NATIVE, OPENAI, RATES, SETUP, SPLIT, itl_name
from pipelines.ingest.tools.taming import without_private
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

MARKERS = frozenset(
    {
        "backend",
        "dataset_name",
        "request_rate",
        "total_output_tokens",
        "total_output_tokens_retokenized",
        "mean_e2e_latency_ms",
    }
)
DEFINITION = "sglang bench_serving"
MAX_KEPT_TEXT = 200

_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_ENGINES = {"sglang": "sglang", "vllm": "vllm", "lmdeploy": "lmdeploy", "trt": "trtllm"}
_DRAWN = ("random", "image")
"""Beginnings of data sets whose lengths are drawn from a range of `random_input_len` and `random_output_len`."""
_UNLIMITED = ("inf", "infinity")


_PLAIN = {int, float, bool, type(None)}
"""Types of values that hold nothing but themselves."""


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without lists of requests, texts, paths and most of `server_info`; errors are counted."""
    gone = {key for key, value in record.items() if type(value) not in _PLAIN and not _harmless(key, value)}
    kept = without_private({key: value for key, value in record.items() if key not in gone})
    if "server_info" in record:
        kept["server_info"] = sglang_server.reduced(record["server_info"])
    if isinstance(record.get("cache_report"), dict):
        kept["cache_report"] = {key: value for key, value in record["cache_report"].items() if is_number(value)}
    if (errors := _counted(record.get("errors"))) is not None:
        kept["errors"] = errors
    return kept


def _harmless(key: str, value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_KEPT_TEXT and (key in SETUP or "/" not in value)


def _counted(errors: Any) -> dict[str, int] | None:
    """Return how many requests were sent and how many failed: one text a request, empty where it did not fail."""
    if isinstance(errors, dict):
        return {key: errors[key] for key in ("requests", "failed") if is_number(errors.get(key))}
    if not isinstance(errors, list) or not errors:
        return None
    return {"requests": len(errors), "failed": sum(bool(error) for error in errors)}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong or asking for what nobody said."""
    completed = whole("completed", record.get("completed"), largest=100_000_000)
    if completed == 0:
        raise InputError("completed: 0: no request succeeded")
    server = sglang_server.facts(part(record, "server_info"))
    errors = _counted(record.get("errors")) or {}
    sent, failed = count(errors, "requests"), count(errors, "failed")
    metrics, other = _metrics(record)
    told = Told(
        definition=DEFINITION,
        **{**server, "engine": _engine(record, bool(server), given), **_load(record, completed if sent is None else sent)},
        **_workload(record),
        throughput=_throughput(record),
        metrics=metrics,
        other=other,
        requests=sent,
        requests_failed=failed,
        duration_s=number(record, "duration"),
        isl_mean=_mean(record, "total_input_tokens", completed),
        osl_mean=_mean(record, "total_output_tokens", completed),
        needs=_needs(record),
    )
    return assembled(told, given)


def _needs(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what must be known; tokens that were accepted prove that a method was at work, and only the server names it."""
    return Told.needs + (("spec_decoding",) if number(record, "accept_length") else ())


def _engine(record: Mapping[str, Any], answered: bool, given: Given) -> str | None:
    """Return the engine: SGLang where it answered, else by the backend; an OpenAI path may lead to any that the user names."""
    backend = text(record, "backend") or ""
    if answered or backend in NATIVE:
        return "sglang"
    named = _ENGINES.get(backend.split("-", 1)[0])
    return None if backend in OPENAI and "engine" in given.declared else named


def _load(record: Mapping[str, Any], sent: int) -> dict[str, Any]:
    """Return concurrency, rate and arrival; at an unlimited rate without a limit all that are sent are sent at once."""
    limit = count(record, "max_concurrency") or None
    rate = record.get("request_rate")
    word = rate.strip().lower() if isinstance(rate, str) else ""
    if word == "trace":
        return {"arrival": "trace" if limit is None else f"trace, at most {limit}"}
    if word in _UNLIMITED or rate == float("inf"):
        return {"concurrency": limit} if limit else {"concurrency": sent, "arrival": "burst"}
    value = metric("request_rate", rate)
    if value == 0:
        raise InputError("request_rate: 0 requests a second")
    return {"request_rate": value, "arrival": "poisson" if limit is None else f"poisson, at most {limit}"}


def _workload(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return data set and nominal lengths; where lengths are drawn, the range they are drawn from is part of the workload."""
    name = text(record, "dataset_name")
    if name is None or not name.startswith(_DRAWN):
        return {"workload": name, "osl": count(record, "sharegpt_output_len", least=1) if name == "sharegpt" else None}
    least = number(record, "random_range_ratio")
    return {
        "workload": name if least is None else f"{name} {least}..1.0",
        "isl": count(record, "random_input_len", least=1),
        "osl": count(record, "random_output_len", least=1),
    }


def _mean(record: Mapping[str, Any], key: str, completed: int) -> float | None:
    """Return tokens a request; a total of 0 was not counted (conversations of several turns, embeddings)."""
    total = count(record, key)
    return total / completed if total else None


def _throughput(record: Mapping[str, Any]) -> dict[str, float]:
    """Return tokens a second of the whole system; older records have no total, which is input and output over one duration."""
    found = {kind: number(record, f"{kind}_throughput") for kind in ("input", "output", "total")}
    if found["total"] is None and found["input"] and found["output"]:
        found["total"] = found["input"] + found["output"]
    if not found["input"]:
        found["total"] = None
    return {kind: value for kind, value in found.items() if value}


def _metrics(record: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return latencies by column, s, and other numbers."""
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    families = {**FAMILIES, "itl": itl_name(text(record, "backend"), bool(number(record, "accept_length")))}
    for key, value in record.items():
        match = LATENCY.fullmatch(key)
        if value is None or key in SETUP | RATES:
            continue
        if match is None:
            other |= {key[:MAX_OTHER]: finite(key, value)} if is_number(value) else {}
        elif _measured(record, match[2]):
            column = f"{families[match[2]]}_{match[1]}"
            (metrics if column in _COLUMNS else other)[column] = metric(key, value, MS)
    other |= {key: metric(key, value) for key, value in part(record, "cache_report").items() if value is not None}
    if (realised := number(record, "concurrency")) is not None:
        other["concurrency_realised"] = realised
    return metrics, other


def _measured(record: Mapping[str, Any], family: str) -> bool:
    """Say whether a latency was measured: the tool writes 0 where it had no value (no streaming, one token a request)."""
    return any(record.get(f"{statistic}_{family}_ms") not in (None, 0) for statistic in ("mean", "median"))


FORMAT = RecordFormat(
    "sglang-serving",
    "SGLang bench_serving results (--output-file, JSON lines)",
    MARKERS,
    read,
    SPLIT,
    clean=clean,
    dictionary=Dictionary(
        fields=(
            Field("backend", "engine", note="an OpenAI path may be declared to lead to another engine"),
            Field("dataset_name, random_range_ratio", "workload", note="`random 0.0..1.0`: drawn from 0 to 1 times the nominal"),
            Field("random_input_len, random_output_len", "isl", "tokens", "and `osl`; of data sets that are drawn only"),
            Field("sharegpt_output_len", "osl", "tokens", "where output is cut to a fixed length"),
            Field("request_rate", "request_rate", "requests/s", "`inf`: a closed loop of max_concurrency, else a burst; `trace`"),
            Field("max_concurrency", "concurrency", "requests", "beside a rate it is part of `arrival`", since="2024-10"),
            Field("duration", "duration_s", "s"),
            Field("errors", "requests_failed", note="counted, with --output-details; texts are not kept"),
            Field("total_input_tokens", "isl_mean", "tokens", "over `completed`"),
            Field("total_output_tokens", "osl_mean", "tokens", "over `completed`"),
            Field("total_throughput", "tput_per_gpu", "tok/s", "whole system; before: input and output together"),
            Field("output_throughput", "output_tput_per_gpu", "tok/s", "whole system"),
            Field("input_throughput", "input_tput_per_gpu", "tok/s", "whole system"),
            Field("*_ttft_ms", "ttft_*", "ms"),
            Field("*_tpot_ms", "tpot_*", "ms"),
            Field("*_itl_ms", "itl_*", "ms", "of OpenAI paths, without speculative decoding"),
            Field("*_itl_ms", "itl_per_token_*", "ms", "of backend sglang, sglang-native"),
            Field("*_itl_ms", "itl_per_client_token_*", "ms", "of OpenAI paths, with speculative decoding"),
            Field("*_e2e_latency_ms", "e2el_*", "ms"),
            Field("request_throughput", "request_throughput", "requests/s"),
            Field("concurrency", "metrics_other", "requests", "as concurrency_realised: sum of latencies over duration"),
            Field("accept_length, max_output_tokens_per_s, max_concurrent_requests", "metrics_other"),
            Field("server_info.version", "engine_version", since="2025"),
            Field("server_info.model_path", "model", note="hub id, or the last part of a path"),
            Field("server_info.tp_size, pp_size, ep_size", "tp", note="and `pp`, `ep`; by role where servers have roles"),
            Field("server_info.quantization", "precision", note="null says nothing: the checkpoint may be quantized"),
            Field("server_info.speculative_algorithm", "spec_decoding"),
            Field("server_info.enable_dp_attention", "dp_attention"),
        ),
        left_out=(
            ("generated_texts, errors", "prompts, outputs and texts are nobody's business here"),
            ("input_lens, output_lens, ttfts, itls", "one entry a request"),
            ("server_info", "all but a list of keys: it holds paths, host names and keys"),
            ("total_output_tokens_retokenized", "the client's count of what the server counted"),
        ),
        traps=(
            "No time is written: a run.json or --measured-at dates the record.",
            "Lengths are drawn from ratio times the nominal to the nominal; vLLM draws round it. Same flags, half the tokens.",
            "`random_input_len` is 1024 in records of every data set.",
            "A run without a headline metric leaves no line.",
            "`max_concurrent_requests` counts requests that touch one second: more than the limit.",
        ),
        needs=("hardware",),
    ),
)
