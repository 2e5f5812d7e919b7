"""The content hash of a table: same rows, same hash, whatever files they lie in."""

from __future__ import annotations

import hashlib
import io

import polars as pl


def content_hash(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of a frame's rows and schema in their present order, as 64 hex digits."""
    buffer = io.BytesIO()
    frame.rechunk().write_ipc_stream(buffer, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(buffer.getbuffer()).hexdigest()
