"""What of a record of vLLM's benchmarks is kept: settings and results, no texts, no per-request lists, nothing of the machine.

Users put anything into `--metadata`, so texts are looked at one by one, and of what is nested only what is listed stays.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.tools.taming import without_private

MAX_TEXT = 512
MAX_KEY = 120
MAX_TURNS = 200
_PRIVATE = re.compile(
    r"api[_-]?key|secret|passw|credential|(^|[_-])(access|auth|hf|bearer)?[_-]?token$|host(name)?$|node(_?name)?$"
    r"|(^|[_-])(url|uri|ip|addr|address|user|username|owner|author|email|cwd|home|pwd|cmd|command|header)$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|\S+@\S+\.\S+", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HOME = re.compile(r"/(home|root|Users)/")
_PATH = re.compile(r"(/|~|[A-Za-z]:[\\/]|\.\.?/)")
_HUB_CACHE = re.compile(r"models--([^/]+?)--([^/]+?)(/|$)")
_NUMBER = re.compile(r"(_ms|_throughput|_tokens|_rate|_concurrency|^duration|^completed|^failed|^num_prompts|^burstiness)$")
"""Keys of numbers: what is no number there stays visible, so that reading tells it."""
MODELS = frozenset({"model_id", "tokenizer_id", "model"})
"""Texts of which the name is kept where they are a path or an address."""
LISTS = frozenset({"spec_decode_per_position_acceptance_rates"})
"""Lists of numbers that are kept."""


def clean(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without generated texts, per-request lists, paths, addresses, users, keys; it may be cleaned again."""
    own = without_private(record)
    kept = {key: _kept(key, value) for key, value in own.items() if type(value) not in _PLAIN}
    gone = _private_of(tuple(own)).union(key for key, value in kept.items() if value is _GONE)
    return {key: kept.get(key, value) for key, value in own.items() if key not in gone} if gone else {**own, **kept}


_GONE = object()
_PLAIN = {int, float, bool, type(None)}
"""Types of values that hold nothing but themselves."""


@lru_cache(maxsize=256)
def _private_of(keys: tuple[str, ...]) -> frozenset[str]:
    """Return the keys under which nothing is kept; records alike share it."""
    return frozenset(key for key in keys if len(key) > MAX_KEY or _PRIVATE.search(key))


def _kept(key: str, value: Any) -> Any:
    """Return what is kept of a text, a list or an object; an object of no kind where it goes."""
    if isinstance(value, str):
        return _text(key, value) if len(value) <= MAX_TEXT else _long_text(key, value)
    if key in LISTS and isinstance(value, list):
        return _numbers(value)
    if key == "per_turn_metrics" and isinstance(value, list):
        return [_flat(turn) for turn in value[:MAX_TURNS] if isinstance(turn, dict)]
    if key == "steady_state" and isinstance(value, dict):
        return {**_flat(value), "window": _flat(value.get("window"))}
    return f"<{type(value).__name__}>" if _NUMBER.search(key) else _GONE


def _long_text(key: str, value: str) -> Any:
    return named(value)[:MAX_TEXT] if key in MODELS and (_PATH.match(value) or _URL.match(value)) else _GONE


@lru_cache(maxsize=4096)
def _text(key: str, value: str) -> Any:
    if key in MODELS and (_PATH.match(value) or _URL.match(value)):
        return named(value)[:MAX_TEXT]
    if ("://" in value or "@" in value) and _ADDRESS.search(value):  # the search is slow, and no address lacks both
        return _GONE
    if _PATH.match(value):
        return named(value)
    return _GONE if _HOME.search(value) else value


def named(path: str) -> str:
    """Return the name in a path: hub id of a path in a hub's cache, else its last part."""
    if match := _HUB_CACHE.search(path):
        return f"{match[1]}/{match[2]}"
    return PurePosixPath(path.replace("\\", "/")).name or path[:1]


def _numbers(values: list[Any]) -> list[Any]:
    return [value for value in values[:MAX_TURNS] if isinstance(value, int | float)]


def _flat(value: Any) -> dict[str, Any]:
    """Return the numbers of an object."""
    if not isinstance(value, dict):
        return {}
    return {key: part for key, part in value.items() if isinstance(part, int | float) and len(key) <= MAX_KEY}
