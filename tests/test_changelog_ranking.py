"""What a configuration asks for, what a commit says, and the order that follows; links of shifts."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.facets import Configuration, asked_facets, facets, natures, phase_of_metric, registry
from changelog.linking import TOP, configuration_of, link
from changelog.matching import match
from changelog.projects import projects
from changelog.ranges import Range, find_range
from changelog.ranking import STAND_OFF, rank
from changelog.upstream import open_upstream
from tests import frames
from warehouse import vocabulary
from warehouse.schemas import DEPENDENCIES, DIFFS, LINKS, RELEASES, SHIFTS

DAY = datetime(2026, 1, 1, tzinfo=UTC)
B200 = Configuration("b200", "dsr1", "fp4", "none", False, "regression", "tput_per_gpu")
MI355X = Configuration("mi355x", "qwen3.5", "fp8", "none", False, "speedup", "tput_per_gpu")


def name(number: int) -> str:
    return f"{number:08x}" + "0" * 32


def tables(
    *changes: tuple[str, list[str]], releases: tuple[tuple[Any, ...], ...] = (), project: str = "vllm"
) -> dict[str, pl.DataFrame]:
    rows = [(project, name(0), [], DAY, DAY, "root", None, [], 0, DAY)]
    rows += [
        (
            project,
            name(number),
            [name(number - 1)],
            DAY + timedelta(days=number),
            DAY + timedelta(days=number),
            title,
            1000 + number,
            paths,
            0,
            DAY,
        )
        for number, (title, paths) in enumerate(changes, start=1)
    ]
    return {
        "commits": frames.commits(rows),
        "releases": pl.DataFrame([(*release, DAY) for release in releases], schema=RELEASES.schema, orient="row"),
        "dependencies": DEPENDENCIES.schema.to_frame(),
    }


def candidates(*changes: tuple[str, list[str]]) -> Range:
    return find_range(open_upstream("vllm", tables(*changes)), name(0), name(len(changes)))


def order(configuration: Configuration, *changes: tuple[str, list[str]]) -> list[str]:
    return [change.title for change in rank(candidates(*changes), configuration)]


def evidence(configuration: Configuration, title: str, *paths: str) -> tuple[str, ...]:
    return rank(candidates((title, list(paths))), configuration)[0].evidence


def test_what_a_configuration_asks_for() -> None:
    asked = asked_facets(B200)
    assert asked["vendor"] == {"nvidia"} and asked["target"] == {"sm100"} and asked["precision"] == {"fp4"}
    assert asked["model"] == {"deepseek"} and asked["trait"] == {"mla", "moe", "shared_experts"}
    assert asked["mode speculation"] == frozenset() and asked["mode disaggregation"] == frozenset()
    amd = asked_facets(Configuration("mi325x", "minimaxm2.5", "fp8", "mtp", True, None, "ttft_median"))
    assert amd["vendor"] == {"amd"} and amd["target"] == {"cdna3"} and amd["model"] == {"minimax"}
    assert amd["mode speculation"] == {"speculation"} and amd["mode disaggregation"] == {"disaggregation"}
    assert amd["phase"] == {"prefill"}


def test_what_is_not_said_counts_for_nothing() -> None:
    assert set(asked_facets(Configuration())) == {"elsewhere", "core"}
    assert set(asked_facets(Configuration(hardware="new-chip", model="new-model"))) == {"elsewhere", "core"}


@pytest.mark.parametrize(
    ("metric", "phase"),
    [
        ("ttft_p99", "prefill"),
        ("tpot_median", "decode"),
        ("itl_mean", "decode"),
        ("tput_per_gpu", None),
        (None, None),
        ("", None),
    ],
)
def test_phase_of_metric(metric: str | None, phase: str | None) -> None:
    assert phase_of_metric(metric) == phase


def test_every_known_name_is_asked_for() -> None:
    """A name added to the vocabulary without a facet would silently rank worse."""
    for hardware in vocabulary.names("hardware"):
        asked = asked_facets(Configuration(hardware=hardware))
        assert len(asked["vendor"]) == 1 and len(asked["target"]) == 1 and len(asked["accelerator"]) == 1, hardware
        assert asked["accelerator"] <= set(match([f"Tune for {hardware.upper()}"], [[]], ())[0].topics), hardware
    for precision in vocabulary.names("precision"):
        assert len(asked_facets(Configuration(precision=precision))["precision"]) == 1, precision
    for model in vocabulary.names("model"):
        asked = asked_facets(Configuration(model=model))
        assert asked["model"] and asked["trait"], model


def test_registry_names_only_what_exists() -> None:
    known = facets()
    assert {facet.kind for facet in known.values()} == set(registry()["weight"])
    for family in registry()["family"]:
        assert set(family["asks"]) <= set(known)
    assert not set(known) & {nature.name for nature in natures()}, "they share one frame of columns"


def test_the_shift_own_platform_comes_before_others() -> None:
    found = order(
        MI355X,
        ("[XPU] Faster attention", ["vllm/x.py"]),
        ("[ROCm] Faster attention", ["vllm/platforms/rocm.py"]),
        ("Faster attention", ["vllm/x.py"]),
        ("[NVIDIA] Faster attention", ["vllm/x.py"]),
    )
    assert found[:2] == ["[ROCm] Faster attention", "Faster attention"]
    assert order(B200, ("[ROCm] Faster MLA", []), ("[NVIDIA] Faster MLA", []))[0] == "[NVIDIA] Faster MLA"


H200_FILE = "vllm/model_executor/layers/fused_moe/configs/E=256,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8.json"
H100_FILE = "vllm/model_executor/layers/fused_moe/configs/E=256,N=256,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json"
H100 = Configuration("h100", "gptoss120b")


def hardware_evidence(hardware: str, title: str, *paths: str) -> list[str]:
    """The evidence of a configuration that asks for nothing but its accelerator."""
    return list(evidence(Configuration(hardware), title, *paths))


def test_another_accelerator_of_the_same_architecture_counts_against() -> None:
    assert hardware_evidence("h100", "On H200") == ["against: title names H200 (“h200”), which the shift is not about"]
    assert hardware_evidence("h100", "New files", H200_FILE) == [
        f"against: changes only code for H200, which the shift is not about: {H200_FILE}"
    ]
    assert hardware_evidence("h200", "On H200") == [
        "title names H200 (“h200”)",
        "title names Hopper (“h200”)",
        "title names NVIDIA (“h200”)",
    ]


def test_another_accelerator_comes_after_the_shift_own_and_after_none() -> None:
    changes = (
        ("[Kernels] Improve H200 Fused MoE Config (#28992)", [H200_FILE]),
        ("[Kernels] Improve Fused MoE Config", ["vllm/model_executor/layers/fused_moe/layer.py"]),
        ("[Kernels] Improve H100 Fused MoE Config", [H100_FILE]),
    )
    assert order(H100, *changes) == [changes[2][0], changes[1][0], changes[0][0]]
    assert order(Configuration("h200", "gptoss120b"), *changes)[0] == changes[0][0]


@pytest.mark.parametrize(
    ("hardware", "title", "against"),
    [
        ("b200", "Tune GB200", "GB200"),
        ("gb200", "Tune B200", "B200"),
        ("gb200", "Tune B200 and GB200", None),
        ("b300", "Allreduce for SM 10.3 (B300/GB300)", None),
        ("mi300x", "[ROCm] Tune MI325X", "MI325X"),
        ("mi325x", "[ROCm] Tune MI300", None),
        ("mi325x", "[ROCm] Tune mi325", None),
        ("mi325x", "[ROCm] Tune MI308X", "another accelerator"),
        ("mi355x", "[ROCm] Tune MI350X / MI355X", None),
        ("rtx5090", "Tune the RTX PRO 6000", "RTX PRO 6000"),
        ("rtx6000pro", "Tune a thing (#5090)", None),
        ("h100", "Tune h2000 and xh200", None),
        ("new-chip", "Tune H200", None),
    ],
)
def test_which_names_are_another_accelerator(hardware: str, title: str, against: str | None) -> None:
    said = [words for words in hardware_evidence(hardware, title) if words.startswith("against")]
    assert [f"against: title names {against} " in words for words in said] == ([True] if against else [])


@pytest.mark.parametrize("hardware", ["mi355x", "h100"])
def test_a_name_of_foreign_architecture_counts_once(hardware: str) -> None:
    (one,) = [words for words in hardware_evidence(hardware, "Tune rtx5090") if "desktop Blackwell" in words]
    assert one.startswith("against")
    assert not any("names RTX" in words for words in hardware_evidence(hardware, "Tune rtx5090", "vllm/configs/RTX_5090.json"))


def test_the_vendor_by_its_own_word_still_counts() -> None:
    for title in ("[ROCm] On MI300X", "On MI300X [ROCm]"):
        found = hardware_evidence("mi325x", title)
        assert found == ["title names AMD (“rocm”)", "against: title names MI300X (“mi300x”), which the shift is not about"]


def test_own_files_among_others_count_for() -> None:
    found = hardware_evidence("h100", "Add files", H200_FILE, H100_FILE)
    assert f"changes code for H100: {H100_FILE}" in found and not [words for words in found if words.startswith("against")]


@pytest.mark.parametrize("title", ["On NVFP4", "On INT4", "On MXFP8"])
def test_another_precision_counts_against(title: str) -> None:
    (found,) = evidence(Configuration(precision="fp8"), title)
    assert found.startswith("against: title names ")
    assert not [words for words in evidence(Configuration(precision="fp8"), f"{title} beside FP8") if words.startswith("against")]


def test_the_shift_own_model_comes_before_others() -> None:
    found = order(MI355X, ("Fuse norm for Llama 4", []), ("Fuse norm for Qwen3.5", []), ("Fuse norm", []))
    assert found == ["Fuse norm for Qwen3.5", "Fuse norm", "Fuse norm for Llama 4"]
    dsr1 = order(B200, ("Speed up DeepSeek-V4", []), ("Speed up DeepSeek-R1", []), ("Speed up DeepSeek V3.2", []))
    assert dsr1[0] == "Speed up DeepSeek-R1"


def test_modes_that_are_off_count_against() -> None:
    off = Configuration("b200", "dsr1", "fp4", "none", False, "speedup")
    on = Configuration("b200", "dsr1", "fp4", "mtp", True, "speedup")
    changes = (("Optimize EAGLE draft", []), ("Optimize NIXL transfer", []), ("Optimize sampler", []))
    assert order(off, *changes)[0] == "Optimize sampler"
    assert order(on, *changes)[-1] == "Optimize sampler"


@pytest.mark.parametrize("paths", [["docs/a.md"], ["tests/t.py", ".github/workflows/x.yml"], ["README.md"], ["benchmarks/b.py"]])
def test_changes_that_no_server_runs_come_last(paths: list[str]) -> None:
    found = rank(candidates(("[ROCm] Qwen3.5 FP8 fused MoE", paths), ("[XPU] thing", ["vllm/x.py"])), MI355X)
    assert found[-1].title.startswith("[ROCm]")
    assert any("touches only tests, documentation" in words for words in found[-1].evidence)


def test_another_program_in_the_same_repository_comes_last() -> None:
    sglang = tables(
        ("Faster MoE kernel", ["sgl-model-gateway/src/a.rs"]),
        ("Faster MoE kernel", ["python/sglang/srt/layers/moe/a.py"]),
        project="sglang",
    )
    found = rank(find_range(open_upstream("sglang", sglang), name(0), name(2)), B200)
    assert [change.pr for change in found] == [1002, 1001]
    assert any("outside the LLM engine" in words for words in found[1].evidence)


def test_a_default_that_flips_weighs_more_for_a_regression() -> None:
    words = "guess: title picks or orders what runs by default (“selector”)"
    assert words in evidence(Configuration(direction="regression"), "Attention selector reordering", "vllm/a.py")
    up = rank(candidates(("Change the default backend", [])), Configuration(direction="speedup"))[0].score
    down = rank(candidates(("Change the default backend", [])), Configuration(direction="regression"))[0].score
    assert down > up > 0


def test_what_a_default_change_touches_counts_for_a_regression() -> None:
    down = Configuration(direction="regression")
    found = evidence(down, "Attention selector reordering", "vllm/platforms/rocm.py")
    assert "changes where defaults are picked: vllm/platforms/rocm.py" in found
    changes = (("Reorder attention", ["vllm/platforms/cuda.py"]), ("Reorder attention", ["vllm/a.py"]))
    assert [change.pr for change in rank(candidates(*changes), down)] == [1001, 1002]


@pytest.mark.parametrize(
    ("hardware", "asked", "not_asked"),
    [
        ("mi355x", {"aiter", "triton", "rocm_kernels"}, {"flashinfer", "deepgemm", "fa3"}),
        ("h200", {"flashinfer", "deepgemm", "fa3", "cutlass", "flashmla"}, {"aiter", "trtllm_gen", "fa4"}),
        ("b200", {"flashinfer", "trtllm_gen", "fa4", "deepgemm"}, {"aiter", "fa3"}),
        ("rtx6000pro", {"flashinfer", "cutlass"}, {"aiter", "fa3", "fa4", "trtllm_gen", "deepgemm"}),
    ],
)
def test_kernel_libraries_are_those_of_the_accelerator(hardware: str, asked: set[str], not_asked: set[str]) -> None:
    found = asked_facets(Configuration(hardware))["backend"]
    assert asked <= found and not found & not_asked


@pytest.mark.parametrize(
    ("hardware", "model", "precision", "formats"),
    [
        ("b200", "dsr1", "fp4", {"nvfp4"}),
        ("mi355x", "dsr1", "fp4", {"mxfp4"}),
        ("b200", "gptoss120b", "fp4", {"mxfp4"}),
        ("b200", "dsr1", "fp8", None),
        (None, "gptoss120b", "fp4", {"mxfp4"}),
        (None, "dsr1", "fp4", None),
    ],
)
def test_four_bit_formats(hardware: str | None, model: str, precision: str, formats: set[str] | None) -> None:
    assert asked_facets(Configuration(hardware, model, precision)).get("format") == formats


def test_the_other_four_bit_format_counts_against() -> None:
    gptoss = Configuration("b200", "gptoss120b", "fp4")
    assert order(gptoss, ("Faster NVFP4 MoE", []), ("Faster MXFP4 MoE", []))[0] == "Faster MXFP4 MoE"
    assert (
        order(Configuration("b200", "dsr1", "fp4"), ("Faster MXFP4 MoE", []), ("Faster NVFP4 MoE", []))[0] == "Faster NVFP4 MoE"
    )


def test_kin_of_the_model_count_less_than_the_model() -> None:
    changes = (("Fuse norm for Qwen3-Next", []), ("Fuse norm for Qwen3.6", []), ("Fuse norm", []))
    assert order(MI355X, *changes) == ["Fuse norm for Qwen3.6", "Fuse norm for Qwen3-Next", "Fuse norm"]


def test_what_only_foreign_files_hold_counts_twice() -> None:
    only = ("Faster", ["vllm/model_executor/models/llama4.py"])
    half = ("Faster", ["vllm/model_executor/models/llama4.py", "vllm/b.py"])
    scores = {change.pr: change.score for change in rank(candidates(only, half), MI355X)}
    weight = registry()["weight"]["model"]["foreign_path"]
    assert scores[1001] - scores[1002] == pytest.approx(weight)


def test_speculation_that_the_shift_does_not_speak_of_counts_a_little_against() -> None:
    words = "against: title names speculative decoding (“eagle”), which the shift does not speak of"
    assert words in evidence(Configuration("b200"), "Optimize EAGLE")
    said = {mode: rank(candidates(("EAGLE", [])), Configuration(spec_decoding=mode))[0].score for mode in (None, "none", "mtp")}
    assert said["none"] < said[None] < 0 < said["mtp"]


def test_more_exact_words_count_alone() -> None:
    found = evidence(MI355X, "Shared expert fusion", "sglang/moe/topk.py")
    assert [words for words in found if "shared experts" in words] and not [words for words in found if "mixture" in words]
    named = evidence(Configuration("b200", "dsr1"), "Reorder attention", "vllm/v1/attention/backends/mla/x.py")
    assert any(words.startswith("title names attention") for words in named), "the path says less than the title"


def test_a_claim_in_the_title_counts_for_a_speedup_of_its_metric() -> None:
    title = "Optimize a thing, 5.3% E2E throughput improvement"
    assert "title claims 5.3 % (throughput)" in evidence(Configuration(direction="speedup", metric="tput_per_gpu"), title)
    assert not [words for words in evidence(Configuration(direction="regression"), title) if "claims" in words]
    kernel = "Optimize a thing, 20% kernel performance improvement"
    assert "title claims 20 % (speed, of a part of the work)" in evidence(Configuration(direction="speedup"), kernel)
    weight = registry()["further"]["claim"]["speedup"]
    both = rank(
        candidates(("TTFT 10% lower", []), ("TPOT 10% lower", [])), Configuration(direction="speedup", metric="tpot_mean")
    )
    phase = registry()["weight"]["phase"]
    apart = weight / 2 + phase["title"] - phase["foreign_title"]
    assert both[0].title.startswith("TPOT") and both[0].score - both[1].score == pytest.approx(apart)


def test_facts_and_guesses_are_told_apart() -> None:
    found = evidence(MI355X, "[ROCm] Integrate fused MoE, refactor", "vllm/a.py")
    begins = [words.split(":")[0] for words in found if ":" in words.split("“")[0]]
    assert set(begins) == {"guess", "against (guess)"}
    assert "title names AMD (“rocm”)" in found and "against (guess): title moves code about (“refactor”)" in found


def test_commits_that_move_a_library_are_dependencies() -> None:
    found = rank(candidates(("chore: bump flashinfer version to 0.6.3 (#1)", []), ("Faster MLA", [])), B200)
    assert {change.pr: change.kind for change in found} == {1001: "dependency", 1002: "commit"}


def test_a_moved_dependency_is_named_and_its_packaging_does_not_count_against() -> None:
    found = evidence(B200, "chore: bump flashinfer version to 0.6.3 (#1)", "docker/Dockerfile", "requirements/cuda.txt")
    assert "moves flashinfer to 0.6.3, whose kernels the engine runs" in found
    assert not [words for words in found if words.startswith("against")]
    assert not [words for words in evidence(MI355X, "chore: bump flashinfer version to 0.6.3") if words.startswith("moves")]


def test_a_revert_names_what_it_takes_back() -> None:
    assert "takes back #1234" in evidence(B200, 'Revert "Faster MLA (#1234)" (#5678)')


@pytest.mark.parametrize(
    ("title", "absent"),
    [
        ("Shampoo for moelleux", "mixture of experts"),
        ("Promoted", "AMD"),
        ("Decode scaled_mm", "images"),
        ("Fused qk_lora_rank", "LoRA"),
        ("Rotary embedding", "pooling"),
        ("gemma_rms_norm for all", "Gemma"),
        ("Fix spec decode", "names decode"),
    ],
)
def test_terms_are_whole_words_and_exceptions_hold(title: str, absent: str) -> None:
    (found,) = match([title], [[]], ())
    assert absent not in " ".join(f"names {facets()[topic].label}" for topic in found.topics)


def test_evidence_is_true_of_the_commit() -> None:
    title = "[ROCm] Support MLA with nhead<16 and FP8 KV cache for TP=8 (Kimi K2.5/Linear) (#35850)"
    path = "vllm/v1/attention/backends/mla/rocm_aiter_mla.py"
    found = evidence(Configuration("mi355x", "kimik2.5", "int4", "none", False, "speedup", "tput_per_gpu"), title, path)
    assert f"title names AMD (“rocm”) and changes {path}" in found
    assert f"title names MLA attention (“mla”) and changes {path}" in found
    assert "title names the very model (kimi k2.5)" in found
    for words in found:
        for quoted in words.split("“")[1:]:
            assert quoted.split("”")[0] in title.lower()


def test_score_is_the_sum_of_the_evidence_and_ties_go_to_the_later() -> None:
    found = rank(candidates(("x", []), ("y", []), ("[ROCm] z", [])), MI355X)
    assert [(change.title, change.score) for change in found] == [
        ("[ROCm] z", registry()["weight"]["vendor"]["title"]),
        ("y", 0.0),
        ("x", 0.0),
    ]
    assert [change.rank for change in found] == [1, 2, 3]


titles = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60) | st.sampled_from(
    ["[ROCm] Qwen3.5 fused MoE", 'Revert "x (#1)" (#2)', "bump aiter to 0.1.5", "\\w+(", "[" * 30]
)


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(titles, st.lists(titles, max_size=3)), min_size=1, max_size=5),
    st.builds(
        Configuration,
        st.sampled_from([None, "b200", "mi355x"]),
        st.sampled_from([None, "dsr1", "kimik2.5", "zzz"]),
        st.sampled_from([None, "fp4"]),
        st.sampled_from([None, "none", "mtp"]),
        st.sampled_from([None, True, False]),
        st.sampled_from([None, "regression", "speedup"]),
        st.sampled_from([None, "ttft_mean"]),
    ),
)
def test_every_candidate_is_ranked_once_and_the_same_each_time(
    changes: list[tuple[str, list[str]]], configuration: Configuration
) -> None:
    found = candidates(*changes)
    ranked = rank(found, configuration)
    assert sorted(change.commit for change in ranked) == sorted(found.commits["commit"].to_list())
    assert [change.score for change in ranked] == sorted((change.score for change in ranked), reverse=True)
    assert rank(found, configuration) == ranked


def test_matching_is_linear_in_hostile_titles() -> None:
    hostile = "moe_" * 20_000
    (found,) = match([hostile], [[hostile[:5000]]], projects()["vllm"].offline)
    assert "moe" in found.topics


def shift(**changed: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(SHIFTS.schema.names())
    row |= {
        "shift_id": "s1",
        "engine": "vllm",
        "hardware": "mi355x",
        "model": "qwen3.5",
        "precision": "fp8",
        "spec_decoding": "none",
        "disagg": False,
        "direction": "speedup",
        "metric": "tput_per_gpu",
        "attribution": "engine",
        "change_set": ["build"],
        "from_image_ref": "vllm/vllm-openai:v0.90.0",
        "to_image_ref": "vllm/vllm-openai:v0.91.0",
        "from_engine_version": "0.90.0",
        "to_engine_version": "0.91.0",
        "from_measured_at": DAY + timedelta(days=5),
        "to_measured_at": DAY + timedelta(days=9),
    }
    return row | changed


def linked(*rows: dict[str, Any], count: int = 30, diffs: pl.DataFrame | None = None) -> pl.DataFrame:
    releases = tuple(
        ("vllm", version, f"v{version}", name(number), None, None, "tag", None, None, None)
        for version, number in (("0.90.0", 2), ("0.91.0", 27))
    )
    known = tables(
        *((f"[ROCm] Change {number}" if number == 20 else f"Change {number}", ["vllm/a.py"]) for number in range(1, count + 1)),
        releases=releases,
    )
    return link(pl.DataFrame(list(rows), schema=SHIFTS.schema), known, diffs)


def test_a_shift_is_linked_to_its_first_changes_of_all() -> None:
    found = linked(shift())
    assert found.schema == LINKS.schema and found.height == TOP
    assert found["candidates"].unique().to_list() == [25]
    first = found.row(0, named=True)
    assert (first["rank"], first["title"], first["project"], first["pr"]) == (1, "[ROCm] Change 20", "vllm", 1020)
    assert first["change_id"] == f"vllm@{name(20)[:12]}" and not first["open_ended"]


@pytest.mark.parametrize(
    "changed",
    [
        {"attribution": "recipe"},
        {"attribution": "measurement"},
        {"change_set": ["recipe"]},
        {"change_set": []},
        {"engine": "tilert"},
        {"engine": "atom"},
    ],
)
def test_shifts_of_other_causes_are_not_linked(changed: dict[str, Any]) -> None:
    assert linked(shift(**changed)).is_empty()


def test_a_moved_tag_goes_by_dates_and_says_so() -> None:
    digests = {"from_image_digest": "sha256:" + "a" * 64, "to_image_digest": "sha256:" + "b" * 64}
    same = linked(shift(to_image_ref="vllm/vllm-openai:v0.90.0", to_engine_version="0.90.0", **digests))
    named = linked(
        shift(
            from_image_ref="vllm/vllm-openai:dev",
            to_image_ref="vllm/vllm-openai:dev",
            from_engine_version=None,
            to_engine_version=None,
            **digests,
        )
    )
    for found, why in ((same, "they differ"), (named, "Neither build can be placed. FROM: the image tag")):
        assert found["open_ended"].all() and found["candidates"].unique().to_list() == [10]
        assert why in found["range_how"][0] and "by date only" in found["range_how"][0]
        assert re.search(r"\.[.;,)]", found["range_how"][0]) is None and found["range_how"][0].endswith(".")


def test_an_unknown_end_stops_at_the_measurement() -> None:
    found = linked(shift(to_image_ref="vllm/vllm-openai:dev", to_engine_version=None))
    assert found["open_ended"].all()
    assert sorted(found["commit"].to_list()) == [name(number) for number in range(3, 10)], (
        "nothing that landed after it was measured"
    )


def test_links_do_not_depend_on_the_order_of_shifts() -> None:
    rows = [shift(shift_id=f"s{number}", hardware=hardware) for number, hardware in enumerate(["b200", "mi355x", "h100"])]
    assert linked(*rows).equals(linked(*rows[::-1]))


def test_curves_that_moved_with_it_say_what_it_is_about() -> None:
    """The same change ranks higher where only curves of its vendor moved, and the words say so."""
    names = ("engine", "precision", "spec_decoding", "disagg", "from_image_ref", "to_image_ref")
    base = {name: shift()[name] for name in (*names, "from_engine_version", "to_engine_version")}
    rows = [
        frames.diff(**base, curve_id=f"{hardware}{number}", model="qwen3.5", hardware=hardware, size=0.1 * (hardware == "mi355x"))
        | {"flagged": hardware == "mi355x", "from_image_digest": None, "to_image_digest": None}
        for hardware in ("mi355x", "b200")
        for number in range(4)
    ]
    diffs = pl.DataFrame(rows, schema=DIFFS.schema)
    plain, told = linked(shift()), linked(shift(), diffs=diffs)
    words = "only curves with AMD moved: 4 of 4; others 0 of 4"
    assert words in told["evidence"][0] and words not in plain["evidence"][0]
    assert told["score"][0] > plain["score"][0] and told["title"][0] == plain["title"][0]


@pytest.mark.parametrize(
    ("ttft", "tpot", "phase"),
    [
        (-8.0, -1.0, "prefill"),
        (-1.0, 8.0, "decode"),
        (-8.0, -8.0, None),
        (-1.0, -1.0, None),
        (None, -9.0, None),
        (-9.0, None, None),
    ],
)
def test_the_phase_that_moved_alone(ttft: float | None, tpot: float | None, phase: str | None) -> None:
    assert configuration_of(shift(ttft_pct=ttft, tpot_pct=tpot)).phase == phase


def test_links_say_kind_and_whether_they_narrow() -> None:
    found = linked(shift())
    assert found["kind"].unique().to_list() == ["commit"]
    assert found["narrowed"].to_list() == [found["score"][0] - found["score"][9] >= STAND_OFF] * TOP


def test_no_shifts_no_links() -> None:
    assert linked().equals(LINKS.schema.to_frame())
