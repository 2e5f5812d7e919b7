"""The layout of a release note: headings, bullets with what is nested below them, paragraphs.

Reads Markdown as the engines' notes use it, and pages that were stored as plain text, where a heading is a short line by itself.
Belongs here: lines to blocks with their section. Does not: what a block says (`changelog.notes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from changelog.facts import line_of

MAX_BLOCK = 20_000
"""Characters of one bullet or paragraph that are looked at."""
MAX_DEPTH = 8
MAX_SECTION = 200
_MAX_NAME = 80
_TAB = 4


@dataclass(frozen=True)
class Block:
    """One bullet or paragraph in one line, and where it stands: headings and bullets above it, outermost first."""

    section: tuple[str, ...]
    text: str
    bullet: bool


@dataclass(frozen=True)
class _Line:
    """A heading (`level` from 1), a bullet (its indent) or a paragraph."""

    kind: str
    level: int
    text: str


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_BOLD_HEADING = re.compile(r"\s{0,3}(?:\*\*|__)([^*_]{1,80})(?:\*\*|__):?\s*")
_BULLET = re.compile(r"(\s{0,64})(?:[*+\u2022-]|\d{1,3}[.)])\s+(\S.*)")
_FENCE = re.compile(r"\s{0,16}(?:```|~~~)")
_COMMENT = re.compile(r"<!--(?:(?!<!--).){0,2000}?-->", re.DOTALL)
_RULE = re.compile(r"\s{0,3}(?:[-*_=|:]\s{0,3}){3,}")
_TITLE = re.compile(r"[A-Z][\w&/,.' -]{1,48}")
_MAX_TITLE_WORDS = 6


def blocks(notes: str) -> Iterator[Block]:
    """Yield the bullets and paragraphs of *notes* in order; a bullet that only names what is nested below it is no block."""
    lines = list(_lines(notes))
    headings: list[_Line] = []
    above: list[_Line] = []
    for index, line in enumerate(lines):
        if line.kind == "heading":
            headings = [*(known for known in headings if known.level < line.level), line][-MAX_DEPTH:]
            above = []
            continue
        bullet = line.kind == "bullet"
        above = [known for known in above if known.level < line.level] if bullet else []
        names = (*(known for known in headings if known.level > 1), *above)
        below = lines[index + 1] if bullet and index + 1 < len(lines) else None
        if below is not None and below.kind == "bullet" and below.level > line.level and len(line.text) <= _MAX_NAME:
            above = [*above, line][-MAX_DEPTH:]
            if "#" not in line.text:
                continue
        yield Block(tuple(name_of(known.text) for known in names), line.text, bullet)


def name_of(text: str) -> str:
    """Return the name that a heading or the head of a list gives, without marks and colon."""
    return line_of(text.replace("*", "").replace("`", "").replace("__", ""), _MAX_NAME).strip(" :#")


def _lines(notes: str) -> Iterator[_Line]:
    """Yield headings, bullets and paragraphs; a line that goes on is joined to the one that it goes on from."""
    open_line: _Line | None = None
    after_blank, fenced = True, False
    for raw in _COMMENT.sub(" ", notes).split("\n"):
        if _FENCE.match(raw):
            fenced = not fenced
            continue
        text = raw[:MAX_BLOCK].expandtabs(_TAB).rstrip()
        if fenced or _RULE.fullmatch(text):
            continue
        if not text.strip():
            after_blank = True
            continue
        line = _line(text)
        joins = line.kind == "paragraph" and open_line is not None and (not after_blank or _belongs(text, open_line))
        if joins and open_line is not None:
            open_line = replace(open_line, text=f"{open_line.text} {line.text}"[:MAX_BLOCK])
        else:
            yield from _finished(open_line, alone=after_blank)
            open_line = None if line.kind == "heading" else line
            yield from (line,) if line.kind == "heading" else ()
        after_blank = False
    yield from _finished(open_line, alone=True)


def _line(text: str) -> _Line:
    if match := _HEADING.match(text):
        return _Line("heading", len(match[1]), match[2].strip(" #"))
    if match := _BOLD_HEADING.fullmatch(text):
        return _Line("heading", 7, match[1])
    if match := _BULLET.match(text):
        return _Line("bullet", len(match[1]), match[2].strip())
    return _Line("paragraph", len(text) - len(text.lstrip()), text.strip())


def _belongs(text: str, open_line: _Line) -> bool:
    """Return whether an indented line behind an empty one is a further paragraph of the bullet before."""
    return open_line.kind == "bullet" and len(text) - len(text.lstrip()) > open_line.level


def _finished(line: _Line | None, *, alone: bool) -> Iterator[_Line]:
    """Yield a line that is complete; a short one that stands alone, without a full stop or a number, is a heading."""
    if line is None:
        return
    title = line.kind == "paragraph" and alone and _TITLE.fullmatch(line.text) and len(line.text.split()) <= _MAX_TITLE_WORDS
    yield _Line("heading", 8, line.text) if title and line.text[-1] not in ".," else line
