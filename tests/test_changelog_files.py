"""Upstream files: recognised by content, read item by item, faults told."""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.facts import MAX_NOTES, MAX_PATHS, MAX_TITLE, UpstreamFact, UpstreamFault
from changelog.files import READERS, recognise
from changelog.projects import project_of_file, project_of_url, projects
from warehouse.errors import InputError
from warehouse.events import CommitLanded, DependencyPinned, ReleasePublished

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"
A, B = "a" * 40, "b" * 40


def commit_line(**changed: Any) -> dict[str, Any]:
    line = {
        "hash": A,
        "parents": [B],
        "author_date": "2025-12-01T10:00:00+08:00",
        "committer_date": "2025-12-01T02:30:00Z",
        "subject": "[ROCm] Faster (#12)",
        "pr": 12,
        "files": [["M", "vllm/a.py"], ["A", "b.py"]],
    }
    return line | changed


def lines(*items: dict[str, Any]) -> bytes:
    return "".join(json.dumps(item) + "\n" for item in items).encode()


def read(name: str, data: bytes, project: str | None = None) -> list[UpstreamFact | UpstreamFault]:
    reader = recognise(data)
    assert reader is not None
    return list(reader.read(name, data, project))


def test_a_commit_line() -> None:
    (fact,) = read("vllm_commits.jsonl", lines(commit_line()))
    assert isinstance(fact, UpstreamFact)
    assert fact.payload == CommitLanded(
        project="vllm",
        commit=A,
        parents=(B,),
        author_date="2025-12-01T02:00:00Z",
        committer_date="2025-12-01T02:30:00Z",
        title="[ROCm] Faster (#12)",
        pr=12,
        paths=("b.py", "vllm/a.py"),
    )
    assert fact.occurred_at == datetime(2025, 12, 1, 2, 30, tzinfo=UTC)
    assert fact.position == "line 1"


def test_a_bad_line_is_told_and_the_rest_goes_in() -> None:
    data = (
        lines(commit_line())
        + b"{broken\n\n"
        + lines(
            commit_line(hash="short"),
            commit_line(committer_date="yesterday"),
            commit_line(hash=B, pr="12"),
            commit_line(hash="c" * 40),
        )
    )
    facts = read("vllm.jsonl", data)
    assert [type(fact).__name__ for fact in facts] == ["UpstreamFact", *["UpstreamFault"] * 4, "UpstreamFact"]
    faults = [fact for fact in facts if isinstance(fact, UpstreamFault)]
    assert [fault.position for fault in faults] == ["line 2", "line 4", "line 5", "line 6"]
    assert "hash" in faults[1].reason and "committer_date" in faults[2].reason and "pr" in faults[3].reason
    assert faults[0].excerpt == "{broken"


def test_bounds() -> None:
    many = [["M", f"p/{number:04}"] for number in range(MAX_PATHS + 50)]
    (fact,) = read("vllm.jsonl", lines(commit_line(subject="x" * 2000, files=many, pr=None)))
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, CommitLanded)
    assert len(fact.payload.title) == MAX_TITLE
    assert len(fact.payload.paths) == MAX_PATHS and fact.payload.paths_omitted == 50


def test_control_and_direction_marks_leave_titles() -> None:
    (fact,) = read("vllm.jsonl", lines(commit_line(subject="a\x1b[31mb\u202ec\nd (#3)", pr=None)))
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, CommitLanded)
    assert fact.payload.title == "a [31mb c d (#3)"
    assert fact.payload.pr == 3


def test_project_comes_from_declaration_else_name() -> None:
    assert project_of_file("pypi_tensorrt-llm_releases.json", None) == "trtllm"
    assert project_of_file("in/sglang-dump/tags.json", "TensorRT-LLM") == "trtllm"
    assert project_of_file("x.zip!aiter_tags.json", None) == "aiter"
    for name in ("commits.jsonl", "vllm_and_sglang.json", "vllmish.json"):
        with pytest.raises(InputError, match="--set engine="):
            project_of_file(name, None)
    with pytest.raises(InputError, match="not known"):
        project_of_file("vllm.json", "nonsense")


def test_a_file_without_a_project_is_refused_as_a_whole() -> None:
    with pytest.raises(InputError, match=r"commits\.jsonl.*--set engine="):
        read("commits.jsonl", lines(commit_line()))
    assert len(read("commits.jsonl", lines(commit_line()), "vllm")) == 1


def test_project_of_url() -> None:
    assert project_of_url("https://github.com/vllm-project/vllm/releases/tag/v1") == "vllm"
    assert project_of_url("https://github.com/NVIDIA/TensorRT-LLM") == "trtllm"
    assert project_of_url("https://github.com/vllm-project/vllm-omni") is None
    assert project_of_url("javascript:alert(1)") is None


