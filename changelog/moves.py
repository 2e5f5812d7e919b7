"""Dependencies that moved between two builds of an engine, and what of their own history lies in between: one level deep.

Belongs here: which dependency moved from where to where, and which commit of the engine moved it. Does not: what a build ran on
(`changelog.pinned_at`), ranking (`changelog.ranking`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property

import polars as pl

from changelog.anchors import sentences
from changelog.facets import Configuration, registry, vendor_of
from changelog.pin_files import pin_files
from changelog.pin_names import dependencies
from changelog.pinned_at import NOTHING, Pinned, only_stage, pinned_at, platforms_of, run_by, same
from changelog.projects import projects
from changelog.ranges import Range, find_range
from changelog.ranking import RankedChange
from changelog.subjects import parse_subject
from changelog.upstream import Upstream, open_upstream
from warehouse.errors import InputError

DEPENDENCY = "dependency"
SHORT = 12
"""Digits of a commit that are shown."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
"""A name in a title: `sgl-kernel` is one, and none is a part of another."""


@dataclass(frozen=True)
class Move:
    """One dependency that both builds pin, or one of them: its versions (`none`: not pinned), and how that is known.

    `range` are its own changes between the two, where its history is here; `bumps` the engine's commits that moved it, as numbers
    of the engine's history.
    """

    dependency: str
    platform: str | None
    start: str
    end: str
    how: str
    range: Range | None
    bumps: tuple[int, ...]
    near: bool = False
    """The pins of an end are those of an earlier release, because its own are not known."""

    @property
    def candidates(self) -> int:
        """How many changes of the dependency lie between the two versions, as far as is known."""
        return len(self.range.numbers) if self.range else 0

    def words(self) -> str:
        """Return the move in a sentence's part."""
        return f"{self.dependency} {shown(self.start)} → {shown(self.end)}" + (f" ({self.platform})" if self.platform else "")


def shown(version: str) -> str:
    """Return a version for people: a full hash cut short, nothing in words."""
    if version == NOTHING:
        return "not pinned"
    return version[:SHORT] if len(version) == 40 and not version.strip("0123456789abcdef") else version


def moves(
    tables: Mapping[str, pl.DataFrame],
    found: Range,
    configuration: Configuration | None = None,
    opened: dict[str, Upstream] | None = None,
) -> tuple[Move, ...]:
    """Return what moved between the ends of *found*, by name; with *configuration* only what its accelerator runs on.

    *tables*: `commits`, `releases`, `dependencies`. A dependency is looked into where it is a project whose history is known;
    *opened* keeps those that were opened, for the next range.
    """
    start, end = pinned_at(found.upstream, found.start), pinned_at(found.upstream, found.end)
    if not start.pins or not end.pins:
        return ()
    how = sentences(f"FROM: {start.how}", f"TO: {end.how}")
    moved = list(_once(_moved(start, end, found, configuration)))
    bumps, known = _Bumps(found), {} if opened is None else opened
    return tuple(
        Move(
            one.name,
            platforms_of(one.platforms),
            one.start,
            one.end,
            how,
            _own_range(tables, one, known),
            bumps.of(one),
            start.near or end.near,
        )
        for one in moved
    )


@dataclass(frozen=True)
class _Moved:
    name: str
    platforms: tuple[str | None, ...]
    start: str
    end: str


def _moved(start: Pinned, end: Pinned, found: Range, configuration: Configuration | None) -> Iterator[_Moved]:
    """Yield what differs, by name: one version against one, else platform by platform."""
    before = run_by(start, configuration, found.start.text)
    after = run_by(end, configuration, found.end.text)
    one_accelerator = configuration is not None and vendor_of(configuration) is not None
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        if not (old or start.whole) or not (new or end.whole):
            continue
        for platforms, one, other in _pairs(old, new, one_accelerator):
            came = one == NOTHING and only_stage(platforms, start, found.end.text)
            went = other == NOTHING and only_stage(platforms, end, found.start.text)
            if not (came or went or same(one, other)):
                yield _Moved(name, platforms, one, other)


def _pairs(
    old: dict[str | None, str], new: dict[str | None, str], one_accelerator: bool
) -> Iterator[tuple[tuple[str | None, ...], str, str]]:
    """Yield (platforms, version before, version after); a version for all platforms stands for each that the other side names."""
    if one_accelerator and len(old) <= 1 and len(new) <= 1:
        yield tuple(dict.fromkeys([*old, *new])), next(iter(old.values()), NOTHING), next(iter(new.values()), NOTHING)
        return
    named: list[str | None] = [*sorted(platform for platform in {*old, *new} if platform is not None)]
    for platform in named or [None]:
        one, other = (side.get(platform, side.get(None, NOTHING)) for side in (old, new))
        fresh = [side for side, version in ((old, one), (new, other)) if version == NOTHING]
        if not any(_has_stage(side, platform) for side in fresh):
            yield (platform,), one, other


def _has_stage(side: Iterable[str | None], platform: str | None) -> bool:
    """Say whether one side pins for another stage of the same architecture: then a stage came or went, nothing moved."""
    return platform is not None and any(other and other.partition("-")[0] == platform.partition("-")[0] for other in side)


def _once(found: Iterable[_Moved]) -> Iterable[_Moved]:
    """Keep one move where several platforms made the same; which ones is told together."""
    merged: dict[tuple[str, str, str], _Moved] = {}
    for one in found:
        key = (one.name, one.start, one.end)
        known = merged.get(key)
        merged[key] = replace(one, platforms=tuple(dict.fromkeys((*known.platforms, *one.platforms)))) if known else one
    return merged.values()


