"""The command line as users and other tools meet it: exit statuses, one-line errors, JSON and nothing else on stdout."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from pipelines.cli import main
from tests.lengths import FULL
from tests.records import row, run_object, sweep, write_run
from warehouse.schemas import PROJECTIONS
from warehouse.store import Store

ROOT = Path(__file__).resolve().parents[1]
OLD, NEW = "vllm/vllm-openai:v0.90.0", "vllm/vllm-openai:v0.91.0"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no workers for the little that is detected here; what is made once below is made by the default ones."""
    monkeypatch.setenv("SHIFTLOG_WORKERS", "serial")


@pytest.fixture
def warehouse(tmp_path: Path, made: Path) -> Path:
    """Three repeats of one build and then a build that is eight per cent slower, ingested and detected."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "warehouse"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what `warehouse` is a copy of, once."""
    folder = tmp_path_factory.mktemp("made")
    runs = folder / "runs"
    for day, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        write_run(runs, day, f"2026-01-0{day}T06:00:00Z", sweep(image=OLD, speed=wobble))
    write_run(runs, 4, "2026-01-04T06:00:00Z", sweep(image=NEW, speed=0.92))
    place = folder / "warehouse"
    assert call(place, "ingest", str(runs)).exit_code == 0
    assert call(place, "detect").exit_code == 0
    return folder


def call(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--warehouse", str(warehouse), *arguments], catch_exceptions=False)


def test_help_of_every_verb_has_an_example() -> None:
    assert set(main.commands) >= {
        "demo",
        "ingest",
        "detect",
        "shifts",
        "explain",
        "noise",
        "changes",
        "build",
        "report",
        "sql",
        "log",
        "rebuild",
        "verify",
        "retract",
        "compact",
        "doctor",
    }
    for name in main.commands:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0
        assert "Example" in result.stdout or name == "formats", name


def test_help_does_not_import_what_it_does_not_need() -> None:
    code = (
        "import sys; from pipelines.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'dagster', 'polars', 'deltalake', 'plotly', 'duckdb', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ingest_says_what_it_read_and_twice_adds_nothing(warehouse: Path, tmp_path: Path) -> None:
    again = call(warehouse, "ingest", str(tmp_path / "runs"))
    assert again.exit_code == 0
    assert again.stdout == ""
    assert "read 4 runs from 4 files, passed over 4 files read before; 0 in quarantine; 0 new events" in again.stderr


def test_what_cannot_be_read_gives_status_3_and_the_rest_goes_in(warehouse: Path, tmp_path: Path) -> None:
    bad = row(128, image=NEW, isl="long")
    write_run(tmp_path / "more", 5, "2026-01-05T06:00:00Z", [row(4, image=NEW), bad, "not a row", row(8, image=NEW)])
    result = call(warehouse, "ingest", str(tmp_path / "more"))
    assert result.exit_code == 3
    assert "2 points" in result.stderr and "2 in quarantine" in result.stderr
    assert "agg_bmk.json /1: isl:" in result.stderr
    rows = json.loads(
        call(warehouse, "sql", "SELECT name, position FROM quarantine ORDER BY position", "--format", "json").stdout
    )
    assert rows == [{"name": "more/run_5/agg_bmk.json", "position": "/1"}, {"name": "more/run_5/agg_bmk.json", "position": "/2"}]


def test_shifts_json_keeps_the_contract(warehouse: Path) -> None:
    result = call(warehouse, "shifts", "--format", "json")
    shifts = json.loads(result.stdout)
    assert len(shifts) == 1
    shift = shifts[0]
    assert {
        "shift_id",
        "status",
        "direction",
        "metric",
        "size_pct",
        "interval_pct",
        "cells",
        "cells_total",
        "noise_pct",
        "noise_repeats",
        "p_value",
        "q_value",
        "engine",
        "hardware",
        "model",
        "precision",
        "isl",
        "osl",
        "curve_id",
        "curve",
        "from",
        "to",
        "change_set",
        "attribution",
        "health",
        "kind",
        "dedupe_key",
        "echo_of",
        "superseded_by",
        "explained_share",
        "linked",
        "noise_version",
        "noise_insufficient",
    } <= shift.keys()
    for side in ("from", "to"):
        assert {"measured_at", "run_id", "image_ref", "image_digest", "engine_version"} <= shift[side].keys()
    assert (shift["direction"], shift["attribution"], shift["change_set"]) == ("regression", "engine", ["build"])
    assert shift["size_pct"] == pytest.approx(-8, abs=1)
    assert shift["interval_pct"][0] < shift["size_pct"] < shift["interval_pct"][1]
    assert (shift["from"]["engine_version"], shift["to"]["engine_version"]) == ("0.90.0", "0.91.0")
    assert shift["to"]["measured_at"] == "2026-01-04T06:00:00Z"
    assert shift["curve"]["tp"] == 8 and "concurrency" not in shift["curve"]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--engine", "vllm"), 1),
        (("--engine", "sglang"), 0),
        (("--since", "2026-01-04"), 1),
        (("--since", "2026-01-05"), 0),
        (("--status", "suspected"), 1),
        (("--status", "recovered"), 0),
    ],
)
def test_shifts_filters(warehouse: Path, options: tuple[str, ...], count: int) -> None:
    assert len(json.loads(call(warehouse, "shifts", "--format", "json", *options).stdout)) == count


