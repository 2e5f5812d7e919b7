"""What `shiftlog explain` says, of rows made by hand: every sentence is worked out from its row."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answers import explain
from pipelines.cli import main
from pipelines.doubts import gate_pct, unknowns, why_not
from pipelines.explanation import sentences
from pipelines.summaries import out_explanation
from tests import frames
from warehouse.errors import InputError
from warehouse.schemas import TABLES
from warehouse.store import Mark, Store

ENGINE, NOTICE, RARE, GONE, QUIET = "aaaaaa01", "bbbbbb02", "cccccc03", "dddddd04", "eeeeee05"
RUNS = {"from": ("100", frames.START, "0.90.0"), "to": ("103", frames.day(3), "0.91.0")}
LOADS = (4, 8, 16)


def points(curve: str, **changed: Any) -> list[frames.Row]:
    """Return both sides of a curve at three loads: throughput 1000 and 940, TPOT 10 and 10.6 ms, mean TTFT 0.55 and 2 s."""
    return [
        frames.point(
            curve_id=curve,
            point_id=f"{curve}{side}{load}",
            record_hash=f"{curve}{side}{load}",
            run_id=run,
            measured_at=at,
            **frames.build_of(version),
            concurrency=load,
            tput_per_gpu=1000.0 if side == "from" else 940.0,
            tpot_median=0.010 if side == "from" else 0.0106,
            ttft_mean=0.55 if side == "from" else 2.0,
            ttft_median=0.5,
            hardware_label="mi355x-amd_0",
            **changed,
        )
        for side, (run, at, version) in RUNS.items()
        for load in LOADS
    ]


def rare_rows() -> tuple[frames.Row, list[frames.Row]]:
    """Return a shift of MLPerf from 100 to 229 samples/s and its later point, whose result has no column of its own."""
    nothing = dict.fromkeys(("isl", "osl", "precision"))
    shift = frames.shift(
        shift_id=RARE,
        curve_id="rare",
        status="suspected",
        status_reason="one cell, one result on each side",
        metric="samples_per_second_per_gpu",
        model="gptj",
        cells=1,
        cells_total=1,
        agreeing=1,
        coherent=None,
        size=math.log(2.29),
        size_pct=129.0,
        interval_low_pct=94.0,
        interval_high_pct=170.0,
        direction="speedup",
        noise_scale=0.05,
        noise_level="prior",
        noise_repeats=0,
        p_value=None,
        q_value=None,
        attribution="hardware",
        change_set=["hardware"],
        change_detail=["accelerator: h100 → h200"],
        gap_days=198.0,
        **dict.fromkeys(("reported_pct", "steady_pct", "tpot_pct", "ttft_pct")),
        **nothing,
    )
    result = [{"name": "samples_per_second_per_gpu", "value": 229.0}]
    later = points(
        "rare", **nothing, model="gptj", scenario="mlperf-offline", metrics_other=result, workload="gptj-99", system="Acme: X1"
    )[-1]
    blank = dict.fromkeys(
        ("concurrency", "tput_per_gpu", "steady_output_tput_per_gpu", "tpot_median", "ttft_mean", "ttft_median")
    )
    return shift, [later | blank]


def fitness(run: str, version: str, **found: Any) -> list[frames.Row]:
    """Return the rows of one curve of a run and of the run itself."""
    names = ("hardware", "engine", "framework")
    same = {
        **{name: frames.IDENTITY[name] for name in names},
        "run_source": "local",
        "run_id": run,
        "run_attempt": 1,
        "build_id": frames.build_of(version)["build_id"],
        "reasons": [],
        "points": 3,
        "unfit": 0,
        "verdict": "fit",
    }
    return [
        frames.row("fitness", {**same, "level": "curve", "curve_id": "notice"}, found),
        frames.row("fitness", {**same, "level": "run"}, {}),
    ]


def frontier(target: float | None, size: float | None, **changed: Any) -> frames.Row:
    return frames.row(
        "frontier_diffs",
        {
            **{name: value for name, value in frames.comparison().items() if name in TABLES["frontier_diffs"].schema},
            "comparison_id": "f0",
            "scenario": "fixed-seq-len",
            "interactivity": target,
            "size_pct": size,
            "interval_low_pct": -9.0,
            "interval_high_pct": -5.0,
            "steady_size_pct": -6.5,
            "cells_shared": 12,
            "cells_gained": 0,
            "cells_lost": 2,
            "rerun_pct": 2.1,
            "rerun_level": "stack",
            "rerun_pairs": 9,
            "stands_out": True,
            "fronts_differ": 0,
        },
        changed,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with an engine shift, a notice, a rare shift, a withdrawn one, and a comparison that is none."""
    shift, rare_points = rare_rows()
    quiet = {"size": math.log(0.985), "size_pct": -1.5, "reported_pct": -1.4, "steady_pct": -1.5, "tpot_pct": -0.2}
    notice = {
        "shift_id": NOTICE,
        "curve_id": "notice",
        "metric": "tput_per_gpu",
        "attribution": "measurement",
        "status": "suspected",
        "status_reason": "seen once",
        "health": ["cold_start"],
        "explained_share": 0.987,
        "change_set": [],
        "change_detail": [],
        "to_build_id": frames.build_of("0.90.0")["build_id"],
    }
    gone = dict.fromkeys(
        ("interval_low_pct", "interval_high_pct", "noise_scale", "noise_level", "noise_repeats", "p_value", "q_value", "gap_days")
    )
    withdrawn = {**gone, "shift_id": GONE, "status": "superseded", "superseded_by": ENGINE, "cells": None, "cells_total": None}
    cold = {
        "verdict": "unfit",
        "reasons": ["incoherent_curve"],
        "incoherent_at": 16,
        "unfit": 1,
        "burst_wait_s": 74.2,
        "explained_share": 0.97,
    }
    tables = {
        "shifts": [
            frames.shift(shift_id=ENGINE, kind="step", linked=["gsm8k (strict) fell by 3.1 points at the same build change"]),
            frames.shift(**notice),
            shift,
            frames.shift(**withdrawn),
        ],
        "diffs": [
            frames.diff(diff_id=ENGINE),
            frames.diff(
                diff_id=QUIET,
                curve_id="quiet",
                flagged=False,
                attribution=None,
                coherent=False,
                p_value=0.2,
                q_value=0.6,
                **quiet,
            ),
            frames.diff(diff_id=GONE, flagged=False, attribution=None, **quiet),
        ],
        "points": [*points("curve"), *points("notice"), *points("quiet"), *rare_points],
        "fitness": [*fitness("100", "0.90.0"), *fitness("103", "0.90.0", **cold)],
        "frontier_diffs": [
            frontier(None, -7.0),
            frontier(35.0, -6.0),
            frontier(50.0, -9.5),
            frontier(100.0, None, missing="outside the data"),
        ],
        "links": [frames.link(shift_id=ENGINE)],
    }
    place = Store(str(tmp_path_factory.mktemp("explained") / "warehouse"))
    for name, rows in tables.items():
        place.overwrite(name, frames.frame(name, rows), Mark(1))
    return place


