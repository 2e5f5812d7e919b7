"""The answer to `shiftlog changes ENGINE FROM TO`: what upstream did between two builds, ranked, as one JSON value.

Belongs here: the shape of the answer (stable: other tools read it). Does not: how it is found or drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from changelog.anchors import Anchor, sentences
from changelog.facets import Configuration
from changelog.moves import Move, moves, with_moves
from changelog.ranges import Range, find_range
from changelog.ranking import RankedChange, describe, narrowed, rank
from changelog.upstream import open_upstream
from warehouse.clock import iso

FIRST = 5
"""Changes of a dependency that are told."""


def changes(
    tables: Mapping[str, pl.DataFrame],
    engine: str,
    start: str,
    end: str,
    configuration: Configuration | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Return `{engine, candidates, narrowed, range, open_ended, notes, changes, dependencies}`: what *engine* did in between.

    *tables*: `commits`, `releases`, `dependencies`, `images`. `candidates` counts every change of the engine once, and moves of
    dependencies that no commit of it tells of; `changes` holds all of them in reading order, or the first *limit*. `range.from`
    and `range.to` are commit hashes where known, else the date, else null. `dependencies` are the packages that moved, each
    with the first changes of its own. Raises InputError for an unknown project, a malformed date, or where neither end is known.
    """
    found, asked = find_range(open_upstream(engine, tables), start, end), configuration or Configuration()
    described = describe(found)
    moved = moves(tables, found, asked)
    ranked = with_moves(rank(found, asked, described), moved, found.upstream, asked.direction)
    shown = ranked[: len(ranked) if limit is None else max(0, limit)]
    return {
        "engine": found.upstream.project.name,
        "candidates": len(ranked),
        "narrowed": narrowed(ranked, asked.direction),
        "range": _range(found),
        "open_ended": found.open_ended,
        "notes": [*found.notes, *described.remarks],
        "changes": [_change(change, found.upstream.project.name) for change in shown],
        "dependencies": [_dependency(move, found, asked) for move in moved],
    }


def _dependency(move: Move, found: Range, asked: Configuration) -> dict[str, Any]:
    """Return a package that moved, by which commits, and the first of its own changes, ranked for the same configuration."""
    own = rank(move.range, asked)[:FIRST] if move.range else []
    return {
        "dependency": move.dependency,
        "platform": move.platform,
        "from": move.start,
        "to": move.end,
        "how": move.how,
        "commits": [found.upstream.history.hashes[number] for number in move.bumps],
        "candidates": move.candidates if move.range else None,
        "range_how": move.range.how if move.range else None,
        "open_ended": move.range.open_ended if move.range else None,
        "changes": [_change(change, move.dependency) for change in own],
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


def _change(change: RankedChange, project: str) -> dict[str, Any]:
    return {
        "rank": change.rank,
        "change_id": change.change_id,
        "pr": change.pr,
        "commit": change.commit or None,
        "kind": change.kind,
        "project": project,
        "title": change.title,
        "committer_date": iso(change.committer_date),
        "score": change.score,
        "evidence": list(change.evidence),
    }
