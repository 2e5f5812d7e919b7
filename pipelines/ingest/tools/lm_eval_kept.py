"""What is kept of a results file of lm-evaluation-harness: an allow-list, because it embeds more.

Addresses, keys and paths stand in `model_args`, the host in `pretty_env_info`, prompts in the tasks' templates: left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipelines.ingest.tools.plain_names import model_name
from pipelines.ingest.tools.taming import without_private

MAX_TEXT = 512


def _keys(names: str) -> tuple[str, ...]:
    return tuple(names.split())


_SINGLES = _keys(
    "git_hash date lm_eval_version transformers_version upper_git_hash model_source system_instruction_sha fewshot_as_multiturn "
    "chat_template_sha total_evaluation_time_seconds"
)
_BY_TASK = _keys("versions n-shot n-samples higher_is_better task_hashes group_subtasks")
_CONFIG = _keys(
    "model model_num_parameters model_dtype model_revision model_sha batch_size limit bootstrap_iters random_seed numpy_seed "
    "torch_seed fewshot_seed num_fewshot"
)
_TASK = _keys("task group dataset_name test_split output_type num_fewshot repeats")
_GENERATION = _keys("temperature top_p top_k do_sample max_gen_toks max_tokens max_length")
_MODEL_ARGUMENTS = _keys(
    "add_bos_token data_parallel_size dtype enable_thinking enforce_eager gpu_memory_utilization kv_cache_dtype max_gen_toks "
    "max_length max_model_len max_num_seqs model num_concurrent pipeline_parallel_size pretrained quantization revision seed "
    "tensor_parallel_size timeout tokenized_requests tokenizer_backend"
)
_MODELS = frozenset({"model", "pretrained"})
_ARGUMENT = re.compile(r",(?=[A-Za-z_]\w*=)")


def kept(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of *record*, under its own keys."""
    found: dict[str, Any] = {key: _single(record[key]) for key in _SINGLES if key in record}
    found |= {key: _flat(record[key]) for key in _BY_TASK if key in record}
    found["results"] = _flat(record.get("results"))
    found["configs"] = _tasks(record.get("configs"))
    if "model_name" in record:
        found["model_name"] = _model(record["model_name"])
    if "config" in record:
        found["config"] = _config(record["config"])
    return found


def arguments_of(value: Any) -> dict[str, Any]:
    """Return `model_args` as an object; the command line's form is a text, `key=value,key=value`."""
    if isinstance(value, Mapping):
        return {str(key): given for key, given in value.items()}
    if not isinstance(value, str):
        return {}
    pairs = (part.partition("=") for part in _ARGUMENT.split(value))
    return {key.strip(): given.strip() for key, equals, given in pairs if equals}


def _config(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _single(value)
    found = {key: _single(value[key]) for key in _CONFIG if key in value}
    if "model_args" in value:
        found["model_args"] = {
            key: _model(given) if key in _MODELS else _single(given)
            for key, given in sorted(arguments_of(value["model_args"]).items())
            if key in _MODEL_ARGUMENTS
        }
    if isinstance(value.get("gen_kwargs"), Mapping):
        found["gen_kwargs"] = {key: _single(value["gen_kwargs"][key]) for key in _GENERATION if key in value["gen_kwargs"]}
    return found


def _tasks(value: Any) -> Any:
    return {str(task): _task(own) for task, own in value.items()} if isinstance(value, Mapping) else _single(value)


def _task(own: Any) -> Any:
    if not isinstance(own, Mapping):
        return _single(own)
    found = {key: _single(own[key]) for key in _TASK if key in own}
    for key in ("metric_list", "filter_list"):
        if isinstance(own.get(key), list):
            found[key] = [_entry(entry) for entry in own[key] if isinstance(entry, Mapping)]
    generation = own.get("generation_kwargs")
    if isinstance(generation, Mapping):
        found["generation_kwargs"] = {key: _single(generation[key]) for key in _GENERATION if key in generation}
    return found


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _single(entry[name]) for name in ("metric", "name", "aggregation") if name in entry}


def _flat(value: Any) -> Any:
    """Return objects of single values, or of objects and lists of them, by task."""
    if isinstance(value, Mapping):
        return {str(key): _below(own) for key, own in without_private(dict(value)).items()}
    return _single(value)


def _below(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _single(own) for key, own in without_private(dict(value)).items()}
    if isinstance(value, list):
        return [_single(own) for own in value]
    return _single(value)


def _model(value: Any) -> Any:
    return model_name(value) if isinstance(value, str) else _single(value)


def _single(value: Any) -> Any:
    """Return a single value; of a list or an object only that there was one."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return value[:MAX_TEXT] if isinstance(value, str) else f"({type(value).__name__})"
