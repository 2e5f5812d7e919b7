"""Python, the libraries and git against what the installed package asks for."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires
from importlib.metadata import version as installed

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pipelines.doctor.finding import Finding


def look_at_installation(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Say whether this machine has what shiftlog needs."""
    yield from _libraries()
    yield from _git(environment)


def _libraries() -> Iterator[Finding]:
    """Compare Python and the libraries with what the installed package asks for."""
    try:
        asked = metadata("shiftlog").json.get("requires_python")
    except PackageNotFoundError:
        yield Finding("note", "shiftlog is not installed as a package, so no version is checked", "run `pip install .`")
        return
    python, wanted = platform.python_version(), [Requirement(text) for text in requires("shiftlog") or []]
    wanted = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    wrong = [finding for finding in map(_library, wanted) if finding]
    if not SpecifierSet(str(asked or "")).contains(python, prereleases=True):
        wrong.insert(0, Finding("error", f"Python {python} runs, shiftlog asks for {asked}", "install it into such a Python"))
    yield from wrong or [Finding("ok", f"Python {python} and {len(wanted)} libraries are what shiftlog asks for")]


def _library(wanted: Requirement) -> Finding | None:
    fix = f"run `pip install '{wanted.name}{wanted.specifier}'`"
    try:
        found = installed(wanted.name)
    except PackageNotFoundError:
        return Finding("error", f"{wanted.name} is not installed, shiftlog asks for {wanted.specifier}", fix)
    if wanted.specifier.contains(found, prereleases=True):
        return None
    return Finding("error", f"{wanted.name} {found} is installed, shiftlog asks for {wanted.specifier}", fix)


def _git(environment: Mapping[str, str]) -> Iterator[Finding]:
    program = environment.get("GIT_PYTHON_GIT_EXECUTABLE") or "git"
    if shutil.which(program, path=environment.get("PATH", os.defpath)):
        yield Finding("ok", "git is there")
    else:
        yield Finding("warning", f"{program} is not on the path: upstream histories cannot be read", "install git")
