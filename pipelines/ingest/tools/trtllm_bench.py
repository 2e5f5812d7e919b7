"""TensorRT-LLM `trtllm-bench --report_json`: one report a run, measured inside the process, without a server.

Facts: TensorRT-LLM `tensorrt_llm/bench/dataclasses/reporting.py` and `statistics.py` (Apache-2.0), and a published report.
Traps read here: the number of requests in flight that was asked for is not in the report (`avg_num_concurrent_requests` is what
came about); a request of one token counts as a TPOT of 0; speeds a user are means of rates, so that their percentiles are of the
fast tail; `issue_rate` has no meaning (time a request, called a rate).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import is_number, metric
from pipelines.ingest.reading import Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools.fields import count, number, part, plain, text
from pipelines.ingest.tools.plain_names import device_name, model_name, precision_of
from warehouse.schemas import METRIC_COLUMNS

MARKERS = frozenset({"engine", "world_info", "request_info", "performance"})
DEFINITION = "trtllm-bench"
FRAMEWORKS = {"pytorch": "trt", "trt": "trt-engine", "_autodeploy": "trt-autodeploy"}
"""Back ends of TensorRT-LLM and the stack that they are: an engine built by TensorRT is another program."""
_MS = 1000.0
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_STATISTICS = {"average": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_KEPT = {
    "engine": "model model_path version backend dtype kv_cache_dtype quantization max_input_length max_sequence_length",
    "machine": "name memory.total clocks.mem",
    "world_info": "tp_size pp_size ep_size world_size max_batch_size max_num_tokens scheduling_policy kv_cache_percentage",
    "dataset": "num_requests max_isl max_osl max_sequence_length avg_isl avg_osl avg_sequence_length",
}
"""Keys of the parts that may hold paths; of the parts with numbers alone all numbers are kept."""
_NUMBERS = ("request_info", "performance", "streaming_metrics", "energy")


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without folders of the machine; of what it does not know, nothing."""
    strange = {key: record[key] for key in sorted(MARKERS & record.keys()) if not isinstance(record[key], dict)}
    kept: dict[str, Any] = {key: value if value is None else str(value)[:60] for key, value in strange.items()}
    for key, names in _KEPT.items():
        if isinstance(value := record.get(key), dict):
            kept[key] = plain(value, frozenset(names.split()))
    if "engine" in kept and isinstance(kept["engine"], dict):
        paths = {key: model_name(str(value)) for key, value in kept["engine"].items() if key in ("model", "model_path") and value}
        kept["engine"] |= paths
    kept |= {key: _numbers(record[key]) for key in _NUMBERS if isinstance(record.get(key), dict)}
    if isinstance(stats := record.get("decoding_stats"), dict):
        kept["decoding_stats"] = {**_numbers(stats), **plain(stats, frozenset({"mode"}))}
    return kept


