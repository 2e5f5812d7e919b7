"""The index of subjects: whatever becomes of it, an append never doubles an event."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import projections
from pipelines.verification import verify
from warehouse.errors import StoreError
from warehouse.events import Event, ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Mark, Store

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FIRST, ALL = ((0, 1), (1, 1), (0, 2)), ((0, 1), (1, 1), (0, 2), (2, 1), (1, 2))


def results(*facts: tuple[int, int]) -> list[Event]:
    """Return one event a (run, record)."""
    return [
        event_of(
            ResultRecorded(run=RunKey(run_source="local", run_id=str(run)), record_format="inferencex", record={"n": record}),
            occurred_at=NOW,
            recorded_at=NOW,
            source=Source(name="a.json"),
        )
        for run, record in facts
    ]


def facts_of(log: EventLog) -> list[tuple[int, int]]:
    told = [payload for _row, payload in log.payloads("ResultRecorded") if isinstance(payload, ResultRecorded)]
    return [(int(payload.run.run_id), payload.record["n"]) for payload in told]


def table(store: Store, name: str) -> Path:
    return Path(store.table_uri(name))


@pytest.fixture
def full(log: EventLog, tmp_path: Path) -> EventLog:
    """All facts; beside the warehouse lies a copy that has the first of them."""
    log.append(results(*FIRST))
    shutil.copytree(log.store.uri, tmp_path / "older")
    log.append(results(*ALL))
    assert facts_of(log) == list(ALL)
    return log


def reopened(log: EventLog) -> EventLog:
    return EventLog(Store(log.store.uri))


def test_it_tells_between_which_sequences_a_subject_stands(full: EventLog) -> None:
    standing = full.standing({"run:local/0/1", "run:local/1/1", "run:local/2/1", "run:local/9/1"})
    assert standing == {"run:local/0/1": (1, 3), "run:local/1/1": (2, 5), "run:local/2/1": (4, 4)}
    assert full.about({"run:local/1/1"})["sequence"].to_list() == [2, 5]
    assert full.about({"run:local/1/1"}, up_to=4)["sequence"].to_list() == [2]
    assert full.about({"run:local/1/1"}, "RunReported").is_empty()
    assert full.about({"run:local/9/1"}).is_empty()


def test_one_that_is_gone(full: EventLog) -> None:
    shutil.rmtree(table(full.store, "subjects"))
    log = reopened(full)
    assert not log.append(results(*ALL))
    assert log.standing({"run:local/1/1"}) == {"run:local/1/1": (2, 5)}
    assert sum(log.append(results(*ALL, (7, 7))).values()) == 1
    assert facts_of(log) == [*ALL, (7, 7)]
    assert log.store.mark("subjects") == Mark(6, 1)


def test_one_that_is_behind(full: EventLog, tmp_path: Path) -> None:
    """As after a crash between the commit of the log and that of the index."""
    shutil.rmtree(table(full.store, "subjects"))
    shutil.copytree(tmp_path / "older" / "subjects", table(full.store, "subjects"))
    log = reopened(full)
    assert log.store.mark("subjects") == Mark(3, 1)
    assert not log.append(results(*ALL))
    assert log.standing({"run:local/1/1"}) == {"run:local/1/1": (2, 5)}
    assert sum(log.append(results((2, 1), (7, 7))).values()) == 1
    assert facts_of(log) == [*ALL, (7, 7)]


def test_one_that_is_ahead_of_the_log_stops_every_writer(full: EventLog, tmp_path: Path) -> None:
    """The log was put back from an older copy: what its tables say belongs to another log."""
    shutil.rmtree(table(full.store, "events"))
    shutil.copytree(tmp_path / "older" / "events", table(full.store, "events"))
    log = reopened(full)
    with pytest.raises(StoreError, match=r"shorter than its tables.*run `shiftlog rebuild`") as refused:
        log.append(results(*ALL))
    assert "\n" not in str(refused.value)
    assert facts_of(log) == list(FIRST)
    projections.rebuild(log, NOW)
    assert sum(log.append(results(*ALL)).values()) == 2
    assert facts_of(log) == list(ALL)


@pytest.mark.parametrize("damage", [b"", b"PAR1", None], ids=["empty", "garbage", "gone"])
def test_one_that_cannot_be_read_costs_no_fact(full: EventLog, damage: bytes | None) -> None:
    for path in table(full.store, "subjects").glob("*.parquet"):
        path.unlink() if damage is None else path.write_bytes(damage)
    log = reopened(full)
    assert sum(log.append(results(*ALL, (7, 7))).values()) == 1
    assert facts_of(log) == [*ALL, (7, 7)]
    log.extend_index(force=True)
    assert sum(log.append(results(*ALL, (7, 7), (8, 8))).values()) == 1


def test_one_that_misses_rows_is_found_by_verify(full: EventLog) -> None:
    projections.run_detection(full, NOW)
    rows = full.store.read("subjects")
    full.store.overwrite("subjects", rows.head(1), Mark(full.last_sequence(), 1))
    assert verify(reopened(full)) == ["table subjects does not follow from the log; run `shiftlog rebuild`"]
    projections.rebuild(full, NOW)
    assert verify(reopened(full)) == []


facts = st.tuples(st.integers(0, 3), st.integers(0, 2))


@settings(max_examples=10)
@given(parts=st.lists(st.tuples(st.lists(facts, max_size=6), st.sampled_from(("keep", "drop", "old"))), min_size=1, max_size=5))
def test_whatever_becomes_of_it_every_fact_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[list[tuple[int, int]], str]]
) -> None:
    folder = tmp_path_factory.mktemp("index")
    told = []
    for part, fate in parts:
        log = EventLog(Store(str(folder / "w")))
        place, spare = table(log.store, "subjects"), folder / "spare"
        if fate != "keep" and place.exists():
            shutil.rmtree(place)
        if fate == "old" and spare.exists():
            shutil.copytree(spare, place)
        if place.exists() and not spare.exists():
            shutil.copytree(place, spare)
        log.append(results(*part))
        told += part
        assert facts_of(log) == list(dict.fromkeys(told))
