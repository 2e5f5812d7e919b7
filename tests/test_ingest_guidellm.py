"""GuideLLM reports: one record a benchmark, seconds beside milliseconds, what changed its meaning, what is kept."""

import copy
import json
import math
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given as cases
from hypothesis import strategies as st

from pipelines.ingest.json_text import Fault, LeftOut
from pipelines.ingest.reading import Given
from pipelines.ingest.tools import guidellm
from warehouse.errors import InputError

FORMAT = guidellm.FORMAT
DECLARED = {"engine": "vllm", "hardware": "h100", "num_gpus": "2", "precision": "fp8"}
GIVEN = Given(declared=DECLARED)
START = 1_780_000_000.0
NOTHING = {"mean": 0.0, "median": 0.0, "std_dev": 0.0, "min": 0.0, "max": 0.0, "count": 0, "total_sum": 0.0, "percentiles": {}}


def spread(mean, count=10, least=None, **more):
    """A distribution of successful requests whose percentiles are multiples of the mean."""
    shares = {"p001": mean / 4, "p90": 2 * mean, "p95": 3 * mean, "p99": 4 * mean, "p999": 5 * mean}
    good = {
        "mean": mean,
        "median": mean / 2,
        "std_dev": mean / 10,
        "min": mean / 5 if least is None else least,
        "max": 6 * mean,
        "count": count,
        "total_sum": mean * count,
        "percentiles": shares,
        "pdf": [[1, 2]],
        **more,
    }
    return {"successful": good, "incomplete": NOTHING, "errored": NOTHING, "total": good}


def benchmark(streams=4, **changes):
    """Ten requests in four seconds, 200 tokens in and 50 out, twelve made in all."""
    made = {
        "type_": "generative_benchmark",
        "config": {
            "id_": f"b{streams}",
            "run_id": "run-7",
            "run_index": 0,
            "strategy": {"type_": "concurrent", "streams": streams, "max_concurrency": streams},
            "prefer_response_metrics": True,
            "profile": {"kind": "concurrent", "streams": [1, 4]},
            "backend": {
                "kind": "openai_http",
                "target": "http://10.0.0.7:8000",
                "model": "meta-llama/Llama-3.3-70B-Instruct",
                "api_key": "sk-secret",
            },
            "environment": {"str": "<object at 0x1>", "attributes": {"node": "node7"}},
        },
        "scheduler_metrics": {
            "start_time": START - 1,
            "requests_made": {"successful": 10, "errored": 1, "incomplete": 1, "total": 12},
        },
        "metrics": {
            "request_totals": {"successful": 10, "errored": 1, "incomplete": 1, "total": 12},
            "requests_per_second": spread(2.4),
            "request_concurrency": spread(3.5),
            "request_latency": spread(0.4),
            "time_to_first_token_ms": spread(30.0),
            "time_to_first_output_token_ms": spread(35.0),
            "time_per_output_token_ms": spread(8.0, 500),
            "inter_token_latency_ms": spread(6.0, 490),
            "prompt_token_count": spread(200.0),
            "output_token_count": spread(50.0),
            "prompt_tokens_per_second": spread(480.0, 2000),
            "output_tokens_per_second": spread(120.0, 500),
            "output_tokens_per_iteration": spread(1.25, 400),
            "request_goodput": None,
            "text": {"words": {"input": spread(100.0)}},
        },
        "requests": {
            "successful": [{"request_args": "a prompt", "output": "an answer"}],
            "errored": [],
            "incomplete": [],
            "total": None,
        },
        "start_time": START + 10 * streams,
        "end_time": START + 10 * streams + 4,
        "duration": 4.0,
        "warmup_duration": 0.0,
        "cooldown_duration": 0.0,
    }
    return made | changes


SYNTHETIC = {"kind": "synthetic_text", "prompt_tokens": 192, "output_tokens": 48, "prompt_tokens_stdev": None, "turns": 1}


