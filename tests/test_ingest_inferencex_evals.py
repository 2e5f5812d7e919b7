"""Evaluations of InferenceX: rows of its collector and of its API, and what `meta_env.json` declares. Values by hand."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from pipelines.ingest.reading import EvalReading, Given
from pipelines.ingest.tools import inferencex
from pipelines.ingest.tools.inferencex_evals import (
    AGGREGATE_FORMAT,
    API_FORMAT,
    FORMATS,
    clean_aggregate,
    is_meta_env,
    origin_aggregate,
    origin_api,
    read_aggregate,
    read_api,
    sidecar_settings,
)
from tests.lengths import either
from tests.mutated import mutations
from warehouse.cell import curve_id
from warehouse.errors import InputError

NOTHING = Given()


def row(**changes: Any) -> dict[str, Any]:
    """Return a row of the collector as of 2026-07: one node, with the sizes by role that it writes for every row."""
    return {
        "is_multinode": False,
        "model_prefix": "gptoss",
        "model": "openai/gpt-oss-120b",
        "hw": "H100-DGXC",
        "framework": "vllm",
        "precision": "fp4",
        "spec_decoding": "none",
        "isl": 8192,
        "osl": 1024,
        "tp": 4,
        "ep": 1,
        "prefill_tp": 4,
        "prefill_ep": 1,
        "prefill_num_workers": 1,
        "decode_tp": 4,
        "decode_ep": 1,
        "decode_num_workers": 1,
        "conc": 64,
        "dp_attention": "false",
        "prefill_dp_attention": "false",
        "decode_dp_attention": "false",
        "task": "gsm8k",
        "em_strict": 0.955,
        "em_strict_se": 0.0057,
        "em_flexible": 0.957,
        "em_flexible_se": 0.0056,
        "n_eff": 1319,
        "source": "/home/runner/work/eval_results/eval_gptoss_8k1k_x/results_2026-07-20T05-06-07.563841.json",
        "score": 0.955,
        "score_name": "em_strict",
        "score_se": 0.0057,
        **changes,
    }


SEVERAL = {
    "is_multinode": True,
    "framework": "dynamo-sglang",
    "hw": "GB300",
    "prefill_num_workers": 3,
    "decode_tp": 8,
    "decode_ep": 8,
    "decode_dp_attention": "true",
    "dp_attention": "prefill=false,decode=true",
}


def api_row(**changes: Any) -> dict[str, Any]:
    """Return a row of the API: one node, called disaggregated because each role has a worker by default."""
    return {
        "id": "7444",
        "config_id": 1487,
        "hardware": "mi300x",
        "framework": "vllm",
        "model": "minimaxm3",
        "precision": "fp8",
        "spec_method": "mtp",
        "disagg": True,
        "is_multinode": False,
        "prefill_tp": 8,
        "prefill_ep": 8,
        "prefill_dp_attention": False,
        "prefill_num_workers": 1,
        "decode_tp": 8,
        "decode_ep": 8,
        "decode_dp_attention": False,
        "decode_num_workers": 1,
        "num_prefill_gpu": 64,
        "num_decode_gpu": 64,
        "task": "gsm8k",
        "date": "2026-06-14",
        "conc": 256,
        "metrics": {"n_eff": 1319, "em_strict": 0.95, "em_flexible": 0.94, "em_strict_se": 0.006, "em_flexible_se": 0.007},
        "timestamp": "2026-06-14T05:49:24Z",
        "run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/27487999691",
        **changes,
    }


def meta_env(**changes: Any) -> dict[str, Any]:
    """Return a meta_env.json: lengths are texts, sizes numbers."""
    return {
        "is_multinode": False,
        "framework": "sglang",
        "precision": "fp8",
        "spec_decoding": "",
        "recipe_fingerprint": "0123456789abcdef",
        "tp": 8,
        "pp": 1,
        "dcp_size": 1,
        "pcp_size": 1,
        "conc": 32,
        "ep": 8,
        "dp_attention": True,
        "prefill_tp": 8,
        "prefill_num_workers": 1,
        "decode_tp": 8,
        "decode_num_workers": 1,
        "model": "/mnt/x/DeepSeek-R1-0528",
        "infmax_model_prefix": "dsr1",
        "hw": "b200-nb_3",
        "isl": "8192",
        "osl": "0",
        **changes,
    }


def told(reading: EvalReading) -> dict[str, Any]:
    return {key: value for key, value in reading.identity.items() if value is not None}


def test_a_row_of_one_node() -> None:
    strict, flexible = read_aggregate(row(), NOTHING)
    assert (strict.task, strict.metric, strict.score, strict.score_stderr) == ("gsm8k", "exact_match,strict-match", 0.955, 0.0057)
    assert (flexible.metric, flexible.score, flexible.score_stderr) == ("exact_match,flexible-extract", 0.957, 0.0056)
    assert (strict.samples, strict.samples_total, strict.concurrency) == (1319, None, 64)
    assert told(strict) == {
        "hardware": "h100",
        "engine": "vllm",
        "framework": "vllm",
        "model": "gptoss120b",
        "precision": "fp4",
        "spec_decoding": "none",
        "disagg": False,
        "is_multinode": False,
        "tp": 4,
        "ep": 1,
        "dp_attention": False,
        "scenario": "fixed-seq-len",
        "isl": 8192,
        "osl": 1024,
    }
    assert (strict.hardware_label, strict.model_source, strict.measured_at) == ("H100-DGXC", "openai/gpt-oss-120b", None)


def test_a_row_of_several_nodes_has_sizes_by_role() -> None:
    found = told(read_aggregate(row(**SEVERAL), NOTHING)[0])
    assert "tp" not in found and "dp_attention" not in found
    assert (found["disagg"], found["is_multinode"], found["engine"]) == (True, True, "sglang")
    assert (found["prefill_tp"], found["prefill_ep"], found["prefill_dp_attention"], found["prefill_num_workers"]) == (
        4,
        1,
        False,
        3,
    )
    assert (found["decode_tp"], found["decode_ep"], found["decode_dp_attention"], found["decode_num_workers"]) == (8, 8, True, 1)
    aggregated = told(read_aggregate(row(**SEVERAL, decode_num_workers=0) | {"decode_tp": 0}, NOTHING)[0])
    assert (aggregated["disagg"], aggregated["decode_num_workers"], aggregated.get("decode_tp")) == (False, 0, None)


def test_a_row_of_january() -> None:
    old = row(dp_attention="none")
    for key in list(old):
        if key.startswith(("prefill_", "decode_", "is_", "isl", "osl", "model_prefix")):
            del old[key]
    found = read_aggregate(old, NOTHING)[0]
    identity = told(found)
    assert (identity["tp"], identity["isl"], identity["osl"], identity["model"]) == (4, 8192, 1024, "gptoss120b")
    assert (identity["is_multinode"], identity["disagg"]) == (False, False)
    assert "dp_attention" not in identity


def test_unknowns_of_the_collector_are_none() -> None:
    strange = row(
        hw="UNKNOWN", framework="unknown", precision="unknown", spec_decoding="unknown", isl=0, osl=0, conc=0, source=None
    )
    found = read_aggregate(strange, NOTHING)[0]
    assert told(found).keys() == {"model", "tp", "ep", "dp_attention", "disagg", "is_multinode"}
    assert (found.concurrency, found.hardware_label) == (None, None)


def test_names_of_other_tasks_stay() -> None:
    (one,) = read_aggregate(row(task="gpqa", em_flexible=None, em_flexible_se=None), NOTHING)
    assert (one.task, one.metric) == ("gpqa", "em_strict")
    accuracy = row(task="mmlu", em_strict=None, em_flexible=None, score=0.5, score_name="accuracy", score_se=0.01)
    (one,) = read_aggregate(accuracy, NOTHING)
    assert (one.metric, one.score, one.score_stderr) == ("acc", 0.5, 0.01)
    with pytest.raises(InputError, match="no score in the row"):
        read_aggregate(row(em_strict=None, em_flexible=None, score=None), NOTHING)


def test_the_time_in_a_files_name_needs_a_zone() -> None:
    with pytest.raises(InputError, match="timezone"):
        origin_aggregate(row(), NOTHING)
    zone = Given(declared={"timezone": "UTC"})
    found = origin_aggregate(row(), zone)
    assert found and found.run_id == "day-2026-07-20"
    assert read_aggregate(row(), zone)[0].measured_at == datetime(2026, 7, 20, 5, 6, 7, 563841, UTC)
    assert origin_aggregate(row(source=None), NOTHING) is None


def test_folders_of_the_runner_are_not_kept() -> None:
    kept = clean_aggregate(row(model="/home/somebody/m/gpt-oss-120b"))
    assert kept["source"] == "eval_gptoss_8k1k_x/results_2026-07-20T05-06-07.563841.json"
    assert kept["model"] == "gpt-oss-120b"
    assert clean_aggregate(kept) == kept
    assert AGGREGATE_FORMAT.recognises(kept)
    assert read_aggregate(clean_aggregate(row()), NOTHING) == read_aggregate(row(), NOTHING)


def test_a_row_of_the_api_with_one_worker_a_role_is_one_deployment() -> None:
    strict, flexible = read_api(api_row(), NOTHING)
    assert (strict.metric, strict.score, strict.score_stderr, strict.samples) == ("exact_match,strict-match", 0.95, 0.006, 1319)
    assert (flexible.metric, flexible.score) == ("exact_match,flexible-extract", 0.94)
    assert told(strict) == {
        "hardware": "mi300x",
        "engine": "vllm",
        "framework": "vllm",
        "model": "minimaxm3",
        "precision": "fp8",
        "spec_decoding": "mtp",
        "disagg": False,
        "is_multinode": False,
        "tp": 8,
        "ep": 8,
        "dp_attention": False,
    }
    assert (strict.concurrency, strict.measured_at) == (256, None)


def test_a_disaggregated_row_of_the_api() -> None:
    for changes in ({"framework": "mori-sglang"}, {"decode_tp": 4}, {"is_multinode": True}):
        found = told(read_api(api_row(**changes), NOTHING)[0])
        assert (found["disagg"], found["prefill_tp"], found["decode_num_workers"]) == (True, 8, 1)
        assert "tp" not in found


def test_a_repeated_score_is_read_once() -> None:
    metrics = {"n_eff": 1319, "score": 0.95, "score_se": 0.006, "em_strict": 0.95, "em_strict_se": 0.006}
    (one,) = read_api(api_row(metrics=metrics), NOTHING)
    assert one.metric == "exact_match,strict-match"


def test_origin_of_an_api_row_is_its_workflow_run() -> None:
    found = origin_api(api_row(), NOTHING)
    assert found and (found.run_source, found.run_id, found.run_attempt) == ("SemiAnalysisAI/InferenceX", "27487999691", 1)
    assert found.started_at == datetime(2026, 6, 14, 5, 49, 24, tzinfo=UTC)
    second = origin_api(api_row(run_url=api_row()["run_url"] + "/attempts/2"), NOTHING)
    assert second and second.run_attempt == 2
    assert origin_api(api_row(run_url=None), NOTHING) is None
    with pytest.raises(InputError, match="timestamp"):
        origin_api(api_row(timestamp="2026-06-14T05:49:24"), NOTHING)


def test_formats_do_not_clash() -> None:
    formats = (*FORMATS, inferencex.FORMAT)
    for record, own in ((row(), AGGREGATE_FORMAT), (api_row(), API_FORMAT)):
        assert [one for one in formats if one.recognises(record)] == [own]
        assert not is_meta_env(record)
    assert not [one for one in formats if one.recognises(meta_env())]


def test_what_a_meta_env_declares() -> None:
    assert is_meta_env(meta_env())
    assert sidecar_settings(meta_env()) == {
        "framework": "sglang",
        "hardware": "b200-nb_3",
        "model": "DeepSeek-R1-0528",
        "precision": "fp8",
        "recipe": "0123456789abcdef",
        "isl": "8192",
        "concurrency": "32",
        "tp": "8",
        "pp": "1",
        "ep": "8",
        "dp_attention": "true",
        "disagg": "false",
    }
    strange = sidecar_settings(meta_env(model="/mnt/x/snapshot", framework="unknown", hw="unknown", precision="unknown"))
    assert strange["model"] == "dsr1"
    assert not strange.keys() & {"framework", "hardware", "precision"}


def test_a_meta_env_of_several_nodes_declares_sizes_by_role() -> None:
    roles = {"prefill_tp": 4, "prefill_dp_attention": "true", "decode_tp": 8, "decode_num_workers": 2, "decode_ep": 0}
    found = sidecar_settings(
        meta_env(is_multinode=True, framework="dynamo-trt", eval_concs=[4, 16], spec_decoding="mtp", **roles)
    )
    assert {key: found[key] for key in found if key.startswith(("prefill", "decode"))} == {
        "prefill_tp": "4",
        "prefill_dp_attention": "true",
        "prefill_num_workers": "1",
        "decode_tp": "8",
        "decode_num_workers": "2",
    }
    assert found["is_multinode"] == "true"
    assert not found.keys() & {"tp", "pp", "ep", "dp_attention", "disagg", "concurrency"}
    assert (found["framework"], found["spec_decoding"]) == ("dynamo-trt", "mtp")


def test_a_broken_meta_env_is_refused_by_name() -> None:
    for changes in ({"tp": "many"}, {"isl": [1]}, {"framework": 3}, {"is_multinode": "yes"}, {"conc": -1}):
        with pytest.raises(InputError, match=next(iter(changes))):
            sidecar_settings(meta_env(**changes))


def check(read: Any, origin: Any, record: dict[str, Any]) -> None:
    try:
        found = read(record, NOTHING)
    except InputError as error:
        assert str(error)
    else:
        assert found
        for reading in found:
            assert math.isfinite(reading.score)
            assert curve_id(reading.identity)
    try:
        origin(record, NOTHING)
    except InputError as error:
        assert str(error)


@hypothesis_settings(max_examples=either(50, 200), deadline=None)
@given(record=mutations(row()))
def test_a_mutated_row_is_refused_or_finite(record: dict[str, Any]) -> None:
    check(read_aggregate, origin_aggregate, record)
    check(read_aggregate, origin_aggregate, clean_aggregate(record))


@hypothesis_settings(max_examples=either(50, 200), deadline=None)
@given(record=mutations(api_row()))
def test_a_mutated_row_of_the_api_is_refused_or_finite(record: dict[str, Any]) -> None:
    check(read_api, origin_api, record)


@hypothesis_settings(max_examples=either(50, 200), deadline=None)
@given(record=mutations(meta_env()))
def test_a_mutated_meta_env_is_refused_or_declares(record: dict[str, Any]) -> None:
    try:
        assert all(isinstance(value, str) for value in sidecar_settings(record).values())
    except InputError as error:
        assert str(error)


def test_real_rows_of_the_api(shared_data: Path) -> None:
    rows = json.loads((shared_data / "inferencex" / "api" / "evaluations.json").read_text("utf-8"))
    assert len(rows) == 133
    single = 0
    for one in rows:
        assert API_FORMAT.recognises(one)
        strict, flexible = read_api(one, NOTHING)
        assert (strict.score, flexible.score) == (one["metrics"]["em_strict"], one["metrics"]["em_flexible"])
        assert strict.samples == 1319
        assert strict.identity["disagg"] is one["is_multinode"]
        single += strict.identity["tp"] is not None
        assert origin_api(one, NOTHING)
    assert single == 120  # 13 rows are of several nodes; the app calls 129 rows disaggregated
