"""What one item of an upstream file means: one function a format, from a JSON object to facts.

Each takes (project, item, position) and raises InputError, KeyError or TypeError for an item that cannot be read.
Belongs here: fields and their meaning. Does not: finding the items (`changelog.files`), bounds (`changelog.facts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from changelog.facts import (
    MAX_TITLE,
    UpstreamFact,
    commit_fact,
    hash_of,
    instant_of,
    line_of,
    notes_of,
    release_fact,
    version_of,
)
from changelog.projects import project, projects
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.events import DependencyPinned, ReleasePublished

Item = dict[str, Any]


def commit(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A commit line: `hash, parents, author_date, committer_date, subject, pr, files` (files as paths or [status, path])."""
    pr = item.get("pr")
    if pr is not None and (not isinstance(pr, int) or isinstance(pr, bool) or pr <= 0):
        raise InputError(f"pr: {str(pr)[:40]!r} is not a pull request's number")
    if not isinstance(item["subject"], str) or not isinstance(item["parents"], list):
        raise InputError("subject must be text and parents a list of hashes")
    yield commit_fact(
        owner,
        commit=item["hash"],
        parents=item["parents"],
        author_date=item["author_date"],
        committer_date=item["committer_date"],
        subject=item["subject"],
        paths=_paths(item.get("files")),
        position=position,
        pr=pr,
    )


def anchor(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A measured release anchor: `full` or `bump_commit` or the short `sdist_commit`, `branch_point`, `pypi_upload`."""
    named = item.get("full") or item.get("bump_commit")
    short = item.get("sdist_commit")
    if not named and short and re.fullmatch(r"[0-9a-f]{7,64}", str(short)) is None:
        raise InputError(f"sdist_commit: {str(short)[:60]!r} is not a commit hash")
    yield release_fact(
        ReleasePublished(
            project=project(owner).name,
            version=version_of(item["version"], "version"),
            commit=hash_of(named, "commit") if named else short,
            branch_point=hash_of(item["branch_point"], "branch_point") if item.get("branch_point") else None,
            published_at=_when(item.get("pypi_upload"), "pypi_upload"),
            evidence="anchor",
        ),
        position,
    )


def upload(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A package upload: `version, first_upload, yanked` (the first file counts: later files came up to days after)."""
    yield release_fact(
        ReleasePublished(
            project=owner,
            version=version_of(item["version"], "version"),
            published_at=iso(instant_of(item["first_upload"], "first_upload")),
            evidence="upload",
            title="yanked" if item.get("yanked") else None,
        ),
        position,
    )


def trtllm_commits(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A TensorRT-LLM version: `trtllm_commits` that its backend's submodule pointed at; two mean that we cannot tell which."""
    commits = item["trtllm_commits"]
    if not isinstance(commits, list) or not commits:
        raise InputError("trtllm_commits: must be a list that is not empty")
    dates = [iso(instant_of(proof["date"], "evidence date")) for proof in item.get("evidence", ()) if proof.get("date")]
    yield release_fact(
        ReleasePublished(
            project=owner,
            version=version_of(item["version"], "version"),
            commit=hash_of(commits[0], "trtllm_commits") if len(commits) == 1 else None,
            published_at=min((date for date in dates if date), default=None),
            evidence="version-table",
            title=None if len(commits) == 1 else line_of("candidates: " + ", ".join(map(str, commits)), MAX_TITLE),
        ),
        position,
    )


def tag(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A git tag: `tag, date, commit` (peeled). A tag that is not a release (nightly, archive) is no fact of ours."""
    version = project(owner).version_of_tag(str(item["tag"]))
    if version is not None:
        yield release_fact(
            ReleasePublished(
                project=owner,
                version=version,
                tag=line_of(str(item["tag"]), 200),
                commit=hash_of(item["commit"], "commit"),
                published_at=_when(item.get("date"), "date"),
                evidence="tag",
            ),
            position,
        )


def dynamo_backends(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A Dynamo version and the engine versions in its images; a null engine is not in that version."""
    version = version_of(item["dynamo"], "dynamo")
    for field, value in sorted(item.items()):
        known = next((known.name for known in projects().values() if field.replace("_", "-") in known.words), None)
        if known and known != owner and value is not None:
            yield UpstreamFact(
                DependencyPinned(
                    project=owner,
                    version=version,
                    dependency=known,
                    dependency_version=version_of(value, field),
                    evidence="support matrix",
                ),
                None,
                None,
                position,
            )


def github_release(owner: str, item: Item, position: str) -> Iterator[UpstreamFact]:
    """A GitHub release: `tag_name, name, published_at, body, html_url`. A tag that is not a release of the engine is skipped."""
    tag_name = str(item["tag_name"])
    version = project(owner).version_of_tag(tag_name)
    if version is None or item.get("draft"):
        return
    url = str(item.get("html_url") or "")
    yield release_fact(
        ReleasePublished(
            project=owner,
            version=version,
            tag=line_of(tag_name, 200),
            published_at=_when(item.get("published_at"), "published_at"),
            evidence="release-note",
            title=line_of(_text(item, "name") or tag_name, MAX_TITLE),
            notes=notes_of(_text(item, "body")),
            url=line_of(url, 500) if url.startswith("https://") else None,
        ),
        position,
    )


def _text(item: Item, field: str) -> str:
    """Return a text of an item, empty where there is none; raises InputError where something else stands there."""
    value = item.get(field) or ""
    if not isinstance(value, str):
        raise InputError(f"{field}: is no text but {type(value).__name__}")
    return value


def _when(value: object, field: str) -> str | None:
    return iso(instant_of(value, field)) if value else None


def _paths(entries: object) -> list[str]:
    """Return the paths of a commit's file list; each entry is a path or [status, path, …] (a rename names both)."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise InputError("files: must be a list of paths or of [status, path]")
    paths: list[str] = []
    for entry in entries:
        parts = [entry] if isinstance(entry, str) else list(entry)[1:]
        if not all(isinstance(part, str) for part in parts):
            raise InputError("files: a path is not text")
        paths.extend(parts)
    return paths
