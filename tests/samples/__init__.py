"""One well-formed file of every record format, or more: small files with meaningless numbers, made here by hand.

The records are those of the tests of each format; here they become files, with what must be declared of them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests import test_ingest_aiperf as aiperf
from tests import test_ingest_guidellm as guidellm
from tests import test_ingest_inferencex as inferencex
from tests import test_ingest_inferencex_agentic as agentic
from tests import test_ingest_inferencex_api as api
from tests import test_ingest_inferencex_evals as evals
from tests import test_ingest_inferencex_serving as serving
from tests import test_ingest_llmd as llmd
from tests import test_ingest_llmperf as llmperf
from tests import test_ingest_lm_eval as lm_eval
from tests import test_ingest_mlperf as mlperf
from tests import test_ingest_mlperf_logs as mlperf_logs
from tests import test_ingest_pytorch_hud as pytorch_hud
from tests import test_ingest_sglang_batch as sglang_batch
from tests import test_ingest_sglang_serving as sglang_serving
from tests import test_ingest_trtllm_bench as trtllm_bench
from tests import test_ingest_trtllm_csv as trtllm_csv
from tests import test_ingest_vllm_offline as vllm_offline
from tests import test_ingest_vllm_serve as vllm_serve
from tests.records import row, run_object

SERVER = {"engine": "vllm", "hardware": "h100", "num_gpus": "2", "precision": "fp8"}
MODEL = {"model": "meta-llama/Llama-3.1-8B-Instruct"}
UTC = {"timezone": "UTC"}
WHEN = {"measured_at": "2026-11-01T06:00:00Z"}
"""Dates records that state no time."""


@dataclass(frozen=True)
class Sample:
    """A file: its path, its bytes, the format of its records, how many there are, what is declared, what lies beside it."""

    name: str
    data: bytes
    format: str
    records: int = 1
    declared: dict[str, str] = field(default_factory=dict)
    beside: dict[str, bytes] = field(default_factory=dict)
    """Further files, by path: `run.json`, `shiftlog.yaml`, `meta_env.json`."""

    @property
    def files(self) -> dict[str, bytes]:
        """The file with what lies beside it."""
        return {**self.beside, self.name: self.data}


def as_json(value: Any) -> bytes:
    """Return *value* as a JSON file; NaN and Infinity stand as Python's tools write them."""
    return json.dumps(value, indent=1).encode()


def as_lines(*values: Any) -> bytes:
    """Return *values* as JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def as_yaml(value: Any) -> bytes:
    """Return *value* as YAML."""
    plain = json.loads(json.dumps(value))  # no object twice, which YAML would write as an alias
    return bytes(yaml.safe_dump(plain, encoding="utf-8", sort_keys=False))


def as_csv(rows: list[list[str]]) -> bytes:
    """Return *rows*, the header first, as CSV."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()


