"""What a user may declare for records that do not say it: the keys of `--set` and of a sidecar `shiftlog.yaml`.

What a record says itself counts before what is declared; what is declared counts before what the names of files tell. Every field
that was not the record's own is named in `points.declared_fields`. Nothing is guessed: what is missing is asked for by name.

Belongs here: the keys, their checks, the sidecar's shape. Does not: which format needs what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

from pipelines.ingest import yaml_text
from warehouse.clock import parse_instant
from warehouse.errors import InputError

SIDECARS = ("shiftlog.yaml", "shiftlog.yml")
"""Names of the file that declares for what lies beside and below it."""
MAX_VALUE = 512
MAX_SIDECAR_BYTES = 64 * 1024
MAX_COUNT = 100_000_000
_FILES = "files"
_OFFSET = re.compile(r"(?:UTC)?([+-])(\d{1,2}):?(\d{2})?")


@dataclass(frozen=True)
class Key:
    """One key: what it means, an example, and what turns a text into its plain form (raises ValueError)."""

    name: str
    meaning: str
    example: str
    plain: Callable[[str], str]


def _text(value: str) -> str:
    if not value.strip() or len(value) > MAX_VALUE:
        raise ValueError(f"a text of 1 to {MAX_VALUE} characters is wanted")
    if any("\ud800" <= character <= "\udfff" or character == "\0" for character in value):  # from "\ud800" in YAML, from argv
        raise ValueError("a text that can be stored as UTF-8 is wanted")
    return value.strip()


def _count(value: str) -> str:
    if not re.fullmatch(r"\d{1,9}", value.strip()) or not 1 <= int(value) <= MAX_COUNT:
        raise ValueError("a whole number from 1 is wanted")
    return str(int(value))


def _rate(value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 < number < 1e9:
        raise ValueError("a number above 0 is wanted")
    return repr(number)


def _flag(value: str) -> str:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("true or false is wanted")
    return value.strip().lower()


def _zone(value: str) -> str:
    try:
        zone_of(value)
    except (InputError, ValueError) as error:
        raise ValueError(str(error)) from None
    return value.strip()


def _time(value: str) -> str:
    try:
        return parse_instant(value.strip(), "measured_at").isoformat()
    except InputError as error:
        raise ValueError(str(error)) from None


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("run_id", "name of the run; results that share it are one run", "nightly-2026-11-30", _text),
        Key("run_source", "where the run's name is unique", "lab-7", _text),
        Key("measured_at", "when it was measured, with a zone", "2026-11-30T06:10:00Z", _time),
        Key("timezone", "zone of times that records write without one", "Europe/Berlin", _zone),
        Key("engine", "inference engine; for upstream files the project", "vllm", _text),
        Key("framework", "serving stack round the engine", "dynamo-trt", _text),
        Key("engine_version", "version of the engine under test", "0.24.0", _text),
        Key("engine_commit", "commit of the engine under test", "2d234357c6e69fa514f6e9b4d4a5ad3bc431c4a6", _text),
        Key("image", "container image under test", "vllm/vllm-openai:v0.13.0", _text),
        Key("hardware", "accelerator", "h100", _text),
        Key("num_gpus", "GPUs of the deployment", "8", _count),
        Key("model", "model family, or the checkpoint's hub id", "meta-llama/Llama-3.1-8B-Instruct", _text),
        Key("precision", "precision of the weights", "fp8", _text),
        Key("spec_decoding", "speculative decoding method", "eagle3", _text),
        Key("is_multinode", "more than one node", "false", _flag),
        Key("tp", "tensor-parallel ranks", "8", _count),
        Key("pp", "pipeline-parallel ranks", "1", _count),
        Key("ep", "expert-parallel ranks", "8", _count),
        Key("dp_attention", "data-parallel attention", "true", _flag),
        Key("disagg", "prefill and decode on separate workers", "false", _flag),
        *(
            Key(f"{role}_{size}", f"{meaning} of a {role} worker", "8", _count)
            for role in ("prefill", "decode")
            for size, meaning in (
                ("tp", "tensor-parallel ranks"),
                ("pp", "pipeline-parallel ranks"),
                ("ep", "expert-parallel ranks"),
            )
        ),
        *(
            Key(f"{role}_dp_attention", f"data-parallel attention on {role} workers", "true", _flag)
            for role in ("prefill", "decode")
        ),
        *(Key(f"{role}_num_workers", f"{role} workers", "2", _count) for role in ("prefill", "decode")),
        *(Key(f"num_{role}_gpus", f"GPUs that {role}", "8", _count) for role in ("prefill", "decode")),
        Key("isl", "nominal input length, tokens", "1024", _count),
        Key("osl", "nominal output length, tokens", "128", _count),
        Key("concurrency", "requests in flight", "64", _count),
        Key("request_rate", "requests a second", "4.0", _rate),
        Key("workload", "data set or generator of the prompts", "sharegpt", _text),
        Key("recipe", "name or hash of the launch recipe", "3f9c2a71", _text),
    )
}
"""Every key that may be declared."""


def checked(pairs: Iterable[tuple[str, Any]], where: str) -> dict[str, str]:
    """Return *pairs* with values in plain form; raises InputError naming *where* and the key."""
    found = {}
    for name, value in pairs:
        key = KEYS.get(str(name))
        if key is None:
            raise InputError(f"{where}: {str(name)[:60]!r} is no key; the keys are {', '.join(KEYS)}")
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, datetime):
            value = value.isoformat()
        if not isinstance(value, str | int | float):
            raise InputError(f"{where}: {key.name}: a single value is wanted, such as {key.example}")
        try:
            found[key.name] = key.plain(str(value))
        except ValueError as error:
            raise InputError(f"{where}: {key.name}: {str(value)[:60]!r}: {error}") from None
    return found


@dataclass(frozen=True)
class Sidecar:
    """One `shiftlog.yaml`: what it declares for all files beside and below it, and for those that match a pattern."""

    settings: dict[str, str]
    files: tuple[tuple[str, dict[str, str]], ...] = ()

    def of(self, path: PurePosixPath) -> dict[str, str]:
        """Return what holds for a file at *path* below the sidecar's folder; a later pattern counts before an earlier one."""
        found = dict(self.settings)
        for pattern, settings in self.files:
            if fnmatchcase(str(path), pattern) or fnmatchcase(path.name, pattern):
                found |= settings
        return found


