"""A reading from what a record tells, what the user declared and what the names of files tell: the part that formats share.

Belongs here: which source counts, what must be known, per-GPU rates, canonical names. Does not: any field of any tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipelines.ingest.declarations import KEYS
from pipelines.ingest.numbers import whole
from pipelines.ingest.reading import Given, Reading, Taken
from warehouse import image as images
from warehouse import vocabulary
from warehouse.cell import IDENTITY_FIELDS
from warehouse.errors import InputError
from warehouse.vocabulary import Name

ASKED = "not in the record; declare"
"""What is said of fields that the user is asked for."""
FROM_NAME = " (file name)"
"""What is put behind a field that the name of a file or folder told."""
INTERACTIVITY = ("mean", "median", "p90", "p99", "p999")
"""Statistics of TPOT from which interactivity follows: tok/s/user = 1 / TPOT, so that a percentile is of the slow tail."""
ROLES = tuple(key for key in KEYS if key.startswith(("prefill_", "decode_", "num_prefill", "num_decode")))
"""Keys that tell sizes by role; they are identity columns of the same names."""
THROUGHPUTS = {"total": "tput_per_gpu", "output": "output_tput_per_gpu", "input": "input_tput_per_gpu"}


@dataclass
class Facts:
    """Fields of one record: the record's own, else declared, else told by names; notes which were none and missing."""

    given: Given
    declared: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def text(self, key: str, own: str | None = None, *, needed: bool = False) -> str | None:
        """Return the text of *key* (of `declarations.KEYS`); *own* is what the record says. Asks for it where it is *needed*."""
        if own is not None and own.strip():
            return own.strip()
        if (value := self.given.declared.get(key)) is not None:
            self.declared.append(key)
            return value
        if (value := self.given.named.get(key)) is not None:
            self.declared.append(key + FROM_NAME)
            return value
        if needed:
            self.missing.append(key)
        return None

    def count(self, key: str, own: int | None = None, *, needed: bool = False) -> int | None:
        """Return the whole number of *key*."""
        value = self.text(key, None if own is None else str(own), needed=needed)
        return None if value is None else whole(key, value)

    def real(self, key: str, own: float | None = None) -> float | None:
        """Return the number of *key*."""
        if own is not None:
            return own
        value = self.text(key)
        return None if value is None else float(value)

    def flag(self, key: str, own: bool | None = None) -> bool:
        """Return the truth of *key*; what nobody says is false."""
        return own if own is not None else self.text(key) == "true"

    def ask(self) -> None:
        """Raise InputError that asks for all that is needed and missing, by name."""
        if self.missing:
            wanted = sorted(set(self.missing), key=list(KEYS).index)
            example = f"--set {wanted[0]}={KEYS[wanted[0]].example}"
            raise InputError(f"{', '.join(wanted)}: {ASKED} in a shiftlog.yaml beside it or with {example}")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a record itself tells of the deployment under test; None: it does not, and a declaration may complete it."""

    engine: str | None = None
    framework: str | None = None
    hardware: str | None = None
    model: str | None = None
    """A checkpoint's path or hub id, or a family's name."""
    model_prefix: str | None = None
    precision: str | None = None
    spec_decoding: str | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp_attention: bool | None = None
    disagg: bool | None = None
    isl: int | None = None
    osl: int | None = None
    concurrency: int | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Further identity columns (sizes by role, router …)."""
    measured_at: datetime | None = None

    def names(self, hardware: str | None, precision: str | None, model: str | None, framework: str | None) -> dict[str, Name]:
        """Return the canonical names of what is known from whom ever."""
        found = {
            "hardware": vocabulary.hardware(hardware) if hardware else None,
            "precision": vocabulary.precision(precision) if precision else None,
            "model": vocabulary.model(self.model_prefix, model) if self.model_prefix or model else None,
            "framework": vocabulary.framework(framework) if framework else None,
        }
        return {kind: name for kind, name in found.items() if name}


@dataclass(frozen=True, kw_only=True)
class Told(Deployment):
    """What the record of a benchmark itself tells.

    `throughput` is of the whole system by kind (total, output, input), tok/s; it is divided by the GPUs. `metrics` are columns in
    their units already.
    """

    definition: str
    engine_version: str | None = None
    engine_commit: str | None = None
    image: str | None = None
    hardware_label: str | None = None
    num_gpus: int | None = None
    request_rate: float | None = None
    workload: str | None = None
    recipe: str | None = None
    arrival: str | None = None
    """None: a closed loop of `concurrency`; else `poisson`, `constant`, `burst` (all at once), `offline`, `batch` …"""
    scenario: str = "fixed-seq-len"
    system: str | None = None
    throughput: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    other: Mapping[str, float] = field(default_factory=dict)
    requests: int | None = None
    requests_failed: int | None = None
    duration_s: float | None = None
    isl_mean: float | None = None
    osl_mean: float | None = None
    needs: tuple[str, ...] = ("engine", "hardware", "num_gpus", "model", "precision")
    """Keys that must be known, from whom ever."""


def unknown(names: Mapping[str, Name]) -> tuple[tuple[str, str], ...]:
    """Return kind and value of the names that the vocabulary does not know."""
    return tuple((kind, name.value) for kind, name in names.items() if not name.known)


