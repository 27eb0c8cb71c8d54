"""Token counts of a model's input, with and without a gateway."""

from __future__ import annotations

from dataclasses import replace

from gateway.discovery import model_view, proxy, render
from gateway.discovery.token_counter import token_counter
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions
from gateway.runtime.text import estimate_tokens, json_tokens
from gateway.types import SearchResult, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import suspicious, tool


def test_token_counter_counts_answers_and_schemas(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Without a gateway, all schemas are sent. With one, the meta-tools are sent with each
    request.
    """
    gateway: Gateway = open_gateway(catalog)

    async def work() -> tuple[int, int, int, int, int]:
        tokens = await token_counter(gateway)
        result = await gateway.search("play a song", limit=1)
        answer, schemas = tokens.count(result)
        sent = [
            json_tokens(proxy(entity, DiscoveryOptions())) for entity in await gateway.list_tools()
        ]
        return tokens.catalog, sum(sent), tokens.fixed, answer, schemas

    catalog_tokens, all_sent, fixed, answer, schemas = gateway.bridge.call(work)

    assert all_sent == catalog_tokens
    assert 100 < fixed
    assert 0 < schemas < all_sent
    assert 0 < answer


def test_empty_catalog_has_zero_tokens(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()

    async def work() -> tuple[int, int, tuple[int, int]]:
        tokens = await token_counter(gateway)
        return tokens.catalog, tokens.fixed, tokens.count(await gateway.search("x"))

    assert (0, 0, (0, 0)) == gateway.bridge.call(work)


async def test_model_view_contains_answer_and_proxies(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A tool that was removed since the search is omitted."""
    gateway = open_gateway([*catalog, suspicious(tool("play_record", "Play a record of a song."))])
    result = await gateway.search("play a song", limit=2)

    view = await model_view(gateway, result)

    (played,) = [entity for entity in await gateway.list_tools() if entity.name == "play_music"]
    options = DiscoveryOptions()
    assert {"play_music", "play_record"} == {entity.name for entity in result.matches}
    assert (render(result, options), ("play_music",)) == (view.text, view.tools)
    assert (estimate_tokens(view.text), json_tokens(proxy(played, options))) == (
        view.text_tokens,
        view.schema_tokens,
    )
    gone = replace(result.matches[0], id="gone/tool", name="gone_tool")
    without = await model_view(gateway, replace(result, matches=(gone,)))
    assert ((), 0) == (without.tools, without.schema_tokens)
    assert "gone_tool" in without.text
    nothing = await model_view(gateway, SearchResult(mode="empty"))
    assert ((), 0) == (nothing.tools, nothing.schema_tokens)
