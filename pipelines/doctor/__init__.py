"""What `shiftlog doctor` looks at; nothing is mended and nothing is recomputed (`pipelines.verification` does that).

installation  Python, libraries, git
place         the folder or object store that holds the warehouse
tables        each table against the log, its files, the clock

It reads the logs of the tables, sizes and statistics, never whole tables; it writes nothing but probe files, removed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pipelines.doctor.finding import Finding
from pipelines.doctor.installation import look_at_installation
from pipelines.doctor.place import look_at_place
from pipelines.doctor.tables import look_at_tables
from warehouse.errors import ShiftlogError
from warehouse.store import Store

__all__ = ["Finding", "examine"]


def examine(uri: str, environment: Mapping[str, str], now: datetime) -> list[Finding]:
    """Return what was found of the installation and of the warehouse at *uri*, in a fixed order.

    *environment* holds the variables of the process, *now* is what the clock says (UTC). Raises for nothing
    that it finds.
    """
    findings = list(look_at_installation(environment))
    try:
        store = Store(uri)
    except ShiftlogError as error:
        return [*findings, Finding("error", str(error), "name another place with --warehouse")]
    place = list(look_at_place(store, environment))
    if any(finding.level == "error" for finding in place):
        return [*findings, *place]
    return [*findings, *place, *look_at_tables(store, now)]
