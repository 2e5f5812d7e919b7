"""The commit graph against a brute-force reading of the same edges."""

from datetime import UTC, datetime, timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from changelog.history import History
from tests import frames
from warehouse.schemas import COMMITS

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def name(number: int) -> str:
    return f"{number:040x}"


def frame(parents: list[list[int]], days: list[int] | None = None) -> pl.DataFrame:
    dates = [DAY + timedelta(days=day) for day in days or range(len(parents))]
    rows = [
        ("vllm", name(number), [name(parent) for parent in own], date, date, f"change {number}", None, [], 0, DAY)
        for number, (own, date) in enumerate(zip(parents, dates, strict=True))
    ]
    return frames.commits(rows)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 14))
    return [draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else [] for number in range(size)]


def brute_ancestors(parents: list[list[int]], start: int) -> set[int]:
    found, grown = {start}, True
    while grown:
        more = {parent for number in found for parent in parents[number]} - found
        found, grown = found | more, bool(more)
    return found


@given(graphs(), st.randoms(use_true_random=False), st.data())
def test_between_is_the_difference_of_ancestors_whatever_the_row_order(
    parents: list[list[int]], shuffle, data: st.DataObject
) -> None:
    rows = list(range(len(parents)))
    shuffle.shuffle(rows)
    history = History(frame(parents)[rows])
    start, end = data.draw(st.sampled_from(range(len(parents)))), data.draw(st.sampled_from(range(len(parents))))
    found = [int(history.hashes[number], 16) for number in history.between(history.index[name(start)], history.index[name(end)])]
    assert set(found) == brute_ancestors(parents, end) - brute_ancestors(parents, start)
    assert len(found) == len(set(found))
    places = {commit: place for place, commit in enumerate(found)}
    assert all(places[parent] < places[child] for child in found for parent in parents[child] if parent in places)


@given(graphs(), st.data())
def test_merge_base_is_a_common_ancestor_that_no_other_descends_from(parents: list[list[int]], data: st.DataObject) -> None:
    history = History(frame(parents))
    one, other = data.draw(st.sampled_from(range(len(parents)))), data.draw(st.sampled_from(range(len(parents))))
    base = history.merge_base(history.index[name(one)], history.index[name(other)])
    common = brute_ancestors(parents, one) & brute_ancestors(parents, other)
    if base is None:
        assert not common
    else:
        found = int(history.hashes[base], 16)
        assert found in common
        assert not [commit for commit in common - {found} if found in brute_ancestors(parents, commit)]


@given(graphs(), st.randoms(use_true_random=False))
def test_numbers_do_not_depend_on_row_order(parents: list[list[int]], shuffle) -> None:
    rows = list(range(len(parents)))
    shuffle.shuffle(rows)
    assert History(frame(parents)[rows]).hashes == History(frame(parents)).hashes
    assert History(frame(parents)[rows]).main == History(frame(parents)).main


def test_main_line_is_the_longest_chain_of_first_parents() -> None:
    # 0-1-2-3-4 is main; 5 and 6 are on a release branch off 1, and 6 is the newest of all.
    history = History(frame([[], [0], [1], [2], [3], [1], [5]]))
    assert [int(history.hashes[number], 16) for number in history.main] == [0, 1, 2, 3, 4]
    assert not history.on_main(history.index[name(6)])


def test_position_by_date() -> None:
    history = History(frame([[], [0], [1]], [0, 10, 20]))
    assert history.last_before(DAY - timedelta(seconds=1)) is None
    assert history.hashes[history.last_before(DAY) or 0] == name(0)
    assert history.last_before(DAY + timedelta(days=10)) == history.index[name(1)]
    assert history.last_before(DAY + timedelta(days=99)) == history.index[name(2)]


def test_a_clock_that_ran_back_does_not_unsort_main() -> None:
    history = History(frame([[], [0], [1]], [0, 10, 5]))
    assert history.last_before(DAY + timedelta(days=7)) == history.index[name(0)]
    assert history.last_before(DAY + timedelta(days=10)) == history.index[name(2)]


def test_prefixes() -> None:
    history = History(frame([[], [0]]))
    assert history.number(name(1)) == 1
    assert history.number("0" * 39) is None, "two commits begin so"
    assert history.number("00000") is None, "too short to be one"


def test_a_shallow_history_claims_nothing_behind_its_edge() -> None:
    commits = frame([[], [0], [1], [2]])[2:]
    history = History(commits)
    assert history.shallow
    assert history.hashes == [name(2), name(3)]
    assert history.between(0, 1) == [1]


def test_a_cycle_in_a_bad_file_ends() -> None:
    commits = frame([[], [0], [1]]).with_columns(parents=pl.Series([[name(2)], [name(0)], [name(1)]]))
    history = History(commits)
    assert len(history) == 3
    assert history.reachable(0) == {0, 1, 2}
    assert len(history.main) >= 1


def test_nothing_known() -> None:
    history = History(COMMITS.schema.to_frame())
    assert len(history) == 0 and history.main == []
    assert history.last_before(DAY) is None


@given(
    st.lists(st.text(alphabet="01ab", min_size=7, max_size=9), min_size=1, max_size=12, unique=True), st.text("01ab", max_size=9)
)
def test_a_prefix_names_the_one_commit_that_begins_so(hashes: list[str], prefix: str) -> None:
    rows = [("vllm", commit, [], DAY, DAY, "change", None, [], 0, DAY) for commit in hashes]
    history = History(frames.commits(rows))
    found = history.number(prefix)
    fitting = [commit for commit in hashes if commit.startswith(prefix)]
    wanted = prefix if prefix in hashes else fitting[0] if len(prefix) >= 7 and len(fitting) == 1 else None
    assert (None if found is None else history.hashes[found]) == wanted


def test_a_main_place_is_that_of_the_last_main_commit_that_is_held() -> None:
    """main 0 1 2 3 4; 5 and 6 off 1, where 6 has merged 3."""
    history = History(frame([[], [0], [1], [2], [3], [1], [5, 3]]))
    places = {int(history.hashes[number], 16): place for number, place in enumerate(history.main_places)}
    assert [int(history.hashes[number], 16) for number in history.main] == [0, 1, 2, 3, 4]
    assert places == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 1, 6: 3}
