"""The page in a real browser, headless and without network: charts are drawn, nothing fails, nothing is injected."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.report.page import ReportLabels, write
from tests import frames

HOSTILE = "</script><img src=x onerror=alert(1)>@maintainer\x1b[31m\u202e"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=10000",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
SVGS_A_CHART = 3
"""Plotly draws a chart as three `main-svg` layers, fewer where it has no legend or no mode bar."""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and os.environ.get("CI"):
        pytest.fail("chromium is not installed, and CI must run the browser tests: apt-get install chromium")
    return found or pytest.skip("chromium is not installed: apt-get install chromium")


def fleet() -> dict[str, pl.DataFrame]:
    points = [
        frames.point(
            point_id=f"{curve}{day}{c}",
            curve_id=curve,
            run_id=str(day),
            measured_at=frames.day(day),
            concurrency=c,
            tput_per_gpu=100.0 * c * (1 if day < 5 else 0.92),
            steady_output_tput_per_gpu=50.0 * c * (1 if day < 5 else 0.92),
            verdict="unfit" if day == 2 else "fit",
            **frames.build_of("0.90.0" if day < 5 else "0.91.0"),
        )
        for curve in ("one", "two")
        for day in range(10)
        for c in (4, 16, 64)
    ]
    sides = {"from_measured_at": frames.day(4), "to_measured_at": frames.day(5)}
    moves = [
        frames.diff(diff_id=f"d{curve}", curve_id=curve, engine=engine, **sides)
        for curve, engine in (("one", "vllm"), ("three", "sglang"))
    ]
    shifts = [
        frames.shift(shift_id="s0", curve_id="one", **sides, status_reason=HOSTILE),
        frames.shift(shift_id="s1", curve_id="two", attribution="measurement", **sides),
    ]
    return {
        "points": frames.frame("points", points),
        "diffs": frames.frame("diffs", moves),
        "shifts": frames.frame("shifts", shifts),
        "noise": frames.frame("noise", [frames.noise()]),
        "builds": frames.frame("builds", [frames.build(tag=HOSTILE)]),
        "links": frames.frame("links", [frames.link(title=HOSTILE, evidence=[HOSTILE])]),
        "quarantine": frames.frame("quarantine", [frames.quarantined(name=HOSTILE, excerpt=HOSTILE)]),
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: Any) -> Path:
    return write(
        fleet(),
        tmp_path_factory.mktemp("page"),
        title=f"Shifts {HOSTILE}",
        labels=ReportLabels(generated=True),
        planted=[{"kind": HOSTILE}],
    )


def dom(browser: str, page: Path, folder: Path, fragment: str = "") -> str:
    command = [browser, *FLAGS, f"--user-data-dir={folder}", "--dump-dom", f"{page.as_uri()}{fragment}"]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True).stdout


def states(text: str) -> tuple[int, int, int]:
    """Return (charts drawn, faults of scripts or of the security policy, Plotly layers in the document)."""
    head = re.search(r"<html[^>]*>", text)
    assert head is not None
    told = dict(re.findall(r'data-(\w+)="(\d+)"', head[0]))
    body = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    return int(told["ready"]), int(told["faults"]), body.count('class="main-svg"')


def test_the_first_engine_shift_and_the_velocity_are_drawn_without_network(browser, page, tmp_path):
    text = dom(browser, page, tmp_path)
    drawn, faults, layers = states(text)
    assert (drawn, faults) == (3, 0)  # the open shift, and the velocity of two engines
    assert 2 * drawn <= layers <= SVGS_A_CHART * drawn


@pytest.mark.parametrize("fragment", ["#curve-two", "#shift-s1"])
def test_a_curve_or_a_shift_that_the_address_names_is_opened_and_drawn(browser, page, tmp_path, fragment):
    drawn, faults, _ = states(dom(browser, page, tmp_path, fragment))
    assert (drawn, faults) == (4, 0)


def test_strangers_text_makes_no_element(browser, page, tmp_path):
    text = dom(browser, page, tmp_path, "#shift-s0")
    body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert "<img" not in body and "onerror=alert(1)&gt;" in body
    assert "\x1b" not in body and "\u202e" not in body
    assert len(re.findall(r"<script", text)) == len(re.findall(r"<script", page.read_text("utf-8")))


def test_build_marks_hollow_points_and_both_sides_are_in_the_drawing(browser, page, tmp_path):
    body = re.sub(r"<(script|style).*?</\1>", "", dom(browser, page, tmp_path), flags=re.DOTALL)
    for label in ("0.90.0", "0.91.0", "earlier", "later", "4 concurrent", "64 concurrent"):
        assert re.search(rf"<text[^>]*>{label}</text>", body), label
