"""What becomes of a shift: repeats that confirm or contradict it, siblings, notices."""

import pytest

from pipelines.detect.night import detect
from tests.fleet import curve, points, quiet

SLOW = 0.92


def shifts(*frames):
    return detect(points(*quiet(), *frames)).shifts.to_dicts()


def fate(*frames, build="B"):
    """Return (attribution, status, reason) of the only shift that leads to the first run of *build*."""
    found = [row for row in shifts(*frames) if row["to_engine_version"] == build]
    first = [row for row in found if row["to_measured_at"] == min(row["to_measured_at"] for row in found)]
    (row,) = first
    return row["attribution"], row["status"], row["status_reason"]


def test_seen_once_is_suspected():
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW)) == ("engine", "suspected", "seen once")


def test_the_next_repeat_confirms():
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=0.925))[:2] == ("engine", "confirmed")


def test_a_repeat_that_went_back_withdraws_the_claim():
    later = [curve("B", 1, speed=SLOW), curve("B", 2, speed=1.0)]
    assert fate(curve("A", 0), *later) == ("environment", "recovered", "later runs of the same setup are back at the old level")


def test_one_of_two_repeats_is_no_confirmation_and_two_of_three_are():
    first = [curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=1.0), curve("B", 3, speed=SLOW)]
    assert fate(*first)[:2] == ("environment", "recovered")
    assert fate(*first, curve("B", 4, speed=SLOW))[:2] == ("engine", "confirmed")


def test_half_of_the_shift_must_be_left():
    # log 0.92 = -0.0834: 0.96 leaves 49 %, 0.95 leaves 62 %.
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=0.96))[1] == "recovered"
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=0.95))[1] == "confirmed"


def test_a_repeat_after_another_build_counts_too():
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("C", 2), curve("B", 3, speed=SLOW))[:2] == ("engine", "confirmed")


@pytest.mark.parametrize(
    "earlier",
    [
        [curve("A", 0), curve("A", 1, speed=SLOW)],  # one of two
        [curve("A", 0), curve("A", 1), curve("A", 2), curve("A", 3, speed=SLOW)],
        [curve("A", 0), curve("C", 0.5, speed=SLOW), curve("A", 1, speed=SLOW)],  # another build between
    ],
)
def test_a_blip_as_baseline_blames_nobody(earlier):
    attribution, _status, reason = fate(*earlier, curve("B", 4, speed=1.0))
    assert (attribution, reason) == ("environment", "other runs of the earlier build already stood at the new level")


def test_one_run_of_the_earlier_build_at_the_new_level_is_enough_for_doubt_until_a_repeat():
    earlier = [curve("A", 0), curve("A", 1, speed=SLOW), curve("A", 2), curve("A", 3), curve("A", 4)]
    assert fate(*earlier, curve("B", 5, speed=SLOW))[:2] == ("environment", "suspected")
    assert fate(*earlier, curve("B", 5, speed=SLOW), curve("B", 6, speed=SLOW))[:2] == ("engine", "confirmed")


def test_the_earlier_build_run_again_at_the_new_level_clears_the_later_one():
    frames = [curve("A", 0), curve("B", 1, speed=SLOW), curve("A", 2, speed=SLOW)]
    assert fate(*frames) == ("environment", "suspected", "later runs of the earlier build stand at the new level as well")
    # More repeats of the later build do not help: both builds moved with the day.
    assert fate(*frames, curve("B", 3, speed=SLOW), curve("B", 4, speed=SLOW))[0] == "environment"


def test_the_earlier_build_run_again_at_the_old_level_leaves_the_claim():
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("A", 2))[0] == "engine"


def test_the_later_build_that_once_stood_at_the_old_level_is_cleared():
    frames = [curve("B", 0), curve("A", 1), curve("B", 2, speed=SLOW)]
    found = [row for row in shifts(*frames) if row["to_measured_at"].day == 3]
    assert [(row["attribution"], row["status_reason"]) for row in found] == [
        ("environment", "earlier runs of the later build already stood at the old level")
    ]


def test_a_repeat_with_a_recipe_that_is_not_recorded_bears_witness():
    earlier = [curve("A", 0), curve("A", 1, speed=SLOW, recipe="cafe")]
    assert fate(*earlier, curve("B", 2, recipe="cafe"))[0] == "environment"
    later = [curve("B", 1, speed=SLOW, recipe="cafe"), curve("B", 2)]
    assert fate(curve("A", 0, recipe="cafe"), *later)[0] == "environment"


def test_another_recipe_bears_no_witness():
    later = [curve("B", 1, speed=SLOW, recipe="cafe"), curve("B", 2, recipe="beef")]
    assert fate(curve("A", 0, recipe="cafe"), *later) == ("engine", "suspected", "seen once")


def test_partial_repeats_bear_witness_of_their_cells():
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, cells=(4, 8)))[:2] == ("environment", "recovered")
    # One cell is one point: no witness.
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, cells=(4,)))[1] == "suspected"


def test_a_pooled_baseline_is_not_cleared_by_its_own_gaps():
    # The standing run has two cells at the new level, the pool fills the rest from a slow run of the same image.
    earlier = [curve("A", 0, speed=SLOW), curve("A", 1, cells=(4, 8))]
    found = [row for row in shifts(*earlier, curve("B", 2)) if row["to_engine_version"] == "B"]
    assert [row["attribution"] for row in found] == ["environment"]


def siblings(count, build, day, speed=1.0):
    return [curve(build, day, speed, isl=1000 + number) for number in range(count)]


