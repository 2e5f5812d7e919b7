"""Fixtures that several test modules share; hand-made rows are in `frames` (tables) and `records` (raw files)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.lengths import either
from warehouse.log import EventLog
from warehouse.store import Store

EXAMPLES = either(50, 200)
"""Cases of a property test that says no number itself: many at length (`make soak`), few where all tests must end soon."""
settings.register_profile("shiftlog", deadline=None, max_examples=EXAMPLES)  # on a shared machine a deadline says nothing
settings.load_profile("shiftlog")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data that stands beside the project; the test is skipped where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data (../shared/data) absent")
    return folder


@pytest.fixture(scope="session")
def real_runs(shared_data: Path) -> Path:
    """Return the folder of the twenty real benchmark runs."""
    return shared_data / "inferencex" / "runs"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "warehouse"))


@pytest.fixture
def log(store: Store) -> EventLog:
    return EventLog(store)
