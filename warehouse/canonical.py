"""Canonical JSON and the identifiers that are hashes of it.

The same value always gives the same bytes: keys sorted by code point, no white space, UTF-8, no NaN or infinity, no lone
surrogate (JSON can spell one, but no file of ours can hold it). Numbers go by value, as RFC 8785 has it: 100.0, 1e2 and 100 are
one number, so that a record that passed through a writer with other habits is still the same record. A whole number of 64 bits is
written in full; beyond that it is the nearest double, written as ECMAScript does (1e+22): orjson changed that between versions,
and an id must not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import orjson
import polars as pl

ID_LENGTH = 32
"""Hex digits kept of a SHA-256: 128 bits, so that ten million ids collide with a chance of about 1e-25."""
_OPTIONS = (
    orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_WHOLE = r"\.0[,}\]]|[:,\[]-?[0-9][.0-9]*e\+?[0-9]"
"""What a float without a fraction looks like in a dumped object (or a text that happens to): 1.0, 1e22, 1e+22."""
_DEEPEST = 250


def canonical_json(value: Any) -> str:
    """Return the one JSON text of *value*; raises ValueError for NaN, infinity, a lone surrogate or what is no JSON at all."""
    return _encoded(value).decode("utf-8")


def canonical_records(records: Sequence[dict[str, Any]]) -> tuple[list[bytes], pl.Series]:
    """Return the canonical JSON of many values that orjson has parsed, as bytes and as a column of text.

    Such values cannot hold what `canonical_json` refuses, but for too many levels: the text of those is empty. Only those are
    looked through for floats without a fraction whose text seems to have one: real metrics have none.
    """
    try:
        texts = [orjson.dumps(record, option=_OPTIONS) for record in records]
    except TypeError:  # one is nested more deeply than orjson writes, though it reads it
        texts = [_dumped(record) for record in records]
    column = pl.Series("text", texts, dtype=pl.Binary).cast(pl.String)
    whole = column.str.contains(_WHOLE).arg_true().to_list()
    for index in whole:
        texts[index] = _flat(records[index]) or _encoded(records[index])
    return texts, pl.Series("text", texts, dtype=pl.Binary).cast(pl.String) if whole else column


def _flat(record: dict[str, Any]) -> bytes:
    """Return the canonical JSON of a record that orjson has parsed and that is flat; empty where it must be looked at deeply."""
    whole: dict[str, int] = {}
    for key, value in record.items():
        kind = type(value)
        if kind is float:
            if value.is_integer():
                if not -_HUGE < value < _HUGE:
                    return b""
                whole[key] = int(value)
        elif kind is dict or kind is list:
            return b""
    return orjson.dumps({**record, **whole}, option=_OPTIONS)


def _dumped(record: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(record, option=_OPTIONS)
    except TypeError:
        return b""


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(_by_value(value, 0), option=_OPTIONS)
    except (TypeError, RecursionError) as error:
        if "surrogates" in str(error):
            raise ValueError("text with half a surrogate pair cannot be stored as UTF-8") from None
        raise ValueError(f"not a JSON value: {error}") from None


_AS_THEY_ARE = {str, bool, type(None)}
_HUGE = 2.0**53
"""From here on every double is a whole number."""


def _by_value(value: Any, depth: int) -> Any:
    """Return *value* with every number in its one form."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if _has_64_bits(value) else _number(_double(value))
    if depth > _DEEPEST:
        raise ValueError("not a JSON value: nested too deeply")
    if isinstance(value, dict):
        return {
            key: item
            if (kind := type(item)) in _AS_THEY_ARE or (kind is float and -_HUGE < item < _HUGE and not item.is_integer())
            else _by_value(item, depth + 1)
            for key, item in value.items()
        }
    if not isinstance(value, list | tuple):
        return value
    if depth < _DEEPEST:  # what needs no look inside is passed over at once: lists of paths are long
        return [item if type(item) in _AS_THEY_ARE else _by_value(item, depth + 1) for item in value]
    return [_by_value(item, depth + 1) for item in value]


def _number(value: float) -> int | float | orjson.Fragment:
    if not math.isfinite(value):
        raise ValueError("Out of range float values are not JSON compliant: NaN or infinity")
    if not value.is_integer():
        return value
    return int(value) if _has_64_bits(value) else orjson.Fragment(repr(value))


def _has_64_bits(value: float) -> bool:
    return -(2**63) <= value < 2**64


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("an integer beyond the range of a double cannot be stored") from None


def content_id(*parts: Any) -> str:
    """Return 32 hex digits that identify *parts*: the head of the SHA-256 of their canonical JSON."""
    return hashlib.sha256(_encoded(parts)).hexdigest()[:ID_LENGTH]


def text_id(text: str | bytes) -> str:
    """Return the id of a value whose canonical JSON is *text*: the head of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8") if isinstance(text, str) else text).hexdigest()[:ID_LENGTH]


def bytes_hash(data: bytes) -> str:
    """Return the full SHA-256 of *data* as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()
