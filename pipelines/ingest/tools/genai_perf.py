"""genai-perf's summary, `<prefix>_genai_perf.json`: the shape that AIPerf took over, without version and time.

Facts: the exporter and the statistics of genai-perf 0.0.16 (the package's code; no real file was at hand). Every token is counted
by the client's tokenizer. A run that did not stream writes a "time to first token" all the same: it is the whole latency.
"""

from __future__ import annotations

from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.numbers import metric, whole
from pipelines.ingest.reading import MAX_OTHER, Dictionary, Field, Given, Reading, RecordFormat
from pipelines.ingest.tools import unit_blocks
from pipelines.ingest.tools.aiperf_config import nominal
from pipelines.ingest.tools.taming import at, tamed, text_at
from pipelines.ingest.tools.unit_blocks import REQUEST_RATES, REQUESTS, TOKEN_RATES, TOKENS, seconds, statistic
from warehouse.errors import InputError

MARKERS = frozenset({"input_config", "request_latency"})
INVALID = -1.0
"""Written for a goodput that could not be worked out."""
_SECTIONS = ("model_names", "subcommand", "endpoint", "perf_analyzer", "input", "tokenizer")
_TEXTS = frozenset(
    {"model_names", "subcommand", "backend", "type", "service_kind", "name", "revision", "file", "mode", "prompt_source"}
)


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return the metric blocks and what of the configuration is nobody's secret."""
    config = record.get("input_config")
    tame = {name: tamed(config[name], _TEXTS, name) for name in _SECTIONS if name in config} if isinstance(config, dict) else {}
    return {**unit_blocks.kept(record), "input_config": tame}


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return a summary as a reading; raises InputError naming the field that is wrong, or asking for what it does not hold."""
    unit_blocks.need(record, "request_latency")
    isl, osl = (statistic(record, f"{kind}_sequence_length", TOKENS) for kind in ("input", "output"))
    output = statistic(record, "output_token_throughput", TOKEN_RATES)
    succeeded = statistic(record, "request_count", REQUESTS)
    return assembled(
        Told(
            definition="genai-perf, client tokens",
            model=_model(record),
            **_load(record),
            **_workload(record),
            throughput=_throughput(output, isl, osl),
            metrics=seconds(record, "request_latency", "e2el")
            | (seconds(record, "time_to_first_token", "ttft") if _streams(record) else {}),
            other=_other(record),
            requests=None if succeeded is None else whole("request_count.avg", succeeded),
            duration_s=osl * succeeded / output if osl and succeeded and output else None,
            isl_mean=isl,
            osl_mean=osl,
        ),
        given,
    )


def _throughput(output: float | None, isl: float | None, osl: float | None) -> dict[str, float]:
    """Return the system's throughput, tok/s: input stands to output as the mean lengths do, which are of the same requests."""
    if output is None:
        return {}
    if not osl or isl is None:
        return {"output": output}
    return {"output": output, "input": output * isl / osl, "total": output * (isl + osl) / osl}


def _streams(record: dict[str, Any]) -> bool:
    return at(record, "input_config", "endpoint", "streaming") is True


def _other(record: dict[str, Any]) -> dict[str, float]:
    names = [name for name in ("request_throughput", "request_goodput") if at(record, name, "avg") != INVALID]
    rates = {name: statistic(record, name, REQUEST_RATES) for name in names}
    found = {name: value for name, value in rates.items() if value is not None}
    return found | (seconds(record, "inter_token_latency", "tpot_client_tokens") if _streams(record) else {})


def _load(record: dict[str, Any]) -> dict[str, Any]:
    """Return the load: Perf Analyzer sends at even intervals where a rate is asked for."""
    stimulus = at(record, "input_config", "perf_analyzer", "stimulus")
    if (told := at(stimulus, "concurrency")) is not None:
        return {"concurrency": whole("input_config.perf_analyzer.stimulus.concurrency", told, 1)}
    if (told := at(stimulus, "request_rate")) is not None:
        if not (rate := metric("input_config.perf_analyzer.stimulus.request_rate", told)):
            raise InputError("input_config.perf_analyzer.stimulus.request_rate: 0 is no rate")
        return {"request_rate": rate, "arrival": "constant"}
    return {"arrival": "trace"} if isinstance(stimulus, dict) and "fixed_schedule" in stimulus else {}


def _workload(record: dict[str, Any]) -> dict[str, Any]:
    """Return nominal lengths of synthetic prompts (an output length of -1 is left to the model), else the file's name."""
    inputs = at(record, "input_config", "input")
    if named := text_at(inputs, "file"):
        return {"workload": named}
    lengths = {"isl": at(inputs, "synthetic_tokens"), "osl": at(inputs, "output_tokens")}
    spread = [f"{key} ±{at(value, 'stddev')}" for key, value in lengths.items() if at(value, "stddev")]
    return {**{key: nominal(value) for key, value in lengths.items()}, "workload": ", ".join(["synthetic", *spread])[:MAX_OTHER]}


def _model(record: dict[str, Any]) -> str | None:
    names = at(record, "input_config", "model_names")
    return names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else None


FORMAT = RecordFormat(
    "genai-perf",
    "genai-perf summaries (*_genai_perf.json)",
    MARKERS,
    read,
    without=frozenset({"aiperf_version", "was_cancelled"}),
    clean=clean,
    dictionary=Dictionary(
        fields=(
            Field("request_latency", "e2el_*", "as stated"),
            Field("time_to_first_token", "ttft_*", "as stated", "streaming runs"),
            Field("inter_token_latency", "tpot_client_tokens_*", "as stated", "streaming runs"),
            Field("output_token_throughput", "output_tput_per_gpu", "tokens/sec", "by the client's count"),
            Field(
                "output_token_throughput",
                "input_tput_per_gpu",
                "tokens/sec",
                "times input over output length, by the client's count",
            ),
            Field("output_token_throughput", "tput_per_gpu", "tokens/sec", "their sum"),
            Field("input_sequence_length", "isl_mean", "tokens", "by the client's count"),
            Field("output_sequence_length", "osl_mean", "tokens", "by the client's count"),
            Field("output_sequence_length", "duration_s", "tokens", "times request_count, over output_token_throughput"),
            Field("request_throughput", "request_throughput", "requests/sec"),
            Field("request_goodput", "request_goodput", "requests/sec"),
            Field("request_count", "requests", "count"),
            Field("input_config.perf_analyzer.stimulus", "concurrency"),
            Field("input_config.perf_analyzer.stimulus", "request_rate", "requests/sec", "at even intervals"),
            Field(
                "input_config.perf_analyzer.stimulus",
                "arrival",
                "",
                "constant where a rate is asked for; a fixed schedule: trace",
            ),
            Field("input_config.input.synthetic_tokens", "isl", "tokens", "nominal"),
            Field("input_config.input.output_tokens", "osl", "tokens", "nominal; -1 is left to the model"),
            Field("input_config.input", "workload", "", "the file's name, or synthetic"),
            Field("input_config.model_names", "model"),
        ),
        left_out=(
            ("*_genai_perf.csv", "the same measurement as the JSON beside it"),
            ("telemetry_stats, sessions", "no metric here is defined by them"),
            ("input_config.endpoint.url, input_config.output, input_config.input.header", "addresses, paths, keys"),
        ),
        traps=(
            "No version, no time, no failed requests: a run.json or --measured-at dates it.",
            "Without streaming, time_to_first_token is the whole latency; it is not read then.",
        ),
        needs=("engine", "hardware", "num_gpus", "precision"),
    ),
)
