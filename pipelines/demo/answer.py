"""The table that ends the demo's page: planted against found, in words.

Belongs here: wording. Does not: the verdicts (`comparison`).
"""

from __future__ import annotations

from pipelines.demo.comparison import Row

COLUMNS = ("planted", "where", "day", "size", "verdict", "curves", "measured", "cause", "suspect")
"""Keys of every line, in the order in which they are shown."""

KINDS = {
    "engine_regression": "engine regression",
    "engine_speedup": "engine speed-up",
    "recipe_change": "recipe change",
    "moved_tag": "tag that moved",
    "cold_start": "cold start",
    "flat_bump": "new version, same speed",
    "unplanted": "nothing",
}


def lines(rows: list[Row]) -> list[dict[str, str]]:
    """Return one line of texts by COLUMNS for each of *rows*."""
    return [
        {
            "planted": KINDS[row.kind],
            "where": f"{row.engine} on {', '.join(row.hardware)}",
            "day": row.day,
            "size": _percent(row.planted_pct) if row.planted_pct else "none",
            "verdict": row.verdict,
            "curves": f"{row.curves_flagged} of {row.curves_planted}" if row.curves_planted else str(row.curves_flagged),
            "measured": _percent(row.measured_pct),
            "cause": _cause(row),
            "suspect": _suspect(row),
        }
        for row in rows
    ]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f} %".replace("-", "−")


def _cause(row: Row) -> str:
    found = ", ".join(row.attribution_found) or "–"
    if row.attribution_planted is None or row.attribution_found in ((), (row.attribution_planted,)):
        return found
    return f"{found} (planted: {row.attribution_planted})"


def _suspect(row: Row) -> str:
    if row.pr is None:
        return "–"
    if row.best_rank is None:
        return f"#{row.pr}: not listed"
    ranks = f"{row.best_rank}" if row.best_rank == row.worst_rank else f"{row.best_rank} to {row.worst_rank or 'not listed'}"
    return f"#{row.pr}: rank {ranks} of {row.candidates}"
