"""What speaks for and against one change as the cause of a shift, in words with weights.

Two sorts of evidence, told apart by how their words begin. Facts of the commit: a word in its title that names what the shift
is about, a changed path, a release note, a revert. Guesses, which begin with "guess": what kind of change a word suggests, and
how well its words fit. What speaks against begins with "against". The score is the sum of the weights in `data/facets.toml`; it
orders a reading list and is no probability.

Belongs here: weighing. Does not: matching (`changelog.matching`), the order (`changelog.ranking`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from changelog.breadth import Breadth
from changelog.facets import Configuration, Facet, Nature, asked_facets, exact_title, facets, kin, natures, registry, vendor_of
from changelog.gains import Gain, gains
from changelog.implied import fitting
from changelog.matching import Match, Topic
from changelog.notes import Claim
from changelog.projects import Project
from changelog.similarity import Fit, words_of
from changelog.subjects import Subject, parse_subject

FURTHER_SHARE = 0.5
"""What a second facet of the same kind counts: they are not independent."""
BESIDE_SHARE = 0.3
"""What a path counts beside a title that says the same."""
_NEITHER = re.compile(r"[^\w.]+|_+")
MAX_PATHS = 60
"""Paths of one commit whose words count."""
LEAST_FIT = 0.2
"""A smaller fit is chance."""
ALONE = 2.0
"""By what foreign paths count more where there are no others."""
SHARED_METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "tpot", "intvty": "tpot", "e2el": "e2e", "tput": "throughput"}
"""Words in the names of our metrics, as release notes and titles speak of them."""


class Evidence(NamedTuple):
    """One thing that speaks for or against a commit, and what it weighs."""

    weight: float
    words: str


@dataclass(frozen=True)
class Told:
    """What is told of one commit elsewhere than in it: notes that name it, how it ended, what it takes back."""

    claims: tuple[Claim, ...] = ()
    taken_back: str | None = None
    """What took it back inside the range."""
    taken_back_later: str | None = None
    """What took it back after the range."""
    for_speed: bool = False
    """That change says that it is about speed."""
    takes_back: str | None = None
    """What it takes back, from before the range."""


NOTHING = Told()


@dataclass(frozen=True)
class Commit:
    """One candidate, whatever the range and the configuration: its subject, its paths, what they match and say."""

    subject: Subject
    paths: list[str]
    match: Match
    words: tuple[str, ...] = ()
    gains: tuple[Gain, ...] = ()
    """What its title claims."""
    bare: str = ""
    """Its title's letters and digits."""
    beside: tuple[Evidence, ...] = ()
    """What speaks against it whatever the configuration."""


@dataclass(frozen=True)
class Question:
    """A configuration with what it asks for, worked out once for all candidates."""

    project: Project
    asked: dict[str, frozenset[str]]
    direction: str
    vendor: str | None
    exact: str | None
    exact_bare: str
    metric: str | None = None
    kin: frozenset[str] = frozenset()
    breadth: Breadth = field(default_factory=Breadth)


def question(project: Project, configuration: Configuration, breadth: Breadth | None = None) -> Question:
    """Return what *configuration* asks of the changes of *project*; *breadth*: what else moved with it."""
    exact = exact_title(configuration)
    return Question(
        project,
        asked_facets(configuration),
        configuration.direction or "neutral",
        vendor_of(configuration),
        exact,
        _bare(exact or ""),
        _shared_metric(configuration.metric),
        kin(configuration),
        breadth or Breadth(),
    )


def commit_of(project: Project, title: str, paths: list[str], match: Match) -> Commit:
    """Return a candidate with what can be said of it whatever the range and the configuration."""
    subject = parse_subject(title)
    return Commit(
        subject,
        paths,
        match,
        words_of((subject.title, *paths[:MAX_PATHS])),
        gains(subject.title),
        _bare(subject.title),
        tuple(_beside(project, paths)),
    )


