"""Many processes take in overlapping files at once: every fact once, no error shown to anybody."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lengths import ONLY_FULL
from tests.soak.command import ALARMING, COMMIT, Outcome, at, count, ended, overtaken, start
from tests.soak.promises import assert_kept, write_night
from tests.soak.settled import Settled

SEED = 3
NIGHTS = 24
LOG_DATA = "events/*.parquet*"


def shares(runs: list[Path], writers: int, chance: random.Random) -> list[list[Path]]:
    """Return what each writer takes in: two of three runs in an order of its own; every run has a first taker and another one."""
    taken = [chance.sample(runs, k=len(runs) * 2 // 3) for _ in range(writers)]
    for place, run in enumerate(runs):
        for taker in (taken[place % writers], taken[(place + 1) % writers]):
            if run not in taker:
                taker.append(run)
    return taken


def assert_untroubled(outcomes: list[Outcome]) -> None:
    """Assert that every command succeeded and that nobody was shown anything that looks like an error."""
    for outcome in outcomes:
        assert outcome.status == 0, outcome.err
        assert not ALARMING.search(outcome.err), outcome.err


def test_writers_of_overlapping_files_keep_every_fact_once(tmp_path: Path, rounds: Callable[[int, int], int]) -> None:
    chance = random.Random(SEED)
    runs = [write_night(tmp_path / "in", run_id) for run_id in range(1, NIGHTS + 1)]
    for turn in range(rounds(1, 20)):
        warehouse = tmp_path / f"warehouse_{turn}"
        processes = [start(warehouse, "ingest", *share) for share in shares(runs, rounds(3, 8), chance)]
        all_started = time.time()
        outcomes = [ended(process) for process in processes]
        assert_untroubled(outcomes)
        first = warehouse / "events" / "_delta_log" / f"{1:020d}.json"
        assert first.stat().st_mtime > all_started, "one writer was done before the last began: no race"
        assert_kept(warehouse, runs)


def test_writer_overtaken_at_a_commit_undoes_nothing(tmp_path: Path, settled: Settled, rounds: Callable[[int, int], int]) -> None:
    """A writer halted between two commits must neither put its older view over newer tables nor add to them once more."""
    for commit in range(rounds(2, 1), rounds(2, settled.later.commits - 1) + 1):
        warehouse, folder, first = settled.copied(tmp_path / f"halt_{commit}")
        second, third = write_night(folder, 2), write_night(folder, 3)
        _, outcomes = overtaken(at(COMMIT, commit), warehouse, ("ingest", second), ("ingest", third))
        assert_untroubled(outcomes)
        assert_kept(warehouse, [first, second, third])


def test_first_writer_overtaken_while_it_makes_the_tables(
    tmp_path: Path, settled: Settled, rounds: Callable[[int, int], int]
) -> None:
    if not rounds(0, 1):
        pytest.skip("`make soak` runs it; the short form halts a writer on tables that are there")
    for commit in range(1, settled.first.commits):
        folder, warehouse = tmp_path / f"halt_{commit}", tmp_path / f"halt_{commit}" / "warehouse"
        first, second = write_night(folder / "in", 1), write_night(folder / "in", 2)
        _, outcomes = overtaken(at(COMMIT, commit), warehouse, ("ingest", first), ("ingest", second))
        assert_untroubled(outcomes)
        assert_kept(warehouse, [first, second])


@ONLY_FULL
def test_writer_overtaken_before_its_commit_adds_only_what_is_still_missing(
    tmp_path: Path, settled: Settled, rounds: Callable[[int, int], int]
) -> None:
    """Halted when its data file is written and its commit is not, a writer has read a log that is no longer the newest."""
    wanted, halted, turn = rounds(1, 20), 0, 0
    while halted < wanted:
        turn += 1
        warehouse, folder, first = settled.copied(tmp_path / f"halt_{turn}")
        second, third, fourth = (write_night(folder, run_id) for run_id in (2, 3, 4))
        before = count(warehouse, COMMIT)
        commits, outcomes = overtaken(at(LOG_DATA, 1), warehouse, ("ingest", second, third), ("ingest", third, fourth))
        assert_untroubled(outcomes)
        assert_kept(warehouse, [first, second, third, fourth])
        halted += commits == before
        assert turn <= 3 * (halted + 1), f"only {halted} of {turn} halts came before the commit"
