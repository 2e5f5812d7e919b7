"""Frames on their way between processes, as Arrow IPC streams: exact types, no pickle of a library's own objects."""

from __future__ import annotations

import io

import polars as pl


def packed(frame: pl.DataFrame) -> bytes:
    """Return *frame* as the bytes of an Arrow IPC stream, compressed with LZ4."""
    stream = io.BytesIO()
    frame.write_ipc_stream(stream, compression="lz4")
    return stream.getvalue()


def unpacked(parcel: bytes) -> pl.DataFrame:
    """Return the frame that `packed` was given, with its schema and its order of rows."""
    return pl.read_ipc_stream(io.BytesIO(parcel))
