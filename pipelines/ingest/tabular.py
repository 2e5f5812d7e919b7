"""CSV from strangers as records: one object a row, keys from the header, all values texts; nothing of a field's meaning."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from pipelines.ingest.json_text import EXCERPT, Fault, Item

MAX_COLUMNS = 1000
MAX_CELL = 1_000_000
"""Longest cell, characters; the reader's own limit is lower and would stop a file at one long row."""


def header(text: str) -> list[str]:
    """Return the cells of the first row; empty where it is no CSV."""
    line = text[: 64 * 1024].lstrip("\ufeff").split("\n", 1)[0].rstrip("\r")
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])][:MAX_COLUMNS]
    except csv.Error:
        return []


def rows(text: str) -> Iterator[Item | Fault]:
    """Yield every row below the header as an object; a row with more or fewer cells is a fault of its own."""
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    names: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Fault(f"line {reader.line_num}", f"not CSV: {error}")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            if len(names) > MAX_COLUMNS or len(set(names)) < len(names):
                yield Fault("line 1", f"header of {len(names)} columns, some alike; {MAX_COLUMNS} different ones are read")
                return
        elif len(cells) != len(names):
            yield Fault(
                f"line {reader.line_num}", f"{len(cells)} cells, but the header has {len(names)}", ",".join(cells)[:EXCERPT]
            )
        else:
            yield Item(f"line {reader.line_num}", dict(zip(names, cells, strict=True)))
