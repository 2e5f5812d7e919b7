"""Asking other machines over HTTP: the only module that imports requests.

Belongs here: retries, size bounds, caching by ETag, tokens, redirects, and one kind of error for all that can go wrong. Does not:
any service's paths or formats (`changelog.registry`, `changelog.github`, `changelog.package_index`), reading how long to wait
(`changelog.retry_after`).
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from http.cookiejar import DefaultCookiePolicy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event, Timer
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
from cachecontrol import CacheControlAdapter
from cachecontrol.caches import FileCache
from urllib3.exceptions import HTTPError

from changelog.facts import line_of
from changelog.retry_after import AGAIN, wait
from warehouse.clock import iso, system_clock
from warehouse.errors import UpstreamError

MIB = 1 << 20
MAX_BYTES = 32 * MIB
"""Longest body that is taken, bytes after decoding."""
MAX_REDIRECTS = 10
ATTEMPTS = 5
TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and between two pieces of an answer."""
MAX_SECONDS = 600.0
"""Longest time in which a body may come: a machine that sends a byte now and then would never run into a timeout."""
FIRST_PAUSE = 0.5
"""Seconds before the second attempt; doubled for each further one."""
CHUNK = 1 << 16
_REDIRECTS = (301, 302, 303, 307, 308)
_TEMPORARY = (401, 403, *AGAIN)
"""Answers that say nothing of what was asked for: registries and hubs refuse now and then what they give an hour later."""
_SECRET = ("authorization", "cookie", "proxy-authorization")
_TOKEN = re.compile(r"[\x21-\x7e]{1,20000}")
_FAILURES = (requests.RequestException, HTTPError, OSError, ValueError)
"""What requests and what lies below it raise: of a strange host name or header also errors of its own lower layers."""


