"""Names: what labels, paths and spellings reduce to, and what becomes of names that nobody told us."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse import vocabulary
from warehouse.vocabulary import Name

KINDS = ("hardware", "engine", "framework", "model", "precision")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("b200-trt", "b200"),
        ("mi355x-amd_0", "mi355x"),
        ("cluster:b300-nv", "b300"),
        ("h200-dgxc", "h200"),
        ("H100", "h100"),
        (" gb200 ", "gb200"),
        ("gb200_3", "gb200"),
        ("a:b:mi300x", "mi300x"),
    ],
)
def test_runner_labels_reduce_to_accelerators(label: str, name: str) -> None:
    assert vocabulary.hardware(label) == Name(name, True)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("TPU v9-pod", "tpu-v9"),
        ("b2000-x", "b2000"),
        ("mi999x-amd_3", "mi999x"),
        ("", "unknown"),
        ("../../etc", "etc~74ccf3c5b4c1"),
        ("..", "~5ec1f7e700f3"),
        ("<b>h100</b>", "b-h100-b~2f543a4e16e4"),
        ("\ud800", "~91a681b99855"),
    ],
)
def test_unknown_hardware_is_kept_and_marked(label: str, name: str) -> None:
    """Behind the `~` stand twelve digits of `printf LABEL | sha256sum`, because the name lost more than case."""
    assert vocabulary.hardware(label) == Name(name, False)


@pytest.mark.parametrize(
    ("prefix", "source", "name"),
    [
        ("dsr1", None, "dsr1"),
        ("gptoss", "openai/gpt-oss-120b", "gptoss120b"),
        ("70b", "nvidia/Llama-3.3-70B-Instruct-FP4", "llama70b"),
        (None, "/mnt/lustre01/models/deepseek-r1-0528-fp4-v2", "dsr1"),
        (None, "amd/DeepSeek-R1-0528-MXFP4-Preview", "dsr1"),
        (None, "/models/DeepSeek-R1/", "dsr1"),
        (None, "openai/gpt-oss-120b", "gptoss120b"),
        (None, "zai-org/GLM-5.1-FP8", "glm5.1"),
        (None, "zai-org/GLM-5-FP8", "glm5"),
        (None, "moonshotai/Kimi-K2.7-Code", "kimik2.7-code"),
        ("", "deepseek_ai/DeepSeek_V4", "dsv4"),
    ],
)
def test_models_by_prefix_or_by_path(prefix: str | None, source: str | None, name: str) -> None:
    assert vocabulary.model(prefix, source) == Name(name, True)


@pytest.mark.parametrize(
    ("prefix", "source", "name"),
    [
        ("newmodel9", "openai/gpt-oss-120b", "newmodel9"),
        (None, "lab/Fresh_Model", "fresh-model"),
        (None, None, "unknown"),
        (None, "deepseek-r12", "deepseek-r12"),
    ],
)
def test_unknown_models_are_kept_and_marked(prefix: str | None, source: str | None, name: str) -> None:
    assert vocabulary.model(prefix, source) == Name(name, False)


@pytest.mark.parametrize(
    ("text", "framework", "engine"),
    [
        ("vllm", "vllm", "vllm"),
        ("TRT", "trt", "trtllm"),
        ("TensorRT LLM", "trt", "trtllm"),
        ("dynamo-trt", "dynamo-trt", "trtllm"),
        ("dynamo-sglang", "dynamo-sglang", "sglang"),
        ("sglang-disagg", "mori-sglang", "sglang"),
        ("atom-disagg", "mooncake-atom", "atom"),
    ],
)
def test_serving_stacks_and_the_engine_inside(text: str, framework: str, engine: str) -> None:
    assert vocabulary.framework(text) == Name(framework, True)
    assert vocabulary.engine_of_framework(framework) == engine


def test_an_unknown_stack_stands_for_itself() -> None:
    assert vocabulary.framework("Brand New") == Name("brand-new", False)
    assert vocabulary.engine_of_framework("brand-new") == "brand-new"


@pytest.mark.parametrize(
    ("text", "name"), [("NVFP4", "fp4"), ("mxfp4", "fp4"), ("FP8", "fp8"), ("bfloat16", "bf16"), ("w4a16", "int4")]
)
def test_precisions(text: str, name: str) -> None:
    assert vocabulary.precision(text) == Name(name, True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_alias_is_unique_within_its_kind(kind: str) -> None:
    spellings = Counter(
        alias for name in vocabulary.names(kind) for alias in {name, *vocabulary.entry(kind, name).get("aliases", ())}
    )
    assert spellings.total() >= len(vocabulary.names(kind)) > 3
    assert [alias for alias, times in spellings.items() if times > 1] == []
    assert [alias for alias in spellings if alias != alias.strip().lower()] == []


def test_checkpoint_names_belong_to_one_family() -> None:
    paths = Counter(path for name in vocabulary.names("model") for path in vocabulary.entry("model", name).get("paths", ()))
    assert paths
    assert max(paths.values()) == 1
    assert all(path == path.lower() and "_" not in path for path in paths)


def test_every_stack_names_a_known_engine() -> None:
    assert {vocabulary.engine_of_framework(name) for name in vocabulary.names("framework")} <= set(vocabulary.names("engine"))


@given(st.text(max_size=200))
def test_any_text_gives_a_short_harmless_name(text: str) -> None:
    for name in (vocabulary.hardware(text), vocabulary.framework(text), vocabulary.precision(text), vocabulary.model(text)):
        assert 0 < len(name.value) <= vocabulary.MAX_NAME
        assert set(name.value) <= set("abcdefghijklmnopqrstuvwxyz0123456789._:+-~")
        assert not name.value.startswith((".", "-"))


@given(st.text(max_size=100))
def test_what_is_marked_unknown_is_not_a_known_name(text: str) -> None:
    name = vocabulary.framework(text)
    assert name.known == (name.value in vocabulary.names("framework"))
