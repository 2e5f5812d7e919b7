"""Commits and release tags of a git repository: the only module that imports GitPython.

A repository is a local folder (work tree or bare), read in place, or a URL, mirrored without file contents. Only trees and
commits are read: a mirror without blobs has no file contents, and git would die half way over a diff that needs them.

Belongs here: running git, its output, its refs. Does not: what a subject or a path means.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from git import Git
from git.exc import GitCommandError, GitCommandNotFound

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, commit_fact, hash_of, line_of, release_fact
from changelog.projects import Project
from changelog.projects import project as project_named
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, UpstreamError
from warehouse.events import ReleasePublished

CHUNK = 1 << 20
MAX_REFS = 5_000
"""Refs that one read starts from; more would not fit on a command line."""
MAX_FIELD = 1 << 22
"""Bytes of one field of git's output; a longer one is not a subject or a path."""

_URL = re.compile(r"(?:https?|ssh|file)://[A-Za-z0-9_.~@:%/?#\[\]+=,-]+|git@[A-Za-z0-9.-]+:[A-Za-z0-9_.~%/+-]+")
# A stranger's repository must not run anything: no hooks, no file monitor, no signature check, no fetch of missing objects.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "http:https:ssh:file",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_FORMAT = "%x00%H%x00%P%x00%aI%x00%cI%x00%s"
_FIELDS = 5


def read_repository(location: str, project: str, mirrors: Path | None = None) -> Iterator[UpstreamFact | UpstreamFault]:
    """Yield every commit, oldest first, and every release tag of the repository at *location* for *project*.

    *location* is a folder or an https, http, ssh, git@ or file URL; a URL is mirrored below *mirrors*. Commits are those that
    the main branch, HEAD, release tags and release branches reach. Raises InputError for a location that cannot be meant and
    UpstreamError where git fails; nothing is yielded from a log that git did not finish.
    """
    owner = project_named(project)
    folder = _folder(location, mirrors)
    tags = list(_tags(folder, owner))
    yield from _commits(folder, owner)
    yield from tags


def is_url(location: str) -> bool:
    """Say whether *location* is a repository URL that we would mirror."""
    return _URL.fullmatch(location) is not None


def mirror_folder(url: str, mirrors: Path) -> Path:
    """Return where the mirror of *url* is kept: a name made of its letters and digits only, so that it stays below *mirrors*."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"^[a-z]+://", "", url)).strip("-").lower()
    return mirrors / f"{name[:150] or 'repository'}.git"


def _folder(location: str, mirrors: Path | None) -> Path:
    if is_url(location):
        if mirrors is None:
            raise InputError(f"{location}: a URL needs a folder to mirror it into")
        return _mirror(location, mirrors)
    if location.startswith("-") or "::" in location or re.match(r"[A-Za-z][\w+.-]*://", location):
        raise InputError(f"{location[:120]!r} is not a repository; give a folder or an https, http, ssh, git@ or file URL")
    folder = Path(location)
    if not folder.is_dir():
        raise InputError(f"{location}: no such folder; give a git repository or its URL")
    return folder


def _mirror(url: str, mirrors: Path) -> Path:
    """Fetch *url* into its mirror, made where there is none; an unfinished one never takes the final name."""
    mirrors = mirrors.resolve()  # git runs in it, where a relative path would mean another place
    folder = mirror_folder(url, mirrors)
    mirrors.mkdir(parents=True, exist_ok=True)
    if folder.is_dir():
        _run(folder, "fetch", "--prune", "--filter=blob:none", "--no-auto-gc", "origin")
        return folder
    with tempfile.TemporaryDirectory(dir=mirrors) as scratch:
        target = Path(scratch) / "mirror.git"
        _run(mirrors, "clone", "--mirror", "--filter=blob:none", "--", url, str(target))
        target.rename(folder)
    return folder


def _tags(folder: Path, owner: Project) -> Iterator[UpstreamFact | UpstreamFault]:
    form = "%(refname:strip=2)%00%(objectname)%00%(*objectname)%00%(creatordate:iso-strict)"
    for line in _refs(folder, form, "refs/tags"):
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


def _commits(folder: Path, owner: Project) -> Iterator[UpstreamFact | UpstreamFault]:
    """Run the one `git log` into a file, so that its exit status is known before its first line is believed."""
    roots = _roots(folder, owner)
    if not roots:
        return
    arguments = (
        "log",
        "-z",
        "--reverse",
        "--name-only",
        "--no-renames",
        "--diff-merges=first-parent",
        "--no-show-signature",
        "--no-color",
        "--no-notes",
        "--encoding=UTF-8",
        f"--format={_FORMAT}",
        *roots,
        "--",
    )
    with tempfile.TemporaryFile() as output:
        _run(folder, *arguments, into=output)
        output.seek(0)
        for fields, paths in _records(_fields(output)):
            yield _commit(owner, fields, paths)


def _commit(owner: Project, fields: list[str], paths: list[str]) -> UpstreamFact | UpstreamFault:
    commit, parents, author_date, committer_date, subject = fields
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
        )
    except InputError as error:
        return UpstreamFault(place, str(error), line_of(subject, MAX_EXCERPT))


def _roots(folder: Path, owner: Project) -> list[str]:
    """Return the hashes to read from: HEAD, the main branch, release branches and release tags; all refs where none is there."""
    form = "%(objectname)%00%(*objectname)%00%(objecttype)%00%(*objecttype)%00%(refname)"
    chosen: dict[str, None] = {}
    everything: dict[str, None] = {}
    head = _run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip()
    for line in _refs(folder, form, "refs"):
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


def _records(fields: Iterator[bytes]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (five header fields, paths) a commit: an empty field opens a commit, and no path is empty."""
    header: list[str] | None = None
    paths: list[str] = []
    for field in fields:
        if field == b"":
            if header is not None:
                yield header, paths
            header, paths = [_decoded(next(fields, b"")) for _ in range(_FIELDS)], []
            continue
        paths.append(_decoded(field if paths else field.removeprefix(b"\n")))
    if header is not None and header[0]:
        yield header, paths


