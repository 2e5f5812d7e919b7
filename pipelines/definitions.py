"""Dagster's view of the night: events → points → noise → shifts → links → report, over the same functions as the command line.

Assets are thin: each calls one function and says what it counted. Belongs here: wiring. Does not: any decision.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of assets and resources.
import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl

from pipelines import following, pages, projections
from pipelines.announcing import silent
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.settings import mirrors_folder
from warehouse.clock import system_clock
from warehouse.log import EventLog
from warehouse.store import Store, default_uri

MAX_QUARANTINE_SHARE = 0.05
"""Share of inputs in quarantine above which the check warns: a reader or a producer has changed."""


class Warehouse(dg.ConfigurableResource[Store]):
    """Where the tables are, which folder is ingested, and where the page goes."""

    uri: str = ""
    landing: str = ""
    report: str = ""

    def log(self) -> EventLog:
        """Return the event log of the warehouse."""
        return EventLog(Store(self.uri or default_uri()))

    def report_folder(self) -> str:
        """Return the folder of the page."""
        return self.report or os.environ.get("SHIFTLOG_REPORT", "shiftlog-report")

    def landing_folder(self) -> str:
        """Return the folder that new files land in."""
        return self.landing or os.environ.get("SHIFTLOG_LANDING", "")


def _counts(store: Store, *names: str) -> dict[str, int]:
    return {name: store.count(name) for name in names}


@dg.asset(group_name="facts", kinds={"deltalake"})
def events(warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """The append-only log, with everything in the landing folder taken in."""
    log, landing = warehouse.log(), warehouse.landing_folder()
    if not landing or not Path(landing).is_dir():
        return dg.MaterializeResult(metadata={"new events": 0, "landing folder": landing or "not set ($SHIFTLOG_LANDING)"})
    intake = ingest(log, (landing,), Declared(), recorded_at=system_clock(), mirrors=mirrors_folder(log.store), announce=silent)
    return dg.MaterializeResult(
        metadata={
            "new events": sum(intake.new.values()),
            "files": intake.files,
            "quarantined": len(intake.quarantined),
            "new by type": dg.MetadataValue.json(dict(sorted(intake.new.items()))),
        }
    )


@dg.asset(deps=[events], group_name="facts", kinds={"deltalake"})
def points(warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Points, runs, builds, quarantine and the upstream tables, brought up to the log."""
    log = warehouse.log()
    rebuilt = following.refresh(log)
    return dg.MaterializeResult(
        metadata={"rebuilt": ", ".join(rebuilt) or "nothing", **_counts(log.store, "points", "runs", "commits")}
    )


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            "noise",
            deps=[points],
            group_name="detection",
            kinds={"deltalake"},
            description="How far metrics move when nothing changed.",
        ),
        dg.AssetSpec(
            "shifts",
            deps=["noise"],
            group_name="detection",
            kinds={"deltalake"},
            description="Every comparison, and those that the noise floor does not explain.",
        ),
    ],
)
def detection(warehouse: Warehouse) -> Iterator[dg.MaterializeResult[None]]:
    """Noise and shifts come out of one pass over the points; what is news is stated in the log."""
    log = warehouse.log()
    new = projections.write_shifts(log, system_clock())
    yield dg.MaterializeResult(asset_key="noise", metadata=_counts(log.store, "noise"))
    yield dg.MaterializeResult(asset_key="shifts", metadata={"new statements": new, **_counts(log.store, "diffs", "shifts")})


@dg.asset(deps=["shifts"], group_name="detection", kinds={"deltalake"})
def links(warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Upstream changes that could have done each shift."""
    log = warehouse.log()
    projections.write_links(log)
    return dg.MaterializeResult(metadata=_counts(log.store, "links"))


@dg.asset(deps=[links], group_name="report", kinds={"html"})
def report(warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """The self-contained page."""
    page = pages.write_report(warehouse.log().store, warehouse.report_folder())
    return dg.MaterializeResult(metadata={"page": dg.MetadataValue.path(str(page)), "bytes": page.stat().st_size})


@dg.asset_check(asset=points, description="Every recorded result is a point or in quarantine.")
def no_result_is_lost(warehouse: Warehouse) -> dg.AssetCheckResult:
    """Count results in the log against points and refused results."""
    log = warehouse.log()
    recorded = log.store.collect("events", log.scan("ResultRecorded", "EvalRecorded").select("event_id"))
    kept = [
        log.store.collect(name, log.store.scan(name).select(event_id=column))
        for name, column in (("points", "point_id"), ("evals", "event_id"), ("quarantine", "event_id"))
    ]
    lost = recorded.join(pl.concat(kept), on="event_id", how="anti").height
    return dg.AssetCheckResult(passed=lost == 0, metadata={"results": recorded.height, "lost": lost})


@dg.asset_check(asset=points, description="Few points repeat a record of another run.")
def little_is_reused(warehouse: Warehouse) -> dg.AssetCheckResult:
    """Warn where records stand under more than one run: a sweep was re-used, or a time was declared twice."""
    store = warehouse.log().store
    reused = store.collect("points", store.scan("points").select(pl.col("reused").sum())).item() or 0
    return dg.AssetCheckResult(
        passed=reused == 0, severity=dg.AssetCheckSeverity.WARN, metadata={**_counts(store, "points"), "reused": reused}
    )


@dg.asset_check(asset=points, description="Few inputs are in quarantine.")
def little_is_quarantined(warehouse: Warehouse) -> dg.AssetCheckResult:
    """Warn where more than MAX_QUARANTINE_SHARE of points and faults together are faults."""
    counts = _counts(warehouse.log().store, "points", "quarantine")
    share = counts["quarantine"] / max(1, counts["points"] + counts["quarantine"])
    return dg.AssetCheckResult(
        passed=share <= MAX_QUARANTINE_SHARE, severity=dg.AssetCheckSeverity.WARN, metadata={**counts, "share": share}
    )


nightly = dg.define_asset_job(
    "nightly",
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    description="Take in what landed, detect, link, report.",
)


@dg.sensor(job=nightly, minimum_interval_seconds=60, description="Runs the night when the landing folder has changed.")
def landing_folder(context: dg.SensorEvaluationContext, warehouse: Warehouse) -> dg.RunRequest | dg.SkipReason:
    """Ask for a run when the newest file of the landing folder is newer than at the last look."""
    landing = warehouse.landing_folder()
    if not landing or not Path(landing).is_dir():
        return dg.SkipReason("no landing folder: set SHIFTLOG_LANDING to a folder")
    state = _state(Path(landing))
    if state == (context.cursor or ""):
        return dg.SkipReason("nothing new has landed")
    context.update_cursor(state)
    return dg.RunRequest(run_key=state)


def _state(landing: Path) -> str:
    """Return a text that changes with the files of a folder: how many, how large, how new."""
    stats = [path.stat() for path in sorted(landing.rglob("*")) if path.is_file()]
    newest = max((stat.st_mtime_ns for stat in stats), default=0)
    return f"{len(stats)}-{sum(stat.st_size for stat in stats)}-{newest}"


defs = dg.Definitions(
    assets=[events, points, detection, links, report],
    asset_checks=[no_result_is_lost, little_is_reused, little_is_quarantined],
    jobs=[nightly],
    schedules=[dg.ScheduleDefinition(job=nightly, cron_schedule="0 3 * * *", execution_timezone="UTC")],
    sensors=[landing_folder],
    resources={"warehouse": Warehouse()},
    executor=dg.in_process_executor,
)
