"""Many records to the columns of `points` that follow from the records alone, quickly and by the very rule of their format.

A format's `read` is the definition. Records of one sweep share all but their numbers, so `read` is asked once for each way in
which a record is set up (the fields that its format's `Split` calls setup), and the numbers of all records alike are taken as a
matrix. Whatever is not plain (a number written as text, a value out of bounds, a mixture of types) goes through `read` itself.

Belongs here: mapping at speed. Does not: what a field means (the format's module), the arithmetic (`matrix`), run and time
(`pipelines.fold`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import orjson
import polars as pl

from pipelines.ingest import formats
from pipelines.ingest.columns import SCHEMA, Matrix
from pipelines.ingest.matrix import Plan, plan_of
from pipelines.ingest.parts import Part, Setup, assembled
from pipelines.ingest.reading import Given, Reading, RecordFormat, Split
from pipelines.ingest.singles import Singles
from warehouse.errors import InputError

T = TypeVar("T")
MAX_SETUPS = 100_000
"""Setups that are remembered; real fleets have a few thousand."""
MAX_SHAPES = 10_000
"""Sets and orders of keys that are remembered; real fleets have a few dozen."""
MANY = 32
"""Records alike from which a matrix pays; making one costs as much as reading some of them one by one."""
MAX_IMAGE = 512
"""Longest image text that is taken as it is, characters."""


@dataclass
class _Group:
    """Records with one set of keys and one variant: their places, setups, images, numbers."""

    plan: Plan
    rows: list[int] = field(default_factory=list)
    setups: list[int] = field(default_factory=list)
    images: list[str | None] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)
    clocks: list[datetime | None] = field(default_factory=list)


@dataclass
class Mapped:
    """Records that were looked at: what could not be read, by place; start times that records state; names not in the vocabulary.

    `frame()` gives the good ones as rows of SCHEMA, in the order given.
    """

    faults: dict[int, str] = field(default_factory=dict)
    clocks: dict[int, datetime] = field(default_factory=dict)
    declared: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Fields that were not the record's own (`Reading.declared`), by place."""
    unknown_names: Counter[tuple[str, str]] = field(default_factory=Counter)
    parts: list[Part] = field(default_factory=list)
    singles: Singles = field(default_factory=Singles)
    setups: list[Setup | None] = field(default_factory=list)

    def frame(self) -> pl.DataFrame:
        """Return the records that could be read as rows of SCHEMA."""
        frames = [assembled(self.parts, self.setups)] if self.parts else []
        frames += [self.singles.frame()] if self.singles.rows else []
        if not frames:
            return SCHEMA.to_frame()
        frame = pl.concat(frames)
        return frame if frame["row"].is_sorted() else frame.sort("row")


