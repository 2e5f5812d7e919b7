"""Pull requests that a line of a release note refers to, and the parts of the line that they stand behind.

Belongs here: the spellings `(#1, #2)`, `: #1`, links, addresses, `owner/repository#1`, and which of them are of another project
or no pull requests of this release. Does not: the layout of a note (`changelog.note_blocks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MAX_PRS = 64
"""Pull requests of one part."""
_SITE = r"https?://(?:www\.|redirect\.)?github\.com/"
_REPOSITORY = r"(?P<repo>[\w.-]{1,100}/[\w.-]{1,100})"
_PULL = re.compile(rf"{_SITE}{_REPOSITORY}/pull/(?P<number>\d{{1,7}})(?![\w-])[^\s)\]>\"']{{0,100}}", re.IGNORECASE)
_ANCHOR = re.compile(r"<a\s[^<>]{0,200}?href=[\"']([^\"'<>\s]{1,500})[\"'][^<>]{0,200}>([^<>]{0,300})</a>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\(([^()\s]{1,500})\)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_REFERENCE = re.compile(
    r"(?P<repo>(?<![\w./-])[\w.-]{1,100}/[\w.-]{1,100})#(?P<there>\d{1,7})(?!\w)|(?<![\w/&#.-])#(?P<here>\d{1,7})(?!\w)"
)
_GAP = re.compile(r"[\s,;&+/()\[\]]{0,6}(?:and\s{0,3}[(\[]?)?")
_OPENS = re.compile(r"[\s:(\[]*$")
_CLOSES = re.compile(r"\s?[)\]]*")
_ISSUE_TAG = re.compile(r"\[#\d{1,7}\](?=\s?\[)")
"""`[#11992][fix] …`: the issue that a commit was for, in TensorRT-LLM's subjects."""
_NOT_THIS = re.compile(
    r"\b(?:(?:introduced|caused|broken|added|regressed) (?:in|by)|regression (?:from|of|in)|from|after|before"
    r"|follow(?:ing|[- ]?ups?) (?:to|of|on)|issues?|fix(?:es|ed)?"
    r"|close[sd]?|resolve[sd]?|revert(?:s|ed|ing)?|since|supersedes|replaces)\s+(?:PR\s+)?$",
    re.IGNORECASE,
)
"""Right before a number without a bracket: what the change is about, not the change."""
_WHO = r"@[\w-]{1,60}(?:\[bot\])?"
_GENERATED = re.compile(rf"^(?P<title>.*) by {_WHO}(?:, {_WHO}){{0,10}} in  ?#(?P<number>\d{{1,7}}) ?$")
"""A line that GitHub wrote: the title of a pull request and, at the end, its number; other numbers are of its title."""
_PICKED = re.compile(r"\bcherry[- ]?pick(?:ed|s)?(?:\s+(?:from|of))?\s*\(?$", re.IGNORECASE)
_REVERTS = re.compile(r'\brevert\w{0,3}\s{1,3}"[^"]*$', re.IGNORECASE)
_SENTENCE = re.compile(r"\.\s(?=[A-Z])")
_HEAD = 60


@dataclass(frozen=True)
class Part:
    """A part of a line, without its references: the pull requests behind it, own ones and addresses of others'."""

    text: str
    prs: tuple[int, ...]
    urls: tuple[str, ...]


@dataclass(frozen=True)
class _Group:
    start: int
    end: int
    inner: str
    prs: tuple[int, ...]
    urls: tuple[str, ...]


def plain(text: str, repositories: tuple[str, ...]) -> str:
    """Return *text* with every link to a pull request as `#N` or, of another repository, `owner/repository#N`; no other links."""
    own = {name.lower() for name in repositories}

    def short(match: re.Match[str]) -> str:
        return f" #{match['number']} " if match["repo"].lower() in own else f" {match['repo']}#{match['number']} "

    def link(match: re.Match[str]) -> str:
        pull = _PULL.fullmatch(match[2])
        return short(pull) if pull else match[1]

    if not any(mark in text for mark in ("](", "<", "://", "[#")):
        return text
    linked = _LINK.sub(link, _ANCHOR.sub(r"[\2](\1)", _ISSUE_TAG.sub("", text)))
    return _TAG.sub(" ", _PULL.sub(short, linked))


