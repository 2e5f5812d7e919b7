"""Figures of the page as plain Plotly data: the history of a curve, and the velocity of an engine.

The page's script draws them when they come into view, gives them the colours of the reader's theme, and derives the view that
the reader asked for (relative or absolute, steady or reported) from `customdata`; so a figure here has data and marks, no style.
Text from strangers is escaped, because Plotly reads `<b>` and `<a href>` in it as markup.

Belongs here: what is drawn. Does not: how it looks (`page.css`, `page.js`), how levels of builds are found (`velocity`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from html import escape
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl
from plotly.offline import get_plotlyjs

from pipelines.detect.observations import LOAD, load_of
from pipelines.report import words
from pipelines.report.velocity import GROUP

Figure = dict[str, Any]

CONFIG = {
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["lasso2d", "select2d"],
}
"""Plotly's mode bar else has a button that uploads the figure to the vendor's cloud."""
MAX_OBSERVATIONS = 400
"""Observations of one curve that are drawn; the latest ones."""
MAX_LABELS = 10
"""Build marks of one chart that get a label; beyond, only the lines are drawn."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "star", "x")
OBSERVATION = ("measured_at", "run_source", "run_id", "run_attempt")
HISTORY = (
    *OBSERVATION,
    "build_id",
    "image_ref",
    "image_digest",
    "engine_version",
    *LOAD,
    "tput_per_gpu",
    "steady_output_tput_per_gpu",
    "health",
    "verdict",
)
"""Columns of `points` that a history needs."""
HOVER = (
    "%{fullData.name}: %{y:.4~g}<br>reported %{customdata[0]} tok/s/GPU, steady %{customdata[1]} tok/s/GPU"
    "<br>build %{customdata[2]}, run %{customdata[3]}%{customdata[5]}<extra></extra>"
)


def library() -> str:
    """Return plotly.js, the text of the library itself."""
    return str(get_plotlyjs())


def moment(at: datetime) -> str:
    """Return an instant as Plotly's date axis takes it (UTC, without a zone, because Plotly has none)."""
    return f"{at:%Y-%m-%dT%H:%M:%S}"


def history(points: pl.DataFrame) -> Figure:
    """Return the history of one curve: *points* has the columns of HISTORY, and one trace is drawn a concurrency.

    A point's `customdata` is [reported, steady, build, run, fit, remark]; `meta` holds, for both metrics, the median of
    the fit points of the first build, which the relative view is against.
    """
    timed = points.filter(pl.col("measured_at").is_not_null() & pl.any_horizontal(pl.col(LOAD).is_not_null()))
    kept = timed.select(OBSERVATION).unique().sort(OBSERVATION).tail(MAX_OBSERVATIONS)
    rows = timed.join(kept, on=OBSERVATION, how="semi", nulls_equal=True).sort(*OBSERVATION, *LOAD).to_dicts()
    names = _build_names(rows)
    cells: dict[float, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(load_of(row), []).append(row)
    traces = [_trace(rank, len(cells), cells[load], names) for rank, load in enumerate(sorted(cells))]
    return {"data": traces, "layout": _marks(rows, names)}


def _trace(rank: int, of: int, rows: list[dict[str, Any]], names: dict[str, str]) -> Figure:
    symbol = SYMBOLS[rank % len(SYMBOLS)]
    symbols = [symbol if _fit(row) else f"{symbol}-open" for row in rows]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _load(rows[0]),
        "x": [moment(row["measured_at"]) for row in rows],
        "y": [_rounded(row["steady_output_tput_per_gpu"]) for row in rows],
        "customdata": [_details(row, names) for row in rows],
        "marker": {"symbol": symbol if all(map(_fit, rows)) else symbols},
        "hovertemplate": HOVER,
        "meta": {"tone": rank / max(1, of - 1), "base": _bases(rows)},
    }


def _load(row: dict[str, Any]) -> str:
    return f"{row['request_rate']:g} requests/s" if row["concurrency"] is None else f"{row['concurrency']} concurrent"


def _fit(row: dict[str, Any]) -> bool:
    return bool(row["verdict"] in (None, "fit"))


def _details(row: dict[str, Any], names: dict[str, str]) -> list[Any]:
    return [
        _rounded(row["tput_per_gpu"]),
        _rounded(row["steady_output_tput_per_gpu"]),
        names[row["build_id"]],
        chart_text(row["run_id"]),
        int(_fit(row)),
        _remark(row),
    ]


def _remark(row: dict[str, Any]) -> str:
    """Return in short why a point is not fit for comparison, where it is not."""
    if _fit(row):
        return ""
    reasons = ", ".join(chart_text(words.finding(reason).partition(" (")[0]) for reason in row["health"] or ())
    return f", {chart_text(row['verdict'])} for comparison{': ' if reasons else ''}{reasons}"


