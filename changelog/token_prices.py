"""Prices of tokens: LiteLLM's price map and OpenRouter's lists of endpoints.

Neither says since when its prices hold (`created` of OpenRouter is the model's), so the user declares when the file was taken.
Field names and traps: both projects' documentation, and the price map inside LiteLLM's packages. Belongs here: fields and their
meaning. Does not: bounds (`changelog.rates`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from changelog.facts import line_of
from changelog.rates import (
    Item,
    Term,
    Told,
    agreeing,
    bounded,
    decimal_of,
    fault,
    model_of,
    rate_fact,
    source_of,
    word_of,
)
from warehouse.errors import InputError

Entry = dict[str, Any]

LITELLM_MARK = "litellm_provider"
LITELLM_SPECIMEN = "sample_spec"
"""Describes the fields of the map; its zeros are no prices."""
LITELLM_CHARGES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
}
LITELLM_OLDER = {
    "input_cost_per_token_cache_hit": ("cache_read", None),
    "input_cost_per_token_batch_requests": ("input", "batches"),
}
"""Fields that were called otherwise once."""
_LITELLM_TIER = re.compile(r"(_[a-z0-9]+)*")
MAX_TIER = 60
MAX_LENGTH = 1e9
"""Tokens of a prompt at which a tier of prices may start."""

OPENROUTER_CHARGES = {
    "prompt": "input",
    "completion": "output",
    "input_cache_read": "cache_read",
    "input_cache_write": "cache_write",
}
"""`internal_reasoning` is left out: its usual "0" means that reasoning is charged as completion, not that it is free."""
_DYNAMIC = -1
"""OpenRouter's price where it depends on the request."""
_NOT_NAMED = ("", "unknown", "none", "null")


def is_litellm(value: Entry) -> bool:
    """Say whether a JSON object is a LiteLLM price map: most of its values are objects with a `litellm_provider`."""
    marked = sum(isinstance(entry, dict) and LITELLM_MARK in entry for entry in value.values())
    return marked > 0 and len(value) <= 2 * marked


def is_openrouter(value: Entry) -> bool:
    """Say whether a JSON object is OpenRouter's list of a model's endpoints, with `data` round it or without."""
    model = _model(value)
    endpoints = model.get("endpoints")
    first = endpoints[0] if isinstance(endpoints, list) and endpoints else None
    return "id" in model and isinstance(first, dict) and "pricing" in first and "provider_name" in first


def litellm_prices(text: str, declared_at: datetime | None) -> Iterator[Told]:
    """Yield the token prices of a LiteLLM map as they held from *declared_at* on, and a fault for each that cannot be read.

    What a field's name ends in is its tier (batches, priority, above_200k_tokens). Prices per character, second, image, query,
    audio token or DBU and those off peak are no such prices and are passed over; so is `deprecation_date`, which ends no price.
    Raises InputError for the file as a whole: no declared time, no such map.
    """
    starts = _declared(declared_at)
    yield from bounded(agreeing(told for name, entry in _object(text).items() for told in _litellm_entry(name, entry, starts)))


def openrouter_prices(text: str, declared_at: datetime | None) -> Iterator[Told]:
    """Yield the token prices of a model's endpoints as they held from *declared_at* on, and a fault for each that cannot be read.

    Overrides by time or length, discounts and prices per request or image are passed over, and so are uptime, latency and
    throughput, whose units differ between sources. Raises InputError for the file as a whole.
    """
    starts, model = _declared(declared_at), _model(_object(text))
    name, endpoints = model_of(model.get("id"), "id"), model.get("endpoints")
    if not isinstance(endpoints, list):
        raise InputError("endpoints: must be a list")
    told = (one for number, endpoint in enumerate(endpoints, start=1) for one in _endpoint(name, endpoint, number, starts))
    yield from bounded(agreeing(told))


def _declared(at: datetime | None) -> datetime:
    if at is None:
        raise InputError("valid_from: the list does not say since when its prices hold; pass --measured-at TIME, its date")
    return at


def _object(text: str) -> Entry:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {str(error)[:100]}") from None
    if not isinstance(value, dict):
        raise InputError("is not a JSON object")
    return value


