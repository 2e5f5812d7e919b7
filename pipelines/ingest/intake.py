"""The course of an ingest: inputs are found, what was read before is passed over, chunks are read, their events are appended.

Many files are read by several processes (`pipelines.workers`), few by this one; either way the log gets the events in the order
of the inputs. Belongs here: the course. Does not: what a file means (`pipelines.ingest.files`), finding files, storage.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, groupby
from pathlib import Path, PurePosixPath
from typing import TypeGuard

import polars as pl

from changelog.benchmarks import benchmark
from changelog.facts import UpstreamFact, UpstreamFault
from changelog.projects import project_of_file
from pipelines.announcing import Announce
from pipelines.ingest import formats
from pipelines.ingest.collecting import no_collection
from pipelines.ingest.corrections import restated
from pipelines.ingest.files import (
    READING,
    Chunk,
    Outcome,
    Piece,
    fact_event,
    quarantine_event,
    read_chunk,
    text_hash,
)
from pipelines.ingest.inputs import RUN_FILE, SIDE_FILES, Found, Ignored, InputFile, Repository, Unreadable, find_inputs
from pipelines.ingest.results import MAPPED
from pipelines.ingest.sides import REUSE_SOURCE, Content, Declared, Side, Sides, context_of
from pipelines.workers.registry import open_workers
from warehouse.canonical import bytes_hash
from warehouse.errors import InputError, UpstreamError
from warehouse.events import Event, RecordQuarantined, RepositoryRead, file_subject
from warehouse.log import ROWS, EventLog, frame_of, typed

CHUNK_BYTES = 16 * 1024**2
"""Bytes of the local files that are read together."""
MANY_BYTES = 4 * CHUNK_BYTES
"""Bytes from which several processes read: starting them costs about as much as reading so much."""
BATCH = 100_000
"""Rows per commit of the log."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 a folder of our own is made in it
ROOM = 2 * 1024**3
"""Bytes that must be free there: a few chunks are on their way at a time."""
REPOSITORY_BATCH = 50_000
"""Upstream facts of a repository that are held at once."""

Fold = Callable[[pl.DataFrame, pl.DataFrame], None]
"""What is done with the rows that a commit added to the log and with the mapped records of its batch."""


@dataclass
class Intake:
    """What an ingest met, by kind; `new` counts events that the log did not have."""

    files: int = 0
    known: int = 0
    """Files that were read before and passed over."""
    empty: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Repositories that could not be read; no fact is lost, the same command may succeed later."""
    stale: list[str] = field(default_factory=list)
    """Mirrors of repositories that were read as they are, and why they could not be brought up to date."""
    read: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    ignored: list[str] = field(default_factory=list)
    quarantined: list[RecordQuarantined] = field(default_factory=list)
    unknown_names: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Take over what a chunk says of itself."""
        self.read.update(outcome.read)
        self.quarantined += outcome.quarantined
        self.unknown_names.update(outcome.unknown_names)
        self.empty += outcome.empty
        self.ignored += outcome.ignored


def ingest(
    log: EventLog,
    paths: tuple[str, ...],
    declared: Declared,
    *,
    recorded_at: datetime,
    mirrors: Path,
    announce: Announce,
    fold: Fold | None = None,
    workers: str = "processes",
) -> Intake:
    """Read everything at *paths* into the log and return what happened.

    *announce* is told each input's name; *fold* is called after every commit, with what the tables need.
    """
    intake = Intake()
    course = _Course(intake, declared, recorded_at, mirrors, announce, workers, mapped=fold is not None)
    found = list(find_inputs(paths, course.is_upstream))
    appender = _Appender(log, intake, fold, declared.revision)
    for outcome in course.outcomes(log, found):
        intake.add(outcome)
        appender.add(outcome)
    appender.flush()
    return intake


