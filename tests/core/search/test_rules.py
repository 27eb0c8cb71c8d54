"""Business rules of the search, tested through the public API."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from gateway.gateway import Gateway
from gateway.index import NAME_WEIGHT, embedding_text, name_text
from gateway.options import Options, SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.testing import HashingEmbedder
from graphs import Document
from tests.conftest import CatalogOf, OpenGateway
from tests.core.search.conftest import Catalog, auto, run, snapshot_of
from tests.fakes import PanicError, TableNormalizer, codes, entity, every_id, names, tool

MEANINGS = {"надіслати": "send", "лист": "email", "wetter": "weather"}
NOISY = (
    "send an e-mail to Bob",
    "надіслати лист",
    "wether forcast of teh city",
    "get the open invoices and pay them",
    "Wetter morgen",
)


@pytest.mark.requirement("auto:rule-1")
async def test_default_strategy_is_the_graph_without_an_embedder_at_hand(
    open_gateway: OpenGateway, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 1: it works without a model, a key and vectors. The plugin of the local model is not
    loaded here.
    """
    with caplog.at_level("INFO", logger="gateway"):
        gateway = open_gateway(catalog, strategy=None, options=Options(plugins=()))

    result = await gateway.search("send an e-mail")

    assert ("graph", None) == (gateway.strategy, gateway.embedder)
    assert "strategy='graph', reason='no embedder given or installed'" in repr(gateway)
    assert "strategy graph (no embedder given or installed)" in caplog.text
    assert ("graph", "send_email", []) == (result.mode, names(result)[0], codes(result))
    assert result.matches[0].evidence.vector is None


@pytest.mark.requirement("auto:rule-1")
async def test_default_strategy_is_auto_with_an_embedder(
    open_gateway: OpenGateway, catalog: Catalog, embedder: HashingEmbedder
) -> None:
    """A given strategy stays, and the embedder is then not called."""
    gateway = open_gateway(catalog, strategy=None, embedder=embedder)
    by_graph = open_gateway(catalog, strategy="graph", embedder=HashingEmbedder())

    results = [await each.search("send an e-mail") for each in (gateway, by_graph)]

    assert ["hybrid", "graph"] == [result.mode for result in results]
    assert "strategy='auto', reason='embedder given'" in repr(gateway)
    assert "strategy='graph', reason='given'" in repr(by_graph)
    assert isinstance(by_graph.embedder, HashingEmbedder)
    assert 0 == by_graph.embedder.calls


@pytest.mark.requirement("auto:rule-2")
async def test_strategy_auto_ranks_by_vectors(open_gateway: OpenGateway, catalog: Catalog) -> None:
    """Rule 2: this query shares no words with the right tool, but their vectors are near."""
    by_graph = await open_gateway(catalog).search("надіслати лист")
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder(meanings=MEANINGS))

    result = await gateway.search("надіслати лист")

    assert [] == names(by_graph)
    assert ("hybrid", "send_email") == (result.mode, names(result)[0])
    assert result.matches[0].evidence.vector is not None
    assert not result.degraded


