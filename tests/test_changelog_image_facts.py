"""What registries say of images, as facts: labels, a second asking, a tag that moved, what is unknown for now."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from changelog.facts import UpstreamFact
from changelog.image_facts import Unresolved, nightly_references, references, resolve_images
from changelog.image_labels import told_by
from changelog.registry import Registry
from changelog.tables import read_table
from changelog.web import Web
from tests.servers.http import Reply
from tests.servers.registry import Running, running
from warehouse.events import ImageResolved, Source, event_of
from warehouse.image import parse
from warehouse.log import EventLog
from warehouse.schemas import BUILDS, IMAGES
from warehouse.store import Store

NOW = datetime(2026, 3, 1, tzinfo=UTC)
COMMIT = "275de34170654274616082721348b7edd9741d32"
OTHER = "439368496db48d8f992ba8c606a0c0b1eebbfa69"


@pytest.fixture
def local() -> Iterator[Running]:
    with running() as servers:
        yield servers


def config(labels: dict[str, str] | None = None, *variables: str) -> dict[str, Any]:
    return {
        "os": "linux",
        "architecture": "amd64",
        "created": "2026-01-02T03:04:05.123456789Z",
        "config": {"Labels": labels or {}, "Env": list(variables)},
    }


class Night:
    """A warehouse whose images are asked for, a day later each time."""

    def __init__(self, folder: Path) -> None:
        self.log = EventLog(Store(str(folder / "warehouse")))
        self.registry = Registry(Web(folder / "cache", pause=lambda _seconds: None), {})
        self.day = 0

    def ask(self, *names: str) -> list[UpstreamFact | Unresolved]:
        self.day += 1
        when = NOW + timedelta(days=self.day)
        known = read_table(self.log, "images")
        found = list(resolve_images(self.registry, names, known, when, lambda _step: None))
        facts = [fact for fact in found if isinstance(fact, UpstreamFact)]
        self.log.append(
            event_of(fact.payload, occurred_at=when, recorded_at=when, source=Source(name="registry")) for fact in facts
        )
        return found


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def test_a_registry_is_believed_once(local: Running, night: Night) -> None:
    """The labels of the vLLM image give its commit; asked again nothing is said; moved it is a second fact."""
    image = local.ref("vllm/vllm-openai", "v1")
    amd = local.content.image(config({"ai.vllm.build.commit": COMMIT}))
    arm = local.content.image({**config({"ai.vllm.build.commit": COMMIT}), "architecture": "arm64"})
    local.content.tag("vllm/vllm-openai", "v1", local.content.index(linux_amd64=amd, linux_arm64=arm))
    assert len(night.ask(image)) == 2
    assert night.ask(image, image) == []
    asked = len(local.registry.paths("GET"))
    assert night.ask(image) == [] and len(local.registry.paths("GET")) == asked, "a HEAD is enough"
    local.content.tag("vllm/vllm-openai", "v1", local.content.index(linux_amd64=amd))
    assert len(night.ask(image)) == 1
    table = read_table(night.log, "images")
    assert table.schema == IMAGES.schema and table["image_digest"].n_unique() == 2
    assert table["seen_at"].unique().sort().to_list() == [NOW + timedelta(days=1), NOW + timedelta(days=4)]
    assert table["created"].unique().to_list() == [datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)]


def test_a_tag_that_goes_back_is_a_third_fact(local: Running, night: Night) -> None:
    image, first = local.ref("a/b", "v1"), local.content.image(config({"org.opencontainers.image.revision": COMMIT}))
    second = local.content.image(config({"org.opencontainers.image.revision": OTHER}))
    for one in (first, second, first):
        local.content.tag("a/b", "v1", one)
        assert len(night.ask(image)) == 1
    assert read_table(night.log, "images").sort("seen_at")["image_digest"].to_list() == [first, second, first]


def test_without_heads_the_bytes_tell(local: Running, night: Night) -> None:
    local.content.heads = False
    image, one = local.ref("a/b", "v1"), local.content.image(config())
    local.content.tag("a/b", "v1", one)
    assert len(night.ask(image)) == 1 and night.ask(image) == []


def test_a_pinned_image_is_asked_for_once(local: Running, night: Night) -> None:
    one = local.content.image(config())
    image = f"{local.registry.host}/a/b:v1@{one}"
    assert len(night.ask(image)) == 1
    asked = len(local.registry.asked)
    assert night.ask(image) == [] and len(local.registry.asked) == asked


def test_what_cannot_be_had_is_told_and_the_rest_goes_on(local: Running, night: Night) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    found = night.ask(local.ref("a/b", "gone"), "not an image", local.ref("a/b", "v1"))
    assert [type(one) for one in found] == [Unresolved, Unresolved, UpstreamFact]
    gone, wrong = (one for one in found if isinstance(one, Unresolved))
    assert (gone.temporary, wrong.temporary) == (False, False) and "404" in gone.why
    local.content.private = True
    local.content.tokens = {"unheard-of"}
    (refused,) = night.ask(local.ref("a/b", "v1"))
    assert isinstance(refused, Unresolved) and refused.temporary
    assert read_table(night.log, "images").height == 1, "what is unknown for now takes nothing away"


VLLM, SGLANG = "vllm/vllm-openai:v1", "lmsysorg/sglang:v1"
TRTLLM, DYNAMO = "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc2", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.1"
OWN, REVISION, VERSION = "ai.vllm.build.commit", "org.opencontainers.image.revision", "org.opencontainers.image.version"
ELSEWHERE = {"org.opencontainers.image.source": "https://github.com/vllm-project/vllm"}
TRT = (f"TRT_LLM_GIT_COMMIT={COMMIT}", "TRT_LLM_VERSION=1.2.0rc2")


@pytest.mark.parametrize(
    ("image", "labels", "variables", "commit", "source", "version"),
    [
        (VLLM, {OWN: COMMIT, REVISION: OTHER}, (), COMMIT, OWN, None),
        (VLLM, {REVISION: OTHER}, (f"VLLM_BUILD_COMMIT={COMMIT}",), COMMIT, "VLLM_BUILD_COMMIT", None),
        (VLLM, {REVISION: OTHER}, (), OTHER, REVISION, None),
        (VLLM, {OWN: "unknown"}, ("VLLM_BUILD_COMMIT=",), None, None, None),
        (VLLM, {OWN: "0" * 40}, (), None, None, None),
        (VLLM, {OWN: f"{COMMIT}-dirty"}, (), None, None, None),
        (VLLM, {"ai.sglang.build.commit": COMMIT}, (), None, None, None),
        (VLLM, {VERSION: "v0.21.0", **ELSEWHERE}, (), None, None, "0.21.0"),
        (VLLM, {VERSION: "v0.21.0"}, (), None, None, None),
        (VLLM, {VERSION: "22.04", "org.opencontainers.image.ref.name": "ubuntu"}, (), None, None, None),
        (VLLM, {VERSION: "22.04", REVISION: OTHER, "org.opencontainers.image.ref.name": "ubuntu"}, (), None, None, None),
        (VLLM, {VERSION: "22.04", "org.opencontainers.image.ref.name": "ubuntu", **ELSEWHERE}, (), None, None, None),
        (
            VLLM,
            {VERSION: "22.04", REVISION: OTHER, "org.opencontainers.image.source": "https://example.org/base"},
            (),
            None,
            None,
            None,
        ),
        (VLLM, {VERSION: "nightly-abc"}, (), None, None, None),
        (TRTLLM, {}, TRT, COMMIT, "TRT_LLM_GIT_COMMIT", "1.2.0rc2"),
        (DYNAMO, {REVISION: OTHER}, (), None, None, None),
        (SGLANG, {REVISION: OTHER, **ELSEWHERE}, (), None, None, None),
    ],
)
def test_what_labels_and_variables_tell(
    image: str, labels: dict[str, str], variables: tuple[str, ...], commit: str | None, source: str | None, version: str | None
) -> None:
    told = told_by(config(labels, *variables), parse(image))
    assert (told.commit, told.commit_source, told.version) == (commit, source, version)


def test_secrets_in_the_environment_are_not_kept() -> None:
    told = told_by(config({"maintainer": "x"}, "HF_TOKEN=hidden", "CUDA_VERSION=12.9.1", "NCCL_VERSION=2.27"), parse("a/b:c"))
    assert [(label.name, label.value) for label in told.labels] == [("CUDA_VERSION", "12.9.1"), ("NCCL_VERSION", "2.27")]


@pytest.mark.parametrize(
    "odd", [{}, {"config": None}, {"config": {"Env": "x", "Labels": []}}, {"config": {"Env": [1, None], "Labels": {"a": 1}}}]
)
def test_odd_configurations_tell_nothing(odd: dict[str, Any]) -> None:
    told = told_by(odd, parse("vllm/vllm-openai:v1"))
    assert (told.commit, told.version, told.labels) == (None, None, ())


def test_an_image_of_the_beginning_of_time_has_no_date(local: Running, night: Night) -> None:
    local.content.tag("a/b", "v1", local.content.image({**config(), "created": "1970-01-01T00:00:00Z"}))
    (fact,) = night.ask(local.ref("a/b", "v1"))
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, ImageResolved) and fact.payload.created is None


def test_builds_are_asked_for_newest_first() -> None:
    def build(ref: str | None, day: int) -> dict[str, Any]:
        return {"build_id": f"{ref}{day}", "image_ref": ref, "last_measured_at": NOW + timedelta(days=day)}

    rows = [build("a:1", 1), build("b:1", 3), build(None, 9), build("a:1", 2), build("c:1", 3)]
    frame = pl.concat([BUILDS.schema.to_frame(), pl.DataFrame(rows, schema_overrides=BUILDS.schema)], how="diagonal")
    assert references(frame) == ["b:1", "c:1", "a:1"]
    assert references(frame, 1) == ["b:1"]


def test_nightly_images_are_listed(local: Running, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tags that tell a commit: `nightly` alone moves."""
    from changelog import nightly

    here: Iterable[Any] = (nightly.Nightly("vllm/vllm-openai", "nightly-{commit}", ("nvidia",), 14),)
    monkeypatch.setattr("changelog.image_facts.nightlies", lambda _project: here)
    monkeypatch.setattr("changelog.registry.HUB", local.registry.host)
    one = local.content.image(config())
    for tag in (f"nightly-{COMMIT}", "nightly", "v0.1.0", f"nightly-{OTHER}", "nightly-dev"):
        local.content.tag("vllm/vllm-openai", tag, one)
    assert list(nightly_references(night.registry, "vllm")) == [
        f"vllm/vllm-openai:nightly-{COMMIT}",
        f"vllm/vllm-openai:nightly-{OTHER}",
    ]


