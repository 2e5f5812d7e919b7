"""Signals that come at an odd moment: they still end the command, and nothing but its one line is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import signal, sys, time, weakref
from pipelines.signals import Terminated, until_ended

class Thing:
    def __del__(self):
        if sys.argv[2] == "destructor":
            signal.raise_signal(signal.Signals[sys.argv[1]])

thing = Thing()
reference = weakref.ref(thing, lambda _: sys.argv[2] == "callback" and signal.raise_signal(signal.Signals[sys.argv[1]]))
try:
    with until_ended():
        del thing
        time.sleep(20)
        print("lost")
except (KeyboardInterrupt, Terminated) as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("moment", ["destructor", "callback"])
@pytest.mark.parametrize(("number", "expected"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "Terminated")])
def test_a_signal_where_an_exception_leads_nowhere_ends_the_command(number: str, expected: str, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, number, moment], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr, done.returncode) == ([expected], "", 0)


def test_other_lost_exceptions_are_shown_as_ever() -> None:
    program = """
from pipelines.signals import until_ended
class Thing:
    def __del__(self):
        raise ValueError("seen")
with until_ended():
    Thing()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "ValueError: seen" in done.stderr
