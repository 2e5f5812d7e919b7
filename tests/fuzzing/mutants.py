"""One mutant by its number: a sample or a real file, made wrong, with neighbours beside it and what is known of it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from pipelines.ingest.declarations import KEYS
from pipelines.ingest.formats import FORMATS
from tests.fuzzing import bytes_made_wrong as wrong
from tests.fuzzing.structures import PRIVATE, SECRETS, Strange, keys_of
from tests.samples import SAMPLES, Sample

REAL = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL_PARTS = ("formats", "inferencex/runs", "inferencex/raw_serving", "inferencex/api", "mlperf")
LARGEST_REAL = 120_000
"""Bytes of the real files that are mutated; larger ones say nothing else and take long."""
DECLARED = {
    "engine": "vllm",
    "hardware": "h100",
    "num_gpus": "8",
    "precision": "fp8",
    "model": "org/Tiny-1B",
    "timezone": "UTC",
    "measured_at": "2026-11-01T06:00:00Z",
    "isl": "1024",
    "osl": "128",
    "concurrency": "16",
    "workload": "random",
    "spec_decoding": "none",
}
JOINED = ("mlperf",)


@dataclass(frozen=True)
class Mutant:
    """Files to read, what is declared, what was done to them, and what must be found again."""

    number: int
    files: dict[str, bytes]
    """What is mutated stands last."""
    declared: dict[str, str]
    done: str
    keys: frozenset[str] = frozenset()
    """Keys of the record before and after: what may be named where it is refused."""
    neighbours: dict[str, bytes] = field(default_factory=dict)
    """The same files without the mutated record; what they hold must be found again."""
    planted: bool = False
    joined: bool = False
    """True where rows that are alike are one measurement, so that a neighbour may be the same as what is mutated."""
    container: bool = False
    """True where it goes through the folder, because the way into the file is what is hostile."""


@dataclass(frozen=True)
class Source:
    """What is mutated: a sample, or a real file in the same shape."""

    sample: Sample
    values: tuple[Any, ...]
    """The values of a JSON file, of JSON lines, or of YAML; empty where it is another text."""
    lines: bool


@cache
def sources(*, real: bool = True) -> tuple[Source, ...]:
    """Return what is mutated: the samples of registered formats, and the real files where they lie beside the checkout."""
    names = {record_format.name for record_format in FORMATS}
    found = [sample for sample in SAMPLES if sample.format in names]
    if real and REAL.is_dir():
        paths = sorted(path for part in REAL_PARTS for path in (REAL / part).rglob("*") if path.is_file())
        found += [_real(path) for path in paths if path.stat().st_size <= LARGEST_REAL]
    return tuple(Source(sample, *_values(sample)) for sample in found)


def _real(path: Path) -> Sample:
    run = path.with_name("run.json")
    beside = {f"{path.parent.name}/run.json": run.read_bytes()} if run.is_file() and run != path else {}
    declared = {key: value for key, value in DECLARED.items() if not (beside and key == "measured_at")}
    return Sample(f"{path.parent.name}/{path.name}", path.read_bytes(), "", 0, declared, beside)


def _values(sample: Sample) -> tuple[tuple[Any, ...], bool]:
    suffix = PurePosixPath(sample.name).suffix
    if suffix == ".json":
        try:
            return (json.loads(sample.data),), False
        except ValueError:
            suffix = ".jsonl"
    if suffix == ".jsonl":
        return tuple(json.loads(line) for line in sample.data.splitlines() if line.strip()), True
    if suffix in (".yaml", ".yml"):
        return (yaml.safe_load(sample.data),), False
    return (), False


def mutant(seed: int, number: int, *, real: bool = True) -> Mutant:
    """Return the mutant of that number, which is the same every time."""
    rng = random.Random(f"{seed}:{number}")
    source = rng.choice(sources(real=real))
    kinds = _KINDS["values" if source.values else PurePosixPath(source.sample.name).suffix]
    return rng.choice(kinds)(number, source, rng)


Maker = Callable[[int, Source, random.Random], Mutant]


def _structural(number: int, source: Source, rng: random.Random) -> Mutant:
    strange, sample = Strange(rng), source.sample
    place = rng.randrange(len(source.values))
    value = source.values[place]
    changed = strange.changed(value, rng.choice((1, 1, 1, 2, 3)))
    keys = frozenset((*keys_of(value), *keys_of(changed), *strange.raw.values()))
    if sample.name.endswith((".yaml", ".yml")):
        data = yaml.dump(changed, Dumper=_Plain, allow_unicode=rng.random() < 0.5, sort_keys=False).encode(
            "utf-8", "surrogatepass"
        )
    elif source.lines:
        lines = [json.dumps(one) if index != place else strange.written(changed) for index, one in enumerate(source.values)]
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
    else:
        data = strange.written(changed, rng.choice((None, 1))).encode("utf-8", "surrogatepass")
    return Mutant(
        number, {**sample.beside, sample.name: data}, sample.declared, "; ".join(strange.said), keys, planted=strange.planted
    )


def _among_neighbours(number: int, source: Source, rng: random.Random) -> Mutant:
    """Put the mutated record between two good ones: as lines, or in an array where each of them is a record itself."""
    strange, sample = Strange(rng), source.sample
    value = rng.choice(source.values)
    record = rng.choice(value) if isinstance(value, list) and value and _is_record(value[0]) else value
    if sample.name.endswith((".yaml", ".yml")) or not isinstance(record, dict):
        return _structural(number, source, rng)
    changed = strange.changed(record, rng.choice((1, 1, 2, 4)))
    good, text = json.dumps(record), strange.written(changed)
    keys = frozenset((*keys_of(record), *keys_of(changed), *strange.raw.values()))
    array = _is_record(record) and _parses(text) and rng.random() < 0.5
    before, between, behind = ("[", ",\n", "]") if array else ("", "\n", "\n")
    name = sample.name.removesuffix(".gz").removesuffix("l") + ("" if array else "l")
    with_it = (before + between.join((good, text, good)) + behind).encode("utf-8", "surrogatepass")
    without = (before + between.join((good, good)) + behind).encode("utf-8", "surrogatepass")
    return Mutant(
        number,
        {**sample.beside, name: with_it},
        sample.declared,
        f"between neighbours: {'; '.join(strange.said)}",
        keys,
        {**sample.beside, name: without},
        strange.planted,
        joined=any(record_format.name.startswith(JOINED) for record_format in FORMATS if record_format.recognises(record)),
    )


def _is_record(value: Any) -> bool:
    return any(record_format.recognises(value) for record_format in FORMATS)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _damaged(number: int, source: Source, rng: random.Random) -> Mutant:
    sample = source.sample
    data, kind = wrong.damaged(sample.data, rng)
    return Mutant(number, {**sample.beside, sample.name: data}, sample.declared, f"bytes: {kind}", _keys(source))


def _as_archive(number: int, source: Source, rng: random.Random) -> Mutant:
    sample = source.sample
    beside = [(name, data) for name, data in sample.beside.items()]
    data, kind = wrong.archive(sample.name, sample.data, beside, rng)
    return Mutant(number, {"in/x.zip": data}, sample.declared, f"archive: {kind}", _keys(source), container=True)


def _with_sidecar(number: int, source: Source, rng: random.Random) -> Mutant:
    sample = source.sample
    name = rng.choice(("shiftlog.yaml", "shiftlog.yml", "meta_env.json", "run.json"))
    side = str(PurePosixPath(sample.name).with_name(name))
    data = (
        wrong.damaged(rng.choice(list(sample.beside.values())), rng)[0]
        if sample.beside and rng.random() < 0.4
        else wrong.sidecar(rng)
    )
    files = {**sample.beside, side: data, sample.name: sample.data}
    return Mutant(number, files, sample.declared, f"side file {name}", _keys(source), container=rng.random() < 0.2)


def _yaml(number: int, source: Source, rng: random.Random) -> Mutant:
    if not source.sample.name.endswith((".yaml", ".yml")):
        return _structural(number, source, rng)
    data, kind = wrong.yaml_text(source.sample.data, rng)
    return Mutant(number, {source.sample.name: data}, source.sample.declared, f"YAML: {kind}", _keys(source))


def _csv(number: int, source: Source, rng: random.Random) -> Mutant:
    data, kind = wrong.csv_text(source.sample.data, rng)
    keys = {cell for row in csv.reader(io.StringIO(source.sample.data.decode("utf-8", "replace"))) for cell in row}
    return Mutant(number, {source.sample.name: data}, source.sample.declared, f"CSV: {kind}", frozenset(keys))


def _log(number: int, source: Source, rng: random.Random) -> Mutant:
    """Change one line of a log: its value, or the line itself."""
    sample = source.sample
    lines = sample.data.decode("utf-8", "replace").split("\n")
    place = rng.randrange(len(lines))
    head, colon, _tail = lines[place].rpartition(":")
    new = rng.choice(
        ("nan", "1e999", "-1", "", "9" * 400, "x" * 70_000, "null}", "[]}", '"\\ud800"}', "1.5", "١٢", "{", '{"a": 1}}')
    )
    lines[place] = rng.choice((head + colon + " " + new, new, lines[place] * 2, f"SUT name : {SECRETS[2]}", f":::MLLOG {new}"))
    if rng.random() < 0.1:
        lines = lines * rng.choice((2, 500))
    words = f"{sample.data.decode('utf-8', 'replace')} {' '.join(lines)}"
    keys = frozenset(re.findall(r"[\w.]{3,60}", words))
    return Mutant(
        number, {**sample.beside, sample.name: "\n".join(lines).encode("utf-8", "surrogatepass")}, sample.declared, "log", keys
    )


def _squeezed(number: int, source: Source, rng: random.Random) -> Mutant:
    sample = source.sample
    data = sample.data if sample.name.endswith(".gz") else gzip.compress(sample.data, mtime=0)
    name = sample.name if sample.name.endswith(".gz") else f"{sample.name}.gz"
    data, kind = wrong.damaged(data, rng)
    return Mutant(number, {**sample.beside, name: data}, sample.declared, f"gzip: {kind}", _keys(source), container=True)


def _zip_damaged(number: int, source: Source, rng: random.Random) -> Mutant:
    data, kind = wrong.damaged(source.sample.data, rng)
    return Mutant(
        number, {source.sample.name: data}, source.sample.declared, f"archive bytes: {kind}", _keys(source), container=True
    )


def _keys(source: Source) -> frozenset[str]:
    if source.values:
        return frozenset(key for value in source.values for key in keys_of(value))
    return frozenset(re.findall(r"[\w.]{3,60}", source.sample.data.decode("utf-8", "replace")))


_VALUES: tuple[Maker, ...] = (
    *(_structural,) * 6,
    *(_among_neighbours,) * 8,
    *(_damaged,) * 3,
    _as_archive,
    _with_sidecar,
    *(_yaml,) * 3,
)
_KINDS: dict[str, tuple[Maker, ...]] = {
    "values": _VALUES,
    ".csv": (_csv, _csv, _csv, _damaged, _as_archive),
    ".txt": (_log, _log, _log, _damaged, _with_sidecar),
    ".zip": (_zip_damaged,),
    ".gz": (_squeezed,),
    "": (_damaged,),
}


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: aliases are another mutation."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


NAMED = frozenset((*KEYS, *PRIVATE))
"""Further names that a reason may give: keys that are declared."""
