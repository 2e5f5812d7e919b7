"""What is declared for records: which source counts, what is asked for by name, and that a later declaration holds.

The records are vLLM's, which know neither their accelerator nor their engine's version.
"""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import following
from pipelines.fold.small import whole_tables
from pipelines.following import Follower
from pipelines.ingest import declarations
from pipelines.ingest.declarations import KEYS, checked, placed, sidecar
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.sides import Declared
from pipelines.retraction import retract
from pipelines.verification import verify
from tests.records import row, run_object, write_run
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.log import EventLog
from warehouse.schemas import TABLES

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
WHOLE = {"hardware": "h100", "precision": "fp8", "tp": "2", "engine": "vllm", "engine_version": "0.24.0", "timezone": "UTC"}


def serve(concurrency: int = 4, date: str = "20261130-120000", **more: Any) -> dict[str, Any]:
    """Return a result of `vllm bench serve`: 100 tokens in and 50 out a request; TTFT 100 ms, TPOT 10 ms, so e2el 590 ms."""
    return {
        "date": date,
        "endpoint_type": "openai",
        "backend": "openai",
        "model_id": "lab/tiny",
        "tokenizer_id": "lab/tiny",
        "num_prompts": 40,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": concurrency,
        "duration": 10.0,
        "completed": 40,
        "failed": 0,
        "total_input_tokens": 4000,
        "total_output_tokens": 2000,
        "request_throughput": 4.0,
        "output_throughput": 200.0,
        "total_token_throughput": 600.0,
        "mean_ttft_ms": 100.0,
        "median_ttft_ms": 100.0,
        "p99_ttft_ms": 100.0 + concurrency,
        "mean_tpot_ms": 10.0,
        "median_tpot_ms": 10.0,
        "p99_tpot_ms": 10.5,
        "mean_e2el_ms": 590.0,
        "median_e2el_ms": 590.0,
        **more,
    }


def take(
    log: EventLog, *paths: Path, at: datetime = NOW, measured_at: datetime | None = None, revision: int = 0, **declared: str
) -> Intake:
    """Ingest with tables, as the command does."""
    tables = Follower(log)
    intake = ingest(
        log,
        tuple(str(path) for path in paths),
        Declared(measured_at, declared, revision),
        recorded_at=at,
        mirrors=Path(log.store.uri) / "mirrors",
        announce=lambda _name: None,
        fold=tables.fold,
    )
    tables.settle()
    return intake


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def points(log: EventLog) -> list[dict[str, Any]]:
    """Return the points that count, after a check that the tables are what follows from the log."""
    assert log.store.read("points").equals(whole_tables(log, log.last_sequence())["points"].sort(TABLES["points"].order))
    return [point for point in log.store.read("points").to_dicts() if not point["reused"]]


def test_a_declared_record_is_a_point_that_says_what_was_declared(log: EventLog, tmp_path: Path) -> None:
    """By hand: 600 tok/s over 2 GPUs are 300 tok/s/GPU."""
    intake = take(log, write(tmp_path / "in/serve.json", serve()), osl="50", **WHOLE)
    assert intake.quarantined == []
    (point,) = points(log)
    assert (point["tput_per_gpu"], point["output_tput_per_gpu"], point["num_gpus"]) == (300.0, 100.0, 2)
    assert (point["ttft_median"], point["tpot_mean"], point["e2el_median"]) == (0.1, 0.01, 0.59)
    assert point["intvty_mean"] == 100.0
    assert point["measured_at"] == parse_instant("2026-11-30T12:00:00Z", "t")
    assert (point["run_source"], point["run_id"]) == ("local", "day-2026-11-30")
    assert (point["build_id"], point["engine_version"]) == ("version:vllm/0.24.0", "0.24.0")
    assert point["declared_fields"] == ["engine", "engine_version", "hardware", "osl", "precision", "tp"]
    assert (point["requests"], point["requests_failed"], point["isl_mean"], point["osl_mean"]) == (40, 0, 100.0, 50.0)
    assert verify(log) == []


