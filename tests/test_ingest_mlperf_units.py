"""What MLPerf numbers mean, round by round: every row of the table looked at, values from the format notes."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest

from pipelines.ingest.tools import mlperf_units as units
from pipelines.ingest.tools.mlperf_units import (
    benchmark_of,
    facts,
    meaning,
    numbers,
    origin_of,
    placed,
    recipe_commit,
    round_name,
    rules,
)

ROUNDS = [entry["name"] for entry in facts()["rounds"]]


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("v3.1", "2023-09-11"),
        ("v4.0", "2024-03-27"),
        ("v4.1", "2024-08-28"),
        ("v5.0", "2025-04-02"),
        ("v5.1", "2025-09-09"),
    ],
)
def test_a_round_is_a_run_of_the_day_on_which_it_was_announced(version: str, day: str) -> None:
    found = origin_of(version)
    assert found is not None
    assert (found.run_source, found.run_id) == ("mlcommons", version)
    assert found.started_at == found.published_at == datetime.fromisoformat(day).replace(tzinfo=UTC)


def test_rounds_stand_in_order_of_time() -> None:
    days = [entry["published"] for entry in facts()["rounds"]]
    assert days == sorted(set(days))
    assert origin_of("v9.9") is origin_of(None) is None


@pytest.mark.parametrize(
    ("text", "name"), [("v4.1", "v4.1"), ("4.1", "v4.1"), ("5.1-0072", "v5.1"), ("v4.1-0043", "v4.1"), ("next", None), ("", None)]
)
def test_rounds_are_known_by_field_or_by_id(text: str, name: str | None) -> None:
    assert round_name(text) == name


@pytest.mark.parametrize(
    ("version", "model", "scenario", "is_"),
    [
        ("v3.1", "gptj-99.9", "Offline", "samples"),
        ("v3.1", "gptj-99.9", "Server", "scheduled_samples"),
        ("v3.1", "gptj-99", "SingleStream", "latency_bound_p90_ms"),
        ("v3.1", "resnet", "MultiStream", "latency_bound_p99_ms"),
        ("v4.0", "gptj-99.9", "Offline", "samples"),
        ("v4.0", "gptj-99.9", "Server", "scheduled_samples"),
        ("v4.0", "stable-diffusion-xl", "Server", "scheduled_samples"),
        ("v4.0", "llama2-70b-99.9", "Offline", "tokens"),
        ("v4.0", "llama2-70b-99.9", "Server", "completed_samples"),
        ("v4.1", "gptj-99", "Offline", "inferred_tokens"),
        ("v4.1", "gptj-99", "Server", "inferred_completed_tokens"),
        ("v4.1", "resnet50", "Server", "completed_samples"),
        ("v4.1", "llama2-70b-99", "Server", "completed_tokens"),
        ("v4.1", "mixtral-8x7b", "Offline", "tokens"),
        ("v5.0", "llama3_1-405b", "Server", "completed_tokens"),
        ("v5.0", "llama2-70b-interactive-99.9", "Server", "completed_tokens"),
        ("v5.1", "llama3.1-8b", "Interactive", "completed_tokens"),
        ("v5.1", "whisper", "Offline", "tokens"),
        ("v5.1", "llama3.1-8b-edge", "SingleStream", "latency_p90_ms"),
        ("v5.1", "deepseek-r1", "Server", "completed_tokens"),
    ],
)
def test_what_a_result_is_by_round_benchmark_and_scenario(version: str, model: str, scenario: str, is_: str) -> None:
    benchmark, where = placed(model, scenario)
    assert rules(version, benchmark.family, where) == (is_,)


def test_one_rule_at_most_holds_for_each_round_benchmark_and_scenario() -> None:
    named = {name for rule in facts()["units"] for name in rule.get("benchmarks", ())}
    for version, family, scenario in product(ROUNDS, [*named, "anything"], units.SCENARIOS.values()):
        assert len(rules(version, family, scenario)) <= 1, (version, family, scenario)
    assert {rule["is"] for rule in facts()["units"]} == set(facts()["meanings"])
    assert {place for rule in facts()["units"] for place in (rule["from"], rule["to"])} <= set(ROUNDS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("v3.1", "gptj", "Server"), ("v4.1", "gptj", "Server")),  # scheduled, completed
        (("v4.0", "llama2-70b", "Server"), ("v4.1", "llama2-70b", "Server")),  # samples, tokens: the 307-fold gain
        (("v4.0", "resnet", "Server"), ("v4.1", "resnet", "Server")),
        (("v9.1", "resnet", "Offline"), ("v9.2", "resnet", "Offline")),  # rounds without a rule
        (("v5.1", "new", "Offline"), ("v9.9", "new", "Offline")),
    ],
)
def test_numbers_of_two_definitions_are_not_comparable(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert meaning(*one).definition != meaning(*other).definition


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("v3.1", "gptj", "Offline"), ("v4.0", "gptj", "Offline")),
        (("v4.0", "gptj", "Offline"), ("v4.1", "gptj", "Offline")),  # once divided by 69
        (("v3.1", "gptj", "Server"), ("v4.0", "gptj", "Server")),
        (("v4.0", "llama2-70b", "Offline"), ("v5.1", "llama2-70b", "Offline")),
    ],
)
def test_numbers_of_one_definition_are(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert meaning(*one).definition == meaning(*other).definition


def test_gptj_of_v41_is_samples_times_69() -> None:
    columns, other = numbers(meaning("v4.1", "gptj", "Offline"), 69 * 286.25, 8)
    assert columns == {}
    assert other == {"samples_per_second": 286.25, "samples_per_second_per_gpu": 286.25 / 8}


def test_tokens_are_output_throughput_of_the_accelerators() -> None:
    meant = meaning("v4.0", "llama2-70b", "Offline")
    assert numbers(meant, 21805.8, 8) == ({"output_tput_per_gpu": 21805.8 / 8}, {"output_tokens_per_second": 21805.8})
    assert numbers(meant, 80.0, None) == ({}, {"output_tokens_per_second": 80.0})


def test_latencies_are_seconds_and_have_no_share_per_accelerator() -> None:
    assert numbers(meaning("v3.1", "gptj", "SingleStream"), 4087.5, 1) == ({}, {"query_latency_bound_p90": 4.0875})
    assert numbers(meaning("v5.1", "llama3.1-8b-edge", "SingleStream"), 3545.5, 1) == ({"e2el_p90": 3.5455}, {})


def test_inferred_figures_are_a_metric_of_their_own() -> None:
    inferred, measured = meaning("v5.1", "resnet", "Offline", True), meaning("v5.1", "resnet", "Offline")
    assert inferred.definition != measured.definition
    assert numbers(inferred, 32.0, None) == ({}, {"mlperf_inferred_rate": 32.0})
    assert numbers(meaning("v4.0", "resnet", "MultiStream", True), 17.5, None) == ({}, {"mlperf_inferred_latency": 0.0175})


@pytest.mark.parametrize(
    ("model", "family", "target"),
    [
        ("gptj-99.9", "gptj", "99.9"),
        ("gptj-99", "gptj", "99"),
        ("mixtral-8x7b", "mixtral-8x7b", None),
        ("resnet50", "resnet", None),
        ("llama3_1-8b", "llama3.1-8b", None),
        ("3d-unet-99.9", "3d-unet", "99.9"),
        ("DLRM-v2-99", "dlrm-v2", "99"),
    ],
)
def test_benchmarks_and_accuracy_targets(model: str, family: str, target: str | None) -> None:
    found = benchmark_of(model)
    assert (found.family, found.target) == (family, target)


def test_the_interactive_scenario_of_v50_is_a_model_name() -> None:
    benchmark, scenario = placed("llama2-70b-interactive-99.9", "Server")
    assert (benchmark.name, scenario) == ("llama2-70b-99.9", "Interactive")


@pytest.mark.parametrize(
    ("version", "submitter", "stack", "commit"),
    [
        ("v3.1", "NVIDIA", "9.0.0", None),  # the project was not public: the range is open below
        ("v4.0", "NVIDIA", "9.3.0", "eb8f26c7e40f07067884b96c3637652351d13d04"),
        ("v4.1", "NVIDIA", "10.2.0", "2d234357c6e69fa514f6e9b4d4a5ad3bc431c4a6"),
        ("v4.1", "Supermicro", "10.2", "2d234357c6e69fa514f6e9b4d4a5ad3bc431c4a6"),
        ("v4.1", "Dell", "9.3.0", None),  # another TensorRT than that of the recipe
        ("v4.1", "NVIDIA", "10.20", None),
        ("v4.1", "JuniperNetworks", "9.3.0", "eb8f26c7e40f07067884b96c3637652351d13d04"),
        ("v5.1", "NVIDIA", "10.11", "18c0333e96ea7a2c37caded8a310d05c5f095e88"),
        ("v5.1", "ASUSTeK", "10.11", "270a6b2447d75235068b524570bf51fe15d5bb63"),
        ("v5.1", "CoreWeave", "10.13", None),
        ("v5.1", "Nobody", "10.11", None),
    ],
)
def test_commits_that_a_submission_would_build(version: str, submitter: str, stack: str, commit: str | None) -> None:
    assert recipe_commit(version, submitter, "tensorrt", stack) == commit
    assert all(len(entry["commit"]) == 40 and entry["round"] in ROUNDS for entry in facts()["commits"])
