"""`make bench`: how fast and how large on this machine, as ratios within one run; writes docs/benchmarks.md.

The fleet is generated (`bench/fleet.py`): run folders in the shape and with the sparsity of real ones. Every step is a process of
its own. Single times differ from machine to machine; ratios compare two steps of this run. `--runs 700` is quick, the default is
a million records, `--large` adds the warehouse of ten million (needs about 20 GB of disk and most of an hour). `--history FOLDER`
measures the reading of an upstream history instead: a real clone, which the project does not hold.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fleet import ROWS_PER_RUN, write_runs
from measuring import Measured, measured
from serving import write_lines

HERE = Path(__file__).parent
STEPS = HERE / "steps.py"
PAGE = HERE.parent / "docs" / "benchmarks.md"
SLICE = 7000
"""Runs that are generated, ingested and deleted together on the way to ten million."""
Row = tuple[str, str, str]


def step(name: str, *arguments: object) -> Measured:
    """Run one step and say so."""
    print(f"{name} {' '.join(map(str, arguments))} …", file=sys.stderr, flush=True)
    return measured(STEPS, name, *map(str, arguments))


def best(times: int, name: str, *arguments: object) -> Measured:
    """Return the quickest of several runs of a step that can be repeated."""
    return min((step(name, *arguments) for _ in range(times)), key=lambda done: done.seconds)


def size(place: Path) -> float:
    """Return the size of the present version of all tables and their logs, MiB (replaced files are not counted)."""
    from warehouse.schemas import TABLES
    from warehouse.store import Store

    store = Store(str(place))
    data = sum(sum(store.file_sizes(name)) for name in TABLES)
    return (data + sum(file.stat().st_size for file in place.rglob("_delta_log/*"))) / 1024**2


def million(folder: Path, runs: int) -> Iterator[Row]:
    """Yield the rows of the table for one big load."""
    files = folder / "runs"
    records = write_runs(files, 0, runs)
    floor = best(3, "parse", files)
    log = step("log", folder / "log", files)
    shutil.rmtree(folder / "log")
    first = step("ingest", folder / "big", files)
    again = best(2, "ingest", folder / "big", files)
    yield "parse the same bytes (orjson, one core)", f"{floor.seconds:.2f} s", f"{records / floor.seconds:,.0f} records/s"
    yield (
        f"ingest {records:,} records from {runs:,} runs to the log",
        f"{log.seconds:.2f} s",
        f"{log.seconds / floor.seconds:.2f} × parsing; {records / log.seconds:,.0f} records/s; peak {log.peak_mb:,.0f} MB",
    )
    yield (
        "… and to the tables (`shiftlog ingest`)",
        f"{first.seconds:.2f} s",
        f"{first.seconds / floor.seconds:.2f} × parsing; {records / first.seconds:,.0f} records/s; peak {first.peak_mb:,.0f} MB",
    )
    yield (
        "the same files again",
        f"{again.seconds:.2f} s",
        f"first / again {first.seconds / again.seconds:.1f}; {again.said['new']:.0f} new events",
    )
    yield "disk, log with raw payloads and all tables", f"{size(folder / 'big'):,.0f} MiB", f"raw JSON {_raw(files):,.0f} MiB"
    rebuilt = step("tables", folder / "big")
    yield (
        "fact tables from the log alone",
        f"{rebuilt.seconds:.2f} s",
        f"{rebuilt.seconds / first.seconds:.2f} × ingest; content {'the same' if rebuilt.said['same'] else 'DIFFERS'}; "
        f"peak {rebuilt.peak_mb:,.0f} MB",
    )


def _raw(files: Path) -> float:
    return sum(path.stat().st_size for path in files.rglob("agg_bmk.json")) / 1024**2


def one_run(folder: Path, runs: int) -> Iterator[Row]:
    """Yield what one more run costs beside a small and beside the big warehouse."""
    small, more = folder / "small", folder / "more"
    write_runs(folder / "few", 0, 70)
    step("ingest", small, folder / "few")
    write_runs(more, runs, 10)
    places = sorted(more.iterdir())
    beside = {
        name: [step("ingest", place, one) for one in places[:5]] for name, place in (("small", small), ("big", folder / "big"))
    }
    cost = {name: sorted(done.process_seconds for done in steps)[2] for name, steps in beside.items()}
    yield (
        f"one run of {ROWS_PER_RUN} records more, as a process of its own (median of 5)",
        f"{cost['big']:.2f} s",
        f"{cost['big'] / cost['small']:.2f} × the same beside {70 * ROWS_PER_RUN:,} records",
    )


def thousand(folder: Path, runs: int) -> Iterator[Row]:
    """Yield what the thousandth nightly append costs."""
    number = min(1000, runs)
    cost = step("nights", folder / "nights", folder / "runs", number)
    yield (
        f"{number:,} nightly appends of {ROWS_PER_RUN} records",
        f"{cost.said['last'] * 1000:.0f} ms the last",
        f"{cost.said['last'] / cost.said['tenth']:.2f} × the tenth; at most {cost.said['files']:.0f} files a table",
    )


def lines(folder: Path, runs: int) -> Iterator[Row]:
    """Yield what records of other clients cost beside parsing them: JSON lines of vLLM's and of SGLang's."""
    for tool, name in (("vllm", "vllm bench serve"), ("sglang", "SGLang bench_serving")):
        files = folder / tool
        records = write_lines(files, tool, runs)
        floor = best(3, "parse_lines", files)
        steps = {"log": step("log", folder / f"{tool}-log", files), "ingest": step("ingest", folder / f"{tool}-tables", files)}
        if any(done.said["new"] < records for done in steps.values()):
            raise SystemExit(f"{name}: fewer events than records, so this measured refusals")
        for done, what in ((steps["log"], "to the log"), (steps["ingest"], "… and to the tables")):
            yield (
                f"ingest {records:,} lines of {name} {what}",
                f"{done.seconds:.2f} s",
                f"{done.seconds / floor.seconds:.2f} × parsing ({floor.seconds:.2f} s); "
                f"{records / done.seconds:,.0f} records/s; peak {done.peak_mb:,.0f} MB",
            )
        for place in (files, folder / f"{tool}-log", folder / f"{tool}-tables"):
            shutil.rmtree(place)


def large(folder: Path, slices: int) -> Iterator[Row]:
    """Yield what a night costs beside *slices* million records, and how long one value takes."""
    place, records = folder / "large", 0
    for number in range(slices):
        records += write_runs(folder / "slice", number * SLICE, SLICE)
        step("ingest", place, folder / "slice")
        shutil.rmtree(folder / "slice")
    night = folder / "night"
    costs: dict[str, list[float]] = {"empty": [], "large": []}
    for number in range(3):
        write_runs(night, slices * SLICE + 14 * number, 14)
        costs["large"].append(step("ingest", place, night).seconds)
        costs["empty"].append(step("ingest", folder / f"empty{number}", night).seconds)
        shutil.rmtree(night)
    value = best(3, "latest", place)
    big, none = sorted(costs["large"])[1], sorted(costs["empty"])[1]
    yield (
        f"a night of {14 * ROWS_PER_RUN:,} records, then points, beside {records:,} (median of 3)",
        f"{big:.2f} s",
        f"{big / none:.2f} × the same beside none",
    )
    yield f"open, and the latest value of one cell of {records:,} points", f"{value.seconds * 1000:.0f} ms", ""
    yield f"disk of {records:,} records", f"{size(place) / 1024:.2f} GiB", ""


def history(folder: Path, repository: str, project: str, begin: str, end: str) -> Iterator[Row]:
    """Yield what reading a real history costs beside git's own listing of it, and what one link costs."""
    floor = best(3, "git_log", repository)
    firsts = [step("index", folder / f"history{number}", repository, project) for number in range(3)]
    first = sorted(firsts, key=lambda done: done.seconds)[1]
    again = best(3, "index", folder / "history0", repository, project)
    linked = step("link", folder / "history0", project, begin, end)
    yield "`git log` with paths, the whole history", f"{floor.seconds:.2f} s", f"{floor.said['bytes'] / 1024**2:.0f} MiB"
    yield (
        f"first index of {first.said['new']:,.0f} commits and tags, tables included (median of 3; start-up aside)",
        f"{first.seconds:.2f} s",
        f"{first.seconds / floor.seconds:.1f} × git alone; process {first.process_seconds:.2f} s; peak {first.peak_mb:,.0f} MB",
    )
    yield (
        "nothing new (start-up aside)",
        f"{again.seconds:.2f} s",
        f"{again.seconds / first.seconds:.2f} × the first; process {again.process_seconds:.2f} s; {again.said['new']:.0f} new",
    )
    yield (
        f"one link: rank {linked.said['candidates']:,.0f} changes, {begin} to {end} (median of 5)",
        f"{linked.seconds * 1000:.0f} ms",
        f"opening the history and the first link, once a process: {linked.said['opened']:.2f} s",
    )


