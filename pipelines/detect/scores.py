"""Detection of changed scores: every evaluation against the previous one of its setup, from `evals` to `score_diffs`.

A score is a share of right answers, so its noise is known: at least that of a binomial share. Repeats of one build show how much
more there is (design effect), and widen it. A change is flagged from half a point on where chance gives it once in a hundred
times or less and Benjamini-Hochberg at 10 % over all comparisons of the night (UTC day) holds. Nothing is said of an engine that
running one image again could give: what differs is listed as for curves, the harness included, and other evaluations of either
build are heard (`score_witnesses`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import polars as pl

from changelog.sightings import NO_TAGS, TagLog
from pipelines.detect.changes import ENVIRONMENT, UNKNOWN, ChangeSet
from pipelines.detect.decision import FALSE_DISCOVERY_RATE, INTERVAL, benjamini_hochberg
from pipelines.detect.evaluations import Evaluation, changed, evaluate, pairs
from pipelines.detect.lifecycle import AS_FAR
from pipelines.detect.proportions import Share, interval, least, p_value, share, standard_error
from pipelines.detect.score_links import linked, with_scores
from pipelines.detect.score_witnesses import Fate, heard
from pipelines.detect.states import SUSPECTED
from warehouse.canonical import content_id
from warehouse.schemas import SCORE_DIFFS

__all__ = ["detect_scores", "linked", "with_scores"]

GATE = 0.005
"""Least change that is told, share of 1: half a point."""
ALPHA = 0.01
"""Largest p of one comparison that is told, however few there are in the night."""
PRIOR_REPEATS = 5
"""Repeats that the wider group (in the end: chance alone) counts as."""
WILDEST = 9.0
"""Largest squared z that a repeat counts with: one broken run shall not blind us to the rest."""
NO_SHARES = frozenset(
    {
        "perplexity",
        "word_perplexity",
        "byte_perplexity",
        "bits_per_byte",
        "brier_score",
        "likelihood_diff",
        "pct_stereotype",
        "bleu",
        "chrf",
        "ter",
        "mse",
        "mae",
        "wer",
        "cer",
    }
)
"""Metrics, without their filter, that are no share of right answers even where they lie between 0 and 1."""
_NULLS: dict[str, Any] = dict.fromkeys(SCORE_DIFFS.schema.names())
INSUFFICIENT, UNCHANGED = "insufficient", "unchanged"
POINTS = 100


@dataclass(frozen=True)
class Compared:
    """Two evaluations of one setup, what differs, and their shares (None where the questions behind them are not known)."""

    old: Evaluation
    new: Evaluation
    changes: ChangeSet
    shares: tuple[Share, Share] | None

    @property
    def size(self) -> float:
        """Change of the score, positive = better."""
        return self.new.score - self.old.score

    @property
    def night(self) -> str:
        return self.new.seen.night

    @property
    def diff_id(self) -> str:
        return content_id("score-diff", *map(_plain, (*self.old.key, *self.new.key)))


@dataclass(frozen=True)
class Tested:
    """A comparison with its p; `design` is the design effect that both sides were widened by, of `repeats` repeats."""

    compared: Compared
    shares: tuple[Share, Share]
    design: float
    repeats: int
    p_value: float
    method: str
    q_value: float = 1.0

    @property
    def gated(self) -> bool:
        return abs(self.compared.size) >= GATE and self.p_value <= ALPHA

    def exceeds(self, score: float) -> bool:
        """Say whether a repeat of the later evaluation differs from the earlier one beyond chance."""
        old, new = self.shares
        return p_value(old, Share(score, new.samples))[0] <= ALPHA

    @property
    def flagged(self) -> bool:
        return self.gated and self.q_value <= FALSE_DISCOVERY_RATE


def detect_scores(evals: pl.DataFrame, tags: TagLog = NO_TAGS) -> pl.DataFrame:
    """Return rows of `score_diffs` for *evals* (`evaluations.COLUMNS`, any order); the same rows give the same bytes."""
    histories = evaluate(evals, tags)
    compared = [(pair, history) for history in histories for pair in _compared(history)]
    designs = Designs.of(pair for pair, _history in compared)
    tested = control([judge(pair, designs) for pair, _history in compared])
    restless = _restless(one for one in tested if one is not None)
    rows = [_row(pair, one, restless, history) for (pair, history), one in zip(compared, tested, strict=True)]
    return pl.DataFrame(rows, schema=SCORE_DIFFS.schema).sort(*SCORE_DIFFS.order)


def _compared(history: list[Evaluation]) -> Iterator[Compared]:
    for old, new in pairs(history):
        before, after = _share(old), _share(new)
        yield Compared(old, new, changed(old, new), (before, after) if before and after else None)


def _share(one: Evaluation) -> Share | None:
    return share(one.score, one.stderr, one.asked["samples"]) if is_share(one) else None


def is_share(one: Evaluation) -> bool:
    """Say whether a score can be a share of right answers."""
    return 0 <= one.score <= 1 and one.setup["metric"].split(",", 1)[0].strip() not in NO_SHARES


class Designs:
    """How much wider than chance alone repeats of one build are, by stack and task, shrunk to the task, shrunk to 1.

    A night is judged by the repeats up to it, so that later ones do not move what was said.
    """

    def __init__(self, squares: dict[tuple[Any, ...], list[tuple[str, float]]]) -> None:
        ordered = {group: sorted(found) for group, found in squares.items()}
        self._nights = {group: [night for night, _square in found] for group, found in ordered.items()}
        self._sums = {group: list(accumulate(square for _night, square in found)) for group, found in ordered.items()}

    @classmethod
    def of(cls, compared: Iterable[Compared]) -> Designs:
        """Return what the repeats among *compared* tell: their squared z, whose mean is 1 by chance alone."""
        squares: dict[tuple[Any, ...], list[tuple[str, float]]] = defaultdict(list)
        for pair in compared:
            if pair.shares and pair.changes.is_repeat and (error := standard_error(*pair.shares)) > 0:
                for group in _groups(pair):
                    squares[group].append((pair.night, min(WILDEST, (pair.size / error) ** 2)))
        return cls(squares)

    def effect(self, pair: Compared) -> tuple[float, int]:
        """Return the design effect (at least 1) for a comparison, and how many repeats of its task are behind it."""
        narrow, wide = _groups(pair)
        (of_wide, count), (of_narrow, own) = (self._until(group, pair.night) for group in (wide, narrow))
        of_task = max(1.0, (of_wide + PRIOR_REPEATS) / (count + PRIOR_REPEATS))
        return max(1.0, (of_narrow + PRIOR_REPEATS * of_task) / (own + PRIOR_REPEATS)), count

    def _until(self, group: tuple[Any, ...], night: str) -> tuple[float, int]:
        """Return the sum of a group's squares up to a night, and how many there are."""
        count = bisect_right(self._nights.get(group, []), night)
        return (self._sums[group][count - 1] if count else 0.0), count


