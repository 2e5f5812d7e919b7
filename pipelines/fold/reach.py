"""How far of the log several tables together have seen: what follows from all of them can claim no more.

Belongs here: that one number. Does not: bringing a table anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.log import EventLog


def reach(log: EventLog, tables: Mapping[str, tuple[str, ...]]) -> int:
    """Return the last sequence of the log up to which all *tables* (with the event types they follow from) have seen theirs.

    A table's mark stays where its last own event was; it has seen as much as one that stands further on, unless an event of its
    own lies between.
    """
    marks = {name: mark.up_to if (mark := log.store.mark(name)) else 0 for name in tables}
    for end in sorted(set(marks.values()), reverse=True):
        behind = (name for name, mark in marks.items() if mark < end)
        if not any(log.has(*tables[name], after=marks[name], up_to=end) for name in behind):
            return end
    return 0
