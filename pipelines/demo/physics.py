"""A closed-loop model of one benchmark point: all its metrics follow from two latencies, so that they agree.

Belongs here: formulas. Does not: how fast a stack is (`fleet`, `timeline`) or how it scatters (`noise`).

The client keeps `concurrency` requests in flight until 10 x concurrency are done. Little's law then gives the
throughput: tokens of a request x requests in flight / mean end-to-end latency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LENGTH = 0.9
"""Mean length over nominal length: lengths are drawn between 0.8 and 1.0 of the nominal."""

IN_FLIGHT = 0.978
"""Mean requests in flight over concurrency; the rest is lost while the last requests drain."""

BURST_SHARE = 0.1
"""Share of requests in the first burst: concurrency of 10 x concurrency."""


@dataclass(frozen=True)
class Latency:
    """Median latencies of one point (s), and the small departures of its other statistics (factors near 1)."""

    ttft_s: float
    tpot_s: float
    ttft_mean: float
    tpot_mean: float
    tail: float


@dataclass(frozen=True)
class Load:
    """What the client does: nominal lengths (tokens), concurrency (requests), GPUs, tokens per streamed chunk."""

    isl: int
    osl: int
    concurrency: int
    gpus: int
    chunk: int = 1


def undisturbed_tpot(tpot_s: float, saturation: float, concurrency: int, isl: int) -> float:
    """Return the median time per output token (s) at *concurrency*: batches grow, and prefills of long prompts interrupt."""
    interruption = 1 + 0.04 * (isl / 1024 - 1) * concurrency / (concurrency + saturation)
    return tpot_s * (1 + math.pow(concurrency / saturation, 0.8)) * interruption


def undisturbed_ttft(ttft_s: float, concurrency: int, isl: int) -> float:
    """Return the median time to first token (s); a long prompt costs less than its share, because short ones fill no GPU."""
    return ttft_s * math.pow(isl / 1024, 0.6) * (1 + concurrency / 90)


def metrics(load: Load, latency: Latency, first_wait_s: float = 0.0) -> dict[str, float]:
    """Return every metric of a record (s, tok/s/GPU, tok/s/user); the first burst waits *first_wait_s* more.

    The wait sits in means, spreads and 99th percentiles of TTFT and end-to-end latency; no median moves.
    """
    ttft = _ttft(latency, first_wait_s)
    tpot = _tpot(load, latency)
    e2el = _e2el(load, ttft, tpot, first_wait_s)
    served = IN_FLIGHT * load.concurrency * LENGTH / e2el["mean"] / load.gpus
    return {
        "tput_per_gpu": served * (load.isl + load.osl),
        "output_tput_per_gpu": served * load.osl,
        "input_tput_per_gpu": served * load.isl,
        **_named(ttft, "ttft"),
        **_interactive(tpot),
        **_named(_itl(load, tpot, latency.tail), "itl"),
        **_named(e2el, "e2el"),
    }


def _named(values: dict[str, float], family: str) -> dict[str, float]:
    return {f"{statistic}_{family}": value for statistic, value in values.items()}


def _interactive(tpot: dict[str, float]) -> dict[str, float]:
    """TPOT and its inverse, interleaved as records have them; `std_intvty` is nonsense in real records, too."""
    row: dict[str, float] = {}
    for statistic, value in tpot.items():
        row[f"{statistic}_tpot"] = value
        row[f"{statistic}_intvty"] = 1 / value
    return row


def _mixed_spread(spread: float, wait_s: float) -> float:
    """Standard deviation of a mixture in which BURST_SHARE of the requests wait *wait_s* longer."""
    return math.hypot(spread, math.sqrt(BURST_SHARE * (1 - BURST_SHARE)) * wait_s)


def _ttft(latency: Latency, wait_s: float) -> dict[str, float]:
    median = latency.ttft_s
    return {
        "mean": median * latency.ttft_mean + BURST_SHARE * wait_s,
        "median": median,
        "std": _mixed_spread(0.6 * median * latency.tail, wait_s),
        "p99": max(3.4 * median * latency.tail, 1.04 * wait_s + median),
    }


def _tpot(load: Load, latency: Latency) -> dict[str, float]:
    spread = 0.02 + 0.005 * load.isl / 1024
    return {
        "mean": latency.tpot_s * latency.tpot_mean,
        "median": latency.tpot_s,
        "std": latency.tpot_s * spread * latency.tail,
        "p99": latency.tpot_s * (1 + 2.2 * spread * latency.tail),
    }


def _itl(load: Load, tpot: dict[str, float], tail: float) -> dict[str, float]:
    gap = tpot["mean"] * load.chunk
    return {"mean": gap, "median": gap * 0.93, "std": gap * 0.45 * tail, "p99": gap * (1.2 + 1.4 * tail)}


def _e2el(load: Load, ttft: dict[str, float], tpot: dict[str, float], wait_s: float) -> dict[str, float]:
    steps = LENGTH * load.osl - 1
    mean = ttft["mean"] + tpot["mean"] * steps
    median = ttft["median"] + tpot["median"] * steps
    spread = math.hypot(0.065, tpot["std"] / tpot["median"])
    return {
        "mean": mean,
        "median": median,
        "std": _mixed_spread(median * spread, wait_s),
        "p99": max(median * (1 + 2.2 * spread), median * 1.05 + wait_s),
    }
