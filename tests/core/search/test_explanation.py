"""Explanations of results: ranks of each match by each kind of evidence, and filtered entities."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.gateway import Gateway
from gateway.index import failed_filters
from gateway.search import UsageSignals, reasons
from gateway.testing import HashingEmbedder
from gateway.types import (
    ALL_SCOPES,
    Access,
    Caller,
    Entity,
    Evidence,
    EvidenceRanks,
    FilterName,
    Filters,
    Hints,
    Match,
    PathStep,
    RankingPolicy,
    SearchRequest,
    SearchResult,
    Strategy,
)
from tests import fakes
from tests.conftest import PATIENT, OpenGateway
from tests.core.search.conftest import RANKINGS, Catalog, auto, snapshot_of
from tests.fakes import ListSource, eligibility_of, names, tool

HOST = Caller(scopes=frozenset({ALL_SCOPES}))


async def test_explained_match_has_a_rank_for_each_kind_of_evidence(gateway: Gateway) -> None:
    """There are no ranks unless requested. A rank is None if that kind of evidence lacks the
    match.
    """
    unexplained = await gateway.search("send an e-mail", limit=3)
    explained = await gateway.search("send an e-mail", limit=3, explain=True)

    assert ((), ()) == (unexplained.ranks, unexplained.filtered)
    assert unexplained.matches == explained.matches
    first, second, third = explained.ranks
    places = EvidenceRanks(vector=1, lexical=1, graph=1, usage=None, ranked=1, final=1)
    assert replace(first, signals=()) == places
    assert (2, 3) == (second.final, third.final)
    assert (None, None) == (third.lexical, third.graph)
    assert third.vector is not None


@pytest.mark.parametrize("strategy", get_args(Strategy))
@pytest.mark.parametrize("ranking", RANKINGS)
async def test_final_rank_in_an_explanation_is_the_rank_in_the_result(
    open_gateway: OpenGateway, catalog: Catalog, strategy: Strategy, ranking: RankingPolicy
) -> None:
    embedder = HashingEmbedder()
    gateway = open_gateway(catalog, strategy=strategy, embedder=embedder)

    explained = await gateway.search("pay an invoice", ranking=ranking, explain=True)

    assert [*range(1, len(explained.matches) + 1)] == [rank.final for rank in explained.ranks]
    assert [*range(1, len(explained.matches) + 1)] == [rank.ranked for rank in explained.ranks]
    assert explained.ranks[0].lexical is not None
    uses_vectors = strategy != "graph" and ranking != "lexical"
    assert uses_vectors == (explained.ranks[0].vector is not None)


async def test_explanation_contains_the_rank_by_past_calls() -> None:
    """It also contains the rank that a match had before past calls reordered near ties."""
    embedder = HashingEmbedder()
    entities = [
        fakes.entity(tool(f"send_letter_{name}", "Send a letter to somebody.")) for name in "abc"
    ]
    ids = [entity.id for entity in entities]
    request = SearchRequest(queries=("send a letter",), explain=True)

    explained = await auto(embedder)(
        snapshot_of(entities, embedder),
        request,
        usage=UsageSignals(multipliers={ids[1]: 0.9, ids[2]: 1.1, "gone/tool": 1.1}),
    )

    places = {
        match.id: ranks for match, ranks in zip(explained.matches, explained.ranks, strict=True)
    }
    assert [None, 2, 1] == [places[key].usage for key in ids]
    assert (3, 2) == (places[ids[2]].ranked, places[ids[2]].final)


async def test_explanation_ranks_each_match_by_the_query_that_found_it(gateway: Gateway) -> None:
    explained = await gateway.search(queries=["send an e-mail", "play a song"], explain=True)

    assert {"send_email", "play_music"} == {*names(explained)[:2]}
    assert [1, 1] == [rank.lexical for rank in explained.ranks[:2]]


async def test_explanation_is_empty_for_a_result_without_ranking(
    gateway: Gateway, open_gateway: OpenGateway
) -> None:
    """Such results are an emptied one, one of browsing, and one of an empty catalog."""
    strict = replace(PATIENT, search=replace(PATIENT.search, no_match_confidence=1.0))
    emptied = await open_gateway([tool("a", "Do b.")], options=strict).search("do", explain=True)
    browsed = await gateway.search("", explain=True)
    empty = await open_gateway().search("x", explain=True)

    assert [False, True, False] == [bool(result.matches) for result in (emptied, browsed, empty)]
    assert [((), ())] * 3 == [
        (result.ranks, result.filtered) for result in (emptied, browsed, empty)
    ]


FiltersByName = dict[str, tuple[FilterName, ...]]


async def search_filtered(gateway: Gateway, filters: Filters) -> FiltersByName:
    explained = await gateway.search("write a report", limit=9, filters=filters, explain=True)
    return filters_by_name(explained)


def filters_by_name(explained: SearchResult) -> FiltersByName:
    return {entity.id.rpartition("/")[2]: entity.filters for entity in explained.filtered}


@pytest.fixture
def reports_gateway(open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with tools that write reports. Different filters exclude all but one
    of them.
    """
    hints = {"report_off": Hints(enabled=False), "report_tagged": Hints(tags=("Daily",))}
    tools = [
        tool(f"report_{name}", "Write a report.", hints=hints.get(f"report_{name}"))
        for name in ("plain", "off", "tagged", "draft", "secret")
    ]
    prompt = replace(tool("report_asked", "Write a report."), kind="prompt")
    gateway = open_gateway([*tools, prompt], strategy="auto", embedder=HashingEmbedder())
    gateway.add_source(ListSource("other", [tool("report_other", "Write a report.")]))
    gateway.set_rules(
        {
            "shelf/report_draft": Access(status="draft"),
            "shelf/report_secret": Access(scopes=frozenset({"press"})),
        }
    )
    return gateway


