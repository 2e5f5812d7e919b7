"""What tags stood for: the digests that registries told of an image reference, by time, up to the moment of a measurement.

A tag can move. Whether a run pulled it then or had an older copy is not known, so a move is a possible cause and never a proof:
it takes away that two runs were of one image, and blames nothing.
Belongs here: reading `images`, what was known of a reference at an instant, what its configuration tells. Does not: attribution
(`pipelines.detect.changes`), what commit and version mean (`changelog.image_ends`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Any

import polars as pl
from packaging.version import InvalidVersion, Version

from warehouse.image import normalise

_COLUMNS = ("image_ref", "seen_at", "image_digest", "platform", "manifest_digest")


@dataclass(frozen=True)
class Sighting:
    """What a registry said that a reference stands for: its digest, and the manifest of every platform."""

    seen_at: datetime
    digest: str
    manifests: frozenset[tuple[str | None, str]]

    @property
    def digests(self) -> frozenset[str]:
        """Every digest that the image goes by: its own, and those of its platforms."""
        return frozenset({self.digest, *(manifest for _platform, manifest in self.manifests)})

    def is_as(self, other: Sighting) -> bool:
        """Say whether both are of one content: an index can be written anew round the same manifests."""
        return self.digest == other.digest or self.manifests == other.manifests


@dataclass(frozen=True)
class Stood:
    """What an image stood for when it was measured, as far as registries told it by then.

    `seen`: of a tag whose digest no record holds, oldest first. `digests`: all that it goes by.
    """

    seen: tuple[Sighting, ...] = ()
    digests: frozenset[str] = frozenset()

    @property
    def moves(self) -> int:
        """How often the tag had been seen to move; the first sighting says nothing of what it stood for before."""
        return max(0, len(self.seen) - 1)

    def moved(self, other: Stood) -> str:
        """Return in words how one tag moved between two measurements, or nothing where it was not seen to."""
        if self.moves == other.moves:
            return ""
        earlier, later = sorted((self, other), key=lambda stood: stood.moves)
        before, after = (earlier.seen or later.seen)[-1 if earlier.seen else 0], later.seen[-1]
        back = " and back" if before.is_as(after) else ""
        return f"{before.digest[:19]} → {after.digest[:19]}{back}, seen {after.seen_at:%Y-%m-%dT%H:%MZ}"

    def may_be(self, other: Stood) -> bool:
        """Say whether both are known under one digest."""
        return not self.digests.isdisjoint(other.digests)


NOWHERE = Stood()


@dataclass(frozen=True)
class TagLog:
    """Sightings by full reference (with the tag that none stands for), oldest first: one each time that the content changed."""

    of_reference: dict[str, tuple[Sighting, ...]] = field(default_factory=dict)
    of_digest: dict[str, tuple[Sighting, ...]] = field(default_factory=dict)

    def stood(self, reference: str | None, digest: str | None, at: datetime) -> Stood:
        """Return what is known of the image that a record of an instant names by a reference, or by a digest besides."""
        if digest is not None:
            return Stood((), self._names(digest))
        found = self.of_tag(reference) if reference and self.of_reference else ()
        seen = found[: bisect_right(found, at, key=lambda sighting: sighting.seen_at)]
        return Stood(seen, seen[-1].digests if seen else frozenset())

    def of_tag(self, reference: str) -> tuple[Sighting, ...]:
        """Return all that was ever seen of a reference without its digest, oldest first."""
        return self.of_reference.get(full(reference), ())

    def _names(self, digest: str) -> frozenset[str]:
        """Return the digests of one image with *digest*, whenever that was learned: an index and its platforms."""
        found = self.of_digest.get(digest, ())
        return frozenset({digest}).union(*(one.digests if one.digest == digest else {one.digest} for one in found))


NO_TAGS = TagLog()


def tag_log(images: pl.DataFrame) -> TagLog:
    """Return what the table `images` tells; rows in any order give the same."""
    if images.is_empty():
        return NO_TAGS
    rows = images.select(_COLUMNS).unique().sort(_COLUMNS, nulls_last=True).iter_rows(named=True)
    told = {ref: tuple(_sightings(same)) for ref, same in groupby(rows, key=lambda row: str(row["image_ref"]))}
    of_digest: dict[str, list[Sighting]] = {}
    for sighting in (one for found in told.values() for one in found):
        for digest in sorted(sighting.digests):
            of_digest.setdefault(digest, []).append(sighting)
    tags = {full(ref): tuple(_changes(found)) for ref, found in told.items() if "@" not in ref}
    return TagLog(tags, {digest: tuple(found) for digest, found in of_digest.items()})


@lru_cache(maxsize=4096)
def full(reference: str) -> str:
    """Return a reference without a digest in one spelling: without the hub's names, and with the tag that none stands for."""
    name = normalise(reference).split("@", 1)[0]
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def _sightings(rows: Iterable[dict[str, Any]]) -> Iterator[Sighting]:
    for (seen_at, digest), same in groupby(rows, key=lambda row: (row["seen_at"], row["image_digest"])):
        yield Sighting(seen_at, digest, frozenset((row["platform"], row["manifest_digest"]) for row in same))


