"""The noise floors as people read them, and which curves a detection compared with nothing."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines import coverage, summaries
from pipelines.answers import noise_scales
from tests import frames
from warehouse.errors import InputError
from warehouse.store import Mark, Store

VERSION = "0123456789abcdef"
KNOWN = {"until": "2026-01-05", "version": VERSION}


def stored(place: Path, **tables: list[frames.Row]) -> Store:
    store = Store(str(place / "warehouse"))
    for name, rows in tables.items():
        store.overwrite(name, frames.frame(name, rows), Mark(1))
    return store


@pytest.fixture(scope="module")
def floors(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A line with one repeat, its stack with fourteen, another engine's on another accelerator, and all."""
    rows = [
        frames.noise(level="line", framework="vllm", precision="fp8", deployment="single", repeats=1, raw_scale=None, **KNOWN),
        frames.noise(**KNOWN),
        frames.noise(engine="sglang", hardware="b200", metric="tpot_median", repeats=3, **KNOWN),
        frames.noise(level="global", engine=None, hardware=None, repeats=30, scale=0.0035, **KNOWN),
    ]
    return stored(tmp_path_factory.mktemp("noise"), noise=rows)


def test_scales_come_widest_level_first_in_percent(floors: Store) -> None:
    found = noise_scales(floors)
    assert [row["level"] for row in found] == ["global", "stack", "stack", "line"]
    assert found[0]["scale_pct"] == pytest.approx(0.35)
    assert (found[3]["raw_scale_pct"], found[3]["insufficient"], found[0]["insufficient"]) == (None, True, False)
    assert {row["version"] for row in found} == {VERSION}


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"engine": "vllm"}, 2),
        ({"hardware": "B200"}, 1),
        ({"hardware": "B200", "engine": "vllm"}, 0),
        ({"metric": "tpot_median"}, 1),
        ({}, 4),
    ],
)
def test_filters(floors: Store, wanted: dict[str, str], count: int) -> None:
    assert len(noise_scales(floors, **wanted)) == count


def test_a_metric_without_a_floor_is_refused_by_name(floors: Store) -> None:
    with pytest.raises(InputError, match="--metric 'power' has no noise floor; use one of tput_per_gpu, "):
        noise_scales(floors, metric="power")


def test_the_table_says_which_repeats_are_insufficient(floors: Store, capsys: pytest.CaptureFixture[str]) -> None:
    summaries.out_noise(noise_scales(floors, engine="vllm"), "table")
    shown = capsys.readouterr()
    assert [" ".join(line.split()) for line in shown.out.splitlines()[2:]] == [
        "stack vllm mi355x steady_output_tput_per_gpu curve 0.60 0.50 14 2026-01-05 01234567",
        "line vllm mi355x vllm fp8 single steady_output_tput_per_gpu curve 0.60 – 1 (insufficient) 2026-01-05 01234567",
    ]
    assert shown.err == "2 rows\n"


def test_no_floors_are_told_as_such(floors: Store, capsys: pytest.CaptureFixture[str]) -> None:
    summaries.out_noise([], "table")
    assert capsys.readouterr().err == "0 rows; no same-image repeats of it are on record, so a prior stands\n"
    summaries.out_noise([], "csv")
    assert capsys.readouterr().out == "level\n"


def test_json_and_csv_hold_the_same(floors: Store, capsys: pytest.CaptureFixture[str]) -> None:
    summaries.out_noise(noise_scales(floors), "json")
    objects = json.loads(capsys.readouterr().out)
    summaries.out_noise(noise_scales(floors), "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["level"] for row in rows] == [row["level"] for row in objects]
    assert list(rows[0]) == list(objects[0])


def seen(curve: str, run: str, load: int = 4, **changed: Any) -> frames.Row:
    """Return a point of one run; every run a day later."""
    name = f"{curve}/{run}/{load}"
    at = frames.day(int(run))
    return frames.point(
        curve_id=curve,
        run_id=run,
        concurrency=load,
        point_id=name,
        record_hash=name,
        measured_at=at,
        run_started_at=at,
        **changed,
    )


def both(curve: str, *loads: int, **changed: Any) -> list[frames.Row]:
    return [seen(curve, run, load, **changed) for run in ("1", "2") for load in loads]


CURVES: dict[str, tuple[str, list[frames.Row]]] = {
    "once": (coverage.ONCE, [seen("once", "1", load) for load in (4, 8)]),
    "definitions": (
        coverage.DEFINITIONS,
        [seen("definitions", run, load, metric_definition=run) for run in ("1", "2") for load in (4, 8)],
    ),
    "apart": (
        coverage.NOTHING_SHARED,
        [seen("apart", "1", 4), seen("apart", "1", 8), seen("apart", "2", 16), seen("apart", "2", 32)],
    ),
    "alone": (coverage.ALONE, both("alone", 4)),
    "one": (coverage.ONE_SHARED, [*both("one", 4), seen("one", "1", 8)]),
    "unfit": (coverage.ALL_UNFIT, both("unfit", 4, 8, verdict="unfit")),
    "numbers": (coverage.NO_NUMBERS, both("numbers", 4, 8, tput_per_gpu=None, steady_output_tput_per_gpu=None)),
}


@pytest.mark.parametrize("curve", CURVES)
def test_every_reason_why_a_curve_is_not_compared(tmp_path: Path, curve: str) -> None:
    reason, points = CURVES[curve]
    assert coverage.uncompared(stored(tmp_path, points=points)) == ({reason: 1}, 1)


def test_the_summary_tells_how_many_curves_were_not_compared_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = [*both("known", 4, 8), *CURVES["once"][1], *CURVES["unfit"][1], seen("unfit2", "1")]
    store = stored(tmp_path, points=points, diffs=[frames.diff(curve_id="known")], shifts=[frames.shift(curve_id="known")])
    summaries.say_detection(store, None)
    assert capsys.readouterr().err == (
        "1 comparison: 1 shift, 1 attributed to an engine build, 1 confirmed, 0 measurement notices\n"
        "  not compared: 3 of 4 curves: 2 measured once, 1 with nothing but unfit points\n"
    )


def test_no_comparison_never_stands_without_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Points that were retracted, or that say once more what another run says, do not count."""
    points = [seen("gone", "1", retraction="wrong"), seen("copy", "1", reused=True)]
    summaries.say_detection(stored(tmp_path, points=points, diffs=[], shifts=[]), 0)
    assert "  not compared: there are no points that count\n" in capsys.readouterr().err


def test_a_curve_that_is_compared_needs_no_reason(tmp_path: Path) -> None:
    store = stored(tmp_path, points=both("known", 4, 8), diffs=[frames.diff(curve_id="known")])
    assert coverage.uncompared(store) == ({}, 1)
