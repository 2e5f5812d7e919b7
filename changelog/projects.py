"""Upstream projects by name: repositories, tag patterns, path prefixes; read from `data/projects.toml`.

Belongs here: looking a project up and finding which one a name means. Does not: reading its history or its releases.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from packaging.version import InvalidVersion, Version

from warehouse.errors import InputError


@dataclass(frozen=True)
class Project:
    """One upstream project, as `data/projects.toml` describes it."""

    name: str
    title: str
    repositories: tuple[str, ...]
    words: tuple[str, ...]
    main: str
    tag: re.Pattern[str]
    release_branches: re.Pattern[str]
    bump: re.Pattern[str] | None
    offline: tuple[str, ...]
    outside: tuple[str, ...]
    packages: tuple[str, ...]
    """Its distributions on a package index, the main one first."""
    carries: tuple[str, ...]
    """Projects whose kernels or transport it runs, so that their changes can be the cause, too."""
    notes: str | None = None
    """Path of the document in its tree that holds its release notes, where it keeps one."""

    def version_of_tag(self, tag: str) -> str | None:
        """Return the PEP 440 version that a release tag stands for, or None where *tag* is not one: v0.1.14-rc0 → 0.1.14rc0."""
        match = self.tag.fullmatch(tag)
        return normal_version(match["version"]) if match else None

    def version_of_bump(self, title: str) -> str | None:
        """Return the version that a subject line marks as released, or None."""
        match = self.bump.match(title.lower()) if self.bump else None
        return normal_version(match["version"]) if match else None


def normal_version(text: str) -> str | None:
    """Return *text* in PEP 440's normal form (`v1.2.0-rc1` → `1.2.0rc1`), or None where it is not a version."""
    try:
        return str(Version(text)) if len(text) <= 100 else None
    except InvalidVersion:
        return None


@cache
def projects() -> dict[str, Project]:
    """Return every project by name, in the order of the file."""
    data = tomllib.loads(files("changelog").joinpath("data/projects.toml").read_text("utf-8"))
    return {name: _project(name, entry) for name, entry in data.items()}


def project(text: str) -> Project:
    """Return the project that *text* names; raises InputError listing the known ones."""
    wanted = _spelling(text)
    for known in projects().values():
        if wanted == known.name or wanted in known.words:
            return known
    raise InputError(f"project {text[:60]!r} is not known; use one of {', '.join(projects())}")


def project_of_file(name: str, declared: str | None) -> str:
    """Return the project that a file belongs to: the declared one, else the one whose name is in the file's name.

    Raises InputError where neither tells, or where the file's name holds two projects.
    """
    if declared is not None:
        return project(declared).name
    part = re.split(r"[/\\!:]", name)[-1]
    found = sorted(known.name for known in projects().values() if _holds(part, known.words))
    if len(found) == 1:
        return found[0]
    why = f"its name holds {' and '.join(found)}" if found else "its name holds no project"
    raise InputError(f"{name}: which project is this? {why}; add --set engine=NAME with one of {', '.join(projects())}")


def project_of_url(url: str) -> str | None:
    """Return the project whose GitHub repository *url* lies in, or None."""
    match = re.match(r"https://[a-z.]+/(?:repos/)?([\w.-]{1,100}/[\w.-]{1,100})(?:/|$)", url, re.IGNORECASE)
    wanted = match[1].lower() if match else ""
    return next((known.name for known in projects().values() if wanted in [repo.lower() for repo in known.repositories]), None)


def _spelling(text: str) -> str:
    return text.strip().lower().replace("_", "-")


def _holds(name: str, words: Iterable[str]) -> bool:
    spelled = _spelling(name)
    return any(re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", spelled) for word in words)


def _project(name: str, entry: dict[str, str | list[str]]) -> Project:
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Project(
        name=name,
        title=texts["title"],
        repositories=lists["repositories"],
        words=lists["words"],
        main=texts["main"],
        tag=re.compile(texts["tag"]),
        release_branches=re.compile(texts["release_branches"]),
        bump=re.compile(texts["bump"] + r"(?=[\s(]|$)") if "bump" in texts else None,
        offline=lists["offline"],
        outside=lists["outside"],
        packages=lists.get("packages", ()),
        carries=lists.get("carries", ()),
        notes=texts.get("notes"),
    )
