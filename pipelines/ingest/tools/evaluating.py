"""Readings of evaluations: the system that was evaluated, completed from what was declared, with each of its scores.

Belongs here: what formats of evaluations share. Does not: any field of any tool. Nothing but the model must be known: a score
without its engine is a score all the same, and what nobody told is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipelines.ingest.assembling import ROLES, Deployment, Facts, role_size, unknown
from pipelines.ingest.numbers import finite, is_number
from pipelines.ingest.reading import EvalReading, Given
from warehouse import vocabulary
from warehouse.cell import IDENTITY_FIELDS
from warehouse.errors import InputError
from warehouse.vocabulary import Name

MAX_NAME = 200
"""Longest name of a task or a metric that is taken, characters."""
LARGEST = 1e12
"""Largest score that is believed; perplexities of broken models go far, but not beyond."""


@dataclass(frozen=True, kw_only=True)
class System(Deployment):
    """What a record tells of the system under evaluation, and which harness asked."""

    harness_version: str | None = None


@dataclass(frozen=True)
class Score:
    """One score: of a task by a metric, in the metric's own unit (most are shares of 1)."""

    task: str
    metric: str
    value: float
    stderr: float | None = None
    samples: int | None = None
    samples_total: int | None = None
    few_shot: int | None = None
    task_version: str | None = None


def readings(system: System, scores: Iterable[Score], given: Given) -> list[EvalReading]:
    """Return one reading a score; raises InputError that asks for the model where nobody tells it."""
    facts = Facts(given)
    model_source = facts.text("model", system.model, needed=not system.model_prefix)
    hardware = facts.text("hardware", system.hardware)
    image, version = facts.text("image"), facts.text("engine_version")
    names, identity = _identity(facts, system, hardware, model_source)
    concurrency = facts.count("concurrency", system.concurrency)
    facts.ask()
    return [
        EvalReading(
            identity=identity,
            concurrency=concurrency,
            image=image,
            task=score.task,
            metric=score.metric,
            score=score.value,
            score_stderr=score.stderr,
            samples=score.samples,
            samples_total=score.samples_total,
            few_shot=score.few_shot,
            harness_version=system.harness_version,
            task_version=score.task_version,
            hardware_label=hardware,
            model_source=model_source,
            checkpoint=vocabulary.checkpoint(model_source) if model_source else None,
            measured_at=system.measured_at,
            engine_version=version,
            declared=tuple(sorted(set(facts.declared))),
            unknown_names=unknown(names),
        )
        for score in scores
    ]


def _identity(facts: Facts, system: System, hardware: str | None, model: str | None) -> tuple[dict[str, Name], dict[str, Any]]:
    """Return the canonical names that are known, and every identity column."""
    framework, engine = facts.text("framework", system.framework), facts.text("engine", system.engine)
    precision = facts.text("precision", system.precision)
    method = facts.text("spec_decoding", system.spec_decoding)
    names = system.names(hardware, precision, model, framework or engine)
    flags = {key: _flag(facts, key, getattr(system, key)) for key in ("dp_attention", "disagg")}
    flags["is_multinode"] = _flag(facts, "is_multinode", system.identity.get("is_multinode"))
    identity = {
        **dict.fromkeys(IDENTITY_FIELDS),
        **{kind: name.value for kind, name in names.items()},
        "engine": _engine(engine, names.get("framework")),
        "spec_decoding": method.lower() if method else None,
        **flags,
        **{key: facts.count(key, getattr(system, key)) for key in ("tp", "pp", "ep", "isl", "osl")},
        **system.identity,
        **{key: role_size(facts, key, system.identity) for key in ROLES},
    }
    return names, identity


def _engine(engine: str | None, framework: Name | None) -> str | None:
    if engine:
        return vocabulary.engine(engine).value
    return vocabulary.engine_of_framework(framework.value) if framework else None


def _flag(facts: Facts, key: str, own: bool | None) -> bool | None:
    """Return a truth; unlike that of a benchmark, what nobody says is not known."""
    value = facts.text(key, None if own is None else str(own).lower())
    return None if value is None else value == "true"


def score_value(where: str, value: Any) -> float | None:
    """Return a score; None for what is none (`N/A`, NaN, an alias). Raises InputError for a number beyond belief."""
    if not is_number(value) or value != value:
        return None
    number = finite(where, value)
    if abs(number) > LARGEST:
        raise InputError(f"{where}: {number:g} is beyond {LARGEST:g}")
    return number


def name_of(where: str, value: Any) -> str:
    """Return the name of a task or a metric; raises InputError where it is none."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME:
        raise InputError(f"{where}: {str(value)[:60]!r} is not a name of 1 to {MAX_NAME} characters")
    return value.strip()
