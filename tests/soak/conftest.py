"""Short form in `make test`, full form where SHIFTLOG_SOAK=1 (`make soak`); and what an undisturbed ingest is like."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lengths import either
from tests.soak.command import undisturbed
from tests.soak.promises import write_night
from tests.soak.settled import Settled


@pytest.fixture(scope="session")
def rounds() -> Callable[[int, int], int]:
    """Return which of two numbers of rounds counts, the short form's or the full form's."""
    return either


@pytest.fixture(scope="session")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Settled:
    place = tmp_path_factory.mktemp("settled")
    write_night(place / "in", 1)
    first = undisturbed(place / "warehouse", "ingest", place / "in")
    shutil.copytree(place / "warehouse", place / "twin")
    second = write_night(place / "second", 2)
    return Settled(place / "warehouse", place / "in", first, undisturbed(place / "twin", "ingest", place / "in", second))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory, rounds: Callable[[int, int], int]) -> tuple[Path, list[Path]]:
    """Return a folder of 110,000 records in 110 runs, too many for one commit and for one reading process, and the runs."""
    if not rounds(0, 1):
        pytest.skip("takes in 110,000 records several times: `make soak` runs it")
    folder = tmp_path_factory.mktemp("large")
    labels = tuple(f"h200-{place}" for place in range(200))
    return folder, [write_night(folder, run_id, labels) for run_id in range(1, 111)]