class _Appender:
    """Gathers the rows of chunks into commits."""

    def __init__(self, log: EventLog, intake: Intake, fold: Fold | None, revision: int) -> None:
        self.log, self.intake, self.fold, self.revision = log, intake, fold, revision
        self.rows: list[pl.DataFrame] = []
        self.mapped: list[pl.DataFrame] = []
        self.height = 0

    def add(self, outcome: Outcome) -> None:
        self.rows.append(outcome.rows)
        self.mapped.append(outcome.mapped)
        self.height += outcome.rows.height
        if self.height >= BATCH:
            self.flush()

    def flush(self) -> None:
        if not self.height:
            return
        rows, mapped = pl.concat(self.rows), pl.concat(self.mapped)
        if self.revision:
            rows, mapped = restated(self.log, rows, mapped, self.revision)
        added = self.log.append_frame(rows)
        self.intake.new.update(dict(added["event_type"].value_counts().iter_rows()))
        if self.fold is not None and not added.is_empty():
            self.fold(added, mapped)
        self.rows, self.mapped, self.height = [], [], 0


@dataclass
class _Course:
    """Turns found inputs into outcomes, in their order."""

    intake: Intake
    declared: Declared
    recorded_at: datetime
    mirrors: Path
    announce: Announce
    workers: str
    mapped: bool

    def is_upstream(self, name: str) -> bool:
        """Say whether a repository of this name is an upstream project or a benchmark: by name, or as the user declares."""
        declared = self.declared.settings.get("engine")
        try:
            return benchmark(declared or name) is not None or bool(project_of_file(name, declared))
        except InputError:
            return False

    def outcomes(self, log: EventLog, found: list[Found]) -> Iterator[Outcome]:
        """Yield what the inputs hold; local files that were read before are passed over."""
        around = _Around(found)
        read = [entry for entry in found if not (isinstance(entry, InputFile) and entry.path.name in SIDE_FILES)]
        known = self._known(log, [entry for entry in read if _is_local(entry)], around)
        self.intake.known = len(known)
        remaining = [entry for entry in read if not (_is_local(entry) and entry.path in known)]
        with self._opened(remaining) as reading:
            for is_local, group in groupby(remaining, key=_is_local):
                if is_local:
                    yield from self._local([entry for entry in group if _is_local(entry)], around, reading)
                else:
                    for entry in group:
                        yield from self._other(entry, around, log)

    def _known(self, log: EventLog, local: list[InputFile], around: _Around) -> set[PurePosixPath]:
        """Return the paths of the local files that the log says were read whole, in the same context."""
        files = [entry for entry in local if entry.path.name != RUN_FILE]
        if not log.last_sequence() or self.declared.revision:
            return set()
        with ThreadPoolExecutor(2) as threads:  # hashing and reading leave the interpreter to others
            hashes = list(threads.map(_hash_of, files))
            dating = {date.path: date for date in (around.date(entry) for entry in files) if date}
            dated = {path: _hash_of(date) for path, date in dating.items()}
        contexts = _Contexts(self.declared)
        subjects: dict[str, list[PurePosixPath]] = {}
        for entry, sha256 in zip(files, hashes, strict=True):
            date = around.date(entry)
            run = dated[date.path] if date else None
            if sha256 is None or (date and run is None):
                continue
            try:
                context = contexts.of(run, around.sides(entry), entry.path)
            except InputError:  # told when the file is read
                continue
            subjects.setdefault(file_subject(sha256, context, READING), []).append(entry.path)
        return {path for subject in log.standing(subjects) for path in subjects[subject]}

    def _local(self, entries: list[InputFile], around: _Around, read: Read) -> Iterator[Outcome]:
        chunks = [self._chunk(group, around) for group in _chunked(entries)]
        for chunk, outcome in zip(chunks, read(chunks), strict=True):
            for piece in chunk.pieces:
                self.announce(piece.name)
            self.intake.files += len(chunk.pieces)
            yield outcome

    def _chunk(self, entries: Sequence[InputFile], around: _Around) -> Chunk:
        return Chunk(tuple(map(around.piece, entries)), self.declared, self.recorded_at, self.mapped)

    def _other(self, entry: Found, around: _Around, log: EventLog) -> Iterator[Outcome]:
        if isinstance(entry, Ignored):
            self.intake.ignored.append(entry.name)
        elif isinstance(entry, Unreadable):
            fault = RecordQuarantined(name=entry.name, sha256=text_hash(entry.name), position="", reason=entry.reason)
            outcome = _outcome([quarantine_event(fault, self.recorded_at)])
            outcome.quarantined.append(fault)
            yield outcome
        elif isinstance(entry, Repository):
            self.announce(entry.name)
            with no_collection():
                yield from self._repository(entry, log)
        else:
            self.announce(entry.name)
            self.intake.files += 1
            yield read_chunk(self._chunk([entry], around))

    def _repository(self, entry: Repository, log: EventLog) -> Iterator[Outcome]:
        events: list[Event] = []
        read: Counter[str] = Counter()
        try:
            for fact in self._upstream_facts(entry, log):
                event = fact_event(entry.name, None, "git", fact, self.recorded_at)
                if isinstance(event, RecordQuarantined):
                    self.intake.quarantined.append(event)
                    event = quarantine_event(event, self.recorded_at)
                else:
                    read[event.event_type] += 1
                events.append(event)
                if len(events) >= REPOSITORY_BATCH:
                    yield _outcome(events)
                    events = []
        except (InputError, UpstreamError) as error:
            self.intake.failed.append(str(error))
        self.intake.read.update(read)
        if events:
            yield _outcome(events)

    def _upstream_facts(self, entry: Repository, log: EventLog) -> Iterator[UpstreamFact | UpstreamFault]:
        """Yield what a repository tells: a benchmark's its recipe log, an upstream project's its commits and tags.

        Commits that the log says were read are not read again.
        """
        from changelog.git import read_repository  # GitPython is slow to load, and most ingests need none
        from changelog.recipe_history import read_recipes

        declared = self.declared.settings.get("engine")
        if (known := benchmark(declared or entry.name)) is not None:
            yield from read_recipes(entry.location, known, self.mirrors)
            return
        project = project_of_file(entry.name, declared)
        before = typed(log.about([f"repository:{project}"], "RepositoryRead"))
        readings = [reading for _row, reading in before if isinstance(reading, RepositoryRead)]
        yield from read_repository(
            entry.location,
            project,
            self.mirrors,
            readings,
            told=lambda line: self.announce(f"{entry.name}: {line}"),
            warned=self.intake.stale.append,
        )

    def _opened(self, remaining: list[Found]) -> _Reading:
        size = sum(_size(entry) for entry in remaining if isinstance(entry, InputFile))
        return _Reading(self.workers if size >= MANY_BYTES else "serial")


