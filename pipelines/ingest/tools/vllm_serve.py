"""`vllm bench serve` results (`--save-result`, `--append-result`), from `benchmark_serving.py` of 2024 to vllm-bench of 2026.

Field meanings: vLLM `vllm/benchmarks/serve.py` and vllm-project/vllm-bench `src/output/json.rs` (both Apache-2.0), and records of
both generations. Traps read here: `"request_goodput:"` with a colon, `--metadata` pairs as texts at top
level, `"inf"`, local time without a zone, `p50_*` for the median, zeros where nothing was measured.

Belongs here: the record. Does not: PyTorch's envelope of it (`pytorch_hud`), offline benchmarks (`vllm_offline`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import finite, whole
from pipelines.ingest.reading import Dictionary, Field, Given, Reading, RecordFormat, Split
from pipelines.ingest.tools.labels import accelerator, told_by_names
from pipelines.ingest.tools.plain_names import precision_of
from pipelines.ingest.tools.vllm_kept import clean
from pipelines.ingest.tools.vllm_parts import PLAIN_NUMBERS, QUEUED, SETUP, parts
from pipelines.ingest.tools.vllm_values import (
    deployment,
    each,
    health,
    is_multi_turn,
    latencies,
    load,
    measured_at,
    number,
    origin,
    rates,
    size,
    text,
    throughput,
)

MARKERS = frozenset({"date", "backend", "model_id", "num_prompts", "request_rate"})
"""Keys that every record of `vllm bench serve` has; no record of SGLang's bench_serving has `date` or `model_id`."""
MULTI_TURN_MARKERS = frozenset({"date", "mode", "backend", "model_id", "num_conversations"})
DEFINITION = "vllm bench serve"
BEST_OF = "vllm bench serve, best_of"
"""Early generation (to spring 2025): output tokens may be of the client's tokenizer, later ones are of the server's usage."""
POOLING = "vllm bench serve, pooling"
"""Embeddings and the like: no output tokens, so that the total throughput is of input tokens alone."""
ENGINES = {
    "vllm": "vllm",
    "vllm-chat": "vllm",
    "vllm-pooling": "vllm",
    "vllm-rerank": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "trtllm",
    "tgi": "tgi",
    "lmdeploy": "lmdeploy",
    "deepspeed-mii": "deepspeed-mii",
    "scalellm": "scalellm",
    "llama.cpp": "llama.cpp",
}
"""Engines by `backend`, which is the client's protocol: what the user declares counts before it, and `openai` tells nothing."""
METADATA: dict[str, tuple[str, ...]] = {
    "engine": ("engine",),
    "engine_version": ("engine_version", "vllm_version", "version"),
    "engine_commit": ("engine_commit", "vllm_commit", "commit"),
    "image": ("image", "docker_image", "container_image"),
    "gpu": ("gpu", "gpu_type", "gpu_name", "accelerator", "hardware"),
    "num_gpus": ("num_gpus", "gpu_count", "n_gpus"),
    "tp": ("tensor_parallel_size", "tp", "tp_size"),
    "pp": ("pipeline_parallel_size", "pp", "pp_size"),
    "ep": ("expert_parallel_size", "ep", "ep_size"),
    "dp": ("data_parallel_size", "dp", "dp_size"),
    "precision": ("precision",),
    "quantization": ("quantization",),
    "isl": ("input_len", "random_input_len", "isl"),
    "osl": ("output_len", "random_output_len", "osl"),
    "workload": ("workload", "dataset_name", "dataset"),
    "spec_decoding": ("spec_decoding", "speculative_method"),
}
"""Keys of `--metadata` that are understood, by what they tell; the first that is there counts."""
HINTS = ("tp", "pp", "ep", "isl", "osl", "hardware", "precision", "workload")
UNNAMED = "unnamed"
"""Speculative decoding that the server reports and nobody names."""


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong or missing."""
    return assembled(told(record, given), given)


def told(record: dict[str, Any], given: Given) -> Told:
    """Return what *record* tells; raises InputError naming the field that is wrong."""
    said = {name: text(record, *keys) for name, keys in METADATA.items()}
    gpus, hardware = accelerator(said["gpu"]) if said["gpu"] else (None, None)
    sizes = {name: size(record, *METADATA[name]) for name in ("tp", "pp", "ep", "dp", "num_gpus", "isl", "osl")}
    completed = number(record, "completed")
    metrics, other = latencies(record)
    return Told(
        definition=_definition(record),
        engine=said["engine"] or _engine(record, given),
        engine_version=said["engine_version"],
        engine_commit=said["engine_commit"],
        image=said["image"],
        hardware=hardware,
        hardware_label=said["gpu"],
        num_gpus=sizes["num_gpus"] or gpus or deployment(sizes),
        model=text(record, "model_id", "model"),
        precision=said["precision"] or precision_of(said["quantization"]),
        spec_decoding=said["spec_decoding"] or _speculates(record, given),
        tp=sizes["tp"],
        pp=sizes["pp"],
        ep=sizes["ep"],
        isl=sizes["isl"],
        osl=sizes["osl"],
        workload=said["workload"] or _turns(record),
        scenario="multi-turn" if is_multi_turn(record) else "fixed-seq-len",
        **_replicas(record),
        throughput=throughput(record),
        metrics=metrics,
        other={**other, **_counters(record)},
        measured_at=measured_at(record, given),
        duration_s=number(record, "duration"),
        isl_mean=each(record, "total_input_tokens", completed),
        osl_mean=each(record, "total_output_tokens", completed),
        **load(record),
        **health(record),
    )


def _turns(record: dict[str, Any]) -> str | None:
    turns = size(record, "turns_per_conversation") if is_multi_turn(record) else None
    delay = number(record, "inter_turn_delay_ms") or 0.0
    return f"conversations of {turns} turns" + (f", {delay:g} ms apart" if delay else "") if turns else None


def _definition(record: dict[str, Any]) -> str:
    if "best_of" in record:
        return BEST_OF
    return POOLING if "total_token_throughput" in record and "output_throughput" not in record else DEFINITION


def _engine(record: dict[str, Any], given: Given) -> str | None:
    if given.declared.keys() & {"engine", "framework", "image"}:
        return None
    return ENGINES.get((text(record, "backend") or "").lower())


def _speculates(record: dict[str, Any], given: Given) -> str | None:
    used = number(record, "spec_decode_num_drafts") or number(record, "spec_decode_acceptance_length")
    return UNNAMED if used and "spec_decoding" not in given.declared else None


def _replicas(record: dict[str, Any]) -> dict[str, Any]:
    """Return workers, router and disagg as fields of Told, as llm-d's benchmark writes them into the metadata."""
    identity: dict[str, Any] = {}
    for role in ("prefill", "decode"):
        if (value := number(record, f"{role}_replicas")) is not None:
            identity[f"{role}_num_workers"] = whole(f"{role}_replicas", value, largest=1_000_000)
    if router := text(record, "gateway", "router"):
        identity["router"] = router[:80]
    return {"identity": identity, "disagg": True if identity.get("prefill_num_workers") else None}


