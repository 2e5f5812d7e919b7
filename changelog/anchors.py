"""Where one end of a range is pinned down: the commit, with the words of how it is known.

Belongs here: the value and its words. Does not: finding it (`changelog.versions`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from changelog.history import History
from warehouse.clock import iso

CONFIDENCES = ("none", "low", "medium", "high")


@dataclass(frozen=True)
class Anchor:
    """One end of a range. `commit` is set only where the history holds it; `date` is its landing or the date that was used.

    `confidence` is high, medium, low or none; none means that nothing is known and the range is open at this end.
    """

    text: str
    commit: str | None
    date: datetime | None
    version: str | None
    how: str
    confidence: str
    wanted: datetime | None = None
    """The date that the commit was chosen by, where it was chosen by date."""

    @property
    def known(self) -> bool:
        """Say whether this end is pinned to a commit or a date."""
        return self.commit is not None or self.date is not None

    def within(self, words: str, limit: str = "high") -> Anchor:
        """Return the same end with *words* set before how it is known, and a confidence of at most *limit*."""
        lower = min(self.confidence, limit, key=CONFIDENCES.index)
        return replace(self, how=f"{words}; {self.how}", confidence=lower)


def unknown(text: str, why: str, version: str | None = None) -> Anchor:
    """Return an end that nothing pins down, and why."""
    return Anchor(text, None, None, version, why, "none")


def at_commit(text: str, history: History, number: int, how: str, confidence: str, version: str | None = None) -> Anchor:
    """Return an end at a commit of the history."""
    return Anchor(text, history.hashes[number], history.dates[number], version, how, confidence)


def said(when: datetime) -> str:
    """Return an instant as it stands in a sentence: to the second."""
    return iso(when.replace(microsecond=0)) or ""


def sentences(*phrases: str) -> str:
    """Return each phrase as a sentence that ends in exactly one full stop; a phrase without words is left out."""
    ended = [phrase.strip().rstrip(" .,;:") for phrase in phrases]
    return " ".join(f"{phrase}." for phrase in ended if phrase)


def at_date(text: str, history: History, when: datetime, how: str, confidence: str, version: str | None = None) -> Anchor:
    """Return an end at the last main commit that landed at *when* or before; without one the date alone stands."""
    number = history.last_before(when)
    if number is None:
        why = "no known commit is that old" if len(history) else "no commit is known"
        return Anchor(text, None, when, version, f"{how} ({why})", confidence, when)
    where = f"last main commit not after it: {history.hashes[number][:9]} of {said(history.dates[number])}"
    return Anchor(text, history.hashes[number], history.dates[number], version, f"{how}; {where}", confidence, when)
