"""What every record reader gives: a record mapped to the columns of a point, before build, run and time are added."""

from __future__ import annotations

from collections.abc import Callable
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

    def recognises(self, record: Any) -> bool:
        """Say whether *record* has every field by which the format is known."""
        return isinstance(record, dict) and record.keys() >= self.markers

    def lacks(self, record: Any) -> frozenset[str]:
        """Return the markers that *record* lacks where it has most of them; empty where it is of the format or of another."""
        missing = self.markers - record.keys() if isinstance(record, dict) else self.markers
        return missing if 2 * len(missing) < len(self.markers) else frozenset()
