"""Results of lm-evaluation-harness: each score with what decides whether it can be compared. Values by hand."""

from __future__ import annotations

import copy
import json
import math
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from pipelines.ingest.json_text import LeftOut
from pipelines.ingest.reading import EvalReading, Given
from pipelines.ingest.tools.lm_eval import FORMAT, hints, origin, read, unpack
from pipelines.ingest.tools.lm_eval_kept import arguments_of, kept
from tests.lengths import either
from tests.mutated import mutations
from warehouse.canonical import canonical_json
from warehouse.cell import curve_id
from warehouse.errors import InputError

NOTHING = Given()


def results(**changes: Any) -> dict[str, Any]:
    """Return a results file: gsm8k with two filters, a perplexity, and a group of two tasks."""
    return {
        "results": {
            "gsm8k": {
                "name": "gsm8k",
                "alias": "gsm8k",
                "sample_len": 1319,
                "exact_match,strict-match": 0.955,
                "exact_match_stderr,strict-match": 0.0057,
                "exact_match,flexible-extract": 0.957,
                "exact_match_stderr,flexible-extract": "N/A",
            },
            "wikitext": {
                "alias": "wikitext",
                "word_perplexity,none": 11.5,
                "word_perplexity_stderr,none": "N/A",
                "bypass,none": 999,
            },
            "mmlu": {"alias": "mmlu", "acc,none": 0.5, "acc_stderr,none": 0.01},
            "mmlu_law": {"alias": " - law", "acc,none": 0.4, "acc_stderr,none": 0.02},
            "mmlu_art": {"alias": " - art", "acc,none": 0.6, "acc_stderr,none": 0.02},
        },
        "groups": {"mmlu": {"alias": "mmlu", "acc,none": 0.5, "acc_stderr,none": 0.01}},
        "group_subtasks": {"gsm8k": [], "mmlu": ["mmlu_humanities", "mmlu_art"], "mmlu_humanities": ["mmlu_law"]},
        "configs": {
            "gsm8k": {
                "task": "gsm8k",
                "dataset_kwargs": {"data_files": "/home/somebody/data.jsonl"},
                "doc_to_text": "Question: {{question}}",
                "metric_list": [{"metric": "exact_match", "aggregation": "mean"}],
                "filter_list": [{"name": "strict-match", "filter": [{"function": "regex"}]}],
                "generation_kwargs": {"temperature": 0.0, "until": ["Question:"]},
                "metadata": {"base_url": "http://10.0.0.7:8000"},
            }
        },
        "versions": {"gsm8k": 3.0, "mmlu_law": 1.0, "mmlu": 2, "wikitext": "Yaml"},
        "n-shot": {"gsm8k": 5, "mmlu_law": 0},
        "higher_is_better": {"gsm8k": {"exact_match": True}, "wikitext": {"word_perplexity": False}},
        "n-samples": {
            "gsm8k": {"original": 1319, "effective": 100},
            "mmlu_law": {"original": 10, "effective": 10},
            "mmlu_art": {"original": 20, "effective": 5},
        },
        "config": {
            "model": "local-completions",
            "model_args": {
                "model": "meta-llama/Llama-3.3-70B-Instruct",
                "base_url": "http://10.0.0.7:8000",
                "num_concurrent": 64,
            },
            "limit": 100.0,
            "gen_kwargs": {"temperature": 0.0, "stop": "x"},
        },
        "git_hash": "0123abc",
        "date": 1796040364.846983,
        "pretty_env_info": "hostname: node-7",
        "lm_eval_version": "0.4.13",
        "chat_template": "{{ messages }}",
        "chat_template_sha": "aa",
        "model_name": "meta-llama/Llama-3.3-70B-Instruct",
        "total_evaluation_time_seconds": "6.75",
        **changes,
    }


def by_name(record: dict[str, Any], **declared: str) -> dict[tuple[str, str], EvalReading]:
    return {(one.task, one.metric): one for one in read(record, Given(declared=declared))}


def test_every_score_is_a_reading_under_its_metric_and_filter() -> None:
    found = by_name(results())
    assert {key: (one.score, one.score_stderr) for key, one in found.items()} == {
        ("gsm8k", "exact_match,strict-match"): (0.955, 0.0057),
        ("gsm8k", "exact_match,flexible-extract"): (0.957, None),
        ("wikitext", "word_perplexity,none"): (11.5, None),
        ("mmlu", "acc,none"): (0.5, 0.01),
        ("mmlu_law", "acc,none"): (0.4, 0.02),
        ("mmlu_art", "acc,none"): (0.6, 0.02),
    }


