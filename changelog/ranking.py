"""The candidates of a range in the order to read them for one configuration; none is dropped.

Belongs here: the order. Does not: the weights (`changelog.scoring`), the range (`changelog.ranges`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from changelog.facets import Configuration
from changelog.matching import Match, match
from changelog.ranges import Range
from changelog.scoring import question, weigh
from changelog.subjects import Subject, parse_subject

HASH_DIGITS = 12


@dataclass(frozen=True)
class RankedChange:
    """One candidate with its place, what speaks for and against it, and the score that ordered it."""

    rank: int
    change_id: str
    pr: int | None
    commit: str
    title: str
    committer_date: datetime
    score: float
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """What the candidates of one range say, whatever the configuration: one entry each, in the range's order."""

    subjects: list[Subject]
    paths: list[list[str]]
    matches: list[Match]


def describe(found: Range) -> Described:
    """Return what the candidates of a range say; the costly part of ranking, worth keeping for a second configuration."""
    titles: list[str] = found.commits["title"].to_list()
    paths: list[list[str]] = [own or [] for own in found.commits["paths"].to_list()]
    return Described([parse_subject(title) for title in titles], paths, match(titles, paths, found.upstream.project.offline))


def rank(found: Range, configuration: Configuration, described: Described | None = None) -> list[RankedChange]:
    """Return every candidate, by score, then the later first, then by hash."""
    said = described or describe(found)
    commits, project = found.commits, found.upstream.project
    asking = question(project, configuration)
    titles: list[str] = commits["title"].to_list()
    weighed = [weigh(asking, *one) for one in zip(said.subjects, said.paths, said.matches, strict=True)]
    scores = [round(sum(piece.weight for piece in pieces), 4) + 0.0 for pieces in weighed]
    hashes: list[str] = commits["commit"].to_list()
    dates: list[datetime] = commits["committer_date"].to_list()
    requests: list[int | None] = commits["pr"].to_list()
    order = sorted(range(len(titles)), key=lambda place: (-scores[place], -dates[place].timestamp(), hashes[place]))
    return [
        RankedChange(
            rank=number,
            change_id=f"{project.name}@{hashes[place][:HASH_DIGITS]}",
            pr=requests[place],
            commit=hashes[place],
            title=titles[place],
            committer_date=dates[place],
            score=scores[place],
            evidence=tuple(piece.words for piece in weighed[place]),
        )
        for number, place in enumerate(order, start=1)
    ]
