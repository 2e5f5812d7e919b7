"""Names of MLPerf systems: software, accelerators, processors, counts, folders; descriptions are refused with what they hold."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.declarations import KEYS
from pipelines.ingest.json_text import LeftOut
from pipelines.ingest.tools import mlperf, mlperf_systems
from pipelines.ingest.tools.mlperf_systems import Software, accelerator, folder_hints, gpus, left_out, plain_name, software
from warehouse import vocabulary


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "vLLM 0.9.0.2.dev108+g71faa1880.d20250717.rocm641, Pytorch 2.7.0+gitf717b2a, ROCm 6.4.1",
            Software("vllm", "0.9.0.2.dev108+g71faa1880.d20250717.rocm641", "71faa1880"),
        ),
        ("vLLM 0.6.5.dev964+mlperf50, Pytorch 2.7.0a0+git3a58512", Software("vllm", "0.6.5.dev964+mlperf50")),
        ("vLLM v0.9.2", Software("vllm", "0.9.2")),
        ("vllm", Software("vllm")),
        ("SGLang v0.4.9", Software("sglang", "0.4.9")),
        ("TensorRT 9.3.0, CUDA 12.2", Software("tensorrt", "9.3.0")),
        ("TensorRT-LLM 0.12.0, CUDA 12.4", Software("trtllm", "0.12.0")),
        ("Jetpack 6.0, TensorRT 10.1, CUDA 12.2", Software("tensorrt", "10.1")),
        ("ToDo: TensorRT 10.8, CUDA 12.8", Software("tensorrt", "10.8")),
        ("Nvidia inference implementation with CM API, TensorRT v8.6.1.6", Software("tensorrt", "8.6.1.6")),
        ("KRAI Inference Library Technology (KILT) with TensorRT support", Software("kilt")),
        ("PyTorch", Software("pytorch")),
        ("PyTorch 2.8.0a0+git74091a9, aiter 0.1.4", Software("pytorch", "2.8.0a0+git74091a9", "74091a9")),
        ("PyTorch: Retinanet: 1.12.0a0, Whisper: 2.7.0+cpu", Software("pytorch")),
        ("OpenVINO", Software("openvino")),
        ("tflite vmaster", Software("tflite")),
        ("QUALCOMM Cloud AI SDK v1.12.2 / v1.14.2 (SDXL)", Software("qualcomm-cloud-ai-sdk", "1.12.2")),
        ("shark-ai 3.3.0", Software("shark-ai", "3.3.0")),
        ("hipblaslt-8b71e7a, flash-attn-23a2b1c, vllm-a8cff57", Software("vllm", None, "a8cff57", "hipblaslt-8b71e7a")),
        (
            "Mango LLMBoost AI Enterprise Platform, vllm-0.9.0.2.dev108+g71faa1880.d20250717.rocm641",
            Software("vllm", "0.9.0.2.dev108+g71faa1880.d20250717.rocm641", "71faa1880", "mango-llmboost-ai-enterprise-platform"),
        ),
    ],
)
def test_software_strings(text: str, found: Software) -> None:
    assert software(text) == found


def test_an_empty_software_string_names_nothing() -> None:
    assert software("") is software("N/A") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA H100-SXM-80GB", "h100"),
        ("Virtualized NVIDIA H100-SXM-80GB", "h100"),
        ("NVIDIA H100-PCIe-80GB", "h100pcie"),
        ("NVIDIA H100 NVL", "h100nvl"),
        ("NVIDIA H200-SXM-141GB-CTS", "h200"),
        ("NVIDIA GH200-GraceHopper-Superchip", "gh200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4-PCIe-24GB", "l4"),
        ("NVIDIA A100-PCIE-80GB", "a100pcie"),
        ("AMD Instinct MI300X-NPS1-SPX-192GB-750W", "mi300x"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx6000pro"),
        ("NVIDIA GB300", "gb300"),
    ],
)
def test_accelerators_of_the_vocabulary(text: str, name: str) -> None:
    assert accelerator(text) == name
    assert vocabulary.hardware(name) == vocabulary.Name(name, True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AMD Instinct MI300X 192GB HBM3 (x32), AMD Instinct MI325X 256GB HBM3e (x16)", "mi300x+mi325x"),
        ("NVIDIA A100-SXM-80GB (1x1g.10gb MIG)", "a100mig"),
        ("NVIDIA A100-PCIe-80GB (1x1g.10gb MIG)", "a100mig"),
        ("Intel® Gaudi® 2 AI Accelerator", "gaudi2"),
        ("RBLN ATOM", "rbln-atom"),
    ],
)
def test_other_accelerators_are_kept_apart(text: str, name: str) -> None:
    assert vocabulary.hardware(accelerator(text) or "").value == name


@pytest.mark.parametrize("text", ["", "N/A", "-", "None", "n/a"])
def test_no_accelerator(text: str) -> None:
    assert accelerator(text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+", "intel xeon platinum 8480+"),
        ("Intel(R) Xeon(R) Gold 6240R CPU @ 2.40GHz", "intel xeon gold 6240r"),
        ("2xAMD EPYC 9374F", "amd epyc 9374f"),
        ("AMD EPYC 9654 96-Core Processor", "amd epyc 9654"),
    ],
)
def test_processors(text: str, name: str) -> None:
    assert plain_name(text) == name


@pytest.mark.parametrize(
    ("name", "per_node", "nodes", "total"),
    [
        ("h100", 8, 1, 8),
        ("gb300", 4, 18, 72),
        ("h100", "8", "2", 16),
        ("h100", 8.0, 1, 8),
        ("h100", "", 1, None),
        ("h100", "N/A", 1, None),
        ("h100", 0, 1, None),
        (None, 8, 1, None),
        ("h100", 8, None, 8),
        ("h100", True, 1, None),
        ("h100", "(8,4)", 3, None),
        ("h100", 2.5, 1, None),
        ("h100", 1_000_000, 1_000_000, None),
    ],
)
def test_accelerators_are_counted_per_node(name: str | None, per_node: Any, nodes: Any, total: int | None) -> None:
    assert gpus(name, per_node, nodes) == total


def test_folders_of_a_submission_tell_model_system_and_accelerators() -> None:
    path = "closed/NVIDIA/results/DGX-H100_H100-SXM-80GBx8_TRT/llama2-70b-99.9/Server/performance/run_1/mlperf_log_summary.txt"
    assert folder_hints(PurePosixPath(path)) == {
        "model": "llama2-70b",
        "workload": "llama2-70b-99.9",
        "recipe": "closed/NVIDIA/DGX-H100_H100-SXM-80GBx8_TRT",
        "hardware": "h100",
        "num_gpus": "8",
    }


@pytest.mark.parametrize(
    ("path", "workload"),
    [
        ("open/X/results/S_H100x8/gptj-99/Offline/performance/run_1/l.txt", "gptj-99 open"),
        ("closed/X/results/S_H100x8/gptj-99/interactive/performance/run_1/l.txt", "gptj-99 interactive"),
        ("closed/X/compliance/S_H100x8/resnet50/Offline/TEST01/performance/run_1/l.txt", "resnet test01"),
        ("closed/X/results/S_H100x8/gptj-99/Offline/performance/ranging/l.txt", "gptj-99 ranging"),
    ],
)
def test_folders_that_make_another_workload(path: str, workload: str) -> None:
    assert folder_hints(PurePosixPath(path))["workload"] == workload


@pytest.mark.parametrize(
    ("system", "hardware", "number"),
    [
        ("1xMI300X_2xEPYC-9374F", "mi300x", "1"),
        ("8xMI300X_2xEPYC_9575F", "mi300x", "8"),
        ("GB200-NVL72_GB200-186GB_aarch64x4x18", "gb200", None),
        ("ND_GB200_v6", "gb200", None),
        ("1-node-2S-GNR-PyTorch", None, None),
    ],
)
def test_numbers_in_the_name_of_a_system(system: str, hardware: str | None, number: str | None) -> None:
    found = folder_hints(PurePosixPath(f"closed/X/results/{system}/gptj-99/Offline/performance/run_1/l.txt"))
    assert (found.get("hardware"), found.get("num_gpus")) == (hardware, number)
    assert found.keys() <= KEYS.keys()


@pytest.mark.parametrize("path", ["l.txt", "results/l.txt", "results/a/b/c/l.txt", "a/results/s/m/Nowhere/performance/l.txt"])
def test_other_folders_tell_nothing(path: str) -> None:
    assert folder_hints(PurePosixPath(path)) == {}


SYSTEM = {
    "accelerator_model_name": "AMD Instinct MI300X-NPS1-SPX-192GB-750W",
    "accelerators_per_node": 8,
    "division": "closed",
    "framework": "vLLM 0.4.3+rocm614, PyTorch 2.3.0, ROCm 6.1.2",
    "host_processor_model_name": "AMD EPYC 9374F",
    "number_of_nodes": 1,
    "other_software_stack": "hipblaslt-8b71e7a, flash-attn-23a2b1c, vllm-a8cff57",
    "status": "available",
    "submitter": "Lab",
    "system_name": "Box",
}


def test_a_description_is_left_out_with_what_can_be_declared_from_it() -> None:
    assert not mlperf.FORMAT.recognises(SYSTEM) and not mlperf.SUMMARY_FORMAT.recognises(SYSTEM)
    assert mlperf_systems.declarable(SYSTEM) == {
        "engine": "vllm",
        "engine_version": "0.4.3+rocm614",
        "engine_commit": "a8cff57",
        "hardware": "mi300x",
        "num_gpus": "8",
    }
    (found,) = mlperf.FORMAT.unpack(SYSTEM) or ()
    assert isinstance(found, LeftOut)
    assert "no measurement" in found.reason and "engine='vllm'" in found.reason and "num_gpus='8'" in found.reason
    assert mlperf.FORMAT.unpack({"system_name": "Box"}) is None


junk = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=2))


@given(st.dictionaries(st.sampled_from(sorted(SYSTEM)), junk))
def test_any_description_is_left_out_and_nothing_else_happens(changes: dict[str, Any]) -> None:
    assert [type(found) for found in left_out({**SYSTEM, **changes}) or ()] == [LeftOut]
