"""An invented fleet for `make bench`: run folders of the shape that InferenceX leaves, as many as wanted, the same every time.

One sweep a day since 2016-01-04, 20 runs a sweep, 143 rows a run: 2,860 cells; 7,000 runs are 1,001,000 records. What run number
n says depends on n and the seed alone, so that 10M records can be made, ingested and deleted in slices. Field sets, key order,
indent and digits are those of the real generations (InferenceX `utils/process_result.py`, Apache-2.0, and its git history):

- early: no image, no model prefix, `mtp` instead of `spec_decoding` (November 2025);
- plain: the same with image, prefix and, for workers by role, `prefill_*` and `decode_*`; texts for booleans (December 2025 on);
- late: more percentiles, `pp`, `dcp_size`, `pcp_size`, router, power where it was valid, `recipe_fingerprint` (August 2026 on).

Of the 20 runs of a sweep two begin early (and turn plain), two are late and one turns late, so that every slice holds all
generations; cells keep their identity. Dates do not follow the real calendar: output and input are per GPU of all, as they were
before 2025-11-05, when the calendar here ends.
Belongs here: records of a benchmark. Does not: planted shifts with a right answer (pipelines/demo), nor data of anybody.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 20_261_130
START = datetime(2016, 1, 4, 0, 10, tzinfo=UTC)
STEP = timedelta(minutes=70)
"""Between two runs of one sweep."""
CONCURRENCIES = tuple(2**power for power in range(11))
LENGTHS = ((1024, 1024), (1024, 8192), (8192, 1024))
CURVES_PER_RUN = 13
ROWS_PER_RUN = CURVES_PER_RUN * len(CONCURRENCIES)
LAST_RUN = 71_800
"""Beyond it the calendar would reach 2025-11-05, when the meaning of disaggregated throughput changed."""
NEVER = 1 << 30
REPOSITORY = "example/bench-fleet"

NOISE = {"tput": 0.007, "e2el": 0.007, "tpot": 0.006, "itl": 0.006, "ttft": 0.03}
"""Standard deviation of the logarithm, by family: what real cells show from day to day without a change."""
SHARED = 0.8
"""Part of the deviation that all statistics of a family have in common; the rest, 0.6 in quadrature, is each one's own."""
PART_USED = 0.9
"""Real lengths are drawn between 0.8 and 1 of the nominal ones."""

STATISTICS = ("mean", "median", "std", "p99")
LATE_STATISTICS = ("mean", "median", "std", "p90", "p99", "p99.9")
RATIOS = {
    "ttft": {"mean": (1.05, 1.4), "std": (0.4, 2.0), "p90": (1.5, 2.2), "p99": (2.2, 9.0), "p99.9": (9.1, 11.0)},
    "tpot": {"mean": (0.98, 1.01), "std": (0.01, 0.1), "p90": (1.01, 1.03), "p99": (1.03, 1.15), "p99.9": (1.16, 1.2)},
    "itl": {"mean": (1.0, 1.03), "std": (0.2, 2.0), "p90": (1.02, 1.3), "p99": (1.4, 8.0), "p99.9": (8.1, 12.0)},
    "e2el": {"mean": (1.0, 1.02), "std": (0.065, 0.16), "p90": (1.07, 1.1), "p99": (1.11, 1.25), "p99.9": (1.26, 1.3)},
}
"""Statistic over median of the same metric: the range in which a cell's own ratio lies, from real rows."""
POWER = {"avg_power_w": 3, "avg_total_gpu_power_w": 3, "total_gpu_energy_j": 3, "joules_per_successful_query": 6}
POWER |= dict.fromkeys(("joules_per_input_token", "joules_per_output_token", "joules_per_total_token"), 6)
"""Name and digits behind the point."""
THROUGHPUTS = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu")
ORDER = {
    "early": f"hw tp ep dp_attention conc model framework precision isl osl {' '.join(THROUGHPUTS)} disagg mtp",
    "plain": "hw conc image model infmax_model_prefix framework precision spec_decoding disagg isl osl is_multinode"
    " tp ep dp_attention prefill_tp prefill_ep prefill_dp_attention prefill_num_workers"
    f" decode_tp decode_ep decode_dp_attention decode_num_workers num_prefill_gpu num_decode_gpu {' '.join(THROUGHPUTS)}",
    "late": "hw conc image model infmax_model_prefix framework precision spec_decoding disagg isl osl router kv_p2p_transfer"
    " is_multinode tp pp dcp_size pcp_size ep dp_attention prefill_tp prefill_pp prefill_dcp_size prefill_pcp_size prefill_ep"
    " prefill_dp_attention prefill_num_workers decode_tp decode_pp decode_dcp_size decode_pcp_size decode_ep"
    f" decode_dp_attention decode_num_workers num_prefill_gpu num_decode_gpu {' '.join(THROUGHPUTS)}",
}
"""Keys before the statistics, in the order in which the producer wrote them; a row has those that apply to it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lane:
    """One of the 20 daily runs: a stack on a runner. `image` is a pattern of a release's major and minor number."""

    hw: str
    framework: str
    prefix: str
    model: str
    precision: str
    image: str
    speed: float
    disagg: bool = False
    mtp: bool = False
    early_until: int = 0
    """Sweep at which rows of the early generation end."""
    late_from: int = NEVER
    """Sweep at which rows of the late generation begin."""


