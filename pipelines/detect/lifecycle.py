"""What became of a shift: suspected, confirmed, recovered; how its siblings count.

Belongs here: what later runs and sibling curves say of a flagged verdict. Does not: which runs of one image contradict it
(`contradiction`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median_low

from pipelines.detect.changes import ENVIRONMENT, MEASUREMENT, UNKNOWN
from pipelines.detect.contradiction import KEPT, contradiction, shares_after
from pipelines.detect.decision import Verdict
from pipelines.detect.observations import Observation
from warehouse.canonical import content_id

SUSPECTED, CONFIRMED, RECOVERED = "suspected", "confirmed", "recovered"
SIBLINGS = 3
"""Curves of one change that must move alike to confirm it at once."""
AS_FAR = 0.8
"""Share of a shift from which runs of one image that moved the curve could have given it."""


@dataclass(frozen=True)
class Shift:
    """A flagged verdict with its status, the reason in words, and the siblings that moved alike."""

    verdict: Verdict
    attribution: str
    status: str
    reason: str
    siblings: int = 1
    siblings_total: int = 1

    @property
    def direction(self) -> str:
        return "speedup" if self.verdict.size > 0 else "regression"

    @property
    def event_key(self) -> str:
        """What shifts of one cause share."""
        return content_id("shift-event", *_family(self))

    @property
    def blames(self) -> bool:
        """Something that was changed is named as the cause."""
        return self.attribution not in (ENVIRONMENT, MEASUREMENT)


def follow(verdicts: list[Verdict], curves: dict[str, list[Observation]]) -> list[Shift]:
    """Return the flagged verdicts as shifts, in the order given."""
    found = [_alone(verdict, curves[verdict.comparison.new.curve_id]) for verdict in verdicts if verdict.flagged]
    return _doubt_restless(_count_siblings(_doubt_siblings(found), verdicts), verdicts)


def _alone(verdict: Verdict, history: list[Observation]) -> Shift:
    """Return the shift as far as its curve's own history tells."""
    shift = Shift(verdict, verdict.attribution, SUSPECTED, "seen once")
    after = shares_after(verdict, history)
    stands = bool(after) and median_low(after) >= KEPT
    if shift.blames and (reason := contradiction(verdict, history, stands)):
        return replace(shift, attribution=ENVIRONMENT, reason=reason)
    if stands:
        return replace(shift, status=CONFIRMED, reason="the next runs of the same setup stand at the new level")
    if not after:
        return shift
    return replace(
        shift,
        attribution=ENVIRONMENT if shift.blames else shift.attribution,
        status=RECOVERED,
        reason="later runs of the same setup are back at the old level",
    )


def _doubt_siblings(shifts: list[Shift]) -> list[Shift]:
    """Blame nothing for a shift seen once where the siblings that ran again mostly went back: the run was odd, not the build."""
    back: dict[tuple[str, ...], int] = defaultdict(int)
    for shift in shifts:
        if shift.verdict.attribution != MEASUREMENT and shift.status != SUSPECTED:
            back[_moved_alike(shift)] += 1 if shift.status == RECOVERED else -1
    went_back = {change for change, balance in back.items() if balance >= 0}
    return [
        replace(shift, attribution=ENVIRONMENT, reason="sibling curves of the same run are back at the old level")
        if shift.blames and shift.status == SUSPECTED and _moved_alike(shift) in went_back
        else shift
        for shift in shifts
    ]


def _count_siblings(shifts: list[Shift], verdicts: list[Verdict]) -> list[Shift]:
    """Count the curves of each shift's change; enough that moved alike confirm one that was seen once."""
    compared: dict[tuple[str, ...], set[str]] = defaultdict(set)
    alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for verdict in verdicts:
        compared[_change(verdict)].add(verdict.comparison.new.curve_id)
    for shift in shifts:
        alike[_family(shift)].add(shift.verdict.comparison.new.curve_id)
    return [
        _confirmed(replace(shift, siblings=len(alike[_family(shift)]), siblings_total=len(compared[_change(shift.verdict)])))
        for shift in shifts
    ]


def _confirmed(shift: Shift) -> Shift:
    if not (shift.blames and shift.status == SUSPECTED and shift.siblings >= SIBLINGS):
        return shift
    reason = f"{shift.siblings} of {shift.siblings_total} curves of the same change moved alike in this run"
    return replace(shift, status=CONFIRMED, reason=reason)


def _doubt_restless(shifts: list[Shift], verdicts: list[Verdict]) -> list[Shift]:
    """Name no cause for a shift that is still suspected on a curve which runs of one image have moved as far before."""
    restless: dict[str, float] = defaultdict(float)
    for verdict in verdicts:
        if verdict.gated and verdict.attribution == ENVIRONMENT and ENVIRONMENT not in verdict.changes.names:
            curve = verdict.comparison.new.curve_id
            restless[curve] = max(restless[curve], abs(verdict.size))
    return [
        replace(shift, attribution=UNKNOWN, reason="seen once, and runs of one image have moved this curve as far")
        if shift.blames
        and shift.status == SUSPECTED
        and restless[shift.verdict.comparison.new.curve_id] >= AS_FAR * abs(shift.verdict.size)
        else shift
        for shift in shifts
    ]


def _change(verdict: Verdict) -> tuple[str, ...]:
    """What siblings share: stack, both builds, the later run."""
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    return (
        new.context["engine"],
        new.context["hardware"],
        old.build_id,
        new.build_id,
        new.run_source,
        new.run_id,
        str(new.run_attempt),
    )


def _moved_alike(shift: Shift) -> tuple[str, ...]:
    return (*_change(shift.verdict), "up" if shift.verdict.size > 0 else "down")


def _family(shift: Shift) -> tuple[str, ...]:
    return (*_moved_alike(shift), shift.attribution)
