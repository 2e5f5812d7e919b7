"""What a night said, and what the next one says of it: news, revisions, withdrawals."""

from datetime import UTC, datetime

import pytest

from pipelines.detect.night import detect
from pipelines.statements import statements, with_retracted
from tests.fleet import curve, points, quiet
from warehouse.events import ShiftReported
from warehouse.log import EventLog
from warehouse.schemas import SHIFTS
from warehouse.store import Store

NOW = datetime(2026, 2, 1, tzinfo=UTC)
BASE = [*quiet(), curve("A", 0)]
SHIFTED = [*BASE, curve("B", 1, 0.92)]
CONFIRMED = [*SHIFTED, curve("B", 2, 0.92)]


@pytest.fixture
def log(tmp_path):
    return EventLog(Store(str(tmp_path)))


def night(log, *frames):
    """Detect, state, and return (rows of shifts with those retracted, new statements)."""
    shifts = with_retracted(detect(points(*frames)).shifts, log)
    new = list(statements(shifts, log, NOW))
    log.append(new)
    return shifts, new


def stated(log):
    found = [payload for _row, payload in log.payloads("ShiftReported")]
    assert all(isinstance(payload, ShiftReported) for payload in found)
    return [(payload.revision, payload.facts["status"], payload.facts["attribution"]) for payload in found]


def test_the_first_statement(log):
    shifts, (event,) = night(log, *SHIFTED)
    assert stated(log) == [(1, "suspected", "engine")]
    assert event.subject == f"shift:{shifts['shift_id'].item()}"
    assert event.occurred_at == shifts["to_measured_at"].item()
    assert event.recorded_at == NOW


def test_the_numbers_of_a_statement(log):
    night(log, *SHIFTED)
    ((_row, payload),) = log.payloads("ShiftReported")
    assert payload.size_pct == -8.0
    expected = {"engine": "vllm", "hardware": "mi355x", "from_engine_version": "A", "to_engine_version": "B"}
    assert payload.facts.items() >= {**expected, "direction": "regression"}.items()
    assert (payload.from_measured_at.day, payload.to_measured_at.day) == (1, 2)


def test_nothing_new_is_not_said_again(log):
    night(log, *SHIFTED)
    _shifts, new = night(log, *SHIFTED)
    assert new == []
    # A new point elsewhere moves scales, but what was said stands.
    _shifts, new = night(log, *SHIFTED, curve("A", -0.2, 1.002, isl=30_000))
    assert new == []
    assert len(stated(log)) == 1


def test_a_change_is_a_revision(log):
    first, _ = night(log, *SHIFTED)
    second, new = night(log, *CONFIRMED)
    assert stated(log) == [(1, "suspected", "engine"), (2, "confirmed", "engine")]
    assert first["shift_id"].to_list() == second["shift_id"].to_list()
    assert len(new) == 1


def test_what_a_repeat_contradicts_is_revised_by_name(log):
    night(log, *SHIFTED)
    night(log, *SHIFTED, curve("B", 2))
    assert (2, "recovered", "environment") in stated(log)


def test_what_is_no_longer_found_is_retracted_in_table_and_log(log):
    first, _ = night(log, *SHIFTED)
    gone, new = night(log, *BASE)
    (row,) = gone.to_dicts()
    assert (row["shift_id"], row["status"], row["flagged"]) == (first["shift_id"].item(), "retracted", False)
    assert (row["to_engine_version"], row["size_pct"], row["attribution"]) == ("B", -8.0, "engine")
    assert row["status_reason"]
    assert gone.schema == SHIFTS.schema
    assert len(new) == 1
    assert stated(log)[-1] == (2, "retracted", "engine")


def test_a_retraction_is_said_once_and_kept_in_the_table(log):
    night(log, *SHIFTED)
    night(log, *BASE)
    again, new = night(log, *BASE)
    assert new == []
    assert again["status"].to_list() == ["retracted"]


def test_what_is_found_again_is_a_revision(log):
    night(log, *SHIFTED)
    night(log, *BASE)
    back, new = night(log, *SHIFTED)
    assert back["status"].to_list() == ["suspected"]
    assert [revision for revision, _status, _attribution in stated(log)] == [1, 2, 3]
    assert len(new) == 1


def test_no_shifts_no_statements(log):
    shifts, new = night(log, *BASE)
    assert (shifts.height, new) == (0, [])


def test_the_order_of_statements_does_not_depend_on_that_of_rows(log):
    frames = [frame for isl in range(1, 6) for frame in (curve("A", 0, isl=isl), curve("B", 1, 0.9, isl=isl))]
    shifts = detect(points(*BASE, *frames)).shifts
    orders = [[event.event_id for event in statements(rows, log, NOW)] for rows in (shifts, shifts.reverse())]
    assert len(orders[0]) == 5
    assert orders[0] == orders[1]