def test_what_is_missing_is_asked_for_by_name(log: EventLog, tmp_path: Path) -> None:
    path = write(tmp_path / "in/serve.json", serve())
    (fault,) = take(log, path).quarantined
    assert "no time zone; declare timezone" in fault.reason
    assert "; engine, hardware, num_gpus, precision: not in the record; declare in a shiftlog.yaml" in fault.reason, "at once"
    (fault,) = take(log, path, timezone="UTC").quarantined
    assert fault.reason.startswith("engine, hardware, num_gpus, precision: not in the record; declare in a shiftlog.yaml")
    (fault,) = take(log, path, **{key: value for key, value in WHOLE.items() if key != "timezone"}).quarantined
    assert "no time zone; declare timezone" in fault.reason
    (fault,) = take(log, path, **{key: value for key, value in WHOLE.items() if key != "hardware"}).quarantined
    assert fault.reason.startswith("hardware: not in the record")
    assert take(log, path, **WHOLE).quarantined == []
    assert log.store.read("quarantine").is_empty(), "read after all"


def test_the_nearest_declaration_counts_and_the_command_line_before_all(log: EventLog, tmp_path: Path) -> None:
    base = tmp_path / "in"
    write(base / "shiftlog.yaml", "hardware: h100\nprecision: fp8\ntp: 2\nengine: vllm\ntimezone: +02:00\n")
    write(base / "near/shiftlog.yaml", 'hardware: h200\nfiles:\n  "*_four.json":\n    tp: 4\n')
    write(base / "far.json", serve(1))
    write(base / "near/one.json", serve(2))
    write(base / "near/of_four.json", serve(3))
    intake = take(log, base, precision="bf16")
    assert (intake.quarantined, intake.ignored) == ([], [])
    found = {point["concurrency"]: (point["hardware"], point["num_gpus"], point["precision"]) for point in points(log)}
    assert found == {1: ("h100", 2, "bf16"), 2: ("h200", 2, "bf16"), 3: ("h200", 4, "bf16")}
    assert {point["measured_at"] for point in points(log)} == {parse_instant("2026-11-30T10:00:00Z", "t")}


def test_a_sidecar_holds_for_a_file_that_is_named_and_inside_an_archive(log: EventLog, tmp_path: Path) -> None:
    lines = "\n".join(f"{key}: {value}" for key, value in WHOLE.items())
    write(tmp_path / "in/shiftlog.yaml", lines)
    take(log, write(tmp_path / "in/named.json", serve(1)))
    with zipfile.ZipFile(tmp_path / "results.zip", "w") as archive:
        archive.writestr("shiftlog.yaml", lines)
        archive.writestr("runs/serve.json", json.dumps(serve(2)))
    assert take(log, tmp_path / "results.zip").quarantined == []
    assert sorted(point["concurrency"] for point in points(log)) == [1, 2]


def test_a_later_declaration_holds_and_the_first_is_kept(log: EventLog, tmp_path: Path) -> None:
    path = write(tmp_path / "in/serve.json", serve())
    take(log, path, **{**WHOLE, "hardware": "h100"})
    take(log, path, **{**WHOLE, "hardware": "h200", "engine_version": "0.24.1"})
    (point,) = points(log)
    assert (point["hardware"], point["engine_version"]) == ("h200", "0.24.1")
    assert log.store.read("points").height == 2
    assert take(log, path, **{**WHOLE, "hardware": "h200", "engine_version": "0.24.1"}).known == 1


def test_what_the_reader_did_not_use_makes_no_other_event(log: EventLog, tmp_path: Path) -> None:
    """An InferenceX row that says all by itself is one event, whatever is declared for other files."""
    place = write_run(tmp_path / "in", 7, "2026-01-05T06:00:00Z", [row(4)])
    assert take(log, place).new["ResultRecorded"] == 1
    others = {key: value for key, value in WHOLE.items() if key != "engine_version"}
    assert take(log, place, **others).new == {"FileRead": 1}
    assert take(log, place, hardware="b200").new == {"FileRead": 1}
    (point,) = points(log)
    assert (point["hardware"], point["declared_fields"]) == ("h200", [])


