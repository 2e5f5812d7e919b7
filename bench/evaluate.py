"""`make eval`: how often unchanged curves are flagged, and where known causes rank, on the real data beside the checkout.

Needs `../shared/data` (real runs and upstream histories, not part of the project); says so and stops where it is absent.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl

from pipelines.detect.night import detect
from warehouse.log import EventLog

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Ingest real runs and upstream files into a temporary warehouse and print what detection and ranking make of them."""
    if not DATA.is_dir():
        print("no real data beside the checkout (../shared/data is absent): nothing to evaluate")
        sys.exit(0)
    from pipelines.announcing import silent
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest
    from pipelines.projections import run_detection
    from warehouse.clock import system_clock
    from warehouse.store import Store

    with tempfile.TemporaryDirectory() as name:
        log = EventLog(Store(name))
        ingest(
            log,
            (str(DATA / "inferencex" / "runs"), str(DATA / "upstream")),
            Declared(),
            recorded_at=system_clock(),
            mirrors=Path(name) / "mirrors",
            announce=silent,
        )
        run_detection(log, system_clock())
        _detection(log.store.read("diffs"), log.store.read("shifts"))
        _renamed(log.store.read("points"), log.store.read("diffs"))
        _ranking(log)


def _detection(diffs: pl.DataFrame, shifts: pl.DataFrame) -> None:
    same = diffs.filter("same_build")
    flagged = shifts.filter("same_build").group_by("attribution").len().sort("attribution")
    print(
        f"same build on both sides: {same.height} comparisons, flagged as {dict(flagged.iter_rows())}, attributed to the engine: "
        f"{shifts.filter(pl.col('same_build') & (pl.col('attribution') == 'engine')).height}"
    )
    print(f"another build: {diffs.height - same.height} comparisons, flagged {shifts.filter(~pl.col('same_build')).height}")


def _renamed(points: pl.DataFrame, diffs: pl.DataFrame) -> None:
    """Rename the later image of one run and stack at a time, nothing else, and count what would be said of an engine."""
    pairs = diffs.filter("same_build").select("to_run_id", "hardware", "engine").unique().sort("to_run_id", "hardware", "engine")
    blamed: list[str] = []
    for run, hardware, engine in pairs.iter_rows():
        own = (pl.col("run_id") == run) & (pl.col("hardware") == hardware) & (pl.col("engine") == engine)
        renamed = points.with_columns(build_id=pl.when(own).then(pl.lit("tag:renamed/image:v1")).otherwise("build_id"))
        shifts = detect(renamed).shifts.filter(
            (pl.col("to_build_id") == "tag:renamed/image:v1") & (pl.col("attribution") == "engine")
        )
        blamed += shifts["status"].to_list()
    named = f"{len(blamed)} of {diffs.filter('same_build').height} comparisons named the engine"
    print(f"the same image under another name: {named}, {blamed.count('confirmed')} confirmed")


def _ranking(log: EventLog) -> None:
    from pipelines.answers import upstream_changes
    from pipelines.settings import configuration

    for case in json.loads((DATA / "upstream" / "link_labels.json").read_text("utf-8"))["cases"]:
        facets = {
            "hardware": case["hardware"],
            "model": case["model"],
            "precision": case["precision"],
            "spec": None,
            "disagg": False,
            "direction": case["direction"],
            "metric": case["metric"],
        }
        answer = upstream_changes(log.store, (case["engine"], case["from"], case["to"]), configuration(facets))
        ranks = {change["pr"]: change["rank"] for change in answer["changes"]}
        print(f"{case['case']}: {', '.join(f'#{pr} rank {ranks.get(pr)}' for pr in case['prs'])} of {answer['candidates']}")


if __name__ == "__main__":
    main()
