"""JSON from strangers as records with positions: one value, an array, JSON lines, or as much as is left of a damaged array.

Belongs here: syntax. Does not: what a record means, how large or deep one may be (`warehouse.events`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

EXCERPT = 200

_WHITE = " \t\r\n"


class Item(NamedTuple):
    """One value of a file and where it stands: a JSON pointer (`/17`), a line (`line 17`), or `` for the whole file."""

    position: str
    value: Any


@dataclass(frozen=True)
class Fault:
    """A part of a file that is not JSON, why, and its beginning."""

    position: str
    reason: str
    excerpt: str = ""


@dataclass(frozen=True)
class LeftOut:
    """Says of a whole file that it is known and holds nothing to take, and why."""

    reason: str


def _constant(name: str) -> str:
    """Keep NaN and Infinity as text, so that the one record that holds them is refused and not its whole file."""
    return name


_DECODER = json.JSONDecoder(parse_constant=_constant)


def decode(data: bytes) -> str | Fault:
    """Return the text of *data* (UTF-8, with or without a byte-order mark)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Fault(f"byte {error.start}", "not UTF-8 text; save it as UTF-8")


def items(data: bytes) -> Iterator[Item | Fault]:
    """Yield the records of a file: the elements of an array, the lines of JSON lines, or the one value that it is."""
    text = decode(data)
    if isinstance(text, Fault):
        yield text
        return
    if not text.strip():
        yield Fault("", "empty file")
        return
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        yield from _damaged(text, _reason(error))
    else:
        yield from _elements(value)


def _reason(error: ValueError | RecursionError) -> str:
    return "nested too deeply to be a benchmark record" if isinstance(error, RecursionError) else f"not JSON: {error}"


def _elements(value: Any) -> Iterator[Item | Fault]:
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield Item(f"/{index}", element)
    else:
        yield Item("", value)


def _damaged(text: str, reason: str) -> Iterator[Item | Fault]:
    if text.lstrip().startswith("["):
        yield from _salvaged(text)
    elif any(_is_object(line) for line in _each_line(text)):
        yield from _lines(_each_line(text))
    else:
        yield Fault("", reason, text[:EXCERPT])


def _is_object(line: str) -> bool:
    """Say whether a line alone is a whole object; no line of a damaged, indented object is, so that is one fault and not many."""
    text = line.strip(_WHITE)
    if not (text.startswith("{") and text.endswith("}")):
        return False
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _salvaged(text: str) -> Iterator[Item | Fault]:
    """Yield the whole elements of an array up to the place where it breaks, then the fault."""
    index, element = text.index("[") + 1, 0
    while True:
        index = _skip(text, index)
        if text[index : index + 1] == "]":
            if text[index + 1 :].strip():
                yield Fault(f"character {index + 1}", "more text behind the array", text[index + 1 : index + 1 + EXCERPT])
            return
        try:
            value, index = _DECODER.raw_decode(text, _behind_comma(text, index) if element else index)
        except (ValueError, RecursionError) as error:
            reason = f"cut off or damaged from character {index} on ({_reason(error)})"
            yield Fault(f"/{element}", reason, text[index : index + EXCERPT])
            return
        yield Item(f"/{element}", value)
        element += 1


def _skip(text: str, index: int) -> int:
    while index < len(text) and text[index] in _WHITE:
        index += 1
    return index


def _behind_comma(text: str, index: int) -> int:
    if text[index : index + 1] != ",":
        raise json.JSONDecodeError("Expecting ',' delimiter", text, index)
    return _skip(text, index + 1)


def _each_line(text: str) -> Iterator[str]:
    """Yield what `text.split("\n")` gives, one after the other: all together take many times the memory of the text."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _lines(lines: Iterable[str]) -> Iterator[Item | Fault]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Item(f"line {number}", _DECODER.decode(line))
        except (ValueError, RecursionError) as error:
            yield Fault(f"line {number}", _reason(error), line[:EXCERPT])
