"""Tokens of a catalog, with and without a gateway."""

from __future__ import annotations

from gateway.discovery.proxies import proxy
from gateway.discovery.token_counter import token_counter
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions
from gateway.runtime.text import json_tokens
from gateway.types import ToolDefinition
from tests.conftest import OpenGateway


def test_an_answer_and_the_schemas_that_it_brings_are_counted(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Without a gateway all schemas are sent; the meta-tools are sent with each request."""
    gateway: Gateway = open_gateway(catalog)

    async def work() -> tuple[int, int, int, int, int]:
        tokens = await token_counter(gateway)
        result = await gateway.search("play a song", limit=1)
        answer, schemas = tokens.count(result)
        sent = [json_tokens(proxy(each, DiscoveryOptions())) for each in await gateway.list_tools()]
        return tokens.catalog, sum(sent), tokens.fixed, answer, schemas

    catalog_tokens, all_sent, fixed, answer, schemas = gateway.bridge.call(work)

    assert all_sent == catalog_tokens
    assert 100 < fixed
    assert 0 < schemas < all_sent
    assert 0 < answer


def test_an_empty_catalog_costs_nothing(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()

    async def work() -> tuple[int, int, tuple[int, int]]:
        tokens = await token_counter(gateway)
        return tokens.catalog, tokens.fixed, tokens.count(await gateway.search("x"))

    assert (0, 0, (0, 0)) == gateway.bridge.call(work)
