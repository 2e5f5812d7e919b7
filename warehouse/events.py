"""Facts, statements and decisions: what the append-only log holds.

An event is never updated or deleted. Its id is the hash of its type, its subject and its payload, so that the same fact
learned twice, from whatever file, is one event. Where it came from (`source`) and when we learned it (`recorded_at`) are not
part of the id.

Belongs here: the payload of each event type and the envelope. Does not: storing (`warehouse.log`), folding into tables.
To add an event type: one frozen class below, with a past-tense name, and its line in `PAYLOADS`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from warehouse.canonical import canonical_json, text_id

MAX_RECORD_CHARACTERS = 4_000_000
"""Longest single record, characters of canonical JSON (real ones are about 1,300)."""
MAX_LABEL = 1000
"""Longest text about a source, characters."""
MAX_RECORD_DEPTH = 64
"""Deepest nesting of a record (real ones have two levels); every JSON reader can follow this far."""


def _storable(text: str) -> str:
    """Return the head of *text*; what UTF-8 cannot hold (a file name from elsewhere) becomes `?`."""
    return text[:MAX_LABEL].encode("utf-8", "replace").decode()


def _keepable(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* where it is not nested too deeply for every JSON reader; raises ValueError where it is."""
    level: list[Any] = [record]
    for _ in range(MAX_RECORD_DEPTH):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return record
    raise ValueError(f"nested deeper than {MAX_RECORD_DEPTH} levels")


Label = Annotated[str, AfterValidator(_storable)]
"""A stranger's text about a source; it must never cost the fact itself."""


class Frozen(BaseModel):
    """A value that cannot change and takes no field it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")


class Source(Frozen):
    """Where a fact was read: file name (last path part and archive member), the hash of the file's bytes, place in it, reader."""

    name: Label
    sha256: str | None = None
    position: Label | None = None
    reader: str | None = None


class Payload(Frozen):
    """Base of all payloads."""

    schema_version: ClassVar[int] = 1

    @property
    def subject(self) -> str:
        """What the fact is about; part of its identity."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """Return the JSON object that is stored; absent fields are left out."""
        return self.model_dump(mode="json", exclude_none=True)


class RunKey(Frozen):
    """Identity of one execution of a benchmark job: where it ran, its number there, its attempt."""

    run_source: str
    run_id: str
    run_attempt: int = Field(default=1, ge=1)

    def __str__(self) -> str:
        return f"{self.run_source}/{self.run_id}/{self.run_attempt}"


class RunReported(Payload):
    """A benchmark run exists; times are texts as the source gave them. A later, different report corrects it.

    A report that was made before is one event, so a correction cannot be taken back by repeating what it corrected.
    """

    run: RunKey
    name: str | None = None
    head_branch: str | None = None
    head_sha: str | None = None
    trigger: str | None = None
    status: str | None = None
    conclusion: str | None = None
    created_at: str | None = None
    started_at: str
    url: str | None = None
    declared: bool = False
    """True where the user declared the run (`--measured-at`), False where its own record was read."""

    @property
    def subject(self) -> str:
        return f"run:{self.run}"


class ResultRecorded(Payload):
    """One raw benchmark record, kept as its tool wrote it; `record_format` names the reader that maps it to a point."""

    run: RunKey
    record_format: str
    record: Annotated[dict[str, Any], AfterValidator(_keepable)]

    @property
    def subject(self) -> str:
        return f"run:{self.run}"

    def body(self) -> dict[str, Any]:
        """Return the record itself and not pydantic's copy of it, which would replace what JSON can spell and UTF-8 cannot."""
        return {**self.model_dump(mode="json", exclude={"record"}), "record": self.record}


class RecordQuarantined(Payload):
    """An input, or a part of one, could not be read; nothing is dropped without saying so."""

    name: Label
    sha256: str
    position: Label
    reason: Label
    excerpt: Label = ""

    @property
    def subject(self) -> str:
        return f"file:{self.sha256}"


