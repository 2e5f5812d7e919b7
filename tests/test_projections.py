"""Tables in step with the log: when they are rebuilt, what they claim to have seen, how a rebuild mends them."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from pipelines import following, projections
from pipelines.announcing import silent
from pipelines.fold.small import settle
from pipelines.following import Follower
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.verification import verify
from tests.records import row, run_object, sweep, write_run
from warehouse.errors import SchemaError
from warehouse.log import EventLog
from warehouse.schemas import PROJECTIONS
from warehouse.store import UP_TO, Mark, Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLD, NEW = "vllm/vllm-openai:v0.90.0", "vllm/vllm-openai:v0.91.0"


def take(log: EventLog, folder: Path, number: int, rows: list[Any]) -> None:
    place = write_run(folder, number, f"2026-01-{number:02}T06:00:00Z", rows)
    ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=folder / "mirrors", announce=silent)


@pytest.fixture
def nights(log: EventLog, tmp_path: Path) -> EventLog:
    """Three repeats and a slower build, detected."""
    for number, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        take(log, tmp_path, number, sweep(image=OLD, speed=wobble))
    take(log, tmp_path, 4, sweep(image=NEW, speed=0.9))
    projections.run_detection(log, NOW)
    return log


def test_only_what_is_behind_is_rebuilt(log: EventLog, tmp_path: Path) -> None:
    facts = {"runs", "points", "evals", "builds", "quarantine"}
    take(log, tmp_path, 1, sweep())
    assert set(following.refresh(log)) == facts | {
        "commits",
        "releases",
        "notes",
        "dependencies",
        "images",
        "rates",
        "jobs",
        "recipes",
    }
    assert following.refresh(log) == []
    take(log, tmp_path, 2, sweep(speed=1.001))
    assert set(following.refresh(log)) == facts
    assert following.refresh(log) == []


@pytest.mark.parametrize("name", [*following.FACTS, *following.UPSTREAM])
def test_a_table_that_is_missing_comes_back(nights: EventLog, name: str) -> None:
    """By itself: the others say already what they said, so they are left alone."""
    before = nights.store.read(name)
    shutil.rmtree(nights.store.table_uri(name))
    behind = following.refresh(nights)
    assert behind == [name] or name == "points"
    assert nights.store.read(name).equals(before)
    assert following.refresh(nights) == []


def test_detection_is_current_until_something_lands(nights: EventLog, tmp_path: Path) -> None:
    assert projections.is_detection_current(nights)
    take(nights, tmp_path, 5, sweep(image=NEW, speed=0.901))
    assert not projections.is_detection_current(nights)
    projections.run_detection(nights, NOW)
    assert projections.is_detection_current(nights)


def test_what_lands_while_a_detection_runs_has_not_been_seen(
    nights: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables read did not hold it, so the detection may not claim it."""
    following.refresh(nights)

    def detect_slowly(store: Store, workers: Any) -> Any:
        take(nights, tmp_path, 6, sweep(image=NEW, speed=0.9))
        return detect(store, workers)

    detect = projections.detect_stored
    monkeypatch.setattr(projections, "detect_stored", detect_slowly)
    projections.write_shifts(nights, NOW)
    projections.write_links(nights)
    assert not projections.is_detection_current(nights)


def test_a_shift_that_is_not_found_any_more_is_retracted(nights: EventLog, tmp_path: Path) -> None:
    assert nights.store.read("shifts")["status"].to_list() == ["suspected"]
    shift = nights.store.read("shifts")["shift_id"].item()
    ingest(
        nights,
        (str(write_run(tmp_path / "corrected", 4, "2025-12-01T06:00:00Z", [])),),
        Declared(),
        recorded_at=NOW,
        mirrors=tmp_path,
        announce=silent,
    )
    projections.run_detection(nights, NOW)
    rows = nights.store.read("shifts").filter(pl.col("shift_id") == shift)
    assert rows["status"].to_list() == ["retracted"]


