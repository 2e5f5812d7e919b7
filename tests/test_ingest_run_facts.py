"""What stands beside results, from files to tables: jobs, recipe entries, runs of a day, results that another run measured.

Values are worked out by hand. Not here: the shapes of these files (`test_ingest_inferencex_run`).
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import following, projections
from pipelines.ingest import run_facts
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.json_text import Fault, LeftOut
from pipelines.ingest.runs import read_run
from pipelines.ingest.sides import Declared
from pipelines.summaries import say_intake
from pipelines.verification import verify
from tests.lengths import either
from tests.records import row, run_object
from warehouse.events import JobsCounted, RecipeChanged, RunReported
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 7, 1, tzinfo=UTC)
STARTED = "2026-06-14T06:00:00Z"
MEASURED = datetime(2026, 6, 12, 3, tzinfo=UTC)
CLOCK = 1781236800  # 2026-06-12T04:00:00Z
REPOSITORY = "SemiAnalysisAI/InferenceX"
STATS = {"h200-cw_0": {"n_success": 3, "total": 4}, "mi355x": {"n_success": 0, "total": 0}}
ENTRY: dict[str, Any] = {
    "config-keys": ["dsr1-fp8-h200-vllm"],
    "description": ["Update the image\u202e", "and\na flag"],
    "pr-link": "https://github.com/SemiAnalysisAI/InferenceX/pull/1",
    "append-only": True,
    "scenario-type": ["fixed-seq-len"],
}
CHANGES = {"base_ref": "b" * 40, "head_ref": "c" * 40, "entries": [ENTRY, {**ENTRY, "config-keys": ["dsr1-fp4-*"]}]}
INFO: dict[str, Any] = {
    "runs": [
        {
            "github_run_id": "7",
            "name": "Run Sweep",
            "conclusion": "success",
            "run_attempt": 1,
            "html_url": f"https://github.com/{REPOSITORY}/actions/runs/7",
            "created_at": "2026-06-14T05:59:00Z",
            "date": "2026-06-14",
        }
    ],
    "changelogs": [
        {
            "workflow_run_id": "7",
            "date": "2026-06-14",
            "base_ref": "b" * 40,
            "head_ref": "c" * 40,
            "config_keys": ["dsr1-fp8-h200-vllm"],
            "description": "Update the image\nand\na flag",
            "pr_link": "https://github.com/SemiAnalysisAI/InferenceX/pull/1",
        }
    ],
    "configs": [],
}
DAYS = [
    {"hardware": "mi300x", "date": "2026-06-14", "n_success": 16, "total": 16},
    {"hardware": "mi300x", "date": "2026-06-14", "n_success": 16, "total": 16},
    {"hardware": "b200", "date": "2026-06-14", "n_success": 0, "total": 0},
]
REUSE = {
    "source_run_id": "6",
    "source_run_attempt": "2",
    "source_run_url": f"https://github.com/{REPOSITORY}/actions/runs/6",
    "ingest_run_id": "7",
}
UNDATED = "no run time: put the run's run.json beside it or pass --measured-at TIME"
HANDED_ON = (
    f"measured by run 6 of {REPOSITORY} and handed on (reuse_source_run.json); it has no time of its own: "
    "ingest that run's own artifacts, or declare measured_at for it"
)


def run(number: int = 7, **overrides: Any) -> dict[str, Any]:
    return run_object(number, STARTED, repository={"full_name": REPOSITORY}, updated_at="2026-06-14T09:00:00Z", **overrides)


def put(path: Path, value: Any) -> Path:
    """Write *value* as JSON, or as a .zip of members where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, member in value.items():
                archive.writestr(name, json.dumps(member))
        path.write_bytes(buffer.getvalue())
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def artifacts(folder: Path) -> Path:
    """Write a run as GitHub serves it: every artifact a .zip of its own, beside the run object."""
    put(folder / "run.json", run())
    put(folder / "results_bmk.zip", {"agg_bmk.json": [row(4), row(8)]})
    for concurrency in (4, 8):
        put(folder / f"bmk_h200_{concurrency}.zip", {f"agg_h200_{concurrency}.json": row(concurrency)})
    put(folder / "run-stats.zip", {"run_stats.json": STATS})
    put(folder / "changelog-metadata.zip", {"changelog_metadata.json": CHANGES})
    return folder


