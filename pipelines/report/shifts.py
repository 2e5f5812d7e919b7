"""The shifts as the page shows them: engine shifts first, then other causes, then measurement notices; one card each.

Belongs here: sections, order, headline, and what a card says. Does not: sentences (`sentences`), markup (the templates).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipelines.detect.states import GONE
from pipelines.report import sentences, words
from pipelines.report.words import Row

MAX_SHIFTS = 200
"""Shifts of one section that are shown, the latest ones; how many are left out is said."""
MAX_CHANGES = 5
"""Upstream changes of one shift that are shown; the size of the whole candidate set is said."""

PullRequest = Callable[[str, int], str | None]
"""Address of a pull request of a project, or None where the project's repository is not known."""


@dataclass(frozen=True)
class Change:
    """One upstream change that a shift is linked to; `url` only where the project's repository is known."""

    rank: int
    name: str
    url: str | None
    title: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Suspects:
    """The ranked changes of one shift, with the size and the making of the candidate set."""

    changes: tuple[Change, ...]
    candidates: int
    range_how: str
    open_ended: bool


@dataclass(frozen=True)
class Card:
    """One shift: its row, the names of both builds, what the page says of it and the figure of its curve."""

    row: Row
    curve: str
    builds: tuple[str, str]
    sentence: str
    noise: str
    numbers: tuple[tuple[str, float | None], ...]
    suspects: Suspects | None
    figure: str | None
    view: str


@dataclass(frozen=True)
class Section:
    """Shifts of one kind; `left_out` counts those that MAX_SHIFTS cut off."""

    key: str
    title: str
    remark: str
    cards: tuple[Card, ...]
    left_out: int


_SECTIONS = (
    ("engine", "Engine shifts", "The build is the only known difference, and the noise floor does not explain the move."),
    (
        "other",
        "Shifts with another cause, or more than one",
        "Something besides the engine differs, or what differs is not known. The engine alone is not blamed.",
    ),
    (
        "notice",
        "Notices: not an engine change",
        "A run of the same image could show these again. They are listed so that nobody takes them for news about an engine.",
    ),
)
_NOTICES = ("measurement", "environment")


def kind(attribution: str | None) -> str:
    """Return the section that a shift of this attribution belongs to: engine, other or notice."""
    return "engine" if attribution == "engine" else "notice" if attribution in _NOTICES else "other"


def headline(shifts: pl.DataFrame, comparisons: int) -> str:
    """Return the page in one sentence: how many shifts of which kind, and that nothing else moved."""
    rows = [row for row in shifts.select("attribution", "status").to_dicts() if row["status"] not in GONE]
    engine = [row["status"] for row in rows if row["attribution"] == "engine"]
    other = sum(kind(row["attribution"]) == "other" for row in rows)
    parts = ["No engine shift"]
    if engine:
        parts = [f"{words.count(len(engine), 'engine shift')} ({engine.count('confirmed')} confirmed)"]
    if other:
        parts.append(f"{words.count(other, 'shift')} with another or a mixed cause")
    for name in _NOTICES:
        if found := sum(row["attribution"] == name for row in rows):
            parts.append(words.count(found, f"{name} notice"))
    retracted = shifts.height - len(rows)
    return f"{', '.join(parts)}; nothing else moved beyond the noise floor in {words.count(comparisons, 'comparison')}." + (
        f" {words.count(retracted, 'earlier shift')} retracted." if retracted else ""
    )


def sections(
    shifts: pl.DataFrame, links: pl.DataFrame, curves: Mapping[str, Row], figures: Mapping[str, str], pull_request: PullRequest
) -> list[Section]:
    """Return the sections that have shifts, and always the one of engine shifts.

    *curves* gives the identity of a curve by its id, *figures* the key of its chart.
    """
    rows = sorted(shifts.to_dicts(), key=_order)
    suspects = {key[0]: part for key, part in links.sort("shift_id", "rank").partition_by("shift_id", as_dict=True).items()}
    found = []
    for key, title, remark in _SECTIONS:
        own = [row for row in rows if kind(row["attribution"]) == key]
        cards = tuple(_card(row, curves, figures, suspects.get(row["shift_id"]), pull_request) for row in own[:MAX_SHIFTS])
        if cards or key == "engine":
            found.append(Section(key, title, remark, cards, max(0, len(own) - MAX_SHIFTS)))
    return found


def _order(row: Row) -> tuple[Any, ...]:
    """Latest first; the shifts of one cause together, largest first."""
    at = row["to_measured_at"]
    return (-at.timestamp() if at else 0.0, row["event_key"] or "", -abs(row["size"] or 0.0), row["shift_id"])


def _card(row: Row, curves: Mapping[str, Row], figures: Mapping[str, str], links: pl.DataFrame | None, pull: PullRequest) -> Card:
    identity = curves.get(row["curve_id"], row)
    return Card(
        row=row,
        curve=words.curve(identity),
        builds=words.transition(row),
        sentence=sentences.confidence(row),
        noise=sentences.noise_floor(row),
        numbers=(
            ("Steady-state throughput", row["steady_pct"]),
            ("Throughput as reported", row["reported_pct"]),
            ("Median TPOT", row["tpot_pct"]),
            ("Median TTFT", row["ttft_pct"]),
        ),
        suspects=_suspects(links.to_dicts(), pull) if links is not None else None,
        figure=figures.get(row["curve_id"]),
        view="reported" if row["attribution"] == "measurement" else "steady",
    )


def _suspects(links: list[dict[str, Any]], pull: PullRequest) -> Suspects:
    head = links[0]
    return Suspects(
        tuple(_change(link, pull) for link in links[:MAX_CHANGES]),
        head["candidates"] or len(links),
        head["range_how"] or "",
        bool(head["open_ended"]),
    )


def _change(link: Row, pull: PullRequest) -> Change:
    name = f"#{link['pr']}" if link["pr"] is not None else (link["commit"] or link["change_id"] or "")[:12]
    url = pull(link["project"] or "", link["pr"]) if link["pr"] is not None else None
    return Change(link["rank"], f"{link['project']} {name}", url, link["title"] or "", tuple(link["evidence"] or ()))


def groups(cards: Iterable[Card]) -> int:
    """Return how many groups the cards form: shifts of one engine, GPU, pair of builds, run and direction are one."""
    return len({card.row["event_key"] or card.row["shift_id"] for card in cards})
