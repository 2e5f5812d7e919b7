"""Ends and ranges: hand-made histories, and the counts that were measured from published source archives."""

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from changelog.anchors import sentences
from changelog.answer import changes
from changelog.facts import UpstreamFact
from changelog.files import recognise
from changelog.ranges import find_range
from changelog.tables import EVENT_OF_TABLE, read_table
from changelog.upstream import Upstream, open_upstream
from changelog.versions import resolve
from tests import frames
from warehouse.errors import InputError
from warehouse.events import Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import COMMITS, DEPENDENCIES, RELEASES
from warehouse.store import Store

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"
DAY = datetime(2026, 1, 1, tzinfo=UTC)
DIGEST = "sha256:" + "d" * 64


def name(number: int) -> str:
    return f"{number:08x}" + "0" * 32


def commits(*rows: tuple[int, int | None, int | None, str], project: str = "sglang") -> pl.DataFrame:
    """Rows (number, parent, pull request, title); the number is the day as well."""
    return frames.commits(
        [
            (
                project,
                name(number),
                [name(parent)] if parent is not None else [],
                DAY + timedelta(days=number),
                DAY + timedelta(days=number),
                title,
                pr,
                [],
                0,
                DAY,
            )
            for number, parent, pr, title in rows
        ]
    )


def line(last: int) -> pl.DataFrame:
    return commits(*((number, number - 1 if number else None, 100 + number, f"change {number}") for number in range(last + 1)))


def release(
    version: str,
    evidence: str,
    *,
    commit: int | None = None,
    branch_point: int | None = None,
    day: float | None = None,
    project: str = "sglang",
) -> tuple[Any, ...]:
    when = DAY + timedelta(days=day) if day is not None else None
    tag = f"v{version}" if evidence == "tag" else None
    return (
        project,
        version,
        tag,
        name(commit) if commit is not None else None,
        name(branch_point) if branch_point is not None else None,
        when,
        evidence,
        None,
        None,
        None,
        DAY,
    )


def upstream(history: pl.DataFrame, *releases: tuple[Any, ...], pinned: tuple[tuple[str, ...], ...] = ()) -> Upstream:
    return open_upstream(
        "sglang",
        {
            "commits": history,
            "releases": pl.DataFrame(list(releases), schema=RELEASES.schema, orient="row"),
            "dependencies": pl.DataFrame([(*row, None, DAY) for row in pinned], schema=DEPENDENCIES.schema, orient="row"),
        },
    )


def test_evidence_is_taken_in_order() -> None:
    rows = [
        release("1.0", "tag", commit=1),
        release("1.0", "anchor", commit=2, branch_point=3),
        release("1.0", "version-table", commit=4),
        release("1.0", "upload", day=6.5),
    ]
    history = commits(
        *(
            (number, number - 1 if number else None, None, "chore: bump SGLang version to 1.0" if number == 5 else "x")
            for number in range(9)
        )
    )
    placed = []
    while True:
        found = resolve(upstream(history, *rows), "v1.0")
        placed.append((int(found.commit or "0", 16) >> 128, found.confidence))
        if not rows:
            break
        row = rows[0]
        if row[6] == "anchor" and row[3]:
            rows[0] = (*row[:3], None, *row[4:])
        else:
            rows.pop(0)
    assert placed == [(1, "high"), (2, "high"), (3, "medium"), (4, "high"), (5, "high"), (5, "high")]
    plain = upstream(line(8), release("1.0", "upload", day=6.5))
    found = resolve(plain, "1.0")
    assert (found.commit, found.confidence) == (name(6), "low")
    assert "upload" in found.how and "last main commit not after it" in found.how


@pytest.mark.parametrize(("asked", "told"), [("0.26", "0.26.0"), ("v0.26.0", "0.26"), ("0.26.0rc1", "0.26rc1")])
def test_equal_versions_are_one_whatever_zeros_they_have(asked: str, told: str) -> None:
    assert resolve(upstream(line(8), release(told, "tag", commit=3)), asked).commit == name(3)


