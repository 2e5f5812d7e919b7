"""The fold of the log into runs, points, builds and quarantine. Values by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.fold.small import whole_tables
from tests.lengths import either
from tests.records import row
from warehouse.events import Payload, RecordQuarantined, ResultRecorded, RunKey, RunReported, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import TABLES
from warehouse.store import Mark, Store

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
START = datetime(2026, 1, 5, 6, tzinfo=UTC)
DIGEST = "sha256:" + "ab" * 32


def key(number: int = 7, attempt: int = 1) -> RunKey:
    return RunKey(run_source="example/fleet", run_id=str(number), run_attempt=attempt)


def report(number: int = 7, started: datetime = START, **fields: Any) -> RunReported:
    return RunReported(run=key(number), started_at=started.isoformat(), **fields)


def result(record: dict[str, Any], number: int = 7, **fields: Any) -> ResultRecorded:
    return ResultRecorded(run=key(number), record_format=fields.pop("record_format", "inferencex"), record=record)


def tell(log: EventLog, *payloads: Payload, occurred_at: datetime = START, recorded_at: datetime = NOW) -> None:
    log.append(
        event_of(
            payload,
            occurred_at=occurred_at,
            recorded_at=recorded_at,
            source=Source(name="a.json", sha256="0" * 64, position=f"/{index}"),
        )
        for index, payload in enumerate(payloads)
    )


def folded(log: EventLog) -> dict[str, pl.DataFrame]:
    return whole_tables(log, log.last_sequence())


def builds_in_order(log: EventLog, engine: str) -> list[str | None]:
    frame = folded(log)["builds"].sort("engine", "build_order")
    return frame.filter(frame["engine"] == engine)["engine_version"].to_list()


def test_an_empty_log_gives_empty_tables_of_the_right_shape(log: EventLog) -> None:
    tables = folded(log)
    assert set(tables) == {"runs", "points", "evals", "builds", "quarantine"}
    for name, frame in tables.items():
        assert frame.is_empty()
        assert frame.schema == TABLES[name].schema


def test_every_table_can_be_stored_and_comes_back(log: EventLog) -> None:
    refused = RecordQuarantined(name="b", sha256="", position="", reason="r")
    tell(log, report(), result(row(4)), result(row(8, image=None, extra=1.5)), refused)
    for name, frame in folded(log).items():
        log.store.overwrite(name, frame, Mark(4))
        assert log.store.read(name).equals(frame.sort(TABLES[name].order, maintain_order=True))


def test_a_point(log: EventLog) -> None:
    tell(
        log,
        report(),
        result(row(16, median_e2el=8.0, tp=4, image="nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2", framework="trt", odd=2)),
    )
    (point,) = folded(log)["points"].iter_rows(named=True)
    expected = {
        "run_source": "example/fleet",
        "run_id": "7",
        "run_attempt": 1,
        "measured_at": START,
        "published_at": None,
        "recorded_at": NOW,
        "build_id": "tag:nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc2",
        "image_ref": "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc2",
        "image_digest": None,
        "engine_version": "1.2.0rc2",
        "engine": "trtllm",
        "framework": "trt",
        "hardware": "h200",
        "model": "dsr1",
        "concurrency": 16,
        "num_gpus": 4,
        "tp": 4,
        "prefill_tp": None,
        "disagg": False,
        "dp_attention": False,
        "isl": 1024,
        "hardware_label": "h200",
        "checkpoint": "deepseek-r1-0528",
        "record_format": "inferencex",
        "metric_definition": "inferencex",
        "steady_output_tput_per_gpu": 512.0,  # 16 · 1024 / 8 s / 4 GPUs
        "e2el_median": 8.0,
        "ttft_p999": None,
        "metrics_other": [{"name": "odd", "value": 2.0}],
    }
    assert {name: point[name] for name in expected} == expected
    assert point["point_id"] == log.read("ResultRecorded")["event_id"].item()


@pytest.mark.parametrize("latency", [None, 0.0])
def test_steady_throughput_needs_a_usable_latency(log: EventLog, latency: float | None) -> None:
    tell(log, report(), result(row(100_000_000, median_e2el=latency)))
    assert folded(log)["points"]["steady_output_tput_per_gpu"].to_list() == [None]


def test_a_disaggregated_point_counts_all_gpus(log: EventLog) -> None:
    record = row(
        256, osl=1024, disagg=True, tp=None, prefill_tp=4, decode_tp=32, num_prefill_gpu=20, num_decode_gpu=32, median_e2el=8.0
    )
    tell(log, report(), result(record))
    (point,) = folded(log)["points"].iter_rows(named=True)
    assert (point["num_gpus"], point["num_prefill_gpus"], point["tp"]) == (52, 20, None)
    assert point["steady_output_tput_per_gpu"] == pytest.approx(256 * 1024 / 8 / 52, rel=1e-15)


def test_the_benchmarks_own_start_is_the_time_of_the_point(log: EventLog) -> None:
    tell(log, report(), result(row(4, benchmark_start_time_unix=1767225600)))
    assert folded(log)["points"]["measured_at"].to_list() == [datetime(2026, 1, 1, tzinfo=UTC)]


def test_a_result_whose_run_was_never_reported_keeps_the_time_of_its_event(log: EventLog) -> None:
    tell(log, result(row(4)))
    tables = folded(log)
    assert tables["points"]["measured_at"].to_list() == [START]
    assert tables["runs"].is_empty()


def test_a_later_report_corrects_the_time(log: EventLog) -> None:
    tell(log, report(), result(row(4)), report(8), result(row(8), 8))
    moved = START + timedelta(days=2, hours=1)
    tell(log, report(7, moved, conclusion="success"), recorded_at=NOW + timedelta(days=1))
    tables = folded(log)
    assert dict(tables["points"].select("run_id", "measured_at").iter_rows()) == {"7": moved, "8": START}
    seven = tables["runs"].filter(tables["runs"]["run_id"] == "7").row(0, named=True)
    assert (seven["started_at"], seven["conclusion"], seven["points"], seven["recorded_at"]) == (
        moved,
        "success",
        1,
        NOW + timedelta(days=1),
    )
    assert tables["runs"].height == 2


REPORTS = (
    {"started": START, "updated_at": "2026-01-05T09:00:00Z", "conclusion": "failure"},
    {"started": START + timedelta(hours=1), "updated_at": "2026-01-05T10:00:00Z", "conclusion": "success"},
    {"started": START + timedelta(hours=2), "conclusion": "cancelled"},
)


@given(order=st.permutations(REPORTS))
@settings(max_examples=6)
def test_of_reports_the_one_that_the_source_wrote_last_holds_whenever_it_was_read(
    tmp_path_factory: pytest.TempPathFactory, order: list[dict[str, Any]]
) -> None:
    log = EventLog(Store(str(tmp_path_factory.mktemp("reports") / "w")))
    tell(log, result(row(4)), *(report(7, **fields) for fields in order))
    tables = folded(log)
    (run,) = tables["runs"].iter_rows(named=True)
    published = datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert (run["conclusion"], run["started_at"], run["published_at"], run["reports"]) == (
        "success",
        START + timedelta(hours=1),
        published,
        3,
    )
    (point,) = tables["points"].iter_rows(named=True)
    assert (point["measured_at"], point["run_started_at"], point["published_at"]) == (
        START + timedelta(hours=1),
        START + timedelta(hours=1),
        published,
    )


def test_of_reports_that_nothing_else_tells_apart_the_last_in_the_log_holds(log: EventLog) -> None:
    tell(log, report(conclusion="one"), report(conclusion="two"))
    assert folded(log)["runs"]["conclusion"].to_list() == ["two"]
    tell(log, report(conclusion="one"))  # told already: no event
    assert folded(log)["runs"].select("conclusion", "reports").rows() == [("two", 2)]


def test_a_declared_correction_holds_against_what_the_source_says_later(log: EventLog) -> None:
    tell(log, report(conclusion="mended", revision=4), result(row(4)))
    tell(log, report(conclusion="later", updated_at="2026-02-01T00:00:00Z"))
    assert folded(log)["runs"]["conclusion"].to_list() == ["mended"]
    tell(log, report(conclusion="again", revision=9), report(conclusion="older", revision=3))
    assert folded(log)["runs"].select("conclusion", "reports").rows() == [("again", 4)]


def test_attempts_of_a_run_are_runs(log: EventLog) -> None:
    again = RunReported(run=key(7, 2), started_at=(START + timedelta(hours=1)).isoformat())
    tell(log, report(), again, result(row(4)), ResultRecorded(run=key(7, 2), record_format="inferencex", record=row(4)))
    frame = folded(log)["points"].sort("run_attempt")
    assert frame["run_started_at"].to_list() == [START, START + timedelta(hours=1)]
    assert frame["cell_id"].n_unique() == 1
    assert frame["record_hash"].n_unique() == 1
    assert frame["point_id"].n_unique() == 2
    assert folded(log)["runs"].sort("run_attempt").select("run_attempt", "points").rows() == [(1, 1), (2, 1)]


def test_a_reused_record_keeps_the_time_at_which_it_was_measured(log: EventLog) -> None:
    """Of the run that may claim it; when its own run started stands apart."""
    days = {number: START + timedelta(days=number) for number in (2, 1, 3)}
    for number, day in days.items():
        tell(log, report(number, day), result(row(4), number), result(row(4 * number + 4), number))
    frame = (
        folded(log)["points"]
        .sort("run_id", "concurrency")
        .select("run_id", "concurrency", "reused", "measured_at", "run_started_at")
    )
    assert frame.rows() == [
        ("1", 4, False, days[1], days[1]),
        ("1", 8, False, days[1], days[1]),
        ("2", 4, True, days[1], days[2]),
        ("2", 12, False, days[2], days[2]),
        ("3", 4, True, days[1], days[3]),
        ("3", 16, False, days[3], days[3]),
    ]


def test_a_run_without_points_is_a_run(log: EventLog) -> None:
    tell(log, report(created_at="2026-01-05T05:59:00+00:00", declared=True))
    (run,) = folded(log)["runs"].iter_rows(named=True)
    assert (run["points"], run["declared"], run["created_at"], run["head_sha"]) == (0, True, START - timedelta(minutes=1), None)


VERSIONS = ["0.5.9", "0.5.10rc0", "0.5.10", "0.5.10.post1", "0.5.11"]


@settings(max_examples=either(4, 12))
@given(order=st.permutations(VERSIONS))
def test_builds_are_in_pep_440_order_whenever_they_were_measured(
    tmp_path_factory: pytest.TempPathFactory, order: list[str]
) -> None:
    log = EventLog(Store(str(tmp_path_factory.mktemp("builds") / "w")))
    for number, version in enumerate(order):
        tell(
            log,
            report(number, START + timedelta(days=number)),
            result(row(4, framework="sglang", image=f"lmsysorg/sglang:v{version}"), number),
        )
    assert builds_in_order(log, "sglang") == VERSIONS
    assert sorted(folded(log)["builds"]["build_order"]) == [1, 2, 3, 4, 5]


def test_builds_of_one_version_are_in_order_of_first_sight(log: EventLog) -> None:
    for number, suffix in enumerate(("-cu130", "", "-cu129")):
        tell(
            log,
            report(number, START - timedelta(days=number)),
            result(row(4, framework="sglang", image=f"lmsysorg/sglang:v0.5.9{suffix}"), number),
        )
    frame = folded(log)["builds"].sort("build_order")
    assert frame["tag"].to_list() == ["v0.5.9-cu129", "v0.5.9", "v0.5.9-cu130"]


def test_builds_without_a_version_keep_their_place_in_time(log: EventLog) -> None:
    for number, tag in enumerate(("v0.10.0", "nightly-" + "a" * 40, "v0.9.9")):
        told = result(row(4, image=f"vllm/vllm-openai:{tag}"), number)
        tell(log, report(number, START + timedelta(days=number)), told)
    frame = folded(log)["builds"].sort("build_order")
    assert frame["tag"].to_list() == ["v0.9.9", "nightly-" + "a" * 40, "v0.10.0"]


def test_engines_are_ordered_apart(log: EventLog) -> None:
    tell(log, report(), result(row(4)), result(row(4, framework="sglang", image="lmsysorg/sglang:v0.5.9")))
    assert folded(log)["builds"].select("engine", "build_order", "engine_version").sort("engine").rows() == [
        ("sglang", 1, "0.5.9"),
        ("vllm", 1, "0.90.0"),
    ]


def test_a_build_without_an_image_is_unknown(log: EventLog) -> None:
    tell(log, report(), result(row(4, image=None)), result(row(8, image="not an image!")))
    tables = folded(log)
    assert tables["points"].sort("concurrency").select("build_id", "image_ref", "image_digest", "engine_version").rows() == [
        ("unknown:vllm", None, None, None),
        ("unknown:vllm", "not an image!", None, None),
    ]
    (build,) = tables["builds"].iter_rows(named=True)
    assert (build["build_id"], build["source"], build["confidence"], build["points"]) == ("unknown:vllm", "unknown", "none", 2)


def test_a_digest_makes_one_build_of_two_spellings(log: EventLog) -> None:
    images = (f"vllm/vllm-openai:v0.20.1@{DIGEST}", f"docker.io/vllm/vllm-openai@{DIGEST}")
    tell(log, report(), *(result(row(4, image=image)) for image in images))
    (build,) = folded(log)["builds"].iter_rows(named=True)
    assert (build["build_id"], build["image_digest"], build["points"]) == (f"digest:{DIGEST}", DIGEST, 2)


def test_a_build_says_when_it_was_measured(log: EventLog) -> None:
    for number in (3, 1, 2):
        tell(log, report(number, START + timedelta(days=number)), result(row(4 * number), number))
    (build,) = folded(log)["builds"].iter_rows(named=True)
    assert (build["first_measured_at"], build["last_measured_at"], build["points"]) == (
        START + timedelta(days=1),
        START + timedelta(days=3),
        3,
    )


def test_what_was_refused_and_what_can_no_longer_be_read_is_in_quarantine(log: EventLog) -> None:
    tell(
        log,
        report(),
        result({"hw": "h200"}),
        result(row(4), record_format="gone"),
        result(row(8)),
        RecordQuarantined(name="b.json", sha256="1" * 64, position="/3", reason="isl: field required", excerpt="{"),
    )
    tables = folded(log)
    assert tables["points"]["concurrency"].to_list() == [8]
    found = tables["quarantine"].select("name", "position", "reason", "excerpt").sort("name", "position").rows()
    assert found == [
        (
            "a.json",
            "/1",
            "recorded, but this version cannot read it: "
            "isl, osl: not in the record; declare in a shiftlog.yaml beside it or with --set isl=1024",
            "",
        ),
        ("a.json", "/2", "recorded, but this version cannot read it: no reader called 'gone'; upgrade shiftlog", ""),
        ("b.json", "/3", "isl: field required", "{"),
    ]


@pytest.mark.parametrize(
    ("means", "health", "verdict"),
    [
        ({"mean_ttft": 0.1, "mean_e2el": 8.0}, [], "fit"),
        ({"mean_ttft": 0.9, "mean_e2el": 8.1}, [], "fit"),  # a slow first burst that does not reach the end-to-end mean
        ({"mean_ttft": 0.9, "mean_e2el": 8.5}, ["cold_start"], "suspect"),
        ({"mean_ttft": 0.9, "mean_e2el": 9.0}, ["cold_start"], "unfit"),
        ({"mean_ttft": 0.1, "mean_e2el": 9.0}, ["latency_skew"], "suspect"),
        ({"mean_ttft": None, "mean_e2el": None}, ["cold_start_unknown"], "fit"),
    ],
)
def test_health_is_judged(log: EventLog, means: dict[str, Any], health: list[str], verdict: str) -> None:
    tell(log, report(), result(row(4, median_ttft=0.25, median_e2el=8.0, **means)))
    assert folded(log)["points"].select("health", "verdict").rows() == [(health, verdict)]


def test_the_fold_does_not_depend_on_the_order_of_facts(log: EventLog, tmp_path_factory: pytest.TempPathFactory) -> None:
    facts = [report(1), report(2, START + timedelta(days=1)), *(result(row(conc), run) for conc in (4, 8) for run in (1, 2))]
    tell(log, *facts)
    other = EventLog(Store(str(tmp_path_factory.mktemp("other") / "w")))
    for fact in reversed(facts):
        tell(other, fact)
    one, two = folded(log), folded(other)
    for name in ("points", "builds", "runs"):
        order = list(TABLES[name].order)
        same = [column for column in one[name].columns if column != "sequence"]  # the place in the log, which differs
        assert one[name].sort(order).select(same).equals(two[name].sort(order).select(same)), name