def _groups(pair: Compared) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Narrow and wide: hardware, engine, task and metric; task and metric."""
    task = pair.new.setup["task"], pair.new.setup["metric"]
    context = pair.new.seen.context
    return (context["hardware"], context["engine"], *task), task


def judge(pair: Compared, designs: Designs) -> Tested | None:
    """Return the comparison with its p, or None where the questions behind a score are not known."""
    if pair.shares is None:
        return None
    design, repeats = designs.effect(pair)
    old, new = (side.widened(design) for side in pair.shares)
    p, method = p_value(old, new)
    return Tested(pair, (old, new), design, repeats, p, method)


def control(tested: list[Tested | None]) -> list[Tested | None]:
    """Return the comparisons with q values: Benjamini-Hochberg within each night; what could not be tested does not count."""
    nights: dict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(tested):
        if one is not None:
            nights[one.compared.night].append(index)
    controlled = list(tested)
    for members in nights.values():
        found = [(index, one) for index in members if (one := tested[index]) is not None]
        q_values = benjamini_hochberg([one.p_value for _index, one in found], len(found))
        for (index, one), q_value in zip(found, q_values, strict=True):
            controlled[index] = replace(one, q_value=q_value)
    return controlled


def _restless(tested: Iterable[Tested]) -> dict[tuple[Any, ...], float]:
    """Return how far runs of one build have moved a setup beyond chance."""
    furthest: dict[tuple[Any, ...], float] = defaultdict(float)
    for one in tested:
        if one.gated and one.compared.changes.is_repeat:
            setup = tuple(one.compared.new.setup.values())
            furthest[setup] = max(furthest[setup], abs(one.compared.size))
    return furthest


def fate(one: Tested, restless: dict[tuple[Any, ...], float], history: list[Evaluation]) -> Fate:
    """Return what other evaluations of the setup make of a flagged change."""
    pair = one.compared
    found = heard(pair.old, pair.new, pair.changes.attribution, history, one.exceeds)
    moved = restless.get(tuple(pair.new.setup.values()), 0.0)
    if found.status == SUSPECTED and found.attribution != ENVIRONMENT and moved >= AS_FAR * abs(pair.size):
        return Fate(SUSPECTED, UNKNOWN, "seen once, and runs of one build have moved this score as far")
    return found


def _row(pair: Compared, one: Tested | None, restless: dict[tuple[Any, ...], float], history: list[Evaluation]) -> dict[str, Any]:
    if one is None:
        judged: dict[str, Any] = {"status": INSUFFICIENT, "reason": _untested(pair), "flagged": False}
    elif not one.flagged:
        judged = {**_numbers(one), "status": UNCHANGED, "reason": _unflagged(one), "flagged": False}
    else:
        found = fate(one, restless, history)
        judged = {
            **_numbers(one),
            "status": found.status,
            "attribution": found.attribution,
            "reason": found.reason,
            "flagged": True,
            "direction": "improvement" if pair.size > 0 else "regression",
        }
    return {**_NULLS, **_sides(pair), **judged}


def _sides(pair: Compared) -> dict[str, Any]:
    old, new = pair.old, pair.new
    return {
        "score_diff_id": pair.diff_id,
        "night": pair.night,
        **new.seen.context,
        **new.setup,
        **_side("from", old),
        **_side("to", new),
        "gap_days": (new.seen.measured_at - old.seen.measured_at).total_seconds() / 86400,
        "size_points": pair.size * POINTS if is_share(old) and is_share(new) else None,
        "change_set": list(pair.changes.names),
        "change_detail": list(pair.changes.details),
        "same_build": old.seen.build_id == new.seen.build_id and old.seen.stood.moves == new.seen.stood.moves,
    }


def _side(prefix: str, one: Evaluation) -> dict[str, Any]:
    return {
        **one.seen.as_side(prefix),
        f"{prefix}_score": one.score,
        f"{prefix}_score_stderr": one.stderr,
        f"{prefix}_records": one.records,
        **{f"{prefix}_{name}": one.asked[name] for name in ("samples", "few_shot", "task_version", "harness_version")},
    }


def _numbers(one: Tested) -> dict[str, Any]:
    low, high = interval(*one.shares, INTERVAL)
    return {
        "interval_low_points": low * POINTS,
        "interval_high_points": high * POINTS,
        "least_points": least(*one.shares, ALPHA) * POINTS,
        "method": one.method,
        "design_effect": one.design,
        "repeats": one.repeats,
        "p_value": one.p_value,
        "q_value": one.q_value,
    }


def _untested(pair: Compared) -> str:
    if not (is_share(pair.old) and is_share(pair.new)):
        return "insufficient: not a share of right answers"
    return "insufficient: samples unknown"


def _unflagged(one: Tested) -> str:
    """Say why nothing is told, with the size that would be."""
    if one.compared.size == 0:
        return "the same score"
    points = f"{one.compared.size * POINTS:+.1f} points"
    if one.p_value > ALPHA:
        told = f"{least(*one.shares, ALPHA) * POINTS:.1f}"
        return f"{points}: chance alone gives as much (p = {one.p_value:.2g}); it takes about {told} points to tell here"
    if abs(one.compared.size) < GATE:
        return f"{points}: beyond chance, but below {GATE * POINTS:g} points"
    return f"{points}: p = {one.p_value:.2g} is not small enough among all comparisons of the night (q = {one.q_value:.2g})"


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else str(value)