def test_a_commit_that_the_history_lacks_gives_way_to_the_next_evidence() -> None:
    found = resolve(upstream(line(8), release("1.0", "tag", commit=77, day=3.5)), "1.0")
    assert (found.commit, found.confidence) == (name(3), "low")
    bare = resolve(upstream(line(8), release("1.0", "tag", commit=77)), "1.0")
    assert not bare.known and name(77)[:9] in bare.how


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (name(4), 4),
        (name(4)[:9], 4),
        (name(4)[:12].upper(), 4),
        ("2026-01-05", 4),
        ("2026-01-05T12:00:00+01:00", 4),
        ("20260105", 4),
        ("2026-01-04T23:59:59Z", 3),
        ("9.9.dev3+g" + name(4)[:9], 4),
    ],
)
def test_commits_and_dates(text: str, number: int) -> None:
    assert resolve(upstream(line(8)), text).commit == name(number)


@pytest.mark.parametrize(
    "text",
    [
        "9.9.9",
        "main",
        "deadbeef0",
        "lmsysorg/sglang:dev",
        f"lmsysorg/sglang@{DIGEST}",
        "x:y:z",
        "vllm/vllm-openai:v0.13.0",
        "1234567",
        "v",
        "../../etc/passwd",
        "--help",
    ],
)
def test_what_nothing_explains_is_unknown_and_says_why(text: str) -> None:
    found = resolve(upstream(line(8)), text)
    assert not found.known and found.confidence == "none" and found.how


@pytest.mark.parametrize("text", ["", "  ", "2026-13-01", "2026-01-05T12:00:00", "x" * 10_000])
def test_malformed_ends_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        resolve(upstream(line(8)), text)


def test_an_image_tag_names_a_version_and_a_digest_lowers_confidence() -> None:
    known = upstream(line(8), release("0.5.6", "tag", commit=4))
    plain = resolve(known, "lmsysorg/sglang:v0.5.6-cu129-amd64")
    pinned = resolve(known, f"lmsysorg/sglang:v0.5.6-cu129@{DIGEST}")
    assert (plain.commit, plain.confidence, plain.version) == (name(4), "high", "0.5.6")
    assert (pinned.commit, pinned.confidence) == (name(4), "medium")
    assert "digest" in pinned.how


def test_a_wrapper_names_the_engine_that_it_carries() -> None:
    known = upstream(
        line(8), release("0.5.6", "tag", commit=4), pinned=(("dynamo", "1.1.0", "sglang", "0.5.6", "support matrix"),)
    )
    found = resolve(known, "nvcr.io#nvidia/ai-dynamo/sglang-runtime:1.1.0")
    assert (found.commit, found.confidence) == (name(4), "medium")
    assert "dynamo 1.1.0 carries" in found.how
    assert not resolve(known, "nvcr.io#nvidia/ai-dynamo/sglang-runtime:1.2.0").known


def numbers(found: Any) -> list[int]:
    return [int(commit[:8], 16) for commit in found.commits["commit"].to_list()]


def test_between_two_commits() -> None:
    found = find_range(upstream(line(8)), name(2), name(6))
    assert numbers(found) == [3, 4, 5, 6]
    assert (found.open_ended, found.reversed, found.notes) == (False, False, ())


def test_the_same_end_twice_holds_nothing() -> None:
    found = find_range(upstream(line(8)), name(2), name(2))
    assert numbers(found) == [] and "same commit" in found.notes[0]


def test_open_below_is_bounded_and_said() -> None:
    history = commits(*((number, number - 1 if number else None, None, f"c{number}") for number in range(121)))
    found = find_range(upstream(history), "lmsysorg/sglang:dev", name(120))
    assert numbers(found) == list(range(31, 121)), "what landed in the 90 days before TO"
    assert found.open_ended and "open below" in found.how


