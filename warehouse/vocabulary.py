"""Canonical names of engines, frameworks, hardware, models and precisions, read from `data/vocabulary.toml`.

A name that the vocabulary does not know is kept in lower case and reported as unknown: a new accelerator must not cost a
record. Belongs here: looking names up. Does not: the names themselves.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from warehouse.canonical import bytes_hash

MAX_NAME = 80
"""Longest name that is kept, characters; the names are strangers' text and end up in pages and file names."""
HASH_DIGITS = 12
"""Hex digits of the hash that a shortened name ends in."""


@dataclass(frozen=True)
class Name:
    """A canonical name, and whether the vocabulary knows it."""

    value: str
    known: bool


@cache
def _vocabulary() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(files("warehouse").joinpath("data/vocabulary.toml").read_text("utf-8"))


@cache
def _index(kind: str) -> dict[str, str]:
    return {alias: name for name, entry in _vocabulary()[kind].items() for alias in (name, *entry.get("aliases", ()))}


def _slug(text: str) -> str:
    """Return *text* as a short, clean name; one that lost more than case and spaces ends in a hash of what it was.

    `~` stands in no other name, so that no name imitates a shortened one.
    """
    plain = text.strip().lower()
    spaced = re.sub(r"\s+", "-", plain)
    slug = re.sub(r"[^a-z0-9._:+-]+", "-", plain)[:MAX_NAME].strip("-.")
    if slug == spaced:
        return slug or "unknown"
    mark = bytes_hash(plain.encode("utf-8", "surrogatepass"))[:HASH_DIGITS]
    return f"{slug[: MAX_NAME - 1 - HASH_DIGITS]}~{mark}"


@lru_cache(maxsize=4096)
def _look_up(kind: str, text: str) -> Name:
    slug = _slug(text)
    found = _index(kind).get(text.strip().lower()) or _index(kind).get(slug)
    return Name(found, True) if found else Name(slug, False)


def names(kind: str) -> tuple[str, ...]:
    """Return the canonical names of one kind: engine, framework, hardware, model, precision."""
    return tuple(_vocabulary()[kind])


def entry(kind: str, name: str) -> dict[str, Any]:
    """Return what the vocabulary says of a canonical name (title, vendor, …); empty where it is unknown."""
    return dict(_vocabulary()[kind].get(name, {}))


def engine(text: str) -> Name:
    """Return the engine that *text* names: `TensorRT-LLM`, `trt` → trtllm."""
    return _look_up("engine", text)


def framework(text: str) -> Name:
    """Return the serving stack that *text* names: `sglang-disagg` → mori-sglang."""
    return _look_up("framework", text)


def engine_of_framework(name: str) -> str:
    """Return the engine inside a serving stack; an unknown stack stands for itself."""
    return str(entry("framework", name).get("engine", name))


def precision(text: str) -> Name:
    """Return the precision that *text* names: `nvfp4` → fp4."""
    return _look_up("precision", text)


@lru_cache(maxsize=4096)
def hardware(label: str) -> Name:
    """Return the accelerator that a runner label names: `b200-trt`, `mi355x-amd_0`, `cluster:b300-nv` → b200, mi355x, b300.

    Rule: what stands behind the last colon, up to the first `-` or `_`.
    """
    head = re.split(r"[-_]", label.strip().lower().rsplit(":", 1)[-1], maxsplit=1)[0]
    found = _index("hardware").get(head)
    return Name(found, True) if found else Name(_slug(head), False)


@lru_cache(maxsize=4096)
def checkpoint(model_source: str) -> str:
    """Return the last part of a model path or hub id, lower case: `/mnt/x/DeepSeek-R1/` → deepseek-r1."""
    return _slug(model_source.rstrip("/").rsplit("/", 1)[-1])


@lru_cache(maxsize=4096)
def model(prefix: str | None, model_source: str | None = None) -> Name:
    """Return the model family: by its prefix where the record has one, else by the beginning of the checkpoint's name."""
    if prefix and prefix.strip():
        return _look_up("model", prefix)
    name = checkpoint(model_source or "").replace("_", "-")
    matches = [
        (len(path), family)
        for family, entry_ in _vocabulary()["model"].items()
        for path in entry_.get("paths", ())
        if name == path or name.startswith(path + "-")
    ]
    return Name(max(matches)[1], True) if matches else Name(name, False)
