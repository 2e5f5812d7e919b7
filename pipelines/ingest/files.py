"""Files to rows of the log: what one chunk of files holds, event by event, in the order of the files.

A chunk is read by itself, in this process or another: its records are mapped together (`pipelines.ingest.mapping`), which both
finds those that cannot be read and gives the columns of `points` for the others.
Belongs here: which run a record belongs to, and what is said of what was not read. Does not: finding files, storing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from changelog import files as upstream_files
from changelog.facts import UpstreamFact, UpstreamFault
from pipelines.ingest import formats, run_facts, runs, values
from pipelines.ingest.assembling import ASKED
from pipelines.ingest.collecting import no_collection
from pipelines.ingest.excerpts import masked
from pipelines.ingest.inputs import RUN_FILE, TEXT_SUFFIXES
from pipelines.ingest.json_text import EXCERPT, Fault, Item, LeftOut
from pipelines.ingest.reading import EvalReading, Given, Origin, RecordFormat
from pipelines.ingest.results import MAPPED, Block, Results
from pipelines.ingest.run_facts import RunFact, RunFile
from pipelines.ingest.sides import (
    Content,
    Declared,
    Side,
    Sides,
    context_of,
    derived_run,
    is_of,
    measuring_run,
    not_dated,
    settings_of,
)
from pipelines.ingest.values import Kind, Kinds, Values
from warehouse.canonical import bytes_hash, canonical_json
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.events import EvalRecorded, Event, FileRead, RecordQuarantined, RunReported, Source, event_of
from warehouse.log import ROWS, frame_of

READING = 2
"""Raised where a reader takes more from a file than it did, so that files that were read before are read again."""
MAX_FAULTS = 1000
"""Faults of one file that are told one by one."""


@dataclass(frozen=True)
class Piece:
    """One file of a chunk: how it is called, where it lies, whether the user named it, its bytes, and what tells more of it."""

    name: str
    path: PurePosixPath
    named: bool
    content: Content
    dated_by: Content | None = None
    sides: tuple[Side, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Files to read together; with `mapped` the result holds columns of `points` as well."""

    pieces: tuple[Piece, ...]
    declared: Declared
    recorded_at: datetime
    mapped: bool = True


@dataclass
class Outcome:
    """What a chunk held: rows of the log, the same records mapped (`event_id` and SCHEMA), and what is to be said of it."""

    rows: pl.DataFrame
    mapped: pl.DataFrame
    read: Counter[str] = field(default_factory=Counter)
    quarantined: list[RecordQuarantined] = field(default_factory=list)
    unknown_names: Counter[tuple[str, str]] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


@dataclass
class _File:
    """A file that holds something known: the records that were taken (index of the first and number), and its faults so far."""

    piece: Piece
    sha256: str
    declared: Declared
    owner: RunReported | None
    """The run in whose folder it lies, else the declared one."""
    context: str
    named: dict[str, dict[str, str]]
    """What names of files tell, by format."""
    first: int
    dated: RunReported | None = None
    """The run that its results are of: the owner, but where they were handed on and the run that measured them is declared."""
    handed_on: str = ""
    """Why a result without a time of its own cannot be dated although there is an owner; empty: it can."""
    records: int = 0
    others: int = 0
    """Events of what is no result."""
    faults: list[tuple[int, Item | Fault, str]] = field(default_factory=list)
    told_runs: dict[str, RunReported] = field(default_factory=dict)
    """Runs without a record of their own that results of the file are of, by subject."""
    givens: dict[tuple[str, str], Given] = field(default_factory=dict)
    by_origin: dict[Origin, RunReported] = field(default_factory=dict)
    """Reports of runs that results of the file state by themselves."""

    def given(self, run: RunReported, record_format: RecordFormat) -> Given:
        """Return what else is known of records of a format and a run; records alike share it."""
        key = (run.subject, record_format.name)
        if key not in self.givens:
            started = parse_instant(run.started_at, "started_at")
            self.givens[key] = Given(started, self.declared.of_records, self.named.get(record_format.name, {}))
        return self.givens[key]

    def undated(self, record_format: RecordFormat) -> Given:
        """Return what else is known of records of a format whose run is still to be told."""
        key = ("", record_format.name)
        if key not in self.givens:
            self.givens[key] = Given(declared=self.declared.of_records, named=self.named.get(record_format.name, {}))
        return self.givens[key]


def read_chunk(chunk: Chunk) -> Outcome:
    """Return what the files of *chunk* hold; nothing that a file holds raises."""
    with no_collection():
        return _Chunk(chunk).outcome()


