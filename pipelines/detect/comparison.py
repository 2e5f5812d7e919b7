"""The numbers of one pair of observations: log-ratios at equal concurrency, their median, coherence and halves.

A curve moves when its median log-ratio does and the cells agree, or when one half does; never because of one point (a notice of
unfit cells, see `decision`, may be of one; it says nothing of the software). Cells agree where |median| > 1.48 MAD about it; of a
half and of three cells all must move the same way as well, of two each must show at least half of the median. Measured on repeats
of one image: docs/evaluation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from pipelines.detect.baseline import MIN_CELLS, Baseline
from pipelines.detect.observations import METRICS, REPORTED, Observation

MAD_TO_SIGMA = 1.4826
HALF_GATE = math.log(1.07)
MIN_CELLS_FOR_HALVES = 4
LARGEST = 700.0
"""Log-ratio from which a change in percent is no finite number any more."""
SHORT_CURVE = 4
"""Cells below which single ones count too much for a median to be robust."""
ENOUGH = 0.5
"""Share of the median that a cell must show where each of them has to agree."""

CURVE, LOW, HIGH, UNFIT_CELLS = "curve", "low_concurrency", "high_concurrency", "unfit_cells"


@dataclass(frozen=True)
class Movement:
    """How one metric moved over some cells: median log-ratio (positive = better), whether the cells agree, how many there are.

    `agreeing` counts, of those `cells` and no others, the ones whose log-ratio has the sign of the median: of a half its own
    cells, of reported throughput the fit ones. For unfit cells that went astray the worst stands in the place of the median.
    `unanimous`: every cell shows at least half of the median.
    """

    median: float
    coherent: bool
    cells: int
    agreeing: int
    unanimous: bool = True
    spread: float = 0.0
    """1.48 MAD of the cells about the median."""


@dataclass(frozen=True)
class Comparison:
    """One observation against its baseline. `ratios` are log-ratios by metric, in the order of `concurrencies`; NaN = no pair."""

    new: Observation
    baseline: Baseline
    concurrencies: tuple[float, ...]
    ratios: dict[str, NDArray[np.float64]]
    fit: NDArray[np.bool_]
    """Cells whose reported throughput is comparable: neither side is unfit."""
    movements: dict[tuple[str, str], Movement | None] = field(default_factory=dict, repr=False, compare=False)
    """What `movement` has found so far: every rule asks for the same few."""

    def movement(self, metric: str, part: str = CURVE) -> Movement | None:
        """Return how *metric* moved over a part of the curve, or None with fewer than two cells.

        Reported throughput is judged on fit cells only.
        """
        if (metric, part) not in self.movements:
            self.movements[metric, part] = self._movement(metric, part)
        return self.movements[metric, part]

    def _movement(self, metric: str, part: str) -> Movement | None:
        chosen = self.inside(part) & np.isfinite(self.ratios[metric])
        if metric == REPORTED:
            chosen &= self.fit
        values = self.ratios[metric][chosen]
        return movement(values) if len(values) >= MIN_CELLS else None

    def concurrencies_of(self, part: str) -> tuple[float, ...]:
        """Return the concurrencies that belong to a part of the curve."""
        return tuple(c for c, inside in zip(self.concurrencies, self.inside(part), strict=True) if inside)

    def inside(self, part: str) -> NDArray[np.bool_]:
        """Say of every cell whether it belongs to a part of the curve."""
        count = len(self.concurrencies)
        inside = np.ones(count, dtype=np.bool_)
        if part == LOW:
            inside[count // 2 :] = False
        elif part == HIGH:
            inside[: (count + 1) // 2] = False
        elif part == UNFIT_CELLS:
            inside = ~self.fit
        return inside


def compare(new: Observation, baseline: Baseline) -> Comparison:
    """Return the log-ratios of *new* over its baseline at every concurrency that both have."""
    shared = tuple(sorted(new.cells.keys() & baseline.cells.keys()))
    ratios = {
        metric: np.array([new.cells[c].values[metric] - baseline.cells[c].values[metric] for c in shared], dtype=np.float64)
        for metric in METRICS
    }
    fit = np.array([not (new.cells[c].unfit or baseline.cells[c].unfit) for c in shared], dtype=np.bool_)
    return Comparison(new, baseline, shared, ratios, fit)


def movement(values: NDArray[np.float64]) -> Movement:
    """Return median, coherence and agreement of log-ratios (at least one)."""
    plain: list[float] = values.tolist()  # five or so numbers: numpy's median would take thirty times as long
    middle = median(plain)
    spread = MAD_TO_SIGMA * median(abs(value - middle) for value in plain)
    agreeing = sum(value * middle > 0 if middle else value == 0 for value in plain)
    return Movement(middle, abs(middle) > spread, len(plain), agreeing, all(_shows(value, middle) for value in plain), spread)


def _shows(value: float, middle: float) -> bool:
    return value * middle > 0 and abs(value) >= ENOUGH * abs(middle)


def moves(moved: Movement | None, gate: float, part: str = CURVE) -> bool:
    """Say whether a movement is at least *gate* in size and its cells agree."""
    if moved is None or abs(moved.median) < gate or not moved.coherent:
        return False
    if moved.cells < SHORT_CURVE - 1:
        return moved.unanimous
    return moved.agreeing == moved.cells or (part == CURVE and moved.cells >= SHORT_CURVE)


def parts(comparison: Comparison) -> tuple[str, ...]:
    """Return the parts of a curve that may move: the curve, then its halves (without the middle cell) if it is long enough."""
    return (CURVE,) if len(comparison.concurrencies) < MIN_CELLS_FOR_HALVES else (CURVE, LOW, HIGH)


def night(comparison: Comparison) -> str:
    """Return the UTC day of a comparison's later observation."""
    return comparison.new.night


def percent(log_ratio: float) -> float:
    """Return a log-ratio as a change in percent."""
    return math.expm1(min(log_ratio, LARGEST)) * 100
