"""What an InferenceX row says of the deployment under test: the same fields in fixed-sequence rows, agentic rows and API rows.

Field meanings and their history: InferenceX `utils/process_result.py` and
`utils/agentic/aggregation/process_agentic_result.py`, and what its app makes of them (`packages/db/src/etl`).
Belongs here: names, sizes, roles, GPUs, what may be declared for them. Does not: metrics, load, lengths.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pipelines.ingest.assembling import Facts
from pipelines.ingest.tools.taming import without_private
from warehouse import vocabulary
from warehouse.cell import IDENTITY_FIELDS
from warehouse.errors import InputError

PER_ROLE_TOKENS_SINCE = datetime(2025, 11, 5, tzinfo=UTC)
"""Since InferenceX PR 177 disaggregated output is per decode GPU and input per prefill GPU; before, both were per GPU of all."""
PRECISION_SINCE = datetime(2025, 9, 15, tzinfo=UTC)
DISAGG_SINCE = datetime(2025, 11, 17, tzinfo=UTC)
"""Since InferenceX PR 237 a row says whether it is disaggregated."""
MAX_GPUS = 1_000_000
"""GPUs of one deployment, far above any that exists; a larger product of parallel sizes is a mistake and no Int64 either."""

_NO_WORD = re.compile(r'[\s"\\]')
_PRECISION_SUFFIX = re.compile(r"-(?:fp4|fp8|mxfp4|nvfp4)(?:-.*)?$")
"""Some rows name the model with its precision: `dsr1-fp8`."""
WRITTEN_WHEN_MISSING = {"recipe_fingerprint": ""}
"""What the producer writes for a value that it was not given (InferenceX PR 2613)."""


def _text_boolean(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return value


def no_boolean(value: Any) -> Any:
    """Refuse true and false where a number is wanted (ValueError, for pydantic)."""
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not true or false")
    return value


Boolean = Annotated[bool, BeforeValidator(_text_boolean)]
Count = Annotated[int, Field(ge=1, le=100_000_000), BeforeValidator(no_boolean)]
CountOrZero = Annotated[int, Field(ge=0, le=100_000_000), BeforeValidator(no_boolean)]
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


class Setup(BaseModel):
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
    disagg: Boolean | None = None
    is_multinode: Boolean = False
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


_DECLARED = {
    "hw": "hardware",
    "conc": "concurrency",
    "framework": "framework",
    "precision": "precision",
    "image": "image",
    "disagg": "disagg",
}
"""Fields of a row → what a user may declare where a row lacks them."""
_DECLARED_OF_WHOLE = ("tp", "pp", "ep", "dp_attention")
"""The same of sizes, which hold for a deployment without roles only."""


def filled(record: dict[str, Any], facts: Facts, *, lengths: bool = True) -> dict[str, Any]:
    """Return what *record* says, nulls left out, and for what it lacks what was declared or what names of files tell.

    *lengths*: with nominal lengths; agentic rows have none.
    """
    own = {key: value for key, value in record.items() if value is not None and value != WRITTEN_WHEN_MISSING.get(key, ...)}
    if not (facts.given.declared or facts.given.named):
        return own
    wanted = {**_DECLARED, **({"isl": "isl", "osl": "osl"} if lengths else {})}
    if "prefill_tp" not in own:
        wanted |= {size: size for size in _DECLARED_OF_WHOLE}
    if "infmax_model_prefix" not in own:
        wanted["model"] = "model"
    if "mtp" not in own:
        wanted["spec_decoding"] = "spec_decoding"
    told = {field: facts.text(key) for field, key in wanted.items() if field not in own}
    return {**own, **{field: value for field, value in told.items() if value is not None}}


def identity(row: Setup, started_at: datetime) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Return the identity of *row* without lengths, scenario and workload, and the names that the vocabulary does not know.

    *started_at* is the start of its run: what a missing field meant changed over time.
    """
    hardware = vocabulary.hardware(row.hw)
    framework = vocabulary.framework(row.framework)
    model = _family(row.infmax_model_prefix, row.model)
    precision = vocabulary.precision(row.precision or "fp8")
    looked_up = {"hardware": hardware, "framework": framework, "model": model, "precision": precision}
    method = row.spec_decoding or ("mtp" if (row.mtp or "").lower() == "on" else "none")
    fields = {
        **dict.fromkeys(IDENTITY_FIELDS),
        **{kind: name.value for kind, name in looked_up.items()},
        "engine": vocabulary.engine_of_framework(framework.value),
        "spec_decoding": method.strip().lower(),
        "disagg": disaggregated(row, started_at),
        "is_multinode": row.is_multinode,
        "prefill_hardware": _other_hardware(row.prefill_hw, hardware.value),
        "decode_hardware": _other_hardware(row.decode_hw, hardware.value),
        **_sizes(row),
        "router": str(row.router) if row.router else None,
        "kv_transfer": row.kv_p2p_transfer,
        "kv_offload": _offload(row),
    }
    return fields, tuple((kind, name.value) for kind, name in looked_up.items() if not name.known)


