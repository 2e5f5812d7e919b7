"""What image references hold, as our grammar reads it, against a hand-made table of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from warehouse.image import parse

FIELDS = {
    "repo": "repo",
    "tag": "tag",
    "digest": "digest",
    "engine": "engine",
    "wrapper": "wrapper",
    "version": "version_in_tag",
    "commit": "commit_in_tag",
    "date": "date_in_tag",
    "wrapper_version": "wrapper_version",
}
"""Our field, and what the table calls it."""
READ = ("version", "commit", "date", "wrapper_version")
"""What a tag can hold; where it holds none of it, the source must be `unknown`."""


def evaluate(table: Path) -> dict[str, Any]:
    """Return how many references of *table* come out right, by field, and all that do not."""
    entries = json.loads(table.read_text("utf-8"))
    wrong = [fault for entry in entries for fault in _faults(entry)]
    unknown = [entry for entry in entries if not any(entry[FIELDS[name]] for name in READ)]
    return {
        "images": len(entries),
        "fields": {name: len(entries) - sum(field == name for _image, field, *_ in wrong) for name in (*FIELDS, "unknown")},
        "unknown": len(unknown),
        "wrong": wrong,
    }


def _faults(entry: dict[str, Any]) -> list[tuple[str, str, Any, Any]]:
    read = parse(entry["image"])
    pairs = [(name, getattr(read, name), entry[held]) for name, held in FIELDS.items()]
    pairs.append(("unknown", read.source == "unknown", not any(entry[FIELDS[name]] for name in READ)))
    return [(entry["image"], name, ours, theirs) for name, ours, theirs in pairs if ours != theirs]
