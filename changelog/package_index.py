"""When versions of an engine's package were uploaded, from a package index in its JSON form (PEP 691, dates by PEP 700).

The facts are those of a saved upload list (`changelog.items.upload`): of the files of a version the first counts, and a version
is yanked where every file of it is. Belongs here: the index's format. Does not: HTTP (`changelog.web`), commits behind a version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from changelog.facts import MAX_EXCERPT, UpstreamFact, UpstreamFault, instant_of, line_of
from changelog.items import upload
from changelog.projects import project
from changelog.web import Web
from warehouse.clock import iso
from warehouse.errors import InputError

ACCEPT = "application/vnd.pypi.simple.v1+json"
DEFAULT_INDEX = "https://pypi.org/simple/"
VARIABLE = "SHIFTLOG_PACKAGE_INDEX"
MAX_BYTES = 64 << 20
"""Of one package's page (vLLM's is about 0.3 MB)."""
MAX_NAME = 400
"""Characters of a file's name; a number of thousands of digits is no version."""
MAX_FILES = 100_000


class _File(NamedTuple):
    version: str
    uploaded: datetime
    yanked: bool


def index() -> str:
    """Return the address of the index, with a slash at its end; raises InputError where the environment names no http address."""
    address = os.environ.get(VARIABLE, "").strip() or DEFAULT_INDEX
    if not address.startswith(("https://", "http://")):
        raise InputError(f"{VARIABLE}: {line_of(address, 60)!r} is no address; write it as {DEFAULT_INDEX}")
    return address.rstrip("/") + "/"


def uploads(web: Web, owner: str, *, since: datetime | None = None) -> Iterator[UpstreamFact | UpstreamFault]:
    """Yield a fact for each version of a project's packages that was uploaded first at *since* or later, oldest first.

    A file that cannot be read is a fault. A project without a package yields nothing. Raises WebError where the index does not
    answer, InputError for an unknown project.
    """
    known = project(owner)
    files: list[_File] = []
    for package in known.packages:
        address = f"{index()}{canonicalize_name(package)}/"
        answer = web.get(address, accept=ACCEPT, limit=MAX_BYTES)
        for told in _files(package, answer.json()):
            if isinstance(told, UpstreamFault):
                yield told
            else:
                files.append(told)
    for version, item in _items(files):
        if since is None or item["first_upload"] >= since:
            told_item = {**item, "first_upload": iso(item["first_upload"])}
            yield from upload(known.name, told_item, f"{known.packages[0]} {version}")


def _items(files: list[_File]) -> list[tuple[str, dict[str, Any]]]:
    """Return the versions as `changelog.items.upload` takes them, in the order of their first uploads."""
    versions: dict[str, list[_File]] = {}
    for file in files:
        versions.setdefault(file.version, []).append(file)
    told = [
        (version, {"version": version, "first_upload": min(one.uploaded for one in of), "yanked": all(one.yanked for one in of)})
        for version, of in versions.items()
    ]
    return sorted(told, key=lambda pair: (pair[1]["first_upload"], pair[0]))


def _files(package: str, page: object) -> Iterator[_File | UpstreamFault]:
    entries = page.get("files") if isinstance(page, dict) else None
    if not isinstance(entries, list):
        reason = f"{package}: the index gave no list `files`; name one that speaks JSON (PEP 691) in {VARIABLE}"
        yield UpstreamFault(package, reason, line_of(str(page)[: 4 * MAX_EXCERPT], MAX_EXCERPT))
        return
    for number, entry in enumerate(entries[:MAX_FILES], start=1):
        position = f"{package} file {number}"
        try:
            yield _file(package, entry)
        except (InputError, KeyError, TypeError, AttributeError, ValueError) as error:  # packaging's errors are ValueErrors
            why = f"field {error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            excerpt = line_of(str(entry)[: 4 * MAX_EXCERPT], MAX_EXCERPT)
            yield UpstreamFault(position, f"{position}: {line_of(why, 300)}", excerpt)


def _file(package: str, entry: dict[str, Any]) -> _File:
    yanked = entry.get("yanked", False)
    return _File(
        version=_version(package, str(entry["filename"])),
        uploaded=instant_of(entry["upload-time"], "upload-time"),
        yanked=yanked is not False and yanked is not None,
    )


def _version(package: str, filename: str) -> str:
    """Return the version in a file's name; raises InputError for a name that is neither a wheel's nor a source archive's."""
    if len(filename) > MAX_NAME:
        raise InputError(f"filename: {len(filename)} characters; at most {MAX_NAME} are read")
    try:
        if filename.endswith(".whl"):
            name, version = parse_wheel_filename(filename)[:2]
        else:
            name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename):
        raise InputError(f"filename: {line_of(filename, 100)!r} is neither a wheel nor a source archive") from None
    if name != canonicalize_name(package):
        raise InputError(f"filename: {line_of(filename, 100)!r} is not of {package}")
    return str(version)
