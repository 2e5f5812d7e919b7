"""What the name of one accelerator says of its vendor and architecture, and for whom.

H200 in a title or a path names NVIDIA and Hopper too, but a shift on an H100 is not meant by it; where it names a foreign vendor
or architecture, that has been said already. So one name counts once, and only for the accelerator that it names.

Belongs here: which topics of a commit are left to weigh. Does not: weighing them (`changelog.scoring`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changelog.facets import IMPLIED, facets
from changelog.matching import Topic

Topics = Mapping[str, Topic]


def fitting(asked: Mapping[str, frozenset[str]], topics: Topics) -> dict[str, Topic]:
    """Return the topics of one commit that may count for a configuration that asks for *asked*, by kind.

    Where only other accelerators than the asked one are named, their names are taken from the asked vendor and architecture; the
    accelerators themselves are left out where a foreign vendor or architecture counts against the commit already.
    """
    named = {name: topic for name, topic in topics.items() if facets()[name].kind == "accelerator"}
    own = asked.get("accelerator", frozenset())
    others = {name: topic for name, topic in named.items() if name not in own}
    if not own or not others:
        return dict(topics)
    implied = frozenset(name for kind in IMPLIED for name in asked.get(kind, ()))
    words, paths = _of_others(named, others)
    left = {name: _less(topic, words, paths) if name in implied else topic for name, topic in topics.items()}
    contrary = [topic for kind in IMPLIED for topic in _contrary(kind, implied, left)]
    left |= {name: Topic() if _words(contrary) else _less(topic, frozenset(), _paths(contrary)) for name, topic in others.items()}
    return {name: topic for name, topic in left.items() if topic.word is not None or topic.paths}


def _contrary(kind: str, implied: frozenset[str], topics: Topics) -> list[Topic]:
    """Return the foreign topics of a kind, but none where the title names the asked one as well."""
    known = {name: topic for name, topic in topics.items() if facets()[name].kind == kind}
    if any(topic.word is not None for name, topic in known.items() if name in implied):
        return []
    return [topic for name, topic in known.items() if name not in implied]


def _of_others(named: Topics, others: Topics) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words and the paths that name only other accelerators: no words where the title names the asked one too."""
    own = [topic for name, topic in named.items() if name not in others]
    return (frozenset() if _words(own) else _words(others.values())), _paths(others.values()) - _paths(own)


def _words(topics: Iterable[Topic]) -> frozenset[str]:
    return frozenset(topic.word for topic in topics if topic.word is not None)


def _paths(topics: Iterable[Topic]) -> frozenset[str]:
    return frozenset(path for topic in topics for path in topic.paths)


def _less(topic: Topic, words: frozenset[str], paths: frozenset[str]) -> Topic:
    return Topic(None if topic.word in words else topic.word, [path for path in topic.paths if path not in paths])