async def test_explanation_lists_filtered_entities_with_their_filters(
    reports_gateway: Gateway,
) -> None:
    """Matches are not listed. All filters that exclude an entity are named."""
    assert {
        "report_off": ("disabled",),
        "report_draft": ("status",),
        "report_asked": ("kind",),
    } == await search_filtered(reports_gateway, Filters())
    by_tag = await search_filtered(
        reports_gateway, Filters(tags=frozenset({"daily"}), servers=frozenset({"shelf"}))
    )
    assert ("tag",) == by_tag["report_plain"]
    assert ("tag", "server") == by_tag["report_other"]
    assert ("status", "tag") == by_tag["report_draft"]
    without = await search_filtered(
        reports_gateway, Filters(without=frozenset({"other", "shelf/report_plain"}))
    )
    assert ("left_out",) == without["report_plain"] == without["report_other"]
    assert ("kind",) == (
        await search_filtered(reports_gateway, Filters(kinds=frozenset({"prompt"})))
    )["report_plain"]


async def test_explanation_lists_at_most_five_entities_removed_by_filters(
    reports_gateway: Gateway,
) -> None:
    """These are the entities that would be matches without the filters, with the rank they would
    have.
    """
    explained = await reports_gateway.search("write a report", limit=3, explain=HOST)
    nothing = Filters(servers=frozenset({"no"}))
    wide = await reports_gateway.search("write a report", limit=50, filters=nothing, explain=HOST)

    assert all(entity.rank <= 3 for entity in explained.filtered)
    assert [1, 2, 3, 4, 5] == [entity.rank for entity in wide.filtered]
    assert all(0 < entity.confidence <= 1 for entity in wide.filtered)
    assert {"prompt", "tool"} == {entity.kind for entity in wide.filtered}


async def test_explanation_hides_entities_for_which_the_caller_lacks_a_scope(
    reports_gateway: Gateway,
) -> None:
    """Only an explanation for the host contains them."""
    press = Caller(scopes=frozenset({"press"}))

    for_caller = await reports_gateway.search("write a report", limit=9, explain=True)
    for_press = await reports_gateway.search("write a report", limit=9, caller=press, explain=True)
    for_host = await reports_gateway.search("write a report", limit=9, explain=HOST)
    outsider = await reports_gateway.search(
        "write a report",
        limit=9,
        caller=press,
        explain=Caller(),
        filters=Filters(servers=frozenset({"no"})),
    )

    assert "report_secret" not in str(for_caller)
    assert "report_secret" in names(for_press)
    assert ("scope",) == filters_by_name(for_host)["report_secret"]
    assert names(for_caller) == names(for_host)
    assert "report_secret" not in filters_by_name(outsider)


def test_reasons_returns_a_sentence_for_each_kind_of_evidence() -> None:
    """The sentence about an edge contains the file and line of a document, or the name of the
    rule.
    """
    declared = PathStep(
        subject="a/x", predicate="nextStep", object="a/y", source="g.md:12", declared=True
    )
    evidence = Evidence(
        vector=0.5,
        lexical=0.25,
        graph=0.125,
        words=("tea", "cup"),
        exact_name=True,
        path=(declared, replace(declared, source="", declared=False)),
    )
    bare = Match(id="a/x", name="x", server="a", description="", score=0, confidence=0)

    assert () == reasons(bare)
    assert (
        "The request contains its exact name.",
        "Its meaning is similar to the request: cosine 0.50.",
        "It contains 25% of the request's words, by rarity: tea, cup.",
        "Its graph node contains 12% of the request's words.",
        "a/x nextStep a/y (declared in g.md:12).",
        "a/x nextStep a/y (source: a rule).",
    ) == reasons(replace(bare, evidence=evidence))


_SOME: st.SearchStrategy[frozenset[str]] = st.frozensets(st.sampled_from(["a", "b"]))
_FILTERS = st.builds(
    Filters,
    kinds=_SOME,
    statuses=st.frozensets(st.sampled_from(["active", "draft"])),
    tags=st.frozensets(st.sampled_from(["A", "b"])),
    servers=_SOME,
    scopes=st.frozensets(st.sampled_from(["a", "b", ALL_SCOPES])),
    include_disabled=st.booleans(),
    include_described=st.booleans(),
    without=st.frozensets(st.sampled_from(["a", "b", "a/x"])),
)
_ENTITIES = st.builds(
    lambda server, hints, **more: replace(
        fakes.entity(tool("x", hints=hints), server=server), **more
    ),
    st.sampled_from(["a", "b"]),
    st.builds(Hints, tags=st.lists(st.sampled_from(["a", "B"])), enabled=st.booleans()),
    kind=st.sampled_from(["a", "b"]),
    status=st.sampled_from(["active", "draft"]),
    scopes=_SOME,
    described=st.booleans(),
)


@given(_ENTITIES, _FILTERS)
def test_failed_filters_is_empty_only_for_entities_that_pass_the_mask(
    entity: Entity, filters: Filters
) -> None:
    (passes,) = eligibility_of([entity]).mask(filters).tolist()

    assert passes == (failed_filters(entity, filters) == ())
