"""AIPerf and genai-perf summaries: units as stated, who counted the tokens, what is kept, what is asked for."""

import copy
import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given as cases
from hypothesis import strategies as st

from pipelines.ingest.reading import Given
from pipelines.ingest.tools import aiperf, genai_perf, unit_blocks
from warehouse.errors import InputError

DECLARED = {"engine": "vllm", "hardware": "h100", "num_gpus": "2", "precision": "fp8"}
GIVEN = Given(declared=DECLARED)
NAMES = {"aiperf", "aiperf-early", "genai-perf"}


def block(unit, avg, **more):
    return {"unit": unit, "avg": avg, **more}


def record(**changes):
    """Ten requests in two seconds: 100 tokens in and 11 out by the server, 90 and 9 by the client."""
    made = {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_throughput": block("requests/sec", 5.0),
        "request_latency": block("ms", 130.0, p50=120.0, p99=300.0, std=12.0, count=10),
        "request_count": block("requests", 10.0),
        "time_to_first_token": block("ms", 30.0, p50=25.0, count=10),
        "inter_token_latency": block("ms", 12.5, p50=12.0, count=10),
        "inter_chunk_latency": block("ms", 10.0, count=100),
        "decode_duration": block("ms", 100.0, p50=95.0, count=10),
        "output_sequence_length": block("tokens", 9.0, count=10),
        "input_sequence_length": block("tokens", 90.0, count=10),
        "output_token_throughput": block("tokens/sec", 45.0),
        "input_token_throughput": block("tokens/sec", 450.0),
        "usage_prompt_tokens": block("tokens", 100.0, min=90.0, max=110.0, count=10),
        "usage_completion_tokens": block("tokens", 11.0, min=11.0, max=11.0, count=10),
        "benchmark_duration": block("sec", 1.9),
        "was_cancelled": False,
        "is_complete": True,
        "error_summary": [],
        "start_time": "2026-03-01T23:30:00.5",
        "input_config": {
            "models": {"items": [{"name": "meta-llama/Llama-3.3-70B-Instruct"}]},
            "endpoint": {"urls": ["http://10.0.0.7:8000"], "type": "chat", "streaming": True, "api_key": "sk-secret"},
            "datasets": [{"name": "main", "type": "synthetic", "prompts": {"isl": {"mean": 96.0}, "osl": {"mean": 16.0}}}],
            "phases": [
                {"name": "warmup", "type": "concurrency", "concurrency": 1},
                {"name": "profiling", "type": "concurrency", "concurrency": 8},
            ],
            "artifacts": {"dir": "/home/jane/out"},
            "tokenizer": {"name": "/home/jane/tokenizers/llama"},
        },
        "run_info": {"sweep_id": "s1", "cli_command": "aiperf profile --api-key sk-secret --url http://10.0.0.7:8000"},
        "telemetry_data": {"endpoints": {"http://node7:9400": {"gpus": {"gpu_0": {"gpu_name": "H100", "hostname": "node7"}}}}},
    }
    return made | changes


def without(made, *names):
    return {key: value for key, value in made.items() if key not in names}


def config(made, **changes):
    return {**made, "input_config": {**made["input_config"], **changes}}


def read(made, given=GIVEN):
    return aiperf.FORMAT.read(aiperf.FORMAT.clean(made), given)


def test_times_are_seconds_by_their_stated_unit():
    found = read(record(time_to_first_token=block("us", 30000.0, p50=25000.0))).metrics
    assert found["e2el_mean"] == pytest.approx(0.130)
    assert found["e2el_median"] == pytest.approx(0.120)
    assert found["e2el_p99"] == pytest.approx(0.300)
    assert found["e2el_std"] == pytest.approx(0.012)
    assert found["ttft_mean"] == pytest.approx(0.030)
    assert found["ttft_median"] == pytest.approx(0.025)
    assert found["itl_mean"] == pytest.approx(0.010)


@pytest.mark.parametrize(("unit", "number"), [("ns", 2e12), ("us", 2e9), ("ms", 2e6), ("sec", 2e3)])
def test_every_unit_of_time_tells_the_same_half_hour(unit, number):
    assert read(record(request_latency=block(unit, number))).metrics["e2el_mean"] == pytest.approx(2000.0)


@pytest.mark.parametrize("name", ["request_latency", "time_to_first_token", "usage_completion_tokens", "request_throughput"])
@pytest.mark.parametrize("unit", ["furlongs", "", None, 3, ["ms"], "MS"])
def test_an_unknown_unit_is_named(name, unit):
    with pytest.raises(InputError, match=f"{name}: "):
        read(record(**{name: block(unit, 1.0)}))