def _litellm_entry(name: str, entry: object, starts: datetime) -> Iterator[Told]:
    if name == LITELLM_SPECIMEN:
        return
    position = line_of(name, 120)
    try:
        if not isinstance(entry, dict):
            raise InputError("is not a JSON object")
        model, provider = model_of(name, "model"), word_of(entry.get(LITELLM_MARK), LITELLM_MARK)
    except InputError as error:
        yield fault(position, error, str(entry)[:1000])
        return
    term = Term(starts, "litellm", source=_link(entry.get("source")))
    for field, amount in sorted(_flat(entry).items()):
        found = _litellm_field(field)
        if found is not None and amount is not None:
            charge, tier = found
            yield _price(Item("token_price", model, provider, tier, charge), amount, term, field, position)


def _flat(entry: Entry) -> Entry:
    """Return *entry* with its `tiered_pricing` as fields like those of others: from 256000 tokens on is above_256k_tokens."""
    tiers = entry.get("tiered_pricing")
    flat = dict(entry)
    for tier in tiers if isinstance(tiers, list) else ():
        span = tier.get("range") if isinstance(tier, dict) else None
        start = span[0] if isinstance(span, list) and span else None
        if isinstance(start, int | float) and not isinstance(start, bool) and 0 <= start < MAX_LENGTH:
            suffix = f"_above_{start / 1000:g}k_tokens" if start else ""
            for field in LITELLM_CHARGES.keys() & tier.keys():
                flat.setdefault(field + suffix, tier[field])
    return flat


def _litellm_field(field: str) -> tuple[str, str | None] | None:
    """Return what a field charges and the tier that its name ends in; None where it is no price of a token."""
    if field in LITELLM_OLDER:
        return LITELLM_OLDER[field]
    base = next((base for base in LITELLM_CHARGES if field.startswith(base)), None)
    if base is None or _LITELLM_TIER.fullmatch(field, len(base)) is None or len(field) > len(base) + MAX_TIER:
        return None
    return LITELLM_CHARGES[base], field[len(base) + 1 :] or None


def _model(value: Entry) -> Entry:
    inner = value.get("data")
    return inner if isinstance(inner, dict) else value


def _endpoint(name: str, endpoint: object, number: int, starts: datetime) -> Iterator[Told]:
    position = f"endpoint {number}"
    try:
        if not isinstance(endpoint, dict) or not isinstance(endpoint.get("pricing"), dict):
            raise InputError("pricing: must be an object with prompt and completion")
        provider, tier = word_of(endpoint.get("provider_name"), "provider_name"), _variant(endpoint)
        pricing: Entry = endpoint["pricing"]
        if not pricing.keys() & {"prompt", "completion"}:
            raise InputError("pricing: has neither prompt nor completion")
    except InputError as error:
        yield fault(position, error, str(endpoint)[:1000])
        return
    term = Term(starts, "openrouter")
    for field, charge in OPENROUTER_CHARGES.items():
        amount = pricing.get(field)
        if amount is not None and not _says_nothing(charge, amount):
            fixed = None if _is(_DYNAMIC, amount) else amount
            yield _price(Item("token_price", name, provider, tier, charge), fixed, term, f"pricing.{field}", position)


def _variant(endpoint: Entry) -> str | None:
    """Return which endpoint of its provider this is: what stands behind the slash of its tag, else its quantization."""
    if endpoint.get("tag") is not None:
        tag = word_of(endpoint["tag"], "tag") or ""
        return tag.partition("/")[2] or None
    quantization = word_of(endpoint.get("quantization"), "quantization") or ""
    return None if quantization in _NOT_NAMED else quantization


def _says_nothing(charge: str, amount: object) -> bool:
    """Say whether a price is the "0" of a cache that the endpoint does not have."""
    return charge.startswith("cache_") and _is(0, amount)


def _is(number: int, amount: object) -> bool:
    try:
        return decimal_of(amount, "") == number
    except InputError:
        return False


def _price(item: Item, amount: object, term: Term, field: str, position: str) -> Told:
    try:
        return rate_fact(item, amount, term, field, position)
    except InputError as error:
        return fault(position, error, f"{field}: {str(amount)[:1000]}")


def _link(source: object) -> str | None:
    """Return the page that an entry names, where it names one that can be kept."""
    try:
        text = source_of(source, "source")
    except InputError:
        return None
    return text if text is not None and text.startswith("https://") else None