def parts(text: str, repositories: tuple[str, ...]) -> Iterator[Part]:
    """Yield the parts of a line that `plain` returned, each with the references behind it; a line without any is one part."""
    if generated := _GENERATED.match(text):
        yield Part(_trimmed(generated["title"]), (int(generated["number"]),), ())
        return
    groups = list(_groups(text, {name.lower() for name in repositories}))
    since = 0
    for index, group in enumerate(groups):
        until = group.end
        told = list(_SENTENCE.finditer(text, since, group.start)) if index else []
        if told and _trimmed(text[since : told[-1].start()]):
            yield Part(_trimmed(text[since : told[-1].start()]), (), ())
            since = told[-1].end()
        if index + 1 == len(groups) and not _ends(text[group.end :]):
            until = len(text)
        yield Part(_trimmed(_joined(text[since : group.start], group.inner, text[group.end : until])), group.prs, group.urls)
        since = until
    rest = _trimmed(text[since:])
    if rest and (not groups or since < len(text)):
        yield Part(rest, (), ())


def _joined(*texts: str) -> str:
    """Return texts in one line, without the punctuation that a reference between them leaves over."""
    kept = [text.strip() for text in texts if text.strip(" .,;:()[]")]
    return re.sub(r" ([,;:.)])", r"\1", " ".join(kept))


def _ends(rest: str) -> bool:
    """Return whether what stands behind the last reference is another sentence, or nothing."""
    return re.match(r"\s*(?:[.;]\s|$)", rest) is not None


def _groups(text: str, own: set[str]) -> Iterator[_Group]:
    """Yield runs of references with nothing but commas and brackets between them."""
    if "#" not in text:
        return
    run: list[re.Match[str]] = []
    for match in _REFERENCE.finditer(text):
        if _skipped(text, match):
            continue
        if (
            run
            and _GAP.fullmatch(text, run[-1].end(), match.start()) is None
            and not _PICKED.search(_before(text, run[0].start()))
        ):
            yield _group(text, run, own)
            run = []
        run.append(match)
    if run:
        yield _group(text, run, own)


def _skipped(text: str, match: re.Match[str]) -> bool:
    return _NOT_THIS.search(_before(text, match.start())) is not None or _in_title_of_reverted(text, match.start())


def _in_title_of_reverted(text: str, at: int) -> bool:
    """Return whether a reference stands in the quoted subject of a reverted commit."""
    before = text[max(0, at - 300) : at]
    return before.count('"') % 2 == 1 and _REVERTS.search(before) is not None


def _before(text: str, end: int) -> str:
    return text[max(0, end - _HEAD) : end]


def _group(text: str, run: list[re.Match[str]], own: set[str]) -> _Group:
    here, there = [], []
    for match in run:
        if match["repo"] is None or match["repo"].lower() in own:
            here.append(int(match["here"] or match["there"]))
        else:
            there.append(f"https://github.com/{match['repo']}/pull/{match['there']}")
    gaps = [text[one.end() : other.start()] for one, other in pairwise(run)]
    opens = _OPENS.search(text, max(0, run[0].start() - 8), run[0].start())
    closes = _CLOSES.match(text, run[-1].end())
    return _Group(
        start=opens.start() if opens else run[0].start(),
        end=closes.end() if closes else run[-1].end(),
        inner=" ".join(gap.strip(" ()[]") for gap in gaps if _GAP.fullmatch(gap) is None),
        prs=tuple(dict.fromkeys(number for number in here if number))[:MAX_PRS],
        urls=tuple(dict.fromkeys(there))[:MAX_PRS],
    )


def _trimmed(text: str) -> str:
    return re.sub(r"^(?:[\s,;:.)\]]|(?:and|plus|or)\s)+", "", text).rstrip(" ,;([")
