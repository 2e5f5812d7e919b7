"""Chunks of files as rows of the log: the same however files are grouped; what was read whole is passed over, by its content.

Not here: what a record means (`test_ingest_inferencex`), mapping at speed (`test_ingest_mapping`), which run counts
(`test_ingest_intake`).
"""

from __future__ import annotations

import codecs
import gzip
import json
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.announcing import silent
from pipelines.following import Follower, refresh
from pipelines.ingest import intake as course
from pipelines.ingest.files import MAPPED, MAX_FAULTS, ROWS, Chunk, Outcome, Piece, read_chunk
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.sides import Content, Declared
from pipelines.verification import verify
from tests.records import row, run_object, sweep, write_run
from warehouse.canonical import canonical_json
from warehouse.clock import iso
from warehouse.digest import content_hash
from warehouse.events import MAX_RECORD_CHARACTERS, FileRead
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = datetime(2026, 1, 20, 6, tzinfo=UTC)
STARTED = "2026-01-05T06:00:00Z"
FACTS = ("RunReported", "ResultRecorded")


def take(log: EventLog, *paths: Path, declared: Declared | None = None, at: datetime = NOW, workers: str = "serial") -> Intake:
    return ingest(
        log,
        tuple(str(path) for path in paths),
        declared or Declared(),
        recorded_at=at,
        mirrors=Path(log.store.uri) / "mirrors",
        announce=lambda _name: None,
        workers=workers,
    )


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


RUN = json.dumps(run_object(7, STARTED)).encode()
COMMIT = {
    "hash": "a" * 40,
    "parents": [],
    "author_date": STARTED,
    "committer_date": STARTED,
    "subject": "One (#1)",
    "pr": 1,
    "files": [],
}
FILES: dict[str, tuple[bytes, bytes | None]] = {
    "array.json": (json.dumps([row(4), row(8, watts=5), row(16, image=None)]).encode(), RUN),
    "faults.json": (json.dumps([row(4, hw="x900"), row(0), "x", {"id": 1}, row(8, median_ttft="0.5")]).encode(), RUN),
    "lines.jsonl": (b"\n".join(json.dumps(row(c)).encode() for c in (4, 8)) + b"\n{\n", RUN),
    "undated.json": (json.dumps([row(4), row(8, benchmark_start_time_unix=1767225600)]).encode(), None),
    "run.json": (RUN, None),
    "damaged.json": (b'{"hw": ', RUN),
    "under_a_damaged_run.json": (json.dumps([row(4)]).encode(), b"{"),
    "vllm_commits.jsonl": (json.dumps(COMMIT).encode(), None),
    "empty.json": (b"[]", RUN),
    "other.json": (b'{"name": "x"}', None),
    "all_bad.json": (json.dumps([row(0), row(-1)]).encode(), RUN),
}


def piece(name: str, data: bytes, dated_by: bytes | None) -> Piece:
    dates = Content(data=dated_by) if dated_by is not None else None
    return Piece(f"in/{name}", PurePosixPath("in", name), False, Content(data=data), dates)


def read_of(*names: str, declared: Declared | None = None, mapped: bool = True) -> Outcome:
    return read_chunk(Chunk(tuple(piece(name, *FILES[name]) for name in names), declared or Declared(), NOW, mapped))


@given(st.lists(st.sampled_from(sorted(FILES)), max_size=6), st.sampled_from([None, DAY]))
def test_a_chunk_of_files_is_what_each_is_alone(names: list[str], measured_at: datetime | None) -> None:
    declared = Declared(measured_at)
    together = read_of(*names, declared=declared)
    alone = [read_of(name, declared=declared) for name in names]
    assert together.rows.equals(pl.concat([ROWS.to_frame(), *(one.rows for one in alone)]))
    expected = pl.concat([MAPPED.to_frame(), *(one.mapped for one in alone)])
    assert together.mapped.drop("row").equals(expected.drop("row"))
    assert +together.read == +sum((one.read for one in alone), Counter[str]())
    assert together.unknown_names == sum((one.unknown_names for one in alone), Counter[tuple[str, str]]())
    for name in ("quarantined", "empty", "ignored"):
        assert getattr(together, name) == [entry for one in alone for entry in getattr(one, name)]


