"""kill -9 at any moment of an ingest, then the same command again: nothing lost, nothing twice, nothing to mend."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lengths import ONLY_FULL
from tests.soak.command import COMMIT, after, at, moment_of, shiftlog, struck, undisturbed
from tests.soak.promises import assert_kept, facts_of, logged, pointed, write_night
from tests.soak.settled import Settled
from warehouse.store import Store

SEED = 9
WANTED = {"time": (1, 40), "commit": (0, 30), "file": (1, 30)}
"""Kills by kind of moment, in the short form and in the full one."""
LOG_COMMIT = "events/_delta_log/*.json"
MANY = 10
"""From so many kills on, they must have met more than one phase of an ingest."""
NIGHTS = 5
"""Nights that a warehouse lives: the first kill meets the making of tables, the later ones appends and replacements."""


def phase(warehouse: Path, runs: list[Path]) -> str:
    """Return how far a killed ingest had come; what it left must be readable, and nothing that was never given."""
    store, given = Store(str(warehouse)), facts_of(*runs)
    in_log, in_points = logged(store), pointed(store)
    assert in_points <= in_log <= given
    if in_log < given:
        return "before the log"
    return "between log and points" if in_points < given else "behind points"


@pytest.mark.parametrize("kind", [pytest.param("time", marks=ONLY_FULL), "commit", "file"])
def test_killed_ingest_resumes(kind: str, tmp_path: Path, settled: Settled, rounds: Callable[[int, int], int]) -> None:
    """Of *wanted* kills every one hits a live process; moments that come too late are counted and tried again."""
    wanted, kills, misses = rounds(*WANTED[kind]), 0, 0
    if not wanted:
        pytest.skip("`make soak` runs it; the short form kills at one commit, below")
    pace = settled.first.seconds  # of the last ingest: others may be at work on this machine
    phases: Counter[str] = Counter()
    chance = random.Random(f"{SEED} {kind}")
    warehouse, folder, runs = tmp_path, tmp_path, list[Path]()
    while kills < wanted:
        if len(runs) in (0, NIGHTS):
            folder = tmp_path / f"life_{kills + misses}"
            warehouse, runs = folder / "warehouse", []
        runs.append(write_night(folder / "in", len(runs) + 1))
        moment = moment_of(replace(settled.first if len(runs) == 1 else settled.later, seconds=pace), kind, chance)
        alive, outcome = struck(signal.SIGKILL, moment, warehouse, "ingest", folder / "in")
        hit = alive and outcome.status == -signal.SIGKILL
        kills, misses = kills + hit, misses + (not hit)
        assert misses <= max(3, kills), f"{misses} of {kills + misses} kills came too late: moments are aimed wrongly"
        phases[phase(warehouse, runs)] += hit
        pace = undisturbed(warehouse, "ingest", folder / "in").seconds
        assert_kept(warehouse, runs)
    assert wanted < MANY or len(+phases) > 1, f"all kills met one phase of the ingest: {phases}"


def test_killed_between_log_and_tables(tmp_path: Path, settled: Settled) -> None:
    """The log is committed, the tables are not: the next command must not take the facts for told."""
    warehouse, folder, first = settled.copied(tmp_path)
    second = write_night(folder, 2)
    alive, _ = struck(signal.SIGKILL, at(COMMIT, 1), warehouse, "ingest", folder)
    assert alive
    assert logged(Store(str(warehouse))) == facts_of(first, second), "the kill came before the commit"
    assert shiftlog(warehouse, "ingest", folder).status == 0
    assert_kept(warehouse, [first, second])


def test_killed_between_two_commits_of_the_log(tmp_path: Path, large: tuple[Path, list[Path]]) -> None:
    """An ingest that is too large for one commit leaves a part of its facts; the next one adds the others only."""
    (folder, runs), warehouse = large, tmp_path / "warehouse"
    alive, _ = struck(signal.SIGKILL, at(LOG_COMMIT, 2), warehouse, "ingest", folder)
    assert alive
    assert Counter() < logged(Store(str(warehouse))) < facts_of(*runs), "the kill did not come between two commits of the log"
    assert shiftlog(warehouse, "ingest", folder).status == 0
    assert_kept(warehouse, runs)


def test_killed_large_ingest_leaves_no_process_behind(tmp_path: Path, large: tuple[Path, list[Path]]) -> None:
    """Processes that it started hold its output open: `struck` returns when the last of them is gone, or fails."""
    folder, runs = large
    life = undisturbed(tmp_path / "twin", "ingest", folder)
    for share in (0.15, 0.3, 0.45, 0.6):
        warehouse = tmp_path / f"warehouse_{share}"
        alive, outcome = struck(signal.SIGKILL, after(life.seconds * share), warehouse, "ingest", folder)
        assert alive and outcome.status == -signal.SIGKILL
        assert shiftlog(warehouse, "ingest", folder).status == 0
        assert_kept(warehouse, runs)
