"""Writing the page of a warehouse: tables out of the store, page into a folder."""

from __future__ import annotations

from pathlib import Path

from changelog.projects import projects
from pipelines.report.page import Planted, ReportLabels, no_address, write
from warehouse.store import Store


def write_report(store: Store, folder: str, *, generated: bool = False, planted: Planted | None = None) -> Path:
    """Write the page of a warehouse into *folder* and return the file; *generated* marks a sample, *planted* its truth.

    A sample's invented pull-request numbers must not point at real ones.
    """
    labels = ReportLabels(generated=generated, pull_request=no_address if generated else pull_request)
    title = "shiftlog: generated sample fleet" if generated else "shiftlog: what moved, and whether it is real"
    return write(store, Path(folder), title=title, labels=labels, planted=planted)


def pull_request(project: str, number: int) -> str | None:
    """Return the address of a pull request of a known project, or None; nothing of it is a stranger's text."""
    known = projects().get(project)
    return f"https://github.com/{known.repositories[0]}/pull/{number}" if known and known.repositories else None
