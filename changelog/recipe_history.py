"""A benchmark's recipe log over time: which commit of its repository brought which entry.

Successive versions of the file are compared by what their entries say, so that an entry that was moved, laid out anew, edited
under its own pull request or given its number later is no new one. Belongs here: that comparison. Does not: running git
(`changelog.git_contents`), the file's syntax (`changelog.recipe_files`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from changelog.benchmarks import Benchmark
from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, instant_of, line_of
from changelog.git_contents import contents_folder, versions_of_file
from changelog.recipe_diffs import Touched, touched
from changelog.recipe_entries import LogEntry, PullRequest, Text, pull_request
from changelog.recipe_files import dating, parsed, pieces
from warehouse.clock import iso
from warehouse.errors import InputError, UpstreamError


class Version(NamedTuple):
    """One version of the log: its commit, the commit's parents, when it was committed, and the text (None: removed)."""

    commit: str
    parents: tuple[str, ...]
    committed_at: str
    text: str | None


@dataclass(frozen=True)
class Added:
    """An entry as it first stood in the log (its link as it stands by now), and the version that brought it."""

    entry: LogEntry
    version: Version
    bulk: bool


def read_recipes(location: str, benchmark: Benchmark, mirrors: Path | None = None) -> Iterator[UpstreamFact | UpstreamFault]:
    """Yield the entries that the log of a benchmark's repository ever had, oldest first, with the commits that brought them.

    *location* is a folder or a URL, mirrored below *mirrors*. Raises InputError and UpstreamError as `git.read_repository` does,
    and where the repository has no log.
    """
    folder = contents_folder(location, mirrors)
    versions = versions_of_file(folder, benchmark.log)
    told = [Version(commit, parents, date, _text(data)) for commit, parents, date, data in versions]
    if not told:
        raise UpstreamError(f"{folder.name}: has no {benchmark.log}; it is not the repository of {benchmark.title}")
    yield from facts(told, lambda commits: touched(folder, commits, benchmark))


def facts(
    versions: Iterable[Version], touched_by: Callable[[list[str]], dict[str, Touched]] = lambda _commits: {}
) -> Iterator[UpstreamFact | UpstreamFault]:
    """Yield the entries of successive versions, oldest first, and a fault for each that cannot be read in the last one.

    *touched_by* tells what commits changed of launches; those that brought many entries are not asked for.
    """
    history = _History()
    for version in versions:
        history.take(version)
    changed = touched_by(list(dict.fromkeys(added.version.commit for added in history.added if not added.bulk)))
    for added in history.added:
        place = f"commit {added.version.commit[:12]}"
        try:
            when = instant_of(added.version.committed_at, "committer date")
        except InputError as error:
            yield UpstreamFault(place, f"{place}: {line_of(str(error), 300)}", line_of(_shown(added.entry), MAX_EXCERPT))
            continue
        payload = added.entry.told(
            base_ref=added.version.parents[0] if added.version.parents else None,
            head_ref=added.version.commit,
            added_at=iso(when),
            dated_by="bulk" if added.bulk else "commit",
            touched=changed.get(added.version.commit),
        )
        yield UpstreamFact(payload, when, when, place)
    yield from history.faults


def _shown(entry: LogEntry) -> str:
    return " ".join((*entry.config_keys, *entry.description))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8-sig", "replace")


@dataclass
class _History:
    """What the versions so far told: entries in the order in which they came, and where each that stands now is among them."""

    added: list[Added] = field(default_factory=list)
    faults: list[UpstreamFault] = field(default_factory=list)
    standing: Counter[LogEntry] = field(default_factory=Counter)
    number: dict[LogEntry, int] = field(default_factory=dict)
    """Every form that an entry ever had, to its place in `added`."""
    said: dict[tuple[Text, PullRequest | None], int] = field(default_factory=dict)

    def take(self, version: Version) -> None:
        """Compare a version with the one before it; one that is removed or unreadable as a whole tells nothing."""
        if version.text is None:
            return
        self.faults = []
        now = Counter(self._read(version.commit, version.text))
        gone = list((self.standing - now).elements())
        fresh = [entry for entry in (now - self.standing) if not self._is_known(entry, gone)]
        bulk = not version.parents or dating(len(fresh)) == "bulk"
        for entry in fresh:
            self._place(entry, len(self.added))
            self.added.append(Added(entry, version, bulk))
        self.standing = now

    def _read(self, commit: str, text: str) -> Iterator[LogEntry]:
        """Yield the entries of a version that can be read; of those that cannot, only the last version's are told."""
        try:
            for place, piece in pieces(text):
                try:
                    yield parsed(piece)
                except InputError as error:
                    self._fault(f"commit {commit[:12]}, {place}", error, piece)
        except InputError as error:
            self._fault(f"commit {commit[:12]}", error, "")

    def _fault(self, place: str, error: InputError, piece: str) -> None:
        self.faults.append(UpstreamFault(place, f"{place}: {line_of(str(error), 300)}", line_of(piece, MAX_EXCERPT)))

    def _is_known(self, entry: LogEntry, gone: list[LogEntry]) -> bool:
        """Say whether an entry is another form of one that was there, and if so keep it in mind under this form."""
        own = pull_request(entry.pr_link)
        before = next((old for old in gone if old.text == entry.text), None)
        if before is None and own is not None:
            edited = [old for old in gone if pull_request(old.pr_link) == own]
            before = min(edited, key=lambda old: old.text[0] != entry.text[0], default=None)
        place = self.number[before] if before is not None else self.said.get((entry.text, own))
        if place is None:
            return False
        if before is not None:
            gone.remove(before)
        self._place(entry, place)
        known = self.added[place]
        if own is not None and pull_request(known.entry.pr_link) != own:
            self.added[place] = replace(known, entry=replace(known.entry, pr_link=entry.pr_link))
        return True

    def _place(self, entry: LogEntry, place: int) -> None:
        self.number[entry] = place
        self.said[entry.text, pull_request(entry.pr_link)] = place
