"""What docs/formats.md says of InferenceX rows: their fields, what becomes of them, traps. The readers are `inferencex*`."""

from __future__ import annotations

from pipelines.ingest.reading import Dictionary, Field

_STATISTICS = "mean, median, std, p90, p99, p99.9"
_ROLE_SIZES = {"tp": "tp", "pp": "pp", "ep": "ep", "dcp_size": "dcp", "pcp_size": "pcp", "dp_attention": "dp_attention"}

_OF_DEPLOYMENT = (
    Field("hw", "hardware", "", "a runner's label: `b200-trt`, `cluster:b300-nv`"),
    Field("prefill_hw", "prefill_hardware", "", "where it is another than `hw`", "2026-07-06"),
    Field("decode_hw", "decode_hardware", "", "where it is another than `hw`", "2026-07-06"),
    Field("framework", "framework", "", "older names are known; the engine follows from it", "2025-09-04"),
    Field("infmax_model_prefix", "model", "", "counts before `model`", "2025-12-05"),
    Field("model", "model_source", "", "path or hub id"),
    Field("precision", "precision", "", "missing before 2025-09-15: fp8", "2025-09-04"),
    Field("image", "image_ref", "", "`#` stands for `/`; null before 2025-12-08", "2025-12-05"),
    Field("spec_decoding", "spec_decoding", "", "", "2025-12-05"),
    Field("mtp", "spec_decoding", "", "`on`: mtp; until 2025-12-05", "2025-09-24"),
    Field("disagg", "disagg", "", "missing before 2025-11-17: true under Dynamo", "2025-11-17"),
    Field("is_multinode", "is_multinode", "", "", "2025-12-05"),
    *(Field(name, column, "ranks", "missing: 1, or false") for name, column in _ROLE_SIZES.items()),
    *(
        Field(f"{role}_{name}", f"{role}_{column}", "workers" if name == "num_workers" else "ranks", "", "2025-12-05")
        for role in ("prefill", "decode")
        for name, column in {**_ROLE_SIZES, "num_workers": "num_workers"}.items()
    ),
    Field("num_prefill_gpu", "num_prefill_gpus", "GPUs", "", "2025-11-17"),
    Field("num_decode_gpu", "num_decode_gpus", "GPUs", "0 where the same workers do both", "2025-11-17"),
    Field("router", "router", "", "name and version", "2026-07-13"),
    Field("kv_p2p_transfer", "kv_transfer", "", "", "2026-07-13"),
    Field("kv_offloading, kv_offload_backend", "kv_offload", "", "", "2026-07-13"),
    Field("recipe_fingerprint", "recipe_fingerprint", "", "empty: none", "2026-08-14"),
)
_WITH_FLAG = "with `power_valid` 1"
_POWER = (
    Field("avg_power_w", "avg_power_w", "W", "without `power_valid`", "2026-05-26"),
    Field("joules_per_output_token", "joules_per_output_token", "J", "without `power_valid`", "2026-05-26"),
    Field("joules_per_total_token", "joules_per_total_token", "J", "without `power_valid`", "2026-05-26"),
    Field("avg_power_w", "gpu_power_w", "W", _WITH_FLAG, "2026-08-05"),
    Field("avg_total_gpu_power_w", "deployment_power_w", "W", _WITH_FLAG, "2026-08-05"),
    Field("total_gpu_energy_j", "deployment_energy_j", "J", _WITH_FLAG, "2026-08-05"),
    *(
        Field(f"joules_per_{written}", f"{scope}_joules_per_{name}", "J", note, since)
        for scope, note, since in (
            ("integrated", f"{_WITH_FLAG}, no schema version", "2026-08-05"),
            ("deployment", f"{_WITH_FLAG}, schema version 2", "2026-08-18"),
        )
        for written, name in (
            ("successful_query", "query"),
            *((f"{kind}_token", f"{kind}_token") for kind in ("input", "output", "total")),
        )
    ),
    *(
        Field(name, name, unit, _WITH_FLAG, "2026-08-11")
        for name, unit in (
            ("prefill_avg_power_w", "W"),
            ("decode_avg_power_w", "W"),
            ("prefill_gpu_energy_j", "J"),
            ("decode_gpu_energy_j", "J"),
            ("prefill_joules_per_input_token", "J"),
            ("decode_joules_per_output_token", "J"),
        )
    ),
)
_NO_HOSTS = ("workers[].hosts", "names of machines")
_NO_FLAGS = ("power_valid, power_metric_schema_version", "flags; power that is not valid is not read")

