"""Rare series: one cell, a result now and then (rounds of MLPerf, a single offline figure). Which are paired, and what differs.

An engine is blamed only where nothing but the build is known to differ and a second witness (steady state, a median latency)
moved along: a single cell of one image moves by 36 % now and then. An unfit cell is not compared. Across rounds of MLPerf
something else always differs: each round has its own LoadGen and rules. A system that is new in a round is compared with the
nearest one of its submitter (`RARE`): the same but for its name, or but for one thing more, which then stands in the change set.
Belongs here: what `baseline` and `changes` do for curves. Does not: judging (`rare_rows`), units of MLPerf (its reader).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, TagLog
from pipelines.detect.baseline import baselines
from pipelines.detect.changes import (
    BUILD,
    CHECKPOINT,
    ENGINE,
    ENVIRONMENT,
    HARNESS,
    MEASUREMENT,
    MIXED,
    RECIPE,
    UNKNOWN,
    build_change,
    changed,
    may_be_same,
    recipe_change,
)
from pipelines.detect.observations import COLUMNS, E2EL, LOAD, REPORTED, STEADY, TPOT, Cell, Observation, observe
from pipelines.detect.recipes import NO_LOG, RecipeLog
from warehouse.schemas import CONTEXT

HALF = 0.5
WITNESSES = (STEADY, TPOT, E2EL)
"""Second witnesses, the first that both sides have."""
HARDWARE, ACCELERATORS, SYSTEM, SOFTWARE, AVAILABILITY = "hardware", "accelerators", "system", "software", "availability"
METRIC_DEFINITION = "metric_definition"
_ALONE = {
    BUILD: ENGINE,
    RECIPE: RECIPE,
    HARNESS: HARNESS,
    CHECKPOINT: CHECKPOINT,
    HARDWARE: HARDWARE,
    ACCELERATORS: HARDWARE,
    SYSTEM: ENVIRONMENT,
    AVAILABILITY: ENVIRONMENT,
    ENVIRONMENT: ENVIRONMENT,
}
"""What a difference is called where it is the only one; of software that is another one altogether nothing is said."""
_FOLLOWS = frozenset({SYSTEM, RECIPE, ENVIRONMENT})
"""Names of systems, configurations and labels tell the accelerators as well: no second cause beside them."""
_AVAILABILITIES = ("available", "preview", "rdi")

RARE = ("scenario", "workload", "arrival", "model", "precision", "spec_decoding", "disagg", "is_multinode", "isl", "osl")
"""What series of one submitter must have in common to be compared with each other: `workload` has the accuracy target."""
_EXTRAS = tuple(dict.fromkeys((*(column.name for column in CONTEXT), *RARE, "system", "num_gpus", "headline")))
HEADLINES: dict[str, float] = {
    "tput_per_gpu": 1.0,
    "output_tput_per_gpu": 1.0,
    "samples_per_second_per_gpu": 1.0,
    "scheduled_samples_per_second_per_gpu": 1.0,
    "completed_samples_per_second_per_gpu": 1.0,
    "samples_per_second": 1.0,
    "scheduled_samples_per_second": 1.0,
    "completed_samples_per_second": 1.0,
    "output_tokens_per_second": 1.0,
    "query_latency_bound_p90": -1.0,
    "query_latency_bound_p99": -1.0,
}
"""Results that are compared, with the sign of their better direction; the first that a point has is its own. What was worked
out from another scenario or is not understood (`mlperf_…`) is not among them."""
NEEDED = tuple(
    dict.fromkeys((*COLUMNS, *RARE, "system", "num_gpus", "metrics_other", *(n for n in HEADLINES if n.endswith("tput_per_gpu"))))
)
"""Columns of `points` that are read here."""

_PAIR: dict[str, pl.DataType] = {
    "curve_id": pl.String(),
    "from_curve_id": pl.String(),
    "scenario": pl.String(),
    "workload": pl.String(),
    "from_system": pl.String(),
    "to_system": pl.String(),
    "from_hardware": pl.String(),
    "to_hardware": pl.String(),
    "from_run_id": pl.String(),
    "to_run_id": pl.String(),
    "metric": pl.String(),
    "from_value": pl.Float64(),
    "to_value": pl.Float64(),
    "factor": pl.Float64(),
    "change_set": pl.List(pl.String()),
    "change_detail": pl.List(pl.String()),
    "attribution": pl.String(),
}
PAIRS = pl.Schema(_PAIR)
"""A row a pair: values per accelerator where their number is known, `factor` above one = better, null where the two measured
different things and nothing is compared."""


@dataclass(frozen=True)
class Pair:
    """Two results, what is known to differ between them, and the log-ratio (positive = better); None: not comparable.

    `contradicted`: another run of one of the two builds stands nearer to the other side; then no build is blamed.
    """

    old: Observation
    new: Observation
    names: tuple[str, ...]
    details: tuple[str, ...]
    attribution: str
    size: float | None
    contradicted: bool = False


def rare_pairs(points: pl.DataFrame, log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS) -> pl.DataFrame:
    """Return the pairs of rare series among *points* (`NEEDED`, any order) in the schema `PAIRS`."""
    return pl.DataFrame([_pair_row(pair) for pair in pairs_of(points, log, tags)], schema=PAIRS)


def pairs_of(points: pl.DataFrame, log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS) -> list[Pair]:
    """Return the pairs of rare series, in the order of the later side's curve, then time."""
    seen_by_curve = observe(_with_headlines(_rare(points)), _EXTRAS, log, tags)
    curves = {curve: [seen for seen in history if math.isfinite(_value(seen))] for curve, history in seen_by_curve.items()}
    pool: dict[tuple[Any, ...], list[Observation]] = defaultdict(list)
    for curve in sorted(curves):
        for seen in curves[curve]:
            pool[_kin(seen)].append(seen)
    found: list[Pair] = []
    for curve in sorted(curves):
        history = curves[curve]
        for new, baseline in zip(history, baselines(history), strict=True):
            old = baseline.observation if baseline else _nearest(new, pool[_kin(new)])
            if old is not None:
                found.append(_pair(old, new, history))
    return found


