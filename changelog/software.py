"""The answer to `shiftlog build IMAGE…`: what an image reference holds, from where, and how sure that is.

Without any table it is what the grammar reads out of the reference. Belongs here: the shape of the answer (stable: other tools
read it) and its words. Does not: reading a tag (`warehouse.image`), placing it in a history (`changelog.image_ends`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from changelog.anchors import Anchor, at_date, said, sentences
from changelog.image_ends import built_at, carried_version
from changelog.projects import normal_version, projects
from changelog.sightings import Labelled, labelled, tag_log
from changelog.upstream import Upstream, open_upstream
from changelog.versions import resolve
from warehouse.clock import iso
from warehouse.image import ImageReference, parse

Answer = dict[str, Any]
SHOWN = 3
"""Digests that a line of text names."""
_EVIDENCE = ("tag", "anchor", "version-table", "release-note", "upload")
"""What a release is known by, that which tells of its commit first."""
_DATED = {"tag": "git tag", "anchor": "measured", "version-table": "version table", "release-note": "release note"}
_SURE = {
    "high": "sure",
    "medium": "likely",
    "low": "unsure: the version is what it was built on top of, not the release",
    "none": "no version and no commit stands in it",
}
_BASED = "low"
"""Confidence of a version that a build only goes by."""


def told(image: str, tables: Mapping[str, pl.DataFrame] | None = None) -> Answer:
    """Return what *image* holds; *tables*: `commits`, `releases`, `dependencies`, `images`, or nothing.

    Raises InputError where it is not an image reference.
    """
    return told_all([image], tables)[0]


def told_all(images: Iterable[str], tables: Mapping[str, pl.DataFrame] | None = None) -> list[Answer]:
    """Return what each of *images* holds, in their order."""
    known = tables or {}
    opened: dict[str, Upstream] = {}
    answers = []
    for image in map(parse, images):
        if image.engine in projects() and image.engine not in opened:
            opened[image.engine] = open_upstream(image.engine, known)
        answers.append(_answer(image, opened.get(image.engine or ""), known.get("images")))
    return answers


def _answer(image: ImageReference, upstream: Upstream | None, images: pl.DataFrame | None) -> Answer:
    label = labelled(images, image.ref, image.digest) if images is not None else None
    digests = _digests(image, images)
    answer = image.model_dump(exclude={"ref"}) | {"suffixes": list(image.suffixes), "build_id": image.build_id}
    if label is not None:
        answer |= {"version": label.version or image.version, "commit": label.commit or image.commit}
        answer |= {"source": label.source, "confidence": _confidence(image)}
    answer |= dict(zip(("engine_version", "engine_version_source"), _engine_version(image, upstream, label), strict=True))
    return answer | {
        "release": _release(upstream, answer["engine_version"]),
        "main_at": _main_at(image, upstream),
        "place": _place(image, upstream),
        "digests": digests,
        "moved": _moved(digests),
        "labels": _labels(image, images),
    }


def _confidence(image: ImageReference) -> str:
    return "medium" if image.digest is None and image.source == "unknown" else "high"


def _engine_version(image: ImageReference, upstream: Upstream | None, label: Labelled | None) -> tuple[str | None, str | None]:
    """Return the version of the engine and where it is known from: a registry, the tag, the wrapper's support matrix."""
    if label is not None and label.version:
        return label.version, label.source
    if image.version:
        return normal_version(image.version) or image.version, image.source
    carried = carried_version(upstream, image) if upstream else None
    return (carried, f"support matrix of {image.wrapper} {image.wrapper_version}") if carried else (None, None)


def _release(upstream: Upstream | None, version: str | None) -> Answer | None:
    """Return what is known of a release: each value by the best evidence that has it, and when it was first published."""
    if upstream is None or version is None:
        return None
    rows = upstream.releases.filter(pl.col("version") == version).to_dicts()
    rows = sorted((row for row in rows if row["evidence"] in _EVIDENCE), key=lambda row: _EVIDENCE.index(row["evidence"]))
    if not rows:
        return None
    published = [row["published_at"] for row in rows if row["published_at"]]
    return {
        "version": version,
        "published_at": iso(min(published)) if published else None,
        "commit": next((row["commit"] for row in rows if row["commit"]), None),
        "branch_point": next((row["branch_point"] for row in rows if row["branch_point"]), None),
        "evidence": list(dict.fromkeys(row["evidence"] for row in rows)),
    }


