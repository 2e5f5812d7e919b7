"""Tables on disk: the exact-schema gate, the append-only log, files that other engines can read, one-line errors."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tests.frames import frame, point
from warehouse.errors import InputError, SchemaError, StoreError
from warehouse.events import ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS, TABLES
from warehouse.store import Change, Mark, Store, default_uri

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def append_one(log: EventLog, number: int = 1) -> None:
    payload = ResultRecorded(run=RunKey(run_source="local", run_id="1"), record_format="inferencex", record={"n": number})
    log.append([event_of(payload, occurred_at=NOW, recorded_at=NOW, source=Source(name="a.json"))])


def data_files(store: Store, name: str) -> list[Path]:
    return sorted(Path(store.table_uri(name)).glob("*.parquet"))


@pytest.mark.parametrize("name", TABLES)
def test_an_absent_table_is_empty_and_has_its_schema(store: Store, name: str) -> None:
    read = store.read(name)
    assert read.is_empty()
    assert read.schema == TABLES[name].schema
    assert store.version(name) is None
    assert not Path(store.uri).exists()


@pytest.mark.parametrize("name", PROJECTIONS)
def test_every_projection_keeps_its_types_and_its_place_in_the_log(store: Store, name: str) -> None:
    store.overwrite(name, frame(name), Mark(17, 5))
    assert store.read(name).schema == TABLES[name].schema
    assert store.mark(name) == Mark(17, 5)
    store.overwrite(name, frame(name), Mark(18, 2**48 - 1))
    assert store.mark(name) == Mark(18, 2**48 - 1)


def test_the_mark_is_that_of_the_last_commit_and_survives_upkeep(store: Store) -> None:
    assert store.mark("points") is None
    for number in range(3):
        store.overwrite("points", frame("points", [point(point_id=str(number))]), Mark(number, 40 + number))
    assert store.mark("points") == Mark(2, 42)
    store.compact("points")
    store.vacuum("points")
    assert store.mark("points") == Mark(2, 42)
    DeltaTable(store.table_uri("points")).cleanup_metadata()
    assert store.mark("points") == Mark(2, 42)


def test_a_table_of_another_schema_has_no_mark(store: Store) -> None:
    """It must be built again."""
    store.overwrite("points", frame("points", [point()]), Mark(7))
    narrower = frame("points", [point()]).drop("verdict").to_arrow(compat_level=pl.CompatLevel.oldest())
    write_deltalake(store.table_uri("points"), narrower, mode="overwrite", schema_mode="overwrite")
    assert store.mark("points") is None
    assert store.scan_marked("points")[1] is None


def test_overwrite_replaces_and_orders(store: Store) -> None:
    store.overwrite("points", frame("points", [point(point_id="old")]), Mark(1))
    store.overwrite("points", frame("points", [point(run_id="2", point_id="b"), point(run_id="1", point_id="a")]), Mark(2))
    assert store.read("points")["point_id"].to_list() == ["a", "b"]
    assert store.version("points") == 2  # the empty table, then one commit each


def changed(kind: str) -> pl.DataFrame:
    whole = frame("points", [point()])
    return {
        "float for int": whole.with_columns(concurrency=pl.lit(7.9)),
        "unsigned": whole.with_columns(concurrency=pl.lit(7, pl.UInt8)),
        "int32": whole.with_columns(tp=pl.lit(7, pl.Int32)),
        "milliseconds": whole.with_columns(pl.col("measured_at").cast(pl.Datetime("ms", "UTC"))),
        "no zone": whole.with_columns(pl.col("measured_at").dt.replace_time_zone(None)),
        "categorical": whole.with_columns(pl.col("engine").cast(pl.Categorical)),
        "null": whole.with_columns(router=pl.lit(None)),
        "missing": whole.drop("verdict"),
        "missing order column": whole.drop("measured_at"),
        "extra": whole.with_columns(colour=pl.lit("red")),
        "reordered": whole.select(sorted(whole.columns)),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("float for int", "concurrency: Float64 given, Int64 wanted"),
        ("unsigned", "concurrency: UInt8 given, Int64 wanted"),
        ("int32", "tp: Int32 given, Int64 wanted"),
        ("milliseconds", "measured_at: Datetime.*'ms'.* given, Datetime.*'us'.* wanted"),
        ("no zone", "measured_at: Datetime.* given"),
        ("categorical", "engine: Categorical.* given, String wanted"),
        ("null", "router: Null given, String wanted"),
        ("missing", "verdict is missing"),
        ("missing order column", "measured_at is missing"),
        ("extra", "colour: String given, None wanted"),
        ("reordered", "columns are in another order"),
    ],
)
def test_only_the_exact_schema_is_written(store: Store, kind: str, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^table points: {message}"):
        store.overwrite("points", changed(kind), Mark(1))
    assert not store.exists("points")


def test_the_gate_stands_before_the_log_too(store: Store) -> None:
    wrong = frame("events").with_columns(pl.col("sequence").cast(pl.Float64)).clear(1)
    with pytest.raises(SchemaError, match="table events: sequence: Float64 given, Int64 wanted"):
        store.commit("events", lambda _scan, _mark: Change(wrong, Mark(1)))
    assert store.version("events") == 0
    assert store.mark("events") is None


def test_the_log_cannot_be_replaced_or_cut(store: Store, log: EventLog) -> None:
    append_one(log)
    with pytest.raises(StoreError, match="append-only"):
        store.overwrite("events", frame("events"), Mark(0))
    with pytest.raises(DeltaError, match=r"(?i)append"):
        DeltaTable(store.table_uri("events")).delete("sequence = 1")
    with pytest.raises(DeltaError, match=r"(?i)append"):
        write_deltalake(store.table_uri("events"), store.read("events").to_arrow(), mode="overwrite")
    assert store.read("events").height == 1
    settings = DeltaTable(store.table_uri("events")).metadata().configuration
    assert settings["delta.appendOnly"] == "true"


def test_files_hold_plain_strings_and_utc_microseconds(store: Store, log: EventLog) -> None:
    append_one(log)
    store.overwrite(
        "points", frame("points", [point(health=["cold_start"], metrics_other=[{"name": "a", "value": 1.0}])]), Mark(1)
    )
    for name, column in (("events", "payload"), ("points", "engine")):
        (path,) = data_files(store, name)
        file = pq.ParquetFile(path)
        place = file.schema_arrow.get_field_index(column)
        assert (file.schema.column(place).physical_type, str(file.schema.column(place).logical_type)) == ("BYTE_ARRAY", "String")
        assert not [field.name for field in file.schema_arrow if "view" in str(field.type) or "dictionary" in str(field.type)]
        assert pa.types.is_large_string(file.schema_arrow.field(column).type)
    times = pq.read_schema(data_files(store, "points")[0]).field("measured_at").type
    assert (times.unit, times.tz) == ("us", "UTC")


def one_line(action: object) -> str:
    assert callable(action)
    with pytest.raises((StoreError, InputError)) as failed:
        action()
    text = str(failed.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


def test_a_file_where_the_warehouse_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is a file; name a folder" in one_line(lambda: Store(str(tmp_path / "file")))
    assert "cannot be" in one_line(lambda: append_one(EventLog(Store(str(tmp_path / "file" / "below")))))


def test_a_file_where_a_table_should_be(store: Store, log: EventLog) -> None:
    Path(store.uri).mkdir()
    Path(store.table_uri("events")).write_text("x")
    assert "table events" in one_line(lambda: append_one(log))


@pytest.mark.parametrize("damage", ["not json", '{"commitInfo":{}}\n{"add":', "\x00\x01"])
def test_a_damaged_delta_log(store: Store, log: EventLog, damage: str) -> None:
    append_one(log)
    append_one(log, 2)
    (Path(store.table_uri("events")) / "_delta_log" / f"{1:020}.json").write_text(damage)
    assert "table events" in one_line(lambda: Store(store.uri).read("events"))
    assert "table events" in one_line(lambda: append_one(log, 3))


@pytest.mark.parametrize("damage", [b"", b"PAR1 no parquet", None], ids=["empty", "garbage", "gone"])
def test_a_damaged_data_file(store: Store, log: EventLog, damage: bytes | None) -> None:
    append_one(log)
    (path,) = data_files(store, "events")
    path.unlink() if damage is None else path.write_bytes(damage)
    assert "table events" in one_line(lambda: store.read("events"))
    assert "table events" in one_line(lambda: log.read("ResultRecorded"))
    assert "table events" in one_line(log.read)
    assert "table events" in one_line(lambda: append_one(log, 2))


def test_a_table_of_another_version_is_named_as_such(store: Store) -> None:
    other = frame("points", [point()]).drop("verdict")
    write_deltalake(store.table_uri("points"), other.to_arrow(compat_level=pl.CompatLevel.oldest()))
    assert "another version of shiftlog; run `shiftlog rebuild`" in one_line(lambda: store.read("points"))
    store.overwrite("points", frame("points", [point()]), Mark(1))
    assert store.read("points").height == 1


def test_a_column_of_another_type_is_another_version(store: Store) -> None:
    other = frame("points", [point()]).with_columns(pl.col("concurrency").cast(pl.Float64))
    write_deltalake(store.table_uri("points"), other.to_arrow(compat_level=pl.CompatLevel.oldest()))
    assert "another version" in one_line(lambda: store.read("points"))


def test_many_small_commits_leave_few_files_and_every_row(store: Store, log: EventLog) -> None:
    for number in range(60):
        append_one(log, number)
        row = point(point_id=f"{number:02}", run_id=f"{number:02}")
        store.commit("points", lambda _scan, mark, row=row: Change(frame("points", [row]), Mark((mark.up_to if mark else 0) + 1)))
        for name in ("events", "points", "subjects"):
            assert len(store.file_sizes(name)) <= 21
    assert log.read()["sequence"].to_list() == list(range(1, 61))
    assert [int(payload.record["n"]) for _row, payload in log.payloads("ResultRecorded")] == list(range(60))
    assert store.read("points")["point_id"].to_list() == [f"{number:02}" for number in range(60)]
    assert (store.mark("events"), store.mark("points")) == (Mark(60), Mark(60))
    assert log.standing({"run:local/1/1"}) == {"run:local/1/1": (1, 60)}
    assert store.compact("events")[1] == 1
    assert log.read()["sequence"].to_list() == list(range(1, 61))


def test_only_what_may_be_forgotten_is_vacuumed(store: Store, log: EventLog) -> None:
    for number in range(3):
        append_one(log, number)
        store.overwrite("points", frame("points", [point(point_id=str(number))]), Mark(number))
    store.compact("events")
    with pytest.raises(StoreError, match=r"^table events is never vacuumed$"):
        store.vacuum("events", timedelta(0))
    assert len(data_files(store, "events")) == 4, "the three that were merged stay"
    assert store.vacuum("points") == 0, "a reader may have them open"
    assert store.vacuum("points", timedelta(0)) == 2
    assert store.read("points")["point_id"].to_list() == ["2"]
    assert store.vacuum("runs") == 0


@pytest.mark.parametrize("end", [None, 9])
def test_a_slow_process_does_not_take_back_what_a_quick_one_wrote(store: Store, end: int | None) -> None:
    """Unless the log itself is shorter than what the table has seen."""
    store.overwrite("points", frame("points", [point(point_id="quick")]), Mark(9, 5), 9)
    assert store.overwrite("points", frame("points", [point(point_id="slow")]), Mark(8, 5), end) is (end is None)
    assert store.read("points")["point_id"].to_list() == ["slow" if end is None else "quick"]
    assert store.overwrite("points", frame("points", [point(point_id="code")]), Mark(8, 6), 9)
    assert store.overwrite("points", frame("points", [point(point_id="cut")]), Mark(2, 6), 2)


def test_a_store_sees_what_others_do_to_its_tables(store: Store) -> None:
    """A table that was opened is read again only while it is the newest: also where it was made anew with as many commits."""
    other = Store(store.uri)

    def read() -> list[str]:
        return store.read("points")["point_id"].to_list()

    store.overwrite("points", frame("points", [point(point_id="own")]), Mark(1))
    assert read() == ["own"]
    other.overwrite("points", frame("points", [point(point_id="other")]), Mark(2))
    assert (read(), store.mark("points"), store.version("points")) == (["other"], Mark(2), 2)
    shutil.rmtree(store.table_uri("points"))
    assert (read(), store.version("points"), store.exists("points")) == ([], None, False)
    for number in (3, 4):
        other.overwrite("points", frame("points", [point(point_id=str(number))]), Mark(number))
        assert (read(), store.mark("points")) == ([str(number)], Mark(number))
    shutil.rmtree(store.table_uri("points"))
    for number in (5, 6):
        other.overwrite("points", frame("points", [point(point_id=str(number))]), Mark(number))
    assert (read(), store.mark("points"), store.version("points")) == (["6"], Mark(6), 2)


def test_default_warehouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIFTLOG_WAREHOUSE", raising=False)
    assert default_uri() == "shiftlog-data"
    monkeypatch.setenv("SHIFTLOG_WAREHOUSE", "s3://bucket/x")
    assert default_uri() == "s3://bucket/x"
    assert not Store("s3://bucket/x/").local
    assert Store("s3://bucket/x/").table_uri("events") == "s3://bucket/x/events"
