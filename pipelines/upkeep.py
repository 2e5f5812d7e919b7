"""Upkeep of the tables: fewer files, checkpoints, and an end to what nobody needs."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.announcing import Announce, silent
from warehouse.schemas import TABLES
from warehouse.store import Store


@dataclass(frozen=True)
class Compacted:
    """What was done to one table: data files before and after, and replaced files that were deleted."""

    table: str
    before: int
    after: int
    deleted: int


def compact(store: Store, announce: Announce = silent) -> list[Compacted]:
    """Merge the files of every table that is there; the log's own files all stay."""
    done = []
    for name, table in TABLES.items():
        if not store.exists(name):
            continue
        announce(name)
        before, after = store.compact(name)
        done.append(Compacted(name, before, after, 0 if table.append_only else store.vacuum(name)))
    return done
