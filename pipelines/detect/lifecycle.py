"""What became of a shift: suspected, confirmed, recovered; how its siblings count.

Belongs here: what later runs and sibling curves say of a flagged verdict. Does not: which runs of one image contradict it
(`contradiction`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median_low

from pipelines.detect.changes import ENVIRONMENT, MEASUREMENT, UNKNOWN
from pipelines.detect.comparison import night
from pipelines.detect.contradiction import KEPT, apart, contradiction, shares_after
from pipelines.detect.decision import Verdict
from pipelines.detect.observations import Observation
from pipelines.detect.states import CONFIRMED, RECOVERED, SUSPECTED
from warehouse.canonical import content_id

SIBLINGS = 3
"""Curves of one change that must move alike in one night to confirm it at once, on more than one kind of host."""
AS_FAR = 0.8
"""Share of a shift from which runs of one image that moved the curve, earlier or later, could have given it."""


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
        """More is said than that a run was odd: a cause is named, or several or an unrecorded build are left open."""
        return self.attribution not in (ENVIRONMENT, MEASUREMENT)


def follow(verdicts: list[Verdict], curves: dict[str, list[Observation]]) -> list[Shift]:
    """Return the flagged verdicts as shifts, in the order given."""
    found = [_alone(verdict, curves[verdict.comparison.new.curve_id]) for verdict in verdicts if verdict.flagged]
    return _doubt_restless(_count_siblings(_doubt_siblings(found), verdicts), verdicts, curves)


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
    """Blame nothing for a shift seen once where at least half of the siblings that ran again went back: the run was odd."""
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
    """Count the curves of each shift's change; enough that moved alike on other hosts confirm one that was seen once."""
    compared: dict[tuple[str, ...], set[str]] = defaultdict(set)
    alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for verdict in verdicts:
        compared[_change(verdict)].add(verdict.comparison.new.curve_id)
    for shift in shifts:
        alike[_family(shift)].add(shift.verdict.comparison.new.curve_id)
    counted = [
        replace(shift, siblings=len(alike[_family(shift)]), siblings_total=len(compared[_change(shift.verdict)]))
        for shift in shifts
    ]
    return _confirm_together(counted)


def _confirm_together(shifts: list[Shift]) -> list[Shift]:
    """Confirm what was seen once by the same change elsewhere in the night; siblings of one run may share a bad host."""
    together: dict[tuple[str, ...], list[Observation]] = defaultdict(list)
    for shift in shifts:
        together[_same_night(shift)].append(shift.verdict.comparison.new)
    return [
        _seen_once(shift, together[_same_night(shift)]) if shift.blames and shift.status == SUSPECTED else shift
        for shift in shifts
    ]


def _seen_once(shift: Shift, alike: list[Observation]) -> Shift:
    """Return a suspected shift with what the curves of *alike*, its own included, make of it."""
    curves = len({seen.curve_id for seen in alike})
    hosts = _kinds_of_host(alike)
    if curves >= SIBLINGS and hosts:
        return replace(shift, status=CONFIRMED, reason=f"{curves} curves on {hosts} moved alike")
    if shift.siblings > 1:
        reason = f"{shift.reason}; {shift.siblings} of {shift.siblings_total} curves of this run moved alike"
        return replace(shift, reason=reason)
    return shift


def _kinds_of_host(seen: list[Observation]) -> str:
    """Name the accelerators, else the runner labels (without a runner's number), or nothing where there is but one kind."""
    for names in ({o.context["hardware"] for o in seen}, {o.hardware_label for o in seen if o.hardware_label}):
        if len(names) > 1:
            return ", ".join(sorted(names))
    return ""


def _doubt_restless(shifts: list[Shift], verdicts: list[Verdict], curves: dict[str, list[Observation]]) -> list[Shift]:
    """Name no cause on a curve which runs of one image, at any time, have moved as far: for a shift that was seen once, and for
    a confirmed one of which too few runs are known to tell two builds from two levels of a host."""
    restless: dict[str, float] = defaultdict(float)
    for verdict in verdicts:
        # What is within the noise of its own night may be far beyond that of a later one.
        moved = verdict.gated or verdict.moved.coherent
        if moved and ((verdict.attribution == ENVIRONMENT and verdict.changes.is_repeat) or _may_be_one(verdict)):
            curve = verdict.comparison.new.curve_id
            restless[curve] = max(restless[curve], abs(verdict.size))
    return [_doubted(shift, restless[shift.verdict.comparison.new.curve_id], curves) for shift in shifts]


def _may_be_one(verdict: Verdict) -> bool:
    """Say whether both sides ran one tag that was seen to move between them: either run may have had the older copy."""
    new, old = verdict.comparison.new, verdict.comparison.baseline.observation
    return new.may_repeat(old) and not new.repeats(old)


def _doubted(shift: Shift, moved: float, curves: dict[str, list[Observation]]) -> Shift:
    if not shift.blames or moved < AS_FAR * abs(shift.verdict.size):
        return shift
    if shift.status == SUSPECTED:
        return replace(shift, attribution=UNKNOWN, reason="seen once, and runs of one image have moved this curve as far")
    if shift.status == CONFIRMED and not apart(shift.verdict, curves[shift.verdict.comparison.new.curve_id]):
        return replace(shift, attribution=UNKNOWN, reason=f"{shift.reason}, but runs of one image have moved this curve as far")
    return shift


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


def _same_night(shift: Shift) -> tuple[str, ...]:
    """What shifts of one change share on whatever hardware: engine, both builds, direction, attribution, UTC day."""
    new, old = shift.verdict.comparison.new, shift.verdict.comparison.baseline.observation
    day = night(shift.verdict.comparison)
    return (new.context["engine"], old.build_id, new.build_id, shift.direction, shift.attribution, day)
