"""Pinned dependencies: files of several generations in a real repository, hostile files, what moved between two builds."""

import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.git import read_repository
from changelog.pin_files import PinFile, pin_files, read_pins
from changelog.pin_names import dependencies
from changelog.pins import read_pinned
from changelog.projects import project
from tests.pinning import PYPROJECT, ROCM, Engine
from tests.repositories import Repository
from warehouse.errors import UpstreamError
from warehouse.events import DependencyPinned

KINDS = ("requirements", "pyproject", "dockerfile", "cmake", "script")


def pins(kind: str, text: str, platform: str | None = None, extras: dict[str, str] | None = None) -> dict[str, str]:
    read = read_pins(PinFile("x", kind, platform, extras or {}), text)
    return {f"{name}/{where}" if where else name: version for (name, where), version in read.items()}


def test_requirement_files_pin_exactly_or_not_at_all() -> None:
    text = """
-r common.txt
--extra-index-url https://me:hidden@example.invalid/whl/
torch==2.9.0  # a comment
flashinfer-python==0.6.16.post3
triton>=3.5
xformers==0.0.33.post1; platform_system == 'Linux' and platform_machine == 'x86_64'
nvidia-cutlass-dsl[cu13]==4.6.2
amd-quark == 0.12.post1
tilelang==0.1.*
something-else==1.0
https://example.invalid/torch-9.9.9.whl
"""
    assert pins("requirements", text) == {
        "torch": "2.9.0",
        "flashinfer": "0.6.16.post3",
        "xformers": "0.0.33.post1",
        "cutlass": "4.6.2",
        "quark": "0.12.post1",
    }


def test_a_pyproject_pins_in_its_dependencies() -> None:
    assert pins("pyproject", PYPROJECT.format("0.5.3", "2.9.1", "0.3.18.post2"), "nvidia") == {
        "flashinfer/nvidia": "0.5.3",
        "torch/nvidia": "2.9.1",
        "sgl-kernel/nvidia": "0.3.18.post2",
    }
    assert pins("pyproject", "not [ toml") == {} and pins("pyproject", "[project]\ndependencies = 3\n") == {}


def test_optional_dependencies_count_where_they_are_named() -> None:
    """SGLang until October 2025 and Dynamo to this day pin in extras; extras of tests and of other vendors do not count."""
    text = """[project]
name = "sglang"
dependencies = ["requests"]
[project.optional-dependencies]
runtime_common = ["transformers==4.56.1"]
srt = ["sglang[runtime_common]", "sgl-kernel==0.3.8", "torch==2.8.0", "flashinfer_python==0.3.1"]
srt_mps = ["torch==9.9.9"]
"""
    assert pins("pyproject", text, "nvidia", {"runtime_common": "", "srt": "nvidia"}) == {
        "transformers": "4.56.1",
        "sgl-kernel/nvidia": "0.3.8",
        "torch/nvidia": "2.8.0",
        "flashinfer/nvidia": "0.3.1",
    }
    assert pins("pyproject", text, "nvidia") == {}
    broken = '[project]\noptional-dependencies = 1\ndependencies = [1, "torch==2.8.0"]\n'
    assert pins("pyproject", broken, None, {"srt": ""}) == {"torch": "2.8.0"}


