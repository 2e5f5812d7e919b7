"""The dependencies that are looked for: how requirement files, Dockerfiles, CMake and scripts name them; `data/pins.toml`.

Belongs here: names, and what counts as a pinned version. Does not: reading a file (`changelog.pin_files`,
`changelog.docker_pins`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from packaging.utils import canonicalize_name

MAX_VERSION = 80
Key = tuple[str, str | None]
"""Dependency, platform."""
Pin = tuple[Key, str]

# A version, tag, commit or image tag; nothing with `@` or `://`: a URL may hold a password.
_VERSION = re.compile(r"(?!.*://)[A-Za-z0-9][A-Za-z0-9._+/:-]{0,79}")
_MOVING = frozenset({"head", "main", "master", "latest", "nightly", "none", "unknown", "skip"})
"""What a default can be that pins nothing."""


@dataclass(frozen=True)
class Dependency:
    """A dependency: its arguments, the part of a value that is the version, its switch, and how a RUN line installs it."""

    name: str
    arguments: re.Pattern[str] | None
    value: re.Pattern[str] | None
    switch: str | None
    """Argument of a Dockerfile that is 0 where the pin is not used."""
    base: bool
    """Read from the image that a stage begins with, not from the argument alone."""
    host: bool
    """None of its code runs on the accelerator or between accelerators."""


@cache
def pins_data() -> dict[str, Any]:
    """Return the whole of `data/pins.toml`."""
    return tomllib.loads(files("changelog").joinpath("data/pins.toml").read_text("utf-8"))


@cache
def dependencies() -> dict[str, Dependency]:
    """Return every dependency by name, in the order of the file."""
    return {
        name: Dependency(
            name,
            re.compile("|".join(entry["arguments"])) if entry.get("arguments") else None,
            re.compile(entry["value"]) if "value" in entry else None,
            entry.get("switch"),
            entry.get("base", False),
            entry.get("host", False),
        )
        for name, entry in pins_data()["dependency"].items()
    }


@cache
def packages() -> dict[str, str]:
    """Return the dependency by the name of its package, as package indexes spell it."""
    return _by_package("packages")


@cache
def installed() -> dict[str, str]:
    """Return the dependency by the name of a package that Dockerfiles install over what was required."""
    return _by_package("installed")


def _by_package(field: str) -> dict[str, str]:
    entries = pins_data()["dependency"]
    return {canonicalize_name(package): name for name, entry in entries.items() for package in entry.get(field, ())}


def pinned(text: str) -> str | None:
    """Return *text* where it is a version, tag or commit that stays what it is; None for a branch's name, a URL or a variable."""
    return text if _VERSION.fullmatch(text) and text.lower() not in _MOVING else None


def by_argument(name: str, value: str, platform: str | None, *, base: bool = False) -> Iterator[Pin]:
    """Yield what one argument (`AITER_COMMIT`) with its value pins; *base*: it is the image that a stage begins with."""
    for dependency in _of_argument(name):
        if dependency.base is base:
            found = dependency.value.search(value) if dependency.value else None
            version = found[1] if found else value if dependency.value is None else ""
            if pinned(version):
                yield (dependency.name, platform), version


@lru_cache(maxsize=4096)
def _of_argument(name: str) -> tuple[Dependency, ...]:
    return tuple(one for one in dependencies().values() if one.arguments is not None and one.arguments.fullmatch(name))
