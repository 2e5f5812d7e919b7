"""GitHub's API, against a server on loopback that speaks it: releases, tags, ranges, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from changelog import github
from changelog.facts import MAX_NOTES, UpstreamFact, UpstreamFault
from changelog.files import recognise
from changelog.notes import cut, items
from changelog.web import Web, WebError
from tests.servers.github import GitHub, Repository
from warehouse.errors import InputError
from warehouse.events import ReleasePublished, Source, event_of

REPOSITORY = "vllm-project/vllm"
RELEASES = f"/repos/{REPOSITORY}/releases"


def release(version: str, day: int = 1, **changed: Any) -> dict[str, Any]:
    return {
        "tag_name": f"v{version}",
        "name": f"v{version}",
        "published_at": f"2025-12-{day:02}T10:00:00Z",
        "body": f"* Faster thing (#{day})",
        "html_url": f"https://github.com/{REPOSITORY}/releases/tag/v{version}",
        "draft": False,
        "prerelease": "rc" in version,
    } | changed


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """A service with one repository, and an environment that names it and holds no token."""
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with GitHub(repositories={REPOSITORY: Repository(number=7)}) as running:
        monkeypatch.setenv("GITHUB_API_URL", running.address)
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def web(tmp_path: Path, waits: list[float]) -> Web:
    return Web(tmp_path / "cache", pause=waits.append, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC))


def facts(told: Iterator[UpstreamFact | UpstreamFault]) -> list[UpstreamFact]:
    found = list(told)
    assert [one for one in found if isinstance(one, UpstreamFault)] == []
    return [one for one in found if isinstance(one, UpstreamFact)]


def event_id(fact: UpstreamFact) -> str:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return event_of(fact.payload, occurred_at=fact.occurred_at or now, recorded_at=now, source=Source(name="x")).event_id


def versions(told: list[UpstreamFact]) -> list[str]:
    return [fact.payload.version for fact in told if isinstance(fact.payload, ReleasePublished)]


def test_every_page_of_the_releases_is_read(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].releases = [release(f"0.{250 - number}.0") for number in range(250)]
    assert versions(facts(github.releases(web, "vllm"))) == [f"0.{250 - number}.0" for number in range(250)]
    assert service.paths == [f"{RELEASES}?per_page=100&page={page}" for page in (1, 2, 3)]


def test_the_facts_are_those_of_a_saved_answer(service: GitHub, web: Web) -> None:
    """Draft, another product's tag, a prerelease, no body, a note with control characters."""
    listed = [
        release("0.12.0", 3),
        release("0.12.1", draft=True, published_at=None),
        release("0.12.0rc1", 2, body=None),
        release("0", tag_name="nightly-2025-12-01"),
        release("0.11.2", 1, body="a\x1b[31m\r\n* b \u202e(#5)"),
    ]
    service.repositories[REPOSITORY].releases = listed
    data = json.dumps(listed).encode()
    reader = recognise(data)
    assert reader is not None and reader.name == "github-releases"
    saved = [fact for fact in reader.read("vllm.json", data) if isinstance(fact, UpstreamFact)]
    fetched = facts(github.releases(web, "vllm"))
    assert versions(fetched) == ["0.12.0", "0.12.0rc1", "0.11.2"]
    assert [event_id(fact) for fact in fetched] == [event_id(fact) for fact in saved]
    assert fetched[0].occurred_at == datetime(2025, 12, 3, 10, tzinfo=UTC)


def test_an_unchanged_page_is_not_sent_again(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].releases = [release("0.12.0")]
    first, second = facts(github.releases(web, "vllm")), facts(github.releases(web, "vllm"))
    assert first == second
    assert [status for _, status in service.asked] == [200, 304]
    service.repositories[REPOSITORY].releases.insert(0, release("0.13.0"))
    assert versions(facts(github.releases(web, "vllm"))) == ["0.13.0", "0.12.0"]