@pytest.mark.requirement("auto:rule-2")
async def test_strategy_embeddings_ranks_only_by_cosine(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Rule 2: words do not change the order."""
    gateway = open_gateway(catalog, strategy="embeddings", embedder=HashingEmbedder())

    result = await gateway.search("tell me the forecast for the city", limit=12)

    cosines = [match.evidence.vector or 0.0 for match in result.matches]
    assert "vector" == result.mode
    assert sorted(cosines, reverse=True) == cosines
    assert 12 == len(cosines)


@pytest.mark.requirement("auto:rule-3", "auto:rule-4")
@pytest.mark.parametrize("size", [10, 100, 3000])
def test_graph_does_not_change_the_order_of_matches(
    size: int, catalog: Catalog, catalog_of: CatalogOf
) -> None:
    """Rules 3 and 4: the graph can only raise the confidence of a match."""
    embedder = HashingEmbedder(meanings=MEANINGS)
    entities = [entity(definition) for definition in (*catalog, *catalog_of(size))]
    snapshot = snapshot_of(entities, embedder)
    moved = 0

    for query in NOISY:
        on = run(auto(embedder), snapshot, query, limit=10)
        off = run(auto(embedder), replace(snapshot, graph=None), query, limit=10)
        gains = [a.confidence - b.confidence for a, b in zip(on.matches, off.matches, strict=True)]
        moved += sum(gain > 0 for gain in gains)

        assert names(off) == names(on)
        assert min(gains) >= 0
        assert () == (*off.related, *off.next_steps, *off.prerequisites)
    assert moved > 0


@pytest.mark.requirement("auto:rule-3", "edge:graph-noise-never-displaces-vectors")
async def test_graph_document_that_contains_the_query_does_not_move_a_match(
    open_gateway: OpenGateway, catalog: Catalog, gateway: Gateway, embedder: HashingEmbedder
) -> None:
    """Rule 3: only vectors and words decide the order."""
    query = "send an e-mail to Bob"
    noise = Document(
        id="host:noise", title="play_music", summary=query, keywords=(query,), aliases=(query,)
    )
    noisy = open_gateway(catalog, graph=[noise], strategy="auto", embedder=embedder)
    by_graph = await open_gateway(catalog, graph=[noise]).search(query)
    plain = await gateway.search(query)

    result = await noisy.search(query)

    assert "play_music" == names(by_graph)[0]
    assert "send_email" == names(plain)[0]
    assert names(plain) == names(result)


@pytest.mark.requirement("auto:rule-4")
async def test_graph_adds_related_tools_and_next_steps_in_separate_lists(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Rule 4: each comes with its path from a match."""
    options = Options(search=SearchOptions(window_margin=0.1))
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder(), options=options)

    result = await gateway.search("list the open invoices", limit=1)

    added = (*result.related, *result.next_steps)
    assert ["list_invoices"] == names(result)
    assert "pay_invoice" in [match.name for match in result.next_steps]
    assert all(match.evidence.path for match in result.next_steps)
    assert {"list_invoices"}.isdisjoint(match.name for match in added)
    assert len(list(every_id(result))) == len(set(every_id(result)))


@pytest.mark.requirement("auto:rule-6")
async def test_original_and_rewritten_query_are_both_embedded(
    open_gateway: OpenGateway, catalog: Catalog, embedder: HashingEmbedder
) -> None:
    """Rule 6: a multilingual model needs the original words. One request contains both texts."""
    normalizer = TableNormalizer({"надіслати лист": "send email"})
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, normalizer=normalizer)

    result = await gateway.search("надіслати лист")

    assert ("надіслати лист", "send email") == embedder.batches[-1]
    assert ("send email",) == result.normalized
    assert ["query_normalized"] == codes(result)


@pytest.mark.requirement("auto:rule-6")
async def test_score_is_the_better_one_of_the_original_and_rewritten_query(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Rule 6: a bad rewrite must not worsen the result of the original words."""
    embedder = HashingEmbedder(meanings=MEANINGS)
    bad = TableNormalizer({"надіслати лист": "do something"})
    gateway = open_gateway(catalog, strategy="embeddings", embedder=embedder, normalizer=bad)

    result = await gateway.search("надіслати лист")

    snapshot = await gateway.snapshot()
    entity = snapshot.entities[snapshot.position(result.matches[0].id)]
    texts = ("надіслати лист", embedding_text(entity), name_text(entity))
    original, whole_text, name = embedder.vectors(texts)
    best = unit_rows(whole_text + NAME_WEIGHT * name)[0]
    assert "send_email" == names(result)[0]
    assert result.matches[0].evidence.vector == pytest.approx(float(np.dot(original, best)))


@pytest.mark.requirement("auto:rule-7")
async def test_graph_uses_only_the_english_form_of_the_query(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Rule 7: if the original words match a graph node, this does not count."""
    query = "email: weather forecast"
    normalizer = TableNormalizer({query: "forecast of the weather"})
    plain = await open_gateway(catalog).search(query)

    result = await open_gateway(catalog, normalizer=normalizer).search(query)
    in_auto = await open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), normalizer=normalizer
    ).search(query, limit=12)

    assert "send_email" in names(plain)
    assert ["get_weather"] == names(result)
    assert {"get_weather"} == {
        match.name for match in in_auto.matches if match.evidence.graph is not None
    }


