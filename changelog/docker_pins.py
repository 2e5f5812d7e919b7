"""What a Dockerfile pins: by ARG and ENV, by the image that a stage begins with, by what RUN lines install.

Within a stage that is named after an architecture (`AS gfx950`) a pin is for that alone. A pin whose switch is off in a stage is
not used there. Belongs here: this one kind of file. Does not: names (`changelog.pin_names`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from changelog.pin_names import MAX_VERSION, Pin, by_argument, dependencies, installed, packages, pinned

MAX_LINES = 20_000
MAX_LINE = 2_000
MAX_STAGES = 50

_SET = re.compile(r"\s{0,8}(?:ARG|ENV)\s{1,4}([A-Za-z_][A-Za-z0-9_]{0,60})\s{0,2}[= ]\s{0,2}[\"']?([^\s\"'#]{1,200})")
_FROM = re.compile(
    r"\s{0,8}FROM\s{1,4}(?:--\S{1,80}\s{1,4})?(?P<image>\S{1,200})(?:\s{1,4}AS\s{1,4}(?P<stage>\S{1,60}))?\s*$", re.IGNORECASE
)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]{0,60})\}?")
_ARCHITECTURE = re.compile(r"gfx[0-9a-z.-]{2,30}")
_WHEEL = re.compile(
    r"://[^\s\"']{1,400}?/([A-Za-z][A-Za-z0-9_.]{0,60})-([0-9][A-Za-z0-9.]{0,40})(?:(?:\+|%2B)[\w.]{1,40})?-[\w.-]{1,100}\.whl",
    re.I,
)
"""A wheel that is installed by its address: name, version, local version left out."""
_INSTALLED = re.compile(r"(?<![\w.-])([A-Za-z][\w-]{1,40})(?:\[[\w,-]{1,40}\])?==([0-9][\w.+]{0,40})")


def docker_pins(text: str, platform: str | None) -> dict[tuple[str, str | None], str]:
    """Return version by (dependency, platform) as a Dockerfile pins it; *platform* is the whole file's."""
    found = _Dockerfile(platform)
    for line in text.splitlines()[:MAX_LINES]:
        found.read(line[:MAX_LINE])
    return found.pins()


class _Dockerfile:
    def __init__(self, platform: str | None) -> None:
        self.platform = self.stage = platform
        self.given: dict[str, str] = {}
        self.stages: dict[str, dict[str, str]] = {}
        """Arguments of each stage that is named after an architecture."""
        self.named: dict[tuple[str, str | None], str] = {}
        self.run: dict[str, set[str]] = {}
        self.begun = False

    def read(self, line: str) -> None:
        begins, sets = _FROM.match(line), _SET.match(line)
        if begins:
            self._begin(begins["image"], (begins["stage"] or "").lower())
        elif sets and not sets[2].startswith("$"):
            self._set(sets[1], sets[2])
        elif not line.lstrip().startswith("#"):
            for name, version in _INSTALLED.findall(line) if "==" in line else ():
                self._ran(installed(), name, version)
            for name, version in _WHEEL.findall(line) if ".whl" in line else ():
                self._ran(packages(), name, version)

    def _ran(self, known: dict[str, str], name: str, version: str) -> None:
        if canonicalize_name(name) in known:
            self.run.setdefault(known[canonicalize_name(name)], set()).add(version)

    def _begin(self, image: str, stage: str) -> None:
        named = _ARCHITECTURE.fullmatch(stage) is not None and len(self.stages) < MAX_STAGES
        self.stage = stage if named else self.platform
        if named:
            self.stages.setdefault(stage, {})
        if named or not self.begun:  # the image that later stages begin with is one of these
            self._base(image)
        self.begun = True

    def _base(self, image: str) -> None:
        variables = _VARIABLE.findall(image)
        for name in variables:
            self.named.update(by_argument(name, self.given.get(name, ""), self.stage, base=True))

    def _set(self, name: str, value: str) -> None:
        self.given[name] = value
        if self.stage in self.stages:
            self.stages[self.stage][name] = value
        self.named.update(by_argument(name, value, self.stage))

    def pins(self) -> dict[tuple[str, str | None], str]:
        """Return all of it; of several versions that RUN lines choose from none is known to be the one."""
        agreed = {name: next(iter(versions)) for name, versions in self.run.items() if len(versions) == 1}
        ran = {(name, self.platform): version[:MAX_VERSION] for name, version in agreed.items() if pinned(version)}
        return dict(self._switched(ran | self.named))

    def _switched(self, pins: dict[tuple[str, str | None], str]) -> Iterator[Pin]:
        for (name, where), version in pins.items():
            states = self._states(dependencies()[name].switch)
            if where in self.stages or not states or all(state != "0" for state in states.values()):
                yield (name, where), version
                continue
            for stage in sorted(stage for stage, state in states.items() if state != "0"):
                yield (name, stage), version

    def _states(self, switch: str | None) -> dict[str, str]:
        return {stage: given[switch] for stage, given in self.stages.items() if switch in given} if switch else {}
