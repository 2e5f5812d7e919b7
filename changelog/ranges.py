"""The changes between two ends of one project's history, each counted once.

By ancestry where both commits are known: what TO reaches and FROM does not. A change that was picked onto a release branch has
the pull request's number there and on main under two hashes: it counts once, and not at all where FROM already had it.

Belongs here: which commits are candidates, and the words for how they were found. Does not: ranking them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl
from packaging.version import InvalidVersion, Version

from changelog.anchors import CONFIDENCES, Anchor, said, sentences
from changelog.upstream import Upstream
from changelog.versions import resolve
from warehouse.clock import iso
from warehouse.errors import InputError

OPEN_DAYS = 90
"""Days that a range with an unknown beginning reaches back from its end."""
STALE = timedelta(days=3)
"""A history that ends longer than this before a date does not hold all that came before the date."""


@dataclass(frozen=True)
class Range:
    """The candidates between two ends, oldest first, as numbers of the history, with the words that belong to them.

    `how` is one or more sentences, each with one full stop at its end; `notes` are phrases without one.
    """

    upstream: Upstream
    start: Anchor
    end: Anchor
    numbers: tuple[int, ...]
    how: str
    open_ended: bool
    reversed: bool = False
    main_line_commits: int = 0
    duplicates: int = 0
    already: int = 0
    absent: int = 0
    notes: tuple[str, ...] = ()

    @property
    def commits(self) -> pl.DataFrame:
        """The candidates' rows of `commits`, oldest first."""
        return self.upstream.history.commits[list(self.numbers)]


@dataclass
class _Counts:
    """What is left of one direction after counting each change once."""

    numbers: list[int] = field(default_factory=list)
    main_line: int = 0
    duplicates: int = 0
    already: int = 0


def find_range(upstream: Upstream, start: str, end: str) -> Range:
    """Return the range from *start* to *end*, named as `changelog.versions.resolve` takes them.

    Raises InputError where neither end is known: then there is no range to speak of.
    """
    return span(upstream, resolve(upstream, start), resolve(upstream, end))


def span(upstream: Upstream, start: Anchor, end: Anchor, until: datetime | None = None) -> Range:
    """Return the range between two resolved ends; *until* bounds a range whose end is not known (a build's first measurement)."""
    if not start.known and not end.known:
        raise InputError(_neither(upstream, start, end))
    if not len(upstream.history):
        return _empty(upstream, start, end, _nothing_of(upstream, start, end))
    if start.commit and end.commit:
        return _by_ancestry(upstream, start, end)
    if start.commit:
        return _open_above(upstream, start, end, until)
    return _open_below(upstream, start, end)


def between_dates(upstream: Upstream, start: datetime, end: datetime, why: str) -> Range:
    """Return what landed on main after *start*, not after *end*: a stand-in where two builds cannot be placed, so open-ended.

    *why*: one or more sentences, which `how` begins with.
    """
    low = Anchor(iso(start) or "", None, start, None, why, "none")
    high = Anchor(iso(end) or "", None, end, None, why, "none")
    found = _of_main(upstream, start, end)
    how = sentences(why, f"Candidates: by date only, main commits after {said(start)} and not after {said(end)}")
    return _ranged(upstream, low, high, found, how, open_ended=True)


def _ranged(
    upstream: Upstream,
    start: Anchor,
    end: Anchor,
    found: _Counts,
    how: str,
    *,
    open_ended: bool,
    turned: bool = False,
    absent: int = 0,
    notes: Iterable[str] = (),
) -> Range:
    return Range(
        upstream,
        start,
        end,
        tuple(found.numbers),
        how,
        open_ended,
        turned,
        found.main_line,
        found.duplicates,
        found.already,
        absent,
        tuple(notes),
    )


def _empty(upstream: Upstream, start: Anchor, end: Anchor, why: str) -> Range:
    """Return a range without candidates, and why; which end is newer can be known all the same."""
    turned = start.date is not None and end.date is not None and end.date < start.date
    how = sentences(*_turned(turned), *_places(start, end), f"No candidates: {why}")
    return _ranged(upstream, start, end, _Counts(), how, open_ended=True, turned=turned, notes=(*_turned(turned), why))


def _nothing_of(upstream: Upstream, *ends: Anchor) -> str:
    """Say that no commits are known, and how many of the releases that are lie between two ends."""
    known = [version for name in upstream.releases["version"].unique().to_list() if (version := _version(name))]
    placed = sorted(version for end in ends if (version := _version(end.version)))
    only = f", only {len(known)} of its releases" if known else ""
    if len(placed) == 2:
        only += (
            f" ({sum(placed[0] < version <= placed[1] for version in known)} of them later than {placed[0]}, up to {placed[1]})"
        )
    return f"no commits of {upstream.project.name} in this warehouse{only}; ingest a clone of its repository"


