"""What docs/formats.md says of llm-d benchmark reports."""

from __future__ import annotations

from pipelines.ingest.reading import Dictionary, Field

_LATENCIES = (
    Field("latency.time_to_first_token", "ttft_*", "units: s, ms"),
    Field("latency.request_latency", "e2el_*", "units: s, ms"),
    Field("latency.time_per_output_token", "tpot_*", "units: s/token, ms/token", "clients vllm-benchmark, inferencemax"),
    Field("latency.inter_token_latency", "itl_*", "units: s/token, ms/token", "clients vllm-benchmark, inferencemax"),
    Field("latency.time_per_output_token", "tpot_client_tokens_*", "units: s/token, ms/token", "client inference-perf"),
    Field("latency.inter_token_latency", "itl_client_tokens_*", "units: s/token, ms/token", "client inference-perf"),
    Field(
        "latency.normalized_time_per_output_token",
        "tpot_with_first_client_tokens_*",
        "units: s/token, ms/token",
        "client inference-perf",
    ),
    Field("latency.inter_token_latency", "tpot_*", "units: s/token, ms/token", "client guidellm"),
    Field("latency.inter_token_latency", "tpot_client_tokens_*", "units: s/token, ms/token", "client aiperf"),
    Field("latency.*", "metrics_other", "units: s/token, ms/token", "else: under the report's own name, in seconds"),
)
_REQUESTS = (
    Field("requests.total", "requests", "", "not of aiperf, and in 0.1 not of vllm-benchmark and inferencemax: completed ones"),
    Field("requests.failures", "requests_failed", "", "not of aiperf: kinds of errors"),
    Field("requests.input_length.mean", "isl_mean", "units: count"),
    Field("requests.output_length.mean", "osl_mean", "units: count"),
)
_TRAPS = (
    "`time_per_output_token` and `inter_token_latency` are what the client means by them; the client stands in the load.",
    "Reports of GuideLLM results that were converted before 2026-08-17 give `request_latency` in seconds and call it ms; the "
    "example of 0.1 calls all its seconds ms. Units are taken as stated; where the mean end-to-end latency is then shorter than "
    "the mean time to first token the report is refused. Where both are wrong alike, nothing shows it.",
    "`time_per_output_token` of GuideLLM changed its meaning in 0.4; it stays under its own name.",
    "inference-perf counts output tokens with its own tokenizer (unless told otherwise), so its throughput and its times per "
    "token are not those of the engine's count.",
    "`accelerator.count` is of one pod, whatever the schema says; GPUs are count times replicas (times workers), where that "
    "fits tensor-, pipeline- and data-parallel ranks, and are asked for where it does not.",
    "0 accelerators, -1 ranks, empty names and `unknown` stand for what the converter did not know; 1 for parallel sizes, "
    "`ep` above all, may stand for it as well.",
    "A deployment without prefill replicas calls its engines `decode`; it is an aggregated one.",
    "Replicas and data-parallel ranks have no column and stand, in words, in `system`, because they make another system.",
    "`dtype` is no precision of the weights; only `quantization` is.",
    "The published examples are dummies (a report that ends before it starts, throughputs of no deployment).",
)
_LEFT_OUT = (
    ("native.envars, native.config (but for the kind of load), args that may hold keys", "host names, keys, manifests"),
    ("throughput of other statistics than mean", "clients weigh them by tokens or by time, each its own way"),
    ("statistics other than mean, p50, stddev, p90, p95, p99, p99p9", "no column; kept in the log"),
)

