"""An observation: the points of one curve from one run on one build, side by side.

Values are natural logarithms, signed so that more is better; NaN where a record lacks the metric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, NOWHERE, Stood, TagLog
from pipelines.detect.health import FAILURES, LENGTHS
from pipelines.detect.recipes import NO_LOG, Configuration, Entry, RecipeLog
from warehouse.schemas import CONTEXT, SIDE

REPORTED, STEADY, TPOT, TTFT = "tput_per_gpu", "steady_output_tput_per_gpu", "tpot_median", "ttft_median"
E2EL = "e2el_median"
METRICS = {REPORTED: 1.0, STEADY: 1.0, TPOT: -1.0, TTFT: -1.0, E2EL: -1.0}
"""Metrics that are compared, with the sign of their better direction."""

SAME = (
    "curve_id",
    "run_source",
    "run_id",
    "run_attempt",
    "build_id",
    "recipe_fingerprint",
    "checkpoint",
    "hardware_label",
    "metric_definition",
)
"""Columns in which all points of an observation agree, so that what is said to differ holds for each of its cells."""
LOAD = ("concurrency", "request_rate")
"""Columns that tell a cell of a curve: the first that is not null."""
RANKS = ("tp", "prefill_tp", "decode_tp")
"""Tensor-parallel ranks: of a single deployment, of either part of a disaggregated one."""
_READ = (
    *SAME,
    "measured_at",
    "recorded_at",
    "image_ref",
    "image_digest",
    "engine_version",
    *LOAD,
    "record_hash",
    "record_format",
    "run_started_at",
    "reused",
    *METRICS,
    "health",
    "verdict",
    "scenario",
    "hardware",
    "framework",
    "model",
    "precision",
    "spec_decoding",
    "disagg",
    "isl",
    "osl",
    *RANKS,
)
COLUMNS = tuple(dict.fromkeys((*_READ, *(column.name for column in CONTEXT))))
"""Columns of `points` that detection reads, in no particular order; the table has four times as many."""
OTHER_WORK = frozenset({FAILURES, LENGTHS})
"""Findings that spoil medians as well as means: what was done is not what was asked for."""
UNFIT = "unfit"
HOST = pl.col("hardware_label").str.replace(r"_\d+$", "")
"""The runner label without the number of the single runner: `mi355x-amd_0` and `mi355x-amd_1` are one kind of host."""
_HARNESSES = {
    "inferencex-api": "inferencex",
    "mlperf-summary": "mlperf",
    "mlperf-log-summary": "mlperf",
    "mlperf-log-detail": "mlperf",
}
"""Formats that carry what another one carries: the same client measured. Every other format is a client of its own."""
_ROUNDS = "mlcommons"
"""Where a run is a round of MLPerf Inference: each round has its own LoadGen and rules."""


@dataclass(frozen=True)
class Cell:
    """One concurrency (or request rate) of an observation: its logarithms by metric, its health."""

    values: dict[str, float]
    health: tuple[str, ...]
    unfit: bool


@dataclass(frozen=True)
class Observation:
    """One curve measured once. `setup` is all that must be the same for two observations to be repeats.

    `hardware_label` is without the number of the single runner.
    """

    curve_id: str
    measured_at: datetime
    recorded_at: datetime
    """When we knew the whole of it."""
    run_source: str
    run_id: str
    run_attempt: int
    build_id: str
    image_ref: str | None
    image_digest: str | None
    engine_version: str | None
    recipe_fingerprint: str | None
    checkpoint: str | None
    hardware_label: str | None
    metric_definition: str
    context: dict[str, Any]
    cells: dict[float, Cell]
    harness: str | None = None
    """The client that measured, as far as a record tells: its kind, of MLPerf the round."""
    logged: tuple[Entry, ...] = ()
    """Causes in the benchmark's recipe log that are about this configuration and held when the run started, oldest first."""
    stood: Stood = NOWHERE
    """What registries told of the image by then."""

    @property
    def night(self) -> str:
        """The UTC day of the measurement."""
        return self.measured_at.date().isoformat()

    @property
    def setup(self) -> tuple[str | None, ...]:
        return (self.build_id, self.recipe_fingerprint, self.checkpoint, self.hardware_label, self.metric_definition)

    @property
    def conditions(self) -> tuple[str | int | None, ...]:
        """All that must be the same for cells of two observations to be pooled: setup, client, state of the log, of the tag."""
        return (*self.setup, self._version, self.harness, len(self.logged), self.stood.moves)

    @property
    def cluster(self) -> str | None:
        """The label of the runner, whether it was asked for as one of a cluster (`cluster:b300-nv`) or not."""
        return self.hardware_label.removeprefix("cluster:") if self.hardware_label else self.hardware_label

    def as_side(self, prefix: str) -> dict[str, Any]:
        """Return the columns of one side of a comparison; *prefix*: from or to."""
        return {f"{prefix}_{name}": getattr(self, name) for name, _dtype, _meaning in SIDE}

    @property
    def _version(self) -> str | None:
        """The version where it can tell more than the build's id: a tag can move, a digest cannot."""
        return None if self.image_digest else self.engine_version

    @property
    def has_build(self) -> bool:
        """Say whether the record names its build at all."""
        return not self.build_id.startswith("unknown:")

    def same_build(self, other: Observation) -> bool:
        """Say whether nothing tells the builds apart: one id, no version that differs under it, no tag that was seen to move."""
        return self.is_named_as(other) and self.stood.moves == other.stood.moves

    def is_named_as(self, other: Observation) -> bool:
        """Say whether the records tell one build: where its tag was seen to move, a run may still have had the older copy."""
        versions = {self._version, other._version} - {None}
        return self.build_id == other.build_id and len(versions) < 2

    def repeats(self, other: Observation) -> bool:
        """Say whether both ran one recorded build and nothing else is known to differ (what one side lacks is not known).

        An entry of the recipe log between the two does not count here: that a run of the build bears witness matters more than
        what the entry may have changed.
        """
        return self.same_build(other) and self.may_repeat(other)

    def may_repeat(self, other: Observation) -> bool:
        """Say whether both may be repeats, whatever their tag was seen to do: enough to acquit a build, not to confirm."""
        if not (self.has_build and self.is_named_as(other)):
            return False
        known = [(own, theirs) for own, theirs in zip(self._rest, other._rest, strict=True) if None not in (own, theirs)]
        return all(own == theirs for own, theirs in known)

    @property
    def _rest(self) -> tuple[str | None, ...]:
        return (self.recipe_fingerprint, self.checkpoint, self.cluster, self.metric_definition, self.harness)


