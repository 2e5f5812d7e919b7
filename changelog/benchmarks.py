"""Benchmarks that keep a recipe log in their repository, read from `data/benchmarks.toml`.

Belongs here: looking one up by the name of its repository. Does not: reading its log (`changelog.recipe_files`,
`changelog.recipe_history`), upstream projects (`changelog.projects`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, as `data/benchmarks.toml` describes it."""

    name: str
    title: str
    repositories: tuple[str, ...]
    words: tuple[str, ...]
    log: str
    configs: tuple[str, ...]
    launch: tuple[str, ...]


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name, in the order of the file."""
    data = tomllib.loads(files("changelog").joinpath("data/benchmarks.toml").read_text("utf-8"))
    return {name: _benchmark(name, entry) for name, entry in data.items()}


def _benchmark(name: str, entry: dict[str, Any]) -> Benchmark:
    lists = {field: tuple(value) for field, value in entry.items() if isinstance(value, list)}
    return Benchmark(name=name, title=entry["title"], log=entry["log"], **lists)


def benchmark(name: str) -> Benchmark | None:
    """Return the benchmark that the name of a repository or a declared name stands for, or None."""
    wanted = name.strip().lower().replace("_", "-").removesuffix(".git")
    return next((known for known in benchmarks().values() if wanted in known.words), None)


@cache
def benchmark_of(repository: str) -> str:
    """Return a repository (`owner/name`) in lower case, by its present name where it is a benchmark's former one."""
    wanted = repository.lower()
    for known in benchmarks().values():
        if wanted in [former.lower() for former in known.repositories]:
            return known.repositories[0].lower()
    return wanted