def test_explain_takes_a_beginning_of_the_id(warehouse: Path) -> None:
    shift = json.loads(call(warehouse, "shifts", "--format", "json").stdout)[0]
    told = call(warehouse, "explain", shift["shift_id"][:8])
    assert told.exit_code == 0
    assert "engine: the build is all that is known to differ" in told.stdout
    assert OLD in told.stdout and NEW in told.stdout
    assert json.loads(call(warehouse, "explain", shift["shift_id"], "--format", "json").stdout)["upstream"] is None
    assert call(warehouse, "explain", "ffffffff").exit_code == 2


def test_explain_tells_why_a_comparison_is_no_shift(warehouse: Path) -> None:
    """Public fleets know this line, so that changes from 1.2 % on count."""
    chosen = "SELECT diff_id FROM diffs WHERE NOT flagged AND to_run_id = '2'"
    (row,) = json.loads(call(warehouse, "sql", chosen, "--format", "json").stdout)
    told = call(warehouse, "explain", row["diff_id"][:10])
    assert told.exit_code == 0
    assert told.stdout.startswith(f"{row['diff_id']}  not a shift: +0.2 % is below the least change that counts here, 1.2 %")
    answer = json.loads(call(warehouse, "explain", row["diff_id"], "--format", "json").stdout)
    assert (answer["shift_id"], answer["flagged"], answer["status"]) == (None, False, None)


def test_explain_says_what_is_not_known(warehouse: Path) -> None:
    shift = json.loads(call(warehouse, "shifts", "--format", "json").stdout)[0]
    told = call(warehouse, "explain", shift["shift_id"]).stdout
    gap = told[told.index("What we do not know:") :]
    assert "no digest is recorded on either side" in gap
    assert "whether it lasts: the later build ran once on this curve" in gap
    assert "insufficient repeats: only 2 of this stack" in told and "too few same-image repeats" in gap


def test_noise_lists_the_floors_of_both_repeats(warehouse: Path) -> None:
    """Three runs of one build are two repeats; the sizes are 0.2 and 0.3 %, so the scale is 1.4826 · 0.25 % / √2 = 0.26 %."""
    told = call(warehouse, "noise", "--engine", "vllm", "--metric", "tput_per_gpu", "--format", "json")
    line = next(row for row in json.loads(told.stdout) if (row["level"], row["unit"]) == ("line", "curve"))
    assert line["raw_scale_pct"] == pytest.approx(0.26, abs=0.005)
    assert (line["repeats"], line["insufficient"], line["until"]) == (2, True, "2026-01-03")
    assert "2 (insufficient)" in call(warehouse, "noise").stdout
    assert "use one of" in call(warehouse, "noise", "--metric", "power").stderr
    assert call(warehouse, "noise", "--engine", "nope").exit_code == 2


