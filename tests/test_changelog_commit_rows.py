"""Rows of `commits`: facts about one commit that complete each other, whatever the order, and the kind of a change."""

from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.commit_rows import KINDS
from changelog.tables import bring_tables, fold
from warehouse.events import CommitLanded, Source, event_of
from warehouse.log import EventLog, frame_of
from warehouse.schemas import COMMITS
from warehouse.store import Store

DAY = datetime(2026, 1, 1, tzinfo=UTC)
HASH, PARENT, OTHER = "a" * 40, "b" * 40, "c" * 40
WHOLE = CommitLanded(
    project="vllm",
    commit=HASH,
    parents=(PARENT,),
    author_date="2026-01-01T00:00:00Z",
    committer_date="2026-01-02T00:00:00Z",
    title='Revert "Faster" (#2)',
    pr=2,
    paths=("vllm/a.py", "vllm/b.py"),
    reverts=OTHER,
)
WITHOUT_MESSAGE = WHOLE.model_copy(update={"reverts": None})
SHALLOW = WHOLE.model_copy(update={"parents": ()})
WITHOUT_PATHS = WHOLE.model_copy(update={"paths": (), "reverts": None, "pr": None})
FACTS = (WHOLE, WITHOUT_MESSAGE, SHALLOW, WITHOUT_PATHS)


def event(payload: CommitLanded, recorded_at: datetime = DAY):
    return event_of(payload, occurred_at=DAY, recorded_at=recorded_at, source=Source(name="t"))


def rows(*payloads: CommitLanded) -> pl.DataFrame:
    numbered = frame_of([event(payload) for payload in payloads]).with_row_index("sequence", offset=1)
    return fold(numbered.cast({"sequence": pl.Int64}), COMMITS)


def commit(title: str, *paths: str, number: int = 1) -> CommitLanded:
    return WHOLE.model_copy(update={"commit": f"{number:040x}", "title": title, "paths": paths, "reverts": None, "pr": None})


@pytest.mark.parametrize("order", list(permutations(range(len(FACTS)))))
def test_what_one_fact_does_not_tell_the_other_does(order: tuple[int, ...]) -> None:
    found = rows(*(FACTS[place] for place in order))
    assert found.equals(rows(WHOLE))
    assert found["reverts"].to_list() == [OTHER] and found["parents"].to_list() == [[PARENT]]


def test_two_halves_make_a_whole() -> None:
    assert rows(SHALLOW, WITHOUT_PATHS).drop("recorded_at").equals(rows(WHOLE).drop("recorded_at"))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "title": st.sampled_from(["one (#1)", "two (#2)", "two"]),
                "pr": st.none() | st.integers(1, 3),
                "parents": st.sampled_from([(), (PARENT,), (OTHER,), (PARENT, OTHER)]),
                "paths": st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
                "reverts": st.none() | st.sampled_from([PARENT, OTHER]),
            }
        ),
        min_size=1,
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_reading_does_not_matter(updates: list[dict[str, object]], shuffle) -> None:
    told = list(
        {event(payload).event_id: payload for payload in (WHOLE.model_copy(update=update) for update in updates)}.values()
    )
    found = rows(*told)
    shuffle.shuffle(told)
    assert found.height == 1 and rows(*told).equals(found)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_table_follows_fact_by_fact_as_if_read_at_once(order: tuple[int, ...], tmp_path: Path) -> None:
    log = EventLog(Store(str(tmp_path)))
    told = [WITHOUT_MESSAGE, SHALLOW, WITHOUT_PATHS]
    for place in order:
        log.append([event(told[place]), event(commit("Another (#9)", number=place))])
        bring_tables(log)
    found = log.store.collect("commits", log.store.scan("commits")).sort(COMMITS.order)
    assert found.equals(rows(WHOLE, *(commit("Another (#9)", number=place) for place in range(3))))


@pytest.mark.parametrize(
    ("title", "paths", "kind"),
    [
        ('Revert "[Perf] Faster (#1)" (#2)', ("vllm/a.py",), "revert"),
        ("[Reland] Faster path (#2)", (), "reapply"),
        ("[ROCm][Bugfix] Fix hang (#1)", ("vllm/a.py", "tests/test_a.py"), "fix"),
        ("[Perf] Fuse rope and norm (#1)", (), "perf"),
        ("feat(moe): new router", (), "feature"),
        ("[TRTLLM-1000][feat] do it (#1)", (), "feature"),
        ("[https://nvbugs/1234567][fix] do it", (), "fix"),
        ("[Doc] Update install (#1)", (), "docs"),
        ("Mention the flag (#1)", ("docs/a.md", "README.md"), "docs"),
        ("[CI/Build] Use new runner (#1)", (), "ci"),
        ("Use new runner (#1)", (".github/workflows/a.yml", ".buildkite/x.yaml"), "ci"),
        ("Skip flaky one (#1)", ("tests/models/test_x.py",), "test"),
        ("chore: bump sgl-kernel version to 0.3.18 (#1)", ("python/pyproject.toml",), "dependency"),
        ("Optimize sampling (#1)", (), "perf"),
        ("Support Qwen9 (#1)", (), "feature"),
        ("[Misc] Remove dead code (#1)", (), "refactor"),
        ("[V1] Something else entirely (#1)", (), "other"),
        ("", (), "other"),
    ],
)
def test_kinds(title: str, paths: tuple[str, ...], kind: str) -> None:
    assert rows(commit(title, *paths))["kind"].to_list() == [kind]


def test_many_paths_say_nothing_of_those_that_are_not_kept() -> None:
    wide = commit("Move all (#1)", "docs/a.md").model_copy(update={"paths_omitted": 3})
    assert rows(wide)["kind"].to_list() != ["docs"]


def test_numbers_of_other_pull_requests() -> None:
    found = rows(
        commit('Revert "Faster (#1)" (#2)', number=1),
        commit("[fix] Cherry-pick from (#7) Mend (#8)", number=2),
        commit("Go back (#9)", number=3).model_copy(update={"reverts_pr": 5}),
    )
    assert found.select("kind", "reverts_pr", "picked_pr").rows() == [("revert", 1, None), ("fix", None, 7), ("revert", 5, None)]


@given(st.text(max_size=300), st.lists(st.text(max_size=40), max_size=4))
def test_anything_has_a_kind(title: str, paths: list[str]) -> None:
    try:
        found = rows(commit(title, *paths))
    except ValueError:
        return  # half a surrogate pair: no such event can be made
    assert found["kind"][0] in KINDS
