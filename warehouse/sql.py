"""Read-only SQL over the tables: DuckDB's dialect, locked.

File access, extensions and settings are switched off for good; then the tables that a statement names are registered as Arrow
(a large one as a data set, from which DuckDB takes the columns and rows that it needs), and the statement runs. Times are UTC and
shown without a zone; the zone of the session is UTC, whatever that of the machine is. One statement, and
only one that reads: SELECT, WITH, VALUES, FROM, DESCRIBE, SHOW, EXPLAIN.
"""

from __future__ import annotations

import duckdb
import polars as pl
from polars.exceptions import PanicException

from warehouse.errors import QueryError
from warehouse.schemas import TABLES, TIME
from warehouse.store import Store

READING = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
"""DESCRIBE and SHOW are SELECT to DuckDB's parser."""
VIEWS = {"all_points": "points", "all_runs": "runs", "all_evals": "evals"}
"""Names under which a table is seen with what was retracted."""
SMALL = 100_000
"""Rows up to which a table is loaded whole and in order before a statement runs."""
MAX_QUERY = 100_000
"""Longest statement, characters."""
LOCK = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET allow_community_extensions = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET lock_configuration = true",
)


def query(store: Store, statement: str) -> pl.DataFrame:
    """Return what one reading *statement* gives; raises QueryError with DuckDB's first line where it does not run."""
    if len(statement) > MAX_QUERY:
        raise QueryError(f"statement of {len(statement)} characters; at most {MAX_QUERY} are read")
    connection = duckdb.connect(":memory:")
    try:
        for setting in LOCK:  # first of all: naming the tables of a statement binds it, and binding opens files
            connection.execute(setting)
        _check(connection, statement)
        for name in sorted(_named(connection, statement)):
            _offer(connection, store, name)
        answer: pl.DataFrame = connection.sql(statement).pl()
        return answer
    except duckdb.Error as error:
        raise QueryError(_explained(error)) from error
    except (pl.exceptions.PolarsError, PanicException) as error:
        raise QueryError(f"a column of the answer has a type that cannot be shown; cast it to VARCHAR ({error})"[:300]) from error
    except AttributeError as error:  # DuckDB returns no relation for a statement without rows
        raise QueryError("the statement returns no rows to show") from error
    finally:
        connection.close()


def _offer(connection: duckdb.DuckDBPyConnection, store: Store, name: str) -> None:
    """Let a statement see a table: a small one in its order, a large one as it is stored, of which it reads what it needs."""
    table = VIEWS.get(name, name)
    live = "retraction" in TABLES[table].schema and name == table
    rows = store.rows(table)
    if rows <= SMALL:
        frame = store.read(table)
        shown = frame.filter(pl.col("retraction").is_null()) if live else frame
        connection.register(name, _zoneless(shown).to_arrow(compat_level=pl.CompatLevel.oldest()))
        return
    stored = f"stored_{name}"
    connection.register(stored, store.dataset(table))
    times = [column.name for column in TABLES[table].columns if column.dtype == TIME]
    zoneless = ", ".join(f"CAST({column} AS TIMESTAMP) AS {column}" for column in times)
    where = " WHERE retraction IS NULL" if live else ""
    connection.execute(f"CREATE VIEW {name} AS SELECT * REPLACE ({zoneless}) FROM {stored}{where}")  # noqa: S608 our own names


def _zoneless(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(name).dt.replace_time_zone(None) for name, dtype in frame.schema.items() if dtype == TIME)


def _check(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    statements = connection.extract_statements(statement)
    if len(statements) != 1:
        raise QueryError(f"one statement at a time (found {len(statements)})")
    if statements[0].type not in READING:
        raise QueryError(f"only reading statements are allowed (found {statements[0].type.name}); start with SELECT or WITH")


def _named(connection: duckdb.DuckDBPyConnection, statement: str) -> set[str]:
    """Return the warehouse tables that a statement names; all of them where DuckDB cannot tell (DESCRIBE, SHOW)."""
    try:
        named = {name.lower() for name in connection.get_table_names(statement)} & (TABLES.keys() | VIEWS.keys())
    except duckdb.Error:
        named = set()
    return named or {name for name in (*TABLES, *VIEWS) if name in statement.lower() or "show" in statement.lower()}


def _explained(error: duckdb.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    hint = next((line for line in lines[1:] if line.startswith(("LINE", "Did you mean", "Candidate"))), "")
    tables = f" Tables: {', '.join((*TABLES, *VIEWS))}." if "does not exist" in text and "Table" in text else ""
    return " ".join(part for part in (text, hint) if part)[:600] + tables