def report(*benchmarks, data=None):
    return {
        "metadata": {"version": 2, "guidellm_version": "0.8.1", "python_version": "3.11.7", "platform": "Linux-6"},
        "config": {
            "spec": {
                "backend": {"kind": "openai_http", "target": "http://10.0.0.7:8000", "model": None, "api_key": "sk-secret"},
                "data": [data or SYNTHETIC],
                "tokenizer": {"kind": "hf_auto", "model": "/home/jane/tokenizers/llama"},
                "outputs": [{"kind": "json", "path": "/home/jane/out.json"}],
            }
        },
        "benchmarks": list(benchmarks) or [benchmark(1), benchmark(4)],
        "conclusions": [],
    }


def records(made):
    return [item.value for item in FORMAT.unpack(made)]


def read(made, given=GIVEN):
    return FORMAT.read(records(report(made))[0], given)


def metrics(**changes):
    made = benchmark()
    return {**made, "metrics": {**made["metrics"], **changes}}


def strategy(**changes):
    made = benchmark()
    return {**made, "config": {**made["config"], "strategy": changes}}


def test_one_record_a_benchmark_with_its_place():
    items = list(FORMAT.unpack(report()))
    assert [item.position for item in items] == ["/benchmarks/0", "/benchmarks/1"]
    assert all(FORMAT.recognises(item.value) for item in items)
    assert [FORMAT.read(item.value, GIVEN).concurrency for item in items] == [1, 4]


def test_seconds_beside_milliseconds():
    found = read(benchmark()).metrics
    assert found["e2el_mean"] == pytest.approx(0.4)
    assert found["e2el_median"] == pytest.approx(0.2)
    assert found["e2el_std"] == pytest.approx(0.04)
    assert found["e2el_p90"] == pytest.approx(0.8)
    assert found["e2el_p95"] == pytest.approx(1.2)
    assert found["e2el_p99"] == pytest.approx(1.6)
    assert found["e2el_p999"] == pytest.approx(2.0)
    assert found["ttft_mean"] == pytest.approx(0.030)


def test_tpot_by_definition():
    found = read(benchmark())
    assert found.metrics["tpot_mean"] == pytest.approx(0.006)
    assert found.metrics["intvty_mean"] == pytest.approx(1 / 0.006)
    assert found.metrics_other["tpot_with_first_mean"] == pytest.approx(0.008)
    assert found.metrics_other["ttfot_mean"] == pytest.approx(0.035)
    assert not [name for name in found.metrics if name.startswith("itl")]
    assert found.metric_definition == "guidellm"


def test_tokens_counted_by_the_client_are_other_metrics():
    made = benchmark()
    found = read({**made, "config": {**made["config"], "prefer_response_metrics": False}})
    assert "tpot_mean" not in found.metrics
    assert "tpot_with_first_mean" not in found.metrics_other
    assert found.metrics_other["tpot_client_tokens_mean"] == pytest.approx(0.006)
    assert found.metric_definition == "guidellm, client tokens"


def test_throughput_is_what_came_over_the_duration():
    found = read(benchmark())
    assert found.metrics["input_tput_per_gpu"] == pytest.approx(2000 / 4 / 2)
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(500 / 4 / 2)
    assert found.metrics["tput_per_gpu"] == pytest.approx(2500 / 4 / 2)
    assert found.metrics_other["request_throughput"] == pytest.approx(10 / 4)


@pytest.mark.parametrize("edge", ["warmup_duration", "cooldown_duration"])
def test_throughput_is_the_mean_rate_where_an_edge_was_cut_off(edge):
    found = read(benchmark(**{edge: 0.5}))
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(120 / 2)
    assert found.metrics["tput_per_gpu"] == pytest.approx(600 / 2)
    assert found.metrics_other["request_throughput"] == pytest.approx(2.4)


def test_a_latency_that_some_request_did_not_tell_is_not_read():
    found = read(metrics(time_to_first_token_ms=spread(30.0, least=0.0), inter_token_latency_ms=spread(0.0)))
    assert not [name for name in found.metrics if name.startswith(("ttft", "tpot"))]
    assert found.metrics["e2el_mean"] == pytest.approx(0.4)


