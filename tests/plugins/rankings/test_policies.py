"""The ranking policies of registries, by hand: fusion, degradation, explanations."""

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
    """Rank tools that share no word with the query; *words* are their scores."""
    catalog = [entity(tool(f"t{number}"), server="box") for number in range(len(words))]
    lexical = lexical_scores(words, coverage=coverage or [1.0] * len(words))
    return by_position(RANKINGS[policy].rank(evidence_of(catalog, lexical, candidates)))


def evidence_of(
    catalog: Sequence[Entity], lexical: Hits, candidates: Candidates | None
) -> PolicyEvidence:
    """Put evidence together, all of *catalog* eligible."""
    everything = np.ones(len(catalog), bool)
    return PolicyEvidence(
        snapshot=compile_snapshot(catalog),
        lexical=lexical,
        candidates=candidates,
        mask=everything,
        tools=everything,
        count=100,
    )


def test_reciprocal_ranks_add_up() -> None:
    """By hand, k = 60: what is in both lists before what leads one; 2/61 is the most."""
    fused = policies.reciprocal_rank_fusion([np.asarray([0, 1, 2]), np.asarray([3, 1])], size=4)

    by_hand = {1: 1 / 62 + 1 / 62, 0: 1 / 61, 3: 1 / 61, 2: 1 / 63}
    assert list(by_hand) == fused.positions.tolist()
    np.testing.assert_allclose(fused.scores, list(by_hand.values()), rtol=1e-5)


def test_hybrid_fuses_lists_that_are_ranked_independently() -> None:
    """An entity without a word of the query has no rank by words."""
    found = ranked("hybrid", [0, 0, 1], near([0.9, 0.8, 0.1]))

    assert [2, 0, 1] == list(found)
    np.testing.assert_allclose(list(found.values()), [1 / 61 + 1 / 63, 1 / 61, 1 / 62], rtol=1e-5)


def test_words_that_are_shared_by_chance_have_no_rank_in_hybrid() -> None:
    """By words alone they have one."""
    by_chance = partial(
        ranked, words=[0, 0.2, 0.1], candidates=near([0.9, 0.8, 0.1]), coverage=[0.9, 0.1, 0.5]
    )

    found = by_chance("hybrid")

    assert [2, 0, 1] == list(found)
    assert pytest.approx(1 / 61 + 1 / 63) == found[2]
    assert [1, 2] == list(by_chance("lexical"))


def test_legacy_lists_three_of_a_kind() -> None:
    """Whatever is left out."""
    assert [0, 1, 2] == list(ranked("legacy", [0, 0, 0, 0], near([0.9, 0.8, 0.7, 0.6])))


def test_weighted_ranks_on_absolute_scales() -> None:
    """0.6 x cosine + 0.4 x share; a negative cosine is none."""
    words = scores(share=[0, 0.5, 1])

    found = by_position(policies.weighted(near([0.9, 0.5, -0.5]), words, np.ones(3, bool)))

    by_hand = {0: 0.54, 1: 0.3 + 0.2, 2: 0.4}
    assert list(by_hand) == list(found)
    np.testing.assert_allclose(list(found.values()), list(by_hand.values()), rtol=1e-5)


def test_legacy_adds_a_tenth_of_the_boost_and_stops_at_one() -> None:
    """(cosine + 1) / 2 + 0.1 x boost."""
    words = scores(boost=[1, 5, 0, 0])

    found = by_position(policies.legacy(near([0.9, 0.5, -0.5, 0.2]), words, np.ones(4, bool)))

    by_hand = {0: 1.0, 1: 1.0, 3: 0.6, 2: 0.25}
    assert list(by_hand) == list(found)
    np.testing.assert_allclose(list(found.values()), list(by_hand.values()), rtol=1e-5)


def test_legacy_without_vectors_is_the_boost_of_the_most_there_is() -> None:
    """5 + 3 + 2 + 1.5 + 1 + 1 = 13.5, whether the catalog has metadata or not; never above 1."""
    words = scores(boost=[10, 0, 20])

    found = by_position(policies.legacy(None, words, np.ones(3, bool)))

    assert {2: 1.0, 0: pytest.approx(10 / 13.5)} == found


def test_what_has_no_vector_is_ranked_by_its_words() -> None:
    """The second row is none: 0.1 x 4 in *legacy*, where a cosine of 0 would earn 0.5 more; and in
    *hybrid* it has no rank by vectors, 1/61 for its words alone."""
    rows = np.asarray([[1, 0], [0, 0], [-1, 0]], np.float32)
    half = VectorIndex.of(rows, present=np.asarray([True, False, True])).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]), mask=np.ones(3, bool), count=200
    )

    found = by_position(policies.legacy(half, scores(boost=[0, 4, 0]), np.ones(3, bool)))
    fused = ranked("hybrid", [0, 1, 0], half)

    assert {0: 1.0, 1: pytest.approx(0.4), 2: 0.0} == found
    # By vectors the third is the second of two.
    assert {0: pytest.approx(1 / 61), 1: pytest.approx(1 / 61), 2: pytest.approx(1 / 62)} == fused


def test_without_vectors_words_rank_alone() -> None:
    """What holds none is not ranked."""
    words = scores(share=[0, 0.9, 0.1])

    assert [1, 2] == policies.weighted(None, words, np.ones(3, bool)).positions.tolist()
    assert [1, 2] == list(ranked("hybrid", [0, 0.9, 0.1]))
    assert [1, 2] == list(ranked("lexical", [0, 0.9, 0.1]))