def test_another_sidecar_is_another_context_and_the_same_is_known(log: EventLog, tmp_path: Path) -> None:
    path = write(tmp_path / "in/serve.json", serve())
    write(tmp_path / "in/shiftlog.yaml", "\n".join(f"{key}: {value}" for key, value in WHOLE.items()))
    assert take(log, tmp_path / "in").new["ResultRecorded"] == 1
    assert take(log, tmp_path / "in").known == 1
    write(tmp_path / "in/shiftlog.yaml", "\n".join(f"{key}: {value}" for key, value in (WHOLE | {"hardware": "b200"}).items()))
    assert take(log, tmp_path / "in").new["ResultRecorded"] == 1
    assert [point["hardware"] for point in points(log)] == ["b200"]
    assert path.exists()


def test_a_run_json_dates_a_record_whose_clock_has_no_zone(log: EventLog, tmp_path: Path) -> None:
    write(tmp_path / "in/run.json", run_object(9, "2026-11-30T09:00:00Z"))
    write(tmp_path / "in/serve.json", serve())
    take(log, tmp_path / "in", **{key: value for key, value in WHOLE.items() if key != "timezone"})
    (point,) = points(log)
    assert (point["run_id"], point["measured_at"]) == ("9", parse_instant("2026-11-30T09:00:00Z", "t"))


def test_the_days_of_records_are_their_runs(log: EventLog, tmp_path: Path) -> None:
    """Three lines of one appended file: two of one UTC day (in Berlin it is the next one already), one of another."""
    clocks = ["20261130-010000", "20261130-233000", "20261201-003000"]
    lines = "\n".join(json.dumps(serve(place + 1, clock)) for place, clock in enumerate(clocks))
    intake = take(log, write(tmp_path / "in/appended.json", lines), **{**WHOLE, "timezone": "Europe/Berlin"})
    assert intake.quarantined == []
    found = {point["concurrency"]: point["run_id"] for point in points(log)}
    assert found == {1: "day-2026-11-30", 2: "day-2026-11-30", 3: "day-2026-11-30"}
    assert [str(point["measured_at"]) for point in points(log)] == [
        "2026-11-30 00:00:00+00:00",
        "2026-11-30 22:30:00+00:00",
        "2026-11-30 23:30:00+00:00",
    ]
    assert log.store.read("runs").select("run_id", "points", "declared").rows() == [("day-2026-11-30", 3, False)]


def test_a_run_can_be_named(log: EventLog, tmp_path: Path) -> None:
    take(log, write(tmp_path / "in/serve.json", serve()), run_id="nightly-1", run_source="lab", **WHOLE)
    (point,) = points(log)
    assert (point["run_source"], point["run_id"]) == ("lab", "nightly-1")
    assert "run_id" not in point["declared_fields"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hardware: [h100]", "hardware: a single value is wanted"),
        ("hardwear: h100", "'hardwear' is no key; the keys are"),
        ("tp: eight", "tp: 'eight': a whole number from 1 is wanted"),
        ("timezone: Mars/Olympus", "is no zone; write UTC"),
        ("measured_at: yesterday", "is not a time"),
        ("- hardware", "write one `key: value` a line"),
        ("files: [a]", "files: write `pattern:`"),
        ("a: *x", "not YAML"),
        ("hardware: " + "x" * 600, "1 to 512 characters"),
        ("x: " + "[" * 5000, "not YAML"),
        ("hardware: h100\n" * 9000, "larger than 64 KiB"),
    ],
)
def test_a_bad_sidecar_is_told_and_what_lies_below_it_waits(log: EventLog, tmp_path: Path, text: str, reason: str) -> None:
    write(tmp_path / "in/shiftlog.yaml", text)
    write(tmp_path / "in/serve.json", serve())
    (fault,) = take(log, tmp_path / "in", **WHOLE).quarantined
    assert fault.reason.startswith("shiftlog.yaml: ") and reason in fault.reason
    assert not points_of(log)
    (tmp_path / "in/shiftlog.yaml").unlink()
    assert take(log, tmp_path / "in", **WHOLE).quarantined == []
    assert log.store.read("quarantine").is_empty()


def points_of(log: EventLog) -> list[dict[str, Any]]:
    return log.store.read("points").to_dicts() if log.store.exists("points") else []


