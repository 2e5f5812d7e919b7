"""Halving a range: hand-made histories; the mean of all bisections against the formula; a culprit is never lost."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.bisect import Halving, Level, expected_runs
from changelog.nightly import nightlies
from changelog.ranges import Range, find_range
from changelog.upstream import open_upstream
from warehouse.schemas import COMMITS

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def name(number: int) -> str:
    return f"{number:08x}" + "0" * 32


def between(start: int, end: int, *rows: tuple[int, tuple[int, ...], int]) -> Range:
    """Return the range between two commits of a history of rows (number, parents, pull request)."""
    frame = pl.DataFrame(
        [
            {
                "project": "vllm",
                "commit": name(number),
                "parents": [name(parent) for parent in parents],
                "author_date": DAY + timedelta(days=number),
                "committer_date": DAY + timedelta(days=number),
                "title": f"change #{pr}",
                "pr": pr,
                "paths": [],
                "paths_omitted": 0,
                "recorded_at": DAY,
            }
            for number, parents, pr in rows
        ],
        schema_overrides=COMMITS.schema,
    )
    whole = pl.concat([COMMITS.schema.to_frame(), frame], how="diagonal")
    return find_range(open_upstream("vllm", {"commits": whole}), name(start), name(end))


def line(last: int) -> list[tuple[int, tuple[int, ...], int]]:
    return [(number, (number - 1,) if number else (), 1000 + number) for number in range(last + 1)]


def told(halving: Halving, number: int) -> frozenset[int]:
    held = halving.held(number)
    assert held is not None
    return held


def test_a_line_is_halved() -> None:
    halving = Halving.of(between(0, 8, *line(8)))
    assert halving.candidates == (1, 2, 3, 4, 5, 6, 7, 8)
    assert halving.left([]) == halving.candidates
    assert halving.next(halving.candidates, ()) == 4
    assert told(halving, 4) == {1, 2, 3, 4}
    assert halving.left([(told(halving, 4), Level.OLD)]) == (5, 6, 7, 8)
    assert halving.left([(told(halving, 4), Level.NEW)]) == (1, 2, 3, 4)
    assert halving.left([(told(halving, 4), Level.OLD), (told(halving, 6), Level.NEW)]) == (5, 6)
    assert halving.next((5, 6), (4, 6)) == 5


def test_what_cannot_be_told_is_passed_over_for_its_neighbour() -> None:
    halving = Halving.of(between(0, 8, *line(8)))
    assert halving.left([(told(halving, 4), Level.SKIP)]) == halving.candidates
    assert halving.next(halving.candidates, (4,)) == 3
    assert halving.next(halving.candidates, (3, 4)) == 5
    assert halving.next((4, 5), (4,)) is None, "only commit 4 could part the two"


def test_results_that_no_single_change_explains_leave_nothing() -> None:
    halving = Halving.of(between(0, 8, *line(8)))
    assert halving.left([(told(halving, 3), Level.NEW), (told(halving, 5), Level.OLD)]) == ()


def test_an_image_that_is_there_is_taken_where_it_parts_well() -> None:
    halving = Halving.of(between(0, 8, *line(8)))
    assert halving.next(halving.candidates, (), ready=[2, 7]) == 2, "2 : 6 is a quarter"
    assert halving.next(halving.candidates, (), ready=[1, 7]) == 4, "1 : 7 is less"
    assert halving.next(halving.candidates, (), ready=[3, 5]) == 3, "both part 3 : 5; the earlier"


def test_ends_and_what_lies_outside_tell_nothing() -> None:
    halving = Halving.of(between(2, 6, *line(9)))
    assert [halving.held(number) for number in (0, 2, 6, 9)] == [None] * 4
    assert halving.left([]) == (3, 4, 5, 6)


def test_a_build_of_a_release_branch_tells_by_what_it_has() -> None:
    """Main 0 to 5; TO 12 branches off 3 with a pick of 5 and a change of its own; 21 branches off 2 with a pick of 5."""
    rows = [*line(5), (11, (3,), 1005), (12, (11,), 77), (21, (2,), 1005)]
    halving = Halving.of(between(0, 12, *rows))
    changes = {number: halving.history.changes[number] for number in halving.candidates}
    assert sorted(str(change) for change in changes.values()) == ["1001", "1002", "1003", "1005", "77"]
    held = told(halving, halving.history.index[name(21)])
    assert sorted(str(changes[number]) for number in held) == ["1001", "1002", "1005"]
    left = halving.left([(held, Level.OLD)])
    assert sorted(str(changes[number]) for number in left) == ["1003", "77"]


def test_a_build_with_a_change_that_neither_end_has_tells_nothing() -> None:
    halving = Halving.of(between(0, 4, *line(4), (31, (2,), 500)))
    assert halving.held(halving.history.index[name(31)]) is None


def test_going_back_turns_the_levels_round() -> None:
    """FROM is the newer: its level is the old one, and a build that stands there still has the change."""
    halving = Halving.of(between(8, 0, *line(8)))
    assert halving.reversed
    assert halving.left([(told(halving, 4), Level.OLD)]) == (1, 2, 3, 4)
    assert halving.left([(told(halving, 4), Level.NEW)]) == (5, 6, 7, 8)


def test_merges_bring_all_that_they_merge() -> None:
    rows = [(0, (), 1), (1, (0,), 2), (2, (0,), 3), (3, (2,), 4), (4, (1, 3), 5), (5, (4,), 6)]
    halving = Halving.of(between(0, 5, *rows))
    assert [len(brought) for brought in halving.counts] == [1, 3, 1]
    assert len(halving.candidates) == 5


def test_a_range_without_commits_at_its_ends_cannot_be_halved() -> None:
    found = between(0, 3, *line(3))
    with pytest.raises(ValueError, match="no change lies between"):
        Halving.of(between(3, 3, *line(3)))
    with pytest.raises(ValueError, match="no commit"):
        Halving.of(find_range(found.upstream, "9.9.9", name(3)))


def runs_to_find(halving: Halving, culprit: int, untold: Iterable[int] = ()) -> tuple[int, tuple[int, ...]]:
    results: list[tuple[frozenset[int], Level]] = []
    tried: set[int] = set()
    while (number := halving.next(left := halving.left(results), tried)) is not None:
        tried.add(number)
        level = Level.SKIP if number in untold else Level.NEW if culprit <= number else Level.OLD
        results.append((told(halving, number), level))
    return len(tried), left


@pytest.mark.parametrize(
    ("candidates", "mean"), [(1, 0.0), (2, 1.0), (3, 5 / 3), (4, 2.0), (5, 12 / 5), (7, 20 / 7), (900, None)]
)
def test_the_expected_number_of_runs_is_the_mean_over_all_culprits(candidates: int, mean: float | None) -> None:
    if mean is not None:
        assert expected_runs(candidates) == pytest.approx(mean)
        halving = Halving.of(between(0, candidates, *line(candidates)))
        runs = [runs_to_find(halving, culprit)[0] for culprit in halving.candidates]
        assert sum(runs) / candidates == pytest.approx(mean)
    else:
        assert 9.8 < expected_runs(candidates) < 9.9, "log2(900) is 9.81; no tree does better"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_culprit_is_never_lost(data: st.DataObject) -> None:
    last = data.draw(st.integers(1, 40))
    halving = Halving.of(between(0, last, *line(last)))
    culprit = data.draw(st.integers(1, last))
    untold = data.draw(st.sets(st.integers(1, last), max_size=last))
    runs, left = runs_to_find(halving, culprit, untold)
    assert culprit in left and runs <= last
    assert left == tuple(range(left[0], left[-1] + 1))
    assert set(range(left[0], left[-1])) <= untold, "only what could not be told keeps changes together"


def test_nightly_images_are_named_and_go() -> None:
    day, commit = datetime(2026, 3, 17, tzinfo=UTC), "1eea7448" + "5" * 32
    vllm, rocm = nightlies("vllm", "nvidia"), nightlies("vllm", "amd")
    assert [one.image(commit, day) for one in (*vllm, *rocm)] == [
        f"vllm/vllm-openai:nightly-{commit}",
        f"vllm/vllm-openai-rocm:nightly-{commit}",
    ]
    assert nightlies("sglang", "nvidia")[0].image(commit, day) == "lmsysorg/sglang:nightly-dev-20260317-1eea7448"
    assert nightlies("sglang", "amd") == () and nightlies("trtllm") == ()
    assert not vllm[0].is_gone(day, day + timedelta(days=14)) and vllm[0].is_gone(day, day + timedelta(days=15))