def test_detect_says_how_many_are_confirmed(warehouse: Path) -> None:
    told = call(warehouse, "detect").stderr
    assert "3 comparisons: 1 shift, 1 attributed to an engine build, 0 confirmed, 0 measurement notices" in told
    assert "not compared" not in told


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "COPY points TO '{out}'",
        "COPY (SELECT 1) TO '{out}'",
        "INSERT INTO points SELECT * FROM points",
        "DELETE FROM events",
        "DROP TABLE events",
        "UPDATE points SET tp = 1",
        "CREATE TABLE t AS SELECT 1",
        "ATTACH '{out}'",
        "EXPORT DATABASE '{out}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT 1; DROP TABLE points",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
        "WITH a AS (DELETE FROM points RETURNING *) SELECT * FROM a",
        "SELEC 1",
        "",
    ],
)
def test_sql_reads_no_file_writes_none_and_changes_nothing(warehouse: Path, tmp_path: Path, statement: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = call(warehouse, "sql", statement.format(out=tmp_path / "out"))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("shiftlog: ") and "root:" not in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert json.loads(call(warehouse, "sql", "SELECT count(*) n FROM points", "--format", "json").stdout) == [{"n": 20}]


def test_sql_does_not_even_open_what_a_statement_names(warehouse: Path, tmp_path: Path) -> None:
    """A pipe that nobody writes to blocks whoever opens it; binding alone must not."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "from pipelines.cli import main; main()", "--warehouse", str(warehouse), "sql"]
    done = subprocess.run([*command, f"SELECT * FROM read_csv('{pipe}')"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Permission Error" in done.stderr


@pytest.mark.parametrize("name", ["with space", "per#cent?", "ünï"])
def test_a_warehouse_in_a_folder_with_an_odd_name(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "runs", 1, "2026-01-01T06:00:00Z", sweep())
    place = tmp_path / name
    assert call(place, "ingest", str(tmp_path / "runs")).exit_code == 0
    assert call(place, "detect").exit_code == 0
    assert call(place, "verify").exit_code == 0
    assert json.loads(call(place, "sql", "SELECT count(*) AS n FROM points", "--format", "json").stdout) == [{"n": 5}]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["runs", name])


@pytest.mark.parametrize("name", ["a%41", "a[1]", "a|b"])
def test_a_folder_that_cannot_hold_tables_is_refused(tmp_path: Path, name: str) -> None:
    result = call(tmp_path / name, "ingest", str(tmp_path))
    assert result.exit_code == 2
    assert "name another" in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("value", ["INTERVAL 1 MONTH", "'infinity'::timestamp"])
@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_sql_says_what_cannot_be_shown(warehouse: Path, value: str, output: str) -> None:
    result = call(warehouse, "sql", f"SELECT {value} AS v", "--format", output)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("shiftlog: ") and "VARCHAR" in result.stderr


def test_sql_formats(warehouse: Path) -> None:
    statement = "SELECT concurrency, count(*) AS n, max(measured_at) AS last FROM points GROUP BY ALL ORDER BY ALL LIMIT 1"
    assert call(warehouse, "sql", statement, "--format", "csv").stdout == "concurrency,n,last\n4,4,2026-01-04T06:00:00Z\n"
    assert json.loads(call(warehouse, "sql", statement, "--format", "json").stdout) == [
        {"concurrency": 4, "n": 4, "last": "2026-01-04T06:00:00Z"}
    ]
    assert pl.read_parquet(io.BytesIO(call(warehouse, "sql", statement, "--format", "parquet").stdout_bytes)).height == 1
    assert "concurrency" in call(warehouse, "sql", "DESCRIBE points").stdout
    assert "points" in call(warehouse, "sql", "SHOW TABLES").stdout


def test_rebuild_gives_the_same_content_and_verify_agrees(warehouse: Path) -> None:
    lines = call(warehouse, "rebuild").stdout.splitlines()[2:]
    assert {line.split()[0] for line in lines} == set(PROJECTIONS)
    assert all(line.endswith("same") for line in lines)
    assert call(warehouse, "verify").exit_code == 0


def test_verify_finds_a_table_that_does_not_follow_from_the_log(warehouse: Path) -> None:
    store = Store(str(warehouse))
    points = store.read("points")
    store.overwrite("points", points.with_columns(tput_per_gpu=pl.col("tput_per_gpu") * 2), store.mark("points"))
    result = call(warehouse, "verify")
    assert result.exit_code == 1
    assert "table points does not follow from the log; run `shiftlog rebuild`" in result.stdout


def test_one_bad_reference_costs_no_other_its_answer(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["--warehouse", str(tmp_path / "none"), "build", "a b", "vllm/vllm-openai:v0.11.0"])
    assert told.exit_code == 2 and "vllm 0.11.0; sure" in told.stdout and "image 'a b'" in told.stderr


def test_build_tells_what_an_image_holds() -> None:
    result = CliRunner().invoke(
        main, ["build", "nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2", "rocm/sgl-dev:deepseek-v4-mi35x", "--format", "json"]
    )
    known, unknown = json.loads(result.stdout)
    assert set(known) >= {
        "image",
        "repo",
        "tag",
        "digest",
        "engine",
        "version",
        "commit",
        "date",
        "wrapper",
        "wrapper_version",
        "source",
        "confidence",
    }
    assert (known["engine"], known["version"], known["repo"]) == ("trtllm", "1.2.0rc2", "nvcr.io/nvidia/tensorrt-llm/release")
    assert (unknown["engine"], unknown["version"], unknown["source"], unknown["confidence"]) == (
        "sglang",
        None,
        "unknown",
        "none",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shifts",), "no warehouse at"),
        (("ingest", "/no/such/path"), "no such file or folder"),
        (("ingest", ".", "--measured-at", "yesterday"), "--measured-at"),
        (("ingest", ".", "--measured-at", "2026-01-01T00:00:00"), "time zone"),
        (("ingest", ".", "--set", "colour=red"), "--set"),
        (("build", "not an image"), "not an image reference"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    result = call(tmp_path / "none", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("shiftlog: ") and result.stderr.count("\n") == 1
    assert words in result.stderr


def test_report_is_one_page(warehouse: Path, tmp_path: Path) -> None:
    assert call(warehouse, "report", "--out", str(tmp_path / "page")).exit_code == 0
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["index.html"]
    text = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert NEW in text


def test_a_log_with_news_that_no_detection_saw_is_said(warehouse: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "late", 9, "2026-01-09T06:00:00Z", sweep(image=NEW, speed=0.921))
    call(warehouse, "ingest", str(tmp_path / "late"))
    assert "run `shiftlog detect`" in call(warehouse, "shifts").stderr
    call(warehouse, "detect")
    shift = json.loads(call(warehouse, "shifts", "--format", "json").stdout)[0]
    assert shift["status"] == "confirmed"
    assert [
        event["event_type"] for event in json.loads(call(warehouse, "log", "--type", "ShiftReported", "--format", "json").stdout)
    ] == ["ShiftReported", "ShiftReported"]


def test_strangers_text_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, "2026-01-01T06:00:00Z", [row(4, hw="\x1b[31mred\x07")])
    result = call(tmp_path / "warehouse", "ingest", str(tmp_path / "runs"))
    assert "\x1b" not in result.stderr and "\x07" not in result.stderr


def at(monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    """Let it be noon of a day of February 2026."""
    monkeypatch.setattr("warehouse.clock.system_clock", lambda: datetime(2026, 2, day, 12, tzinfo=UTC))


@pytest.fixture
def history(tmp_path: Path, learned: Path) -> Path:
    """Three repeats of a build learned on 1 February, the slower build on the 10th, its repeat on the 20th."""
    return Path(shutil.copytree(learned, tmp_path / "warehouse"))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what `history` is a copy of, once."""
    folder = tmp_path_factory.mktemp("learned")
    place = folder / "warehouse"
    nights = {1: [(1, OLD, 1.0), (2, OLD, 1.002), (3, OLD, 0.999)], 10: [(4, NEW, 0.92)], 20: [(5, NEW, 0.921)]}
    with pytest.MonkeyPatch.context() as patch:
        for day, runs in nights.items():
            at(patch, day)
            for number, image, speed in runs:
                write_run(folder / f"runs{day}", number, f"2026-01-0{number}T06:00:00Z", sweep(image=image, speed=speed))
            assert call(place, "ingest", str(folder / f"runs{day}")).exit_code == 0
            assert call(place, "detect").exit_code == 0
    return place


def versions(place: Path) -> dict[str, int]:
    store = Store(str(place))
    return {name: store.version(name) for name in ("events", *PROJECTIONS)}


def counted(place: Path, *arguments: str) -> int:
    (line,) = json.loads(call(place, "sql", *arguments, "--format", "json").stdout)
    return int(line["n"])


COUNT = "SELECT count(*) AS n FROM points"
BEFORE_NOON, NOON = "2026-02-10T11:59:59Z", "2026-02-10T12:00:00Z"
KNOWN = [
    ("2026-02-01", 15, []),
    ("2026-02-09", 15, []),
    (BEFORE_NOON, 15, []),
    (NOON, 20, ["suspected"]),
    ("2026-02-10", 20, ["suspected"]),
    ("2026-02-19", 20, ["suspected"]),
    ("2026-02-20", 25, ["confirmed"]),
    ("2030-01-01", 25, ["confirmed"]),
]


def test_as_of_a_day_is_what_was_known_at_its_end(history: Path) -> None:
    before = versions(history)
    for when, points, statuses in KNOWN if FULL else KNOWN[2:7:2] + KNOWN[3:4]:
        assert counted(history, COUNT, "--as-of", when) == points, when
        shown = json.loads(call(history, "shifts", "--as-of", when, "--format", "json").stdout)
        assert [shift["status"] for shift in shown] == statuses, when
    assert versions(history) == before
    assert counted(history, COUNT) == 25


def test_detect_as_of_a_day_tells_and_writes_nothing(history: Path) -> None:
    before = versions(history)
    told = call(history, "detect", "--as-of", "2026-02-05")
    assert told.exit_code == 0 and ": 0 shifts, 0 attributed to an engine build" in told.stderr
    told = call(history, "detect", "--as-of", "2026-02-10")
    assert ": 1 shift, 1 attributed to an engine build" in told.stderr and "statement" not in told.stderr
    assert versions(history) == before


def test_report_as_of_a_day_knows_nothing_later(history: Path, tmp_path: Path) -> None:
    for when, knows in (("2026-02-05", False), ("2026-02-10", True)):
        folder = tmp_path / f"page-{when}"
        assert call(history, "report", "--out", str(folder), "--as-of", when).exit_code == 0
        text = (folder / "index.html").read_text("utf-8")
        assert "v0.90.0" in text and ("v0.91.0" in text) is knows


@pytest.mark.parametrize("verb", [("detect",), ("shifts",), ("sql", COUNT), ("report",)])
@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("2026-01-31", "nothing had been recorded by then"),
        ("yesterday", "is not a time"),
        ("2026-02-10T12:00:00", "no time zone"),
    ],
)
def test_as_of_a_time_that_cannot_be_is_one_line(history: Path, verb: tuple[str, ...], when: str, words: str) -> None:
    result = call(history, *verb, "--as-of", when)
    assert result.exit_code == 2
    assert result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.startswith("shiftlog: --as-of") and words in result.stderr


