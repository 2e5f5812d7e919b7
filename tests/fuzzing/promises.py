"""What must hold of every file from a stranger, however wrong it is; each broken promise is told in one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import orjson
import polars as pl

from pipelines.ingest.files import Chunk, Outcome, Piece, read_chunk
from pipelines.ingest.formats import UNFORESEEN
from pipelines.ingest.inputs import RUN_FILE, SIDE_FILES
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.sides import Content, Declared, Side
from tests.fuzzing.mutants import NAMED, Mutant
from tests.fuzzing.structures import SECRETS
from warehouse.canonical import canonical_json
from warehouse.events import RecordQuarantined
from warehouse.log import ROWS, EventLog
from warehouse.store import Store

NOW = datetime(2026, 12, 1, tzinfo=UTC)
OF_FILES = (
    "not JSON",
    "not UTF-8",
    "empty file",
    "nested",
    "cut off",
    "not YAML",
    "YAML",
    "not CSV",
    "CSV",
    "cells, but the header",
    "columns",
    "not a known",
    "looks like",
    "record cannot be kept",
    "no run time",
    "more text behind",
    "shiftlog.y",
    "meta_env.json",
    "run.json",
    "damaged",
    "encrypted",
    "larger than",
    "archive",
    "fetch it again",
    "cannot be read",
    "more faults",
    "more than",
    "record",
    "no result row like the others",
)
"""What is said of a whole file, or of a whole record."""
_PLACE = re.compile(r"/\d+|\.\d+:|^id: |^run_started_at: ")
"""A place in a list; a field of a run beside the file."""
MAX_REASON = 1000
TAKEN = ("ResultRecorded", "EvalRecorded")


def door(files: dict[str, bytes], declared: dict[str, str]) -> Outcome:
    """Read *files* as an ingest of their folder would, without a folder."""
    contents = {PurePosixPath("/in") / name: (name, Content(data=data)) for name, data in files.items()}
    sides = [
        (path, Side(path.name, content, path.parent)) for path, (name, content) in contents.items() if path.name in SIDE_FILES
    ]
    pieces = []
    for path, (name, content) in contents.items():
        if path.name in SIDE_FILES:
            continue
        dating = next((folder / RUN_FILE for folder in path.parents if folder / RUN_FILE in contents), None)
        dated_by = contents[dating][1] if dating and dating != path else None
        around = tuple(side for at, side in sides if at.parent in path.parents)
        pieces.append(Piece(name, path, False, content, dated_by, around))
    return read_chunk(Chunk(tuple(pieces), Declared(settings=declared), NOW))


def through_a_folder(files: dict[str, bytes], declared: dict[str, str], folder: Path) -> Outcome:
    """Read *files* as an ingest of a folder that holds them, into a warehouse of its own."""
    write(files, folder / "in")
    log = EventLog(Store(str(folder / "warehouse")))
    given = Declared(settings=declared)
    intake: Intake = ingest(
        log, (str(folder / "in"),), given, recorded_at=NOW, mirrors=folder / "mirrors", announce=lambda _name: None
    )
    rows = log.read().select(ROWS.names()) if log.last_sequence() else ROWS.to_frame()
    return Outcome(rows, pl.DataFrame(), intake.read, intake.quarantined, intake.unknown_names, intake.empty, intake.ignored)


def write(files: dict[str, bytes], folder: Path) -> None:
    """Write *files* below *folder*."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def broken(mutant: Mutant, outcome: Outcome) -> Iterator[str]:
    """Yield every promise that reading *mutant* broke."""
    payloads = outcome.rows["payload"].to_list()
    yield from _reasons(mutant, outcome.quarantined)
    yield from (f"kept without canonical JSON: {text[:200]}" for text in payloads if canonical_json(orjson.loads(text)) != text)
    taken = outcome.rows.filter(pl.col("event_type").is_in(TAKEN)).height
    said = outcome.quarantined or outcome.ignored or outcome.empty
    if not said and not taken and not mutant.container and not outcome.read:
        yield "nothing was taken and nothing was said"
    if mutant.neighbours:
        yield from _neighbours(mutant, outcome)
    yield from _secrets(outcome)


def _reasons(mutant: Mutant, quarantined: list[RecordQuarantined]) -> Iterator[str]:
    names = {key for key in (*mutant.keys, *NAMED) if key}
    for fault in quarantined:
        if UNFORESEEN in fault.reason:
            yield f"unforeseen: {fault.reason}"
        elif (
            not any(text in fault.reason for text in OF_FILES)
            and not _PLACE.search(fault.reason)
            and not any(key in fault.reason for key in names)
        ):
            yield f"names neither field nor place: {fault.reason[:300]}"
        if "\n" in fault.reason or len(fault.reason) > MAX_REASON:
            yield f"reason of {len(fault.reason)} characters or several lines: {fault.reason[:200]!r}"


def _neighbours(mutant: Mutant, outcome: Outcome) -> Iterator[str]:
    alone = door(mutant.neighbours, mutant.declared)
    before = Counter(alone.rows.filter(pl.col("event_type").is_in(TAKEN))["payload"].to_list())
    after = Counter(outcome.rows.filter(pl.col("event_type").is_in(TAKEN))["payload"].to_list())
    if before - after and not mutant.joined:
        yield f"{(before - after).total()} of {before.total()} records of neighbours are lost; said: {_first(outcome)}"
    elif (
        not mutant.joined
        and outcome.read.total() <= alone.read.total()
        and len(outcome.quarantined) <= len(alone.quarantined)
        and not outcome.ignored
    ):
        yield "the record between its neighbours is neither taken nor told"


def _first(outcome: Outcome) -> str:
    return outcome.quarantined[0].reason[:200] if outcome.quarantined else "nothing"


def _secrets(outcome: Outcome) -> Iterator[str]:
    for event_type, reader, text in outcome.rows.select("event_type", "source_reader", "payload").iter_rows():
        for secret in SECRETS:
            if (place := text.find(secret)) >= 0:
                yield f"secret kept in {event_type} ({reader}): {text[max(0, place - 80) : place + 40]}"
                break
