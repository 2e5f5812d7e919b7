"""`shiftlog bisect` on a warehouse with a real git history and measured curves."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from changelog.bisect import Level
from pipelines import projections
from pipelines.announcing import silent
from pipelines.bisecting import bisect
from pipelines.cli import main
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from tests.records import sweep, write_run
from tests.repositories import Repository
from warehouse.errors import InputError
from warehouse.events import ImageResolved, Source, event_of
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
IMAGE = "vllm/vllm-openai:v{}"
NIGHTLY = "vllm/vllm-openai:nightly-{}"
COMMITS = 16


class Fleet:
    """A warehouse with the history of an engine, and one curve that got 20 % slower from 0.90.0 to 0.92.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = EventLog(Store(str(folder / "warehouse")))
        self.night = 0
        repository = Repository(folder / "vllm-repo")
        self.hashes = [repository.commit("start (#900)")]
        repository.run("tag", "v0.90.0")
        for number in range(1, COMMITS + 1):
            self.hashes.append(repository.commit(f"[Core] change {number} (#{1000 + number})", "vllm/core.py"))
        repository.run("tag", "v0.92.0")
        self.take(str(repository.folder))
        for wobble in (1.0, 1.002, 0.999):
            self.measure(IMAGE.format("0.90.0"), wobble)
        self.measure(IMAGE.format("0.92.0"), 0.8)
        projections.run_detection(self.log, NOW)
        shifts = self.log.store.read("shifts")
        (self.shift,) = shifts["shift_id"].unique().to_list()

    def take(self, path: str) -> None:
        ingest(self.log, (path,), Declared(), recorded_at=NOW, mirrors=self.folder / "mirrors", announce=silent)

    def measure(self, image: str, speed: float) -> None:
        self.night += 1
        when = f"2026-02-{self.night:02}T06:00:00Z"
        self.take(str(write_run(self.folder / "runs", self.night, when, sweep(image=image, speed=speed))))

    def bisect(self, *given: tuple[str, Level], **named: Any) -> dict[str, Any]:
        projections.run_detection(self.log, NOW)
        return bisect(self.log.store, self.shift[:8], given=given, now=NOW, **named)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_the_set_is_halved_by_what_was_measured(fleet: Fleet) -> None:
    """Change 11 did it: nightly images of 8, 12 and 10 are measured as they are asked for, one of them twice."""
    first = fleet.bisect()
    assert (first["candidates"], first["remaining"]["candidates"], first["expected_runs"]) == (16, 16, 4.0)
    assert first["next"]["commit"] == fleet.hashes[8] and first["next"]["halves"] == [8, 8]
    assert first["next"]["nightly"] == [{"image": NIGHTLY.format(fleet.hashes[8]), "gone": True, "kept": 14}]
    fleet.measure(NIGHTLY.format(fleet.hashes[8]), 1.001)
    second = fleet.bisect()
    assert [(result["level"], result["used"]) for result in second["results"]] == [("old", True)]
    assert second["next"]["commit"] == fleet.hashes[12] and second["remaining"]["candidates"] == 8
    fleet.measure(NIGHTLY.format(fleet.hashes[12]), 0.801)
    fleet.measure(NIGHTLY.format(fleet.hashes[12]), 0.799)
    third = fleet.bisect()
    assert third["next"]["commit"] == fleet.hashes[10]
    assert "2 runs" in third["results"][1]["how"] or "2 runs" in third["results"][0]["how"]
    last = fleet.bisect((fleet.hashes[10], Level.OLD), (fleet.hashes[11], Level.NEW))
    assert last["found"] and last["next"] is None
    assert [change["pr"] for change in last["remaining"]["changes"]] == [1011]


def test_a_run_half_way_cannot_be_told(fleet: Fleet) -> None:
    fleet.measure(NIGHTLY.format(fleet.hashes[8]), 0.9)
    answer = fleet.bisect()
    assert [(result["level"], result["used"]) for result in answer["results"]] == [("skip", True)]
    assert answer["remaining"]["candidates"] == 16
    assert answer["next"]["commit"] == fleet.hashes[7], "the neighbour of what was tried"


def test_an_image_that_the_warehouse_knows_is_run_first(fleet: Fleet) -> None:
    """A release between the two is an image that is there: 0.91.0 parts the set 5 : 11."""
    repository = fleet.folder / "vllm-repo"
    other = Repository.__new__(Repository)
    other.folder, other.day = repository, 40
    other.run("tag", "v0.91.0", fleet.hashes[5])
    fleet.take(str(repository))
    answer = fleet.bisect()
    assert answer["next"]["commit"] == fleet.hashes[5]
    assert answer["next"]["images"] == [IMAGE.format("0.91.0")] and answer["next"]["halves"] == [5, 11]
    assert answer["images"] == [{"commit": fleet.hashes[5], "images": [IMAGE.format("0.91.0")]}]


