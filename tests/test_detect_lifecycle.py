"""What becomes of a shift: repeats that confirm or contradict it, siblings, notices."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipelines.detect.contradiction import fisher_exact
from pipelines.detect.night import detect
from tests.fleet import CELLS, curve, points, quiet

SLOW = 0.92
QUIET = points(*quiet(4))
"""Four repeats that stood still: noise is at its floor, and known."""
RESTLESS = "but runs of one image have moved this curve as far"


def shifts(*frames):
    return detect(points(QUIET, *frames)).shifts.to_dicts()


def chance(a, b, c, d):
    """Return the one-sided p of Fisher's exact test of [[a, b], [c, d]] by scipy."""
    return round(stats.fisher_exact([[a, b], [c, d]], alternative="greater").pvalue, 12)


def series(build, first, speeds):
    """Return a run of *build* a day from day *first* on."""
    return [curve(build, first + number, speed) for number, speed in enumerate(speeds)]


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 12), st.integers(1, 12))
def test_fisher_is_that_of_scipy(a, b, c, d):
    assert fisher_exact(a, b, c, d) == pytest.approx(chance(a, b, c, d))


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


def test_one_of_two_repeats_is_no_confirmation():
    first = [curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=1.0), curve("B", 3, speed=SLOW)]
    assert fate(*first)[:2] == ("environment", "recovered")


@pytest.mark.parametrize(("earlier", "attribution"), [(4, "environment"), (5, "engine")])
def test_an_odd_run_of_the_later_build_needs_builds_that_stand_apart(earlier, attribution):
    # Of the later build three runs stand and one went back; of the earlier one all stand.
    assert (chance(earlier, 0, 1, 3) <= 0.05) == (attribution == "engine")
    frames = [*series("A", 0, [1.0] * earlier), *series("B", 10, [SLOW, 1.0, SLOW, SLOW])]
    found = fate(*frames)
    assert found[0] == attribution
    if attribution == "environment":
        assert found[2] == "the builds are not apart: runs of either that stand on the other's side: 1"
    else:
        assert found[1:] == ("confirmed", "the next runs of the same setup stand at the new level")


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


def test_one_run_of_the_earlier_build_at_the_new_level_is_enough_for_doubt_until_the_builds_stand_apart():
    earlier = series("A", 0, [1.0, SLOW, 1.0, 1.0, 1.0])
    assert chance(4, 1, 0, 3) > 0.05 > chance(4, 1, 0, 4)
    fates = [fate(*earlier, *series("B", 5, [SLOW] * runs))[:2] for runs in (1, 3, 4)]
    assert fates == [("environment", "suspected"), ("environment", "suspected"), ("engine", "confirmed")]


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


@pytest.mark.parametrize("cells", [(4, 8), (4,)])
@pytest.mark.parametrize("later", [1, 3])
def test_a_standing_run_at_the_new_level_clears_what_older_runs_lent_it(cells, later):
    # The standing run has some cells, at the new level; the rest of the baseline is from a slow run of the same image.
    earlier = [curve("A", 0, speed=SLOW), curve("A", 1, cells=cells)]
    found = [row for row in shifts(*earlier, *series("B", 2, [1.0] * later)) if row["to_engine_version"] == "B"]
    assert [row["attribution"] for row in found] == ["environment"]


def test_a_standing_run_at_the_old_level_leaves_the_claim():
    assert fate(curve("A", 0), curve("A", 1, cells=(4,)), curve("B", 2, SLOW))[0] == "engine"


@pytest.mark.parametrize(("speed", "attribution"), [(SLOW, "environment"), (1.0, "engine")])
def test_a_single_cell_of_the_earlier_build_may_acquit(speed, attribution):
    earlier = [curve("A", 0, speed, cells=(4,)), curve("A", 1)]
    assert fate(*earlier, curve("B", 2, SLOW))[0] == attribution


def test_a_single_cell_of_the_later_build_says_nothing():
    found = shifts(curve("B", -1, cells=(4,)), curve("A", 0), curve("B", 1, SLOW))
    assert [(row["attribution"], row["status"]) for row in found] == [("engine", "suspected")]