def test_three_siblings_confirm_at_once_and_two_do_not():
    rows = shifts(*siblings(3, "A", 0), *siblings(3, "B", 1, SLOW))
    assert {(row["attribution"], row["status"], row["siblings"], row["siblings_total"]) for row in rows} == {
        ("engine", "confirmed", 3, 3)
    }
    assert {row["status_reason"] for row in rows} == {"3 of 3 curves of the same change moved alike in this run"}
    assert len({row["event_key"] for row in rows}) == 1
    two = shifts(*siblings(4, "A", 0), *siblings(2, "B", 1, SLOW), curve("B", 1, isl=1002), curve("B", 1, isl=1003))
    assert [(row["status"], row["siblings"], row["siblings_total"]) for row in two] == [("suspected", 2, 4)] * 2


def test_siblings_are_curves_of_one_run_stack_and_direction():
    # Two of one stack down, one up, one of other hardware: nobody has two more like it.
    frames = [*siblings(3, "A", 0), curve("A", 0, hardware="h100"), *siblings(2, "B", 1, SLOW)]
    rows = shifts(*frames, curve("B", 1, 1 / SLOW, isl=1002), curve("B", 1, SLOW, hardware="h100"))
    assert sorted(row["siblings"] for row in rows) == [1, 1, 2, 2]
    assert {row["status"] for row in rows} == {"suspected"}
    assert len({row["event_key"] for row in rows}) == 3


def test_one_curve_with_several_recipes_is_one_sibling():
    later = [curve("B", 1, SLOW, recipe=recipe, run="one") for recipe in ("aa", "bb", "cc")]
    rows = shifts(curve("A", 0), *later)
    assert [(row["siblings"], row["status"]) for row in rows] == [(1, "suspected")] * 3


def test_siblings_do_not_confirm_what_repeats_contradict():
    frames = [*siblings(4, "A", 0), *siblings(4, "B", 1, SLOW), *siblings(4, "B", 2)]
    assert {row["attribution"] for row in shifts(*frames)} == {"environment"}


def test_siblings_of_an_odd_run_are_doubted_where_the_rerun_is_partial():
    frames = [*siblings(4, "A", 0), *siblings(4, "B", 1, SLOW), *siblings(1, "B", 2)]
    first = [row for row in shifts(*frames) if row["to_measured_at"].day == 2]
    assert {row["attribution"] for row in first} == {"environment"}
    assert sorted(row["status"] for row in first) == ["recovered", "suspected", "suspected", "suspected"]
    # Where most of those that ran again stand, the rest keeps its claim.
    mostly = [*siblings(4, "B", 2, SLOW)[1:3], curve("B", 2, isl=1000)]
    rows = [row for row in shifts(*frames[:8], *mostly) if row["to_measured_at"].day == 2]
    assert sorted(row["attribution"] for row in rows) == ["engine", "engine", "engine", "environment"]


def test_recipe_and_checkpoint_claims_are_held_to_the_same_rule():
    frames = [curve("A", 0, recipe="aa"), curve("A", 1, SLOW, recipe="bb"), curve("A", 2, recipe="bb")]
    assert [row["attribution"] for row in shifts(*frames) if row["to_measured_at"].day == 2] == ["environment"]
    frames = [curve("A", 0), curve("A", 1, SLOW, checkpoint="x"), curve("A", 2, SLOW, checkpoint="x")]
    assert [(row["attribution"], row["status"]) for row in shifts(*frames)] == [("checkpoint", "confirmed")]


def test_an_unrecorded_build_is_repeated_by_nothing():
    frames = [curve("A", 0), curve("", 1, SLOW), curve("", 2, SLOW)]
    assert [(row["attribution"], row["status"]) for row in shifts(*frames)] == [("unknown", "suspected")]


def test_a_notice_recovers_and_stays_a_notice():
    frames = [curve("A", 0), curve("B", 1, cold=(4, 8)), curve("B", 2)]
    first = next(row for row in shifts(*frames) if row["to_measured_at"].day == 2)
    assert (first["attribution"], first["status"]) == ("measurement", "recovered")


def test_a_notice_that_lasts_is_confirmed_and_stays_a_notice():
    frames = [curve("A", 0), curve("B", 1, cold=(4, 8)), curve("B", 2, cold=(4, 8)), curve("B", 3, cold=(4, 8))]
    rows = shifts(*frames)
    assert {row["attribution"] for row in rows} == {"measurement"}
    assert rows[0]["status"] == "confirmed"


def test_siblings_do_not_turn_notices_into_claims():
    after = [curve("B", 1, isl=1000 + number, cold=(4, 8)) for number in range(5)]
    rows = shifts(*siblings(5, "A", 0), *after)
    assert {(row["attribution"], row["status"]) for row in rows} == {("measurement", "suspected")}


def test_a_curve_that_runs_of_one_image_moved_as_far_names_no_cause_yet():
    restless = [curve("C", 0), curve("C", 1, SLOW), curve("A", 2, SLOW)]
    assert fate(*restless, curve("B", 3)) == (
        "unknown",
        "suspected",
        "seen once, and runs of one image have moved this curve as far",
    )
    assert fate(*restless, curve("B", 3), curve("B", 4))[:2] == ("engine", "confirmed")
    # A shift well beyond what they did is another matter.
    assert fate(*restless, curve("B", 3, speed=1.1))[0] == "engine"


def test_what_repeats_withdraw_is_withdrawn_in_both_tables():
    found = detect(points(*quiet(), curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2)))
    pair = found.diffs.filter(to_engine_version="B", from_engine_version="A")
    assert pair["attribution"].to_list() == ["environment"]
