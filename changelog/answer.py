"""The answer to `shiftlog changes ENGINE FROM TO`: what upstream did between two builds, ranked, as one JSON value.

Belongs here: the shape of the answer (stable: other tools read it). Does not: how it is found or drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from changelog.anchors import Anchor, sentences
from changelog.facets import Configuration
from changelog.ranges import Range, find_range
from changelog.ranking import RankedChange, rank
from changelog.upstream import open_upstream
from warehouse.clock import iso


def changes(
    tables: Mapping[str, pl.DataFrame],
    engine: str,
    start: str,
    end: str,
    configuration: Configuration | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Return `{engine, candidates, range, open_ended, notes, changes}` for the changes of *engine* from *start* to *end*.

    *tables*: `commits`, `releases`, `dependencies`. `candidates` counts every change once; `changes` holds all of them in
    reading order, or the first *limit*. `range.from` and `range.to` are commit hashes where known, else the date, else null.
    Raises InputError for an unknown project, a malformed date, or where neither end is known.
    """
    found = find_range(open_upstream(engine, tables), start, end)
    ranked = rank(found, configuration or Configuration())
    return {
        "engine": found.upstream.project.name,
        "candidates": len(ranked),
        "range": _range(found),
        "open_ended": found.open_ended,
        "notes": list(found.notes),
        "changes": [_change(change) for change in ranked[: len(ranked) if limit is None else max(0, limit)]],
    }


def _range(found: Range) -> dict[str, Any]:
    return {
        "from": _place(found.start),
        "to": _place(found.end),
        "how": found.how,
        "ends": {"from": _end(found.start), "to": _end(found.end)},
        "reversed": found.reversed,
        "main_line_commits": found.main_line_commits,
        "deduplicated": found.duplicates,
        "already_in_from": found.already,
        "only_on_the_other_side": found.absent,
    }


def _place(anchor: Anchor) -> str | None:
    return anchor.commit or iso(anchor.date)


def _end(anchor: Anchor) -> dict[str, Any]:
    return {
        "given": anchor.text,
        "commit": anchor.commit,
        "date": iso(anchor.date),
        "version": anchor.version,
        "how": sentences(anchor.how),
        "confidence": anchor.confidence,
    }


def _change(change: RankedChange) -> dict[str, Any]:
    return {
        "rank": change.rank,
        "change_id": change.change_id,
        "pr": change.pr,
        "commit": change.commit,
        "title": change.title,
        "committer_date": iso(change.committer_date),
        "score": change.score,
        "evidence": list(change.evidence),
    }
