"""Is one point fit for comparison?

Measured on real repeats of one image (docs/architecture.md, detection): a mean TTFT of three times the median alone is common
and mostly harmless; it spoils the headline where the mean end-to-end latency is pulled away from its median as well, because
throughput of a closed loop is concurrency over *mean* latency. Medians stay, so the steady-state view stays.

What a record tells of its own making is looked at as well: how many requests failed, whether the lengths that were sent and came
are those that were asked for, and whether there was enough of it. What it does not tell is not held against it.
"""

from __future__ import annotations

import polars as pl

TTFT_RATIO = 3.0
"""Mean over median TTFT from which the first burst shows."""
E2EL_UNFIT = 1.10
"""Mean over median end-to-end latency from which the reported throughput is not comparable."""
E2EL_SUSPECT = 1.05
"""… from which it is doubtful."""
FAILED_SUSPECT = 0.01
"""Share of failed requests from which latencies are doubtful: they are of the others alone, and one in a hundred makes a p99."""
FAILED_UNFIT = 0.05
"""… from which the point is not comparable. InferenceX lets a job fail beyond it, but its record is uploaded by then."""
TOKENS_SUSPECT = (0.7, 1.25)
"""Mean over nominal length from which on it is doubtful. Draws from [0.8 L, L] (InferenceX) have a mean of 0.9 L, from [L/2, L]
one of 0.75 L; two tokenizers count one text within some 20 % of each other (0.82 to 1.15 in real records of LLMPerf)."""
TOKENS_UNFIT = (0.5, 2.0)
"""… from which on it was another load. A wrong tokenizer once sent five times the prompt."""
TEMPLATE_TOKENS = 128
"""Input tokens beyond the nominal length that a chat template may add; 31 to 93 in real records."""
LEAST_ROUNDS = 2
"""Requests for each place of a closed loop below which it hardly ever ran full: filling and draining take one."""
LEAST_REQUESTS = 10
"""Requests below which a median is luck, whatever the load."""
SHORT_S = 10.0
"""Duration, s, below which a hitch of 0.3 s (connecting, garbage collection) is as large as the 3 % that make a shift."""

COLD_START = "cold_start"
LATENCY_SKEW = "latency_skew"
COLD_START_UNKNOWN = "cold_start_unknown"
FAILURES = "failures"
LENGTHS = "token_mismatch"
FEW_REQUESTS = "few_requests"
SHORT = "short"
NO_TAIL = "percentiles_missing"
WORDS = {
    COLD_START: "cold start",
    LATENCY_SKEW: "latency skew",
    COLD_START_UNKNOWN: "cold start unknown (TTFT or end-to-end latency lacks its mean or median)",
    FAILURES: "failed requests (latencies are of the others alone)",
    LENGTHS: "token mismatch (lengths are not those that were asked for)",
    FEW_REQUESTS: "few requests",
    SHORT: "short measurement",
    NO_TAIL: "percentiles missing (no p99 of TTFT or of the time between tokens: nothing is known of the slow ones)",
}
"""Every reason in words, in the order in which they are told."""

_MADE_TO_LENGTH = r"^(?:random|random-ids|synthetic|sonnet|shared_prefix)(?:[ ,;]|$)"
"""Workloads whose prompts are made to a length; any other name may be a data set of natural lengths."""
_UP_TO = ".."
"""Stands in the name of a workload whose lengths are drawn from a range that ends at the nominal one (`random 0.0..1.0`)."""
_AT_ONCE = ("burst", "offline", "batch")
"""Arrivals where all requests are sent at once: their number is the load itself."""
_UNLOOPED = ("offline", "batch")
"""Arrivals whose throughput follows from no latency of single requests."""
_VERDICTS = pl.Series(("fit", "suspect", "unfit"), dtype=pl.String)
_LISTS = pl.Series(
    [[name for bit, name in enumerate(WORDS) if code >> bit & 1] for code in range(2 ** len(WORDS))], dtype=pl.List(pl.String)
)
"""Reasons by the number whose bits they are. They are looked up, because a million lists take a second to build."""