@pytest.fixture(scope="module")
def engine_shift(store: Store) -> dict[str, Any]:
    return explain(store, ENGINE)


def told(answer: dict[str, Any], **changed: Any) -> str:
    return "\n".join(sentences({**answer, **changed}))


def test_an_engine_shift_reads_like_a_careful_colleague(engine_shift: dict[str, Any]) -> None:
    text = told(engine_shift)
    assert [part for part in (
        f"{ENGINE}  confirmed: 3 of 3 sibling curves",
        "Output throughput per GPU in steady state -8.1 % (90 % interval -8.9 … -7.3 %), median over the curve, on vllm mi355x: "
        "DeepSeek-R1 FP8 · 1024/1024 tokens · TP8.",
        "6 of 6 concurrencies moved that way; they agree.",
        "Over the whole curve: reported -7.9 %, steady state -8.1 %, TPOT -8.4 %, TTFT -2.0 % (+ is better).",
        "How sure: same-image repeats of this engine on this GPU move 0.60 % (one observation, n=14).",
        "p 0.00012: with nothing changed, about one comparison in 8,300 would move as far by chance. "
        "q 0.004: of all in its night that are as odd, about 0.4 % are expected to be chance.",
        "Seen: on this curve 1 run of the earlier build and 1 run of the later one; "
        "3 of 3 curves of the same change moved alike; 3.0 days apart.",
        "Kind: a step: the level changed and has stayed.",
        "Attribution: engine: the build is all that is known to differ.",
        "changed  build: 0.90.0 → 0.91.0",
        "Scores that fell with it:\n  - gsm8k (strict) fell by 3.1 points at the same build change",
        "Upstream: 212 changes between the builds. between tags v0.90.0 and v0.91.0 Read first:\n  1. #4242 [ROCm]",
        "What we do not know:\n  - which image ran: no digest is recorded on either side, so the tag may have been moved",
        "how the server was launched: the recipe is not recorded on either side",
        "both records name the runner 'mi355x-amd_0' and no more",
        "how far the earlier build strays by itself here: 1 run of it on this curve",
    ) if part not in text] == []  # fmt: skip


