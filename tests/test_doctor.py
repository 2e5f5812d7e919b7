"""What `doctor` finds: real faults planted in a real warehouse, each with its level, its numbers and what mends it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable, write_deltalake

from pipelines.cli import main
from pipelines.doctor import Finding, examine, installation, place, tables
from tests.records import row, sweep, write_run
from warehouse.errors import StoreError
from warehouse.events import Event, ReleasePublished, ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import TABLES
from warehouse.store import Mark, Store

LATER = datetime(2100, 1, 1, tzinfo=UTC)
"""A clock that no event is ahead of."""
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}


def call(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--warehouse", str(warehouse), *arguments], catch_exceptions=False)


def look(warehouse: Path | str, now: datetime = LATER, **environment: str) -> list[Finding]:
    return examine(str(warehouse), ENVIRONMENT | environment, now)


def about(findings: Sequence[Finding], text: str) -> Finding:
    """Return the one finding that says *text*."""
    found = [finding for finding in findings if text in finding.what]
    assert len(found) == 1, findings
    return found[0]


def bad(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level in ("warning", "error")]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of two runs, one curve of five cells each, with all its tables."""
    folder = tmp_path_factory.mktemp("sample")
    for day in (1, 2):
        write_run(folder / "runs", day, f"2026-01-0{day}T06:00:00Z", sweep(speed=1 + day / 1000))
    assert call(folder / "warehouse", "ingest", str(folder / "runs")).exit_code == 0
    assert call(folder / "warehouse", "detect").exit_code == 0
    return folder / "warehouse"


