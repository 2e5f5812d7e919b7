"""Asking image registries (OCI distribution API, version 1.1 of the specification): what a reference stands for now.

A digest is always worked out from the bytes that came; the header that tells it is optional and may be wrong. Belongs here:
tokens, manifests, indexes, configurations, tags. Does not: what labels mean (`changelog.image_labels`), HTTP itself
(`changelog.web`).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from changelog.facts import line_of
from changelog.web import Answer, Web, WebError, same_origin, shown
from warehouse.image import parse

OCI_INDEX, OCI_MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
ACCEPT = (OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST)
"""All four: without the list types a registry answers with one platform's manifest, and its digest."""
INDEXES = (OCI_INDEX, DOCKER_LIST)
HUB = "registry-1.docker.io"
HUB_NAMES = ("docker.io", "index.docker.io", HUB)
MAX_MANIFEST = 4 << 20
"""Bytes; the specification asks registries to take manifests up to this size."""
MAX_CONFIG = 8 << 20
MAX_PLATFORMS = 32
MAX_TAGS = 50_000
TAGS_A_PAGE = 1_000
MAX_PAGES = 1_000
TOKENS = 2
"""Tokens that one question is worth: some registries refuse the one that they have just given."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE = re.compile(r"([A-Za-z]{1,20})[ \t]*=[ \t]*(?:\"([^\"]{0,2000})\"|([^\s,\"]{1,500}))")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LINK = re.compile(r"<([^<>]{1,2000})>[^,]{0,200}?rel=\"?next\"?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Place:
    """Where a reference lies: the registry's host, the name there, and the tag or digest that is asked for."""

    host: str
    name: str
    reference: str

    def url(self, *path: str) -> str:
        """Return the URL of *path* below the repository; plain HTTP on this machine only."""
        scheme = "http" if (urlsplit(f"//{self.host}").hostname or "") in _LOOPBACK else "https"
        parts = "/".join(quote(part, safe=":") for part in path)
        return f"{scheme}://{self.host}/v2/{quote(self.name)}/{parts}"


@dataclass(frozen=True)
class Platform:
    """One platform of an image: its manifest, and the configuration as the registry keeps it (a JSON object)."""

    platform: str | None
    manifest_digest: str
    config_digest: str | None
    config: dict[str, Any]


@dataclass(frozen=True)
class Resolved:
    """What a reference stands for now: digest and media type of what it answers itself, and its platforms."""

    digest: str
    media_type: str
    platforms: tuple[Platform, ...]
    notes: tuple[str, ...] = ()


def place_of(image: str) -> Place:
    """Return where *image* (a reference in any spelling) lies; raises InputError where it is none."""
    reference = parse(image)
    head, _slash, rest = reference.repo.partition("/")
    hosted = bool(rest) and ("." in head or ":" in head or head == "localhost")
    host, name = (head, rest) if hosted else (HUB, reference.repo)
    if host == HUB and "/" not in name:
        name = f"library/{name}"
    return Place(host, name, reference.digest or reference.tag or "latest")


