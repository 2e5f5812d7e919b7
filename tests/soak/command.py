"""The command `shiftlog` as a process of its own: run to its end, or struck by a signal at a chosen moment of its life.

Belongs here: processes, signals, what a process wrote. Does not: what the warehouse must hold afterwards (`promises`).
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-c", "from pipelines.entry import run; run()")
PATIENCE = 300.0
"""Seconds after which a command counts as hung; nothing here takes a tenth of it."""
POLL = 0.00005
"""Seconds; between a data file and its commit there is a millisecond."""
PROGRESS = re.compile(r"reading \d+: ")
ALARMING = re.compile(r"error|traceback|exception|panick|failed|conflict|cannot|warning", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit status (negative: the signal that killed it) and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        """Lines of stderr but for progress, which only slow work shows."""
        return [line for line in self.err.splitlines() if line and not PROGRESS.match(line)]


def start(warehouse: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start `shiftlog --warehouse WAREHOUSE ARGUMENTS…` and return at once."""
    line = [*PROGRAM, "--warehouse", str(warehouse), *map(str, arguments)]
    return subprocess.Popen(line, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> Outcome:
    """Wait for *process* and return how it ended; one that hangs is killed and fails the test."""
    with _no_orphan(process):
        out, err = process.communicate(timeout=PATIENCE)
    return Outcome(process.returncode, out, err)


def shiftlog(warehouse: Path, *arguments: str | Path) -> Outcome:
    """Run a command to its end."""
    return ended(start(warehouse, *arguments))


@contextmanager
def _no_orphan(process: subprocess.Popen[str]) -> Iterator[None]:
    """End the process and all that it started where the test fails in between."""
    try:
        yield
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


COMMIT, ANY_FILE = "*/_delta_log/*.json", "**/*"
"""Patterns of files below a warehouse: commits of tables; everything, files that are still being written among them."""


@dataclass(frozen=True)
class Life:
    """An undisturbed run of a command: how many seconds it took, how many commits it made, how many files it left."""

    seconds: float
    commits: int
    files: int


def undisturbed(warehouse: Path, *arguments: str | Path) -> Life:
    """Run a command that must succeed, and return what its life was like."""
    commits, files, begun = count(warehouse, COMMIT), count(warehouse, ANY_FILE), time.monotonic()
    outcome = shiftlog(warehouse, *arguments)
    assert outcome.status == 0, outcome.err
    seconds = time.monotonic() - begun
    return Life(seconds, count(warehouse, COMMIT) - commits, count(warehouse, ANY_FILE) - files)


def count(warehouse: Path, pattern: str) -> int:
    """Return how many files below a warehouse match *pattern*."""
    return len(set(warehouse.glob(pattern)))


Moment = Callable[[subprocess.Popen[str], Path], None]
"""Waits until a process should be struck, or has ended."""


def after(seconds: float) -> Moment:
    """Return the moment *seconds* after the start."""

    def wait(process: subprocess.Popen[str], _warehouse: Path) -> None:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return

    return wait


def at(pattern: str, count: int, lag: float = 0.0) -> Moment:
    """Return the moment *lag* seconds after the *count*-th new file that matches *pattern* was seen in the warehouse."""

    def wait(process: subprocess.Popen[str], warehouse: Path) -> None:
        before = set(warehouse.glob(pattern))  # a new process needs a while to its first file; ours needs none to get here
        seen: set[Path] = set()
        while len(seen) < count and process.poll() is None:
            seen |= set(warehouse.glob(pattern)) - before
            time.sleep(POLL)
        time.sleep(lag)

    return wait


def moment_of(life: Life, kind: str, chance: random.Random) -> Moment:
    """Return a moment of a *life*: `time` anywhere between start and end, `commit` and `file` at or just after one of those."""
    if kind == "time":
        return after(life.seconds * chance.random())
    lag = chance.choice([0.0, 0.001, 0.003, 0.01])
    return (
        at(COMMIT, chance.randint(1, life.commits), lag) if kind == "commit" else at(ANY_FILE, chance.randint(1, life.files), lag)
    )


def struck(number: signal.Signals, moment: Moment, warehouse: Path, *arguments: str | Path) -> tuple[bool, Outcome]:
    """Run a command, send it signal *number* at *moment*; return whether it was alive to be struck, and how it ended."""
    process = start(warehouse, *arguments)
    with _no_orphan(process):
        moment(process, warehouse)
        alive = process.poll() is None
        if number == signal.SIGINT and alive:  # Ctrl-C reaches all that the command started
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        return alive, ended(process)


def overtaken(
    moment: Moment, warehouse: Path, slow: tuple[str | Path, ...], quick: tuple[str | Path, ...]
) -> tuple[int, list[Outcome]]:
    """Halt the command *slow* at *moment*, run *quick* from start to end meanwhile, let *slow* go on.

    Return how many commits all tables had when *slow* stood still, and how both ended.
    """
    process = start(warehouse, *slow)
    with _no_orphan(process):
        moment(process, warehouse)
        assert process.poll() is None, "the command was done before it could be halted"
        process.send_signal(signal.SIGSTOP)
        state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # sent is not yet stopped
        assert state is not None and state.si_code == os.CLD_STOPPED, "the command was done before it could be halted"
        commits = count(warehouse, COMMIT)
        overtaker = shiftlog(warehouse, *quick)
        process.send_signal(signal.SIGCONT)
        return commits, [ended(process), overtaker]
