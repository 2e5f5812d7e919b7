"""What a change can be about, and which of it a configuration asks for; read from `data/facets.toml`.

Belongs here: the registry of facets, natures and model families, and the questions that a configuration puts to it.
Does not: matching text (`changelog.matching`), weighing (`changelog.scoring`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from changelog.similarity import plain_words
from warehouse import vocabulary

DIRECTIONS = ("regression", "speedup")
IMPLIED = ("vendor", "target")
"""Kinds that the name of an accelerator implies: whose it is and of which architecture."""
_NO_METHOD = ("", "none", "off", "false")


@dataclass(frozen=True)
class Configuration:
    """What is known of the benchmark that moved, in canonical names.

    What is None counts neither for nor against anything, with one exception: a change to speculative decoding or to
    disaggregation is less likely where the shift does not speak of them, because most configurations use neither.
    """

    hardware: str | None = None
    model: str | None = None
    precision: str | None = None
    spec_decoding: str | None = None
    disagg: bool | None = None
    direction: str | None = None
    metric: str | None = None
    phase: str | None = None
    """prefill or decode, where it is known from more than the metric."""


@dataclass(frozen=True)
class Facet:
    """One thing that a change can be about: its kind, the words for it, and the terms that say so."""

    name: str
    kind: str
    label: str
    title: tuple[str, ...]
    paths: tuple[str, ...]
    unless: tuple[str, ...]
    entry: dict[str, Any]


@dataclass(frozen=True)
class Nature:
    """One kind of change, read from the title or from the changed paths, with its weight by the direction of the shift."""

    name: str
    words: str
    terms: tuple[str, ...]
    paths: tuple[str, ...]
    weights: dict[str, float]
    unless: tuple[str, ...]
    """Natures of the same title that it does not count beside."""


@cache
def registry() -> dict[str, Any]:
    """Return the whole of `data/facets.toml`."""
    return tomllib.loads(files("changelog").joinpath("data/facets.toml").read_text("utf-8"))


@cache
def facets() -> dict[str, Facet]:
    """Return every facet by name, in the order of the file."""
    return {
        name: Facet(
            name,
            entry["kind"],
            entry["label"],
            tuple(entry["title"]),
            tuple(entry.get("paths", entry["title"])),
            tuple(entry.get("unless", ())),
            entry,
        )
        for name, entry in registry()["facet"].items()
    }


@cache
def natures() -> tuple[Nature, ...]:
    """Return every nature, in the order of the file."""
    return tuple(
        Nature(
            name,
            entry["words"],
            tuple(entry.get("terms", ())),
            tuple(entry.get("paths", ())),
            {key: float(entry[key]) for key in (*DIRECTIONS, "neutral")},
            tuple(entry.get("unless", ())),
        )
        for name, entry in registry()["nature"].items()
    )


@cache
def accelerator_terms() -> tuple[str, ...]:
    """Return the terms of a title that name one accelerator."""
    return tuple(term for facet in facets().values() if facet.kind == "accelerator" for term in facet.title)


def asked_facets(configuration: Configuration) -> dict[str, frozenset[str]]:
    """Return, by kind, the facets that a configuration asks for; a kind that it says nothing of is missing."""
    asked: dict[str, frozenset[str]] = {"elsewhere": frozenset(), "core": _of_kind("core")}
    asked |= _by_hardware(configuration.hardware) | _by_model(configuration.model) | _by_mode(configuration)
    if configuration.precision:
        asked["precision"] = _named("precision", configuration.precision)
        asked |= _format(configuration, asked["precision"])
    phase = configuration.phase or phase_of_metric(configuration.metric)
    if phase:
        asked["phase"] = frozenset({phase})
    return asked


def words_asked_for(configuration: Configuration) -> frozenset[str]:
    """Return the plain words of all facets that a configuration asks for, `core` ones (which every shift asks for) left out."""
    known = facets()
    names = [name for kind, own in asked_facets(configuration).items() if kind != "core" for name in sorted(own)]
    return frozenset(word for name in names for word in plain_words((*known[name].title, *known[name].paths)))


def vendor_of(configuration: Configuration) -> str | None:
    """Return the vendor of the configuration's accelerator, where the vocabulary knows it."""
    return vocabulary.entry("hardware", configuration.hardware).get("vendor") if configuration.hardware else None