@given(st.lists(st.sampled_from(sorted(FILES)), max_size=6))
def test_what_is_mapped_on_the_way_does_not_change_the_log(names: list[str]) -> None:
    unmapped = read_of(*names, mapped=False)
    assert unmapped.rows.equals(read_of(*names).rows)
    assert unmapped.mapped.is_empty()


def test_events_stand_in_the_order_of_the_file() -> None:
    """By hand: the declared run first; then each record where it stands, kept or not; last that the file was read whole."""
    faults = read_of("faults.json", declared=Declared(DAY)).rows
    assert faults.select("event_type", "source_position").rows() == [
        ("ResultRecorded", "/0"),
        ("RecordQuarantined", "/1"),
        ("RecordQuarantined", "/2"),
        ("RecordQuarantined", "/3"),
        ("ResultRecorded", "/4"),
    ]
    sound = read_of("undated.json", declared=Declared(DAY)).rows
    assert sound["event_type"].to_list() == ["RunReported", "ResultRecorded", "ResultRecorded", "FileRead"]
    assert sound["occurred_at"].to_list()[:3] == [DAY, DAY, datetime(2026, 1, 1, tzinfo=UTC)]
    assert sound["source_reader"].to_list()[:3] == ["declared", "inferencex", "inferencex"]


def test_mapped_rows_name_the_events_that_record_them() -> None:
    outcome = read_of("faults.json", "array.json", "lines.jsonl")
    results = outcome.rows.filter(pl.col("event_type") == "ResultRecorded")
    assert outcome.mapped["event_id"].to_list() == results["event_id"].to_list()
    concurrencies = [json.loads(payload)["record"]["conc"] for payload in results["payload"]]
    assert outcome.mapped["concurrency"].to_list() == concurrencies == [4, 8, 4, 8, 16, 4, 8]


def test_a_run_of_the_same_chunk_and_one_of_another_date_alike(tmp_path: Path) -> None:
    """The run's file may be read with its results or long before them."""
    place = write_run(tmp_path, 7, STARTED, sweep())
    dated = Content(local=place / "run.json")
    run = Piece("run.json", PurePosixPath("run_7/run.json"), False, Content(local=place / "run.json"))
    results = Piece("agg.json", PurePosixPath("run_7/agg.json"), False, Content(local=place / "agg_bmk.json"), dated)
    apart = [read_chunk(Chunk((one,), Declared(), NOW)).rows for one in (run, results)]
    together = read_chunk(Chunk((run, results), Declared(), NOW)).rows
    assert together.equals(pl.concat(apart))
    assert together["event_type"].to_list() == ["RunReported", *["ResultRecorded"] * 5, "FileRead"]


def test_a_sound_file_is_passed_over_and_nothing_is_written(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, sweep())
    assert dict(take(log, place).new) == {"RunReported": 1, "ResultRecorded": 5, "FileRead": 1}
    (told,) = [payload for _row, payload in log.payloads("FileRead")]
    assert isinstance(told, FileRead) and told.records == 5
    versions = {name: log.store.version(name) for name in ("events", "subjects")}
    again = take(log, place, at=LATER)
    assert (again.known, again.files, dict(again.new), dict(+again.read)) == (1, 1, {}, {"RunReported": 1})
    assert {name: log.store.version(name) for name in versions} == versions


def test_a_file_with_faults_is_read_until_it_is_mended(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4), row(8, isl=None)])
    assert "FileRead" not in take(log, place).new
    again = take(log, place, at=LATER)
    assert (again.known, again.files, len(again.quarantined), dict(again.new)) == (0, 2, 1, {})
    write(place / "agg_bmk.json", [row(4), row(8)])
    assert dict(take(log, place, at=LATER).new) == {"ResultRecorded": 1, "FileRead": 1}
    assert take(log, place, at=LATER).known == 1


