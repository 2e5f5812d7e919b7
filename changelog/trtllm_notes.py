"""TensorRT-LLM's own release notes, a Markdown document of its repository: one section a minor version.

Its sections name hardly any pull request, but the versions of what each release carries (base image, PyTorch, Triton, NIXL).
Belongs here: the document's sections and what they carry. Does not: what a note says item by item (`changelog.notes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version

from changelog.facts import MAX_NOTES, MAX_TITLE, UpstreamFact, line_of, notes_of, release_fact
from changelog.git_contents import bring_contents, contents_at
from warehouse.events import DependencyPinned, ReleasePublished

PROJECT = "trtllm"
EVIDENCE = "release notes"
MAX_SECTIONS = 500
MAX_DOCUMENT = 1 << 22
"""Characters of the document that are looked at."""
_SECTION = re.compile(r"^##[ \t]{1,8}TensorRT[- ]LLM Release ([^\n]{1,60})$", re.MULTILINE)
_NEXT = re.compile(r"^#{1,2}[ \t]", re.MULTILINE)
_CARRIES = re.compile(r"\binfra", re.IGNORECASE)


def is_notes(head: str) -> bool:
    """Return whether a text that begins with *head* is this document."""
    return _SECTION.search(head) is not None


def read_notes(folder: Path, path: str, *, mirror: bool = False) -> Iterator[UpstreamFact]:
    """Yield what the document at *path* tells, as it stands at the head of the repository in *folder*; nothing where it is not.

    Into a *mirror* of our own its contents are fetched first. Raises UpstreamError where git fails.
    """
    if mirror:
        bring_contents(folder, [path], ["HEAD"], along_main=False)
    (data,) = contents_at(folder, [("HEAD", path)])
    yield from note_facts(data[: 4 * MAX_DOCUMENT].decode("utf-8-sig", "replace")) if data is not None else ()


def note_facts(text: str) -> Iterator[UpstreamFact]:
    """Yield, for each version that the document tells of, its release with the section as note, then what it carries.

    The document gives no dates. A section whose heading is no version ("Next") is skipped; never raises.
    """
    for match in list(_SECTION.finditer(text))[:MAX_SECTIONS]:
        version = _version(match[1])
        if version is None:
            continue
        position = line_of(match[0].lstrip("# "), MAX_TITLE)
        body = text[match.end() : match.end() + MAX_NOTES + 100].lstrip("\r\n")
        following = _NEXT.search(body)
        notes = notes_of(body[: following.start()] if following else body).strip("\n")
        yield release_fact(
            ReleasePublished(project=PROJECT, version=version, evidence="release-note", title=position, notes=notes), position
        )
        yield from _carried(version, notes, position)


def _carried(version: str, notes: str, position: str) -> Iterator[UpstreamFact]:
    """Yield the versions named under "Infrastructure Changes"; of two about one package the first."""
    from changelog.notes import items  # slow to load, and few files are this document

    seen: set[str] = set()
    for item in items(PROJECT, notes):
        name, carried = item.dependency, item.dependency_version
        if name is None or carried is None or name in seen or _CARRIES.search(item.section) is None:
            continue
        seen.add(name)
        pinned = DependencyPinned(
            project=PROJECT, version=version, dependency=name, dependency_version=carried, evidence=EVIDENCE
        )
        yield UpstreamFact(pinned, None, None, position)


def _version(text: str) -> str | None:
    """Return the version of a heading as the project's tags write it, with three numbers: `1.2` is 1.2.0."""
    try:
        version = Version(text.strip())
    except InvalidVersion:
        return None
    numbers = ".".join(str(number) for number in (*version.release, 0, 0)[: max(3, len(version.release))])
    return str(version).replace(version.base_version, numbers, 1)
