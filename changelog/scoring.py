"""What speaks for and against one change as the cause of a shift, in words with weights.

Every piece of evidence is a fact of the commit: a word in its title, a changed path, what its subject says it is. The score is
the sum of the weights in `data/facets.toml`; it orders a reading list and is no probability.

Belongs here: weighing. Does not: matching (`changelog.matching`), the order (`changelog.ranking`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from changelog.facets import Configuration, Facet, asked_facets, exact_title, facets, natures, registry, vendor_of
from changelog.implied import fitting
from changelog.matching import Match, Topic
from changelog.projects import Project
from changelog.subjects import Subject

FURTHER_SHARE = 0.5
"""What a second facet of the same kind counts, and a path beside its title: they are not independent."""


class Evidence(NamedTuple):
    """One fact of a commit and what it weighs."""

    weight: float
    words: str


@dataclass(frozen=True)
class Question:
    """A configuration with what it asks for, worked out once for all candidates."""

    project: Project
    asked: dict[str, frozenset[str]]
    direction: str
    vendor: str | None
    exact: str | None


def question(project: Project, configuration: Configuration) -> Question:
    """Return what *configuration* asks of the changes of *project*."""
    direction = configuration.direction or "neutral"
    return Question(project, asked_facets(configuration), direction, vendor_of(configuration), exact_title(configuration))


def weigh(asking: Question, subject: Subject, paths: list[str], match: Match) -> list[Evidence]:
    """Return the evidence of one commit, heaviest first, what speaks against last."""
    moved = _dependency(asking, subject)
    found = [
        *_topics(asking, match, bool(moved)),
        *moved,
        *_exact_model(asking, subject),
        *_natures(asking, match),
        *_revert(asking, subject),
        *([] if moved else _beside(asking, paths)),
    ]
    return sorted(found, key=lambda piece: (-piece.weight, piece.words))


def _topics(asking: Question, match: Match, moved: bool) -> Iterator[Evidence]:
    """Weigh kind by kind: own facets count, the second one less; foreign ones once, where no own facet is as plainly there."""
    topics = fitting(asking.asked, match.topics)
    kinds: dict[str, list[str]] = {}
    for name in topics:
        kinds.setdefault(_group(name), []).append(name)
    for kind, names in kinds.items():
        if kind in asking.asked and not (moved and kind == "elsewhere"):  # a dependency is moved in files about packaging
            yield from _kind(asking.asked[kind], names, topics, match.paths)


def _kind(asked: frozenset[str], names: list[str], topics: dict[str, Topic], paths: int) -> Iterator[Evidence]:
    known = facets()
    own = sorted((_own(known[name], topics[name], paths) for name in names if name in asked), reverse=True)
    yield from own[:1]
    yield from (Evidence(piece.weight * FURTHER_SHARE, piece.words) for piece in own[1:2])
    if not any(name in asked and topics[name].word is not None for name in names):
        foreign = [name for name in names if name not in asked]
        yield from _heaviest(piece for name in foreign for piece in _foreign(known[name], topics[name], paths, bool(own)))


def _heaviest(pieces: Iterable[Evidence]) -> list[Evidence]:
    heaviest = min(pieces, default=None)
    return [heaviest] if heaviest is not None and heaviest.weight else []


def _group(name: str) -> str:
    """Modes are asked for one by one, all other facets by their kind."""
    kind = facets()[name].kind
    return f"mode {name}" if kind == "mode" else kind


def _own(facet: Facet, topic: Topic, paths: int) -> Evidence:
    weights = registry()["weight"][facet.kind]
    by_path = weights["path"] * (FURTHER_SHARE if paths >= registry()["further"]["many_topics"] else 1.0)
    if topic.word is None:
        return Evidence(by_path, f"changes code for {facet.label}: {_some(topic.paths)}")
    if not topic.paths:
        return Evidence(weights["title"], f"title names {facet.label} (“{topic.word}”)")
    return Evidence(
        weights["title"] + by_path * FURTHER_SHARE, f"title names {facet.label} (“{topic.word}”) and changes {_some(topic.paths)}"
    )


def _foreign(facet: Facet, topic: Topic, paths: int, own: bool) -> Iterator[Evidence]:
    """A foreign word in the title counts against; foreign paths where they are at least half of all and no path is of *own*."""
    weights = registry()["weight"][facet.kind]
    if topic.word is not None:
        words = f"against: title names {facet.label} (“{topic.word}”), which the shift is not about"
        yield Evidence(weights["foreign_title"], words)
    elif not own and 2 * len(topic.paths) >= paths:
        words = f"against: changes code for {facet.label}, which the shift is not about: {_some(topic.paths)}"
        yield Evidence(weights["foreign_path"], words)


def _natures(asking: Question, match: Match) -> Iterator[Evidence]:
    for nature in natures():
        word = match.natures.get(nature.name)
        weight = nature.weights[asking.direction]
        if word is not None and weight:
            against = "against: " if weight < 0 else ""
            yield Evidence(weight, f"{against}title {nature.words} (“{word}”)")


def _dependency(asking: Question, subject: Subject) -> list[Evidence]:
    """A library whose kernels run moved; one of another vendor says nothing here (its name counts against already)."""
    for entry in registry()["dependency"].values():
        if subject.dependency in entry["words"] and entry.get("vendor") in (None, asking.vendor or entry.get("vendor")):
            words = f"moves {subject.dependency} to {subject.dependency_version}, whose kernels the engine runs"
            return [Evidence(registry()["further"]["dependency"][asking.direction], words)]
    return []


def _exact_model(asking: Question, subject: Subject) -> list[Evidence]:
    wanted = _bare(asking.exact or "")
    if not wanted or wanted not in _bare(subject.title):
        return []
    return [Evidence(registry()["further"]["exact_model"], f"title names the very model ({asking.exact})")]


def _bare(text: str) -> str:
    """Return letters, digits and points only, so that MiniMax-M2.5, minimax m2.5 and MiniMax_M2.5 are one name."""
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter == ".")


def _revert(asking: Question, subject: Subject) -> list[Evidence]:
    if not subject.revert:
        return []
    what = f"#{subject.reverts}" if subject.reverts else "an earlier change"
    return [Evidence(registry()["further"]["revert"][asking.direction], f"takes back {what}")]


def _beside(asking: Question, paths: list[str]) -> list[Evidence]:
    """Say where a commit cannot change what a server runs: all its paths are tests, documents, CI, or another program."""
    further = registry()["further"]
    if not paths:
        return []
    if all(_is_offline(asking.project, path) for path in paths):
        words = f"against: touches only tests, documentation, CI or benchmarks: {_some(paths)}"
        return [Evidence(further["offline_only"], words)]
    if all(_is_offline(asking.project, path) or path.startswith(asking.project.outside) for path in paths):
        return [Evidence(further["outside_only"], f"against: touches only what lies outside the LLM engine: {_some(paths)}")]
    return []


def _is_offline(project: Project, path: str) -> bool:
    return path.startswith((*project.offline, ".")) or path.lower().endswith((".md", ".rst", ".ipynb"))


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"
