"""What happens in the sample's sixty days: images, recipes, planted shifts, and which stack runs on which day.

Belongs here: everything that depends on the day and is not noise. Does not: speeds of the first day (`fleet`).
Versions, tags and digests are invented, and higher than any that exist.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from numpy.random import Generator

from pipelines.demo.fleet import FLEET, PREFILL, Curve, Stack, curves
from pipelines.demo.planted import Direction, Kind, Planted, PlantedCurve

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 60

NVIDIA, AMD = ("h100", "b200"), ("mi300x", "mi355x")


def _digest(word: str) -> str:
    return hashlib.sha256(f"generated sample {word}".encode()).hexdigest()


_VLLM = "vllm/vllm-openai:v{}"
_VLLM_ROCM = "vllm/vllm-openai-rocm:v{}"
_SGLANG = "lmsysorg/sglang:v{}-cu129-amd64"
_SGLANG_ROCM = "lmsysorg/sglang:v{}-rocm700-mi35x"
_SGLANG_MOVING = "lmsysorg/sglang:dev-mi300x@sha256:{}"
_TRTLLM = "nvcr.io#nvidia/tensorrt-llm/release:{}"

_VLLM_VERSIONS = ((0, "0.90.0"), (12, "0.91.0"), (30, "0.92.0"))
_SGLANG_VERSIONS = ((0, "0.9.0"), (20, "0.9.1"), (44, "0.9.2"))
_TRTLLM_VERSIONS = ((0, "9.0.0rc1"), (26, "9.0.0rc2"))
_MOVING_DIGESTS = ((0, _digest("first build")), (36, _digest("second build")))

IMAGES: dict[tuple[str, str], tuple[str, tuple[tuple[int, str], ...]]] = {
    ("vllm", "h100"): (_VLLM, _VLLM_VERSIONS),
    ("vllm", "b200"): (_VLLM, _VLLM_VERSIONS),
    ("vllm", "mi300x"): (_VLLM_ROCM, _VLLM_VERSIONS),
    ("vllm", "mi355x"): (_VLLM_ROCM, _VLLM_VERSIONS),
    ("sglang", "h100"): (_SGLANG, _SGLANG_VERSIONS),
    ("sglang", "b200"): (_SGLANG, _SGLANG_VERSIONS),
    ("sglang", "mi300x"): (_SGLANG_MOVING, _MOVING_DIGESTS),
    ("sglang", "mi355x"): (_SGLANG_ROCM, _SGLANG_VERSIONS),
    ("trtllm", "h100"): (_TRTLLM, _TRTLLM_VERSIONS),
    ("trtllm", "b200"): (_TRTLLM, _TRTLLM_VERSIONS),
}
"""(engine, hardware) → spelling of its image and, from which day on, what stands in it."""


@dataclass(frozen=True)
class Plant:
    """Where, when and how large; `Planted` is the same for the reader of the truth file."""

    key: str
    kind: Kind
    engine: str
    hardware: tuple[str, ...]
    day: int
    size_pct: float = 0.0
    attribution: str | None = None
    pr: int | None = None
    model: str | None = None
    precision: str | None = None
    shape: tuple[int, int] | None = None
    cold: tuple[int, ...] = ()

    def covers(self, curve: Curve) -> bool:
        """Return whether *curve* is one of the planted ones."""
        stack, setup = curve.stack, curve.setup
        return (
            stack.engine == self.engine
            and stack.hardware in self.hardware
            and self.model in (None, setup.model)
            and self.precision in (None, setup.precision)
            and self.shape in (None, (curve.isl, curve.osl))
        )

    @property
    def direction(self) -> Direction:
        """Direction that a reader should be told."""
        return "none" if self.size_pct == 0 else "regression" if self.size_pct < 0 else "speedup"


PLANTS: tuple[Plant, ...] = (
    Plant("vllm-0.91-flat", "flat_bump", "vllm", (*NVIDIA, *AMD), 12),
    Plant(
        "sglang-b200-fp8-cold",
        "cold_start",
        "sglang",
        ("b200",),
        14,
        -24,
        "measurement",
        precision="fp8",
        shape=PREFILL,
        cold=(16, 32, 64, 128),
    ),
    Plant("sglang-0.9.1-moe", "engine_speedup", "sglang", NVIDIA, 20, 10, "engine", pr=80110, model="dsr1"),
    Plant("trtllm-rc2-flat", "flat_bump", "trtllm", NVIDIA, 26),
    Plant("vllm-0.92-rocm", "engine_regression", "vllm", ("mi355x",), 30, -8, "engine", pr=90157),
    Plant("sglang-mi300x-tag", "moved_tag", "sglang", ("mi300x",), 36, -7, "engine"),
    Plant("trtllm-recipe-dsr1", "recipe_change", "trtllm", ("b200",), 40, -6.5, "recipe", model="dsr1"),
    Plant("trtllm-recipe-gptoss", "recipe_change", "trtllm", ("b200",), 40, 7, "recipe", model="gptoss"),
    Plant("sglang-0.9.2-flat", "flat_bump", "sglang", ("h100", "b200", "mi355x"), 44),
    Plant(
        "sglang-b200-fp4-cold",
        "cold_start",
        "sglang",
        ("b200",),
        52,
        -40,
        "measurement",
        precision="fp4",
        shape=PREFILL,
        cold=(4, 8, 16),
    ),
)
"""Everything that is planted, in order of the day."""

QUIET_DAYS: dict[str, tuple[int, ...]] = {
    "vllm": (21, 22, 23, 24),
    "sglang": (30, 31, 32, 33),
    "trtllm": (5, 6, 7, 8, 9, 46, 47, 48),
}
"""Days without any run of an engine: gaps of days are normal."""


def image_of(stack: Stack, day: int) -> str:
    """Return the image of *stack* on *day*, as its records spell it."""
    pattern, stages = IMAGES[stack.engine, stack.hardware]
    return pattern.format([word for start, word in stages if start <= day][-1])


def recipe_of(curve: Curve, day: int) -> str | None:
    """Return the recipe fingerprint (64 hex digits) of *curve* on *day*; only TensorRT-LLM records of the sample have one."""
    if curve.stack.engine != "trtllm":
        return None
    edition = sum(plant.kind == "recipe_change" and plant.day <= day and plant.covers(curve) for plant in PLANTS)
    setup = curve.setup
    return _digest(f"{curve.stack.label} {setup.model} {setup.precision} {setup.tp} {curve.isl} {curve.osl} edition {edition}")


def speed_of(curve: Curve, day: int) -> float:
    """Return how fast *curve* is on *day* relative to its first day: the product of the planted steps so far."""
    speed = 1.0
    for plant in PLANTS:
        if plant.kind != "cold_start" and plant.day <= day and plant.covers(curve):
            speed *= 1 + plant.size_pct / 100
    return speed


def cold_concurrencies(curve: Curve, day: int) -> tuple[int, ...]:
    """Return the concurrencies of *curve* whose first burst waits long on *day*."""
    return next((p.cold for p in PLANTS if p.kind == "cold_start" and p.day == day and p.covers(curve)), ())


def schedule(generator: Generator) -> list[tuple[int, str, tuple[Stack, ...]]]:
    """Return (day, engine, stacks) of every run, in order: about two of three days a stack, and always when its image changes."""
    runs = []
    for day in range(DAYS):
        for engine in ("vllm", "sglang", "trtllm"):
            stacks = [stack for stack in FLEET if stack.engine == engine]
            drawn = generator.random(len(stacks) + 1)
            idle = drawn[0] > 0.88 or day in QUIET_DAYS[engine]
            kept = tuple(s for s, draw in zip(stacks, drawn[1:], strict=True) if _needed(s, day) or (not idle and draw < 0.78))
            if kept:
                runs.append((day, engine, kept))
    return runs


def _needed(stack: Stack, day: int) -> bool:
    """Whether *stack* must run: on the last day, when its image changes, on a planted day, and the day after that."""
    images = {start for start, _ in IMAGES[stack.engine, stack.hardware][1]}
    planted = {
        plant.day + later
        for plant in PLANTS
        for later in (0, 1)
        if plant.engine == stack.engine and stack.hardware in plant.hardware
    }
    return day in images | planted or day == DAYS - 1


def planted_items() -> tuple[Planted, ...]:
    """Return the truth: every plant with its curves, date and images spelled out."""
    return tuple(_item(plant) for plant in PLANTS)


def _item(plant: Plant) -> Planted:
    touched = [curve for stack in FLEET for curve in curves(stack) if plant.covers(curve)]
    first = touched[0].stack
    return Planted(
        key=plant.key,
        kind=plant.kind,
        engine=plant.engine,
        hardware=plant.hardware,
        curves=tuple(_curve(curve) for curve in touched),
        day=(FIRST_DAY + timedelta(days=plant.day)).date().isoformat(),
        from_image=image_of(first, plant.day - 1),
        to_image=image_of(first, plant.day),
        direction=plant.direction,
        size_pct=plant.size_pct,
        attribution=plant.attribution,
        pr=plant.pr,
        cold_concurrencies=plant.cold,
    )


def _curve(curve: Curve) -> PlantedCurve:
    names = {"gptoss": "gptoss120b"}
    setup = curve.setup
    return PlantedCurve(
        hardware=curve.stack.hardware,
        engine=curve.stack.engine,
        model=names.get(setup.model, setup.model),
        precision=setup.precision,
        tp=setup.tp,
        isl=curve.isl,
        osl=curve.osl,
    )
