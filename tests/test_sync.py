"""`shiftlog sync`: a real repository; GitHub, a package index and a registry on loopback; offline, twice, interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from pipelines.announcing import silent
from pipelines.cli import main
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from tests.records import sweep, write_run
from tests.repositories import Repository
from tests.servers import github, package_index
from tests.servers.registry import TOKEN, Running, running
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECRET = "ghp_marked_token_that_must_not_be_seen"
CUDA = "torch=={}\nflashinfer-python=={}\n"


class World:
    """A vLLM-like repository, its releases, its package, and a warehouse with one measured image of a local registry."""

    def __init__(self, folder: Path, hub: github.GitHub, registry: Running) -> None:
        self.folder, self.hub, self.registry = folder, hub, registry
        self.warehouse = str(folder / "warehouse")
        self.repository = Repository(folder / "vllm-src")
        self.first = self.repository.commit("start (#1)", **{"requirements/cuda.txt": CUDA.format("2.8.0", "0.5.2")})
        self.repository.run("tag", "v0.90.0")
        self.repository.commit("[Kernel] faster MLA (#2)", "vllm/mla.py")
        self.repository.commit("[Deps] flashinfer 0.5.3 (#3)", **{"requirements/cuda.txt": CUDA.format("2.8.0", "0.5.3")})
        self.repository.run("tag", "v0.91.0")
        self.image = registry.ref("vllm/vllm-openai", "v0.90.0")
        self.config = {"os": "linux", "architecture": "amd64", "config": {"Labels": {"ai.vllm.build.commit": self.first}}}
        registry.content.tag("vllm/vllm-openai", "v0.90.0", registry.content.image(self.config))
        run = write_run(folder / "runs", 1, "2026-02-01T06:00:00Z", sweep(image=self.image))
        ingest(self.log(), (str(run),), Declared(), recorded_at=NOW, mirrors=folder / "mirrors", announce=silent)

    def log(self) -> EventLog:
        return EventLog(Store(self.warehouse))

    def sync(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["--warehouse", self.warehouse, "sync", *arguments])

    def upstream(self, *more: str) -> Result:
        return self.sync("upstream", "--project", "vllm", "--from", f"vllm=file://{self.repository.folder}", *more)

    def table(self, name: str) -> pl.DataFrame:
        return self.log().store.read(name)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changelog.web.FIRST_PAUSE", 0.01)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    note = {
        "tag_name": "v0.91.0",
        "name": "v0.91.0",
        "published_at": "2026-01-05T00:00:00Z",
        "body": "## Highlights\n### Performance\n* MLA decode: 18.1% throughput improvement (#2)\n",
        "html_url": "https://github.com/vllm-project/vllm/releases/tag/v0.91.0",
        "draft": False,
        "prerelease": False,
    }
    there = github.Repository(number=7, releases=[note])
    files = {"vllm": [{"filename": "vllm-0.90.0.tar.gz", "upload-time": "2026-01-03T00:00:00Z", "yanked": False}]}
    with (
        github.GitHub(repositories={"vllm-project/vllm": there}) as hub,
        package_index.PackageIndex(files) as index,
        running() as registry,
    ):
        monkeypatch.setenv("GITHUB_API_URL", hub.address)
        monkeypatch.setenv("SHIFTLOG_PACKAGE_INDEX", index.address)
        monkeypatch.setattr("changelog.registry.HUB", registry.registry.host)
        yield World(tmp_path, hub, registry)


def test_everything_upstream_comes_once(world: World) -> None:
    first = world.upstream()
    assert first.exit_code == 0, first.output
    assert world.table("commits").height == 3
    evidence = world.table("releases").select("version", "evidence").rows()
    assert set(evidence) == {("0.90.0", "tag"), ("0.91.0", "tag"), ("0.91.0", "release-note"), ("0.90.0", "upload")}
    pinned = world.table("dependencies").filter(pl.col("version") == "0.91.0").select("dependency", "dependency_version").rows()
    assert set(pinned) == {("torch", "2.8.0"), ("flashinfer", "0.5.3")}
    assert world.table("notes")["prs"].to_list() == [[2]]
    events = world.log().last_sequence()
    second = world.upstream()
    assert second.exit_code == 0 and world.log().last_sequence() == events
    assert "nothing new" in second.stderr


@pytest.mark.parametrize("spelled", ["{}", "file://{}"])
def test_the_notes_that_a_project_keeps_in_its_tree_come_along(world: World, spelled: str) -> None:
    source = Repository(world.folder / "trtllm-src")
    source.run("config", "uploadpack.allowfilter", "true")
    source.run("config", "uploadpack.allowanysha1inwant", "true")
    source.commit(
        "start (#1)", **{"docs/source/release-notes.md": "# Release Notes\n\n## TensorRT-LLM Release 9.1\n\n- Old words.\n"}
    )
    text = "# Release Notes\n\n## TensorRT-LLM Release 9.2\n\n### Highlights\n- MLA decode is 20% faster\n"
    source.commit("[None][doc] notes (#2)", **{"docs/source/release-notes.md": text})
    asked = ("upstream", "--project", "trtllm", "--from", f"trtllm={spelled.format(source.folder)}")
    world.sync(*asked)  # the releases of a repository that the local GitHub does not have are told and cost nothing else
    told = world.table("notes").filter(pl.col("project") == "trtllm").select("version", "text").rows()
    assert [version for version, _text in told] == ["9.2.0"] and "20% faster" in told[0][1]
    events = world.log().last_sequence()
    world.sync(*asked)
    assert world.log().last_sequence() == events


def test_new_commits_are_added(world: World) -> None:
    world.upstream()
    world.repository.commit("[Core] more (#4)", "vllm/x.py")
    world.repository.run("tag", "v0.92.0")
    again = world.upstream()
    assert again.exit_code == 0, again.output
    assert world.table("commits").height == 4 and "0.92.0" in world.table("releases")["version"].to_list()
    assert not world.table("dependencies").filter(pl.col("version") == "0.92.0").is_empty()


def test_what_cannot_be_reached_is_told_and_costs_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API is gone, the mirror's origin is gone: what is here stays, and the exit status says that something was had."""
    world.upstream()
    monkeypatch.setenv("SHIFTLOG_PACKAGE_INDEX", "http://127.0.0.1:9")
    world.repository.folder.rename(world.folder / "away")
    offline = world.upstream()
    assert world.table("commits").height == 3
    assert "cannot be reached" in offline.stderr and "Traceback" not in offline.output


