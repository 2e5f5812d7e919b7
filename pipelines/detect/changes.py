"""What is known to differ between two observations, and what that allows us to say of the cause."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.detect.baseline import Baseline
from pipelines.detect.observations import Observation

BUILD, RECIPE, CHECKPOINT, ENVIRONMENT, SEARCH_SPACE = "build", "recipe", "checkpoint", "environment", "search_space"
ENGINE, MEASUREMENT, MIXED, UNKNOWN = "engine", "measurement", "mixed", "unknown"

_ALONE = {BUILD: ENGINE, RECIPE: RECIPE, CHECKPOINT: CHECKPOINT, ENVIRONMENT: ENVIRONMENT}


@dataclass(frozen=True)
class ChangeSet:
    """Names of what differs, the same in words, and the attribution of a change that steady state confirms."""

    names: tuple[str, ...]
    details: tuple[str, ...]
    attribution: str


def differences(new: Observation, baseline: Baseline) -> ChangeSet:
    """Return what differs between an observation and its baseline.

    Nothing differs → `environment`: the same image, run again, gave it. One thing → its name, the build alone → `engine`.
    Several → `mixed`. A build that is not recorded, or that may be the same one (a tag whose digest is recorded on one side
    only) → `unknown`. Another search space does not move a cell, so it names nothing.
    """
    old = baseline.observation
    found = {
        BUILD: _build(old, new),
        RECIPE: _changed("recipe fingerprint", old.recipe_fingerprint, new.recipe_fingerprint),
        CHECKPOINT: _changed("checkpoint", old.checkpoint, new.checkpoint),
        ENVIRONMENT: _changed("runner label", old.hardware_label, new.hardware_label),
        SEARCH_SPACE: _search_space(baseline, new),
    }
    present = {name: text for name, text in found.items() if text}
    causes = [name for name in present if name in _ALONE]
    if not (old.has_build and new.has_build) or _may_be_same(old, new):
        attribution = UNKNOWN
    elif not causes:
        attribution = ENVIRONMENT
    else:
        attribution = _ALONE[causes[0]] if len(causes) == 1 else MIXED
    return ChangeSet(tuple(present), tuple(present.values()), attribution)


def _may_be_same(old: Observation, new: Observation) -> bool:
    """Say whether one side names a digest and the other a tag that may stand for it: the same tag, or any where it has none."""
    if old.build_id == new.build_id or (old.image_digest is None) == (new.image_digest is None):
        return False
    pinned, loose = (old, new) if old.image_digest else (new, old)
    return _tag(loose) == _tag(pinned) or _tag(loose).startswith(f"{_tag(pinned)}:")


def _build(old: Observation, new: Observation) -> str:
    if old.build_id == new.build_id:
        return ""
    if _may_be_same(old, new):
        return f"build: {_tag(old)} → {_tag(new)}, its digest recorded on one side only; it may be the same"
    if old.image_ref is None and new.image_ref is None:
        return f"build: {old.build_id} → {new.build_id}"
    if _tag(old) == _tag(new):
        return f"build: the tag {_tag(new)} moved, {_short(old)} → {_short(new)}"
    return f"build: {old.image_ref or 'not recorded'} → {new.image_ref or 'not recorded'}"


def _tag(observation: Observation) -> str:
    return (observation.image_ref or "").split("@", 1)[0]


def _short(observation: Observation) -> str:
    return observation.image_digest[:19] if observation.image_digest else "digest not recorded"


def _changed(what: str, old: str | None, new: str | None) -> str:
    if old == new or old is None or new is None:
        return ""
    return f"{what}: {old[:64]} → {new[:64]}"


def _search_space(baseline: Baseline, new: Observation) -> str:
    gained = sorted(new.cells.keys() - baseline.cells.keys())
    lost = sorted(baseline.cells.keys() - new.cells.keys())
    words = [
        f"{word} {', '.join(map(str, concurrencies))}"
        for word, concurrencies in (("gained", gained), ("lost", lost))
        if concurrencies
    ]
    return f"concurrencies: {'; '.join(words)}" if words else ""
