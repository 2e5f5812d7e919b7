"""BM25 of a configuration's words over titles, paths and notes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.facets import Configuration, facets, words_asked_for
from changelog.similarity import FULL, Words, plain_words, words_of


def test_words_of_titles_and_paths() -> None:
    assert words_of(["[ROCm] Fused MoE (#12)", "vllm/fused_moe/gfx950.py"]) == (
        *("rocm", "fused", "moe"),
        *("vllm", "fused", "moe", "gfx950"),
    )


def test_plain_words_of_terms() -> None:
    terms = ["deep-?gemm", "sliding[ _-]?window", "kv cache", r"mi3\d\d", "moe", "g?b200"]
    assert plain_words(terms) == {"deepgemm", "slidingwindow", "kv", "cache", "moe"}


def test_what_a_configuration_asks_for_in_words() -> None:
    asked = words_asked_for(Configuration("mi355x", "kimik2.5", "int4"))
    assert {"rocm", "aiter", "mla", "moe", "kimi", "gfx950", "int4"} <= asked
    assert not asked & {"flashinfer", "hopper", "gdn", "scheduler"}
    assert words_asked_for(Configuration()) == frozenset()


def test_score_is_that_of_the_textbook() -> None:
    """BM25 with k1 1.2, b 0.75 and Lucene's idf and without its constant factor, by hand: three documents of 2, 2 and 4 words."""
    documents = [("rocm", "mla"), ("other", "thing"), ("rocm", "rocm", "other", "words")]
    mean = 8 / 3

    def part(count: int, length: int, holders: int) -> float:
        idf = math.log(1 + (3 - holders + 0.5) / (holders + 0.5))
        return idf * count / (count + 1.2 * (1 - 0.75 + 0.75 * length / mean))

    wanted = [part(1, 2, 2) + part(1, 2, 1), 0.0, part(2, 4, 2)]
    assert Words(documents).scores(["mla", "rocm", "absent"]) == pytest.approx(wanted, rel=1e-5)


def test_a_fit_is_a_share_with_its_rarest_words() -> None:
    common = [("rocm", "thing")] * 8
    fits = Words([("rocm", "mla", "decode"), *common]).fits(["rocm", "decode", "mla"])
    assert fits[0].words == ("decode", "mla", "rocm"), "by how few have them, then by name"
    assert fits[1].words == ("rocm",) and 0 < fits[1].share < fits[0].share <= 1
    score = Words([("rocm", "mla", "decode"), *common]).scores(["rocm", "decode", "mla"])[0]
    assert fits[0].share == pytest.approx(score / FULL, abs=1e-6)


@pytest.mark.parametrize("documents", [[], [()], [("a1",), ()]])
def test_nothing_in_common(documents: list[tuple[str, ...]]) -> None:
    assert [(fit.share, fit.words) for fit in Words(documents).fits(["mla"])] == [(0.0, ())] * len(documents)


words = st.sampled_from(sorted(plain_words(term for facet in facets().values() for term in facet.title))[:40])


@given(st.lists(st.lists(words, max_size=6), min_size=1, max_size=6), st.lists(words, max_size=6))
def test_order_of_the_query_does_not_matter_and_shares_are_bounded(documents: list[list[str]], query: list[str]) -> None:
    texts = [tuple(document) for document in documents]
    fits = Words(texts).fits(query)
    assert fits == Words(texts).fits(query[::-1])
    for fit, text in zip(fits, texts, strict=True):
        assert 0 <= fit.share <= 1 and set(fit.words) <= set(text) & set(query)
        assert bool(fit.words) == (fit.share > 0)
