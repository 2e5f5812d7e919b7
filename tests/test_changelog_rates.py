"""Rates: price lists of users and strangers to facts, and the time in which each holds."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changelog import rates as rates_module
from changelog.facts import UpstreamFact, UpstreamFault
from changelog.files import recognise
from changelog.rates import decimal_of, holding
from changelog.tables import bring_tables, fold, read_table
from pipelines import following, projections
from pipelines.announcing import silent
from pipelines.following import Follower
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from pipelines.verification import verify
from tests.lengths import either
from warehouse.errors import InputError
from warehouse.events import Event, RateChanged, Source, event_of
from warehouse.log import EventLog, frame_of
from warehouse.schemas import RATES
from warehouse.store import Store

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
APRIL, AUGUST = datetime(2026, 4, 3, tzinfo=UTC), datetime(2026, 8, 15, tzinfo=UTC)
TAKEN = datetime(2025, 1, 28, tzinfo=UTC)

TWO_VINTAGES = b"""\
gpu,tier,usd_per_gpu_hour,kw,valid_from,valid_to,source
H100,hyperscaler,1.30,1.73,2026-04-03,,public tiers of April
H100,neocloud,1.69,1.73,2026-04-03,,public tiers of April
H100,rental,1.30,1.73,2026-04-03,,public tiers of April
H100,hyperscaler,1.17,1.37,2026-08-15,,public tiers of August
H100,neocloud,1.55,1.37,2026-08-15,,public tiers of August
H100,rental,1.78,1.37,2026-08-15,,public tiers of August
B300,neocloud,2.808,2.17,2026-04-03T00:00:00Z,,
"""
AS_YAML = b"""\
# what we pay
rates:
  - gpu: H100
    usd_per_gpu_hour: {hyperscaler: 1.30, neocloud: 1.69, rental: 1.30}
    kw: 1.73
    valid_from: 2026-04-03
    source: public tiers of April
  - gpu: h100
    usd_per_gpu_hour:
      hyperscaler: 1.17
      neocloud: 1.55
      rental: 1.78
    kw: 1.37
    valid_from: 2026-08-15
    source: public tiers of August
  - {tier: neocloud, gpu: B300, usd_per_gpu_hour: 2.808, kw: 2.17, valid_from: "2026-04-03T00:00:00Z", valid_to: ~}
