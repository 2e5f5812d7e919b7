"""What an image's configuration tells of the software in it; read from `data/image_labels.toml`.

Belongs here: from labels and environment variables to commit and version, and what of them is kept. Does not: getting them
(`changelog.registry`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from changelog.facts import line_of
from changelog.projects import normal_version, project_of_url
from warehouse.events import ImageLabel
from warehouse.image import ImageReference

MAX_LABELS = 60
MAX_VALUE = 300
MAX_LOOKED_AT = 2_000
"""Labels and variables of one configuration that are looked at."""
SOURCE = "org.opencontainers.image.source"
REF_NAME = "org.opencontainers.image.ref.name"
_COMMIT = re.compile(r"(?!20[0-9]{6}(?:[0-9]{4}){0,2}$)(?:[0-9a-f]{7,40}|[0-9a-f]{64})")
"""A hash, in full or cut short; a day, or a day and a time, is none."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]{1,4000}@")


@dataclass(frozen=True)
class Told:
    """What a configuration tells: None where it tells nothing, or `unknown`. `labels` are kept as they are."""

    commit: str | None
    commit_source: str | None
    version: str | None
    labels: tuple[ImageLabel, ...]


def told_by(config: Mapping[str, Any], image: ImageReference) -> Told:
    """Return what *config* (an image's configuration) tells of the engine that *image* names."""
    values = dict(_values(config))
    commits = [(values[key].lower(), key) for key in _keys("commit", values, image) if _is_commit(values[key].lower())]
    versions = [version for key in _keys("version", values, image) if (version := normal_version(values[key]))]
    commit, source = commits[0] if commits else (None, None)
    kept = [ImageLabel(name=name, value=value) for name, value in sorted(values.items()) if value][:MAX_LABELS]
    return Told(commit, source, versions[0] if versions else None, tuple(kept))


def _values(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the labels and variables that are kept, each as one printable line."""
    inner = config.get("config")
    inner = inner if isinstance(inner, dict) else {}
    variables = inner.get("Env")
    for entry in (variables if isinstance(variables, list) else [])[:MAX_LOOKED_AT]:
        name, separator, value = entry.partition("=") if isinstance(entry, str) else ("", "", "")
        if separator and _rules().variables.fullmatch(name):
            yield name, _kept(value)
    labels = inner.get("Labels")
    for name, value in list(labels.items() if isinstance(labels, dict) else ())[:MAX_LOOKED_AT]:
        if isinstance(value, str) and _rules().labels.fullmatch(name):
            yield name, _kept(value)


def _kept(value: str) -> str:
    """Return a value as it is kept: one printable line, an address in it without user and password."""
    return line_of(_CREDENTIALS.sub("", value[: 20 * MAX_VALUE]), MAX_VALUE)


def _keys(what: str, values: Mapping[str, str], image: ImageReference) -> list[str]:
    """Return the names that can tell of the engine, the most trusted first, as far as the configuration has them.

    What tells of the image's own repository tells nothing of an engine that the image only carries, or of another repository.
    """
    rules = _rules().names[what]
    own = list(rules.get(image.engine or "", ()))
    names = [*own, *(rules["general"] if _speaks_of(image, values, what) else ())]
    return [name for name in names if values.get(name, "").lower() not in _rules().nothing]


def _speaks_of(image: ImageReference, values: Mapping[str, str], what: str) -> bool:
    """Say whether the general labels speak of the engine: those of a base image are handed on (`22.04`, of ubuntu).

    A source that is the engine's repository says so. Without a source a revision may still be the engine's. A version is only the
    name of a tag, and is none where a base has left its name beside it.
    """
    if image.wrapper is not None:
        return False
    source, handed_on = values.get(SOURCE, ""), bool(values.get(REF_NAME))
    if source:
        own = image.engine is not None and project_of_url(source) == image.engine
        return own and not (what == "version" and handed_on)
    return what == "commit" and not handed_on


def _is_commit(value: str) -> bool:
    return _COMMIT.fullmatch(value) is not None and bool(value.strip("0"))


@dataclass(frozen=True)
class _Rules:
    names: dict[str, dict[str, list[str]]]
    nothing: frozenset[str]
    labels: re.Pattern[str]
    variables: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = tomllib.loads(files("changelog").joinpath("data/image_labels.toml").read_text("utf-8"))
    return _Rules(
        {what: data[what] for what in ("commit", "version")},
        frozenset(data["nothing"]),
        *(re.compile("|".join(data["kept"][kind])) for kind in ("labels", "variables")),
    )