def test_counts_and_health():
    found = read(benchmark())
    assert (found.requests, found.requests_failed, found.duration_s) == (12, 1, 4.0)
    assert (found.isl_mean, found.osl_mean) == (200.0, 50.0)
    assert found.metrics_other["request_concurrency_mean"] == pytest.approx(3.5)
    assert found.metrics_other["output_tokens_per_iteration_mean"] == pytest.approx(1.25)


def test_where_nothing_succeeded_nothing_was_measured():
    with pytest.raises(InputError, match="no request succeeded"):
        read(metrics(request_totals={"successful": 0, "errored": 5, "incomplete": 0, "total": 5}))


@pytest.mark.parametrize(
    ("told", "concurrency", "rate", "arrival"),
    [
        ({"type_": "synchronous"}, 1, None, None),
        ({"type_": "concurrent", "streams": 32}, 32, None, None),
        ({"type_": "throughput", "max_concurrency": None}, None, None, "burst"),
        ({"type_": "throughput", "max_concurrency": 512}, 512, None, "burst"),
        ({"type_": "constant", "rate": 2.5, "max_concurrency": 10240}, None, 2.5, "constant"),
        ({"type_": "poisson", "rate": 2.5}, None, 2.5, "poisson"),
        ({"type_": "trace", "time_scale": 1.0}, None, None, "trace"),
    ],
)
def test_load(told, concurrency, rate, arrival):
    found = read(strategy(**told))
    assert (found.concurrency, found.request_rate, found.identity["arrival"]) == (concurrency, rate, arrival)


def test_a_limit_that_was_asked_for_beside_a_rate_is_another_load():
    made = strategy(type_="poisson", rate=2.5)
    made["config"]["profile"] = {"kind": "poisson", "max_concurrency": 8}
    assert read(made).identity["arrival"] == "poisson, at most 8"


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({"type_": "sweep"}, "type_"),
        ({}, "type_"),
        ({"type_": "concurrent", "streams": 0}, "streams"),
        ({"type_": "constant"}, "rate"),
    ],
)
def test_a_load_that_cannot_be_read_is_named(told, wrong):
    with pytest.raises(InputError, match=f"config.strategy.{wrong}"):
        read(strategy(**told))


@pytest.mark.parametrize(
    ("data", "isl", "osl", "workload", "scenario"),
    [
        (SYNTHETIC, 192, 48, "synthetic", "fixed-seq-len"),
        ({**SYNTHETIC, "prompt_tokens_stdev": 8, "turns": 2}, 192, 48, "synthetic prompt_tokens_stdev=8 turns=2", "multi-turn"),
        ({"kind": "json_file", "path": "/home/jane/prompts.jsonl"}, None, None, "prompts.jsonl", "fixed-seq-len"),
        ({"kind": "huggingface", "source": "org/data"}, None, None, "org/data", "fixed-seq-len"),
    ],
)
def test_workload(data, isl, osl, workload, scenario):
    found = FORMAT.read(records(report(benchmark(), data=data))[0], GIVEN).identity
    assert (found["isl"], found["osl"], found["workload"], found["scenario"]) == (isl, osl, workload, scenario)


def test_model_of_the_benchmark_counts_before_the_reports():
    assert read(benchmark()).identity["model"] == "llama70b"
    made = benchmark()
    made["config"]["backend"] = {"kind": "vllm_python", "model": None}
    with pytest.raises(InputError, match=r"^model: not in the record"):
        read(made)
    without_engine = {key: value for key, value in DECLARED.items() if key != "engine"} | {"model": "gpt-oss-120b"}
    assert read(made, Given(declared=without_engine)).identity["engine"] == "vllm"


def test_what_is_missing_is_asked_for_by_name():
    with pytest.raises(InputError, match="engine, hardware, num_gpus, precision"):
        read(benchmark(), Given())


def test_nothing_that_is_nobodys_business_is_kept():
    kept = json.dumps(records(report(benchmark())))
    for secret in ("sk-secret", "10.0.0.7", "node7", "jane", "a prompt", "an answer", '"pdf"', '"words"', '"requests": {'):
        assert secret not in kept
    assert '"guidellm_version": "0.8.1"' in kept
    assert '"tokenizer": {"kind": "hf_auto", "model": "llama"}' in kept


