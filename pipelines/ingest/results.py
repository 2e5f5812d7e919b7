"""Records that were recognised, to rows of the log and to mapped rows, many at a time.

What the records of one file share is made once; a row costs its canonical JSON, its hash and its share of the mapping.
Belongs here: canonical text, identity and mapping of results. Does not: what a file holds (`pipelines.ingest.files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from pipelines.ingest import formats, runs
from pipelines.ingest.columns import SCHEMA
from pipelines.ingest.mapping import Mapped, Mapper
from pipelines.ingest.reading import Given, RecordFormat
from pipelines.ingest.sides import settings_of
from warehouse.canonical import canonical_json, canonical_records, text_id
from warehouse.clock import parse_instant
from warehouse.events import MAX_RECORD_CHARACTERS, MAX_RECORD_DEPTH, ResultRecorded, RunReported, Source
from warehouse.log import ROWS

MAPPED = pl.Schema({"event_id": pl.String(), "record_hash": pl.String(), "mapped_for": SCHEMA["clock"], **SCHEMA})
"""A mapped record: the event that records it, its hash, the start of the run that it was mapped for."""
_SHARED = pl.Schema(
    {name: ROWS[name] for name in ("subject", "occurred_at", "published_at", "source_name", "source_sha256", "source_reader")}
)
RECORD = '{"record":'
"""How the canonical JSON of a recorded result begins: the record is its first field."""


@dataclass(slots=True)
class Block:
    """Records of one format that follow each other in one file: the first stands at *place* in the order of all events."""

    name: str
    sha256: str
    run: RunReported
    given: Given
    record_format: RecordFormat
    plain: bool
    """True where orjson has parsed them."""
    place: int
    positions: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


class Results:
    """The results of a chunk: blocks are added, then all are settled together."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.refused: dict[int, str] = {}
        """Why records cannot be kept, by their index among all records of all blocks."""

    def settle(self, recorded_at: datetime, mapped: bool) -> tuple[pl.DataFrame, pl.DataFrame, list[Mapped]]:
        """Return rows of the log with their `place`, rows of MAPPED (none unless *mapped*), and what mapping says of them."""
        records = [record for block in self.blocks for record in block.records]
        which = np.repeat(np.arange(len(self.blocks)), [len(block.records) for block in self.blocks])
        texts, column = self._texts(records, which)
        frames, said = self._mapped(records, which, mapped)
        rows = self._rows(texts, column, which, recorded_at, said)
        if self.refused:
            rows = rows.filter(~pl.int_range(pl.len()).is_in(sorted(self.refused)))
        if not mapped or not frames:
            return rows, MAPPED.to_frame(), said
        frame = pl.concat(frames).sort("row") if len(frames) > 1 else frames[0]
        hashes = [text_id(texts[row]) for row in frame["row"].to_list()]
        named = frame.with_columns(rows["event_id"], record_hash=pl.Series(hashes, dtype=pl.String))  # both: the kept, in order
        return rows, named.select(MAPPED.names()), said

    def _texts(self, records: list[dict[str, Any]], which: np.ndarray[Any, Any]) -> tuple[list[bytes], pl.Series]:
        """Return the canonical JSON of every record, also as a column; those that have none, or may not be kept, are refused."""
        plain = [i for i, block in enumerate(which.tolist()) if self.blocks[block].plain]
        texts, column = canonical_records(records if len(plain) == len(records) else [records[i] for i in plain])
        if len(plain) < len(records):
            of = dict(zip(plain, texts, strict=True))
            texts = [of[i] if i in of else self._text(i, record) for i, record in enumerate(records)]
            column = pl.Series("text", texts, dtype=pl.Binary).cast(pl.String)
        for i, text in enumerate(texts):
            if not text and i not in self.refused:
                self._text(i, records[i])
            if text.find(b"{", 1) > 0 or b"[" in text or len(text) > MAX_RECORD_CHARACTERS:
                self._check(i, text, records[i], self.blocks[which[i]])
        return texts, column

    def _text(self, index: int, record: dict[str, Any]) -> bytes:
        try:
            return canonical_json(record).encode()
        except ValueError as error:
            self.refused[index] = f"record cannot be kept: {error}"
            return b""

    def _check(self, index: int, text: bytes, record: dict[str, Any], block: Block) -> None:
        """Refuse a record that is nested too deeply or too long."""
        if text.count(b"{") + text.count(b"[") > MAX_RECORD_DEPTH:
            try:
                ResultRecorded(run=block.run.run, record_format=block.record_format.name, record=record)
            except ValidationError as error:
                self.refused[index] = runs.first_problem(error)
        if len(text) > MAX_RECORD_CHARACTERS and (length := len(text.decode())) > MAX_RECORD_CHARACTERS:
            self.refused[index] = f"record cannot be kept: {length} characters; a record may have {MAX_RECORD_CHARACTERS}"

    def _mapped(
        self, records: list[dict[str, Any]], which: np.ndarray[Any, Any], wanted: bool
    ) -> tuple[list[pl.DataFrame], list[Mapped]]:
        """Map the records format by format and refuse those that cannot be read."""
        frames, said = [], []
        givens = [block.given for block in self.blocks]
        starts = [given.started_at for given in givens]
        for name in sorted({block.record_format.name for block in self.blocks}):
            own = np.array([block.record_format.name == name for block in self.blocks])[which]
            own[[i for i in self.refused if i < len(own)]] = False
            chosen = np.flatnonzero(own)
            rows = chosen.tolist()
            known = [givens[block] for block in which[chosen].tolist()]
            mapped = mapper_of(name).map([records[i] for i in rows] if len(rows) < len(records) else records, known)
            self.refused |= {rows[row]: reason for row, reason in mapped.faults.items()}
            mapped.clocks = {rows[row]: clock for row, clock in mapped.clocks.items()}
            mapped.declared = {rows[row]: fields for row, fields in mapped.declared.items()}
            said.append(mapped)
            if wanted:
                frame = mapped.frame()
                at = pl.Series(starts, dtype=SCHEMA["clock"]).gather(pl.Series(which[chosen]).gather(frame["row"]))
                place = pl.Series(chosen, dtype=pl.Int64).gather(frame["row"])
                frames.append(frame.with_columns(row=place, mapped_for=at))
        return frames, said

    def _rows(
        self, texts: Sequence[bytes], column: pl.Series, which: np.ndarray[Any, Any], recorded_at: datetime, said: list[Mapped]
    ) -> pl.DataFrame:
        heads = [_Head(block) for block in self.blocks]
        declared = {row: fields for mapped in said for row, fields in mapped.declared.items()}
        ids: list[str] = []
        ends: list[str] = []
        places: list[np.ndarray[Any, Any]] = []
        for block, head in zip(self.blocks, heads, strict=True):
            own = texts[len(ids) : len(ids) + len(block.records)]
            tails = [head.end] * len(own)
            for place in range(len(ids), len(ids) + len(own)) if declared else ():
                if place in declared:
                    tails[place - len(ids)] = head.with_settings(declared[place])
            before, behind = head.before, head.behind
            ids += [
                text_id(before + text + (behind if end is head.end else end.encode() + b"]"))
                for text, end in zip(own, tails, strict=True)
            ]
            ends += tails
            places.append(np.arange(block.place, block.place + len(block.records)))
        shared = pl.DataFrame([head.shared for head in heads], schema=_SHARED, orient="row")
        rows = shared[which].with_columns(
            pl.Series("end", ends, dtype=pl.String),
            pl.Series("event_id", ids, dtype=pl.String),
            column,
            pl.Series("source_position", [position for block in self.blocks for position in block.positions], dtype=pl.String),
            pl.Series("place", np.concatenate(places) if places else [], dtype=pl.Int64),
            event_type=pl.lit("ResultRecorded"),
            recorded_at=pl.lit(recorded_at, dtype=ROWS["recorded_at"]),
            schema_version=pl.lit(ResultRecorded.schema_version, dtype=pl.Int64),
        )
        rows = rows.with_columns(payload=pl.concat_str(pl.lit(RECORD), "text", "end"))
        clocks = {row: clock for mapped in said for row, clock in mapped.clocks.items()}
        if clocks:
            stated = pl.Series([clocks.get(row) for row in range(rows.height)], dtype=ROWS["occurred_at"])
            rows = rows.with_columns(occurred_at=pl.coalesce(stated, "occurred_at"))
        return rows.select(*ROWS.names(), "place")


