"""Changed scores: figures by hand and from the literature, what is compared, what is blamed, what other evaluations say."""

import math
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, norm

from pipelines.detect.proportions import Share, interval, least, p_value, share, standard_error, wilson
from pipelines.detect.scores import detect_scores, linked
from tests import frames
from warehouse.canonical import content_id
from warehouse.schemas import EVALS, SCORE_DIFFS, SHIFTS

API = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "api" / "evaluations.json"
GSM8K = 1319
DIGEST = "sha256:" + "a" * 64


def score(right=1266, day=0.0, build="A", questions=GSM8K, **values):
    """Return a row of `evals`: *right* of *questions* answers of gsm8k, evaluated on build vA; its run follows from the day."""
    at = frames.day(day)
    row = {
        "event_id": f"event-{day}",
        "record_hash": content_id("record", right, day, build, questions, sorted(map(str, values.items()))),
        "curve_id": content_id("curve", values.get("hardware", "mi355x")),
        "run_source": "local",
        "run_id": str(day),
        "run_attempt": 1,
        "measured_at": at,
        "recorded_at": at + timedelta(hours=1),
        **(frames.build_of(build) if build else {"build_id": "unknown:vllm"}),
        "hardware_label": "mi355x-amd_0",
        "checkpoint": "deepseek-r1",
        "concurrency": 64,
        "task": "gsm8k",
        "metric": "exact_match,strict-match",
        "score": right / questions,
        "samples": questions,
        **values,
    }
    return frames.row("evals", frames.IDENTITY, row)


def found(*rows):
    return detect_scores(pl.DataFrame(list(rows), schema=EVALS.schema)).to_dicts()


def last(*rows):
    """Return the comparison of the latest evaluation."""
    return found(*rows)[-1]


HIGH, LOW = 1266, 1200
"""95.98 % and 90.98 % of gsm8k: five points apart."""


# ---- figures


def test_a_difference_of_two_shares_by_hand():
    """60 and 45 of 100: pooled 105/200, standard error sqrt(.525 * .475 * 2/100) = .07062, z = .15 / .07062 = 2.1239."""
    p, method = p_value(Share(0.60, 100), Share(0.45, 100))
    assert method == "two-proportion z"
    assert standard_error(Share(0.60, 100), Share(0.45, 100)) == pytest.approx(0.070622, abs=1e-6)
    assert p == pytest.approx(0.03368, abs=2e-5)


def test_few_answers_are_counted_exactly():
    """The lady tasting tea, 3 of 4 against 1 of 4: two tables of 70 as extreme on either side, 16 + 1 each: 34/70."""
    p, method = p_value(Share(0.75, 4), Share(0.25, 4))
    assert (p, method) == (pytest.approx(34 / 70), "Fisher exact")


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_the_interval_is_that_of_newcombe(first, second, low, high):
    """Newcombe 1998, Statistics in Medicine 17, table II, method 10, 95 %."""
    sides = [Share(right / asked, asked) for right, asked in (second, first)]
    assert interval(*sides, 0.95) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_the_score_interval_of_one_share():
    """Newcombe 1998, Statistics in Medicine 17, 857: 81 of 263 → .2553 to .3662; 0 of 20 → 0 to .1611."""
    assert wilson(Share(81 / 263, 263), 0.95) == (pytest.approx(0.2553, abs=6e-5), pytest.approx(0.3662, abs=6e-5))
    assert wilson(Share(0.0, 20), 0.95) == (0.0, pytest.approx(0.1611, abs=6e-5))


def test_the_weight_of_a_share():
    """The error of lm-eval is that of n - 1: it tells n again. Without one, the questions; the lesser of the two; or nothing."""
    of_lm_eval = math.sqrt(0.9 * 0.1 / 99)
    assert share(0.9, of_lm_eval, None).samples == pytest.approx(100)
    assert share(0.9, None, 100) == Share(0.9, 100)
    assert share(0.9, 2 * of_lm_eval, 100).samples == pytest.approx(1 + 99 / 4)  # clustered questions
    assert share(0.9, of_lm_eval / 10, 100) == Share(0.9, 100)  # never narrower than a binomial share
    assert share(0.0, 0.0, 20) == Share(0.0, 20)
    assert share(0.0, 0.0, None) is None
    assert share(0.9, None, None) is None
    assert share(0.9, 0.0, 0) is None


