"""Backup and restore by the very commands of docs/upkeep.md, beside a writer; and what `verify` says of a bad copy."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipelines.cli import main
from tests.records import sweep, write_run
from warehouse.store import Store

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = (ROOT / "docs" / "upkeep.md").read_text("utf-8")
WRITER = """
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from warehouse.events import ResultRecorded, RunKey, RunReported, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store
from tests.records import row

log, stop, start = EventLog(Store(sys.argv[1])), Path(sys.argv[2]), datetime(2026, 2, 1, tzinfo=timezone.utc)
for number in range(1000, 6000):
    if stop.exists():
        break
    run, at = RunKey(run_source="local", run_id=str(number)), start + timedelta(hours=number)
    facts = [RunReported(run=run, started_at=at.isoformat())]
    facts += [ResultRecorded(run=run, record_format="inferencex", record=row(cell, speed=number / 1000)) for cell in (4, 8)]
    log.append([event_of(fact, occurred_at=at, recorded_at=start, source=Source(name="stream")) for fact in facts])
    print(number, flush=True)
"""


def call(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--warehouse", str(warehouse), *arguments], catch_exceptions=False)


def documented(name: str) -> str:
    """Return the commands of the document that stand under the mark *name*."""
    match = re.search(rf"<!-- {name} -->\n\n((?:    .*\n)+)", DOCUMENT)
    assert match is not None
    return re.sub("^    ", "", match[1], flags=re.MULTILINE)


def run(commands: str, folder: Path) -> None:
    """Run *commands* in *folder* by a shell in which `shiftlog` is this checkout."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom pipelines.cli import main; main()"
    shiftlog = f'shiftlog() {{ {shlex.quote(sys.executable)} -c {shlex.quote(program)} "$@"; }}\n'
    done = subprocess.run(["sh", "-euc", shiftlog + commands], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def back_up(folder: Path, to: str = "backup.tar") -> Path:
    run(documented("backup").replace("to=backup.tar", f"to={to}"), folder)
    return folder / to


def unpacked(archive: Path, place: Path) -> Path:
    place.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(place)], check=True)
    return place


