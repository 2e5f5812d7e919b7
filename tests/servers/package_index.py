"""A package index on loopback that answers as PEP 691 and PEP 700 say: JSON where it is asked for, else HTML."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON_FORM = "application/vnd.pypi.simple.v1+json"


@dataclass
class PackageIndex:
    """Packages by normalised name, each a list of file entries."""

    packages: dict[str, list[Any]] = field(default_factory=dict)
    speaks_json: bool = True
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def __enter__(self) -> PackageIndex:
        service = self

        class Handler(_Handler):
            index = service

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/simple/"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: PackageIndex

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.index.asked.append(self.path)
        name = self.path.removeprefix("/simple/").rstrip("/")
        files = self.index.packages.get(name)
        if files is None:
            return self._send(404, b"404 Not Found", "text/plain")
        if not self.index.speaks_json or JSON_FORM not in (self.headers.get("Accept") or ""):
            return self._send(200, b"<!DOCTYPE html><a href='x'>x</a>", "text/html")
        versions = sorted({str(entry.get("filename", "--")).split("-")[1] for entry in files if isinstance(entry, dict)})
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files}
        return self._send(200, json.dumps(page).encode(), JSON_FORM)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
