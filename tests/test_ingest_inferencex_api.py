"""Rows of InferenceX's API: the cell of the artifact's row that the app made them of, and its run. Values by hand."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.reading import Given, Reading
from pipelines.ingest.tools import inferencex, inferencex_agentic
from pipelines.ingest.tools.inferencex_api import FORMAT, as_artifact, origin, read
from tests.test_ingest_inferencex import BY_ROLE, SINGLE
from tests.test_ingest_inferencex_agentic import V3
from warehouse import vocabulary
from warehouse.cell import cell_id, curve_id
from warehouse.errors import InputError

START = datetime(2026, 8, 15, tzinfo=UTC)
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex"
LABELS = {"hw", "model", "image", "framework", "precision", "infmax_model_prefix", "spec_decoding", "recipe_fingerprint"}


def shown(record: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return what the API shows of an artifact's row, by the rules of the app's mapper."""
    role = "prefill_tp" in record
    sizes = {
        f"{side}_{name}": record.get(f"{side}_{name}" if role else name, default)
        for side in ("prefill", "decode")
        for name, default in (("tp", 1), ("ep", 1), ("dp_attention", False), ("num_workers", 0))
    }
    flags = {key: str(sizes[key]).lower() == "true" for key in sizes if key.endswith("dp_attention")}
    gpus = {
        f"num_{side}_gpu": record.get(f"num_{side}_gpu", record.get("tp", 1) * record.get("ep", 1))
        for side in ("prefill", "decode")
    }
    if role and not record["disagg"]:  # one engine is shown in both halves
        sizes |= {f"decode_{name}": sizes[f"prefill_{name}"] for name in ("tp", "ep", "num_workers")}
        flags["decode_dp_attention"] = flags["prefill_dp_attention"]
        gpus["num_decode_gpu"] = gpus["num_prefill_gpu"]
    left_out = LABELS | {"isl", "osl", "conc", "disagg", "is_multinode", "tp", "ep", "dp_attention", *sizes, *gpus}
    metrics = {key: value for key, value in record.items() if key not in left_out and isinstance(value, int | float)}
    return {
        "hardware": vocabulary.hardware(record["hw"]).value,
        "framework": vocabulary.framework(record["framework"]).value,
        "model": vocabulary.model(record["infmax_model_prefix"]).value,
        "precision": vocabulary.precision(record["precision"]).value,
        "spec_method": record["spec_decoding"].lower(),
        "disagg": record["disagg"],
        "is_multinode": record["is_multinode"],
        **sizes,
        **flags,
        **gpus,
        "isl": record.get("isl"),
        "osl": record.get("osl"),
        "conc": record["conc"],
        "image": record["image"].replace("#", "/"),
        "metrics": metrics,
        "workers": None,
        "date": "2026-01-01",
        "run_url": "https://github.com/SemiAnalysisAI/InferenceX/actions/runs/20613446912/attempts/2",
        **changes,
    }


def of(record: dict[str, Any], **changes: Any) -> Reading:
    return read({key: value for key, value in {**record, **changes}.items() if value is not ...}, Given(START))


def cell(reading: Reading) -> str:
    return cell_id(curve_id(reading.identity), reading.concurrency)


