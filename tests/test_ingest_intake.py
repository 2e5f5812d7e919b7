"""From files to the log: which run a record belongs to, what goes to quarantine, and that a second ingest adds nothing."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.fold.small import whole_tables
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.sides import Declared
from tests.records import row, run_object, write_run
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.events import RecordQuarantined, ResultRecorded, RunReported
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, tzinfo=UTC)
DECLARED = datetime(2026, 1, 20, 6, tzinfo=UTC)
STARTED = "2026-01-05T06:00:00Z"


def take(log: EventLog, *paths: Path, at: datetime = NOW, measured_at: datetime | None = None, **declared: str) -> Intake:
    return ingest(
        log,
        tuple(str(path) for path in paths),
        Declared(measured_at, declared),
        recorded_at=at,
        mirrors=Path(log.store.uri) / "mirrors",
        announce=lambda _name: None,
    )


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def results(log: EventLog) -> list[ResultRecorded]:
    return [payload for _, payload in log.payloads("ResultRecorded") if isinstance(payload, ResultRecorded)]


def runs(log: EventLog) -> list[RunReported]:
    return [payload for _, payload in log.payloads("RunReported") if isinstance(payload, RunReported)]


def folded(log: EventLog) -> dict[str, pl.DataFrame]:
    """Return the tables of facts that follow from the log, by name."""
    return whole_tables(log, log.last_sequence())


def refused(intake: Intake) -> list[tuple[str, str, str]]:
    return [(entry.name, entry.position, entry.reason) for entry in intake.quarantined]


def test_a_run_and_its_rows(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4), row(8)])
    intake = take(log, place)
    assert dict(intake.new) == {"RunReported": 1, "ResultRecorded": 2, "FileRead": 1}
    assert (intake.files, intake.empty, intake.ignored, intake.quarantined) == (2, [], [], [])
    assert [str(result.run) for result in results(log)] == ["example/fleet/7/1"] * 2
    assert [result.record for result in results(log)] == json.loads((place / "agg_bmk.json").read_text())
    events = log.read("ResultRecorded")
    assert events["occurred_at"].to_list() == [parse_instant(STARTED, "t")] * 2
    assert events["recorded_at"].to_list() == [NOW] * 2
    assert events["source_name"].to_list() == ["run_7/agg_bmk.json"] * 2
    assert events["source_position"].to_list() == ["/0", "/1"]
    assert events["source_reader"].to_list() == ["inferencex"] * 2


def test_a_record_with_its_own_start_is_true_from_then_on(log: EventLog, tmp_path: Path) -> None:
    take(log, write_run(tmp_path / "in", 7, STARTED, [row(4, benchmark_start_time_unix=1767225600)]))
    assert log.read("ResultRecorded")["occurred_at"].to_list() == [datetime(2026, 1, 1, tzinfo=UTC)]


def test_a_second_ingest_adds_nothing(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4), row(0), row(8), "x"])
    write(place / "cut.json", '[{"hw": 1')
    write(place / "zip.zip", "no archive")
    first = take(log, tmp_path / "in")
    assert dict(first.new) == {"RunReported": 1, "ResultRecorded": 2, "RecordQuarantined": 4}
    version = log.store.version("events")
    again = take(log, tmp_path / "in", at=LATER)
    assert dict(again.new) == {}
    assert len(again.quarantined) == 4
    assert log.store.version("events") == version


def test_one_record_in_two_files_of_a_run_is_one_event(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4), row(8)])
    write(place / "agg_x.json", [row(4)])
    write(place / "agg_y.json", row(8))
    (place / "agg_z.jsonl.gz").write_bytes(
        gzip.compress("\n".join(json.dumps(dict(reversed(row(c).items()))) for c in (4, 8)).encode())
    )
    assert take(log, tmp_path / "in").new["ResultRecorded"] == 2


def test_the_same_numbers_in_another_run_are_another_measurement(log: EventLog, tmp_path: Path) -> None:
    write_run(tmp_path / "in", 7, STARTED, [row(4)])
    write_run(tmp_path / "in", 8, STARTED, [row(4)])
    assert take(log, tmp_path / "in").new["ResultRecorded"] == 2


def test_the_nearest_run_above_counts(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "in"
    write(root / "run.json", run_object(1, "2026-01-01T00:00:00Z"))
    write(root / "a" / "run.json", run_object(2, "2026-01-02T00:00:00Z"))
    for place, conc in (("top.json", 1), ("b/c/deep.json", 2), ("a/beside.json", 3), ("a/d/e/below.json", 4)):
        write(root / place, [row(conc)])
    take(log, root)
    assert {result.record["conc"]: result.run.run_id for result in results(log)} == {1: "1", 2: "1", 3: "2", 4: "2"}


def test_each_archive_has_its_own_run(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    for number in (1, 2):
        with zipfile.ZipFile(root / f"{number}.zip", "w") as archive:
            archive.writestr("results/agg_bmk.json", json.dumps([row(number)]))
            archive.writestr("run.json", json.dumps(run_object(number, STARTED)))
    write(root / "stray.json", [row(9)])
    intake = take(log, root)
    assert {result.record["conc"]: result.run.run_id for result in results(log)} == {1: "1", 2: "2"}
    assert [entry[:2] for entry in refused(intake)] == [("in/stray.json", "/0")]


def test_two_folders_called_alike_do_not_share_a_run(log: EventLog, tmp_path: Path) -> None:
    for number in (1, 2):
        write_run(tmp_path / str(number), 0, f"2026-01-0{number}T00:00:00Z", [row(number)])
        write(tmp_path / str(number) / "run_0" / "run.json", run_object(number, f"2026-01-0{number}T00:00:00Z"))
    take(log, tmp_path / "1" / "run_0", tmp_path / "2" / "run_0")
    assert {result.record["conc"]: result.run.run_id for result in results(log)} == {1: "1", 2: "2"}


DAMAGED = [
    "",
    "[]",
    "{",
    '{"id": 7, "run_started_at": "yesterday", "repository": {"full_name": "a/b"}}',
    '{"id": 7, "run_started_at": "2026-01-05"}',
    '{"x": 1}',
    '{"id": 7, "run_started_at": "2026-01-05T06:00:00", "repository": {"full_name": "a/b"}}',
    "[1]",
    "\x00",
]


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("below", ["", "results"])
def test_results_under_a_damaged_run_wait_in_quarantine(log: EventLog, tmp_path: Path, damage: str, below: str) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [])
    write(place / below / "agg.json", [row(4), row(8)])
    write(place / "run.json", damage)
    intake = take(log, tmp_path / "in")
    assert dict(intake.new) == {"RecordQuarantined": 3 if damage != "[]" else 2}
    reasons = {entry.reason for entry in intake.quarantined if entry.name.endswith("agg.json")}
    assert reasons == {"the run.json beside or above it cannot be read; mend it or pass --measured-at TIME"}
    mended = take(log, write(place / "run.json", run_object(7, STARTED)).parent)
    assert dict(mended.new) == {"RunReported": 1, "ResultRecorded": 2, "FileRead": 1}


def test_a_damaged_run_does_not_fall_back_on_one_further_up(log: EventLog, tmp_path: Path) -> None:
    write(tmp_path / "in" / "run.json", run_object(1, "2025-01-01T00:00:00Z"))
    write(tmp_path / "in" / "a" / "run.json", "{")
    write(tmp_path / "in" / "a" / "agg.json", [row(4)])
    assert "ResultRecorded" not in take(log, tmp_path / "in").new


@pytest.mark.parametrize("damage", [None, "{"])
def test_a_declared_time_stands_in_for_the_run(log: EventLog, tmp_path: Path, damage: str | None) -> None:
    path = write(tmp_path / "in" / "agg.json", [row(4)])
    if damage:
        write(tmp_path / "in" / "run.json", damage)
    assert "--measured-at" in take(log, path).quarantined[-1 if not damage else 1].reason
    take(log, path, measured_at=DECLARED)
    (run,) = runs(log)
    assert (run.declared, parse_instant(run.started_at, "t"), str(run.run)) == (True, DECLARED, "local/at-2026-01-20T06:00:00Z/1")
    assert [str(result.run) for result in results(log)] == ["local/at-2026-01-20T06:00:00Z/1"]


def test_a_run_on_record_is_stronger_than_a_declared_time(log: EventLog, tmp_path: Path) -> None:
    take(log, write_run(tmp_path / "in", 7, STARTED, [row(4)]), measured_at=DECLARED)
    assert [(run.run.run_id, run.declared) for run in runs(log)] == [("7", False)]


def test_files_with_one_declared_time_are_one_run(log: EventLog, tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.json", [row(4)]), write(tmp_path / "b.json", [row(8)])
    take(log, one, measured_at=DECLARED)
    intake = take(log, other, measured_at=DECLARED)
    assert dict(intake.new) == {"ResultRecorded": 1, "FileRead": 1}
    assert len({str(result.run) for result in results(log)}) == len(runs(log)) == 1


def test_declared_names_are_used(log: EventLog, tmp_path: Path) -> None:
    take(log, write(tmp_path / "a.json", [row(4)]), measured_at=DECLARED, run_id="night-3", run_source="lab")
    assert [str(run.run) for run in runs(log)] == ["lab/night-3/1"]


def test_a_declared_run_without_a_readable_result_is_not_reported(log: EventLog, tmp_path: Path) -> None:
    take(log, write(tmp_path / "a.json", [row(0)]), measured_at=DECLARED)
    assert runs(log) == []


def test_a_bad_row_is_quarantined_and_the_rest_goes_in(log: EventLog, tmp_path: Path) -> None:
    bad = row(4)
    del bad["isl"]
    rows = [
        row(4),
        bad,
        row(0),
        {"other": 1},
        "text",
        None,
        row(8, median_ttft=float("nan")),
        row(8, x=float("inf"), y="\ud800"),
        row(16),
    ]
    place = write_run(tmp_path / "in", 7, STARTED, rows)
    intake = take(log, place)
    assert [result.record["conc"] for result in results(log)] == [4, 16]
    unknown = "not a known record; `shiftlog formats` lists those that are"
    assert refused(intake) == [
        ("run_7/agg_bmk.json", "/1", "isl: field required"),
        ("run_7/agg_bmk.json", "/2", "conc: input should be greater than or equal to 1 (found 0)"),
        ("run_7/agg_bmk.json", "/3", unknown),
        ("run_7/agg_bmk.json", "/4", unknown),
        ("run_7/agg_bmk.json", "/5", unknown),
        ("run_7/agg_bmk.json", "/6", "median_ttft: 'NaN' is not a number"),
        ("run_7/agg_bmk.json", "/7", "record cannot be kept: text with half a surrogate pair cannot be stored as UTF-8"),
    ]
    assert intake.quarantined[0].excerpt.startswith('{"conc":4,')
    kept = [payload for _, payload in log.payloads("RecordQuarantined") if isinstance(payload, RecordQuarantined)]
    assert kept == intake.quarantined


@pytest.mark.parametrize("extra", [{"\ud800": 1}, {"a": {"b": "\udfff"}}, {"hw": "\ud800"}, {"router": "\ud800"}])
def test_half_a_surrogate_pair_anywhere_costs_one_record(log: EventLog, tmp_path: Path, extra: dict[str, Any]) -> None:
    intake = take(log, write_run(tmp_path / "in", 7, STARTED, [row(4), {**row(8), **extra}, row(16)]))
    assert dict(intake.new) == {"RunReported": 1, "ResultRecorded": 2, "RecordQuarantined": 1}
    assert folded(log)["points"].height == 2


def test_an_infinite_number_deep_inside_is_not_stored_as_null(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [])
    write(place / "agg.json", json.dumps([row(4), {**row(8), "w": [{"x": 0.5}]}]).replace('[{"x": 0.5}]', '[{"x": 1e999}]'))
    intake = take(log, place)
    assert [result.record["conc"] for result in results(log)] == [4]
    assert "JSON compliant" in intake.quarantined[0].reason


def test_depth_and_size_cost_one_record(log: EventLog, tmp_path: Path) -> None:
    deep = json.loads("[" * 100 + "]" * 100)
    intake = take(log, write_run(tmp_path / "in", 7, STARTED, [row(4), row(8, x=deep), row(16), row(32, x="y" * 4_000_000)]))
    assert [result.record["conc"] for result in results(log)] == [4, 16]
    assert refused(intake)[0][1:] == ("/1", "record: nested deeper than 64 levels")
    assert "a record may have 4000000" in refused(intake)[1][2]
    assert all(len(entry.excerpt) <= 200 for entry in intake.quarantined)


def test_names_that_are_not_utf_8_are_no_obstacle(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [])
    (Path(os.fsdecode(os.fsencode(place) + b"/\xff\n.json"))).write_text(json.dumps([row(4), row(0)]))
    (Path(os.fsdecode(os.fsencode(place) + b"/\xfe.zip"))).write_text("no archive")
    intake = take(log, place)
    assert len(results(log)) == 1
    assert {entry[0] for entry in refused(intake)} == {"run_7/?\n.json", "run_7/?.zip"}


def test_files_that_are_nothing_to_us(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "in"
    unknown = write(root / "package.json", {"name": "x"})
    write(root / "notes.md", "x")
    write(root / "empty.json", [])
    write(root / "blank.json", " ")
    intake = take(log, root)
    assert intake.ignored == ["in/notes.md", "in/package.json (not a known format)"]
    assert intake.empty == ["in/empty.json"]
    assert refused(intake) == [("in/blank.json", "", "empty file")]
    assert refused(take(log, unknown)) == [("package.json", "", "not a known format; `shiftlog formats` lists those that are")]
    assert take(log, root / "notes.md").quarantined != []


def test_what_cannot_be_opened_is_quarantined_with_the_reason(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4)])
    write(place / "a.zip", "no archive")
    write(place / "b.json.gz", "no gzip")
    (place / "c.json").write_bytes(b'[{"a": "\xe9"}]')
    intake = take(log, place)
    assert {name: reason for name, _, reason in refused(intake)} == {
        "run_7/a.zip": "run_7/a.zip: damaged .zip (File is not a zip file); fetch it again",
        "run_7/b.json.gz": "run_7/b.json.gz: damaged .gz (Not a gzipped file (b'no')); fetch it again",
        "run_7/c.json": "not UTF-8 text; save it as UTF-8",
    }
    assert len(results(log)) == 1


def test_a_missing_path_stops_everything_before_it_begins(log: EventLog, tmp_path: Path) -> None:
    place = write_run(tmp_path / "in", 7, STARTED, [row(4)])
    with pytest.raises(InputError, match="no such file or folder"):
        take(log, place, tmp_path / "nowhere")
    assert not log.store.exists("events")


def test_strangers_text_in_upstream_files_is_no_crash(log: EventLog, tmp_path: Path) -> None:
    write(tmp_path / "in" / "anchors.json", {"vllm\ud800": {"1.0\ud800": {"full": "x", "bump_commit": "\ud800"}}})
    write(tmp_path / "in" / "releases.json", [{"tag_name": "\ud800", "published_at": "x", "html_url": "\ud800"}])
    intake = take(log, tmp_path / "in")
    assert len(intake.quarantined) == 2
    assert intake.new["RecordQuarantined"] == 2


def test_unknown_names_are_counted(log: EventLog, tmp_path: Path) -> None:
    intake = take(log, write_run(tmp_path / "in", 7, STARTED, [row(4, hw="x900"), row(8, hw="x900"), row(8)]))
    assert dict(intake.unknown_names) == {("hardware", "x900"): 2}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_however_rows_are_split_over_files_the_events_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = [row(conc, speed=speed) for conc in (4, 8) for speed in (1.0, 1.5)] + [row(4, image=None), row(16, router="x")]
    parts = data.draw(st.lists(st.lists(st.sampled_from(range(len(rows))), max_size=6), max_size=4))
    shape = data.draw(st.sampled_from(["array", "lines", "gz", "zip"]))
    root = tmp_path_factory.mktemp("split")
    place = write_run(root / "in", 7, STARTED, data.draw(st.permutations(rows)))
    for number, part in enumerate(parts):
        chosen = [rows[index] for index in part]
        lines = "\n".join(json.dumps(record) for record in chosen)
        if shape == "array":
            write(place / f"{number}" / "agg.json", chosen)
        elif shape == "lines":
            write(place / f"{number}.jsonl", lines + "\n\n")
        elif shape == "gz":
            (place / f"{number}.jsonl.gz").write_bytes(gzip.compress(lines.encode() or b"[]"))
        else:
            with zipfile.ZipFile(place / f"{number}.zip", "w") as archive:
                archive.writestr("x/agg.json", json.dumps(chosen))
    log = EventLog(Store(str(root / "warehouse")))
    take(log, root / "in")
    whole = EventLog(Store(str(root / "whole")))
    take(whole, write_run(root / "other", 7, STARTED, rows))
    facts = ("ResultRecorded", "RunReported")
    assert set(log.read(*facts)["event_id"]) == set(whole.read(*facts)["event_id"])


def test_twenty_real_runs(log: EventLog, real_runs: Path) -> None:
    intake = take(log, real_runs)
    assert dict(intake.new) == {"RunReported": 20, "ResultRecorded": 1119, "FileRead": 19}
    assert (intake.quarantined, intake.ignored, intake.empty, dict(intake.unknown_names)) == (
        [],
        [],
        ["runs/run_20244442227/agg_bmk.json"],
        {},
    )
    assert sum(take(log, real_runs, at=LATER).new.values()) == 0
    one = real_runs / "run_20218553330"
    assert sum(take(log, one / "agg_bmk.json", at=LATER).new.values()) == 0
    rows = [record for path in sorted(real_runs.glob("*/agg_bmk.json")) for record in json.loads(path.read_text("utf-8"))]
    assert [result.record for result in results(log)] == rows


def test_real_runs_as_points(log: EventLog, real_runs: Path) -> None:
    take(log, real_runs)
    tables = folded(log)
    assert {name: frame.height for name, frame in tables.items() if name != "builds"} == {
        "runs": 20,
        "points": 1119,
        "evals": 0,
        "quarantine": 0,
    }
    frame = tables["points"]
    raw = [record for path in sorted(real_runs.glob("*/agg_bmk.json")) for record in json.loads(path.read_text("utf-8"))]
    assert frame["tput_per_gpu"].sum() == pytest.approx(sum(record["tput_per_gpu"] for record in raw), rel=1e-12)
    assert frame["ttft_p99"].sum() == pytest.approx(sum(record["p99_ttft"] for record in raw), rel=1e-12)
    assert frame["build_id"].n_unique() == len({record["image"].replace("#", "/") for record in raw}) == tables["builds"].height
    assert frame.select("run_id", "cell_id", "record_hash").is_unique().all()
    assert sorted(frame["engine"].unique()) == ["sglang", "trtllm", "vllm"]
    assert tables["runs"]["points"].sum() == 1119
    gpus = [record.get("tp") or record["num_prefill_gpu"] + record["num_decode_gpu"] for record in raw]
    assert sorted(frame["num_gpus"]) == sorted(gpus)
