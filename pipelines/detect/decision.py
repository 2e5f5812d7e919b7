"""From numbers to a decision: effect gate, two witnesses, noise floor, false-discovery control.

An engine-grade change needs two witnesses that move together: throughput as reported (on fit cells) and steady-state
throughput from the medians; where one of them has too few cells, TPOT takes its place. Its p is the larger of the two
(intersection-union test), Student t with 4 degrees of freedom, because the tails of unchanged curves are far too heavy for a
normal. Where a half of the curve or the worst of several unfit cells was picked, p is multiplied by the number that it was picked
from (Bonferroni). Effect gates follow the noise floor: four times its scale, and not less than what is worth a look.
Benjamini-Hochberg runs within one night, apart for comparisons in which something changed, in which nothing did, and for
measurement notices; what does not pass its gate counts as tried, with a p of 1. A reported change that steady state does not show
is a measurement notice and nothing else.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pipelines.detect.baseline import MIN_CELLS
from pipelines.detect.changes import MEASUREMENT, SEARCH_SPACE, ChangeSet
from pipelines.detect.comparison import (
    CURVE,
    HALF_GATE,
    SHORT_CURVE,
    UNFIT_CELLS,
    Comparison,
    Movement,
    moves,
    night,
    parts,
)
from pipelines.detect.noise import NoiseModel, Scale
from pipelines.detect.observations import E2EL, REPORTED, STEADY, TPOT

DEGREES_OF_FREEDOM = 4
ALPHA = 0.05
"""Greatest p of a single comparison, however few there are in its night."""
FALSE_DISCOVERY_RATE = 0.10
INTERVAL = 0.90
WITNESS_SHARE = 0.5
"""The second witness must show at least this share of the change."""
NEARLY = 2.0
"""Spread of the second witness, in medians, up to which it still counts: the first has to be coherent by itself (1)."""
SCALES_TO_GATE = 4.0
"""A change below four noise scales is no news; a comparison carries √2 of the scale."""
PAIR_GATE, CURVE_GATE, QUIET_GATE = math.log(1.035), math.log(1.03), math.log(1.012)
"""Least change worth a look: of two cells, of a curve, and of one with four cells or more on a stack whose noise is known."""


@dataclass(frozen=True)
class Verdict:
    """What is said of one comparison; `size` is a log-ratio, positive = better, of `metric` over `part`."""

    comparison: Comparison
    changes: ChangeSet
    metric: str
    part: str
    moved: Movement
    noise: Scale
    p_value: float
    gated: bool
    attribution: str
    q_value: float = 1.0
    kind: str = ""
    """What the second pass calls it (`days`); empty: it has not been asked, or cannot tell yet."""
    by_days: bool = False
    """The second pass found it: p is of two levels, not of one night, and has no q."""

    @property
    def size(self) -> float:
        return self.moved.median

    @property
    def flagged(self) -> bool:
        return self.gated and self.p_value <= ALPHA and (self.by_days or self.q_value <= FALSE_DISCOVERY_RATE)

    @property
    def explained(self) -> float | None:
        """Share of a reported change that vanishes in the steady state, 0 to 1: of a measurement notice; of others None."""
        if self.attribution != MEASUREMENT:
            return None
        reported, steady = _headline(self.comparison, self.part)
        return float(np.clip(1 - np.sum(steady * np.sign(reported)) / np.sum(np.abs(reported)), 0, 1)) if len(reported) else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the size, log-ratio."""
        half = margin(self.noise.of_change)
        return self.size - half, self.size + half


def judge(comparison: Comparison, changes: ChangeSet, noise: NoiseModel) -> Verdict | None:
    """Return the verdict on one comparison before false-discovery control, or None where fewer than two cells are shared."""
    for part in parts(comparison):
        for witnesses in _witnesses(comparison, part):
            verdict = _two_witnesses(comparison, changes, noise, part, witnesses)
            if verdict is not None:
                return verdict
    return _measurement(comparison, changes, noise) or _unmoved(comparison, changes, noise)


