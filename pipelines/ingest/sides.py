"""What lies beside records and tells more of them: the run that dates them, what is declared for them.

`run.json` dates what lies in its folder and below; `shiftlog.yaml` declares what records do not hold, `meta_env.json` (InferenceX
evaluations) tells what was evaluated. The nearest counts, key by key; `--set` counts before all of them. Where a
`reuse_source_run.json` (InferenceX) stands anywhere in a run's folder, its results were measured by another run.
Belongs here: which of them counts. Does not: finding them (`inputs`, `intake`), the keys (`declarations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from pipelines.ingest import declarations, runs
from pipelines.ingest.assembling import FROM_NAME
from pipelines.ingest.inputs import read_local
from pipelines.ingest.reading import Given, Origin, RecordFormat
from pipelines.ingest.tools import inferencex_evals
from pipelines.ingest.tools.inferencex_run import ReuseSource, read_reuse_source
from warehouse.canonical import bytes_hash, content_id
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError
from warehouse.events import RunKey, RunReported

META_ENV = "meta_env.json"
REUSE_SOURCE = "reuse_source_run.json"
TIMEZONE = "timezone"
"""The declared key that dates a record."""
ABOUT_RUN = ("run_id", "run_source", "measured_at")
"""Keys that tell of the run and not of the record."""


@dataclass(frozen=True)
class Declared:
    """What the user declared for inputs that do not say it themselves: `--measured-at`, `--set`."""

    measured_at: datetime | None = None
    settings: dict[str, str] = field(default_factory=dict)
    revision: int = 0
    """Given to the reports of runs where the user corrects them (`RunReported.revision`)."""

    def run(self) -> RunReported | None:
        """Return the run for results without a `run.json`; all that share a declared time are one run."""
        stamp = iso(self.measured_at) or self.settings.get("measured_at")
        if stamp is None:
            return None
        measured = parse_instant(stamp, "measured_at")
        run_id = self.settings.get("run_id", f"at-{iso(measured)}")
        run = runs.declared_run(self.settings.get("run_source", "local"), run_id, measured)
        return run.model_copy(update={"revision": self.revision})

    def below(self, settings: dict[str, str]) -> Declared:
        """Return this with what side files declare, which counts behind `--set`."""
        return Declared(self.measured_at, {**settings, **self.settings}, self.revision) if settings else self

    @property
    def of_records(self) -> dict[str, str]:
        """What is declared of records themselves."""
        return {key: value for key, value in self.settings.items() if key not in ABOUT_RUN}


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
class Side:
    """A file that tells more of others: its name, without folder and archive, its bytes, and the folder in which it holds."""

    file: str
    content: Content
    folder: PurePosixPath


class Sides:
    """Reads side files, each once."""

    def __init__(self) -> None:
        self._read: dict[Side, declarations.Sidecar] = {}
        self._reused: dict[Side, ReuseSource] = {}
        self._hashes: dict[Side, str] = {}

    def hashes(self, sides: tuple[Side, ...]) -> tuple[str, ...]:
        """Return the hashes of *sides*; one that cannot be read has none."""
        for side in sides:
            if side not in self._hashes:
                self._hashes[side] = _hash(side)
        return tuple(self._hashes[side] for side in sides)

    def settings(self, sides: tuple[Side, ...], path: PurePosixPath) -> dict[str, str]:
        """Return what *sides*, the farthest first, declare for the file at *path*; raises InputError naming the side file."""
        found: dict[str, str] = {}
        for side in sides:
            if side not in self._read:
                self._read[side] = _sidecar(side)
            found |= self._read[side].of(path.relative_to(side.folder))
        return found

    def reuse(self, sides: tuple[Side, ...]) -> ReuseSource | None:
        """Return the run that measured what lies below *sides*, the nearest counting; raises InputError naming the side file."""
        nearest = next((side for side in reversed(sides) if side.file == REUSE_SOURCE), None)
        if nearest is None:
            return None
        if nearest not in self._reused:
            self._reused[nearest] = _reuse_source(nearest)
        return self._reused[nearest]


def _reuse_source(side: Side) -> ReuseSource:
    try:
        return read_reuse_source(orjson.loads(side.content.read()))
    except (orjson.JSONDecodeError, InputError) as error:
        reason = "not JSON" if isinstance(error, orjson.JSONDecodeError) else error
        raise InputError(f"{REUSE_SOURCE} tells that another run measured this, and cannot be read ({reason}); mend it") from None


def is_of(source: ReuseSource, run: RunReported | None) -> bool:
    """Say whether *run* is the one that measured what was handed on."""
    return run is not None and run.run.run_id == source.run_id and source.run_source in (None, run.run.run_source)


def measuring_run(source: ReuseSource, declared: Declared) -> RunReported | None:
    """Return the run that measured what was handed on, where the user declared when; its number is known."""
    if "run_id" in declared.settings:
        return declared.run()
    own = {"run_id": source.run_id} | ({"run_source": source.run_source} if source.run_source else {})
    run = replace(declared, settings={**own, **declared.settings}).run()
    return run and run.model_copy(update={"run": run.run.model_copy(update={"run_attempt": source.run_attempt})})


def not_dated(source: ReuseSource) -> str:
    """Return why a result that was handed on has no time, and what to do."""
    where = f" of {source.run_source}" if source.run_source else ""
    return (
        f"measured by run {source.run_id}{where} and handed on ({REUSE_SOURCE}); it has no time of its own: "
        "ingest that run's own artifacts, or declare measured_at for it"
    )


def _sidecar(side: Side) -> declarations.Sidecar:
    if side.file == REUSE_SOURCE:
        return declarations.Sidecar({})
    if side.file == META_ENV:
        return declarations.Sidecar(_meta_settings(side.content.read()))
    return declarations.sidecar(side.content.read(), side.file)


def _meta_settings(data: bytes) -> dict[str, str]:
    """Return what a `meta_env.json` declares; raises InputError where it is none."""
    try:
        meta = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{META_ENV}: not JSON: {error}") from None
    if not inferencex_evals.is_meta_env(meta):
        raise InputError(f"{META_ENV}: not the description of an evaluation")
    return inferencex_evals.sidecar_settings(meta)


def context_of(dated_by: str | None, declared: Declared, sides: tuple[str, ...] = (), named: object = None) -> str:
    """Return what stands for all that a file's meaning follows from besides its own bytes.

    *dated_by* is the hash of its `run.json`, *sides* are those of its side files, *named* is what its name tells.
    """
    run = declared.run()
    return content_id("context", dated_by, run.body() if run else None, declared.of_records, list(sides), named)


def _hash(side: Side) -> str:
    try:
        return bytes_hash(side.content.read())
    except InputError:
        return ""


def derived_run(origin: Origin, settings: dict[str, str], revision: int) -> RunReported:
    """Return the report of a run that a record states by itself; a declared name counts before its own."""
    named = "run_id" in settings
    return RunReported(
        run=RunKey(
            run_source=settings.get("run_source", origin.run_source),
            run_id=settings.get("run_id", origin.run_id),
            run_attempt=1 if named else origin.run_attempt,
        ),
        name=origin.name,
        started_at=iso(origin.started_at) or "",
        updated_at=iso(origin.published_at),
        url=origin.url,
        derived=True,
        revision=revision,
    )


def settings_of(own: RecordFormat, given: Given, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the `settings` and `settings_named` of an event whose reading took *fields* (its `declared`) from *given*.

    The zone is no field of a record; it counts for formats that have a clock.
    """
    names = {field_.removesuffix(FROM_NAME) for field_ in fields if field_.endswith(FROM_NAME)}
    taken = {*fields, TIMEZONE} if own.origin else set(fields)
    found = {
        "settings": {key: value for key, value in given.declared.items() if key in taken},
        "settings_named": {key: value for key, value in given.named.items() if key in names},
    }
    return {name: settings for name, settings in found.items() if settings}
