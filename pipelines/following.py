"""The fact and upstream tables follow the log by themselves: every ingest and every question brings them up to it.

Belongs here: the order of things, and nothing that a quick command would have to load in vain. Does not: the folds
(`pipelines.fold`, `changelog.tables`), detection (`pipelines.projections`).
"""

from __future__ import annotations

from contextlib import closing

import polars as pl

from changelog.tables import FOLDS, bring_tables
from pipelines.fold.small import settle
from pipelines.fold.table import Points, Prepared
from pipelines.workers.registry import open_workers
from warehouse.log import EventLog

FACTS = ("runs", "points", "evals", "builds", "quarantine")
UPSTREAM = tuple(table.name for _, table in FOLDS)
Workers = str
"""Where heavy work runs (`pipelines.workers`): serial, processes, ray, …"""


def refresh(log: EventLog, *, force: bool = False, workers: Workers = "serial") -> list[str]:
    """Bring the fact and upstream tables up to the log; return the names of those that were behind, or all with *force*."""
    with closing(open_workers(workers)) as hands:
        points = Points(log, hands)
        return _refreshed(log, points, points.advance(force=force), force)


class Follower:
    """Brings the tables along while an ingest runs: `points` after every commit, the small tables at its end."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.points = Points(log)
        self._moved = False

    def fold(self, added: pl.DataFrame, mapped: pl.DataFrame) -> None:
        """Take the rows that a commit added, and their records as they were mapped."""
        self._moved |= self.points.advance(Prepared(added, mapped))

    def settle(self) -> list[str]:
        """Bring all tables up to the log; return the names of those that were behind."""
        moved = self.points.advance() or self._moved
        return _refreshed(self.log, self.points, moved, False)


def _refreshed(log: EventLog, points: Points, moved: bool, force: bool) -> list[str]:
    brought = bring_tables(log, force=force)  # before the small tables: builds follow from them, too
    return [*(["points"] if moved else []), *settle(log, points.steps, force=force), *brought]
