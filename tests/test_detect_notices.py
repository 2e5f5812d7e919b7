"""One cause, one notice: the key by which shifts are told apart, and the fourteen days of quiet after one."""

import polars as pl
import pytest

from pipelines.detect.notices import with_notices
from tests import frames


def told(*rows):
    return with_notices(frames.frame("shifts", [frames.shift(shift_id=f"s{n}", **row) for n, row in enumerate(rows)]))


def test_curves_of_one_change_share_a_notice_whatever_their_shape():
    found = told({"isl": 1024}, {"isl": 8192, "curve_id": "other", "precision": "fp4"})
    assert found["dedupe_key"].n_unique() == 1
    assert found["echo_of"].to_list() == [None, "s0"]


@pytest.mark.parametrize(
    "other",
    [
        {"engine": "sglang"},
        {"hardware": "h100"},
        {"model": "gptoss120b"},
        {"metric": "tpot_median"},
        {"to_build_id": "tag:vllm/vllm-openai:v0.92.0"},
        {"from_build_id": "tag:vllm/vllm-openai:v0.89.0"},
    ],
)
def test_another_cause_is_another_notice(other):
    found = told({}, other)
    assert found["dedupe_key"].n_unique() == 2
    assert found["echo_of"].to_list() == [None, None]


def test_steady_and_reported_throughput_are_one_family():
    assert told({}, {"metric": "tput_per_gpu"})["dedupe_key"].n_unique() == 1


def test_the_way_back_is_news():
    assert told({}, {"direction": "speedup"})["echo_of"].to_list() == [None, None]


@pytest.mark.parametrize(("days", "echo"), [(13.99, "s0"), (14, None)])
def test_a_notice_is_followed_by_fourteen_days_of_quiet(days, echo):
    assert told({"to_measured_at": frames.day(1)}, {"to_measured_at": frames.day(1 + days)})["echo_of"].to_list() == [None, echo]


def test_an_echo_prolongs_the_quiet_and_names_the_first():
    days = [frames.day(day) for day in (1, 11, 21)]
    assert told(*({"to_measured_at": day} for day in days))["echo_of"].to_list() == [None, "s0", "s0"]


def test_rows_stay_in_their_order():
    late_first = told({"to_measured_at": frames.day(9)}, {"to_measured_at": frames.day(1)})
    assert late_first.select("shift_id", "echo_of").rows() == [("s0", "s1"), ("s1", None)]


def test_no_shifts_no_notices():
    empty = frames.frame("shifts")
    assert with_notices(empty).equals(empty)
    assert with_notices(empty).schema == pl.Schema(empty.schema)
