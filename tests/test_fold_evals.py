"""Evaluations from files to the table `evals`: scores as shares, their runs, corrections, retractions, order of reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.fold.small import whole_tables
from pipelines.retraction import retract
from pipelines.verification import verify
from tests.records import run_object
from tests.test_ingest_sides import NOW, take
from warehouse.log import EventLog
from warehouse.schemas import TABLES
from warehouse.sql import query


def lm_eval(score: float = 0.9) -> dict[str, Any]:
    """Return a results file of lm-evaluation-harness: one task, two filters, 1319 questions."""
    return {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": score,
                "exact_match_stderr,strict-match": 0.008,
                "exact_match,flexible-extract": score + 0.01,
                "exact_match_stderr,flexible-extract": 0.0075,
            }
        },
        "group_subtasks": {},
        "configs": {"gsm8k": {"task": "gsm8k", "num_fewshot": 5}},
        "versions": {"gsm8k": 3.0},
        "n-shot": {"gsm8k": 5},
        "higher_is_better": {"gsm8k": {"exact_match": True}},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}},
        "config": {"model": "local-completions", "model_args": {"model": "openai/gpt-oss-120b"}, "limit": None},
        "git_hash": "abc1234",
        "date": 1767596400.0,
        "lm_eval_version": "0.4.9",
        "model_name": "openai/gpt-oss-120b",
    }


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def evals(log: EventLog) -> pl.DataFrame:
    """Return the table, after a check that it is what follows from the log."""
    stored = log.store.read("evals")
    made = whole_tables(log, log.last_sequence())["evals"]
    assert stored.equals(made.sort(TABLES["evals"].order, maintain_order=True))
    return stored


def test_scores_of_a_results_file(log: EventLog, tmp_path: Path) -> None:
    """1767596400 is 2026-01-05 07:00 UTC: the run of that day, because no run.json dates it."""
    path = write(tmp_path / "in/results_2026-01-05T07-00-00.json", lm_eval())
    intake = take(log, path, hardware="h100", precision="fp4", engine="vllm", engine_version="0.13.0")
    assert (intake.quarantined, intake.new["EvalRecorded"]) == ([], 1)
    found = evals(log).sort("metric")
    assert found.select("task", "metric", "score", "score_stderr", "samples", "few_shot").rows() == [
        ("gsm8k", "exact_match,flexible-extract", 0.91, 0.0075, 1319, 5),
        ("gsm8k", "exact_match,strict-match", 0.9, 0.008, 1319, 5),
    ]
    first = found.row(0, named=True)
    assert (first["hardware"], first["model"], first["engine"]) == ("h100", "gptoss120b", "vllm")
    assert (first["build_id"], first["harness_version"]) == ("version:vllm/0.13.0", "0.4.9")
    assert (str(first["measured_at"]), first["run_id"]) == ("2026-01-05 07:00:00+00:00", "day-2026-01-05")
    assert set(first["declared_fields"]) >= {"hardware", "precision", "engine", "engine_version"}
    assert take(log, path, hardware="h100", precision="fp4", engine="vllm", engine_version="0.13.0").known == 1
    assert verify(log) == []


def test_a_later_declaration_about_an_evaluation_holds(log: EventLog, tmp_path: Path) -> None:
    path = write(tmp_path / "in/results_x.json", lm_eval())
    for hardware in ("h100", "h200"):
        take(log, path, hardware=hardware)
    assert set(evals(log)["hardware"]) == {"h200"} and evals(log).height == 2
    assert log.read("EvalRecorded").height == 2, "both declarations are in the log"


def test_evaluations_of_a_ci_run_follow_its_reports_and_retractions(log: EventLog, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    meta = {
        "is_multinode": False,
        "framework": "sglang",
        "precision": "fp8",
        "hw": "b200-nb_3",
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "infmax_model_prefix": "dsr1",
        "spec_decoding": "none",
        "tp": 8,
        "ep": 8,
        "dp_attention": "true",
        "conc": 32,
        "isl": "8192",
        "osl": "1024",
        "prefill_tp": 8,
    }
    write(folder / "eval/results_x.json", lm_eval())
    write(folder / "eval/meta_env.json", meta)
    write(folder / "run.json", run_object(5, "2026-01-05T06:00:00Z", updated_at="2026-01-05T09:00:00Z"))
    assert take(log, folder).quarantined == []
    first = evals(log).row(0, named=True)
    assert (first["run_id"], first["hardware"], first["tp"], first["concurrency"]) == ("5", "b200", 8, 32)
    assert str(first["run_started_at"]) == "2026-01-05 06:00:00+00:00"
    write(folder / "run.json", run_object(5, "2026-01-05T05:00:00Z", updated_at="2026-01-06T09:00:00Z"))
    take(log, folder / "run.json")
    assert {str(at) for at in evals(log)["run_started_at"]} == {"2026-01-05 05:00:00+00:00"}
    retract(log, "5", "wrong weights", NOW)
    take(log, folder / "run.json")
    assert set(evals(log)["retraction"]) == {"wrong weights"}
    assert query(log.store, "SELECT count(*) AS n FROM evals").item() == 0
    assert query(log.store, "SELECT count(*) AS n FROM all_evals").item() == 2


@pytest.mark.parametrize("later", [True, False])
def test_the_table_does_not_depend_on_the_order_of_reading(log: EventLog, tmp_path: Path, later: bool) -> None:
    one = write(tmp_path / "a/results_a.json", lm_eval(0.8))
    two = write(tmp_path / "b/results_b.json", {**lm_eval(0.7), "date": 1767682800.0})
    for path in (one, two) if later else (two, one):
        take(log, path, hardware="h100", precision="fp4", engine="vllm")
    assert evals(log)["score"].to_list() == [0.81, 0.8, 0.71, 0.7]
    assert evals(log)["run_id"].to_list() == ["day-2026-01-05"] * 2 + ["day-2026-01-06"] * 2


def test_a_result_that_is_no_number_is_in_quarantine(log: EventLog, tmp_path: Path) -> None:
    broken = lm_eval()
    broken["results"]["gsm8k"]["exact_match,strict-match"] = 10**400
    intake = take(log, write(tmp_path / "in/results_x.json", broken), hardware="h100")
    assert [fault.reason.split(":")[0] for fault in intake.quarantined] == ["results.gsm8k.exact_match,strict-match"]
    assert not log.store.exists("evals") or evals(log).is_empty()
