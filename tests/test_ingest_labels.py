"""Labels: accelerators and what names of files tell."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.tools.labels import accelerator, told_by_names

KEYS = ("tp", "pp", "ep", "dp_attention", "isl", "osl", "concurrency", "engine", "hardware", "precision", "workload")


@pytest.mark.parametrize(
    ("label", "count", "name"),
    [
        ("4xNVIDIA_L40S", 4, "l40s"),
        ("8 x NVIDIA H100 80GB HBM3", 8, "h100"),
        ("NVIDIA H100 80GB HBM3", None, "h100"),
        ("NVIDIA A100-SXM4-80GB", None, "a100"),
        ("AMD Instinct MI300X", None, "mi300x"),
        ("MI300X x 8", 8, "mi300x"),
        ("b200-trt", None, "b200"),
        ("linux.aws.h100.8", None, "h100"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", None, "rtxpro6000"),
        ("H100", None, "h100"),
    ],
)
def test_accelerators(label: str, count: int | None, name: str) -> None:
    assert accelerator(label) == (count, name)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("glm5_fp8_vllm_tp8_isl8192_osl128_conc32.json", "engine=vllm precision=fp8 tp=8 isl=8192 osl=128 concurrency=32"),
        ("minimax_m25_vllm_tep8_isl10240_osl128_conc16.json", "engine=vllm tp=8 ep=8 isl=10240 osl=128 concurrency=16"),
        ("dep4_1k8k.json", "tp=4 ep=4 dp_attention=true isl=1024 osl=8192"),
        ("h100/sglang/run-tp_2.json", "hardware=h100 engine=sglang tp=2"),
        ("vllm-vs-sglang/x.json", ""),
        ("b200/kv_fp8_pp2.json", "hardware=b200 pp=2"),
        ("tp4/tp8_x.json", "tp=8"),
        ("step8_stp4_tp0.json", ""),
    ],
)
def test_names(path: str, told: str) -> None:
    assert told_by_names(PurePosixPath(path), KEYS) == dict(pair.split("=") for pair in told.split())


@given(st.text(max_size=300))
def test_any_label_gives_something(label: str) -> None:
    count, _name = accelerator(label)
    assert count is None or 0 <= count < 10**6
    assert told_by_names(PurePosixPath(label.replace("\0", "")), KEYS).keys() <= set(KEYS)
