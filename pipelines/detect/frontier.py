"""How a Pareto frontier moved between two runs: throughput per GPU at fixed interactivity, with a bootstrap interval.

A frontier is made of the points of all curves of one stack and workload that one run measured on one build. x is interactivity
(1 / median TPOT, tok/s/user), y is throughput per GPU, as reported (fit points) and, as second witness, in steady state. Between
Pareto-optimal points log y is linear in log x, so that it is monotone; outside the data of either side nothing is said.

Only cells that both sides measured are credited as speed: `size` is of those. `raw` is of everything that each side has; what
lies between the two is coverage (cells gained or lost), not speed.

The interval is a percentile bootstrap over shared cells: it says how much the size depends on which cells were measured. It does
not know how far a rerun of one image moves: of 47 real reruns 11 have an interval without zero, and of 101 single targets 40. So
a row `stands_out` only where it passes what reruns of the stack do as well, and no row here names a cause.

At a fixed interactivity a frontier is steep, and where two configurations lie side by side a hair decides which of them is on it
(a real rerun read +50 % at 50 tok/s/user). `fronts_differ` counts such cells, and `matched` is the change over those that are on
both frontiers: what stands out must be there at least by half.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from changelog.sightings import NO_TAGS, NOWHERE, Stood, TagLog
from pipelines.detect.changes import BUILD, CHECKPOINT, ENVIRONMENT, RECIPE, SEARCH_SPACE
from pipelines.detect.comparison import percent
from pipelines.detect.observations import HOST, OTHER_WORK, REPORTED, STEADY, TPOT, UNFIT
from warehouse.canonical import content_id
from warehouse.schemas import FRONTIER_DIFFS, FRONTIER_KEY

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

TARGETS = (20.0, 35.0, 50.0, 75.0, 100.0)
"""Interactivities at which frontiers are read, tok/s/user."""
GRID = 25
"""Interactivities over the overlap of both frontiers, even in their logarithm, whose median is the size of the whole."""
DECIMALS = 12
"""To which logarithms of interactivity are rounded, so that 1 / 0.01 s and a target of 100 tok/s/user are one place."""
DRAWS = 1_000
INTERVAL = 0.90
MIN_CELLS = 3
"""Shared cells from which the interval is worked out."""
MIN_SHARE_OF_DRAWS = 0.5
"""Share of the draws that must reach a target: where fewer do, the interval would be of the lucky ones."""
LOOK_BACK = 10
"""Earlier frontiers that are looked at for one with enough cells in common, latest first."""

GATE = 3.0
"""Change, %, below which nothing stands out."""
MATCHED_SHARE = 0.5
"""Share of a change that cells on both frontiers must show."""
RERUNS = 5
"""Reruns from which a stack, else an engine, is judged by its own."""
RERUN_QUANTILE = 0.90

NO_SHARED, NO_OVERLAP, OUTSIDE = "no shared cells", "no overlap", "outside the data"

KEY = tuple(column.name for column in FRONTIER_KEY)
_LEVELS = {"stack": ("hardware", "engine"), "engine": ("engine",), "global": ()}
"""Groups of reruns, narrowest first."""
_BLANK = dict.fromkeys(FRONTIER_DIFFS.schema.names())
_RUN = ("run_source", "run_id", "run_attempt", "build_id")
_SETUP = {RECIPE: "recipe_fingerprint", CHECKPOINT: "checkpoint", ENVIRONMENT: "hardware_label"}
"""What may differ between the two measurements of one cell, by the name that `changes` has for it."""
_TOLD = ("image_ref", "image_digest", "engine_version")
"""What a record tells of its build."""
_VALUES = (TPOT, REPORTED, STEADY)
COLUMNS = (
    *KEY,
    *_RUN,
    *_TOLD,
    "measured_at",
    "recorded_at",
    "cell_id",
    "curve_id",
    "reused",
    *_SETUP.values(),
    *_VALUES,
    "health",
    "verdict",
)
"""Columns of `points` that are read, in no particular order."""


@dataclass(frozen=True)
class Frontier:
    """All that one run measured of a frontier on one build; arrays are in the order of `cells`, NaN where there is no number."""

    key: tuple[Any, ...]
    side: dict[str, Any]
    cells: tuple[str, ...]
    """Ids of the cells, ascending."""
    curves: frozenset[str]
    interactivity: Reals
    """Natural logarithm of tok/s/user."""
    throughput: dict[str, Reals]
    """Natural logarithm of tok/s/GPU, by metric; of reported throughput fit cells only."""
    setups: dict[str, tuple[str | None, ...]]
    stood: Stood = NOWHERE
    """What registries told of the image by then."""

    @property
    def measured_at(self) -> datetime:
        at: datetime = self.side["measured_at"]
        return at

    @property
    def identity(self) -> tuple[Any, ...]:
        return tuple(self.side[name] for name in _RUN)


@dataclass(frozen=True)
class Cloud:
    """Points of one frontier in the logarithms of interactivity (ascending) and throughput; `order` sorts them that way."""

    x: Reals
    y: Reals
    order: NDArray[np.int64]

    @staticmethod
    def of(x: Reals, y: Reals) -> Cloud:
        order = np.lexsort((y, x))
        return Cloud(x[order], y[order], order)

    def front(self, members: Flags | None = None) -> Flags:
        """Return which points no other beats in both; *members* (unsorted points × draws) confines each draw to some of them.

        Shape (points, draws), in ascending interactivity; without *members* one draw of all.
        """
        inside = np.ones((len(self.x), 1), dtype=np.bool_) if members is None else members[self.order]
        heights = np.where(inside, self.y[:, None], -np.inf)
        best = np.flip(np.maximum.accumulate(np.flip(heights, 0), axis=0), 0)
        beyond = np.concatenate((best[1:], np.full((1, heights.shape[1]), -np.inf)))[: len(best)]
        return inside & (heights > beyond)

    def slopes(self) -> Reals:
        """Return the slope of log y over log x between any two points, shape (points, points); 0 where x is the same."""
        run, rise = self.x - self.x[:, None], self.y - self.y[:, None]
        return np.divide(rise, run, out=np.zeros_like(run), where=run != 0)


@dataclass(frozen=True)
class Move:
    """Log-ratio of two frontiers: of the whole (median over the grid) first, then at each target; NaN where there is none."""

    size: Reals
    levels: tuple[Reals, Reals]
    """Log throughput of both sides at the same places; of the whole NaN."""
    hypervolume: float


@dataclass(frozen=True)
class Change:
    """How a frontier of the same cells moved, with the 90 % interval."""

    move: Move
    low: Reals
    high: Reals
    matched: Reals
    """The size over the cells that are on both frontiers: the same ones then make both."""
    fronts_differ: int
    """Cells that are on the frontier of one side only."""


def detect_frontiers(points: pl.DataFrame, tags: TagLog = NO_TAGS) -> pl.DataFrame:
    """Return the table `frontier_diffs`: every frontier of *points* (COLUMNS, any order) against its previous comparable one.

    *tags*: what registries told.
    """
    histories: dict[tuple[Any, ...], list[Frontier]] = defaultdict(list)
    for frontier in frontiers(points, tags):
        histories[frontier.key].append(frontier)
    rows = [
        row
        for history in histories.values()
        for index, new in enumerate(history)
        if (old := previous(history, index)) is not None
        for row in _rows(old, new)
    ]
    ordered = pl.DataFrame([_BLANK | row for row in rows], schema=FRONTIER_DIFFS.schema).sort(FRONTIER_DIFFS.order)
    return _against_reruns(ordered).select(FRONTIER_DIFFS.schema.names())


def _against_reruns(rows: pl.DataFrame) -> pl.DataFrame:
    """Add how far reruns of one build moved at the same place (narrowest group with enough of them) and what stands out."""
    same_setup = pl.col("change_set").list.set_difference([SEARCH_SPACE]).list.len() == 0
    reruns = rows.filter(pl.col("same_build") & same_setup & pl.col("size").is_not_null())
    for level, names in _LEVELS.items():
        by = (*names, "interactivity")
        found = reruns.group_by(by).agg(
            pl.col("size").abs().quantile(RERUN_QUANTILE, "higher").alias(f"{level} size"), pl.len().alias(f"{level} pairs")
        )
        rows = rows.join(found, on=by, how="left", nulls_equal=True, maintain_order="left")
    known = rows.with_columns(
        rerun_level=_narrowest({name: pl.lit(name) for name in _LEVELS}),
        rerun_pct=_narrowest({name: pl.col(f"{name} size") for name in _LEVELS}).exp().sub(1) * 100,
        rerun_pairs=_narrowest({name: pl.col(f"{name} pairs") for name in _LEVELS}).cast(pl.Int64),
    )
    return known.with_columns(stands_out=_stands_out().fill_null(False))


def _narrowest(values: dict[str, pl.Expr]) -> pl.Expr:
    """Return the value of the narrowest level with enough reruns; of all of them, however few there are."""
    least = dict.fromkeys(_LEVELS, RERUNS) | {"global": 1}
    return pl.coalesce(pl.when(pl.col(f"{name} pairs") >= least[name]).then(value) for name, value in values.items())


def _stands_out() -> pl.Expr:
    """Another build; both witnesses beyond the gate with an interval on the same side of zero; more than a rerun does."""
    sizes = pl.col("size_pct"), pl.col("steady_size_pct")
    up = (pl.min_horizontal(*sizes) >= GATE) & (pl.min_horizontal("interval_low_pct", "steady_interval_low_pct") > 0)
    down = (pl.max_horizontal(*sizes) <= -GATE) & (pl.max_horizontal("interval_high_pct", "steady_interval_high_pct") < 0)
    complete = pl.all_horizontal(pl.col("steady_size_pct", "interval_low_pct", "steady_interval_low_pct").is_not_null())
    beyond = pl.col("size").abs().exp().sub(1) * 100 > pl.col("rerun_pct")
    matched = pl.col("matched_pct") * pl.col("size").sign() >= MATCHED_SHARE * pl.col("size_pct").abs()
    return ~pl.col("same_build") & complete & (up | down) & beyond & matched


def frontiers(points: pl.DataFrame, tags: TagLog = NO_TAGS) -> list[Frontier]:
    """Return the frontiers of *points* in order of key and time. A cell measured twice in a run counts once, by its median."""
    cells = _cells(points).group_by(*KEY, *_RUN).agg(pl.all().sort_by("cell_id"))
    ordered = cells.with_columns(pl.col("measured_at").list.min()).sort(*KEY, "measured_at", *_RUN, nulls_last=True)
    return [_frontier(row, tags) for row in ordered.iter_rows(named=True)]


def _cells(points: pl.DataFrame) -> pl.DataFrame:
    """Return one row a cell of a run and build. A re-used record was not measured in that run."""
    own = points.select(COLUMNS).filter(~pl.col("reused").fill_null(False)).with_columns(HOST)
    other_work = (pl.col("verdict") == UNFIT) & (pl.col("health").list.set_intersection(sorted(OTHER_WORK)).list.len() > 0)
    unfit = {REPORTED: pl.col("verdict") == UNFIT}
    logs = {name: _log(name, ~unfit.get(name, other_work).fill_null(False)) for name in _VALUES}
    least = [pl.col(name).min() for name in ("measured_at", "curve_id", *_TOLD, *_SETUP.values())]
    middle = [pl.col(name).median() for name in _VALUES]
    return own.with_columns(**logs).group_by(*KEY, *_RUN, "cell_id").agg(*least, pl.col("recorded_at").max(), *middle)


def _log(name: str, usable: pl.Expr) -> pl.Expr:
    return pl.when(usable & (pl.col(name) > 0) & pl.col(name).is_finite()).then(pl.col(name).log())


def _frontier(row: dict[str, Any], tags: TagLog) -> Frontier:
    single = {"measured_at": row["measured_at"], "recorded_at": max(row["recorded_at"])}
    named = {name: _only(row[name]) for name in _TOLD}
    return Frontier(
        key=tuple(row[name] for name in KEY),
        side={name: row[name] for name in _RUN} | single | named,
        cells=tuple(row["cell_id"]),
        curves=frozenset(row["curve_id"]),
        interactivity=np.round(-_array(row[TPOT]), DECIMALS),
        throughput={metric: _array(row[metric]) for metric in (REPORTED, STEADY)},
        setups={name: tuple(row[column]) for name, column in _SETUP.items()},
        stood=tags.stood(named["image_ref"], named["image_digest"], row["measured_at"]),
    )


def _array(values: list[float | None]) -> Reals:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _only(values: list[str | None]) -> str | None:
    """Return the text of a build: its cells agree, so the least that is told stands for all."""
    return min((value for value in values if value is not None), default=None)


def previous(history: list[Frontier], index: int) -> Frontier | None:
    """Return what `history[index]` (in order of time) is compared with: the latest strictly earlier frontier.

    One that shares fewer than three cells is passed over where an older one shares as many; of those of one instant, the one with
    more cells in common comes first, then the one of the same build.
    """
    new = history[index]
    end = bisect_left(history, new.measured_at, hi=index, key=lambda old: old.measured_at)
    earlier = history[max(0, end - LOOK_BACK) : end]
    ranked = sorted(earlier, key=lambda old: (old.measured_at, _shared(old, new), old.side["build_id"] == new.side["build_id"]))
    enough = [old for old in ranked if _shared(old, new) >= MIN_CELLS]
    some = [old for old in ranked if _shared(old, new)]
    return next((choice[-1] for choice in (enough, some, ranked) if choice), None)


def _shared(old: Frontier, new: Frontier) -> int:
    return len(set(old.cells).intersection(new.cells))


def _rows(old: Frontier, new: Frontier) -> Iterator[dict[str, Any]]:
    """Yield one row for the whole frontier and one for every target."""
    identity = content_id("frontier", list(new.key), list(old.identity), list(new.identity))
    head = _head(identity, old, new)
    # An interval is for builds that differ; reruns of one build are the measure themselves, and most of the work.
    seed = None if head["same_build"] else identity
    shared = {metric: shared_change(old, new, metric, seed and f"{seed} {metric}") for metric in (REPORTED, STEADY)}
    raw = {
        metric: shared[metric].move if _is_all_shared(old, new, metric) else raw_move(old, new, metric)
        for metric in (REPORTED, STEADY)
    }
    for place, target in enumerate((None, *TARGETS)):
        yield head | {"interactivity": target} | _numbers(shared, raw, place) | {"missing": _missing(head, shared, place)}


def shared_change(old: Frontier, new: Frontier, metric: str, seed: str | None) -> Change:
    """Return the change over the cells that both sides have and can compare.

    *seed* is a text that seeds the draws of the interval; None: no interval.
    """
    cells = sorted(set(old.cells).intersection(new.cells))
    sides = [_select(side, cells, metric) for side in (old, new)]
    both = np.isfinite(sides[0]).all(axis=0) & np.isfinite(sides[1]).all(axis=0)
    clouds = [Cloud.of(*side[:, both]) for side in sides]
    return change(clouds[0], clouds[1], draws(int(both.sum()), seed) if seed is not None else None)


def _is_all_shared(old: Frontier, new: Frontier, metric: str) -> bool:
    """Say whether both sides have numbers of the very same cells: then the raw change is that of the shared ones."""
    return old.cells == new.cells and all(
        bool(np.isfinite(side.interactivity).all() and np.isfinite(side.throughput[metric]).all()) for side in (old, new)
    )


def raw_move(old: Frontier, new: Frontier, metric: str) -> Move:
    """Return the change over all that either side has, coverage included; without an interval."""
    clouds = []
    for side in (old, new):
        values = _select(side, list(side.cells), metric)
        clouds.append(Cloud.of(*values[:, np.isfinite(values).all(axis=0)]))
    return move(clouds[0], clouds[1], _places(clouds[0], clouds[1]))


def _select(side: Frontier, cells: list[str], metric: str) -> Reals:
    """Return interactivity and throughput of some cells, shape (2, cells)."""
    places = {cell: place for place, cell in enumerate(side.cells)}
    chosen = np.array([places[cell] for cell in cells], dtype=np.int64)
    return np.stack((side.interactivity[chosen], side.throughput[metric][chosen]))


def draws(count: int, seed: str) -> Flags | None:
    """Return which of *count* cells each of 1,000 samples with replacement holds, shape (cells, draws).

    None where there are fewer than three cells.
    """
    if count < MIN_CELLS:
        return None
    generator = np.random.default_rng(int(content_id(seed), 16))
    members = np.zeros((count, DRAWS), dtype=np.bool_)
    members[generator.integers(0, count, (count, DRAWS)), np.arange(DRAWS)] = True
    return members


def change(old: Cloud, new: Cloud, members: Flags | None) -> Change:
    """Return how far *new* is above *old*, two clouds of the same cells, with an interval from the draws of *members*.

    *members* is of shape (cells, draws); None: too few cells for an interval.
    """
    at = _places(old, new)
    before, after = _members(old), _members(new)
    moved = move(old, new, at)
    unknown = np.full(1 + len(TARGETS), math.nan)
    low, high = (unknown, unknown) if members is None else _interval(_differences(old, new, members, at))
    differ = int(np.sum(before ^ after))
    matched = _differences(old, new, (before & after)[:, None], at)[:, 0] if differ else moved.size
    return Change(moved, low, high, matched, differ)


def move(old: Cloud, new: Cloud, at: Reals) -> Move:
    """Return how far *new* is above *old* at the log interactivities *at*: the grid, then the targets."""
    fronts = old.front(), new.front()
    levels = read(old, fronts[0], at)[:, 0], read(new, fronts[1], at)[:, 0]
    size = _summary((levels[1] - levels[0])[:, None])[:, 0]
    before, after = (np.concatenate(([math.nan], level[GRID:])) for level in levels)
    return Move(size, (before, after), log_hypervolume(new, fronts[1]) - log_hypervolume(old, fronts[0]))


def _differences(old: Cloud, new: Cloud, members: Flags, at: Reals) -> Reals:
    return _summary(read(new, new.front(members), at) - read(old, old.front(members), at))


def _places(old: Cloud, new: Cloud) -> Reals:
    return np.concatenate((_grid(old, new), np.round(np.log(TARGETS), DECIMALS)))


def _members(cloud: Cloud) -> Flags:
    """Return which points are on the frontier of all, in the order in which they were given."""
    members = np.zeros(len(cloud.x), dtype=np.bool_)
    members[cloud.order[cloud.front()[:, 0]]] = True
    return members


def _grid(old: Cloud, new: Cloud) -> Reals:
    """Return interactivities, even in their logarithm, over what both frontiers cover; NaN where that is nothing."""
    ranges = [cloud.x[cloud.front()[:, 0]] for cloud in (old, new)]
    if any(len(values) == 0 for values in ranges):
        return np.full(GRID, math.nan)
    first, last = max(values[0] for values in ranges), min(values[-1] for values in ranges)
    return np.linspace(first, last, GRID) if first < last else np.full(GRID, math.nan)


def read(cloud: Cloud, front: Flags, at: Reals) -> Reals:
    """Return log throughput on each draw's frontier at log interactivities *at*, linear between its points; NaN outside.

    *front* is of shape (points, draws), the result of shape (places, draws).
    """
    count = len(cloud.x)
    if not count:
        return np.full((len(at), front.shape[1]), math.nan)
    places = np.arange(count, dtype=np.int32)[:, None]
    before = np.maximum.accumulate(np.where(front, places, -1), axis=0)
    after = np.flip(np.minimum.accumulate(np.flip(np.where(front, places, count), 0), axis=0), 0)
    last, first = np.searchsorted(cloud.x, at, side="right") - 1, np.searchsorted(cloud.x, at, side="left")
    below, above = before[last], after[np.minimum(first, count - 1)]
    outside = (below < 0) | (above == count) | ((last < 0) | (first == count) | ~np.isfinite(at))[:, None]
    above = np.where(outside, below, above)
    values = cloud.y[below] + (at[:, None] - cloud.x[below]) * cloud.slopes()[below, above]
    return np.where(outside, math.nan, values)


def _summary(differences: Reals) -> Reals:
    """Return, for each draw, the median over the grid and then the differences at the targets; shape (1 + targets, draws)."""
    return np.concatenate((_median(differences[:GRID])[None, :], differences[GRID:]))


def _median(values: Reals) -> Reals:
    """Return the median of the finite values of each column, NaN where there are none; nanmedian takes ten times as long."""
    ordered = np.sort(values, axis=0)
    count = np.isfinite(ordered).sum(axis=0)
    columns, middle = np.arange(ordered.shape[1]), np.maximum(count, 1)
    medians: Reals = (ordered[(middle - 1) // 2, columns] + ordered[middle // 2, columns]) / 2
    return medians


def _interval(sizes: Reals) -> tuple[Reals, Reals]:
    """Return the 90 % percentile interval of each row of draws, NaN where too few draws reach it."""
    reached = np.isfinite(sizes).mean(axis=1) >= MIN_SHARE_OF_DRAWS
    bounds = np.full((2, len(sizes)), math.nan)
    tail = (1 - INTERVAL) / 2
    for place in np.flatnonzero(reached):
        bounds[:, place] = np.quantile(sizes[place][np.isfinite(sizes[place])], (tail, 1 - tail))
    return bounds[0], bounds[1]


def log_hypervolume(cloud: Cloud, front: Flags) -> float:
    """Return the logarithm of the area that a frontier dominates down to zero, (tok/s/user) · (tok/s/GPU); NaN of nothing."""
    if not front.any():
        return math.nan
    x, y = np.exp(cloud.x[front[:, 0]]), np.exp(cloud.y[front[:, 0]])
    return float(np.log(np.sum(np.diff(x, prepend=0.0) * y)))


def _head(identity: str, old: Frontier, new: Frontier) -> dict[str, Any]:
    """Return the columns that all rows of one comparison share."""
    before, after = set(old.cells), set(new.cells)
    return {
        "comparison_id": identity,
        "frontier_id": content_id("frontier", list(new.key)),
        "night": new.measured_at.date().isoformat(),
        **dict(zip(KEY, new.key, strict=True)),
        **{f"from_{name}": value for name, value in old.side.items()},
        **{f"to_{name}": value for name, value in new.side.items()},
        "gap_days": (new.measured_at - old.measured_at).total_seconds() / 86400,
        "same_build": same_build(old, new),
        "change_set": _change_set(old, new),
        "cells_shared": len(before & after),
        "cells_unfit": _unfit(old, new),
        "cells_gained": len(after - before),
        "cells_lost": len(before - after),
        "curves_gained": len(new.curves - old.curves),
        "curves_lost": len(old.curves - new.curves),
    }


def same_build(old: Frontier, new: Frontier) -> bool | None:
    """Say whether both are of one build; None where one is not recorded, one tag has its digest on one side only or was seen to
    move, or two names are known under one digest.
    """
    ids = old.side["build_id"], new.side["build_id"]
    if any(build.startswith("unknown:") for build in ids):
        return None
    pinned, loose = sorted((old.side, new.side), key=lambda side: side["image_digest"] is None)
    half_known = pinned["image_digest"] is not None and loose["image_digest"] is None
    tags = [(side["image_ref"] or "").split("@", 1)[0] for side in (pinned, loose)]
    if half_known and (tags[0] == tags[1] or tags[1].startswith(f"{tags[0]}:")):
        return None
    if old.stood.moves != new.stood.moves if ids[0] == ids[1] else old.stood.may_be(new.stood):
        return None
    return bool(ids[0] == ids[1])


def _unfit(old: Frontier, new: Frontier) -> int:
    """Count the shared cells whose reported throughput one side cannot lend to a comparison."""
    cells = sorted(set(old.cells).intersection(new.cells))
    sides = [np.isfinite(_select(side, cells, REPORTED)).all(axis=0) for side in (old, new)]
    return int(np.sum(~(sides[0] & sides[1])))


def _change_set(old: Frontier, new: Frontier) -> list[str]:
    """Return what is known to differ: the build, the setup of any shared cell, the cells themselves."""
    moved = old.side["build_id"] == new.side["build_id"] and old.stood.moves != new.stood.moves
    found = [BUILD] if moved or old.side["build_id"] != new.side["build_id"] else []
    for name in _SETUP:
        before, after = (dict(zip(side.cells, side.setups[name], strict=True)) for side in (old, new))
        pairs = [(before[cell], after[cell]) for cell in before.keys() & after.keys()]
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            found.append(name)
    return found + ([SEARCH_SPACE] if old.cells != new.cells else [])


def _numbers(shared: dict[str, Change], raw: dict[str, Move], place: int) -> dict[str, float | None]:
    reported, steady = shared[REPORTED], shared[STEADY]
    size, whole = reported.move.size[place], place == 0
    return {
        "size": _known(size),
        **_percents("", reported, place),
        **_percents("steady_", steady, place),
        "matched_pct": _percent(reported.matched[place]),
        "fronts_differ": reported.fronts_differ,
        "raw_pct": _percent(raw[REPORTED].size[place]),
        "raw_steady_pct": _percent(raw[STEADY].size[place]),
        "coverage_pct": _percent(raw[REPORTED].size[place] - size),
        "from_tput_per_gpu": _known(np.exp(reported.move.levels[0][place])),
        "to_tput_per_gpu": _known(np.exp(reported.move.levels[1][place])),
        "hypervolume_pct": _percent(reported.move.hypervolume) if whole else None,
        "raw_hypervolume_pct": _percent(raw[REPORTED].hypervolume) if whole else None,
    }


def _percents(prefix: str, of: Change, place: int) -> dict[str, float | None]:
    return {
        f"{prefix}size_pct": _percent(of.move.size[place]),
        f"{prefix}interval_low_pct": _percent(of.low[place]),
        f"{prefix}interval_high_pct": _percent(of.high[place]),
    }


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _percent(log_ratio: float) -> float | None:
    return percent(log_ratio) if math.isfinite(log_ratio) else None


def _missing(head: dict[str, Any], shared: dict[str, Change], place: int) -> str | None:
    """Say why there is no size; None where there is one."""
    if math.isfinite(shared[REPORTED].move.size[place]):
        return None
    if not head["cells_shared"]:
        return NO_SHARED
    return OUTSIDE if place else NO_OVERLAP
