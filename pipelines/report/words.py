"""Plain words for numbers, names and findings: everything that the page says of a single value.

Belongs here: formatting and sentences, pure functions of one value or one row. Does not: choosing what the page shows
(`shifts`, `facts`), drawing (`charts`), markup (the templates).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipelines.detect.health import WORDS as REASONS
from warehouse import vocabulary

Row = Mapping[str, Any]

MINUS = "\u2212"
SPACE = "\u00a0"
"""No-break space between a number and its unit."""
NOTHING = "\u2013"
"""What stands where a value is not known."""
MAX_TEXT = 1000
"""Longest text that is shown in one place, characters; the tables bound what strangers wrote more tightly."""

# Controls, lone surrogates, and the invisible characters that re-order or hide text (Unicode UAX 9, U+200B..U+200F, U+FEFF).
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]")

METRICS = {
    "tput_per_gpu": "Throughput per GPU",
    "output_tput_per_gpu": "Output throughput per GPU",
    "input_tput_per_gpu": "Input throughput per GPU",
    "steady_output_tput_per_gpu": "Steady-state throughput per GPU",
    "samples_per_second_per_gpu": "Samples per second per GPU",
    "scheduled_samples_per_second_per_gpu": "Scheduled samples per second per GPU",
    "completed_samples_per_second_per_gpu": "Completed samples per second per GPU",
    "samples_per_second": "Samples per second",
    "scheduled_samples_per_second": "Scheduled samples per second",
    "completed_samples_per_second": "Completed samples per second",
    "output_tokens_per_second": "Output tokens per second",
    "query_latency_bound_p90": "90th percentile of query latency",
    "query_latency_bound_p99": "99th percentile of query latency",
}
_FAMILIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "end-to-end latency", "intvty": "interactivity"}
LEVELS = {
    "line": "this stack (engine, GPU, framework, precision and deployment)",
    "stack": "this engine on this GPU",
    "engine": "this engine on any GPU",
    "global": "any engine on any GPU",
    "public": "this stack in public fleets",
    "prior": "anything, before there are repeats",
}
"""What a level of the noise table speaks of."""
KINDS = {
    "step": "a step: the level changed and has stayed",
    "recovered": "a step that was undone later",
    "blip": "a blip: one or two observations, then back",
    "return": "the return from a blip, no change of its own",
    "drift": "a drift: small steps the same way that add up",
    None: "too early to tell a step from a blip",
}
"""What the whole history of a curve makes of a shift; None: nothing yet."""
ATTRIBUTIONS = {
    "engine": "The build is the only known difference.",
    "hardware": "Not an engine change: the accelerators differ.",
    "recipe": "Not an engine change: the launch recipe differs.",
    "harness": "Not an engine change: the benchmark harness differs.",
    "checkpoint": "Not an engine change: the checkpoint differs.",
    "environment": "Not an engine change: runs of the same setup show it as well, or nothing that is recorded differs.",
    "measurement": "Not an engine change: the measurement itself explains it, and a run of the same image could show it again.",
    "mixed": "More than one thing differs, so the engine alone cannot be blamed.",
    "unknown": "What differs is not known, so nothing is blamed.",
}


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """Return *text* on one line, cut at *limit* characters, with every character that hides or re-orders text made visible."""
    line = _HIDDEN.sub("\ufffd", text.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))
    return line if len(line) <= limit else line[: limit - 1] + "\u2026"


def known(value: float | None) -> bool:
    """Say whether *value* is a finite number."""
    return value is not None and math.isfinite(value)


def percent(value: float | None) -> str:
    """Return a change in % with its sign and one decimal: -6.14 → `−6.1 %`; a change that rounds to nothing has no sign."""
    if value is None or not math.isfinite(value):
        return NOTHING
    digits = f"{abs(value):,.1f}"
    sign = "" if digits == "0.0" else "+" if value > 0 else MINUS
    return f"{sign}{digits}{SPACE}%"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval of a change in %: `−7.4 … −4.9 %`."""
    if not known(low) or not known(high):
        return NOTHING
    return f"{percent(low).removesuffix(f'{SPACE}%')} \u2026 {percent(high)}"


def scale(value: float | None) -> str:
    """Return a log-ratio scale as the size of change that it stands for, without sign: 0.006 → `0.6 %`."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{100 * math.expm1(value):,.1f}{SPACE}%"


def count(value: int | None, one: str = "", many: str = "") -> str:
    """Return a whole number with separators, followed by the noun where one is given: `1 run`, `12,345 runs`."""
    if value is None:
        return NOTHING
    noun = one if value == 1 else many or f"{one}s"
    return f"{value:,} {noun}" if one else f"{value:,}"


def probability(value: float | None) -> str:
    """Return a p or q value with two significant digits; below 0.0001 only that it is."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def instant(value: datetime | None) -> str:
    """Return a UTC instant to the minute: `2026-01-05 06:10 UTC`."""
    return NOTHING if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def day(value: datetime | None) -> str:
    """Return the UTC day of an instant: `2026-01-05`."""
    return NOTHING if value is None else f"{value:%Y-%m-%d}"


