"""Definitions of metrics (`warehouse/data/metrics.toml`), and which format writes which of them under which name.

Belongs here: joining the definitions with the formats' dictionaries. Does not: the definitions, the mapping.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pipelines.ingest import formats
from pipelines.ingest.reading import Field
from warehouse.schemas import STATISTICS


@dataclass(frozen=True)
class Definition:
    """One metric: what it is and where it stands (`family` and `column`: in columns of `points`, else in `metrics_other`)."""

    name: str
    title: str
    unit: str
    better: str
    definition: str
    family: bool = False
    column: bool = False
    first_token: bool | None = None
    token_counter: str | None = None
    since: str | None = None

    @property
    def place(self) -> str:
        """Where in `points` it stands."""
        if self.column:
            return self.name
        return f"{self.name}_*" if self.family else f"metrics_other: {self.name}"


@cache
def definitions() -> dict[str, Definition]:
    """Return every definition by name."""
    table: dict[str, Any] = tomllib.loads(files("warehouse").joinpath("data/metrics.toml").read_text("utf-8"))
    return {name: Definition(name, **entry) for name, entry in table.items()}


_STATISTIC = re.compile(rf"(.+)_(\*|{'|'.join((*STATISTICS, 'p1', 'p5', 'p10', 'p25', 'p50', 'p75', 'min', 'max', 'sum'))})")


def defined_by(becomes: str) -> Definition | None:
    """Return the definition that a field's `becomes` names: by its name, or by its name and a statistic."""
    known = definitions()
    if becomes in known:
        return known[becomes]
    match = _STATISTIC.fullmatch(becomes)
    return known.get(match[1]) if match else None


def sources(name: str) -> Iterator[tuple[str, Field]]:
    """Yield the format and the field of every record field that is a metric called *name*."""
    for record_format in formats.FORMATS:
        for field in record_format.dictionary.fields:
            found = map(defined_by, field.becomes.split(", "))
            if any(own is not None and own.name == name for own in found):
                yield record_format.name, field
