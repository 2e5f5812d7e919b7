"""A shift that is not found any more is never silently moved: retracted, or superseded by one that is named."""

from datetime import UTC, datetime

import pytest

from pipelines.detect.night import detect
from pipelines.statements import statements, with_retracted
from tests.fleet import curve, points, quiet
from warehouse.log import EventLog
from warehouse.store import Store

NOW = datetime(2026, 2, 1, tzinfo=UTC)
BASE = [*quiet(), curve("A", 0)]
SHIFTED = [*BASE, curve("B", 2, 0.92)]


@pytest.fixture
def log(tmp_path):
    return EventLog(Store(str(tmp_path)))


def night(log, *frames):
    shifts = with_retracted(detect(points(*frames)).shifts, log)
    log.append(list(statements(shifts, log, NOW)))
    return {row["shift_id"]: row for row in shifts.to_dicts()}


def stated(log):
    return [(payload.shift_id, payload.revision, payload.facts["status"]) for _row, payload in log.payloads("ShiftReported")]


def test_a_run_that_came_late_moves_a_shift_to_its_heir(log):
    (first,) = night(log, *SHIFTED)
    found = night(log, *SHIFTED, curve("A", 1))
    old, new = found.pop(first), next(iter(found.values()))
    assert (old["status"], old["superseded_by"]) == ("superseded", new["shift_id"])
    assert new["shift_id"] in old["status_reason"]
    assert (new["status"], new["superseded_by"], new["from_run_id"]) == ("suspected", None, "r0001.000")
    assert (first, 2, "superseded") in stated(log)


def test_what_nothing_stands_in_for_is_retracted(log):
    (first,) = night(log, *SHIFTED)
    found = night(log, *BASE, curve("A", 1))
    assert (found[first]["status"], found[first]["superseded_by"]) == ("retracted", None)


def test_the_heir_goes_the_same_way_and_is_the_nearest_in_time(log):
    (first,) = night(log, *SHIFTED)
    found = night(log, *BASE, curve("A", 0.5, 0.8), curve("A", 1), curve("B", 2, 0.92))
    heir = found[found[first]["superseded_by"]]
    assert (heir["direction"], heir["to_run_id"]) == ("regression", "r0002.000")


def test_a_shift_at_another_time_is_no_heir(log):
    (first,) = night(log, *SHIFTED)
    found = night(log, *BASE, curve("A", 2.5), curve("B", 4, 0.92))
    assert found[first]["status"] == "retracted"
    assert len(found) == 2


def test_it_is_said_once_and_a_shift_that_is_found_again_stands_again(log):
    (first,) = night(log, *SHIFTED)
    late = [*SHIFTED, curve("A", 1)]
    night(log, *late)
    said = len(stated(log))
    night(log, *late)
    assert len(stated(log)) == said
    again = night(log, *SHIFTED)
    assert (again[first]["status"], again[first]["superseded_by"]) == ("suspected", None)
    assert (first, 3, "suspected") in stated(log)