def gap(days: float | None) -> str:
    """Return how far two observations are apart: `3.0 days`, or hours below one day."""
    if days is None or not math.isfinite(days):
        return NOTHING
    return f"{24 * days:.1f} hours" if days < 1 else f"{days:,.1f} days"


def arrow(value: float | None) -> str:
    """Return ▲ for better, ▼ for worse, = for neither; so that nothing on the page is told by colour alone."""
    if value is None or not math.isfinite(value) or value == 0:
        return "="
    return "▲" if value > 0 else "▼"


def engine(name: str | None) -> str:
    """Return the name that people write for an engine: `trtllm` → `TensorRT-LLM`."""
    return _titled("engine", name, name or "unknown engine")


def hardware(name: str | None) -> str:
    """Return an accelerator's name as its vendor writes it: `mi355x` → `MI355X`."""
    return name.upper() if name else "unknown GPU"


def model(name: str | None) -> str:
    """Return the name that people write for a model family: `dsr1` → `DeepSeek-R1`."""
    return _titled("model", name, name or "unknown model")


def _titled(kind: str, name: str | None, otherwise: str) -> str:
    return str(vocabulary.entry(kind, name).get("title", otherwise)) if name else otherwise


def metric(name: str | None) -> str:
    """Return a metric's name in words: `tpot_median` → `Median TPOT`."""
    if not name:
        return "An unnamed metric"
    family, _, statistic = name.rpartition("_")
    return METRICS.get(name) or (f"{statistic.capitalize()} {_FAMILIES[family]}" if family in _FAMILIES else name)


def finding(code: str) -> str:
    """Return a code such as `cold_start` in words: `cold start`; of a reason of health, what it means."""
    return REASONS.get(code, code.replace("_", " "))


def stack(row: Row) -> str:
    """Return engine and accelerator of a row: `vLLM on MI355X`."""
    return f"{engine(row['engine'])} on {hardware(row['hardware'])}"


def configuration(row: Row) -> str:
    """Return the model of a row with its precision: `DeepSeek-R1 FP8`."""
    return f"{model(row['model'])} {(row['precision'] or '').upper() or 'unknown precision'}"


def build(version: str | None, image_ref: str | None, digest: str | None) -> str:
    """Return the shortest honest name of a build: its version, else the tag of its image, else the head of its digest."""
    tag = (image_ref or "").rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    return version or tag or (short_digest(digest) if digest else "") or "unknown build"


def short_digest(digest: str) -> str:
    """Return the head of a digest, enough to tell two apart: `@0123456789ab`."""
    return f"@{digest.removeprefix('sha256:')[:12]}"


def transition(shift: Row) -> tuple[str, str]:
    """Return the names of both builds of a comparison; with digests where the names alone would be the same."""
    names = tuple(
        build(shift[f"{side}_engine_version"], shift[f"{side}_image_ref"], shift[f"{side}_image_digest"])
        for side in ("from", "to")
    )
    digests = (shift["from_image_digest"], shift["to_image_digest"])
    if names[0] == names[1] and digests[0] and digests[1] and digests[0] != digests[1]:
        return f"{names[0]} {short_digest(digests[0])}", f"{names[1]} {short_digest(digests[1])}"
    return names[0], names[1]


_PARALLEL = ("tp", "pp", "ep", "dcp", "pcp")
_EXTRAS = {"router": "router", "kv_transfer": "KV transfer", "kv_offload": "KV offload"}


def _parallel(row: Row, prefix: str = "") -> str:
    sizes = [(name, row.get(f"{prefix}{name}")) for name in _PARALLEL]
    parts = [f"{name.upper()}{size}" for name, size in sizes if size and (size > 1 or name == "tp")]
    return " ".join(parts + (["DP-attention"] if row.get(f"{prefix}dp_attention") else []))


def _workers(row: Row, phase: str) -> str:
    workers, gpus = row.get(f"{phase}_num_workers"), row.get(f"num_{phase}_gpus")
    head = f"{phase} {workers}\u00d7" if workers else phase
    parts = (head, _parallel(row, f"{phase}_"), f"({count(gpus, 'GPU')})" if gpus else "")
    return " ".join(part for part in parts if part)


def curve(row: Row) -> str:
    """Return what tells one curve of a stack from another: model, lengths, layout, and whatever else is not the default."""
    layout = [_workers(row, "prefill"), _workers(row, "decode")] if row.get("disagg") else [_parallel(row)]
    lengths = f"{row['isl']}/{row['osl']} tokens" if row["isl"] is not None and row["osl"] is not None else ""
    return " · ".join(part for part in (configuration(row), lengths, *layout, *_peculiarities(row)) if part)


def _peculiarities(row: Row) -> list[str]:
    def other(name: str, *usual: str | None) -> str:
        value = row.get(name)
        return value if value and value not in ("none", *usual) else ""

    stack_name = other("framework", row["engine"], "trt")
    return [
        other("spec_decoding").upper(),
        f"through {stack_name}" if stack_name else "",
        *(f"{title} {other(name)}" for name, title in _EXTRAS.items() if other(name)),
        other("scenario", "fixed-seq-len"),
        "multi-node" if row.get("is_multinode") else "",
    ]
