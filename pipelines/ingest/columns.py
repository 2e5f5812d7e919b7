"""The columns of `points` that follow from a record alone, and how a reading becomes one row of them.

Belongs here: columns and what follows from other columns. Does not: many records at once (`mapping`), run and time
(`pipelines.fold`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from pipelines.ingest.reading import Reading
from warehouse import image
from warehouse.cell import IDENTITY_FIELDS, cell_id, curve_id
from warehouse.errors import InputError
from warehouse.image import ImageReference
from warehouse.schemas import METRIC_COLUMNS, METRICS, POINTS, TIME

BUILD = ("build_id", "image_ref", "image_digest", "engine_version")
"""Columns that follow from the image, else from what is said of the engine."""
SETUP = (
    "cell_id",
    "curve_id",
    *IDENTITY_FIELDS,
    "concurrency",
    "request_rate",
    "num_gpus",
    "hardware_label",
    "model_source",
    "checkpoint",
    "recipe_fingerprint",
    "metric_definition",
    "declared_fields",
)
"""Columns that follow from how a record is set up."""
COUNTS = ("requests", "requests_failed", "duration_s", "isl_mean", "osl_mean")
"""Columns that tell how much was measured."""
METRIC_NAMES = tuple(column.name for column in METRIC_COLUMNS)
COLUMNS = (*SETUP, *BUILD, *METRIC_NAMES, "metrics_other", *COUNTS)
SCHEMA = pl.Schema({"row": pl.Int64(), "clock": TIME, **{name: POINTS.schema[name] for name in COLUMNS}})
"""A mapped record: its place among those given, its own start time where it has one, its columns of `points`."""
Indices = np.ndarray[Any, np.dtype[np.int64]]
Matrix = np.ndarray[Any, np.dtype[np.float64]]


def schema_of(*names: str) -> pl.Schema:
    """Return the part of SCHEMA of the columns *names*."""
    return pl.Schema({name: SCHEMA[name] for name in names})


def setup_columns(reading: Reading) -> tuple[Any, ...]:
    """Return the SETUP columns of a reading."""
    curve = curve_id(reading.identity)
    return (
        cell_id(curve, reading.concurrency, reading.request_rate),
        curve,
        *(reading.identity[name] for name in IDENTITY_FIELDS),
        reading.concurrency,
        reading.request_rate,
        reading.num_gpus,
        reading.hardware_label,
        reading.model_source,
        reading.checkpoint,
        reading.recipe_fingerprint,
        reading.metric_definition,
        reading.declared,
    )


def build_of(text: str | None, engine: str | None, version: str | None, commit: str | None) -> tuple[str | None, ...]:
    """Return the BUILD columns: by the image where there is one, else by commit or version as the record or the user says."""
    build = reference(text)
    version = version or (build.version if build else None)
    if build is not None:
        return (build.build_id, build.ref, build.digest, version)
    if commit or version:
        return (f"commit:{engine}/{commit}" if commit else f"version:{engine}/{version}", text, None, version)
    return (f"unknown:{engine or 'unknown'}", text, None, None)


def reference(text: str | None) -> ImageReference | None:
    """Return what an image text holds, or None where it is absent or not a reference (then the build is unknown)."""
    try:
        return image.parse(text) if text else None
    except InputError:
        return None


def finished(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with what follows from their other columns, in the order of SCHEMA."""
    return frame.with_columns(_steady(frame)).select(SCHEMA.names())


def _steady(frame: pl.DataFrame) -> pl.Series:
    """Return concurrency · osl / e2el_median / GPUs, Little's law from the median latency; a cold first burst does not touch it.

    It holds for closed loops of nominal length alone: only there as many requests are in flight as the client may send, and not
    where lengths are drawn from a wide range (`random 0.0..1.0`), whose mean is another. Not by polars, which
    divides a column of one value by multiplying: then the last bit of a point would depend on its neighbours.
    """
    concurrency, osl, latency, gpus = (
        frame[name].cast(pl.Float64).to_numpy() for name in ("concurrency", "osl", "e2el_median", "num_gpus")
    )
    with np.errstate(all="ignore"):
        steady = concurrency * osl / latency / gpus
    drawn = frame["workload"].str.contains("..", literal=True).fill_null(False)
    closed = (frame["arrival"].is_null() & ~drawn).to_numpy() & (latency != 0) & (osl != 0)
    return pl.Series("steady_output_tput_per_gpu", np.where(closed, steady, np.nan), nan_to_null=True)


def clock_column(clocks: Sequence[datetime | None]) -> pl.Series:
    """Return start times that records state as a column; mostly there is none, and then nothing is converted."""
    if any(clocks):
        return pl.Series("clock", pl.from_arrow(pa.array(clocks, pa.timestamp("us", "UTC"))), dtype=TIME)
    return pl.Series("clock", [None], dtype=TIME).new_from_index(0, len(clocks))


def listed(names: Sequence[str], of: Indices, values: Matrix, lengths: Indices) -> pl.Series:
    """Return numbers without a column as one list of (name, value) a row.

    *of* is the place of each value's name in *names*; *lengths* is how many values each row has.
    """
    named = pa.DictionaryArray.from_arrays(pa.array(of, pa.int32()), pa.array(names, pa.large_string()))
    pairs = pa.StructArray.from_arrays([named.cast(pa.large_string()), pa.array(values, pa.float64())], ["name", "value"])
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
    return pl.Series("metrics_other", pl.from_arrow(pa.LargeListArray.from_arrays(offsets, pairs)), dtype=METRICS)
