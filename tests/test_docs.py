"""What the documents promise, held against the code."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner

from pipelines.cli import main
from pipelines.ingest import formats
from pipelines.ingest.reading import Given
from warehouse.dictionary import markdown

ROOT = Path(__file__).resolve().parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_data_dictionary_is_that_of_the_schemas() -> None:
    assert text("docs/tables.md") == markdown()


def test_every_verb_that_the_documents_use_exists() -> None:
    used = set(re.findall(r"shiftlog (?:--warehouse \S+ )?([a-z]+)", text("README.md") + text("docs/formats.md")))
    assert used - {"keeps", "is", "calls", "demo"} <= set(main.commands)
    assert used >= {"ingest", "detect", "shifts", "explain", "report", "changes", "build", "sql"}


def test_every_module_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`((?:pipelines|changelog|warehouse)/[\w/]+\.(?:py|toml))`", text("docs/architecture.md")))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_the_least_record_of_the_documents_is_read() -> None:
    match = re.search(r"^    (\{\"hw\".*?\})$", text("docs/formats.md"), re.MULTILINE | re.DOTALL)
    assert match is not None
    record = json.loads(match[1])
    found = formats.recognise(record)
    assert found is not None
    reading = found.read(record, Given(datetime(2026, 1, 1, tzinfo=UTC)))
    assert (reading.identity["engine"], reading.identity["hardware"], reading.identity["model"]) == ("vllm", "h200", "dsr1")
    assert reading.metrics["e2el_median"] == 14.8


def test_help_names_the_exit_statuses() -> None:
    help_text = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    assert "0 all good, 1 failed, 2 wrong usage, 3 done but some input went to quarantine" in help_text
