"""Is a curve, or a whole run, fit for comparison? `health` judges points one by one; this looks at what only neighbours show.

incoherent_curve: reported throughput left the shape that the medians keep. Over a curve its ratio to steady-state throughput is
nearly constant: in 1,119 real points no healthy cell is further than 6.9 % from the median of its curve, the least of the curves
that cold starts broke 9.5 %. And between neighbours a closed loop neither slows down nor gains more than the load grows:
throughput is load over latency, and latency does not fall under load. Real steady states overstep that by 2.0 % at most.

lone_run: all curves of a stack stand off together from where the other runs of the same build put them. One build gave both, so
that it was the host, or something else that nobody recorded. (A build that is known by a tag alone may have been moved.)

Cold starts are told in seconds: how long the first burst waited, and how much of what the headline lost that wait explains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from pipelines.detect.comparison import MAD_TO_SIGMA
from pipelines.detect.health import COLD_START
from pipelines.detect.observations import HOST, OTHER_WORK, REPORTED, STEADY, UNFIT
from warehouse.schemas import FITNESS

RATIO_GATE = math.log(1.08)
"""Distance of a cell's reported over steady-state throughput from the median of its curve: between the 6.9 and 9.5 % above."""
MIN_RATIO_CELLS = 3
"""Cells from which a median tells which of them is the odd one."""
STEP_GATE = math.log(1.05)
"""How far a step between neighbours may lie outside what load allows; its steady state stays within half of it."""
MOSTLY = 0.5
LONE_SPREADS = 3.0
LONE_GATE = math.log(1.03)
"""… and at least by as much as a curve must move to be called moved."""
SPREAD_FLOOR = 0.005
"""Least spread of sibling curves, log-ratio: the typical noise of one run, so three that agree by luck prove nothing."""
MIN_RUNS = 3
"""Runs of one build from which one can be alone: of two that differ nobody knows which is right."""
MIN_SIBLINGS = 3
MIN_SHIFT_CELLS = 2
ROUNDS = {"inferencex": 10}
"""Requests for each place of the closed loop, by the first word of the metric definition, where records do not tell."""

INCOHERENT, LONE_RUN, MOSTLY_UNFIT = "incoherent_curve", "lone_run", "mostly_unfit"
CURVE_LEVEL, RUN_LEVEL = "curve", "run"
FIT, SUSPECT = "fit", "suspect"

RUN = ("run_source", "run_id", "run_attempt", "build_id", "hardware", "engine", "framework")
"""What a row of level `run` is of: one stack on one build in one run; a build may run on several kinds of hardware."""
CURVE = (*RUN, "curve_id")
_STACK = ("build_id", "hardware", "engine", "framework")
_SETUP = ("recipe_fingerprint", "checkpoint", "hardware_label", "metric_definition")
"""What must be the same for two measurements of a cell to be repeats."""
_LATENCIES = ("ttft_mean", "ttft_median", "e2el_mean", "e2el_median")
COLUMNS = (
    *CURVE,
    *_SETUP,
    "cell_id",
    "concurrency",
    "request_rate",
    "scenario",
    "measured_at",
    "reused",
    REPORTED,
    STEADY,
    *_LATENCIES,
    "requests",
    "requests_failed",
    "health",
    "verdict",
)
"""Columns of `points` that are read, in no particular order."""


def judge_curves(points: pl.DataFrame) -> pl.DataFrame:
    """Return the table `fitness` of *points* (COLUMNS, any order): a row a curve of a run and build, and a row their stack."""
    own = points.select(COLUMNS).filter(~pl.col("reused").fill_null(False))
    cells = _cells(own)
    curves = _counts(waits(own), CURVE).join(incoherence(cells), on=CURVE, how="left", nulls_equal=True)
    judged = curves.with_columns(_curve_reasons()).with_columns(verdict=_curve_verdict(), level=pl.lit(CURVE_LEVEL))
    whole = _runs(judged).join(run_shifts(cells), on=RUN, how="left", nulls_equal=True)
    runs = whole.with_columns(_run_reasons()).with_columns(verdict=_run_verdict(), level=pl.lit(RUN_LEVEL))
    return pl.concat([_shaped(judged), _shaped(runs)]).sort(FITNESS.order, nulls_last=True)


