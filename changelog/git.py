"""Commits and release tags of a git repository.

A repository is a local folder (work tree or bare), read in place, or a URL, mirrored without file contents. Only trees and
commits are read: a mirror without blobs has no file contents, and git would die half way over a diff that needs them.

Belongs here: what is asked of git, its output, its refs. Does not: running it (`changelog.git_command`), contents of files
(`changelog.git_contents`), what a subject or a path means.
"""

from __future__ import annotations

import re
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, commit_fact, hash_of, line_of, release_fact
from changelog.git_command import CHUNK, piped, refs, run
from changelog.mirrors import Told, damaged, mirrored, nobody
from changelog.projects import Project
from changelog.projects import project as project_named
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, UpstreamError
from warehouse.events import ReleasePublished, RepositoryRead

MAX_REFS = 5_000
"""Refs that one read starts from; more would not fit on a command line."""
MAX_FIELD = 1 << 22
"""Characters of one field of git's output that are looked at; a longer one is no subject, no path and no message."""

_URL = re.compile(r"(?:https?|ssh|file)://[A-Za-z0-9_.~@:%/?#\[\]+=,-]+|git@[A-Za-z0-9.-]+:[A-Za-z0-9_.~%/+-]+")
_FORMAT = "%x00%H%x00%P%x00%aI%x00%cI%x00%s%x00%b"
_FIELDS = 6
READING = 1
"""Generation of this reader; raised where it takes more from a repository than it did: everything is then read anew."""


def read_repository(
    location: str,
    project: str,
    mirrors: Path | None = None,
    known: Iterable[RepositoryRead] = (),
    told: Told = nobody,
    warned: Told = nobody,
) -> Iterator[UpstreamFact | UpstreamFault]:
    """Yield commits, oldest first, every release tag, and last what was read (`RepositoryRead`), for *project*.

    *location* is a folder or an https, http, ssh, git@ or file URL; a URL is mirrored below *mirrors*. Commits are those that
    the main branch, HEAD, release tags and release branches reach, without those that the heads of *known* readings reach.
    *told* hears of progress, *warned* of a URL that could not be fetched, so that its mirror is read as it is. Raises
    InputError for a location that cannot be meant and UpstreamError where git fails; nothing is yielded from a log that git did
    not finish.
    """
    owner = project_named(project)
    folder = folder_of(location, mirrors, told, warned)
    try:
        tags = list(_tags(folder, owner))
        heads = tuple(sorted(_roots(folder, owner)))
        yield from _commits(folder, owner, heads, known)
        yield from tags
        if heads and not _is_shallow(folder):
            yield UpstreamFact(RepositoryRead(project=owner.name, heads=heads, reading=READING), None, None, "")
    except UpstreamError as error:
        raise (damaged(folder, str(error)) if is_url(location) else error) from None


def is_url(location: str) -> bool:
    """Say whether *location* is a repository URL that we would mirror."""
    return _URL.fullmatch(location) is not None


def folder_of(location: str, mirrors: Path | None, told: Told = nobody, warned: Told = nobody, *, whole: bool = False) -> Path:
    """Return the folder of a repository; a URL is mirrored below *mirrors* first, without contents of files unless *whole*."""
    if is_url(location):
        if mirrors is None:
            raise InputError(f"{location}: a URL needs a folder to mirror it into")
        return mirrored(location, mirrors, run, sparing=() if whole else ("--filter=blob:none",), told=told, warned=warned)
    if location.startswith("-") or "::" in location or re.match(r"[A-Za-z][\w+.-]*://", location):
        raise InputError(f"{location[:120]!r} is not a repository; give a folder or an https, http, ssh, git@ or file URL")
    folder = Path(location)
    if not folder.is_dir():
        raise InputError(f"{location}: no such folder; give a git repository or its URL")
    return folder


def _tags(folder: Path, owner: Project) -> Iterator[UpstreamFact | UpstreamFault]:
    form = "%(refname:strip=2)%00%(objectname)%00%(*objectname)%00%(creatordate:iso-strict)"
    for line in refs(folder, form, "refs/tags"):
        name, direct, peeled, created = line.split("\0")
        version = owner.version_of_tag(name)
        if version is None:
            continue
        try:
            yield release_fact(
                ReleasePublished(
                    project=owner.name,
                    version=version,
                    tag=line_of(name, 200),
                    commit=hash_of(peeled or direct, "commit"),
                    published_at=iso(parse_instant(created, "tag date")) if created else None,
                    evidence="tag",
                ),
                f"tag {line_of(name, 100)}",
            )
        except InputError as error:
            yield UpstreamFault(f"tag {line_of(name, 100)}", str(error), line_of(line, MAX_EXCERPT))


def _commits(
    folder: Path, owner: Project, heads: tuple[str, ...], known: Iterable[RepositoryRead]
) -> Iterator[UpstreamFact | UpstreamFault]:
    """Run the one `git log` for what *heads* reach and the heads of *known* readings do not.

    Its lines are read while it runs, and kept back until its exit status is known.
    """
    before = {head for reading in known if reading.reading == READING and reading.project == owner.name for head in reading.heads}
    fresh = [head for head in heads if head not in before]
    if not fresh:
        return
    present = _present(folder, before)
    try:
        found = _logged(folder, owner, fresh, present)
    except UpstreamError:
        if not present:
            raise
        found = _logged(folder, owner, heads, ())  # what lies behind a known head is damaged here: read all that can be read
    yield from found