def _rare(points: pl.DataFrame) -> pl.DataFrame:
    return single_load(points.lazy()).select(NEEDED).collect()


def single_load(points: pl.LazyFrame) -> pl.LazyFrame:
    """Return the points of runs up to which their curve had one load only: what comes later does not alter what was compared."""
    run = ("curve_id", "run_source", "run_id", "run_attempt")
    timed = points.with_columns(_at=pl.col("measured_at").min().over(run), _load=pl.struct(LOAD))
    met = timed.group_by("curve_id", "_load").agg(pl.col("_at").min())
    second = met.group_by("curve_id").agg(_second=pl.col("_at").sort().slice(1, 1).first())
    single = timed.join(second, on="curve_id").filter(pl.col("_second").is_null() | (pl.col("_at") < pl.col("_second")))
    return single.drop("_at", "_load", "_second")


def _with_headlines(points: pl.DataFrame) -> pl.DataFrame:
    """Put the headline of each point where `observe` looks for throughput: a rate, or one over a latency; leave out the rest."""
    rows = points.with_row_index("row")
    columns = [name for name in HEADLINES if name in rows.columns]
    own = [rows.select("row", pl.lit(name).alias("headline"), pl.col(name).alias("value")) for name in columns]
    other = rows.select("row", "metrics_other").explode("metrics_other").drop_nulls().unnest("metrics_other")
    every = pl.concat([*own, other.select("row", pl.col("name").alias("headline"), "value")])
    known = pl.DataFrame({"headline": list(HEADLINES), "rank": range(len(HEADLINES)), "sign": list(HEADLINES.values())})
    best = every.filter(pl.col("value") > 0).join(known, on="headline").sort("row", "rank").unique("row", keep="first")
    chosen = best.select("row", "headline", pl.col("value").pow(pl.col("sign")).alias(REPORTED))
    return rows.drop(REPORTED).join(chosen, on="row")


def _kin(seen: Observation) -> tuple[Any, ...]:
    """What series must share to be compared with each other: submitter and workload; without a named system the curve itself."""
    system = seen.context["system"]
    return (system.split(": ", 1)[0] if system else seen.curve_id, *(seen.context[name] for name in RARE))


def _nearest(new: Observation, pool: list[Observation]) -> Observation | None:
    """Return the latest earlier result of the pool that differs from *new* in one thing at most beside its name, or None.

    One that measured the same comes first, then by likeness of hardware, accelerators, software, configuration and name.
    """
    near = [old for old in pool if old.measured_at < new.measured_at and _things(old, new) <= 1]
    alike = [old for old in near if _comparable(old, new)] or near
    last = max((old.measured_at for old in alike), default=None)
    return min((old for old in alike if old.measured_at == last), key=lambda old: _distance(old, new), default=None)


def _things(old: Observation, new: Observation) -> int:
    pairs = (("hardware",), ("num_gpus",), ("engine", "framework"))
    return sum(any(old.context[name] != new.context[name] for name in names) for names in pairs)


def _distance(old: Observation, new: Observation) -> tuple[Any, ...]:
    alike = SequenceMatcher(None, str(old.context["system"]), str(new.context["system"]), autojunk=False).ratio()
    return (
        _things(old, new),
        old.context["hardware"] != new.context["hardware"],
        old.recipe_fingerprint != new.recipe_fingerprint,
        old.hardware_label != new.hardware_label,
        -alike,
        old.curve_id,
        old.build_id,
    )


def _comparable(old: Observation, new: Observation) -> bool:
    return (old.metric_definition, old.context["headline"]) == (new.metric_definition, new.context["headline"])


