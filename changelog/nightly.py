"""Images that an engine publishes for a commit every night, and how long they are kept; read from `data/nightlies.toml`.

Belongs here: from a commit to the reference of its nightly image, and whether it can still be there. Does not: asking a registry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Nightly:
    """One series of nightly images: the repository, how a tag is made of a commit, for which vendors, and how many are kept."""

    repository: str
    tag: str
    vendors: tuple[str, ...]
    kept: int

    def image(self, commit: str, day: datetime) -> str:
        """Return the reference that the nightly of *commit*, built on *day*, has; whether it was built is another question."""
        return f"{self.repository}:{self.tag.format(commit=commit, short=commit[:8], day=day)}"

    def is_gone(self, built: datetime, now: datetime) -> bool:
        """Say whether an image *built* then has been cleaned up by *now*: one is made a night, and the newest are kept."""
        return now - built > timedelta(days=self.kept)


def nightlies(project: str, vendor: str | None = None) -> tuple[Nightly, ...]:
    """Return the nightly series of a project; with *vendor*, those that run on its accelerators."""
    return tuple(one for one in _all().get(project, ()) if vendor is None or vendor in one.vendors)


@cache
def _all() -> dict[str, tuple[Nightly, ...]]:
    data = tomllib.loads(files("changelog").joinpath("data/nightlies.toml").read_text("utf-8"))
    return {project: tuple(map(_nightly, entries)) for project, entries in data.items()}


def _nightly(entry: dict[str, object]) -> Nightly:
    vendors = entry["vendors"]
    return Nightly(
        repository=str(entry["repository"]),
        tag=str(entry["tag"]),
        vendors=tuple(map(str, vendors)) if isinstance(vendors, Iterable) else (),
        kept=int(str(entry["kept"])),
    )
