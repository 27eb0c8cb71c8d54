"""Ranking policies compatible with registries. Expected scores are calculated by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pytest

from gateway.errors import InvalidRequestError
from gateway.index import Candidates, VectorIndex, VectorQuery
from gateway.options import Options, SearchOptions
from gateway.plugins.rankings import policies
from gateway.runtime.vectors import unit_rows
from gateway.search import OWN_RANKINGS, CatalogRanking, Keywords, PolicyEvidence, RankedList
from gateway.testing import HashingEmbedder, TemporaryStore
from gateway.types import Entity, Filters, RankingPolicy, ToolDefinition
from graphs.lexical import Hits
from tests.conftest import OpenGateway
from tests.core.catalog.test_described_tools import GITHUB
from tests.core.search.conftest import lexical_scores
from tests.core.search.rank.test_keywords import thing
from tests.fakes import compile_snapshot, entity, names, tool

RANKINGS: Mapping[str, CatalogRanking] = {
    "hybrid": policies.Hybrid(),
    "weighted": policies.Weighted(),
    "legacy": policies.Legacy(),
    **OWN_RANKINGS,
}


def near(cosines: Sequence[float]) -> Candidates:
    rows = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines])
    return VectorIndex.of(rows).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(len(cosines), bool),
        count=200,
    )


def scores(boost: Sequence[float] = (), share: Sequence[float] = ()) -> Keywords:
    count = len(boost) or len(share)
    return Keywords(
        boost=np.asarray(boost or [0] * count, np.float32),
        share=np.asarray(share or [0] * count, np.float32),
    )


def by_position(ranked: RankedList) -> dict[int, float]:
    return dict(zip(ranked.positions.tolist(), ranked.scores.tolist(), strict=True))


def ranked(
    policy: RankingPolicy,
    words: Sequence[float],
    candidates: Candidates | None = None,
    *,
    coverage: Sequence[float] = (),
) -> dict[int, float]:
    """Rank tools that share no words with the query. *words* are their word scores."""
    catalog = [entity(tool(f"t{number}"), server="box") for number in range(len(words))]
    lexical = lexical_scores(words, coverage=coverage or [1.0] * len(words))
    return by_position(RANKINGS[policy].rank(evidence_of(catalog, lexical, candidates)))


def evidence_of(
    catalog: Sequence[Entity], lexical: Hits, candidates: Candidates | None
) -> PolicyEvidence:
    """Return evidence in which all of *catalog* is eligible."""
    everything = np.ones(len(catalog), bool)
    return PolicyEvidence(
        snapshot=compile_snapshot(catalog),
        lexical=lexical,
        candidates=candidates,
        mask=everything,
        tools=everything,
        count=100,
    )


def test_reciprocal_rank_fusion_adds_the_terms_of_all_lists() -> None:
    """With k = 60, the maximum is 2/61."""
    fused = policies.reciprocal_rank_fusion([np.asarray([0, 1, 2]), np.asarray([3, 1])], size=4)

    by_hand = {1: 1 / 62 + 1 / 62, 0: 1 / 61, 3: 1 / 61, 2: 1 / 63}
    assert list(by_hand) == fused.positions.tolist()
    np.testing.assert_allclose(fused.scores, list(by_hand.values()), rtol=1e-5)


def test_hybrid_fuses_independent_rankings() -> None:
    """An entity without a word of the query has no rank by words."""
    by_score = ranked("hybrid", [0, 0, 1], near([0.9, 0.8, 0.1]))

    assert [2, 0, 1] == list(by_score)
    np.testing.assert_allclose(
        list(by_score.values()), [1 / 61 + 1 / 63, 1 / 61, 1 / 62], rtol=1e-5
    )


def test_hybrid_ignores_entities_with_few_words_of_the_query() -> None:
    """The policy *lexical* ranks them."""
    by_chance = partial(
        ranked, words=[0, 0.2, 0.1], candidates=near([0.9, 0.8, 0.1]), coverage=[0.9, 0.1, 0.5]
    )

    by_score = by_chance("hybrid")

    assert [2, 0, 1] == list(by_score)
    assert pytest.approx(1 / 61 + 1 / 63) == by_score[2]
    assert [1, 2] == list(by_chance("lexical"))


def test_legacy_returns_at_most_three_entities_of_a_kind() -> None:
    assert [0, 1, 2] == list(ranked("legacy", [0, 0, 0, 0], near([0.9, 0.8, 0.7, 0.6])))


def test_weighted_score_is_on_an_absolute_scale() -> None:
    """0.6 x cosine + 0.4 x share. Negative cosines count as 0."""
    words = scores(share=[0, 0.5, 1])

    by_score = by_position(policies.weighted(near([0.9, 0.5, -0.5]), words, np.ones(3, bool)))

    by_hand = {0: 0.54, 1: 0.3 + 0.2, 2: 0.4}
    assert list(by_hand) == list(by_score)
    np.testing.assert_allclose(list(by_score.values()), list(by_hand.values()), rtol=1e-5)


def test_legacy_score_adds_a_tenth_of_the_boost_up_to_one() -> None:
    """(cosine + 1) / 2 + 0.1 x boost."""
    words = scores(boost=[1, 5, 0, 0])

    by_score = by_position(policies.legacy(near([0.9, 0.5, -0.5, 0.2]), words, np.ones(4, bool)))

    by_hand = {0: 1.0, 1: 1.0, 3: 0.6, 2: 0.25}
    assert list(by_hand) == list(by_score)
    np.testing.assert_allclose(list(by_score.values()), list(by_hand.values()), rtol=1e-5)


def test_legacy_score_without_vectors_is_a_share_of_the_maximum_boost() -> None:
    """5 + 3 + 2 + 1.5 + 1 + 1 = 13.5, with or without metadata. At most 1."""
    words = scores(boost=[10, 0, 20])

    by_score = by_position(policies.legacy(None, words, np.ones(3, bool)))

    assert {2: 1.0, 0: pytest.approx(10 / 13.5)} == by_score


def test_entity_without_a_vector_is_ranked_by_words() -> None:
    """The second entity lacks a vector. Its *legacy* score is 0.1 x 4; a cosine of 0 would add 0.5.
    Its *hybrid* score is 1/61 for its words alone.
    """
    rows = np.asarray([[1, 0], [0, 0], [-1, 0]], np.float32)
    half = VectorIndex.of(rows, present=np.asarray([True, False, True])).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]), mask=np.ones(3, bool), count=200
    )

    by_score = by_position(policies.legacy(half, scores(boost=[0, 4, 0]), np.ones(3, bool)))
    fused = ranked("hybrid", [0, 1, 0], half)

    assert {0: 1.0, 1: pytest.approx(0.4), 2: 0.0} == by_score
    # The third entity is the second of two by vectors.
    assert {0: pytest.approx(1 / 61), 1: pytest.approx(1 / 61), 2: pytest.approx(1 / 62)} == fused


def test_policies_rank_by_words_alone_without_vectors() -> None:
    """Entities without a word of the query are not ranked."""
    words = scores(share=[0, 0.9, 0.1])

    assert [1, 2] == policies.weighted(None, words, np.ones(3, bool)).positions.tolist()
    assert [1, 2] == list(ranked("hybrid", [0, 0.9, 0.1]))
    assert [1, 2] == list(ranked("lexical", [0, 0.9, 0.1]))


def test_explanation_of_a_fused_score_has_its_ranks() -> None:
    """Second of three by vectors and first of one by words: 1/62 + 1/61. The boost counts words of
    the catalog, here none.
    """
    catalog = [entity(tool(f"t{number}"), server="box") for number in range(3)]
    evidence = evidence_of(
        catalog, lexical_scores([0, 1, 0], coverage=[0, 1, 0]), near([0.9, 0.8, 0.1])
    )

    scorings = RANKINGS["hybrid"].explain(evidence, RANKINGS["hybrid"].rank(evidence))

    assert [1, 0, 2] == list(scorings)
    assert (2, 1, 0.0) == (
        scorings[1].vector_rank,
        scorings[1].keyword_rank,
        scorings[1].text_boost,
    )
    assert pytest.approx(1 / 62 + 1 / 61, rel=1e-5) == scorings[1].rrf_score == scorings[1].score
    assert (3, None) == (scorings[2].vector_rank, scorings[2].keyword_rank)
    assert pytest.approx(0.1, abs=1e-6) == scorings[2].vector


def test_explanation_of_an_additive_score_has_no_ranks() -> None:
    catalog = [thing("send_mail", "Send a letter.")]
    index = compile_snapshot(catalog).lexical
    lexical = index.match("send")

    for candidates, score in ((near([0.2]), 1.0), (None, 10 / 13.5)):
        evidence = evidence_of(catalog, lexical, candidates)
        (scoring,) = (
            RANKINGS["legacy"].explain(evidence, RANKINGS["legacy"].rank(evidence)).values()
        )

        # (0.2 + 1) / 2 + 0.1 x (5 + 3 + 2), at most 1.
        assert pytest.approx(score) == scoring.score
        assert 10.0 == scoring.text_boost
        assert (None, None, None) == (scoring.rrf_score, scoring.vector_rank, scoring.keyword_rank)


_FAR_OFF = "book a quiet table for seven hungry people beside the old weather station tonight"


async def test_ranking_policies_report_low_confidence_but_keep_the_matches(
    open_gateway: OpenGateway,
) -> None:
    """A person who browses a catalog can judge the matches, while a model takes what it gets."""
    tools = (tool("get_weather", "Tell the weather."), tool("send_mail", "Send an e-mail."))
    gateway = open_gateway(
        tools,
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=SearchOptions(no_match_confidence=1.0, min_confidence=1.0)),
    )

    for ranking in ("hybrid", "weighted", "lexical"):
        result = await gateway.search(_FAR_OFF, ranking=ranking)
        assert "get_weather" == result.matches[0].name
        assert ["low_confidence_results"] == [note.code for note in result.diagnostics]
    emptied = await gateway.search(_FAR_OFF)
    assert ((), ["no_match"]) == (emptied.matches, [note.code for note in emptied.diagnostics])


async def test_search_logs_scores_only_if_explain_is_set(
    open_gateway: OpenGateway, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines have the format of registries and omit the query."""
    gateway = open_gateway(
        [tool("get_weather", "Tell the weather."), tool("send_mail", "Send an e-mail.")],
        strategy="auto",
        embedder=HashingEmbedder(),
    )
    caplog.set_level("DEBUG", logger="gateway.search")
    silent = await gateway.search("weather", ranking="hybrid")

    assert ((), []) == (silent.scoring, caplog.records)

    fused = await gateway.search("weather", ranking="hybrid", explain=True)
    added = await gateway.search("weather", ranking="legacy", explain=True)

    # Both have a vector and one has the word: 1/61 + 1/61. Boost: 5 for the path, 3 for the name, 2
    # for the description.
    lines = [record.getMessage() for record in caplog.records]
    assert "RRF inputs: 2 vector-ranked docs, 1 keyword-ranked docs" == lines[0]
    assert "RRF score for 'get_weather' (type=tool): 0.032787, text_boost=10.0" == lines[1]
    assert "RRF score for 'send_mail' (type=tool): 0.016129, text_boost=0.0" == lines[2]
    assert lines[3].startswith("Score for 'get_weather' (type=tool): vector=")
    assert lines[3].endswith("text_boost=10.0, boost_contrib=1.0000, final=1.0000")
    assert len(fused.matches) == len(fused.scoring)
    assert [item.vector for item in fused.scoring] == [
        pytest.approx(match.evidence.vector) for match in added.matches
    ]
    assert () == (await gateway.search("weather", explain=True)).scoring


async def test_search_accepts_a_ranking_and_refuses_an_unknown_one(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())

    plain = await gateway.search("send an e-mail")
    hybrid = await gateway.search("send an e-mail", ranking="hybrid")

    assert {"send_email"} == {names(plain)[0], names(hybrid)[0]}
    assert hybrid.matches[0].score == pytest.approx(2 / 61)
    with pytest.raises(InvalidRequestError, match="strategy, hybrid"):
        await gateway.search("send an e-mail", ranking="best")  # type: ignore[arg-type]


async def test_described_server_is_boosted_by_its_tools(open_gateway: OpenGateway) -> None:
    """1 for each tool with the word."""
    gateway = open_gateway(vector_store=None, store=TemporaryStore())
    await gateway.catalog.put(GITHUB)
    servers = Filters(kinds=frozenset({"server"}))

    boosted = await gateway.search("issue", ranking="legacy", filters=servers, explain=True)

    assert [GITHUB.id] == [match.id for match in boosted.matches]
    # The word "issue" is in one tool and in none of the server's fields that registries count.
    assert 1.0 == boosted.scoring[0].text_boost
    assert pytest.approx(1 / 13.5) == boosted.matches[0].score
