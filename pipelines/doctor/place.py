"""The folder or object store that holds the warehouse: rights, file system, leftovers, space, credentials."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipelines.doctor.finding import Finding, told
from pipelines.settings import mirrors_folder
from warehouse.layout import MEBIBYTE
from warehouse.schemas import TABLES
from warehouse.store import Store

LEAST_SPACE = 256 * MEBIBYTE
"""Free space, bytes, below which a night may not end."""
MOUNTS = Path("/proc/mounts")
SHARED = re.compile("9p|afs|beegfs|ceph|cifs|fuse.*|glusterfs|gpfs|lustre|nfs4?|ocfs2|orangefs|smb3|smbfs|virtiofs|vboxsf")
"""Types of file systems that run as a program, or that other machines, or the host of a virtual one, write to as well."""
VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION AWS_ROLE_ARN "
    "AWS_WEB_IDENTITY_TOKEN_FILE AWS_ENDPOINT_URL AWS_ALLOW_HTTP",
    "gs": "GOOGLE_SERVICE_ACCOUNT GOOGLE_SERVICE_ACCOUNT_PATH GOOGLE_SERVICE_ACCOUNT_KEY GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME AZURE_STORAGE_ACCOUNT_KEY AZURE_STORAGE_ACCESS_KEY AZURE_STORAGE_SAS_TOKEN AZURE_CLIENT_ID "
    "AZURE_CLIENT_SECRET AZURE_TENANT_ID AZURE_FEDERATED_TOKEN_FILE AZURE_USE_AZURE_CLI",
}
"""Variables that the object-store library reads (docs/upkeep.md), by kind of store."""
KINDS = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az"}


def look_at_place(store: Store, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Say whether tables can be kept where *store* keeps them."""
    yield from _folder(store) if store.local else _variables(store, environment)


def _folder(store: Store) -> Iterator[Finding]:
    """Look at a folder: is it there, may we, does its file system do what delta-rs needs, what lies about."""
    folder = Path(store.uri)
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    yield from _file_system(place)
    if not os.access(place, os.R_OK | os.X_OK):
        yield Finding("error", f"{place} cannot be read by this user", "give this user the right to read it")
    elif not os.access(place, os.W_OK):
        yield Finding("warning", f"{place} cannot be written by this user", "give this user the right to write, or only read")
    elif place == folder.absolute():
        yield _linking(place)
        yield from _leftovers(store, place)


def _file_system(place: Path) -> Iterator[Finding]:
    try:
        kind = _kind(place.resolve(), MOUNTS.read_text("utf-8", "replace"))
    except OSError:  # not Linux
        return
    if SHARED.fullmatch(kind):
        what = f"{place} lies on {kind}: commits of two machines at once are only safe where its hard links never replace a file"
        yield Finding("warning", what, "keep the warehouse on a local disk or an object store")


def _kind(place: Path, mounts: str) -> str:
    """Return the type of the file system that holds *place*, an absolute path; of two mounts the later lies on top."""
    best, kind = -1, ""
    for fields in map(str.split, mounts.splitlines()):
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[1]))
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def _linking(folder: Path) -> Finding:
    """Try what a commit needs: a hard link takes a free name and does not replace a file."""
    fix = "put the warehouse on another file system"
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
            one, other = Path(scratch, "one"), Path(scratch, "other")
            one.write_bytes(b"")
            os.link(one, other)
            try:
                os.link(one, other)
            except FileExistsError:
                return Finding("ok", f"{folder} can be written, and a hard link there replaces no file")
            return Finding("error", f"{folder}: a hard link replaces a file, so two commits at once can lose one", fix)
    except OSError as error:
        return Finding("error", f"{folder}: no file or hard link can be made ({error.strerror}), and commits need both", fix)


def _leftovers(store: Store, folder: Path) -> Iterator[Finding]:
    """Name what an interrupted write left, and the mirrors of upstream repositories."""
    left = sorted(path for name in TABLES for path in folder.glob(f"{name}/**/*") if _is_left(path.name))
    if left:
        what = f"{len(left)} unfinished files of interrupted writes, such as {left[0].relative_to(folder)}; no table names them"
        yield Finding("note", what, "delete them while nothing writes")
    mirrors = mirrors_folder(store)
    if mirrors.is_dir():
        size = sum(path.stat().st_size for path in mirrors.rglob("*") if path.is_file())
        yield Finding("ok", f"mirrors of upstream repositories: {told(size)} in {mirrors}; what is deleted is made again")


def _is_left(name: str) -> bool:
    return ".tmp" in name or re.search(r"#\d+$", name) is not None


def _variables(store: Store, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Name the credential variables that are set; their values are never looked at."""
    scheme = store.uri.partition("://")[0]
    kind = KINDS.get(scheme)
    if kind is None:
        yield Finding("error", f"{scheme}:// is no place for tables", "use a folder, s3://, gs:// or abfs://")
        return
    names = VARIABLES[kind].split()
    if known := [name for name in names if environment.get(name)]:
        yield Finding("ok", f"credentials for {scheme}://: {', '.join(known)} set")
    else:
        fix = f"set some of {', '.join(names)}, unless the machine has a role of its own"
        yield Finding("note", f"no credential variable for {scheme}:// is set", fix)
    if kind == "s3" and environment.get("AWS_S3_ALLOW_UNSAFE_RENAME"):
        yield Finding("warning", "AWS_S3_ALLOW_UNSAFE_RENAME is set: two writers at once can lose a commit", "unset it")


def look_at_space(folder: Path, sizes: Mapping[str, int]) -> Finding:
    """Compare the free space with what a rebuild of the largest table needs: its new files stand beside the old ones."""
    name = max(sizes, key=lambda each: (sizes[each], each), default="events")
    free, needed = shutil.disk_usage(folder).free, max(2 * sizes.get(name, 0), LEAST_SPACE)
    what = f"{told(free)} free; the largest table, {name}, has {told(sizes.get(name, 0))}"
    if free >= needed:
        return Finding("ok", what)
    return Finding("warning", f"{what}; making it again needs {told(needed)}", "free some space, or move the warehouse")
