"""Deciding that something does not count: the decision stays visible, and everything that counts follows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines import following, projections
from pipelines.announcing import silent
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.retraction import retract
from pipelines.verification import verify
from tests.records import row, sweep, write_run
from warehouse.errors import InputError
from warehouse.events import ResultRecorded, RunKey, RunReported, Source, event_of
from warehouse.log import EventLog
from warehouse.sql import query

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NEW = "vllm/vllm-openai:v0.91.0"
Decided = list[tuple[Any, ...]]


def take(log: EventLog, folder: Path, number: int, rows: list[Any]) -> None:
    place = write_run(folder, number, f"2026-01-{number:02}T06:00:00Z", rows)
    ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=folder / "mirrors", announce=silent)
    following.refresh(log)


def decide(log: EventLog, target: str, reason: str = "test branch", *, undo: bool = False) -> list[str]:
    concerned = retract(log, target, reason, NOW, reinstate=undo)
    following.refresh(log)
    return [str(run) for run in concerned]


def marks(log: EventLog) -> Decided:
    """Return (run, concurrency, retraction, reused) of every point."""
    frame = log.store.read("points").sort("run_source", "run_id", "run_attempt", "concurrency")
    return frame.select("run_id", "concurrency", "retraction", "reused").rows()


def times(log: EventLog) -> list[int]:
    """Return the day on which the point of each run was measured."""
    return [at.day for at in log.store.read("points").sort("run_id")["measured_at"].to_list()]


def point_of(log: EventLog, run: str, concurrency: int) -> str:
    found = log.store.read("points").filter(run_id=run, concurrency=concurrency)
    return str(found["point_id"].item())


@pytest.fixture
def two(log: EventLog, tmp_path: Path) -> EventLog:
    """Two runs of two points each, on one build."""
    take(log, tmp_path, 1, [row(4), row(8)])
    take(log, tmp_path, 2, [row(4, speed=1.01), row(8, speed=1.01)])
    return log


@pytest.mark.parametrize("target", ["1", "example/fleet/1", "example/fleet/1/1"])
def test_a_run(two: EventLog, target: str) -> None:
    assert decide(two, target, "  test branch ") == ["run example/fleet/1/1"]
    assert marks(two) == [
        ("1", 4, "test branch", False),
        ("1", 8, "test branch", False),
        ("2", 4, None, False),
        ("2", 8, None, False),
    ]
    runs = two.store.read("runs").select("run_id", "points", "retraction").rows()
    assert runs == [("1", 0, "test branch"), ("2", 2, None)]
    assert two.store.read("builds").select("points", "first_measured_at").rows() == [(2, datetime(2026, 1, 2, 6, tzinfo=UTC))]
    assert verify(two) == []


def test_one_point(two: EventLog) -> None:
    point = point_of(two, "1", 8)
    assert decide(two, point[:8].upper()) == [f"point {point} of run example/fleet/1/1"]
    assert marks(two) == [("1", 4, None, False), ("1", 8, "test branch", False), ("2", 4, None, False), ("2", 8, None, False)]
    assert two.store.read("runs").select("run_id", "points", "retraction").rows() == [("1", 1, None), ("2", 2, None)]
    assert two.store.read("builds")["points"].to_list() == [3]
    assert verify(two) == []


def test_a_question_sees_what_counts_and_can_see_all(two: EventLog) -> None:
    decide(two, "1")
    decide(two, point_of(two, "2", 4), "wrong model")

    def asked(statement: str) -> Decided:
        return query(two.store, statement).rows()

    assert asked("SELECT run_id, concurrency FROM points ORDER BY ALL") == [("2", 8)]
    assert asked("SELECT run_id, concurrency, retraction FROM all_points ORDER BY ALL") == [
        ("1", 4, "test branch"),
        ("1", 8, "test branch"),
        ("2", 4, "wrong model"),
        ("2", 8, None),
    ]
    assert asked("SELECT run_id FROM runs") == [("2",)]
    assert asked("SELECT run_id, retraction FROM all_runs ORDER BY ALL") == [("1", "test branch"), ("2", None)]
    assert asked("SELECT (SELECT count(*) FROM points), (SELECT count(*) FROM all_points)") == [(1, 4)]
    assert asked("SELECT a.run_id FROM all_points a ANTI JOIN points p USING (point_id) WHERE a.concurrency = 4 ORDER BY 1") == [
        ("1",),
        ("2",),
    ]


def test_undo_and_again(two: EventLog) -> None:
    """Every decision is an event, also one that was made before."""
    before = two.store.read("points")
    for times in (1, 2):
        assert decide(two, "1") == ["run example/fleet/1/1"]
        assert [retraction for run, _c, retraction, _r in marks(two) if run == "1"] == ["test branch"] * 2
        decide(two, "1", "it was no test", undo=True)
        assert two.store.read("points").equals(before)
        assert two.read("ResultRetracted").height == 2 * times
    decide(two, "1", "one")
    decide(two, "1", "two")
    assert two.store.read("runs")["retraction"].to_list() == ["two", None]


def test_a_run_and_one_of_its_points(two: EventLog) -> None:
    decide(two, point_of(two, "1", 8), "cold host")
    decide(two, "1", "test branch")
    assert marks(two)[:2] == [("1", 4, "test branch", False), ("1", 8, "test branch", False)]
    decide(two, "1", "no test", undo=True)
    assert marks(two)[:2] == [("1", 4, None, False), ("1", 8, "cold host", False)]
    assert two.store.read("runs")["points"].to_list() == [1, 2]


def test_what_a_run_that_does_not_count_gives_later_does_not_count(two: EventLog) -> None:
    decide(two, "1")
    late = ResultRecorded(run=RunKey(run_source="example/fleet", run_id="1"), record_format="inferencex", record=row(16))
    two.append([event_of(late, occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))])
    following.refresh(two)
    assert marks(two)[2] == ("1", 16, "test branch", False)
    assert two.store.read("runs")["points"].to_list() == [0, 2]
    assert verify(two) == []


def test_attempts_are_told_apart_or_taken_together(log: EventLog) -> None:
    for attempt in (1, 2):
        key = RunKey(run_source="example/fleet", run_id="1", run_attempt=attempt)
        told = ResultRecorded(run=key, record_format="inferencex", record=row(4, speed=attempt))
        log.append([event_of(told, occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))])
    for attempt in (1, 2):
        key = RunKey(run_source="example/fleet", run_id="1", run_attempt=attempt)
        told_run = RunReported(run=key, started_at="2026-01-01T00:00:00Z")
        log.append([event_of(told_run, occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))])
    following.refresh(log)
    assert decide(log, "example/fleet/1/2", "second") == ["run example/fleet/1/2"]
    assert [mark[2] for mark in marks(log)] == [None, "second"]
    assert decide(log, "example/fleet/1", "both") == ["run example/fleet/1/1", "run example/fleet/1/2"]
    assert decide(log, "example/fleet/1", "both") == []  # it stands so already
    assert [mark[2] for mark in marks(log)] == ["both", "both"]


@pytest.mark.parametrize(
    ("target", "reason", "message"),
    [
        ("9", "r", "no such run or point; name a run as SOURCE/NUMBER/ATTEMPT"),
        ("example/fleet/1/7", "r", "no such run or point"),
        ("", "r", "no such run or point"),
        ("0123456", "r", "no such run or point"),
        ("1", " ", "--reason: say why"),
    ],
)
def test_what_names_nothing_or_says_nothing_is_refused(two: EventLog, target: str, reason: str, message: str) -> None:
    last = two.last_sequence()
    with pytest.raises(InputError, match=message) as refused:
        retract(two, target, reason, NOW)
    assert "\n" not in str(refused.value)
    assert two.last_sequence() == last


def test_a_number_that_two_sources_have_must_name_one(two: EventLog) -> None:
    other = RunReported(run=RunKey(run_source="other/fleet", run_id="1"), started_at="2026-01-01T00:00:00Z")
    two.append([event_of(other, occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))])
    following.refresh(two)
    with pytest.raises(InputError, match="several runs can be meant"):
        retract(two, "1", "r", NOW)
    assert decide(two, "other/fleet/1") == ["run other/fleet/1/1"]


def test_a_copy_takes_the_place_of_what_does_not_count(log: EventLog, tmp_path: Path) -> None:
    """The record was measured; only the claim of the first run to it fell."""
    take(log, tmp_path, 1, [row(4)])
    take(log, tmp_path, 2, [row(4)])
    take(log, tmp_path, 3, [row(4)])
    first = [("1", 4, None, False), ("2", 4, None, True), ("3", 4, None, True)]
    assert marks(log) == first
    assert times(log) == [1, 1, 1]
    decide(log, "1", "bad host")
    assert times(log) == [2, 2, 2], "measured when the first run that counts started"
    assert marks(log) == [("1", 4, "bad host", True), ("2", 4, None, False), ("3", 4, None, True)]
    assert verify(log) == []
    decide(log, "1", "host was good", undo=True)
    assert marks(log) == first
    assert times(log) == [1, 1, 1]
    assert verify(log) == []


def test_detection_does_not_see_it(log: EventLog, tmp_path: Path) -> None:
    for number, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        take(log, tmp_path, number, sweep(speed=wobble))
    take(log, tmp_path, 4, sweep(image=NEW, speed=0.9))
    projections.run_detection(log, NOW)
    assert log.store.read("shifts").select("to_run_id", "status", "attribution").rows() == [("4", "suspected", "engine")]
    decide(log, "4", "bad host")
    assert not projections.is_detection_current(log)
    projections.run_detection(log, NOW + timedelta(days=1))
    assert log.store.read("shifts").select("to_run_id", "status").rows() == [("4", "retracted")]
    assert "4" not in log.store.read("diffs")["to_run_id"].to_list()
    decide(log, "4", "it was good", undo=True)
    projections.run_detection(log, NOW + timedelta(days=2))
    assert log.store.read("shifts").select("to_run_id", "status").rows() == [("4", "suspected")]
