"""What GitHub's API tells and a clone does not: release notes; and tags and ranges where no clone is at hand.

Releases and tags give the same facts as a saved file and a clone do (`changelog.items`), so that learning one twice changes
nothing. A compared range gives no facts: the API tells no paths of single commits, and a fact without them would take the place
of one that has them. Belongs here: the API's paths, paging and limits. Does not: HTTP itself (`changelog.web`), what a release
note says (`changelog.notes`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from changelog.facts import MAX_EXCERPT, MAX_TITLE, UpstreamFact, UpstreamFault, hash_of, instant_of, line_of
from changelog.items import github_release, tag
from changelog.projects import project
from changelog.subjects import parse_subject
from changelog.web import Web, WebError, shown
from warehouse.errors import InputError

ACCEPT = "application/vnd.github+json"
DEFAULT_API = "https://api.github.com"
PAGE = 100
MAX_PAGES = 200
"""Of one list: 20,000 releases or commits."""
MAX_BYTES = 128 << 20
"""Of one page: 100 notes of full length are 12.5 million characters, in JSON up to six bytes each."""
MAX_FILES = 300
"""Files that the API names of a range, however long it is."""

_NEXT = re.compile(r'<([^<>\s]{1,2000})>\s*;\s*rel="?next"?')
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,99}/[A-Za-z0-9_.-]{1,100}")
_REF = re.compile(r"(?!.*\.\.)[\w][\w./+@:-]{0,199}")

Told = UpstreamFact | UpstreamFault


@dataclass(frozen=True)
class ComparedCommit:
    """One commit of a compared range, without its paths."""

    commit: str
    parents: tuple[str, ...]
    author_date: datetime
    committer_date: datetime
    title: str
    pr: int | None


@dataclass(frozen=True)
class Compared:
    """The commits that *head* has and *base* has not, oldest first, as far as they came."""

    base: str
    head: str
    status: str
    """ahead, behind, diverged or identical, as the API says."""
    merge_base: str | None
    total: int
    """Commits that the API says there are."""
    commits: tuple[ComparedCommit, ...]
    paths: tuple[str, ...]
    """Files of the whole range; only the first MAX_FILES are told."""
    paths_cut: bool

    @property
    def cut(self) -> bool:
        """True where fewer commits came than there are."""
        return len(self.commits) < self.total


def api() -> str:
    """Return the API's address without a slash at its end, $GITHUB_API_URL or GitHub's; raises InputError for no http address."""
    address = os.environ.get("GITHUB_API_URL", "").strip() or DEFAULT_API
    if not address.startswith(("https://", "http://")):
        raise InputError(f"GITHUB_API_URL: {line_of(address, 60)!r} is no address; write it as {DEFAULT_API}")
    return address.rstrip("/")


def token() -> str | None:
    """Return the token of the environment, or None: then 60 requests an hour are free."""
    return os.environ.get("GITHUB_TOKEN", "").strip() or os.environ.get("GH_TOKEN", "").strip() or None


def releases(web: Web, owner: str, *, repository: str | None = None, since: datetime | None = None) -> Iterator[Told]:
    """Yield the releases of a project's *repository* (its first, where none is named), newest first, with their notes.

    Drafts and tags that are no release of the engine are skipped. With *since*, reading stops behind a page in which nothing was
    published or changed since then; what was read is told all the same. Raises WebError, and InputError for an unknown project.
    """
    known = project(owner)
    name = _repository(repository or known.repositories[0])
    for page, entries in _pages(web, f"/repos/{name}/releases", f"releases of {name}"):
        if isinstance(entries, UpstreamFault):
            yield entries
            return
        for number, item in enumerate(entries, start=1):
            yield from _told(
                f"{name} releases page {page} item {number}", item, lambda one, place: github_release(known.name, one, place)
            )
        if since is not None and all(_changed(item) < since for item in entries if _dated(item)):
            return


def tags(web: Web, owner: str, *, repository: str | None = None, known_tags: Container[str] = ()) -> Iterator[Told]:
    """Yield the release tags of a project's *repository* that are not in *known_tags*, with date and commit as a clone has them.

    One request for the list and one for each tag that is new: the list tells no dates. Raises WebError and InputError.
    """
    known = project(owner)
    name = _repository(repository or known.repositories[0])
    for page, entries in _pages(web, f"/repos/{name}/git/matching-refs/tags/v", f"tags of {name}"):
        if isinstance(entries, UpstreamFault):
            yield entries
            return
        for number, item in enumerate(entries, start=1):
            short = str(item.get("ref", "")).removeprefix("refs/tags/") if isinstance(item, dict) else ""
            if known.version_of_tag(short) is None or short in known_tags:
                continue
            yield from _told(
                f"{name} tags page {page} item {number}", item, lambda one, place: tag(known.name, _peeled(web, name, one), place)
            )


def compare(web: Web, repository: str, base: str, head: str) -> Compared:
    """Return the range *base*...*head*, read to its end page by page: without paging the API stops at 250 commits without a word.

    Raises InputError for a name that is no reference, and for an answer that is no range; WebError where none comes.
    """
    name, both = _repository(repository), f"{_ref(base)}...{_ref(head)}"
    first: Mapping[str, Any] = {}
    commits: dict[str, ComparedCommit] = {}
    paths: list[str] = []
    for page, answer in _documents(web, f"/repos/{name}/compare/{both}"):
        if not isinstance(answer, dict) or not isinstance(answer.get("commits"), list):
            raise InputError(f"{name} {both}: the API's answer is no range of commits")
        first = first or answer
        paths = paths or [str(one.get("filename")) for one in answer.get("files") or () if isinstance(one, dict)]
        for item in answer["commits"]:
            commit = _compared(item, f"{name} {both} page {page}")
            commits.setdefault(commit.commit, commit)
        if not answer["commits"] or len(commits) >= _count(first):
            break
    merge_base = first.get("merge_base_commit")
    return Compared(
        base=base,
        head=head,
        status=line_of(str(first.get("status")), 40),
        merge_base=hash_of(merge_base.get("sha"), "merge_base_commit") if isinstance(merge_base, dict) else None,
        total=_count(first),
        commits=tuple(commits.values()),
        paths=tuple(line_of(path, MAX_TITLE) for path in paths[:MAX_FILES]),
        paths_cut=len(paths) >= MAX_FILES,
    )


def _pages(web: Web, path: str, what: str) -> Iterator[tuple[int, list[Any] | UpstreamFault]]:
    for page, entries in _documents(web, path):
        if isinstance(entries, list):
            yield page, entries
        else:
            yield (
                page,
                UpstreamFault(
                    what, f"{what}: the API's answer is no list", line_of(str(entries)[: 4 * MAX_EXCERPT], MAX_EXCERPT)
                ),
            )
            return


def _documents(web: Web, path: str) -> Iterator[tuple[int, Any]]:
    """Yield the pages behind *path*, numbered from 1, as long as each names a next one.

    Raises WebError where that one is at another address, to which the token must not go.
    """
    root, secret = api(), token()
    address, parameters = f"{root}{path}", {"per_page": str(PAGE), "page": "1"}
    for page in range(1, MAX_PAGES + 1):
        answer = web.get(address, accept=ACCEPT, parameters=parameters, token=secret, limit=MAX_BYTES)
        yield page, answer.json()
        following = _NEXT.search(answer.headers.get("link") or "")
        if following is None:
            return
        if urlsplit(following[1])[:2] != urlsplit(root)[:2]:
            raise WebError(f"{shown(address)}: names its next page at {shown(following[1])}; set GITHUB_API_URL to that address")
        address, parameters = following[1], {}
    raise WebError(f"{root}{path}: more than {MAX_PAGES} pages; what came first is kept")


def _told(position: str, item: object, read: Any) -> Iterator[Told]:
    """Yield the facts of one item, or the fault that it cannot be read."""
    try:
        if not isinstance(item, dict):
            raise InputError("is not a JSON object")
        yield from read(item, position)
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"field {error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        yield UpstreamFault(position, f"{position}: {line_of(why, 300)}", line_of(str(item)[: 4 * MAX_EXCERPT], MAX_EXCERPT))


def _peeled(web: Web, name: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return a tag as a clone tells it: with the commit behind it, and its own date or, where it has none, the commit's."""
    short, target = str(item["ref"]).removeprefix("refs/tags/"), item["object"]
    date: object = None
    for _ in range(4):  # a tag of a tag is as good as unheard of
        sha = hash_of(target["sha"], "object")
        annotated = target["type"] == "tag"
        found = web.get(
            f"{api()}/repos/{name}/git/{'tags' if annotated else 'commits'}/{sha}", accept=ACCEPT, token=token(), limit=MAX_BYTES
        ).json()
        date = date or (found.get("tagger") if annotated else found.get("committer") or {})["date"]
        if not annotated:
            return {"tag": short, "commit": sha, "date": date}
        target = found["object"]
    raise InputError(f"{line_of(short, 60)}: is a tag of tags")


