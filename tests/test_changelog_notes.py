"""Release notes of the engines' layouts, item by item; what is said of their pull requests; and the table `notes`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.facts import MAX_NOTES, line_of, release_fact
from changelog.note_blocks import MAX_SECTION
from changelog.note_rows import note_claims, note_rows
from changelog.notes import MAX_ITEM, MAX_ITEMS, NoteItem, claims, cut, items
from changelog.tables import bring_tables, read_table
from warehouse.events import ReleasePublished, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import NOTES, RELEASES

BRACKETS = """# Engine v9.9.0
## Highlights
This release has 4 commits from 2 contributors!

* **Breaking Changes**: the PyTorch 9.9.0 upgrade, and old things are deprecated.
* **Big things**:
  * **Drafting**: many steps at once (#101), more than one rank (#102), and pictures (#103).
  * **Numbers**: 18.1% throughput improvement from one thing (#104), 2.2% throughput improvement from another (#105).
### Engine Core
* **Runner Two (Experimental)** (#106): all made anew:
  * No order any more (#107, #108)
* Offloading: second try (#109), plus a choice (#110). All of it is 2x faster.
* Two streams (#111), 1.07x throughput
"""
GENERATED = """## What's Changed
* [Bugfix] Mend what was introduced in #201 by @some-one in https://github.com/vllm-project/vllm/pull/202
* [Perf] Update Flashinfer to 0.9.1 by @x_y in #203
* Bump things by @dependabot[bot] in https://github.com/VLLM-Project/vLLM/pull/204
* A kernel (https://github.com/flashinfer-ai/flashinfer/pull/99) (#205) by @me
* [#206][fix] A mended thing by @a in #207
* Cherry-pick from (#208) A picked thing (#209)
* Leak fixes (#210)
* Revert "[Core] A thing (#211)" (#212)
* See [#213](https://github.com/vllm-project/vllm/pull/213) and <a href="https://github.com/sgl-project/sglang/pull/5">#5</a>
* Rename one thing (BREAKING CHANGE) (#214)

## New Contributors
* @a made their first contribution in https://github.com/vllm-project/vllm/pull/215

**Full Changelog**: https://github.com/vllm-project/vllm/compare/v9.8.0...v9.9.0
"""
COLONS = """## Highlights

- Overlap: Load while computing, reducing TTFT by ~78% and TPOT by ~34.88%: #301

- Kernels: boosting performance by 3x-5x on new cards (with a small accuracy drop): #302, #303 and #304
"""
PAGE = """Announcement Highlights

Model Support

Add a small model (#401)

API

Support new tags (upgrade XGrammar to 9.1.25) (#402)

Refine sampling (BREAKING CHANGE) (#403)

Add helpers for the path of a
"""


def said(project: str, notes: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(item.text, item.prs) for item in items(project, notes)]


def test_each_part_of_a_bullet_has_its_own_pull_requests_and_gain() -> None:
    found = items("vllm", BRACKETS)
    assert [(item.text, item.prs) for item in found] == [
        ("This release has 4 commits from 2 contributors!", ()),
        ("Breaking Changes: the PyTorch 9.9.0 upgrade, and old things are deprecated.", ()),
        ("Drafting: many steps at once", (101,)),
        ("Drafting: more than one rank", (102,)),
        ("Drafting: pictures", (103,)),
        ("Numbers: 18.1% throughput improvement from one thing", (104,)),
        ("Numbers: 2.2% throughput improvement from another", (105,)),
        ("Runner Two (Experimental): all made anew:", (106,)),
        ("No order any more", (107, 108)),
        ("Offloading: second try", (109,)),
        ("Offloading: a choice", (110,)),
        ("Offloading: All of it is 2x faster.", ()),
        ("Two streams, 1.07x throughput", (111,)),
    ]
    assert {item.prs: [gain.high_pct for gain in item.gains] for item in found if item.gains} == {
        (104,): [18.1],
        (105,): [2.2],
        (): [100.0],
        (111,): [7.0],
    }
    assert [item.place for item in found] == list(range(1, 14))


def test_sections_are_headings_and_list_heads() -> None:
    sections = {item.prs: item.section for item in items("vllm", BRACKETS) if item.prs}
    assert sections[(101,)] == "Highlights / Big things"
    assert sections[(106,)] == sections[(111,)] == "Highlights / Engine Core"


def test_flags_and_dependencies() -> None:
    flagged = items("vllm", BRACKETS)[1]
    assert (flagged.breaking, flagged.deprecated) == (True, True)
    assert (flagged.dependency, flagged.dependency_version) == ("torch", "9.9.0")
    assert [item.prs for item in items("vllm", GENERATED) if item.breaking] == [(214,)]
    assert not any(item.breaking for item in items("vllm", "* non-breaking (#1)\n* groundbreaking (#2)\n* breaking lines (#3)"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bump flashinfer to v0.5.3", ("flashinfer", "0.5.3")),
        ("[Deps] Upgrade transformers from 4.56.1 to 4.57.0", ("transformers", "4.57.0")),
        ("bump sgl-kernel 0.3.17 -> 0.3.18", ("sgl-kernel", "0.3.18")),
        ("Update `flashinfer-python==0.2.10`", ("flashinfer", "0.2.10")),
        ("Upgrade aiter to v0.1.13-rc5", ("aiter", "0.1.13rc5")),
        ("Upgrade to CUDA 13", ("cuda", "13")),
        ("The dependent TensorRT version is updated to 10.11.", ("tensorrt", "10.11")),
        ("Dependent datasets version was upgraded to 3.1.0", ("datasets", "3.1.0")),
        ("Base Docker image is updated to `registry.example/a/pytorch:24.04-py3`.", ("registry.example/a/pytorch", "24.04-py3")),
        ("Compile ahead with PyTorch 2.10", (None, None)),
        ("Update DeepGEMM README 2.0", (None, None)),
        ("Update TensorRT-LLM 1.0 notes", (None, None)),
    ],
)
def test_versions_of_other_packages(text: str, expected: tuple[str | None, str | None]) -> None:
    (item,) = items("vllm", f"* {text} (#1)")
    assert (item.dependency, item.dependency_version) == expected


def test_generated_lists() -> None:
    """Neither the issue in front, nor a culprit, nor a reverted commit's own number, nor another project's."""
    assert said("vllm", GENERATED) == [
        ("[Bugfix] Mend what was introduced in #201", (202,)),
        ("[Perf] Update Flashinfer to 0.9.1", (203,)),
        ("Bump things", (204,)),
        ("A kernel", (205,)),
        ("[fix] A mended thing", (207,)),
        ("Cherry-pick from A picked thing", (208, 209)),
        ("Leak fixes", (210,)),
        ('Revert "[Core] A thing (#211)"', (212,)),
        ("See", (213,)),
        ("Rename one thing (BREAKING CHANGE)", (214,)),
    ]
    found = {item.prs: item for item in items("vllm", GENERATED)}
    assert found[(205,)].urls == ("https://github.com/flashinfer-ai/flashinfer/pull/99",)
    assert found[(213,)].urls == ("https://github.com/sgl-project/sglang/pull/5",)
    assert (found[(203,)].dependency, found[(203,)].dependency_version) == ("flashinfer", "0.9.1")
    assert {item.section for item in found.values()} == {"What's Changed"}


def test_a_link_of_one_project_is_another_s_elsewhere() -> None:
    (item,) = items("sglang", "* A thing by @x in https://github.com/vllm-project/vllm/pull/1")
    assert (item.prs, item.urls) == ((), ("https://github.com/vllm-project/vllm/pull/1",))
    (item,) = items("sglang", "* A thing: sgl-project/sglang#2, vllm-project/vllm#1")
    assert (item.prs, item.urls) == ((2,), ("https://github.com/vllm-project/vllm/pull/1",))


def test_numbers_without_brackets_behind_a_colon() -> None:
    first, second = items("sglang", COLONS)
    assert (first.prs, second.prs) == ((301,), (302, 303, 304))
    assert [(gain.metric, gain.high_pct) for gain in first.gains] == [("ttft", 78.0), ("tpot", 34.88)]
    assert [(gain.metric, gain.low_pct, gain.high_pct) for gain in second.gains] == [(None, 200.0, 400.0)]


def test_a_page_that_was_stored_as_text() -> None:
    found = items("trtllm", PAGE)
    assert [(item.section, item.prs) for item in found] == [
        ("Model Support", (401,)),
        ("API", (402,)),
        ("API", (403,)),
        ("API", ()),
    ]
    assert (found[1].dependency, found[1].dependency_version) == ("xgrammar", "9.1.25")


def test_prose_and_what_is_no_text() -> None:
    assert said("vllm", "A patch release.\nIt mends (#1) one thing.\n\nAnd (#2) another.") == [
        ("A patch release. It mends one thing.", (1,)),
        ("And another.", (2,)),
    ]
    assert said("vllm", "* One (#1), two (#2), three. A fourth (#4). A last one.") == [
        ("One", (1,)),
        ("two", (2,)),
        ("three", ()),
        ("A fourth", (4,)),
        ("A last one.", ()),
    ]
    assert said("vllm", "```\n* code (#1)\n```\n<!-- * hidden (#2) -->\n---\n") == []
    assert said("vllm", "") == []
    assert items("nobody", "* A thing (#1)")[0].prs == (1,)


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        (BRACKETS, None),
        (GENERATED, None),
        (COLONS, None),
        ("", None),
        ("* a (#1)\n* b (#2)...", "ellipsis"),
        ("* a (#1)\n\nRead more", "ellipsis"),
        ("* a (#1)\n* b (#", "not finished"),
        ("* a (#1)\n* one, two and", "not finished"),
        ("* a (#1)\n* a list of these:", "not finished"),
        ("* a (#1)\n* b (#2)\n* c (#3)\n* d (#4)\n* update the roots to improve the path on", "has no end"),
        ("* a\n* b\n* c\n* d\n* e", None),
        ("x" * MAX_NOTES, "greatest length"),
        ("x\n" * (MAX_NOTES // 3 + 1), "greatest length"),
    ],
)
def test_whether_a_note_may_be_cut(notes: str, why: str | None) -> None:
    found = cut(notes)
    assert (found is None) if why is None else (found is not None and why in found)


def releases(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = dict.fromkeys(RELEASES.schema) | {"project": "vllm", "evidence": "release-note"}
    return pl.DataFrame([usual | row for row in rows], schema=RELEASES.schema)


def test_claims_are_by_pull_request_in_the_order_of_the_notes() -> None:
    frame = releases(
        {"version": "9.8.0", "notes": "* First (#7) and second (#8"},
        {"version": "9.9.0", "notes": "* 5% throughput improvement (#7, #9)"},
        {"version": "9.9.1", "evidence": "tag"},
    )
    found = claims(frame)
    assert sorted(found) == [7, 8, 9]
    assert [(claim.version, claim.cut) for claim in found[7]] == [("9.8.0", True), ("9.9.0", False)]
    assert found[9][0].words() == 'release note of 9.9.0 says "5% throughput improvement"'
    assert found[9][0].words(limit=5) == 'release note of 9.9.0 says "5% t…"'
    assert note_claims(note_rows(frame)) == found
    with pytest.raises(ValueError, match="one project"):
        claims(releases({"version": "1", "notes": "x"}, {"version": "1", "notes": "x", "project": "sglang"}))


def published(version: str, notes: str | None, **changed: Any) -> ReleasePublished:
    usual = {"project": "vllm", "version": version, "tag": f"v{version}", "evidence": "release-note"}
    return ReleasePublished(**(usual | {"notes": notes, "published_at": "2025-12-03T00:00:00Z"} | changed))


def take(log: EventLog, *payloads: ReleasePublished) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    facts = [release_fact(payload, "x") for payload in payloads]
    log.append(
        [event_of(fact.payload, occurred_at=fact.occurred_at or now, recorded_at=now, source=Source(name="x")) for fact in facts]
    )
    bring_tables(log)


def stored(log: EventLog) -> list[tuple[str, int, str]]:
    return log.store.read("notes").sort(NOTES.order).select("version", "place", "text").rows()


def test_the_table_follows_the_log_and_an_edited_note_takes_the_place_of_the_old_one(log: EventLog) -> None:
    take(log, published("0.12.0", "* A (#1)\n* B (#2)\n* C (#3)"), published("0.11.0", "* Old (#4)"))
    take(log, published("0.13.0", "* New (#5)"), published("0.13.0", None, evidence="tag"))
    assert stored(log) == [
        ("0.11.0", 1, "Old"),
        ("0.12.0", 1, "A"),
        ("0.12.0", 2, "B"),
        ("0.12.0", 3, "C"),
        ("0.13.0", 1, "New"),
    ]
    take(log, published("0.12.0", "* A, edited (#1)"))
    take(log, published("0.11.0", ""))
    assert stored(log) == [("0.12.0", 1, "A, edited"), ("0.13.0", 1, "New")]
    followed = log.store.read("notes").sort(NOTES.order)
    assert followed.equals(read_table(log, "notes"))
    bring_tables(log, force=True)
    assert log.store.read("notes").equals(followed)


def test_the_rows_of_the_table(log: EventLog) -> None:
    take(log, published("0.12.0", "## Core\n* 2-3% TTFT improvement, bump xgrammar to 0.2.1 (#1, #2", url="https://x"))
    (row,) = read_table(log, "notes").rows(named=True)
    assert {name: row[name] for name in ("section", "prs", "urls", "cut", "url", "dependency", "dependency_version")} == {
        "section": "Core",
        "prs": [1, 2],
        "urls": [],
        "cut": True,
        "url": "https://x",
        "dependency": "xgrammar",
        "dependency_version": "0.2.1",
    }
    (gain,) = row["gains"]
    assert (gain["metric"], gain["low_pct"], gain["high_pct"], gain["of_part"]) == ("ttft", 2.0, 3.0, False)


@pytest.mark.parametrize(
    "unit",
    ["#1 ", "(", "* a\n", "[a](", "<a ", "<!--", " by @a", "a/b#1 ", "cherry-pick (#1) ", 'revert "', "base image ", "1% ", "\t"],
)
def test_a_note_of_full_length_is_read_at_once(unit: str) -> None:
    """No text makes the reading slow: 125,000 characters of anything take well below the 3 s allowed on a busy core."""
    text = (unit * MAX_NOTES)[:MAX_NOTES]
    start = time.process_time()
    found = items("vllm", text)
    cut(text)
    assert time.process_time() - start < 3 and len(found) <= MAX_ITEMS


_PIECES = st.sampled_from(
    [
        "* ",
        "  - ",
        "\n",
        "\n\n",
        "# ",
        "**",
        "(#12)",
        "#7, #8",
        ": ",
        " by @x in ",
        "https://github.com/vllm-project/vllm/pull/9",
        "5% ",
        "```",
    ]
)


@settings(max_examples=300)
@given(st.lists(_PIECES | st.text(max_size=12), max_size=40).map("".join))
def test_any_text_gives_bounded_items_in_order(text: str) -> None:
    found = items("vllm", text)
    assert [item.place for item in found] == list(range(1, len(found) + 1))
    for item in found:
        assert isinstance(item, NoteItem) and item.text == line_of(item.text, MAX_ITEM)
        assert item.section == line_of(item.section, MAX_SECTION)
        assert all(0 < pr < 10**7 for pr in item.prs) and len(set(item.prs)) == len(item.prs)
    assert items("vllm", text) == found
    cut(text)


@given(st.lists(st.tuples(st.text(alphabet="abc xyz", min_size=1), st.integers(1, 9_999_999)), min_size=1, max_size=8))
def test_what_is_written_as_a_generated_list_is_read_back(entries: list[tuple[str, int]]) -> None:
    notes = "".join(f"* a {text} by @someone in https://github.com/vllm-project/vllm/pull/{pr}\n" for text, pr in entries)
    assert said("vllm", notes) == [(" ".join(f"a {text}".split()), (pr,)) for text, pr in entries]


@pytest.mark.parametrize(
    "title",
    [
        "[perf] fix perf regression from #12253",
        "Clean up after #25879 (#12163 and #13341)",
        'Revert "Something long (#308…',
        "Fix https://github.com/vllm-project/vllm/pull/9 broken by #38139",
    ],
)
def test_a_generated_line_is_of_the_pull_request_at_its_end(title: str) -> None:
    note = f"## What's Changed\n* {title} by @some-user in https://github.com/vllm-project/vllm/pull/4242\n"
    assert {number for item in items("vllm", note) for number in item.prs} == {4242}


@pytest.mark.parametrize("words", ["regression from", "broken by", "after"])
def test_what_a_change_is_about_is_not_the_change(words: str) -> None:
    note = f"## Highlights\n- Mend the fast path {words} #12253 (#4242)\n"
    assert {number for item in items("vllm", note) for number in item.prs} == {4242}
