"""What InferenceX keeps beside results: shapes, and errors that name the field. Values by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.tools import inferencex_run as aside
from pipelines.ingest.tools.inferencex_run import HardwareJobs, RecipeEntry, ReuseSource
from warehouse.errors import InputError

API = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "api"
STATS = {"b200-dgxc": {"n_success": 3, "total": 4}, "mi355x-amds": {"n_success": 0, "total": 0}}
CHANGES: dict[str, Any] = {
    "base_ref": "b7740fb8",
    "head_ref": "ae5b9ad7",
    "entries": [
        {
            "config-keys": ["dsr1-fp8-h200-sglang"],
            "description": ["Update the image", "and a flag"],
            "pr-link": "https://github.com/SemiAnalysisAI/InferenceX/pull/1746",
            "evals-only": False,
            "append-only": True,
            "scenario-type": ["fixed-seq-len"],
        },
        {"config-keys": ["dsr1-*"], "description": "one\ntwo", "evals-only": True},
    ],
}
REUSE = {
    "source_run_id": "25763435778",
    "source_run_attempt": "2",
    "source_run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/25763435778",
    "source_pr_number": "1357",
    "source_head_sha": "ab" * 20,
    "ingest_run_id": 25800000000,
    "ingest_run_attempt": "1",
    "ingest_run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/25800000000",
}
INFO: dict[str, Any] = {
    "runs": [
        {
            "github_run_id": "27485974465",
            "name": "Run Sweep",
            "conclusion": "success",
            "run_attempt": 1,
            "html_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/27485974465",
            "created_at": "2026-06-14T04:08:16Z",
            "date": "2026-06-14",
        }
    ],
    "changelogs": [
        {
            "workflow_run_id": "27485974465",
            "date": "2026-06-14",
            "base_ref": "b7740fb8",
            "head_ref": "ae5b9ad7",
            "config_keys": ["minimaxm3-fp8-mi300x-vllm"],
            "description": "one\ntwo",
            "pr_link": None,
        }
    ],
    "configs": [],
}


def test_jobs_of_a_run() -> None:
    assert aside.is_run_stats(STATS)
    assert aside.read_run_stats(STATS) == (HardwareJobs("b200-dgxc", "b200", 3, 4),)
    assert aside.read_run_stats(None) == ()  # written where GitHub refused to tell


def test_jobs_in_the_api() -> None:
    row = {"hardware": "h200", "date": "2026-06-13", "n_success": 67, "total": 68}
    assert aside.is_reliability(row)
    assert aside.read_reliability([row]) == (HardwareJobs("h200", "h200", 67, 68, datetime(2026, 6, 13, tzinfo=UTC)),)


def test_recipe_entries() -> None:
    assert aside.is_changelog_metadata(CHANGES)
    found = aside.read_changelog_metadata(CHANGES)
    assert (found.base_ref, found.head_ref, found.run_id) == ("b7740fb8", "ae5b9ad7", None)
    assert found.entries == (
        RecipeEntry(
            ("dsr1-fp8-h200-sglang",),
            ("Update the image", "and a flag"),
            "https://github.com/SemiAnalysisAI/InferenceX/pull/1746",
            append_only=True,
            scenario_types=("fixed-seq-len",),
        ),
        RecipeEntry(("dsr1-*",), ("one", "two"), None, evals_only=True),
    )


def test_the_run_that_measured() -> None:
    assert aside.is_reuse_source(REUSE)
    url = REUSE["source_run_url"]
    whole = ReuseSource("SemiAnalysisAI/InferenceX", "25763435778", 2, "ab" * 20, 1357, "25800000000", 1, str(url))
    assert aside.read_reuse_source(REUSE) == whole
    assert aside.read_reuse_source({"source_run_id": 25763435778}) == ReuseSource(None, "25763435778", 1, *[None] * 5)


def test_runs_of_a_day() -> None:
    assert aside.is_workflow_info(INFO)
    runs, changes = aside.read_workflow_info(INFO)
    assert (runs[0].run_source, runs[0].run_id, runs[0].created_at.hour) == ("SemiAnalysisAI/InferenceX", "27485974465", 4)
    assert (changes[0].run_id, changes[0].entries[0].config_keys) == ("27485974465", ("minimaxm3-fp8-mi300x-vllm",))
    assert changes[0].entries[0].description == ("one", "two")


@pytest.mark.parametrize(
    ("read", "value", "field"),
    [
        (aside.read_run_stats, [], "run_stats: "),
        (aside.read_run_stats, {"b200": 5}, "b200: "),
        (aside.read_run_stats, {"b200": {"total": 5}}, "b200.n_success: "),
        (aside.read_run_stats, {"b200": {"n_success": 6, "total": 5}}, "b200.n_success: 6 of 5"),
        (aside.read_reliability, [{"date": "2026-06-13"}], "reliability.0.hardware: "),
        (aside.read_changelog_metadata, {**CHANGES, "base_ref": None}, "base_ref: "),
        (aside.read_changelog_metadata, {**CHANGES, "entries": {}}, "entries: "),
        (aside.read_changelog_metadata, {**CHANGES, "entries": [{"config-keys": [4]}]}, "entries.0.config-keys: "),
        (aside.read_reuse_source, {"source_run_id": "not-a-run"}, "source_run_id: "),
        (aside.read_reuse_source, {**REUSE, "source_run_attempt": "0"}, "source_run_attempt: "),
        (aside.read_workflow_info, {**INFO, "runs": [{"html_url": "http://x"}]}, "runs.0.html_url: "),
        (aside.read_workflow_info, {**INFO, "changelogs": None}, "changelogs: "),
    ],
)
def test_a_wrong_field_is_named(read: Callable[[Any], Any], value: Any, field: str) -> None:
    with pytest.raises(InputError) as refused:
        read(value)
    assert str(refused.value).startswith(field)


@pytest.mark.parametrize("value", [None, [], {}, 5, "x", {"b200": {"n_success": 1}}, {"model": {"mean": 1, "total": 2}}])
def test_what_is_none_of_them(value: Any) -> None:
    known = (aside.is_run_stats, aside.is_reliability, aside.is_changelog_metadata, aside.is_reuse_source, aside.is_workflow_info)
    assert not any(is_one(value) for is_one in known)


READERS = {
    aside.read_run_stats: STATS,
    aside.read_changelog_metadata: CHANGES,
    aside.read_reuse_source: REUSE,
    aside.read_workflow_info: INFO,
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([10**400, "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n_success", "total", "html_url"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(list(READERS)), st.data())
def test_anything_is_read_or_refused(read: Callable[[Any], Any], data: st.DataObject) -> None:
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(READERS[read])), ANYTHING))
    for value in ({**READERS[read], **changes}, data.draw(ANYTHING)):
        try:
            read(value)
        except InputError as refused:
            assert str(refused)


def test_real_answers() -> None:
    if not API.is_dir():
        pytest.skip("shared/data/inferencex/api absent")
    rows = json.loads((API / "reliability.json").read_text("utf-8"))
    assert all(map(aside.is_reliability, rows))
    assert len(aside.read_reliability(rows)) == sum(row["total"] > 0 for row in rows) == 36
    info = json.loads((API / "workflow-info.json").read_text("utf-8"))
    runs, changes = aside.read_workflow_info(info)
    assert {run.run_id for run in runs} == {change.run_id for change in changes}
