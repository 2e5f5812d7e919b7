"""Workers: one function over many parts gives the same results in the same order wherever it runs, and ends cleanly."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.sightings import NO_TAGS
from pipelines.announcing import silent
from pipelines.detect import spans
from pipelines.detect.night import detect
from pipelines.detect.recipes import NO_LOG
from pipelines.fold import table
from pipelines.following import refresh
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.workers.contract import Workers
from pipelines.workers.order import in_order
from pipelines.workers.parcels import packed, unpacked
from pipelines.workers.processes import usable_cores
from pipelines.workers.registry import open_workers
from tests import parts
from tests.records import row, sweep, write_run
from warehouse.digest import content_hash
from warehouse.errors import ConflictError, InputError, ShiftlogError
from warehouse.log import EventLog
from warehouse.schemas import POINTS
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[1]
NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'shiftlog[ray]')")
LIMIT = 4  # two workers, two parts each


@pytest.fixture(scope="session")
def ray_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Ray cluster of two nodes with one core each; its workers find the tests as the tests find themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")  # else Ray looks for one in the home folder of whoever runs the tests
        patch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef0123456789abcdef")
        patch.chdir(tmp_path_factory.mktemp("ray"))
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            yield str(cluster.address)
        finally:
            cluster.shutdown()
            del cluster
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # Ray leaves its nodes' log files open
                gc.collect()


@pytest.fixture(scope="session")
def two_on_ray(ray_address: str) -> Iterator[Workers]:
    with closing(open_workers(f"ray:{ray_address}")) as workers:
        yield workers


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Workers]:
    with closing(open_workers("processes:2")) as workers:
        yield workers


@pytest.fixture(params=["serial", "processes:2", pytest.param("ray", marks=NEEDS_RAY)])
def any_workers(request: pytest.FixtureRequest) -> Any:
    return _opened(request)


@pytest.fixture(params=["processes:2", pytest.param("ray", marks=NEEDS_RAY)])
def two_workers(request: pytest.FixtureRequest) -> Any:
    return _opened(request)


def _opened(request: pytest.FixtureRequest) -> Any:
    """Return the workers of a parameter; processes and the connection to Ray are shared, for each takes seconds to start."""
    shared = {"processes:2": "two_processes", "ray": "two_on_ray"}
    return request.getfixturevalue(shared[request.param]) if request.param in shared else open_workers(request.param)


def _eventually(holds: Callable[[], bool]) -> bool:
    """Return whether *holds* comes true within a minute, which says nothing about speed and only ends a broken test."""
    until = time.monotonic() + 60
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


# What comes back


def test_results_are_those_of_the_parts_in_their_order(any_workers: Workers) -> None:
    assert list(any_workers.map(parts.square, range(11))) == [0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100]


def test_no_parts_give_no_results(any_workers: Workers) -> None:
    assert list(any_workers.map(parts.square, [])) == []


def test_a_slow_first_part_still_comes_first(two_workers: Workers, tmp_path: Path) -> None:
    """Part 0 ends only after part 3, the last that may be in flight beside it, has run."""
    given_parts = [(str(tmp_path), number, LIMIT - 1) for number in range(6)]
    assert list(two_workers.map(parts.wait_for_last, given_parts)) == [0, 1, 2, 3, 4, 5]


def test_parts_run_outside_this_process(two_workers: Workers) -> None:
    assert os.getpid() not in set(two_workers.map(parts.process, range(8)))


def test_serial_parts_run_in_this_process() -> None:
    assert set(open_workers("serial").map(parts.process, range(3))) == {os.getpid()}


def test_processes_share_the_cores() -> None:
    with closing(open_workers(f"processes:{usable_cores()}")) as workers:
        assert list(workers.map(parts.threads, [0])) == [int(os.environ.get("POLARS_MAX_THREADS", "1"))]


@pytest.fixture
def delta_table(tmp_path: Path) -> str:
    """Write a table of two versions; the second adds a row that readers of the first must not see."""
    uri = str(tmp_path / "table")
    rows = {"engine": ["vllm", "sglang", "vllm", "vllm"], "curve": ["b", "a", "a", "b"], "tpot": [3.0, 7.5, 1.25, 4.0]}
    pl.DataFrame(rows).write_delta(uri)
    pl.DataFrame({"engine": ["vllm"], "curve": ["b"], "tpot": [99.0]}).write_delta(uri, mode="append")
    return uri


def test_each_worker_reads_its_own_part_of_a_delta_table(any_workers: Workers, delta_table: str) -> None:
    parcels = list(any_workers.map(parts.medians, [(delta_table, 0, "vllm"), (delta_table, 0, "sglang")]))
    assert [unpacked(parcel).rows() for parcel in parcels] == [
        [("vllm", "a", 1.25, 1), ("vllm", "b", 3.5, 2)],
        [("sglang", "a", 7.5, 1)],
    ]


def test_frames_come_back_as_the_same_bytes_as_in_this_process(two_workers: Workers, delta_table: str) -> None:
    wanted = [(delta_table, version, engine) for version in (0, 1) for engine in ("vllm", "sglang")]
    assert list(two_workers.map(parts.medians, wanted)) == list(open_workers("serial").map(parts.medians, wanted))


def test_a_parcel_keeps_types_nulls_and_order() -> None:
    schema = {
        "at": pl.Datetime("us", "UTC"),
        "n": pl.Int32,
        "other": pl.List(pl.Struct({"name": pl.String, "value": pl.Float64})),
    }
    rows = [(None, 7, [{"name": "z", "value": 0.1}]), (None, None, None), (None, -7, [])]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    assert unpacked(packed(frame)).schema == pl.Schema(schema)
    assert unpacked(packed(frame)).rows() == rows
    assert unpacked(packed(frame.clear())).schema == pl.Schema(schema)


# Errors


def test_a_shiftlog_error_of_a_part_is_raised_as_itself(any_workers: Workers) -> None:
    results = any_workers.map(parts.refuse, range(4))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ConflictError) as caught:
        next(results)
    assert type(caught.value) is ConflictError
    assert str(caught.value) == "events: other writers kept winning; run it again"


def test_a_fault_of_the_program_keeps_its_kind(any_workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError, match="seven"):
        list(any_workers.map(parts.refuse, [7]))


def test_workers_still_work_after_an_error(any_workers: Workers) -> None:
    with pytest.raises(ConflictError):
        list(any_workers.map(parts.refuse, range(8)))
    assert list(any_workers.map(parts.square, range(3))) == [0, 1, 4]


def test_a_killed_process_is_one_line_that_says_what_to_do() -> None:
    with closing(open_workers("processes:2")) as workers:
        with pytest.raises(ShiftlogError) as caught:
            list(workers.map(parts.die, range(6)))
        assert "--workers processes:1" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert list(workers.map(parts.square, range(3))) == [0, 1, 4]


@NEEDS_RAY
def test_a_worker_that_always_dies_on_ray_is_one_line_that_says_what_to_do(two_on_ray: Workers) -> None:
    with pytest.raises(ShiftlogError) as caught:
        list(two_on_ray.map(parts.die, range(6)))
    assert "--workers processes:1" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(two_on_ray.map(parts.square, range(3))) == [0, 1, 4]


@NEEDS_RAY
def test_a_part_that_a_lost_worker_had_runs_again_on_ray(two_on_ray: Workers, tmp_path: Path) -> None:
    assert list(two_on_ray.map(parts.die_once, [(str(tmp_path), number) for number in range(5)])) == [0, 1, 2, 3, 4]
    assert (tmp_path / "died").exists()


@NEEDS_RAY
def test_a_node_with_other_versions_is_refused(two_on_ray: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another polars may give other bytes; the message names both sides."""
    monkeypatch.setattr("pipelines.workers.cluster._versions", lambda: {"python": "3.11.7", "polars": "0.0.1"})
    with pytest.raises(InputError, match=re.escape("this machine python 3.11.7, polars 0.0.1; install the same shiftlog[ray]")):
        list(two_on_ray.map(parts.square, [1]))


