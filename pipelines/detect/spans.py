"""Detection over the stored points in parts: all of one curve is in one part, so parts may be compared anywhere.

Belongs here: splitting and reading. Does not: comparing (`night`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from changelog.sightings import TagLog, tag_log
from pipelines.detect.night import Detection, Part, compared, conclude, with_rare
from pipelines.detect.observations import COLUMNS
from pipelines.detect.rare import NEEDED as RARE_COLUMNS
from pipelines.detect.rare import single_load
from pipelines.detect.recipes import RecipeLog, recipe_log
from pipelines.workers.contract import Workers
from warehouse.store import Store

PART = 50_000
"""Points that are compared together."""


@dataclass(frozen=True)
class Span:
    """The points of a warehouse whose curve ids lie between two, both included."""

    store: Store
    first: str
    final: str
    log: RecipeLog
    tags: TagLog


def detect_stored(store: Store, workers: Workers) -> Detection:
    """Return what the points of *store* say of shifts; those that were retracted say nothing."""
    log, tags = recipe_log(store.read("recipes"), store.read("runs")), tag_log(store.read("images"))
    found = conclude(workers.map(compare_span, spans(store, log, tags)))
    return with_rare(found, _rare_points(store), log, tags)


def _rare_points(store: Store) -> pl.DataFrame:
    """Return the points of curves as long as they had one load: few, wherever sweeps are run."""
    live = store.scan("points").filter(pl.col("retraction").is_null()).select(RARE_COLUMNS)
    return store.collect("points", single_load(live))


def spans(store: Store, log: RecipeLog, tags: TagLog) -> list[Span]:
    """Split the curves, in the order of their ids, into spans of about PART points."""
    counted = store.scan("points").group_by("curve_id").len().sort("curve_id")
    found: list[Span] = []
    first, total = "", 0
    for curve, points in store.collect("points", counted).iter_rows():
        first, total = first or curve, total + points
        if total >= PART:
            found.append(Span(store, first, curve, log, tags))
            first, total = "", 0
    return [*found, Span(store, first, curve, log, tags)] if first else found


def compare_span(span: Span) -> Part:
    """Read the points of a span and compare its curves."""
    within = pl.col("curve_id").is_between(pl.lit(span.first), pl.lit(span.final)) & pl.col("retraction").is_null()
    points = span.store.scan("points").filter(within).select(COLUMNS)
    return compared(span.store.collect("points", points), span.log, span.tags)