FIXED = Dictionary(
    fields=(
        *_OF_DEPLOYMENT,
        Field("conc", "concurrency", "requests"),
        Field("isl", "isl", "tokens", "before, names of files and folders tell it: `1k8k`", "2025-11-21"),
        Field("osl", "osl", "tokens", "as `isl`", "2025-11-21"),
        Field("tput_per_gpu", "tput_per_gpu", "tok/s/GPU"),
        Field("output_tput_per_gpu", "output_tput_per_gpu", "tok/s/GPU", "disaggregated: per decode GPU", "2025-10-15"),
        Field("input_tput_per_gpu", "input_tput_per_gpu", "tok/s/GPU", "disaggregated: per prefill GPU", "2025-10-17"),
        *(Field(f"*_{name}", f"{name}_*", "s", _STATISTICS) for name in ("ttft", "tpot", "itl", "e2el")),
        Field("*_intvty", "intvty_*", "tok/s/user", "1 / tpot of the same statistic"),
        Field("benchmark_start_time_unix", "measured_at", "Unix s", "where a row holds it"),
        *_POWER,
        Field("num_prompts", "requests", "requests", "where a row holds it; else completed + failed"),
        Field("failed", "requests_failed", "requests", "else num_prompts - completed"),
        Field("duration", "duration_s", "s", "where a row holds it"),
        Field("total_input_tokens", "isl_mean", "tokens", "over completed requests"),
        Field("total_output_tokens", "osl_mean", "tokens", "over completed requests"),
    ),
    left_out=(("std_intvty", "1000 / std_tpot, which means nothing"), _NO_FLAGS, _NO_HOSTS),
    traps=(
        "Token rates of disaggregated rows are per role since 2025-11-05; before, over all GPUs. `metric_definition` tells.",
        "`joules_per_*` is three definitions under one name; each has its own name here.",
        "Decode GPUs of 0 are right where the same workers prefill and decode (since 2026-05-03).",
        "`mtp: on` says it for rows before 2025-12-05; the public API shows these rows as `none`.",
    ),
)

_LATENCY = "request_metrics.latency"
AGENTIC = Dictionary(
    fields=(
        *_OF_DEPLOYMENT,
        Field("scenario_type", "scenario"),
        Field("dataset.hf_dataset_name", "workload", "", "else dataset.loader", "2026-07"),
        Field("conc, users", "concurrency", "sessions", "agents at once; each sends as its trace does"),
        Field("offloading, offload_mode", "kv_offload", "", "v1 and v2; the API's `offload_mode` says on or off"),
        Field("num_requests_total", "requests", "requests", "v3: request_accounting.records_total, warm-up left out"),
        Field("num_requests_successful", "requests_failed", "requests", "total - successful; v2 does not tell"),
        Field("request_metrics.throughput.per_gpu.total_tput_tps", "tput_per_gpu", "tok/s/GPU", "cached input counts"),
        Field("request_metrics.throughput.per_gpu.output_tput_tps", "output_tput_per_gpu", "tok/s/GPU", "over all GPUs"),
        Field("request_metrics.throughput.per_gpu.input_tput_tps", "input_tput_per_gpu", "tok/s/GPU", "over all GPUs"),
        Field("request_metrics.throughput.duration_seconds", "duration_s", "s", "first start to last end"),
        Field(f"{_LATENCY}.ttft", "ttft_*", "s"),
        Field(f"{_LATENCY}.e2el", "e2el_*", "s"),
        Field(f"{_LATENCY}.tpot", "tpot_*", "s", "v2, v3"),
        Field("*_tpot", "tpot_client_tokens_*", "s", "v1"),
        Field(f"{_LATENCY}.full_response_itl", "tpot_full_response_*", "s", "", "2026-08-07"),
        Field(f"{_LATENCY}.e2e_norm_intvty", "tpot_with_first_*", "tok/s/user", "1 / it", "2026-08-14"),
        Field("request_metrics.qps", "completions_per_second_*", "requests/s"),
        Field("request_metrics.tokens.input.mean", "isl_mean", "tokens"),
        Field("request_metrics.tokens.output_actual.mean", "osl_mean", "tokens"),
        Field("request_metrics.cache.theoretical_cache_hit_rate", "theoretical_cache_hit_rate", "share of 1"),
        Field("server_metrics.cache.gpu_cache_hit_rate", "server_gpu_cache_hit_rate", "share of 1"),
        Field("server_metrics.cache.cpu_cache_hit_rate", "server_cpu_cache_hit_rate", "share of 1"),
        Field("server_metrics.kv_cache, tokens, kv_offload", "metrics_other"),
        Field("kv_cache_pool_tokens", "metrics_other", "tokens", "", "2026-07-09"),
        Field("allocated_cpu_dram_gb", "metrics_other", "GB"),
        *_POWER,
    ),
    left_out=(
        ("itl", "the same numbers as tpot: a request's mean gap, no gap between chunks"),
        ("intvty, full_response_intvty", "v1 and v2 write percentiles of rates; interactivity follows from tpot"),
        ("warnings, request_accounting.error_categories, server_metrics.sources", "texts and addresses of machines"),
        _NO_FLAGS,
        _NO_HOSTS,
    ),
    traps=(
        "tp, ep and dp_attention of a row with roles are sums over the roles; the sizes by role count.",
        "v3 rounds all numbers to five decimals: TPOT is known to 10 µs.",
        "v1 counts tokens with the client's tokenizer, chunk by chunk: its TPOT has another name, its token rates are higher.",
        "v2 counts warm-up requests among the measured ones and drops failed ones unseen.",
        "The harness changed on 2026-05-17, 06-02, 07-02, 07-13, 07-29 and 08-02; rows do not say which one ran.",
    ),
)