def _family(prefix: str | None, source: str | None) -> vocabulary.Name:
    name = vocabulary.model(prefix, source)
    if name.known or not prefix:
        return name
    plain = vocabulary.model(_PRECISION_SUFFIX.sub("", prefix.strip().lower()) or prefix)
    return plain if plain.known else name


def disaggregated(row: Setup, started_at: datetime) -> bool:
    """Say whether prefill and decode run on separate workers.

    Rows of runs before 2025-11-17 have no flag; all that then ran under Dynamo did (runners/launch_gb200-nv.sh of that time).
    """
    if row.disagg is not None:
        return row.disagg
    return started_at < DISAGG_SINCE and vocabulary.framework(row.framework).value.startswith("dynamo-")


def _other_hardware(label: str | None, whole: str) -> str | None:
    """Return the accelerator of a role where it is another than the row's; a missing one was the same."""
    name = vocabulary.hardware(label).value if label else whole
    return None if name == whole else name


def _has_roles(row: Setup) -> bool:
    return row.tp is None or bool(row.disagg and row.num_prefill_gpu is not None and row.num_decode_gpu is not None)


_SIZES = {"tp": "tp", "pp": "pp", "ep": "ep", "dcp": "dcp_size", "pcp": "pcp_size", "dp_attention": "dp_attention"}


def _sizes(row: Setup) -> dict[str, Any]:
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


def _sizes_of(row: Setup, prefix: str, present: bool) -> dict[str, Any]:
    """Return the sizes of the whole (no prefix) or of a role; where that is not *present* a size counts if it says something."""
    found = {}
    for column, field in _SIZES.items():
        value = getattr(row, prefix + field)
        says = present or value != Setup.model_fields[prefix + field].default
        found[prefix + column] = value if says else None
    return found


def _offload(row: Setup) -> str | None:
    if not row.kv_offloading or row.kv_offloading.lower() == "none":
        return None
    place = _word(row.kv_offloading)
    return f"{place} {row.kv_offload_backend}" if row.kv_offload_backend else place


def num_gpus(row: Setup) -> int:
    """Return the GPUs of the deployment: tp·pp·pcp, or prefill and decode GPUs together (InferenceX process_result.py)."""
    roles = _has_roles(row)
    total = (row.num_prefill_gpu or 0) + (row.num_decode_gpu or 0) if roles else (row.tp or 1) * row.pp * row.pcp_size
    field = "num_prefill_gpu" if roles else "tp"
    if total < 1:
        raise InputError(f"{field}: no GPU at all (num_prefill_gpu and num_decode_gpu are both 0)")
    if total > MAX_GPUS:
        raise InputError(f"{field}: {total} GPUs in one deployment; at most {MAX_GPUS} are believed")
    return total


def without_hosts(record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* without names of machines (`workers[].hosts`), and without what a private fork may have added of them."""
    record = without_private(record)
    workers = record.get("workers")
    if not isinstance(workers, list):
        return record
    kept = [{key: value for key, value in worker.items() if key in _WORKER} for worker in workers if isinstance(worker, dict)]
    return {**record, "workers": kept}


_WORKER = frozenset(
    {"role", "worker_idx", "num_gpus", "avg_power_w", "avg_temp_c", "peak_temp_c", "avg_util_pct", "avg_mem_used_mb"}
)