def test_questions_examples_and_version() -> None:
    found = by_name(results())
    one = found["gsm8k", "exact_match,strict-match"]
    assert (one.samples, one.samples_total, one.few_shot, one.task_version) == (100, 1319, 5, "3.0")
    assert (one.harness_version, one.measured_at) == ("0.4.13", datetime(2026, 11, 30, 12, 6, 4, 846983, UTC))
    group = found["mmlu", "acc,none"]
    assert (group.samples, group.samples_total, group.few_shot, group.task_version) == (15, 30, None, "2")
    other = found["wikitext", "word_perplexity,none"]
    assert (other.samples, other.samples_total, other.task_version) == (None, None, None)


def test_the_system_is_what_is_told_and_nothing_more() -> None:
    one = read(results(), NOTHING)[0]
    told = {key: value for key, value in one.identity.items() if value is not None}
    assert told == {"model": "llama70b"}
    assert (one.concurrency, one.model_source, one.declared) == (64, "meta-llama/Llama-3.3-70B-Instruct", ())
    declared = {
        "engine": "vllm",
        "hardware": "h100",
        "precision": "fp8",
        "tp": "8",
        "disagg": "false",
        "engine_version": "0.11.0",
    }
    one = read(results(), Given(declared={**declared, "concurrency": "3"}))[0]
    told = {key: value for key, value in one.identity.items() if value is not None}
    assert told == {
        "model": "llama70b",
        "engine": "vllm",
        "framework": "vllm",
        "hardware": "h100",
        "precision": "fp8",
        "tp": 8,
        "disagg": False,
    }
    assert (one.engine_version, one.concurrency) == ("0.11.0", 64)  # the record's own counts before what is declared
    assert set(one.declared) == set(declared)


def test_an_engine_inside_the_harness() -> None:
    config = {
        "model": "vllm",
        "model_args": "pretrained=/home/somebody/Qwen3.5-9B,tensor_parallel_size=4,quantization=fp8,api_key=secret",
    }
    one = read(results(config=config, model_name=""), NOTHING)[0]
    assert (one.identity["engine"], one.identity["tp"], one.identity["precision"]) == ("vllm", 4, "fp8")
    assert (one.model_source, one.identity["model"], one.concurrency) == ("Qwen3.5-9B", "qwen3.5", None)


def test_arguments_of_the_model_are_a_text_or_an_object() -> None:
    assert arguments_of("pretrained=a/b,dtype=auto,extra={'x': 1, 'y': 2},seed=1") == {
        "pretrained": "a/b",
        "dtype": "auto",
        "extra": "{'x': 1, 'y': 2}",
        "seed": "1",
    }
    assert arguments_of({"model": "a/b"}) == {"model": "a/b"}
    assert arguments_of(None) == arguments_of("") == {}


def test_the_model_is_asked_for_by_name() -> None:
    with pytest.raises(InputError, match=r"^model: not in the record"):
        read(results(model_name=None, config={}), NOTHING)
    assert read(results(model_name=None, config={}), Given(declared={"model": "a/b"}))[0].declared == ("model",)


def test_a_file_without_scores_is_refused() -> None:
    for found in (
        {},
        {"gsm8k": {"alias": "gsm8k", " ": " "}},
        {"gsm8k": {"exact_match,none": "NaN"}},
        {"t": {"bypass,none": 999}},
    ):
        with pytest.raises(InputError, match="no score of any task"):
            read(results(results=found), NOTHING)
    with pytest.raises(InputError, match=r"results\.gsm8k"):
        read(results(results={"gsm8k": 1}), NOTHING)


def test_a_bare_name_is_a_score_where_the_file_ranks_it() -> None:
    record = results(results={"t": {"acc": 0.5, "acc_stderr": 0.1, "sample_len": 3}}, higher_is_better={"t": {"acc": True}})
    (one,) = read(record, NOTHING)
    assert (one.metric, one.score, one.score_stderr) == ("acc", 0.5, 0.1)


