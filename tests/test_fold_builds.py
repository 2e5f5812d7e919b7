"""Builds joined with what registries and upstream tell: order by ancestry, labels above tags, brought forward as made anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from changelog.tables import read_table
from pipelines import following
from pipelines.fold.small import whole_tables
from pipelines.verification import verify
from tests.records import row
from warehouse.events import (
    CommitLanded,
    ImageResolved,
    Payload,
    ReleasePublished,
    ResultRecorded,
    RunKey,
    RunReported,
    Source,
    event_of,
)
from warehouse.log import EventLog

NOW = datetime(2026, 3, 1, tzinfo=UTC)
START = datetime(2026, 1, 1, tzinfo=UTC)
DIGEST, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
COMMITS = [f"{number:040x}" for number in range(0xA0, 0xA8)]
LABEL = "org.opencontainers.image.revision"


def tell(log: EventLog, *payloads: Payload) -> None:
    log.append(
        event_of(payload, occurred_at=START, recorded_at=NOW, source=Source(name="t", position=str(number)))
        for number, payload in enumerate(payloads)
    )


def measured(number: int, image: str, day: int) -> tuple[Payload, Payload]:
    run = RunKey(run_source="example/fleet", run_id=str(number))
    started = (START + timedelta(days=day)).isoformat()
    return RunReported(run=run, started_at=started), ResultRecorded(
        run=run, record_format="inferencex", record=row(4, image=image)
    )


def landed() -> list[Payload]:
    """Eight commits, each the child of the one before."""
    return [
        CommitLanded(
            project="vllm",
            commit=commit,
            parents=(COMMITS[place - 1],) if place else (),
            author_date=f"2025-12-0{place + 1}T00:00:00Z",
            committer_date=f"2025-12-0{place + 1}T00:00:00Z",
            title=f"change {place}",
            pr=place + 1,
        )
        for place, commit in enumerate(COMMITS)
    ]


def resolved(reference: str, digest: str, day: int, **told: str) -> ImageResolved:
    return ImageResolved(
        image_ref=reference,
        image_digest=digest,
        seen_at=(START + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        media_type="application/vnd.oci.image.manifest.v1+json",
        manifest_digest=digest,
        **told,
    )


def builds(log: EventLog) -> pl.DataFrame:
    """Bring the tables up, and return `builds`, which must be what the log alone gives."""
    following.refresh(log)
    stored = log.store.read("builds")
    end = log.last_sequence()
    anew = whole_tables(log, end, lambda name: read_table(log, name, end))["builds"]
    assert stored.equals(anew.sort("engine", "build_order", "build_id"))
    assert following.refresh(log) == []
    return stored.sort("build_order")


def nightly(place: int) -> str:
    return f"vllm/vllm-openai:nightly-{COMMITS[place]}"


def test_commits_are_ordered_by_ancestry_whenever_they_were_measured(log: EventLog) -> None:
    for number, place in enumerate((5, 2, 7, 3)):
        tell(log, *measured(number, nightly(place), number))
        builds(log)
    assert [commit[-2:] for commit in builds(log)["commit"]] == ["a5", "a2", "a7", "a3"], "nobody knows what came first"
    tell(log, *landed())
    assert [commit[-2:] for commit in builds(log)["commit"]] == ["a2", "a3", "a5", "a7"]
    assert verify(log) == []


def test_a_release_stands_where_its_commit_does(log: EventLog) -> None:
    for number, image in enumerate((nightly(6), "vllm/vllm-openai:v0.13.0", nightly(2))):
        tell(log, *measured(number, image, number))
    tell(log, *landed(), ReleasePublished(project="vllm", version="0.13.0", evidence="anchor", branch_point=COMMITS[4]))
    assert builds(log)["tag"].to_list() == [f"nightly-{COMMITS[2]}", "v0.13.0", f"nightly-{COMMITS[6]}"]


def test_what_a_registry_tells_stands_above_the_tag(log: EventLog) -> None:
    image = "vllm/vllm-openai:v0.20.1"
    tell(log, *measured(1, image, 1))
    before = builds(log).row(0, named=True)
    assert (before["commit"], before["source"], before["image_digest"]) == (None, "release tag", None)
    tell(log, resolved(image, DIGEST, 9, commit=COMMITS[3], commit_source=LABEL, engine_version="0.20.1.dev3"))
    (after,) = builds(log).iter_rows(named=True)
    assert (after["build_id"], after["image_digest"]) == (f"tag:{image}", DIGEST)
    assert (after["engine_version"], after["commit"], after["confidence"]) == ("0.20.1.dev3", COMMITS[3], "high")
    assert after["source"] == f"registry: label {LABEL} of {DIGEST[:19]}…"
    tell(log, *measured(2, image, 20))
    (later,) = builds(log).iter_rows(named=True)
    assert (later["points"], later["stated_version"], later["commit"]) == (2, "0.20.1", COMMITS[3])


def test_a_tag_that_moved_tells_of_neither_content(log: EventLog) -> None:
    image = "vllm/vllm-openai:v0.20.1"
    tell(log, *measured(1, image, 1))
    tell(log, resolved(image, DIGEST, 0, commit=COMMITS[3], commit_source=LABEL))
    assert builds(log)["commit"].item() == COMMITS[3]
    tell(log, resolved(image, OTHER, 5, commit=COMMITS[4], commit_source=LABEL))
    (moved,) = builds(log).iter_rows(named=True)
    assert (moved["commit"], moved["image_digest"], moved["source"]) == (None, None, "release tag")
    assert verify(log) == []


def test_a_name_that_can_be_anything_is_what_it_was_only_since_it_was_looked_at(log: EventLog) -> None:
    tell(log, *measured(1, "vllm/vllm-openai:kimi-k3", 1), *measured(2, "vllm/vllm-openai:minimax-m3", 3))
    for name in ("kimi-k3", "minimax-m3"):
        tell(log, resolved(f"vllm/vllm-openai:{name}", DIGEST if name == "kimi-k3" else OTHER, 2, commit=COMMITS[1]))
    found = dict(builds(log).select("tag", "commit").iter_rows())
    assert found == {"kimi-k3": None, "minimax-m3": COMMITS[1]}


def test_a_digest_is_found_as_an_index_and_as_a_platform(log: EventLog) -> None:
    tell(log, *measured(1, f"vllm/vllm-openai:v0.20.1@{DIGEST}", 1))
    told = resolved("vllm/vllm-openai:latest", OTHER, 9, commit=COMMITS[3], commit_source="VLLM_BUILD_COMMIT")
    tell(log, told.model_copy(update={"manifest_digest": DIGEST, "engine_version": "v0.20.1-cu130"}))
    (found,) = builds(log).iter_rows(named=True)
    assert (found["commit"], found["engine_version"]) == (COMMITS[3], "0.20.1"), "a tag of an image is no version"
    assert found["source"].startswith("registry: variable VLLM_BUILD_COMMIT of sha256:1111")
