"""Many records to the columns of `points` that follow from the records alone, quickly and by the very rule of their format.

A format's `read` is the definition. Records of one sweep share all but their metrics, so `read` is asked once for each way in
which a record is set up (the fields that its format's `Split` calls setup), and the metrics of all records alike are taken as a
matrix. Whatever is not plain (a number written as text, a value out of bounds, a mixture of types) goes through `read` itself.
A field that is null is a field that is missing.

Belongs here: mapping at speed. Does not: what a field means (the format's module), run and time (`pipelines.fold`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import orjson
import polars as pl

from pipelines.ingest.reading import MAX_OTHER, Reading, RecordFormat, Split
from warehouse import image
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.errors import InputError
from warehouse.image import ImageReference
from warehouse.schemas import METRIC_COLUMNS, METRICS, POINTS, TIME

T = TypeVar("T")
BUILD = ("build_id", "image_ref", "image_digest", "engine_version")
"""Columns that follow from the image."""
SETUP = (
    "cell_id",
    "curve_id",
    *IDENTITY_FIELDS,
    "concurrency",
    "num_gpus",
    "hardware_label",
    "model_source",
    "checkpoint",
    "recipe_fingerprint",
    "metric_definition",
)
"""Columns that follow from how a record is set up."""
Matrix = np.ndarray[Any, np.dtype[np.float64]]
_METRICS = tuple(column.name for column in METRIC_COLUMNS)
_PLACES = {name: place for place, name in enumerate(_METRICS)}
COLUMNS = (*SETUP, *BUILD, *_METRICS, "metrics_other")
SCHEMA = pl.Schema({"row": pl.Int64(), "clock": TIME, **{name: POINTS.schema[name] for name in COLUMNS}})
"""A mapped record: its place among those given, its own start time where it has one, its columns of `points`."""
MAX_SETUPS = 100_000
"""Setups that are remembered; real fleets have a few thousand."""
MAX_SHAPES = 10_000
"""Sets and orders of keys that are remembered; real fleets have a few dozen."""
MANY = 32
"""Records alike from which a matrix pays; making one costs as much as reading some sixty records one by one."""
MAX_IMAGE = 512
"""Longest image text that is taken as it is, characters."""
_NUMBERS = {int, float, type(None)}


@dataclass
class Mapped:
    """Records that were looked at: what could not be read, by place; start times that records state; names not in the vocabulary.

    `frame()` gives the good ones as rows of SCHEMA, in the order given.
    """

    faults: dict[int, str] = field(default_factory=dict)
    clocks: dict[int, datetime] = field(default_factory=dict)
    unknown_names: Counter[tuple[str, str]] = field(default_factory=Counter)
    plain: list[_Plain] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    setups: Sequence[tuple[Any, ...]] = ()

    def frame(self) -> pl.DataFrame:
        """Return the records that could be read as rows of SCHEMA."""
        if not self.others:
            return _assembled(self.plain, self.setups)
        others = _with_steady(_with_engine(pl.DataFrame(self.others, schema=SCHEMA)))
        return pl.concat([_assembled(self.plain, self.setups), others]).sort("row")


@dataclass(frozen=True)
class _Plan:
    """How records with one set of keys are taken apart."""

    shape: int
    setup: tuple[str, ...]
    metrics: tuple[str, ...]
    other: tuple[str, ...]
    setup_of: Callable[[dict[str, Any]], Any]
    values_of: Callable[[dict[str, Any]], Any]


@dataclass
class _Group:
    """Records with one set of keys: their places, the indices of their setups, the values of their metrics and other fields."""

    plan: _Plan
    rows: list[int] = field(default_factory=list)
    setups: list[int] = field(default_factory=list)
    images: list[str | None] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)
    clocks: list[datetime | None] = field(default_factory=list)


@dataclass(frozen=True)
class _Plain:
    """The plain records of a group: their numbers as a matrix (metrics first), which of its rows are good, the other names."""

    group: _Group
    columns: list[int]
    """Places of the metrics among all metrics."""
    matrix: Matrix
    good: np.ndarray[Any, np.dtype[np.bool_]]
    others: list[str]


class Mapper:
    """Maps records of one format; remembers the setups it has met, so one is kept for many batches."""

    def __init__(self, record_format: RecordFormat) -> None:
        self.format = record_format
        self._plans: dict[tuple[str, ...], _Plan | None] = {}
        self._known: dict[tuple[int, Hashable, bytes], int] = {}
        self._setups: list[tuple[Any, ...]] = []
        self._unknown: list[tuple[tuple[str, str], ...]] = []

    def map(self, records: Sequence[dict[str, Any]], started: Sequence[datetime]) -> Mapped:
        """Return *records*, each of a run that started at *started*, as rows; raises nothing for a record that is none."""
        if len(self._setups) > MAX_SETUPS or len(self._plans) > MAX_SHAPES:
            self._plans, self._known, self._setups, self._unknown = {}, {}, [], []
        mapped = Mapped(setups=self._setups)
        groups, slow = self._grouped(records, started, mapped)
        for group in groups:
            slow += self._matrix(group, mapped) if len(group.rows) >= MANY else group.rows
        if slow:
            self._one_by_one(sorted(slow), records, started, mapped)
        return mapped

    def _grouped(
        self, records: Sequence[dict[str, Any]], started: Sequence[datetime], mapped: Mapped
    ) -> tuple[list[_Group], list[int]]:
        """Return the records by their keys, and the places of those that must be read one by one."""
        split = self.format.split
        if split is None:
            return [], list(range(len(records)))
        groups: dict[tuple[str, ...], _Group | None] = {}
        slow: list[int] = []
        eras = {when: split.era(when) for when in set(started)}
        last: tuple[str, ...] | None = None
        group: _Group | None = None
        for row, record in enumerate(records):
            shape = tuple(record)
            if shape != last:  # records of one file are alike as a rule
                if shape not in groups:
                    plan = self._plan(split, shape)
                    groups[shape] = _Group(plan) if plan else None
                last, group = shape, groups[shape]
            picture = record.get(split.image)
            if group is None or not (picture is None or (type(picture) is str and 0 < len(picture) <= MAX_IMAGE)):
                slow.append(row)
                continue
            plan = group.plan
            try:
                key = (plan.shape, eras[started[row]], orjson.dumps(plan.setup_of(record)))
                setup = self._known.get(key)
                if setup is None:
                    setup = self._learn(key, self.format.read(record, started[row]))
                clock = split.clock_of(record) if split.clock in record else None
            except (InputError, TypeError):  # TypeError: a number that orjson cannot write
                slow.append(row)
                continue
            if clock is not None:
                mapped.clocks[row] = clock
            group.clocks.append(clock)
            group.rows.append(row)
            group.setups.append(setup)
            group.images.append(picture)
            group.values.append(plan.values_of(record))
        return [group for group in groups.values() if group and group.rows], slow

    def _plan(self, split: Split, shape: tuple[str, ...]) -> _Plan | None:
        """Return how records with the keys of *shape* are taken apart; None where they must be read one by one."""
        if shape not in self._plans:
            setup = tuple(sorted(key for key in shape if key in split.setup))
            rest = [key for key in shape if key not in split.setup and key not in split.ignored]
            metrics = tuple(key for key in rest if split.metric_name(key) is not None)
            other = tuple(sorted(key for key in rest if split.metric_name(key) is None))
            usual = all(len(key) <= MAX_OTHER for key in other) and all(key in metrics for key in split.positive)
            made = _Plan(len(self._plans), setup, metrics, other, _getter(setup), _getter(metrics + other))
            self._plans[shape] = made if usual else None
        return self._plans[shape]

    def _learn(self, key: tuple[int, Hashable, bytes], reading: Reading) -> int:
        self._setups.append(setup_columns(reading))
        self._unknown.append(reading.unknown_names)
        self._known[key] = len(self._setups) - 1
        return self._known[key]

    def _matrix(self, group: _Group, mapped: Mapped) -> list[int]:
        """Take the plain records of a group as a part of *mapped*; return the places of those that are not plain."""
        plan, split = group.plan, self.format.split
        assert split is not None
        metrics = len(plan.metrics)
        types = [set(map(type, column)) for column in zip(*group.values, strict=True)]
        if any(not kinds <= _NUMBERS for kinds in types[:metrics]) or any(_mixed(kinds) for kinds in types[metrics:]):
            return group.rows
        kept = [i for i, kinds in enumerate(types) if kinds <= _NUMBERS]
        values = group.values if len(kept) == len(types) else [tuple(row[i] for i in kept) for row in group.values]
        try:
            matrix = np.array(values, dtype=np.float64).reshape(len(values), len(kept))
        except OverflowError:  # an integer that is no double
            return group.rows
        matrix += 0.0  # canonical JSON knows no -0
        good = _good(split, plan, matrix)
        if any(self._unknown[setup] for setup in set(group.setups)):
            for setup, fine in zip(group.setups, good.tolist(), strict=True):
                mapped.unknown_names.update(self._unknown[setup] if fine else ())
        names = [plan.other[i - metrics] for i in kept[metrics:]]
        columns = [_PLACES[str(split.metric_name(key))] for key in plan.metrics]
        mapped.plain.append(_Plain(group, columns, matrix, good, names))
        return [] if good.all() else [row for row, fine in zip(group.rows, good.tolist(), strict=True) if not fine]

    def _one_by_one(
        self, rows: list[int], records: Sequence[dict[str, Any]], started: Sequence[datetime], mapped: Mapped
    ) -> None:
        for row in rows:
            try:
                reading = self.format.read(records[row], started[row])
            except InputError as error:
                mapped.faults[row] = str(error)
                continue
            mapped.unknown_names.update(reading.unknown_names)
            if reading.measured_at is not None:
                mapped.clocks[row] = reading.measured_at
            mapped.others.append(_row(row, reading))


def _row(row: int, reading: Reading) -> dict[str, Any]:
    """Return one reading as a row of SCHEMA."""
    return {
        "row": row,
        "clock": reading.measured_at,
        **dict(zip(SETUP, setup_columns(reading), strict=True)),
        **dict(zip(BUILD, _build_columns(reading.image), strict=True)),
        **{name: reading.metrics.get(name) for name in _METRICS},
        "metrics_other": [{"name": name, "value": value} for name, value in sorted(reading.metrics_other.items())],
    }


def _assembled(parts: list[_Plain], setups: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Return the good records of all groups as rows of SCHEMA, in the order given; every column is made once for all of them."""
    kept = [np.flatnonzero(part.good).tolist() for part in parts]

    def of_all(values: Callable[[_Group], list[T]]) -> list[T]:
        return [values(part.group)[i] for part, own in zip(parts, kept, strict=True) for i in own]

    rows = of_all(lambda group: group.rows)
    if not rows:
        return SCHEMA.to_frame()
    numbers = np.full((len(rows), len(_METRICS)), np.nan, order="F")
    lists, at = [], 0
    for part, own in zip(parts, kept, strict=True):
        matrix = part.matrix if len(own) == len(part.matrix) else part.matrix[own]
        numbers[at : at + len(own), part.columns] = matrix[:, : len(part.columns)]
        lists.append(_others(part.others, matrix[:, len(part.columns) :]))
        at += len(own)
    frame = _gathered(setups, of_all(lambda group: group.setups), _SETUP_SCHEMA).hstack(
        [
            *pl.DataFrame(numbers, schema=list(_METRICS), orient="row").fill_nan(None),
            *_builds(of_all(lambda group: group.images)),
            pl.concat(lists),
            pl.Series("row", rows, dtype=pl.Int64),
            _clocks(of_all(lambda group: group.clocks)),
        ]
    )
    finished = _with_steady(_with_engine(frame)).select(SCHEMA.names())
    return finished if rows == sorted(rows) else finished[np.argsort(rows).tolist()]