def _version(text: str | None) -> Version | None:
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def _neither(upstream: Upstream, start: Anchor, end: Anchor) -> str:
    fix = "give versions, commits or dates" if len(upstream.history) else _nothing_of(upstream)
    return sentences("neither end is known", f"FROM: {start.how}", f"TO: {end.how}")[:-1] + f"; {fix}"


def _by_ancestry(upstream: Upstream, start: Anchor, end: Anchor) -> Range:
    history = upstream.history
    one, other = history.index[start.commit or ""], history.index[end.commit or ""]
    base = history.merge_base(one, other)
    if base is None:
        return _unrelated(upstream, start, end)
    forward, back = _counted(upstream, one, other), _counted(upstream, other, one)
    turned = _is_turned(start, end, forward, back)
    kept, lost = (back, forward) if turned else (forward, back)
    picked = one == other and min(start.confidence, end.confidence, key=CONFIDENCES.index) != "high"
    missing = _missing(upstream, one, other)
    notes = [*_turned(turned), *missing, *_lost(len(lost.numbers), turned), *_same(one, other, picked)]
    notes += _doubts(upstream, start, end)
    has, lacks = ("FROM", "TO") if turned else ("TO", "FROM")
    parted = "" if base in (one, other) else f"; they parted at {history.hashes[base][:9]}"
    how = _words(start, end, f"commits that {has} reaches and {lacks} does not{parted}", turned)
    unsure = picked or bool(missing) or bool(_stale(upstream, start, end))
    return _ranged(upstream, start, end, kept, how, open_ended=unsure, turned=turned, absent=len(lost.numbers), notes=notes)


def _is_turned(start: Anchor, end: Anchor, forward: _Counts, back: _Counts) -> bool:
    """Say whether TO is the older end: it lies on FROM's own past or, on branches that parted, has the lower version."""
    if not forward.numbers or not back.numbers:
        return bool(back.numbers)  # dates of branches say nothing of it
    older, newer = _version(end.version), _version(start.version)
    return older is not None and newer is not None and older < newer


def _missing(upstream: Upstream, one: int, other: int) -> tuple[str, ...]:
    """Say that commits between two others are not in the known history, as in a shallow clone."""
    history = upstream.history
    cut = [number for number in sorted(history.reachable(one) ^ history.reachable(other)) if number in history.cut]
    if not cut:
        return ()
    return (
        f"commits before {history.hashes[cut[-1]][:9]} are missing (a shallow clone, or commits that could not be read), "
        "so there are at least so many changes; fetch the whole history",
    )


def _counted(upstream: Upstream, start: int, end: int) -> _Counts:
    """Return the changes that *end* has and *start* has not, each once: by pull request, else by title and writing time."""
    history = upstream.history
    inside = history.between(start, end)
    had = {history.changes[number] for number in history.between(end, start)}
    fresh = [number for number in inside if history.changes[number] not in had]
    numbers = _once(upstream, fresh)
    main_line = sum(history.on_main(number) for number in inside)
    return _Counts(numbers, main_line, len(fresh) - len(numbers), len(inside) - len(fresh))


def _once(upstream: Upstream, numbers: Iterable[int]) -> list[int]:
    """Keep one commit a change: the one on main where there is one, else the last."""
    history = upstream.history
    chosen: dict[Hashable, int] = {}
    for number in numbers:
        known = chosen.get(history.changes[number])
        if known is None or history.on_main(number) or not history.on_main(known):
            chosen[history.changes[number]] = number
    return sorted(chosen.values())


def _of_main(upstream: Upstream, after: datetime, until: datetime, also: Iterable[int] = ()) -> _Counts:
    """Return what landed on main, or is one of *also*, between two times."""
    history = upstream.history
    inside = [number for number in sorted({*history.main, *also}) if after < history.dates[number] <= until]
    numbers = _once(upstream, inside)
    return _Counts(numbers, len(inside), len(inside) - len(numbers))


