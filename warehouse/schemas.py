"""The exact schema of every table: column, type, unit and meaning, in storage order.

A frame that does not match is refused (`warehouse.store`), because delta-rs would cast it without a word. Types are kept to
what every Delta reader can read: String, Int64, Float64, Boolean, Datetime(us, UTC), List, Struct.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

TEXT = pl.String()
INT = pl.Int64()
REAL = pl.Float64()
FLAG = pl.Boolean()
TIME = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String())
LABELS = pl.List(pl.Struct({"name": pl.String(), "value": pl.String()}))
NUMBERS = pl.List(pl.Int64())
GAINS = pl.List(
    pl.Struct(
        {
            "metric": pl.String(),
            "low_pct": pl.Float64(),
            "high_pct": pl.Float64(),
            "factor": pl.Float64(),
            "of_part": pl.Boolean(),
            "words": pl.String(),
        }
    )
)
METRICS = pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()}))


@dataclass(frozen=True)
class Column:
    """One column: its name, polars type and meaning (with the unit, where it has one)."""

    name: str
    dtype: pl.DataType
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: its name, what a row is, its columns and the columns that order its rows."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    append_only: bool = False
    indexed: tuple[str, ...] = ()
    """Columns whose least and greatest value are kept for every file; () keeps those of the first 32."""
    unique: frozenset[str] = frozenset()
    """Text columns whose values hardly repeat."""

    @property
    def schema(self) -> pl.Schema:
        """The polars schema, in column order."""
        return pl.Schema({column.name: column.dtype for column in self.columns})


EVENTS = Table(
    "events",
    "the append-only log: one row a fact, statement or decision",
    (
        Column("sequence", INT, "total order of the log, from 1, without gaps"),
        Column("event_id", TEXT, "hash of type, subject and payload"),
        Column("event_type", TEXT, "past-tense name of the fact"),
        Column("subject", TEXT, "what the fact is about"),
        Column("occurred_at", TIME, "when it was true"),
        Column("published_at", TIME, "when it was made public, where known"),
        Column("recorded_at", TIME, "when we learned it"),
        Column("source_name", TEXT, "file (and archive member) that it was read from"),
        Column("source_sha256", TEXT, "hash of that file's bytes"),
        Column("source_position", TEXT, "place in that file"),
        Column("source_reader", TEXT, "reader that read it"),
        Column("schema_version", INT, "version of the payload's shape"),
        Column("payload", TEXT, "canonical JSON"),
    ),
    order=("sequence",),
    append_only=True,
    indexed=("sequence", "event_type", "subject", "recorded_at"),
    unique=frozenset({"event_id", "payload"}),
)

SUBJECTS = Table(
    "subjects",
    "where in the log each subject stands, so that an append reads what it may repeat and nothing else; rows of one add up",
    (
        Column("subject", TEXT, "what the events are about"),
        Column("first_sequence", INT, "first event about it"),
        Column("last_sequence", INT, "last event about it"),
    ),
    order=("subject", "first_sequence", "last_sequence"),
    unique=frozenset({"subject"}),
)

RUNS = Table(
    "runs",
    "one row a benchmark run and attempt (SQL shows those that were not retracted; `all_runs` all)",
    (
        Column("run_source", TEXT, "where the run's number is unique: a repository, or `local`"),
        Column("run_id", TEXT, "the run's number there"),
        Column("run_attempt", INT, "attempt, from 1"),
        Column("name", TEXT, "workflow name"),
        Column("head_branch", TEXT, "branch of the benchmark repository"),
        Column("head_sha", TEXT, "commit of the benchmark repository"),
        Column("trigger", TEXT, "what started it: push, schedule, …"),
        Column("status", TEXT, "as the source says"),
        Column("conclusion", TEXT, "as the source says"),
        Column("created_at", TIME, "when it was queued"),
        Column("started_at", TIME, "when it started"),
        Column("published_at", TIME, "when the source last changed it: its results are public from then on"),
        Column("url", TEXT, "its page"),
        Column("declared", FLAG, "true where the user declared the time"),
        Column("reports", INT, "different contents of its reports; more than one: it was corrected, or the sources disagree"),
        Column("points", INT, "points that it holds, those that were retracted left out"),
        Column("retraction", TEXT, "why the whole run does not count; null: it does"),
        Column("recorded_at", TIME, "when we learned of it, in the report that holds"),
    ),
    order=("started_at", "run_source", "run_id", "run_attempt"),
)

IDENTITY: tuple[Column, ...] = (
    Column("hardware", TEXT, "accelerator, canonical name: h100, b200, mi355x, …"),
    Column("engine", TEXT, "inference engine: vllm, sglang, trtllm, atom, …"),
    Column("framework", TEXT, "serving stack round the engine: the engine itself, dynamo-trt, mori-sglang, …"),
    Column("model", TEXT, "model family, canonical name"),
    Column("precision", TEXT, "weight precision: fp4, fp8, bf16, int4"),
    Column("spec_decoding", TEXT, "speculative decoding method, or none"),
    Column("disagg", FLAG, "prefill and decode run on separate workers"),
    Column("is_multinode", FLAG, "more than one node"),
    Column("prefill_hardware", TEXT, "accelerator that prefills, where it is another than `hardware`"),
    Column("decode_hardware", TEXT, "accelerator that decodes, where it is another than `hardware`"),
    Column("tp", INT, "tensor-parallel ranks (single deployment)"),
    Column("pp", INT, "pipeline-parallel ranks"),
    Column("ep", INT, "expert-parallel ranks"),
    Column("dcp", INT, "decode-context-parallel ranks"),
    Column("pcp", INT, "prefill-context-parallel ranks"),
    Column("dp_attention", FLAG, "data-parallel attention"),
    Column("prefill_tp", INT, "tensor-parallel ranks of a prefill worker"),
    Column("prefill_pp", INT, "pipeline-parallel ranks of a prefill worker"),
    Column("prefill_ep", INT, "expert-parallel ranks of a prefill worker"),
    Column("prefill_dcp", INT, "decode-context-parallel ranks of a prefill worker"),
    Column("prefill_pcp", INT, "prefill-context-parallel ranks of a prefill worker"),
    Column("prefill_dp_attention", FLAG, "data-parallel attention on prefill workers"),
    Column("prefill_num_workers", INT, "prefill workers"),
    Column("num_prefill_gpus", INT, "GPUs that prefill"),
    Column("decode_tp", INT, "tensor-parallel ranks of a decode worker"),
    Column("decode_pp", INT, "pipeline-parallel ranks of a decode worker"),
    Column("decode_ep", INT, "expert-parallel ranks of a decode worker"),
    Column("decode_dcp", INT, "decode-context-parallel ranks of a decode worker"),
    Column("decode_pcp", INT, "prefill-context-parallel ranks of a decode worker"),
    Column("decode_dp_attention", FLAG, "data-parallel attention on decode workers"),
    Column("decode_num_workers", INT, "decode workers"),
    Column("num_decode_gpus", INT, "GPUs that decode; 0 is legitimate where prefill GPUs decode as well"),
    Column("router", TEXT, "request router, name and version"),
    Column("kv_transfer", TEXT, "how the KV cache moves between prefill and decode"),
    Column("kv_offload", TEXT, "where the KV cache is offloaded to, with its backend"),
    Column("scenario", TEXT, "kind of workload: fixed-seq-len, agentic-coding, mlperf-server, …"),
    Column("isl", INT, "nominal input length, tokens"),
    Column("osl", INT, "nominal output length, tokens"),
    Column("workload", TEXT, "data set or generator of the prompts, where told"),
    Column("arrival", TEXT, "how requests arrive; null: a closed loop; else poisson, constant, burst, offline, batch"),
    Column("system", TEXT, "named system under test, where whole systems are compared (MLPerf)"),
)
"""Every identity field of a curve; a cell is these plus the load: `concurrency`, or `request_rate`."""
LATER_IDENTITY = ("workload", "arrival", "system")
"""Identity fields that came later: they count only where they are told, so that the ids of what was there before stay."""

LATENCIES = {
    "ttft": "time to first token",
    "tpot": "time per output token after the first",
    "itl": "gap between tokens",
    "e2el": "end-to-end latency",
}
STATISTICS = ("mean", "median", "std", "p90", "p95", "p99", "p999")
METRIC_COLUMNS: tuple[Column, ...] = (
    Column("tput_per_gpu", REAL, "input and output tokens a second and GPU, tok/s/GPU"),
    Column("output_tput_per_gpu", REAL, "output tok/s/GPU (disaggregated: per decode GPU)"),
    Column("input_tput_per_gpu", REAL, "input tok/s/GPU (disaggregated: per prefill GPU)"),
    Column(
        "steady_output_tput_per_gpu",
        REAL,
        "steady-state output tok/s/GPU by Little's law from the median: concurrency * osl / e2el_median / num_gpus",
    ),
    *(
        Column(f"{family}_{statistic}", REAL, f"{statistic} {meaning}, s")
        for family, meaning in LATENCIES.items()
        for statistic in STATISTICS
    ),
    *(
        Column(f"intvty_{statistic}", REAL, f"{statistic} interactivity, tok/s/user (a percentile is of the slow tail)")
        for statistic in ("mean", "median", "p90", "p99", "p999")
    ),
)

POINTS = Table(
    "points",
    "one row a record: one cell measured once (SQL shows those that were not retracted; `all_points` all)",
    (
        Column("point_id", TEXT, "the event that recorded it"),
        Column("sequence", INT, "place of that event in the log"),
        Column("record_hash", TEXT, "hash of the raw record"),
        Column("measurement_key", INT, "hash of cell, build and numbers: equal where two records tell of one measurement"),
        Column("record_format", TEXT, "reader that mapped it"),
        Column("cell_id", TEXT, "hash of every identity field and the concurrency"),
        Column("curve_id", TEXT, "hash of every identity field but the concurrency"),
        Column("run_source", TEXT, "where the run's number is unique"),
        Column("run_id", TEXT, "benchmark run"),
        Column("run_attempt", INT, "attempt, from 1"),
        Column("measured_at", TIME, "start of the benchmark, else of its run; of a re-used record, when it was measured"),
        Column("run_started_at", TIME, "start of its run"),
        Column("published_at", TIME, "when it was made public, where known"),
        Column("recorded_at", TIME, "when we learned it"),
        Column("declared", FLAG, "true where the user declared the time of its run"),
        Column("build_id", TEXT, "software under test: key of `builds`"),
        Column("image_ref", TEXT, "normalised image reference"),
        Column("image_digest", TEXT, "digest, where it is known; never invented"),
        Column("engine_version", TEXT, "engine version: as the record or the user says, else where the image tells it"),
        *IDENTITY,
        Column("concurrency", INT, "client concurrency, requests; null where the load is a rate"),
        Column("request_rate", REAL, "requests a second that the client sent, where the load is a rate"),
        Column("num_gpus", INT, "GPUs of the deployment"),
        Column("hardware_label", TEXT, "runner label as recorded"),
        Column("model_source", TEXT, "model path or hub id as recorded"),
        Column("checkpoint", TEXT, "last part of model_source in lower case"),
        Column("recipe_fingerprint", TEXT, "recipe identity, where the record has one"),
        Column("metric_definition", TEXT, "which definition of the metrics holds"),
        *METRIC_COLUMNS,
        Column("metrics_other", METRICS, "numbers that have no column, by the name of their definition or their own"),
        Column("requests", INT, "requests that the client sent, where told"),
        Column("requests_failed", INT, "of these, failed; latencies are of the others alone"),
        Column("duration_s", REAL, "length of the measurement, s"),
        Column("isl_mean", REAL, "mean input length that was sent, tokens"),
        Column("osl_mean", REAL, "mean output length that came, tokens"),
        Column("declared_fields", TEXTS, "fields that the record does not hold: declared by the user, or told by a file's name"),
        Column(
            "reused", FLAG, "the very same record stands under another run as well; it is no repeat and is compared there only"
        ),
        Column("retraction", TEXT, "why it does not count; null: it does"),
        Column(
            "health",
            TEXTS,
            "cold_start (or …_unknown), latency_skew, failures, token_mismatch, few_requests, short, percentiles_missing",
        ),
        Column("verdict", TEXT, "fit, suspect or unfit for comparison"),
    ),
    order=("measured_at", "run_source", "run_id", "run_attempt", "cell_id", "record_hash", "point_id"),
    indexed=(
        "sequence",
        "measurement_key",
        "cell_id",
        "curve_id",
        "run_id",
        "measured_at",
        "recorded_at",
        "hardware",
        "engine",
        "model",
    ),
    unique=frozenset({"point_id", "record_hash"}),
)

EVALS = Table(
    "evals",
    "one row a score: a task of an evaluation by one metric (SQL shows those that were not retracted; `all_evals` all)",
    (
        Column("eval_id", TEXT, "hash of the event, the task and the metric"),
        Column("event_id", TEXT, "the event that recorded it"),
        Column("sequence", INT, "place of that event in the log"),
        Column("record_hash", TEXT, "hash of the raw record"),
        Column("record_format", TEXT, "reader that mapped it"),
        Column("curve_id", TEXT, "hash of every identity field that it tells"),
        Column("run_source", TEXT, "where the run's number is unique"),
        Column("run_id", TEXT, "benchmark run"),
        Column("run_attempt", INT, "attempt, from 1"),
        Column("measured_at", TIME, "when it was evaluated, else the start of its run"),
        Column("run_started_at", TIME, "start of its run"),
        Column("published_at", TIME, "when it was made public, where known"),
        Column("recorded_at", TIME, "when we learned it"),
        Column("declared", FLAG, "true where the user declared the time of its run"),
        Column("build_id", TEXT, "software under test: as in `points`"),
        Column("image_ref", TEXT, "normalised image reference"),
        Column("image_digest", TEXT, "digest, where it is known"),
        Column("engine_version", TEXT, "engine version, where known"),
        *IDENTITY,
        Column("concurrency", INT, "client concurrency, requests"),
        Column("hardware_label", TEXT, "runner label as recorded"),
        Column("model_source", TEXT, "model path or hub id as recorded"),
        Column("checkpoint", TEXT, "last part of model_source in lower case"),
        Column("task", TEXT, "task that was evaluated"),
        Column("metric", TEXT, "metric and filter, as the harness names them"),
        Column("score", REAL, "its value; a share of 1 for metrics that are shares"),
        Column("score_stderr", REAL, "standard error, same unit"),
        Column("samples", INT, "questions that were asked"),
        Column("samples_total", INT, "questions of the whole task; more than were asked: another measurement"),
        Column("few_shot", INT, "worked examples in the prompt"),
        Column("harness_version", TEXT, "version of the evaluation harness"),
        Column("task_version", TEXT, "version of the task's definition"),
        Column("declared_fields", TEXTS, "fields that the record does not hold: declared by the user, or told by a file's name"),
        Column("retraction", TEXT, "why it does not count; null: it does"),
    ),
    order=("measured_at", "run_source", "run_id", "run_attempt", "task", "metric", "eval_id"),
    indexed=("measured_at", "run_id", "hardware", "engine", "model", "task"),
)

BUILDS = Table(
    "builds",
    "one row a build: the software under test, with how we know it",
    (
        Column("build_id", TEXT, "`digest:…` where a digest is known, else `tag:` and the normalised reference"),
        Column("image_ref", TEXT, "normalised image reference"),
        Column("image_digest", TEXT, "digest, where it is known"),
        Column("repo", TEXT, "image repository"),
        Column("tag", TEXT, "image tag"),
        Column("engine", TEXT, "inference engine"),
        Column("engine_version", TEXT, "version, where known: as a registry tells it, else the tag, else the record"),
        Column("stated_version", TEXT, "version that records or users state"),
        Column("commit", TEXT, "commit, where known"),
        Column("date", TEXT, "build date in the tag, where it has one"),
        Column("wrapper", TEXT, "wrapper such as dynamo"),
        Column("wrapper_version", TEXT, "its version"),
        Column("source", TEXT, "where the version or commit is known from"),
        Column("confidence", TEXT, "high, medium, low, none"),
        Column(
            "build_order",
            INT,
            "order among the builds of one engine: by ancestry where commits are known, then PEP 440, else as first measured",
        ),
        Column("first_measured_at", TIME, "first point"),
        Column("last_measured_at", TIME, "last point"),
        Column("first_recorded_at", TIME, "when we first learned of a point"),
        Column("points", INT, "points measured on it, those that were retracted left out"),
    ),
    order=("engine", "build_order", "build_id"),
)

NOISE = Table(
    "noise",
    "how far a metric moves when nothing changed, per group and level",
    (
        Column(
            "level", TEXT, "line (stack with framework, precision and deployment), stack (hardware and engine), engine, or global"
        ),
        Column("hardware", TEXT, "accelerator at line and stack level"),
        Column("engine", TEXT, "engine at line, stack and engine level"),
        Column("framework", TEXT, "serving stack at line level"),
        Column("precision", TEXT, "weight precision at line level"),
        Column("deployment", TEXT, "single or disaggregated, at line level"),
        Column("metric", TEXT, "metric"),
        Column(
            "unit",
            TEXT,
            "curve: median over four cells or more; point: one cell; run: what sibling curves of a run share; cell: one about "
            "its own curve",
        ),
        Column("scale", REAL, "shrunk robust scale of one observation, log-ratio"),
        Column("raw_scale", REAL, "scale of this group's own repeats, log-ratio"),
        Column("repeats", INT, "same-build, same-recipe pairs of observations behind it, whatever the unit"),
        Column("until", TEXT, "last night whose repeats are in it"),
        Column("version", TEXT, "hash of all repeats up to that night"),
    ),
    order=("level", "engine", "hardware", "framework", "precision", "deployment", "metric", "unit"),
)

SIDE = (
    ("measured_at", TIME, "when"),
    ("recorded_at", TIME, "when we knew all"),
    ("run_id", TEXT, "run"),
    ("run_source", TEXT, "where the run's number is unique"),
    ("run_attempt", INT, "attempt"),
    ("build_id", TEXT, "build"),
    ("image_ref", TEXT, "image"),
    ("image_digest", TEXT, "digest"),
    ("engine_version", TEXT, "engine version"),
)
CONTEXT = tuple(
    column
    for column in IDENTITY
    if column.name in ("hardware", "engine", "framework", "model", "precision", "spec_decoding", "disagg", "isl", "osl")
)
COMPARISON: tuple[Column, ...] = (
    Column("curve_id", TEXT, "curve"),
    Column("night", TEXT, "UTC day of the later observation"),
    *CONTEXT,
    *(Column(f"from_{name}", dtype, f"{meaning} of the earlier observation") for name, dtype, meaning in SIDE),
    *(Column(f"to_{name}", dtype, f"{meaning} of the later observation") for name, dtype, meaning in SIDE),
    Column("gap_days", REAL, "days between the two"),
    Column("cells", INT, "concurrencies compared"),
    Column("cells_total", INT, "concurrencies of either observation"),
    Column("metric", TEXT, "metric that the size is of"),
    Column(
        "part",
        TEXT,
        "curve, or the half of it that moved (low_concurrency, high_concurrency), or unfit_cells: the size is of the worst",
    ),
    Column("size", REAL, "log-ratio, later over earlier, positive = better"),
    Column("size_pct", REAL, "the same as a change of the metric's better direction, %"),
    Column("interval_low_pct", REAL, "90 % interval, lower end, %"),
    Column("interval_high_pct", REAL, "90 % interval, upper end, %"),
    Column("coherent", FLAG, "the cells agree: |median| > 1.48 MAD about it"),
    Column(
        "agreeing", INT, "cells of the judged part that moved the same way as the size (of unfit_cells: those that went astray)"
    ),
    Column("reported_pct", REAL, "tput_per_gpu as recorded, %, positive = better"),
    Column("steady_pct", REAL, "steady-state throughput, %, positive = better"),
    Column("tpot_pct", REAL, "median TPOT, %, positive = better"),
    Column("ttft_pct", REAL, "median TTFT, %, positive = better"),
    Column("noise_scale", REAL, "scale of one observation that was used, log-ratio"),
    Column("noise_level", TEXT, "level that it came from"),
    Column("noise_repeats", INT, "repeats behind it; fewer than three: insufficient repeats"),
    Column("noise_version", TEXT, "hash of all repeats that were known by that night"),
    Column("explained_share", REAL, "of a measurement notice: share of the reported change that vanishes in the steady state"),
    Column(
        "p_value",
        REAL,
        "Student t with 4 degrees of freedom; the larger of the two witnesses, times the parts or cells picked from",
    ),
    Column(
        "q_value",
        REAL,
        "Benjamini-Hochberg within one night, among comparisons in which something, or nothing, changed; notices: among all; 1: "
        "it is below its gate; null: the second pass found it",
    ),
    Column("change_set", TEXTS, "all that is known to differ between the two"),
    Column("change_detail", TEXTS, "the same in words"),
    Column("same_build", FLAG, "nothing in the build differs"),
    Column(
        "attribution",
        TEXT,
        "engine, recipe, harness, checkpoint, hardware, environment, measurement, mixed, unknown; null: not flagged",
    ),
    Column("health", TEXTS, "health findings of either observation"),
    Column("flagged", FLAG, "passes effect gate, noise floor and false-discovery control"),
)

DIFFS = Table(
    "diffs",
    "every comparison of a curve (of rare series: of one cell) with its previous comparable observation, flagged or not",
    (Column("diff_id", TEXT, "hash of curve and both observations"), *COMPARISON),
    order=("to_measured_at", "to_run_id", "curve_id", "to_build_id"),
)

SHIFTS = Table(
    "shifts",
    "comparisons that the noise floor does not explain",
    (
        Column("shift_id", TEXT, "hash of curve and both observations"),
        Column("event_key", TEXT, "shifts of one cause: engine, hardware, both builds, run, direction, attribution"),
        Column("dedupe_key", TEXT, "shifts of one notice: engine, hardware, model, kind of metric, both builds"),
        Column("echo_of", TEXT, "earlier shift of the same notice and direction, told less than 14 days before: no new notice"),
        Column("status", TEXT, "suspected, confirmed, recovered, retracted or superseded"),
        Column("status_reason", TEXT, "why"),
        Column("superseded_by", TEXT, "shift that stands in place of a superseded one"),
        Column("direction", TEXT, "regression or speedup"),
        Column(
            "kind",
            TEXT,
            "what the whole history makes of it: step, recovered, blip, return (from a blip), drift; null: too early to tell",
        ),
        Column("linked", TEXTS, "evaluations that fell with it, in words"),
        Column("siblings", INT, "curves of the same change, run and stack that moved the same way, this one included"),
        Column("siblings_total", INT, "curves of the same change, run and stack that were compared"),
        *COMPARISON,
    ),
    order=("to_measured_at", "shift_id"),
)

LEVELS = Table(
    "levels",
    "the level of every observation of a curve with four or more: comparisons of consecutive observations, added up",
    (
        Column("curve_id", TEXT, "curve"),
        *CONTEXT,
        Column("measured_at", TIME, "when"),
        Column("run_source", TEXT, "where the run's number is unique"),
        Column("run_id", TEXT, "benchmark run"),
        Column("run_attempt", INT, "attempt, from 1"),
        Column("build_id", TEXT, "software under test: key of `builds`"),
        Column("engine_version", TEXT, "engine version, where known"),
        Column("level", REAL, "log-ratio to the first observation, positive = better"),
        Column("scale", REAL, "noise of one observation that the second pass used, log-ratio"),
        Column("kind", TEXT, "what began here: step, recovered, blip, return; null: nothing"),
    ),
    order=("curve_id", "measured_at", "run_source", "run_id", "run_attempt", "build_id"),
)

FRONTIER_KEY = (
    *CONTEXT,
    *(column for column in IDENTITY if column.name in ("scenario", "workload", "arrival", "system")),
    Column("metric_definition", TEXT, "which definition of the metrics holds"),
)
"""What all points of a frontier have in common."""

FRONTIER_DIFFS = Table(
    "frontier_diffs",
    "every frontier of a run and build against its previous comparable one: a row for the whole and one an interactivity target",
    (
        Column("comparison_id", TEXT, "hash of frontier and both runs and builds"),
        Column("frontier_id", TEXT, "hash of what all points of the frontier have in common"),
        Column("night", TEXT, "UTC day of the later frontier"),
        *FRONTIER_KEY,
        *(Column(f"from_{name}", dtype, f"{meaning} of the earlier frontier") for name, dtype, meaning in SIDE),
        *(Column(f"to_{name}", dtype, f"{meaning} of the later frontier") for name, dtype, meaning in SIDE),
        Column("gap_days", REAL, "days between the two"),
        Column("same_build", FLAG, "one build on both sides: what moved is not the engine; null: not recorded, or it may be"),
        Column("change_set", TEXTS, "what is known to differ: build, recipe, checkpoint, environment, search_space"),
        Column("cells_shared", INT, "cells that both have"),
        Column("cells_unfit", INT, "of these, cells whose reported throughput is not compared"),
        Column("cells_gained", INT, "cells that only the later one has"),
        Column("cells_lost", INT, "cells that only the earlier one has"),
        Column("curves_gained", INT, "curves that only the later one has"),
        Column("curves_lost", INT, "curves that only the earlier one has"),
        Column("interactivity", REAL, "where the frontiers are read, tok/s/user; null: median over all that both cover"),
        Column("size", REAL, "log-ratio of reported throughput per GPU over shared cells, later over earlier"),
        Column("size_pct", REAL, "the same, %"),
        Column(
            "interval_low_pct", REAL, "90 % interval (bootstrap over shared cells), lower end, %; null for one build with itself"
        ),
        Column("interval_high_pct", REAL, "90 % interval, upper end, %"),
        Column("steady_size_pct", REAL, "steady-state throughput over shared cells, %"),
        Column("steady_interval_low_pct", REAL, "its 90 % interval, lower end, %"),
        Column("steady_interval_high_pct", REAL, "its 90 % interval, upper end, %"),
        Column("raw_pct", REAL, "reported throughput over all cells of either side, coverage included, %"),
        Column("raw_steady_pct", REAL, "the same of steady-state throughput, %"),
        Column("coverage_pct", REAL, "what of the raw change is not the shared cells': cells gained, lost or unfit, %"),
        Column("from_tput_per_gpu", REAL, "earlier frontier of shared cells at the target, tok/s/GPU"),
        Column("to_tput_per_gpu", REAL, "later frontier of shared cells at the target, tok/s/GPU"),
        Column("matched_pct", REAL, "reported throughput over the shared cells that are on both frontiers, %"),
        Column("fronts_differ", INT, "shared cells that are on the frontier of one side only: a hair may have decided"),
        Column("hypervolume_pct", REAL, "change of the dominated area, shared cells, %; of the whole only"),
        Column("raw_hypervolume_pct", REAL, "change of the dominated area, all cells, %; of the whole only"),
        Column("rerun_pct", REAL, "how far reruns of one build move there: 90 % of them by no more, %; null: there are none"),
        Column("rerun_level", TEXT, "whose reruns: stack (hardware and engine), engine, or global"),
        Column("rerun_pairs", INT, "reruns behind it"),
        Column(
            "stands_out",
            FLAG,
            "another build; both witnesses at 3 % or more, intervals without zero, matched, beyond reruns; names no cause",
        ),
        Column("missing", TEXT, "why there is no size: no shared cells, no overlap, outside the data; null: there is one"),
    ),
    order=("to_measured_at", "to_run_id", "frontier_id", "comparison_id", "interactivity"),
)

SCORE_SIDE = (
    *SIDE,
    ("score", REAL, "score, share of 1 (mean where one run told several)"),
    ("score_stderr", REAL, "standard error as recorded, same unit; the greatest of several"),
    ("records", INT, "records that the score is of"),
    ("samples", INT, "questions asked"),
    ("few_shot", INT, "worked examples in the prompt"),
    ("task_version", TEXT, "version of the task's definition"),
    ("harness_version", TEXT, "version of the evaluation harness"),
)
SCORE_DIFFS = Table(
    "score_diffs",
    "every evaluation of a setup (curve, load, task, metric) against its previous comparable one, flagged or not",
    (
        Column("score_diff_id", TEXT, "hash of the setup and both evaluations"),
        Column("curve_id", TEXT, "curve"),
        Column("night", TEXT, "UTC day of the later evaluation"),
        *CONTEXT,
        Column("concurrency", INT, "client concurrency, requests"),
        Column("task", TEXT, "task that was evaluated"),
        Column("metric", TEXT, "metric and filter, as the harness names them"),
        *(Column(f"from_{name}", dtype, f"{meaning}, of the earlier evaluation") for name, dtype, meaning in SCORE_SIDE),
        *(Column(f"to_{name}", dtype, f"{meaning}, of the later evaluation") for name, dtype, meaning in SCORE_SIDE),
        Column("gap_days", REAL, "days between the two"),
        Column("size_points", REAL, "later score less the earlier one, points of 100; null: no share of right answers"),
        Column("interval_low_points", REAL, "90 % interval (Newcombe), lower end, points; null: not tested"),
        Column("interval_high_points", REAL, "90 % interval, upper end, points"),
        Column("least_points", REAL, "least change that could be told here from chance alone, about, points"),
        Column("method", TEXT, "two-proportion z, or Fisher exact where right or wrong answers are few; null: not tested"),
        Column(
            "design_effect", REAL, "variance of repeats over that of chance alone, at least 1, by which both sides were widened"
        ),
        Column("repeats", INT, "repeats of this task and metric behind it"),
        Column("p_value", REAL, "two-sided"),
        Column("q_value", REAL, "Benjamini-Hochberg among all scores compared in one night"),
        Column("change_set", TEXTS, "all that is known to differ between the two"),
        Column("change_detail", TEXTS, "the same in words"),
        Column("same_build", FLAG, "nothing in the build differs"),
        Column("attribution", TEXT, "engine, harness, checkpoint, environment, mixed, unknown; null: not flagged"),
        Column("direction", TEXT, "regression or improvement; null: not flagged"),
        Column("status", TEXT, "insufficient, unchanged, suspected, confirmed or recovered"),
        Column("flagged", FLAG, "passes effect gate, noise and false-discovery control"),
        Column("reason", TEXT, "why it has this status"),
    ),
    order=("to_measured_at", "score_diff_id"),
)

WAITS = pl.List(
    pl.Struct({"load": pl.Float64(), "excess_s": pl.Float64(), "burst_wait_s": pl.Float64(), "explained_share": pl.Float64()})
)
FITNESS = Table(
    "fitness",
    "is a curve of a run, or a stack of a run (level run), fit for comparison? what only its neighbours and repeats show",
    (
        Column("level", TEXT, "curve: one curve of a run and build; run: all curves of one stack, run and build"),
        Column("run_source", TEXT, "where the run's number is unique"),
        Column("run_id", TEXT, "benchmark run"),
        Column("run_attempt", INT, "attempt, from 1"),
        Column("build_id", TEXT, "software under test: key of `builds`"),
        Column("hardware", TEXT, "accelerator"),
        Column("engine", TEXT, "inference engine"),
        Column("framework", TEXT, "serving stack round the engine"),
        Column("curve_id", TEXT, "curve; null at level run"),
        Column("measured_at", TIME, "first point"),
        Column("curves", INT, "curves, at level run"),
        Column("curves_unfit", INT, "of these, unfit"),
        Column("points", INT, "points"),
        Column("unfit", INT, "of these, unfit by themselves"),
        Column("suspect", INT, "of these, suspect by themselves"),
        Column("verdict", TEXT, "fit, suspect or unfit for comparison"),
        Column("reasons", TEXTS, "incoherent_curve, lone_run, mostly_unfit"),
        Column("ratio_off", REAL, "reported over steady-state throughput of the worst cell, against its curve's median, log"),
        Column("step_off", REAL, "worst step between neighbours outside what load allows where steady state obeys, log-ratio"),
        Column("incoherent_at", INT, "concurrency of the worst cell"),
        Column("run_shift", REAL, "how far curves stand off together from all runs of the build, steady state, log-ratio"),
        Column("run_spread", REAL, "robust spread of the curves about it, log-ratio"),
        Column("run_curves", INT, "curves behind it"),
        Column("run_repeats", INT, "runs of the build behind it, this one included"),
        Column("excess_s", REAL, "longest mean less median TTFT of a point that started cold, s"),
        Column("burst_wait_s", REAL, "longest wait of each request of a first burst, if it alone waited, s"),
        Column("explained_share", REAL, "share of the gap between reported and steady-state throughput that TTFT explains"),
        Column("waits", WAITS, "the same of every point that started cold, by its load"),
    ),
    order=("measured_at", "run_source", "run_id", "run_attempt", "build_id", "hardware", "framework", "engine", "curve_id"),
)

COMMITS = Table(
    "commits",
    "one row an upstream commit",
    (
        Column("project", TEXT, "vllm, sglang, trtllm, aiter, …"),
        Column("commit", TEXT, "full hash"),
        Column("parents", TEXTS, "parents' hashes"),
        Column("author_date", TIME, "when it was written"),
        Column("committer_date", TIME, "when it landed"),
        Column("title", TEXT, "subject line"),
        Column("pr", INT, "pull request, where the subject names one"),
        Column(
            "kind", TEXT, "revert, reapply, docs, ci, test, dependency, fix, perf, feature, refactor, other: by words and paths"
        ),
        Column("paths", TEXTS, "changed paths"),
        Column("paths_omitted", INT, "further changed paths, not kept"),
        Column("reverts", TEXT, "commit that its message says it takes back"),
        Column("reverts_pr", INT, "pull request that subject or message say it takes back"),
        Column("picked_from", TEXT, "commit that its message says it was picked from"),
        Column("picked_pr", INT, "pull request that subject or message say it was picked from"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("project", "committer_date", "commit"),
)

RELEASES = Table(
    "releases",
    "one row a version that upstream published, and a kind of evidence for it",
    (
        Column("project", TEXT, "project"),
        Column("version", TEXT, "PEP 440 version where it is one"),
        Column("tag", TEXT, "git tag, where known"),
        Column("commit", TEXT, "commit, where known"),
        Column("branch_point", TEXT, "main-line commit that the release branch left from, where measured"),
        Column("published_at", TIME, "when it was published or uploaded"),
        Column("evidence", TEXT, "tag, anchor, upload, release-note or version-table"),
        Column("title", TEXT, "title of the note"),
        Column("notes", TEXT, "text of the note, Markdown from a stranger"),
        Column("url", TEXT, "its page"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("project", "version", "evidence", "commit", "tag", "url"),
)

NOTES = Table(
    "notes",
    "one row a thing that a release note says; text is a stranger's",
    (
        Column("project", TEXT, "project"),
        Column("version", TEXT, "PEP 440 version where it is one"),
        Column("tag", TEXT, "git tag of the release, where known"),
        Column("published_at", TIME, "when it was published"),
        Column("place", INT, "order in the note, from 1"),
        Column("section", TEXT, "headings and list heads above it"),
        Column("text", TEXT, "what it says, one line"),
        Column("prs", NUMBERS, "pull requests of the project that it names"),
        Column("urls", TEXTS, "pull requests of other projects that it names"),
        Column("gains", GAINS, "claimed changes, % of the metric, above 0 is better; low_pct is null where only a bound is told"),
        Column("breaking", FLAG, "it says that it breaks something"),
        Column("deprecated", FLAG, "it says that something is deprecated or removed"),
        Column("dependency", TEXT, "package whose version it names"),
        Column("dependency_version", TEXT, "that version"),
        Column("cut", FLAG, "the note may be cut: it may say more than is known here"),
        Column("url", TEXT, "page of the note"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("project", "version", "tag", "url", "place"),
)

DEPENDENCIES = Table(
    "dependencies",
    "one row a version of one package that carries a version of another",
    (
        Column("project", TEXT, "carrier"),
        Column("version", TEXT, "its version; or the commit of its main from which on it carries that"),
        Column("dependency", TEXT, "carried package"),
        Column("dependency_version", TEXT, "its version, tag or commit; none: it was dropped"),
        Column("evidence", TEXT, "where it is known from: a file of the carrier, or its support matrix"),
        Column("platform", TEXT, "for which vendor or architecture; null: for all, or not told"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("project", "version", "dependency", "platform", "dependency_version", "evidence"),
)

IMAGES = Table(
    "images",
    "one row a platform of an image, each time that a registry said something else of its reference than before",
    (
        Column("image_ref", TEXT, "normalised reference that was asked for"),
        Column("image_digest", TEXT, "digest of its index, or of its manifest where there is no index"),
        Column("seen_at", TIME, "when the registry first said so"),
        Column("media_type", TEXT, "of what the reference answers: an index or a manifest"),
        Column("platform", TEXT, "operating system and architecture; null: not told"),
        Column("manifest_digest", TEXT, "digest of this platform's manifest"),
        Column("config_digest", TEXT, "digest of its configuration"),
        Column("created", TIME, "when it was built, by its configuration"),
        Column("engine_version", TEXT, "version that its configuration tells"),
        Column("commit", TEXT, "commit that its configuration tells"),
        Column("commit_source", TEXT, "label or variable that the commit stands in"),
        Column("labels", LABELS, "labels and variables that tell of versions, commits and base images"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("image_ref", "seen_at", "image_digest", "platform", "manifest_digest"),
)

RATES = Table(
    "rates",
    "one row a price or a power figure and the time in which it holds; of one thing there is at any instant one",
    (
        Column("kind", TEXT, "gpu_hour, gpu_power or token_price"),
        Column("name", TEXT, "accelerator, canonical name; or the model as the price list calls it"),
        Column("provider", TEXT, "who charges it, where told"),
        Column("tier", TEXT, "which of several prices: hyperscaler, rental, batches, …; null: the only or the usual one"),
        Column("charge", TEXT, "of a token price: input, output, cache_read, cache_write or reasoning"),
        Column("value", REAL, "the rate, in `unit`; null: there is no fixed one in this time; 0: free"),
        Column("unit", TEXT, "USD/GPU/h; kW/GPU (all-in, provisioned); USD/token"),
        Column("valid_from", TIME, "first instant at which it holds"),
        Column("valid_to", TIME, "its end (exclusive): as stated, at the latest where the next one starts; null: still holds"),
        Column("evidence", TEXT, "price list: own (the user's), litellm, openrouter"),
        Column("source", TEXT, "where that list has it from, in words or as a link"),
        Column("statements", INT, "different values stated for this start; more than one: corrected, or contradictory"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("kind", "name", "provider", "tier", "charge", "evidence", "valid_from"),
)

JOBS = Table(
    "jobs",
    "one row a run and a kind of runner: how many jobs succeeded; an API that tells no run repeats the same jobs by day",
    (
        Column("run_source", TEXT, "where the run's number is unique; null: the source tells no run but a day"),
        Column("run_id", TEXT, "benchmark run; null: the source tells no run, do not add these rows to those of runs"),
        Column("run_attempt", INT, "attempt that told it; the jobs are of all attempts up to it"),
        Column("day", TEXT, "UTC day of the run, where the source tells no run"),
        Column("occurrence", INT, "which of the rows alike of that day, from 1: two runs can have the same numbers"),
        Column("label", TEXT, "kind of runner, as the source calls it"),
        Column("hardware", TEXT, "accelerator, canonical name where it has one"),
        Column("succeeded", INT, "jobs that succeeded"),
        Column("total", INT, "all jobs: cancelled ones failed, skipped ones do not count"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("run_source", "run_id", "day", "label", "succeeded", "total", "occurrence"),
)

RECIPES = Table(
    "recipes",
    "one row an entry of a recipe log: what was changed about launches of configurations; it holds from its run or its commit on",
    (
        Column("run_source", TEXT, "where the run's number is unique"),
        Column("run_id", TEXT, "run that the entry started, where known"),
        Column("run_attempt", INT, "last attempt that told of it"),
        Column("base_ref", TEXT, "commit of the benchmark repository before the entry"),
        Column("head_ref", TEXT, "the commit with it"),
        Column("config_keys", TEXTS, "configurations it is about; * stands for anything"),
        Column("description", TEXTS, "what was changed, line by line, text from a stranger"),
        Column("pr_link", TEXT, "pull request"),
        Column("kind", TEXT, "image, recipe, configuration (a new one), search_space, measurement, checkpoint"),
        Column("append_only", FLAG, "the run measured added points only, others of a curve are of earlier runs; null: not told"),
        Column("evals_only", FLAG, "the run was for evaluations only; null: not told"),
        Column("scenario_types", TEXTS, "kinds of workload that it is confined to; empty: to none; null: not told"),
        Column("added_at", TIME, "when it came into the log; null: not known"),
        Column("added_in", TEXT, "commit of the benchmark repository that brought it"),
        Column("dated_by", TEXT, "commit: it holds since added_at; bulk: many came at once, it held by then; null: not dated"),
        Column("touched", TEXT, "what its commit changed of launches: image (and nothing else), or more; null: not known"),
        Column("recorded_at", TIME, "when we learned of it"),
    ),
    order=("run_source", "run_id", "base_ref", "head_ref", "pr_link", "config_keys", "description", "scenario_types"),
)

LINKS = Table(
    "links",
    "one row a shift and an upstream change that could have done it",
    (
        Column("shift_id", TEXT, "shift"),
        Column("change_id", TEXT, "project and commit"),
        Column("rank", INT, "1 = read this first"),
        Column("score", REAL, "sum of the evidence's weights"),
        Column("evidence", TEXTS, "why, in words"),
        Column("candidates", INT, "changes between the two builds"),
        Column("range_how", TEXT, "how the range was found"),
        Column("open_ended", FLAG, "one end of the range is not known"),
        Column("project", TEXT, "upstream project"),
        Column("commit", TEXT, "full hash"),
        Column("pr", INT, "pull request"),
        Column("title", TEXT, "subject line, text from a stranger"),
        Column("kind", TEXT, "commit, or dependency: a commit that moves a library whose kernels run"),
        Column("narrowed", FLAG, "the first changes stand off as known causes do; false: the order hardly tells"),
    ),
    order=("shift_id", "rank"),
)

QUARANTINE = Table(
    "quarantine",
    "one row an input that could not be read; gone once the same bytes are read after all",
    (
        Column("event_id", TEXT, "the event that says so"),
        Column("name", TEXT, "file (and archive member)"),
        Column("sha256", TEXT, "hash of its bytes"),
        Column("position", TEXT, "place in it"),
        Column("reason", TEXT, "what is wrong and what to do"),
        Column("excerpt", TEXT, "head of the offending text"),
        Column("recorded_at", TIME, "when we met it"),
    ),
    order=("name", "position", "event_id"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        EVENTS,
        SUBJECTS,
        RUNS,
        POINTS,
        EVALS,
        BUILDS,
        NOISE,
        DIFFS,
        SHIFTS,
        LEVELS,
        FRONTIER_DIFFS,
        FITNESS,
        SCORE_DIFFS,
        LINKS,
        COMMITS,
        RELEASES,
        NOTES,
        DEPENDENCIES,
        IMAGES,
        RATES,
        JOBS,
        RECIPES,
        QUARANTINE,
    )
}
"""Every table of the warehouse by name."""

PROJECTIONS: tuple[str, ...] = tuple(name for name in TABLES if name != "events")
"""Tables that follow from the log and may be dropped and rebuilt at will."""
