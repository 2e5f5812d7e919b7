"""Rules that others use on a series of days, for comparison: each returns the observations at which it says something changed.

Fixed thresholds need no scale; `optimal` is ruptures' exact partition under squared loss, the oracle without robustness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from pipelines.detect.partition import Floats

FIVE, TWENTY = math.log(1.05), math.log(1.2)
WINDOW = 5
BIC = 3.0

Rule = Callable[[Floats, float], tuple[int, ...]]


def against_previous(levels: Floats, _scale: float) -> tuple[int, ...]:
    """Five percent against the observation before."""
    return tuple((np.flatnonzero(np.abs(np.diff(levels)) >= FIVE) + 1).tolist())


def against_all_earlier(levels: Floats, _scale: float) -> tuple[int, ...]:
    """Twenty percent against the median of all earlier observations, two in a row (as PyTorch's dashboard does)."""
    away = [float(levels[now] - np.median(levels[:now])) for now in range(1, len(levels))]
    return _second_in_a_row(away, TWENTY)


def against_last_five(levels: Floats, _scale: float) -> tuple[int, ...]:
    """Five percent against the median of the last five observations, two in a row."""
    away = [float(levels[now] - np.median(levels[max(0, now - WINDOW) : now])) for now in range(1, len(levels))]
    return _second_in_a_row(away, FIVE)


def _second_in_a_row(away: list[float], gate: float) -> tuple[int, ...]:
    """Return the starts of runs of two and more that are beyond the gate on one side; *away* begins with observation 1."""
    sides = [0, *((value > gate) - (value < -gate) for value in away), 0]
    return tuple(
        now for now in range(1, len(sides) - 1) if sides[now] and sides[now] == sides[now + 1] and sides[now] != sides[now - 1]
    )


def optimal(levels: Floats, scale: float) -> tuple[int, ...]:
    """Squared loss, penalty 3 ln n squared scales, segments of two and more: exact, by ruptures (a development dependency)."""
    from ruptures import KernelCPD  # type: ignore[import-untyped]

    if len(levels) < 4:
        return ()
    found = KernelCPD(kernel="linear", min_size=2, jump=1).fit(levels / scale).predict(pen=BIC * math.log(len(levels)))
    return tuple(int(end) for end in found[:-1])


@dataclass(frozen=True)
class Rival:
    """A rule, and the days after the change on which it speaks; None where it may say another thing every day."""

    find: Rule
    delay: int | None


RIVALS = {
    "5 % against the previous": Rival(against_previous, 0),
    "20 % against the median of all earlier, twice": Rival(against_all_earlier, 1),
    "5 % against the median of the last five, twice": Rival(against_last_five, 1),
    **({"squared loss, 3 ln n (ruptures)": Rival(optimal, None)} if find_spec("ruptures") else {}),
}
