"""A server on loopback that answers as GitHub's API does: paging by Link, ETag and 304, both rate limits, moves, ranges.

It keeps to the documented behaviour: https://docs.github.com/en/rest (using pagination, best practices, rate limits, compare two
commits). Nothing of a real repository is in it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Json = Any
UNPAGED_COMMITS = 250
MAX_FILES = 300


@dataclass
class Repository:
    """What one repository holds; ranges by `base...head`."""

    number: int = 1
    releases: list[Json] = field(default_factory=list)
    refs: list[Json] = field(default_factory=list)
    objects: dict[str, Json] = field(default_factory=dict)
    ranges: dict[str, Json] = field(default_factory=dict)


@dataclass
class GitHub:
    """The service: its repositories, who may ask how often, and what goes wrong next."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    remaining: int = 5_000
    reset: int = 4_102_444_800
    """When the hour ends, seconds since 1970."""
    slow_down: list[tuple[int, str]] = field(default_factory=list)
    """Secondary limits to come: status and seconds of `Retry-After`."""
    broken: dict[str, str] = field(default_factory=dict)
    """Path (below the root, without query) → `cut`, `html`, `object` or `truncated`."""
    blocked: set[str] = field(default_factory=set)
    asked: list[tuple[str, int]] = field(default_factory=list)
    """Path with query, and the status that it was answered with."""
    tokens_seen: list[str | None] = field(default_factory=list)
    address: str = ""

    def __enter__(self) -> GitHub:
        service = self

        class Handler(_Handler):
            github = service

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [path for path, _ in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    github: GitHub

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        service, url = self.github, urlsplit(self.path)
        secret = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        service.tokens_seen.append(secret)
        if secret is not None and secret not in service.tokens:
            return self._json(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
        if service.slow_down:
            status, seconds = service.slow_down.pop(0)
            return self._json(status, {"message": "You have exceeded a secondary rate limit."}, {"Retry-After": seconds})
        if service.remaining <= 0:
            return self._json(403, {"message": "API rate limit exceeded for 127.0.0.1."})
        if url.path in service.broken:
            return self._broken(service.broken[url.path])
        return self._answer(url.path, dict(parse_qsl(url.query)), authorised=secret is not None)

    def _answer(self, path: str, query: dict[str, str], *, authorised: bool) -> None:
        head, _, rest = path.lstrip("/").partition("/")
        owner = self._repository(head, rest)
        if isinstance(owner, int):
            return self._json(owner, {"message": {404: "Not Found", 451: "Repository access blocked"}[owner]})
        if isinstance(owner, str):
            target = f"{self.github.address}{owner}?{urlencode(query)}" if query else f"{self.github.address}{owner}"
            return self._json(301, {"message": "Moved Permanently", "url": target}, {"Location": target})
        repository, below = owner
        if below == "releases":
            return self._page(path, repository.releases, query, authorised=authorised)
        if below.startswith("git/matching-refs/"):
            wanted = "refs/" + below.removeprefix("git/matching-refs/")
            return self._body(200, [ref for ref in repository.refs if ref["ref"].startswith(wanted)], authorised=authorised)
        if below.startswith(("git/tags/", "git/commits/")) and below.rsplit("/", 1)[-1] in repository.objects:
            return self._body(200, repository.objects[below.rsplit("/", 1)[-1]], authorised=authorised)
        if below.startswith("compare/") and below.removeprefix("compare/") in repository.ranges:
            return self._range(path, repository.ranges[below.removeprefix("compare/")], query, authorised=authorised)
        return self._json(404, {"message": "Not Found"})

    def _repository(self, head: str, rest: str) -> tuple[Repository, str] | str | int:
        """Return a repository and the path below it, or where it moved to, or the status of a refusal."""
        service = self.github
        if head == "repositories":
            number, _, below = rest.partition("/")
            found = next((one for one in service.repositories.values() if str(one.number) == number), None)
            return (found, below) if found else 404
        owner, name, below = (*rest.split("/", 2), "", "")[:3]
        full = f"{owner}/{name}"
        if head != "repos":
            return 404
        if full in service.blocked:
            return 451
        if full in service.moved:
            return f"/repositories/{service.repositories[service.moved[full]].number}/{below}"
        return (service.repositories[full], below) if full in service.repositories else 404

    def _range(self, path: str, whole: Json, query: dict[str, str], *, authorised: bool) -> None:
        commits, files = whole["commits"], whole["files"][:MAX_FILES]
        told = {**whole, "total_commits": len(commits)}
        if "page" not in query and "per_page" not in query:
            return self._body(200, {**told, "commits": commits[:UNPAGED_COMMITS], "files": files}, authorised=authorised)
        page, size = int(query.get("page", 1)), min(100, int(query.get("per_page", 30)))
        part = {**told, "commits": commits[(page - 1) * size : page * size]}
        part = {**part, "files": files} if page == 1 else {key: value for key, value in part.items() if key != "files"}
        return self._body(200, part, self._links(path, query, page, size, len(commits)), authorised=authorised)

    def _page(self, path: str, items: list[Json], query: dict[str, str], *, authorised: bool) -> None:
        page, size = int(query.get("page", 1)), min(100, int(query.get("per_page", 30)))
        shown = items[(page - 1) * size : page * size]
        self._body(200, shown, self._links(path, query, page, size, len(items)), authorised=authorised)

    def _links(self, path: str, query: dict[str, str], page: int, size: int, total: int) -> dict[str, str]:
        last = max(1, -(-total // size))
        wanted = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page == last:
            wanted = {"prev": page - 1, "first": 1}
        links = [
            f'<{self.github.address}{path}?{urlencode({**query, "page": str(number)})}>; rel="{name}"'
            for name, number in wanted.items()
            if number > 0
        ]
        return {"Link": ", ".join(links)} if last > 1 else {}

    def _body(self, status: int, value: Json, headers: dict[str, str] | None = None, *, authorised: bool) -> None:
        """Answer with a body, or with 304 where the asker has it; that one costs nothing of the limit for who is known."""
        body = json.dumps(value).encode()
        tag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        headers = {"ETag": tag, "Cache-Control": "private, max-age=0, s-maxage=60", **(headers or {})}
        if self.headers.get("If-None-Match") == tag:
            self.github.remaining -= 0 if authorised else 1
            return self._send(304, b"", headers)
        self.github.remaining -= 1
        return self._send(status, body, headers)

    def _json(self, status: int, value: Json, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value).encode(), headers or {})

    def _send(self, status: int, body: bytes, headers: dict[str, str], *, told: int | None = None, kind: str = "") -> None:
        self.github.asked.append((self.path, status))
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json; charset=utf-8")
        self.send_header("x-ratelimit-limit", "5000")
        self.send_header("x-ratelimit-remaining", str(max(0, self.github.remaining)))
        self.send_header("x-ratelimit-reset", str(self.github.reset))
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body) if told is None else told))
        self.end_headers()
        self.wfile.write(body)

    def _broken(self, how: str) -> None:
        if how == "html":
            return self._send(200, b"<html>Unicorn!</html>", {}, kind="text/html")
        if how == "object":
            return self._send(200, b'{"message": "hello"}', {})
        if how == "cut":
            return self._send(200, b'[{"tag_name": "v0.9', {})
        self.close_connection = True
        return self._send(200, b'[{"tag_name":', {}, told=5_000)