def test_the_run_of_a_report_starts_with_its_first_benchmark():
    first, second = (FORMAT.origin(one, Given()) for one in records(report()))
    assert first == second
    assert (first.run_source, first.run_id, first.started_at) == ("local", "run-7", datetime.fromtimestamp(START + 10, UTC))
    measured = [FORMAT.read(one, GIVEN).measured_at for one in records(report())]
    assert measured == [datetime.fromtimestamp(START + 10, UTC), datetime.fromtimestamp(START + 40, UTC)]


def test_a_report_of_one_benchmark_belongs_to_its_day():
    (alone,) = records(report(benchmark(8)))
    assert FORMAT.origin(alone, Given()).run_id == "day-2026-05-28"
    assert FORMAT.origin({**alone, "report": {}, "benchmark": {}}, Given()) is None


def test_yaml_gives_the_very_same_records():
    made = json.loads(json.dumps(report()))
    assert [item.value for item in FORMAT.text(yaml.dump(made))] == records(made)
    assert FORMAT.text("benchmarks:\n- a: 1\n") is None
    assert [type(found) for found in FORMAT.text("Run Info,Run Info\nRun ID,Run Index\n,\nx,0\n")] == [LeftOut]
    for broken, why in (("x: &a 1\ny: *a\n", "alias"), ("x: [\n", "not YAML")):
        (fault,) = FORMAT.text(broken + "benchmarks:\n- type_: generative_benchmark\n")
        assert why in fault.reason


def first_schema():
    """Schema 1 (0.4 to 0.6): `args` instead of `config`, data as texts."""
    made = report(benchmark())
    del made["config"]
    made["metadata"]["version"] = 1
    made["args"] = {
        "target": "http://10.0.0.7",
        "data": ["prompt_tokens=192,output_tokens=48"],
        "model": None,
        "profile": "concurrent",
        "output_dir": "/home/jane",
    }
    return made


def test_first_schema():
    (one,) = records(first_schema())
    assert "10.0.0.7" not in json.dumps(one)
    assert "jane" not in json.dumps(one)
    found = FORMAT.read(one, GIVEN)
    assert (found.identity["isl"], found.identity["osl"], found.concurrency) == (192, 48, 4)
    assert found.metrics_other["tpot_with_first_mean"] == pytest.approx(0.008)


def before_0_4():
    """No metadata; strategy, model and data in other places; `time_per_output_token_ms` with another meaning."""
    made = benchmark()
    config, totals = made.pop("config"), made["metrics"].pop("request_totals")
    del made["warmup_duration"], made["cooldown_duration"], made["scheduler_metrics"]
    made |= {
        "id_": config["id_"],
        "run_id": config["run_id"],
        "args": {"strategy": {"type_": "synchronous"}, "profile": {"type_": "sweep"}, "strategy_index": 0},
        "worker": {
            "backend_type": "openai_http",
            "backend_target": "http://10.0.0.7",
            "backend_model": "meta-llama/Llama-3.3-70B-Instruct",
        },
        "request_loader": {"data": '{"prompt_tokens": 192, "output_tokens": 48}', "processor": "/home/jane/llama"},
        "request_totals": totals,
    }
    return {"benchmarks": [made]}


def test_before_0_4():
    (one,) = records(before_0_4())
    kept = json.dumps(one)
    assert "10.0.0.7" not in kept
    assert "jane" not in kept
    found = FORMAT.read(one, GIVEN)
    assert found.metric_definition == "guidellm before 0.4"
    assert not [name for name in found.metrics_other if name.startswith("tpot")]
    assert found.metrics["tpot_mean"] == pytest.approx(0.006)
    assert (found.identity["model"], found.identity["isl"], found.identity["osl"]) == ("llama70b", 192, 48)
    assert (found.concurrency, found.requests, found.requests_failed) == (1, 12, 1)
    assert found.metrics["tput_per_gpu"] == pytest.approx(2500 / 4 / 2)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        {},
        "x",
        {"benchmarks": {}},
        {"benchmarks": []},
        {"benchmarks": [{"name": "test_x", "stats": {}}], "machine_info": {}},
        [{}],
    ],
)
def test_what_is_no_report_is_left_alone(value):
    assert FORMAT.unpack(value) is None


