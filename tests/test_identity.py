"""Identity: what makes two cells two, what does not, and that no fault of the closest peer's schema is ours.

First properties over generated rows of every generation of the producer (field history: InferenceX `utils/process_result.py` and
its git history), then one test a fault, from files through the log to `points`. Values by hand. Not here: single fields of a row
(`test_ingest_inferencex`), the fold (`test_points`).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import following
from pipelines.detect.observations import observe
from pipelines.ingest.intake import Declared, Intake, ingest
from pipelines.ingest.reading import Given
from pipelines.ingest.tools.inferencex import read
from tests.records import row, run_object, sweep, write_run
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.digest import content_hash
from warehouse.errors import InputError
from warehouse.events import DependencyPinned, ReleasePublished, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import IDENTITY, LATER_IDENTITY
from warehouse.sql import query
from warehouse.store import Store

START = datetime(2026, 9, 1, 6, tzinfo=UTC)
NOW = datetime(2026, 9, 20, 12, tzinfo=UTC)

ABSENT: Any = ...
FLAGS = [True, False]
COUNTS = [1, 2, 4, 8]
PARTS = [None, "alpha", {"name": "alpha", "version": "1.0"}, {"name": "alpha", "version": "1.1"}, {"name": "beta"}]
SHARED: list[tuple[str, str, list[Any]]] = [
    ("hardware", "hw", ["h100", "b200", "mi355x", "x900"]),
    ("framework", "framework", ["vllm", "sglang", "trt", "dynamo-vllm", "fresh"]),
    ("model", "infmax_model_prefix", ["dsr1", "gptoss120b", "kimik3", "fresh9"]),
    ("precision", "precision", ["fp4", "fp8", "bf16"]),
    ("spec_decoding", "spec_decoding", ["none", "mtp", "eagle3"]),
    ("disagg", "disagg", FLAGS),
    ("is_multinode", "is_multinode", FLAGS),
    ("router", "router", PARTS),
    ("kv_transfer", "kv_p2p_transfer", [None, "nixl", "mooncake"]),
    ("kv_offload", "kv_offloading", [None, "dram", "disk"]),
    ("kv_offload", "kv_offload_backend", PARTS),
    ("isl", "isl", [1024, 8192]),
    ("osl", "osl", [1024, 8192]),
]
"""Column of a curve, field of a row, values that are two things: what every generation of rows may have."""
SIZES = [
    ("tp", "tp", COUNTS),
    ("pp", "pp", COUNTS),
    ("ep", "ep", COUNTS),
    ("dcp", "dcp_size", COUNTS),
    ("pcp", "pcp_size", COUNTS),
]
SINGLE: list[tuple[str, str, list[Any]]] = [*SIZES, ("dp_attention", "dp_attention", FLAGS)]
ROLES: list[tuple[str, str, list[Any]]] = [
    *((f"{role}_{column}", f"{role}_{field}", values) for role in ("prefill", "decode") for column, field, values in SINGLE),
    *((f"{role}_hardware", f"{role}_hw", [None, "gb200", "gb300"]) for role in ("prefill", "decode")),
    *((f"{role}_num_workers", f"{role}_num_workers", COUNTS) for role in ("prefill", "decode")),
    *((f"num_{role}_gpus", f"num_{role}_gpu", [4, 8, 32]) for role in ("prefill", "decode")),
]
MEANT_WHEN_MISSING: dict[str, Any] = {
    "spec_decoding": "none",
    **dict.fromkeys(("disagg", "is_multinode", "dp_attention", "prefill_dp_attention", "decode_dp_attention"), False),
    **{f"{role}{size}": 1 for role in ("", "prefill_", "decode_") for size in ("pp", "ep", "dcp_size", "pcp_size")},
}
"""A field that no producer wrote before it had a second value; a field that is null is missing."""


def drawn(draw: st.DrawFn, fields: list[tuple[str, str, list[Any]]]) -> dict[str, Any]:
    return {field: draw(st.sampled_from(values)) for _column, field, values in fields}


def measured(draw: st.DrawFn) -> dict[str, Any]:
    return {"conc": draw(st.sampled_from([1, 4, 64])), "tput_per_gpu": 100.0, "image": draw(st.sampled_from([None, "vllm/x:v1"]))}


@st.composite
def first_rows(draw: st.DrawFn) -> dict[str, Any]:
    """Rows from 2025-11-21 on: lengths are there, the family is only in the model's path, `mtp` is on, off or missing."""
    fields = [entry for entry in SHARED if entry[1] in ("hw", "framework", "precision", "isl", "osl")]
    names = {"model": draw(st.sampled_from(["deepseek-ai/DeepSeek-R1", "/mnt/openai/gpt-oss-120b/", "/x/Fresh-9B"]))}
    mtp = draw(st.sampled_from([{}, {"mtp": "on"}, {"mtp": "off"}]))
    sizes = {"tp": draw(st.sampled_from(COUNTS)), "ep": draw(st.sampled_from(COUNTS)), "dp_attention": draw(st.booleans())}
    return {**drawn(draw, fields), **measured(draw), **names, **mtp, **sizes, "disagg": False}


