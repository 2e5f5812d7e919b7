"""Workers as processes of this machine: spawned, never forked, because delta-rs and polars hang in forked children.

Belongs here: how children start, how they end with or without us, what a dead one means. Does not: what they compute.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from multiprocessing import parent_process, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from pipelines.workers.contract import P, R
from pipelines.workers.order import PARTS_PER_WORKER, in_order
from warehouse.errors import ShiftlogError


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


LISTEN_SECONDS = 0.2
"""How long we wait without looking for Ctrl-C: polars' own handler of it restarts a wait on a lock instead of ending it."""


class Processes:
    """Keeps *count* child processes (default: one a usable core) from the first `map` to `close`."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or usable_cores()
        self._pool: _Pool | None = None

    def map(self, function: Callable[[P], R], parts: Sequence[P]) -> Iterator[R]:
        """Yield function(part) in the order of *parts*; see `contract.Workers`."""

        def submit(part: P) -> Future[R]:
            return self._submit(function, part)

        try:
            yield from in_order(parts, PARTS_PER_WORKER * self.count, submit, _result)
        except KeyboardInterrupt:
            self.close()
            raise
        except BrokenExecutor as error:
            self.close()
            raise ShiftlogError(
                "a worker process died, most likely for lack of memory; nothing is half done: run it again with fewer workers, "
                "--workers processes:1 or --workers serial"
            ) from error

    def close(self) -> None:
        """Kill the children: whoever closes wants no more results, and an idle child has nothing to lose."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.kill()

    def _submit(self, function: Callable[[P], R], part: P) -> Future[R]:
        if self._pool is None:
            self._pool = _Pool(self.count)
        try:
            return self._pool.submit(function, part)
        except OSError as error:
            self.close()
            raise ShiftlogError(f"cannot start a worker process ({error.strerror}); use fewer, or --workers serial") from error


def _result(future: Future[R]) -> R:
    while not wait([future], timeout=LISTEN_SECONDS).done:
        pass
    return future.result()


class _Pool:
    """Children, and the thread that starts them.

    A terminal sends Ctrl-C to all of us, and each child would print a traceback. Children inherit what is blocked in the thread
    that starts them; and as Ctrl-C is raised in the main thread, it cannot cut the start of a child in half.
    """

    def __init__(self, count: int) -> None:
        self._children: list[SpawnProcess] = []
        self._starter = ThreadPoolExecutor(1, initializer=_block_interrupts)
        self._starter.submit(int).result()  # the thread runs before there is anything to lose
        threads = max(1, usable_cores() // count)
        self._executor = ProcessPoolExecutor(count, _Context(self._children), initializer=_begin, initargs=(threads,))

    def submit(self, function: Callable[[P], R], part: P) -> Future[R]:
        """Hand a part over; starts a child where all are busy and there are fewer than wanted."""
        return self._starter.submit(self._executor.submit, function, part).result()

    def kill(self) -> None:
        """End every child at once, whatever it does."""
        self._starter.shutdown(wait=True, cancel_futures=True)
        for child in self._children:
            if child.pid is not None:  # its start did not fail
                child.kill()
        self._executor.shutdown(wait=True)


class _Context(SpawnContext):
    """Spawns, and notes the children so that we can end them."""

    def __init__(self, children: list[SpawnProcess]) -> None:
        super().__init__()
        self._noted = children

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        child = SpawnProcess(*args, **kwargs)
        self._noted.append(child)
        return child


def _block_interrupts() -> None:
    resource_tracker.ensure_running()  # first, for its start unblocks SIGINT
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _begin(threads: int) -> None:
    """Begin a child: share the cores with its siblings (polars reads this when imported), leave with the parent."""
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that is killed cannot tell its children; they would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
