"""GitHub's run object (`run.json`, shape of "get a workflow run"): identity and time of a benchmark run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from warehouse.clock import parse_instant
from warehouse.errors import InputError
from warehouse.events import RunKey, RunReported


class _Repository(BaseModel):
    model_config = ConfigDict(extra="ignore")
    full_name: str = Field(min_length=1, max_length=200)


class _Run(BaseModel):
    """The fields of a run object that we keep; it has about sixty more, people's names among them."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)
    id: str = Field(min_length=1, max_length=80)
    run_attempt: int = Field(default=1, ge=1, le=10_000)
    name: str | None = Field(default=None, max_length=500)
    head_branch: str | None = Field(default=None, max_length=500)
    head_sha: str | None = Field(default=None, max_length=80)
    event: str | None = Field(default=None, max_length=80)
    status: str | None = Field(default=None, max_length=80)
    conclusion: str | None = Field(default=None, max_length=80)
    created_at: str | None = None
    updated_at: str | None = None
    run_started_at: str
    html_url: str | None = Field(default=None, max_length=500)
    repository: _Repository

    @field_validator("run_started_at", "created_at", "updated_at")
    @classmethod
    def _instant(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                parse_instant(value, "time")
            except InputError as error:
                raise ValueError(str(error).removeprefix("time: ")) from None
        return value


def is_run(value: Any) -> bool:
    """Say whether *value* looks like a run object."""
    return isinstance(value, dict) and "id" in value and "run_started_at" in value


def read_run(value: Any) -> RunReported:
    """Return the run that a run object describes; raises InputError naming the field that is wrong."""
    try:
        run = _Run.model_validate(value)
    except ValidationError as error:
        raise InputError(first_problem(error)) from None
    return RunReported(
        run=RunKey(run_source=run.repository.full_name, run_id=run.id, run_attempt=run.run_attempt),
        name=run.name,
        head_branch=run.head_branch,
        head_sha=run.head_sha,
        trigger=run.event,
        status=run.status,
        conclusion=run.conclusion,
        created_at=run.created_at,
        started_at=run.run_started_at,
        updated_at=run.updated_at,
        url=run.html_url,
    )


def declared_run(run_source: str, run_id: str, measured_at: datetime) -> RunReported:
    """Return a run that no record describes and the user declared (`--measured-at`)."""
    return RunReported(run=RunKey(run_source=run_source, run_id=run_id), started_at=measured_at.isoformat(), declared=True)


def first_problem(error: ValidationError) -> str:
    """Return the first finding of a failed validation as `field: what is wrong (value)`."""
    finding = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in finding["loc"]) or "record"
    value = repr(finding.get("input"))
    shown = "" if finding["type"] == "missing" or len(value) > 80 else f" (found {value})"
    message = finding["msg"].removeprefix("Value error, ")
    return f"{field}: {message[0].lower()}{message[1:]}{shown}"
