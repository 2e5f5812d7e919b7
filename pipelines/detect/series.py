"""The second pass: where the level of one curve changed for good, in the whole of its history.

A series holds the levels of one curve in order of time: natural logarithms, positive = better, finite; its scale is the noise of
one observation. Belongs here: segments, their levels, what kind of event each change is. Does not: the division itself
(`partition`), slow changes (`drift`), what was known on which day (`replay`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from pipelines.detect.drift import MIN_DRIFT, Ramp, ramp
from pipelines.detect.partition import CAP, MIN_LAST, Floats, partitions

FLOOR = 0.01
"""Least scale of a series. Measured: at half of it real repeats give twice the false changes and no more true ones."""
GATE = math.log(1.02)
"""Changes that are smaller are none."""
PENALTY_BASE, PENALTY_SLOPE = 7.0, 3.0
PROMPT = 17.0
"""Dearest change: two observations save at most 2 · CAP² = 18, so that a plain change is seen at its second, however late."""
BACK = 0.5
"""Share of a change that must be undone for it to count as recovered."""

STEP, RECOVERED, BLIP, DRIFT, SUSPECTED = "step", "recovered", "blip", "drift", "suspected"


@dataclass(frozen=True)
class Rules:
    """What makes a change: one set for all series of a kind."""

    cap: float = CAP
    floor: float = FLOOR
    gate: float = GATE
    dearest: float = PROMPT


DAYS = Rules()
"""For series of days, with a scale from repeats."""


@dataclass(frozen=True)
class Event:
    """What happened to a level: `start` is the first observation at the new level, `end` the first one after the event.

    A step ends where it begins, a drift where the new level is reached, a blip where the old one is back. `size` is logarithmic.
    """

    kind: str
    start: int
    end: int
    size: float
    recovered_at: int | None = None
    """First observation of the level at which half of a change was undone."""


def penalties(count: int, rules: Rules = DAYS) -> Floats:
    """Return the price of a change at each index, in squared scales: 7 + 3 ln(observations before it), at most the dearest.

    3 ln n makes the chance of a false change at n fall faster than 1/n, so that their sum over a growing series stays bounded;
    the base is set for a nominal 2 % of series of independent noise (measured up to 200: normal tails .7 %, t3 tails 2.8 %).
    """
    before = np.maximum(np.arange(count, dtype=np.float64), 1.0)
    return np.minimum(PENALTY_BASE + PENALTY_SLOPE * np.log(before), rules.dearest)


def segment(levels: Floats, scale: float, rules: Rules = DAYS) -> tuple[int, ...]:
    """Return where the segments after the first start."""
    return segment_many([levels], [scale], rules)[0]


def segment_many(series: Sequence[Floats], scales: Sequence[float], rules: Rules = DAYS) -> list[tuple[int, ...]]:
    """Return the same as `segment` for every series, much faster than one by one; lengths may differ."""
    noises = [max(scale, rules.floor) for scale in scales]
    prices = [penalties(len(levels), rules) for levels in series]
    found = partitions([levels / noise for levels, noise in zip(series, noises, strict=True)], prices, rules.cap)
    return [
        gated(levels, part.starts(len(levels)), noise, rules) for levels, part, noise in zip(series, found, noises, strict=True)
    ]


def gated(levels: Floats, starts: tuple[int, ...], scale: float, rules: Rules = DAYS) -> tuple[int, ...]:
    """Return *starts* without changes below the gate, the smallest gone first, because its sides then share a level."""
    kept = list(starts)
    while kept:
        sizes = np.abs(np.diff(segment_levels(levels, tuple(kept), scale, rules)))
        if sizes.min() >= rules.gate:
            break
        del kept[int(sizes.argmin())]
    return tuple(kept)


def segment_levels(levels: Floats, starts: tuple[int, ...], scale: float, rules: Rules = DAYS) -> Floats:
    """Return the level of each segment."""
    return np.array([level(part, scale, rules) for part in np.split(levels, starts)])


def level(part: Floats, scale: float, rules: Rules = DAYS) -> float:
    """Return the mean of the values within the cap of their median, or the median where there are none: outliers do not count."""
    ordered = np.sort(part)  # np.median takes four times as long
    middle = (ordered[(len(part) - 1) // 2] + ordered[len(part) // 2]) / 2
    inside = part[np.abs(part - middle) <= rules.cap * scale]
    return float(inside.mean() if len(inside) else middle)


def describe(levels: Floats, scale: float, rules: Rules = DAYS, starts: tuple[int, ...] | None = None) -> tuple[Event, ...]:
    """Return the events of a series in order of time; *starts*, where changes are already known, in place of `segment`."""
    if not len(levels):
        return ()
    noise = max(scale, rules.floor)
    starts = segment(levels, scale, rules) if starts is None else starts
    steady = segment_levels(levels, starts, noise, rules)
    changes = _with_drifts(levels, starts, steady, noise, rules)
    events = [_recovery(event, starts, steady) for event in changes]
    slow = [range(event.start, event.end) for event in events if event.kind == DRIFT]
    odd = [blip for blip in _blips(levels, starts, steady, noise, rules) if not any(blip.start in span for span in slow)]
    return tuple(sorted([*events, *odd], key=lambda event: (event.start, event.kind)))


def _with_drifts(levels: Floats, starts: tuple[int, ...], steady: Floats, scale: float, rules: Rules) -> list[Event]:
    """Return the changes as steps, but as one drift where a slope explains a run of changes of one direction better."""
    events: list[Event] = []
    sizes = np.diff(steady)
    for _upward, run in groupby(range(len(starts)), key=lambda index: bool(sizes[index] > 0)):
        indices = list(run)
        slope = _slope(levels, starts, indices, scale, rules)
        if slope is not None and abs(slope.size) >= MIN_DRIFT:
            events.append(Event(DRIFT, slope.start, slope.end, slope.size))
        else:
            events += [Event(STEP, starts[index], starts[index], float(sizes[index])) for index in indices]
    return events


def _slope(levels: Floats, starts: tuple[int, ...], run: list[int], scale: float, rules: Rules) -> Ramp | None:
    """Return the slope that is cheaper than the steps of *run*, in the span from the change before them to the one after."""
    bounds = (0, *starts, len(levels))
    low, high = bounds[run[0]], bounds[run[-1] + 2]
    inside = tuple(starts[index] - low for index in run)
    price = float(penalties(len(levels), rules)[[starts[index] for index in run]].mean())
    found = ramp(levels[low:high] / scale, inside, price, rules.cap)
    return None if found is None else Ramp(found.start + low, found.end + low, found.size * scale)


def _recovery(event: Event, starts: tuple[int, ...], steady: Floats) -> Event:
    """Return the event, a step as recovered, with where at least half of the change was undone."""
    bounds = (0, *starts)
    after = max(index for index, start in enumerate(bounds) if start <= max(event.end, event.start))
    goal = steady[after] - BACK * event.size
    sign = math.copysign(1.0, event.size)
    back = [start for start, own in zip(bounds[after + 1 :], steady[after + 1 :], strict=True) if sign * (own - goal) <= 0]
    if not back:
        return event
    return replace(event, kind=RECOVERED if event.kind == STEP else event.kind, recovered_at=back[0])


def _blips(levels: Floats, starts: tuple[int, ...], steady: Floats, scale: float, rules: Rules) -> list[Event]:
    """Return the runs of outliers within segments: blips if short, recovered if longer, suspected where no later one is known.

    Of two observations neither is the outlier.
    """
    lengths = np.diff((0, *starts, len(levels)))
    away = levels - np.repeat(steady, lengths)
    far = (np.abs(away) > max(rules.cap * scale, rules.gate)) & (np.repeat(lengths, lengths) > MIN_LAST)
    side = np.where(far, np.sign(away), 0.0)
    if not side.any():
        return []
    owner = np.searchsorted(starts, np.arange(len(levels)), side="right")
    events: list[Event] = []
    for (sign, _owner), run in groupby(zip(side.tolist(), owner.tolist(), range(len(levels)), strict=True), itemgetter(0, 1)):
        indices = [index for _sign, _owner, index in run]
        if sign:
            events.append(_excursion(indices, float(np.median(away[indices])), len(levels)))
    return events


def _excursion(indices: list[int], size: float, count: int) -> Event:
    start, end = indices[0], indices[-1] + 1
    if end == count:
        return Event(SUSPECTED, start, end, size)
    return Event(BLIP, start, end, size) if len(indices) <= MIN_LAST else Event(RECOVERED, start, start, size, end)