def refusal(record: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(InputError) as refused:
        of(record, **changes)
    return str(refused.value)


def test_a_deployment_without_roles_is_the_cell_of_its_artifact() -> None:
    """The app writes tp 4 into both roles and takes tp·ep = 8 for its GPUs, which are 4."""
    row = shown({**SINGLE, "pp": 3})
    assert (row["decode_tp"], row["num_decode_gpu"]) == (4, 8)
    reading = of(row)
    artifact = inferencex.read({**SINGLE, "pp": 3}, Given(START))
    assert cell(reading) == cell(artifact)
    assert (reading.identity["tp"], reading.identity["prefill_tp"], reading.num_gpus) == (4, None, 12)
    assert (reading.metrics, reading.metrics_other) == (artifact.metrics, artifact.metrics_other)
    assert reading.image == "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc2"


PARTS = {"router_name": "dynamo-kv", "router_version": "0.5.1", "kv_p2p_transfer": "nixl", "kv_offloading": "cpu"}


def test_workers_by_role_are_the_cell_of_their_artifact() -> None:
    row = shown({**BY_ROLE, "prefill_pp": 2})
    row["metrics"] |= {**PARTS, "kv_offload_backend": "lmcache", "recipe_fingerprint": 7}
    reading = of(row)
    artifact = inferencex.read({**BY_ROLE, "prefill_pp": 2}, Given(START))
    assert cell(reading) == cell(artifact)
    assert (reading.num_gpus, reading.recipe_fingerprint, reading.metrics_other) == (52, None, {})


def test_workers_that_do_both_are_the_cell_of_their_artifact() -> None:
    both = {"disagg": False, "decode_tp": 0, "decode_ep": 0, "decode_num_workers": 0, "num_decode_gpu": 0}
    record = {key: value for key, value in {**BY_ROLE, **both}.items() if not key.startswith(("router", "kv_"))}
    row = shown(record)
    assert (row["decode_num_workers"], row["num_decode_gpu"]) == (5, 20)
    reading = of(row)
    assert cell(reading) == cell(inferencex.read(record, Given(START)))
    assert reading.num_gpus == 20


def test_an_agentic_row_is_the_cell_of_its_artifact_but_for_the_data_set() -> None:
    """As `agentic-v3-flatten.ts` has it; full-response values stand under `itl`, and tpot stays what it was."""
    flat = {
        "tput_per_gpu": 1008.0,
        "mean_tpot": 0.02,
        "median_tpot": 0.02,
        "median_ttft": 2.0,
        "mean_itl": 0.025,
        "mean_intvty": 40.0,
    }
    flat |= {"mean_full_response_itl": 0.025, "pp": 2, "dcp_size": 1, "pcp_size": 1, "duration_seconds": 600, "mean_qps": 0.5}
    parts = {"offload_mode": "on", "kv_offloading": "dram", "kv_offload_backend": "lmcache", "kv_offload_backend_version": "0.4"}
    row = shown(V3, benchmark_type="agentic_traces", offload_mode="on", metrics={**flat, **parts})
    reading = of(row)
    assert cell(reading) == cell(inferencex_agentic.read({**V3, "dataset": None}, Given(START)))
    assert (reading.metrics["tpot_mean"], reading.metrics["intvty_mean"], reading.duration_s) == (0.02, 50.0, 600.0)
    assert reading.metrics_other == {"tpot_full_response_mean": 0.025, "completions_per_second_mean": 0.5}
    assert (reading.identity["isl"], reading.metric_definition) == (None, "inferencex agentic v3")
    del row["metrics"]["kv_offloading"], row["metrics"]["kv_offload_backend"], row["metrics"]["kv_offload_backend_version"]
    assert of(row).identity["kv_offload"] == "on"


def test_rows_of_november_2025() -> None:
    """`precision` was empty before 2025-09-15; what ran under Dynamo was disaggregated and had no roles in the row."""
    row = shown({**SINGLE, "framework": "dynamo-trt", "disagg": True, "tp": 36, "ep": 1}, precision="", image=None)
    early = Given(datetime(2025, 9, 14, tzinfo=UTC))
    assert (read(row, early).identity["precision"], read(row, early).num_gpus) == ("fp8", 36)
    assert read(row, Given(START, {"precision": "fp4", "image": "x/y:v1"})).declared == ("image", "precision")


def test_the_run_of_a_row() -> None:
    row = shown(SINGLE)
    told = origin(row, Given())
    assert told is not None
    assert (told.run_source, told.run_id, told.run_attempt) == ("SemiAnalysisAI/InferenceX", "20613446912", 2)
    assert told.started_at == datetime(2026, 1, 1, tzinfo=UTC)
    exact = origin({**row, "run_started_at": "2026-01-01 07:15:00+00", "run_url": row["run_url"].split("/attempts")[0]}, Given())
    assert exact is not None
    assert (exact.started_at, exact.run_attempt) == (datetime(2026, 1, 1, 7, 15, tzinfo=UTC), 1)


@pytest.mark.parametrize("url", [None, "", 7, "https://example.org/actions/runs/1", "https://github.com/a/b/actions/runs/x"])
def test_a_row_without_a_run_has_no_origin(url: Any) -> None:
    assert origin({**shown(SINGLE), "run_url": url}, Given()) is None
    assert origin({**shown(SINGLE), "date": None}, Given()) is None


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(InputError, match=r"^date: "):
        origin({**shown(SINGLE), "date": "yesterday"}, Given())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metrics": []}, "metrics: "),
        ({"hardware": None}, "hardware: field required"),
        ({"spec_method": 5}, "spec_method: "),
        ({"model": []}, "model: "),
        ({"prefill_tp": None, "decode_tp": None}, "prefill_tp: "),
        ({"decode_tp": 8}, "decode_tp: "),
        ({"isl": None}, "isl: field required"),
        ({"metrics": {"tput_per_gpu": "fast"}}, "tput_per_gpu: "),
    ],
)
def test_a_wrong_field_is_named_as_the_api_calls_it(changes: dict[str, Any], field: str) -> None:
    assert refusal(shown(SINGLE), **changes).startswith(field)


