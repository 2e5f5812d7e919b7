"""One end of a range from what a person or a record names it by: version, tag, commit, image reference or date.

Order of evidence for a version: git tag, measured anchor's commit, anchor's branch point, version table, a main commit that
says it bumps the version, upload date. Whatever is used is said in words; what nothing pins down stays unknown.

Belongs here: that order, and what each spelling means. Does not: images (`changelog.image_ends`), what lies between two ends
(`changelog.ranges`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import polars as pl
from packaging.version import Version

from changelog.anchors import CONFIDENCES, Anchor, at_commit, at_date, said, unknown
from changelog.image_ends import resolve_image
from changelog.projects import normal_version
from changelog.upstream import Upstream
from warehouse.clock import parse_instant
from warehouse.errors import InputError

MAX_END = 600
MAX_NAMED = 3
"""Other commits of a version that are named."""
_NEVER = datetime.min.replace(tzinfo=UTC)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
_COMPACT_DATE = re.compile(r"20\d{6}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_DATED = ("anchor", "upload", "release-note", "tag", "version-table")
_DATED_BY = {"release-note": "release note", "tag": "tag", "version-table": "version table"}
Row = dict[str, Any]


def resolve(upstream: Upstream, text: str) -> Anchor:
    """Return where *text* lies in the project's history.

    A name that nothing explains gives an unknown end, not an error; InputError only for a malformed date or an endless text.
    """
    wanted = text.strip()
    if not wanted or len(wanted) > MAX_END:
        raise InputError(f"range end {wanted[:60]!r}: give a version, tag, commit, image reference or date")
    if _DATE.fullmatch(wanted):
        return _resolve_date(upstream, wanted)
    if "/" in wanted or ":" in wanted or "@" in wanted:
        return resolve_image(upstream, wanted, resolve_version)
    return _resolve_commit(upstream, wanted) or resolve_version(upstream, wanted)


def _resolve_date(upstream: Upstream, text: str) -> Anchor:
    when = parse_instant(text, "range end")
    return at_date(text, upstream.history, when, f"date {said(when)}", "medium")


def _resolve_commit(upstream: Upstream, text: str) -> Anchor | None:
    if _COMMIT.fullmatch(text.lower()) is None:
        return None
    number = upstream.history.number(text.lower())
    if number is not None:
        return at_commit(text, upstream.history, number, f"commit {upstream.history.hashes[number][:9]}", "high")
    if _COMPACT_DATE.fullmatch(text):
        return _resolve_date(upstream, f"{text[:4]}-{text[4:6]}-{text[6:]}")
    if text.isdigit():
        return None
    return unknown(text, f"no commit {text[:12]} (or more than one) is in the known history of {upstream.project.title}")


def resolve_version(upstream: Upstream, text: str) -> Anchor:
    """Return where a version or tag lies; an unknown end where nothing tells."""
    tagged = upstream.project.version_of_tag(text) or normal_version(text)
    if tagged is None:
        return unknown(text, f"{text[:60]!r} is neither a version nor a tag that is known")
    built_from = _commit_of_version(upstream, text, tagged)
    if built_from is not None:
        return built_from
    tagged = _as_known(upstream, tagged)
    rows = upstream.releases.filter(pl.col("version") == tagged).to_dicts()
    steps: tuple[Callable[[], Anchor | None], ...] = (
        lambda: _by_commit(upstream, text, tagged, rows, "tag", "commit", "git tag of", "high"),
        lambda: _by_commit(upstream, text, tagged, rows, "anchor", "commit", "measured release commit of", "high"),
        lambda: _by_commit(
            upstream, text, tagged, rows, "anchor", "branch_point", "branch point of the release branch of", "medium"
        ),
        lambda: _by_commit(upstream, text, tagged, rows, "version-table", "commit", "version table's commit of", "high"),
        lambda: _by_bump(upstream, text, tagged),
        lambda: _by_date(upstream, text, tagged, rows),
    )
    found = next((anchor for anchor in (step() for step in steps) if anchor is not None), None)
    return found or unknown(text, _why_unknown(upstream, tagged, rows), tagged)


def _as_known(upstream: Upstream, version: str) -> str:
    """Return *version* as the known releases spell it: 0.26 is 0.26.0 (PEP 440 counts them equal)."""
    known: list[str] = upstream.releases["version"].unique().sort().to_list()
    if version in known:
        return version
    meant = Version(version)
    return next((one for one in known if normal_version(one) and Version(one) == meant), version)


def _commit_of_version(upstream: Upstream, text: str, version: str) -> Anchor | None:
    """Read the commit in a development version: 0.11.1rc3.dev12+g439368496."""
    local = re.match(r"g?([0-9a-f]{7,40})(?:\.|$)", Version(version).local or "")
    number = upstream.history.number(local[1]) if local else None
    if number is None:
        return None
    how = f"commit in the version: {upstream.history.hashes[number][:9]}"
    return at_commit(text, upstream.history, number, how, "high", version)


def _by_commit(
    upstream: Upstream,
    text: str,
    version: str,
    rows: Iterable[Row],
    evidence: str,
    column: str,
    words: str,
    confidence: str,
) -> Anchor | None:
    told = [row for row in rows if row["evidence"] == evidence and row[column]]
    placed = [(number, row) for row in told if (number := upstream.history.number(row[column])) is not None]
    if not placed:
        return None
    number, row = max(placed, key=lambda entry: _latest(entry[1], column))
    how = f"{words} {version}: {upstream.history.hashes[number][:9]}{_what_is_missing(row, column)}"
    others = sorted({other[column] for other in told if not _are_one(other[column], row[column])})
    if not others:
        return at_commit(text, upstream.history, number, how, confidence, version)
    also = ", ".join(other[:9] for other in others[:MAX_NAMED])
    moved = f"{how}; also said to be {also}: it moved, or two repositories differ, and what was said last is taken"
    return at_commit(text, upstream.history, number, moved, _lower(confidence), version)


def _are_one(commit: str, other: str) -> bool:
    """Say whether two hashes, which may be abbreviated, name one commit."""
    return commit.startswith(other) or other.startswith(commit)


def _latest(row: Row, column: str) -> tuple[datetime, datetime, str]:
    """Order statements about one version: the last that we learned, then the last that was made."""
    return row["recorded_at"], row["published_at"] or _NEVER, row[column]


def _lower(confidence: str) -> str:
    return CONFIDENCES[max(0, CONFIDENCES.index(confidence) - 1)]


def _what_is_missing(row: Row, column: str) -> str:
    if column != "branch_point":
        return ""
    release = f"release commit {row['commit'][:9]}" if row["commit"] else "release commit"
    return f" ({release} is in no known history, so what was picked onto the branch is not known)"


def _by_bump(upstream: Upstream, text: str, version: str) -> Anchor | None:
    """Take the last main commit whose subject says that it bumps the project's version to *version*."""
    history = upstream.history
    titles: list[str] = history.commits["title"].to_list()
    found = [number for number in history.main if upstream.project.version_of_bump(titles[number]) == version]
    if not found:
        return None
    how = f"main commit that bumps the version to {version}: {history.hashes[found[-1]][:9]}"
    return at_commit(text, history, found[-1], how, "high", version)


def _by_date(upstream: Upstream, text: str, version: str, rows: list[Row]) -> Anchor | None:
    dated = [
        (row["published_at"], _DATED.index(row["evidence"]), row)
        for row in rows
        if row["published_at"] and row["evidence"] in _DATED
    ]
    if not dated:
        return None
    when, _, row = min(dated, key=lambda entry: (entry[1] > 1, entry[0], entry[1]))
    named = _DATED_BY.get(row["evidence"], "package upload")
    yanked = ", yanked later" if any(row["evidence"] == "upload" and row["title"] == "yanked" for row in rows) else ""
    how = f"no commit of {version} is in the known history, so by date: {named} of {said(when)}{yanked}"
    return at_date(text, upstream.history, when, how, "low", version)


def _why_unknown(upstream: Upstream, version: str, rows: list[Row]) -> str:
    commits = sorted({row["commit"] for row in rows if row["commit"]})
    if commits:
        return f"commit {commits[0][:9]} of {version} is in no known history of {upstream.project.title}, and no date is known"
    return f"no tag, anchor, version table, bump commit or upload of {upstream.project.title} {version} is known"