def test_both_sides_stand_by_load(engine_shift: dict[str, Any]) -> None:
    rows = [" ".join(line.split()) for line in told(engine_shift).splitlines() if "→ 940" in line]
    assert rows == [
        f"{load} 1000 → 940 500 → 500 10.00 → 10.60 0.55 (0.50) → 2.00 (0.50)" for load in LOADS
    ]  # fmt: skip
    assert "  concurrency  tok/s/GPU reported" in told(engine_shift)


def test_where_the_load_is_a_rate_its_column_says_so_and_empty_columns_are_left_out(engine_shift: dict[str, Any]) -> None:
    rows = copy.deepcopy(engine_shift["concurrencies"])
    for row in rows:
        row |= {"concurrency": None, "request_rate": row["concurrency"] / 8}
        for side in ("from", "to"):
            row[side]["steady_output_tput_per_gpu"] = None
    text = told(engine_shift, concurrencies=rows)
    assert "load, req/s" in text and "  concurrency  " not in text and "output, steady state" not in text
    assert "\n          0.5" in text


def test_the_frontier_is_one_line_with_the_target_that_moved_most(engine_shift: dict[str, Any]) -> None:
    (line,) = [line for line in told(engine_shift).splitlines() if line.startswith("Frontier")]
    assert line == (
        "Frontier (throughput at equal interactivity): "
        "-7.0 % (90 % interval -9.0 … -5.0 %, steady state -6.5 %, stands out) over all that both reach; "
        "most at 50 tok/s/user, -9.5 % (90 % interval -9.0 … -5.0 %, steady state -6.5 %, stands out); "
        "12 points on both sides, 2 lost; "
        "nine in ten reruns of one build move it by no more than 2.1 % (of this stack, n=9)."
    )
    assert [row["interactivity"] for row in engine_shift["frontier"]] == [None, 35.0, 50.0]


@pytest.mark.parametrize(
    ("level", "repeats", "insufficient", "text"),
    [
        ("line", 14, False, "same-image repeats of this stack move 0.60 % (one observation, n=14)."),
        (
            "line",
            1,
            True,
            "insufficient repeats: only 1 of this stack; drawn towards wider groups, one observation moves 0.60 %.",
        ),
        ("public", 1, True, "insufficient repeats: only 1 of this stack; public fleets stand in, one observation moves 0.60 %."),
        ("public", 0, True, "insufficient repeats: none of this stack; public fleets stand in, one observation moves 0.60 %."),
        ("engine", 4, True, "none of this stack; those of its engine on other GPUs stand in (n=4), made wider: one observation"),
        ("global", 30, True, "none of this stack; those of other engines stand in (n=30), made wider: one observation moves"),
        ("prior", 0, True, "insufficient repeats: none at all; the prior stands, one observation moves 0.60 %."),
    ],
)
def test_the_noise_floor_says_whose_repeats_it_is_from(engine_shift, level, repeats, insufficient, text) -> None:
    known = {"noise_level": level, "noise_repeats": repeats, "noise_insufficient": insufficient}
    assert text in told(engine_shift, **known)
    doubt = "how noisy this stack is: too few same-image repeats of it"
    assert any(doubt in line for line in unknowns({**engine_shift, **known})) == insufficient