def with_moves(
    ranked: list[RankedChange], found: Iterable[Move], upstream: Upstream, direction: str | None
) -> list[RankedChange]:
    """Return *ranked* with the moves in it: a commit that moved a dependency says what lies behind it.

    What moves a library that the accelerator runs weighs the same however it is known: by a commit whose title says so, by one
    that only changed the pin, or by the pins of two builds alone, which is then a change of its own.
    """
    told: dict[str, list[Move]] = {}
    alone = []
    for move in found:
        for number in move.bumps:
            told.setdefault(upstream.history.hashes[number], []).append(move)
        if not move.bumps:
            alone.append(move)
    known = [_telling(one, told.get(one.commit, ()), direction) for one in ranked]
    end = max((one.committer_date for one in ranked), default=datetime.min.replace(tzinfo=UTC))
    added = [_own_change(move, upstream, direction, end) for move in alone]
    order = sorted([*known, *added], key=lambda one: -one.score)  # stable: what was before stays before its equals
    return [replace(one, rank=rank) for rank, one in enumerate(order, start=1)]


def _telling(change: RankedChange, found: Sequence[Move], direction: str | None) -> RankedChange:
    """Return a change with what it moves; one whose title does not say that it moves anything weighs it now.

    It weighs no less than the move alone would: what its title speaks against (CI, an image) is not all that it does.
    """
    if not found:
        return change
    unsaid = max((_weight(move, direction) for move in found), default=0.0) if change.kind != DEPENDENCY else 0.0
    return replace(
        change,
        kind=DEPENDENCY if unsaid else change.kind,
        score=round(max(change.score, 0.0) + unsaid, 4) if unsaid else change.score,
        evidence=(*change.evidence, *(_evidence(move) for move in found)),
    )


def _weight(move: Move, direction: str | None) -> float:
    known = dependencies().get(move.dependency)
    return 0.0 if known is not None and known.host else float(registry()["further"]["dependency"][direction or "neutral"])


def _own_range(tables: Mapping[str, pl.DataFrame], move: _Moved, opened: dict[str, Upstream]) -> Range | None:
    if move.name not in projects() or NOTHING in (move.start, move.end):
        return None
    if move.name not in opened:
        opened[move.name] = open_upstream(move.name, tables)
    upstream = opened[move.name]
    if not len(upstream.history):
        return None
    try:
        return find_range(upstream, move.start, move.end)
    except InputError:
        return None


class _Bumps:
    """The candidates that moved a dependency: those that changed its pin, else those whose subject says so.

    A subject says so where it names a version, or where it names the dependency and changes a file that pins it.
    """

    def __init__(self, found: Range) -> None:
        self.found = found

    def of(self, moved: _Moved) -> tuple[int, ...]:
        """Return them as numbers of the engine's history, oldest first."""
        known = self._changed.get(moved.name, ())
        exact = {number for platform, number in known if {platform, None} & {*moved.platforms}}
        return tuple(sorted(exact or self._saying.get(moved.name, set())))

    @cached_property
    def _changed(self) -> dict[str, list[tuple[str | None, int]]]:
        """By dependency, the platform and the candidate that changed its pin on main."""
        upstream, inside = self.found.upstream, set(self.found.numbers)
        own = upstream.dependencies.filter(pl.col("project") == upstream.project.name)
        chosen: dict[str, list[tuple[str | None, int]]] = {}
        for version, dependency, platform in own.select("version", "dependency", "platform").iter_rows():
            number = upstream.history.index.get(version)
            if number is not None and number in inside:
                chosen.setdefault(dependency, []).append((platform, number))
        return chosen

    @cached_property
    def _saying(self) -> dict[str, set[int]]:
        """By dependency, the candidates whose subject tells of it."""
        pinning = {file.path for file in pin_files(self.found.upstream.project.name)}
        commits = self.found.commits
        chosen: dict[str, set[int]] = {}
        for number, title, paths in zip(self.found.numbers, commits["title"].to_list(), commits["paths"].to_list(), strict=True):
            said = parse_subject(title).dependency
            named = frozenset() if pinning.isdisjoint(paths or ()) else frozenset(_NAME.findall(title.lower()))
            for dependency, words in _words().items():
                if said in words or not words.isdisjoint(named):
                    chosen.setdefault(dependency, set()).add(number)
        return chosen


@cache
def _words() -> dict[str, frozenset[str]]:
    """Return how subjects call each dependency."""
    known = registry()["dependency"]
    names = {*known, *dependencies()}
    return {name: frozenset({name, *known.get(name, {}).get("words", ())}) for name in sorted(names)}


def _evidence(move: Move) -> str:
    return f"between the two builds {move.words()}{_near(move)}{_behind(move)}"


def _near(move: Move) -> str:
    return ", as far as releases near them tell" if move.near else ""


def _behind(move: Move) -> str:
    if move.range is None:
        return ""
    title = move.range.upstream.project.title
    more = ", an end of which is not sure" if move.range.open_ended else ""
    return f": {move.candidates:,} changes of {title} lie in between{more}"


def _own_change(move: Move, upstream: Upstream, direction: str | None, end: datetime) -> RankedChange:
    return RankedChange(
        rank=0,
        change_id=f"{move.dependency}@{shown(move.start)}..{shown(move.end)}",
        pr=None,
        commit="",
        title=f"{move.words()}, pinned by {upstream.project.title}",
        committer_date=end,
        score=_weight(move, direction),
        evidence=(
            f"{move.words()}{_near(move)}{_behind(move)}; {_unsaid(upstream)}",
            move.how,
        ),
        kind=DEPENDENCY,
    )


def _unsaid(upstream: Upstream) -> str:
    if not len(upstream.history):
        return f"the commits of {upstream.project.title} are not known here"
    return f"no commit of {upstream.project.title} between the two builds says so"
