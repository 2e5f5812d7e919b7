"""Names of models and accelerators as tools write them, without what belongs to the machine that wrote them.

Belongs here: paths to checkpoints, product names of GPUs, names of quantization methods. Does not: canonical names
(`warehouse.vocabulary`).
"""

from __future__ import annotations

import re

_CACHED = re.compile(r"models--([^/]+)--([^/]+)")
"""A model in the cache of huggingface_hub: the last part of such a path is a commit."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SPLIT = re.compile(r"[\s_-]+")
_MEMORY = re.compile(r"\d+(\.\d+)?(gb|gib)|hbm\w*")
_NO_PRODUCT = frozenset({
    "nvidia", "amd", "tesla", "geforce", "instinct", "graphics", "device", "gpu", "tensor", "core", "blackwell", "hopper",
    "server", "workstation", "edition", "oam",
})  # fmt: skip
_MODULE = re.compile(r"sxm\d*")

PRECISIONS: tuple[tuple[str, str], ...] = (
    (r"nvfp4|mxfp4|fp4|float4", "fp4"),
    (r"fp8|mxfp8|float8", "fp8"),
    (r"w4a16|w4a8|int4|awq|w4afp8", "int4"),
    (r"w8a8|w8a16|int8|smoothquant|sq", "int8"),
    (r"bfloat16|bf16", "bf16"),
    (r"float16|fp16|half", "fp16"),
)
"""Words of a quantization method or a type, and the precision of the weights that they stand for; the first that fits counts."""


def model_name(path: str | None) -> str | None:
    """Return the hub id of a model, else the last part of its path: folders of a machine may hold names of people.

    `/home/x/models/DeepSeek-R1/` → DeepSeek-R1; `…/models--a--b/snapshots/<commit>` → a/b; `a/b` stays.
    """
    text = (path or "").strip()
    if text in ("", "None", "null"):
        return None
    if cached := _CACHED.search(text):
        return f"{cached[1]}/{cached[2]}"
    return text if _HUB_ID.fullmatch(text) and not text.startswith((".", "~")) else _last(text)


def _last(path: str) -> str | None:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or None


def device_name(product: str | None) -> str | None:
    """Return the accelerator that a product name tells: `NVIDIA H100 80GB HBM3` → h100, `NVIDIA H100 PCIe` → h100pcie.

    A card for PCIe is another accelerator than the module of the same name: less power, less bandwidth.
    """
    words = [word for word in _SPLIT.split((product or "").strip().lower()) if word]
    kept = [word for word in words if word not in _NO_PRODUCT and not _MEMORY.fullmatch(word) and not _MODULE.fullmatch(word)]
    return "".join(kept) or None


def precision_of(method: str | None) -> str | None:
    """Return the precision of the weights that a quantization method or a type tells: `modelopt_fp4` → fp4; None: it does not."""
    text = re.sub(r"[^a-z0-9]+", "_", (method or "").lower())
    fits = (name for words, name in PRECISIONS if re.search(rf"(?:^|_)(?:{words})(?:_|$)", text))
    return next(fits, None)