class _Head:
    """What stands round a record in the events of one block: in what is hashed, in the payload, in the row."""

    def __init__(self, block: Block) -> None:
        run = block.run
        subject = run.run.subject
        self._block = block
        self._tail = {"record_format": block.record_format.name, "run": run.run.model_dump(mode="json")}
        self._tails: dict[tuple[str, ...], str] = {}
        self.end = self.with_settings(())
        self.before = canonical_json(["ResultRecorded", subject])[:-1].encode() + b"," + RECORD.encode()
        self.behind = self.end.encode() + b"]"
        published = parse_instant(run.updated_at, "updated_at") if run.updated_at else None
        name = Source(name=block.name).name
        self.shared = (subject, block.given.started_at, published, name, block.sha256, block.record_format.name)

    def with_settings(self, fields: tuple[str, ...]) -> str:
        """Return the end of an event whose reading took *fields* from what was declared."""
        if fields not in self._tails:
            settings = settings_of(self._block.record_format, self._block.given, fields)
            self._tails[fields] = "," + canonical_json({**self._tail, **settings})[1:]
        return self._tails[fields]


_mappers: dict[str, Mapper] = {}


def mapper_of(name: str) -> Mapper:
    """Return this process's mapper of the format called *name*, which remembers what it has met; raises KeyError."""
    if name not in _mappers:
        _mappers[name] = Mapper(formats.by_name(name))
    return _mappers[name]
