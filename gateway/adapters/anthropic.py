"""Discovery in the words of Anthropic's Messages API: deferred tools and tool references. Pure.

    tools = [to_anthropic(search), *(definition(entity, options) for entity in entities)]

The service keeps deferred definitions out of the prompt until an answer to a search refers to
them; then they stand behind everything before, and the prompt's cache survives. It takes 10,000
of them, each name once, and at least one tool that is not deferred: the search.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from gateway.discovery.call_handler import ToolAnswer, ToolCall
from gateway.discovery.render_results import direct_names
from gateway.discovery.window import proxy
from gateway.errors import InvalidRequestError
from gateway.options import DiscoveryOptions
from gateway.types import Entity, SearchResult

Block = dict[str, object]
"""A tool definition or a content block, as JSON."""


def definition(entity: Entity, options: DiscoveryOptions, *, deferred: bool = True) -> Block:
    """Write *entity* as a tool with its real schema.

    Args:
        entity: What the gateway lists.
        options: How much of its description is kept.
        deferred: False for a tool that the model always sees.
    """
    definition = to_anthropic(proxy(entity, options))
    return {**definition, "defer_loading": True} if deferred else definition


def to_anthropic(tool: Mapping[str, object]) -> Block:
    """Write a function tool of Chat Completions, a meta-tool too, as Anthropic's.

    Raises:
        InvalidRequestError: If it is no function tool.
    """
    function = tool.get("function")
    if not isinstance(function, Mapping) or not function.get("name"):
        raise InvalidRequestError("only function tools with a name can be written for Anthropic")
    block: Block = {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function.get("parameters", {"type": "object", "properties": {}}),
    }
    return {**block, "strict": True} if function.get("strict") is True else block


def references(
    result: SearchResult, options: DiscoveryOptions, *, hidden: Collection[str] = ()
) -> list[Block]:
    """Refer to the tools that a search has found, best first; empty if there are none.

    Args:
        result: What was found.
        options: How many of it may become tools.
        hidden: Names that mean something else: the host's own tools.
    """
    names = direct_names(result, options, hidden=hidden)
    return [{"type": "tool_reference", "tool_name": name} for name in names]


def tool_call(block: Mapping[str, object]) -> ToolCall:
    """Read a ``tool_use`` block.

    Raises:
        InvalidRequestError: If it is none.
    """
    if block.get("type") != "tool_use":
        raise InvalidRequestError("only a block of type 'tool_use' is a call")
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    return ToolCall(
        id=str(block.get("id", "")), name=str(block.get("name", "")), arguments=arguments
    )


def tool_result(
    answer: ToolAnswer, options: DiscoveryOptions, *, hidden: Collection[str] = ()
) -> Block:
    """Write the answer to a call: of a search that found something as references, else as text."""
    found = references(answer.search, options, hidden=hidden) if answer.search is not None else []
    block: Block = {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": found or answer.text,
    }
    return {**block, "is_error": True} if answer.failed else block