def test_repeats_widen_and_never_narrow():
    assert Share(0.9, 100).widened(4) == Share(0.9, 25)
    assert Share(0.9, 100).widened(0.1) == Share(0.9, 100)
    assert Share(0.9, 2).widened(100) == Share(0.9, 1)


@given(st.integers(0, 300), st.integers(0, 300))
def test_swapped_sides_flip_the_sign(one, other):
    sides = Share(one / 300, 300), Share(other / 300, 300)
    low, high = interval(*sides, 0.9)
    assert interval(*reversed(sides), 0.9) == (pytest.approx(-high), pytest.approx(-low))
    assert p_value(*sides) == p_value(*reversed(sides))
    assert -1 - 1e-12 <= low <= high <= 1 + 1e-12
    assert 0 <= p_value(*sides)[0] <= 1


def test_the_least_change_has_the_p_that_is_asked():
    old = Share(0.96, 1319)
    moved = Share(0.96 - least(old, old, 0.01), 1319)
    assert 2 * norm.sf((old.value - moved.value) / standard_error(old, old)) == pytest.approx(0.01)


# ---- what is told


def test_a_drop_that_chance_explains_says_so():
    """1256 and 1239 of 1319: -1.29 points, pooled share .945792, error .881638 points, z = 1.4619, p = .1438."""
    row = last(score(1256), score(1239, 1, "B"))
    assert row["size_points"] == pytest.approx(-1.2889, abs=1e-4)
    assert row["p_value"] == pytest.approx(0.14377, abs=5e-5)
    assert not row["flagged"]
    assert (row["status"], row["attribution"], row["direction"]) == ("unchanged", None, None)
    assert row["reason"] == "-1.3 points: chance alone gives as much (p = 0.14); it takes about 2.3 points to tell here"
    assert row["interval_low_points"] < -1.29 < 0 < row["interval_high_points"]


def test_a_drop_of_five_points_at_a_new_build_is_the_engines():
    row = last(score(HIGH), score(LOW, 2, "B"))
    assert row["size_points"] == pytest.approx(-66 / 1319 * 100)
    assert row["flagged"]
    assert (row["status"], row["attribution"], row["direction"], row["reason"]) == (
        "suspected",
        "engine",
        "regression",
        "seen once",
    )
    assert row["change_set"] == ["build"]
    assert (row["from_build_id"], row["to_build_id"]) == ("tag:vllm/vllm-openai:vA", "tag:vllm/vllm-openai:vB")
    assert (row["from_score"], row["to_score"], row["gap_days"]) == (HIGH / 1319, LOW / 1319, 2)
    assert row["method"] == "two-proportion z"


def test_a_change_beyond_chance_but_below_half_a_point_is_not_told():
    row = last(score(960_000, questions=1_000_000), score(956_000, 1, "B", 1_000_000))
    assert row["p_value"] < 1e-6
    assert (row["flagged"], row["reason"]) == (False, "-0.4 points: beyond chance, but below 0.5 points")


def test_without_questions_or_error_nothing_is_tested():
    row = last(score(HIGH, samples=None), score(600, 1, "B", samples=None))
    assert (row["status"], row["flagged"], row["reason"]) == ("insufficient", False, "insufficient: samples unknown")
    assert (row["p_value"], row["q_value"]) == (None, None)
    assert row["size_points"] == pytest.approx((600 - HIGH) / 1319 * 100)


def test_a_recorded_error_stands_in_for_the_questions():
    """Error of either side sqrt(p (1 - p) / 1318), so 1319 questions each: as if they were told."""
    sides = [
        score(right, day, build, samples=None, score_stderr=math.sqrt(right / 1319 * (1 - right / 1319) / 1318))
        for right, day, build in ((HIGH, 0, "A"), (LOW, 1, "B"))
    ]
    assert last(*sides)["p_value"] == pytest.approx(last(score(HIGH), score(LOW, 1, "B"))["p_value"])


@pytest.mark.parametrize(("metric", "value"), [("word_perplexity,none", 0.5), ("exact_match,none", 71.5), ("bleu,none", -0.1)])
def test_what_is_no_share_is_not_tested(metric, value):
    row = last(score(metric=metric, score=value), score(day=1, build="B", metric=metric, score=0.9))
    assert (row["status"], row["size_points"]) == ("insufficient", None)
    assert row["reason"] == "insufficient: not a share of right answers"


def test_answers_all_wrong_are_no_division_by_nothing():
    assert last(score(0, questions=20), score(0, 1, "B", 20))["p_value"] == 1
    gone = last(score(1319), score(0, 1, "B"))
    assert gone["flagged"]
    assert gone["size_points"] == -100


