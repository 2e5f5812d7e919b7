"""Ctrl-C and SIGTERM in the middle of an ingest: one line, the status that a shell expects, and it can be run again."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lengths import ONLY_FULL
from tests.soak.command import COMMIT, Moment, after, at, shiftlog, struck, undisturbed
from tests.soak.promises import assert_kept, write_night
from tests.soak.settled import Settled

SEED = 5
WORKING = 0.4
"""Share of its life after which an ingest has loaded its modules and is at work."""


def moment(settled: Settled, turn: int, chance: random.Random) -> Moment:
    """Return a commit for even turns, and for odd ones any time at which the command is at work."""
    if turn % 2 == 0:
        return at(COMMIT, chance.randint(1, settled.later.commits - 1))
    return after(settled.later.seconds * chance.uniform(WORKING, 0.95))


@pytest.mark.parametrize(
    ("number", "statuses"),
    [(signal.SIGINT, {130, 1}), pytest.param(signal.SIGTERM, {143, 1}, marks=ONLY_FULL)],
    ids=["SIGINT", "SIGTERM"],
)
def test_interrupted_ingest_says_one_line_and_resumes(
    number: signal.Signals, statuses: set[int], tmp_path: Path, settled: Settled, rounds: Callable[[int, int], int]
) -> None:
    """Of *wanted* signals every one ends a command at work; one that comes while the last line is written is tried again.

    What came too late to matter must have succeeded.
    """
    wanted, interrupted, turn = rounds(1, 20), 0, 0
    chance = random.Random(f"{SEED} {number.name}")
    while interrupted < wanted:
        warehouse, folder, first = settled.copied(tmp_path / f"turn_{turn}")
        second = write_night(folder, 2)
        alive, outcome = struck(number, moment(settled, turn, chance), warehouse, "ingest", folder)
        if alive and outcome.status != 0:
            interrupted += 1
            assert outcome.status in {*statuses, -number}, f"turn {turn}: {outcome}"
            assert len(outcome.said) == 1 and outcome.said[0].startswith("shiftlog: "), f"turn {turn}: {outcome.err}"
        assert shiftlog(warehouse, "ingest", folder).status == 0
        assert_kept(warehouse, [first, second])
        turn += 1
        assert turn - interrupted <= max(5, wanted), f"only {interrupted} of {turn} signals met a command at work"


@pytest.mark.parametrize(
    ("number", "statuses"), [(signal.SIGINT, {130, 1}), (signal.SIGTERM, {143, 1})], ids=["SIGINT", "SIGTERM"]
)
def test_interrupted_large_ingest_says_one_line(
    number: signal.Signals, statuses: set[int], tmp_path: Path, large: tuple[Path, list[Path]]
) -> None:
    """Processes that the ingest started get Ctrl-C too: they end, and say nothing."""
    folder, runs = large
    life = undisturbed(tmp_path / "twin", "ingest", folder)
    for share in (0.15, 0.3, 0.45, 0.6):
        warehouse = tmp_path / f"warehouse_{share}"
        alive, outcome = struck(number, after(life.seconds * share), warehouse, "ingest", folder)
        assert alive, f"{share} of its life: it was done before"
        assert outcome.status in {*statuses, -number}, f"{share} of its life: {outcome}"
        assert len(outcome.said) == 1 and outcome.said[0].startswith("shiftlog: "), f"{share} of its life: {outcome.err}"
        assert shiftlog(warehouse, "ingest", folder).status == 0
        assert_kept(warehouse, runs)
