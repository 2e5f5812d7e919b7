"""Which points stand for the earlier side: partial sweeps, unfit cells, definitions, instants."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.baseline import LOOK_BACK, baselines
from pipelines.detect.observations import STEADY, observe
from tests.fleet import CELLS, curve, metrics, points
from tests.frames import day


def history_of(*frames):
    (history,) = observe(points(*frames), ("hardware", "engine")).values()
    return history


def baseline_of(*frames):
    history = history_of(*frames)
    return baselines(history)[-1]


def days(observations):
    return [(o.measured_at - day(0)).days for o in observations]


def test_the_previous_observation_stands():
    found = baseline_of(curve("A", 0), curve("B", 2), curve("C", 5))
    assert found.observation.engine_version == "B"
    assert days(found.repeats) == [2]


def test_the_first_observation_has_none():
    assert baselines(history_of(curve("A", 0))) == [None]


def test_repeats_of_the_standing_setup_come_latest_first_even_past_other_builds():
    found = baseline_of(curve("A", 0), curve("B", 1), curve("A", 2), curve("A", 3), curve("C", 4))
    assert found.observation.engine_version == "A"
    assert days(found.repeats) == [3, 2, 0]


def test_only_so_many_repeats_are_looked_at():
    found = baseline_of(*(curve("A", number) for number in range(LOOK_BACK + 4)), curve("B", 30))
    assert days(found.repeats) == list(range(LOOK_BACK + 3, 3, -1))


def test_a_cell_that_a_partial_sweep_lacks_comes_from_the_latest_repeat_that_has_it():
    found = baseline_of(
        curve("A", 0, speed=1.0),
        curve("A", 1, speed=1.1, cells=(4, 8, 16)),
        curve("A", 2, speed=1.2, cells=(4, 8)),
        curve("B", 3),
    )
    assert found.observation.measured_at == day(2)
    speeds = {4: 1.2, 8: 1.2, 16: 1.1, 32: 1.0, 64: 1.0}
    for concurrency, speed in speeds.items():
        expected = metrics(concurrency, speed)["steady_output_tput_per_gpu"]
        assert pow(2.718281828459045, found.cells[concurrency].values[STEADY]) == pytest.approx(expected)


def test_an_unfit_cell_is_replaced_by_an_older_fit_one():
    found = baseline_of(curve("A", 0, speed=1.1), curve("A", 1, cold=(8,)), curve("B", 2))
    assert not any(cell.unfit for cell in found.cells.values())
    assert found.cells[8] == history_of(curve("A", 0, speed=1.1))[0].cells[8]
    assert found.cells[4] == history_of(curve("A", 1))[0].cells[4]


def test_an_unfit_cell_stays_where_no_fit_one_is_known():
    found = baseline_of(curve("A", 0, cold=(8,)), curve("A", 1, cold=(8,)), curve("B", 2))
    assert [concurrency for concurrency, cell in found.cells.items() if cell.unfit] == [8]


def test_a_sweep_of_other_cells_is_passed_over():
    found = baseline_of(curve("A", 0, cells=(4, 8, 16)), curve("B", 1, cells=(128, 256)), curve("C", 2, cells=(4, 8, 16)))
    assert found.observation.engine_version == "A"


def test_nothing_in_common_is_no_baseline():
    assert baseline_of(curve("A", 0, cells=(4, 8)), curve("B", 1, cells=(16, 32))) is None


def test_a_sweep_that_leaves_one_cell_is_passed_over_for_one_that_leaves_more():
    found = baseline_of(curve("A", 0), curve("B", 1, cells=(4,)), curve("B", 2))
    assert found.observation.engine_version == "A"
    assert found.cells.keys() == set(CELLS)


def test_one_cell_in_common_is_used_where_there_is_no_more():
    found = baseline_of(curve("A", 0, cells=(4, 128)), curve("B", 1, cells=(4, 8)))
    assert found.observation.engine_version == "A"


def test_another_metric_definition_is_passed_over():
    found = baseline_of(curve("A", 0), curve("B", 1, definition="per role"), curve("C", 2))
    assert found.observation.engine_version == "A"
    assert baseline_of(curve("A", 0), curve("B", 1, definition="per role")) is None


def test_one_instant_is_not_earlier():
    assert baseline_of(curve("A", 1, run="1"), curve("B", 1, run="2")) is None


def test_of_two_builds_side_by_side_each_is_compared_with_itself():
    history = history_of(curve("A", 0), curve("B", 0), curve("A", 1), curve("B", 1))
    found = baselines(history)[2:]
    assert [history[index].build_id for index in (2, 3)] == [baseline.observation.build_id for baseline in found]


def test_points_of_one_observation_agree_in_all_that_can_differ():
    two_hosts = points(curve("B", 1, cells=(4, 8)), curve("B", 1, cells=(16, 32, 64), label="mi355x-tw_3"))
    history = history_of(curve("A", 0), two_hosts)
    assert [(o.hardware_label, sorted(o.cells)) for o in history[1:]] == [("mi355x-amd", [4, 8]), ("mi355x-tw", [16, 32, 64])]


def test_runners_of_one_kind_share_an_observation():
    two_runners = points(curve("B", 1, cells=(4, 8), label="mi355x-amd_0"), curve("B", 1, cells=(16,), label="mi355x-amd_17"))
    (observation,) = history_of(two_runners)
    assert observation.hardware_label == "mi355x-amd"
    assert sorted(observation.cells) == [4, 8, 16]


def test_a_sweep_that_took_hours_is_one_observation_dated_by_its_first_point():
    sweep = points(*(curve("A", number / 24, cells=(cell,), run="one") for number, cell in enumerate((64, 8, 4))))
    (observation,) = history_of(sweep)
    assert observation.measured_at == day(0)
    assert sorted(observation.cells) == [4, 8, 64]


def test_attempts_of_one_run_are_two_observations():
    history = history_of(curve("A", 0, run="one"), curve("A", 0.5, run="one", attempt=2))
    assert [o.run_attempt for o in history] == [1, 2]
    assert baselines(history)[1].observation.run_attempt == 1


class Counted(list):
    """A history that counts how often an observation of it is looked at."""

    looks = 0

    def __getitem__(self, position):
        self.looks += 1
        return super().__getitem__(position)


def test_a_new_build_every_night_does_not_look_at_all_of_history():
    nights = 120
    history = Counted(history_of(*(curve(f"b{number}", number, cells=(4, 8)) for number in range(nights))))
    found = baselines(history)
    assert [len(baseline.repeats) for baseline in found[1:]] == [1] * (nights - 1)
    assert history.looks < 6 * nights  # it was half the square of the nights


@pytest.mark.parametrize("other", [{"recipe": "beef"}, {"checkpoint": "other"}, {"label": "mi355x-tw_0"}])
def test_only_the_same_setup_is_pooled(other):
    known = {"recipe": "cafe", "checkpoint": "one", "label": "mi355x-amd_0"}
    found = baseline_of(curve("A", 0, **{**known, **other}), curve("A", 1, cells=(4, 8), **known), curve("B", 2, **known))
    assert days(found.repeats) == [1]
    assert found.cells.keys() == {4, 8}


def test_the_latest_of_two_unfit_cells_is_used():
    history = history_of(curve("A", 0, speed=1.1, cold=(8,)), curve("A", 1, speed=1.2, cold=(8,)), curve("B", 2))
    assert baselines(history)[2].cells[8] == history[1].cells[8]


def test_repeats_later_than_the_standing_one_are_not_pooled():
    # The run of day 1 shares no cell with the new one and does not stand; what stands is the run of day 0.
    history = history_of(curve("A", 0, cells=(4, 8)), curve("A", 1, cells=(16, 32)), curve("B", 2, cells=(4, 8)))
    assert days(baselines(history)[2].repeats) == [0]


def plain_repeats(history, index, standing):
    """The definition, told plainly: of the standing observation and what is before it, the same setup, latest first."""
    before = history[: history.index(standing) + 1]
    return [old for old in reversed(before) if old.setup == standing.setup][:LOOK_BACK]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("AB"), st.sampled_from([None, "aa"]), st.integers(0, 4), st.sampled_from([(4, 8), (16, 32), (4, 16)])
        ),
        min_size=1,
        max_size=25,
    )
)
def test_repeats_are_those_of_the_definition(runs):
    frames = [
        curve(build, day, recipe=recipe, cells=cells, run=f"n{number}") for number, (build, recipe, day, cells) in enumerate(runs)
    ]
    history = history_of(*frames)
    for index, found in enumerate(baselines(history)):
        if found is not None:
            assert found.observation.measured_at < history[index].measured_at
            assert list(found.repeats) == plain_repeats(history, index, found.observation)


def test_cells_of_another_client_are_not_pooled():
    other = {"record_format": "aiperf"}
    found = baseline_of(curve("A", 0, values=other), curve("A", 1, cells=(4, 8)), curve("B", 2))
    assert sorted(found.cells) == [4, 8]


def test_cells_from_before_a_tag_moved_are_not_pooled():
    found = baseline_of(curve("A", 0), curve("A", 1, cells=(4, 8), values={"engine_version": "A.dev2"}), curve("B", 2))
    assert sorted(found.cells) == [4, 8]
