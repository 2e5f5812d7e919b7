"""The rows of MLPerf's result lists, made into records: one a measurement, whatever number of rows it stands in.

One measurement stands once for each accuracy target that it reaches, again with its power, again with another uid. Results that
differ are never joined. Belongs here: the keys of both kinds of list, which rows are one. Does not: what a row means (`mlperf`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.ingest.json_text import EXCERPT, Fault, Item
from pipelines.ingest.tools.mlperf_units import benchmark_of

ALSO = "also_submitted_as"
"""The key that we add where rows are joined: what the other rows of the same measurement were called."""
MAX_TEXT = 512
POWER = {"watts": ("system_power", 1.0), "millijoules": ("query_energy", 1000.0)}
"""Units of power in lower case: the metric, and what its numbers are divided by for W and J."""
_RUN = ("version", "Location", "Platform", "Model", "MlperfModel", "UsedModel", "Scenario")
_HOST = re.compile(r"\s*\(Linux .*", re.DOTALL)


@dataclass(frozen=True)
class Shape:
    """How one kind of list names what both hold."""

    kept: tuple[str, ...]
    benchmark: str
    model: str
    submitter: str
    system: str
    division: str
    accelerator: str
    per_node: str
    nodes: str
    processor: str
    software: str
    result: str
    power: str
    power_units: str
    unit: str
    own: frozenset[str]
    """Keys in which the rows of one measurement differ without being another measurement."""
    markers: frozenset[str]


AGGREGATE = Shape(
    kept=(
        "Organization", "SystemName", "Platform", "MlperfModel", "Model", "Scenario", "Result", "Result_Units",
        "Units", "Accuracy", "Availability", "Division", "SystemType", "accelerator_model_name",
        "accelerators_per_node", "number_of_nodes", "host_processor_model_name", "host_processors_per_node",
        "host_processor_core_count", "framework", "operating_system", "has_power", "Result_Power",
        "Result_Power_Units", "inferred", "compliance", "errors", "notes", "Location", "git_url", "url", "uid",
        "version", "weight_data_types", ALSO,
    ),
    benchmark="MlperfModel", model="Model", submitter="Organization", system="SystemName", division="Division",
    accelerator="accelerator_model_name", per_node="accelerators_per_node", nodes="number_of_nodes",
    processor="host_processor_model_name", software="framework", result="Result", power="Result_Power",
    power_units="Result_Power_Units", unit="Units", own=frozenset({"MlperfModel", "Model", "Location", "url", "uid"}),
    markers=frozenset({"Organization", "SystemName", "MlperfModel", "Scenario", "Result"}),
)  # fmt: skip
SUMMARY = Shape(
    kept=(
        "ID", "Submitter", "Availability", "Category", "Suite", "System", "Platform", "UsedModel", "Model",
        "Scenario", "Accuracy", "Nodes", "Processor", "host_processors_per_node", "host_processor_core_count",
        "Accelerator", "a#", "p#", "Location", "Software", "operating_system", "Notes", "compliance", "errors",
        "version", "inferred", "has_power", "weight_data_types", "Details", "Code", "Unique ID (e.g. for Audit)",
        "Performance_Result", "Performance_Units", "Power_Result", "Power_Units", ALSO,
    ),
    benchmark="Model", model="UsedModel", submitter="Submitter", system="System", division="Category",
    accelerator="Accelerator", per_node="a#", nodes="Nodes", processor="Processor", software="Software",
    result="Performance_Result", power="Power_Result", power_units="Power_Units", unit="Performance_Units",
    own=frozenset({"Model", "UsedModel", "Location", "ID", "Details", "Unique ID (e.g. for Audit)"}),
    markers=frozenset({"Submitter", "System", "UsedModel", "Scenario", "Performance_Result"}),
)  # fmt: skip


def unpack(shape: Shape, value: Any) -> Iterator[Item | Fault] | None:
    """Return the measurements of a list of rows; None where it is no list of this shape."""
    if not isinstance(value, list):
        return None
    first = next((row for row in value[:100] if isinstance(row, dict)), None)
    return _measurements(shape, value) if first is not None and first.keys() >= shape.markers else None


def _measurements(shape: Shape, rows: list[Any]) -> Iterator[Item | Fault]:
    """Yield one record a measurement, in the order in which they first stand: duplicates dropped, power and twins joined."""
    groups: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
    powers: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not row.keys() >= shape.markers:
            lacks = ", ".join(sorted(shape.markers - row.keys())) if isinstance(row, dict) else "an object"
            yield row if isinstance(row, Fault) else Fault(f"/{index}", f"no result row like the others: lacks {lacks}")
            continue
        own = kept(shape, row)
        into = powers if _is_power(shape, own) else groups
        into.setdefault(_run_key(own), []).append((f"/{index}", own))
    yield from _joined(shape, groups, powers)


def kept(shape: Shape, row: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that the lists have, values that are not plain as null, without the name of the host in its system."""
    found = {key: None if isinstance(row[key], dict | list) else row[key] for key in shape.kept if key in row}
    system = found.get("operating_system")
    if isinstance(system, str) and "(Linux" in system:
        found["operating_system"] = _HOST.sub("", system)
    return found