def test_a_file_that_moved_is_known_by_its_content(log: EventLog, tmp_path: Path) -> None:
    take(log, write_run(tmp_path / "in", 7, STARTED, sweep()))
    moved = write_run(tmp_path / "elsewhere", 7, STARTED, [])
    (moved / "other.json").write_bytes((tmp_path / "in" / "run_7" / "agg_bmk.json").read_bytes())
    (moved / "agg_bmk.json").unlink()
    assert take(log, moved).known == 1


def test_the_same_bytes_under_another_run_are_read(log: EventLog, tmp_path: Path) -> None:
    take(log, write_run(tmp_path / "in", 7, STARTED, sweep()))
    again = take(log, write_run(tmp_path / "in", 8, STARTED, sweep()))
    assert (again.known, dict(again.new)) == (0, {"RunReported": 1, "ResultRecorded": 5, "FileRead": 1})


def test_another_declaration_is_another_reading(log: EventLog, tmp_path: Path) -> None:
    path = write(tmp_path / "agg.json", sweep())
    new = {"RunReported": 1, "ResultRecorded": 5, "FileRead": 1}
    declarations = [
        Declared(DAY),
        Declared(LATER),
        Declared(DAY, {"run_id": "night-3"}),
        Declared(DAY, {"run_id": "night-3", "run_source": "lab"}),
    ]
    for declared in declarations:
        assert dict(take(log, path, declared=declared).new) == new
    assert [take(log, path, declared=declared).known for declared in declarations] == [1] * 4
    undated = take(log, path)
    assert (undated.known, len(undated.quarantined)) == (0, 5)


def test_a_correction_reads_everything_again(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, sweep())
    take(log, place)
    same = take(log, place, declared=Declared(revision=8))
    assert (same.known, same.files, dict(same.new)) == (0, 2, {})  # it says what holds already
    write(place / "run.json", run_object(7, STARTED, conclusion="failure"))
    take(log, place)
    write(place / "run.json", run_object(7, STARTED))
    corrected = take(log, place, declared=Declared(revision=9))
    assert (corrected.known, corrected.files, dict(corrected.new)) == (0, 2, {"RunReported": 1})


def test_a_packed_twin_of_a_known_file_is_read(log: EventLog, tmp_path: Path) -> None:
    """`agg.json.gz` stands where `agg.json` would, and is another file."""
    place = write_run(tmp_path / "in", 7, STARTED, [row(4)])
    take(log, place)
    write(place / "agg_bmk.json.gz", gzip.compress(json.dumps([row(8)]).encode()))
    again = take(log, place)
    assert (again.known, dict(again.new)) == (1, {"ResultRecorded": 1, "FileRead": 1})


BAD = {"refused": row(0), "no record": "x", "nearly": {"hw": "h200", "conc": 4, "framework": "vllm"}}


@pytest.mark.parametrize("kinds", [["refused"], ["no record"], ["nearly"], ["refused", "no record", "nearly"]])
def test_of_very_many_faults_the_first_are_told_and_the_rest_counted(kinds: list[str]) -> None:
    bad = [BAD[kinds[i % len(kinds)]] for i in range(MAX_FAULTS + 1500)]
    data = json.dumps([row(4), *bad, row(8)]).encode()
    outcome = read_chunk(Chunk((piece("agg.json", data, RUN), piece("next.json", *FILES["array.json"])), Declared(), NOW))
    assert [fault.position for fault in outcome.quarantined] == [*(f"/{i}" for i in range(1, MAX_FAULTS + 1)), "more"]
    assert outcome.quarantined[-1].reason == "1,500 more faults like these; mend the file and ingest it again"
    assert outcome.read["ResultRecorded"] == 5
    kept = outcome.rows.filter(pl.col("event_type") == "RecordQuarantined")
    assert [json.loads(text)["position"] for text in kept["payload"]] == [fault.position for fault in outcome.quarantined]
    assert outcome.rows["event_type"].to_list()[-4:] == [*["ResultRecorded"] * 3, "FileRead"]


def one_record(record: dict[str, Any]) -> Outcome:
    return read_chunk(Chunk((piece("agg.json", json.dumps(record).encode(), RUN),), Declared(), NOW))


