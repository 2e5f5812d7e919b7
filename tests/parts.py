"""Functions that workers run in the tests; they stand here because a child process must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import polars as pl

from pipelines.workers.parcels import packed
from warehouse.errors import ConflictError


def square(part: int) -> int:
    return part * part


def process(part: int) -> int:
    return os.getpid()


def refuse(part: int) -> int:
    """Raise for part 2 what a table raises, and for part 7 what a fault of the program raises."""
    if part == 2:
        raise ConflictError("events: other writers kept winning; run it again")
    if part == 7:
        raise ZeroDivisionError("seven")
    return part


def note(part: tuple[str, int]) -> int:
    """Leave a file as a trace of having run."""
    folder, number = part
    (Path(folder) / str(number)).touch()
    return number


def wait_for_last(part: tuple[str, int, int]) -> int:
    """Part 0 ends only when part *last* has run."""
    folder, number, last = part
    (Path(folder) / str(number)).touch()
    while number == 0 and not (Path(folder) / str(last)).exists():
        time.sleep(0.01)
    return number


def sleep(folder: str) -> None:
    """Say who sleeps, then sleep far longer than any test waits."""
    (Path(folder) / f"pid-{os.getpid()}").touch()
    time.sleep(600)


def die(part: int) -> int:
    """Part 3 dies as one does that the kernel kills for lack of memory."""
    if part == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def die_once(part: tuple[str, int]) -> int:
    folder, number = part
    trace = Path(folder) / "died"
    if number == 3 and not trace.exists():
        trace.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def medians(part: tuple[str, int, str]) -> bytes:
    """Read one engine's rows of a Delta table at one version, as the heavy steps do, and send a frame back."""
    uri, version, engine = part
    rows = pl.scan_delta(uri, version=version).filter(pl.col("engine") == engine)
    return packed(rows.group_by("engine", "curve").agg(pl.col("tpot").median(), points=pl.len()).sort("curve").collect())


def threads(part: int) -> int:
    return pl.thread_pool_size()
