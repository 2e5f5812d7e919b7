"""What InferenceX keeps beside the results of a run: job statistics, recipe entries that started it, the run it was reused from.

Facts: InferenceX `utils/calc_success_rate.py` (`run_stats.json`), `utils/process_changelog.py` and
`utils/matrix_logic/validation.py` (`changelog_metadata.json`), `.github/workflows/run-sweep.yml` at f42710a89 and InferenceX-app
`packages/db/src/prepare-ci-artifacts.ts` (`reuse_source_run.json`), InferenceX-app
`packages/db/src/queries/{reliability,workflow-info}.ts` (API answers).
None of them is a benchmark record. Belongs here: their shapes. Does not: what becomes of them in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.ingest.numbers import whole
from warehouse import vocabulary
from warehouse.clock import parse_instant
from warehouse.errors import InputError

MAX_ENTRIES = 10_000
MAX_TEXT = 20_000
MAX_JOBS = 1_000_000
_STATISTICS = frozenset({"n_success", "total"})
_RUN = re.compile(r"https://github\.com/([\w.-]{1,100}/[\w.-]{1,100})/actions/runs/\d{1,20}(?:/attempts/\d{1,4})?/?")


@dataclass(frozen=True)
class HardwareJobs:
    """Jobs of a run on one kind of runner, of all its attempts: skipped ones do not count, cancelled ones failed.

    A total of 0 means that the run had no job there.
    """

    label: str
    hardware: str
    succeeded: int
    total: int
    day: datetime | None = None
    """UTC day of the run, where the API tells it; it does not tell the run."""


@dataclass(frozen=True)
class RecipeEntry:
    """One entry of the recipe log that a run was started for."""

    config_keys: tuple[str, ...]
    description: tuple[str, ...]
    pr_link: str | None
    evals_only: bool = False
    append_only: bool = False
    """The run measured only points that were added; the others of the curve are of earlier runs."""
    scenario_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangelogMetadata:
    """The commits between which a run's recipe entries were added, and the entries."""

    base_ref: str
    head_ref: str
    entries: tuple[RecipeEntry, ...]
    run_id: str | None = None
    """The run that they started, where the API tells it; beside an artifact it is the artifact's run."""


@dataclass(frozen=True)
class ReuseSource:
    """The run that measured results which another run handed on."""

    run_source: str | None
    run_id: str
    run_attempt: int
    head_sha: str | None
    pr_number: int | None
    ingest_run_id: str | None
    ingest_run_attempt: int | None
    url: str | None


@dataclass(frozen=True)
class ApiRun:
    """A CI run as the API's `workflow-info` tells it."""

    run_source: str
    run_id: str
    run_attempt: int
    name: str | None
    conclusion: str | None
    created_at: datetime
    url: str


def is_run_stats(value: Any) -> bool:
    """Say whether *value* is a `run_stats.json`: runner label → jobs."""
    return (
        isinstance(value, dict)
        and 0 < len(value) <= MAX_ENTRIES
        and all(isinstance(jobs, dict) and jobs.keys() == _STATISTICS for jobs in value.values())
    )


def is_reliability(value: Any) -> bool:
    """Say whether *value* is one row of the API's `reliability`."""
    return isinstance(value, dict) and value.keys() == _STATISTICS | {"hardware", "date"}


def is_changelog_metadata(value: Any) -> bool:
    """Say whether *value* is a `changelog_metadata.json`."""
    return isinstance(value, dict) and value.keys() >= {"base_ref", "head_ref", "entries"}


def is_reuse_source(value: Any) -> bool:
    """Say whether *value* is a `reuse_source_run.json`."""
    return isinstance(value, dict) and "source_run_id" in value


def is_workflow_info(value: Any) -> bool:
    """Say whether *value* is the API's answer to `workflow-info`."""
    return isinstance(value, dict) and value.keys() >= {"runs", "changelogs", "configs"}


def read_run_stats(value: Any) -> tuple[HardwareJobs, ...]:
    """Return the jobs of a run by runner label, those without any job left out; raises InputError naming the field."""
    if value is None:
        return ()  # what the producer writes where it may not ask GitHub
    jobs = tuple(_jobs(str(label), entry, None) for label, entry in _object("run_stats", value, MAX_ENTRIES).items())
    return tuple(entry for entry in jobs if entry.total)


def read_reliability(rows: Any) -> tuple[HardwareJobs, ...]:
    """Return the rows of the API's `reliability`, those without any job left out; raises InputError naming the row."""
    jobs = []
    for place, row in enumerate(_list("reliability", rows, MAX_JOBS)):
        field = f"reliability.{place}"
        entry = _object(field, row)
        jobs.append(_jobs(_text(f"{field}.hardware", entry.get("hardware")), entry, parse_instant(entry.get("date", ""), "date")))
    return tuple(entry for entry in jobs if entry.total)


def _jobs(label: str, entry: Any, day: datetime | None) -> HardwareJobs:
    fields = _object(label[:60], entry)
    succeeded, total = (
        whole(f"{label[:60]}.{name}", _needed(f"{label[:60]}.{name}", fields.get(name)), largest=MAX_JOBS)
        for name in ("n_success", "total")
    )
    if succeeded > total:
        raise InputError(f"{label[:60]}.n_success: {succeeded} of {total} jobs")
    return HardwareJobs(label, vocabulary.hardware(label).value, succeeded, total, day)


