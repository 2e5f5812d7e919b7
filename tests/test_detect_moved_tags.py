"""A tag that a registry was seen to move: a possible cause, never a proof, and never an engine to blame."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.sightings import NO_TAGS, TagLog, tag_log
from pipelines.detect.baseline import baselines
from pipelines.detect.changes import ChangeSet, differences
from pipelines.detect.frontier import detect_frontiers
from pipelines.detect.night import detect
from pipelines.detect.observations import Observation, observe
from tests import frames
from tests.fleet import curve, points, quiet

A, B, C = (f"sha256:{digit * 64}" for digit in "abc")
TAG = "vllm/vllm-openai:vA"


def sighting(digest: str, day: float, reference: str = TAG, **told: Any) -> dict[str, Any]:
    row = {"image_ref": reference, "image_digest": digest, "seen_at": frames.day(day), "manifest_digest": digest}
    return frames.row("images", {"platform": "linux/amd64", **row}, told)


def seen(*sightings: dict[str, Any]) -> TagLog:
    return tag_log(frames.frame("images", list(sightings)))


def sides(first: dict[str, Any], second: dict[str, Any]) -> pl.DataFrame:
    return points(curve(**{"build": "A", "day": 0, **first}), curve(**{"build": "A", "day": 10, "speed": 0.9, **second}))


def pair(first: dict[str, Any], second: dict[str, Any], tags: TagLog) -> tuple[Observation, Observation, ChangeSet]:
    (history,) = observe(sides(first, second), ("hardware", "engine"), tags=tags).values()
    return history[0], history[1], differences(history[1], baselines(history)[1])


@pytest.mark.parametrize(
    ("sightings", "moved"),
    [
        ([], None),
        # Seen before both: A for both of them.
        ([(A, -1)], None),
        ([(A, -1), (B, 5)], f"{A[:19]} → {B[:19]}, seen 2026-01-06T06:00Z"),
        # Seen between alone: two contents within the span, whatever it was at its beginning.
        ([(A, 2), (B, 5)], f"{A[:19]} → {B[:19]}, seen 2026-01-06T06:00Z"),
        ([(A, 2)], None),
        # Both before, or the move after both: what the later sighting says was not known then.
        ([(A, -5), (B, -1)], None),
        ([(A, -1), (B, 11)], None),
        # There and back: nobody knows what either run pulled.
        ([(A, -1), (B, 3), (A, 6)], f"{A[:19]} → {A[:19]} and back, seen 2026-01-07T06:00Z"),
        # The same content told twice.
        ([(A, -1), (A, 5)], None),
    ],
)
def test_a_tag_moved_where_a_registry_said_something_else_by_the_later_measurement(
    sightings: list[tuple[str, float]], moved: str | None
) -> None:
    old, new, found = pair({}, {}, seen(*(sighting(digest, day) for digest, day in sightings)))
    if moved is None:
        assert (found.names, found.attribution, found.is_repeat) == ((), "environment", True)
        assert old.repeats(new) and old.conditions == new.conditions
        return
    assert (found.names, found.attribution, found.is_repeat) == (("build",), "unknown", False)
    assert found.details == (f"build: the tag {TAG} moved ({moved}); either run may have had either",)
    assert not old.repeats(new) and old.may_repeat(new) and old.conditions != new.conditions


def test_an_index_written_anew_round_the_same_manifests_is_no_move() -> None:
    tags = seen(sighting(A, -1, manifest_digest=C), sighting(B, 5, manifest_digest=C))
    assert pair({}, {}, tags)[2].attribution == "environment"


def test_digests_in_the_records_decide_and_not_what_a_registry_told() -> None:
    tags = seen(sighting(A, -1), sighting(B, 5))
    assert pair({"digest": "a"}, {"digest": "a"}, tags)[2].attribution == "environment"
    assert pair({"digest": "a"}, {"digest": "b"}, tags)[2].attribution == "engine"


def test_an_index_and_its_platform_are_one_image_and_blame_nothing() -> None:
    first, second = {"digest": "a"}, {"digest": "b"}
    assert pair(first, second, NO_TAGS)[2].attribution == "engine"
    found = pair(first, second, seen(sighting(A, 99, reference="elsewhere/x:y", manifest_digest=B)))[2]
    assert (found.names, found.attribution) == (("build",), "unknown")
    assert found.details[0].endswith(f"both known as {A[:19]}: it may be the same")


def test_two_tags_that_stood_for_one_digest_blame_nothing() -> None:
    other = "vllm/vllm-openai:vB"
    tags = seen(sighting(A, -1), sighting(A, 3, reference=f"docker.io/{other}"))
    assert pair({}, {"build": "B"}, NO_TAGS)[2].attribution == "engine"
    assert pair({}, {"build": "B"}, tags)[2].attribution == "unknown"
    later = seen(sighting(A, -1), sighting(A, 11, reference=other))
    assert pair({}, {"build": "B"}, later)[2].attribution == "engine", "what it stood for then was not known"


def test_another_version_under_a_tag_that_moved_is_another_build() -> None:
    told = ({"values": {"engine_version": f"0.91.0.dev{number}"}} for number in (1, 2))
    assert pair(*told, seen(sighting(A, -1), sighting(B, 5)))[2].attribution == "engine"


def test_a_moved_tag_never_makes_a_shift_of_an_engine_nor_teaches_the_noise() -> None:
    frame = points(curve("A", 0), curve("A", 10, 0.8), curve("A", 11, 0.8), *quiet())
    still, moved = detect(frame), detect(frame, tags=seen(sighting(A, -3), sighting(B, 5)))
    assert still.shifts["attribution"].unique().to_list() == ["environment"]
    assert moved.shifts["attribution"].unique().to_list() == ["unknown"]
    assert moved.shifts["change_set"].to_list() == [["build"]] * moved.shifts.height
    assert moved.diffs.filter(pl.col("change_set").list.contains("build"))["same_build"].to_list() == [False]


def test_a_run_under_a_moved_tag_still_acquits_but_confirms_nothing() -> None:
    """Build B was slower once; then A, whose tag had moved, was as slow: perhaps it is not B at all."""
    frame = points(curve("A", 0), curve("B", 2, 0.8), curve("B", 3, 0.8), curve("A", 6, 0.8), curve("A", 7, 0.8), *quiet())
    tags = seen(sighting(A, -3), sighting(B, 5))
    for told in (NO_TAGS, tags):
        first = detect(frame, tags=told).shifts.sort("to_measured_at").row(0, named=True)
        assert first["attribution"] != "engine", told


def test_a_run_under_a_moved_tag_does_not_confirm() -> None:
    """Build B was slower twice; its tag had moved in between, so that the second may be of another image."""
    frame = points(curve("A", 0), curve("B", 2, 0.8), curve("B", 8, 0.8), *quiet())
    other = "vllm/vllm-openai:vB"
    for tags, status in ((NO_TAGS, "confirmed"), (seen(sighting(A, 1, other), sighting(B, 5, other)), "suspected")):
        assert detect(frame, tags=tags).shifts.select("status", "attribution").rows() == [(status, "engine")]


def test_a_curve_that_moves_as_far_under_one_tag_names_no_engine_whatever_the_tag_did() -> None:
    """Two runs of vA differ by as much as A and B: with its tag moved, they may still have been of one copy."""
    frame = points(curve("A", 0, 0.8), curve("A", 3), curve("B", 6, 0.8), *quiet())
    for tags in (NO_TAGS, seen(sighting(A, -1), sighting(B, 1))):
        found = detect(frame, tags=tags).shifts.sort("to_measured_at")
        assert "engine" not in found["attribution"].to_list()


def test_frontiers_know_of_it() -> None:
    frame = points(*(curve("A", day, speed, tp=tp) for day, speed in ((0, 1.0), (10, 0.8)) for tp in (4, 8)))
    told = seen(sighting(A, -1), sighting(B, 5))
    assert detect_frontiers(frame)["same_build"].unique().to_list() == [True]
    found = detect_frontiers(frame, told)
    assert found["same_build"].unique().to_list() == [None]
    assert not found["stands_out"].any()
    assert found["change_set"].to_list() == [["build"]] * found.height


MOMENTS = st.lists(st.tuples(st.sampled_from((A, B, C)), st.integers(-4, 14)), max_size=6)


@settings(max_examples=40)
@given(MOMENTS, st.permutations(range(6)))
def test_a_tag_alone_never_blames_an_engine_and_rows_in_any_order_say_the_same(
    moments: list[tuple[str, int]], order: list[int]
) -> None:
    rows = [sighting(digest, day) for digest, day in moments]
    tags = seen(*rows)
    assert seen(*(rows[place] for place in order if place < len(rows))) == tags
    found = pair({}, {}, tags)[2]
    assert found.attribution in ("environment", "unknown")
    known: set[datetime] = {one.seen_at for one in tags.of_tag(TAG)}
    later = seen(*rows, sighting(C, 30), sighting(A, 31))
    assert pair({}, {}, later)[2] == found, "what was learned of later times changes nothing"
    assert len(known) <= len(rows)
