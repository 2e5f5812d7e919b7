"""Rates: what a GPU-hour or a token costs, what a GPU draws, and from when on.

A price is never a performance change: it has a first instant, and a cost is worked out with the rate that held when the point was
measured. Belongs here: strangers' names and numbers to facts, their bounds, contradictions in one file, which rates hold at an
instant. Does not: what a file looks like (`changelog.gpu_rates`, `changelog.token_prices`), its end (`changelog.tables`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple

import polars as pl

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, line_of
from warehouse.clock import iso
from warehouse.errors import InputError
from warehouse.events import RateChanged

Kind = Literal["gpu_hour", "gpu_power", "token_price"]
Told = UpstreamFact | UpstreamFault

MAX_RATES = 100_000
"""Entries of one file; real price lists have some thousand."""
MAX_WORD = 80
"""Characters of a tier or a provider."""
MAX_MODEL = 200
MAX_SOURCE = 500
FIRST_YEAR, LAST_YEAR = 2000, 2100
"""A rate that starts outside these years is a slip of the pen."""
_DECIMAL = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


class _Bounds(NamedTuple):
    unit: str
    least: Decimal
    most: Decimal
    free: bool
    hint: str


_BOUNDS: dict[Kind, _Bounds] = {
    "gpu_hour": _Bounds("USD/GPU/h", Decimal("0.001"), Decimal(1000), False, "leave it empty where it is not known"),
    "gpu_power": _Bounds("kW/GPU", Decimal("0.01"), Decimal(20), False, "write 700 W as 0.7"),
    "token_price": _Bounds("USD/token", Decimal("1e-12"), Decimal("1e-3"), True, "is it a price per thousand or million tokens?"),
}


class Term(NamedTuple):
    """In which time a rate holds, who says so and whence; `revision` as in `RateChanged`."""

    valid_from: datetime
    evidence: str
    valid_to: datetime | None = None
    source: str | None = None
    revision: int = 0


class Item(NamedTuple):
    """What is rated."""

    kind: Kind
    name: str
    provider: str | None = None
    tier: str | None = None
    charge: str | None = None


def rate_fact(item: Item, amount: object, term: Term, field: str, position: str) -> UpstreamFact:
    """Return the fact that *item* costs or draws *amount*, in the unit of its kind, from `term.valid_from` on.

    An *amount* of None says that there is no fixed rate from then on. Raises InputError naming *field*.
    """
    if not FIRST_YEAR <= term.valid_from.year <= LAST_YEAR:
        raise InputError(f"valid_from: {iso(term.valid_from)} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    if term.valid_to is not None and term.valid_to <= term.valid_from:
        raise InputError(f"valid_to: {iso(term.valid_to)} is not after valid_from, {iso(term.valid_from)}")
    payload = RateChanged(
        **item._asdict(),
        value=None if amount is None else _value(amount, item.kind, field),
        unit=_BOUNDS[item.kind].unit,
        valid_from=iso(term.valid_from) or "",
        valid_to=iso(term.valid_to),
        evidence=term.evidence,
        source=term.source,
        revision=term.revision,
    )
    return UpstreamFact(payload, term.valid_from, None, position)


def decimal_of(amount: object, field: str) -> Decimal:
    """Return a number, or a decimal text such as "0.0000002"; raises InputError naming *field*."""
    text = str(amount).strip() if isinstance(amount, int | float | str) and not isinstance(amount, bool) else ""
    if _DECIMAL.fullmatch(text) is None:
        raise InputError(f"{field}: {line_of(str(amount), 60)!r} is not a number; write it as 1.78, without a currency")
    return Decimal(text)


def _value(amount: object, kind: Kind, field: str) -> str:
    number, bounds = decimal_of(amount, field), _BOUNDS[kind]
    if number == 0 and bounds.free:
        return "0"
    if not bounds.least <= number <= bounds.most:
        span = f"{float(bounds.least):g} to {float(bounds.most):g} {bounds.unit}"
        raise InputError(f"{field}: {line_of(str(amount), 60)} is outside {span}; {bounds.hint}")
    return format(number.normalize(), "f")


def word_of(text: object, field: str) -> str | None:
    """Return a tier or provider in lower case, None where there is none; raises InputError naming *field*.

    Price lists write providers as they like (deepinfra, DeepInfra): case is no difference.
    """
    return _name(text, field, MAX_WORD).lower() or None


def model_of(text: object, field: str) -> str:
    """Return a model's name as its price list writes it; raises InputError naming *field* where there is none."""
    name = _name(text, field, MAX_MODEL)
    if not name:
        raise InputError(f"{field}: must name a model")
    return name


def source_of(text: object, field: str) -> str | None:
    """Return where a price list has a rate from, None where it does not say; raises InputError naming *field*."""
    return _name(text, field, MAX_SOURCE) or None


def _name(text: object, field: str, limit: int) -> str:
    """Return *text* as one printable line; one that is too long is refused, because two that are cut may become one."""
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > limit:
        raise InputError(f"{field}: {line_of(str(text), 60)!r} is not a text of at most {limit} characters")
    return line_of(text, limit)


def fault(position: str, error: Exception, shown: str) -> UpstreamFault:
    """Return what is to be said of an entry that could not be read; *shown* is the entry."""
    return UpstreamFault(position, line_of(str(error), 300), line_of(shown, MAX_EXCERPT))


def agreeing(told: Iterable[Told]) -> Iterator[Told]:
    """Yield the facts of one file, each once; of two that contradict each other the second becomes a fault."""
    met: dict[tuple[object, ...], tuple[RateChanged, str]] = {}
    for one in told:
        if isinstance(one, UpstreamFault) or not isinstance(one.payload, RateChanged):
            yield one
            continue
        rate = one.payload
        key = (rate.kind, rate.name, rate.provider, rate.tier, rate.charge, rate.valid_from, rate.revision)
        first, position = met.setdefault(key, (rate, one.position))
        if first is rate:
            yield one
        elif (first.value, first.valid_to) != (rate.value, rate.valid_to):
            yield fault(one.position, _contradiction(first, position, rate), f"{rate.kind} {rate.name} {rate.value}")


def _contradiction(first: RateChanged, position: str, rate: RateChanged) -> InputError:
    what = " ".join(part for part in (rate.kind, rate.name, rate.provider, rate.tier, rate.charge) if part)
    says = f"{first.value} to {first.valid_to}" if first.value == rate.value else str(first.value)
    return InputError(f"{what} from {rate.valid_from}: {position} says {says} for the same time; keep one of them")


def bounded(told: Iterable[Told]) -> Iterator[Told]:
    """Yield what is told, at most MAX_RATES of it and then one fault that says so."""
    for number, one in enumerate(told):
        if number == MAX_RATES:
            yield UpstreamFault(one.position, f"more than {MAX_RATES:,} rates in one file; split it", "")
            return
        yield one


def holding(rates: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """Return the rows of the table `rates` that hold at an instant; a null `value` says that there is no fixed rate."""
    ends = pl.col("valid_to").is_null() | (pl.col("valid_to") > at)
    return rates.filter((pl.col("valid_from") <= at) & ends)
