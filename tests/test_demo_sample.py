"""The generated files: real shape, the same bytes each time, noise as measured, and the planted steps and nothing else."""

import hashlib
import json
import math
import zipfile
from collections import defaultdict
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from pipelines.demo.planted import load
from pipelines.demo.sample import generate
from warehouse.errors import InputError
from warehouse.image import parse

REAL_RUNS = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "runs"

# Written by hand from the plan of the sample: day, engine, GPUs, curves, change of speed in %, cause, pull request.
TRUTH = {
    "vllm-0.91-flat": ("2026-01-13", "vllm", {"h100", "b200", "mi300x", "mi355x"}, 13, 0, None, None),
    "sglang-b200-fp8-cold": ("2026-01-15", "sglang", {"b200"}, 1, None, "measurement", None),
    "sglang-0.9.1-moe": ("2026-01-21", "sglang", {"h100", "b200"}, 8, 10, "engine", 80110),
    "trtllm-rc2-flat": ("2026-01-27", "trtllm", {"h100", "b200"}, 9, 0, None, None),
    "vllm-0.92-rocm": ("2026-01-31", "vllm", {"mi355x"}, 4, -8, "engine", 90157),
    "sglang-mi300x-tag": ("2026-02-06", "sglang", {"mi300x"}, 3, -7, "engine", None),
    "trtllm-recipe-dsr1": ("2026-02-10", "trtllm", {"b200"}, 3, -6.5, "recipe", None),
    "trtllm-recipe-gptoss": ("2026-02-10", "trtllm", {"b200"}, 3, 7, "recipe", None),
    "sglang-0.9.2-flat": ("2026-02-14", "sglang", {"h100", "b200", "mi355x"}, 11, 0, None, None),
    "sglang-b200-fp4-cold": ("2026-02-22", "sglang", {"b200"}, 1, None, "measurement", None),
}
MODELS = {"dsr1": "dsr1", "gptoss": "gptoss120b"}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trt": "trtllm"}


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("demo") / "sample")


def read_run(path):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return tuple(json.loads(archive.read(f"{path.stem}/{name}")) for name in ("run.json", "agg_bmk.json"))
    return tuple(json.loads((path / name).read_text()) for name in ("run.json", "agg_bmk.json"))


@pytest.fixture(scope="module")
def runs(plan):
    found = [read_run(path) for path in plan.runs_folder.iterdir()]
    return sorted(found, key=lambda run: run[0]["run_started_at"])


@pytest.fixture(scope="module")
def rows(runs):
    return [row for _, rows in runs for row in rows]


@pytest.fixture(scope="module")
def curves(runs):
    """Curve → list of (day, {concurrency: row}) in order of time."""
    series = defaultdict(list)
    for run, run_rows in runs:
        cells = defaultdict(dict)
        for row in run_rows:
            gpu = row["hw"].split("-")[0]
            key = (ENGINES[row["framework"]], gpu, MODELS[row["infmax_model_prefix"]], row["precision"], row["isl"], row["osl"])
            assert row["conc"] not in cells[key]
            cells[key][row["conc"]] = row
        for key, points in cells.items():
            series[key].append((run["run_started_at"][:10], points))
    return dict(series)


def setup_of(points):
    row = points[4]
    return row["image"], row.get("recipe_fingerprint")


def changes(before, after, metric):
    return np.array([math.log(after[conc][metric] / before[conc][metric]) for conc in sorted(before)])


def level(observations, metric):
    """Median over concurrencies of the median over observations, log."""
    return median(median(math.log(points[conc][metric]) for points in observations) for conc in (4, 8, 16, 32, 64, 128))


def key_of(curve):
    return (curve.engine, curve.hardware, curve.model, curve.precision, curve.isl, curve.osl)


