"""The tables `commits`, `releases`, `notes`, `dependencies`, `images`, `rates`, `jobs` and `recipes`, folded from the event log.

Belongs here: events of upstream facts to frames of exact schema. Does not: reading sources, asking the frames anything.
"""

from __future__ import annotations

import polars as pl

from changelog import note_rows
from changelog.commit_rows import commit_rows
from changelog.recipe_table import recipe_rows
from warehouse.code import version
from warehouse.log import FAR, EventLog
from warehouse.schemas import COMMITS, DEPENDENCIES, EVENTS, IMAGES, JOBS, NOTES, RATES, RECIPES, RELEASES, Table
from warehouse.store import Change, Mark, trusted

LINKED = {
    "CommitLanded": COMMITS,
    "ReleasePublished": RELEASES,
    "DependencyPinned": DEPENDENCIES,
    "ImageResolved": IMAGES,
}
"""What `links` follow from, besides shifts: a price is no cause of a shift."""
EVENT_OF_TABLE = LINKED | {"RateChanged": RATES, "JobsCounted": JOBS, "RecipeChanged": RECIPES}
"""The table that holds the events of a type as they were told."""
FOLDS = (*EVENT_OF_TABLE.items(), ("ReleasePublished", NOTES))
"""Every table here with the event type that it follows from: `notes` is what the texts in `releases` say."""

SOURCES = (
    "changelog/tables.py",
    *("changelog/commit_rows.py", "changelog/subjects.py", "changelog/reverting.py", "changelog/messages.py"),
    *("changelog/note_rows.py", "changelog/notes.py", "changelog/note_blocks.py", "changelog/note_references.py"),
    *("changelog/note_dependencies.py", "changelog/gains.py", "changelog/facts.py", "changelog/projects.py"),
    *("changelog/recipe_table.py", "changelog/recipe_entries.py", "changelog/recipe_kinds.py", "changelog/benchmarks.py"),
    *("changelog/data/projects.toml", "changelog/data/recipes.toml", "changelog/data/benchmarks.toml"),
    *("warehouse/vocabulary.py", "warehouse/data/vocabulary.toml", "warehouse/canonical.py"),
    "warehouse/schemas.py",
    "warehouse/events.py",
)
"""What the tables follow from besides the log (`warehouse.code`)."""
_KEYS = {
    "commits": ["project", "commit"],
    "releases": ["project", "version", "evidence", "tag", "commit", "url"],
    "notes": [*note_rows.RELEASE, "place"],
    "dependencies": ["project", "version", "dependency", "platform", "evidence"],
    "images": ["image_ref", "seen_at", "image_digest", "platform", "manifest_digest"],
    "rates": ["kind", "name", "provider", "tier", "charge", "evidence", "valid_from"],
    "jobs": ["run_source", "run_id", "day", "label", "succeeded", "total", "occurrence"],
    "recipes": [
        *("run_source", "run_id", "base_ref", "head_ref", "config_keys", "description"),
        *("append_only", "evals_only", "scenario_types", "pr_link"),
    ],
}
_COUNTED = ("run_source", "run_id", "label")
"""One of these has one count."""
_RATED = _KEYS["rates"][:-1]
"""One of these has at any instant one rate."""
_TIMES = ("author_date", "committer_date", "published_at", "seen_at", "created", "added_at", "valid_from", "valid_to")
_RUN = pl.Struct({"run_source": pl.String(), "run_id": pl.String(), "run_attempt": pl.Int64()})
_PAYLOAD: dict[str, dict[str, pl.DataType]] = {
    "rates": {"value": pl.String(), "revision": pl.Int64()},
    "jobs": {"run": _RUN},
    "recipes": {"run": _RUN},
}
"""Tables in which one fact rules another, and the fields whose form in the payload is not that of a column."""
_FOLDED = ("recorded_at", "statements")
"""Columns that no payload holds …"""
_MADE = {"commits": ("kind",), "recipes": ("kind",)}
"""… and those of one table, whose names may stand for something else in another."""


def bring_tables(log: EventLog, *, force: bool = False) -> list[str]:
    """Bring the tables up to the log; return the names of those that were behind (all with *force*).

    New facts are added; where one restates a fact that is there, the table is written again. Tables in which one fact rules
    another (a new rate ends an older one) always are.
    """
    return [table.name for event_type, table in FOLDS if _bring(log, event_type, table, force)]


def read_table(log: EventLog, name: str, up_to: int | None = None) -> pl.DataFrame:
    """Return the table called *name* as it follows from the log alone."""
    event_type, table = next((event_type, table) for event_type, table in FOLDS if table.name == name)
    return fold(log.read(event_type, up_to=up_to), table)