VLLM, VLLM_ROCM = "vllm/vllm-openai:v0.{}.{}", "rocm/vllm:v0.{}.{}-rocm700"
SGLANG, SGLANG_ROCM = "lmsysorg/sglang:v0.{}.{}-cu129-amd64", "lmsysorg/sglang:v0.{}.{}-rocm700-mi35x"
TRT, ATOM = "nvcr.io#nvidia/tensorrt-llm/release:1.{}.0rc{}", "rocm/atom:v0.{}.{}"
DYNAMO_TRT = "nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime:0.{}.{}"
DYNAMO_SGLANG, DYNAMO_VLLM = "nvcr.io#nvidia/ai-dynamo/sglang-runtime:0.{}.{}", "nvcr.io#nvidia/ai-dynamo/vllm-runtime:0.{}.{}"
GPTOSS, R1 = "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-R1-0528"
R1_FP4, R1_MXFP4 = "nvidia/DeepSeek-R1-0528-FP4-V2", "amd/DeepSeek-R1-0528-MXFP4-Preview"
R1_FOLDER = "/models/shared/deepseek-r1-0528-fp4-v2"

LANES = (
    Lane("h100", "vllm", "gptoss", GPTOSS, "fp4", VLLM, 1.0, early_until=320),
    Lane("h200", "sglang", "dsr1", R1, "fp8", SGLANG, 1.2, mtp=True, early_until=250),
    Lane("h200", "vllm", "gptoss", GPTOSS, "fp4", VLLM, 1.25),
    Lane("b200", "vllm", "gptoss", GPTOSS, "fp4", VLLM, 2.2),
    Lane("b200-trt", "trt", "gptoss", GPTOSS, "fp4", TRT, 2.6),
    Lane("b200-trt", "trt", "dsr1", R1_FP4, "fp4", TRT, 2.5, mtp=True),
    Lane("b200", "sglang", "dsr1", R1, "fp8", SGLANG, 1.9),
    Lane("b200", "sglang", "dsr1", R1_FP4, "fp4", SGLANG, 2.3),
    Lane("mi300x", "sglang", "dsr1", R1, "fp8", SGLANG_ROCM, 0.9),
    Lane("mi325x", "sglang", "dsr1", R1, "fp8", SGLANG_ROCM, 1.05),
    Lane("mi355x", "sglang", "dsr1", R1_MXFP4, "fp4", SGLANG_ROCM, 2.0),
    Lane("mi355x", "vllm", "gptoss", GPTOSS, "fp4", VLLM_ROCM, 1.9),
    Lane("mi300x", "vllm", "llama70b", "amd/Llama-3.3-70B-Instruct-FP8-KV", "fp8", VLLM_ROCM, 0.95),
    Lane("h200-dgxc", "vllm", "llama70b", "nvidia/Llama-3.3-70B-Instruct-FP8", "fp8", VLLM, 1.2),
    Lane("gb200", "dynamo-trt", "dsr1", R1_FOLDER, "fp4", DYNAMO_TRT, 2.7, disagg=True, mtp=True),
    Lane("gb200", "dynamo-sglang", "dsr1", R1, "fp8", DYNAMO_SGLANG, 2.1, disagg=True),
    Lane("gb200", "dynamo-trt", "gptoss", "/models/shared/gpt-oss-120b", "fp4", DYNAMO_TRT, 2.6, disagg=True),
    Lane("mi355x-amd_0", "atom", "dsr1", R1, "fp8", ATOM, 1.8, late_from=300),
    Lane("cluster:b300-nv", "sglang", "dsr1", R1_FP4, "fp4", SGLANG, 2.9, late_from=0),
    Lane("gb300-nv", "dynamo-vllm", "dsv4", "deepseek-ai/DeepSeek-V4-Pro", "fp4", DYNAMO_VLLM, 3.0, disagg=True, late_from=0),
)

