"""``#tag`` in queries: syntax, filtering and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.gateway import Gateway
from gateway.search import words
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, SearchResult
from tests.conftest import OpenGateway
from tests.fakes import ListSource, codes, names, tool


@pytest.mark.parametrize(
    ("query", "tags"),
    [
        ("#finance", ["finance"]),
        ("list invoices #Finance #daily-run.", ["finance", "daily-run"]),
        ("(#a/b), #v1.2; #x_y!", ["a/b", "v1.2", "x_y"]),
        ("счета #Финансы 発票 #財務、 #वित्त", ["финансы", "財務", "वित्त"]),
        ("write C# and F#", []),
        ("close issue #42, colour #000000", []),
        ("open page#part and https://a.b/c#d", []),
        ("# heading", []),
        ("## heading #", []),
        ("##twice #a#b #c++ #d'e", []),
        ('say "#quoted" and `#ticked` or «#so» or “#too”', []),
        ("", []),
    ],
)
def test_words_finds_the_tags_in_a_query(query: str, tags: list[str]) -> None:
    assert tags == [tag for _, _, tag in words(query)]


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with four tagged tools. The last one is disabled, and only it has the tag
    ``secret``.
    """
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    tools = [
        tool("list_invoices", "List the invoices.", hints=Hints(tags=("Finance", "daily"))),
        tool("pay_invoice", "Pay one of the invoices.", hints=Hints(tags=("finance",))),
        tool("post_message", "Post a message to a channel.", hints=Hints(tags=("human talk",))),
        tool("burn_invoices", "Burn.", hints=Hints(tags=("secret", "finance"), enabled=False)),
    ]
    gateway.add_source(ListSource("shop", tools))
    return gateway


def details(result: SearchResult, code: str) -> list[str]:
    return [note.detail for note in result.diagnostics if note.code == code]


async def test_known_tag_becomes_a_filter_and_is_removed_from_the_query(gateway: Gateway) -> None:
    """A match must have all tags of the query and of the filters."""
    tagged = await gateway.search("#FINANCE invoices")
    both = await gateway.search("#finance: #daily invoices")
    with_filter = await gateway.search(
        "#daily invoices", filters=Filters(tags=frozenset({"Finance"}))
    )
    spaced = await gateway.search("a message #human-talk", limit=1)

    assert {"list_invoices", "pay_invoice"} == set(names(tagged))
    assert (("invoices",), ["filtered by finance"]) == (
        tagged.normalized,
        details(tagged, "query_tagged"),
    )
    assert ["list_invoices"] == names(both) == names(with_filter)
    assert ["post_message"] == names(spaced)


async def test_query_of_only_tags_browses(gateway: Gateway) -> None:
    result = await gateway.search("#finance")

    assert ("browse", ["list_invoices", "pay_invoice"]) == (result.mode, names(result))


@pytest.mark.parametrize(
    "query", ["post a message to #general", "the C# invoices", "issue #42", "burn #secret"]
)
async def test_unknown_tag_stays_in_the_query(gateway: Gateway, query: str) -> None:
    """It may be the name of a channel. Tags of hidden tools are unknown, too."""
    result = await gateway.search(query)

    assert (query,) == result.normalized
    assert "query_tagged" not in codes(result)
    assert "secret" not in str(result.diagnostics)


async def test_unknown_tag_is_reported_with_similar_tags(gateway: Gateway) -> None:
    """As a filter it would match no tool, and in the query it is searched as a normal word."""
    filtered = await gateway.search("invoices", filters=Filters(tags=frozenset({"finanse"})))
    queried = await gateway.search("invoices #finanse")
    unlike = await gateway.search("invoices", filters=Filters(tags=frozenset({"qqq"})))

    expected = ["no entity has the tag 'finanse'; near: finance"]
    assert ([], expected) == (names(filtered), details(filtered, "unknown_tag"))
    assert expected == details(queried, "unknown_tag")
    assert names(queried)
    assert ["no entity has the tag 'qqq'"] == details(unlike, "unknown_tag")


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        (["#finance list", "pay #finance"], {"list_invoices", "pay_invoice"}),
        (["list #finance", "post a message"], {"list_invoices", "pay_invoice", "post_message"}),
        (["#finance", "#finance"], {"list_invoices", "pay_invoice"}),
    ],
)
async def test_only_tags_in_all_queries_of_a_search_become_filters(
    gateway: Gateway, queries: Sequence[str], found: set[str]
) -> None:
    """Several queries are steps of one task, which may need different tags."""
    result = await gateway.search(queries=queries, limit=9)

    assert found == set(names(result))


async def test_catalog_without_tags_does_not_report_unknown_ones(open_gateway: OpenGateway) -> None:
    gateway = open_gateway([tool("post", "Post to a channel.")])

    result = await gateway.search("post to #general")

    assert ["post"] == names(result)
    assert not {"unknown_tag", "query_tagged"} & set(codes(result))
