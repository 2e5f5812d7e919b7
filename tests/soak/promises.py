"""What a warehouse must hold whatever happened: each fact once, nothing lost, tables in step, `verify` content.

Belongs here: runs whose every record is another one, and the check of them. Does not: processes and signals (`command`).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from tests.records import row, write_run
from tests.soak.command import Outcome, shiftlog
from warehouse.log import EventLog
from warehouse.store import Store

CONCURRENCIES = (4, 8, 16, 32, 64)
Fact = tuple[str, str, int, float]
"""A record by its run's number, runner label, concurrency and throughput (tok/s/GPU); no two of ours are alike."""


def write_night(folder: Path, run_id: int, labels: tuple[str, ...] = ("h200", "b200")) -> Path:
    """Write one run, a curve of five concurrencies for each of *labels*; no other run has a record like its."""
    rows = [
        row(concurrency, hw=label, speed=1 + run_id / 1000 + place / 7)
        for place, label in enumerate(labels)
        for concurrency in CONCURRENCIES
    ]
    return write_run(folder, run_id, f"2026-01-{1 + run_id % 28:02d}T{run_id // 28 % 24:02d}:00:00Z", rows)


def facts_of(*run_folders: Path) -> Counter[Fact]:
    """Return the records of run folders as they stand on disk, each once."""
    facts: Counter[Fact] = Counter()
    for folder in run_folders:
        run_id = str(json.loads((folder / "run.json").read_text("utf-8"))["id"])
        facts.update(_fact(run_id, record) for record in json.loads((folder / "agg_bmk.json").read_text("utf-8")))
    assert set(facts.values()) == {1}, "the test's own records are not distinct"
    return facts


def _fact(run_id: str, record: dict[str, Any]) -> Fact:
    return (run_id, record["hw"], record["conc"], record["tput_per_gpu"])


def assert_kept(warehouse: Path, run_folders: list[Path]) -> None:
    """Assert that log and points hold exactly the records of *run_folders*, each once, and that `verify` is content."""
    assert_facts(warehouse, run_folders)
    assert_sound(shiftlog(warehouse, "verify"))


def assert_facts(warehouse: Path, run_folders: list[Path]) -> None:
    """Assert that log and points hold exactly the records of *run_folders*, each once."""
    expected = facts_of(*run_folders)
    store = Store(str(warehouse))
    _assert_same(logged(store), expected, "the log")
    _assert_same(pointed(store), expected, "points")
    counts = Counter(run_id for run_id, *_ in expected)
    assert dict(store.read("runs").select("run_id", "points").iter_rows()) == counts


def _assert_same(found: Counter[Fact], expected: Counter[Fact], where: str) -> None:
    lost, more = expected - found, found - expected
    assert not lost, f"{where}: {lost.total()} of {expected.total()} lost, for one {next(iter(lost))}"
    assert not more, f"{where}: {more.total()} twice or never given, for one {next(iter(more))}"


def pointed(store: Store) -> Counter[Fact]:
    """Return the records in `points`."""
    facts = store.scan("points").select("run_id", "hardware_label", "concurrency", "tput_per_gpu")
    return Counter(store.collect("points", facts).iter_rows())


def logged(store: Store) -> Counter[Fact]:
    """Return the records in the log; asserts that the log is whole: one order without gaps, no event twice."""
    events = EventLog(store).read()
    assert events["sequence"].to_list() == list(range(1, events.height + 1))
    assert events["event_id"].is_unique().all()
    payloads = events.filter(pl.col("event_type") == "ResultRecorded")["payload"]
    return Counter(_fact(payload["run"]["run_id"], payload["record"]) for payload in map(json.loads, payloads))


def assert_sound(verified: Outcome) -> None:
    """Assert that `verify` found nothing."""
    assert verified.status == 0, verified.out + verified.err
