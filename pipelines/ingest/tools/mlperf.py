"""MLPerf Inference results: lists `cm-result.json` (rounds v2.0 to v4.1) and `summary_results.json` (v4.1 and later).

A list is read as a whole, because one measurement stands in several rows (`mlperf_rows`). What a Result is follows from round,
benchmark and scenario (`mlperf_units`), never from its label. A round is a run; its results count from the day on which they
were announced. Belongs here: what a row means. Does not: units, names of systems and software (`mlperf_systems`), logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pipelines.ingest.assembling import Told, assembled
from pipelines.ingest.json_text import Fault, Item, LeftOut
from pipelines.ingest.numbers import metric
from pipelines.ingest.reading import Dictionary, Field, Given, Origin, Reading, RecordFormat
from pipelines.ingest.tools import mlperf_systems
from pipelines.ingest.tools.mlperf_rows import AGGREGATE, MAX_TEXT, POWER, SUMMARY, Shape, kept, unpack
from pipelines.ingest.tools.mlperf_systems import accelerator, gpus, plain_name, software
from pipelines.ingest.tools.mlperf_units import (
    CACHED,
    Benchmark,
    Meaning,
    benchmark_of,
    inside,
    meaning,
    numbers,
    origin_of,
    placed,
    recipe_commit,
    round_name,
    scenario_of,
)
from warehouse.errors import InputError

MULTISTREAM = 8
"""Samples of one MultiStream query, which are sent at once."""
ARRIVALS = {"Offline": "offline", "Server": "poisson", "Interactive": "poisson", "MultiStream": "batch"}
IN_FLIGHT = {"SingleStream": 1, "MultiStream": MULTISTREAM}
_SCORE = re.compile(r"([A-Za-z][\w-]{0,40}):\s*([-+0-9.eE]{1,40})")


def _read(shape: Shape, record: dict[str, Any], given: Given) -> Reading:
    """Return a measurement as a reading; raises InputError naming the field that is wrong."""
    setup = _setup_of(shape, record)
    value = metric(shape.result, record.get(shape.result))
    if value <= 0:
        raise InputError(f"{shape.result}: {value} is not above zero")
    total = gpus(setup.accelerator, record.get(shape.per_node), record.get(shape.nodes))
    system = _system(_text(record, shape.submitter), _text(record, shape.system), total)
    alone = not (given.declared or given.named)
    blank = _blank(setup, total, system) if alone else assembled(Told(**setup.told, num_gpus=total, system=system), given)
    columns, other = numbers(setup.meaning, value, blank.num_gpus)
    more = {**_power_of(shape, record), **_accuracy(record.get("Accuracy"))}
    return replace(blank, identity=dict(blank.identity), metrics=columns, metrics_other={**other, **more})


@lru_cache(maxsize=CACHED)
def _blank(setup: _Setup, total: int | None, system: str) -> Reading:
    """Return the reading of a setup without a number, where nothing is declared; setups repeat far more often than results."""
    return assembled(Told(**setup.told, num_gpus=total, system=system), Given())


@dataclass(frozen=True, eq=False)
class _Setup:
    """What follows from the texts of a row: its meaning, its accelerator's name, what is told of the setup."""

    meaning: Meaning
    accelerator: str | None
    told: dict[str, Any]


def _setup_of(shape: Shape, record: dict[str, Any]) -> _Setup:
    nodes = record.get(shape.nodes)
    return _setup(
        _text(record, shape.benchmark),
        _text(record, shape.model, needed=False),
        _text(record, "Scenario"),
        _round(record),
        _text(record, shape.division, needed=False).lower(),
        _text(record, "Availability", needed=False).lower(),
        _text(record, shape.submitter),
        _text(record, "Platform", needed=False),
        _text(record, shape.accelerator, needed=False),
        _text(record, shape.processor, needed=False),
        _text(record, shape.software, needed=False),
        str(record.get("inferred")) in ("1", "True"),
        isinstance(nodes, int | float) and nodes > 1,
    )


