"""Two shares of right answers: how far apart, within what interval, by what chance.

A share is a mean over questions. Its weight is the number of questions, or fewer where its recorded standard error or the spread
of repeats says that they tell less (effective sample size, Kish 1965). Never more than were asked: a mean of values between 0 and
1 has at most the variance of a binomial share. Both sides are taken as independent. Evaluations ask the same questions, so the
true spread of the difference is smaller; who has the answers could use McNemar's test, the scores alone do not allow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import ndtr, ndtri

FEW = 5.0
"""Expected right or wrong answers on either side below which the normal tail is not trusted (Cochran 1954)."""
NORMAL, EXACT = "two-proportion z", "Fisher exact"


@dataclass(frozen=True)
class Share:
    """A share of 1 and the questions that it weighs as much as (need not be whole, at least 1)."""

    value: float
    samples: float

    def widened(self, design: float) -> Share:
        """Return the share with *design* times its variance (at least 1 times: repeats may widen and never narrow)."""
        return Share(self.value, max(1.0, self.samples / max(1.0, design)))


def share(value: float, stderr: float | None, samples: int | None) -> Share | None:
    """Return a share with its effective sample size, or None where nothing tells how many questions are behind it.

    A standard error is that of a sample, sqrt(p (1 - p) / (n - 1)), as lm-evaluation-harness writes it; of a share of 0 or 1 it
    is 0 and tells nothing. Where questions are told as well, the lesser of the two counts.
    """
    spread = value * (1 - value)
    told = [float(samples)] if samples and samples > 0 else []
    if stderr and spread > 0:
        told.append(1 + spread / stderr**2)
    return Share(value, min(told)) if told else None


def standard_error(old: Share, new: Share) -> float:
    """Return the standard error of the difference if nothing changed: of the pooled share."""
    pooled = _pooled(old, new)
    return math.sqrt(pooled * (1 - pooled) * (1 / old.samples + 1 / new.samples))


def p_value(old: Share, new: Share) -> tuple[float, str]:
    """Return the two-sided p of a difference, and by which test: the normal tail, or Fisher's where answers are few."""
    if _fewest(old, new) < FEW:
        return _fisher(old, new), EXACT
    return float(2 * ndtr(-abs(new.value - old.value) / standard_error(old, new))), NORMAL


def interval(old: Share, new: Share, level: float) -> tuple[float, float]:
    """Return the interval of new - old at *level*: Newcombe 1998, method 10, of two Wilson intervals."""
    (old_low, old_high), (new_low, new_high) = wilson(old, level), wilson(new, level)
    size = new.value - old.value
    below = math.hypot(new.value - new_low, old_high - old.value)
    above = math.hypot(new_high - new.value, old.value - old_low)
    return size - below, size + above


def wilson(one: Share, level: float) -> tuple[float, float]:
    """Return the score interval of one share (Wilson 1927)."""
    z = float(ndtri(0.5 + level / 2))
    weight = z * z / one.samples
    centre = (one.value + weight / 2) / (1 + weight)
    half = z * math.sqrt(one.value * (1 - one.value) / one.samples + weight / one.samples / 4) / (1 + weight)
    return max(0.0, centre - half), min(1.0, centre + half)


def least(old: Share, new: Share, alpha: float) -> float:
    """Return the least difference whose two-sided normal p is *alpha*."""
    return float(ndtri(1 - alpha / 2)) * standard_error(old, new)


def _pooled(old: Share, new: Share) -> float:
    return (old.value * old.samples + new.value * new.samples) / (old.samples + new.samples)


def _fewest(old: Share, new: Share) -> float:
    pooled = _pooled(old, new)
    return min(old.samples, new.samples) * min(pooled, 1 - pooled)


def _fisher(old: Share, new: Share) -> float:
    asked = [round(side.samples) for side in (old, new)]
    return _exact(*(round(side.value * count) for side, count in zip((old, new), asked, strict=True)), *asked)


@lru_cache(maxsize=65_536)
def _exact(right: int, right_too: int, asked: int, asked_too: int) -> float:
    """Return Fisher's two-sided p; a millisecond each, and few answers make few tables."""
    from scipy.stats import fisher_exact  # takes half a second to import, and is seldom needed

    return min(1.0, float(fisher_exact([[right, asked - right], [right_too, asked_too - right_too]]).pvalue))
