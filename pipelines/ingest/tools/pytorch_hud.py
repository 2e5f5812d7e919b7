"""Benchmark results in PyTorch's format (`*.pytorch.json`, rows of the OSS benchmark database v3): one record a metric.

Field meanings: vLLM `vllm/benchmarks/lib/utils.py`, PyTorch's `upload_benchmark_results.py`, the wiki page on the database. vLLM
writes such a list beside the result of every benchmark; the metrics of one list that share the rest are ONE measurement.

A list of `bench serve` holds the whole result, cut into pieces: put together it is the very record of the file beside it, so it
is given as such and kept once. Uploaded rows add the commit and the machine, lists of offline benchmarks the command line, which
the file beside them lacks: those are records of this format.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools import vllm_offline, vllm_serve, vllm_values
from pipelines.ingest.tools.labels import accelerator
from pipelines.ingest.tools.pytorch_rows import MARKERS, clean, first_of, object_of, unpack
from pipelines.ingest.tools.vllm_values import number, size, text
from warehouse.errors import InputError

SOURCE = "pytorch-hud"
"""Where the workflow runs of uploaded rows are unique."""
ENGINE_REPOSITORIES = {"vllm-project/vllm": "vllm", "sgl-project/sglang": "sglang"}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong or missing."""
    metrics, args = object_of(record.get("metrics")), object_of(record.get("args"))
    result = {**object_of(record.get("result")), **{name: first_of(values) for name, values in metrics.items()}}
    if "latency" in metrics:
        result["latencies"] = metrics["latency"]
    if result.keys() >= vllm_offline.LATENCY_MARKERS:
        return vllm_offline.with_lengths(_placed(record, vllm_offline.latency_told(result, args, given), given), given)
    if result.keys() >= vllm_offline.THROUGHPUT_MARKERS:
        return assembled(_placed(record, vllm_offline.throughput_told(result, args, given), given), given)
    if vllm_serve.FORMAT.recognises(result):
        return assembled(_placed(record, _serve(result, args, given), given), given)
    raise InputError(f"metrics: {', '.join(metrics)[:60] or 'none'}: not of vllm bench serve, latency or throughput")


def _serve(result: dict[str, Any], args: dict[str, Any], given: Given) -> Told:
    """Return what a serving result tells, with what only its command line tells."""
    told = vllm_serve.told(result, given)
    random = args if text(args, "dataset_name") == "random" else {}
    isl = size(random, "random_input_len")
    return replace(
        told,
        isl=told.isl or (isl + int(number(random, "random_prefix_len") or 0) if isl else None),
        osl=told.osl or size(random, "random_output_len"),
        workload=told.workload or text(args, "dataset_name"),
        tp=told.tp or size(args, "tensor_parallel_size"),
        model=told.model or text(args, "model"),
    )


def _placed(record: dict[str, Any], told: Told, given: Given) -> Told:
    """Return *told* with what the rows say of machine and software."""
    return replace(told, **_machine(record, told, given), **_software(record, told, given))


def _machine(record: dict[str, Any], told: Told, given: Given) -> dict[str, Any]:
    """Return accelerator and GPUs; the GPUs of the machine are those of the deployment only where there is one."""
    runners = record.get("runners")
    runner = object_of(runners[0]) if isinstance(runners, list) and runners else {}
    label = text(runner, "gpu_info", "type")
    said = {"num_gpus", "tp"} & (given.declared.keys() | given.named.keys())
    alone = number(runner, "gpu_count") == 1.0 and not (told.num_gpus or told.tp or said)
    return {
        "hardware": told.hardware or (accelerator(label)[1] if label else None),
        "hardware_label": told.hardware_label or label,
        "num_gpus": told.num_gpus or (1 if alone else None),
    }


def _software(record: dict[str, Any], told: Told, given: Given) -> dict[str, Any]:
    """Return engine, commit and model: `head_sha` is the engine's only where the repository is the engine's."""
    engine = ENGINE_REPOSITORIES.get(text(record, "repo") or "")
    carried = object_of(record.get("dependencies"))
    others = (text(object_of(carried.get(name)), "sha") for name in ENGINE_REPOSITORIES)
    commit = text(record, "head_sha") if engine else next(filter(None, others), None)
    return {
        "engine": told.engine or (None if "engine" in given.declared else engine),
        "engine_commit": told.engine_commit or commit,
        "model": told.model or text(object_of(record.get("model")), "name"),
    }


def origin(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the workflow run on the day that its result states; None where it states none.

    `timestamp` is no run time: of a checkout it is the commit's date. Raises InputError asking for `timezone`.
    """
    day = vllm_values.origin(object_of(record.get("result")), given)
    workflow = text(record, "workflow_id")
    if day is None or workflow is None or workflow == text(record, "timestamp"):
        return day
    attempt = size(record, "run_attempt") or 1
    started = datetime.combine(day.started_at.astimezone(UTC).date(), time(), UTC)
    return Origin(SOURCE, workflow[:120], started, attempt, name=text(record, "name"))


DICTIONARY = Dictionary(
    fields=(
        Field("metric.name, metric.benchmark_values", "metrics_other", "", "as the tool beside writes the metric of that name"),
        Field("metric.extra_info", "metrics_other", "", "the rest, as of vllm-serve, vllm-latency or vllm-throughput"),
        Field("benchmark.extra_info.args", "isl", "", "command line: model, sizes, lengths, batch, data set"),
        Field("runners[0].gpu_info", "hardware", "", "else `type`"),
        Field("head_sha", "build_id", "", "where `repo` is the engine's; elsewhere it is the commit of something else"),
        Field("workflow_id, run_attempt", "run_id", "", "where `metric.extra_info.date` tells the day"),
    ),
    left_out=(
        ("runners[].extra_info.hostname", "names of machines are not kept"),
        ("timestamp", "date of the commit, or of the upload: no run time"),
        ("runners[].gpu_count", "GPUs of the machine, not of the deployment, unless it is 1"),
        ("benchmark.extra_info.use_compile", "guessed from `eager` in the name of a file"),
    ),
    traps=(
        "The twelve records of one run are one measurement, and throughput is no metric among them.",
        "A `.pytorch.json` is overwritten by every run that appends to the JSON beside it: it holds the last alone.",
        "The list of `bench serve` put together is the record of the file beside it and is kept once.",
        "The database keeps values as 32-bit floats.",
    ),
    needs=("precision",),
)
FORMAT = RecordFormat(
    "pytorch-hud",
    "vLLM benchmarks in PyTorch's format (*.pytorch.json, rows of the OSS benchmark database v3)",
    MARKERS,
    read,
    without=frozenset({"metric"}),
    unpack=unpack,
    origin=origin,
    hints=vllm_offline.hints,
    clean=clean,
    dictionary=DICTIONARY,
)
