"""Declarations and corrections in any order: of each record the last that was said holds; what is said again adds nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.verification import verify
from tests.lengths import either
from tests.records import row, write_run
from tests.test_ingest_sides import WHOLE, points, serve, take, write
from warehouse.log import EventLog
from warehouse.store import Store

COMMITS = ("", "a" * 40, "b" * 40)
"""Declared for rows that need no declaration; the first is none."""
SAYINGS = [*(("serve", name) for name in ("h100", "h200")), *(("rows", name) for name in COMMITS)]
STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from(SAYINGS)), min_size=2, max_size=8)


def said(point: dict[str, Any]) -> str:
    """Return what was declared of a point: its accelerator, or the commit of its engine where one was."""
    if point["record_format"] == "vllm-serve":
        return str(point["hardware"])
    return point["build_id"].removeprefix("commit:vllm/").removeprefix("unknown:vllm")


@settings(max_examples=either(3, 40), suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_the_last_that_was_said_holds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, tuple[str, str]]]
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    log = EventLog(Store(str(folder / "warehouse")))
    places = {
        "serve": write(folder / "in/serve.json", serve()),
        "rows": write_run(folder / "in", 7, "2026-01-05T06:00:00Z", [row(4, image=None), row(8, image=None)]),
    }
    holds: dict[str, str] = {}
    known = set()
    for correct, (what, value) in steps:
        declared = WHOLE | {"hardware": value} if what == "serve" else {"engine_commit": value} if value else {}
        lengths = []
        for _time in range(2):
            take(log, places[what], revision=log.last_sequence() + 1 if correct else 0, **declared)
            if correct or (what, value) not in known:  # what was said before is known already, and is not news by itself
                holds[what] = value
            known.add((what, value))
            expected = [
                (name, holds[name]) for name, number in (("rows", 2), ("serve", 1)) if name in holds for _ in range(number)
            ]
            found = sorted(("serve" if one["record_format"] == "vllm-serve" else "rows", said(one)) for one in points(log))
            assert found == expected
            lengths.append(log.last_sequence())
        assert lengths[0] == lengths[1], "what was said again added something"
    assert verify(log) == []
