"""Reverts and re-landings: spellings, what each is tied to, and what that makes of a range."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.history import History
from changelog.messages import picked_request, told_by
from changelog.reverting import act_of
from changelog.reverts import Ties, fates, ties
from changelog.subjects import parse_subject
from tests import frames

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"
DAY = datetime(2026, 1, 1, tzinfo=UTC)
OWN = ("vllm-project/vllm",)


def name(number: int) -> str:
    return f"{number:040x}"


def line(*titles: str, **columns: dict[int, object]) -> History:
    """A main line, a commit a day; a trailing (#N) is its pull request. *columns*: further values by number."""
    rows = []
    for number, title in enumerate(titles):
        pr = title.rpartition("(#")[2].rstrip(")")
        values = {
            "project": "vllm",
            "commit": name(number),
            "parents": [name(number - 1)] if number else [],
            "author_date": DAY + timedelta(days=number),
            "committer_date": DAY + timedelta(days=number),
            "title": title,
            "pr": int(pr) if pr.isdigit() else None,
            "paths": [],
            "paths_omitted": 0,
            "recorded_at": DAY,
        }
        rows.append(values | {column: own[number] for column, own in columns.items() if number in own})
    return History(frames.frame("commits", [frames.row("commits", {}, row) for row in rows]))


def pairs(known: Ties) -> list[tuple[int, int, str]]:
    return [(tie.by, tie.of, ("part of " if tie.partial else "") + ("back" if tie.back else "away")) for tie in known.all]


@pytest.mark.parametrize(
    ("subject", "takes", "requests", "title"),
    [
        ('Revert "[Kernel] Faster (#12)" (#34)', True, (12,), "[Kernel] Faster (#12)"),
        ('Revert "[Kernel] Faster" (#12) (#34)', True, (12,), "[Kernel] Faster"),
        ('[Core] Revert "Timeout" (#12 and #13) (#34)', True, (12, 13), "Timeout"),
        ("Revert #1234 and #1235  (#1300)", True, (1234, 1235), "#1234 and #1235"),
        ("[CI] Revert PRs 34818 and 33600 (#34979)", True, (34818, 33600), "PRs 34818 and 33600"),
        ("[Diffusion] Revert 18619 (#19510)", True, (18619,), "18619"),
        ("[TPU][Test] Rollback PR-21550. (#21619)", True, (21550,), "PR-21550."),
        ("fix: revert #8593 (#9581)", True, (8593,), "#8593"),
        ("revert: chunked prefill (#9)", True, (), "chunked prefill"),
        ("[Revert] Undo overlap (#20) (#21)", True, (20,), "Undo overlap (#20)"),
        ("Back out the new sampler (#3)", True, (), "the new sampler"),
        ("Roll back the new sampler", True, (), "the new sampler"),
        (
            "Fix tp8 by reverting two commits (#13162 and #13341) (#13348)",
            True,
            (13162, 13341),
            "two commits (#13162 and #13341)",
        ),
        ('Reapply "Install xformers" (#27768)', False, (), "Install xformers"),
        ("[Bugfix] Reapply 50869 (#52223)", False, (50869,), "50869"),
        ("[VLM][Reland] Refactor load (#16152)", False, (), "[VLM] Refactor load"),
        ("Add sanity checks (reland) (#12594)", False, (), "Add sanity checks"),
        ("[unrevert] Batch invariant (#26373)", False, (), "Batch invariant"),
        ('Revert "Revert "csgmv on cuda"" (#14277)', False, (), 'Revert "csgmv on cuda"'),
    ],
)
def test_real_spellings(subject: str, takes: bool, requests: tuple[int, ...], title: str) -> None:
    act = act_of(subject)
    assert act is not None
    assert (act.takes, act.requests, act.title) == (takes, requests, title)


@pytest.mark.parametrize(
    "subject",
    [
        "Remove reverted test (#22058)",
        "Fix reverted order",
        "Handle rollback when EOS was met",
        "Reverting? no",
        "Background job",
    ],
)
def test_subjects_that_only_mention_it(subject: str) -> None:
    assert act_of(subject) is None


def test_a_part_and_a_cut_title_are_said() -> None:
    partial = act_of("[BugFix] Partial revert of #29558 (DeepEP) (#30910)")
    assert partial is not None and partial.partial and partial.requests == (29558,)
    cut = act_of('Revert "[Kernels][FI] Skip trtllm attention when num_kv_heads=1 (#308… (#31617)')
    assert cut is not None and cut.cut and cut.requests == ()
    assert cut.title == "[Kernels][FI] Skip trtllm attention when num_kv_heads=1"


@given(st.text(max_size=1500))
def test_anything_is_read(subject: str) -> None:
    act_of(subject)
    picked_request(subject)


@given(st.text(alphabet='[]()#0123 "“`:revtRland…,', max_size=1200))
def test_near_misses_are_read(subject: str) -> None:
    act_of(f"Revert {subject}")
    act_of(f"[Revert]{subject}")


@given(st.integers(1000, 9_999_999), st.integers(1000, 9_999_999), st.text(alphabet="abc [](){}:", min_size=1, max_size=40))
def test_a_numbered_revert_names_its_original(of: int, own: int, title: str) -> None:
    act = act_of(f'Revert "{title} (#{of})" (#{own})')
    assert act is not None and act.requests == (of,)


def test_found_by_hash_then_pull_request_then_title() -> None:
    known = line(
        "Add faster kernel path (#1)",
        "Another change of note (#2)",
        "A third change of note (#3)",
        'Revert "some wording of its own" (#4)',
        'Revert "wording (#2)" (#5)',
        'Revert "A third change of note" (#6)',
        reverts={3: name(0)},
    )
    found = ties(known)
    assert [(tie.by, tie.of, tie.how) for tie in found.all] == [(3, 0, "hash"), (4, 1, "pull request"), (5, 2, "title")]
    assert found.untied == ()
    assert [found.reverted_by(number) for number in range(6)] == [3, 4, 5, None, None, None]
    assert ties(known) is found, "made once a history"


def test_a_hash_that_is_not_known_falls_back_to_the_title() -> None:
    known = line("Add faster kernel path (#1)", 'Revert "Add faster kernel path" (#2)', reverts={1: "f" * 40})
    assert pairs(ties(known)) == [(1, 0, "away")]


def test_a_message_alone_tells_of_a_revert() -> None:
    known = line("Add faster kernel path (#1)", "Go back to the old path (#2)", reverts_pr={1: 1})
    assert pairs(ties(known)) == [(1, 0, "away")]


def test_a_later_change_is_never_the_one_that_is_meant() -> None:
    known = line('Revert "Add faster kernel path" (#2)', "Add faster kernel path (#1)")
    assert ties(known).untied == (0,)


def test_the_last_of_equal_titles_is_meant_and_punctuation_does_not_count() -> None:
    known = line(
        "[Perf] use a faster kernel! (#1)", "[perf] Use a faster kernel (#2)", 'Revert "[Perf] Use a faster  kernel" (#3)'
    )
    assert pairs(ties(known)) == [(2, 1, "away")]


def test_a_cut_title_is_found_by_its_beginning() -> None:
    title = "Speed up silu_and_mul_per_block_quant with warp shuffles"
    known = line(f"{title} (#1)", f'Revert "{title[:40]}… (#2)')
    assert pairs(ties(known)) == [(1, 0, "away")]


def test_back_and_forth() -> None:
    known = line(
        "Enable csgmv automatically (#1)",
        'Revert "Enable csgmv automatically" (#2)',
        'Revert "Revert "Enable csgmv automatically"" (#3)',
        'Revert "Enable csgmv automatically (#1)" (#4)',
        "[Reland] Enable csgmv automatically (#5)",
    )
    found = ties(known)
    assert pairs(found) == [(1, 0, "away"), (2, 1, "away"), (2, 0, "back"), (3, 0, "away"), (4, 0, "back")]
    assert found.reverts(3) == (0,) and found.reapplies(2) == (0,) and found.reapplies(4) == (0,)
    assert found.reverted_by(0) is None and found.reverted_by(1) == 2


def test_a_part_that_is_taken_back_leaves_the_change() -> None:
    known = line("Cuda graphs for DeepEP (#29558)", "Partial revert of #29558 (piecewise) (#30910)")
    found = ties(known)
    assert pairs(found) == [(1, 0, "part of away")] and found.reverted_by(0) is None
    assert fates(found, [0, 1]).cancelled == {}


def test_what_a_range_makes_of_it() -> None:
    known = line(
        "Before the range (#1)",
        "Inside and taken back inside (#2)",
        "Inside and taken back later (#3)",
        "Inside, taken back, brought back (#4)",
        'Revert "Inside and taken back inside" (#5)',
        'Revert "Before the range" (#6)',
        'Revert "Inside, taken back, brought back" (#7)',
        'Reapply "Inside, taken back, brought back" (#8)',
        'Revert "Inside and taken back later" (#9)',
    )
    found = fates(ties(known), range(1, 8))
    assert found.cancelled == {1: 4, 4: 4, 6: 7}
    assert found.taken_later == {2: 8}
    assert found.takes_earlier == {5: (0,)}
    assert found.restored == {3: 7}
    assert found.brings_earlier == {}


def test_a_twin_on_a_release_branch_is_the_same_change() -> None:
    """The branch holds a pick of #2; main takes #2 back: that holds of the pick, too."""
    rows = frames.commits(
        [
            ("vllm", name(0), [], DAY, DAY, "Root", None, [], 0, DAY),
            ("vllm", name(1), [name(0)], DAY, DAY + timedelta(days=1), "Two things (#2)", 2, [], 0, DAY),
            ("vllm", name(2), [name(0)], DAY, DAY + timedelta(days=2), "Two things (#2)", 2, [], 0, DAY),
            ("vllm", name(3), [name(1)], DAY, DAY + timedelta(days=3), 'Revert "Two things (#2)" (#3)', 3, [], 0, DAY),
        ]
    )
    known = History(rows)
    found = ties(known)
    assert found.reverted_by(known.index[name(2)]) == known.index[name(3)]


@given(st.permutations(range(5)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    rows = line(
        "Add path one (#1)", "Add path two (#2)", 'Revert "Add path one" (#3)', "Revert #2 (#4)", "Reapply #1 (#5)"
    ).commits
    found = ties(History(rows[order]))
    assert pairs(found) == pairs(ties(History(rows)))


@pytest.mark.parametrize(
    ("subject", "body", "told"),
    [
        (
            'Revert "x"',
            "This reverts commit 0123456789abcdef0123456789abcdef01234567.",
            ("0123456789abcdef0123456789abcdef01234567", None, None, None),
        ),
        ("Go back", "This reverts commit 0123456.\n\nIt was slow.", ("0123456", None, None, None)),
        ("Squashed", "* Revert stage one\n\nThis reverts commit 0123456.\n", (None, None, None, None)),
        ('Revert "x" (#9)', "Reverts vllm-project/vllm#8\r\n\r\nIt hangs.", (None, 8, None, None)),
        ('Revert "x" (#9)', "Reverts someone/else#8", (None, None, None, None)),
        ('Revert "x" (#9)', "Reverts #8", (None, 8, None, None)),
        (
            "Fix (#9)",
            "Why.\n\n(cherry picked from commit 0123456789)\nSigned-off-by: A <a@b>\n",
            (None, None, "0123456789", None),
        ),
        ("Squashed", "* one\n(cherry picked from commit 0123456789)\n* two", (None, None, None, None)),
        ("Fix (#9)", "Cherry-pick from (#7598)\n\nText", (None, None, None, 7598)),
        ("Fix (#9)", "nothing of the kind", (None, None, None, None)),
    ],
)
def test_messages(subject: str, body: str, told: tuple[object, ...]) -> None:
    assert told_by(subject, body, OWN) == told


@given(st.text(max_size=200), st.text(max_size=3000))
def test_any_message_is_read(subject: str, body: str) -> None:
    told_by(subject, f"This reverts commit {body}\n(cherry picked from commit {body})", OWN)


@pytest.mark.parametrize(
    ("subject", "request_number"),
    [
        ("[None][fix] Cherry-pick from (#7598) Fix the hang (#7700)", 7598),
        ("[https://nvbugs/1][fix] cherry-pick #4074 (#4100)", 4074),
        ("Cherry-pick #1 and #2 (#3)", None),
        ("Pick cherries (#1)", None),
    ],
)
def test_picks_by_pull_request(subject: str, request_number: int | None) -> None:
    assert picked_request(subject) == request_number


def history_of(file: str) -> History:
    path = DATA / file
    if not path.exists():
        pytest.skip("upstream data absent")
    texts = ("hash", "author_date", "committer_date", "subject")
    schema = dict.fromkeys(texts, pl.String) | {"parents": pl.List(pl.String), "pr": pl.Int64}
    told = pl.read_ndjson(gzip.decompress(path.read_bytes()), schema=schema)
    when = [pl.col(f"{who}_date").str.to_datetime(time_unit="us", time_zone="UTC") for who in ("author", "committer")]
    known = told.select(pl.col("hash").alias("commit"), "parents", *when, pl.col("subject").alias("title"), "pr")
    return History(known.with_columns(reverts=pl.lit(None, pl.String), picked_from=pl.lit(None, pl.String)))


@pytest.mark.parametrize(
    ("file", "quoted", "lost"),
    [
        ("vllm_commits_main_2025-07_2026-08.jsonl.gz", 80, ()),
        (
            "sglang_commits_main_2025-07_2026-06.jsonl.gz",
            144,
            (
                'Revert "[PD Disaggregation] replace transfer with ',
                'Revert "fix llama4 kv cache layout" (#12437)',
                'Revert "[feat] Init support for webui-I2I" (#15906',
            ),
        ),
    ],
)
def test_real_reverts_that_quote_a_title_are_tied(file: str, quoted: int, lost: tuple[str, ...]) -> None:
    """Those that are not tied were looked at: what they mean landed before the file's first day, or under another title."""
    known = history_of(file)
    titles = known.commits["title"]
    found = ties(known)
    numbers = titles.str.contains(r'(?i)revert +"').arg_true().to_list()
    assert len(numbers) == quoted
    assert tuple(titles[number][:50] for number in numbers if number in found.untied) == lost


def test_a_number_inside_the_named_title_is_not_what_is_taken_back() -> None:
    """SGLang's #18922 takes back #18903, whose title tells of #17934."""
    revert = 'Revert "[AMD] Fix crash on ROCm (regression from #17934)" (#18922)'
    assert parse_subject(revert).reverts is None
    history = line("[JIT] Rotary kernel (#17934)", "[AMD] Fix crash on ROCm (regression from #17934) (#18903)", revert)
    assert pairs(ties(history)) == [(2, 1, "away")]


def test_a_number_that_a_revert_mentions_is_taken_back_in_part() -> None:
    """vLLM's #29086 puts back one of the four files of #28819."""
    history = line("Use torch.allclose (#28819)", "Revert back to torch.equal over torch.allclose from #28819 (#29086)")
    assert parse_subject(history.commits["title"][1]).reverts is None
    known = ties(history)
    assert pairs(known) == [(1, 0, "part of away")] and known.reverted_by(0) is None
    assert not fates(known, [0, 1]).cancelled
