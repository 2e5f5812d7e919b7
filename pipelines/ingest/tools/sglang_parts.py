"""What is taken from the numbers of many records of SGLang's `bench_serving` at once: the rules of `sglang_serving` as data.

Belongs here: keys and the names of their numbers. Does not: a record alone (`sglang_serving`, which is the definition), the
arithmetic (`matrix`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.ingest.assembling import THROUGHPUTS, with_interactivity_taken
from pipelines.ingest.reading import MAX_OTHER, Must, Parts, Split, Taken

LATENCY = re.compile(r"(mean|median|std|p\d{2,3})_(e2e_latency|ttft|tpot|itl)_ms")
FAMILIES = {"e2e_latency": "e2el", "ttft": "ttft", "tpot": "tpot", "itl": "itl"}
MS = 1000.0
NATIVE, OPENAI = ("sglang", "sglang-native"), ("sglang-oai", "sglang-oai-chat")
SETUP = frozenset({
    "tag", "backend", "dataset_name", "request_rate", "max_concurrency", "sharegpt_output_len", "random_input_len",
    "random_output_len", "random_range_ratio", "duration", "completed", "total_input_tokens", "total_output_tokens",
    "concurrency",
})  # fmt: skip
"""Keys that are no numbers without a column."""
RATES = frozenset({"input_throughput", "output_throughput", "total_throughput"})
_NUMBERS_OF_SETUP = frozenset({"tag", "duration", "total_input_tokens", "total_output_tokens", "concurrency"})
_PER_TOKEN, _PER_CLIENT_TOKEN = "itl_per_token", "itl_per_client_token"
_THERE = Must(null=False, nought=False)
_COUNT = Must(largest=100_000_000, whole=True, nought=False)
_NULL = Must(largest=0.0, nought=False)
"""Of a key that may only be null."""


def itl_name(backend: str | None, speculates: bool) -> str:
    """Return the name of what a record calls ITL.

    SGLang's own path spreads a gap over the tokens that came with the chunk; with speculative decoding the OpenAI paths do so,
    too, by the client's tokenizer. Else it is the gap between chunks.
    """
    if backend in NATIVE:
        return _PER_TOKEN
    return _PER_CLIENT_TOKEN if backend in OPENAI and speculates else "itl"


def _variant(record: Mapping[str, Any]) -> tuple[Any, bool]:
    return record.get("backend"), bool(record.get("accept_length"))


def _parts(keys: Sequence[str], variant: Any) -> Parts | None:
    """Return what records with *keys* hold, whose backend and speculative decoding are *variant*."""
    backend, speculates = variant
    if not isinstance(backend, str) or "completed" not in keys:
        return None
    families = {**FAMILIES, "itl": itl_name(backend.strip(), speculates)}
    measured = {match[2] for key in keys if (match := LATENCY.fullmatch(key)) and match[1] in ("mean", "median")}
    must, taken = _counts(frozenset(keys))
    for key in keys:
        if key in SETUP | RATES:
            continue
        if match := LATENCY.fullmatch(key):
            if match[2] in measured:
                must[key] = _THERE._replace(per=MS) if match[1] in ("mean", "median") else Must(MS)
                taken.append(Taken(f"{families[match[2]]}_{match[1]}", key))
        else:
            must[key] = Must(loose=key != "accept_length")
            taken.append(Taken(key[:MAX_OTHER], key))
    if "cache_report" in must:
        must["cache_report"] = _NULL
    return Parts(must, tuple(with_interactivity_taken(taken)))


def _counts(told: frozenset[str]) -> tuple[dict[str, Must], list[Taken]]:
    """Return how much was measured, and rates of the whole system; a mean length of 0 was not counted."""
    must = {"completed": _COUNT._replace(null=False)}
    taken = []
    for key, name in (("duration", "duration_s"), ("concurrency", "concurrency_realised")):
        if key in told:
            must[key] = Must()
            taken.append(Taken(name, key))
    for key, name in (("total_input_tokens", "isl_mean"), ("total_output_tokens", "osl_mean")):
        if key in told:
            must[key] = _COUNT
            taken.append(Taken(name, key, over="completed"))
    must |= dict.fromkeys(RATES & told, _THERE)
    wanted = ("total", "input", "output") if "input_throughput" in told else ("output",)
    taken += [Taken(THROUGHPUTS[kind], key, per_gpu=True) for kind in wanted if (key := f"{kind}_throughput") in told]
    if {"input_throughput", "output_throughput"} <= told and "total_throughput" not in told:
        taken.append(Taken(THROUGHPUTS["total"], "input_throughput", plus="output_throughput", per_gpu=True))
    return must, taken


SPLIT = Split(
    setup=(SETUP - _NUMBERS_OF_SETUP) | {"server_info", "errors"},
    parts=_parts,
    variant=_variant,
)
"""`completed` is a part of the setup: where all requests are sent at once it is the load."""
