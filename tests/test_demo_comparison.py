"""Planted against found, on hand-made tables."""

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.demo.answer import COLUMNS, lines
from pipelines.demo.comparison import compare
from pipelines.demo.planted import Planted, PlantedCurve
from warehouse.schemas import LINKS, SHIFTS

SHAPES = ((1024, 1024), (8192, 1024), (1024, 8192))


def curve(isl, osl, hardware="mi355x", engine="vllm", model="dsr1"):
    return PlantedCurve(hardware=hardware, engine=engine, model=model, precision="fp8", tp=8, isl=isl, osl=osl)


def planted(**changes):
    values = {
        "key": "step",
        "kind": "engine_regression",
        "engine": "vllm",
        "hardware": ("mi355x",),
        "curves": tuple(curve(*shape) for shape in SHAPES),
        "day": "2026-01-31",
        "from_image": "a:1",
        "to_image": "a:2",
        "direction": "regression",
        "size_pct": -8.0,
        "attribution": "engine",
        "pr": 90157,
    }
    return Planted(**(values | changes))


FLAT = {"kind": "flat_bump", "direction": "none", "size_pct": 0.0, "attribution": None, "pr": None}
COLD = {"kind": "cold_start", "size_pct": -30.0, "attribution": "measurement", "pr": None}


def shift(name, **changes):
    values = {
        "shift_id": name,
        "status": "confirmed",
        "direction": "regression",
        "engine": "vllm",
        "hardware": "mi355x",
        "model": "dsr1",
        "precision": "fp8",
        "isl": 1024,
        "osl": 1024,
        "size_pct": -8.0,
        "attribution": "engine",
        "from_measured_at": datetime(2026, 1, 29, 7, tzinfo=UTC),
        "to_measured_at": datetime(2026, 1, 31, 7, tzinfo=UTC),
    }
    return dict.fromkeys(SHIFTS.schema) | values | changes


def shifts(*rows):
    return pl.DataFrame(list(rows), schema=SHIFTS.schema, orient="row")


def link(name, rank, pr, candidates=25):
    return dict.fromkeys(LINKS.schema) | {"shift_id": name, "rank": rank, "pr": pr, "candidates": candidates}


def links(*rows):
    return pl.DataFrame(list(rows), schema=LINKS.schema, orient="row")


def three(**changes):
    return [shift(f"s{n}", isl=isl, osl=osl, size_pct=-7.0 - n, **changes) for n, (isl, osl) in enumerate(SHAPES)]


def test_all_curves_found_with_cause_and_ranks():
    linked = links(link("s0", 1, 90157), link("s0", 2, 90160), link("s1", 3, 90157, 30), link("s2", 2, 90157))
    (row,) = compare([planted()], shifts(*three()), linked)
    assert (row.verdict, row.curves_flagged, row.curves_planted, row.right) == ("found", 3, 3, True)
    assert row.measured_pct == -8.0
    assert row.attribution_found == ("engine",)
    assert (row.best_rank, row.worst_rank, row.candidates) == (1, 3, 30)


def test_one_of_three_curves():
    (row,) = compare([planted()], shifts(shift("s0")), links())
    assert (row.verdict, row.curves_flagged, row.right) == ("partly found", 1, False)
    assert (row.best_rank, row.worst_rank, row.candidates) == (None, None, None)


def test_nothing_found():
    (row,) = compare([planted()], shifts(), links())
    assert (row.verdict, row.curves_flagged, row.measured_pct, row.right) == ("missed", 0, None, False)


def test_wrong_cause_is_not_right():
    (row,) = compare([planted()], shifts(*three(attribution="unknown")), links())
    assert (row.verdict, row.attribution_found, row.right) == ("found", ("unknown",), False)


