"""`shiftlog bisect`: what to run next to halve the changes behind a shift, from all that was measured or told since.

Every run of the shift's curve on a build between the two ends is a result by itself: it stands at the old level, at the new one,
or it cannot be told. Belongs here: gathering results and builds that are there. Does not: halving (`changelog.bisect`), sentences
(`pipelines.bisect_words`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median
from typing import Any

import polars as pl

from changelog.anchors import Anchor
from changelog.bisect import Halving, Level, expected_runs
from changelog.linking import placed, range_for
from changelog.nightly import Nightly, nightlies
from changelog.ranges import Range, find_range
from changelog.sightings import tag_log
from changelog.upstream import Upstream, open_upstream
from changelog.versions import resolve
from pipelines.answers import SHORTEST_PREFIX
from pipelines.detect.changes import BUILD
from pipelines.detect.observations import COLUMNS, REPORTED, STEADY, Observation, observe
from pipelines.projections import upstream as upstream_tables
from warehouse import vocabulary
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.image import ImageReference, parse
from warehouse.store import Store

OLD_BELOW, NEW_ABOVE = 1 / 3, 2 / 3
"""Shares of the shift up to which a run stands at the old level, and from which at the new one; between, it cannot be told."""
AGAINST_ENDS = "what --result says of {build} contradicts the shift itself: that build has {what} of the changes"
CONTRADICTION = "no single change fits all results: one of them is wrong, or two changes moved the level; run one again"
SUSPECTS = 3
FIRST = 20
"""Changes of the remaining set that are listed."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_KEY = ("run_source", "run_id", "run_attempt", "build_id")
Row = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What is known of one build: the candidates that it has (None: it tells nothing), its level, and from where."""

    build: str
    anchor: Anchor
    held: frozenset[int] | None
    level: Level
    how: str
    against: str | None = None
    """How it contradicts the ends of the shift."""


def bisect(
    store: Store,
    prefix: str,
    *,
    given: Iterable[tuple[str, Level]] = (),
    ends: tuple[str | None, str | None] = (None, None),
    now: datetime,
) -> Row:
    """Return the state of a bisection and what to run next, as one JSON value.

    *prefix*: beginning of a shift's id. *given*: builds (version, commit, image) and what was seen on them. *ends*: builds to
    take for FROM and TO where the records do not tell them. Raises InputError where there is nothing to halve.
    """
    shift = _shift(store, prefix)
    upstream = open_upstream(shift["engine"], upstream_tables(store))
    found = _range(upstream, shift, ends)
    halving = _halving(shift, found)
    results = [*_measured(store, upstream, halving, shift), *_given(upstream, halving, given)]
    against = next((result.against for result in results if result.against), None)
    left = () if against else halving.left((result.held, result.level) for result in results if result.held is not None)
    tried = {number for result in results if (number := upstream.history.index.get(result.anchor.commit or "")) is not None}
    ready = _ready(store, upstream, halving, shift)
    place = halving.next(left, tried, ready)
    return {
        "shift_id": shift["shift_id"],
        "project": upstream.project.name,
        "candidates": len(found.numbers),
        "range_how": found.how,
        "open_ended": found.open_ended,
        "results": [_result(result) for result in results],
        "contradiction": against or (CONTRADICTION if not left else None),
        "remaining": {"candidates": len(left), "changes": [_commit(upstream, number) for number in left[:FIRST]]},
        "next": _next(upstream, halving, left, place, ready, shift, now) if place is not None else None,
        "found": len(left) == 1,
        "expected_runs": round(expected_runs(len(left)), 1),
        "runs_each": _runs_each(shift),
        "images": [
            {"commit": upstream.history.hashes[number], "images": names}
            for number, names in sorted(ready.items())
            if number not in tried
        ],
        "nightly": _nightly(shift, upstream),
        "suspects": _suspects(store, upstream, shift, halving, left),
    }


def _shift(store: Store, prefix: str) -> Row:
    begins = prefix.lower()
    rows = store.collect("shifts", store.scan("shifts").filter(pl.col("shift_id").str.starts_with(begins))).to_dicts()
    if len(begins) < SHORTEST_PREFIX or not rows:
        raise InputError(
            f"shift {prefix[:40]!r}: no such shift; `shiftlog shifts` lists them (at least {SHORTEST_PREFIX} characters)"
        )
    if len(rows) > 1:
        raise InputError(f"shift {prefix[:40]!r}: {len(rows)} shifts begin so; give more characters")
    return rows[0]


def _range(upstream: Upstream, shift: Row, ends: tuple[str | None, str | None]) -> Range:
    if not len(upstream.history):
        raise InputError(f"no commits of {upstream.project.title} are known; run `shiftlog sync upstream`, or ingest a clone")
    if BUILD not in (shift["change_set"] or ()) and not any(ends):
        raise InputError(f"shift {shift['shift_id']}: both sides are one build, so there is nothing upstream to halve")
    if not any(ends):
        return range_for(upstream, shift)
    found = find_range(upstream, *(given or _end(shift, side) for given, side in zip(ends, ("from", "to"), strict=True)))
    if found.reversed and not range_for(upstream, shift).reversed:
        raise InputError(f"--from {found.start.text[:60]} is newer than --to {found.end.text[:60]}, unlike the shift; swap them")
    return found


def _end(shift: Row, side: str) -> str:
    image, digest = shift[f"{side}_image_ref"], shift[f"{side}_image_digest"]
    named = f"{image}@{digest}" if image and digest and "@" not in image else image
    return str(named or shift[f"{side}_engine_version"] or shift[f"{side}_build_id"])


def _halving(shift: Row, found: Range) -> Halving:
    try:
        return Halving.of(found)
    except ValueError as error:
        raise InputError(
            f"shift {shift['shift_id']}: {error}: {found.how} Name the ends with --from BUILD and --to BUILD"
        ) from None


def _measured(store: Store, upstream: Upstream, halving: Halving, shift: Row) -> list[Result]:
    """Return what runs of the curve on builds between the ends say, one result a build."""
    live = store.scan("points").filter(pl.col("retraction").is_null() & (pl.col("curve_id") == shift["curve_id"]))
    points, tags = store.collect("points", live.select(COLUMNS)), tag_log(store.read("images"))
    observations = observe(points, (), tags=tags).get(shift["curve_id"], [])
    sides = {side: _side(observations, shift, side) for side in ("from", "to")}
    shares: dict[str, list[float]] = {}
    known: dict[str, list[Observation]] = {}
    for observation in observations:
        share = _share(observation, sides["from"], sides["to"])
        if share is not None and observation.build_id not in (shift["from_build_id"], shift["to_build_id"]):
            shares.setdefault(observation.build_id, []).append(share)
            known.setdefault(observation.build_id, []).append(observation)
    return [_of_runs(upstream, halving, known[build], shares[build]) for build in sorted(shares)]


def _side(observations: Iterable[Observation], shift: Row, side: str) -> Observation | None:
    key = tuple(shift[f"{side}_{name}"] for name in _KEY)
    return next((one for one in observations if tuple(getattr(one, name) for name in _KEY) == key), None)


def _share(one: Observation, old: Observation | None, new: Observation | None) -> float | None:
    """Return where an observation stands between the sides: 0 at the old one, 1 at the new one; None where it cannot be said."""
    if old is None or new is None or one is old or one is new:
        return None
    for metric in (STEADY, REPORTED):
        shared = [load for load in one.cells if load in old.cells and load in new.cells]
        triples = [[side.cells[load].values[metric] for side in (old, one, new)] for load in shared]
        told = [values for values in triples if all(map(math.isfinite, values))]
        whole = median(after - before for before, _own, after in told) if told else 0.0
        if whole:
            return median(own - before for before, own, _after in told) / whole
    return None


def _of_runs(upstream: Upstream, halving: Halving, observations: list[Observation], shares: list[float]) -> Result:
    observation, share = observations[-1], median(shares)
    level = Level.OLD if share <= OLD_BELOW else Level.NEW if share >= NEW_ABOVE else Level.SKIP
    name = observation.image_ref or observation.build_id
    anchor = placed(upstream, observation.image_ref, observation.image_digest, observation.engine_version)
    runs = f"{len(shares)} runs" if len(shares) > 1 else "one run"
    how = f"measured: {runs}, {share:.0%} of the way"
    if not all(one.same_build(observation) for one in observations):
        return Result(name, anchor, None, level, f"{how}; its tag moved in between, so these are two images")
    return _placed(upstream, halving, name, anchor, level, how)


def _given(upstream: Upstream, halving: Halving, given: Iterable[tuple[str, Level]]) -> Iterable[Result]:
    for text, level in given:
        if _DAY.match(text):
            raise InputError(f"--result {text[:60]}: is a date, and no build; give a version, a commit or an image")
        anchor = resolve(upstream, text)
        if anchor.commit is None:
            raise InputError(f"--result {text[:60]}: {anchor.how}")
        result = _placed(upstream, halving, text, anchor, level, "told by --result", trusted=True)
        number = upstream.history.index.get(anchor.commit)
        own = halving.end(number) if number is not None and level is not Level.SKIP else None
        if own is not None and own is not level:
            what = "all" if (own is Level.NEW) != halving.reversed else "none"
            result = replace(result, against=AGAINST_ENDS.format(build=text[:60], what=what))
        yield result


def _placed(
    upstream: Upstream, halving: Halving, build: str, anchor: Anchor, level: Level, how: str, *, trusted: bool = False
) -> Result:
    """Say which candidates a build has; one whose commit is only guessed by a date is shown and parts nothing."""
    if anchor.confidence == "low" and not trusted:
        return Result(build, anchor, None, level, f"{how}; placed by date only, so it parts nothing")
    number = upstream.history.index.get(anchor.commit or "")
    held = halving.held(number) if number is not None else None
    return Result(build, anchor, held, level, how if held is not None else f"{how}; it does not lie between the two builds")


def _ready(store: Store, upstream: Upstream, halving: Halving, shift: Row) -> dict[int, list[str]]:
    """Return, by commit, the images that can be had, run on the shift's accelerator and part the candidates."""
    repositories = {image.repo for side in ("from", "to") if (image := _image_of(shift[f"{side}_image_ref"]))}
    names: set[str] = set(_releases(upstream, shift))
    for table in ("builds", "images"):
        names |= set(store.read(table)["image_ref"].drop_nulls().to_list())
    found: dict[int, list[str]] = {}
    for name in sorted(names - {shift["from_image_ref"], shift["to_image_ref"]}):
        image = _image_of(name)
        if image is None or image.repo not in repositories:
            continue
        anchor = placed(upstream, name, None, None)
        number = upstream.history.index.get(anchor.commit or "") if anchor.confidence in ("medium", "high") else None
        if number is not None and halving.held(number) is not None:
            found.setdefault(number, []).append(name)
    return found


