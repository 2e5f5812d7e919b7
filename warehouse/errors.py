"""Every error that shiftlog raises on purpose; each message says what to do next.

ShiftlogError
├── InputError        something the user gave cannot be used (exit 2)
├── StoreError        a table cannot be read or written
│   ├── SchemaError   a frame does not have a table's exact schema
│   └── ConflictError other writers kept winning the commit
├── QueryError        a SQL statement was refused or failed
└── UpstreamError     a git repository or an upstream file cannot be read
"""


class ShiftlogError(Exception):
    """Base of all errors that are shown to the user as one line."""

    exit_code = 1


class InputError(ShiftlogError):
    """What the user gave cannot be used; the message names the file, the field and the fix."""

    exit_code = 2


class StoreError(ShiftlogError):
    """A table of the warehouse cannot be read or written."""


class SchemaError(StoreError):
    """A frame does not match the schema of the table that it is meant for."""


class ConflictError(StoreError):
    """Other writers committed first, every time that we tried."""


class QueryError(ShiftlogError):
    """A SQL statement was refused, or DuckDB could not run it."""


class UpstreamError(ShiftlogError):
    """A git repository or an upstream file cannot be read."""
