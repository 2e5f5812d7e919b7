"""Names of TensorRT-LLM perf cases: model, tool, types, sizes and load, packed in one text.

Three shapes: `model-bench-pytorch-float16-maxbs:512-…-input_output_len:128,128-reqs:8192`;
`test_benchmark[disagg_perf_file:deepseek-r1-fp4_015_8k1k_dep:16_bs:64_mtp:0_ccbackend:UCX]_con:1075`;
`deepseek-r1-fp4_1k1k_ctx1_dep4_gen1_tep8_eplb0_mtp3_ccb-UCX]-con-4`, perhaps with an accelerator before it.
Facts: TensorRT-LLM `tests/integration/defs/perf/test_perf.py` (`PerfTestConfig`), `disagg/config_loader.py` (Apache-2.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipelines.ingest.numbers import whole
from pipelines.ingest.tools.plain_names import precision_of
from warehouse import vocabulary
from warehouse.errors import InputError

BENCH, CLIENT, BATCHES = "trtllm-bench", "benchmark_serving", "bertBenchmark"
DEFAULT_REQUESTS = 512
"""Requests of a bench case whose name does not tell another number."""
MAX_COUNT = 1_000_000
_TOOLS = {"bench": BENCH, "cppmanager": "gptManagerBenchmark", "cpp": BATCHES, "disagg_server": CLIENT}
_BACKENDS = {"pytorch": "trt", "_autodeploy": "trt-autodeploy"}
_STACKS = {CLIENT: "trt"}
_TYPES = frozenset({"float32", "float16", "bfloat16", "float8", "float4"})
_SIZES = {"tp": "tp", "pp": "pp", "ep": "ep", "gpus": "num_gpus"}
_LENGTHS = re.compile(r"(\d+),(\d+)")
_ROLES = re.compile(r"(?P<model>[\w.-]+?)(?:_(?P<file>\d{3}))?_(?P<isl>\d+)k(?P<osl>\d+)k_(?P<rest>[^\]]*)")
_CONCURRENCY = re.compile(r"\][_-]con[:-](\d+)$")
_WORD = re.compile(r"(?P<name>dep|tep|tp|pp|bs|mtp|ccbackend|ccb|ctx|gen|eplb|con)[:-]?(?P<value>\w+)")


@dataclass(frozen=True)
class Case:
    """A case: the tool that measured it, and the fields of `Told` that its name tells."""

    tool: str
    told: dict[str, Any]


def parsed(name: str, place: str, command: str) -> Case:
    """Return what *name* tells, *place* being where it ran and *command* how; raises InputError where it is of no known shape."""
    case = _by_role(name, command) if "[" in name or "]" in name else _by_labels(name)
    accelerator = _accelerator(place) or case.told.get("hardware")
    return Case(case.tool, {**case.told, "hardware": accelerator, "hardware_label": place or accelerator})


def _accelerator(place: str) -> str | None:
    """Return the accelerator of a place: `H100_PCIe-PyTorch-Perf-1` → h100pcie. A module's form (SXM) is the usual one."""
    head = place.split("-", 1)[0].lower()
    return re.sub(r"_?sxm\d*", "", head).replace("_", "") or None


def _by_labels(name: str) -> Case:
    labels = name.split("-")
    model, tool = labels[0], _TOOLS.get(labels[1] if len(labels) > 1 else "")
    if not model or tool is None:
        raise InputError(f"network_name: {name[:80]!r} is no case that is known: model-bench-…, or one with roles in brackets")
    values = dict(label.split(":", 1) for label in labels[2:] if ":" in label)
    words = [label for label in labels[2:] if ":" not in label]
    gpus = {key: whole(f"network_name: {label}", values[label], 1, MAX_COUNT) for label, key in _SIZES.items() if label in values}
    lengths = _LENGTHS.fullmatch(values.get("input_output_len", ""))
    taken = {*_SIZES, *_TYPES, *_BACKENDS, "quant", "con", "reqs"} | ({"input_output_len"} if lengths else set())
    left = [label for label in labels[2:] if label.split(":", 1)[0] not in taken]
    return Case(
        tool,
        {
            "model": model,
            "framework": next(
                (_BACKENDS[word] for word in words if word in _BACKENDS), "trt" if tool == CLIENT else "trt-engine"
            ),
            "precision": _precision(model, values.get("quant"), words),
            **_parallel(gpus),
            **_lengths(lengths),
            **_load(values, tool),
            "workload": " ".join(left) or None,
        },
    )


def _precision(model: str, method: str | None, words: list[str]) -> str | None:
    """Return the precision: of the method, else of the model's name, else of the type; a type alone is of the activations."""
    return precision_of(method) or precision_of(model) or next((precision_of(word) for word in words if word in _TYPES), None)