_RENAMED = {"hw": "hardware", "infmax_model_prefix": "model", "spec_decoding": "spec_method"}
_IN_API = frozenset({"hardware", "framework", "model", "precision", "image", "spec_method", "disagg", "is_multinode"})
API = Dictionary(
    fields=(
        *(
            Field(_RENAMED.get(field.name, field.name), field.becomes)
            for field in _OF_DEPLOYMENT
            if _RENAMED.get(field.name, field.name if field.name != "model" else "") in _IN_API
        ),
        *(Field(f"prefill_{name}", name, "ranks", "one node and no workers: no roles") for name in ("tp", "ep", "dp_attention")),
        *(
            Field(f"{role}_{name}", f"{role}_{name}", "", "several nodes, or workers")
            for role in ("prefill", "decode")
            for name in ("tp", "ep", "dp_attention", "num_workers")
        ),
        Field("num_prefill_gpu", "num_prefill_gpus", "GPUs", "where there are roles"),
        Field("num_decode_gpu", "num_decode_gpus", "GPUs", "where there are roles"),
        Field("metrics.pp, metrics.dcp_size, metrics.pcp_size, metrics.prefill_*, metrics.decode_*", "pp", "ranks", "and so on"),
        Field("metrics.router_name, metrics.router_version", "router"),
        Field("metrics.kv_p2p_transfer", "kv_transfer"),
        Field("metrics.kv_offloading, offload_mode", "kv_offload"),
        Field("benchmark_type", "scenario", "", "`agentic_traces`: read as an agentic row"),
        Field("isl", "isl", "tokens"),
        Field("osl", "osl", "tokens"),
        Field("conc", "concurrency", "requests"),
        Field("metrics.*", "metrics_other", "", "and the columns of metrics, under the names of the artifact's row"),
        Field("run_url", "run_id", "", "with the attempt"),
        Field("run_started_at, date", "run_started_at"),
    ),
    left_out=(
        ("id, workflow_run_id", "keys of the app's database"),
        ("metrics.recipe_fingerprint", "a number that the app makes of the beginning of a hash"),
        ("num_prefill_gpu, num_decode_gpu without roles", "tp·ep, which is not the number of GPUs"),
        _NO_HOSTS,
    ),
    traps=(
        "`date` is the UTC day of the run's creation; rows reused from a pull request's run carry a later one.",
        "History rows hold no mean and no standard deviation.",
        "Rows before 2025-12-05 with `mtp: on` are shown as `none`.",
        "GPUs by role of 2025-11-17 to 2025-12-05 and the data set of agentic rows are lost: such rows are other cells.",
        "A row of the API and the artifact's own row are one measurement: take one of the two.",
    ),
)
