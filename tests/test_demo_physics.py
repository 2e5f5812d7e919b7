"""The model of one point: its metrics follow from two latencies and agree with each other and with real records."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.demo.physics import Latency, Load, metrics, undisturbed_tpot, undisturbed_ttft

REAL_RUNS = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex" / "runs"
PLAIN = Latency(ttft_s=0.1, tpot_s=0.01, ttft_mean=1.0, tpot_mean=1.0, tail=1.0)


def test_point_by_hand():
    row = metrics(Load(isl=8192, osl=1024, concurrency=8, gpus=4), PLAIN)
    e2el = 0.1 + 0.01 * (0.9 * 1024 - 1)  # 9.306 s
    assert row["mean_e2el"] == pytest.approx(e2el)
    assert row["median_e2el"] == pytest.approx(e2el)
    assert row["output_tput_per_gpu"] == pytest.approx(0.978 * 8 * 921.6 / 9.306 / 4)  # 193.7 tok/s/GPU
    assert row["input_tput_per_gpu"] == pytest.approx(8 * row["output_tput_per_gpu"])
    assert row["tput_per_gpu"] == pytest.approx(9 * row["output_tput_per_gpu"])
    assert row["median_intvty"] == pytest.approx(100)
    assert row["std_intvty"] == pytest.approx(1 / row["std_tpot"])


def test_first_burst_sits_in_means_and_tails_only():
    load = Load(isl=8192, osl=1024, concurrency=8, gpus=4)
    calm, cold = metrics(load, PLAIN), metrics(load, PLAIN, first_wait_s=60)
    for name in ("median_ttft", "median_tpot", "median_e2el", "mean_tpot", "p99_tpot", "mean_itl"):
        assert cold[name] == calm[name]
    assert cold["mean_ttft"] - calm["mean_ttft"] == pytest.approx(6)  # a tenth of the requests wait 60 s
    assert cold["mean_e2el"] - calm["mean_e2el"] == pytest.approx(6)
    assert cold["tput_per_gpu"] / calm["tput_per_gpu"] == pytest.approx(9.306 / 15.306)
    assert cold["p99_ttft"] > 60
    assert cold["p99_e2el"] > 60
    assert cold["std_ttft"] == pytest.approx(math.hypot(0.06, 0.3 * 60))


def test_more_concurrency_costs_latency_and_brings_throughput():
    def row(concurrency: int) -> dict[str, float]:
        latency = Latency(undisturbed_ttft(0.05, concurrency, 1024), undisturbed_tpot(0.008, 40, concurrency, 1024), 1, 1, 1)
        return metrics(Load(1024, 1024, concurrency, 8), latency)

    rows = [row(concurrency) for concurrency in (4, 8, 16, 32, 64, 128)]
    for before, after in pairwise(rows):
        assert after["median_tpot"] > before["median_tpot"]
        assert after["median_ttft"] > before["median_ttft"]
        assert after["tput_per_gpu"] > before["tput_per_gpu"]


def test_undisturbed_latencies_by_hand():
    assert undisturbed_tpot(0.01, 32, 32, 1024) == pytest.approx(0.02)
    assert undisturbed_ttft(0.05, 90, 1024) == pytest.approx(0.1)


@given(
    st.sampled_from([(1024, 1024), (8192, 1024), (1024, 8192)]),
    st.integers(1, 512),
    st.integers(1, 8),
    st.floats(0.001, 2),
    st.floats(0.001, 0.2),
    st.floats(1, 2),
    st.floats(0.9, 1.1),
    st.floats(0, 100),
)
def test_littles_law_holds(shape, concurrency, gpus, ttft_s, tpot_s, ttft_mean, tpot_mean, wait_s):
    row = metrics(Load(*shape, concurrency, gpus), Latency(ttft_s, tpot_s, ttft_mean, tpot_mean, 1.0), wait_s)
    in_flight = row["output_tput_per_gpu"] * gpus * row["mean_e2el"] / (0.9 * shape[1])
    assert in_flight == pytest.approx(0.978 * concurrency)
    assert row["tput_per_gpu"] == pytest.approx(row["input_tput_per_gpu"] + row["output_tput_per_gpu"])
    assert all(math.isfinite(value) and value > 0 for value in row.values())


def test_real_records_hold_the_same_share_of_requests_in_flight():
    if not REAL_RUNS.is_dir():
        pytest.skip("shared/data/inferencex/runs absent")
    shares = [
        row["output_tput_per_gpu"] * row["tp"] * row["mean_e2el"] / row["conc"] / row["osl"]
        for path in sorted(REAL_RUNS.glob("*/agg_bmk.json"))
        for row in json.loads(path.read_text())
        if not row["is_multinode"]
    ]
    assert len(shares) > 500
    assert sorted(shares)[len(shares) // 2] == pytest.approx(0.9 * 0.978, abs=0.005)
