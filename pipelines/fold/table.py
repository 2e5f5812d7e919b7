"""The table `points`, kept in step with the log.

The cost is that of what is new: new rows are added; all rows of a run are put in place of its old ones where the run was
corrected or retracted, or where a record turns out to have been measured elsewhere. Where code or schema changed, the whole
table is made again, in parts. Belongs here: reading the log, committing. Does not: any rule (the other modules here).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import orjson
import polars as pl

from pipelines.fold import builds, points, reuse, runs
from pipelines.fold.code import FACTS
from pipelines.fold.records import RECORDED, REFUSED, Part, Recorded, read_part, recorded
from pipelines.workers.contract import Workers
from pipelines.workers.serial import Serial
from warehouse.code import version
from warehouse.log import FAR, EventLog
from warehouse.schemas import EVENTS, POINTS
from warehouse.store import Change, Mark, trusted

EVENT_TYPES = ("RunReported", "ResultRecorded", "EvalRecorded", "ResultRetracted", "RecordQuarantined", "FileRead")
ABOUT_RUNS = ("RunReported", "ResultRecorded", "ResultRetracted")
PART = 50_000
"""Sequences of the log that are mapped together when all of it is folded."""
MANY_RUNS = 300
"""Runs to be put in place of themselves beyond which it is quicker to make the table again."""


@dataclass(frozen=True)
class Prepared:
    """Rows that a commit just added to the log, and their records as the ingest has mapped them (`ingest.files.MAPPED`)."""

    added: pl.DataFrame
    mapped: pl.DataFrame


@dataclass(frozen=True)
class Step:
    """What one step did to `points`: its rows, the new events that it followed from, the runs and the refused results of those.

    `whole`: the rows are the table. `replaced`: the runs whose points all give way to the rows, also where none of them is left.
    """

    rows: pl.DataFrame
    events: pl.DataFrame
    known: runs.Runs
    refused: pl.DataFrame
    after: int = 0
    up_to: int = 0
    whole: bool = False
    replaced: tuple[runs.Key, ...] = ()


def _remembered(step: Step) -> Step:
    """Return what the small tables need of a step: few columns of its rows, the payloads of faults alone."""
    rows = step.rows.select(list(dict.fromkeys((*runs.KEY, *builds.READ))))
    payload = pl.when(pl.col("event_type") == "RecordQuarantined").then(pl.col("payload"))
    return replace(step, rows=rows, events=step.events.with_columns(payload))


class Points:
    """Brings `points` up to the log, step by step; remembers its steps for the small tables (`pipelines.fold.small`)."""

    def __init__(self, log: EventLog, workers: Workers | None = None) -> None:
        self.log = log
        self.workers: Workers = workers or Serial()
        self.steps: list[Step] = []

    def advance(self, prepared: Prepared | None = None, *, force: bool = False) -> bool:
        """Bring `points` up to the log; return whether there was anything to do."""
        code = version(FACTS)
        taken: list[Step] = []

        def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
            taken.clear()
            last = self.log.last_sequence()
            known = None if force else trusted(mark, code, last)
            anew, after = known is None, known.up_to if known else 0
            if after == last and not anew:
                return None
            if anew and not _covers(prepared, last):
                step = whole(self.log, last, self.workers)
            else:
                step = self._step(POINTS.schema.to_frame().lazy() if anew else scan, after, last, prepared)
            if step.events.is_empty() and not anew and not step.whole and last - after < FAR:
                return None
            taken.append(replace(step, up_to=last))
            where = _those_of(step.replaced) if step.replaced and not anew else None
            mode: Literal["append", "overwrite"] = "overwrite" if anew or step.whole or step.replaced else "append"
            return Change(points.clustered(step.rows), Mark(last, code), mode, where)

        self.log.store.commit("points", attempt)
        self.steps += [_remembered(step) for step in taken]
        return bool(taken)

    def _step(self, scan: pl.LazyFrame, after: int, last: int, prepared: Prepared | None) -> Step:
        """Fold the events behind *after* up to *last* into the table *scan*."""
        events = self._events(after, last, prepared)
        results = events.filter(pl.col("event_type") == "ResultRecorded")
        about = set(events.filter(pl.col("event_type").is_in(ABOUT_RUNS))["subject"].to_list())
        earlier = {subject for subject, (first, _last) in self.log.standing(about).items() if first <= after}
        known = self._runs(earlier, events, last)
        mapped = self._mapped(results, known, prepared)
        changed = self._changed(earlier, events, known, after)
        refused = mapped.refused
        again: set[str] = set()
        replaced: tuple[runs.Key, ...] = ()
        while True:
            if changed:  # all of these runs, from the log
                again = changed | set(results["subject"].to_list())
                if len(again & (changed | earlier)) > MANY_RUNS:
                    return whole(self.log, last, self.workers)
                known = self._runs(again | earlier, events, last)
                told = self.log.about(again, "ResultRecorded", up_to=last)
                mapped = recorded(told, known.starts())
                replaced = _keys(told)
            rows, flipped = _reused(scan, points.completed(mapped.rows, known), again, earlier - again)
            if not flipped:
                return Step(rows, events, known, refused, after, replaced=replaced)
            changed |= flipped

    def _events(self, after: int, last: int, prepared: Prepared | None) -> pl.DataFrame:
        """Return the events behind *after* in log order: those at hand where they are all."""
        if prepared is not None and not prepared.added.is_empty():
            first, final = prepared.added["sequence"][0], prepared.added["sequence"][-1]
            if first > after and final == last and final - first + 1 == prepared.added.height:
                before = self.log.read(*EVENT_TYPES, after=after, up_to=first - 1)
                return pl.concat([before, prepared.added.filter(pl.col("event_type").is_in(EVENT_TYPES))])
        return self.log.read(*EVENT_TYPES, after=after, up_to=last)

    def _runs(self, subjects: set[str], events: pl.DataFrame, last: int) -> runs.Runs:
        """Return what the log says of *subjects*, and of all runs that *events* are about."""
        said = events.filter(pl.col("event_type").is_in(runs.EVENT_TYPES))
        if subjects:
            before = self.log.about(subjects, *runs.EVENT_TYPES, up_to=last)
            said = pl.concat([before, said]).unique("sequence", keep="first").sort("sequence")
        return runs.fold(said)

    def _mapped(self, results: pl.DataFrame, known: runs.Runs, prepared: Prepared | None) -> Recorded:
        """Return *results* mapped: as the ingest mapped them, where it did and for the run as it stands."""
        if prepared is None or results.is_empty():
            return recorded(results, known.starts())
        names = ("sequence", "event_id", "subject", "occurred_at", "recorded_at", "source_reader")
        joined = (
            results.select(names)
            .join(prepared.mapped.unique("event_id", keep="first"), on="event_id", how="inner", maintain_order="left")
            .join(known.held(), on="subject", how="inner", maintain_order="left")
            .filter(pl.col("mapped_for") == pl.col("run_started_at"))
            .rename({"event_id": "point_id", "source_reader": "record_format"})
            .select(RECORDED.names())
        )
        if joined.height == results.height:
            return Recorded(joined, REFUSED.to_frame())
        others = recorded(results.join(joined.select("sequence"), on="sequence", how="anti"), known.starts())
        return Recorded(pl.concat([joined, others.rows]).sort("sequence"), others.refused)

    def _changed(self, earlier: set[str], events: pl.DataFrame, known: runs.Runs, after: int) -> set[str]:
        """Return the runs with results before *after* of which *events* say something that their points must follow."""
        said = events.filter(pl.col("event_type").is_in(runs.EVENT_TYPES) & pl.col("subject").is_in(sorted(earlier)))
        if said.is_empty():
            return set()
        subjects = set(said["subject"].to_list())
        before = runs.fold(self.log.about(subjects, *runs.EVENT_TYPES, up_to=after))
        held = before.held().rows_by_key("subject", unique=True)
        now = {subject: row for subject, row in known.held().rows_by_key("subject", unique=True).items() if subject in subjects}
        decided = set(said.filter(pl.col("event_type") == "ResultRetracted")["subject"].to_list())
        return decided | {subject for subject, row in now.items() if held.get(subject) != row}


def whole(log: EventLog, last: int, workers: Workers | None = None) -> Step:
    """Fold the log from its beginning to sequence *last*."""
    known = runs.fold(log.read(*runs.EVENT_TYPES, up_to=last))
    starts = known.starts()
    parts = [Part(log.store, after, min(after + PART, last), starts) for after in range(0, last, PART)]
    mapped = list((workers or Serial()).map(read_part, parts))
    rows = pl.concat([RECORDED.to_frame(), *(part.rows for part in mapped)])
    refused = pl.concat([REFUSED.to_frame(), *(part.refused for part in mapped)])
    return Step(reuse.marked(points.completed(rows, known)), EVENTS.schema.to_frame(), known, refused, whole=True)


def _covers(prepared: Prepared | None, last: int) -> bool:
    """Say whether what is at hand is the whole log."""
    return prepared is not None and prepared.added.height == last and last > 0


def _reused(scan: pl.LazyFrame, rows: pl.DataFrame, but: set[str], earlier: set[str]) -> tuple[pl.DataFrame, set[str]]:
    """Return *rows* with `reused`, and the runs of the table, those in *but* aside, whose points are told otherwise by them.

    *earlier* are the runs of *rows* that have other points in the table.
    """
    columns = (*reuse.CLAIM, "reused")
    claims = scan.select(columns).filter(_claimed(rows, earlier)).collect().with_columns(subject=SUBJECT)
    claims = claims.filter(~pl.col("subject").is_in(sorted(but)))
    if claims.is_empty():
        return reuse.marked(rows), set()
    together = reuse.marked(pl.concat([rows.select(columns), claims.select(columns)]))
    own, others = together.head(rows.height), together.tail(claims.height)
    differ = (others["reused"] != claims["reused"]) | (others["measured_at"] != claims["measured_at"])
    return rows.with_columns(own["reused"], own["measured_at"]), set(claims.filter(differ)["subject"].to_list())


def _claimed(rows: pl.DataFrame, earlier: set[str]) -> pl.Expr:
    """Say of points of the table whether they may be the same measurement as one of *rows*, or the same record of its run."""
    same = pl.col("measurement_key").is_in(rows["measurement_key"].unique().implode())
    again = rows.with_columns(subject=SUBJECT).filter(pl.col("subject").is_in(sorted(earlier)))
    if again.is_empty():
        return same
    ids, hashes = (again[name].unique().implode() for name in ("run_id", "record_hash"))
    return same | (pl.col("run_id").is_in(ids) & pl.col("record_hash").is_in(hashes))


_NUMBER = pl.col("run_id").str.replace_all("%", "%25", literal=True).str.replace_all("/", "%2F", literal=True)
SUBJECT = pl.format("run:{}/{}/{}", "run_source", _NUMBER, "run_attempt")
"""What an event about the run of a row is about, as `RunKey` spells it."""


def _keys(results: pl.DataFrame) -> tuple[runs.Key, ...]:
    """Return the runs of *results*, rows of the log."""
    told = [orjson.loads(text)["run"] for text in results.unique("subject", maintain_order=True)["payload"].to_list()]
    return tuple(sorted((run["run_source"], run["run_id"], run.get("run_attempt", 1)) for run in told))


def _those_of(keys: tuple[runs.Key, ...]) -> str:
    """Return the condition, in SQL, that selects the points of some runs: flat however many they are."""
    numbers: dict[tuple[str, int], list[str]] = {}
    for source, number, attempt in keys:
        numbers.setdefault((source, attempt), []).append(_quoted(number))
    return " OR ".join(
        f"(run_source = {_quoted(source)} AND run_attempt = {int(attempt)} AND run_id IN ({', '.join(found)}))"
        for (source, attempt), found in numbers.items()
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