def _numbers(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers and, one level down, objects of numbers; a text in a number's place is kept, so that reading tells of it."""
    flat = {key: item for key, item in value.items() if is_number(item) or (isinstance(item, str) and len(item) < 40)}
    return flat | {key: plain(item, frozenset(_STATISTICS)) for key, item in value.items() if isinstance(item, dict)}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong or asking for what nobody said."""
    engine, world, requests = (part(record, key) for key in ("engine", "world_info", "request_info"))
    performance, product = part(record, "performance"), text(part(record, "machine"), "name", "machine.")
    sent = count(requests, "num_requests", "request_info.")
    metrics, other = _metrics(record)
    told = Told(
        definition=DEFINITION,
        engine="trtllm",
        framework=FRAMEWORKS.get((text(engine, "backend", "engine.") or "").lower()),
        engine_version=text(engine, "version", "engine."),
        hardware=device_name(product),
        hardware_label=product,
        num_gpus=count(world, "world_size", "world_info.", least=1) or _ranks(world),
        model=_model(engine),
        precision=_precision(engine),
        spec_decoding=_method(record),
        **{size: count(world, f"{size}_size", "world_info.", least=1) for size in ("tp", "pp", "ep")},  # type: ignore[arg-type]
        **_lengths(record),
        concurrency=1 if sent == 1 else None,
        throughput=_throughput(performance),
        metrics=metrics,
        other=other,
        requests=sent,
        duration_s=number(performance, "total_latency_ms", "performance.", _MS),
        isl_mean=number(requests, "avg_input_length", "request_info."),
        osl_mean=number(requests, "avg_output_length", "request_info."),
    )
    return assembled(told, given)


def _model(engine: Mapping[str, Any]) -> str | None:
    """Return the model: the hub id by which it was called, else the last part of its path."""
    return model_name(text(engine, "model", "engine.")) or model_name(text(engine, "model_path", "engine."))


def _precision(engine: Mapping[str, Any]) -> str | None:
    """Return the precision of the weights; where no method quantizes them it is the type of the model."""
    method = text(engine, "quantization", "engine.")
    return precision_of(method) if method else precision_of(text(engine, "dtype", "engine."))


def _method(record: Mapping[str, Any]) -> str:
    """Return the speculative decoding method; the report speaks of one only where there was one."""
    stats = part(record, "decoding_stats")
    return (text(stats, "mode", "decoding_stats.") or "unnamed").lower() if stats else "none"


def _lengths(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean lengths of the data set, which is the same every time; where they vary the longest tell which it was.

    The report cuts means to whole tokens.
    """
    data = part(record, "dataset")
    numbers = {key: number(data, key, "dataset.") for key in ("avg_isl", "avg_osl", "max_isl", "max_osl")}
    found = {key: None if value is None else int(value) for key, value in numbers.items()}
    vary = found["avg_isl"] != found["max_isl"] or found["avg_osl"] != found["max_osl"]
    longest = f"lengths up to {found['max_isl']}, {found['max_osl']}" if vary and found["max_isl"] else None
    return {"isl": found["avg_isl"], "osl": found["avg_osl"], "workload": longest}


def _ranks(world: Mapping[str, Any]) -> int | None:
    """Return tensor- times pipeline-parallel ranks, where the report tells the former."""
    tp, pp = (count(world, f"{size}_size", "world_info.", least=1) for size in ("tp", "pp"))
    return tp * (pp or 1) if tp else None


def _throughput(performance: Mapping[str, Any]) -> dict[str, float]:
    names = {"total": "system_total_throughput_tok_s", "output": "system_output_throughput_tok_s"}
    found = {kind: number(performance, key, "performance.") for kind, key in names.items()}
    return {kind: value for kind, value in found.items() if value is not None}


_FAMILIES = (
    ("e2el", "performance", "avg_request_latency_ms", "request_latency_percentiles_ms"),
    ("ttft", "streaming_metrics", "avg_ttft_ms", "ttft_percentiles"),
    ("tpot", "streaming_metrics", "avg_tpot_ms", "tpot_percentiles"),
)
_OTHER = (
    ("performance", "request_throughput_req_s", "request_throughput"),
    ("performance", "output_throughput_per_user_tok_s", "output_throughput_per_user_tok_s"),
    ("streaming_metrics", "token_output_speed_tok_s", "token_output_speed_tok_s"),
    ("request_info", "avg_num_concurrent_requests", "concurrency_realised"),
    ("energy", "total_energy_j", "total_energy_j"),
    ("energy", "average_gpu_power", "average_gpu_power"),
    ("energy", "output_tps_per_w", "output_tps_per_w"),
)


def _metrics(record: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return latencies by column, s, and other numbers under their recorded names."""
    metrics: dict[str, float] = {}
    for family, place, mean, percentiles in _FAMILIES:
        values = part(record, place)
        metrics |= _statistics(family, f"{place}.{percentiles}.", part(values, percentiles))
        if (value := number(values, mean, f"{place}.", _MS)) is not None:
            metrics[f"{family}_mean"] = value
    found = {name: number(part(record, place), key, f"{place}.") for place, key, name in _OTHER}
    accepted = part(part(record, "decoding_stats"), "acceptance_length_percentiles")
    found["acceptance_length"] = number(accepted, "average", "decoding_stats.acceptance_length_percentiles.")
    return metrics, {name: value for name, value in found.items() if value is not None}


def _statistics(family: str, where: str, values: Mapping[str, Any]) -> dict[str, float]:
    names = {key: f"{family}_{statistic}" for key, statistic in _STATISTICS.items() if values.get(key) is not None}
    return {name: metric(where + key, values[key], _MS) for key, name in names.items() if name in _COLUMNS}


FORMAT = RecordFormat(
    "trtllm-bench",
    "TensorRT-LLM trtllm-bench reports (--report_json)",
    MARKERS,
    read,
    clean=clean,
    dictionary=Dictionary(
        fields=(
            Field("engine.version", "engine_version", note="of a built engine the version that built it"),
            Field("engine.backend", "framework", note="Pytorch: trt; TRT: trt-engine"),
            Field("engine.model, model_path", "model", note="hub id, or the last part of a path"),
            Field("engine.quantization, dtype", "precision"),
            Field("machine.name", "hardware", note="of the first GPU"),
            Field("world_info.tp_size, pp_size, ep_size", "tp", note="and `pp`, `ep`"),
            Field("world_info.world_size", "num_gpus", "GPUs"),
            Field("dataset.avg_isl, avg_osl", "isl", "tokens", "and `osl`; where lengths vary `workload` holds the longest"),
            Field("request_info.num_requests", "requests"),
            Field("request_info.avg_input_length", "isl_mean", "tokens"),
            Field("request_info.avg_output_length", "osl_mean", "tokens"),
            Field("request_info.avg_num_concurrent_requests", "metrics_other", "requests", "as concurrency_realised"),
            Field("performance.total_latency_ms", "duration_s", "ms"),
            Field("performance.system_total_throughput_tok_s", "tput_per_gpu", "tok/s", "whole system"),
            Field("performance.system_output_throughput_tok_s", "output_tput_per_gpu", "tok/s", "whole system"),
            Field("performance.request_throughput_req_s", "request_throughput", "requests/s"),
            Field("performance.request_latency_percentiles_ms", "e2el_*", "ms"),
            Field("streaming_metrics.ttft_percentiles", "ttft_*", "ms", "with --streaming"),
            Field("streaming_metrics.tpot_percentiles", "tpot_*", "ms", "with --streaming"),
            Field("decoding_stats.mode", "spec_decoding"),
            Field("decoding_stats.acceptance_length_percentiles", "metrics_other", note="its mean, as acceptance_length"),
            Field("energy", "metrics_other", "J, W"),
        ),
        left_out=(
            ("engine.engine_dir, dataset.dataset_path", "folders of the machine"),
            ("world_info.issue_rate", "time a request, called a rate"),
            (
                "streaming_metrics.gen_tps_percentiles",
                "rates: their high percentiles are of the fast; TPOT tells the same",
            ),
        ),
        traps=(
            "The requests in flight that were asked for (--concurrency) are not written: declare them. Without the option all "
            "are sent at once.",
            "A published report of a 1.3.0rc12 run says version 1.2: declare what you know better.",
            "Requests of one token count as a TPOT of 0.",
            "Latencies are of calls inside the process: no HTTP, no second process.",
            "No time is written: a run.json or --measured-at dates the report.",
        ),
        needs=("concurrency",),
    ),
)
