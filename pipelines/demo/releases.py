"""Release notes of the sample's upstream projects, in the shape of GitHub's list of releases.

Belongs here: the notes' wording in three styles. Does not: which releases there are (`history`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipelines.demo.history import Commit, History, Release
from warehouse.clock import iso

LABEL = "GENERATED SAMPLE: this release does not exist."


def release_list(history: History) -> list[dict[str, Any]]:
    """Return the releases of *history*, newest first."""
    return [_entry(history, number) for number in reversed(range(len(history.releases)))]


def _entry(history: History, number: int) -> dict[str, Any]:
    release = history.releases[number]
    return {
        "tag_name": release.tag,
        "name": f"{release.tag} (generated sample)",
        "published_at": iso(release.at + timedelta(hours=5)),
        "prerelease": release.prerelease,
        "draft": False,
        "html_url": f"https://example.invalid/sample-fleet/{history.project}/releases/tag/{release.tag}",
        "body": "\n".join([LABEL, "", *_STYLES[history.note_style](history, number)]) + "\n",
    }


def _carried(history: History, number: int) -> list[Commit]:
    """Main-line commits between the branch points of this release and the one before it, but for what that one picked; then
    this release's picks."""
    places = {commit.pr: place for place, commit in enumerate(history.commits)}
    release = history.releases[number]
    before = history.releases[number - 1] if number else None
    start = places[before.after] + 1 if before else 0
    picked_before = before.picks if before else ()
    line = [commit for commit in history.commits[start : places[release.after] + 1] if commit.pr not in picked_before]
    return line + [history.commit(pr) for pr in release.picks]


def _sections(history: History, number: int) -> list[str]:
    release, carried = history.releases[number], _carried(history, number)
    return ["## Highlights", "", f"This sample release has {len(carried)} commits from 1 contributor.", "", *_bullets(release)]


def _highlights(history: History, number: int) -> list[str]:
    return ["## Highlights", "", "- **Feature**", *(f"  {bullet}" for bullet in _bullets(history.releases[number]))]


def _changelog(history: History, number: int) -> list[str]:
    release = history.releases[number]
    lines = [f"* {commit.subject.rsplit(' (#', 1)[0]} by @sample-author in #{commit.pr}" for commit in _carried(history, number)]
    compare = []
    if number:
        compare = ["", f"**Full Changelog**: {history.releases[number - 1].tag}...{release.tag}"]
    return ["## Highlights", "", *_bullets(release), "", "## What's Changed", "", *lines, *compare]


def _bullets(release: Release) -> list[str]:
    return [f"- {text}" for text in release.highlights]


_STYLES = {"sections": _sections, "highlights": _highlights, "changelog": _changelog}
