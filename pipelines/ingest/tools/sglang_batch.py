"""SGLang `bench_one_batch` (no server) and `bench_one_batch_server` (JSON lines, and the JSON list of its nightly runs).

One batch is sent at once and all its requests have one input and one output length. Facts: SGLang
`python/sglang/benchmark/one_batch.py`, `one_batch_server.py`, `test/nightly_bench_utils.py` and their history (Apache-2.0).
Traps read here: `output_throughput` was over the whole latency and is over the time after the last first token since the record
has `last_gen_throughput` or `last_ttft`; -1 stands for no value; the server's numbers are rounded; nightly costs assume $2/h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import metric, whole
from pipelines.ingest.reading import Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools import sglang_server
from pipelines.ingest.tools.fields import count, number, part, text
from pipelines.ingest.tools.plain_names import model_name
from warehouse.errors import InputError

_SHAPE = frozenset({"batch_size", "input_len", "output_len", "overall_throughput"})
STATIC, SERVED = "sglang bench_one_batch", "sglang bench_one_batch_server"
_KEPT = _SHAPE | {
    "run_name", "model_path", "prefill_latency", "prefill_throughput", "median_decode_latency", "median_decode_throughput",
    "total_latency", "latency", "input_throughput", "output_throughput", "last_ttft", "last_gen_throughput", "acc_length",
    "total_output_tokens", "num_early_stopped", "steady_state_output_throughput", "steady_state_window_s", "cache_hit_rate",
}  # fmt: skip
_SPANS = {"prefill_latency": "prefill_step", "median_decode_latency": "decode_step_median"}
_SERVED_SPANS = {"latency": "batch_latency", "last_ttft": "last_ttft"}
_PHASES = {"input_throughput": "prefill_phase_throughput", "output_throughput": "decode_phase_throughput"}
_RAW = ("last_gen_throughput", "acc_length", "steady_state_output_throughput", "steady_state_window_s", "cache_hit_rate")


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without links to profiles and folders; of launch arguments what identifies the server."""
    kept = {key: value for key, value in record.items() if key in _KEPT and not isinstance(value, list | dict)}
    if isinstance(kept.get("model_path"), str):
        kept["model_path"] = model_name(kept["model_path"])
    arguments = record.get("server_args")
    if arguments is not None:
        kept["server_args"] = _arguments(arguments)
    return kept


