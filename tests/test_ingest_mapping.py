"""Records mapped many at once are what the format's own `read` makes of each alone, whatever they are mixed with.

`told` says by `read` and plain arithmetic what must come out. Not here: what a field means (`test_ingest_inferencex`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.ingest.inferencex import FORMAT, read
from pipelines.ingest.mapping import SCHEMA, SETUP, Mapped, Mapper, reference, setup_columns
from pipelines.ingest.reading import RecordFormat
from tests.records import row
from tests.test_identity import ROWS
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

EARLY = datetime(2025, 9, 14, 23, 59, tzinfo=UTC)
MIDDLE = datetime(2025, 10, 1, tzinfo=UTC)
LATE = datetime(2025, 11, 5, tzinfo=UTC)
DIGEST = f"vllm/vllm-openai:v0.9.1@sha256:{'ab' * 32}"

NUMBERS = [0, 0.0, 1, 0.25, 17, 1e-13, 1e13, 1e308, -1, -0.5, 10**30, 10**400, None]
ODD = [*NUMBERS, True, False, "0.5", "1e3", "-1", "1e999", "NaN", "fast", "", [1.0], {"mean": 1.0}]
COUNTS = [None, 1, 8, 8.0, "8", 8.5, 0, -1, True, 10**30, 10**400, "many", [8]]
FLAGS = [None, True, False, "true", " FALSE ", 0, 1, 2, "maybe"]
NAMES = [None, "", "x900", "b200-nv_3", "x" * 600, 5, "sglang"]
CHANGES: dict[str, list[Any]] = {
    **dict.fromkeys(("tput_per_gpu", "output_tput_per_gpu", "median_ttft", "p99.9_tpot", "median_e2el", "std_intvty"), ODD),
    **dict.fromkeys(("p75_ttft", "watts", "Watts", "a number of ours", "", "k" * 130, "k" * 120 + "x", "k" * 120 + "y"), ODD),
    **dict.fromkeys(("conc", "tp", "ep", "isl", "osl"), COUNTS),
    **dict.fromkeys(("disagg", "dp_attention"), FLAGS),
    **dict.fromkeys(("hw", "framework", "infmax_model_prefix"), NAMES),
    "precision": [None, "fp4", "odd4", ""],
    "image": [None, "", "vllm/x:v1", DIGEST, "no image", "x" * 513, 5, ["vllm/x:v1"], {}],
    "benchmark_start_time_unix": [None, 1767225600, 1767225600.25, "1767225600", 0, -1, 4e9, 10**400, True, "soon", []],
    "recipe_fingerprint": [None, "", "AB" * 8, "xyz", 12345678],
    "router": [None, "alpha", {"name": "alpha", "version": "1"}, {"version": "1"}, {"name": "a", "x": 10**400}, 7],
    "num_prefill_gpu": [None, 0, 8, 10**7],
}
ABSENT: Any = ...


@pytest.fixture(autouse=True, scope="module")
def _few_are_many() -> Iterator[None]:
    """Let one record be a matrix, for the batches here are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.ingest.mapping.MANY", 1)
        yield


@st.composite
def records(draw: st.DrawFn, base: dict[str, Any]) -> dict[str, Any]:
    """Return *base* with some fields changed or left out, in its own order of keys or another."""
    record = dict(base)
    for key in draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=3)):
        record[key] = draw(st.sampled_from([*CHANGES[key], ABSENT]))
    keys = draw(st.one_of(st.just(list(record)), st.permutations(sorted(record))))
    return {key: record[key] for key in keys if record[key] is not ABSENT}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[datetime]]:
    """Return records of a few bases, so that some share their keys and setup and others do not, and starts of their runs."""
    bases = [row(4), row(4, watts=5), *draw(st.lists(ROWS, max_size=2))]
    chosen = draw(st.lists(st.sampled_from(bases).flatmap(records), min_size=1, max_size=8))
    return chosen, draw(st.lists(st.sampled_from([EARLY, MIDDLE, LATE]), min_size=len(chosen), max_size=len(chosen)))


Told = tuple[dict[int, str], dict[int, dict[str, Any]], Counter[tuple[str, str]]]


