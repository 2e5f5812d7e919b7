"""Contents of files in a git repository: their versions along main, at commits, changed lines; and fetching what a mirror lacks.

Belongs here: bytes and lines of files. Does not: commits and tags (`changelog.git`), what a file means.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from changelog.git import folder_of
from changelog.git_command import run
from warehouse.errors import UpstreamError

MAX_DIFF_LINE = 10_000
"""Bytes of a changed line that are looked at."""


def contents_folder(location: str, mirrors: Path | None) -> Path:
    """Return the folder of a repository whose file contents are read, too: a URL is mirrored whole."""
    return folder_of(location, mirrors, whole=True)


def versions_of_file(folder: Path, path: str) -> Iterator[tuple[str, tuple[str, ...], str, bytes | None]]:
    """Yield the versions of a file along the main line from HEAD, oldest first: commit, its parents, committer date, bytes.

    The bytes are None where the commit removed the file. Raises UpstreamError where git fails, or where a clone has no contents.
    """
    if not run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip():
        return
    form = "--format=%H%x00%P%x00%cI"
    log = run(folder, "log", "--first-parent", "--reverse", "--no-show-signature", "--no-color", form, "HEAD", "--", path)
    commits = [line.split("\0") for line in log.split("\n") if line]
    wanted = "".join(f"{commit}:{path}\n" for commit, _parents, _date in commits)
    with tempfile.TemporaryFile() as names, tempfile.TemporaryFile() as contents:
        names.write(wanted.encode())
        names.seek(0)
        run(folder, "cat-file", "--batch", into=contents, feed=cast(BinaryIO, names))
        contents.seek(0)
        for commit, parents, date in commits:
            head = contents.readline().split()
            if head[1:2] == [b"blob"]:
                yield commit, tuple(parents.split()), date, contents.read(int(head[2]))
                contents.read(1)
            elif run(folder, "ls-tree", commit, "--", path).strip():
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
    if not run(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}", failing=True).strip():
        return
    flags = ("--first-parent", "--diff-merges=first-parent", "--reverse", "--raw", "--no-abbrev", "--no-renames", "-z")
    quiet = ("--no-show-signature", "--no-color", "--no-notes")
    fields = iter(run(folder, "log", *flags, *quiet, "--format=%x00%H%x00%cI", "HEAD", "--", *paths).split("\0"))
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
        run(folder, "cat-file", "--batch", into=contents, feed=cast(BinaryIO, wanted))
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


def bring_contents(folder: Path, paths: Sequence[str], commits: Sequence[str], *, along_main: bool = True) -> None:
    """Fetch what a mirror of our own lacks of *paths*, at *commits* and *along_main*. Never for a clone that others configured.

    One fetch for all: git by itself would ask for each file anew.
    """
    if run(folder, "config", "--get", "remote.origin.promisor", failing=True).strip() != "true":
        return
    objects = {blob for _commit, _date, _path, blob in _raw_changes(folder, paths)} if along_main else set()
    for commit in commits:
        listed = run(folder, "ls-tree", commit, "--", *paths, failing=True)
        objects |= {line.split()[2] for line in listed.split("\n") if " blob " in line}
    lacking = _lacking(folder, sorted(objects - {"0" * 40}))
    if lacking:
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{name}\n" for name in lacking).encode())
            names.seek(0)
            quiet = ("--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--filter=blob:none", "--stdin")
            run(folder, "fetch", *quiet, "origin", feed=cast(BinaryIO, names))


def _lacking(folder: Path, objects: Sequence[str]) -> list[str]:
    """Return which objects are not here; all that are here are listed, because to ask for one by name would fetch it."""
    here = set(run(folder, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)").split("\n"))
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
        run(folder, "log", *flags, *form, "--", *paths, into=output, feed=cast(BinaryIO, names))
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