def test_false_discovery_is_controlled_within_a_night():
    rights = (1200, 1232, 1250, 1266)
    rows = [score(HIGH, hardware=f"h{n}") for n in range(4)]
    rows += [score(right, 1, "B", hardware=f"h{n}") for n, right in enumerate(rights)]
    rows += [score(1100, 2, "C", hardware="h0")]
    night = sorted((r for r in found(*rows) if r["to_build_id"].endswith("vB")), key=lambda r: r["hardware"])
    assert [r["q_value"] for r in night] == pytest.approx(list(false_discovery_control([r["p_value"] for r in night])))
    assert last(*rows)["q_value"] == last(*rows)["p_value"]


def test_a_change_that_is_rare_alone_is_common_in_a_large_night():
    """1266 and 1232 differ by z = 2.953, p = .0031; among forty, of which the others did not move, q = .126."""
    rows = [score(HIGH, hardware=f"h{n}") for n in range(40)] + [score(HIGH, 1, "B", hardware=f"h{n}") for n in range(1, 40)]
    (row,) = [r for r in found(*rows, score(1232, 1, "B", hardware="h0")) if r["hardware"] == "h0"]
    assert row["q_value"] == pytest.approx(40 * row["p_value"])
    assert not row["flagged"]
    assert row["reason"] == "-2.6 points: p = 0.0031 is not small enough among all comparisons of the night (q = 0.13)"


def test_what_cannot_be_tested_does_not_count_in_the_night():
    alone = last(score(HIGH), score(LOW, 1, "B"))
    other = found(
        score(HIGH), score(LOW, 1, "B"), score(hardware="x", samples=None), score(day=1, hardware="x", samples=None, build="B")
    )
    assert [r["q_value"] for r in other if r["hardware"] == "mi355x"] == [alone["q_value"]]


# ---- what is compared


@pytest.mark.parametrize("name", ["curve_id", "task", "metric"])
def test_another_setup_is_not_compared(name):
    assert found(score(), score(LOW, 1, "B", **{name: "another"})) == []


def test_another_load_is_not_compared():
    assert found(score(), score(LOW, 1, "B", concurrency=128)) == []


@pytest.mark.parametrize(
    "other", [{"few_shot": 5}, {"task_version": "4"}, {"samples_total": 500}, {"samples": 200}, {"samples": 1252}]
)
def test_another_test_is_passed_over_for_the_last_of_its_kind(other):
    told = {"few_shot": 8, "task_version": "3", "samples_total": 1319}
    row = last(score(HIGH, 0, **told), score(900, 1, **{**told, **other}), score(HIGH, 2, "B", **told))
    assert row["from_measured_at"] == frames.day(0)


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        ({"harness_version": "0.4.9"}, {"harness_version": "0.4.13"}, "version of the harness: 0.4.9 → 0.4.13"),
        ({}, {"few_shot": 5}, "worked examples: not recorded → 5"),
        ({"samples": 1319}, {"samples": 1318}, "questions asked: 1319 → 1318"),
    ],
)
def test_the_harness_is_listed_and_no_engine_is_named(old, new, detail):
    same, built = (last(score(HIGH, **old), score(LOW, 1, build, **new)) for build in "AB")
    assert (same["attribution"], same["change_set"], same["change_detail"]) == ("harness", ["harness"], [detail])
    assert (built["attribution"], built["change_set"]) == ("mixed", ["build", "harness"])
    unrecorded = last(score(HIGH, build=None, **old), score(LOW, 1, None, **new))
    assert unrecorded["attribution"] == "unknown"


def test_what_was_retracted_or_has_no_score_is_left_out():
    odd = [score(LOW, 0.5, retraction="wrong server"), score(LOW, 0.6, score=None), score(LOW, 0.7, score=math.nan)]
    assert [r["from_measured_at"] for r in found(score(), *odd, score(day=1, build="B"))] == [frames.day(0)]
    assert found() == []
    assert detect_scores(EVALS.schema.to_frame()).schema == SCORE_DIFFS.schema


def test_scores_of_one_run_are_one_evaluation():
    """Two of one run: their mean, with the weight of one; they are not compared with each other."""
    (row,) = found(score(1260), score(1270, run_id="0.0", record_hash="b"), score(1200, 1, "B"))
    assert (row["from_score"], row["from_records"], row["from_samples"]) == (pytest.approx(1265 / 1319), 2, 1319)
    assert row["p_value"] == pytest.approx(p_value(Share(1265 / 1319, 1319), Share(1200 / 1319, 1319))[0])


