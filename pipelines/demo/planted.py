"""The truth of the sample: what was planted, where, when and how large; and the file that says so.

Belongs here: the type of a planted item and its file. Does not: which items there are (`timeline`), the verdict
(`comparison`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from warehouse.errors import InputError

Kind = Literal["engine_regression", "engine_speedup", "recipe_change", "moved_tag", "cold_start", "flat_bump"]
Direction = Literal["regression", "speedup", "none"]


class Item(BaseModel):
    """A value that cannot change and takes no field it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PlantedCurve(Item):
    """One curve, by the canonical names of the identity fields in which curves of the sample differ."""

    hardware: str
    engine: str
    model: str
    precision: str
    tp: int
    isl: int
    osl: int


class Planted(Item):
    """One planted item: the speed of `curves` changes by `size_pct` on `day`, and stays (a cold start: for one run).

    `size_pct` is of throughput, % (a cold start: of reported throughput, median over its cold cells, roughly). `attribution` is
    the answer that detection should give, None where it should claim nothing. `pr` is the pull request that did it, None
    where no upstream change did, or none can be known from the images.
    """

    key: str
    kind: Kind
    engine: str
    hardware: tuple[str, ...]
    curves: tuple[PlantedCurve, ...]
    day: str
    from_image: str
    to_image: str
    direction: Direction
    size_pct: float
    attribution: str | None
    pr: int | None = None
    cold_concurrencies: tuple[int, ...] = ()


_LIST = TypeAdapter(list[Planted])


def dump(items: tuple[Planted, ...], path: Path) -> None:
    """Write *items* to *path* as indented JSON."""
    path.write_bytes(_LIST.dump_json(list(items), indent=1) + b"\n")


def load(path: Path) -> list[Planted]:
    """Return the planted items that `generate` wrote to *path*; raises InputError where it is not such a file."""
    try:
        return _LIST.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror}); run `shiftlog demo` to make it") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path.name}: {place}: {first['msg']}; make the sample again") from error
