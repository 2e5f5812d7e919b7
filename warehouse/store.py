"""Delta tables on disk or object store: the only module that imports deltalake.

Rules, each measured (docs/architecture.md): events are appended under a fence (a Delta application transaction, so that of two
writers that read the same version one must try again; the commit must go through the very table object that was loaded before
the reads, or the race is lost without a word), projections are overwritten, nothing is merged. A frame must have a
table's exact schema, because delta-rs stores 7.9 as 7 in an integer column. Frames are written as plain Arrow strings, so that
every engine can read the files.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import polars as pl
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from polars.exceptions import PanicException

from warehouse.errors import ConflictError, InputError, SchemaError, ShiftlogError, StoreError
from warehouse.schemas import TABLES, Table

T = TypeVar("T")
FENCE = "shiftlog"
UP_TO = "shiftlog.up_to"
UNUSABLE = "[]^|%\\"
"""Characters of a path that delta-rs refuses, or decodes into another path."""
ATTEMPTS = 60
LOG_SETTINGS = {
    "delta.appendOnly": "true",
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 3650 days",
}


def default_uri() -> str:
    """Return the warehouse that is used when none is named: $SHIFTLOG_WAREHOUSE, else ./shiftlog-data."""
    return os.environ.get("SHIFTLOG_WAREHOUSE") or "shiftlog-data"


class Store:
    """The tables of one warehouse, a folder or an object-store prefix (`s3://…`; credentials from the environment)."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        self.local = "://" not in self.uri
        if self.local:
            _check_folder(Path(self.uri))

    def table_uri(self, name: str) -> str:
        """Return where the table called *name* is kept."""
        return f"{self.uri}/{TABLES[name].name}"

    def exists(self, name: str) -> bool:
        """Say whether the table called *name* has been created."""
        return self._translated(name, "opened", lambda: DeltaTable.is_deltatable(self.table_uri(name)))

    def scan(self, name: str) -> pl.LazyFrame:
        """Return the table called *name* as a lazy frame in no particular order; an absent table is an empty frame."""
        table = TABLES[name]
        if not self.exists(name):
            return pl.LazyFrame(schema=table.schema)
        if not self._fits(name):
            mend = "it needs that version" if table.append_only else "run `shiftlog rebuild`"
            raise SchemaError(f"table {name} in {self.uri} was written by another version of shiftlog; {mend}")
        return self._opened(name)

    def _opened(self, name: str) -> pl.LazyFrame:
        """Return a table as it is stored.

        delta-rs tells paths percent-encoded and polars takes them literally, so files with such a path are read by their own.
        """
        files = self._translated(name, "opened", lambda: DeltaTable(self.table_uri(name)).file_uris())
        if self.local and any("%" in file for file in files):
            return pl.scan_parquet([unquote(file) for file in files], glob=False)
        return self._translated(name, "opened", lambda: pl.scan_delta(self.table_uri(name)))

    def _fits(self, name: str) -> bool:
        """Say whether a stored table has the schema of this version."""
        stored = self._translated(name, "opened", lambda: self._opened(name).collect_schema())
        return stored == TABLES[name].schema

    def read(self, name: str) -> pl.DataFrame:
        """Return the whole table called *name*, ordered by its order columns."""
        return self.collect(name, self.scan(name).sort(TABLES[name].order, maintain_order=True))

    def collect(self, name: str, frame: pl.LazyFrame) -> pl.DataFrame:
        """Return what *frame*, a scan of the table called *name*, gives; raises StoreError where a data file cannot be read."""
        return self._translated(name, "read", lambda: frame.collect())

    def count(self, name: str) -> int:
        """Return how many rows the table called *name* has."""
        return int(self.collect(name, self.scan(name).select(pl.len())).item())

    def version(self, name: str) -> int | None:
        """Return the Delta version of the table called *name*, or None where it does not exist."""
        if not self.exists(name):
            return None
        return int(self._translated(name, "opened", lambda: DeltaTable(self.table_uri(name)).version()))

    def overwrite(self, name: str, frame: pl.DataFrame, up_to: int) -> None:
        """Replace the projection called *name* by *frame*, ordered by the table's order columns.

        *up_to* is the log sequence that the frame follows from; it is kept with the commit.
        """
        table = TABLES[name]
        if table.append_only:
            raise StoreError(f"table {name} is append-only and cannot be replaced")
        _check(table, frame)
        arrow = _arrow(frame.sort(table.order, maintain_order=True))
        properties = CommitProperties(custom_metadata={UP_TO: str(up_to)})
        self._won(
            name,
            lambda: write_deltalake(
                self.table_uri(name),
                arrow,
                mode="overwrite",
                schema_mode="overwrite",
                name=name,
                description=table.meaning,
                commit_properties=properties,
            ),
        )

    def up_to(self, name: str) -> int | None:
        """Return the log sequence that the projection called *name* follows from.

        None where it must be built: it is not there, or another version wrote it with another schema.
        """
        if not self.exists(name) or not self._fits(name):
            return None
        history = self._translated(name, "opened", lambda: DeltaTable(self.table_uri(name)).history(1))
        return int(history[0][UP_TO]) if history and UP_TO in history[0] else None

    def append_fenced(self, name: str, build: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Append what *build* returns, and return it; nobody else can have committed between its reads and our commit.

        *build* is called again after every lost race, so it must read the table afresh. An empty frame commits nothing.
        Raises ConflictError after ATTEMPTS lost races.
        """
        table = TABLES[name]
        self._create(table)

        def attempt() -> pl.DataFrame:
            delta = DeltaTable(self.table_uri(name))  # before the reads: a later commit of somebody else then makes ours fail
            frame = build()
            if not frame.is_empty():
                _check(table, frame)
                fence = (delta.transaction_version(FENCE) or 0) + 1
                properties = CommitProperties(app_transactions=[Transaction(FENCE, fence)], max_commit_retries=0)
                write_deltalake(delta, _arrow(frame), mode="append", commit_properties=properties)
            return frame

        return self._won(name, attempt)

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

    def _create(self, table: Table) -> None:
        if self.exists(table.name):
            return
        if self.local:
            self._translated(table.name, "created", lambda: Path(self.uri).mkdir(parents=True, exist_ok=True))
        settings = LOG_SETTINGS if table.append_only else {}
        try:
            DeltaTable.create(
                self.table_uri(table.name),
                schema=_arrow(table.schema.to_frame()).schema,
                mode="ignore",
                name=table.name,
                description=table.meaning,
                configuration=settings,
            )
        except CommitFailedError:  # another writer created it in the same moment
            pass
        except Exception as error:
            if not DeltaTable.is_deltatable(self.table_uri(table.name)):
                raise self._explained(table.name, "created", error) from error

    def _translated(self, name: str, verb: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except ShiftlogError:
            raise
        except (Exception, PanicException) as error:  # polars panics, which is no Exception, where a data file is cut off
            raise self._explained(name, verb, error) from error

    def _explained(self, name: str, verb: str, error: BaseException) -> StoreError:
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, TableNotFoundError):
            return StoreError(f"table {name} is not in {self.uri}; run `shiftlog ingest` first")
        hint = "" if isinstance(error, DeltaError) else f" ({type(error).__name__})"
        return StoreError(f"table {name} in {self.uri} cannot be {verb}: {detail[:300]}{hint}")


def _check_folder(folder: Path) -> None:
    """Raise InputError for a place that is no folder, or whose name delta-rs takes for another one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--warehouse {folder}: is a file; name a folder")
    path = str(folder.absolute())
    if wrong := sorted({character for character in path if character in UNUSABLE or not character.isprintable()}):
        raise InputError(f"--warehouse {folder}: tables cannot lie below a folder with {wrong[0]!r} in its name; name another")


def _check(table: Table, frame: pl.DataFrame) -> None:
    """Raise SchemaError where *frame* has not the exact schema of *table*: names, types and order."""
    if frame.schema == table.schema:
        return
    wrong = [
        f"{name}: {dtype} given, {table.schema.get(name)} wanted"
        for name, dtype in frame.schema.items()
        if table.schema.get(name) != dtype
    ]
    missing = [name for name in table.schema if name not in frame.schema]
    order = [] if wrong or missing else ["columns are in another order"]
    raise SchemaError(f"table {table.name}: " + "; ".join(wrong + [f"{name} is missing" for name in missing] + order))


def _arrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
