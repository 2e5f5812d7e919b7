"""Workers on Ray: a cluster that exists (`ray:HOST:PORT`), or one of this machine alone (`ray`).

Ray core and not Daft on Ray: the two steps are our own functions over ranges of a Delta log that give several frames each, which
are tasks, not a query plan, and Daft would add a second reader and schema for the tables. Nor can both be installed: Daft 0.7.26
wants pyarrow < 26 and ray < 2.60, while we stand on pyarrow 26.

Belongs here: everything that imports ray. Every node needs the same shiftlog[ray] and must reach the warehouse.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import Any, cast

from pipelines.workers.contract import P, R
from pipelines.workers.order import PARTS_PER_WORKER, in_order
from pipelines.workers.processes import usable_cores
from warehouse.errors import InputError, ShiftlogError

REPEATS = 3
"""How often Ray runs a part again whose worker or node was lost, on a cluster where nodes come and go."""
ANSWER_SECONDS = 5.0
"""How long a named cluster may take to accept a connection; Ray itself would try for 20 s and fill the screen."""


class RayCluster:
    """Connects at the first `map`, disconnects at `close`; a connection that the program had before is used and left open."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self._ours = False

    def map(self, function: Callable[[P], R], parts: Sequence[P]) -> Iterator[R]:
        """Yield function(part) in the order of *parts*; see `contract.Workers`."""
        ray = self._connected()
        task = ray.remote(_run).options(num_cpus=1, max_retries=REPEATS if self.address else 0)
        here = _versions()

        def submit(part: P) -> Any:
            return task.remote(pickle.dumps((function, part)), here)

        limit = PARTS_PER_WORKER * max(1, int(ray.cluster_resources().get("CPU", 1)))
        try:
            yield from in_order(parts, limit, submit, ray.get)
        except KeyboardInterrupt:
            with _unheard():
                self.close()
            raise
        except ray.exceptions.RayError as error:
            raise self._told(error) from error

    def close(self) -> None:
        """Disconnect; a cluster of our own ends with that, and a named one drops our tasks."""
        if self._ours:
            import ray

            ray.shutdown()
            self._ours = False

    def _connected(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before the import: Ray would report to its makers
        import ray

        if not ray.is_initialized():
            self._connect(ray)
            self._ours = True
        elif self.address not in (None, "auto", used := ray.get_runtime_context().gcs_address):
            raise InputError(f"--workers ray:{self.address}: this program is connected to the Ray cluster at {used} already")
        return ray

    def _connect(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if self.address is None:
                ray.init(address="local", num_cpus=usable_cores(), include_dashboard=False, **quiet)
            else:
                _knock(self.address)
                ray.init(address=self.address, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> ShiftlogError:
        reason = " ".join(str(error).split())[:200]
        if self.address is None:
            return ShiftlogError(f"Ray does not start on this machine ({reason}); use --workers processes")
        return InputError(
            f"--workers ray:{self.address}: no Ray cluster can be used there ({reason}); see `ray status` on its head"
        )

    def _told(self, error: Any) -> BaseException:
        """Return what to raise for an error of Ray: a part's own ShiftlogError as itself, its other errors as Ray shows them."""
        cause: BaseException | None = getattr(error, "cause", None)
        if cause is not None:
            return cause if isinstance(cause, ShiftlogError) else cast("BaseException", error)
        self.close()
        return ShiftlogError(
            f"a worker of the Ray cluster was lost ({type(error).__name__}), most likely for lack of memory; nothing is half "
            "done: run it again on nodes with more memory, or with --workers processes:1"
        )


@contextmanager
def _unheard() -> Iterator[None]:
    """Let nothing reach stderr meanwhile: there Ray's own threads tell of tasks that they drop, whatever its log level."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _knock(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()


@cache
def _versions() -> dict[str, str]:
    """Return the versions that the bytes of a result depend on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in ("shiftlog", "polars", "numpy", "scipy")}}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _run(packed: bytes, driver: dict[str, str]) -> Any:
    """Run one part in a worker of the cluster; raises InputError if it would compute with other versions than the driver has."""
    here = _versions()
    if here != driver:
        raise InputError(
            f"--workers: the Ray node {platform.node()} has {_listed(here)} and this machine {_listed(driver)}; "
            "install the same shiftlog[ray] on both"
        )
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # one part a core; read when polars is imported, just below
    function, part = pickle.loads(packed)  # noqa: S301  # from our own driver, over a channel that is made of pickles
    return function(part)


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
