"""From the text of `--workers` to workers; the one place that knows all kinds."""

from __future__ import annotations

import re
from importlib.util import find_spec

from pipelines.workers.cluster import RayCluster
from pipelines.workers.contract import Workers
from pipelines.workers.processes import Processes
from pipelines.workers.serial import Serial
from warehouse.errors import InputError

FORMS = "serial, processes, processes:4, ray, ray:HOST:PORT or ray:auto"
_COUNT = re.compile(r"[1-9][0-9]{0,2}")
_ADDRESS = re.compile(r"auto|[A-Za-z0-9][A-Za-z0-9._-]*:[1-9][0-9]{0,4}")


def open_workers(spec: str) -> Workers:
    """Return the workers that *spec* names; nothing starts before their first `map`.

    Raises InputError for any other text, and for Ray where it is not installed.
    """
    kind, colon, rest = spec.partition(":")
    if spec == "serial":
        return Serial()
    if kind == "processes" and (not colon or _COUNT.fullmatch(rest)):
        return Processes(int(rest) if colon else None)
    if kind == "ray" and (not colon or _ADDRESS.fullmatch(rest)):
        return _ray(rest or None)
    raise InputError(f"--workers {spec[:60]!r}: write {FORMS}")


def _ray(address: str | None) -> RayCluster:
    if find_spec("ray") is None:
        raise InputError("--workers ray: Ray is not installed; run `pip install 'shiftlog[ray]'`, or use --workers processes")
    return RayCluster(address)