@pytest.mark.parametrize(
    ("p", "q", "text"),
    [
        (1e-9, 1e-8, "fewer than one comparison in a million would move as far by chance. q 1e-08: "),
        (1e-9, 1e-8, "of all in its night that are as odd, less than 0.1 % are expected"),
        (0.02, 0.04, "p 0.02: with nothing changed, about one comparison in 50 would move as far by chance. q 0.04: "),
        (0.02, 0.04, "of all in its night that are as odd, about 4 % are expected to be chance."),
        (0.9, 1.0, "p 0.9: with nothing changed, most comparisons would move as far by chance. q 1: flagging all as odd"),
        (0.01, None, "p 0.01: with nothing changed, about one comparison in 100 would move as far by chance.\n"),
        (None, None, "p and q: not worked out"),
    ],
)  # fmt: skip
def test_p_and_q_are_told_in_words(engine_shift, p, q, text) -> None:
    assert text in told(engine_shift, p_value=p, q_value=q)


def test_a_notice_tells_what_vanishes_in_the_steady_state_and_how_long_the_first_burst_waited(store: Store) -> None:
    text = told(explain(store, NOTICE))
    assert "Throughput per GPU as reported -8.1 %" in text
    assert (
        "Health: 99 % of the reported change vanishes in the steady state. The first burst of requests waited: see TTFT" in text
    )
    assert "  to    curve unfit, run fit: reported throughput leaves the shape of its own curve at concurrency 16; " in text
    assert "1 of 3 points unfit by themselves; the first burst waited up to 74 s, and TTFT explains up to 97 % of what" in text
    assert "  from  curve" not in text
    assert "changed  nothing that is on record" in text
    assert "Attribution: measurement" in text and "Kind:" not in text


def test_a_rare_series_says_its_result_and_leaves_out_what_it_has_not(store: Store) -> None:
    answer = explain(store, RARE)
    text = told(answer)
    assert answer["headline"] == {"metric": "samples_per_second_per_gpu", "from": pytest.approx(100), "to": pytest.approx(229)}
    assert "Samples per second per GPU +129.0 % (90 % interval +94.0 … +170.0 %), on vllm mi355x: gptj unknown precision" in text
    assert "mlperf-offline, gptj-99, Acme: X1." in text
    assert "  100 → 229  Samples per second per GPU" in text
    assert "insufficient repeats: a result now and then has none; a wide prior stands, 5.00 % for one result." in text
    assert "p and q: not worked out, because nothing is tested between two accelerators." in text
    assert "Attribution: hardware: the accelerators are all that is known to differ." in text
    assert "198 days lie between the two" in text
    assert "None" not in text and "concurrency  tok/s" not in text and "Frontier" not in text


def test_a_withdrawn_shift_says_what_stands_in_its_place_and_how_it_looks_today(store: Store) -> None:
    text = told(explain(store, GONE))
    assert f"Superseded: `shiftlog explain {ENGINE}` stands in its place." in text
    assert (
        "Today the same comparison gives -1.5 % and is no shift: -1.5 % is below the least change that counts here, 2.4 %" in text
    )
    assert "How sure" not in text and "What we do not know" not in text


