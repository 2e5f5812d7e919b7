"""Delta tables on disk or object store: the only module that opens and commits them.

Rules, each measured (docs/architecture.md): every commit is fenced (a Delta application transaction, so that of two writers that
read the same version one must try again; the commit must go through the very table object that was loaded before the reads, or
the race is lost without a word). The fence is also the table's mark: up to which sequence of the log it reaches, and which code
made it.

Belongs here: reading, committing, tidying tables. Does not: how files are laid out (`warehouse.layout`), what is in them.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

import polars as pl
import pyarrow.dataset
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from polars.exceptions import PanicException

from warehouse import object_store
from warehouse.errors import ConflictError, InputError, SchemaError, ShiftlogError, StoreError
from warehouse.layout import (
    CHECKPOINT_EVERY,
    LARGE_FILE,
    RETENTION,
    TIERS,
    VACUUM_EVERY,
    check_schema,
    properties,
    to_arrow,
    writer,
)
from warehouse.panics import without_panics
from warehouse.schemas import TABLES, Table

T = TypeVar("T")
UP_TO, CODE = "shiftlog", "shiftlog.code"
"""Application ids of the two numbers that every commit sets: the mark of the table."""
UNUSABLE = "[]^|%\\"
"""Characters of a path that delta-rs refuses, or decodes into another path."""
MAX_DETAIL = 400
"""Characters of another library's error that are told."""
ATTEMPTS = 200


@dataclass(frozen=True)
class Mark:
    """How far a table goes: the last sequence of the log that it follows from, and a number that stands for the code."""

    up_to: int
    code: int = 0


def trusted(mark: Mark | None, code: int, end: int) -> Mark | None:
    """Return *mark* where *code* made the table, from a log that still goes as far (to sequence *end*); None: make it anew."""
    return mark if mark is not None and mark.code == code and mark.up_to <= end else None


@dataclass(frozen=True)
class Change:
    """One commit: rows to add, or to put in place of all rows or of those that *where* (SQL over columns) selects."""

    frame: pl.DataFrame
    mark: Mark
    mode: Literal["append", "overwrite"] = "append"
    where: str | None = None


_Commit = tuple[int, int, int]
"""Inode, size and time of the file of a commit."""


@dataclass(frozen=True)
class _Held:
    """A table as it was opened, and what tells whether it is still that: on a disk, the folder of its log and its last commit."""

    delta: DeltaTable
    place: Path | None
    commit: _Commit | None


def default_uri() -> str:
    """Return the warehouse that is used when none is named: $SHIFTLOG_WAREHOUSE, else ./shiftlog-data."""
    return os.environ.get("SHIFTLOG_WAREHOUSE") or "shiftlog-data"


