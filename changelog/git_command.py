"""Running git: the only module that imports GitPython.

A stranger's repository must not run anything, and git must not ask us anything. Belongs here: the environment, the exit status,
input and output, what git says beside them. Does not: what to ask git (`changelog.git`, `changelog.git_contents`).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from subprocess import Popen
from threading import Thread
from typing import IO, BinaryIO, cast

from git import Git
from git.exc import GitCommandNotFound

from changelog.facts import line_of
from changelog.mirrors import Told
from warehouse.errors import UpstreamError

CHUNK = 1 << 20
MAX_SAID = 1 << 16
"""Bytes of what git says beside its output that are kept, from the end."""
# No hooks, no file monitor, no signature check, no fetch of missing objects.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "http:https:ssh:file",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}


def run(
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
        with piped(folder, *arguments, feed=feed, told=told) as output:
            if into is None:
                return _decoded(output.read())
            shutil.copyfileobj(output, into, CHUNK)
            return ""
    except UpstreamError:
        if failing:
            return ""
        raise


@contextmanager
def piped(folder: Path, *arguments: str, feed: BinaryIO | None = None, told: Told | None = None) -> Iterator[BufferedReader]:
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


def refs(folder: Path, form: str, under: str) -> Iterator[str]:
    """Yield a line of *form* for every ref; only a line feed ends one, whatever else a ref's name holds."""
    text = run(folder, "for-each-ref", "--sort=refname", f"--format={form}", under)
    return (line for line in text.split("\n") if line)


def _here(folder: Path) -> dict[str, str]:
    """Return the variable that names this repository, so that one in our own environment does not name another."""
    place = folder / ".git" if (folder / ".git").exists() else folder
    return {"GIT_DIR": str(place.resolve())} if place.name == ".git" or (place / "HEAD").exists() else {}


def _decoded(field: bytes) -> str:
    return field.decode("utf-8", "replace")
