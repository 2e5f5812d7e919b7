"""Records of one measurement: however it was written down, it counts once; what differs in a digit is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.fold import measurement
from pipelines.verification import verify
from tests.records import row, write_run
from tests.test_ingest_sides import take
from warehouse.log import EventLog
from warehouse.schemas import METRIC_COLUMNS, POINTS

STARTED = "2026-05-05T06:00:00Z"


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """Return rows of `points` that are one point but for what each says otherwise."""
    numbers = {column.name: 1.5 + place for place, column in enumerate(METRIC_COLUMNS)}
    base = {"record_hash": "ab" * 16, "cell_id": "cd" * 16, "build_id": "tag:x:v1", "declared_fields": [], **numbers}
    wanted = {name: dtype for name, dtype in POINTS.schema.items() if name in base}
    return pl.DataFrame([{**base, **each} for each in rows], schema=wanted)


def keys(*rows: dict[str, Any]) -> list[int]:
    return measurement.key(frame(*rows)).to_list()


def test_the_text_of_a_record_does_not_count_and_its_numbers_do() -> None:
    same, other = keys({}, {"record_hash": "ee" * 16})
    assert same == other
    for change in (
        {"cell_id": "ce" * 16},
        {"build_id": "tag:x:v2"},
        {"tput_per_gpu": 1.5000000000000002},
        {"e2el_p999": None},
    ):
        assert keys(change) != [same], change
    worked_out = {"intvty_mean": 9.0, "steady_output_tput_per_gpu": None}
    assert keys(worked_out) == [same], "what follows from other numbers"


def test_few_numbers_or_a_declaration_leave_it_to_the_text() -> None:
    few = {column.name: None for column in METRIC_COLUMNS[2:]}
    assert keys(few, {**few, "cell_id": "00" * 16}) == [0xABABABABABABABA] * 2
    told = {"declared_fields": ["hardware"]}
    assert keys(told, {**told, "cell_id": "00" * 16}) == [0xABABABABABABABA] * 2


@given(
    st.lists(
        st.tuples(st.sampled_from(["00" * 16, "cd" * 16]), st.floats(0, 1e6), st.one_of(st.none(), st.floats(0, 1e6))),
        max_size=20,
    )
)
def test_keys_are_equal_where_the_rows_are_and_nowhere_else(values: list[tuple[str, float, float | None]]) -> None:
    rows = [{"cell_id": cell, "tput_per_gpu": tput + 0.0, "ttft_mean": ttft} for cell, tput, ttft in values]
    found = keys(*rows) if rows else measurement.key(frame()).to_list()
    for one, key in zip(rows, found, strict=True):
        for other, another in zip(rows, found, strict=True):
            zeros = {name: value or 0.0 for name, value in one.items()} == {name: value or 0.0 for name, value in other.items()}
            assert (key == another) == zeros  # an absent number counts as nought


def api_row(artifact: dict[str, Any], run: int) -> dict[str, Any]:
    """Return what the public API says of an artifact's row (shape: `/api/v1/benchmarks`)."""
    metrics = {key: value for key, value in artifact.items() if isinstance(value, float)}
    roles = {f"{role}_{key}": value for role in ("prefill", "decode") for key, value in (("tp", 8), ("ep", 1))}
    flags = {f"{role}_dp_attention": False for role in ("prefill", "decode")}
    return {
        "hardware": "h200",
        "framework": "vllm",
        "model": "dsr1",
        "precision": "fp8",
        "spec_method": "none",
        "disagg": False,
        "is_multinode": False,
        **roles,
        **flags,
        "prefill_num_workers": 0,
        "decode_num_workers": 0,
        "num_prefill_gpu": 8,
        "num_decode_gpu": 8,
        "isl": 1024,
        "osl": 1024,
        "conc": artifact["conc"],
        "image": artifact["image"],
        "metrics": metrics,
        "workers": None,
        "date": "2026-05-05",
        "run_url": f"https://github.com/example/fleet/actions/runs/{run}/attempts/1",
    }


@pytest.mark.parametrize("order", [("artifact", "api"), ("api", "artifact")])
def test_the_answer_of_the_api_and_the_artifact_are_one_measurement(
    log: EventLog, tmp_path: Path, order: tuple[str, str]
) -> None:
    rows = [row(4), row(8)]
    place = write_run(tmp_path / "runs", 7, STARTED, rows)
    answer = tmp_path / "benchmarks.json"
    answer.write_text(json.dumps([api_row(own, 7) for own in rows]), "utf-8")
    for name in order:
        assert take(log, {"artifact": place, "api": answer}[name]).quarantined == []
    found = log.store.read("points")
    counting = found.filter(~pl.col("reused"))
    assert found.group_by("record_format").len().sort("record_format").rows() == [("inferencex", 2), ("inferencex-api", 2)]
    assert counting["record_format"].to_list() == ["inferencex", "inferencex"], "the tool's own record counts"
    assert found["cell_id"].n_unique() == 2
    assert verify(log) == []


def test_real_answers_and_artifacts_of_one_run_are_one_measurement(log: EventLog, shared_data: Path) -> None:
    """Run 20356790608 is there as artifact (90 rows) and as one row of the API."""
    take(log, shared_data / "inferencex" / "runs" / "run_20356790608", shared_data / "inferencex" / "api" / "benchmarks.json")
    own = log.store.read("points").filter(pl.col("run_id") == "20356790608")
    assert own.height == 91
    assert own.filter("reused")["record_format"].to_list() == ["inferencex-api"]
