"""A benchmark's own recipe log: which of its entries are about a configuration, and which of them lie between two runs.

An entry holds from the start of the run that it started. It counts as a cause unless it tells of nothing but the image (that is
the build, and stands in the records) or the search space (that moves no cell). When in doubt an entry counts: one too many makes
a change `mixed`, one too few blames an engine.
Belongs here: matching of keys and times. Does not: reading the log (`pipelines.ingest`), attribution (`changes`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import polars as pl

from changelog.facts import line_of
from warehouse import vocabulary

MAX_WORDS = 160
"""Longest text of an entry that is kept, characters."""
AGENTIC = "agentic-coding"
_AGENTIC_MARKS = frozenset({"agentic", "agentx"})
_SPECULATIVE = re.compile(r"(mtp|eagle|dspark)\d*")
_RENAMED = {"inferencemax/inferencemax": "semianalysisai/inferencex", "semianalysisai/inferencemax": "semianalysisai/inferencex"}
"""Former names of benchmark repositories, lower case: run numbers and pull requests are the same under both."""

_OF_IMAGES = """
    update updates updated updating upgrade upgrades upgraded upgrading bump bumps bumped bumping switch switched move
    moved pin pinned repin refresh refreshed use using unify consolidate set image images container containers docker
    tag tags version versions release releases nightly stable latest official upstream build dev from to for of the a an
    and all both its on with config configs configuration configurations recipe recipes entry entries benchmark
    benchmarks single multi node multinode disagg disaggregated aggregated agg non mtp eagle stp nvidia amd rocm cuda
    old new pre previous custom public inference engine rerun mainline scenario scenarios off day days
"""
_OF_SPACES = """
    add adds added adding extend extends extended extending expand expanded reduce reduced trim trimmed truncate drop
    dropped remove removed append more further missing higher lower high low only conc concs concurrency concurrencies
    sweep sweeps search space spaces point points range start end at up existing curve tp ep lengths sequence length
"""
_OF_NAMES = """
    trt tensorrt llm deepseek gpt oss qwen glm kimi minimax llama gemma pro ai dynamo mori sgl
"""
_IMAGE_WORDS = frozenset(_OF_IMAGES.split())
"""Words of an image change; numbers, versions, references and names of the vocabulary come on top."""
_SPACE_WORDS = _IMAGE_WORDS | frozenset(_OF_SPACES.split())
_IMAGE = re.compile(r"\b(?:images?|containers?|docker|tags?|versions?)\b|\d\.\d", re.IGNORECASE)
_SPACE = re.compile(r"\b(?:conc\w*|sweeps?|search|points?)\b|^\W*(?:add|extend|new)", re.IGNORECASE)
"""What a line must name to be about an image, or about the search space."""
_ENGINE_WORDS = frozenset(_OF_NAMES.split())
_FLAG = re.compile(r"(?<![\w-])--?[a-z]|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|(?<![=!<>])=(?!=)|\.sh\b|\.ya?ml\b")
"""What a command line or a script shows: flags, environment variables, settings, files."""
_REFERENCE = re.compile(r"\S*[/@]\S*|\S*:\S+|\S*\d\S*")
"""Text that names a version, an image, a number or a place."""


@dataclass(frozen=True)
class Configuration:
    """What the key of an entry names, in canonical names; `source` is the benchmark's repository."""

    source: str | None
    model: str | None
    precision: str | None
    hardware: str | None
    framework: str | None
    spec_decoding: str | None
    disagg: bool
    scenario: str | None


@dataclass(frozen=True)
class Entry:
    """One entry: from when it holds, for which configurations, in words (one line, printable), and whether it is a cause.

    `scenarios` confines it to kinds of workload; empty: to none. `source` None: every benchmark that writes such keys.
    """

    at: datetime
    source: str | None
    keys: tuple[str, ...]
    scenarios: tuple[str, ...]
    words: str
    is_cause: bool


@dataclass(frozen=True)
class RecipeLog:
    """Entries in order of time, and for each configuration that was asked for those that are about it."""

    entries: tuple[Entry, ...] = ()
    known: dict[Configuration, tuple[tuple[Entry, ...], list[datetime]]] = field(default_factory=dict, repr=False, compare=False)
    """What `until` has found so far: there are far more observations than configurations."""

    def until(self, configuration: Configuration, at: datetime) -> tuple[Entry, ...]:
        """Return the causes among the entries about *configuration* that hold at an instant, oldest first."""
        if not self.entries:
            return ()
        if configuration not in self.known:
            found = tuple(entry for entry in self.entries if entry.is_cause and is_about(entry, configuration))
            self.known[configuration] = (found, [entry.at for entry in found])
        found, times = self.known[configuration]
        return found[: bisect_right(times, at)]


NO_LOG = RecipeLog()


def entries_between(log: RecipeLog, configuration: Configuration, after: datetime, until: datetime) -> tuple[Entry, ...]:
    """Return the causes that began to hold in (after, until], oldest first."""
    return log.until(configuration, until)[len(log.until(configuration, after)) :]


def recipe_log(recipes: pl.DataFrame, runs: pl.DataFrame) -> RecipeLog:
    """Return the log that the tables `recipes` and `runs` hold; rows in any order give the same log.

    An entry is dated by the run that it started, else by the first run on its commit; without either it cannot be placed and
    is left out. Entries for evaluations only started no benchmark.
    """
    if recipes.is_empty():
        return NO_LOG
    started = runs.select("run_source", "run_id", "run_attempt", "head_sha", "started_at").to_dicts()
    rows = (row for row in recipes.to_dicts() if not row["evals_only"])
    return log_of(_entry(row, at) for row, at in _dated(rows, started))


