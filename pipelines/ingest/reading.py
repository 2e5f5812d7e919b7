"""What every record reader gives: a record mapped to the columns of a point, before build, run and time are added."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Reading:
    """One record, typed: identity (`warehouse.schemas.IDENTITY`), concurrency, metrics by canonical name and unit, the rest.

    `unknown_names` holds vocabulary kinds and values that we did not know; they are kept as they stand.
    """

    identity: dict[str, Any]
    concurrency: int
    num_gpus: int
    image: str | None
    metrics: dict[str, float]
    metrics_other: dict[str, float]
    metric_definition: str
    hardware_label: str
    model_source: str | None = None
    checkpoint: str | None = None
    recipe_fingerprint: str | None = None
    measured_at: datetime | None = None
    unknown_names: tuple[tuple[str, str], ...] = field(default=())


MAX_OTHER = 120
"""Longest name of a number that has no column, characters; longer ones are cut."""


def _one_era(_started: datetime) -> Hashable:
    return None


@dataclass(frozen=True)
class Split:
    """How records of a format are taken apart, so that many are mapped at once (`pipelines.ingest.mapping`).

    Records with equal values of the keys in `setup`, of runs of one era, must give the same reading but for metrics and time.
    Every other key is a metric (`metric_name` gives its column), a number without a column, or nothing.
    """

    setup: frozenset[str]
    image: str
    """The key of the image reference, a text or null; it is none of `setup`, because it changes far more often."""
    clock: str
    """The key of the benchmark's own start."""
    metric_name: Callable[[str], str | None]
    clock_of: Callable[[dict[str, Any]], datetime | None]
    """The start of the benchmark that a record with that key states; raises InputError where it is not plain."""
    ignored: frozenset[str] = frozenset()
    positive: tuple[str, ...] = ()
    """Metrics that may not be nought."""
    least: float = 0.0
    largest: float = float("inf")
    """Bounds of a metric that is not nought."""
    era: Callable[[datetime], Hashable] = _one_era
    """Splits the starts of runs where the meaning of fields changed."""


@dataclass(frozen=True)
class RecordFormat:
    """A benchmark record format: its name, what it is, the fields by which a record of it is known, how to map one.

    `read(record, started_at)` raises InputError with `field: what is wrong`; *started_at* is the start of the run, because the
    meaning of some fields changed over time.
    """

    name: str
    title: str
    markers: frozenset[str]
    read: Callable[[dict[str, Any], datetime], Reading]
    split: Split | None = None

    def recognises(self, record: Any) -> bool:
        """Say whether *record* has every field by which the format is known."""
        return isinstance(record, dict) and record.keys() >= self.markers

    def lacks(self, record: Any) -> frozenset[str]:
        """Return the markers that *record* lacks where it has most of them; empty where it is of the format or of another."""
        missing = self.markers - record.keys() if isinstance(record, dict) else self.markers
        return missing if 2 * len(missing) < len(self.markers) else frozenset()
