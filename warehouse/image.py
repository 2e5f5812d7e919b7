"""What an image reference holds: repository, tag, digest, and whatever its tag tells of engine, version and commit.

Grammar: `[host/]path[:tag][@sha256:…]`; enroot's spelling puts `#` where the first `/` after the host stands. The meaning of
tags is data (`data/images.toml`). Nothing is guessed: a tag that no rule reads has source `unknown`, confidence `none`.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from warehouse.errors import InputError

MAX_REFERENCE = 512
"""Longest reference, characters: 255 of name, 128 of tag and a digest fit (OCI distribution specification)."""

_REFERENCE = re.compile(
    r"(?P<repo>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?::\d+(?=/))?(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


class ImageReference(BaseModel):
    """What one image reference holds, with the source and the confidence (high, medium, low, none) of version and commit."""

    model_config = ConfigDict(frozen=True)

    image: str
    ref: str
    repo: str
    tag: str | None
    digest: str | None
    engine: str | None
    version: str | None
    commit: str | None
    date: str | None
    wrapper: str | None
    wrapper_version: str | None
    source: str
    confidence: str

    @property
    def build_id(self) -> str:
        """Identity of the software: its digest where one is known, else the reference, marked as a tag."""
        return f"digest:{self.digest}" if self.digest else f"tag:{self.ref}"


@cache
def _repositories() -> list[tuple[re.Pattern[str], dict[str, Any], list[tuple[re.Pattern[str], dict[str, Any]]]]]:
    rules = tomllib.loads(files("warehouse").joinpath("data/images.toml").read_text("utf-8"))["repository"]
    return [
        (re.compile(entry["pattern"]), entry, [(re.compile(rule["pattern"]), rule) for rule in entry.get("rule", ())])
        for entry in rules
    ]


def normalise(image: str) -> str:
    """Return *image* with `/` where enroot writes `#`, without a transport (`docker://`) and without Docker's own host.

    `docker.io/` is what a bare name means (OCI clients add it), so with and without it is one build and not two.
    """
    text = re.sub(r"^[a-z]+://", "", image.strip()).replace("#", "/", 1)
    return re.sub(r"^(index\.)?docker\.io/", "", text)


@lru_cache(maxsize=4096)
def parse(image: str) -> ImageReference:
    """Return what *image* holds; raises InputError where it is not an image reference at all."""
    if len(image) > MAX_REFERENCE:
        raise InputError(f"image reference of {len(image)} characters: longer than {MAX_REFERENCE}, so it is not one")
    ref = normalise(image)
    match = _REFERENCE.fullmatch(ref)
    if match is None:
        raise InputError(f"image {image[:80]!r}: not an image reference; write it as [host/]name[:tag][@sha256:…]")
    repo, tag, digest = match["repo"], match["tag"], match["digest"]
    known: dict[str, Any] = {"engine": None, "wrapper": None}
    read: dict[str, str | None] = {}
    source, confidence = "unknown", "none"
    for repository, entry, rules in _repositories():
        if repository.fullmatch(repo.lower()) is None:
            continue
        known = {"engine": entry.get("engine"), "wrapper": entry.get("wrapper")}
        for pattern, rule in rules if tag else ():
            found = pattern.fullmatch(tag or "")
            if found:
                read, source, confidence = found.groupdict(), rule["name"], rule["confidence"]
                break
        break
    return ImageReference(
        image=image,
        ref=ref,
        repo=repo,
        tag=tag,
        digest=digest,
        **known,
        version=read.get("version"),
        commit=read.get("commit"),
        date=read.get("date"),
        wrapper_version=read.get("wrapper_version"),
        source=source,
        confidence=confidence,
    )