class Registry:
    """Registries asked through one `Web`; tokens are kept for as long as this object lives.

    Credentials, for one registry only: `$SHIFTLOG_REGISTRY_HOST`, `$SHIFTLOG_REGISTRY_USER`, `$SHIFTLOG_REGISTRY_PASSWORD`.
    """

    def __init__(self, web: Web, environment: Mapping[str, str] = os.environ) -> None:
        self.web, self.environment = web, environment
        self._tokens: dict[tuple[str, str], dict[str, str]] = {}

    def digest(self, image: str) -> str | None:
        """Return the digest that the registry tells of *image* without sending it (HEAD), or None where it tells none.

        Good for recognising a digest that is known already, and for nothing else: the header may be wrong.
        """
        place = place_of(image)
        try:
            told = self._asked(place, place.url("manifests", place.reference), head=True).headers.get("docker-content-digest", "")
        except WebError as error:
            if error.temporary:
                raise
            return None  # a GET tells whether the image is not there, or a HEAD not answered here
        return told if _DIGEST.fullmatch(told) else None

    def resolve(self, image: str) -> Resolved:
        """Return what *image* stands for now; raises WebError (its `temporary` says: unknown for now) where it cannot be had."""
        place = place_of(image)
        notes: list[str] = []
        body, digest, media_type = self._manifest(place, place.reference, notes)
        platforms = tuple(self._platforms(place, body, digest, media_type, notes, {digest}))
        if not platforms:
            raise WebError(f"{place.host}/{place.name}: {digest[:19]}… names no platform that can be had{_said(notes)}")
        return Resolved(digest, media_type, platforms, tuple(notes))

    def tags(self, repository: str) -> Iterator[str]:
        """Yield the tags of a repository, page by page, at most MAX_TAGS; raises WebError as `resolve` does."""
        place = place_of(repository)
        url, count = f"{place.url('tags', 'list')}?n={TAGS_A_PAGE}", 0
        for _ in range(MAX_PAGES):
            answer = self._asked(place, url)
            told = _object(answer).get("tags")
            tags = [tag for tag in told if isinstance(tag, str) and _TAG.fullmatch(tag)] if isinstance(told, list) else []
            yield from tags[: MAX_TAGS - count]
            count += len(tags)
            following = _following(answer, place)
            if following is None or not tags or count >= MAX_TAGS:
                return
            url = following

    def _manifest(self, place: Place, reference: str, notes: list[str]) -> tuple[dict[str, Any], str, str]:
        """Return a manifest or an index, the digest of its bytes, and its media type; a digest that differs is noted."""
        answer = self._asked(place, place.url("manifests", reference))
        digest = _digest(answer.body)
        if _DIGEST.fullmatch(reference) and digest != reference:
            raise WebError(f"{place.host}/{place.name}@{reference[:19]}…: other bytes came than its digest says", status=200)
        body = _object(answer)
        told = answer.headers.get("docker-content-digest")
        if told and told != digest:
            notes.append(f"{place.host} tells the digest {line_of(told, 80)}, but its bytes have {digest}")
        media_type = body.get("mediaType") or answer.headers.get("content-type", "").partition(";")[0].strip()
        if not _has_shape(body):  # whatever its type is said to be: an error must never be kept as an image with a digest
            raise WebError(f"{place.host}/{place.name}: what came is no image ({line_of(str(media_type), 60) or 'no type'})")
        return body, digest, line_of(str(media_type), 120)

    def _platforms(
        self,
        place: Place,
        body: dict[str, Any],
        digest: str,
        media_type: str,
        notes: list[str],
        asked: set[str],
        *,
        nested: bool = False,
    ) -> Iterator[Platform]:
        """Yield the platforms behind an index, or the one of a manifest; one that is gone is noted.

        *asked*: the digests that were asked for so far, at most MAX_PLATFORMS whatever indexes they stand in, each once.
        """
        if not _is_index(body, media_type):
            yield self._platform(place, body, digest, None)
            return
        listed = body.get("manifests")
        entries = [entry for entry in listed if _is_platform(entry)] if isinstance(listed, list) else []
        for entry in entries:
            if entry["digest"] in asked:
                continue
            if len(asked) > MAX_PLATFORMS:
                notes.append(f"{digest[:19]}… names more platforms; {MAX_PLATFORMS} manifests are read")
                return
            asked.add(entry["digest"])
            try:
                inner, inner_digest, inner_type = self._manifest(place, entry["digest"], notes)
            except WebError as error:
                if error.status != 404:
                    raise
                notes.append(str(error))  # a mirror that keeps some of the platforms
                continue
            if not _is_index(inner, inner_type):
                yield self._platform(place, inner, inner_digest, _platform_of(entry.get("platform")))
            elif not nested:
                yield from self._platforms(place, inner, inner_digest, inner_type, notes, asked, nested=True)

    def _platform(self, place: Place, body: dict[str, Any], digest: str, platform: str | None) -> Platform:
        descriptor = body.get("config")
        wanted = descriptor.get("digest") if isinstance(descriptor, dict) else None
        if not isinstance(wanted, str) or not _DIGEST.fullmatch(wanted):
            return Platform(platform, digest, None, {})
        answer = self._asked(place, place.url("blobs", wanted), limit=MAX_CONFIG)
        if _digest(answer.body) != wanted:
            raise WebError(f"{place.host}/{place.name}: other bytes came than {wanted[:19]}…, its configuration")
        config = _object(answer)
        return Platform(platform or _platform_of(config), digest, wanted, config)

    def _asked(self, place: Place, url: str, *, limit: int = MAX_MANIFEST, head: bool = False) -> Answer:
        """Ask, with a token once the registry wants one, with a new one where it has run out."""
        answer = self._once(url, self._tokens.get((place.host, place.name), {}), limit, head)
        for _ in range(TOKENS):
            if answer.status != 401:
                return answer
            fresh = self._authorised(place, answer)
            self._tokens[place.host, place.name] = fresh
            answer = self._once(url, fresh, limit, head)
        if answer.status == 401:
            raise WebError(f"{place.host}/{place.name}: access refused, so it is unknown for now", status=401, temporary=True)
        return answer

    def _once(self, url: str, headers: dict[str, str], limit: int, head: bool) -> Answer:
        """Ask once; nothing is kept in a cache: what a tag means must hold now, and a configuration may hold secrets."""
        if head:
            return self.web.head(url, accept=ACCEPT, headers=headers, ok=(200, 401))
        return self.web.get(url, accept=ACCEPT, headers=headers, limit=limit, ok=(200, 401), keep=False)

    def _authorised(self, place: Place, answer: Answer) -> dict[str, str]:
        """Return the header that answers a 401: a token from where it sends us, or a user and a password where we have them.

        Only the registry itself may send us anywhere, not a store that it led to.
        """
        if not same_origin(answer.url, place.url()):
            raise WebError(f"{shown(answer.url)}: access refused, so it is unknown for now", status=401, temporary=True)
        scheme, told = challenge(answer.headers.get("www-authenticate", ""))
        basic = self._basic(place)
        if scheme == "basic" and basic:
            return basic
        realm = told.get("realm", "")
        if scheme != "bearer" or not _may_ask(realm, answer.url):
            raise WebError(f"{place.host}/{place.name}: access refused, and it offers no token", status=401, temporary=True)
        named = {key: value for key in ("service", "scope") if (value := told.get(key))}
        named.setdefault("scope", f"repository:{place.name}:pull")
        given = _object(self.web.get(realm, parameters=named, headers=basic, limit=MAX_MANIFEST, keep=False))
        token = given.get("token") or given.get("access_token")
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]{1,20000}", token):
            raise WebError(f"{place.host}/{place.name}: its token service gave no token", status=401, temporary=True)
        return {"Authorization": f"Bearer {token}"}

    def _basic(self, place: Place) -> dict[str, str]:
        host, user, password = (self.environment.get(f"SHIFTLOG_REGISTRY_{name}") for name in ("HOST", "USER", "PASSWORD"))
        host = HUB if host in HUB_NAMES else host
        if not (user and password and host == place.host):
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def challenge(header: str) -> tuple[str, dict[str, str]]:
    """Return the scheme of a `WWW-Authenticate` header, in lower case, and its parameters; of several schemes Bearer."""
    text = header[:4000]
    found = re.search(r"(?:^|[\s,])(bearer|basic)(?=[\s,]|$)", text, re.IGNORECASE)
    bearer = re.search(r"(?:^|[\s,])(bearer)(?=[\s,]|$)", text, re.IGNORECASE)
    start = bearer or found
    if start is None:
        return "", {}
    pairs = {key.lower(): quoted or plain for key, quoted, plain in _CHALLENGE.findall(text[start.end() :])}
    return start[1].lower(), pairs