"""
LITELLM: dict[str, Any] = {
    "sample_spec": {
        "max_tokens": "set to max_output_tokens",
        "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0,
        "litellm_provider": "one of the providers",
        "mode": "one of chat, embedding",
    },
    "acme/chat-1": {
        "input_cost_per_token": 1.4e-07,
        "input_cost_per_token_cache_hit": 1.4e-08,
        "cache_read_input_token_cost": 1.4e-08,
        "cache_creation_input_token_cost": 0.0,
        "output_cost_per_token": 2.8e-07,
        "output_cost_per_token_above_200k_tokens": 5.6e-07,
        "output_cost_per_token_batches": 1.4e-07,
        "input_cost_per_audio_token": 1e-04,
        "input_cost_per_character": 5e-07,
        "litellm_provider": "Acme",
        "source": "https://example.invalid/prices",
        "deprecation_date": "2026-01-01",
        "max_tokens": 8192,
    },
    "acme/free-1": {"input_cost_per_token": 0, "output_cost_per_token": 0.0, "litellm_provider": "acme"},
    "acme/picture-1": {"input_cost_per_pixel": 1.9e-08, "litellm_provider": "acme"},
}
OPENROUTER: dict[str, Any] = {
    "data": {
        "id": "acme/chat-1",
        "name": "Acme: Chat 1",
        "created": 1692901234,
        "endpoints": [
            {
                "name": "DeepHost | acme/chat-1",
                "provider_name": "DeepHost",
                "tag": "deephost/fp8",
                "quantization": "fp8",
                "pricing": {
                    "prompt": "0.00000014",
                    "completion": "0.0000002800",
                    "request": "0",
                    "image": "0.001",
                    "input_cache_read": "0",
                    "internal_reasoning": "0",
                    "discount": 0,
                    "overrides": [{"prompt": "0.5"}],
                },
                "uptime_last_30m": 99.5,
                "latency_last_30m": {"p50": 0.25},
            },
            {"provider_name": "Router", "tag": "router", "pricing": {"prompt": "-1", "completion": "-1"}},
            {"provider_name": "Gift", "pricing": {"prompt": "0", "completion": 0}, "quantization": "unknown"},
        ],
    }
}
Told = UpstreamFact | UpstreamFault


def read(data: bytes, declared_at: datetime | None = None, name: str = "rates.txt") -> list[Told]:
    reader = recognise(data)
    assert reader is not None
    return list(reader.read(name, data, declared_at=declared_at))


def payloads(told: list[Told]) -> list[RateChanged]:
    assert all(isinstance(one, UpstreamFact) for one in told), told
    return [one.payload for one in told if isinstance(one, UpstreamFact) and isinstance(one.payload, RateChanged)]


def reasons(told: list[Told]) -> list[str]:
    return [one.reason for one in told if isinstance(one, UpstreamFault)]


def rows(*lines: str, head: str = "gpu,tier,usd_per_gpu_hour,kw,valid_from,valid_to,revision") -> bytes:
    return "\n".join((head, *lines)).encode() + b"\n"


def table(*files: bytes, declared_at: datetime | None = None) -> pl.DataFrame:
    """Return the table that *files*, read in this order, give."""
    told = [fact for data in files for fact in payloads(read(data, declared_at))]
    return fold(logged([event(payload) for payload in told]), RATES)


def logged(events: list[Event]) -> pl.DataFrame:
    """Return the rows of the log: an event that is there already is not put in again."""
    return frame_of(list({one.event_id: one for one in events}.values()))


def event(payload: RateChanged, hour: int = 0) -> Event:
    when = datetime.fromisoformat(payload.valid_from)
    return event_of(payload, occurred_at=when, recorded_at=NOW + timedelta(hours=hour), source=Source(name="t"))


def test_two_vintages_of_one_price_list() -> None:
    """Prices from the notes on a public registry: rental of an H100 rose while its power figure fell."""
    frame = table(TWO_VINTAGES).filter(pl.col("name") == "h100")
    assert frame.select("kind", "tier", "value", "unit", "valid_from", "valid_to").rows() == [
        ("gpu_hour", "hyperscaler", 1.30, "USD/GPU/h", APRIL, AUGUST),
        ("gpu_hour", "hyperscaler", 1.17, "USD/GPU/h", AUGUST, None),
        ("gpu_hour", "neocloud", 1.69, "USD/GPU/h", APRIL, AUGUST),
        ("gpu_hour", "neocloud", 1.55, "USD/GPU/h", AUGUST, None),
        ("gpu_hour", "rental", 1.30, "USD/GPU/h", APRIL, AUGUST),
        ("gpu_hour", "rental", 1.78, "USD/GPU/h", AUGUST, None),
        ("gpu_power", None, 1.73, "kW/GPU", APRIL, AUGUST),
        ("gpu_power", None, 1.37, "kW/GPU", AUGUST, None),
    ]
    assert frame["source"].unique().sort().to_list() == ["public tiers of April", "public tiers of August"]


def test_a_cost_takes_the_rate_that_held_when_it_was_measured() -> None:
    """1,000 tok/s/GPU are 3.6 M tokens a GPU-hour: 1.30 / 3.6 = 0.361 and 1.78 / 3.6 = 0.494 USD per million."""
    frame = table(TWO_VINTAGES).filter(pl.col("name") == "h100", pl.col("tier") == "rental")
    cost = {
        day: holding(frame, datetime(2026, *day, tzinfo=UTC))["value"].item() / 3.6 for day in ((4, 3), (8, 14), (8, 15), (12, 1))
    }
    assert {day: round(value, 3) for day, value in cost.items()} == {
        (4, 3): 0.361,
        (8, 14): 0.361,
        (8, 15): 0.494,
        (12, 1): 0.494,
    }
    assert holding(frame, datetime(2026, 4, 2, 23, 59, tzinfo=UTC)).is_empty(), "nobody knows what it cost before"


def test_a_fact_of_a_row() -> None:
    first, power, *_ = read(TWO_VINTAGES)
    assert isinstance(first, UpstreamFact) and isinstance(power, UpstreamFact)
    assert first.payload == RateChanged(
        kind="gpu_hour",
        name="h100",
        tier="hyperscaler",
        value="1.3",
        unit="USD/GPU/h",
        valid_from="2026-04-03T00:00:00Z",
        evidence="own",
        source="public tiers of April",
    )
    assert (first.occurred_at, first.published_at, first.position) == (APRIL, None, "line 2")
    assert first.payload.subject == "rate:gpu_hour/h100"
    assert isinstance(power.payload, RateChanged)
    assert (power.payload.kind, power.payload.tier, power.payload.value) == ("gpu_power", None, "1.73")
    assert len(payloads(read(TWO_VINTAGES))) == 7 + 3, "the power of three tiers is one figure"


def test_yaml_says_the_same_as_csv() -> None:
    key = lambda payload: (payload.kind, payload.name, payload.tier or "", payload.valid_from)  # noqa: E731
    assert sorted(payloads(read(AS_YAML)), key=key) == sorted(payloads(read(TWO_VINTAGES)), key=key)


def test_a_stated_end_leaves_a_gap_and_the_next_start_ends_what_goes_on() -> None:
    frame = table(
        rows(
            "h200,rental,2.05,,2026-01-01,2026-02-01,",
            "h200,rental,1.60,,2026-03-01,2026-12-31,",
            "h200,rental,1.70,,2026-06-01,,",
        )
    )
    assert frame.select("value", "valid_from", "valid_to").rows() == [
        (2.05, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)),
        (1.60, datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)),
        (1.70, datetime(2026, 6, 1, tzinfo=UTC), None),
    ]
    assert holding(frame, datetime(2026, 2, 15, tzinfo=UTC)).is_empty()
    assert holding(frame, datetime(2026, 2, 1, tzinfo=UTC)).is_empty(), "the end is not part of the time"


def test_a_correction_raises_the_revision_in_whatever_order_it_is_read() -> None:
    wrong, right = rows("h200,,20.5,,2026-01-01,,"), rows("h200,,2.05,,2026-01-01,,1")
    for files in ((wrong, right), (right, wrong)):
        frame = table(*files)
        assert frame.select("value", "statements").rows() == [(2.05, 2)]


def test_without_a_revision_the_last_statement_counts_and_the_contradiction_shows() -> None:
    assert table(rows("h200,,20.5,,2026-01-01,,"), rows("h200,,2.05,,2026-01-01,,")).select("value", "statements").rows() == [
        (2.05, 2)
    ]


def test_a_file_that_contradicts_itself_is_told() -> None:
    told = read(rows("h200,rental,2.05,1.37,2026-01-01,,", "H200,Rental,2.06,1.37,2026-01-01,,", "h200,rental,2.1,,2026-02-01,,"))
    assert reasons(told) == [
        "rates.txt: line 3: gpu_hour h200 rental from 2026-01-01T00:00:00Z: line 2 says 2.05 for the same time; keep one of them"
    ]
    assert [one.payload.value for one in told if isinstance(one, UpstreamFact)] == ["2.05", "1.37", "2.1"]  # type: ignore[union-attr]


def test_rates_without_a_date_take_the_declared_one_or_ask_for_it() -> None:
    data = rows("h200,rental,2.05,,,,", "h200,rental,2.10,,2026-02-01,,")
    assert [payload.valid_from for payload in payloads(read(data, TAKEN))] == ["2025-01-28T00:00:00Z", "2026-02-01T00:00:00Z"]
    (reason,) = reasons(read(data))
    assert reason.startswith("rates.txt: line 2: valid_from:") and "--measured-at" in reason


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("h200,,1,,2026-01-01T00:00:00,,", "valid_from"),
        ("h200,,1,,15/08/2026,,", "valid_from"),
        ("h200,,1,,0202-08-15,,", "valid_from"),
        ("h200,,1,,2026-01-02,2026-01-02,", "valid_to"),
        ("h200,,0,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,-1,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,$1.78,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,1e9,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,1e-999,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,nan,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,inf,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,١,,2026-01-01,,", "usd_per_gpu_hour"),
        ("h200,,,700,2026-01-01,,", "write 700 W as 0.7"),
        ("h200,,,0,2026-01-01,,", "kw"),
        ("h200,rental,,,2026-01-01,,", "both are empty"),
        (",,1,,2026-01-01,,", "gpu"),
        ("h200," + "x" * 81 + ",1,,2026-01-01,,", "tier"),
        ("h200,,1,,2026-01-01,,-1", "revision"),
        ("h200,,1,,2026-01-01,,1.5", "revision"),
        ("h200,,1,,2026-01-01", "5 cells, but the header has 7"),
    ],
)
def test_a_bad_row_is_told_and_its_neighbours_go_in(line: str, field: str) -> None:
    told = read(rows("h100,,1.5,,2026-01-01,,", line, "b200,,2.5,,2026-01-01,,"))
    assert [type(one).__name__ for one in told] == ["UpstreamFact", "UpstreamFault", "UpstreamFact"]
    (reason,) = reasons(told)
    assert field in reason and "line 3" in reason


def test_fields_that_are_not_known_refuse_the_file() -> None:
    """An end that nobody reads would leave a rate standing for ever."""
    with pytest.raises(InputError, match=r"rates\.txt: field 'valid_until' is not known; known are gpu, provider, tier"):
        read(b"gpu,usd_per_gpu_hour,valid_from,valid_until\nh100,1,2026-01-01,2026-02-01\n")
    with pytest.raises(InputError, match="stands twice"):
        read(b"gpu,kw,kw,valid_from\nh100,1,2,2026-01-01\n")
    (reason,) = reasons(read(b"rates:\n  - gpu: h100\n    kw: 1\n    valid_from: 2026-01-01\n    until: 2026-02-01\n"))
    assert "'until' is not known" in reason


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("rates:\n  - &a {gpu: h100, kw: 1}\n  - *a\n", "alias"),
        ("rates:\n  - gpu: h100\n    kw: 1\n    kw: 2\n", "stands twice"),
        ("rates:\n  gpu: h100\n  kw: 1\n", "must be a list"),
        ("rates:\n  - gpu: h100\n    kw: [1\n", "not YAML"),
        ("rates:\n  - gpu: h100\n    kw: " + "[" * 50 + "]" * 50 + "\n", "nested deeper"),
        ("rates:\n  - gpu: h100\n    kw: 1\nother: 1\n", "'other' is not known"),
        ("rates:\n  - gpu: h100\n    kw: 1\n---\nrates: []\n", "not YAML"),
    ],
)
def test_yaml_that_is_none_of_ours_refuses_the_file(text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read(text.encode(), TAKEN)


def test_yaml_entries_are_told_one_by_one() -> None:
    told = read(
        b"rates:\n"
        b"  - {gpu: h100, kw: 1.10}\n"
        b"  - just text\n"
        b"  - {gpu: [h100], kw: 1}\n"
        b"  - {gpu: h100, tier: rental, usd_per_gpu_hour: {rental: 1}}\n"
        b"  - {gpu: h100, usd_per_gpu_hour: {rental: cheap}}\n"
        b"  - {gpu: !!python/object:os.system h100, kw: 0x1}\n"
        b"  - {gpu: b200, kw: 2, valid_from: 2026-01-01}\n",
        TAKEN,
    )
    assert [one.position for one in told if isinstance(one, UpstreamFault)] == [f"entry {n}" for n in (2, 3, 4, 5, 6)]
    facts = [one.payload for one in told if isinstance(one, UpstreamFact) and isinstance(one.payload, RateChanged)]
    assert [(fact.name, fact.value, fact.valid_from) for fact in facts] == [
        ("h100", "1.1", "2025-01-28T00:00:00Z"),
        ("b200", "2", "2026-01-01T00:00:00Z"),
    ]


def test_a_price_map_of_litellm() -> None:
    data = json.dumps(LITELLM, indent=4).encode()
    told = payloads(read(data, TAKEN))
    assert {(one.name, one.provider, one.charge, one.tier): one.value for one in told} == {
        ("acme/chat-1", "acme", "input", None): "0.00000014",
        ("acme/chat-1", "acme", "output", None): "0.00000028",
        ("acme/chat-1", "acme", "output", "above_200k_tokens"): "0.00000056",
        ("acme/chat-1", "acme", "output", "batches"): "0.00000014",
        ("acme/chat-1", "acme", "cache_read", None): "0.000000014",
        ("acme/chat-1", "acme", "cache_write", None): "0",
        ("acme/free-1", "acme", "input", None): "0",
        ("acme/free-1", "acme", "output", None): "0",
    }
    assert len(told) == 8, "the old and the new name of one price are one"
    assert {(one.unit, one.evidence, one.valid_from, one.valid_to) for one in told} == {
        ("USD/token", "litellm", "2025-01-28T00:00:00Z", None)
    }
    assert told[0].source == "https://example.invalid/prices"
    assert payloads(read(json.dumps(LITELLM).encode(), TAKEN)) == told, "on one line or on many"


def test_prices_by_the_length_of_a_prompt_are_tiers_however_they_are_written() -> None:
    spans = [
        {"range": [0, 256000.0], "input_cost_per_token": 5e-08, "output_cost_per_token": 4e-07},
        {"range": [256000.0, 1000000.0], "input_cost_per_token": 2.5e-07, "deep": 1},
        {"range": "all", "input_cost_per_token": 9},
        {"range": [True], "input_cost_per_token": 9},
        3,
    ]
    entry = {"litellm_provider": "acme", "tiered_pricing": spans, "input_cost_per_token_ultrafast": 1e-6, "off_peak_pricing": {}}
    told = payloads(read(json.dumps({"acme/long-1": entry}).encode(), TAKEN))
    assert {(one.charge, one.tier): one.value for one in told} == {
        ("input", None): "0.00000005",
        ("output", None): "0.0000004",
        ("input", "above_256k_tokens"): "0.00000025",
        ("input", "ultrafast"): "0.000001",
    }


def test_prices_of_strangers_that_cannot_be_are_told_one_by_one() -> None:
    bad = {
        "acme/per-thousand": {"input_cost_per_token": 0.0032, "output_cost_per_token": 1e-6, "litellm_provider": "acme"},
        "acme/text": {"input_cost_per_token": "see the page", "output_cost_per_token": "0.000002", "litellm_provider": "acme"},
        "acme/bool": {"input_cost_per_token": True, "output_cost_per_token": None, "litellm_provider": "acme"},
        "acme/odd": {"input_cost_per_token": 1e-6, "litellm_provider": ["acme"]},
        "acme/none": 3,
        "x" * 201: {"input_cost_per_token": 1e-6, "litellm_provider": "acme"},
    }
    told = read(json.dumps(LITELLM | bad).encode(), TAKEN)
    assert [one.position[:20] for one in told if isinstance(one, UpstreamFault)] == [
        "acme/per-thousand",
        "acme/text",
        "acme/bool",
        "acme/odd",
        "acme/none",
        "x" * 20,
    ]
    assert "per thousand" in reasons(told)[0]
    assert sum(isinstance(one, UpstreamFact) for one in told) == 8 + 2


def test_endpoints_of_openrouter() -> None:
    told = payloads(read(json.dumps(OPENROUTER).encode(), TAKEN))
    assert [(one.name, one.provider, one.tier, one.charge, one.value) for one in told] == [
        ("acme/chat-1", "deephost", "fp8", "input", "0.00000014"),
        ("acme/chat-1", "deephost", "fp8", "output", "0.00000028"),
        ("acme/chat-1", "router", None, "input", None),
        ("acme/chat-1", "router", None, "output", None),
        ("acme/chat-1", "gift", None, "input", "0"),
        ("acme/chat-1", "gift", None, "output", "0"),
    ]
    assert {one.valid_from for one in told} == {"2025-01-28T00:00:00Z"}, "`created` is the model's day, not the price's"
    assert payloads(read(json.dumps(OPENROUTER["data"], indent=1).encode(), TAKEN)) == told


def test_endpoints_that_cannot_be_read_are_told() -> None:
    broken = [
        {"provider_name": "A", "tag": "a", "pricing": {"prompt": "free", "completion": "0.000001"}},
        {"provider_name": "B", "tag": "b", "pricing": {"prompt": "-2", "completion": None}},
        {"provider_name": "C", "tag": "c"},
        {"provider_name": "D", "tag": "d", "pricing": {"image": "0.1"}},
        "endpoint",
    ]
    value = {"data": {**OPENROUTER["data"], "endpoints": [*OPENROUTER["data"]["endpoints"], *broken]}}
    told = read(json.dumps(value).encode(), TAKEN)
    assert [one.position for one in told if isinstance(one, UpstreamFault)] == [f"endpoint {n}" for n in (4, 5, 6, 7, 8)]
    assert sum(isinstance(one, UpstreamFact) for one in told) == 6 + 1


def test_a_price_that_becomes_dynamic_ends_the_fixed_one() -> None:
    later = json.loads(json.dumps(OPENROUTER))
    later["data"]["endpoints"][0]["pricing"] = {"prompt": "-1", "completion": "-1"}
    facts = payloads(read(json.dumps(OPENROUTER).encode(), TAKEN)) + payloads(read(json.dumps(later).encode(), APRIL))
    frame = fold(logged([event(one) for one in facts]), RATES).filter(
        pl.col("provider") == "deephost", pl.col("charge") == "input"
    )
    assert frame.select("value", "valid_from", "valid_to").rows() == [(1.4e-07, TAKEN, APRIL), (None, APRIL, None)]


@pytest.mark.parametrize("value", [LITELLM, OPENROUTER], ids=["litellm", "openrouter"])
def test_a_price_list_without_a_date_asks_for_it(value: Any) -> None:
    with pytest.raises(InputError, match=r"rates\.txt: valid_from: .*--measured-at"):
        read(json.dumps(value).encode())


def test_price_lists_do_not_end_each_others_rates() -> None:
    told = payloads(read(json.dumps(LITELLM).encode(), TAKEN)) + payloads(read(json.dumps(OPENROUTER).encode(), APRIL))
    frame = fold(logged([event(one) for one in told]), RATES)
    assert frame["valid_to"].null_count() == frame.height == 8 + 6


def test_a_stranger_cannot_fill_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates_module, "MAX_RATES", 2)
    told = read(rows(*(f"gpu{number},,1,,2026-01-01,," for number in range(5))))
    assert [type(one).__name__ for one in told] == ["UpstreamFact", "UpstreamFact", "UpstreamFault"]
    assert "more than 2 rates" in reasons(told)[0]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\xef\xbb\xbfGPU,usd_per_gpu_hour\r\nh100,1\r\n", "gpu-rates-csv"),
        (b"\n\nkw,gpu\n1,h100\n", "gpu-rates-csv"),
        (b'"gpu","kw"\n', "gpu-rates-csv"),
        (b"rates: # ours\n- gpu: h100\n  kw: 1\n", "gpu-rates-yaml"),
        (b"gpu,ttft\nh100,1\n", None),
        (b"model,usd_per_gpu_hour\n", None),
        (b"gpu;usd_per_gpu_hour\n", None),
        (b"rates:\n- name: x\n", None),
        (b"gpu: h100\nkw: 1\n", None),
        (b"# gpu, kw\n", None),
        (b'{"a": {"litellm_provider": "x"}, "b": 1, "c": 2}', None),
        (b'{"litellm_provider": "x"}', None),
        (b'{"id": "x", "endpoints": []}', None),
        (b'{"id": "x", "endpoints": [{"provider_name": "a"}]}', None),
    ],
)
def test_recognition(data: bytes, name: str | None) -> None:
    reader = recognise(data)
    assert (reader.name if reader else None) == name


def test_commit_lines_with_the_words_of_a_price_list_stay_commit_lines() -> None:
    line = {"hash": "a" * 40, "parents": [], "author_date": "2026-01-01", "committer_date": "2026-01-01", "subject": "s"}
    data = "".join(json.dumps(line | {"provider_name": "x"}) + "\n" for _ in range(2)).encode()
    reader = recognise(data)
    assert reader is not None and reader.name == "upstream-commits"


@pytest.mark.parametrize(
    ("amount", "number"),
    [("0.00000014", "1.4E-7"), (1.4e-07, "1.4E-7"), ("1.", "1"), (" 2 ", "2"), ("+1e-6", "0.000001"), (0, "0"), ("-1", "-1")],
)
def test_numbers(amount: object, number: str) -> None:
    assert str(decimal_of(amount, "f")) == number or decimal_of(amount, "f") == decimal_of(number, "f")


Values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["-1", "1e-7", "NaN", "1e999", "0", "h100", "2026-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def sound(told: list[Told]) -> None:
    """Whatever is told can be kept, and folds."""
    facts = [one.payload for one in told if isinstance(one, UpstreamFact)]
    rates = [one for one in facts if isinstance(one, RateChanged)]
    assert len(rates) == len(facts)
    for one in told:
        assert "\n" not in (one.reason if isinstance(one, UpstreamFault) else one.position)
    frame = fold(logged([event(one) for one in rates]), RATES)
    assert frame.schema == RATES.schema and frame["value"].is_finite().all()


@given(
    Values,
    st.sampled_from(["input_cost_per_token", "output_cost_per_token_batches", "litellm_provider", "source", "tiered_pricing"]),
)
def test_any_value_in_a_price_map_is_a_fact_or_a_fault(value: Any, field: str) -> None:
    entry = {"input_cost_per_token": 1e-6, "litellm_provider": "a"}
    data = json.dumps({"m": entry, "n": entry | {field: value}, "o": value}).encode("utf-8", "surrogatepass")
    sound(read(data, TAKEN))


@given(Values, st.sampled_from(["provider_name", "tag", "quantization", "pricing", "prompt", "completion", "input_cache_read"]))
def test_any_value_in_an_endpoint_is_a_fact_or_a_fault(value: Any, field: str) -> None:
    good = {"provider_name": "a", "pricing": {"prompt": "0.000001"}}
    inside = field in ("prompt", "completion", "input_cache_read")
    changed = good | {"pricing": {"prompt": "0.000001", field: value}} if inside else good | {field: value}
    sound(read(json.dumps({"id": "m", "endpoints": [good, changed, value]}).encode(), TAKEN))


@given(st.lists(st.lists(st.text(max_size=12), min_size=4, max_size=4), max_size=4), st.text(max_size=60))
def test_any_text_in_a_table_is_facts_and_faults(cells: list[list[str]], tail: str) -> None:
    lines = "\n".join(",".join(row) for row in cells)
    sound(read(f"gpu,tier,kw,valid_from\nh100,,1,2026-01-01\n{lines}\n{tail}".encode("utf-8", "surrogatepass"), TAKEN))


@given(st.text(alphabet="-:{}[]&*!|>#\"'\n abrgpukw10~", max_size=60))
def test_any_text_in_a_yaml_is_facts_and_faults_or_refused(tail: str) -> None:
    try:
        sound(read(f"rates:\n  - gpu: h100\n    kw: 1\n{tail}".encode(), TAKEN))
    except InputError as error:
        assert str(error).startswith("rates.txt: ")


STARTS = [f"2026-0{month}-01T00:00:00Z" for month in (1, 2, 3, 4)]
Rates = st.builds(
    RateChanged,
    kind=st.just("gpu_hour"),
    name=st.sampled_from(["h100", "h200"]),
    tier=st.sampled_from([None, "rental"]),
    value=st.sampled_from([None, "1", "1.5", "2"]),
    unit=st.just("USD/GPU/h"),
    valid_from=st.sampled_from(STARTS),
    valid_to=st.none() | st.sampled_from(["2026-04-15T00:00:00Z", "2027-01-01T00:00:00Z"]),
    evidence=st.just("own"),
    revision=st.integers(0, 2),
)


@given(st.lists(Rates, max_size=10, unique_by=lambda one: (one.name, one.tier, one.valid_from, one.revision)), st.randoms())
def test_the_order_of_reading_is_no_matter(told: list[RateChanged], random: Any) -> None:
    """Of statements that do not contradict each other; and at any instant one rate of a thing holds, the one that should."""
    frame = fold(logged([event(one) for one in told]), RATES)
    random.shuffle(told)
    assert fold(logged([event(one) for one in told]), RATES).equals(frame)
    for month in (1, 2, 3, 4, 5):
        at = datetime(2026, month, 10, tzinfo=UTC)
        now = holding(frame, at)
        assert not now.select("name", "tier").is_duplicated().any()
        assert {(row["name"], row["tier"]): row["value"] for row in now.iter_rows(named=True)} == _expected(told, at)


def _expected(told: list[RateChanged], at: datetime) -> dict[tuple[str, str | None], float | None]:
    """Say what holds at an instant: the latest start, its highest revision, unless that one has ended."""
    found = {}
    for thing in {(one.name, one.tier) for one in told}:
        begun = [one for one in told if (one.name, one.tier) == thing and datetime.fromisoformat(one.valid_from) <= at]
        last = max(begun, key=lambda one: (one.valid_from, one.revision), default=None)
        if last is not None and (last.valid_to is None or datetime.fromisoformat(last.valid_to) > at):
            found[thing] = None if last.value is None else float(last.value)
    return found


def anew(log: EventLog) -> pl.DataFrame:
    """Return the table as it follows from the log alone, in the order in which a store reads it."""
    return read_table(log, "rates").sort(RATES.order, maintain_order=True)


@settings(max_examples=either(4, 20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.lists(Rates, max_size=4), min_size=1, max_size=4))
def test_step_by_step_the_table_is_that_made_at_once(tmp_path_factory: pytest.TempPathFactory, batches: list[Any]) -> None:
    log = EventLog(Store(str(tmp_path_factory.mktemp("steps") / "warehouse")))
    for hour, batch in enumerate(batches):
        log.append([event(one, hour) for one in batch])
        bring_tables(log)
        assert log.store.read("rates").equals(anew(log))
    before = log.store.read("rates")
    bring_tables(log, force=True)
    assert log.store.read("rates").equals(before)


def put(folder: Path, name: str, data: bytes) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return str(folder / name)


def take(log: EventLog, tmp_path: Path, path: str, declared: Declared | None = None, fold: Any = None) -> None:
    told = declared or Declared()
    ingest(log, (path,), told, recorded_at=NOW, mirrors=tmp_path / "mirrors", announce=silent, fold=fold)


def test_a_price_list_goes_into_a_warehouse_and_comes_out_of_it(log: EventLog, tmp_path: Path) -> None:
    take(log, tmp_path, put(tmp_path / "in", "rates.csv", TWO_VINTAGES))
    assert "rates" in following.refresh(log) and following.refresh(log) == []
    frame = log.store.read("rates")
    assert frame.height == 10 and frame.equals(anew(log))
    assert frame.filter(pl.col("valid_to").is_null()).height == 3 + 1 + 2
    take(log, tmp_path, put(tmp_path / "in", "same.yaml", AS_YAML))
    assert "rates" not in following.refresh(log), "the same rates in another file are nothing new"
    take(log, tmp_path, put(tmp_path / "in", "next.csv", rows("b300,neocloud,2.52,,2026-08-15,,")))
    following.refresh(log)
    b300 = log.store.read("rates").filter(pl.col("name") == "b300", pl.col("kind") == "gpu_hour")
    assert b300.select("value", "valid_to").rows() == [(2.808, AUGUST), (2.52, None)], "a new rate ends the older one"
    assert log.store.read("quarantine").is_empty()


def test_the_tables_follow_while_an_ingest_runs_and_can_be_made_anew(log: EventLog, tmp_path: Path) -> None:
    follower = Follower(log)
    take(log, tmp_path, put(tmp_path / "in", "rates.csv", TWO_VINTAGES), fold=follower.fold)
    follower.settle()
    assert log.store.read("rates").height == 10
    projections.run_detection(log, NOW)
    assert verify(log) == []
    hashes = projections.rebuild(log, NOW)
    assert hashes["rates"][0] == hashes["rates"][1]


def test_a_price_map_is_dated_by_the_user(log: EventLog, tmp_path: Path) -> None:
    path = put(tmp_path / "in", "prices.json", json.dumps(LITELLM).encode())
    take(log, tmp_path, path)
    following.refresh(log)
    (reason,) = log.store.read("quarantine")["reason"].to_list()
    assert "--measured-at" in reason and log.store.read("rates").is_empty()
    take(log, tmp_path, path, Declared(TAKEN))
    following.refresh(log)
    assert log.store.read("rates")["valid_from"].unique().to_list() == [TAKEN]
    assert log.store.read("rates").height == 8


def test_prices_of_an_installed_litellm() -> None:
    """Where the package is there: a release is a snapshot; its specimen entry is no model."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        pytest.skip("the package litellm is absent")
    data = (Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_bytes()
    told = read(data, TAKEN)
    names = {one.payload.name for one in told if isinstance(one, UpstreamFact) and isinstance(one.payload, RateChanged)}
    assert len(names) > 500 and "sample_spec" not in names
