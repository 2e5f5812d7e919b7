"""A record with some of its fields, wherever they lie, made into something else: `read` must refuse it in words or read it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from pipelines.ingest.reading import Given, Reading
from warehouse.cell import curve_id
from warehouse.errors import InputError

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=20),
    st.sampled_from(["NaN", "Infinity", "-1", "1e999", "x" * 600, "9" * 40, "../../home/someone", "\ud800"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
GONE = object()


def places(value: Any, below: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in *value*."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield (*below, key)
        yield from places(one, (*below, key))


@st.composite
def mutations(draw: st.DrawFn, record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* with up to three of its values made strange or taken away."""
    changed = copy.deepcopy(record)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(changed)) or [("x",)]))
        owner = changed
        for key in path[:-1]:
            owner = owner[key]
        value = draw(STRANGE | st.just(GONE))
        if value is GONE:
            del owner[path[-1]]
        else:
            owner[path[-1]] = value
    return changed


def refused_or_finite(read: Callable[[dict[str, Any], Given], Reading], record: dict[str, Any], given: Given) -> None:
    """Check that *record* is refused in words, or read as numbers that are finite, with an identity that has a cell."""
    try:
        reading = read(record, given)
    except InputError as error:
        assert str(error)
        return
    assert all(math.isfinite(value) for value in (*reading.metrics.values(), *reading.metrics_other.values()))
    assert curve_id(reading.identity)
