"""JSON values made strange: keys dropped, doubled, renamed; values of other types, huge, deep, no numbers; secrets planted.

What JSON libraries cannot write (a key twice, NaN, 1e400, half of a surrogate pair) stands in the value as a marked text and is
put in as it must stand when the value is written.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

Owner = dict[str, Any] | list[Any]
SECRETS = ("sk-SECRET-31337", "/home/alice/secret", "host-17.internal")
"""What nobody may find in the log again."""
PRIVATE = (
    "api_key",
    "apiKey",
    "OPENAI_API_KEY",
    "HF_TOKEN",
    "server_info",
    "env",
    "environment",
    "envars",
    "server_url",
    "base_url",
    "urls",
    "target",
    "host",
    "hostname",
    "endpoint_url",
    "cmd",
    "command",
    "cli_command",
    "output_dir",
    "artifact_directory",
    "headers",
    "token",
    "log_file",
    "user_name",
    "pretty_env_info",
)
RAW = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    "1" * 400,
    "-" + "9" * 5000,
    "1e-400",
    "-0",
    "-0.0",
    "0.1e1",
    "1E+2",
    '"\\ud800"',
    '"\\udc00x"',
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    "18446744073709551616",
    "9007199254740993",
    "1e308",
    "5e-324",
)
TEXTS = (
    "",
    " ",
    "NaN",
    "Infinity",
    "-1",
    "1e999",
    "9" * 40,
    "٣",
    "1_000",
    "0x10",
    "true",
    "null",
    "\u202e",
    "\x00",
    "a\nb",
    "x" * 600,
    "../../etc/passwd",
    "C:\\Users\\x",
    "%s%n",
    "{}",
    "[]",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59Z",
    "1,000",
    "1.5",
    "١٢",
    "²",
    "inf",
    "-inf",
    "1e5",
    "'; drop",
    "a" * 130,
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**30,
    -(10**30),
    0.0,
    -0.5,
    1e-12,
    1e12,
    1e300,
    5e-324,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {"b": []}},
    [1, "2", None],
    "text",
)


def places(value: Any, rng: random.Random) -> tuple[Owner, Any] | None:
    """Return a container inside *value* and a key of it, at random: shallow and deep ones; None where all is empty."""
    owner, key = None, None
    while isinstance(value, dict | list) and value:
        owner = value
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = value[key]
        if rng.random() < 0.4:
            break
    return None if owner is None else (owner, key)


class Strange:
    """Makes one value strange, and remembers the texts that are put in when it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.raw: dict[str, str] = {}
        self.said: list[str] = []
        self.planted = False

    def changed(self, value: Any, times: int) -> Any:
        """Return a copy of *value*, changed *times* times."""
        holder = [copy.deepcopy(value)]
        for _ in range(times):
            found = places(holder[0], self.rng) if holder and self.rng.random() > 0.03 else (holder, 0) if holder else None
            if found is not None:
                owner, key = found
                change = self.rng.choice(CHANGES)
                self.said.append(f"{change.__name__.strip('_')} {str(key)[:60]!r}")
                change(self, owner, key)
        return holder[0] if holder else None

    def token(self, text: str) -> str:
        """Return a text that becomes *text* when the value is written."""
        name = f"@@RAW{len(self.raw)}@@"
        self.raw[name] = text
        return name

    def written(self, value: Any, indent: int | None = None) -> str:
        """Return *value* as text, with what was marked put in."""
        text = json.dumps(value, indent=indent, ensure_ascii=self.rng.random() < 0.5)
        for name, raw in self.raw.items():
            text = text.replace(f'"{name}"', raw)
        return text


def _drop(_self: Strange, owner: Owner, key: Any) -> None:
    del owner[key]


