"""The order of builds: one list whatever the order of coming, never against ancestry, PEP 440 among versions, dates last."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from changelog.anchors import Anchor
from changelog.history import History
from changelog.order import BuildEnd, build_order, end_at
from tests import frames

DAY = datetime(2026, 1, 1, tzinfo=UTC)
VERSIONS = ("1.2.0rc5", "1.2.0rc6", "1.2.0rc6.post1", "1.2.0rc7", "1.2.0", "1.2.0.post1", "1.3.0rc0")


def day(number: float) -> datetime:
    return DAY + timedelta(days=number)


def name(number: int) -> str:
    return f"{number:040x}"


def history(parents: list[list[int]]) -> History:
    return History(
        frames.commits(
            (
                "vllm",
                name(number),
                [name(parent) for parent in own],
                day(number),
                day(number),
                f"change {number}",
                None,
                [],
                0,
                DAY,
            )
            for number, own in enumerate(parents)
        )
    )


def keys(ends: list[BuildEnd], known: History | None = None) -> list[str]:
    return [end.key for end in build_order(ends, known)]


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(1, 12))
    return [draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else [] for number in range(size)]


@st.composite
def builds(draw: st.DrawFn) -> tuple[History, list[BuildEnd]]:
    parents = draw(graphs())
    ends = [
        BuildEnd(
            f"build {number}",
            draw(st.none() | st.sampled_from([name(commit) for commit in range(len(parents) + 2)])),
            draw(st.none() | st.sampled_from([*VERSIONS, "nightly"])),
            draw(st.none() | st.integers(-3, 15).map(day)),
        )
        for number in range(draw(st.integers(0, 9)))
    ]
    return history(parents), ends


@given(builds(), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_coming_and_loses_nothing(
    made: tuple[History, list[BuildEnd]], shuffle
) -> None:
    known, ends = made
    found = build_order(ends, known)
    mixed = list(ends)
    shuffle.shuffle(mixed)
    assert build_order(mixed, known) == found
    assert sorted(found, key=lambda end: end.key) == sorted(ends, key=lambda end: end.key)
    assert build_order(found, known) == found


@given(builds())
def test_an_ancestor_stands_before_its_descendants(made: tuple[History, list[BuildEnd]]) -> None:
    known, ends = made
    numbers = [known.number(end.commit) if end.commit else None for end in build_order(ends, known)]
    for place, number in enumerate(numbers):
        later = [other for other in numbers[place + 1 :] if other is not None and other != number]
        assert number is None or not known.reachable(number).intersection(later)


@given(st.lists(st.tuples(st.sampled_from(VERSIONS), st.none() | st.integers(0, 30).map(day)), max_size=9))
def test_versions_without_commits_stand_in_the_order_of_pep_440(made: list[tuple[str, datetime | None]]) -> None:
    ends = [BuildEnd(f"{number}", None, version, date) for number, (version, date) in enumerate(made)]
    found = [Version(end.version or "") for end in build_order(ends)]
    assert found == sorted(found)


def test_a_post_comes_after_its_rc_though_it_was_uploaded_after_the_next_one() -> None:
    """Real upload days of TensorRT-LLM: rc6 12-23, rc7 01-08, rc6.post1 01-11."""
    ends = [
        BuildEnd("rc6.post1", None, "1.2.0rc6.post1", day(10)),
        BuildEnd("rc7", None, "1.2.0rc7", day(7)),
        BuildEnd("rc6", None, "1.2.0rc6", day(-9)),
        BuildEnd("final", None, "1.2.0", None),
        BuildEnd("final.post1", None, "1.2.0.post1", None),
    ]
    assert keys(ends) == ["rc6", "rc6.post1", "rc7", "final", "final.post1"]


def test_an_image_of_main_that_carries_the_name_of_a_release_comes_after_it() -> None:
    release = BuildEnd("v0.5.17", None, "0.5.17", day(3))
    dated = [BuildEnd(f"v0.5.17 of day {number}", None, "0.5.17", day(number)) for number in (21, 9)]
    undated = BuildEnd("a v0.5.17", None, "0.5.17", None)
    following = BuildEnd("v0.5.18", None, "0.5.18", day(20))
    assert keys([following, *dated, release]) == ["v0.5.17", "v0.5.17 of day 9", "v0.5.17 of day 21", "v0.5.18"]
    assert keys([*dated, undated])[0] == "a v0.5.17"


def fork() -> History:
    """main 0 1 2 3 4 5; a release branch off 1 with 6 and 7; one off 3 with 8."""
    return history([[], [0], [1], [2], [3], [4], [1], [6], [3]])


def test_a_release_branch_stands_where_it_left_main() -> None:
    ends = [
        BuildEnd("nightly 2", name(2)),
        BuildEnd("main 1", name(1)),
        BuildEnd("release 0.2", name(8), "0.2.0", day(8)),
        BuildEnd("release 0.1", name(7), "0.1.0", day(7)),
        BuildEnd("release 0.1rc", name(6), "0.1.0rc1", day(6)),
        BuildEnd("nightly 5", name(5)),
    ]
    assert keys(ends, fork()) == ["main 1", "release 0.1rc", "release 0.1", "nightly 2", "release 0.2", "nightly 5"]


def test_a_version_without_a_commit_goes_between_those_that_have_one_by_its_day() -> None:
    placed = [
        BuildEnd("0.1", name(1), "0.1.0", day(1)),
        BuildEnd("n2", name(2), None, day(2)),
        BuildEnd("n4", name(4), None, day(4)),
    ]
    ends = [*placed, BuildEnd("0.3", name(5), "0.3.0", day(5))]
    assert keys([*ends, BuildEnd("0.2", None, "0.2.0", day(3))], fork()) == ["0.1", "n2", "0.2", "n4", "0.3"]
    assert keys([*ends, BuildEnd("0.2", None, "0.2.0", day(40))], fork()) == ["0.1", "n2", "n4", "0.2", "0.3"], "never past 0.3"
    assert keys([*ends, BuildEnd("day", None, None, day(4.5))], fork()) == ["0.1", "n2", "n4", "day", "0.3"]
    assert keys([*ends, BuildEnd("nothing")], fork())[0] == "nothing"


def test_ancestry_holds_against_versions_and_dates() -> None:
    ends = [BuildEnd("older", name(2), "9.0", day(90)), BuildEnd("newer", name(4), "0.1", day(-90))]
    assert keys(ends, fork()) == ["older", "newer"]


@pytest.mark.parametrize(("confidence", "kept"), [("high", True), ("medium", True), ("low", False), ("none", False)])
def test_a_commit_that_was_guessed_from_a_date_counts_as_the_date(confidence: str, kept: bool) -> None:
    anchor = Anchor("v1", name(3), day(3), "1.0", "…", confidence, day(5))
    assert end_at("b", anchor) == BuildEnd("b", name(3) if kept else None, "1.0", day(5))


def test_many_builds_keep_their_order_when_one_is_added() -> None:
    known, ends = fork(), [BuildEnd(f"b{number}", name(number), None, day(number)) for number in range(9)]
    whole = keys([*ends, BuildEnd("new", None, "0.2.0", day(3))], known)
    assert [key for key in whole if key != "new"] == keys(ends, known)
    assert all(one != other for one, other in pairwise(whole))
