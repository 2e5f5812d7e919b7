"""HTTP as other machines really do it: limits, faults, redirects, caching, secrets."""

import gzip
import re
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from changelog.web import ATTEMPTS, MAX_REDIRECTS, Answer, Web, WebError, shown
from tests.lengths import either
from tests.servers.http import Asked, Reply, Server, serving

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "secret-that-must-not-be-seen"


class Script:
    """Answers one after the other; the last one from then on."""

    def __init__(self) -> None:
        self.replies: list[Reply] = [Reply(body=b"{}")]

    def __call__(self, asked: Asked) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script) -> Iterator[Server]:
    with serving(script) as running:
        yield running


class Waits:
    """A web that does not wait but notes how long it would have."""

    def __init__(self, cache: Path | None = None, patience: float = 30.0) -> None:
        self.seconds: list[float] = []
        self.web = Web(cache, patience=patience, pause=self.seconds.append, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW.timestamp()) + 11)}, 11.0),
        ({"Retry-After": "soon"}, 0.5),
        ({}, 0.5),
    ],
)
def test_it_waits_as_long_as_it_is_told(script: Script, server: Server, headers: dict[str, str], seconds: float) -> None:
    script.replies = [Reply(429, headers=headers), Reply(body=b"x")]
    told = Waits()
    assert told.web.get(server.url).body == b"x"
    assert told.seconds == [seconds]


def test_githubs_403_with_nothing_remaining_is_a_limit_and_another_403_is_none(script: Script, server: Server) -> None:
    reset = str(int(NOW.timestamp()) + 3600)
    script.replies = [Reply(403, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset})]
    with pytest.raises(WebError, match="rate limited until 2026-03-01T13:00:00Z") as caught:
        Waits().web.get(server.url)
    assert caught.value.temporary and caught.value.retry_at == NOW + timedelta(hours=1)
    script.replies = [Reply(403, headers={"X-RateLimit-Remaining": "17", "X-RateLimit-Reset": reset})]
    with pytest.raises(WebError, match="403") as refused:
        Waits().web.get(server.url)
    assert refused.value.retry_at is None and len(server.asked) == 2


def test_patience_and_attempts_end(script: Script, server: Server) -> None:
    script.replies = [Reply(500)]
    told = Waits()
    with pytest.raises(WebError, match="500") as caught:
        told.web.get(server.url)
    assert caught.value.temporary and len(server.asked) == ATTEMPTS and told.seconds == [0.5, 1.0, 2.0, 4.0]
    impatient = Waits(patience=1.2)
    with pytest.raises(WebError):
        impatient.web.get(server.url)
    assert impatient.seconds == [0.5]


@pytest.mark.parametrize("status", [404, 410, 418])
def test_what_is_refused_for_good_is_asked_once(script: Script, server: Server, status: int) -> None:
    script.replies = [Reply(status)]
    with pytest.raises(WebError, match=str(status)) as caught:
        Waits().web.get(server.url)
    assert len(server.asked) == 1 and not caught.value.temporary and caught.value.status == status


def test_a_body_that_breaks_off_is_fetched_again(script: Script, server: Server) -> None:
    script.replies = [Reply(body=b"half", length=100), Reply(body=b"whole")]
    assert Waits().web.get(server.url).body == b"whole"
    script.replies = [Reply(body=b"half", length=100)]
    with pytest.raises(WebError, match="broke off") as caught:
        Waits().web.get(server.url)
    assert caught.value.temporary


def test_nobody_there_is_unknown_for_now() -> None:
    with serving(lambda _asked: Reply()) as gone:
        url = gone.url
    with pytest.raises(WebError, match="cannot be reached") as caught:
        Waits().web.get(url)
    assert caught.value.temporary and caught.value.status is None


def test_a_host_that_is_away_is_not_asked_for_everything_anew() -> None:
    with serving(lambda _asked: Reply(500)) as gone:
        url = gone.url
    told = Waits()
    for path in ("a", "b", "c"):
        with pytest.raises(WebError, match="cannot be reached"):
            told.web.get(f"{url}/{path}")
    assert len(told.seconds) == ATTEMPTS - 1, "only the first question waited"


def test_a_host_that_answers_badly_is_asked_again(script: Script, server: Server) -> None:
    told = Waits()
    script.replies = [Reply(500)]
    with pytest.raises(WebError):
        told.web.get(server.url)
    script.replies = [Reply(body=b"x")]
    assert told.web.get(server.url).body == b"x"


