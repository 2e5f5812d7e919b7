"""How the installed command starts: Python's search for cycles is kept from costing a quarter of every short command."""

from __future__ import annotations

import atexit
import gc

OBJECTS = 100_000
"""New containers before Python looks for cycles; loading our libraries makes some 100,000, none of them garbage."""


def run() -> None:
    """Run the command line; at the end nothing is searched, because the process ends anyway."""
    gc.set_threshold(OBJECTS, 10, 10)
    atexit.register(gc.freeze)
    from pipelines.cli import main

    main()