def tree(folder):
    """Hash of every file but git's own, which hold the same objects in packs that depend on git's version."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not (path.is_relative_to(folder / "upstream") and path.parent != folder / "upstream")
    }


def test_same_bytes_twice(plan, tmp_path):
    again = generate(tmp_path / "again")
    first = tree(plan.folder)
    assert len(first) > 250
    assert tree(again.folder) == first


def test_a_folder_with_content_is_refused(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        generate(tmp_path)
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_size_and_span(plan, runs, rows):
    assert 8_000 <= len(rows) <= 12_000
    assert plan.points == len(rows)
    assert plan.runs == len(runs)
    days = {run["run_started_at"][:10] for run, _ in runs}
    assert min(days) == "2026-01-01"
    assert max(days) == "2026-03-01"  # the sixtieth day
    assert {row["framework"] for row in rows} == {"vllm", "sglang", "trt"}
    assert {row["hw"].split("-")[0] for row in rows} == {"h100", "b200", "mi300x", "mi355x"}
    assert not any(row["framework"] == "trt" and row["hw"].startswith("mi") for row in rows)


def test_stacks_run_on_about_two_of_three_days_with_gaps(runs):
    days = defaultdict(set)
    for run, run_rows in runs:
        for row in run_rows:
            days[row["framework"], row["hw"]].add(date.fromisoformat(run["run_started_at"][:10]))
    assert len(days) == 10
    for seen in days.values():
        assert 0.5 <= len(seen) / 60 <= 0.85
        ordered = sorted(seen)
        assert max((b - a).days for a, b in pairwise(ordered)) >= 4


def test_run_objects_say_that_they_are_generated(runs):
    ids = [run["id"] for run, _ in runs]
    assert ids == sorted(set(ids))
    for run, _ in runs:
        assert run["name"].startswith("GENERATED SAMPLE")
        assert run["repository"]["full_name"] == "example/sample-fleet"
        assert run["html_url"].startswith("https://example.invalid/")


def test_rows_have_the_keys_and_types_of_real_rows(rows):
    if not REAL_RUNS.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    real = [row for path in sorted(REAL_RUNS.glob("*/agg_bmk.json")) for row in json.loads(path.read_text())]
    single = next(row for row in real if not row["is_multinode"])
    for row in rows:
        assert [name for name in row if name != "recipe_fingerprint"] == list(single)
        assert ("recipe_fingerprint" in row) == (row["framework"] == "trt")
        assert all(type(row[name]) is type(value) for name, value in single.items())


def test_run_objects_have_the_keys_of_real_ones(runs):
    if not REAL_RUNS.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    real = json.loads(next(iter(sorted(REAL_RUNS.glob("*/run.json")))).read_text())
    assert all(set(run) == set(real) for run, _ in runs)


def test_images_are_read_as_they_were_meant(rows):
    images = {row["image"] for row in rows}
    assert any("#" in image for image in images)
    versions = {(parse(image).engine, parse(image).version) for image in images}
    assert versions == {
        ("vllm", "0.90.0"),
        ("vllm", "0.91.0"),
        ("vllm", "0.92.0"),
        ("sglang", "0.9.0"),
        ("sglang", "0.9.1"),
        ("sglang", "0.9.2"),
        ("sglang", None),
        ("trtllm", "9.0.0rc1"),
        ("trtllm", "9.0.0rc2"),
    }
    moving = {parse(image) for image in images if "@" in image}
    assert len({reference.digest for reference in moving}) == 2
    assert {reference.tag for reference in moving} == {"dev-mi300x"}


def test_some_runs_are_archives_with_fixed_times(plan):
    archives = sorted(plan.runs_folder.glob("*.zip"))
    assert 2 <= len(archives) <= 10
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            assert {member.date_time for member in archive.infolist()} == {(2026, 1, 1, 0, 0, 0)}
            assert set(archive.namelist()) == {f"{path.stem}/agg_bmk.json", f"{path.stem}/run.json"}


def test_numbers_have_nine_digits_and_agree(rows):
    for row in rows:
        assert all(value == float(f"{value:.9g}") for value in row.values() if isinstance(value, float))
        in_flight = row["output_tput_per_gpu"] * row["tp"] * row["mean_e2el"] / row["conc"] / row["osl"]
        assert in_flight == pytest.approx(0.9 * 0.978, rel=1e-6)
        assert row["median_intvty"] == pytest.approx(1 / row["median_tpot"], rel=1e-6)


def test_truth_file_says_what_was_planned(plan):
    items = {item.key: item for item in load(plan.planted_file)}
    assert set(items) == set(TRUTH)
    assert tuple(items.values()) == plan.planted
    for key, (day, engine, gpus, count, size, cause, pr) in TRUTH.items():
        item = items[key]
        assert (item.day, item.engine, set(item.hardware), len(item.curves)) == (day, engine, gpus, count)
        assert (item.attribution, item.pr) == (cause, pr)
        assert size is None or item.size_pct == size
        assert item.direction == ("regression" if item.size_pct < 0 else "speedup" if item.size_pct else "none")


def test_truth_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "planted.json"
    path.write_text('[{"key": 1}]')
    with pytest.raises(InputError, match=r"planted\.json"):
        load(path)
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "absent.json")


@pytest.mark.parametrize("key", [key for key, truth in TRUTH.items() if truth[4] is not None])
def test_planted_steps_are_in_the_files_and_stay(plan, curves, key):
    """The level of eight observations after the day, over the level of eight before it, without any code of the sample."""
    day, _, _, _, size, _, _ = TRUTH[key]
    item = next(item for item in plan.planted if item.key == key)
    assert len(item.curves) == TRUTH[key][3]
    steps = []
    for curve in item.curves:
        series = curves[key_of(curve)]
        before = [points for seen, points in series if seen < day][-8:]
        after = [points for seen, points in series if seen >= day][:8]
        assert any(seen == day for seen, _ in series)
        for metric, sign in (("tput_per_gpu", 1), ("median_tpot", -1), ("median_e2el", -1), ("median_ttft", -1)):
            step = 100 * (math.exp(sign * (level(after, metric) - level(before, metric))) - 1)
            assert step == pytest.approx(size, abs=4 if metric == "median_ttft" else 1.6), (curve, metric)
            if metric == "tput_per_gpu":
                steps.append(step)
    assert median(steps) == pytest.approx(size, abs=0.8)


def test_each_step_changes_what_it_should(plan, curves):
    """An engine step changes the image, the moved tag only its digest, a recipe change only the fingerprint."""
    for item in plan.planted:
        for curve in item.curves:
            series = curves[key_of(curve)]
            image, recipe = setup_of([points for seen, points in series if seen < item.day][-1])
            new_image, new_recipe = setup_of(next(points for seen, points in series if seen >= item.day))
            assert (image != new_image) == (item.kind in ("engine_regression", "engine_speedup", "moved_tag", "flat_bump"))
            assert (recipe != new_recipe) == (item.kind == "recipe_change")
            if item.kind == "moved_tag":
                assert image.split("@")[0] == new_image.split("@")[0]


def test_nothing_else_changes(curves):
    """Image and recipe only change on planted days, and steady speed only moves with a planted step."""
    steps = {truth[0] for truth in TRUTH.values() if truth[4]}
    days = {truth[0] for truth in TRUTH.values()}
    for key, series in curves.items():
        for (_, before), (day, after) in pairwise(series):
            if setup_of(before) != setup_of(after):
                assert day in days
            moved = abs(median(changes(before, after, "median_e2el")))
            assert moved < 0.03 or (day in steps and setup_of(before) != setup_of(after)), (key, day)


def test_noise_is_as_on_real_repeats(curves):
    cells, medians = defaultdict(list), defaultdict(list)
    for series in curves.values():
        for (_, before), (_, after) in pairwise(series):
            if setup_of(before) == setup_of(after):
                for metric in ("median_tpot", "median_ttft"):
                    moved = changes(before, after, metric)
                    cells[metric].extend(100 * abs(moved))
                    medians[metric].append(100 * abs(np.median(moved)))
    assert len(medians["median_tpot"]) > 1000
    assert 0.3 < np.median(cells["median_tpot"]) < 0.6  # real: 0.4 %
    assert 1 < np.quantile(cells["median_tpot"], 0.9) < 2.5  # real: 2.1 %
    assert 4 < np.quantile(cells["median_tpot"], 0.99) < 20  # real: 16.8 %; a normal law would give 1.6 %
    assert 0.25 < np.median(medians["median_tpot"]) < 0.5  # real: 0.3 %
    assert 0.6 < np.quantile(medians["median_tpot"], 0.9) < 2  # real: 1.8 %
    assert 2 < np.median(cells["median_ttft"]) < 3.5  # real: 2.7 %


def test_single_points_stand_out_without_their_curve(curves):
    lonely = 0
    for series in curves.values():
        for (_, before), (_, after) in pairwise(series):
            moved = changes(before, after, "median_tpot")
            lonely += bool(max(abs(moved)) > 0.08 and abs(median(moved)) < 0.02)
    assert lonely > 20


def is_hot(row):
    return row["mean_ttft"] >= 3 * row["median_ttft"]


def test_cold_cells_meet_the_definition_and_no_others(plan, curves):
    cold = {
        (key, day, conc)
        for key, series in curves.items()
        for day, points in series
        for conc, row in points.items()
        if is_hot(row) and row["mean_e2el"] >= 1.1 * row["median_e2el"]
    }
    expected = {
        (key_of(item.curves[0]), item.day, conc)
        for item in plan.planted
        if item.kind == "cold_start"
        for conc in item.cold_concurrencies
    }
    assert cold == expected
    assert len(cold) == 7
    assert {key[:2] for key, _, _ in cold} == {("sglang", "b200")}


def test_cold_starts_move_reported_throughput_and_nothing_steady(plan, curves):
    for item in plan.planted:
        if item.kind != "cold_start":
            continue
        series = curves[key_of(item.curves[0])]
        place = next(place for place, (day, _) in enumerate(series) if day == item.day)
        before, during, after = (series[place + step][1] for step in (-1, 0, 1))
        cold = [math.log(during[conc]["tput_per_gpu"] / before[conc]["tput_per_gpu"]) for conc in item.cold_concurrencies]
        assert 100 * (math.exp(median(cold)) - 1) == pytest.approx(item.size_pct, abs=6)
        assert median(changes(before, during, "tput_per_gpu")) < -0.1
        for metric in ("median_e2el", "median_tpot"):
            assert abs(median(changes(before, during, metric))) < 0.02
        assert abs(median(changes(before, after, "tput_per_gpu"))) < 0.02


def test_benign_bursts_are_common_and_harmless(rows):
    hot = [row for row in rows if is_hot(row) and row["mean_e2el"] < 1.1 * row["median_e2el"]]
    assert 0.02 < len(hot) / len(rows) < 0.25
    assert all(row["mean_e2el"] < 1.03 * row["median_e2el"] for row in hot)
