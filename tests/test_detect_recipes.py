"""Which entries of a benchmark's recipe log lie between two runs, and which of them are a cause."""

import json
import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from changelog.recipe_kinds import is_cause
from pipelines.detect.baseline import baselines
from pipelines.detect.changes import differences
from pipelines.detect.observations import observe
from pipelines.detect.recipes import (
    NO_LOG,
    Configuration,
    Entry,
    RecipeLog,
    entries_between,
    is_about,
    log_of,
    recipe_log,
    words_of,
)
from tests import frames
from tests.fleet import curve, points
from tests.frames import START, day
from warehouse import vocabulary

B200 = Configuration("SemiAnalysisAI/InferenceX", "dsr1", "fp4", "b200", "sglang", "none", False, "fixed-seq-len")
MTP = replace(B200, spec_decoding="mtp")
GB200 = replace(B200, hardware="gb200", framework="dynamo-trt", disagg=True)
MORI = replace(B200, hardware="mi355x", framework="mori-sglang", disagg=True)
AGENTIC = replace(B200, scenario="agentic-coding")
GPTOSS = replace(B200, model="gptoss120b", hardware="h100", framework="vllm")
SIZED = replace(B200, isl=8192, osl=1024, ranks=(4,))
LLAMA = replace(B200, model="llama70b", precision="fp8", hardware="mi300x", framework="vllm")


def entry(
    *keys: str, at: float = 1, source: str | None = None, scenarios: tuple[str, ...] = (), words: str = "set a flag"
) -> Entry:
    return Entry(day(at), source, keys, scenarios, words, True)


@pytest.mark.parametrize(
    ("key", "configuration", "about"),
    [
        ("dsr1-fp4-b200-sglang", B200, True),
        ("DSR1-FP4-B200-SGLang", B200, True),
        ("dsr1-fp8-b200-sglang", B200, False),
        ("dsr1-fp4-b300-sglang", B200, False),
        ("dsr1-fp4-b200-trt", B200, False),
        ("dsr1-fp4-gb200-dynamo-sglang", B200, False),
        # Speculative decoding is another configuration, but for disaggregated ones, whose one key may cover both.
        ("dsr1-fp4-b200-sglang-mtp", B200, False),
        ("dsr1-fp4-b200-sglang-mtp", MTP, True),
        ("dsr1-fp4-b200-sglang", MTP, False),
        ("dsr1-fp4-gb200-dynamo-trt", GB200, True),
        ("dsr1-fp4-gb200-dynamo-trt", replace(GB200, spec_decoding="mtp"), True),
        ("dsr1-fp4-gb200-dynamo-trt-mtp2", GB200, False),
        # Other spellings.
        ("gptoss-fp4-h100-vllm", GPTOSS, True),
        ("dsr1-fp4-mi355x-sglang-disagg", MORI, True),
        ("dsr1-fp4-mi355x-sglang-disagg-mtp", MORI, False),
        ("dsr1-fp4-mi355x-sglang-disagg", replace(MORI, framework="sglang", disagg=False), False),
        ("dsr1-fp4-gb200-dynamo-trtllm", GB200, True),
        # The kind of workload.
        ("dsr1-fp4-b200-sglang-agentic", B200, False),
        ("dsr1-fp4-b200-sglang-agentic", AGENTIC, True),
        ("dsr1-fp4-b200-sglang-agentic-hicache", AGENTIC, True),
        ("dsr1-fp4-b200-sglang", AGENTIC, False),
        # A mark that is not known speaks for no other configuration.
        ("dsr1-fp4-b200-sglang-8k1k-tp1", B200, True),
        ("dsr1-fp4-gb200-dynamo-trt-agg", GB200, False),
        # Lengths and sizes, where the record tells them; what it does not tell speaks against nothing.
        ("dsr1-fp4-b200-sglang-8k1k", SIZED, True),
        ("dsr1-fp4-b200-sglang-1k8k", SIZED, False),
        ("dsr1-fp4-b200-sglang-1k1k", SIZED, False),
        ("dsr1-fp4-b200-sglang-8k1k-tp4", SIZED, True),
        ("dsr1-fp4-b200-sglang-8k1k-tp1", SIZED, False),
        ("dsr1-fp4-b200-sglang-tp4pp2", SIZED, True),
        ("dsr1-fp4-mi355x-sglang-disagg-8k1k-tp1", replace(MORI, isl=8192, osl=1024, ranks=(1, 8)), True),
        ("dsr1-fp4-mi355x-sglang-disagg-8k1k-tp4", replace(MORI, isl=8192, osl=1024, ranks=(1, 8)), False),
        # A precision under its former name.
        ("dsr1-nvfp4-b200-sglang", B200, True),
        # Wildcards.
        ("dsr1*", B200, True),
        ("dsr1*", GPTOSS, False),
        ("gptoss*", GPTOSS, True),
        ("70b-fp8-*-vllm", LLAMA, True),
        ("70b-fp8-*-vllm", GPTOSS, False),
        ("dsr1-fp4-*-sglang", MTP, False),
        ("dsr1-fp4-b200-sglang*", MTP, True),
        ("*gb200-dynamo-trt", GB200, True),
        ("*", AGENTIC, True),
        ("", B200, False),
        ("dsr1", B200, False),
    ],
)
def test_keys(key: str, configuration: Configuration, about: bool) -> None:
    assert is_about(entry(key), configuration) is about


