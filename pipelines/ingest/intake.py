"""The plan of an ingest: every input is recognised by its content, turned into events, or quarantined with the reason.

Belongs here: which run a record belongs to, and what is said of what was not read. Does not: formats, storage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from changelog import files as upstream_files
from changelog.facts import UpstreamFact, UpstreamFault
from changelog.git import read_repository
from changelog.projects import project_of_file
from pipelines.announcing import Announce
from pipelines.ingest import formats, runs
from pipelines.ingest.inputs import Found, Ignored, InputFile, Repository, Unreadable, find_inputs
from pipelines.ingest.json_text import EXCERPT, Fault, Item, items
from warehouse.canonical import bytes_hash, canonical_json
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, UpstreamError
from warehouse.events import Event, RecordQuarantined, ResultRecorded, RunReported, Source, event_of
from warehouse.log import EventLog

SETTINGS = ("engine", "run_id", "run_source")
"""Keys of `--set`: what a record does not hold and the user declares."""


@dataclass(frozen=True)
class Declared:
    """What the user declared for inputs that do not say it themselves."""

    measured_at: datetime | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def run(self) -> RunReported | None:
        """Return the run for results without a `run.json`; all that share a declared time are one run."""
        if self.measured_at is None:
            return None
        stamp = iso(self.measured_at)
        run_id = self.settings.get("run_id", f"at-{stamp}")
        return runs.declared_run(self.settings.get("run_source", "local"), run_id, self.measured_at)


@dataclass
class Intake:
    """What an ingest met, by kind; `new` counts events that the log did not have."""

    files: int = 0
    empty: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Repositories that could not be read; no fact is lost, the same command may succeed later."""
    read: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    ignored: list[str] = field(default_factory=list)
    quarantined: list[RecordQuarantined] = field(default_factory=list)
    unknown_names: Counter[tuple[str, str]] = field(default_factory=Counter)


def ingest(
    log: EventLog, paths: tuple[str, ...], declared: Declared, *, recorded_at: datetime, mirrors: Path, announce: Announce
) -> Intake:
    """Read everything at *paths* into the log and return what happened; *announce* is told each input's name."""
    intake = Intake()
    reader = _Reader(intake, declared, recorded_at, mirrors, announce)
    intake.new = log.append(reader.events(list(find_inputs(paths, reader.is_upstream))))
    return intake