def test_since_stops_behind_the_first_page_in_which_nothing_is_new(service: GitHub, web: Web) -> None:
    old = [release(f"0.9.{number}", 1) for number in range(250)]
    service.repositories[REPOSITORY].releases = [release("0.12.0", 20), *old]
    told = facts(github.releases(web, "vllm", since=datetime(2025, 12, 10, tzinfo=UTC)))
    assert versions(told)[0] == "0.12.0" and len(told) == 200
    assert len(service.asked) == 2
    service.repositories[REPOSITORY].releases[150]["updated_at"] = "2025-12-19T00:00:00Z"
    assert len(facts(github.releases(web, "vllm", since=datetime(2025, 12, 10, tzinfo=UTC)))) == 251


def test_a_token_of_the_environment_is_sent_and_a_wrong_one_refused(
    service: GitHub, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.tokens = {"right"}
    monkeypatch.setenv("GH_TOKEN", "right")
    assert facts(github.releases(web, "vllm")) == []
    assert service.tokens_seen == ["right"]
    monkeypatch.setenv("GITHUB_TOKEN", "wrong-secret")
    with pytest.raises(WebError) as error:
        list(github.releases(web, "vllm"))
    assert error.value.status == 401 and "wrong-secret" not in str(error.value)


def test_the_hour_s_limit_says_until_when(service: GitHub, web: Web, waits: list[float]) -> None:
    service.repositories[REPOSITORY].releases = [release(f"0.{number}.0") for number in range(150)]
    service.remaining, service.reset = 1, int(datetime(2026, 3, 1, 0, 45, tzinfo=UTC).timestamp())
    told = github.releases(web, "vllm")
    first_page = [next(told) for _ in range(100)]
    assert len(first_page) == 100
    with pytest.raises(WebError) as error:
        next(told)
    assert (error.value.status, error.value.temporary) == (403, True)
    assert error.value.retry_at == datetime(2026, 3, 1, 0, 45, tzinfo=UTC)
    assert waits == []


@pytest.mark.parametrize("status", [403, 429])
def test_a_secondary_limit_is_waited_for(service: GitHub, web: Web, waits: list[float], status: int) -> None:
    service.repositories[REPOSITORY].releases = [release("0.12.0")]
    service.slow_down = [(status, "2")]
    assert versions(facts(github.releases(web, "vllm"))) == ["0.12.0"]
    assert waits == [2.0]


def test_a_moved_repository_is_followed_through_all_pages(service: GitHub, web: Web) -> None:
    service.repositories = {"vllm-org/vllm": Repository(number=9, releases=[release(f"0.{n}.0") for n in range(120)])}
    service.moved = {REPOSITORY: "vllm-org/vllm"}
    assert len(facts(github.releases(web, "vllm"))) == 120
    assert service.asked[0] == (f"{RELEASES}?per_page=100&page=1", 301)
    assert service.paths[1:] == [f"/repositories/9/releases?per_page=100&page={page}" for page in (1, 2)]


def test_what_is_not_there_or_must_not_be_shown_is_said(service: GitHub, web: Web) -> None:
    with pytest.raises(WebError) as error:
        list(github.releases(web, "sglang"))
    assert (error.value.status, error.value.temporary) == (404, False)
    service.blocked = {REPOSITORY}
    with pytest.raises(WebError) as error:
        list(github.releases(web, "vllm"))
    assert error.value.status == 451


@pytest.mark.parametrize("how", ["cut", "html", "truncated"])
def test_an_answer_that_is_not_whole_is_no_answer(service: GitHub, web: Web, how: str) -> None:
    service.broken = {RELEASES: how}
    with pytest.raises(WebError):
        list(github.releases(web, "vllm"))


def test_items_that_cannot_be_read_are_faults_and_the_others_count(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].releases = [
        "text",
        {"name": "v0.1.0"},
        release("0.12.0", published_at="yesterday"),
        release("0.11.0"),
    ]
    told = list(github.releases(web, "vllm"))
    faults = [one for one in told if isinstance(one, UpstreamFault)]
    assert [fault.position for fault in faults] == [f"{REPOSITORY} releases page 1 item {number}" for number in (1, 2, 3)]
    assert "field 'tag_name' is missing" in faults[1].reason and "published_at" in faults[2].reason
    assert versions([one for one in told if isinstance(one, UpstreamFact)]) == ["0.11.0"]


def test_an_answer_that_is_no_list_is_one_fault(service: GitHub, web: Web) -> None:
    service.broken = {RELEASES: "object"}
    (fault,) = github.releases(web, "vllm")
    assert isinstance(fault, UpstreamFault) and "is no list" in fault.reason


def test_a_hostile_note_is_kept_in_bounds(service: GitHub, web: Web) -> None:
    """Ten million characters, control characters, nesting without end, no pull request at all."""
    huge = "".join(" " * (number % 60) + "* nested \x00\x1b]0;x\x07\u202e\n" for number in range(400_000))
    service.repositories[REPOSITORY].releases = [release("0.12.0", body=huge), release("0.11.0", body="")]
    first, second = facts(github.releases(web, "vllm"))
    assert isinstance(first.payload, ReleasePublished) and isinstance(second.payload, ReleasePublished)
    notes = first.payload.notes or ""
    assert len(notes) == MAX_NOTES and not set(notes) & set("\x00\x1b\x07\u202e")
    assert cut(notes) == "it has the greatest length, 125,000 characters"
    assert all(item.prs == () for item in items("vllm", notes))
    assert second.payload.notes == ""


def test_a_next_page_on_another_host_is_not_asked_for(service: GitHub, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token would go with the request."""
    service.repositories[REPOSITORY].releases = [release(f"0.{number}.0") for number in range(150)]
    monkeypatch.setenv("GITHUB_API_URL", service.address.replace("127.0.0.1", "localhost"))
    told = github.releases(web, "vllm")
    assert len([next(told) for _ in range(100)]) == 100
    with pytest.raises(WebError, match="names its next page at"):
        next(told)
    assert len(service.asked) == 1


def sha(number: int) -> str:
    return f"{number:040x}"


def compared_commit(number: int) -> dict[str, Any]:
    return {
        "sha": sha(number),
        "parents": [{"sha": sha(number - 1)}],
        "commit": {
            "message": f"[Kernel] Change {number} (#{number})\n\nSigned-off-by: x",
            "author": {"name": "x", "date": "2025-12-01T09:00:00+08:00"},
            "committer": {"name": "GitHub", "date": "2025-12-01T02:00:00Z"},
        },
    }


def a_range(commits: int, files: int = 3) -> dict[str, Any]:
    return {
        "status": "diverged",
        "merge_base_commit": {"sha": sha(0)},
        "commits": [compared_commit(number + 1) for number in range(commits)],
        "files": [{"filename": f"vllm/{number}.py"} for number in range(files)],
    }


def test_a_range_is_read_past_250_commits(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].ranges = {"v0.11.2...v0.12.0": a_range(893, files=900)}
    found = github.compare(web, REPOSITORY, "v0.11.2", "v0.12.0")
    assert (len(found.commits), found.total, found.cut) == (893, 893, False)
    assert [commit.commit for commit in found.commits] == [sha(number) for number in range(1, 894)]
    assert (found.status, found.merge_base) == ("diverged", sha(0))
    assert (len(found.paths), found.paths_cut) == (300, True)
    last = found.commits[-1]
    assert (last.title, last.pr, last.parents) == ("[Kernel] Change 893 (#893)", 893, (sha(892),))
    assert last.author_date == datetime(2025, 12, 1, 1, tzinfo=UTC)
    assert len(service.asked) == 9


def test_a_range_that_did_not_come_whole_says_so(service: GitHub, web: Web) -> None:
    whole = a_range(120)
    whole["commits"] = [*whole["commits"][:110], *whole["commits"][:10]]
    service.repositories[REPOSITORY].ranges = {"a...b": whole}
    found = github.compare(web, REPOSITORY, "a", "b")
    assert (len(found.commits), found.total, found.cut) == (110, 120, True)


def test_an_empty_range(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].ranges = {"a...a": {**a_range(0, files=0), "status": "identical"}}
    found = github.compare(web, REPOSITORY, "a", "a")
    assert (found.commits, found.total, found.cut, found.paths, found.paths_cut) == ((), 0, False, (), False)


@pytest.mark.parametrize("name", ["", "a..b", "-x", "a b", "a?x=1", "x" * 300, "../../user", "a#b", "a%2e"])
def test_a_name_that_is_no_reference_is_not_sent(service: GitHub, web: Web, name: str) -> None:
    with pytest.raises(InputError, match="reference"):
        github.compare(web, REPOSITORY, name, "main")
    with pytest.raises(InputError, match="owner/name"):
        github.compare(web, f"{name}/x/y", "main", "main")
    assert service.asked == []


def test_a_commit_of_a_range_that_cannot_be_read_is_said(service: GitHub, web: Web) -> None:
    service.repositories[REPOSITORY].ranges = {"a...b": {**a_range(0), "commits": [{"sha": sha(1)}]}}
    with pytest.raises(InputError, match="without 'commit'"):
        github.compare(web, REPOSITORY, "a", "b")


def test_tags_are_told_as_a_clone_tells_them(service: GitHub, web: Web) -> None:
    """An annotated tag with its own date, a plain one with its commit's, and nothing asked of those that are known."""
    service.repositories[REPOSITORY].refs = [
        {"ref": "refs/tags/v0.11.0", "object": {"type": "commit", "sha": sha(1)}},
        {"ref": "refs/tags/v0.12.0", "object": {"type": "tag", "sha": sha(20)}},
        {"ref": "refs/tags/v0.13.0", "object": {"type": "commit", "sha": sha(3)}},
        {"ref": "refs/tags/vnext", "object": {"type": "commit", "sha": sha(4)}},
    ]
    service.repositories[REPOSITORY].objects = {
        sha(20): {"tagger": {"date": "2025-12-03T00:00:00Z"}, "object": {"type": "commit", "sha": sha(2)}},
        sha(2): {"committer": {"date": "2025-12-01T00:00:00Z"}},
        sha(3): {"committer": {"date": "2025-12-19T01:00:00+01:00"}},
    }
    told = [fact.payload for fact in facts(github.tags(web, "vllm", known_tags={"v0.11.0"}))]
    assert told == [
        ReleasePublished(
            project="vllm", version="0.12.0", tag="v0.12.0", commit=sha(2), published_at="2025-12-03T00:00:00Z", evidence="tag"
        ),
        ReleasePublished(
            project="vllm", version="0.13.0", tag="v0.13.0", commit=sha(3), published_at="2025-12-19T00:00:00Z", evidence="tag"
        ),
    ]


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "ftp://x")
    with pytest.raises(InputError, match="GITHUB_API_URL"):
        github.api()
    monkeypatch.setenv("GITHUB_API_URL", "https://github.example/api/v3/")
    assert github.api() == "https://github.example/api/v3"
    monkeypatch.delenv("GITHUB_API_URL")
    assert github.api() == "https://api.github.com"


@pytest.mark.parametrize("wrong", [{"name": ["x"]}, {"body": {"a": 1}}, {"body": 3}])
def test_a_release_whose_text_is_none_is_a_fault_and_costs_no_other(service: GitHub, web: Web, wrong: dict[str, Any]) -> None:
    service.repositories[REPOSITORY].releases = [release("0.12.0") | wrong, release("0.11.0")]
    told = list(github.releases(web, "vllm"))
    assert versions([one for one in told if isinstance(one, UpstreamFact)]) == ["0.11.0"]
    assert ["is no text" in one.reason for one in told if isinstance(one, UpstreamFault)] == [True]
