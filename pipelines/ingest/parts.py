"""Records that were taken apart many at once, as rows: what their setups share is gathered, their numbers are put side by side.

Belongs here: parts to one frame. Does not: which records make a part (`mapping`), their numbers (`matrix`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from pipelines.ingest.columns import (
    BUILD,
    COUNTS,
    METRIC_NAMES,
    SCHEMA,
    SETUP,
    Matrix,
    build_of,
    clock_column,
    finished,
    listed,
    schema_of,
    setup_columns,
)
from pipelines.ingest.matrix import Plan
from pipelines.ingest.reading import Reading

T = TypeVar("T")


class Setup(NamedTuple):
    """What all records of one setup share: SETUP columns and those of COUNTS that are not taken from numbers, and more."""

    columns: tuple[Any, ...]
    build: tuple[str | None, ...]
    """Image where it is no key of its own or null, engine, version, commit."""
    gpus: float
    declared: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reading: Reading, plan: Plan, has_image: bool) -> Setup:
        """Return the setup of a reading; *has_image*: its record has an image of its own, which is no part of the setup."""
        return cls(
            (*setup_columns(reading), *(None if name in plan.counts else getattr(reading, name) for name in COUNTS)),
            (None if has_image else reading.image, reading.identity["engine"], reading.engine_version, reading.engine_commit),
            reading.num_gpus or np.nan,
            reading.declared,
            reading.unknown_names,
        )


@dataclass(frozen=True)
class Part:
    """The plain records of a group, and the numbers of their readings by name."""

    plan: Plan
    rows: list[int]
    setups: list[int]
    images: list[str | None]
    clocks: list[datetime | None]
    taken: dict[str, Matrix]


def assembled(parts: list[Part], setups: Sequence[Setup | None]) -> pl.DataFrame:
    """Return the records of all parts as rows of SCHEMA; every column is made once for all of them."""

    def of_all(values: Callable[[Part], Iterable[T]]) -> list[T]:
        return [value for part in parts for value in values(part)]

    indices = of_all(lambda part: part.setups)
    shared = _gathered(setups, indices)
    counts = _numbers(parts, COUNTS).cast(schema_of(*COUNTS))
    frame = shared.with_columns(pl.coalesce(counts[name], name).alias(name) for name in COUNTS).hstack(
        [
            *_numbers(parts, METRIC_NAMES),
            *_builds([known.build for index in indices if (known := setups[index])], of_all(lambda part: part.images)),
            pl.concat([_others(part) for part in parts]),
            pl.Series("row", of_all(lambda part: part.rows), dtype=pl.Int64),
            clock_column(of_all(lambda part: part.clocks)),
        ]
    )
    return finished(frame)


def _gathered(setups: Sequence[Setup | None], indices: list[int]) -> pl.DataFrame:
    """Return SETUP and COUNTS columns of the setups at *indices*; each distinct one is turned into columns once."""
    distinct = sorted(set(indices))
    place = {index: i for i, index in enumerate(distinct)}
    known = [setup.columns for index in distinct if (setup := setups[index])]
    return pl.DataFrame(known, schema=schema_of(*SETUP, *COUNTS), orient="row")[[place[index] for index in indices]]


def _builds(bases: list[tuple[str | None, ...]], images: list[str | None]) -> pl.DataFrame:
    """Return the BUILD columns of records: by their own image where they have one, else by what their setup tells."""
    pairs = list(zip(bases, images, strict=True))
    distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    found = [build_of(base[0] if image is None else image, *base[1:]) for base, image in distinct]
    return pl.DataFrame(found, schema=schema_of(*BUILD), orient="row")[[distinct[pair] for pair in pairs]]


def _numbers(parts: list[Part], names: Sequence[str]) -> pl.DataFrame:
    """Return the numbers *names* of all records as columns; what is not taken is null."""
    rows = sum(len(part.rows) for part in parts)
    nothing = pl.Series("", [None], dtype=pl.Float64).new_from_index(0, rows)
    columns = {}
    for name in names:
        found = [part.taken.get(name) for part in parts]
        if any(values is not None for values in found):
            whole = [np.full(len(part.rows), np.nan) if own is None else own for part, own in zip(parts, found, strict=True)]
            columns[name] = pl.Series(name, np.concatenate(whole), nan_to_null=True)
        else:
            columns[name] = nothing.alias(name)
    return pl.DataFrame(columns)


def _others(part: Part) -> pl.Series:
    """Return one list of (name, value) a record, by name, those that are null left out."""
    names = [name for name in part.plan.others if not np.isnan(part.taken[name]).all()]
    if not names:
        return pl.Series("metrics_other", [[]], dtype=SCHEMA["metrics_other"]).new_from_index(0, len(part.rows))
    values = np.stack([part.taken[name] for name in names], axis=1)
    there = ~np.isnan(values)
    of = np.broadcast_to(np.arange(len(names)), values.shape)
    return listed(names, of[there], values[there], there.sum(axis=1))
