"""LoadGen's logs: nanoseconds, tokens, clocks, runs that do not count. Values by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, Item
from pipelines.ingest.reading import Given, Reading, RecordFormat
from pipelines.ingest.tools.mlperf_logs import DETAIL, SUMMARY
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

SUMMARY_TEXT = """================================================
MLPerf Results Summary
================================================
SUT name : secret-host
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 40.00
Completed tokens per second: 12000.00
Result is : VALID
  Performance constraints satisfied : Yes
TTFT Early Stopping Result:
 * Run successful.

================================================
Additional Stats
================================================
Scheduled samples per second : 41.50
Min latency (ns)                : 1000000000
Max latency (ns)                : 3600000000000
Mean latency (ns)               : 44000000000
50.00 percentile latency (ns)   : 38000000000
99.90 percentile latency (ns)   : 160000000000

Completed tokens per second                 : 12000.00
Mean First Token latency (ns)               : 920000000
99.00 percentile first token latency (ns)   : 1900000000
97.00 percentile first token latency (ns)   : 1700000000

Mean Time to Output Token (ns)               : 125000000
50.00 percentile time to output token (ns)   : 200000000

================================================
Test Parameters Used
================================================
target_qps : 41.8
ttft_latency (ns): 2000000000
tpot_latency (ns): 200000000

