"""JSON from strangers: whole, in lines, cut off, damaged, hostile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.ingest.json_text import EXCERPT, Fault, Item, items

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8
)
records = st.lists(st.dictionaries(st.text(max_size=6), values, max_size=4), max_size=6)
indents = st.sampled_from([None, 0, 2])


def read(text: str | bytes) -> tuple[list[Item], list[Fault]]:
    found = list(items(text.encode() if isinstance(text, str) else text))
    faults = [entry for entry in found if isinstance(entry, Fault)]
    for fault in faults:
        assert "\n" not in fault.reason
        assert len(fault.excerpt) <= EXCERPT
    return [entry for entry in found if isinstance(entry, Item)], faults


@given(records, indents, st.booleans())
def test_a_whole_array_is_its_elements(elements: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    found, faults = read(json.dumps(elements, indent=indent, ensure_ascii=ascii_only))
    assert not faults
    assert found == [Item(f"/{index}", element) for index, element in enumerate(elements)]


@given(records, indents, st.integers(0, 2000))
@example([{"a": 1}, {"b": 2}], None, 8)
@example([], None, 1)
def test_a_cut_array_gives_a_prefix_and_one_fault(elements: list[dict[str, Any]], indent: int | None, cut: int) -> None:
    text = json.dumps(elements, indent=indent)
    cut = min(cut, len(text))
    found, faults = read(text[:cut])
    assert [item.value for item in found] == elements[: len(found)]
    assert [item.position for item in found] == [f"/{index}" for index in range(len(found))]
    assert len(faults) == (0 if cut == len(text) else 1)
    whole = [end for index in range(len(elements)) if (end := len(json.dumps(elements[: index + 1])) - 1) <= cut]
    if indent is None:
        assert len(found) == len(whole)  # every element that is wholly there is kept


@given(
    st.lists(st.dictionaries(st.text(max_size=6), values, max_size=4), min_size=2, max_size=6), st.integers(0, 6), st.booleans()
)
def test_a_bad_line_costs_only_itself(elements: list[dict[str, Any]], place: int, ascii_only: bool) -> None:
    lines = [json.dumps(element, ensure_ascii=ascii_only) for element in elements]
    place = min(place, len(lines))
    found, faults = read("\n".join([*lines[:place], '{"a": ', *lines[place:]]) + "\n")
    assert [item.value for item in found] == elements
    assert [fault.position for fault in faults] == [f"line {place + 1}"]
    assert [item.position for item in found] == [f"line {index + 1 + (index >= place)}" for index in range(len(elements))]


@given(st.binary(max_size=300))
def test_any_bytes_are_items_or_faults(data: bytes) -> None:
    found, faults = read(data)
    assert found or faults or json.loads(data) == []


@given(st.text(alphabet='[]{},:"\\0123 \n\tabeEnulltrue.-\ud7ff', max_size=60))
def test_text_that_is_almost_json_never_loses_anything_silently(text: str) -> None:
    found, faults = read(text)
    try:
        value = json.loads(text)
    except ValueError:
        is_lines = all(is_json(line) for line in text.split("\n") if line.strip())
        assert faults or (is_lines and len(found) > 1)
    else:
        assert not faults
        assert [item.value for item in found] == (value if isinstance(value, list) else [value])


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_one_object_is_one_item() -> None:
    assert read('{"a": 1}') == ([Item("", {"a": 1})], [])
    assert read('\n{\n "a": 1\n}\n') == ([Item("", {"a": 1})], [])


def test_blank_lines_do_not_shift_the_count() -> None:
    assert read('{"a":1}\r\n\r\n\n{"a":2}\r\n')[0] == [Item("line 1", {"a": 1}), Item("line 4", {"a": 2})]


def test_only_line_feeds_end_a_line() -> None:
    """U+2028, U+0085 and their like are ordinary characters inside a JSON string (RFC 8259, section 7)."""
    found, faults = read('{"a":"x\u2028y"}\n{"a":"x\u0085\u2029y"}\n')
    assert not faults
    assert [item.value["a"] for item in found] == ["x\u2028y", "x\u0085\u2029y"]


@pytest.mark.parametrize(
    ("text", "kept", "reason"),
    [
        ('[{"a":1} {"a":2}]', 1, "Expecting ',' delimiter"),
        ('[{"a":1},]', 1, "cut off or damaged"),
        ('[{"a":1},,{"a":2}]', 1, "cut off or damaged"),
        ('[,{"a":1}]', 0, "cut off or damaged"),
        ('[{"a":1}]]', 1, "more text behind the array"),
        ('[{"a":1}][{"a":2}]', 1, "more text behind the array"),
        ('[{"a":1},{"a":' + "9" * 5000 + "}]", 1, "Exceeds the limit"),
        ('[{"a":1},{"b":' + "[" * 100_000, 1, "nested too deeply"),
        ('{"a": 1', 0, "not JSON"),
        ("hello", 0, "not JSON"),
        ("", 0, "empty file"),
        (" \n ", 0, "empty file"),
    ],
)
def test_damage_is_said_and_the_whole_elements_before_it_are_kept(text: str, kept: int, reason: str) -> None:
    found, faults = read(text)
    assert len(found) == kept
    assert [reason in fault.reason for fault in faults] == [True]


def test_a_cut_object_of_many_lines_is_one_fault() -> None:
    text = json.dumps({f"key{number}": number for number in range(500)}, indent=1)[:-10]
    found, faults = read(text)
    assert not found
    assert len(faults) == 1
    assert faults[0].excerpt == text[:EXCERPT]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a":1}\n' + "[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_depth_is_a_fault_and_not_a_crash(text: str) -> None:
    _, faults = read(text)
    assert len(faults) == 1
    assert "nested too deeply" in faults[0].reason


def test_nan_and_infinity_stay_with_their_record() -> None:
    found, faults = read('[{"a": NaN}, {"a": 1}, {"a": [-Infinity, Infinity]}]')
    assert not faults
    assert [item.value for item in found] == [{"a": "NaN"}, {"a": 1}, {"a": ["-Infinity", "Infinity"]}]


def test_byte_order_marks() -> None:
    assert read(b"\xef\xbb\xbf[{}]") == ([Item("/0", {})], [])
    for encoding in ("utf-16", "utf-32"):
        found, faults = read('[{"a":"é"}]'.encode(encoding))
        assert not found
        assert [fault.reason for fault in faults] == ["not UTF-8 text; save it as UTF-8"]


def test_latin_1_is_a_fault_with_its_place() -> None:
    assert read('["é"]'.encode("latin-1"))[1] == [Fault("byte 2", "not UTF-8 text; save it as UTF-8")]


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    assert read('{"a": 1, "b": 2, "a": 3}')[0] == [Item("", {"a": 3, "b": 2})]


def test_half_a_surrogate_pair_is_passed_on_for_the_record_to_be_refused() -> None:
    assert read('{"a": "\\ud800"}')[0] == [Item("", {"a": "\ud800"})]
    assert read('{"a": "\\ud835\\udd4a"}')[0] == [Item("", {"a": "𝕊"})]
