"""Conversion to Anthropic's Messages API: deferred tools and tool references.

    tools = [to_anthropic(search), *(definition(entity, options) for entity in entities)]

The service appends a deferred definition to the prompt when a search refers to it, so the prompt
cache stays valid. It accepts 10,000 definitions with unique names, and requires one tool that is
not deferred.
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
    """Return *entity* as a tool with its real schema.

    *options* limit the description. The model always sees a tool that is not *deferred*.
    """
    definition = to_anthropic(proxy(entity, options))
    return {**definition, "defer_loading": True} if deferred else definition


def to_anthropic(tool: Mapping[str, object]) -> Block:
    """Convert a function tool of Chat Completions, such as a meta-tool, to the Messages API.

    Raises:
        InvalidRequestError: If *tool* is not a function tool.
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
    """Return references to the found tools, best first.

    *options* limit their number. Names in *hidden*, such as those of the host, are not used.
    """
    names = direct_names(result, options, hidden=hidden)
    return [{"type": "tool_reference", "tool_name": name} for name in names]


def tool_call(block: Mapping[str, object]) -> ToolCall:
    """Read a ``tool_use`` block.

    Raises:
        InvalidRequestError: If the block has another type.
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
    """Return the answer to a call as a content block: references for a search with matches, or
    text.

    *options* and *hidden* are those of `references`.
    """
    tool_references = (
        references(answer.search, options, hidden=hidden) if answer.search is not None else []
    )
    block: Block = {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": tool_references or answer.text,
    }
    return {**block, "is_error": True} if answer.failed else block