def as_zip(members: dict[str, bytes]) -> bytes:
    """Return *members* as an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


RUN = as_json(run_object(77, "2026-11-01T06:00:00Z"))
_SIDECAR = as_yaml({**SERVER, **MODEL, **WHEN, "files": {"latency_*.json": {"isl": 32, "osl": 128, "concurrency": 8}}})
_PERF = "\n".join(
    (
        trtllm_csv.HEADER,
        *(trtllm_csv.row(trtllm_csv.BENCH, *one) for one in (("INFERENCE_TIME", "50000"), ("SEQ_THROUGHPUT", "20"))),
    )
).encode()
_MULTI_TURN = {key: value for key, value in vllm_serve.NEW.items() if key != "num_prompts"} | {
    "mode": "multi_turn",
    "num_conversations": 50,
    "turns_per_conversation": 4,
    "multi_turn_concurrency": 16,
    "per_turn_metrics": [{"turn_index": 0, "mean_ttft_ms": 50.0}],
}
_FOLDER = "closed/Lab/results/Box_H100x8_TRT/llama2-70b-99/Server/performance/run_1"
_LOADGEN = {"engine": "trtllm", **MODEL, **WHEN, **UTC, "hardware": "h100", "num_gpus": "8", "workload": "llama2-70b-99"}


def _inferencex() -> list[Sample]:
    agg = as_json([row(4), row(8)])
    meta = as_json(evals.meta_env())
    batch = as_json({key: value for key, value in evals.row().items() if key != "source"})
    return [
        Sample("run_77/agg_bmk.json", agg, "inferencex", 2, beside={"run_77/run.json": RUN}),
        Sample("dated/agg_bmk.json", as_json([inferencex.BY_ROLE]), "inferencex", 1, WHEN),
        Sample("lines/agg_bmk.jsonl", as_lines(row(4), row(8), row(16)), "inferencex", 3, WHEN),
        Sample("results_bmk.zip", as_zip({"agg_bmk.json": agg, "run.json": RUN}), "inferencex", 2),
        Sample("agg_bmk.json.gz", gzip.compress(agg, mtime=0), "inferencex", 2, WHEN),
        Sample("agentic.json", as_json([agentic.V1, agentic.V2, agentic.V3]), "inferencex-agentic", 3, WHEN),
        Sample("benchmarks.json", as_json([api.shown(inferencex.SINGLE), api.shown(inferencex.BY_ROLE)]), "inferencex-api", 2),
        Sample(f"raw/{serving.NAME.name}", as_json(serving.RAW), "inferencex-serving", 1, {**serving.DECLARED, **UTC}),
        Sample("agg_eval_all.json", as_json([evals.row()]), "inferencex-eval", 1, UTC),
        Sample("eval/agg_eval_all.json", batch, "inferencex-eval", 1, WHEN, {"eval/meta_env.json": meta}),
        Sample("evaluations.json", as_json([evals.api_row(), evals.api_row(conc=64)]), "inferencex-eval-api", 2),
    ]


def _engines() -> list[Sample]:
    offline = {**SERVER, **MODEL, **WHEN}
    vllm = {**SERVER, **UTC}
    latency, throughput = vllm_offline.LATENCY, vllm_offline.THROUGHPUT
    sglang = {**SERVER, **MODEL, **WHEN, "engine": "sglang"}
    return [
        Sample("serve.json", as_json(vllm_serve.NEW), "vllm-serve", 1, vllm),
        Sample("serve.jsonl", as_lines(vllm_serve.OLD, vllm_serve.NEW, vllm_serve.BEST), "vllm-serve", 3, vllm),
        Sample("multi.json", as_json(_MULTI_TURN), "vllm-bench-multi-turn", 1, vllm),
        Sample("latency.json", as_json(latency), "vllm-latency", 1, offline | vllm_offline.BATCH),
        Sample("beside/latency_tp2.json", as_json(latency), "vllm-latency", beside={"beside/shiftlog.yaml": _SIDECAR}),
        Sample("throughput.json", as_json(throughput), "vllm-throughput", 1, offline | {"workload": "sharegpt"}),
        Sample("serve.pytorch.json", as_json(pytorch_hud.serve_rows()), "vllm-serve", 1, vllm),
        Sample("hud.json", as_json(pytorch_hud.serve_rows(**pytorch_hud.UPLOAD)), "pytorch-hud", 1, vllm),
        Sample(
            "online.jsonl",
            as_lines(sglang_serving.RECORD, sglang_serving.RECORD | {"max_concurrency": 8}),
            "sglang-serving",
            2,
            sglang,
        ),
        Sample("batch.jsonl", as_lines(sglang_batch.STATIC), "sglang-one-batch", 1, sglang),
        Sample("served.jsonl", as_lines(sglang_batch.SERVED), "sglang-one-batch-server", 1, sglang),
        Sample("report.json", as_json(trtllm_bench.REPORT), "trtllm-bench", 1, {**WHEN, "concurrency": "16"}),
        Sample("perf.csv", _PERF, "trtllm-perf", 1, WHEN),
    ]


def _clients() -> list[Sample]:
    server = {**SERVER, **UTC}
    summary, responses = llmperf.SUMMARY, llmperf.RESPONSES
    return [
        Sample("profile_export_aiperf.json", as_json(aiperf.record()), "aiperf", 1, server),
        Sample("early_aiperf.json", as_json(aiperf.early()), "aiperf-early", 1, server),
        Sample("profile_export_genai_perf.json", as_json(aiperf.genai()), "genai-perf", 1, {**server, **WHEN}),
        Sample("benchmarks.guidellm.json", as_json(guidellm.report()), "guidellm", 2, server),
        Sample("benchmarks.yaml", as_yaml(guidellm.report()), "guidellm", 2, server),
        Sample("x_550_150_summary.json", as_json(summary), "llmperf", 1, server),
        Sample(
            "x_550_150_individual_responses.json",
            as_json(responses),
            "llmperf",
            1,
            {**server, **MODEL, **WHEN, "concurrency": "5"},
        ),
        Sample("br_v01.yaml", as_yaml(llmd.old_report()), "llm-d-0.1", 1, {"concurrency": "8"}),
        Sample("br_v01.json", as_json(llmd.old_report()), "llm-d-0.1", 1, {"concurrency": "8"}),
        Sample("br_v02.yaml", as_yaml(llmd.report()), "llm-d-0.2"),
        Sample("br_v02.json", as_json(llmd.report()), "llm-d-0.2"),
        Sample("results_2026-11-30T12-06-07.json", as_json(lm_eval.results()), "lm-eval"),
    ]


def _mlperf() -> list[Sample]:
    summary = mlperf_logs.SUMMARY_TEXT.encode()
    detail = mlperf_logs.detail_text().encode()
    return [
        Sample("cm-result.json", as_json([mlperf.ROW]), mlperf.FORMAT.name),
        Sample("summary_results.json", as_json([mlperf.SUMMARY]), mlperf.SUMMARY_FORMAT.name),
        Sample(f"{_FOLDER}/mlperf_log_summary.txt", summary, mlperf_logs.SUMMARY.name, 1, _LOADGEN),
        Sample(f"{_FOLDER}/mlperf_log_detail.txt", detail, mlperf_logs.DETAIL.name, 1, _LOADGEN),
    ]


SAMPLES: tuple[Sample, ...] = (*_inferencex(), *_engines(), *_clients(), *_mlperf())
"""A file or more of every format."""