def test_each_stage_has_its_own_base_image_and_uses_what_is_switched_on() -> None:
    """As SGLang's ROCm Dockerfile is built: Triton's pin is used by the stage that builds it, and by no other."""
    text = """ARG BASE_950="x"
ARG BASE_IMAGE_950="rocm/sgl-dev:rocm7-vllm-20250904"
ARG BASE_IMAGE_950_ROCM720="rocm/pytorch:rocm7.2_ubuntu22.04_py3.10_pytorch_release_2.9.1"
ARG GPU_ARCH=gfx950
FROM $BASE_IMAGE_950 AS gfx950
ENV BUILD_TRITON="0"
FROM $BASE_IMAGE_950_ROCM720 AS gfx950-rocm720
ENV BUILD_TRITON="1"
FROM ${GPU_ARCH}
ARG TRITON_COMMIT="4227045"
"""
    assert pins("dockerfile", text, "amd") == {
        "rocm/gfx950": "7",
        "base-image/gfx950": "rocm/sgl-dev:rocm7-vllm-20250904",
        "rocm/gfx950-rocm720": "7.2",
        "base-image/gfx950-rocm720": "rocm/pytorch:rocm7.2_ubuntu22.04_py3.10_pytorch_release_2.9.1",
        "triton/gfx950-rocm720": "4227045",
    }
    everywhere = text.replace('BUILD_TRITON="0"', 'BUILD_TRITON="1"')
    assert pins("dockerfile", everywhere, "amd")["triton/amd"] == "4227045"
    nvidia = "ARG BASE_IMAGE=nvcr.io/nvidia/pytorch\nARG BASE_TAG=25.10-py3\nFROM ${BASE_IMAGE}:${BASE_TAG} AS base\n"
    assert pins("dockerfile", nvidia, "nvidia") == {"base-image/nvidia": "25.10-py3"}


def test_what_run_lines_install_counts_where_they_agree() -> None:
    agreed = """FROM x
RUN pip install nvidia-nccl-cu12==2.28.3 --force-reinstall && \\
    pip install "mooncake-transfer-engine==0.3.7.post2" torch==2.8.0.dev1
RUN if true; then pip install nvidia-nccl-cu13==2.28.3; fi
# RUN pip install nvidia-nccl-cu13==9.9.9
"""
    assert pins("dockerfile", agreed, "nvidia") == {"nccl/nvidia": "2.28.3", "mooncake/nvidia": "0.3.7.post2"}
    assert pins("dockerfile", agreed.replace("cu13==2.28.3", "cu13==2.29.1"), "nvidia") == {"mooncake/nvidia": "0.3.7.post2"}
    assert pins("dockerfile", "ARG NCCL_VERSION=2.30.7\nRUN pip install nvidia-nccl-cu13==2.28.3\n") == {"nccl": "2.30.7"}


@pytest.mark.parametrize(
    "value",
    ["HEAD", "main", "latest", "https://me:hidden@example.invalid/x", "https://example.invalid/x", "git@example.invalid:x", "$X"],
)
def test_what_moves_by_itself_and_urls_pin_nothing(value: str) -> None:
    """A branch's name says nothing of what was built, and a URL may hold a password."""
    assert pins("dockerfile", f'ARG AITER_COMMIT="{value}"\nENV MORI_COMMIT={value}\n') == {}
    assert pins("script", f"DEEPGEMM_GIT_REF={value}\n") == {}
    assert pins("cmake", f"FetchContent_Declare(flashmla GIT_TAG {value})\n") == {}
    assert pins("requirements", f"torch==={value}\ntorch @ {value}\n") == {}


def test_a_dockerfile_pins_by_argument_and_by_stage() -> None:
    assert pins("dockerfile", ROCM.format("v0.1.4", "v0.1.7.post2", "abc1234"), "amd") == {
        "aiter/gfx942": "v0.1.4",
        "aiter/gfx950": "v0.1.7.post2",
        "mori/amd": "abc1234",
    }
    text = """ARG BASE_IMAGE=rocm/dev-ubuntu-22.04:7.2.3-complete
ARG CUDA_VERSION=13.0.3
ARG CUDA_VERSION
ARG FINAL=nvidia/cuda:${CUDA_VERSION}-base
FROM ${BASE_IMAGE} AS base
ARG TRITON_BRANCH="532137f" # release/internal
ARG AITER_COMMIT=""
ENV AITER_COMMIT="${AITER_COMMIT:-x}"
ARG AITER_BRANCH="v0.1.19"
"""
    assert pins("dockerfile", text) == {"rocm": "7.2.3", "cuda": "13.0.3", "triton": "532137f", "aiter": "v0.1.19"}


