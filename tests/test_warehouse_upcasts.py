"""Events that were stored once are readable for ever: a golden file of each type, and the steps between shapes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pipelines.verification import verify
from warehouse import events as events_module
from warehouse.canonical import canonical_json
from warehouse.errors import StoreError
from warehouse.events import PAYLOADS, Payload, Source, event_id, event_of, payload_of
from warehouse.log import EventLog

GOLDEN = Path(__file__).parent / "data" / "events_v1.jsonl"
"""One stored event of every type, as version 1 wrote it. Lines are added for new types and versions; none is ever changed."""
STORED: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text("utf-8").strip().split("\n")]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_every_type_has_a_stored_event() -> None:
    assert {stored["event_type"] for stored in STORED} >= set(PAYLOADS)


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: f"{stored['event_type']}-{stored['event_id'][:4]}")
def test_a_stored_event_is_readable_for_ever(stored: dict[str, Any]) -> None:
    payload = payload_of(stored["event_type"], stored["payload"], stored["schema_version"])
    assert type(payload).__name__ == stored["event_type"]
    assert payload.subject == stored["subject"]
    assert event_id(stored["event_type"], stored["subject"], stored["payload"]) == stored["event_id"]


@pytest.mark.parametrize(
    "stored",
    [stored for stored in STORED if stored["schema_version"] == PAYLOADS[stored["event_type"]].schema_version],
    ids=lambda stored: f"{stored['event_type']}-{stored['event_id'][:4]}",
)
def test_the_same_fact_told_again_is_the_same_event(stored: dict[str, Any]) -> None:
    """Else a second ingest of the same files would double what an older version recorded."""
    payload = payload_of(stored["event_type"], stored["payload"], stored["schema_version"])
    again = event_of(payload, occurred_at=NOW, recorded_at=NOW, source=Source(name="again"))
    assert (again.event_id, again.payload) == (stored["event_id"], stored["payload"])


class Weighed(Payload):
    """A payload that has been changed twice: grams, then kilograms, then kilograms with a scale."""

    schema_version: ClassVar[int] = 3
    thing: str
    kilograms: float
    scale: str

    @property
    def subject(self) -> str:
        return f"thing:{self.thing}"


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAYLOADS, "Weighed", Weighed)
    monkeypatch.setitem(
        events_module.UPCASTS, ("Weighed", 1), lambda body: {"thing": body["thing"], "kilograms": body["grams"] / 1000}
    )
    monkeypatch.setitem(events_module.UPCASTS, ("Weighed", 2), lambda body: {**body, "scale": "kitchen"})


@pytest.mark.parametrize(
    ("version", "body", "scale"),
    [
        (1, {"thing": "apple", "grams": 250}, "kitchen"),
        (2, {"thing": "apple", "kilograms": 0.25}, "kitchen"),
        (3, {"thing": "apple", "kilograms": 0.25, "scale": "shop"}, "shop"),
    ],
)
def test_an_older_shape_is_read_step_by_step(
    weighed: None, log: EventLog, version: int, body: dict[str, Any], scale: str
) -> None:
    today = event_of(Weighed(thing="apple", kilograms=0, scale=""), occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))
    text = canonical_json(body)
    stored = today.model_copy(
        update={"schema_version": version, "payload": text, "event_id": event_id("Weighed", today.subject, text)}
    )
    log.append([stored])
    ((row, payload),) = log.payloads("Weighed")
    assert payload == Weighed(thing="apple", kilograms=0.25, scale=scale)
    assert (row["schema_version"], row["payload"]) == (version, text), "stored events are never touched"


def test_a_newer_shape_or_an_unknown_type_is_told_and_nothing_is_guessed(weighed: None, log: EventLog) -> None:
    event = event_of(Weighed(thing="apple", kilograms=1, scale="s"), occurred_at=NOW, recorded_at=NOW, source=Source(name="t"))
    newer = event.model_copy(update={"schema_version": 4})
    log.append([newer])
    with pytest.raises(StoreError, match="Weighed of version 4, which this shiftlog does not know; upgrade it"):
        list(log.payloads("Weighed"))
    assert any("version 4): this shiftlog does not know it; upgrade" in finding for finding in verify(log))
    PAYLOADS.pop("Weighed")
    with pytest.raises(StoreError, match="Weighed of version 4, which this shiftlog does not know; upgrade it"):
        list(log.payloads("Weighed"))
    PAYLOADS["Weighed"] = Weighed