def test_the_deepest_record_that_is_kept_has_64_levels() -> None:
    """The record is the first level; 63 more fit."""
    deep = {levels: json.loads("[" * (levels - 1) + "]" * (levels - 1)) for levels in (64, 65)}
    assert one_record(row(4, x=deep[64])).read["ResultRecorded"] == 1
    assert [fault.reason for fault in one_record(row(4, x=deep[65])).quarantined] == ["record: nested deeper than 64 levels"]
    assert one_record(row(4, x=[[1], [2]] * 100)).read["ResultRecorded"] == 1


@pytest.mark.parametrize("letter", ["y", "é"])
def test_the_longest_record_that_is_kept_is_counted_in_characters(letter: str) -> None:
    spare = MAX_RECORD_CHARACTERS - len(canonical_json(row(4, x="")))
    assert one_record(row(4, x=letter * spare)).read["ResultRecorded"] == 1
    (fault,) = one_record(row(4, x=letter * (spare + 1))).quarantined
    assert fault.reason == "record cannot be kept: 4000001 characters; a record may have 4000000"


RECORD = row(4, tput_per_gpu=100.0, median_ttft=0.5, note="naïve", watts=-0.0)


def other_writer(record: dict[str, Any]) -> str:
    """Return the record as a writer of other habits spells it."""
    text = json.dumps(dict(reversed(record.items())), indent=3, ensure_ascii=True)
    return text.replace(": 100.0", ": 1e2").replace(": 8,", ": 8.0,").replace(": 0.5,", ": 5E-1,").replace(": -0.0", ": 0")


SPELLINGS = {
    "array.json": json.dumps([RECORD]).encode(),
    "object.json": json.dumps(RECORD, ensure_ascii=False).encode(),
    "lines.jsonl": (json.dumps(RECORD) + "\n" + json.dumps(RECORD) + "\n").encode(),
    "packed.json.gz": gzip.compress(json.dumps([RECORD]).encode()),
    "whole.json": json.dumps([{**RECORD, "tput_per_gpu": 100, "conc": 4.0}]).encode(),
    "other.json": other_writer(RECORD).encode(),
    "marked.json": codecs.BOM_UTF8 + json.dumps([RECORD]).encode(),
    "windows.jsonl": (json.dumps(RECORD) + "\r\n").encode(),
    "beside_nan.json": json.dumps([RECORD, row(8, median_ttft=float("nan"))]).encode(),
    "cut.json": (json.dumps([RECORD, RECORD])[:-5]).encode(),
    "twice.json": json.dumps([RECORD])[:-2].encode() + b', "hw": "h200"}]',
}


def test_one_record_in_every_spelling_is_one_event(log: EventLog, tmp_path: Path) -> None:
    assert json.loads(other_writer(RECORD)) == RECORD and "1e2" in other_writer(RECORD)
    place = write_run(tmp_path / "in", 7, STARTED, [])
    for name, data in SPELLINGS.items():
        write(place / name, data)
    with zipfile.ZipFile(place / "packed.zip", "w") as archive:
        archive.writestr("x/agg.json", json.dumps(RECORD))
    intake = take(log, place)
    assert intake.read["ResultRecorded"] == len(SPELLINGS) + 2  # the lines say it twice, and the archive
    assert intake.new["ResultRecorded"] == 1
    assert len(intake.quarantined) == 2


@pytest.mark.parametrize(
    "change", [{"tput_per_gpu": 100.00000000000001}, {"conc": 5}, {"tp": "8"}, {"note": "naive"}, {"x": None}]
)
def test_a_record_that_says_something_else_is_another_event(change: dict[str, Any]) -> None:
    ids = {
        one_record(record).rows.filter(pl.col("event_type") == "ResultRecorded")["event_id"].item()
        for record in (RECORD, {**RECORD, **change})
    }
    assert len(ids) == 2


