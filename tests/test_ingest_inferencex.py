"""InferenceX rows: each field where it belongs, and nothing wrong let through. Values by hand."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest import formats
from pipelines.ingest.reading import Given, Reading
from pipelines.ingest.tools import inferencex_dictionary as dictionary
from pipelines.ingest.tools.inferencex import FORMAT, MAX_GPUS, PER_ROLE_TOKENS_SINCE, PRECISION_SINCE, hints, read
from pipelines.ingest.tools.inferencex_setup import DISAGG_SINCE, Setup
from tests.records import row
from warehouse.canonical import canonical_json
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.errors import InputError
from warehouse.schemas import IDENTITY, POINTS

START = datetime(2026, 1, 1, 6, tzinfo=UTC)

SINGLE: dict[str, Any] = {
    "hw": "b200-trt",
    "conc": 16,
    "image": "nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2",
    "model": "/models/DeepSeek-R1-0528-FP4/",
    "infmax_model_prefix": "dsr1",
    "framework": "trt",
    "precision": "nvfp4",
    "spec_decoding": "MTP",
    "disagg": False,
    "isl": 8192,
    "osl": 1024,
    "is_multinode": False,
    "tp": 4,
    "ep": 2,
    "dp_attention": "true",
    "tput_per_gpu": 900.5,
    "output_tput_per_gpu": 100.25,
    "input_tput_per_gpu": 800.25,
    "mean_ttft": 0.61,
    "median_ttft": 0.25,
    "std_ttft": 1.29,
    "p90_ttft": 1.5,
    "p99_ttft": 6.78,
    "p99.9_ttft": 7.5,
    "mean_tpot": 0.0171,
    "median_tpot": 0.0175,
    "std_tpot": 0.0019,
    "p99_tpot": 0.0205,
    "mean_intvty": 58.5,
    "median_intvty": 57.0,
    "std_intvty": 514.6,
    "p99_intvty": 48.7,
    "p99.9_intvty": 40.5,
    "mean_itl": 0.0171,
    "median_itl": 0.0101,
    "p95_itl": 0.02,
    "mean_e2el": 16.4,
    "median_e2el": 16.0,
    "p99_e2el": 23.5,
    "avg_power_w": 628.9,
    "power_valid": 1,
    "p75_ttft": 0.4,
    "joules_per_output_token": 1.25,
}

BY_ROLE: dict[str, Any] = {
    "hw": "gb200",
    "conc": 256,
    "image": "nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime:0.5.1-rc0.pre3",
    "model": "/mnt/x/deepseek-r1-0528-fp4-v2",
    "infmax_model_prefix": "dsr1",
    "framework": "dynamo-trt",
    "precision": "fp4",
    "spec_decoding": "mtp",
    "disagg": True,
    "isl": 8192,
    "osl": 1024,
    "is_multinode": True,
    "prefill_tp": 4,
    "prefill_ep": 4,
    "prefill_dp_attention": "true",
    "prefill_num_workers": 5,
    "num_prefill_gpu": 20,
    "decode_tp": 32,
    "decode_ep": 32,
    "decode_dp_attention": "false",
    "decode_num_workers": 1,
    "num_decode_gpu": 32,
    "tput_per_gpu": 4300.0,
    "output_tput_per_gpu": 780.0,
    "input_tput_per_gpu": 9900.0,
    "median_e2el": 9.0,
    "router": {"name": "dynamo-kv", "version": "0.5.1"},
    "kv_p2p_transfer": "nixl",
    "kv_offloading": "cpu",
    "kv_offload_backend": {"name": "lmcache"},
    "recipe_fingerprint": "ABCDEF0123456789",
    "benchmark_start_time_unix": 1767225600.5,
}

NOT_TOLD = {"workload": None, "arrival": None, "system": None}
PARALLEL = ("tp", "pp", "ep", "dcp", "pcp", "dp_attention")


def of(record: dict[str, Any], **changes: Any) -> Reading:
    """Return the reading of *record* with *changes*; a change to ... leaves the field out."""
    return read({key: value for key, value in {**record, **changes}.items() if value is not ...}, Given(START))


def refusal(record: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(InputError) as refused:
        of(record, **changes)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_single_deployment() -> None:
    reading = of(SINGLE)
    assert reading.identity == {
        "hardware": "b200",
        "engine": "trtllm",
        "framework": "trt",
        "model": "dsr1",
        "precision": "fp4",
        "spec_decoding": "mtp",
        "disagg": False,
        "is_multinode": False,
        "prefill_hardware": None,
        "decode_hardware": None,
        "tp": 4,
        "pp": 1,
        "ep": 2,
        "dcp": 1,
        "pcp": 1,
        "dp_attention": True,
        **{f"{role}_{name}": None for role in ("prefill", "decode") for name in (*PARALLEL, "num_workers")},
        "num_prefill_gpus": None,
        "num_decode_gpus": None,
        "router": None,
        "kv_transfer": None,
        "kv_offload": None,
        "scenario": "fixed-seq-len",
        "isl": 8192,
        "osl": 1024,
        **NOT_TOLD,
    }
    assert (reading.concurrency, reading.num_gpus, reading.metric_definition) == (16, 4, "inferencex")
    assert (reading.hardware_label, reading.model_source, reading.checkpoint) == (
        "b200-trt",
        "/models/DeepSeek-R1-0528-FP4/",
        "deepseek-r1-0528-fp4",
    )
    assert reading.image == "nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2"
    assert (reading.recipe_fingerprint, reading.measured_at, reading.unknown_names) == (None, None, ())


def test_metrics_by_canonical_name() -> None:
    assert of(SINGLE).metrics == {
        "tput_per_gpu": 900.5,
        "output_tput_per_gpu": 100.25,
        "input_tput_per_gpu": 800.25,
        "ttft_mean": 0.61,
        "ttft_median": 0.25,
        "ttft_std": 1.29,
        "ttft_p90": 1.5,
        "ttft_p99": 6.78,
        "ttft_p999": 7.5,
        "tpot_mean": 0.0171,
        "tpot_median": 0.0175,
        "tpot_std": 0.0019,
        "tpot_p99": 0.0205,
        "intvty_mean": 58.5,
        "intvty_median": 57.0,
        "intvty_p99": 48.7,
        "intvty_p999": 40.5,
        "itl_mean": 0.0171,
        "itl_median": 0.0101,
        "itl_p95": 0.02,
        "e2el_mean": 16.4,
        "e2el_median": 16.0,
        "e2el_p99": 23.5,
    }
    assert of(SINGLE).metrics_other == {
        "gpu_power_w": 628.9,
        "p75_ttft": 0.4,
        "integrated_joules_per_output_token": 1.25,
    }


def test_a_disaggregated_deployment() -> None:
    reading = of(BY_ROLE)
    assert reading.identity == {
        "hardware": "gb200",
        "engine": "trtllm",
        "framework": "dynamo-trt",
        "model": "dsr1",
        "precision": "fp4",
        "spec_decoding": "mtp",
        "disagg": True,
        "is_multinode": True,
        "prefill_hardware": None,
        "decode_hardware": None,
        **dict.fromkeys(PARALLEL),
        "prefill_tp": 4,
        "prefill_pp": 1,
        "prefill_ep": 4,
        "prefill_dcp": 1,
        "prefill_pcp": 1,
        "prefill_dp_attention": True,
        "prefill_num_workers": 5,
        "num_prefill_gpus": 20,
        "decode_tp": 32,
        "decode_pp": 1,
        "decode_ep": 32,
        "decode_dcp": 1,
        "decode_pcp": 1,
        "decode_dp_attention": False,
        "decode_num_workers": 1,
        "num_decode_gpus": 32,
        "router": "dynamo-kv 0.5.1",
        "kv_transfer": "nixl",
        "kv_offload": "cpu lmcache",
        "scenario": "fixed-seq-len",
        "isl": 8192,
        "osl": 1024,
        **NOT_TOLD,
    }
    assert (reading.concurrency, reading.num_gpus) == (256, 52)
    assert reading.recipe_fingerprint == "abcdef0123456789"
    assert reading.measured_at == datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC)
    assert reading.metrics_other == {}


def test_decode_gpus_may_be_none_at_all() -> None:
    """Where the same GPUs prefill and decode, decode counts are 0."""
    reading = of(BY_ROLE, num_decode_gpu=0, decode_tp=0, decode_ep=0, decode_num_workers=0)
    assert reading.num_gpus == 20
    assert reading.identity["num_decode_gpus"] == 0
    assert "no GPU at all" in refusal(BY_ROLE, num_decode_gpu=0, num_prefill_gpu=0)


def test_gpus_of_a_single_deployment_are_tp_pp_and_pcp() -> None:
    assert of(SINGLE, tp=4, pp=2, pcp_size=3, dcp_size=5, ep=7).num_gpus == 24


def test_a_deployment_of_more_gpus_than_there_are_is_refused() -> None:
    assert of(SINGLE, tp=MAX_GPUS).num_gpus == MAX_GPUS
    assert refusal(SINGLE, tp=10**8, pp=10**8, pcp_size=10**8).startswith("tp: ")
    assert refusal(BY_ROLE, num_prefill_gpu=MAX_GPUS).startswith("num_prefill_gpu: ")


def test_what_was_not_written_in_old_rows() -> None:
    old = {
        "hw": "h200",
        "conc": 4,
        "framework": "vllm",
        "model": "openai/gpt-oss-120b",
        "isl": 1024,
        "osl": 1024,
        "tp": 8,
        "tput_per_gpu": 1.0,
        "mtp": "on",
        "disagg": 0,
        "image": None,
    }
    reading = read(old, Given(PRECISION_SINCE - timedelta(seconds=1)))
    assert (reading.identity["precision"], reading.identity["spec_decoding"], reading.identity["disagg"]) == ("fp8", "mtp", False)
    assert (reading.identity["model"], reading.image) == ("gptoss120b", None)
    assert refusal(old).startswith("precision: field required")
    assert of(old, precision="fp8", mtp="off").identity["spec_decoding"] == "none"
    assert of(old, precision="fp8", mtp="on", spec_decoding="none").identity["spec_decoding"] == "none"


def test_null_is_as_good_as_absent() -> None:
    assert of(SINGLE, pp=None, precision="nvfp4", mean_ttft=None, odd=None, router=None, disagg=None) == of(SINGLE, mean_ttft=...)
    assert refusal(SINGLE, isl=None) == "isl: field required"
    assert "prefill_tp" in refusal(SINGLE, tp=None)


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("false", False), ("True", True), (" FALSE ", False), (True, True), (0, False)]
)
def test_booleans_are_often_texts(text: Any, flag: bool) -> None:
    assert of(SINGLE, dp_attention=text).identity["dp_attention"] is flag
    assert of(BY_ROLE, decode_dp_attention=text).identity["decode_dp_attention"] is flag


@pytest.mark.parametrize("field", ["hw", "conc", "framework", "isl", "osl", "tput_per_gpu"])
def test_a_missing_field_is_named(field: str) -> None:
    assert refusal(SINGLE, **{field: ...}) == f"{field}: field required"


@pytest.mark.parametrize("field", ["prefill_tp", "num_prefill_gpu", "num_decode_gpu"])
def test_a_row_without_tp_needs_its_roles(field: str) -> None:
    assert refusal(BY_ROLE, **{field: ...}).startswith("tp: field required")


@pytest.mark.parametrize("value", [0, -1, "abc", 7.9, math.inf, math.nan, True, False, [4], {"n": 4}, "", 10**30, "Infinity"])
@pytest.mark.parametrize("field", ["conc", "isl", "osl", "tp", "pp", "pcp_size"])
def test_a_count_is_a_whole_number_from_one(field: str, value: Any) -> None:
    assert refusal(SINGLE, **{field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize("value", [-1, True, "x", 1.5, math.inf])
@pytest.mark.parametrize("field", ["decode_tp", "num_decode_gpu", "decode_num_workers", "prefill_ep"])
def test_a_count_by_role_is_a_whole_number_from_nought(field: str, value: Any) -> None:
    assert refusal(BY_ROLE, **{field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize(
    "value", ["NaN", math.nan, math.inf, -math.inf, -0.001, "fast", "1_0", "1e999", "-0.5", 1e308, 5e-324, True, [1], {}, 10**400]
)
@pytest.mark.parametrize("field", ["median_ttft", "p99.9_intvty", "output_tput_per_gpu"])
def test_a_metric_is_a_finite_number_not_below_zero(field: str, value: Any) -> None:
    assert refusal(SINGLE, **{field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize("value", [0, -1.0, 1e308, 5e-324, "NaN", "Infinity", math.nan, math.inf, True, "x"])
def test_throughput_is_above_zero(value: Any) -> None:
    assert refusal(SINGLE, tput_per_gpu=value).startswith("tput_per_gpu: ")


def test_numbers_without_a_column_are_kept_as_they_are() -> None:
    changed = of(SINGLE, seed=-1, flag=True, note="text", nested={"a": 1}, **{"n" * 300: 2})
    assert {key: value for key, value in changed.metrics_other.items() if key not in of(SINGLE).metrics_other} == {
        "seed": -1.0,
        "n" * 120: 2.0,
    }
    assert refusal(SINGLE, seed=math.inf).startswith("seed: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recipe_fingerprint", "<script>"),
        ("recipe_fingerprint", "a" * 129),
        ("benchmark_start_time_unix", 0),
        ("benchmark_start_time_unix", 4e9),
        ("image", ""),
        ("image", "x" * 513),
        ("router", {"version": "1"}),
        ("hw", ""),
        ("hw", 7),
        ("framework", None),
        ("dp_attention", "maybe"),
        ("is_multinode", "2"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    assert refusal(SINGLE, **{field: value}).startswith(field)


def test_metric_definition_follows_the_date() -> None:
    """InferenceX PR 177 (2025-11-05) made disaggregated token rates per role."""
    before = PER_ROLE_TOKENS_SINCE - timedelta(seconds=1)
    assert datetime(2025, 11, 5, tzinfo=UTC) == PER_ROLE_TOKENS_SINCE
    assert read(BY_ROLE, Given(before)).metric_definition == "inferencex disaggregated, all GPUs"
    assert read(BY_ROLE, Given(PER_ROLE_TOKENS_SINCE)).metric_definition == "inferencex disaggregated, per role"
    assert read(SINGLE, Given(before)).metric_definition == read(SINGLE, Given(START)).metric_definition == "inferencex"


def test_names_that_nobody_knows_are_kept_and_told() -> None:
    reading = of(SINGLE, hw="X900-lab_1", framework="Fresh Stack", infmax_model_prefix="fresh9", precision="fp3")
    assert {kind: reading.identity[kind] for kind in ("hardware", "framework", "engine", "model", "precision")} == {
        "hardware": "x900",
        "framework": "fresh-stack",
        "engine": "fresh-stack",
        "model": "fresh9",
        "precision": "fp3",
    }
    assert reading.unknown_names == (
        ("hardware", "x900"),
        ("framework", "fresh-stack"),
        ("model", "fresh9"),
        ("precision", "fp3"),
    )


@pytest.mark.parametrize(
    ("offloading", "backend", "shown"),
    [
        ("none", None, None),
        ("NONE", "lmcache", None),
        (..., "lmcache", None),
        ("cpu", ..., "cpu"),
        ("cpu", "lmcache", "cpu lmcache"),
        ("cpu", {"name": "lmcache", "version": "0.3"}, "cpu lmcache 0.3"),
    ],
)
def test_kv_offload(offloading: Any, backend: Any, shown: str | None) -> None:
    assert of(BY_ROLE, kv_offloading=offloading, kv_offload_backend=backend).identity["kv_offload"] == shown


@pytest.mark.parametrize("value", [None, [], "x", 1, {}, {"hw": 1, "conc": 1, "framework": 1}, [SINGLE]])
def test_what_is_no_row(value: Any) -> None:
    assert not FORMAT.recognises(value)
    assert formats.recognise(value) is None


def test_the_registry_knows_the_format() -> None:
    found = formats.recognise(SINGLE)
    assert found is not None
    assert formats.by_name(found.name) is found
    with pytest.raises(KeyError):
        formats.by_name("never heard of")


FIELD_VALUES = {
    "String": st.sampled_from([None, "a", "b", "ab", "none", "1", "true"]),
    "Boolean": st.sampled_from([None, True, False]),
    "Int64": st.sampled_from([None, 0, 1, 2, 8]),
}
identities = st.fixed_dictionaries({column.name: FIELD_VALUES[str(column.dtype)] for column in IDENTITY})


@given(identities, identities, st.sampled_from([1, 2, 16]), st.sampled_from([1, 2, 16]))
def test_cells_are_one_exactly_where_every_field_is(one: dict[str, Any], other: dict[str, Any], conc: int, conc2: int) -> None:
    same_curve = canonical_json(one) == canonical_json(other)
    assert (curve_id(one) == curve_id(other)) is same_curve
    assert (cell_id(curve_id(one), conc) == cell_id(curve_id(other), conc2)) is (same_curve and conc == conc2)


@given(identities, st.data())
def test_a_change_of_any_field_is_another_curve(identity: dict[str, Any], data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(IDENTITY))
    value = data.draw(FIELD_VALUES[str(column.dtype)].filter(lambda value: value is not identity[column.name]))
    assert curve_id({**identity, column.name: value}) != curve_id(identity)
    assert curve_id({**dict(reversed(identity.items())), "concurrency": 4}) == curve_id(identity)


CHANGES = {
    "hw": "h100",
    "framework": "sglang",
    "precision": "fp4",
    "spec_decoding": "mtp",
    "infmax_model_prefix": "gptoss",
    "isl": 8192,
    "osl": 8192,
    "tp": 4,
    "pp": 2,
    "ep": 8,
    "dcp_size": 2,
    "pcp_size": 2,
    "dp_attention": "true",
    "is_multinode": True,
    "disagg": True,
    "router": "x",
    "kv_p2p_transfer": "nixl",
    "kv_offloading": "cpu",
}


def test_every_field_of_a_row_that_says_what_ran_makes_another_curve() -> None:
    curves = {curve_id(of(row()).identity)} | {curve_id(of(row(), **{field: value}).identity) for field, value in CHANGES.items()}
    assert len(curves) == len(CHANGES) + 1


def test_build_time_and_results_are_no_part_of_the_curve() -> None:
    same = of(row(4, image="vllm/vllm-openai:v9", speed=3.0), model="/other/path", recipe_fingerprint="ab" * 8)
    assert curve_id(same.identity) == curve_id(of(row(64)).identity)
    assert tuple(same.identity) and set(same.identity) == set(IDENTITY_FIELDS)


V1: dict[str, Any] = {
    "hw": "gb200-nv_1",
    "tp": 36,
    "conc": 4,
    "model": "deepseek-r1-fp4",
    "framework": "dynamo-trtllm",
    "precision": "fp4",
    "tput_per_gpu": 10.0,
    "median_ttft": 0.5,
    "mtp": "on",
}
OCTOBER = datetime(2025, 10, 6, tzinfo=UTC)


def test_rows_that_hold_no_lengths_ask_for_them() -> None:
    """Written since 2025-11-21; before, names of folders told them."""
    with pytest.raises(InputError) as refused:
        read(V1, Given(OCTOBER))
    assert str(refused.value).startswith("isl, osl: not in the record")
    with pytest.raises(InputError, match="osl: field required"):
        read(V1, Given(OCTOBER, {"isl": "1024"}))


def test_lengths_and_image_are_told_by_others_where_the_row_lacks_them() -> None:
    given = Given(OCTOBER, {"osl": "8192", "image": "vllm/vllm-openai:v0.11.0", "precision": "bf16"}, {"isl": "1024", "osl": "1"})
    reading = read(V1, given)
    assert (reading.identity["isl"], reading.identity["osl"], reading.identity["precision"]) == (1024, 8192, "fp4")
    assert reading.image == "vllm/vllm-openai:v0.11.0"
    assert reading.declared == ("image", "isl (file name)", "osl")
    assert (reading.identity["spec_decoding"], reading.identity["ep"]) == ("mtp", 1)


def test_what_a_row_says_counts_before_what_is_declared() -> None:
    declared = dict.fromkeys(("isl", "osl", "tp", "pp", "ep", "concurrency"), "7") | {"hardware": "h100", "image": "a/b:v1"}
    given = Given(START, {**declared, "framework": "vllm", "precision": "bf16", "spec_decoding": "eagle", "disagg": "true"})
    reading = read(SINGLE, given)
    assert {**reading.identity, "pp": 1} == of(SINGLE).identity
    assert (reading.identity["pp"], reading.image, reading.concurrency) == (7, SINGLE["image"], 16)
    assert reading.declared == ("pp",)


def test_sizes_of_the_whole_are_not_declared_for_workers_by_role() -> None:
    assert read(BY_ROLE, Given(START, {"tp": "8", "ep": "8", "dp_attention": "true"})).identity == of(BY_ROLE).identity


def test_a_build_and_a_workload_may_be_declared() -> None:
    given = Given(START, {"engine_version": "1.2.0", "engine_commit": "ab" * 20, "workload": "random", "recipe": "night"})
    reading = read(SINGLE, given)
    assert (reading.engine_version, reading.engine_commit, reading.identity["workload"]) == ("1.2.0", "ab" * 20, "random")
    assert reading.recipe_fingerprint == "night"
    assert reading.declared == ("engine_commit", "engine_version", "recipe", "workload")


def test_early_rows_under_dynamo_were_disaggregated() -> None:
    """`disagg` is written since 2025-11-17; launch_gb200-nv.sh started prefill and decode workers alone before."""
    lengths = {"isl": "1024", "osl": "1024"}
    reading = read(V1, Given(OCTOBER, {}, lengths))
    assert (reading.identity["disagg"], reading.num_gpus) == (True, 36)
    assert reading.metric_definition == "inferencex disaggregated, all GPUs"
    assert read(V1, Given(DISAGG_SINCE, {}, lengths)).identity["disagg"] is False
    assert read({**V1, "disagg": False}, Given(OCTOBER, {}, lengths)).identity["disagg"] is False
    assert read({**V1, "framework": "trt"}, Given(OCTOBER, {}, lengths)).identity["disagg"] is False


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("Full_Sweep_-_1k1k_12345/agg_bmk.json", (1024, 1024)),
        ("results_dsr1_1k8k_4305020262.zip/agg.json", (1024, 8192)),
        ("1k1k/agg_8k1k_tp8.json", (8192, 1024)),
        ("agg_isl1024_osl128_conc4.json", (1024, 128)),
        ("ISL=8192-OSL=1024/agg.json", (8192, 1024)),
        ("agg_dsr1_fp8_tp8.json", None),
        ("8k1k/agg_1k1k_or_1k8k.json", None),
        ("agg_b200_128k.json", None),
        ("0k1k.json", None),
    ],
)
def test_lengths_in_names(path: str, told: tuple[int, int] | None) -> None:
    assert hints(PurePosixPath(path)) == ({"isl": str(told[0]), "osl": str(told[1])} if told else {})


POWER = {
    "avg_power_w": 600.0,
    "avg_total_gpu_power_w": 4800.0,
    "total_gpu_energy_j": 48000.0,
    "joules_per_successful_query": 480.0,
    "joules_per_input_token": 1.0,
    "joules_per_output_token": 2.0,
    "joules_per_total_token": 0.75,
    "prefill_avg_power_w": 500.0,
}


def power_of(**fields: Any) -> dict[str, float]:
    plain = {key: value for key, value in SINGLE.items() if "power" not in key and "joules" not in key and key != "p75_ttft"}
    return of(plain, **fields).metrics_other


def test_power_without_a_flag_is_a_mean_of_samples() -> None:
    first = {"avg_power_w": 600.0, "joules_per_output_token": 2.0, "joules_per_total_token": 0.75}
    assert power_of(**first) == first


def test_power_with_a_flag_is_integrated() -> None:
    assert power_of(**POWER, power_valid=1) == {
        "gpu_power_w": 600.0,
        "deployment_power_w": 4800.0,
        "deployment_energy_j": 48000.0,
        "integrated_joules_per_query": 480.0,
        "integrated_joules_per_input_token": 1.0,
        "integrated_joules_per_output_token": 2.0,
        "integrated_joules_per_total_token": 0.75,
        "prefill_avg_power_w": 500.0,
    }


def test_power_of_schema_2_is_of_the_whole_deployment() -> None:
    found = power_of(**POWER, power_valid=1, power_metric_schema_version=2)
    assert (found["deployment_joules_per_output_token"], found["deployment_joules_per_query"]) == (2.0, 480.0)
    assert not [name for name in found if name.startswith(("integrated", "joules", "avg"))]


@pytest.mark.parametrize("valid", [0, False, "0", "no", [1], 2])
def test_power_that_is_not_valid_is_not_read(valid: Any) -> None:
    assert power_of(**POWER, power_valid=valid, power_metric_schema_version=2) == {}


def test_power_of_a_schema_that_nobody_knows_is_not_read() -> None:
    assert power_of(**POWER, power_valid=1, power_metric_schema_version=10**400) == {}


def test_every_power_metric_is_defined() -> None:
    defined = tomllib.loads(files("warehouse").joinpath("data/metrics.toml").read_text("utf-8"))
    for flags in ({}, {"power_valid": 1}, {"power_valid": 1, "power_metric_schema_version": 2}):
        written = {"avg_power_w": 1.0, "joules_per_output_token": 1.0, "joules_per_total_token": 1.0} if not flags else POWER
        assert set(power_of(**written, **flags)) <= set(defined)


def test_health_where_a_row_tells_it() -> None:
    counts = {"num_prompts": 160, "completed": 150, "duration": 75.5, "total_input_tokens": 153600, "total_output_tokens": 75000}
    reading = of(SINGLE, **counts)
    assert (reading.requests, reading.requests_failed, reading.duration_s) == (160, 10, 75.5)
    assert (reading.isl_mean, reading.osl_mean) == (1024.0, 500.0)
    assert reading.metrics_other == of(SINGLE).metrics_other
    assert of(SINGLE, completed=8, failed=2).requests == 10
    assert of(SINGLE, completed=8).requests is None
    assert of(SINGLE, completed=0, num_prompts=4, total_input_tokens=0).requests_failed == 4
    assert refusal(SINGLE, completed=11, num_prompts=10) == "completed: 11 of 10 requests"
    assert refusal(SINGLE, completed="many").startswith("completed: ")


@pytest.mark.parametrize(
    ("prefix", "family"),
    [
        ("dsr1-fp8", "dsr1"),
        ("gptoss-fp4", "gptoss120b"),
        ("DSV4Pro", "dsv4"),
        ("kimik2.7-fp4-x", "kimik2.7-code"),
        ("odd-fp8", "odd-fp8"),
    ],
)
def test_model_prefixes_as_they_were_written(prefix: str, family: str) -> None:
    assert of(SINGLE, infmax_model_prefix=prefix).identity["model"] == family


def test_agentic_rows_are_another_format() -> None:
    assert not FORMAT.recognises({**SINGLE, "scenario_type": "agentic-coding", "num_requests_total": 4})


def test_names_of_machines_are_not_kept() -> None:
    assert FORMAT.clean is not None
    worker = {"role": "prefill", "worker_idx": 0, "num_gpus": 4, "avg_power_w": 500.0, "hosts": ["node-7.lab"]}
    kept = FORMAT.clean({**SINGLE, "workers": [worker, "odd"]})
    assert kept["workers"] == [{key: value for key, value in worker.items() if key != "hosts"}]
    assert FORMAT.clean(SINGLE) is SINGLE


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "1e999", "", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = sorted({*SINGLE, *BY_ROLE, *POWER, "power_metric_schema_version", "num_prompts", "completed", "duration", "failed"})


@given(st.sampled_from([SINGLE, BY_ROLE, V1]), st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=4), st.booleans())
def test_any_row_is_read_or_refused(record: dict[str, Any], changes: dict[str, Any], told: bool) -> None:
    try:
        reading = read({**record, **changes}, Given(START, {}, {"isl": "1024", "osl": "8"} if told else {}))
    except InputError as refused:
        assert "\n" not in str(refused)
        return
    assert all(math.isfinite(value) for value in (*reading.metrics.values(), *reading.metrics_other.values()))
    assert reading.num_gpus is not None and 0 < reading.num_gpus <= MAX_GPUS


REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "runs"


def test_real_rows() -> None:
    """All rows of twenty real runs: 827 of one deployment, 292 with workers by role; nothing declared, no name unknown."""
    if not REAL.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    rows = [record for path in sorted(REAL.glob("*/agg_bmk.json")) for record in json.loads(path.read_text("utf-8"))]
    readings = [read(record, Given(START)) for record in rows]
    assert Counter(reading.metric_definition for reading in readings) == {
        "inferencex": 827,
        "inferencex disaggregated, per role": 292,
    }
    assert {reading.declared for reading in readings} == {reading.unknown_names for reading in readings} == {()}
    assert all(reading.metrics["ttft_median"] == record["median_ttft"] for reading, record in zip(readings, rows, strict=True))


def test_the_dictionaries_name_what_there_is() -> None:
    defined = set(tomllib.loads(files("warehouse").joinpath("data/metrics.toml").read_text("utf-8")))
    known = set(POINTS.schema.names()) | defined | {f"{name}_*" for name in defined}
    told = (dictionary.FIXED, dictionary.AGENTIC, dictionary.API)
    assert {field.becomes for entry in told for field in entry.fields} <= known
    deployment = {field.name for field in dictionary.FIXED.fields}
    assert set(Setup.model_fields) - deployment == {"kv_offloading", "kv_offload_backend"}
