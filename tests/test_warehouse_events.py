"""Identity of facts: canonical JSON, event ids, payloads that come back as they went in."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from warehouse.canonical import bytes_hash, canonical_json, canonical_records, content_id
from warehouse.clock import iso, parse_instant
from warehouse.errors import InputError, StoreError
from warehouse.events import (
    MAX_LABEL,
    MAX_RECORD_CHARACTERS,
    MAX_RECORD_DEPTH,
    PAYLOADS,
    CommitLanded,
    Event,
    Payload,
    RecordQuarantined,
    ResultRecorded,
    RunKey,
    RunReported,
    ShiftReported,
    Source,
    event_of,
    payload_of,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RUN = RunKey(run_source="example/fleet", run_id="7")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)


def made(payload: Payload, **overrides: Any) -> Event:
    given_ = {"occurred_at": NOW, "recorded_at": NOW, "source": Source(name="a.json"), **overrides}
    return event_of(payload, **given_)


def result(record: dict[str, Any], run: RunKey = RUN) -> ResultRecorded:
    return ResultRecorded(run=run, record_format="inferencex", record=record)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(element) for element in value] if isinstance(value, list) else value


def test_canonical_json_is_the_known_text() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "é\n", None, True], "ab": {}}) == '{"a":[1.5,"é\\n",null,true],"ab":{},"b":1}'


def test_content_id_is_the_head_of_sha256_of_that_text() -> None:
    assert content_id("x", {"b": 1, "a": "é"}) == hashlib.sha256('["x",{"a":"é","b":1}]'.encode()).hexdigest()[:32]
    assert bytes_hash(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1


@given(values)
def test_canonical_json_round_trips(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text) == doubled(value)
    assert canonical_json(json.loads(text)) == text


@given(objects)
def test_canonical_json_does_not_depend_on_key_order(value: dict[str, Any]) -> None:
    assert canonical_json(reordered(value)) == canonical_json(value)


def doubled(value: Any) -> Any:
    """Return *value* with integers beyond 64 bits as the nearest doubles."""
    if isinstance(value, dict):
        return {key: doubled(element) for key, element in value.items()}
    if isinstance(value, list):
        return [doubled(element) for element in value]
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


NUMBERS = [
    (1e15, "1000000000000000"),
    (9007199254740991.0, "9007199254740991"),
    (9007199254740992.0, "9007199254740992"),
    (2**53 + 1, "9007199254740993"),
    (1e16, "10000000000000000"),
    (123456789012345680.0, "123456789012345680"),
    (2**63 - 1, "9223372036854775807"),
    (-(2**63), "-9223372036854775808"),
    (2**64 - 1, "18446744073709551615"),
    (2**64, "1.8446744073709552e+19"),
    (-(2**63) - 1, "-9223372036854775808"),
    (-(2**64), "-1.8446744073709552e+19"),
    (1e22, "1e+22"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (0.1, "0.1"),
    (1e-5, "0.00001"),
    (1.5e-6, "1.5e-6"),
    (1e-7, "1e-7"),
    (5e-324, "5e-324"),
    (-0.0, "0"),
    (-1.0, "-1"),
    (True, "true"),
]
"""The bytes of numbers as they are stored; ids hash them, so they may never change."""


@pytest.mark.parametrize(("number", "text"), NUMBERS, ids=[text for _number, text in NUMBERS])
def test_the_bytes_of_numbers_are_fixed(number: float, text: str) -> None:
    assert canonical_json(number) == text
    assert canonical_json({"a": [number]}) == f'{{"a":[{text}]}}'
    spelled = "true" if number is True else repr(number)
    for record in (f'{{"a":[{spelled}]}}', f'{{"b":"1.0,","a":{spelled}}}'):
        assert canonical_records([orjson.loads(record)])[0] == [canonical_json(json.loads(record)).encode()]
    assert number is True or float(text) == float(number)


@pytest.mark.parametrize("spelling", ["100", "100.0", "1e2", "1.00E+2", "100.000"])
def test_one_number_in_any_spelling_is_one_record(spelling: str) -> None:
    assert canonical_records([orjson.loads(f'{{"tput":{spelling}}}')])[0] == [b'{"tput":100}']


@given(st.lists(objects, max_size=4))
def test_many_records_at_once_are_canonical_one_by_one(records: list[dict[str, Any]]) -> None:
    parsed = [orjson.loads(json.dumps(record)) for record in records]
    assert canonical_records(parsed)[0] == [canonical_json(record).encode() for record in parsed]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [math.nan, [math.inf], {"a": -math.inf}, "\ud800", {"\udfff": 1}, {1, 2}, b"x", NOW, nested(100_000)],
    ids=["nan", "inf", "-inf", "surrogate", "surrogate key", "set", "bytes", "time", "too deep"],
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)."):
        canonical_json(value)


def test_a_tuple_of_parts_is_not_their_concatenation() -> None:
    assert len({content_id("ab", "c"), content_id("a", "bc"), content_id("abc"), content_id(["ab", "c"])}) == 4


@given(objects)
def test_one_fact_is_one_event(record: dict[str, Any]) -> None:
    first = made(result(record))
    again = made(
        result(reordered(record)),
        recorded_at=NOW + timedelta(days=9),
        occurred_at=NOW + timedelta(days=8),
        published_at=NOW,
        source=Source(name="elsewhere.zip!b.json", sha256="0" * 64, position="/3", reader="x"),
    )
    assert again.event_id == first.event_id
    assert again.payload == first.payload


@given(objects, objects)
def test_different_records_are_different_events(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = canonical_json(one) == canonical_json(other)
    assert (made(result(one)).event_id == made(result(other)).event_id) is same


def test_type_subject_and_payload_are_part_of_the_id() -> None:
    ids = {
        made(result({"a": 1})).event_id,
        made(result({"a": 1.5})).event_id,
        made(result({"a": "1"})).event_id,
        made(result({"a": 1}, RunKey(run_source="example/fleet", run_id="7", run_attempt=2))).event_id,
        made(result({"a": 1}, RunKey(run_source="example/fleet", run_id="8"))).event_id,
        made(result({"a": 1}, RunKey(run_source="local", run_id="7"))).event_id,
        made(RunReported(run=RUN, started_at="2026-01-01T00:00:00Z")).event_id,
        made(RunReported(run=RUN, started_at="2026-01-01T00:00:00Z", declared=True)).event_id,
    }
    assert len(ids) == 8


@given(objects)
def test_a_record_comes_back_from_the_log_as_it_was(record: dict[str, Any]) -> None:
    event = made(result(record))
    back = payload_of(event.event_type, event.payload)
    assert isinstance(back, ResultRecorded)
    assert canonical_json(back.record) == canonical_json(record)


@pytest.mark.parametrize(
    "payload",
    [
        RunReported(run=RUN, started_at="2026-01-01T00:00:00Z", name="Sweep"),
        RecordQuarantined(name="a.json", sha256="0" * 64, position="/0", reason="r"),
        CommitLanded(
            project="vllm",
            commit="a" * 40,
            parents=("b" * 40,),
            author_date="2026-01-01T00:00:00Z",
            committer_date="2026-01-01T00:00:00Z",
            title="t",
            pr=1,
            paths=("x.py",),
        ),
        ShiftReported(
            shift_id="s",
            revision=1,
            size_pct=-7.5,
            facts={"status": "suspected", "cells": 3, "coherent": True},
            from_measured_at=NOW,
            to_measured_at=NOW + timedelta(days=1),
        ),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_payloads_round_trip(payload: Payload) -> None:
    event = made(payload)
    assert event.event_type in PAYLOADS
    assert payload_of(event.event_type, event.payload) == payload


def test_an_event_of_an_unknown_type_says_what_to_do() -> None:
    with pytest.raises(StoreError, match="RunForgotten of version 1, which this shiftlog does not know; upgrade it"):
        payload_of("RunForgotten", "{}")


def test_nothing_can_be_changed_or_added() -> None:
    event = made(result({"a": 1}))
    with pytest.raises(ValidationError):
        event.payload = "{}"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Source(name="a", colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        ShiftReported(shift_id="s", revision=1, size_pct=math.nan, facts={}, from_measured_at=NOW, to_measured_at=NOW)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"a": math.inf}, "JSON compliant"),
        ({"a": [{"b": math.nan}]}, "JSON compliant"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate|unicode"),
        (nested(MAX_RECORD_DEPTH + 1), "nested deeper than 64 levels"),
        ({"a": "x" * MAX_RECORD_CHARACTERS}, "a record may have 4000000"),
    ],
    ids=["inf", "nan", "surrogate", "surrogate key", "deep", "long"],
)
def test_a_record_that_would_not_come_back_unchanged_is_refused(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        made(result(record))


def test_the_deepest_allowed_record_is_kept() -> None:
    event = made(result(nested(MAX_RECORD_DEPTH)))
    assert payload_of(event.event_type, event.payload) == result(nested(MAX_RECORD_DEPTH))


def test_text_about_a_source_never_costs_the_fact() -> None:
    source = Source(name="caf\udce9.json", position="\ud800 x")
    assert (source.name, source.position) == ("caf?.json", "? x")
    assert len(RecordQuarantined(name="n" * 99_999, sha256="", position="", reason="r" * 99_999).reason) == MAX_LABEL


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-12-31T06:10:00Z", datetime(2025, 12, 31, 6, 10, tzinfo=UTC)),
        ("2025-12-31T00:30:00+02:00", datetime(2025, 12, 30, 22, 30, tzinfo=UTC)),
        ("2025-12-31", datetime(2025, 12, 31, tzinfo=UTC)),
    ],
)
def test_instants_are_utc(text: str, instant: datetime) -> None:
    assert parse_instant(text, "started_at") == instant
    assert parse_instant(text, "started_at").tzinfo is UTC


@pytest.mark.parametrize("text", ["2025-12-31T06:10:00", "yesterday", "", "0001-01-01T00:00:00+14:00", "\ud800", None, 5])
def test_a_doubtful_time_is_refused_and_names_its_field(text: Any) -> None:
    with pytest.raises(InputError, match=r"^started_at: ") as refused:
        parse_instant(text, "started_at")
    assert "\n" not in str(refused.value)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)), st.integers(-12, 14))
def test_iso_and_parse_instant_agree(moment: datetime, hours: int) -> None:
    instant = moment.replace(tzinfo=timezone(timedelta(hours=hours)))
    text = iso(instant)
    assert text is not None
    assert text.endswith("Z")
    assert parse_instant(text, "t") == instant


def test_a_reason_is_one_line_whatever_a_stranger_wrote_into_it() -> None:
    fault = RecordQuarantined(
        name="a.json", sha256="a" * 64, position="/0", reason=" version: \n\n 7\r\u2028\tis \x0b not known\n"
    )
    assert fault.reason == "version: 7 is not known"