def take(log: EventLog, *paths: Path, measured_at: datetime | None = None, **declared: str) -> Intake:
    told = Declared(measured_at, declared)
    names = tuple(str(path) for path in paths)
    mirrors = Path(log.store.uri) / "mirrors"
    intake = ingest(log, names, told, recorded_at=NOW, mirrors=mirrors, announce=lambda _name: None, workers="serial")
    following.refresh(log)
    return intake


def reasons(intake: Intake) -> list[tuple[str, str, str]]:
    return [(Path(fault.name).name, fault.position, fault.reason) for fault in intake.quarantined]


def jobs(log: EventLog) -> list[tuple[Any, ...]]:
    columns = ("run_id", "run_attempt", "day", "occurrence", "label", "hardware", "succeeded", "total")
    return log.store.read("jobs").select(columns).rows()


def points(log: EventLog) -> list[tuple[Any, ...]]:
    frame = log.store.read("points").sort("concurrency")
    return frame.select("concurrency", "run_id", "run_attempt", "measured_at").rows()


def test_a_run_as_github_serves_it(log: EventLog, tmp_path: Path) -> None:
    intake = take(log, artifacts(tmp_path / "run"))
    assert reasons(intake) == [] and intake.ignored == []
    new = {"RunReported": 1, "ResultRecorded": 2, "JobsCounted": 1, "RecipeChanged": 2, "FileRead": 5}
    assert dict(intake.new) == new, "results_bmk and bmk_* are the same points once"
    assert [entry[:2] for entry in points(log)] == [(4, "7"), (8, "7")]
    assert jobs(log) == [("7", 1, None, 1, "h200-cw_0", "h200", 3, 4)]
    recipes = log.store.read("recipes").to_dicts()
    assert [entry["config_keys"] for entry in recipes] == [["dsr1-fp4-*"], ["dsr1-fp8-h200-vllm"]]
    assert recipes[1] == {
        "run_source": REPOSITORY,
        "run_id": "7",
        "run_attempt": 1,
        "base_ref": "b" * 40,
        "head_ref": "c" * 40,
        "config_keys": ["dsr1-fp8-h200-vllm"],
        "description": ["Update the image", "and", "a flag"],
        "pr_link": "https://github.com/SemiAnalysisAI/InferenceX/pull/1",
        "kind": "recipe",
        "append_only": True,
        "evals_only": False,
        "scenario_types": ["fixed-seq-len"],
        "added_at": None,
        "added_in": None,
        "dated_by": None,
        "touched": None,
        "recorded_at": NOW,
    }
    again = take(log, tmp_path / "run")
    assert dict(again.new) == {} and again.read["JobsCounted"] == 1, "members of archives are read again and add nothing"
    assert verify(log) == []


def test_facts_say_where_and_when(log: EventLog, tmp_path: Path) -> None:
    take(log, artifacts(tmp_path / "run"))
    told = log.read("JobsCounted", "RecipeChanged").sort("event_type", "source_position")
    assert told.select("subject", "source_name", "source_position", "source_reader").rows() == [
        (f"run:{REPOSITORY}/7/1", "run/run-stats.zip!run_stats.json", "/h200-cw_0", "inferencex-run-stats"),
        *(
            (
                "recipe:" + "c" * 40,
                "run/changelog-metadata.zip!changelog_metadata.json",
                f"/entries/{n}",
                "inferencex-changelog-metadata",
            )
            for n in (0, 1)
        ),
    ]
    assert told["occurred_at"].unique().to_list() == [datetime(2026, 6, 14, 6, tzinfo=UTC)]


