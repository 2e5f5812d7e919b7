"""The commit graph of one project: ancestors, what lies between two commits, merge base, main line, position by date.

Built from the `commits` frame. A history may be shallow: a parent that is not in the frame is unknown, and nothing is claimed
behind it. Belongs here: the graph. Does not: what a version or a pull request is (`changelog.versions`, `changelog.ranges`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

import polars as pl

MIN_PREFIX = 7
"""Shortest abbreviated hash that is taken for one."""
REMEMBERED = 16
"""Sets of ancestors that are kept: one answer asks for those of the same ends again and again."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class History:
    """The commits of one project, numbered so that a parent comes before its children and, where free, the older first."""

    def __init__(self, commits: pl.DataFrame) -> None:
        order = _topological(commits)
        self.commits = commits[order]
        self.hashes: list[str] = self.commits["commit"].to_list()
        self.index = {commit: number for number, commit in enumerate(self.hashes)}
        self.dates: list[datetime] = self.commits["committer_date"].to_list()
        named: list[list[str]] = self.commits["parents"].to_list()
        self.parents = [[self.index[parent] for parent in parents or () if parent in self.index] for parents in named]
        self.shallow = any(bool(parents) and not known for parents, known in zip(named, self.parents, strict=True))
        self.cut = frozenset(
            number for number, parents in enumerate(named) if any(parent not in self.index for parent in parents or ())
        )
        """Commits of which a parent is not known: what lies behind it is missing."""
        self._first = [self._known_parent(number, parents) for number, parents in enumerate(named)]
        self.changes = _changes(self.commits, self.index)
        """What each commit is a copy of: equal for a cherry-pick and its twin."""
        self.main = self._main_line()
        self._main_dates = _rising(self.dates[number] for number in self.main)
        self._on_main = frozenset(self.main)
        self.made: dict[type, object] = {}
        """What others work out of this history once and for all, by its type."""
        self._reached: dict[int, frozenset[int]] = {}

    def __len__(self) -> int:
        return len(self.hashes)

    def number(self, commit: str) -> int | None:
        """Return the number of a commit by its hash, or by a prefix of at least seven digits that no other commit has."""
        exact = self.index.get(commit)
        if exact is not None or len(commit) < MIN_PREFIX:
            return exact
        place = bisect_left(self._sorted, commit)
        found = [name for name in self._sorted[place : place + 2] if name.startswith(commit)]
        return self.index[found[0]] if len(found) == 1 else None

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.hashes)

    def on_main(self, number: int) -> bool:
        """Say whether a commit lies on the main line (the longest chain of first parents, copies not counted)."""
        return number in self._on_main

    @cached_property
    def main_places(self) -> list[int]:
        """For each commit, where on the main line the last main commit that it holds stands; -1 where none is known."""
        places = [-1] * len(self.hashes)
        for place, number in enumerate(self.main):
            places[number] = place
        for number, parents in enumerate(self.parents):
            if not self.on_main(number):
                places[number] = max((places[parent] for parent in parents if parent < number), default=-1)
        return places

    def reachable(self, start: int) -> frozenset[int]:
        """Return a commit and all its known ancestors."""
        found = self._reached.pop(start, None)
        if found is None:
            found = frozenset(self._walked(start))
        self._reached[start] = found  # the last that was asked for stands last
        if len(self._reached) > REMEMBERED:
            del self._reached[next(iter(self._reached))]
        return found

    def _walked(self, start: int) -> set[int]:
        seen = {start}
        waiting = [start]
        while waiting:
            for parent in self.parents[waiting.pop()]:
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return seen

    def between(self, start: int, end: int) -> list[int]:
        """Return what *end* reaches and *start* does not, parents first: `git log start..end`, oldest first."""
        return sorted(self.reachable(end) - self.reachable(start))

    def merge_base(self, one: int, other: int) -> int | None:
        """Return the last commit that both reach, or None where no common ancestor is known."""
        return max(self.reachable(one) & self.reachable(other), default=None)

    def last_before(self, when: datetime) -> int | None:
        """Return the last main commit that landed at *when* or before, or None where the known history begins later."""
        place = bisect_right(self._main_dates, when)
        return self.main[place - 1] if place else None

    def _known_parent(self, number: int, parents: list[str] | None) -> int | None:
        """Return the first parent, where it is known and comes first (in a cycle, which a bad file can hold, it does not)."""
        parent = self.index.get(parents[0]) if parents else None
        return parent if parent is not None and parent < number else None

    def _main_line(self) -> list[int]:
        """Return the longest chain of first parents, oldest first; of equal ones that with the newest tip.

        A copy of an earlier commit does not lengthen a chain, so that a release branch full of picks is not taken for main.
        """
        copies = self._copies()
        depth = [1] * len(self.hashes)
        for number, parent in enumerate(self._first):
            if parent is not None:
                depth[number] = depth[parent] + (number not in copies)
        tip = max(range(len(depth)), key=lambda number: (depth[number], self.dates[number], self.hashes[number]), default=None)
        line: list[int] = []
        while tip is not None:
            line.append(tip)
            tip = self._first[tip]
        return line[::-1]

    def _copies(self) -> set[int]:
        """Return the commits that landed after another commit of the same change."""
        first: dict[Hashable, int] = {}
        for number in sorted(range(len(self.hashes)), key=lambda number: (self.dates[number], number)):
            first.setdefault(self.changes[number], number)
        return {number for number, change in enumerate(self.changes) if first[change] != number}