def _arguments(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = sglang_server.reduced(value) if isinstance(value, dict) else sglang_server.from_arguments(value)
    return found


def read_static(record: dict[str, Any], given: Given) -> Reading:
    """Return a `bench_one_batch` record as a reading: forward passes alone, no server and no client. Raises InputError."""
    duration = _span(record, "total_latency")
    other = {name: value for key, name in _SPANS.items() if (value := number(record, key)) is not None}
    other |= _raw(record, ("prefill_throughput", "median_decode_throughput"))
    return assembled(_told(record, STATIC, "sglang", duration, other), given)


def read_served(record: dict[str, Any], given: Given) -> Reading:
    """Return a `bench_one_batch_server` record as a reading; raises InputError naming the field."""
    duration = _span(record, "latency")
    other = {name: value for key, name in _SERVED_SPANS.items() if (value := _known(record, key)) is not None}
    if _by_phase(record):
        other |= {name: value for key, name in _PHASES.items() if (value := _known(record, key)) is not None}
    engine = None if "engine" in given.declared else "sglang"  # `--backend vllm` leaves no mark in the record
    return assembled(_told(record, SERVED, engine, duration, other | _raw(record, _RAW)), given)


def _by_phase(record: Mapping[str, Any]) -> bool:
    """Say whether throughputs are of phases: input over the last TTFT, output over the time after it."""
    return "last_gen_throughput" in record or "last_ttft" in record


def _span(record: Mapping[str, Any], key: str) -> float:
    """Return a length of time, s, that must be there and not be 0."""
    if not (value := metric(key, record.get(key))):
        raise InputError(f"{key}: 0 seconds")
    return value


def _known(record: Mapping[str, Any], key: str) -> float | None:
    """Return a number; -1 is written where there was none."""
    return None if record.get(key) == -1 else number(record, key)


def _raw(record: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, float]:
    return {key: value for key in keys if (value := _known(record, key)) is not None}


def _told(record: Mapping[str, Any], definition: str, engine: str | None, duration: float, other: dict[str, float]) -> Told:
    """Return what both tools tell: the batch, its tokens over its whole time, the server that nightly records name."""
    batch = whole("batch_size", record.get("batch_size"), 1, 1_000_000)
    isl, osl = whole("input_len", record.get("input_len"), 1), whole("output_len", record.get("output_len"), 1)
    generated = count(record, "total_output_tokens", least=1) or batch * osl
    server = sglang_server.facts(_server(record))
    return Told(
        definition=definition,
        **{**server, "engine": engine, "model": model_name(text(record, "model_path")) or server.get("model")},
        concurrency=batch,
        arrival="batch",
        isl=isl,
        osl=osl,
        throughput={
            "total": metric("overall_throughput", record.get("overall_throughput")),
            "input": batch * isl / duration,
            "output": generated / duration,
        },
        other=other,
        requests=batch,
        requests_failed=0,
        duration_s=duration,
        isl_mean=float(isl),
        osl_mean=generated / batch,
        needs=Told.needs + (("spec_decoding",) if _speculates(record) and not server.get("spec_decoding") else ()),
    )


def _speculates(record: Mapping[str, Any]) -> bool:
    """Say whether more than one token came a step: then some method was at work, and only launch arguments name it."""
    return (_known(record, "acc_length") or 0) > 1


def _server(record: Mapping[str, Any]) -> Mapping[str, Any]:
    value = record.get("server_args")
    return part({"server_args": value if value is None else _arguments(value)}, "server_args")


_COMMON_FIELDS = (
    Field("batch_size", "concurrency", "requests", "all are sent at once: `arrival` is batch"),
    Field("input_len, output_len", "isl", "tokens", "and `osl`"),
    Field("overall_throughput", "tput_per_gpu", "tok/s", "whole system"),
)
_NEEDS = ("hardware", "num_gpus", "model", "precision")

STATIC_FORMAT = RecordFormat(
    "sglang-one-batch",
    "SGLang bench_one_batch results (JSON lines), without a server",
    _SHAPE | {"prefill_latency", "total_latency"},
    read_static,
    clean=clean,
    dictionary=Dictionary(
        fields=(
            *_COMMON_FIELDS,
            Field("total_latency", "duration_s", "s", "sum of the passes; output and input throughput are over it"),
            Field("prefill_latency", "prefill_step", "s", "it is no TTFT: no scheduler, no client"),
            Field("median_decode_latency", "decode_step_median", "s", "it is no TPOT"),
            Field("prefill_throughput, median_decode_throughput", "metrics_other", "tok/s", "of one phase, whole system"),
        ),
        left_out=(("run_name", "a label of the user's"),),
        traps=("No time, no model, no GPU and no version are written.",),
        needs=_NEEDS,
    ),
)
SERVED_FORMAT = RecordFormat(
    "sglang-one-batch-server",
    "SGLang bench_one_batch_server results (JSON lines, nightly JSON)",
    _SHAPE | {"latency", "output_throughput"},
    read_served,
    without=frozenset({"prefill_latency", "total_latency"}),
    clean=clean,
    dictionary=Dictionary(
        fields=(
            *_COMMON_FIELDS,
            Field("latency", "duration_s", "s", "and batch_latency; output and input throughput are tokens over it"),
            Field("last_ttft", "last_ttft", "s", "of the slowest request: it is no mean"),
            Field("input_throughput", "prefill_phase_throughput", "tok/s", "over last_ttft"),
            Field("output_throughput", "decode_phase_throughput", "tok/s", "over the time after last_ttft", since="2025"),
            Field("total_output_tokens", "osl_mean", "tokens", "over the batch; absent: as many as asked for", since="2026"),
            Field("acc_length, last_gen_throughput, cache_hit_rate", "metrics_other", note="-1 stands for none"),
            Field("model_path", "model", note="nightly JSON"),
            Field("server_args", "tp", note="nightly JSON: sizes, quantization, speculative decoding"),
        ),
        left_out=(
            ("profile_link_extend, profile_link_decode", "paths of the machine"),
            ("server_args", "all but a list of arguments"),
        ),
        traps=(
            "Before `last_gen_throughput`, output_throughput was over the whole latency: left out, since the tokens tell it.",
            "Numbers are rounded to two or four digits.",
            "`--backend vllm` leaves no mark: declare the engine, else it is SGLang.",
            "Two first results with one batch size: the first is a warm-up, and nothing in it says so.",
        ),
        needs=_NEEDS,
    ),
)