@NEEDS_RAY
def test_no_cluster_at_the_address_is_an_input_error(tmp_path: Path) -> None:
    """In a program of its own, for this one may be connected."""
    code = """
from pipelines.workers.registry import open_workers
from tests import parts
from warehouse.errors import InputError
try:
    list(open_workers("ray:127.0.0.1:1").map(parts.square, [1]))
except InputError as error:
    print(error)
"""
    status, out, errors = _run(["-c", code], tmp_path)
    assert (status, errors) == (0, "")
    assert re.fullmatch(
        r"--workers ray:127\.0\.0\.1:1: no Ray cluster can be used there \(.*refused\); see `ray status` .*\n", out
    )


@NEEDS_RAY
def test_ray_without_an_address_starts_on_this_machine_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef0123456789abcdef")
    assert _run(["-c", MAIN.replace("processes:2", "ray") + "\nmain()"], tmp_path) == (0, "[0, 1, 4, 9, 16]\n", "")


@NEEDS_RAY
def test_a_program_uses_one_cluster_at_a_time(two_on_ray: Workers) -> None:
    assert list(two_on_ray.map(parts.square, [2])) == [4]
    with pytest.raises(InputError, match=r"^--workers ray:127\.0\.0\.1:1: this program is connected to the Ray cluster at "):
        list(open_workers("ray:127.0.0.1:1").map(parts.square, [1]))