def test_rebuild_finds_the_tables_as_they_were_brought_along(nights: EventLog, tmp_path: Path) -> None:
    """Also the index, where one run's events came in several commits."""
    take(nights, tmp_path / "late", 2, sweep(isl=8192))
    projections.run_detection(nights, NOW)
    assert nights.store.count("subjects") > nights.store.read("subjects")["subject"].n_unique()
    hashes = projections.rebuild(nights, NOW)
    assert hashes.keys() == set(PROJECTIONS)
    assert [name for name, (before, after) in hashes.items() if before != after] == []


def test_rebuild_mends_tables_of_another_schema(nights: EventLog) -> None:
    before = {name: nights.store.read(name) for name in PROJECTIONS}
    for name in ("points", "shifts"):
        narrower = before[name].drop(before[name].columns[-1]).to_arrow(compat_level=pl.CompatLevel.oldest())
        write_deltalake(nights.store.table_uri(name), narrower, mode="overwrite", schema_mode="overwrite")
        with pytest.raises(SchemaError, match="run `shiftlog rebuild`"):
            nights.store.read(name)
    hashes = projections.rebuild(nights, NOW)
    assert hashes["points"][0] is None and hashes["shifts"][0] is None
    assert {name: nights.store.read(name).equals(before[name]) for name in PROJECTIONS} == dict.fromkeys(PROJECTIONS, True)


def test_rebuild_mends_tables_whose_files_are_damaged_or_gone(nights: EventLog) -> None:
    before = {name: nights.store.read(name) for name in PROJECTIONS}
    cut = lambda path: path.write_bytes(path.read_bytes()[:100])  # noqa: E731
    for name, damage in (("points", cut), ("shifts", Path.unlink), ("runs", Path.unlink), ("builds", cut), ("quarantine", cut)):
        for path in Path(nights.store.table_uri(name)).glob("*.parquet"):
            damage(path)
    projections.rebuild(nights, NOW)
    assert {name: nights.store.read(name).equals(before[name]) for name in PROJECTIONS} == dict.fromkeys(PROJECTIONS, True)


def test_what_a_killed_ingest_left_behind_is_no_finding(nights: EventLog, tmp_path: Path) -> None:
    """The log is committed and the tables are not: the next command brings them up."""
    take(nights, tmp_path, 8, sweep(image=NEW, speed=0.95))
    assert verify(nights) == []
    following.refresh(nights)
    assert nights.store.read("runs").height == 5
    assert verify(nights) == []


def test_a_table_that_cannot_be_opened_is_named_with_what_to_do(nights: EventLog) -> None:
    (*_, last) = sorted(Path(nights.store.table_uri("runs"), "_delta_log").glob("*.json"))
    last.write_bytes(last.read_bytes()[:40])
    findings = verify(EventLog(Store(nights.store.uri)))
    assert len(findings) == 1
    assert findings[0].startswith("table runs") and "delete the folder of that table and run `shiftlog rebuild`" in findings[0]
    assert "\n" not in findings[0]
    shutil.rmtree(nights.store.table_uri("runs"))
    projections.rebuild(nights, NOW)
    assert verify(nights) == []


def test_verify_is_silent_on_a_sound_warehouse(nights: EventLog) -> None:
    assert verify(nights) == []


@pytest.mark.parametrize("name", ["points", "runs", "builds", "diffs", "shifts", "noise"])
def test_verify_finds_rows_that_do_not_follow_from_the_log(nights: EventLog, name: str) -> None:
    nights.store.overwrite(name, nights.store.read(name).head(0), nights.store.mark(name) or Mark(0))
    assert f"table {name} does not follow from the log; run `shiftlog rebuild`" in verify(nights)


