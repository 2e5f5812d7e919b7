"""One end of a range from what a person or a record names it by: version, tag, commit, image reference or date.

Order of evidence for a version: git tag, measured anchor's commit, anchor's branch point, version table, a main commit that
says it bumps the version, upload date. Whatever is used is said in words; what nothing pins down stays unknown.

Belongs here: that order, and what each spelling means. Does not: what lies between two ends (`changelog.ranges`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
from packaging.version import Version

from changelog.anchors import Anchor, at_commit, at_date, said, unknown
from changelog.projects import normal_version
from changelog.upstream import Upstream
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.image import ImageReference, parse

MAX_END = 600
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
_COMPACT_DATE = re.compile(r"20\d{6}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_NOON = timedelta(hours=12)
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
        return _resolve_image(upstream, wanted)
    return _resolve_commit(upstream, wanted) or _resolve_version(upstream, wanted)


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


def _resolve_version(upstream: Upstream, text: str) -> Anchor:
    tagged = upstream.project.version_of_tag(text) or normal_version(text)
    if tagged is None:
        return unknown(text, f"{text[:60]!r} is neither a version nor a tag that is known")
    built_from = _commit_of_version(upstream, text, tagged)
    if built_from is not None:
        return built_from
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
    for row in rows:
        if row["evidence"] == evidence and row[column]:
            number = upstream.history.number(row[column])
            if number is not None:
                how = f"{words} {version}: {upstream.history.hashes[number][:9]}{_what_is_missing(row, column)}"
                return at_commit(text, upstream.history, number, how, confidence, version)
    return None


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


def _resolve_image(upstream: Upstream, text: str) -> Anchor:
    try:
        image = parse(text)
    except InputError as error:
        return unknown(text, str(error))
    if image.engine not in (None, upstream.project.name):
        return unknown(text, f"the image holds {image.engine}, not {upstream.project.name}")
    if image.commit:
        number = upstream.history.number(image.commit)
        if number is not None:
            how = f"commit in the image tag ({image.source}): {upstream.history.hashes[number][:9]}"
            return at_commit(text, upstream.history, number, how, image.confidence, image.version)
    return _image_date(upstream, image) or _image_version(upstream, image) or unknown(text, _why_no_image(image), image.version)


def _image_date(upstream: Upstream, image: ImageReference) -> Anchor | None:
    """A dated tag is that day's main (built about noon UTC), whatever version stands beside the date."""
    digits = re.sub(r"\D", "", image.date or "")[:8]
    try:
        day = parse_instant(f"{digits[:4]}-{digits[4:6]}-{digits[6:]}", "image date") if digits else None
    except InputError:
        day = None
    if day is None:
        return None
    how = f"date in the image tag, read as that day's main at noon UTC: {said(day + _NOON)}"
    return at_date(image.image, upstream.history, day + _NOON, how, "low", image.version)


def _image_version(upstream: Upstream, image: ImageReference) -> Anchor | None:
    version, words = image.version, f"image tag ({image.source})"
    if version is None and image.wrapper and image.wrapper_version:
        version = _carried_version(upstream, image.wrapper, image.wrapper_version)
        words = f"{image.wrapper} {image.wrapper_version} carries {upstream.project.title} {version}"
    normal = normal_version(version) if version else None
    if normal is None:
        return None
    pinned = "; pinned by digest, which need not be the release" if image.digest else ""
    found = _resolve_version(upstream, normal)
    limit = "medium" if image.digest or image.version is None else "high"
    return replace(found, text=image.image).within(words + pinned, limit)


def _carried_version(upstream: Upstream, wrapper: str, wrapper_version: str) -> str | None:
    rows = upstream.dependencies.filter(
        (pl.col("project") == wrapper)
        & (pl.col("version") == (normal_version(wrapper_version) or wrapper_version))
        & (pl.col("dependency") == upstream.project.name)
    )
    found: list[str] = rows["dependency_version"].unique().to_list()
    return found[0] if len(found) == 1 else None


def _why_no_image(image: ImageReference) -> str:
    if image.commit:
        return f"commit {image.commit[:9]} of the image tag is in no known history"
    if image.wrapper_version:
        return f"which engine version {image.wrapper} {image.wrapper_version} carries is not known"
    pinned = " and its digest is in no registry answer that is kept" if image.digest else ""
    return f"the image tag tells neither version nor commit{pinned}"
