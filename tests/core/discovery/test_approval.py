"""Which calls the host is asked about, and that what it approves is what is called."""

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
async def test_a_stranger_does_not_say_that_its_tools_are_harmless(
    open_gateway: OpenGateway, confirm: Confirm
) -> None:
    """The host does, of a whole server or of one tool."""
    gateway = open_gateway()
    gateway.add_source(ListSource("stranger", [tool("look", hints=READS)]))
    gateway.add_source(ListSource("friend", [tool("see", hints=READS)], trusted=True))
    gateway.add_source(ListSource("other", [tool("read")]), hints={"read": READS})
    gateway.add_virtual_server("v", {"peek": "stranger/look", "view": "other/read"})
    entities = {each.id: each for each in await gateway.list_tools()}

    asked = {key for key, each in entities.items() if needs_approval(each, confirm)}

    assert {"stranger/look", "v/peek"} == asked
    assert {"friend/see", "other/read", "v/view"} == entities.keys() - asked


async def test_what_a_stranger_says_makes_it_stricter(open_gateway: OpenGateway) -> None:
    """Where nobody can be asked only what says that it destroys is refused."""
    hints = {"look": READS, "silent": Hints(), "wipe": Hints(read_only=True, destructive=True)}
    gateway = open_gateway([tool(name, hints=each) for name, each in hints.items()])

    asked = [
        each.name
        for each in await gateway.list_tools()
        if needs_approval(each, "destructive", can_ask=False)
    ]

    assert ["wipe"] == asked


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def spoil(value: Any) -> None:
    """Change whatever can be changed in a value, however deep."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")


@pytest.mark.parametrize("by_meta_tool", [True, False])
def test_what_is_approved_is_what_is_called(by_meta_tool: bool) -> None:
    """Whoever holds the objects of the call, or of the question, may change them meanwhile."""
    shelf = Shelf([tool("pay")])
    with closing(Gateway(vector_store=MemoryVectorStore())) as gateway:
        gateway.add_server("shelf", server=shelf.server)

        @given(st.dictionaries(st.text(max_size=5), values, max_size=4))
        def call_and_spoil(arguments: dict[str, Any]) -> None:
            whole = json.dumps(arguments)
            parsed = {"name": "pay", "arguments": arguments} if by_meta_tool else arguments
            shown: list[object] = []

            async def approve(approval: Approval) -> bool:
                shown.append(deepcopy(approval.arguments))
                spoil(approval.arguments)
                spoil(parsed)
                return True

            name = "call_tool" if by_meta_tool else "pay"
            call = ToolCall(id="1", name=name, arguments="", parsed=parsed)
            answer = asyncio.run(handle_call(gateway, TOOLS, call, approve=approve))

            assert not answer.failed
            assert [json.loads(whole)] == shown
            assert ("pay", json.loads(whole)) == shelf.calls[-1]

        call_and_spoil()
