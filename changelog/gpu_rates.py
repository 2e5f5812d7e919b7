"""USD per GPU-hour and all-in kW of accelerators, as users keep them: CSV with a header, or YAML with a list `rates`.

Columns and keys: `gpu`, `provider`, `tier`, `usd_per_gpu_hour`, `kw`, `valid_from`, `valid_to`, `source`, `revision`. The price
is that of its tier; the power is the accelerator's, whatever the tier. Values are read as texts, so that 1.10 stays a decimal.
Belongs here: syntax and fields. Does not: bounds (`changelog.rates`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from changelog.rates import Item, Term, Told, agreeing, bounded, fault, rate_fact, source_of, word_of
from changelog.yaml_text import document
from warehouse import vocabulary
from warehouse.clock import parse_instant
from warehouse.errors import InputError

PRICE, POWER = "usd_per_gpu_hour", "kw"
FIELDS = ("gpu", "provider", "tier", PRICE, POWER, "valid_from", "valid_to", "source", "revision")
MAX_CHARACTERS = 16_000_000
MAX_HEADER = 10_000
MAX_REVISION = 1_000_000
_NOTHING = ("", "~", "null")
_YAML_LIST = re.compile(r"^rates[ \t]*:[ \t]*(#.*)?\r?$", re.MULTILINE)
_YAML_GPU = re.compile(r"(^|[-{,])[ \t]*gpu[ \t]*:", re.MULTILINE)
_YAML_RATE = re.compile(rf"(^|[-{{,])[ \t]*({PRICE}|{POWER})[ \t]*:", re.MULTILINE)

Row = dict[str, Any]


def is_csv(head: str) -> bool:
    """Say whether the head of a text is that of a CSV of GPU rates: by its header."""
    names = _cells(head.lstrip().split("\n", 1)[0][:MAX_HEADER])
    return "gpu" in names and (PRICE in names or POWER in names)


def is_yaml(head: str) -> bool:
    """Say whether the head of a text is that of a YAML of GPU rates: a key `rates` and entries with a `gpu`."""
    return all(pattern.search(head) for pattern in (_YAML_LIST, _YAML_GPU, _YAML_RATE))


def csv_rates(text: str, declared_at: datetime | None) -> Iterator[Told]:
    """Yield the facts of a CSV, and a fault for each row that cannot be read; raises InputError for the file as a whole.

    A row without `valid_from` holds from *declared_at* on.
    """
    yield from bounded(agreeing(_csv(_bounded_text(text), declared_at)))


def yaml_rates(text: str, declared_at: datetime | None) -> Iterator[Told]:
    """Yield the facts of a YAML file as `csv_rates` does; here `usd_per_gpu_hour` may be a mapping of tiers to prices, too."""
    whole = document(_bounded_text(text))
    entries = whole.get("rates") if isinstance(whole, dict) else None
    if not isinstance(entries, list):
        raise InputError("rates: must be a list of entries, each with a `gpu`")
    _known(whole, ("rates",))
    yield from bounded(agreeing(_entries(entries, declared_at)))


def _csv(text: str, declared_at: datetime | None) -> Iterator[Told]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] = []
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield fault(f"line {reader.line_num}", InputError(f"not CSV: {error}"), "")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if not names:
            names = [cell.strip().lower() for cell in cells]
            _known(names, FIELDS)
        else:
            yield from _row(names, cells, f"line {reader.line_num}", declared_at)


def _row(names: list[str], cells: list[str], position: str, declared_at: datetime | None) -> Iterator[Told]:
    if len(cells) != len(names):
        yield fault(position, InputError(f"{len(cells)} cells, but the header has {len(names)}"), ",".join(cells)[:1000])
        return
    yield from _read(dict(zip(names, cells, strict=True)), position, declared_at)


def _cells(line: str) -> list[str]:
    try:
        return [cell.strip().lower() for cell in next(csv.reader([line.rstrip("\r")]), [])]
    except csv.Error:
        return []


def _entries(entries: list[Any], declared_at: datetime | None) -> Iterator[Told]:
    for number, entry in enumerate(entries, start=1):
        position = f"entry {number}"
        if isinstance(entry, dict):
            yield from _read(entry, position, declared_at)
        else:
            yield fault(position, InputError("is not a mapping with a `gpu`"), str(entry)[:1000])


def _read(row: Row, position: str, declared_at: datetime | None) -> Iterator[Told]:
    """Yield the rates of one row, or one fault: of a row that cannot be read nothing is taken."""
    try:
        _known(row, FIELDS)
        yield from list(_facts(row, position, declared_at))
    except InputError as error:
        yield fault(position, error, ", ".join(f"{key}={value}" for key, value in list(row.items())[: len(FIELDS)])[:1000])


def _facts(row: Row, position: str, declared_at: datetime | None) -> Iterator[Told]:
    gpu, provider, term = _gpu(row), word_of(_text(row, "provider"), "provider"), _term(row, declared_at)
    power, prices = _text(row, POWER), _prices(row)
    if power is None and not prices:
        raise InputError(f"{PRICE}, {POWER}: both are empty; give one of them")
    for tier, price in prices:
        field = f"{PRICE} of {tier}" if isinstance(row.get(PRICE), dict) else PRICE
        yield rate_fact(Item("gpu_hour", gpu, provider, tier), price, term, field, position)
    if power is not None:
        yield rate_fact(Item("gpu_power", gpu, provider), power, term, POWER, position)


def _gpu(row: Row) -> str:
    label = word_of(_text(row, "gpu"), "gpu")
    if label is None:
        raise InputError("gpu: must name an accelerator, such as h100")
    return vocabulary.hardware(label).value


def _prices(row: Row) -> list[tuple[str | None, str]]:
    """Return tiers and their prices: one of the row, or those of a mapping."""
    prices, tier = row.get(PRICE), word_of(_text(row, "tier"), "tier")
    if not isinstance(prices, dict):
        price = _text(row, PRICE)
        return [] if price is None else [(tier, price)]
    if tier is not None:
        raise InputError(f"tier: {PRICE} names the tiers already; leave one of the two out")
    return [(word_of(name, "tier"), price) for name in prices if (price := _text(prices, name)) is not None]


def _term(row: Row, declared_at: datetime | None) -> Term:
    starts, ends = _instant(row, "valid_from") or declared_at, _instant(row, "valid_to")
    if starts is None:
        raise InputError("valid_from: must say since when this holds, as 2026-08-15; or pass --measured-at TIME for all rows")
    revision = _text(row, "revision") or "0"
    if re.fullmatch(r"[0-9]{1,7}", revision, re.ASCII) is None or int(revision) > MAX_REVISION:
        raise InputError(f"revision: {revision[:60]!r} is not a whole number from 0 to {MAX_REVISION}")
    return Term(starts, "own", ends, source_of(_text(row, "source"), "source"), int(revision))


def _instant(row: Row, field: str) -> datetime | None:
    text = _text(row, field)
    return None if text is None else parse_instant(text, field)


def _text(row: Row, field: str) -> str | None:
    """Return the text of a field, None where it is empty."""
    value = row.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{field}: must be one value and no list or mapping")
    return None if value.strip().lower() in _NOTHING else value.strip()


def _known(names: Row | list[str], known: tuple[str, ...]) -> None:
    """Refuse fields that are not known: `valid_until`, unread, would leave a rate standing for ever."""
    unknown = [str(name)[:40] for name in names if name not in known]
    if unknown:
        raise InputError(f"field {', '.join(map(repr, unknown[:5]))} is not known; known are {', '.join(known)}")
    if len(set(names)) < len(names):
        raise InputError("header: a column stands twice")


def _bounded_text(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{len(text):,} characters; a file of rates may have {MAX_CHARACTERS:,}")
    return text
