"""Local mirrors of repositories that are named by URL: made once, fetched from then on, read as they are while offline.

One process at a time works on a mirror; a lock that the system takes back when a process dies says which. A clone takes its final
name when it is whole, so that there is no half mirror. What a killed fetch left behind (git's own lock files) is cleared first.

Belongs here: where a mirror is, making and refreshing it. Does not: running git (`changelog.git_command`), reading
commits.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from changelog.facts import line_of
from warehouse.canonical import text_id
from warehouse.errors import InputError, UpstreamError

Told = Callable[[str], None]
"""Is told one line."""
Git = Callable[..., str]
"""Runs git: folder, arguments, `told` for its progress; raises UpstreamError where git fails."""
HASH_SHOWN = 12
"""Hex digits of a URL's hash in the name of its mirror."""
WHILE_WAITING = 0.5
"""Seconds that another process may hold a mirror before we say that we wait for it."""
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_SECRET = re.compile(r"https?://[^/@\s]+@|[a-z]+://[^/@\s]*:[^/@\s]*@")
_LITTER = ("**/*.lock", "objects/pack/tmp_*", "objects/*/tmp_obj_*")
"""What git leaves in a repository when it is killed."""


def mirror_folder(url: str, mirrors: Path) -> Path:
    """Return where the mirror of *url* is kept: a name of letters and digits, so that it stays below *mirrors*, and its hash.

    The hash is of the very URL, because `a/b` and `a-b` are two repositories.
    """
    bare = _CREDENTIALS.sub("//", url)
    name = re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"^[a-z]+://", "", bare)).strip("-").lower()
    return mirrors / f"{name[:80].strip('-') or 'repository'}-{text_id(bare)[:HASH_SHOWN]}.git"


def nobody(_line: str) -> None:
    """Hear nothing."""


def mirrored(
    url: str, mirrors: Path, git: Git, *, sparing: tuple[str, ...] = (), told: Told = nobody, warned: Told = nobody
) -> Path:
    """Return the folder of the mirror of *url* below *mirrors*, made or brought up to date by *git*.

    Where that cannot be done and a mirror is there, it is taken as it is, and *warned* hears why; UpstreamError where there is
    none, InputError for a URL with a password. *told* hears of progress and of waiting. *sparing*: what a fetch leaves out
    (`--filter=blob:none`).
    """
    if _SECRET.match(url):
        raise InputError(f"{_named(url)}: holds a name or password, which git would keep on disk; use git's credential helper")
    mirrors = mirrors.resolve()  # git runs in it, where a relative path would mean another place
    folder = mirror_folder(url, mirrors)
    mirrors.mkdir(parents=True, exist_ok=True)
    with _held(folder, told):
        if folder.is_dir():
            _refresh(url, folder, git, sparing, told, warned)
        else:
            _make(url, folder, git, sparing, told)
    return folder


def damaged(folder: Path, why: str) -> UpstreamError:
    """Return what is to be said of a mirror that git cannot read."""
    return UpstreamError(f"the mirror {folder} is damaged ({why}); delete that folder and run the command again")


def _make(url: str, folder: Path, git: Git, sparing: tuple[str, ...], told: Told) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a clone that was killed; git cannot go on with it
    try:
        git(folder.parent, "clone", "--progress", "--mirror", *sparing, "--", url, str(partial), told=told)
        partial.rename(folder)
    except UpstreamError as error:
        raise UpstreamError(f"{_named(url)} could not be mirrored: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refresh(url: str, folder: Path, git: Git, sparing: tuple[str, ...], told: Told, warned: Told) -> None:
    for pattern in _LITTER:
        for left in folder.glob(pattern):
            left.unlink(missing_ok=True)
    try:
        git(folder, "rev-parse", "--git-dir")
    except UpstreamError as error:
        raise damaged(folder, str(error)) from None
    try:
        git(folder, "fetch", "--progress", "--prune", *sparing, "--no-auto-gc", "origin", told=told)
    except UpstreamError as error:
        warned(f"{_named(url)} could not be fetched, so its mirror is read as it is: {error}")


def _named(url: str) -> str:
    """Return a URL as it may be told: without credentials."""
    return line_of(_CREDENTIALS.sub("//", url), 200)


@contextmanager
def _held(folder: Path, told: Told) -> Iterator[None]:
    """Hold the mirror until the end of the block; the lock of a process that died does not last."""
    lock = FileLock(folder.with_suffix(".lock"))
    try:
        lock.acquire(timeout=WHILE_WAITING)
    except Timeout:
        told(f"waiting for another shiftlog that works on {folder.name}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
