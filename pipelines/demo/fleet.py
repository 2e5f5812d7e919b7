"""The stacks of the sample fleet: which engine serves which models on which GPU, and how fast it is on the first day.

Belongs here: data that holds for all sixty days. Does not: what changes on a day (`timeline`), the model of a point
(`physics`). The speeds are invented; they only have the order of magnitude of public records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SHORT, PREFILL, DECODE = (1024, 1024), (8192, 1024), (1024, 8192)
"""Shapes of the workload: (input tokens, output tokens)."""

CONCURRENCIES = (4, 8, 16, 32, 64, 128)
"""Client concurrencies of every sweep."""

MODEL_SOURCES = {
    ("dsr1", "fp8"): "deepseek-ai/DeepSeek-R1-0528",
    ("dsr1", "fp4"): "nvidia/DeepSeek-R1-0528-FP4-V2",
    ("gptoss", "fp4"): "openai/gpt-oss-120b",
}
"""Hub id by (model prefix, precision), as records spell it."""

AMD_FP4_SOURCE = "amd/DeepSeek-R1-0528-MXFP4-Preview"


@dataclass(frozen=True)
class Setup:
    """One model on one stack: ranks, and the speed of the first day.

    `tpot_s` is the time per output token of a lone request, s; it grows as 1 + (concurrency / saturation)^0.8.
    `ttft_s` is the time to first token per 1,024 input tokens of a lone request, s.
    """

    model: str
    precision: str
    tp: int
    tpot_s: float
    saturation: float
    ttft_s: float
    shapes: tuple[tuple[int, int], ...] = (SHORT, PREFILL, DECODE)
    ep: int = 1


@dataclass(frozen=True)
class Stack:
    """One engine on one kind of GPU; `noise` scales every random part: stacks differ in how quiet they are."""

    engine: str
    framework: str
    hardware: str
    label: str
    noise: float
    setups: tuple[Setup, ...]


@dataclass(frozen=True)
class Curve:
    """One setup of a stack at one shape; its points differ only in concurrency."""

    stack: Stack
    setup: Setup
    isl: int
    osl: int

    @property
    def model_source(self) -> str:
        """Hub id of the checkpoint."""
        if self.stack.hardware.startswith("mi") and self.setup.precision == "fp4" and self.setup.model == "dsr1":
            return AMD_FP4_SOURCE
        return MODEL_SOURCES[self.setup.model, self.setup.precision]


FLEET: tuple[Stack, ...] = (
    Stack("vllm", "vllm", "h100", "h100", 0.6, (Setup("gptoss", "fp4", 4, 0.0036, 36, 0.027),)),
    Stack("vllm", "vllm", "b200", "b200", 0.8, (Setup("gptoss", "fp4", 4, 0.0029, 62, 0.017),)),
    Stack("vllm", "vllm", "mi300x", "mi300x-amd_1", 1.0, (Setup("gptoss", "fp4", 8, 0.0052, 34, 0.046),)),
    Stack(
        "vllm",
        "vllm",
        "mi355x",
        "mi355x-amd_0",
        0.9,
        (
            Setup("dsr1", "fp8", 8, 0.0132, 52, 0.085, (SHORT, PREFILL)),
            Setup("gptoss", "fp4", 8, 0.0044, 48, 0.034, (SHORT, DECODE)),
        ),
    ),
    Stack("sglang", "sglang", "h100", "h100", 0.7, (Setup("dsr1", "fp4", 8, 0.0114, 30, 0.120),)),
    Stack(
        "sglang",
        "sglang",
        "b200",
        "b200",
        1.5,
        (
            Setup("dsr1", "fp4", 4, 0.0083, 40, 0.060, ep=4),
            Setup("dsr1", "fp8", 8, 0.0086, 38, 0.070, (SHORT, PREFILL)),
        ),
    ),
    Stack("sglang", "sglang", "mi300x", "mi300x-amd_0", 1.0, (Setup("dsr1", "fp8", 8, 0.0246, 60, 0.150),)),
    Stack("sglang", "sglang", "mi355x", "mi355x-amd_1", 0.6, (Setup("dsr1", "fp4", 8, 0.0098, 55, 0.080),)),
    Stack("trtllm", "trt", "h100", "h100-trt", 0.8, (Setup("gptoss", "fp4", 4, 0.0032, 44, 0.030),)),
    Stack(
        "trtllm",
        "trt",
        "b200",
        "b200-trt",
        1.0,
        (
            Setup("dsr1", "fp4", 4, 0.0066, 46, 0.052),
            Setup("gptoss", "fp4", 4, 0.0025, 70, 0.019),
        ),
    ),
)
"""Ten stacks with thirty-six curves."""


def curves(stack: Stack) -> Iterator[Curve]:
    """Yield the curves of *stack* in a fixed order."""
    for setup in stack.setups:
        for isl, osl in setup.shapes:
            yield Curve(stack, setup, isl, osl)