V01_DICTIONARY = Dictionary(
    fields=(
        *(Field(f"metrics.{field.name}", field.becomes, field.unit, field.note) for field in (*_LATENCIES, *_REQUESTS)),
        Field("metrics.throughput.total_tokens_per_sec", "tput_per_gpu", "tok/s", "divided by GPUs"),
        Field("metrics.throughput.output_tokens_per_sec", "output_tput_per_gpu", "tok/s", "divided by (decode) GPUs"),
        Field("metrics.throughput.input_tokens_per_sec", "input_tput_per_gpu", "tok/s", "divided by (prefill) GPUs"),
        Field("metrics.throughput.requests_per_sec", "request_throughput", "requests/s"),
        Field("metrics.time.start", "measured_at", "Unix s"),
        Field("metrics.time.duration", "duration_s", "s"),
        Field("scenario.host.type, accelerator[]", "prefill_*, decode_*", "", "one entry a replica"),
        Field("scenario.platform.engine[].name", "engine", "", "an engine or an image reference"),
        Field("scenario.platform.engine[].version", "engine_version"),
        Field("scenario.model.name", "model_source"),
        Field("scenario.model.quantization", "precision"),
        Field("scenario.load.args", "request_rate", "requests/s", "the client's own configuration"),
        Field("metadata.eid", "run_id", "", "experiment"),
    ),
    left_out=(*_LEFT_OUT, ("metrics.service, metrics.resources", "server's own gauges, not of the requests")),
    traps=(*_TRAPS, "Reports of `nop` (load times) and of sessions hold zeros for latencies and are refused."),
    needs=("precision", "concurrency", "isl", "osl"),
)
V02_DICTIONARY = Dictionary(
    fields=(
        *(
            Field(f"results.request_performance.aggregate.{field.name}", field.becomes, field.unit, field.note)
            for field in (*_LATENCIES, *_REQUESTS)
        ),
        Field("….throughput.total_token_rate.mean", "tput_per_gpu", "units: tokens/s", "divided by GPUs"),
        Field("….throughput.output_token_rate.mean", "output_tput_per_gpu", "units: tokens/s", "divided by (decode) GPUs"),
        Field("….throughput.input_token_rate.mean", "input_tput_per_gpu", "units: tokens/s", "divided by (prefill) GPUs"),
        Field("….throughput.request_rate.mean", "request_throughput", "units: queries/s"),
        Field("run.time.start (else end)", "measured_at", "ISO 8601"),
        Field("run.time.duration", "duration_s", "ISO 8601", "not where it is the harness's own, equal to end - start"),
        Field("run.eid", "run_id", "", "experiment"),
        Field("scenario.stack[].standardized.role, replicas, accelerator", "prefill_*, decode_*"),
        Field(
            "scenario.stack[].standardized.tool, tool_version", "engine", "", "an engine, llm-d, a version or an image reference"
        ),
        Field("scenario.stack[] of a scheduler or router", "router"),
        Field("scenario.stack[].metadata.cfg_id", "recipe_fingerprint", "", "of the engines"),
        Field("scenario.stack[].native.args.kv-transfer-config", "kv_transfer"),
        Field("scenario.stack[].native.args.speculative-config", "spec_decoding"),
        Field("scenario.stack[].native.args.quantization", "precision"),
        Field("scenario.load.standardized.rate_qps", "request_rate", "requests/s"),
        Field("scenario.load.standardized.concurrency", "concurrency", "", "`.inf`: not bounded"),
        Field("scenario.load.standardized.input_seq_len.value", "isl", "tokens", "whole numbers; a fraction is a measured mean"),
        Field("scenario.load.standardized.output_seq_len.value", "osl", "tokens", "whole numbers; a fraction is a measured mean"),
        Field("scenario.load.standardized.source, prefix, multi_turn", "workload"),
    ),
    left_out=(
        *_LEFT_OUT,
        (
            "run.user, cid, pid; results.observability, time_series, component_health.replica_health",
            "hosts and users; tables by pod",
        ),
        ("results.session_performance", "of sessions, not of requests; kept in the log"),
    ),
    traps=(
        *_TRAPS,
        "`requests.input_length` of vllm-benchmark divides the tokens of completed requests by all that were sent.",
        "A report by inference-perf alone has no scenario: all that is of the deployment and the load is declared.",
    ),
    needs=("precision",),
)