def skewed(speed, headline):
    """Return what a curve needs to show *speed* in steady state and *headline* as reported."""
    return {"speed": speed, "skew": dict.fromkeys(CELLS, 1.01 * speed / headline - 1.01)}


def test_a_shift_whose_witnesses_differ_is_confirmed_by_its_own_repetition():
    # Reported -10.9 %, steady state -5.8 %; the repeats show a little less of the steady state.
    frames = [curve("B", day, **skewed(*both)) for day, both in ((1, (0.942, 0.891)), (2, (0.9445, 0.892)), (3, (0.944, 0.892)))]
    assert fate(curve("A", 0), *frames)[:2] == ("engine", "confirmed")
    assert fate(curve("A", 0), frames[0], curve("B", 2, 0.975), curve("B", 3, 0.975))[:2] == ("environment", "recovered")


def test_a_notice_whose_cells_waited_unequally_is_confirmed_by_its_own_repetition():
    waits = {4: 0.15, 8: 0.15, 16: 0.9}
    frames = [curve("B", day, cold=waits) for day in (1, 2, 3)]
    assert fate(curve("A", 0), *frames)[:2] == ("measurement", "confirmed")
    gone = [curve("B", day, cold={64: 0.9}) for day in (2, 3)]
    assert fate(curve("A", 0), frames[0], *gone)[:2] == ("measurement", "recovered")


def test_a_notice_is_followed_by_the_cells_that_went_its_way():
    # Two cells were cold and are warm, one is cold now and the worst: the notice is of that one, and it lasts.
    frames = [curve("A", 0, cold={4: 0.3, 8: 0.3}), curve("B", 1, cold={16: 0.9})]
    assert fate(*frames, curve("B", 2, cold={4: 0.3, 8: 0.3, 16: 0.9}))[:2] == ("measurement", "confirmed")
    assert fate(*frames, curve("B", 2))[:2] == ("measurement", "recovered")


def test_a_notice_of_a_curve_is_followed_by_its_fit_cells():
    # Three cells are cold on every day and did not move; the notice is of the two others.
    always = {4: 0.2, 8: 0.2, 16: 0.2}
    skewed_cells = {"cold": always, "skew": {32: 0.15, 64: 0.15}}
    frames = [curve("A", 0, cold=always), curve("B", 1, **skewed_cells)]
    assert fate(*frames, curve("B", 2, **skewed_cells))[:2] == ("measurement", "confirmed")
    assert fate(*frames, curve("B", 2, cold=always))[:2] == ("measurement", "recovered")


def test_a_partial_repeat_is_measured_by_what_its_cells_showed():
    uneven = {4: 0.945, 8: 0.945, 16: 0.9, 32: 0.9, 64: 0.9}
    first = [curve("A", 0), curve("B", 1, cells=uneven)]
    # Of the 5.7 % that cells 4 and 8 lost, 4.6 % are left; of the curve's 10.5 % that would be less than half.
    assert fate(*first, curve("B", 2, cells={4: 0.955, 8: 0.955}))[:2] == ("engine", "confirmed")
    assert fate(*first, curve("B", 2, cells={4: 0.98, 8: 0.98}))[:2] == ("environment", "recovered")


def test_later_cells_that_never_moved_cannot_tell():
    still = {4: 1.0, 8: 1.0, 16: 0.9, 32: 0.9, 64: 0.9}
    assert fate(curve("A", 0), curve("B", 1, cells=still), curve("B", 2, cells=(4, 8))) == ("engine", "suspected", "seen once")


LATENCY = ("e2el_median", "steady_output_tput_per_gpu")


def test_tpot_tells_where_a_run_has_no_median_latency():
    first = [curve("A", 0), curve("B", 1, speed=SLOW)]
    assert fate(*first, curve("B", 2, speed=SLOW, without=LATENCY))[:2] == ("engine", "confirmed")
    assert fate(*first, curve("B", 2, without=LATENCY))[:2] == ("environment", "recovered")