def judge(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* with `health` (reasons, empty where all is well) and `verdict` (fit, suspect, unfit).

    cold_start: the first burst waited (mean TTFT ≥ 3 × median) and sits in the mean (mean e2el ≥ 1.05 × median; unfit from 1.1).
    latency_skew: the means are pulled as far (≥ 1.1), but TTFT does not explain it; suspect.
    cold_start_unknown: a mean or a median that would tell is missing; told, and not held against the point.
    failures: requests failed; suspect from 1 % (or where it is not told of how many), unfit from 5 %.
    token_mismatch: a mean length at 0.7 or 1.25 times the nominal one or beyond; suspect; unfit from 0.5 and 2. Of prompts that
    are made to a length only; where lengths are drawn up to the nominal one, short is right; a chat template may add 128 tokens;
    in a conversation the input grows with every turn, so of it the output alone is judged.
    few_requests: fewer than ten succeeded, or than two for each place of a closed loop; suspect.
    short: under ten seconds; suspect. A single batch is timed by itself and may be as short as it likes.
    percentiles_missing: no p99 of TTFT, or neither of TPOT nor of ITL; told, and not held against the point.
    """
    facts = points.select(**_facts())
    bits = {name: _sure(flag).cast(pl.UInt32) * 2**bit for bit, (name, flag) in enumerate(_reasons().items())}
    grades = {"suspect": _sure(_suspect()).cast(pl.UInt32), "unfit": _sure(_unfit()).cast(pl.UInt32) * 2}
    return points.with_columns(
        health=_LISTS.gather(facts.select(**bits).sum_horizontal()),
        verdict=_VERDICTS.gather(facts.select(**grades).max_horizontal()),
    )


def _facts() -> dict[str, pl.Expr]:
    """Return the numbers that the rules are about, from columns of `points`; null where a record does not tell."""
    failed = pl.when(pl.col("requests_failed") >= 0).then(pl.col("requests_failed"))
    arrival, workload = pl.col("arrival"), pl.col("workload")
    made_to_length = workload.str.contains(_MADE_TO_LENGTH).fill_null(True)
    single_turn, turns = (pl.col("scenario") == name for name in ("fixed-seq-len", "multi-turn"))
    return {
        "ttft": _ratio("ttft_mean", "ttft_median"),
        "e2el": _ratio("e2el_mean", "e2el_median"),
        "failed": failed,
        "share": pl.when(failed.is_not_null()).then(_ratio("requests_failed", "requests")),
        "done": pl.col("requests") - failed.fill_null(0),
        "input": pl.when(made_to_length & single_turn).then(_ratio("isl_mean", "isl")),
        "output": pl.when(made_to_length & (single_turn | turns)).then(_ratio("osl_mean", "osl")),
        "added": pl.col("isl_mean") - pl.col("isl"),
        "drawn": workload.str.contains(_UP_TO, literal=True).fill_null(False),
        "places": pl.when(arrival.is_null()).then(pl.col("concurrency")),
        "at_once": arrival.is_in(_AT_ONCE).fill_null(False),
        "unlooped": arrival.is_in(_UNLOOPED).fill_null(False),
        "tails": pl.col("ttft_p99").is_not_null() & pl.any_horizontal(pl.col("tpot_p99", "itl_p99").is_not_null()),
        "duration": pl.when(arrival.ne_missing("batch")).then(pl.col("duration_s")),
    }


def _reasons() -> dict[str, pl.Expr]:
    """Return what shows each reason, in the order of WORDS."""
    ttft, e2el, done = pl.col("ttft"), pl.col("e2el"), pl.col("done")
    burst = _sure(ttft >= TTFT_RATIO)
    return {
        COLD_START: burst & (e2el >= E2EL_SUSPECT),
        LATENCY_SKEW: ~burst & (e2el >= E2EL_UNFIT),
        COLD_START_UNKNOWN: ~pl.col("unlooped") & (e2el.is_null() | (ttft.is_null() & (e2el >= E2EL_SUSPECT))),
        FAILURES: pl.col("failed") > 0,
        LENGTHS: _outside(TOKENS_SUSPECT),
        FEW_REQUESTS: _sure(done < LEAST_ROUNDS * pl.col("places")) | (~pl.col("at_once") & (done < LEAST_REQUESTS)),
        SHORT: pl.col("duration") < SHORT_S,
        NO_TAIL: ~pl.col("unlooped") & ~pl.col("tails"),
    }


def _suspect() -> pl.Expr:
    reasons = _reasons()
    doubtful = (reasons[name] for name in (COLD_START, LATENCY_SKEW, LENGTHS, FEW_REQUESTS, SHORT))
    unshared = pl.col("share").is_null() | (pl.col("share") >= FAILED_SUSPECT)
    return pl.any_horizontal(reasons[FAILURES] & unshared, *doubtful)


def _unfit() -> pl.Expr:
    cold = _reasons()[COLD_START] & (pl.col("e2el") >= E2EL_UNFIT)
    return pl.any_horizontal(cold, pl.col("share") >= FAILED_UNFIT, _outside(TOKENS_UNFIT))


def _outside(bounds: tuple[float, float]) -> pl.Expr:
    """Say whether a mean length stands at one of two multiples of the nominal one, or beyond."""
    least, most = bounds
    lengths = pl.col("input"), pl.col("output")
    short = ~pl.col("drawn") & pl.any_horizontal(length <= least for length in lengths)
    long = ((lengths[0] >= most) & (pl.col("added") > TEMPLATE_TOKENS)), lengths[1] >= most
    return pl.any_horizontal(_sure(short), *map(_sure, long))


def _sure(flag: pl.Expr) -> pl.Expr:
    """What is not known does not hold."""
    return flag.fill_null(False)


def _ratio(above: str, below: str) -> pl.Expr:
    """Return one column over another; null where one is missing or both are zero (polars orders NaN above every number)."""
    return (pl.col(above) / pl.col(below)).fill_nan(None)