def told(batch: Sequence[dict[str, Any]], started: Sequence[datetime]) -> Told:
    """Return refusals and rows by place, and unknown names, as `read` gives them one by one."""
    faults: dict[int, str] = {}
    rows: dict[int, dict[str, Any]] = {}
    unknown: Counter[tuple[str, str]] = Counter()
    for place, (record, start) in enumerate(zip(batch, started, strict=True)):
        try:
            rows[place] = one(record, start)
        except InputError as error:
            faults[place] = str(error)
        else:
            unknown.update(read(record, start).unknown_names)
    return faults, rows, unknown


def one(record: dict[str, Any], start: datetime) -> dict[str, Any]:
    reading = read(record, start)
    build = reference(reading.image)
    latency, osl = reading.metrics.get("e2el_median"), reading.identity["osl"]
    return {
        "clock": reading.measured_at,
        **dict(zip(SETUP, setup_columns(reading), strict=True)),
        "build_id": build.build_id if build else f"unknown:{reading.identity['engine']}",
        "image_ref": build.ref if build else reading.image,
        "image_digest": build.digest if build else None,
        "engine_version": build.version if build else None,
        **{column.name: reading.metrics.get(column.name) for column in METRIC_COLUMNS},
        "steady_output_tput_per_gpu": reading.concurrency * osl / latency / reading.num_gpus if latency else None,
        "metrics_other": [{"name": name, "value": value} for name, value in sorted(reading.metrics_other.items())],
    }


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


@example(batch=(UNKNOWN_AND_TEXT, [LATE] * 3), cuts=[1])
@given(batch=batches(), cuts=st.lists(st.integers(0, 8), max_size=3))
def test_records_mapped_together_are_what_each_is_alone(
    batch: tuple[list[dict[str, Any]], list[datetime]], cuts: list[int]
) -> None:
    chosen, started = batch
    expected = told(chosen, started)
    mapper = Mapper(FORMAT)
    assert shown(mapper.map(chosen, started)) == expected
    faults: dict[int, str] = {}
    rows: dict[int, dict[str, Any]] = {}
    unknown: Counter[tuple[str, str]] = Counter()
    places = sorted({0, *(cut for cut in cuts if cut < len(chosen)), len(chosen)})
    for start, end in pairwise(places):
        part = shown(mapper.map(chosen[start:end], started[start:end]), start)
        faults, rows, unknown = faults | part[0], rows | part[1], unknown + part[2]
    assert (faults, rows, unknown) == expected


@given(batch=batches())
def test_a_mapper_that_forgets_gives_the_same(batch: tuple[list[dict[str, Any]], list[datetime]]) -> None:
    """A batch whose frame is asked for after others were mapped still means the setups that it met."""
    chosen, started = batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.ingest.mapping.MAX_SETUPS", 0)
        mapper = Mapper(FORMAT)
        first = mapper.map(chosen, started)
        second = mapper.map(chosen[::-1], started[::-1])
    assert shown(first) == told(chosen, started)
    assert shown(second) == told(chosen[::-1], started[::-1])


@given(batch=batches())
def test_a_format_that_cannot_be_taken_apart_is_read_one_by_one(batch: tuple[list[dict[str, Any]], list[datetime]]) -> None:
    whole = RecordFormat(FORMAT.name, FORMAT.title, FORMAT.markers, FORMAT.read)
    assert shown(Mapper(whole).map(*batch)) == told(*batch)


@pytest.mark.parametrize("many", [2, 3, 32])
def test_few_records_alike_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Four orders of keys, in groups of one to four records."""
    monkeypatch.setattr("pipelines.ingest.mapping.MANY", many)
    orders = [row(4, hw="x900"), dict(reversed(row(8).items())), dict(sorted(row(16).items())), row(4, watts=5)]
    chosen = [{**orders[i % 4], "conc": i + 1} for i in (0, 1, 2, 3, 1, 2, 3, 2, 3, 3)]
    assert shown(Mapper(FORMAT).map(chosen, [LATE] * 10)) == told(chosen, [LATE] * 10)


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
    started: list[datetime] = []
    for path in sorted(real_runs.glob("*/agg_bmk.json")):
        start = parse_instant(json.loads((path.parent / "run.json").read_text("utf-8"))["run_started_at"], "run_started_at")
        found = json.loads(path.read_text("utf-8"))
        chosen += found
        started += [start] * len(found)
    assert len(chosen) == 1119
    faults, rows, unknown = shown(Mapper(FORMAT).map(chosen, started))
    assert (faults, rows, unknown) == told(chosen, started)
    assert (len(rows), faults) == (1119, {})
