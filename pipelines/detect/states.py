"""The states of a shift, from suspicion to its end."""

from __future__ import annotations

SUSPECTED, CONFIRMED, RECOVERED = "suspected", "confirmed", "recovered"
RETRACTED, SUPERSEDED = "retracted", "superseded"
STATES = (SUSPECTED, CONFIRMED, RECOVERED, RETRACTED, SUPERSEDED)
GONE = (RETRACTED, SUPERSEDED)
"""States of what was once stated and is not found any more; of a superseded one another shift stands in its place."""