def test_latency_tells_where_a_run_has_no_steady_state_and_no_tpot():
    # Open loops have no steady state; here they have no TPOT either.
    first = [curve("A", 0), curve("B", 1, speed=SLOW)]
    lacking = ("steady_output_tput_per_gpu", "tpot_median")
    assert fate(*first, curve("B", 2, speed=SLOW, without=lacking))[:2] == ("engine", "confirmed")
    assert fate(*first, curve("B", 2, without=lacking))[:2] == ("environment", "recovered")


def test_tpot_that_did_not_see_the_shift_cannot_tell():
    flat = {"tpot_median": 0.02}
    frames = [curve("A", 0, values=flat), curve("B", 1, speed=SLOW, values=flat)]
    assert fate(*frames, curve("B", 2, speed=SLOW, values=flat, without=LATENCY)) == ("engine", "suspected", "seen once")


@pytest.mark.parametrize(("speed", "status"), [(0.9585, "confirmed"), (0.9597, "recovered")])
def test_half_of_a_shift_is_the_border(speed, status):
    # log 0.92 = -0.08338, half of it -0.04169: 0.95917.
    assert fate(curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2, speed=speed))[1] == status


@pytest.mark.parametrize(("speed", "attribution"), [(0.939, "environment"), (0.940, "engine")])
def test_a_quarter_of_a_shift_is_the_border_of_doubt(speed, attribution):
    # A quarter is left at 0.92 ** 0.75 = 0.93937.
    earlier = [curve("A", 0), curve("A", 1, speed=speed), curve("A", 2), curve("A", 3), curve("A", 4)]
    assert fate(*earlier, curve("B", 5, speed=SLOW))[0] == attribution


NEAREST = (1.0, SLOW, SLOW, 1.0, 1.0, SLOW)
"""Nearest first: of the first five, three stand at 1; of four or of six, no more than half."""


def test_the_five_nearest_later_runs_tell_whether_a_shift_stands():
    # Four of the later build's seven runs stand, all eight of the earlier one.
    assert chance(8, 0, 3, 4) <= 0.05
    after = [curve("B", 2 + n, 1.0 if speed == SLOW else SLOW) for n, speed in enumerate(NEAREST)]
    assert fate(*series("A", -7, [1.0] * 8), curve("B", 1, SLOW), *after)[:2] == ("engine", "confirmed")


FAR = [(4, "engine"), (5, "environment")]
"""Runs beyond the nearest five that stand on the other side: half of all is too many, four are outweighed by the others."""


@pytest.mark.parametrize(("odd", "attribution"), FAR)
def test_all_earlier_runs_of_the_earlier_build_are_heard(odd, attribution):
    assert chance(6, 4, 0, 5) <= 0.05
    frames = [*series("A", -20, [SLOW] * odd), *series("A", -5, [1.0] * 6), *series("B", 1, [SLOW] * 5)]
    assert fate(*frames)[0] == attribution


@pytest.mark.parametrize(("odd", "attribution"), FAR)
def test_all_later_runs_of_the_earlier_build_are_heard(odd, attribution):
    assert chance(6, 4, 0, 5) <= 0.05
    frames = [curve("A", 0), *series("B", 1, [SLOW] * 5), *series("A", 6, [1.0] * 5), *series("A", 20, [SLOW] * odd)]
    assert fate(*frames)[0] == attribution


@pytest.mark.parametrize(("odd", "attribution"), FAR)
def test_all_earlier_runs_of_the_later_build_are_heard(odd, attribution):
    assert chance(5, 0, 4, 7) <= 0.05
    frames = [
        *series("B", -30, [1.0] * odd),
        *series("B", -15, [SLOW] * 5),
        *series("A", -4, [1.0] * 5),
        *series("B", 1, [SLOW] * 2),
    ]
    (row,) = [r for r in shifts(*frames) if r["from_engine_version"] == "A" and r["to_engine_version"] == "B"]
    assert row["attribution"] == attribution


def test_an_odd_run_of_the_later_build_long_before_counts_as_well():
    assert chance(2, 0, 1, 4) > 0.05
    frames = [*series("B", -9, [1.0, SLOW, SLOW]), *series("A", -1, [1.0, 1.0]), *series("B", 1, [SLOW, SLOW])]
    (row,) = [r for r in shifts(*frames) if r["from_engine_version"] == "A" and r["to_engine_version"] == "B"]
    assert row["status_reason"] == "the builds are not apart: runs of either that stand on the other's side: 1"


