"""How far up the known cause of a shift stands: published attributions against the ranking and two plain orders.

A case is a shift that engineers attributed in public to pull requests. Its rank is that of the best of them, because one change
that is read leads to the rest. Belongs here: ranks and shares. Does not: collecting cases (`data/link_cases.toml`), the page.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from changelog.facets import Configuration, words_asked_for
from changelog.ranges import Range, find_range
from changelog.ranking import FIRST, SHORT_LIST, describe, narrowed, rank
from changelog.similarity import Words, words_of
from changelog.upstream import Upstream, open_upstream
from warehouse.errors import InputError

Case = Mapping[str, Any]
Places = dict[int | None, int]
DEVELOPMENT = "development"


@dataclass(frozen=True)
class Ranked:
    """One case: where each named pull request stands by us and by both plain orders; None where the range does not hold it."""

    case: str
    split: str
    prs: tuple[int, ...]
    ours: tuple[int | None, ...]
    newest: tuple[int | None, ...]
    """Newest first."""
    titles: tuple[int | None, ...]
    """By BM25 of the configuration's words over titles alone."""
    candidates: int
    narrowed: bool
    open_ended: bool
    problem: str | None = None
    """Why it could not be ranked."""
    given: bool = False
    """It is one of the labels that were handed in, not of those that were collected."""


@dataclass(frozen=True)
class Share:
    """What one way of ordering achieves over the cases of a split, each by its best pull request."""

    split: str
    way: str
    cases: int
    mrr: float
    first: float
    """Share of cases in the first three."""
    short: float
    """Share of cases in the first ten."""
    median: float
    all_short: float
    """Share of all named pull requests in the first ten."""


def evaluate(tables: Mapping[str, pl.DataFrame], cases: Iterable[Case]) -> list[Ranked]:
    """Return a row a case. *tables*: the upstream tables; *cases*: as `cases` returns them."""
    known: dict[str, Upstream] = {}
    return [_ranked(known, tables, case) for case in cases]


def cases(labels: Path | None = None) -> list[dict[str, Any]]:
    """Return the cases of `data/link_cases.toml`, and those of *labels* (JSON with `cases`), which count as development."""
    place = files("bench.evaluation").joinpath("data/link_cases.toml")
    collected: list[dict[str, Any]] = tomllib.loads(place.read_text("utf-8")).get("case", []) if place.is_file() else []
    given = json.loads(labels.read_text("utf-8"))["cases"] if labels is not None and labels.is_file() else []
    return [*({"split": DEVELOPMENT, "given": True} | case for case in given), *collected]


def shares(rows: Sequence[Ranked]) -> list[Share]:
    """Return, by split (all cases last), what ours and both plain orders achieve; cases without a rank count as not found."""
    splits = [*dict.fromkeys(row.split for row in rows), "all"]
    return [
        _share(split, way, [row for row in rows if split in (row.split, "all") and row.problem is None])
        for split in splits
        for way in ("ours", "newest", "titles")
    ]


def honesty(rows: Sequence[Ranked]) -> dict[str, tuple[int, int]]:
    """Return how many cases were called narrowed, of how many: by where their cause stands (top 3, top 10, below)."""
    groups: dict[str, list[bool]] = {f"top {FIRST}": [], f"top {SHORT_LIST}": [], "below": []}
    for row in rows:
        if row.problem is None:
            best = _best(row.ours)
            name = f"top {FIRST}" if best <= FIRST else f"top {SHORT_LIST}" if best <= SHORT_LIST else "below"
            groups[name].append(row.narrowed)
    return {name: (sum(said), len(said)) for name, said in groups.items()}


def configuration(case: Case) -> Configuration:
    """Return the configuration of a case; what it does not say is not known."""
    names = ("hardware", "model", "precision", "spec_decoding", "disagg", "direction", "metric")
    return Configuration(*(case.get(name) for name in names))


def _ranked(known: dict[str, Upstream], tables: Mapping[str, pl.DataFrame], case: Case) -> Ranked:
    prs = tuple(case["prs"])
    try:
        if case["engine"] not in known:
            known[case["engine"]] = open_upstream(case["engine"], tables)
        found = find_range(known[case["engine"]], case["from"], case["to"])
    except InputError as error:
        nowhere = (None,) * len(prs)
        return Ranked(case["case"], case["split"], prs, nowhere, nowhere, nowhere, 0, False, True, str(error))
    asked = configuration(case)
    ranked = rank(found, asked, describe(found))
    places: Places = {change.pr: change.rank for change in ranked}
    problem = None if any(pr in places for pr in prs) else "the range does not hold the pull requests"
    return Ranked(
        case["case"],
        case["split"],
        prs,
        _of(prs, places),
        _of(prs, _newest(found)),
        _of(prs, _by_titles(found, asked)),
        candidates=len(ranked),
        narrowed=narrowed(ranked, asked.direction),
        open_ended=found.open_ended,
        problem=problem,
        given=bool(case.get("given")),
    )


def _of(prs: tuple[int, ...], places: Places) -> tuple[int | None, ...]:
    return tuple(places.get(pr) for pr in prs)


def _newest(found: Range) -> Places:
    order = found.commits.sort("committer_date", "commit", descending=[True, False])
    return {pr: place for place, pr in enumerate(order["pr"].to_list(), start=1)}


def _by_titles(found: Range, asked: Configuration) -> Places:
    commits = found.commits
    fits = Words([words_of([title]) for title in commits["title"].to_list()]).scores(words_asked_for(asked))
    order = commits.with_columns(pl.Series("fit", fits)).sort("fit", "committer_date", "commit", descending=[True, True, False])
    return {pr: place for place, pr in enumerate(order["pr"].to_list(), start=1)}


def _share(split: str, way: str, rows: Sequence[Ranked]) -> Share:
    best = [_best(getattr(row, way)) for row in rows]
    each = [rank or 10**9 for row in rows for rank in getattr(row, way)]
    count = max(1, len(best))
    return Share(
        split,
        way,
        len(rows),
        round(sum(1 / rank for rank in best) / count, 3),
        round(sum(rank <= FIRST for rank in best) / count, 3),
        round(sum(rank <= SHORT_LIST for rank in best) / count, 3),
        float(sorted(best)[len(best) // 2]) if best else 0.0,
        round(sum(rank <= SHORT_LIST for rank in each) / max(1, len(each)), 3),
    )


def _best(ranks: Iterable[int | None]) -> int:
    return min((rank for rank in ranks if rank is not None), default=10**9)


def lines(rows: Sequence[Ranked]) -> Iterator[str]:
    """Yield one line a case, for a reader."""
    for row in rows:
        told = row.problem or ", ".join(
            f"#{pr} {rank or 'absent'} ({newest or '-'}, {title or '-'})"
            for pr, rank, newest, title in zip(row.prs, row.ours, row.newest, row.titles, strict=True)
        )
        yield f"{row.split}: {row.case}: {told} of {row.candidates:,}{'' if row.narrowed else ', not narrowed'}"
