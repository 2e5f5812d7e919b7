"""Records mapped many at once are what the format's own `read` makes of each alone, whatever they are mixed with.

`told` says by `read` and plain arithmetic what must come out. Not here: what a field means (`test_ingest_inferencex`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest import formats
from pipelines.ingest.columns import COUNTS as HOW_MUCH
from pipelines.ingest.columns import SCHEMA, SETUP, reference, setup_columns
from pipelines.ingest.mapping import Mapped, Mapper
from pipelines.ingest.reading import Given, Reading, RecordFormat
from pipelines.ingest.tools import sglang_serving, vllm_serve
from pipelines.ingest.tools.inferencex import FORMAT
from tests.records import row
from tests.test_identity import ROWS
from tests.test_ingest_sglang_serving import RECORD as LINE_RECORD
from tests.test_ingest_vllm_serve import BEST, NEW, OLD
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

EARLY = Given(datetime(2025, 9, 14, 23, 59, tzinfo=UTC))
MIDDLE = Given(datetime(2025, 10, 1, tzinfo=UTC))
LATE = Given(datetime(2025, 11, 5, tzinfo=UTC))
SAID = Given(LATE.started_at, {"isl": "8192", "precision": "fp4", "hardware": "b200"}, {"osl": "128", "isl": "77"})
"""A later run for which the user declared some fields, and names of files tell others."""
IMAGED = Given(LATE.started_at, {"image": "vllm/x:v7", "engine_version": "0.7"})
COMMITTED = Given(LATE.started_at, {"engine_commit": "ab" * 20, "workload": "sonnet"})
FULL = Given(LATE.started_at, {"hardware": "h100", "num_gpus": "3", "precision": "fp8", "model": "org/M", "engine": "vllm"})
"""All that records of other tools lack."""
ZONED = Given(LATE.started_at, {**FULL.declared, "timezone": "+05:30", "engine_version": "0.9", "osl": "128"}, {"tp": "4"})
BUILT = Given(LATE.started_at, {**FULL.declared, "image": "lmsysorg/sglang:v0.5.6", "spec_decoding": "eagle3"}, {"isl": "64"})
DIGEST = f"vllm/vllm-openai:v0.9.1@sha256:{'ab' * 32}"

NUMBERS = [0, 0.0, 1, 0.25, 17, 1e-13, 1e13, 1e308, -1, -0.5, 10**30, 10**400, None]
ODD = [*NUMBERS, True, False, "0.5", "1e3", "-1", "1e999", "NaN", "fast", "", [1.0], {"mean": 1.0}]
COUNTS = [None, 1, 8, 8.0, "8", 8.5, 0, -1, True, 10**30, 10**400, "many", [8]]
FLAGS = [None, True, False, "true", " FALSE ", 0, 1, 2, "maybe"]
NAMES = [None, "", "x900", "b200-nv_3", "x" * 600, 5, "sglang"]
TOKENS = [*COUNTS, 200, 4096, 10**9]
Changes = dict[str, list[Any]]
ROW: Changes = {
    **dict.fromkeys(("tput_per_gpu", "output_tput_per_gpu", "median_ttft", "p99.9_tpot", "median_e2el", "std_intvty"), ODD),
    **dict.fromkeys(("p75_ttft", "watts", "Watts", "a number of ours", "", "k" * 130, "k" * 120 + "x", "k" * 120 + "y"), ODD),
    **dict.fromkeys(
        ("avg_power_w", "joules_per_output_token", "prefill_avg_power_w", "gpu_power_w", "ttft_mean", "requests"), ODD
    ),
    **dict.fromkeys(("conc", "tp", "ep", "isl", "osl"), COUNTS),
    **dict.fromkeys(("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens"), TOKENS),
    **dict.fromkeys(("disagg", "dp_attention"), FLAGS),
    **dict.fromkeys(("hw", "framework", "infmax_model_prefix"), NAMES),
    "duration": ODD,
    "power_valid": [*FLAGS, "1", 1.0, [1]],
    "power_metric_schema_version": [None, 2, "2", 2.0, 3, True, {}],
    "precision": [None, "fp4", "odd4", ""],
    "image": [None, "", "vllm/x:v1", DIGEST, "no image", "x" * 513, 5, ["vllm/x:v1"], {}],
    "benchmark_start_time_unix": [None, 1767225600, 1767225600.25, "1767225600", 0, -1, 4e9, 10**400, True, "soon", []],
    "recipe_fingerprint": [None, "", "AB" * 8, "xyz", 12345678],
    "router": [None, "alpha", {"name": "alpha", "version": "1"}, {"version": "1"}, {"name": "a", "x": 10**400}, 7],
    "num_prefill_gpu": [None, 0, 8, 10**7],
}
SERVE: Changes = {
    **dict.fromkeys(("mean_ttft_ms", "median_ttft_ms", "p50_ttft_ms", "std_ttft_ms", "p99.9_ttft_ms", "p75_ttft_ms"), ODD),
    **dict.fromkeys(("mean_tpot_ms", "median_tpot_ms", "p90_tpot_ms", "std_tpot_ms", "p99_tpot_ms", "p5_e2el_ms"), ODD),
    **dict.fromkeys(("output_throughput", "input_throughput", "total_token_throughput", "request_throughput"), ODD),
    **dict.fromkeys(("request_goodput", "request_goodput:", "duration", "rtfx", "max_output_tokens_per_s"), ODD),
    **dict.fromkeys(("spec_decode_num_drafts", "spec_decode_acceptance_length", "spec_decode_acceptance_rate"), ODD),
    **dict.fromkeys(("mean_e2el_including_client_queue_ms", "ttft_p75", "best_of"), ODD),
    **dict.fromkeys(("completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens"), TOKENS),
    **dict.fromkeys(("max_concurrency", "tensor_parallel_size", "num_gpus", "input_len", "decode_replicas"), COUNTS),
    **dict.fromkeys(("engine", "gpu", "quantization", "backend", "model_id", "gateway", "spec_decoding"), NAMES),
    "request_rate": [None, "inf", "Infinity", 4, 4.0, "4", 0, -1, "trace", [4]],
    "burstiness": [None, 1, 1.0, 0.5, "inf", "x"],
    "ramp_up_strategy": [None, "linear", 5],
    "ramp_up_end_rps": [None, 5, "x"],
    "mode": [None, "multi_turn", 5],
    "image": [None, "vllm/vllm-openai:v0.13.0", "no image", 5],
    "date": [None, "20260801-101500", "20260801-101501", "2026-08-01T10:15:00Z", "20269999-101500", "soon", 5, "20260329-013000"],
    "benchmark_start_time_unix": [None, 1767225600, 1767225600.25, "1767225600", True],
}
LINE: Changes = {
    **dict.fromkeys(("mean_e2e_latency_ms", "median_e2e_latency_ms", "p99_e2e_latency_ms", "std_ttft_ms", "p95_itl_ms"), ODD),
    **dict.fromkeys(("mean_itl_ms", "median_itl_ms", "mean_tpot_ms", "median_tpot_ms", "p90_tpot_ms", "p999_ttft_ms"), ODD),
    **dict.fromkeys(("input_throughput", "output_throughput", "total_throughput", "duration", "concurrency"), ODD),
    **dict.fromkeys(
        ("accept_length", "a number", "itl_p95", "duration_s", "concurrency_realised", "k" * 120 + "x", "k" * 120 + "y"), ODD
    ),
    **dict.fromkeys(("completed", "total_input_tokens", "total_output_tokens", "max_concurrency", "random_input_len"), TOKENS),
    "request_rate": [None, "inf", "trace", 4, 4.0, "4", 0, -1, [4]],
    "backend": [None, "sglang", "sglang-native", " sglang-oai-chat ", "vllm", "x900", 5, ["sglang"], {}],
    "dataset_name": [None, "random", "random-ids", "sharegpt", 5],
    "random_range_ratio": [None, 0.0, 1, "x"],
    "server_info": [None, {}, {"version": "0.5.6", "tp_size": 2, "quantization": "fp8"}, {"tp_size": "x"}, 5, []],
    "errors": [None, {"requests": 24, "failed": 4}, {"requests": 10**400}, 5, ["", "broken"]],
    "cache_report": [None, {}, {"hit_rate": 0.5}, 5],
}
ABSENT: Any = ...
CHATS = {**{key: value for key, value in NEW.items() if key != "num_prompts"}, "mode": "multi_turn", "num_conversations": 20}
CHATS |= {"multi_turn_concurrency": 8, "turns_per_conversation": 4}
DRAFTED = {**NEW, "spec_decode_num_drafts": 9, "spec_decode_acceptance_length": 2.5, "spec_decode_acceptance_rate": 61.5}
POOLED = {key: value for key, value in NEW.items() if key not in ("output_throughput", "input_lens", "total_output_tokens")}
SHARED_LINE = {key: value for key, value in LINE_RECORD.items() if key not in ("total_throughput", "server_info")}
SHARED_LINE |= {"backend": "sglang", "request_rate": 5.0, "dataset_name": "sharegpt", "errors": {"requests": 24, "failed": 4}}
COUNTED = {"completed": 190, "num_prompts": 200, "duration": 30.5, "total_input_tokens": 190001, "total_output_tokens": 777}
POWER = {"power_valid": 1, "power_metric_schema_version": 2, "avg_power_w": 500.5, "joules_per_output_token": 0.75}


@dataclass(frozen=True)
class Case:
    """A format, records of it, what may stand in their fields instead, what else may be known of them."""

    record_format: RecordFormat
    bases: Sequence[dict[str, Any] | st.SearchStrategy[dict[str, Any]]]
    changes: Changes
    givens: Sequence[Given]


ROWS_CASE = Case(
    FORMAT,
    [row(4), row(4, watts=5), row(4, **COUNTED), row(4, **POWER), ROWS],
    ROW,
    [EARLY, MIDDLE, LATE, SAID, IMAGED, COMMITTED],
)
CASES = [
    ROWS_CASE,
    Case(vllm_serve.FORMAT, [NEW, OLD, BEST, DRAFTED, POOLED], SERVE, [LATE, FULL, ZONED, BUILT]),
    Case(vllm_serve.MULTI_TURN, [CHATS], SERVE, [FULL, ZONED]),
    Case(
        sglang_serving.FORMAT, [LINE_RECORD, {**LINE_RECORD, "accept_length": 2.5}, SHARED_LINE], LINE, [LATE, FULL, ZONED, BUILT]
    ),
]
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.record_format.name)


@pytest.fixture(autouse=True, scope="module")
def _few_are_many() -> Iterator[None]:
    """Let one record be a matrix, for the batches here are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.ingest.mapping.MANY", 1)
        yield


