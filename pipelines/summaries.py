"""What each verb prints: the results of the plain functions as tables, JSON, CSV or sentences."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.exceptions import PanicException

from pipelines.console import clipped, finite, out, out_csv, out_json, out_table, safe, say
from pipelines.detect.states import CONFIRMED, GONE
from pipelines.ingest import catalogue, formats
from pipelines.ingest.intake import Intake
from warehouse.errors import InputError, QueryError, StoreError
from warehouse.events import PAYLOADS
from warehouse.store import Store

if TYPE_CHECKING:
    from pipelines.doctor import Finding
    from pipelines.sync.course import Part
    from pipelines.upkeep import Compacted
    from warehouse.log import EventLog

LOG_COLUMNS = ("sequence", "event_type", "subject", "occurred_at", "recorded_at", "source_name", "source_position")
FAULTS_SHOWN = 10
NAMES_SHOWN = 5
DIGEST_SHOWN = 12
VERSION_SHOWN = 8


def say_intake(intake: Intake) -> None:
    """Say what an ingest read, what is new, and what was not read."""
    read = intake.read
    kinds = (
        ("RunReported", "run"),
        ("ResultRecorded", "point"),
        ("EvalRecorded", "evaluation"),
        ("RateChanged", "rate"),
        ("JobsCounted", "job count"),
        ("RecipeChanged", "recipe change"),
        ("CommitLanded", "commit"),
        ("ReleasePublished", "release fact"),
        ("DependencyPinned", "dependency"),
    )
    parts = [_count(read[kind], word) for kind, word in kinds if read[kind]]
    empty = f" (empty: {_some(intake.empty)})" if intake.empty else ""
    say(
        f"read {', '.join(parts) or 'nothing'} from {_count(intake.files, 'file')}{empty}{_passed_over(intake.known)}; "
        f"{len(intake.quarantined):,} in quarantine; {_count(sum(intake.new.values()), 'new event')}"
    )
    for kind, name in sorted(intake.unknown_names):
        say(f"  unknown {kind} {name!r} in {_count(intake.unknown_names[kind, name], 'record')}: kept as it stands")
    for fault in intake.quarantined[:FAULTS_SHOWN]:
        say(f"  quarantined {fault.name}{' ' + fault.position if fault.position else ''}: {fault.reason}")
    if len(intake.quarantined) > FAULTS_SHOWN:
        say(f"  … {len(intake.quarantined) - FAULTS_SHOWN:,} more: shiftlog sql 'FROM quarantine'")
    if intake.ignored:
        say(f"  not looked at: {_some(intake.ignored)}")
    for stale in intake.stale:
        say(f"  not up to date: {stale}")
    for failure in intake.failed:
        say(f"  failed: {failure}")


def _passed_over(known: int) -> str:
    return f", passed over {_count(known, 'file')} read before" if known else ""


def say_reused(store: Store) -> None:
    """Say how many points say once more what another one says: under another run, or with an earlier declaration."""
    reused = store.collect("points", store.scan("points").select(pl.col("reused").sum())).item() or 0
    if reused:
        say(f"  not counted again: {_count(reused, 'point')} measured by another run or declared anew since (column `reused`)")


def _some(names: list[str]) -> str:
    more = f", … {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}" if word != "dependency" else f"{number:,} dependencies"


def say_detection(store: Store, new: int | None) -> None:
    """Say how many comparisons were made and what they gave; *new* statements, None where nothing was stated."""
    diffs = store.count("diffs")
    shifts = store.read("shifts").filter(~pl.col("status").is_in(GONE))
    notices = shifts.filter(pl.col("attribution") == "measurement").height
    engine = shifts.filter(pl.col("attribution") == "engine").height
    confirmed = shifts.filter(pl.col("status") == CONFIRMED).height
    say(
        f"{_count(diffs, 'comparison')}: {_count(shifts.height, 'shift')}, {engine:,} attributed to an engine build, "
        f"{confirmed:,} confirmed, {_count(notices, 'measurement notice')}"
        + ("" if new is None else f"; {_count(new, 'new statement')}")
    )
    _say_uncompared(store)


def _say_uncompared(store: Store) -> None:
    """Say how many curves were compared with nothing, and why."""
    from pipelines.coverage import uncompared

    reasons, curves = uncompared(store)
    if reasons:
        told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        say(f"  not compared: {sum(reasons.values()):,} of {_count(curves, 'curve')}: {told}")
    elif not curves:
        say("  not compared: there are no points that count")


def refresh_or_say(log: Any) -> None:
    """Bring the tables up to the log; say so where that fails (a full disk): what is there can still be read."""
    from pipelines.following import refresh

    try:
        refresh(log)
    except StoreError as error:
        say(f"note: the tables could not be brought up to the log and may lack its last events: {error}")


def warn_if_stale(log: Any) -> None:
    """Say so where the log holds results or upstream facts that no detection has seen."""
    from pipelines.projections import is_detection_current

    if not is_detection_current(log):
        say("note: the log holds facts that no detection has seen; run `shiftlog detect`")


def out_shifts(shifts: list[dict[str, Any]], output: str) -> None:
    """Print shifts; the table shows the essentials, JSON and CSV everything."""
    if output == "json":
        out_json(finite(shifts))
    elif output == "csv":
        flat = [
            {
                **{k: v for k, v in s.items() if k not in ("from", "to", "curve")},
                **{f"from_{k}": v for k, v in s["from"].items()},
                **{f"to_{k}": v for k, v in s["to"].items()},
            }
            for s in shifts
        ]
        out_csv(list(flat[0]) if flat else ["shift_id"], [list(row.values()) for row in flat])
    else:
        header = (
            "shift",
            "day",
            "status",
            "kind",
            "attribution",
            "stack",
            "model",
            "isl/osl",
            "change",
            "cells",
            "noise",
            "q",
            "from → to",
        )
        out_table(header, [_shift_line(shift) for shift in shifts], right=(8, 9, 10, 11))
        say(f"{_count(len(shifts), 'shift')}; `shiftlog explain SHIFT` tells one in full")


def _shift_line(shift: dict[str, Any]) -> tuple[str | None, ...]:
    noise = f"{shift['noise_pct']:.1f} %" if shift["noise_pct"] is not None else "–"
    q_value = _probability(shift["q_value"])
    return (
        shift["shift_id"][:8],
        shift["night"],
        shift["status"],
        shift["kind"],
        shift["attribution"],
        f"{shift['engine']} {shift['hardware']}",
        " ".join(name for name in (shift["model"], shift["precision"]) if name),
        "–" if shift["isl"] is None and shift["osl"] is None else f"{shift['isl'] or '–'}/{shift['osl'] or '–'}",
        f"{shift['size_pct']:+.1f} %",
        _agreement(shift),
        noise,
        q_value,
        f"{_build(shift['from'])} → {_build(shift['to'])}",
    )


PARTS = {"low_concurrency": "low half", "high_concurrency": "high half", "unfit_cells": "unfit"}


def _agreement(shift: dict[str, Any]) -> str:
    part = PARTS.get(shift["part"])
    return f"{shift['agreeing'] or 0} {part}" if part else f"{shift['agreeing'] or 0}/{shift['cells'] or 0}"


def _probability(value: float | None) -> str:
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _build(side: dict[str, Any]) -> str:
    name = str(side["engine_version"] or (side["image_ref"] or "unknown").rsplit("/", 1)[-1])
    tag, _, digest = name.partition("@sha256:")
    return f"{tag}@{digest[:DIGEST_SHOWN]}" if digest else tag


def out_noise(scales: list[dict[str, Any]], output: str) -> None:
    """Print noise floors; the table shows groups in words, JSON and CSV every column."""
    if output == "json":
        out_json(finite(scales))
    elif output == "csv":
        out_csv(list(scales[0]) if scales else ["level"], [list(row.values()) for row in scales])
    else:
        header = ("level", "group", "metric", "unit", "scale %", "raw %", "repeats", "until", "version")
        out_table(header, [_noise_line(row) for row in scales], right=(4, 5, 6))
        say(_count(len(scales), "row") + ("" if scales else "; no same-image repeats of it are on record, so a prior stands"))


def _noise_line(row: dict[str, Any]) -> tuple[str, ...]:
    names = ("engine", "hardware", "framework", "precision", "deployment")
    raw = row["raw_scale_pct"]
    return (
        row["level"],
        " ".join(row[name] for name in names if row[name]) or "all",
        row["metric"],
        row["unit"],
        f"{row['scale_pct']:.2f}",
        "–" if raw is None else f"{raw:.2f}",
        f"{row['repeats']} (insufficient)" if row["insufficient"] else str(row["repeats"]),
        row["until"],
        row["version"][:VERSION_SHOWN],
    )


def out_explanation(shift: dict[str, Any], output: str) -> None:
    """Print one shift in full."""
    if output == "json":
        out_json(finite(shift))
        return
    from pipelines.explanation import sentences

    for line in sentences(shift):
        out(safe(" ".join(line.splitlines())))  # a name from a record must not begin a line of its own


def say_part(part: Part) -> None:
    """Say what one part of a sync brought, and what could not be had."""
    new = ", ".join(f"{count:,} {kind}" for kind, count in sorted(part.new.items()))
    say(f"{part.name}: {new or 'nothing new'}")
    if part.trouble:
        say(f"  {part.trouble}" + ("; what is here stays as it was" if part.temporary else ""))
    for note in part.notes[:FAULTS_SHOWN]:
        say(f"  {note}")
    if len(part.notes) > FAULTS_SHOWN:
        say(f"  … {len(part.notes) - FAULTS_SHOWN} more")
    for fault in part.quarantined[:FAULTS_SHOWN]:
        say(f"  quarantined {fault.position}: {fault.reason}")


def out_bisect(answer: dict[str, Any], output: str) -> None:
    """Print a bisection."""
    if output == "json":
        out_json(finite(answer))
        return
    from pipelines.bisect_words import sentences

    for line in sentences(answer):
        out(safe(line))


def out_changes(answer: dict[str, Any], output: str) -> None:
    """Print what upstream did between two builds."""
    if output == "json":
        out_json(finite(answer))
        return
    span = answer["range"]
    open_end = " One end of the range is open." if answer["open_ended"] else ""
    flat = "" if answer["narrowed"] else " Not narrowed: the order hardly tells the first changes from the rest."
    say(f"{answer['candidates']:,} changes. {span['how']}{open_end}{flat}")
    for note in answer["notes"]:
        say(f"note: {note}")
    header = ("rank", "score", "PR", "commit", "title", "evidence")
    out_table(header, [_change_line(change) for change in answer["changes"]], right=(0, 1))
    if len(answer["changes"]) < answer["candidates"]:
        say(f"first {len(answer['changes'])} of {answer['candidates']:,}; --limit N or --format json shows more")
    for move in answer["dependencies"]:
        say(f"moved: {_move_line(move)}")


def _change_line(change: dict[str, Any]) -> tuple[str, ...]:
    """Return one change; on a terminal long texts end in an ellipsis, elsewhere they stay whole."""
    number = f"#{change['pr']}" if change["pr"] else "–"
    title, evidence = clipped(change["title"], 90), clipped("; ".join(change["evidence"]), 110)
    return str(change["rank"]), f"{change['score']:.1f}", number, (change["commit"] or "–")[:9], title, evidence


def _move_line(move: dict[str, Any]) -> str:
    """Return one dependency that moved, and the first of its own changes."""
    from changelog.moves import shown

    platform = f" ({move['platform']})" if move["platform"] else ""
    words = f"{move['dependency']} {shown(move['from'])} → {shown(move['to'])}{platform}"
    if not move["changes"]:
        return words
    first = move["changes"][0]
    name = f"#{first['pr']}" if first["pr"] else first["commit"][:9]
    return f"{words}: {move['candidates']:,} changes, first {name} {first['title']}"


def out_builds(builds: list[dict[str, Any]], output: str) -> None:
    """Print what image references hold."""
    if output == "json":
        out_json(builds)
        return
    if output == "text":
        from changelog.software import lines

        for line in (line for build in builds for line in lines(build)):
            out(safe(line))
        return
    header = ("image", "engine", "version", "commit", "date", "wrapper", "source", "confidence")
    out_table(
        header,
        [
            (
                b["image"],
                b["engine"],
                b["version"],
                (b["commit"] or "–")[:12],
                b["date"],
                f"{b['wrapper']} {b['wrapper_version'] or ''}".strip() if b["wrapper"] else None,
                b["source"],
                b["confidence"],
            )
            for b in builds
        ],
    )


def out_frame(frame: pl.DataFrame, output: str, columns: Sequence[str] = ()) -> None:
    """Print a frame: table (only *columns*, where given), JSON, CSV, or Parquet bytes.

    Raises QueryError where a value has no form outside DuckDB, such as an infinite date.
    """
    try:
        _write_frame(frame, output, columns)
    except (pl.exceptions.PolarsError, PanicException) as error:
        raise QueryError("a value of the answer cannot be shown (an infinite date?); cast it to VARCHAR") from error


def _write_frame(frame: pl.DataFrame, output: str, columns: Sequence[str]) -> None:
    if output == "parquet":
        if sys.stdout.isatty():
            raise InputError("--format parquet writes bytes; send it to a file: … --format parquet > answer.parquet")
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        sys.stdout.buffer.write(buffer.getvalue())
    elif output == "json":
        out_json(finite(frame.to_dicts()))
    elif output == "csv":
        out_csv(frame.columns, frame.iter_rows())
    else:
        shown = frame.select(columns) if columns else frame
        numbers = [i for i, dtype in enumerate(shown.dtypes) if dtype.is_numeric()]
        out_table(shown.columns, shown.iter_rows(), right=numbers)
        say(_count(frame.height, "row"))


def out_log(log: EventLog, event_type: str | None, after: int | None, limit: int, output: str) -> None:
    """Print events: the newest, or with *after* the next ones behind it, and whether more follow."""
    if event_type is not None and event_type not in PAYLOADS:
        raise InputError(f"--type {event_type[:40]!r}: no such event; use one of {', '.join(PAYLOADS)}")
    events = log.scan(*((event_type,) if event_type else ()), after=after or 0)
    chosen = events.bottom_k(limit + 1, by="sequence") if after is not None else events.top_k(limit, by="sequence")
    found = log.store.collect("events", chosen).sort("sequence")
    out_frame(found.head(limit), output, LOG_COLUMNS)
    if found.height > limit:
        say(f"more follow: --after {found['sequence'][limit - 1]}")


def out_rebuild(hashes: dict[str, tuple[str | None, str]]) -> None:
    """Print each table's content hash before and after a rebuild."""
    rows = [
        (name, (before or "–")[:16], after[:16], "new" if before is None else "same" if before == after else "changed")
        for name, (before, after) in hashes.items()
    ]
    out_table(("table", "before", "after", "content"), rows)


