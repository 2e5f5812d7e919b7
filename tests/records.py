"""Raw benchmark files in the shape of the real ones, made by hand for the tests of the whole path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def row(concurrency: int = 4, *, image: str = "vllm/vllm-openai:v0.90.0", speed: float = 1.0, **overrides: Any) -> dict[str, Any]:
    """Return one fixed-sequence row; all latencies follow from *speed*, so that throughput and medians agree."""
    tpot = 0.010 * (1 + concurrency / 100) / speed
    ttft = 0.05 / speed
    e2el = ttft + tpot * 1023
    total = concurrency * 2048 / e2el / 8
    return {
        "hw": "h200",
        "conc": concurrency,
        "image": image,
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "infmax_model_prefix": "dsr1",
        "framework": "vllm",
        "precision": "fp8",
        "spec_decoding": "none",
        "disagg": False,
        "isl": 1024,
        "osl": 1024,
        "is_multinode": False,
        "tp": 8,
        "ep": 1,
        "dp_attention": "false",
        "tput_per_gpu": total,
        "output_tput_per_gpu": total / 2,
        "input_tput_per_gpu": total / 2,
        "mean_ttft": ttft * 1.1,
        "median_ttft": ttft,
        "std_ttft": ttft / 5,
        "p99_ttft": ttft * 2,
        "mean_tpot": tpot,
        "median_tpot": tpot,
        "std_tpot": tpot / 50,
        "p99_tpot": tpot * 1.1,
        "mean_intvty": 1 / tpot,
        "median_intvty": 1 / tpot,
        "std_intvty": 50 / tpot,
        "p99_intvty": 0.9 / tpot,
        "mean_itl": tpot,
        "median_itl": tpot,
        "std_itl": tpot,
        "p99_itl": tpot * 3,
        "mean_e2el": e2el,
        "median_e2el": e2el,
        "std_e2el": e2el / 10,
        "p99_e2el": e2el * 1.2,
        **overrides,
    }


def run_object(run_id: int, started_at: str, **overrides: Any) -> dict[str, Any]:
    """Return a run object in the shape of GitHub's."""
    return {
        "id": run_id,
        "run_attempt": 1,
        "name": "Test Sweep",
        "head_branch": "main",
        "event": "push",
        "status": "completed",
        "conclusion": "success",
        "run_started_at": started_at,
        "created_at": started_at,
        "html_url": f"https://example.invalid/runs/{run_id}",
        "repository": {"full_name": "example/fleet"},
        **overrides,
    }


def write_run(folder: Path, run_id: int, started_at: str, rows: list[Any]) -> Path:
    """Write `run_<id>/agg_bmk.json` and its `run.json` under *folder* and return the run's folder."""
    place = folder / f"run_{run_id}"
    place.mkdir(parents=True)
    (place / "agg_bmk.json").write_text(json.dumps(rows, indent=2), "utf-8")
    (place / "run.json").write_text(json.dumps(run_object(run_id, started_at)), "utf-8")
    return place


def sweep(**overrides: Any) -> list[dict[str, Any]]:
    """Return one curve: the rows of five concurrencies."""
    return [row(concurrency, **overrides) for concurrency in (4, 8, 16, 32, 64)]