def test_verify_finds_what_others_wrote_into_the_log(nights: EventLog) -> None:
    events = nights.read()
    forged = events.tail(1).with_columns(payload=pl.lit("{}"), sequence=pl.col("sequence") + 2)
    write_deltalake(nights.store.table_uri("events"), forged.to_arrow(compat_level=pl.CompatLevel.oldest()), mode="append")
    findings = " ".join(verify(nights))
    assert "its content and its id differ" in findings
    assert "stand twice" in findings
    assert "1 events stand beyond the end of the log" in findings


@pytest.mark.parametrize("step", [0, 2], ids=["repeat", "gap"])
def test_verify_finds_gaps_and_repeats_in_the_order(nights: EventLog, step: int) -> None:
    """A forger who knows of the mark, too."""
    last = nights.last_sequence()
    forged = (
        nights.read().tail(1).with_columns(sequence=pl.lit(last + step, pl.Int64)).to_arrow(compat_level=pl.CompatLevel.oldest())
    )
    marked = CommitProperties(app_transactions=[Transaction(UP_TO, last + step)])
    write_deltalake(nights.store.table_uri("events"), forged, mode="append", commit_properties=marked)
    assert "gaps or repeats" in " ".join(verify(nights))


def test_the_same_record_under_two_runs_is_measured_once(log: EventLog, tmp_path: Path) -> None:
    """A re-used sweep keeps its place; a copy of it is no repeat and must not teach the noise floor."""
    take(log, tmp_path, 1, [row(4), row(8)])
    take(log, tmp_path, 2, [row(4), row(8)])
    projections.run_detection(log, NOW)
    points = log.store.read("points").sort("run_id", "concurrency")
    assert points.select("run_id", "reused").rows() == [("1", False), ("1", False), ("2", True), ("2", True)]
    assert log.store.read("noise").is_empty() and log.store.read("diffs").is_empty()


def test_a_run_that_is_learned_late_lands_in_its_place(log: EventLog, tmp_path: Path) -> None:
    """Measured on day 2, recorded last: day 4 is compared with it, and it with day 1, as if it had come in time."""
    for number in (1, 4, 2):
        take(log, tmp_path, number, sweep(image=NEW if number == 4 else OLD, speed=1 + number / 1000))
        projections.run_detection(log, NOW)
    late = log.store.read("diffs").select("from_run_id", "to_run_id").rows()
    assert late == [("1", "2"), ("2", "4")]
    assert log.store.read("points")["run_id"].unique(maintain_order=True).to_list() == ["1", "2", "4"]
    assert log.read("ResultRecorded")["subject"].unique(maintain_order=True).to_list() == [
        f"run:example/fleet/{number}/1" for number in (1, 4, 2)
    ]
    in_time = EventLog(Store(str(tmp_path / "in-time")))
    for number in (1, 2, 4):
        take(in_time, tmp_path / "in-order", number, sweep(image=NEW if number == 4 else OLD, speed=1 + number / 1000))
    projections.run_detection(in_time, NOW)
    assert in_time.store.read("diffs").equals(log.store.read("diffs"))


def test_a_correction_by_the_user_moves_a_run_and_stays(log: EventLog, tmp_path: Path) -> None:
    """`--correct`: what the run.json says now holds against later reports, also where it was said before."""
    take(log, tmp_path, 3, sweep())
    folder = tmp_path / "run_3"

    def tell(started_at: str, updated_at: str, revision: int = 0) -> list[Any]:
        (folder / "run.json").write_text(json.dumps(run_object(3, started_at, updated_at=updated_at)))
        told = Declared(revision=revision)
        ingest(log, (str(folder),), told, recorded_at=NOW, mirrors=tmp_path, announce=silent)
        following.refresh(log)
        return log.store.read("points")["measured_at"].dt.to_string("%m-%dT%H").unique().to_list()

    assert tell("2026-01-03T07:00:00Z", "2026-01-03T09:00:00Z") == ["01-03T07"]
    assert tell("2026-01-02T05:00:00Z", "2026-01-03T08:00:00Z") == ["01-03T07"], "an older state of the same record"
    assert tell("2026-01-02T05:00:00Z", "2026-01-03T08:00:00Z", log.last_sequence() + 1) == ["01-02T05"]
    assert tell("2026-01-03T07:00:00Z", "2026-01-09T00:00:00Z") == ["01-02T05"]
    assert log.store.read("points").height == 5
    assert log.store.read("runs").height == 1