Read = Callable[[Sequence[Chunk]], Iterator[Outcome]]


class _Reading:
    """Reads chunks in this process, or in others that hand their rows over in files (a pipe would copy them three times)."""

    def __init__(self, spec: str) -> None:
        self.spec = spec

    def __enter__(self) -> Read:
        if self.spec == "serial":
            return lambda chunks: map(read_chunk, chunks)
        self.folder = tempfile.TemporaryDirectory(prefix="shiftlog-", dir=_memory())
        self.numbers = count()
        self.workers = open_workers(self.spec)
        return self._read

    def __exit__(self, *_error: object) -> None:
        if self.spec != "serial":
            self.workers.close()
            self.folder.cleanup()

    def _read(self, chunks: Sequence[Chunk]) -> Iterator[Outcome]:
        tasks = [_Task(chunk, f"{self.folder.name}/{next(self.numbers)}") for chunk in chunks]
        for handed in self.workers.map(_hand_over, tasks):
            yield handed.taken()


@dataclass(frozen=True)
class _Task:
    chunk: Chunk
    place: str


@dataclass
class _Handed:
    """An outcome whose frames lie in two files."""

    outcome: Outcome
    place: str

    def taken(self) -> Outcome:
        """Return the outcome with its frames, and unlink the files: what is mapped stays mapped."""
        frames = []
        for part in ("rows", "mapped"):
            path = Path(f"{self.place}.{part}")
            frames.append(pl.read_ipc(path))
            path.unlink()
        return replace(self.outcome, rows=frames[0], mapped=frames[1])


def _memory() -> str | None:
    """Return a file system in memory with room enough, where there is one: handing over then never waits for a disk."""
    try:
        return SHARED_MEMORY if shutil.disk_usage(SHARED_MEMORY).free > ROOM and os.access(SHARED_MEMORY, os.W_OK) else None
    except OSError:
        return None


