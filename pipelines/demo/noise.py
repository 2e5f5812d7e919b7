"""How the sample's points scatter when nothing changes: a quiet core with heavy tails, as on real repeats.

Belongs here: random draws. Does not: formulas of metrics (`physics`).

Figures aimed at (184 same-image curve pairs of real runs): with nothing changed, median TPOT of a point moves 0.4 % at
the median, a curve's 0.3 %, TTFT 2 to 3 %; single points stand out without their curve. The far tails are about half as
heavy as the real ones, in which some recipe changed unseen. A benign first burst lifts mean TTFT to three times the
median and leaves end-to-end latency alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from pipelines.demo.physics import Latency

SEED = 20260101
RUN, CURVE, POINT = 0.003, 0.0016, 0.0028
"""Scales of log latency: common to a run, to a curve of it, of one point (Student t, 3 degrees of freedom)."""

OUTLIER_SHARE, OUTLIER = 0.02, 0.05
"""Share of points that something disturbed, and by how much (log latency, Student t, 3 degrees of freedom)."""

LIMIT = 0.35
"""No point departs further than this, log latency."""

TTFT_CURVE, TTFT_POINT = 0.015, 0.015
"""Further scatter of log TTFT: common to a curve of a run (normal), of one point (Student t, 3 degrees of freedom)."""

BENIGN_SHARE = 0.08
"""Share of points whose first burst waits without harm."""


def generator(*words: int) -> Generator:
    """Return the generator of one part of the sample; parts do not depend on each other's draws."""
    return Generator(PCG64([SEED, *words]))


def run_shift(source: Generator, scale: float) -> float:
    """Return the log latency that all points of one stack in one run share."""
    return float(np.clip(source.normal(0, RUN), -3 * RUN, 3 * RUN)) * scale


@dataclass(frozen=True)
class Draws:
    """The random parts of one curve in one run: arrays with one value per concurrency."""

    log_latency: NDArray[np.float64]
    log_ttft: NDArray[np.float64]
    ttft_mean: NDArray[np.float64]
    tpot_mean: NDArray[np.float64]
    tail: NDArray[np.float64]
    benign: NDArray[np.float64]

    def latency(self, place: int, ttft_s: float, tpot_s: float) -> Latency:
        """Return the latencies of the point at *place*, given the undisturbed medians (s)."""
        factor = math.exp(self.log_latency[place])
        return Latency(
            ttft_s=ttft_s * factor * math.exp(self.log_ttft[place]),
            tpot_s=tpot_s * factor,
            ttft_mean=float(self.ttft_mean[place]),
            tpot_mean=float(self.tpot_mean[place]),
            tail=float(self.tail[place]),
        )


def draw(source: Generator, points: int, common: float, scale: float) -> Draws:
    """Return the random parts of a curve of *points* cells; *common* is the run's shift, *scale* the stack's noise."""
    disturbed = source.random(points) < OUTLIER_SHARE
    single = POINT * source.standard_t(3, points) + disturbed * OUTLIER * source.standard_t(3, points)
    log_latency = common + scale * (CURVE * source.normal() + single)
    return Draws(
        log_latency=np.clip(log_latency, -LIMIT, LIMIT),
        log_ttft=np.clip(scale * (TTFT_CURVE * source.normal() + TTFT_POINT * source.standard_t(3, points)), -LIMIT, LIMIT),
        ttft_mean=1.12 + 0.4 * source.random(points),
        tpot_mean=np.exp(0.001 * scale * source.normal(size=points)),
        tail=np.exp(0.12 * source.normal(size=points)),
        benign=source.random(points),
    )


def benign_wait(draws: Draws, place: int, latency: Latency, e2el_s: float) -> float:
    """Return how long (s) the first burst of a point waits harmlessly; 0 for most points.

    The mean TTFT then is 3.3 times its median; not drawn where that would lift the mean end-to-end latency by 1.5 %.
    """
    wait = (3.3 - latency.ttft_mean) * latency.ttft_s * 10
    if draws.benign[place] >= BENIGN_SHARE or wait / 10 > 0.015 * e2el_s:
        return 0.0
    return wait
