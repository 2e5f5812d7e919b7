"""Numbers from strangers: finite, not below zero, within bounds that no real measurement leaves; errors name the field."""

from __future__ import annotations

import math
import re
from typing import Any

from warehouse.errors import InputError

LEAST_METRIC, LARGEST_METRIC = 1e-12, 1e12
"""Bounds of a metric that is not nought, in its own unit; what lies beyond is a mistake, and ratios of it overflow."""
LAST_CLOCK = 4e9
"""Unix seconds that a benchmark can have started at: up to the year 2096."""
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?")


def is_number(value: Any) -> bool:
    """Say whether *value* is a number of JSON; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def finite(field: str, value: float) -> float:
    """Return a number as a double; raises InputError naming *field* where it is none that is finite."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{field}: {str(value)[:60]} is not a finite number")
    return number + 0.0  # canonical JSON knows no -0


def metric(field: str, value: Any, per: float = 1.0) -> float:
    """Return a time or a rate divided by *per* (1000 for milliseconds), which is never below zero.

    Some producers write numbers as texts. Raises InputError naming *field*.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if not is_number(value):
        raise InputError(f"{field}: {str(value)[:60]!r} is not a number")
    if (number := finite(field, value) / per) < 0:
        raise InputError(f"{field}: {value} is below zero")
    if number and not LEAST_METRIC <= number <= LARGEST_METRIC:
        raise InputError(f"{field}: {value} is not between {LEAST_METRIC * per:g} and {LARGEST_METRIC * per:g}")
    return number


def whole(field: str, value: Any, least: int = 0, largest: int = 1_000_000_000) -> int:
    """Return a count; texts of digits and doubles without a fraction are taken. Raises InputError naming *field*."""
    number = metric(field, value)
    if number != int(number) or not least <= number <= largest:
        raise InputError(f"{field}: {str(value)[:60]} is not a whole number from {least} to {largest}")
    return int(number)