def _releases(upstream: Upstream, shift: Row) -> Iterable[str]:
    """Yield the images of other releases: the shift's own reference with another version in the place of its own."""
    for side in ("from", "to"):
        image = _image_of(shift[f"{side}_image_ref"])
        if image is None or image.version is None or image.tag is None or image.version not in image.tag:
            continue
        for version in upstream.releases["version"].unique().to_list():
            yield f"{image.repo}:{image.tag.replace(image.version, version, 1)}"


def _image_of(reference: str | None) -> ImageReference | None:
    try:
        return parse(reference) if reference else None
    except InputError:
        return None


def _commit(upstream: Upstream, number: int) -> Row:
    row = upstream.history.commits.row(number, named=True)
    return {"commit": row["commit"], "pr": row["pr"], "title": row["title"], "committer_date": iso(row["committer_date"])}


def _next(
    upstream: Upstream,
    halving: Halving,
    left: tuple[int, ...],
    number: int,
    ready: Mapping[int, list[str]],
    shift: Row,
    now: datetime,
) -> Row:
    images, told, landed = ready.get(number, []), _commit(upstream, number), upstream.history.dates[number]
    have = len((halving.held(number) or frozenset()) & set(left))
    return {
        **told,
        "images": images,
        "nightly": [] if images else [_one_nightly(one, told["commit"], landed, now) for one in _series(shift, upstream)],
        "halves": [have, len(left) - have],
    }


