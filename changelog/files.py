"""Upstream files, recognised by content: commit lines, release anchors, upload and tag lists, release notes, price lists.

To add a format: one Reader in READERS, or in TEXTS where it is no JSON. Belongs here: recognising and the walk over items with
their places. Does not: what one item means (`changelog.items`, `changelog.rates`), archives and .gz (the caller opens them), the
event log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from changelog import gpu_rates, recipe_files, token_prices, trtllm_notes
from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, line_of
from changelog.items import anchor, commit, dynamo_backends, github_release, tag, trtllm_commits, upload
from changelog.projects import project_of_file, project_of_url
from warehouse.errors import InputError

HEAD = 1 << 20
"""Bytes of a file that are looked at to recognise it; one GitHub release of full length fits in."""

Item = dict[str, Any]
ReadItem = Callable[[str, Item, str], Iterator[UpstreamFact]]
Walk = Callable[[str], Iterator[tuple[str, object]]]
OwnerOf = Callable[[str, Item, str | None], str]


class Given(NamedTuple):
    """A file: its name and text, and what the user declared of it: its project, and the time at which it held."""

    name: str
    text: str
    project: str | None
    declared_at: datetime | None


Told = UpstreamFact | UpstreamFault


@dataclass(frozen=True)
class Reader:
    """One format: its name, what it looks like (its first JSON object, or the head of a text that is none), what it tells."""

    name: str
    matches: Callable[[Any], bool]
    facts: Callable[[Given], Iterator[Told]]

    def read(self, name: str, data: bytes, project: str | None = None, *, declared_at: datetime | None = None) -> Iterator[Told]:
        """Yield the facts of a file, and a fault for each item that cannot be read.

        *name* is the file's name, *data* its bytes (not compressed), *project* the declared one, *declared_at* since when a price
        list holds that does not say it. Raises InputError where the project or the time is needed and neither told nor declared,
        or where the file as a whole cannot be read.
        """
        yield from self.facts(Given(name, _text(name, data), project, declared_at))


def _items(read_item: ReadItem, walk: Walk, owner_of: OwnerOf) -> Callable[[Given], Iterator[Told]]:
    """Return the reading of a file of items, each of which is about a project."""

    def facts(given: Given) -> Iterator[Told]:
        for position, item in walk(given.text):
            try:
                if not isinstance(item, dict):
                    raise InputError("is not a JSON object")
                yield from read_item(owner_of(given.name, item, given.project), item, position)
            except _ProjectError:
                raise
            except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
                yield UpstreamFault(position, f"{given.name}: {position}: {_reason(error)}", line_of(_show(item), MAX_EXCERPT))

    return facts


def _rates(read: Callable[[str, datetime | None], Iterator[Told]]) -> Callable[[Given], Iterator[Told]]:
    """Return the reading of a price list, which is no project's."""

    def facts(given: Given) -> Iterator[Told]:
        try:
            for told in read(given.text, given.declared_at):
                if isinstance(told, UpstreamFault):
                    told = told._replace(reason=f"{given.name}: {told.position}: {told.reason}")
                yield told
        except InputError as error:
            raise InputError(f"{given.name}: {error}") from None

    return facts


def _document(read: Callable[[str], Iterator[Told]]) -> Callable[[Given], Iterator[Told]]:
    """Return the reading of a document of one project, which tells its project by its content."""
    return lambda given: read(given.text)


def _recipes(read: Callable[[str], Iterator[Told]]) -> Callable[[Given], Iterator[Told]]:
    """Return the reading of a benchmark's recipe log, or of the dates of one."""

    def facts(given: Given) -> Iterator[Told]:
        try:
            for told in read(given.text):
                yield told._replace(reason=f"{given.name}: {told.reason}") if isinstance(told, UpstreamFault) else told
        except InputError as error:
            raise InputError(f"{given.name}: {error}") from None

    return facts


class _ProjectError(InputError):
    """The file does not tell its project: wrong for all items, so the file is refused."""


def recognise(data: bytes) -> Reader | None:
    """Return the reader of a file by what stands at its beginning, or None where it is no upstream format."""
    head = data[:HEAD].decode("utf-8-sig", "replace")
    first = _first_item(data, head.lstrip())
    if first is None:
        return next((reader for reader in TEXTS if reader.matches(head)), None)
    return next((reader for reader in READERS if reader.matches(first)), None)


def _first_item(data: bytes, head: str) -> Item | None:
    """Return the first object of a list or of JSON lines; a file that is one object (anchors, prices) as a whole."""
    if head.startswith("["):
        return _object_at(head[1:].lstrip())
    whole = any(word in data for word in _WHOLE_WORDS) and head.startswith("{")
    return (_object_at(data.decode("utf-8-sig", "replace").strip(), whole=True) if whole else None) or _object_at(
        head.split("\n", 1)[0]
    )


def _object_at(text: str, *, whole: bool = False) -> Item | None:
    """Return the JSON object that *text* begins with, or, where it is the *whole*, that it is."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and (end == len(text) or not whole) else None


_WHOLE_WORDS = (
    b'"pypi_upload"',
    b'"bump_commit"',
    b'"sdist_commit"',
    b'"branch_point"',
    b'"litellm_provider"',
    b'"provider_name"',
)
"""Words of files that are one object over many lines."""


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


def _fixed(project: str) -> OwnerOf:
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
    Reader("upstream-commits", _has("hash", "parents", "committer_date", "subject"), _items(commit, _lines, _by_file)),
    Reader("release-anchors", _is_anchors, _items(anchor, _anchors, _own)),
    Reader("upload-list", _has("version", "first_upload"), _items(upload, _list, _by_file)),
    Reader("trtllm-version-commits", _has("version", "trtllm_commits"), _items(trtllm_commits, _list, _fixed("trtllm"))),
    Reader("tag-list", _has("tag", "commit", "date"), _items(tag, _list, _by_file)),
    Reader("dynamo-backend-versions", _has("dynamo", "tensorrt_llm"), _items(dynamo_backends, _list, _fixed("dynamo"))),
    Reader("github-releases", _has("tag_name", "published_at"), _items(github_release, _list, _by_url)),
    Reader("recipe-dates", _has("pr_link", "commit", "first_added_at"), _recipes(recipe_files.date_facts)),
    Reader("litellm-prices", token_prices.is_litellm, _rates(token_prices.litellm_prices)),
    Reader("openrouter-endpoints", token_prices.is_openrouter, _rates(token_prices.openrouter_prices)),
)
"""Every upstream format that is JSON, one line each."""
TEXTS: tuple[Reader, ...] = (
    Reader("gpu-rates-csv", gpu_rates.is_csv, _rates(gpu_rates.csv_rates)),
    Reader("gpu-rates-yaml", gpu_rates.is_yaml, _rates(gpu_rates.yaml_rates)),
    Reader("trtllm-release-notes", trtllm_notes.is_notes, _document(trtllm_notes.note_facts)),
    Reader("recipe-log", recipe_files.is_log, _recipes(recipe_files.log_facts)),
)
"""Every upstream format that is another text."""
