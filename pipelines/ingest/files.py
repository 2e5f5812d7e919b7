"""Files to rows of the log: what one chunk of files holds, event by event, in the order of the files.

A chunk is read by itself, in this process or another: its records are mapped together (`pipelines.ingest.mapping`), which both
finds those that cannot be read and gives the columns of `points` for the others.
Belongs here: which run a record belongs to, and what is said of what was not read. Does not: finding files, storing.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
import polars as pl

from changelog import files as upstream_files
from changelog.facts import UpstreamFact, UpstreamFault
from pipelines.ingest import formats, runs
from pipelines.ingest.inputs import RUN_FILE, read_local
from pipelines.ingest.json_text import EXCERPT, Fault, Item, items
from pipelines.ingest.reading import RecordFormat
from pipelines.ingest.results import MAPPED, Block, Results
from warehouse.canonical import bytes_hash, canonical_json, content_id
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError
from warehouse.events import Event, FileRead, RecordQuarantined, RunReported, Source, event_of
from warehouse.log import ROWS, frame_of

READING = 1
"""Raised where a reader takes more from a file than it did, so that files that were read before are read again."""
MAX_FAULTS = 1000
"""Faults of one file that are told one by one."""
SETTINGS = ("engine", "run_id", "run_source")
"""Keys of `--set`: what a record does not hold and the user declares."""


@dataclass(frozen=True)
class Declared:
    """What the user declared for inputs that do not say it themselves."""

    measured_at: datetime | None = None
    settings: dict[str, str] = field(default_factory=dict)
    revision: int = 0
    """Given to the reports of runs where the user corrects them (`RunReported.revision`)."""

    def run(self) -> RunReported | None:
        """Return the run for results without a `run.json`; all that share a declared time are one run."""
        if self.measured_at is None:
            return None
        stamp = iso(self.measured_at)
        run_id = self.settings.get("run_id", f"at-{stamp}")
        run = runs.declared_run(self.settings.get("run_source", "local"), run_id, self.measured_at)
        return run.model_copy(update={"revision": self.revision})


@dataclass(frozen=True)
class Content:
    """Where the bytes of a file are: in a local file, at hand, or not to be had because of *trouble*."""

    local: Path | None = None
    data: bytes = b""
    trouble: str = ""

    def read(self) -> bytes:
        """Return the bytes; raises InputError where they cannot be had."""
        if self.trouble:
            raise InputError(self.trouble)
        return read_local(self.local) if self.local else self.data


@dataclass(frozen=True)
class Piece:
    """One file of a chunk: how it is called, where it lies, whether the user named it, its bytes, and the file that dates it."""

    name: str
    path: PurePosixPath
    named: bool
    content: Content
    dated_by: Content | None = None


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
    context: str
    first: int
    started: datetime | None = None
    records: int = 0
    faults: list[tuple[int, Item | Fault, str]] = field(default_factory=list)
    declared: RunReported | None = None


def read_chunk(chunk: Chunk) -> Outcome:
    """Return what the files of *chunk* hold; nothing that a file holds raises."""
    with _no_collection():
        return _Chunk(chunk).outcome()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from looking for cycles: records have none, and there are very many of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def context_of(dated_by: str | None, declared: Declared) -> str:
    """Return what stands for all that dates a file besides its own bytes; *dated_by* is the hash of its `run.json`."""
    run = declared.run()
    return content_id("context", dated_by, run.body() if run else None)


class _Chunk:
    """One reading of one chunk: results are gathered first, mapped together, then put in their places among the other events."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.declared = chunk.declared
        self.out = Outcome(ROWS.to_frame(), MAPPED.to_frame())
        self.events: list[tuple[int, Event]] = []
        self.told: list[tuple[int, RecordQuarantined]] = []
        self.results = Results()
        self.kinds = _Kinds()
        self.dated: dict[Content | None, tuple[RunReported | None, str]] = {}
        self.taken = 0
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
        try:
            data = piece.content.read()
        except InputError as error:
            self._quarantine(piece.name, text_hash(piece.name), Fault("", str(error)))
            return
        parsed = _parsed(data)
        if parsed is not None and self.kinds.of(parsed[0][0] if parsed[0] else None).known:
            self._records(piece, data, parsed)
            return
        reader = upstream_files.recognise(data)
        if reader is not None:
            self._upstream(piece, data, reader)
        else:
            self._records(piece, data, parsed or _salvaged(data))

    def _upstream(self, piece: Piece, data: bytes, reader: upstream_files.Reader) -> None:
        sha256 = bytes_hash(data)
        try:
            for fact in reader.read(piece.path.name, data, self.declared.settings.get("engine")):
                self._fact(piece.name, sha256, reader.name, fact)
        except InputError as error:
            self._quarantine(piece.name, sha256, Fault("", str(error)))

    def _fact(self, name: str, sha256: str, reader: str, fact: UpstreamFact | UpstreamFault) -> None:
        event = fact_event(name, sha256, reader, fact, self.chunk.recorded_at)
        if isinstance(event, RecordQuarantined):
            self._say(event, self._next())
        else:
            self.out.read[event.event_type] += 1
            self.events.append((self._next(), event))

    def _records(self, piece: Piece, data: bytes, parsed: _Parsed) -> None:
        sha256, kinds = bytes_hash(data), self.kinds
        values, positions, plain = parsed
        if not values:
            self.out.empty.append(piece.name)
        if not any(isinstance(value, Fault) or kinds.of(value).known for value in values):
            self._unknown(piece, sha256, len(values))
            return
        run, context = self._run_of(piece)
        file = _File(piece, sha256, context, self.taken)
        start, before = self._next(), len(self.results.blocks)
        block: Block | None = None
        for value, position in zip(values, positions, strict=True):
            kind = kinds.of(value)
            if kind.record_format is None or kind.run or run is None:
                block = None
                self._other(piece, sha256, Item(position, value), kind, file)
                continue
            if block is None or block.record_format is not kind.record_format:
                block = self._block(file, run, kind.record_format, plain)
            block.records.append(value)
            block.positions.append(position)
            self.place += 1
        file.records = sum(len(block.records) for block in self.results.blocks[before:])
        self.taken += file.records
        self.files.append((start, self._next(), file))

    def _block(self, file: _File, run: RunReported, record_format: RecordFormat, plain: bool) -> Block:
        if file.started is None:
            file.started = parse_instant(run.started_at, "started_at")
            file.declared = run if run.declared else None
        block = Block(file.piece.name, file.sha256, run, file.started, record_format, plain, self.place + 1, [])
        self.results.blocks.append(block)
        return block

    def _other(self, piece: Piece, sha256: str, item: Item, kind: _Kind, file: _File) -> None:
        """Take what is no result: a run object, or a fault."""
        try:
            if isinstance(item.value, Fault):
                file.faults.append((self._next(), item.value, item.value.reason))
            elif kind.run:
                self._run(piece, sha256, item)
            elif kind.record_format is None:
                raise InputError(kind.near_miss or "not a known record; `shiftlog formats` lists those that are")
            else:
                raise InputError(
                    "the run.json beside or above it cannot be read; mend it or pass --measured-at TIME"
                    if piece.dated_by
                    else "no run time: put the run's run.json beside it or pass --measured-at TIME"
                )
        except InputError as error:
            file.faults.append((self._next(), item, str(error)))

    def _unknown(self, piece: Piece, sha256: str, records: int) -> None:
        if not records:
            return
        if piece.named or piece.path.name == RUN_FILE:
            reason = "not a known format; `shiftlog formats` lists those that are"
            self._quarantine(piece.name, sha256, Fault("", reason))
        else:
            self.out.ignored.append(f"{piece.name} (not a known format)")

    def _run(self, piece: Piece, sha256: str, item: Item) -> None:
        run = runs.read_run(item.value).model_copy(update={"revision": self.declared.revision})
        event = self._event(run, parse_instant(run.started_at, "run_started_at"), piece.name, sha256, item.position, "github-run")
        self.out.read["RunReported"] += 1
        self.events.append((self._next(), event))

    def _run_of(self, piece: Piece) -> tuple[RunReported | None, str]:
        """Return the run whose `run.json` dates the file, else the declared one, and what stands for both."""
        if piece.dated_by not in self.dated:
            self.dated = {piece.dated_by: self._dated(piece.dated_by)}  # files of one run follow each other
        return self.dated[piece.dated_by]

    def _dated(self, dated_by: Content | None) -> tuple[RunReported | None, str]:
        try:
            data = dated_by.read() if dated_by else None
        except InputError:
            data = None
        if data is None:
            return self.declared.run(), context_of(None, self.declared)
        return _run_in(data) or self.declared.run(), context_of(bytes_hash(data), self.declared)

    def _settle(self) -> None:
        """Settle the results together, tell those that cannot be kept, and put every event in its place."""
        rows, self.out.mapped, said = self.results.settle(self.chunk.recorded_at, self.chunk.mapped)
        for mapped in said:
            self.out.unknown_names.update(mapped.unknown_names)
        for start, end, file in self.files:
            refused = [i for i in range(file.first, file.first + file.records) if i in self.results.refused]
            self._tell(end, file, refused)
            self._file_read(start, end, file, file.records - len(refused))
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
            fault = item if isinstance(item, Fault) else Fault(item.position, reason, _excerpt(item.value))
            self._quarantine(file.piece.name, file.sha256, fault, place)
        if (more := len(faults) - MAX_FAULTS) > 0:
            reason = f"{more:,} more faults like these; mend the file and ingest it again"
            self._quarantine(file.piece.name, file.sha256, Fault("more", reason), end)

    def _lost(self, index: int) -> tuple[int, Item, str]:
        """Return place, item and reason of a record that was refused."""
        before = 0
        for block in self.results.blocks:
            if index < before + len(block.records):
                own = index - before
                return block.place + own, Item(block.positions[own], block.records[own]), self.results.refused[index]
            before += len(block.records)
        raise IndexError(index)

    def _file_read(self, start: int, end: int, file: _File, good: int) -> None:
        """Say that a file was read whole where it was, and that its run was declared where it has a result of one."""
        name, sha256 = file.piece.name, file.sha256
        if file.declared and good:
            started = parse_instant(file.declared.started_at, "started_at")
            self.out.read["RunReported"] += 1
            self.events.append((start, self._event(file.declared, started, name, sha256, "", "declared")))
        if good and good == file.records and not file.faults:
            read = FileRead(sha256=sha256, context=file.context, reading=READING, records=good)
            self.events.append((end, self._event(read, self.chunk.recorded_at, name, sha256, "", "records")))

    def _event(self, payload: Any, occurred_at: datetime, name: str, sha256: str, position: str, reader: str) -> Event:
        try:
            return event_of(
                payload,
                occurred_at=occurred_at,
                recorded_at=self.chunk.recorded_at,
                source=Source(name=name, sha256=sha256, position=position, reader=reader),
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


@dataclass(frozen=True)
class _Kind:
    """What records with one set of keys are."""

    run: bool
    record_format: RecordFormat | None
    near_miss: str | None

    @property
    def known(self) -> bool:
        return self.run or self.record_format is not None or self.near_miss is not None


class _Kinds:
    """Tells what a value is; records with the same keys are alike, so each set of keys is looked at once."""

    def __init__(self) -> None:
        self._by_keys: dict[tuple[str, ...], _Kind] = {}
        self._last_keys: tuple[str, ...] | None = None
        self._last = _Kind(False, None, None)

    def of(self, value: Any) -> _Kind:
        if not isinstance(value, dict):
            return _Kind(False, None, None)
        keys = tuple(value)
        if keys == self._last_keys:  # as a rule; cheaper than a look-up
            return self._last
        kind = self._by_keys.get(keys)
        if kind is None:
            kind = self._by_keys[keys] = _Kind(runs.is_run(value), formats.recognise(value), formats.near_miss(value))
        self._last_keys, self._last = keys, kind
        return kind


_POINTERS = [f"/{index}" for index in range(1000)]


def _pointers(number: int) -> list[str]:
    """Return the positions of the elements of an array."""
    _POINTERS.extend(f"/{index}" for index in range(len(_POINTERS), number))
    return _POINTERS[:number]


_Parsed = tuple[list[Any], list[str], bool]
"""The values of a file (a Fault where one cannot be read), their positions, and whether orjson read it."""


def _parsed(data: bytes) -> _Parsed | None:
    """Return the values of a file that is one JSON text; None where orjson refuses it."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return (value, _pointers(len(value)), True) if isinstance(value, list) else ([value], [""], True)


def _salvaged(data: bytes) -> _Parsed:
    """Return the values of a file of lines, or of a damaged one: read piece by piece."""
    parsed = list(items(data))
    values = [item.value if isinstance(item, Item) else item for item in parsed]
    return values, [item.position for item in parsed], False


def _run_in(data: bytes) -> RunReported | None:
    """Return the last run that a `run.json` tells of, or None where it tells of none."""
    found = None
    for value in (_parsed(data) or _salvaged(data))[0]:
        try:
            found = runs.read_run(value) if runs.is_run(value) else found
        except InputError:
            continue
    return found


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


def _excerpt(value: Any) -> str:
    try:
        return canonical_json(value)[:EXCERPT]
    except ValueError:
        return ""