def test_of_two_builds_in_one_run_the_one_most_alike_is_compared():
    row = last(score(HIGH, 0, "A"), score(LOW, 0, "B", record_hash="b"), score(LOW, 1, "B"))
    assert row["from_build_id"].endswith("vB")
    assert len(found(score(HIGH, 0, "A"), score(LOW, 0, "B", record_hash="b"))) == 0


def test_a_run_is_not_compared_with_itself():
    twice = [score(HIGH, 1, "B"), score(LOW, 1.2, "B", run_id="1", harness_version="0.4.9")]
    assert [r["from_measured_at"] for r in found(score(HIGH), *twice)] == [frames.day(0)] * 2


def test_of_several_errors_of_a_run_the_greatest_counts():
    rows = [score(1260, score_stderr=0.006), score(1270, run_id="0.0", record_hash="b", score_stderr=0.009)]
    assert last(*rows, score(day=1))["from_score_stderr"] == 0.009
    assert last(*rows, score(1265, run_id="0.0", record_hash="c"), score(day=1))["from_score_stderr"] is None


def test_the_number_of_the_runner_is_no_other_host():
    row = last(score(HIGH), score(LOW, 1, "B", hardware_label="mi355x-amd_7"))
    assert (row["change_set"], row["attribution"]) == (["build"], "engine")
    other = last(score(HIGH), score(LOW, 1, hardware_label="mi355x-tw"))
    assert (other["change_set"], other["attribution"]) == (["environment"], "environment")


# ---- what is blamed


def test_one_image_run_again_is_no_engine():
    row = last(score(HIGH), score(LOW, 1))
    assert (row["flagged"], row["attribution"], row["same_build"]) == (True, "environment", True)


def test_a_digest_on_one_side_may_be_the_same_build():
    ref = f"vllm/vllm-openai:vA@{DIGEST}"
    pinned = {"build_id": f"digest:{DIGEST}", "image_ref": ref, "image_digest": DIGEST}
    assert last(score(HIGH), score(LOW, 1, **pinned))["attribution"] == "unknown"


def test_the_next_evaluation_confirms():
    rows = found(score(HIGH), score(LOW, 1, "B"), score(LOW + 5, 2, "B"))
    assert [(r["status"], r["attribution"]) for r in rows] == [("confirmed", "engine"), ("unchanged", None)]


def test_a_repeat_between_the_levels_does_not_confirm():
    """1266 and 1228 differ by z = 3.26; 1246 is 53 % of the way, and differs from 1266 by z = 1.83 only (p = .07)."""
    rows = found(score(1266), score(1228, 1, "B"), score(1246, 2, "B"))
    assert (rows[0]["status"], rows[0]["attribution"]) == ("suspected", "engine")
    assert rows[0]["reason"] == "the next evaluations stand nearer to the new level, but not beyond chance"


def test_later_repeats_do_not_move_what_was_said():
    told = [score(HIGH), score(LOW, 1, "B", hardware="mi355x")]
    wild = [score((1319, 0)[day % 2], day, "C", hardware="other") for day in range(2, 9)]
    assert found(*told, *wild)[0] == found(*told)[0]


def test_the_same_run_told_again_does_not_confirm():
    again = score(LOW, 1.2, "B", run_id="1", harness_version="0.4.9", record_hash="again")
    assert found(score(HIGH), score(LOW, 1, "B"), {**again, "run_id": "1"})[0]["status"] == "suspected"


def test_a_score_that_swings_to_the_other_side_is_not_confirmed():
    rows = found(score(1240), score(1190, 1, "B"), score(1319, 2, "B"))
    assert (rows[0]["status"], rows[0]["attribution"]) == ("recovered", "environment")


def test_one_odd_evaluation_of_the_earlier_build_contradicts_until_the_change_is_confirmed():
    rows = [score(HIGH, 0), score(900, 1), score(HIGH, 2), score(900, 3, "B")]
    assert last(*rows)["attribution"] == "environment"
    told = found(*rows, score(900, 4, "B"))[-2]
    assert (told["status"], told["attribution"]) == ("confirmed", "engine")