def test_tpot_by_the_client_is_another_metric():
    found = read(record())
    assert found.metrics_other["tpot_client_tokens_mean"] == pytest.approx(0.0125)
    assert found.metrics_other["tpot_client_tokens_median"] == pytest.approx(0.0120)


def test_tpot_by_the_server_where_all_outputs_are_equally_long():
    found = read(record()).metrics
    assert found["tpot_mean"] == pytest.approx(0.100 / 10)
    assert found["tpot_median"] == pytest.approx(0.0095)
    assert found["intvty_mean"] == pytest.approx(100.0)


@pytest.mark.parametrize(
    "change",
    [
        {"usage_completion_tokens": block("tokens", 11.0, min=10.0, max=11.0, count=10)},
        {"usage_completion_tokens": block("tokens", 1.0, min=1.0, max=1.0, count=10)},
        {"usage_completion_tokens": block("tokens", 11.0, min=11.0, max=11.0, count=9)},
    ],
)
def test_no_tpot_is_made_up(change):
    assert "tpot_mean" not in read(record(**change)).metrics


def test_tpot_is_the_servers_where_its_counts_were_used():
    made = record()
    endpoint = {**made["input_config"]["endpoint"], "use_server_token_count": True}
    found = read(config(made, endpoint=endpoint))
    assert found.metrics["tpot_mean"] == pytest.approx(0.0125)
    assert found.metric_definition == "aiperf, server tokens"
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(45.0 / 2)
    first = read(config(made, endpoint={**endpoint, "per_chunk_usage": True}))
    assert first.metrics["tpot_mean"] == pytest.approx(0.100 / 10)  # by definition, from the decode time
    assert first.metrics_other["tpot_after_first_chunk_mean"] == pytest.approx(0.0125)


def test_throughput_is_by_the_servers_count_where_it_told_one():
    found = read(record())
    assert found.metric_definition == "aiperf, server tokens"
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(11 * 5 / 2)
    assert found.metrics["input_tput_per_gpu"] == pytest.approx(100 * 5 / 2)
    assert found.metrics["tput_per_gpu"] == pytest.approx(111 * 5 / 2)
    assert (found.isl_mean, found.osl_mean) == (100.0, 11.0)
    assert found.metrics_other["client_osl_mean"] == 9.0


@pytest.mark.parametrize("told", [None, 9])
def test_throughput_is_the_clients_where_the_server_told_no_or_some_counts(told):
    made = record()
    made["usage_prompt_tokens"] = None if told is None else {**made["usage_prompt_tokens"], "count": told}
    found = read(made)
    assert found.metric_definition == "aiperf, client tokens"
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(45.0 / 2)
    assert found.metrics["tput_per_gpu"] == pytest.approx(495.0 / 2)
    assert (found.isl_mean, found.osl_mean) == (90.0, 9.0)
    assert "tpot_mean" not in found.metrics


def test_input_throughput_follows_from_lengths_where_it_is_not_told():
    found = read(without(record(), "input_token_throughput", "usage_prompt_tokens"))
    assert found.metrics["input_tput_per_gpu"] == pytest.approx(90 * 5 / 2)


def test_a_run_without_a_stream_has_no_first_token():
    made = record()
    found = read(config(made, endpoint={"type": "chat", "streaming": False}))
    assert not [name for name in found.metrics if name.startswith(("ttft", "itl", "tpot"))]


def test_counts_and_health():
    found = read(record(error_request_count=block("requests", 3.0)))
    assert (found.requests, found.requests_failed, found.duration_s) == (13, 3, 1.9)
    found = read(record(error_summary=[{"error_details": {"message": "refused by node7"}, "count": 2}]))
    assert (found.requests, found.requests_failed) == (12, 2)
    assert read(record()).requests_failed == 0


def test_identity_load_and_workload():
    found = read(record())
    assert found.concurrency == 8
    assert found.request_rate is None
    assert (found.identity["model"], found.identity["isl"], found.identity["osl"]) == ("llama70b", 96, 16)
    assert found.identity["workload"] == "synthetic"
    assert found.declared == ("engine", "hardware", "num_gpus", "precision")


