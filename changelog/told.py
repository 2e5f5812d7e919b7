"""What is told of the candidates of a range elsewhere than in their own commits: release notes that name them, and reverts.

Belongs here: finding it, candidate by candidate, and the words for what is not known. Does not: what it weighs
(`changelog.scoring`), reading notes (`changelog.notes`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

import polars as pl
from packaging.version import InvalidVersion, Version

from changelog.history import History
from changelog.notes import Claim, claims
from changelog.ranges import Range
from changelog.reverts import fates, ties
from changelog.scoring import NOTHING, Told
from changelog.subjects import MAX_SUBJECT

LATE = timedelta(days=7)
"""How long after its commit the notes of a release may appear."""
MAX_NAMED = 5
_SPEED = re.compile(r"\bperf\b|performance|regress|slow|throughput|latency", re.IGNORECASE)


@dataclass(frozen=True)
class Known:
    """What is told of every candidate, in the range's order, and what is not known of any."""

    commits: list[Told]
    remarks: tuple[str, ...]


def tell(found: Range) -> Known:
    """Return what is told of the candidates of *found*."""
    claimed, remarks = _claims(found)
    ended = _ends(found)
    requests: list[int | None] = found.commits["pr"].to_list()
    told = [
        replace(ended.get(number, NOTHING), claims=tuple(claimed[pr])) if pr in claimed else ended.get(number, NOTHING)
        for number, pr in zip(found.numbers, requests, strict=True)
    ]
    return Known(told, remarks)


def _claims(found: Range) -> tuple[dict[int, list[Claim]], tuple[str, ...]]:
    """Return the claims of the notes of the releases inside the range, by pull request; what is missing counts for nothing."""
    notes = found.upstream.releases.filter(pl.col("notes").is_not_null() & (pl.col("notes") != ""))
    notes = notes.unique(["version", "notes"], keep="first", maintain_order=True)
    kept = notes.filter([_is_inside(found, row) for row in notes.select("version", "published_at").iter_rows()])
    if kept.is_empty():
        return {}, ("no release notes of the versions in between are known; that counts neither for nor against",)
    told = claims(kept)
    cut = sorted({claim.version for own in told.values() for claim in own if claim.cut})
    words = f"the notes of {', '.join(cut)} may be cut; what they do not name counts neither for nor against" if cut else ""
    return told, (words,) if words else ()


def _is_inside(found: Range, release: tuple[object, ...]) -> bool:
    version, published = release
    ends = [_version(anchor.version) for anchor in (found.start, found.end)]
    own = _version(str(version))
    if own is not None and ends[0] is not None and ends[1] is not None:
        return min(ends[0], ends[1]) < own <= max(ends[0], ends[1])
    low, high = found.start.date, found.end.date
    return published is not None and low is not None and high is not None and low < published <= high + LATE  # type: ignore[operator]


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def _ends(found: Range) -> dict[int, Told]:
    """Return, by number, what reverts make of the candidates: taken back inside the range, later, or taking back from before."""
    history = found.upstream.history
    fate = fates(ties(history), found.numbers)
    told: dict[int, Told] = {}
    for number, by in fate.cancelled.items():
        told[number] = Told(taken_back=_name(history, by) if by != number else "itself, with what it takes back")
    for number, by in fate.taken_later.items():
        slow = _SPEED.search(history.commits["title"][by][:MAX_SUBJECT]) is not None
        told[number] = Told(taken_back_later=_name(history, by), for_speed=slow)
    for number, earlier in fate.takes_earlier.items():
        named = ", ".join(_name(history, one) for one in earlier[:MAX_NAMED])
        told[number] = replace(told.get(number, NOTHING), takes_back=named)
    return told


def _name(history: History, number: int) -> str:
    pr = history.commits["pr"][number]
    return f"#{pr}" if pr else history.hashes[number][:9]