def read_changelog_metadata(value: Any) -> ChangelogMetadata:
    """Return the recipe entries that a run was started for; raises InputError naming the field."""
    fields = _object("changelog_metadata", value)
    entries = _list("entries", fields.get("entries"), MAX_ENTRIES)
    return ChangelogMetadata(
        _text("base_ref", fields.get("base_ref")),
        _text("head_ref", fields.get("head_ref")),
        tuple(_entry(f"entries.{place}", entry) for place, entry in enumerate(entries)),
    )


def _entry(field: str, value: Any) -> RecipeEntry:
    """Return one entry; the log writes `config-keys`, the API `config_keys`."""
    entry = {str(key).replace("_", "-"): found for key, found in _object(field, value).items()}
    link = entry.get("pr-link")
    return RecipeEntry(
        config_keys=_texts(f"{field}.config-keys", entry.get("config-keys")),
        description=_texts(f"{field}.description", entry.get("description")),
        pr_link=None if link is None else _text(f"{field}.pr-link", link),
        evals_only=entry.get("evals-only") is True,
        append_only=entry.get("append-only") is True,
        scenario_types=_texts(f"{field}.scenario-type", entry.get("scenario-type") or []),
    )


def read_reuse_source(value: Any) -> ReuseSource:
    """Return the run that measured what another run handed on; ids are numbers or texts. Raises InputError naming the field."""
    fields = {key: found for key, found in _object("reuse_source_run", value).items() if found not in (None, "")}
    url = fields.get("source_run_url")
    match = _RUN.fullmatch(url) if isinstance(url, str) else None
    pr_number, ingest_attempt = fields.get("source_pr_number"), fields.get("ingest_run_attempt")
    return ReuseSource(
        run_source=match[1] if match else None,
        run_id=_run_id("source_run_id", fields.get("source_run_id")),
        run_attempt=whole("source_run_attempt", fields.get("source_run_attempt", 1), least=1, largest=10_000),
        head_sha=_text("source_head_sha", fields["source_head_sha"]) if "source_head_sha" in fields else None,
        pr_number=None if pr_number is None else whole("source_pr_number", pr_number, least=1),
        ingest_run_id=_run_id("ingest_run_id", fields["ingest_run_id"]) if "ingest_run_id" in fields else None,
        ingest_run_attempt=None if ingest_attempt is None else whole("ingest_run_attempt", ingest_attempt, 1, 10_000),
        url=url if match else None,
    )


def read_workflow_info(value: Any) -> tuple[tuple[ApiRun, ...], tuple[ChangelogMetadata, ...]]:
    """Return the runs of a day and the recipe entries that started them; raises InputError naming the field."""
    fields = _object("workflow-info", value)
    runs = tuple(_api_run(f"runs.{place}", run) for place, run in enumerate(_list("runs", fields.get("runs"), MAX_ENTRIES)))
    changes = _list("changelogs", fields.get("changelogs"), MAX_ENTRIES)
    return runs, tuple(_api_change(f"changelogs.{place}", change) for place, change in enumerate(changes))


def _api_run(field: str, value: Any) -> ApiRun:
    run = _object(field, value)
    url = _text(f"{field}.html_url", run.get("html_url"))
    match = _RUN.fullmatch(url)
    if match is None:
        raise InputError(f"{field}.html_url: {url[:60]!r} is no address of a run on GitHub")
    return ApiRun(
        run_source=match[1],
        run_id=_run_id(f"{field}.github_run_id", run.get("github_run_id")),
        run_attempt=whole(f"{field}.run_attempt", run.get("run_attempt", 1), 1, 10_000),
        name=_text(f"{field}.name", run["name"]) if run.get("name") else None,
        conclusion=_text(f"{field}.conclusion", run["conclusion"]) if run.get("conclusion") else None,
        created_at=parse_instant(_text(f"{field}.created_at", run.get("created_at")), f"{field}.created_at"),
        url=url,
    )


def _api_change(field: str, value: Any) -> ChangelogMetadata:
    """Return one entry of the API; of several entries of one push its database keeps the last alone."""
    change = _object(field, value)
    return ChangelogMetadata(
        _text(f"{field}.base_ref", change.get("base_ref")),
        _text(f"{field}.head_ref", change.get("head_ref")),
        (_entry(field, change),),
        _run_id(f"{field}.workflow_run_id", change.get("workflow_run_id")),
    )


def _needed(field: str, value: Any) -> Any:
    if value is None:
        raise InputError(f"{field}: field required")
    return value


def _object(field: str, value: Any, largest: int = MAX_ENTRIES) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > largest:
        raise InputError(f"{field}: an object of at most {largest} entries is wanted")
    return value


def _list(field: str, value: Any, largest: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > largest:
        raise InputError(f"{field}: a list of at most {largest} entries is wanted")
    return value


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise InputError(f"{field}: a text of 1 to {MAX_TEXT} characters is wanted")
    return value


def _texts(field: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts; one text is its lines, as the API joins them."""
    lines: Iterable[Any] = value.split("\n") if isinstance(value, str) else _list(field, value, MAX_ENTRIES)
    return tuple(_text(field, line) for line in lines if line != "")


def _run_id(field: str, value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not re.fullmatch(r"[1-9][0-9]{0,19}", text):
        raise InputError(f"{field}: {str(value)[:60]!r} is no number of a run")
    return text