def test_a_configuration_that_lacks_a_part_has_no_key() -> None:
    assert not is_about(entry("dsr1-fp4-b200-sglang", "*"), replace(B200, precision=None))


@pytest.mark.parametrize(
    ("source", "about"),
    [
        ("SemiAnalysisAI/InferenceX", True),
        ("InferenceMAX/InferenceMAX", True),
        (None, True),
        ("someone/fork", False),
        ("local", False),
    ],
)
def test_an_entry_is_about_its_own_benchmark(source: str | None, about: bool) -> None:
    assert is_about(entry("dsr1*", source=source), B200) is about


def test_an_entry_may_be_confined_to_a_kind_of_workload() -> None:
    told = entry("dsr1-fp4-b200-sglang", scenarios=("agentic-coding",))
    assert (is_about(told, B200), is_about(told, AGENTIC)) == (False, True)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("Update vLLM image from v0.18.0 to v0.20.2", False),
        ("Upgrade vLLM from 0.10.2 to 0.11.0 for GPT-OSS NVIDIA single-node configs", False),
        ("Update vLLM ROCm image from v0.18.0 (52d old) to v0.21.0", False),
        ("Bump image to lmsysorg/sglang-rocm:v0.5.14-rocm720-mi35x-20260708", False),
        ("Image: nvcr.io#nvidia/tensorrt-llm/release:1.3.0rc18", False),
        ("Extend concurrency to 128 for gptoss mi355x/b200 vllm configurations", False),
        ("Add conc 512 new sweep point", False),
        ("Update vLLM image to v0.21.0 --no-enable-prefix-caching", True),
        ("Update vLLM image to v0.21.0; enable prefix caching", True),
        ("Update vLLM image to v0.21.0 (VLLM_ROCM_USE_AITER=1)", True),
        ("Update vLLM image to v0.21.0 (with a fused allreduce)", True),
        ("Bump mi355x sglang disagg recipe to sa-260211", True),
        ("Update the recipes", True),
        ("Switch model to amd/gpt-oss-120b-w-mxfp4-a-fp8", True),
        ("Add warm-up requests", True),
        ("Clean the export envs", True),
        ("", True),
        ("2.0", True),
    ],
)
def test_an_image_bump_is_the_build_and_no_second_cause(line: str, cause: bool) -> None:
    assert is_cause([line]) is cause


def test_one_line_of_several_makes_a_cause() -> None:
    assert not is_cause(["Update vLLM image to v0.21.0", "Add conc 512"])
    assert is_cause(["Update vLLM image to v0.21.0", "Set --kv-cache-dtype fp8_e4m3"])
    assert is_cause([])


def test_words_are_one_short_printable_line() -> None:
    told = words_of(["Set\x1b[31m a\u202e flag", "x" * 500], "https://github.com/SemiAnalysisAI/InferenceX/pull/204")
    assert told.startswith("Set [31m a flag; xxx") and told.endswith("… (#204)") and len(told) == 160 + len(" (#204)")
    assert words_of([], None) == "no description"


