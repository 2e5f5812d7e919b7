"""Every source that `shiftlog sync` knows, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipelines.sync.course import Part, Request
from pipelines.sync.images import sync_images
from pipelines.sync.upstream import sync_upstream

SOURCES: dict[str, Callable[[Request], Iterator[Part]]] = {"upstream": sync_upstream, "images": sync_images}
NAMES = tuple(SOURCES)
