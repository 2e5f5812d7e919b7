"""Canonical JSON and the identifiers that are hashes of it.

The same value always gives the same bytes: sorted keys, no white space, shortest float form, UTF-8, no NaN or infinity, and
no lone surrogate (JSON can spell one, but no file of ours can hold it).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

ID_LENGTH = 32
"""Hex digits kept of a SHA-256: 128 bits, so that ten million ids collide with a chance of about 1e-25."""


def canonical_json(value: Any) -> str:
    """Return the one JSON text of *value*; raises ValueError for NaN, infinity, a lone surrogate or what is no JSON at all."""
    return _encoded(value).decode("utf-8")


def _encoded(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("text with half a surrogate pair cannot be stored as UTF-8") from None
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from None


def content_id(*parts: Any) -> str:
    """Return 32 hex digits that identify *parts*: the head of the SHA-256 of their canonical JSON."""
    return hashlib.sha256(_encoded(parts)).hexdigest()[:ID_LENGTH]


def text_id(text: str) -> str:
    """Return the id of a value whose canonical JSON is *text*: the same that `content_id` gives for the value."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:ID_LENGTH]


def bytes_hash(data: bytes) -> str:
    """Return the full SHA-256 of *data* as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()
