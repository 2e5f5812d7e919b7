"""Reaching bytes: folders, archives and what is wrong with them; nothing may leave its folder, grow without bound or crash."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.ingest import inputs
from pipelines.ingest.inputs import Found, Ignored, InputFile, Repository, Unreadable, find_inputs
from tests.lengths import either
from warehouse.errors import InputError

DATA = b'[{"a": 1}]'


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def found(*paths: Path | str) -> list[Found]:
    return list(find_inputs(tuple(str(path) for path in paths)))


def contents(entries: list[Found]) -> dict[str, bytes]:
    return {entry.name: entry.read() for entry in entries if isinstance(entry, InputFile)}


def refusal(entries: list[Found]) -> str:
    """Return why the only entry cannot be read, in one line, wherever that shows."""
    (entry,) = entries
    if isinstance(entry, Unreadable):
        reason = entry.reason
    else:
        assert isinstance(entry, InputFile)
        with pytest.raises(InputError) as refused:
            entry.read()
        reason = str(refused.value)
    assert "\n" not in reason
    return reason


def test_a_folder_is_walked_in_a_fixed_order(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "in",
        {"b/x.json": DATA, "a.jsonl": DATA, "b/a/y.ndjson": DATA, "c.JSON": DATA, "d.json.gz": gzip.compress(DATA, mtime=0)},
    )
    assert contents(found(root)) == dict.fromkeys(
        ("in/a.jsonl", "in/b/a/y.ndjson", "in/b/x.json", "in/c.JSON", "in/d.json.gz"), DATA
    )
    assert [entry.name for entry in found(root)] == sorted(entry.name for entry in found(root))  # type: ignore[union-attr]


def test_what_is_not_looked_at_is_named(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "in",
        {
            "notes.txt": b"x",
            ".DS_Store": b"x",
            "log": b"x",
            "x.tsv.gz": b"x",
            "y.json": DATA,
            "z.zip": zipped({"a.png": b"x", "b.json": DATA}),
        },
    )
    entries = found(root)
    assert [entry.name for entry in entries if isinstance(entry, Ignored)] == [
        "in/.DS_Store",
        "in/log",
        "in/notes.txt",
        "in/x.tsv.gz",
        "in/z.zip!a.png",
    ]
    assert list(contents(entries)) == ["in/y.json", "in/z.zip!b.json"]


def test_symbolic_links_in_folders_are_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, {"secret/a.json": DATA, "in/own.json": DATA})
    (tmp_path / "in" / "file.json").symlink_to(tmp_path / "secret" / "a.json")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "dead.json").symlink_to(tmp_path / "nowhere")
    entries = found(tmp_path / "in")
    assert list(contents(entries)) == ["in/own.json"]
    assert [entry.name for entry in entries if isinstance(entry, Ignored)] == [
        f"in/{name} (symbolic link)" for name in ("dead.json", "file.json", "folder", "loop")
    ]


def test_a_pipe_in_a_folder_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in" / "pipe.json")
    assert found(tmp_path / "in") == [Ignored("in/pipe.json")]


def test_archives_in_archives(tmp_path: Path) -> None:
    inner = zipped({"run.json": b"{}", "deep/a.json": DATA})
    root = tree(tmp_path / "in", {"o.zip": zipped({"mid/i.zip": inner, "b.jsonl.gz": gzip.compress(b"{}\n{}", mtime=0)})})
    assert contents(found(root)) == {
        "in/o.zip!b.jsonl.gz": b"{}\n{}",
        "in/o.zip!mid/i.zip!deep/a.json": DATA,
        "in/o.zip!mid/i.zip!run.json": b"{}",
    }
    paths = {entry.name: entry.path for entry in found(root) if isinstance(entry, InputFile)}
    archive = paths["in/o.zip!mid/i.zip!run.json"].parent
    assert archive in paths["in/o.zip!mid/i.zip!deep/a.json"].parents
    assert archive not in paths["in/o.zip!b.jsonl.gz"].parents
    assert paths["in/o.zip!b.jsonl.gz"].name == "b.jsonl"


def test_archives_are_opened_three_deep_and_no_deeper(tmp_path: Path) -> None:
    data = zipped({"a.json": DATA})
    for _ in range(2):
        data = zipped({"x.zip": data})
    assert list(contents(found(tree(tmp_path / "three", {"x.zip": data})))) == ["three/x.zip!x.zip!x.zip!a.json"]
    assert "archive inside 3 archives" in refusal(found(tree(tmp_path / "four", {"x.zip": zipped({"x.zip": data})})))


def test_many_archives_are_not_all_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(tmp_path / "in", {f"{number}.zip": zipped({"a.json": b"[%d]" % number, "b.json": DATA}) for number in range(9)})
    opened: list[str] = []
    original = inputs._opened
    monkeypatch.setattr(inputs, "_opened", lambda name, data: opened.append(name) or original(name, data))
    holders: list[Any] = []
    make = inputs._Archives
    monkeypatch.setattr(inputs, "_Archives", lambda: holders.append(make()) or holders[-1])
    assert [json.loads(data) for name, data in contents(found(root)).items() if name.endswith("a.json")] == [
        [n] for n in range(9)
    ]
    assert len(holders[0]._open) <= inputs.MAX_ARCHIVE_DEPTH
    assert len(opened) == 18  # once to list, once for both members: a member must not open its archive again


@pytest.mark.parametrize(
    "name", ["../../etc/x.json", "/etc/x.json", "..\\..\\etc\\x.json", "C:\\etc\\x.json", "a/../../../x.json"]
)
def test_members_that_name_a_place_outside_their_archive_are_refused(tmp_path: Path, name: str) -> None:
    root = tree(tmp_path / "in", {"run.json": b"{}", "z.zip": zipped({name: DATA, "good.json": DATA})})
    entries = [entry for entry in found(root) if not isinstance(entry, InputFile) or entry.path.name != "run.json"]
    assert {type(entry) for entry in entries} == {InputFile, Unreadable}
    (refused,) = [entry for entry in entries if isinstance(entry, Unreadable)]
    assert "outside its archive" in refused.reason and ".." not in refused.name


def test_a_member_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "z.zip"
    with zipfile.ZipFile(place, "w") as archive:
        link = zipfile.ZipInfo("agg_bmk.json")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    (entry,) = found(str(place))
    assert isinstance(entry, Unreadable) and "symbolic link" in entry.reason


def test_an_encrypted_member_is_said_to_be_one(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.json": DATA}))
    data[6] |= 1  # general purpose flag, bit 0, in the local header (APPNOTE 4.4.4) …
    data[data.index(b"PK\x01\x02") + 8] |= 1  # … and in the central directory
    assert "encrypted archive member" in refusal(found(tree(tmp_path / "in", {"z.zip": bytes(data)})))


@pytest.mark.parametrize("kept", [0, 1, 10, 30, 60, -1, -5])
def test_a_cut_archive_is_damaged(tmp_path: Path, kept: int) -> None:
    assert "damaged .zip" in refusal(found(tree(tmp_path / "in", {"z.zip": zipped({"a.json": DATA * 20})[:kept]})))


def test_a_damaged_member_does_not_cost_its_neighbours(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.json": DATA * 50, "b.json": DATA}, zipfile.ZIP_STORED))
    data[60] ^= 0xFF
    entries = [entry for entry in found(tree(tmp_path / "in", {"z.zip": bytes(data)})) if isinstance(entry, InputFile)]
    assert [entry.name for entry in entries] == ["in/z.zip!a.json", "in/z.zip!b.json"]
    assert "damaged archive member" in refusal(entries[:1])
    assert entries[1].read() == DATA


@settings(max_examples=either(50, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), value=st.integers(1, 255), place2=st.integers(0, 10_000), value2=st.integers(0, 255))
def test_no_damage_to_an_archive_is_a_crash(tmp_path: Path, place: int, value: int, place2: int, value2: int) -> None:
    data = bytearray(zipped({"a.json": DATA, "b.json.gz": gzip.compress(DATA, mtime=0), "c/d.zip": zipped({"e.json": DATA})}))
    data[place % len(data)] ^= value
    data[place2 % len(data)] ^= value2
    for entry in found(tree(tmp_path / "in", {"z.zip": bytes(data)})):
        if isinstance(entry, InputFile):
            try:
                assert isinstance(entry.read(), bytes)
            except InputError as refused:
                assert "fetch it again" in str(refused) or "encrypted" in str(refused)


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(DATA, mtime=0)[:-4],
        gzip.compress(DATA, mtime=0)[:12],
        b"",
        b"no gzip",
        gzip.compress(DATA, mtime=0) + b"tail",
    ],
)
def test_a_damaged_gz(tmp_path: Path, data: bytes) -> None:
    if data == b"":
        assert contents(found(tree(tmp_path / "in", {"a.json.gz": data}))) == {
            "in/a.json.gz": b""
        }  # an empty file, as gzip has it
    else:
        assert "damaged .gz" in refusal(found(tree(tmp_path / "in", {"a.json.gz": data})))


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.zip", "b.zip"])
def test_a_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(inputs, "MAX_FILE_BYTES", 2 * 1024**2)
    monkeypatch.setattr(inputs, "CHUNK", 64 * 1024)
    big = bytes(2 * 1024**2 + 1)
    data = {
        "a.json": big,
        "a.json.gz": gzip.compress(big, mtime=0),
        "a.zip": zipped({"a.json": big}),
        "b.zip": zipped({"c.zip": big}),
    }[name]
    assert "larger than 2 MiB; split it" in refusal(found(tree(tmp_path / "in", {name: data})))
    fitting = tree(tmp_path / "fits", {"a.json.gz": gzip.compress(bytes(2 * 1024**2))})
    assert len(contents(found(fitting))["fits/a.json.gz"]) == 2 * 1024**2


def test_a_lying_size_in_the_header_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILE_BYTES", 1024)
    data = bytearray(zipped({"a.json": bytes(100_000)}))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (16).to_bytes(4, "little")  # uncompressed size (APPNOTE 4.3.12)
    entries = found(tree(tmp_path / "in", {"z.zip": bytes(data)}))
    (entry,) = [entry for entry in entries if isinstance(entry, InputFile)]
    try:
        assert len(entry.read()) <= 1024
    except InputError as refused:
        assert "damaged" in str(refused) or "larger" in str(refused)


def test_an_archive_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_ARCHIVE_MEMBERS", 3)
    root = tree(tmp_path / "in", {"z.zip": zipped({f"{n}.json": DATA for n in range(4)})})
    assert refusal(found(root)) == "archive of 4 files; at most 3 are read"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(tmp_path / "in", {"a.json": DATA, "b.zip": zipped({"a.json": DATA})})
    entries = found(root / "a.json")

    def denied(self: Path, *args: Any, **kwargs: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert refusal(entries) == "a.json: cannot be read: Permission denied"
    assert refusal(found(root / "b.zip")) == "b.zip: cannot be read: Permission denied"
    monkeypatch.setattr(Path, "iterdir", denied)
    assert found(root) == [Unreadable("in", "folder cannot be listed: Permission denied")]


@pytest.mark.parametrize("path", ["nowhere", "x" * 5000, "a\0b", "", "file/below"])
def test_a_path_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tree(tmp_path, {"file": b"x"}))
    if path == "":
        assert contents(found(path)) == {}  # the present folder, whose only file is not looked at
        return
    with pytest.raises(InputError, match=r"no such file or folder|cannot be opened") as refused:
        found(path)
    assert len(str(refused.value)) < 300


def test_repositories_are_found_and_not_walked(tmp_path: Path) -> None:
    tree(
        tmp_path / "in",
        {
            "vllm/.git/config": b"",
            "vllm/a.json": DATA,
            "bare.git/HEAD": b"",
            "bare.git/objects/x": b"",
            "bare.git/refs/x": b"",
            "b.json": DATA,
        },
    )
    entries = found(tmp_path / "in")
    assert entries[1:] == [Repository(str(tmp_path / "in/bare.git"), "bare.git"), Repository(str(tmp_path / "in/vllm"), "vllm")]
    assert list(contents(entries)) == ["in/b.json"]
    assert found(tmp_path / "in" / "vllm") == [Repository(str(tmp_path / "in/vllm"), "vllm")]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.invalid/team/vllm.git", "vllm"),
        ("git@example.invalid:team/sglang.git", "sglang"),
        ("https://example.invalid/team/atom/", "atom"),
    ],
)
def test_urls_are_repositories(url: str, name: str) -> None:
    assert found(url) == [Repository(url, name)]


def test_a_named_file_comes_with_the_run_beside_it(tmp_path: Path) -> None:
    root = tree(tmp_path / "in", {"a.bin": DATA, "run.json": b"{}", "z.zip": zipped({"b.json": DATA})})
    beside, named = found(root / "a.bin")
    assert isinstance(named, InputFile)
    assert isinstance(beside, InputFile)
    assert (named.name, named.named, beside.name, beside.named) == ("a.bin", True, "run.json", False)
    assert named.path.parent == beside.path.parent
    assert list(contents(found(root / "z.zip"))) == ["run.json", "z.zip!b.json"]
    assert len(found(root / "run.json")) == 1


def test_a_named_link_belongs_to_the_folder_where_it_stands(tmp_path: Path) -> None:
    tree(tmp_path, {"real/a.json": DATA, "here/run.json": b"{}"})
    (tmp_path / "here" / "link.json").symlink_to(tmp_path / "real" / "a.json")
    beside, named = found(tmp_path / "here" / "link.json")
    assert isinstance(named, InputFile)
    assert isinstance(beside, InputFile)
    assert named.path.parent == beside.path.parent
    assert named.read() == DATA


def test_two_folders_called_alike_are_two_places(tmp_path: Path) -> None:
    tree(tmp_path, {"x/results/run.json": b"1", "y/results/run.json": b"2"})
    one, other = found(tmp_path / "x/results", tmp_path / "y/results")
    assert isinstance(one, InputFile)
    assert isinstance(other, InputFile)
    assert one.name == other.name == "results/run.json"
    assert one.path != other.path


def test_the_same_folder_by_two_spellings_is_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path / "in", {"a.json": DATA})
    monkeypatch.chdir(tmp_path / "in")
    paths = {entry.path for entry in found(".", str(tmp_path / "in"), "../in", "a.json") if isinstance(entry, InputFile)}
    assert len(paths) == 1


def test_a_checkout_that_is_no_upstream_project_is_a_folder_of_files(tmp_path: Path) -> None:
    tree(
        tmp_path / "in", {"results/.git/config.json": DATA, "results/a.json": DATA, "vllm/.git/config": b"", "vllm/b.json": DATA}
    )
    entries = list(find_inputs((str(tmp_path / "in"),), lambda name: name == "vllm"))
    assert [entry.name for entry in entries] == ["in/results/a.json", "vllm"]
    assert isinstance(entries[1], Repository)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        found(tmp_path / "pipe.json")
    assert found(tmp_path) == [Ignored(f"{tmp_path.name}/pipe.json")]


def test_a_damaged_member_of_any_compression(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("a.json", DATA * 50)
        data = bytearray(buffer.getvalue())
        for place in range(40, 80):
            data[place] ^= 0xFF
        (tmp_path / "x.zip").write_bytes(bytes(data))
        for entry in found(tmp_path / "x.zip"):
            if isinstance(entry, InputFile):
                with pytest.raises(InputError):
                    entry.read()


def test_folders_without_end_are_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "in"
    for _ in range(70):
        place = place / "d"
    place.mkdir(parents=True)
    (place / "a.json").write_bytes(DATA)
    entries = found(tmp_path / "in")
    assert [type(entry) for entry in entries] == [Unreadable]