def _bring(log: EventLog, event_type: str, table: Table, force: bool) -> bool:
    code = version(SOURCES)

    def attempt(scan: pl.LazyFrame, mark: Mark | None) -> Change | None:
        last = log.last_sequence()  # read behind the mark: the table cannot be ahead of it but by a log that was cut off
        known = None if force else trusted(mark, code, last)
        whole, after = known is None, known.up_to if known else 0
        events = log.read(event_type, after=after, up_to=last) if last > after else EVENTS.schema.to_frame()
        if events.is_empty() and not whole and last - after < FAR:
            return None
        if table.name in _PAYLOAD and not whole and not events.is_empty():
            events, whole = log.read(event_type, up_to=last), True
        new, done = fold(events, table), Mark(last, code)
        if whole:
            return Change(new, done, "overwrite")
        if table.name == NOTES.name:
            return _with_notes(scan, new, fold(events, RELEASES), done)
        keys = _KEYS[table.name]
        if scan.select(keys).join(new.lazy().select(keys), on=keys, how="semi", nulls_equal=True).collect().is_empty():
            return Change(new, done)
        if table.name == COMMITS.name:  # two facts about one commit complete each other
            return Change(fold(log.read(event_type, up_to=last), table), done, "overwrite")
        return Change(_ordered(pl.concat([scan.collect(), new]), table), done, "overwrite")

    return log.store.commit(table.name, attempt) is not None


def _with_notes(scan: pl.LazyFrame, new: pl.DataFrame, releases: pl.DataFrame, done: Mark) -> Change:
    """Return how the table gets *new*, the rows of these *releases*: in the place of the rows of one that was told before."""
    told = note_rows.noted(releases).lazy().select(note_rows.RELEASE)
    kept = scan.join(told, on=note_rows.RELEASE, how="anti", nulls_equal=True)
    if kept.select(pl.len()).collect().item() == scan.select(pl.len()).collect().item():
        return Change(new, done)
    return Change(_ordered(pl.concat([kept.collect(), new]), NOTES), done, "overwrite")


def fold(events: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the rows of *table* that *events*, of its type and in log order, give; of two about one thing the later counts."""
    if events.is_empty():
        return table.schema.to_frame()
    if table.name == NOTES.name:
        return _ordered(note_rows.note_rows(fold(events, RELEASES)), NOTES)
    own = _PAYLOAD.get(table.name, {})
    left_out = (*_FOLDED, *_MADE.get(table.name, ()), *(_RUN.to_schema() if "run" in own else ()))
    raw = {name: pl.String() if name in _TIMES else dtype for name, dtype in table.schema.items() if name not in left_out}
    payload = pl.col("payload").str.json_decode(pl.Struct(raw | own)).alias("payload")
    decoded = events.select("recorded_at", payload).unnest("payload")
    timed = decoded.with_columns(_instant(name) for name in _TIMES if name in table.schema)
    return _ordered(_RULES.get(table.name, _as_told)(timed), table)


def _as_told(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def _last_counted(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs of each run and label as its last attempt has them; those of a day alone stand side by side."""
    rows = jobs.unnest("run").sort("run_attempt", "total", "succeeded", maintain_order=True)
    of_day = pl.col("run_id").is_null()
    return pl.concat([rows.filter(~of_day).unique(_COUNTED, keep="last", maintain_order=True), rows.filter(of_day)])


def _entries_told(recipes: pl.DataFrame) -> pl.DataFrame:
    return recipe_rows(recipes.unnest("run"))


def _until_the_next(rates: pl.DataFrame) -> pl.DataFrame:
    """Return one row a start, the highest revision of it, that ends where it was said to or where the next one starts."""
    start = _KEYS["rates"]
    counted = rates.with_columns(
        pl.col("value").cast(pl.Float64, strict=True),
        pl.col("value").n_unique().over(start).cast(pl.Int64).alias("statements"),
    )
    ruling = counted.sort("revision", maintain_order=True).unique(start, keep="last", maintain_order=True)
    following = pl.col("valid_from").shift(-1).over(_RATED)
    return ruling.sort("valid_from").with_columns(valid_to=pl.min_horizontal("valid_to", following))


_RULES = {"commits": commit_rows, "rates": _until_the_next, "jobs": _last_counted, "recipes": _entries_told}
"""What makes the rows of a table of the facts in their order, where one rules another."""


def _ordered(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    unique = rows.unique(_KEYS[table.name], keep="last", maintain_order=True)
    return unique.select(table.schema.names()).sort(table.order, nulls_last=True, maintain_order=True)


def _instant(name: str) -> pl.Expr:
    """Payloads hold times as `warehouse.clock.iso` writes them: UTC with a Z, fractions only where there are any."""
    return pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC", strict=True)
