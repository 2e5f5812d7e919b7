"""Facts, statements and decisions: what the append-only log holds.

An event is never updated or deleted. Its id is the hash of its type, its subject and its payload, so that the same fact
learned twice, from whatever file, is one event. Where it came from (`source`) and when we learned it (`recorded_at`) are not
part of the id.

Belongs here: the payload of each event type and the envelope. Does not: storing (`warehouse.log`), folding into tables.
To add an event type: one frozen class below, with a past-tense name, and its line in `PAYLOADS`. To change the shape of one:
raise its `schema_version` and put the step from the old shape into `UPCASTS`; stored events are never touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from warehouse.canonical import canonical_json, text_id
from warehouse.errors import StoreError

MAX_RECORD_CHARACTERS = 4_000_000
"""Longest single record, characters of canonical JSON (real ones are about 1,300)."""
MAX_LABEL = 1000
"""Longest text about a source, characters."""
MAX_RECORD_DEPTH = 64
"""Deepest nesting of a record (real ones have two levels); every JSON reader can follow this far."""


def _storable(text: str) -> str:
    """Return the head of *text*; what UTF-8 cannot hold (a file name from elsewhere) becomes `?`."""
    return text[:MAX_LABEL].encode("utf-8", "replace").decode()


def _one_line(text: str) -> str:
    """Return *text*, white space of any kind as one space: a reason is told in one line, whatever of a stranger's is in it."""
    return _storable(" ".join(text.split()))


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
Line = Annotated[str, AfterValidator(_one_line)]
"""Such a text in one line."""


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
        """Return the key as one text that no other key has: a source may hold slashes, a number that holds one has it escaped."""
        return f"{self.run_source}/{self.run_id.replace('%', '%25').replace('/', '%2F')}/{self.run_attempt}"

    @property
    def subject(self) -> str:
        """What an event about this run is about."""
        return f"run:{self}"


class RunReported(Payload):
    """A benchmark run exists; times are texts as the source gave them. Another report of it corrects it.

    Which report holds does not depend on the order of reading: the highest `revision` (a correction that the user declared),
    then the latest `updated_at` (the source's own), then the last in the log.
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
    updated_at: str | None = None
    """When the source last changed it, at the end of the run or later: its results are public from then on."""
    url: str | None = None
    declared: bool = False
    """True where the user declared the run (`--measured-at`), False where its own record was read."""
    derived: bool = False
    """True where a result told of the run; a report of the run itself holds against it."""
    revision: int = Field(default=0, ge=0)
    """0 for what a source says; a correction that the user declared (`--correct`) counts up from there."""

    @property
    def subject(self) -> str:
        return self.run.subject

    def body(self) -> dict[str, Any]:
        """Return the JSON object; what is usual is left out, so that what a source says is one event whoever reads it."""
        usual = {name for name in ("revision", "derived") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude_none=True, exclude=usual)


class ResultRecorded(Payload):
    """One raw benchmark record, kept as its tool wrote it; `record_format` names the reader that maps it to a point.

    `settings` are what the user declared because the record does not hold it, `settings_named` what names of files tell: those
    alone that the reader used, so that a record is one event whatever else was declared for it.
    """

    run: RunKey
    record_format: str
    record: Annotated[dict[str, Any], AfterValidator(_keepable)]
    settings: dict[str, str] = Field(default_factory=dict)
    settings_named: dict[str, str] = Field(default_factory=dict)
    revision: int = Field(default=0, ge=0)
    """Above 0 where the user went back to what was declared before (`--correct`): the same fact, said anew."""

    @property
    def subject(self) -> str:
        return self.run.subject

    def body(self) -> dict[str, Any]:
        """Return the record itself and not pydantic's copy of it, which would replace what JSON can spell and UTF-8 cannot."""
        empty = {name for name in ("settings", "settings_named", "revision") if not getattr(self, name)}
        return {**self.model_dump(mode="json", exclude={"record", *empty}), "record": self.record}


class EvalRecorded(ResultRecorded):
    """One raw record of an evaluation: scores of a model on tasks; its reader maps it to rows of `evals`."""


class RecordQuarantined(Payload):
    """An input, or a part of one, could not be read; nothing is dropped without saying so."""

    name: Label
    sha256: str
    position: Label
    reason: Line
    excerpt: Label = ""

    @property
    def subject(self) -> str:
        return f"file:{self.sha256}"


