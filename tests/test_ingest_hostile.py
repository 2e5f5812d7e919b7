"""What fuzzing found, one by one: side files, lists, keys that stand twice, secrets where no tool should write them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pipelines.ingest import values
from pipelines.ingest.declarations import checked, sidecar
from pipelines.ingest.excerpts import masked
from pipelines.ingest.json_text import Fault, items
from pipelines.ingest.reading import Given
from pipelines.ingest.tools import llmperf, unit_blocks
from pipelines.ingest.tools.inferencex_evals import API_FORMAT, clean_aggregate, read_aggregate
from pipelines.ingest.tools.inferencex_setup import without_hosts
from pipelines.ingest.tools.sglang_serving import clean as clean_sglang
from pipelines.ingest.tools.taming import without_private
from tests.fuzzing.promises import door
from tests.records import row
from tests.test_ingest_inferencex_evals import row as eval_row
from tests.test_ingest_llmperf import RESPONSES
from warehouse.errors import InputError

WHEN = {"measured_at": "2026-11-01T06:00:00Z"}
SECRET = "sk-SECRET"


@pytest.mark.parametrize("text", [r'model: "\ud800"', r'run_id: "a\0b"', r'image: "\udfff"'])
def test_a_side_file_declares_no_text_that_cannot_be_stored(text: str) -> None:
    with pytest.raises(InputError, match=r"shiftlog.yaml: (\w+: .*UTF-8|not YAML)"):
        sidecar(text.encode(), "shiftlog.yaml")
    with pytest.raises(InputError, match="--set: model: "):
        checked([("model", "x\udcff")], "--set")


@pytest.mark.parametrize(
    "data", [b"{" * 60_000, b"[" * 60_000, b"a: " * 20_000, b"- " * 30_000, b"\0" * 60_000, b"a: &a [*a]\n", b"a: !!x y"]
)
def test_a_side_file_is_refused_at_once(data: bytes) -> None:
    start = time.process_time()
    with pytest.raises(InputError, match=r"shiftlog.yaml: not YAML"):
        sidecar(data, "shiftlog.yaml")
    assert time.process_time() - start < 2


def test_a_hostile_side_file_in_an_archive_costs_what_lies_beside_it_and_nothing_else() -> None:
    outcome = door(
        {
            "a/shiftlog.yaml": b"{" * 1000,
            "a/agg.json": json.dumps([row(4)]).encode(),
            "b/agg.json": json.dumps([row(8)]).encode(),
        },
        WHEN,
    )
    assert [(fault.name, fault.reason.split(":")[0]) for fault in outcome.quarantined] == [("a/agg.json", "shiftlog.yaml")]
    assert outcome.read["ResultRecorded"] == 1


def test_a_list_of_responses_with_something_else_in_it_is_not_summed_up() -> None:
    for odd in (None, [RESPONSES[0]], Fault("line 3", "not JSON")):
        (found,) = llmperf.unpack([*RESPONSES, odd]) or ()
        assert isinstance(found, Fault)


@pytest.mark.parametrize("clean", [without_private, without_hosts, clean_aggregate, API_FORMAT.clean])
@pytest.mark.parametrize(
    "key", ["api_key", "apiKey", "HF_TOKEN", "server_info", "env", "hostname", "base_url", "cli_command", "headers"]
)
def test_what_a_fork_adds_of_its_machine_is_not_kept(clean: Any, key: str) -> None:
    for value in (SECRET, [SECRET], {"a": {"b": SECRET}}):
        assert clean({**row(4), key: value}) == row(4)
    if clean is not clean_aggregate:
        assert clean({"metrics": {"tp": 1, key: SECRET}}) == {"metrics": {"tp": 1}}


def test_a_text_in_a_block_of_numbers_is_not_kept() -> None:
    kept = unit_blocks.kept({"request_latency": {"unit": "ms", "avg": "x", "p99": 1.5, "environment": SECRET, "count": None}})
    assert kept == {"request_latency": {"unit": "ms", "avg": "x", "p99": 1.5, "count": None}}


def test_a_server_that_is_no_object_is_told_by_its_kind() -> None:
    assert clean_sglang({"server_info": f"--api-key {SECRET}"})["server_info"] == "(str)"


def test_half_a_surrogate_pair_is_told_by_field() -> None:
    with pytest.raises(InputError, match=r"spec_decoding: .* half a surrogate pair"):
        read_aggregate(eval_row(spec_decoding="\ud800"), Given())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1,"key":"sk-1","n":{"b":"x\\"y"}', '{"a":1,"key":"…","n":{"b":"…"}'),
        ('{"key":"sk-12', '{"key":"…"'),
        ("{'a': 'sk-1', 'b': 2}", "{'a': \"…\", 'b': 2}"),
        ("a: sk-1\nb: 2\n- c: /home/x\nd:\n", "a: …\nb: 2\n- …\nd:\n"),
        ("[1, 2.5, null", "[1, 2.5, null"),
    ],
)
def test_texts_are_left_out_of_excerpts(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_lines_are_split_as_ever() -> None:
    text = '{"a": 1}\r\n\n{"a": 2}\x85 \n{"b": "\u2028"}\nx'
    assert [item.position for item in items(text.encode())] == ["line 1", "line 3", "line 4", "line 5"]


def test_a_key_that_stands_twice_has_its_last_value_however_the_file_is_read() -> None:
    text = json.dumps(row(4))[:-1] + ', "conc": 8}'
    whole, lines = door({"a.json": f"[{text}]".encode()}, WHEN), door({"a.jsonl": f"{text}\n{text[:-1]}\n".encode()}, WHEN)
    payloads = [outcome.rows.filter(event_type="ResultRecorded")["payload"].to_list() for outcome in (whole, lines)]
    assert payloads[0] == payloads[1]
    assert '"conc":8' in payloads[0][0]


def test_very_many_tiny_objects() -> None:
    tiny = b",".join([b"{}"] * 100_000)
    assert door({"a.json": b"[" + tiny + b"]"}, WHEN).ignored == ["a.json (not a known format)"]
    outcome = door({"a.json": b"[" + json.dumps(row(4)).encode() + b"," + tiny + b"]"}, WHEN)
    assert (outcome.read["ResultRecorded"], len(outcome.quarantined)) == (1, 1001)


def test_more_values_than_are_read_are_refused_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, data, reason in (
        ("MAX_VALUES", b"[0,0,0,0,0]", "5 values in one file, at most 3 values are read"),
        ("MAX_COMMAS", b"[0,0,0,0,0]", "more than 3 values and keys in one file"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"pipelines.ingest.values.{limit}", 3)
            found = values.parsed(data)
            assert found is not None and [fault.reason.startswith(reason) for fault in found.values] == [True]
