"""From what the user typed to what the functions take: times, declared facts, names, folders; errors name the option."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

from pipelines.ingest.intake import SETTINGS, Declared
from warehouse import vocabulary
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.log import EventLog
from warehouse.store import Store


def declared(measured_at: str | None, settings: tuple[str, ...]) -> Declared:
    """Return what `--measured-at` and `--set` declare."""
    pairs = dict(_pair(setting) for setting in settings)
    return Declared(parse_instant(measured_at, "--measured-at") if measured_at else None, pairs)


def _pair(setting: str) -> tuple[str, str]:
    key, separator, value = setting.partition("=")
    if not separator or key not in SETTINGS or not value.strip():
        raise InputError(f"--set {setting[:60]!r}: write KEY=VALUE with one of the keys {', '.join(SETTINGS)}")
    return key, value.strip()[:200]


def mirrors_folder(store: Store) -> Path:
    """Return where mirrors of git repositories are kept: beside a local warehouse, else under the user's cache."""
    if store.local:
        return Path(store.uri) / "mirrors"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shiftlog" / "mirrors"


def day(text: str | None, option: str) -> date | None:
    """Return a calendar day, or None; raises InputError naming *option*."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text[:40]!r}: write a day as 2026-01-31") from None


def canonical_engine(text: str | None) -> str | None:
    """Return the canonical name of an engine; raises InputError for one that the vocabulary does not know."""
    return None if text is None else _known("engine", text, vocabulary.engine(text))


def _known(kind: str, text: str, name: vocabulary.Name) -> str:
    if not name.known:
        raise InputError(f"{kind} {text[:40]!r} is not known; use one of {', '.join(vocabulary.names(kind))}")
    return name.value


def upstream_changes(
    log: EventLog, engine: str, start: str, end: str, limit: int | None, facets: dict[str, Any]
) -> dict[str, Any]:
    """Return what upstream did between two builds (`changelog.answer.changes`) for what the user typed."""
    from changelog.answer import changes
    from changelog.facets import Configuration
    from pipelines.projections import refresh

    refresh(log)
    tables = {name: log.store.read(name) for name in ("commits", "releases", "dependencies")}
    return changes(tables, engine, start, end, Configuration(**_names(facets)), limit)


def _names(facets: dict[str, Any]) -> dict[str, Any]:
    """Return the facets with canonical names, as the tables spell them."""
    named = {key: value for key, value in facets.items() if key != "spec"}
    for kind, look_up in (("hardware", vocabulary.hardware), ("model", vocabulary.model), ("precision", vocabulary.precision)):
        if facets[kind]:
            named[kind] = _known(kind, facets[kind], look_up(facets[kind]))
    return {**named, "spec_decoding": facets["spec"]}