def _parallel(sizes: dict[str, int]) -> dict[str, Any]:
    """Return sizes and GPUs: a name leaves out what is 1, and `tp` where it is all GPUs."""
    pp, gpus = sizes.get("pp", 1), sizes.get("num_gpus")
    tp = sizes.get("tp") or ((gpus or 1) // pp if pp > 1 else gpus or 1)
    return {"tp": tp, "pp": pp, "ep": sizes.get("ep"), "num_gpus": gpus or tp * pp}


def _lengths(found: re.Match[str] | None) -> dict[str, int]:
    if found is None:
        return {}
    return {"isl": whole("network_name: input_output_len", found[1]), "osl": whole("network_name: input_output_len", found[2])}


def _load(values: dict[str, str], tool: str) -> dict[str, Any]:
    """Return concurrency and arrival: without `con` a bench sends all its requests at once, and BERT models get one batch."""
    if "con" in values:
        return {"concurrency": whole("network_name: con", values["con"], 1, MAX_COUNT)}
    if tool == CLIENT:
        return {}
    if tool == BATCHES and "bs" in values:
        return {"concurrency": whole("network_name: bs", values["bs"], 1, MAX_COUNT), "arrival": "batch"}
    requests = whole("network_name: reqs", values.get("reqs", DEFAULT_REQUESTS), 1, MAX_COUNT)
    return {"concurrency": requests, "arrival": "offline", "requests": requests}


def _by_role(name: str, command: str) -> Case:
    """Return what a case of separate prefill and decode servers tells."""
    inside = re.sub(r"^.*\[", "", name)
    inside = re.sub(r"^(?:disagg|wideep|widep)_perf_(?:file:)?", "", inside)
    found = _ROLES.match(inside)
    concurrency = _CONCURRENCY.search(name)
    if found is None or concurrency is None:
        raise InputError(f"network_name: {name[:80]!r} is no case with roles: [… 8k1k …]_con:64 is wanted")
    head, model = _leading_accelerator(found["model"])
    words = [match for word in re.split(r"[_]", found["rest"]) if (match := _WORD.fullmatch(word))]
    roles = _roles(words)
    depth = roles.pop("mtp", None)
    return Case(
        CLIENT,
        {
            "hardware": head,
            "framework": "trt",
            "model": _option(command, "model") or model,
            "precision": precision_of(command) or precision_of(model),
            "spec_decoding": None if depth is None else ("none" if depth == 0 else "mtp"),
            "disagg": True,
            "isl": 1024 * whole("network_name: input length", found["isl"], 1, MAX_COUNT),
            "osl": 1024 * whole("network_name: output length", found["osl"], 1, MAX_COUNT),
            "concurrency": whole("network_name: con", concurrency[1], 1, MAX_COUNT),
            "num_gpus": _whole_gpus(roles),
            "workload": _left(words, found["file"]),
            "identity": {key: value for key, value in roles.items() if value is not None},
        },
    )


def _option(command: str, name: str) -> str | None:
    found = re.search(rf"--{name}=([\w.-]+)", command)
    return found[1] if found else None


def _leading_accelerator(model: str) -> tuple[str | None, str]:
    """Return an accelerator that stands before the model (`gb200-deepseek-r1-fp4`), and the model."""
    found = re.fullmatch(r"([A-Za-z0-9]+)[-_](.+)", model)
    name = vocabulary.hardware(found[1]) if found else None
    return (name.value, found[2]) if found and name and name.known else (None, model)


def _roles(words: list[re.Match[str]]) -> dict[str, Any]:
    """Return the sizes by role: behind `ctx` of prefill, behind `gen` of decode (`ctx1_dep4_gen1_tep8`); one alone is of decode.

    dep: attention is data-parallel, tep and tp: tensor-parallel; dep and tep spread experts over all ranks.
    """
    role, found = "decode", dict[str, Any]()
    for word in words:
        name, value = word["name"], word["value"]
        if name in ("ctx", "gen"):
            role = "prefill" if name == "ctx" else "decode"
            found[f"{role}_num_workers"] = whole(f"network_name: {name}", value, 1, MAX_COUNT)
        elif name in ("dep", "tep", "tp", "pp"):
            size = whole(f"network_name: {name}", value, 1, MAX_COUNT)
            found[f"{role}_{'pp' if name == 'pp' else 'tp'}"] = size
            found |= {f"{role}_dp_attention": name == "dep"} if name != "pp" else {}
            found |= {f"{role}_ep": size} if name in ("dep", "tep") else {}
        elif name == "mtp":
            found["mtp"] = whole("network_name: mtp", value)
        elif name in ("ccb", "ccbackend"):
            found["kv_transfer"] = value.lower()
    return found | _gpus_by_role(found)


def _gpus_by_role(found: dict[str, Any]) -> dict[str, Any]:
    sizes = {}
    for role in ("prefill", "decode"):
        ranks = [found[f"{role}_{name}"] for name in ("tp", "pp") if f"{role}_{name}" in found]
        workers = found.get(f"{role}_num_workers")
        if ranks and workers:
            sizes[f"num_{role}_gpus"] = workers * ranks[0] * (ranks[1] if len(ranks) > 1 else 1)
    return sizes


def _whole_gpus(roles: dict[str, Any]) -> int | None:
    parts = [roles.get(f"num_{role}_gpus") for role in ("prefill", "decode")]
    return None if None in parts else sum(part for part in parts if part)


def _left(words: list[re.Match[str]], file: str | None) -> str | None:
    """Return what has no column, so that cases which differ in it alone are two cells: batch sizes, depth of MTP, the file."""
    left = {word["name"]: f"{word['name']}:{word['value']}" for word in words if word["name"] in ("bs", "mtp", "eplb")}
    return " ".join([*left.values(), *([f"file:{file}"] if file else [])]) or None
