"""The invented history of one upstream project, read from `data/<project>.toml`.

Belongs here: commits and releases as values. Does not: git (`upstream`), the wording of notes (`releases`).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

_LINE = re.compile(r"(?P<month>\d\d)-(?P<day>\d\d) (?P<subject>.+) :: (?P<paths>.+)")
_PR = re.compile(r"\(#(\d+)\)$")


@dataclass(frozen=True)
class Commit:
    """One commit: subject, pull request, changed paths and the time at which it was written and landed."""

    subject: str
    pr: int
    paths: tuple[str, ...]
    at: datetime


@dataclass(frozen=True)
class Release:
    """One release: cut behind main-line pull request `after`, with later `picks`; on `branch`, or on main where that is empty."""

    version: str
    tag: str
    annotated: bool
    branch: str
    after: int
    picks: tuple[int, ...]
    at: datetime
    highlights: tuple[str, ...]
    prerelease: bool
    bump: Commit | None


@dataclass(frozen=True)
class History:
    """Main-line commits in order, and releases in order."""

    project: str
    note_style: str
    commits: tuple[Commit, ...]
    releases: tuple[Release, ...]

    def commit(self, pr: int) -> Commit:
        """Return the main-line commit of pull request *pr*."""
        return next(commit for commit in self.commits if commit.pr == pr)


def read_history(project: str) -> History:
    """Return the invented history of *project*: vllm, sglang or trtllm."""
    table = tomllib.loads(files("pipelines.demo").joinpath(f"data/{project}.toml").read_text("utf-8"))
    return History(
        project=table["project"],
        note_style=table["note_style"],
        commits=_commits(table["commits"]),
        releases=tuple(_release(entry) for entry in table["release"]),
    )


def _date(month_day: str, hour: int) -> datetime:
    month, day = (int(part) for part in month_day.split("-"))
    return datetime(2025 if month == 12 else 2026, month, day, hour, 20, tzinfo=UTC)


def pr_of(subject: str) -> int:
    """Return the number of the pull request that *subject* ends with."""
    match = _PR.search(subject)
    if match is None:
        raise ValueError(f"sample commit without a pull request: {subject!r}")
    return int(match[1])


def _commits(text: str) -> tuple[Commit, ...]:
    commits: list[Commit] = []
    for line in text.strip().splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"sample commit is not `month-day subject :: paths`: {line!r}")
        at = _date(f"{match['month']}-{match['day']}", 9)
        if commits and commits[-1].at >= at:
            at = commits[-1].at + timedelta(minutes=95)
        commits.append(Commit(match["subject"], pr_of(match["subject"]), tuple(match["paths"].split()), at))
    return tuple(commits)


def _release(entry: dict[str, Any]) -> Release:
    at = _date(entry["date"], 18)
    bump = None
    if "bump" in entry:
        bump = Commit(entry["bump"], pr_of(entry["bump"]), (entry["bump_path"],), at - timedelta(hours=1))
    return Release(
        version=entry["version"],
        tag=entry["tag"],
        annotated=entry["annotated"],
        branch=entry["branch"],
        after=entry["after"],
        picks=tuple(entry["picks"]),
        at=at,
        highlights=tuple(entry["highlights"]),
        prerelease=entry.get("prerelease", False),
        bump=bump,
    )
