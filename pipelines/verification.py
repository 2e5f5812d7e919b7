"""Is the warehouse what it says it is: hashes, order, duplicates, and tables that follow from the log."""

from __future__ import annotations

from pipelines.projections import GROUPS
from warehouse.events import event_id
from warehouse.log import EventLog
from warehouse.schemas import TABLES

SHOWN = 20


def verify(log: EventLog) -> list[str]:
    """Return what is wrong, one line each and what to do; empty where all is sound."""
    return [*_log(log), *_tables(log)]


def _log(log: EventLog) -> list[str]:
    events = log.read()
    findings = [
        f"event {row['sequence']} ({row['event_type']}): its content and its id differ; restore the events table from a backup"
        for row in events.iter_rows(named=True)
        if event_id(row["event_type"], row["subject"], row["payload"]) != row["event_id"]
    ][:SHOWN]
    duplicates = events.height - events["event_id"].n_unique()
    if duplicates:
        findings.append(f"{duplicates} events stand twice in the log; something else than shiftlog wrote to it")
    if events["sequence"].to_list() != list(range(1, events.height + 1)):
        findings.append("the log's sequence has gaps or repeats; restore the events table from a backup")
    return findings


def _tables(log: EventLog) -> list[str]:
    findings = []
    for group in GROUPS:
        frames = group.fold(log)
        for name in group.tables:
            if not log.store.exists(name):
                findings.append(f"table {name} is missing; run `shiftlog rebuild`")
                continue
            stored = log.store.read(name)
            expected = frames[name].sort(TABLES[name].order, maintain_order=True)
            if not stored.equals(expected):
                findings.append(f"table {name} does not follow from the log; run `shiftlog rebuild`")
    return findings
