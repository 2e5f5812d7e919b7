"""The registry of formats, the definitions of metrics and the page about both agree with each other and with the code."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import pytest

from pipelines.ingest import catalogue, formats, metrics
from pipelines.ingest.declarations import KEYS
from pipelines.ingest.reading import RecordFormat
from warehouse.schemas import EVALS, METRIC_COLUMNS, POINTS

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
COLUMNS = {"result": set(POINTS.schema), "eval": set(EVALS.schema)}


@pytest.mark.parametrize("own", formats.FORMATS, ids=lambda own: own.name)
def test_what_a_field_becomes_is_a_place_that_there_is(own: RecordFormat) -> None:
    """A column, a family of columns (`ttft_*`), a definition, or `metrics_other`."""
    assert own.dictionary.fields or own.dictionary.text, "a format without a dictionary"
    for field in own.dictionary.fields:
        for place in field.becomes.split(", "):
            family = place.endswith("_*") and any(name.startswith(place[:-1]) for name in COLUMNS[own.kind])
            known = place in COLUMNS[own.kind] or family or metrics.defined_by(place)
            assert known, f"{own.name}: {field.name} becomes {place}"
    assert set(own.dictionary.needs) <= set(KEYS)


def test_no_two_formats_have_one_name() -> None:
    names = [own.name for own in formats.FORMATS]
    assert len(set(names)) == len(names)
    assert all(formats.by_name(name).name == name for name in names)


@pytest.mark.parametrize(("one", "other"), list(combinations(formats.FORMATS, 2)), ids=lambda own: own.name)
def test_the_least_record_of_one_format_is_not_one_of_another(one: RecordFormat, other: RecordFormat) -> None:
    for own, stranger in ((one, other), (other, one)):
        assert not stranger.recognises(dict.fromkeys(own.markers)), f"{own.name} is taken for {stranger.name}"


def test_every_metric_column_has_a_definition_and_every_definition_a_place() -> None:
    defined = metrics.definitions()
    for column in METRIC_COLUMNS:
        assert column.name in defined or defined[column.name.rsplit("_", 1)[0]].family, column.name
    for name, own in defined.items():
        stands = name in POINTS.schema if own.column else own.family == any(c.startswith(f"{name}_") for c in POINTS.schema)
        assert stands, name
        assert own.definition and own.unit and own.better in ("higher", "lower", "neither"), name


def test_definitions_that_include_other_tokens_are_other_metrics() -> None:
    """By the note's table (formats 4.1): with the first token, without it, and by the client's count are three."""
    defined = metrics.definitions()
    assert (defined["tpot"].first_token, defined["tpot"].token_counter) == (False, "server")
    assert (defined["tpot_with_first"].first_token, defined["tpot_with_first"].token_counter) == (True, "server")
    assert (defined["tpot_client_tokens"].first_token, defined["tpot_client_tokens"].token_counter) == (False, "client")
    writers = {
        name: {tool for tool, _field in metrics.sources(name)} for name in ("tpot", "tpot_with_first", "tpot_client_tokens")
    }
    assert {"vllm-serve", "guidellm", "inferencex"} <= writers["tpot"]
    assert "guidellm" in writers["tpot_with_first"]
    assert "aiperf" in writers["tpot_client_tokens"]


def test_the_page_is_what_the_readers_say() -> None:
    text = PAGE.read_text("utf-8")
    made = catalogue.rendered(text)
    assert made == text, "run `python -m pipelines.ingest.catalogue docs/formats.md`"
    assert all(f"### {own.name}: " in made for own in formats.FORMATS)


def test_strangers_marks_do_not_break_a_table() -> None:
    assert catalogue.table(("a", "b"), [("x|y", "1\n2")]).splitlines()[-1] == "| x\\|y | 1 2 |"


def test_the_definitions_are_read_whole() -> None:
    stored = tomllib.loads(files("warehouse").joinpath("data/metrics.toml").read_text("utf-8"))
    assert list(metrics.definitions()) == list(stored)