def phase_of_metric(metric: str | None) -> str | None:
    """Return the phase that a metric times: `ttft_mean` → prefill, `tpot_median`, `itl_…`, `intvty_…` → decode, others None."""
    family = (metric or "").split("_", 1)[0].lower()
    return {"ttft": "prefill", "tpot": "decode", "itl": "decode", "intvty": "decode"}.get(family)


def exact_title(configuration: Configuration) -> str | None:
    """Return the model's own name with its version, in lower case, where the vocabulary knows it: `minimax m2.5`."""
    title = vocabulary.entry("model", configuration.model).get("title") if configuration.model else None
    return str(title).lower() if title else None


def _by_hardware(hardware: str | None) -> dict[str, frozenset[str]]:
    entry = vocabulary.entry("hardware", hardware) if hardware else {}
    if not hardware or not entry:
        return {}
    kinds = {"vendor": entry["vendor"], "target": entry["target"], "accelerator": hardware}
    return {kind: _named(kind, value) for kind, value in kinds.items()} | {"backend": _backends(entry)}


def _backends(hardware: dict[str, Any]) -> frozenset[str]:
    """Return the kernel libraries that run on an accelerator: those of its vendor, and of its architecture if they name one."""
    return frozenset(
        facet.name
        for facet in facets().values()
        if facet.kind == "backend"
        and hardware["vendor"] in facet.entry["vendors"]
        and hardware["target"] in facet.entry.get("targets", (hardware["target"],))
    )


def _by_model(model: str | None) -> dict[str, frozenset[str]]:
    family = _family(model)
    if not family:
        return {}
    known = facets()
    return {kind: frozenset(name for name in family["asks"] if known[name].kind == kind) for kind in ("model", "trait")}


def _format(configuration: Configuration, precision: frozenset[str]) -> dict[str, frozenset[str]]:
    """Return which four-bit format is meant: that of the model's checkpoints, else that of the accelerator's vendor."""
    own = frozenset(_family(configuration.model).get("formats", ()))
    of_vendor = [facet.name for facet in facets().values() if vendor_of(configuration) in facet.entry.get("vendors", ())]
    named = own or (frozenset(of_vendor) & _of_kind("format"))
    return {"format": named} if named and "fp4" in precision else {}


def _by_mode(configuration: Configuration) -> dict[str, frozenset[str]]:
    """Speculation and disaggregation are used or they are not; where one is not said, nothing counts for or against it."""
    method = configuration.spec_decoding
    said = {"spec_decoding": None if method is None else method.lower() not in _NO_METHOD, "disagg": configuration.disagg}
    modes = {facet.name: said[facet.entry["mode"]] for facet in facets().values() if facet.kind == "mode"}
    return {f"mode {name}": frozenset({name} if used else ()) for name, used in modes.items() if used is not None}


def kin(configuration: Configuration) -> frozenset[str]:
    """Return the model facets of families that are only related to the configuration's own, which stands first in its `asks`."""
    known = facets()
    models = [name for name in _family(configuration.model).get("asks", ()) if known[name].kind == "model"]
    return frozenset(models[1:])


def _family(model: str | None) -> dict[str, Any]:
    return next((family for family in registry()["family"] if _begins(model, family["names"])), {})


def _begins(model: str | None, names: Iterable[str]) -> bool:
    spelled = (model or "").lower().replace("_", "-")
    return bool(spelled) and spelled.startswith(tuple(names))


def _of_kind(kind: str) -> frozenset[str]:
    return frozenset(facet.name for facet in facets().values() if facet.kind == kind)


def _named(kind: str, value: str) -> frozenset[str]:
    """Return the facets of *kind* whose entry names *value* under the same key."""
    return frozenset(
        facet.name
        for facet in facets().values()
        if facet.kind == kind and (value == facet.entry.get(kind) or value in _listed(facet.entry.get(kind)))
    )


def _listed(value: object) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else ()
