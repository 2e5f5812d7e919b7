"""One comparison in plain words: what moved, how sure, what else changed, what upstream did, what is not known. For terminals.

Belongs here: sentences from the fields of `pipelines.answers.explain`. Does not: reading them (`evidence`), what may not be
concluded (`doubts`), the page's own sentences (`pipelines.report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.detect.changes import ENGINE, ENVIRONMENT, MEASUREMENT, MIXED, UNKNOWN
from pipelines.detect.fitness import FIT, INCOHERENT, LONE_RUN, MOSTLY_UNFIT
from pipelines.detect.health import COLD_START, WORDS
from pipelines.detect.noise import PUBLIC
from pipelines.detect.states import GONE
from pipelines.doubts import count
from pipelines.evidence import SIDES, is_rare
from pipelines.report import words

Answer = dict[str, Any]
Lines = Iterator[str]
SUSPECTS_SHOWN = 5
ROWS_SHOWN = 40
"""Loads of a curve that are shown, the lowest."""
DETAILS_SHOWN = 10
"""Differences, linked scores and the like that are shown of one list."""
STEADY = "steady_output_tput_per_gpu"
NAMES = {
    "tput_per_gpu": "Throughput per GPU as reported",
    STEADY: "Output throughput per GPU in steady state",
    "tpot_median": "TPOT (median)",
    "e2el_median": "End-to-end latency (median)",
    "ttft_median": "TTFT (median)",
}
PARTS = {
    "curve": "median over the curve",
    "low_concurrency": "median over the lower half of its concurrencies",
    "high_concurrency": "median over the upper half of its concurrencies",
    "unfit_cells": "worst of the concurrencies that are unfit for comparison",
}
ATTRIBUTIONS = {
    ENGINE: "engine: the build is all that is known to differ",
    "hardware": "hardware: the accelerators are all that is known to differ",
    MEASUREMENT: "measurement: steady state did not move with it, so this says nothing of the engine",
    ENVIRONMENT: "environment: the same software gives it, so this says nothing of the engine",
    MIXED: "mixed: more than one thing differs, so none of them alone is named",
    UNKNOWN: "unknown: what is on record does not allow a cause to be named",
}
OWN_LEVELS = {"line": "this stack", "stack": "this engine on this GPU"}
BORROWED = {"engine": "those of its engine on other GPUs stand in", "global": "those of other engines stand in"}
FITNESS = {
    INCOHERENT: "reported throughput leaves the shape of its own curve{at}",
    MOSTLY_UNFIT: "most of its points are unfit",
    LONE_RUN: "the whole run stands off from the other runs of the same build{shift}",
}
SENSE = " (+ is better)"
UNRECORDED = "unknown:"
"""How the id of a build begins that no record names."""


def sentences(answer: Answer) -> Lines:
    """Yield the lines that explain one shift or comparison (an object of `pipelines.answers.explain`)."""
    yield _head(answer)
    yield _what(answer)
    yield from _kinship(answer)
    if answer["status"] in GONE:
        yield from _now(answer)
    else:
        yield from _numbers(answer)
        yield from _table(answer["concurrencies"]) if not is_rare(answer) else _single(answer)
    yield from _cause(answer)
    yield from _frontier(answer["frontier"]) if not is_rare(answer) else ()
    yield from _upstream(answer)
    yield from _listed("What we do not know:", answer["unknown"])


def _head(answer: Answer) -> str:
    if answer["shift_id"]:
        return f"{answer['shift_id']}  {answer['status']}: {answer['status_reason']}"
    return f"{answer['diff_id']}  not a shift: {'; '.join(answer['why_not'])}"


def _what(answer: Answer) -> str:
    """Say what moved, by how much, and where; of one that was withdrawn the size as it was stated."""
    low, high = answer["interval_pct"]
    interval = f" (90 % interval {low:+.1f} … {high:+.1f} %)" if low is not None and high is not None else ""
    part = "" if answer["cells"] == 1 else f", {PARTS[answer['part']]}"
    return f"{metric(answer['metric'])} {_moved(answer)}{interval}{part}, {_where(answer)}."


def _moved(answer: Answer) -> str:
    return f"{answer['size_pct']:+.1f} %" + ("" if "put" in answer["metric"] or "per_second" in answer["metric"] else SENSE)


def metric(name: str) -> str:
    """Return a metric in words."""
    return NAMES.get(name) or words.metric(name)


def _where(answer: Answer) -> str:
    """Return stack and configuration in words, without what is not recorded."""
    curve = {**{name: answer[name] for name in ("engine", "model", "precision", "isl", "osl", "disagg")}, **answer["curve"]}
    named = words.curve({**curve, "framework": answer["framework"], "spec_decoding": answer["spec_decoding"]})
    extra = [str(curve[name]) for name in ("workload", "system") if curve.get(name)]
    return f"on {answer['engine']} {answer['hardware']}: {', '.join([named.replace(words.SPACE, ' '), *extra])}"


def _kinship(answer: Answer) -> Lines:
    """Say what other shifts and scores belong to it."""
    if answer["superseded_by"]:
        yield f"Superseded: `shiftlog explain {answer['superseded_by']}` stands in its place."
    if answer["echo_of"]:
        yield f"One notice with {answer['echo_of']}: the same change, told that night or in the 14 days before."
    yield from _listed("Scores that fell with it:", answer["linked"])


def _now(answer: Answer) -> Lines:
    """Say how the comparison of a withdrawn shift looks today."""
    now = answer["now"]
    if now is None:
        yield "Today these two runs are not compared with each other."
    elif now["flagged"]:
        yield f"Today the comparison of these runs gives {now['size_pct']:+.1f} %."
    else:
        yield f"Today the same comparison gives {now['size_pct']:+.1f} % and is no shift: {'; '.join(now['why_not'])}."


def _numbers(answer: Answer) -> Lines:
    if not is_rare(answer):
        yield f"{_agreement(answer)}{_compared(answer)}."
        yield (
            f"Over the whole curve: reported {_percent(answer['reported_pct'])}, steady state {_percent(answer['steady_pct'])}, "
            f"TPOT {_percent(answer['tpot_pct'])}, TTFT {_percent(answer['ttft_pct'])}{SENSE}."
        )
    yield f"How sure: {_noise(answer)}"
    yield f"  {_chance(answer)}"
    yield f"  {_seen(answer)}"
    if answer["shift_id"] and (answer["kind"] or not _is_unclassed(answer)):
        yield f"  Kind: {words.KINDS.get(answer['kind'], answer['kind'])}."
    yield from _health(answer)


def _is_unclassed(answer: Answer) -> bool:
    """Say whether no history will ever class it: the second pass looks at steady states, of curves."""
    return is_rare(answer) or answer["attribution"] == MEASUREMENT


def _agreement(answer: Answer) -> str:
    """Return how many concurrencies moved that way; of a part only its own count."""
    if answer["part"] == "curve":
        spread = {True: "they agree", False: "they do not agree about the size"}.get(answer["coherent"])
        return f"{answer['agreeing']} of {answer['cells']} concurrencies moved that way" + (f"; {spread}" if spread else "")
    one = answer["agreeing"] == 1
    of = "unfit " if answer["part"] == "unfit_cells" else ""
    where = "" if of else " of that half"
    return f"{answer['agreeing']} {of}{'concurrency' if one else 'concurrencies'}{where} moved that way"


def _compared(answer: Answer) -> str:
    left_out = answer["cells"] < answer["cells_total"] or answer["part"] != "curve"
    return f" ({answer['cells']} of {answer['cells_total']} were measured on both sides)" if left_out else ""


def _noise(answer: Answer) -> str:
    """Say how far one observation moves when nothing changed, and from what that is known."""
    level, repeats, floor = answer["noise_level"], answer["noise_repeats"] or 0, f"{answer['noise_pct']:.2f} %"
    if is_rare(answer):
        return f"insufficient repeats: a result now and then has none; a wide prior stands, {floor} for one result."
    if level in OWN_LEVELS:
        if not answer["noise_insufficient"]:
            return f"same-image repeats of {OWN_LEVELS[level]} move {floor} (one observation, n={repeats})."
        few = f"only {repeats} of {OWN_LEVELS[level]}"
        return f"insufficient repeats: {few}; drawn towards wider groups, one observation moves {floor}."
    own = f"only {repeats} of this stack" if level == PUBLIC and repeats else "none of this stack"
    if level == PUBLIC:
        return f"insufficient repeats: {own}; public fleets stand in, one observation moves {floor}."
    if level in BORROWED:
        return f"insufficient repeats: {own}; {BORROWED[level]} (n={repeats}), made wider: one observation moves {floor}."
    return f"insufficient repeats: none at all; the prior stands, one observation moves {floor}."


def _chance(answer: Answer) -> str:
    p, q = answer["p_value"], answer["q_value"]
    if p is None:
        return "p and q: not worked out, because nothing is tested between two accelerators."
    told = f"p {p:.2g}: with nothing changed, {_odds(p)} would move as far by chance."
    return told if q is None else f"{told} q {q:.2g}: {_false(q)}."


def _odds(p: float) -> str:
    if p < 1e-6:
        return "fewer than one comparison in a million"
    return f"about one comparison in {float(f'{1 / p:.2g}'):,.0f}" if p < 0.5 else "most comparisons"


def _false(q: float) -> str:
    if q >= 0.5:
        return "flagging all as odd as this one in its night would flag mostly chance"
    share = "less than 0.1" if q < 0.001 else f"about {100 * q:.2g}"
    return f"of all in its night that are as odd, {share} % are expected to be chance"


def _seen(answer: Answer) -> str:
    """Say how many runs and sibling curves saw it, and how far the two are apart."""
    old, new = answer["runs"]["from"], answer["runs"]["to"]
    if answer["from"]["build_id"] == answer["to"]["build_id"]:
        whose = "no recorded build" if answer["to"]["build_id"].startswith(UNRECORDED) else "this build"
        runs = f"{count(new, 'run')} of {whose} on this curve"
    else:
        runs = f"on this curve {count(old, 'run')} of the earlier build and {count(new, 'run')} of the later one"
    if is_rare(answer) and not old:
        runs = f"{count(new, 'run')} of the later build on this curve; the earlier result is of another curve"
    return f"Seen: {runs}{_siblings(answer)}; {answer['gap_days']:.1f} days apart."


def _siblings(answer: Answer) -> str:
    if not (answer["change_set"] and answer["siblings_total"]):
        return ""
    return f"; {answer['siblings']} of {answer['siblings_total']} curves of the same change moved alike"


def _health(answer: Answer) -> Lines:
    """Say what the findings about single points and about both runs explain."""
    if answer["explained_share"] is not None:
        first = " The first burst of requests waited: see TTFT, mean against median." if COLD_START in answer["health"] else ""
        yield f"Health: {100 * answer['explained_share']:.0f} % of the reported change vanishes in the steady state.{first}"
    if answer["health"]:
        yield f"Health findings: {', '.join(WORDS.get(reason, reason) for reason in answer['health'])}."
    for side in SIDES:
        yield from _fitness(side, answer["fitness"][side])


def _fitness(side: str, found: Answer | None) -> Lines:
    """Say why the curve of one side, or its whole run, is not fit for comparison, and how long its first burst waited."""
    if found is None:
        return
    run = found["run"] or {"verdict": FIT, "reasons": []}
    at = f" at concurrency {found['incoherent_at']}" if found["incoherent_at"] is not None else ""
    told = [FITNESS.get(reason, reason).format(at=at, shift="") for reason in found["reasons"]]
    told += [FITNESS[LONE_RUN].format(shift=f" by {100 * run['run_shift']:+.1f} %")] if LONE_RUN in run["reasons"] else []
    told += _unfit(found) if found["unfit"] else []
    if told:
        yield f"  {side:<4}  curve {found['verdict']}, run {run['verdict']}: {'; '.join(told)}"


def _unfit(found: Answer) -> list[str]:
    """Say how many points are unfit, how long their first burst waited, and how much of the loss that is."""
    told = [f"{found['unfit']} of {found['points']} points unfit by themselves"]
    if (found["burst_wait_s"] or 0) < 1:
        return told
    share = found["explained_share"]
    explained = f", and TTFT explains up to {100 * share:.0f} % of what the headline lost" if share else ""
    return [*told, f"the first burst waited up to {found['burst_wait_s']:.0f} s{explained}"]


def _single(answer: Answer) -> Lines:
    """Say the result of a rare series on both sides."""
    found = answer["headline"]
    if found:
        yield f"  {_value(found['from'])} → {_value(found['to'])}  {metric(found['metric'])}"


def _value(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _table(rows: list[Answer]) -> Lines:
    """Both sides by load; throughput in tok/s/GPU, TPOT in ms, TTFT in s. Columns that no row fills are left out."""
    if not rows:
        return
    columns = _columns(rows)
    yield "  " + "  ".join(f"{head:>{width}}" for head, width, _cells in columns)
    for index, row in enumerate(rows[:ROWS_SHOWN]):
        unfit = "".join(f"  {side} unfit" for side in SIDES if (row[side] or {}).get("verdict") == "unfit")
        yield "  " + "  ".join(f"{cells[index]:>{width}}" for _head, width, cells in columns) + unfit
    if len(rows) > ROWS_SHOWN:
        yield f"  … {len(rows) - ROWS_SHOWN} more: --format json"


def _columns(rows: list[Answer]) -> list[tuple[str, int, list[str]]]:
    """Return head, width and cells of every column that some row fills."""
    is_rate = any(row["request_rate"] is not None and row["concurrency"] is None for row in rows)
    pairs = [(row["from"] or {}, row["to"] or {}) for row in rows]
    every = (
        ("load, req/s" if is_rate else "concurrency", [_load(row) for row in rows]),
        ("tok/s/GPU reported", [_pair(*pair, "tput_per_gpu", ".0f") for pair in pairs]),
        ("output, steady state", [_pair(*pair, STEADY, ".0f") for pair in pairs]),
        ("TPOT median, ms", [_pair(*pair, "tpot_median", ".2f", 1000) for pair in pairs]),
        ("TTFT mean (median), s", [f"{_ttft(old)} → {_ttft(new)}" for old, new in pairs]),
    )
    filled = [(head, cells) for head, cells in every if any(cell != "– → –" for cell in cells)]
    return [(head, max(len(head), *map(len, cells)), cells) for head, cells in filled]


def _load(row: Answer) -> str:
    if row["concurrency"] is not None:
        return str(row["concurrency"])
    return "–" if row["request_rate"] is None else f"{row['request_rate']:g}"


def _pair(old: Answer, new: Answer, name: str, form: str, factor: float = 1) -> str:
    return " → ".join("–" if side.get(name) is None else f"{side[name] * factor:{form}}" for side in (old, new))


def _ttft(side: Answer) -> str:
    values = [side.get("ttft_mean"), side.get("ttft_median")]
    return "–" if None in values else f"{values[0]:.2f} ({values[1]:.2f})"


def _percent(value: float | None) -> str:
    return "not comparable" if value is None else f"{value:+.1f} %"


def _cause(answer: Answer) -> Lines:
    """Say what differs, and what that allows to be said of the cause."""
    if answer["shift_id"]:
        name = str(answer["attribution"])
        yield f"Attribution: {ATTRIBUTIONS.get(name, f'{name}: the {name} is all that is known to differ')}."
    details = answer["change_detail"]
    if not details and answer["status"] not in GONE:
        yield "  changed  nothing that is on record"
    yield from (f"  changed  {detail}" for detail in details[:DETAILS_SHOWN])
    if len(details) > DETAILS_SHOWN:
        yield f"  … {len(details) - DETAILS_SHOWN} more"
    yield from (f"  {side:<4}  {_side(answer[side])}" for side in SIDES)


def _side(side: Answer) -> str:
    digest = side["image_digest"] if side["image_digest"] and side["image_digest"] not in (side["image_ref"] or "") else ""
    return (
        f"{side['measured_at']}  run {side['run_id']}  {side['image_ref'] or 'image not recorded'}{'@' if digest else ''}{digest}"
    )


def _frontier(rows: list[Answer]) -> Lines:
    """Say in one line how the frontier of the same runs moved at equal interactivity, and how far reruns of one build move it."""
    if not rows:
        return
    whole, targets = rows[0], [row for row in rows if row["interactivity"] is not None]
    if whole["size_pct"] is None:
        yield f"Frontier (throughput at equal interactivity): not comparable, {whole['missing']}."
        return
    # Of targets that do not stand out the largest is the one that a hair decided.
    most = max((row for row in targets if row["stands_out"]), key=lambda row: abs(row["size_pct"]), default=None)
    at = f"; most at {most['interactivity']:g} tok/s/user, {_frontier_size(most)}" if most else ""
    size = f"{_frontier_size(whole)} over all that both reach{at}"
    yield f"Frontier (throughput at equal interactivity): {size}; {_coverage(whole)}{_reruns(whole)}."


def _frontier_size(row: Answer) -> str:
    low, high = row["interval_low_pct"], row["interval_high_pct"]
    interval = [f"90 % interval {low:+.1f} … {high:+.1f} %"] if low is not None and high is not None else []
    steady = [f"steady state {row['steady_size_pct']:+.1f} %"] if row["steady_size_pct"] is not None else []
    hair = [f"points on both frontiers alone {_percent(row['matched_pct'])}"] if row["fronts_differ"] else []
    told = [*interval, *steady, *hair, "stands out" if row["stands_out"] else "does not stand out"]
    return f"{row['size_pct']:+.1f} % ({', '.join(told)})"


def _coverage(row: Answer) -> str:
    moved = [f"{row[name]} {word}" for name, word in (("cells_gained", "gained"), ("cells_lost", "lost")) if row[name]]
    return f"{count(row['cells_shared'], 'point')} on both sides" + (f", {', '.join(moved)}" if moved else "")


def _reruns(row: Answer) -> str:
    if row["rerun_pct"] is None:
        return "; there are no reruns to hold it against"
    whose = {"stack": "this stack", "engine": "this engine"}.get(row["rerun_level"], "any engine")
    return (
        f"; nine in ten reruns of one build move it by no more than {row['rerun_pct']:.1f} % (of {whose}, n={row['rerun_pairs']})"
    )


def _upstream(answer: Answer) -> Lines:
    upstream = answer["upstream"]
    if answer["attribution"] not in (ENGINE, MIXED):
        return
    if upstream is None:
        yield "Upstream: no changes are known between the two builds; `shiftlog sync upstream` fetches the engine's history."
        return
    open_end = " One end of the range is open." if upstream["open_ended"] else ""
    flat = "" if upstream["narrowed"] else " Not narrowed: the order hardly tells them from the rest."
    yield f"Upstream: {upstream['candidates']:,} changes between the builds. {upstream['range_how']}{open_end}{flat} Read first:"
    for change in upstream["changes"][:SUSPECTS_SHOWN]:
        number = f"#{change['pr']}" if change["pr"] else (change["commit"] or change["kind"])[:10]
        yield f"  {change['rank']}. {number} {change['title']}"
        yield f"     {'; '.join(change['evidence'])}"


def _listed(head: str, items: list[str]) -> Lines:
    if items:
        yield head
        yield from (f"  - {item}" for item in items[:DETAILS_SHOWN])
    if len(items) > DETAILS_SHOWN:
        yield f"  … {len(items) - DETAILS_SHOWN} more"
