"""Generate the sample fleet as raw files: runs, upstream repositories, release notes, and the truth.

Belongs here: the order of the parts. Does not: any of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from numpy.random import Generator

from pipelines.demo import noise, physics, records, timeline
from pipelines.demo.fleet import CONCURRENCIES, Curve, Stack, curves
from pipelines.demo.history import read_history
from pipelines.demo.planted import Planted, dump
from pipelines.demo.upstream import PROJECTS, write_project
from warehouse.errors import InputError

FIRST_RUN = 91_000_000_017
RUN_STEP = 7_919
ZIP_EVERY = 40
"""Every so many runs one is written as an archive."""

COLD_WAIT_S = 62.0
"""How long the first burst of a cold point waits, s: what SGLang on B200 showed in public records."""

CHUNK = {"vllm": 1, "sglang": 10, "trtllm": 20}
"""Tokens per streamed chunk: the gap between chunks is that many times TPOT."""

START_HOUR = {"vllm": 6, "sglang": 11, "trtllm": 16}


@dataclass(frozen=True)
class Plan:
    """What was generated: folders to ingest, how much is in them, and the truth."""

    folder: Path
    runs_folder: Path
    upstream: dict[str, Path]
    releases: dict[str, Path]
    planted_file: Path
    runs: int
    points: int
    planted: tuple[Planted, ...]


def generate(folder: Path) -> Plan:
    """Write the sample under *folder* and return what it holds; the same bytes each time.

    Raises InputError where *folder* has something in it already, UpstreamError where git is missing or fails.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: is not an empty folder; name a new one for the sample")
    runs_folder = folder / "runs"
    runs_folder.mkdir(parents=True)
    runs, points = _write_runs(runs_folder)
    repositories, releases = {}, {}
    for project in PROJECTS:
        repositories[project], releases[project] = write_project(folder / "upstream", read_history(project))
    planted = timeline.planted_items()
    dump(planted, folder / "planted.json")
    return Plan(folder, runs_folder, repositories, releases, folder / "planted.json", runs, points, planted)


def _write_runs(folder: Path) -> tuple[int, int]:
    points = 0
    runs = timeline.schedule(noise.generator(0))
    for number, (day, engine, stacks) in enumerate(runs, start=1):
        source = noise.generator(number)
        run = records.run_object(FIRST_RUN + number * RUN_STEP, engine, _start(day, engine, source))
        rows = [row for stack in stacks for row in _rows(stack, day, source)]
        records.write_run(folder, run, rows, zipped=number % ZIP_EVERY == 0)
        points += len(rows)
    return len(runs), points


def _start(day: int, engine: str, source: Generator) -> datetime:
    seconds = int(source.integers(0, 3 * 3600))
    return timeline.FIRST_DAY + timedelta(days=day, hours=START_HOUR[engine], seconds=seconds)


def _rows(stack: Stack, day: int, source: Generator) -> list[dict[str, Any]]:
    common = noise.run_shift(source, stack.noise)
    return [row for curve in curves(stack) for row in _curve_rows(curve, day, source, common)]


def _curve_rows(curve: Curve, day: int, source: Generator, common: float) -> list[dict[str, Any]]:
    draws = noise.draw(source, len(CONCURRENCIES), common, curve.stack.noise)
    image, recipe = timeline.image_of(curve.stack, day), timeline.recipe_of(curve, day)
    return [
        records.row(curve, concurrency, image, recipe, _values(curve, day, place, concurrency, draws))
        for place, concurrency in enumerate(CONCURRENCIES)
    ]


def _values(curve: Curve, day: int, place: int, concurrency: int, draws: noise.Draws) -> dict[str, float]:
    setup, speed = curve.setup, timeline.speed_of(curve, day)
    ttft_s = physics.undisturbed_ttft(setup.ttft_s, concurrency, curve.isl) / speed
    tpot_s = physics.undisturbed_tpot(setup.tpot_s, setup.saturation, concurrency, curve.isl) / speed
    latency = draws.latency(place, ttft_s, tpot_s)
    load = physics.Load(curve.isl, curve.osl, concurrency, setup.tp, CHUNK[curve.stack.engine])
    if concurrency in timeline.cold_concurrencies(curve, day):
        wait = COLD_WAIT_S
    else:
        wait = noise.benign_wait(draws, place, latency, latency.tpot_s * curve.osl)
    return physics.metrics(load, latency, wait)