def test_a_comparison_that_is_no_shift_is_explained_by_its_id(store: Store) -> None:
    answer = explain(store, QUIET)
    assert (answer["shift_id"], answer["diff_id"], answer["flagged"]) == (None, QUIET, False)
    assert told(answer).startswith(
        f"{QUIET}  not a shift: -1.5 % is below the least change that counts here, 2.4 % (the noise floor is 0.60 % for one "
        "observation); the concurrencies do not agree: they are spread as wide about their median as it is large; "
        "TPOT does not follow (-0.2 %); both must move together; p 0.2 is above 0.05: runs with nothing changed move as far too"
    )
    assert "Attribution" not in told(answer) and "Kind:" not in told(answer)


def test_the_least_change_that_counts_is_four_noise_scales_or_what_is_worth_a_look(engine_shift: dict[str, Any]) -> None:
    # exp(4 · 0.006) - 1; of a stack whose noise is not known 3 %; of two cells 3.5 %; of a half 7 %; of a rare series 10 %.
    assert gate_pct(engine_shift) == pytest.approx(100 * math.expm1(0.024))
    unknown = {"noise_level": "prior", "noise_repeats": 0, "noise_pct": 0.35}
    assert gate_pct({**engine_shift, **unknown}) == pytest.approx(3.0)
    assert gate_pct({**engine_shift, **unknown, "cells": 2}) == pytest.approx(3.5)
    assert gate_pct({**engine_shift, **unknown, "part": "low_concurrency"}) == pytest.approx(7.0)
    assert gate_pct({**engine_shift, "cells": 1, "cells_total": 1}) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"q_value": 0.4}, "q 0.4 is above 0.1: among so many comparisons of a night one as odd is expected"),
        ({"steady_pct": 0.3, "metric": "tput_per_gpu"}, "steady-state throughput does not follow (+0.3 %)"),
        ({"steady_pct": None, "metric": "tput_per_gpu", "tpot_pct": None}, "there is no second metric that could bear witness"),
        ({"cells": 3, "agreeing": 2}, "of so few concurrencies all must move one way; 2 of 3 do"),
        ({"p_value": None, "q_value": None}, "two accelerators are compared: that they differ is no news, so nothing is tested"),
        ({}, "the rule asks for more agreement"),
    ],
)
def test_every_stored_reason_is_told(engine_shift, changed, text) -> None:
    (reason,) = why_not({**engine_shift, "flagged": False, **changed})
    assert reason.startswith(text)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"cells": 4}, "the other loads: 4 of 6 were measured on both sides"),
        ({"gap_days": 30.0}, "what happened meanwhile: 30 days lie between the two, and hosts change"),
        ({"status": "suspected"}, "whether it lasts: the later build ran once on this curve"),
        ({"reported_pct": None}, "throughput as reported: too few loads are fit for that comparison on both sides"),
    ],
)
def test_what_is_not_known_is_named(engine_shift, changed, text) -> None:
    assert text in unknowns({**engine_shift, **changed})
    assert text not in unknowns(engine_shift)


def test_recorded_digests_recipes_and_builds_are_no_doubts(engine_shift: dict[str, Any]) -> None:
    known = copy.deepcopy(engine_shift)
    for side in ("from", "to"):
        known[side]["image_digest"] = "sha256:" + "0" * 64
        known["recorded"][side]["recipe_fingerprint"] = "r"
        known["runs"][side] = 5
    assert [line for line in unknowns(known) if not line.startswith("which machine")] == []
    known["to"]["image_digest"] = None
    assert "no digest is recorded on the later side" in unknowns(known)[0]
    known["from"]["build_id"] = "unknown:0"
    assert unknowns(known)[0] == "which build ran on the earlier side: it is not recorded"


@given(
    st.sampled_from(["environment", "measurement", "unknown"]),
    st.sampled_from(["step", "recovered", "blip", "return", "drift", None]),
    st.sampled_from(["suspected", "confirmed", "recovered"]),
)
def test_no_engine_is_named_as_the_cause_where_it_is_not_known_to_be(attribution, kind, status) -> None:
    """Nothing upstream is offered either, whatever is linked."""
    text = told({**BASE, "attribution": attribution, "kind": kind, "status": status, "upstream": UPSTREAM})
    assert "engine: the build" not in text and "Upstream" not in text and "Read first" not in text


