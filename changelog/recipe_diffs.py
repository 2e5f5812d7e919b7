"""What a commit changed of how a benchmark launches its configurations: evidence that words about it are not.

Belongs here: changed lines of configurations and launch scripts. Does not: running git (`changelog.git_command`), words
(`changelog.recipe_kinds`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from changelog.benchmarks import Benchmark
from changelog.git_contents import changed_lines

Touched = Literal["image", "more"]
IMAGE: Touched = "image"
MORE: Touched = "more"

_SAYS_NOTHING = re.compile(r"\s*(?:#.*)?")
_OF_IMAGE = re.compile(r"\s*-?\s*(?:image|container)\s*:.*", re.IGNORECASE)
_SIZE = r"(?:tp|ep|pp|dp-attn|conc|conc-start|conc-end|conc-list|spec-decoding)\s*:\s*(?:\[[\d,\s]*\]|[\w\"'-]+)"
_OF_POINT = re.compile(rf"\s*(?:-\s*)?(?:\{{\s*)?{_SIZE}(?:\s*,\s*{_SIZE}){{0,12}}\s*,?\s*\}}?\s*(?:#.*)?")
"""A point of a sweep as a configuration spells it: it tells which cells are measured, and moves none."""


def touched(folder: Path, commits: Iterable[str], benchmark: Benchmark) -> dict[str, Touched]:
    """Return for commits whether they changed images alone or more; those that changed nothing of the kind are left out."""
    found: dict[str, Touched] = {}
    paths = [f":(glob)**/{pattern.lstrip('*')}" if pattern.startswith("*") else pattern for pattern in benchmark.configs]
    for commit, _path, line in changed_lines(folder, commits, [*paths, *benchmark.launch]):
        if found.get(commit) == MORE or _SAYS_NOTHING.fullmatch(line) or _OF_POINT.fullmatch(line):
            continue
        found[commit] = IMAGE if _OF_IMAGE.fullmatch(line) else MORE
    return found
