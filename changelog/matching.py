"""Which terms stand in many titles and paths: every facet over a whole column, in an engine that cannot backtrack.

Belongs here: terms to patterns and columns to matches. Does not: what a match is worth (`changelog.scoring`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from changelog.facets import IMPLIED, Facet, accelerator_terms, facets, natures

_BORDER = r"[\x00-/:-`{-\x7f]"
"""ASCII but for lower-case letters and digits."""
_TITLE, _GENERAL = "title of the commit", "title but for names of accelerators"
"""Columns beside those of the facets and natures, whose names are single words."""


@dataclass
class Topic:
    """What one commit says of one facet: the matching word of its title, where there is one, and its matching paths."""

    word: str | None = None
    paths: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Match:
    """What one commit says: facets by name, natures with the title's word, how many of its paths a running server may execute."""

    topics: dict[str, Topic]
    natures: dict[str, str]
    paths: int
    places: dict[str, list[str]] = field(default_factory=dict)
    """Natures with the paths that say so."""


def pattern(terms: Iterable[str]) -> str:
    r"""Return one pattern that finds any of *terms* as a whole word, which is its first group; for text of `_spelled`.

    All classes are of ASCII: Unicode ones make the automaton many times larger, and the text has nothing beyond.
    """
    joined = "|".join(terms).replace(r"\w", "[a-z0-9_]").replace(r"\d", "[0-9]").replace(r"\S", "[!-~]")
    return rf"(?:^|{_BORDER})({joined})(?:$|{_BORDER})"


def _spelled(name: str, texts: Sequence[str]) -> pl.DataFrame:
    """Return *texts* in lower case, what is not ASCII as spaces, as a frame of one column."""
    lower = pl.Series(name, texts, pl.String).str.to_lowercase()
    return lower.str.replace_all(r"[^\x00-\x7f]", " ").to_frame()


def match(titles: Sequence[str], paths: Sequence[Sequence[str]], beside: Sequence[str]) -> list[Match]:
    """Match all facets and natures against *titles* and *paths* (one list a commit) but those that begin with one of *beside*."""
    product = [[path for path in own if not path.startswith(tuple(beside))] for own in paths]
    found = [Match({}, {}, len(own)) for own in product]
    words = _words(titles)
    for name in facets():
        for place, word in _hits(words[name]):
            found[place].topics.setdefault(name, Topic()).word = word
    for nature in natures():
        for place, word in _hits(words[nature.name]) if nature.terms else ():
            found[place].natures[nature.name] = word
    _add_paths(found, product)
    return found


def _words(titles: Sequence[str]) -> pl.DataFrame:
    """Return a column a facet or nature: the word that matched in each title, or null. A number such as #5090 is no word.

    A second look at the few titles that match takes exceptions back; it costs a fraction of looking at all of them so.
    """
    title = pl.col(_TITLE)
    spelled = _spelled(_TITLE, titles).with_columns(title.str.replace_all("#[0-9]+", "#"))
    terms = {name: facet.title for name, facet in facets().items()} | {one.name: one.terms for one in natures() if one.terms}
    words = spelled.with_columns(title.str.extract(pattern(own), 1).alias(name) for name, own in terms.items())
    named = title.str.contains(pattern(accelerator_terms()))
    general = _without(pl.when(named).then(title), accelerator_terms())
    words = words.with_columns(pl.coalesce(general, title).alias(_GENERAL))
    return words.with_columns(_again(facet) for facet in facets().values() if facet.unless or facet.kind in IMPLIED)


def _again(facet: Facet) -> pl.Expr:
    """Find a facet's word without its exceptions; vendor and architecture by own words before the name of an accelerator."""
    hit = pl.when(pl.col(facet.name).is_not_null())
    columns = (_GENERAL, _TITLE) if facet.kind in IMPLIED else (_TITLE,)
    texts = [_without(hit.then(pl.col(column)), facet.unless) for column in columns]
    word = pl.coalesce(text.str.extract(pattern(facet.title), 1) for text in texts)
    return word.alias(facet.name)


def _without(text: pl.Expr, terms: Sequence[str]) -> pl.Expr:
    """Blank *terms* out, so that only other words count."""
    for _ in range(2 if terms else 0):  # twice: neighbours share a border
        text = text.str.replace_all(pattern(terms), " ")
    return text


def _hits(words: pl.Series) -> list[tuple[int, str]]:
    return [(place, word) for place, word in enumerate(words.to_list()) if word is not None]


def _add_paths(found: list[Match], product: Sequence[Sequence[str]]) -> None:
    """Add the matching paths of every facet and nature; each distinct path is looked at once."""
    owners: dict[str, list[int]] = {}
    for place, own in enumerate(product):
        for path in own:
            owners.setdefault(path, []).append(place)
    paths = list(owners)
    about = _about(paths)
    names = about.columns
    columns, rows = np.nonzero(about.to_numpy().T)
    for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
        name, path = names[column], paths[row]
        for place in owners[path]:
            if name in facets():
                found[place].topics.setdefault(name, Topic()).paths.append(path)
            else:
                found[place].places.setdefault(name, []).append(path)


def _about(paths: list[str]) -> pl.DataFrame:
    """Return a column a facet or nature: which paths are about it, but for its exceptions."""
    path = pl.col("path")
    terms = {name: facet.paths for name, facet in facets().items()} | {one.name: one.paths for one in natures() if one.paths}
    about = _spelled("path", paths).with_columns(path.str.contains(pattern(own)).alias(name) for name, own in terms.items())
    return about.with_columns(
        (pl.col(name) & ~pl.when(pl.col(name)).then(path).str.contains(pattern(facet.unless)).fill_null(False)).alias(name)
        for name, facet in facets().items()
        if facet.unless
    ).drop("path")