def explained(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Return which share (0 to 1) of the log change of reported throughput between two points vanishes in steady state.

    1: the medians did not move, the change is of the measurement. 0: they moved as far, or nothing moved. NaN: not known.
    """
    reported, steady = (_log_ratio(old.get(metric), new.get(metric)) for metric in (REPORTED, STEADY))
    if math.isnan(reported) or math.isnan(steady):
        return math.nan
    return min(1.0, max(0.0, 1 - steady / reported)) if reported else 0.0


def _log_ratio(old: float | None, new: float | None) -> float:
    known = old and new and min(old, new) > 0 and math.isfinite(old) and math.isfinite(new)
    return math.log(new) - math.log(old) if old and new and known else math.nan


def waits(points: pl.DataFrame) -> pl.DataFrame:
    """Return *points* with what the first requests waited for.

    excess_s: mean less median TTFT, s. burst_wait_s: if the first burst alone waited, how long each of it did, s: the excess of
    all requests over as many as fit into the loop. explained_share: how much of what separates mean from median end-to-end
    latency, and so reported from steady-state throughput, TTFT explains; 0 to 1, null where nothing separates them.
    """
    excess = (pl.col("ttft_mean") - pl.col("ttft_median")).fill_nan(None)
    late = (pl.col("e2el_mean") - pl.col("e2el_median")).fill_nan(None)
    return points.with_columns(
        excess_s=excess,
        burst_wait_s=pl.when(excess > 0).then(excess * _rounds()),
        explained_share=pl.when(late > 0).then((excess / late).clip(0, 1)),
    )


def _rounds() -> pl.Expr:
    """Return the requests for each place of the closed loop; null where there is no loop or nobody tells."""
    done = pl.col("requests") - pl.col("requests_failed").clip(0).fill_null(0)
    told = pl.when(pl.col("concurrency") > 0).then((done / pl.col("concurrency")).clip(1))
    family = pl.col("metric_definition").str.split(" ").list.first()
    usual = family.replace_strict(list(ROUNDS), list(ROUNDS.values()), default=None, return_dtype=pl.Float64)
    fixed = (pl.col("scenario") == "fixed-seq-len") & pl.col("concurrency").is_not_null()
    return pl.coalesce(told, pl.when(fixed).then(usual))


def _cells(points: pl.DataFrame) -> pl.DataFrame:
    """Return one row a cell, setup, run and build: logarithms of both throughputs, the median where it was measured twice."""
    other_work = (pl.col("verdict") == UNFIT) & (pl.col("health").list.set_intersection(sorted(OTHER_WORK)).list.len() > 0)
    same_work = points.filter(~other_work.fill_null(False))
    labelled = same_work.with_columns(HOST)
    numbers = [pl.when(pl.col(name) > 0).then(pl.col(name).log()).median().alias(name) for name in (REPORTED, STEADY)]
    return labelled.group_by(*CURVE, *_SETUP, "cell_id").agg(pl.col("concurrency").min(), *numbers)


def incoherence(cells: pl.DataFrame) -> pl.DataFrame:
    """Return, for each curve of a run, how far its worst cell is from its median ratio and its worst step from what load allows.

    Both are log-ratios; null where too few cells have both throughputs. `incoherent_at` is the load of the worst cell.
    """
    both = cells.filter(pl.col(REPORTED).is_not_null() & pl.col(STEADY).is_not_null() & (pl.col("concurrency") > 0))
    joined = both.group_by(*CURVE, "concurrency").agg(pl.col(REPORTED, STEADY).median())
    ratio = pl.col(REPORTED) - pl.col(STEADY)
    curves = joined.group_by(CURVE).agg(middle=ratio.median(), cells=pl.len()).with_row_index("curve")
    ordered = joined.join(curves, on=CURVE, nulls_equal=True).sort("curve", "concurrency")
    found = ordered.with_columns(off=ratio - pl.col("middle"), step=_step()).sort(
        "curve", pl.col("off").abs(), -pl.col("concurrency")
    )
    worst = found.group_by("curve").agg(pl.col("off", "concurrency").last(), pl.col("step").max())
    off = pl.when(pl.col("cells") >= MIN_RATIO_CELLS).then("off")
    both_told = curves.join(worst, on="curve")
    return both_told.select(*CURVE, ratio_off=off, step_off=pl.col("step"), incoherent_at=pl.col("concurrency"))


def _step() -> pl.Expr:
    """Return how far reported throughput steps outside what load allows where steady state does not; else null.

    Rows are in the order of curve and load; the first of a curve has no step.
    """
    load = pl.col("concurrency").log().diff()
    reported, steady = (_outside(pl.col(name).diff(), load) for name in (REPORTED, STEADY))
    within = pl.col("curve") == pl.col("curve").shift()
    return pl.when(within & (steady <= STEP_GATE / 2)).then(reported)


def _outside(step: pl.Expr, load: pl.Expr) -> pl.Expr:
    """Return by how much a log step of throughput is below none or above that of the load."""
    return pl.when(step < 0).then(-step).when(step > load).then(step - load).when(step.is_not_null()).then(0.0)


def run_shifts(cells: pl.DataFrame) -> pl.DataFrame:
    """Return, for each run and stack, how far its curves stand off together from the same build's runs, and whether it is alone.

    run_shift: median over curves of the median over cells of the log-ratio of steady-state throughput to the median of all runs
    that repeated the cell. run_spread: 1.4826 MAD of the curves about it, not below the noise floor. Where as many runs as not
    stand off, none of them is alone.
    """
    steady = pl.col(STEADY)
    known = cells.filter(steady.is_not_null())
    again = known.with_columns(
        runs=pl.len().over(*_STACK, *_SETUP, "cell_id"), off=steady - steady.median().over(*_STACK, *_SETUP, "cell_id")
    )
    repeated = again.filter(pl.col("runs") >= MIN_RUNS)
    curves = repeated.group_by(CURVE).agg(pl.col("off").median(), pl.len().alias("cells"), pl.col("runs").min())
    enough = (
        curves.filter(pl.col("cells") >= MIN_SHIFT_CELLS)
        .group_by(RUN)
        .agg(
            run_shift=pl.col("off").median(),
            run_spread=MAD_TO_SIGMA * (pl.col("off") - pl.col("off").median()).abs().median(),
            run_curves=pl.len().cast(pl.Int64),
            run_repeats=pl.col("runs").min().cast(pl.Int64),
        )
    )
    found = enough.filter(pl.col("run_curves") >= MIN_SIBLINGS).with_columns(pl.col("run_spread").clip(SPREAD_FLOOR))
    size = pl.col("run_shift").abs()
    off = found.with_columns(lone=(size >= LONE_SPREADS * pl.col("run_spread")) & (size >= LONE_GATE))
    return off.with_columns(pl.col("lone") & (pl.col("lone").sum().over(_STACK) * 2 < pl.len().over(_STACK)))


def _counts(points: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Return counts of points by verdict, and the waits of those that started cold, in order of load."""
    cold = pl.col("health").list.contains(COLD_START).fill_null(False)
    load = pl.coalesce(pl.col("concurrency").cast(pl.Float64), "request_rate", pl.lit(0.0))
    told = pl.struct(load.alias("load"), "excess_s", "burst_wait_s", "explained_share")
    weight = {
        name: ((pl.col(f"{name}_mean") - pl.col(f"{name}_median")) / pl.col("e2el_median")).filter(cold)
        for name in ("ttft", "e2el")
    }
    return points.group_by(by).agg(
        pl.col("measured_at").min(),
        points=pl.len().cast(pl.Int64),
        unfit=_number(pl.col("verdict") == UNFIT),
        suspect=_number(pl.col("verdict") == SUSPECT),
        waits=told.filter(cold).sort_by(load.filter(cold), pl.col("cell_id").filter(cold), pl.col("excess_s").filter(cold)),
        ttft_lost=weight["ttft"].sort().sum(),
        e2el_lost=weight["e2el"].sort().sum(),
    )


def _number(flag: pl.Expr) -> pl.Expr:
    return flag.fill_null(False).sum().cast(pl.Int64)


def _runs(curves: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of level run: what their curves say together."""
    told = pl.col("ratio_off").is_not_null() | pl.col("step_off").is_not_null()
    incoherent = pl.col("reasons").list.contains(INCOHERENT)
    return (
        curves.sort(CURVE, nulls_last=True)
        .group_by(RUN)
        .agg(
            pl.col("measured_at").min(),
            pl.col("points", "unfit", "suspect").sum(),
            curves=pl.len().cast(pl.Int64),
            curves_unfit=_number(pl.col("verdict") == UNFIT),
            mostly_incoherent=incoherent.sum() > MOSTLY * told.sum(),
            ttft_lost=pl.col("ttft_lost").sort().sum(),
            e2el_lost=pl.col("e2el_lost").sort().sum(),
            waits=pl.col("waits").list.explode().drop_nulls(),
        )
    )


def _curve_reasons() -> pl.Expr:
    return _reasons(
        {
            INCOHERENT: (pl.col("ratio_off").abs() >= RATIO_GATE) | (pl.col("step_off") >= STEP_GATE),
            MOSTLY_UNFIT: pl.col("unfit") > MOSTLY * pl.col("points"),
        }
    )


def _run_reasons() -> pl.Expr:
    return _reasons(
        {
            INCOHERENT: pl.col("mostly_incoherent"),
            LONE_RUN: pl.col("lone"),
            MOSTLY_UNFIT: pl.col("unfit") > MOSTLY * pl.col("points"),
        }
    )


def _reasons(flags: dict[str, pl.Expr]) -> pl.Expr:
    named = [pl.when(flag.fill_null(False)).then(pl.lit(name)) for name, flag in flags.items()]
    return pl.concat_list(named).list.drop_nulls().alias("reasons")


def _curve_verdict() -> pl.Expr:
    """Any reason: unfit. One unfit point, or half of them suspect: suspect."""
    doubtful = (pl.col("unfit") > 0) | (pl.col("suspect") >= MOSTLY * pl.col("points"))
    return _verdict(doubtful)


def _run_verdict() -> pl.Expr:
    """Any reason: unfit. One unfit curve, or half of the points suspect: suspect."""
    return _verdict((pl.col("curves_unfit") > 0) | (pl.col("suspect") >= MOSTLY * pl.col("points")))


def _verdict(doubtful: pl.Expr) -> pl.Expr:
    unfit = pl.col("reasons").list.len() > 0
    return pl.when(unfit).then(pl.lit(UNFIT)).when(doubtful).then(pl.lit(SUSPECT)).otherwise(pl.lit(FIT))


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* in the schema of the table: shares worked out, what a level does not have null."""
    longest = {
        name: pl.col("waits").list.eval(pl.element().struct.field(name)).list.max() for name in ("excess_s", "burst_wait_s")
    }
    share = pl.when(pl.col("e2el_lost") > 0).then((pl.col("ttft_lost") / pl.col("e2el_lost")).clip(0, 1))
    whole = rows.with_columns(**longest, explained_share=share)
    schema = FITNESS.schema
    absent = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in whole.columns]
    return whole.with_columns(absent).select(pl.col(name).cast(dtype) for name, dtype in schema.items())
