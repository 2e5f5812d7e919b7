"""What is known to differ, and what that allows us to say."""

import pytest

from pipelines.detect.night import detect
from tests.fleet import curve, points


def difference(first, second):
    old = {"build": "A", "day": 0, **first}
    new = {"build": "A", "day": 1, "speed": 0.9, **second}
    (row,) = detect(points(curve(**old), curve(**new))).diffs.to_dicts()
    assert row["size_pct"] == pytest.approx(-10)
    return row


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


def test_words_for_a_build_and_for_the_search_space():
    row = difference({"cells": (4, 8, 16)}, {"build": "B", "cells": (4, 8, 128)})
    assert row["change_detail"] == ["build: vllm/vllm-openai:vA → vllm/vllm-openai:vB", "concurrencies: gained 128; lost 16"]
    assert (row["cells"], row["cells_total"]) == (2, 4)


def test_a_stranger_cannot_make_the_words_long():
    row = difference({"recipe": "a" * 5000}, {"recipe": "b" * 5000})
    assert len(row["change_detail"][0]) < 200
