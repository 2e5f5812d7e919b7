"""What is known to differ between two observations, and what that allows us to say of the cause.

What a record tells of its client is its format (and of MLPerf the round). The commit of the benchmark's repository is no cause by
itself: it moves with every run. What of it matters stands in the benchmark's recipe log (`recipes`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from changelog.sightings import full
from pipelines.detect.baseline import Baseline
from pipelines.detect.observations import Observation
from pipelines.detect.recipes import Entry

BUILD, RECIPE, CHECKPOINT, ENVIRONMENT, SEARCH_SPACE = "build", "recipe", "checkpoint", "environment", "search_space"
HARNESS = "harness"
ENGINE, MEASUREMENT, MIXED, UNKNOWN = "engine", "measurement", "mixed", "unknown"

_ALONE = {BUILD: ENGINE, RECIPE: RECIPE, HARNESS: HARNESS, CHECKPOINT: CHECKPOINT, ENVIRONMENT: ENVIRONMENT}
SHOWN = 2
"""Entries of a recipe log that are told in full."""


@dataclass(frozen=True)
class ChangeSet:
    """Names of what differs, the same in words, and the attribution of a change that steady state confirms."""

    names: tuple[str, ...]
    details: tuple[str, ...]
    attribution: str

    @property
    def is_repeat(self) -> bool:
        """Say whether one recorded build ran twice and nothing that could move a cell is known to differ."""
        return self.attribution == ENVIRONMENT and ENVIRONMENT not in self.names


def differences(new: Observation, baseline: Baseline) -> ChangeSet:
    """Return what differs between an observation and its baseline.

    Nothing differs → `environment`: the same image, run again, gave it. One thing → its name, the build alone → `engine`.
    Several → `mixed`. A build that is not recorded, or that may be the same one (a tag whose digest is recorded on one side
    only, one that a registry told to have moved) → `unknown`. Another search space does not move a cell, so it names nothing.
    """
    old = baseline.observation
    found = {
        BUILD: build_change(old, new),
        RECIPE: recipe_change(old, new),
        HARNESS: changed("harness", old.harness, new.harness),
        CHECKPOINT: changed("checkpoint", old.checkpoint, new.checkpoint),
        ENVIRONMENT: changed("runner label", old.cluster, new.cluster),
        SEARCH_SPACE: _search_space(baseline, new),
    }
    present = {name: text for name, text in found.items() if text}
    causes = [name for name in present if name in _ALONE]
    if not (old.has_build and new.has_build) or may_be_same(old, new):
        attribution = UNKNOWN
    elif not causes:
        attribution = ENVIRONMENT
    else:
        attribution = _ALONE[causes[0]] if len(causes) == 1 else MIXED
    return ChangeSet(tuple(present), tuple(present.values()), attribution)


def may_be_same(old: Observation, new: Observation) -> bool:
    """Say whether two names of builds may be one build: then neither is cleared nor blamed.

    A tag that was seen to move between them may be either, because a run can have had the older copy. Two names that stood for
    one digest may be one. Else two digests tell builds apart, and so do two versions. Else one image may stand under two names:
    with its digest recorded on one side only, as a tag that can be any version (`latest`), as an image here and a version there,
    or spelled in another way.
    """
    if not (old.has_build and new.has_build):
        return False
    if old.build_id == new.build_id:
        return old.is_named_as(new) and not old.same_build(new)
    if old.stood.may_be(new.stood):
        return True
    if old.image_digest and new.image_digest:
        return False
    versions = {_version(side) for side in (old, new)} - {None}
    if len(versions) > 1:
        return False
    if old.image_ref is None or new.image_ref is None:
        return bool(versions) or (old.image_ref is None) != (new.image_ref is None)
    one, other = full(_tag(old)), full(_tag(new))
    alike = one.rsplit(":", 1)[0] == other.rsplit(":", 1)[0]
    return one == other or (alike and not all(_VERSION.search(tag) for tag in (one, other)))


_VERSION = re.compile(r":.*\d\.\d")
"""A tag that holds a version cannot be another one; `latest`, `nightly` or none can be any."""


def _version(observation: Observation) -> str | None:
    """Return the version in one spelling, as far as it is one: `v0.24` and `0.24.0` are the same."""
    told = observation.engine_version
    if told is None:
        return None
    try:
        found = Version(told)
    except InvalidVersion:
        return told.lower().removeprefix("v")
    return str(Version(found.public)).removesuffix(".0") if len(found.release) > 2 else str(found.public)


def build_change(old: Observation, new: Observation) -> str:
    """Return in words how the builds differ, or nothing: digest, tag, commit or version, whatever the records hold."""
    if old.same_build(new):
        return ""
    if old.build_id == new.build_id and old.is_named_as(new):
        return f"build: the tag {_tag(new)} moved ({old.stood.moved(new.stood)}); either run may have had either"
    if old.build_id == new.build_id:
        return f"build: {_tag(new) or new.build_id} moved, version {_clip(old.engine_version)} → {_clip(new.engine_version)}"
    if may_be_same(old, new):
        if old.stood.may_be(new.stood):
            both = min(old.stood.digests & new.stood.digests)
            return f"build: {_tag(old) or _name(old)} → {_tag(new) or _name(new)}, both known as {both[:19]}: it may be the same"
        loose = (
            "its digest recorded on one side only; " if _tag(old) and _tag(new) and (old.image_digest or new.image_digest) else ""
        )
        return f"build: {_tag(old) or _name(old)} → {_tag(new) or _name(new)}, {loose}it may be the same"
    if old.image_ref is None and new.image_ref is None:
        return f"build: {_name(old)} → {_name(new)}"
    if _tag(old) == _tag(new):
        return f"build: the tag {_tag(new)} moved, {_short(old)} → {_short(new)}"
    return f"build: {old.image_ref or 'not recorded'} → {new.image_ref or 'not recorded'}"


def _tag(observation: Observation) -> str:
    return (observation.image_ref or "").split("@", 1)[0]


def _short(observation: Observation) -> str:
    return observation.image_digest[:19] if observation.image_digest else "digest not recorded"


def _name(observation: Observation) -> str:
    return observation.build_id if observation.has_build else "not recorded"


def recipe_change(old: Observation, new: Observation) -> str:
    """Return the change of the fingerprint and the entries of the recipe log that hold for one side alone, in words."""
    fingerprint = changed("recipe fingerprint", old.recipe_fingerprint, new.recipe_fingerprint)
    between = _between(old, new)
    told = [f"recipe log, {entry.at:%Y-%m-%d}: {entry.words}" for entry in between[:SHOWN]]
    more = [f"{len(between) - SHOWN} more entries"] if len(between) > SHOWN else []
    return "; ".join([*filter(None, [fingerprint]), *told, *more])


def _between(old: Observation, new: Observation) -> tuple[Entry, ...]:
    """Return the entries that hold for one of the two alone; of one log the later run knows more, but for what is run ahead."""
    if old.logged == new.logged:
        return ()
    both = set(old.logged) & set(new.logged)
    return tuple(entry for entry in (*old.logged, *new.logged) if entry not in both)


def changed(what: str, old: str | None, new: str | None) -> str:
    """Return in words that a text differs, or nothing; what one side lacks is not known to differ."""
    if old == new or old is None or new is None:
        return ""
    return f"{what}: {_clip(old)} → {_clip(new)}"


def _clip(text: str | None) -> str:
    return (text or "")[:64]


def _search_space(baseline: Baseline, new: Observation) -> str:
    gained = sorted(new.cells.keys() - baseline.cells.keys())
    lost = sorted(baseline.cells.keys() - new.cells.keys())
    words = [
        f"{word} {', '.join(map(str, concurrencies))}"
        for word, concurrencies in (("gained", gained), ("lost", lost))
        if concurrencies
    ]
    return f"concurrencies: {'; '.join(words)}" if words else ""
