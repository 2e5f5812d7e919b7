"""How a command ends when it is told to: Ctrl-C and SIGTERM are exceptions, and none of them is lost.

Belongs here: signals of the command's own process. Does not: what is said then (`cli`), processes that it started (`workers`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 0.02
"""Seconds after which a signal is sent again that came where an exception leads nowhere."""


class Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


@contextmanager
def until_ended() -> Iterator[None]:
    """Raise Terminated where SIGTERM arrives, so that what was started is ended and one line is said.

    Python drops an exception that arises while it runs a destructor or the callback of a weak reference, and prints it. A signal
    that meets such a moment is sent again.
    """

    def end(_number: int, _frame: object) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread: somebody else handles signals
        yield
        return
    hook, timers = sys.unraisablehook, list[threading.Timer]()
    sys.unraisablehook = _resending(hook, timers)
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)


_NUMBERS: dict[type[BaseException], signal.Signals] = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}


def _resending(hook: Callable[[Any], object], timers: list[threading.Timer]) -> Callable[[Any], None]:
    def lost(what: Any) -> None:
        number = _NUMBERS.get(what.exc_type)
        if number is None:
            hook(what)
            return
        timer = threading.Timer(AGAIN, os.kill, (os.getpid(), number))  # not at once: we are still in that callback
        timer.daemon = True
        timers.append(timer)
        timer.start()

    return lost
