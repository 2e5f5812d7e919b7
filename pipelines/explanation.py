"""One shift in plain words: what moved, how sure, what else changed, what upstream did. For terminals; the page has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SUSPECTS_SHOWN = 5


def sentences(shift: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that explain one shift (an object of `pipelines.answers.explain`)."""
    yield f"{shift['shift_id']}  {shift['status']}: {shift['status_reason']}"
    yield f"{_what(shift)}"
    if shift["status"] != "retracted":
        yield from _numbers(shift)
    yield f"Attribution: {_attribution(shift)}."
    yield from (f"  changed  {detail}" for detail in shift["change_detail"])
    yield f"  from  {_side(shift['from'])}"
    yield f"  to    {_side(shift['to'])}"
    yield from _upstream(shift)


def _what(shift: dict[str, Any]) -> str:
    where = {
        "curve": "",
        "low_concurrency": ", low concurrencies",
        "high_concurrency": ", high concurrencies",
        "unfit_cells": ", worst of the unfit cells",
    }[shift["part"]]
    name = {"tput_per_gpu": "Throughput per GPU"}.get(shift["metric"], "Steady-state throughput per GPU")
    return (
        f"{name} {shift['size_pct']:+.1f} % on {shift['engine']} {shift['hardware']}, {shift['model']} {shift['precision']}, "
        f"{shift['isl']}/{shift['osl']} tokens ({shift['framework']}{where})."
    )


def _numbers(shift: dict[str, Any]) -> Iterator[str]:
    low, high = shift["interval_pct"]
    yield (
        f"90 % interval {low:+.1f} … {high:+.1f} %; {shift['agreeing']} of the concurrencies judged moved that way, "
        f"{shift['cells']} were compared."
    )
    yield (
        f"Reported {_percent(shift['reported_pct'])}, steady state {_percent(shift['steady_pct'])}, TPOT "
        f"{_percent(shift['tpot_pct'])}, TTFT {_percent(shift['ttft_pct'])} (+ is better)."
    )
    repeats = shift["noise_repeats"]
    basis = f"{repeats} repeats at {shift['noise_level']} level" if repeats else "insufficient repeats: the prior stands"
    yield f"Noise floor: one observation moves {shift['noise_pct']:.2f} % when nothing changed ({basis})."
    yield (
        f"p {shift['p_value']:.2g}, q {shift['q_value']:.2g} within the night; {shift['siblings']} of "
        f"{shift['siblings_total']} curves of the same change; gap {shift['gap_days']:.1f} days."
    )
    if shift["health"]:
        yield f"Health: {', '.join(shift['health'])}."


def _percent(value: float | None) -> str:
    return "not comparable" if value is None else f"{value:+.1f} %"


def _attribution(shift: dict[str, Any]) -> str:
    words = {
        "engine": "engine: the build is all that is known to differ",
        "measurement": "measurement: steady state did not move with it, so this says nothing of the engine",
        "environment": "environment: running the same software again gave it",
        "mixed": "mixed: more than one thing differs",
        "unknown": "unknown: what is on record does not allow a cause to be named",
    }
    name = str(shift["attribution"])
    return words.get(name, f"{name}: the {name} is all that is known to differ")


def _side(side: dict[str, Any]) -> str:
    return f"{side['measured_at']}  run {side['run_id']}  {side['image_ref'] or 'image not recorded'}"


def _upstream(shift: dict[str, Any]) -> Iterator[str]:
    upstream = shift["upstream"]
    if upstream is None:
        if shift["attribution"] in ("engine", "mixed"):
            yield "Upstream: no changes are known between the two builds; `shiftlog ingest` the engine's history."
        return
    open_end = "; one end of the range is open" if upstream["open_ended"] else ""
    yield f"Upstream: {upstream['candidates']:,} changes between the builds ({upstream['range_how']}{open_end}). Read first:"
    for change in upstream["changes"][:SUSPECTS_SHOWN]:
        number = f"#{change['pr']}" if change["pr"] else change["commit"][:9]
        yield f"  {change['rank']}. {number} {change['title']}"
        yield f"     {'; '.join(change['evidence'])}"
