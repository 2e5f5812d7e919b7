"""One step of the bench as a process of its own: how long it took, and how much memory it and its children had at the most."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.05


@dataclass(frozen=True)
class Measured:
    """Seconds of the step itself (start-up and imports aside), of the whole process, and the peak of all its memory (PSS), MB."""

    seconds: float
    process_seconds: float
    peak_mb: float
    said: dict[str, float]


def measured(script: Path, *arguments: str) -> Measured:
    """Run *script* with *arguments*; it prints a JSON object with `seconds`. Raises CalledProcessError where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, str(script), *arguments], stdout=subprocess.PIPE, text=True)
    sampler = _Sampler(process.pid)
    sampler.start()
    out, _ = process.communicate()
    whole = time.perf_counter() - start
    sampler.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    said = dict(json.loads(out.splitlines()[-1]))
    return Measured(said.pop("seconds"), whole, sampler.peak / 1024, said)


class _Sampler(threading.Thread):
    """Adds up the proportional memory of a process and its descendants again and again; `peak` in KiB (Linux only, else 0)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self._end = pid, 0, threading.Event()

    def run(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, sum(_pss(pid) for pid in _family(self.pid)))

    def stop(self) -> None:
        self._end.set()
        self.join()


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(descendant for child in children for descendant in _family(int(child)))]


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
