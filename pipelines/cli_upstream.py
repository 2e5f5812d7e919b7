"""The verbs about what upstream did: `changes`, `build`, `bisect`, `sync`. They parse, call a plain function, and print.

Everything heavy is imported by the command that needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from pipelines.cli_options import formats_option, handled, open_log


@click.command()
@click.argument("engine")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--hardware", metavar="H", help="Rank for this accelerator: b200, mi355x, …")
@click.option("--model", metavar="M", help="… this model family: dsr1, gptoss120b, …")
@click.option("--precision", metavar="P", help="… this precision: fp4, fp8, …")
@click.option("--spec", metavar="S", help="… this speculative decoding method: mtp, …")
@click.option("--disagg", is_flag=True, help="… disaggregated prefill and decode.")
@click.option("--direction", type=click.Choice(["regression", "speedup"]), help="… what happened.")
@click.option("--metric", metavar="NAME", help="… where it showed: tput_per_gpu, tpot_median, ttft_median, …")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Show only the first N changes [default: all in JSON, 20 in the table]."
)
@formats_option("table", "json")
@click.pass_context
@handled
def changes(context: click.Context, engine: str, start: str, end: str, output: str, limit: int | None, **facets: Any) -> None:
    """List what upstream did between two builds, ranked for a configuration.

    FROM and TO: a version, a tag, a commit, an image reference or a date.

    \b
    Examples:
      shiftlog changes sglang 0.5.5 0.5.6 --hardware b200 --model dsr1 --direction speedup
      shiftlog changes vllm vllm/vllm-openai:v0.11.2 vllm/vllm-openai:v0.13.0 --format json
    """
    from pipelines import summaries
    from pipelines.answers import upstream_changes
    from pipelines.settings import configuration

    log, facets = open_log(context), configuration(facets)
    summaries.refresh_or_say(log)
    answer = upstream_changes(log.store, (engine, start, end), facets, limit if output == "json" else limit or 20)
    summaries.out_changes(answer, output)


@click.command()
@click.argument("images", nargs=-1, required=True, metavar="IMAGE…")
@formats_option("text", "table", "json")
@click.pass_context
@handled
def build(context: click.Context, images: tuple[str, ...], output: str) -> None:
    """Tell what image references hold (engine, version, commit), from where, and how sure that is.

    Without a warehouse it is what the tag holds; with one also what registries said of it (`shiftlog sync images`), the release,
    and where its content stands in the engine's history.

    \b
    Examples:
      shiftlog build lmsysorg/sglang:v0.5.6-cu129-amd64
      shiftlog build 'nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2' --format json
    """
    from changelog.software import told_all
    from pipelines import summaries
    from pipelines.projections import upstream
    from pipelines.settings import references
    from warehouse.errors import InputError

    log = open_log(context, must_exist=False)
    known = log.store.exists("events")
    if known:
        summaries.refresh_or_say(log)
    read, wrong = references(images)
    if read:
        summaries.out_builds(told_all(read, upstream(log.store) if known else None), output)
    if wrong:  # after what could be answered
        raise InputError("; ".join(wrong))


@click.command()
@click.argument("shift_id", metavar="SHIFT")
@click.option(
    "--result",
    "results",
    multiple=True,
    metavar="BUILD=LEVEL",
    help="What a build showed elsewhere: =old (as before the shift), =new (as after it), =skip (cannot be told).",
)
@click.option("--from", "start", metavar="BUILD", help="Take this build for the earlier one, where its record does not tell it.")
@click.option("--to", "end", metavar="BUILD", help="Take this build for the later one.")
@formats_option("text", "json")
@click.pass_context
@handled
def bisect(
    context: click.Context, shift_id: str, results: tuple[str, ...], start: str | None, end: str | None, output: str
) -> None:
    """Tell which build to run next to halve the changes behind a shift, and how many runs that will take.

    Runs of the shift's curve on builds in between are taken up by themselves once they are ingested and detected. BUILD: a
    version, a commit or an image reference.

    \b
    Examples:
      shiftlog bisect 3f9c2a71
      shiftlog bisect 3f9c2a71 --result 0.12.0=old --result 8e5f1c2a9b=skip
    """
    from pipelines import summaries
    from pipelines.bisecting import bisect as run_bisect
    from pipelines.settings import bisect_results
    from warehouse.clock import system_clock

    log, given = open_log(context), bisect_results(results)
    summaries.refresh_or_say(log)
    summaries.warn_if_stale(log)
    answer = run_bisect(log.store, shift_id, given=given, ends=(start, end), now=system_clock())
    summaries.out_bisect(answer, output)


@click.command()
@click.argument("source", type=click.Choice(["upstream", "images"]))
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="NAME",
    help="Only this project: vllm, sglang, aiter, inferencex, … [default: the engines that were measured, and what they carry]",
)
@click.option(
    "--from",
    "locations",
    multiple=True,
    metavar="NAME=PLACE",
    help="Read a project's repository from this folder or URL instead of its own.",
)
@click.option(
    "--since", metavar="D", help="Releases and uploads since this day (YYYY-MM-DD); what is known is not asked for again."
)
@click.pass_context
@handled
def sync(context: click.Context, source: str, projects: tuple[str, ...], locations: tuple[str, ...], since: str | None) -> None:
    """Fetch what upstream published: `upstream` (commits, releases, uploads, dependencies, recipe logs) or `images`.

    Safe to run as often as you like: what is here is not fetched again, and what was interrupted is taken up. What cannot be
    reached now is told, and what is here stays as it was. Tokens only from the environment: $GITHUB_TOKEN;
    $SHIFTLOG_REGISTRY_HOST, $SHIFTLOG_REGISTRY_USER and $SHIFTLOG_REGISTRY_PASSWORD for one private registry.

    \b
    Examples:
      shiftlog sync upstream                                  every engine that was measured
      shiftlog sync upstream --project vllm --since 2026-01-01
      shiftlog sync upstream --project sglang --from sglang=~/src/sglang
      shiftlog sync images                                    digests, commits and moved tags
    """
    from pipelines import summaries
    from pipelines.console import ExitStatus, Progress
    from pipelines.following import refresh
    from pipelines.settings import sync_request
    from pipelines.sync.sources import SOURCES
    from warehouse.clock import system_clock

    log, progress = open_log(context, must_exist=False), Progress("syncing")
    refresh(log)
    request = sync_request(log, system_clock(), projects, locations, since, progress.step)
    parts = []
    for part in SOURCES[source](request):
        progress.close()
        summaries.say_part(part)
        parts.append(part)
    progress.step("tables")
    refresh(log)
    progress.close()
    if any(part.trouble and not part.temporary for part in parts):
        sys.exit(ExitStatus.FAILED)
    if any(part.trouble for part in parts) and not any(part.read for part in parts):
        sys.exit(ExitStatus.FAILED)
    if any(part.quarantined for part in parts):
        sys.exit(ExitStatus.QUARANTINED)


VERBS = (changes, build, bisect, sync)
"""Every verb of this module."""
