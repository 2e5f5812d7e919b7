"""What notes and reverts tell of the candidates of a range, and what it weighs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from changelog.facets import Configuration
from changelog.ranges import Range, find_range
from changelog.ranking import FIRST, RankedChange, describe, narrowed, rank
from changelog.told import tell
from changelog.upstream import open_upstream
from tests import frames
from warehouse.schemas import RELEASES

DAY = datetime(2026, 1, 1, tzinfo=UTC)
SPEEDUP = Configuration("b200", "dsr1", "fp8", "none", False, "speedup", "tput_per_gpu")
REGRESSION = Configuration("b200", "dsr1", "fp8", "none", False, "regression", "tput_per_gpu")
NOTE = (
    "## Highlights\n\n### Performance\n- Faster MLA decode: 18.1% throughput improvement (#1001)\n- Sampler rewritten (#1002).\n"
)


def name(number: int) -> str:
    return f"{number:08x}" + "0" * 32


def found(*titles: str, last: int | None = None, notes: str | None = None, version: str = "0.91.0") -> Range:
    """The range over the first *last* of *titles* (commits 1, 2, …, pull requests 1001, 1002, …), of 0.90.0 .. 0.91.0."""
    last = len(titles) if last is None else last
    rows = [("vllm", name(0), [], DAY, DAY, "root", None, [], 0, DAY)]
    for number, title in enumerate(titles, start=1):
        when = DAY + timedelta(days=number)
        rows.append(("vllm", name(number), [name(number - 1)], when, when, title, 1000 + number, ["vllm/a.py"], 0, DAY))
    releases = [
        dict.fromkeys(RELEASES.schema.names())
        | {"project": "vllm", "version": own, "tag": f"v{own}", "commit": name(number), "evidence": "tag"}
        for own, number in (("0.90.0", 0), ("0.91.0", last))
    ]
    if notes is not None:
        published = {"published_at": DAY + timedelta(days=last + 1), "evidence": "release-note", "notes": notes}
        releases.append(dict.fromkeys(RELEASES.schema.names()) | {"project": "vllm", "version": version} | published)
    tables = {"commits": frames.commits(rows), "releases": pl.DataFrame(releases, schema=RELEASES.schema)}
    return find_range(open_upstream("vllm", tables), "0.90.0", "0.91.0")


def ranked(candidates: Range, configuration: Configuration = SPEEDUP) -> dict[int | None, RankedChange]:
    return {change.pr: change for change in rank(candidates, configuration)}


def test_a_claimed_gain_in_the_notes_counts() -> None:
    plain, noted = (ranked(found("Touch a thing", "Touch a thing", notes=notes)) for notes in (None, NOTE))
    words = "the notes of 0.91.0 name it under Highlights / Performance and claim 18.1 % (throughput)"
    assert words in noted[1001].evidence
    assert noted[1001].score > noted[1002].score > plain[1002].score
    assert "the notes of 0.91.0 name it under Highlights / Performance" in noted[1002].evidence


def test_a_gain_does_not_explain_a_regression() -> None:
    change = ranked(found("Touch a thing", notes=NOTE), REGRESSION)[1001]
    assert not [words for words in change.evidence if "claim" in words]


def test_notes_of_other_releases_do_not_count() -> None:
    assert not ranked(found("Touch a thing", notes=NOTE, version="0.92.0"))[1001].evidence


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (None, "no release notes of the versions in between are known; that counts neither for nor against"),
        (NOTE + "- And this one ends in the (#10", "the notes of 0.91.0 may be cut; what they do not name counts neither"),
    ],
)
def test_what_is_not_known_of_notes_is_said(notes: str | None, said: str) -> None:
    (remark,) = describe(found("Touch a thing", notes=notes)).remarks
    assert remark.startswith(said)


def test_whole_notes_leave_nothing_to_say() -> None:
    assert tell(found("Touch a thing", notes=NOTE)).remarks == ()


def test_a_change_taken_back_inside_the_range_is_no_cause() -> None:
    candidates = found("Faster MLA decode (#1001)", "Faster MLA decode for all", 'Revert "Faster MLA decode (#1001)" (#1003)')
    change = ranked(candidates)
    assert "against: taken back inside the range by #1003" in change[1001].evidence
    assert change[1002].score > 0 > change[1001].score and change[1003].score < change[1002].score


def test_a_revert_of_something_older_is_a_candidate() -> None:
    candidates = find_range(
        found("Faster MLA decode (#1001)", "x", 'Revert "Faster MLA decode (#1001)" (#1003)').upstream, name(1), name(3)
    )
    change = ranked(candidates, REGRESSION)[1003]
    assert "takes back #1001" in change.evidence and change.rank == 1
    assert "title names MLA attention (“mla”)" in change.evidence, "its facets are those of what it takes back"


def test_taken_back_later_for_its_speed_speaks_for_a_regression() -> None:
    titles = ("Touch a thing (#1001)", "Touch another (#1002)", "x")
    slow = '[Perf] Revert "Touch a thing (#1001)", it is slow (#1004)'
    told = ranked(found(*titles, slow, last=3), REGRESSION)
    assert "taken back later by #1004, which says that it is about speed" in told[1001].evidence
    unsaid = ranked(found(*titles, 'Revert "Touch a thing (#1001)" (#1004)', last=3), REGRESSION)
    assert "taken back later by #1004" in unsaid[1001].evidence
    assert told[1001].score > unsaid[1001].score > unsaid[1002].score
    speedup = ranked(found(*titles, slow, last=3))
    assert speedup[1001].score < speedup[1002].score


def test_what_made_it_slower_is_narrowed_by_far_less() -> None:
    """Public regressions have their cause below the first ten whatever the scores (docs/evaluation.md)."""
    change = rank(found("x"), SPEEDUP)[0]
    by_far, by_some = ([replace(change, rank=n + 1, score=top if n == 0 else 1.0) for n in range(30)] for top in (9.0, 8.9))
    assert narrowed(by_far, "regression") and narrowed(by_far, None)
    assert not narrowed(by_some, "regression") and not narrowed(by_some, None) and narrowed(by_some, "speedup")


def test_flat_scores_are_not_narrowed() -> None:
    flat = rank(found(*(f"Touch {number}" for number in range(30))), SPEEDUP)
    assert not narrowed(flat, "speedup")
    clear = rank(found("[NVIDIA] Faster DeepSeek-R1 MLA decode with FP8", *(f"Touch {number}" for number in range(30))), SPEEDUP)
    assert narrowed(clear, "speedup") and clear[0].pr == 1001
    assert narrowed(flat[:FIRST]) and narrowed([]), "a set this short is narrow as it is"
