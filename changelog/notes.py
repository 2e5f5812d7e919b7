"""What a release note says, item by item: the change, its pull requests, the gain it claims, what it breaks.

Reads the layouts of the engines' notes: Markdown with nested bullets and `(#1, #2)`, bullets that end in `: #1`, the generated
`* title by @user in #1`, prose. Notes are a stranger's text: everything is bounded, and each text is one printable line.
Belongs here: one note to items, and which items a pull request is named in. Does not: fetching notes (`changelog.github`), the
table `notes` (`changelog.note_rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import polars as pl

from changelog.facts import MAX_NOTES, line_of, notes_of
from changelog.gains import Gain, gains
from changelog.note_blocks import MAX_SECTION, Block, blocks
from changelog.note_dependencies import move_of
from changelog.note_references import Part, parts, plain
from changelog.projects import projects

MAX_ITEMS = 4_000
"""Items of one note (the longest real ones have about 1,000)."""
MAX_ITEM = 500
"""Characters of one item."""


@dataclass(frozen=True)
class NoteItem:
    """One thing that a note says."""

    place: int
    """Counts from 1 in the order of the note."""
    section: str
    """Headings and list heads above it, joined by ` / `; empty where there are none."""
    text: str
    prs: tuple[int, ...] = ()
    """Pull requests of the project itself."""
    urls: tuple[str, ...] = ()
    """Pull requests of other projects that it refers to."""
    gains: tuple[Gain, ...] = ()
    breaking: bool = False
    deprecated: bool = False
    dependency: str | None = None
    dependency_version: str | None = None


@dataclass(frozen=True)
class Claim:
    """An item of a release's note, as evidence about a pull request that it names."""

    project: str
    version: str
    item: NoteItem
    cut: bool
    """The note may be cut: what it does not say, the release may say all the same."""

    def words(self, limit: int = 160) -> str:
        """Return the claim in one line: `release note of 0.12.0 says "…"`."""
        said = self.item.text if len(self.item.text) <= limit else f"{self.item.text[: limit - 1]}…"
        return f'release note of {self.version} says "{said}"'


def items(project: str, notes: str) -> tuple[NoteItem, ...]:
    """Return what a note of *project* says, at most MAX_ITEMS. Never raises; a project we do not know has no repository."""
    known = projects().get(project)
    return tuple(islice(_items(notes_of(notes), known.repositories if known else ()), MAX_ITEMS))


def cut(notes: str) -> str | None:
    """Return why *notes* may be cut, in a few words, or None where they look complete."""
    text = notes.rstrip()
    last = text.rsplit("\n", 1)[-1].strip()
    if len(notes) + notes.count("\n") >= MAX_NOTES:  # where it was written a line may have ended in two characters
        return f"it has the greatest length, {MAX_NOTES:,} characters"
    if text.endswith(("...", "…")) or last.lower() in ("read more", "show more"):
        return "it ends in an ellipsis"
    if (
        last.count("(") > last.count(")")
        or last.count("[") > last.count("]")
        or last.endswith((",", ":", "(", "[", "#", " -", " and"))
    ):
        return "its last line is not finished"
    if _stands_out(text):
        return "its last line has no end as the others have"
    return None


def claims(releases: pl.DataFrame) -> dict[int, list[Claim]]:
    """Return, by pull request, the items that name it in the notes of one project's *releases* (rows of that table).

    Columns used: `project, version, notes`. In the order of the rows, then of the note. Raises ValueError for two projects: their
    numbers have nothing to do with each other.
    """
    rows = releases.filter(pl.col("notes").is_not_null()).select("project", "version", "notes")
    if rows["project"].n_unique() > 1:
        raise ValueError("claims are of one project; filter the releases first")
    found: dict[int, list[Claim]] = {}
    for project, version, notes in rows.iter_rows():
        may_be_cut = cut(notes) is not None
        for item in items(project, notes):
            for pr in item.prs:
                found.setdefault(pr, []).append(Claim(project, version, item, may_be_cut))
    return found


_PEOPLE = re.compile(r"\bcontributors?\b|\bassets\b|\bcredits\b|\bthanks\b", re.IGNORECASE)
_CHANGELOG = re.compile(r"\W{0,4}full changelog\b|\W{0,4}compare\b.{0,40}https?://", re.IGNORECASE)
_BY = re.compile(r"\s+by\s+@[\w-]{1,60}(?:\[bot\])?(?:,?\s{0,2}(?:and\s)?@[\w-]{1,60}){0,20}(?:\s+in)?\s*$", re.IGNORECASE)
_IN = re.compile(r"\s+in\s*$")
_LABEL = re.compile(r"[*_]{0,3}([^:#*()\[\]`]{2,60})[*_]{0,3}:[*_]{0,3}\s")
_BREAKING = re.compile(r"(?<![\w-])(?:BREAKING|[Bb]reaking[ -][Cc]hanges?|Breaking(?=\W{0,4}:))")
_DEPRECATED = re.compile(r"\bdeprecat\w*|\bscheduled removals?\b|\b(?:remove|removed|drop|dropped) support\b", re.IGNORECASE)
_MARKS = str.maketrans("", "", "*`")
_ENDS = (".", ")", "!", "?", "]", "*", "`")
_MIN_LINES = 4


def _items(notes: str, repositories: tuple[str, ...]) -> Iterator[NoteItem]:
    place = 0
    for block in blocks(notes):
        if any(_PEOPLE.search(name) for name in block.section) or _CHANGELOG.match(block.text):
            continue
        section = line_of(" / ".join(name for name in block.section[-3:] if name), MAX_SECTION)
        for part in _parts(block, repositories):
            place += 1
            yield _item(place, section, part)


def _parts(block: Block, repositories: tuple[str, ...]) -> list[Part]:
    """Return what a block says, each with its own pull requests, under the label that the block begins with."""
    text = plain(block.text, repositories)
    told = [part for part in parts(text, repositories) if part.text or part.prs]
    label = _LABEL.match(text)
    if len(told) < 2 or label is None:
        return told
    name = label[1].strip()
    return [told[0], *(Part(f"{name}: {part.text}", part.prs, part.urls) for part in told[1:])]


def _item(place: int, section: str, part: Part) -> NoteItem:
    text = part.text.translate(_MARKS)
    text = _BY.sub("", text) if "@" in text else text
    line = line_of(_IN.sub("", text) if part.prs else text, MAX_ITEM)
    move = move_of(line)
    return NoteItem(
        place=place,
        section=section,
        text=line,
        prs=part.prs,
        urls=part.urls,
        gains=gains(line),
        breaking=_BREAKING.search(f"{section} | {line}") is not None,
        deprecated=_DEPRECATED.search(line) is not None,
        dependency=move.dependency if move else None,
        dependency_version=move.version if move else None,
    )


def _stands_out(text: str) -> bool:
    """Return whether the last bullet of a note breaks off where nearly all others end in a full stop or a bracket."""
    told = [line.strip() for line in text.split("\n") if line.lstrip()[:2] in ("* ", "- ", "• ", "+ ")]
    if len(told) <= _MIN_LINES or not text.endswith(told[-1]) or told[-1].endswith(_ENDS):
        return False
    ended = sum(line.endswith(_ENDS) for line in told[:-1])
    return ended >= 0.8 * (len(told) - 1)
