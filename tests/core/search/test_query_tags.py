"""``#tag`` in a query: what is one, what becomes of it, and what it never does."""

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
def test_what_looks_like_a_tag(query: str, tags: list[str]) -> None:
    """Letters of any script behind a sign that stands alone."""
    assert tags == [tag for _, _, tag in words(query)]


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    """Four tools with tags; the last one is hidden, and only it is secret."""
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    tools = [
        tool("list_invoices", "List the invoices.", hints=Hints(tags=("Finance", "daily"))),
        tool("pay_invoice", "Pay one of the invoices.", hints=Hints(tags=("finance",))),
        tool("post_message", "Post a message to a channel.", hints=Hints(tags=("human talk",))),
        tool("burn_invoices", "Burn.", hints=Hints(tags=("secret", "finance"), enabled=False)),
    ]
    gateway.add_source(ListSource("shop", tools))
    return gateway


def details(found: SearchResult, code: str) -> list[str]:
    return [note.detail for note in found.diagnostics if note.code == code]


async def test_a_tag_that_somebody_has_filters_and_leaves_the_query(gateway: Gateway) -> None:
    """All of them at once, beside those of the filters."""
    one = await gateway.search("#FINANCE invoices")
    both = await gateway.search("#finance: #daily invoices")
    beside = await gateway.search("#daily invoices", filters=Filters(tags=frozenset({"Finance"})))
    spaced = await gateway.search("a message #human-talk", limit=1)

    assert {"list_invoices", "pay_invoice"} == set(names(one))
    assert (("invoices",), ["filtered by finance"]) == (
        one.normalized,
        details(one, "query_tagged"),
    )
    assert ["list_invoices"] == names(both) == names(beside)
    assert ["post_message"] == names(spaced)


async def test_tags_alone_browse(gateway: Gateway) -> None:
    """Nothing is asked, nothing is ranked."""
    found = await gateway.search("#finance")

    assert ("browse", ["list_invoices", "pay_invoice"]) == (found.mode, names(found))


@pytest.mark.parametrize(
    "query", ["post a message to #general", "the C# invoices", "issue #42", "burn #secret"]
)
async def test_what_nobody_has_stays_in_the_query(gateway: Gateway, query: str) -> None:
    """A channel is no tag, and neither is one that only a hidden tool has."""
    found = await gateway.search(query)

    assert (query,) == found.normalized
    assert "query_tagged" not in codes(found)
    assert "secret" not in str(found.diagnostics)


async def test_a_tag_that_nobody_has_is_told_with_its_like(gateway: Gateway) -> None:
    """As a filter it finds nothing; in a query it is a word, and the note may help."""
    asked = await gateway.search("invoices", filters=Filters(tags=frozenset({"finanse"})))
    said = await gateway.search("invoices #finanse")
    strange = await gateway.search("invoices", filters=Filters(tags=frozenset({"qqq"})))

    told = ["nobody has the tag 'finanse'; near: finance"]
    assert ([], told) == (names(asked), details(asked, "unknown_tag"))
    assert told == details(said, "unknown_tag")
    assert names(said)
    assert ["nobody has the tag 'qqq'"] == details(strange, "unknown_tag")


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        (["#finance list", "pay #finance"], {"list_invoices", "pay_invoice"}),
        (["list #finance", "post a message"], {"list_invoices", "pay_invoice", "post_message"}),
        (["#finance", "#finance"], {"list_invoices", "pay_invoice"}),
    ],
)
async def test_of_several_queries_only_what_all_say_is_a_filter(
    gateway: Gateway, queries: Sequence[str], found: set[str]
) -> None:
    """They are steps of one task."""
    result = await gateway.search(queries=queries, limit=9)

    assert found == set(names(result))


async def test_a_catalog_without_tags_knows_none(open_gateway: OpenGateway) -> None:
    """Whatever stands behind the sign."""
    gateway = open_gateway([tool("post", "Post to a channel.")])

    found = await gateway.search("post to #general")

    assert ["post"] == names(found)
    assert not {"unknown_tag", "query_tagged"} & set(codes(found))
