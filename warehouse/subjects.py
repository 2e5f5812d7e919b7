"""Where each subject stands in the log: the index by which an append finds what it may repeat.

An event's id holds its subject, so an event can only repeat one about the same subject. The index tells between which sequences
those stand, and the log is read there alone: the cost of an append follows from what it brings, not from how much is there.
It is a table like any other: behind the log it is still right (what it does not know yet is read from the log's end), ahead of
it or missing it is made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from warehouse.errors import StoreError
from warehouse.schemas import SUBJECTS
from warehouse.store import Change, Mark, Store, trusted

CODE = 1
"""Raised when the meaning of the index changes."""


@dataclass(frozen=True)
class Standing:
    """What the index says of some subjects: (subject, first, last), and up to which sequence it knows the log."""

    rows: pl.DataFrame
    up_to: int


def standing(store: Store, subjects: pl.Series, last: int) -> Standing:
    """Return what the index knows of *subjects*; nothing, up to 0, where it cannot be trusted for a log that ends at *last*."""
    scan, mark = store.scan_marked("subjects")
    known = trusted(mark, CODE, last)
    if known is None:
        return Standing(pl.DataFrame(schema=SUBJECTS.schema), 0)
    wanted = subjects.unique().to_frame("subject").lazy()
    try:
        rows = store.collect("subjects", _joined(scan.join(wanted, on="subject", how="semi")))
    except StoreError:  # a file of it is gone: the log itself tells
        return Standing(pl.DataFrame(schema=SUBJECTS.schema), 0)
    return Standing(rows, known.up_to)


def known_events(store: Store, log: pl.LazyFrame, subjects: pl.Series, last: int, *columns: str) -> pl.DataFrame:
    """Return *columns* of every event of *log*, which ends at sequence *last*, that is about one of *subjects*."""
    found = standing(store, subjects, last)
    wanted = pl.col("sequence") > found.up_to
    if not found.rows.is_empty():
        first, final = found.rows["first_sequence"].min(), found.rows["last_sequence"].max()
        wanted = wanted | pl.col("sequence").is_between(first, final)
    elif found.up_to == last:
        return pl.DataFrame(schema={name: log.collect_schema()[name] for name in columns})
    about = log.filter(wanted & pl.col("subject").is_in(subjects.unique().implode()))
    return store.collect("events", about.select(columns))


def check_not_ahead(store: Store, last: int, end: Callable[[], int]) -> None:
    """Raise StoreError where the index knows more of the log than *last*, and than *end*, asked afresh, says that there is.

    Then the log was cut off or put back from an older copy, and its tables speak of another one: to go on would double events.
    """
    mark = store.mark("subjects")
    if mark is not None and mark.up_to > last and mark.up_to > end():
        raise StoreError(
            f"the log in {store.uri} is shorter than its tables: it was cut off or is an older copy; restore the whole of it, or "
            "run `shiftlog rebuild` to go on with what is left"
        )


def extend(store: Store, log: pl.LazyFrame, last: int, *, force: bool = False) -> None:
    """Bring the index up to *last*, the end of *log*; one that is there already, or further, is left alone unless *force*."""

    def attempt(_scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
        sound = not force and mark is not None and mark.code == CODE
        after = mark.up_to if sound and mark is not None else 0
        if sound and after >= last:
            return None
        return Change(read(store, log, after, last), Mark(last, CODE), "append" if sound else "overwrite")

    store.commit("subjects", attempt)


def read(store: Store, log: pl.LazyFrame, after: int, last: int) -> pl.DataFrame:
    """Return the index of the events behind *after*, up to *last*."""
    span = log.filter((pl.col("sequence") > after) & (pl.col("sequence") <= last))
    rows = span.select("subject", first_sequence="sequence", last_sequence="sequence")
    return store.collect("events", _joined(rows)).sort(SUBJECTS.order)


def joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of the index with one row a subject, in their order."""
    return _joined(rows.lazy()).collect().sort(SUBJECTS.order)


def _joined(rows: pl.LazyFrame) -> pl.LazyFrame:
    ends = (pl.col("first_sequence").min(), pl.col("last_sequence").max())
    return rows.group_by("subject").agg(ends).select(SUBJECTS.schema.names())
