"""YAML from strangers, every scalar as the text that stands there: no aliases (they multiply), bounded depth, no key twice.

Belongs here: reading YAML safely. Does not: what a document means (`changelog.gpu_rates`, `changelog.recipe_files`).
"""

from __future__ import annotations

from typing import Any

import yaml

from warehouse.errors import InputError

MAX_NESTING = 8


class _Texts(yaml.CBaseLoader):  # type: ignore[misc]
    """The loader that takes every value as the text that stands there, and refuses a key that stands twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(node.value):
            raise InputError(f"line {node.start_mark.line + 1}: a key stands twice, or is no text")
        return dict(super().construct_mapping(node, deep=deep))


def document(text: str) -> Any:
    """Return the value of a YAML text: texts, lists and mappings only; raises InputError where it may not be read."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CBaseLoader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError("YAML with an alias (*name) is not read; write the value out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_NESTING:
                raise InputError(f"YAML nested deeper than {MAX_NESTING} levels")
        return yaml.load(text, Loader=_Texts)  # noqa: S506 it makes texts, lists and mappings only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML ({' '.join(str(error).split())[:160]})") from None
