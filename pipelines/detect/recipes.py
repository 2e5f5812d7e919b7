"""A benchmark's own recipe log: which of its entries are about a configuration, and which of them lie between two runs.

An entry holds from the commit that brought it into the log, or from the start of the run that it started, whichever was first,
and for a run that used its image shortly before (changes are measured before they are merged);
one of which nobody knows when it came is left out. It counts as a cause unless it tells of nothing but the image (that is the
build, and stands in the records) or the search space (that moves no cell). When in doubt an entry counts: one too many makes a
change `mixed`, one too few blames an engine.
Belongs here: matching of keys and times. Does not: reading the log (`changelog.recipe_files`,
`pipelines.ingest`), kinds of entries (`changelog.recipe_kinds`), attribution (`changes`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import polars as pl

from changelog.benchmarks import benchmark_of
from changelog.facts import line_of
from changelog.recipe_entries import pull_request
from changelog.recipe_images import images_named, is_named
from changelog.recipe_kinds import judged
from changelog.recipe_scope import confined_to
from warehouse import vocabulary

MAX_WORDS = 160
"""Longest text of an entry that is kept, characters."""
AHEAD = timedelta(days=7)
"""How long before it is merged an entry may be measured; a run that used its image by then had it."""
AGENTIC = "agentic-coding"
_AGENTIC_MARKS = frozenset({"agentic", "agentx"})
_SPECULATIVE = re.compile(r"(mtp|eagle|dspark)\d*")
_LENGTHS = re.compile(r"(\d{1,3})k(\d{1,3})k")
_RANKS = re.compile(r"tp(\d{1,4})(?:pp\d{1,4})?")
"""Marks of a key: lengths of input and output in 1,024 tokens (8k1k), tensor-parallel ranks (tp1, tp8pp2)."""


@dataclass(frozen=True)
class Configuration:
    """What the key of an entry names, in canonical names; `source` is the benchmark's repository.

    Of disaggregated ones `ranks` are the tensor-parallel ranks of either part; what a record does not tell is None or ().
    """

    source: str | None
    model: str | None
    precision: str | None
    hardware: str | None
    framework: str | None
    spec_decoding: str | None
    disagg: bool
    scenario: str | None
    isl: int | None = None
    osl: int | None = None
    ranks: tuple[int, ...] = ()


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
    images: tuple[str, ...] = ()
    """What it moves to, where it names an image (`changelog.recipe_images`)."""
    hardware: tuple[str, ...] = ()
    """Accelerators to which it is a cause, where these are fewer than its keys name (`changelog.recipe_scope`)."""


@dataclass(frozen=True)
class RecipeLog:
    """Entries in order of time, and for each configuration that was asked for those that are about it."""

    entries: tuple[Entry, ...] = ()
    known: dict[Configuration, tuple[tuple[Entry, ...], list[datetime]]] = field(default_factory=dict, repr=False, compare=False)
    """What `until` has found so far: there are far more observations than configurations."""

    def until(self, configuration: Configuration, at: datetime, image: str | None = None) -> tuple[Entry, ...]:
        """Return the causes among the entries about *configuration* that hold at an instant, oldest first.

        Those that were merged soon after hold as well where they name the *image* that was run.
        """
        if not self.entries:
            return ()
        if configuration not in self.known:
            found = tuple(entry for entry in self.entries if is_cause_of(entry, configuration))
            self.known[configuration] = (found, [entry.at for entry in found])
        found, times = self.known[configuration]
        held = bisect_right(times, at)
        ahead = found[held : bisect_right(times, at + AHEAD)] if image else ()
        return (*found[:held], *(entry for entry in ahead if is_named(image or "", entry.images)))


NO_LOG = RecipeLog()


def entries_between(log: RecipeLog, configuration: Configuration, after: datetime, until: datetime) -> tuple[Entry, ...]:
    """Return the causes that began to hold in (after, until], oldest first."""
    return log.until(configuration, until)[len(log.until(configuration, after)) :]


def recipe_log(recipes: pl.DataFrame, runs: pl.DataFrame) -> RecipeLog:
    """Return the log that the tables `recipes` and `runs` hold; rows in any order give the same log.

    An entry is dated by the commit that brought it, by the run that it started, or by the first run on its commit: the earliest
    of them. Without any it cannot be placed and is left out; so is one that came with many others at once, which was true before.
    Entries for evaluations only started no benchmark.
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
    on_commit: dict[str, datetime] = {}
    for (_source, kind, name), at in first.items():
        if kind == "commit":
            on_commit[name] = min(on_commit.get(name, at), at)
    for row in rows:
        by_run = first.get((row["run_source"], "run", row["run_id"])) or on_commit.get(row["head_ref"])
        by_commit = row["added_at"] if row["dated_by"] == "commit" else None
        known = [at for at in (by_run, by_commit) if at is not None]
        if known and row["dated_by"] != "bulk":
            yield row, min(known)
        elif by_run is not None and row["run_id"] is not None:
            yield row, by_run