def test_open_above_runs_to_the_end_of_the_history() -> None:
    found = find_range(upstream(line(8)), name(5), "lmsysorg/sglang:dev")
    assert numbers(found) == [6, 7, 8] and found.open_ended and "open above" in found.how


def test_neither_end_known_is_an_error() -> None:
    with pytest.raises(InputError, match="neither end is known"):
        find_range(upstream(line(8)), "foo", "bar")


def test_a_history_that_stops_before_to_is_said() -> None:
    found = find_range(upstream(line(8), release("2.0", "upload", day=40)), name(5), "2.0")
    assert numbers(found) == [6, 7, 8] and found.open_ended
    assert any("known history ends" in note for note in found.notes)


def test_ends_before_the_known_history() -> None:
    below = find_range(upstream(line(8)), "2025-06-01", name(2))
    assert numbers(below) == [0, 1, 2] and below.open_ended and "older than the known history" in below.how
    both = find_range(upstream(line(8)), "2025-06-01", "2025-07-01")
    assert numbers(both) == [] and both.open_ended


def test_two_histories_without_a_common_ancestor_go_by_date() -> None:
    rows = [(number, number - 1, 100 + number, f"c{number}") for number in range(1, 9)]
    gap = commits((20, 19, 1, "before the gap"), (21, 20, 2, "y"), *[row for row in rows if row[0] > 2])
    found = find_range(upstream(gap), name(5), name(21))
    assert found.open_ended and "no common ancestor" in found.how
    assert numbers(found) == [6, 7, 8, 20, 21]


def test_a_hole_in_the_history_is_said_and_nothing_is_claimed_to_be_all() -> None:
    """Commit 4 could not be read: 5 and 6 stand behind a gap."""
    rows = [(1, None), (2, 1), (3, 2), (5, 4), (6, 5)]
    gap = commits(*((number, parent, 100 + number, f"c{number}") for number, parent in rows))
    found = find_range(upstream(gap), name(2), name(6))
    assert numbers(found) == [3, 5, 6] and found.open_ended
    assert any(f"commits before {name(5)[:9]} are missing" in note and "at least" in note for note in found.notes)
    whole = find_range(upstream(line(8)), name(2), name(6))
    assert not whole.open_ended and not any("missing" in note for note in whole.notes)


def test_of_branches_that_parted_the_lower_version_is_the_older_end() -> None:
    rows = [(0, None), (1, 0), (2, 1), (3, 1), (4, 3)]
    both = upstream(
        commits(*((number, parent, 100 + number, f"c{number}") for number, parent in rows)),
        *(release("1.0", "tag", commit=2), release("1.1", "tag", commit=4)),
    )
    forth, back = find_range(both, "1.0", "1.1"), find_range(both, "1.1", "1.0")
    assert numbers(forth) == numbers(back) == [3, 4]
    assert (forth.reversed, back.reversed) == (False, True) and "FROM is newer than TO" in back.how


def test_no_history_at_all() -> None:
    known = upstream(line(0).clear(), release("1.0", "upload", day=1), release("1.1", "upload", day=2))
    found = find_range(known, "1.0", "1.1")
    assert numbers(found) == [] and found.open_ended and found.main_line_commits == 0
    only = "no commits of sglang in this warehouse, only 2 of its releases"
    said = f"{only} (1 of them later than 1.0, up to 1.1); ingest a clone of its repository"
    assert found.notes == (said,) and found.how.endswith(f" No candidates: {said}.")
    turned = find_range(known, "1.1", "1.0")
    assert turned.reversed and turned.how.startswith("FROM is newer than TO: ") and said in turned.notes
    with pytest.raises(InputError, match=f"{only}; ingest a clone of its repository"):
        find_range(known, "9.8", "9.9")


ENDS = [
    name(2), name(6), "1.0", "1.1", "2.0", "9.9.9", "2025-06-01", "2025-07-01", "2026-01-03", "lmsysorg/sglang:dev", "x:y:z",
    "deadbeef0", "vllm/vllm-openai:v0.13.0", f"lmsysorg/sglang@{DIGEST}", "main",
]  # fmt: skip


