"""LlamaIndex: a function agent with the retriever, against a real HTTP server.

LlamaIndex's integration of OpenAI requires an older `openai` than the gateway. Its integration of
Mistral uses the same wire format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway import Gateway
from gateway.testing import ScriptedModel, Turn
from tests.apps.adapters.conformance import (
    Cast,
    Conformance,
    Setup,
    answer,
    find,
    schema_of,
    tell_time,
    use,
)
from tests.apps.adapters.frameworks import needs

needs("llama-index", "llama_index.core", "llama_index.llms.mistralai")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool
from llama_index.llms.mistralai import MistralAI

from gateway.adapters.llama_index import GatewayRetriever

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"  # warnings of the framework about pydantic and itself
)


@pytest.fixture
def cast(cast: Cast) -> Cast:
    """Function that starts a scripted model which adds text to every call, because LlamaIndex's
    integration fails without text.
    """

    def start(*turns: Turn) -> ScriptedModel:
        return cast(*(replace(turn, text=turn.text or "One moment.") for turn in turns))

    return start


class TestLlamaIndex(Conformance):
    """The common tests with LlamaIndex."""

    async def converse(self, setup: Setup, url: str) -> str:
        return await ask(setup, url, "Please help me.")


async def ask(setup: Setup, url: str, text: str) -> str:
    """Send *text* to an agent of *setup* with the scripted model at *url*; return its answer."""
    llm = MistralAI(model="mistral-large-latest", api_key="test", endpoint=url.removesuffix("/v1"))
    retriever = GatewayRetriever(
        setup.gateway, setup.host, approve=setup.approve, caller=setup.caller
    )
    agent = FunctionAgent(
        llm=llm, tools=list(setup.host), tool_retriever=retriever, streaming=False
    )
    async with llm._client:  # noqa: SLF001  (the integration closes it nowhere)
        return str(await agent.run(text))


async def test_tools_that_match_the_user_message_are_offered(gateway: Gateway, cast: Cast) -> None:
    """LlamaIndex searches before the first request to the model. The offered tools have their real
    schemas.
    """
    model = cast(use("find_invoice", number="INV-7"), Turn("Not paid."))

    output = await ask(Setup(gateway, [tell_time]), model.base_url, "look up an invoice")

    first, second = model.requests
    assert "Not paid." == output
    assert {"tell_time", "search_tools", "call_tool", "find_invoice"} <= set(first.tool_names)
    shown = first.functions["find_invoice"]["parameters"]
    assert schema_of("find_invoice", await gateway.list_tools()) == shown
    assert '"paid": false' in answer(second)


async def test_model_calls_tools_of_its_own_search_by_name(gateway: Gateway, cast: Cast) -> None:
    """LlamaIndex cannot add tools during a run, so a search result contains their schemas."""
    call = use("call_tool", name="play_music", arguments={"song": "Yesterday"})
    model = cast(find("play a song"), call, Turn("Enjoy."))

    await ask(Setup(gateway), model.base_url, "Please help me.")

    assert '"parameters"' in answer(model.requests[1])
    assert "playing Yesterday" in answer(model.requests[2])


async def test_retriever_accepts_blocking_calls_and_bundles(gateway: Gateway) -> None:
    retriever = GatewayRetriever(gateway, [FunctionTool.from_defaults(tell_time)])

    result = retriever.retrieve(QueryBundle("play a song"))

    (player,) = [tool for tool in result if tool.metadata.name == "play_music"]
    output: Any = player(song="Yesterday")
    assert (False, "playing Yesterday") == (output.is_error, output.content)
    assert ["search_tools", "call_tool"] == [tool.metadata.name for tool in retriever.retrieve(" ")]
