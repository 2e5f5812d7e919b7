"""Finding inputs: folders, single files, `.zip`, `.gz`, git repositories. Nothing is unpacked to disk; every size is bounded.

Names are shown relative to what the user named; virtual paths are absolute, because two folders called alike are two folders.

Belongs here: reaching bytes safely. Does not: knowing what they mean.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from warehouse.errors import InputError

MAX_FILE_BYTES = 512 * 1024 * 1024
"""Largest single input after decompression; the largest real artifact is about 3 MB."""
MAX_ARCHIVE_MEMBERS = 100_000
MAX_ARCHIVE_DEPTH = 3
MAX_FOLDER_DEPTH = 64
CHUNK = 1024 * 1024

RUN_FILE = "run.json"
"""Name of the file that dates the results beside and below it."""
SIDE_FILES = ("shiftlog.yaml", "shiftlog.yml", "meta_env.json", "reuse_source_run.json")
"""Names of files that tell more of what lies beside and below them (`pipelines.ingest.sides`)."""
TEXT_SUFFIXES = (".yaml", ".yml", ".csv", ".txt")
"""Suffixes of files that are no JSON: one that no format knows is anybody's file and no damaged record."""
SUFFIXES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv")
"""What is looked at inside folders and archives, also behind `.gz`."""
LOGS = ("mlperf_log_summary.txt", "mlperf_log_detail.txt")
"""… and files that are known by their whole name, because their suffix is everybody's."""


@dataclass(frozen=True)
class InputFile:
    """One file to read: its display name, its virtual path (archive members included) and how to get its bytes.

    `read` raises InputError where the bytes cannot be had (too large, damaged archive, no permission).
    `named` is True where the user named this very file. `local` is the file itself where it is one that needs no unpacking.
    """

    name: str
    path: PurePosixPath
    named: bool
    read: Callable[[], bytes] = field(repr=False)
    local: Path | None = None


@dataclass(frozen=True)
class Repository:
    """A git repository to read commits from: a local path or a URL."""

    location: str
    name: str


@dataclass(frozen=True)
class Unreadable:
    """Something that was met on the way and cannot be opened; it goes to quarantine."""

    name: str
    reason: str


@dataclass(frozen=True)
class Ignored:
    """A file of a folder or archive that is not of a kind we look at."""

    name: str


Found = InputFile | Repository | Unreadable | Ignored


IsUpstream = Callable[[str], bool]
"""Says whether a folder of this name is the source of an upstream project; other checkouts are looked through for files."""


def any_repository(_name: str) -> bool:
    """Take every git repository for an upstream project."""
    return True


def find_inputs(paths: tuple[str, ...], is_upstream: IsUpstream = any_repository) -> Iterator[Found]:
    """Yield what stands at *paths*, in a fixed order; raises InputError for a path that does not exist.

    A git repository that *is_upstream* knows is one input; any other checkout (of benchmark results, say) is a folder of files.
    A `run.json` comes before the files that it dates: those beside and below it.
    """
    archives = _Archives()
    for text in paths:
        if "://" in text or text.startswith("git@"):
            yield Repository(text, text.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git"))
            continue
        path = Path(text)
        folder = _resolved(path if _is_folder(path, text) else path.parent)
        if path.is_dir():
            yield from _walk(path, path.name or ".", folder, archives, is_upstream)
        else:
            yield from _beside(path, folder, archives)
            yield from _open_file(path, path.name, folder / path.name, True, archives)


def _is_folder(path: Path, text: str) -> bool:
    """Say whether *path* is a folder; raises InputError where there is nothing that can be looked at."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{text}: no such file or folder") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{text[:200]}: cannot be opened: {getattr(error, 'strerror', error)}") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise InputError(f"{text[:200]}: is neither a file nor a folder")
    return stat.S_ISDIR(mode)


def _resolved(folder: Path) -> PurePosixPath:
    return PurePosixPath(folder.resolve().as_posix().lstrip("/"))


def _beside(path: Path, folder: PurePosixPath, archives: _Archives) -> Iterator[Found]:
    """Yield what tells more of a file that the user named and lies next to it: its run's time, what is declared for it."""
    for name in (RUN_FILE, *SIDE_FILES):
        beside = path.parent / name
        if path.name != name and beside.is_file():
            yield from _open_file(beside, name, folder / name, False, archives)


def _is_bare(folder: Path) -> bool:
    return all((folder / part).exists() for part in ("HEAD", "objects", "refs"))


def _walk(folder: Path, name: str, virtual: PurePosixPath, archives: _Archives, is_upstream: IsUpstream) -> Iterator[Found]:
    try:
        checkout, bare = (folder / ".git").exists(), _is_bare(folder)
    except OSError as error:
        yield Unreadable(name, f"folder cannot be looked into: {error.strerror}")
        return
    if bare or (checkout and is_upstream(virtual.name)):
        yield Repository(str(folder), virtual.name)
        return
    if name.count("/") > MAX_FOLDER_DEPTH:
        yield Unreadable(name, f"folder inside {MAX_FOLDER_DEPTH} folders: not looked into")
        return
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: _run_first(entry.name))
    except OSError as error:
        yield Unreadable(name, f"folder cannot be listed: {error.strerror}")
        return
    for entry in entries:
        display, place = f"{name}/{entry.name}", virtual / entry.name
        if entry.is_symlink():
            yield Ignored(f"{display} (symbolic link)")
        elif entry.is_dir():
            if not (checkout and entry.name == ".git"):
                yield from _walk(entry, display, place, archives, is_upstream)
        elif entry.is_file():
            yield from _open_file(entry, display, place, False, archives)
        else:
            yield Ignored(display)


