"""`make bench`: how fast and how large on this machine, as ratios within one run.

Each step runs in a process of its own (peak memory is its own), over the generated sample. A ratio compares two steps of this
run; single times differ from machine to machine.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = ("parse", "ingest", "again", "tables", "detect", "sql", "duckdb")


def step(name: str, folder: Path) -> dict[str, float]:
    """Run one step in this process and return its seconds and peak memory."""
    from datetime import UTC, datetime

    from pipelines.announcing import silent
    from pipelines.detect.night import detect
    from pipelines.ingest.intake import Declared, ingest
    from pipelines.projections import refresh
    from warehouse.log import EventLog
    from warehouse.sql import query
    from warehouse.store import Store

    log = EventLog(Store(str(folder / "warehouse")))
    statement = "SELECT engine, hardware, median(tput_per_gpu) FROM points GROUP BY ALL ORDER BY ALL"
    start = time.perf_counter()
    if name == "parse":
        for path in sorted((folder / "sample" / "runs").rglob("agg_bmk.json")):
            json.loads(path.read_bytes())
    elif name in ("ingest", "again"):
        ingest(
            log,
            (str(folder / "sample" / "runs"),),
            Declared(),
            recorded_at=datetime(2026, 3, 1, tzinfo=UTC),
            mirrors=folder / "mirrors",
            announce=silent,
        )
    elif name == "tables":
        refresh(log, force=True)
    elif name == "detect":
        detect(log.store.read("points"))
    elif name == "sql":
        query(log.store, statement)
    elif name == "duckdb":
        import duckdb
        from deltalake import DeltaTable

        files = DeltaTable(log.store.table_uri("points")).file_uris()
        duckdb.connect().sql(statement.replace("points", f"read_parquet({files!r})")).pl()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    """Generate the sample, run every step three times where it can be repeated, print the table and the ratios."""
    from pipelines.demo.sample import generate

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = generate(folder / "sample")
        results = {}
        for one in STEPS:
            runs = [_in_process(one, folder) for _ in range(1 if one == "ingest" else 3)]
            results[one] = min(runs, key=lambda run: run["seconds"])
        print(f"{plan.points:,} points in {plan.runs} runs")
        for one, result in results.items():
            print(f"  {one:8} {result['seconds']:8.3f} s  {result['peak_mb']:7.0f} MB")
        seconds = {one: result["seconds"] for one, result in results.items()}
        print(f"ingest (with fence and commit) / json.loads of the same bytes: {seconds['ingest'] / seconds['parse']:.1f} x")
        print(f"second ingest / first: {seconds['again'] / seconds['ingest']:.2f} x")
        print(
            f"points a second: ingest {plan.points / seconds['ingest']:,.0f}, tables {plan.points / seconds['tables']:,.0f}, "
            f"detect {plan.points / seconds['detect']:,.0f}"
        )
        print(f"our locked SQL / DuckDB over the same files: {seconds['sql'] / seconds['duckdb']:.2f} x")


def _in_process(name: str, folder: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, name, str(folder)], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(step(sys.argv[1], Path(sys.argv[2]))))
    else:
        main()
