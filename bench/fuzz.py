"""`make fuzz`: ten thousand files made wrong, through the door of the ingest; every hundredth through the command line.

Seeded: the same seed and number give the same file (FUZZ="--seed 7 --only 1234"). Files that broke a promise are left in
`fuzz-failures/`. What must hold stands in `tests/fuzzing/promises.py`.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzzing.course import MAX_RSS, Course, peak
from tests.fuzzing.mutants import mutant, sources

FAILURES = Path("fuzz-failures")
HANGS = 60.0
"""Seconds after which a mutant that no alarm stops is taken for hung, and where it hangs is printed."""


def main() -> int:
    """Run the fuzzing and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int, help="read one mutant, and say what it is")
    parser.add_argument("--commands", type=int, default=100, help="every how manieth goes through the command line; 0: none")
    parser.add_argument("--samples", action="store_true", help="only the samples, without the real files beside the checkout")
    options = parser.parse_args()
    course = Course(options.seed, FAILURES, real=not options.samples)
    numbers = range(options.start, options.start + options.count) if options.only is None else [options.only]
    if options.only is not None:
        print(mutant(options.seed, options.only, real=course.real).done[:2000])
    print(f"seed {options.seed}, {len(numbers)} mutants of {len(sources(real=course.real))} files", flush=True)
    start = time.perf_counter()
    for number in numbers:
        faulthandler.dump_traceback_later(HANGS + 120 * bool(options.commands), exit=True)
        course.one(number, command=bool(options.commands) and number % options.commands == 0)
        if number % 1000 == 999:
            print(f"{number + 1}: {time.perf_counter() - start:.0f} s, {peak() / 1024**2:.0f} MiB", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return told(course, time.perf_counter() - start)


def told(course: Course, seconds: float) -> int:
    """Print what was met and return 1 where a promise was broken."""
    kinds = Counter(re.sub(r"\d+|'[^']*'", "_", text.rpartition(" → ")[2])[:70] for _number, text in course.problems)
    for number, text in course.problems:
        print(f"mutant {number}: {text}")
    for kind, times in kinds.most_common(40):
        print(f"{times:6} × {kind}")
    slow, which = course.slowest
    print(
        f"{course.read} mutants, {course.commands} of them by command, in {seconds:.0f} s; slowest {slow:.2f} s (mutant {which})"
    )
    print(f"peak memory {peak() / 1024**2:.0f} MiB (at most {MAX_RSS / 1024**2:.0f}), seed {course.seed}")
    print(f"{len(course.problems)} promises broken in {len({number for number, _text in course.problems})} mutants")
    return 1 if course.problems or peak() > MAX_RSS else 0


if __name__ == "__main__":
    sys.exit(main())
