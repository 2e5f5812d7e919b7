"""Real repositories made with git: branches, picks, tags, odd subjects and paths, mirrors, and what must not run."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from changelog.facts import MAX_PATHS, UpstreamFact, UpstreamFault
from changelog.git import is_url, mirror_folder, read_repository
from changelog.ranges import Range, find_range
from changelog.tables import EVENT_OF_TABLE, read_table
from changelog.upstream import open_upstream
from warehouse.errors import InputError, UpstreamError
from warehouse.events import CommitLanded, ReleasePublished, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}


class Repository:
    """A repository that is written to one command at a time, a day apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = 0
        folder.mkdir(parents=True)
        self.run("init", "-q", "-b", "main")

    def run(self, *arguments: str) -> str:
        date = (START + timedelta(days=self.day)).isoformat()
        who = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.invalid",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.invalid",
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=QUIET | who, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self, subject: str, *paths: str) -> str:
        self.day += 1
        for path in paths or ("vllm/core.py",):
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{self.day}\n")
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", subject)
        return self.run("rev-parse", "HEAD")

    def pick(self, commit: str) -> str:
        self.day += 1
        self.run("cherry-pick", commit)
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "vllm-repo")


def facts(repository: Repository | str, mirrors: Path | None = None) -> list[UpstreamFact]:
    location = repository if isinstance(repository, str) else str(repository.folder)
    found = list(read_repository(location, "vllm", mirrors))
    assert not [fact for fact in found if isinstance(fact, UpstreamFault)]
    return [fact for fact in found if isinstance(fact, UpstreamFact)]


def commits(found: list[UpstreamFact]) -> dict[str, CommitLanded]:
    return {fact.payload.commit: fact.payload for fact in found if isinstance(fact.payload, CommitLanded)}


def releases(found: list[UpstreamFact]) -> dict[str, ReleasePublished]:
    return {fact.payload.version: fact.payload for fact in found if isinstance(fact.payload, ReleasePublished)}


def ranged(found: list[UpstreamFact], tmp_path: Path, start: str, end: str) -> Range:
    log = EventLog(Store(str(tmp_path / "warehouse")))
    log.append(
        event_of(fact.payload, occurred_at=fact.occurred_at or START, recorded_at=START, source=Source(name="t"))
        for fact in found
    )
    return find_range(
        open_upstream("vllm", {table.name: read_table(log, table.name) for table in EVENT_OF_TABLE.values()}), start, end
    )


def prs(found: Range) -> list[int | None]:
    numbers: list[int | None] = found.commits["pr"].to_list()
    return numbers


def release_history(repository: Repository) -> dict[str, str]:
    """main: 1 2 3 4 5 6; v0.1.0 on a branch off 2 with 4 picked; v0.2.0 on a branch off 5 with 6 picked."""
    made = {str(number): repository.commit(f"Change {number} (#{number})", f"vllm/m{number}.py") for number in (1, 2)}
    repository.run("branch", "releases/v0.1.0")
    made |= {str(number): repository.commit(f"Change {number} (#{number})", f"vllm/m{number}.py") for number in (3, 4, 5)}
    repository.run("branch", "releases/v0.2.0")
    made["6"] = repository.commit("Change 6 (#6)", "vllm/m6.py")
    repository.run("checkout", "-q", "releases/v0.1.0")
    made["4 on v0.1.0"] = repository.pick(made["4"])
    repository.run("tag", "v0.1.0")
    repository.run("checkout", "-q", "releases/v0.2.0")
    made["6 on v0.2.0"] = repository.pick(made["6"])
    repository.run("tag", "-a", "-m", "annotated", "v0.2.0")
    repository.run("checkout", "-q", "main")
    return made


def test_commits_parents_paths_and_dates(repository: Repository) -> None:
    first = repository.commit("One (#1)", "a.py")
    second = repository.commit("Two", "b/c.py", "a.py")
    found = commits(facts(repository))
    assert list(found) == [first, second], "oldest first"
    assert found[second] == CommitLanded(
        project="vllm",
        commit=second,
        parents=(first,),
        author_date="2026-01-03T00:00:00Z",
        committer_date="2026-01-03T00:00:00Z",
        title="Two",
        pr=None,
        paths=("a.py", "b/c.py"),
    )
    assert found[first].pr == 1 and found[first].parents == ()