def _shared_metric(metric: str | None) -> str | None:
    words = (metric or "").lower().split("_")
    return next((SHARED_METRICS[word] for word in words if word in SHARED_METRICS), None)


def weigh(asking: Question, commit: Commit, told: Told = NOTHING, fit: Fit | None = None) -> list[Evidence]:
    """Return the evidence of one commit, heaviest first, what speaks against last.

    *told*: what is told of it elsewhere; *fit*: how its words fit.
    """
    subject, match = commit.subject, commit.match
    moved = _dependency(asking, subject)
    found = [
        *_topics(asking, match, bool(moved)),
        *moved,
        *_exact_model(asking, commit.bare),
        *_natures(asking, match),
        *_claimed(asking, commit.gains),
        *_noted(asking, told),
        *_reverts(asking, subject, told),
        *_words(fit),
        *(() if moved else commit.beside),
    ]
    return sorted(found, key=lambda piece: (-piece.weight, piece.words))


def moves_dependency(subject: Subject) -> bool:
    """Say whether a subject line moves a library whose kernels or schedules a token passes through."""
    named = subject.dependency
    return named is not None and any(named in entry["words"] for entry in registry()["dependency"].values())


def _topics(asking: Question, match: Match, moved: bool) -> Iterator[Evidence]:
    """Weigh kind by kind: own facets count, the second one less; foreign ones once, where no own facet is as plainly there."""
    topics = fitting(asking.asked, match.topics)
    kinds: dict[str, list[str]] = {}
    for name in _exact(topics):
        kinds.setdefault(_group(name), []).append(name)
    for kind, names in kinds.items():
        if kind in asking.asked and not (moved and kind == "elsewhere"):  # a dependency is moved in files about packaging
            yield from _kind(asking, asking.asked[kind], names, topics, match.paths)
        elif kind.startswith("mode ") and topics[names[0]].word is not None:
            named = f"{facets()[names[0]].label} (“{topics[names[0]].word}”)"
            words = f"against: title names {named}, which the shift does not speak of"
            yield Evidence(registry()["further"]["unsaid_mode"], words)


def _kind(asking: Question, asked: frozenset[str], names: list[str], topics: dict[str, Topic], paths: int) -> Iterator[Evidence]:
    known = facets()
    own = sorted(
        ((_own(known[name], topics[name], paths, name in asking.kin), name) for name in names if name in asked), reverse=True
    )
    for share, (piece, name) in zip((1.0, FURTHER_SHARE), own, strict=False):
        yield Evidence(piece.weight * share, piece.words)
        factor = asking.breadth.factor(name)
        if factor != 1.0:
            weight = piece.weight * share * (factor - 1.0)
            yield Evidence(weight, f"{_against(weight)}{asking.breadth.words(name)}")
    if not any(name in asked and topics[name].word is not None for name in names):
        foreign = [name for name in names if name not in asked]
        alone = not own and len({path for name in foreign for path in topics[name].paths}) == paths > 0
        yield from _heaviest(piece for name in foreign for piece in _foreign(known[name], topics[name], paths, bool(own), alone))


def _exact(topics: dict[str, Topic]) -> list[str]:
    """Return the names of *topics* but those that another of them says more exactly, and in the title where they do."""
    return [name for name in topics if not any(_says(topics, name, more) for more in facets()[name].entry.get("within", ()))]


def _says(topics: dict[str, Topic], name: str, more: str) -> bool:
    return more in topics and (topics[name].word is None or topics[more].word is not None)


def _heaviest(pieces: Iterable[Evidence]) -> list[Evidence]:
    heaviest = min(pieces, default=None)
    return [heaviest] if heaviest is not None and heaviest.weight else []


def _group(name: str) -> str:
    """Modes are asked for one by one, all other facets by their kind."""
    kind = facets()[name].kind
    return f"mode {name}" if kind == "mode" else kind


