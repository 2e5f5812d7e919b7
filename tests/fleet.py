"""A small fleet for tests of detection: curves whose points obey one simple machine, so that every expected value is plain.

One request takes TTFT and then osl - 1 tokens; everything is proportional to 1 / speed. A cold cell keeps its medians, and its
means wait. `curve(...)` is a frame in the schema of `points`, judged by `health`; `points(...)` joins frames.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import polars as pl

from pipelines.detect import health
from tests import frames
from warehouse.canonical import content_id
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.schemas import POINTS

CELLS = (4, 8, 16, 32, 64)
GPUS = 8
TOKENS = 1024
COLD = 0.4
"""Wait of a cold cell, as a share of its median end-to-end latency."""


def metrics(concurrency: int, speed: float = 1.0, wait: float = 0.0, skew: float = 0.0) -> frames.Row:
    """Return the metrics of one cell: *wait* reaches the means of TTFT and latency, *skew* that of latency alone."""
    ttft, tpot = 0.2 / speed, 0.010 * (1 + concurrency / 64) / speed
    e2el = ttft + (TOKENS - 1) * tpot
    mean = e2el * (1.01 + wait + skew)
    output = concurrency * TOKENS / mean / GPUS
    return {
        "tput_per_gpu": 2 * output,
        "output_tput_per_gpu": output,
        "steady_output_tput_per_gpu": concurrency * TOKENS / e2el / GPUS,
        "ttft_median": ttft,
        "ttft_mean": ttft * 1.2 + e2el * wait,
        "ttft_p99": ttft * 1.5,
        "tpot_median": tpot,
        "tpot_mean": tpot,
        "tpot_p99": tpot * 1.1,
        "e2el_median": e2el,
        "e2el_mean": mean,
    }


def build_of(build: str, digest: str | None = None) -> frames.Row:
    """Return the columns of a build: `A` is the tag vA; with *digest* (one hex digit) that tag is pinned."""
    ref = f"vllm/vllm-openai:v{build}" if ":" not in build else build
    if digest is None:
        return {"build_id": f"tag:{ref}", "image_ref": ref, "image_digest": None, "engine_version": build}
    sha = f"sha256:{digest * 64}"
    return {"build_id": f"digest:{sha}", "image_ref": f"{ref}@{sha}", "image_digest": sha, "engine_version": build}


_CURVES: dict[str, pl.DataFrame] = {}


def curve(*told: Any, **named: Any) -> pl.DataFrame:
    """Return one curve measured once (`_curve` has the arguments), made once: frames do not change, and one takes 13 ms."""
    key = repr((told, sorted(named.items())))
    if key not in _CURVES:
        _CURVES[key] = _curve(*told, **named)
    return _CURVES[key]


def _curve(
    build: str = "A",
    day: float = 0,
    speed: float = 1.0,
    *,
    cold: Mapping[int, float] | Collection[int] = (),
    skew: Mapping[int, float] | None = None,
    cells: Mapping[int, float] | Collection[int] = CELLS,
    digest: str | None = None,
    run: str | None = None,
    attempt: int = 1,
    recipe: str | None = None,
    checkpoint: str = "deepseek-r1",
    label: str = "mi355x-amd_0",
    definition: str = "inferencex",
    without: Collection[str] = (),
    copy: int = 0,
    values: frames.Row | None = None,
    **identity: Any,
) -> pl.DataFrame:
    """Return one curve measured once. `cells` may map a concurrency to a further factor of speed, `cold` to its wait.

    The run's number follows from the day unless it is given; *identity* replaces identity fields (isl=8192 is another curve);
    metrics named in *without* are null; *values* replaces any column.
    """
    fields = {name: (frames.IDENTITY | identity).get(name) for name in IDENTITY_FIELDS}
    factors = dict(cells) if isinstance(cells, Mapping) else dict.fromkeys(cells, 1.0)
    waits = dict(cold) if isinstance(cold, Mapping) else dict.fromkeys(cold, COLD)
    rows = []
    for concurrency, factor in factors.items():
        row = {
            **fields,
            "curve_id": curve_id(fields),
            "cell_id": cell_id(curve_id(fields), concurrency),
            "run_id": run or f"r{day:08.3f}",
            "run_attempt": attempt,
            "measured_at": frames.START + timedelta(days=day),
            **(build_of(build, digest) if build else unknown_build()),
            "recipe_fingerprint": recipe,
            "checkpoint": checkpoint,
            "hardware_label": label,
            "metric_definition": definition,
            "concurrency": concurrency,
            "num_gpus": GPUS,
            **metrics(concurrency, speed * factor, waits.get(concurrency, 0.0), (skew or {}).get(concurrency, 0.0)),
            **dict.fromkeys(without),
            **(values or {}),
        }
        row["record_hash"] = row["point_id"] = content_id("test", copy, repr(sorted(row.items())))
        rows.append(frames.point(**row))
    unjudged = pl.DataFrame(rows, schema=POINTS.schema).drop("health", "verdict")
    return health.judge(unjudged).select(POINTS.schema.names())


def quiet(number: int = 12) -> list[pl.DataFrame]:
    """Return other curves of the stack that stand still: they make the noise floor low, and a jump plain."""
    return [curve("A", day, isl=30_000 + n) for n in range(number) for day in (-1, -0.5)]


def unknown_build() -> frames.Row:
    """Return the columns of a build that the record does not name."""
    return {"build_id": "unknown:vllm", "image_ref": None, "image_digest": None, "engine_version": None}


def points(*parts: pl.DataFrame) -> pl.DataFrame:
    """Return the points of all *parts*."""
    return pl.concat(parts)
