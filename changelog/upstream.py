"""What is known of one upstream project: its history, its releases, what carries it.

Belongs here: picking one project's rows out of the tables. Does not: resolving a version or finding a range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from changelog.history import History
from changelog.projects import Project, project
from warehouse.schemas import TABLES


@dataclass(frozen=True)
class Upstream:
    """One project with its rows of `releases`, all `dependencies` and `images`, and its history."""

    project: Project
    history: History
    releases: pl.DataFrame
    dependencies: pl.DataFrame
    images: pl.DataFrame


def open_upstream(name: str, tables: Mapping[str, pl.DataFrame]) -> Upstream:
    """Return what *tables* (`commits`, `releases`, `dependencies`, `images`) hold of a project.

    Raises InputError for a project that is not known; one without any row is empty, not an error.
    """
    found = project(name)
    own = pl.col("project") == found.name
    return Upstream(
        project=found,
        history=History(_frame(tables, "commits").filter(own)),
        releases=_frame(tables, "releases").filter(own),
        dependencies=_frame(tables, "dependencies"),
        images=_frame(tables, "images"),
    )


def _frame(tables: Mapping[str, pl.DataFrame], name: str) -> pl.DataFrame:
    frame = tables.get(name)
    return frame if frame is not None else TABLES[name].schema.to_frame()