def test_tags_that_are_no_releases_are_passed_over() -> None:
    tags = [
        {"tag": tag, "type": "commit", "date": "2026-01-01T00:00:00Z", "commit": A}
        for tag in ("v0.1.14-rc0", "nightly-v0.6.15-20260714", "archive/x", "v0.1.17-longctx", "v0.1.16.post5")
    ]
    facts = read("aiter_tags.json", json.dumps(tags).encode())
    assert [
        fact.payload.version for fact in facts if isinstance(fact, UpstreamFact) and isinstance(fact.payload, ReleasePublished)
    ] == ["0.1.14rc0", "0.1.16.post5"]


def test_github_releases_keep_notes_within_bounds() -> None:
    release = {
        "tag_name": "v0.12.0",
        "name": "vLLM <b>v0.12.0</b>",
        "published_at": "2025-12-03T09:00:00Z",
        "body": "y\r\n" * 90_000,
        "html_url": "https://github.com/vllm-project/vllm/releases/tag/v0.12.0",
        "draft": False,
    }
    (fact,) = read("releases.json", json.dumps([release]).encode())
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, ReleasePublished)
    assert (fact.payload.project, fact.payload.version, fact.payload.evidence) == ("vllm", "0.12.0", "release-note")
    assert fact.payload.notes is not None and len(fact.payload.notes) <= MAX_NOTES and fact.payload.notes.startswith("y\ny\n")
    assert fact.published_at == datetime(2025, 12, 3, 9, tzinfo=UTC)


def test_dynamo_pins_what_it_carries_and_not_what_it_lacks() -> None:
    data = json.dumps([{"dynamo": "0.7.0", "sglang": None, "tensorrt_llm": "1.2.0rc2", "vllm": "0.11.0"}]).encode()
    facts = read("x.json", data)
    assert [fact.payload for fact in facts if isinstance(fact, UpstreamFact)] == [
        DependencyPinned(
            project="dynamo", version="0.7.0", dependency="trtllm", dependency_version="1.2.0rc2", evidence="support matrix"
        ),
        DependencyPinned(
            project="dynamo", version="0.7.0", dependency="vllm", dependency_version="0.11.0", evidence="support matrix"
        ),
    ]


def test_two_candidate_commits_name_none() -> None:
    data = json.dumps([{"version": "0.21.0", "trtllm_commits": [A, B], "evidence": []}]).encode()
    (fact,) = read("x.json", data)
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, ReleasePublished)
    assert fact.payload.commit is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[1]",
        b"[[",
        b'{"note": "x", "cases": []}',
        b"\x1f\x8b\x08",
        b"\xff\xfe",
        b'[{"hw": "b200", "tput_per_gpu": 1}]',
        b"[" * 100_000,
        b'{"a":' * 5_000,
    ],
)
def test_other_files_are_not_ours(data: bytes) -> None:
    assert recognise(data) is None


@given(st.binary(max_size=400) | st.text(alphabet='{}[]",:0123 hashversiontag', max_size=200).map(str.encode))
def test_recognition_never_raises(data: bytes) -> None:
    assert recognise(data) is None or recognise(data) in READERS


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3)),
    st.sampled_from(sorted(commit_line())),
)
def test_any_value_in_any_field_is_a_fact_or_a_fault(value: Any, field: str) -> None:
    data = lines(commit_line(), commit_line(**{field: value}))
    first, second = read("vllm.jsonl", data)
    assert isinstance(first, UpstreamFact)
    assert isinstance(second, UpstreamFact | UpstreamFault)


def test_every_project_reads_its_own_tags() -> None:
    for name, project in projects().items():
        assert project.name == name
        assert project.version_of_tag("v1.2.3") == "1.2.3"
        assert project.version_of_tag("v1.2.3; rm -rf") is None


def test_bump_subjects_of_other_packages_do_not_match() -> None:
    sglang = projects()["sglang"]
    assert sglang.version_of_bump("chore: bump SGLang version to 0.5.6.post1 (#14651)") == "0.5.6.post1"
    for title in (
        "chore: bump sgl-kernel version to 0.3.18 (#13816)",
        "chore: bump mooncake version to 0.3.8 (#1)",
        "chore: bump SGLang version to 0.5.6x (#1)",
        "Fix: bump SGLang version to 0.5.6 in docs",
    ):
        assert sglang.version_of_bump(title) is None


def test_the_real_files() -> None:
    """Counts were taken from the files with other tools: lines, list lengths, release tags by a shell pattern."""
    if not DATA.exists():
        pytest.skip("upstream data absent")
    expected = {
        "aiter_commits": 2830,
        "flashinfer_commits": 2850,
        "sglang_commits": 9335,
        "vllm_commits": 12652,
        "pypi_sglang": 160,
        "pypi_tensorrt-llm": 156,
        "pypi_vllm": 101,
        "trtllm_version": 49,
        "release_anchors": 13,
    }
    counts: Counter[str] = Counter()
    for path in sorted(DATA.iterdir()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        reader = recognise(data)
        assert (reader is None) == (path.name == "link_labels.json")
        for fact in reader.read(path.name, data, None) if reader else ():
            assert isinstance(fact, UpstreamFact), fact
            counts[next((head for head in expected if path.name.startswith(head)), "other")] += 1
    assert {head: counts[head] for head in expected} == expected
