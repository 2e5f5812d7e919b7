"""Readings that were made one by one, as columns.

Belongs here: many readings to one frame. Does not: which records are read one by one (`mapping`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from pipelines.ingest.columns import (
    BUILD,
    COUNTS,
    METRIC_NAMES,
    SETUP,
    build_of,
    clock_column,
    finished,
    listed,
    schema_of,
    setup_columns,
)
from pipelines.ingest.reading import Reading


class Singles:
    """Gathers readings; what many share is kept once."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._clocks: list[datetime | None] = []
        self._distinct: dict[tuple[Any, ...], int] = {}
        self._places: list[int] = []
        self._numbers: list[tuple[float | None, ...]] = []
        self._counts: list[tuple[float | None, ...]] = []
        self._other: list[dict[str, float]] = []

    def add(self, row: int, reading: Reading) -> None:
        """Take the reading of the record at place *row*; places are given in order."""
        build = build_of(reading.image, reading.identity["engine"], reading.engine_version, reading.engine_commit)
        key = (*setup_columns(reading), *build)
        self.rows.append(row)
        self._clocks.append(reading.measured_at)
        self._places.append(self._distinct.setdefault(key, len(self._distinct)))
        self._numbers.append(tuple(map(reading.metrics.get, METRIC_NAMES)))
        self._counts.append(tuple(getattr(reading, name) for name in COUNTS))
        self._other.append(reading.metrics_other)

    def frame(self) -> pl.DataFrame:
        """Return the readings as rows with the columns of SCHEMA."""
        setups = pl.DataFrame(list(self._distinct), schema=schema_of(*SETUP, *BUILD), orient="row")
        numbers = pl.DataFrame(np.array(self._numbers, dtype=np.float64), schema=list(METRIC_NAMES), orient="row")
        counts = pl.DataFrame(np.array(self._counts, dtype=np.float64), schema=list(COUNTS), orient="row")
        return finished(
            setups[self._places].hstack(
                [
                    *numbers.fill_nan(None),
                    *counts.fill_nan(None).cast(schema_of(*COUNTS)),
                    _others(self._other),
                    pl.Series("row", self.rows, dtype=pl.Int64),
                    clock_column(self._clocks),
                ]
            )
        )


def _others(others: list[dict[str, float]]) -> pl.Series:
    """Return the numbers without a column of each reading, by name."""
    ordered = [sorted(other.items()) for other in others]
    places: dict[str, int] = {}
    of = [places.setdefault(name, len(places)) for other in ordered for name, _value in other]
    values = np.array([value for other in ordered for _name, value in other], dtype=np.float64)
    return listed(list(places), np.array(of, dtype=np.int64), values, np.array([len(other) for other in ordered], dtype=np.int64))
