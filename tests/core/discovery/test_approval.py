"""Calls that need the host's approval. The arguments that the host approved are the ones that are
sent.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import Approval, Gateway
from gateway.discovery import MetaNames, ToolList
from gateway.discovery.approval import needs_approval
from gateway.discovery.call_handler import ToolCall, handle_call
from gateway.embed import MemoryVectorStore
from gateway.options import Confirm
from gateway.types import Hints
from tests.conftest import OpenGateway
from tests.fakes import ListSource, Shelf, tool

READS = Hints(read_only=True, destructive=False)
TOOLS = ToolList(names=MetaNames(search="search_tools", call="call_tool"), mode="proxy")


@pytest.mark.parametrize("confirm", ["destructive", "not_read_only"])
async def test_tool_hints_of_an_untrusted_server_do_not_avoid_an_approval(
    open_gateway: OpenGateway, confirm: Confirm
) -> None:
    """They do so only if the host trusts the whole server, or this tool."""
    gateway = open_gateway()
    gateway.add_source(ListSource("stranger", [tool("look", hints=READS)]))
    gateway.add_source(ListSource("friend", [tool("see", hints=READS)], trusted=True))
    gateway.add_source(ListSource("other", [tool("read")]), hints={"read": READS})
    gateway.add_virtual_server("v", {"peek": "stranger/look", "view": "other/read"})
    entities = {entity.id: entity for entity in await gateway.list_tools()}

    needing_approval = {key for key, entity in entities.items() if needs_approval(entity, confirm)}

    assert {"stranger/look", "v/peek"} == needing_approval
    assert {"friend/see", "other/read", "v/view"} == entities.keys() - needing_approval


async def test_tool_hints_of_an_untrusted_server_can_require_an_approval(
    open_gateway: OpenGateway,
) -> None:
    """If nobody can be asked, only tools that are marked as destructive are refused."""
    hints = {"look": READS, "silent": Hints(), "wipe": Hints(read_only=True, destructive=True)}
    gateway = open_gateway([tool(name, hints=hint) for name, hint in hints.items()])

    needing_approval = [
        entity.name
        for entity in await gateway.list_tools()
        if needs_approval(entity, "destructive", can_ask=False)
    ]

    assert ["wipe"] == needing_approval


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def mutate(value: Any) -> None:
    """Change every mutable part of a value, at any depth."""
    if isinstance(value, dict):
        for item in value.values():
            mutate(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            mutate(item)
        value.append("spoilt")


@pytest.mark.parametrize("by_meta_tool", [True, False])
def test_approved_arguments_are_the_sent_arguments(by_meta_tool: bool) -> None:
    """The caller may change its own arguments while the host decides, and the host may change its
    copy.
    """
    shelf = Shelf([tool("pay")])
    with closing(Gateway(strategy="graph", vector_store=MemoryVectorStore())) as gateway:
        gateway.add_server("shelf", server=shelf.server)

        @given(st.dictionaries(st.text(max_size=5), values, max_size=4))
        def call_and_spoil(arguments: dict[str, Any]) -> None:
            whole = json.dumps(arguments)
            parsed = {"name": "pay", "arguments": arguments} if by_meta_tool else arguments
            seen_arguments: list[object] = []

            async def approve(approval: Approval) -> bool:
                seen_arguments.append(deepcopy(approval.arguments))
                mutate(approval.arguments)
                mutate(parsed)
                return True

            name = "call_tool" if by_meta_tool else "pay"
            call = ToolCall(id="1", name=name, arguments="", parsed=parsed)
            answer = asyncio.run(handle_call(gateway, TOOLS, call, approve=approve))

            assert not answer.failed
            assert [json.loads(whole)] == seen_arguments
            assert ("pay", json.loads(whole)) == shelf.calls[-1]

        call_and_spoil()