def _unrelated(upstream: Upstream, start: Anchor, end: Anchor) -> Range:
    """No common ancestor is known (a shallow history): fall back to what landed on main, or led to an end, between the dates."""
    history = upstream.history
    one, other = history.index[start.commit or ""], history.index[end.commit or ""]
    dates = sorted(anchor.date for anchor in (start, end) if anchor.date is not None)
    found = _of_main(upstream, dates[0], dates[-1], history.reachable(one) | history.reachable(other))
    turned = start.date == dates[-1] and dates[0] != dates[-1]
    how = _words(start, end, "no common ancestor is known, so what is known to have landed between the two dates", turned)
    notes = (*_turned(turned), *_missing(upstream, one, other))
    return _ranged(upstream, start, end, found, how, open_ended=True, turned=turned, notes=notes)


def _open_above(upstream: Upstream, start: Anchor, end: Anchor, until: datetime | None) -> Range:
    """TO is not known, or lies before the known history: all that followed FROM, to *until* or to the end of the history."""
    history = upstream.history
    if end.date is not None:
        return _empty(upstream, start, end, _begins(upstream))
    limit = until or history.dates[history.main[-1]]
    last = history.last_before(limit)
    found = _counted(upstream, history.index[start.commit or ""], last) if last is not None else _Counts()
    how = _words(
        start, end, f"TO is not known, so the range is open above: all main commits that FROM lacks, up to {said(limit)}"
    )
    return _ranged(upstream, start, end, found, how, open_ended=True, notes=_doubts(upstream, start, end))


def _open_below(upstream: Upstream, start: Anchor, end: Anchor) -> Range:
    """FROM is not known, or lies before the known history: what led to TO, at most OPEN_DAYS back."""
    history = upstream.history
    if end.commit is None or end.date is None:
        return _empty(upstream, start, end, _begins(upstream))
    after = start.date or end.date - timedelta(days=OPEN_DAYS)
    low, number = history.last_before(after), history.index[end.commit]
    found = _counted(upstream, low, number) if low is not None else _whole(upstream, number)
    days = f"in {OPEN_DAYS} days, that is " if start.date is None else ""
    why = "not known" if start.date is None else "older than the known history"
    how = _words(start, end, f"FROM is {why}, so the range is open below: what led to TO {days}after {said(after)}")
    return _ranged(upstream, start, end, found, how, open_ended=True, notes=_doubts(upstream, start, end))


def _begins(upstream: Upstream) -> str:
    first = upstream.history.dates[upstream.history.main[0]]
    return f"TO is older than the known history of {upstream.project.title}, which begins {said(first)}"


def _whole(upstream: Upstream, end: int) -> _Counts:
    inside = sorted(upstream.history.reachable(end))
    numbers = _once(upstream, inside)
    return _Counts(numbers, sum(upstream.history.on_main(number) for number in inside), len(inside) - len(numbers))


def _words(start: Anchor, end: Anchor, rule: str, turned: bool = False) -> str:
    return sentences(*_turned(turned), *_places(start, end), f"Candidates: {rule}")


def _places(start: Anchor, end: Anchor) -> tuple[str, str]:
    return f"FROM {start.text}: {start.how}", f"TO {end.text}: {end.how}"


def _turned(turned: bool) -> tuple[str, ...]:
    return ("FROM is newer than TO: the candidates are changes that going from FROM to TO takes away",) if turned else ()


def _lost(count: int, turned: bool) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{count} further changes are only in {'TO' if turned else 'FROM'}; they are not among the candidates",)


def _same(one: int, other: int, picked: bool) -> tuple[str, ...]:
    if one != other:
        return ()
    if picked:
        return ("both ends leave main at the same commit; what was picked onto the release branches is not known",)
    return ("both ends are the same commit: nothing upstream lies between them",)


def _doubts(upstream: Upstream, start: Anchor, end: Anchor) -> list[str]:
    return [*_imprecise(start, end), *_stale(upstream, start, end)]


def _imprecise(start: Anchor, end: Anchor) -> list[str]:
    """A release branch is cut before its upload: by one to four days in the cases that were measured."""
    return [
        f"{name} is placed by date{': release branches are cut days earlier' if anchor.version else ''}, "
        "so changes near that end may be wrongly in or out"
        for name, anchor in (("FROM", start), ("TO", end))
        if anchor.confidence == "low"
    ]


def _stale(upstream: Upstream, start: Anchor, end: Anchor) -> list[str]:
    """Say where the known history stops short of a date that an end was placed by."""
    last = upstream.history.dates[upstream.history.main[-1]]
    return [
        f"the known history ends {said(last)}, before {name} ({said(anchor.wanted)}): later changes are missing"
        for name, anchor in (("FROM", start), ("TO", end))
        if anchor.wanted is not None and anchor.wanted - last > STALE
    ]