class ReleasePublished(Payload):
    """Upstream published a version; `commit` and `branch_point` are given where somebody measured or tagged them."""

    project: str
    version: str
    tag: str | None = None
    commit: str | None = None
    branch_point: str | None = None
    published_at: str | None = None
    evidence: str
    """How it is known: `tag`, `anchor`, `upload`, `release-note`, `version-table`."""
    title: str | None = None
    notes: str | None = None
    url: str | None = None

    @property
    def subject(self) -> str:
        return f"release:{self.project}/{self.version}"


class CommitLanded(Payload):
    """Upstream committed this; `line` is the branch it was read on (`main`, or a release branch or tag)."""

    project: str
    commit: str
    parents: tuple[str, ...] = ()
    author_date: str
    committer_date: str
    title: str
    pr: int | None = None
    paths: tuple[str, ...] = ()
    paths_omitted: int = 0

    @property
    def subject(self) -> str:
        return f"commit:{self.project}/{self.commit}"


class DependencyPinned(Payload):
    """A version of `project` carries this version of another package (a wrapper its engine, an engine its kernels)."""

    project: str
    version: str
    dependency: str
    dependency_version: str
    evidence: str

    @property
    def subject(self) -> str:
        return f"release:{self.project}/{self.version}"


class ShiftReported(Payload):
    """What a detection run said of one shift; the next revision supersedes it by naming the same shift."""

    shift_id: str
    revision: int = Field(ge=1)
    size_pct: float
    facts: dict[str, str | int | bool]
    """Columns of `shifts` that the statement repeats: status, direction, attribution, curve, both sides."""
    from_measured_at: datetime
    to_measured_at: datetime

    @property
    def subject(self) -> str:
        return f"shift:{self.shift_id}"


PAYLOADS: dict[str, type[Payload]] = {
    payload.__name__: payload
    for payload in (
        RunReported,
        ResultRecorded,
        RecordQuarantined,
        ReleasePublished,
        CommitLanded,
        DependencyPinned,
        ShiftReported,
    )
}
"""Every event type that this version writes, by name."""


class Event(Frozen):
    """The envelope: one fact with its identity, its three times and its source.

    `occurred_at`: when it was true. `published_at`: when it was made public, where known. `recorded_at`: when we learned it.
    `payload` is canonical JSON text.
    """

    event_id: str
    event_type: str
    subject: str
    occurred_at: datetime
    published_at: datetime | None = None
    recorded_at: datetime
    source: Source
    schema_version: int
    payload: str


def event_of(
    payload: Payload,
    *,
    occurred_at: datetime,
    recorded_at: datetime,
    source: Source,
    published_at: datetime | None = None,
) -> Event:
    """Wrap *payload* in its envelope; the id depends on type, subject and payload only.

    Raises ValueError where the payload has no canonical JSON (NaN, half a surrogate pair) or more of it than may be kept.
    """
    body = canonical_json(payload.body())
    if len(body) > MAX_RECORD_CHARACTERS:
        raise ValueError(f"{len(body)} characters; a record may have {MAX_RECORD_CHARACTERS}")
    event_type = type(payload).__name__
    return Event(
        event_id=event_id(event_type, payload.subject, body),
        event_type=event_type,
        subject=payload.subject,
        occurred_at=occurred_at,
        published_at=published_at,
        recorded_at=recorded_at,
        source=source,
        schema_version=payload.schema_version,
        payload=body,
    )


def event_id(event_type: str, subject: str, payload: str) -> str:
    """Return the id of an event whose payload is the canonical JSON text *payload*."""
    return text_id(canonical_json([event_type, subject])[:-1] + "," + payload + "]")


def payload_of(event_type: str, text: str) -> Payload:
    """Return the typed payload of a stored event; raises KeyError for a type that this version does not know."""
    return PAYLOADS[event_type].model_validate_json(text)
