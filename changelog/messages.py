"""What the body of a commit message says of other commits: which one it takes back, which one it was picked from.

A squashed pull request carries the messages of all its commits, so a line counts only where it can be about the whole: the first
line or the message of a revert, the last line before the trailers of a pick. Belongs here: those lines. Does not: the subject
(`changelog.subjects`, `changelog.reverting`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from changelog.reverting import act_of

MAX_BODY = 20_000
"""Characters of a message that are looked at (of 20,000 real ones the longest has 17,102)."""

_REVERTS = re.compile(r"^This reverts commit ([0-9a-f]{7,64})\b", re.M)
_REVERTS_PR = re.compile(
    r"^Reverts (?:([\w.-]{1,60}/[\w.-]{1,100})?#|https://github\.com/([\w.-]{1,60}/[\w.-]{1,100})/pull/)(\d{1,9})\b", re.M
)
_PICKED = re.compile(r"^\(cherry picked from commit ([0-9a-f]{7,64})\)$", re.M)
_PICKED_PR = re.compile(r"\bcherry[ -]?pick(?:ed|s|ing)?(?: of| from)?[: ]{0,3}\[?\(?(?:PR ?)?#(\d{1,9})\b", re.I)
_ANY_PR = re.compile(r"#\d{1,9}\b")
_TRAILER = re.compile(r"[A-Z][A-Za-z-]{1,40}: .*")


class Told(NamedTuple):
    """What a message tells: hashes as they stand there, numbers of pull requests; None where it does not tell."""

    reverts: str | None = None
    reverts_pr: int | None = None
    picked_from: str | None = None
    picked_pr: int | None = None


NOTHING = Told()


def told_by(subject: str, body: str, repositories: Iterable[str]) -> Told:
    """Return what the *body* of a message tells; a number of another repository than *repositories* counts for nothing."""
    text = body[:MAX_BODY]
    reverting, picking = "everts " in text, "herry" in text
    if not (reverting or picking):
        return NOTHING
    text = text.replace("\r\n", "\n").strip()
    return Told(
        *(_reverts(subject, text, repositories) if reverting else (None, None)),
        *(_picked(text) if picking else (None, None)),
    )


def picked_request(subject: str) -> int | None:
    """Return the pull request that a subject says its change was picked from: `Cherry-pick from (#1) title (#2)` → 1."""
    return _request_picked(re.sub(r"\(#\d{1,9}\)\s*$", "", subject[:MAX_BODY]))


def _request_picked(text: str) -> int | None:
    """Return the one pull request of a line that says that it was picked from it."""
    found = _PICKED_PR.search(text) if "herry" in text else None
    return int(found[1]) if found and len(_ANY_PR.findall(text)) == 1 else None


def _reverts(subject: str, text: str, repositories: Iterable[str]) -> tuple[str | None, int | None]:
    whole = text if act_of(subject) is not None else text.split("\n", 1)[0]
    commit, request = _REVERTS.search(whole), _REVERTS_PR.search(whole)
    own = {name.lower() for name in repositories}
    named = request and (request[1] or request[2])
    number = int(request[3]) if request and (not named or named.lower() in own) else None
    return commit[1] if commit else None, number or None


def _picked(text: str) -> tuple[str | None, int | None]:
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or _TRAILER.fullmatch(lines[-1].strip())):
        lines.pop()
    commit = _PICKED.fullmatch(lines[-1].strip()) if lines and len(_PICKED.findall(text)) == 1 else None
    first = _request_picked(lines[0]) if lines else None
    return commit[1] if commit else None, first