@pytest.mark.parametrize("later", [2, 5])
def test_a_host_with_two_levels_names_no_engine(later):
    frames = [*series("A", 0, [1.0, SLOW, 1.0, SLOW, 1.0]), *series("B", 5, [SLOW] * later)]
    rows = shifts(*frames)
    assert rows
    assert {row["attribution"] for row in rows} == {"environment"}


@pytest.mark.parametrize("odd", range(1, 6))
def test_a_long_clean_history_with_one_odd_run_names_the_engine(odd):
    # Six runs of either build; one of the later ones, any but the first, is back at the old level.
    assert chance(6, 0, 1, 5) <= 0.05
    later = [1.0 if number == odd else SLOW for number in range(6)]
    assert fate(*series("A", 0, [1.0] * 6), *series("B", 6, later))[:2] == ("engine", "confirmed")


def test_the_earlier_build_beside_the_later_one_is_a_later_run():
    beside = [curve("A", 1, SLOW, run="x"), curve("B", 1, SLOW, run="x")]
    assert fate(curve("A", 0), *beside)[0] == "environment"


def test_a_run_that_may_be_of_either_side_speaks_for_neither():
    # Of a run without a recipe nobody knows which it was; it repeats both.
    later = [curve("A", 0, recipe="aa"), curve("A", 1, SLOW, recipe="bb"), curve("A", 2, SLOW)]
    assert fate(*later, build="A")[:2] == ("recipe", "confirmed")
    earlier = [curve("A", -1), curve("A", 0, recipe="aa"), curve("A", 1, SLOW, recipe="bb")]
    assert fate(*earlier, build="A")[:2] == ("recipe", "suspected")


def siblings(count, build, day, speed=1.0):
    return [curve(build, day, speed, isl=1000 + number) for number in range(count)]


def test_siblings_of_one_run_share_its_host_and_confirm_nothing():
    rows = shifts(*siblings(4, "A", 0), *siblings(4, "B", 1, SLOW))
    assert {(row["attribution"], row["status"], row["siblings"], row["siblings_total"]) for row in rows} == {
        ("engine", "suspected", 4, 4)
    }
    assert {row["status_reason"] for row in rows} == {"seen once; 4 of 4 curves of this run moved alike"}
    assert len({row["event_key"] for row in rows}) == 1


def elsewhere(build="B", day=1.0, speed=SLOW, **other):
    """Return one more curve, on another accelerator unless said otherwise, from build A to *build*."""
    where = {"isl": 1100, **({"hardware": "h100"} if "label" not in other else {}), **other}
    return [curve("A", 0, **where), curve(build, day, speed, **where)]


def statuses(*frames):
    """Return (status, reason) of the shifts of the two siblings of build B."""
    rows = shifts(*siblings(2, "A", 0), *siblings(2, "B", 1, SLOW), *frames)
    return {(row["status"], row["status_reason"]) for row in rows if row["isl"] in (1000, 1001)}


def test_three_curves_on_two_accelerators_confirm_at_once():
    assert statuses(*elsewhere()) == {("confirmed", "3 curves on h100, mi355x moved alike")}
    # In another run of that night just as well.
    assert statuses(*elsewhere(day=1.2)) == {("confirmed", "3 curves on h100, mi355x moved alike")}


def test_three_curves_on_two_kinds_of_host_confirm_at_once():
    assert statuses(*elsewhere(label="mi355x-tw_0")) == {("confirmed", "3 curves on mi355x-amd, mi355x-tw moved alike")}


@pytest.mark.parametrize(
    ("frames", "count"),
    [
        (elsewhere(label="mi355x-amd_7"), 3),  # a runner's number is no other kind of host
        (elsewhere(label=None), 3),  # what is not recorded is not another
        (elsewhere(day=2.0), 2),  # another night
        (elsewhere(build="C"), 2),  # another pair of builds
        (elsewhere(speed=1 / SLOW), 2),  # the other direction
        (elsewhere(engine="sglang"), 2),  # another engine
        ([curve("A", 0, hardware="h100"), curve("B", 1, SLOW, hardware="h100", checkpoint="x")], 2),  # mixed
        ([curve("A", 0, hardware="h100"), curve("B", 1, hardware="h100", cold=(4, 8))], 2),  # a notice
    ],
)
def test_what_does_not_confirm_at_once(frames, count):
    assert statuses(*frames) == {("suspected", f"seen once; {count} of {count} curves of this run moved alike")}


