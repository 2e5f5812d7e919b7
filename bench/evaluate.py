"""`make eval`: how often unchanged curves are flagged, and where known causes rank, on the real data beside the checkout.

Needs `../shared/data` (real runs and upstream histories, not part of the project); says so and stops where it is absent.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Ingest real runs and upstream files into a temporary warehouse and print what detection and ranking make of them."""
    if not DATA.is_dir():
        print(f"no real data beside the checkout ({DATA.name} is absent): nothing to evaluate")
        sys.exit(0)
    from pipelines.ingest.intake import Declared, ingest
    from pipelines.projections import run_detection
    from warehouse.clock import system_clock
    from warehouse.log import EventLog
    from warehouse.store import Store

    with tempfile.TemporaryDirectory() as name:
        log = EventLog(Store(name))
        ingest(
            log,
            (str(DATA / "inferencex" / "runs"), str(DATA / "upstream")),
            Declared(),
            recorded_at=system_clock(),
            mirrors=Path(name) / "mirrors",
            announce=lambda _name: None,
        )
        run_detection(log, system_clock())
        _detection(log.store.read("diffs"), log.store.read("shifts"))
        _ranking(log)


def _detection(diffs: pl.DataFrame, shifts: pl.DataFrame) -> None:
    same = diffs.filter("same_build")
    flagged = shifts.filter("same_build").group_by("attribution").len().sort("attribution")
    print(
        f"same build on both sides: {same.height} comparisons, flagged as {dict(flagged.iter_rows())}, attributed to the engine: "
        f"{shifts.filter(pl.col('same_build') & (pl.col('attribution') == 'engine')).height}"
    )
    print(f"another build: {diffs.height - same.height} comparisons, flagged {shifts.filter(~pl.col('same_build')).height}")


def _ranking(log: object) -> None:
    from pipelines.settings import upstream_changes

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
        answer = upstream_changes(log, case["engine"], case["from"], case["to"], None, facets)  # type: ignore[arg-type]
        ranks = {change["pr"]: change["rank"] for change in answer["changes"]}
        print(f"{case['case']}: {', '.join(f'#{pr} rank {ranks.get(pr)}' for pr in case['prs'])} of {answer['candidates']}")


if __name__ == "__main__":
    main()
