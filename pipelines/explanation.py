"""One shift in plain words: what moved, how sure, what else changed, what upstream did. For terminals; the page has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.detect.health import WORDS

SUSPECTS_SHOWN = 5
STEADY = "steady_output_tput_per_gpu"
PARTS = {
    "curve": "median over the curve",
    "low_concurrency": "median over the lower half of its concurrencies",
    "high_concurrency": "median over the upper half of its concurrencies",
    "unfit_cells": "worst of the concurrencies that are unfit for comparison",
}
ATTRIBUTIONS = {
    "engine": "engine: the build is all that is known to differ",
    "measurement": "measurement: steady state did not move with it, so this says nothing of the engine",
    "environment": "environment: runs of the same software gave it",
    "mixed": "mixed: more than one thing differs",
    "unknown": "unknown: what is on record does not allow a cause to be named",
}


def sentences(shift: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that explain one shift (an object of `pipelines.answers.explain`)."""
    yield f"{shift['shift_id']}  {shift['status']}: {shift['status_reason']}"
    yield _what(shift)
    if shift["status"] != "retracted":
        yield from _numbers(shift)
        yield from _table(shift["concurrencies"])
    name = str(shift["attribution"])
    yield f"Attribution: {ATTRIBUTIONS.get(name, f'{name}: the {name} is all that is known to differ')}."
    yield from (f"  changed  {detail}" for detail in shift["change_detail"])
    yield f"  from  {_side(shift['from'])}"
    yield f"  to    {_side(shift['to'])}"
    yield from _upstream(shift)


def _what(shift: dict[str, Any]) -> str:
    name = {"tput_per_gpu": "Reported throughput per GPU"}.get(shift["metric"], "Steady-state throughput per GPU")
    return (
        f"{name} {shift['size_pct']:+.1f} % ({PARTS[shift['part']]}) on {shift['engine']} {shift['hardware']}, "
        f"{shift['model']} {shift['precision']}, {shift['isl']}/{shift['osl']} tokens, {shift['framework']}."
    )


def _numbers(shift: dict[str, Any]) -> Iterator[str]:
    low, high = shift["interval_pct"]
    yield f"90 % interval {low:+.1f} … {high:+.1f} %; {_agreement(shift)}."
    yield (
        f"Over the whole curve: reported {_percent(shift['reported_pct'])}, steady state {_percent(shift['steady_pct'])}, TPOT "
        f"{_percent(shift['tpot_pct'])}, TTFT {_percent(shift['ttft_pct'])} (+ is better)."
    )
    repeats = shift["noise_repeats"]
    basis = f"{repeats} repeats at {shift['noise_level']} level" if repeats else "insufficient repeats: the prior stands"
    yield f"Noise floor: one observation moves {shift['noise_pct']:.2f} % when nothing changed ({basis})."
    alike = (
        f"; {shift['siblings']} of {shift['siblings_total']} curves of the same change moved alike" if shift["change_set"] else ""
    )
    yield f"p {shift['p_value']:.2g}, q {shift['q_value']:.2g} within the night{alike}; gap {shift['gap_days']:.1f} days."
    if shift["health"]:
        yield f"Health: {', '.join(WORDS.get(reason, reason) for reason in shift['health'])}."


def _agreement(shift: dict[str, Any]) -> str:
    """Return how many concurrencies moved that way; of a part only its own count."""
    if shift["part"] == "curve":
        return f"{shift['agreeing']} of {shift['cells']} concurrencies moved that way"
    of = "unfit concurrencies" if shift["part"] == "unfit_cells" else "concurrencies of that half"
    return f"{shift['agreeing']} {of} moved that way ({shift['cells']} were compared)"


def _table(concurrencies: list[dict[str, Any]]) -> Iterator[str]:
    """Both sides by concurrency; throughput in tok/s/GPU, TPOT in ms, TTFT in s."""
    yield "  concurrency   tok/s/GPU reported   output, steady state   TPOT median, ms  TTFT mean (median), s"
    for row in concurrencies:
        old, new = row["from"] or {}, row["to"] or {}
        unfit = "".join(f"  {side} unfit" for side, values in (("from", old), ("to", new)) if values.get("verdict") == "unfit")
        yield (
            f"  {_load(row):>11}   {_pair(old, new, 'tput_per_gpu', '.0f'):>18}  {_pair(old, new, STEADY, '.0f'):>18}  "
            f"{_pair(old, new, 'tpot_median', '.2f', 1000):>16}   {_ttft(old)} → {_ttft(new)}{unfit}"
        )


def _load(row: dict[str, Any]) -> str:
    return f"{row['request_rate']:g} req/s" if row["concurrency"] is None else str(row["concurrency"])


def _pair(old: dict[str, Any], new: dict[str, Any], metric: str, form: str, factor: float = 1) -> str:
    return " → ".join("–" if side.get(metric) is None else f"{side[metric] * factor:{form}}" for side in (old, new))


def _ttft(side: dict[str, Any]) -> str:
    values = [side.get("ttft_mean"), side.get("ttft_median")]
    return "–" if None in values else f"{values[0]:.2f} ({values[1]:.2f})"


def _percent(value: float | None) -> str:
    return "not comparable" if value is None else f"{value:+.1f} %"


def _side(side: dict[str, Any]) -> str:
    return f"{side['measured_at']}  run {side['run_id']}  {side['image_ref'] or 'image not recorded'}"


def _upstream(shift: dict[str, Any]) -> Iterator[str]:
    upstream = shift["upstream"]
    if upstream is None:
        if shift["attribution"] in ("engine", "mixed"):
            yield "Upstream: no changes are known between the two builds; `shiftlog ingest` the engine's history."
        return
    open_end = " One end of the range is open." if upstream["open_ended"] else ""
    yield f"Upstream: {upstream['candidates']:,} changes between the builds. {upstream['range_how']}{open_end} Read first:"
    for change in upstream["changes"][:SUSPECTS_SHOWN]:
        number = f"#{change['pr']}" if change["pr"] else change["commit"][:9]
        yield f"  {change['rank']}. {number} {change['title']}"
        yield f"     {'; '.join(change['evidence'])}"
