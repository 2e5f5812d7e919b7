"""Commits and release tags of a git repository: the only module that imports GitPython.

A repository is a local folder (work tree or bare), read in place, or a URL, mirrored without file contents. Only trees and
commits are read: a mirror without blobs has no file contents, and git would die half way over a diff that needs them.

Belongs here: running git, its output, its refs. Does not: what a subject or a path means.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from subprocess import Popen
from threading import Thread
from typing import IO, BinaryIO, cast

from git import Git
from git.exc import GitCommandNotFound

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, commit_fact, hash_of, line_of, release_fact
from changelog.mirrors import Told, damaged, mirrored, nobody
from changelog.projects import Project
from changelog.projects import project as project_named
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, UpstreamError
from warehouse.events import ReleasePublished, RepositoryRead

CHUNK = 1 << 20
MAX_REFS = 5_000
"""Refs that one read starts from; more would not fit on a command line."""
MAX_FIELD = 1 << 22
"""Characters of one field of git's output that are looked at; a longer one is no subject, no path and no message."""

MAX_SAID = 1 << 16
"""Bytes of what git says beside its output that are kept, from the end."""
MAX_DIFF_LINE = 10_000
"""Bytes of a changed line that are looked at."""

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
    folder = _folder(location, mirrors, told, warned)
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


def contents_folder(location: str, mirrors: Path | None) -> Path:
    """Return the folder of a repository whose file contents are read, too: a URL is mirrored whole."""
    return _folder(location, mirrors, whole=True)


def _folder(location: str, mirrors: Path | None, told: Told = nobody, warned: Told = nobody, *, whole: bool = False) -> Path:
    if is_url(location):
        if mirrors is None:
            raise InputError(f"{location}: a URL needs a folder to mirror it into")
        return mirrored(location, mirrors, _run, sparing=() if whole else ("--filter=blob:none",), told=told, warned=warned)
    if location.startswith("-") or "::" in location or re.match(r"[A-Za-z][\w+.-]*://", location):
        raise InputError(f"{location[:120]!r} is not a repository; give a folder or an https, http, ssh, git@ or file URL")
    folder = Path(location)
    if not folder.is_dir():
        raise InputError(f"{location}: no such folder; give a git repository or its URL")
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
        with _piped(folder, "log", "-z", "--reverse", *diff, *form, "--stdin", "--", feed=cast(BinaryIO, names)) as output:
            return [_commit(owner, fields, paths) for fields, paths in _records(_fields(output))]


def _present(folder: Path, commits: Iterable[str]) -> list[str]:
    """Return those of *commits* that this repository holds: another clone, or one that was forced, may lack some."""
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"{commit}\n" for commit in sorted(commits)).encode())
        names.seek(0)
        told = _run(folder, "cat-file", "--batch-check=%(objecttype) %(objectname)", feed=cast(BinaryIO, names))
    return [line.removeprefix("commit ") for line in told.split("\n") if line.startswith("commit ")]


def _is_shallow(folder: Path) -> bool:
    """Say whether older commits are missing on purpose: then its heads do not stand for all that lies behind them."""
    return _run(folder, "rev-parse", "--is-shallow-repository").strip() == "true"


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


def _decoded(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def versions_of_file(folder: Path, path: str) -> Iterator[tuple[str, tuple[str, ...], str, bytes | None]]:
    """Yield the versions of a file along the main line from HEAD, oldest first: commit, its parents, committer date, bytes.

    The bytes are None where the commit removed the file. Raises UpstreamError where git fails, or where a clone has no contents.
    """
    if not _run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip():
        return
    form = "--format=%H%x00%P%x00%cI"
    log = _run(folder, "log", "--first-parent", "--reverse", "--no-show-signature", "--no-color", form, "HEAD", "--", path)
    commits = [line.split("\0") for line in log.split("\n") if line]
    wanted = "".join(f"{commit}:{path}\n" for commit, _parents, _date in commits)
    with tempfile.TemporaryFile() as names, tempfile.TemporaryFile() as contents:
        names.write(wanted.encode())
        names.seek(0)
        _run(folder, "cat-file", "--batch", into=contents, feed=cast(BinaryIO, names))
        contents.seek(0)
        for commit, parents, date in commits:
            head = contents.readline().split()
            if head[1:2] == [b"blob"]:
                yield commit, tuple(parents.split()), date, contents.read(int(head[2]))
                contents.read(1)
            elif _run(folder, "ls-tree", commit, "--", path).strip():
                raise UpstreamError(f"{folder.name}: the clone has no contents of {path} ({commit[:12]}); clone it whole")
            else:
                yield commit, tuple(parents.split()), date, None


def changed_files(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, str, str, bytes | None]]:
    """Yield each change of files along the main line from HEAD, oldest first: commit, committer date, path, new contents.

    The contents are None where the commit removed the file. Raises UpstreamError where git fails, or a clone has no contents.
    """
    changes = list(_raw_changes(folder, paths))
    wanted = list(dict.fromkeys(blob for _commit, _date, _path, blob in changes if blob.strip("0")))
    contents = dict(zip(wanted, _objects(folder, wanted), strict=True))
    for commit, date, path, blob in changes:
        data = contents.get(blob)
        if data is None and blob.strip("0"):
            raise UpstreamError(f"{folder.name}: the clone has no contents of {path} ({commit[:12]}); clone it whole")
        yield commit, date, path, data


