"""The ranking policies of the catalog, by hand: keyword scales, fusion, degradation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.errors import InvalidRequestError
from gateway.index.eligibility import Eligibility, Mask
from gateway.index.snapshots import compile_snapshot
from gateway.index.texts import lexical_fields
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import Options, SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search import policies
from gateway.search.asked import Asked
from gateway.search.company import Company
from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates, candidates
from gateway.search.evidence import look_up
from gateway.search.keywords import Keywords, read
from gateway.search.request import parted
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Hints, Kind, RankingPolicy
from graphs import Postings
from tests.conftest import OpenGateway
from tests.fakes import entity, names, tool

ALL = np.ones(4, dtype=np.bool_)


def thing(name: str, text: str = "", *, kind: Kind = "tool", tags: Sequence[str] = ()) -> Entity:
    made = entity(tool(name, text, hints=Hints(tags=tuple(tags))), server="box")
    return Entity(
        id=made.id, kind=kind, exposed_name=name, server="box", definition=made.definition
    )


def keywords(query: str, *entities: Entity, mask: Sequence[bool] = ()) -> Keywords:
    index = Postings.build(
        [lexical_fields(each) for each in entities],
        weights={"name": 3.0, "title": 2.0, "hints": 2.0, "description": 1.0, "server": 0.7},
    )
    allowed = np.asarray(mask or [True] * len(entities))
    return read(index, index.read(query), entities, allowed)


def near(cosines: Sequence[float]) -> Candidates:
    rows = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines])
    return candidates(
        VectorIndex.of(rows),
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(len(cosines), bool),
        limit=5,
        options=SearchOptions(),
    )


def said(boost: Sequence[float] = (), share: Sequence[float] = (), full: float = 12.5) -> Keywords:
    count = len(boost) or len(share)
    return Keywords(
        boost=np.asarray(boost or [0] * count, np.float32),
        share=np.asarray(share or [0] * count, np.float32),
        full=full,
    )


def evidence(
    found: Candidates | None, words: Keywords, asks: Callable[[], Mask] | None = None
) -> policies.Heard:
    count = len(words.boost)
    return policies.Heard(
        found=found,
        words=words.share,
        telling=asks or (lambda: np.ones(count, bool)),
        keywords=lambda: words,
        graph=np.zeros(0, np.intp),
        mask=np.ones(count, bool),
        entities=[thing(f"t{number}") for number in range(count)],
    )


def ranked(
    found: Candidates | None,
    words: Keywords,
    policy: RankingPolicy,
    *,
    telling: Sequence[bool] = (),
) -> dict[int, float]:
    asks = (lambda: np.asarray(telling)) if telling else None
    order = policies.rank(policy, evidence(found, words, asks), count=100)
    return dict(zip(order.positions.tolist(), order.scores.tolist(), strict=True))


# -- keyword scales --------------------------------------------------------------------------------


def test_each_field_adds_its_weight_once() -> None:
    """Path 5, name 3, description 2, tag 1.5; two words in one field are one."""
    said = keywords(
        "send mail",
        thing("send_mail", "Deliver a mail, send it."),
        thing("deliver", "Send a letter."),
        thing("other", tags=["mail"]),
        thing("unrelated", "Nothing of it."),
    )

    np.testing.assert_allclose(said.boost, [5 + 3 + 2, 2, 1.5, 0])
    assert 12.5 == said.full


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
    said = keywords("mails", thing("mailbox"), thing("send_mail"), thing("e"))

    np.testing.assert_allclose(said.boost, [0, 8, 0])


def test_a_name_that_is_the_word_earns_ten_and_one_that_holds_it_five() -> None:
    """12 is what a word can earn: the share is of 12 for each word, also for those nobody knows."""
    said = keywords(
        "search xyzzy", thing("search", "Search."), thing("search_mail"), thing("m", "Search it.")
    )

    np.testing.assert_allclose(said.share, [12 / 24, 5 / 24, 2 / 24])


def test_near_spellings_earn_nothing() -> None:
    """They are guesses."""
    assert not keywords("serach", thing("search")).boost.any()


# -- policies --------------------------------------------------------------------------------------


def test_reciprocal_ranks_add_up() -> None:
    """By hand, k = 60: who is in both lists before who leads one; 2/61 is the most."""
    order = policies.reciprocal([np.asarray([0, 1, 2]), np.asarray([3, 1])], size=4)

    by_hand = {1: 1 / 62 + 1 / 62, 0: 1 / 61, 3: 1 / 61, 2: 1 / 63}
    assert list(by_hand) == order.positions.tolist()
    np.testing.assert_allclose(order.scores, list(by_hand.values()), rtol=1e-5)
    both = policies.reciprocal([np.asarray([0]), np.asarray([0])], size=1)
    assert pytest.approx(2 / 61) == both.scores[0]


def test_hybrid_fuses_lists_that_know_nothing_of_each_other() -> None:
    """Who holds no word has no rank among words."""
    found = ranked(near([0.9, 0.8, 0.1]), said(share=[0, 0, 1]), "hybrid")

    assert [2, 0, 1] == list(found)
    np.testing.assert_allclose(list(found.values()), [1 / 61 + 1 / 63, 1 / 61, 1 / 62], rtol=1e-5)


def test_hybrid_does_not_hear_words_that_are_chance() -> None:
    """Who shares too little with the query has no rank among words; by words alone it has."""
    words, few = said(share=[0, 0.2, 0.1]), [True, False, True]

    found = ranked(near([0.9, 0.8, 0.1]), words, "hybrid", telling=few)

    assert [2, 0, 1] == list(found)
    assert pytest.approx(1 / 61 + 1 / 63) == found[2]
    assert [1, 2] == list(ranked(None, words, "hybrid", telling=few))
    assert [1, 2] == list(ranked(near([0.9, 0.8, 0.1]), words, "lexical", telling=few))


def test_only_hybrid_asks_whose_words_are_chance() -> None:
    """Nobody else reads it, so nobody else pays for it."""
    asked: list[RankingPolicy] = []
    every: tuple[RankingPolicy, ...] = ("weighted", "legacy", "lexical", "hybrid")
    for policy in every:

        def asks(policy: RankingPolicy = policy) -> Mask:
            asked.append(policy)
            return np.ones(2, bool)

        heard = evidence(near([0.9, 0.8]), said(share=[0, 1]), asks)
        assert len(policies.rank(policy, heard, count=100).positions)

    assert ["hybrid"] == asked


def test_the_best_clause_of_a_long_request_has_a_say_in_the_list_of_words() -> None:
    """By hand, in deviations: (1.41, -0.71, -0.71) and 0.4 x (-1.22, 0, 1.22)."""
    heard = evidence(near([0.9, 0.9, 0.9]), said(share=[0.3, 0.2, 0.2]))
    long = replace(heard, clauses=np.asarray([0.1, 0.2, 0.3], np.float32))

    assert [0, 1, 2] == policies.spoken(heard).tolist()
    assert [0, 2, 1] == policies.spoken(long).tolist()
    assert [] == policies.spoken(replace(heard, mask=np.zeros(3, bool))).tolist()


def test_both_lists_hear_what_company_says() -> None:
    """By hand, in deviations: an agent at 0.60, two tools of one server at 0.57.

    An agent has 1.21 of that, 0.73; each tool has 1.175 of it, 0.66, and for a job of ten steps
    1.425 of it, 0.81.
    """
    agent = thing("a", kind="agent")
    catalog = [agent, thing("b"), thing("c"), replace(thing("d"), server="other")]
    mates = Mates.of(["a", "box", "box", "other"])
    assert mates is not None
    short = Company(mates=mates, eligibility=Eligibility.of(catalog), entities=catalog)
    scores = [0.81, 0.8, 0.8, 0.1]
    found, words = near(scores), evidence(None, said(share=scores))

    for company, order in ((None, [0, 1, 2, 3]), (short, [0, 1, 2, 3]), (10, [1, 2, 0, 3])):
        told = replace(short, parts=company) if isinstance(company, int) else company
        assert order == policies.near(found, told).tolist()
        assert order == policies.spoken(replace(words, company=told)).tolist()
    assert [0, 1] == policies.near(near([0.5, 0.5]), short).tolist()


def test_a_query_is_read_for_its_company() -> None:
    """In as many steps as it has; where all are of one server, nobody has any."""
    mail = [entity(tool(name), server="mail") for name in ("send", "read")]
    steps = "Read the first mail of today. " + "Then send it on to my office there. " * 4

    def company(query: str, entities: Sequence[Entity]) -> Company | None:
        snapshot = compile_snapshot(entities, rows={})
        several, parts = parted(query, query)
        asked = Asked(query=query, english=query, clauses=several, parts=parts)
        found, words = look_up(snapshot.lexical, snapshot.names, asked)
        mask = np.ones(len(entities), bool)
        heard = policies.heard(
            snapshot, asked, found, words, mask=mask, found=None, graph=np.zeros(0, np.intp)
        )
        return heard.company

    both = [*mail, entity(tool("weather"), server="sky")]
    long = company(steps, both)
    short = company("read mail", both)
    assert long is not None
    assert short is not None
    assert (2, 0) == (long.parts, short.parts)
    assert company(steps, mail) is None


def test_half_of_the_words_are_no_chance_and_in_a_telling_request_none_is() -> None:
    """By hand: of 99 entities a word that nobody holds weighs log(1 + 99.5 / 0.5) = 5.3."""
    shares = np.asarray([0.5, 0.49, 0.1, 0.9], np.float32)
    mask = np.asarray([True, True, True, False])

    def telling(weight: float, *, mask: Mask = mask) -> list[bool]:
        found: list[bool] = policies.telling(shares, mask, weight=weight, size=99).tolist()
        return found

    assert [True, False, False, True] == telling(26)
    assert [True, True, True, True] == telling(27)
    assert [True, False, False, True] == telling(100, mask=np.zeros(4, bool))


def test_weighted_stands_on_absolute_scales() -> None:
    """0.6 x cosine + 0.4 x share; a negative cosine is none."""
    found = ranked(near([0.9, 0.5, -0.5]), said(share=[0, 0.5, 1]), "weighted")

    by_hand = {0: 0.54, 1: 0.3 + 0.2, 2: 0.4}
    assert list(by_hand) == list(found)
    np.testing.assert_allclose(list(found.values()), list(by_hand.values()), rtol=1e-5)


def test_legacy_adds_a_tenth_of_the_boost_and_stops_at_one() -> None:
    """(cosine + 1) / 2 + 0.1 x boost; three of a kind."""
    found = ranked(near([0.9, 0.5, -0.5, 0.2]), said(boost=[1, 5, 0, 0]), "legacy")

    by_hand = {0: 1.0, 1: 1.0, 3: 0.6}
    assert list(by_hand) == list(found)
    np.testing.assert_allclose(list(found.values()), list(by_hand.values()), rtol=1e-5)


@pytest.mark.parametrize("full", [12.5, 13.5])
def test_legacy_without_vectors_is_the_boost_of_the_most_there_is(full: float) -> None:
    """10 of 12.5, or of 13.5 where there is metadata; never above 1."""
    found = ranked(None, said(boost=[10, 0, 20], full=full), "legacy")

    assert {2: 1.0, 0: pytest.approx(10 / full)} == found


@pytest.mark.parametrize("policy", ["hybrid", "weighted", "lexical"])
def test_without_vectors_words_rank_alone(policy: RankingPolicy) -> None:
    """Who holds none is not ranked."""
    assert [1, 2] == list(ranked(None, said(share=[0, 0.9, 0.1]), policy))


# -- in the gateway --------------------------------------------------------------------------------


@pytest.mark.parametrize("ranking", ["hybrid", "weighted", "legacy"])
async def test_a_failing_embedder_leaves_words_for_this_once(
    open_gateway: OpenGateway, ranking: RankingPolicy
) -> None:
    """The mode tells the truth, and the next request tries again, without a restart."""
    embedder = HashingEmbedder()
    catalog = [tool("send_email", "Send an e-mail."), tool("weather", "Tell the weather.")]
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    whole = await gateway.search("weather today", ranking=ranking)
    embedder.fail_with = OSError("down")

    fallen = await gateway.search("weather tomorrow", ranking=ranking)
    embedder.fail_with = None
    healed = await gateway.search("weather tomorrow", ranking=ranking)

    assert ["hybrid", "lexical", "hybrid"] == [each.mode for each in (whole, fallen, healed)]
    assert ["embedding_failed", "lexical_fallback"] == [each.code for each in fallen.diagnostics]
    assert [["weather"]] * 3 == [names(each)[:1] for each in (whole, fallen, healed)]


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


async def test_the_graph_may_be_a_list_of_its_own(open_gateway: OpenGateway) -> None:
    """Three first places are worth more than two."""
    catalog = [tool("weather", "Tell the weather."), tool("send_email")]
    scores: list[float] = []
    for fuse in (False, True):
        options = Options(search=SearchOptions(fuse_graph=fuse))
        gateway = open_gateway(
            catalog, strategy="auto", embedder=HashingEmbedder(), options=options
        )
        found = await gateway.search("weather", ranking="hybrid")
        scores.append(found.matches[0].score)

    np.testing.assert_allclose(scores, [2 / 61, 3 / 61], rtol=1e-5)


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


async def test_an_unknown_policy_is_an_error(open_gateway: OpenGateway) -> None:
    """It names those there are."""
    with pytest.raises(InvalidRequestError, match="strategy, hybrid, weighted, legacy, lexical"):
        await open_gateway([]).search("x", ranking="best")  # type: ignore[arg-type]
