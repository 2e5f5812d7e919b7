"""Which terms stand in many titles and paths: every facet over a whole column, in an engine that cannot backtrack.

Belongs here: terms to patterns and columns to matches. Does not: what a match is worth (`changelog.scoring`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from changelog.facets import IMPLIED, Facet, accelerator_terms, facets, natures


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


def pattern(terms: Iterable[str]) -> str:
    r"""Return one pattern that finds any of *terms* as a whole word, which is its first group; `\w` and `\d` are ASCII.

    The columns are in lower case; Unicode classes would make the automaton twenty times larger for no gain.
    """
    joined = "|".join(terms).replace(r"\w", "[a-z0-9_]").replace(r"\d", "[0-9]")
    return rf"(?:^|[^a-z0-9])({joined})(?:$|[^a-z0-9])"


def match(titles: Sequence[str], paths: Sequence[Sequence[str]], beside: Sequence[str]) -> list[Match]:
    """Match all facets and natures against *titles* and *paths* (one list a commit) but those that begin with one of *beside*."""
    product = [[path for path in own if not path.startswith(tuple(beside))] for own in paths]
    found = [Match({}, {}, len(own)) for own in product]
    words = _words(titles)
    for name in facets():
        for place, word in _hits(words, name):
            found[place].topics.setdefault(name, Topic()).word = word
    for nature in natures():
        for place, word in _hits(words, nature.name):
            found[place].natures[nature.name] = word
    _add_paths(found, product)
    return found


def _words(titles: Sequence[str]) -> pl.DataFrame:
    """Return a column a facet or nature: the word that matched in each title, or null. A number such as #5090 is no word."""
    frame = pl.DataFrame({"title": list(titles)}, schema={"title": pl.String}).lazy()
    plain = frame.with_columns(pl.col("title").str.to_lowercase().str.replace_all("#[0-9]+", "#"))
    spelled = plain.with_columns(_without(pl.col("title"), accelerator_terms()).alias("general"))
    wanted = [_facet_word(facet) for facet in facets().values()]
    wanted += [_word(pl.col("title"), nature.terms).alias(nature.name) for nature in natures()]
    return spelled.select(wanted).collect()


def _facet_word(facet: Facet) -> pl.Expr:
    """Find the word that names a facet; vendor and architecture by their own words before the name of one accelerator."""
    word = _word(_without(pl.col("title"), facet.unless), facet.title)
    if facet.kind in IMPLIED:
        word = pl.coalesce(_word(pl.col("general"), facet.title), word)
    return word.alias(facet.name)


def _word(column: pl.Expr, terms: Sequence[str]) -> pl.Expr:
    found = column.str.contains(pattern(terms))
    return pl.when(found).then(pl.when(found).then(column).str.extract(pattern(terms), 1))


def _without(column: pl.Expr, terms: Sequence[str]) -> pl.Expr:
    """Blank *terms* out, so that only other words count."""
    for _ in range(2 if terms else 0):  # twice: neighbours share a border
        column = column.str.replace_all(pattern(terms), " ")
    return column


def _hits(words: pl.DataFrame, name: str) -> list[tuple[int, str]]:
    column = words[name]
    places = column.is_not_null().arg_true()
    return list(zip(places.to_list(), column.gather(places).to_list(), strict=True))


def _add_paths(found: list[Match], product: Sequence[Sequence[str]]) -> None:
    """Add the matching paths of every facet; each distinct path is looked at once."""
    owners: dict[str, list[int]] = {}
    for place, own in enumerate(product):
        for path in own:
            owners.setdefault(path, []).append(place)
    frame = pl.DataFrame({"path": list(owners)}, schema={"path": pl.String}).lazy()
    hits = frame.select("path", *(_is_about(name, facet.paths, facet.unless) for name, facet in facets().items())).collect()
    for name in facets():
        for path in hits.filter(pl.col(name))["path"].to_list():
            for place in owners[path]:
                found[place].topics.setdefault(name, Topic()).paths.append(path)


def _is_about(name: str, terms: Sequence[str], unless: Sequence[str]) -> pl.Expr:
    column = pl.col("path").str.to_lowercase()
    about = column.str.contains(pattern(terms))
    return (about & ~column.str.contains(pattern(unless)) if unless else about).alias(name)