def test_a_host_that_is_away_is_asked_once_for_all_its_images(night: Night) -> None:
    with running() as servers:
        names = [servers.ref("a/b", f"v{number}") for number in range(20)]
    waits: list[float] = []
    night.registry = Registry(Web(pause=waits.append), {})
    found = night.ask(*names)
    assert len(found) == 20 and all(isinstance(one, Unresolved) and one.temporary for one in found)
    assert len(waits) == 4, "one question with its retries"


def test_a_host_that_wants_rest_is_left_alone(local: Running, night: Night) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    local.content.tag("a/b", "v2", local.content.image(config({"a": "b"})))
    assert len(night.ask(local.ref("a/b", "v1"))) == 1
    local.content.faults = [Reply(429, headers={"Retry-After": "3600"})]
    asked = len(local.registry.asked)
    found = night.ask(local.ref("a/b", "v1"), local.ref("a/b", "v2"))
    assert [isinstance(one, Unresolved) and one.temporary and "rate limited" in one.why for one in found] == [True, True]
    assert len(local.registry.asked) == asked + 1


def test_a_registry_that_lies_about_a_digest_is_told_of(local: Running, night: Night) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", one)
    local.content.told_digest = "sha256:" + "0" * 64
    told: list[str] = []
    known = read_table(night.log, "images")
    (fact,) = resolve_images(night.registry, [local.ref("a/b", "v1")], known, NOW, told.append)
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, ImageResolved) and fact.payload.image_digest == one
    assert any(one in line and "0" * 64 in line for line in told)


@pytest.mark.parametrize(
    ("revision", "commit"),
    [
        (COMMIT.upper(), COMMIT),
        (COMMIT[:7], COMMIT[:7]),
        ("20260118", None),
        ("202601181200", None),
        ("2026011812", "2026011812"),
        (COMMIT + "0", None),
        ("main", None),
        ("dirty", None),
    ],
)
def test_what_a_commit_looks_like(revision: str, commit: str | None) -> None:
    """A day is no commit; ten digits are no day, and can be a hash."""
    assert told_by(config({"org.opencontainers.image.revision": revision}), parse("vllm/vllm-openai:v1")).commit == commit


@pytest.mark.parametrize("secret", ["me:hidden", "hidden", "x-access-token:hidden" + "0" * 3000])
def test_credentials_in_an_address_are_not_kept(secret: str) -> None:
    source = f"https://{secret}@github.com/vllm-project/vllm"
    (label,) = told_by(config({"org.opencontainers.image.source": source}), parse("a/b:c")).labels
    assert label.value == "https://github.com/vllm-project/vllm"
