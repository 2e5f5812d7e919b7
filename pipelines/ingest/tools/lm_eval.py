"""EleutherAI lm-evaluation-harness, `results_<time>.json` since 0.4: one file is one model on some tasks, one reading a score.

Facts: lm-evaluation-harness `lm_eval/evaluator.py`, `lm_eval/loggers/evaluation_tracker.py` (MIT), and a file of 0.4.13.
A score's key is `metric,filter`, and its standard error's `metric_stderr,filter`. What decides whether two scores can be
compared stands beside them: questions asked and questions there are, examples shown, the task's version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from pipelines.ingest.json_text import LeftOut
from pipelines.ingest.numbers import LAST_CLOCK, metric, whole
from pipelines.ingest.origins import day_run
from pipelines.ingest.reading import Dictionary, EvalReading, Field, Given, Origin, RecordFormat
from pipelines.ingest.tools.evaluating import Score, System, name_of, readings, score_value
from pipelines.ingest.tools.fields import part
from pipelines.ingest.tools.lm_eval_kept import arguments_of, kept
from pipelines.ingest.tools.plain_names import model_name, precision_of
from warehouse.errors import InputError

MARKERS = frozenset({"results", "configs"})
SAMPLE = frozenset({"doc_id", "arguments", "resps", "filtered_resps"})
"""Keys of a line of `samples_<task>_<time>.jsonl`: one question with its answer."""
ENGINES = {"vllm": "vllm", "vllm-vlm": "vllm", "sglang": "sglang", "sglang-generate": "sglang"}
"""Kinds of model that run an engine inside the harness; the others speak to a server or are no engine that we know."""
NO_SCORES = frozenset({"bypass"})
"""A metric that stands for none: tasks that only predict write 999."""
MAX_SCORES = 100_000
_DEPTH = 20
_CONCURRENCY = re.compile(r"_conc(\d{1,7})(?:_\d+)?\.json(?:\.gz)?$")


def read(record: dict[str, Any], given: Given) -> list[EvalReading]:
    """Return the scores of *record*; raises InputError naming the field that is wrong."""
    config = part(record, "config")
    scores = list(_scores(record))
    if not scores:
        raise InputError("results: no score of any task in it")
    return readings(_system(record, config), scores, given)


def _system(record: Mapping[str, Any], config: Mapping[str, Any]) -> System:
    kind, arguments = config.get("model"), arguments_of(config.get("model_args"))
    named = _text(record.get("model_name")) or next(
        (text for key in ("model", "pretrained") if (text := _text(arguments.get(key)))), None
    )
    return System(
        engine=ENGINES.get(kind) if isinstance(kind, str) else None,
        model=model_name(named),
        precision=precision_of(_text(arguments.get("quantization"))),
        tp=_count(arguments, "tensor_parallel_size"),
        pp=_count(arguments, "pipeline_parallel_size"),
        concurrency=_count(arguments, "num_concurrent"),
        measured_at=_clock(record),
        harness_version=_text(record.get("lm_eval_version")),
    )


def _scores(record: Mapping[str, Any]) -> Iterator[Score]:
    results = part(record, "results")
    if len(results) > MAX_SCORES:
        raise InputError(f"results: {len(results)} tasks; at most {MAX_SCORES} are read")
    shots, versions, better = (part(record, key) for key in ("n-shot", "versions", "higher_is_better"))
    for task, found in results.items():
        where = f"results.{str(task)[:60]}"
        if not isinstance(found, Mapping):
            raise InputError(f"{where}: an object is wanted (found {str(found)[:60]!r})")
        asked, there = _samples(record, task)
        few = shots.get(task)
        known = better.get(task)
        for key, value in found.items():
            name = _metric(key, known if isinstance(known, Mapping) else {})
            number = score_value(f"{where}.{key}", value) if name else None
            if name is None or number is None:
                continue
            yield Score(
                task=name_of("results", task),
                metric=name_of(where, name),
                value=number,
                stderr=_stderr(found, key, where),
                samples=asked,
                samples_total=there,
                few_shot=None if few is None else whole(f"n-shot.{task}", few),
                task_version=_version(versions.get(task)),
            )


def _metric(key: Any, better: Mapping[str, Any]) -> str | None:
    """Return the key where it is that of a score: `metric,filter`, or a bare name that the file ranks by `higher_is_better`."""
    if not isinstance(key, str):
        return None
    bare = key.split(",", 1)[0].strip()
    if bare in NO_SCORES or bare.endswith("_stderr") or not ("," in key or bare in better):
        return None
    return key


def _stderr(found: Mapping[str, Any], key: str, where: str) -> float | None:
    """Return the standard error of a score; `N/A` where the harness has none."""
    bare, comma, chosen = key.partition(",")
    value = score_value(f"{where}.{bare}_stderr", found.get(f"{bare}_stderr{comma}{chosen}"))
    if value is not None and value < 0:
        raise InputError(f"{where}.{bare}_stderr: {value:g} is below zero")
    return value


def _samples(record: Mapping[str, Any], task: str) -> tuple[int | None, int | None]:
    """Return questions that were asked and questions that there are: of a task, or of all tasks of a group together."""
    counts = part(record, "n-samples")
    own = _of_task(counts, task)
    if own is not None:
        return own
    leaves = [_of_task(counts, leaf) for leaf in sorted(_leaves(part(record, "group_subtasks"), task, _DEPTH))]
    if not leaves or None in leaves:
        return None, None
    asked, there = ([pair[place] for pair in leaves if pair] for place in (0, 1))
    return tuple(None if None in side else sum(side) for side in (asked, there))  # type: ignore[arg-type, return-value]


def _of_task(counts: Mapping[str, Any], task: str) -> tuple[int | None, int | None] | None:
    found = counts.get(task)
    if not isinstance(found, Mapping):
        return None
    asked, there = (
        None if found.get(key) is None else whole(f"n-samples.{task}.{key}", found[key]) for key in ("effective", "original")
    )
    return asked, there


def _leaves(groups: Mapping[str, Any], task: str, depth: int) -> set[str]:
    """Return the tasks below a group, each once; a group may hold groups."""
    below = groups.get(task)
    if not isinstance(below, list) or not depth:
        return set()
    found: set[str] = set()
    for name in below:
        if isinstance(name, str):
            found |= _leaves(groups, name, depth - 1) or {name}
    return found


def _version(value: Any) -> str | None:
    """Return a task's version as a text; `N/A` and `Yaml` are none."""
    text = str(value).strip()[:80] if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return None if text.lower() in ("", "n/a", "yaml", "none") else text


