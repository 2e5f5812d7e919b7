"""The short form of `make fuzz`: three hundred files made wrong, and no promise broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzzing.course import Course
from tests.fuzzing.mutants import mutant

SEED, STRIDE, PARTS = 1, 75, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_files_made_wrong_break_no_promise(part: int, tmp_path: Path) -> None:
    course = Course(SEED, tmp_path, real=False)
    for number in range(part * STRIDE, (part + 1) * STRIDE):
        course.one(number)
    assert course.problems == [], f"`bench/fuzz.py --seed {SEED} --samples --only NUMBER` reads one again"
    assert course.read == STRIDE


def test_a_mutant_is_the_same_every_time() -> None:
    assert [mutant(7, number, real=False) for number in range(40)] == [mutant(7, number, real=False) for number in range(40)]


def test_one_goes_through_the_command_line(tmp_path: Path) -> None:
    course = Course(SEED, tmp_path, real=False)
    course.one(3, command=True)
    assert (course.problems, course.commands) == ([], 1)
