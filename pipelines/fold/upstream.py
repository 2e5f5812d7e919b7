"""What is known upstream of builds: commits, releases, and what registries tell of images.

Belongs here: looking up. Does not: what follows for a build (`builds`), the tables themselves (`changelog.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import polars as pl

from changelog.sightings import Labelled, labelled
from pipelines.ingest.columns import reference

FROM = {"commits": ("CommitLanded",), "releases": ("ReleasePublished",), "images": ("ImageResolved",)}
"""The tables, and the events that they follow from."""
_EVIDENCE = ("tag", "anchor", "version-table")
"""Evidence of a release that names its commit, the most trusted first."""


class Upstream:
    """The upstream tables, each read once and only where it is asked for; *read* gives one by name."""

    def __init__(self, read: Callable[[str], pl.DataFrame]) -> None:
        self._read = read
        self._released: dict[str, dict[str, list[str]]] = {}

    def commits(self, project: str) -> pl.DataFrame:
        """Return what a history is built from."""
        return self._commits.filter(pl.col("project") == project)

    def released(self, project: str) -> dict[str, list[str]]:
        """Return the commits of each version: its own, else where its branch left main."""
        if project not in self._released:
            self._released[project] = self._of_releases(project)
        return self._released[project]

    def label(self, build: dict[str, Any]) -> Labelled | None:
        """Return what registries tell of a build's image.

        A tag that can be anything (`latest`, `nightly`) is one only from when it was looked at; one that names its version or
        commit is taken to keep it.
        """
        image = reference(build["image_ref"])
        if image is None:
            return None
        told = labelled(self._images, image.ref, build["image_digest"])
        if told is None or build["image_digest"] or image.source != "unknown":
            return told
        return told if told.seen_at <= build["first_measured_at"] else None

    def _of_releases(self, project: str) -> dict[str, list[str]]:
        found: dict[str, list[tuple[int, str]]] = {}
        own = self._releases.filter((pl.col("project") == project) & pl.col("evidence").is_in(_EVIDENCE))
        for row in own.iter_rows(named=True):
            rank = _EVIDENCE.index(row["evidence"])
            if row["commit"]:
                found.setdefault(row["version"], []).append((rank, row["commit"]))
            if row["branch_point"]:
                found.setdefault(row["version"], []).append((rank + len(_EVIDENCE), row["branch_point"]))
        return {version: [commit for _rank, commit in sorted(commits)] for version, commits in found.items()}

    @cached_property
    def _commits(self) -> pl.DataFrame:
        return self._read("commits")

    @cached_property
    def _releases(self) -> pl.DataFrame:
        return self._read("releases")

    @cached_property
    def _images(self) -> pl.DataFrame:
        return self._read("images")
