"""A warehouse to begin with, copied for each test: one night taken in, and what it cost."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.soak.command import Life


@dataclass(frozen=True)
class Settled:
    """A warehouse that took in one night undisturbed, the folder it was read from, and what ingests are like on it."""

    warehouse: Path
    folder: Path
    first: Life
    """The ingest of the first night, which makes the tables."""
    later: Life
    """The ingest of a second night."""

    def copied(self, place: Path) -> tuple[Path, Path, Path]:
        """Copy it below *place*; return the warehouse, the folder of runs, and the run in it."""
        shutil.copytree(self.warehouse, place / "warehouse", dirs_exist_ok=True)
        shutil.copytree(self.folder, place / "in")
        return place / "warehouse", place / "in", place / "in" / "run_1"