def test_swebench_of_inferencex_is_of_this_form() -> None:
    record = {
        "lm_eval_version": "0.4.9",
        "model_name": "dsr1",
        "results": {"swebench_lite": {"alias": "s", "exact_match,resolved": 0.25, "exact_match_stderr,resolved": 0.01}},
        "configs": {"swebench_lite": {"metric_list": [{"metric": "exact_match"}], "filter_list": [{"name": "resolved"}]}},
        "n-samples": {"swebench_lite": {"effective": 300, "original": 300}},
        "swebench": {"resolved": 75},
    }
    assert FORMAT.recognises(record)
    (one,) = read(record, NOTHING)
    assert (one.metric, one.score, one.samples, one.measured_at) == ("exact_match,resolved", 0.25, 300, None)
    assert origin(record, NOTHING) is None


def test_what_is_kept_holds_no_host_no_key_no_prompt_and_reads_the_same() -> None:
    config = {"model": "vllm", "model_args": "pretrained=/home/somebody/m/Qwen3.5-9B,tensor_parallel_size=4,api_key=secret"}
    for record in (results(), results(config=config, model_name="/home/somebody/m/Qwen3.5-9B")):
        before = copy.deepcopy(record)
        found = kept(record)
        assert record == before
        text = canonical_json(found)
        for secret in ("10.0.0.7", "secret", "somebody", "node-7", "messages", "question}}", "Question:"):
            assert secret not in text
        assert FORMAT.recognises(found)
        assert kept(found) == found
        assert read(found, NOTHING) == read(record, NOTHING)
        assert found["config"]["model_args"].keys() <= {"model", "num_concurrent", "pretrained", "tensor_parallel_size"}


def test_origin_is_the_day() -> None:
    found = origin(results(), NOTHING)
    assert found and (found.run_id, found.started_at) == ("day-2026-11-30", datetime(2026, 11, 30, tzinfo=UTC))
    with pytest.raises(InputError, match="date"):
        origin(results(date="yesterday"), NOTHING)


def test_hints_tell_the_concurrency_of_a_batch() -> None:
    assert hints(PurePosixPath("eval_x/results_2026-08-01T01-02-03.5_conc16.json")) == {"concurrency": "16"}
    assert hints(PurePosixPath("eval_conc16_x/results_2026-08-01T01-02-03.5.json")) == {}
    one = read(results(config={}), Given(named={"concurrency": "16"}))[0]
    assert (one.concurrency, one.declared) == (16, ("concurrency (file name)",))


def test_samples_are_known_and_nothing_is_taken_from_them() -> None:
    sample = {
        "doc_id": 0,
        "doc": {},
        "target": "46",
        "arguments": {},
        "resps": [["46"]],
        "filtered_resps": ["46"],
        "exact_match": 1.0,
    }
    for value in (sample, [sample, sample]):
        found = unpack(value)
        assert found is not None and [type(one) for one in found] == [LeftOut]
    for value in ([], {}, [1], results(), {"doc_id": 0}, [sample, 1], None):
        assert unpack(value) is None
    assert not FORMAT.recognises(sample)


@hypothesis_settings(max_examples=either(50, 300), deadline=None)
@given(record=mutations(results()))
def test_a_mutated_file_is_refused_or_finite(record: dict[str, Any]) -> None:
    for one in (record, kept(record)):
        try:
            found = read(one, NOTHING)
        except InputError as error:
            assert str(error)
            continue
        assert found
        for reading in found:
            assert math.isfinite(reading.score)
            assert reading.score_stderr is None or reading.score_stderr >= 0
            assert curve_id(reading.identity)


def test_a_real_file(shared_data: Path) -> None:
    folder = shared_data / "formats" / "lm_eval" / "mock_run"
    (path,) = folder.glob("results_*.json")
    record = json.loads(path.read_text("utf-8"))
    assert FORMAT.recognises(record)
    found = kept(record)
    assert "127.0.0.1" not in canonical_json(found) and "AMD EPYC" not in canonical_json(found)
    (one,) = read(found, NOTHING)
    assert (one.task, one.metric, one.score, one.score_stderr) == ("toy_arith", "exact_match,none", 0.0, 0.0)
    assert (one.samples, one.samples_total, one.few_shot, one.task_version) == (20, 20, 0, "1.0")
    assert (one.concurrency, one.model_source, one.harness_version) == (4, "mock/tiny-llm", "0.4.13")
    assert one.measured_at == datetime(2026, 11, 30, 12, 6, 4, 846983, UTC)
    (samples,) = folder.glob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    assert len(lines) == 20 and unpack(lines) is not None
