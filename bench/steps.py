"""The steps that the bench times: `python bench/steps.py STEP ARGUMENT…` does one and prints its seconds as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
Said = dict[str, float]


def parse(folder: str) -> Said:
    """The floor: orjson over all files, one core."""
    import orjson

    files = sorted(Path(folder).rglob("agg_bmk.json"))
    start = time.perf_counter()
    records = sum(len(orjson.loads(path.read_bytes())) for path in files)
    return {"seconds": time.perf_counter() - start, "records": records}


def parse_lines(folder: str) -> Said:
    """The floor of JSON lines: orjson over every line, one core."""
    import orjson

    files = sorted(Path(folder).rglob("*.jsonl"))
    start = time.perf_counter()
    records = sum(len([orjson.loads(line) for line in path.read_bytes().splitlines()]) for path in files)
    return {"seconds": time.perf_counter() - start, "records": records}


def log(warehouse: str, folder: str, workers: str = "processes") -> Said:
    """Files to the log, no tables."""
    from pipelines.announcing import silent
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest
    from warehouse.log import EventLog
    from warehouse.store import Store

    events = EventLog(Store(warehouse))
    start = time.perf_counter()
    intake = ingest(events, (folder,), Declared(), recorded_at=NOW, mirrors=Path(warehouse), announce=silent, workers=workers)
    return {"seconds": time.perf_counter() - start, "new": sum(intake.new.values()), "known": intake.known}


def ingest(warehouse: str, folder: str, workers: str = "processes") -> Said:
    """What `shiftlog ingest` does: files to the log and to the tables."""
    from pipelines.announcing import silent
    from pipelines.following import Follower
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest as run_ingest
    from warehouse.log import EventLog
    from warehouse.store import Store

    start = time.perf_counter()
    events = EventLog(Store(warehouse))
    tables = Follower(events)
    intake = run_ingest(
        events,
        (folder,),
        Declared(),
        recorded_at=NOW,
        mirrors=Path(warehouse),
        announce=silent,
        fold=tables.fold,
        workers=workers,
    )
    tables.settle()
    return {"seconds": time.perf_counter() - start, "new": sum(intake.new.values()), "known": intake.known}


def tables(warehouse: str, workers: str = "processes") -> Said:
    """The fact and upstream tables from the log alone; says whether they are what was there."""
    from pipelines.following import FACTS, refresh
    from warehouse.digest import content_hash
    from warehouse.log import EventLog
    from warehouse.store import Store

    events = EventLog(Store(warehouse))
    before = [content_hash(events.store.read(name)) for name in FACTS]
    start = time.perf_counter()
    events.extend_index(force=True)
    refresh(events, force=True, workers=workers)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "same": float(before == [content_hash(events.store.read(name)) for name in FACTS])}


def latest(warehouse: str) -> Said:
    """Open the warehouse and read the latest value of one cell."""
    import polars as pl

    from warehouse.store import Store

    store = Store(warehouse)
    cell = store.collect("points", store.scan("points").select("cell_id").tail(1)).item()
    start = time.perf_counter()
    fresh = Store(warehouse)
    found = fresh.scan("points").filter(pl.col("cell_id") == cell).select("measured_at", "tput_per_gpu")
    value = fresh.collect("points", found).sort("measured_at").tail(1)
    return {"seconds": time.perf_counter() - start, "rows": value.height}


def git_log(repository: str) -> Said:
    """The floor of reading a history: git lists every commit with its paths, as the reader asks it to."""
    import subprocess

    form = "--format=%x00%H%x00%P%x00%aI%x00%cI%x00%s%x00%b"
    start = time.perf_counter()
    command = (
        "git",
        "-C",
        repository,
        "log",
        "-z",
        "--reverse",
        "--name-only",
        "--no-renames",
        "--diff-merges=first-parent",
        form,
    )
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return {"seconds": time.perf_counter() - start, "bytes": len(said)}


def index(warehouse: str, repository: str, project: str) -> Said:
    """What `shiftlog ingest REPOSITORY --set engine=PROJECT` does: commits and tags to the log and to the tables."""
    from pipelines.announcing import silent
    from pipelines.following import Follower
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest as run_ingest
    from warehouse.log import EventLog
    from warehouse.store import Store

    start = time.perf_counter()
    events = EventLog(Store(warehouse))
    tables = Follower(events)
    declared = Declared(settings={"engine": project})
    intake = run_ingest(
        events, (repository,), declared, recorded_at=NOW, mirrors=Path(warehouse), announce=silent, fold=tables.fold
    )
    tables.settle()
    return {"seconds": time.perf_counter() - start, "new": sum(intake.new.values())}


def link(warehouse: str, project: str, begin: str, end: str) -> Said:
    """Rank all changes of one range for one configuration; `opened`: the history and the first ranking, once a process."""
    from statistics import median

    from changelog.facets import Configuration
    from changelog.ranges import find_range
    from changelog.ranking import describe, rank
    from changelog.upstream import open_upstream
    from pipelines.projections import upstream
    from warehouse.store import Store

    start = time.perf_counter()
    known = open_upstream(project, upstream(Store(warehouse)))
    times, count = [], 0
    for model in ("dsr1", "gptoss120b", "kimik2.5", "dsr1", "gptoss120b", "kimik2.5"):
        asked = Configuration(hardware="b200", model=model, precision="fp4", direction="speedup", metric="tput_per_gpu")
        before = time.perf_counter()
        found = find_range(known, begin, end)
        count = len(rank(found, asked, describe(found)))
        times.append(time.perf_counter() - before)
    opened = time.perf_counter() - start - sum(times[1:])
    return {"seconds": median(times[1:]), "opened": opened, "candidates": count}


def nights(warehouse: str, folder: str, number: str) -> Said:
    """Append *number* run folders one by one, tables included; says what the 10th and the last ten cost (medians)."""
    from statistics import median

    from pipelines.announcing import silent
    from pipelines.following import Follower
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest as run_ingest
    from warehouse.log import EventLog
    from warehouse.store import Store

    events = EventLog(Store(warehouse))
    costs = []
    for place in sorted(Path(folder).iterdir())[: int(number)]:
        start = time.perf_counter()
        step = Follower(events)
        run_ingest(events, (str(place),), Declared(), recorded_at=NOW, mirrors=Path(warehouse), announce=silent, fold=step.fold)
        step.settle()
        costs.append(time.perf_counter() - start)
    most = max(len(events.store.file_sizes(name)) for name in ("events", "points", "runs", "subjects"))
    return {"seconds": sum(costs), "tenth": median(costs[5:15]), "last": median(costs[-10:]), "files": most}


STEPS: dict[str, Callable[..., Said]] = {
    step.__name__: step for step in (parse, parse_lines, log, ingest, tables, latest, git_log, index, link, nights)
}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
