"""What kind of change an entry of a recipe log tells of, by its words (`data/recipes.toml`) and its commit.

`image`: another image and nothing else (besides the search space), `search_space`: other points alone, `configuration`: one that
was not there, `checkpoint`: other weights, `measurement`: harness, client, metrics, evaluations, or the same once more,
`recipe`: all else that changes how a configuration is launched. When in doubt it is a recipe.
Belongs here: words to kinds. Does not: which configurations an entry is about (`pipelines.detect.recipes`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from warehouse import vocabulary

IMAGE, RECIPE, CONFIGURATION, SEARCH_SPACE = "image", "recipe", "configuration", "search_space"
MEASUREMENT, CHECKPOINT = "measurement", "checkpoint"
KINDS = (IMAGE, RECIPE, CONFIGURATION, SEARCH_SPACE, MEASUREMENT, CHECKPOINT)

_IMAGE = re.compile(r"\b(?:images?|containers?|docker|tags?|versions?)\b|\d\.\d", re.IGNORECASE)
_SPACE = re.compile(r"\b(?:conc\w*|sweeps?|search|points?)\b|^\W*(?:add|extend|new)", re.IGNORECASE)
"""What a line must name to be about an image, or about the search space."""
_FLAG = re.compile(r"(?<![\w-])--?[a-z]|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|(?<![=!<>])=(?!=)|\.sh\b|\.ya?ml\b")
"""What a command line or a script shows: flags, environment variables, settings, files."""
_REFERENCE = re.compile(r"\S*[/@]\S*|\S*:\S+|\S*\d\S*")
"""Text that names a version, an image, a number or a place."""
_POINT = re.compile(r"\b(tp|ep|dp|conc(?:-start|-end|-list)?|isl|osl)\s?[=:]\s?\[?\d[\d, ]*\]?", re.IGNORECASE)
"""A size that tells a point, as a configuration spells it."""
_SIZES = re.compile(r"\b(?:tp|ep|dp)\s?=?\s?\d+|[~+-]?\d+(?:\.\d+)?\s?%?")
_WORD = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9_]+){0,4}")
_FROM_A_HUB = re.compile(r"(?<![\w./:-])[A-Za-z][\w-]{1,40}/[A-Z][\w.-]{2,80}")
"""A checkpoint on a model hub: a capital begins its name, which none of an image may."""
OPENING = 120
"""Characters of a line in which an entry says what it adds, before it goes on to how."""


def kind_of(lines: Iterable[str]) -> str:
    """Return the kind of an entry by the lines of its description."""
    lines = tuple(line for line in lines if line.strip() and not _is_result(line))
    if not lines:
        return RECIPE
    kinds = {_plain(line) for line in lines}
    if _adds_configuration(lines[0]):
        return CONFIGURATION
    if IMAGE in kinds and None not in kinds:
        return IMAGE
    if None not in kinds:
        return SEARCH_SPACE
    if any(_is_of_checkpoint(line) for line in lines):
        return CHECKPOINT
    return MEASUREMENT if _is_of_measurement(lines) else RECIPE


def judged(lines: Iterable[str], touched: str | None) -> tuple[str, bool]:
    """Return the kind of an entry and whether it may be a cause; what its commit *touched* counts before its words.

    A commit that changed images alone is no recipe, whatever its entry says; one that changed launch scripts is more than the
    image that its entry tells of. Points that are added bring settings of their own, which move no others.
    """
    lines = tuple(lines)
    kind, cause = kind_of(lines), is_cause(lines)
    if touched == IMAGE and kind in (IMAGE, RECIPE):
        return IMAGE, False
    if touched == "more" and kind == IMAGE:
        return RECIPE, True
    return kind, cause


def is_cause(lines: Iterable[str]) -> bool:
    """Say whether an entry may be why a curve moved: it tells of more than another image and other points, or of nothing."""
    lines = tuple(lines)
    return bool(lines_of_cause(lines)) or not any(_plain(line) for line in lines)


def lines_of_cause(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that tell of more than another image and other points; gains that are told are no change."""
    return tuple(line for line in lines if line.strip() and not _is_result(line) and _plain(line) is None)


@lru_cache(maxsize=16_384)
def _plain(line: str) -> str | None:
    """Return IMAGE or SEARCH_SPACE where a line is about that alone: such words, names and numbers, no flag, no script."""
    images, spaces = _words("image"), _words("image") | _words("search_space")
    if _consists_of(line, images, _IMAGE):
        return IMAGE
    return SEARCH_SPACE if _consists_of(line, spaces, _SPACE) else None


def _consists_of(line: str, words: frozenset[str], subject: re.Pattern[str]) -> bool:
    line = _POINT.sub(r"\1", line)
    if _FLAG.search(line) or not subject.search(line):
        return False
    rest = re.findall(r"[a-z]+", _REFERENCE.sub(" ", line.lower()))
    return bool(rest) and all(word in words or word in _names() for word in rest)


def _is_of_checkpoint(line: str) -> bool:
    """Say whether a line tells that other weights are used; that a new configuration uses some is no such change."""
    found = _words_in(line[:OPENING])
    acts = found and found[0] in _words("checkpoint", "acts")
    return bool(acts and set(found) & _words("checkpoint", "things") and _FROM_A_HUB.search(line))


def _adds_configuration(line: str) -> bool:
    """Say whether a line adds a configuration: not a flag, but a benchmark, or something of a model's or an accelerator's."""
    opening = line[:OPENING]
    found = _words_in(opening)
    if not found or found[0] not in _list("configuration", "opens") or _FLAG.search(opening[: OPENING // 2]):
        return False
    if set(found[1:4]) & _words("configuration", "more"):
        return False
    named = set(re.findall(r"[a-z]+\d*[a-z]*", opening.lower()))
    families = {re.sub(r"\d.*", "", word) for word in named}
    if set(found) & _words("configuration", "things"):
        return bool(families & _names())
    return bool(named & _spelled("hardware")) and bool(families & _spelled("model", "framework"))


def _is_of_measurement(lines: tuple[str, ...]) -> bool:
    """Say whether the first line is about measuring, and none of the others shows a flag, a variable or a script."""
    return bool(set(_words_in(lines[0])) & _words("measurement")) and not any(_FLAG.search(line) for line in lines[1:])


def _is_result(line: str) -> bool:
    """Say whether a line tells what was gained: a percentage, and no word of a change in front of it."""
    if "%" not in line:
        return False
    first = re.search(r"[a-z]+", _SIZES.sub(" ", line.lower()))
    return first is not None and first[0] in _words("result")


def _words_in(line: str) -> list[str]:
    return _WORD.findall(line.lower())


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("changelog").joinpath("data/recipes.toml").read_text("utf-8"))


@cache
def _words(kind: str, what: str = "words") -> frozenset[str]:
    return frozenset(_data()[kind][what].split())


@cache
def _list(kind: str, what: str) -> frozenset[str]:
    return frozenset(_data()[kind][what])


@cache
def _names() -> frozenset[str]:
    """Return the letters of all names: words that may stand anywhere."""
    kinds = ("engine", "framework", "hardware", "precision", "model")
    return _words("names") | {word for text in _spelled(*kinds) for word in re.findall(r"[a-z]+", text)}


@cache
def _spelled(*kinds: str) -> frozenset[str]:
    """Return the names of some kinds in all their spellings."""
    return frozenset(
        text
        for kind in kinds
        for name in vocabulary.names(kind)
        for text in (name, *vocabulary.entry(kind, name).get("aliases", ()))
    )