def _counters(record: dict[str, Any]) -> dict[str, float]:
    found = {key: finite(key, value) for key in PLAIN_NUMBERS if (value := number(record, key)) is not None}
    if (share := number(record, "spec_decode_acceptance_rate", per=100.0)) is not None:
        found["spec_acceptance_rate"] = share
    if (length := number(record, "spec_decode_acceptance_length")) is not None:
        found["spec_acceptance_length"] = length
    queued = {name: number(record, key, per=1000.0) for key, name in QUEUED}
    return {**rates(record), **found, **{name: value for name, value in queued.items() if value is not None}}


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return sizes, lengths, accelerator, precision and data set that the names of the file and its folders tell."""
    return told_by_names(path, HINTS)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


DICTIONARY = Dictionary(
    fields=(
        Field("date", "measured_at", "", "end of the benchmark; local time without a zone (declare timezone), vllm-bench: UTC"),
        Field("backend", "engine", "", "protocol of the client: `vllm`, `sglang` … name the engine, `openai` does not"),
        Field("model_id", "model", "", "of an absolute path the last part is kept"),
        Field("num_prompts", "concurrency", "requests", "where all are sent at once (arrival `burst`)"),
        Field("num_prompts, completed, failed", "requests", "requests", "without `failed`: num_prompts - completed failed"),
        Field(
            "max_concurrency",
            "concurrency",
            "requests",
            "closed loop; beside a rate it is part of the arrival: `poisson, at most 64`",
        ),
        Field("multi_turn_concurrency", "concurrency", "conversations", "", "vllm-bench, 2026"),
        Field("request_rate", "request_rate", "requests/s", '`"inf"`: no rate'),
        Field("burstiness", "arrival", "", "1 poisson, else `gamma <burstiness>`, infinite: constant"),
        Field("ramp_up_*", "arrival", "requests/s", "", "mid 2025"),
        Field("duration", "duration_s", "s"),
        Field("total_input_tokens", "isl_mean", "tokens", "over completed requests"),
        Field("total_output_tokens", "osl_mean", "tokens", "over completed requests"),
        Field("total_token_throughput", "tput_per_gpu", "tok/s", "over the GPUs; else the sum of the other two"),
        Field("output_throughput", "output_tput_per_gpu", "tok/s", "over the GPUs"),
        Field("input_throughput", "input_tput_per_gpu", "tok/s", "over the GPUs; else total_input_tokens / duration"),
        Field("request_throughput", "request_throughput", "requests/s"),
        Field("request_goodput", "request_goodput", "requests/s", "to mid 2025 the key is `request_goodput:`, with the colon"),
        *(
            Field(f"<statistic>_{family}_ms", f"{family}_*", "ms", "`p50` is the median")
            for family in ("ttft", "tpot", "itl", "e2el")
        ),
        Field("<statistic>_e2el_including_client_queue_ms", "e2el_with_queue_*", "ms", "", "2026"),
        Field("spec_decode_acceptance_rate", "spec_acceptance_rate", "%", "its presence means that speculative decoding was on"),
        Field("spec_decode_acceptance_length", "spec_acceptance_length", "tokens"),
        *(Field(name, "metrics_other") for name in PLAIN_NUMBERS),
        *(
            Field(", ".join(METADATA[key]), becomes, "", "of `--metadata`")
            for key, becomes in (
                ("engine_version", "engine_version"),
                ("gpu", "hardware"),
                ("num_gpus", "num_gpus"),
                ("tp", "tp"),
                ("pp", "pp"),
                ("ep", "ep"),
                ("precision", "precision"),
                ("quantization", "precision"),
                ("isl", "isl"),
                ("osl", "osl"),
                ("workload", "workload"),
                ("spec_decoding", "spec_decoding"),
                ("image", "image_ref"),
            )
        ),
        Field(
            "prefill_replicas, decode_replicas", "decode_num_workers", "", "of llm-d's `--metadata`; prefill above 0 means disagg"
        ),
        Field("gateway", "router", "", "of llm-d's `--metadata`"),
    ),
    left_out=(
        ("generated_texts, errors, failed_requests", "prompts and outputs are nobody's business here"),
        ("input_lens, output_lens, ttfts, itls, latencies, start_times, queue_times", "one value a request; not kept"),
        ("max_concurrent_requests", "kept as a number, but no concurrency: it counts all that touch the same second"),
        ("metadata that looks like a host, an address, a user or a key", "not kept"),
        ("rtfx", "of speech alone"),
    ),
    traps=(
        "`--metadata` pairs land at top level as texts and overwrite `date`, `backend`, `model_id`, `num_prompts`.",
        "`date` is when the benchmark ended, in local time without a zone; without `timezone` the run's time counts.",
        "Statistics are of successful requests; a family that is all 0 was not measured and is left out.",
        "The gap to the last, empty chunk counts as a gap between tokens: of 16 tokens mean ITL is 1/16 below mean TPOT.",
        "Lengths are nominal only where metadata or the user says so: `isl_mean` and `osl_mean` tell what was sent and came.",
        "`backend: openai` names no engine; it is the default against any server.",
        "A record and its sibling `.pytorch.json` are one measurement and are kept once.",
        "vLLM's random data set draws from len(1-r) to len(1+r), SGLang's from len*r to len: the same flags send other lengths.",
    ),
    needs=("hardware", "num_gpus", "precision"),
    text=f"Known by {_listed(sorted(MARKERS))}; conversations of vllm-bench by {_listed(sorted(MULTI_TURN_MARKERS))}.",
)
SPLIT = Split(
    setup=SETUP.union(*METADATA.values()),
    parts=parts,
    clocks=frozenset({"date", "benchmark_start_time_unix"}),
    clock_of=measured_at,
)
FORMAT = RecordFormat(
    "vllm-serve",
    "vllm bench serve results (JSON, or lines of --append-result), also benchmark_serving.py and vllm-bench",
    MARKERS,
    read,
    SPLIT,
    without=frozenset({"good_completed"}),
    origin=origin,
    hints=hints,
    clean=clean,
    dictionary=DICTIONARY,
)
MULTI_TURN = RecordFormat(
    "vllm-bench-multi-turn",
    "vllm-bench results of conversations (mode multi_turn)",
    MULTI_TURN_MARKERS,
    read,
    SPLIT,
    without=frozenset({"num_prompts"}),
    origin=origin,
    hints=hints,
    clean=clean,
    dictionary=Dictionary(text="Fields as of vllm-serve. The input tokens of a turn are those of the whole conversation so far."),
)
