"""Do runs of one image contradict a shift?

The promise of the project is kept here: nothing said of an engine may be producible by running the same image again. A shift
says that the earlier build stood at the old level and the later build stands at the new one; every other run of either build
can bear witness. What a witness tells is a share: how much of the shift lies between the two builds if it stands for its own,
1 = all, 0 = nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low

import numpy as np

from pipelines.detect.baseline import MIN_CELLS
from pipelines.detect.changes import MEASUREMENT
from pipelines.detect.decision import Verdict
from pipelines.detect.observations import REPORTED, STEADY, TPOT, Cell, Observation

KEPT = 0.5
"""Share of a shift that must be left for it to stand."""
GONE = 0.25
"""Share below which a single run is enough to doubt a shift that was seen once."""
REPEATS = 5
"""Runs of one build that are heard, those nearest in time."""


def contradiction(verdict: Verdict, history: list[Observation], stands: bool) -> str | None:
    """Return in words how other runs of the two builds contradict a shift, or None.

    *stands*: later runs of the later build confirm it; then a single odd run of the earlier build does not matter.
    """
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    of_old = [o for o in history if o.repeats(old) and not o.repeats(new)]
    of_new = [o for o in history if o.repeats(new) and not o.repeats(old)]
    earlier = _shares_of_earlier([o for o in of_old if o.measured_at < new.measured_at][-REPEATS:], verdict)
    if _mostly_gone(earlier) or (not stands and any(share < GONE for share in earlier)):
        return "other runs of the earlier build already stood at the new level"
    if _mostly_gone(_shares_of_earlier([o for o in of_old if o.measured_at >= new.measured_at][:REPEATS], verdict)):
        return "later runs of the earlier build stand at the new level as well"
    if _mostly_gone(_shares_of_later([o for o in of_new if o.measured_at < new.measured_at][-REPEATS:], verdict)):
        return "earlier runs of the later build already stood at the old level"
    return None


def shares_after(verdict: Verdict, history: list[Observation]) -> list[float]:
    """Return what later runs of the new observation's build tell, nearest first."""
    new = verdict.comparison.new
    return _shares_of_later([o for o in history if o.measured_at > new.measured_at and o.repeats(new)][:REPEATS], verdict)


def _mostly_gone(shares: list[float]) -> bool:
    """At least half of the runs leave less than KEPT of the shift."""
    return bool(shares) and median_low(shares) < KEPT


def _shares_of_earlier(runs: list[Observation], verdict: Verdict) -> list[float]:
    return _present(_share(run.cells, verdict.comparison.new.cells, verdict) for run in runs)


def _shares_of_later(runs: list[Observation], verdict: Verdict) -> list[float]:
    return _present(_share(verdict.comparison.baseline.cells, run.cells, verdict) for run in runs)


def _share(old: dict[int, Cell], new: dict[int, Cell], verdict: Verdict) -> float | None:
    """Change between two sides over the part that moved, as a share of the shift; None with too few cells in common.

    Steady-state throughput, else TPOT; a measurement notice is about reported throughput.
    """
    for metric in (REPORTED,) if verdict.attribution == MEASUREMENT else (STEADY, TPOT):
        change = _change(old, new, set(verdict.comparison.concurrencies_of(verdict.part)), metric)
        if change is not None:
            return change / verdict.size
    return None


def _change(old: dict[int, Cell], new: dict[int, Cell], inside: set[int], metric: str) -> float | None:
    shared = sorted(old.keys() & new.keys() & inside)
    values = np.array([new[c].values[metric] - old[c].values[metric] for c in shared], dtype=np.float64)
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) >= min(MIN_CELLS, len(inside)) else None


def _present(shares: Iterable[float | None]) -> list[float]:
    return [share for share in shares if share is not None]
