"""What a build ran on: the pins of its release, else those that main had at its commit, for one accelerator where it is known.

Belongs here: rows of `dependencies` to one version a dependency, for one end of a range. Does not: comparing two ends
(`changelog.moves`), reading pins out of a tree (`changelog.pins`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
from packaging.version import InvalidVersion, Version

from changelog.anchors import Anchor
from changelog.facets import Configuration, registry, vendor_of
from changelog.pin_files import pin_files
from changelog.pin_names import Key
from changelog.upstream import Upstream
from warehouse import vocabulary

NOTHING = "none"
"""Version of a dependency that is not pinned."""
TOLD = ("support matrix", "release notes")
"""Evidence that names some of what a version carries, never all."""
VENDORS = ("nvidia", "amd")
_ROCM = re.compile(r"rocm-?v?(\d)[.]?(\d)[.]?(\d)", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True)
class Pinned:
    """What one build ran on, by (dependency, platform), and how it is known. `whole`: what is not here is not pinned.

    `near`: it is not known of this build, but of an earlier release of its line.
    """

    pins: dict[Key, str]
    how: str
    whole: bool = True
    near: bool = False


def pinned_at(upstream: Upstream, anchor: Anchor) -> Pinned:
    """Return what the build at one end of a range pins; nothing where that is not known."""
    own = upstream.dependencies.filter(pl.col("project") == upstream.project.name)
    exact = own.filter(pl.col("version") == anchor.version) if anchor.version and anchor.confidence != "low" else own.head(0)
    of_tree = exact.filter(~pl.col("evidence").is_in(TOLD))
    if not of_tree.is_empty():
        return Pinned(_table(of_tree), f"pinned by {anchor.version}")
    number = upstream.history.index.get(anchor.commit or "")
    on_main = _table(_before(upstream, own, number)) if number is not None else {}
    if number is not None and on_main:
        return Pinned(on_main, _as_of(upstream, number))
    if not exact.is_empty():
        return Pinned(_table(exact), f"{anchor.version} by its {', '.join(sorted(set(exact['evidence'])))}", whole=False)
    return _near(own, anchor.version) or Pinned({}, "what it pins is not known", whole=False)


def _near(own: pl.DataFrame, version: str | None) -> Pinned | None:
    """Return the pins of the last earlier release with the same two leading numbers; a build after it may pin something else."""
    wanted = _version(version or "")
    if wanted is None:
        return None
    known = {name: parsed for name in own["version"].unique().to_list() if (parsed := _version(name)) is not None}
    earlier = [(parsed, name) for name, parsed in known.items() if parsed < wanted and parsed.release[:2] == wanted.release[:2]]
    if not earlier:
        return None
    name = max(earlier)[1]
    how = f"what {version} pins is not known; {name} is the last release of its line before it whose pins are"
    return Pinned(_table(own.filter(pl.col("version") == name)), how, whole=False, near=True)


def _as_of(upstream: Upstream, number: int) -> str:
    last = upstream.history.main[upstream.history.main_places[number]]
    left = "" if last == number else f", where {upstream.history.hashes[number][:9]} left it"
    return f"pinned on main as of {upstream.history.hashes[last][:9]}{left}"


def _before(upstream: Upstream, own: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return what main pinned when a commit landed: of each file the last change that the commit holds, oldest first."""
    index, places = upstream.history.index, upstream.history.main_places
    place = places[number]
    numbers = [index.get(version) for version in own["version"].to_list()]
    held = [known is not None and 0 <= places[known] <= place for known in numbers]
    rows = own.with_columns(pl.Series("number", numbers, pl.Int64)).filter(pl.Series(held, dtype=pl.Boolean))
    return rows.sort("number", "evidence", maintain_order=True).drop("number")


def _table(rows: pl.DataFrame) -> dict[Key, str]:
    """Return the last version by dependency and platform; of several files that pin it the first of `pins.toml` rules."""
    names: list[str] = rows["project"].unique().to_list()
    place = {file.path: number for name in names for number, file in enumerate(pin_files(name))}
    by_file: dict[tuple[Key, str], str] = {}
    for row in rows.iter_rows(named=True):
        by_file[(row["dependency"], row["platform"]), row["evidence"]] = row["dependency_version"]
    table: dict[Key, str] = {}
    for (key, _file), version in sorted(by_file.items(), key=lambda one: (place.get(one[0][1], len(place)), str(one))):
        if version != NOTHING:
            table.setdefault(key, version)
    return table


def run_by(pinned: Pinned, configuration: Configuration | None, image: str) -> dict[str, dict[str | None, str]]:
    """Return, by dependency, the version for each platform that the accelerator of a configuration may run; often there is one.

    A platform of its own architecture rules over its vendor's, and that over none. Of stages for several ROCm versions the one
    that the name of the *image* holds. Where no accelerator is told, all platforms are returned.
    """
    vendor = vendor_of(configuration) if configuration else None
    by_name: dict[str, dict[str | None, str]] = {}
    for (name, platform), version in sorted(pinned.pins.items(), key=str):
        by_name.setdefault(name, {})[platform] = version
    if configuration is None or vendor is None:
        return by_name
    target = str(vocabulary.entry("hardware", configuration.hardware or "").get("target") or "")
    chosen = {name: _chosen(name, versions, vendor, target, image) for name, versions in by_name.items()}
    return {name: versions for name, versions in chosen.items() if versions}


def _chosen(name: str, versions: dict[str | None, str], vendor: str, target: str, image: str) -> dict[str | None, str]:
    own = [platform for platform in versions if platform is not None and platform.partition("-")[0] == target]
    if own:
        return {platform: versions[platform] for platform in _stages(own, image)}
    if vendor in versions:
        return {vendor: versions[vendor]}
    wanted = registry()["dependency"].get(name, {}).get("vendor")
    return {None: versions[None]} if None in versions and wanted in (None, vendor) else {}


def _stages(platforms: list[str], image: str) -> list[str]:
    """Return which stages of one architecture an image is built from: `gfx950-rocm720` where its name says rocm720."""
    named = _ROCM.search(image)
    if named is None:
        return platforms
    wanted = [platform for platform in platforms if platform.endswith(f"-rocm{''.join(named.groups())}")]
    return wanted or [platform for platform in platforms if "-rocm" not in platform]


def only_stage(platforms: Iterable[str | None], other: Pinned, image: str) -> bool:
    """Say whether a pin is there because of stages alone that *other* has not, and nothing says that *image* is one of them.

    A Dockerfile that can also build for ROCm 7.2 moved no image for 7.0.
    """
    known = {platform for _name, platform in other.pins}
    fresh = [platform for platform in platforms if platform is not None and "-" in platform and platform not in known]
    return bool(fresh) and _ROCM.search(image) is None


def same(one: str, other: str) -> bool:
    """Say whether two pins are one: spelled alike, the same version, or one commit cut short."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if _COMMIT.fullmatch(short) and _COMMIT.fullmatch(long) and not short.isdecimal():
        return long.startswith(short)
    return _version(one) is not None and _version(one) == _version(other)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def platforms_of(keys: Iterable[str | None]) -> str | None:
    """Return the platforms of a move as one text, or None."""
    return ", ".join(dict.fromkeys(name for name in keys if name)) or None