@pytest.mark.requirement("auto:rule-6", "auto:rule-7")
@pytest.mark.parametrize("strategy", ["graph", "embeddings", "auto"])
@pytest.mark.parametrize("rewritten", ["book a flight", "tell the weather forecast of a city"])
async def test_contradicting_rewrite_counts_less_than_the_query(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str, rewritten: str
) -> None:
    """The chat model may be broken or misled, so the original query also ranks."""
    normalizer = TableNormalizer({"list the open invoices": rewritten})
    gateway = open_gateway(
        catalog, strategy=strategy, embedder=HashingEmbedder(), normalizer=normalizer
    )

    result = await gateway.search("list the open invoices", limit=12)

    assert ("list_invoices", (rewritten,)) == (names(result)[0], result.normalized)
    assert {"book_flight", "get_weather"} & set(names(result))


@pytest.mark.requirement("auto:rule-6")
@pytest.mark.parametrize("meanings", [{}, MEANINGS])
async def test_rewrite_counts_in_full_if_the_catalog_lacks_the_words_of_the_query(
    open_gateway: OpenGateway, catalog: Catalog, meanings: dict[str, str]
) -> None:
    """A translated rewrite shares no words with the query, so this is not a contradiction."""
    embedder = HashingEmbedder(meanings=meanings)
    normalizer = TableNormalizer({"надіслати лист": "send email"})
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, normalizer=normalizer)

    result = await gateway.search("надіслати лист")

    match = result.matches[0]
    assert ("send_email", ("send", "email")) == (match.name, match.evidence.words)
    assert (1.0, ["query_normalized"]) == (match.evidence.graph, codes(result))


@pytest.mark.requirement("auto:rule-6")
async def test_rewrite_ranks_alone_if_the_embedder_does_not_know_the_language(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """The query's vector is then meaningless, so its distance from the rewrite is not a
    contradiction.
    """
    normalizer = TableNormalizer({"надіслати лист": "send an e-mail"})
    gateway = open_gateway(
        catalog, strategy="embeddings", embedder=HashingEmbedder(), normalizer=normalizer
    )

    rewritten = await gateway.search("надіслати лист")
    english = await gateway.search("send an e-mail")

    assert rewritten.matches[0].name == english.matches[0].name == "send_email"
    assert rewritten.matches[0].evidence.vector == english.matches[0].evidence.vector


@pytest.mark.requirement("auto:rule-7")
@pytest.mark.parametrize("is_near", [True, False])
async def test_rewrite_does_not_contradict_if_its_vector_is_near_the_query(
    open_gateway: OpenGateway, catalog: Catalog, *, is_near: bool
) -> None:
    """It may use synonyms with the same meaning. Near means nearer than any tool is."""
    query = "weather letter"
    embedder = HashingEmbedder(meanings={query: "send email"} if is_near else {})
    normalizer = TableNormalizer({query: "send email"})
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, normalizer=normalizer)

    result = await gateway.search(query, limit=12)

    by_graph = {match.name for match in result.matches if match.evidence.graph is not None}
    assert "send_email" in by_graph
    assert is_near == ("get_weather" not in by_graph)


@pytest.mark.requirement("auto:rule-6")
@pytest.mark.parametrize("strategy", ["auto", "graph"])
async def test_rewrite_with_several_steps_becomes_several_queries(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str
) -> None:
    """The best match of each step comes first. The query stays if a step has other words."""
    asked, steps = "рейс та лист", ("search flights", "send an e-mail")
    english = "search flights and send an e-mail about them"
    normalizer = TableNormalizer({asked: "\n".join(steps), english: "\n".join(steps)})
    gateway = open_gateway(
        catalog, strategy=strategy, embedder=HashingEmbedder(), normalizer=normalizer
    )

    translated = await gateway.search(asked)
    shortened = await gateway.search(english)

    assert ["search_flights", "send_email"] == names(translated)[:2] == names(shortened)[:2]
    assert ((*steps, asked), steps) == (translated.normalized, shortened.normalized)
    assert len(names(translated)) == len({*names(translated)})


async def test_steps_of_a_rewrite_are_one_query_where_one_ranking_is_displayed(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    normalizer = TableNormalizer({"рейс та лист": "search flights\nsend an e-mail"})
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), normalizer=normalizer
    )

    displayed = await gateway.search("рейс та лист", limit=12, display_limit=3)
    several = await gateway.search(queries=["рейс та лист", "play music"])

    assert ("search flights",) == displayed.normalized
    assert ("search flights", "play music") == several.normalized