def log_of(entries: Iterable[Entry]) -> RecipeLog:
    """Return *entries* as a log."""
    return RecipeLog(tuple(sorted(set(entries), key=lambda e: (e.at, e.source or "", e.words, e.keys, e.scenarios))))


def _dated(rows: Iterable[dict[str, Any]], started: list[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], datetime]]:
    first: dict[tuple[str | None, str, str], datetime] = {}
    for run in started:
        for kind, name in (("run", run["run_id"]), ("commit", run["head_sha"])):
            if name is not None and run["started_at"] is not None:
                key = (run["run_source"], kind, name)
                first[key] = min(first.get(key, run["started_at"]), run["started_at"])
    for row in rows:
        by_run = first.get((row["run_source"], "run", row["run_id"]))
        at = by_run or min(
            (at for (_s, kind, name), at in first.items() if (kind, name) == ("commit", row["head_ref"])), default=None
        )
        if at is not None:
            yield row, at


def _entry(row: dict[str, Any], at: datetime) -> Entry:
    lines = row["description"] or []
    return Entry(
        at,
        row["run_source"],
        tuple(row["config_keys"] or ()),
        tuple(row["scenario_types"] or ()),
        words_of(lines, row["pr_link"]),
        is_cause(lines),
    )


def words_of(lines: Iterable[str], pr_link: str | None) -> str:
    """Return the lines of an entry as one printable line of bounded length, with the number of its pull request."""
    number = re.search(r"/pull/(\d{1,9})$", pr_link or "")
    said = line_of("; ".join(lines), MAX_WORDS + 1) or "no description"
    clipped = said if len(said) <= MAX_WORDS else said[: MAX_WORDS - 1] + "…"
    return f"{clipped} (#{number[1]})" if number else clipped


def is_cause(lines: Iterable[str]) -> bool:
    """Say whether an entry tells of more than another image and another search space; one that tells nothing may be anything."""
    lines = list(lines)
    kinds = ((_IMAGE_WORDS, _IMAGE), (_SPACE_WORDS, _SPACE))
    return not lines or not all(any(_is_of(line, words, subject) for words, subject in kinds) for line in lines)


@lru_cache(maxsize=16_384)
def _is_of(line: str, words: frozenset[str], subject: re.Pattern[str]) -> bool:
    """Say whether a line names *subject* and consists of *words*, names and numbers alone, of no flag, setting or script."""
    if _FLAG.search(line) or not subject.search(line):
        return False
    rest = re.findall(r"[a-z]+", _REFERENCE.sub(" ", line.lower()))
    return bool(rest) and all(word in words or word in _names() for word in rest)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    kinds = ("engine", "framework", "hardware", "precision", "model")
    spelled = (text for kind in kinds for name in vocabulary.names(kind) for text in _spellings(kind, name))
    return _ENGINE_WORDS | {word for text in spelled for word in re.findall(r"[a-z]+", text)}


def is_about(entry: Entry, configuration: Configuration) -> bool:
    """Say whether an entry is about a configuration: its benchmark, its kind of workload and one of its keys fit."""
    if entry.source is not None and _repository(entry.source) != _repository(configuration.source):
        return False
    if entry.scenarios and configuration.scenario not in entry.scenarios:
        return False
    return any(_fits(key.strip().lower(), configuration, bool(entry.scenarios)) for key in entry.keys)


def _repository(source: str | None) -> str:
    name = (source or "").lower()
    return _RENAMED.get(name, name)


def _fits(key: str, configuration: Configuration, scenario_told: bool) -> bool:
    """Say whether a key names a configuration: `<model>-<precision>-<hardware>-<framework>`, then marks in any order."""
    heads = _heads(configuration)
    if "*" in key or "?" in key:
        return any(fnmatchcase(name, key) for head in heads for name in _names_of(head, configuration))
    marks = next((key[len(head) :] for head in heads if key == head or key.startswith(f"{head}-")), None)
    return marks is not None and _marks_fit(frozenset(marks.split("-")), configuration, scenario_told)


def _marks_fit(marks: frozenset[str], configuration: Configuration, scenario_told: bool) -> bool:
    """Say whether nothing in the marks of a key speaks against the configuration; marks that are not known never do.

    The key of a disaggregated configuration may cover both with and without speculative decoding.
    """
    speculative = configuration.spec_decoding not in (None, "none")
    told = any(_SPECULATIVE.fullmatch(mark) for mark in marks)
    if speculative != told and not (speculative and configuration.disagg):
        return False
    if not scenario_told and bool(marks & _AGENTIC_MARKS) != (configuration.scenario == AGENTIC):
        return False
    return not ("disagg" in marks and not configuration.disagg) and not ("agg" in marks and configuration.disagg)


def _names_of(head: str, configuration: Configuration) -> list[str]:
    """Return names under which a configuration may stand, for keys with wildcards."""
    agentic = "-agentic" if configuration.scenario == AGENTIC else ""
    speculative = configuration.spec_decoding not in (None, "none")
    ends = ["-mtp", *([""] if configuration.disagg else [])] if speculative else [""]
    return [f"{head}{agentic}{end}" for end in ends]


@lru_cache(maxsize=4096)
def _heads(configuration: Configuration) -> tuple[str, ...]:
    """Return the spellings of model, precision, hardware and framework as a key begins with them."""
    parts = [
        _spellings(kind, name)
        for kind in ("model", "precision", "hardware", "framework")
        if (name := getattr(configuration, kind)) is not None
    ]
    heads = [""]
    for spellings in parts:
        heads = [f"{head}-{text}" if head else text for head in heads for text in spellings]
    return tuple(heads) if len(parts) == 4 else ()


def _spellings(kind: str, name: str) -> tuple[str, ...]:
    """Return a canonical name with its other spellings."""
    return (name, *vocabulary.entry(kind, name).get("aliases", ()))