def _hand_over(task: _Task) -> _Handed:
    """Read a chunk and leave its frames in files (runs in a process of its own)."""
    outcome = read_chunk(task.chunk)
    outcome.rows.write_ipc(f"{task.place}.rows", compression="uncompressed")
    outcome.mapped.write_ipc(f"{task.place}.mapped", compression="uncompressed")
    return _Handed(replace(outcome, rows=ROWS.to_frame(), mapped=MAPPED.to_frame()), task.place)


def _outcome(events: list[Event]) -> Outcome:
    return Outcome(frame_of(events), MAPPED.to_frame())


def _is_local(entry: Found) -> TypeGuard[InputFile]:
    """Say whether an input is a file that needs no unpacking."""
    return isinstance(entry, InputFile) and entry.local is not None


def _content(entry: InputFile) -> Content:
    """Return where a file's bytes are, read now where they are inside an archive."""
    if entry.local is not None:
        return Content(local=entry.local)
    try:
        return Content(data=entry.read())
    except InputError as error:
        return Content(trouble=str(error))


class _Around:
    """What lies beside and above files and tells more of them."""

    def __init__(self, found: list[Found]) -> None:
        files = [entry for entry in found if isinstance(entry, InputFile)]
        self._dates = {entry.path.parent: entry for entry in files if entry.path.name == RUN_FILE}
        self._sides: dict[PurePosixPath, list[Side]] = {}
        for entry in files:
            if entry.path.name in SIDE_FILES:
                folder = self._holds_in(entry.path)
                self._sides.setdefault(folder, []).append(Side(entry.path.name, _content(entry), folder))

    def _holds_in(self, side: PurePosixPath) -> PurePosixPath:
        """Return the folder that a side file tells more of: its own, or where it tells of a run the folder of that run."""
        above = (folder for folder in side.parents if folder in self._dates)
        return next(above, side.parent) if side.name == REUSE_SOURCE else side.parent

    def date(self, entry: InputFile) -> InputFile | None:
        """Return the `run.json` nearest above a file; none dates itself."""
        if entry.path.name == RUN_FILE:
            return None
        return next((self._dates[folder] for folder in entry.path.parents if folder in self._dates), None)

    def sides(self, entry: InputFile) -> tuple[Side, ...]:
        """Return the side files of a file, the farthest first."""
        if not self._sides:
            return ()
        return tuple(side for folder in reversed(entry.path.parents) for side in self._sides.get(folder, ()))

    def piece(self, entry: InputFile) -> Piece:
        """Return a file with what tells more of it."""
        date = self.date(entry)
        return Piece(entry.name, entry.path, entry.named, _content(entry), _content(date) if date else None, self.sides(entry))


class _Contexts:
    """Contexts of files; those that lie alike share one, so each is made once."""

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self._sides = Sides()
        self._known: dict[tuple[object, ...], str] = {}

    def of(self, run: str | None, sides: tuple[Side, ...], path: PurePosixPath) -> str:
        """Return the context of the file at *path*, dated by a `run.json` of that hash; raises InputError of a side file."""
        named = formats.hints(path)
        declared = self.declared.below(self._sides.settings(sides, path)) if sides else self.declared
        key = (run, sides, tuple(declared.settings.items()), repr(named))
        if key not in self._known:
            self._known[key] = context_of(run, declared, self._sides.hashes(sides), named)
        return self._known[key]


def _hash_of(entry: InputFile) -> str | None:
    try:
        return bytes_hash(entry.read())
    except InputError:
        return None


def _size(entry: InputFile) -> int:
    try:
        return entry.local.stat().st_size if entry.local else 0
    except OSError:
        return 0


def _chunked(entries: list[InputFile]) -> Iterator[list[InputFile]]:
    """Yield runs of files of about CHUNK_BYTES together."""
    chunk: list[InputFile] = []
    total = 0
    for entry in entries:
        chunk.append(entry)
        total += _size(entry)
        if total >= CHUNK_BYTES:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


__all__ = ["Declared", "Intake", "ingest"]