@pytest.mark.parametrize(
    ("phase", "concurrency", "rate", "arrival"),
    [
        ({"type": "concurrency"}, 1, None, None),
        ({"type": "poisson", "rate": 4.0}, None, 4.0, "poisson"),
        ({"type": "gamma", "rate": 4, "concurrency": 3}, None, 4.0, "gamma, at most 3"),
        ({"type": "constant", "rate": 0.5}, None, 0.5, "constant"),
        ({"type": "fixed_schedule"}, None, None, "trace"),
    ],
)
def test_load(phase, concurrency, rate, arrival):
    found = read(config(record(), phases=[{"name": "profiling", **phase}]))
    assert (found.concurrency, found.request_rate, found.identity["arrival"]) == (concurrency, rate, arrival)


@pytest.mark.parametrize(
    ("phases", "wrong"),
    [
        ([], "phases"),
        ([{"name": "a", "kind": "profiling", "type": "concurrency"}] * 2, "phases"),
        ([{"name": "profiling", "type": "ramp"}], "type"),
        ([{"name": "profiling", "type": "concurrency", "concurrency": 0}], "concurrency"),
        ([{"name": "profiling", "type": "poisson", "rate": 0}], "rate"),
    ],
)
def test_a_load_that_cannot_be_read_is_named(phases, wrong):
    with pytest.raises(InputError, match=wrong):
        read(config(record(), phases=phases))


def test_lengths_that_vary_are_another_workload():
    data = {"type": "synthetic", "prompts": {"isl": {"mean": 96.0, "stddev": 8.0}, "osl": 16}, "turns": {"mean": 3}}
    found = read(config(record(), datasets=[data]))
    assert found.identity["workload"] == "synthetic, isl ±8.0"
    assert (found.identity["isl"], found.identity["osl"], found.identity["scenario"]) == (96, 16, "multi-turn")


def test_several_models_are_asked_for():
    with pytest.raises(InputError, match=r"^model: not in the record"):
        read(config(record(), models={"items": [{"name": "a"}, {"name": "b"}]}))


def test_what_is_missing_is_asked_for_by_name():
    with pytest.raises(InputError, match=r"engine, hardware, num_gpus, precision"):
        read(record(), Given())


@pytest.mark.parametrize("change", [{"was_cancelled": True}, {"is_complete": False}])
def test_a_run_that_broke_off_is_no_measurement(change):
    with pytest.raises(InputError, match=next(iter(change))):
        read(record(**change))


def test_time_without_a_zone():
    assert read(record()).measured_at is None
    with pytest.raises(InputError, match="timezone"):
        aiperf.FORMAT.origin(record(), GIVEN)
    berlin = Given(declared={**DECLARED, "timezone": "+02:00"})
    assert read(record(), berlin).measured_at == datetime(2026, 3, 1, 21, 30, 0, 500000, tzinfo=UTC)
    west = Given(declared={**DECLARED, "timezone": "-02:00"})
    assert aiperf.FORMAT.origin(record(), west).run_id == "day-2026-03-02"
    assert aiperf.FORMAT.origin(without(record(), "start_time"), GIVEN) is None
    assert aiperf.FORMAT.origin(record(start_time="2026-03-01T23:30:00Z"), GIVEN).run_id == "day-2026-03-01"


@pytest.mark.parametrize("told", ["yesterday", 5, "0001-01-01T00:00:00", [], {}])
def test_a_time_that_is_none_is_named(told):
    made = record(start_time=told)
    with pytest.raises(InputError, match="start_time"):
        aiperf.FORMAT.origin(made, Given(declared={**DECLARED, "timezone": "+08:00"}))
    with pytest.raises(InputError, match="start_time"):
        aiperf.FORMAT.read(made, Given(declared={**DECLARED, "timezone": "+08:00"}))


def test_nothing_that_is_nobodys_business_is_kept():
    kept = json.dumps(aiperf.FORMAT.clean(record(error_summary=[{"error_details": {"message": "node7"}, "count": 1}])))
    for secret in ("sk-secret", "10.0.0.7", "node7", "jane", "cli_command", "/home"):
        assert secret not in kept
    assert '"gpu_names": ["H100"]' in kept
    assert '"sweep_id": "s1"' in kept


def test_cleaning_loses_no_metric_and_no_fault():
    made = record(some_new_metric=block("ms", 1.0), time_to_first_token=5)
    kept = aiperf.FORMAT.clean(made)
    assert kept["some_new_metric"] == block("ms", 1.0)
    with pytest.raises(InputError, match="time_to_first_token"):
        aiperf.FORMAT.read(kept, GIVEN)
    with pytest.raises(InputError, match="request_latency"):
        read(record(request_latency={"unit": "ms"}))


