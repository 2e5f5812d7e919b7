"""Dependencies that moved between two builds: which, for which accelerator, by which commit, and what lies behind them."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.anchors import Anchor
from changelog.answer import changes
from changelog.facets import Configuration
from changelog.moves import Move, moves, shown, with_moves
from changelog.pinned_at import pinned_at, same
from changelog.ranges import find_range
from changelog.ranking import rank
from changelog.upstream import open_upstream
from tests import frames
from tests.pinning import NOW, Engine

MI355X, MI300X, B200 = (Configuration(hardware=name) for name in ("mi355x", "mi300x", "b200"))
Pins = list[tuple[str | None, ...]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    return Engine(tmp_path_factory.mktemp("moves")).tables()


def name(number: int) -> str:
    return f"{number:08x}" + "0" * 32


def world(
    pinned: Pins, titles: tuple[str, ...] = ("start", "one", "two"), paths: tuple[str, ...] = ()
) -> dict[str, pl.DataFrame]:
    """A line of SGLang commits, tagged 1.0 at the first and 2.0 at the last; *pinned*: version, package, its own, platform."""
    line = [
        ("sglang", name(number), [name(number - 1)] if number else [], NOW, NOW, title, 100 + number, list(paths), 0, NOW)
        for number, title in enumerate(titles)
    ]
    ends = (("1.0", 0), ("2.0", len(titles) - 1))
    tags = [
        frames.row("releases", {"project": "sglang", "evidence": "tag", "recorded_at": NOW}, values)
        for values in ({"version": version, "tag": f"v{version}", "commit": name(number)} for version, number in ends)
    ]
    fixed = {"project": "sglang", "evidence": "docker/rocm.Dockerfile", "recorded_at": NOW}
    fields = ("version", "dependency", "dependency_version", "platform", "evidence")
    rows = [frames.row("dependencies", fixed, dict(zip(fields, pin, strict=False))) for pin in pinned]
    return {
        "commits": frames.commits(line),
        "releases": frames.frame("releases", tags),
        "dependencies": frames.frame("dependencies", rows),
    }


def told(tables: dict[str, pl.DataFrame], configuration: Configuration | None, start: str = "1.0", end: str = "2.0") -> list[Any]:
    found = moves(tables, find_range(open_upstream("sglang", tables), start, end), configuration)
    return [(move.dependency, move.platform, move.start, move.end) for move in found]


def both(dependency: str, before: str, after: str, platform: str | None) -> Pins:
    return [("1.0", dependency, before, platform), ("2.0", dependency, after, platform)]


def test_what_moved_is_told_with_its_own_history(tables: dict[str, pl.DataFrame]) -> None:
    """Release pins for 0.5.5, pins of main for 0.5.6; on MI355X: AITER for gfx950, with one level of its own changes."""
    found = find_range(open_upstream("sglang", tables), "0.5.5", "0.5.6")
    hashes = found.upstream.history.hashes
    on_amd = {move.dependency: move for move in moves(tables, found, MI355X)}
    assert sorted(on_amd) == ["aiter", "mori"]
    aiter = on_amd["aiter"]
    assert (aiter.start, aiter.end, aiter.platform, aiter.candidates) == ("v0.1.13", "v0.1.14", "gfx950", 2)
    assert aiter.range is not None and not aiter.range.open_ended
    titles = dict(tables["commits"].select("commit", "title").iter_rows())
    assert [titles[hashes[number]] for number in aiter.bumps] == ["[ROCm] bump AITER to v0.1.14 (#12)"]
    assert on_amd["mori"].range is None and [titles[hashes[number]] for number in on_amd["mori"].bumps] == ["misc (#13)"]
    assert aiter.how == f"FROM: pinned by 0.5.5. TO: pinned on main as of {hashes[-1][:9]}."
    assert told(tables, B200, "0.5.5", "0.5.6") == [("torch", "nvidia", "2.8.0", "2.9.1")]
    assert told(tables, MI300X, "0.5.5", "0.5.6") == [("mori", "amd", "m1", "m2")]
    assert moves(tables, find_range(open_upstream("sglang", tables), "0.5.5", "0.5.5"), None) == ()


def test_a_move_can_be_the_answer(tables: dict[str, pl.DataFrame]) -> None:
    """The commit that bumped AITER says what lies behind it; the one that moved MoRI without a word weighs it, too."""
    answer = changes(tables, "sglang", "0.5.5", "0.5.6", Configuration(hardware="mi355x", model="dsr1", direction="speedup"))
    by_request = {change["pr"]: change for change in answer["changes"]}
    bump, silent, refactor = by_request[12], by_request[13], by_request[11]
    assert bump["evidence"][-1] == "between the two builds aiter v0.1.13 → v0.1.14 (gfx950): 2 changes of AITER lie in between"
    assert bump["rank"] == 1 and bump["kind"] == "dependency" and bump["project"] == "sglang"
    assert (silent["kind"], silent["evidence"][-1]) == ("dependency", "between the two builds mori m1 → m2 (amd)")
    assert silent["score"] >= 1.5 and refactor["kind"] == "commit"
    assert answer["candidates"] == len(answer["changes"]) == 4
    aiter, mori = answer["dependencies"]
    assert (aiter["dependency"], aiter["candidates"], aiter["commits"]) == ("aiter", 2, [bump["commit"]])
    assert aiter["changes"][0]["pr"] == 2 and {change["project"] for change in aiter["changes"]} == {"aiter"}
    assert (mori["candidates"], mori["range_how"], mori["open_ended"], mori["changes"]) == (None, None, None, [])
    assert [change["rank"] for change in answer["changes"]] == [1, 2, 3, 4]
    assert {change["project"] for change in answer["changes"]} == {"sglang"}


def test_a_move_that_no_commit_accounts_for_is_a_change_of_its_own() -> None:
    """As where a release branch has what main never had. It counts as one candidate, and weighs what a bump does."""
    pinned = world(both("mori", "m1", "m2", "amd"))
    answer = changes(pinned, "sglang", "1.0", "2.0", Configuration(hardware="mi355x", direction="regression"))
    (alone,) = [change for change in answer["changes"] if change["commit"] is None]
    assert (alone["pr"], alone["kind"], alone["score"], alone["rank"]) == (None, "dependency", 2.0, 1)
    assert alone["title"] == "mori m1 → m2 (amd), pinned by SGLang" and alone["change_id"] == "mori@m1..m2"
    assert answer["candidates"] == 2 + 1
    assert alone["evidence"][0].endswith("no commit of SGLang between the two builds says so")


def test_a_library_of_the_host_is_told_but_speaks_for_nothing() -> None:
    answer = changes(world(both("transformers", "4.57.1", "5.0.0", None)), "sglang", "1.0", "2.0", Configuration(hardware="b200"))
    assert [one["dependency"] for one in answer["dependencies"]] == ["transformers"]
    assert [change["score"] for change in answer["changes"] if change["kind"] == "dependency"] == [0.0]


@pytest.mark.parametrize(
    ("pinned", "configuration", "expected"),
    [
        (both("flashinfer", "1", "2", None), MI355X, []),  # what runs on NVIDIA alone
        (both("flashinfer", "1", "2", None), B200, [("flashinfer", None, "1", "2")]),
        (both("flash-attn", "a1", "b1", "amd"), MI355X, [("flash-attn", "amd", "a1", "b1")]),  # AMD has its own of that name
        (both("flash-attn", "a1", "b1", "amd"), B200, []),
        (both("aiter", "1", "2", "gfx942"), MI355X, []),
        (both("aiter", "1", "2", "gfx942"), MI300X, [("aiter", "gfx942", "1", "2")]),
        (both("aiter", "1", "2", "gfx942") + both("aiter", "1", "3", "gfx950"), MI355X, [("aiter", "gfx950", "1", "3")]),
        (both("aiter", "1", "2", "gfx9") + both("aiter", "1", "3", "amd"), MI355X, [("aiter", "amd", "1", "3")]),
        (both("torch", "1", "2", "amd") + both("torch", "1", "3", "gfx950"), MI355X, [("torch", "gfx950", "1", "3")]),
        (both("torch", "1", "2", "amd") + both("torch", "1", "3", "nvidia"), B200, [("torch", "nvidia", "1", "3")]),
        (both("torch", "1", "2", "amd") + both("torch", "1", "2", "nvidia"), None, [("torch", "amd, nvidia", "1", "2")]),
        # the file got a part for each architecture: the same pin, written elsewhere
        ([("1.0", "mori", "m1", "amd"), ("2.0", "mori", "m1", "gfx950")], MI355X, []),
        ([("1.0", "mori", "m1", "amd"), ("2.0", "mori", "m2", "gfx950")], MI355X, [("mori", "amd, gfx950", "m1", "m2")]),
        # what held for all is now said for one
        ([("1.0", "torch", "2.8", None), ("2.0", "torch", "2.8", "nvidia")], None, []),
        # a stage came along: no build moved to it
        ([*both("aiter", "1", "1", "gfx950"), ("2.0", "aiter", "2", "gfx950-rocm720")], MI355X, []),
        ([("1.0", "x", "1", "nvidia"), ("2.0", "x", "2", "amd")], MI355X, [("x", "amd", "none", "2")]),
        ([("1.0", "x", "1", "nvidia"), *both("x", "2", "2", "amd")], None, [("x", "nvidia", "1", "none")]),
        (both("torch", "2.9.0", "2.9", None), None, []),  # one version, spelled twice
        (both("aiter", "v0.1.4", "0.1.4", None), MI355X, []),
        (both("aiter", "59bd8ff2", "59bd8ff2" + "0" * 32, None), MI355X, []),
        ([("1.0", "xformers", "1", None), *both("torch", "1", "1", None)], B200, [("xformers", None, "1", "none")]),
        ([("1.0", "torch", "1", None)], B200, []),  # nothing is known of the other end
    ],
)  # fmt: skip
def test_a_pin_counts_for_what_runs_it(pinned: Pins, configuration: Configuration | None, expected: list[Any]) -> None:
    assert told(world(pinned), configuration) == expected


def test_the_name_of_an_image_says_which_stage_it_was_built_from() -> None:
    """On MI300X SGLang pinned AITER v0.1.4 for ROCm 6.3 and later ones for 7.0: the tag tells which of both it is."""
    pinned = world(
        both("aiter", "v0.1.4", "v0.1.4", "gfx942")
        + both("aiter", "v0.1.6", "v0.1.7", "gfx942-rocm700")
        + [("2.0", "aiter", "v0.1.9", "gfx942-rocm720")]
    )
    tag = "lmsysorg/sglang:v{}-{}-mi30x"
    for start, end, expected in (
        ("rocm700", "rocm700", [("aiter", "gfx942-rocm700", "v0.1.6", "v0.1.7")]),
        ("rocm630", "rocm630", []),
        ("rocm630", "rocm700", [("aiter", "gfx942, gfx942-rocm700", "v0.1.4", "v0.1.7")]),
        ("rocm700", "rocm720", [("aiter", "gfx942-rocm700, gfx942-rocm720", "v0.1.6", "v0.1.9")]),
    ):
        assert told(pinned, MI300X, tag.format("1.0", start), tag.format("2.0", end)) == expected
    assert told(pinned, MI300X) == [("aiter", "gfx942-rocm700", "v0.1.6", "v0.1.7")]  # no image is named: all that moved


def test_a_new_stage_moves_the_images_that_are_built_from_it_alone() -> None:
    """SGLang began to build Triton where it began to build for ROCm 7.2; images for 7.0 are what they were."""
    pinned = world([*both("aiter", "1", "1", "gfx950"), ("2.0", "triton", "4227045", "gfx950-rocm720")])
    assert told(pinned, MI355X) == [] and told(pinned, MI355X, "2.0", "1.0") == []
    tag = "lmsysorg/sglang:v{}-{}-mi35x"
    for end, expected in (("rocm700", []), ("rocm720", [("triton", "gfx950-rocm720", "none", "4227045")])):
        assert told(pinned, MI355X, tag.format("1.0", "rocm700"), tag.format("2.0", end)) == expected


def test_notes_name_some_of_what_a_version_carries_never_all() -> None:
    """What the notes of one end do not name did not go; what the tree pins rules over what notes say."""
    notes = [("2.0", "torch", "2.9.1", None, "release notes"), ("2.0", "triton", "3.5", None, "release notes")]
    before: Pins = [("1.0", "torch", "2.8.0", None), ("1.0", "nccl", "2.27", None)]
    assert told(world([*before, *notes]), B200) == [("torch", None, "2.8.0", "2.9.1"), ("triton", None, "none", "3.5")]
    assert told(world([("1.0", "torch", "2.8.0", None, "release notes"), *notes]), B200) == [("torch", None, "2.8.0", "2.9.1")]
    on_main: Pins = [(name(0), "torch", "2.8.0", None), (name(1), "torch", "2.9.0", None)]
    assert told(world([*on_main, *notes]), B200) == [("torch", None, "2.8.0", "2.9.0")]


def test_a_release_near_it_stands_in_where_a_build_has_no_pins() -> None:
    """As of TensorRT-LLM, whose commits are not here and whose notes name packages at a few releases: said, never as exact."""
    line = [("1.2.0rc1", "2.8.0"), ("1.2.0rc5", "2.9.0"), ("1.1.0", "2.7.0"), ("1.3.0rc1", "2.10.0")]
    pinned = world([(version, "torch", torch, None, "release notes") for version, torch in line])
    upstream = open_upstream("sglang", pinned)
    found = {
        version: pinned_at(upstream, Anchor(version, None, NOW, version, "", "medium"))
        for version in ("1.2.0rc1", "1.2.0rc4", "1.2.0rc6", "1.2.1", "1.2.0rc0", "2.0.5", "not a version")
    }
    assert {version: one.pins.get(("torch", None)) for version, one in found.items()} == {
        "1.2.0rc1": "2.8.0",
        "1.2.0rc4": "2.8.0",
        "1.2.0rc6": "2.9.0",
        "1.2.1": "2.9.0",
        "1.2.0rc0": None,  # what came later says nothing of it, nor does another line
        "2.0.5": None,
        "not a version": None,
    }
    assert [version for version, one in found.items() if one.near] == ["1.2.0rc4", "1.2.0rc6", "1.2.1"]
    assert "1.2.0rc1 is the last release of its line before it" in found["1.2.0rc4"].how
    ends = (("1.2.0rc4", NOW), ("1.2.0rc6", NOW + timedelta(days=9)))
    fixed = {"project": "trtllm", "evidence": "upload", "recorded_at": NOW}
    releases = [frames.row("releases", fixed, {"version": version, "published_at": when}) for version, when in ends]
    tables = {
        "releases": frames.frame("releases", releases),
        "dependencies": pinned["dependencies"].with_columns(project=pl.lit("trtllm")),
    }
    answer = changes(tables, "trtllm", "1.2.0rc4", "1.2.0rc6", B200)
    (alone,) = answer["changes"]
    assert alone["evidence"][0] == (
        "torch 2.8.0 → 2.9.0, as far as releases near them tell; the commits of TensorRT-LLM are not known here"
    )


def test_builds_of_commits_run_on_what_main_pinned_then() -> None:
    """Pins of main hold from their commit on, also for images named by a commit; a file that went takes its pins away."""
    on_main: Pins = [
        (name(0), "aiter", "v1", "amd"),
        (name(1), "aiter", "v2", "amd"),
        (name(3), "aiter", "none", "amd"),
        (name(3), "aiter", "v3", "amd", "docker/the_other.Dockerfile"),
    ]
    pinned = world(on_main, tuple(f"change {number}" for number in range(5)))
    nightly = "lmsysorg/sglang:nightly-dev-20260101-{}"
    for start, end, expected in ((0, 2, ("v1", "v2")), (1, 2, None), (2, 4, ("v2", "v3")), (0, 4, ("v1", "v3"))):
        own = [("aiter", "amd", *expected)] if expected else []
        assert told(pinned, MI355X, name(start), name(end)) == own
        assert told(pinned, MI355X, nightly.format(name(start)[:8]), nightly.format(name(end)[:8])) == own
    found = find_range(open_upstream("sglang", pinned), name(0), name(4))
    (move,) = moves(pinned, found, MI355X)
    assert [found.upstream.history.hashes[number] for number in move.bumps] == [name(1), name(3)]


def test_the_commit_is_named_that_moved_the_pin_of_the_accelerator() -> None:
    """Two stages of one file move at different times; who moved the other one moved nothing here."""
    both_stages: Pins = [(name(0), "aiter", "v1", stage) for stage in ("gfx942", "gfx950")]
    pinned = world([*both_stages, (name(1), "aiter", "v2", "gfx942"), (name(2), "aiter", "v2", "gfx950")])
    found = find_range(open_upstream("sglang", pinned), "1.0", "2.0")
    bumps = {hardware.hardware: [move.bumps for move in moves(pinned, found, hardware)] for hardware in (MI300X, MI355X)}
    assert bumps == {"mi300x": [(1,)], "mi355x": [(2,)]}
    assert [move.bumps for move in moves(pinned, found)] == [(1, 2)]


@pytest.mark.parametrize(
    ("title", "path", "moves_it"),
    [
        ("chore: bump flashinfer version to 0.5.3", "x", True),
        ("support new FlashInfer", "docker/Dockerfile", True),
        ("support new flashinfer", "python/sglang/srt/x.py", False),  # changes no file that pins
        ("fix docker build", "docker/Dockerfile", False),  # `fi` is a name of it, not a part of `fix`
        ("use flashinfer_jit", "docker/Dockerfile", False),
    ],
)
def test_without_pins_of_main_a_subject_tells_what_moved(title: str, path: str, moves_it: bool) -> None:
    pinned = world(both("flashinfer", "0.5.2", "0.5.3", None), ("start", title), (path,))
    (move,) = moves(pinned, find_range(open_upstream("sglang", pinned), "1.0", "2.0"), B200)
    assert bool(move.bumps) is moves_it


def test_a_commit_that_moves_a_pin_weighs_no_less_than_the_move_alone() -> None:
    """Its title may speak of CI: what it did to the image is another matter. One whose title says so is not counted twice."""
    pinned = world(
        [(name(0), "aiter", "v1", "amd"), (name(1), "aiter", "v2", "amd")], ("start", "[CI] refresh (#1)"), (".github/x",)
    )
    found = find_range(open_upstream("sglang", pinned), "1.0", "2.0")
    asked = replace(MI355X, direction="regression")
    (plain,), found_moves = rank(found, asked), moves(pinned, found, asked)
    (telling,) = with_moves([plain], found_moves, found.upstream, "regression")
    assert plain.score < 0 and telling.score == 2.0 and telling.kind == "dependency"
    said = replace(plain, kind="dependency", score=3.0)
    (again,) = with_moves([said], found_moves, found.upstream, "regression")
    assert again.score == 3.0 and again.evidence[-1] == "between the two builds aiter v1 → v2 (amd)"


def test_moves_add_and_take_away_no_commit() -> None:
    titles = tuple(f"[AMD] change {number} (#{number})" for number in range(30))
    pinned = world(both("mori", "m1", "m2", "amd"), titles)
    found = find_range(open_upstream("sglang", pinned), "1.0", "2.0")
    ranked = rank(found, MI355X)
    told_all = with_moves(ranked, moves(pinned, found, MI355X), found.upstream, None)
    assert {one.commit for one in told_all} == {one.commit for one in ranked} | {""}
    assert [one.commit for one in told_all if one.commit] == [one.commit for one in ranked]
    assert [one.rank for one in told_all] == list(range(1, 31)) and len(ranked) == 29
    assert with_moves(ranked, (), found.upstream, None) == ranked


def test_moves_of_a_way_back_are_told_that_way(tables: dict[str, pl.DataFrame]) -> None:
    found = find_range(open_upstream("sglang", tables), "0.5.6", "0.5.5")
    aiter = next(move for move in moves(tables, found, MI355X) if move.dependency == "aiter")
    assert found.reversed and (aiter.start, aiter.end) == ("v0.1.14", "v0.1.13")
    assert aiter.range is not None and aiter.range.reversed and aiter.candidates == 2


def test_a_dependency_whose_end_is_not_known_is_open_ended_or_not_looked_into(tables: dict[str, pl.DataFrame]) -> None:
    """A branch of a fork is no commit of the project: what is known of the other end is told as such, never as exact."""
    dependencies = tables["dependencies"].with_columns(
        dependency_version=pl.when(pl.col("dependency_version") == "v0.1.14")
        .then(pl.lit("a_branch_of_a_fork"))
        .otherwise("dependency_version")
    )
    changed = {**tables, "dependencies": dependencies}
    found = find_range(open_upstream("sglang", changed), "0.5.5", "0.5.6")
    aiter = next(move for move in moves(changed, found, MI355X) if move.dependency == "aiter")
    assert aiter.end == "a_branch_of_a_fork" and aiter.range is not None and aiter.range.open_ended
    answer = changes(changed, "sglang", "0.5.5", "0.5.6", MI355X)
    assert any("an end of which is not sure" in words for change in answer["changes"] for words in change["evidence"])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("2.9.0", "2.9", True),
        ("v0.1.7.post1", "0.1.7-1", True),
        ("v0.1.7.post1", "v0.1.7.post2", False),
        ("59bd8ff", "59bd8ff2" + "0" * 32, True),
        ("59bd8ff", "59bd8fe2", False),
        ("20250904", "2025090411", False),  # numbers are no commits
        ("main-a", "main-b", False),
        ("7", "7.0", True),
    ],
)
def test_two_spellings_of_one_pin_are_one(one: str, other: str, expected: bool) -> None:
    assert same(one, other) is expected and same(other, one) is expected


def test_versions_are_shown_short() -> None:
    assert shown("9af0e0d0e74f3577af1979c9b9e1ac2cad0104ee") == "9af0e0d0e74f"
    assert (shown("none"), shown("v0.1.4"), shown("2.9.1")) == ("not pinned", "v0.1.4", "2.9.1")
    assert Move("aiter", "gfx950", "none", "v1", "x", None, ()).words() == "aiter not pinned → v1 (gfx950)"


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_the_tables_changes_nothing(tables: dict[str, pl.DataFrame], seed: int) -> None:
    asked = Configuration(hardware=Random(seed).choice(["mi355x", "b200", None]), direction="speedup")
    mixed = {table: rows.sample(fraction=1.0, shuffle=True, seed=seed) for table, rows in tables.items()}
    assert changes(mixed, "sglang", "0.5.5", "0.5.6", asked) == changes(tables, "sglang", "0.5.5", "0.5.6", asked)


VERSIONS = st.sampled_from(["none", "1.0", "v1", "2.0", "abcdef12"])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["1.0", "2.0", name(0), name(1), name(2), name(9)]),
            st.sampled_from(["aiter", "torch", "flashinfer", "never-heard-of"]),
            VERSIONS,
            st.sampled_from([None, "amd", "nvidia", "gfx950", "gfx950-rocm720", "x"]),
        ),
        max_size=12,
        unique_by=lambda row: (row[0], row[1], row[3]),
    ),
    hardware=st.sampled_from([None, "mi355x", "mi300x", "b200", "not-known"]),
)
def test_any_pins_can_be_compared_and_every_move_is_one(rows: Pins, hardware: str | None) -> None:
    """Nothing moves into itself; there and back are the same moves, turned round."""
    pinned, asked = world(rows), Configuration(hardware=hardware)
    there, back = told(pinned, asked), told(pinned, asked, "2.0", "1.0")
    assert all(before != after for _name, _platform, before, after in there)
    turned = {(dependency, after, before) for dependency, _platform, before, after in back}
    assert {(dependency, before, after) for dependency, _platform, before, after in there} == turned


def test_what_is_required_rules_over_what_an_image_installs_before_it() -> None:
    """SGLang 0.5.3: its Dockerfile names sgl-kernel 0.3.12 and then installs a package that requires 0.3.14.post1."""
    pins: Pins = [
        ("1.0", "sgl-kernel", "0.3.12", "nvidia", "docker/Dockerfile"),
        ("1.0", "sgl-kernel", "0.3.14.post1", "nvidia", "python/pyproject.toml"),
    ]
    for rows in (pins, pins[::-1]):
        upstream = open_upstream("sglang", world(rows))
        found = pinned_at(upstream, Anchor("1.0", None, NOW, "1.0", "", "medium"))
        assert found.pins == {("sgl-kernel", "nvidia"): "0.3.14.post1"}
