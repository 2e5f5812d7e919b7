"""What other evaluations of one setup say of a changed score: confirmed, recovered, contradicted, seen once.

As for curves (`contradiction`), a change says that the earlier build scores at the old level and the later one at the new. What
a witness tells is the share of the change that is left if it stands for its build: 1 = all, 0 = nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median_low

from pipelines.detect.changes import ENVIRONMENT
from pipelines.detect.contradiction import GONE, KEPT, REPEATS
from pipelines.detect.evaluations import Evaluation
from pipelines.detect.states import CONFIRMED, RECOVERED, SUSPECTED


@dataclass(frozen=True)
class Fate:
    """What became of a flagged change, what it is put down to, and why."""

    status: str
    attribution: str
    reason: str


def heard(
    old: Evaluation, new: Evaluation, attribution: str, history: list[Evaluation], exceeds: Callable[[float], bool]
) -> Fate:
    """Return the fate of a flagged change from *old* to *new*; *history* is all of its setup, in order of time.

    *exceeds* says whether a later score differs from the earlier one beyond chance by itself: among many nights the earlier score
    of a flagged change is a lucky one, and half of all repeats then stand nearer to the new level. Where nothing differs there is
    no build to defend, so contradiction is not asked.
    """
    later = [o for o in history if _after(o, new) and o.repeats(new) and not o.is_told_by(new)][:REPEATS]
    kept = median_low(_kept_by_later(later, old, new)) if later else None
    stands = kept is not None and kept >= KEPT and exceeds(old.score + kept * (new.score - old.score))
    if attribution != ENVIRONMENT and (reason := _contradiction(old, new, history, stands)):
        return Fate(SUSPECTED, ENVIRONMENT, reason)
    if stands:
        return Fate(CONFIRMED, attribution, "the next evaluations of the same setup stand at the new level")
    if kept is not None and kept < KEPT:
        return Fate(RECOVERED, ENVIRONMENT, "later evaluations of the same setup are back at the old level")
    if later:
        return Fate(SUSPECTED, attribution, "the next evaluations stand nearer to the new level, but not beyond chance")
    return Fate(SUSPECTED, attribution, "seen once")


def _contradiction(old: Evaluation, new: Evaluation, history: list[Evaluation], stands: bool) -> str | None:
    """Return in words how other evaluations of the two builds contradict the change, or None.

    *stands*: later ones of the later build confirm it; then a single odd one of the earlier build does not matter.
    """
    of_old = [o for o in history if o.may_repeat(old) and not o.may_repeat(new)]
    of_new = [o for o in history if o.may_repeat(new) and not o.may_repeat(old) and not o.is_told_by(new)]
    earlier = _kept_by_earlier([o for o in of_old if not _after(o, new)][-REPEATS:], old, new)
    if _mostly_gone(earlier) or (not stands and any(kept < GONE for kept in earlier)):
        return "other evaluations of the earlier build already stood at the new level"
    if _mostly_gone(_kept_by_earlier([o for o in of_old if _after(o, new)][:REPEATS], old, new)):
        return "later evaluations of the earlier build stand at the new level as well"
    if _mostly_gone(_kept_by_later([o for o in of_new if o.seen.measured_at < new.seen.measured_at][-REPEATS:], old, new)):
        return "earlier evaluations of the later build already stood at the old level"
    return None


def _after(one: Evaluation, new: Evaluation) -> bool:
    return one.seen.measured_at > new.seen.measured_at


def _mostly_gone(shares: list[float]) -> bool:
    """At least half of the witnesses leave less than KEPT of the change."""
    return bool(shares) and median_low(shares) < KEPT


def _kept_by_earlier(witnesses: list[Evaluation], old: Evaluation, new: Evaluation) -> list[float]:
    return [(new.score - one.score) / (new.score - old.score) for one in witnesses]


def _kept_by_later(witnesses: list[Evaluation], old: Evaluation, new: Evaluation) -> list[float]:
    return [(one.score - old.score) / (new.score - old.score) for one in witnesses]
