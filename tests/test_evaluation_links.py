"""Where the known causes of published cases stand, by us and by two plain orders."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bench.evaluation.links import Ranked, cases, evaluate, honesty, lines, shares
from tests import frames
from warehouse.schemas import RELEASES

DAY = datetime(2026, 1, 1, tzinfo=UTC)
REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"
FILES = {
    "vllm": ("vllm_commits_main_2025-07_2026-08.jsonl.gz", "pypi_vllm_releases.json"),
    "sglang": ("sglang_commits_main_2025-07_2026-06.jsonl.gz", "pypi_sglang_releases.json"),
}


def made(*titles: str) -> dict[str, pl.DataFrame]:
    rows = [
        (
            "vllm",
            f"{number:040x}",
            [f"{number - 1:040x}"],
            *[DAY + timedelta(days=number)] * 2,
            title,
            number,
            ["vllm/a.py"],
            0,
            DAY,
        )
        for number, title in enumerate(titles, start=1)
    ]
    return {"commits": frames.commits(rows)}


def case(**changed: Any) -> dict[str, Any]:
    told = {
        "case": "one",
        "split": "held-out",
        "engine": "vllm",
        "from": "2026-01-02T01:00:00Z",
        "to": "2026-01-06T01:00:00Z",
        "hardware": "mi355x",
        "model": "qwen3.5",
        "precision": "fp8",
        "direction": "speedup",
        "prs": [3],
    }
    return told | changed


def test_ranks_by_hand() -> None:
    """Of commits 2 to 5 the third is the oldest but one; only its title and the last one's hold a word that is asked for."""
    tables = made("root", "Touch a thing", "[ROCm] Faster MoE", "Touch another", "[XPU] MoE")
    (row,) = evaluate(tables, [case(prs=[3, 99])])
    assert (row.candidates, row.problem) == (4, None)
    assert (row.ours, row.newest, row.titles) == ((1, None), (3, None), (1, None))
    (text,) = lines([row])
    assert text.startswith("held-out: one: #3 1 (3, 1), #99 absent (-, -) of 4")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [({"prs": [1]}, "does not hold"), ({"from": "x/y:z", "to": "x/y:w"}, "neither end"), ({"engine": "tgi"}, "")],
)
def test_a_case_that_cannot_be_ranked_says_why(changed: dict[str, Any], problem: str) -> None:
    (row,) = evaluate(made("root", "a", "b", "c"), [case(**changed)])
    assert row.problem is not None and problem in row.problem
    assert shares([row])[0].cases == 0


def row(name: str, split: str, ours: tuple[int | None, ...], narrowed: bool = True) -> Ranked:
    return Ranked(name, split, (1,) * len(ours), ours, ours, ours, 100, narrowed, False)


def test_shares_count_a_case_by_its_best() -> None:
    """Best ranks 1, 4 and 20: mean of 1, 1/4 and 1/20 is 0.433; of five named pull requests three are in the first ten."""
    rows = [row("a", "development", (30, 1)), row("b", "development", (4,)), row("c", "held-out", (20, None), narrowed=False)]
    total = next(share for share in shares(rows) if (share.split, share.way) == ("all", "ours"))
    assert (total.cases, total.mrr, total.first, total.short, total.median) == (3, 0.433, 0.333, 0.667, 4.0)
    assert total.all_short == 0.4
    assert {share.split for share in shares(rows)} == {"development", "held-out", "all"}
    assert honesty(rows) == {"top 3": (1, 1), "top 10": (1, 1), "below": (0, 1)}


def test_labels_count_as_development(tmp_path: Path) -> None:
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps({"cases": [{"case": "mine"}]}))
    assert {"case": "mine", "split": "development", "given": True} in cases(labels)
    assert all(one["split"] in ("development", "held-out") for one in cases())


def real(project: str) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    def when(text: str) -> datetime:
        return datetime.fromisoformat(text).astimezone(UTC)

    commits, uploads = FILES[project]
    rows = []
    with gzip.open(REAL / commits, "rt", encoding="utf-8") as file:
        for item in map(json.loads, file):
            written, landed = when(item["author_date"]), when(item["committer_date"])
            paths = [entry[-1] for entry in item["files"]]
            rows.append((project, item["hash"], item["parents"], written, landed, item["subject"], item["pr"], paths, 0, DAY))
    releases = [
        dict.fromkeys(RELEASES.schema.names())
        | {"project": project, "version": item["version"], "published_at": when(item["first_upload"]), "evidence": "upload"}
        for item in json.loads((REAL / uploads).read_text("utf-8"))
    ]
    return rows, releases


@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data is absent: no real histories to rank")
def test_known_causes_stand_at_the_top() -> None:
    """Each of the five named pull requests is in the first ten of at least 1,400, each case's best in the first three."""
    told = [real(project) for project in FILES]
    tables = {
        "commits": frames.commits([row for rows, _ in told for row in rows]),
        "releases": pl.DataFrame([release for _, own in told for release in own], schema=RELEASES.schema),
    }
    labels = [one for one in cases(REAL / "link_labels.json") if one["case"].count("-") >= 4][:3]
    rows = evaluate(tables, labels)
    assert [len(row.prs) for row in rows] == [1, 1, 3]
    for row in rows:
        assert row.candidates > 1_400
        ranks = [rank for rank in row.ours if rank is not None]
        assert len(ranks) == len(row.prs) and max(ranks) <= 10 and min(ranks) <= 3, f"{row.case}: {row.ours}"
        assert min(ranks) < min(rank for rank in row.newest if rank), "better than reading the newest first"
