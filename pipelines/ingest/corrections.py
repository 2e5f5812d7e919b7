"""What `shiftlog ingest --correct` adds to the log: what holds already is not said again, what held once is said anew.

Belongs here: which of the rows of an ingest are news. Does not: reading them, which of several statements counts
(`pipelines.fold.runs`, `reuse`, `evals`).
"""

from __future__ import annotations

import orjson
import polars as pl

from pipelines.fold.records import record_hash
from pipelines.fold.runs import fold as fold_runs
from warehouse.canonical import canonical_json
from warehouse.events import RunReported, event_id, payload_of
from warehouse.log import EventLog

RESULTS = ("ResultRecorded", "EvalRecorded")
_REVISION = '"revision":'


def restated(log: EventLog, rows: pl.DataFrame, mapped: pl.DataFrame, revision: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return *rows*, as they go to the log, and *mapped*, with what a correction by the user makes of them.

    Reports of runs that say what holds already are left out. A result that was recorded with these declarations before, and with
    others since, becomes a new event of this *revision*: the last declaration of a record holds.
    """
    news = rows.filter(~pl.col("event_id").is_in(_held_reports(log, rows)))
    new_of = _superseded(log, news, revision)
    if not new_of:
        return news, mapped
    ids = {old: new for old, (new, _payload) in new_of.items()}
    payloads = {old: payload for old, (_new, payload) in new_of.items()}
    again = news.with_columns(
        event_id=pl.col("event_id").replace(ids),
        payload=pl.col("event_id").replace_strict(payloads, default=pl.col("payload"), return_dtype=pl.String),
    )
    return again, mapped.with_columns(event_id=pl.col("event_id").replace(ids))


def _held_reports(log: EventLog, rows: pl.DataFrame) -> list[str]:
    """Return the ids of reports of runs that a user's correction makes and that say what holds already."""
    corrections = rows.filter((pl.col("event_type") == "RunReported") & pl.col("payload").str.contains(_REVISION, literal=True))
    if corrections.is_empty():
        return []
    held = fold_runs(log.about(set(corrections["subject"].to_list()), "RunReported")).by_subject
    return [
        own
        for own, payload in corrections.select("event_id", "payload").iter_rows()
        if isinstance(report := payload_of("RunReported", payload), RunReported)
        and report.subject in held
        and report.model_copy(update={"revision": held[report.subject].report.revision}) == held[report.subject].report
    ]


def _superseded(log: EventLog, rows: pl.DataFrame, revision: int) -> dict[str, tuple[str, str]]:
    """Return the new id and payload of results that the log has, but with another declaration since, by the id in *rows*."""
    if not revision:
        return {}
    results = rows.filter(pl.col("event_type").is_in(RESULTS))
    told = log.about(set(results["subject"].to_list()), *RESULTS).select("event_id", "event_type", "subject", "payload")
    known = set(told["event_id"].to_list())
    holds = {_record(*row): _unrevised(row[-1]) for _own, *row in told.iter_rows()}  # the last of each record
    rows_of = results.select("event_id", "event_type", "subject", "payload").iter_rows()
    last = {_record(*row): (own, *row) for own, *row in rows_of}  # of one record in two places the last that is read
    found: dict[str, tuple[str, str]] = {}
    for record, (own, event_type, subject, payload) in last.items():
        if own in known and holds[record] != payload:
            restating = canonical_json({**orjson.loads(payload), "revision": revision})
            found[own] = event_id(event_type, subject, restating), restating
    return found


def _record(event_type: str, subject: str, payload: str) -> tuple[str, str, str]:
    """Return what is one record of one run, whatever was declared for it."""
    return event_type, subject, record_hash(payload)


def _unrevised(payload: str) -> str:
    """Return the payload as it would be without a correction."""
    if _REVISION not in payload:
        return payload
    body = orjson.loads(payload)
    body.pop("revision", None)
    return canonical_json(body)