class ResultRetracted(Payload):
    """Somebody decided that a run, or one result of it, does not count (or, with `reinstated`, that it does after all).

    The results stay in the log and, marked, in `points`. The last decision about a result holds.
    """

    run: RunKey
    point_id: str | None = None
    """The event that recorded the result; None: the whole run."""
    reason: Label
    reinstated: bool = False
    revision: int = Field(ge=1)
    """Counts the decisions about one run, so that the same one can be made again."""

    @property
    def subject(self) -> str:
        return self.run.subject


class FileRead(Payload):
    """A file was read whole, without a fault; the same bytes in the same context need not be read again."""

    sha256: str
    context: str
    """Stands for what dates the file besides its own bytes: its `run.json`, a declared time."""
    reading: int
    """Generation of the readers; raised where they take more from a file than they did."""
    records: int = Field(ge=1)

    @property
    def subject(self) -> str:
        return file_subject(self.sha256, self.context, self.reading)


def file_subject(sha256: str, context: str, reading: int) -> str:
    """Return what a `FileRead` is about: bytes, context, reading."""
    return f"file:{sha256}/{context}/{reading}"


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
    reverts: str | None = None
    """Commit that its message says it takes back, where it names one (`This reverts commit …`)."""
    picked_from: str | None = None
    """Commit that its message says it was picked from (`cherry picked from commit …`)."""
    reverts_pr: int | None = None
    """Pull request that the body of its message says it takes back (`Reverts #1`)."""
    picked_pr: int | None = None
    """Pull request that the body of its message says it was picked from (`Cherry-pick from (#1)`)."""

    @property
    def subject(self) -> str:
        return f"commit:{self.project}/{self.commit}"


class RepositoryRead(Payload):
    """The commits behind these heads of a project's repository were read whole; the next reading needs only what is not."""

    project: str
    heads: tuple[str, ...]
    """Hashes that the reading started from, sorted."""
    reading: int
    """Generation of the reader; raised where it takes more from a repository than it did."""

    @property
    def subject(self) -> str:
        return f"repository:{self.project}"


class ImageLabel(Frozen):
    """One label or environment variable of an image's configuration."""

    name: Label
    value: Label


class ImageResolved(Payload):
    """A registry said what an image reference stands for, at `seen_at`, for one platform; told again only once that changed.

    `image_digest` is what a pull by tag reports: of the index where there is one, else of the manifest. Digests are of the bytes
    that came, never of a header. What the configuration does not tell, or tells as `unknown`, is None.
    """

    image_ref: Label
    """Normalised reference (`warehouse.image.normalise`), as it was asked for."""
    image_digest: str
    seen_at: str
    media_type: Label
    """Of what the reference itself answers: an index or a manifest."""
    platform: Label | None = None
    """`linux/amd64`; None where neither index nor configuration tells it."""
    manifest_digest: str
    """Of this platform; the same as `image_digest` where there is no index."""
    config_digest: str | None = None
    created: str | None = None
    engine_version: Label | None = None
    commit: str | None = None
    commit_source: Label | None = None
    """Label or variable that the commit stands in."""
    labels: tuple[ImageLabel, ...] = ()
    """Labels and variables of the configuration that tell of versions, commits and base images."""

    @property
    def subject(self) -> str:
        return f"image:{self.image_ref}"


class DependencyPinned(Payload):
    """A version of `project` carries this version of another package (a wrapper its engine, an engine its kernels).

    `version` may be a commit of main: from it on, until the next.
    """

    project: str
    version: str
    dependency: str
    dependency_version: str
    """`none` where a commit dropped it."""
    evidence: str
    platform: str | None = None
    """For which vendor or architecture, where the evidence tells it: nvidia, amd, gfx950."""

    @property
    def subject(self) -> str:
        return f"release:{self.project}/{self.version}"


class RateChanged(Payload):
    """From `valid_from` on this is what something costs or draws. It says nothing of how fast anything is.

    It holds until the next rate of the same thing, or until `valid_to`. Of two about one thing and one `valid_from`, the one of
    the highest `revision` counts, then the last in the log.
    """

    kind: Literal["gpu_hour", "gpu_power", "token_price"]
    name: str
    """What is rated: the canonical name of an accelerator, or a model as its price list calls it."""
    provider: str | None = None
    tier: str | None = None
    """Which of several prices: hyperscaler, rental, batches, above_200k_tokens; None: the only or the usual one."""
    charge: str | None = None
    """Of a token price: input, output, cache_read, cache_write or reasoning."""
    value: str | None = None
    """A plain decimal in `unit`, without an exponent or zeros that say nothing; None: from here on there is no fixed one."""
    unit: str
    valid_from: str
    valid_to: str | None = None
    evidence: str
    """Which price list says so: `own` (the user's), `litellm`, `openrouter`. Lists do not end each other's rates."""
    source: Label | None = None
    """Where that list has it from, in words or as a link."""
    revision: int = Field(default=0, ge=0)
    """Raised by the user to correct what was stated for the same `valid_from`."""

    @property
    def subject(self) -> str:
        return f"rate:{self.kind}/{self.name}"