@pytest.mark.parametrize("length", [0, 9])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("start", ENDS)
def test_how_is_sentences_with_one_full_stop_each(start: str, end: str, length: int) -> None:
    days = (release("1.0", "upload", day=1), release("1.1", "tag", commit=4), release("2.0", "upload", day=40))
    known = upstream(line(8).head(length), *days)
    try:
        found = find_range(known, start, end)
    except InputError as error:
        assert str(error).startswith("neither end is known. FROM: ")
        return
    assert re.search(r"\.[.;,:)]|\s\.", found.how) is None and re.search(r"[^.]\.$", found.how)
    assert found.reversed == found.how.startswith("FROM is newer than TO: ")
    assert f"FROM {start}: " in found.how and f" TO {end}: " in found.how
    assert not any(note.endswith(".") for note in found.notes)


def test_sentences_end_in_one_full_stop() -> None:
    assert sentences("one.", "two..", " three ; ", "", "(four.)") == "one. two. three. (four.)."


def test_an_end_newer_than_the_other_is_said_first() -> None:
    found = find_range(upstream(line(8)), name(6), name(2))
    assert found.how.startswith("FROM is newer than TO: the candidates are changes that going from FROM to TO takes away. FROM ")
    assert numbers(found) == [3, 4, 5, 6] and found.reversed
    old = find_range(upstream(line(8)), name(6), "2025-06-01")
    assert numbers(old) == [] and old.reversed and old.how.startswith("FROM is newer than TO: ")


def test_times_in_words_are_whole_seconds() -> None:
    late = pl.col("committer_date") + timedelta(microseconds=123_456)
    history = line(8).with_columns(late)
    known = upstream(history, release("1.0", "upload", day=3.5 + 1e-7), release("1.1", "upload", day=6.5 + 1e-7))
    for start, end in (("1.0", "1.1"), ("1.1", "1.0"), ("x", "1.1"), ("1.0", "x")):
        found = find_range(known, start, end)
        assert re.search(r":\d\d\.\d+Z", found.how) is None and re.search(r"\d\d:\d\d:\d\dZ", found.how)