@contextmanager
def writing(warehouse: Path, stop: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that appends to *warehouse*, one commit a line of its output, until *stop* exists."""
    command = [sys.executable, "-c", WRITER, str(warehouse), str(stop)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            stop.touch()
            process.communicate()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small warehouse at the place that the document names, its log in three commits, and a backup of it."""
    folder = tmp_path_factory.mktemp("sample")
    for day in (1, 2, 3):
        write_run(folder / f"runs{day}", day, f"2026-01-0{day}T06:00:00Z", sweep(speed=1 + day / 1000))
        assert call(folder / "shiftlog-data", "ingest", str(folder / f"runs{day}")).exit_code == 0
    back_up(folder)
    return folder


@pytest.fixture
def warehouse(sample: Path, tmp_path: Path) -> Path:
    """A copy of the small warehouse, with what it was made of beside it."""
    shutil.copytree(sample, tmp_path, dirs_exist_ok=True)
    return tmp_path / "shiftlog-data"


def test_copies_made_beside_a_writer_are_prefixes_of_the_log_and_restore_to_a_sound_warehouse(
    warehouse: Path, tmp_path: Path
) -> None:
    with writing(warehouse, tmp_path / "stop") as process:
        assert process.stdout is not None
        for copy in range(4):
            assert process.stdout.readline().strip().isdigit()
            back_up(tmp_path, f"backup{copy}.tar")
        (tmp_path / "backup3.tar").rename(tmp_path / "backup.tar")
        for _ in range(2):  # it wrote on after the last copy
            assert process.stdout.readline().strip().isdigit()
    assert process.returncode == 0
    whole = Store(str(warehouse)).read("events")
    heights = []
    for copy in range(3):
        events = Store(str(unpacked(tmp_path / f"backup{copy}.tar", tmp_path / f"copy{copy}"))).read("events")
        assert events.equals(whole.head(events.height))
        heights.append(events.height)
    assert 21 < heights[0] <= heights[1] <= heights[2] < whole.height

    shutil.move(tmp_path / "shiftlog-data", tmp_path / "lost")
    run(documented("restore"), tmp_path)  # ends with `verify`, which fails where anything is wrong
    restored = Store(str(tmp_path / "restored"))
    events = restored.read("events")
    assert events.height >= heights[2]
    assert events.equals(whole.head(events.height))
    assert restored.count("points") == events.filter(events["event_type"] == "ResultRecorded").height


def test_what_arrived_after_the_backup_is_ingested_again_and_nothing_twice(warehouse: Path, tmp_path: Path) -> None:
    archive = back_up(tmp_path)
    write_run(tmp_path / "runs4", 4, "2026-01-04T06:00:00Z", sweep(speed=1.5))
    assert call(warehouse, "ingest", str(tmp_path / "runs4")).exit_code == 0
    whole = Store(str(warehouse)).read("events")

    place = unpacked(archive, tmp_path / "restored")
    assert call(place, "rebuild").exit_code == 0
    for day in (4, 3, 2, 1):
        assert call(place, "ingest", str(tmp_path / f"runs{day}")).exit_code == 0
    events = Store(str(place)).read("events")
    assert set(events["event_id"]) == set(whole["event_id"])
    assert events.height == whole.height == 28
    assert call(place, "verify").exit_code == 0


def test_only_the_log_is_copied_and_no_file_that_is_written_over(warehouse: Path, tmp_path: Path) -> None:
    assert call(warehouse, "compact").exit_code == 0
    assert (warehouse / "events" / "_delta_log" / "_last_checkpoint").exists()
    (warehouse / "events" / "part-x.parquet#1").write_bytes(b"unfinished")
    place = unpacked(back_up(tmp_path), tmp_path / "copy")
    files = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    assert all(re.fullmatch(r"events/(_delta_log/\d{20}\.(json|checkpoint\.parquet)|[^/]+\.parquet)", name) for name in files)
    assert sum(name.endswith(".checkpoint.parquet") for name in files) == 1
    assert Store(str(place)).read("events").equals(Store(str(warehouse)).read("events"))


def commits(place: Path) -> list[Path]:
    return sorted((place / "events" / "_delta_log").glob("*.json"))


def data_files(place: Path) -> list[Path]:
    return sorted((place / "events").glob("*.parquet"))


def spoil(place: Path, how: str) -> None:
    if how == "a data file is missing":
        data_files(place)[0].unlink()
    elif how == "a data file is cut off":
        file = data_files(place)[0]
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "a commit in the middle is missing":
        commits(place)[2].unlink()
    elif how == "the first commit is missing":
        commits(place)[0].unlink()
    elif how == "a commit is cut off":
        commits(place)[2].write_bytes(commits(place)[2].read_bytes()[:100])


@pytest.mark.parametrize(
    "how",
    [
        "a data file is missing",
        "a data file is cut off",
        "a commit in the middle is missing",
        "the first commit is missing",
        "a commit is cut off",
    ],
)
def test_a_bad_copy_is_found_by_verify_which_names_the_table(sample: Path, tmp_path: Path, how: str) -> None:
    place = unpacked(sample / "backup.tar", tmp_path / "copy")
    assert len(commits(place)) == 4  # the table, and three ingests
    spoil(place, how)
    found = call(place, "verify")
    lines = [line for line in (found.stdout + found.stderr).splitlines() if "events" in line]
    assert found.exit_code == 1
    assert any(re.search(r"\b(table events|events table)\b", line) for line in lines), found.output
    assert "Traceback" not in found.output


def test_a_log_that_lost_its_last_commit_is_told_by_the_tables_that_saw_more(warehouse: Path) -> None:
    assert call(warehouse, "verify").exit_code == 0
    commits(warehouse)[-1].unlink()
    found = call(warehouse, "verify")
    assert found.exit_code == 1
    assert re.search(r"table points has seen 21 events and the log has 14", found.output)
    assert call(warehouse, "rebuild").exit_code == 0
    assert call(warehouse, "verify").exit_code == 0
    assert call(warehouse, "sql", "SELECT count(*) AS n FROM points", "--format", "csv").stdout == "n\n10\n"


def test_every_verb_that_the_document_uses_exists() -> None:
    used = set(re.findall(r"shiftlog (?:--warehouse \S+ )?([a-z]+)", DOCUMENT))
    assert used - {"writes", "wrote"} <= set(main.commands)
    assert used >= {"compact", "verify", "doctor", "rebuild"}
