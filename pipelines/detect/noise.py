"""How far a metric moves when nothing changed: robust scales from repeats, shrunk from line to stack to engine to all.

Repeats are comparisons whose two sides differ in nothing that we know of. The scale is that of *one* observation:
1.4826 · MAD of the log-ratios / √2, meant for Student's t with four degrees of freedom, because unchanged curves have a quiet
core and very heavy tails. A group of n repeats is shrunk to its parent, s² = (n·s_group² + 5·s_parent²)/(n + 5). A line of which
public fleets are known has theirs as so many repeats more (`public`). Ignorance widens and never silences: with no repeats of the
stack its engine's scale holds 1.5 times over, with none at all a prior stands.

Four units are kept apart. `curve`: the median over four cells or more. `point`: one cell. `run`: the median over three sibling
curves or more, what all curves of one run and stack share. `cell`: one cell about the median of its own curve. A repeat is a pair
of observations: the cells of one pair share its two runs and count as one.

What a night is judged by are the repeats up to that night: a later one does not move what was said (`version` tells which).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.detect.comparison import MAD_TO_SIGMA, Comparison, night
from pipelines.detect.observations import METRICS, REPORTED, TTFT
from pipelines.detect.public import FIELDS, of_line
from warehouse.canonical import content_id
from warehouse.schemas import NOISE

SHRINKAGE = 5.0
"""Weight of the parent, in repeats."""
CURVE_UNIT, POINT_UNIT, RUN_UNIT, CELL_UNIT = "curve", "point", "run", "cell"
FLOOR = {CURVE_UNIT: 0.002, POINT_UNIT: 0.0035, RUN_UNIT: 0.002, CELL_UNIT: 0.0035}
"""Least scale of one observation: what the quietest stacks of twenty real runs show (0.12 to 0.2 % for curves, 0.36 % for cells)
must not be promised from a handful of repeats."""
PRIOR = {CURVE_UNIT: 0.0035, POINT_UNIT: 0.006, RUN_UNIT: 0.0035, CELL_UNIT: 0.006}
"""Somewhat more than what unchanged curves (0.25 %) and single points (0.5 %) of real fleets show as a whole."""
TTFT_FACTOR = 6.0
"""TTFT moves about six times as far as throughput (docs/evaluation.md)."""
WIDER = 1.5
"""Factor on the scale of an engine or of all where a stack has no repeats of its own."""
ENOUGH = 8
"""Repeats of a stack from which its noise is known well enough for small changes to count: the median of three sizes is luck."""
FEW = 3
"""Repeats of a stack below which it is said that they are too few."""
MIN_CURVE_CELLS = 4
"""A median over two cells moves like a point, over three like something between the two."""
MIN_SIBLINGS = 3
PUBLIC = "public"
LEVELS = ("global", "engine", "stack", "line")
Group = tuple[str, ...]
"""Nothing; engine; engine, hardware; engine, hardware, framework, precision, deployment."""
Key = tuple[Group, str, str]
"""Group, metric, unit."""


@dataclass(frozen=True)
class Scale:
    """A noise scale with what stands behind it: `level` is the narrowest that has repeats, and how many of them it has.

    Levels: line, stack, engine, global, public (no repeats of the line, but public fleets are known), prior (nothing at all).
    """

    scale: float
    level: str
    repeats: int
    public: bool = field(default=False, compare=False)
    """Public fleets of this very line are known."""

    @property
    def of_change(self) -> float:
        """The scale of a change: both observations carry the scale, so their difference carries √2 of it."""
        return self.scale * math.sqrt(2)

    @property
    def insufficient(self) -> bool:
        """Say whether the stack has too few repeats of its own to know its noise."""
        return self.level not in ("line", "stack") or self.repeats < FEW

    @property
    def known(self) -> bool:
        """Say whether the noise of this stack is known well enough for small changes to count."""
        return self.level == PUBLIC or self.public or (self.level in ("line", "stack") and self.repeats >= ENOUGH)


@dataclass(frozen=True)
class _Estimate:
    scale: float
    raw: float | None
    repeats: int
    public: bool = False


@dataclass(frozen=True)
class _Sample:
    """Repeats of one group in order of time: the night of each pair, all sizes one after another, and where each pair ends."""

    nights: list[str]
    sizes: NDArray[np.float64]
    ends: list[int]

    @staticmethod
    def of(taken: list[tuple[str, list[float]]]) -> _Sample:
        ordered = sorted(taken)
        sizes = np.abs(np.array([value for _at, values in ordered for value in values], dtype=np.float64))
        return _Sample([at for at, _values in ordered], sizes, list(accumulate(len(values) for _at, values in ordered)))

    def raw(self, pairs: int) -> float:
        """Return the scale of one observation that the first *pairs* pairs ask for."""
        return MAD_TO_SIGMA * float(np.median(self.sizes[: self.ends[pairs - 1]])) / math.sqrt(2)


class NoiseModel:
    """Noise scales by group, metric and unit, as known by the end of any night."""

    def __init__(self, samples: dict[Key, list[tuple[str, list[float]]]], versions: dict[str, str]) -> None:
        self._samples = {key: _Sample.of(taken) for key, taken in samples.items()}
        self._versions, self._hashed = versions, sorted(versions)
        self._known: dict[tuple[Key, str], _Estimate | None] = {}
        self._scales: dict[tuple[str, ...], Scale] = {}

    def scale(self, context: dict[str, Any], metric: str, cells: int, until: str) -> Scale:
        """Return the scale of one observation for a median over *cells* cells, as known by the end of the night *until*."""
        point = self._narrowest(context, metric, POINT_UNIT, until)
        if cells < MIN_CURVE_CELLS - 1:
            return point
        curve = self._narrowest(context, metric, CURVE_UNIT, until)
        if cells >= MIN_CURVE_CELLS:
            return curve
        between = math.sqrt((curve.scale**2 + point.scale**2) / 2)
        return Scale(between, point.level, point.repeats)

    def of_run(self, context: dict[str, Any], metric: str, until: str) -> Scale:
        """Return the scale of what all curves of one run and stack have in common."""
        return self._narrowest(context, metric, RUN_UNIT, until)

    def version(self, until: str) -> str:
        """Return the hash of the repeats known by the end of a night; empty where there is none."""
        known = bisect_right(self._hashed, until)
        return self._versions[self._hashed[known - 1]] if known else ""

    def _narrowest(self, context: dict[str, Any], metric: str, unit: str, until: str) -> Scale:
        line = groups(context)[-1]
        if (*line, metric, unit, until) not in self._scales:
            self._scales[*line, metric, unit, until] = self._found(context, metric, unit, until)
        return self._scales[*line, metric, unit, until]

    def _found(self, context: dict[str, Any], metric: str, unit: str, until: str) -> Scale:
        for level, group in reversed(list(zip(LEVELS, groups(context), strict=True))):
            estimate = self._estimate((group, metric, unit), until)
            if estimate is not None:
                wider = WIDER if level in ("engine", "global") else 1.0
                known = estimate.public and estimate.repeats < FEW
                return Scale(estimate.scale * wider, PUBLIC if known else level, estimate.repeats, estimate.public)
        return Scale(prior(metric, unit), "prior", 0)

    def _estimate(self, key: Key, until: str) -> _Estimate | None:
        """Return what the repeats of a group up to a night say, or None where there is none."""
        if (key, until) not in self._known:
            self._known[key, until] = self._estimated(key, until)
        return self._known[key, until]

    def _estimated(self, key: Key, until: str) -> _Estimate | None:
        sample = self._samples.get(key)
        pairs = bisect_right(sample.nights, until) if sample else 0
        public = _public(key)
        if not pairs and not public:
            return None
        raw = sample.raw(pairs) if sample and pairs else None
        known = [(SHRINKAGE, self._parent(key, until)), (pairs, raw or 0.0)]
        known += [public] if public else []
        shrunk = math.sqrt(sum(weight * scale**2 for weight, scale in known) / sum(weight for weight, _scale in known))
        return _Estimate(max(shrunk, floor(key[1], key[2])), raw, pairs, public is not None)

    def _parent(self, key: Key, until: str) -> float:
        """Return the scale of the nearest wider group that has repeats, else the prior."""
        group, metric, unit = key
        while group:
            group = _parent(group)
            if (parent := self._estimate((group, metric, unit), until)) is not None:
                return parent.scale
        return prior(metric, unit)

    def frame(self) -> pl.DataFrame:
        """Return the table `noise`: what is known by the end of the last night."""
        last = max((sample.nights[-1] for sample in self._samples.values()), default="")
        rows = [
            _row(key, estimate, last, self.version(last))
            for key in sorted(self._samples)
            if (estimate := self._estimate(key, last))
        ]
        return pl.DataFrame(rows, schema=NOISE.schema).sort(NOISE.order, nulls_last=True)


def _row(key: Key, estimate: _Estimate, until: str, version: str) -> dict[str, Any]:
    group, metric, unit = key
    names = dict(zip(FIELDS, group, strict=False))
    return {
        "level": LEVELS[min(len(group), 3)],
        **{name: names.get(name) for name in ("hardware", "engine", "framework", "precision", "deployment")},
        "metric": metric,
        "unit": unit,
        "scale": estimate.scale,
        "raw_scale": estimate.raw,
        "repeats": estimate.repeats,
        "until": until,
        "version": version,
    }


def groups(context: dict[str, Any]) -> tuple[Group, ...]:
    """Return the groups that a stack belongs to, from all to the narrowest."""
    engine, hardware = str(context["engine"]), str(context["hardware"])
    deployment = "disaggregated" if context["disagg"] else "single"
    return (), (engine,), (engine, hardware), (engine, hardware, str(context["framework"]), str(context["precision"]), deployment)


def _parent(group: Group) -> Group:
    return group[:2] if len(group) > 2 else group[:-1]


def measure(repeats: Iterable[Comparison]) -> NoiseModel:
    """Return the noise model of *repeats*: comparisons in which nothing is known to differ, in any order."""
    samples: dict[Key, list[tuple[str, list[float]]]] = defaultdict(list)
    siblings: dict[tuple[str, ...], list[float]] = defaultdict(list)
    pairs: dict[str, list[str]] = defaultdict(list)
    for comparison in repeats:
        at = night(comparison)
        pairs[at].append(content_id("repeat", *_identity(comparison)))
        for metric in METRICS:
            values = _ratios(comparison, metric)
            if values:
                _take(samples, comparison, metric, at, values)
                if len(values) >= MIN_CURVE_CELLS:
                    siblings[(at, metric, *_runs(comparison), *groups(comparison.new.context)[2])].append(median(values))
    for (at, metric, *_pair, engine, hardware), medians in siblings.items():
        if len(medians) >= MIN_SIBLINGS:
            for group in ((), (engine,), (engine, hardware)):
                samples[group, metric, RUN_UNIT].append((at, [median(medians)]))
    return NoiseModel(dict(samples), _versions(pairs))


def _take(
    samples: dict[Key, list[tuple[str, list[float]]]], comparison: Comparison, metric: str, at: str, values: list[float]
) -> None:
    middle = median(values)
    for group in groups(comparison.new.context):
        samples[group, metric, POINT_UNIT].append((at, values))
        if len(values) >= MIN_CURVE_CELLS:
            samples[group, metric, CURVE_UNIT].append((at, [middle]))
            samples[group, metric, CELL_UNIT].append((at, [value - middle for value in values]))


def _runs(comparison: Comparison) -> tuple[str, ...]:
    old, new = comparison.baseline.observation, comparison.new
    return tuple(str(part) for side in (old, new) for part in (side.run_source, side.run_id, side.run_attempt))


def _identity(comparison: Comparison) -> tuple[str, ...]:
    return (comparison.new.curve_id, *_runs(comparison), comparison.new.build_id)


def _versions(pairs: dict[str, list[str]]) -> dict[str, str]:
    """Return the hash of all repeats up to each night."""
    nights = sorted(pairs)
    hashes = accumulate(nights, lambda before, at: content_id("noise", before, *sorted(pairs[at])), initial="")
    return dict(zip(nights, list(hashes)[1:], strict=True))


def _ratios(comparison: Comparison, metric: str) -> list[float]:
    """Return the log-ratios that a comparison is judged by: of reported throughput those of fit cells."""
    chosen = np.isfinite(comparison.ratios[metric])
    if metric == REPORTED:
        chosen &= comparison.fit
    values: list[float] = comparison.ratios[metric][chosen].tolist()
    return values


def _public(key: Key) -> tuple[float, float] | None:
    """Return how much the noise of public fleets weighs, in repeats, and its scale, where it is known; TTFT's is not."""
    group, metric, unit = key
    found = of_line(group) if len(group) == len(FIELDS) and unit == CURVE_UNIT and metric != TTFT else None
    return (found.repeats, found.curve) if found else None


def floor(metric: str, unit: str) -> float:
    """Return the least scale of a metric, log-ratio."""
    return FLOOR[unit] * (TTFT_FACTOR if metric == TTFT else 1.0)


def prior(metric: str, unit: str) -> float:
    """Return the scale of a metric of which there are no repeats at all, log-ratio."""
    return PRIOR[unit] * (TTFT_FACTOR if metric == TTFT else 1.0)