def _bases(rows: list[dict[str, Any]]) -> list[float | None]:
    first = next((row["build_id"] for row in rows if _fit(row)), None)
    base: list[float | None] = []
    for name in ("tput_per_gpu", "steady_output_tput_per_gpu"):
        values = [row[name] for row in rows if _fit(row) and row["build_id"] == first and words.known(row[name])]
        base.append(_rounded(median(values)) if values else None)
    return base


def _build_names(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return a name for every build; builds that share a version or tag are told apart by their digest."""
    named = {
        row["build_id"]: (words.build(row["engine_version"], row["image_ref"], row["image_digest"]), row["image_digest"])
        for row in rows
    }
    taken = [name for name, _ in named.values()]
    return {
        build: chart_text(f"{name} {words.short_digest(digest)}" if digest and taken.count(name) > 1 else name)
        for build, (name, digest) in named.items()
    }


def _marks(rows: list[dict[str, Any]], names: dict[str, str]) -> Figure:
    """Return a line at the first observation of every build run, labelled while there are few."""
    starts = rows[:1] + [later for earlier, later in pairwise(rows) if earlier["build_id"] != later["build_id"]]
    lines = [
        {
            "type": "line",
            "x0": moment(row["measured_at"]),
            "x1": moment(row["measured_at"]),
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"width": 1, "dash": "dot"},
            "name": "build",
        }
        for row in starts
    ]
    labels = [
        {
            "x": moment(row["measured_at"]),
            "y": 1,
            "yref": "paper",
            "text": names[row["build_id"]],
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "bottom",
            "textangle": -20,
            "name": "build",
        }
        for row in starts
    ]
    return {"shapes": lines, "annotations": labels if len(labels) <= MAX_LABELS else []}


def velocity(levels: pl.DataFrame) -> list[tuple[str, Figure]]:
    """Return (engine, figure) for every engine in *levels* (`velocity.SCHEMA`): a step line a GPU, model and precision."""
    figures = []
    for (engine,), part in sorted(levels.partition_by("engine", as_dict=True).items(), key=lambda item: str(item[0])):
        lines = [line.to_dicts() for _, line in sorted(part.partition_by(GROUP, as_dict=True).items(), key=lambda i: str(i[0]))]
        figures.append((str(engine), {"data": [_steps(rank, line) for rank, line in enumerate(lines)], "layout": {}}))
    return figures


def _steps(rank: int, line: list[dict[str, Any]]) -> Figure:
    """Return one line: a vertex a build, a gap before a build that nothing leads to, an unmarked end at the latest comparison."""
    last, shape = line[-1], SYMBOLS[rank % len(SYMBOLS)]
    vertices: list[dict[str, Any] | None] = []
    for level in line:
        vertices += [level] if level["linked"] or not vertices else [None, level]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "line": {"shape": "hv"},
        "meta": {"rank": rank},
        "name": chart_text(f"{words.hardware(last['hardware'])} · {words.configuration(last)}"),
        "x": [*(moment((vertex or last)["at"]) for vertex in vertices), moment(last["until"])],
        "y": [*(vertex and _rounded(vertex["index"]) for vertex in vertices), _rounded(last["index"])],
        "marker": {
            "symbol": [*(f"{shape}-open" if vertex and vertex["mixed"] else shape for vertex in vertices), shape],
            "size": [9] * len(vertices) + [0],
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "thickness": 1,
            "width": 3,
            "array": [*(_reach(vertex, "high") for vertex in vertices), None],
            "arrayminus": [*(_reach(vertex, "low") for vertex in vertices), None],
        },
        "customdata": [*(_step_details(vertex) for vertex in vertices), ["", "latest comparison"]],
        "hovertemplate": "%{fullData.name}<br>%{customdata[0]} index %{y:.1f}<br>%{customdata[1]}<extra></extra>",
    }


def _reach(level: dict[str, Any] | None, end: str) -> float | None:
    return None if level is None or level[end] is None else _rounded(abs(level[end] - level["index"]))


def _step_details(level: dict[str, Any] | None) -> list[str]:
    if level is None:
        return ["", ""]
    told = words.count(level["comparisons"], "comparison") if level["linked"] else "first build of the line"
    return [chart_text(level["build"]), told + (", not the build alone differs" if level["mixed"] else "")]


def chart_text(text: str | None) -> str:
    """Return a stranger's text for a chart: plain, short, and escaped from Plotly's markup."""
    return escape(words.plain(text or "", 40), quote=False)


def _rounded(value: float | None) -> float | None:
    """Return *value* with five significant digits, which is finer than any measurement here and keeps the page small."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")