@st.composite
def single_rows(draw: st.DrawFn) -> dict[str, Any]:
    """Rows of one node, from 2025-12-05 on; the fields that came until 2026-08 are there with any value."""
    return {**drawn(draw, SHARED), **drawn(draw, SINGLE), **measured(draw)}


@st.composite
def role_rows(draw: st.DrawFn) -> dict[str, Any]:
    """Rows by role: disaggregated, or since 2026-05-03 aggregated over nodes, where nothing decodes apart."""
    record = {**drawn(draw, SHARED), **drawn(draw, ROLES), **measured(draw), "is_multinode": True}
    together = dict.fromkeys(("num_decode_gpu", "decode_tp", "decode_ep", "decode_num_workers"), 0)
    return {**record, **draw(st.sampled_from([{"disagg": True}, {"disagg": False, **together}]))}


@st.composite
def respelled(draw: st.DrawFn, record: dict[str, Any]) -> dict[str, Any]:
    """Return what means the same: another order, numbers and flags as texts, null or absent for what missing means."""
    chosen = {key: draw(st.sampled_from(spellings(key, record[key]))) for key in draw(st.permutations(sorted(record)))}
    return {key: value for key, value in chosen.items() if value is not ABSENT}


def spellings(key: str, value: Any) -> list[Any]:
    missing = [None, ABSENT] if value == MEANT_WHEN_MISSING.get(key) else []
    if isinstance(value, bool):
        return [value, str(value), str(value).lower(), f" {str(value).upper()} ", *missing]
    if isinstance(value, int):
        return [value, str(value), float(value), *missing]
    return [value, *missing]


ROWS = st.one_of(first_rows(), single_rows(), role_rows())


def curve(record: dict[str, Any], **changes: Any) -> str:
    return curve_id(identity(record, **changes))