# Few parts in flight


def test_no_more_parts_are_started_than_two_a_worker(two_workers: Workers, tmp_path: Path) -> None:
    """While the caller holds one result, the three others in flight may have run, and no fifth part."""
    results = two_workers.map(parts.note, [(str(tmp_path), number) for number in range(12)])
    for held in range(3):
        assert next(results) == held
        assert _eventually(lambda held=held: len(list(tmp_path.iterdir())) >= held + LIMIT)
        time.sleep(0.2)  # long enough for a fifth part to leave its trace, were it in flight
        assert len(list(tmp_path.iterdir())) == held + LIMIT
    assert list(results) == list(range(3, 12))


def test_parts_that_nobody_asks_for_are_not_begun(any_workers: Workers, tmp_path: Path) -> None:
    results = any_workers.map(parts.note, [(str(tmp_path), number) for number in range(12)])
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert list(any_workers.map(parts.square, range(5))) == [0, 1, 4, 9, 16]
    assert len(list(tmp_path.iterdir())) <= LIMIT


@given(st.lists(st.integers()), st.integers(min_value=1, max_value=9), st.integers(min_value=0, max_value=30))
def test_order_and_bound_hold_for_any_parts(numbers: list[int], limit: int, taken: int) -> None:
    submitted: list[int] = []
    handed_out: list[int] = []
    most = 0

    def submit(part: int) -> int:
        nonlocal most
        submitted.append(part)
        most = max(most, len(submitted) - len(handed_out))
        return len(submitted) - 1

    def result(ticket: int) -> int:
        handed_out.append(ticket)
        return submitted[ticket]

    got = list(islice(in_order(numbers, limit, submit, result), taken))
    assert got == numbers[:taken]
    assert handed_out == list(range(len(got)))
    assert most <= limit


# How processes start and end

MAIN = """
import sys
from contextlib import closing
from pipelines.workers.registry import open_workers
from tests import parts

def main():
    with closing(open_workers("processes:2")) as workers:
        print(list(workers.map(parts.square, range(5))))
"""
GUARDED = MAIN + "\nif __name__ == '__main__':\n    sys.exit(main())\n"