class JobsCounted(Payload):
    """Jobs on one kind of runner: how many there were, how many succeeded. Cancelled ones failed, skipped ones do not count.

    Told of a run and all its attempts so far (`run`), or by a source that does not tell the run, of a UTC day (`day`). Of two
    about one run and label the later attempt's counts, then the one with more jobs.
    """

    run: RunKey | None = None
    day: str | None = None
    occurrence: int = Field(default=1, ge=1)
    """Which of the statements alike: two runs of one day can have the same numbers of jobs."""
    label: Label
    """The runner, as the source calls it."""
    hardware: Label
    """Its accelerator, canonical name where it has one."""
    succeeded: int = Field(ge=0)
    total: int = Field(ge=1)

    @property
    def subject(self) -> str:
        return self.run.subject if self.run else f"jobs:{self.day}"


class RecipeChanged(Payload):
    """An entry of a recipe log: what was changed about how these configurations are launched, and the run that it started.

    Told by the run, by the log itself, or by its history. A flag is None where the source does not tell it (an API that shows
    part of the entry). Without `config_keys` it is no entry: it dates the entries of its pull request.
    """

    run: RunKey | None = None
    base_ref: Label | None = None
    """Commit of the benchmark repository before the entry."""
    head_ref: Label | None = None
    """The commit with it."""
    config_keys: tuple[Label, ...]
    """Configurations it is about, `*` standing for anything."""
    description: tuple[str, ...] = ()
    pr_link: Label | None = None
    append_only: bool | None = None
    """True where the run measured only points that were added; the others of the curve are of earlier runs."""
    evals_only: bool | None = None
    scenario_types: tuple[Label, ...] | None = None
    """Kinds of workload that it is confined to; () where to none."""
    added_at: str | None = None
    """When it came into the log, where the history of the log tells it."""
    added_in: str | None = None
    """The commit that brought it, where that is all that is told of the commit."""
    dated_by: Literal["commit", "bulk"] | None = None
    """What `added_at` is worth: bulk = many entries came at once, so that it held by then and nobody knows since when."""
    touched: Literal["image", "more"] | None = None
    """What the commit changed of how configurations are launched: images alone (besides the points of a sweep), or more."""

    @property
    def subject(self) -> str:
        return f"recipe:{self.head_ref or self.added_in or self.pr_link or 'log'}"


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
        EvalRecorded,
        ResultRetracted,
        RecordQuarantined,
        FileRead,
        ReleasePublished,
        CommitLanded,
        DependencyPinned,
        RateChanged,
        JobsCounted,
        RecipeChanged,
        RepositoryRead,
        ImageResolved,
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


Upcast = Callable[[dict[str, Any]], dict[str, Any]]
UPCASTS: dict[tuple[str, int], Upcast] = {}
"""The step from one shape of a payload to the next, by event type and the version that it starts from. None was needed so far:
what was added to payloads (`RunReported.updated_at`, `revision`) may be absent."""


def payload_of(event_type: str, text: str, schema_version: int = 1) -> Payload:
    """Return the typed payload of a stored event, in today's shape whatever version wrote it.

    Raises StoreError for a type or a version that this version of shiftlog does not know, pydantic's ValidationError for a
    payload that is none.
    """
    kind = PAYLOADS.get(event_type)
    if kind is None or schema_version > kind.schema_version:
        raise StoreError(f"the log holds {event_type} of version {schema_version}, which this shiftlog does not know; upgrade it")
    if schema_version == kind.schema_version:
        return kind.model_validate_json(text)
    return kind.model_validate(upcast(event_type, json.loads(text), schema_version))


def upcast(event_type: str, body: dict[str, Any], schema_version: int) -> dict[str, Any]:
    """Return the JSON object of a payload in today's shape, step by step from *schema_version*."""
    for version in range(schema_version, PAYLOADS[event_type].schema_version):
        body = UPCASTS[event_type, version](body)
    return body
