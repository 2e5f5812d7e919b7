"""`sync upstream`: commits, releases, uploads, pinned dependencies and recipe logs of upstream projects.

Belongs here: which parts there are, and for which projects. Does not: what a part means (`changelog`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time
from pathlib import Path

import polars as pl

from changelog import github, package_index
from changelog.benchmarks import Benchmark, benchmarks
from changelog.facts import UpstreamFact
from changelog.git import is_url
from changelog.mirrors import mirror_folder
from changelog.pins import read_pinned
from changelog.projects import Project, project, projects
from changelog.tables import read_table
from changelog.trtllm_notes import read_notes
from changelog.web import Web
from pipelines.ingest.intake import Intake, ingest
from pipelines.ingest.sides import Declared
from pipelines.sync.course import Part, Request, take
from warehouse.errors import InputError

HUB = "https://github.com/"


def sync_upstream(request: Request) -> Iterator[Part]:
    """Yield what each part of each project brought, as it comes."""
    web = Web(request.cache, announce=request.announce)
    owners, kept = wanted(request)
    if unused := sorted(set(request.locations) - {owner.name for owner in owners} - {log.name for log in kept}):
        raise InputError(f"--from {unused[0]}=…: {unused[0]} is not among what is synced; add --project {unused[0]}")
    for owner in owners:
        commits = _repository(request, owner.name, f"{owner.title} commits", _location(request, owner.name, owner.repositories))
        yield commits
        since = datetime.combine(request.since, time(), UTC) if request.since else None
        yield take(request, f"{owner.title} releases", "github-releases", github.releases(web, owner.name, since=since))
        if owner.packages:
            yield take(request, f"{owner.title} uploads", "package-index", package_index.uploads(web, owner.name, since=since))
        if commits.new or not _has_pins(request, owner):
            yield take(request, f"{owner.title} dependencies", "git", _pins(request, owner))
        if owner.notes and (commits.new or not _has_notes(request, owner)):
            yield take(request, f"{owner.title} release notes", "git", _notes(request, owner, owner.notes))
    for log in kept:
        yield _repository(request, log.name, f"{log.title} recipes", _location(request, log.name, log.repositories))


def wanted(request: Request) -> tuple[list[Project], list[Benchmark]]:
    """Return the projects and benchmarks that were asked for: those named, else what was measured, what it carries, and all logs.

    Raises InputError for an unknown one, and where none is named and nothing was measured yet.
    """
    names = dict.fromkeys(name.strip().lower() for name in request.projects)
    logs = [log for name, log in benchmarks().items() if name in names]
    if names:
        return list(dict.fromkeys(project(name) for name in names if name not in benchmarks())), logs
    store = request.log.store
    engines = set(store.read("builds")["engine"].drop_nulls().to_list()) if store.exists("builds") else set()
    known = [owner for owner in projects().values() if owner.name in engines]
    if not known:
        choices = ", ".join([*projects(), *benchmarks()])
        raise InputError(f"nothing was measured yet that would tell which; name one with --project: {choices}")
    carried = [project(name) for owner in known for name in owner.carries]
    return list(dict.fromkeys([*known, *carried])), list(benchmarks().values())


def _location(request: Request, name: str, repositories: tuple[str, ...]) -> str:
    """Return where a repository is read from: as the user said, else its own."""
    return request.locations.get(name) or f"{HUB}{repositories[0]}"


def _repository(request: Request, name: str, title: str, location: str) -> Part:
    """Read a repository as `shiftlog ingest` does."""
    request.announce(title)
    intake: Intake = ingest(
        request.log,
        (location,),
        Declared(None, {"engine": name}),
        recorded_at=request.recorded_at,
        mirrors=request.mirrors,
        announce=request.announce,
    )
    part = Part(title, new=intake.new, read=sum(intake.read.values()), quarantined=intake.quarantined)
    part.trouble = "; ".join(intake.failed) or None
    part.temporary = bool(intake.failed) and is_url(location)
    return part


def _has_pins(request: Request, owner: Project) -> bool:
    pinned = read_table(request.log, "dependencies").filter(pl.col("project") == owner.name)
    return not pinned.filter(~pl.col("evidence").is_in(["support matrix", "release notes"])).is_empty()


def _has_notes(request: Request, owner: Project) -> bool:
    told = (pl.col("project") == owner.name) & (pl.col("evidence") == "release-note") & pl.col("url").is_null()
    return not read_table(request.log, "releases").filter(told).is_empty()


def _pins(request: Request, owner: Project) -> Iterator[UpstreamFact]:
    folder, mirror = _folder(request, owner)
    if folder.is_dir():
        yield from read_pinned(folder, owner, _anchored(request, owner), mirror=mirror)


def _notes(request: Request, owner: Project, path: str) -> Iterator[UpstreamFact]:
    folder, mirror = _folder(request, owner)
    if folder.is_dir():
        yield from read_notes(folder, path, mirror=mirror)


def _folder(request: Request, owner: Project) -> tuple[Path, bool]:
    """Return where the repository is on this machine, and whether that is a mirror of our own."""
    location = _location(request, owner.name, owner.repositories)
    return (mirror_folder(location, request.mirrors), True) if is_url(location) else (Path(location), False)


def _anchored(request: Request, owner: Project) -> dict[str, str]:
    """Return the commit of each release that the history holds; where its branch left main, what main pinned tells enough."""
    here = set(read_table(request.log, "commits").filter(pl.col("project") == owner.name)["commit"].to_list())
    found: dict[str, str] = {}
    for row in read_table(request.log, "releases").filter(pl.col("project") == owner.name).iter_rows(named=True):
        if row["commit"] in here:
            found.setdefault(row["version"], row["commit"])
    return found