No errors encountered during test.
"""
VALUES: dict[str, Any] = {
    "loadgen_version": "4.1 @ c83565d85d",
    "loadgen_git_log_message": "c83565d Fix",
    "test_datetime": "2024-07-26T03:02:39Z",
    "sut_name": "secret-host",
    "effective_scenario": "Server",
    "effective_test_mode": "PerformanceOnly",
    "requested_server_ttft_latency": 2000000000,
    "generated_query_count": 4000,
    "generated_samples_per_query": 1,
    "power_begin": "07-26-2024 10:02:39.653",
    "result_validity": "VALID",
    "result_query_count": 4000,
    "result_overlatency_query_count": 4000,
    "result_scheduled_samples_per_sec": 41.5,
    "result_completed_samples_per_sec": 40.0,
    "result_min_latency_ns": 306069410,
    "result_mean_latency_ns": 36000000000,
    "result_50.00_percentile_latency_ns": 30000000000,
    "result_99.90_percentile_latency_ns": 3600000000000,
    "result_first_token_mean_latency_ns": 250000000,
    "result_first_token_99.00_percentile_latency_ns": 500000000,
    "result_token_throughput_with_loadgen_overhead": 12100.0,
    "result_token_throughput": 7.6e-09,
    "result_time_per_output_token_50.00_percentile_ns": 100000000,
    "result_time_to_output_token_mean": 125000000,
    "result_completed_tokens_per_second": 12000.0,
}
FOLDERS = {"model": "llama2-70b", "hardware": "h100", "num_gpus": "8", "workload": "llama2-70b-99.9", "recipe": "closed/Lab/Box"}
TOLD = Given(declared={"engine": "trtllm"}, named=FOLDERS)


def detail_text(**changes: Any) -> str:
    import json

    lines = [
        f":::MLLOG {json.dumps({'key': key, 'value': value, 'time_ms': 0.1, 'metadata': {'file': '/home/me/x.cc'}})}"
        for key, value in {**VALUES, **changes}.items()
        if value is not ...
    ]
    return "\n".join((*lines, "", "No errors encountered during test.", ""))


def record_of(record_format: RecordFormat, text: str) -> dict[str, Any]:
    assert record_format.text is not None
    found = record_format.text(text)
    assert found is not None
    (item,) = found
    assert isinstance(item, Item), item
    assert record_format.recognises(item.value)
    value: dict[str, Any] = item.value
    return value


def detail(given: Given = TOLD, **changes: Any) -> Reading:
    reading = DETAIL.read(record_of(DETAIL, detail_text(**changes)), given)
    assert isinstance(reading, Reading)
    return reading


def test_a_summary() -> None:
    reading = SUMMARY.read(record_of(SUMMARY, SUMMARY_TEXT), TOLD)
    assert reading.metrics == {
        "output_tput_per_gpu": 1500.0,
        "e2el_mean": 44.0,
        "e2el_median": 38.0,
        "e2el_p999": 160.0,
        "ttft_mean": 0.92,
        "ttft_p99": 1.9,
        "tpot_mean": 0.125,
        "tpot_median": 0.2,
        "intvty_mean": 8.0,
        "intvty_median": 5.0,
    }
    assert reading.metrics_other == {
        "e2el_min": 1.0,
        "e2el_max": 3600.0,
        "ttft_p97": 1.7,
        "scheduled_samples_per_second": 41.5,
        "completed_samples_per_second": 40.0,
        "output_tokens_per_second": 12000.0,
    }
    assert reading.osl_mean == 300.0  # 12000 tokens/s over 40 samples/s
    assert (reading.identity["scenario"], reading.identity["arrival"]) == ("mlperf-server", "poisson")
    assert (reading.identity["system"], reading.num_gpus) == ("closed/Lab/Box", 8)
    assert reading.measured_at is None and SUMMARY.origin is None  # the summary has no clock


def test_a_detail_log() -> None:
    reading = detail()
    assert reading.metrics["output_tput_per_gpu"] == 1500.0
    assert (reading.metrics["e2el_mean"], reading.metrics["e2el_p999"]) == (36.0, 3600.0)
    assert (reading.metrics["ttft_mean"], reading.metrics["ttft_p99"]) == (0.25, 0.5)
    assert (reading.metrics["tpot_mean"], reading.metrics["tpot_median"]) == (0.125, 0.1)
    assert reading.metrics_other["scheduled_samples_per_second"] == 41.5
    assert (reading.requests, reading.duration_s, reading.osl_mean) == (4000, 100.0, 300.0)
    assert reading.requests_failed is None
    assert reading.measured_at == datetime(2024, 7, 26, 3, 2, 39, tzinfo=UTC)
    assert reading.metric_definition == "mlperf loadgen"


def test_tokens_per_nanosecond_are_no_throughput() -> None:
    numbers = {**detail().metrics, **detail().metrics_other}
    assert 7.6e-09 not in numbers.values() and 12100.0 not in numbers.values()


def test_a_detail_log_dates_itself() -> None:
    assert DETAIL.origin is not None
    found = DETAIL.origin(VALUES, Given())
    assert found is not None and found.run_id == "day-2024-07-26"
    assert DETAIL.origin({**VALUES, "test_datetime": None}, Given()) is None
    with pytest.raises(InputError, match="timezone"):
        DETAIL.origin({**VALUES, "test_datetime": "2024-07-26T03:02:39"}, Given())
    assert detail(test_datetime="2024-07-26T03:02:39").measured_at is None


def test_an_offline_log_counts_one_query_of_all_samples() -> None:
    reading = detail(
        effective_scenario="Offline",
        generated_samples_per_query=100_000,
        result_query_count=1,
        result_samples_per_second=40.0,
        result_tokens_per_second=12000.0,
        result_scheduled_samples_per_sec=...,
        result_completed_samples_per_sec=...,
        result_completed_tokens_per_second=...,
    )
    assert (reading.requests, reading.duration_s, reading.osl_mean) == (100_000, 2500.0, 300.0)
    assert reading.metrics_other["samples_per_second"] == 40.0 and reading.identity["arrival"] == "offline"


def test_without_tokens_a_latency_is_of_a_sample_and_in_multistream_of_a_query() -> None:
    no_tokens = {key: ... for key in VALUES if "token" in key}
    plain = detail(**no_tokens)
    assert plain.metrics == {} and plain.metrics_other["sample_latency_mean"] == 36.0
    multi = detail(
        **no_tokens,
        effective_scenario="MultiStream",
        generated_samples_per_query=8,
        result_mean_query_latency_ns=38_000_000_000,
        early_stopping_latency_ms=200_000_000_000,
        **{"result_99.00_percentile_per_query_latency_ns": 190_000_000_000},
    )
    assert multi.metrics_other["query_latency_mean"] == 38.0 and multi.metrics_other["sample_latency_mean"] == 36.0
    assert multi.metrics_other["query_latency_p99"] == 190.0 and multi.metrics_other["query_latency_bound_p99"] == 200.0
    assert (multi.requests, multi.concurrency, multi.identity["arrival"]) == (32_000, 8, "batch")
    text = SUMMARY_TEXT.replace("Server", "MultiStream")
    assert SUMMARY.read(record_of(SUMMARY, text), TOLD).metrics_other["query_latency_mean"] == 44.0


def test_the_bound_of_runs_with_tokens_is_of_the_first_one_and_left_out() -> None:
    assert "query_latency_bound_p90" not in detail(effective_scenario="SingleStream", early_stopping_latency_ss=5).metrics_other


@pytest.mark.parametrize(
    ("record_format", "text", "field"),
    [
        (SUMMARY, SUMMARY_TEXT.replace("VALID", "INVALID"), "Result is"),
        (SUMMARY, SUMMARY_TEXT.replace("PerformanceOnly", "AccuracyOnly"), "Mode"),
        (SUMMARY, SUMMARY_TEXT.replace("Server", "Nowhere"), "Scenario"),
        (SUMMARY, SUMMARY_TEXT.replace("44000000000", "much"), "Mean latency"),
        (DETAIL, detail_text(result_validity="INVALID"), "result_validity"),
        (DETAIL, detail_text(effective_test_mode="AccuracyOnly"), "effective_test_mode"),
        (DETAIL, detail_text(effective_scenario=7), "effective_scenario"),
        (DETAIL, detail_text(result_mean_latency_ns=[1]), "result_mean_latency_ns"),
        (DETAIL, detail_text(result_mean_latency_ns=-1), "result_mean_latency_ns"),
        (DETAIL, detail_text(test_datetime="yesterday"), "test_datetime"),
    ],
)
def test_runs_that_do_not_count_and_wrong_values_are_named(record_format: RecordFormat, text: str, field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}"):
        record_format.read(record_of(record_format, text), TOLD)


def test_what_neither_log_nor_folders_tell_is_asked_for_by_name() -> None:
    with pytest.raises(InputError, match="engine, hardware, num_gpus, model"):
        DETAIL.read(record_of(DETAIL, detail_text()), Given())


def test_only_results_and_settings_are_kept() -> None:
    kept = record_of(DETAIL, detail_text())
    assert {"sut_name", "power_begin", "loadgen_git_log_message"}.isdisjoint(kept)
    assert "requested_server_ttft_latency" in kept and "secret-host" not in str(kept) and "/home/me" not in str(kept)
    assert "secret-host" not in str(record_of(SUMMARY, SUMMARY_TEXT))


def test_other_texts_are_left_to_others() -> None:
    for text in ("", "a,b\n1,2\n", "{}", "\n\nNo warnings encountered during test.\n"):
        assert SUMMARY.text is not None and SUMMARY.text(text) is None
        assert DETAIL.text is not None and DETAIL.text(text) is None
    assert SUMMARY.text(detail_text()) is None and DETAIL.text(SUMMARY_TEXT) is None


def test_a_damaged_line_costs_itself_alone() -> None:
    assert DETAIL.text is not None and SUMMARY.text is not None
    damaged = detail_text().replace(
        '"key": "result_min_latency_ns", "value": 306069410', '"key": "result_min_latency_ns", "value": '
    )
    found = list(DETAIL.text(damaged) or ())
    assert [type(part) for part in found] == [Fault, Item]
    (fault,) = DETAIL.text(':::MLLOG {"key": "x"}\n') or ()
    assert isinstance(fault, Fault) and "effective_scenario" in fault.reason
    (fault,) = SUMMARY.text("MLPerf Results Summary\nScenario : Server\n") or ()
    assert isinstance(fault, Fault) and "Result is" in fault.reason


junk: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(
        ["NaN", "1e999", "Server", "Offline", "SingleStream", "MultiStream", "VALID", 0, 1, 10**400, 1e308, "9" * 30]
    ),
)


@pytest.mark.parametrize(("record_format", "text"), [(SUMMARY, SUMMARY_TEXT), (DETAIL, detail_text(early_stopping_latency_ss=5))])
@given(data=st.data())
def test_a_mutated_log_gives_a_finite_reading_or_an_input_error(
    record_format: RecordFormat, text: str, data: st.DataObject
) -> None:
    record = record_of(record_format, text)
    record |= data.draw(st.dictionaries(st.sampled_from(sorted(record)), junk, max_size=4))
    try:
        reading = record_format.read(record, TOLD)
    except InputError as error:
        assert ": " in str(error)
        return
    assert reading.metrics.keys() <= {column.name for column in METRIC_COLUMNS}
    for value in (*reading.metrics.values(), *reading.metrics_other.values()):
        assert isinstance(value, float) and value == value and abs(value) < float("inf")


@given(st.text(max_size=200))
def test_any_text_is_read_or_left(text: str) -> None:
    for record_format, head in ((SUMMARY, "MLPerf Results Summary\n"), (DETAIL, ":::MLLOG ")):
        assert record_format.text is not None
        list(record_format.text(head + text) or ())
