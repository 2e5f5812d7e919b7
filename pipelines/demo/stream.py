"""A history as a stream for `git fast-import`: commits, release branches with cherry-picks, tags.

Belongs here: the stream's bytes. Does not: running git (`upstream`). A cherry-pick keeps subject, pull request, paths and
author date of its main-line twin; parent and committer date differ, and with them the hash.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pipelines.demo.history import Commit, History, Release

PERSON = "Sample Author <sample.author@example.invalid>"
MAIN = "refs/heads/main"


class Stream:
    """Collects the commands of a fast-import stream; marks are numbered from 1."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.marks = 0

    def commit(self, ref: str, commit: Commit, parent: int | None, landed: datetime) -> int:
        """Add *commit* to branch *ref* behind the commit with mark *parent*, and return its own mark."""
        self.marks += 1
        self.parts += [
            f"commit {ref}",
            f"mark :{self.marks}",
            f"author {PERSON} {_stamp(commit.at)}",
            f"committer {PERSON} {_stamp(landed)}",
            _data(commit.subject + "\n"),
        ]
        if parent is not None:
            self.parts.append(f"from :{parent}")
        for path in commit.paths:
            self.parts += [f"M 100644 inline {path}", _data(f"generated sample\n{commit.subject}\n")]
        return self.marks

    def tag(self, release: Release, mark: int) -> None:
        """Add the release's tag, annotated or light, at the commit with *mark*."""
        if release.annotated:
            self.parts += [
                f"tag {release.tag}",
                f"from :{mark}",
                f"tagger {PERSON} {_stamp(release.at)}",
                _data(f"Generated sample release {release.version}\n"),
            ]
        else:
            self.parts += [f"reset refs/tags/{release.tag}", f"from :{mark}"]

    def bytes(self) -> bytes:
        """Return the whole stream."""
        return ("\n".join([*self.parts, "done"]) + "\n").encode()


def history_stream(history: History) -> bytes:
    """Return the stream that makes *history* in an empty repository."""
    stream = Stream()
    marks: dict[int, int] = {}
    last: int | None = None
    for commit in history.commits:
        last = stream.commit(MAIN, commit, last, commit.at)
        marks[commit.pr] = last
    for release in history.releases:
        stream.tag(release, _release_mark(stream, history, release, marks[release.after]))
    return stream.bytes()


def _release_mark(stream: Stream, history: History, release: Release, tip: int) -> int:
    """Add the release's branch on the main-line commit with mark *tip*, and return the mark of its last commit."""
    if not release.branch:
        return tip
    ref = f"refs/heads/{release.branch}"
    stream.parts += [f"reset {ref}", f"from :{tip}"]
    for number, pr in enumerate(release.picks):
        landed = release.at - timedelta(hours=8 - number)
        tip = stream.commit(ref, history.commit(pr), tip, landed)
    if release.bump is not None:
        tip = stream.commit(ref, release.bump, tip, release.bump.at)
    return tip


def _stamp(instant: datetime) -> str:
    return f"{int(instant.timestamp())} +0000"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"