def test_two_curves_on_two_accelerators_do_not_confirm():
    rows = shifts(curve("A", 0), curve("B", 1, SLOW), *elsewhere())
    assert [(row["status"], row["status_reason"]) for row in rows] == [("suspected", "seen once")] * 2


def test_siblings_are_counted_among_the_curves_of_the_change():
    two = shifts(*siblings(4, "A", 0), *siblings(2, "B", 1, SLOW), curve("B", 1, isl=1002), curve("B", 1, isl=1003))
    assert [(row["status"], row["siblings"], row["siblings_total"]) for row in two] == [("suspected", 2, 4)] * 2


@pytest.mark.parametrize(
    ("other", "total"),
    [
        ({}, 2),
        ({"run": "y"}, 1),
        ({"attempt": 2}, 1),
        ({"hardware": "h100"}, 1),
        ({"engine": "sglang"}, 1),
        ({"values": {"run_source": "elsewhere"}}, 1),
        ({"build": "C"}, 1),
        ({"old": "C"}, 1),
    ],
)
def test_siblings_are_curves_of_one_run_stack_and_pair_of_builds(other, total):
    old, new = other.get("old", "A"), {"build": "B", "run": "x", **{key: value for key, value in other.items() if key != "old"}}
    identity = {key: value for key, value in other.items() if key in ("hardware", "engine")}
    frames = [curve("A", 0), curve("B", 1, SLOW, run="x"), curve(old, 0, isl=8192, **identity)]
    rows = shifts(*frames, curve(day=1, speed=SLOW, isl=8192, **new))
    assert [(row["siblings"], row["siblings_total"]) for row in rows] == [(total, total)] * 2
    assert len({row["event_key"] for row in rows}) == 3 - total


def test_curves_that_moved_the_other_way_or_for_another_cause_are_no_siblings():
    rows = shifts(*siblings(3, "A", 0), *siblings(2, "B", 1, SLOW), curve("B", 1, 1 / SLOW, isl=1002))
    assert sorted((row["siblings"], row["siblings_total"]) for row in rows) == [(1, 3), (2, 3), (2, 3)]
    rows = shifts(*siblings(3, "A", 0), *siblings(2, "B", 1, SLOW), curve("B", 1, SLOW, isl=1002, checkpoint="x"))
    assert sorted((row["attribution"], row["siblings"]) for row in rows) == [("engine", 2), ("engine", 2), ("mixed", 1)]


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
    # A shift well beyond what they did is another matter.
    assert fate(*restless, curve("B", 3, speed=1.1))[0] == "engine"


@pytest.mark.parametrize(
    ("old", "new", "attribution"), [(1, 2, "unknown"), (3, 2, "unknown"), (3, 3, "engine"), (2, 5, "engine"), (2, 4, "unknown")]
)
def test_a_confirmed_shift_of_such_a_curve_needs_runs_enough(old, new, attribution):
    # Three and three runs, or two and five, cannot be one host with two levels but once in twenty times.
    assert (chance(old, 0, 0, new) <= 0.05) == (attribution == "engine")
    restless = [curve("C", 0), curve("C", 1, SLOW)]
    found = fate(*restless, *series("A", 2, [SLOW] * old), *series("B", 10, [1.0] * new))
    assert found[:2] == (attribution, "confirmed")
    assert found[2].endswith(RESTLESS) == (attribution == "unknown")
    # Beyond what they did, two runs are enough.
    assert fate(*restless, curve("A", 2, SLOW), *series("B", 10, [1.1, 1.1]))[:2] == ("engine", "confirmed")


