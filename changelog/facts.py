"""Facts that upstream readers yield, and the bounds on strangers' text in them.

Belongs here: making the payloads that both the file readers and the git reader write, so that a commit read from either is the
same event. Does not: parsing a format (`changelog.files`, `changelog.git`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from changelog.messages import told_by
from changelog.projects import normal_version
from changelog.projects import project as project_named
from changelog.subjects import pull_request
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError
from warehouse.events import (
    CommitLanded,
    DependencyPinned,
    ImageResolved,
    RateChanged,
    RecipeChanged,
    ReleasePublished,
    RepositoryRead,
)

MAX_TITLE = 500
MAX_NOTES = 125_000
"""Characters of a release note that are kept: the limit of the place where they are written."""
MAX_PATHS = 200
MAX_PATH = 500
MAX_EXCERPT = 200
MAX_PARENTS = 64

Payload = CommitLanded | ReleasePublished | DependencyPinned | RateChanged | RecipeChanged | ImageResolved | RepositoryRead

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_UNPRINTABLE_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class UpstreamFact(NamedTuple):
    """One fact: its payload, when it was true (None where the source gives no time), when it was made public, its place."""

    payload: Payload
    occurred_at: datetime | None
    published_at: datetime | None
    position: str


class UpstreamFault(NamedTuple):
    """One item that could not be read: its place, what is wrong and what to do, and the head of its text."""

    position: str
    reason: str
    excerpt: str


def line_of(text: str, limit: int) -> str:
    """Return *text* as one printable line of at most *limit* characters (control and direction marks become spaces)."""
    if len(text) <= limit and text.isascii() and text.isprintable() and " " not in text:
        return text  # a path, as most are
    return " ".join(_UNPRINTABLE.sub(" ", text[: 4 * limit]).split())[:limit]


def _lines_of(paths: Iterable[str]) -> list[str]:
    """Return *paths* as `line_of` does, sorted, each once: nearly all are plain already, which one look at all of them tells."""
    given = list(paths)
    whole = "".join(given)
    plain = whole.isascii() and whole.isprintable() and " " not in whole and all(len(path) <= MAX_PATH for path in given)
    return sorted(set(given) if plain else {line_of(path, MAX_PATH) for path in given})


def notes_of(text: str) -> str:
    """Return a release note with its lines kept, without control characters, at most MAX_NOTES characters."""
    return _UNPRINTABLE_BUT_LINES.sub(" ", text[:MAX_NOTES].replace("\r\n", "\n"))


def instant_of(text: object, field: str) -> datetime:
    """Return a time of an upstream file; raises InputError naming *field*."""
    if not isinstance(text, str):
        raise InputError(f"{field}: {str(text)[:60]!r} is not a time; write it as 2025-12-31T06:10:00Z")
    return parse_instant(text, field)


def hash_of(text: object, field: str) -> str:
    """Return a full commit hash in lower case; raises InputError naming *field*."""
    value = text.lower() if isinstance(text, str) else ""
    if _HASH.fullmatch(value) is None:
        raise InputError(f"{field}: {str(text)[:60]!r} is not a full commit hash (40 hex digits)")
    return value


def version_of(text: object, field: str) -> str:
    """Return a version, in PEP 440's form where it is one; raises InputError naming *field* where there is no text."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{field}: {str(text)[:60]!r} is not a version")
    return normal_version(text.strip()) or line_of(text, 100)


def commit_fact(
    project: str,
    *,
    commit: str,
    parents: Iterable[str],
    author_date: str,
    committer_date: str,
    subject: str,
    paths: Iterable[str],
    position: str,
    pr: int | None = None,
    body: str = "",
) -> UpstreamFact:
    """Return the fact of one commit; *pr* is read from *subject* where it is not given. Raises InputError naming the field.

    *body* is the rest of its message, of which only what it says of other commits is kept.
    """
    landed = instant_of(committer_date, "committer_date")
    kept = _lines_of(paths)
    told = told_by(subject, body, project_named(project).repositories)
    payload = CommitLanded(
        project=project,
        commit=hash_of(commit, "hash"),
        parents=tuple(hash_of(parent, "parents") for parent in parents)[:MAX_PARENTS],
        author_date=iso(instant_of(author_date, "author_date")) or "",
        committer_date=iso(landed) or "",
        title=line_of(subject, MAX_TITLE),
        pr=pr if pr is not None else pull_request(subject),
        paths=tuple(kept[:MAX_PATHS]),
        paths_omitted=max(0, len(kept) - MAX_PATHS),
        **{name: value for name, value in told._asdict().items() if value is not None},
    )
    return UpstreamFact(payload, landed, landed, position)


def release_fact(payload: ReleasePublished, position: str) -> UpstreamFact:
    """Return the fact of one release, true and public from its `published_at` where it has one."""
    when = parse_instant(payload.published_at, "published_at") if payload.published_at else None
    return UpstreamFact(payload, when, when, position)