def identity(record: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return read({**record, **changes}, Given(START)).identity


def cell(record: dict[str, Any]) -> str:
    reading = read(record, Given(START))
    return cell_id(curve_id(reading.identity), reading.concurrency)


def test_every_identity_column_is_varied_below() -> None:
    """`engine` follows from the framework; rows of fixed lengths are of one scenario, and their load is a closed loop."""
    others = {"engine", "scenario", *LATER_IDENTITY}
    assert {column for column, _field, _values in SHARED + SINGLE + ROLES} == set(IDENTITY_FIELDS) - others


@given(ROWS, st.data())
def test_rows_that_differ_in_one_field_are_two_cells(record: dict[str, Any], data: st.DataObject) -> None:
    fields = SHARED + (ROLES if "prefill_tp" in record else SINGLE)
    column, field, values = data.draw(st.sampled_from(fields))
    one, other = data.draw(st.sampled_from(list(combinations(values, 2))))
    base = {**record, "kv_offloading": "dram"} if field == "kv_offload_backend" else record
    first, second = ({**base, field: value} for value in (one, other))
    identities = identity(first), identity(data.draw(respelled(second)))
    changed = {name for name in IDENTITY_FIELDS if identities[0][name] != identities[1][name]}
    assert changed - {"engine"} == {column}
    assert cell(first) != cell(second)


@given(ROWS, st.data())
def test_the_spelling_of_a_row_does_not_make_a_cell(record: dict[str, Any], data: st.DataObject) -> None:
    other = data.draw(respelled(record))
    assert identity(other) == identity(record)
    assert cell(other) == cell(record)


@given(ROWS, st.integers(1, 10**6), st.integers(1, 10**6))
def test_concurrency_makes_a_cell_and_never_a_curve(record: dict[str, Any], one: int, other: int) -> None:
    assert curve(record, conc=one) == curve(record, conc=other)
    assert (cell({**record, "conc": one}) == cell({**record, "conc": other})) is (one == other)


@given(ROWS, st.data())
def test_values_that_change_places_make_another_curve(record: dict[str, Any], data: st.DataObject) -> None:
    """tp 2 and pp 4 is not tp 4 and pp 2, and what prefill has is not what decode has."""
    sizes = [field for _column, field, values in SINGLE + ROLES if values is COUNTS and record.get(field)]
    one, other = data.draw(st.lists(st.sampled_from(sizes), min_size=2, max_size=2, unique=True))
    apart = record[one] != record[other]
    assert (curve(record) != curve({**record, one: record[other], other: record[one]})) is apart


@pytest.mark.parametrize("column", [column.name for column in IDENTITY])
def test_no_type_imitates_another(column: str) -> None:
    """In any order of asking, because a cache takes 1 and true for one key."""
    values = [1, True, "1", "true", "True", None, "null", "None", 0, False, "0", "false", "", " "]
    plain: dict[str, Any] = dict.fromkeys(IDENTITY_FIELDS)
    forwards = [curve_id({**plain, column: value}) for value in values]
    backwards = [curve_id({**plain, column: value}) for value in reversed(values)]
    assert len(set(forwards)) == len(values)
    assert forwards == backwards[::-1]


WORDS = st.lists(st.sampled_from(["a", "b", '"a', 'b"', "@", "/", "\\", ","]), min_size=2, max_size=4)


@given(WORDS, st.sampled_from([" ", "  ", "/", "@", '" "', "\t"]), st.data())
def test_name_and_version_of_a_part_cannot_imitate_another_part(words: list[str], joint: str, data: st.DataObject) -> None:
    """One text cut into name and version in two places is two parts."""
    whole = joint.join(words)
    cuts = st.integers(1, len(whole))
    one, other = (parted(whole, joint, data.draw(cuts)) for _ in range(2))
    for field in ("router", "kv_offload_backend"):
        curves = [curve(row(), kv_offloading="dram", **{field: part}) for part in (one, other)]
        assert (curves[0] == curves[1]) is (one == other)


def parted(whole: str, joint: str, at: int) -> dict[str, str]:
    name, version = whole[:at], whole[at:].removeprefix(joint)
    return {"name": name, "version": version} if version else {"name": name}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"router": {"name": "a b"}}, {"router": {"name": "a", "version": "b"}}),
        ({"router": {"name": "a b", "version": "c"}}, {"router": {"name": "a", "version": "b c"}}),
        ({"router": {"name": '"a b"'}}, {"router": {"name": "a b"}}),
        ({"router": {"name": "a", "version": '"b"'}}, {"router": {"name": "a", "version": "b"}}),
        ({"router": "nixl"}, {"kv_p2p_transfer": "nixl"}),
        ({"router": "dram"}, {"kv_offloading": "dram"}),
        ({"router": "null"}, {}),
        ({"kv_offloading": "dram lmcache"}, {"kv_offloading": "dram", "kv_offload_backend": "lmcache"}),
        (
            {"kv_offloading": "dram", "kv_offload_backend": {"name": "lmcache 0.3"}},
            {"kv_offloading": "dram", "kv_offload_backend": {"name": "lmcache", "version": "0.3"}},
        ),
        (
            {"kv_offloading": "dram lmcache", "kv_offload_backend": "0.3"},
            {"kv_offloading": "dram", "kv_offload_backend": {"name": "lmcache", "version": "0.3"}},
        ),
    ],
)
def test_no_text_of_one_part_imitates_two(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert curve(row(), **one) != curve(row(), **other)


def test_a_part_named_by_a_text_is_the_part_of_that_name() -> None:
    assert curve(row(), router="alpha") == curve(row(), router={"name": "alpha"})
    assert curve(row(), router={"name": "alpha", "version": None}) == curve(row(), router={"name": "alpha", "version": ""})


LONG = "n" * 100
NAMES_APART = [("x/9", "x@9"), ("加速器一", "加速器二"), ("加速器一", "unknown"), (f"{LONG}1", f"{LONG}2"), ("é9", "è9")]


@pytest.mark.parametrize("field", ["hw", "framework", "infmax_model_prefix", "precision"])
@pytest.mark.parametrize(("one", "other"), NAMES_APART)
def test_names_that_nobody_knows_are_never_taken_for_one(field: str, one: str, other: str) -> None:
    """A name is shortened and cleaned to be shown; that must not make two accelerators one."""
    assert curve(row(), **{field: one}) != curve(row(), **{field: other})


@pytest.mark.parametrize("known", ["dynamo-trt", "mori-sglang"])
def test_a_name_that_nobody_knows_is_never_taken_for_one_that_is_known(known: str) -> None:
    assert curve(row(), framework=known.replace("-", "/")) != curve(row(), framework=known)


@pytest.mark.parametrize("field", ["framework", "infmax_model_prefix", "precision"])
def test_case_and_spaces_are_spelling(field: str) -> None:
    curves = {curve(row(), **{field: spelled}) for spelled in ("fresh-9", "Fresh 9", " FRESH  9 ")}
    assert len(curves) == 1


BY_ROLE = {
    "disagg": True,
    "is_multinode": True,
    **{f"{role}_{field}": size for role in ("prefill", "decode") for field, size in (("tp", 8), ("ep", 2), ("num_workers", 1))},
    "num_prefill_gpu": 8,
    "num_decode_gpu": 8,
}


@pytest.mark.parametrize("overrides", [{"disagg": False}, {"num_prefill_gpu": None}, {"num_prefill_gpu": None, "disagg": False}])
@pytest.mark.parametrize("field", ["prefill_tp", "prefill_num_workers", "decode_pp", "num_decode_gpu"])
def test_sizes_by_role_count_beside_tp_as_well(field: str, overrides: dict[str, Any]) -> None:
    record = row(**{**BY_ROLE, **overrides, "tp": 16})
    assert curve(record, **{field: 4}) != curve(record, **{field: 16})


@pytest.mark.parametrize("field", ["tp", "pp", "ep", "dcp_size", "pcp_size"])
def test_sizes_of_the_whole_count_beside_roles_as_well(field: str) -> None:
    record = row(**BY_ROLE)
    assert curve(record, **{field: 4}) != curve(record, **{field: 16})


@pytest.mark.parametrize("field", ["prefill_hw", "decode_hw"])
def test_prefill_and_decode_on_other_accelerators_is_another_cell(field: str) -> None:
    """Rows name them since 2026-07-06 (InferenceX PR 2100), both or neither; `hw` stays the runner's label."""
    record = row(**BY_ROLE, prefill_hw="h200", decode_hw="h200")
    assert curve(record, **{field: "b200"}) != curve(record)
    assert curve(record) == curve(row(**BY_ROLE))  # what was not written was the same on both sides


SINCE_DECEMBER = {"infmax_model_prefix": "dsr1", "spec_decoding": "mtp", "image": "vllm/x:v1", "is_multinode": False}
SINCE_JULY = {"pp": 1, "dcp_size": 1, "pcp_size": 1}
SINCE_AUGUST = {"recipe_fingerprint": "ab" * 32, "power_valid": 1, "kv_offloading": "none"}


def test_one_deployment_is_one_cell_through_all_generations_of_rows() -> None:
    """What a later generation writes out is what the earlier one meant by leaving it out."""
    first: dict[str, Any] = {
        "hw": "h200-nb_1",
        "tp": 8,
        "ep": 1,
        "dp_attention": "false",
        "conc": 16,
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "framework": "trtllm",
        "precision": "fp8",
        "isl": 1024,
        "osl": 1024,
        "disagg": False,
        "mtp": "on",
        "tput_per_gpu": 900.0,
    }
    second = {**first, **SINCE_DECEMBER, "framework": "trt", "hw": "h200-dgxc"}
    del second["mtp"]
    rows = [first, second, {**second, **SINCE_JULY}, {**second, **SINCE_JULY, **SINCE_AUGUST}]
    assert len({cell(record) for record in rows}) == 1


def test_one_deployment_by_role_is_one_cell_through_all_generations_of_rows() -> None:
    before = row(**{**BY_ROLE, "tp": None, "pp": None, "ep": None, "dp_attention": None, "framework": "sglang-disagg"})
    sizes = {f"{role}_{size}": 1 for role in ("prefill", "decode") for size in SINCE_JULY}
    assert cell({**before, **sizes, "framework": "mori-sglang"}) == cell(before)


def test_disaggregated_rows_of_november_2025_are_read() -> None:
    """From 2025-11-17 (PR 237) to 2025-12-05 (PR 251) tp was all GPUs, ep 1, and only the GPUs were given by role."""
    old = row(disagg=True, tp=52, ep=1, num_prefill_gpu=20, num_decode_gpu=32, framework="dynamo-trtllm", mtp="on", image=None)
    reading = read(old, Given(datetime(2025, 11, 25, tzinfo=UTC)))
    assert (reading.num_gpus, reading.identity["num_prefill_gpus"], reading.identity["num_decode_gpus"]) == (52, 20, 32)
    assert curve(old) != curve(old, num_prefill_gpu=32, num_decode_gpu=20)


def test_an_empty_recipe_fingerprint_is_none() -> None:
    """The producer writes "" where it was given none (since 2026-08-14, PR 2613)."""
    assert read(row(recipe_fingerprint=""), Given(START)).recipe_fingerprint is None


def test_a_missing_precision_is_fp8_only_where_fp8_was_meant() -> None:
    """Until 2025-09-15 there was no other; a row of 2026 without it does not say what ran."""
    record = row(precision=None)
    assert read(record, Given(datetime(2025, 9, 14, tzinfo=UTC))).identity["precision"] == "fp8"
    try:
        later = read(record, Given(START)).identity["precision"]
    except InputError as refused:
        assert str(refused).startswith("precision")
    else:
        assert later not in ("fp8", "fp4", "bf16", "int4")


# The faults of the peer's schema, one test each, from files to `points`.


def take(log: EventLog, *paths: Path) -> Intake:
    return ingest(
        log,
        tuple(str(path) for path in paths),
        Declared(None, {}),
        recorded_at=NOW,
        mirrors=Path(log.store.uri) / "mirrors",
        announce=lambda _name: None,
    )


def points(log: EventLog) -> pl.DataFrame:
    following.refresh(log)
    return log.store.read("points")


def started(day: int, hour: int = 6) -> str:
    return f"2026-09-{day:02}T{hour:02}:00:00Z"


TWO_CELLS = [
    ("pp", 1, 2),
    ("pcp_size", 1, 2),
    ("dcp_size", 1, 2),
    ("kv_offloading", "none", "dram"),
    ("router", None, {"name": "alpha", "version": "1"}),
    ("kv_p2p_transfer", "nixl", "mooncake"),
]


@pytest.mark.parametrize(("field", "one", "other"), TWO_CELLS)
def test_fault_key_lacks_sizes_router_and_offload(log: EventLog, tmp_path: Path, field: str, one: Any, other: Any) -> None:
    """Peer: pp, dcp, pcp, router and KV transfer are in no key, so the later row replaces the earlier. Ours: two cells."""
    rows = [row(4, **{field: value}, speed=speed) for value, speed in ((one, 1.0), (other, 2.0))]
    take(log, write_run(tmp_path / "in", 1, started(1), rows))
    frame = points(log)
    assert frame["cell_id"].n_unique() == frame["curve_id"].n_unique() == 2
    assert sorted(frame["tput_per_gpu"]) == sorted(record["tput_per_gpu"] for record in rows)


def test_fault_key_lacks_the_offload_backend(log: EventLog, tmp_path: Path) -> None:
    """Peer: offload on or off is in the key, with which backend is not. Ours: a backend and a version of it are cells."""
    backends = [
        None,
        "lmcache",
        {"name": "lmcache", "version": "0.3"},
        {"name": "lmcache", "version": "0.4"},
        {"name": "hicache"},
    ]
    rows = [row(4, kv_offloading="dram", kv_offload_backend=backend) for backend in backends]
    take(log, write_run(tmp_path / "in", 1, started(1), rows))
    assert points(log)["cell_id"].n_unique() == 5


@pytest.mark.parametrize(
    ("field", "values", "column"),
    [
        ("image", ["vllm/vllm-openai:v0.90.0", "vllm/vllm-openai:v0.91.0"], "build_id"),
        ("recipe_fingerprint", ["ab" * 8, "cd" * 8], "recipe_fingerprint"),
        ("model", ["nvidia/DeepSeek-R1-0528-FP4", "nvidia/DeepSeek-R1-0528-FP4-V2"], "checkpoint"),
        ("hw", ["h200-nb_0", "h200-dgxc_0"], "hardware_label"),
    ],
)
def test_fault_key_lacks_image_and_recipe(log: EventLog, tmp_path: Path, field: str, values: list[str], column: str) -> None:
    """Peer: two rows of a run that differ in image or recipe collide. Ours: one cell, two setups, both kept."""
    take(
        log,
        write_run(
            tmp_path / "in",
            1,
            started(1),
            [row(4, speed=1 + place / 100, **{field: value}) for place, value in enumerate(values)],
        ),
    )
    frame = points(log)
    assert (frame.height, frame["cell_id"].n_unique(), frame[column].n_unique()) == (2, 1, 2)
    assert not frame["reused"].any()
    assert [len(observations) for observations in observe(frame, ()).values()] == [2]


@pytest.mark.parametrize("speeds", [(1.0, 0.5), (0.5, 1.0)])
def test_fault_the_last_writer_wins(log: EventLog, tmp_path: Path, speeds: tuple[float, float]) -> None:
    """Peer: a second upload of a run's cell overwrites the first. Ours: both stand, whichever came first."""
    rows = [row(4, speed=speed) for speed in speeds]
    for number, record in enumerate(rows):
        place = write_run(tmp_path / f"in{number}", 1, started(1), [record])
        assert take(log, place).new["ResultRecorded"] == 1
    frame = points(log)
    assert sorted(frame["tput_per_gpu"]) == sorted(record["tput_per_gpu"] for record in rows)
    assert frame["cell_id"].n_unique() == 1


def test_fault_nulls_make_duplicates(log: EventLog, tmp_path: Path) -> None:
    """Peer: a unique key with nulls (evaluations) admits the same row again and again. Ours: an event once, null a value."""
    record = row(4, image=None, router=None, kv_p2p_transfer=None, recipe_fingerprint=None)
    for number in range(3):
        take(log, write_run(tmp_path / f"in{number}", 1, started(1), [record, record]))
    frame = points(log)
    assert frame.height == 1
    assert frame.select("router", "kv_transfer", "prefill_tp", "num_decode_gpus").row(0) == (None, None, None, None)
    take(log, write_run(tmp_path / "later", 2, started(2), [row(4, image=None, speed=1.1)]))
    assert points(log)["cell_id"].n_unique() == 1


def test_fault_old_rows_count_gpus_as_tp_times_ep(log: EventLog, tmp_path: Path) -> None:
    """Peer: tp 8 with ep 8 is 64 GPUs. Ours: 8, as expert ranks are the same GPUs; and the steady rate is over 8."""
    take(log, write_run(tmp_path / "in", 1, "2025-11-25T06:00:00Z", [row(16, tp=8, ep=8, median_e2el=8.0)]))
    assert points(log).select("num_gpus", "steady_output_tput_per_gpu").row(0) == (8, 16 * 1024 / 8.0 / 8)


LATEST = """SELECT concurrency, run_id FROM points
QUALIFY row_number() OVER (PARTITION BY cell_id ORDER BY measured_at DESC) = 1 ORDER BY concurrency"""


def test_fault_a_partial_sweep_hides_points(log: EventLog, tmp_path: Path) -> None:
    """Peer: its view of the latest takes one run a curve, so a sweep of two cells hides the other three. Ours: per cell."""
    take(log, write_run(tmp_path / "in", 1, started(1), sweep()))
    take(log, write_run(tmp_path / "in", 2, started(2), [row(4, speed=1.1), row(8, speed=1.1)]))
    frame = points(log)
    assert (frame.height, frame["curve_id"].n_unique(), frame["cell_id"].n_unique()) == (7, 1, 5)
    assert query(log.store, LATEST).rows() == [(4, "2"), (8, "2"), (16, "1"), (32, "1"), (64, "1")]


def test_fault_a_curve_measured_by_two_runs_of_a_day_loses_cells(log: EventLog, tmp_path: Path) -> None:
    """Peer: 205 of 2,860 current cells were missing where two runs of one day shared a curve. Ours: none."""
    rows = sweep()
    write_run(tmp_path / "in", 1, started(1, 6), rows[::2])
    write_run(tmp_path / "in", 2, started(1, 9), rows[1::2])
    take(log, tmp_path / "in")
    assert points(log)["curve_id"].n_unique() == 1
    assert query(log.store, LATEST).rows() == [(4, "1"), (8, "2"), (16, "1"), (32, "2"), (64, "1")]


def test_fault_of_two_changelog_entries_of_a_push_one_is_lost(log: EventLog) -> None:
    """Peer: one entry a run and pair of commits, so 13 pushes of two entries keep the last. Ours: content decides."""
    told = [
        DependencyPinned(project="dynamo", version="1.0", dependency="vllm", dependency_version="0.9", evidence="pyproject"),
        DependencyPinned(project="dynamo", version="1.0", dependency="sglang", dependency_version="0.5", evidence="pyproject"),
        ReleasePublished(project="dynamo", version="1.0", evidence="tag", tag="v1.0"),
        ReleasePublished(project="dynamo", version="1.0", evidence="release-note", title="One"),
    ]
    source = Source(name="push.json", sha256="0" * 64, position="/0")
    log.append(event_of(payload, occurred_at=START, recorded_at=NOW, source=source) for payload in told)
    following.refresh(log)
    assert sorted(log.store.read("dependencies")["dependency"]) == ["sglang", "vllm"]
    assert sorted(log.store.read("releases")["evidence"]) == ["release-note", "tag"]


def test_fault_the_day_is_that_of_the_queue(log: EventLog, tmp_path: Path) -> None:
    """Peer: the day of a point is that on which its run was created. Ours: its own start, else the start of its run."""
    place = write_run(tmp_path / "in", 1, started(3), [row(4), row(8, benchmark_start_time_unix=1788480000.0)])
    (place / "run.json").write_text(json.dumps(run_object(1, started(3), created_at=started(1))), "utf-8")
    take(log, place)
    assert dict(points(log).select("concurrency", "measured_at").iter_rows()) == {
        4: datetime(2026, 9, 3, 6, tzinfo=UTC),
        8: datetime(2026, 9, 4, tzinfo=UTC),
    }


@pytest.mark.parametrize("first", [1, 2])
def test_fault_a_reused_sweep_gets_the_day_of_its_merge(log: EventLog, tmp_path: Path, first: int) -> None:
    """Peer: rows that a later run re-uses carry that run's day. Ours: measured once, when it was; the copy is marked."""
    for number in (first, 3 - first):
        take(log, write_run(tmp_path / "in", number, started(number), sweep()))
    frame = points(log)
    assert frame.filter(~pl.col("reused")).select("run_id", "measured_at").unique().rows() == [
        ("1", datetime(2026, 9, 1, 6, tzinfo=UTC))
    ]
    assert frame.filter("reused")["run_id"].to_list() == ["2"] * 5


def test_fault_ci_writes_each_row_twice(log: EventLog, tmp_path: Path) -> None:
    """Peer: a row is in `results_bmk` and in `bmk_*`, and is written twice. Ours: the record's own content decides."""
    rows = sweep()
    place = write_run(tmp_path / "in", 1, started(1), [])
    (place / "agg_bmk.json").unlink()
    artifacts = {
        "results_bmk/agg_bmk.json": json.dumps(rows, indent=2),
        "again/agg_bmk.json": json.dumps([*reversed(rows), *rows], separators=(",", ":")),
        "lines/agg_bmk.jsonl": "\n".join(json.dumps(record) for record in rows) + "\n",
        **{f"bmk_{at}/agg_{at}.json": json.dumps(dict(sorted(record.items())), indent=4) for at, record in enumerate(rows)},
        "other_tool/agg.json": json.dumps([{**record, "conc": float(record["conc"]), "tp": 8.0} for record in rows]),
    }
    for name, text in artifacts.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, "utf-8")
    assert take(log, place).new["ResultRecorded"] == 5
    assert sorted(points(log)["concurrency"]) == [4, 8, 16, 32, 64]