def test_one_bad_benchmark_costs_no_neighbour():
    made = report(benchmark(), 5, {"type_": "pooling_benchmark"}, benchmark(8))
    items = list(FORMAT.unpack(made))
    assert [isinstance(item, Fault) for item in items] == [False, True, True, False]
    assert items[2].position == "/benchmarks/2"
    (fault,) = FORMAT.unpack({**made, "benchmarks": []})
    assert isinstance(fault, Fault)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400) | st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["NaN", "1e999", "synchronous", "{", "prompt_tokens=x,output_tokens=9999999999", ""]),
    st.just([]),
    st.just({}),
    st.just([{"type_": "constant"}]),
)


def paths(value, at=()):
    yield at
    for key, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from paths(part, (*at, key))


@cases(data=st.data())
def test_whatever_stands_in_a_report_reading_it_gives_finite_numbers_or_says_what_is_wrong(data):
    made = copy.deepcopy(data.draw(st.sampled_from([report(benchmark()), first_schema(), before_0_4()])))
    path = data.draw(st.sampled_from([path for path in paths(made) if path]))
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = data.draw(VALUES)
    for item in FORMAT.unpack(made) or ():
        if isinstance(item, Fault):
            continue
        assert FORMAT.recognises(item.value)
        for one in (item.value, {**item.value, path[-1]: inner[path[-1]]}):
            try:
                FORMAT.origin(one, GIVEN)
                found = FORMAT.read(one, GIVEN)
            except InputError:
                continue
            numbers = [*found.metrics.values(), *found.metrics_other.values(), found.isl_mean, found.osl_mean, found.duration_s]
            assert all(number is None or (math.isfinite(number) and number >= 0) for number in numbers)


# --- real files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared_data):
    return shared_data / "formats" / "guidellm"


def test_real_mock_run(real):
    found = [FORMAT.read(one, GIVEN) for one in records(json.loads((real / "mock_run" / "benchmarks.json").read_text()))]
    assert [one.concurrency for one in found] == [1, 4]
    assert found[1].metrics["tpot_mean"] == pytest.approx(4.27e-3, rel=1e-3)
    assert found[1].metrics_other["tpot_with_first_mean"] == pytest.approx(5.69e-3, rel=1e-3)
    assert found[1].metrics["e2el_mean"] == pytest.approx(0.0990, rel=1e-3)
    assert found[1].metrics["output_tput_per_gpu"] == pytest.approx(346 / 0.5401043891906738 / 2)
    assert found[1].measured_at == datetime(2026, 11, 30, 12, 1, 15, 372962, tzinfo=UTC)


def test_real_report(real):
    made = json.loads((real / "guidellm_report_v2.json").read_text())
    both = records(made)
    found = [FORMAT.read(one, GIVEN) for one in both]
    assert [one.request_rate for one in found] == [2.0, 4.0]
    assert {one.identity["arrival"] for one in found} == {"constant"}
    assert found[0].metrics["tpot_mean"] == pytest.approx(1.1508464813232422e-3)
    assert {FORMAT.origin(one, GIVEN).run_id for one in both} == {"563b778f-8b3b-49d1-822f-edbf6c1cc93e"}


def test_real_records_hold_no_prompt_path_or_address(real):
    for file in ("mock_run/benchmarks.json", "guidellm_report_v2.json"):
        kept = json.dumps(records(json.loads((real / file).read_text())))
        for secret in ("127.0.0.1", "/Users", "mengmeiye", "/bench", "request_args", "messages", "api_key"):
            assert secret not in kept
        assert len(kept) < 100_000


def test_real_csv_is_the_same_measurement_and_not_read(real):
    assert [type(found) for found in FORMAT.text((real / "mock_run" / "benchmarks.csv").read_text())] == [LeftOut]
