"""What an image is, joined from its tag, registries and the tables: ends of ranges, and the answer of `shiftlog build`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.evaluation.images import evaluate
from changelog.sightings import labelled
from changelog.software import lines, told, told_all
from changelog.upstream import open_upstream
from changelog.versions import resolve
from tests import frames
from warehouse.errors import InputError

DAY = datetime(2025, 12, 1, tzinfo=UTC)
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
LABEL = "org.opencontainers.image.revision"
HOURS = (0, 9, 11, 13, 14, 24, 33, 50)
"""When the commits of the history land, hours after DAY."""


def name(number: int) -> str:
    return f"{0xC0 + number:08x}" + "0" * 32


def tables(*images: dict[str, Any], engine: str = "sglang") -> dict[str, pl.DataFrame]:
    """Return a history of eight commits, a release with a branch point, one by upload, and a support matrix."""
    history = [
        {
            "project": engine,
            "commit": name(number),
            "parents": [name(number - 1)] if number else [],
            "author_date": DAY + timedelta(hours=hour),
            "committer_date": DAY + timedelta(hours=hour),
            "title": f"change {number}",
            "pr": number + 1,
        }
        for number, hour in enumerate(HOURS)
    ]
    releases = [
        {"project": engine, "version": "0.5.6", "evidence": "anchor", "commit": name(6), "branch_point": name(4)},
        {"project": engine, "version": "0.5.6", "evidence": "upload", "published_at": DAY + timedelta(days=2)},
    ]
    pinned = {"project": "dynamo", "version": "0.8.1.post2", "dependency": engine, "dependency_version": "0.5.6"}
    return {
        "commits": frames.frame("commits", [frames.row("commits", {}, row) for row in history]),
        "releases": frames.frame("releases", [frames.row("releases", {}, row) for row in releases]),
        "dependencies": frames.frame("dependencies", [frames.row("dependencies", {}, pinned)]),
        "images": frames.frame("images", list(images)),
    }


def seen(reference: str, digest: str = A, hours: float = 60, **more: Any) -> dict[str, Any]:
    own = {"image_ref": reference, "image_digest": digest, "manifest_digest": digest, "seen_at": DAY + timedelta(hours=hours)}
    return frames.row("images", own, more)


def end(image: str, *images: dict[str, Any], engine: str = "sglang") -> Any:
    return resolve(open_upstream(engine, tables(*images, engine=engine)), image)


@pytest.mark.parametrize(
    ("image", "place", "confidence", "words"),
    [
        # Dated ROCm images: at noon, in December 2025 at one. The commit of 13:00 is in, that of 14:00 is not.
        ("lmsysorg/sglang-rocm:v0.5.6-rocm700-mi35x-20251201", 3, "low", "that day's main at 13:00 UTC"),
        ("rocm/sgl-dev:v0.5.17-rocm720-mi35x-20260818", 7, "low", "that day's main at 12:00 UTC"),
        # A nightly has its commit; where no history has it, its day counts, from midnight on.
        (f"lmsysorg/sglang:nightly-dev-cu13-20251202-{name(6)[:8]}", 6, "high", "commit in the image tag"),
        ("lmsysorg/sglang:nightly-dev-20251202-deadbee1", 5, "low", "commit deadbee1 of the tag is in no known history"),
        # A version that is only the base does not count where a day stands beside it; without one it does, and is believed less.
        ("rocm/sgl-dev:sglang-0.5.6-rocm700-mi35x-mori-1224", 6, "low", "version of a custom build"),
        ("lmsysorg/sglang:v0.5.6-cu129-amd64", 6, "high", "measured release commit"),
        ("nvcr.io#nvidia/ai-dynamo/sglang-runtime:0.8.1.post2", 6, "medium", "support matrix: dynamo 0.8.1.post2 carries"),
        # A commit of a branch of its own is nowhere, whatever its day.
        ("rocm/sgl-dev:rocm720-mi35x-583b1b6-20251202-DSv4", None, "none", "in no known history"),
        ("lmsysorg/sglang:deepseek-v4-b300", None, "none", "neither version nor commit"),
    ],
)
def test_where_an_image_stands(image: str, place: int | None, confidence: str, words: str) -> None:
    found = end(image)
    assert (found.commit, found.confidence) == (None if place is None else name(place), confidence), found.how
    assert words in found.how


def test_a_build_to_the_minute() -> None:
    found = end("rocm/atom-dev:nightly_202512010959", engine="atom")
    assert (found.commit, found.confidence) == (name(1), "low")
    assert "that minute's main: 2025-12-01T09:59:00Z" in found.how


def test_what_a_registry_says_comes_before_the_tag() -> None:
    image = "lmsysorg/sglang:v0.5.6-cu129-amd64"
    row = seen(image, commit=name(2), commit_source=LABEL, engine_version="v0.5.6-cu129-amd64")
    found = end(image, row)
    assert (found.commit, found.confidence, found.version) == (name(2), "high", "0.5.6")
    assert found.how == f"registry: label {LABEL} of {A[:19]}…: commit {name(2)[:9]}"
    pinned = end(f"docker.io#{image}@{A}", row)
    assert (pinned.commit, pinned.confidence) == (name(2), "high")
    assert end(f"{image}@{B}", row).confidence == "medium", "another digest under that tag"


def test_a_moved_tag_tells_of_neither_content_and_a_name_only_of_when_it_was_looked_at() -> None:
    image = "lmsysorg/sglang:v0.5.6"
    moved = (seen(image, A, 60, commit=name(2)), seen(image, B, 70, commit=name(3)))
    assert (end(image, *moved).commit, end(f"{image}@{B}", *moved).commit) == (name(6), name(3))
    named = end("lmsysorg/sglang:dev", seen("lmsysorg/sglang:dev", commit=name(2), commit_source=LABEL))
    assert (named.commit, named.confidence) == (name(2), "medium")
    assert named.how.endswith("which the tag stood for on 2025-12-03T12:00:00Z")


def test_platforms_that_tell_different_commits_tell_none() -> None:
    rows = [
        seen("lmsysorg/sglang:dev", platform=p, manifest_digest=p, commit=name(n))
        for n, p in enumerate(("linux/amd64", "linux/arm64"))
    ]
    assert labelled(tables(*rows)["images"], "lmsysorg/sglang:dev", None) is None
    same = [row | {"commit": name(1)} for row in rows]
    found = labelled(tables(*same)["images"], "lmsysorg/sglang:dev", None)
    assert found is not None and (found.commit, found.version, found.digest) == (name(1), None, A)


def test_without_a_warehouse_the_grammar_answers() -> None:
    found = told("nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime:1.3.0-dev.1-cuda13")
    assert {key: found[key] for key in ("repo", "tag", "engine", "version", "wrapper", "wrapper_version", "confidence")} == {
        "repo": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime",
        "tag": "1.3.0-dev.1-cuda13",
        "engine": "trtllm",
        "version": None,
        "wrapper": "dynamo",
        "wrapper_version": "1.3.0-dev.1",
        "confidence": "none",
    }
    assert (found["suffixes"], found["build_id"]) == (["cuda13"], f"tag:{found['repo']}:{found['tag']}")
    assert (found["engine_version"], found["release"], found["place"], found["digests"], found["labels"]) == (
        None,
        None,
        None,
        [],
        [],
    )
    assert json.loads(json.dumps(found)) == found
    with pytest.raises(InputError):
        told("not an image!")


def test_the_wrapper_tells_the_engine_and_the_engine_its_release() -> None:
    found = told("nvcr.io#nvidia/ai-dynamo/sglang-runtime:0.8.1.post2", tables())
    assert (found["version"], found["engine_version"]) == (None, "0.5.6")
    assert found["engine_version_source"] == "support matrix of dynamo 0.8.1.post2"
    assert found["release"] == {
        "version": "0.5.6",
        "published_at": "2025-12-03T00:00:00Z",
        "commit": name(6),
        "branch_point": name(4),
        "evidence": ["anchor", "upload"],
    }


def test_a_dated_tag_tells_the_days_main_and_its_version_is_only_the_base() -> None:
    found = told("lmsysorg/sglang-rocm:v0.5.6-rocm700-mi35x-20251201", tables())
    assert found["main_at"]["commit"] == name(3) and found["main_at"]["committer_date"] == "2025-12-01T13:00:00Z"
    text = "\n".join(lines(found))
    assert "unsure: the version is what it was built on top of, not the release" in text
    assert "built on top of release 0.5.6" in text


def test_digests_and_labels_of_a_tag_that_moved() -> None:
    image = "lmsysorg/sglang:v0.5.6"
    kept = {"labels": [{"name": LABEL, "value": name(3)}], "commit": name(3), "commit_source": LABEL}
    known = tables(seen(image, A, 60), seen(image, B, 70, **kept))
    found = told(image, known)
    assert [(one["digest"], one["seen_at"]) for one in found["digests"]] == [
        (A, "2025-12-03T12:00:00Z"),
        (B, "2025-12-03T22:00:00Z"),
    ]
    assert (
        found["moved"] == f"the tag moved 1 time: {A[:19]}… (seen 2025-12-03T12:00:00Z) → {B[:19]}… (seen 2025-12-03T22:00:00Z)"
    )
    assert (found["commit"], found["labels"]) == (None, kept["labels"])
    pinned = told(f"{image}@{B}", known)
    assert (pinned["commit"], pinned["confidence"], pinned["source"]) == (
        name(3),
        "high",
        f"registry: label {LABEL} of {B[:19]}…",
    )
    assert [one["is_this"] for one in pinned["digests"]] == [False, True]


@given(st.lists(st.sampled_from(("lmsysorg/sglang:v0.5.6", "vllm/vllm-openai:nightly", "TBD", "rocm/atom-dev:M3")), max_size=5))
def test_every_image_has_an_answer_and_words(images: list[str]) -> None:
    known = tables()
    answers = told_all(images, known)
    assert [answer["image"] for answer in answers] == images
    for answer in answers:
        assert all("\n" not in line and line.strip() for line in lines(answer))
        assert json.dumps(answer)


def test_the_evaluation_counts_what_is_right_and_lists_what_is_not(tmp_path: Path, shared_data: Path) -> None:
    entries = json.loads((shared_data / "inferencex" / "images.json").read_text("utf-8"))
    found = evaluate(shared_data / "inferencex" / "images.json")
    assert (found["images"], found["unknown"], found["wrong"]) == (141, 13, [])
    assert set(found["fields"].values()) == {141}
    place = tmp_path / "images.json"
    place.write_text(json.dumps([entries[0] | {"version_in_tag": "9.9", "engine": "other"}]))
    assert [fault[1] for fault in evaluate(place)["wrong"]] == ["engine", "version"]
