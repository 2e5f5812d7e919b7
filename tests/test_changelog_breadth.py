"""Which curves of one pair of builds moved, and what that says of the facets."""

from math import log
from typing import Any

import polars as pl
import pytest

from changelog.breadth import LEAST, MOST, NOT_NEEDED, Comparisons, Split, breadth
from changelog.facets import Configuration
from warehouse.schemas import DIFFS

MLA = Configuration("b200", "dsr1", "fp8", "none", False, "regression", "tput_per_gpu")


def row(curve: str, model: str, moved: float, **changed: Any) -> dict[str, Any]:
    """One comparison; *moved*: the log-ratio of a flagged one, 0 where nothing moved."""
    told: dict[str, Any] = dict.fromkeys(DIFFS.schema.names())
    told |= {
        "curve_id": curve,
        "engine": "vllm",
        "hardware": "b200",
        "model": model,
        "precision": "fp8",
        "spec_decoding": "none",
        "disagg": False,
        "size": moved,
        "flagged": moved != 0,
        "from_engine_version": "0.11.2",
        "to_engine_version": "0.12.0",
    }
    return told | changed


def night(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=DIFFS.schema)


def test_only_mla_models_moved() -> None:
    """Three of three curves with MLA, none of four others: ln((3.5/4) / (0.5/5)) / 2 + 1 is 2.08, which is capped."""
    rows = [row(f"m{number}", "dsr1", -0.1) for number in range(3)] + [row(f"q{number}", "qwen3.5", 0) for number in range(4)]
    found = breadth(rows, MLA)
    assert (found.moved, found.total, found.wide) == (3, 7, False)
    assert found.splits["mla"] == Split(3, 3, 0, 4)
    assert found.factor("mla") == MOST == 2.0
    assert found.words("mla") == "only curves with MLA attention moved: 3 of 3; others 0 of 4"
    assert found.factor("nvidia") == 1.0, "all curves have it: that tells nothing"
    assert found.factor("dense_attention") == 1.0, "not asked for"
    assert found.factor("scheduler") == 1.0


def test_mostly_is_less_than_only() -> None:
    split = Split(3, 4, 1, 4)
    assert split.factor == pytest.approx(1 + log((3.5 / 5) / (1.5 / 5)) / 2, abs=1e-4)
    assert Split(1, 4, 3, 4).factor == pytest.approx(1 - log((3.5 / 5) / (1.5 / 5)) / 2, abs=1e-4)
    assert Split(0, 9, 9, 9).factor == 1 / MOST


@pytest.mark.parametrize("split", [Split(1, 1, 0, 9), Split(9, 9, 0, 1), Split(0, 0, 3, 3)])
def test_too_few_curves_tell_nothing(split: Split) -> None:
    assert LEAST == 2 and split.factor == 1.0


def test_everything_moved_speaks_for_what_all_share() -> None:
    rows = [row(f"m{number}", "dsr1", -0.1) for number in range(3)] + [row(f"q{number}", "qwen3.5", -0.1) for number in range(4)]
    found = breadth(rows, MLA)
    assert found.wide and found.factor("scheduler") == MOST and found.factor("mla") == NOT_NEEDED
    assert found.words("scheduler") == "nearly all curves moved: 7 of 7"


def test_one_sort_of_curves_is_not_wide() -> None:
    assert not breadth([row(f"m{number}", "dsr1", -0.1) for number in range(7)], MLA).wide


def test_the_other_direction_did_not_move_and_a_curve_counts_once() -> None:
    rows = [row("m1", "dsr1", 0.1), row("m2", "dsr1", -0.1), row("m2", "dsr1", 0)]
    found = breadth(rows, MLA)
    assert (found.moved, found.total) == (1, 2)


def test_comparisons_are_kept_apart_by_builds() -> None:
    known = Comparisons(night(row("m1", "dsr1", -0.1), row("m2", "dsr1", -0.1, to_engine_version="0.13.0")))
    assert known.breadth(row("m1", "dsr1", -0.1), MLA).total == 1
    assert known.breadth(row("m1", "dsr1", -0.1, engine="sglang"), MLA).total == 0
    assert Comparisons(None).breadth(row("m1", "dsr1", -0.1), MLA).total == 0


def test_order_of_rows_does_not_matter() -> None:
    rows = [row(f"c{number}", ("dsr1", "qwen3.5")[number % 2], -0.1 * (number % 3)) for number in range(9)]
    assert breadth(rows, MLA) == breadth(rows[::-1], MLA)
