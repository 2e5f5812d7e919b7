"""What did we know on that day: the tables of a warehouse that only ever had what had been recorded by then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines import following, projections
from pipelines.announcing import silent
from pipelines.as_of import instant_of, known
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.retraction import retract
from tests.records import row, sweep, write_run
from warehouse import subjects
from warehouse.digest import content_hash
from warehouse.errors import InputError, StoreError
from warehouse.events import CommitLanded, DependencyPinned, ImageResolved, ReleasePublished, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.sql import query
from warehouse.store import Store

UNTOUCHED = {"score_diffs", "evals", "jobs", "rates", "recipes"}
"""Tables of which neither night tells anything."""
FIRST = datetime(2026, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)
SECOND = FIRST + timedelta(microseconds=1)
NEW = "vllm/vllm-openai:v0.91.0"


def take(log: EventLog, folder: Path, number: int, day: int, rows: list[Any], recorded_at: datetime) -> None:
    place = write_run(folder, number, f"2026-01-{day:02}T06:00:00Z", rows)
    ingest(log, (str(place),), Declared(), recorded_at=recorded_at, mirrors=folder / "mirrors", announce=silent)
    following.refresh(log)


def upstream(log: EventLog, title: str, recorded_at: datetime) -> None:
    told = (
        CommitLanded(
            project="vllm",
            commit="a" * 40,
            author_date="2026-01-01T00:00:00Z",
            committer_date="2026-01-01T00:00:00Z",
            title=title,
        ),
        ReleasePublished(project="vllm", version="0.91.0", tag="v0.91.0", commit="a" * 40, evidence="tag", notes=title),
        ReleasePublished(project="vllm", version="0.91.0", evidence="release-note", notes=f"* {title} (#{len(title)})"),
        DependencyPinned(project="dynamo", version="1", dependency="vllm", dependency_version=title, evidence="matrix"),
        ImageResolved(
            image_ref=NEW,
            image_digest=f"sha256:{title[0] * 64}",
            seen_at="2026-02-01T00:00:00Z",
            media_type="application/vnd.oci.image.manifest.v1+json",
            manifest_digest=f"sha256:{title[0] * 64}",
        ),
    )
    log.append(event_of(payload, occurred_at=recorded_at, recorded_at=recorded_at, source=Source(name="t")) for payload in told)


def first_night(log: EventLog, folder: Path) -> None:
    for number, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        take(log, folder, number, number, sweep(speed=wobble), FIRST)
    take(log, folder, 4, 4, sweep(image=NEW, speed=0.9), FIRST)
    upstream(log, "first", FIRST)
    projections.run_detection(log, FIRST)


def second_night(log: EventLog, folder: Path) -> None:
    """Everything that could reach back: a correction, a decision, a copy, a late run, a fault, a restatement, a confirmation."""
    take(log, folder / "corrected", 1, 9, [], SECOND)
    take(log, folder, 5, 5, sweep(image=NEW, speed=0.9), SECOND)
    take(log, folder / "copies", 6, 1, sweep(speed=1.002), SECOND)
    retract(log, "2", "test branch", SECOND)
    take(log, folder, 7, 7, [row(4, isl=None)], SECOND)
    upstream(log, "second", SECOND)
    projections.run_detection(log, SECOND)


def hashes(log: EventLog) -> dict[str, str]:
    tables = {name: log.store.read(name) for name in PROJECTIONS}
    tables["subjects"] = subjects.joined(tables["subjects"]).sort("subject")
    return {name: content_hash(frame) for name, frame in tables.items()}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """Return the log of a warehouse that saw both nights; nobody may change it."""
    place = tmp_path_factory.mktemp("both")
    log = EventLog(Store(str(place / "warehouse")))
    first_night(log, place / "runs")
    second_night(log, place / "runs")
    return log


def test_the_past_is_a_warehouse_that_never_had_the_rest(both: EventLog, tmp_path: Path) -> None:
    only = EventLog(Store(str(tmp_path / "only")))
    first_night(only, tmp_path / "again")
    then, now = hashes(only), hashes(both)
    changed = {name for name in then if then[name] != now[name]}
    assert changed == set(PROJECTIONS) - UNTOUCHED, "the second night changed every table"
    with known(both, "2026-03-01") as past:
        assert hashes(past) == then
        assert past.last_sequence() == only.last_sequence()
        assert past.read().drop("sequence").equals(only.read().drop("sequence"))
        assert query(past.store, "SELECT status FROM shifts").rows() == [("suspected",)]
    assert hashes(both) == now


def test_as_of_today_is_today(both: EventLog) -> None:
    with known(both, "2026-03-02") as past:
        assert hashes(past) == hashes(both)
    with known(both, None) as same:
        assert same is both


def test_without_detection_only_facts_are_made(both: EventLog) -> None:
    with known(both, "2026-03-01T23:59:59.999999Z", detection=False) as past:
        assert past.store.read("runs")["run_id"].to_list() == ["1", "2", "3", "4"]
        assert not past.store.exists("shifts")


def test_a_day_ends_with_its_last_microsecond() -> None:
    assert instant_of("2026-03-01") == FIRST
    assert instant_of("2026-03-01T12:00:00+02:00") == datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-03-01T12:00:00", ""])
def test_a_doubtful_instant_is_refused(both: EventLog, text: str) -> None:
    with pytest.raises(InputError, match="--as-of"), known(both, text):
        pass


def test_before_the_first_event_nothing_was_known(both: EventLog) -> None:
    with pytest.raises(InputError, match="--as-of 2026-02-28: nothing had been recorded by then"), known(both, "2026-02-28"):
        pass


def test_the_past_cannot_be_changed(both: EventLog) -> None:
    last = both.last_sequence()
    with known(both, "2026-03-01", detection=False) as past, pytest.raises(StoreError, match="past cannot be changed"):
        upstream(past, "third", SECOND)
    assert both.last_sequence() == last


def test_every_row_says_when_it_was_learned(both: EventLog) -> None:
    """Measured, published and recorded are told apart, so that a question can be asked of any."""
    for name in (*following.FACTS, *following.UPSTREAM):
        column = "first_recorded_at" if name == "builds" else "recorded_at"
        assert set(both.store.read(name)[column].to_list()) <= {FIRST, SECOND}
    runs = {found["run_id"]: found for found in both.store.read("runs").iter_rows(named=True)}
    assert (runs["1"]["recorded_at"], runs["1"]["reports"], runs["1"]["started_at"].day) == (SECOND, 2, 9)
    assert (runs["3"]["recorded_at"], runs["3"]["reports"]) == (FIRST, 1)
