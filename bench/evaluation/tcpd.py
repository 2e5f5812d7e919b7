"""The Turing Change Point Dataset: its series, its two scores, and what one fixed setting of ours makes of them.

Scores after van den Burg and Williams, "An Evaluation of Change Point Detection Algorithms" (2020), with their margin of five.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

import numpy as np

from pipelines.detect.partition import CAP, Floats
from pipelines.detect.series import Rules, segment

MARGIN = 5
WHOLE = Rules(cap=CAP, floor=0.0, gate=0.0, dearest=float("inf"))
"""For series that are seen once, whole, in any unit: no least change, and no haste to see one at its second observation."""

Annotations = dict[str, list[int]]
"""Change points by annotator."""


def evaluate(folder: Path) -> dict[str, object]:
    """Return mean F1 and cover over the published univariate series: ours, of no change at all, and as published."""
    published = list(csv.DictReader((folder / "published_tcpdbench_default_30series.csv").read_text("utf-8").splitlines()))
    names = sorted({row["series"] for row in published})
    annotations = json.loads((folder / "annotations.json").read_text("utf-8"))
    series = {name: read(folder / f"{name}.json") for name in names}
    others = {
        method: {key: mean(float(row[key] or 0) for row in published if row["method"] == method) for key in ("f1", "cover")}
        for method in sorted({row["method"] for row in published})
    }
    return {
        "series": len(names),
        "ours": _mean_scores(series, annotations, {name: change_points(values) for name, values in series.items()}),
        "zero": _mean_scores(series, annotations, dict.fromkeys(names, ())),
        "published": others,
    }


def _mean_scores(
    series: dict[str, Floats], annotations: dict[str, Annotations], found: dict[str, tuple[int, ...]]
) -> dict[str, float]:
    return {
        "f1": mean(f1(annotations[name], found[name]) for name in series),
        "cover": mean(cover(annotations[name], found[name], len(values)) for name, values in series.items()),
    }


def read(path: Path) -> Floats:
    """Return the values of a univariate series; NaN = missing."""
    (column,) = json.loads(path.read_text("utf-8"))["series"]
    return np.array([np.nan if value is None else value for value in column["raw"]], dtype=np.float64)


def change_points(values: Floats) -> tuple[int, ...]:
    """Return where segments start; missing values take no part. The scale is the standard deviation of the series itself."""
    there = np.flatnonzero(np.isfinite(values))
    known = values[there]
    return tuple(int(there[start]) for start in segment(known / (known.std() or 1.0), 1.0, WHOLE))


def f1(annotations: Annotations, found: Iterable[int], margin: int = MARGIN) -> float:
    """Return the harmonic mean of precision against all annotators together and of recall, averaged over annotators.

    The first observation counts as a change point on both sides, so that finding none scores too.
    """
    predicted = {0, *found}
    truths = [{0, *truth} for truth in annotations.values()]
    precision = len(_hits(set().union(*truths), predicted, margin)) / len(predicted)
    recall = mean(len(_hits(truth, predicted, margin)) / len(truth) for truth in truths)
    return 2 * precision * recall / (precision + recall)


def _hits(truth: set[int], predicted: set[int], margin: int) -> set[int]:
    """Return the true change points that have a predicted one within the margin, each predicted one used once, nearest first."""
    free, hits = set(predicted), set()
    for point in sorted(truth):
        near = [(abs(point - other), other) for other in free if abs(point - other) <= margin]
        if near:
            free.discard(min(near)[1])
            hits.add(point)
    return hits


def cover(annotations: Annotations, found: Iterable[int], count: int) -> float:
    """Return the mean over annotators of how well each true segment is matched (Jaccard index), weighted by its length."""
    ours = _segments(found, count)
    return mean(
        sum((end - start) * max(_jaccard((start, end), own) for own in ours) for start, end in _segments(truth, count)) / count
        for truth in annotations.values()
    )


def _segments(points: Iterable[int], count: int) -> list[tuple[int, int]]:
    bounds = sorted({0, count, *points})
    return list(itertools.pairwise(bounds))


def _jaccard(one: tuple[int, int], other: tuple[int, int]) -> float:
    common = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return common / (max(one[1], other[1]) - min(one[0], other[0]))