def _clocks(clocks: list[datetime | None]) -> pl.Series:
    """Return start times that records state as a column; mostly there is none, and then nothing is converted."""
    if any(clocks):
        return pl.Series("clock", clocks, dtype=TIME)
    return pl.Series("clock", [None], dtype=TIME).new_from_index(0, len(clocks))


_SETUP_SCHEMA = pl.Schema({name: POINTS.schema[name] for name in SETUP})
_BUILD_SCHEMA = pl.Schema({name: POINTS.schema[name] for name in BUILD})


def _getter(keys: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    """Return what takes the values of *keys* from a record, as a tuple however many they are."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda record: (record[keys[0]],)) if keys else (lambda _record: ())


def _mixed(kinds: set[type]) -> bool:
    """Say whether a field without a column is a number in some records and something else in others."""
    return bool(kinds & {int, float}) and not kinds <= _NUMBERS


def _good(split: Split, plan: _Plan, matrix: Matrix) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Say of which rows every value is within the format's bounds; NaN stands for a field that is null."""
    metrics = matrix[:, : len(plan.metrics)]
    good = ~np.isinf(matrix).any(axis=1)
    good &= ((metrics == 0) | ((metrics >= split.least) & (metrics <= split.largest)) | np.isnan(metrics)).all(axis=1)
    for key in split.positive:
        good &= metrics[:, plan.metrics.index(key)] > 0
    return np.asarray(good)


def _gathered(values: Sequence[tuple[Any, ...]], indices: list[int], schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of *values* at *indices*; each distinct one is turned into columns once."""
    distinct = sorted(set(indices))
    place = {index: i for i, index in enumerate(distinct)}
    table = pl.DataFrame([values[index] for index in distinct], schema=schema, orient="row")
    return table[[place[index] for index in indices]]


def _others(names: list[str], values: Matrix) -> pl.Series:
    """Return one list of (name, value) a row, those that are null left out."""
    if not names or not len(values):
        return pl.Series("metrics_other", [[]], dtype=METRICS).new_from_index(0, len(values))
    flat = pl.DataFrame({"name": names * len(values), "value": values.ravel()}).to_struct("metrics_other")
    lists = flat.reshape((len(values), len(names))).arr.to_list()
    if not np.isnan(values).any():
        return lists
    kept = pl.element().filter(pl.element().struct.field("value").is_not_nan())
    return lists.to_frame().select(pl.col("metrics_other").list.eval(kept)).to_series()


def _builds(images: list[str | None]) -> pl.DataFrame:
    """Return the BUILD columns of records with these images; `build_id` is null where nothing tells of the build."""
    distinct = {text: place for place, text in enumerate(dict.fromkeys(images))}
    return _gathered([_build_columns(text) for text in distinct], [distinct[text] for text in images], _BUILD_SCHEMA)


def _build_columns(text: str | None) -> tuple[str | None, ...]:
    build = reference(text)
    return (build.build_id, build.ref, build.digest, build.version) if build else (None, text, None, None)


def _with_engine(frame: pl.DataFrame) -> pl.DataFrame:
    """Name the builds that nothing tells of: all that is known is the engine."""
    return frame.with_columns(build_id=pl.col("build_id").fill_null(pl.format("unknown:{}", "engine")))


def _with_steady(frame: pl.DataFrame) -> pl.DataFrame:
    """Add Little's law from the median latency: concurrency · osl / e2el_median / GPUs; a cold first burst does not touch it."""
    latency = pl.col("e2el_median")
    steady = pl.col("concurrency") * pl.col("osl") / latency / pl.col("num_gpus")
    return frame.with_columns(steady_output_tput_per_gpu=pl.when((latency != 0) & (pl.col("osl") != 0)).then(steady))


def setup_columns(reading: Reading) -> tuple[Any, ...]:
    """Return the SETUP columns of a reading."""
    curve = curve_id(reading.identity)
    return (
        cell_id(curve, reading.concurrency),
        curve,
        *(reading.identity[name] for name in IDENTITY_FIELDS),
        reading.concurrency,
        reading.num_gpus,
        reading.hardware_label,
        reading.model_source,
        reading.checkpoint,
        reading.recipe_fingerprint,
        reading.metric_definition,
    )


def reference(text: str | None) -> ImageReference | None:
    """Return what an image text holds, or None where it is absent or not a reference (then the build is unknown)."""
    try:
        return image.parse(text) if text else None
    except InputError:
        return None
