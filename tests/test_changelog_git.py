"""Real repositories made with git: branches, picks, tags, odd subjects and paths, mirrors, and what must not run."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from changelog.facts import MAX_PATHS, UpstreamFact, UpstreamFault
from changelog.git import MAX_FIELD, is_url, read_repository
from changelog.git_command import CHUNK
from changelog.mirrors import mirror_folder
from changelog.ranges import Range, find_range
from changelog.tables import EVENT_OF_TABLE, read_table
from changelog.upstream import open_upstream
from changelog.versions import resolve
from pipelines.announcing import silent
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from warehouse.errors import InputError, UpstreamError
from warehouse.events import CommitLanded, ReleasePublished, RepositoryRead, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

ROOT = Path(__file__).resolve().parents[1]
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
    assert [path.name for path in mirrors.iterdir() if path.suffix != ".lock"] == [mirror_folder(url, mirrors).name]


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
    assert len(commits(facts(repository))) == 1
    assert not (tmp_path / "ran").exists()


def test_a_missing_folder_and_an_empty_repository(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        list(read_repository(str(tmp_path / "nowhere"), "vllm"))
    assert facts(repository) == []  # not even a reading: there is nothing that it could stand for


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


def test_every_url_has_a_mirror_of_its_own(tmp_path: Path) -> None:
    urls = ["file:///srv/a/b", "file:///srv/a-b", "file:///srv/A/b", f"file:///{'x' * 200}/1", f"file:///{'x' * 200}/2"]
    assert len({mirror_folder(url, tmp_path).name.lower() for url in urls}) == len(urls)


@pytest.mark.parametrize(
    "url", ["https://me:SECRET@example.invalid/x", "https://SECRET@example.invalid/x", "ssh://a:SECRET@b.invalid/x"]
)
def test_a_url_with_a_password_is_refused_and_left_nowhere(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="credential helper") as refused:
        facts(url, tmp_path / "mirrors")
    assert "SECRET" not in str(refused.value) and not list(tmp_path.rglob("*"))


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


def read(
    repository: Repository | str, known: Iterable[RepositoryRead] = (), mirrors: Path | None = None, told: list[str] | None = None
) -> tuple[list[str], list[RepositoryRead]]:
    """Return the commits that a reading yields after *known* ones, and what it says it read."""
    location = repository if isinstance(repository, str) else str(repository.folder)
    say = told.append if told is not None else lambda _line: None
    found = [
        fact.payload for fact in read_repository(location, "vllm", mirrors, known, say, say) if isinstance(fact, UpstreamFact)
    ]
    assert not found or isinstance(found[-1], RepositoryRead), "said last"
    landed = [payload.commit for payload in found if isinstance(payload, CommitLanded)]
    return landed, [payload for payload in found if isinstance(payload, RepositoryRead)]


def test_only_what_is_new_is_read(repository: Repository) -> None:
    made = release_history(repository)
    first, known = read(repository)
    assert set(first) == set(made.values())
    assert known[0].heads == tuple(sorted(known[0].heads)) and made["6"] in known[0].heads
    assert read(repository, known) == ([], known)
    new = repository.commit("Change 7 (#7)")
    again, later = read(repository, known)
    assert again == [new]
    assert read(repository, [*known, *later]) == ([], later)
    repository.run("checkout", "-q", "releases/v0.1.0")
    picked = repository.pick(new)
    assert read(repository, [*known, *later])[0] == [picked]


def test_another_generation_or_project_does_not_count(repository: Repository) -> None:
    made = release_history(repository)
    _, known = read(repository)
    for other in ({"reading": known[0].reading + 1}, {"project": "sglang"}):
        assert set(read(repository, [known[0].model_copy(update=other)])[0]) == set(made.values())


def test_tags_are_told_each_time(repository: Repository) -> None:
    repository.commit("One (#1)")
    _, known = read(repository)
    repository.run("tag", "v1.0.0")
    found = [
        fact.payload for fact in read_repository(str(repository.folder), "vllm", None, known) if isinstance(fact, UpstreamFact)
    ]
    assert [type(payload).__name__ for payload in found] == ["ReleasePublished", "RepositoryRead"]


def test_a_forced_branch_and_collected_objects_lose_nothing(repository: Repository) -> None:
    base = repository.commit("Base (#1)")
    repository.commit("Gone (#2)")
    _, known = read(repository)
    repository.run("reset", "-q", "--hard", base)
    new = repository.commit("Instead (#3)")
    assert read(repository, known)[0] == [new], "the old head is still there, and what it reaches is known"
    repository.run("reflog", "expire", "--expire=now", "--all")
    repository.run("gc", "-q", "--prune=now")
    assert read(repository, known)[0] == [base, new], "the old head is gone: read all"


def test_another_clone_with_other_commits_is_read_whole(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    _, known = read(repository)
    other = Repository(tmp_path / "other-vllm")
    one = other.commit("Elsewhere (#1)")
    assert read(other, known)[0] == [one]


def test_a_shallow_clone_does_not_stand_for_what_lies_behind_it(repository: Repository, tmp_path: Path) -> None:
    made = [repository.commit(f"Change {number} (#{number})") for number in range(4)]
    repository.run("clone", "-q", "--depth", "2", f"file://{repository.folder}", str(tmp_path / "shallow"))
    shallow = [fact.payload for fact in read_repository(str(tmp_path / "shallow"), "vllm") if isinstance(fact, UpstreamFact)]
    assert [payload.commit for payload in shallow if isinstance(payload, CommitLanded)] == made[2:]
    assert not any(isinstance(payload, RepositoryRead) for payload in shallow)


def test_a_damaged_past_of_a_known_head_does_not_stop_the_reading(repository: Repository) -> None:
    made = release_history(repository)
    _, known = read(repository)
    new = repository.commit("Change 7 (#7)")
    (repository.folder / ".git" / "objects" / made["1"][:2] / made["1"][2:]).unlink()
    assert new in read(repository, known)[0]


def warehouse(tmp_path: Path, repository: Repository) -> tuple[EventLog, Counter[str]]:
    """Ingest the repository as the command does; return the log and what was new."""
    log = EventLog(Store(str(tmp_path / "warehouse")))
    declared = Declared({"engine": "vllm"})
    taken = ingest(log, (str(repository.folder),), declared, recorded_at=START, mirrors=tmp_path / "mirrors", announce=silent)
    assert not taken.failed and not taken.quarantined
    return log, taken.new


def test_an_ingest_reads_what_the_log_lacks(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    _, new = warehouse(tmp_path, repository)
    assert new == {"CommitLanded": 8, "ReleasePublished": 2, "RepositoryRead": 1}
    assert warehouse(tmp_path, repository)[1] == {}
    repository.commit("Change 7 (#7)")
    log, new = warehouse(tmp_path, repository)
    assert new == {"CommitLanded": 1, "RepositoryRead": 1}
    assert log.read().tail(1)["event_type"].to_list() == ["RepositoryRead"]
    assert read_table(log, "commits").height == 9


def test_a_reading_that_was_cut_off_is_made_again(repository: Repository, tmp_path: Path) -> None:
    """A log that holds some of the commits, as after kill -9, and no word that they were all."""
    release_history(repository)
    log = EventLog(Store(str(tmp_path / "warehouse")))
    half = [fact for fact in facts(repository) if isinstance(fact.payload, CommitLanded)][:3]
    log.append(
        event_of(fact.payload, occurred_at=fact.occurred_at or START, recorded_at=START, source=Source(name="t")) for fact in half
    )
    assert warehouse(tmp_path, repository)[1] == {"CommitLanded": 5, "ReleasePublished": 2, "RepositoryRead": 1}


def test_messages_tell_of_reverts_and_picks(repository: Repository) -> None:
    one = repository.commit("Add it (#1)", "vllm/a.py")
    repository.day += 1
    repository.run("revert", "--no-edit", one)
    revert = repository.run("rev-parse", "HEAD")
    repository.run("checkout", "-q", "-b", "releases/v1", one)
    other = repository.commit("Other (#3)", "vllm/b.py")
    repository.run("checkout", "-q", "main")
    repository.run("cherry-pick", "-x", other)
    pick = repository.run("rev-parse", "HEAD")
    numbered = repository.commit('Revert "Other" (#4)\n\nReverts vllm-project/vllm#3\n\nIt hangs.', "vllm/c.py")
    found = commits(facts(repository))
    assert found[revert].reverts == one and found[revert].title == 'Revert "Add it (#1)"'
    assert found[pick].picked_from == other and found[pick].paths == ("vllm/b.py",)
    assert (found[numbered].reverts_pr, found[numbered].title) == (3, 'Revert "Other" (#4)')
    assert found[one].body().keys() == {
        *("project", "commit", "parents", "author_date", "committer_date", "title", "pr", "paths", "paths_omitted")
    }, "what is absent is left out, so that a commit is the event that it was before messages were read"


def test_an_endless_message_does_not_stop_the_reading(repository: Repository) -> None:
    first = repository.commit("One (#1)")
    message = repository.folder.parent / "message"
    message.write_text("Two (#2)\n\n" + "x" * (MAX_FIELD + CHUNK) + "\n")
    repository.run("commit", "-q", "--allow-empty", "-F", str(message))
    repository.commit("Three (#3)", "vllm/d.py")
    found = list(commits(facts(repository)).values())
    assert [commit.pr for commit in found] == [1, 2, 3] and found[0].commit == first
    assert found[2].paths == ("vllm/d.py",)


def test_a_pick_onto_a_release_branch_under_another_number_is_one_change(repository: Repository, tmp_path: Path) -> None:
    """As TensorRT-LLM does it: the pick has its own pull request and names the one it was picked from."""
    one = repository.commit("Root (#1)")
    two = repository.commit("[None][fix] Mend it (#2)", "vllm/two.py")
    three = repository.commit("Change 3 (#3)", "vllm/three.py")
    repository.commit("Change 4 (#4)", "vllm/four.py")
    repository.run("checkout", "-q", "-b", "releases/v1", one)
    repository.commit("[None][fix] Cherry-pick from (#2) Mend it (#20)", "vllm/two.py")
    repository.run("cherry-pick", "-x", three)
    repository.run("commit", "-q", "--amend", "-m", f"Change three, as picked (#30)\n\n(cherry picked from commit {three})")
    repository.run("tag", "v1.0.0")
    repository.run("checkout", "-q", "main")
    assert prs(ranged(facts(repository), tmp_path, "1.0.0", repository.run("rev-parse", "HEAD"))) == [4]
    assert two in commits(facts(repository))


def test_a_tag_that_moved_is_said(repository: Repository, tmp_path: Path) -> None:
    one, two = repository.commit("One (#1)"), repository.commit("Two (#2)")
    repository.run("tag", "v1.0.0", one)
    before = facts(repository)
    repository.run("tag", "-f", "v1.0.0", two)
    log = EventLog(Store(str(tmp_path / "warehouse")))
    for day, found in enumerate((before, facts(repository))):
        log.append(
            event_of(
                fact.payload,
                occurred_at=fact.occurred_at or START,
                recorded_at=START + timedelta(days=day),
                source=Source(name="t"),
            )
            for fact in found
        )
    known = open_upstream("vllm", {name: read_table(log, name) for name in ("commits", "releases")})
    end = resolve(known, "1.0.0")
    assert (end.commit, end.confidence) == (two, "medium")
    assert two[:9] in end.how and one[:9] in end.how and "moved" in end.how


def test_a_mirror_is_read_while_its_url_cannot_be_reached(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    first, _ = read(url, mirrors=mirrors)
    repository.folder.rename(tmp_path / "away")
    told: list[str] = []
    assert read(url, mirrors=mirrors, told=told)[0] == first
    assert [line for line in told if "could not be fetched" in line and "\n" not in line]
    with pytest.raises(UpstreamError, match="git clone failed"):
        read(f"file://{tmp_path}/nowhere", mirrors=mirrors)
    assert len(list(mirrors.glob("*.git"))) == 1 and not list(mirrors.glob("*.partial"))


def test_progress_of_a_clone_is_told(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    told: list[str] = []
    read(f"file://{repository.folder}", mirrors=tmp_path / "mirrors", told=told)
    assert any("Receiving objects" in line or "Counting objects" in line for line in told)


def test_what_a_killed_fetch_left_does_not_stop_the_next(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    read(url, mirrors=mirrors)
    folder = mirror_folder(url, mirrors)
    for name in ("packed-refs.lock", "refs/heads/main.lock", "config.lock", "HEAD.lock", "shallow.lock"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "objects" / "pack" / "tmp_pack_x").write_text("half")
    new = repository.commit("Change 7 (#7)")
    repository.run("branch", "-D", "releases/v0.2.0")
    told: list[str] = []
    assert new in read(url, mirrors=mirrors, told=told)[0]
    assert not [line for line in told if "could not" in line] and not list(folder.rglob("*.lock"))


def test_a_damaged_mirror_is_said_with_what_to_do(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    read(url, mirrors=mirrors)
    folder = mirror_folder(url, mirrors)
    for pack in folder.glob("objects/pack/*"):
        pack.unlink()
    assert read(url, mirrors=mirrors)[0], "what can be fetched again is"
    for pack in folder.glob("objects/pack/*"):
        pack.unlink()
    repository.folder.rename(tmp_path / "away")
    with pytest.raises(UpstreamError, match=r"is damaged .*; delete that folder") as failure:
        read(url, mirrors=mirrors)
    assert str(folder) in str(failure.value) and "\n" not in str(failure.value)
    (folder / "HEAD").unlink()
    with pytest.raises(UpstreamError, match=r"is damaged .*; delete that folder"):
        read(url, mirrors=mirrors)


KILLED = """
import sys, time
from pathlib import Path
from changelog.mirrors import mirrored

