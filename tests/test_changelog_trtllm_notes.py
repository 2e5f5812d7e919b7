"""TensorRT-LLM's document of release notes: sections, dependencies, and that it is recognised by its content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from changelog.facts import MAX_NOTES, UpstreamFact
from changelog.files import recognise
from changelog.trtllm_notes import is_notes, note_facts
from warehouse.events import DependencyPinned, ReleasePublished

DOCUMENT = """(release-notes)=

# Release Notes

Everything here was tried.

## TensorRT-LLM Release Next

- Not yet.

## TensorRT-LLM Release 9.2

### Highlights

- **Features**
  - Made a thing faster

- **Infrastructure Changes**

  - The base Docker image for TensorRT-LLM is updated to `registry.example/nvidia/pytorch:26.01-py3`.
  - The base Docker image for TensorRT-LLM Backend is updated to `registry.example/nvidia/tritonserver:26.01-py3`.
  - The dependent public PyTorch version is updated to 2.11.0.
  - The dependent triton version is updated to 3.6.1.
  - The dependent NIXL version is updated to 0.9.0.

### API Changes
- **BREAKING CHANGE** Update PyTorch to 1.0.0 in the examples

## TensorRT-LLM Release 0.91.0

### Infrastructure Changes
- The dependent NCCL version is maintained at 2.25.1
- The dependent CUDA version is updated to 12.3.2 (a.k.a. 12.3 Update 2)
- The dependent ModelOpt version is updated to v0.15.0.
- The dependent otherthing version is updated to 7.1.
- The wheel is linked against PyTorch 2.7.0 now
# Another document
- The dependent NIXL version is updated to 9.9.9.
"""


def told(text: str) -> tuple[list[ReleasePublished], dict[str, dict[str, str]]]:
    releases: list[ReleasePublished] = []
    carried: dict[str, dict[str, str]] = {}
    for fact in note_facts(text):
        if isinstance(fact.payload, ReleasePublished):
            releases.append(fact.payload)
            carried[fact.payload.version] = {}
        elif isinstance(fact.payload, DependencyPinned):
            assert fact.payload.evidence == "release notes"
            carried[fact.payload.version][fact.payload.dependency] = fact.payload.dependency_version
    return releases, carried


def test_one_release_a_section_with_its_text() -> None:
    releases, _ = told(DOCUMENT)
    assert [(one.project, one.version, one.evidence, one.title) for one in releases] == [
        ("trtllm", "9.2.0", "release-note", "TensorRT-LLM Release 9.2"),
        ("trtllm", "0.91.0", "release-note", "TensorRT-LLM Release 0.91.0"),
    ]
    first, second = (one.notes or "" for one in releases)
    assert first.startswith("### Highlights") and first.endswith("in the examples")
    assert second.endswith("PyTorch 2.7.0 now")


def test_what_a_release_carries_stands_under_infrastructure() -> None:
    _, carried = told(DOCUMENT)
    assert carried == {
        "9.2.0": {
            "registry.example/nvidia/pytorch": "26.01-py3",
            "registry.example/nvidia/tritonserver": "26.01-py3",
            "torch": "2.11.0",
            "triton": "3.6.1",
            "nixl": "0.9.0",
        },
        "0.91.0": {"nccl": "2.25.1", "cuda": "12.3.2", "modelopt": "0.15.0", "otherthing": "7.1"},
    }


def test_the_document_is_recognised_by_its_content() -> None:
    reader = recognise(DOCUMENT.encode())
    assert reader is not None and reader.name == "trtllm-release-notes"
    assert list(reader.read("anything.md", DOCUMENT.encode())) == list(note_facts(DOCUMENT))
    assert recognise(b"# Release Notes\n\n## vLLM Release 1.2\n") is None
    assert recognise(b"") is None


def test_a_document_without_line_feeds_or_with_windows_ones() -> None:
    assert [one.version for one in told(DOCUMENT.replace("\n", "\r\n"))[0]] == ["9.2.0", "0.91.0"]
    assert told(DOCUMENT.replace("\n", "\r\n"))[1] == told(DOCUMENT)[1]
    assert told(DOCUMENT.replace("\n", " "))[0] == []


def test_a_section_without_end_is_cut_at_the_length_of_a_note() -> None:
    (release,) = told("## TensorRT-LLM Release 1.0\n" + "x " * MAX_NOTES)[0]
    assert len(release.notes or "") == MAX_NOTES


@given(
    st.text()
    | st.text(alphabet="# \nTensorRT-LLMRelease1.0*-", max_size=300).map(lambda text: f"## TensorRT-LLM Release 1.0\n{text}")
)
def test_no_text_breaks_the_reading(text: str) -> None:
    is_notes(text)
    assert all(isinstance(fact, UpstreamFact) for fact in note_facts(text))