def test_fault_writers_that_meet_lose_rows(store: Store, tmp_path: Path) -> None:
    """Peer: runs of a day in flight write the same keys in other orders, deadlock, and lose rows. Ours: every row once."""
    places = [write_run(tmp_path / "in", number, started(number), sweep(speed=1 + number / 100)) for number in range(1, 5)]
    orders = [places, places[::-1], places[2:] + places[:2]]
    with ThreadPoolExecutor(len(orders)) as writers:
        written = list(writers.map(lambda order: take(EventLog(Store(store.uri)), *order).new["ResultRecorded"], orders))
    log = EventLog(store)
    assert sum(written) == 20
    assert points(log).height == points(log)["point_id"].n_unique() == 20
    assert dict(log.read()["event_type"].value_counts().iter_rows()) == {"ResultRecorded": 20, "RunReported": 4, "FileRead": 4}
    assert log.read()["sequence"].to_list() == list(range(1, 29))


def test_fault_missing_is_nought(log: EventLog, tmp_path: Path) -> None:
    """Peer: a metric that is missing is 0. Ours: null is null, 0 is 0, and a part that does not decode is not one unknown."""
    together = {**BY_ROLE, "tp": None, "disagg": False, "num_decode_gpu": 0, "decode_tp": 0, "decode_num_workers": 0}
    rows = [row(4, p99_ttft=None, std_ttft=0), row(8, std_ttft=...), row(16, **together)]
    rows = [{key: value for key, value in record.items() if value is not ...} for record in rows]
    take(log, write_run(tmp_path / "in", 1, started(1), rows))
    shown = points(log).sort("concurrency").select("ttft_p99", "ttft_std", "num_decode_gpus", "decode_tp", "num_gpus")
    assert shown.rows()[0] == (None, 0.0, None, None, 8)
    assert shown.rows()[1] == (0.1, None, None, None, 8)
    assert shown.rows()[2][2:] == (0, 0, 8)


