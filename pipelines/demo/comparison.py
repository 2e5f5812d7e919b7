"""Planted against found: one row for each planted item, and one for each group of claims that nobody planted.

Belongs here: matching shifts to the truth, and the table that says so. Does not: detecting or linking; this reads only the
tables `shifts` and `links`, as any user could.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import Any

import polars as pl

from pipelines.demo.planted import Planted
from pipelines.detect.states import GONE

FOUND, PARTLY, MISSED = "found", "partly found", "missed"
QUIET, CLAIMED = "quiet, as planted", "claimed, not planted"
MEASUREMENT = "measurement"

Shift = dict[str, Any]
"""One row of the table `shifts`."""


@dataclass(frozen=True)
class Row:
    """What became of one planted item, or (`kind` is `unplanted`) a group of claims without one.

    Sizes in %, positive = better; `measured_pct` is the median over the flagged curves. `worst_rank` is the planted pull
    request's rank in the links of the shift where it stands lowest; None where no pull request was planted, or some shift
    does not list it. `candidates` is the largest candidate set.
    """

    key: str
    kind: str
    engine: str
    hardware: tuple[str, ...]
    day: str
    verdict: str
    curves_planted: int
    curves_flagged: int
    planted_pct: float | None
    measured_pct: float | None
    attribution_planted: str | None
    attribution_found: tuple[str, ...]
    pr: int | None = None
    best_rank: int | None = None
    worst_rank: int | None = None
    candidates: int | None = None

    @property
    def right(self) -> bool:
        """Whether the item was found on every curve and put down to the right cause, or rightly nothing was claimed."""
        if self.verdict == QUIET:
            return True
        return self.verdict == FOUND and self.attribution_found == (self.attribution_planted,)


def compare(planted: list[Planted] | tuple[Planted, ...], shifts: pl.DataFrame, links: pl.DataFrame) -> list[Row]:
    """Return a row for each of *planted*, in its order, then one for each group of claims that match none of them.

    A claim belongs to an item when it is about one of its curves, spans its day and goes its way. Retracted shifts are no
    claims; a measurement notice about the return from a cold start is part of it.
    """
    open_claims: dict[str, Shift] = {row["shift_id"]: row for row in shifts.iter_rows(named=True) if row["status"] not in GONE}
    rows = []
    for item in planted:
        matched = [shift for shift in open_claims.values() if _belongs(item, shift)]
        returns = [shift for shift in open_claims.values() if _returns(item, shift)]
        rows.append(_row(item, matched, links))
        for shift in (*matched, *returns):
            open_claims.pop(shift["shift_id"], None)
    return rows + _unplanted(list(open_claims.values()))


def _about(item: Planted, shift: Shift) -> bool:
    return any(
        all(shift[field] == getattr(curve, field) for field in ("engine", "hardware", "model", "precision", "isl", "osl"))
        for curve in item.curves
    )


def _belongs(item: Planted, shift: Shift) -> bool:
    day = date.fromisoformat(item.day)
    if not (_about(item, shift) and shift["from_measured_at"].date() < day <= shift["to_measured_at"].date()):
        return False
    if item.kind == "cold_start" and shift["attribution"] != MEASUREMENT:
        return False
    return item.direction in ("none", shift["direction"])


def _returns(item: Planted, shift: Shift) -> bool:
    if item.kind != "cold_start" or shift["attribution"] != MEASUREMENT:
        return False
    return _about(item, shift) and shift["from_measured_at"].date().isoformat() == item.day


def _curve_key(shift: Shift) -> tuple[Any, ...]:
    return tuple(shift[field] for field in ("engine", "hardware", "model", "precision", "isl", "osl"))


def _verdict(item: Planted, flagged: int) -> str:
    if item.direction == "none":
        return CLAIMED if flagged else QUIET
    if flagged >= len(item.curves):
        return FOUND
    return PARTLY if flagged else MISSED


def _row(item: Planted, matched: list[Shift], links: pl.DataFrame) -> Row:
    flagged = len({_curve_key(shift) for shift in matched})
    best, worst, candidates = _ranks(item, matched, links)
    return Row(
        key=item.key,
        kind=item.kind,
        engine=item.engine,
        hardware=item.hardware,
        day=item.day,
        verdict=_verdict(item, flagged),
        curves_planted=len(item.curves),
        curves_flagged=flagged,
        planted_pct=item.size_pct,
        measured_pct=_size(matched),
        attribution_planted=item.attribution,
        attribution_found=_attributions(matched),
        pr=item.pr,
        best_rank=best,
        worst_rank=worst,
        candidates=candidates,
    )


def _size(shifts: list[Shift]) -> float | None:
    return median(shift["size_pct"] for shift in shifts) if shifts else None


def _attributions(shifts: list[Shift]) -> tuple[str, ...]:
    return tuple(sorted({shift["attribution"] for shift in shifts}))


def _ranks(item: Planted, matched: list[Shift], links: pl.DataFrame) -> tuple[int | None, int | None, int | None]:
    """Best rank, worst rank and candidate set of the planted pull request in the links of *matched*."""
    ids = {shift["shift_id"] for shift in matched}
    own = [link for link in links.iter_rows(named=True) if link["shift_id"] in ids]
    candidates = max((link["candidates"] for link in own), default=None)
    if item.pr is None:
        return None, None, candidates
    ranks: dict[str, int] = {}
    for link in own:
        if link["pr"] == item.pr:
            ranks[link["shift_id"]] = min(link["rank"], ranks.get(link["shift_id"], link["rank"]))
    worst = max(ranks.values()) if ranks and ids == set(ranks) else None
    return min(ranks.values(), default=None), worst, candidates


def _unplanted(claims: list[Shift]) -> list[Row]:
    groups: dict[tuple[str, str, str, str, str], list[Shift]] = {}
    for shift in claims:
        day = shift["to_measured_at"].date().isoformat()
        groups.setdefault((day, shift["engine"], shift["hardware"], shift["attribution"], shift["direction"]), []).append(shift)
    return [
        Row(
            key=f"{engine}-{hardware}-{day}-{attribution}-{direction}",
            kind="unplanted",
            engine=engine,
            hardware=(hardware,),
            day=day,
            verdict=CLAIMED,
            curves_planted=0,
            curves_flagged=len({_curve_key(shift) for shift in group}),
            planted_pct=None,
            measured_pct=_size(group),
            attribution_planted=None,
            attribution_found=_attributions(group),
        )
        for (day, engine, hardware, attribution, direction), group in sorted(groups.items())
    ]
