"""Subjects: spellings that real projects use, and anything at all."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.subjects import parse_subject

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"


@pytest.mark.parametrize(
    ("subject", "pr"),
    [
        ("[ROCm] Attention selector reordering (#36702)", 36702),
        ('Revert "[Kernel] Faster thing (#1234)" (#5678)', 5678),
        ('Revert "fix (#12)"', None),
        ("Merge pull request #77 from someone/branch", 77),
        ("see (#5) for why", None),
        ("no number", None),
        ("", None),
        ("zero (#0)", None),
        ("too large (#999999999)", None),
        ("trailing blank (#42)  ", 42),
    ],
)
def test_pull_request_is_the_last_bracketed_number(subject: str, pr: int | None) -> None:
    assert parse_subject(subject).pr == pr


@pytest.mark.parametrize(
    ("subject", "reverts"),
    [
        ('Revert "[Kernel] Faster thing (#1234)" (#5678)', 1234),
        ("[Revert] Undo overlap (#20) (#21)", 20),
        ("[ROCm][Revert] Undo overlap of #20 (#21)", None),  # of which it may be a part
        ("revert: chunked prefill (#9)", None),
        ("Rollback of #3 (#4)", 3),
    ],
)
def test_reverts_in_several_spellings(subject: str, reverts: int | None) -> None:
    parsed = parse_subject(subject)
    assert parsed.revert
    assert parsed.reverts == reverts


@pytest.mark.parametrize(
    "subject", ["Reapply overlap (#3)", "Fix reverted order (#4)", 'Revert "Revert overlap (#1)" (#2)', "Reverting? no"]
)
def test_not_a_revert(subject: str) -> None:
    assert not parse_subject(subject).revert


def test_tags_and_prefix() -> None:
    parsed = parse_subject("[ROCm][Bugfix] feat(moe): do it (#1)")
    assert parsed.tags == ("ROCm", "Bugfix")
    assert parsed.prefix == "feat"
    assert parse_subject("[TRTLLM-1000][feat] do it").tags == ("TRTLLM-1000", "feat")
    assert parse_subject("word: not[a tag]").tags == ()


@pytest.mark.parametrize(
    ("subject", "dependency", "version"),
    [
        ("chore: bump sgl-kernel version to 0.3.18.post2 (#14244)", "sgl-kernel", "0.3.18.post2"),
        ("[FlashInfer] Bump FlashInfer version from 0.6.2 to 0.6.3 (#18448)", "flashinfer", "0.6.3"),
        ("chore: upgrade flashinfer v0.2.7.post1 (#7698)", "flashinfer", "0.2.7.post1"),
        ("[AMD][MoRI] bump MoRI to v1.1.0 (#22870)", "mori", "1.1.0"),
        ("Update docs for the 2.0 release", None, None),
    ],
)
def test_dependency_moves(subject: str, dependency: str | None, version: str | None) -> None:
    parsed = parse_subject(subject)
    assert (parsed.dependency, parsed.dependency_version) == (dependency, version)


@given(st.text(max_size=3000))
def test_anything_parses(subject: str) -> None:
    parsed = parse_subject(subject)
    assert parsed.pr is None or parsed.pr > 0
    assert parsed.reverts is None or parsed.revert


@given(st.text(alphabet='[](#0123456789)Rrevt "bump:', max_size=2500))
def test_near_misses_parse(subject: str) -> None:
    assert subject.startswith(parse_subject(subject).title)


@given(st.text(max_size=100), st.integers(1, 9_999_999))
def test_a_trailing_number_is_always_found(head: str, number: int) -> None:
    assert parse_subject(f"{head} (#{number})").pr == number


@pytest.mark.parametrize("name", ["vllm_commits_main_2025-07_2026-08", "sglang_commits_main_2025-07_2026-06"])
def test_agrees_with_numbers_extracted_by_another_tool(name: str) -> None:
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip("upstream data absent")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert len(lines) > 9_000
    wrong = [(line["subject"], line["pr"]) for line in lines if parse_subject(line["subject"]).pr != line["pr"]]
    assert wrong == []
