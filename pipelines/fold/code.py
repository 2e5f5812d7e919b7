"""What the tables follow from besides the log: the code whose change makes them anew (`warehouse.code`)."""

from __future__ import annotations

from changelog.tables import SOURCES as UPSTREAM

FACTS = (
    "pipelines/fold",
    "pipelines/ingest",
    "pipelines/detect/health.py",
    "changelog/anchors.py",
    "changelog/history.py",
    "changelog/order.py",
    "changelog/sightings.py",
    "warehouse/canonical.py",
    "warehouse/cell.py",
    "warehouse/clock.py",
    "warehouse/events.py",
    "warehouse/image.py",
    "warehouse/schemas.py",
    "warehouse/vocabulary.py",
    "warehouse/data",
)
"""Files and folders that `runs`, `points`, `builds` and `quarantine` follow from (a test compares them with the imports)."""
DETECTION = (*FACTS, *UPSTREAM, "pipelines/detect", "pipelines/statements.py", "changelog")
"""… and `noise`, `diffs`, `shifts`, `links`."""
