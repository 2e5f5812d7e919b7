"""From numbers to a decision: effect gate, two witnesses, noise floor, false-discovery control.

An engine-grade change needs two witnesses that move together: throughput as reported (on fit cells) and steady-state
throughput from the medians. Its p is the larger of the two (intersection-union test), Student t with 3 degrees of freedom,
because the tails of unchanged curves are far too heavy for a normal. Where a half of the curve or the worst of several unfit
cells was picked, p is multiplied by the number that it was picked from (Bonferroni). Benjamini-Hochberg runs over all comparisons
of one night. A reported change that steady state does not show is a measurement notice and nothing else.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pipelines.detect.changes import MEASUREMENT, ChangeSet
from pipelines.detect.comparison import CURVE, HALF_GATE, UNFIT_CELLS, Comparison, Movement, moves, parts
from pipelines.detect.noise import NoiseModel, Scale
from pipelines.detect.observations import REPORTED, STEADY, TPOT

DEGREES_OF_FREEDOM = 3
FALSE_DISCOVERY_RATE = 0.10
INTERVAL = 0.90
WITNESS_SHARE = 0.5
"""The second witness must show at least this share of the change."""


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

    @property
    def size(self) -> float:
        return self.moved.median

    @property
    def flagged(self) -> bool:
        return self.gated and self.q_value <= FALSE_DISCOVERY_RATE

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the size, log-ratio."""
        margin = float(stdtrit(DEGREES_OF_FREEDOM, 0.5 + INTERVAL / 2)) * self.noise.scale * math.sqrt(2)
        return self.size - margin, self.size + margin


def judge(comparison: Comparison, changes: ChangeSet, noise: NoiseModel) -> Verdict | None:
    """Return the verdict on one comparison before false-discovery control, or None where fewer than two cells are shared."""
    for part, gate in parts(comparison):
        verdict = _two_witnesses(comparison, changes, noise, part, gate)
        if verdict is not None:
            return verdict
    return _measurement(comparison, changes, noise) or _unmoved(comparison, changes, noise)


def _witnesses(comparison: Comparison, part: str) -> tuple[str, str]:
    """Reported and steady-state throughput; TPOT takes the place of the one that too few cells have."""
    if comparison.movement(REPORTED, part) is None:
        return STEADY, TPOT
    return REPORTED, STEADY if comparison.movement(STEADY, part) is not None else TPOT


def _two_witnesses(comparison: Comparison, changes: ChangeSet, noise: NoiseModel, part: str, gate: float) -> Verdict | None:
    first, second = _witnesses(comparison, part)
    leading, other = comparison.movement(first, part), comparison.movement(second, part)
    if leading is None or other is None or not (moves(leading, gate) and moves(other, WITNESS_SHARE * gate)):
        return None
    if other.median / leading.median < WITNESS_SHARE:
        return None
    p_value, scale = _p(comparison, noise, first, leading)
    p_value = _corrected(max(p_value, _p(comparison, noise, second, other)[0]), _tried(comparison, part))
    return Verdict(comparison, changes, first, part, leading, scale, p_value, True, changes.attribution)


def _measurement(comparison: Comparison, changes: ChangeSet, noise: NoiseModel) -> Verdict | None:
    """Reported throughput moved and steady state did not: over fit cells as a curve does, or in cells that are unfit."""
    unfit = _unfit_cells(comparison)
    if unfit is not None:
        scale = noise.scale(*_stack(comparison), REPORTED, 1)
        p_value = _corrected(_tail(unfit.median, scale), _tried(comparison, UNFIT_CELLS))
        return Verdict(comparison, changes, REPORTED, UNFIT_CELLS, unfit, scale, p_value, True, MEASUREMENT)
    for part, gate in parts(comparison):
        leading = comparison.movement(REPORTED, part)
        if leading is not None and moves(leading, gate):
            p_value, scale = _p(comparison, noise, REPORTED, leading)
            p_value = _corrected(p_value, _tried(comparison, part))
            return Verdict(comparison, changes, REPORTED, part, leading, scale, p_value, True, MEASUREMENT)
    return None


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
    first, second = _witnesses(comparison, CURVE)
    leading, other = comparison.movement(first), comparison.movement(second)
    if leading is None:
        return None
    p_value, scale = _p(comparison, noise, first, leading)
    p_other = _p(comparison, noise, second, other)[0] if other is not None else 1.0
    return Verdict(comparison, changes, first, CURVE, leading, scale, max(p_value, p_other), False, changes.attribution)


def _stack(comparison: Comparison) -> tuple[str, str]:
    return comparison.new.context["hardware"], comparison.new.context["engine"]


def _p(comparison: Comparison, noise: NoiseModel, metric: str, moved: Movement) -> tuple[float, Scale]:
    scale = noise.scale(*_stack(comparison), metric, moved.cells)
    return _tail(moved.median, scale), scale


def _tail(size: float, scale: Scale) -> float:
    """Two-sided tail of Student t: both observations carry the scale, so the difference carries √2 of it."""
    return float(2 * stdtr(DEGREES_OF_FREEDOM, -abs(size) / (scale.scale * math.sqrt(2))))


def control(verdicts: list[Verdict]) -> list[Verdict]:
    """Return the verdicts with q values: Benjamini-Hochberg within each night, measurement notices apart from the rest.

    Notices are picked from all comparisons of the night because they moved, so all of them count as tried.
    """
    compared = Counter(night(verdict.comparison) for verdict in verdicts)
    families: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for index, verdict in enumerate(verdicts):
        families[night(verdict.comparison), verdict.attribution == MEASUREMENT].append(index)
    controlled = list(verdicts)
    for (day, notices), members in families.items():
        count = compared[day] if notices else len(members)
        q_values = benjamini_hochberg([verdicts[index].p_value for index in members], count)
        for index, q_value in zip(members, q_values, strict=True):
            controlled[index] = replace(verdicts[index], q_value=q_value)
    return controlled


def night(comparison: Comparison) -> str:
    """Return the UTC day of a comparison's later observation."""
    return comparison.new.measured_at.strftime("%Y-%m-%d")


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