def early():
    """AIPerf before 0.4: no version, the load in `loadgen`."""
    made = without(record(), "schema_version", "aiperf_version", "is_complete", "run_info")
    return made | {
        "input_config": {
            "endpoint": {"model_names": ["meta-llama/Llama-3.3-70B-Instruct"], "type": "chat", "streaming": True, "url": "x:1"},
            "loadgen": {"concurrency": 16, "request_count": 10},
            "input": {"prompt": {"input_tokens": {"mean": 96}, "output_tokens": {"mean": 16}}, "headers": [["key", "sk-secret"]]},
        }
    }


def test_early_exports():
    kept = aiperf.EARLY.clean(early())
    assert "sk-secret" not in json.dumps(kept)
    found = aiperf.EARLY.read(kept, GIVEN)
    assert (found.concurrency, found.identity["isl"], found.identity["osl"]) == (16, 96, 16)
    assert found.identity["model"] == "llama70b"
    assert found.metrics["e2el_mean"] == pytest.approx(0.13)
    rate = copy.deepcopy(early())
    rate["input_config"]["loadgen"] = {"request_rate": 2.0, "request_rate_mode": "constant"}
    found = aiperf.EARLY.read(rate, GIVEN)
    assert (found.request_rate, found.identity["arrival"], found.concurrency) == (2.0, "constant", None)


def genai(**changes):
    """Twenty requests of 100 tokens in and 25 out at 50 tokens a second: ten seconds."""
    made = {
        "request_throughput": block("requests/sec", 2.0),
        "request_latency": block("ms", 400.0, p50=390.0, p99=900.0, std=30.0),
        "time_to_first_token": block("ms", 40.0),
        "inter_token_latency": block("ms", 15.0),
        "output_token_throughput": block("tokens/sec", 50.0),
        "output_sequence_length": block("tokens", 25.0),
        "input_sequence_length": block("tokens", 100.0),
        "request_count": block("count", 20.0),
        "input_config": {
            "model_names": ["meta-llama/Llama-3.3-70B-Instruct"],
            "endpoint": {"streaming": True, "url": "node7:8000", "service_kind": "openai"},
            "perf_analyzer": {"stimulus": {"concurrency": 4}, "path": "perf_analyzer"},
            "input": {
                "synthetic_tokens": {"mean": 96, "stddev": 0},
                "output_tokens": {"mean": -1},
                "header": {"a": "sk-secret"},
                "file": "",
            },
            "output": {"artifact_directory": "/home/jane"},
        },
    }
    return made | changes


def read_genai(made):
    return genai_perf.FORMAT.read(genai_perf.FORMAT.clean(made), GIVEN)


def test_genai_perf():
    found = read_genai(genai())
    assert found.metrics["e2el_mean"] == pytest.approx(0.4)
    assert found.metrics["ttft_mean"] == pytest.approx(0.04)
    assert "tpot_mean" not in found.metrics
    assert found.metrics_other["tpot_client_tokens_mean"] == pytest.approx(0.015)
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(25.0)
    assert found.metrics["input_tput_per_gpu"] == pytest.approx(100.0)
    assert found.metrics["tput_per_gpu"] == pytest.approx(125.0)
    assert (found.requests, found.duration_s, found.isl_mean, found.osl_mean) == (20, 10.0, 100.0, 25.0)
    assert (found.concurrency, found.identity["isl"], found.identity["osl"]) == (4, 96, None)
    assert found.metric_definition == "genai-perf, client tokens"
    assert genai_perf.FORMAT.origin is None


def test_genai_perf_without_a_stream_has_no_first_token():
    made = genai()
    made["input_config"] = {**made["input_config"], "endpoint": {"streaming": False}}
    found = read_genai(made)
    assert "ttft_mean" not in found.metrics
    assert "tpot_client_tokens_mean" not in found.metrics_other


def test_genai_perf_rate_and_a_goodput_that_is_none():
    made = genai(request_goodput=block("requests/sec", -1.0))
    made["input_config"] = {**made["input_config"], "perf_analyzer": {"stimulus": {"request_rate": 3.0}}}
    found = read_genai(made)
    assert (found.request_rate, found.concurrency, found.identity["arrival"]) == (3.0, None, "constant")
    assert "request_goodput" not in found.metrics_other
    assert read_genai(genai(request_goodput=block("requests/sec", 1.5))).metrics_other["request_goodput"] == 1.5


