"""What is taken from the numbers of many records of `vllm bench serve` at once: the rules of `vllm_values` as data.

Belongs here: numbers by key. Does not: a record alone (`vllm_serve`, which is the definition), the arithmetic (`matrix`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.ingest.assembling import THROUGHPUTS, with_interactivity_taken
from pipelines.ingest.reading import Must, Parts, Taken
from pipelines.ingest.tools.vllm_values import latency_name
from warehouse.schemas import METRIC_COLUMNS

PLAIN_NUMBERS = (
    "max_output_tokens_per_s",
    "max_concurrent_requests",
    "spec_decode_num_drafts",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_tokens",
)
"""Numbers that are kept under their own names."""
QUEUED = tuple(
    (f"{statistic}_e2el_including_client_queue_ms", f"e2el_with_queue_{statistic}")
    for statistic in ("mean", "median", "std", "p90", "p95", "p99")
)
SETUP = frozenset({
    "mode", "backend", "model_id", "model", "num_prompts", "max_concurrency", "request_rate", "burstiness", "ramp_up_strategy",
    "ramp_up_start_rps", "ramp_up_end_rps", "multi_turn_concurrency", "turns_per_conversation", "inter_turn_delay_ms",
    "prefill_replicas", "decode_replicas", "gateway", "router",
})  # fmt: skip
"""Keys besides the metadata from which identity and load follow."""
_MS = 1000.0
_THERE = Must(null=False, nought=False)
_COUNT = Must(largest=100_000_000, whole=True, null=False)
_COLUMNS = frozenset(column.name for column in METRIC_COLUMNS)


def parts(keys: Sequence[str], _variant: Any) -> Parts | None:
    """Return what records with *keys* hold; None where the total throughput is a sum of what is told and what is computed."""
    told = frozenset(keys)
    rates = _throughput(told)
    if rates is None:
        return None
    found = [_counts(told), _latencies(keys), rates, _others(told)]
    taken = [part for parts_ in found for part in parts_.taken]
    numbers: dict[str, Must] = {}
    for key, must in ((key, must) for parts_ in found for key, must in parts_.numbers.items()):
        numbers[key] = must if key not in numbers else _both(numbers[key], must)
    return Parts(numbers, tuple(with_interactivity_taken(taken)))


def _both(one: Must, other: Must) -> Must:
    return one._replace(null=one.null and other.null, nought=one.nought and other.nought, whole=one.whole or other.whole)


def _counts(told: frozenset[str]) -> Parts:
    """As `health` and `each` have it."""
    must: dict[str, Must] = {key: _COUNT for key in ("completed", "failed") if key in told}
    taken: list[Taken] = []
    if "duration" in told:
        must["duration"] = Must()
        taken.append(Taken("duration_s", "duration"))
    if "completed" not in told:
        return Parts(must, tuple(taken))
    must["completed"] = _COUNT._replace(nought=False)
    if "failed" in told:
        taken += [Taken("requests", "completed", plus="failed"), Taken("requests_failed", "failed")]
    elif "num_prompts" in told:
        must["num_prompts"] = _COUNT
        taken += [Taken("requests", "num_prompts"), Taken("requests_failed", "num_prompts", minus="completed")]
    for key, name in (("total_input_tokens", "isl_mean"), ("total_output_tokens", "osl_mean")):
        if key in told:
            must[key] = Must()
            taken.append(Taken(name, key, over="completed"))
    return Parts(must, tuple(taken))


def _throughput(told: frozenset[str]) -> Parts | None:
    """As `throughput` has it; where a rate is told or can be computed it must be more than nothing."""
    must: dict[str, Must] = {}
    taken: list[Taken] = []
    for kind in ("input", "output"):
        rate, tokens = f"{kind}_throughput", f"total_{kind}_tokens"
        if rate in told:
            must[rate] = _THERE
            taken.append(Taken(THROUGHPUTS[kind], rate, per_gpu=True))
        elif {tokens, "duration"} <= told:
            must |= {tokens: _THERE, "duration": _THERE}
            taken.append(Taken(THROUGHPUTS[kind], tokens, over="duration", per_gpu=True))
    if "total_token_throughput" in told:
        must["total_token_throughput"] = _THERE
        taken.append(Taken(THROUGHPUTS["total"], "total_token_throughput", per_gpu=True))
    elif len(taken) == 2:
        if any(part.over for part in taken):
            return None
        taken.append(Taken(THROUGHPUTS["total"], taken[0].key, plus=taken[1].key, per_gpu=True))
    return Parts(must, tuple(taken))


def _latencies(keys: Sequence[str]) -> Parts:
    """As `latencies` has it: a family whose mean (else every statistic but std) is more than 0 was measured."""
    families: dict[str, dict[str, str]] = {}
    for key in keys:
        if name := latency_name(key, "_ms"):
            families.setdefault(name[0], {})[name[1]] = key
    must: dict[str, Must] = {}
    taken: list[Taken] = []
    for family, statistics in families.items():
        must |= dict.fromkeys(statistics.values(), Must(_MS))
        proof = {"mean"} & statistics.keys() or statistics.keys() - {"std"}
        must |= {statistics[name]: _THERE._replace(per=_MS) for name in proof}
        if "p50" in statistics:
            half = statistics.pop("p50")
            if "median" in statistics:
                must[statistics["median"]] = must[statistics["median"]]._replace(null=False)
            statistics.setdefault("median", half)
        if proof:
            taken += [Taken(f"{family}_{name}", key) for name, key in statistics.items()]
    return Parts(must, tuple(taken))


def _others(told: frozenset[str]) -> Parts:
    """As `rates` and the counters of `vllm_serve` have it; speculative decoding is on where it drafted anything."""
    named = [(key, key, 1.0) for key in ("request_throughput", *PLAIN_NUMBERS)]
    named += [(key, name, _MS) for key, name in QUEUED]
    named += [("spec_decode_acceptance_rate", "spec_acceptance_rate", 100.0)]
    named += [("spec_decode_acceptance_length", "spec_acceptance_length", 1.0)]
    goodputs = [key for key in ("request_goodput", "request_goodput:") if key in told]
    must = {key: Must(per) for key, _name, per in named if key in told} | dict.fromkeys(goodputs, Must())
    if len(goodputs) > 1:
        must["request_goodput"] = Must(null=False)
    drafted = next((key for key in ("spec_decode_num_drafts", "spec_decode_acceptance_length") if key in told), None)
    if drafted is not None:
        must[drafted] = _THERE
    taken = [Taken(name, key) for key, name, _per in named if key in told]
    return Parts(must, (*taken, *(Taken("request_goodput", key) for key in goodputs[:1])))