def test_odd_subjects_and_paths(repository: Repository) -> None:
    odd = repository.commit(
        'Weird \x1e\x1f\x1b[31m "q" \u202e <b> ; rm -rf / | (#7)', "with space.py", "new\nline.py", "ümlaut.py", "-dash"
    )
    empty = repository.commit("nothing changed (#8)", "with space.py")
    repository.run("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    blank = repository.run("rev-parse", "HEAD")
    found = commits(facts(repository))
    assert found[odd].pr == 7
    assert found[odd].title == 'Weird [31m "q" <b> ; rm -rf / | (#7)'
    assert set(found[odd].paths) == {"with space.py", "new line.py", "ümlaut.py", "-dash"}
    assert found[empty].paths == ("with space.py",)
    assert (found[blank].title, found[blank].paths, found[blank].parents) == ("", (), (empty,))


def test_many_paths_are_counted_not_kept(repository: Repository) -> None:
    wide = repository.commit("Wide (#9)", *(f"p/{number:04}.py" for number in range(MAX_PATHS + 37)))
    found = commits(facts(repository))[wide]
    assert len(found.paths) == MAX_PATHS and found.paths_omitted == 37
    assert found.paths[0] == "p/0000.py"


def test_tags_light_annotated_and_others(repository: Repository) -> None:
    commit = repository.commit("One (#1)")
    repository.run("tag", "v1.0.0")
    repository.run("tag", "-a", "-m", "note", "v1.1.0rc1")
    repository.run("tag", "nightly-v1")
    blob = repository.run("hash-object", "-w", "vllm/core.py")
    repository.run("tag", "not-a-commit", blob)
    found = releases(facts(repository))
    assert {version: (release.tag, release.commit, release.evidence) for version, release in found.items()} == {
        "1.0.0": ("v1.0.0", commit, "tag"),
        "1.1.0rc1": ("v1.1.0rc1", commit, "tag"),
    }


def test_release_branches_are_read_and_feature_branches_are_not(repository: Repository) -> None:
    made = release_history(repository)
    repository.run("checkout", "-q", "-b", "someone/feature")
    feature = repository.commit("Not shipped")
    repository.run("checkout", "-q", "main")
    found = commits(facts(repository))
    assert set(found) == set(made.values())
    assert feature not in found


def test_a_pick_and_its_twin_are_one_change(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    found = ranged(facts(repository), tmp_path, "0.1.0", "v0.2.0")
    # TO reaches 3, 4, 5 on main and the pick of 6; FROM already had 4 as a pick. The twin of 6 on main is behind TO.
    assert prs(found) == [3, 5, 6]
    assert (found.main_line_commits, found.already, found.duplicates) == (3, 1, 0)
    assert not found.open_ended and not found.reversed
    assert "parted at" in found.how and "git tag" in found.how


def test_a_pick_beside_its_twin_in_range_counts_once(repository: Repository, tmp_path: Path) -> None:
    one = repository.commit("Change 1 (#1)", "vllm/a.py")
    repository.run("branch", "releases/v1")
    two = repository.commit("Change 2 (#2)", "vllm/b.py")
    for number in (3, 4, 5):
        repository.commit(f"Change {number} (#{number})", f"vllm/{number}.py")
    repository.run("checkout", "-q", "releases/v1")
    repository.pick(two)
    repository.run("checkout", "-q", "main")
    repository.day += 1
    repository.run("merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge the branch back", "releases/v1")
    found = ranged(facts(repository), tmp_path, one, repository.run("rev-parse", "HEAD"))
    assert prs(found) == [2, 3, 4, 5, None]
    assert found.duplicates == 1
    assert two in found.commits["commit"].to_list(), "the one on main stands for both"


def test_an_older_end_is_turned_and_said(repository: Repository, tmp_path: Path) -> None:
    made = release_history(repository)
    found = ranged(facts(repository), tmp_path, made["5"], made["2"])
    assert found.reversed and prs(found) == [3, 4, 5]
    assert found.how.startswith("FROM is newer than TO: ") and found.notes[0].startswith("FROM is newer than TO: ")


def test_a_merge_names_its_paths_and_pull_request(repository: Repository) -> None:
    repository.commit("One")
    repository.run("checkout", "-q", "-b", "side")
    repository.commit("side work", "vllm/side.py")
    repository.run("checkout", "-q", "main")
    repository.run("merge", "-q", "--no-ff", "-m", "Merge pull request #55 from x/side", "side")
    merge = commits(facts(repository))[repository.run("rev-parse", "HEAD")]
    assert merge.pr == 55 and merge.paths == ("vllm/side.py",) and len(merge.parents) == 2


def test_a_url_is_mirrored_then_fetched(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    first = facts(url, mirrors)
    assert commits(first) == commits(facts(repository))
    later = repository.commit("Change 7 (#7)")
    assert later in commits(facts(url, mirrors))
    assert [path.name for path in mirrors.iterdir()] == [mirror_folder(url, mirrors).name]


def test_a_bare_repository_is_read_in_place(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    repository.run("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    assert commits(facts(str(tmp_path / "bare.git"))) == commits(facts(repository))


def test_a_repository_without_its_blobs_is_read(repository: Repository) -> None:
    """A filtered mirror lacks file contents; a diff that reads them would die half way."""
    release_history(repository)
    whole = facts(repository)
    for line in repository.run("rev-list", "--objects", "--all").splitlines():
        name = line.split(" ")[0]
        if repository.run("cat-file", "-t", name) == "blob":
            (repository.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert facts(repository) == whole


def test_a_damaged_repository_yields_nothing_and_says_so(repository: Repository) -> None:
    made = release_history(repository)
    (repository.folder / ".git" / "objects" / made["2"][:2] / made["2"][2:]).unlink()
    seen: list[object] = []
    with pytest.raises(UpstreamError, match="git log failed"):
        seen.extend(read_repository(str(repository.folder), "vllm"))
    assert seen == []


@pytest.mark.parametrize(
    "location",
    ["--upload-pack=touch x", "ext::sh -c touch% x", "-", "ftp://example.invalid/x", "fd::17", "git://example.invalid/x"],
)
def test_locations_that_could_run_something_are_refused(location: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        list(read_repository(location, "vllm", tmp_path / "mirrors"))
    assert not (tmp_path / "mirrors").exists()


def test_a_folder_inside_another_repository_is_not_that_repository(repository: Repository) -> None:
    repository.commit("One")
    (repository.folder / "inside").mkdir()
    with pytest.raises(UpstreamError, match="not a git repository"):
        list(read_repository(str(repository.folder / "inside"), "vllm"))


def test_what_a_repository_configures_does_not_run(repository: Repository, tmp_path: Path) -> None:
    repository.commit("One")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "gpg.program", "diff.external", "core.pager", "core.sshCommand"):
        repository.run("config", key, str(trap))
    repository.run("config", "log.showSignature", "true")
    assert len(facts(repository)) == 1
    assert not (tmp_path / "ran").exists()


def test_a_missing_folder_and_an_empty_repository(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        list(read_repository(str(tmp_path / "nowhere"), "vllm"))
    assert facts(repository) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.invalid/a/b.git", True),
        ("ssh://git@example.invalid/a", True),
        ("git@example.invalid:a/b.git", True),
        ("file:///srv/x", True),
        ("/srv/x", False),
        ("https://x y", False),
        ("ext::sh", False),
        ("https://x\n", False),
    ],
)
def test_what_is_a_url(text: str, expected: bool) -> None:
    assert is_url(text) is expected


@pytest.mark.parametrize("url", ["https://example.invalid/../../etc", "file:///../..", "git@example.invalid:../../x"])
def test_mirrors_stay_in_their_folder(url: str, tmp_path: Path) -> None:
    assert mirror_folder(url, tmp_path).resolve().parent == tmp_path.resolve()


def test_refs_with_other_line_ends_in_their_names(repository: Repository) -> None:
    first = repository.commit("first (#1)")
    for name in ("v1.0.0", "odd\u2028tag", "odd\u0085tag"):
        repository.run("tag", name)
    repository.run("branch", "releases/odd\u2028branch")
    found = facts(repository)
    assert list(commits(found)) == [first]
    assert [payload.version for payload in releases(found).values()] == ["1.0.0"]


def test_our_own_environment_names_no_other_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository.commit("first (#1)")
    other = Repository(tmp_path / "other")
    other.commit("OTHER (#99)")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert list(commits(facts(repository))) == [first]


def test_a_replaced_commit_is_read_as_it_was_made(repository: Repository) -> None:
    first = repository.commit("first (#1)")
    forged = repository.run("commit-tree", f"{first}^{{tree}}", "-m", "FORGED (#666)")
    repository.run("replace", first, forged)
    assert commits(facts(repository))[first].title == "first (#1)"
