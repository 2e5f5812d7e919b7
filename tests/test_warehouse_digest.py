"""The content hash: of values and their order, not of how they lie in memory."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.digest import content_hash

SCHEMA = pl.Schema(
    {
        "text": pl.String(),
        "number": pl.Int64(),
        "real": pl.Float64(),
        "flag": pl.Boolean(),
        "time": pl.Datetime("us", "UTC"),
        "texts": pl.List(pl.String()),
        "metrics": pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()})),
    }
)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.none() | st.integers(-(2**63), 2**63 - 1)
reals = st.none() | st.floats(allow_nan=False)
metrics = st.none() | st.lists(st.fixed_dictionaries({"name": texts, "value": reals}), max_size=3)
rows = st.lists(
    st.tuples(
        texts,
        numbers,
        reals,
        st.none() | st.booleans(),
        st.none() | st.integers(0, 2**50),
        st.none() | st.lists(texts, max_size=3),
        metrics,
    ),
    max_size=6,
)


def frame(values: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(values, schema=SCHEMA, orient="row")


@given(rows, st.integers(0, 6))
def test_the_same_rows_have_the_same_hash(values: list[Any], cut: int) -> None:
    whole = frame(values)
    others = [
        pl.concat([frame(values[:cut]), frame(values[cut:])], rechunk=False),
        pl.concat([whole, frame([("filler", 1, 1.0, True, 1, ["x"], [])])]).head(len(values)),
        whole.with_columns(pl.when(pl.col(name).is_not_null()).then(pl.col(name)) for name in SCHEMA),
        pl.from_arrow(whole.to_arrow(compat_level=pl.CompatLevel.oldest())),
    ]
    assert {content_hash(other) for other in others if isinstance(other, pl.DataFrame)} == {content_hash(whole)}


@given(rows, rows)
def test_other_rows_have_another_hash(one: list[Any], other: list[Any]) -> None:
    first, second = frame(one), frame(other)
    zeros = "-0.0" in repr(one) + repr(other)  # equal as values, and not the same bytes
    assert (content_hash(first) == content_hash(second)) == first.equals(second) or zeros


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.DataFrame({"a": ["ab", "c"]}), pl.DataFrame({"a": ["a", "bc"]})),
        (pl.DataFrame({"a": [""]}), pl.DataFrame({"a": [None]}, schema={"a": pl.String})),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"b": [1]})),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1.0]})),
        (pl.DataFrame({"a": [[1], [2, 3]]}), pl.DataFrame({"a": [[1, 2], [3]]})),
        (pl.DataFrame({"a": [[1], []]}), pl.DataFrame({"a": [[1], None]})),
        (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [2, 1]})),
        (pl.DataFrame({"a": []}, schema={"a": pl.String}), pl.DataFrame({"a": []}, schema={"a": pl.Int64})),
        (
            pl.DataFrame({"a": [[]]}, schema={"a": pl.List(pl.String)}),
            pl.DataFrame({"a": [[None]]}, schema={"a": pl.List(pl.String)}),
        ),
    ],
)
def test_small_differences_are_seen(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert content_hash(one) != content_hash(other)