def test_a_body_that_is_too_long_is_cut_off(script: Script, server: Server) -> None:
    script.replies = [Reply(body=b"x" * 1000)]
    assert len(Waits().web.get(server.url, limit=1000).body) == 1000
    with pytest.raises(WebError, match="longer than 999 bytes"):
        Waits().web.get(server.url, limit=999)
    script.replies = [Reply(body=gzip.compress(b"\0" * 50_000_000), headers={"Content-Encoding": "gzip"})]
    with pytest.raises(WebError, match="longer than"):
        Waits().web.get(server.url, limit=1_000_000)


def test_redirects_are_followed_without_the_token(script: Script, server: Server) -> None:
    with serving(lambda asked: Reply(body=asked.headers.get("authorization", "none").encode())) as other:
        script.replies = [Reply(302, headers={"Location": f"{other.url}/there"})]
        answer = Waits().web.get(server.url, token=SECRET)
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    assert answer.body == b"none" and answer.url.endswith("/there")


def test_redirects_on_one_host_keep_the_token(script: Script, server: Server) -> None:
    script.replies = [Reply(301, headers={"Location": "/moved"}), Reply(body=b"x")]
    assert Waits().web.get(server.url, token=SECRET).url == f"{server.url}/moved"
    assert server.asked[1].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/x", "//:0/", "http://a:b@127.0.0.1/"])
def test_redirects_lead_to_http_only(script: Script, server: Server, where: str) -> None:
    script.replies = [Reply(302, headers={"Location": where})]
    with pytest.raises(WebError):
        Waits().web.get(server.url)


def test_redirects_in_a_circle_end(script: Script, server: Server) -> None:
    script.replies = [Reply(302, headers={"Location": "/again"})]
    with pytest.raises(WebError, match="redirected more than"):
        Waits().web.get(server.url)
    assert len(server.asked) == MAX_REDIRECTS + 1


def by_etag(asked: Asked) -> Reply:
    if asked.headers.get("if-none-match") == '"v1"':
        return Reply(304, headers={"ETag": '"v1"'})
    told = {"ETag": '"v1"', "Vary": "Accept, Authorization, Cookie", "Cache-Control": "private, max-age=0"}
    return Reply(body=b"the body", headers=told)


def test_what_did_not_change_is_not_sent_again(tmp_path: Path) -> None:
    with serving(by_etag) as server:
        for _ in range(3):
            assert Waits(tmp_path / "cache").web.get(f"{server.url}/x", token=SECRET).body == b"the body"
        assert ["if-none-match" in asked.headers for asked in server.asked] == [False, True, True]
        assert Waits(tmp_path / "cache").web.get(f"{server.url}/x", keep=False).body == b"the body"
        assert "if-none-match" not in server.asked[-1].headers
    kept = [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert kept and all(SECRET.encode() not in file.read_bytes() and SECRET not in str(file) for file in kept)


@pytest.mark.parametrize("damage", [b"", b"cc=4,", b"cc=4,\x81\xa8response\x01", b"\xff" * 100])
def test_a_damaged_cache_is_read_past(tmp_path: Path, damage: bytes) -> None:
    with serving(by_etag) as server:
        Waits(tmp_path / "cache").web.get(server.url)
        for file in (tmp_path / "cache").rglob("*"):
            if file.is_file():
                file.write_bytes(damage)
        assert Waits(tmp_path / "cache").web.get(server.url).body == b"the body"


def test_a_cache_that_cannot_be_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(by_etag) as server:
        assert Waits(tmp_path / "file" / "cache").web.get(server.url).body == b"the body"


def test_netrc_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script, server: Server) -> None:
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    Waits().web.get(server.url)
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://", "http://me:hidden@127.0.0.1/", "no url", "http://a b/", "http://[::1/"]
)
def test_only_plain_web_addresses_are_asked(url: str) -> None:
    with pytest.raises(WebError) as caught:
        Waits().web.get(url)
    assert "hidden" not in str(caught.value)


