"""Claimed speed-ups: which numbers are some, of what, how large, in which direction."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.gains import MAX_GAINS, MAX_WORDS, gains

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("18.1% throughput improvement", [("throughput", 18.1, 18.1)]),
        ("2.2% throughput, 10.8% TTFT", [("throughput", 2.2, 2.2), ("ttft", 10.8, 10.8)]),
        ("up to 1.8x faster decode", [(None, None, 80.0)]),
        ("reduce TTFT by 20-30%", [("ttft", 20.0, 30.0)]),
        ("12 % lower TPOT", [("tpot", 12.0, 12.0)]),
        ("cutting TTFT by ~78% and TPOT by ~34.88%", [("ttft", 78.0, 78.0), ("tpot", 34.88, 34.88)]),
        ("30.8% E2E throughput gain and 31.8% TPOT gain", [("throughput", 30.8, 30.8), ("tpot", 31.8, 31.8)]),
        ("boosts performance by 3x-5x", [(None, 200.0, 400.0)]),
        ("1.8x of the baseline throughput", [("throughput", 80.0, 80.0)]),
        ("1.07x throughput", [("throughput", 7.0, 7.0)]),
        ("1.9%~5.0% throughput improvement", [("throughput", 1.9, 5.0)]),
        ("1.5\u00d7\u20132\u00d7 throughput", [("throughput", 50.0, 100.0)]),
        ("2x lower latency", [("latency", 50.0, 50.0)]),
        ("TTFT is 4x faster", [("ttft", 75.0, 75.0)]),
        ("2.1% E2E latency improvement", [("e2e", 2.1, 2.1)]),
        ("speeds decoding up by 12 percent", []),
        ("a speed-up of 12 percent", [(None, 12.0, 12.0)]),
        ("20% memory reduction", [("memory", 20.0, 20.0)]),
        ("throughput +15%", [("throughput", 15.0, 15.0)]),
        ("TTFT -12%", [("ttft", 12.0, 12.0)]),
        ("tokens/s per GPU up 5%", [("throughput", 5.0, 5.0)]),
    ],
)
def test_improvements(text: str, expected: list[tuple[str | None, float | None, float]]) -> None:
    assert [(gain.metric, gain.low_pct, gain.high_pct) for gain in gains(text)] == expected


@pytest.mark.parametrize(
    ("text", "metric", "percent"),
    [
        ("causes a 5% throughput regression", "throughput", -5.0),
        ("TTFT increases by 12%", "ttft", -12.0),
        ("3% slower on older cards", None, -3.0),
        ("throughput -3%", "throughput", -3.0),
        ("throughput drops by 7%", "throughput", -7.0),
        ("8% higher TPOT", "tpot", -8.0),
        ("uses 10% more memory", "memory", -10.0),
        ("Fix a 10% throughput regression", "throughput", 10.0),
    ],
)
def test_losses_and_mended_ones(text: str, metric: str | None, percent: float) -> None:
    (gain,) = gains(text)
    assert (gain.metric, gain.high_pct, gain.better) == (metric, percent, percent > 0)


@pytest.mark.parametrize(
    "text",
    [
        "test coverage raised to 95%",
        "accuracy 95 % on a benchmark",
        "100% compatible with the OpenAI API",
        "recovers accuracy from 54% to 72%",
        "90% of peak throughput",
        "acceptance rate of 70%",
        "tuned configs for 8x B200 throughput runs",
        "serves on 4x GPUs with good performance",
        "16x16 tiles",
        "SM12x kernels are faster",
        "s390x builds are faster",
        "MXFP8xMXFP4 performance",
        "binary size down by 30%",
        "request count down by ~1000x",
        "up to 3x faster weight loading",
        "50% faster CI",
        "[Perf] pad to 4x for most cases",
        "474 commits from 213 contributors",
        "0% throughput",
        "",
    ],
)
def test_numbers_that_are_no_gains(text: str) -> None:
    assert gains(text) == ()


def test_a_part_of_the_work_is_told_apart_from_serving() -> None:
    assert [gain.of_part for gain in gains("97.9% kernel level latency reduction, 2.1% TTFT improvement")] == [True, False]
    assert gains("2.0x kernel performance improvement")[0].factor == 2.0


def test_a_larger_factor_is_kept() -> None:
    (gain,) = gains("1.5~2x faster")
    assert (gain.factor, gain.low_pct, gain.high_pct) == (2.0, 50.0, 100.0)


def test_the_titles_of_real_commits() -> None:
    """Titles that state a gain in one fixed form: each is found, with the number that stands in front of those words."""
    source = DATA / "vllm_commits_main_2025-07_2026-08.jsonl.gz"
    if not source.exists():
        pytest.skip(f"{source} is absent")
    with gzip.open(source, "rt") as lines:
        titles = [json.loads(line)["subject"] for line in lines if "hroughput" in line and "%" in line]
    stated = [title for title in titles if "% E2E throughput improvement" in title.replace("Throughput I", "throughput i")]
    assert len(stated) >= 15
    for title in stated:
        first = next(gain for gain in gains(title) if gain.metric == "throughput")
        assert first.better and f"{first.high_pct:g}" in title.replace(".0%", "%"), title


_WORDS = st.sampled_from(
    [
        "5%",
        "1.8x",
        "20-30%",
        "throughput",
        "TTFT",
        "faster",
        "by",
        "of",
        "reduce",
        "up to",
        "and",
        ",",
        "accuracy",
        "(",
        ")",
        "+",
        "~",
        "fix",
    ]
)


@given(st.lists(_WORDS | st.text(max_size=8), max_size=40).map(" ".join))
def test_any_text_gives_bounded_claims(text: str) -> None:
    found = gains(text)
    assert len(found) <= MAX_GAINS
    for gain in found:
        assert 0 < abs(gain.high_pct) <= 10_000 and len(gain.words) <= MAX_WORDS
        assert gain.low_pct is None or abs(gain.low_pct) <= abs(gain.high_pct)
        assert gain.low_pct is None or gain.low_pct * gain.high_pct >= 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30% lower TTFT, 1.5x throughput", {"ttft": 30.0, "throughput": 50.0}),
        ("lower latency and 1.5x throughput", {"throughput": 50.0}),
        ("reduce memory 20%, 1.3x throughput", {"memory": 20.0, "throughput": 30.0}),
        ("TTFT reduced 30%, throughput +20%", {"ttft": 30.0, "throughput": 20.0}),
        ("reduces overhead, 1.3x throughput", {"throughput": 30.0}),
        ("Reduce overhead: 12% throughput", {"throughput": 12.0}),
        ("throughput drops by 10%, TTFT 20% higher", {"throughput": -10.0, "ttft": -20.0}),
        ("less padding, but throughput is 5% lower", {"throughput": -5.0}),
    ],
)
def test_what_another_clause_says_turns_no_sign(text: str, expected: dict[str, float]) -> None:
    assert {gain.metric: gain.high_pct for gain in gains(text)} == expected
