"""The command `shiftlog`: parses, calls the plain functions, writes through `pipelines.console`. Nothing is decided here.

Everything heavy is imported by the command that needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys

import click

from pipelines import cli_upstream
from pipelines.cli_options import as_of_option, formats_option, handled, known_log, open_log, workers_option
from pipelines.detect.states import STATES

EXAMPLES = """\b
Examples:
  shiftlog demo                                   a generated sample fleet, from raw files to a page
  shiftlog ingest results/ && shiftlog detect     your own runs
  shiftlog shifts --engine vllm --format json     what moved
  shiftlog explain 3f9c2a71                       why we say so, and what upstream did
  shiftlog sql "SELECT engine, count(*) FROM points GROUP BY 1"
"""


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--warehouse", metavar="URI", help="Folder or s3://… [default: $SHIFTLOG_WAREHOUSE, else ./shiftlog-data]")
@click.version_option(package_name="shiftlog", prog_name="shiftlog")
@click.pass_context
def main(context: click.Context, warehouse: str | None) -> None:
    """Keep LLM-inference benchmark runs, say what moved and whether it is real, name the upstream change that may have done it.

    Exit status: 0 all good, 1 failed, 2 wrong usage, 3 done but some input went to quarantine.
    """
    context.obj = warehouse


for _verb in cli_upstream.VERBS:
    main.add_command(_verb)


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--measured-at", metavar="TIME", help="When results without a run.json were measured, e.g. 2025-12-31T06:10:00Z.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Declare what a record does not say, e.g. hardware=h100; `shiftlog formats --keys` lists the keys.",
)
@click.option(
    "--correct",
    is_flag=True,
    help="What the run.json files say, and what is declared, holds from now on, also against what was said later.",
)
@workers_option
@click.pass_context
@handled
def ingest(
    context: click.Context,
    paths: tuple[str, ...],
    measured_at: str | None,
    settings: tuple[str, ...],
    correct: bool,
    workers: str,
) -> None:
    """Take in files, folders, .zip, .jsonl, .gz and git repositories; the format is recognised by content.

    \b
    Examples:
      shiftlog ingest runs/                               folders with agg_bmk.json and run.json
      shiftlog ingest results_bmk.zip --measured-at 2025-12-31T06:10:00Z
      shiftlog ingest serve.json --set hardware=h100 --set precision=fp8 --set tp=1 --set timezone=UTC
      shiftlog ingest sglang.git --set engine=sglang      commits and tags of a local clone
      shiftlog ingest https://github.com/vllm-project/vllm    … of a mirror that is made (blob:none)

    Safe to run twice, and by several at once: what the log has already is not added again, and files that were read before are
    passed over. What cannot be read goes to `quarantine`.
    """
    from pipelines import summaries
    from pipelines.console import ExitStatus, Progress
    from pipelines.following import Follower
    from pipelines.ingest.intake import ingest as run_ingest
    from pipelines.settings import declared, mirrors_folder
    from pipelines.workers.registry import open_workers
    from warehouse.clock import system_clock

    open_workers(workers)  # a wrong name is told before anything is read
    log = open_log(context, must_exist=False)
    known = declared(measured_at, settings, revision=log.last_sequence() + 1 if correct else 0)
    tables = Follower(log)
    progress = Progress("reading")
    intake = run_ingest(
        log,
        paths,
        known,
        recorded_at=system_clock(),
        mirrors=mirrors_folder(log.store),
        announce=progress.step,
        fold=tables.fold,
        workers=workers,
    )
    progress.step("tables")
    tables.settle()
    progress.close()
    summaries.say_intake(intake)
    summaries.say_reused(log.store)
    if intake.failed:
        sys.exit(ExitStatus.FAILED)
    if intake.quarantined:
        sys.exit(ExitStatus.QUARANTINED)


@main.command()
@as_of_option
@workers_option
@click.pass_context
@handled
def detect(context: click.Context, as_of: str | None, workers: str) -> None:
    """Compare every observation with its previous comparable one; write noise, diffs, shifts and links.

    With --as-of nothing is written: it tells what a detection would have said then.

    \b
    Examples:
      shiftlog detect && shiftlog shifts
      shiftlog detect --as-of 2026-01-15
    """
    from pipelines import summaries
    from pipelines.console import Progress
    from pipelines.projections import run_detection
    from warehouse.clock import system_clock

    log = open_log(context)
    progress = Progress("detect, step")
    if as_of is not None:
        with known_log(log, as_of, progress) as past:
            progress.close()
            summaries.say_detection(past.store, None)
        return
    new = run_detection(log, system_clock(), progress.step, workers)
    progress.close()
    summaries.say_detection(log.store, new)


@main.command()
@click.option("--engine", metavar="E", help="Only this engine: vllm, sglang, trtllm, …")
@click.option("--since", metavar="D", help="Only shifts seen on or after this day (YYYY-MM-DD).")
@click.option("--status", type=click.Choice(STATES), help="Only this status.")
@as_of_option
@formats_option("table", "json", "csv")
@click.pass_context
@handled
def shifts(
    context: click.Context, engine: str | None, since: str | None, status: str | None, as_of: str | None, output: str
) -> None:
    """List what moved, and how sure we are.

    \b
    Examples:
      shiftlog shifts --engine sglang --status confirmed
      shiftlog shifts --since 2026-01-01 --format json | jq '.[].shift_id'
      shiftlog shifts --as-of 2026-01-15                   what we would have said then
    """
    from pipelines import summaries
    from pipelines.answers import find_shifts
    from pipelines.settings import canonical_engine, day

    log = open_log(context)
    if as_of is None:
        summaries.warn_if_stale(log)
    with known_log(log, as_of) as known:
        found = find_shifts(known.store, engine=canonical_engine(engine), since=day(since, "--since"), status=status)
    summaries.out_shifts(found, output)


@main.command()
@click.argument("shift_id", metavar="SHIFT|DIFF")
@as_of_option
@formats_option("text", "json")
@click.pass_context
@handled
def explain(context: click.Context, shift_id: str, as_of: str | None, output: str) -> None:
    """Tell one shift in full: numbers, how sure, health, what else changed, ranked upstream changes, what is not known.

    SHIFT is its id; DIFF the id of any other comparison, of which it is told why it is no shift. Both may be shortened to a
    unique beginning of at least six characters.

    \b
    Examples:
      shiftlog explain 3f9c2a71
      shiftlog sql "SELECT diff_id, engine, size_pct FROM diffs WHERE NOT flagged ORDER BY p_value LIMIT 5"
    """
    from pipelines import summaries
    from pipelines.answers import explain as explain_shift

    log = open_log(context)
    if as_of is None:
        summaries.warn_if_stale(log)
    with known_log(log, as_of) as known:
        summaries.out_explanation(explain_shift(known.store, shift_id), output)


@main.command()
@click.option("--engine", metavar="E", help="Only this engine: vllm, sglang, trtllm, …")
@click.option("--hardware", metavar="H", help="Only this accelerator: b200, mi355x, …")
@click.option("--metric", metavar="M", help="Only this metric: tput_per_gpu, tpot_median, …")
@as_of_option
@formats_option("table", "json", "csv")
@click.pass_context
@handled
def noise(
    context: click.Context, engine: str | None, hardware: str | None, metric: str | None, as_of: str | None, output: str
) -> None:
    """List how far each metric moves when the same image runs again, by group, widest first.

    A scale is that of one observation, in %; `raw` is of the group's own repeats, before it is drawn towards wider groups.
    Fewer than three repeats are insufficient: then the floor of a stack is a borrowed or widened one.

    \b
    Examples:
      shiftlog noise --engine vllm --metric tput_per_gpu
      shiftlog noise --hardware b200 --format json | jq '.[] | select(.insufficient)'
      shiftlog noise --as-of 2026-01-15                    what was known then
    """
    from pipelines import summaries
    from pipelines.answers import noise_scales
    from pipelines.settings import canonical_engine

    log = open_log(context)
    if as_of is None:
        summaries.warn_if_stale(log)
    with known_log(log, as_of) as known:
        found = noise_scales(known.store, engine=canonical_engine(engine), hardware=hardware, metric=metric)
    summaries.out_noise(found, output)


@main.command()
@click.option("--out", "folder", metavar="DIR", default="shiftlog-report", show_default=True, help="Folder for index.html.")
@as_of_option
@click.pass_context
@handled
def report(context: click.Context, folder: str, as_of: str | None) -> None:
    """Write one self-contained HTML page: shifts, histories, velocity. It needs no network.

    \b
    Example:
      shiftlog report --out /srv/www/shiftlog
    """
    from pipelines import summaries
    from pipelines.console import say
    from pipelines.pages import write_report

    log = open_log(context)
    if as_of is None:
        summaries.warn_if_stale(log)
    with known_log(log, as_of) as known:
        say(f"wrote {write_report(known.store, folder)}")


@main.command()
@click.argument("query")
@as_of_option
@formats_option("table", "json", "csv", "parquet")
@click.pass_context
@handled
def sql(context: click.Context, query: str, as_of: str | None, output: str) -> None:
    """Ask the tables in SQL (DuckDB's dialect), read-only. Times are UTC.

    `points` and `runs` leave out what was retracted; `all_points` and `all_runs` have it, with the reason.

    \b
    Examples:
      shiftlog sql "SHOW TABLES"
      shiftlog sql "DESCRIBE points"
      shiftlog sql "SELECT hardware, isl, osl, reported_pct, steady_pct FROM diffs WHERE to_engine_version = '0.13.0'"
      shiftlog sql "FROM points" --format parquet > points.parquet
      shiftlog sql "SELECT count(*) FROM points" --as-of 2026-01-15
    """
    from pipelines import summaries
    from warehouse.sql import query as run_query

    log = open_log(context)
    if as_of is None:
        summaries.refresh_or_say(log)
    with known_log(log, as_of) as known:
        answer = run_query(known.store, query)
    summaries.out_frame(answer, output)


@main.command("log")
@click.option("--type", "event_type", metavar="NAME", help="Only events of this type, e.g. ResultRecorded.")
@click.option("--after", type=click.IntRange(min=0), help="Events behind this sequence, oldest first.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="At most so many: the newest, or with --after the next.",
)
@formats_option("table", "json", "csv")
@click.pass_context
@handled
def show_log(context: click.Context, event_type: str | None, after: int | None, limit: int, output: str) -> None:
    """Show the event log.

    \b
    Examples:
      shiftlog log --type ShiftReported
      shiftlog log --after 1200 --limit 1000 --format json      the next 1000 events, to follow the log
    """
    from pipelines import summaries

    summaries.out_log(open_log(context), event_type, after, limit, output)


@main.command()
@click.argument("target", metavar="RUN|POINT")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays visible with the decision.")
@click.option("--undo", is_flag=True, help="It does count after all.")
@click.pass_context
@handled
def retract(context: click.Context, target: str, reason: str, undo: bool) -> None:
    """Decide that a run, or one point of it, does not count. Nothing is deleted; the decision is an event and can be undone.

    RUN: SOURCE/NUMBER/ATTEMPT, all attempts without the last part, or the number alone. POINT: the beginning of a point_id.

    \b
    Examples:
      shiftlog retract 20613446912 --reason "test branch"
      shiftlog retract local/at-2025-12-31T06:10:00Z --reason "wrong draft model"
      shiftlog sql "SELECT run_id, retraction, count(*) FROM all_points WHERE retraction IS NOT NULL GROUP BY ALL"
    """
    from pipelines.console import say
    from pipelines.following import refresh
    from pipelines.retraction import retract as run_retract
    from warehouse.clock import system_clock

    log = open_log(context)
    refresh(log)
    runs = run_retract(log, target, reason, system_clock(), reinstate=undo)
    refresh(log)
    for thing in runs or ["nothing: that is how it stands already"]:
        say(f"{'reinstated' if undo else 'retracted'} {thing}")
    if runs:
        say("`shiftlog detect` looks at the shifts again")


@main.command()
@workers_option
@click.pass_context
@handled
def rebuild(context: click.Context, workers: str) -> None:
    """Build every table but the log again, from the log alone.

    \b
    Examples:
      shiftlog rebuild
      shiftlog rebuild --workers ray:head-node:6379
    """
    from pipelines import projections, summaries
    from pipelines.console import Progress
    from warehouse.clock import system_clock

    progress = Progress("rebuild, step")
    hashes = projections.rebuild(open_log(context), system_clock(), progress.step, workers)
    progress.close()
    summaries.out_rebuild(hashes)


@main.command()
@click.pass_context
@handled
def verify(context: click.Context) -> None:
    """Recompute every event's hash, look for gaps and duplicates, and compare the tables with the log.

    \b
    Example:
      shiftlog verify || echo "ask before you trust this warehouse"
    """
    from pipelines import summaries
    from pipelines.console import ExitStatus, Progress
    from pipelines.verification import verify as run_verify

    progress = Progress("verify, step")
    findings = run_verify(open_log(context), progress.step)
    progress.close()
    summaries.out_findings(findings)
    if findings:
        sys.exit(ExitStatus.FAILED)


@main.command()
@click.pass_context
@handled
def compact(context: click.Context) -> None:
    """Merge small files of every table, write checkpoints, and drop files of projections that were replaced a day ago or earlier.

    Not needed as a rule: every commit merges what has become many. The log loses nothing, ever.

    \b
    Example:
      shiftlog compact
    """
    from pipelines import summaries, upkeep
    from pipelines.console import Progress

    progress = Progress("compact, step")
    done = upkeep.compact(open_log(context).store, progress.step)
    progress.close()
    summaries.out_compacted(done)


@main.command()
@formats_option("table", "json")
@click.pass_context
@handled
def doctor(context: click.Context, output: str) -> None:
    """Look at environment, disk, tables and clock; say what is wrong and what to do. Reads only.

    \b
    Example:
      shiftlog doctor
    """
    from pipelines import summaries
    from pipelines.console import ExitStatus
    from pipelines.doctor import examine
    from warehouse.clock import system_clock
    from warehouse.store import default_uri

    findings = examine(context.obj or default_uri(), os.environ, system_clock())
    summaries.out_examination(findings, output)
    if any(finding.level == "error" for finding in findings):
        sys.exit(ExitStatus.FAILED)


@main.command()
@click.option("--metrics", is_flag=True, help="Definitions of metrics, and which format writes which under which name.")
@click.option("--keys", is_flag=True, help="Keys of --set and shiftlog.yaml: what may be declared where it is missing.")
@handled
def formats(metrics: bool, keys: bool) -> None:
    """List the record formats that `ingest` reads; docs/formats.md has every field.

    \b
    Examples:
      shiftlog formats
      shiftlog formats --metrics
      shiftlog formats --keys
    """
    from pipelines import summaries

    if metrics:
        summaries.out_metrics()
    if keys:
        summaries.out_keys()
    if not metrics and not keys:
        summaries.out_formats()


@main.command()
@click.option(
    "--out", "folder", metavar="DIR", default="shiftlog-demo", show_default=True, help="Folder for sample, warehouse and page."
)
@handled
def demo(folder: str) -> None:
    """Generate a sample fleet, then ingest, detect, link and report it, offline. The page ends with: planted against found.

    \b
    Example:
      shiftlog demo && xdg-open shiftlog-demo/report/index.html
    """
    from pipelines.demo.run import run_demo

    run_demo(folder)
