"""Uploads from a package index, against one on loopback that speaks PEP 691; and that they are the facts of a saved list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog import package_index
from changelog.facts import UpstreamFact, UpstreamFault
from changelog.files import recognise
from changelog.web import Web, WebError
from tests.servers.package_index import PackageIndex
from warehouse.errors import InputError
from warehouse.events import ReleasePublished

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "upstream"


def file(name: str, when: str | None, yanked: Any = False) -> dict[str, Any]:
    entry = {"filename": name, "url": f"https://files.example/{name}", "hashes": {}, "yanked": yanked}
    return entry | ({"upload-time": when} if when else {})


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with PackageIndex() as running:
        monkeypatch.setenv(package_index.VARIABLE, running.address.rstrip("/"))
        yield running


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(tmp_path / "cache", pause=lambda _seconds: None)


def read(web: Web, owner: str, since: datetime | None = None) -> tuple[list[ReleasePublished], list[str]]:
    told = list(package_index.uploads(web, owner, since=since))
    payloads = [one.payload for one in told if isinstance(one, UpstreamFact) and isinstance(one.payload, ReleasePublished)]
    return payloads, [one.reason for one in told if isinstance(one, UpstreamFault)]


def test_the_first_file_of_a_version_counts(index: PackageIndex, web: Web) -> None:
    index.packages["vllm"] = [
        file("vllm-0.12.0-cp38-abi3-manylinux1_x86_64.whl", "2025-12-03T09:10:00.5Z"),
        file("vllm-0.12.0.tar.gz", "2025-12-03T09:09:00Z"),
        file("vllm-0.12.0-cp38-abi3-manylinux2014_aarch64.whl", "2025-12-05T00:00:00Z"),
        file("vllm-0.11.2.tar.gz", "2025-11-20T07:31:24Z"),
    ]
    assert read(web, "vllm") == (
        [
            ReleasePublished(project="vllm", version="0.11.2", published_at="2025-11-20T07:31:24Z", evidence="upload"),
            ReleasePublished(project="vllm", version="0.12.0", published_at="2025-12-03T09:09:00Z", evidence="upload"),
        ],
        [],
    )
    assert index.asked == ["/simple/vllm/"]


def test_a_version_is_yanked_where_all_of_its_files_are(index: PackageIndex, web: Web) -> None:
    """A reason may be empty."""
    day = "2025-12-03T09:10:00Z"
    index.packages["tensorrt-llm"] = [
        file("tensorrt_llm-0.17.0.tar.gz", day, yanked=""),
        file("tensorrt_llm-0.18.0.tar.gz", day, yanked="broken"),
        file("tensorrt_llm-0.18.0-cp310-cp310-linux_x86_64.whl", day),
        file("tensorrt_llm-1.2.0rc2.post1.tar.gz", day, yanked=True),
    ]
    payloads, faults = read(web, "trtllm")
    assert [(one.version, one.title) for one in payloads] == [
        ("0.17.0", "yanked"),
        ("0.18.0", None),
        ("1.2.0rc2.post1", "yanked"),
    ]
    assert faults == []


def test_the_facts_are_those_of_a_saved_upload_list(index: PackageIndex, web: Web) -> None:
    saved = [
        {"version": "0.2.1", "first_upload": "2023-10-16T20:39:33.515189+00:00", "yanked": True},
        {"version": "0.12.0", "first_upload": "2025-12-03T09:10:00+00:00", "yanked": False},
    ]
    data = json.dumps(saved).encode()
    reader = recognise(data)
    assert reader is not None
    index.packages["vllm"] = [
        file("vllm-0.2.1.tar.gz", "2023-10-16T20:39:33.515189Z", yanked="a bug"),
        file("vllm-0.12.0.tar.gz", "2025-12-03T09:10:00Z"),
    ]
    fetched = list(package_index.uploads(web, "vllm"))
    assert [one._replace(position="") for one in fetched] == [one._replace(position="") for one in reader.read("vllm.json", data)]


def test_every_real_version_is_the_fact_that_a_saved_list_gives(index: PackageIndex, web: Web) -> None:
    """417 versions of three packages, one of them uploaded before it was yanked with an empty reason."""
    if not DATA.exists():
        pytest.skip(f"{DATA} is absent")
    for owner, package in (("vllm", "vllm"), ("sglang", "sglang"), ("trtllm", "tensorrt-llm")):
        data = (DATA / f"pypi_{package}_releases.json").read_bytes()
        index.packages[package] = [
            file(
                f"{package.replace('-', '_')}-{one['version']}.tar.gz",
                one["first_upload"],
                one["yanked_reason"] if one["yanked"] else False,
            )
            for one in json.loads(data)
        ]
        reader = recognise(data)
        assert reader is not None
        saved = {
            one.payload.body()["version"]: one.payload for one in reader.read("x", data, owner) if isinstance(one, UpstreamFact)
        }
        fetched = {one.version: one for one in read(web, owner)[0]}
        assert fetched == saved and len(fetched) > 100


def test_files_that_cannot_be_read_are_faults(index: PackageIndex, web: Web) -> None:
    index.packages["sglang"] = [
        file("sglang-0.5.6.tar.gz", None),
        file("sglang-0.5.6.exe", "2025-12-03T09:10:00Z"),
        file("sgl_kernel-0.3.18.tar.gz", "2025-12-03T09:10:00Z"),
        file("sglang-0.5.5.tar.gz", "soon"),
        {"yanked": False},
        None,
        file("sglang-0.5.7-py3-none-any.whl", "2026-01-01T00:00:00Z"),
    ]
    payloads, faults = read(web, "sglang")
    assert [one.version for one in payloads] == ["0.5.7"]
    assert len(faults) == 6 and "upload-time" in faults[0] and "is not of sglang" in faults[2]


def test_since_is_of_the_first_upload(index: PackageIndex, web: Web) -> None:
    index.packages["vllm"] = [
        file("vllm-0.11.2.tar.gz", "2025-11-20T00:00:00Z"),
        file("vllm-0.11.2-py3-none-any.whl", "2025-12-20T00:00:00Z"),
        file("vllm-0.12.0.tar.gz", "2025-12-03T00:00:00Z"),
    ]
    assert [one.version for one in read(web, "vllm", datetime(2025, 12, 1, tzinfo=UTC))[0]] == ["0.12.0"]


def test_an_index_without_the_json_form_is_refused_with_what_to_do(index: PackageIndex, web: Web) -> None:
    index.packages["vllm"], index.speaks_json = [], False
    with pytest.raises(WebError, match="not JSON"):
        list(package_index.uploads(web, "vllm"))


def test_a_package_that_is_not_there(index: PackageIndex, web: Web) -> None:
    with pytest.raises(WebError) as error:
        list(package_index.uploads(web, "vllm"))
    assert error.value.status == 404
    assert list(package_index.uploads(web, "atom")) == []


def test_the_index_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(package_index.VARIABLE, "https://index.example/simple")
    assert package_index.index() == "https://index.example/simple/"
    monkeypatch.setenv(package_index.VARIABLE, "file:///etc")
    with pytest.raises(InputError, match=package_index.VARIABLE):
        package_index.index()
    monkeypatch.delenv(package_index.VARIABLE)
    assert package_index.index() == "https://pypi.org/simple/"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["filename", "upload-time", "yanked"]), inner),
    max_leaves=6,
)


@given(page=_ANY | st.fixed_dictionaries({"files": st.lists(_ANY, max_size=4)}))
def test_no_page_of_a_stranger_breaks_the_reading(page: Any) -> None:
    for told in package_index._files("vllm", page):
        assert isinstance(told, UpstreamFault) or told.version


@pytest.mark.parametrize("name", [f"vllm-{'9' * 4301}.tar.gz", f"vllm-{'9' * 390}.tar.gz", "vllm-1.tar.gz" + "x" * 500])
def test_a_name_without_measure_costs_no_other_file(index: PackageIndex, web: Web, name: str) -> None:
    index.packages["vllm"] = [file(name, "2026-01-01T00:00:00Z"), file("vllm-1.0.tar.gz", "2026-01-02T00:00:00Z")]
    found, _faults = read(web, "vllm")
    assert "1.0" in [one.version for one in found]