class Store:
    """The tables of one warehouse, a folder or an object-store prefix (`s3://…`; credentials from the environment)."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        self.local = "://" not in uri
        self._held: dict[str, _Held] = {}
        """Tables as last opened: read while they are the newest, never committed through, because a scan follows its table."""
        self._marks: dict[tuple[str, int], Mark | None] = {}
        """Marks by table id and version; to read one costs as much as to open the table twice."""
        if self.local:
            _check_folder(Path(self.uri))
        else:
            object_store.check_address(self.uri)

    def __getstate__(self) -> dict[str, Any]:
        """Leave open tables behind: another process opens its own."""
        return self.__dict__ | {"_held": {}}

    def table_uri(self, name: str) -> str:
        """Return where the table called *name* is kept."""
        return f"{self.uri}/{TABLES[name].name}"

    def exists(self, name: str) -> bool:
        """Say whether the table called *name* has been created."""
        try:
            return self._load(name) is not None
        except StoreError:  # it is there, or nothing can be asked
            return self._translated(name, "opened", lambda: DeltaTable.is_deltatable(self.table_uri(name), self._options))

    def scan(self, name: str) -> pl.LazyFrame:
        """Return the table called *name* as a lazy frame in no particular order; an absent table is an empty frame."""
        table = TABLES[name]
        delta = self._load(name)
        if delta is None:
            return pl.LazyFrame(schema=table.schema)
        return self._scan(name, delta)

    def scan_marked(self, name: str) -> tuple[pl.LazyFrame, Mark | None]:
        """Return a scan of the table and its mark, both of one version; no mark where the table must be built."""
        delta = self._load(name)
        if delta is None or not self._fits(name, delta):
            return pl.LazyFrame(schema=TABLES[name].schema), None
        return self._opened(name, delta), self._mark(delta)

    def read(self, name: str) -> pl.DataFrame:
        """Return the whole table called *name*, ordered by its order columns."""
        return self.collect(name, self.scan(name).sort(TABLES[name].order, maintain_order=True))

    def collect(self, name: str, frame: pl.LazyFrame) -> pl.DataFrame:
        """Return what *frame*, a scan of the table called *name*, gives; raises StoreError where a data file cannot be read."""
        with without_panics():
            return self._translated(name, "read", lambda: frame.collect())

    def count(self, name: str) -> int:
        """Return how many rows the table called *name* has."""
        return int(self.collect(name, self.scan(name).select(pl.len())).item())

    def rows(self, name: str) -> int:
        """Return how many rows the table called *name* has, as its log tells."""
        delta = self._load(name)
        return 0 if delta is None else int(self._files(name, delta)["num_records"].sum())

    def dataset(self, name: str) -> Any:
        """Return the table called *name*, which must be there, as a pyarrow data set: readers take what they need of it."""
        delta = self._load(name)
        if delta is None:
            raise StoreError(f"table {name} is not in {self.uri}; run `shiftlog ingest` first")
        self._scan(name, delta)
        if not self.local:
            return self._translated(name, "opened", delta.to_pyarrow_dataset)
        files = [unquote(file) for file in delta.file_uris()]
        return self._translated(name, "opened", lambda: pyarrow.dataset.dataset(files, format="parquet"))

    def version(self, name: str) -> int | None:
        """Return the Delta version of the table called *name*, or None where it does not exist."""
        delta = self._load(name)
        return None if delta is None else int(delta.version())

    def mark(self, name: str) -> Mark | None:
        """Return how far a table goes; None where it must be built: it is not there, or has another schema."""
        delta = self._load(name)
        return self._mark(delta) if delta is not None and self._fits(name, delta) else None

    def commit(self, name: str, attempt: Callable[[pl.LazyFrame, Mark | None], Change | None]) -> Change | None:
        """Commit what *attempt* makes of the table as it stands, and return it; None where there was nothing to do.

        *attempt* is given a scan of the table and its mark (None where the table must be built) and is called again after every
        lost race, so nobody else can have committed between its reads and our commit. Raises ConflictError after ATTEMPTS
        lost races.
        """
        table = TABLES[name]

        def once() -> Change | None:
            delta = self._loaded(name) or self._created(table)  # before the reads: a later commit of somebody else fails ours
            fits = self._fits(name, delta)
            change = attempt(
                self._opened(name, delta) if fits else pl.LazyFrame(schema=table.schema), self._mark(delta) if fits else None
            )
            if change is not None:
                self._write(table, delta, change)
            self._hold(name, delta)
            return change

        change = self._won(name, once)
        if change is not None:
            self.tidy(name)
        return change

    def _write(self, table: Table, delta: DeltaTable, change: Change) -> None:
        if change.mode == "overwrite" and table.append_only:
            raise StoreError(f"table {table.name} is append-only and cannot be replaced")
        check_schema(table, change.frame)
        next_version = int(delta.version()) + 1
        marks = [Transaction(UP_TO, change.mark.up_to), Transaction(CODE, change.mark.code)]
        options: dict[str, Any] = {"mode": change.mode}
        if change.mode == "overwrite":
            options |= {"predicate": change.where} if change.where else {"schema_mode": "overwrite"}
        with without_panics():
            write_deltalake(
                delta,
                to_arrow(change.frame),
                writer_properties=writer(table),
                commit_properties=CommitProperties(app_transactions=marks, max_commit_retries=0),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=True, cleanup_expired_logs=not table.append_only and next_version % CHECKPOINT_EVERY == 0
                ),
                **options,
            )
        if delta.version() == next_version:
            self._marks[str(delta.metadata().id), next_version] = change.mark

    def overwrite(self, name: str, frame: pl.DataFrame, mark: Mark, end: int | None = None) -> bool:
        """Replace the projection called *name* by *frame*; return whether that was done.

        It is not where *end*, the last sequence of the log, is given and the same code has seen more of that log meanwhile: what
        a slow process made must not stand in place of what a quick one did.
        """
        check_schema(TABLES[name], frame)  # before a table is made for it

        def attempt(_scan: pl.LazyFrame, present: Mark | None) -> Change | None:
            known = None if end is None else trusted(present, mark.code, end)
            return None if known and known.up_to > mark.up_to else Change(frame, mark, "overwrite")

        return self.commit(name, attempt) is not None

    def tidy(self, name: str) -> None:
        """Merge small files where there are many, and drop what a projection no longer needs; every commit ends with it.

        Nothing depends on it: where another writer is in the way, the next commit tidies.
        """
        table, delta = TABLES[name], self._load(name)
        if delta is None:
            return
        if not table.append_only and (delta.version() + 1) % VACUUM_EVERY == 0:
            self.vacuum(name)
        sizes = self._sizes(name, delta)
        for target, files in TIERS:
            if sum(2 * size < target for size in sizes) > files:
                self._merge(name, target)

    def compact(self, name: str) -> tuple[int, int]:
        """Merge the files of a table up to LARGE_FILE each and write a checkpoint; return its files before and after."""
        delta = self._load(name)
        if delta is None:
            return 0, 0
        before = len(self._sizes(name, delta))
        if before > 1:
            self._merge(name, LARGE_FILE)
        merged = self._load(name) or delta
        self._translated(name, "checkpointed", merged.create_checkpoint)
        return before, len(self._sizes(name, merged))

    def _merge(self, name: str, target: int) -> None:
        delta = self._loaded(name)
        if delta is None:
            return
        try:
            delta.optimize.compact(target_size=target, writer_properties=writer(TABLES[name]))
        except CommitFailedError:  # somebody else merged or wrote
            return
        except (Exception, PanicException) as error:
            raise self._explained(name, "compacted", error) from error

    def vacuum(self, name: str, retention: timedelta = RETENTION) -> int:
        """Delete files that a projection replaced more than *retention* ago; return how many. The log keeps all of its own."""
        if TABLES[name].append_only:
            raise StoreError(f"table {name} is never vacuumed")
        delta = self._loaded(name)
        hours = int(retention.total_seconds() // 3600)
        if delta is None:
            return 0
        return len(
            self._translated(
                name, "vacuumed", lambda: delta.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)
            )
        )

    def file_sizes(self, name: str) -> list[int]:
        """Return the sizes of the data files of the present version, bytes."""
        delta = self._load(name)
        return [] if delta is None else self._sizes(name, delta)

    def _sizes(self, name: str, delta: DeltaTable) -> list[int]:
        return [int(size) for size in self._files(name, delta)["size_bytes"].to_list()]

    def _files(self, name: str, delta: DeltaTable) -> pl.DataFrame:
        """Return what the table's log tells of its data files, one row each."""
        return self._translated(name, "opened", lambda: pl.DataFrame(delta.get_add_actions()))

    @property
    def _options(self) -> dict[str, str] | None:
        return None if self.local else object_store.OPTIONS

    def _load(self, name: str) -> DeltaTable | None:
        """Return a table to read from: the one that was opened before where nobody has committed since."""
        held = self._held.get(name)
        if held is not None and self._is_newest(held):
            return held.delta
        loaded = self._loaded(name)
        if loaded is None:
            self._held.pop(name, None)
        else:
            self._hold(name, loaded)
        return loaded

    def _hold(self, name: str, delta: DeltaTable) -> None:
        place = Path(self.table_uri(name)) / "_delta_log" if self.local else None
        self._held[name] = _Held(delta, place, _commit_of(place, int(delta.version())) if place else None)

    def _is_newest(self, held: _Held) -> bool:
        """Say whether the table is as it was: its commit is the very file it was, and no other has come (a request elsewhere)."""
        if held.place is None:
            return _is_latest(held.delta)
        version = int(held.delta.version())
        return (
            held.commit is not None and held.commit == _commit_of(held.place, version) and not _commit_of(held.place, version + 1)
        )

    def _loaded(self, name: str) -> DeltaTable | None:
        """Return a table as it is now, an object of its own."""
        try:
            return DeltaTable(self.table_uri(name), storage_options=self._options)
        except TableNotFoundError:
            return None
        except (Exception, PanicException) as error:
            raise self._explained(name, "opened", error) from error

    def _mark(self, delta: DeltaTable) -> Mark | None:
        key = (str(delta.metadata().id), int(delta.version()))
        if key not in self._marks:
            up_to = delta.transaction_version(UP_TO)
            self._marks[key] = None if up_to is None else Mark(up_to, delta.transaction_version(CODE) or 0)
        return self._marks[key]

    def _scan(self, name: str, delta: DeltaTable) -> pl.LazyFrame:
        if not self._fits(name, delta):
            mend = "it needs that version" if TABLES[name].append_only else "run `shiftlog rebuild`"
            raise SchemaError(f"table {name} in {self.uri} was written by another version of shiftlog; {mend}")
        return self._opened(name, delta)

    def _opened(self, name: str, delta: DeltaTable) -> pl.LazyFrame:
        """Return a table as it is stored.

        delta-rs tells paths percent-encoded and polars takes them literally, so files with such a path are read by their own.
        """
        if self.local and "%" in (files := " ".join(self._translated(name, "opened", delta.file_uris))):
            return pl.scan_parquet([unquote(file) for file in files.split(" ")], glob=False)
        return self._translated(name, "opened", lambda: pl.scan_delta(delta))

    def _fits(self, name: str, delta: DeltaTable) -> bool:
        """Say whether a stored table has the schema of this version."""
        stored = self._translated(name, "opened", lambda: pl.Schema(pl.DataFrame(delta.schema().to_arrow().empty_table()).schema))
        return stored == TABLES[name].schema

    def _won(self, name: str, commit: Callable[[], T]) -> T:
        """Return what *commit* gives, trying again with a growing, jittered pause while other writers commit first."""
        pause = random.Random(os.getpid())
        for attempt in range(ATTEMPTS):
            try:
                return commit()
            except CommitFailedError:
                time.sleep(pause.uniform(0.005, 0.02) * min(attempt + 1, 20))
            except ShiftlogError:
                raise
            except (Exception, PanicException) as error:
                raise self._explained(name, "written", error) from error
        raise ConflictError(f"table {name} in {self.uri}: other writers committed first {ATTEMPTS} times; run the command again")

    def _created(self, table: Table) -> DeltaTable:
        if self.local:
            self._translated(table.name, "created", lambda: Path(self.uri).mkdir(parents=True, exist_ok=True))
        try:
            return DeltaTable.create(
                self.table_uri(table.name),
                schema=to_arrow(table.schema.to_frame()).schema,
                mode="ignore",
                name=table.name,
                description=table.meaning,
                configuration=properties(table),
                storage_options=self._options,
            )
        except CommitFailedError:  # another writer created it in the same moment
            pass
        except Exception as error:
            if not self._is_there(table.name):
                raise self._explained(table.name, "created", error) from error
        return DeltaTable(self.table_uri(table.name), storage_options=self._options)

    def _is_there(self, name: str) -> bool:
        try:
            return DeltaTable.is_deltatable(self.table_uri(name), self._options)
        except (Exception, PanicException):
            return False

    def _translated(self, name: str, verb: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except ShiftlogError:
            raise
        except (Exception, PanicException) as error:  # polars panics, which is no Exception, where a data file is cut off
            raise self._explained(name, verb, error) from error

    def _explained(self, name: str, verb: str, error: BaseException) -> StoreError:
        lines = [re.sub("\x1b\\[\\d+m|↳", "", line).strip() for line in str(error).splitlines() if "<unknown>" not in line]
        detail = " · ".join(line for line in lines if line)[:MAX_DETAIL] or type(error).__name__
        if isinstance(error, TableNotFoundError):
            return StoreError(f"table {name} is not in {self.uri}; run `shiftlog ingest` first")
        if "No space left" in str(error) or "os error 28" in str(error):
            return StoreError(f"table {name} in {self.uri} cannot be {verb}: the disk is full; free some space and run it again")
        if not self.local and (words := object_store.in_words(str(error))):
            return StoreError(f"table {name} in {self.uri} cannot be {verb}: {words}")
        hint = "" if isinstance(error, DeltaError) else f" ({type(error).__name__})"
        return StoreError(f"table {name} in {self.uri} cannot be {verb}: {detail}{hint}")


def _commit_of(place: Path, version: int) -> _Commit | None:
    """Return what tells the file of a commit from any other that was ever called so; None where there is none."""
    try:
        told = (place / f"{version:020d}.json").stat()
    except OSError:
        return None
    return told.st_ino, told.st_size, told.st_mtime_ns


def _is_latest(delta: DeltaTable) -> bool:
    """Say whether nobody has committed since *delta* was opened; delta-rs has no public name for it."""
    try:
        return bool(delta._table.get_latest_version() == delta.version())
    except (Exception, PanicException):  # it is gone, or broken: to open it anew tells
        return False


def _check_folder(folder: Path) -> None:
    """Raise InputError for a place that is no folder, or whose name delta-rs takes for another one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--warehouse {folder}: is a file; name a folder")
    path = str(folder.absolute())
    if wrong := sorted({character for character in path if character in UNUSABLE or not character.isprintable()}):
        raise InputError(f"--warehouse {folder}: tables cannot lie below a folder with {wrong[0]!r} in its name; name another")
