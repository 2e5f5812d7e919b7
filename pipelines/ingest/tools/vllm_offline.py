"""`vllm bench latency` and `vllm bench throughput` (`--output-json`): the engine without a server, times in seconds.

Field meanings: vLLM `vllm/benchmarks/latency.py` and `throughput.py` (Apache-2.0). Neither file says which model ran on what:
that stands in the command line alone, so it is declared, or it comes with the `.pytorch.json` that lies beside (`pytorch_hud`).
Traps read here: a latency is that of a whole batch; `tokens_per_second` counts input and output.
"""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.assembling import ASKED, Told, assembled
from pipelines.ingest.declarations import KEYS
from pipelines.ingest.numbers import is_number, metric, whole
from pipelines.ingest.reading import Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools.labels import told_by_names
from pipelines.ingest.tools.plain_names import precision_of
from pipelines.ingest.tools.vllm_values import deployment, number, size, text
from warehouse.errors import InputError

LATENCY_MARKERS = frozenset({"avg_latency", "percentiles"})
THROUGHPUT_MARKERS = frozenset({"elapsed_time", "num_requests", "requests_per_second", "tokens_per_second"})
LATENCY_KEYS = (*sorted(LATENCY_MARKERS), "std_latency", "latencies")
THROUGHPUT_KEYS = (*sorted(THROUGHPUT_MARKERS), "total_num_tokens")
LATENCY, THROUGHPUT = "vllm bench latency", "vllm bench throughput"
MAX_ITERATIONS = 1000
HINTS = ("tp", "pp", "ep", "isl", "osl", "hardware", "precision", "workload")


def read_latency(record: dict[str, Any], given: Given) -> Reading:
    """Return a record of `bench latency` as a reading; raises InputError naming the field that is wrong or missing."""
    return with_lengths(latency_told(record, {}, given), given)


def read_throughput(record: dict[str, Any], given: Given) -> Reading:
    """Return a record of `bench throughput` as a reading; raises InputError naming the field that is wrong or missing."""
    return assembled(throughput_told(record, {}, given), given)


def with_lengths(told: Told, given: Given) -> Reading:
    """Return the reading of a fixed batch, whose lengths must be known; raises InputError that asks for them by name."""
    missing = [key for key in ("isl", "osl") if getattr(told, key) is None and _said(key, given) is None]
    if missing:
        example = f"{missing[0]}={KEYS[missing[0]].example}"
        raise InputError(f"{', '.join(missing)}: {ASKED} in a shiftlog.yaml beside it or with --set {example}")
    return assembled(told, given)


def latency_told(record: dict[str, Any], args: dict[str, Any], given: Given) -> Told:
    """Return what a record of `bench latency` and the command line *args* (empty where unknown) tell; raises InputError."""
    times = _times(record.get("latencies"))
    batch = size(args, "batch_size")
    setup = arguments(args, given)
    return Told(
        definition=LATENCY,
        concurrency=batch,
        identity={"arrival": "batch"},  # no `arrival` of its own, so that the size of the batch is asked for
        throughput=_throughput(record, args, {**setup, "concurrency": batch}, given),
        other=_statistics(record),
        duration_s=math.fsum(times) or None,
        requests=batch * len(times) if batch and times else None,
        **setup,
    )


def throughput_told(record: dict[str, Any], args: dict[str, Any], given: Given) -> Told:
    """Return what a record of `bench throughput` and the command line *args* tell; raises InputError."""
    requests = whole("num_requests", record.get("num_requests"), least=1, largest=100_000_000)
    rates = {key: number(record, key) for key in ("requests_per_second", "tokens_per_second", "total_num_tokens")}
    named = {"request_throughput": rates["requests_per_second"], "total_num_tokens": rates["total_num_tokens"]}
    setup = {**arguments(args, given), "workload": text(args, "dataset_name")}
    unknown = setup["isl"] is None and _said("isl", given) is None
    return Told(
        definition=THROUGHPUT,
        arrival="offline",
        concurrency=requests,
        throughput={"total": rates["tokens_per_second"]} if rates["tokens_per_second"] else {},
        other={name: value for name, value in named.items() if value is not None},
        duration_s=number(record, "elapsed_time"),
        requests=requests,
        needs=(*Told.needs, "workload") if unknown else Told.needs,
        **setup,
    )


def arguments(args: dict[str, Any], given: Given) -> dict[str, Any]:
    """Return engine, model, sizes, lengths and speculation that a command line tells, as fields of Told; raises InputError."""
    backend = (text(args, "backend") or "vllm").lower()
    names = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
    sizes = {name: size(args, key) for name, key in names.items()}
    everywhere = args.get("enable_expert_parallel") is True and sizes["tp"]
    return {
        "engine": None if "engine" in given.declared else "vllm" if backend.startswith("vllm") else backend[:80],
        "model": text(args, "model"),
        "precision": precision_of(text(args, "quantization")),
        "spec_decoding": _speculation(args.get("speculative_config")),
        "tp": sizes["tp"],
        "pp": sizes["pp"],
        "ep": (sizes["tp"] or 1) * (sizes["dp"] or 1) if everywhere else None,
        "num_gpus": deployment(sizes),
        "isl": size(args, "input_len", "random_input_len"),
        "osl": size(args, "output_len", "random_output_len"),
    }


