"""The order of builds: by ancestry where both commits are known, then by PEP 440, then by date.

The three disagree with each other (a `.post1` is uploaded after the next rc, a nightly has a commit but no version), so a sort by
pairs could run in a circle. One list is made instead: first the builds whose commits are known, in the order of the history; the
versions without one are put into it, then the dates. What stands in the list already is never moved.

Belongs here: that order. Does not: placing a build in the history (`changelog.versions`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush

from packaging.version import InvalidVersion, Version

from changelog.anchors import CONFIDENCES, Anchor
from changelog.history import History

_NEVER = datetime.min.replace(tzinfo=UTC)
_LOWEST = Version("0.dev0")
_Key = tuple[bool, Version, datetime, str]


@dataclass(frozen=True)
class BuildEnd:
    """A build to be ordered. `key` is its own; what is not known of it is None.

    `version` is the release, or for a dated image of main the release whose name it carries; `date` is the day of its content.
    """

    key: str
    commit: str | None = None
    version: str | None = None
    date: datetime | None = None


def end_at(key: str, anchor: Anchor) -> BuildEnd:
    """Return the build that *anchor* places; a commit that was only guessed from a date counts as that date."""
    sure = CONFIDENCES.index(anchor.confidence) >= CONFIDENCES.index("medium")
    return BuildEnd(key, anchor.commit if sure else None, anchor.version, anchor.wanted or anchor.date)


def build_order(ends: Iterable[BuildEnd], history: History | None = None) -> list[BuildEnd]:
    """Return *ends*, oldest first: the same list whatever the order they come in.

    A commit that is not in *history* counts as not known. Of two ends whose commits are known an ancestor stands first.
    """
    by_commit, by_version, by_date = _parted(ends, history)
    placed = _by_ancestry(by_commit, history) if history is not None else []
    placed = _with_versions(placed, sorted(by_version, key=_key))
    return _put(placed, by_date, lambda end: _after_date(placed, end, 0, len(placed)), _key)


def _parted(
    ends: Iterable[BuildEnd], history: History | None
) -> tuple[dict[int, list[BuildEnd]], list[BuildEnd], list[BuildEnd]]:
    """Return ends by number of their commit, those that have a version alone, and the rest."""
    by_commit: dict[int, list[BuildEnd]] = defaultdict(list)
    by_version: list[BuildEnd] = []
    by_date: list[BuildEnd] = []
    for end in ends:
        number = history.number(end.commit) if history is not None and end.commit else None
        if number is not None:
            by_commit[number].append(end)
        else:
            (by_date if _version(end) is None else by_version).append(end)
    return by_commit, by_version, by_date


def _by_ancestry(by_commit: dict[int, list[BuildEnd]], history: History) -> list[BuildEnd]:
    """Return ends by the last main commit that they hold; those that hold the same one parents first, else by version."""
    at: dict[int, list[int]] = defaultdict(list)
    for number in by_commit:
        at[history.main_places[number]].append(number)
    ordered = [number for place in sorted(at) for number in _parents_first(at[place], by_commit, history)]
    return [end for number in ordered for end in sorted(by_commit[number], key=_key)]


def _parents_first(numbers: list[int], by_commit: dict[int, list[BuildEnd]], history: History) -> list[int]:
    """Return commits that hold the same last main commit: an ancestor first, and where that leaves a choice the lowest key."""
    keys = {number: min(_key(end) for end in by_commit[number]) for number in numbers}
    waiting = {number: _ancestors_among(number, keys, history) for number in numbers}
    followers: dict[int, list[int]] = defaultdict(list)
    for number, before in waiting.items():
        for other in before:
            followers[other].append(number)
    missing = {number: len(before) for number, before in waiting.items()}
    ready = [(keys[number], number) for number in numbers if not missing[number]]
    heapify(ready)
    ordered = []
    while ready:
        number = heappop(ready)[1]
        ordered.append(number)
        for other in followers[number]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (keys[other], other))
    return ordered


def _ancestors_among(number: int, wanted: Iterable[int], history: History) -> set[int]:
    """Return the ancestors of a commit among *wanted*, all of which hold the same last main commit as it does."""
    place, seen, waiting = history.main_places[number], {number}, [number]
    while waiting:
        for parent in history.parents[waiting.pop()]:
            if parent not in seen and parent < number and history.main_places[parent] == place:
                seen.add(parent)
                waiting.append(parent)
    return seen.intersection(wanted) - {number}


def _with_versions(placed: list[BuildEnd], ends: list[BuildEnd]) -> list[BuildEnd]:
    """Return *placed* with *ends*, which are sorted, put between the versions below and above them, there by date."""
    versions = [_version(end) for end in placed]
    slots: dict[str, int] = {}
    highest = 0
    for end in ends:
        own = _version(end) or _LOWEST
        below = [place for place, version in enumerate(versions, start=1) if version is not None and version <= own]
        above = [place for place, version in enumerate(versions) if version is not None and version > own]
        low = max(below, default=0)
        high = max(low, min((place for place in above if place >= low), default=len(placed)))
        highest = slots[end.key] = max(highest, _after_date(placed, end, low, high))
    return _put(placed, ends, lambda end: slots[end.key], _key)


def _after_date(placed: list[BuildEnd], end: BuildEnd, low: int, high: int) -> int:
    """Return the place in *placed*, from *low* to *high*, behind all that is not younger than *end*; *low* without a date."""
    if end.date is None:
        return low
    rising, latest = [], _NEVER
    for other in placed[low:high]:
        latest = max(latest, other.date or _NEVER)
        rising.append(latest)
    return low + bisect_right(rising, end.date)


def _put(
    placed: list[BuildEnd], ends: Iterable[BuildEnd], slot: Callable[[BuildEnd], int], key: Callable[[BuildEnd], _Key]
) -> list[BuildEnd]:
    """Return *placed* with every end put before the place that *slot* gives it, those of one place by *key*."""
    at: dict[int, list[BuildEnd]] = defaultdict(list)
    for end in ends:
        at[slot(end)].append(end)
    found: list[BuildEnd] = []
    for place in range(len(placed) + 1):
        found += sorted(at[place], key=key) if place in at else ()
        found += placed[place : place + 1]
    return found


def _key(end: BuildEnd) -> _Key:
    """By version, of one version the release (which may have no date) before what was built later; without one by date."""
    version = _version(end)
    return version is None, version or _LOWEST, end.date or _NEVER, end.key


def _version(end: BuildEnd) -> Version | None:
    try:
        return Version(end.version) if end.version else None
    except InvalidVersion:
        return None