def test_a_sidecar_that_is_a_link_is_not_followed(log: EventLog, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere.yaml", "hardware: h100")
    write(tmp_path / "in/serve.json", serve())
    (tmp_path / "in/shiftlog.yaml").symlink_to(secret)
    intake = take(log, tmp_path / "in", timezone="UTC")
    assert [fault.reason.split(":")[0] for fault in intake.quarantined] == ["engine, hardware, num_gpus, precision"]


texts = st.text(max_size=30)


@given(
    st.dictionaries(st.one_of(st.sampled_from(sorted(KEYS)), texts), st.one_of(texts, st.integers(), st.booleans(), st.none()))
)
def test_what_is_declared_is_checked_or_refused(pairs: dict[str, Any]) -> None:
    try:
        plain = checked(pairs.items(), "--set")
    except InputError as error:
        assert str(error).startswith("--set: ")
    else:
        assert checked(plain.items(), "again") == plain


@given(st.binary(max_size=200))
def test_any_sidecar_is_read_or_refused(data: bytes) -> None:
    try:
        sidecar(data, "shiftlog.yaml")
    except InputError as error:
        assert str(error).startswith("shiftlog.yaml")


def test_zones() -> None:
    noon = datetime(2026, 7, 1, 12)
    for zone, hour in (("UTC", 12), ("+02:00", 10), ("UTC-7", 19), ("-0330", 15), ("Europe/Berlin", 10), ("Asia/Tokyo", 3)):
        assert placed(noon, {"timezone": zone}, "date").hour == hour
    for wrong in ("", "CEST2", "../../etc/passwd", "+99:00"):
        with pytest.raises(InputError, match=r"zone|no zone"):
            declarations.zone_of(wrong)


def test_going_back_to_an_earlier_declaration_is_a_correction(log: EventLog, tmp_path: Path) -> None:
    """h100, h200, h100: the third holds where it is said with `--correct`, once, however often it is said."""
    path = write(tmp_path / "in/serve.json", serve())
    first, second = {**WHOLE, "hardware": "h100"}, {**WHOLE, "hardware": "h200"}

    def holds() -> tuple[str, int]:
        (point,) = points(log)
        return point["hardware"], log.store.read("points").height

    take(log, path, **first)
    take(log, path, **second)
    assert take(log, path, **first).known == 1
    assert holds() == ("h200", 2)
    for declared, hardware, number in ((first, "h100", 3), (second, "h200", 4), (first, "h100", 5)):
        assert take(log, path, revision=log.last_sequence() + 1, **declared).new == {"ResultRecorded": 1}
        assert holds() == (hardware, number)
        assert take(log, path, revision=log.last_sequence() + 1, **declared).new == {}
        assert holds() == (hardware, number)
    assert verify(log) == []


def test_a_declaration_takes_the_place_of_none_and_can_be_taken_back(log: EventLog, tmp_path: Path) -> None:
    """A row that needs no declaration, then the commit of its engine, then (`--correct`) none again; that is retracted."""
    place = write_run(tmp_path / "in", 7, "2026-01-05T06:00:00Z", [row(4, image=None)])
    unknown, known = "unknown:vllm", f"commit:vllm/{'a' * 40}"

    def holds() -> tuple[str, int]:
        (point,) = points(log)
        return point["build_id"], log.store.read("points").height

    take(log, place)
    assert holds() == (unknown, 1)
    take(log, place, engine_commit="a" * 40)
    assert holds() == (known, 2)
    take(log, place, revision=log.last_sequence() + 1)
    assert holds() == (unknown, 3)
    (last,) = points(log)
    retract(log, last["point_id"], "the commit is right after all", NOW)
    following.refresh(log)
    found = [point for point in points(log) if point["retraction"] is None]
    assert [point["build_id"] for point in found] == [known]
    assert verify(log) == []


def test_a_record_that_is_declared_differently_in_two_places_is_said_once(log: EventLog, tmp_path: Path) -> None:
    for place, hardware in (("a", "h100"), ("b", "h200")):
        write(tmp_path / "in" / place / "shiftlog.yaml", f"hardware: {hardware}")
        write(tmp_path / "in" / place / "serve.json", serve())
    rest = {key: value for key, value in WHOLE.items() if key != "hardware"}
    take(log, tmp_path / "in", **rest)
    for _again in range(2):
        assert take(log, tmp_path / "in", revision=log.last_sequence() + 1, **rest).new == {}
        assert [point["hardware"] for point in points(log)] == ["h200"]