@pytest.mark.requirement("edge:no-normalizer-keeps-the-query")
async def test_query_is_unchanged_without_a_normalizer(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    result = await gateway.search("send an e-mail")

    assert ("send an e-mail",) == embedder.batches[-1]
    assert (("send an e-mail",), []) == (result.normalized, codes(result))
    assert result.matches[0].evidence.graph is not None


@pytest.mark.requirement("edge:failed-normalizer-keeps-the-query")
@pytest.mark.parametrize(
    "fault",
    [RuntimeError("secret"), TimeoutError(), asyncio.CancelledError(), SystemExit(1), PanicError()],
)
async def test_failing_normalizer_leaves_the_query_unchanged(
    open_gateway: OpenGateway, catalog: Catalog, fault: BaseException
) -> None:
    """The next search calls the normalizer again."""
    normalizer = TableNormalizer({"Wetter": "weather"})
    normalizer.fail_with = fault
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), normalizer=normalizer
    )

    failed = await gateway.search("Wetter")
    normalizer.fail_with = None
    recovered = await gateway.search("Wetter")

    assert ["query_normalization_failed"] == codes(failed)[:1]
    assert ("hybrid", ("Wetter",)) == (failed.mode, failed.normalized)
    assert 5 == len(failed.matches)
    assert type(fault).__name__ == failed.diagnostics[0].detail
    assert ("weather",) == recovered.normalized


@pytest.mark.requirement("edge:empty-query-browses")
@pytest.mark.parametrize("query", [None, "", "  \n", "\u200b"])
async def test_search_without_query_lists_tools_by_name(
    gateway: Gateway, embedder: HashingEmbedder, query: str | None
) -> None:
    """It does not rank, embed or measure confidence."""
    await gateway.report()
    before = embedder.calls

    result = await gateway.search(query, limit=3)

    assert ("browse", []) == (result.mode, codes(result))
    assert ["book_flight", "get_invoice", "get_location"] == names(result)
    assert before == embedder.calls


async def test_search_uses_the_context_if_there_is_no_query(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """A search browses only without query and context."""
    gateway = open_gateway(catalog)

    by_context = await gateway.search(context={"task": {"about": ["weather", "forecast"]}})
    by_summary = await gateway.search("", context_summary="the user asks for the weather")

    assert ("graph", "get_weather") == (by_context.mode, names(by_context)[0])
    assert ("graph", "get_weather") == (by_summary.mode, names(by_summary)[0])


@pytest.mark.requirement("edge:empty-catalog-is-empty")
@pytest.mark.parametrize("strategy", ["graph", "embeddings", "auto"])
@pytest.mark.parametrize("query", [None, "send an e-mail"])
async def test_search_of_an_empty_catalog_has_mode_empty(
    open_gateway: OpenGateway, embedder: HashingEmbedder, strategy: str, query: str | None
) -> None:
    """The mode distinguishes it from a search without matches."""
    gateway = open_gateway(strategy=strategy, embedder=embedder)

    result = await gateway.search(query)

    assert ("empty", (), []) == (result.mode, result.matches, codes(result))
    assert 0 == embedder.calls


async def test_search_without_matches_reports_no_match(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    result = await open_gateway(catalog).search("zzzzqqqq")

    assert ("graph", (), ["no_match"]) == (result.mode, result.matches, codes(result))
    assert not result.degraded


async def test_gibberish_has_low_confidence(gateway: Gateway) -> None:
    """Vectors always find a nearest tool, so the model needs a warning."""
    result = await gateway.search("zzzzqqqq xxvvkk")
    good = await gateway.search("tell the weather forecast of a city")

    assert "low_confidence_results" in codes(result)
    assert all(0 <= match.confidence <= 1 for match in (*result.matches, *good.matches))
    assert good.matches[0].confidence > 0.35 > result.matches[0].confidence


async def test_matches_with_equal_scores_are_ordered_by_name(open_gateway: OpenGateway) -> None:
    tools = [tool(name, "Run it.") for name in ("job_c", "job_a", "job_b")]

    result = await open_gateway(tools).search("run it")

    assert ["job_a", "job_b", "job_c"] == names(result)