def test_no_message_shows_a_secret(script: Script, server: Server) -> None:
    assert shown(f"https://me:{SECRET}@host/path?token={SECRET}#{SECRET}") == "https://host/path"
    script.replies = [Reply(404)]
    with pytest.raises(WebError) as caught:
        Waits().web.get(f"{server.url}/x", parameters={"token": SECRET}, token=SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(WebError, match="https://host/x: its answer is not JSON"):
        Answer("https://host/x?secret=1", 200, {}, body).json()


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_a_host_that_wants_rest_is_left_alone_until_then(script: Script, server: Server) -> None:
    script.replies = [Reply(429, headers={"Retry-After": "3600"})]
    clock = Clock()
    web = Web(pause=lambda _seconds: None, clock=clock)
    for path in ("a", "b"):
        with pytest.raises(WebError, match=f"/{path}: rate limited until 2026-03-01T13:00:00Z") as caught:
            web.get(f"{server.url}/{path}")
        assert caught.value.temporary and caught.value.retry_at == NOW + timedelta(hours=1)
    assert server.paths() == ["/a"]
    clock.now += timedelta(hours=1)
    script.replies = [Reply(body=b"x")]
    assert web.get(f"{server.url}/b").body == b"x"


def test_a_token_is_advised_to_who_has_none(script: Script, server: Server) -> None:
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW.timestamp()) + 3600)}
    script.replies = [Reply(403, headers=reset)]
    with pytest.raises(WebError, match="set \\$GITHUB_TOKEN or try again then"):
        Waits().web.get(server.url)
    with pytest.raises(WebError, match="13:00:00Z; try again then"):
        Waits().web.get(server.url, token=SECRET)


def test_time_lost_in_asking_counts(script: Script, server: Server) -> None:
    """A machine that takes long to say 500 is not asked five times over."""

    def slow(_asked: Asked) -> Reply:
        time.sleep(0.12)
        return Reply(500)

    with serving(slow) as other, pytest.raises(WebError, match="500"):
        Waits(patience=0.55).web.get(other.url)
    assert len(other.asked) == 1


@pytest.mark.parametrize("token", [f"{SECRET}\n", f"{SECRET}“", f"{SECRET}\r\nX: y", f"a {SECRET}"])
def test_a_token_that_is_none_is_not_sent_and_not_shown(server: Server, token: str) -> None:
    with pytest.raises(WebError, match="token") as caught:
        Waits().web.get(server.url, token=token)
    assert SECRET not in str(caught.value) and not server.asked


@pytest.mark.parametrize("host", ["a" * 64 + ".com", "a..b", "a%b", "[v1.x]", "xn--a.com..", "x:99999"])
def test_strange_hosts_are_our_error(host: str) -> None:
    with pytest.raises(WebError):
        Waits().web.get(f"http://{host}/x")


@pytest.mark.parametrize("where", [None, "", "http://[::1/", "http://" + "a" * 64 + ".com/", "http://\xff\xfe/"])
def test_redirects_to_nowhere_are_our_error(script: Script, server: Server, where: str | None) -> None:
    script.replies = [Reply(302, headers={} if where is None else {"Location": where})]
    with pytest.raises(WebError):
        Waits().web.get(server.url)


HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)
NAMES = ("Retry-After", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Location", "ETag", "Vary", "Cache-Control", "Date")
MORE = ("Content-Encoding", "Content-Type", "Expires", "Set-Cookie", "Link", "WWW-Authenticate", "Age")


def test_any_answer_is_taken_or_our_error(tmp_path: Path) -> None:
    script = Script()
    with serving(script) as server:

        @settings(max_examples=either(50, 300), deadline=None)
        @given(
            st.sampled_from([200, 203, 204, 206, 300, 301, 302, 304, 307, 308, 401, 403, 404, 429, 500, 599]),
            st.dictionaries(st.sampled_from(NAMES + MORE), HEADER | st.sampled_from(["0", "*", "gzip", "no-cache", "max-age=5"])),
            st.binary(max_size=20),
        )
        def holds(status: int, headers: dict[str, str], body: bytes) -> None:
            script.replies = [Reply(status, body if status not in (204, 304) else b"", headers)]
            web = Web(tmp_path / "cache", patience=1, pause=lambda _seconds: None)
            try:
                answer = web.get(server.url)
            except WebError:
                return
            assert answer.status == 200

        holds()


def test_no_cookie_is_kept(tmp_path: Path) -> None:
    told = {"ETag": '"v1"', "Set-Cookie": f"session={SECRET}"}
    with serving(lambda _asked: Reply(body=b"x", headers=told)) as server:
        waits = Waits(tmp_path / "cache")
        for _ in range(2):
            waits.web.get(server.url)
            waits.web.get(server.url, keep=False)
    assert all("cookie" not in asked.headers for asked in server.asked)
    kept = [file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert kept and all(SECRET.encode() not in bytes_ for bytes_ in kept)


def test_who_asks_is_told(server: Server) -> None:
    Waits().web.get(server.url)
    assert re.fullmatch(r"shiftlog/\S+", server.asked[0].headers["user-agent"])


def test_a_cache_that_cannot_be_written_into_is_no_fault(tmp_path: Path) -> None:
    """The folder can be made, and nothing in it: a file stands in each place."""
    for digit in "0123456789abcdef":
        (tmp_path / digit).write_text("")
    with serving(by_etag) as server:
        for _ in range(2):
            assert Waits(tmp_path).web.get(server.url).body == b"the body"


def test_a_damaged_body_in_the_cache_is_fetched_anew_and_kept(tmp_path: Path) -> None:
    packed = gzip.compress(b"hello " * 100)

    def answer(asked: Asked) -> Reply:
        if "if-none-match" in asked.headers:
            return Reply(304, headers={"ETag": '"v1"'})
        return Reply(body=packed, headers={"ETag": '"v1"', "Content-Encoding": "gzip"})

    with serving(answer) as server:
        Waits(tmp_path).web.get(server.url)
        (file,) = (file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size)
        damaged = bytearray(file.read_bytes())
        damaged[damaged.find(packed) + 14] ^= 0xFF
        file.write_bytes(damaged)
        waits = Waits(tmp_path)
        assert waits.web.get(server.url).body == b"hello " * 100 and waits.seconds == []
        asked = len(server.asked)
        assert [Waits(tmp_path).web.get(server.url).body for _ in range(2)] == [b"hello " * 100] * 2
        assert ["if-none-match" in one.headers for one in server.asked[asked:]] == [False, True]


def test_a_cache_can_be_shared(tmp_path: Path) -> None:
    with serving(by_etag) as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: Waits(tmp_path).web.get(f"{server.url}/{number % 3}").body, range(48)))
    assert found == [b"the body"] * 48


def test_a_machine_that_drips_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte now and then keeps every timeout from coming."""
    monkeypatch.setattr("changelog.web.MAX_SECONDS", 0.3)
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            for _ in range(200):
                connection.sendall(b"x")
                time.sleep(0.05)

    thread = Thread(target=drip, daemon=True)
    thread.start()
    begun = time.monotonic()
    with listening, pytest.raises(WebError, match="no answer in time") as caught:
        Web(patience=0.1, pause=lambda _seconds: None).get(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    assert caught.value.temporary and time.monotonic() - begun < 3
    thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and the certificate of this machine, which nobody else has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    built = built.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    plain = serialization.NoEncryption()
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_token_does_not_go_from_https_to_http(
    certificate: Path, tls: ssl.SSLContext, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with serving(lambda _asked: Reply(302, headers={"Location": f"{server.url}/plain"}), tls) as secure:
        assert Waits().web.get(secure.url, token=SECRET).url == f"{server.url}/plain"
        assert secure.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    assert "authorization" not in server.asked[0].headers


def test_a_certificate_that_nobody_knows_is_not_trusted(tls: ssl.SSLContext) -> None:
    with serving(lambda _asked: Reply(), tls) as secure:
        told = Waits()
        with pytest.raises(WebError, match="its certificate cannot be trusted") as caught:
            told.web.get(secure.url, token=SECRET)
    assert caught.value.temporary and told.seconds == [] and not secure.asked


def test_a_proxy_of_the_environment_is_used_and_its_password_not_shown(
    script: Script, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, server.url.replace("//", f"//me:{SECRET}@"))
    Waits().web.get("http://somewhere.test/x")
    assert server.asked[0].headers["host"] == "somewhere.test"
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://me:{SECRET}@127.0.0.1:1")
    with pytest.raises(WebError, match=r"http://somewhere\.test/x: the proxy did not answer") as caught:
        Waits().web.get("http://somewhere.test/x")
    assert SECRET not in str(caught.value) and caught.value.__cause__ is None
