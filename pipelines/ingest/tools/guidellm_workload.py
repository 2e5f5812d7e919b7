"""What a GuideLLM report says of its data: nominal lengths of synthetic text, the name of anything else.

Three spellings: `spec.data[]` with `kind` (0.7 and later), `args.data[]` and `request_loader.data` with texts (before): a JSON
object, `prompt_tokens=256,output_tokens=128`, or the name of a file or data set.
"""

from __future__ import annotations

import json
from typing import Any

from pipelines.ingest.numbers import is_number
from pipelines.ingest.reading import MAX_OTHER
from pipelines.ingest.tools.taming import at, plain_name, text_at

LENGTHS = {"isl": "prompt_tokens", "osl": "output_tokens"}
_NAMES = ("source", "path", "src", "name")


def workload(record: dict[str, Any]) -> dict[str, Any]:
    """Return nominal lengths, the workload's name and the scenario, as fields of `Told`."""
    found = at(record, "spec", "data") or at(record, "args", "data") or at(record, "benchmark", "request_loader", "data")
    sources = [_source(source) for source in (found if isinstance(found, list) else [found]) if source is not None]
    if len(sources) != 1:
        names = [_name(source) for source in sources]
        return {"workload": " + ".join(name for name in names if name)[:MAX_OTHER] or None}
    source, turns = sources[0], at(sources[0], "turns")
    lengths = {key: _nominal(source.get(name)) for key, name in LENGTHS.items()}
    many = is_number(turns) and turns > 1
    return {**lengths, "workload": _name(source), "scenario": "multi-turn" if many else "fixed-seq-len"}


def _source(source: Any) -> dict[str, Any]:
    """Return a data source as an object; a text that is none of the two short forms is a name."""
    if isinstance(source, dict):
        return source
    told = str(source)
    if told.lstrip().startswith("{"):
        try:
            value = json.loads(told)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}
    pairs = [part.partition("=") for part in told.split(",")]
    if "prompt_tokens" in (key.strip() for key, _equals, _value in pairs):
        return {key.strip(): int(value) for key, _equals, value in pairs if value.strip().isdecimal() and len(value) < 10}
    return {"name": plain_name(told)}


def _name(source: dict[str, Any]) -> str | None:
    """Return a data source's name; of synthetic text with its spread, because another spread is another load."""
    told = next((text_at(source, key) for key in _NAMES if text_at(source, key)), None) or text_at(source, "source", "path")
    if told:
        return told[:MAX_OTHER]
    if "prompt_tokens" not in source:
        return text_at(source, "kind")
    spread = [
        f"{key}={source[key]}"
        for key in sorted(source)
        if key not in LENGTHS.values() and ("tokens" in key or key == "turns") and is_number(source[key])
    ]
    return " ".join(["synthetic", *(part for part in spread if part != "turns=1")])[:MAX_OTHER]


def _nominal(value: Any) -> int | None:
    return int(value) if is_number(value) and 1 <= value <= 100_000_000 and value == int(value) else None
