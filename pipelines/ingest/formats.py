"""Registry of benchmark record formats: one module and one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pipelines.ingest.json_text import Fault, Item, LeftOut
from pipelines.ingest.reading import Given, Origin, RecordFormat
from pipelines.ingest.tools import (
    aiperf,
    genai_perf,
    guidellm,
    inferencex,
    inferencex_agentic,
    inferencex_api,
    inferencex_evals,
    inferencex_serving,
    llmd,
    llmperf,
    lm_eval,
    mlperf,
    mlperf_logs,
    pytorch_hud,
    sglang_batch,
    sglang_serving,
    trtllm_bench,
    trtllm_csv,
    vllm_offline,
    vllm_serve,
)
from warehouse.errors import InputError

T = TypeVar("T")
FORMATS: tuple[RecordFormat, ...] = (
    inferencex.FORMAT,
    inferencex_agentic.FORMAT,
    inferencex_api.FORMAT,
    inferencex_serving.FORMAT,
    *inferencex_evals.FORMATS,
    vllm_serve.FORMAT,
    vllm_serve.MULTI_TURN,
    vllm_offline.LATENCY_FORMAT,
    vllm_offline.THROUGHPUT_FORMAT,
    pytorch_hud.FORMAT,
    sglang_serving.FORMAT,
    sglang_batch.STATIC_FORMAT,
    sglang_batch.SERVED_FORMAT,
    trtllm_bench.FORMAT,
    trtllm_csv.FORMAT,
    aiperf.FORMAT,
    aiperf.EARLY,
    genai_perf.FORMAT,
    guidellm.FORMAT,
    llmperf.FORMAT,
    *llmd.FORMATS,
    lm_eval.FORMAT,
    *mlperf.FORMATS,
    *mlperf_logs.FORMATS,
)


def by_name(name: str) -> RecordFormat:
    """Return the format called *name*; raises KeyError."""
    return _BY_NAME[name]


def recognise(record: Any) -> RecordFormat | None:
    """Return the format that *record* is of, judged by its content, or None."""
    return next((record_format for record_format in FORMATS if record_format.recognises(record)), None)


def near_miss(record: Any) -> str | None:
    """Return in words which format *record* is nearly of and what it lacks, or None."""
    for record_format in FORMATS:
        if missing := record_format.lacks(record):
            return f"looks like {record_format.name}, but lacks {', '.join(sorted(missing))}"
    return None


def unpack(value: Any) -> Iterator[Item | Fault | LeftOut] | None:
    """Return the records inside *value* where a format takes it apart, else None."""
    for record_format in FORMATS:
        if record_format.unpack is not None and (found := record_format.unpack(value)) is not None:
            return _guarded(record_format.name, found)
    return None


def read_text(text: str) -> Iterator[Item | Fault | LeftOut] | None:
    """Return the records in *text*, which is no JSON, where a format reads it, else None."""
    for record_format in FORMATS:
        if record_format.text is not None and (found := record_format.text(text)) is not None:
            return _guarded(record_format.name, found)
    return None


def read(record_format: RecordFormat, record: dict[str, Any], given: Given) -> Any:
    """Return what a format reads in *record*; raises InputError naming the field that is wrong.

    A reader that fails otherwise has met what its author did not think of: that costs the record and not its neighbours.
    """
    return _foreseen(record_format, record_format.read, record, given)


def cleaned(record_format: RecordFormat, record: dict[str, Any]) -> dict[str, Any]:
    """Return *record* as it is kept; raises InputError where it cannot be cleaned, for then it must not be kept."""
    return record if record_format.clean is None else _foreseen(record_format, record_format.clean, record)


def origin(record_format: RecordFormat, record: dict[str, Any], given: Given) -> Origin | None:
    """Return the run that a record states by itself; raises InputError where it states a time that cannot be placed."""
    return _foreseen(record_format, record_format.origin, record, given) if record_format.origin else None


def _foreseen(record_format: RecordFormat, function: Callable[..., T], *given: Any) -> T:
    """Return what a function of a format gives; raises InputError also where it fails as its author did not foresee."""
    try:
        return function(*given)
    except UNFORESEEN_ERRORS as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"record: {_told(record_format.name, error)}") from error


def _guarded(name: str, found: Iterable[Item | Fault | LeftOut]) -> Iterator[Item | Fault | LeftOut]:
    """Yield what a format takes from a file, and a fault where it fails: that costs the rest of the file and no other."""
    try:
        yield from found
    except UNFORESEEN_ERRORS as error:
        yield Fault("", f"file: {_told(name, error)}")


def _told(name: str, error: Exception) -> str:
    return f"{name} {UNFORESEEN} ({type(error).__name__}); please report it"


UNFORESEEN_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
UNFORESEEN = "met what it does not foresee"
PATH_PARTS = 4
"""Names from the end of a path that may tell something: the file's and its folders'."""


def hints(path: PurePosixPath) -> dict[str, dict[str, str]]:
    """Return what the names of a file and its folders tell, by format; only formats that such names tell something."""
    tail = PurePosixPath(*path.parts[-PATH_PARTS:])
    found = {record_format.name: record_format.hints(tail) for record_format in FORMATS}
    return {name: told for name, told in found.items() if told}


_BY_NAME = {record_format.name: record_format for record_format in FORMATS}
