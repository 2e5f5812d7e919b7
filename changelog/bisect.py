"""Halving the candidates of a range: what results leave of them, which commit to run next, how many runs that will take.

One of the candidates is taken to be the cause. A build that has it stands at the level of the newer end, one that has not at that
of the older. So each result keeps the candidates that its build has, or those that it has not, whatever branch it was built from.
Belongs here: the sets, the choice, the expected number of runs. Does not: where results come from and which images there are
(`pipelines.bisecting`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from changelog.history import History
from changelog.ranges import Range

EVEN = 0.25
"""A build that is there is run in place of one that must be made where at least this share of the set lies on either side."""


class Level(StrEnum):
    """What a result says: the level of FROM, that of TO, or neither."""

    OLD = "old"
    NEW = "new"
    SKIP = "skip"


@dataclass(frozen=True)
class Halving:
    """The candidates of a range whose ends are both commits (numbers of the history, oldest first).

    Raises ValueError from `of` where an end is no commit or nothing lies between.
    """

    history: History
    candidates: tuple[int, ...]
    older: int
    newer: int
    reversed: bool

    @staticmethod
    def of(found: Range) -> Halving:
        """Return the halving of a range."""
        history = found.upstream.history
        ends = (found.end, found.start) if found.reversed else (found.start, found.end)
        if any(end.commit is None for end in ends):
            raise ValueError("an end of the range is no commit")
        if not found.numbers:
            raise ValueError("no change lies between the ends")
        older, newer = (history.index[end.commit or ""] for end in ends)
        return Halving(history, found.numbers, older, newer, found.reversed)

    @cached_property
    def line(self) -> tuple[int, ...]:
        """The commits from the older end's line to the newer end, oldest first: those that can be built and run."""
        history, known = self.history, self.history.reachable(self.older)
        chain: list[int] = []
        number: int | None = self.newer
        while number is not None and number not in known:
            chain.append(number)
            parents = history.parents[number]
            number = parents[0] if parents and parents[0] < number else None
        return tuple(reversed(chain))

    def held(self, number: int) -> frozenset[int] | None:
        """Return the candidates that a commit has; None where it tells nothing.

        That is where it has all or none of them, or a change that neither end has, which could have moved the level by itself.
        """
        if number not in self._held:
            self._held[number] = self._held_by(number)
        return self._held[number]

    def end(self, number: int) -> Level | None:
        """Return the level of the end that a commit must stand at: it has all candidates or none, and nothing else."""
        changes = self.history.changes
        own = {changes[one] for one in self.history.reachable(number)}
        has = [changes[one] in own for one in self.candidates]
        if not own <= self._of_ends or any(has) != all(has):
            return None
        return Level.NEW if all(has) != self.reversed else Level.OLD

    @cached_property
    def _held(self) -> dict[int, frozenset[int] | None]:
        return {}

    def _held_by(self, number: int) -> frozenset[int] | None:
        changes = self.history.changes
        own = {changes[one] for one in self.history.reachable(number)}
        held = frozenset(one for one in self.candidates if changes[one] in own)
        return held if 0 < len(held) < len(self.candidates) and own <= self._of_ends else None

    @cached_property
    def _of_ends(self) -> set[object]:
        both = self.history.reachable(self.older) | self.history.reachable(self.newer)
        return {self.history.changes[one] for one in both}

    @cached_property
    def counts(self) -> tuple[frozenset[int], ...]:
        """The candidates that each commit of the line brings in: itself, or what it merges."""
        history, wanted = self.history, set(self.candidates)
        seen, brought = history.reachable(self.older), []
        for number in self.line:
            own = history.reachable(number) - seen if len(history.parents[number]) > 1 else {number}
            seen |= own
            brought.append(frozenset(own & wanted))
        return tuple(brought)

    def left(self, results: Iterable[tuple[frozenset[int], Level]]) -> tuple[int, ...]:
        """Return the candidates that *results* (what a build held, and its level) leave, oldest first; () where none fits all."""
        remaining = set(self.candidates)
        for held, level in results:
            if level is not Level.SKIP:
                remaining = remaining & held if (level is Level.NEW) != self.reversed else remaining - held
        return tuple(number for number in self.candidates if number in remaining)

    def next(self, left: Collection[int], tried: Collection[int], ready: Iterable[int] = ()) -> int | None:
        """Return the commit to run next, or None where none that was not *tried* could part what is *left*.

        The commit of the line that halves it; one of *ready* (commits whose build is there, on the line or beside it) instead
        where that parts it well enough.
        """
        choices = self._parting(left, tried)
        there = {number: have for number in ready if number not in tried and (have := self._share(number, left)) is not None}
        fair = {number: have for number, have in there.items() if min(have, len(left) - have) >= EVEN * len(left)}
        among = fair or choices
        return min(among, key=lambda number: (abs(2 * among[number] - len(left)), number), default=None)

    def _parting(self, left: Collection[int], tried: Collection[int]) -> dict[int, int]:
        """Return the commits of the line that part what is left, with how many of it each has."""
        wanted, have, parting = set(left), 0, {}
        for number, brought in zip(self.line, self.counts, strict=True):
            have += len(brought & wanted)
            if 0 < have < len(wanted) and number not in tried:
                parting[number] = have
        return parting

    def _share(self, number: int, left: Collection[int]) -> int | None:
        held = self.held(number)
        have = len(held & set(left)) if held is not None else 0
        return have if 0 < have < len(left) else None


def expected_runs(candidates: int) -> float:
    """Return the mean number of runs that halving takes to tell one of *candidates*, all equally likely.

    A binary tree of n leaves as flat as can be has its leaves at depths k and k + 1, k = floor(log2 n): the mean is
    k + 2 (n - 2^k) / n.
    """
    if candidates < 2:
        return 0.0
    depth = candidates.bit_length() - 1
    return depth + 2 * (candidates - (1 << depth)) / candidates