def _changes(found: Iterable[Sighting]) -> Iterator[Sighting]:
    last: Sighting | None = None
    for sighting in found:
        if last is None or not sighting.is_as(last):
            yield sighting
        last = sighting


@dataclass(frozen=True)
class Labelled:
    """What the configuration of an image tells of the engine in it, as registries passed it on."""

    digest: str
    seen_at: datetime
    commit: str | None
    commit_source: str | None
    version: str | None
    """PEP 440; what stands there otherwise (the tag of the image) is no version."""

    @property
    def source(self) -> str:
        """Where it stands, in words: `label org.opencontainers.image.revision of sha256:…`."""
        if self.commit and self.commit_source:
            kind = "variable" if self.commit_source.isupper() else "label"
            return f"registry: {kind} {self.commit_source} of {self.digest[:19]}…"
        return f"registry: configuration of {self.digest[:19]}…"


def labelled(images: pl.DataFrame, reference: str | None, digest: str | None) -> Labelled | None:
    """Return what *images* (the table) tells of a digest, else of a reference that has always stood for one content.

    None where it tells neither version nor commit, or its platforms tell different ones.
    """
    rows = _told_of(images, reference, digest)
    pairs = {(row["commit"], row["commit_source"], _pep440(row["engine_version"])) for row in rows}
    pairs = {pair for pair in pairs if pair[0] or pair[2]}
    if len(pairs) != 1:
        return None
    first = min(rows, key=lambda row: (row["seen_at"], row["image_digest"]))
    return Labelled(digest or first["image_digest"], first["seen_at"], *next(iter(pairs)))


def _told_of(images: pl.DataFrame, reference: str | None, digest: str | None) -> list[dict[str, Any]]:
    if images.is_empty() or not (reference or digest):
        return []
    if digest:
        same = (pl.col("image_digest") == digest) | (pl.col("manifest_digest") == digest)
        return images.filter(same.fill_null(False)).to_dicts()
    wanted = full(reference or "")
    rows = [row for row in images.filter(_may_be(wanted)).to_dicts() if full(row["image_ref"]) == wanted]
    return rows if len(tag_log(pl.DataFrame(rows, schema=images.schema)).of_reference.get(wanted, ())) == 1 else []


def _may_be(reference: str) -> pl.Expr:
    """Select what could be a reference without a digest: its own spelling is what the table has, but for a tag left out."""
    return pl.col("image_ref").is_in([reference, reference.removesuffix(":latest")])


def _pep440(text: str | None) -> str | None:
    try:
        return str(Version(text)) if text and len(text) <= 100 else None
    except InvalidVersion:
        return None
