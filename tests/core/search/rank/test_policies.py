"""The ranking policies of the catalog, by hand: keyword scales, fusion, degradation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from gateway.index.candidates import Candidates, VectorQuery
from gateway.index.texts import lexical_fields
from gateway.index.vectors import VectorIndex
from gateway.options import Options, SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search.rank import policies
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.policies import Keywords, PolicyEvidence, count_keywords, explain
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Hints, Kind, RankingPolicy
from graphs import BM25Index
from graphs.lexical.query import Hits
from tests.conftest import OpenGateway
from tests.core.search.conftest import lexical_scores
from tests.fakes import compile_snapshot, entity, names, tool


def thing(name: str, text: str = "", *, kind: Kind = "tool", tags: Sequence[str] = ()) -> Entity:
    """Make an entity of the server `box`, or that server itself."""
    made = entity(tool(name, text, hints=Hints(tags=tuple(tags))), server="box")
    return Entity(
        id="server:box" if kind == "server" else made.id,
        kind=kind,
        exposed_name=name,
        server="box",
        definition=made.definition,
        parent="" if kind == "server" else "server:box",
    )


def keywords(query: str, *entities: Entity, mask: Sequence[bool] = ()) -> Keywords:
    index = BM25Index.build(
        [lexical_fields(each) for each in entities],
        weights={"name": 3.0, "title": 2.0, "hints": 2.0, "description": 1.0, "server": 0.7},
    )
    allowed = np.asarray(mask or [True] * len(entities))
    return count_keywords(index, index.analyze(query), entities, allowed)


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
    return by_position(policies.rank(policy, evidence_of(catalog, lexical, candidates)))


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


# -- keyword scales --------------------------------------------------------------------------------


def test_each_field_adds_its_weight_once() -> None:
    """Path 5, name 3, description 2, tag 1.5; two words in one field are one."""
    found = keywords(
        "send mail",
        thing("send_mail", "Deliver a mail, send it."),
        thing("deliver", "Send a letter."),
        thing("other", tags=["mail"]),
        thing("unrelated", "Nothing of it."),
    )

    np.testing.assert_allclose(found.boost, [5 + 3 + 2, 2, 1.5, 0])


def test_a_server_counts_its_tools_that_may_be_found() -> None:
    """One each, whatever field; what is not eligible speaks for nobody."""
    catalog = (
        thing("box", kind="server"),
        thing("send_mail"),
        thing("read", "Read mail."),
        thing("mail_secretly"),
    )

    assert 2 == keywords("mail", *catalog, mask=[True, True, True, False]).boost[0]
    assert 3 == keywords("mail", *catalog).boost[0]


def test_a_word_stands_as_a_word() -> None:
    """`the` is not in `theme`, nor `mail` in `mailbox`; endings do not matter."""
    found = keywords("mails", thing("mailbox"), thing("send_mail"), thing("e"))

    np.testing.assert_allclose(found.boost, [0, 8, 0])


def test_a_name_that_is_the_word_earns_ten_and_one_that_holds_it_five() -> None:
    """12 is what a word can earn: the share is of 12 for each word, also for those nobody knows."""
    found = keywords(
        "search xyzzy", thing("search", "Search."), thing("search_mail"), thing("m", "Search it.")
    )

    np.testing.assert_allclose(found.share, [12 / 24, 5 / 24, 2 / 24])


def test_words_that_are_a_name_together_earn_ten_each() -> None:
    """Of what two words can earn, 24: the name in whatever spelling 20, a part of one 10."""
    found = keywords(
        "take screenshot",
        thing("take_screenshot"),
        thing("takeScreenshot"),
        thing("take_screenshot_now"),
    )

    np.testing.assert_allclose(found.share, [20 / 24, 20 / 24, 10 / 24], rtol=1e-6)


def test_near_spellings_earn_nothing() -> None:
    """They are guesses."""
    assert not keywords("serach", thing("search")).boost.any()


# -- policies --------------------------------------------------------------------------------------


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

    found = explain("hybrid", evidence, policies.rank("hybrid", evidence))

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
        (made,) = explain("legacy", evidence, policies.rank("legacy", evidence)).values()

        # (0.2 + 1) / 2 + 0.1 x (5 + 3 + 2), at most 1.
        assert pytest.approx(score) == made.score
        assert 10.0 == made.text_boost
        assert (None, None, None) == (made.rrf_score, made.vector_rank, made.keyword_rank)


# -- in the gateway --------------------------------------------------------------------------------


async def test_words_alone_ask_no_model(open_gateway: OpenGateway) -> None:
    """Neither to embed the query, nor a word of it."""
    embedder = HashingEmbedder()
    gateway = open_gateway(
        [tool("send_email"), tool("weather")], strategy="auto", embedder=embedder
    )
    await gateway.report()
    calls = embedder.calls

    found = await gateway.search("weather", ranking="lexical")

    assert ("lexical", ["weather"], calls) == (found.mode, names(found), embedder.calls)
    assert () == found.diagnostics


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