def sidecar(data: bytes, name: str) -> Sidecar:
    """Return what a sidecar says; raises InputError naming *name*, the key and the fix."""
    if len(data) > MAX_SIDECAR_BYTES:
        raise InputError(f"{name}: larger than {MAX_SIDECAR_BYTES // 1024} KiB; it declares a few keys, see docs/formats.md")
    try:
        value = yaml_text.texts(data.decode("utf-8-sig"))
    except (InputError, UnicodeDecodeError) as error:
        reason = str(error)[:160]
        raise InputError(f"{name}: {reason}" if reason.startswith("not YAML") else f"{name}: not YAML ({reason})") from None
    if value in (None, ""):
        return Sidecar({})
    if not isinstance(value, dict):
        raise InputError(f"{name}: write one `key: value` a line, see docs/formats.md")
    files = value.pop(_FILES, None) or {}
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise InputError(f"{name}: files: write `pattern:` and below it `key: value`")
    patterns = tuple((str(pattern), checked(entry.items(), f"{name}: {str(pattern)[:60]}")) for pattern, entry in files.items())
    return Sidecar(checked(value.items(), name), patterns)


@lru_cache(maxsize=64)
def zone_of(text: str) -> Any:
    """Return the zone that *text* names: `UTC`, `+08:00`, `Europe/Berlin`; raises InputError."""
    from datetime import timedelta, timezone

    match = _OFFSET.fullmatch(text.strip())
    if match:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes < 24 * 60:
            return timezone((1 if match[1] == "+" else -1) * timedelta(minutes=minutes))
    try:
        return ZoneInfo(text.strip())
    except (KeyError, ValueError, OSError):
        raise InputError(f"timezone: {text[:60]!r} is no zone; write UTC, +08:00 or Europe/Berlin") from None


def placed(naive: datetime, declared: Mapping[str, str], field: str) -> datetime:
    """Return a time that a record writes without a zone as an instant; raises InputError asking for `timezone` by name."""
    zone = declared.get("timezone")
    if zone is None:
        raise InputError(f"{field}: {naive.isoformat()} has no time zone; declare timezone (UTC, +08:00, Europe/Berlin)")
    return _placed(naive, zone)


@lru_cache(maxsize=32_768)
def _placed(naive: datetime, zone: str) -> datetime:
    """Return an instant; it is asked for twice, for the run of a record and for the record."""
    from datetime import UTC

    return naive.replace(tzinfo=zone_of(zone)).astimezone(UTC)
