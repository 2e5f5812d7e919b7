"""Do runs of one image contradict a shift?

The promise of the project is kept here: nothing said of an engine may be producible by running the same image again. A shift
says that the earlier build stood at the old level and the later build stands at the new one; every other run of either build
can bear witness. What a witness tells is a share: how much of the shift lies between the two builds if it stands for its own,
1 = all, 0 = nothing. Both sides of that fraction are one statistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from statistics import median, median_low

from pipelines.detect.baseline import MIN_CELLS
from pipelines.detect.changes import MEASUREMENT
from pipelines.detect.comparison import UNFIT_CELLS
from pipelines.detect.decision import WITNESS_SHARE, Verdict, astray
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
    """Runs of the earlier build against the new observation.

    Cells that show little of the shift count as well: the pooled baseline may have them from this very run.
    """
    return _present(_share(run.cells, verdict.comparison.new.cells, verdict, pooled=True) for run in runs)


def _shares_of_later(runs: list[Observation], verdict: Verdict) -> list[float]:
    """The baseline against runs of the later build; cells that show little of the shift cannot tell whether it is still there."""
    return _present(_share(verdict.comparison.baseline.cells, run.cells, verdict, pooled=False) for run in runs)


def _share(old: dict[float, Cell], new: dict[float, Cell], verdict: Verdict, *, pooled: bool) -> float | None:
    """Change between two sides over the cells that moved, as a share of what the shift's own two sides show; None = no witness.

    Steady-state throughput, else TPOT, as far as it saw the shift; a measurement notice is about reported throughput.
    """
    pair, inside = verdict.comparison, _cells_that_moved(verdict)
    for metric in (REPORTED,) if verdict.attribution == MEASUREMENT else (STEADY, TPOT):
        between = _changes(old, new, inside, metric)
        whole = _changes(pair.baseline.cells, pair.new.cells, inside, metric)
        seen = between.keys() & whole.keys()
        if len(seen) >= min(MIN_CELLS, len(inside)) and (metric == REPORTED or _shows(median(whole.values()), verdict.size)):
            return _fraction(between, whole, seen, pooled)
    return None


def _fraction(between: dict[float, float], whole: dict[float, float], seen: Set[float], pooled: bool) -> float | None:
    """Return the median change of the cells *seen* over that of the whole shift in the same cells, where they show it."""
    change, there, everywhere = (
        median(values) for values in ([between[c] for c in seen], [whole[c] for c in seen], whole.values())
    )
    if _shows(there, everywhere):
        return change / there
    return change / everywhere if pooled else None


def _shows(change: float, shift: float) -> bool:
    return change / shift >= WITNESS_SHARE


def _cells_that_moved(verdict: Verdict) -> set[float]:
    """Concurrencies that the size stands for: those of the part; fit ones, or of unfit ones those that went astray its way."""
    pair = verdict.comparison
    if verdict.part == UNFIT_CELLS:
        chosen = astray(pair) & (pair.ratios[REPORTED] * verdict.size > 0)
        return {c for c, moved in zip(pair.concurrencies, chosen, strict=True) if moved}
    inside: set[float] = set(pair.concurrencies_of(verdict.part))
    if verdict.attribution != MEASUREMENT:
        return inside
    return {c for c, fit in zip(pair.concurrencies, pair.fit, strict=True) if fit and c in inside}


def _changes(old: dict[float, Cell], new: dict[float, Cell], inside: set[float], metric: str) -> dict[float, float]:
    """Return the finite log-ratios of a metric by concurrency."""
    changes = {c: new[c].values[metric] - old[c].values[metric] for c in sorted(old.keys() & new.keys() & inside)}
    return {c: change for c, change in changes.items() if math.isfinite(change)}


def _present(shares: Iterable[float | None]) -> list[float]:
    return [share for share in shares if share is not None]
