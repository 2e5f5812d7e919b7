"""Evaluations of InferenceX: rows of `agg_eval_*.json` and of `/api/v1/evaluations`, `meta_env.json` beside lm-eval results.

Facts: InferenceX `utils/collect_eval_results.py`, `benchmarks/benchmark_lib.sh` (`_write_lm_eval_meta_json`), InferenceX-app
`packages/db/src/etl/eval-mapper.ts`, `queries/evaluations.ts` (all Apache-2.0). The producers write sizes by role for every row,
with one worker each where there are no roles; on one node they say nothing of roles, and are read as those of one deployment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pipelines.ingest.declarations import checked, placed
from pipelines.ingest.numbers import whole
from pipelines.ingest.origins import day_run, placed_or_none
from pipelines.ingest.reading import Dictionary, EvalReading, Field, Given, Origin, RecordFormat
from pipelines.ingest.tools.evaluating import Score, System, name_of, readings, score_value
from pipelines.ingest.tools.fields import count, flag, part, text
from pipelines.ingest.tools.plain_names import model_name
from pipelines.ingest.tools.taming import without_private
from warehouse import vocabulary
from warehouse.clock import parse_instant
from warehouse.errors import InputError

AGGREGATE_MARKERS = frozenset({"task", "hw", "em_strict", "n_eff"})
API_MARKERS = frozenset({"task", "metrics", "spec_method", "timestamp"})
META_MARKERS = frozenset({"hw", "infmax_model_prefix", "spec_decoding", "prefill_tp", "conc"})
NAMES = {"em_strict": "exact_match,strict-match", "em_flexible": "exact_match,flexible-extract"}
"""Names of metrics in lm-eval's results; true of tasks whose filters are so called."""
TASKS_OF_NAMES = frozenset({"gsm8k"})
"""Tasks whose filters are `strict-match` and `flexible-extract`; of others the collector renames what is like them."""
_UNKNOWN = frozenset({"", "unknown", "none", "null"})
_SIZES = ("tp", "ep", "dp_attention")
_RUN_URL = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/actions/runs/(\d{1,20})(?:/attempts/(\d{1,4}))?/?")
_LENGTHS = re.compile(r"(?<![a-z0-9])(\d{1,3})k(\d{1,3})k(?![a-z0-9])")
_STAMP = re.compile(r"results\w*_(\d{4}-\d{2}-\d{2})T(\d{2})[-:](\d{2})[-:](\d{2})(\.\d{1,6})?")
_DISAGGREGATED = re.compile(r"(^|-)(dynamo|mori|mooncake|disagg)(-|$)")


def read_aggregate(record: dict[str, Any], given: Given) -> list[EvalReading]:
    """Return the scores of a row of `agg_eval_*.json`; raises InputError naming the field that is wrong."""
    task = name_of("task", record.get("task"))
    isl, osl = _lengths(record)
    system = _system(
        record,
        hardware=_told(record, "hw"),
        method=text(record, "spec_decoding"),
        model=model_name(_told(record, "model")),
        prefix=_told(record, "model_prefix"),
        isl=isl,
        osl=osl,
        measured_at=placed_or_none(_stamp(record), given, "source"),
    )
    scores = list(_scores(record, task, "", record.get("score_name")))
    return _read(system, scores, given)


def read_api(record: dict[str, Any], given: Given) -> list[EvalReading]:
    """Return the scores of a row of `/api/v1/evaluations`; raises InputError naming the field that is wrong."""
    task = name_of("task", record.get("task"))
    system = _system(
        record,
        hardware=_told(record, "hardware"),
        method=text(record, "spec_method"),
        prefix=_told(record, "model"),
        isl=count(record, "isl") or None,
        osl=count(record, "osl") or None,
    )
    return _read(system, list(_scores(part(record, "metrics"), task, "metrics.", None)), given)


def _read(system: System, scores: list[Score], given: Given) -> list[EvalReading]:
    if not scores:
        raise InputError("score: no score in the row; the evaluation failed, or its collector knew none of its metrics")
    return readings(system, scores, given)


def _system(
    record: Mapping[str, Any],
    *,
    hardware: str | None,
    method: str | None,
    isl: int | None,
    osl: int | None,
    model: str | None = None,
    prefix: str | None = None,
    measured_at: datetime | None = None,
) -> System:
    framework = _told(record, "framework")
    identity, sizes = _roles(record, framework or "")
    return System(
        framework=framework,
        hardware=hardware,
        model=model,
        model_prefix=prefix,
        precision=_told(record, "precision"),
        spec_decoding=None if (method or "").strip().lower() in ("", "unknown") else method,
        tp=sizes.get("tp"),
        ep=sizes.get("ep"),
        dp_attention=sizes.get("dp_attention"),
        disagg=identity.pop("disagg"),
        isl=isl,
        osl=osl,
        concurrency=count(record, "conc") or None,
        identity={**identity, "scenario": "fixed-seq-len" if isl and osl else None},
        measured_at=measured_at,
    )


