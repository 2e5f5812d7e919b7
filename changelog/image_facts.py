"""Image references asked for at their registries, as facts: a new one only where a registry says something else than before.

Belongs here: which references are asked for, and the facts. Does not: the protocol (`changelog.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import polars as pl

from changelog.facts import UpstreamFact, line_of
from changelog.image_labels import told_by
from changelog.nightly import nightlies
from changelog.registry import Platform, Registry, Resolved
from changelog.web import WebError
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError
from warehouse.events import ImageResolved
from warehouse.image import ImageReference, parse

MAX_NIGHTLY = 60
"""Nightly images of one repository that are asked for: their own clean-up keeps fewer."""


class Unresolved(NamedTuple):
    """A reference that could not be resolved: why, and whether that says nothing of it (unknown for now)."""

    reference: str
    why: str
    temporary: bool


def resolve_images(
    registry: Registry, references: Iterable[str], known: pl.DataFrame, seen_at: datetime, announce: Callable[[str], None]
) -> Iterator[UpstreamFact | Unresolved]:
    """Yield what registries say of *references* where it is not what they last said (*known*: the table `images`).

    A reference with a digest is asked for once: its content cannot change.
    """
    last = _last(known)
    for text in dict.fromkeys(references):
        try:
            image = parse(text)
            if image.digest and image.ref in last:
                continue
            announce(image.ref)
            yield from _facts(registry, image, last.get(image.ref, frozenset()), seen_at, announce)
        except (WebError, InputError) as error:
            yield Unresolved(line_of(text, 300), str(error), getattr(error, "temporary", False))


def references(builds: pl.DataFrame, limit: int | None = None) -> list[str]:
    """Return the references of *builds* (the table), those measured last first, at most *limit*."""
    named = builds.drop_nulls("image_ref").sort("last_measured_at", "image_ref", descending=[True, False])
    found = named["image_ref"].unique(maintain_order=True).to_list()
    return found[:limit] if limit is not None else found


def nightly_references(registry: Registry, project: str) -> Iterator[str | Unresolved]:
    """Yield the nightly images of a project that its registry lists now, and whose tags tell a commit."""
    for series in nightlies(project):
        try:
            tags = [f"{series.repository}:{tag}" for tag in registry.tags(series.repository)]
        except WebError as error:
            yield Unresolved(series.repository, str(error), error.temporary)
            continue
        told = [tag for tag in tags if "nightly" in tag and _has_commit(tag)]
        yield from sorted(told)[-MAX_NIGHTLY:]


def _has_commit(reference: str) -> bool:
    try:
        return parse(reference).commit is not None
    except InputError:
        return False


def _last(known: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Return the digests that each reference stood for when a registry last said so."""
    if known.is_empty():
        return {}
    latest = known.filter(pl.col("seen_at") == pl.col("seen_at").max().over("image_ref"))
    pairs = latest.group_by("image_ref").agg(pl.col("image_digest").unique())
    return {ref: frozenset(digests) for ref, digests in pairs.iter_rows()}


def _facts(
    registry: Registry, image: ImageReference, last: frozenset[str], seen_at: datetime, announce: Callable[[str], None]
) -> Iterator[UpstreamFact]:
    if last and registry.digest(image.ref) in last:
        return
    resolved = registry.resolve(image.ref)
    for note in resolved.notes:
        announce(f"{image.ref}: {note}")
    if resolved.digest in last:
        return
    for platform in resolved.platforms:
        yield _fact(image, resolved, platform, seen_at)


def _fact(image: ImageReference, resolved: Resolved, platform: Platform, seen_at: datetime) -> UpstreamFact:
    told = told_by(platform.config, image)
    payload = ImageResolved(
        image_ref=image.ref,
        image_digest=resolved.digest,
        seen_at=iso(seen_at) or "",
        media_type=resolved.media_type,
        platform=platform.platform,
        manifest_digest=platform.manifest_digest,
        config_digest=platform.config_digest,
        created=_instant(platform.config.get("created")),
        engine_version=told.version,
        commit=told.commit,
        commit_source=told.commit_source,
        labels=told.labels,
    )
    return UpstreamFact(payload, seen_at, None, f"{image.ref} {platform.platform or ''}".strip())


def _instant(told: object) -> str | None:
    """Return when an image was built; builds that can be repeated say the beginning of the epoch, which is no time."""
    try:
        when = parse_instant(told, "created") if isinstance(told, str) else None
    except InputError:
        return None
    return iso(when) if when is not None and when.year > 2000 else None
