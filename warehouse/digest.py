"""The content hash of a table: same rows, same hash, whatever files they lie in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import polars as pl


def content_hash(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of a frame's rows and schema in their present order, as 64 hex digits.

    Of values alone: what lies in memory under a null, or whether a column without nulls has a mask, says nothing.
    """
    digest = hashlib.sha256()
    for name, dtype in frame.schema.items():
        digest.update(f"{name}\n{dtype}\n{frame.height}\n".encode())
        for part in _parts(frame[name].rechunk()):
            digest.update(part)
    return digest.hexdigest()


def _parts(column: pl.Series) -> Iterator[memoryview | bytes]:
    """Yield the mask of the nulls and the values, nested ones level by level."""
    yield np.packbits(column.is_null().to_numpy()).tobytes()
    values = column.drop_nulls()
    if isinstance(values.dtype, pl.List):
        lengths = values.list.len()
        yield lengths.to_numpy().tobytes()
        yield from _parts(values.filter(lengths > 0).explode())
    elif isinstance(values.dtype, pl.Struct):
        for field in values.dtype.fields:
            yield from _parts(values.struct.field(field.name))
    elif values.dtype == pl.String:
        yield values.str.len_bytes().to_numpy().tobytes()
        yield _text(values)
    else:
        yield values.to_physical().to_numpy().tobytes()


def _text(values: pl.Series) -> memoryview | bytes:
    """Return the UTF-8 of texts without nulls, one after the other."""
    if values.is_empty():
        return b""
    arrow = values.to_arrow(compat_level=pl.CompatLevel.oldest())
    _mask, places, data = arrow.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
    return memoryview(data)[ends[0] : ends[-1]] if data is not None else b""