class Mapper:
    """Maps records of one format; remembers the setups it has met, so one is kept for many batches."""

    def __init__(self, record_format: RecordFormat) -> None:
        self.format = record_format
        self._forget()

    def _forget(self) -> None:
        self._plans: dict[tuple[Hashable, ...], Plan | None] = {}
        self._eras: dict[Hashable, int] = {}
        self._known: dict[tuple[Hashable, ...], int] = {}
        self._setups: list[Setup | None] = []

    def map(self, records: Sequence[dict[str, Any]], given: Sequence[Given]) -> Mapped:
        """Return *records*, with what else is known of each, as rows; raises nothing for a record that is none."""
        if len(self._setups) > MAX_SETUPS or len(self._plans) > MAX_SHAPES:
            self._forget()
        mapped = Mapped(setups=self._setups)
        split = self.format.split
        groups, slow = self._grouped(split, records, given) if split else ([], list(range(len(records))))
        for group in groups:
            slow += self._take(group, records, given, mapped) if len(group.rows) >= MANY else group.rows
        if slow:
            self._one_by_one(sorted(slow), records, given, mapped)
        return mapped

    def _grouped(self, split: Split, records: Sequence[dict[str, Any]], given: Sequence[Given]) -> tuple[list[_Group], list[int]]:
        """Return the records by their keys, and the places of those that must be read one by one."""
        groups: dict[tuple[Hashable, ...], _Group | None] = {}
        slow: list[int] = []
        eras = {id(known): self._era(split, known) for known in {id(known): known for known in given}.values()}
        alike: tuple[Hashable, ...] | None = None
        group: _Group | None = None
        variant_of = split.variant or _no_variant
        for row, record in enumerate(records):
            key = (tuple(record), variant_of(record))
            try:
                if key != alike:  # records of one file are alike as a rule
                    if key not in groups:
                        plan = self._plan(split, key)
                        groups[key] = _Group(plan) if plan else None
                    alike, group = key, groups[key]
                if group is None:
                    slow.append(row)
                    continue
                plan = group.plan
                picture = record[plan.image] if plan.image else None
                clock = plan.clock_of(record, given[row]) if plan.clock_of else None
                setup = self._setup(plan, eras[id(given[row])], picture, plan.setup_of(record))
            except (InputError, TypeError):  # TypeError: what orjson cannot write or nothing can hash
                slow.append(row)
                continue
            group.rows.append(row)
            group.setups.append(setup)
            group.images.append(picture)
            group.clocks.append(clock)
            group.values.append(plan.values_of(record))
        return [group for group in groups.values() if group and group.rows], slow

    def _plan(self, split: Split, key: tuple[Any, ...]) -> Plan | None:
        if key not in self._plans:
            self._plans[key] = plan_of(len(self._plans), split, *key)
        return self._plans[key]

    def _era(self, split: Split, given: Given) -> int:
        """Return a number for what else than the record its setup follows from."""
        era = (split.era(given.started_at), tuple(sorted(given.declared.items())), tuple(sorted(given.named.items())))
        return self._eras.setdefault(era, len(self._eras))

    def _setup(self, plan: Plan, era: int, picture: Any, values: tuple[Any, ...]) -> int:
        """Return the place of a setup; raises TypeError where an image or a value is not plain."""
        if picture is not None and not (type(picture) is str and 0 < len(picture) <= MAX_IMAGE):
            raise TypeError("no plain image")
        key = (plan.number, era, picture is None, orjson.dumps(values))
        setup = self._known.get(key)
        if setup is None:
            setup = self._known[key] = len(self._setups)
            self._setups.append(None)
        return setup

    def _take(self, group: _Group, records: Sequence[dict[str, Any]], given: Sequence[Given], mapped: Mapped) -> list[int]:
        """Take the plain records of a group as a part of *mapped*; return the places of those that are not plain."""
        matrix, flags = group.plan.numbers(group.values)
        good: list[bool] = flags.tolist()
        tried: set[int] = set()
        for place, setup in enumerate(group.setups):
            if good[place] and self._setups[setup] is None:
                good[place] = setup not in tried and self._learn(group, place, records, given)
                tried.add(setup)
        kept = [place for place, fine in enumerate(good) if fine]
        if kept:
            part = self._part(group, matrix if len(kept) == len(good) else matrix[:, kept], kept)
            self._tell(part, mapped)
            mapped.parts.append(part)
        return [row for row, fine in zip(group.rows, good, strict=True) if not fine]

    def _learn(self, group: _Group, place: int, records: Sequence[dict[str, Any]], given: Sequence[Given]) -> bool:
        """Read a record whose numbers are plain to know its setup; return False where it cannot be read."""
        row = group.rows[place]
        try:
            reading: Reading = formats.read(self.format, records[row], given[row])
        except InputError:
            return False
        self._setups[group.setups[place]] = Setup.of(reading, group.plan, group.images[place] is not None)
        return True

    def _part(self, group: _Group, matrix: Matrix, kept: list[int]) -> Part:
        def of(values: list[T]) -> list[T]:
            return values if len(kept) == len(values) else [values[place] for place in kept]

        setups = of(group.setups)
        gpus = np.array([self._setups[setup].gpus for setup in setups]) if group.plan.needs_gpus else None  # type: ignore[union-attr]
        taken = group.plan.taken(matrix, gpus)
        return Part(group.plan, of(group.rows), setups, of(group.images), of(group.clocks), taken)

    def _tell(self, part: Part, mapped: Mapped) -> None:
        """Say of every record what is no column."""
        if part.plan.clock_of:
            mapped.clocks.update((row, clock) for row, clock in zip(part.rows, part.clocks, strict=True) if clock is not None)
        shared = {setup: known for setup in set(part.setups) if (known := self._setups[setup])}
        if any(known.declared for known in shared.values()):
            fields = ((row, shared[setup].declared) for row, setup in zip(part.rows, part.setups, strict=True))
            mapped.declared.update((row, declared) for row, declared in fields if declared)
        if any(known.unknown for known in shared.values()):
            for setup, number in Counter(part.setups).items():
                mapped.unknown_names.update(dict.fromkeys(shared[setup].unknown, number))

    def _one_by_one(self, rows: list[int], records: Sequence[dict[str, Any]], given: Sequence[Given], mapped: Mapped) -> None:
        for row in rows:
            try:
                reading: Reading = formats.read(self.format, records[row], given[row])
            except InputError as error:
                mapped.faults[row] = str(error)
                continue
            mapped.unknown_names.update(reading.unknown_names)
            if reading.measured_at is not None:
                mapped.clocks[row] = reading.measured_at
            if reading.declared:
                mapped.declared[row] = reading.declared
            mapped.singles.add(row, reading)


def _no_variant(_record: dict[str, Any]) -> None:
    return None
