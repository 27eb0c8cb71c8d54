"""What a model reads of a catalog with and without a gateway, and of one
search, for people.
"""

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
    """One search as a model reads it, in mode ``proxy`` and at the beginning of a conversation."""

    text: str
    """The answer of the search tool, as it is sent."""
    text_tokens: int
    """Estimated, as all tokens here."""
    tools: tuple[str, ...]
    """The found tools that it may call directly from then on, best first."""
    schema_tokens: int
    """Of the definitions of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts the tokens that a model reads, estimated."""

    catalog: int
    """Of all schemas."""
    fixed: int
    """Of the meta-tools."""
    count: Callable[[SearchResult], tuple[int, int]]
    """Returns the tokens of an answer, and of the schemas of the found tools."""


async def model_view(gateway: Gateway, result: SearchResult) -> ModelView:
    """Return what a model is shown of *result*; tools that are gone meanwhile are left out."""
    options, snapshot = gateway.options.discovery, await gateway.snapshot()
    text, direct = render(result, options), set(direct_names(result, options))
    positions = snapshot.eligibility.by_id
    found = {match.name: positions.get(match.id) for match in result.shown if match.name in direct}
    entities = [snapshot.entities[at] for at in found.values() if at is not None]
    return ModelView(
        text=text,
        text_tokens=estimate_tokens(text),
        tools=tuple(entity.exposed_name for entity in entities),
        schema_tokens=sum(json_tokens(proxy(entity, options)) for entity in entities),
    )


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