def test_worst_rank_is_unknown_where_a_shift_does_not_list_the_cause():
    (row,) = compare([planted()], shifts(*three()), links(link("s0", 4, 90157), link("s1", 1, 1), link("s2", 5, 90157)))
    assert (row.best_rank, row.worst_rank) == (4, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"direction": "speedup"},
        {"hardware": "mi300x"},
        {"model": "gptoss120b"},
        {"to_measured_at": datetime(2026, 1, 30, 23, 59, tzinfo=UTC)},
        {"from_measured_at": datetime(2026, 1, 31, 1, tzinfo=UTC), "to_measured_at": datetime(2026, 2, 2, tzinfo=UTC)},
    ],
    ids=["other direction", "other GPU", "other model", "before", "after"],
)
def test_other_claims_are_not_the_planted_one(changes):
    item, claim = compare([planted()], shifts(shift("s0", **changes)), links())
    assert item.verdict == "missed"
    assert (claim.kind, claim.verdict, claim.curves_flagged, claim.right) == ("unplanted", "claimed, not planted", 1, False)


def test_late_observation_across_a_gap_counts():
    (row,) = compare([planted()], shifts(*three(to_measured_at=datetime(2026, 2, 9, tzinfo=UTC))), links())
    assert row.right


def test_retracted_shift_is_no_claim():
    rows = compare([planted()], shifts(shift("s0", status="retracted"), shift("x", status="retracted", engine="sglang")), links())
    assert [row.verdict for row in rows] == ["missed"]


def test_flat_bump_is_right_when_nothing_is_claimed():
    (row,) = compare([planted(**FLAT)], shifts(), links())
    assert (row.verdict, row.right) == ("quiet, as planted", True)
    (row,) = compare([planted(**FLAT)], shifts(shift("s0")), links())
    assert (row.verdict, row.curves_flagged, row.right) == ("claimed, not planted", 1, False)


def test_cold_start_needs_a_measurement_notice_and_its_return_is_no_claim():
    item = planted(**COLD, curves=(curve(1024, 1024),))
    notice = shift("s0", attribution="measurement", status="recovered")
    back = shift(
        "s1",
        attribution="measurement",
        direction="speedup",
        from_measured_at=datetime(2026, 1, 31, 7, tzinfo=UTC),
        to_measured_at=datetime(2026, 2, 1, 7, tzinfo=UTC),
    )
    rows = compare([item], shifts(notice, back), links())
    assert [(row.verdict, row.right) for row in rows] == [("found", True)]
    item_row, claim = compare([item], shifts(shift("s0", attribution="engine")), links())
    assert (item_row.verdict, claim.verdict) == ("missed", "claimed, not planted")


def test_claims_are_grouped_by_day_stack_cause_and_direction():
    other = [row | {"shift_id": f"x{n}", "engine": "sglang"} for n, row in enumerate(three())]
    rows = compare([], shifts(*other, shift("y", engine="trtllm", hardware="b200", attribution="recipe")), links())
    assert [(row.engine, row.hardware, row.curves_flagged, row.measured_pct) for row in rows] == [
        ("sglang", ("mi355x",), 3, -8.0),
        ("trtllm", ("b200",), 1, -8.0),
    ]


@given(st.permutations([*three(), shift("x", engine="sglang"), shift("y", engine="sglang", osl=8192)]))
def test_order_of_the_tables_does_not_matter(rows):
    assert compare([planted()], shifts(*rows), links()) == compare([planted()], shifts(*reversed(rows)), links())


def test_lines_say_it_in_words():
    linked = links(*(link(f"s{n}", n + 1, 90157) for n in range(3)))
    items = [planted(), planted(key="flat", day="2026-01-13", **FLAT)]
    rows = compare(items, shifts(*three(), shift("x", engine="sglang")), linked)
    texts = lines(rows)
    assert all(tuple(line) == COLUMNS for line in texts)
    assert texts[0] == {
        "planted": "engine regression",
        "where": "vllm on mi355x",
        "day": "2026-01-31",
        "size": "−8.0 %",
        "verdict": "found",
        "curves": "3 of 3",
        "measured": "−8.0 %",
        "cause": "engine",
        "suspect": "#90157: rank 1 to 3 of 25",
    }
    assert (texts[1]["verdict"], texts[1]["size"], texts[1]["measured"]) == ("quiet, as planted", "none", "–")
    assert (texts[2]["planted"], texts[2]["verdict"], texts[2]["curves"]) == ("nothing", "claimed, not planted", "1")


def test_lines_name_a_wrong_cause():
    (text,) = lines(compare([planted()], shifts(*three(attribution="recipe")), links()))
    assert text["cause"] == "recipe (planted: engine)"
    assert text["suspect"] == "#90157: not listed"
