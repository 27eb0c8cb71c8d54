"""What a model reads of a catalog with and without a gateway, for `gateway.quality`."""

from __future__ import annotations

from gateway.discovery.proxies import proxy
from gateway.discovery.render_results import direct_names, render
from gateway.discovery.tool_list import ToolListBuilder, ToolListRequest
from gateway.gateway import Gateway
from gateway.quality.evaluation import TokenCounter
from gateway.runtime.text import estimate_tokens, json_tokens
from gateway.types import ANYONE, Caller, SearchResult


async def token_counter(gateway: Gateway, *, caller: Caller = ANYONE) -> TokenCounter:
    """Return what counts the tokens of answers to *caller*, as in mode ``proxy``."""
    listed = await ToolListBuilder(gateway).build(
        ToolListRequest(messages=(), mode="proxy", caller=caller)
    )
    options, searchable = gateway.options.discovery, listed.searchable
    if searchable is None:
        return TokenCounter(catalog=0, fixed=0, count=lambda _: (0, 0))

    def count(result: SearchResult) -> tuple[int, int]:
        found = searchable.select(direct_names(result, options))
        schemas = sum(json_tokens(proxy(entity, options)) for entity in found)
        return estimate_tokens(render(result, options)), schemas

    return TokenCounter(catalog=searchable.tokens, fixed=listed.own_tokens, count=count)
