"""The log under many writers, crashes and repeats: every fact once, one total order without gaps."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse import log as log_module
from warehouse.events import Event, RecordQuarantined, ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

ROOT = Path(__file__).resolve().parents[1]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
RUN = RunKey(run_source="local", run_id="1")

WRITER = """
import sys
from datetime import UTC, datetime
from warehouse import log as log_module
from warehouse.events import ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store
uri, first, last, batch = sys.argv[1], *map(int, sys.argv[2:])
now, run = datetime(2026, 1, 2, tzinfo=UTC), RunKey(run_source="local", run_id="1")
log_module.BATCH = batch
events = (event_of(ResultRecorded(run=run, record_format="inferencex", record={"n": n}), occurred_at=now, recorded_at=now,
                   source=Source(name="a.json")) for n in range(first, last))
print("ready", flush=True)
sys.stdin.readline()
print(sum(EventLog(Store(uri)).append(events).values()), flush=True)
"""
"""A writer of its own: it says that it is ready, waits for the start, and says how many events were new to the log."""


def results(*numbers: int, source: str = "a.json") -> list[Event]:
    return [
        event_of(
            ResultRecorded(run=RUN, record_format="inferencex", record={"n": number}),
            occurred_at=NOW,
            recorded_at=NOW,
            source=Source(name=source),
        )
        for number in numbers
    ]


def numbers_of(log: EventLog) -> list[int]:
    return [payload.record["n"] for _, payload in log.payloads("ResultRecorded") if isinstance(payload, ResultRecorded)]


def spawn(uri: str, first: int, last: int, batch: int = 50_000) -> subprocess.Popen[str]:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, uri, str(first), str(last), str(batch)],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def start_together(writers: list[subprocess.Popen[str]]) -> list[int]:
    """Let all writers go and return how many new events each of them had."""
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * len(writers)
    return [int(text) for text in said]


def is_gapless(log: EventLog) -> bool:
    sequence = log.read()["sequence"].to_list()
    return sequence == list(range(1, len(sequence) + 1))


def test_events_are_numbered_in_the_order_given(log: EventLog) -> None:
    assert log.append(results(3, 1, 2)) == Counter({"ResultRecorded": 3})
    assert log.append(results(9, 1, 8)) == Counter({"ResultRecorded": 2})
    assert numbers_of(log) == [3, 1, 2, 9, 8]
    assert log.read()["sequence"].to_list() == [1, 2, 3, 4, 5]
    assert log.read(after=3)["sequence"].to_list() == [4, 5]


def test_the_envelope_is_kept(log: EventLog) -> None:
    source = Source(name="x.zip!a.json", sha256="0" * 64, position="/3", reader="inferencex")
    event = event_of(
        ResultRecorded(run=RUN, record_format="inferencex", record={"n": 1}),
        occurred_at=NOW,
        published_at=NOW + timedelta(days=1),
        recorded_at=NOW + timedelta(microseconds=1),
        source=source,
    )
    log.append([event])
    (row,) = log.read().iter_rows(named=True)
    assert row == {
        "sequence": 1,
        "event_id": event.event_id,
        "event_type": "ResultRecorded",
        "subject": "run:local/1/1",
        "occurred_at": NOW,
        "published_at": NOW + timedelta(days=1),
        "recorded_at": NOW + timedelta(microseconds=1),
        "source_name": "x.zip!a.json",
        "source_sha256": "0" * 64,
        "source_position": "/3",
        "source_reader": "inferencex",
        "schema_version": 1,
        "payload": '{"record":{"n":1},"record_format":"inferencex","run":{"run_attempt":1,"run_id":"1","run_source":"local"}}',
    }


def test_the_first_telling_of_a_fact_stays(log: EventLog) -> None:
    log.append(results(1, 1, source="first.json"))
    log.append(results(1, source="second.json"))
    assert log.read()["source_name"].to_list() == ["first.json"]


def test_nothing_new_makes_no_commit(store: Store, log: EventLog) -> None:
    assert log.append([]) == Counter()
    assert not store.exists("events")
    log.append(results(1, 2))
    version = store.version("events")
    assert log.append(results(2, 1)) == Counter()
    assert log.append(iter([])) == Counter()
    assert store.version("events") == version


def test_types_are_told_apart(log: EventLog) -> None:
    refused = event_of(
        RecordQuarantined(name="b", sha256="", position="", reason="r"), occurred_at=NOW, recorded_at=NOW, source=Source(name="b")
    )
    assert log.append([*results(1), refused, *results(2)]) == Counter({"ResultRecorded": 2, "RecordQuarantined": 1})
    assert log.last_sequence() == 3
    assert log.read("ResultRecorded")["sequence"].to_list() == [1, 3]
    assert log.read("RecordQuarantined")["sequence"].to_list() == [2]
    assert log.read("RecordQuarantined", "ResultRecorded").height == 3
    assert log.read("CommitLanded").is_empty()


def test_text_of_any_kind_survives(log: EventLog) -> None:
    texts = ["\x00", "\u2028", "𝕊", "é", "'; DROP TABLE events;--", "\\", '"', "\U0010ffff", "\ufeff"]
    payloads = [ResultRecorded(run=RUN, record_format="inferencex", record={"t": text}) for text in texts]
    log.append(event_of(payload, occurred_at=NOW, recorded_at=NOW, source=Source(name="t")) for payload in payloads)
    assert [payload for _, payload in log.payloads("ResultRecorded")] == payloads


def test_a_stream_is_committed_in_batches(monkeypatch: pytest.MonkeyPatch, store: Store, log: EventLog) -> None:
    monkeypatch.setattr(log_module, "BATCH", 4)

    def breaking() -> Iterator[Event]:
        yield from results(*range(10))
        raise ConnectionError("the source went away")

    with pytest.raises(ConnectionError):
        log.append(breaking())
    assert numbers_of(log) == list(range(8))
    assert log.append(results(*range(12))) == Counter({"ResultRecorded": 4})
    assert numbers_of(log) == list(range(12))
    assert is_gapless(log)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.lists(st.integers(0, 15), max_size=8), min_size=1, max_size=4))
def test_however_facts_are_told_each_is_kept_once_in_order_of_first_telling(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]]
) -> None:
    log = EventLog(Store(str(tmp_path_factory.mktemp("log") / "w")))
    told = [number for part in parts for number in part]
    new = [sum(log.append(results(*part)).values()) for part in parts]
    assert numbers_of(log) == list(dict.fromkeys(told))
    assert sum(new) == len(set(told))
    assert is_gapless(log)


@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5), page=st.integers(1, 7))
def test_a_reader_that_goes_on_where_it_stopped_misses_nothing(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], page: int
) -> None:
    """Also what was appended between its pages."""
    log = EventLog(Store(str(tmp_path_factory.mktemp("log") / "w")))
    seen: list[int] = []
    last = 0
    for size in sizes:
        log.append(results(*range(log.last_sequence(), log.last_sequence() + size)))
        rows = log.read(after=last, up_to=last + page)
        seen += rows["sequence"].to_list()
        last = seen[-1]
    seen += log.read(after=last)["sequence"].to_list()
    assert seen == list(range(1, sum(sizes) + 1)) == log.read()["sequence"].to_list()
    assert log.read(after=sum(sizes)).is_empty()


def test_four_writers_of_the_same_events(store: Store, log: EventLog) -> None:
    """Also the race for creating the table: it does not exist when they start."""
    new = start_together([spawn(store.uri, 0, 200) for _ in range(4)])
    assert sum(new) == 200
    assert sorted(numbers_of(log)) == list(range(200))
    assert log.read()["event_id"].n_unique() == 200
    assert is_gapless(log)


def test_four_writers_of_overlapping_events_in_many_commits(store: Store, log: EventLog) -> None:
    spans = [(0, 80), (40, 120), (80, 160), (0, 160)]
    new = start_together([spawn(store.uri, first, last, 20) for first, last in spans])
    assert sum(new) == 160
    assert sorted(numbers_of(log)) == list(range(160))
    assert is_gapless(log)


def test_four_writers_of_different_events(store: Store, log: EventLog) -> None:
    new = start_together([spawn(store.uri, 50 * part, 50 * part + 50, 25) for part in range(4)])
    assert new == [50] * 4
    assert sorted(numbers_of(log)) == list(range(200))
    assert is_gapless(log)
    for part in range(4):  # each writer's own order is kept
        own = [number for number in numbers_of(log) if number // 50 == part]
        assert own == sorted(own)


def test_a_writer_that_is_killed_leaves_whole_commits_and_the_rest_can_follow(store: Store, log: EventLog) -> None:
    writer = spawn(store.uri, 0, 2000, 10)
    assert writer.stdin is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()
    while (store.version("events") or 0) < 5:
        assert writer.poll() is None, "the writer ended before it could be killed"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    kept = numbers_of(log)
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < 2000
    assert len(kept) % 10 == 0
    assert log.append(results(*range(2000)))["ResultRecorded"] == 2000 - len(kept)
    assert numbers_of(log) == list(range(2000))
    assert is_gapless(log)
