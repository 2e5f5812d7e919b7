"""A disk that is full in the middle: one line that says so, reading goes on, and with room again the same command completes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.command import shiftlog
from tests.soak.promises import CONCURRENCIES, assert_kept, facts_of, logged, write_night
from tests.soak.settled import Settled
from warehouse.store import Store

PAGE = 4096
"""Bytes in which a tmpfs gives out room."""
ROOM, MORE_ROOM = 64 << 20, 128 << 20
NAMES_THE_DISK = re.compile(r"no space|disk.*full|full.*disk", re.IGNORECASE)
EVENTS_OF_A_NIGHT = 2 * len(CONCURRENCIES) + 2
"""Events of one night: its results on two accelerators, the run, and that its file was read."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a mounted small disk; it needs the right to mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no right to mount a small disk: {mounted.stderr.strip() or mounted.returncode}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def leave(disk: Path, free: int) -> None:
    """Fill the disk but for *free* bytes."""
    state = os.statvfs(disk)
    with (disk / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, state.f_bavail * state.f_frsize - free)
    state = os.statvfs(disk)
    assert 0 <= state.f_bavail * state.f_frsize - free < PAGE


def enlarge(disk: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,size={MORE_ROOM}", str(disk)], check=True)


def room_of(table: Path) -> int:
    """Return the bytes that a table's files take on a tmpfs."""
    return sum(-(-file.stat().st_size // PAGE) * PAGE for file in table.rglob("*") if file.is_file())


def assert_refused(warehouse: Path, *paths: Path) -> None:
    """Assert that an ingest fails with one line that names the disk."""
    outcome = shiftlog(warehouse, "ingest", *paths)
    assert outcome.status == 1, outcome
    assert len(outcome.said) == 1, outcome.err
    assert outcome.said[0].startswith("shiftlog: ") and NAMES_THE_DISK.search(outcome.said[0]), outcome.err


def assert_readable(warehouse: Path, events: int) -> None:
    """Assert that what is there can be asked for while the disk is full: reading needs no room."""
    counted = shiftlog(warehouse, "sql", "SELECT count(*) AS n FROM events", "--format", "csv")
    assert (counted.status, counted.out.split()) == (0, ["n", str(events)]), counted.err
    shown = shiftlog(warehouse, "log", "--format", "csv", "--limit", "1000")
    assert (shown.status, len(shown.out.splitlines())) == (0, 1 + events), shown.err


def assert_completed(warehouse: Path, disk: Path, folder: Path, runs: list[Path]) -> None:
    """Assert that with more room the same ingest completes, and that nothing is lost or twice."""
    enlarge(disk)
    completed = shiftlog(warehouse, "ingest", folder)
    assert completed.status == 0, completed.err
    assert_kept(warehouse, runs)


def test_disk_full_before_the_log_is_written(disk: Path, settled: Settled) -> None:
    warehouse, folder, first = settled.copied(disk)
    second = write_night(folder, 2)
    leave(disk, PAGE)
    assert_refused(warehouse, folder)
    assert logged(Store(str(warehouse))) == facts_of(first)
    assert_readable(warehouse, EVENTS_OF_A_NIGHT)
    assert_completed(warehouse, disk, folder, [first, second])


def test_disk_full_when_only_the_tables_are_written(disk: Path, tmp_path: Path, settled: Settled) -> None:
    """Room is left for the log's new files, as a twin with room needed it, and for nothing else."""
    warehouse, folder, first = settled.copied(disk)
    second = write_night(folder, 2)
    twin = settled.copied(tmp_path / "twin")[0]
    before = room_of(twin / "events")
    assert shiftlog(twin, "ingest", folder).status == 0
    leave(disk, room_of(twin / "events") - before + PAGE)
    assert_refused(warehouse, folder)
    assert logged(Store(str(warehouse))) == facts_of(first, second), "the log was to fit"
    assert_readable(warehouse, 2 * EVENTS_OF_A_NIGHT)
    assert_completed(warehouse, disk, folder, [first, second])
