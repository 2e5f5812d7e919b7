"""The sample's git repositories, looked at with git itself, and the notes beside them."""

import json
import os
import shutil
import subprocess

import pytest

from pipelines.demo.history import pr_of, read_history
from pipelines.demo.upstream import PROJECTS, write_project
from warehouse.errors import UpstreamError


def git(repository, *arguments):
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.rstrip("\n")


def subjects(repository, revision):
    text = git(repository, "log", "--format=%s", revision)
    return text.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("upstream")
    for project in PROJECTS:
        write_project(target, read_history(project))
    return target


def prs(repository, revision):
    return {pr_of(subject) for subject in subjects(repository, revision)}


def test_tags_are_annotated_and_light(folder):
    def tags(project):
        return git(folder / project, "for-each-ref", "--format=%(objecttype) %(refname:short)", "refs/tags").splitlines()

    assert tags("vllm") == ["tag v0.90.0", "tag v0.91.0", "commit v0.92.0"]
    assert tags("sglang") == ["commit v0.9.0", "tag v0.9.1", "commit v0.9.2"]
    assert tags("trtllm") == ["commit v9.0.0rc1", "tag v9.0.0rc2"]


@pytest.mark.parametrize("project", PROJECTS)
def test_repositories_are_sound_and_dated(folder, project):
    git(folder / project, "fsck", "--strict")
    count = int(git(folder / project, "rev-list", "--count", "main"))
    assert 40 <= count <= 80
    dates = git(folder / project, "log", "--reverse", "--format=%cI", "main").splitlines()
    assert dates == sorted(dates)
    assert dates[0].startswith("2025-12-02")
    assert dates[-1].startswith("2026-02-2")
    assert set(git(folder / project, "log", "--all", "--format=%an <%ae>").splitlines()) == {
        "Sample Author <sample.author@example.invalid>"
    }


def test_regression_is_between_its_two_tags(folder):
    repository = folder / "vllm"
    assert 90157 in prs(repository, "v0.91.0..v0.92.0")
    assert 90157 not in prs(repository, "v0.91.0")
    commit = git(repository, "log", "--all", "--format=%H", "--grep=(#90157)")
    paths = git(repository, "show", "--format=", "--name-only", commit).splitlines()
    assert "vllm/platforms/rocm.py" in paths


def test_speedup_was_picked_into_the_release_branch(folder):
    """The tag is not on main; the pick has the pull request and the paths of its twin, and another hash."""
    repository = folder / "sglang"
    found = git(repository, "log", "--all", "--format=%H", "--grep=(#80110)").splitlines()
    assert len(found) == 2
    pick = git(repository, "log", "--format=%H", "--grep=(#80110)", "v0.9.1")
    twin = git(repository, "log", "--format=%H", "--grep=(#80110)", "main")
    assert {pick, twin} == set(found)
    assert pick != twin
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge-base", "--is-ancestor", "v0.9.1", "main")
    same = "--format=%s%n%aI"
    assert git(repository, "show", same, "--name-only", pick) == git(repository, "show", same, "--name-only", twin)
    assert 80110 in prs(repository, "v0.9.0..v0.9.1")
    assert 80114 not in prs(repository, "v0.9.1")  # the next one on main did not get in


@pytest.mark.parametrize("project", PROJECTS)
def test_every_pick_is_on_main_too(folder, project):
    main = prs(folder / project, "main")
    for release in read_history(project).releases:
        own = prs(folder / project, f"main..{release.tag}")
        bump = {release.bump.pr} if release.bump else set()
        assert own == set(release.picks) | bump
        assert set(release.picks) <= main


@pytest.mark.parametrize("project", PROJECTS)
def test_pull_requests_are_unique_on_main_and_reverts_name_theirs(folder, project):
    lines = subjects(folder / project, "main")
    assert len({pr_of(line) for line in lines}) == len(lines)
    assert any("revert" in line.lower() for line in lines)


def test_notes_have_github_shape_and_mention_the_causes(folder):
    keys = {"tag_name", "name", "published_at", "body", "html_url", "prerelease", "draft"}
    for project in PROJECTS:
        notes = json.loads((folder / f"{project}_releases.json").read_text())
        tags = git(folder / project, "for-each-ref", "--format=%(refname:short)", "refs/tags").splitlines()
        assert sorted(note["tag_name"] for note in notes) == tags
        assert all(set(note) == keys and "GENERATED SAMPLE" in note["body"] for note in notes)
        assert all(note["html_url"].startswith("https://example.invalid/") for note in notes)
        assert [note["published_at"] for note in notes] == sorted((note["published_at"] for note in notes), reverse=True)
    lists = [json.loads((folder / f"{project}_releases.json").read_text()) for project in ("vllm", "sglang")]
    body = {note["tag_name"]: note["body"] for notes in lists for note in notes}
    assert "#90157" in body["v0.92.0"]
    assert "#80110" in body["v0.9.1"]
    assert "#80110" not in body["v0.9.2"]  # its main-line twin lies behind the branch point, but it was shipped already


def test_hashes_do_not_depend_on_the_users_git(folder, tmp_path, monkeypatch):
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n name = Someone\n[init]\n defaultBranch = trunk\n[core]\n autocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    for project in PROJECTS:
        write_project(tmp_path / "again", read_history(project))
        refs = "for-each-ref"
        assert git(tmp_path / "again" / project, refs) == git(folder / project, refs)
        assert git(tmp_path / "again" / project, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert not (tmp_path / "elsewhere").exists()


def test_missing_git_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UpstreamError, match="install git"):
        write_project(tmp_path, read_history("vllm"))
