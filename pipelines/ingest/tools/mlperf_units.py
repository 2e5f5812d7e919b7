"""What MLPerf Inference numbers mean: rounds with their days, benchmarks with their accuracy targets, what a Result really is.

The facts are rows of `data/mlperf.toml`, with the rounds from and to which they hold. Labels of units count for nothing: MLPerf's
own lists call tokens samples and samples queries. Belongs here: looking the facts up. Does not: the facts, any file's shape.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pipelines.ingest.reading import Origin

RUN_SOURCE = "mlcommons"
RESULTS = "https://github.com/mlcommons/inference_results_"
CACHED = 16_384
_ROUND = re.compile(r"v?(\d{1,2}\.\d{1,2})")
_TARGET = re.compile(r"(.+?)-(99(?:\.9+)?)")
_INTERACTIVE = re.compile(r"(.+)-interactive")
SCENARIOS = {
    "offline": "Offline",
    "server": "Server",
    "interactive": "Interactive",
    "singlestream": "SingleStream",
    "multistream": "MultiStream",
}
"""Spellings of scenarios in lower case, without `-` and `_`."""
LATENCIES = ("SingleStream", "MultiStream")
"""Scenarios whose result is a latency."""


@dataclass(frozen=True)
class Round:
    """One round: its name (`v4.0`), its place in the order of rounds, the day on which its results were announced."""

    name: str
    order: int
    published: datetime


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its family, the share of reference quality that must be reached (`99.9`, in %, where told), its full name."""

    name: str
    family: str
    target: str | None


@dataclass(frozen=True)
class Meaning:
    """What a Result is once it is divided by `divide`: the metric, output tokens a second, or a column of `points`.

    `definition` tells which Results may be compared: those with equal ones.
    """

    definition: str
    metric: str | None = None
    divide: float = 1.0
    tokens: bool = False
    rate: bool = True
    column: bool = False


@cache
def facts() -> dict[str, Any]:
    """Return the tables of `data/mlperf.toml`."""
    return tomllib.loads(files("pipelines.ingest.tools").joinpath("data/mlperf.toml").read_text("utf-8"))


@cache
def _rounds() -> dict[str, Round]:
    return {
        entry["name"]: Round(entry["name"], place, datetime.combine(entry["published"], time(), UTC))
        for place, entry in enumerate(facts()["rounds"])
    }


@lru_cache(maxsize=CACHED)
def round_name(version: str) -> str | None:
    """Return the plain name of a round: `4.1`, `v4.1`, `v4.1-0043` → v4.1; None where *version* begins with none."""
    found = _ROUND.match(version.strip().lower())
    return f"v{found[1]}" if found else None


def round_of(name: str | None) -> Round | None:
    """Return the round called *name* (`v4.1`), or None where it is not in the table."""
    return _rounds().get(name or "")


def origin_of(name: str | None) -> Origin | None:
    """Return the run that a round is: measured at some time before, public since its day; None where that is not known."""
    found = round_of(name)
    if found is None:
        return None
    url = RESULTS + found.name
    return Origin(
        RUN_SOURCE, found.name, found.published, name=f"MLPerf Inference {found.name}", published_at=found.published, url=url
    )


@lru_cache(maxsize=CACHED)
def scenario_of(text: str) -> str | None:
    """Return a scenario in MLPerf's spelling: `singlestream` → SingleStream; None where it is none."""
    return SCENARIOS.get(re.sub(r"[-_\s]", "", text.lower()))


@lru_cache(maxsize=CACHED)
def benchmark_of(model: str) -> Benchmark:
    """Return the benchmark that *model* names, drifted spellings joined: `resnet50` → resnet, `gptj-99.9` → gptj with 99.9 %."""
    plain = model.strip().lower()
    match = _TARGET.fullmatch(plain)
    family, target = (match[1], match[2]) if match else (plain, None)
    family = facts()["benchmarks"].get(family, family)
    return Benchmark(f"{family}-{target}" if target else family, family, target)


@lru_cache(maxsize=CACHED)
def placed(model: str, scenario: str) -> tuple[Benchmark, str]:
    """Return benchmark and scenario; v5.0 wrote the Interactive scenario as a model name with scenario Server."""
    benchmark = benchmark_of(model)
    match = _INTERACTIVE.fullmatch(benchmark.family)
    if match and scenario == "Server":
        return benchmark_of(benchmark.name.replace("-interactive", "", 1)), "Interactive"
    return benchmark, scenario


def within(entry: dict[str, Any], name: str | None) -> bool:
    """Say whether the round called *name* is one from and to which *entry* holds."""
    found = round_of(name)
    return found is not None and _rounds()[entry["from"]].order <= found.order <= _rounds()[entry["to"]].order


@lru_cache(maxsize=CACHED)
def rules(name: str | None, family: str, scenario: str) -> tuple[str, ...]:
    """Return what the rules say that a Result is: those that name the benchmark where there are any, else the general ones."""
    fitting = [rule for rule in facts()["units"] if scenario in rule["scenarios"] and within(rule, name)]
    special = [rule["is"] for rule in fitting if family in rule.get("benchmarks", ())]
    return tuple(special or [rule["is"] for rule in fitting if "benchmarks" not in rule])


@lru_cache(maxsize=CACHED)
def meaning(name: str | None, family: str, scenario: str, inferred: bool = False) -> Meaning:
    """Return what the Result of a benchmark and scenario in the round called *name* is.

    A figure that was worked out from another scenario's run, and one of a round without a rule, are metrics of their own, so
    that nothing is compared with them.
    """
    found = rules(name, family, scenario)
    kind = "latency" if scenario in LATENCIES else "rate"
    if len(found) != 1:
        return Meaning(f"mlperf {name} {scenario} as labelled", f"mlperf_{kind}_as_labelled", rate=False)
    entry = dict(facts()["meanings"][found[0]])
    if inferred:
        named = f"mlperf {scenario} inferred from another scenario"
        return Meaning(named, f"mlperf_inferred_{kind}", entry.get("divide", 1), rate=False)
    said = str(entry.pop("definition", found[0])).removesuffix("_ms").replace("_", " ")
    return Meaning(f"mlperf {said}", **entry)


def numbers(meant: Meaning, value: float, gpus: int | None) -> tuple[dict[str, float], dict[str, float]]:
    """Return the columns and the other metrics that a Result is; rates per accelerator, too, where their number is known."""
    result = value / meant.divide
    if meant.tokens:
        return {"output_tput_per_gpu": result / gpus} if gpus else {}, {"output_tokens_per_second": result}
    name = str(meant.metric)
    if meant.column:
        return {name: result}, {}
    per_gpu = {f"{name}_per_gpu": result / gpus} if meant.rate and gpus else {}
    return {}, {name: result, **per_gpu}


@lru_cache(maxsize=CACHED)
def inside(name: str | None, stack: str, family: str) -> str | None:
    """Return the engine that is known to be inside *stack* for a benchmark, where no software field names it."""
    entries = (entry for entry in facts()["inside"] if entry["stack"] == stack and family in entry["benchmarks"])
    return next((entry["engine"] for entry in entries if within(entry, name)), None)


@lru_cache(maxsize=CACHED)
def recipe_commit(name: str | None, submitter: str, stack: str, version: str | None) -> str | None:
    """Return the commit that a submission's own recipe would build, where its version of *stack* is that of the recipe."""
    ran = f"{stack} {version or ''}."
    for entry in facts()["commits"]:
        if entry["round"] == name and submitter in entry["submitters"] and ran.startswith(f"{entry['stack']}."):
            return str(entry["commit"])
    return None
