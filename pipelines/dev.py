"""`make dev`: Dagster's web page on an instance that already holds a run over the sample fleet.

Belongs here: folders, environment, starting the server. Does not: definitions (`pipelines.definitions`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pipelines.console import say
from pipelines.demo.sample import generate

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Fill an instance under ./dagster-home with one run over the sample, then become the server."""
    home = Path("dagster-home").resolve()
    environment = prepare(home)
    dagster = [str(Path(sys.executable).parent / "dagster")]
    module = ["-m", "pipelines.definitions"]
    if not (home / "filled").exists():
        say("filling the instance with one run over the sample fleet …")
        subprocess.run([*dagster, "job", "execute", *module, "-j", "nightly"], check=True, env=environment)  # noqa: S603
        (home / "filled").touch()
    say("in some fifteen seconds: http://127.0.0.1:3000 · stop with Ctrl-C")
    os.execve(dagster[0], [*dagster, "dev", *module, "-h", "127.0.0.1", "-p", "3000"], environment)  # noqa: S606


def prepare(home: Path) -> dict[str, str]:
    """Make the instance's folder with its sample and return the environment that the server needs."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text("utf-8"), "utf-8")
    if not (home / "sample").exists():
        generate(home / "sample")
    return {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "SHIFTLOG_DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "SHIFTLOG_WAREHOUSE": str(home / "warehouse"),
        "SHIFTLOG_LANDING": str(home / "sample"),
        "SHIFTLOG_REPORT": str(home / "report"),
    }


if __name__ == "__main__":
    main()
