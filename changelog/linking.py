"""Links from shifts to the upstream changes that could have done them: the `links` table.

Only shifts whose build changed are linked. Belongs here: which range a shift asks for, and the rows. Does not: finding the range
or the order in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from changelog.anchors import Anchor, sentences
from changelog.breadth import Comparisons, pair_of
from changelog.facets import Configuration
from changelog.moves import Move, moves, with_moves
from changelog.projects import projects
from changelog.ranges import Range, between_dates, span
from changelog.ranking import Described, RankedChange, describe, narrowed, rank
from changelog.upstream import Upstream, open_upstream
from changelog.versions import resolve
from warehouse.errors import InputError
from warehouse.schemas import LINKS

TOP = 20
"""Changes kept a shift; the size of the whole candidate set stands beside each."""
SLACK = timedelta(days=14)
"""How much older than its first measurement a build's content may be where nothing places it (twice the median lag)."""
MOVED, STILL = 5.0, 2.0
"""Change of a median latency, %, from which on it moved, and up to which it did not (the noise floor of real repeats)."""
BUILD = "build"
LINKED = ("engine", "mixed")

Row = dict[str, Any]


def link(shifts: pl.DataFrame, tables: Mapping[str, pl.DataFrame], diffs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the `links` rows of *shifts* (schema SHIFTS): the first TOP changes of each shift whose build changed.

    *diffs*: all comparisons; which of them moved between the same two builds says what the change is about.
    *tables*: `commits`, `releases`, `dependencies`. A shift whose engine has no known history gets no row.
    """
    linker = _Linker(tables, Comparisons(diffs))
    rows = [row for shift in shifts.iter_rows(named=True) if _is_linked(shift) for row in linker.rows(shift)]
    return pl.DataFrame(rows, schema=LINKS.schema, orient="row").sort(LINKS.order, maintain_order=True)


def range_of_shift(upstream: Upstream, shift: Row, start: Anchor, end: Anchor) -> Range:
    """Return the range that one shift asks for, its sides placed at *start* and *end*.

    Where neither can be placed, or both are placed at the same commit although their builds differ, the range is what landed on
    main between the two measurements, with SLACK, and open-ended.
    """
    if not start.known and not end.known:
        return _by_dates(upstream, shift, sentences("Neither build can be placed", f"FROM: {start.how}", f"TO: {end.how}"))
    if start.commit is not None and start.commit == end.commit:
        return _by_dates(upstream, shift, sentences(f"Both builds say {start.text}, yet they differ", f"Both: {start.how}"))
    return span(upstream, start, end, until=shift["to_measured_at"])


class _Linker:
    """Remembers histories, places, ranges and rankings: many shifts of one night ask for the same."""

    def __init__(self, tables: Mapping[str, pl.DataFrame], comparisons: Comparisons) -> None:
        self.tables = tables
        self.comparisons = comparisons
        self.upstreams: dict[str, Upstream] = {}
        self.places: dict[tuple[object, ...], Anchor] = {}
        self.ranges: dict[tuple[object, ...], Range] = {}
        self.described: dict[tuple[object, ...], Described] = {}
        self.rankings: dict[tuple[object, ...], list[RankedChange]] = {}
        self.moves: dict[tuple[object, ...], tuple[Move, ...]] = {}

    def rows(self, shift: Row) -> list[tuple[object, ...]]:
        """Return the `links` rows of one shift; none where the history of its engine is not known."""
        engine = shift["engine"]
        if engine not in self.upstreams:
            self.upstreams[engine] = open_upstream(engine, self.tables)
        if not len(self.upstreams[engine].history):
            return []
        start, end = self._place(shift, "from"), self._place(shift, "to")
        key = (engine, start, end, *_days(shift, start, end))
        if key not in self.ranges:
            self.ranges[key] = range_of_shift(self.upstreams[engine], shift, start, end)
            self.described[key] = describe(self.ranges[key])
        ranked = self._ranked(key, shift)
        shared = self.ranges[key], len(ranked), narrowed(ranked, configuration_of(shift).direction)
        return [_row(shift["shift_id"], change, *shared) for change in ranked[:TOP]]

    def _place(self, shift: Row, side: str) -> Anchor:
        key = (shift["engine"], *(shift[f"{side}_{name}"] for name in ("image_ref", "image_digest", "engine_version")))
        if key not in self.places:
            self.places[key] = _side(self.upstreams[shift["engine"]], shift, side)
        return self.places[key]

    def _ranked(self, key: tuple[object, ...], shift: Row) -> list[RankedChange]:
        configuration = configuration_of(shift)
        asked = (*key, configuration, pair_of(shift))
        if asked not in self.rankings:
            found, breadth = self.ranges[key], self.comparisons.breadth(shift, configuration)
            ranked = rank(found, configuration, self.described[key], breadth=breadth)
            moved = self._moved(key, configuration)
            self.rankings[asked] = with_moves(ranked, moved, found.upstream, configuration.direction)
        return self.rankings[asked]

    def _moved(self, key: tuple[object, ...], configuration: Configuration) -> tuple[Move, ...]:
        """Return the dependencies that moved in a range, for one accelerator."""
        asked = (*key, configuration.hardware)
        if asked not in self.moves:
            self.moves[asked] = moves(self.tables, self.ranges[key], configuration, self.upstreams)
        return self.moves[asked]


def _days(shift: Row, start: Anchor, end: Anchor) -> tuple[datetime, ...]:
    """Return the times of measurement where a range goes by them: two placed, different ends need none."""
    if start.commit is not None and end.commit is not None and start.commit != end.commit:
        return ()
    return (shift["from_measured_at"], shift["to_measured_at"])


def _is_linked(shift: Row) -> bool:
    return shift["attribution"] in LINKED and BUILD in (shift["change_set"] or ()) and shift["engine"] in projects()


def range_for(upstream: Upstream, shift: Row) -> Range:
    """Return the range that one shift (a row of `shifts`) asks for."""
    return range_of_shift(upstream, shift, _side(upstream, shift, "from"), _side(upstream, shift, "to"))


def _side(upstream: Upstream, shift: Row, side: str) -> Anchor:
    return placed(upstream, *(shift[f"{side}_{name}"] for name in ("image_ref", "image_digest", "engine_version")))


def placed(upstream: Upstream, image: str | None, digest: str | None, version: str | None) -> Anchor:
    """Place a build: by its image reference with its digest, else by the version that a record gives."""
    names = [f"{image}@{digest}" if image and digest and "@" not in image else image, version]
    tried = [_resolved(upstream, name) for name in names if name]
    return next((anchor for anchor in tried if anchor.known), tried[0] if tried else _resolved(upstream, "unknown"))


def _resolved(upstream: Upstream, name: str) -> Anchor:
    try:
        return resolve(upstream, name)
    except InputError as error:
        return Anchor(name[:100], None, None, None, str(error), "none")


def _by_dates(upstream: Upstream, shift: Row, why: str) -> Range:
    start: datetime = shift["from_measured_at"]
    slack = f"The dates are those of the two measurements, the first {SLACK.days} days earlier"
    return between_dates(upstream, start - SLACK, shift["to_measured_at"], sentences(why, slack))


def configuration_of(shift: Row) -> Configuration:
    """Return what one shift (a row of `shifts`) asks for."""
    return Configuration(
        hardware=shift["hardware"],
        model=shift["model"],
        precision=shift["precision"],
        spec_decoding=shift["spec_decoding"],
        disagg=shift["disagg"],
        direction=shift["direction"],
        metric=shift["metric"],
        phase=_phase(shift),
    )


def _phase(shift: Row) -> str | None:
    """Return the phase that moved, where its latencies tell: the other one's stayed within STILL.

    A slower decode makes requests wait, so a TTFT that moved with the TPOT says nothing of prefill.
    """
    prefill, decode = abs(shift["ttft_pct"] or 0.0), abs(shift["tpot_pct"] or 0.0)
    if shift["ttft_pct"] is None or shift["tpot_pct"] is None:
        return None
    if prefill >= MOVED and decode <= STILL:
        return "prefill"
    return "decode" if decode >= MOVED and prefill <= STILL else None


def _row(shift_id: str, change: RankedChange, found: Range, candidates: int, narrow: bool) -> tuple[object, ...]:
    return (
        shift_id,
        change.change_id,
        change.rank,
        change.score,
        list(change.evidence),
        candidates,
        found.how,
        found.open_ended,
        found.upstream.project.name,
        change.commit or None,
        change.pr,
        change.title,
        change.kind,
        narrow,
    )