def _compared(item: object, position: str) -> ComparedCommit:
    try:
        told = item["commit"]  # type: ignore[index]
        title = line_of(str(told["message"]).split("\n", 1)[0], MAX_TITLE)
        return ComparedCommit(
            commit=hash_of(item["sha"], "sha"),  # type: ignore[index]
            parents=tuple(hash_of(parent["sha"], "parents") for parent in item["parents"]),  # type: ignore[index]
            author_date=instant_of(told["author"]["date"], "author date"),
            committer_date=instant_of(told["committer"]["date"], "committer date"),
            title=title,
            pr=parse_subject(title).pr,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{position}: a commit without {line_of(str(error), 60)}") from None


def _count(answer: Mapping[str, Any]) -> int:
    total = answer.get("total_commits")
    return total if isinstance(total, int) and total >= 0 else len(answer.get("commits") or ())


def _dated(item: object) -> bool:
    return isinstance(item, dict) and any(isinstance(item.get(name), str) for name in ("published_at", "updated_at"))


def _changed(item: dict[str, Any]) -> datetime:
    """Return when a release was last touched, as far as it says so."""
    return max(instant_of(item[name], name) for name in ("published_at", "updated_at") if isinstance(item.get(name), str))


def _repository(name: str) -> str:
    if _REPOSITORY.fullmatch(name) is None:
        raise InputError(f"repository {line_of(name, 80)!r}: write it as owner/name")
    return name


def _ref(name: str) -> str:
    if _REF.fullmatch(name) is None:
        raise InputError(f"reference {line_of(name, 80)!r}: use a tag, a branch or a commit")
    return quote(name, safe="/:@")
