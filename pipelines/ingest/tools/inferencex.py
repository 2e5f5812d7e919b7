"""InferenceX rows (`agg_bmk.json`, `agg_*.json`): fixed-sequence benchmark results, one row a cell, as they really are.

Field meanings and their history: InferenceX `utils/process_result.py` and its git history (Apache-2.0). Traps read here: booleans
that are texts, runner labels for hardware, `p99.9_` keys with a dot, `std_intvty` (1000/std_tpot, meaningless), disaggregated
rows without `tp`, decode GPUs 0, metric definitions that changed under the same name.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipelines.ingest.reading import MAX_OTHER, Reading, RecordFormat, Split
from pipelines.ingest.runs import first_problem
from warehouse import vocabulary
from warehouse.errors import InputError
from warehouse.schemas import METRIC_COLUMNS

PER_ROLE_TOKENS_SINCE = datetime(2025, 11, 5, tzinfo=UTC)
"""Since InferenceX PR 177 disaggregated output is per decode GPU and input per prefill GPU; before, both were per GPU of all."""
PRECISION_SINCE = datetime(2025, 9, 15, tzinfo=UTC)
MAX_GPUS = 1_000_000
"""GPUs of one deployment, far above any that exists; a larger product of parallel sizes is a mistake and no Int64 either."""

_METRIC = re.compile(r"(mean|median|std|p\d{2}(?:\.\d+)?)_(ttft|tpot|itl|e2el|intvty)")
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)
_THROUGHPUTS = ("tput_per_gpu", "output_tput_per_gpu", "input_tput_per_gpu")
LEAST_METRIC, LARGEST_METRIC = 1e-12, 1e12
"""Bounds of a metric that is not nought, in its own unit; what lies beyond is a mistake, and ratios of it overflow."""
LAST_CLOCK = 4e9
"""Unix seconds that a benchmark can have started at: up to the year 2096."""
MAX_METRIC_NAME = 40
"""Longest name that can be a metric's, characters."""
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?")
_NO_WORD = re.compile(r'[\s"\\]')
_MEANINGLESS = frozenset({"std_intvty"})
_WRITTEN_WHEN_MISSING = {"recipe_fingerprint": ""}
"""What the producer writes for a value that it was not given (InferenceX PR 2613)."""
MARKERS = frozenset({"hw", "conc", "framework", "tput_per_gpu"})


def _text_boolean(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return value


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not true or false")
    return value


Boolean = Annotated[bool, BeforeValidator(_text_boolean)]
Count = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(_no_boolean)]
CountOrZero = Annotated[int, Field(ge=0, le=100_000_000), BeforeValidator(_no_boolean)]
Text = Annotated[str, Field(min_length=1, max_length=512)]


class _Part(BaseModel):
    """A named part of the stack with its version: router, offload backend."""

    model_config = ConfigDict(extra="ignore")
    name: Text
    version: str | None = None

    def __str__(self) -> str:
        """Name and version; what would be taken for two words is quoted, so that no name imitates a name and a version."""
        return f"{_word(self.name)} {_word(self.version)}" if self.version else _word(self.name)


