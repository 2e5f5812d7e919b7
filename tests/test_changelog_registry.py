"""The registry client against a registry that speaks the protocol: tokens, indexes, digests, blobs elsewhere, faults."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.registry import ACCEPT, Registry, challenge, place_of
from changelog.web import Web, WebError
from tests.lengths import either
from tests.servers.http import Reply, serving
from tests.servers.registry import DOCKER_LIST, DOCKER_MANIFEST, TOKEN, Running, digest, running


@pytest.fixture
def local() -> Iterator[Running]:
    with running() as servers:
        yield servers


def registry(tmp_path: Path, **named: Any) -> Registry:
    return Registry(Web(tmp_path / "cache", pause=lambda _seconds: None), named.get("environment", {}))


def config(**labels: str) -> dict[str, Any]:
    return {"os": "linux", "architecture": "amd64", "created": "2026-01-02T03:04:05Z", "config": {"Labels": labels}}


def test_an_index_gives_its_own_digest_and_those_of_its_platforms(local: Running, tmp_path: Path) -> None:
    amd, arm = local.content.image(config(a="1")), local.content.image({**config(a="2"), "architecture": "arm64"})
    proof = local.content.image({"architecture": "unknown", "os": "unknown"})
    index = local.content.index(linux_amd64=amd, linux_arm64_v8=arm, unknown_unknown=proof)
    local.content.tag("vllm/vllm-openai", "v1", index)
    found = registry(tmp_path).resolve(local.ref("vllm/vllm-openai", "v1"))
    assert found.digest == index == digest(local.content.manifests[index][1])
    assert [(one.platform, one.manifest_digest) for one in found.platforms] == [("linux/amd64", amd), ("linux/arm64/v8", arm)]
    assert found.platforms[0].config["config"]["Labels"] == {"a": "1"}
    assert found.platforms[0].config_digest in local.content.blobs
    assert found.notes == ()


@pytest.mark.parametrize("media_type", [DOCKER_LIST])
def test_dockers_own_types_mean_the_same(local: Running, tmp_path: Path, media_type: str) -> None:
    one = local.content.image(config(), DOCKER_MANIFEST)
    index = local.content.index(media_type, linux_amd64=one)
    local.content.tag("a/b", "v1", index)
    local.content.tag("a/b", "alone", one)
    found = registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert (found.digest, found.media_type, found.platforms[0].manifest_digest) == (index, DOCKER_LIST, one)
    alone = registry(tmp_path).resolve(local.ref("a/b", "alone"))
    assert (alone.digest, alone.media_type, alone.platforms[0].platform) == (one, DOCKER_MANIFEST, "linux/amd64")


def test_all_four_types_are_asked_for(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "v1", local.content.index(linux_amd64=local.content.image(config())))
    registry(tmp_path).resolve(local.ref("a/b", "v1"))
    asked = [one for one in local.registry.asked if "/manifests/" in one.path]
    assert asked and all(set(one.headers["accept"].split(", ")) == set(ACCEPT) for one in asked)
    assert len(set(ACCEPT)) == 4


def test_a_token_is_fetched_once_and_again_when_it_has_run_out(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    client = registry(tmp_path)
    client.resolve(local.ref("a/b", "v1"))
    client.resolve(local.ref("a/b", "v1"))
    assert local.content.given == 1
    local.content.tokens = {"another-token"}
    client.resolve(local.ref("a/b", "v1"))
    assert local.content.given == 2
    assert local.tokens.asked[0].query == {"service": "local", "scope": "repository:a/b:pull"}


def test_the_token_goes_to_no_other_host(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert local.blobs.asked and all("authorization" not in one.headers for one in local.blobs.asked)
    assert all(TOKEN not in file.read_text("latin-1") for file in (tmp_path / "cache").rglob("*") if file.is_file())


def test_access_refused_is_unknown_for_now_and_not_absent(local: Running, tmp_path: Path) -> None:
    local.content.private = True
    with pytest.raises(WebError, match="refused") as caught:
        registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert caught.value.temporary and caught.value.status == 401


def test_a_token_that_does_not_help_is_unknown_for_now(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    client = registry(tmp_path)
    client.resolve(local.ref("a/b", "v1"))
    local.content.private = True
    local.content.tokens = {"unheard-of"}
    with pytest.raises(WebError) as caught:
        client.resolve(local.ref("a/b", "v1"))
    assert caught.value.temporary


def test_what_is_not_there_is_said_to_be_so(local: Running, tmp_path: Path) -> None:
    with pytest.raises(WebError, match="404 \\(not there\\)") as caught:
        registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert not caught.value.temporary and caught.value.status == 404


@pytest.mark.parametrize("fault", [Reply(429, headers={"Retry-After": "1"}), Reply(503), Reply(200, b'{"a"', length=500)])
def test_faults_that_pass_are_waited_for(local: Running, tmp_path: Path, fault: Reply) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", one)
    local.content.faults = [fault]
    assert registry(tmp_path).resolve(local.ref("a/b", "v1")).digest == one


def test_a_long_limit_is_not_waited_for(local: Running, tmp_path: Path) -> None:
    local.content.faults = [Reply(429, headers={"Retry-After": "3600"})]
    with pytest.raises(WebError, match="rate limited until") as caught:
        registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert caught.value.temporary and caught.value.retry_at is not None


def test_bytes_that_are_not_what_was_pinned_are_refused(local: Running, tmp_path: Path) -> None:
    one = local.content.image(config())
    media_type, body = local.content.manifests[one]
    local.content.manifests[one] = (media_type, body + b" ")
    with pytest.raises(WebError, match="other bytes came"):
        registry(tmp_path).resolve(f"{local.registry.host}/a/b@{one}")
    blob = next(iter(local.content.blobs))
    local.content.manifests[one] = (media_type, body)
    local.content.blobs[blob] += b" "
    with pytest.raises(WebError, match="its configuration"):
        registry(tmp_path).resolve(f"{local.registry.host}/a/b@{one}")


@pytest.mark.parametrize("told", [None, "sha256:" + "0" * 64, "rubbish"])
def test_the_header_is_not_believed(local: Running, tmp_path: Path, told: str | None) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", one)
    local.content.told_digest = told
    found = registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert found.digest == one
    assert len(found.notes) == (0 if told is None else 1)


def test_a_digest_is_asked_for_without_the_manifest(local: Running, tmp_path: Path) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", one)
    assert registry(tmp_path).digest(local.ref("a/b", "v1")) == one
    assert "GET" not in {asked.method for asked in local.registry.asked}
    local.content.heads = False
    assert registry(tmp_path).digest(local.ref("a/b", "v1")) is None


def test_tags_are_listed_page_by_page(local: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changelog.registry.TAGS_A_PAGE", 3)
    one = local.content.image(config())
    for number in range(10):
        local.content.tag("a/b", f"t{number}", one)
    assert list(registry(tmp_path).tags(f"{local.registry.host}/a/b")) == [f"t{number}" for number in range(10)]
    assert len(local.registry.paths()) == 5, "one refused, then four pages"


def test_credentials_go_to_the_one_host_that_they_are_for(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    secret = {"SHIFTLOG_REGISTRY_USER": "me", "SHIFTLOG_REGISTRY_PASSWORD": "hidden"}
    registry(tmp_path, environment={**secret, "SHIFTLOG_REGISTRY_HOST": "elsewhere"}).resolve(local.ref("a/b", "v1"))
    assert all("authorization" not in asked.headers for asked in local.tokens.asked)
    registry(tmp_path, environment={**secret, "SHIFTLOG_REGISTRY_HOST": local.registry.host}).resolve(local.ref("a/b", "v1"))
    assert local.tokens.asked[-1].headers["authorization"] == "Basic bWU6aGlkZGVu"


def test_a_realm_in_the_clear_is_not_asked_by_a_registry_behind_tls() -> None:
    from changelog.registry import _may_ask

    assert _may_ask("https://auth.example/token", "https://registry.example/v2/")
    assert not _may_ask("http://auth.example/token", "https://registry.example/v2/")
    assert not _may_ask("http://127.0.0.1/token", "https://registry.example/v2/")
    assert not _may_ask("http://auth.example/token", "http://127.0.0.1/v2/")
    assert _may_ask("http://127.0.0.1:1/token", "http://localhost/v2/")
    assert not _may_ask("file:///etc/passwd", "http://127.0.0.1/v2/")
    assert not _may_ask("https://[::1", "http://127.0.0.1/v2/")


@pytest.mark.parametrize(
    ("image", "host", "name", "reference"),
    [
        ("ubuntu", "registry-1.docker.io", "library/ubuntu", "latest"),
        ("vllm/vllm-openai:v1", "registry-1.docker.io", "vllm/vllm-openai", "v1"),
        ("docker.io/vllm/vllm-openai:v1", "registry-1.docker.io", "vllm/vllm-openai", "v1"),
        ("nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc2", "nvcr.io", "nvidia/tensorrt-llm/release", "1.2.0rc2"),
        ("localhost:5000/a@sha256:" + "a" * 64, "localhost:5000", "a", "sha256:" + "a" * 64),
    ],
)
def test_where_a_reference_lies(image: str, host: str, name: str, reference: str) -> None:
    place = place_of(image)
    assert (place.host, place.name, place.reference) == (host, name, reference)
    assert place.url("manifests", reference).startswith("http://" if "localhost" in host else "https://")


@pytest.mark.parametrize(
    ("header", "scheme", "told"),
    [
        ('Bearer realm="https://a/token",service="s",scope="x:y:pull"', "bearer", ("https://a/token", "s", "x:y:pull")),
        ("bearer realm=https://a/token, service=s", "bearer", ("https://a/token", "s", None)),
        ('Basic realm="x", Bearer realm="https://a",service="b, c"', "bearer", ("https://a", "b, c", None)),
        ('Basic realm="Registry"', "basic", ("Registry", None, None)),
        ("Negotiate", "", (None, None, None)),
    ],
)
def test_challenges(header: str, scheme: str, told: tuple[str | None, ...]) -> None:
    found, pairs = challenge(header)
    assert found == scheme
    assert tuple(pairs.get(key) for key in ("realm", "service", "scope")) == told


@given(st.text(max_size=400))
def test_any_challenge_can_be_read(header: str) -> None:
    scheme, pairs = challenge(header)
    assert scheme in ("", "bearer", "basic") and all(isinstance(value, str) for value in pairs.values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.fixed_dictionaries({}, optional=dict.fromkeys(("mediaType", "manifests", "config", "platform", "digest"), JSON))


def test_any_answer_gives_an_image_or_our_error() -> None:
    with running() as servers:
        client = Registry(Web(pause=lambda _seconds: None), {})

        @settings(max_examples=either(40, 300), deadline=None)
        @given(JSON | PARTS | st.builds(lambda part: {"manifests": [part]}, PARTS))
        def holds(value: Any) -> None:
            body = json.dumps(value).encode()
            servers.content.manifests = {digest(body): ("application/json", body)}
            servers.content.tag("a/b", "v1", digest(body))
            try:
                found = client.resolve(servers.ref("a/b", "v1"))
            except WebError:
                return
            assert found.digest == digest(body)

        holds()


def test_a_token_is_good_for_one_repository(local: Running, tmp_path: Path) -> None:
    client = registry(tmp_path)
    for name in ("a/b", "a/c", "a/b"):
        local.content.tag(name, "v1", local.content.image(config()))
        client.resolve(local.ref(name, "v1"))
    assert [asked.query["scope"] for asked in local.tokens.asked] == ["repository:a/b:pull", "repository:a/c:pull"]


def test_what_is_private_is_had_with_credentials(local: Running, tmp_path: Path) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", one)
    local.content.credentials = "Basic bWU6aGlkZGVu"
    with pytest.raises(WebError, match="refused"):
        registry(tmp_path).resolve(local.ref("a/b", "v1"))
    secret = {f"SHIFTLOG_REGISTRY_{name}": value for name, value in (("USER", "me"), ("PASSWORD", "hidden"))}
    client = registry(tmp_path, environment={**secret, "SHIFTLOG_REGISTRY_HOST": local.registry.host})
    assert client.resolve(local.ref("a/b", "v1")).digest == one


@pytest.mark.parametrize("named", ["docker.io", "index.docker.io", "registry-1.docker.io"])
def test_credentials_of_the_hub_are_for_it_by_any_name(named: str) -> None:
    client = Registry(
        Web(), {"SHIFTLOG_REGISTRY_HOST": named, "SHIFTLOG_REGISTRY_USER": "me", "SHIFTLOG_REGISTRY_PASSWORD": "hidden"}
    )
    assert client._basic(place_of("vllm/vllm-openai:v1")) and not client._basic(place_of("ghcr.io/a/b:v1"))


def test_a_store_that_wants_a_password_gets_none(local: Running, tmp_path: Path) -> None:
    """The registry leads to another machine, and that one sends us to a token service of its own."""
    with serving(lambda _asked: Reply(body=b'{"token": "x"}')) as thief:
        told = {"WWW-Authenticate": f'Bearer realm="{thief.url}/token",service="s"'}
        with serving(lambda _asked: Reply(401, headers=told)) as store:
            local.content.tag("a/b", "v1", local.content.image(config()))
            local.content.faults = [Reply(307, headers={"Location": f"{store.url}/x"})]
            secret = {"SHIFTLOG_REGISTRY_USER": "me", "SHIFTLOG_REGISTRY_PASSWORD": "hidden"}
            client = registry(tmp_path, environment={**secret, "SHIFTLOG_REGISTRY_HOST": local.registry.host})
            with pytest.raises(WebError, match="refused") as caught:
                client.resolve(local.ref("a/b", "v1"))
    assert caught.value.temporary and not thief.asked
    assert store.asked and all("authorization" not in asked.headers for asked in store.asked)


def test_the_next_page_is_not_somewhere_else(local: Running, tmp_path: Path) -> None:
    local.content.tag("a/b", "t1", local.content.image(config()))
    with serving(lambda _asked: Reply(body=b'{"tags": ["t2"]}')) as other:
        local.content.links["a/b"] = f"{other.url}/v2/a/b/tags/list?last=t1"
        assert list(registry(tmp_path).tags(f"{local.registry.host}/a/b")) == ["t1"]
    assert not other.asked


def test_a_list_that_goes_on_for_ever_ends(local: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changelog.registry.MAX_TAGS", 7)
    for number in range(3):
        local.content.tag("a/b", f"t{number}", local.content.image(config()))
    local.content.links["a/b"] = "/v2/a/b/tags/list?n=100"
    names = list(registry(tmp_path).tags(f"{local.registry.host}/a/b"))
    assert names == ["t0", "t1", "t2"] * 2, "another address once, then the same again"
    monkeypatch.setattr("changelog.registry.MAX_TAGS", 4)
    assert len(list(registry(tmp_path).tags(f"{local.registry.host}/a/b"))) == 4


@pytest.mark.parametrize("body", [b"{}", b'{"errors": []}', b"[]", b"<html>", b'{"config": {}}'])
def test_a_page_that_says_sorry_is_no_image(local: Running, tmp_path: Path, body: bytes) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    for told in ("application/json", *ACCEPT):
        local.content.faults = [Reply(200, body, {"Content-Type": told})]
        with pytest.raises(WebError):
            registry(tmp_path).resolve(local.ref("a/b", "v1"))


def test_an_index_without_platforms_is_said_to_be_so(local: Running, tmp_path: Path) -> None:
    proof = local.content.image({"architecture": "unknown", "os": "unknown"})
    local.content.tag("a/b", "v1", local.content.index(unknown_unknown=proof))
    with pytest.raises(WebError, match="names no platform"):
        registry(tmp_path).resolve(local.ref("a/b", "v1"))


def test_a_mirror_may_keep_some_platforms(local: Running, tmp_path: Path) -> None:
    amd, arm = local.content.image(config()), local.content.image({**config(), "architecture": "arm64"})
    index = local.content.index(linux_amd64=amd, linux_arm64=arm)
    local.content.tag("a/b", "v1", index)
    del local.content.manifests[arm]
    found = registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert (found.digest, [one.manifest_digest for one in found.platforms]) == (index, [amd])
    assert len(found.notes) == 1 and "404" in found.notes[0]
    del local.content.manifests[amd]
    with pytest.raises(WebError, match=r"names no platform.*404"):
        registry(tmp_path).resolve(local.ref("a/b", "v1"))


def test_an_index_in_an_index_is_read_and_no_deeper(local: Running, tmp_path: Path) -> None:
    one = local.content.image(config())
    inner = local.content.index(linux_amd64=one)
    outer = local.content.index(linux_amd64=inner)
    local.content.tag("a/b", "two", outer)
    local.content.tag("a/b", "three", local.content.index(linux_amd64=outer))
    found = registry(tmp_path).resolve(local.ref("a/b", "two"))
    assert found.digest == outer and [platform.manifest_digest for platform in found.platforms] == [one]
    with pytest.raises(WebError, match="names no platform"):
        registry(tmp_path).resolve(local.ref("a/b", "three"))


def test_an_index_may_name_too_many_platforms(local: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changelog.registry.MAX_PLATFORMS", 2)
    one, two, three = (local.content.image(config(number=str(number))) for number in range(3))
    inner = local.content.index(linux_amd64=one, linux_arm64=two, linux_s390x=three)
    local.content.tag("a/b", "v1", inner)
    found = registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert len(found.platforms) == 2 and "more platforms; 2 manifests" in found.notes[0]
    local.content.tag("a/b", "nested", local.content.index(linux_amd64=inner, linux_arm64=inner))
    assert len(registry(tmp_path).resolve(local.ref("a/b", "nested")).platforms) == 1


def test_a_manifest_that_is_listed_twice_is_asked_for_once(local: Running, tmp_path: Path) -> None:
    one = local.content.image(config())
    local.content.tag("a/b", "v1", local.content.index(linux_amd64=one, linux_arm64=one))
    assert len(registry(tmp_path).resolve(local.ref("a/b", "v1")).platforms) == 1
    assert sum(one.removeprefix("sha256:") in asked.path for asked in local.registry.asked) == 1


def test_bodies_and_redirects_are_bounded(local: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local.content.tag("a/b", "v1", local.content.image(config()))
    local.content.faults = [Reply(307, headers={"Location": "/v2/a/b/manifests/v1"})] * 20
    with pytest.raises(WebError, match="redirected more than"):
        registry(tmp_path).resolve(local.ref("a/b", "v1"))
    local.content.faults = [Reply(200, b" " * ((4 << 20) + 1))]
    with pytest.raises(WebError, match="longer than 4,194,304 bytes"):
        registry(tmp_path).resolve(local.ref("a/b", "v1"))


def test_a_head_that_is_refused_tells_nothing(local: Running, tmp_path: Path) -> None:
    assert registry(tmp_path).digest(local.ref("a/b", "gone")) is None
    local.content.faults = [Reply(503)] * 9
    with pytest.raises(WebError) as caught:
        registry(tmp_path).digest(local.ref("a/b", "gone"))
    assert caught.value.temporary


def test_nothing_of_an_image_lies_in_the_cache(local: Running, tmp_path: Path) -> None:
    """A configuration holds the whole environment, secrets and all."""
    held = config()
    held["config"]["Env"] = ["HF_TOKEN=hidden-in-the-image"]
    local.content.tag("a/b", "v1", local.content.image(held))
    registry(tmp_path).resolve(local.ref("a/b", "v1"))
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
