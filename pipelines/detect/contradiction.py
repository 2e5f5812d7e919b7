"""Do runs of one image contradict a shift?

The promise of the project is kept here: nothing said of an engine may be producible by running the same image again. A shift
says that the earlier build stood at the old level and the later build stands at the new one; every other run of either build
can bear witness. What a witness tells is a share: how much of the shift lies between the two builds if it stands for its own,
1 = all, 0 = nothing. Both sides of that fraction are one statistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from statistics import median, median_low

from pipelines.detect.baseline import MIN_CELLS
from pipelines.detect.changes import MEASUREMENT
from pipelines.detect.comparison import UNFIT_CELLS
from pipelines.detect.decision import WITNESS_SHARE, Verdict, astray
from pipelines.detect.observations import E2EL, REPORTED, STEADY, TPOT, Cell, Observation

KEPT = 0.5
"""Share of a shift that must be left for it to stand."""
GONE = 0.25
"""Share below which a single run is enough to doubt a shift that was seen once."""
REPEATS = 5
"""Later runs of the later build that are asked whether it stands, those nearest in time."""
APART = 0.05
"""Greatest p of Fisher's exact test at which two builds, of which runs stand on the wrong side, still count as apart."""


def contradiction(verdict: Verdict, history: list[Observation], stands: bool) -> str | None:
    """Return in words how other runs of the two builds contradict a shift, or None. All of them are heard.

    *stands*: later runs of the later build confirm it; then a few odd runs of the earlier build do not matter, as long as the two
    builds stand apart. A host with two levels gives any order of fast and slow runs, whatever the image.
    """
    shares = _shares(verdict, history)
    if _mostly_gone(shares.old_before) or (not stands and any(share < GONE for share in shares.old_before)):
        return "other runs of the earlier build already stood at the new level"
    if _mostly_gone(shares.old_after):
        return "later runs of the earlier build stand at the new level as well"
    if _mostly_gone(shares.new_before):
        return "earlier runs of the later build already stood at the old level"
    doubtful = shares.odd if stands else not shares.new_after and shares.far
    if doubtful and shares.separation > APART:
        return f"the builds are not apart: runs of either that stand on the other's side: {shares.odd}"
    return None


def apart(verdict: Verdict, history: list[Observation]) -> bool:
    """Say whether the runs on either side are too many for two levels of one host to be mere chance (Fisher's exact test)."""
    return _shares(verdict, history).separation <= APART


@dataclass(frozen=True)
class _Shares:
    """What the other runs of the two builds leave of a shift; `standing`: 1 where the standing run itself is not among them."""

    standing: int
    old_before: list[float]
    old_after: list[float]
    new_before: list[float]
    new_after: list[float]

    @property
    def odd(self) -> int:
        """How many runs stand on the side of the other build."""
        return sum(share < KEPT for share in (*self._old, *self._new))

    @property
    def far(self) -> int:
        """How many of these leave next to nothing of the shift."""
        return sum(share < GONE for share in (*self._old, *self._new))

    @property
    def separation(self) -> float:
        """One-sided p of Fisher's exact test of build against level; the two sides of the shift itself count as well."""
        odd_old, odd_new = (sum(share < KEPT for share in side) for side in (self._old, self._new))
        right_old, right_new = self.standing + len(self._old) - odd_old, 1 + len(self._new) - odd_new
        return fisher_exact(right_old, odd_old, odd_new, right_new)

    @property
    def _old(self) -> list[float]:
        return [*self.old_before, *self.old_after]

    @property
    def _new(self) -> list[float]:
        return [*self.new_before, *self.new_after]


def fisher_exact(a: int, b: int, c: int, d: int) -> float:
    """Return the one-sided p of Fisher's exact test of the table [[a, b], [c, d]]: that the first cell is as large by chance.

    The hypergeometric tail; scipy.stats has it as well, but takes a second to import.
    """
    rows, first = (a + b, c + d), a + c
    ways = sum(math.comb(rows[0], k) * math.comb(rows[1], first - k) for k in range(a, min(rows[0], first) + 1))
    return ways / math.comb(sum(rows), first)


def _shares(verdict: Verdict, history: list[Observation]) -> _Shares:
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    alone = _stands_alone(verdict)
    of_old = [o for o in history if not (alone and o is old) and o.may_repeat(old) and not o.may_repeat(new)]
    of_new = [o for o in history if o is not new and o.may_repeat(new) and not o.may_repeat(old)]
    return _Shares(
        int(alone),
        _shares_of_earlier([o for o in of_old if o.measured_at < new.measured_at], verdict),
        _shares_of_earlier([o for o in of_old if o.measured_at >= new.measured_at], verdict),
        _shares_of_later([o for o in of_new if o.measured_at < new.measured_at], verdict),
        _shares_of_later([o for o in of_new if o.measured_at >= new.measured_at], verdict),
    )


def _stands_alone(verdict: Verdict) -> bool:
    """Say whether all earlier cells are the standing run's own. Where older runs lent some, its own may contradict theirs."""
    baseline = verdict.comparison.baseline
    return all(baseline.observation.cells.get(c) is cell for c, cell in baseline.cells.items())


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

    A run of the earlier build (*pooled*) is heard with a single cell, for it can only acquit.
    Steady-state throughput, else TPOT, as far as it saw the shift; a measurement notice is about reported throughput.
    """
    pair, inside = verdict.comparison, _cells_that_moved(verdict)
    for metric in (REPORTED,) if verdict.attribution == MEASUREMENT else (STEADY, TPOT, E2EL):
        between = _changes(old, new, inside, metric)
        whole = _changes(pair.baseline.cells, pair.new.cells, inside, metric)
        seen = between.keys() & whole.keys()
        if len(seen) >= (1 if pooled else min(MIN_CELLS, len(inside))) and (
            metric == REPORTED or _shows(median(whole.values()), verdict.size)
        ):
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