def test_a_standing_run_that_older_runs_complete_counts_once():
    # Two runs of the earlier build and three of the later are not enough; the standing one, of a single cell, is not two.
    assert chance(2, 0, 0, 3) > 0.05
    frames = [
        curve("C", 0),
        curve("C", 1, SLOW),
        curve("A", 2, SLOW),
        curve("A", 3, SLOW, cells=(4,)),
        *series("B", 4, [1.0] * 3),
    ]
    assert fate(*frames)[:2] == ("unknown", "confirmed")


def test_a_notice_of_such_a_curve_stays_a_notice():
    restless = [curve("C", 0), curve("C", 1, SLOW), curve("A", 2, SLOW)]
    assert fate(*restless, curve("B", 3, SLOW, cold={8: 0.1}))[0] == "measurement"


@pytest.mark.parametrize(("size", "attribution"), [(0.074, "unknown"), (0.076, "engine")])
def test_as_far_is_four_fifths(size, attribution):
    # Runs of one image moved the curve by 0.06: four fifths of 0.075.
    restless = [curve("C", 0), curve("C", 1, math.exp(-0.06)), curve("A", 2, math.exp(-0.06))]
    assert fate(*restless, curve("B", 3, math.exp(-0.06 - size)))[0] == attribution


def test_an_incoherent_night_of_one_image_is_no_movement():
    # Median -0.1, and no two cells agree.
    odd = {c: math.exp(x) for c, x in zip(CELLS, (-0.5, 0.3, -0.1, 0.1, -0.3), strict=True)}
    assert fate(curve("C", 0), curve("C", 1, cells=odd), curve("A", 2), curve("B", 3, SLOW))[0] == "engine"


def test_what_was_within_the_noise_of_its_own_night_is_restlessness_all_the_same():
    # The only repeat so far moved by 8 %, so that this is the noise of its night; two that stood still make it a quiet one.
    frames = [curve("C", 0), curve("C", 1, SLOW), *series("A", 2, [SLOW] * 3), *series("B", 5, [1.0, 1.0])]
    found = detect(points(*frames))
    odd = found.diffs.filter(to_engine_version="C").row(0, named=True)
    assert not odd["flagged"]
    (row,) = found.shifts.filter(from_engine_version="A", to_engine_version="B").to_dicts()
    assert (row["attribution"], row["status"]) == ("unknown", "confirmed")


def test_another_runner_label_is_no_restlessness():
    hosts = [curve("C", 0), curve("C", 1, SLOW, label="mi355x-tw_0"), curve("A", 2, SLOW, label="mi355x-tw_0")]
    assert fate(*hosts, curve("B", 3, label="mi355x-tw_0"))[0] == "engine"


def test_as_many_siblings_back_as_standing_are_enough_for_doubt():
    frames = [*siblings(4, "A", 0), *siblings(4, "B", 1, SLOW), curve("B", 2, isl=1000), curve("B", 2, SLOW, isl=1001)]
    first = [row for row in shifts(*frames) if row["to_measured_at"].day == 2]
    assert {row["isl"]: (row["attribution"], row["status"]) for row in first} == {
        1000: ("environment", "recovered"),
        1001: ("engine", "confirmed"),
        1002: ("environment", "suspected"),
        1003: ("environment", "suspected"),
    }


def test_a_notice_that_went_away_casts_no_doubt_on_its_siblings():
    # A notice of the same run and direction recovers; the shift beside it was seen once and stays.
    notice = [curve("A", 0, isl=1000), curve("B", 1, isl=1000, cold=(4, 8)), curve("B", 2, isl=1000)]
    rows = shifts(*notice, curve("A", 0, isl=1001), curve("B", 1, SLOW, isl=1001))
    first = {row["isl"]: (row["attribution"], row["status"]) for row in rows if row["to_measured_at"].day == 2}
    assert first == {1000: ("measurement", "recovered"), 1001: ("engine", "suspected")}


def test_what_repeats_withdraw_is_withdrawn_in_both_tables():
    found = detect(points(*quiet(), curve("A", 0), curve("B", 1, speed=SLOW), curve("B", 2)))
    pair = found.diffs.filter(to_engine_version="B", from_engine_version="A")
    assert pair["attribution"].to_list() == ["environment"]
