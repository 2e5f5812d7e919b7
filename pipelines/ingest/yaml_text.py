"""YAML from strangers as JSON values: no aliases (they multiply), no tags, dates stay texts, bounded depth and size."""

from __future__ import annotations

from typing import Any, ClassVar

import yaml

from warehouse.errors import InputError

MAX_YAML_CHARACTERS = 2_000_000
"""Read in some seconds; YAML is a hundred times slower than JSON, in which every tool that writes it writes, too."""
MAX_NESTING = 64


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """The safe loader without what JSON has no value for."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge")]
        for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def value(text: str) -> Any:
    """Return the value of the one document in *text*; raises InputError where it is none that may be read."""
    return _loaded(text, _Loader)


def texts(text: str) -> Any:
    """Return the same with every scalar as the text that stands there; raises InputError."""
    return _loaded(text, yaml.CBaseLoader)


def _loaded(text: str, loader: Any) -> Any:
    if len(text) > MAX_YAML_CHARACTERS:
        raise InputError(f"YAML of {len(text)} characters; at most {MAX_YAML_CHARACTERS} are read")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
                raise InputError("YAML with an alias or a tag is not read; write the value out")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_NESTING:
                raise InputError(f"YAML nested deeper than {MAX_NESTING} levels")
        return yaml.load(text, Loader=loader)  # noqa: S506 both build texts, numbers, lists and maps only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML ({' '.join(str(error).split())[:160]})") from None