def _text(value: Any) -> str | None:
    return value.strip()[:512] or None if isinstance(value, str) else None


def _count(arguments: Mapping[str, Any], key: str) -> int | None:
    value = arguments.get(key)
    return None if value is None else whole(f"config.model_args.{key}", value, least=1, largest=100_000_000)


def _clock(record: Mapping[str, Any]) -> datetime | None:
    """Return the start of the evaluation."""
    value = record.get("date")
    if value is None:
        return None
    seconds = metric("date", value)
    if not 0 < seconds < LAST_CLOCK:
        raise InputError(f"date: {seconds} is no time in Unix seconds")
    return datetime.fromtimestamp(seconds, UTC)


def origin(record: dict[str, Any], _given: Given) -> Origin | None:
    """Return the run of the evaluation's UTC day; None where the file states no time."""
    clock = _clock(record)
    return None if clock is None else day_run(clock)


def hints(path: PurePosixPath) -> dict[str, str]:
    """Return the concurrency in `results_…_conc16.json`, as InferenceX names the files of one server at several loads."""
    match = _CONCURRENCY.search(path.name)
    return {"concurrency": str(int(match[1]))} if match and int(match[1]) else {}


def unpack(value: Any) -> Iterator[LeftOut] | None:
    """Know `samples_*.jsonl`, its lines or one of them, and take nothing: its scores stand in the results file beside it."""
    lines = value if isinstance(value, list) else [value]
    known = bool(lines) and all(isinstance(line, dict) and line.keys() >= SAMPLE for line in lines)
    return iter((LeftOut("one line a question; the scores stand in the results file beside it"),)) if known else None


FORMAT = RecordFormat(
    "lm-eval",
    "lm-evaluation-harness results (results_*.json), 0.4 and later",
    MARKERS,
    read,
    without=frozenset({"run", "scenario", "metrics"}),
    kind="eval",
    unpack=unpack,
    origin=origin,
    hints=hints,
    clean=kept,
    dictionary=Dictionary(
        fields=(
            Field("results.<task>.<metric>,<filter>", "score", "the metric's own", "mostly a share of 1; perplexities are none"),
            Field("results.<task>.<metric>_stderr,<filter>", "score_stderr", "the metric's own", "`N/A` is none"),
            Field("results.<task>", "task", "", "groups as well as their tasks"),
            Field("<metric>,<filter>", "metric", "", "with the filter: strict and flexible extraction are two metrics"),
            Field("n-samples.<task>.effective", "samples", "questions", "of a group: of its tasks together", "0.4.3"),
            Field("n-samples.<task>.original", "samples_total", "questions", "", "0.4.3"),
            Field("n-shot.<task>", "few_shot", "examples"),
            Field("versions.<task>", "task_version"),
            Field("lm_eval_version", "harness_version"),
            Field("date", "measured_at", "Unix s", "start of the evaluation"),
            Field("model_name, else config.model_args", "model_source"),
            Field("config.model", "engine", "", "where it is vllm or sglang: then the engine runs inside the harness"),
            Field("config.model_args.num_concurrent", "concurrency", "requests"),
            Field("config.model_args.tensor_parallel_size", "tp"),
            Field("config.model_args.quantization", "precision"),
            Field("…_conc16.json", "concurrency", "requests", "name of the file, InferenceX"),
        ),
        left_out=(
            ("samples_*.jsonl", "questions and answers; their scores stand in the results"),
            ("bypass", "a metric that stands for none (999)"),
            ("NaN, N/A", "no score"),
            ("sample_len, alias, name", "no score"),
            ("groups", "the same scores stand in `results`"),
            ("pretty_env_info, chat_template, system_instruction", "hosts, prompts; of the latter two the hashes are kept"),
            ("config.model_args (but for sizes, types and names)", "addresses, keys, paths"),
        ),
        traps=(
            "The harness's version and commit are not the engine's: nothing in the file tells the engine's version.",
            "A `limit` shows in fewer `effective` than `original` questions: another measurement.",
            "`total_evaluation_time_seconds` is a text.",
            "`model_args` is a text or an object.",
            "The time in the file's name has no zone; `date` is Unix time.",
            "InferenceX writes SWE-bench results in this form, without date, versions and examples.",
        ),
        needs=("engine", "hardware", "precision"),
    ),
)