@lru_cache(maxsize=CACHED)
def _setup(
    name: str,
    used: str,
    said: str,
    version: str | None,
    division: str,
    availability: str,
    submitter: str,
    platform: str,
    accelerated: str,
    processor: str,
    ran: str,
    inferred: bool,
    multinode: bool,
) -> _Setup:
    """Return what is told by the texts of a row, which repeat far more often than results do."""
    scenario = scenario_of(said)
    if scenario is None:
        raise InputError(f"Scenario: {said[:60]!r} is none of Offline, Server, Interactive, SingleStream, MultiStream")
    benchmark, scenario = placed(name, scenario)
    meant = meaning(version, benchmark.family, scenario, inferred)
    unit = accelerator(accelerated)
    own = "" if division in ("", "closed") else f" {division}"
    shown = (accelerated if unit else processor).strip()
    told = {
        "definition": meant.definition,
        "hardware": unit or plain_name(processor),
        "hardware_label": ", ".join(part for part in (shown, availability) if part) or None,
        "model": used if own and used else benchmark.family,
        "model_prefix": benchmark.family,
        "workload": benchmark.name + own + _custom(own, used, benchmark),
        "recipe": re.sub(r"[-_\s]+", "-", platform.lower()) or None,
        "scenario": f"mlperf-{scenario.lower()}",
        "arrival": ARRIVALS.get(scenario),
        "concurrency": IN_FLIGHT.get(scenario),
        "identity": {"is_multinode": multinode},
        "needs": (),
        **_build(ran, version, submitter, benchmark.family),
    }
    return _Setup(meant, unit, told)


def _custom(own: str, used: str, benchmark: Benchmark) -> str:
    """Return the model that was really run where the division lets it be another: it is another measurement then."""
    return f" {used.lower()}" if own and used and benchmark_of(used).family != benchmark.family else ""


def _build(ran: str, version: str | None, submitter: str, family: str) -> dict[str, str | None]:
    """Return engine, stack, version and commit of what ran: by the software string, or known to be inside what it names."""
    found = software(ran)
    if found is None:
        return {"engine": "unknown"}
    engine = inside(version, found.engine, family)
    if engine is None:
        stack = {"framework": found.stack} if found.stack else {}
        return {"engine": found.engine, "engine_version": found.version, "engine_commit": found.commit, **stack}
    commit = recipe_commit(version, submitter, found.engine, found.version)
    return {"engine": engine, "framework": found.engine, "engine_commit": commit}


@lru_cache(maxsize=CACHED)
def _system(submitter: str, name: str, total: int | None) -> str:
    """Return submitter and system, with the number of accelerators where the system's name does not tell it."""
    told = total is None or re.search(rf"(?<!\d){total}\s?x", name, re.IGNORECASE)
    return f"{submitter}: {' '.join(name.split())}" + ("" if told else f", {total}x")


def _power_of(shape: Shape, record: dict[str, Any]) -> dict[str, float]:
    """Return power in W, or energy of a query in J; a power without a unit is left in the record."""
    unit, value = record.get(shape.power_units), record.get(shape.power)
    if value is None or not isinstance(unit, str) or unit.lower() not in POWER:
        return {}
    name, per = POWER[unit.lower()]
    return {name: metric(shape.power, value, per)}


def _accuracy(value: Any) -> dict[str, float]:
    """Return scores under their own names: each benchmark has its own, and lists v2.0 to v4.1 hold the first without its name."""
    if isinstance(value, str) and ":" in value:
        scores = _SCORE.findall(value[:MAX_TEXT])
        return {f"accuracy_{name.lower()}": metric("Accuracy", number) for name, number in scores}
    return {} if value in (None, "", "None") else {"accuracy": metric("Accuracy", value)}


def _text(record: dict[str, Any], key: str, *, needed: bool = True) -> str:
    value = record.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value.strip()) or len(value) > MAX_TEXT:
        raise InputError(f"{key}: a text of 1 to {MAX_TEXT} characters is wanted")
    return value


def _round(record: dict[str, Any]) -> str | None:
    """Return the name of the round: its own field, else the beginning of the row's ID."""
    texts = (record.get("version"), record.get("ID"))
    return next((name for text in texts if isinstance(text, str) and (name := round_name(text[:MAX_TEXT]))), None)


