"""Workers in this process, one part after the other: the reference that the other kinds must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pipelines.workers.contract import P, R


class Serial:
    """Runs each part when its result is asked for."""

    def map(self, function: Callable[[P], R], parts: Sequence[P]) -> Iterator[R]:
        """Yield function(part) in the order of *parts*."""
        yield from map(function, parts)

    def close(self) -> None:
        """Do nothing: nothing was started."""