def _run(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("way", ["console script", "module", "-c"])
def test_children_start_whichever_way_the_parent_was_started(way: str, tmp_path: Path) -> None:
    """A spawned child looks for its parent's main module; as a console script that is a file without a suffix."""
    (tmp_path / "shiftlog-like").write_text(GUARDED)
    (tmp_path / "started.py").write_text(GUARDED)
    arguments = {
        "console script": [str(tmp_path / "shiftlog-like")],
        "module": ["-m", "started"],
        "-c": ["-c", MAIN + "\nmain()"],
    }
    assert _run(arguments[way], tmp_path) == (0, "[0, 1, 4, 9, 16]\n", "")


RAY_ITSELF = re.compile(r"\[[-\d]+ [:,\d]+ [EWI] \d+ \d+\] \w+\.cc:\d+: ")
"""A line of Ray's native log: its threads may still tell of a task that was dropped before we could close."""
SLEEPING = """
import sys
from contextlib import closing
from pipelines.workers.registry import open_workers
from tests import parts
try:
    with closing(open_workers(sys.argv[2])) as workers:
        list(workers.map(parts.sleep, [sys.argv[1]] * 6))
except KeyboardInterrupt:
    sys.exit(130)
"""


def _sleeping(spec: str, folder: Path) -> subprocess.Popen[str]:
    """Start a program, as a terminal does, whose two workers sleep."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-c", SLEEPING, str(folder), spec],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert _eventually(lambda: len(_sleepers(folder)) == 2 or program.poll() is not None)
    return program


def _sleepers(folder: Path) -> list[int]:
    return [int(trace.name.removeprefix("pid-")) for trace in folder.glob("pid-*")]


def _gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in ("Z", "X")  # dead, not yet collected by whoever inherited it


@pytest.mark.parametrize("spec", ["processes:2", pytest.param("ray", marks=NEEDS_RAY)])
def test_an_interrupt_ends_all_at_once_and_says_nothing(spec: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Ctrl-C reaches the whole group; ten minutes of sleep are not waited for, and no child prints a traceback."""
    named = f"ray:{request.getfixturevalue('ray_address')}" if spec == "ray" else spec
    program = _sleeping(named, tmp_path)
    os.killpg(program.pid, signal.SIGINT)
    out, errors = program.communicate(timeout=120)
    said = [line for line in errors.splitlines() if not (spec == "ray" and RAY_ITSELF.match(line))]
    assert (program.returncode, out, said) == (130, "", [])
    assert len(_sleepers(tmp_path)) == 2
    assert all(_eventually(lambda pid=pid: _gone(pid)) for pid in _sleepers(tmp_path))


def test_an_interrupt_while_children_start_says_nothing(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-c", SLEEPING, str(tmp_path), "processes:2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stderr is not None
    for line in program.stderr:
        if "multiprocessing.popen_spawn_posix" in line:  # imported at the start of the first child
            break
    os.killpg(program.pid, signal.SIGINT)
    rest = program.stderr.read()
    program.stderr.close()
    assert program.wait(timeout=120) == 130
    assert [line for line in rest.splitlines() if not line.startswith("import time:")] == []


def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    program = _sleeping("processes:2", tmp_path)
    program.kill()
    program.communicate(timeout=120)  # also waits for the children to let go of its pipes
    assert len(_sleepers(tmp_path)) == 2
    assert all(_eventually(lambda pid=pid: _gone(pid)) for pid in _sleepers(tmp_path))


def test_closing_stops_what_still_runs(tmp_path: Path) -> None:
    workers = open_workers("processes:2")
    results = workers.map(parts.note, [(str(tmp_path), 1)])
    assert list(results) == [1]
    workers.close()
    workers.close()
    assert list(workers.map(parts.square, [3])) == [9]
    workers.close()


# The option


@pytest.mark.parametrize("spec", ["", "threads", "serial:2", "processes:", "processes:0", "processes:-1", "processes:٣", "ray:"])
def test_other_texts_are_refused_with_the_option_and_the_forms(spec: str) -> None:
    with pytest.raises(InputError, match=r"^--workers .*: write serial, processes, processes:4, ray, ray:HOST:PORT or ray:auto$"):
        open_workers(spec)


@pytest.mark.parametrize("address", ["host", "host:", "ray://host:10001", "host:6379\n", "-x:1", "a b:1", "host:99999999"])
def test_an_address_of_ray_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InputError, match="ray:HOST:PORT"):
        open_workers(f"ray:{address}")


def test_without_ray_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.workers.registry.find_spec", lambda name: None)
    with pytest.raises(InputError, match=re.escape("pip install 'shiftlog[ray]'")):
        open_workers("ray")


def test_processes_are_one_a_usable_core_unless_told() -> None:
    assert usable_cores() == len(os.sched_getaffinity(0))
    assert open_workers("processes").count == usable_cores()  # type: ignore[attr-defined]
    assert open_workers("processes:3").count == 3  # type: ignore[attr-defined]


# The two heavy steps


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """Six runs of two builds on two accelerators, one of them corrected, one re-used, one record that no reader takes."""
    folder = tmp_path_factory.mktemp("fleet")
    log = EventLog(Store(str(folder / "warehouse")))
    for number in range(1, 7):
        image = f"vllm/vllm-openai:v0.9{number // 4}.0"
        rows = [record for label in ("h200", "b200") for record in sweep(hw=label, image=image, speed=1 + number / 1000)]
        write_run(folder / "runs", number, f"2026-01-{number:02}T06:00:00Z", [*rows, {**row(4), "tp": -1}])
    write_run(folder / "runs", 9, "2026-01-09T06:00:00Z", sweep(hw="h200", image="vllm/vllm-openai:v0.90.0", speed=1.001))
    ingest(log, (str(folder / "runs"),), Declared(), recorded_at=NOW, mirrors=folder, announce=silent, workers="serial")
    refresh(log)
    return log


def test_the_fold_gives_the_same_bytes_wherever_it_runs(
    warehouse: EventLog, any_workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "PART", 17)
    step = table.whole(warehouse, warehouse.last_sequence(), any_workers)
    stored = warehouse.store.read("points")
    assert stored.height == 65
    assert content_hash(step.rows.sort(POINTS.order, maintain_order=True)) == content_hash(stored)


def test_detection_gives_the_same_bytes_wherever_it_runs(
    warehouse: EventLog, any_workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "PART", 10)
    assert len(spans.spans(warehouse.store, NO_LOG, NO_TAGS)) == 2
    there = spans.detect_stored(warehouse.store, any_workers)
    here = detect(warehouse.store.read("points"))
    assert here.diffs.height == 10
    for name in ("noise", "diffs", "shifts"):
        assert content_hash(getattr(there, name)) == content_hash(getattr(here, name))
