"""Numbers, names and the confidence sentence of the page, against texts written by hand."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report import sentences, words
from tests import frames


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-6.14, "−6.1 %"),
        (4.0, "+4.0 %"),
        (0.04, "0.0 %"),
        (-0.04, "0.0 %"),
        (-0.05001, "−0.1 %"),
        (1234.5, "+1,234.5 %"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_a_percentage_has_a_true_minus_one_decimal_and_a_sign_unless_it_is_nothing(value, text):
    assert words.percent(value).replace("\u00a0", " ") == text


@given(st.floats(-1e6, 1e6))
def test_the_sign_of_a_percentage_is_the_sign_of_its_value(value):
    shown = words.percent(value)
    number = float(shown.removesuffix("\u00a0%").replace("−", "-").replace(",", ""))
    assert abs(number - value) <= 0.05 + 1e-9 * abs(value)
    assert "-" not in shown and (not number or shown[0] == ("+" if value > 0 else "−"))


def test_scale_turns_a_log_ratio_into_the_change_that_it_stands_for():
    assert words.scale(math.log(1.06)).replace("\u00a0", " ") == "6.0 %"
    assert words.scale(None) == "–"


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (words.interval, (-7.4, -4.9), "−7.4 … −4.9 %"),
        (words.interval, (None, 1.0), "–"),
        (words.count, (12345, "run"), "12,345 runs"),
        (words.count, (1, "concurrency", "concurrencies"), "1 concurrency"),
        (words.probability, (0.00001,), "< 0.0001"),
        (words.probability, (0.0341,), "0.034"),
        (words.gap, (0.25,), "6.0 hours"),
        (words.gap, (3.0,), "3.0 days"),
        (words.instant, (frames.START,), "2026-01-01 06:00 UTC"),
        (words.instant, (None,), "–"),
        (words.metric, ("tpot_median",), "Median TPOT"),
        (words.metric, ("e2el_p99",), "P99 end-to-end latency"),
        (words.metric, ("power_w",), "power_w"),
        (words.hardware, ("mi355x",), "MI355X"),
        (words.engine, ("trtllm",), "TensorRT-LLM"),
        (words.engine, ("newengine",), "newengine"),
        (words.arrow, (-1.0,), "▼"),
        (words.arrow, (0.0,), "="),
        (words.arrow, (None,), "="),
    ],
)
def test_formats(function, value, text):
    assert function(*value).replace("\u00a0", " ") == text


@given(st.text(max_size=200))
def test_plain_text_keeps_no_character_that_controls_hides_or_reorders(text):
    shown = words.plain(text)
    assert not [
        c
        for c in shown
        if unicodedata.category(c) in ("Cc", "Cs")
        or unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")
    ]
    assert words.plain(shown) == shown
    shown.encode("utf-8")


def test_plain_text_is_cut_and_stays_on_one_line():
    assert words.plain("a\nb\tc\r\nd") == "a b c d"
    assert words.plain("x" * 50, 10) == "x" * 9 + "…"
    assert words.plain("\x1b[31mred\u202e") == "\ufffd[31mred\ufffd"


@pytest.mark.parametrize(
    ("version", "ref", "digest", "name"),
    [
        ("0.91.0", "vllm/vllm-openai:v0.91.0", None, "0.91.0"),
        (None, "registry:5000/team/image", "sha256:" + "ab" * 32, "@abababababab"),
        (None, "lmsysorg/sglang:dev-mi300x", None, "dev-mi300x"),
        (None, None, None, "unknown build"),
        (None, "lmsysorg/sglang:dev@sha256:" + "0" * 64, None, "dev"),
    ],
)
def test_a_build_is_named_by_version_then_tag_then_digest(version, ref, digest, name):
    assert words.build(version, ref, digest) == name


def test_a_tag_that_moved_is_told_apart_by_its_digests():
    same = {
        f"{side}_{name}": value
        for side in ("from", "to")
        for name, value in {"engine_version": None, "image_ref": "lmsysorg/sglang:dev"}.items()
    }
    row = frames.shift(**same, from_image_digest="sha256:" + "a" * 64, to_image_digest="sha256:" + "b" * 64)
    assert words.transition(row) == ("dev @aaaaaaaaaaaa", "dev @bbbbbbbbbbbb")


def test_curve_names_say_what_is_not_the_default_and_nothing_else():
    assert words.curve(frames.point()) == "DeepSeek-R1 FP8 · 1024/1024 tokens · TP8"
    assert words.curve(
        frames.point(tp=4, ep=4, dp_attention=True, spec_decoding="mtp", framework="dynamo-vllm", is_multinode=True)
    ) == ("DeepSeek-R1 FP8 · 1024/1024 tokens · TP4 EP4 DP-attention · MTP · through dynamo-vllm · multi-node")
    split = frames.point(
        disagg=True,
        tp=None,
        prefill_tp=4,
        prefill_num_workers=2,
        num_prefill_gpus=8,
        decode_tp=8,
        decode_num_workers=1,
        num_decode_gpus=8,
        kv_transfer="nixl",
        isl=None,
    )
    assert words.curve(split) == "DeepSeek-R1 FP8 · prefill 2× TP4 (8 GPUs) · decode 1× TP8 (8 GPUs) · KV transfer nixl"
    assert words.curve(frames.point(framework="trt", engine="trtllm")) == "DeepSeek-R1 FP8 · 1024/1024 tokens · TP8"


def confidence(**overrides: object) -> str:
    return sentences.confidence(frames.shift(**overrides)).replace("\u00a0", " ")


def test_the_confidence_sentence_of_a_whole_shift():
    assert confidence() == (
        "Steady-state throughput per GPU moved −8.1 % (90 % interval −8.9 … −7.3 %; median of 6 concurrencies, 6 of 6 agree). "
        "With nothing changed, one observation of this engine on this GPU moves 0.6 % (14 same-image repeats). "
        "3 of 3 curves with the same change moved this way. Known to differ: build (0.90.0 → 0.91.0). "
        "The observations are 3.0 days apart. The build is the only known difference."
    )


def test_the_confidence_sentence_says_less_where_less_is_known():
    bare = confidence(
        interval_low_pct=None,
        cells=None,
        cells_total=None,
        noise_scale=None,
        siblings=None,
        siblings_total=None,
        change_set=[],
        gap_days=None,
        attribution=None,
    )
    assert bare == (
        "Steady-state throughput per GPU moved −8.1 %. No noise floor is known for it. "
        "Nothing is known to differ between the two observations. What differs is not known, so nothing is blamed."
    )


def test_the_confidence_sentence_of_half_a_curve_names_the_half_and_the_cells_without_a_partner():
    told = confidence(part="high_concurrency", agreeing=3, cells_total=8)
    assert "median of the high-concurrency half of 6 concurrencies, 3 in the high half agree; 2 more on one side only" in told


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"attribution": "measurement"}, "Not an engine change: the measurement itself explains it"),
        ({"attribution": "environment"}, "Not an engine change: runs of the same setup show it as well"),
        ({"attribution": "mixed", "change_set": ["build", "search_space"]}, "build (0.90.0 → 0.91.0), search space"),
        (
            {"noise_level": "prior", "noise_repeats": 0},
            "No repeat was measured yet; one observation is taken to move 0.6 % by itself.",
        ),
        ({"metric": "tpot_median"}, "Median TPOT moved −8.1 %, counted so that + is better"),
        ({"siblings_total": 1, "siblings": 1}, "No other curve had the same change."),
    ],
)
def test_the_confidence_sentence_of_special_cases(overrides, part):
    assert part in confidence(**overrides)


@pytest.mark.parametrize(
    ("level", "repeats", "text"),
    [
        ("line", 14, "this stack (engine, GPU, framework, precision and deployment) moves 0.6 % (14 same-image repeats)."),
        ("line", 2, "moves 0.6 % (insufficient repeats: 2)."),
        ("engine", 9, "this engine on any GPU moves 0.6 % (9 same-image repeats, none of this stack)."),
        ("public", 1, "this stack in public fleets moves 0.6 % (only 1 same-image repeat of its own)."),
        ("public", 0, "this stack in public fleets moves 0.6 % (no repeat of its own)."),
    ],
)
def test_the_noise_floor_says_whose_repeats_stand_behind_it(level, repeats, text):
    told = sentences.noise_floor(frames.shift(noise_level=level, noise_repeats=repeats)).replace("\u00a0", " ")
    assert told == f"With nothing changed, one observation of {text}" or told.endswith(text)


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"kind": "step"}, "a step: the level changed and has stayed"),
        ({"kind": "drift"}, "a drift: small steps the same way that add up"),
        ({"kind": None}, "too early to tell a step from a blip"),
        ({"kind": None, "attribution": "measurement"}, "–"),
        ({"kind": None, "cells": 1, "cells_total": 1}, "–"),
        ({"kind": None, "status": "superseded", "superseded_by": "s9"}, "–; superseded by s9"),
        ({"kind": "blip", "echo_of": "s1"}, "a blip: one or two observations, then back; told before as s1"),
    ],
)
def test_what_the_history_makes_of_a_shift(overrides, text):
    assert sentences.history(frames.shift(**overrides)) == text


def test_a_rare_series_has_heavier_tails():
    assert sentences.degrees_of_freedom(frames.shift()) == 4
    assert sentences.degrees_of_freedom(frames.shift(cells=1, cells_total=1)) == 3


def test_a_model_without_a_precision_is_told_as_such():
    assert words.configuration({"model": "gptj", "precision": None}) == "gptj unknown precision"
