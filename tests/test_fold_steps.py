"""Tables brought forward step by step are those that are made at once, whatever is told, in whatever parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changelog.tables import read_table
from pipelines import following
from pipelines.fold import table as fold_table
from pipelines.fold.small import whole_tables
from pipelines.verification import verify
from tests.lengths import either
from tests.records import row
from tests.test_fold_evals import lm_eval
from warehouse import subjects
from warehouse.digest import content_hash
from warehouse.events import (
    CommitLanded,
    DependencyPinned,
    EvalRecorded,
    Event,
    FileRead,
    ImageResolved,
    Payload,
    RecordQuarantined,
    ReleasePublished,
    ResultRecorded,
    ResultRetracted,
    RunKey,
    RunReported,
    Source,
    event_of,
)
from warehouse.log import EventLog
from warehouse.schemas import TABLES
from warehouse.store import Store

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STARTS = (
    datetime(2025, 9, 10, tzinfo=UTC),  # before 2025-09-15 a record need not name its precision
    datetime(2025, 9, 20, tzinfo=UTC),
    datetime(2026, 1, 5, 6, tzinfo=UTC),
)
RECORDS: tuple[dict[str, Any], ...] = (
    row(4),
    row(8),
    row(4, speed=1.1, image="vllm/vllm-openai:v0.9.9"),
    row(4, framework="sglang", image="lmsysorg/sglang:v0.5.9", benchmark_start_time_unix=1767225600),
    row(16, precision=None),
    {"hw": "h200"},
)
FILES = ("a" * 64, "b" * 64)
POSITIONS = ("/0", "/1", "/2")


def key(number: int) -> RunKey:
    return RunKey(run_source="local" if number == 0 else "example/fleet", run_id=str(number), run_attempt=2 if number == 3 else 1)


def event(payload: Payload, place: tuple[int, int], hour: int) -> Event:
    return event_of(
        payload,
        occurred_at=STARTS[2],
        recorded_at=NOW + timedelta(hours=hour),
        source=Source(name=f"{place[0]}.json", sha256=FILES[place[0]], position=POSITIONS[place[1]]),
    )


def result(number: int, record: int, **settings: str) -> ResultRecorded:
    name = "inferencex" if record != 5 else "gone"
    return ResultRecorded(run=key(number), record_format=name, record=RECORDS[record], settings=settings)


def evaluation(number: int, record: int) -> EvalRecorded:
    """Return a recorded evaluation; the third is of a format that is not read any more."""
    told = {**lm_eval(0.5), "results": {"t": {"acc,none": record / 10}}}
    return EvalRecorded(run=key(number), record_format="gone" if record == 2 else "lm-eval", record=told)


def retraction(number: int, record: int | None, reinstated: bool, revision: int) -> ResultRetracted:
    point = None if record is None else event(result(number, record), (0, 0), 0).event_id
    return ResultRetracted(run=key(number), point_id=point, reason=f"reason {revision}", reinstated=reinstated, revision=revision)


numbers = st.integers(0, 3)
records = st.integers(0, len(RECORDS) - 1)
updates = st.none() | st.sampled_from(("2026-01-06T00:00:00Z", "2026-01-07T00:00:00Z"))
payloads = st.one_of(
    st.builds(evaluation, numbers, st.integers(0, 2)),
    st.builds(result, numbers, records),
    st.builds(result, numbers, records),
    st.builds(
        lambda number, record, commit: result(number, record, engine_commit=commit), numbers, records, st.sampled_from("ab")
    ),
    st.builds(
        lambda number, start, update, revision: RunReported(
            run=key(number), started_at=start.isoformat(), updated_at=update, revision=revision, declared=number == 0
        ),
        numbers,
        st.sampled_from(STARTS),
        updates,
        st.sampled_from((0, 0, 0, 1)),
    ),
    st.builds(retraction, numbers, st.none() | records, st.booleans(), st.integers(1, 3)),
    st.builds(
        lambda file, position: RecordQuarantined(
            name="x.json", sha256=FILES[file], position=POSITIONS[position], reason="no time"
        ),
        st.integers(0, 1),
        st.integers(0, 2),
    ),
    st.builds(
        lambda number, title: CommitLanded(
            project="vllm",
            commit=f"{number:040}",
            author_date="2026-01-01T00:00:00Z",
            committer_date="2026-01-02T00:00:00.5Z",
            title=title,
        ),
        st.integers(0, 2),
        st.sampled_from(("one", "two")),
    ),
    st.builds(
        lambda minor, notes: ReleasePublished(project="vllm", version=f"0.{minor}", evidence="tag", notes=notes),
        st.integers(0, 1),
        st.none() | st.just("n"),
    ),
    st.builds(
        lambda version: DependencyPinned(
            project="dynamo", version="1", dependency="vllm", dependency_version=version, evidence="m"
        ),
        st.sampled_from("ab"),
    ),
    st.builds(
        lambda digest, day, commit: ImageResolved(
            image_ref="vllm/vllm-openai:v0.9.9",
            image_digest=f"sha256:{digest * 64}",
            seen_at=f"2026-01-0{day}T00:00:00Z",
            media_type="m",
            manifest_digest=f"sha256:{digest * 64}",
            commit=f"{commit:040}",
            engine_version=f"0.9.9.dev{commit}",
        ),
        st.sampled_from("ab"),
        st.integers(1, 3),
        st.integers(0, 2),
    ),
    st.builds(lambda number: FileRead(sha256=FILES[0], context="", reading=number, records=1), st.integers(1, 3)),
)
told = st.builds(event, payloads, st.tuples(st.integers(0, 1), st.integers(0, 2)), st.integers(0, 3))
batches = st.lists(st.tuples(st.lists(told, min_size=1, max_size=8), st.booleans()), min_size=1, max_size=6)


def expected(log: EventLog) -> dict[str, str]:
    """Return the content hash of every table that follows from the log, from a fold that looks at no table."""
    frames = whole_tables(log, log.last_sequence()) | {name: read_table(log, name) for name in following.UPSTREAM}
    return {name: content_hash(frame.sort(TABLES[name].order, maintain_order=True)) for name, frame in frames.items()}


def stored(log: EventLog) -> dict[str, str]:
    return {name: content_hash(log.store.read(name)) for name in (*following.FACTS, *following.UPSTREAM)}


def index(log: EventLog) -> pl.DataFrame:
    return subjects.joined(log.store.read("subjects")).sort("subject")


def places(log: EventLog) -> pl.DataFrame:
    """Return the index as the log alone gives it."""
    ends = (pl.col("sequence").min().alias("first_sequence"), pl.col("sequence").max().alias("last_sequence"))
    return log.read().group_by("subject").agg(*ends).sort("subject")


@settings(max_examples=either(4, 40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(batches=batches)
def test_step_by_step_or_at_once(tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[list[Event], bool]]) -> None:
    log = EventLog(Store(str(tmp_path_factory.mktemp("steps") / "w")))
    for events, refreshed in batches:
        log.append(events)
        if refreshed:
            following.refresh(log)
    following.refresh(log)
    by_step = stored(log)
    assert by_step == expected(log)
    assert index(log).equals(places(log))
    assert following.refresh(log) == []
    following.refresh(log, force=True)
    assert stored(log) == by_step
    assert verify(log) == []


def test_a_result_that_was_refused_stays_refused_whatever_else_its_place_gives(log: EventLog) -> None:
    """One file, declared twice: what the first declaration cannot read is still in the log."""
    log.append([event(result(0, 0), (0, 0), 0), event(result(0, 4), (0, 1), 0)])
    following.refresh(log)
    assert log.store.read("quarantine")["position"].to_list() == ["/1"]
    log.append([event(result(1, 1), (0, 1), 1)])
    following.refresh(log)
    assert log.store.read("quarantine")["position"].to_list() == ["/1"]
    assert stored(log) == expected(log)


def test_a_correction_of_the_run_heals_what_was_refused_for_its_time(log: EventLog) -> None:
    log.append([event(result(1, 4), (0, 0), 0)])
    following.refresh(log)
    assert log.store.read("points").is_empty()
    log.append([event(RunReported(run=key(1), started_at=STARTS[0].isoformat()), (0, 1), 1)])
    following.refresh(log)
    assert log.store.read("quarantine").is_empty()
    assert log.store.read("points").select("precision", "measured_at").rows() == [("fp8", STARTS[0])]
    assert stored(log) == expected(log)


def test_a_correction_that_leaves_a_run_no_point_takes_its_points_and_no_other(log: EventLog) -> None:
    early = event(RunReported(run=key(1), started_at=STARTS[0].isoformat()), (0, 0), 0)
    log.append([early, event(result(1, 4), (0, 0), 0), event(result(2, 0), (0, 1), 0)])
    following.refresh(log)
    assert log.store.read("points")["run_id"].to_list() == ["1", "2"]
    log.append([event(RunReported(run=key(1), started_at=STARTS[1].isoformat()), (0, 0), 1)])
    following.refresh(log)
    assert log.store.read("points")["run_id"].to_list() == ["2"]
    assert log.store.read("quarantine").height == 1
    assert stored(log) == expected(log)


def test_a_report_of_a_run_of_which_nothing_could_be_read_takes_no_point(log: EventLog) -> None:
    log.append([event(result(1, 4), (0, 0), 0), event(result(2, 0), (0, 1), 0)])
    following.refresh(log)
    log.append([event(RunReported(run=key(1), started_at=STARTS[2].isoformat()), (0, 0), 1)])
    following.refresh(log)
    assert log.store.read("points")["run_id"].to_list() == ["2"]
    assert stored(log) == expected(log)


def test_a_decision_about_one_run_does_not_make_another_forget_its_reports(log: EventLog) -> None:
    """Neither has a point: run 0 is retracted in the very step in which run 3 is reported again, by an older report."""
    later = RunReported(run=key(3), started_at=STARTS[1].isoformat(), updated_at="2026-01-06T00:00:00Z")
    log.append([event(RunReported(run=key(0), started_at=STARTS[0].isoformat()), (0, 0), 0), event(later, (0, 1), 0)])
    following.refresh(log)
    older = RunReported(run=key(3), started_at=STARTS[2].isoformat())
    log.append([event(retraction(0, 2, False, 1), (0, 0), 1), event(older, (1, 0), 1)])
    following.refresh(log)
    assert log.store.read("runs").filter(run_id="3").select("started_at", "reports").row(0) == (STARTS[1], 2)
    assert stored(log) == expected(log)


@pytest.mark.parametrize("many", [0, 1, 300])
def test_many_runs_at_once_are_made_again_as_few_are(log: EventLog, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(fold_table, "MANY_RUNS", many)
    log.append([event(RunReported(run=key(number), started_at=STARTS[2].isoformat()), (0, 0), 0) for number in range(4)])
    log.append([event(result(number, record), (0, 0), 0) for number in range(4) for record in (0, 1)])
    following.refresh(log)
    log.append([event(retraction(number, None, False, 1), (0, 0), 1) for number in (1, 2)])
    assert following.refresh(log)[0] == "points"
    assert following.refresh(log) == []
    assert log.store.read("points").filter(retraction="reason 1").height == 4
    assert stored(log) == expected(log)


def test_a_copy_among_many_new_runs(log: EventLog) -> None:
    """One of them takes a record from a run that is there, so that run is made again together with all that is new."""
    declared = RunReported(run=key(0), started_at=STARTS[2].isoformat(), declared=True)
    log.append([event(declared, (0, 0), 0), event(result(0, 0), (0, 0), 0)])
    following.refresh(log)
    runs = [RunKey(run_source="example/fleet", run_id=str(number)) for number in range(1500)]
    reports = [event(RunReported(run=run, started_at=STARTS[2].isoformat()), (0, 0), 1) for run in runs]
    new = [event(ResultRecorded(run=run, record_format="inferencex", record=row(4)), (0, 0), 1) for run in runs]
    log.append([*reports, *new])
    following.refresh(log)
    assert log.store.read("points").filter(~pl.col("reused"))["run_id"].to_list() == ["0"]
    assert log.store.read("points").filter(~pl.col("reused"))["run_source"].to_list() == ["example/fleet"]
    assert log.store.read("points").height == 1501
    assert stored(log) == expected(log)


def test_odd_names_of_runs_are_told_apart(log: EventLog) -> None:
    """Their names stand in a condition; `a'b` and `a` are not one run, nor is `x' OR '1'='1`."""
    names = ("a'b", "a", "x' OR '1'='1", 'q"', "back\\slash", "new\nline", "%", "é")
    runs = [RunKey(run_source="example/fleet", run_id=name) for name in names]
    log.append([event(RunReported(run=run, started_at=STARTS[2].isoformat()), (0, 0), 0) for run in runs])
    log.append(
        [event(ResultRecorded(run=run, record_format="inferencex", record=row(2 + i)), (0, 0), 0) for i, run in enumerate(runs)]
    )
    following.refresh(log)
    for run in runs:
        log.append([event(ResultRetracted(run=run, reason=f"why {run.run_id}", revision=1), (0, 0), 1)])
        following.refresh(log)
        assert stored(log) == expected(log)
    found = dict(log.store.read("points").select("run_id", "retraction").iter_rows())
    assert found == {name: f"why {name}" for name in names}