def _own(facet: Facet, topic: Topic, paths: int, kin: bool) -> Evidence:
    weights = registry()["weight"][facet.kind]
    share = facet.entry.get("share", 1.0) * (registry()["further"]["kin"] if kin else 1.0)
    by_title = weights["title"] * share
    by_path = weights["path"] * share * (FURTHER_SHARE if paths >= registry()["further"]["many_topics"] else 1.0)
    if topic.word is None:
        return Evidence(by_path, f"changes code for {facet.label}: {_some(topic.paths)}")
    if not topic.paths:
        return Evidence(by_title, f"title names {facet.label} (“{topic.word}”)")
    return Evidence(
        by_title + by_path * BESIDE_SHARE, f"title names {facet.label} (“{topic.word}”) and changes {_some(topic.paths)}"
    )


def _foreign(facet: Facet, topic: Topic, paths: int, own: bool, alone: bool) -> Iterator[Evidence]:
    """A foreign word in the title counts against; foreign paths where they are at least half of all and no path is of *own*.

    They count twice where all paths of the commit are foreign (*alone*): the shift runs none of it.
    """
    weights = registry()["weight"][facet.kind]
    if topic.word is not None:
        words = f"against: title names {facet.label} (“{topic.word}”), which the shift is not about"
        yield Evidence(weights["foreign_title"], words)
    if alone and topic.paths:
        words = f"against: changes only code for {facet.label}, which the shift is not about: {_some(topic.paths)}"
        yield Evidence(weights["foreign_path"] * ALONE, words)
    elif topic.word is None and not own and 2 * len(topic.paths) >= paths:
        words = f"against: changes code for {facet.label}, which the shift is not about: {_some(topic.paths)}"
        yield Evidence(weights["foreign_path"], words)


def _natures(asking: Question, match: Match) -> Iterator[Evidence]:
    for name in {**match.natures, **match.places}:
        nature, word, places = _nature(name), match.natures.get(name), match.places.get(name)
        if (word is None and not places) or any(other in match.natures for other in nature.unless):
            continue
        weight = nature.weights[asking.direction]
        if word is not None and weight:
            yield Evidence(weight, f"{_guess(weight)}title {nature.words} (“{word}”)")
        elif places and weight:
            yield Evidence(weight, f"{_against(weight)}{nature.words}: {_some(places)}")


@cache
def _nature(name: str) -> Nature:
    return next(nature for nature in natures() if nature.name == name)


def _guess(weight: float) -> str:
    return "against (guess): " if weight < 0 else "guess: "


def _against(weight: float) -> str:
    return "against: " if weight < 0 else ""


def _claimed(asking: Question, claimed: tuple[Gain, ...]) -> list[Evidence]:
    """The title itself claims a measured gain: of serving it counts whole, of a part of the work half."""
    weight = registry()["further"]["claim"][asking.direction]
    told = [gain for gain in claimed if gain.better and gain.metric != "memory"]
    if not told or not weight:
        return []
    best = max(told, key=lambda gain: (_meets(asking, gain), gain.high_pct))
    return [Evidence(weight * _meets(asking, best), f"title claims {_gain_words(best)}")]


def _meets(asking: Question, gain: Gain) -> float:
    """Return how well a claimed gain meets the metric that moved: 1, or half where it is another or of a part of the work."""
    other = gain.metric in ("ttft", "tpot") and asking.metric in ("ttft", "tpot") and gain.metric != asking.metric
    return FURTHER_SHARE if gain.of_part or other else 1.0


def _gain_words(gain: Gain) -> str:
    of = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end", None: "speed"}.get(gain.metric, str(gain.metric))
    return f"{abs(gain.high_pct):g} % ({of}{', of a part of the work' if gain.of_part else ''})"


