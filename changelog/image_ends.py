"""One end of a range from an image reference: what a registry says of it, else what its tag holds.

Order of evidence: the commit in the image's own configuration, the commit in the tag, the day in the tag (that day's main), the
version in the configuration, in the tag, or that the wrapper carries. Belongs here: that order. Does not: reading a tag
(`warehouse.image`), placing a version (`changelog.versions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl

from changelog.anchors import Anchor, at_commit, at_date, said, unknown
from changelog.projects import normal_version
from changelog.sightings import Labelled, labelled
from changelog.upstream import Upstream
from warehouse.errors import InputError
from warehouse.image import ImageReference, parse

ByVersion = Callable[[Upstream, str], Anchor]
"""How a version is placed (`changelog.versions.resolve_version`)."""
NIGHT = timedelta(0)
"""SGLang's own nightly builds begin at midnight UTC: of 14 real ones 12 lie within an hour of it."""
NOON = timedelta(hours=12)
"""Dated ROCm images are built at noon UTC …"""
LATER, LATER_IN = timedelta(hours=13), (2025, 12)
"""… and in that month were built at one."""


def resolve_image(upstream: Upstream, text: str, by_version: ByVersion) -> Anchor:
    """Return where the content of an image lies in the project's history; an unknown end where nothing tells."""
    try:
        image = parse(text)
    except InputError as error:
        return unknown(text, str(error))
    if image.engine not in (None, upstream.project.name):
        return unknown(text, f"the image holds {image.engine}, not {upstream.project.name}")
    told = labelled(upstream.images, image.ref, image.digest)
    return (
        _by_configuration(upstream, image, told)
        or _by_tag(upstream, image)
        or _by_day(upstream, image)
        or _by_version(upstream, image, told, by_version)
        or unknown(text, _why_not(image), image.version)
    )


def _by_configuration(upstream: Upstream, image: ImageReference, told: Labelled | None) -> Anchor | None:
    number = upstream.history.number(told.commit) if told and told.commit else None
    if told is None or number is None:
        return None
    how = f"{told.source}: commit {_hash(upstream, number)}{_as_seen(image, told)}"
    return at_commit(image.image, upstream.history, number, how, _sure(image), told.version or image.version)


def _sure(image: ImageReference) -> str:
    """Return how sure a registry's word is: of a tag that can be anything it tells what it stood for when it was looked at."""
    return "medium" if image.digest is None and image.source == "unknown" else "high"


def _as_seen(image: ImageReference, told: Labelled) -> str:
    return f", which the tag stood for on {said(told.seen_at)}" if _sure(image) == "medium" else ""


def _by_tag(upstream: Upstream, image: ImageReference) -> Anchor | None:
    number = upstream.history.number(image.commit) if image.commit else None
    if number is None:
        return None
    how = f"commit in the image tag ({image.source}): {_hash(upstream, number)}"
    found_one = "high" if image.confidence == "medium" and not image.source.startswith("version") else image.confidence
    return at_commit(image.image, upstream.history, number, how, found_one, image.version)


def _by_day(upstream: Upstream, image: ImageReference) -> Anchor | None:
    """Place a dated tag on that day's main, whatever version stands beside the date; a commit of a branch of its own nowhere."""
    when = built_at(image)
    if when is None or (image.commit and "custom" in image.source):
        return None
    missing = f"commit {image.commit} of the tag is in no known history, so by the day: " if image.commit else ""
    words = "that minute's main" if image.time else f"that day's main at {when:%H:%M} UTC"
    how = f"{missing}date in the image tag, read as {words}: {said(when)}"
    return at_date(image.image, upstream.history, when, how, "low", image.version)


def built_at(image: ImageReference) -> datetime | None:
    """Return when the main of a dated tag was taken: to the minute where the tag tells it, else as is its project's habit."""
    if image.date is None:
        return None
    day = datetime(int(image.date[:4]), int(image.date[4:6]), int(image.date[6:8]), tzinfo=UTC)
    if image.time:
        return day + timedelta(hours=int(image.time[:2]), minutes=int(image.time[2:]))
    if image.commit or "nightly" in image.source:
        return day + NIGHT
    return day + (LATER if (day.year, day.month) == LATER_IN else NOON)


def _by_version(upstream: Upstream, image: ImageReference, told: Labelled | None, by_version: ByVersion) -> Anchor | None:
    for version, words, limit in _versions(upstream, image, told):
        normal = normal_version(version)
        if normal is not None:
            return replace(by_version(upstream, normal), text=image.image).within(words, limit)
    return None


def _versions(upstream: Upstream, image: ImageReference, told: Labelled | None) -> list[tuple[str, str, str]]:
    """Return the versions that are told of an image: each with words for how, and how sure it can be at most."""
    found = []
    if told and told.version:
        found.append((told.version, f"{told.source}: version {told.version}{_as_seen(image, told)}", _sure(image)))
    if image.version:
        pinned = "; pinned by digest, which need not be the release" if image.digest else ""
        own = image.confidence if image.confidence in ("low", "medium") else "high"
        found.append((image.version, f"image tag ({image.source}){pinned}", "medium" if image.digest and own == "high" else own))
    carried = carried_version(upstream, image)
    if carried is not None:
        words = f"support matrix: {image.wrapper} {image.wrapper_version} carries {upstream.project.title} {carried}"
        found.append((carried, words, "medium"))
    return found


def carried_version(upstream: Upstream, image: ImageReference) -> str | None:
    """Return the version of the engine that the image's wrapper carries, by its support matrix; None where that is not one."""
    if not (image.wrapper and image.wrapper_version):
        return None
    rows = upstream.dependencies.filter(
        (pl.col("project") == image.wrapper)
        & (pl.col("version") == (normal_version(image.wrapper_version) or image.wrapper_version))
        & (pl.col("dependency") == upstream.project.name)
    )
    found: list[str] = rows["dependency_version"].unique().to_list()
    return found[0] if len(found) == 1 else None


def _hash(upstream: Upstream, number: int) -> str:
    return upstream.history.hashes[number][:9]


def _why_not(image: ImageReference) -> str:
    if image.commit:
        return f"commit {image.commit[:9]} of the image tag is in no known history"
    if image.wrapper_version:
        return f"which engine version {image.wrapper} {image.wrapper_version} carries is not known"
    pinned = " and its digest is in no registry answer that is kept" if image.digest else ""
    return f"the image tag tells neither version nor commit{pinned}"