def test_between_is_after_one_and_up_to_the_other() -> None:
    log = log_of([entry("dsr1*", at=n, words=str(n)) for n in (3, 1, 2)] + [entry("gptoss*", at=2)])
    told = [e.words for e in entries_between(log, B200, day(1), day(3))]
    assert told == ["2", "3"]
    assert entries_between(log, B200, day(3), day(9)) == () == entries_between(NO_LOG, B200, day(0), day(9))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["dsr1*", "gptoss*"])), max_size=12), st.randoms(use_true_random=False)
)
def test_the_order_of_entries_does_not_matter(told: list[tuple[int, str]], shuffled: random.Random) -> None:
    entries = [entry(key, at=at, words=f"{at} {key}") for at, key in told]
    log = log_of(entries)
    shuffled.shuffle(entries)
    assert log_of(entries) == log
    found = entries_between(log, B200, day(1), day(4))
    assert [e.at for e in found] == sorted({day(at) for at, key in told if key == "dsr1*" and 1 < at <= 4})


def recipe(**values: object) -> frames.Row:
    blank = {
        "run_source": "local",
        "config_keys": ["dsr1-fp8-mi355x-vllm"],
        "description": ["Set --block-size 32"],
        "evals_only": False,
    }
    return frames.row("recipes", blank, dict(values))


def log_from(*rows: frames.Row, runs: list[frames.Row] | None = None) -> RecipeLog:
    started = runs or [frames.run(run_id=f"r{n:08.3f}", started_at=day(n), head_sha=f"c{n}") for n in range(4)]
    return recipe_log(frames.frame("recipes", list(rows)), frames.frame("runs", started))


def test_an_entry_is_dated_by_its_run_else_by_the_first_run_on_its_commit() -> None:
    assert [e.at for e in log_from(recipe(run_id="r0002.000")).entries] == [day(2)]
    assert [e.at for e in log_from(recipe(run_id=None, head_ref="c3")).entries] == [day(3)]
    assert log_from(recipe(run_id="unknown", head_ref="nowhere")).entries == ()


def test_an_entry_is_dated_by_its_commit_or_its_run_whichever_was_first() -> None:
    dated = {"added_at": day(1.5), "dated_by": "commit"}
    assert [e.at for e in log_from(recipe(run_id="r0002.000", **dated)).entries] == [day(1.5)]
    assert [e.at for e in log_from(recipe(run_id="r0001.000", **dated)).entries] == [day(1)]
    assert [e.at for e in log_from(recipe(run_id=None, **dated)).entries] == [day(1.5)]
    assert [e.at for e in log_from(recipe(run_id=None, head_ref="c1", **dated)).entries] == [day(1)]


def test_an_entry_that_came_with_many_others_is_not_dated_but_by_its_own_run() -> None:
    bulk = {"added_at": day(1.5), "dated_by": "bulk"}
    assert log_from(recipe(run_id=None, **bulk)).entries == () == log_from(recipe(run_id=None, head_ref="c2", **bulk)).entries
    assert [e.at for e in log_from(recipe(run_id="r0002.000", **bulk)).entries] == [day(2)]


def test_an_entry_of_the_log_is_about_the_benchmark_of_its_pull_request() -> None:
    link = {"pr_link": "https://github.com/InferenceMAX/InferenceMAX/pull/9", "config_keys": ["dsr1*"]}
    (one,) = log_from(recipe(run_source=None, added_at=day(1), dated_by="commit", **link)).entries
    assert is_about(one, B200) and not is_about(one, replace(B200, source="local"))


def test_a_run_that_used_the_image_of_an_entry_before_it_was_merged_has_it() -> None:
    lines = ["Update vLLM image from v0.90.0 to v0.91.0", "Set --block-size 32"]
    log = log_from(recipe(description=lines, added_at=day(3), dated_by="commit"))
    asked = Configuration("local", "dsr1", "fp8", "mi355x", "vllm", "none", False, "fixed-seq-len")
    assert len(log.until(asked, day(2), "vllm/vllm-openai:v0.91.0")) == 1
    assert log.until(asked, day(2), "vllm/vllm-openai:v0.90.0") == () == log.until(asked, day(2))
    assert log.until(asked, day(-20), "vllm/vllm-openai:v0.91.0") == ()
    assert len(log.until(asked, day(3), "vllm/vllm-openai:v0.90.0")) == 1


