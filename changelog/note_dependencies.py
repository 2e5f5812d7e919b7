"""Versions of other packages that a release note says its engine moved to: "PyTorch 2.9.0 upgrade", "Bump xgrammar to 0.1.25".

Belongs here: how a note spells packages and versions. Does not: what a source tree pins (`changelog.pins`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from changelog.projects import normal_version

_NAMES = {
    "torch": r"(?:public )?(?:Py)?Torch",
    "triton": r"Triton",
    "transformers": r"(?:Hugging ?Face )?transformers",
    "flashinfer": r"flash-?infer(?:-python)?",
    "flash-attn": r"flash-?attn|FlashAttention",
    "xformers": r"xformers",
    "aiter": r"(?:amd-)?aiter",
    "sgl-kernel": r"sgl-kernel",
    "deepgemm": r"deep-?gemm",
    "deepep": r"deep-?ep",
    "cutlass": r"cutlass",
    "nccl": r"NCCL",
    "rccl": r"RCCL",
    "cuda": r"CUDA",
    "rocm": r"ROCm",
    "cudnn": r"cuDNN",
    "cublas": r"cuBLAS",
    "tensorrt": r"TensorRT(?!-LLM| LLM)",
    "modelopt": r"(?:NVIDIA )?Model ?Opt(?:imizer)?",
    "nixl": r"NIXL",
    "mooncake": r"mooncake(?:-transfer-engine)?",
    "xgrammar": r"xgrammar",
    "ray": r"ray",
    "mori": r"mori",
    "vllm-flash-attn": r"vllm-flash-attn",
}
"""Name here → how notes write it."""
_ANY = "|".join(f"(?P<{re.sub('[^a-z]', '_', name)}>{spelling})" for name, spelling in _NAMES.items())
_GROUPS = {re.sub("[^a-z]", "_", name): name for name in _NAMES}
_NUMBER = r"v?(?P<version>\d{1,4}(?:\.\d{1,6}){0,4}(?:[.-]?(?:a|b|rc|post|dev)\d{1,8})?)(?![\w]|\.\d)"
_WHOLE = rf"(?<![\w/-])(?:{_ANY})(?![\w/-])"
_MOVES = (
    re.compile(
        rf"{_WHOLE} version (?:is|was|has been) (?:updated|upgraded|downgraded|maintained|set|pinned) (?:to|at) `?{_NUMBER}", re.I
    ),
    re.compile(
        rf"\b(?:bump|updat|upgrad|downgrad|pin|mov|switch)\w*\s+(?:to\s+|the\s+|dependent\s+)*{_WHOLE}"
        rf"(?:\s+versions?)?(?:\s+from\s+\S{{1,30}}|\s+v?\d[\w.]{{0,20}}(?=\s*[-=]?[>→]))?(?:\s*(?:to|at|[-=]>|→|==?))?\s*`?{_NUMBER}",
        re.I,
    ),
    re.compile(rf"{_WHOLE} {_NUMBER} (?:upgrade|update|bump)\b", re.I),
    re.compile(rf"{_WHOLE} (?:upgraded|updated|bumped|pinned) to `?{_NUMBER}", re.I),
)
_DEPENDENT = re.compile(
    r"\bdependent (?P<name>[a-z][\w.-]{1,40}) version (?:is|was) (?:updated|upgraded|downgraded|maintained) (?:to|at) `?"
    + _NUMBER,
    re.I,
)
"""A package that is not in the list, where the text says that it is one."""
_IMAGE = re.compile(
    r"\bbase (?:docker |container )?image\b.{0,120}?`?"
    r"(?P<image>[a-z0-9][\w.-]{0,60}(?:/[\w.-]{1,60}){1,4}):(?P<version>[\w.-]{1,60})",
    re.I,
)
_MAYBE = re.compile(r"bump|updat|upgrad|downgrad|\bpin|\bmov|switch|version|image", re.I)
"""Without one of these words a text says nothing of the kind, as most do not."""
MAX_TEXT = 1_000
"""Characters of a text that are looked at."""


class Move(NamedTuple):
    """A package and the version that is said of it; a base image is named by its repository and its tag."""

    dependency: str
    version: str


def move_of(text: str) -> Move | None:
    """Return what *text* (one line) says that a dependency moved to, or None."""
    if _MAYBE.search(text, 0, MAX_TEXT) is None:
        return None
    text = text[:MAX_TEXT].replace("`", " ").replace("  ", " ")
    image = _IMAGE.search(text)
    if image is not None:
        return Move(image["image"].lower(), image["version"].rstrip("."))
    match = next((found for pattern in _MOVES if (found := pattern.search(text))), None)
    if match is None:
        other = _DEPENDENT.search(text)
        return Move(other["name"].lower(), other["version"]) if other else None
    name = next(_GROUPS[group] for group in _GROUPS if match[group] is not None)
    return Move(name, normal_version(match["version"]) or match["version"])
