"""Requests as people write them, and as they are frozen."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.quality.requests import (
    EvalRequest,
    RequestSet,
    catalog_digest,
    catalog_digests,
    freeze,
    parse,
    to_json_lines,
)
from gateway.types import Filters, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import tool

TABLE = """
# What our people ask

| request | tools |
| --- | --- |
| what do I owe | `list_invoices` |
| find a flight and book it | search_flights -> book_flight |
| mail with the weather \\| today | get_weather, send_email or read_email |
| feed the cat | none |
"""


def test_a_markdown_table_is_read() -> None:
    """Several tools, their order, alternatives, none, and a bar in a cell."""
    found = parse(TABLE, where="asked.md").requests

    assert [
        ("what do I owe", (("list_invoices",),), False),
        ("find a flight and book it", (("search_flights",), ("book_flight",)), True),
        ("mail with the weather | today", (("get_weather",), ("send_email", "read_email")), False),
        ("feed the cat", (), False),
    ] == [(each.text, each.wanted, each.ordered) for each in found]


def test_a_table_without_a_heading_is_read() -> None:
    assert 1 == len(parse("| what do I owe | list_invoices |", where="x").requests)


def test_json_lines_are_read() -> None:
    text = (
        '# a remark\n{"request": "q", "tools": ["a", ["b", "c"]], "ordered": true}\n\n'
        '{"request": "r", "tools": "none", "language": "de"}\n'
    )

    assert RequestSet(
        requests=(
            EvalRequest(text="q", wanted=(("a",), ("b", "c")), ordered=True),
            EvalRequest(text="r", language="de"),
        )
    ) == parse(text, where="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x: there are no requests"),
        ("| a | b |\n| only |", "x, line 2: | what is asked | tool |"),
        ("what is this", "x, line 1: it is neither a table row nor JSON"),
        ('{"request": ""}', "x, line 1: request must be a text that is not empty"),
        ('{"request": "a", "tool": "b"}', "x, line 1: unknown key 'tool'"),
        ('{"request": "a", "tools": [1]}', "x, line 1: tools"),
        ("[1]", "x, line 1: it must be an object"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(text, where="x")

    assert str(raised.value).startswith(message)


def frozen(gateway: Gateway, *requests: EvalRequest) -> RequestSet:
    return freeze(requests, asyncio.run(gateway.snapshot()), Filters())


def test_frozen_requests_name_ids_and_the_catalog(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """They are read back as they were written."""
    gateway = open_gateway(catalog)
    found = frozen(gateway, *parse(TABLE, where="x").requests, *parse(TABLE, where="x").requests)

    assert 4 == len(found.requests)
    assert (("shelf/search_flights",), ("shelf/book_flight",)) == found.requests[1].wanted
    assert found == parse(to_json_lines(found), where="y")
    assert found.catalog


def test_an_unknown_tool_is_refused_with_near_names(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)

    with pytest.raises(InvalidRequestError, match=r"'q': unknown tool.*list_invoices"):
        frozen(gateway, EvalRequest(text="q", wanted=(("list_invoice",),)))


def test_the_digest_changes_with_any_definition(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Of the same tools it is the same, in any order."""
    other = (*catalog[1:], tool("send_email", "Send e-mails."))
    digests = []
    for tools in (catalog, catalog[::-1], other, catalog[1:]):
        snapshot = asyncio.run(open_gateway(tools).snapshot())
        digests.append(catalog_digest(catalog_digests(snapshot.visible(Filters()))))

    assert digests[0] == digests[1]
    assert 3 == len(set(digests))