@pytest.fixture
def warehouse(sample: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample, tmp_path / "warehouse"))


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A list of mounts that says: a local disk; so that the machine of the test does not matter. Returned to be written over."""
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    return mounts


def event(payload: Any, recorded_at: datetime) -> Event:
    return event_of(payload, occurred_at=recorded_at, recorded_at=recorded_at, source=Source(name="a.json"))


def result(number: int, recorded_at: datetime = datetime(2026, 3, 1, tzinfo=UTC)) -> Event:
    run = RunKey(run_source="local", run_id=str(number))
    return event(ResultRecorded(run=run, record_format="inferencex", record=row(4, speed=number)), recorded_at)


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() or path.parent == folder
        if path != folder
    }


def test_a_sound_warehouse_has_nothing_bad_and_every_table_is_told_once(warehouse: Path) -> None:
    findings = look(warehouse)
    assert bad(findings) == []
    for name in TABLES:
        assert about(findings, f"table {name}: ").level == "ok"
    assert "1 file, " in about(findings, "table points: ").what
    assert about(findings, "a hard link there replaces no file").level == "ok"


def test_looking_changes_no_file_of_a_table(warehouse: Path) -> None:
    before = {name: size for name, (size, _time) in files(warehouse).items()}
    look(warehouse)
    assert {name: size for name, (size, _time) in files(warehouse).items()} == before


def test_no_warehouse_yet_is_a_note_and_nothing_is_made(tmp_path: Path) -> None:
    findings = look(tmp_path / "deep" / "none")
    assert about(findings, "no warehouse at").level == "note"
    assert "shiftlog ingest PATH" in about(findings, "no warehouse at").fix
    assert bad(findings) == []
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("name", ["a file", "percent%41"])
def test_a_place_that_cannot_hold_tables_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_text("x")
    assert [finding.level for finding in bad(look(tmp_path / name))] == ["error"]


# ---- installation


def package(folder: Path, python: str, *libraries: str) -> None:
    """Make what an installed shiftlog leaves: its metadata."""
    place = folder / "shiftlog-9.9.dist-info"
    place.mkdir()
    lines = ["Metadata-Version: 2.4", "Name: shiftlog", "Version: 9.9", f"Requires-Python: {python}"]
    (place / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {library}" for library in libraries)]) + "\n")


def test_versions_are_held_against_what_the_package_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    extra = 'hypothesis>=999; extra == "dev"'
    package(tmp_path / "site", ">=99", "click>=1", "polars<1", "no-such-library-of-ours>=1.5", extra)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = bad(look(tmp_path / "none"))
    assert [finding.level for finding in found] == ["error"] * 3
    assert "shiftlog asks for >=99" in found[0].what
    assert found[1].what == f"polars {pl.__version__} is installed, shiftlog asks for <1"
    assert found[1].fix == "run `pip install 'polars<1'`"
    assert found[2].what == "no-such-library-of-ours is not installed, shiftlog asks for >=1.5"


def test_versions_that_fit_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    package(tmp_path / "site", ">=3.11", "click>=1", "polars>=2")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert about(look(tmp_path / "none"), "2 libraries are what shiftlog asks for").level == "ok"


def test_a_checkout_that_is_not_installed_says_that_nothing_was_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        raise installation.PackageNotFoundError

    monkeypatch.setattr(installation, "metadata", absent)
    assert about(look(tmp_path / "none"), "not installed as a package").level == "note"


def test_git_that_is_missing_is_a_warning(tmp_path: Path) -> None:
    assert about(look(tmp_path / "none", PATH=str(tmp_path)), "git is not on the path").level == "warning"


# ---- tables against the log


def test_a_table_is_behind_only_where_the_log_has_something_for_it(warehouse: Path) -> None:
    log = EventLog(Store(str(warehouse)))
    end = log.last_sequence()
    release = ReleasePublished(project="vllm", version="0.99.0", evidence="tag")
    log.append([event(release, datetime(2026, 3, 1, tzinfo=UTC))])
    findings = look(warehouse)
    assert about(findings, "table releases is behind").what.endswith(f"it knows {end} of {end + 1} events")
    assert about(findings, "table links is behind").fix == "run `shiftlog detect`"
    assert not [finding for finding in findings if "table points is behind" in finding.what]
    log.append([result(7)])
    findings = look(warehouse)
    assert about(findings, "table points is behind").level == "note"
    assert about(findings, "table shifts is behind").fix == "run `shiftlog detect`"
    assert bad(findings) == []

    assert call(warehouse, "sql", "SELECT 1").exit_code == 0
    assert not [finding for finding in look(warehouse) if "table points is behind" in finding.what]


def test_a_log_that_is_shorter_than_its_tables_is_an_error_and_a_rebuild_mends_it(warehouse: Path) -> None:
    old = Path(shutil.copytree(warehouse / "events", warehouse.parent / "old"))
    end = EventLog(Store(str(warehouse))).last_sequence()
    EventLog(Store(str(warehouse))).append([result(7), result(8)])
    assert call(warehouse, "sql", "SELECT 1").exit_code == 0
    shutil.rmtree(warehouse / "events")
    shutil.copytree(old, warehouse / "events")
    found = bad(look(warehouse))
    assert {finding.level for finding in found} == {"error"}
    assert {finding.what.split()[1] for finding in found} == {"points", "runs", "evals", "builds", "quarantine", "subjects"}
    assert f"table points follows from event {end + 2} and the log ends at {end}" in about(found, "table points").what
    assert "shiftlog rebuild" in found[0].fix
    assert call(warehouse, "doctor").exit_code == 1

    assert call(warehouse, "rebuild").exit_code == 0
    assert bad(look(warehouse)) == []
    assert call(warehouse, "doctor").exit_code == 0


def test_a_writer_that_goes_on_meanwhile_is_no_finding(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def last_sequence(log: EventLog) -> int:
        mark = log.store.mark("events")
        assert mark is not None
        asked.append(mark.up_to)
        return mark.up_to - (2 if len(asked) == 1 else 0)  # as it was when doctor began

    monkeypatch.setattr(EventLog, "last_sequence", last_sequence)
    assert bad(look(warehouse)) == []
    assert len(asked) > 1


def test_a_table_of_another_code_is_made_again_once(warehouse: Path) -> None:
    store = Store(str(warehouse))
    mark = store.mark("points")
    assert mark is not None
    for name in ("points", "shifts"):
        store.overwrite(name, store.read(name), Mark(mark.up_to, 7))
    findings = look(warehouse)
    assert about(findings, "table points was made by another version of the code").level == "note"
    assert about(findings, "table shifts was made by another version of the code").fix == "run `shiftlog detect`"
    assert call(warehouse, "detect").exit_code == 0
    assert not [finding for finding in look(warehouse) if "another version" in finding.what]


def test_another_schema_is_a_note_for_a_projection_and_an_error_for_the_log(warehouse: Path) -> None:
    other = pl.DataFrame({"colour": ["red"]}).to_arrow()
    write_deltalake(str(warehouse / "runs"), other, mode="overwrite", schema_mode="overwrite")
    findings = look(warehouse)
    assert about(findings, "table runs has the schema of another version").level == "note"
    assert bad(findings) == []

    shutil.rmtree(warehouse / "events")
    write_deltalake(str(warehouse / "events"), other)
    assert any(finding.level == "error" and "table events" in finding.what for finding in look(warehouse))


def test_a_missing_index_and_missing_tables_are_notes(warehouse: Path) -> None:
    for name in ("subjects", "points", "links"):
        shutil.rmtree(warehouse / name)
    findings = look(warehouse)
    assert bad(findings) == []
    assert "an append looks through the whole log" in about(findings, "not there yet: subjects").what
    assert about(findings, "not there yet: links").fix == "run `shiftlog detect`"
    assert about(findings, "not there yet: points").level == "note"


def test_tables_without_a_log_are_an_error(warehouse: Path) -> None:
    shutil.rmtree(warehouse / "events")
    assert about(bad(look(warehouse)), "and no log").level == "error"


def test_a_projection_that_cannot_be_opened_is_deleted_and_rebuilt(warehouse: Path) -> None:
    commit = max((warehouse / "builds" / "_delta_log").glob("*.json"))
    commit.write_bytes(commit.read_bytes()[:40])
    found = bad(look(warehouse))
    assert [finding.level for finding in found] == ["error"]
    assert "table builds" in found[0].what
    assert found[0].fix == f"delete {warehouse / 'builds'} and run `shiftlog rebuild`"
    shutil.rmtree(warehouse / "builds")
    assert call(warehouse, "rebuild").exit_code == 0
    assert bad(look(warehouse)) == []


def test_many_small_files_and_commits_are_a_warning_until_they_are_compacted(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MANY_COMMITS", 50)
    store = Store(str(warehouse))
    rows = store.read("builds").to_arrow(compat_level=pl.CompatLevel.oldest())
    before = len(store.file_sizes("builds"))
    for _ in range(100 - before):
        write_deltalake(store.table_uri("builds"), rows, mode="append")
    assert not [finding for finding in look(warehouse) if "small files" in finding.what]
    write_deltalake(store.table_uri("builds"), rows, mode="append")
    assert about(look(warehouse), "table builds has 101 small files of 101") in bad(look(warehouse))
    pointer = warehouse / "builds" / "_delta_log" / "_last_checkpoint"
    pointer.unlink(missing_ok=True)
    version = DeltaTable(store.table_uri("builds")).version()
    found = about(look(warehouse), f"table builds has {version + 1} commits since its last checkpoint")
    assert (found.level, found.fix) == ("warning", "run `shiftlog compact`")
    assert call(warehouse, "compact").exit_code == 0
    assert bad(look(warehouse)) == []


# ---- clock


def test_events_of_the_future_are_a_warning_beyond_five_minutes(warehouse: Path) -> None:
    log = EventLog(Store(str(warehouse)))
    at = datetime(2090, 1, 1, 12, tzinfo=UTC)
    log.append([result(7, at)])
    end = log.last_sequence()
    assert bad(look(warehouse, at - timedelta(minutes=5))) == []
    found = about(bad(look(warehouse, at - timedelta(minutes=5, seconds=1))), f"event {end} was recorded at 2090-01-01T12:00:00Z")
    assert (found.level, "this machine's clock is slow" in found.what) == ("warning", True)
    log.append([result(8, at - timedelta(days=1))])
    found = about(bad(look(warehouse, at - timedelta(hours=1))), f"event {end} was recorded")
    assert f"the machine that recorded event {end} was fast" in found.what


# ---- the place


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "fuseblk", "virtiofs"])
def test_a_network_or_fuse_file_system_is_a_warning(warehouse: Path, disk: Path, kind: str) -> None:
    disk.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {warehouse.parent} {kind} rw 0 0\n")
    assert about(bad(look(warehouse)), f"lies on {kind}").level == "warning"


@pytest.mark.parametrize(
    "mounts", ["/dev/vda / ext4 rw\nserver:/x {0}/ware nfs4 rw\n", "server:/x {0} nfs4 rw\ntmpfs {0} tmpfs rw\n"]
)
def test_the_nearest_and_last_mount_counts(warehouse: Path, disk: Path, mounts: str) -> None:
    disk.write_text(mounts.format(warehouse.parent))
    assert bad(look(warehouse)) == []


def test_mounts_with_a_space_in_their_name_are_known(sample: Path, tmp_path: Path, disk: Path) -> None:
    warehouse = shutil.copytree(sample, tmp_path / "my disk" / "warehouse")
    disk.write_text(f"/dev/vda / ext4 rw\nserver:/x {tmp_path}/my\\040disk nfs rw\n")
    assert about(bad(look(warehouse)), "lies on nfs").level == "warning"


def test_no_list_of_mounts_is_no_finding(warehouse: Path, disk: Path) -> None:
    disk.unlink()
    assert bad(look(warehouse)) == []


def test_a_file_system_without_hard_links_is_an_error(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: Any, _target: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    before = sorted(path.name for path in warehouse.iterdir())
    monkeypatch.setattr(os, "link", refuse)
    assert about(bad(look(warehouse)), "no file or hard link can be made (Operation not permitted)").level == "error"
    assert sorted(path.name for path in warehouse.iterdir()) == before


def test_a_file_system_whose_hard_links_replace_files_is_an_error(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda source, target: None)
    assert about(bad(look(warehouse)), "a hard link replaces a file").level == "error"


@pytest.mark.parametrize(("right", "level"), [(os.W_OK, "warning"), (os.R_OK | os.X_OK, "error")])
def test_rights_that_are_missing(warehouse: Path, monkeypatch: pytest.MonkeyPatch, right: int, level: str) -> None:
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != right)
    assert about(bad(look(warehouse)), "by this user").level == level


def test_free_space_is_held_against_the_largest_table(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "file_sizes", lambda _store, name: [3 * 1024**3] if name == "points" else [1024])
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=5 * 1024**3))
    what = "5.0 GiB free; the largest table, points, has 3.0 GiB; making it again needs 6.0 GiB"
    assert about(bad(look(warehouse)), what).level == "warning"
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=6 * 1024**3))
    assert about(look(warehouse), "6.0 GiB free").level == "ok"


def test_leftovers_and_mirrors_are_named(warehouse: Path) -> None:
    (warehouse / "events" / "part-1.parquet#1").write_bytes(b"x")
    (warehouse / "points" / "_delta_log" / "_commit_1.json.tmp").write_bytes(b"x")
    (warehouse / "mirrors" / "a.git").mkdir(parents=True)
    (warehouse / "mirrors" / "a.git" / "pack").write_bytes(b"x" * 3072)
    findings = look(warehouse)
    assert about(findings, "2 unfinished files of interrupted writes, such as events/part-1.parquet#1").level == "note"
    assert about(findings, "mirrors of upstream repositories: 3.0 KiB").level == "ok"
    assert bad(findings) == []


# ---- object stores; nothing here reaches a network


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: Store, name: str) -> int:
        raise StoreError(f"table {name} in {store.uri} cannot be opened: no route")

    monkeypatch.setattr(Store, "version", refuse)


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://bucket/x", "AWS_SECRET_ACCESS_KEY"),
        ("gs://bucket/x", "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ("abfs://container/x", "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_credential_variables_are_named_and_their_values_are_not(uri: str, name: str) -> None:
    findings = look(uri, **{name: "hunter2"})
    assert f"{name} set" in about(findings, "credentials for").what
    assert "hunter2" not in str(findings)
    error = about(bad(findings), "cannot be opened: no route")
    assert (error.level, "network and credentials" in error.fix) == ("error", True)
    without = about(look(uri), "no credential variable")
    assert (without.level, name in without.fix) == ("note", True)


@pytest.mark.usefixtures("unreachable")
def test_renames_that_are_not_safe_are_a_warning() -> None:
    findings = look("s3://bucket/x", AWS_S3_ALLOW_UNSAFE_RENAME="true")
    assert about(findings, "two writers at once can lose a commit").level == "warning"


def test_an_unknown_scheme_is_an_error_and_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Store, "version")
    assert about(bad(look("ftp://host/x")), "an address that begins with s3://").level == "error"
