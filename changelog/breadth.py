"""How wide a change of build was felt: which comparisons of one pair of builds moved, and what those have in common.

Where only MLA models moved, a change to MLA is the likelier cause; where everything moved, one to what all share. Purely from
`diffs`: no upstream fact is looked at. Belongs here: counting, and what follows for facets, in words. Does not: the weights of
facets (`changelog.scoring`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any

import polars as pl

from changelog.facets import Configuration, asked_facets, facets

LEAST = 2
"""Curves on either side of a split that it takes to say something."""
WIDE = 0.8
"""Share of the curves that moved from which on it is what all of them share."""
NOT_NEEDED = 0.6
"""Greatest factor of any facet where nearly everything moved: it moved without that facet, too."""
MOST = 2.0
"""Greatest factor, and its inverse the smallest, by which a facet's weight changes."""
SPLIT_BY = ("vendor", "target", "accelerator", "model", "trait", "precision", "mode")
"""Kinds of facets that tell configurations apart; `core` and `elsewhere` are asked for by all."""
SIDES = ("image_ref", "image_digest", "engine_version")
COLUMNS = (
    *("engine", "hardware", "model", "precision", "spec_decoding", "disagg", "size", "flagged", "curve_id"),
    *(f"{side}_{name}" for side in ("from", "to") for name in SIDES),
)
"""Columns of `diffs` that are looked at."""

Row = Mapping[str, Any]
Key = tuple[object, ...]


@dataclass(frozen=True)
class Split:
    """Curves with a facet and without it: how many moved, of how many."""

    moved: int
    total: int
    other_moved: int
    other_total: int

    @property
    def tells(self) -> bool:
        """Say whether there are curves enough on both sides."""
        return self.total >= LEAST and self.other_total >= LEAST

    @property
    def factor(self) -> float:
        """Return by what the facet's weight changes: above 1 where mostly curves with it moved, below 1 where mostly others did.

        The log of the ratio of both shares, each with half a curve added so that 0 of 2 is not never, capped to MOST.
        """
        if not self.tells:
            return 1.0
        ratio = (self.moved + 0.5) / (self.total + 1) / ((self.other_moved + 0.5) / (self.other_total + 1))
        return round(min(MOST, max(1 / MOST, 1.0 + log(ratio) / 2)), 4)


@dataclass(frozen=True)
class Breadth:
    """What moved between two builds in one direction, for one configuration."""

    moved: int = 0
    total: int = 0
    splits: Mapping[str, Split] = field(default_factory=dict)
    """By the name of a facet that the configuration asks for."""

    @property
    def wide(self) -> bool:
        """Say whether nearly all curves moved, of configurations that differ in something."""
        return self.moved >= WIDE * self.total and any(split.tells for split in self.splits.values())

    def factor(self, name: str) -> float:
        """Return by what the weight of a facet is multiplied; 1 where the comparisons tell nothing."""
        if not self.total:
            return 1.0
        if facets()[name].kind == "core":
            return MOST if self.wide else 1.0
        split = self.splits.get(name)
        if split is None or not split.tells:
            return 1.0
        return min(split.factor, NOT_NEEDED) if self.wide else split.factor

    def words(self, name: str) -> str:
        """Return the counts that the factor of a facet follows from."""
        if facets()[name].kind == "core":
            return f"nearly all curves moved: {self.moved} of {self.total}"
        split, label = self.splits[name], facets()[name].label
        only = "only " if split.moved and not split.other_moved else ""
        counts = f"{split.moved} of {split.total}; others {split.other_moved} of {split.other_total}"
        return f"{only}curves with {label} moved: {counts}"


class Comparisons:
    """All comparisons of some nights, by pair of builds."""

    def __init__(self, diffs: pl.DataFrame | None) -> None:
        """*diffs*: rows of the table; without them nothing is told."""
        self._rows: dict[Key, list[Row]] = {}
        known = diffs if diffs is not None else pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String()))
        for row in known.select(COLUMNS).sort("curve_id", maintain_order=True).iter_rows(named=True):
            self._rows.setdefault(pair_of(row), []).append(row)
        self._asked: dict[Configuration, frozenset[str]] = {}
        self._told: dict[tuple[Key, Configuration], Breadth] = {}

    def breadth(self, shift: Row, configuration: Configuration) -> Breadth:
        """Return what the comparisons of the same two builds say, of which *shift* is one."""
        key = pair_of(shift), configuration
        if key not in self._told:
            self._told[key] = breadth(self._rows.get(key[0], ()), configuration, self._names)
        return self._told[key]

    def _names(self, row: Row) -> frozenset[str]:
        configuration = _configuration(row)
        if configuration not in self._asked:
            self._asked[configuration] = told_apart(configuration)
        return self._asked[configuration]


def pair_of(row: Row) -> Key:
    """Return engine and both builds of a comparison."""
    return row["engine"], *(row[f"{side}_{name}"] for side in ("from", "to") for name in SIDES)


def told_apart(configuration: Configuration) -> frozenset[str]:
    """Return the facets that a configuration asks for and another may not."""
    return frozenset(name for kind, names in asked_facets(configuration).items() if kind.split()[0] in SPLIT_BY for name in names)


def breadth(
    rows: Iterable[Row], configuration: Configuration, names_of: Callable[[Row], frozenset[str]] | None = None
) -> Breadth:
    """Count, facet by facet of *configuration*, which of *rows* (comparisons of two builds) moved in its direction.

    Each curve counts once: it moved where any of its comparisons is flagged and goes that way.
    """
    sign = -1 if configuration.direction == "regression" else 1
    curves: dict[str, tuple[frozenset[str], bool]] = {}
    for row in rows:
        names = names_of(row) if names_of else told_apart(_configuration(row))
        moved = bool(row["flagged"]) and (row["size"] or 0.0) * sign > 0
        before = curves.get(row["curve_id"])
        curves[row["curve_id"]] = (names, moved or (before is not None and before[1]))
    told = list(curves.values())
    splits = {name: _split(name, told) for name in sorted(told_apart(configuration))}
    return Breadth(sum(moved for _, moved in told), len(told), splits)


def _split(name: str, told: list[tuple[frozenset[str], bool]]) -> Split:
    own = [moved for names, moved in told if name in names]
    others = [moved for names, moved in told if name not in names]
    return Split(sum(own), len(own), sum(others), len(others))


def _configuration(row: Row) -> Configuration:
    return Configuration(row["hardware"], row["model"], row["precision"], row["spec_decoding"], row["disagg"])
