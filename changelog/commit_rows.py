"""The rows of `commits`: facts about one commit told twice are one row, and each says what kind of change it is.

A kind is read from words alone (the subject's tags, its prefix, its first words) and from which files were changed; it helps to
count and to filter, and is no judgement. Belongs here: that, as expressions over a frame. Does not: the grammar of reverts
(`changelog.reverting`), what a change may have done to a benchmark (`changelog.facets`).
"""

from __future__ import annotations

import polars as pl

from changelog.messages import picked_request
from changelog.reverting import HINT
from changelog.subjects import parse_subject

KEYS = ("project", "commit")
KINDS = ("revert", "reapply", "docs", "ci", "test", "dependency", "fix", "perf", "feature", "refactor", "other")
_LISTS = ("parents", "paths")
_SINGLE = ("pr", "reverts", "picked_from", "reverts_pr", "picked_pr")

_LEAD = r"^((?:\s*\[[^\[\]]{1,80}\]:?)*\s*(?:[A-Za-z][A-Za-z_-]{0,20}(?:\([^()]{1,60}\))?!?:(?:\s|$))?)"
"""Tags and the conventional prefix at the head of a subject."""
_PATHS = (
    ("docs", r"^docs?(?:_new)?/|\.(?:md|rst)$"),
    ("ci", r"^\.(?:github|buildkite|circleci|gitlab)/|^jenkins/|(?:^|/)ci/|^\.[a-z-]+\.ya?ml$"),
    ("test", r"^(?:op_)?tests?/|/tests?/|(?:^|/)test_[^/]*\.py$"),
)
"""A change to such files alone is of that kind, whatever its subject says."""
_HEADS = (
    ("docs", r"\bdocs?\b|documentation|readme"),
    ("ci", r"\bci\b|\binfra\b|\bbuild\b|\bcd\b"),
    ("test", r"\btests?\b|\btesting\b|unit ?tests?"),
    ("fix", r"bug ?-?fix|hot ?-?fix|\bfix(?:es|ed|up)?\b|\bbugs?\b"),
    ("perf", r"\bperf\b|performance|\bopt\b|optimi[sz]"),
    ("feature", r"\bfeat(?:ure)?s?\b"),
    ("refactor", r"refactor|clean ?-?up|\bstyle\b"),
)
_WORDS = (
    ("fix", r"^\W*(?:hot|bug)?fix(?:es|ed|ing)?\b|\bbug ?fix\b|\bfix(?:es|ed)? "),
    ("perf", r"speed ?-?up|optimi[sz]|\bfaster\b|\bfuse[sd]?\b|performance|\bperf\b|throughput|latency"),
    ("docs", r"^\W*(?:update |add |improve )?(?:the )?(?:docs?\b|documentation|readme)"),
    ("test", r"^\W*(?:add |update |enable |skip |disable )?(?:\S+ )?(?:unit )?tests?\b"),
    ("refactor", r"refactor|clean ?-?up|simplif|\brenam|^\W*(?:remove|deprecate|move|rename|unify|delete)\b"),
    ("feature", r"^\W*(?:add|support|enable|implement|introduce|allow)\b|\bsupport(?:s|ed)?\b"),
)


def commit_rows(facts: pl.DataFrame) -> pl.DataFrame:
    """Return one row a commit, with its `kind`, of facts as their payloads tell them."""
    rows = _merged(facts)
    return _with_kinds(_with_acts(rows))


def _merged(facts: pl.DataFrame) -> pl.DataFrame:
    """Return one row a commit, whatever the order: what one fact does not tell (a file without messages, a shallow clone) the
    other does; where both tell, the one that tells more counts, then the greater text."""
    again = pl.struct(KEYS).is_duplicated()
    twice = facts.filter(again)
    if twice.is_empty():
        return facts
    told = sum((pl.col(name).is_not_null().cast(pl.Int64) for name in _SINGLE), start=pl.col("parents").list.len().cast(pl.Int64))
    weight = told + pl.col("paths").list.len().cast(pl.Int64) + pl.col("paths_omitted")
    texts = [pl.col(name).list.join("\n") for name in _LISTS]
    ordered = twice.sort(weight, "title", "author_date", "committer_date", *texts, *_SINGLE, nulls_last=False)
    lists = [pl.when(pl.col(name).list.len() > 0).then(pl.col(name)).alias(name) for name in _LISTS]
    omitted = pl.when(pl.col("paths").list.len() > 0).then("paths_omitted").alias("paths_omitted")
    others = [pl.col(name).drop_nulls().last() for name in facts.columns if name not in (*KEYS, "recorded_at")]
    one = ordered.with_columns(*lists, omitted).group_by(KEYS, maintain_order=True).agg(*others, pl.col("recorded_at").min())
    filled = one.with_columns(*(pl.col(name).fill_null([]) for name in _LISTS), pl.col("paths_omitted").fill_null(0))
    return pl.concat([facts.filter(~again), filled.select(facts.columns)])


def _with_acts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* with what their subjects say of other pull requests, and `act` and `moves` (see `_act`). Few say anything."""
    placed = rows.with_row_index("place")
    saying = placed.select("place", "title").filter(pl.col("title").str.contains(_SAYS))
    schema = {"place": pl.UInt32, "act": pl.String, "moves": pl.String, "takes": pl.Int64, "picks": pl.Int64}
    acts = pl.DataFrame([(place, *_act(title)) for place, title in saying.iter_rows()], schema=schema, orient="row")
    joined = placed.join(acts, on="place", how="left", maintain_order="left")
    told = pl.when(pl.any_horizontal(pl.col("reverts", "reverts_pr").is_not_null())).then(pl.lit("revert"))
    return joined.with_columns(
        reverts_pr=pl.coalesce("reverts_pr", "takes"),
        picked_pr=pl.coalesce("picked_pr", "picks"),
        act=pl.coalesce("act", told),
    ).drop("place", "takes", "picks")


_SAYS = HINT + r"|cherry|(?:bump|upgrad|updat|\bpin|\bmove)[^\n]*\d\.\d"


def _act(title: str) -> tuple[str | None, str | None, int | None, int | None]:
    """Return revert or reapply, `dependency` where a subject moves one, and the pull requests that it takes back and picks."""
    subject = parse_subject(title)
    act = "revert" if subject.revert else "reapply" if subject.reapply else None
    return act, "dependency" if subject.dependency else None, subject.reverts, picked_request(title)


def _with_kinds(rows: pl.DataFrame) -> pl.DataFrame:
    lead = pl.col("title").str.extract(_LEAD).str.to_lowercase().str.replace_all("_", " ", literal=True)
    rest = pl.col("title").str.replace(_LEAD, "").str.to_lowercase()
    whole = (pl.col("paths").list.len() > 0) & (pl.col("paths_omitted") == 0)
    read = rows.with_columns(lead=lead, rest=rest, whole=whole)
    chosen = pl.coalesce(
        "act",
        *(pl.when(pl.col("whole") & _all(pattern)).then(pl.lit(kind)) for kind, pattern in _PATHS),
        "moves",
        *(pl.when(pl.col("lead").str.contains(pattern)).then(pl.lit(kind)) for kind, pattern in _HEADS),
        *(pl.when(pl.col("rest").str.contains(pattern)).then(pl.lit(kind)) for kind, pattern in _WORDS),
        pl.lit("other"),
    )
    return read.with_columns(kind=chosen).drop("act", "moves", "lead", "rest", "whole")


def _all(pattern: str) -> pl.Expr:
    return pl.col("paths").list.eval(pl.element().str.contains(pattern)).list.all()
