"""A small HTTP server in a thread: every request is handed to one function, and kept so that a test can look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """One request: method, path without the query, the query, headers by lower-case name."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Reply:
    """One answer. `length` replaces Content-Length: a larger one is an answer that breaks off."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


Handle = Callable[[Asked], Reply]


class Server:
    """A running server: its host with port, its URL, what it was asked."""

    def __init__(self, httpd: ThreadingHTTPServer, scheme: str = "http") -> None:
        self.host = f"127.0.0.1:{httpd.server_port}"
        self.url = f"{scheme}://{self.host}"
        self.asked: list[Asked] = []

    def paths(self, method: str | None = None) -> list[str]:
        return [asked.path for asked in self.asked if method in (None, asked.method)]


@contextmanager
def serving(handle: Handle, tls: SSLContext | None = None) -> Iterator[Server]:
    """Serve with *handle* as long as the block lasts; with *tls* over HTTPS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet an answer: two would wait for each other
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            asked = Asked(self.command, parts.path, query, {name.lower(): value for name, value in self.headers.items()})
            server.asked.append(asked)
            reply = handle(asked)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)
            if reply.length is not None:
                self.close_connection = True

        do_HEAD = do_GET

        def log_message(self, *told: Any) -> None:
            return

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    if tls is not None:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
        httpd.handle_error = lambda *_told: None  # type: ignore[method-assign]  # a client that does not trust us hangs up
    server = Server(httpd, "https" if tls else "http")
    thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