def _fields(output: IO[bytes]) -> Iterator[bytes]:
    """Yield what stands between the NULs of a file, without holding the whole of it."""
    rest = b""
    while chunk := output.read(CHUNK):
        *fields, rest = (rest + chunk).split(b"\0")
        yield from fields
        if len(rest) > MAX_FIELD:
            raise UpstreamError(f"git log: a field is longer than {MAX_FIELD} bytes; the repository cannot be read")
    if rest:
        yield rest


def _decoded(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _run(folder: Path, *arguments: str, into: IO[bytes] | None = None, failing: bool = False) -> str:
    """Run git in *folder*; its output as text, or written to *into*. Raises UpstreamError unless it may be *failing*."""
    git = Git(str(folder))
    git.update_environment(**_QUIET, **_here(folder), GIT_CEILING_DIRECTORIES=str(folder.resolve().parent))
    try:
        done = git.execute(["git", *_SAFE, *arguments], output_stream=into, strip_newline_in_stdout=False)
    except GitCommandNotFound:
        raise UpstreamError("git is not installed; install it to read repositories") from None
    except GitCommandError as error:
        if failing:
            return ""
        raise UpstreamError(f"git {arguments[0]} failed in {folder.name}: {_last_line(error)}") from None
    return done if isinstance(done, str) else ""


def _refs(folder: Path, form: str, under: str) -> Iterator[str]:
    """Yield a line of *form* for every ref; only a line feed ends one, whatever else a ref's name holds."""
    text = _run(folder, "for-each-ref", "--sort=refname", f"--format={form}", under)
    return (line for line in text.split("\n") if line)


def _here(folder: Path) -> dict[str, str]:
    """Return the variable that names this repository, so that one in our own environment does not name another."""
    place = folder / ".git" if (folder / ".git").exists() else folder
    return {"GIT_DIR": str(place.resolve())} if place.name == ".git" or (place / "HEAD").exists() else {}


def _last_line(error: GitCommandError) -> str:
    """Return git's own complaint, without credentials that a URL in it may hold."""
    text = str(error.stderr or error).replace("stderr:", "").strip().strip("'")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    complaint = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no message")
    return line_of(re.sub(r"//[^/@\s]+@", "//", complaint), 300)
