"""Pinned dependencies out of a project's own tree, as facts: at every release, and at every commit of main that moved one.

With both, what any build ran on is known: the pins of its release, else those that main had at its commit. Belongs here: which
commits are read, and the facts. Does not: what a file means (`changelog.pin_files`), running git (`changelog.git_command`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from changelog.facts import UpstreamFact, line_of
from changelog.git_contents import bring_contents, changed_files, contents_at
from changelog.pin_files import MAX_TEXT, Pins, pin_files, read_pins
from changelog.projects import Project
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.events import DependencyPinned

NOTHING = "none"
"""Version of a dependency that a commit dropped."""


def read_pinned(folder: Path, owner: Project, releases: Mapping[str, str], *, mirror: bool = False) -> Iterator[UpstreamFact]:
    """Yield what the tree of *owner* in *folder* pins: on main as it changes, then at *releases* (commit by version).

    Of a *mirror* of our own what it lacks is fetched first. Nothing is ever fetched into a clone of a user's: its configuration
    names programs that a fetch runs. Raises UpstreamError where git fails, or where contents are lacking.
    """
    paths = [file.path for file in pin_files(owner.name)]
    if not paths:
        return
    if mirror:
        bring_contents(folder, paths, sorted(set(releases.values())))
    yield from _along_main(folder, owner)
    yield from _at_releases(folder, owner, releases)


def _along_main(folder: Path, owner: Project) -> Iterator[UpstreamFact]:
    known = {file.path: file for file in pin_files(owner.name)}
    before: dict[str, Pins] = {}
    for commit, date, path, data in changed_files(folder, list(known)):
        if path not in known:  # a file below a folder that has the name of one
            continue
        old, now = before.get(path, {}), read_pins(known[path], _text(data)) if data is not None else {}
        before[path] = now
        moved = {key: value for key, value in now.items() if old.get(key) != value}
        moved |= dict.fromkeys((key for key in old if key not in now), NOTHING)
        when = _when(date)
        for (dependency, platform), version in sorted(moved.items(), key=str):
            payload = _pinned(owner, commit, dependency, version, platform, path)
            yield UpstreamFact(payload, when, when, f"{path} at {commit[:12]}")


def _when(date: str) -> datetime | None:
    """Return when a commit landed; None where its date is none (the commit itself is told as a fault by who reads commits)."""
    try:
        return parse_instant(date, "committer_date")
    except InputError:
        return None


def _at_releases(folder: Path, owner: Project, releases: Mapping[str, str]) -> Iterator[UpstreamFact]:
    wanted = [(version, commit, file) for version, commit in sorted(releases.items()) for file in pin_files(owner.name)]
    texts = contents_at(folder, [(commit, file.path) for _version, commit, file in wanted])
    for (version, commit, file), data in zip(wanted, texts, strict=True):
        for (dependency, platform), pinned in sorted(read_pins(file, _text(data)).items(), key=str) if data is not None else ():
            payload = _pinned(owner, version, dependency, pinned, platform, file.path)
            yield UpstreamFact(payload, None, None, f"{file.path} at {commit[:12]}")


def _pinned(owner: Project, version: str, dependency: str, pinned: str, platform: str | None, path: str) -> DependencyPinned:
    return DependencyPinned(
        project=owner.name,
        version=version,
        dependency=dependency,
        dependency_version=line_of(pinned, 100),
        evidence=path,
        platform=platform,
    )


def _text(data: bytes | None) -> str:
    return (data or b"")[: 4 * MAX_TEXT].decode("utf-8-sig", "replace")