def _word(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if _NO_WORD.search(text) else text


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Part = Annotated[_Part, BeforeValidator(_named)]
"""A part that is only named by a text is the part of that name."""


class _Row(BaseModel):
    """Identity fields of a row; a missing parallel size meant 1, a missing precision fp8, a missing method none.

    A field that is null is a field that is missing.
    """

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    hw: Text
    conc: Count
    framework: Text
    model: Text | None = None
    infmax_model_prefix: Text | None = None
    precision: Text | None = None
    image: Text | None = None
    spec_decoding: Text | None = None
    mtp: str | None = None
    disagg: Boolean = False
    is_multinode: Boolean = False
    isl: Count
    osl: Count
    tp: Count | None = None
    pp: Count = 1
    ep: CountOrZero = 1
    dcp_size: Count = 1
    pcp_size: Count = 1
    dp_attention: Boolean = False
    prefill_hw: Text | None = None
    decode_hw: Text | None = None
    prefill_tp: Count | None = None
    prefill_pp: Count = 1
    prefill_ep: CountOrZero = 1
    prefill_dcp_size: Count = 1
    prefill_pcp_size: Count = 1
    prefill_dp_attention: Boolean = False
    prefill_num_workers: CountOrZero | None = None
    decode_tp: CountOrZero | None = None
    decode_pp: CountOrZero = 1
    decode_ep: CountOrZero = 1
    decode_dcp_size: CountOrZero = 1
    decode_pcp_size: CountOrZero = 1
    decode_dp_attention: Boolean = False
    decode_num_workers: CountOrZero | None = None
    num_prefill_gpu: CountOrZero | None = None
    num_decode_gpu: CountOrZero | None = None
    router: Part | None = None
    kv_p2p_transfer: Text | None = None
    kv_offloading: Text | None = None
    kv_offload_backend: Part | None = None
    recipe_fingerprint: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{8,128}$")] | None = None
    benchmark_start_time_unix: Annotated[float, Field(gt=0, lt=LAST_CLOCK), BeforeValidator(_no_boolean)] | None = None
    tput_per_gpu: Annotated[float, Field(gt=0), BeforeValidator(_no_boolean)]


_NOT_METRICS = frozenset(_Row.model_fields) - frozenset(_THROUGHPUTS) | _MEANINGLESS


def read(record: dict[str, Any], started_at: datetime) -> Reading:
    """Return *record* as a reading; raises InputError naming the field that is wrong."""
    try:
        row = _Row.model_validate(
            {key: value for key, value in record.items() if value is not None and value != _WRITTEN_WHEN_MISSING.get(key, ...)}
        )
    except ValidationError as error:
        raise InputError(first_problem(error)) from None
    if row.precision is None and started_at >= PRECISION_SINCE:
        raise InputError("precision: field required (only before 2025-09-15 did a missing one mean fp8)")
    identity, unknown = _identity(row)
    metrics, other = _metrics(record)
    return Reading(
        identity=identity,
        concurrency=row.conc,
        num_gpus=_num_gpus(row),
        image=row.image,
        metrics=metrics,
        metrics_other=other,
        metric_definition=_definition(row, started_at),
        hardware_label=row.hw,
        model_source=row.model,
        checkpoint=vocabulary.checkpoint(row.model) if row.model else None,
        recipe_fingerprint=row.recipe_fingerprint.lower() if row.recipe_fingerprint else None,
        measured_at=datetime.fromtimestamp(row.benchmark_start_time_unix, UTC) if row.benchmark_start_time_unix else None,
        unknown_names=unknown,
    )


def _identity(row: _Row) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    hardware = vocabulary.hardware(row.hw)
    framework = vocabulary.framework(row.framework)
    model = vocabulary.model(row.infmax_model_prefix, row.model)
    precision = vocabulary.precision(row.precision or "fp8")
    looked_up = {"hardware": hardware, "framework": framework, "model": model, "precision": precision}
    method = row.spec_decoding or ("mtp" if (row.mtp or "").lower() == "on" else "none")
    identity = {
        **{kind: name.value for kind, name in looked_up.items()},
        "engine": vocabulary.engine_of_framework(framework.value),
        "spec_decoding": method.strip().lower(),
        "disagg": row.disagg,
        "is_multinode": row.is_multinode,
        "prefill_hardware": _other_hardware(row.prefill_hw, hardware.value),
        "decode_hardware": _other_hardware(row.decode_hw, hardware.value),
        **_sizes(row),
        "router": str(row.router) if row.router else None,
        "kv_transfer": row.kv_p2p_transfer,
        "kv_offload": _offload(row),
        "scenario": "fixed-seq-len",
        "isl": row.isl,
        "osl": row.osl,
    }
    return identity, tuple((kind, name.value) for kind, name in looked_up.items() if not name.known)


def _other_hardware(label: str | None, whole: str) -> str | None:
    """Return the accelerator of a role where it is another than the row's; a missing one was the same."""
    name = vocabulary.hardware(label).value if label else whole
    return None if name == whole else name


def _has_roles(row: _Row) -> bool:
    return row.tp is None or (row.disagg and row.num_prefill_gpu is not None and row.num_decode_gpu is not None)


_SIZES = {"tp": "tp", "pp": "pp", "ep": "ep", "dcp": "dcp_size", "pcp": "pcp_size", "dp_attention": "dp_attention"}


def _sizes(row: _Row) -> dict[str, Any]:
    """Return every size that the row has, of the whole and by role: some rows have both, and what differs is another cell."""
    if row.tp is None and (row.prefill_tp is None or row.num_prefill_gpu is None or row.num_decode_gpu is None):
        raise InputError("tp: field required (or prefill_tp, num_prefill_gpu and num_decode_gpu for workers by role)")
    return {
        **_sizes_of(row, "", row.tp is not None),
        **_sizes_of(row, "prefill_", row.prefill_tp is not None),
        **_sizes_of(row, "decode_", row.prefill_tp is not None),
        "prefill_num_workers": row.prefill_num_workers,
        "decode_num_workers": row.decode_num_workers,
        "num_prefill_gpus": row.num_prefill_gpu,
        "num_decode_gpus": row.num_decode_gpu,
    }


def _sizes_of(row: _Row, prefix: str, present: bool) -> dict[str, Any]:
    """Return the sizes of the whole (no prefix) or of a role; where that is not *present* a size counts if it says something."""
    found = {}
    for column, field in _SIZES.items():
        value = getattr(row, prefix + field)
        says = present or value != _Row.model_fields[prefix + field].default
        found[prefix + column] = value if says else None
    return found


def _offload(row: _Row) -> str | None:
    if not row.kv_offloading or row.kv_offloading.lower() == "none":
        return None
    place = _word(row.kv_offloading)
    return f"{place} {row.kv_offload_backend}" if row.kv_offload_backend else place


def _num_gpus(row: _Row) -> int:
    """GPUs of the deployment: tp·pp·pcp, or prefill and decode GPUs together (InferenceX process_result.py)."""
    roles = _has_roles(row)
    total = (row.num_prefill_gpu or 0) + (row.num_decode_gpu or 0) if roles else (row.tp or 1) * row.pp * row.pcp_size
    field = "num_prefill_gpu" if roles else "tp"
    if total < 1:
        raise InputError(f"{field}: no GPU at all (num_prefill_gpu and num_decode_gpu are both 0)")
    if total > MAX_GPUS:
        raise InputError(f"{field}: {total} GPUs in one deployment; at most {MAX_GPUS} are believed")
    return total


def _definition(row: _Row, started_at: datetime) -> str:
    if row.disagg and started_at < PER_ROLE_TOKENS_SINCE:
        return "inferencex disaggregated, all GPUs"
    return "inferencex disaggregated, per role" if row.disagg else "inferencex"


def _metrics(record: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    metrics: dict[str, float] = {}
    other: dict[str, float] = {}
    for key, value in record.items():
        if value is None or key in _NOT_METRICS:
            continue
        name = _metric_name_of(key)
        if name is not None:
            metrics[name] = _metric(key, value)
        elif _is_number(value):
            other[key[:MAX_OTHER]] = _finite(key, value)
    return metrics, other


def _metric_name_of(key: str) -> str | None:
    """Return the column of a metric's key, or None where it is none."""
    return _metric_name(key) if len(key) <= MAX_METRIC_NAME else None


@lru_cache(maxsize=1024)
def _metric_name(key: str) -> str | None:
    if key in _THROUGHPUTS:
        return key
    match = _METRIC.fullmatch(key)
    name = f"{match[2]}_{match[1].replace('.', '')}" if match else None
    return name if name in _COLUMNS else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _metric(key: str, value: Any) -> float:
    """Return a time or a rate, which is never below zero; some producers write numbers as texts."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if not _is_number(value):
        raise InputError(f"{key}: {str(value)[:60]!r} is not a number")
    if (number := _finite(key, value)) < 0:
        raise InputError(f"{key}: {number} is below zero")
    if number and not LEAST_METRIC <= number <= LARGEST_METRIC:
        raise InputError(f"{key}: {number} is not between {LEAST_METRIC:g} and {LARGEST_METRIC:g}")
    return number


def _finite(key: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{key}: {str(value)[:60]} is not a finite number")
    return number + 0.0  # canonical JSON knows no -0


_CLOCK = "benchmark_start_time_unix"


def _clock(record: dict[str, Any]) -> datetime | None:
    """Return the benchmark's own start; raises InputError where it is not a plain number, so that `read` looks at the record."""
    value = record.get(_CLOCK)
    if value is None:
        return None
    if not _is_number(value) or not 0 < value < LAST_CLOCK:
        raise InputError(f"{_CLOCK}: not a plain number")
    return datetime.fromtimestamp(value, UTC)


FORMAT = RecordFormat(
    "inferencex",
    "InferenceX fixed-sequence result rows (agg_bmk.json, agg_*.json); docs/formats.md",
    MARKERS,
    read,
    Split(
        setup=frozenset(_Row.model_fields) - frozenset(_THROUGHPUTS) - {_CLOCK, "image"},
        image="image",
        clock=_CLOCK,
        metric_name=_metric_name_of,
        clock_of=_clock,
        ignored=_MEANINGLESS | {_CLOCK, "image"},
        positive=("tput_per_gpu",),
        least=LEAST_METRIC,
        largest=LARGEST_METRIC,
        era=lambda started: (started < PRECISION_SINCE, started < PER_ROLE_TOKENS_SINCE),
    ),
)
