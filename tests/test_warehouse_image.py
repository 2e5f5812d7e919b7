"""Image references: what real tags hold, and what must never be read out of a tag."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.errors import InputError
from warehouse.image import MAX_REFERENCE, normalise, parse

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def images(shared_data: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((shared_data / "inferencex" / "images.json").read_text("utf-8"))
    return entries


def test_every_field_of_every_real_reference_is_right(images: list[dict[str, Any]]) -> None:
    assert len(images) == 141
    for entry in images:
        read = parse(entry["image"])
        held = (entry["version_in_tag"], entry["commit_in_tag"], entry["date_in_tag"], entry["wrapper_version"])
        assert (read.repo, read.tag, read.digest) == (entry["repo"], entry["tag"], entry["digest"]), entry["image"]
        assert (read.engine, read.wrapper) == (entry["engine"], entry["wrapper"]), entry["image"]
        assert (read.version, read.commit, read.date, read.wrapper_version) == held, entry["image"]
        assert (read.source == "unknown") == (held == (None,) * 4), entry["image"]
        assert read.image == entry["image"] and "#" not in read.ref


@pytest.mark.parametrize(
    ("kind", "count", "confidences"),
    [
        ("V ", 81, {"high"}),
        ("VD ", 20, {"low"}),
        ("C40 ", 3, {"high"}),
        ("C7 ", 13, {"medium"}),
        ("W ", 9, {"none"}),
        ("D ", 2, {"none"}),
        ("N ", 13, {"none"}),
    ],
)
def test_confidence_follows_from_what_a_tag_is(
    images: list[dict[str, Any]], kind: str, count: int, confidences: set[str]
) -> None:
    """A dated build is not the release that its tag names; a short commit can be another one."""
    entries = [entry for entry in images if entry["class"].startswith(kind)]
    assert len(entries) == count
    assert {parse(entry["image"]).confidence for entry in entries} == confidences


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


@pytest.mark.parametrize(
    "repo", ["ghcr.io/llm-d/llm-d-inference-sim", "ghcr.io/llm-d/llm-d-inference-scheduler", "lmsysorg/sglang-router"]
)
def test_a_neighbour_of_an_engine_is_no_engine(repo: str) -> None:
    assert parse(f"{repo}:v0.5.0").engine is None


@pytest.mark.parametrize(("repo", "engine"), [("ghcr.io/llm-d/llm-d-cuda-dev", "vllm"), ("lmsysorg/sglang-rocm", "sglang")])
def test_where_an_image_runs_may_stand_in_its_name(repo: str, engine: str) -> None:
    assert parse(f"{repo}:v0.5.0").engine == engine


def test_a_commit_of_noughts_is_none() -> None:
    assert parse(f"vllm/vllm-openai:nightly-{'0' * 40}").commit is None


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
        ("lmsysorg/sglang:v0.5.7-rocm720-mi35x-20260101", "0.5.7"),
        ("lmsysorg/sglang:v0.5.7-rocm720-mi35x-20261345", None),
        ("rocm/vllm-dev:vllm-0.23.1-rocm723-mi35x-mori-0625", "0.23.1"),
        ("quay.io/somebody/llm-d-nokube-vllm:vllm0.26", "0.26"),
        ("ghcr.io/tile-ai/tilert:0.1.5", "0.1.5"),
        ("nvcr.io/nvidia/vllm:25.09-py3", None),
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


@pytest.mark.parametrize(
    ("image", "commit", "date", "time", "suffixes"),
    [
        ("vllm/vllm-openai:nightly-dev-x86_64-cu13.0.1-426e59f", "426e59f", None, None, ("nightly", "dev", "x86_64", "cu13.0.1")),
        ("vllm/vllm-openai:vllm-x86_64-cu13-0.25.1-7a33ba9", "7a33ba9", None, None, ("vllm", "x86_64", "cu13")),
        ("lmsysorg/sglang:nightly-dev-cu13-20260818-c0b6474b", "c0b6474b", "20260818", None, ("nightly", "dev", "cu13")),
        ("lmsysorg/sglang:nightly-dev-20260818-20260818", None, None, None, ()),
        ("lmsysorg/sglang:dev-nightly-0820", None, None, None, ()),
        ("rocm/atom-dev:nightly_202605130853", None, "20260513", "0853", ("nightly",)),
        ("rocm/atom-dev:nightly_202605132553", None, None, None, ()),
        ("rocm/atom-dev:nightly_202602300853", None, None, None, ()),
        ("rocm/vllm-dev:nightly_main_20250911", None, "20250911", None, ("nightly", "main")),
        (f"public.ecr.aws/q9t5s3a7/vllm-ci-postmerge-repo:{'ab' * 20}", "ab" * 20, None, None, ()),
    ],
)
def test_commits_and_days_by_hand(
    image: str, commit: str | None, date: str | None, time: str | None, suffixes: tuple[str, ...]
) -> None:
    read = parse(image)
    assert (read.commit, read.date, read.time, read.suffixes) == (commit, date, time, suffixes)


@pytest.mark.parametrize(
    ("image", "version", "commit", "date"),
    [
        # Real ones, configured before or after the table was made.
        ("rocm/atom-dev:MiniMax-M3-20260619", None, None, "20260619"),
        ("rocm/atom:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom0.1.4_202607091539", "0.1.4", None, "20260709"),
        ("rocm/atom:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0_atomesh_202607121715", None, None, "20260712"),
        ("rocm/atom-dev:ubuntu24.04_py3.12_pytorch_release_2.10.0_kimi_k3_agentic_0820", None, None, None),
        ("rocm/7.0-preview:rocm7.0_preview_ubuntu_22.04_sgl-dev-v0.5.2rc2-mi30x_rc1", "0.5.2rc2", None, None),
        ("rocm/7.0-preview:rocm7.0_preview_ubuntu_22.04_vllm_0.9.1_mi35x_alpha", "0.9.1", None, None),
        ("rocm/7.0:rocm7.0_ubuntu_22.04_vllm_0.10.1_instinct_20250915", "0.10.1", None, "20250915"),
        ("rocm/vllm-dev:nightly_official_0729_rc1_20250718", None, None, "20250718"),
        ("rocm/vllm-dev:open-mi300-08052025", None, None, None),
        ("vllm/vllm-openai:dsv4-megamoe-mxfp4-arm64-cu130-4ba0a72", None, "4ba0a72", None),
        ("vllm/vllm-openai:minimax-m3-0618-x86_64-cu130", None, None, None),
        ("lmsysorg/sglang-rocm:v0.5.17-rocm720-mi35x-20260818", "0.5.17", None, "20260818"),
        # What could be a date is no commit, and what could not is no date.
        ("vllm/vllm-openai:nightly-20260818", None, None, "20260818"),
        ("vllm/vllm-openai:20260818", None, None, "20260818"),
        ("lmsysorg/sglang:nightly-202605130853", None, None, "20260513"),
        ("lmsysorg/sglang:nightly-dev-20261345", None, None, None),
        ("lmsysorg/sglang:nightly-dev-20260230-abcdef1", None, "abcdef1", None),
        ("vllm/vllm-openai:20261345", None, None, None),
        ("vllm/vllm-openai:426e59f", None, "426e59f", None),
        ("vllm/vllm-openai:1234567", None, None, None),
        (f"vllm/vllm-openai:cu130-nightly-{'ab' * 20}", None, "ab" * 20, None),
    ],
)
def test_schemes_that_the_table_does_not_have(image: str, version: str | None, commit: str | None, date: str | None) -> None:
    read = parse(image)
    assert (read.version, read.commit, read.date) == (version, commit, date), read.source


@given(st.text(max_size=200) | st.from_regex(r"([a-z]+://){0,2}(docker\.io[/#]){0,2}(library/)?[a-z]{1,5}(#[a-z]{1,3}){0,2}"))
def test_to_normalise_again_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


TAGS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,40}", fullmatch=True)


@given(st.sampled_from(["nvcr.io/nvidia/tensorrt-llm/release", "ghcr.io/a/b", "quay.io/x"]), TAGS, st.booleans())
def test_a_reference_and_its_enroot_spelling_are_one_build_and_keep_their_digest(repo: str, tag: str, pinned: bool) -> None:
    reference = f"{repo}:{tag}" + (f"@{DIGEST}" if pinned else "")
    read = parse(reference)
    for spelling in (reference.replace("/", "#", 1), f"docker://{reference}", f"dockerd://{reference.replace('/', '#', 1)}"):
        assert parse(spelling).build_id == read.build_id
        assert parse(spelling).digest == (DIGEST if pinned else None)


@given(TAGS, st.sampled_from(["vllm/vllm-openai", "lmsysorg/sglang", "rocm/sgl-dev", "rocm/atom-dev", "rocm/vllm-dev"]))
def test_whatever_is_read_stands_in_the_tag(tag: str, repo: str) -> None:
    read = parse(f"{repo}:{tag}")
    for held in (read.version, read.commit, read.date, read.time, *read.suffixes):
        assert held is None or held in tag
    assert (read.source == "unknown") <= (read.confidence == "none" and not read.suffixes)
    if read.date:
        assert datetime.strptime(read.date, "%Y%m%d").year >= 2000


@pytest.mark.parametrize(
    ("tag", "version", "suffixes"),
    [("1.3.0-dev.1-cuda13", "1.3.0-dev.1", ("cuda13",)), ("1.3.0-deepseek-v4-dev.1", "1.3.0-deepseek-v4-dev.1", ())],
)
def test_a_wrapper_has_a_version_of_its_own(tag: str, version: str, suffixes: tuple[str, ...]) -> None:
    read = parse(f"nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime:{tag}")
    assert (read.engine, read.version, read.wrapper_version, read.suffixes) == ("trtllm", None, version, suffixes)


def test_a_registry_of_somebodys_own_is_believed_less() -> None:
    read = parse("registry.corp.example:5000/hub/vllm/vllm-openai:v0.13.0")
    assert (read.engine, read.version, read.confidence) == ("vllm", "0.13.0", "medium")
    assert "somebody's own" in read.source


@given(st.sampled_from(["docker.io", "index.docker.io", "registry-1.docker.io", "mirror.gcr.io", "docker.io/docker.io"]))
def test_what_passes_the_hub_on_is_the_hub(host: str) -> None:
    assert parse(f"{host}/vllm/vllm-openai:v1").ref == "vllm/vllm-openai:v1"
    assert parse(f"{host}/library/ubuntu").ref == "ubuntu"
    assert parse(f"dockerd://{host}#vllm/vllm-openai:v1@{DIGEST}").build_id == f"digest:{DIGEST}"


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
