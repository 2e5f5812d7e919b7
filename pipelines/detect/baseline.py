"""Which earlier points an observation is compared with: the previous comparable observation, completed by its repeats.

Sweeps are often partial. The setup of the latest earlier observation that shares cells decides; a cell that this observation
lacks, or has only unfit, is taken from the latest earlier repeat of the same setup, measured by the same client under the same
state of the recipe log. A setup that leaves a single cell to compare
is passed over where an older one leaves more, because nothing is judged on one point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from pipelines.detect.observations import Cell, Observation

MIN_CELLS = 2
"""Cells below which nothing is said of a curve."""
LOOK_BACK = 10
"""Repeats of a setup that are looked at, latest first."""


@dataclass(frozen=True)
class Baseline:
    """The observation that stands for the earlier side, and the cells to compare with, by concurrency."""

    observation: Observation
    cells: dict[float, Cell]
    repeats: tuple[Observation, ...]
    """Earlier observations under the same conditions, latest first, the standing one included."""


def baselines(history: list[Observation]) -> list[Baseline | None]:
    """Return what each observation of a curve (in order of time) is compared with, or None where nothing earlier is comparable.

    Comparable: strictly earlier, one metric definition, a cell in common. Of observations of one instant (two builds side by
    side in a run), the one whose setup is most alike comes first.
    """
    previous = _previous_repeats(history)
    return [_baseline(history, index, previous) for index in range(len(history))]


def _baseline(history: list[Observation], index: int, previous: list[int | None]) -> Baseline | None:
    new = history[index]
    lonely: Baseline | None = None
    for position in _earlier(history, index):
        standing = history[position]
        if not standing.cells.keys() & new.cells.keys():
            continue
        repeats = _repeats(history, position, previous)
        found = Baseline(standing, _pool(repeats), repeats)
        if len(found.cells.keys() & new.cells.keys()) >= min(MIN_CELLS, len(new.cells)):
            return found
        lonely = lonely or found
    return lonely


def _previous_repeats(history: list[Observation]) -> list[int | None]:
    """Return for each observation where the latest one before it under the same conditions stands: a search is quadratic."""
    latest: dict[tuple[str | int | None, ...], int] = {}
    previous: list[int | None] = []
    for position, observation in enumerate(history):
        previous.append(latest.get(observation.conditions))
        latest[observation.conditions] = position
    return previous


def _repeats(history: list[Observation], standing: int, previous: list[int | None]) -> tuple[Observation, ...]:
    found: list[Observation] = []
    position: int | None = standing
    while position is not None and len(found) < LOOK_BACK:
        found.append(history[position])
        position = previous[position]
    return tuple(found)


def _earlier(history: list[Observation], index: int) -> Iterator[int]:
    """Yield where the comparable observations before *index* stand, latest first, as far as asked for: histories are long."""
    new = history[index]
    backwards = ((position, history[position]) for position in range(index - 1, -1, -1))
    comparable = (
        (position, old)
        for position, old in backwards
        if old.measured_at < new.measured_at and old.metric_definition == new.metric_definition
    )
    for _instant, together in groupby(comparable, key=lambda entry: entry[1].measured_at):
        yield from (position for position, _old in _most_alike_first(list(together), new))


def _most_alike_first(together: list[tuple[int, Observation]], new: Observation) -> list[tuple[int, Observation]]:
    if len(together) > 1:
        together.sort(key=lambda entry: _likeness(entry[1], new), reverse=True)
    return together


def _likeness(old: Observation, new: Observation) -> int:
    return sum(theirs == own for theirs, own in zip(old.conditions, new.conditions, strict=True))


def _pool(repeats: tuple[Observation, ...]) -> dict[float, Cell]:
    cells: dict[float, Cell] = {}
    for repeat in repeats:
        for concurrency, cell in repeat.cells.items():
            if concurrency not in cells or (cells[concurrency].unfit and not cell.unfit):
                cells[concurrency] = cell
    return cells