class _Chunk:
    """One reading of one chunk: results are gathered first, mapped together, then put in their places among the other events."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.sides = Sides()
        self.out = Outcome(ROWS.to_frame(), MAPPED.to_frame())
        self.events: list[tuple[int, Event]] = []
        self.told: list[tuple[int, RecordQuarantined]] = []
        self.results = Results()
        self.kinds = Kinds()
        self.dated: dict[Content | None, tuple[RunReported | None, str | None]] = {}
        self.taken = 0
        self.starts: list[int] = []
        self.files: list[tuple[int, int, _File]] = []
        self.place = 0

    def outcome(self) -> Outcome:
        for piece in self.chunk.pieces:
            self._piece(piece)
        self._settle()
        return self.out

    def _next(self) -> int:
        self.place += 1
        return self.place

    def _piece(self, piece: Piece) -> None:
        data = b""
        try:
            data = piece.content.read()
            declared = self.chunk.declared.below(self.sides.settings(piece.sides, piece.path))
        except InputError as error:
            self._quarantine(piece.name, bytes_hash(data) if data else text_hash(piece.name), Fault("", str(error)))
            return
        found = values.parsed(data)
        first = self.kinds.of(found.values[0] if found and found.values else None)
        if found is not None and not first.is_record and (beside := run_facts.recognise(found.whole)) is not None:
            self._beside(piece, data, found.whole, beside, declared)
        elif found is not None and first.known:
            self._records(piece, data, values.together(found) or found, declared)
        elif (reader := upstream_files.recognise(data)) is not None:
            self._upstream(piece, data, reader, declared)
        elif found is not None:
            self._records(piece, data, values.unpacked(found, self.kinds), declared)
        elif (read := values.texts(data)) is None and piece.path.suffix.lower() in TEXT_SUFFIXES:
            self._unknown(piece, bytes_hash(data), 1)
        else:
            self._records(piece, data, read or values.unpacked(values.salvaged(data), self.kinds), declared)

    def _beside(self, piece: Piece, data: bytes, whole: Any, kind: RunFile, declared: Declared) -> None:
        """Take the facts of a file that stands beside results."""
        file, start = self._file(piece, bytes_hash(data), declared), self._next()
        run = file.owner if kind.of_run else None
        if kind.of_run and run is None:
            self._quarantine(piece.name, file.sha256, Fault("", _no_run(piece)))
            return
        if run is not None and run.declared:
            file.told_runs[run.subject] = run
        for told in kind.facts(whole, run):
            if isinstance(told, LeftOut):
                self.out.ignored.append(f"{piece.name} ({told.reason})")
            elif isinstance(told, Fault):
                file.faults.append((self._next(), told, told.reason))
            else:
                self._run_fact(file, told, kind.name)
        self.files.append((start, self._next(), file))

    def _run_fact(self, file: _File, told: RunFact, reader: str) -> None:
        payload = told.payload
        if isinstance(payload, RunReported):
            payload = payload.model_copy(update={"revision": self.chunk.declared.revision})
        self.events.append((self._next(), self._event(payload, told.occurred_at, file, told.position, reader)))
        self.out.read[type(payload).__name__] += 1
        file.others += 1

    def _upstream(self, piece: Piece, data: bytes, reader: upstream_files.Reader, declared: Declared) -> None:
        file = self._file(piece, bytes_hash(data), declared)
        run = declared.run()
        at = parse_instant(run.started_at, "started_at") if run else None
        facts = faults = 0
        try:
            for fact in reader.read(piece.path.name, data, declared.settings.get("engine"), declared_at=at):
                facts += 1
                faults += isinstance(fact, UpstreamFault)
                self._fact(piece.name, file.sha256, reader.name, fact)
        except InputError as error:
            self._quarantine(piece.name, file.sha256, Fault("", str(error)))
        else:
            if facts and not faults:
                self._read_whole(self._next(), file, facts)

    def _fact(self, name: str, sha256: str, reader: str, fact: UpstreamFact | UpstreamFault) -> None:
        event = fact_event(name, sha256, reader, fact, self.chunk.recorded_at)
        if isinstance(event, RecordQuarantined):
            self._say(event, self._next())
        else:
            self.out.read[event.event_type] += 1
            self.events.append((self._next(), event))

    def _read_whole(self, place: int, file: _File, records: int) -> None:
        read = FileRead(sha256=file.sha256, context=file.context, reading=READING, records=records)
        self.events.append((place, self._event(read, self.chunk.recorded_at, file, "", "records")))

    def _records(self, piece: Piece, data: bytes, found: Values, declared: Declared) -> None:
        sha256, kinds = bytes_hash(data), self.kinds
        if not found.values:
            self.out.empty.append(piece.name)
        if not any(kinds.of(value).known for value in found.values):
            self._nothing_known(piece, sha256, found)
            return
        file = self._file(piece, sha256, declared)
        start, before = self._next(), len(self.results.blocks)
        block: Block | None = None
        for value, position in zip(found.values, found.positions, strict=True):
            kind = kinds.of(value)
            own = kind.record_format
            if own is None or kind.run or own.kind != "result":
                block = None
                self._other(file, Item(position, value), kind)
                continue
            if file.dated is None or file.handed_on or block is None or block.record_format is not own:
                block = self._block(file, Item(position, value), own, found.plain, block)
                if block is None:
                    continue
            try:
                block.records.append(value if own.clean is None else formats.cleaned(own, value))
            except InputError as error:
                file.faults.append((self._next(), Item(position, value), str(error)))
                continue
            block.positions.append(position)
            self.place += 1
        file.records = sum(len(block.records) for block in self.results.blocks[before:])
        self.taken += file.records
        self.files.append((start, self._next(), file))

    def _file(self, piece: Piece, sha256: str, declared: Declared) -> _File:
        dated, run_hash = self._dated_by(piece.dated_by)
        named = formats.hints(piece.path)
        context = context_of(run_hash, declared, self.sides.hashes(piece.sides), named)
        owner = dated or declared.run()
        file = _File(piece, sha256, declared, owner, context, named, self.taken, owner)
        self._hand_on(file, dated)
        return file

    def _hand_on(self, file: _File, dated: RunReported | None) -> None:
        """See to it that results which another run measured do not get the time of the run in whose folder they lie."""
        try:
            source = self.sides.reuse(file.piece.sides)
        except InputError as error:
            file.handed_on = str(error)
            return
        if source is None or is_of(source, dated):
            return
        measured = measuring_run(source, file.declared)
        if measured is None:
            file.handed_on = not_dated(source)
        else:
            file.dated = measured

    def _block(self, file: _File, item: Item, own: RecordFormat, plain: bool, last: Block | None) -> Block | None:
        """Return the block that the record belongs to, *last* where it is that; None where no run can be told."""
        try:
            run = self._run_of(file, item, own)
        except InputError as error:
            file.faults.append((self._next(), item, str(error)))
            return None
        if last is not None and last.record_format is own and last.run is run:
            return last
        block = Block(file.piece.name, file.sha256, run, file.given(run, own), own, plain, self.place + 1)
        self.results.blocks.append(block)
        return block

    def _run_of(self, file: _File, item: Item, own: RecordFormat) -> RunReported:
        """Return the run of a record: that of its `run.json`, else the declared one, else what it states by itself."""
        run = file.dated
        if run is None:
            origin = self._origin(file, item, own)
            if (run := file.by_origin.get(origin)) is None:
                run = file.by_origin[origin] = derived_run(origin, file.declared.settings, self.chunk.declared.revision)
        elif file.handed_on and not _has_clock(own, item.value, file.given(run, own)):
            raise InputError(file.handed_on)
        if run.declared or run.derived:
            run = file.told_runs.setdefault(run.subject, run)
        return run

    @staticmethod
    def _origin(file: _File, item: Item, own: RecordFormat) -> Origin:
        """Return the run that a record states by itself; raises InputError telling all it lacks: nobody is asked twice."""
        given = file.undated(own)
        try:
            if (origin := formats.origin(own, item.value, given)) is not None:
                return origin
            undated = file.handed_on or _no_run(file.piece)
        except InputError as error:
            undated = str(error)
        try:
            formats.read(own, formats.cleaned(own, item.value), given)
        except InputError as error:
            undated += f"; {error}" if ASKED in str(error) else ""
        raise InputError(undated)

    def _other(self, file: _File, item: Item, kind: Kind) -> None:
        """Take what is no result: a run object, an evaluation, or a fault."""
        try:
            if isinstance(item.value, LeftOut):
                self.out.ignored.append(f"{file.piece.name} {item.position} ({item.value.reason})")
            elif isinstance(item.value, Fault):
                file.faults.append((self._next(), item.value, item.value.reason))
            elif kind.run:
                self._run(file, item)
            elif kind.record_format is None:
                raise InputError(kind.near_miss or "not a known record; `shiftlog formats` lists those that are")
            else:
                self._eval(file, item, kind.record_format)
        except InputError as error:
            file.faults.append((self._next(), item, str(error)))

    def _eval(self, file: _File, item: Item, own: RecordFormat) -> None:
        run = self._run_of(file, item, own)
        given = file.given(run, own)
        record = formats.cleaned(own, item.value)
        readings: list[EvalReading] = formats.read(own, record, given)
        fields = tuple(sorted({name for reading in readings for name in reading.declared}))
        payload = EvalRecorded(run=run.run, record_format=own.name, record=record, **settings_of(own, given, fields))
        measured = next((reading.measured_at for reading in readings if reading.measured_at), given.started_at)
        self.events.append((self._next(), self._event(payload, measured, file, item.position, own.name)))
        self.out.read["EvalRecorded"] += 1
        file.others += 1

    def _nothing_known(self, piece: Piece, sha256: str, found: Values) -> None:
        """Say of a file without any known value why nothing is taken: it is damaged, left out on purpose, or unknown."""
        left_out = next((value for value in found.values if isinstance(value, LeftOut)), None)
        faults = [value for value in found.values if isinstance(value, Fault)][:MAX_FAULTS]
        for fault in faults:
            self._quarantine(piece.name, sha256, Fault(fault.position, fault.reason, masked(fault.excerpt[:EXCERPT])))
        if left_out is not None:
            self.out.ignored.append(f"{piece.name} ({left_out.reason})")
        elif not faults:
            self._unknown(piece, sha256, len(found.values))

    def _unknown(self, piece: Piece, sha256: str, records: int) -> None:
        if not records:
            return
        if piece.named or piece.path.name == RUN_FILE:
            reason = "not a known format; `shiftlog formats` lists those that are"
            self._quarantine(piece.name, sha256, Fault("", reason))
        else:
            self.out.ignored.append(f"{piece.name} (not a known format)")

    def _run(self, file: _File, item: Item) -> None:
        run = runs.read_run(item.value).model_copy(update={"revision": self.chunk.declared.revision})
        event = self._event(run, parse_instant(run.started_at, "run_started_at"), file, item.position, "github-run")
        self.out.read["RunReported"] += 1
        self.events.append((self._next(), event))

    def _dated_by(self, dated_by: Content | None) -> tuple[RunReported | None, str | None]:
        """Return the run that a `run.json` tells of, and the hash of that file."""
        if dated_by not in self.dated:
            self.dated = {dated_by: _run_in(dated_by)}  # files of one run follow each other
        return self.dated[dated_by]

    def _settle(self) -> None:
        """Settle the results together, tell those that cannot be kept, and put every event in its place."""
        rows, self.out.mapped, said = self.results.settle(self.chunk.recorded_at, self.chunk.mapped)
        self.starts = [0, *accumulate(len(block.records) for block in self.results.blocks)]
        for mapped in said:
            self.out.unknown_names.update(mapped.unknown_names)
        for start, end, file in self.files:
            refused = [i for i in range(file.first, file.first + file.records) if i in self.results.refused]
            self._tell(end, file, refused)
            self._file_read(start, end, file, len(refused))
        self.events.sort(key=lambda entry: entry[0])
        self.out.quarantined = [payload for _place, payload in sorted(self.told, key=lambda entry: entry[0])]
        others = frame_of([event for _place, event in self.events]).with_columns(
            place=pl.Series([place for place, _event in self.events], dtype=pl.Int64)
        )
        self.out.rows = pl.concat([rows, others]).sort("place", maintain_order=True).select(ROWS.names())
        self.out.read["ResultRecorded"] += rows.height

    def _tell(self, end: int, file: _File, refused: list[int]) -> None:
        """Tell the first faults of a file one by one, and how many more there are."""
        faults = file.faults + [self._lost(index) for index in refused]
        for place, item, reason in sorted(faults, key=lambda entry: entry[0])[:MAX_FAULTS]:
            fault = Fault(item.position, reason, self._excerpt(item))
            self._quarantine(file.piece.name, file.sha256, fault, place)
        if (more := len(faults) - MAX_FAULTS) > 0:
            reason = f"{more:,} more faults like these; mend the file and ingest it again"
            self._quarantine(file.piece.name, file.sha256, Fault("more", reason), end)

    def _excerpt(self, item: Item | Fault) -> str:
        """Return the beginning of what was refused: as its format cleans it, else without its texts."""
        if isinstance(item, Fault):
            return masked(item.excerpt[:EXCERPT])
        own = self.kinds.of(item.value).record_format
        try:
            if own is not None and own.clean is not None:
                return canonical_json(formats.cleaned(own, item.value))[:EXCERPT]
            return masked(canonical_json(item.value)[:EXCERPT])
        except ValueError:
            return ""

    def _lost(self, index: int) -> tuple[int, Item, str]:
        """Return place, item and reason of a record that was refused."""
        number = bisect_right(self.starts, index) - 1
        block, own = self.results.blocks[number], index - self.starts[number]
        return block.place + own, Item(block.positions[own], block.records[own]), self.results.refused[index]

    def _file_read(self, start: int, end: int, file: _File, refused: int) -> None:
        """Say that a file was read whole where it was, and which runs its results tell of that have no record of their own."""
        good = file.records - refused + file.others
        for run in file.told_runs.values() if good else ():
            started = parse_instant(run.started_at, "started_at")
            self.out.read["RunReported"] += 1
            reader = "declared" if run.declared else "derived"
            self.events.append((start, self._event(run, started, file, "", reader)))
        if good and not refused and not file.faults:
            self._read_whole(end, file, good)

    def _event(self, payload: Any, occurred_at: datetime, file: _File, position: str, reader: str) -> Event:
        try:
            return event_of(
                payload,
                occurred_at=occurred_at,
                recorded_at=self.chunk.recorded_at,
                source=Source(name=file.piece.name, sha256=file.sha256, position=position, reader=reader),
            )
        except ValueError as error:
            raise InputError(f"record cannot be kept: {error}") from None

    def _quarantine(self, name: str, sha256: str, fault: Fault, place: int | None = None) -> None:
        payload = RecordQuarantined(
            name=name, sha256=sha256, position=fault.position, reason=fault.reason, excerpt=fault.excerpt[:EXCERPT]
        )
        self._say(payload, place or self._next())

    def _say(self, payload: RecordQuarantined, place: int) -> None:
        self.told.append((place, payload))
        self.events.append((place, quarantine_event(payload, self.chunk.recorded_at)))


def _no_run(piece: Piece) -> str:
    if piece.dated_by:
        return "the run.json beside or above it cannot be read; mend it or pass --measured-at TIME"
    return "no run time: put the run's run.json beside it or pass --measured-at TIME"


def _has_clock(own: RecordFormat, record: dict[str, Any], given: Given) -> bool:
    """Say whether a record states by itself when it was measured; of one that cannot be read its reader says more."""
    try:
        found = formats.read(own, formats.cleaned(own, record), given)
    except InputError:
        return True
    return any(reading.measured_at is not None for reading in (found if isinstance(found, list) else [found]))


def _run_in(dated_by: Content | None) -> tuple[RunReported | None, str | None]:
    """Return the last run that a `run.json` tells of, None where it tells of none, and the hash of its bytes."""
    try:
        data = dated_by.read() if dated_by else None
    except InputError:
        data = None
    found = None
    for value in (values.parsed(data) or values.salvaged(data)).values if data is not None else ():
        try:
            found = runs.read_run(value) if runs.is_run(value) else found
        except InputError:
            continue
    return found, bytes_hash(data) if data is not None else None


def fact_event(
    name: str, sha256: str | None, reader: str, fact: UpstreamFact | UpstreamFault, recorded_at: datetime
) -> Event | RecordQuarantined:
    """Return the event of an upstream fact, or what is to be said of one that could not be read."""
    if isinstance(fact, UpstreamFault):
        return RecordQuarantined(
            name=name, sha256=sha256 or "", position=fact.position, reason=fact.reason, excerpt=fact.excerpt[:EXCERPT]
        )
    return event_of(
        fact.payload,
        occurred_at=fact.occurred_at or fact.published_at or recorded_at,
        published_at=fact.published_at,
        recorded_at=recorded_at,
        source=Source(name=name, sha256=sha256, position=fact.position, reader=reader),
    )


def quarantine_event(payload: RecordQuarantined, recorded_at: datetime) -> Event:
    """Return the event that says what could not be read."""
    source = Source(name=payload.name, sha256=payload.sha256, position=payload.position)
    return event_of(payload, occurred_at=recorded_at, recorded_at=recorded_at, source=source)


def text_hash(text: str) -> str:
    """Return what stands for the hash of bytes that could not be had: the hash of their name."""
    return bytes_hash(text.encode("utf-8", "surrogatepass"))
