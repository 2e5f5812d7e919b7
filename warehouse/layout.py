"""How tables lie in files: properties, compression, sizes, and the exact schema that a frame must have.

delta-rs stores 7.9 as 7 in an integer column without a word, so nothing is written that is not of the table's schema; frames are
written as plain Arrow strings, so that every engine can read the files.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
from deltalake import ColumnProperties, WriterProperties

from warehouse.errors import SchemaError
from warehouse.schemas import REAL, Table

MEBIBYTE = 1024**2
TIERS = ((1 * MEBIBYTE, 20), (16 * MEBIBYTE, 40))
"""Files are merged up to this size once there are more than so many of less than half of it: few files, few rewrites."""
LARGE_FILE = 128 * MEBIBYTE
"""Size that `shiftlog compact` merges files up to."""
VACUUM_EVERY = 100
"""Commits of a projection between two looks for files that nobody needs."""
RETENTION = timedelta(hours=24)
"""How long replaced files of a projection stay for readers that opened it before; those of the log stay for good."""
ROW_GROUP = 25_000
"""Rows a group: small enough that a lookup by sequence or cell decodes little."""
CHECKPOINT_EVERY = 10
"""Commits between two checkpoints: to open a table, all commits since the last one are read, each a request or two."""
FOR_GOOD = "interval 3650 days"
SETTINGS = {
    True: {
        "delta.appendOnly": "true",
        "delta.logRetentionDuration": FOR_GOOD,
        "delta.deletedFileRetentionDuration": FOR_GOOD,
    },
    False: {"delta.logRetentionDuration": "interval 7 days"},
}
"""Table properties, by whether the table is append-only."""


def properties(table: Table) -> dict[str, str]:
    """Return the properties of a new table."""
    indexed = {"delta.dataSkippingStatsColumns": ",".join(table.indexed)} if table.indexed else {}
    return SETTINGS[table.append_only] | indexed | {"delta.checkpointInterval": str(CHECKPOINT_EVERY)}


def writer(table: Table) -> WriterProperties:
    """Return how files are written: Zstandard's lowest level, on such rows no larger than level 3 and twice as fast (measured).

    Texts that never repeat get no dictionary; doubles are split by byte, so that their like bytes stand together.
    """
    plain = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
    split = ColumnProperties(dictionary_enabled=False, encoding="BYTE_STREAM_SPLIT")
    columns = {column.name: plain for column in table.columns if column.name in table.unique}
    columns |= {column.name: split for column in table.columns if column.dtype == REAL}
    return WriterProperties(
        compression="ZSTD", compression_level=1, max_row_group_size=ROW_GROUP, column_properties=columns or None
    )


def check_schema(table: Table, frame: pl.DataFrame) -> None:
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


def to_arrow(frame: pl.DataFrame) -> Any:
    """Return a frame as an Arrow table of types that every reader knows."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
