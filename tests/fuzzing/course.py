"""The course of a fuzzing: mutant after mutant through the door, watched for exceptions, time and memory."""

from __future__ import annotations

import resource
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.mutants import Mutant, mutant
from tests.fuzzing.promises import broken, door, through_a_folder, write
from tests.soak.command import PROGRAM, ROOT

SECONDS = 5.0
"""Of this process (others run beside it), within which a mutant must be read."""
COMMAND_SECONDS = 120
MAX_RSS = 1024**3
STATUSES = (0, 2, 3)
"""Statuses of an ingest that ended as it should: all read, nothing to read, some in quarantine."""


@dataclass
class Course:
    """What was met: problems by mutant, the slowest, how many through the command line."""

    seed: int
    keep: Path
    """Where the files of a mutant that broke a promise are left."""
    real: bool = True
    problems: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    read: int = 0
    commands: int = 0

    def one(self, number: int, *, command: bool = False) -> None:
        """Read one mutant and note what is wrong."""
        made = mutant(self.seed, number, real=self.real)
        found = list(dict.fromkeys(self._watched(made)))
        if command:
            found += self._command(made)
            self.commands += 1
        self.read += 1
        if found:
            self.problems += [(number, f"{next(reversed(made.files))}: {made.done[:200]} → {one}") for one in found]
            write(made.files, self.keep / f"{self.seed}-{number}")

    def _watched(self, made: Mutant) -> Iterator[str]:
        start = time.process_time()
        try:
            with _within(SECONDS), tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
                outcome = (
                    through_a_folder(made.files, made.declared, Path(folder))
                    if made.container
                    else door(made.files, made.declared)
                )
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            own = [
                frame
                for frame in traceback.extract_tb(error.__traceback__)
                if "/pipelines/" in frame.filename or "/warehouse/" in frame.filename
            ]
            last = own[-1] if own else place
            yield f"raised {type(error).__name__}: {str(error)[:200]} at {Path(last.filename).name}:{last.lineno}"
            return
        took = time.process_time() - start
        self.slowest = max(self.slowest, (took, made.number))
        if took > SECONDS:
            yield f"took {took:.1f} s"
        yield from broken(made, outcome)

    def _command(self, made: Mutant) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            place = Path(folder)
            write(made.files, place / "in")
            settings = [part for key, value in made.declared.items() for part in ("--set", f"{key}={value}")]
            line = [*PROGRAM, "--warehouse", str(place / "warehouse"), "ingest", str(place / "in"), *settings]
            try:
                done = subprocess.run(line, cwd=ROOT, capture_output=True, timeout=COMMAND_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                yield f"the command hung for {COMMAND_SECONDS} s"
                return
            if done.returncode not in STATUSES or b"Traceback" in done.stderr:
                yield f"the command ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-300:]}"


def peak() -> int:
    """Return the largest memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Slow(Exception):
    """A mutant took too long."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def late(_number: int, _frame: object) -> None:
        raise Slow(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