def test_how_rows_are_known() -> None:
    row = shown(SINGLE)
    assert FORMAT.recognises(row)
    assert not FORMAT.recognises({**row, "task": "gsm8k"})
    assert not inferencex.FORMAT.recognises(row)
    assert not inferencex_agentic.FORMAT.recognises(row)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "1e999", "", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tput_per_gpu", "pp", "router_name"]), inner),
    max_leaves=5,
)


@given(st.sampled_from([shown(SINGLE), shown(BY_ROLE), shown(V3, benchmark_type="agentic_traces")]), st.data())
def test_any_row_is_read_or_refused(record: dict[str, Any], data: st.DataObject) -> None:
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(record)), ANYTHING, max_size=4))
    for look in (lambda row: read(row, Given(START)), lambda row: origin(row, Given())):
        try:
            found = look({**record, **changes})
        except InputError as refused:
            assert "\n" not in str(refused)
            continue
        numbers = [*found.metrics.values(), *found.metrics_other.values()] if isinstance(found, Reading) else []
        assert all(map(math.isfinite, numbers))


def real(name: str) -> Any:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"shared/data/inferencex/{name} absent")
    return path


def test_real_artifact_rows_are_the_same_cells_in_the_api() -> None:
    for path in sorted(real("runs").glob("*/agg_bmk.json")):
        for record in json.loads(path.read_text("utf-8")):
            artifact, reading = inferencex.read(record, Given(START)), of(shown(record))
            assert cell(reading) == cell(artifact)
            assert (reading.num_gpus, reading.metrics) == (artifact.num_gpus, artifact.metrics)


def test_real_rows_of_the_api() -> None:
    """145 rows of DeepSeek-R1, no two of one cell; one is of a run whose artifact is at hand."""
    rows = json.loads(real("api/benchmarks.json").read_text("utf-8"))
    origins = [origin(row, Given()) for row in rows]
    readings = [read(row, Given(told.started_at)) for row, told in zip(rows, origins, strict=True) if told]
    assert len({cell(reading) for reading in readings}) == len(rows) == 145
    assert {reading.unknown_names for reading in readings} == {()}
    place = next(place for place, told in enumerate(origins) if told and told.run_id == "20356790608")
    artifact = json.loads(real("runs/run_20356790608/agg_bmk.json").read_text("utf-8"))
    same = [found for record in artifact if cell(found := inferencex.read(record, Given(START))) == cell(readings[place])]
    assert [found.metrics for found in same] == [readings[place].metrics]
    assert [found.num_gpus for found in same] == [readings[place].num_gpus] == [24]


def test_as_artifact_keeps_the_row() -> None:
    row = shown(SINGLE)
    before = json.dumps(row)
    as_artifact(row)
    assert json.dumps(row) == before
