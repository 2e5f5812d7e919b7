"""Which earlier points an observation is compared with: the previous comparable observation, completed by its repeats.

Sweeps are often partial. The setup of the latest earlier observation that shares cells decides; a cell that this observation
lacks, or has only unfit, is taken from the latest earlier repeat of the same setup. A setup that leaves a single cell to compare
is passed over where an older one leaves more, because nothing is judged on one point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile, groupby, islice

from pipelines.detect.observations import Cell, Observation

MIN_CELLS = 2
"""Cells below which nothing is said of a curve."""
LOOK_BACK = 10
"""Repeats of a setup that are looked at, latest first."""


@dataclass(frozen=True)
class Baseline:
    """The observation that stands for the earlier side, and the cells to compare with, by concurrency."""

    observation: Observation
    cells: dict[int, Cell]
    repeats: tuple[Observation, ...]
    """Earlier observations of the same setup, latest first, the standing one included."""


def find_baseline(history: list[Observation], index: int) -> Baseline | None:
    """Return what observation *index* of a curve is compared with, or None where nothing earlier is comparable.

    Comparable: strictly earlier, one metric definition, a cell in common. Of observations of one instant (two builds side by
    side in a run), the one whose setup is most alike comes first.
    """
    new = history[index]
    lonely: Baseline | None = None
    for standing in _earlier(history, index):
        if not standing.cells.keys() & new.cells.keys():
            continue
        repeats = _repeats(history, index, standing)
        found = Baseline(standing, _pool(repeats), repeats)
        if len(found.cells.keys() & new.cells.keys()) >= min(MIN_CELLS, len(new.cells)):
            return found
        lonely = lonely or found
    return lonely


def _repeats(history: list[Observation], index: int, standing: Observation) -> tuple[Observation, ...]:
    behind = dropwhile(lambda old: old is not standing, _earlier(history, index))
    return tuple(islice((old for old in behind if old.setup == standing.setup), LOOK_BACK))


def _earlier(history: list[Observation], index: int) -> Iterator[Observation]:
    """Yield the comparable observations before *index*, latest first, as far as they are asked for: histories are long."""
    new = history[index]
    backwards = (history[position] for position in range(index - 1, -1, -1))
    comparable = (
        old for old in backwards if old.measured_at < new.measured_at and old.metric_definition == new.metric_definition
    )
    for _instant, together in groupby(comparable, key=lambda old: old.measured_at):
        yield from _most_alike_first(list(together), new)


def _most_alike_first(together: list[Observation], new: Observation) -> list[Observation]:
    if len(together) > 1:
        together.sort(key=lambda old: _likeness(old, new), reverse=True)
    return together


def _likeness(old: Observation, new: Observation) -> int:
    return sum(theirs == own for theirs, own in zip(old.setup, new.setup, strict=True))


def _pool(repeats: tuple[Observation, ...]) -> dict[int, Cell]:
    cells: dict[int, Cell] = {}
    for repeat in repeats:
        for concurrency, cell in repeat.cells.items():
            if concurrency not in cells or (cells[concurrency].unfit and not cell.unfit):
                cells[concurrency] = cell
    return cells