def _main_at(image: ImageReference, upstream: Upstream | None) -> Answer | None:
    """Return the main commit that a dated tag was built from by the habit of its project, whether the tag tells one or not."""
    when = built_at(image)
    if when is None or upstream is None:
        return None
    found = at_date(image.image, upstream.history, when, f"main at {said(when)}", "low", image.version)
    landed = iso(found.date) if found.commit else None
    return {"at": iso(when), "commit": found.commit, "committer_date": landed, "how": sentences(found.how)}


def _place(image: ImageReference, upstream: Upstream | None) -> Answer | None:
    """Return where the image lies in its engine's history, as `shiftlog changes` takes it; None where no history is known."""
    if upstream is None or not len(upstream.history):
        return None
    found: Anchor = resolve(upstream, image.ref)
    return {
        "commit": found.commit,
        "date": iso(found.date),
        "how": sentences(found.how),
        "confidence": found.confidence,
    }


def _digests(image: ImageReference, images: pl.DataFrame | None) -> list[Answer]:
    """Return what registries said that the tag stands for, oldest first; a change for each time that it moved."""
    if images is None or image.tag is None:
        return []
    seen = tag_log(images).of_tag(f"{image.repo}:{image.tag}")
    return [{"digest": one.digest, "seen_at": iso(one.seen_at), "is_this": image.digest in one.digests} for one in seen]


def _moved(digests: list[Answer]) -> str | None:
    if len(digests) < 2:
        return None
    shown = " → ".join(f"{one['digest'][:19]}… (seen {one['seen_at']})" for one in digests[-SHOWN:])
    return (
        f"the tag moved {len(digests) - 1} time{'s' if len(digests) > 2 else ''}: {'… → ' if len(digests) > SHOWN else ''}{shown}"
    )


def _labels(image: ImageReference, images: pl.DataFrame | None) -> list[Answer]:
    """Return the labels and variables of the image, of its latest content where its tag moved; each name and value once."""
    if images is None or images.is_empty():
        return []
    if image.digest:
        own = (pl.col("image_digest") == image.digest) | (pl.col("manifest_digest") == image.digest)
    else:
        own = pl.col("image_ref") == image.ref
    rows = images.filter(own.fill_null(False)).sort("seen_at", "image_digest", "platform", nulls_last=True).to_dicts()
    latest = [row for row in rows if row["image_digest"] == rows[-1]["image_digest"]]
    pairs = {(one["name"], one["value"]) for row in latest for one in row["labels"] or ()}
    return [{"name": name, "value": value} for name, value in sorted(pairs)]


def lines(answer: Answer) -> Iterator[str]:
    """Yield an answer in plain words, the reference first."""
    yield answer["image"]
    yield f"  {_what(answer)}; {_SURE[answer['confidence']]} ({answer['source']})"
    if answer["wrapper"]:
        carried = answer["engine_version"]
        what = (
            f"carries {answer['engine']} {carried} ({answer['engine_version_source']})"
            if carried
            else "of an unknown engine version"
        )
        yield f"  {answer['wrapper']} {answer['wrapper_version'] or 'of an unknown version'}, {what}"
    if answer["suffixes"]:
        yield f"  the tag also says: {', '.join(answer['suffixes'])}"
    yield from _release_lines(answer)
    if answer["place"] or answer["main_at"]:  # a dated build's place says the same, and more
        where = answer["place"] or answer["main_at"]
        yield f"  where it stands: {where['how']} How sure: {where.get('confidence', _BASED)}."
    yield from _digest_lines(answer)


def _what(answer: Answer) -> str:
    engine = answer["engine"] or "an unknown engine"
    parts = [answer["version"], f"commit {answer['commit'][:12]}" if answer["commit"] else None]
    day = answer["date"]
    parts.append(f"built {day[:4]}-{day[4:6]}-{day[6:]}" if day else None)
    return " ".join([engine, ", ".join(filter(None, parts))]).strip()


def _release_lines(answer: Answer) -> Iterator[str]:
    release = answer["release"]
    if release is None:
        return
    at = f"published {release['published_at'][:10]}" if release["published_at"] else "not dated"
    commit = release["commit"] or release["branch_point"]
    where = f", {'commit' if release['commit'] else 'branched off at'} {commit[:12]}" if commit else ", its commit is not known"
    which = "built on top of release" if answer["confidence"] == _BASED else "release"
    known = ", ".join(_DATED.get(one, one) for one in release["evidence"])
    yield f"  {which} {release['version']}: {at}{where} (known by {known})"


def _digest_lines(answer: Answer) -> Iterator[str]:
    if answer["moved"]:
        yield f"  {answer['moved']}"
    elif answer["digests"]:
        (one,) = answer["digests"]
        yield f"  the tag stood for {one['digest'][:19]}… when it was first looked at, {one['seen_at']}"
    elif answer["digest"] is None:
        yield "  no digest: what the tag stands for can change"
