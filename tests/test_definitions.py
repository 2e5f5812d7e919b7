"""Dagster's definitions, run for real: the whole graph in process, checks, sensor, schedule, instance."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import Warehouse, defs, landing_folder
from tests.records import row, sweep, write_run
from warehouse.schemas import PROJECTIONS
from warehouse.store import Store

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A landing folder with two repeats and a slower build, one row of which cannot be read."""
    folder = tmp_path / "landing"
    for day in (1, 2):
        write_run(folder, day, f"2026-01-0{day}T06:00:00Z", sweep(speed=1 + day / 1000))
    write_run(folder, 3, "2026-01-03T06:00:00Z", [*sweep(image="vllm/vllm-openai:v0.91.0", speed=0.9), row(128, isl=None)])
    return folder


def warehouse_at(tmp_path: Path, landing: Path) -> Warehouse:
    return Warehouse(uri=str(tmp_path / "warehouse"), landing=str(landing), report=str(tmp_path / "report"))


def test_the_night_runs_from_files_to_page(tmp_path: Path, landing: Path) -> None:
    with dg.instance_for_test() as instance:
        result = defs.resolve_job_def("nightly").execute_in_process(
            instance=instance, resources={"warehouse": warehouse_at(tmp_path, landing)}
        )
    assert result.success
    assert {event.asset_key.to_user_string() for event in result.get_asset_materialization_events() if event.asset_key} == {
        "events",
        "points",
        "noise",
        "shifts",
        "links",
        "report",
    }
    checks = {check.check_name: check.passed for check in result.get_asset_check_evaluations()}
    assert checks == {"no_result_is_lost": True, "little_is_reused": True, "little_is_quarantined": False}
    store = Store(str(tmp_path / "warehouse"))
    assert all(store.exists(name) for name in PROJECTIONS)
    assert store.read("points").height == 15
    assert store.read("shifts")["attribution"].to_list() == ["engine"]
    assert (tmp_path / "report" / "index.html").is_file()


def test_a_second_night_adds_no_event(tmp_path: Path, landing: Path) -> None:
    job = defs.resolve_job_def("nightly")
    for _night in range(2):
        with dg.DagsterInstance.ephemeral() as instance:
            result = job.execute_in_process(instance=instance, resources={"warehouse": warehouse_at(tmp_path, landing)})
    counted = {
        event.asset_key.to_user_string(): event.materialization.metadata
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }
    assert counted["events"]["new events"].value == 0
    assert counted["shifts"]["new statements"].value == 0


def test_the_sensor_asks_once_for_what_has_landed(tmp_path: Path, landing: Path) -> None:
    resources = {"warehouse": warehouse_at(tmp_path, landing)}
    with dg.DagsterInstance.ephemeral() as instance:
        first = dg.build_sensor_context(instance=instance, resources=resources)
        request = landing_folder(first)
        assert isinstance(request, dg.RunRequest)
        assert isinstance(
            landing_folder(dg.build_sensor_context(instance=instance, resources=resources, cursor=first.cursor)), dg.SkipReason
        )
        shutil.rmtree(landing / "run_3")
        changed = landing_folder(dg.build_sensor_context(instance=instance, resources=resources, cursor=first.cursor))
        assert isinstance(changed, dg.RunRequest) and changed.run_key != request.run_key
    none = dg.build_sensor_context(resources={"warehouse": Warehouse(landing=str(tmp_path / "absent"))})
    assert isinstance(landing_folder(none), dg.SkipReason)


def test_the_night_is_scheduled() -> None:
    schedules = list(defs.schedules or [])
    assert [schedule.cron_schedule for schedule in schedules if isinstance(schedule, dg.ScheduleDefinition)] == ["0 3 * * *"]


def test_the_instance_keeps_its_files_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIFTLOG_DAGSTER_HOME", str(tmp_path))
    monkeypatch.chdir("/")
    with dg.DagsterInstance.from_config(str(ROOT)) as instance:
        assert not instance.telemetry_enabled
        assert Path(instance.storage_directory()).is_relative_to(tmp_path)