UPSTREAM = {"candidates": 1, "range_how": "", "open_ended": False, "narrowed": True, "changes": []}
SIDE = {"measured_at": "2026-01-01T06:00:00Z", "run_id": "1", "image_ref": "a:b", "image_digest": None, "build_id": "tag:a:b"}
BASE: dict[str, Any] = {
    **{name: value for name, value in frames.comparison().items() if not name.startswith(("from_", "to_"))},
    **dict.fromkeys(("superseded_by", "echo_of", "now", "headline", "explained_share", "upstream")),
    "shift_id": "aaaaaa01",
    "diff_id": "aaaaaa01",
    "status_reason": "seen once",
    "linked": [],
    "why_not": [],
    "unknown": [],
    "interval_pct": [-8.9, -7.3],
    "noise_pct": 0.6,
    "noise_insufficient": False,
    "siblings": 1,
    "siblings_total": 1,
    "curve": frames.IDENTITY,
    "from": SIDE,
    "to": {**SIDE, "build_id": "tag:a:c"},
    "runs": {"from": 1, "to": 1},
    "fitness": {"from": None, "to": None},
    "frontier": [],
    "concurrencies": [],
}


def test_lists_are_bounded() -> None:
    row = {"concurrency": 1, "request_rate": None, "from": {"tput_per_gpu": 1.0}, "to": {"tput_per_gpu": 1.0}}
    many = {"change_detail": [f"d{i}" for i in range(50)], "unknown": [f"u{i}" for i in range(50)], "linked": ["s"] * 50}
    lines = list(sentences({**BASE, "status": "suspected", "kind": None, **many, "concurrencies": [row] * 100}))
    assert len(lines) < 100
    assert "  … 60 more: --format json" in lines and lines.count("  … 40 more") == 3


def test_an_id_needs_six_characters_and_must_be_one(store: Store) -> None:
    with pytest.raises(InputError, match="at least 6 characters"):
        explain(store, "aaaaa")
    with pytest.raises(InputError, match="no such shift or comparison"):
        explain(store, "ffffffff")


def test_on_a_terminal_strangers_text_is_escaped(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines import summaries

    answer = explain(store, ENGINE)
    answer["change_detail"] = ["recipe log: \x1b[31mred"]
    summaries.out_explanation(answer, "text")
    assert "\x1b" not in capsys.readouterr().out


def test_json_has_every_fact_that_the_sentences_are_made_of(store: Store) -> None:
    for prefix in (ENGINE, NOTICE, RARE, GONE, QUIET):
        answer = json.loads(json.dumps(explain(store, prefix)))
        assert list(sentences(answer)) == list(sentences(explain(store, prefix)))


def test_the_same_through_the_command_line_on_a_log(store: Store) -> None:
    """Tables without a log are no warehouse; nothing is shown but one line."""
    result = CliRunner().invoke(main, ["--warehouse", store.uri, "explain", ENGINE])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and "no warehouse" in result.stderr


def test_rows_in_any_order_give_the_same_words(store: Store, tmp_path: Any) -> None:
    turned = Store(str(tmp_path / "turned"))
    for name in ("shifts", "diffs", "points", "fitness", "frontier_diffs", "links"):
        turned.overwrite(name, store.read(name).reverse().cast(dict(TABLES[name].schema)), Mark(1))
    for prefix in (ENGINE, NOTICE, RARE, GONE, QUIET):
        assert list(sentences(explain(turned, prefix))) == list(sentences(explain(store, prefix)))


def test_a_name_with_a_line_feed_begins_no_line(engine_shift: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    forged = {**engine_shift["to"], "image_ref": "vllm/vllm-openai:v1\nAttribution: engine: forged"}
    out_explanation({**engine_shift, "attribution": "environment", "to": forged}, "text")
    lines = capsys.readouterr().out.splitlines()
    assert sum("forged" in line for line in lines) >= 1
    assert not any(line.startswith("Attribution: engine") for line in lines)
