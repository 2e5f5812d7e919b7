"""What every record format gives: how a record is known, what it means in the columns of a point, which run it states by itself.

Belongs here: the contract between formats and the ingest. Does not: any format, what users may declare (`declarations`),
the common part of making a reading (`assembling`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from pipelines.ingest.json_text import Fault, Item, LeftOut
from pipelines.ingest.numbers import LARGEST_METRIC


@dataclass(frozen=True)
class Given:
    """What is known of a record besides itself: the start of its run, what the user declared, what names of files tell.

    `declared` comes from `--set` and `shiftlog.yaml`, `named` from the names of the file and its folders (`RecordFormat.hints`);
    both by key of `declarations.KEYS`, values as texts that were checked.
    """

    started_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    declared: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """The run that a record states by itself, for records that no `run.json` and no `--measured-at` dates."""

    run_source: str
    run_id: str
    started_at: datetime
    run_attempt: int = 1
    name: str | None = None
    published_at: datetime | None = None
    url: str | None = None


@dataclass(frozen=True)
class Reading:
    """One record, typed: identity (`warehouse.schemas.IDENTITY`), load, metrics by canonical name and unit, the rest.

    `metrics` are columns of `warehouse.schemas.METRIC_COLUMNS`; `metrics_other` are numbers by another name, those that
    `warehouse/data/metrics.toml` defines by that name. `unknown_names` holds vocabulary kinds and values that we did not know;
    they are kept as they stand. `declared` names the fields that the user declared or names of files told (`isl (file name)`).
    """

    identity: dict[str, Any]
    concurrency: int | None
    """Requests in flight (closed loop), or sent at once; None where the load is a rate or is not told."""
    num_gpus: int | None
    image: str | None
    metrics: dict[str, float]
    metrics_other: dict[str, float]
    metric_definition: str
    hardware_label: str | None
    model_source: str | None = None
    checkpoint: str | None = None
    recipe_fingerprint: str | None = None
    measured_at: datetime | None = None
    request_rate: float | None = None
    """Requests a second that the client sent, where the load is a rate."""
    engine_version: str | None = None
    """As the record or the user says; the image's tag tells it otherwise."""
    engine_commit: str | None = None
    requests: int | None = None
    """Requests that the client sent."""
    requests_failed: int | None = None
    duration_s: float | None = None
    isl_mean: float | None = None
    """Mean input length that was really sent, tokens."""
    osl_mean: float | None = None
    """Mean output length that really came, tokens."""
    declared: tuple[str, ...] = ()
    unknown_names: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True)
class EvalReading:
    """One score of an evaluation: identity as in a Reading (what is not told is None), task, metric, score as a share of 1."""

    identity: dict[str, Any]
    concurrency: int | None
    image: str | None
    task: str
    metric: str
    score: float
    score_stderr: float | None
    samples: int | None
    """Questions that were really asked (`effective`)."""
    samples_total: int | None
    """Questions of the whole task, where told; fewer asked than there are means another measurement."""
    few_shot: int | None = None
    harness_version: str | None = None
    task_version: str | None = None
    hardware_label: str | None = None
    model_source: str | None = None
    checkpoint: str | None = None
    measured_at: datetime | None = None
    engine_version: str | None = None
    declared: tuple[str, ...] = ()
    unknown_names: tuple[tuple[str, str], ...] = field(default=())


MAX_OTHER = 120
"""Longest name of a number that has no column, characters; longer ones are cut."""


class Must(NamedTuple):
    """What the number of a key must be, else its record is read alone: 0, or within bounds once it is divided by `per`."""

    per: float = 1.0
    """1000 for milliseconds."""
    largest: float = LARGEST_METRIC
    whole: bool = False
    null: bool = True
    """May be null; that is a missing one."""
    nought: bool = True
    loose: bool = False
    """Any finite number; what is none is nothing."""


class Taken(NamedTuple):
    """A number of a reading: (key + plus - minus) / over / GPUs of the setup, each in the unit to which its `Must` divides it.

    `name` is a column of `METRIC_COLUMNS` or a count (`requests` …), else the name of a number without a column; None: it is not
    kept. What comes out below zero of `minus` sends a record to `read`.
    """

    name: str | None
    key: str
    plus: str = ""
    minus: str = ""
    over: str = ""
    per_gpu: bool = False
    inverse: bool = False
    """One over all that."""


