"""What a subject line says of taking back an earlier change, or of bringing one back: by which words, of which change.

Spellings are those of real histories: `Revert "title (#1)" (#2)`, `[Revert] title`, `fix: revert #1`, `Revert PRs 1 and 2`,
`[Diffusion] Revert 1`, `Back out`, `Rollback`, `Partial revert of #1`, `Reapply title`, `[Reland] title`, `title (reland)`,
`Revert "Revert "title""`. Belongs here: that grammar. Does not: finding the change that is meant (`changelog.reverts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_TEXT = 1_000
"""Characters of a subject that are looked at."""
MAX_NAMED = 8
"""Pull requests that one subject can name."""
HINT = r"(?i)revert|roll(?:s|ed|ing)?[ -]?back|back(?:s|ed|ing)?[ -]?out|re-?land|re-?appl|re-?submit|\(retry\)"
"""What every subject of this kind holds; a pattern that polars can search for, too."""

_HINT = re.compile(HINT)
_TAKES = r"(?:(?:re-?)?revert(?:s|ed|ing)?|roll(?:s|ed|ing)?[ -]?back|back(?:s|ed|ing)?[ -]?out)"
_BRINGS = r"(?:re-?appl(?:y|ies|ied|ying)|re-?land(?:s|ed|ing)?|re-?submit(?:s|ted|ting)?|un-?revert(?:s|ed|ing)?)"
_PART = r"(?P<part>partial(?:ly)?\s+)?"
_TAG = re.compile(r"\s*\[([^\[\]]{1,80})\]:?")
_PREFIX = re.compile(r"\s*[A-Za-z][A-Za-z_-]{0,20}(?:\([^()]{1,60}\))?!?:(?=\s)")
_HEAD = re.compile(
    rf"\s*{_PART}(?:tmp\s+)?(?:(?P<takes>{_TAKES})|(?P<brings>{_BRINGS}))(?=[\s:(\"]|$)(?P<of>\s+(?:part\s+)?of\b)?[\s:]{{0,5}}",
    re.I,
)
_INNER = re.compile(rf"\b{_PART}(?P<takes>{_TAKES})\b(?P<of>)\s+(?=(?:[\w.-]+\s+){{0,3}}[(]?(?:PRs?\s+)?[#\"“])", re.I)
_TAKING_TAG = re.compile(r"(?:partial\s+)?revert(?:ed)?|roll-?back", re.I)
_BRINGING_TAG = re.compile(r"re-?land|re-?apply|re-?submit|un-?revert", re.I)
_AFTERWARDS = re.compile(rf"\s*\((?:{_BRINGS}|fix for reverted pr|retry)\)", re.I)
_OWN = re.compile(r"\s*\(#\d{1,9}\)\s*$")
_REQUESTS = re.compile(r"\s*\((?:PRs?\s+)?#\d{1,9}(?:\s{0,3}(?:,|and|&|\+)?\s{0,3}#\d{1,9}){0,7}\)\s*$", re.I)
_LAST = re.compile(r"\s#\d{1,9}\s*$")
_NUMBER = re.compile(r"#(\d{1,9})\b|/pull/(\d{1,9})\b")
_ONE = r"(?:#\d{1,9}|\d{3,9})"
_BARE = re.compile(rf"\s*(?:PRs?[\s-]+)?({_ONE}(?:\s{{0,3}}(?:,|and|&)\s{{0,3}}{_ONE}){{0,7}})\b(?!\.?\w)", re.I)
_QUOTES = {'"': '"', "“": "”", "`": "`", "'": "'", "‘": "’"}
_CUT_NUMBER = re.compile(r"\s*\((?:#\d{0,9})?\s*$")
_CUT = ("…", "...")


@dataclass(frozen=True)
class Act:
    """What a subject does to earlier changes: takes them back, or (`back`) brings them back.

    `title` is the subject that it names, as far as it stands there (`cut`: its end is missing); `requests` are the pull requests
    named for it, `mentioned` those that stand inside the title and may mean anything.
    """

    back: bool
    title: str
    cut: bool = False
    quoted: bool = False
    requests: tuple[int, ...] = ()
    mentioned: tuple[int, ...] = ()
    partial: bool = False

    @property
    def takes(self) -> bool:
        """Say whether something is gone afterwards: taking back what itself took something back brings that back."""
        inner = act_of(self.title) if self.quoted else None
        return not self.back and (inner is None or not inner.takes)


def act_of(subject: str) -> Act | None:
    """Return what *subject* takes or brings back; None where it does neither. Anything at all may stand in it."""
    text = subject[:MAX_TEXT]
    if _HINT.search(text) is None:
        return None
    own = _OWN.search(text)
    text = text[: own.start()] if own else text
    tags, head = _tags(text)
    match = _HEAD.match(text, head) or _HEAD.match(text, prefix.end() if (prefix := _PREFIX.match(text, head)) else head)
    if match:
        part = bool(match["part"]) or "part" in (match["of"] or "").lower()
        return _named(text[match.end() :], back=match["brings"] is not None, partial=part)
    if _AFTERWARDS.search(text):
        return _named(_AFTERWARDS.sub("", text), back=True, partial=False)
    for tag in tags:
        if _TAKING_TAG.fullmatch(tag) or _BRINGING_TAG.fullmatch(tag):
            rest = re.sub(r"\s*\[" + re.escape(tag) + r"\]:?", "", text, count=1)
            return _named(rest, back=_BRINGING_TAG.fullmatch(tag) is not None, partial="partial" in tag.lower())
    inner = _INNER.search(text)
    return _named(text[inner.end() :], back=False, partial=bool(inner["part"])) if inner else None


def _named(rest: str, *, back: bool, partial: bool) -> Act:
    """Return the act on what *rest* names."""
    rest = rest.strip()
    title, after, quoted = _quoted(rest)
    outside = _bare(rest) + (_numbers(after) if quoted else ())
    trailing = _REQUESTS.search(title) or (_LAST.search(title) if quoted else None)
    requests = outside or (_numbers(trailing[0]) if trailing else ())
    cut = title.endswith(_CUT) or (quoted and after == "" and not rest.endswith(_QUOTES[rest[0]]))
    return Act(
        back=back,
        title=_CUT_NUMBER.sub("", title.rstrip("….")).strip() if cut else title,
        cut=cut,
        quoted=quoted,
        requests=requests[:MAX_NAMED],
        mentioned=_numbers(title)[:MAX_NAMED],
        partial=partial,
    )


def _quoted(rest: str) -> tuple[str, str, bool]:
    """Return the title in quotes that *rest* begins with, what follows it, and True; else the whole of it.

    Back ticks and single quotes may stand around one word of a title, too: they quote one only where no word follows.
    """
    close = _QUOTES.get(rest[:1])
    if close is None:
        return rest, "", False
    end = rest.rfind(close, 1)
    if end <= 0:
        return (rest, "", False) if close in "`'’" else (rest[1:], "", True)
    after = rest[end + 1 :]
    if close in "`'’" and re.search(r"[^\W\d]", re.sub(r"\b(?:and|PRs?)\b", "", after)):
        return rest, "", False
    return rest[1:end], after, True


def _bare(rest: str) -> tuple[int, ...]:
    """Return the numbers that *rest* begins with, with or without a # before them: `PRs 1234 and 1235`."""
    match = _BARE.match(rest)
    return tuple(int(number) for number in re.findall(r"\d+", match[1])) if match else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(one or other) for one, other in _NUMBER.findall(text)))


def _tags(text: str) -> tuple[list[str], int]:
    tags: list[str] = []
    position = 0
    while match := _TAG.match(text, position):
        tags.append(match[1].strip())
        position = match.end()
    return tags, position
