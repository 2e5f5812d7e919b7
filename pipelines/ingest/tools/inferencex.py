"""InferenceX rows (`agg_bmk.json`, `agg_*.json`): fixed-sequence benchmark results, one row a cell, as they really are.

Field meanings and their history: InferenceX `utils/process_result.py` and its git history (Apache-2.0). Traps read here: booleans
that are texts, runner labels for hardware, `p99.9_` keys with a dot, `std_intvty` (1000/std_tpot, meaningless), disaggregated
rows without `tp`, decode GPUs 0, metric definitions that changed under the same name, rows before 2025-11-21 without lengths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from pipelines.ingest.assembling import Facts
from pipelines.ingest.numbers import LAST_CLOCK, finite, is_number, metric, whole
from pipelines.ingest.reading import MAX_OTHER, Given, Must, Parts, Reading, RecordFormat, Split, Taken
from pipelines.ingest.runs import first_problem
from pipelines.ingest.tools import inferencex_dictionary as dictionary
from pipelines.ingest.tools import inferencex_power as power
from pipelines.ingest.tools import inferencex_setup as setups
from pipelines.ingest.tools.inferencex_setup import MAX_GPUS, PER_ROLE_TOKENS_SINCE, PRECISION_SINCE, Count, Setup, no_boolean
from warehouse import vocabulary
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

__all__ = ["FORMAT", "MAX_GPUS", "PER_ROLE_TOKENS_SINCE", "PRECISION_SINCE", "hints", "metric_name", "numbers", "read"]

_METRIC = re.compile(r"(mean|median|std|p\d{2}(?:\.\d+)?)_(ttft|tpot|itl|e2el|intvty)")
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
THROUGHPUTS = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu")
MAX_METRIC_NAME = 40
"""Longest name that can be a metric's, characters."""
_MEANINGLESS = frozenset({"std_intvty"})
_CLOCK = "benchmark_start_time_unix"
_HEALTH = frozenset({"duration", "completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens"})
"""Counts of the raw client output (kept beside rows since 2026-06-11), which some write into the row as well."""
MARKERS = frozenset({"hw", "conc", "framework", "tput_per_gpu"})


class _Row(Setup):
    """A fixed-sequence row."""

    isl: Count
    osl: Count
    benchmark_start_time_unix: Annotated[float, Field(gt=0, lt=LAST_CLOCK), BeforeValidator(no_boolean)] | None = None
    tput_per_gpu: Annotated[float, Field(gt=0), BeforeValidator(no_boolean)]


_NOT_METRICS = frozenset(_Row.model_fields) - frozenset(THROUGHPUTS) | _MEANINGLESS


def read(record: dict[str, Any], given: Given) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong."""
    facts = Facts(given)
    try:
        row = _Row.model_validate(_filled(record, facts))
    except ValidationError as error:
        raise InputError(first_problem(error)) from None
    if row.precision is None and given.started_at >= PRECISION_SINCE:
        raise InputError("precision: field required (only before 2025-09-15 did a missing one mean fp8)")
    identity, unknown = setups.identity(row, given.started_at)
    counts = _counts(record)
    metrics, other = numbers(record, _NOT_METRICS | _HEALTH)
    fingerprint = row.recipe_fingerprint.lower() if row.recipe_fingerprint else facts.text("recipe")
    workload = facts.text("workload")
    return Reading(
        identity={**identity, "scenario": "fixed-seq-len", "isl": row.isl, "osl": row.osl, "workload": workload},
        concurrency=row.conc,
        num_gpus=setups.num_gpus(row),
        image=row.image,
        metrics=metrics,
        metrics_other=other,
        metric_definition=_definition(row, given.started_at),
        hardware_label=row.hw,
        model_source=row.model,
        checkpoint=vocabulary.checkpoint(row.model) if row.model else None,
        recipe_fingerprint=fingerprint,
        measured_at=datetime.fromtimestamp(row.benchmark_start_time_unix, UTC) if row.benchmark_start_time_unix else None,
        engine_version=facts.text("engine_version"),
        engine_commit=facts.text("engine_commit"),
        **counts,
        declared=tuple(sorted(set(facts.declared))),
        unknown_names=unknown,
    )


def _filled(record: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """Return the row with what was declared for it; raises InputError where it has no lengths at all and nobody told them."""
    row = setups.filled(record, facts)
    if not {"isl", "osl"} & row.keys():
        facts.missing += ["isl", "osl"]
        facts.ask()
    return row


def _definition(row: Setup, started_at: datetime) -> str:
    if not setups.disaggregated(row, started_at):
        return "inferencex"
    return "inferencex disaggregated, " + ("all GPUs" if started_at < PER_ROLE_TOKENS_SINCE else "per role")


def numbers(record: dict[str, Any], left_out: frozenset[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the metrics of *record* by column, and its other numbers by name; keys in *left_out* are neither."""
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    renamed = power.names(record)
    for key, value in record.items():
        if value is None or key in left_out:
            continue
        column = metric_name(key)
        if column is not None:
            metrics[column] = metric(key, value)
        elif is_number(value) and (name := renamed.get(key, key[:MAX_OTHER])) is not None:
            other[name] = finite(key, value)
    return metrics, other


def metric_name(key: str) -> str | None:
    """Return the column of a metric's key, or None where it is none."""
    return _metric_name(key) if len(key) <= MAX_METRIC_NAME else None