def test_genai_perf_keeps_no_secret():
    kept = json.dumps(genai_perf.FORMAT.clean(genai()))
    for secret in ("sk-secret", "node7", "jane"):
        assert secret not in kept


def known(value):
    return [one.name for one in (aiperf.FORMAT, aiperf.EARLY, genai_perf.FORMAT) if one.recognises(value)]


def test_each_is_known_as_itself_alone():
    assert known(record()) == ["aiperf"]
    assert known(early()) == ["aiperf-early"]
    assert known(genai()) == ["genai-perf"]


def test_other_exports_of_aiperf_are_no_records_and_no_near_misses():
    server = {"schema_version": "1.1", "aiperf_version": "0.13.0", "summary": {}, "metrics": {}, "input_config": {}}
    line = {"metadata": {"session_num": 1}, "metrics": {"request_latency": {"value": 82.9, "unit": "ms"}}}
    slices = {"timeslices": [{"request_latency": block("ms", 1.0)}], "input_config": {}}
    for value in (server, line, slices):
        assert known(value) == []
        assert not any(one.lacks(value) for one in (aiperf.FORMAT, aiperf.EARLY, genai_perf.FORMAT))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400) | st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["NaN", "ms", "1e999", "2026-01-01", ""]),
    st.just([]),
    st.just({}),
    st.just([{"name": "x", "unit": "ms", "avg": 1}]),
)


def paths(value, at=()):
    yield at
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths(part, (*at, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from paths(part, (*at, index))


def put(value, path, new):
    made = copy.deepcopy(value)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return made


@cases(data=st.data())
def test_whatever_stands_in_a_record_reading_it_gives_finite_numbers_or_says_what_is_wrong(data):
    one, base = data.draw(st.sampled_from([(aiperf.FORMAT, record()), (aiperf.EARLY, early()), (genai_perf.FORMAT, genai())]))
    path = data.draw(st.sampled_from([path for path in paths(base) if path]))
    made = put(base, path, data.draw(VALUES))
    given = data.draw(st.sampled_from([GIVEN, Given(declared={**DECLARED, "timezone": "+08:00"}), Given()]))
    for clean in (False, True):
        try:
            found = one.read(one.clean(made) if clean else made, given)
            if one.origin:
                one.origin(made, given)
        except InputError:
            continue
        numbers = [*found.metrics.values(), *found.metrics_other.values(), found.isl_mean, found.osl_mean, found.duration_s]
        assert all(number is None or (math.isfinite(number) and number >= 0) for number in numbers)


def test_a_statistic_that_is_a_text_is_named():
    with pytest.raises(InputError, match=r"request_latency\.p99: 'NaN' is not a number"):
        unit_blocks.seconds({"request_latency": block("ms", 1.0, p99="NaN")}, "request_latency", "e2el")


# --- real files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared_data):
    return shared_data / "formats" / "aiperf"


def test_real_mock_run(real):
    made = json.loads((real / "mock_run" / "profile_export_aiperf.json").read_text())
    assert known(made) == ["aiperf"]
    found = read(made)
    assert found.metrics_other["tpot_client_tokens_mean"] == pytest.approx(8.64e-3, rel=1e-3)
    assert found.metrics["itl_mean"] == pytest.approx(4.61e-3, rel=1e-3)
    assert found.metrics["tpot_mean"] == pytest.approx(4.61e-3, rel=1e-3)
    assert found.concurrency == 4
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(640 / 1.032568 / 2, rel=1e-6)
    kept = json.dumps(aiperf.FORMAT.clean(made))
    for secret in ("127.0.0.1", "/bench", "cli_command"):
        assert secret not in kept


def test_real_export_of_0_11(real):
    made = json.loads((real / "real" / "aiperf_0.11.0_qwen3-4b_conc16.trimmed.json").read_text())
    found = read(made, Given(declared={**DECLARED, "num_gpus": "1"}))
    assert (found.concurrency, found.metric_definition, found.requests) == (16, "aiperf, client tokens", 2044)
    assert found.metrics["output_tput_per_gpu"] == pytest.approx(537554 / 299.935655192)
    assert found.metrics["ttft_median"] == pytest.approx(0.0267700945)
    assert "svc.cluster.local" not in json.dumps(aiperf.FORMAT.clean(made))


def test_real_lines_and_inputs_are_no_records(real):
    folder = real / "mock_run"
    lines = [json.loads(line) for line in (folder / "profile_export.jsonl").read_text().splitlines()]
    assert not any(known(line) for line in lines)
    assert known(json.loads((folder / "inputs.json").read_text())) == []
