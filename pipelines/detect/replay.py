"""What was said of a series on which day: suspected at the first observation, confirmed at the second, seldom taken back.

The answer for a prefix never depends on what came after it. A change that was said costs half as much from then on: it is taken
back when the evidence against it is plain, not when a penalty is missed by a little, and its place is not moved silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.detect.partition import MIN_LAST, Floats, Partition, partitions
from pipelines.detect.series import DAYS, SUSPECTED, Rules, gated, level, penalties, segment_levels

CONFIRMED, CLEARED, RETRACTED = "confirmed", "cleared", "retracted"
KNOWN = 0.5
"""Price of a change that was said before, in prices of a new one."""
NEAR = 1
"""Observations by which a change may be seen elsewhere later and still be the same."""


@dataclass(frozen=True)
class Said:
    """A statement of one day (index of the observation that had just come) about a change at `start`; `size` is logarithmic."""

    day: int
    status: str
    start: int
    size: float


@dataclass(frozen=True)
class History:
    """All that was said of a series, and the changes that stand at its end."""

    said: tuple[Said, ...]
    standing: tuple[int, ...]


@dataclass
class _Course:
    """A series on its way through the days."""

    levels: Floats
    scale: float
    day: int
    said: list[Said]
    standing: dict[int, float]
    suspect: Said | None = None


def replay(levels: Floats, scale: float, rules: Rules = DAYS) -> History:
    """Return what was said of one series, day by day."""
    return replay_many([levels], [scale], rules)[0]


def replay_many(series: Sequence[Floats], scales: Sequence[float], rules: Rules = DAYS) -> list[History]:
    """Return the same as `replay` for every series: all go on until one says something, which alters only its own prices."""
    courses = [_Course(own, max(scale, rules.floor), 0, [], {}) for own, scale in zip(series, scales, strict=True)]
    active = courses
    while active:
        scaled = [course.levels / course.scale for course in active]
        found = partitions(scaled, [_prices(course, rules) for course in active], rules.cap)
        active = [course for course, part in zip(active, found, strict=True) if _advance(course, part, rules)]
    return [History(tuple(course.said), tuple(sorted(course.standing))) for course in courses]


def _prices(course: _Course, rules: Rules) -> Floats:
    prices = penalties(len(course.levels), rules)
    for start in course.standing:
        prices[start] *= KNOWN
    return prices


def _advance(course: _Course, part: Partition, rules: Rules) -> bool:
    """Live through the days up to the first that alters what stands; say whether any is left."""
    eventful = (part.last > 0) | _may_be_odd(course, rules)
    while course.day < len(course.levels):
        before = set(course.standing)
        if before or course.suspect is not None or eventful[course.day]:
            _live(course, part, rules)
        course.day += 1
        if set(course.standing) != before:
            break
    return course.day < len(course.levels)


def _may_be_odd(course: _Course, rules: Rules) -> NDArray[np.bool_]:
    """Say for each observation whether it is far from any earlier one: a level lies between those; most days are dull."""
    reach = max(rules.cap * course.scale, rules.gate)
    above = course.levels - np.minimum.accumulate(course.levels) > reach
    below = np.maximum.accumulate(course.levels) - course.levels > reach
    return above | below


def _live(course: _Course, part: Partition, rules: Rules) -> None:
    """Say what the observation of today makes of the changes that stand, and of itself."""
    seen = course.levels[: course.day + 1]
    starts = gated(seen, part.starts(len(seen)), course.scale, rules)
    if starts or course.standing:
        _compare(course, seen, starts, rules)
    _suspect(course, seen, rules)


def _compare(course: _Course, seen: Floats, starts: tuple[int, ...], rules: Rules) -> None:
    steady = segment_levels(seen, starts, course.scale, rules)
    sizes = {start: float(steady[index + 1] - steady[index]) for index, start in enumerate(starts)}
    same = {
        old: new for old, size in course.standing.items() for new in starts if abs(new - old) <= NEAR and size * sizes[new] > 0
    }
    for old in [old for old in course.standing if old not in same]:
        course.said.append(Said(course.day, RETRACTED, old, course.standing.pop(old)))
    for new in [new for new in starts if new not in same.values()]:
        course.standing[new] = sizes[new]
        course.said.append(Said(course.day, CONFIRMED, new, sizes[new]))
        course.suspect = None


def _suspect(course: _Course, seen: Floats, rules: Rules) -> None:
    """Suspect today's observation if it is an outlier of the level that stands; clear yesterday's, if nothing came of it."""
    if course.suspect is not None:
        course.said.append(Said(course.day, CLEARED, course.suspect.start, course.suspect.size))
        course.suspect = None
    earlier = seen[max(course.standing, default=0) : -1]
    if len(earlier) < MIN_LAST:
        return
    size = float(seen[-1]) - level(earlier, course.scale, rules)
    if abs(size) > max(rules.cap * course.scale, rules.gate):
        course.suspect = Said(course.day, SUSPECTED, course.day, size)
        course.said.append(course.suspect)
