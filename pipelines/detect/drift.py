"""Slow changes: a straight slope between two levels, where steps would have to be several or fit worse.

A drift of a percent a week shows no step that is large enough; its sum is what users lose (asv issue 932).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipelines.detect.partition import Floats, Integers

MIN_DRIFT = math.log(1.05)
"""Total change below which a slope is not called a drift."""
MIN_SPAN = 4
"""Observations that a drift takes at least."""
EXTRA = 0.5
"""Price of a slope's second corner, in changes: it has two corners and two levels, a step one corner and two levels."""
_TINY = 1e-6


@dataclass(frozen=True)
class Ramp:
    """A slope: `start` is the first observation off the old level, `end` the first at the new one, `size` the difference."""

    start: int
    end: int
    size: float


def ramp(values: Floats, starts: tuple[int, ...], price: float, cap: float) -> Ramp | None:
    """Return the best slope, if it is cheaper than steps at *starts*; values and *price* (of one step) in units of the scale.

    Values beyond the cap of their own step's level take no part, on either side.
    """
    stepped = np.concatenate([np.full(len(part), np.median(part)) for part in np.split(values, starts)])
    inside = np.abs(values - stepped) <= cap
    place, kept = np.flatnonzero(inside).astype(np.float64), values[inside]
    means = [part - part.mean() for part in np.split(kept, np.searchsorted(place, starts)) if len(part)]
    steps = sum(float(part @ part) for part in means) + price * len(starts)
    first, second = np.triu_indices(len(values), k=MIN_SPAN)
    if len(first) == 0 or len(kept) <= MIN_SPAN or steps <= price * (1 + EXTRA):
        return None
    costs, sizes = _fit(place, kept, first, second)
    best = int(costs.argmin())
    if costs[best] + price * (1 + EXTRA) >= steps:
        return None
    return Ramp(int(first[best]) + 1, int(second[best]), float(sizes[best]))


def _fit(place: Floats, values: Floats, first: Integers, second: Integers) -> tuple[Floats, Floats]:
    """Return squared error and size of the least-squares slope for each pair of corners.

    *first* is the last observation at the old level, *second* the first at the new one. A regression on the share r of the way:
    0 up to the first corner, 1 from the second on, straight between; its sums come from running sums.
    """
    x = values - values.mean()
    span = (second - first).astype(np.float64)
    low, high = np.searchsorted(place, first, side="right"), np.searchsorted(place, second)
    ones = np.ones(len(place))
    count, at, at_squared, total, at_x = (_between(own, low, high) for own in (ones, place, place**2, x, place * x))
    after, x_after = len(x) - high, x.sum() - np.concatenate([[0.0], np.cumsum(x)])[high]
    share = (at - first * count) / span + after
    squared = (at_squared - 2 * first * at + first**2 * count) / span**2 + after - share**2 / len(x)
    product = (at_x - first * total) / span + x_after
    sizes = np.where(squared > _TINY, product / np.maximum(squared, _TINY), 0.0)
    return x @ x - sizes * product, sizes


def _between(values: Floats, low: Integers, high: Integers) -> Floats:
    """Return the sums of values[low:high]."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[high] - sums[low])