def _logged(folder: Path, owner: Project, heads: Iterable[str], without: Iterable[str]) -> list[UpstreamFact | UpstreamFault]:
    form = ("--format=" + _FORMAT, "--encoding=UTF-8", "--no-color", "--no-notes", "--no-show-signature")
    diff = ("--name-only", "--no-renames", "--diff-merges=first-parent")
    with tempfile.TemporaryFile() as names:
        names.write("".join([*(f"{head}\n" for head in heads), *(f"^{head}\n" for head in without)]).encode())
        names.seek(0)
        with piped(folder, "log", "-z", "--reverse", *diff, *form, "--stdin", "--", feed=cast(BinaryIO, names)) as output:
            return [_commit(owner, fields, paths) for fields, paths in _records(_fields(output))]


def _present(folder: Path, commits: Iterable[str]) -> list[str]:
    """Return those of *commits* that this repository holds: another clone, or one that was forced, may lack some."""
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"{commit}\n" for commit in sorted(commits)).encode())
        names.seek(0)
        told = run(folder, "cat-file", "--batch-check=%(objecttype) %(objectname)", feed=cast(BinaryIO, names))
    return [line.removeprefix("commit ") for line in told.split("\n") if line.startswith("commit ")]


def _is_shallow(folder: Path) -> bool:
    """Say whether older commits are missing on purpose: then its heads do not stand for all that lies behind them."""
    return run(folder, "rev-parse", "--is-shallow-repository").strip() == "true"


def _commit(owner: Project, fields: list[str], paths: list[str]) -> UpstreamFact | UpstreamFault:
    commit, parents, author_date, committer_date, subject, body = fields
    place = f"commit {commit[:12]}"
    try:
        return commit_fact(
            owner.name,
            commit=commit,
            parents=parents.split(),
            author_date=author_date,
            committer_date=committer_date,
            subject=subject,
            paths=paths,
            position=place,
            body=body,
        )
    except InputError as error:
        return UpstreamFault(place, str(error), line_of(subject, MAX_EXCERPT))


def _roots(folder: Path, owner: Project) -> list[str]:
    """Return the hashes to read from: HEAD, the main branch, release branches and release tags; all refs where none is there."""
    form = "%(objectname)%00%(*objectname)%00%(objecttype)%00%(*objecttype)%00%(refname)"
    chosen: dict[str, None] = {}
    everything: dict[str, None] = {}
    head = run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip()
    for line in refs(folder, form, "refs"):
        direct, peeled, kind, peeled_kind, name = line.split("\0")
        if "commit" not in (kind, peeled_kind):
            continue
        everything[peeled or direct] = None
        if _is_release_line(name, owner):
            chosen[peeled or direct] = None
    roots = [*([head] if head else []), *chosen] or list(everything)
    return list(dict.fromkeys(roots))[:MAX_REFS]


def _is_release_line(ref: str, owner: Project) -> bool:
    if ref.startswith("refs/tags/"):
        return owner.version_of_tag(ref.removeprefix("refs/tags/")) is not None
    branch = re.sub(r"^refs/(?:heads|remotes/[^/]+)/", "", ref)
    return branch == owner.main or owner.release_branches.fullmatch(branch) is not None


def _records(pieces: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (six header fields, paths) a commit: an empty field opens a commit, and no path is empty."""
    waiting: list[str] = []
    for piece in pieces:
        waiting += piece
        start = 0
        while (end := _end_of(waiting, start)) is not None:
            yield _record(waiting, start, end)
            start = end
        del waiting[:start]
    if len(waiting) > 1 and waiting[1]:
        yield _record(waiting, 0, len(waiting))


def _end_of(fields: list[str], start: int) -> int | None:
    """Return where the next commit opens after the one that opens at *start*; None where that is not read yet."""
    try:
        return fields.index("", start + 1 + _FIELDS)
    except ValueError:
        return None


def _record(fields: list[str], start: int, end: int) -> tuple[list[str], list[str]]:
    header = fields[start + 1 : min(start + 1 + _FIELDS, end)]
    paths = fields[start + 1 + _FIELDS : end]
    if paths:
        paths[0] = paths[0].removeprefix("\n")
    return header + [""] * (_FIELDS - len(header)), paths


def _fields(output: BufferedReader) -> Iterator[list[str]]:
    """Yield what stands between the NULs of a stream, without holding the whole of it; of an endless field the beginning."""
    decoded = getincrementaldecoder("utf-8")("replace").decode
    rest = ""
    while chunk := output.read1(CHUNK):
        *fields, rest = (rest + decoded(chunk)).split("\0")
        yield fields
        rest = rest[:MAX_FIELD]
    rest += decoded(b"", True)
    if rest:
        yield [rest]
