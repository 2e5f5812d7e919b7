"""Figures as plain data: right values, right marks, valid for Plotly, deaf to strangers' markup."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest

from pipelines.report import charts
from pipelines.report.velocity import velocity
from tests import frames


def history(*points: dict[str, Any]) -> charts.Figure:
    figure = charts.history(frames.frame("points", list(points)))
    go.Figure(figure)  # raises on a property that Plotly does not have
    return figure


def test_one_trace_a_concurrency_in_order_with_both_metrics():
    figure = history(
        *(
            frames.point(
                concurrency=c,
                run_id=str(d),
                measured_at=frames.day(d),
                tput_per_gpu=100.0 * c + d,
                steady_output_tput_per_gpu=50.0 * c + d,
            )
            for d in (1, 0)
            for c in (16, 4)
        )
    )
    assert [trace["name"] for trace in figure["data"]] == ["4 concurrent", "16 concurrent"]
    assert figure["data"][0]["x"] == ["2026-01-01T06:00:00", "2026-01-02T06:00:00"]
    assert [point[:2] for point in figure["data"][1]["customdata"]] == [[1600, 800], [1601, 801]]
    assert figure["data"][1]["y"] == [800, 801]


def test_the_base_is_the_median_of_the_fit_points_of_the_first_build():
    rows = [(0, "0.90.0", 100.0, "fit"), (1, "0.90.0", 104.0, "fit"), (2, "0.90.0", 900.0, "unfit"), (3, "0.91.0", 500.0, "fit")]
    figure = history(
        *(
            frames.point(
                measured_at=frames.day(d),
                run_id=str(d),
                tput_per_gpu=value,
                steady_output_tput_per_gpu=None,
                health=["cold_start", "failures"] if verdict == "unfit" else [],
                verdict=verdict,
                **frames.build_of(version),
            )
            for d, version, value, verdict in rows
        )
    )
    (trace,) = figure["data"]
    assert trace["meta"]["base"] == [102, None]
    assert trace["marker"]["symbol"] == ["circle", "circle", "circle-open", "circle"]
    assert trace["customdata"][2][5] == ", unfit for comparison: cold start, failed requests"


def test_a_build_is_marked_where_it_begins_and_again_where_it_comes_back():
    order = ["0.90.0", "0.90.0", "0.91.0", "0.90.0"]
    figure = history(*(frames.point(measured_at=frames.day(d), run_id=str(d), **frames.build_of(v)) for d, v in enumerate(order)))
    assert [line["x0"][:10] for line in figure["layout"]["shapes"]] == ["2026-01-01", "2026-01-03", "2026-01-04"]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["0.90.0", "0.91.0", "0.90.0"]


def test_builds_with_one_name_are_told_apart_by_digest_and_crowded_labels_are_left_out():
    def moved(n: int) -> dict[str, Any]:
        return frames.point(
            measured_at=frames.day(n),
            run_id=str(n),
            build_id=f"digest:{n}",
            image_ref="lmsysorg/sglang:dev",
            image_digest=f"sha256:{n:0<64}",
            engine_version=None,
        )

    assert [note["text"] for note in history(moved(1), moved(2))["layout"]["annotations"]] == [
        "dev @100000000000",
        "dev @200000000000",
    ]
    crowded = history(*(moved(n) for n in range(charts.MAX_LABELS + 1)))
    assert crowded["layout"]["annotations"] == [] and len(crowded["layout"]["shapes"]) == charts.MAX_LABELS + 1


def test_only_the_latest_observations_are_drawn():
    rows = [
        frames.point(measured_at=frames.day(d), run_id=str(d), concurrency=c)
        for d in range(charts.MAX_OBSERVATIONS + 5)
        for c in (4, 8)
    ]
    figure = history(*rows)
    assert [len(trace["x"]) for trace in figure["data"]] == [charts.MAX_OBSERVATIONS] * 2
    assert figure["data"][0]["x"][0] == "2026-01-06T06:00:00"


def test_a_point_without_time_concurrency_or_number_does_no_harm():
    figure = history(frames.point(measured_at=None), frames.point(concurrency=None), frames.point(tput_per_gpu=float("nan")))
    assert [trace["customdata"][0][0] for trace in figure["data"]] == [None]
    assert history() == {"data": [], "layout": {"shapes": [], "annotations": []}}


def test_strangers_text_is_no_markup_in_a_chart():
    assert charts.chart_text('<a href="https://x">&\u202e') == '&lt;a href="https://x"&gt;&amp;\ufffd'
    figure = history(frames.point(engine_version="<b>1</b>", run_id="<i>"))
    assert figure["data"][0]["customdata"][0][2:4] == ["&lt;b&gt;1&lt;/b&gt;", "&lt;i&gt;"]


def test_velocity_draws_a_step_line_with_noise_bars_and_a_gap_where_nothing_leads_on():
    def move(start: int, old: str, new: str) -> dict[str, Any]:
        sides = {
            f"{side}_{name}": value
            for side, version, at in (("from", old, start), ("to", new, start + 1))
            for name, value in {**frames.build_of(version), "measured_at": frames.day(at)}.items()
        }
        return frames.diff(diff_id=old, steady_pct=10.0, **sides)

    levels = velocity(
        frames.frame("diffs", [move(0, "1.0", "1.1"), move(4, "2.0", "2.1")]),
        frames.frame("shifts"),
        frames.frame("noise", [frames.noise(scale=0.01)]),
    )
    ((engine, figure),) = charts.velocity(levels)
    go.Figure(figure)
    (line,) = figure["data"]
    assert (engine, line["name"], line["line"]["shape"]) == ("vllm", "MI355X · DeepSeek-R1 FP8", "hv")
    assert line["y"] == [100, 110, None, 110, 121, 121]
    # 2.3534 * 0.01 * sqrt(2) = 0.033282; 110 * (e^0.033282 - 1) = 3.7226
    assert line["error_y"]["array"][1] == pytest.approx(3.7226, rel=1e-3)
    assert (
        len({len(line[name]) for name in ("x", "y", "customdata")} | {len(line["marker"]["size"]), len(line["error_y"]["array"])})
        == 1
    )


def test_no_chart_can_send_its_data_anywhere():
    assert (
        charts.CONFIG["showSendToCloud"] is False
        and charts.CONFIG["plotlyServerURL"] == ""
        and charts.CONFIG["displaylogo"] is False
    )