def test_cmake_names_with_hyphens_and_branches_for_rocm() -> None:
    """vLLM's flash attention is declared twice, first from a local folder; its Triton kernels differ by vendor."""
    flash = """FetchContent_Declare(
    vllm-flash-attn SOURCE_DIR
    ${VLLM_FLASH_ATTN_SRC_DIR}
)
FetchContent_Declare(
    vllm-flash-attn
    GIT_REPOSITORY https://example.invalid/flash-attention.git
    GIT_TAG 86f8f157
)
"""
    assert pins("cmake", flash, "nvidia") == {"flash-attn/nvidia": "86f8f157"}
    kernels = """if (VLLM_TARGET_DEVICE STREQUAL "rocm")
  set(TRITON_KERNELS_TAG "0f380657")
else()
  set(TRITON_KERNELS_TAG "v3.5.1")
endif()
"""
    after = 'set(_DEEPGEMM_UPSTREAM_TAG "891d57b4")\n'
    assert pins("cmake", kernels + after) == {
        "triton-kernels/amd": "0f380657",
        "triton-kernels/nvidia": "v3.5.1",
        "deepgemm": "891d57b4",
    }
    assert pins("cmake", 'if (X)\nelse()\nendif()\nset(TRITON_KERNELS_TAG "v3.6.0")\n') == {"triton-kernels": "v3.6.0"}


def test_cmake_and_scripts_pin_commits() -> None:
    declared = "FetchContent_Declare(\n  flashmla\n  GIT_REPOSITORY https://example.invalid/FlashMLA\n  GIT_TAG a8f794d1\n)\n"
    assert pins("cmake", declared) == {"flashmla": "a8f794d1"}
    assert pins("cmake", 'set(_DEEPGEMM_UPSTREAM_TAG "891d57b4")\n') == {"deepgemm": "891d57b4"}
    assert pins("script", 'DEEPGEMM_GIT_REF="8b1392b9"\n  DEEPGEMM_GIT_REF="$2"\nDEEPGEMM_GIT_REF=other\n') == {
        "deepgemm": "8b1392b9"
    }


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300), st.sampled_from(KINDS))
def test_any_text_can_be_read(text: str, kind: str) -> None:
    for line in (text, f"ARG AITER_COMMIT={text}", f"torch=={text}", f"FetchContent_Declare(flashmla GIT_TAG {text})"):
        for (name, _platform), version in read_pins(PinFile("x", kind, None), line).items():
            assert name and version and len(version) <= 100 and not set(version) & set("\n\r\t\x1b\0")


def test_hostile_files_are_read_in_no_time() -> None:
    for text in (
        "ARG " * 200_000,
        "FetchContent_Declare(" * 50_000,
        "torch==" + "1." * 300_000,
        "[" * 100_000,
        "FROM a AS gfx" * 90_000,
    ):
        for kind in KINDS:
            began = time.process_time()
            read_pins(PinFile("x", kind, None), text)
            assert time.process_time() - began < 2.0


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_main_and_releases_tell_what_they_pin(engine: Engine) -> None:
    rows = engine.tables()["dependencies"].filter(pl.col("project") == "sglang")
    at_release = rows.filter(pl.col("version") == "0.5.5")
    assert {(row["dependency"], row["platform"]): row["dependency_version"] for row in at_release.to_dicts()} == {
        ("aiter", "gfx942"): "v0.1.4",
        ("aiter", "gfx950"): "v0.1.13",
        ("mori", "amd"): "m1",
        ("flashinfer", "nvidia"): "0.5.2",
        ("torch", "nvidia"): "2.8.0",
        ("sgl-kernel", "nvidia"): "0.3.17",
    }
    moved = rows.filter(pl.col("version") == engine.bump).select("dependency", "platform", "dependency_version").rows()
    assert moved == [("aiter", "gfx950", "v0.1.14")]


