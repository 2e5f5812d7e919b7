"""From the bytes of a file to the values in it, each with its place: JSON, JSON lines, what formats unpack, text that they read.

Belongs here: the order in which a file is tried. Does not: syntax (`json_text`, `tabular`, `yaml_text`), what a value means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pipelines.ingest import formats, runs
from pipelines.ingest.json_text import Fault, Item, LeftOut, decode, items
from pipelines.ingest.reading import RecordFormat

MAX_VALUES = 2_000_000
"""Values of one file that are taken, whatever they are; the largest real file has a few thousand."""
MAX_COMMAS = 40_000_000
"""Commas of one file that is parsed at once: each parts two values, and a value takes some fifty bytes of memory."""


MAX_SHAPES = 10_000
"""Sets of keys that are remembered; real files have a few."""
MAX_MISSES = 1_000
"""Values of one file that no format takes apart, one after the other, beyond which no further one is tried."""


@dataclass(frozen=True)
class Values:
    """The values of a file (a Fault where one cannot be read), their positions, and whether orjson has parsed them."""

    values: list[Any]
    positions: list[str]
    plain: bool

    @property
    def whole(self) -> Any:
        """What the file is as one value."""
        return self.values[0] if self.positions == [""] else self.values


@dataclass(frozen=True)
class Kind:
    """What records with one set of keys are."""

    run: bool
    record_format: RecordFormat | None
    near_miss: str | None

    @property
    def is_record(self) -> bool:
        return self.run or self.record_format is not None

    @property
    def known(self) -> bool:
        return self.is_record or self.near_miss is not None


class Kinds:
    """Tells what a value is; records with the same keys are alike, so each set of keys is looked at once."""

    def __init__(self) -> None:
        self._by_keys: dict[tuple[str, ...], Kind] = {}
        self._last_keys: tuple[str, ...] | None = None
        self._last = Kind(False, None, None)

    def of(self, value: Any) -> Kind:
        """Return what *value* is."""
        if not isinstance(value, dict):
            return Kind(False, None, None)
        keys = tuple(value)
        if keys == self._last_keys:  # as a rule; cheaper than a look-up
            return self._last
        kind = self._by_keys.get(keys)
        if kind is None:
            if len(self._by_keys) >= MAX_SHAPES:
                self._by_keys.clear()
            kind = self._by_keys[keys] = Kind(runs.is_run(value), formats.recognise(value), formats.near_miss(value))
        self._last_keys, self._last = keys, kind
        return kind

    def knows(self, values: Values) -> bool:
        """Say whether any of *values* is known."""
        return any(self.of(value).known for value in values.values)


_POINTERS = [f"/{index}" for index in range(1000)]


def _pointers(number: int) -> list[str]:
    """Return the positions of the elements of an array."""
    _POINTERS.extend(f"/{index}" for index in range(len(_POINTERS), number))
    return _POINTERS[:number]


def parsed(data: bytes) -> Values | None:
    """Return the values of a file that is one JSON text, or lines of objects; None where orjson refuses it or a line."""
    if data.count(b",") > MAX_COMMAS:
        return _too_many(f"more than {MAX_COMMAS:,} values and keys")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _lines(data) if data[:1] == b"{" else None
    if isinstance(value, list) and len(value) > MAX_VALUES:
        return _too_many(f"{len(value):,} values")
    return Values(value, _pointers(len(value)), True) if isinstance(value, list) else Values([value], [""], True)


def _too_many(what: str) -> Values:
    return Values([Fault("", f"{what} in one file, at most {MAX_VALUES:,} values are read; split the file")], ["more"], False)


def _lines(data: bytes) -> Values | None:
    values: list[Any] = []
    positions: list[str] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                values.append(orjson.loads(line))
            except orjson.JSONDecodeError:
                return None
            positions.append(f"line {number}")
    return Values(values, positions, True) if len(values) <= MAX_VALUES else None


def salvaged(data: bytes) -> Values:
    """Return the values of a file of lines, or of a damaged one: read piece by piece."""
    return _values(items(data), plain=False)


def together(whole: Values) -> Values | None:
    """Return what a format takes from the values of a file as one (rows that belong together); None where none does."""
    found = formats.unpack(whole.whole)
    return None if found is None else _values(found, whole.plain)


def unpacked(whole: Values, kinds: Kinds) -> Values:
    """Return *whole* with what formats take apart put in place of itself: all of it together, else value by value."""
    if (found := together(whole)) is not None:
        return found
    return _values(_apart(whole, kinds), whole.plain)


def _apart(whole: Values, kinds: Kinds) -> Iterator[Item | Fault | LeftOut]:
    """Yield the values one by one, and of each unknown one what a format takes from it."""
    misses = 0
    for value, position in zip(whole.values, whole.positions, strict=True):
        parts = None
        if not isinstance(value, Fault) and misses < MAX_MISSES and not kinds.of(value).known:
            parts = formats.unpack(value)
            misses = misses + 1 if parts is None else 0
        if isinstance(value, Fault):
            yield value
        elif parts is None:
            yield Item(position, value)
        else:
            yield from (_below(position, part) for part in parts)


def texts(data: bytes) -> Values | None:
    """Return what a format reads in a file that is no JSON; None where none knows it."""
    text = decode(data)
    found = None if isinstance(text, Fault) else formats.read_text(text)
    return None if found is None else _values(found, plain=False)


def _below(position: str, part: Item | Fault | LeftOut) -> Item | Fault | LeftOut:
    """Return a part of the value at *position* with its place in the file."""
    if isinstance(part, LeftOut):
        return part
    where = f"{position} {part.position}" if part.position.startswith("line") or not part.position else position + part.position
    return part._replace(position=where.strip()) if isinstance(part, Item) else Fault(where.strip(), part.reason, part.excerpt)


def _values(found: Iterable[Item | Fault | LeftOut], plain: bool) -> Values:
    values: list[Any] = []
    positions: list[str] = []
    for item in found:
        values.append(item.value if isinstance(item, Item) else item)
        positions.append("" if isinstance(item, LeftOut) else item.position)
        if len(values) >= MAX_VALUES:
            values.append(Fault("more", f"more than {MAX_VALUES:,} values; split the file"))
            positions.append("more")
            break
    return Values(values, positions, plain)