def observe(
    points: pl.DataFrame, context: tuple[str, ...], log: RecipeLog = NO_LOG, tags: TagLog = NO_TAGS
) -> dict[str, list[Observation]]:
    """Return the observations of every curve in order of time; *context* names identity columns to carry along.

    Two records of one cell in one observation are joined by the median of their logarithms. *log* is the benchmarks' own, *tags*
    what registries told.
    """
    curves: dict[str, list[Observation]] = {}
    order = ("curve_id", "measured_at", *SAME[1:], *LOAD, "record_hash")
    ordered = _spread(points.select(*dict.fromkeys((*_READ, *context)))).sort(*order, nulls_last=True)
    for key, rows in groupby(ordered.iter_rows(named=True), key=lambda row: tuple(row[name] for name in SAME)):
        curves.setdefault(str(key[0]), []).append(_observation(list(rows), context, log, tags))
    return curves


def _spread(points: pl.DataFrame) -> pl.DataFrame:
    """Date every point of an observation by its first, so that one sweep of a curve stays one observation.

    A re-used record is left out: it was measured once, and a copy of itself would confirm it.
    """
    own = points.filter(~pl.col("reused").fill_null(False))
    labelled = own.with_columns(HOST)
    return labelled.with_columns(measured_at=pl.col("measured_at").min().over(SAME))


def _observation(rows: list[dict[str, Any]], context: tuple[str, ...], log: RecipeLog, tags: TagLog) -> Observation:
    head = rows[0]
    cells = {load: _cell(list(same)) for load, same in groupby(rows, key=load_of)}
    return Observation(
        curve_id=head["curve_id"],
        measured_at=head["measured_at"],
        recorded_at=max(row["recorded_at"] for row in rows),
        run_source=head["run_source"],
        run_id=head["run_id"],
        run_attempt=head["run_attempt"],
        build_id=head["build_id"],
        image_ref=head["image_ref"],
        image_digest=head["image_digest"],
        engine_version=head["engine_version"],
        recipe_fingerprint=head["recipe_fingerprint"],
        checkpoint=head["checkpoint"],
        hardware_label=head["hardware_label"],
        metric_definition=head["metric_definition"],
        context={name: head[name] for name in context},
        cells=cells,
        harness=_harness(rows),
        logged=log.until(configuration_of(head), head["run_started_at"] or head["measured_at"], head["image_ref"])
        if log.entries
        else (),
        stood=tags.stood(head["image_ref"], head["image_digest"], head["measured_at"]),
    )


def _harness(rows: list[dict[str, Any]]) -> str | None:
    """Return the kind of client by the formats of the records; of MLPerf with the round."""
    kinds = {_HARNESSES.get(row["record_format"], row["record_format"]) for row in rows} - {None}
    rounds = f" {rows[0]['run_id']}" if rows[0]["run_source"] == _ROUNDS else ""
    return " and ".join(sorted(kinds)) + rounds if kinds else None


def configuration_of(row: dict[str, Any]) -> Configuration:
    """Return what the keys of a recipe log name of a point."""
    names = ("model", "precision", "hardware", "framework", "spec_decoding")
    told = {name: row[name] for name in names}
    ranks = tuple(sorted({row[name] for name in RANKS if row[name] is not None}))
    lengths = {"isl": row["isl"], "osl": row["osl"]}
    return Configuration(row["run_source"], disagg=bool(row["disagg"]), scenario=row["scenario"], ranks=ranks, **lengths, **told)


def load_of(row: dict[str, Any]) -> float:
    """Return what tells a point of a curve from the others: its concurrency, else its request rate, else nothing."""
    loads = (row[name] for name in LOAD)
    return next((load for load in loads if load is not None), 0)


def _cell(rows: list[dict[str, Any]]) -> Cell:
    values = {metric: _logarithm([_value(row, metric) for row in rows], sign) for metric, sign in METRICS.items()}
    health = tuple(sorted({reason for row in rows for reason in row["health"]}))
    return Cell(values, health, any(row["verdict"] == UNFIT for row in rows))


def _value(row: dict[str, Any], metric: str) -> float | None:
    """Return a number that may be compared: none of a point whose very work was another, for then its medians are, too."""
    number: float | None = row[metric]
    return None if row["verdict"] == UNFIT and not OTHER_WORK.isdisjoint(row["health"]) else number


def _logarithm(values: list[float | None], sign: float) -> float:
    logarithms = [math.log(value) for value in values if value is not None and value > 0]
    return sign * median(logarithms) if logarithms else math.nan