def origin(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the round as a run, or None where its day is not known; then a `run.json` or `--measured-at` must date it."""
    return origin_of(_round(record))


def _format(name: str, title: str, shape: Shape, dictionary: Dictionary) -> RecordFormat:
    def taken_apart(value: Any) -> Iterator[Item | Fault | LeftOut] | None:
        return mlperf_systems.left_out(value) or unpack(shape, value)

    read: Callable[[dict[str, Any], Given], Reading] = lambda record, given: _read(shape, record, given)  # noqa: E731
    return RecordFormat(
        name,
        title,
        shape.markers,
        read,
        unpack=taken_apart,
        origin=origin,
        clean=lambda record: kept(shape, record),
        dictionary=dictionary,
    )


def _fields(shape: Shape) -> tuple[Field, ...]:
    result = "samples_per_second, output_tput_per_gpu … by round, benchmark and scenario; see the table of meanings"
    return (
        Field(shape.submitter, "system", note="with the system's name"),
        Field(shape.system, "system", note="with the number of accelerators where the name does not tell it"),
        Field("Platform", "recipe_fingerprint", note="name of the configuration, lower case"),
        Field(shape.benchmark, "workload", note="benchmark and accuracy target; `model` is its family"),
        Field(shape.model, "checkpoint", note="in the open division, where another model may be run"),
        Field("Scenario", "scenario", note="mlperf-offline, mlperf-server …; `arrival` follows from it"),
        Field(shape.result, "samples_per_second", "by rule", result),
        Field(shape.result, "scheduled_samples_per_second", "by rule"),
        Field(shape.result, "completed_samples_per_second", "by rule"),
        Field(shape.result, "output_tput_per_gpu", "tok/s", "tokens of the system over its accelerators"),
        Field(shape.result, "query_latency_bound_*", "ms"),
        Field(shape.result, "mlperf_inferred_rate", "by rule", "where `inferred` is 1; mlperf_inferred_latency of latencies"),
        Field(
            shape.result, "mlperf_rate_as_labelled", "as labelled", "of a round without a rule; mlperf_latency_as_labelled, too"
        ),
        Field(shape.power, "system_power", "W", "unit Watts"),
        Field(shape.power, "query_energy", "mJ", "unit millijoules"),
        Field(shape.accelerator, "hardware", note="else the processor"),
        Field(f"{shape.per_node} × {shape.nodes}", "num_gpus"),
        Field(shape.software, "engine", note="and engine_version, framework, where it names them"),
        Field("Availability", "hardware_label", note="so that a comparison of preview with available says so"),
        Field(shape.division, "workload", note="named where it is not closed"),
        Field("Accuracy", "metrics_other", note="accuracy, or accuracy_<score>"),
    )


_LEFT_OUT = (
    ("weight_data_types", "not reliable: fp16 for NVIDIA's Llama 2 70B of v4.1, which its recipe builds as FP8"),
    ("Inference_per_Joule", "follows from result and power"),
    ("operating_system", "not a field of a point; the host's name is cut off before it is kept"),
    ("systems/*.json", "describe systems and measure nothing; result rows repeat what counts of them"),
    ("compliance, errors, host_*, notes, uid, url …", "stay in the record"),
)
_TRAPS = (
    "Units are not to be trusted: Llama 2 70B Offline of v4.0 says Samples/s and is tokens/s, Whisper of v5.1 too.",
    "Server results are scheduled samples/s up to v4.0 and completed ones from v4.1 on: two definitions, never compared.",
    "GPT-J of v4.1 and v5.0 is samples/s × 69; it is divided again.",
    "One measurement stands as -99 and as -99.9: the rows are joined where all but the target is equal, under the stricter one.",
    "Up to v3.1 rows with power stand twice with two uids; from v4.0 on power is a row of its own. They are joined.",
    "Rows with `inferred` were worked out from another scenario and are a metric of their own.",
    "Ratios of rounds are our own figures; MLCommons has not verified them.",
)
FORMAT = _format(
    "mlperf",
    "MLPerf Inference result lists v2.0 to v4.1 (cm-result.json)",
    AGGREGATE,
    Dictionary(_fields(AGGREGATE), _LEFT_OUT, _TRAPS),
)
SUMMARY_FORMAT = _format(
    "mlperf-summary",
    "MLPerf Inference summaries, v4.1 and later (summary_results.json)",
    SUMMARY,
    Dictionary(_fields(SUMMARY), _LEFT_OUT, _TRAPS),
)
FORMATS = (FORMAT, SUMMARY_FORMAT)
