"""Which code made a table: a number that changes when anything changes that its rows follow from.

A table keeps the number of the code that made it (`warehouse.store.Mark.code`); another one means: make it again, once.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_SUFFIXES = (".py", ".toml")


@cache
def version(sources: tuple[str, ...]) -> int:
    """Return the number that stands for the content of *sources*, paths below the installed packages."""
    digest = hashlib.sha256()
    for source in sources:
        package, _, rest = source.partition("/")
        for name, data in _contents(files(package).joinpath(rest), source):
            digest.update(f"{name}\n{len(data)}\n".encode())
            digest.update(data)
    return int.from_bytes(digest.digest()[:6], "big")


def _contents(place: Traversable, name: str) -> list[tuple[str, bytes]]:
    if place.is_file():
        return [(name, place.read_bytes())]
    found = [_contents(entry, f"{name}/{entry.name}") for entry in place.iterdir() if entry.is_dir() or _is_source(entry.name)]
    return sorted(item for items in found for item in items)


def _is_source(name: str) -> bool:
    return name.endswith(_SUFFIXES)
