"""The candidates of a range in the order to read them for one configuration; none is dropped.

Belongs here: the order. Does not: the weights (`changelog.scoring`), the range (`changelog.ranges`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from changelog.breadth import Breadth
from changelog.facets import Configuration, words_asked_for
from changelog.history import History
from changelog.matching import match
from changelog.ranges import Range
from changelog.scoring import Commit, Told, commit_of, moves_dependency, question, weigh
from changelog.similarity import Words, words_of
from changelog.told import tell

HASH_DIGITS = 12
FIRST = 3
"""Changes that a reader is told of first …"""
SHORT_LIST = 10
"""… and changes that make a short list."""
STAND_OFF = 2.8
"""How far the first must stand off from the last of a short list where something became faster. Of 26 development cases 24 do,
and the cause of 21 of those is in the first ten: a flat order is a sign of not knowing, a steep one is no proof of knowing."""
STAND_OFF_ELSE = 8.0
"""… and where something became slower, or where it is not told which. What makes a server slower seldom says so: of 13
development cases 5 have their cause in the first ten, by standing off as little or as much (up to 7.5) as those that have not."""
_KNOWN: WeakKeyDictionary[History, dict[int, Commit]] = WeakKeyDictionary()


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
    kind: str = "commit"
    """commit, or dependency where it moves a library whose kernels run."""


@dataclass(frozen=True)
class Described:
    """What the candidates of one range say, whatever the configuration: one entry each, in the range's order."""

    commits: list[Commit]
    told: list[Told]
    words: Words
    remarks: tuple[str, ...] = ()
    """What is not known of them, in phrases."""


def describe(found: Range) -> Described:
    """Return what the candidates of a range say; the costly part of ranking, worth keeping for a second configuration."""
    commits, told = _commits(found), tell(found)
    noted = [words_of(claim.item.text for claim in one.claims) for one in told.commits]
    return Described(
        commits, told.commits, Words([(*commit.words, *more) for commit, more in zip(commits, noted, strict=True)]), told.remarks
    )


def _commits(found: Range) -> list[Commit]:
    """Return the candidates as they are weighed; what one commit says does not change, so each is read once a history."""
    known = _KNOWN.setdefault(found.upstream.history, {})
    new = [number for number in found.numbers if number not in known]
    if not new:
        return [known[number] for number in found.numbers]
    project, rows = found.upstream.project, found.upstream.history.commits[new]
    titles: list[str] = rows["title"].to_list()
    paths: list[list[str]] = [own or [] for own in rows["paths"].to_list()]
    for number, title, own, matched in zip(new, titles, paths, match(titles, paths, project.offline), strict=True):
        known[number] = commit_of(project, title, own, matched)
    return [known[number] for number in found.numbers]


def rank(
    found: Range, configuration: Configuration, described: Described | None = None, *, breadth: Breadth | None = None
) -> list[RankedChange]:
    """Return every candidate, by score, then the later first, then by hash. *breadth*: what else moved between the two builds."""
    said = described or describe(found)
    history, project = found.upstream.history, found.upstream.project
    asking = question(project, configuration, breadth)
    fits = said.words.fits(words_asked_for(configuration))
    weighed = [weigh(asking, *one) for one in zip(said.commits, said.told, fits, strict=True)]
    scores = [round(sum(piece.weight for piece in pieces), 4) + 0.0 for pieces in weighed]
    commits = found.commits
    titles: list[str] = commits["title"].to_list()
    requests: list[int | None] = commits["pr"].to_list()
    hashes = [history.hashes[number] for number in found.numbers]
    dates = [history.dates[number] for number in found.numbers]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    order.sort(key=lambda place: (scores[place], dates[place]), reverse=True)
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
            kind="dependency" if moves_dependency(said.commits[place].subject) else "commit",
        )
        for number, place in enumerate(order, start=1)
    ]


def narrowed(ranked: Sequence[RankedChange], direction: str | None = None) -> bool:
    """Say whether the order tells the first changes apart from the rest: False where the scores are flat for this *direction*.

    The best must stand off from the last of a short list by STAND_OFF, for anything but a speed-up by STAND_OFF_ELSE, and must
    have something that speaks for it; a set that is no longer than FIRST is narrow as it is.
    """
    if len(ranked) <= FIRST:
        return True
    last = ranked[min(SHORT_LIST, len(ranked)) - 1]
    least = STAND_OFF if direction == "speedup" else STAND_OFF_ELSE
    return ranked[0].score > 0 and ranked[0].score - last.score >= least
