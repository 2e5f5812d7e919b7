"""What tells one measurement from another, however it was written down: the cell, the build and the numbers to the last digit.

An artifact's row, the answer of an API and a second upload of it are different records of one measurement. Only numbers that
formats take over unchanged count. A record with few of them, or one that the user declared something for, is told by its own
hash: what is declared may be corrected, and then it is the same measurement all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from warehouse.canonical import text_id
from warehouse.schemas import METRIC_COLUMNS

ENOUGH = 8
"""Metrics from which equal numbers are no chance: they have some fifteen digits each."""
DIGITS = 15
"""Hex digits of a hash that make a key: 60 bits."""
_Words = np.ndarray[Any, np.dtype[np.uint64]]
_MASK = np.uint64((1 << (4 * DIGITS)) - 1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_TAKEN_OVER = tuple(
    column.name for column in METRIC_COLUMNS if not column.name.startswith(("intvty_", "steady_"))
)  # the others are worked out from these, by us or by the tool


def key(points: pl.DataFrame) -> pl.Series:
    """Return the key of every row of *points* (record_hash, cell_id, build_id, metrics); no collision is worth fearing."""
    if points.is_empty():
        return pl.Series("measurement_key", [], dtype=pl.Int64)
    numbers = points.select(_TAKEN_OVER)
    plenty = numbers.select(pl.sum_horizontal(pl.all().is_not_null())).to_series() >= ENOUGH
    enough = plenty & (points["declared_fields"].list.len() == 0)
    own = points["record_hash"].str.slice(0, DIGITS).str.to_integer(base=16, dtype=pl.Int64)
    with np.errstate(over="ignore"):
        mixed = _mixed(points, numbers)
    measured = pl.Series("measured", (mixed & _MASK).astype(np.int64))
    return pl.select(pl.when(enough).then(measured).otherwise(own).alias("measurement_key")).to_series()


def _mixed(points: pl.DataFrame, numbers: pl.DataFrame) -> _Words:
    """Return 64 bits a row that every bit of its identity and numbers changes (multiply and shift, as in splitmix64)."""
    state = _bits(points["cell_id"].str.slice(0, DIGITS).str.to_integer(base=16, dtype=pl.Int64))
    state = _step(state, _bits(points["build_id"].replace_strict(_numbered(points["build_id"]), return_dtype=pl.Int64)))
    for column in numbers:
        state = _step(state, _bits(column.fill_null(0.0).reinterpret(signed=True)))
    return state


def _step(state: _Words, value: _Words) -> _Words:
    mixed: _Words = (state ^ value) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)


def _bits(column: pl.Series) -> _Words:
    words: _Words = column.to_numpy().view(np.uint64)
    return words


def _numbered(texts: pl.Series) -> dict[str, int]:
    """Return a number for every distinct text."""
    return {text: int(text_id(text)[:DIGITS], 16) for text in texts.unique().to_list()}
