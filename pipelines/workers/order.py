"""Results in the order of parts, with a bounded number of parts in flight. Knows no engine: it is told how to ask one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

PARTS_PER_WORKER = 2
"""In flight per worker: one that runs, one that waits so that the worker does not."""


def in_order(parts: Sequence[P], limit: int, submit: Callable[[P], T], result: Callable[[T], R]) -> Iterator[R]:
    """Yield the result of each part in order; at most *limit* are submitted and not yet handed out.

    *submit* returns a ticket at once, *result* waits for one. When iteration ends early, the open tickets are let run: they are
    few, and neither engine can be trusted to cancel (Ray 2.60 aborts if the task ends just then; CPython 3.11 fails to take down
    a pool that holds a cancelled part).
    """
    tickets: deque[T] = deque()
    for part in parts:
        if len(tickets) == limit:
            yield result(tickets.popleft())
        tickets.append(submit(part))
    while tickets:
        yield result(tickets.popleft())
