"""The tables `runs`, `builds` and `quarantine`, which follow from the log and from `points`.

They are brought forward by the steps that `points` has just made, where those begin where a table ends; else they are made again
from the log and the stored points, which is quick, because they need few columns.
Belongs here: reading, committing. Does not: any rule (the other modules of this package).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import polars as pl

from pipelines.fold import builds, evals, faults, points, runs
from pipelines.fold.reach import reach
from pipelines.fold.records import recorded
from pipelines.fold.table import ABOUT_RUNS, EVENT_TYPES, SUBJECT, Step, whole
from pipelines.fold.upstream import FROM, Upstream
from warehouse.log import FAR, EventLog
from warehouse.schemas import EVALS, QUARANTINE, RUNS
from warehouse.store import Change, Mark, trusted

BUILDS_FROM = (*EVENT_TYPES, *(kind for kinds in FROM.values() for kind in kinds))
"""Events that `builds` follow from."""
RECORDED = ("ResultRecorded", "EvalRecorded")
"""Events that a record of a file became."""
Made = tuple[pl.DataFrame, bool]
"""Rows, and whether they are to be added (else they are the table)."""


def settle(log: EventLog, steps: Sequence[Step], *, force: bool = False) -> list[str]:
    """Bring the small tables to where `points` is; return the names of those that were not there (all with *force*)."""
    mark = log.store.mark("points")
    if mark is None:
        return []
    makers = {
        "runs": (_runs, _all_runs),
        "evals": (_evals, _all_evals),
        "quarantine": (_quarantine, _all_quarantine),
    }
    settled = [name for name, (forward, anew) in makers.items() if _settle(log, name, mark, steps, forward, anew, force)]
    return [*settled, *(["builds"] if _settle_builds(log, mark, steps, force) else [])]


def whole_tables(log: EventLog, up_to: int, upstream: Callable[[str], pl.DataFrame] | None = None) -> dict[str, pl.DataFrame]:
    """Return `points`, `runs`, `evals`, `builds` and `quarantine` as they follow from the log.

    *upstream* gives an upstream table by name; without it they are read as they are stored.
    """
    step = whole(log, up_to)
    counts = _counted(points.counts(step.rows.lazy()).collect())
    seen = builds.seen(step.rows.lazy().select(builds.READ)).collect()
    return {
        "points": step.rows,
        "runs": runs.table(step.known, counts),
        "evals": _all_evals(log, [step], up_to),
        "builds": builds.table(seen, Upstream(upstream or log.store.read)),
        "quarantine": _all_quarantine(log, [step], up_to),
    }


def _settle(
    log: EventLog,
    name: str,
    wanted: Mark,
    steps: Sequence[Step],
    forward: Callable[[EventLog, pl.LazyFrame, Sequence[Step]], Made],
    anew: Callable[[EventLog, Sequence[Step], int], pl.DataFrame],
    force: bool,
) -> bool:
    def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
        known = None if force else trusted(mark, wanted.code, log.last_sequence())
        if known is not None and known.up_to >= wanted.up_to:
            return None  # another process has brought it as far, or further
        if known is not None and _continue(steps, known, wanted):
            frame, added = forward(log, scan, steps)
            return Change(frame, wanted, "append" if added else "overwrite")
        return Change(anew(log, steps, wanted.up_to), wanted, "overwrite")

    return log.store.commit(name, attempt) is not None


def _continue(steps: Sequence[Step], known: Mark, wanted: Mark) -> bool:
    """Say whether the steps lead from one mark to the other by adding, with no step of another process between them."""
    return bool(steps) and (steps[0].after, steps[-1].up_to) == (known.up_to, wanted.up_to) and _unbroken(steps)


def _unbroken(steps: Sequence[Step]) -> bool:
    """Say whether each step begins where the last one ended, and all of them add alone."""
    unbroken = all(step.after == before.up_to for before, step in pairwise(steps))
    return unbroken and not any(step.whole or step.replaced for step in steps)


def _runs(_log: EventLog, scan: pl.LazyFrame, steps: Sequence[Step]) -> Made:
    """Return the runs that the steps are about, where none of them was there before; all runs where one was."""
    known = runs.Runs()
    for step in steps:  # a later step knows all that an earlier one does of the same run
        known.by_subject |= step.known.by_subject
        known.run_decisions |= step.known.run_decisions
    added: Counter[runs.Key] = Counter()
    for step in steps:
        added.update(_counted(points.counts(step.rows.lazy()).collect()))
    new = runs.table(known, added)
    stored = scan.collect()
    same = stored.join(new.select(runs.KEY), on=runs.KEY, how="semi")
    if same.is_empty():
        return new, True
    before = _counted(same.select(*runs.KEY, "points"))
    total = {key: added[key] + before.get(key, 0) for key in added.keys() | before.keys()}
    return pl.concat([stored.join(new.select(runs.KEY), on=runs.KEY, how="anti"), runs.table(known, total)]), False


def _counted(counts: pl.DataFrame) -> dict[runs.Key, int]:
    return {(source, number, attempt): count for source, number, attempt, count in counts.iter_rows()}


def _all_runs(log: EventLog, _steps: Sequence[Step], up_to: int) -> pl.DataFrame:
    counts = _counted(log.store.collect("points", points.counts(_folded(log, up_to))))
    return runs.table(runs.fold(log.read(*runs.EVENT_TYPES, up_to=up_to)), counts).select(RUNS.schema.names())


def _evals(log: EventLog, scan: pl.LazyFrame, steps: Sequence[Step]) -> Made:
    """Return no row where the steps tell of no evaluation and of no run of one; else all of them: there are few."""
    events = pl.concat([step.events for step in steps])
    stored = set(scan.select(subject=SUBJECT).unique().collect()["subject"].to_list())
    about = set(events.filter(pl.col("event_type").is_in(ABOUT_RUNS))["subject"].to_list())
    if events.filter(pl.col("event_type") == "EvalRecorded").is_empty() and not about & stored:
        return EVALS.schema.to_frame(), True
    return _all_evals(log, steps, steps[-1].up_to), False


def _all_evals(log: EventLog, _steps: Sequence[Step], up_to: int) -> pl.DataFrame:
    return evals.table(*_evaluations(log, up_to))


def _evaluations(log: EventLog, up_to: int) -> tuple[pl.DataFrame, runs.Runs]:
    """Return the recorded evaluations and what is known of their runs."""
    events = log.read("EvalRecorded", up_to=up_to)
    subjects = set(events["subject"].to_list())
    said = log.about(subjects, *runs.EVENT_TYPES, up_to=up_to) if subjects else events.clear()
    return events, runs.fold(said)


def _settle_builds(log: EventLog, points: Mark, steps: Sequence[Step], force: bool) -> bool:
    """Bring `builds` to where `points` and the upstream tables are together."""

    def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
        known = None if force else trusted(mark, points.code, log.last_sequence())
        end = reach(log, {"points": EVENT_TYPES, **FROM})
        if (
            known is not None
            and end < known.up_to + FAR
            and not (end > known.up_to and log.has(*BUILDS_FROM, after=known.up_to, up_to=end))
        ):
            return None
        seen = _seen_by(log, scan, steps, known, end) if known is not None else None
        if seen is None:
            seen = log.store.collect("points", builds.seen(_folded(log, end).select(builds.READ)))
        return Change(builds.table(seen, Upstream(log.store.read)), Mark(end, points.code), "overwrite")

    return log.store.commit("builds", attempt) is not None


def _seen_by(log: EventLog, scan: pl.LazyFrame, steps: Sequence[Step], known: Mark, end: int) -> pl.DataFrame | None:
    """Return what points tell of each build: as it is stored, with the steps; None where these do not lead from it to *end*."""
    first, last = (steps[0].after, steps[-1].up_to) if steps else (end, end)
    gaps = (sorted((known.up_to, first)), sorted((last, end)))
    if not _unbroken(steps) or any(low < high and log.has(*EVENT_TYPES, after=low, up_to=high) for low, high in gaps):
        return None
    together = builds.stored(scan).collect()
    for step in steps:
        together = builds.joined(together, builds.seen(step.rows.lazy().select(builds.READ)).collect())
    return together


def _folded(log: EventLog, up_to: int) -> pl.LazyFrame:
    """Return the stored points that follow from the log up to a sequence: another process may have added more meanwhile."""
    return log.store.scan("points").filter(pl.col("sequence") <= up_to)


def _quarantine(log: EventLog, scan: pl.LazyFrame, steps: Sequence[Step]) -> Made:
    """Return the new faults, where the steps read no place of an old one after all; all faults that stand where they did."""
    events = pl.concat([step.events for step in steps])
    if not events.filter(pl.col("event_type") == "EvalRecorded").is_empty():  # they are few, and the steps did not read them
        return _all_quarantine(log, (), steps[-1].up_to), False
    new = _standing(log, faults.met(events))
    new = pl.concat([new, *(faults.refused(step.events, step.refused) for step in steps)])
    stored = scan.collect()
    read = events.filter(pl.col("event_type").is_in(RECORDED)).select(sha256="source_sha256", position="source_position")
    whole = events.filter(pl.col("event_type") == "FileRead")["source_sha256"]
    still = faults.standing(stored, read, whole)
    return (new, True) if still.height == stored.height else (pl.concat([still, new]), False)


def _all_quarantine(log: EventLog, steps: Sequence[Step], up_to: int) -> pl.DataFrame:
    met = _standing(log, faults.met(log.read("RecordQuarantined", up_to=up_to)))
    lost = [_all_refused(log, steps, up_to), _refused_evals(log, up_to)]
    return pl.concat([met, *lost]).select(QUARANTINE.schema.names())


def _refused_evals(log: EventLog, up_to: int) -> pl.DataFrame:
    events, known = _evaluations(log, up_to)
    return faults.refused(events, evals.refused(events, known))


def _all_refused(log: EventLog, steps: Sequence[Step], up_to: int) -> pl.DataFrame:
    """Return the faults of results that are recorded and no points: as the fold of all tells, else as they are read now."""
    if len(steps) == 1 and steps[0].whole:
        reasons = steps[0].refused
        if reasons.is_empty():
            return QUARANTINE.schema.to_frame()
        told = log.scan("ResultRecorded", up_to=up_to).filter(pl.col("sequence").is_in(reasons["sequence"].implode()))
        return faults.refused(log.store.collect("events", told), reasons)
    mapped = log.store.scan("points").select("sequence")
    lost = log.scan("ResultRecorded", up_to=up_to).join(mapped, on="sequence", how="anti")
    results = log.store.collect("events", lost).sort("sequence")
    known = runs.fold(log.about(set(results["subject"].to_list()), *runs.EVENT_TYPES, up_to=up_to))
    return faults.refused(results, recorded(results, known.starts()).refused)


def _standing(log: EventLog, met: pl.DataFrame) -> pl.DataFrame:
    """Return the faults but those whose place the log has a result from."""
    if met.is_empty():
        return met
    files = pl.col("source_sha256").is_in(met["sha256"].unique().implode())
    scan = log.scan(*RECORDED, "FileRead").filter(files)
    read = log.store.collect("events", scan.select("event_type", sha256="source_sha256", position="source_position"))
    results = pl.col("event_type").is_in(RECORDED)
    return faults.standing(met, read.filter(results).drop("event_type"), read.filter(~results)["sha256"])