def _is_power(shape: Shape, row: dict[str, Any]) -> bool:
    """Say whether a row holds a run's power alone: `Result` null, `Units` Watts or millijoules (v4.0 and later)."""
    unit = row.get(shape.unit)
    return row[shape.result] is None and isinstance(unit, str) and unit.lower() in POWER


def _run_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells one submitted run from another; a value that cannot be compared counts by its text."""
    key = tuple([row.get(name) for name in _RUN])
    return key if _hashable(key) else tuple(map(repr, key))


Rows = dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]]


def _joined(shape: Shape, groups: Rows, powers: Rows) -> Iterator[Item | Fault]:
    """Yield the rows of every run with their power, twins of accuracy targets as one."""
    twins: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
    for key, rows in groups.items():
        found = _power(shape, powers.pop(key, []))
        if isinstance(found, Fault):
            yield found
        power = found if isinstance(found, dict) else {}
        for position, row in _distinct(rows):
            whole = {**row, **{name: value for name, value in power.items() if row.get(name) is None}}
            twins.setdefault(_twin_key(shape, position, whole), []).append((position, whole))
    for rows in powers.values():
        yield Fault(rows[0][0], "the power of a run whose performance is not in this list", str(rows[0][1])[:EXCERPT])
    for rows in twins.values():
        yield from _merged(shape, rows)


def _distinct(rows: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of one run that differ in more than the uid; of those that do not, the one with the least uid."""
    if len(rows) == 1:
        return rows
    kept: dict[str, tuple[str, dict[str, Any]]] = {}
    for position, row in rows:
        key = repr(sorted((name, repr(value)) for name, value in row.items() if name != "uid"))
        first = kept.setdefault(key, (position, row))
        if str(row.get("uid")) < str(first[1].get("uid")):
            kept[key] = (first[0], row)
    return list(kept.values())


def _power(shape: Shape, rows: list[tuple[str, dict[str, Any]]]) -> dict[str, Any] | Fault:
    """Return the power of a run, with its unit, in the keys in which up to v3.1 the performance row has it."""
    found = {(repr(row.get(shape.power)), row[shape.unit]): row for _position, row in rows}
    if len(found) > 1:
        return Fault(rows[0][0], "several powers of one run; none was taken", str(list(found))[:EXCERPT])
    return (
        {shape.power: row.get(shape.power), shape.power_units: row[shape.unit]}
        if (row := next(iter(found.values()), None))
        else {}
    )


def _twin_key(shape: Shape, position: str, row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the rows of one measurement share: all but the accuracy target and what follows from it.

    The result alone would not do: two Server runs with one target rate have the same scheduled rate.
    """
    family = _family(row[shape.benchmark])
    if family is None:
        return (position,)
    key = (family, _family(row.get(shape.model)), tuple(row), *[value for name, value in row.items() if name not in shape.own])
    return key if _hashable(key) else tuple(map(repr, key))


def _family(name: Any) -> str | None:
    """Return the benchmark without its accuracy target, or None where it names none."""
    found = benchmark_of(name[:MAX_TEXT]) if isinstance(name, str) else None
    return found.family if found and found.target else None


def _hashable(key: tuple[Any, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _merged(shape: Shape, rows: list[tuple[str, dict[str, Any]]]) -> Iterator[Item]:
    """Yield one record for the rows of one measurement, under its strictest target; rows of equal targets stay apart."""
    names = [str(row[shape.benchmark]) for _position, row in rows]
    if len(rows) == 1 or len(set(names)) < len(names):
        yield from (Item(position, row) for position, row in rows)
        return
    strictest = max(range(len(rows)), key=lambda place: (len(names[place]), names[place]))
    others = [
        {key: row[key] for key in row if key in shape.own} for place, (_position, row) in enumerate(rows) if place != strictest
    ]
    others.sort(key=lambda other: str(other[shape.benchmark]))
    yield Item(rows[0][0], {**rows[strictest][1], ALSO: others})
