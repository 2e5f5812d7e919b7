"""Upstream files, recognised by content: commit lines, release anchors, upload and tag lists, version tables, release notes.

To add a format: one Reader below and its line in READERS. Belongs here: recognising and the walk over items with their places.
Does not: what one item means (`changelog.items`), archives and .gz (the caller opens them), the event log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, line_of
from changelog.items import anchor, commit, dynamo_backends, github_release, tag, trtllm_commits, upload
from changelog.projects import project_of_file, project_of_url
from warehouse.errors import InputError

HEAD = 1 << 20
"""Bytes of a file that are looked at to recognise it; one GitHub release of full length fits in."""

Item = dict[str, Any]
ReadItem = Callable[[str, Item, str], Iterator[UpstreamFact]]
Walk = Callable[[str], Iterator[tuple[str, object]]]


@dataclass(frozen=True)
class Reader:
    """One format: its name, what it looks like, how its items are found and what each means."""

    name: str
    matches: Callable[[Item], bool]
    read_item: ReadItem
    walk: Walk
    project: Callable[[str, Item, str | None], str]

    def read(self, name: str, data: bytes, project: str | None = None) -> Iterator[UpstreamFact | UpstreamFault]:
        """Yield the facts of a file, and a fault for each item that cannot be read.

        *name* is the file's name, *data* its bytes (not compressed), *project* the declared one. Raises InputError where
        neither name nor declaration tells the project, or where the file as a whole cannot be read.
        """
        for position, item in self.walk(_text(name, data)):
            try:
                if not isinstance(item, dict):
                    raise InputError(f"{self.name} item is not a JSON object")
                owner = self.project(name, item, project)
                yield from self.read_item(owner, item, position)
            except _ProjectError:
                raise
            except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
                yield UpstreamFault(position, f"{name}: {position}: {_reason(error)}", line_of(_show(item), MAX_EXCERPT))


class _ProjectError(InputError):
    """The file does not tell its project: wrong for all items, so the file is refused."""


def recognise(data: bytes) -> Reader | None:
    """Return the reader of a file by what stands at its beginning, or None where it is no upstream format."""
    first = _first_item(data)
    if first is None:
        return None
    return next((reader for reader in READERS if reader.matches(first)), None)


def _first_item(data: bytes) -> Item | None:
    """Return the first object of a list or of JSON lines; an anchors file, which is one object, as a whole."""
    head = data[:HEAD].decode("utf-8-sig", "replace").lstrip()
    try:
        if head.startswith("["):
            value, _ = json.JSONDecoder().raw_decode(head[1:].lstrip())
        elif any(word in data for word in _ANCHOR_WORDS):
            value = json.loads(data.decode("utf-8-sig", "replace"))
        else:
            value, _ = json.JSONDecoder().raw_decode(head.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_ANCHOR_WORDS = (b'"pypi_upload"', b'"bump_commit"', b'"sdist_commit"', b'"branch_point"')


def _text(name: str, data: bytes) -> str:
    if data[:2] == b"\x1f\x8b":
        raise InputError(f"{name}: is gzip data; unpack it first")
    return data.decode("utf-8-sig", "replace")


def _lines(text: str) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"line {number}", _parsed(line)


def _list(text: str) -> Iterator[tuple[str, object]]:
    value = _parsed(text)
    if not isinstance(value, list):
        yield "file", value
        return
    for number, item in enumerate(value, start=1):
        yield f"item {number}", item


def _anchors(text: str) -> Iterator[tuple[str, object]]:
    value = _parsed(text)
    for owner, versions in value.items() if isinstance(value, dict) else ():
        if isinstance(versions, dict):
            for version, entry in versions.items():
                known = isinstance(entry, dict)
                yield f"{owner} {version}"[:120], {**entry, "project": owner, "version": version} if known else entry


def _parsed(text: str) -> object:
    """Return the JSON value of *text*, or the text itself where it is none (the caller says so)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _by_file(name: str, _item: Item, declared: str | None) -> str:
    try:
        return project_of_file(name, declared)
    except InputError as error:
        raise _ProjectError(str(error)) from None


def _by_url(name: str, item: Item, declared: str | None) -> str:
    return project_of_url(str(item.get("html_url"))) or _by_file(name, item, declared)


def _fixed(project: str) -> Callable[[str, Item, str | None], str]:
    return lambda _name, _item, _declared: project


def _own(_name: str, item: Item, _declared: str | None) -> str:
    return str(item["project"])


def _has(*keys: str) -> Callable[[Item], bool]:
    return lambda item: all(key in item for key in keys)


def _is_anchors(item: Item) -> bool:
    entries = [entry for versions in item.values() if isinstance(versions, dict) for entry in versions.values()]
    keys = {"full", "bump_commit", "sdist_commit", "branch_point", "pypi_upload"}
    return bool(entries) and all(isinstance(entry, dict) and keys & set(entry) for entry in entries)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"field {error.args[0]!r} is missing"
    return line_of(str(error), 300)


def _show(item: object) -> str:
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str)
    return re.sub(r"\s+", " ", text[: 4 * MAX_EXCERPT])


READERS: tuple[Reader, ...] = (
    Reader("upstream-commits", _has("hash", "parents", "committer_date", "subject"), commit, _lines, _by_file),
    Reader("release-anchors", _is_anchors, anchor, _anchors, _own),
    Reader("upload-list", _has("version", "first_upload"), upload, _list, _by_file),
    Reader("trtllm-version-commits", _has("version", "trtllm_commits"), trtllm_commits, _list, _fixed("trtllm")),
    Reader("tag-list", _has("tag", "commit", "date"), tag, _list, _by_file),
    Reader("dynamo-backend-versions", _has("dynamo", "tensorrt_llm"), dynamo_backends, _list, _fixed("dynamo")),
    Reader("github-releases", _has("tag_name", "published_at"), github_release, _list, _by_url),
)
"""Every upstream format, one line each."""
