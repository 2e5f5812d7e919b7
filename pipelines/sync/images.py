"""`sync images`: what the images that were measured, and the engines' nightly ones, stand for at their registries now.

Belongs here: which references are asked for. Does not: asking (`changelog.image_facts`, `changelog.registry`).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from changelog.facts import UpstreamFact, UpstreamFault
from changelog.image_facts import Unresolved, nightly_references, references, resolve_images
from changelog.registry import Registry
from changelog.tables import read_table
from changelog.web import Web
from pipelines.sync.course import Part, Request, take
from warehouse.errors import InputError


def sync_images(request: Request) -> Iterator[Part]:
    """Yield what the registries say that they did not say before; raises InputError where nothing was measured yet."""
    registry = Registry(Web(request.cache, announce=request.announce))
    store = request.log.store
    builds = store.read("builds") if store.exists("builds") else pl.DataFrame()
    if request.projects and not builds.is_empty():
        builds = builds.filter(pl.col("engine").is_in(list(request.projects)))
    if builds.is_empty():
        raise InputError("no build was measured yet, so there is no image to ask for; ingest results first")
    yield take(request, "images", "registry", _facts(request, registry, references(builds)))
    for engine in sorted(builds["engine"].drop_nulls().unique().to_list()):
        yield take(request, f"nightly images of {engine}", "registry", _nightly(request, registry, engine))


def _facts(request: Request, registry: Registry, names: list[str]) -> Iterator[UpstreamFact | UpstreamFault | Unresolved]:
    known = read_table(request.log, "images")
    yield from resolve_images(registry, names, known, request.recorded_at, request.announce)


def _nightly(request: Request, registry: Registry, engine: str) -> Iterator[UpstreamFact | UpstreamFault | Unresolved]:
    listed = list(nightly_references(registry, engine))
    yield from (one for one in listed if isinstance(one, Unresolved))
    yield from _facts(request, registry, [one for one in listed if isinstance(one, str)])
