"""Fitness of one point: every boundary, and what is missing or zero. Numbers follow the rule in words, by hand."""

import polars as pl
import pytest

from pipelines.detect import health

COLUMNS = ("ttft_mean", "ttft_median", "e2el_mean", "e2el_median")


def judged(*values):
    frame = pl.DataFrame([dict(zip(COLUMNS, values, strict=True))], schema=dict.fromkeys(COLUMNS, pl.Float64))
    row = health.judge(frame).row(0, named=True)
    return row["health"], row["verdict"]


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


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((None, 1.0, 2.0, 1.0), (["latency_skew"], "suspect")),
        ((6.0, None, 2.0, 1.0), (["latency_skew"], "suspect")),
        ((6.0, 1.0, None, 1.0), ([], "fit")),
        ((6.0, 1.0, 2.0, None), ([], "fit")),
        ((None, None, None, None), ([], "fit")),
        # A median of zero under a mean above it is a burst without bound; nothing over nothing says nothing.
        ((6.0, 0.0, 1.2, 1.0), (["cold_start"], "unfit")),
        ((0.0, 0.0, 1.0, 1.0), ([], "fit")),
        ((0.0, 0.0, 1.2, 1.0), (["latency_skew"], "suspect")),
        ((6.0, 1.0, 0.0, 0.0), ([], "fit")),
        ((float("nan"), 1.0, 1.2, 1.0), (["latency_skew"], "suspect")),
        ((6.0, 1.0, float("nan"), 1.0), ([], "fit")),
    ],
)
def test_missing_and_zero(values, expected):
    assert judged(*values) == expected


def test_the_pair_of_the_design_document():
    # SGLang v0.5.6 on B200 at concurrency 8: mean TTFT 6.4 s over a median of 0.5 s; the mean latency was pulled along.
    assert judged(6.4, 0.5, 18.4, 12.4) == (["cold_start"], "unfit")


def test_no_points():
    empty = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Float64))
    result = health.judge(empty)
    assert result.height == 0
    assert result.schema["health"] == pl.List(pl.String)
    assert result.schema["verdict"] == pl.String