def test_several_processes_write_the_very_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of every kind, many chunks; events, their order and what is said of them do not depend on who read them."""
    monkeypatch.setattr(course, "MANY_BYTES", 1)
    monkeypatch.setattr(course, "CHUNK_BYTES", 20_000)
    root = tmp_path / "in"
    for number in range(1, 9):
        write_run(root, number, iso(DAY) or "", sweep(speed=1 + number / 100))
    for name, (data, _run) in FILES.items():
        if name != "run.json":
            write(root / "run_5" / name, data)
    with zipfile.ZipFile(root / "run_6" / "middle.zip", "w") as archive:
        archive.writestr("agg.json", json.dumps(sweep(speed=2.0)))
    logs, intakes, folded = [], [], []
    for workers in ("serial", "processes:2"):
        log = EventLog(Store(str(tmp_path / workers.replace(":", "-"))))
        seen: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        intakes.append(
            ingest(
                log,
                (str(root),),
                Declared(),
                recorded_at=NOW,
                mirrors=tmp_path / "mirrors",
                announce=lambda _name: None,
                fold=lambda added, mapped, seen=seen: seen.append((added, mapped)),  # type: ignore[misc]
                workers=workers,
            )
        )
        logs.append(log.read())
        folded.append(pl.concat([mapped for _added, mapped in seen]))
    assert logs[0].height > 60
    assert logs[1].equals(logs[0])
    assert folded[1].equals(folded[0])
    assert intakes[1] == intakes[0]


def test_a_record_that_stands_twice_in_one_ingest_is_one_point(log: EventLog, tmp_path: Path) -> None:
    """A sweep's file beside its zip, or the same row twice in one file."""
    tables = Follower(log)
    place = write_run(tmp_path / "in", 7, STARTED, [row(4), row(4), row(8)])
    with zipfile.ZipFile(place / "results_bmk.zip", "w") as archive:
        archive.write(place / "agg_bmk.json", "agg_bmk.json")
    ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=tmp_path, announce=silent, fold=tables.fold)
    tables.settle()
    assert log.store.read("points").select("concurrency", "reused").rows() == [(4, False), (8, False)]
    assert log.store.read("runs")["points"].to_list() == [2]
    assert verify(log) == []


def test_two_runs_whose_names_hold_slashes_are_two(log: EventLog, tmp_path: Path) -> None:
    for number, (source, run_id) in enumerate((("lab", "node/7"), ("lab/node", "7"), ("lab", "node%2F7"))):
        path = write(tmp_path / f"{number}.json", row(4, speed=1 + number / 100))
        declared = Declared(datetime(2026, 1, 1 + number, tzinfo=UTC), {"run_source": source, "run_id": run_id})
        ingest(log, (str(path),), declared, recorded_at=NOW, mirrors=tmp_path, announce=silent)
        refresh(log)
    runs = log.store.read("runs").select("run_source", "run_id", "reports", "points")
    assert runs.rows() == [("lab", "node/7", 1, 1), ("lab/node", "7", 1, 1), ("lab", "node%2F7", 1, 1)]
    assert verify(log) == []


def test_a_fault_goes_when_its_file_is_read_whole(log: EventLog, tmp_path: Path) -> None:
    """Also where its records were known from other bytes by then."""
    lone = write(tmp_path / "a" / "f.json", [row(4)])
    take(log, lone)
    refresh(log)
    assert log.store.count("quarantine") == 1
    take(log, write_run(tmp_path / "b", 7, STARTED, [row(4)]))
    write(lone.parent / "run.json", run_object(7, STARTED))
    take(log, lone)
    refresh(log)
    assert log.store.count("quarantine") == 0
    assert verify(log) == []


def test_a_negative_nought_is_nought(log: EventLog, tmp_path: Path) -> None:
    tables = Follower(log)
    place = write_run(tmp_path / "in", 7, STARTED, [{**row(4), "std_ttft": -0.0, "x": -0.0}, *(row(4 + n) for n in range(40))])
    ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=tmp_path, announce=silent, fold=tables.fold)
    tables.settle()
    before = content_hash(log.store.read("points"))
    refresh(log, force=True)
    assert content_hash(log.store.read("points")) == before