def test_a_fused_score_is_explained_by_its_ranks() -> None:
    """By hand: second of three by vectors, first of one by words, 1/62 + 1/61; the boost is of the
    words that the catalog really holds, here none."""
    catalog = [entity(tool(f"t{number}"), server="box") for number in range(3)]
    evidence = evidence_of(
        catalog, lexical_scores([0, 1, 0], coverage=[0, 1, 0]), near([0.9, 0.8, 0.1])
    )

    found = RANKINGS["hybrid"].explain(evidence, RANKINGS["hybrid"].rank(evidence))

    assert [1, 0, 2] == list(found)
    assert (2, 1, 0.0) == (found[1].vector_rank, found[1].keyword_rank, found[1].text_boost)
    assert pytest.approx(1 / 62 + 1 / 61, rel=1e-5) == found[1].rrf_score == found[1].score
    assert (3, None) == (found[2].vector_rank, found[2].keyword_rank)
    assert pytest.approx(0.1, abs=1e-6) == found[2].vector


def test_an_additive_score_is_explained_without_ranks() -> None:
    """No lists were fused."""
    catalog = [thing("send_mail", "Send a letter.")]
    index = compile_snapshot(catalog).lexical
    lexical = index.match("send")

    for candidates, score in ((near([0.2]), 1.0), (None, 10 / 13.5)):
        evidence = evidence_of(catalog, lexical, candidates)
        (made,) = RANKINGS["legacy"].explain(evidence, RANKINGS["legacy"].rank(evidence)).values()

        # (0.2 + 1) / 2 + 0.1 x (5 + 3 + 2), at most 1.
        assert pytest.approx(score) == made.score
        assert 10.0 == made.text_boost
        assert (None, None, None) == (made.rrf_score, made.vector_rank, made.keyword_rank)


_FAR_OFF = "book a quiet table for seven hungry people beside the old weather station tonight"


async def test_a_policy_tells_of_doubt_and_empties_nothing(open_gateway: OpenGateway) -> None:
    """A model takes what it is shown; who browses a catalog judges."""
    tools = (tool("get_weather", "Tell the weather."), tool("send_mail", "Send an e-mail."))
    gateway = open_gateway(
        tools,
        strategy="auto",
        embedder=HashingEmbedder(),
        options=Options(search=SearchOptions(no_match_confidence=1.0, min_confidence=1.0)),
    )

    for ranking in ("hybrid", "weighted", "lexical"):
        found = await gateway.search(_FAR_OFF, ranking=ranking)
        assert "get_weather" == found.matches[0].name
        assert ["low_confidence_results"] == [note.code for note in found.diagnostics]
    emptied = await gateway.search(_FAR_OFF)
    assert ((), ["no_match"]) == (emptied.matches, [note.code for note in emptied.diagnostics])


async def test_a_search_logs_how_it_scored_where_that_is_asked(
    open_gateway: OpenGateway, caplog: pytest.LogCaptureFixture
) -> None:
    """In the words of registries, the query not among them; without the wish, nothing."""
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

    # Both have a vector, one holds the word: 1/61 + 1/61; 5 by its path, 3 by its name, 2 told.
    lines = [record.getMessage() for record in caplog.records]
    assert "RRF inputs: 2 vector-ranked docs, 1 keyword-ranked docs" == lines[0]
    assert "RRF score for 'get_weather' (type=tool): 0.032787, text_boost=10.0" == lines[1]
    assert "RRF score for 'send_mail' (type=tool): 0.016129, text_boost=0.0" == lines[2]
    assert lines[3].startswith("Score for 'get_weather' (type=tool): vector=")
    assert lines[3].endswith("text_boost=10.0, boost_contrib=1.0000, final=1.0000")
    assert len(fused.matches) == len(fused.scoring)
    assert [each.vector for each in fused.scoring] == [
        pytest.approx(match.evidence.vector) for match in added.matches
    ]
    assert () == (await gateway.search("weather", explain=True)).scoring


async def test_a_search_may_ask_for_hybrid_ranking(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A policy over the same evidence, on request; another word is refused."""
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())

    plain = await gateway.search("send an e-mail")
    hybrid = await gateway.search("send an e-mail", ranking="hybrid")

    assert {"send_email"} == {names(plain)[0], names(hybrid)[0]}
    assert hybrid.matches[0].score == pytest.approx(2 / 61)
    with pytest.raises(InvalidRequestError, match="strategy, hybrid"):
        await gateway.search("send an e-mail", ranking="best")  # type: ignore[arg-type]


async def test_a_server_that_is_described_is_boosted_by_its_tools(
    open_gateway: OpenGateway,
) -> None:
    """By hand 1 for each tool that holds the word."""
    gateway = open_gateway(vector_store=None, store=TemporaryStore())
    await gateway.catalog.put(GITHUB)
    servers = Filters(kinds=frozenset({"server"}))

    boosted = await gateway.search("issue", ranking="legacy", filters=servers, explain=True)

    assert [GITHUB.id] == [each.id for each in boosted.matches]
    # "issue" stands in no field of the server that registries count, and in one tool.
    assert 1.0 == boosted.scoring[0].text_boost
    assert pytest.approx(1 / 13.5) == boosted.matches[0].score