def _roles(record: Mapping[str, Any], framework: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return identity columns by role, and the sizes of a single deployment; one of the two is without sizes."""
    by_role = {role: {name: _size(record, f"{role}_{name}") for name in _SIZES} for role in ("prefill", "decode")}
    workers = {role: count(record, f"{role}_num_workers") for role in by_role}
    several = flag(record, "is_multinode") or False  # before it was written (2026-04-19) single nodes alone were evaluated
    single = {name: _size(record, name) for name in _SIZES}
    if not several and not _is_disaggregated(framework) and by_role["prefill"] == by_role["decode"]:
        sizes = {name: by_role["prefill"][name] if value is None else value for name, value in single.items()}
        return {"disagg": False, "is_multinode": several}, sizes
    if by_role["prefill"]["tp"] is None:
        return {"disagg": None, "is_multinode": several}, single
    columns = {f"{role}_{name}": value for role, own in by_role.items() for name, value in own.items()}
    told = {f"{role}_num_workers": number for role, number in workers.items()}
    disagg = None if workers["decode"] is None else workers["decode"] > 0
    return {"disagg": disagg, "is_multinode": several, **columns, **told}, {}


def _is_disaggregated(framework: str) -> bool:
    return bool(_DISAGGREGATED.search(framework.strip().lower()))


def _size(record: Mapping[str, Any], key: str) -> Any:
    """Return a size; truths are JSON's or texts, and `prefill=true,decode=false` is none of one deployment."""
    value = record.get(key)
    if not key.endswith("dp_attention"):
        return None if value is None else whole(key, value, largest=1_000_000) or None
    plain = str(value).strip().lower()
    return plain == "true" if plain in ("true", "false") else None


def _scores(found: Mapping[str, Any], task: str, where: str, score_name: Any) -> Iterator[Score]:
    """Yield the scores of a row; `score` repeats the strict match, or holds what no other field holds."""
    samples = count(found, "n_eff", where)
    named = {"em_strict": "em_strict", "em_flexible": "em_flexible"}
    if score_value(f"{where}em_strict", found.get("em_strict")) is None:
        named["score"] = "acc" if score_name == "accuracy" else "score"
    for key, name in named.items():
        value = score_value(f"{where}{key}", found.get(key))
        if value is None:
            continue
        stderr = score_value(f"{where}{key}_se", found.get(f"{key}_se"))
        if stderr is not None and stderr < 0:
            raise InputError(f"{where}{key}_se: {stderr:g} is below zero")
        yield Score(task, NAMES.get(name, name) if task in TASKS_OF_NAMES else name, value, stderr, samples)


def _told(record: Mapping[str, Any], key: str) -> str | None:
    value = text(record, key)
    return None if value is None or value.lower() in _UNKNOWN else value


def _lengths(record: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return nominal lengths, tokens: before 2026-06-20 they stand in the names of `source` alone, as `8k1k`."""
    isl, osl = count(record, "isl") or None, count(record, "osl") or None
    if (isl is None or osl is None) and (match := _LENGTHS.search((text(record, "source") or "").lower().replace("_", " "))):
        return int(match[1]) * 1024, int(match[2]) * 1024
    return isl, osl


def _stamp(record: Mapping[str, Any]) -> datetime | None:
    """Return the time in the name of the results file, which has no zone."""
    match = _STAMP.search(text(record, "source") or "")
    if not match:
        return None
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}:{match[3]}:{match[4]}{(match[5] or '.0').ljust(7, '0')}")
    except ValueError:
        raise InputError(f"source: {match[0][:60]!r} holds no time") from None


def origin_aggregate(record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run of the day in the name of the results file; asks for `timezone`, which that name has not."""
    stamp = _stamp(record)
    return None if stamp is None else day_run(placed(stamp, given.declared, "source"))


def origin_api(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the workflow run that a row names; `timestamp` is when that run was made, not when it measured."""
    match = _RUN_URL.fullmatch(text(record, "run_url") or "")
    stamp = text(record, "timestamp")
    if match is None or stamp is None:
        return None
    return Origin(match[1], match[2], parse_instant(stamp, "timestamp"), run_attempt=int(match[3] or 1) or 1, url=match[0])


def clean_aggregate(record: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the folders of the machine that collected it: of `source` the artifact and the file are kept."""
    found = {key: value for key, value in without_private(record).items() if not isinstance(value, list | dict)}
    if isinstance(found.get("source"), str):
        found["source"] = "/".join(found["source"].replace("\\", "/").split("/")[-2:])
    if isinstance(found.get("model"), str):
        found["model"] = model_name(found["model"])
    return found


def is_meta_env(value: Any) -> bool:
    """Say whether *value* is a `meta_env.json`."""
    return isinstance(value, Mapping) and value.keys() >= META_MARKERS and "task" not in value


def sidecar_settings(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return what a `meta_env.json` declares for the results beside it, by key of `declarations.KEYS`; raises InputError.

    The concurrency of a batch is left out, because the names of its files tell it. Where there are several nodes or roles the
    sizes are those by role: `tp` and `ep` of such a file are those that prefill.
    """
    framework = _told(meta, "framework") or ""
    model = model_name(_told(meta, "model"))
    found: dict[str, Any] = {
        "framework": framework or None,
        "hardware": _told(meta, "hw"),
        "model": model if model and vocabulary.model(None, model).known else _told(meta, "infmax_model_prefix") or model,
        "precision": _told(meta, "precision"),
        "spec_decoding": _told_method(meta),
        "recipe": _told(meta, "recipe_fingerprint"),
        "isl": _positive(meta, "isl"),
        "osl": _positive(meta, "osl"),
        "concurrency": None if isinstance(meta.get("eval_concs"), list) else _positive(meta, "conc"),
    }
    if not flag(meta, "is_multinode") and not _is_disaggregated(framework):
        found |= {key: _positive(meta, key) for key in ("tp", "pp", "ep")}
        attention = _size(meta, "dp_attention")
        found |= {"dp_attention": None if attention is None else attention, "disagg": False}
    else:
        found |= {"is_multinode": flag(meta, "is_multinode"), **_by_role(meta)}
    return checked(((key, value) for key, value in found.items() if value is not None), "meta_env.json")


def _by_role(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return sizes and workers of both roles; 0 stands for what is not known."""
    names = [f"{role}_{name}" for role in ("prefill", "decode") for name in ("tp", "pp", "ep", "dp_attention", "num_workers")]
    return {name: _size(meta, name) if name.endswith("dp_attention") else _positive(meta, name) for name in names}


def _told_method(meta: Mapping[str, Any]) -> str | None:
    method = (text(meta, "spec_decoding") or "").lower()
    return None if method in ("", "unknown") else method


def _positive(meta: Mapping[str, Any], key: str) -> int | None:
    """Return a count; 0 stands for what is not known. Lengths are texts."""
    value = meta.get(key)
    return None if value in (None, "") else whole(f"meta_env.json: {key}", value, largest=100_000_000) or None


_TRAPS = (
    "Sizes and workers by role stand in every row, with one worker each where there are no roles; the API makes `disagg: true` "
    "and GPUs of tp * ep * workers of them. On one node, with sizes alike and a framework that is no disaggregated one, they are "
    "of one deployment.",
    "`score` repeats the strict match.",
    "`em_strict` is `exact_match,strict-match` of gsm8k; of other tasks it is whatever filter is like it.",
)
AGGREGATE_FORMAT = RecordFormat(
    "inferencex-eval",
    "InferenceX evaluation rows (agg_eval_all.json, eval_results_all)",
    AGGREGATE_MARKERS,
    read_aggregate,
    without=frozenset({"tput_per_gpu", "metrics"}),
    kind="eval",
    origin=origin_aggregate,
    clean=clean_aggregate,
    dictionary=Dictionary(
        fields=(
            Field("task", "task"),
            Field("em_strict, em_flexible, score", "score", "share of 1"),
            Field("em_strict_se, em_flexible_se, score_se", "score_stderr", "share of 1"),
            Field("score_name", "metric", "", "accuracy: acc"),
            Field("n_eff", "samples", "questions"),
            Field("hw", "hardware", "", "upper case"),
            Field("model_prefix", "model", "", "", "2026-02-19"),
            Field("isl, osl", "isl, osl", "tokens", "before: `8k1k` in `source`", "2026-06-20"),
            Field("conc", "concurrency", "requests"),
            Field("tp, ep, dp_attention", "tp, ep, dp_attention", "", "of one deployment"),
            Field("prefill_*, decode_*, is_multinode", "prefill_*, decode_*", "", "of several nodes", "2026-04-19"),
            Field("source", "measured_at", "", "time in the file's name, where a timezone is declared"),
        ),
        traps=_TRAPS,
    ),
)
API_FORMAT = RecordFormat(
    "inferencex-eval-api",
    "InferenceX public API, /api/v1/evaluations",
    API_MARKERS,
    read_api,
    kind="eval",
    origin=origin_api,
    clean=without_private,
    dictionary=Dictionary(
        fields=(
            Field("task", "task"),
            Field("metrics.em_strict, em_flexible, score", "score", "share of 1"),
            Field("metrics.em_strict_se, em_flexible_se, score_se", "score_stderr", "share of 1"),
            Field("metrics.n_eff", "samples", "questions"),
            Field("hardware, framework, model, precision, spec_method", "hardware, framework, model, precision, spec_decoding"),
            Field("conc", "concurrency", "requests"),
            Field("prefill_*, decode_*, is_multinode", "prefill_*, decode_*"),
            Field("run_url", "run_id"),
            Field("timestamp", "run_started_at", "ISO 8601", "when the workflow run was made"),
        ),
        left_out=(
            ("disagg, num_prefill_gpu, num_decode_gpu", "derived by the app from defaults, see traps"),
            ("id, config_id", "numbers of a database"),
        ),
        traps=(*_TRAPS, "Lengths are not told, neither are pp, dcp, pcp, image, harness and samples in all."),
    ),
)
FORMATS = (AGGREGATE_FORMAT, API_FORMAT)