SINGLE: tuple[tuple[Any, ...], ...] = ((8, 1, False), (4, 1, False), (8, 8, True), (2, 1, False), (4, 4, False))
"""tp, ep, dp_attention."""
SOME, MANY = (1, 4, 4, True), (2, 4, 4, True)
BY_ROLE: tuple[tuple[Any, ...], ...] = (
    *((*SOME, 1, 8, 8, True), (*MANY, 1, 16, 16, True), (*MANY, 1, 32, 32, True)),
    *((1, 1, 1, False, 4, 4, 1, False), (4, 1, 1, False, 1, 8, 8, False)),
)
"""Workers, tp, ep, dp_attention of prefill, then of decode."""


@dataclass(frozen=True)
class Cells:
    """What the 143 cells of a lane are and how fast, an array over the cells in each field."""

    layouts: tuple[tuple[Any, ...], ...]
    isl: Floats
    osl: Floats
    conc: Floats
    gpus: Floats
    base: dict[str, dict[str, Floats]]
    """Metric, then statistic: seconds, before jitter."""


def record_count(runs: int) -> int:
    """Return how many records *runs* runs hold."""
    return runs * ROWS_PER_RUN


def run_id(run: int) -> int:
    """Return the id of run number *run*; ids grow with the number and have eleven digits."""
    return 12_000_000_000 + run * 97_003


def write_runs(folder: Path, first_run: int, runs: int) -> int:
    """Write run folders *first_run* and on under *folder* and return the records written; raises ValueError beyond LAST_RUN."""
    if first_run < 0 or runs < 0 or first_run + runs > LAST_RUN:
        raise ValueError(f"runs {first_run} to {first_run + runs}: only 0 to {LAST_RUN} have a date")
    for run in range(first_run, first_run + runs):
        target = folder / f"run_{run_id(run)}"
        target.mkdir(parents=True, exist_ok=True)
        (target / "agg_bmk.json").write_bytes(artifact(run))
        (target / "run.json").write_bytes(json.dumps(run_object(run), indent=1).encode())
    return record_count(runs)


def artifact(run: int) -> bytes:
    """Return `agg_bmk.json` of run number *run*."""
    sweep, lane = divmod(run, len(LANES))
    generation, number = _generation(LANES[lane], sweep), _image_number(lane, sweep)
    template = _template(lane, generation, number)
    return (template % tuple(_values(lane, generation, number, run))).encode()


