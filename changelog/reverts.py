"""Which change takes back which: every revert and every re-landing of a history, tied to what it means.

A revert names what it takes back by hash (in its message), by pull request or by title. Titles are compared without case,
punctuation and numbers; one that was cut off by its beginning; and where they differ a little, by their words. What is found by
none of these stays untied, and is listed. Belongs here: finding the change that is meant, and what that makes of a range. Does
not: reading a subject (`changelog.reverting`), what it is worth as evidence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl

from changelog.history import History
from changelog.reverting import HINT, Act, act_of

MIN_TITLE = 12
"""Characters of the shortest title that is searched for by itself."""
MIN_BEGINNING = 20
"""Characters of the shortest beginning of a title that stands for the whole of it."""
RECENT = timedelta(days=90)
"""How long before a revert the change landed that it means, where only some of its words tell which."""
ALIKE, ALIKE_BACK = 0.85, 0.75
"""Share of the words of a quoted title that the meant title has; of a re-landed one, among changes that were taken back."""
MIN_WORDS = 4
"""Words of an unquoted description all of which the meant title has, so that it is taken for it."""
_FILLERS = frozenset(["the", "to", "for", "a", "of", "in", "on", "with", "and", "from", "back"])
_TO = re.compile(r"\b(?:back|to v?\d)", re.I)
"""`Revert x to 1.2`: the title that says 1.2 is what it goes back to."""
_PLAIN = (
    (r"\s*\(#\d{1,9}\)\s*$", ""),
    (r"\s*\((?:prs?\s+)?#\d{1,9}(?:\s*(?:,|and|&|\+)?\s*#\d{1,9})*\)\s*$", ""),
    (r"[^\p{L}\p{N}]+", " "),
)
_TAGS = r"^(?:\s*\[[^\[\]]{1,80}\]:?)+"


@dataclass(frozen=True)
class Tie:
    """Commit `by` takes back commit `of`, or (`back`) brings it back; both are numbers of the history.

    `partial`: only a part of it, or only as far as can be told. `how`: hash, pull request, title or (less sure) words.
    """

    by: int
    of: int
    back: bool
    partial: bool
    how: str


@dataclass(frozen=True)
class Ties:
    """All ties of a history; `untied` are commits that take or bring back something that was not found.

    A cherry-pick is the same change as its twin: what holds of one is said of both.
    """

    history: History
    all: tuple[Tie, ...]
    untied: tuple[int, ...]
    _on: Mapping[Hashable, tuple[Tie, ...]] = field(repr=False, default_factory=dict)
    _by: Mapping[Hashable, tuple[Tie, ...]] = field(repr=False, default_factory=dict)

    def on(self, number: int) -> tuple[Tie, ...]:
        """Return what took the change of this commit back and brought it back, in order."""
        return self._on.get(self.history.changes[number], ())

    def by(self, number: int) -> tuple[Tie, ...]:
        """Return what the change of this commit takes back and brings back."""
        return self._by.get(self.history.changes[number], ())

    def reverts(self, number: int) -> tuple[int, ...]:
        """Return the commits that this one takes back."""
        return tuple(tie.of for tie in self.by(number) if not tie.back)

    def reapplies(self, number: int) -> tuple[int, ...]:
        """Return the commits that this one brings back."""
        return tuple(tie.of for tie in self.by(number) if tie.back)

    def reverted_by(self, number: int) -> int | None:
        """Return the commit that took this one back, where the last word about it is that it was; a part of it does not count."""
        told = [tie for tie in self.on(number) if not tie.partial]
        return told[-1].by if told and not told[-1].back else None


@dataclass(frozen=True)
class Fates:
    """What reverts make of the changes of one range; keys and values are numbers of the history.

    `cancelled`: added and taken back inside (net nothing), with the revert; and such a revert itself. `taken_later`: taken back
    after the range's end. `takes_earlier`: a revert in the range with what it takes back of before the range; `brings_earlier`
    likewise. `restored`: taken back and brought back inside, with what brought it back.
    """

    cancelled: dict[int, int]
    taken_later: dict[int, int]
    takes_earlier: dict[int, tuple[int, ...]]
    brings_earlier: dict[int, tuple[int, ...]]
    restored: dict[int, int]


def ties(history: History) -> Ties:
    """Return every tie of *history*; made once a history."""
    found = history.made.get(Ties)
    if not isinstance(found, Ties):
        found = history.made[Ties] = _ties(history)
    return found


def fates(known: Ties, numbers: Iterable[int]) -> Fates:
    """Return what becomes of the changes of a range, *numbers* of its commits, by what stands inside and after it."""
    history = known.history
    inside = {history.changes[number]: number for number in numbers}
    last = max(inside.values(), default=-1)
    found = Fates({}, {}, {}, {}, {})
    for change, number in inside.items():
        _fate(known, inside, number, last, found)
        own = [tie for tie in known.by(number) if history.changes[tie.of] not in inside]
        for back, place in ((False, found.takes_earlier), (True, found.brings_earlier)):
            if earlier := tuple(tie.of for tie in own if tie.back is back):
                place[inside[change]] = earlier
    _cancel_reverts(known, inside, found)
    return found


def _fate(known: Ties, inside: Mapping[Hashable, int], number: int, last: int, found: Fates) -> None:
    changes = known.history.changes
    whole = [tie for tie in known.on(number) if not tie.partial]
    within = [inside[changes[tie.by]] for tie in whole if changes[tie.by] in inside]
    acts = [tie for tie in whole if changes[tie.by] in inside]
    if acts and not acts[-1].back:
        found.cancelled[number] = within[-1]
        return
    if acts:
        found.restored[number] = within[-1]
    after = [tie for tie in whole if changes[tie.by] not in inside and tie.by > last]
    if after and not after[-1].back:
        found.taken_later[number] = after[-1].by


def _cancel_reverts(known: Ties, inside: Mapping[Hashable, int], found: Fates) -> None:
    """A revert cancels out, too: with all that it takes back of inside, or with what brings all of it back."""
    changes = known.history.changes
    for number in sorted({inside[changes[tie.by]] for tie in known.all if changes[tie.by] in inside and not tie.back}):
        targets = [inside.get(changes[tie.of], -1) for tie in known.by(number) if not tie.back]
        if number in found.cancelled:
            continue
        if all(target in found.cancelled for target in targets):
            found.cancelled[number] = number
        elif all(target in found.restored for target in targets):
            found.cancelled[number] = max(found.restored[target] for target in targets)


def _ties(history: History) -> Ties:
    titles = history.commits["title"]
    wanted = titles.str.contains(HINT) | history.commits["reverts"].is_not_null() | _told(history, "reverts_pr").is_not_null()
    acts = {number: act for number in wanted.arg_true().to_list() if (act := _act(history, number)) is not None}
    search = _Search(history, acts) if acts else None
    found: list[Tie] = []
    by: dict[int, list[Tie]] = defaultdict(list)
    untied: list[int] = []
    taken: set[int] = set()
    for number, act in acts.items():
        own = list(_tied(search, number, act, by, taken)) if search else []
        taken |= {tie.of for tie in own if not tie.back}
        by[number] += own
        found += own
        if not own:
            untied.append(number)
    return _ties_of(history, found, untied)


def _ties_of(history: History, found: list[Tie], untied: list[int]) -> Ties:
    on: dict[Hashable, list[Tie]] = defaultdict(list)
    by: dict[Hashable, list[Tie]] = defaultdict(list)
    for tie in sorted(found, key=lambda tie: (tie.by, tie.of, tie.back)):
        on[history.changes[tie.of]].append(tie)
        by[history.changes[tie.by]].append(tie)
    frozen = ({change: tuple(own) for change, own in grouped.items()} for grouped in (on, by))
    return Ties(history, tuple(found), tuple(untied), *frozen)


def _act(history: History, number: int) -> Act | None:
    """Return what the subject says; a message that names a commit or a pull request to take back says it, too."""
    act = act_of(history.commits["title"][number])
    if act is None and (history.commits["reverts"][number] or _told(history, "reverts_pr")[number]):
        return Act(back=False, title="", partial=False)
    return act


def _told(history: History, column: str) -> pl.Series:
    """Return a column of `commits` that a frame of older rows may lack."""
    own = history.commits
    return own[column] if column in own.columns else pl.Series(column, [None] * own.height, dtype=pl.Int64)


def _tied(search: _Search, number: int, act: Act, by: Mapping[int, list[Tie]], taken: Container[int]) -> Iterable[Tie]:
    """Yield what a commit acts on. To take back what took something back brings that back, as to bring back a revert does."""
    targets, how, partial = search.targets(number, act, taken)
    for target in targets:
        undone = [tie for tie in by.get(target, ()) if not tie.back]
        if not (act.back and undone):
            yield Tie(number, target, act.back, partial, how)
        for tie in undone:
            yield Tie(number, tie.of, True, partial or tie.partial, how)


class _Search:
    """Finds commits of one history by hash, pull request and title."""

    def __init__(self, history: History, acts: Mapping[int, Act]) -> None:
        self.history, self.acts = history, acts
        self.told = history.commits["reverts"].to_list()
        self.told_pr = _told(history, "reverts_pr").to_list()
        self.by_pr: dict[int, list[int]] = defaultdict(list)
        for number, pr in enumerate(history.commits["pr"].to_list()):
            if pr is not None:
                self.by_pr[pr].append(number)
        titles, named = history.commits["title"], pl.Series([act.title for act in acts.values()], dtype=pl.String)
        self.by_title = _numbered(_plain(titles))
        self.by_bare_title = _numbered(_plain(titles.str.replace(_TAGS, "")))
        bare = _plain(named.str.replace(_TAGS, ""))
        self.named = dict(zip(acts, zip(_plain(named), bare, strict=True), strict=True))
        self.sorted_titles = sorted(self.by_title)
        self.words = self._postings()

    def targets(self, number: int, act: Act, taken: Container[int]) -> tuple[list[int], str, bool]:
        """Return the earlier commits that are meant, how they were found, and whether only a part of them is meant.

        *taken*: the commits that were taken back so far.
        """
        told = self.history.number(self.told[number]) if self.told[number] else None
        if told is not None and told < number:
            return [told], "hash", act.partial
        requests = act.requests or ((self.told_pr[number],) if self.told_pr[number] else ())
        if found := self._requested(number, requests):
            return found, "pull request", act.partial
        if (titled := self._titled(number, act)) is not None:
            return [titled], "title", act.partial
        if found := self._requested(number, act.mentioned):
            return found, "pull request", True
        return self._worded(number, act, taken), "words", act.partial

    def _requested(self, number: int, requests: Iterable[int]) -> list[int]:
        found = (self._last(self.by_pr.get(request, ()), number) for request in requests)
        return [one for one in found if one is not None]

    def _titled(self, number: int, act: Act) -> int | None:
        title, bare = self.named[number]
        for text, index in ((title, self.by_title), (bare, self.by_bare_title)):
            if len(text) >= MIN_TITLE and (found := self._last(index.get(text, ()), number)) is not None:
                return found
        return self._begun(number, title) if act.cut and len(title) >= MIN_BEGINNING else None

    def _begun(self, number: int, beginning: str) -> int | None:
        """Return the last earlier commit whose title begins so."""
        place = bisect_left(self.sorted_titles, beginning)
        found: list[int] = []
        while place < len(self.sorted_titles) and self.sorted_titles[place].startswith(beginning):
            found += self.by_title[self.sorted_titles[place]]
            place += 1
        return self._last(sorted(found), number)

    def _worded(self, number: int, act: Act, taken: Container[int]) -> list[int]:
        """Return the recent commit whose title has most of the words; a re-landed one was taken back before."""
        words = self._wanted(number)
        if len(words) < (2 if act.back else MIN_WORDS) or (not (act.back or act.quoted) and _TO.search(act.title)):
            return []
        shared = Counter(other for word in words for other in self.words.get(word, ()))
        least = ALIKE_BACK if act.back else ALIKE if act.quoted else 1.0
        since = self.history.dates[number] - RECENT
        fitting = [
            (count, other)
            for other, count in shared.items()
            if count >= least * len(words)
            and other < number
            and self.history.dates[other] >= since
            and (other in taken if act.back else other not in self.acts)
        ]
        return [max(fitting)[1]] if fitting else []

    def _wanted(self, number: int) -> frozenset[str]:
        return frozenset(self.named[number][0].split()) - _FILLERS

    def _postings(self) -> dict[str, list[int]]:
        """Return, for the words that reverts use, the commits whose titles have them."""
        wanted = frozenset().union(*map(self._wanted, self.acts))
        found: dict[str, list[int]] = {word: [] for word in wanted}
        for title, numbers in self.by_title.items():
            for word in wanted.intersection(title.split()):
                found[word] += numbers
        return found

    @staticmethod
    def _last(numbers: Iterable[int], before: int) -> int | None:
        return max((number for number in numbers if number < before), default=None)


def _plain(titles: pl.Series) -> list[str]:
    """Return titles in lower case, without their own pull request and punctuation."""
    for pattern, by in _PLAIN:
        titles = titles.str.to_lowercase().str.replace_all(pattern, by)
    return [title.strip() for title in titles.to_list()]


def _numbered(titles: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, title in enumerate(titles):
        found[title].append(number)
    return dict(found)
