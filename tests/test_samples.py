"""Every registered format has a sample file, and each is read whole, as what it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.announcing import Announce
from pipelines.ingest.formats import FORMATS
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from tests.samples import SAMPLES, Sample
from warehouse.events import payload_of
from warehouse.log import EventLog

NAMES = {record_format.name for record_format in FORMATS}
OURS = [sample for sample in SAMPLES if sample.format in NAMES]


def test_every_format_has_a_sample() -> None:
    assert {sample.format for sample in OURS} == NAMES


@pytest.mark.parametrize("sample", OURS, ids=lambda sample: sample.name)
def test_a_sample_is_read_whole(sample: Sample, log: EventLog, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name, data in sample.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    silent: Announce = lambda _name: None  # noqa: E731
    now = datetime(2026, 12, 1, tzinfo=UTC)
    intake = ingest(
        log, (str(folder),), Declared(settings=sample.declared), recorded_at=now, mirrors=tmp_path / "mirrors", announce=silent
    )
    assert [fault.reason for fault in intake.quarantined] == []
    assert (intake.ignored, intake.empty, intake.failed) == ([], [], [])
    taken = [
        payload_of(event_type, payload)
        for event_type, payload in log.read("ResultRecorded", "EvalRecorded").select("event_type", "payload").iter_rows()
    ]
    assert [payload.record_format for payload in taken] == [sample.format] * sample.records