def test_nothing_reachable_and_nothing_here_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_API_URL", "SHIFTLOG_PACKAGE_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    alone = CliRunner().invoke(
        main,
        [
            "--warehouse",
            str(tmp_path / "w"),
            "sync",
            "upstream",
            "--project",
            "vllm",
            "--from",
            f"vllm=file://{tmp_path}/gone.git",
        ],
    )
    assert alone.exit_code == 1 and "Traceback" not in alone.output


def test_the_token_is_sent_and_never_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    told = world.upstream()
    written = [file for file in world.folder.rglob("*") if file.is_file()]
    assert SECRET not in told.output and written
    assert all(SECRET.encode() not in file.read_bytes() for file in written)


def test_images_are_asked_for_and_used(world: World) -> None:
    """The commit in the image's configuration places it; asked again nothing is new; a moved tag is a second fact."""
    world.upstream()
    assert world.sync("images").exit_code == 0
    images = world.table("images")
    assert images.select("image_ref", "commit").rows() == [(world.image, world.first)]
    events = world.log().last_sequence()
    assert world.sync("images").exit_code == 0 and world.log().last_sequence() == events
    told = CliRunner().invoke(main, ["--warehouse", world.warehouse, "build", world.image])
    assert world.first[:9] in told.stdout and "ai.vllm.build.commit" in told.stdout
    moved: dict[str, Any] = {**world.config, "created": "2026-02-02T00:00:00Z"}
    world.registry.content.tag("vllm/vllm-openai", "v0.90.0", world.registry.content.image(moved))
    assert world.sync("images").exit_code == 0
    assert world.table("images")["image_digest"].n_unique() == 2
    again = CliRunner().invoke(main, ["--warehouse", world.warehouse, "build", world.image])
    assert "the tag moved 1 time" in again.stdout
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in world.folder.rglob("*") if file.is_file())


def test_a_registry_that_refuses_is_unknown_for_now(world: World) -> None:
    world.registry.content.private = True
    told = world.sync("images")
    assert "refused" in told.stderr and "Traceback" not in told.output
    assert world.table("images").is_empty()


def test_wrong_usage_is_one_line(world: World, tmp_path: Path) -> None:
    for arguments, words in (
        (("upstream", "--project", "nonsense"), "nonsense"),
        (("upstream", "--from", "vllm"), "NAME=FOLDER"),
        (("upstream", "--project", "vllm", "--since", "yesterday"), "--since"),
    ):
        wrong = world.sync(*arguments)
        assert wrong.exit_code == 2 and words in wrong.stderr and len(wrong.stderr.strip().splitlines()) == 1
    empty = CliRunner().invoke(main, ["--warehouse", str(tmp_path / "empty"), "sync", "images"])
    assert empty.exit_code == 2 and "ingest results first" in empty.stderr


def test_a_place_for_what_is_not_synced_is_refused(world: World) -> None:
    told = world.upstream("--from", "sglang=/tmp")
    assert told.exit_code == 2 and "sglang is not among what is synced" in told.stderr


def test_killed_in_the_middle_it_goes_on(world: World) -> None:
    """kill -9 while the mirror is being made or read: the next sync has everything, once."""
    command = [sys.executable, "-c", "from pipelines.cli import main; main()", "--warehouse", world.warehouse, "sync", "upstream"]
    place = ["--project", "vllm", "--from", f"vllm=file://{world.repository.folder}"]
    for seconds in (0.9, 1.5):
        process = subprocess.Popen([*command, *place], env=os.environ, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    done = world.upstream()
    assert done.exit_code == 0, done.output
    assert world.table("commits").height == 3 and world.table("releases").height == 4
    ids = world.log().read("CommitLanded")["event_id"]
    assert ids.n_unique() == ids.len()