def test_a_score_that_comes_back_was_no_engine():
    rows = found(score(HIGH), score(LOW, 1, "B"), score(HIGH, 2, "B"))
    assert [(r["status"], r["attribution"]) for r in rows] == [("recovered", "environment"), ("suspected", "environment")]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [score(LOW, 0, "A"), score(HIGH, 1, "A"), score(LOW, 2, "B")],
            "other evaluations of the earlier build already stood at the new level",
        ),
        (
            [score(HIGH, 1, "A"), score(LOW, 2, "B"), score(LOW, 3, "A")],
            "later evaluations of the earlier build stand at the new level as well",
        ),
        (
            [score(HIGH, 0, "B"), score(HIGH, 1, "A"), score(LOW, 2, "B")],
            "earlier evaluations of the later build already stood at the old level",
        ),
    ],
)
def test_other_evaluations_of_either_build_contradict(rows, reason):
    (row,) = [r for r in found(*rows) if r["to_measured_at"] == frames.day(2)]
    assert (row["flagged"], row["status"], row["attribution"], row["reason"]) == (True, "suspected", "environment", reason)


def test_a_score_that_one_build_has_moved_as_far_names_no_cause():
    """Build A stood at either level, and the change to C is from B: nothing contradicts it, but this score is restless."""
    rows = [score(HIGH, 0, "A"), score(LOW, 1, "A"), score(LOW, 2, "B"), score(HIGH, 3, "C")]
    row = last(*rows)
    assert (row["status"], row["attribution"]) == ("suspected", "unknown")
    assert row["reason"] == "seen once, and runs of one build have moved this score as far"


def test_repeats_beyond_chance_widen_the_test():
    """Four repeats that swing by 40 answers: z = 3.77 > 3, so each counts 9: (36 + 5) / 9 of the task, then of the stack."""
    swing = [score((1240, 1280)[day % 2], day, "A") for day in range(5)]
    row = last(*swing, score(1210, 9, "B"))
    of_task = (4 * 9 + 5) / 9
    assert row["design_effect"] == pytest.approx((4 * 9 + 5 * of_task) / 9)
    assert row["repeats"] == 4
    assert not row["flagged"]
    assert last(score(1240), score(1190, 9, "B"))["design_effect"] == 1


def test_quiet_repeats_do_not_narrow():
    row = last(*[score(HIGH, day) for day in range(6)], score(LOW, 9, "B"))
    assert (row["design_effect"], row["repeats"]) == (1, 5)


HISTORY = st.lists(st.tuples(st.sampled_from((0, 900, LOW, HIGH, 1319)), st.sampled_from("AB")), min_size=2, max_size=7)


@settings(max_examples=25)
@given(HISTORY, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(history, random):
    rows = [score(right, day % 3, build, record_hash=str(day)) for day, (right, build) in enumerate(history)]
    mixed = random.sample(rows, len(rows))
    first, second = (detect_scores(pl.DataFrame(some, schema=EVALS.schema)) for some in (rows, mixed))
    assert first.equals(second)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 1319), min_size=2, max_size=8), st.sampled_from([None, DIGEST]))
def test_one_build_never_names_an_engine(rights, digest):
    values = {"build_id": f"digest:{digest}", "image_digest": digest} if digest else {}
    rows = found(*(score(right, day, "A", **values) for day, right in enumerate(rights)))
    assert len(rows) == len(rights) - 1
    assert {r["attribution"] for r in rows} <= {None, "environment"}


@settings(max_examples=25)
@given(st.integers(0, 1319), st.integers(0, 1319))
def test_a_change_and_its_reversal_are_alike(one, other):
    there, back = (last(score(a, 0, "A"), score(b, 1, "B")) for a, b in ((one, other), (other, one)))
    assert there["size_points"] == -back["size_points"]
    assert (there["p_value"], there["flagged"]) == (back["p_value"], back["flagged"])
    assert there["interval_low_points"] == pytest.approx(-back["interval_high_points"])


# ---- with a changed speed


def shift(old="A", new="B", first=0.0, then=1.0, **values):
    row = {
        "shift_id": "s1",
        "status": "suspected",
        "attribution": "engine",
        "direction": "speedup",
        "from_measured_at": frames.day(first),
        "to_measured_at": frames.day(then),
        **{f"from_{name}": value for name, value in frames.build_of(old).items()},
        **{f"to_{name}": value for name, value in frames.build_of(new).items()},
    }
    return pl.DataFrame([frames.row("shifts", frames.CONTEXT, {**row, **values})], schema=SHIFTS.schema)


