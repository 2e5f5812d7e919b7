"""Image references: what real tags hold, and what must never be read out of a tag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.errors import InputError
from warehouse.image import MAX_REFERENCE, parse

DIGEST = "sha256:" + "0123456789abcdef" * 4
UNREAD = "rocm/7.0"
"""A repository of several engines: which one is in the tag, and we do not read it."""


@pytest.fixture(scope="module")
def images(shared_data: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((shared_data / "inferencex" / "images.json").read_text("utf-8"))
    return entries


def test_all_real_references_come_apart_as_they_should(images: list[dict[str, Any]]) -> None:
    assert len(images) == 141
    for entry in images:
        read = parse(entry["image"])
        assert (read.repo, read.tag, read.digest) == (entry["repo"], entry["tag"], entry["digest"]), entry["image"]
        if entry["repo"] != UNREAD:
            assert (read.engine, read.wrapper) == (entry["engine"], entry["wrapper"]), entry["image"]
        assert read.image == entry["image"]
        assert "#" not in read.ref


def test_release_tags_give_their_version(images: list[dict[str, Any]]) -> None:
    releases = [entry for entry in images if entry["class"].startswith("V ")]
    assert len(releases) == 81
    for entry in releases:
        read = parse(entry["image"])
        assert (read.version, read.confidence, read.source) == (entry["version_in_tag"], "high", "release tag"), entry["image"]


def test_nothing_is_read_that_the_tag_does_not_hold(images: list[dict[str, Any]]) -> None:
    for entry in images:
        read = parse(entry["image"])
        for found, held in (
            (read.version, entry["version_in_tag"]),
            (read.commit, entry["commit_in_tag"]),
            (read.date, entry["date_in_tag"]),
            (read.wrapper_version, entry["wrapper_version"]),
        ):
            assert found is None or found == held, entry["image"]


def test_a_dated_build_is_not_the_release_that_its_tag_names(images: list[dict[str, Any]]) -> None:
    dated = [entry for entry in images if entry["class"].startswith("VD ")]
    assert len(dated) == 20
    assert [entry["image"] for entry in dated if parse(entry["image"]).confidence == "high"] == []


def test_full_commits_are_read(images: list[dict[str, Any]]) -> None:
    nightly = [entry for entry in images if entry["class"].startswith("C40 ")]
    assert len(nightly) == 3
    assert [parse(entry["image"]).commit for entry in nightly] == [entry["commit_in_tag"] for entry in nightly]


def test_both_spellings_are_one_reference(images: list[dict[str, Any]]) -> None:
    spelt = [entry["image"] for entry in images if "#" in entry["image"]]
    assert spelt
    for image in spelt:
        slashed = parse(image.replace("#", "/"))
        assert parse(image).model_copy(update={"image": slashed.image}) == slashed
        assert parse(image).build_id == slashed.build_id


@pytest.mark.parametrize(
    "image",
    [
        "docker://vllm/vllm-openai:v0.11.0",
        "docker.io/vllm/vllm-openai:v0.11.0",
        " vllm/vllm-openai:v0.11.0 ",
        "docker://index.docker.io/vllm/vllm-openai:v0.11.0",
        "docker.io#vllm/vllm-openai:v0.11.0",
    ],
)
def test_other_spellings_of_one_image_are_one_build(image: str) -> None:
    assert parse(image).build_id == "tag:vllm/vllm-openai:v0.11.0"
    assert (parse(image).engine, parse(image).version) == ("vllm", "0.11.0")


def test_a_digest_is_the_identity_and_a_tag_is_marked_as_one() -> None:
    assert parse(f"vllm/vllm-openai:v0.20.1@{DIGEST}").build_id == f"digest:{DIGEST}"
    assert parse(f"vllm/vllm-openai@{DIGEST}").tag is None
    assert parse("vllm/vllm-openai:v0.20.1").build_id == "tag:vllm/vllm-openai:v0.20.1"


def test_a_port_is_not_a_tag() -> None:
    read = parse("registry.example:5000/team/engine:v1")
    assert (read.repo, read.tag, read.engine) == ("registry.example:5000/team/engine", "v1", None)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("lmsysorg/sglang:v0.5.10rc0", "0.5.10rc0"),
        ("lmsysorg/sglang:v0.5.5.post2-rocm700-mi35x", "0.5.5.post2"),
        ("vllm/vllm-openai:v0.11.0-rc1", "0.11.0-rc1"),
        ("nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc6.post3", "1.2.0rc6.post3"),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai", None),
        ("lmsysorg/sglang:v0.5.7-custom", None),
        ("lmsysorg/sglang:v0.5.7-rocm720-mi35x-20260101", None),
        ("rocm/atom:rocm7.2.3_ubuntu24.04_atom20260511", None),
        ("nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post2", None),
        ("evil/vllm/vllm-openai:v0.11.0", None),
    ],
)
def test_versions_by_hand(image: str, version: str | None) -> None:
    assert parse(image).version == version


@pytest.mark.parametrize(
    "image",
    [
        "",
        " ",
        "a b",
        "a/../b:v1",
        "/etc/passwd",
        "../x",
        "a//b",
        "a:b:c",
        "<script>alert(1)</script>",
        "-x",
        "a@sha256:12",
        "a\nb",
        "a#b#c:v1",
        "a@sha256:" + "G" * 64,
        "a:" + "t" * 129,
        "\ud800",
        "vllm/vllm-openai:v1\x1b[31m",
        "x" * (MAX_REFERENCE + 1),
        "vllm/vllm-openai:v0.1" + "-cu1" * 122,
    ],
)
def test_what_is_no_reference_is_refused_in_one_line(image: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(image)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_tags_as_long_as_allowed_are_read_without_backtracking() -> None:
    tail = "-cu1" * 30
    assert parse("vllm/vllm-openai:v0.1" + tail).version == "0.1"
    assert parse("vllm/vllm-openai:v0.1" + tail + "-").version is None
    assert parse("rocm/atom:rocm7_" + "_atom0.1" * 13 + "x").version is None


@given(st.text(max_size=600))
def test_any_text_is_a_reference_or_a_refusal(text: str) -> None:
    try:
        read = parse(text)
    except InputError:
        return
    rebuilt = read.repo + (f":{read.tag}" if read.tag else "") + (f"@{read.digest}" if read.digest else "")
    assert rebuilt == read.ref
    assert parse(read.ref).model_copy(update={"image": text}) == read