def test_a_dropped_file_drops_its_pins(tmp_path: Path) -> None:
    engine = Repository(tmp_path / "sglang")
    engine.commit("start", **{"docker/rocm.Dockerfile": ROCM.format("a", "b", "c")})
    engine.run("rm", "-q", "docker/rocm.Dockerfile")
    gone = engine.commit("drop it", "README.md")
    facts = [
        fact.payload for fact in read_pinned(engine.folder, project("sglang"), {}) if isinstance(fact.payload, DependencyPinned)
    ]
    assert {(fact.dependency, fact.dependency_version) for fact in facts if fact.version == gone} == {
        ("aiter", "none"),
        ("mori", "none"),
    }


def test_a_mirror_without_contents_fetches_them_in_one_go(engine: Engine, tmp_path: Path) -> None:
    """A blobless mirror of a URL: what the pins need is fetched, and a second reading needs nothing."""
    engine.engine.run("config", "uploadpack.allowfilter", "true")
    engine.engine.run("config", "uploadpack.allowanysha1inwant", "true")
    url = f"file://{engine.engine.folder}"
    mirrors = tmp_path / "mirrors"
    list(read_repository(url, "sglang", mirrors))
    (mirror,) = [place for place in mirrors.iterdir() if place.is_dir() and place.name.endswith(".git")]
    own = list(read_pinned(mirror, project("sglang"), {"0.5.5": engine.first}, mirror=True))
    assert own == list(read_pinned(engine.engine.folder, project("sglang"), {"0.5.5": engine.first}))
    engine.engine.folder.rename(tmp_path / "away")
    assert list(read_pinned(mirror, project("sglang"), {"0.5.5": engine.first}, mirror=True)) == own


def test_a_mirror_without_contents_and_without_its_origin_says_so(engine: Engine, tmp_path: Path) -> None:
    engine.engine.run("config", "uploadpack.allowfilter", "true")
    mirrors = tmp_path / "mirrors"
    list(read_repository(f"file://{engine.engine.folder}", "sglang", mirrors))
    (mirror,) = [place for place in mirrors.iterdir() if place.is_dir() and place.name.endswith(".git")]
    engine.engine.folder.rename(tmp_path / "away")
    with pytest.raises(UpstreamError):
        list(read_pinned(mirror, project("sglang"), {}, mirror=True))


def test_nothing_is_fetched_into_a_clone_of_the_users(engine: Engine, tmp_path: Path) -> None:
    """Its configuration names the program that a fetch would run."""
    clone = engine.engine
    clone.run("config", "remote.origin.url", str(tmp_path / "nowhere"))
    clone.run("config", "remote.origin.promisor", "true")
    clone.run("config", "remote.origin.uploadpack", f"touch {tmp_path / 'ran'};")
    blob = clone.run("rev-parse", "HEAD:docker/rocm.Dockerfile").strip()
    (clone.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UpstreamError, match="clone it whole"):
        list(read_pinned(clone.folder, project("sglang"), {}))
    assert not (tmp_path / "ran").exists()
    with pytest.raises(UpstreamError):  # as it would in a mirror of our own, whose configuration is ours
        list(read_pinned(clone.folder, project("sglang"), {}, mirror=True))
    assert (tmp_path / "ran").exists()


def test_a_commit_with_an_impossible_date_ends_nothing(tmp_path: Path) -> None:
    engine = Repository(tmp_path / "sglang")
    engine.commit("start", **{"docker/rocm.Dockerfile": ROCM.format("a", "b", "c")})
    engine.at = "@1767225600 +9959"
    engine.commit("odd", **{"docker/rocm.Dockerfile": ROCM.format("a2", "b", "c")})
    engine.at = None
    last = engine.commit("last", **{"docker/rocm.Dockerfile": ROCM.format("a3", "b", "c")})
    facts = list(read_pinned(engine.folder, project("sglang"), {}))
    told = [fact.payload for fact in facts if isinstance(fact.payload, DependencyPinned)]
    assert {pin.dependency_version for pin in told if pin.dependency == "aiter"} >= {"a", "a2", "a3"}
    assert {fact.occurred_at is None for fact, pin in zip(facts, told, strict=True) if pin.version == last} == {False}


def test_every_project_that_pins_is_known() -> None:
    for name in ("vllm", "sglang", "trtllm", "atom", "dynamo"):
        assert pin_files(name) and project(name)
    assert pin_files("aiter") == ()
    for name, dependency in dependencies().items():
        assert dependency.name == name


