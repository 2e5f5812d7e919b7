"""Raw output of the serving client under InferenceX-like sweeps: seconds, names without a unit, the setup in the file name.

Field meanings: real files of February 2026 and the client that wrote them, a small relative of vLLM's `benchmark_serving.py`
with medians and 99th percentiles alone. Model and load stand in the record; engine, sizes, lengths and precision stand in names
such as `glm5_fp8_vllm_tp8_isl8192_osl128_conc32.json`; the accelerator stands nowhere and is declared.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.reading import Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools.labels import told_by_names
from pipelines.ingest.tools.vllm_kept import clean
from pipelines.ingest.tools.vllm_values import each, health, latencies, load, measured_at, number, origin, rates, text, throughput

MARKERS = frozenset({"date", "model_id", "num_prompts", "request_rate", "good_completed"})
DEFINITION = "inferencex serving client"
HINTS = ("engine", "precision", "hardware", "tp", "pp", "ep", "dp_attention", "isl", "osl")


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong or missing."""
    completed = number(record, "completed")
    metrics, other = latencies(record, suffix="", per=1.0)
    told = Told(
        definition=DEFINITION,
        model=text(record, "model_id"),
        throughput=throughput(record),
        metrics=metrics,
        other={**other, **rates(record)},
        measured_at=measured_at(record, given),
        duration_s=number(record, "duration"),
        isl_mean=each(record, "total_input_tokens", completed),
        osl_mean=each(record, "total_output_tokens", completed),
        **load(record),
        **health(record),
    )
    return assembled(told, given)


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return engine, precision, sizes and lengths that the names of the file and its folders tell."""
    return told_by_names(path, HINTS)


FORMAT = RecordFormat(
    "inferencex-serving",
    "raw output of the serving client under InferenceX sweeps (seconds; setup in the file name)",
    MARKERS,
    read,
    without=frozenset({"backend", "hw"}),
    origin=origin,
    hints=hints,
    clean=clean,
    dictionary=Dictionary(
        fields=(
            Field("date", "measured_at", "", "end of the benchmark, local time without a zone: declare timezone"),
            Field("model_id", "model"),
            Field("num_prompts, completed", "requests", "requests", "num_prompts - completed failed"),
            Field("max_concurrency", "concurrency", "requests", "closed loop"),
            Field("request_rate, burstiness", "request_rate", "requests/s", '`"inf"`: no rate'),
            Field("duration", "duration_s", "s"),
            Field("total_input_tokens", "isl_mean", "tokens", "over completed requests"),
            Field("total_output_tokens", "osl_mean", "tokens", "over completed requests"),
            Field("input_throughput", "input_tput_per_gpu", "tok/s", "over the GPUs"),
            Field("output_throughput", "output_tput_per_gpu", "tok/s", "over the GPUs"),
            Field("input_throughput + output_throughput", "tput_per_gpu", "tok/s", "over the GPUs"),
            *(Field(f"median_{name}, p99_{name}", f"{name}_*", "s") for name in ("ttft", "tpot", "e2el")),
            Field("request_throughput", "request_throughput", "requests/s"),
            Field("request_goodput", "request_goodput", "requests/s"),
            Field("file name: tp8, tep8, dep8, pp2", "tp", "", "tep8 is tp 8 and ep 8; dep8 has data-parallel attention as well"),
            Field("file name: isl8192, osl128, 8k1k", "isl", "tokens"),
            Field("file name: vllm, sglang, trt", "engine"),
            Field("file name: fp8, fp4, bf16", "precision"),
        ),
        left_out=(("good_completed", "request_goodput tells the same"),),
        traps=(
            "The names are those of vLLM, but in seconds: `median_ttft` 3.98 is 3.98 s.",
            "Only medians and 99th percentiles, no means and no gaps between tokens.",
        ),
        needs=("hardware", "num_gpus"),
    ),
)