def slow(folder, *arguments, told=None):
    Path(arguments[-1]).mkdir()
    (Path(arguments[-1]) / "HEAD").write_text("half")
    print("cloning", flush=True)
    time.sleep(60)

mirrored(sys.argv[1], Path(sys.argv[2]), slow)
"""


def test_a_clone_that_is_killed_leaves_no_half_mirror_and_no_lock(repository: Repository, tmp_path: Path) -> None:
    made = release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    with subprocess.Popen([sys.executable, "-c", KILLED, url, str(mirrors)], stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == b"cloning\n"
        told: list[str] = []
        waiting = Thread(target=read, args=(url,), kwargs={"mirrors": mirrors, "told": told})
        waiting.start()
        while not told:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        waiting.join(timeout=30)
    assert told[0].startswith("waiting for another shiftlog")
    assert set(read(url, mirrors=mirrors)[0]) == set(made.values())
    assert not list(mirrors.glob("*.partial"))


def test_several_at_once_share_a_mirror(repository: Repository, tmp_path: Path) -> None:
    made = release_history(repository)
    url, mirrors = f"file://{repository.folder}", tmp_path / "mirrors"
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: set(read(url, mirrors=mirrors)[0]), range(4)))
    assert found == [set(made.values())] * 4


def test_a_bare_snapshot_without_a_configuration_is_read(repository: Repository, tmp_path: Path) -> None:
    release_history(repository)
    repository.run("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    (tmp_path / "bare.git" / "config").unlink()
    assert commits(facts(str(tmp_path / "bare.git"))) == commits(facts(repository))