def test_a_tag_that_moved_between_its_runs_parts_nothing(fleet: Fleet) -> None:
    image = NIGHTLY.format(fleet.hashes[8])
    fleet.measure(image, 1.0)
    night = fleet.night
    fleet.measure(image, 1.001)
    assert [result["used"] for result in fleet.bisect()["results"]] == [True]
    for digest, day in (("a" * 64, night - 1), ("b" * 64, night)):
        seen = datetime(2026, 2, day, 12, tzinfo=UTC)
        fleet.log.append(
            [event_of(image_seen(image, digest, seen), occurred_at=seen, recorded_at=NOW, source=Source(name="hub"))]
        )
    (result,) = fleet.bisect()["results"]
    assert not result["used"] and "its tag moved in between" in result["how"]


def image_seen(image: str, digest: str, seen: datetime) -> ImageResolved:
    told = f"sha256:{digest}"
    return ImageResolved(
        image_ref=image,
        image_digest=told,
        seen_at=f"{seen:%Y-%m-%dT%H:%M:%SZ}",
        media_type="application/json",
        manifest_digest=told,
    )


def test_results_that_do_not_fit_are_said(fleet: Fleet) -> None:
    answer = fleet.bisect((fleet.hashes[4], Level.NEW), (fleet.hashes[9], Level.OLD))
    assert answer["contradiction"] and answer["next"] is None and answer["remaining"]["candidates"] == 0


@pytest.mark.parametrize(("build", "level", "what"), [("0.92.0", Level.OLD, "all"), ("0.90.0", Level.NEW, "none")])
def test_a_result_against_an_end_of_the_shift_stops(fleet: Fleet, build: str, level: Level, what: str) -> None:
    answer = fleet.bisect((build, level))
    assert f"that build has {what} of the changes" in answer["contradiction"] and answer["next"] is None
    agreeing = fleet.bisect((build, Level.NEW if level is Level.OLD else Level.OLD))
    assert agreeing["contradiction"] is None and agreeing["remaining"]["candidates"] == 16


def test_ends_the_wrong_way_round_and_dates_as_builds_are_refused(fleet: Fleet) -> None:
    with pytest.raises(InputError, match="swap them"):
        fleet.bisect(ends=("0.92.0", "0.90.0"))
    with pytest.raises(InputError, match="is a date"):
        fleet.bisect(("2026-01-05", Level.NEW))


def test_ends_can_be_named(fleet: Fleet) -> None:
    answer = fleet.bisect(ends=(fleet.hashes[2], None))
    assert answer["candidates"] == 14


def test_what_cannot_be_halved_is_said_in_one_line(fleet: Fleet) -> None:
    with pytest.raises(InputError, match="no such shift"):
        bisect(fleet.log.store, "ffffffff", now=NOW)
    with pytest.raises(InputError, match="no such shift"):
        bisect(fleet.log.store, fleet.shift[:5], now=NOW)
    with pytest.raises(InputError, match=r"--result 9\.9\.9"):
        fleet.bisect(("9.9.9", Level.OLD))
    with pytest.raises(InputError, match="Name the ends"):
        fleet.bisect(ends=("9.9.9", None))


def test_the_verb(fleet: Fleet) -> None:
    place = ["--warehouse", str(fleet.folder / "warehouse"), "bisect", fleet.shift[:8]]
    text = CliRunner().invoke(main, place)
    assert text.exit_code == 0, text.output
    assert "16 changes of vllm lie between the two builds" in text.stdout
    assert "about 4.0 builds to run" in text.stdout and "is gone" in text.stdout
    assert f"{fleet.hashes[8][:12]}=old" in text.stdout
    told = CliRunner().invoke(main, [*place, "--result", f"{fleet.hashes[8]}=new", "--format", "json"])
    assert json.loads(told.stdout)["remaining"]["candidates"] == 8
    wrong = CliRunner().invoke(main, [*place, "--result", "0.91.0=slow"])
    assert wrong.exit_code == 2 and "BUILD=old" in wrong.stderr


def test_a_nightly_of_yesterday_may_still_be_there(fleet: Fleet) -> None:
    answer = bisect(fleet.log.store, fleet.shift, now=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=20))
    assert answer["next"]["nightly"][0]["gone"] is False