def test_files_of_several_generations_are_one_dependency(tmp_path: Path) -> None:
    """SGLang's ROCm Dockerfile was renamed: what the old name pinned and the new one still pins did not move."""
    engine = Repository(tmp_path / "sglang")
    text = ROCM.format("v0.1.4", "v0.1.5", "m1")
    engine.commit("start", **{"docker/Dockerfile.rocm": text})
    engine.run("rm", "-q", "docker/Dockerfile.rocm")
    renamed = engine.commit("rename", **{"docker/rocm.Dockerfile": text})
    facts = list(read_pinned(engine.folder, project("sglang"), {"0.5.4": renamed}))
    own = [fact.payload for fact in facts if isinstance(fact.payload, DependencyPinned)]
    assert {(one.dependency, one.platform, one.dependency_version) for one in own if one.version == "0.5.4"} == {
        ("aiter", "gfx942", "v0.1.4"),
        ("aiter", "gfx950", "v0.1.5"),
        ("mori", "amd", "m1"),
    }
    assert {one.evidence for one in own if one.dependency_version == "none"} == {"docker/Dockerfile.rocm"}
    assert facts == list(read_pinned(engine.folder, project("sglang"), {"0.5.4": renamed}))


def test_hostile_files_in_a_repository_pin_nothing_and_stop_nothing(tmp_path: Path) -> None:
    """A huge file, a binary one, a link out of the tree, files that include each other, a folder with a file's name."""
    engine = Repository(tmp_path / "vllm")
    place = engine.folder
    for folder in ("requirements", "docker", "tools/install_deepgemm.sh"):
        (place / folder).mkdir(parents=True)
    (place / "requirements/common.txt").write_text("-r cuda.txt\n-r common.txt\ntorch==2.9.0\n")
    (place / "requirements/cuda.txt").write_text("-r common.txt\n" + "# x\n" * 600_000 + "flashinfer-python==0.5.3\n")
    (place / "requirements/rocm.txt").write_bytes(b"\x00\xff\xfe" * 20_000 + b"\ntorch==2.9.0\n")
    (place / "docker/Dockerfile.rocm_base").symlink_to("/etc/passwd")
    (place / "docker/Dockerfile").write_text('ARG CUDA_VERSION="https://me:hidden@example.invalid/"\n')
    (place / "tools/install_deepgemm.sh/x").write_text("x")
    commit = engine.commit("start")
    facts = list(read_pinned(place, project("vllm"), {"0.12.0": commit}))
    found = {(f.payload.evidence, f.payload.dependency) for f in facts if isinstance(f.payload, DependencyPinned)}
    assert found == {("requirements/common.txt", "torch"), ("requirements/rocm.txt", "torch")}
    assert "hidden" not in str(facts)


def test_a_wheel_that_is_installed_by_its_address_is_pinned() -> None:
    """As vLLM 0.8.5 and 0.9.0 install FlashInfer; what a comment tells of is not."""
    text = """FROM a AS base
# $ # upload it, e.g. https://wheels.example/flashinfer/flashinfer_python-0.2.1.post1+cu124-cp38-abi3-linux_x86_64.whl
RUN uv pip install https://d.example/cu128/flashinfer_python-0.2.5%2Bcu128torch2.7-cp38-abi3-linux_x86_64.whl; \\
RUN pip install https://example.org/somebody/else-9.9-py3-none-any.whl
"""
    assert read_pins(PinFile("docker/Dockerfile", "dockerfile", "nvidia"), text) == {("flashinfer", "nvidia"): "0.2.5"}


def test_what_images_for_one_cuda_alone_build_is_no_pin_of_all() -> None:
    text = "FROM a\nARG TRITON_LANG_COMMIT=4caa0328bf8df64896dd5f6fb9df41b0eb2e750a\n"
    assert read_pins(PinFile("docker/Dockerfile", "dockerfile", "nvidia"), text) == {}
