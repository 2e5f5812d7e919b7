"""What a commit's subject line says: pull request, tags, conventional prefix, what it reverts, dependency that it moves.

Subjects are text from strangers: every pattern is anchored or bounded, and `parse_subject` never raises.
Belongs here: the grammar of subjects. Does not: what a subject means for a shift (`changelog.facets`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from changelog.reverting import Act, act_of

MAX_SUBJECT = 2_000
"""Characters of a subject that are looked at."""
MAX_PR = 10_000_000
"""A larger number in brackets is not a pull request."""

_TRAILING_PR = re.compile(r"\(#(\d{1,9})\)\s*$")
_MERGED_PR = re.compile(r"Merge pull request #(\d{1,9})\b")
_TAG = re.compile(r"\s*\[([^\[\]]{1,80})\]")
_PREFIX = re.compile(r"\s*([A-Za-z][A-Za-z_-]{0,20})(?:\(([^()]{1,60})\))?!?:(?=\s|$)")
_BUMP = re.compile(
    r"\b(?:bump|upgrade|update|pin|move)(?:s|ed|ing)?\s+(?:up\s+)?(?:to\s+)?(?:the\s+)?(?:version\s+of\s+)?"
    r"(?P<what>[A-Za-z][\w.-]{1,40})\s+(?:version\s+|commit\s+|hash\s+|pin\s+)?(?:from\s+\S{1,40}\s+)?(?:to\s+)?"
    r"v?(?P<version>\d+\.\d[\w.+-]{0,30})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Subject:
    """A parsed subject: `pr` is the change's own pull request, `reverts` the one that it takes back, where it names it.

    `reapply`: it brings back what was taken back.
    """

    title: str
    pr: int | None
    tags: tuple[str, ...]
    prefix: str | None
    revert: bool
    reverts: int | None
    dependency: str | None
    dependency_version: str | None
    reapply: bool = False


def parse_subject(subject: str) -> Subject:
    """Return what *subject* says; anything at all may stand in it."""
    text = subject[:MAX_SUBJECT]
    pr = pull_request(text)
    act = act_of(text)
    reverted = act is not None and act.takes
    bump = _BUMP.search(text)
    prefix = _PREFIX.match(_without_tags(text))
    return Subject(
        title=text,
        pr=pr,
        tags=_tags(text),
        prefix=prefix[1].lower() if prefix else None,
        revert=reverted,
        reverts=_reverted_pr(act, pr) if act and reverted else None,
        dependency=bump["what"].lower().rstrip(".-") if bump else None,
        dependency_version=bump["version"].rstrip(".-") if bump else None,
        reapply=act is not None and not reverted,
    )


def pull_request(subject: str) -> int | None:
    """Return the change's own pull request: the last bracketed number: in `Revert "x (#1)" (#2)` that is 2, the revert's own."""
    text = subject[:MAX_SUBJECT]
    match = _TRAILING_PR.search(text) or _MERGED_PR.match(text)
    number = int(match[1]) if match else 0
    return number if 0 < number < MAX_PR else None


def _reverted_pr(act: Act, own: int | None) -> int | None:
    """Return the pull request that is named as taken back; one that stands inside the named title may mean anything."""
    return next((number for number in act.requests if 0 < number < MAX_PR and number != own), None)


def _tags(text: str) -> tuple[str, ...]:
    tags: list[str] = []
    position = 0
    while match := _TAG.match(text, position):
        tags.append(match[1].strip())
        position = match.end()
    return tuple(tags)


def _without_tags(text: str) -> str:
    position = 0
    while match := _TAG.match(text, position):
        position = match.end()
    return text[position:]