def test_what_was_retracted_is_left_out_until_that_is_undone(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 22)
    said = call(history, "retract", "example/fleet/4", "--reason", "test branch")
    assert said.exit_code == 0 and "retracted run example/fleet/4/1" in said.stderr
    assert counted(history, COUNT) == 20
    assert counted(history, "SELECT count(*) AS n FROM runs") == 4
    kept = "SELECT run_id, retraction, count(*) AS n FROM all_points WHERE retraction IS NOT NULL GROUP BY ALL"
    assert json.loads(call(history, "sql", kept, "--format", "json").stdout) == [
        {"run_id": "4", "retraction": "test branch", "n": 5}
    ]
    assert counted(history, COUNT, "--as-of", "2026-02-21") == 25
    assert "run `shiftlog detect`" in call(history, "shifts").stderr
    at(monkeypatch, 23)
    assert call(history, "retract", "4", "--reason", "it was main", "--undo").stderr.startswith(
        "reinstated run example/fleet/4/1"
    )
    assert counted(history, COUNT) == 25
    assert counted(history, COUNT, "--as-of", "2026-02-22") == 20
    assert call(history, "verify").exit_code == 0


def test_a_single_point_can_be_retracted(history: Path) -> None:
    wanted = "SELECT point_id FROM points WHERE run_id = '4' AND concurrency = 8"
    (point,) = json.loads(call(history, "sql", wanted, "--format", "json").stdout)
    assert call(history, "retract", point["point_id"][:12], "--reason", "cold").exit_code == 0
    assert counted(history, COUNT) == 24
    assert json.loads(call(history, "sql", wanted, "--format", "json").stdout) == []
    assert call(history, "retract", point["point_id"], "--reason", "was warm", "--undo").exit_code == 0
    assert counted(history, COUNT) == 25


