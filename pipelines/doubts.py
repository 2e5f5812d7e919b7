"""What may not be concluded: why a comparison is no shift, and what is not known of one that is.

Belongs here: sentences that name a gap in the evidence, from the fields of `pipelines.answers.explain`. Does not: the rules
themselves (`pipelines.detect`), the rest of the explanation (`explanation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pipelines.detect.changes import BUILD
from pipelines.detect.comparison import SHORT_CURVE, Movement, percent
from pipelines.detect.decision import ALPHA, FALSE_DISCOVERY_RATE, WITNESS_SHARE, gate
from pipelines.detect.noise import Scale, groups
from pipelines.detect.observations import REPORTED, STEADY
from pipelines.detect.public import of_line
from pipelines.detect.rare_rows import GATE as RARE_GATE
from pipelines.detect.states import GONE, SUSPECTED
from pipelines.evidence import is_rare

Answer = dict[str, Any]
LONG_GAP_DAYS = 7.0
"""Days from which it is said that a host may have changed meanwhile."""
FEW_RUNS = 3
"""Runs of a build below which it is said how few they are."""


def gate_pct(answer: Answer) -> float:
    """Return the least change in % that would have counted: what is worth a look, and four times the noise floor."""
    if is_rare(answer):
        return percent(RARE_GATE)
    moved = Movement(_log(answer["size_pct"]), bool(answer["coherent"]), answer["cells"], answer["agreeing"])
    public = of_line(groups(answer)[-1]) is not None
    noise = Scale(answer["noise_pct"] / 100, answer["noise_level"], answer["noise_repeats"], public)
    return percent(gate(answer["part"], moved, noise))


def why_not(answer: Answer) -> list[str]:
    """Return why a comparison is no shift, every reason that its stored numbers show."""
    if answer["flagged"]:
        return []
    reasons = list(_untested(answer)) or [*_size(answer), *_agreement(answer), *_witness(answer), *_chance(answer)]
    return reasons or ["the rule asks for more agreement between concurrencies and metrics than there is"]


def _untested(answer: Answer) -> Iterator[str]:
    if answer["p_value"] is None:
        yield "two accelerators are compared: that they differ is no news, so nothing is tested"


def _size(answer: Answer) -> Iterator[str]:
    least, size = gate_pct(answer), abs(_log(answer["size_pct"]))
    if size < math.log1p(least / 100):
        floor = f"the noise floor is {answer['noise_pct']:.2f} % for one observation"
        yield f"{answer['size_pct']:+.1f} % is below the least change that counts here, {least:.1f} % ({floor})"


def _agreement(answer: Answer) -> Iterator[str]:
    if answer["coherent"] is False:
        yield "the concurrencies do not agree: they are spread as wide about their median as it is large"
    elif 1 < answer["cells"] < SHORT_CURVE and answer["agreeing"] < answer["cells"]:
        yield f"of so few concurrencies all must move one way; {answer['agreeing']} of {answer['cells']} do"


def _witness(answer: Answer) -> Iterator[str]:
    """Say where the second witness does not follow: steady state beside reported throughput, else TPOT."""
    if answer["metric"] not in (REPORTED, STEADY) or is_rare(answer):
        return
    beside_reported = answer["metric"] == REPORTED and answer["steady_pct"] is not None
    name, other = ("steady-state throughput", answer["steady_pct"]) if beside_reported else ("TPOT", answer["tpot_pct"])
    if other is None:
        yield "there is no second metric that could bear witness"
    elif _log(other) * math.copysign(1, answer["size_pct"]) < WITNESS_SHARE * abs(_log(answer["size_pct"])):
        yield f"{name} does not follow ({other:+.1f} %); both must move together"


def _chance(answer: Answer) -> Iterator[str]:
    p, q = answer["p_value"], answer["q_value"]
    if p > ALPHA and not is_rare(answer):
        yield f"p {p:.2g} is above {ALPHA:g}: runs with nothing changed move as far too often"
    elif q is not None and FALSE_DISCOVERY_RATE < q < 1:  # 1: it did not pass its gate, and the gate is the reason
        yield f"q {q:.2g} is above {FALSE_DISCOVERY_RATE:g}: among so many comparisons of a night one as odd is expected"


def _log(pct: float) -> float:
    return math.log1p(pct / 100)


def unknowns(answer: Answer) -> list[str]:
    """Return what is not known of a shift or comparison and would matter; nothing of one that was withdrawn."""
    if answer["status"] in GONE:
        return []
    parts = (_digests, _recipe, _host, _seen, _repeats, _gap, _cells)
    return [text for part in parts for text in part(answer)]


def _digests(answer: Answer) -> Iterator[str]:
    old, new = answer["from"], answer["to"]
    unnamed = [
        side for side, build in (("earlier", old), ("later", new)) if (build["build_id"] or "unknown:").startswith("unknown:")
    ]
    if unnamed:
        yield f"which build ran on the {' and the '.join(unnamed)} side: it is not recorded"
        return
    missing = [side for side, build in (("earlier", old), ("later", new)) if not build["image_digest"] and build["image_ref"]]
    if missing:
        where = "either" if len(missing) == 2 else f"the {missing[0]}"
        yield f"which image ran: no digest is recorded on {where} side, so the tag may have been moved"


def _recipe(answer: Answer) -> Iterator[str]:
    yield from _unrecorded(answer, "recipe_fingerprint", "how the server was launched: the recipe is not recorded on {side} side")


def _host(answer: Answer) -> Iterator[str]:
    yield from _unrecorded(answer, "hardware_label", "which host ran it: no runner is recorded on {side} side")
    labels = {(side or {}).get("hardware_label") for side in answer["recorded"].values()}
    if None not in labels and len(labels) == 1:
        yield f"which machine, driver and kernel ran it: both records name the runner {labels.pop()!r} and no more"


def _unrecorded(answer: Answer, name: str, text: str) -> Iterator[str]:
    """Say on which sides a record lacks a field; of a side that has no record here nothing."""
    sides = {"the earlier": answer["recorded"]["from"], "the later": answer["recorded"]["to"]}
    missing = [side for side, recorded in sides.items() if recorded is not None and recorded[name] is None]
    if missing:
        yield text.format(side="either" if len(missing) == 2 else missing[0])


def _seen(answer: Answer) -> Iterator[str]:
    old, new = answer["runs"]["from"], answer["runs"]["to"]
    if answer["status"] == SUSPECTED and new < 2:
        yield "whether it lasts: the later build ran once on this curve" + _alone(answer)
    if BUILD in answer["change_set"] and 0 < old < FEW_RUNS:
        yield f"how far the earlier build strays by itself here: {count(old, 'run')} of it on this curve"


def _alone(answer: Answer) -> str:
    return ", and it has one concurrency only" if is_rare(answer) else ""


def _repeats(answer: Answer) -> Iterator[str]:
    if answer["noise_insufficient"]:
        yield "how noisy this stack is: too few same-image repeats of it, so that a wider or borrowed floor stands in"


def _gap(answer: Answer) -> Iterator[str]:
    if (answer["gap_days"] or 0) >= LONG_GAP_DAYS:
        yield f"what happened meanwhile: {answer['gap_days']:,.0f} days lie between the two, and hosts change"


def _cells(answer: Answer) -> Iterator[str]:
    if answer["cells"] < answer["cells_total"]:
        yield f"the other loads: {answer['cells']} of {answer['cells_total']} were measured on both sides"
    if answer["part"] == "curve" and answer["reported_pct"] is None and not is_rare(answer):
        yield "throughput as reported: too few loads are fit for that comparison on both sides"


def count(number: int, word: str) -> str:
    """Return a number with its word: 1 run, 2 runs."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