class WebError(UpstreamError):
    """A question to another machine was not answered.

    `status`: HTTP status, where there was one. `temporary`: this says nothing of what was asked for, it is unknown for now.
    `retry_at`: when the other machine will answer again, where it said so.
    """

    def __init__(
        self, message: str, *, status: int | None = None, temporary: bool = False, retry_at: datetime | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.temporary, self.retry_at = status, temporary, retry_at


class Answer(NamedTuple):
    """One answer: where it came from in the end, its status, headers (names in any case), and its whole body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON value of the body; raises WebError where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WebError(f"{shown(self.url)}: its answer is not JSON ({line_of(str(error), 80)})", status=self.status) from None


_Origin = tuple[str, str | None, int]


class _Question(NamedTuple):
    session: requests.Session
    method: str
    url: str
    headers: dict[str, str]
    parameters: Mapping[str, str] | None
    limit: int


class _Failure(NamedTuple):
    """A question that was not answered: why, the seconds that the other machine asks to wait, whether to ask again.

    `away`: the machine did not answer at all, and will not answer other questions either.
    """

    error: WebError
    wait: float | None
    again: bool
    away: bool = False


def shown(url: str) -> str:
    """Return *url* for a message: without user, password, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(url)
        return line_of(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", 300)
    except ValueError:
        return "a URL that is none"


class Web:
    """A session: one cache, one patience. Safe to share a cache folder with other processes."""

    def __init__(
        self,
        cache: Path | None = None,
        *,
        announce: Callable[[str], None] = lambda _step: None,
        patience: float = 30.0,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        """Keep cached answers in the folder *cache*, if it can be written; ask again for at most *patience* seconds."""
        self.announce, self.patience, self.pause, self.clock = announce, patience, pause, clock
        self._away: dict[tuple[_Origin, bool], _Failure] = {}
        """Hosts that could not be reached, or ask to wait longer than we do (whom they know, or a stranger): they are not asked
        again, because a sync asks each of them for many things."""
        self._plain = _session(None)
        self._cached = _session(cache) if cache is not None and _writable(cache) else self._plain

    def get(
        self,
        url: str,
        *,
        accept: str | Sequence[str] = "*/*",
        parameters: Mapping[str, str] | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        limit: int = MAX_BYTES,
        ok: Container[int] = (200,),
        keep: bool = True,
    ) -> Answer:
        """Return the answer to GET *url*, whose status is one of *ok*.

        *token*: sent as a bearer token, never to another host than that of *url*. *limit*: bytes of the decoded body. *keep*: it
        may be kept in the cache; say no where it is a secret, or must be what holds now. Raises WebError where there is none.
        """
        return self._asked("GET", url, _headers(url, accept, token, headers), parameters, limit, ok, keep=keep)

    def head(
        self,
        url: str,
        *,
        accept: str | Sequence[str] = "*/*",
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        ok: Container[int] = (200,),
    ) -> Answer:
        """Return the answer to HEAD *url*, with an empty body; raises WebError as `get` does."""
        return self._asked("HEAD", url, _headers(url, accept, token, headers), None, 0, ok, keep=False)

    def _asked(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        parameters: Mapping[str, str] | None,
        limit: int,
        ok: Container[int],
        *,
        keep: bool,
    ) -> Answer:
        session = self._cached if keep else self._plain
        answer = self._patiently(_Question(session, method, _checked(url), headers, parameters, limit), ok)
        for _ in range(MAX_REDIRECTS):
            if answer.status not in _REDIRECTS or answer.status in ok:
                return answer
            target = _target(answer)
            headers = headers if same_origin(answer.url, target) else _harmless(headers)
            answer = self._patiently(_Question(session, method, target, headers, None, limit), ok)
        raise WebError(f"{shown(url)}: redirected more than {MAX_REDIRECTS} times")

    def _patiently(self, question: _Question, ok: Container[int]) -> Answer:
        """Ask until there is an answer that counts, as long as patience lasts."""
        left, pause = self.patience, FIRST_PAUSE
        self._raise_where_away(question)
        for attempt in range(1, ATTEMPTS + 1):
            begun = time.monotonic()
            found = self._attempt(question, ok)
            if isinstance(found, Answer):
                return found
            seconds = pause if found.wait is None else found.wait
            left -= time.monotonic() - begun + seconds
            if not found.again or attempt == ATTEMPTS or left < 0:
                if found.away or found.error.retry_at:
                    self._away[_key(question)] = found
                raise found.error
            self.announce(f"{urlsplit(question.url).hostname}: again in {seconds:.0f} s")
            self.pause(seconds)
            pause *= 2
        raise AssertionError("unreachable")

    def _raise_where_away(self, question: _Question) -> None:
        """Raise what was found before of the host that *question* is for, as long as it holds."""
        found = self._away.get(_key(question))
        if found is None or (found.error.retry_at and found.error.retry_at <= self.clock()):
            return
        error, words = found.error, str(found.error).rpartition(": ")[2]
        raise WebError(f"{shown(question.url)}: {words}", status=error.status, temporary=error.temporary, retry_at=error.retry_at)

    def _attempt(self, question: _Question, ok: Container[int]) -> Answer | _Failure:
        try:
            answer = self._once(question)
        except _FAILURES as error:
            return _unreached(question.url, error)
        if answer.status in ok or answer.status in _REDIRECTS:
            return answer
        return _refused(question, answer, self.clock())

    def _once(self, question: _Question) -> Answer:
        """Ask through the cache; where what it holds is damaged, or it cannot be written, without it."""
        if question.session is self._plain:
            return _answer(question)
        try:
            return _answer(question)
        except (WebError, requests.ConnectionError, requests.Timeout):
            raise
        except Exception:  # what a damaged file makes the library raise can be anything
            _forget(question)
            return _answer(question._replace(session=self._plain))


class _Adapter(CacheControlAdapter):
    """Keeps secrets out of the cache: CacheControl writes down the request's headers that an answer says it varies by."""

    def build_response(self, request: Any, response: Any, *args: Any, **named: Any) -> Any:  # type: ignore[override]
        response.headers.pop("set-cookie", None)
        told = response.headers.get("vary")
        if told:
            response.headers["vary"] = ", ".join(name for name in told.split(",") if name.strip().lower() not in _SECRET)
        return super().build_response(request, response, *args, **named)


def _session(cache: Path | None) -> requests.Session:
    session = requests.Session()
    session.auth = _as_it_is  # else requests would look into ~/.netrc
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers["User-Agent"] = f"shiftlog/{_version()}"
    if cache is not None:
        adapter = _Adapter(FileCache(cache))
        session.mount("https://", adapter)
        session.mount("http://", adapter)
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _version() -> str:
    try:
        return version("shiftlog")
    except PackageNotFoundError:
        return "unknown"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _forget(question: _Question) -> None:
    """Take an answer out of the cache, so that the next one is kept whole."""
    adapter = question.session.get_adapter(question.url)
    url = requests.Request("GET", question.url, params=question.parameters).prepare().url
    if isinstance(adapter, CacheControlAdapter) and url:
        with suppress(OSError):
            adapter.cache.delete(adapter.controller.cache_url(url))


def _headers(url: str, accept: str | Sequence[str], token: str | None, more: Mapping[str, str] | None) -> dict[str, str]:
    headers = {"Accept": accept if isinstance(accept, str) else ", ".join(accept), **(more or {})}
    if token and not _TOKEN.fullmatch(token):
        raise WebError(
            f"{shown(url)}: its token holds a space or a letter that no token has; check the variable that it stands in"
        )
    return headers | {"Authorization": f"Bearer {token}"} if token else headers


def _harmless(headers: dict[str, str]) -> dict[str, str]:
    """Return those of *headers* that may go to a host that they were not meant for."""
    return {name: value for name, value in headers.items() if name.lower() == "accept"}


def _target(answer: Answer) -> str:
    """Return where an answer leads to; raises WebError where that is no URL that may be asked."""
    told = answer.headers.get("location", "")
    try:
        target = urljoin(answer.url, told.encode("latin-1").decode())  # headers come as Latin-1, whatever they are
    except ValueError:
        told = ""
    if not told:
        raise WebError(f"{shown(answer.url)}: leads elsewhere, and does not say where in a way that can be read")
    return _checked(target)


def _checked(url: str) -> str:
    """Return *url* where it is one that may be asked; raises WebError where it is not http(s) or holds a password."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise WebError(f"{line_of(url.partition('?')[0].rpartition('@')[2], 100)!r} is not a URL") from None
    if not fine or any(ord(letter) < 33 for letter in url):
        raise WebError(f"{shown(url)}: only http and https URLs are asked")
    if parts.username or parts.password:
        raise WebError(f"{shown(url)}: a URL must not hold a user or a password")
    return url


def same_origin(one: str, other: str) -> bool:
    """Say whether two URLs are of one scheme, host and port: what was meant for one of them may go to the other."""
    return _origin(one) == _origin(other)


def _key(question: _Question) -> tuple[_Origin, bool]:
    return _origin(question.url), "Authorization" in question.headers


def _origin(url: str) -> _Origin:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, _port(parts)


def _port(parts: Any) -> int:
    return int(parts.port or (443 if parts.scheme == "https" else 80))


def _answer(question: _Question) -> Answer:
    """Ask once and read the whole body; raises what requests raises, and WebError for a body that is too long."""
    session, method, url, headers, parameters, limit = question
    named: dict[str, Any] = {"headers": headers, "params": parameters, "timeout": TIMEOUT}
    with session.request(method, url, stream=True, allow_redirects=False, **named) as response, _in_time(response):
        pieces, size = [], 0
        for piece in response.iter_content(CHUNK) if method != "HEAD" else ():
            size += len(piece)
            if size > limit:
                raise WebError(f"{shown(url)}: its answer is longer than {limit:,} bytes", status=response.status_code)
            pieces.append(piece)
        _check_length(response, size, method)
        return Answer(response.url, response.status_code, response.headers, b"".join(pieces))


@contextmanager
def _in_time(response: requests.Response) -> Iterator[None]:
    """Break an answer off after MAX_SECONDS; raises requests' ReadTimeout then."""
    late = Event()

    def stop() -> None:
        late.set()
        with suppress(AttributeError, OSError, RuntimeError, ValueError):  # it has just come to its end
            response.raw.shutdown()

    timer = Timer(MAX_SECONDS, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except _FAILURES:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise requests.exceptions.ReadTimeout


def _check_length(response: requests.Response, size: int, method: str) -> None:
    """Raise where less came than was announced (of a packed body the library sees to it)."""
    told = response.headers.get("content-length", "")
    if (
        method != "HEAD"
        and re.fullmatch("[0-9]{1,18}", told)
        and "content-encoding" not in response.headers
        and int(told) != size
    ):
        raise requests.exceptions.ChunkedEncodingError(f"{size} of {told} bytes came")


def _unreached(url: str, error: Exception) -> _Failure:
    """Say what went wrong in our own words: those of the library may hold what must not be seen."""
    kinds = (
        (requests.exceptions.SSLError, "no secure connection came about"),
        (requests.exceptions.ProxyError, "the proxy did not answer"),
        (requests.exceptions.Timeout, "no answer in time"),
        (requests.exceptions.ChunkedEncodingError, "the answer broke off"),
        (requests.exceptions.ContentDecodingError, "the answer cannot be unpacked"),
        (requests.exceptions.ConnectionError, "cannot be reached"),
    )
    if isinstance(error, ValueError):  # InvalidURL, InvalidHeader, strange names of hosts
        return _Failure(WebError(f"{shown(url)}: cannot be asked, it is no address ({type(error).__name__})"), None, again=False)
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        words = f"{shown(url)}: its certificate cannot be trusted"
        return _Failure(WebError(words, temporary=True), None, again=False, away=True)
    why = next((words for kind, words in kinds if isinstance(error, kind)), f"failed ({type(error).__name__})")
    away = isinstance(error, requests.ConnectionError | requests.Timeout)
    return _Failure(WebError(f"{shown(url)}: {why}", temporary=True), None, again=True, away=away)


def _refused(question: _Question, answer: Answer, now: datetime) -> _Failure:
    status, place, seconds = answer.status, shown(question.url), wait(answer.status, answer.headers, now)
    if seconds is None:
        error = WebError(f"{place}: answered {status}{_meaning(status)}", status=status, temporary=status in _TEMPORARY)
        return _Failure(error, None, status in AGAIN)
    retry_at = now + timedelta(seconds=seconds)
    is_github = "x-ratelimit-reset" in answer.headers and "Authorization" not in question.headers
    advice = "set $GITHUB_TOKEN or try again then" if is_github else "try again then"
    words = f"{place}: rate limited until {iso(retry_at.replace(microsecond=0))}; {advice}"
    return _Failure(WebError(words, status=status, temporary=True, retry_at=retry_at), seconds, again=True)


def _meaning(status: int) -> str:
    words = {401: "access refused", 403: "access refused", 404: "not there", 410: "not there any more", 429: "too many requests"}
    return f" ({words[status]})" if status in words else ""
