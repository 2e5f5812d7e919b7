"""How well the words of a change fit the words that a configuration asks for: BM25 over titles, paths and notes.

A word that few candidates have says more than one that all have; that is what the facets' fixed weights cannot tell. It knows
words, not meanings, so it is a guess and a small one. An index is of one range; it is built once for all configurations.

Belongs here: texts to words, and the score. Does not: which words are asked for (`changelog.facets`), what a fit weighs
(`changelog.scoring`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MAX_WORDS = 400
"""Words of one change that count."""
FULL = 12.0
"""Score from which on more words say no more (in real ranges one change in a hundred has 8, the best have 10 to 20)."""
SHOWN = 3
_WORD = re.compile(r"[a-z][a-z0-9]{1,30}")
_NO_WORD = frozenset(
    [
        "py",
        "cpp",
        "cu",
        "cuh",
        "hpp",
        "json",
        "toml",
        "txt",
        "md",
        "init",
        "the",
        "for",
        "and",
        "to",
        "of",
        "in",
        "on",
        "with",
        "from",
        "by",
        "is",
        "as",
        "at",
        "an",
        "or",
        "be",
        "not",
    ]
)
_OPTIONAL = re.compile(r"\[[ _-]+\]\?|[ _-]\?")
_PLAIN = re.compile(r"[a-z0-9 ]{2,40}")


@dataclass(frozen=True)
class Fit:
    """How well one change fits: 0 for no common word, 1 for a score of FULL and more; and the rarest common words."""

    share: float
    words: tuple[str, ...]


class Words:
    """The words of the candidates of one range."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        """*documents*: the words of each candidate (`words_of`)."""
        self.documents = documents

    def fits(self, query: Iterable[str]) -> list[Fit]:
        """Return the fit of every candidate to the words of *query*, in the order of the candidates."""
        asked = self._known(query)
        if not asked:
            return [Fit(0.0, ())] * len(self.documents)
        shares = np.round(np.minimum(self.scores(asked) / FULL, 1.0), 6).tolist()
        wanted = frozenset(asked)
        common = [wanted & own for own in self._sets]
        count = Counter(word for words in common for word in words)
        rarest = {word: place for place, word in enumerate(sorted(asked, key=lambda word: (count[word], word)))}
        return [
            Fit(share, tuple(sorted(words, key=rarest.__getitem__)[:SHOWN])) for share, words in zip(shares, common, strict=True)
        ]

    def scores(self, query: Iterable[str]) -> np.ndarray:
        """Return the BM25 score of every candidate, not below 0."""
        asked = self._known(query)
        if not asked:
            return np.zeros(len(self.documents))
        return np.asarray(self._index.get_scores(asked), dtype=np.float64)

    def _known(self, query: Iterable[str]) -> list[str]:
        return sorted(self._vocabulary & set(query))

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset().union(*self._sets)

    @cached_property
    def _sets(self) -> list[frozenset[str]]:
        return [frozenset(document) for document in self.documents]

    @cached_property
    def _index(self):  # type: ignore[no-untyped-def]
        from bm25s import BM25  # half a second to import, and only ranking needs it

        index = BM25(method="lucene", k1=1.2, b=0.75)
        index.index([list(document) for document in self.documents], show_progress=False)
        return index


def words_of(parts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of several texts, in order: `fused_moe` gives two, `gfx950` one."""
    found = [word for part in parts for word in _WORD.findall(part[:2_000].lower()) if word not in _NO_WORD]
    return tuple(found[:MAX_WORDS])


def plain_words(terms: Iterable[str]) -> frozenset[str]:
    """Return the words of those terms that are no true patterns: `deep-?gemm` → deepgemm, `sliding[ _-]?window` → slidingwindow.

    A term that is several words without such a joint (`kv cache`) gives them all.
    """
    spelled = (_OPTIONAL.sub("", term) for term in terms)
    return frozenset(word for term in spelled if _PLAIN.fullmatch(term) for word in words_of([term]))