def test_fault_run_numbers_of_two_repositories_are_one(log: EventLog, tmp_path: Path) -> None:
    """Peer: a run is its number and attempt, wherever it ran. Ours: a number is unique where it was given only."""
    for name in ("example/fleet", "example/fork"):
        place = write_run(
            tmp_path / name.replace("/", "-"), 1, started(1), [row(4, speed=1.0 if name == "example/fleet" else 2.0)]
        )
        (place / "run.json").write_text(json.dumps(run_object(1, started(1), repository={"full_name": name})), "utf-8")
        take(log, place)
    assert sorted(points(log)["run_source"]) == ["example/fleet", "example/fork"]
    assert log.store.read("runs")["points"].to_list() == [1, 1]


def test_fault_rows_of_unknown_names_are_skipped(log: EventLog, tmp_path: Path) -> None:
    """Peer: a row of an accelerator or model that it does not know is dropped. Ours: kept under its own name, and told."""
    intake = take(log, write_run(tmp_path / "in", 1, started(1), [row(4, hw="x900-lab_0", infmax_model_prefix="fresh9")]))
    assert points(log).select("hardware", "model").row(0) == ("x900", "fresh9")
    assert dict(intake.unknown_names) == {("hardware", "x900"): 1, ("model", "fresh9"): 1}


