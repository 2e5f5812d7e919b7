"""A warehouse that takes in a little every night for years: every fact once, and tables of few files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable

from pipelines.following import refresh
from pipelines.ingest.intake import Declared, ingest
from tests.soak.promises import assert_kept, write_night
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
MOST_FILES = 150
"""Live data files of a table; it is compacted when it has over 100. Before that a night adds one at most."""


def live_files(warehouse: Path) -> dict[str, int]:
    """Return how many data files each table of a warehouse consists of now."""
    tables = (place.parent for place in warehouse.glob("*/_delta_log"))
    return {table.name: len(DeltaTable(str(table)).file_uris()) for table in tables}


def test_nightly_appends_keep_few_files(tmp_path: Path, rounds: Callable[[int, int], int]) -> None:
    warehouse = tmp_path / "warehouse"
    log = EventLog(Store(str(warehouse)))
    runs = []
    for night in range(1, rounds(16, 1000) + 1):
        runs.append(write_night(tmp_path / "in", night, ("h200",)))
        ingest(log, (str(runs[-1]),), Declared(), recorded_at=NOW, mirrors=warehouse / "mirrors", announce=lambda _name: None)
        refresh(log)
        if night % 15 == 0:
            files = live_files(warehouse)
            assert max(files.values()) <= min(MOST_FILES, night + 1), f"night {night}: {files}"
    assert_kept(warehouse, runs)
