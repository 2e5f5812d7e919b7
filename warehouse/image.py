"""What an image reference holds: repository, tag, digest, and whatever its tag tells of engine, version and commit.

Grammar: `[host/]path[:tag][@sha256:…]`; enroot's spelling puts `#` where the first `/` after the host stands. The meaning of
tags is data (`data/images.toml`). Nothing is guessed: a tag that no rule reads has source `unknown`, confidence `none`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
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
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")
_LIBRARY = re.compile(r"^library/(?=[^/]+$)")
_MIRROR = r"(?:(?:(?:[a-z0-9-]+\.)+[a-z0-9-]+(?::\d+)?|localhost(?::\d+)?|[a-z0-9-]+:\d+)/(?:[a-z0-9._-]+/)*?)?"
"""A registry of somebody's own before a repository that we know: the hub's repositories have no host of their own."""
ELSEWHERE = "in a registry of somebody's own"
"""Said of a tag there: it is read as in the project's own, and believed less."""
_PARTS = {
    "version": r"(?P<version>\d+(?:\.\d+)+(?:-?(?:rc|a|b)\d+)?(?:\.post\d*)?(?:\.dev\d+)?)",
    "date": r"(?P<date>20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))",
    "time": r"(?P<time>(?:[01]\d|2[0-3])[0-5]\d)",
    "commit": r"(?P<commit>(?!0{40})[0-9a-f]{40})",
    "short": r"(?P<commit>(?!(?:20\d{6}(?:\d{4})?|[01]\d[0-3]\d20\d\d)(?![0-9a-f]))[0-9a-f]{7,12})",
    "wrapper_version": r"(?P<wrapper_version>v?\d+\.\d+\.\d+(?:[.-][0-9a-z]+)*?)",
    "custom": r"(?!20\d{6})[A-Za-z0-9.]+",
    "rocm": r"(?:_(?:preview|release|instinct|mi\d+x?|ubuntu_?[\d.]+|py[\d.]+))*",
}


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
    time: str | None
    """Hour and minute of the build that the tag tells behind its date, as HHMM."""
    wrapper: str | None
    wrapper_version: str | None
    suffixes: tuple[str, ...]
    """What else the tag holds, in its order: platforms, CUDA and ROCm versions, names."""
    source: str
    confidence: str

    @property
    def build_id(self) -> str:
        """Identity of the software: its digest where one is known, else the reference, marked as a tag."""
        return f"digest:{self.digest}" if self.digest else f"tag:{self.ref}"


@dataclass(frozen=True)
class _Rule:
    name: str
    pattern: re.Pattern[str]
    confidence: str
    engine: str | None


@dataclass(frozen=True)
class _Repository:
    pattern: re.Pattern[str]
    engine: str | None
    wrapper: str | None
    rules: tuple[_Rule, ...]


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("warehouse").joinpath("data/images.toml").read_text("utf-8"))


@cache
def _repositories() -> tuple[_Repository, ...]:
    data = _data()
    words = "|".join(data["known"])
    parts = _PARTS | {"known": f"(?:[-_](?:{words}))*", "leading": f"(?:(?:{words})[-_])*"}
    rules = {
        rule["name"]: _Rule(rule["name"], _pattern(rule["pattern"], parts), rule["confidence"], rule.get("engine"))
        for rule in data["rule"]
    }
    return tuple(
        _Repository(
            re.compile(f"(?P<mirror>{_MIRROR})(?:{entry['pattern']})"),
            entry.get("engine"),
            entry.get("wrapper"),
            tuple(rules[name] for name in entry["rules"]),
        )
        for entry in data["repository"]
    )


def _pattern(text: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(re.sub(r"<([a-z_]+)>", lambda found: parts[found[1]], text))


@cache
def _hubs() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(map(re.escape, _data()['hubs']))})(?::443)?/", re.IGNORECASE)


def normalise(image: str) -> str:
    """Return *image* with `/` where enroot writes `#`, without a transport (`docker://`) and without the public hub's own hosts.

    `docker.io/` is what a bare name means (OCI clients add it), and `library/` what a name of one part means there, so with and
    without them it is one build and not two. To normalise again changes nothing.
    """
    text = image.strip()
    while (shorter := _SCHEME.sub("", text).strip()) != text:
        text = shorter
    text = text.replace("#", "/") if text.count("#") == 1 else text
    while found := _hubs().match(text):
        text = text[found.end() :].strip()
    return _LIBRARY.sub("", text)


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
    holds, found, read = _read(repo, tag or "")
    engine = (found.engine if found else None) or (holds.engine if holds else None)
    return ImageReference(
        image=image,
        ref=ref,
        repo=repo,
        tag=tag,
        digest=digest,
        engine=engine,
        version=read.get("version"),
        commit=read.get("commit"),
        date=read.get("date"),
        time=read.get("time"),
        wrapper=holds.wrapper if holds else None,
        wrapper_version=read.get("wrapper_version"),
        suffixes=_suffixes(tag, read) if found else (),
        source=found.name if found else "unknown",
        confidence=found.confidence if found else "none",
    )


def _read(repo: str, tag: str) -> tuple[_Repository | None, _Rule | None, dict[str, str | None]]:
    """Return the repository's entry, the rule that reads the tag, and what it reads."""
    for entry in _repositories():
        place = entry.pattern.fullmatch(repo.lower())
        if place is None:
            continue
        for rule in entry.rules if tag else ():
            match = rule.pattern.fullmatch(tag)
            if match and _is_day(match.groupdict().get("date")):
                return entry, _elsewhere(rule) if place["mirror"] else rule, match.groupdict()
        return entry, None, {}
    return None, None, {}


def _elsewhere(rule: _Rule) -> _Rule:
    lower = "medium" if rule.confidence == "high" else rule.confidence
    return replace(rule, name=f"{rule.name}, {ELSEWHERE}", confidence=lower)


def _is_day(digits: str | None) -> bool:
    """Say whether eight digits are a day of the calendar; without any there is nothing wrong."""
    if digits is None:
        return True
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True


def _suffixes(tag: str | None, read: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the words of a tag that were not read as something else."""
    rest = tag or ""
    for value in read.values():
        rest = rest.replace(value, " ", 1) if value else rest
    return tuple(word for word in re.findall(r"x86_64|[A-Za-z0-9.]+", rest) if word.strip(".") and word != "v")
