"""The whole page: what it says, in which order, that it is one file, the same bytes, and deaf to strangers' markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

from pipelines.report import facts, shifts
from pipelines.report.page import NEEDED, ReportLabels, embedded, render, write
from tests import frames
from warehouse.errors import InputError
from warehouse.store import Mark, Store

HOSTILE = "</script></style><img src=x onerror=alert(1)><a href='javascript:alert(1)'>@maintainer</a>\x1b[31m\u202e{{ 7*7 }}"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Text, tags and attributes of a page, without what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.script: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.script if self.open[-1:] in (["script"], ["style"]) else self.words).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def tables(**rows: list[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    return {name: frames.frame(name, rows.get(name)) for name in NEEDED}


def full() -> dict[str, pl.DataFrame]:
    points = [
        frames.point(
            point_id=f"p{day}{c}",
            run_id=f"10{day}",
            measured_at=frames.day(day),
            concurrency=c,
            **frames.build_of("0.90.0" if day < 3 else "0.91.0"),
        )
        for day in (0, 3)
        for c in (4, 8)
    ]
    cold = frames.shift(
        shift_id="s1",
        attribution="measurement",
        status="suspected",
        change_set=[],
        change_detail=[],
        same_build=True,
        health=["cold_start"],
    )
    return tables(
        points=points,
        runs=[frames.run(), frames.run(run_id="103")],
        builds=[frames.build(), frames.build("0.91.0", confidence="low")],
        noise=[frames.noise()],
        diffs=[frames.diff(), frames.diff(diff_id="d1", curve_id="other", flagged=False)],
        shifts=[frames.shift(), cold],
        links=[frames.link(rank=rank, pr=4240 + rank) for rank in range(1, 8)],
        quarantine=[frames.quarantined()],
    )


def page(given: dict[str, pl.DataFrame] | None = None, **options: Any) -> Outline:
    return Outline(render(given or full(), title="Shifts", **options))


def test_the_header_says_span_counts_and_the_page_in_one_sentence():
    text = page().text
    assert (
        "1 engine shift (1 confirmed), 1 measurement notice; nothing else moved beyond the noise floor in 2 comparisons."
    ) in text
    assert "Measured 2026-01-01 to 2026-01-04 Runs 2 Points 4 Curves 1 Builds 2 Quarantined 1" in text
    assert "Data up to 2026-01-04 06:00 UTC, recorded up to 2026-03-02 06:00 UTC" in text


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "No engine shift; nothing else moved beyond the noise floor in 9 comparisons."),
        (
            [
                ("engine", "suspected"),
                ("engine", "confirmed"),
                ("recipe", "confirmed"),
                ("mixed", "suspected"),
                ("environment", "suspected"),
            ],
            "2 engine shifts (1 confirmed), 2 shifts with another or a mixed cause, 1 environment notice; nothing else moved "
            "beyond the noise floor in 9 comparisons.",
        ),
        (
            [("engine", "retracted")],
            "No engine shift; nothing else moved beyond the noise floor in 9 comparisons. 1 earlier shift retracted.",
        ),
    ],
)
def test_headline(rows, text):
    frame = frames.frame("shifts", [frames.shift(attribution=attribution, status=status) for attribution, status in rows])
    assert shifts.headline(frame, 9) == text


def test_sections_come_in_order_and_a_notice_says_that_it_is_no_engine_change():
    outline = page(planted=[{"kind": "flat bump", "found": "nothing"}])
    ids = [
        name
        for name in outline.attributes("id")
        if name in ("engine", "other", "notice", "velocity", "curves", "noise", "builds", "quarantine", "planted")
    ]
    assert ids == ["engine", "notice", "velocity", "curves", "noise", "builds", "quarantine", "planted"]
    notice = outline.text.partition("Notices: not an engine change A run")[2].partition("Software velocity")[0]
    assert "Not an engine change. The steady state stands beside the reported numbers below." in notice
    assert "0.91.0 on both sides" in notice and "cold start" in notice and "Upstream changes" not in notice


def test_a_shift_shows_its_evidence_and_five_of_its_candidates():
    text = page().text.partition("Engine shifts The build")[2].partition("Notices: not an engine change")[0]
    for part in (
        "▼ −8.1 %",
        "vLLM on MI355X",
        "DeepSeek-R1 FP8 · 1024/1024 tokens · TP8",
        "0.90.0 → 0.91.0",
        "Throughput as reported ▼ −7.9 %",
        "Median TPOT ▼ −8.4 %",
        "p 0.00012; q 0.004",
        "confirmed: 3 of 3 sibling curves",
        "no finding on either side",
        "most likely first: 5 of 212 candidates",
        "Range: between tags v0.90.0 and v0.91.0.",
        "changes the AMD attention path",
    ):
        assert part in text, part
    assert "vllm #4245" in text and "vllm #4246" not in text and "Open-ended" not in text


def test_an_open_ended_range_is_said():
    assert (
        "Open-ended: one end of the range is not known"
        in page({**full(), "links": frames.frame("links", [frames.link(open_ended=True)])}).text
    )


def address(project: str, number: int) -> str | None:
    return f"https://github.com/vllm-project/vllm/pull/{number}" if project == "vllm" else None


def test_pull_requests_are_linked_where_an_address_is_given_and_never_in_a_sample():
    links = frames.frame(
        "links", [frames.link(), frames.link(rank=2, project="javascript:alert(1)"), frames.link(rank=3, pr=None)]
    )
    given = {**full(), "links": links}
    labels = ReportLabels(pull_request=address)
    anchors = [attrs for tag, attrs in page(given, labels=labels).tags if tag == "a"]
    outside = [attrs for attrs in anchors if not (attrs["href"] or "").startswith("#")]
    assert outside == [{"href": "https://github.com/vllm-project/vllm/pull/4242", "rel": "noopener noreferrer"}]
    sample = page(given, labels=ReportLabels(generated=True, pull_request=address))
    assert "GENERATED SAMPLE: not measurements of any real engine" in sample.text
    assert all(href.startswith("#") for href in sample.attributes("href"))
    assert "GENERATED" not in page(given).text


def test_the_page_is_one_file_that_asks_for_nothing():
    outline = page()
    assert not outline.attributes("src") and not [
        tag for tag, _ in outline.tags if tag in ("link", "iframe", "object", "form", "img", "base")
    ]
    policy = next(attrs["content"] for tag, attrs in outline.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'unsafe-inline';")
    assert not re.search(r"url\(|@import", next(script for script in outline.script if ":root" in script))
    assert sum("plotly.js v" in script[:200] for script in outline.script) == 1


def test_charts_are_data_and_every_chart_has_its_figure():
    outline = page()
    data = json.loads(next(script for script in outline.script if script.startswith("{")))
    assert data["config"]["showSendToCloud"] is False and data["config"]["plotlyServerURL"] == ""
    assert sorted(set(outline.attributes("data-figure"))) == sorted(data["figures"]) == ["c0", "v0"]
    assert outline.attributes("data-from")[0] == "2026-01-01T06:00:00"
    assert outline.attributes("data-from")[0] in data["figures"]["c0"]["data"][0]["x"]


def test_the_same_tables_give_the_same_bytes_in_whatever_order_their_rows_come():
    given = full()
    turned = {name: frame.reverse() for name, frame in given.items()}
    assert render(given, title="t") == render(given, title="t") == render(turned, title="t")


def test_an_empty_warehouse_has_a_page():
    text = Outline(render({}, title="Nothing yet", planted=[])).text
    assert "No engine shift; nothing else moved beyond the noise floor in 0 comparisons." in text and "Measured – to –" in text
    assert "0 inputs could not be read" in text and "Nothing was planted." in text


def test_strangers_text_is_text():
    def hostile(row: dict[str, Any], table: str) -> dict[str, Any]:
        schema = frames.frame(table).schema
        kept = {"shift_id", "diff_id", "curve_id", "attribution", "unit", "level", "metric", "verdict"}
        texts = {name: HOSTILE for name, dtype in schema.items() if dtype == pl.String() and name not in kept}
        return {**row, **texts, **{name: [HOSTILE] for name, dtype in schema.items() if dtype == pl.List(pl.String())}}

    given = {name: frames.frame(name, [hostile(row, name) for row in frame.to_dicts()]) for name, frame in full().items()}
    given["shifts"] = given["shifts"].with_columns(attribution=pl.lit("engine"))
    clean, outline = page(), page(given, planted=[{HOSTILE: HOSTILE}], labels=ReportLabels(remark=HOSTILE))
    assert not [tag for tag, _ in outline.tags if tag == "img"]
    assert {tag for tag, _ in outline.tags} <= {tag for tag, _ in clean.tags} | {"strong"}
    assert len(outline.script) == len(clean.script)
    assert not [name for _, attrs in outline.tags for name in attrs if name.startswith("on")]
    assert all(href.startswith("#") for href in outline.attributes("href"))
    assert "\x1b" not in outline.text and "\u202e" not in outline.text
    assert "{{ 7*7 }}" in outline.text and "<img src=x onerror=alert(1)>" in outline.text


def test_embedded_json_cannot_end_its_script_and_reads_back():
    value = {"a": "</script><!--&\u2028", "b": [1.5, None]}
    text = str(embedded(value))
    assert not set("<>&\u2028") & set(text) and json.loads(text) == value
    with pytest.raises(ValueError):
        embedded(float("nan"))


def test_what_is_left_out_is_said(monkeypatch):
    monkeypatch.setattr(facts, "MAX_CURVES", 1)
    monkeypatch.setattr(facts, "MAX_QUARANTINE", 2)
    monkeypatch.setattr(shifts, "MAX_SHIFTS", 1)
    given = tables(
        points=[frames.point(curve_id=f"k{n}", measured_at=frames.day(n)) for n in range(4)],
        shifts=[
            frames.shift(shift_id="old", curve_id="k0"),
            frames.shift(shift_id="new", curve_id="k1", to_measured_at=frames.day(9)),
        ],
        quarantine=[frames.quarantined(event_id=f"q{n}") for n in range(5)],
    )
    outline = page(given)
    # k0 and k1 have shifts, k3 was measured last
    assert [name for name in outline.attributes("id") if name.startswith("curve-k")] == ["curve-k0", "curve-k1", "curve-k3"]
    assert "1 curve measured earlier is not in this page." in outline.text
    assert "5 inputs could not be read" in outline.text and "3 more of 5 are in the warehouse." in outline.text
    assert "shift-new" in outline.attributes("id") and "shift-old" not in outline.attributes("id")
    assert "1 earlier shift of this kind not shown." in outline.text


def test_shifts_of_one_cause_stand_together_latest_first():
    rows = [
        frames.shift(shift_id="a", event_key="x", size=-0.05),
        frames.shift(shift_id="b", event_key="y", size=-0.9),
        frames.shift(shift_id="c", event_key="x", size=-0.07),
        frames.shift(shift_id="d", event_key="z", to_measured_at=frames.day(9)),
    ]
    order = [name for name in page(tables(shifts=rows)).attributes("id") if name.startswith("shift-")]
    assert order == ["shift-d", "shift-c", "shift-a", "shift-b"]


def test_a_rare_and_a_superseded_shift_have_cards():
    """A rare series has one cell, maybe no p, and no steady state; of a superseded shift little is known."""
    nothing = dict.fromkeys(("isl", "osl", "precision", "coherent", "p_value", "q_value", "steady_pct", "tpot_pct", "ttft_pct"))
    rare = frames.shift(
        shift_id="rare",
        cells=1,
        cells_total=1,
        agreeing=1,
        size_pct=129.0,
        metric="samples_per_second_per_gpu",
        attribution="hardware",
        noise_level="prior",
        noise_repeats=0,
        **nothing,
    )
    bare = dict.fromkeys(
        ("cells", "cells_total", "noise_scale", "noise_level", "interval_low_pct", "agreeing", "gap_days", "p_value")
    )
    gone = frames.shift(shift_id="gone", status="superseded", superseded_by="rare", **bare)
    step = frames.shift(shift_id="step", kind="step", linked=["gsm8k (strict) fell by 3.1 points"], noise_level="public")
    text = page(tables(shifts=[rare, gone, step])).text
    assert "Samples per second per GPU moved +129.0 %" in text and "one result on each side" in text
    assert "Not an engine change: the accelerators differ." in text
    assert "Student t with 3 degrees of freedom" in text and "Student t with 4 degrees of freedom" in text
    assert "superseded by rare" in text and "a step: the level changed and has stayed" in text
    assert "gsm8k (strict) fell by 3.1 points" in text and "None/None" not in text


def test_unknown_builds_and_digests_are_said_to_be_unknown():
    bare = frames.build(image_ref=None, image_digest=None, engine_version=None, source=None, confidence=None)
    text = page(tables(builds=[bare])).text.partition("the page says unknown.")[2]
    assert "vLLM unknown unknown none unknown unknown by tag" in text


def test_write_puts_one_file_there_and_reads_a_warehouse(tmp_path):
    store = Store(str(tmp_path / "warehouse"))
    for name, frame in full().items():
        store.overwrite(name, frame, Mark(0))
    path = write(store, tmp_path / "deep" / "out", title="Shifts")
    assert path == tmp_path / "deep" / "out" / "index.html" and [item.name for item in path.parent.iterdir()] == ["index.html"]
    assert path.read_text("utf-8") == render(full(), title="Shifts")


def test_write_refuses_a_file_for_a_folder_and_leaves_an_older_page_whole(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match=r"--out .*taken: cannot be written \(.*\); name a folder"):
        write({}, tmp_path / "taken", title="t")
    assert (tmp_path / "taken").read_text() == "mine"
