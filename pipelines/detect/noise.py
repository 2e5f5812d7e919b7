"""How far a metric moves when nothing changed: robust scales from repeats, shrunk from stack to engine to all.

Repeats are comparisons whose two sides differ in nothing that we know of. The scale is that of *one* observation:
1.4826 · MAD of the log-ratios / √2. A group of n repeats is shrunk to its parent, s² = (n·s_group² + 5·s_parent²)/(n + 5); with
no repeats at all the prior stands, twice the least scale, so that ignorance widens and never silences. A repeat is a pair of
observations: the cells of one pair share its two runs and count as one, for single points as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from pipelines.detect.comparison import MAD_TO_SIGMA, Comparison
from pipelines.detect.observations import METRICS, REPORTED, STEADY, TPOT, TTFT
from warehouse.schemas import NOISE

SHRINKAGE = 5.0
"""Weight of the parent, in repeats."""
FLOOR = {REPORTED: 0.005, STEADY: 0.005, TPOT: 0.005, TTFT: 0.03}
"""Least scale of one observation. Chosen, not measured: the typical one-run noise of single points on real fleets (0.5 %, TTFT
2.8 %). Curves move less, the twenty real runs as a whole by a raw scale of 0.25 to 0.29 %; few repeats must not promise that."""
PRIOR = {metric: 2 * floor for metric, floor in FLOOR.items()}
POINT_PRIOR = 1.5
"""A single point's prior over a curve's."""

CURVE_UNIT, POINT_UNIT = "curve", "point"
MIN_CURVE_CELLS = 3
"""A median over fewer cells moves like a point and is judged by the scale of points."""

Group = tuple[str, str]  # hardware, engine; "" = all


@dataclass(frozen=True)
class Scale:
    """A noise scale with what stands behind it: `level` is the narrowest that has repeats of its own."""

    scale: float
    level: str
    repeats: int


@dataclass(frozen=True)
class _Estimate:
    scale: float
    raw: float
    repeats: int


class NoiseModel:
    """Noise scales by stack, metric and unit."""

    def __init__(self, estimates: dict[tuple[Group, str, str], _Estimate]) -> None:
        self._estimates = estimates

    def scale(self, hardware: str, engine: str, metric: str, cells: int) -> Scale:
        """Return the scale of one observation for a median over *cells* cells of a stack."""
        unit = CURVE_UNIT if cells >= MIN_CURVE_CELLS else POINT_UNIT
        for level, group in (("stack", (hardware, engine)), ("engine", ("", engine)), ("global", ("", ""))):
            estimate = self._estimates.get((group, metric, unit))
            if estimate is not None:
                return Scale(estimate.scale, level, estimate.repeats)
        return Scale(_prior(metric, unit), "prior", 0)

    def frame(self) -> pl.DataFrame:
        """Return the table `noise`."""
        rows = [
            {
                "level": "stack" if hardware else "engine" if engine else "global",
                "hardware": hardware or None,
                "engine": engine or None,
                "metric": metric,
                "unit": unit,
                "scale": estimate.scale,
                "raw_scale": estimate.raw,
                "repeats": estimate.repeats,
            }
            for ((hardware, engine), metric, unit), estimate in sorted(self._estimates.items())
        ]
        return pl.DataFrame(rows, schema=NOISE.schema)


def measure(repeats: Iterable[Comparison]) -> NoiseModel:
    """Return the noise model of *repeats*: comparisons in which nothing is known to differ."""
    samples: dict[tuple[Group, str, str], list[list[float]]] = defaultdict(list)
    for comparison in repeats:
        context = comparison.new.context
        for metric in METRICS:
            values = _ratios(comparison, metric)
            if not values:
                continue
            for group in ((context["hardware"], context["engine"]), ("", context["engine"]), ("", "")):
                if len(values) >= MIN_CURVE_CELLS:
                    samples[group, metric, CURVE_UNIT].append([median(values)])
                samples[group, metric, POINT_UNIT].append(values)
    return NoiseModel(_shrunk(samples))


def _ratios(comparison: Comparison, metric: str) -> list[float]:
    """Return the log-ratios that a comparison is judged by: of reported throughput those of fit cells."""
    chosen = np.isfinite(comparison.ratios[metric])
    if metric == REPORTED:
        chosen &= comparison.fit
    values: list[float] = comparison.ratios[metric][chosen].tolist()
    return values


def _shrunk(samples: dict[tuple[Group, str, str], list[list[float]]]) -> dict[tuple[Group, str, str], _Estimate]:
    """Return the scales from wide to narrow; a sample is a list of pairs of observations, each a list of its log-ratios."""
    estimates: dict[tuple[Group, str, str], _Estimate] = {}
    for (hardware, engine), metric, unit in sorted(samples, key=lambda key: (bool(key[0][0]), bool(key[0][1]), key)):
        parent_group = ("", engine) if hardware else ("", "")
        parent = estimates.get((parent_group, metric, unit)) if engine else None
        below = parent.scale if parent else _prior(metric, unit)
        pairs = samples[(hardware, engine), metric, unit]
        raw = MAD_TO_SIGMA * median(abs(value) for pair in pairs for value in pair) / math.sqrt(2)
        shrunk = math.sqrt((len(pairs) * raw**2 + SHRINKAGE * below**2) / (len(pairs) + SHRINKAGE))
        estimates[(hardware, engine), metric, unit] = _Estimate(max(shrunk, FLOOR[metric]), raw, len(pairs))
    return estimates


def _prior(metric: str, unit: str) -> float:
    return PRIOR[metric] * (POINT_PRIOR if unit == POINT_UNIT else 1.0)
