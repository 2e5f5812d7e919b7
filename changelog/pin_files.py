"""What a requirement file, a pyproject, a Dockerfile, a CMake file or a script pins: (dependency, platform) → version.

Only exact pins count: `>=` says what is allowed, not what is run. Belongs here: which files there are, one reading a kind of
file, from text to pins. Does not: getting the text (`changelog.pins`), names (`changelog.pin_names`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from changelog.docker_pins import docker_pins
from changelog.pin_names import Key, Pin, by_argument, packages, pinned, pins_data

MAX_TEXT = 1 << 20
"""Characters of a file that are looked at."""
MAX_LINES = 20_000
MAX_LINE = 1_000

Pins = dict[Key, str]
"""Version by (dependency, platform)."""
_ARGUMENT = re.compile(r"\s{0,8}(?:set\(|local )?\s{0,4}([A-Za-z_][A-Za-z0-9_]{0,60})\s{0,2}[= ]\s{0,2}[\"']?([^\s\"'#)]{1,200})")
_DECLARED = re.compile(r"FetchContent_Declare\(\s*([A-Za-z0-9_-]{1,60})\s[^)]{0,2000}?GIT_TAG\s+\"?([^\s\")]{1,100})", re.DOTALL)
_IF_ROCM = re.compile(r"\s{0,20}(?:else)?if\s{0,4}\(.{0,80}STREQUAL\s{1,4}\"rocm\"", re.IGNORECASE)
_ELSE = re.compile(r"\s{0,20}else\s{0,4}\(", re.IGNORECASE)
_END = re.compile(r"\s{0,20}endif\s{0,4}\(", re.IGNORECASE)


@dataclass(frozen=True)
class PinFile:
    """A file of a project's tree that pins something. `extras`: of a pyproject's optional dependencies, the platform of each."""

    path: str
    kind: str
    platform: str | None
    extras: Mapping[str, str] = field(default_factory=dict)


def pin_files(project: str) -> tuple[PinFile, ...]:
    """Return the files of *project* that pin something; none for a project that is not in `data/pins.toml`."""
    return tuple(
        PinFile(entry["path"], entry["kind"], entry.get("platform"), entry.get("extras", {}))
        for entry in pins_data().get(project, ())
    )


def read_pins(file: PinFile, text: str) -> Pins:
    """Return what the *text* of a file pins; anything may stand in it, and what cannot be read pins nothing."""
    return dict(_KINDS[file.kind](text[:MAX_TEXT], file))


def _requirements(text: str, file: PinFile) -> Iterator[Pin]:
    for line in text.splitlines()[:MAX_LINES]:
        yield from _required(line.partition(" #")[0].strip(), file.platform)


def _pyproject(text: str, file: PinFile) -> Iterator[Pin]:
    try:
        project = tomllib.loads(text).get("project", {})
    except (ValueError, RecursionError):
        return
    if not isinstance(project, dict):
        return
    optional = project.get("optional-dependencies")
    for extra, platform in file.extras.items():
        yield from _listed(optional.get(extra) if isinstance(optional, dict) else None, platform or None)
    yield from _listed(project.get("dependencies"), file.platform)


def _listed(lines: object, platform: str | None) -> Iterator[Pin]:
    for line in lines[:MAX_LINES] if isinstance(lines, list) else ():
        if isinstance(line, str):
            yield from _required(line, platform)


def _required(line: str, platform: str | None) -> Iterator[Pin]:
    found = _exact(line) if "==" in line and len(line) <= MAX_LINE and not line.startswith(("-", "#")) else None
    if found is not None:
        yield (found[0], platform), found[1]


@lru_cache(maxsize=4096)
def _exact(line: str) -> tuple[str, str] | None:
    """Return the dependency and the version that one requirement pins, or None."""
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return None
    name = packages().get(canonicalize_name(wanted.name))
    exact = [part.version for part in wanted.specifier if part.operator in ("==", "===") and "*" not in part.version]
    return (name, exact[0]) if name and exact and pinned(exact[0]) else None


def _dockerfile(text: str, file: PinFile) -> Iterator[Pin]:
    yield from docker_pins(text, file.platform).items()


def _script(text: str, file: PinFile) -> Iterator[Pin]:
    """Read assignments; of several the first counts, because what comes later are options and checks."""
    seen: set[Key] = set()
    where = file.platform
    for line in text.splitlines()[:MAX_LINES]:
        where = _branch(line[:MAX_LINE], file.platform, where)
        match = _ARGUMENT.match(line[:MAX_LINE])
        for key, value in by_argument(match[1], match[2], where) if match else ():
            if key not in seen:
                seen.add(key)
                yield key, value


def _branch(line: str, platform: str | None, where: str | None) -> str | None:
    """Return the platform from a line on: in CMake's `if (… STREQUAL "rocm")` that is AMD's, in what is else NVIDIA's."""
    if platform is not None:
        return platform
    if _IF_ROCM.match(line):
        return "amd"
    if where is not None and _ELSE.match(line):
        return "nvidia"
    return None if _END.match(line) else where


def _cmake(text: str, file: PinFile) -> Iterator[Pin]:
    for name, version in _DECLARED.findall(text):
        yield from by_argument(name, version, file.platform)
    yield from _script(text, file)


_KINDS: dict[str, Callable[[str, PinFile], Iterator[Pin]]] = {
    "requirements": _requirements,
    "pyproject": _pyproject,
    "dockerfile": _dockerfile,
    "cmake": _cmake,
    "script": _script,
}
"""Kinds of files, one line each."""
