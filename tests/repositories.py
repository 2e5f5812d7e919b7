"""Real git repositories for tests, written one command at a time, a day apart."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.invalid"))
}


class Repository:
    """A repository with a main branch; `day` is the day of the next command, 1 January 2026 being day 0."""

    at: str | None = None
    """Date in git's spelling that the next commands have instead of their day."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = 0
        folder.mkdir(parents=True)
        self.run("init", "-q", "-b", "main")

    def run(self, *arguments: str) -> str:
        date = self.at or (START + timedelta(days=self.day)).isoformat()
        when = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=QUIET | WHO | when, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self, subject: str, *paths: str, **files: str) -> str:
        """Commit changes of *paths* (their content is the day) and of *files*, and return the hash."""
        self.day += 1
        contents = dict.fromkeys(paths or (() if files else ("vllm/core.py",)), f"{self.day}\n") | files
        for path, text in contents.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", subject)
        return self.run("rev-parse", "HEAD")

    def pick(self, commit: str) -> str:
        """Pick a commit onto the branch that is checked out, and return the new hash."""
        self.day += 1
        self.run("cherry-pick", commit)
        return self.run("rev-parse", "HEAD")