def assembled(told: Told, given: Given) -> Reading:
    """Return the reading of a record; raises InputError that asks by name for what is needed and nobody said."""
    facts = Facts(given)
    text = {
        key: facts.text(key, getattr(told, key), needed=key in told.needs)
        for key in ("hardware", "precision", "image", "engine_version", "engine_commit", "workload", "spec_decoding", "recipe")
    }
    model_source = facts.text("model", told.model, needed="model" in told.needs and not told.model_prefix)
    framework, engine = _stack(facts, told, text["image"])
    sizes = {key: facts.count(key, getattr(told, key)) for key in ("tp", "pp", "ep")}
    gpus = _gpus(facts, told, sizes)
    lengths = {key: facts.count(key, getattr(told, key)) for key in ("isl", "osl")}
    rate = facts.real("request_rate", told.request_rate) if told.concurrency is None else told.request_rate
    concurrency = facts.count("concurrency", told.concurrency) if rate is None else told.concurrency
    if rate is None and concurrency is None and told.arrival is None:
        facts.missing.append("concurrency")
    roles = {key: role_size(facts, key, told.identity) for key in ROLES}
    dp_attention, disagg = facts.flag("dp_attention", told.dp_attention), facts.flag("disagg", told.disagg)
    facts.ask()
    names = told.names(text["hardware"], text["precision"], model_source, framework)
    identity = {
        **dict.fromkeys(IDENTITY_FIELDS),
        **{kind: name.value for kind, name in names.items()},
        "engine": engine,
        "spec_decoding": (text["spec_decoding"] or "none").lower(),
        "disagg": disagg,
        "is_multinode": facts.flag("is_multinode"),
        **sizes,
        "dp_attention": dp_attention,
        "scenario": told.scenario,
        **lengths,
        "workload": text["workload"],
        "arrival": told.arrival or ("poisson" if rate is not None else None),
        "system": told.system,
        **told.identity,
        **roles,
    }
    return Reading(
        identity=identity,
        concurrency=concurrency,
        request_rate=rate,
        num_gpus=gpus,
        image=text["image"],
        metrics=_with_interactivity({**told.metrics, **_per_gpu(told.throughput, gpus)}),
        metrics_other=dict(told.other),
        metric_definition=told.definition,
        hardware_label=told.hardware_label or text["hardware"],
        model_source=model_source,
        checkpoint=vocabulary.checkpoint(model_source) if model_source else None,
        recipe_fingerprint=text["recipe"],
        measured_at=told.measured_at,
        engine_version=text["engine_version"],
        engine_commit=text["engine_commit"],
        requests=told.requests,
        requests_failed=told.requests_failed,
        duration_s=told.duration_s,
        isl_mean=told.isl_mean,
        osl_mean=told.osl_mean,
        declared=tuple(sorted(set(facts.declared))),
        unknown_names=unknown(names),
    )


def role_size(facts: Facts, key: str, own: Mapping[str, Any]) -> Any:
    """Return a size by role: the record's own, else declared; None where nobody tells it."""
    if own.get(key) is not None or key not in facts.given.declared:
        return own.get(key)
    return facts.flag(key) if key.endswith("dp_attention") else facts.count(key)


def _stack(facts: Facts, told: Told, image: str | None) -> tuple[str | None, str | None]:
    """Return serving stack and engine: the record's own, else declared, else what the image holds."""
    framework = facts.text("framework", told.framework)
    held = _engine_of(image)
    wanted = "engine" in told.needs and framework is None and held is None
    engine = facts.text("engine", told.engine, needed=wanted) or held
    name = vocabulary.engine(engine).value if engine else None
    if framework is None:
        return name, name
    return framework, name or vocabulary.engine_of_framework(vocabulary.framework(framework).value)


def _engine_of(image: str | None) -> str | None:
    try:
        return images.parse(image).engine if image else None
    except InputError:
        return None


def _gpus(facts: Facts, told: Told, sizes: Mapping[str, int | None]) -> int | None:
    """Return the GPUs: as told or declared, else tensor- times pipeline-parallel ranks where the former are known."""
    if told.num_gpus is not None or "num_gpus" in facts.given.declared:
        return facts.count("num_gpus", told.num_gpus)
    if sizes["tp"] is not None:
        return sizes["tp"] * (sizes["pp"] or 1)
    return facts.count("num_gpus", needed="num_gpus" in told.needs)


def _per_gpu(throughput: Mapping[str, float], gpus: int | None) -> dict[str, float]:
    return {THROUGHPUTS[kind]: value / gpus for kind, value in throughput.items() if gpus}


def with_interactivity_taken(taken: Iterable[Taken]) -> list[Taken]:
    """Say the same of many records: what is taken from their numbers, and interactivity where TPOT is."""
    found = list(taken)
    keys = {part.name: part.key for part in found}
    told = [(statistic, keys.get(f"tpot_{statistic}")) for statistic in INTERACTIVITY]
    return found + [Taken(f"intvty_{statistic}", key, inverse=True) for statistic, key in told if key]


def _with_interactivity(metrics: dict[str, float]) -> dict[str, float]:
    """Add interactivity where TPOT is known and interactivity is not."""
    tpot = {statistic: metrics.get(f"tpot_{statistic}") for statistic in INTERACTIVITY}
    return {**{f"intvty_{statistic}": 1.0 / value for statistic, value in tpot.items() if value}, **metrics}