def out_findings(findings: list[str]) -> None:
    """Print what a verification found."""
    for finding in findings:
        out(safe(finding))
    say("the log and its tables are sound" if not findings else f"{_count(len(findings), 'finding')}")


def out_compacted(done: list[Compacted]) -> None:
    """Print what a compaction did."""
    out_table(
        ("table", "files before", "after", "deleted"),
        [(one.table, one.before, one.after, one.deleted) for one in done],
        right=(1, 2, 3),
    )


def out_examination(findings: list[Finding], output: str) -> None:
    """Print what the doctor found; as a table only what is not well, unless all is."""
    if output == "json":
        out_json([asdict(finding) for finding in findings])
        return
    for finding in findings:
        if finding.level != "ok":
            out(safe(f"{finding.level}: {finding.what}" + (f"; {finding.fix}" if finding.fix else "")))
    well = sum(finding.level == "ok" for finding in findings)
    say(f"{_count(well, 'check')} well, {_count(len(findings) - well, 'finding')}")


def out_metrics() -> None:
    """Print the definitions of metrics, and which format writes which."""
    out_table(catalogue.METRIC_HEAD, catalogue.metric_rows())


def out_keys() -> None:
    """Print the keys that may be declared for records that do not say it."""
    out_table(("key", "meaning", "example"), catalogue.key_rows())


def out_formats() -> None:
    """Print the record formats that are read."""
    upstream = (
        ("commits", "upstream commits: JSON lines with hash, subject, pr, files; or a git repository"),
        ("releases", "upstream releases: anchors, upload lists, tags, version tables, GitHub's release list"),
        ("run", "GitHub's run object (run.json): time and identity of the results beside and below it"),
    )
    out_table(("format", "what it is"), [(record.name, record.title) for record in formats.FORMATS] + list(upstream))
