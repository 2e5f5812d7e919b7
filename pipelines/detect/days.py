"""The second pass, from comparisons to series and back: what the whole history of a curve makes of its single steps.

Comparisons of consecutive observations add up to the level of each observation. Along every line of descent (an observation, what
it was compared with, and so on) `replay` says which changes stand: a blip that went back is told from a step that stayed, small
steps that no single night could show are found once a second observation agrees, and a slow drift is named by its two ends.
Belongs here: levels and events of observations. Does not: dividing into levels (`series`, `replay`), who is blamed (`lifecycle`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pipelines.detect.baseline import Baseline
from pipelines.detect.changes import BUILD, ENVIRONMENT, MEASUREMENT, MIXED, SEARCH_SPACE, ChangeSet, differences
from pipelines.detect.comparison import CURVE, Comparison, Movement, compare, night
from pipelines.detect.decision import Verdict, tail
from pipelines.detect.noise import NoiseModel
from pipelines.detect.observations import REPORTED, STEADY, TPOT, Observation
from pipelines.detect.replay import replay_many
from pipelines.detect.series import BLIP, DRIFT, FLOOR, RECOVERED, STEP, Event, describe

SHORTEST = 4
"""Observations from which a series can say more than its single steps."""
RETURN = "return"
"""The way back from a blip."""


@dataclass(frozen=True)
class Line:
    """Observations of one curve, each compared with the one before it, and their levels (log, positive = better)."""

    observations: tuple[Observation, ...]
    verdicts: tuple[Verdict, ...]
    """Of every observation but the first."""
    levels: tuple[float, ...]
    scale: float


@dataclass(frozen=True)
class Days:
    """What the second pass found: the kind of event by observation (its `id`), shifts that only a series shows, and the lines."""

    kinds: dict[int, str]
    steps: dict[int, Verdict]
    """Changes that stand and that no single night flagged, by the `id` of their first observation."""
    drifts: tuple[Verdict, ...]
    lines: tuple[Line, ...]


def second_pass(verdicts: Iterable[Verdict], noise: NoiseModel) -> Days:
    """Return what the histories behind *verdicts* (any order) say together."""
    lines = [line for line in _lines(verdicts, noise) if len(line.levels) >= SHORTEST]
    histories = replay_many([np.array(line.levels) for line in lines], [line.scale for line in lines])
    kinds: dict[int, str] = {}
    steps: dict[int, Verdict] = {}
    drifts: dict[tuple[int, int], Verdict] = {}
    for line, history in zip(lines, histories, strict=True):
        for event in describe(np.array(line.levels), line.scale, starts=history.standing):
            _note(kinds, line, event)
            if event.kind in (STEP, RECOVERED) and event.start in history.standing:
                verdict = line.verdicts[event.start - 1]
                if not verdict.flagged and verdict.attribution != MEASUREMENT:
                    steps.setdefault(id(verdict.comparison.new), _step(line, event, history.standing))
            elif event.kind == DRIFT:
                found = _drift(line, event, noise)
                drifts.setdefault((id(found.comparison.baseline.observation), id(found.comparison.new)), found)
    return Days(kinds, steps, tuple(drifts.values()), tuple(lines))


def _lines(verdicts: Iterable[Verdict], noise: NoiseModel) -> list[Line]:
    """Return the lines of descent, the longest of each curve first; an observation nobody was compared with ends one."""
    curves: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        curves[verdict.comparison.new.curve_id].append(verdict)
    return [line for curve in sorted(curves) for line in _lines_of(curves[curve], noise)]


def _lines_of(verdicts: list[Verdict], noise: NoiseModel) -> list[Line]:
    by_new = {id(verdict.comparison.new): verdict for verdict in verdicts}
    parents = {id(verdict.comparison.baseline.observation) for verdict in verdicts}
    paths = [_path(verdict, by_new) for verdict in verdicts if id(verdict.comparison.new) not in parents]
    ordered = sorted(paths, key=lambda path: (-len(path), path[-1].comparison.new.measured_at, path[-1].comparison.new.run_id))
    return [_line(path, noise) for path in ordered]


def _path(leaf: Verdict, by_new: dict[int, Verdict]) -> list[Verdict]:
    path: list[Verdict] = [leaf]
    while (earlier := by_new.get(id(path[-1].comparison.baseline.observation))) is not None:
        path.append(earlier)
    return path[::-1]


def _line(path: list[Verdict], noise: NoiseModel) -> Line:
    first, last = path[0].comparison.baseline.observation, path[-1].comparison
    levels = np.concatenate([[0.0], np.cumsum([_size(verdict) for verdict in path])])
    cells = int(np.median([len(verdict.comparison.concurrencies) for verdict in path]))
    scale = noise.scale(last.new.context, STEADY, cells, night(last)).scale
    return Line((first, *(verdict.comparison.new for verdict in path)), tuple(path), tuple(levels.tolist()), max(scale, FLOOR))


def _size(verdict: Verdict) -> float:
    """Return how far the whole curve moved: in steady state, else by TPOT, else as reported; a single half does not count."""
    moved = (verdict.comparison.movement(metric) for metric in (STEADY, TPOT, REPORTED))
    return next((found.median for found in moved if found is not None), 0.0)


def _note(kinds: dict[int, str], line: Line, event: Event) -> None:
    if event.kind in (STEP, RECOVERED, BLIP):
        kinds.setdefault(id(line.observations[event.start]), event.kind)
    if event.kind == BLIP and event.end < len(line.observations):
        kinds.setdefault(id(line.observations[event.end]), RETURN)


def _step(line: Line, event: Event, standing: tuple[int, ...]) -> Verdict:
    """Return the verdict of the observation at which a level changed, with the size and p of the two levels."""
    bounds = (0, *standing, len(line.levels))
    place = bounds.index(event.start)
    before, after = event.start - bounds[place - 1], bounds[place + 1] - event.start
    pair = line.verdicts[event.start - 1]
    moved = replace(pair.moved, median=event.size, coherent=True)
    p_value = tail(event.size, line.scale * math.sqrt(1 / before + 1 / after))
    noise = replace(pair.noise, scale=line.scale)
    metric = _metric(pair.comparison)
    return replace(
        pair, kind=event.kind, metric=metric, part=CURVE, moved=moved, noise=noise, p_value=p_value, gated=True, by_days=True
    )


def _metric(comparison: Comparison) -> str:
    return next(metric for metric in (STEADY, TPOT, REPORTED) if comparison.movement(metric) is not None)


def _drift(line: Line, event: Event, noise: NoiseModel) -> Verdict:
    """Return the verdict on the two ends of a drift. A slope is no step at one image: nobody is blamed alone for it."""
    old, new = line.observations[event.start - 1], line.observations[event.end]
    comparison = compare(new, Baseline(old, old.cells, (old,)))
    between = line.verdicts[event.start - 1 : event.end]
    builds = sum(BUILD in verdict.changes.names for verdict in between)
    causes = {name for verdict in between for name in verdict.changes.names} - {SEARCH_SPACE}
    changes = differences(new, comparison.baseline)
    told = f"slow change over {len(between)} observations, in which the build changed {builds} times"
    slow = ChangeSet(tuple(sorted({*changes.names, *causes})), (*changes.details, told), MIXED if causes else ENVIRONMENT)
    scale = noise.scale(new.context, STEADY, len(comparison.concurrencies), night(comparison))
    moved = Movement(event.size, True, len(comparison.concurrencies), len(comparison.concurrencies))
    p_value = tail(event.size, scale.of_change)
    return Verdict(comparison, slow, STEADY, CURVE, moved, scale, p_value, True, slow.attribution, kind=DRIFT, by_days=True)
