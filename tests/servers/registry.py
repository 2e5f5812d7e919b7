"""An image registry on loopback that speaks the OCI distribution protocol: tokens, Accept, indexes, blobs elsewhere, faults.

The registry, its token service and its blob store are three servers on three ports, as they are three hosts in the world.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.http import Asked, Reply, Server, serving

OCI_INDEX, OCI_MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
TOKEN = "token-that-must-not-be-seen"


def digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class Content:
    """What the registry holds, and how it misbehaves."""

    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """(media type, body) by digest."""
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Digest by tag, by repository."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    granted: set[tuple[str, str]] = field(default_factory=set)
    """(token, repository): what each token that was given is good for."""
    given: int = 0
    faults: list[Reply] = field(default_factory=list)
    """Answers to the next requests for manifests, instead of what they ask for."""
    told_digest: str | None = ""
    """Docker-Content-Digest: "" the right one, None not at all, else this one."""
    heads: bool = True
    private: bool = False
    credentials: str | None = None
    """Authorization without which the token service gives nothing."""
    links: dict[str, str] = field(default_factory=dict)
    """Link of the list of tags, by repository, instead of the right one."""
    scheme: str = "Bearer"

    def image(self, config: dict[str, Any], media_type: str = OCI_MANIFEST) -> str:
        """Add an image of one platform, and return its manifest's digest."""
        blob = json.dumps(config).encode()
        self.blobs[digest(blob)] = blob
        body = json.dumps(
            {"schemaVersion": 2, "mediaType": media_type, "config": {"digest": digest(blob), "size": len(blob)}, "layers": []}
        ).encode()
        self.manifests[digest(body)] = (media_type, body)
        return digest(body)

    def index(self, media_type: str = OCI_INDEX, **platforms: str) -> str:
        """Add an index of manifests by platform (linux_amd64=digest), and return its digest."""
        entries = [
            {"digest": one, "platform": dict(zip(("os", "architecture", "variant"), name.split("_"), strict=False))}
            for name, one in platforms.items()
        ]
        body = json.dumps({"schemaVersion": 2, "mediaType": media_type, "manifests": entries}).encode()
        self.manifests[digest(body)] = (media_type, body)
        return digest(body)

    def tag(self, repository: str, tag: str, to: str) -> None:
        self.tags.setdefault(repository, {})[tag] = to


@dataclass
class Running:
    """The three servers."""

    registry: Server
    tokens: Server
    blobs: Server
    content: Content

    def ref(self, repository: str, tag: str) -> str:
        return f"{self.registry.host}/{repository}:{tag}"


@contextmanager
def running(content: Content | None = None) -> Iterator[Running]:
    """Run a registry as long as the block lasts."""
    held = content or Content()
    with (
        serving(lambda asked: _blob(held, asked)) as blobs,
        serving(lambda asked: _token(held, asked)) as tokens,
        serving(lambda asked: _registry(held, tokens, blobs, asked)) as registry,
    ):
        yield Running(registry, tokens, blobs, held)


def _token(held: Content, asked: Asked) -> Reply:
    scope = asked.query.get("scope", "")
    refused = held.private or held.credentials not in (None, asked.headers.get("authorization"))
    if refused or asked.query.get("service") != "local" or not scope.endswith(":pull"):
        return Reply(401)
    held.given += 1
    token = TOKEN if TOKEN in held.tokens else sorted(held.tokens)[0]
    held.granted.add((token, scope.removeprefix("repository:").removesuffix(":pull")))
    return Reply(body=json.dumps({"token": token, "expires_in": 60}).encode(), headers={"Cache-Control": "max-age=300"})


def _blob(held: Content, asked: Asked) -> Reply:
    """A store refuses whoever comes with somebody else's token."""
    if "authorization" in asked.headers:
        return Reply(400)
    body = held.blobs.get(asked.path.rsplit("/", 1)[-1])
    return Reply(404) if body is None else Reply(body=body, headers={"Content-Type": "application/octet-stream"})


def _registry(held: Content, tokens: Server, blobs: Server, asked: Asked) -> Reply:
    repository, _, rest = asked.path.removeprefix("/v2/").partition("/manifests/")
    if not rest:
        repository, _, rest = asked.path.removeprefix("/v2/").partition("/blobs/")
    if not rest:
        repository = asked.path.removeprefix("/v2/").removesuffix("/tags/list")
    token = asked.headers.get("authorization", "").removeprefix("Bearer ")
    if token not in held.tokens or (token, repository) not in held.granted:
        told = f'{held.scheme} realm="{tokens.url}/token",service="local",scope="repository:{repository}:pull"'
        return Reply(401, headers={"WWW-Authenticate": told})
    if asked.path.endswith("/tags/list"):
        return _tags(held, repository, asked)
    if "/blobs/" in asked.path:
        return Reply(307, headers={"Location": f"{blobs.url}/store/{rest}"})
    return _manifest(held, repository, rest, asked)


def _tags(held: Content, repository: str, asked: Asked) -> Reply:
    size = int(asked.query.get("n", "100"))
    names = sorted(name for name in held.tags.get(repository, {}) if name > asked.query.get("last", ""))
    page, more = names[:size], len(names) > size
    link = held.links.get(repository) or (f"/v2/{repository}/tags/list?n={size}&last={page[-1]}" if more else "")
    headers = {"Link": f'<{link}>; rel="next"'} if link else {}
    return Reply(body=json.dumps({"name": repository, "tags": page}).encode(), headers=headers)


def _manifest(held: Content, repository: str, reference: str, asked: Asked) -> Reply:
    if asked.method == "HEAD" and not held.heads:
        return Reply(405)
    if held.faults:
        return held.faults.pop(0)
    wanted = reference if reference.startswith("sha256:") else held.tags.get(repository, {}).get(reference, "")
    if wanted not in held.manifests:
        return Reply(404)
    media_type, body = held.manifests[wanted]
    if media_type in (OCI_INDEX, DOCKER_LIST) and media_type not in asked.headers.get("accept", ""):
        entries = json.loads(body)["manifests"]
        wanted = next(entry["digest"] for entry in entries if entry["platform"]["architecture"] == "amd64")
        media_type, body = held.manifests[wanted]
    headers = {"Content-Type": media_type}
    if held.told_digest is not None:
        headers["Docker-Content-Digest"] = held.told_digest or wanted
    return Reply(body=body, headers=headers)
