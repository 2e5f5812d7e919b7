"""The page itself: one HTML file that needs nothing else, from the tables of the warehouse.

plotly.js, styles, script and data are inlined; a Content-Security-Policy forbids the rest of the world. The same tables give
the same bytes: no clock is read, "data up to" is the latest instant in the data.

Belongs here: assembling and writing. Does not: what is said (`shifts`, `facts`, `words`) or drawn (`charts`, `velocity`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from pipelines.report import charts, facts, sentences, shifts, words
from pipelines.report.velocity import velocity
from warehouse.errors import InputError
from warehouse.schemas import TABLES
from warehouse.store import Store

NEEDED = ("runs", "points", "builds", "noise", "diffs", "shifts", "links", "quarantine")
"""Tables that the page is made of."""
FILE = "index.html"
Planted = Sequence[Mapping[str, str]]
"""Rows of the table that compares what a sample planted with what was found; the keys of the first are the columns."""


def no_address(_project: str, _number: int) -> str | None:
    """Return no address for a pull request: the page then shows its number alone."""
    return None


@dataclass(frozen=True)
class ReportLabels:
    """What the page says besides the data: whether it is a generated sample, a remark, and where pull requests live.

    `pull_request` gives the address of a pull request of a known project, or None; it must not build one from strangers' text.
    A sample links to none, whatever it is given, because its numbers would be those of real pull requests.
    """

    generated: bool = False
    remark: str = ""
    pull_request: shifts.PullRequest = no_address


def render(
    tables: Mapping[str, pl.DataFrame], *, title: str, labels: ReportLabels | None = None, planted: Planted | None = None
) -> str:
    """Return the page for *tables*: the names of NEEDED, each in its schema of `warehouse.schemas`; an absent one is empty."""
    labels = labels or ReportLabels()
    full = {name: tables.get(name, TABLES[name].schema.to_frame()) for name in NEEDED}
    full["points"] = full["points"].filter(pl.col("retraction").is_null())
    histories = _Histories.of(full["points"].filter(~pl.col("reused").fill_null(False)), full["shifts"])
    drawn = charts.velocity(velocity(full["diffs"], full["shifts"], full["noise"]))
    figures = histories.figures | {f"v{rank}": figure for rank, (_, figure) in enumerate(drawn)}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            labels=labels,
            summary=facts.summary(full),
            headline=shifts.headline(full["shifts"], full["diffs"].height),
            sections=shifts.sections(
                full["shifts"],
                full["links"],
                histories.identities,
                histories.keys,
                no_address if labels.generated else labels.pull_request,
            ),
            velocity=[(engine, f"v{rank}", len(figure["data"])) for rank, (engine, figure) in enumerate(drawn)],
            stacks=histories.stacks(),
            curves_left_out=histories.left_out,
            noise=facts.noise(full["noise"]),
            builds=facts.builds(full["builds"]),
            quarantine=facts.quarantine(full["quarantine"]),
            planted=planted,
            css=_asset("page.css"),
            script=_asset("page.js"),
            plotly=Markup(charts.library()),  # noqa: S704  (the library's own text)
            data=embedded({"config": charts.CONFIG, "figures": figures}),
        )
    )


def write(
    source: Store | Mapping[str, pl.DataFrame],
    out: Path,
    *,
    title: str,
    labels: ReportLabels | None = None,
    planted: Planted | None = None,
) -> Path:
    """Write the page of a warehouse, or of its tables, to `index.html` in the folder *out*, whole or not at all."""
    tables = {name: source.read(name) for name in NEEDED} if isinstance(source, Store) else source
    text = render(tables, title=title, labels=labels, planted=planted)
    target, draft = out / FILE, out / f".{FILE}.{os.getpid()}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(target)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); name a folder that you may write to") from error
    finally:
        if draft.is_file():
            draft.unlink()
    return target


def embedded(value: Any) -> Markup:
    """Return *value* as JSON that no text in it can end: `<`, `>`, `&` and the two line separators are escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704  (escaped above)


@dataclass(frozen=True)
class _Histories:
    """Curves of the page: identity by curve id, key of the chart by curve id, figure by key."""

    curves: pl.DataFrame
    identities: Mapping[str, words.Row]
    keys: dict[str, str]
    figures: dict[str, charts.Figure]
    left_out: int

    @classmethod
    def of(cls, points: pl.DataFrame, found: pl.DataFrame) -> _Histories:
        every = facts.curves(points)
        shown = facts.shown_curves(every, found["curve_id"])
        parts = points.select("curve_id", *charts.HISTORY).filter(pl.col("curve_id").is_in(shown["curve_id"].implode()))
        by_curve = parts.partition_by("curve_id", as_dict=True, include_key=False)
        keys = {curve: f"c{rank}" for rank, curve in enumerate(shown["curve_id"])}
        figures = {key: charts.history(by_curve[curve,]) for curve, key in keys.items()}
        identities: dict[str, words.Row] = {row["curve_id"]: row for row in every.iter_rows(named=True)}
        return cls(shown, identities, keys, figures, every.height - shown.height)

    def stacks(self) -> list[tuple[str, list[tuple[words.Row, str]]]]:
        """Return (stack, its curves with the keys of their charts), in order."""
        found: dict[str, list[tuple[words.Row, str]]] = {}
        for row in self.curves.iter_rows(named=True):
            found.setdefault(words.stack(row), []).append((row, self.keys[row["curve_id"]]))
        return list(found.items())


def _asset(name: str) -> Markup:
    path = Path(__file__).with_name("templates") / name
    return Markup(path.read_text("utf-8"))  # noqa: S704  (our own file)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipelines.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.globals |= {"words": words, "sentences": sentences, "moment": charts.moment, "groups": shifts.groups}
    return environment


def _shown(value: Any) -> Any:
    """Every text that a template shows passes here before it is escaped."""
    return words.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
