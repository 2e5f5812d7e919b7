"""Speed-ups that a text claims: "18.1% throughput improvement", "up to 1.8x faster", "reduce TTFT by 20-30%".

Belongs here: numbers, what they are said of and in which direction. Does not: whose text it is (`changelog.notes`), whether the
claim is true. A number that nobody said of speed, latency or memory (coverage, accuracy, "100% compatible", eight GPUs) is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Metric = Literal["throughput", "ttft", "tpot", "e2e", "latency", "memory"]

MAX_GAINS = 8
"""Of one text."""
MAX_TEXT = 4_000
"""Characters of a text that are looked at."""
MAX_WORDS = 120
_MAX_PCT = 10_000.0
_NEAR = 80
"""Characters before a number, and behind it, in which the words that belong to it stand."""


@dataclass(frozen=True)
class Gain:
    """One claimed change, as a percentage of the metric itself; above 0 is better, below 0 worse, whatever the metric.

    "TTFT down by 20-30%" is 20 to 30; "1.8x throughput" is 80; "2x lower latency" is 50 (half is left).
    """

    metric: Metric | None
    """None: speed in general ("1.8x faster")."""
    low_pct: float | None
    """The end nearer to 0; None where only a bound is told ("up to 30%")."""
    high_pct: float
    """The end further from 0."""
    factor: float | None
    """The larger factor where the text tells factors ("1.8x"), else None."""
    of_part: bool
    """True where it is said of a kernel or a function, which is a part of the work, not of serving."""
    words: str
    """The text around the number, one line of at most MAX_WORDS characters."""

    @property
    def better(self) -> bool:
        """True for an improvement, False for a loss."""
        return self.high_pct > 0


def gains(text: str) -> tuple[Gain, ...]:
    """Return what *text* (one line) claims, in its order; at most MAX_GAINS. Never raises."""
    if _MAYBE.search(text, 0, MAX_TEXT) is None:
        return ()
    text = _RANGE_TILDE.sub("-", text[:MAX_TEXT].translate(_SPELLINGS)).replace("~", " ")
    numbers = list(_NUMBER.finditer(text))
    found: list[Gain] = []
    for index, number in enumerate(numbers):
        since = numbers[index - 1].end() if index else 0
        until = numbers[index + 1].start() if index + 1 < len(numbers) else len(text)
        gain = _gain(text, number, since, until)
        if gain is not None:
            found.append(gain)
    return tuple(found[:MAX_GAINS])


_MAYBE = re.compile(r"\d ?(?:%|[x\u00d7]|percent|times)", re.IGNORECASE)
"""Without it there is no number to look at, as in most texts."""
_SPELLINGS = str.maketrans(
    {"\u2013": "-", "\u2014": "-", "\u2212": "-", "\u00d7": "x", "\u223c": "~", "\uff5e": "~", "\u2248": "~"}
)
_RANGE_TILDE = re.compile(r"(?<=[\d%x]) ?~(?= ?\d)")
_NUMBER = re.compile(
    r"(?<![\w.,#/-])(?P<sign>[+-]?)(?P<low>\d{1,5}(?:\.\d{1,4})?) ?(?:%|x\b)?"
    r"(?: ?(?:-|to) ?(?P<high>\d{1,5}(?:\.\d{1,4})?))? ?(?P<unit>%|percent\b|x(?![\w.])|times\b)",
    re.IGNORECASE,
)
_METRICS: tuple[tuple[Metric, re.Pattern[str]], ...] = (
    ("ttft", re.compile(r"\bTTFT\b|\btime[ -]to[ -]first[ -]token\b", re.IGNORECASE)),
    ("tpot", re.compile(r"\b(?:TPOT|ITL)\b|\btime[ -]per[ -]output[ -]token\b|\binter[ -]token latency\b", re.IGNORECASE)),
    (
        "throughput",
        re.compile(
            r"\bthroughputs?\b|\b(?:TPS|QPS|RPS)\b|\b(?:tokens?|toks?|req|requests?)(?:/| per )(?:s|sec|second|GPU)\b",
            re.IGNORECASE,
        ),
    ),
    ("e2e", re.compile(r"\bE2EL?\b|\bend[ -]to[ -]end\b", re.IGNORECASE)),
    ("latency", re.compile(r"\blatenc(?:y|ies)\b", re.IGNORECASE)),
    ("memory", re.compile(r"\bmemory\b|\bVRAM\b|\bmemory footprint\b", re.IGNORECASE)),
)
"""In the order in which they are asked: "E2E throughput" is throughput, "TTFT latency" is TTFT."""
_SPEED = re.compile(
    r"\b(?:fast(?:er)?|slow(?:er|down)?|speed(?:s|ed|ing)?[ -]?ups?|speed|quicker|performance|perf)\b", re.IGNORECASE
)
_OTHER = re.compile(
    r"\b(?:accura\w*|coverage|compatib\w*|accept\w*|hit[ -]rates?|utili[sz]ation|sparsity|recall|precision|confidence|score"
    r"|pass(?:ed|es)?|probabilit\w*|error|loss|tests?|experts?|layers?|lines|commits|contributors)\b",
    re.IGNORECASE,
)
"""What a percentage may be of besides speed."""
_ELSEWHERE = re.compile(
    r"\b(?:start-?up|load(?:s|ed|ing)?|compil\w*|build(?:s|ing)?|install\w*|download\w*|warm-?up|import|CI|cold starts?)\b",
    re.IGNORECASE,
)
"""Speed of something that is over before the first request."""
_PARTLY = re.compile(r"\b(?:kernels?|functions?|methods?|operators?|ops?|micro-?benchmarks?|geomean|GEMMs?)\b", re.IGNORECASE)
_LESS = re.compile(
    r"\b(?:reduc\w*|lower\w*|decreas\w*|cut(?:s|ting)?|shorten\w*|less|fewer|drop\w*|down|sav(?:e|es|ed|ing|ings)|shrink\w*|minus)\b",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:increas\w*|high(?:er)?|more|ris(?:e|es|ing)|grow\w*|(?<!speed )(?<!speeds )(?<!sped )up(?! to)|larger|longer)\b",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"\b(?:improv\w*|fast(?:er)?|speed(?:s|ed|ing)?[ -]?ups?|boost\w*|gains?|better|quicker|optimi[sz]\w*|accelerat\w*)\b",
    re.IGNORECASE,
)
_BAD = re.compile(r"\b(?:regress\w*|slow(?:er|down|s)?|wors\w*|degrad\w*|penalt\w*|losses|losing)\b", re.IGNORECASE)
_MENDS = re.compile(
    r"\b(?:fix\w*|resolv\w*|recover\w*|avoid\w*|prevent\w*|mitigat\w*|eliminat\w*|revert\w*|address\w*)\b", re.IGNORECASE
)
_BOUND = re.compile(r"(?:\bup to|\bas much as|\bat most|\bunder|\bless than|<)\s*$", re.IGNORECASE)
_SAID_BEFORE = re.compile(
    r"(?:\bby|\bof|\bto|=)\s*(?:about |around |up to |over |nearly |as much as |more than )?$", re.IGNORECASE
)
_COUNTED = re.compile(r"\s*(?:[A-Z]{1,4}\d|GPUs?\b|nodes?\b|NVIDIA\b|AMD\b|Hopper\b|Blackwell\b|x\s*\d|\d)")
"""Behind "8x": things that are counted."""
_PART_END = re.compile(r"[,;:()]| and | with | from | on | for | when | via | while | without | vs\.? |\. ")
_BEFORE_END = re.compile(r"[,;:()\]]| and | while | without | vs\.? |\. ")
_SENTENCE_START = re.compile(r"[;]|\. |\(#|#\d")


def _gain(text: str, number: re.Match[str], since: int, until: int) -> Gain | None:
    factors = number["unit"].lower() in ("x", "times")
    behind, before = (
        text[number.end() : min(until, number.end() + _NEAR)],
        text[max(since, number.start() - _NEAR) : number.start()],
    )
    if (factors and _COUNTED.match(behind)) or (not factors and re.match(r"\s*of\b", behind)):
        return None
    after = _PART_END.split(behind, maxsplit=1)[0]
    metric, part = _said_of(_last_part(before), after)
    if part is None:
        return None
    sign = _direction(metric, f"{_sentence(text, number.start())} | {after}", part, number["sign"])
    ends = sorted((_percent(value, factors, metric, sign) for value in (number["low"], number["high"] or number["low"])), key=abs)
    if not 0 < abs(ends[1]) <= _MAX_PCT:
        return None
    return Gain(
        metric=metric,
        low_pct=None if _BOUND.search(before) else ends[0],
        high_pct=ends[1],
        factor=float(number["high"] or number["low"]) if factors else None,
        of_part=_PARTLY.search(part) is not None,
        words=_around(text, number),
    )


def _said_of(before: str, after: str) -> tuple[Metric | None, str | None]:
    """Return the metric and the part of the text that names it; (None, None) where the number is said of nothing of ours.

    "by 20%" belongs to what stands before it, "20% lower TPOT" to what stands behind it.
    """
    parts = (before, after) if _SAID_BEFORE.search(before) else (after, before)
    for part, other in zip(parts, reversed(parts), strict=True):
        metric, speed = _metric(part), _SPEED.search(part) is not None
        if _is_of_another(part, from_end=part is before):
            return None, None
        if metric is not None or speed:
            metric = metric or _metric(other)
            elsewhere = metric is None and _ELSEWHERE.search(f"{before} {after}")
            return (None, None) if elsewhere else (metric, part)
    return None, None


def _is_of_another(part: str, *, from_end: bool) -> bool:
    """Return whether what stands nearest to the number is something that is neither speed nor memory."""
    others = [match.start() for match in _OTHER.finditer(part)]
    ours = [match.start() for _, pattern in (*_METRICS, (None, _SPEED)) for match in pattern.finditer(part)]
    if not others or not ours:
        return bool(others)
    return max(others) > max(ours) if from_end else min(others) < min(ours)


def _metric(part: str) -> Metric | None:
    return next((name for name, pattern in _METRICS if pattern.search(part)), None)


def _last_part(before: str) -> str:
    """Return what stands before the number since the last comma or bracket that is not right in front of it."""
    cut = 0
    for match in _BEFORE_END.finditer(before):
        if before[match.end() :].strip(" ~+-(:"):
            cut = match.end()
    return before[cut:]


def _sentence(text: str, end: int) -> str:
    head = text[max(0, end - 300) : end]
    return _SENTENCE_START.split(head)[-1]


def _direction(metric: Metric | None, around: str, part: str, sign: str) -> int:
    """Return 1 for better, -1 for worse. What is said nearest rules; a bare number is praise, as release notes are."""
    smaller_is_better = metric in ("ttft", "tpot", "e2e", "latency", "memory")
    before, _, after = around.rpartition(" | ")
    if _BAD.search(part) or _BAD.search(after):
        return 1 if _MENDS.search(before) else -1
    if _GOOD.search(part) or _GOOD.search(after):
        return 1
    own = _own_clauses(before, metric)
    for words in (after, part, sign, own[-_NEAR:], own):
        if words in ("+", "-"):
            if sign == "-" or metric != "e2e":
                return 1 if (sign == "-") == smaller_is_better else -1
            continue
        less, more = _LESS.search(words), _MORE.search(words)
        if bool(less) != bool(more):
            return 1 if bool(less) == smaller_is_better else -1
        if _GOOD.search(words):
            return 1
    return 1


def _own_clauses(before: str, metric: Metric | None) -> str:
    """Return the end of a sentence that speaks of a number behind it: clauses of the same metric, without a number of their own.

    In "reduces overhead, 1.3x throughput" nothing says that throughput is less.
    """
    start = len(before)
    ends = [0, *(match.end() for match in _BEFORE_END.finditer(before)), len(before)]
    for since, until in reversed(list(pairwise(ends))):
        clause = before[since:until]
        if _NUMBER.search(clause) or _metric(clause) != metric:
            break
        start = since
    return before[start:]


def _percent(value: str, factors: bool, metric: Metric | None, sign: int) -> float:
    """Return a number of the text as a percentage of its metric."""
    number = float(value)
    if not factors:
        return sign * number
    if number <= 0:
        return 0.0
    left = metric in ("ttft", "tpot", "e2e", "latency", "memory") and sign > 0
    return sign * round(100 * (1 - 1 / number) if left and number >= 1 else 100 * (number - 1), 4)


def _around(text: str, number: re.Match[str]) -> str:
    start = max(0, number.start() - MAX_WORDS // 2)
    words = text[start : start + MAX_WORDS]
    return " ".join(words.split())