@dataclass(frozen=True)
class Numbers:
    """What a run measured, an array over its cells in each field: tokens, requests in flight, GPUs; seconds and tok/s/GPU."""

    isl: Floats
    osl: Floats
    conc: Floats
    gpus: Floats
    metrics: dict[str, Floats]


def numbers_of(run: int) -> Numbers:
    """Return the numbers of run number *run*, with all statistics of the late generation."""
    sweep, lane = divmod(run, len(LANES))
    cells, speed = _cells(lane), _speed(lane, _image_number(lane, sweep))
    return Numbers(cells.isl, cells.osl, cells.conc, cells.gpus, _metrics(lane, "late", speed, _random(3, run)))


def run_object(run: int) -> dict[str, Any]:
    """Return GitHub's record of run number *run*."""
    sweep, lane = divmod(run, len(LANES))
    started = (START + timedelta(days=sweep) + lane * STEP).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": run_id(run),
        "run_attempt": 1,
        "name": "Run Sweep",
        "head_branch": "main",
        "event": "push",
        "status": "completed",
        "conclusion": "success",
        "run_started_at": started,
        "created_at": started,
        "html_url": f"https://example.invalid/{REPOSITORY}/actions/runs/{run_id(run)}",
        "repository": {"full_name": REPOSITORY},
    }


def _generation(lane: Lane, sweep: int) -> str:
    if sweep < lane.early_until:
        return "early"
    return "late" if sweep >= lane.late_from else "plain"


def _image_number(lane: int, sweep: int) -> int:
    """Every lane takes a new image each 19 to 38 sweeps, not all on one day."""
    return (sweep + 7 * lane) // (19 + lane)


def _random(*key: int) -> np.random.Generator:
    """The first of *key* tells the purpose: 1 base values of a lane, 2 speed of an image, 3 jitter of a run."""
    return np.random.default_rng((SEED, *key))


@cache
def _cells(lane: int) -> Cells:
    stack = LANES[lane]
    curves = list(product(BY_ROLE if stack.disagg else SINGLE, LENGTHS))[:CURVES_PER_RUN]
    rows = list(product(curves, CONCURRENCIES))
    layouts: tuple[tuple[Any, ...], ...] = tuple(layout for (layout, _), _ in rows)
    lengths = np.array([length for (_, length), _ in rows], dtype=float)
    conc = np.array([concurrency for _, concurrency in rows], dtype=float)
    gpus = np.array([sum(_gpus(layout)) for layout in layouts], dtype=float)
    base = _physics(stack, lengths[:, 0], lengths[:, 1], conc, gpus, _random(1, lane))
    return Cells(layouts, lengths[:, 0], lengths[:, 1], conc, gpus, base)


def _gpus(layout: tuple[Any, ...]) -> tuple[int, int]:
    """Return the GPUs of prefill and of decode; all are prefill's where the layout has no roles."""
    return (layout[0], 0) if len(layout) == 3 else (layout[0] * layout[1], layout[4] * layout[5])


def _physics(
    stack: Lane, isl: Floats, osl: Floats, conc: Floats, gpus: Floats, random: np.random.Generator
) -> dict[str, dict[str, Floats]]:
    """Return base values in seconds: a token costs less on more GPUs, more in company; e2el = ttft + tokens x tpot."""
    own = random.uniform(0.9, 1.1, len(conc))
    tpot = 0.016 * own / (stack.speed * np.sqrt(gpus)) * (1 + conc / (24 * gpus)) * (0.6 if stack.mtp else 1.0)
    ttft = 0.02 + isl * 4e-5 * own / (stack.speed * gpus) * (4 + conc / 4)
    medians = {"ttft": ttft, "tpot": tpot, "itl": tpot * (20 if stack.disagg else 1)}
    medians["e2el"] = ttft + (PART_USED * osl - 1) * tpot
    base: dict[str, dict[str, Floats]] = {}
    for metric, median in medians.items():
        ratios = {name: random.uniform(*bounds, len(conc)) for name, bounds in RATIOS[metric].items()}
        base[metric] = {"median": median} | {name: median * ratio for name, ratio in ratios.items()}
    return base