def test_an_entry_that_sets_a_flag_on_other_accelerators_is_an_image_here() -> None:
    keys = ["dsr1-fp4-b200-sglang", "dsr1-fp4-h100-sglang"]
    lines = ["Update SGLang image to v0.91.0", "Set FLAG_A=1 in the scripts for H100"]
    link = {"pr_link": "https://github.com/SemiAnalysisAI/InferenceX/pull/9", "run_source": None}
    log = log_from(recipe(config_keys=keys, description=lines, added_at=day(1), dated_by="commit", **link))
    assert log.until(B200, day(2)) == ()
    assert len(log.until(replace(B200, hardware="h100"), day(2))) == 1


def test_a_run_that_started_again_does_not_date_the_entry_anew() -> None:
    runs = [frames.run(run_id="7", run_attempt=n, started_at=day(n)) for n in (2, 1)]
    assert [e.at for e in log_from(recipe(run_id="7"), runs=runs).entries] == [day(1)]


def test_entries_for_evaluations_only_measured_nothing() -> None:
    assert log_from(recipe(run_id="r0002.000", evals_only=True)).entries == ()
    assert len(log_from(recipe(run_id="r0002.000", evals_only=None)).entries) == 1


def test_no_recipes_is_no_log() -> None:
    assert log_from() is NO_LOG


def at(number: float) -> frames.Row:
    return {"run_started_at": day(number)}


def found(log: RecipeLog, *parts: object) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    (history,) = observe(points(*parts), ("hardware", "engine"), log).values()
    changes = differences(history[-1], baselines(history)[-1])
    return changes.names, changes.details, changes.attribution


def test_an_entry_between_is_in_the_change_set() -> None:
    log = log_from(recipe(run_id="r0002.000", pr_link="https://github.com/SemiAnalysisAI/InferenceX/pull/9"))
    names, details, attribution = found(log, curve("A", 0, values=at(0)), curve("A", 3, values=at(3)))
    assert (names, attribution) == (("recipe",), "recipe")
    assert details == ("recipe log, 2026-01-03: Set --block-size 32 (#9)",)
    assert found(log, curve("A", 0, values=at(0)), curve("B", 3, values=at(3)))[2] == "mixed"
    assert found(log, curve("A", 2, values=at(2)), curve("B", 3, values=at(3)))[2] == "engine"
    assert found(log, curve("A", 0, values=at(0)), curve("B", 1, values=at(1)))[2] == "engine"


def test_the_run_that_the_entry_started_has_it() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    assert found(log, curve("A", 0, values=at(0)), curve("B", 2.2, values=at(2)))[2] == "mixed"


def test_a_run_that_started_before_the_entry_and_measured_after_it_does_not_have_it() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    assert found(log, curve("A", 2.5, values=at(1.9)), curve("B", 3, values=at(3)))[2] == "mixed"
    assert found(log, curve("A", 0, values=at(0)), curve("B", 2.5, values=at(1.9)))[2] == "engine"


def test_an_image_bump_between_is_the_build_alone() -> None:
    log = log_from(recipe(run_id="r0002.000", description=["Update vLLM image from v0.90.0 to v0.90.1"]))
    assert found(log, curve("A", 0, values=at(0)), curve("B", 3, values=at(3)))[2] == "engine"


def test_fingerprint_and_log_are_one_cause() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    names, details, attribution = found(
        log, curve("A", 0, recipe="cafe", values=at(0)), curve("A", 3, recipe="beef", values=at(3))
    )
    assert (names, attribution) == (("recipe",), "recipe")
    assert details == ("recipe fingerprint: cafe → beef; recipe log, 2026-01-03: Set --block-size 32",)


def test_many_entries_are_counted() -> None:
    log = log_of(Entry(day(n / 10), "local", ("dsr1*",), (), f"entry {n}", True) for n in range(1, 6))
    _names, details, _attribution = found(log, curve("A", 0, values=at(0)), curve("A", 3, values=at(3)))
    assert details[0].endswith("entry 1; recipe log, 2026-01-01: entry 2; 3 more entries")


def test_cells_from_before_an_entry_are_not_pooled_with_those_after_it() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    parts = (curve("A", 0, values=at(0)), curve("A", 2, cells=(4, 8), values=at(2)), curve("B", 3, values=at(3)))
    (history,) = observe(points(*parts), ("hardware", "engine"), log).values()
    baseline = baselines(history)[-1]
    assert baseline is not None and sorted(baseline.cells) == [4, 8]
    (history,) = observe(points(*parts), ("hardware", "engine")).values()
    assert len(baselines(history)[-1].cells) == 5


