"""What is no benchmark record and stands beside results: counts of jobs, recipe entries, runs of a day; as facts of the log.

InferenceX keeps `run_stats.json` and `changelog_metadata.json` beside the results of a run, and its public API answers
`reliability`, `workflow-info` and `availability`. To add a kind: one RunFile in FILES.
Belongs here: recognising the JSON value of a whole file, and what becomes of it. Does not: shapes (`inferencex_run`), which run
a file is of (`files`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from changelog.facts import line_of
from pipelines.ingest.json_text import EXCERPT, Fault, LeftOut
from pipelines.ingest.tools import inferencex_run as shapes
from pipelines.ingest.tools.inferencex_run import ApiRun, ChangelogMetadata, HardwareJobs, RecipeEntry
from warehouse.canonical import canonical_json
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError
from warehouse.events import JobsCounted, RecipeChanged, RunKey, RunReported

MAX_NAME = 200
MAX_LINK = 500
MAX_LINE = 2000
"""Longest line of a description that is kept, characters; the longest real one has 1,081."""
MAX_LINES = 200
MAX_KEYS = 1000
_INDEX = frozenset({"model", "isl", "osl", "precision", "hardware", "framework", "spec_method", "disagg", "date"})
_NO_INDEX = frozenset({"metrics", "conc", "task"})


class RunFact(NamedTuple):
    """One fact: its payload, its place in the file, and when it was true."""

    payload: JobsCounted | RecipeChanged | RunReported
    position: str
    occurred_at: datetime


Told = RunFact | Fault | LeftOut


@dataclass(frozen=True)
class RunFile:
    """One kind of file: its name, how the JSON value of the whole file is known, and what it tells.

    `facts` is given that value and the run that the file is of, and raises nothing. `of_run`: the file does not name that run, so
    that it must be known otherwise; else it is given none.
    """

    name: str
    recognises: Callable[[Any], bool]
    facts: Callable[[Any, RunReported | None], Iterator[Told]]
    of_run: bool = False


def recognise(value: Any) -> RunFile | None:
    """Return the kind of file that *value* is all of, or None."""
    return next((kind for kind in FILES if kind.recognises(value)), None)


def _run_stats(value: dict[str, Any], run: RunReported | None) -> Iterator[Told]:
    def read(position: str, entry: tuple[str, Any]) -> Iterator[RunFact]:
        for jobs in shapes.read_run_stats(dict([entry])):
            yield RunFact(_jobs(jobs, run=run.run if run else None), position, _start(run))

    yield from _each(((f"/{_pointer(label)}", (label, entry)) for label, entry in value.items()), read, "counts no job")


def _reliability(rows: list[Any], _run: RunReported | None) -> Iterator[Told]:
    """Yield jobs by day; of rows alike the first, second, … is told apart, because they are of several runs."""
    seen: Counter[HardwareJobs] = Counter()

    def read(position: str, row: Any) -> Iterator[RunFact]:
        for jobs in shapes.read_reliability([row]):
            seen[jobs] += 1
            if jobs.day is not None:
                payload = _jobs(jobs, day=jobs.day.date().isoformat(), occurrence=seen[jobs])
                yield RunFact(payload, position, jobs.day)

    yield from _each(_elements("", rows), read, "counts no job")


def _jobs(jobs: HardwareJobs, **of: Any) -> JobsCounted:
    label, hardware = line_of(jobs.label, MAX_NAME), line_of(jobs.hardware, MAX_NAME)
    return JobsCounted(label=label, hardware=hardware, succeeded=jobs.succeeded, total=jobs.total, **of)


def _changelog_metadata(value: dict[str, Any], run: RunReported | None) -> Iterator[Told]:
    def read(position: str, entry: Any) -> Iterator[RunFact]:
        found = shapes.read_changelog_metadata({**value, "entries": [entry]})
        yield from (RunFact(_recipe(found, each, run.run if run else None), position, _start(run)) for each in found.entries)

    yield from _each(_elements("/entries", value["entries"]), read, "tells of no entry")


def _workflow_info(value: dict[str, Any], _run: RunReported | None) -> Iterator[Told]:
    """Yield runs, then the entries that started them; the API does not show the flags of an entry."""
    runs: dict[str, ApiRun] = {}

    def read_run(position: str, entry: Any) -> Iterator[RunFact]:
        for run in shapes.read_workflow_info({"runs": [entry], "changelogs": []})[0]:
            runs[run.run_id] = run
            yield RunFact(_reported(run), position, run.created_at)

    def read_change(position: str, entry: Any) -> Iterator[RunFact]:
        for change in shapes.read_workflow_info({"runs": [], "changelogs": [entry]})[1]:
            run = runs.get(change.run_id or "")
            if run is None:
                raise InputError(f"workflow_run_id: {change.run_id} is none of the runs of this answer")
            for each in change.entries:
                told = _recipe(change, each, _key(run)).model_copy(update=_UNTOLD)
                yield RunFact(told, position, run.created_at)

    yield from _each(_elements("/runs", value["runs"]), read_run, "")
    yield from _each(_elements("/changelogs", value["changelogs"]), read_change, "")
    if value["runs"] == value["changelogs"] == []:
        yield LeftOut("tells of no run")


_UNTOLD = {"append_only": None, "evals_only": None, "scenario_types": None}


def _key(run: ApiRun) -> RunKey:
    return RunKey(run_source=run.run_source, run_id=run.run_id, run_attempt=run.run_attempt)


def _reported(run: ApiRun) -> RunReported:
    """Return a run as the API tells it; it started when it was made or later."""
    return RunReported(
        run=_key(run),
        name=line_of(run.name, MAX_LINK) if run.name else None,
        conclusion=line_of(run.conclusion, MAX_NAME) if run.conclusion else None,
        created_at=iso(run.created_at),
        started_at=iso(run.created_at) or "",
        url=run.url,
        derived=True,
    )


def _recipe(change: ChangelogMetadata, entry: RecipeEntry, run: RunKey | None) -> RecipeChanged:
    return RecipeChanged(
        run=run,
        base_ref=line_of(change.base_ref, MAX_NAME),
        head_ref=line_of(change.head_ref, MAX_NAME),
        config_keys=_lines(entry.config_keys, MAX_NAME)[:MAX_KEYS],
        description=_lines(entry.description, MAX_LINE)[:MAX_LINES],
        pr_link=line_of(entry.pr_link, MAX_LINK) if entry.pr_link else None,
        append_only=entry.append_only,
        evals_only=entry.evals_only,
        scenario_types=_lines(entry.scenario_types, MAX_NAME)[:MAX_KEYS],
    )


def _lines(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    """Return *texts* line by line, printable and bounded: the API joins what the artifact lists."""
    lines = (line_of(line, limit) for text in texts for line in text.split("\n"))
    return tuple(line for line in lines if line)


def _availability(_rows: list[Any], _run: RunReported | None) -> Iterator[Told]:
    yield LeftOut("an index of what is published; the rows are in /benchmarks")


def _elements(below: str, found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the elements of a list with their places; what is no list as one of them, so that its reader refuses it."""
    if not isinstance(found, list):
        yield below, found
        return
    yield from ((f"{below}/{index}", element) for index, element in enumerate(found))