def test_a_detection_leaves_out_what_was_retracted(history: Path) -> None:
    for number in ("4", "5"):
        call(history, "retract", number, "--reason", "bad host")
    call(history, "detect")
    shown = json.loads(call(history, "shifts", "--format", "json").stdout)
    assert [shift["status"] for shift in shown] == ["retracted"]


@pytest.mark.parametrize(
    ("target", "reason", "words"),
    [("99", "x", "no such run or point"), ("ffffffff", "x", "no such run or point"), ("4", " ", "--reason")],
)
def test_a_retraction_of_nothing_or_for_nothing_is_refused(history: Path, target: str, reason: str, words: str) -> None:
    before = versions(history)
    result = call(history, "retract", target, "--reason", reason)
    assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1
    assert versions(history) == before


def test_compact_loses_nothing(history: Path) -> None:
    events = call(history, "log", "--limit", "1000", "--format", "json").stdout
    points = call(history, "sql", "FROM points", "--format", "csv").stdout
    result = call(history, "compact")
    assert result.exit_code == 0
    assert {line.split()[0] for line in result.stdout.splitlines()[2:]} == {"events", *PROJECTIONS}
    assert call(history, "log", "--limit", "1000", "--format", "json").stdout == events
    assert call(history, "sql", "FROM points", "--format", "csv").stdout == points
    assert call(history, "verify").exit_code == 0
    assert call(history, "compact").exit_code == 0


