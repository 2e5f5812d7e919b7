"""An evaluation: one setup, scored once by one task and metric; and the earlier one that it can be compared with.

A setup is the curve, the load, the task and the metric (with its filter). Scores of one run on one build by one harness are one
evaluation: their mean counts, with the weight of the least of them, so that a score told twice confirms nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, TagLog
from pipelines.detect.baseline import Baseline
from pipelines.detect.changes import HARNESS, MIXED, UNKNOWN, ChangeSet, differences
from pipelines.detect.observations import HOST, Observation
from warehouse.schemas import CONTEXT

SETUP = ("curve_id", "task", "metric", "concurrency")
ASKED = {
    "few_shot": "worked examples",
    "task_version": "version of the task",
    "samples_total": "questions of the task",
    "samples": "questions asked",
    "harness_version": "version of the harness",
}
"""What decides how a score came about besides the system, in words."""
_OTHER_TEST = ("few_shot", "task_version", "samples_total")
"""Known to differ, they make another test of it: nothing is compared."""
MOST_LEFT_OUT = 0.05
"""Share of the questions that one side may lack: a few requests fail, a limit asks another part of the task."""
_RUN = ("run_source", "run_id", "run_attempt")
_BUILD = ("build_id", "image_ref", "image_digest", "engine_version")
_SAME = (*SETUP, *_RUN, "build_id", "checkpoint", "hardware_label", *ASKED)
_CONTEXT = tuple(column.name for column in CONTEXT)
COLUMNS = tuple(
    dict.fromkeys(
        (*_SAME, *_BUILD, *_CONTEXT, "measured_at", "recorded_at", "score", "score_stderr", "record_hash", "retraction")
    )
)
"""Columns of `evals` that are read."""


@dataclass(frozen=True)
class Evaluation:
    """One setup, scored once. `seen` is what can differ (an observation without cells), `asked` what the harness did."""

    seen: Observation
    setup: dict[str, Any]
    asked: dict[str, Any]
    score: float
    stderr: float | None
    records: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells this evaluation from every other."""
        run = (getattr(self.seen, name) for name in _RUN)
        return (*self.setup.values(), *run, *self.seen.setup, *self.asked.values())

    def repeats(self, other: Evaluation) -> bool:
        """Say whether both ran one recorded build, asked in the same way (what one side lacks is not known)."""
        return self.seen.repeats(other.seen) and same_test(self, other)

    def may_repeat(self, other: Evaluation) -> bool:
        """Say the same of two that may be repeats, whatever the tag of their image was seen to do."""
        return self.seen.may_repeat(other.seen) and same_test(self, other)

    def is_told_by(self, other: Evaluation) -> bool:
        """Say whether the run and the build are one: another record of the same, which is no witness."""
        mine, theirs = ([getattr(side.seen, name) for name in (*_RUN, "build_id")] for side in (self, other))
        return mine == theirs


def evaluate(evals: pl.DataFrame, tags: TagLog = NO_TAGS) -> list[list[Evaluation]]:
    """Return the history of every setup of *evals* (COLUMNS, any order) in order of time; what was retracted is left out.

    *tags*: what registries told.
    """
    counted = evals.select(COLUMNS).filter(pl.col("retraction").is_null() & pl.col("score").is_finite())
    labelled = counted.with_columns(HOST)
    dated = labelled.with_columns(measured_at=pl.col("measured_at").min().over(_SAME))
    rows = dated.sort(*SETUP, "measured_at", *_SAME, "score", "score_stderr", "record_hash", nulls_last=True)
    found = (_evaluation(list(same), tags) for _key, same in groupby(rows.iter_rows(named=True), key=_of(_SAME)))
    return [list(history) for _setup, history in groupby(found, key=lambda one: tuple(one.setup.values()))]


def pairs(history: list[Evaluation]) -> Iterator[tuple[Evaluation, Evaluation]]:
    """Yield each evaluation of one setup, after the previous comparable one, as (earlier, later)."""
    for index, new in enumerate(history):
        old = _previous(history, index)
        if old is not None:
            yield old, new


def same_test(old: Evaluation, new: Evaluation) -> bool:
    """Say whether two scores are of one test: as far as both sides tell, the same task, examples and (nearly) questions."""
    told = [(old.asked[name], new.asked[name]) for name in _OTHER_TEST]
    if any(None not in pair and pair[0] != pair[1] for pair in told):
        return False
    counts = [side.asked["samples"] for side in (old, new)]
    return None in counts or max(counts) - min(counts) <= MOST_LEFT_OUT * max(counts)


def changed(old: Evaluation, new: Evaluation) -> ChangeSet:
    """Return what differs between two evaluations: of the software as for curves, and of the harness, told on one side or both.

    The harness alone → `harness`; with anything else → `mixed`; a build that is not recorded stays `unknown`.
    """
    changes = differences(new.seen, Baseline(old.seen, {}, (old.seen,)))
    texts = [
        f"{text}: {_told(old.asked[name])} → {_told(new.asked[name])}"
        for name, text in ASKED.items()
        if old.asked[name] != new.asked[name]
    ]
    if not texts:
        return changes
    attribution = UNKNOWN if changes.attribution == UNKNOWN else HARNESS if changes.is_repeat else MIXED
    return ChangeSet((*changes.names, HARNESS), (*changes.details, "; ".join(texts)), attribution)


def _told(value: Any) -> str:
    return "not recorded" if value is None else str(value)[:64]


def _previous(history: list[Evaluation], index: int) -> Evaluation | None:
    """Return the latest comparable one before *index*; of several of one instant (two builds in a run) the one most alike."""
    new = history[index]
    backwards = (history[position] for position in range(index - 1, -1, -1))
    comparable = (
        old
        for old in backwards
        if old.seen.measured_at < new.seen.measured_at and same_test(old, new) and not old.is_told_by(new)
    )
    for _instant, together in groupby(comparable, key=lambda old: old.seen.measured_at):
        return max(together, key=lambda old: _likeness(old, new))
    return None


def _likeness(old: Evaluation, new: Evaluation) -> int:
    mine, theirs = ((*side.seen.setup, *side.asked.values()) for side in (new, old))
    return sum(own == other for own, other in zip(mine, theirs, strict=True))


def _of(names: Iterable[str]) -> Any:
    return lambda row: tuple(row[name] for name in names)


def _evaluation(rows: list[dict[str, Any]], tags: TagLog) -> Evaluation:
    head = rows[0]
    errors = [row["score_stderr"] for row in rows]
    return Evaluation(
        seen=_seen(rows, tags),
        setup={name: head[name] for name in SETUP},
        asked={name: head[name] for name in ASKED},
        score=math.fsum(row["score"] for row in rows) / len(rows),
        stderr=None if None in errors else max(errors),
        records=len(rows),
    )


def _seen(rows: list[dict[str, Any]], tags: TagLog) -> Observation:
    head = rows[0]
    return Observation(
        **{name: head[name] for name in ("curve_id", "measured_at", *_RUN, *_BUILD, "checkpoint", "hardware_label")},
        recorded_at=max(row["recorded_at"] for row in rows),
        recipe_fingerprint=None,
        metric_definition=head["metric"],
        context={name: head[name] for name in _CONTEXT},
        cells={},
        stood=tags.stood(head["image_ref"], head["image_digest"], head["measured_at"]),
    )