def _noted(asking: Question, told: Told) -> Iterator[Evidence]:
    """What release notes say of the pull request; that no note names it counts for nothing."""
    if not told.claims:
        return
    further = registry()["further"]
    yield max(_note(asking, claim) for claim in told.claims)
    broken = [claim for claim in told.claims if claim.item.breaking]
    if broken and further["breaks"][asking.direction]:
        words = f"the notes of {broken[0].version} say that it breaks something"
        yield Evidence(further["breaks"][asking.direction], words)


def _note(asking: Question, claim: Claim) -> Evidence:
    weights = registry()["further"]["note"]
    where = f" under {claim.item.section}" if claim.item.section else ""
    named = f"the notes of {claim.version} name it{where}"
    fit = [gain for gain in claim.item.gains if gain.better == (asking.direction != "regression") and gain.metric != "memory"]
    if not fit or asking.direction == "neutral":
        return Evidence(weights["named"], named)
    best = max(fit, key=lambda gain: (_meets(asking, gain), abs(gain.high_pct)))
    return Evidence(max(weights["named"], weights["same"] * _meets(asking, best)), f"{named} and claim {_gain_words(best)}")


def _words(fit: Fit | None) -> list[Evidence]:
    if fit is None or fit.share < LEAST_FIT:
        return []
    return [Evidence(registry()["further"]["words"] * fit.share, f"guess: its words fit: {', '.join(fit.words)}")]


def _dependency(asking: Question, subject: Subject) -> list[Evidence]:
    """A library whose kernels run moved; one of another vendor says nothing here (its name counts against already)."""
    for entry in registry()["dependency"].values() if subject.dependency is not None else ():
        if subject.dependency in entry["words"] and entry.get("vendor") in (None, asking.vendor or entry.get("vendor")):
            words = f"moves {subject.dependency} to {subject.dependency_version}, whose kernels the engine runs"
            return [Evidence(registry()["further"]["dependency"][asking.direction], words)]
    return []


def _exact_model(asking: Question, bare: str) -> list[Evidence]:
    wanted = asking.exact_bare
    if not wanted or wanted not in bare:
        return []
    return [Evidence(registry()["further"]["exact_model"], f"title names the very model ({asking.exact})")]


def _bare(text: str) -> str:
    """Return letters, digits and points only, so that MiniMax-M2.5, minimax m2.5 and MiniMax_M2.5 are one name."""
    return _NEITHER.sub("", text.lower())


def _reverts(asking: Question, subject: Subject, told: Told) -> Iterator[Evidence]:
    """A change and its revert inside one range cancel out; one that upstream took back later was a fault of the later build."""
    further = registry()["further"]
    if told.taken_back:
        yield Evidence(further["taken_back"], f"against: taken back inside the range by {told.taken_back}")
    elif told.taken_back_later:
        weight = further["taken_back_later" if told.for_speed else "taken_back_unsaid"][asking.direction]
        why = ", which says that it is about speed" if told.for_speed else ""
        yield Evidence(weight, f"{_against(weight)}taken back later by {told.taken_back_later}{why}")
    if subject.revert or told.takes_back:
        named = told.takes_back or (f"#{subject.reverts}" if subject.reverts else "an earlier change")
        yield Evidence(further["revert"][asking.direction], f"takes back {named}")


def _beside(project: Project, paths: list[str]) -> list[Evidence]:
    """Say where a commit cannot change what a server runs: all its paths are tests, documents, CI, or another program."""
    further = registry()["further"]
    if not paths:
        return []
    if all(_is_offline(project, path) for path in paths):
        words = f"against: touches only tests, documentation, CI or benchmarks: {_some(paths)}"
        return [Evidence(further["offline_only"], words)]
    if all(_is_offline(project, path) or path.startswith(project.outside) for path in paths):
        return [Evidence(further["outside_only"], f"against: touches only what lies outside the LLM engine: {_some(paths)}")]
    return []


def _is_offline(project: Project, path: str) -> bool:
    return path.startswith((*project.offline, ".")) or path.lower().endswith((".md", ".rst", ".ipynb"))


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"
