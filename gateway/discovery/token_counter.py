"""Token counts of a model's input with and without a gateway, for reports to people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.discovery.render_results import direct_names, render
from gateway.discovery.tool_list import ToolListBuilder, ToolListRequest
from gateway.discovery.window import proxy
from gateway.gateway import Gateway
from gateway.runtime.text import estimate_tokens, json_tokens
from gateway.types import ANYONE, Caller, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """Part of a model's input that one search adds in mode ``proxy``."""

    text: str
    """The answer of the search tool, as it is sent."""
    text_tokens: int
    tools: tuple[str, ...]
    """Names of the found tools that become proxies, best first."""
    schema_tokens: int
    """Estimated tokens of the definitions of the proxies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Estimated token counts of a model's input, with and without a gateway."""

    catalog: int
    """Tokens of the definitions of all tools in the catalog, which are sent without a gateway."""
    fixed: int
    """Tokens of the definitions of the meta-tools, which are sent with every request."""
    count: Callable[[SearchResult], tuple[int, int]]
    """Returns the tokens of the answer to a search, and of the definitions of its proxies."""


async def model_view(gateway: Gateway, result: SearchResult) -> ModelView:
    """Return the part of a model's input that *result* adds, without tools removed since then."""
    options, snapshot = gateway.options.discovery, await gateway.snapshot()
    text, direct = render(result, options), set(direct_names(result, options))
    positions = snapshot.eligibility.by_id
    found_positions = {
        match.name: positions.get(match.id) for match in result.shown if match.name in direct
    }
    entities = [
        snapshot.entities[position] for position in found_positions.values() if position is not None
    ]
    return ModelView(
        text=text,
        text_tokens=estimate_tokens(text),
        tools=tuple(entity.exposed_name for entity in entities),
        schema_tokens=sum(json_tokens(proxy(entity, options)) for entity in entities),
    )


async def token_counter(gateway: Gateway, *, caller: Caller = ANYONE) -> TokenCounter:
    """Create a counter for the catalog that *caller* may see, in mode ``proxy``."""
    listed = await ToolListBuilder(gateway).build(
        ToolListRequest(messages=(), mode="proxy", caller=caller)
    )
    options, searchable = gateway.options.discovery, listed.searchable
    if searchable is None:
        return TokenCounter(catalog=0, fixed=0, count=lambda _: (0, 0))

    def count(result: SearchResult) -> tuple[int, int]:
        entities = searchable.select(direct_names(result, options))
        schemas = sum(json_tokens(proxy(entity, options)) for entity in entities)
        return estimate_tokens(render(result, options)), schemas

    return TokenCounter(catalog=searchable.tokens, fixed=listed.own_tokens, count=count)
