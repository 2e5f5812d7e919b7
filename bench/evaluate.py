"""`make eval`: how well detection and ranking work on the real data beside the checkout; writes docs/evaluation.md.

Needs `../shared/data` (real runs and upstream histories, not part of the project); says so and stops where it is absent.
"""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path[0] = str(HERE)  # not this folder: bench.py would hide the package of its name
DATA = HERE.parent / "shared" / "data"
PAGE = HERE / "docs" / "evaluation.md"
ROUNDS, SEED = 12, 20260301


def main() -> None:
    """Ingest real runs and upstream files into a temporary warehouse, measure, and write the page."""
    if not DATA.is_dir():
        print("no real data beside the checkout (../shared/data is absent): nothing to evaluate")
        sys.exit(0)
    from bench.evaluation import images, pairs
    from bench.evaluation.page import Figures, page
    from pipelines.announcing import silent
    from pipelines.following import refresh
    from pipelines.ingest.files import Declared
    from pipelines.ingest.intake import ingest
    from warehouse.clock import system_clock
    from warehouse.log import EventLog
    from warehouse.store import Store

    with tempfile.TemporaryDirectory() as name:
        log = EventLog(Store(name))
        _say("ingesting")
        inputs = (str(DATA / "inferencex" / "runs"), str(DATA / "upstream"))
        ingest(log, inputs, Declared(), recorded_at=system_clock(), mirrors=Path(name) / "mirrors", announce=silent)
        refresh(log)
        points = log.store.read("points")
        same = pairs.same_image_pairs(points)
        quiet = [pair for pair in same if pairs.is_quiet(pair)]
        found = Figures(
            runs=points["run_id"].n_unique(),
            pairs=[(scenario, _scenario(points, same, scenario)) for scenario in pairs.SCENARIOS],
            quiet=[(scenario, _scenario(points, quiet, scenario)) for scenario in pairs.QUIET],
            discoveries=pairs.false_discoveries(points, same, ROUNDS, SEED),
            cold=pairs.cold_starts(points),
            one_build=pairs.one_build(points),
            series=_series(points),
            whole=pairs.whole(points),
            links=_ranking(log),
            images=images.evaluate(DATA / "inferencex" / "images.json"),
            machine=f"Python {platform.python_version()}, {platform.machine()}",
        )
    PAGE.write_text(page(found), "utf-8")
    _say(f"wrote {PAGE.relative_to(HERE)}")


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _scenario(points, same, scenario):  # type: ignore[no-untyped-def]
    from bench.evaluation.pairs import outcomes

    _say(f"pairs: {scenario.name}")
    long_enough = [pair for pair in same if pair.cells >= scenario.least_cells]
    return list(outcomes(points, long_enough, scenario.plant, scenario.how))


def _series(points):  # type: ignore[no-untyped-def]
    from bench.evaluation import series

    _say("series of days, nulls, TCPD, speed")
    return series.evaluate(points, DATA)


def _ranking(log):  # type: ignore[no-untyped-def]
    """Return where the known cause of each labelled case stands."""
    from bench.evaluation import links
    from pipelines.projections import upstream

    _say("ranking upstream changes")
    return links.evaluate(upstream(log.store), links.cases(DATA / "upstream" / "link_labels.json"))


if __name__ == "__main__":
    main()