def test_a_mistyped_time_is_mended_by_a_second_declaration(log: EventLog, tmp_path: Path) -> None:
    path = tmp_path / "agg_bmk.json"
    path.write_text(json.dumps([row(4), row(8)]))
    for day in (1, 2):
        declared = Declared(datetime(2026, 1, day, tzinfo=UTC))
        ingest(log, (str(path),), declared, recorded_at=NOW, mirrors=tmp_path, announce=silent)
    following.refresh(log)
    own = log.store.read("points").filter(~pl.col("reused"))
    assert own["measured_at"].unique().to_list() == [datetime(2026, 1, 2, tzinfo=UTC)]
    take(log, tmp_path, 9, [row(4), row(8)])
    following.refresh(log)
    own = log.store.read("points").filter(~pl.col("reused"))
    assert own["run_id"].unique().to_list() == ["9"]


def test_what_was_read_later_leaves_quarantine(log: EventLog, tmp_path: Path) -> None:
    path = tmp_path / "agg_bmk.json"
    path.write_text(json.dumps([row(4), row(8, isl=None)]))
    ingest(log, (str(path),), Declared(), recorded_at=NOW, mirrors=tmp_path, announce=silent)
    following.refresh(log)
    assert log.store.read("quarantine")["position"].to_list() == ["/0", "/1"]
    declared = Declared(datetime(2026, 1, 1, tzinfo=UTC))
    ingest(log, (str(path),), declared, recorded_at=NOW, mirrors=tmp_path, announce=silent)
    following.refresh(log)
    assert set(log.store.read("quarantine")["position"].to_list()) == {"/1"}


TURNS = (
    "slow quick slow!",
    "slow quick quick! slow!",
    "slow quick slow slow!",
    "slow quick slow! quick!",
    "slow quick slow quick!",
)


@pytest.mark.parametrize("turns", TURNS)
def test_two_processes_that_overtake_each_other_lose_nothing(log: EventLog, tmp_path: Path, turns: str) -> None:
    """Whoever folds (a name) and settles (with a mark) when: the small tables hold what the points of all give."""
    followers = {name: Follower(log) for name in ("first", "slow", "quick")}
    taken = 0
    for turn in ("first", "first!", *turns.split()):
        follower = followers[turn.rstrip("!")]
        if turn.endswith("!"):
            follower.settle()
            continue
        taken += 1
        place = write_run(tmp_path, taken, f"2026-01-{taken:02}T06:00:00Z", sweep(speed=1 + taken / 100))
        ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=tmp_path, announce=silent, fold=follower.fold)
    assert log.store.read("runs")["points"].to_list() == [5] * taken
    assert log.store.read("builds")["points"].to_list() == [5 * taken]
    assert verify(log) == []


def test_a_process_halted_while_it_settles_puts_nothing_older_over_what_is_there(log: EventLog, tmp_path: Path) -> None:
    """It read how far `points` went, another process went further, and then it goes on."""
    take(log, tmp_path, 1, sweep())
    following.refresh(log)
    reached = log.store.mark("points")
    take(log, tmp_path, 2, sweep(speed=1.1))
    following.refresh(log)

    class Halted(Store):
        def mark(self, name: str) -> Mark | None:
            return reached if name == "points" else super().mark(name)

    assert settle(EventLog(Halted(log.store.uri)), []) == []
    assert log.store.read("runs")["points"].to_list() == [5, 5]
    assert verify(log) == []