@lru_cache(maxsize=1024)
def _metric_name(key: str) -> str | None:
    if key in THROUGHPUTS:
        return key
    match = _METRIC.fullmatch(key)
    name = f"{match[2]}_{match[1].replace('.', '')}" if match else None
    return name if name in _COLUMNS else None


def _counts(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the row tells of its health: requests sent and failed, duration in seconds, mean lengths in tokens."""
    told = {key: record[key] for key in _HEALTH & record.keys() if record[key] is not None}
    if not told:
        return {}
    count = {key: whole(key, value, largest=10**15) for key, value in told.items() if key != "duration"}
    done, failed = count.get("completed"), count.get("failed")
    sent = count.get("num_prompts", None if done is None or failed is None else done + failed)
    if failed is None and sent is not None and done is not None:
        failed = sent - done
    if failed is not None and (failed < 0 or (sent is not None and failed > sent)):
        raise InputError(f"completed: {done} of {sent} requests")
    lengths = {key: count[f"total_{key}_tokens"] / done for key in ("input", "output") if done and f"total_{key}_tokens" in count}
    return {
        "requests": sent,
        "requests_failed": failed,
        "duration_s": metric("duration", told["duration"]) if "duration" in told else None,
        "isl_mean": lengths.get("input"),
        "osl_mean": lengths.get("output"),
    }


def _parts(keys: Sequence[str], flags: Any) -> Parts:
    """Return what `numbers` and `_counts` take from rows with *keys*, whose power flags are *flags*."""
    told = dict(zip(power.FLAGS, flags, strict=True))
    renamed = power.names({key: told.get(key) for key in keys})
    must: dict[str, Must] = {}
    taken: list[Taken] = []
    for key in keys:
        if key in _NOT_METRICS | _HEALTH:
            continue
        column = metric_name(key)
        name = column or renamed.get(key, key[:MAX_OTHER])
        if name is not None:
            must[key] = Must() if column else Must(loose=True)
            taken.append(Taken(name, key))
    if "tput_per_gpu" in must:
        must["tput_per_gpu"] = Must(null=False, nought=False)
    return Parts({**must, **_musts_of_health(keys)}, (*taken, *_health(_HEALTH & set(keys))))


def _musts_of_health(keys: Sequence[str]) -> dict[str, Must]:
    counts = {key: Must(whole=True, null=False, nought=key != "completed") for key in _HEALTH & set(keys)}
    return counts | ({"duration": Must()} if "duration" in counts else {})


def _health(told: Set[str]) -> list[Taken]:
    """Return what `_counts` makes of the counts that are *told*."""
    found = [Taken("duration_s", "duration")] if "duration" in told else []
    if "num_prompts" in told:
        found += [Taken("requests", "num_prompts"), *([Taken(None, "num_prompts", minus="failed")] if "failed" in told else [])]
    elif {"completed", "failed"} <= told:
        found.append(Taken("requests", "completed", plus="failed"))
    if "failed" in told:
        found.append(Taken("requests_failed", "failed"))
    elif {"completed", "num_prompts"} <= told:
        found.append(Taken("requests_failed", "num_prompts", minus="completed"))
    lengths = {f"total_{kind}_tokens": name for kind, name in (("input", "isl_mean"), ("output", "osl_mean"))}
    return found + [Taken(name, key, over="completed") for key, name in lengths.items() if {key, "completed"} <= told]


def _clock(record: dict[str, Any], _given: Given) -> datetime | None:
    """Return the benchmark's own start; raises InputError where it is not a plain number, so that `read` looks at the record."""
    value = record.get(_CLOCK)
    if value is None:
        return None
    if not is_number(value) or not 0 < value < LAST_CLOCK:
        raise InputError(f"{_CLOCK}: not a plain number")
    return datetime.fromtimestamp(value, UTC)


_IN_NAMES = (
    re.compile(r"(?<![0-9a-z])(?P<isl>\d{1,3})k[_-]?(?P<osl>\d{1,3})k(?![0-9a-z])", re.IGNORECASE),
    re.compile(r"(?<![0-9a-z])isl[_=-]?(?P<isl>\d{1,7})[_.,-]*osl[_=-]?(?P<osl>\d{1,7})(?![0-9a-z])", re.IGNORECASE),
)
"""`1k8k` (in units of 1,024 tokens) and `isl1024_osl8192`."""
_UNITS = (1024, 1)


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return `isl` and `osl` as the name of the file, else of the nearest folder, tells them; one that tells two is none."""
    for name in reversed(path.parts):
        found = {
            (int(match["isl"]) * unit, int(match["osl"]) * unit)
            for pattern, unit in zip(_IN_NAMES, _UNITS, strict=True)
            for match in pattern.finditer(name)
        }
        if len(found) > 1:
            return {}
        for isl, osl in found:
            return {"isl": str(isl), "osl": str(osl)} if isl and osl else {}
    return {}


FORMAT = RecordFormat(
    "inferencex",
    "InferenceX fixed-sequence result rows (agg_bmk.json, agg_*.json); docs/formats.md",
    MARKERS,
    read,
    Split(
        setup=frozenset(_Row.model_fields) - frozenset(THROUGHPUTS) - {_CLOCK, "image"},
        parts=_parts,
        variant=power.flags,
        image="image",
        clocks=frozenset({_CLOCK}),
        clock_of=_clock,
        era=lambda started: (started < PRECISION_SINCE, started < PER_ROLE_TOKENS_SINCE, started < setups.DISAGG_SINCE),
    ),
    without=frozenset({"num_requests_total"}),
    hints=hints,
    clean=setups.without_hosts,
    dictionary=dictionary.FIXED,
)