class Parts(NamedTuple):
    """What records with one set of keys hold besides their setup: what their numbers must be, and which are taken from them."""

    numbers: Mapping[str, Must]
    taken: tuple[Taken, ...]


def _one(_anything: Any) -> Hashable:
    return None


@dataclass(frozen=True)
class Split:
    """How records of a format are taken apart, so that many are mapped at once (`pipelines.ingest.mapping`).

    Records with the same keys and the same variant, with equal values of the keys in `setup`, of runs of one era and with the
    same declarations, must give the same reading but for time, image and what `parts` says is taken from their numbers. Only
    records whose numbers are what they must be are looked at so; `read` takes the others. Other keys are not looked at.
    """

    setup: frozenset[str]
    parts: Callable[[Sequence[str], Hashable], Parts | None]
    """What records with these keys, in their order, and this variant hold; None where they must be read alone."""
    variant: Callable[[dict[str, Any]], Hashable] | None = None
    """That part of a record from which the names of its numbers follow."""
    image: str | None = None
    """The key of the image reference where it is not one of `setup` because it changes far more often; a text or null."""
    clocks: frozenset[str] = frozenset()
    """Keys of the benchmark's own time; where a record has one of them, `clock_of` tells it."""
    clock_of: Callable[[dict[str, Any], Given], datetime | None] | None = None
    """Raises InputError where the time is not plain."""
    era: Callable[[datetime], Hashable] = _one
    """Splits the starts of runs where the meaning of fields changed."""


@dataclass(frozen=True)
class Field:
    """One line of a format's dictionary: what stands in the record, what becomes of it, in which unit it stands there.

    `becomes` is a column of `points` or `evals`, a family of them (`ttft_*`), a definition of `metrics.toml`, or `metrics_other`;
    several are parted by a comma.
    """

    name: str
    becomes: str
    unit: str = ""
    note: str = ""
    since: str = ""
    """Version or day of the tool from which it is written, where known."""


@dataclass(frozen=True)
class Dictionary:
    """What docs/formats.md says of a format: fields that are read, fields that are not and why, traps, an example if short."""

    fields: tuple[Field, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    traps: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Keys of `declarations.KEYS` that a record of this format never holds."""
    text: str = ""
    """Further paragraphs, Markdown."""


def _nothing(_path: PurePosixPath) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class RecordFormat:
    """A benchmark record format: its name, what it is, how a record of it is known, how to map one.

    A record is a JSON object. It is known by its keys alone (`markers`, and none of `without`), so that records with equal keys
    are looked at once. `read` maps it and raises InputError with `field: what is wrong`.
    """

    name: str
    title: str
    markers: frozenset[str]
    read: Callable[[dict[str, Any], Given], Any]
    """Gives a Reading, or for `kind` "eval" a list of EvalReading."""
    split: Split | None = None
    without: frozenset[str] = frozenset()
    kind: Literal["result", "eval"] = "result"
    unpack: Callable[[Any], Iterator[Item | Fault | LeftOut] | None] | None = None
    """Takes the value of a whole file, or one line of it, that is no record itself, and gives the records in it with their
    places; None where it is not of this format. The records must be known by `markers`; what need not be kept (prompts, keys,
    host names, paths) is left out of them here. A single LeftOut says that there is nothing to take, and why."""
    text: Callable[[str], Iterator[Item | Fault | LeftOut] | None] | None = None
    """Takes the text of a file that is no JSON and gives its records with their places; None where it is not of this format."""
    origin: Callable[[dict[str, Any], Given], Origin | None] | None = None
    """The run that a record states by itself; raises InputError where it states a time that cannot be placed (no zone)."""
    hints: Callable[[PurePosixPath], dict[str, str]] = _nothing
    """What the names of a file and of its folders tell, by key of `declarations.KEYS`."""
    clean: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Returns the record without secrets, host names and paths of the machine that wrote it; what is kept is what it returns."""
    restates: bool = False
    """True where its records repeat what another tool's record says (an API of artifacts): that one counts where it is there."""
    dictionary: Dictionary = Dictionary()

    def recognises(self, record: Any) -> bool:
        """Say whether *record* has every field by which the format is known."""
        return isinstance(record, dict) and record.keys() >= self.markers and not (self.without & record.keys())

    def lacks(self, record: Any) -> frozenset[str]:
        """Return the markers that *record* lacks where it has most of them; empty where it is of the format or of another."""
        missing = self.markers - record.keys() if isinstance(record, dict) else self.markers
        return missing if 2 * len(missing) < len(self.markers) else frozenset()