class _Reader:
    """Turns found inputs into events; `run.json` files first, because they date the results beside and below them."""

    def __init__(self, intake: Intake, declared: Declared, recorded_at: datetime, mirrors: Path, announce: Announce) -> None:
        self.intake = intake
        self.declared = declared
        self.recorded_at = recorded_at
        self.mirrors = mirrors
        self.announce = announce
        self.runs: dict[PurePosixPath, RunReported | None] = {}

    def is_upstream(self, name: str) -> bool:
        """Say whether a repository of this name is an upstream project: by its name, or because the user declared the engine."""
        try:
            return bool(project_of_file(name, self.declared.settings.get("engine")))
        except InputError:
            return False

    def events(self, found: list[Found]) -> Iterator[Event]:
        """Yield the events of all inputs."""
        for entry in found:
            if isinstance(entry, InputFile) and entry.path.name == "run.json":
                yield from self._file(entry)
        for entry in found:
            if isinstance(entry, Ignored):
                self.intake.ignored.append(entry.name)
            elif isinstance(entry, Unreadable):
                yield self._quarantine(entry.name, _text_hash(entry.name), Fault("", entry.reason))
            elif isinstance(entry, Repository):
                yield from self._repository(entry)
            elif entry.path.name != "run.json":
                yield from self._file(entry)

    def _file(self, entry: InputFile) -> Iterator[Event]:
        self.announce(entry.name)
        self.intake.files += 1
        if entry.path.name == "run.json":
            self.runs[entry.path.parent] = None  # until it has been read
        try:
            data = entry.read()
        except InputError as error:
            yield self._quarantine(entry.name, _text_hash(entry.name), Fault("", str(error)))
            return
        reader = upstream_files.recognise(data)
        if reader is not None:
            yield from self._upstream(entry, data, reader)
        else:
            yield from self._records(entry, data)

    def _upstream(self, entry: InputFile, data: bytes, reader: upstream_files.Reader) -> Iterator[Event]:
        sha256 = bytes_hash(data)
        try:
            for fact in reader.read(entry.path.name, data, self.declared.settings.get("engine")):
                yield self._fact(entry.name, sha256, reader.name, fact)
        except InputError as error:
            yield self._quarantine(entry.name, sha256, Fault("", str(error)))

    def _repository(self, entry: Repository) -> Iterator[Event]:
        self.announce(entry.name)
        try:
            project = project_of_file(entry.name, self.declared.settings.get("engine"))
            for fact in read_repository(entry.location, project, self.mirrors):
                yield self._fact(entry.name, None, "git", fact)
        except (InputError, UpstreamError) as error:
            self.intake.failed.append(str(error))

    def _fact(self, name: str, sha256: str | None, reader: str, fact: UpstreamFact | UpstreamFault) -> Event:
        if isinstance(fact, UpstreamFault):
            return self._quarantine(name, sha256 or "", Fault(fact.position, fact.reason, fact.excerpt))
        self.intake.read[type(fact.payload).__name__] += 1
        return event_of(
            fact.payload,
            occurred_at=fact.occurred_at or fact.published_at or self.recorded_at,
            published_at=fact.published_at,
            recorded_at=self.recorded_at,
            source=Source(name=name, sha256=sha256, position=fact.position, reader=reader),
        )

    def _records(self, entry: InputFile, data: bytes) -> Iterator[Event]:
        sha256 = bytes_hash(data)
        parsed = list(items(data))
        if not parsed:
            self.intake.empty.append(entry.name)
        if not any(isinstance(item, Fault) or _is_known(item.value) for item in parsed):
            yield from self._unknown(entry, sha256, len(parsed))
            return
        run = self._run_of(entry)
        reported = False
        for item in parsed:
            event = self._record(entry, sha256, item, run)
            if event.event_type == "ResultRecorded" and run is not None and run.declared and not reported:
                reported = True
                yield self._event(run, parse_instant(run.started_at, "started_at"), entry.name, sha256, "", "declared")
            yield event

    def _unknown(self, entry: InputFile, sha256: str, records: int) -> Iterator[Event]:
        if not records:
            return
        if entry.named or entry.path.name == "run.json":
            yield self._quarantine(entry.name, sha256, Fault("", "not a known format; `shiftlog formats` lists those that are"))
        else:
            self.intake.ignored.append(f"{entry.name} (not a known format)")

    def _record(self, entry: InputFile, sha256: str, item: Item | Fault, run: RunReported | None) -> Event:
        if isinstance(item, Fault):
            return self._quarantine(entry.name, sha256, item)
        try:
            if runs.is_run(item.value):
                return self._run(entry, sha256, item)
            return self._result(entry, sha256, item, run)
        except InputError as error:
            return self._quarantine(entry.name, sha256, Fault(item.position, str(error), _excerpt(item.value)))

    def _run(self, entry: InputFile, sha256: str, item: Item) -> Event:
        run = runs.read_run(item.value)
        if entry.path.name == "run.json":
            self.runs[entry.path.parent] = run
        return self._event(run, parse_instant(run.started_at, "run_started_at"), entry.name, sha256, item.position, "github-run")

    def _result(self, entry: InputFile, sha256: str, item: Item, run: RunReported | None) -> Event:
        record_format = formats.recognise(item.value)
        if record_format is None:
            raise InputError(formats.near_miss(item.value) or "not a known record; `shiftlog formats` lists those that are")
        if run is None:
            damaged = any(folder in self.runs for folder in entry.path.parents)
            raise InputError(
                "the run.json beside or above it cannot be read; mend it or pass --measured-at TIME"
                if damaged
                else "no run time: put the run's run.json beside it or pass --measured-at TIME"
            )
        started = parse_instant(run.started_at, "started_at")
        reading = record_format.read(item.value, started)
        self.intake.unknown_names.update(reading.unknown_names)
        try:
            payload = ResultRecorded(run=run.run, record_format=record_format.name, record=item.value)
        except ValidationError as error:
            raise InputError(runs.first_problem(error)) from None
        return self._event(payload, reading.measured_at or started, entry.name, sha256, item.position, record_format.name)

    def _run_of(self, entry: InputFile) -> RunReported | None:
        """Return the run whose `run.json` is nearest above the file, else the declared one."""
        for folder in entry.path.parents:
            if folder in self.runs:
                return self.runs[folder] or self.declared.run()
        return self.declared.run()

    def _event(self, payload: Any, occurred_at: datetime, name: str, sha256: str, position: str, reader: str) -> Event:
        try:
            event = event_of(
                payload,
                occurred_at=occurred_at,
                recorded_at=self.recorded_at,
                source=Source(name=name, sha256=sha256, position=position, reader=reader),
            )
        except ValueError as error:
            raise InputError(f"record cannot be kept: {error}") from None
        self.intake.read[event.event_type] += 1
        return event

    def _quarantine(self, name: str, sha256: str, fault: Fault) -> Event:
        payload = RecordQuarantined(
            name=name, sha256=sha256, position=fault.position, reason=fault.reason, excerpt=fault.excerpt[:EXCERPT]
        )
        self.intake.quarantined.append(payload)
        return event_of(
            payload,
            occurred_at=self.recorded_at,
            recorded_at=self.recorded_at,
            source=Source(name=name, sha256=sha256, position=fault.position),
        )


def _text_hash(text: str) -> str:
    """Return what stands for the hash of bytes that could not be had: the hash of their name."""
    return bytes_hash(text.encode("utf-8", "surrogatepass"))


def _is_known(value: Any) -> bool:
    return runs.is_run(value) or formats.recognise(value) is not None or formats.near_miss(value) is not None


def _excerpt(value: Any) -> str:
    try:
        return canonical_json(value)[:EXCERPT]
    except ValueError:
        return ""
