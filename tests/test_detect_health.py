"""Fitness of one point: every boundary, and what is missing or zero. Numbers follow the rule in words, by hand."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect import health
from pipelines.report import words
from warehouse.schemas import POINTS

COLUMNS = ("ttft_mean", "ttft_median", "e2el_mean", "e2el_median")
SOUND = {
    "ttft_mean": 0.5,
    "ttft_median": 0.5,
    "e2el_mean": 8.0,
    "e2el_median": 8.0,
    "ttft_p99": 0.6,
    "tpot_p99": 0.009,
    "scenario": "fixed-seq-len",
    "isl": 1000,
    "osl": 1000,
    "isl_mean": 1000.0,
    "osl_mean": 1000.0,
    "concurrency": 10,
    "requests": 100,
    "requests_failed": 0,
    "duration_s": 60.0,
}
UNTOLD = dict.fromkeys(("requests", "requests_failed", "duration_s", "isl_mean", "osl_mean"))


def judged_rows(*rows):
    schema = {name: dtype for name, dtype in POINTS.schema.items() if name not in ("health", "verdict")}
    return health.judge(pl.DataFrame([dict.fromkeys(schema) | row for row in rows], schema=schema))


def judged_row(**values):
    row = judged_rows(SOUND | values).row(0, named=True)
    return row["health"], row["verdict"]


def judged(*values):
    return judged_row(**dict(zip(COLUMNS, values, strict=True)))


@pytest.mark.parametrize(
    ("ttft", "e2el", "expected"),
    [
        # The first burst alone is harmless.
        (3.0, 1.0, ([], "fit")),
        (50.0, 1.03, ([], "fit")),
        (3.0, 1.0499, ([], "fit")),
        # From 1.05 it is doubtful, from 1.1 the headline is not comparable; both ends belong to the worse side.
        (3.0, 1.05, (["cold_start"], "suspect")),
        (3.0, 1.0999, (["cold_start"], "suspect")),
        (3.0, 1.1, (["cold_start"], "unfit")),
        (12.8, 1.6, (["cold_start"], "unfit")),
        # Without the burst the same pull is a skew: doubtful, from 1.1 on.
        (2.999, 1.0999, ([], "fit")),
        (2.999, 1.1, (["latency_skew"], "suspect")),
        (1.0, 2.0, (["latency_skew"], "suspect")),
    ],
)
def test_boundaries(ttft, e2el, expected):
    assert judged(ttft, 1.0, e2el, 1.0) == expected


UNKNOWN = (["cold_start_unknown"], "fit")
SKEWED = (["latency_skew"], "suspect")
SKEWED_OR_COLD = (["latency_skew", "cold_start_unknown"], "suspect")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((None, 1.0, 2.0, 1.0), SKEWED_OR_COLD),
        ((6.0, None, 2.0, 1.0), SKEWED_OR_COLD),
        ((6.0, 1.0, None, 1.0), UNKNOWN),
        ((6.0, 1.0, 2.0, None), UNKNOWN),
        ((None, None, None, None), UNKNOWN),
        # Whatever the TTFT was, it did not reach the end-to-end mean; from 1.05 on it may be what did.
        ((None, None, 1.0499, 1.0), ([], "fit")),
        ((None, None, 1.05, 1.0), UNKNOWN),
        # A median of zero under a mean above it is a burst without bound; nothing over nothing says nothing.
        ((6.0, 0.0, 1.2, 1.0), (["cold_start"], "unfit")),
        ((0.0, 0.0, 1.0, 1.0), ([], "fit")),
        ((0.0, 0.0, 1.2, 1.0), SKEWED_OR_COLD),
        ((6.0, 1.0, 0.0, 0.0), UNKNOWN),
        ((float("nan"), 1.0, 1.2, 1.0), SKEWED_OR_COLD),
        ((6.0, 1.0, float("nan"), 1.0), UNKNOWN),
    ],
)
def test_missing_and_zero(values, expected):
    assert judged(*values) == expected


@pytest.mark.parametrize(
    ("arrival", "expected"), [("offline", ([], "fit")), ("batch", ([], "fit")), ("burst", UNKNOWN), ("poisson", UNKNOWN)]
)
def test_where_no_request_is_timed_there_is_no_cold_start_to_ask_for(arrival, expected):
    assert judged_row(arrival=arrival, **dict.fromkeys(COLUMNS)) == expected


def test_the_pair_of_the_design_document():
    # SGLang v0.5.6 on B200 at concurrency 8: mean TTFT 6.4 s over a median of 0.5 s; the mean latency was pulled along.
    assert judged(6.4, 0.5, 18.4, 12.4) == (["cold_start"], "unfit")


def test_a_sound_point_is_fit_and_what_it_does_not_tell_is_not_held_against_it():
    assert judged_row() == ([], "fit")
    assert judged_row(**UNTOLD) == ([], "fit")
    assert judged_row(**dict.fromkeys((*UNTOLD, "isl", "osl", "scenario", "concurrency"))) == ([], "fit")


@pytest.mark.parametrize(
    ("sent", "failed", "expected"),
    [
        (1000, 0, ([], "fit")),
        (1000, None, ([], "fit")),
        (1000, 1, (["failures"], "fit")),  # told, and no more
        (1000, 9, (["failures"], "fit")),
        (1000, 10, (["failures"], "suspect")),
        (1000, 49, (["failures"], "suspect")),
        (1000, 50, (["failures"], "unfit")),
        (None, 0, ([], "fit")),
        (None, 3, (["failures"], "suspect")),  # three of how many?
        (0, 0, (["few_requests"], "suspect")),
    ],
)
def test_failed_requests(sent, failed, expected):
    assert judged_row(requests=sent, requests_failed=failed) == expected


MISMATCH, OTHER_LOAD = (["token_mismatch"], "suspect"), (["token_mismatch"], "unfit")


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (0.0, OTHER_LOAD),
        (0.5, OTHER_LOAD),
        (0.501, MISMATCH),
        (0.7, MISMATCH),
        (0.701, ([], "fit")),
        (0.75, ([], "fit")),  # drawn from half the nominal length up
        (0.9, ([], "fit")),  # InferenceX: from 0.8 of it up
        (1.249, ([], "fit")),
        (1.25, MISMATCH),
        (1.999, MISMATCH),
        (2.0, OTHER_LOAD),
        (5.0, OTHER_LOAD),  # the tokenizer of transformers 5
    ],
)
@pytest.mark.parametrize("side", ["isl", "osl"])
def test_lengths_against_the_nominal_ones(side, ratio, expected):
    assert judged_row(**{f"{side}_mean": 1000 * ratio}) == expected


def test_a_chat_template_may_add_to_a_short_prompt_and_to_no_output():
    assert judged_row(isl=32, isl_mean=124.6) == ([], "fit")  # as AIPerf measured it
    assert judged_row(isl=32, isl_mean=160.0) == ([], "fit")
    assert judged_row(isl=32, isl_mean=160.5) == OTHER_LOAD
    assert judged_row(osl=32, osl_mean=124.6) == OTHER_LOAD


@pytest.mark.parametrize("workload", ["random", "random-ids", "synthetic", "synthetic, isl ±10", "sonnet, deviation 9, 9"])
def test_prompts_that_are_made_to_a_length_are_judged_by_it(workload):
    assert judged_row(workload=workload, isl_mean=5000.0) == OTHER_LOAD


@pytest.mark.parametrize(
    "workload", ["sharegpt", "random-mm", "synthetic.jsonl", "prompts.jsonl", "mooncake_trace", "lengths up to 9"]
)
def test_natural_lengths_are_not_judged(workload):
    assert judged_row(workload=workload, isl_mean=5000.0, osl_mean=10.0) == ([], "fit")


def test_of_lengths_drawn_up_to_the_nominal_one_only_the_upper_end_is_judged():
    # SGLang's default: from 0 to 1 times the nominal length, a mean of half of it.
    assert judged_row(workload="random-ids 0.0..1.0", isl_mean=480.0, osl_mean=510.0) == ([], "fit")
    assert judged_row(workload="random-ids 0.0..1.0", isl_mean=2400.0) == OTHER_LOAD


def test_the_input_of_a_conversation_grows_and_its_output_does_not():
    assert judged_row(scenario="multi-turn", isl_mean=5000.0) == ([], "fit")
    assert judged_row(scenario="multi-turn", osl_mean=5000.0) == OTHER_LOAD
    assert judged_row(scenario="agentic-coding", isl_mean=5000.0, osl_mean=5.0) == ([], "fit")


FEW = (["few_requests"], "suspect")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"concurrency": 10, "requests": 20}, ([], "fit")),
        ({"concurrency": 10, "requests": 19}, FEW),
        ({"concurrency": 1, "requests": 10}, ([], "fit")),
        ({"concurrency": 1, "requests": 9}, FEW),
        ({"concurrency": None, "request_rate": 4.0, "arrival": "poisson", "requests": 10}, ([], "fit")),
        ({"concurrency": None, "request_rate": 4.0, "arrival": "poisson", "requests": 9}, FEW),
        ({"concurrency": 24, "arrival": "burst", "requests": 24}, ([], "fit")),  # all at once: their number is the load
        ({"concurrency": 4, "arrival": "burst", "requests": 4}, ([], "fit")),
        ({"concurrency": 4, "arrival": "batch", "requests": 4}, ([], "fit")),
        ({"concurrency": 8192, "arrival": "offline", "requests": 8192}, ([], "fit")),
        # Of twenty that were sent the one that failed does not count.
        ({"concurrency": 10, "requests": 20, "requests_failed": 1}, (["failures", "few_requests"], "unfit")),
    ],
)
def test_few_requests(values, expected):
    assert judged_row(**values) == expected


def test_short():
    assert judged_row(duration_s=9.99) == (["short"], "suspect")
    assert judged_row(duration_s=10.0) == ([], "fit")
    assert judged_row(duration_s=0.3, arrival="burst") == (["short"], "suspect")
    assert judged_row(duration_s=0.3, arrival="batch") == ([], "fit")


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        ({"ttft_p99": None}, ["percentiles_missing"]),
        ({"tpot_p99": None}, ["percentiles_missing"]),
        ({"tpot_p99": None, "itl_p99": 0.02}, []),
        ({"ttft_p99": None, "tpot_p99": None, "arrival": "poisson"}, ["percentiles_missing"]),
        ({"ttft_p99": None, "tpot_p99": None, "arrival": "offline"}, []),
    ],
)
def test_missing_percentiles_are_told_and_not_held_against_the_point(values, reasons):
    assert judged_row(**values) == (reasons, "fit")


def test_all_at_once_is_told_in_one_order_and_the_worst_counts():
    found = judged_row(
        ttft_mean=6.4, e2el_mean=13.0, requests=8, requests_failed=1, isl_mean=5000.0, duration_s=1.0, concurrency=4
    )
    assert found == (["cold_start", "failures", "token_mismatch", "few_requests", "short"], "unfit")


def test_no_points():
    result = judged_rows()
    assert result.height == 0
    assert result.schema["health"] == pl.List(pl.String)
    assert result.schema["verdict"] == pl.String


def test_every_reason_has_words_wherever_it_is_told():
    for reason, text in health.WORDS.items():
        assert words.finding(reason) == text
        assert "_" not in text


numbers = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 5)
counts = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)
ROWS = st.fixed_dictionaries(
    {
        **dict.fromkeys((*COLUMNS, "ttft_p99", "itl_p99", "duration_s", "isl_mean", "osl_mean"), numbers),
        **dict.fromkeys(("isl", "osl", "requests", "requests_failed", "concurrency"), counts),
        "scenario": st.sampled_from([None, "fixed-seq-len", "multi-turn", "mlperf-server"]),
        "workload": st.sampled_from([None, "random", "random 0.5..1.0", "sharegpt"]) | st.text(max_size=8),
        "arrival": st.sampled_from([None, "burst", "offline", "batch", "poisson"]),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_any_row_is_judged_and_each_by_itself(rows):
    together = judged_rows(*rows).select("health", "verdict").rows()
    assert together == [judged_rows(row).select("health", "verdict").row(0) for row in rows]
    for reasons, verdict in together:
        assert [reason for reason in health.WORDS if reason in reasons] == reasons
        assert verdict in ("fit", "suspect", "unfit")
        assert reasons or verdict == "fit"


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.floats(0.01, 5)] * 4))
def test_what_newer_columns_do_not_tell_changes_no_verdict(values):
    """The rule before there were such columns, told plainly."""
    ttft, e2el = values[0] / values[1], values[2] / values[3]
    cold, skew = ttft >= 3 and e2el >= 1.05, ttft < 3 and e2el >= 1.1
    expected = "unfit" if cold and e2el >= 1.1 else "suspect" if cold or skew else "fit"
    row = judged_rows(SOUND | UNTOLD | dict(zip(COLUMNS, values, strict=True))).row(0, named=True)
    assert (row["health"], row["verdict"]) == (["cold_start"] if cold else ["latency_skew"] if skew else [], expected)
