"""What the log says of benchmark runs: which report of each holds, and what was retracted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from warehouse.clock import parse_instant
from warehouse.events import ResultRetracted, RunReported
from warehouse.log import typed
from warehouse.schemas import RUNS, TEXT, TIME

EVENT_TYPES = ("RunReported", "ResultRetracted")
KEY = ("run_source", "run_id", "run_attempt")
"""Columns that identify a run, in every table."""
Key = tuple[str, str, int]
"""Values of KEY."""
HELD = pl.Schema(
    {
        "subject": TEXT,
        **{name: RUNS.schema[name] for name in KEY},
        "run_started_at": TIME,
        "published_at": TIME,
        "declared": pl.Boolean(),
        "run_retraction": TEXT,
    }
)
"""What the points of a run take over from it."""


@dataclass
class Run:
    """One run: the report that holds and its row of the log, the different contents."""

    report: RunReported
    recorded_at: datetime
    rank: tuple[Any, ...]
    contents: set[str] = field(default_factory=set)
    """What the reports say, whoever corrected what."""


@dataclass
class Runs:
    """Runs by subject; why whole runs do not count, by subject, and single results, by point id."""

    by_subject: dict[str, Run] = field(default_factory=dict)
    run_decisions: dict[str, str | None] = field(default_factory=dict)
    retracted: dict[str, str] = field(default_factory=dict)

    def held(self) -> pl.DataFrame:
        """Return HELD rows of the runs that were reported."""
        rows = [
            (
                subject,
                *run.report.run.model_dump().values(),
                parse_instant(run.report.started_at, "started_at"),
                published_at(run.report),
                run.report.declared,
                self.run_decisions.get(subject),
            )
            for subject, run in self.by_subject.items()
        ]
        return pl.DataFrame(rows, schema=HELD, orient="row")

    def starts(self) -> dict[str, datetime]:
        """Return when each run started, by subject."""
        return {subject: parse_instant(run.report.started_at, "started_at") for subject, run in self.by_subject.items()}


def published_at(report: RunReported) -> datetime | None:
    """Return from when a run's results were public: the source's last change of it is not before its end."""
    return parse_instant(report.updated_at, "updated_at") if report.updated_at else None


def fold(events: pl.DataFrame) -> Runs:
    """Return what *events*, in log order, say of runs; those of other types are passed over.

    Of several reports the one with the highest revision holds, then one of the run itself before what a result told of it (of
    those, one that knows the very time before one that knows the day), then the latest `updated_at`, then the last in the log:
    the order in which files were read decides only between reports that nothing else tells apart. Of several decisions the last
    holds.
    """
    runs = Runs()
    for row, payload in typed(events.filter(pl.col("event_type").is_in(EVENT_TYPES))):
        if isinstance(payload, RunReported):
            _report(runs, row, payload)
        elif isinstance(payload, ResultRetracted):
            _decide(runs, payload)
    return runs


def _report(runs: Runs, row: dict[str, Any], report: RunReported) -> None:
    rank = (
        report.revision,
        not report.derived,
        report.derived and bool(report.created_at),
        published_at(report) or _NEVER,
        row["sequence"],
    )
    known = runs.by_subject.get(report.subject)
    said = report.model_copy(update={"revision": 0}).model_dump_json()
    if known is None:
        runs.by_subject[report.subject] = Run(report, row["recorded_at"], rank, {said})
        return
    known.contents.add(said)
    if rank > known.rank:
        known.report, known.recorded_at, known.rank = report, row["recorded_at"], rank


_NEVER = parse_instant("1970-01-01", "never")


def _decide(runs: Runs, decision: ResultRetracted) -> None:
    reason = None if decision.reinstated else decision.reason
    if decision.point_id is None:
        runs.run_decisions[decision.subject] = reason
    elif reason is None:
        runs.retracted.pop(decision.point_id, None)
    else:
        runs.retracted[decision.point_id] = reason


def table(runs: Runs, counts: dict[Key, int]) -> pl.DataFrame:
    """Return rows of `runs`; *counts* are the points of each that count."""
    return pl.DataFrame([_row(runs, subject, run, counts) for subject, run in runs.by_subject.items()], schema=RUNS.schema)


def _row(runs: Runs, subject: str, run: Run, counts: dict[Key, int]) -> dict[str, Any]:
    report = run.report
    key = (report.run.run_source, report.run.run_id, report.run.run_attempt)
    return {
        "run_source": key[0],
        "run_id": key[1],
        "run_attempt": key[2],
        "name": report.name,
        "head_branch": report.head_branch,
        "head_sha": report.head_sha,
        "trigger": report.trigger,
        "status": report.status,
        "conclusion": report.conclusion,
        "created_at": parse_instant(report.created_at, "created_at") if report.created_at else None,
        "started_at": parse_instant(report.started_at, "started_at"),
        "published_at": published_at(report),
        "url": report.url,
        "declared": report.declared,
        "reports": len(run.contents),
        "points": counts.get(key, 0),
        "retraction": runs.run_decisions.get(subject),
        "recorded_at": run.recorded_at,
    }
