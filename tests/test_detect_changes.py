"""What is known to differ, and what that allows us to say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.detect.baseline import baselines
from pipelines.detect.changes import differences
from pipelines.detect.night import detect
from pipelines.detect.observations import observe
from tests.fleet import curve, points, quiet

TOOL = {"values": {"record_format": "aiperf-early"}}


def sides(first, second):
    return points(curve(**{"build": "A", "day": 0, **first}), curve(**{"build": "A", "day": 1, "speed": 0.9, **second}))


def found_between(frame):
    """Return the change set of the last observation of the only curve."""
    (history,) = observe(frame, ("hardware", "engine")).values()
    return differences(history[-1], baselines(history)[-1])


def difference(first, second):
    """Return the row of `diffs` with its change set; the attribution is that of the comparison, flagged or not."""
    frame = sides(first, second)
    (row,) = detect(frame).diffs.to_dicts()
    assert row["size_pct"] == pytest.approx(-10)
    found = found_between(frame)
    assert (row["change_set"], row["change_detail"]) == (list(found.names), list(found.details))
    assert row["attribution"] in ((found.attribution,) if row["flagged"] else (None,))
    return {**row, "attribution": found.attribution}


@pytest.mark.parametrize(
    ("first", "second", "names", "attribution"),
    [
        ({}, {}, [], "environment"),
        ({}, {"build": "B"}, ["build"], "engine"),
        ({"recipe": "cafe"}, {"recipe": "beef"}, ["recipe"], "recipe"),
        ({}, {"checkpoint": "other"}, ["checkpoint"], "checkpoint"),
        ({}, {"label": "mi355x-tw_0"}, ["environment"], "environment"),
        ({}, {"cells": (4, 8, 16)}, ["search_space"], "environment"),
        # Several.
        ({"recipe": "cafe"}, {"build": "B", "recipe": "beef"}, ["build", "recipe"], "mixed"),
        ({}, {"build": "B", "checkpoint": "other"}, ["build", "checkpoint"], "mixed"),
        ({}, {"build": "B", "label": "mi355x-tw_0"}, ["build", "environment"], "mixed"),
        # Another search space moves no cell.
        ({}, {"build": "B", "cells": (4, 8, 16, 128)}, ["build", "search_space"], "engine"),
        ({"recipe": "cafe"}, {"recipe": "beef", "cells": (4, 8, 16)}, ["recipe", "search_space"], "recipe"),
        # What one side does not record is not known to differ.
        ({}, {"recipe": "beef"}, [], "environment"),
        ({"recipe": "cafe"}, {"build": "B"}, ["build"], "engine"),
        # A build that is not recorded cannot be blamed or cleared.
        ({"build": ""}, {"build": "B"}, ["build"], "unknown"),
        ({}, {"build": ""}, ["build"], "unknown"),
        ({"build": ""}, {"build": ""}, [], "unknown"),
        # The number of the single runner is no difference.
        ({"label": "mi355x-amd_0"}, {"label": "mi355x-amd_1"}, [], "environment"),
        ({"label": "mi355x-amd_0"}, {"build": "B", "label": "mi355x-amd_12"}, ["build"], "engine"),
        ({"label": "b200"}, {"label": "b200-trt"}, ["environment"], "environment"),
        ({"label": "h200-cw_00"}, {"label": "h200-cw_01"}, [], "environment"),
        ({"label": "h200-cw_00"}, {"label": "h200-dgxc-slurm_11"}, ["environment"], "environment"),
        # A runner of a cluster, and the cluster that was asked for.
        ({"label": "b300-nv_3"}, {"label": "cluster:b300-nv"}, [], "environment"),
        ({"label": "cluster:b300-nv"}, {"label": "cluster:b300-dgxc"}, ["environment"], "environment"),
        # Another client; what an API answers was measured by the client of the artifacts.
        (TOOL, {"values": {"record_format": "aiperf"}}, ["harness"], "harness"),
        (TOOL, {"build": "B", "values": {"record_format": "aiperf"}}, ["build", "harness"], "mixed"),
        ({"values": {"record_format": "inferencex-api"}}, {"values": {"record_format": "inferencex"}}, [], "environment"),
    ],
)
def test_attribution(first, second, names, attribution):
    row = difference(first, second)
    assert (row["change_set"], row["attribution"]) == (names, attribution)
    assert len(row["change_detail"]) == len(names)


def test_a_tag_that_moved_is_a_build_and_is_said():
    row = difference({"digest": "a"}, {"digest": "b"})
    assert (row["change_set"], row["attribution"], row["same_build"]) == (["build"], "engine", False)
    assert row["change_detail"] == ["build: the tag vllm/vllm-openai:vA moved, sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb"]


def test_another_version_under_one_tag_is_a_build_that_moved():
    row = difference({"values": {"engine_version": "0.91.0.dev1"}}, {"values": {"engine_version": "0.91.0.dev2"}})
    assert (row["change_set"], row["attribution"]) == (["build"], "engine")
    assert row["change_detail"] == ["build: vllm/vllm-openai:vA moved, version 0.91.0.dev1 → 0.91.0.dev2"]


@pytest.mark.parametrize("version", [None, "A"])
def test_a_version_that_is_not_told_or_the_same_moves_nothing(version):
    assert difference({}, {"values": {"engine_version": version}})["attribution"] == "environment"


def test_a_digest_holds_one_version_whatever_is_said():
    row = difference({"digest": "a"}, {"digest": "a", "values": {"engine_version": "B"}})
    assert (row["change_set"], row["attribution"]) == ([], "environment")


def test_words_for_the_client():
    row = difference(TOOL, {"values": {"record_format": "aiperf"}})
    assert row["change_detail"] == ["harness: aiperf-early → aiperf"]


def test_rounds_of_mlperf_have_their_own_harness():
    rounds = [{"run_source": "mlcommons", "run_id": name, "record_format": "mlperf"} for name in ("v3.1", "v4.0")]
    row = difference(*({"values": told} for told in rounds))
    assert (row["change_detail"], row["attribution"]) == (["harness: mlperf v3.1 → mlperf v4.0"], "harness")


@pytest.mark.parametrize(
    ("first", "second", "repeat"),
    [
        ({}, {}, True),
        ({}, {"build": "B"}, False),
        ({"build": ""}, {"build": ""}, False),
        ({"recipe": "cafe"}, {}, True),
        ({"recipe": "cafe"}, {"recipe": "beef"}, False),
        ({"label": "cluster:b300-nv"}, {"label": "b300-nv_1"}, True),
        (TOOL, {"values": {"record_format": "aiperf"}}, False),
        ({}, {"values": {"engine_version": "A.1"}}, False),
        ({"digest": "a"}, {"digest": "a", "values": {"engine_version": "A.1"}}, True),
    ],
)
def test_repeats_agree_with_the_change_set(first, second, repeat):
    (history,) = observe(sides(first, second), ("hardware", "engine")).values()
    assert history[0].repeats(history[1]) is history[1].repeats(history[0]) is repeat


SIDE = st.fixed_dictionaries(
    {
        "build": st.sampled_from(["A", "B", ""]),
        "digest": st.sampled_from([None, "a", "b"]),
        "recipe": st.sampled_from([None, "cafe", "beef"]),
        "checkpoint": st.sampled_from(["one", "two"]),
        "label": st.sampled_from(["b300-nv_0", "cluster:b300-nv", "b300-dgxc_0"]),
        "values": st.fixed_dictionaries({"record_format": st.sampled_from(["inferencex", "aiperf"])}),
    }
)


@settings(max_examples=12)
@given(SIDE, SIDE)
def test_either_order_gives_the_same_set_and_nothing_blames_one_image(first, second):
    found, back = (found_between(sides(*both)) for both in ((first, second), (second, first)))
    assert (found.names, found.attribution) == (back.names, back.attribution)
    assert len(found.details) == len(found.names)
    assert found.attribution != "engine" or found.names == ("build",)
    if first == second:
        assert found.attribution in ("environment", "unknown")


def test_one_digest_under_two_tags_is_one_build():
    row = difference({"digest": "a"}, {"build": "B", "digest": "a"})
    assert (row["change_set"], row["attribution"], row["same_build"]) == ([], "environment", True)


@pytest.mark.parametrize(("first", "second"), [({}, {"digest": "a"}), ({"digest": "a"}, {})])
def test_a_tag_with_and_without_its_digest_may_be_one_build(first, second):
    row = difference(first, second)
    assert (row["change_set"], row["attribution"]) == (["build"], "unknown")
    assert "may be the same" in row["change_detail"][0]


def test_a_digest_without_a_tag_may_be_any_tag_of_its_repository():
    bare = {
        "image_ref": f"vllm/vllm-openai@sha256:{'a' * 64}",
        "image_digest": f"sha256:{'a' * 64}",
        "build_id": f"digest:sha256:{'a' * 64}",
    }
    assert difference({}, {"values": bare})["attribution"] == "unknown"
    elsewhere = {**bare, "image_ref": f"vllm/other@sha256:{'a' * 64}"}
    assert difference({}, {"values": elsewhere})["attribution"] == "engine"


def named(image=None, version=None, digest=None):
    """Return the columns of a build as `pipelines.fold` makes them: by digest, tag or version, whatever is told."""
    sha = f"sha256:{digest * 64}" if digest else None
    build = f"digest:{sha}" if sha else f"tag:{image}" if image else f"version:vllm/{version}"
    return {"build_id": build, "image_ref": image, "image_digest": sha, "engine_version": version}


@pytest.mark.parametrize(
    ("first", "second", "attribution"),
    [
        # An image here, its version there; a version in two spellings.
        (named("vllm/vllm-openai:v0.24.0", "0.24.0"), named(version="0.24.0"), "unknown"),
        (named("vllm/vllm-openai:v0.24.0", "0.24.0"), named(version="0.25.0"), "engine"),
        (named(version="0.24.0"), named(version="v0.24.0"), "unknown"),
        (named(version="0.24.0"), named(version="0.24.0+cu129"), "unknown"),
        (named(version="0.24"), named(version="0.24.0"), "unknown"),
        (named(version="0.24.0"), named(version="0.24.1"), "engine"),
        (named(digest="a", version="0.24.0"), named(version="0.24.0"), "unknown"),
        # A tag that can be any version, with and without a digest beside it.
        (named("vllm/vllm-openai:latest"), named("vllm/vllm-openai:v0.11.2"), "unknown"),
        (named("vllm/vllm-openai:latest", digest="a"), named("vllm/vllm-openai:v0.9.1"), "unknown"),
        (named("vllm/vllm-openai:latest", "0.9.0"), named("vllm/vllm-openai:v0.9.1", "0.9.1"), "engine"),
        (named("vllm/vllm-openai:v0.9.0", digest="a"), named("vllm/vllm-openai:v0.9.1"), "engine"),
        (named("vllm/vllm-openai:latest", digest="a"), named("vllm/vllm-openai:latest", digest="b"), "engine"),
        # One reference in two spellings.
        (named("vllm/vllm-openai"), named("vllm/vllm-openai:latest"), "unknown"),
        (named("registry-1.docker.io/vllm/vllm-openai:v0.11.2"), named("vllm/vllm-openai:v0.11.2"), "unknown"),
        (named("vllm/vllm-openai:latest"), named("rocm/vllm:latest"), "engine"),
    ],
)
def test_one_image_under_two_names_is_neither_cleared_nor_blamed(first, second, attribution):
    for old, new in ((first, second), (second, first)):
        assert difference({"values": old}, {"values": new})["attribution"] == attribution


def test_words_for_a_build_and_for_the_search_space():
    row = difference({"cells": (4, 8, 16)}, {"build": "B", "cells": (4, 8, 128)})
    assert row["change_detail"] == ["build: vllm/vllm-openai:vA → vllm/vllm-openai:vB", "concurrencies: gained 128; lost 16"]
    assert (row["cells"], row["cells_total"]) == (2, 4)


def test_the_search_space_is_that_of_the_pool():
    # The standing run has two cells; a repeat of it has the rest, so that nothing was gained.
    frame = points(curve("A", 0), curve("A", 1, cells=(4, 8)), curve("B", 2))
    assert found_between(frame).names == ("build",)
    assert found_between(points(curve("A", 0), curve("A", 1, cells=(4, 8)), curve("B", 2, cells=(4, 8)))).details[1:] == (
        "concurrencies: lost 16, 32, 64",
    )


def test_what_is_not_flagged_is_attributed_to_nothing():
    rows = detect(points(*quiet(), curve("A", 0), curve("B", 1, speed=0.99), curve("C", 2, speed=0.8))).diffs
    named = dict(rows.filter(isl=1024).select("to_engine_version", "attribution").iter_rows())
    assert named == {"B": None, "C": "engine"}
    assert rows.filter(~rows["flagged"])["attribution"].is_null().all()


def test_a_stranger_cannot_make_the_words_long():
    row = difference({"recipe": "a" * 5000}, {"recipe": "b" * 5000})
    assert len(row["change_detail"][0]) < 200
