"""The table `notes`: what release notes say, one row an item; and its rows as claims about pull requests.

Belongs here: rows of `releases` to rows of `notes`, and back to `NoteItem`. Does not: reading a note (`changelog.notes`), the
event log (`changelog.tables`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from warehouse.schemas import NOTES

if TYPE_CHECKING:  # the parsers are slow to load, and a table without new notes needs none
    from changelog.notes import Claim, NoteItem

RELEASE = ["project", "version", "tag", "url"]
"""What one note is: a release can be told of by its page and by a document."""
EVIDENCE = "release-note"
_GAIN = ("metric", "low_pct", "high_pct", "factor", "of_part", "words")


def noted(releases: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `releases` that are notes; one whose text is empty stands there too, with nothing to say."""
    return releases.filter(pl.col("evidence") == EVIDENCE).unique(RELEASE, keep="last", maintain_order=True)


def note_rows(releases: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `notes` that follow from rows of `releases`, of which each note is told once; in their order."""
    rows = [row for release in noted(releases).iter_rows(named=True) for row in _rows(release)]
    return pl.from_dicts(rows, schema=NOTES.schema) if rows else NOTES.schema.to_frame()


def note_claims(notes: pl.DataFrame) -> dict[int, list[Claim]]:
    """Return, by pull request, what one project's rows of `notes` say of it, as `changelog.notes.claims` does.

    Raises ValueError for two projects: their numbers have nothing to do with each other.
    """
    if notes["project"].n_unique() > 1:
        raise ValueError("claims are of one project; filter the notes first")
    from changelog.notes import Claim

    found: dict[int, list[Claim]] = {}
    for row in notes.iter_rows(named=True):
        claim = Claim(row["project"], row["version"], _item(row), row["cut"])
        for pr in row["prs"]:
            found.setdefault(pr, []).append(claim)
    return found


def _rows(release: dict[str, Any]) -> list[dict[str, Any]]:
    from changelog.notes import cut, items

    text = release["notes"] or ""
    may_be_cut = cut(text) is not None
    shared = {name: release[name] for name in (*RELEASE, "published_at", "recorded_at")} | {"cut": may_be_cut}
    return [shared | _row(item) for item in items(release["project"], text)]


def _row(item: NoteItem) -> dict[str, Any]:
    row = {name: getattr(item, name) for name in item.__dataclass_fields__ if name not in ("prs", "urls", "gains")}
    gains = [{name: getattr(gain, name) for name in _GAIN} for gain in item.gains]
    return row | {"prs": list(item.prs), "urls": list(item.urls), "gains": gains}


def _item(row: dict[str, Any]) -> NoteItem:
    from changelog.gains import Gain
    from changelog.notes import NoteItem

    plain = {name: row[name] for name in NoteItem.__dataclass_fields__ if name not in ("prs", "urls", "gains")}
    return NoteItem(**plain, prs=tuple(row["prs"]), urls=tuple(row["urls"]), gains=tuple(Gain(**gain) for gain in row["gains"]))
