"""The numbers of many records with one set of keys as a matrix: which records are plain, and what is taken from their numbers.

What a format's `Parts` says is done here for all records at once, with the arithmetic of a single number, so that every bit is
the same. Belongs here: arithmetic. Does not: which records are alike (`mapping`), what a key means (the format's module).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from pipelines.ingest.columns import COUNTS, METRIC_NAMES, Matrix
from pipelines.ingest.numbers import LEAST_METRIC
from pipelines.ingest.reading import Parts, Split

Flags = np.ndarray[Any, np.dtype[np.bool_]]
_LARGEST = float(np.finfo(np.float64).max)
_NUMBERS = {int, float, type(None)}
_NUMBER = {int, float}


class Plan:
    """How records with one set of keys and one variant are taken apart; the *number* tells it from others."""

    def __init__(self, number: int, split: Split, shape: Sequence[str], parts: Parts) -> None:
        musts = tuple(parts.numbers.values())
        self.number = number
        self.setup_of = _getter(tuple(sorted(key for key in shape if key in split.setup)))
        self.values_of = _getter(tuple(parts.numbers))
        self.clock_of = None if split.clocks.isdisjoint(shape) else split.clock_of
        self.image = split.image if split.image in shape else None
        self.needs_gpus = any(part.per_gpu for part in parts.taken)
        names = {part.name for part in parts.taken if part.name is not None}
        self.metrics = tuple(name for name in METRIC_NAMES if name in names)
        self.counts = tuple(name for name in COUNTS if name in names)
        self.others = tuple(sorted(names.difference(METRIC_NAMES, COUNTS)))
        self._taken = parts.taken
        self._place = {key: place for place, key in enumerate(parts.numbers)}
        self._loose = [must.loose for must in musts]
        self._per = _column([must.per for must in musts])
        self._least = _column([-_LARGEST if must.loose else LEAST_METRIC for must in musts])
        self._largest = _column([_LARGEST if must.loose else must.largest for must in musts])
        self._nought = _column([must.nought for must in musts], np.bool_)
        self._null = _column([must.null for must in musts], np.bool_)
        self._whole = [place for place, must in enumerate(musts) if must.whole]

    def numbers(self, values: Sequence[tuple[Any, ...]]) -> tuple[Matrix, Flags]:
        """Return the numbers of records, a row a key, in the units of `Parts`, NaN for null; and which records are plain."""
        good = np.ones(len(values), dtype=np.bool_)
        columns = [self._plain(column, loose, good) for column, loose in zip(zip(*values, strict=True), self._loose, strict=True)]
        try:
            matrix = np.array(columns, dtype=np.float64).reshape(len(columns), len(values))
        except OverflowError:  # an integer that is no double
            return np.full((len(columns), len(values)), np.nan), np.zeros_like(good)
        matrix += 0.0  # canonical JSON knows no -0
        matrix /= self._per
        within = (matrix >= self._least) & (matrix <= self._largest)
        within |= (matrix == 0) & self._nought
        within |= np.isnan(matrix) & self._null
        good &= within.all(axis=0)
        for place in self._whole:
            good &= ~(matrix[place] != np.floor(matrix[place])) | np.isnan(matrix[place])
        for part in self._taken:
            if part.minus:
                good &= ~(matrix[self._place[part.key]] < matrix[self._place[part.minus]])
        return matrix, good

    @staticmethod
    def _plain(column: Sequence[Any], loose: bool, good: Flags) -> Sequence[Any]:
        """Return numbers and nulls of a key; records where it is something else are not *good*, unless it never is a number."""
        kinds = set(map(type, column))
        if kinds <= _NUMBERS:
            return column
        if not loose or kinds & _NUMBER:
            good &= [type(value) in _NUMBERS for value in column]
        return [value if type(value) in _NUMBERS else None for value in column]

    def taken(self, matrix: Matrix, gpus: Matrix | None) -> dict[str, Matrix]:
        """Return the numbers of readings by name, NaN where there is none; *gpus* are those of the setups."""
        found: dict[str, Matrix] = {}
        with np.errstate(all="ignore"):
            for part in self._taken:
                value = matrix[self._place[part.key]]
                value = value + matrix[self._place[part.plus]] if part.plus else value
                value = value - matrix[self._place[part.minus]] if part.minus else value
                value = value / matrix[self._place[part.over]] if part.over else value
                value = value / gpus if part.per_gpu and gpus is not None else value
                if part.name is not None:
                    found[part.name] = np.where(value == 0, np.nan, 1.0 / value) if part.inverse else value
        return found


def plan_of(number: int, split: Split, shape: Sequence[str], variant: Any) -> Plan | None:
    """Return how records with the keys of *shape* are taken apart; None where they must be read one by one."""
    parts = split.parts(shape, variant)
    if parts is None:
        return None
    names = [part.name for part in parts.taken if part.name is not None]
    loose = {part.name for part in parts.taken if parts.numbers[part.key].loose}
    if len(names) > len(set(names)) or not loose.isdisjoint((*METRIC_NAMES, *COUNTS)):
        return None  # two keys of one name, or a number without a column that is called like one
    return Plan(number, split, shape, parts)


def _getter(keys: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    """Return what takes the values of *keys* from a record, as a tuple however many they are."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda record: (record[keys[0]],)) if keys else (lambda _record: ())


def _column(values: Sequence[float], kind: type = np.float64) -> Any:
    return np.array(values, dtype=kind).reshape(len(values), 1)