def _each(
    entries: Iterable[tuple[str, Any]], read: Callable[[str, Any], Iterator[RunFact]], otherwise: str
) -> Iterator[RunFact | Fault | LeftOut]:
    """Yield what *read* makes of entries, and a Fault for each that it refuses; where it makes nothing, that it is left out."""
    some = False
    for position, entry in entries:
        try:
            found: list[RunFact | Fault] = [*read(position, entry)]
        except InputError as error:
            found = [Fault(position, _own(str(error)), _excerpt(entry))]
        some = some or bool(found)
        yield from found
    if not some and otherwise:
        yield LeftOut(otherwise)


def _own(reason: str) -> str:
    """Return a reason without the place of an entry among the single one that was read."""
    head, colon, rest = reason.partition(":")
    for where in ("reliability.0.", "entries.0.", "runs.0.", "changelogs.0."):
        head = head.removeprefix(where)
    return head + colon + rest


def _start(run: RunReported | None) -> datetime:
    return parse_instant(run.started_at if run else "", "started_at")


def _pointer(key: str) -> str:
    return line_of(key, MAX_NAME).replace("~", "~0").replace("/", "~1")


def _excerpt(value: Any) -> str:
    try:
        return canonical_json(value)[:EXCERPT]
    except ValueError:
        return ""


def _rows(is_row: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return what knows a list by its first row."""
    return lambda value: isinstance(value, list) and bool(value) and is_row(value[0])


def _is_availability(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() >= _INDEX and not row.keys() & _NO_INDEX


FILES: tuple[RunFile, ...] = (
    RunFile("inferencex-run-stats", shapes.is_run_stats, _run_stats, of_run=True),
    RunFile("inferencex-changelog-metadata", shapes.is_changelog_metadata, _changelog_metadata, of_run=True),
    RunFile("inferencex-reliability", _rows(shapes.is_reliability), _reliability),
    RunFile("inferencex-workflow-info", shapes.is_workflow_info, _workflow_info),
    RunFile("inferencex-availability", _rows(_is_availability), _availability),
)
"""Every kind of such file, one line each."""