def _exp(x: Floats) -> Floats:
    """exp to the third order, |x| < 0.2: the same bits on every processor, which numpy's own does not promise."""
    return np.asarray(1 + x * (1 + x * (0.5 + x / 6)))


def _speed(lane: int, number: int) -> float:
    """Return the speed of an image beside the lane's own: 1.5 % to and fro, each fifth image 6 %."""
    return float(_exp(_random(2, lane, number).standard_normal(1) * (0.06 if number % 5 == 0 else 0.015)).clip(0.85, 1.15)[0])


def _values(lane: int, generation: str, number: int, run: int) -> list[float]:
    """Return the numbers of a run in the order of its template."""
    metrics = _metrics(lane, generation, _speed(lane, number), _random(3, run))
    columns = np.column_stack([metrics[name] for name in _names(generation)])
    if generation != "late":
        return list(columns.ravel().tolist())
    wanted = np.ones(columns.shape, dtype=bool)
    wanted[:, -len(POWER) :] = _power_valid()[:, None]
    return list(columns[wanted].tolist())


def _power_valid() -> NDArray[np.bool_]:
    """One row of four has power that counts."""
    return np.asarray(np.arange(ROWS_PER_RUN) % 4 == 0)


def _metrics(lane: int, generation: str, speed: float, random: np.random.Generator) -> dict[str, Floats]:
    cells = _cells(lane)
    metrics: dict[str, Floats] = {}
    jitter = {family: SHARED * random.standard_normal(ROWS_PER_RUN) for family in NOISE}
    for metric, base in cells.base.items():
        for name in LATE_STATISTICS if generation == "late" else STATISTICS:
            own = jitter[metric] + 0.6 * random.standard_normal(ROWS_PER_RUN)
            metrics[f"{name}_{metric}"] = base[name] * _exp(NOISE[metric] * own) / speed
            if metric == "tpot":
                metrics[f"{name}_intvty"] = 1 / metrics[f"{name}_tpot"]
    output = cells.conc * PART_USED * cells.osl / cells.base["e2el"]["mean"] / cells.gpus * 0.98 * speed
    for kind, tokens in (("output", cells.osl), ("input", cells.isl)):
        own = jitter["tput"] + 0.6 * random.standard_normal(ROWS_PER_RUN)
        metrics[f"{kind}_tput_per_gpu"] = output * (tokens / cells.osl) * _exp(NOISE["tput"] * own)
    metrics["tput_per_gpu"] = metrics["output_tput_per_gpu"] + metrics["input_tput_per_gpu"]
    return metrics | (_power(cells, metrics, random) if generation == "late" else {})


def _power(cells: Cells, metrics: dict[str, Floats], random: np.random.Generator) -> dict[str, Floats]:
    """Return watts and joules; the benchmark sends ten requests for each of its concurrency."""
    watts = 400 + 500 * cells.conc / (cells.conc + 8 * cells.gpus) * random.uniform(0.98, 1.02, ROWS_PER_RUN)
    energy = watts * cells.gpus * 10 * metrics["mean_e2el"]
    queries = 10 * cells.conc
    by_query = (1, cells.isl * PART_USED, cells.osl * PART_USED, (cells.isl + cells.osl) * PART_USED)
    values = (watts, watts * cells.gpus, energy, *(energy / queries / tokens for tokens in by_query))
    return {name: value.round(digits) for (name, digits), value in zip(POWER.items(), values, strict=True)}


@cache
def _names(generation: str) -> tuple[str, ...]:
    """Return the metrics of a row in their order."""
    names = list(THROUGHPUTS)
    for metric in RATIOS:
        for name in LATE_STATISTICS if generation == "late" else STATISTICS:
            names += [f"{name}_{metric}"] + ([f"{name}_intvty"] if metric == "tpot" else [])
    return (*names, *(POWER if generation == "late" else ()))


