"""A world for tests of pins: an engine's repository that pins AITER, AITER's own, and a warehouse that has read both."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from changelog.facts import UpstreamFact
from changelog.git import read_repository
from changelog.pins import read_pinned
from changelog.projects import project
from changelog.tables import read_table
from tests.repositories import Repository
from warehouse.events import Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROCM = """FROM $BASE_942 AS gfx942
ENV AITER_COMMIT="{}"
FROM $BASE_950 AS gfx950
ENV AITER_COMMIT="{}"
FROM ${{GPU_ARCH}}
ARG MORI_COMMIT="{}"
"""
PYPROJECT = '[project]\nname = "sglang"\ndependencies = ["flashinfer_python[cu13]=={}", "torch=={}", "sgl-kernel=={}"]\n'


class Engine:
    """A SGLang-like repository and an AITER-like one, and a warehouse that has read both."""

    def __init__(self, folder: Path) -> None:
        self.log = EventLog(Store(str(folder / "warehouse")))
        aiter = Repository(folder / "aiter")
        aiter.commit("start (#1)", "aiter/ops.py")
        aiter.run("tag", "v0.1.13")
        aiter.commit("[MLA] faster decode for gfx950 (#2)", "csrc/mla.cu")
        aiter.commit("fix typo (#3)", "docs/x.md")
        aiter.run("tag", "v0.1.14")
        self.engine = engine = Repository(folder / "sglang")
        self.first = engine.commit(
            "start (#10)",
            **{
                "python/pyproject.toml": PYPROJECT.format("0.5.2", "2.8.0", "0.3.17"),
                "docker/rocm.Dockerfile": ROCM.format("v0.1.4", "v0.1.13", "m1"),
            },
        )
        engine.run("tag", "v0.5.5")
        engine.commit("[AMD] refactor (#11)", "python/sglang/srt/layers/x.py")
        self.bump = engine.commit(
            "[ROCm] bump AITER to v0.1.14 (#12)", **{"docker/rocm.Dockerfile": ROCM.format("v0.1.4", "v0.1.14", "m1")}
        )
        self.silent = engine.commit("misc (#13)", **{"docker/rocm.Dockerfile": ROCM.format("v0.1.4", "v0.1.14", "m2")})
        engine.commit("[Deps] torch 2.9.1 (#14)", **{"python/pyproject.toml": PYPROJECT.format("0.5.2", "2.9.1", "0.3.17")})
        engine.run("tag", "v0.5.6")
        for name, place in (("aiter", aiter), ("sglang", engine)):
            self.take(f for f in read_repository(str(place.folder), name) if isinstance(f, UpstreamFact))
        self.take(read_pinned(engine.folder, project("sglang"), {"0.5.5": self.first}))

    def take(self, facts: Iterable[UpstreamFact]) -> None:
        self.log.append(
            event_of(fact.payload, occurred_at=fact.occurred_at or NOW, recorded_at=NOW, source=Source(name="git"))
            for fact in facts
        )

    def tables(self) -> dict[str, pl.DataFrame]:
        return {name: read_table(self.log, name) for name in ("commits", "releases", "dependencies", "images")}
