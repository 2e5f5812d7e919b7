"""Configuration blocks of tools, without what is nobody's business: keys, addresses, host names, paths of a machine.

Numbers and truths are kept wherever they stand; a text is kept only under a key that the format allows, and a path only by its
last part. So a new secret of a new version of a tool is left out before anybody knows of it.
"""

from __future__ import annotations

import re
from typing import Any

from pipelines.ingest.numbers import is_number

MAX_TEXT = 512
"""Longest text that is kept, characters."""
DEPTH = 8
"""Levels of a block that are kept."""
_PATH = re.compile(r"(?:[/~.\\]|[A-Za-z]:[\\/])")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


_NAMES = re.findall(
    r"\w+",
    """
    api_key apikey openai_api_key hf_token token auth_token access_token authorization secret password credentials headers cookie
    server_info server_args args argv cmd command cli_command command_line env envs environ environment envars env_vars
    host hosts hostname hostnames node_name node_names ip ip_address address url urls base_url server_url endpoint endpoint_url
    target user username user_name home cwd output_dir result_dir log_dir log_file log_path artifact_directory pretty_env_info
    """,
)
PRIVATE = frozenset(
    form for name in _NAMES for form in (name, name.upper(), re.sub(r"_(.)", lambda found: found[1].upper(), name))
)
"""Names under which tools write keys, addresses, host names, paths and environments, in three spellings."""


def without_private(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without what stands under a name of PRIVATE: for flat records whose other fields are all kept."""
    if not PRIVATE.isdisjoint(record):
        record = {key: value for key, value in record.items() if key not in PRIVATE}
    metrics = record.get("metrics")  # rows of InferenceX's API hold most of their fields there
    if isinstance(metrics, dict) and not PRIVATE.isdisjoint(metrics):
        record = {**record, "metrics": {key: value for key, value in metrics.items() if key not in PRIVATE}}
    return record


def plain_name(text: str) -> str | None:
    """Return *text*; of a path of a machine its last part, of an address nothing."""
    if _ADDRESS.match(text):
        return None
    if _PATH.match(text):
        text = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    return text[:MAX_TEXT]


def tamed(value: Any, texts: frozenset[str], key: str = "", depth: int = DEPTH) -> Any:
    """Return *value* with its numbers, and with texts under the keys in *texts* alone; what is left out is gone or null."""
    if isinstance(value, dict):
        if depth < 1:
            return None
        parts = {str(name): tamed(part, texts, str(name), depth - 1) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(value, list):
        return None if depth < 1 else [tamed(part, texts, key, depth - 1) for part in value]
    if isinstance(value, str):
        return plain_name(value) if key in texts else None
    return value if isinstance(value, bool) or is_number(value) else None


def at(value: Any, *path: str | int) -> Any:
    """Return what stands at *path* inside *value*, or None."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str | int) -> str | None:
    """Return the text that stands at *path*, or None where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) and found.strip() else None