def _pair(old: Observation, new: Observation, history: list[Observation]) -> Pair:
    found = {name: text for name, text in _differences(old, new).items() if text}
    size = _value(new) - _value(old) if _comparable(old, new) and not (_unfit(old) or _unfit(new)) else None
    doubted = size is not None and _is_contradicted(old, new, size, history)
    attribution = ENVIRONMENT if doubted else _witnessed(_attribution(old, new, frozenset(found)), old, new, size)
    return Pair(old, new, tuple(found), tuple(found.values()), attribution, size, doubted)


def _witnessed(attribution: str, old: Observation, new: Observation, size: float | None) -> str:
    """Return what may be said once a second witness is heard: not moving along, it leaves the measurement; absent, no engine."""
    if size is None:
        return attribution
    changes = (_only(new).values[name] - _only(old).values[name] for name in WITNESSES)
    seen = next((change for change in changes if math.isfinite(change)), None)
    if seen is None:
        return UNKNOWN if attribution == ENGINE else attribution
    return attribution if seen * size > 0 and abs(seen) >= HALF * abs(size) else MEASUREMENT


def _only(seen: Observation) -> Cell:
    (cell,) = seen.cells.values()
    return cell


def _unfit(seen: Observation) -> bool:
    return _only(seen).unfit


def _is_contradicted(old: Observation, new: Observation, size: float, history: list[Observation]) -> bool:
    """Say whether a run of one build alone leaves less than half of the change between the two builds."""
    of_old = (_value(seen) - _value(old) for seen in history if seen.may_repeat(old) and not seen.may_repeat(new))
    of_new = (_value(new) - _value(seen) for seen in history if seen.may_repeat(new) and not seen.may_repeat(old))
    return size != 0 and any(moved / size > HALF for moved in (*of_old, *of_new))


def _value(seen: Observation) -> float:
    """Return the logarithm of the only cell, more is better."""
    return _only(seen).values[REPORTED]


def _differences(old: Observation, new: Observation) -> dict[str, str]:
    of_old, of_new = old.context, new.context
    kind_of_old, kind_of_new = _kind(old), _kind(new)
    return {
        BUILD: build_change(old, new),
        SOFTWARE: changed("software", _software(old), _software(new)),
        RECIPE: recipe_change(old, new),
        HARNESS: changed("harness and rules", old.harness, new.harness),
        CHECKPOINT: changed("checkpoint", old.checkpoint, new.checkpoint),
        HARDWARE: changed("accelerator", of_old["hardware"], of_new["hardware"]),
        ACCELERATORS: changed("accelerators", _number(of_old["num_gpus"]), _number(of_new["num_gpus"])),
        SYSTEM: changed("system", of_old["system"], of_new["system"]),
        AVAILABILITY: changed("availability", kind_of_old[1], kind_of_new[1]),
        ENVIRONMENT: changed("label", kind_of_old[0], kind_of_new[0]),
        METRIC_DEFINITION: changed("what was measured", _measured(old), _measured(new)),
    }


def _software(seen: Observation) -> str:
    engine, framework = seen.context["engine"], seen.context["framework"]
    return engine if framework in (None, engine) else f"{engine} in {framework}"


def _measured(seen: Observation) -> str:
    return f"{seen.metric_definition} ({seen.context['headline']})"


def _number(count: int | None) -> str | None:
    return None if count is None else str(count)


def _kind(seen: Observation) -> tuple[str | None, str | None]:
    """Return the label without, and then the availability at its end: `NVIDIA H200-SXM-141GB, preview`."""
    head, _comma, last = (seen.cluster or "").rpartition(", ")
    return (head, last) if last in _AVAILABILITIES else (seen.cluster, None)


def _attribution(old: Observation, new: Observation, names: frozenset[str]) -> str:
    """Return what the known differences allow to be said; a build that is not recorded is never cleared nor blamed alone."""
    causes = names - _FOLLOWS if names & {HARDWARE, ACCELERATORS} else names
    known = old.has_build and new.has_build and not may_be_same(old, new)
    if len(causes) > 1 and (known or BUILD in causes):
        return MIXED
    if not known:
        return UNKNOWN
    return _ALONE.get(next(iter(causes)), UNKNOWN) if causes else ENVIRONMENT


def _pair_row(pair: Pair) -> dict[str, Any]:
    old, new = pair.old, pair.new
    sign = HEADLINES[new.context["headline"]]
    return {
        "curve_id": new.curve_id,
        "from_curve_id": old.curve_id,
        "scenario": new.context["scenario"],
        "workload": new.context["workload"],
        "from_system": old.context["system"],
        "to_system": new.context["system"],
        "from_hardware": old.context["hardware"],
        "to_hardware": new.context["hardware"],
        "from_run_id": old.run_id,
        "to_run_id": new.run_id,
        "metric": new.context["headline"],
        "from_value": math.exp(HEADLINES[old.context["headline"]] * _value(old)),
        "to_value": math.exp(sign * _value(new)),
        "factor": None if pair.size is None else math.exp(pair.size),
        "change_set": list(pair.names),
        "change_detail": list(pair.details),
        "attribution": None if pair.size is None else pair.attribution,
    }
