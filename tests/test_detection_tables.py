"""What a detection run leaves in a real warehouse besides shifts, and what makes it stale."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines import projections
from pipelines.announcing import silent
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.verification import verify
from tests.records import sweep, write_run
from warehouse.events import RecipeChanged, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLD, NEW = "vllm/vllm-openai:v0.90.0", "vllm/vllm-openai:v0.91.0"


def take(log: EventLog, folder: Path, number: int, rows: list[Any]) -> None:
    place = write_run(folder, number, f"2026-01-{number:02}T06:00:00Z", rows)
    ingest(log, (str(place),), Declared(), recorded_at=NOW, mirrors=folder / "mirrors", announce=silent)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """Three repeats and a faster build, detected."""
    folder = tmp_path_factory.mktemp("nights")
    log = EventLog(Store(str(folder / "warehouse")))
    for number, wobble in ((1, 1.0), (2, 1.002), (3, 0.999)):
        take(log, folder, number, sweep(image=OLD, speed=wobble))
    take(log, folder, 4, sweep(image=NEW, speed=1.1))
    projections.run_detection(log, NOW)
    return log


def entry(run: int, head: str, description: str) -> RecipeChanged:
    return RecipeChanged(
        run=RunKey(run_source="example/fleet", run_id=str(run), run_attempt=1),
        base_ref="b" * 40,
        head_ref=head * 40,
        config_keys=("dsr1-fp8-h200-vllm",),
        description=(description,),
    )


def test_every_table_of_a_detection_is_there_and_sound(nights: EventLog) -> None:
    (shift,) = nights.store.read("shifts").to_dicts()
    assert (shift["attribution"], shift["status"], shift["kind"], shift["linked"]) == ("engine", "suspected", None, [])
    assert shift["explained_share"] is None
    assert shift["noise_version"] == nights.store.read("noise")["version"].unique().item()
    levels = nights.store.read("levels")
    # 1.002, 0.999 and 1.1 over 1.0.
    assert levels["level"].exp().to_list() == pytest.approx([1.0, 1.002, 0.999, 1.1])
    whole = nights.store.read("frontier_diffs").filter(pl.col("interactivity").is_null()).sort("to_measured_at")
    assert whole["same_build"].to_list() == [True, True, False]
    assert whole["size_pct"].to_list()[-1] > 0
    fitness = nights.store.read("fitness")
    assert set(fitness["level"]) == {"curve", "run"}
    assert set(fitness["verdict"]) == {"fit"}
    assert nights.store.read("score_diffs").is_empty()
    assert list(verify(nights)) == []


def test_a_recipe_that_changed_in_between_is_a_second_cause(nights: EventLog) -> None:
    """An entry that comes to be known later makes the detection stale; the next one revises what was said."""
    assert projections.is_detection_current(nights)
    image = event_of(entry(4, "c", "Update image to v0.91.0"), occurred_at=NOW, recorded_at=NOW, source=Source(name="test"))
    nights.append([image])
    assert not projections.is_detection_current(nights)
    projections.run_detection(nights, NOW)
    assert projections.is_detection_current(nights)
    assert nights.store.read("shifts")["attribution"].to_list() == ["engine"]
    flags = event_of(entry(4, "d", "Set --max-num-seqs 512"), occurred_at=NOW, recorded_at=NOW, source=Source(name="test"))
    nights.append([flags])
    assert projections.run_detection(nights, NOW) == 1
    (shift,) = nights.store.read("shifts").to_dicts()
    assert (shift["attribution"], shift["change_set"]) == ("mixed", ["build", "recipe"])
    assert any("--max-num-seqs" in detail for detail in shift["change_detail"])
    said = [payload.facts["attribution"] for _row, payload in nights.payloads("ShiftReported")]
    assert said == ["engine", "mixed"]
    assert list(verify(nights)) == []
