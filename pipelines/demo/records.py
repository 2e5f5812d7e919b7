"""The raw files of a sample run, in the shape in which a benchmark's CI leaves them: `agg_bmk.json` beside `run.json`.

Belongs here: field names, spellings, bytes. Does not: numbers. The shape is that of InferenceX records of version 2
(December 2025 on), with `recipe_fingerprint` where the stack has one, and of GitHub's answer to "get a workflow run".
"""

from __future__ import annotations

import json
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.demo.fleet import Curve
from warehouse.clock import iso

REPOSITORY = "example/sample-fleet"
ZIP_TIME = (2026, 1, 1, 0, 0, 0)
"""Time of every archive member, so that archives are the same bytes each time."""


def rounded(value: float) -> float:
    """Return *value* with nine significant digits: what differs between mathematics libraries stays out of the files."""
    return float(f"{value:.9g}")


def row(curve: Curve, concurrency: int, image: str, recipe: str | None, values: dict[str, float]) -> dict[str, Any]:
    """Return one record; `dp_attention` is text, as in the real ones."""
    setup = curve.setup
    record: dict[str, Any] = {
        "hw": curve.stack.label,
        "conc": concurrency,
        "image": image,
        "model": curve.model_source,
        "infmax_model_prefix": setup.model,
        "framework": curve.stack.framework,
        "precision": setup.precision,
        "spec_decoding": "none",
        "disagg": False,
        "isl": curve.isl,
        "osl": curve.osl,
        "is_multinode": False,
        "tp": setup.tp,
        "ep": setup.ep,
        "dp_attention": "false",
    }
    record.update({name: rounded(value) for name, value in values.items()})
    if recipe is not None:
        record["recipe_fingerprint"] = recipe
    return record


def run_object(run_id: int, engine: str, started_at: datetime) -> dict[str, Any]:
    """Return the CI's record of the run itself."""
    return {
        "id": run_id,
        "run_attempt": 1,
        "name": f"GENERATED SAMPLE sweep of {engine}",
        "head_branch": "main",
        "event": "push",
        "status": "completed",
        "conclusion": "success",
        "run_started_at": iso(started_at),
        "created_at": iso(started_at),
        "html_url": f"https://example.invalid/{REPOSITORY}/actions/runs/{run_id}",
        "repository": {"full_name": REPOSITORY},
    }


def write_run(folder: Path, run: dict[str, Any], rows: list[dict[str, Any]], zipped: bool) -> Path:
    """Write one run under *folder*, as a folder or as a .zip of it, and return its path."""
    name = f"run_{run['id']}"
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in rows)
    members = {"agg_bmk.json": f"[\n{lines}\n]\n", "run.json": json.dumps(run, indent=1) + "\n"}
    if zipped:
        return _write_zip(folder / f"{name}.zip", name, members)
    target = folder / name
    target.mkdir()
    for member, text in members.items():
        (target / member).write_text(text, encoding="utf-8", newline="\n")
    return target


def _write_zip(target: Path, name: str, members: dict[str, str]) -> Path:
    """Stored, not deflated: compressed bytes differ between versions of zlib."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for member, text in members.items():
            entry = zipfile.ZipInfo(f"{name}/{member}", ZIP_TIME)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, text)
    return target
