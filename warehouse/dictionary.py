"""The data dictionary: every table and column with its meaning and unit, as Markdown (`docs/tables.md`)."""

from __future__ import annotations

from warehouse.schemas import TABLES, Table


def markdown() -> str:
    """Return the dictionary of all tables; `python -m warehouse.dictionary > docs/tables.md` writes it."""
    head = "# Tables\n\nWritten by `python -m warehouse.dictionary` from `warehouse/schemas.py`. Times are UTC instants.\n"
    return "\n".join([head, *(_table(table) for table in TABLES.values())])


def _table(table: Table) -> str:
    rows = [f"| `{column.name}` | {column.dtype} | {column.meaning.replace('|', '&#124;')} |" for column in table.columns]
    order = ", ".join(f"`{name}`" for name in table.order)
    return "\n".join(
        [f"## {table.name}\n\n{table.meaning}; ordered by {order}.\n", "| column | type | meaning |", "|---|---|---|", *rows, ""]
    )


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