def test_a_correction_holds_against_later_reports(tmp_path: Path) -> None:
    """Started on the 1st, they say; the user says the 9th; then the source changes its report again."""
    place, folder = tmp_path / "warehouse", write_run(tmp_path / "runs", 1, "2026-01-01T06:00:00Z", sweep())
    assert call(place, "ingest", str(folder)).exit_code == 0
    day = "SELECT DISTINCT strftime(measured_at, '%d') AS n FROM points"
    assert counted(place, day) == 1
    for started, updated, option, expected in (
        ("2026-01-09T06:00:00Z", None, "--correct", 9),
        ("2026-01-11T06:00:00Z", "2026-01-20T06:00:00Z", None, 9),
        ("2026-01-12T06:00:00Z", None, "--correct", 12),
    ):
        told = run_object(1, started, **({"updated_at": updated} if updated else {}))
        (folder / "run.json").write_text(json.dumps(told), "utf-8")
        assert call(place, "ingest", str(folder), *([option] if option else [])).exit_code == 0
        assert counted(place, day) == expected
    assert counted(place, "SELECT reports AS n FROM runs") == 4
    assert counted(place, COUNT) == 5
    assert call(place, "verify").exit_code == 0


def test_workers_that_nobody_knows_are_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, "2026-01-01T06:00:00Z", sweep())
    call(tmp_path / "warehouse", "ingest", str(tmp_path / "runs"))
    result = call(tmp_path / "warehouse", "detect", "--workers", "threads")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and "--workers 'threads'" in result.stderr


def test_the_log_is_followed_page_by_page(history: Path) -> None:
    """With --after come the next events, so that none is passed over."""
    every = [event["sequence"] for event in json.loads(call(history, "log", "--limit", "1000", "--format", "json").stdout)]
    assert every == list(range(1, len(every) + 1))
    followed: list[int] = []
    while True:
        page = call(history, "log", "--after", str(followed[-1] if followed else 0), "--limit", "7", "--format", "json")
        events = [event["sequence"] for event in json.loads(page.stdout)]
        if not events:
            break
        assert ("more follow" in page.stderr) == (events[-1] < every[-1])
        followed += events
    assert followed == every
    assert "no such event" in call(history, "log", "--type", "Foo").stderr


def test_sql_does_not_depend_on_the_zone_of_the_machine(history: Path) -> None:
    asked = (
        "SELECT count(*) FILTER (recorded_at <= now()), count(*) FROM points WHERE measured_at >= TIMESTAMPTZ '2026-01-01 00:00Z'"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", "from pipelines.cli import main; main()", "--warehouse", str(history), "sql", asked],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone in ("UTC", "Asia/Tokyo", "America/New_York")
    }
    assert len(answers) == 1


def test_an_empty_warehouse_is_refused_and_the_last_day_is_a_day(history: Path) -> None:
    empty = CliRunner().invoke(main, ["--warehouse", "", "sql", "SELECT 1"])
    assert (empty.exit_code, "is empty" in empty.stderr) == (2, True)
    last = call(history, "sql", "SELECT count(*) AS n FROM events", "--as-of", "9999-12-31", "--format", "csv")
    assert last.stdout == call(history, "sql", "SELECT count(*) AS n FROM events", "--format", "csv").stdout