@cache
def _order(generation: str) -> tuple[str, ...]:
    """Return the keys of a row in their order."""
    statistics = [name for name in _names(generation) if name not in THROUGHPUTS and name not in POWER]
    last = ("power_valid", *POWER, "power_metric_schema_version", "recipe_fingerprint") if generation == "late" else ()
    return (*ORDER[generation].split(), *statistics, *last)


@lru_cache(maxsize=64)
def _template(lane: int, generation: str, number: int) -> str:
    """Return `agg_bmk.json` with %r for each number; no text of the fleet holds a per cent sign."""
    rows = [_row(lane, cell, generation, number) for cell in range(ROWS_PER_RUN)]
    return json.dumps(rows, indent=2).replace('"%r"', "%r")


def _row(lane: int, cell: int, generation: str, number: int) -> dict[str, Any]:
    facts = _facts(lane, cell, number) | dict.fromkeys(_names(generation), "%r")
    if generation == "late" and not _power_valid()[cell]:
        facts = {key: value for key, value in facts.items() if key not in POWER} | {"power_valid": 0}
    return {key: facts[key] for key in _order(generation) if key in facts}


def _facts(lane: int, cell: int, number: int) -> dict[str, Any]:
    """Return all that any generation says of a cell beside its numbers; a key is absent where it never applies."""
    stack, cells = LANES[lane], _cells(lane)
    return {
        "hw": stack.hw,
        "conc": int(cells.conc[cell]),
        "image": stack.image.format(*divmod(60 + number, 10)),
        "model": stack.model,
        "infmax_model_prefix": stack.prefix,
        "framework": stack.framework,
        "precision": stack.precision,
        "spec_decoding": "mtp" if stack.mtp else "none",
        **({"mtp": "on"} if stack.mtp else {}),
        "disagg": stack.disagg,
        "is_multinode": stack.disagg,
        "isl": int(cells.isl[cell]),
        "osl": int(cells.osl[cell]),
        **(_roles(cells.layouts[cell]) if stack.disagg else _parallel("", *cells.layouts[cell])),
        "power_valid": 1,
        "power_metric_schema_version": 2,
        "recipe_fingerprint": hashlib.sha256(f"{lane} {cell // len(CONCURRENCIES)} {number}".encode()).hexdigest(),
    }


def _parallel(role: str, tp: int, ep: int, attention: bool) -> dict[str, Any]:
    sizes = {"tp": tp, "pp": 1, "dcp_size": 1, "pcp_size": 1, "ep": ep, "dp_attention": str(attention).lower()}
    return {role + key: value for key, value in sizes.items()}


def _roles(layout: tuple[Any, ...]) -> dict[str, Any]:
    prefill, decode = _gpus(layout)
    workers = {"prefill_num_workers": layout[0], "decode_num_workers": layout[4]}
    gpus = {"num_prefill_gpu": prefill, "num_decode_gpu": decode}
    router = {"router": {"name": "dynamo-router", "version": "1.0.1"}, "kv_p2p_transfer": "nixl"}
    return {**_parallel("prefill_", *layout[1:4]), **_parallel("decode_", *layout[5:8]), **workers, **gpus, **router}


def main() -> None:
    """`python bench/fleet.py FOLDER RUNS [FIRST]`."""
    if len(sys.argv) not in (3, 4):
        raise SystemExit("usage: python bench/fleet.py FOLDER RUNS [FIRST]   (143 records a run; 7000 runs are 1M)")
    first = int(sys.argv[3]) if len(sys.argv) == 4 else 0
    print(f"{write_runs(Path(sys.argv[1]), first, int(sys.argv[2])):,} records in {sys.argv[1]}")


if __name__ == "__main__":
    main()