def _run_first(path: str) -> tuple[bool, str]:
    """Return what orders a folder or an archive: its `run.json` first."""
    return path.rsplit("/", 1)[-1] != RUN_FILE, path


def _open_file(path: Path, name: str, virtual: PurePosixPath, named: bool, archives: _Archives) -> Iterator[Found]:
    if not named and not _is_looked_at(path.name):
        yield Ignored(name)
        return
    yield from _expand(name, virtual, named, lambda: read_local(path), 0, archives, path)


def _is_looked_at(name: str) -> bool:
    plain = name.rsplit("/", 1)[-1].lower().removesuffix(".gz")
    return plain.endswith((*SUFFIXES, ".zip")) or plain in LOGS


def _expand(
    name: str,
    virtual: PurePosixPath,
    named: bool,
    read: Callable[[], bytes],
    depth: int,
    archives: _Archives,
    local: Path | None = None,
) -> Iterator[Found]:
    lower = virtual.name.lower()
    if lower.endswith(".zip"):
        yield from _members(name, virtual, named, read, depth, archives)
    elif lower.endswith(".gz"):
        inner = virtual.with_name(virtual.name[: -len(".gz")] or virtual.name)
        yield InputFile(name, inner, named, lambda: _gunzip(name, read()))
    else:
        yield InputFile(name, virtual, named, read, local)


class _Archives:
    """The archives that were opened last; an older one is read again, so that memory does not grow with their number."""

    def __init__(self) -> None:
        self._open: dict[PurePosixPath, zipfile.ZipFile] = {}

    def open(self, place: PurePosixPath, name: str, read: Callable[[], bytes]) -> zipfile.ZipFile:
        """Return the archive at *place*, called *name*; raises InputError where it cannot be read or is no archive."""
        archive = self._open.pop(place, None) or _opened(name, read())
        self._open[place] = archive
        while len(self._open) > MAX_ARCHIVE_DEPTH:
            del self._open[next(iter(self._open))]
        return archive


def _opened(name: str, data: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
        raise InputError(f"{name}: damaged .zip ({error}); fetch it again") from None


def _members(
    name: str, virtual: PurePosixPath, named: bool, read: Callable[[], bytes], depth: int, archives: _Archives
) -> Iterator[Found]:
    if depth >= MAX_ARCHIVE_DEPTH:
        yield Unreadable(name, f"archive inside {MAX_ARCHIVE_DEPTH} archives: not opened")
        return
    try:
        listed = archives.open(virtual, name, read).infolist()
    except InputError as error:
        yield Unreadable(name, str(error))
        return
    members = sorted((info for info in listed if not info.is_dir()), key=lambda info: _run_first(info.filename))
    if len(members) > MAX_ARCHIVE_MEMBERS:
        yield Unreadable(name, f"archive of {len(members)} files; at most {MAX_ARCHIVE_MEMBERS} are read")
        return
    for info in members:
        place, display = virtual / _safe(info.filename), f"{name}!{_safe(info.filename)}"
        if reason := _refused(info):
            yield Unreadable(display, reason)
        elif not _is_looked_at(info.filename):
            yield Ignored(display)
        else:
            member = _member_reader(lambda: archives.open(virtual, name, read), info, display)
            yield from _expand(display, place, named, member, depth + 1, archives)


def _refused(info: zipfile.ZipInfo) -> str | None:
    """Return why a member is not read, whatever it holds: no honest archive has such ones."""
    path = PurePosixPath(info.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or PureWindowsPath(info.filename).drive:
        return "archive member that names a place outside its archive: not read; pack it again with relative names"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "archive member that is a symbolic link: not followed; pack the file itself"
    return None


def _safe(member: str) -> PurePosixPath:
    """Return a member's path without roots and parents, so that it cannot name a place outside its archive."""
    parts = [part for part in member.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return PurePosixPath(*parts) if parts else PurePosixPath("unnamed")


def _member_reader(archive: Callable[[], zipfile.ZipFile], info: zipfile.ZipInfo, name: str) -> Callable[[], bytes]:
    def read() -> bytes:
        if info.flag_bits & 0x1:
            raise InputError(f"{name}: encrypted archive member; unpack it first")
        try:
            with archive().open(info) as stream:
                return _bounded(stream, name)
        except (
            zipfile.BadZipFile,
            OSError,
            EOFError,
            lzma.LZMAError,
            zlib.error,
            NotImplementedError,
            ValueError,
            RuntimeError,
        ) as error:
            raise InputError(f"{name}: damaged archive member ({error}); fetch it again") from error

    return read


def read_local(path: Path) -> bytes:
    """Return the bytes of a file; raises InputError where they cannot be had or are too many."""
    try:
        with path.open("rb") as stream:
            return _bounded(stream, path.name)
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read: {error.strerror}") from error


def _gunzip(name: str, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _bounded(stream, name)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged .gz ({error}); fetch it again") from error


def _bounded(stream: IO[bytes] | gzip.GzipFile, name: str) -> bytes:
    """Read the whole stream in chunks and stop at the limit, whatever size its header claims."""
    chunks: list[bytes] = []
    total = 0
    while chunk := stream.read(CHUNK):
        total += len(chunk)
        if total > MAX_FILE_BYTES:
            raise InputError(f"{name}: larger than {MAX_FILE_BYTES // 1024**2} MiB; split it")
        chunks.append(chunk)
    return b"".join(chunks)