def _may_ask(realm: str, asked: str) -> bool:
    """Say whether a token may be asked for there: over HTTPS, or on this machine by a registry on it."""
    try:
        parts, here = urlsplit(realm), urlsplit(asked)
        local = parts.hostname in _LOOPBACK and here.hostname in _LOOPBACK
        return parts.scheme == "https" or (parts.scheme == here.scheme == "http" and local)
    except ValueError:
        return False


def _following(answer: Answer, place: Place) -> str | None:
    """Return where the next page of a list is; a token must not go elsewhere, so it is at the registry itself."""
    found = _LINK.search(answer.headers.get("link", "")[:4000])
    try:
        url = urljoin(answer.url, found[1]) if found else ""
        return url if url and url != answer.url and same_origin(url, place.url()) else None
    except ValueError:
        return None


def _is_index(body: Mapping[str, Any], media_type: str) -> bool:
    return media_type in INDEXES or isinstance(body.get("manifests"), list)


def _has_shape(body: Mapping[str, Any]) -> bool:
    """Say whether *body* is an index or a manifest: a page that says sorry is neither."""
    return isinstance(body.get("manifests"), list) or (
        isinstance(body.get("config"), dict) and isinstance(body.get("layers"), list)
    )


def _said(notes: list[str]) -> str:
    return f" ({notes[0]})" if notes else ""


def _object(answer: Answer) -> dict[str, Any]:
    value = answer.json()
    if not isinstance(value, dict):
        raise WebError(f"{urlsplit(answer.url).hostname}: its answer is not a JSON object", status=answer.status)
    return value


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _is_platform(entry: object) -> bool:
    """Say whether an entry of an index is an image: attestations stand there as the platform unknown/unknown."""
    if not isinstance(entry, dict) or not isinstance(entry.get("digest"), str) or not _DIGEST.fullmatch(entry["digest"]):
        return False
    platform = entry.get("platform")
    return not (isinstance(platform, dict) and platform.get("os") == "unknown")


def _platform_of(told: object) -> str | None:
    if not isinstance(told, dict) or not told.get("os") or not told.get("architecture"):
        return None
    named = [told[key] for key in ("os", "architecture", "variant") if told.get(key)]
    return line_of("/".join(named), 60) if all(isinstance(one, str) for one in named) else None