def _other(self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = copy.deepcopy(self.rng.choice(OTHERS))


def _text(self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = self.rng.choice(TEXTS)


def _raw(self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = self.token(self.rng.choice(RAW))


def _twice(self: Strange, owner: Owner, key: Any) -> None:
    if isinstance(owner, dict):
        owner[self.token(json.dumps(key))] = self.rng.choice((owner[key], *OTHERS))
    else:
        owner.append(copy.deepcopy(owner[key]))


def _renamed(self: Strange, owner: Owner, key: Any) -> None:
    if isinstance(owner, dict):
        owner[self.rng.choice((key.upper(), key + " ", "", "\u0000", key[::-1], "é" + key, "k" * 5000, "a/b~c", "$ref"))] = (
            owner.pop(key)
        )
    else:
        self.rng.shuffle(owner)


def _deeper(self: Strange, owner: Owner, key: Any) -> None:
    depth = self.rng.choice((1, 2, 10, 40, 70, 200, 900))
    for _ in range(depth):
        owner[key] = {"x": owner[key]} if self.rng.random() < 0.5 else [owner[key]]
        if depth > 100:
            owner[key] = self.token("[" * depth + "1" + "]" * depth)
            return


def _bottomless(self: Strange, owner: Owner, key: Any) -> None:
    depth = self.rng.choice((1500, 100_000))
    opening, closing = self.rng.choice((("[", "]"), ('{"a":', "}")))
    owner[key] = self.token(opening * depth + "1" + closing * self.rng.choice((depth, 0)))


def _long(self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = self.rng.choice('x✓"\\\n0') * self.rng.choice((600, 70_000, 2_000_000))


def _many(self: Strange, owner: Owner, key: Any) -> None:
    number = self.rng.choice((10, 1000, 20_000))
    if self.rng.random() < 0.5:
        owner[key] = [self.rng.choice((0.5, None, "a", {}))] * number
    else:
        owner[key] = {f"k{place}": 1 for place in range(number)}


def _swapped(_self: Strange, owner: Owner, key: Any) -> None:
    value = owner[key]
    if isinstance(value, dict):
        owner[key] = list(value.values())
    elif isinstance(value, list):
        owner[key] = {str(place): one for place, one in enumerate(value)}
    else:
        owner[key] = [value]


def _as_text(_self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = str(owner[key]) if not isinstance(owner[key], str) else len(owner[key])


def _emptied(_self: Strange, owner: Owner, key: Any) -> None:
    owner[key] = type(owner[key])() if isinstance(owner[key], dict | list | str) else 0


def _scaled(self: Strange, owner: Owner, key: Any) -> None:
    value = owner[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        owner[key] = self.token(repr(value * self.rng.choice((-1, 1e-9, 1e9, 1e100))))
    else:
        owner[key] = None


def _private(self: Strange, owner: Owner, key: Any) -> None:
    """Put secrets where tools put them: under a key of that kind that stands there, else under a new one."""
    self.planted = True
    secret = self.rng.choice(SECRETS)
    value = self.rng.choice(
        (
            secret,
            f"http://user:{SECRETS[0]}@{SECRETS[2]}:8000/v1",
            [secret],
            {"api_key": SECRETS[0], "HOME": SECRETS[1], "node": SECRETS[2], "port": 8000},
            {"nested": {"env": [{"name": "TOKEN", "value": secret}]}},
            f"--api-key {SECRETS[0]} --out {SECRETS[1]} --host {SECRETS[2]}",
        )
    )
    own = (
        [
            name
            for name in owner
            if re.search(r"(^|_)(api_?key|token|env|envars|host|hostname|cmd|command|server_info|base_url|urls|dir)$", name)
        ]
        if isinstance(owner, dict)
        else []
    )
    if isinstance(owner, dict):
        owner[self.rng.choice(own) if own and self.rng.random() < 0.6 else self.rng.choice(PRIVATE)] = value
    else:
        owner[key] = {self.rng.choice(PRIVATE): value}


Change = Callable[[Strange, Owner, Any], None]
CHANGES: tuple[Change, ...] = (
    _drop,
    _drop,
    _other,
    _other,
    _other,
    _text,
    _text,
    _raw,
    _raw,
    _twice,
    _renamed,
    _deeper,
    _bottomless,
    _long,
    _many,
    _swapped,
    _swapped,
    _as_text,
    _emptied,
    _scaled,
    _scaled,
    _private,
    _private,
)


def keys_of(value: Any) -> Iterator[str]:
    """Yield every key of every object inside *value*."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from (key for key in one if isinstance(key, str))
            if isinstance(name := one.get("name"), str):  # rows that name the field whose value they hold
                yield name
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one[:200]