def _one_nightly(one: Nightly, commit: str, landed: datetime, now: datetime) -> Row:
    return {"image": one.image(commit, landed), "gone": one.is_gone(landed, now), "kept": one.kept}


def _series(shift: Row, upstream: Upstream) -> tuple[Nightly, ...]:
    vendor = vocabulary.entry("hardware", shift["hardware"]).get("vendor") if shift["hardware"] else None
    return nightlies(upstream.project.name, vendor)


def _nightly(shift: Row, upstream: Upstream) -> str | None:
    """Say how long nightly images are kept, where there are any."""
    series = _series(shift, upstream)
    if not series:
        return None
    kept = max(one.kept for one in series)
    return (
        f"nightly images of {upstream.project.title} exist for the newest {kept} builds only, and one a night, not one a commit"
    )


def _runs_each(shift: Row) -> int:
    """Return how many runs of one build tell its level: twice the error of their mean may be a third of the shift."""
    scale, size = shift["noise_scale"], abs(shift["size"] or 0.0)
    return max(1, math.ceil((6 * scale / size) ** 2)) if scale and size else 1


def _result(result: Result) -> Row:
    return {
        "build": result.build,
        "commit": result.anchor.commit,
        "level": str(result.level),
        "used": result.held is not None,
        "how": result.how,
    }


def _suspects(store: Store, upstream: Upstream, shift: Row, halving: Halving, left: tuple[int, ...]) -> list[Row]:
    """Return the best-ranked changes that are still in the set, each with the commits to run before and after it."""
    links = store.scan("links").filter(pl.col("shift_id") == shift["shift_id"]).sort("rank")
    parents, index = dict(zip(halving.line[1:], halving.line, strict=False)), upstream.history.index
    found = []
    for row in store.collect("links", links).iter_rows(named=True):
        number = index.get(row["commit"] or "")
        if number in left and number in halving.line:
            before = upstream.history.hashes[parents[number]] if number in parents else None
            found.append({"rank": row["rank"], "pr": row["pr"], "title": row["title"], "before": before, "after": row["commit"]})
    return found[:SUSPECTS]