def _entry(row: dict[str, Any], at: datetime) -> Entry:
    lines = row["description"] or []
    number = pull_request(row["pr_link"])
    return Entry(
        at,
        row["run_source"] or (number.repository if number else None),
        tuple(row["config_keys"] or ()),
        tuple(row["scenario_types"] or ()),
        words_of(lines, row["pr_link"]),
        judged(lines, row["touched"])[1],
        images_named(lines),
        confined_to(row["config_keys"] or (), lines),
    )


def words_of(lines: Iterable[str], pr_link: str | None) -> str:
    """Return the lines of an entry as one printable line of bounded length, with the number of its pull request."""
    number = pull_request(pr_link)
    said = line_of("; ".join(lines), MAX_WORDS + 1) or "no description"
    clipped = said if len(said) <= MAX_WORDS else said[: MAX_WORDS - 1] + "…"
    return f"{clipped} (#{number.number})" if number else clipped


def is_cause_of(entry: Entry, configuration: Configuration) -> bool:
    """Say whether an entry may be why curves of a configuration moved."""
    elsewhere = entry.hardware and configuration.hardware not in entry.hardware
    return entry.is_cause and not elsewhere and is_about(entry, configuration)


def is_about(entry: Entry, configuration: Configuration) -> bool:
    """Say whether an entry is about a configuration: its benchmark, its kind of workload and one of its keys fit."""
    if entry.source is not None and benchmark_of(entry.source) != benchmark_of(configuration.source or ""):
        return False
    if entry.scenarios and configuration.scenario not in entry.scenarios:
        return False
    return any(_fits(key.strip().lower(), configuration, bool(entry.scenarios)) for key in entry.keys)


def _fits(key: str, configuration: Configuration, scenario_told: bool) -> bool:
    """Say whether a key names a configuration: `<model>-<precision>-<hardware>-<framework>`, then marks in any order."""
    heads = _heads(configuration)
    if "*" in key or "?" in key:
        return any(fnmatchcase(name, key) for head in heads for name in _names_of(head, configuration))
    if not key.startswith(heads):  # nearly all end here
        return False
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
    return (
        _sizes_fit(marks, configuration)
        and not ("disagg" in marks and not configuration.disagg)
        and not ("agg" in marks and configuration.disagg)
    )


def _sizes_fit(marks: frozenset[str], configuration: Configuration) -> bool:
    """Say whether no length and no size in the marks of a key is another than the configuration's."""
    for mark in marks:
        lengths, ranks = _LENGTHS.fullmatch(mark), _RANKS.fullmatch(mark)
        told = ((configuration.isl, lengths[1]), (configuration.osl, lengths[2])) if lengths else ()
        if any(size is not None and size not in (int(thousands) * 1024, int(thousands) * 1000) for size, thousands in told):
            return False
        if ranks and configuration.ranks and int(ranks[1]) not in configuration.ranks:
            return False
    return True


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
