"""Is one point fit for comparison?

Measured on real repeats of one image (docs/architecture.md, detection): a mean TTFT of three times the median alone is common
and mostly harmless; it spoils the headline where the mean end-to-end latency is pulled away from its median as well, because
throughput of a closed loop is concurrency over *mean* latency. Medians stay, so the steady-state view stays.
"""

from __future__ import annotations

import polars as pl

TTFT_RATIO = 3.0
"""Mean over median TTFT from which the first burst shows."""
E2EL_UNFIT = 1.10
"""Mean over median end-to-end latency from which the reported throughput is not comparable."""
E2EL_SUSPECT = 1.05
"""… from which it is doubtful."""

COLD_START = "cold_start"
LATENCY_SKEW = "latency_skew"


def judge(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* with `health` (reasons, empty where all is well) and `verdict` (fit, suspect, unfit).

    cold_start: the first burst waited (mean TTFT ≥ 3 × median) and sits in the mean (mean e2el ≥ 1.05 × median; unfit from 1.1).
    latency_skew: the means are pulled as far (≥ 1.1), but TTFT does not explain it; suspect.
    """
    ttft = _ratio("ttft")
    e2el = _ratio("e2el")
    burst = (ttft >= TTFT_RATIO).fill_null(False)
    cold = burst & (e2el >= E2EL_SUSPECT).fill_null(False)
    skew = ~burst & (e2el >= E2EL_UNFIT).fill_null(False)
    reasons = [pl.when(flag).then(pl.lit(name)) for flag, name in ((cold, COLD_START), (skew, LATENCY_SKEW))]
    return points.with_columns(
        health=pl.concat_list(reasons).list.drop_nulls(),
        verdict=pl.when(cold & (e2el >= E2EL_UNFIT))
        .then(pl.lit("unfit"))
        .when(cold | skew)
        .then(pl.lit("suspect"))
        .otherwise(pl.lit("fit")),
    )


def _ratio(family: str) -> pl.Expr:
    """Mean over median of a latency; null where one is missing or both are zero (polars orders NaN above every number)."""
    return (pl.col(f"{family}_mean") / pl.col(f"{family}_median")).fill_nan(None)