def page(rows: list[Row]) -> str:
    """Return the page of results."""
    lines = "\n".join(f"| {what} | {value} | {ratio} |" for what, value, ratio in rows)
    return f"""# Benchmarks

Written by `make bench` (`bench/bench.py`), which says what each step is. Ratios are within one run on one machine:
{machine()}.

| what | measured | ratio |
|---|---|---|
{lines}
"""


def machine() -> str:
    """Return what this machine is."""
    cpu = platform.processor() or platform.machine()
    try:
        names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return f"{os.cpu_count()} cores ({cpu}), {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    """Run the steps and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7000, help="run folders of the big load (143 records each)")
    parser.add_argument("--large", type=int, nargs="?", const=10, default=0, help="millions of records of the large warehouse")
    parser.add_argument("--folder", help="where to work; deleted afterwards [default: a temporary folder]")
    parser.add_argument("--page", default=str(PAGE), help="where the results are written")
    parser.add_argument("--history", metavar="FOLDER", help="measure the reading of this clone of an upstream project instead")
    parser.add_argument("--project", default="vllm", help="whose clone it is")
    parser.add_argument(
        "--range", nargs=2, default=("2025-11-20", "2025-12-20"), metavar=("FROM", "TO"), help="the link that is timed"
    )
    chosen = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="shiftlog-bench-", dir=chosen.folder) as name:
        folder = Path(name)
        if chosen.history:
            found = history(folder, chosen.history, chosen.project, *chosen.range)
        else:
            found = measurements(folder, chosen.runs, chosen.large)
        for row in found:
            rows.append(row)
            if not chosen.history or chosen.page != str(PAGE):  # a history alone never takes the place of the whole page
                Path(chosen.page).write_text(page(rows), "utf-8")  # at once, so that what was measured stays whatever follows
            print(" · ".join(row), file=sys.stderr, flush=True)


def measurements(folder: Path, runs: int, slices: int) -> Iterator[Row]:
    """Yield all rows of the page."""
    yield from million(folder, runs)
    yield from one_run(folder, runs)
    yield from lines(folder, runs)
    if slices:
        shutil.rmtree(folder / "big")
        yield from large(folder, slices)
    yield from thousand(folder, runs)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"step {error.cmd} failed")
