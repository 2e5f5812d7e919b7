"""From what the user typed to what the functions take: times, declared facts, names, folders; errors name the option."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.benchmarks import benchmarks
from changelog.projects import project
from pipelines.announcing import Announce
from pipelines.ingest.declarations import checked
from pipelines.ingest.sides import Declared
from warehouse import vocabulary
from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.image import parse
from warehouse.log import EventLog
from warehouse.schemas import METRIC_COLUMNS
from warehouse.store import Store

if TYPE_CHECKING:
    from changelog.bisect import Level
    from pipelines.sync.course import Request

METRICS = tuple(column.name for column in METRIC_COLUMNS)


def declared(measured_at: str | None, settings: tuple[str, ...], revision: int = 0) -> Declared:
    """Return what `--measured-at` and `--set` declare; *revision* marks the reports of runs as corrections."""
    pairs = checked(map(_pair, settings), "--set")
    return Declared(parse_instant(measured_at, "--measured-at") if measured_at else None, pairs, revision)


def _pair(setting: str) -> tuple[str, str]:
    key, separator, value = setting.partition("=")
    if not separator:
        raise InputError(f"--set {setting[:60]!r}: write KEY=VALUE; `shiftlog formats --keys` lists the keys")
    return key.strip(), value


def references(images: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return those of *images* that are references, and what is wrong with each of the others."""
    read, wrong = [], []
    for image in images:
        try:
            parse(image)
        except InputError as error:
            wrong.append(str(error))
        else:
            read.append(image)
    return read, wrong


def bisect_results(results: tuple[str, ...]) -> list[tuple[str, Level]]:
    """Return what `--result BUILD=LEVEL` tells: builds and levels, in the order given."""
    return [_bisect_result(result) for result in results]


def _bisect_result(result: str) -> tuple[str, Level]:
    from changelog.bisect import Level

    build, _separator, level = result.rpartition("=")
    if not build.strip() or level not in set(Level):
        raise InputError(f"--result {result[:60]!r}: write BUILD=old, BUILD=new or BUILD=skip")
    return build.strip(), Level(level)


def sync_request(
    log: EventLog,
    recorded_at: datetime,
    projects: tuple[str, ...],
    locations: tuple[str, ...],
    since: str | None,
    announce: Announce,
) -> Request:
    """Return what `shiftlog sync` is asked for; caches lie beside the mirrors."""
    from pipelines.sync.course import Request

    places = dict(map(_place, locations))
    mirrors = mirrors_folder(log.store)
    return Request(log, recorded_at, mirrors, mirrors / "http", announce, projects, places, day(since, "--since"))


def _place(text: str) -> tuple[str, str]:
    name, separator, place = text.partition("=")
    if not separator or not place.strip():
        raise InputError(f"--from {text[:60]!r}: write NAME=FOLDER or NAME=URL")
    known = name.strip().lower()
    return (known if known in benchmarks() else project(known).name), str(
        Path(place).expanduser()
    ) if "://" not in place else place


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


def _model(text: str) -> vocabulary.Name:
    """Return the model family that a name, an alias or a checkpoint's path names."""
    name = vocabulary.model(text)
    return name if name.known else vocabulary.model(None, text)


def _known(kind: str, text: str, name: vocabulary.Name) -> str:
    if not name.known:
        raise InputError(f"{kind} {text[:40]!r} is not known; use one of {', '.join(vocabulary.names(kind))}")
    return name.value


def configuration(facets: dict[str, Any]) -> dict[str, Any]:
    """Return the facets of `shiftlog changes` with canonical names, as the tables spell them."""
    named = {key: value for key, value in facets.items() if key != "spec"}
    if facets["metric"] and facets["metric"] not in METRICS:
        raise InputError(
            f"--metric {facets['metric'][:40]!r} is not known; use a column of points such as {', '.join(METRICS[:4])}"
        )
    for kind, look_up in (("hardware", vocabulary.hardware), ("model", _model), ("precision", vocabulary.precision)):
        if facets[kind]:
            named[kind] = _known(kind, facets[kind], look_up(facets[kind]))
    return {**named, "spec_decoding": facets["spec"]}
