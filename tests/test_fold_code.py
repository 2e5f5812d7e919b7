"""The number of the code that made a table: it changes with every byte that its rows follow from, and nobody forgets a module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from changelog import tables as upstream_tables
from pipelines import following, projections
from pipelines.fold import code
from pipelines.fold import table as points_table
from tests.frames import START
from tests.records import row
from warehouse.code import version
from warehouse.events import CommitLanded, ResultRecorded, RunKey, Source, event_of
from warehouse.log import EventLog

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("warehouse", "changelog", "pipelines")
STORAGE = {f"warehouse.{name}" for name in ("store", "log", "subjects", "code", "errors")}
"""Where rows lie, not what they are."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of its own that can be found, with two sources and a folder."""
    folder = tmp_path / "weighed"
    (folder / "deep").mkdir(parents=True)
    for name in ("__init__.py", "one.py", "two.py", "deep/data.toml", "deep/more.py"):
        (folder / name).write_text(f"# {name}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def number(*sources: str) -> int:
    """Return the version, read anew: a process reads its sources once, because they do not change under it."""
    return int(version.__wrapped__(sources))


def test_the_number_follows_the_bytes_of_its_sources_and_nothing_else(package: Path) -> None:
    sources = ("weighed/one.py", "weighed/deep")
    first = number(*sources)
    assert 0 <= first < 2**48 and number(*sources) == first
    (package / "two.py").write_text("# another module\n")
    (package / "deep" / "notes.txt").write_text("no source")
    (package / "deep" / "__pycache__").mkdir()
    (package / "deep" / "__pycache__" / "more.cpython-311.pyc").write_bytes(b"x")
    assert number(*sources) == first
    seen = {first}
    for name, text in (("one.py", "# one.py \n"), ("deep/data.toml", "# x\n"), ("deep/more.py", "")):
        (package / name).write_text(text)
        seen.add(number(*sources))
    (package / "deep" / "more.py").rename(package / "deep" / "other.py")
    seen.add(number(*sources))
    assert len(seen) == 5


def test_the_sources_that_are_named_exist() -> None:
    for source in (*code.FACTS, *code.DETECTION, *upstream_tables.SOURCES):
        assert (ROOT / source).exists(), source


def file_of(module: str) -> Path | None:
    path = ROOT / Path(*module.split("."))
    return next((found for found in (path.with_suffix(".py"), path / "__init__.py") if found.is_file()), None)


def imported(path: Path) -> set[str]:
    """Return the modules of ours that a source imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] in ROOMS and file_of(name)}


def closure(*packages: str) -> set[str]:
    """Return the files that the modules of some packages (or single modules) import, storage and workers left out."""
    start = {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
        for package in packages
        for path in ((ROOT / package).rglob("*.py") if (ROOT / package).is_dir() else [ROOT / package])
    }
    found: set[str] = set()
    todo = sorted(start)
    while todo:
        module = todo.pop()
        path = file_of(module)
        skipped = module in STORAGE or module.startswith("pipelines.workers")
        if module in found or path is None or skipped:
            continue
        found.add(module)
        if module != "pipelines.fold.code":  # it names sources, and no row follows from it
            todo += sorted(imported(path))
    return {str(path.relative_to(ROOT)) for module in found if (path := file_of(module)) and path.read_text("utf-8").strip()}


def uncovered(files: set[str], sources: tuple[str, ...]) -> list[str]:
    """Return the files that no source covers; a package's own file that only says what the package is does not count."""

    def says_only(file: str) -> bool:
        body = ast.parse((ROOT / file).read_text("utf-8")).body
        return file.endswith("__init__.py") and all(isinstance(node, ast.Expr) for node in body)

    covered = {file for file in files for source in sources if file == source or file.startswith(f"{source}/")}
    return sorted(file for file in files - covered if not says_only(file))


def test_every_module_that_the_fold_imports_counts() -> None:
    files = closure("pipelines/fold")
    assert {"warehouse/vocabulary.py", "pipelines/ingest/tools/inferencex.py", "pipelines/detect/health.py"} <= files
    assert uncovered(files, code.FACTS) == []


def test_every_module_that_detection_imports_counts() -> None:
    files = closure("pipelines/detect", "pipelines/statements.py", "changelog/linking.py")
    assert {"pipelines/detect/lifecycle.py", "changelog/ranges.py"} <= files
    assert uncovered(files, code.DETECTION) == []


def test_data_files_count() -> None:
    assert uncovered({str(path.relative_to(ROOT)) for path in (ROOT / "warehouse" / "data").iterdir()}, code.FACTS) == []
    assert uncovered({str(path.relative_to(ROOT)) for path in (ROOT / "changelog" / "data").iterdir()}, code.DETECTION) == []


@pytest.fixture
def folded(log: EventLog) -> EventLog:
    """A log with a result and a commit, and its tables."""
    told = (
        ResultRecorded(run=RunKey(run_source="local", run_id="1"), record_format="inferencex", record=row(4)),
        CommitLanded(
            project="vllm", commit="a" * 40, author_date="2026-01-01T00:00:00Z", committer_date="2026-01-01T00:00:00Z", title="t"
        ),
    )
    log.append(event_of(payload, occurred_at=START, recorded_at=START, source=Source(name="t")) for payload in told)
    following.refresh(log)
    assert following.refresh(log) == []
    return log


def test_tables_of_other_code_are_made_again_once(folded: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: folded.store.read(name) for name in following.FACTS}
    versions = {name: folded.store.version(name) for name in (*following.FACTS, *following.UPSTREAM)}
    monkeypatch.setattr(points_table, "version", lambda _sources: 7)
    assert set(following.refresh(folded)) == set(following.FACTS)
    assert following.refresh(folded) == []
    for name in following.FACTS:
        assert folded.store.read(name).equals(before[name])
        mark = folded.store.mark(name)
        assert mark is not None and mark.code == 7
        assert folded.store.version(name) == (versions[name] or 0) + 1
    for name in following.UPSTREAM:
        assert folded.store.version(name) == versions[name], "theirs did not change"


def test_upstream_tables_of_other_code_are_made_again_once(folded: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_tables, "version", lambda _sources: 8)
    assert set(following.refresh(folded)) == set(following.UPSTREAM)
    assert following.refresh(folded) == []
    assert folded.store.read("commits")["title"].to_list() == ["t"]


def test_a_detection_by_other_code_is_not_current(folded: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    projections.run_detection(folded, START)
    assert projections.is_detection_current(folded)
    monkeypatch.setattr(projections, "version", lambda _sources: 9)
    assert not projections.is_detection_current(folded)
    projections.run_detection(folded, START)
    assert projections.is_detection_current(folded)
