"""What every kind of workers does. The three kinds differ in where a part runs, never in what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

P = TypeVar("P")
R = TypeVar("R")


class Workers(Protocol):
    """Runs a function over parts.

    The function stands at the top level of an importable module, depends on its part alone, and may run twice for one part
    (Ray repeats what a lost node had). Parts say where the data is (a table's URI, version, range); they hold no data: a worker
    reads its own part. Frames come back as `parcels` or as paths. What is put together from results in the order of parts is
    then the same bytes whichever workers ran them.
    """

    def map(self, function: Callable[[P], R], parts: Sequence[P]) -> Iterator[R]:
        """Yield function(part) in the order of *parts*, whatever finishes first.

        Few parts are in flight at once, so memory does not grow with their number; put the largest first. What a part raises is
        raised here, a ShiftlogError as itself; ShiftlogError too if a worker dies. Then, and when iteration ends early,
        no further part is begun but those in flight.
        """
        ...

    def close(self) -> None:
        """End what was started; a part that still runs is stopped. A later `map` starts anew."""
        ...