def _witnesses(comparison: Comparison, part: str) -> list[tuple[str, str]]:
    """Reported and steady-state throughput; TPOT takes the place of the one that too few cells have.

    Where the load is a rate there is no steady state, and throughput is what was asked for: the two latencies are asked as well.
    """
    if comparison.movement(REPORTED, part) is None:
        return [(STEADY, TPOT)] if comparison.movement(STEADY, part) is not None else [(TPOT, E2EL)]
    if comparison.movement(STEADY, part) is not None:
        return [(REPORTED, STEADY)]
    return [(REPORTED, TPOT), (TPOT, E2EL)]


def _headline(comparison: Comparison, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return reported and steady-state log-ratios of the cells that a notice is about, where both are known."""
    reported, steady = comparison.ratios[REPORTED], comparison.ratios[STEADY]
    chosen = astray(comparison) if part == UNFIT_CELLS else comparison.inside(part) & comparison.fit
    chosen = chosen & np.isfinite(reported) & np.isfinite(steady)
    return reported[chosen], steady[chosen]


def _two_witnesses(
    comparison: Comparison, changes: ChangeSet, noise: NoiseModel, part: str, witnesses: tuple[str, str]
) -> Verdict | None:
    first, second = witnesses
    leading, other = comparison.movement(first, part), comparison.movement(second, part)
    if leading is None or other is None or other.median * leading.median <= 0:
        return None
    scale, scale_of_other = _scale(comparison, noise, first, leading), _scale(comparison, noise, second, other)
    least = gate(part, leading, scale)
    if not (moves(leading, least, part) and _follows(other, leading, WITNESS_SHARE * least, part)):
        return None
    tried = _tried(comparison, part) * len(_witnesses(comparison, part))
    p_value = _corrected(max(tail(leading.median, scale.of_change), tail(other.median, scale_of_other.of_change)), tried)
    return Verdict(comparison, changes, first, part, leading, scale, p_value, True, changes.attribution)


def _follows(other: Movement, leading: Movement, least: float, part: str) -> bool:
    """Say whether a second witness moves along: half as far as the first, coherently or, on three cells or more, nearly so."""
    if not leading.median or abs(other.median) < least or other.median / leading.median < WITNESS_SHARE:
        return False
    nearly = part == CURVE and other.cells > MIN_CELLS and other.spread <= NEARLY * abs(other.median)
    return nearly or moves(other, least, part)


def gate(part: str, moved: Movement, scale: Scale) -> float:
    """Return the least log-ratio at which a part of a curve counts as moved."""
    return max(_least(part, moved.cells, scale.known), SCALES_TO_GATE * scale.scale)


def _least(part: str, cells: int, known: bool) -> float:
    if part != CURVE:
        return HALF_GATE
    if cells < SHORT_CURVE:
        return CURVE_GATE if cells > MIN_CELLS else PAIR_GATE
    return QUIET_GATE if known else CURVE_GATE


def _measurement(comparison: Comparison, changes: ChangeSet, noise: NoiseModel) -> Verdict | None:
    """Reported throughput moved and its second witness not half as far: over fit cells as a curve does, or in unfit cells."""
    unfit = _unfit_cells(comparison)
    if unfit is not None:
        scale = noise.scale(comparison.new.context, REPORTED, 1, night(comparison))
        p_value = _corrected(tail(unfit.median, scale.of_change), _tried(comparison, UNFIT_CELLS))
        return Verdict(comparison, changes, REPORTED, UNFIT_CELLS, unfit, scale, p_value, True, MEASUREMENT)
    for part in parts(comparison):
        leading = comparison.movement(REPORTED, part)
        if leading is None or _is_borne_out(comparison, leading, part):
            continue
        scale = _scale(comparison, noise, REPORTED, leading)
        if moves(leading, max(CURVE_GATE, gate(part, leading, scale)), part):
            p_value = _corrected(tail(leading.median, scale.of_change), _tried(comparison, part))
            return Verdict(comparison, changes, REPORTED, part, leading, scale, p_value, True, MEASUREMENT)
    return None


def _is_borne_out(comparison: Comparison, leading: Movement, part: str) -> bool:
    """Say whether the second witness moved along, however little that is: then it is not the measurement that is odd."""
    other = comparison.movement(_witnesses(comparison, part)[0][1], part)
    return other is not None and _follows(other, leading, 0.0, part)


def _unfit_cells(comparison: Comparison) -> Movement | None:
    """Return the movement of the unfit cells that left the steady state behind, where there are any."""
    values = comparison.ratios[REPORTED][astray(comparison)]
    if not len(values):
        return None
    worst = float(values[np.argmax(np.abs(values))])
    return Movement(worst, True, len(values), int(np.sum(np.sign(values) == np.sign(worst))))


def astray(comparison: Comparison) -> NDArray[np.bool_]:
    """Return which cells are unfit and moved by at least the gate of a half without their steady state (less than half of it)."""
    reported, steady = comparison.ratios[REPORTED], comparison.ratios[STEADY]
    follows = steady * np.sign(reported) >= WITNESS_SHARE * np.abs(reported)
    return ~comparison.fit & (np.abs(reported) >= HALF_GATE) & ~follows


def _tried(comparison: Comparison, part: str) -> int:
    """Return how many candidates a part was picked from: the whole curve is asked first, a half is one of three parts."""
    if part == UNFIT_CELLS:
        return int(np.sum(~comparison.fit & np.isfinite(comparison.ratios[REPORTED])))
    return 1 if part == CURVE else len(parts(comparison))


def _corrected(p_value: float, tried: int) -> float:
    return min(1.0, p_value * tried)


def _unmoved(comparison: Comparison, changes: ChangeSet, noise: NoiseModel) -> Verdict | None:
    first, second = _witnesses(comparison, CURVE)[0]
    leading, other = comparison.movement(first), comparison.movement(second)
    if leading is None:
        return None
    scale = _scale(comparison, noise, first, leading)
    p_other = tail(other.median, _scale(comparison, noise, second, other).of_change) if other is not None else 1.0
    p_value = max(tail(leading.median, scale.of_change), p_other)
    return Verdict(comparison, changes, first, CURVE, leading, scale, p_value, False, changes.attribution)


def _scale(comparison: Comparison, noise: NoiseModel, metric: str, moved: Movement) -> Scale:
    return noise.scale(comparison.new.context, metric, moved.cells, night(comparison))


def tail(size: float, spread: float, degrees: int = DEGREES_OF_FREEDOM) -> float:
    """Return the two-sided p of a change, Student t; *spread* is the scale of the change itself."""
    return float(2 * stdtr(degrees, -abs(size) / spread))


def margin(spread: float, degrees: int = DEGREES_OF_FREEDOM) -> float:
    """Return half the width of the 90 % interval of a change whose scale is *spread*."""
    return float(stdtrit(degrees, 0.5 + INTERVAL / 2)) * spread


def control(verdicts: list[Verdict]) -> list[Verdict]:
    """Return the verdicts with q values: Benjamini-Hochberg within each night and family of questions.

    Families: did what changed (a build, a recipe, …) move a curve; did a curve move by itself; is a measurement odd. Notices are
    picked from all comparisons of the night because they moved, so all of them count as tried.
    """
    compared = Counter(night(verdict.comparison) for verdict in verdicts)
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, verdict in enumerate(verdicts):
        families[night(verdict.comparison), _question(verdict)].append(index)
    controlled = list(verdicts)
    for (day, question), members in families.items():
        count = compared[day] if question == MEASUREMENT else len(members)
        q_values = benjamini_hochberg([_candidate(verdicts[index]) for index in members], count)
        for index, q_value in zip(members, q_values, strict=True):
            controlled[index] = replace(verdicts[index], q_value=q_value)
    return controlled


def _candidate(verdict: Verdict) -> float:
    """Return p of what passed its gate, and 1 of what did not: changes too small to tell lend no weight to those beside them."""
    return verdict.p_value if verdict.gated else 1.0


def _question(verdict: Verdict) -> str:
    if verdict.attribution == MEASUREMENT:
        return MEASUREMENT
    return "something changed" if set(verdict.changes.names) - {SEARCH_SPACE} else "nothing changed"


def benjamini_hochberg(p_values: list[float], count: int) -> list[float]:
    """Return the adjusted p values (Benjamini and Hochberg 1995), in the order given.

    *count* is how many tests there were; those whose p is not given (at most count - len(p_values)) had one of 1.
    """
    given = len(p_values)
    order = sorted(range(given), key=lambda index: p_values[index], reverse=True)
    adjusted, least = [1.0] * given, 1.0
    for position, index in enumerate(order):
        least = min(least, p_values[index] * count / (given - position))
        adjusted[index] = least
    return adjusted