def _raw_changes(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (commit, committer date, path, blob) for every change of *paths* along main, oldest first."""
    if not _run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip():
        return
    flags = ("--first-parent", "--diff-merges=first-parent", "--reverse", "--raw", "--no-abbrev", "--no-renames", "-z")
    quiet = ("--no-show-signature", "--no-color", "--no-notes")
    fields = iter(_run(folder, "log", *flags, *quiet, "--format=%x00%H%x00%cI", "HEAD", "--", *paths).split("\0"))
    commit = date = ""
    for field in fields:
        if field == "":
            commit, date = next(fields, ""), next(fields, "")
        elif field.lstrip("\n").startswith(":"):
            yield commit, date, next(fields, ""), field.split()[3]


def _objects(folder: Path, names: Sequence[str]) -> list[bytes | None]:
    """Return the contents of objects by name (`hash` or `commit:path`); None where one is not here."""
    if not names:
        return []
    found: list[bytes | None] = []
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as contents:
        wanted.write("".join(f"{name}\n" for name in names).encode())
        wanted.seek(0)
        _run(folder, "cat-file", "--batch", into=contents, feed=cast(BinaryIO, wanted))
        contents.seek(0)
        for _ in names:
            head = contents.readline().split()
            is_file = head[1:2] == [b"blob"]
            found.append(contents.read(int(head[2])) if is_file else None)
            contents.read(1 if is_file else 0)
    return found


def contents_at(folder: Path, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """Return the contents of files at commits, (commit, path) each; None where the file, or its contents, are not here."""
    return _objects(folder, [f"{commit}:{path}" for commit, path in wanted])


def bring_contents(folder: Path, paths: Sequence[str], commits: Sequence[str]) -> None:
    """Fetch what a mirror without contents lacks of *paths*, along main and at *commits*; a clone of the user's is left alone.

    One fetch for all: git by itself would ask for each file anew.
    """
    if _run(folder, "config", "--get", "remote.origin.promisor", failing=True).strip() != "true":
        return
    objects = {blob for _commit, _date, _path, blob in _raw_changes(folder, paths)}
    for commit in commits:
        listed = _run(folder, "ls-tree", commit, "--", *paths, failing=True)
        objects |= {line.split()[2] for line in listed.split("\n") if " blob " in line}
    lacking = _lacking(folder, sorted(objects - {"0" * 40}))
    if lacking:
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{name}\n" for name in lacking).encode())
            names.seek(0)
            quiet = ("--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--filter=blob:none", "--stdin")
            _run(folder, "fetch", *quiet, "origin", feed=cast(BinaryIO, names))


def _lacking(folder: Path, objects: Sequence[str]) -> list[str]:
    """Return which objects are not here; all that are here are listed, because to ask for one by name would fetch it."""
    here = set(_run(folder, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)").split("\n"))
    return [name for name in objects if name not in here]


def changed_lines(folder: Path, commits: Iterable[str], paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (commit, path, line) for every line that *commits* added to or took from files that match *paths* (git's patterns).

    A commit that touched none of them yields nothing. Raises UpstreamError where git fails.
    """
    flags = ("-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature", "--no-notes")
    with tempfile.TemporaryFile() as names, tempfile.TemporaryFile() as output:
        names.write("".join(f"{commit}\n" for commit in commits).encode())
        names.seek(0)
        form = ("--no-walk=unsorted", "--stdin", "--diff-merges=first-parent", "--format=%x00%H")
        _run(folder, "log", *flags, *form, "--", *paths, into=output, feed=cast(BinaryIO, names))
        output.seek(0)
        commit = path = ""
        for raw in output:
            line = raw[:MAX_DIFF_LINE].decode("utf-8", "replace").rstrip("\n")
            if line.startswith("\0"):
                commit, path = line[1:], ""
            elif line.startswith("diff --git "):
                path = line.rpartition(" b/")[2]
            elif path and line[:1] in ("+", "-") and not line.startswith(("+++ ", "--- ")):
                yield commit, path, line[1:]


def _run(
    folder: Path,
    *arguments: str,
    into: IO[bytes] | None = None,
    feed: BinaryIO | None = None,
    failing: bool = False,
    told: Told | None = None,
) -> str:
    """Run git in *folder*, *feed* its input; its output as text, or written to *into*. *told* hears of its progress.

    Raises UpstreamError unless it may be *failing*.
    """
    try:
        with _piped(folder, *arguments, feed=feed, told=told) as output:
            if into is None:
                return _decoded(output.read())
            shutil.copyfileobj(output, into, CHUNK)
            return ""
    except UpstreamError:
        if failing:
            return ""
        raise


@contextmanager
def _piped(folder: Path, *arguments: str, feed: BinaryIO | None = None, told: Told | None = None) -> Iterator[BufferedReader]:
    """Run git in *folder* and give its output to the block as it comes; raises UpstreamError at its end where git failed."""
    git = Git(str(folder))
    git.update_environment(**_QUIET, **_here(folder), GIT_CEILING_DIRECTORIES=str(folder.resolve().parent))
    try:
        process = git.execute(["git", *_SAFE, *arguments], istream=feed, as_process=True)
    except GitCommandNotFound:
        raise UpstreamError("git is not installed; install it to read repositories") from None
    child, output = cast("Popen[bytes]", process.proc), cast(BufferedReader, process.stdout)
    with suppress(OSError, AttributeError):  # where the system allows it, git need not wait for us at every 64 KiB
        fcntl.fcntl(output.fileno(), fcntl.F_SETPIPE_SZ, CHUNK)
    said = _Said(cast("IO[bytes]", process.stderr), told)
    try:
        yield output
        output.close()
        status = child.wait()
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        said.join()
        output.close()
    if status:
        raise UpstreamError(f"git {arguments[0]} failed in {folder.name}: {said.complaint()}")


class _Said(Thread):
    """Reads what git says beside its output, so that it never waits for us; keeps the end of it, tells of the progress."""

    def __init__(self, stream: IO[bytes], told: Told | None) -> None:
        super().__init__(daemon=True)
        self.stream, self.told = stream, told
        self.end = b""
        self.start()

    def run(self) -> None:
        step = ""
        with self.stream:
            while chunk := os.read(self.stream.fileno(), CHUNK):
                self.end = (self.end + chunk)[-MAX_SAID:]
                now = re.sub(r"\d+%.*", "", line_of(_decoded(chunk).strip("\r\n").replace("\r", "\n").split("\n")[-1], 80))
                if self.told is not None and now != step:
                    step = now
                    self.told(now.strip(" :"))

    def complaint(self) -> str:
        """Return git's own complaint, without credentials that a URL in it may hold."""
        lines = [line.strip() for line in _decoded(self.end).replace("\r", "\n").split("\n") if line.strip()]
        told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "no message")
        return line_of(re.sub(r"//[^/@\s]+@", "//", told), 300)


def _refs(folder: Path, form: str, under: str) -> Iterator[str]:
    """Yield a line of *form* for every ref; only a line feed ends one, whatever else a ref's name holds."""
    text = _run(folder, "for-each-ref", "--sort=refname", f"--format={form}", under)
    return (line for line in text.split("\n") if line)


def _here(folder: Path) -> dict[str, str]:
    """Return the variable that names this repository, so that one in our own environment does not name another."""
    place = folder / ".git" if (folder / ".git").exists() else folder
    return {"GIT_DIR": str(place.resolve())} if place.name == ".git" or (place / "HEAD").exists() else {}