def _speculation(config: Any) -> str | None:
    return text(config, "method") or "unnamed" if isinstance(config, dict) and config else None


def _said(key: str, given: Given) -> str | None:
    return given.declared.get(key) or given.named.get(key)


def _times(values: Any) -> list[float]:
    """Return the seconds of every iteration; what is no time is an error."""
    if values is not None and not isinstance(values, list):
        raise InputError(f"latencies: {str(values)[:60]!r} is no list")
    return [metric("latencies", value) for value in (values or [])[:MAX_ITERATIONS]]


def _statistics(record: dict[str, Any]) -> dict[str, float]:
    """Return the latencies of the batch under the name of their definition, seconds."""
    percentiles = record.get("percentiles")
    if not isinstance(percentiles, dict):
        raise InputError(f"percentiles: {str(percentiles)[:60]!r} is no object of numbers by percentile")
    found = {"mean": number(record, "avg_latency"), "std": number(record, "std_latency")}
    for key, value in list(percentiles.items())[:50]:
        if not key.isdecimal() or not 0 < int(key[:9]) < 100:
            raise InputError(f"percentiles: {key[:20]!r} is no percentile from 1 to 99")
        found["median" if int(key) == 50 else f"p{int(key)}"] = metric(f"percentiles/{key}", value)
    return {f"batch_latency_{statistic}": value for statistic, value in found.items() if value is not None}


def _throughput(record: dict[str, Any], args: dict[str, Any], own: dict[str, Any], given: Given) -> dict[str, float]:
    """Return tok/s: every request has these lengths, because the tool ignores the end of a text; nothing where one is unknown."""
    mean = number(record, "avg_latency")
    known = [int(value) for key in ("concurrency", "isl", "osl") if (value := own[key] or _said(key, given))]
    if not mean or len(known) < 3 or (size(args, "n") or 1) != 1:
        return {}
    batch, isl, osl = known
    return {"input": batch * isl / mean, "output": batch * osl / mean, "total": batch * (isl + osl) / mean}


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return sizes, lengths, accelerator, precision and data set that the names of the file and its folders tell."""
    return told_by_names(path, HINTS)


def clean_latency(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `bench latency`, at most MAX_ITERATIONS times."""
    found = {key: _flat(record[key]) for key in LATENCY_KEYS if key in record}
    times, percentiles = record.get("latencies"), record.get("percentiles")
    if isinstance(times, list):
        found["latencies"] = [_flat(value) for value in times[:MAX_ITERATIONS]]
    if isinstance(percentiles, dict):
        found["percentiles"] = {key[:20]: _flat(value) for key, value in list(percentiles.items())[:50]}
    return found


def clean_throughput(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `bench throughput`."""
    return {key: _flat(record[key]) for key in THROUGHPUT_KEYS if key in record}


def _flat(value: Any) -> Any:
    """Return a number, or a short text (some writers write numbers as texts); anything else goes."""
    return value if is_number(value) or (isinstance(value, str) and len(value) <= 40) else None


_TRAPS = (
    "Nothing in the file says which model ran on what; the `.pytorch.json` beside it does. They are one measurement: ingest one.",
)
LATENCY_FORMAT = RecordFormat(
    "vllm-latency",
    "vllm bench latency results (--output-json)",
    LATENCY_MARKERS,
    read_latency,
    hints=hints,
    clean=clean_latency,
    dictionary=Dictionary(
        fields=(
            Field(
                "avg_latency",
                "batch_latency_*",
                "s",
                "mean; gives throughput, too, where lengths and batch are known",
            ),
            Field("std_latency", "batch_latency_*", "s", "", "2026"),
            Field('percentiles{"10".."99"}', "batch_latency_*", "s", "50 is the median"),
            Field("latencies", "duration_s", "s", "their sum"),
        ),
        traps=("The latency is of a whole batch, not of one request: it is no e2el.", *_TRAPS),
        needs=("hardware", "num_gpus", "model", "precision", "isl", "osl", "concurrency"),
    ),
)
THROUGHPUT_FORMAT = RecordFormat(
    "vllm-throughput",
    "vllm bench throughput results (--output-json)",
    THROUGHPUT_MARKERS,
    read_throughput,
    hints=hints,
    clean=clean_throughput,
    dictionary=Dictionary(
        fields=(
            Field("elapsed_time", "duration_s", "s"),
            Field("num_requests", "concurrency", "requests", "all are given to the engine at once (arrival `offline`)"),
            Field("total_num_tokens", "metrics_other", "tokens"),
            Field("requests_per_second", "request_throughput", "requests/s"),
            Field("tokens_per_second", "tput_per_gpu", "tok/s", "input and output, over the GPUs"),
        ),
        traps=("`tokens_per_second` counts input and output; image tokens are missing with most backends.", *_TRAPS),
        needs=("hardware", "num_gpus", "model", "precision", "workload"),
    ),
)