def _changes(commits: pl.DataFrame, index: Mapping[str, int]) -> list[Hashable]:
    """Return what makes two commits the same change: a pick keeps pull request, subject and writing time, not its hash.

    A pick whose message names its original, by hash or by pull request, is that change under whatever number and subject.
    """
    columns = (commits["pr"].to_list(), commits["title"].to_list(), commits["author_date"].to_list())
    changes: list[Hashable] = [pr if pr is not None else (title, written) for pr, title, written in zip(*columns, strict=True)]
    if "picked_pr" in commits.columns:
        for number, request in _said(commits["picked_pr"]):
            changes[number] = request
    originals = {number: index[name] for number, name in _said(commits["picked_from"]) if index.get(name, number) < number}
    for number in sorted(originals):  # a pick of a pick is settled after the first one: parents and originals come first
        changes[number] = changes[originals[number]]
    return changes


def _said(column: pl.Series) -> list[tuple[int, Any]]:
    """Return the rows of a column that say anything, with what they say."""
    rows = column.is_not_null().arg_true()
    return list(zip(rows.to_list(), column[rows].to_list(), strict=True))


def _rising(dates: Iterable[datetime]) -> list[datetime]:
    """Return *dates* with each at least its predecessor: a clock that ran back must not unsort the main line."""
    highest = datetime.min.replace(tzinfo=UTC)
    rising: list[datetime] = []
    for date in dates:
        highest = max(highest, date)
        rising.append(highest)
    return rising


def _topological(commits: pl.DataFrame) -> list[int]:
    """Return row numbers, parents before children; free choices go to the older commit, then the smaller hash.

    Rows in a cycle (which git cannot make, a bad file can) come last, in the same order.
    """
    names: list[str] = commits["commit"].to_list()
    dates: list[datetime] = commits["committer_date"].to_list()
    rows = {name: row for row, name in enumerate(names)}
    children: list[list[int]] = [[] for _ in names]
    missing = [0] * len(names)
    for row, parents in enumerate(commits["parents"].to_list()):
        for parent in {rows[name] for name in parents or () if name in rows and rows[name] != row}:
            children[parent].append(row)
            missing[row] += 1
    times = [(date - _EPOCH) // timedelta(microseconds=1) for date in dates]
    keys = list(zip(times, names, range(len(names)), strict=True))
    ready = [keys[row] for row in range(len(names)) if missing[row] == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        row = heappop(ready)[2]
        order.append(row)
        for child in children[row]:
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, keys[child])
    done = set(order)
    return order + [key[2] for key in sorted(keys) if key[2] not in done]
