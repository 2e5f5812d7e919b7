"""How sure we are of one shift, in whole sentences that a maintainer can check against the numbers beside them.

Belongs here: the confidence sentence and its parts. Does not: formats of single values (`words`).
"""

from __future__ import annotations

from pipelines.detect.changes import MEASUREMENT
from pipelines.detect.decision import DEGREES_OF_FREEDOM
from pipelines.detect.noise import FEW
from pipelines.detect.rare_rows import DEGREES_OF_FREEDOM as RARE_DEGREES
from pipelines.detect.states import GONE
from pipelines.report import words
from pipelines.report.words import Row

LOWER_IS_BETTER = ("ttft", "tpot", "itl", "e2el")
PARTS = {
    "curve": "median of ",
    "low_concurrency": "median of the low-concurrency half of ",
    "high_concurrency": "median of the high-concurrency half of ",
    "unfit_cells": "worst of the unfit cells among ",
}
"""What the size of a shift is of, before the number of concurrencies."""
AGREEING = {"low_concurrency": "in the low half", "high_concurrency": "in the high half", "unfit_cells": "unfit"}


def confidence(shift: Row) -> str:
    """Return the size, its interval, the noise floor, the breadth and the known differences of a row of `shifts`."""
    parts = (
        _size(shift),
        noise_floor(shift),
        _breadth(shift),
        _difference(shift),
        _gap(shift),
        words.ATTRIBUTIONS.get(shift["attribution"] or "unknown", words.ATTRIBUTIONS["unknown"]),
    )
    return " ".join(part for part in parts if part)


def _size(shift: Row) -> str:
    name = shift["metric"] or ""
    sense = ", counted so that + is better" if name.startswith(LOWER_IS_BETTER) else ""
    low, high = shift["interval_low_pct"], shift["interval_high_pct"]
    details = [f"90{words.SPACE}% interval {words.interval(low, high)}"] if words.known(low) and words.known(high) else []
    if shift["cells"] == shift["cells_total"] == 1:
        details.append("one result on each side")
    elif shift["cells"]:
        of = f"{PARTS.get(shift['part'] or 'curve', '')}{words.count(shift['cells'], 'concurrency', 'concurrencies')}"
        details.append(f"{of}, {agreement(shift)} agree" if shift["agreeing"] is not None else of)
    missing = (shift["cells_total"] or 0) - (shift["cells"] or 0)
    if missing > 0:
        details.append(f"{missing} more on one side only")
    told = f" ({'; '.join(details)})" if details else ""
    return f"{words.metric(name)} moved {words.percent(shift['size_pct'])}{sense}{told}."


def agreement(shift: Row) -> str:
    """Return how many cells moved the way of the size: `5 of 6`; of a part of the curve only their number, and the part."""
    if shift["part"] in (None, "curve"):
        return f"{words.count(shift['agreeing'])} of {words.count(shift['cells'])}"
    return f"{words.count(shift['agreeing'])} {AGREEING.get(shift['part'], words.finding(shift['part']))}"


def noise_floor(shift: Row) -> str:
    """Return what the noise floor is, whose it is and how many repeats stand behind it."""
    if not words.known(shift["noise_scale"]):
        return "No noise floor is known for it."
    if shift["noise_level"] == "prior":
        return f"No repeat was measured yet; one observation is taken to move {words.scale(shift['noise_scale'])} by itself."
    whose = words.LEVELS.get(shift["noise_level"] or "", "an unnamed group")
    repeats = words.count(shift["noise_repeats"] or 0, "same-image repeat")
    if shift["noise_level"] == "public":
        repeats = f"only {repeats} of its own" if shift["noise_repeats"] else "no repeat of its own"
    elif shift["noise_level"] in ("engine", "global"):
        repeats = f"{repeats}, none of this stack"
    elif (shift["noise_repeats"] or 0) < FEW:
        repeats = f"insufficient repeats: {shift['noise_repeats'] or 0}"
    return f"With nothing changed, one observation of {whose} moves {words.scale(shift['noise_scale'])} ({repeats})."


def degrees_of_freedom(shift: Row) -> int:
    """Return with which Student t the p value was worked out: rare series have heavier tails."""
    return RARE_DEGREES if shift["cells"] == shift["cells_total"] == 1 else DEGREES_OF_FREEDOM


def _is_unclassed(shift: Row) -> bool:
    """Say whether nothing classes it: the second pass looks at steady states, of curves, that stand."""
    rare = shift["cells"] == shift["cells_total"] == 1
    return shift["kind"] is None and (rare or shift["attribution"] == MEASUREMENT or shift["status"] in GONE)


def history(shift: Row) -> str:
    """Return what the whole history of its curve makes of a shift, and which shift it repeats or was replaced by."""
    told = [words.NOTHING if _is_unclassed(shift) else words.KINDS.get(shift["kind"], words.plain(shift["kind"] or ""))]
    told += [f"told before as {shift['echo_of']}"] if shift["echo_of"] else []
    told += [f"superseded by {shift['superseded_by']}"] if shift["superseded_by"] else []
    return "; ".join(told)


def _breadth(shift: Row) -> str:
    total = shift["siblings_total"]
    if not total or shift["siblings"] is None or not shift["change_set"]:
        return ""
    if total == 1:
        return "No other curve had the same change."
    return f"{shift['siblings']} of {total} curves with the same change moved this way."


def _difference(shift: Row) -> str:
    differs = [words.finding(item) for item in shift["change_set"] or ()]
    if not differs:
        return "Nothing is known to differ between the two observations."
    old, new = words.transition(shift)
    named = [f"build ({old} \u2192 {new})" if item == "build" else item for item in differs]
    return f"Known to differ: {', '.join(named)}."


def _gap(shift: Row) -> str:
    return f"The observations are {words.gap(shift['gap_days'])} apart." if words.known(shift["gap_days"]) else ""
