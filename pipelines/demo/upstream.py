"""The sample's upstream repositories on disk, made with the git program, and the notes beside them.

Belongs here: running git. Does not: reading a repository back (`changelog.git`). Nothing of the user's git settings is used,
so that hashes are the same everywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from pipelines.demo.history import History
from pipelines.demo.releases import release_list
from pipelines.demo.stream import history_stream
from warehouse.errors import UpstreamError

PROJECTS = ("vllm", "sglang", "trtllm")


def write_project(folder: Path, history: History) -> tuple[Path, Path]:
    """Write the bare repository `<project>` and `<project>_releases.json` into *folder*; return both paths."""
    repository = folder / history.project
    repository.mkdir(parents=True)
    _git(repository, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1")
    _git(repository, "fast-import", "--quiet", "--done", "--date-format=raw", stdin=history_stream(history))
    notes = folder / f"{history.project}_releases.json"
    notes.write_text(json.dumps(release_list(history), indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    return repository, notes


def _git(repository: Path, *arguments: str, stdin: bytes = b"") -> None:
    program = shutil.which("git")
    if program is None:
        raise UpstreamError("git is not on the PATH; install git to make the sample's repositories")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": str(repository), "LC_ALL": "C"}
    done = subprocess.run([program, *arguments], input=stdin, env=environment, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise UpstreamError(f"git {arguments[0]} failed for the sample's {repository.name}: {lines[-1]}")