@st.composite
def records(draw: st.DrawFn, base: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """Return *base* with some fields changed or left out, in its own order of keys or another."""
    record = dict(base)
    for key in draw(st.lists(st.sampled_from(sorted(changes)), max_size=3)):
        record[key] = draw(st.sampled_from([*changes[key], ABSENT]))
    keys = draw(st.one_of(st.just(list(record)), st.permutations(sorted(record))))
    return {key: record[key] for key in keys if record[key] is not ABSENT}


Batch = tuple[list[dict[str, Any]], list[Given]]


@st.composite
def batches(draw: st.DrawFn, case: Case) -> Batch:
    """Return records of a few bases, so that some share their keys and setup and others do not, and what is known of each."""
    bases = [draw(base) if isinstance(base, st.SearchStrategy) else base for base in case.bases]
    chosen = draw(
        st.lists(st.sampled_from(bases).flatmap(lambda base: records(base, case.changes)), min_size=1, max_size=8),
    )
    return chosen, draw(st.lists(st.sampled_from(case.givens), min_size=len(chosen), max_size=len(chosen)))


Told = tuple[dict[int, str], dict[int, dict[str, Any]], Counter[tuple[str, str]]]


def told(batch: Sequence[dict[str, Any]], started: Sequence[Given], record_format: RecordFormat = FORMAT) -> Told:
    """Return refusals and rows by place, and unknown names, as `read` gives them one by one."""
    faults: dict[int, str] = {}
    rows: dict[int, dict[str, Any]] = {}
    unknown: Counter[tuple[str, str]] = Counter()
    for place, (record, start) in enumerate(zip(batch, started, strict=True)):
        try:
            reading = formats.read(record_format, record, start)
        except InputError as error:
            faults[place] = str(error)
        else:
            rows[place] = one(reading)
            unknown.update(reading.unknown_names)
    return faults, rows, unknown


def one(reading: Reading) -> dict[str, Any]:
    build = reference(reading.image)
    engine = reading.identity["engine"] or "unknown"
    nameless = f"version:{engine}/{reading.engine_version}" if reading.engine_version else f"unknown:{engine}"
    nameless = f"commit:{engine}/{reading.engine_commit}" if reading.engine_commit else nameless
    return {
        "clock": reading.measured_at,
        **dict(zip(SETUP, setup_columns(reading), strict=True)),
        "declared_fields": list(reading.declared),
        "build_id": build.build_id if build else nameless,
        "image_ref": build.ref if build else reading.image,
        "image_digest": build.digest if build else None,
        "engine_version": reading.engine_version or (build.version if build else None),
        **{column.name: reading.metrics.get(column.name) for column in METRIC_COLUMNS},
        "steady_output_tput_per_gpu": steady(reading),
        "metrics_other": [{"name": name, "value": value} for name, value in sorted(reading.metrics_other.items())],
        **{name: getattr(reading, name) for name in HOW_MUCH},
    }


def steady(reading: Reading) -> float | None:
    latency, osl = reading.metrics.get("e2el_median"), reading.identity["osl"]
    known = latency and osl and reading.concurrency and reading.num_gpus
    if not known or reading.identity["arrival"] is not None or ".." in (reading.identity["workload"] or ""):
        return None
    return reading.concurrency * osl / latency / reading.num_gpus  # type: ignore[operator]


def shown(mapped: Mapped, first: int = 0) -> Told:
    """Return the same of records that were mapped together, the first of which has the place *first*."""
    frame = mapped.frame()
    assert frame.schema == SCHEMA
    assert frame["row"].is_sorted()
    rows = {line.pop("row") + first: line for line in frame.to_dicts()}
    assert {place + first: clock for place, clock in mapped.clocks.items() if place not in mapped.faults} == {
        place: line["clock"] for place, line in rows.items() if line["clock"] is not None
    }
    return {place + first: reason for place, reason in mapped.faults.items()}, rows, mapped.unknown_names


UNKNOWN_AND_TEXT = [row(4, hw="x900"), row(4, hw="x900", median_ttft="0.5"), row(4, hw="x900", tput_per_gpu=-1.0)]


@by_case
def test_records_mapped_together_are_what_each_is_alone(case: Case) -> None:
    @given(batch=batches(case), cuts=st.lists(st.integers(0, 8), max_size=3))
    def holds(batch: Batch, cuts: list[int]) -> None:
        together_is_alone(case, batch, cuts)

    holds()


def test_unknown_names_and_numbers_as_text_mapped_together_are_what_each_is_alone() -> None:
    together_is_alone(ROWS_CASE, (UNKNOWN_AND_TEXT, [LATE] * 3), [1])


def together_is_alone(case: Case, batch: Batch, cuts: list[int]) -> None:
    chosen, started = batch
    expected = told(chosen, started, case.record_format)
    mapper = Mapper(case.record_format)
    assert shown(mapper.map(chosen, started)) == expected
    faults: dict[int, str] = {}
    rows: dict[int, dict[str, Any]] = {}
    unknown: Counter[tuple[str, str]] = Counter()
    places = sorted({0, *(cut for cut in cuts if cut < len(chosen)), len(chosen)})
    for start, end in pairwise(places):
        part = shown(mapper.map(chosen[start:end], started[start:end]), start)
        faults, rows, unknown = faults | part[0], rows | part[1], unknown + part[2]
    assert (faults, rows, unknown) == expected


@by_case
def test_a_mapper_that_forgets_gives_the_same(case: Case) -> None:
    """A batch whose frame is asked for after others were mapped still means the setups that it met."""

    @given(batch=batches(case))
    def holds(batch: Batch) -> None:
        chosen, started = batch
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pipelines.ingest.mapping.MAX_SETUPS", 0)
            mapper = Mapper(case.record_format)
            first = mapper.map(chosen, started)
            second = mapper.map(chosen[::-1], started[::-1])
        assert shown(first) == told(chosen, started, case.record_format)
        assert shown(second) == told(chosen[::-1], started[::-1], case.record_format)

    holds()


@given(batch=batches(ROWS_CASE))
def test_a_format_that_cannot_be_taken_apart_is_read_one_by_one(batch: Batch) -> None:
    whole = RecordFormat(FORMAT.name, FORMAT.title, FORMAT.markers, FORMAT.read)
    assert shown(Mapper(whole).map(*batch)) == told(*batch)


@pytest.mark.parametrize("many", [2, 3, 32])
def test_few_records_alike_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Four orders of keys, in groups of one to four records."""
    monkeypatch.setattr("pipelines.ingest.mapping.MANY", many)
    orders = [row(4, hw="x900"), dict(reversed(row(8).items())), dict(sorted(row(16).items())), row(4, watts=5)]
    chosen = [{**orders[i % 4], "conc": i + 1} for i in (0, 1, 2, 3, 1, 2, 3, 2, 3, 3)]
    assert shown(Mapper(FORMAT).map(chosen, [LATE] * 10)) == told(chosen, [LATE] * 10)


PLAIN = [
    (FORMAT, row(4, **COUNTED, **POWER), "tput_per_gpu", LATE),
    (FORMAT, row(4, **{**POWER, "power_valid": 0}, benchmark_start_time_unix=1767225600), "tput_per_gpu", IMAGED),
    (vllm_serve.FORMAT, vllm_serve.clean(NEW), "mean_ttft_ms", ZONED),
    (vllm_serve.FORMAT, vllm_serve.clean(OLD), "mean_ttft_ms", FULL),
    (vllm_serve.FORMAT, vllm_serve.clean(DRAFTED), "mean_tpot_ms", BUILT),
    (vllm_serve.MULTI_TURN, vllm_serve.clean(CHATS), "mean_ttft_ms", FULL),
    (sglang_serving.FORMAT, LINE_RECORD, "mean_itl_ms", ZONED),
    (sglang_serving.FORMAT, {**SHARED_LINE, "accept_length": 2.5}, "mean_itl_ms", BUILT),
]


@pytest.mark.parametrize(("record_format", "record", "key", "known"), PLAIN)
def test_plain_records_are_taken_together(record_format: RecordFormat, record: dict[str, Any], key: str, known: Given) -> None:
    """Of forty records that differ in one number none is read alone, but the one with a text in its place."""
    chosen = [{**record, key: record[key] * (1 + i / 7)} for i in range(40)]
    chosen[17][key] = "0.5"
    mapped = Mapper(record_format).map(chosen, [known] * 40)
    assert mapped.singles.rows == [17]
    assert shown(mapped) == told(chosen, [known] * 40, record_format)


def test_a_setup_is_that_of_records_whose_numbers_are_plain() -> None:
    """By hand: drafts written as the text "0" are none, and the method of a record that drafted has no name."""
    known = Given(LATE.started_at, {**FULL.declared})
    nothing, drafted = {**DRAFTED, "spec_decode_num_drafts": "0", "spec_decode_acceptance_length": 0}, DRAFTED
    frame = Mapper(vllm_serve.FORMAT).map([nothing, drafted], [known] * 2).frame()
    assert frame["spec_decoding"].to_list() == ["none", "unnamed"]


def test_shapes_without_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.ingest.mapping.MAX_SHAPES", 3)
    mapper = Mapper(FORMAT)
    for i in range(9):
        chosen = [row(4, **{f"number {i}": 1.0}), row(8, hw="x900")]
        assert shown(mapper.map(chosen, [LATE] * 2)) == told(chosen, [LATE] * 2)


def test_nothing_gives_an_empty_frame() -> None:
    mapped = Mapper(FORMAT).map([], [])
    assert (mapped.frame().height, mapped.frame().schema, mapped.faults) == (0, SCHEMA, {})


def test_names_that_nobody_knows_are_counted_once_a_record_that_is_kept() -> None:
    """By hand: of three records of x900 two are kept, one of them with a number written as text."""
    mapped = Mapper(FORMAT).map(UNKNOWN_AND_TEXT, [LATE] * 3)
    assert dict(mapped.unknown_names) == {("hardware", "x900"): 2}
    assert list(mapped.faults) == [2]


def test_the_meaning_of_a_field_is_that_of_its_records_own_run() -> None:
    """One record of three runs: before precision was written, after, and after rates of disaggregated rows were by role."""
    roles = {"disagg": True, "prefill_tp": 8, "num_prefill_gpu": 8, "num_decode_gpu": 8, "decode_tp": 8}
    bare = {key: value for key, value in row(4, **roles).items() if key not in ("precision", "tp")}
    mapped = Mapper(FORMAT).map(
        [bare, bare, {**bare, "precision": "fp8"}, {**bare, "precision": "fp8"}], [EARLY, MIDDLE, MIDDLE, LATE]
    )
    assert list(mapped.faults) == [1]
    assert mapped.frame().select("row", "precision", "metric_definition").rows() == [
        (0, "fp8", "inferencex disaggregated, all GPUs"),
        (2, "fp8", "inferencex disaggregated, all GPUs"),
        (3, "fp8", "inferencex disaggregated, per role"),
    ]


def test_real_records_mapped_together_are_what_each_is_alone(real_runs: Path) -> None:
    chosen: list[dict[str, Any]] = []
    started: list[Given] = []
    for path in sorted(real_runs.glob("*/agg_bmk.json")):
        start = parse_instant(json.loads((path.parent / "run.json").read_text("utf-8"))["run_started_at"], "run_started_at")
        found = json.loads(path.read_text("utf-8"))
        chosen += found
        started += [Given(start)] * len(found)
    assert len(chosen) == 1119
    faults, rows, unknown = shown(Mapper(FORMAT).map(chosen, started))
    assert (faults, rows, unknown) == told(chosen, started)
    assert (len(rows), faults) == (1119, {})
