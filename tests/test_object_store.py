"""A warehouse on an object store is a warehouse: the same tables, every fact once, and one plain line where the store fails."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from pipelines.cli import main
from pipelines.following import Follower
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.projections import run_detection
from tests import object_store as loopback
from tests.lengths import either
from tests.object_store import BUCKET, UNSET, ObjectStore
from tests.records import sweep, write_run
from warehouse import object_store
from warehouse.digest import content_hash
from warehouse.events import Event, ResultRecorded, RunKey, Source, event_of
from warehouse.layout import CHECKPOINT_EVERY
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS, SUBJECTS, TABLES
from warehouse.store import Change, Mark, Store

ROOT = Path(__file__).resolve().parents[1]
NOW = datetime(2026, 2, 1, tzinfo=UTC)
LATER = datetime(2026, 2, 2, tzinfo=UTC)
OLD, NEW = "vllm/vllm-openai:v0.90.0", "vllm/vllm-openai:v0.91.0"
WRONG = "a-secret-that-nobody-should-read"
PROGRAM = (sys.executable, "-c", "from pipelines.cli import main; main()")
_prefixes = count()

pytestmark = pytest.mark.skipif(
    find_spec("moto") is None or find_spec("flask_cors") is None, reason="moto's server is not installed (extra dev)"
)


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with loopback.object_store() as running:
        yield running


@pytest.fixture
def remote(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of an empty warehouse; the environment has the keys to it."""
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/fleet/w{next(_prefixes)}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three repeats of one build and then a build that is eight per cent slower: 4 runs of 5 points."""
    folder = tmp_path_factory.mktemp("remote") / "runs"
    for day, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        write_run(folder, day, f"2026-01-0{day}T06:00:00Z", sweep(image=OLD, speed=wobble))
    write_run(folder, 4, "2026-01-04T06:00:00Z", sweep(image=NEW, speed=0.92))
    return folder


def call(warehouse: str, *arguments: str) -> Result:
    """Run one command in this process; wherever it ends, no secret may be in what it wrote."""
    result = CliRunner().invoke(main, ["--warehouse", warehouse, *arguments], catch_exceptions=False)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in result.stdout + result.stderr
    return result


def answer(warehouse: str, *arguments: str) -> str:
    result = call(warehouse, *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def filled(uri: str, runs: Path) -> EventLog:
    """Ingest one run, then all of them, and detect, at fixed times."""
    log = EventLog(Store(uri))
    for path, at in ((runs / "run_1", NOW), (runs, LATER)):
        tables = Follower(log)
        ingest(
            log, (str(path),), Declared(), recorded_at=at, mirrors=Path("absent"), announce=lambda _name: None, fold=tables.fold
        )
        tables.settle()
    run_detection(log, LATER)
    return log


def hashes(log: EventLog) -> dict[str, str]:
    return {name: content_hash(log.store.read(name)) for name in TABLES}


def event(number: int) -> Event:
    result = ResultRecorded(run=RunKey(run_source="local", run_id="1"), record_format="inferencex", record={"n": number})
    return event_of(result, occurred_at=NOW, recorded_at=NOW, source=Source(name="a.json"))


def test_every_verb_works_as_it_does_on_a_folder(remote: str, runs: Path, tmp_path: Path) -> None:
    first = call(remote, "ingest", str(runs))
    assert (first.exit_code, first.stdout) == (0, "")
    assert "4 runs, 20 points from 8 files; 0 in quarantine" in first.stderr
    again = call(remote, "ingest", str(runs))
    assert again.exit_code == 0
    assert "0 new events" in again.stderr
    assert call(remote, "detect").exit_code == 0
    (shift,) = json.loads(answer(remote, "shifts", "--format", "json"))
    assert (shift["direction"], shift["attribution"], shift["to"]["image_ref"]) == ("regression", "engine", NEW)
    query = "SELECT run_id, count(*) AS points FROM points GROUP BY 1 ORDER BY 1"
    assert [(row["run_id"], row["points"]) for row in json.loads(answer(remote, "sql", query, "--format", "json"))] == [
        ("1", 5),
        ("2", 5),
        ("3", 5),
        ("4", 5),
    ]
    assert len(json.loads(answer(remote, "log", "--type", "ResultRecorded", "--format", "json"))) == 20
    answer(remote, "report", "--out", str(tmp_path / "page"))
    assert NEW in (tmp_path / "page" / "index.html").read_text("utf-8")
    before_and_after = [line.split() for line in answer(remote, "rebuild").splitlines()[2:]]
    assert {name for name, *_ in before_and_after} == set(PROJECTIONS)
    assert {content for *_, content in before_and_after} == {"same"}
    answer(remote, "verify")


def test_tables_are_those_of_a_folder(remote: str, runs: Path, tmp_path: Path) -> None:
    log, expected = filled(remote, runs), hashes(filled(str(tmp_path / "warehouse"), runs))
    assert log.store.count("points") == 20
    assert log.store.count("shifts") == 1
    assert hashes(log) == expected


SETS = {"two": ("run_[123]", "run_[234]"), "four": ("*", "run_[12]", "run_[34]", "*")}


@pytest.mark.parametrize("sets", list(SETS.values())[: either(1, 2)], ids=list(SETS)[: either(1, 2)])
def test_writers_at_once_record_every_fact_once(
    remote: str, runs: Path, server: ObjectStore, tmp_path: Path, sets: tuple[str, ...]
) -> None:
    single = EventLog(Store(str(tmp_path / "single")))
    ingest(single, (str(runs),), Declared(), recorded_at=NOW, mirrors=Path("absent"), announce=lambda _name: None)
    processes = [
        subprocess.Popen(
            [*PROGRAM, "--warehouse", remote, "ingest", *map(str, sorted(runs.glob(files)))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for files in sets
    ]
    for process in processes:
        out, err = process.communicate(timeout=300)
        said = [text for text in err.splitlines() if text and not text.startswith("reading ")]
        assert process.returncode == 0, err
        assert out == ""
        assert len(said) == 1
        assert said[0].startswith("read "), said
        assert server.secret not in err
    log = EventLog(Store(remote))
    assert sorted(log.read()["event_id"]) == sorted(single.read()["event_id"])
    assert log.read()["sequence"].to_list() == list(range(1, single.last_sequence() + 1))
    assert log.store.read("points")["point_id"].n_unique() == log.store.count("points") == 20
    answer(remote, "verify")


@pytest.mark.parametrize(
    ("verb", "changed", "address", "words"),
    [
        ("sql", {"AWS_SECRET_ACCESS_KEY": WRONG}, f"s3://{BUCKET}/w", "refuses the credentials"),
        ("ingest", {"AWS_SECRET_ACCESS_KEY": WRONG}, f"s3://{BUCKET}/w", "refuses the credentials"),
        (
            "sql",
            {"AWS_ACCESS_KEY_ID": "AKIANOBODY", "AWS_SECRET_ACCESS_KEY": WRONG},
            f"s3://{BUCKET}/w",
            "refuses the credentials",
        ),
        ("ingest", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, f"s3://{BUCKET}/w", "does not answer"),
        ("sql", {"AWS_ALLOW_HTTP": "false"}, f"s3://{BUCKET}/w", "AWS_ALLOW_HTTP"),
        ("sql", {}, "s3://another-bucket/w", "no such bucket"),
        ("ingest", {}, "s3://another-bucket/w", "no such bucket"),
    ],
    ids=["read-secret", "write-secret", "key", "down", "http", "read-bucket", "write-bucket"],
)
def test_a_store_that_refuses_is_one_plain_line(
    remote: str,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    changed: dict[str, str],
    address: str,
    words: str,
) -> None:
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    result = call(address, verb, "FROM points" if verb == "sql" else str(runs))
    assert (result.exit_code, result.stdout) == (1, "")
    (said,) = [line for line in result.stderr.splitlines() if not line.startswith("reading ")]
    assert said.startswith("shiftlog: ")
    assert words in said
    assert "\x1b" not in said


def test_a_store_that_never_answers_is_given_up(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "OPTIONS", dict.fromkeys(object_store.OPTIONS, "1s"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        result = call(remote, "sql", "FROM points")
    assert result.exit_code == 1
    assert "does not answer" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_no_request_is_tried_for_longer_than_a_user_waits() -> None:
    assert object_store.OPTIONS.keys() == {"connect_timeout", "timeout", "retry_timeout"}
    assert all(int(value.removesuffix("s")) <= 30 for value in object_store.OPTIONS.values())


@pytest.mark.parametrize(
    "address",
    [
        "s3://",
        "s3:///w",
        "s5://bucket/w",
        f"s3://key:{WRONG}@bucket/w",
        f"s3://bucket/w?secret={WRONG}",
        "s3://bucket/a b",
        "s3://b/a%20b",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["--warehouse", address, "sql", "FROM points"], catch_exceptions=False)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert WRONG not in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_table_at_hand_costs_one_request(remote: str, server: ObjectStore) -> None:
    EventLog(Store(remote)).append([event(1)])
    store = Store(remote)
    assert store.mark("events") is not None
    before = len(server.requests())
    assert store.mark("events") == store.mark("events")
    asked = [
        request for request in server.requests()[before:] if not request.endswith(".json")
    ]  # an early look at a commit may end late
    assert len(asked) == 2
    assert all(request.startswith(f"GET /{BUCKET}?list-type=2&") for request in asked)


def test_many_commits_leave_few_requests_to_open(remote: str, server: ObjectStore) -> None:
    store, commits = Store(remote), CHECKPOINT_EVERY + 2
    for number in range(1, commits + 1):
        frame = pl.DataFrame([(f"run:{number}", number, number)], schema=SUBJECTS.schema, orient="row")
        store.commit("subjects", lambda _scan, _mark, frame=frame, number=number: Change(frame, Mark(number)))
    before = len(server.requests())
    opened = Store(remote)
    assert opened.mark("subjects") == Mark(commits)
    read = {path for path in server.requests()[before:] if "_delta_log/0" in path and path.endswith(".json")}
    assert 0 < len(read) < CHECKPOINT_EVERY
    assert opened.compact("subjects") == (commits, 1)
    opened.vacuum("subjects", timedelta(0))
    assert Store(remote).read("subjects")["first_sequence"].sort().to_list() == list(range(1, commits + 1))


def test_what_another_writer_commits_is_seen_at_once(remote: str) -> None:
    reader, writer = EventLog(Store(remote)), EventLog(Store(remote))
    assert reader.last_sequence() == 0
    for number in (1, 2, 3):
        writer.append([event(number)])
        assert reader.last_sequence() == number
    assert reader.append([event(2), event(4)]) == {"ResultRecorded": 1}
    assert writer.read()["sequence"].to_list() == [1, 2, 3, 4]


def test_a_scan_stays_at_the_version_of_its_mark(remote: str) -> None:
    log = EventLog(Store(remote))
    log.append([event(1)])
    assert log.last_sequence() == 1
    scan, mark = log.store.scan_marked("events")
    log.append([event(2)])
    assert mark is not None
    assert scan.collect().height == mark.up_to == 1


def test_a_store_is_sent_to_another_process_without_its_open_tables(remote: str) -> None:
    log = EventLog(Store(remote))
    log.append([event(1)])
    assert log.last_sequence() == 1
    assert EventLog(pickle.loads(pickle.dumps(log.store))).last_sequence() == 1