def test_a_run_of_the_same_build_bears_witness_across_an_entry() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    (history,) = observe(points(curve("A", 0, values=at(0)), curve("A", 3, values=at(3))), ("hardware", "engine"), log).values()
    assert history[0].repeats(history[1])


def test_a_log_can_be_sent_to_a_worker() -> None:
    log = log_from(recipe(run_id="r0002.000"))
    log.until(B200, START)
    assert pickle.loads(pickle.dumps(log)) == log


@pytest.fixture(scope="module")
def published() -> list[dict[str, object]]:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex"
    if not folder.is_dir():
        pytest.skip("real data (../shared/data) absent")
    told: list[dict[str, object]] = yaml.load((folder / "perf-changelog.yaml").read_text(), yaml.CSafeLoader)
    return told


def _entries(told: list[dict[str, object]], folder: Path) -> Iterator[Entry]:
    dates = json.loads((folder / "inferencex" / "recipe_dates.json").read_text())
    first: dict[str, datetime] = {}
    for row in dates:  # links under the project's former name mean the same numbers
        number, when = row["pr_link"].rsplit("/", 1)[-1], datetime.fromisoformat(row["first_added_at"])
        first[number] = min(first.get(number, when), when)
    for each in told:
        dated = first.get(str(each["pr-link"]).rsplit("/", 1)[-1])
        if dated is not None and not each.get("evals-only"):
            lines = [str(line) for line in each["description"]]  # type: ignore[attr-defined]
            keys = tuple(each["config-keys"])  # type: ignore[arg-type, var-annotated]
            yield Entry(dated, None, keys, tuple(each.get("scenario-type", ())), words_of(lines, None), is_cause(lines))  # type: ignore[arg-type]


def test_image_bumps_of_the_published_log_are_as_many_as_its_real_diffs_say(published: list[dict[str, object]]) -> None:
    """137 of 792 entries changed the image alone, 32 the search space alone (classified by the diff of the configurations)."""
    without = [each for each in published if not is_cause(each["description"])]  # type: ignore[arg-type]
    assert 137 * 0.9 < len(without) < (137 + 32) * 1.1


def test_every_live_key_of_the_published_configurations_is_found(published: list[dict[str, object]], shared_data: Path) -> None:
    """Each configuration that the log names by its exact key is found by what its records tell."""
    keys = {str(key) for each in published for key in each["config-keys"]}  # type: ignore[attr-defined]
    configurations = {
        key: value
        for name in ("nvidia", "amd")
        for key, value in yaml.load(
            (shared_data / "inferencex" / "configs" / f"{name}-master.yaml").read_text(), yaml.CSafeLoader
        ).items()
    }
    missed = []
    for key in sorted(keys & configurations.keys()):
        told = configurations[key]
        asked = Configuration(
            None,
            vocabulary.model(told["model-prefix"]).value,
            vocabulary.precision(told["precision"]).value,
            vocabulary.hardware(told["runner"]).value,
            vocabulary.framework(told["framework"]).value,
            "mtp" if any(mark in key for mark in ("mtp", "dspark")) else "none",
            bool(told.get("disagg")),
            next(iter(told["scenarios"])),
        )
        if not is_about(entry(key), asked):
            missed.append(key)
    assert missed == []


def test_what_the_published_log_says_of_a_real_curve(published: list[dict[str, object]], shared_data: Path) -> None:
    """DeepSeek-R1 FP8 on MI325X went from v0.5.5.post3 to v0.5.7 with five flags, and to v0.5.8 with none."""
    log = log_of(_entries(published, shared_data))
    asked = Configuration("SemiAnalysisAI/InferenceX", "dsr1", "fp8", "mi325x", "sglang", "none", False, "fixed-seq-len")
    said = [
        e.words
        for e in entries_between(
            log, asked, datetime.fromisoformat("2025-12-20T00:00Z"), datetime.fromisoformat("2026-02-10T00:00Z")
        )
    ]
    assert any("v0.5.5.post3 to v0.5.7; Add SGLANG_AITER_MLA_PERSIST" in words for words in said)
    assert not any("v0.5.7 to v0.5.8" in words for words in said)