def test_fault_rows_that_cannot_be_read_are_only_counted(log: EventLog, tmp_path: Path) -> None:
    """Peer: rows without lengths add one to a counter. Ours: file, place and field are a row of `quarantine`."""
    take(log, write_run(tmp_path / "in", 1, started(1), [row(4), row(8, isl=None), row(16)]))
    assert sorted(points(log)["concurrency"]) == [4, 16]
    quarantined = log.store.read("quarantine").select("name", "position", "reason").rows()
    assert quarantined == [("run_1/agg_bmk.json", "/1", "isl: field required")]


def test_fault_rows_of_failed_runs_are_skipped(log: EventLog, tmp_path: Path) -> None:
    """Peer: a failed run's rows are skipped, though they were measured. Ours: kept, and the run says that it failed."""
    place = write_run(tmp_path / "in", 1, started(1), sweep())
    (place / "run.json").write_text(json.dumps(run_object(1, started(1), conclusion="failure")), "utf-8")
    take(log, place)
    assert points(log).height == 5
    assert log.store.read("runs").select("conclusion", "points").row(0) == ("failure", 5)


def test_fault_the_same_files_again_grow_the_database(log: EventLog, tmp_path: Path) -> None:
    """Peer: the same files again cost as much and leave dead rows. Ours: no commit, no byte."""
    place = write_run(tmp_path / "in", 1, started(1), sweep())
    take(log, place)
    points(log)
    before = sorted((path, path.stat().st_size) for path in Path(log.store.uri).rglob("*"))
    assert not take(log, place).new
    points(log)
    assert sorted((path, path.stat().st_size) for path in Path(log.store.uri).rglob("*")) == before