@pytest.mark.parametrize(("name", "value"), [("run_stats.json", STATS), ("changelog_metadata.json", CHANGES)])
def test_a_file_that_names_no_run_waits_for_one(log: EventLog, tmp_path: Path, name: str, value: Any) -> None:
    path = put(tmp_path / "in" / name, value)
    assert reasons(take(log, path)) == [(name, "", UNDATED)]
    assert log.store.count("quarantine") == 1
    declared = take(log, path, measured_at=MEASURED)
    assert (declared.new["RunReported"], reasons(declared)) == (1, [])
    assert log.store.count("quarantine") == 0
    assert log.store.read("runs")["run_id"].to_list() == ["at-2026-06-12T03:00:00Z"]
    put(path.parent / "run.json", run())
    take(log, path.parent)
    table = "jobs" if name == "run_stats.json" else "recipes"
    assert set(log.store.read(table)["run_id"]) == {"7", "at-2026-06-12T03:00:00Z"}


def test_a_file_that_was_read_whole_is_passed_over(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "in"
    for name, value in {"run.json": run(), "run_stats.json": STATS, "changelog_metadata.json": CHANGES}.items():
        put(root / name, value)
    assert take(log, root).known == 0
    assert take(log, root).known == 2


def test_one_bad_entry_costs_no_other(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "in"
    put(root / "run.json", run())
    put(root / "run_stats.json", {"a/b": {"n_success": 5, "total": 4}, "h200": {"n_success": 1, "total": 1}})
    put(root / "changelog_metadata.json", {**CHANGES, "entries": [{**ENTRY, "description": 5}, ENTRY]})
    put(root / "workflow-info.json", {**INFO, "runs": [*INFO["runs"], {"html_url": "x"}], "changelogs": [{}]})
    put(root / "reliability.json", [*DAYS, {"hardware": 5}])
    intake = take(log, root)
    assert reasons(intake) == [
        ("changelog_metadata.json", "/entries/0", "description: a list of at most 10000 entries is wanted"),
        ("reliability.json", "/3", "hardware: a text of 1 to 20000 characters is wanted"),
        ("run_stats.json", "/a~1b", "a/b.n_success: 5 of 4 jobs"),
        ("workflow-info.json", "/runs/1", "html_url: 'x' is no address of a run on GitHub"),
        ("workflow-info.json", "/changelogs/0", "base_ref: a text of 1 to 20000 characters is wanted"),
    ]
    assert (intake.new["JobsCounted"], intake.new["RecipeChanged"], "FileRead" in intake.new) == (3, 1, False)


def test_jobs_of_all_attempts_are_counted_once(log: EventLog, tmp_path: Path) -> None:
    """`run_stats.json` of a later attempt holds the jobs of the earlier ones as well."""
    for attempt, total in ((2, 6), (1, 4)):
        put(tmp_path / f"{attempt}" / "run.json", run(run_attempt=attempt))
        put(tmp_path / f"{attempt}" / "run_stats.json", {"h200": {"n_success": 3, "total": total}})
    take(log, tmp_path / "2")
    take(log, tmp_path / "1")
    assert jobs(log) == [("7", 2, None, 1, "h200", "h200", 3, 6)]


def test_a_run_without_a_job_is_left_out(log: EventLog, tmp_path: Path) -> None:
    put(tmp_path / "in" / "run.json", run())
    put(tmp_path / "in" / "run_stats.json", {"h200": {"n_success": 0, "total": 0}})
    intake = take(log, tmp_path / "in")
    assert intake.ignored == ["in/run_stats.json (counts no job)"] and log.store.count("jobs") == 0


def test_days_with_equal_numbers_stay_two(log: EventLog, tmp_path: Path) -> None:
    """The API tells no runs: two of one day with 16 jobs each are two; asked again there is a third."""
    take(log, put(tmp_path / "reliability.json", DAYS))
    two = [(None, None, "2026-06-14", n, "mi300x", "mi300x", 16, 16) for n in (1, 2)]
    assert jobs(log) == two
    later = take(log, put(tmp_path / "later.json", [{**DAYS[0], "total": 20}, *reversed(DAYS)]))
    assert later.new["JobsCounted"] == 1
    assert jobs(log) == [*two, (None, None, "2026-06-14", 1, "mi300x", "mi300x", 16, 20)]


def test_the_runs_own_file_holds_against_the_api(log: EventLog, tmp_path: Path) -> None:
    info = put(tmp_path / "api" / "workflow-info.json", INFO)
    take(log, info)
    held = log.store.read("runs").select("run_id", "name", "started_at", "created_at", "declared").rows()
    made = datetime(2026, 6, 14, 5, 59, tzinfo=UTC)
    assert held == [("7", "Run Sweep", made, made, False)]
    recipe = log.store.read("recipes").to_dicts()[0]
    assert (recipe["run_id"], recipe["description"]) == ("7", ["Update the image", "and", "a flag"])
    assert (recipe["append_only"], recipe["evals_only"], recipe["scenario_types"]) == (None, None, None)
    take(log, artifacts(tmp_path / "run"))
    assert log.store.read("runs").select("name", "started_at").rows() == [("Test Sweep", datetime(2026, 6, 14, 6, tzinfo=UTC))]
    recipes = log.store.read("recipes")
    assert recipes["append_only"].to_list() == [True, True], "the run's own file tells more of the same entry"


def test_an_entry_of_no_run_of_the_answer_is_told(log: EventLog, tmp_path: Path) -> None:
    path = put(tmp_path / "info.json", {**INFO, "changelogs": [{**INFO["changelogs"][0], "workflow_run_id": "8"}]})
    assert reasons(take(log, path)) == [("info.json", "/changelogs/0", "workflow_run_id: 8 is none of the runs of this answer")]


PARTS = ("run", "info.json", "days.json")


def test_the_order_of_reading_is_no_matter(tmp_path: Path) -> None:
    artifacts(tmp_path / "in" / "run")
    put(tmp_path / "in" / "info.json", INFO)
    put(tmp_path / "in" / "days.json", DAYS)
    tables = []
    for number, order in enumerate(list(itertools.permutations(PARTS))[:: either(2, 1)]):
        log = EventLog(Store(str(tmp_path / f"w{number}")))
        for part in order:
            take(log, tmp_path / "in" / part)
        read = {name: log.store.read(name) for name in ("jobs", "recipes", "runs", "points")}
        tables.append({name: frame.drop("sequence", strict=False) for name, frame in read.items()})
        hashes = projections.rebuild(log, NOW)
        assert [name for name, (before, after) in hashes.items() if name in read and before != after] == []
    for other in tables[1:]:
        for name, frame in tables[0].items():
            assert frame.equals(other[name]), name


def test_an_index_is_left_out(log: EventLog, tmp_path: Path) -> None:
    keys = ("model", "precision", "hardware", "framework", "spec_method")
    index = [{**dict.fromkeys(keys, "x"), "isl": 1024, "osl": 1024, "disagg": False, "date": "2026-06-14"}]
    intake = take(log, put(tmp_path / "availability.json", index))
    assert intake.ignored == ["availability.json (an index of what is published; the rows are in /benchmarks)"]
    assert intake.quarantined == [] and dict(intake.new) == {}


def test_what_is_said_of_an_ingest(log: EventLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say_intake(take(log, artifacts(tmp_path / "run")))
    said = capsys.readouterr().err + capsys.readouterr().out
    assert "read 1 run, 4 points, 1 job count, 2 recipe changes from 6 files" in said


REUSED = [
    pytest.param("reused-ingest-metadata.zip", {"reuse_source_run.json": REUSE}, id="artifact"),
    pytest.param("x/reuse_source_run.json", REUSE, id="folder"),
    pytest.param("reuse_source_run.json", REUSE, id="beside"),
]


@pytest.mark.parametrize(("name", "value"), REUSED)
def test_results_that_another_run_measured_get_no_time_of_the_one_that_handed_them_on(
    log: EventLog, tmp_path: Path, name: str, value: Any
) -> None:
    root = tmp_path / "run"
    put(root / "run.json", run())
    put(root / "results_bmk.zip", {"agg_bmk.json": [row(4), row(8, benchmark_start_time_unix=CLOCK)]})
    put(root / "run_stats.json", STATS)
    put(root / name, value)
    intake = take(log, root)
    assert reasons(intake) == [("results_bmk.zip!agg_bmk.json", "/0", HANDED_ON)]
    assert points(log) == [(8, "7", 1, datetime(2026, 6, 12, 4, tzinfo=UTC))]
    assert jobs(log)[0][0] == "7", "jobs are those of the run that handed on"


@pytest.mark.parametrize("sidecar", [True, False])
def test_what_is_declared_dates_what_was_handed_on(log: EventLog, tmp_path: Path, sidecar: bool) -> None:
    root = tmp_path / "run"
    put(root / "run.json", run())
    put(root / "agg_bmk.json", [row(4), row(8)])
    put(root / "run_stats.json", STATS)
    put(root / "reused.zip", {"reuse_source_run.json": REUSE})
    assert len(reasons(take(log, root))) == 2
    if sidecar:
        put(root / "shiftlog.yaml", "measured_at: 2026-06-12T03:00:00Z\n")
    intake = take(log, root) if sidecar else take(log, root, measured_at=MEASURED)
    assert reasons(intake) == [] and log.store.count("quarantine") == 0
    assert points(log) == [(4, "6", 2, MEASURED), (8, "6", 2, MEASURED)], "of the run that measured, whose number is known"
    assert {entry[0] for entry in jobs(log)} == {"7"}
    source = tmp_path / "source"
    put(source / "run.json", run(6, run_attempt=2))
    put(source / "agg_bmk.json", [row(4), row(8)])
    assert take(log, source).new["ResultRecorded"] == 0, "its own artifacts are the same records of the same run"


def test_a_declared_number_of_a_run_is_used(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "run"
    put(root / "run.json", run())
    put(root / "agg_bmk.json", [row(4)])
    put(root / "reuse_source_run.json", REUSE)
    take(log, root, measured_at=MEASURED, run_id="5", run_source="lab")
    assert points(log) == [(4, "5", 1, MEASURED)]


def test_the_measuring_runs_own_folder_is_dated_by_it(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "run"
    put(root / "run.json", run(6))
    put(root / "agg_bmk.json", [row(4)])
    put(root / "reuse_source_run.json", REUSE)
    assert reasons(take(log, root)) == [] and [entry[:2] for entry in points(log)] == [(4, "6")]


def test_what_lies_elsewhere_was_not_handed_on(log: EventLog, tmp_path: Path) -> None:
    for number in (7, 8):
        put(tmp_path / "in" / str(number) / "run.json", run(number))
        put(tmp_path / "in" / str(number) / "a" / "agg.json", [row(number)])
    put(tmp_path / "in" / "7" / "b" / "reuse_source_run.json", REUSE)
    intake = take(log, tmp_path / "in")
    assert [entry[0] for entry in points(log)] == [8] and len(intake.quarantined) == 1


def test_without_a_run_it_counts_in_its_own_folder(log: EventLog, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a" / "agg.json", [row(4)])
    put(tmp_path / "in" / "a" / "reuse_source_run.json", REUSE)
    put(tmp_path / "in" / "b" / "agg.json", [row(8)])
    assert [entry[2] for entry in reasons(take(log, tmp_path / "in"))] == [HANDED_ON, UNDATED]


@pytest.mark.parametrize("damage", ["{", "[]", {"source_run_id": "x"}, {}])
def test_a_damaged_one_keeps_undated_results_waiting(log: EventLog, tmp_path: Path, damage: Any) -> None:
    root = tmp_path / "run"
    put(root / "run.json", run())
    put(root / "agg_bmk.json", [row(4), row(8, benchmark_start_time_unix=CLOCK)])
    put(root / "reuse_source_run.json", damage)
    ((name, place, reason),) = reasons(take(log, root))
    assert (name, place) == ("agg_bmk.json", "/0")
    assert reason.startswith("reuse_source_run.json tells that another run measured this, and cannot be read (")
    assert [entry[0] for entry in points(log)] == [8]


def test_one_that_comes_later_is_another_context(log: EventLog, tmp_path: Path) -> None:
    """What was dated wrong stands (retract it); the file is not passed over."""
    root = tmp_path / "run"
    put(root / "run.json", run())
    put(root / "agg_bmk.json", [row(4)])
    take(log, root)
    put(root / "reuse_source_run.json", REUSE)
    intake = take(log, root)
    assert (intake.known, reasons(intake)) == (0, [("agg_bmk.json", "/0", HANDED_ON)])


def test_evaluations_that_were_handed_on_wait_as_well(log: EventLog, tmp_path: Path) -> None:
    root = tmp_path / "run"
    evaluation = {
        "task": "gsm8k",
        "hw": "H200",
        "framework": "vllm",
        "model_prefix": "dsr1",
        "precision": "fp8",
        "tp": 8,
        "ep": 1,
        "conc": 64,
        "em_strict": 0.95,
        "n_eff": 1319,
        "source": "eval_x/results_2026-06-12T04-00-00.000000.json",
    }
    put(root / "run.json", run())
    put(root / "agg_eval_all.json", [evaluation])
    put(root / "reuse_source_run.json", REUSE)
    assert [entry[2] for entry in reasons(take(log, root))] == [HANDED_ON]
    assert reasons(take(log, root, timezone="UTC")) == [], "the name of its file is its clock"
    assert log.store.read("evals")["measured_at"].unique().to_list() == [datetime(2026, 6, 12, 4, tzinfo=UTC)]


def test_a_side_file_alone_in_an_archive(log: EventLog, tmp_path: Path) -> None:
    """`meta_env.json` at the root of a .zip is known by its name, too."""
    root = tmp_path / "run"
    meta = {"hw": "H200", "infmax_model_prefix": "dsr1", "spec_decoding": "none", "prefill_tp": 8, "conc": 64, "isl": "1024"}
    put(root / "run.json", run())
    put(root / "eval.zip", {"meta_env.json": meta, "agg_bmk.json": [row(4)]})
    assert reasons(take(log, root)) == []


OF_RUN = read_run(run())
VALUES: list[Any] = [STATS, CHANGES, INFO, DAYS]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([10**400, "nan", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n_success", "total", "date"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(VALUES), st.data())
def test_anything_gives_facts_or_faults(value: Any, data: st.DataObject) -> None:
    """A part of a file replaced by anything: what is still recognised raises nothing, and what it tells can be kept."""
    mutated = json.loads(json.dumps(value))
    place = data.draw(st.sampled_from(list(_places(mutated))))
    changed = _put(mutated, place, data.draw(ANYTHING))
    kind = run_facts.recognise(changed)
    for told in kind.facts(changed, OF_RUN if kind.of_run else None) if kind else ():
        if isinstance(told, Fault | LeftOut):
            assert told.reason
        else:
            assert isinstance(told.payload, JobsCounted | RecipeChanged | RunReported)
            told.payload.model_dump_json().encode()
            assert told.occurred_at.tzinfo is not None


def _places(value: Any) -> Any:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (key,)
        yield from ((key, *below) for below in _places(child))


def _put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    return value


def test_the_real_answers_of_the_api(log: EventLog, shared_data: Path) -> None:
    intake = take(log, shared_data / "inferencex" / "api")
    assert intake.quarantined == []
    assert intake.ignored == ["api/availability.json (an index of what is published; the rows are in /benchmarks)"]
    assert (log.store.count("jobs"), log.store.count("recipes")) == (36, 3)
    assert (log.store.count("points"), log.read("EvalRecorded").height) == (145, 133)
    made = log.store.read("runs").filter(pl.col("name").is_not_null())
    assert made["run_id"].to_list() == ["27485974465", "27487999691", "27489075807"]
    assert dict(take(log, shared_data / "inferencex" / "api").new) == {}
    assert verify(log) == []