def real_tables(folder: str) -> dict[str, pl.DataFrame]:
    log = EventLog(Store(folder))
    for path in sorted(DATA.iterdir()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        reader = recognise(data)
        facts = list(reader.read(path.name, data)) if reader else []
        log.append(
            event_of(fact.payload, occurred_at=fact.occurred_at or DAY, recorded_at=DAY, source=Source(name=path.name))
            for fact in facts
            if isinstance(fact, UpstreamFact)
        )
    return {table.name: read_table(log, table.name) for table in EVENT_OF_TABLE.values()}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    if not DATA.exists():
        pytest.skip("upstream data absent")
    return real_tables(str(tmp_path_factory.mktemp("warehouse")))


@pytest.mark.parametrize(
    ("engine", "start", "end", "count"),
    [
        ("sglang", "0.5.5", "0.5.6", 827),
        ("sglang", "v0.5.6", "lmsysorg/sglang:v0.5.6.post2-cu129", 313),
        ("sglang", "0.5.6.post2", "0.5.7", 637),
        ("vllm", "0.11.1", "0.12.0", 464),
        ("vllm", "vllm/vllm-openai:v0.12.0", "0.13.0", 428),
        ("vllm", "439368496", "68ffbca7e", 464),
    ],
)
def test_measured_counts(real: dict[str, pl.DataFrame], engine: str, start: str, end: str, count: int) -> None:
    found = find_range(open_upstream(engine, real), start, end)
    assert found.main_line_commits == count
    assert len(found.numbers) == count
    assert not found.open_ended


def test_the_answer_for_sglang(real: dict[str, pl.DataFrame]) -> None:
    answer = changes(real, "sglang", "0.5.5", "0.5.6")
    assert json.loads(json.dumps(answer)) == answer
    assert answer["candidates"] == len(answer["changes"]) == answer["range"]["main_line_commits"] == 827
    assert sum(change["pr"] is None for change in answer["changes"]) == 2
    assert [change["rank"] for change in answer["changes"]] == list(range(1, 828))
    assert answer["range"]["from"] == "0c006b8809cd99e1f95926401a2823dd952641c8"
    assert answer["range"]["to"] == "7ae368efde14f0b2abe769a5fbb99b8154b2a9b7"
    assert answer["open_ended"] is False
    limited = changes(real, "sglang", "0.5.5", "0.5.6", limit=5)
    assert limited["candidates"] == 827 and limited["changes"] == answer["changes"][:5]


def test_patch_release_on_a_branch_goes_by_its_branch_point(real: dict[str, pl.DataFrame]) -> None:
    found = resolve(open_upstream("vllm", real), "0.11.2")
    assert found.commit is not None and found.commit.startswith("439368496")
    assert "275de3417" in found.how and found.confidence == "medium"


def test_a_version_before_the_anchors_is_found_by_its_bump_commit(real: dict[str, pl.DataFrame]) -> None:
    found = resolve(open_upstream("sglang", real), "0.5.4")
    # `chore: bump SGLang version to 0.5.4 (#12027)`, 2025-10-23T18:01:40-07:00
    assert "bumps the version" in found.how and found.date == datetime(2025, 10, 24, 1, 1, 40, tzinfo=UTC)


def test_tags_of_kernels(real: dict[str, pl.DataFrame]) -> None:
    found = resolve(open_upstream("aiter", real), "v0.1.20")
    assert found.commit == "fc2e5d57fb5b8ad8e7e23f7103071dde798ea618" and found.confidence == "high"


def test_rows_do_not_depend_on_the_order_of_ingestion(real: dict[str, pl.DataFrame]) -> None:
    shuffled = {table: frame.sample(fraction=1.0, shuffle=True, seed=7) for table, frame in real.items()}
    assert changes(shuffled, "vllm", "0.11.1", "0.12.0") == changes(real, "vllm", "0.11.1", "0.12.0")


def test_tables_hold_each_commit_once_whatever_brought_it(real: dict[str, pl.DataFrame]) -> None:
    assert real["commits"].height == 2830 + 2850 + 9335 + 12652
    assert real["commits"].schema == COMMITS.schema and real["releases"].schema == RELEASES.schema
    assert real["dependencies"].schema == DEPENDENCIES.schema
    assert real["commits"].equals(real["commits"].sort(COMMITS.order))


def test_a_patch_release_that_landed_after_the_next_minor_is_not_newer_than_it() -> None:
    """1.0.1 was picked on its branch on day 6, 1.1.0 stands on main at day 4: from one to the other main's changes are gained."""
    history = commits(
        (0, None, 100, "base"),
        (1, 0, 101, "release 1.0"),
        (2, 1, 102, "main two"),
        (3, 2, 103, "main three"),
        (4, 3, 104, "main four"),
        (6, 1, 106, "patch on 1.0"),
    )
    known = upstream(history, release("1.0.1", "tag", commit=6), release("1.1.0", "tag", commit=4))
    found = find_range(known, "1.0.1", "1.1.0")
    assert not found.reversed
    assert numbers(found) == [2, 3, 4]


def test_two_releases_from_one_branch_point_may_differ_by_picks() -> None:
    known = upstream(line(8), release("1.0.1", "anchor", branch_point=4), release("1.0.2", "anchor", branch_point=4))
    found = find_range(known, "1.0.1", "1.0.2")
    assert numbers(found) == [] and found.open_ended
    assert found.notes == ("both ends leave main at the same commit; what was picked onto the release branches is not known",)
    same = find_range(upstream(line(8)), name(4), name(4))
    assert not same.open_ended and "nothing upstream lies between them" in same.notes[0]