def test_fault_what_is_latest_depends_on_the_order_of_ingest(tmp_path: Path) -> None:
    """Peer: of two runs of a day the one inserted last stands. Ours: all but the order of arrival is the same."""
    runs = [(1, 6, sweep()), (2, 6, sweep(speed=1.1)), (3, 9, sweep())]
    places = [write_run(tmp_path / "in", number, started(1, hour), rows) for number, hour, rows in runs]
    hashes = set()
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        log = EventLog(Store(str(tmp_path / "-".join(map(str, order)))))
        for index in order:
            take(log, places[index])
        hashes.add(content_hash(points(log).drop("sequence")))
    assert len(hashes) == 1


def test_fault_one_name_for_two_definitions(log: EventLog, tmp_path: Path) -> None:
    """Peer: per-GPU rates of disaggregated rows changed on 2025-11-05 under one name. Ours: the point says which it is."""
    for number, day in enumerate(("2025-11-04", "2025-11-06"), start=1):
        record = row(4, **{**BY_ROLE, "tp": None}, speed=number)
        take(log, write_run(tmp_path / "in", number, f"{day}T06:00:00Z", [record]))
    frame = points(log).sort("measured_at")
    assert frame["cell_id"].n_unique() == 1
    assert frame["metric_definition"].to_list() == ["inferencex disaggregated, all GPUs", "inferencex disaggregated, per role"]


@pytest.mark.parametrize("fingerprint", ["7e99912345678901", "1234567890123456", "00000000deadbeef"])
def test_fault_a_fingerprint_is_read_as_a_number(log: EventLog, tmp_path: Path, fingerprint: str) -> None:
    """Peer (a fork): hex such as 7e999 becomes Infinity among the metrics. Ours: a text, and no metric."""
    take(log, write_run(tmp_path / "in", 1, started(1), [row(4, recipe_fingerprint=fingerprint)]))
    (point,) = points(log).iter_rows(named=True)
    assert (point["recipe_fingerprint"], point["metrics_other"]) == (fingerprint, [])


def test_fault_history_drops_means_and_spreads(log: EventLog, tmp_path: Path) -> None:
    """Peer: its history leaves out means and deviations. Ours: each has its column, in the unit of the record."""
    take(log, write_run(tmp_path / "in", 1, started(1), [row(4, mean_tpot=0.5, std_tpot=0.25, std_e2el=2.0, mean_e2el=3.0)]))
    assert points(log).select("tpot_mean", "tpot_std", "e2el_std", "e2el_mean").row(0) == (0.5, 0.25, 2.0, 3.0)