DROP = detect_scores(pl.DataFrame([score(HIGH), score(LOW, 1, "B")], schema=EVALS.schema))


def test_a_speedup_with_a_lost_score_is_one_finding():
    (row,) = linked(shift(), DROP).to_dicts()
    assert (row["shift_id"], row["score_diff_id"]) == ("s1", DROP["score_diff_id"][0])
    assert row["text"] == "gsm8k (exact_match,strict-match) fell by 5.0 points at the same build change (suspected)"


@pytest.mark.parametrize("name", ["hardware", "engine", "framework", "model", "precision"])
def test_another_stack_is_not_linked(name):
    assert linked(shift(**{name: "another"}), DROP).is_empty()


@pytest.mark.parametrize(
    "values",
    [
        {"attribution": "environment"},
        {"attribution": "measurement"},
        {"status": "retracted"},
        {"status": "recovered"},
        {"from_build_id": "unknown:vllm", "to_build_id": "unknown:vllm"},
        {"from_build_id": "tag:vllm/vllm-openai:vB"},
        {"precision": None},
    ],
)
def test_what_names_no_change_of_build_is_not_linked(values):
    assert linked(shift(**values), DROP).is_empty()


def test_only_drops_that_stand_are_linked():
    better, environment, quiet = (
        detect_scores(pl.DataFrame(rows, schema=EVALS.schema))
        for rows in (
            [score(LOW), score(HIGH, 1, "B")],
            [score(LOW, -1), score(HIGH), score(LOW, 1, "B")],
            [score(HIGH), score(HIGH - 5, 1, "B")],
        )
    )
    assert [linked(shift(), some).height for some in (better, environment, quiet)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("ends", "meets"),
    [(("A", "B", 0, 1), True), (("B", "C", 1, 2), True), (("C", "D", 2, 3), False), (("0", "A", -1, 0), False)],
)
def test_builds_that_overlap_are_linked(ends, meets):
    """The score went from A (day 0) to C (day 2); the speed was measured on every build."""
    drop = detect_scores(pl.DataFrame([score(HIGH, 0, "A"), score(LOW, 2, "C")], schema=EVALS.schema))
    others = [
        shift(*pair, shift_id="other") for pair in (("0", "A", -1, 0), ("A", "B", 0, 1), ("B", "C", 1, 2), ("C", "D", 2, 3))
    ]
    texts = linked(pl.concat([shift(*ends), *others]), drop).filter(pl.col("shift_id") == "s1")["text"].to_list()
    expected = "gsm8k (exact_match,strict-match) fell by 5.0 points over builds that overlap with this change (suspected)"
    assert texts == ([expected] if meets else [])


def test_a_build_has_its_place_from_when_it_was_first_met():
    """A is evaluated again, next to E, after all the others: it is still the oldest."""
    drop = detect_scores(pl.DataFrame([score(HIGH, 0, "A"), score(LOW, 2, "C")], schema=EVALS.schema))
    again = shift("A", "E", 5, 6, shift_id="again")
    assert "s1" in linked(pl.concat([shift("B", "C", 1, 2), again]), drop)["shift_id"].to_list()


def test_nothing_links_with_nothing():
    empty = linked(SHIFTS.schema.to_frame(), SCORE_DIFFS.schema.to_frame())
    assert empty.is_empty()
    assert empty.columns == ["shift_id", "score_diff_id", "text"]


# ---- real evaluations


def test_real_evaluations_of_two_months_move_no_further_than_chance():
    """All of InferenceX on gsm8k, April to June 2026: no two of one setup differ by more than .61 points; no build is told."""
    if not API.is_file():
        pytest.skip("shared/data/inferencex/api absent")
    rows = pl.read_json(API, infer_schema_length=None).unnest("metrics")
    evals = [
        score(
            day=0,
            build=None,
            run_id=row["run_url"],
            record_hash=row["id"],
            measured_at=frames.START.fromisoformat(row["timestamp"]),
            curve_id=str(row["config_id"]),
            concurrency=row["conc"],
            samples=row["n_eff"],
            score=row["em_strict"],
            score_stderr=row["em_strict_se"],
            hardware=row["hardware"],
            hardware_label=row["hardware"],
        )
        for row in rows.iter_rows(named=True)
    ]
    told = found(*evals)
    assert len(told) >= 10
    assert {r["status"] for r in told} == {"unchanged"}
    assert max(abs(r["size_points"]) for r in told) == pytest.approx(8 / 1319 * 100)
