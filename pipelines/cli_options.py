"""What the modules of the command line share: options, the warehouse that was named, errors as one line.

Belongs here: what more than one verb needs of click. Does not: a verb (`pipelines.cli`, `pipelines.cli_upstream`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from warehouse.log import EventLog


def handled(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors that we raise on purpose into one line and an exit status."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from pipelines.console import ExitStatus, say
        from pipelines.signals import Terminated, until_ended
        from warehouse.errors import ShiftlogError

        try:
            with until_ended():
                return command(*args, **kwargs)
        except ShiftlogError as error:
            say(f"shiftlog: {error}")
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            say("shiftlog: interrupted; nothing is half done, run it again")
            sys.exit(ExitStatus.INTERRUPTED)
        except Terminated:
            say("shiftlog: terminated; nothing is half done, run it again")
            sys.exit(ExitStatus.TERMINATED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ExitStatus.OK)

    return run


def open_log(context: click.Context, *, must_exist: bool = True) -> EventLog:
    """Return the log of the warehouse that was named; raises InputError where there is none and one *must_exist*."""
    from warehouse.errors import InputError
    from warehouse.log import EventLog
    from warehouse.store import Store, default_uri

    if context.obj == "":
        raise InputError("--warehouse: is empty (an unset variable?); name a folder or s3://…")
    store = Store(context.obj or default_uri())
    if must_exist and not store.exists("events"):
        raise InputError(f"no warehouse at {store.uri}; run `shiftlog ingest PATH` first, or name one with --warehouse")
    return EventLog(store)


def as_of_option(command: Any) -> Any:
    """Add --as-of."""
    return click.option(
        "--as-of", metavar="D", help="As this warehouse had recorded it by the end of this day (UTC), or by this time."
    )(command)


def workers_option(command: Any) -> Any:
    """Add --workers."""
    return click.option(
        "--workers",
        metavar="KIND",
        default="processes",
        show_default=True,
        envvar="SHIFTLOG_WORKERS",
        help="Where heavy work runs: serial, processes[:N], ray[:HOST:PORT].",
    )(command)


@contextmanager
def known_log(log: EventLog, as_of: str | None, progress: Any = None) -> Iterator[EventLog]:
    """Give the log as it was known at --as-of, with progress while its tables are made."""
    if as_of is None:
        yield log
        return
    from pipelines.as_of import known
    from pipelines.console import Progress

    shown = progress or Progress("as of, step")
    with known(log, as_of, shown.step) as past:
        shown.close()
        yield past


def formats_option(*names: str) -> Callable[[Any], Any]:
    """Return --format with these names, the first one as default."""
    return click.option(
        "--format", "output", type=click.Choice(names), default=names[0], show_default=True, help="Output format."
    )
