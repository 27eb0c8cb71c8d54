"""What a tool asks for reaches the client whose call it is, whatever either of them speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import pytest
from mcp import Client, MCPError, types
from mcp.server import Server

from gateway.gateway import Gateway
from gateway.mcp.server_requests import CALLER
from gateway.options import Options, UpstreamOptions
from gateway.serve.client import PendingCalls
from gateway.serve.mcp_server import mcp_server
from tests.conftest import OpenGateway
from tests.serve.asking import NAME
from tests.serve.test_mcp_server import text_of
from tests.serve.upstream import Fixture, piped

T = TypeVar("T")
UPSTREAMS = ["object", "modern", "legacy"]
ERAS = ["auto", "legacy"]


class Desk:
    """A client with a person, a model and folders; knows what it was asked and told."""

    def __init__(self) -> None:
        self.forms: list[str] = []
        self.prompts: list[str] = []
        self.done: list[tuple[float, float | None, str | None]] = []

    async def elicit(self, context: object, params: types.ElicitRequestParams) -> Any:
        self.forms.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada", "context": "c"})

    async def sample(self, context: object, params: types.CreateMessageRequestParams) -> Any:
        (message,) = params.messages
        text = getattr(message.content, "text", "")
        self.prompts.append(text)
        answer = types.TextContent(text=f"the model on {text!r}")
        return types.CreateMessageResult(role="assistant", content=answer, model="m")

    async def roots(self, context: object) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])  # type: ignore[arg-type]  # a URL is made of it

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.done.append((progress, total, message))

    def client(self, server: Server[Any], mode: str) -> Client:
        """A client that can do all of it."""
        return Client(
            server,
            mode=mode,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
        )


def target(over: str) -> object:
    """The fixture as a server object, or on a transport in either era."""
    server = Fixture().server()
    transport: AbstractAsyncContextManager[Any] = piped(server, legacy=over == "legacy")
    return server if over == "object" else transport


@pytest.fixture
def before(open_gateway: OpenGateway) -> Callable[[str], Gateway]:
    """Make a gateway before the fixture."""

    def make(over: str) -> Gateway:
        gateway = open_gateway()
        gateway.add_server("fixture", server=target(over))
        return gateway

    return make


def talked(talk: Callable[[], Awaitable[T]]) -> T:
    """Run *talk*, with patience."""

    async def run() -> T:
        return await asyncio.wait_for(talk(), 60)

    return asyncio.run(run())


CASES = [
    ("test_elicitation", {"message": "Who?"}, "accept"),
    ("test_sampling", {"prompt": "Why?"}, "the model on 'Why?'"),
    ("test_input_required_result_list_roots", {}, "file:///home/ada"),
    ("test_input_required_result_multiple_inputs", {}, "everything was said"),
    ("test_input_required_result_multi_round", {}, ""),
]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize(("name", "arguments", "said"), CASES)
def test_a_tool_asks_the_client_whose_call_it_is(
    before: Callable[[str], Gateway],
    mode: str,
    over: str,
    name: str,
    arguments: dict[str, object],
    said: str,
) -> None:
    """In all the ways in which clients and servers of two eras may meet."""
    desk = Desk()

    async def talk() -> types.CallToolResult:
        async with desk.client(mcp_server(before(over)), mode) as client:
            call = {"name": name, "arguments": arguments}
            return await client.call_tool("call_tool", call)

    result = talked(talk)

    assert not result.is_error, text_of(result)
    assert said in text_of(result)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
def test_a_prompt_may_ask_too(before: Callable[[str], Gateway], mode: str, over: str) -> None:
    """As the protocol has it since 2026-07-28, and as servers did before."""
    desk = Desk()

    async def talk() -> types.GetPromptResult:
        async with desk.client(mcp_server(before(over)), mode) as client:
            return await client.get_prompt("fixture/test_input_required_result_prompt")

    (message,) = talked(talk).messages

    assert isinstance(message.content, types.TextContent)
    assert "'context': 'c'" in message.content.text


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
def test_progress_reaches_who_asked_for_it(
    before: Callable[[str], Gateway], mode: str, over: str
) -> None:
    """In order, and only him."""
    desk = Desk()

    async def talk() -> None:
        call = {"name": "test_tool_with_progress"}
        server = mcp_server(before(over))
        async with Client(piped(server, legacy=mode == "legacy"), mode=mode) as client:
            await client.call_tool("call_tool", call)
            assert [] == desk.done
            await client.call_tool("call_tool", call, progress_callback=desk.progress)

    talked(talk)

    assert [(0, 100, "0 %"), (50, 100, "50 %"), (100, 100, "100 %")] == desk.done


@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize("name", ["test_elicitation", "test_input_required_result_list_roots"])
def test_a_client_of_before_that_cannot_gets_a_clear_error(
    before: Callable[[str], Gateway], over: str, name: str
) -> None:
    """And is never asked."""

    async def talk() -> types.CallToolResult:
        async with Client(mcp_server(before(over)), mode="legacy") as client:
            return await client.call_tool("call_tool", {"name": name})

    result = talked(talk)

    assert result.is_error
    assert "the client cannot do it" in text_of(result)


def test_a_client_of_before_hears_it_of_a_prompt_too(before: Callable[[str], Gateway]) -> None:
    """As an error of the protocol, after which its session lives."""

    async def talk() -> MCPError:
        async with Client(mcp_server(before("object")), mode="legacy") as client:
            with pytest.raises(MCPError) as raised:
                await client.get_prompt("test_input_required_result_prompt")
            await client.get_prompt("test_simple_prompt")
            return raised.value

    error = talked(talk)

    assert types.INVALID_PARAMS == error.error.code
    assert "elicitation" in error.error.message


def test_a_client_of_today_that_cannot_gets_the_protocols_error(
    before: Callable[[str], Gateway],
) -> None:
    """With what is missing, as it would declare it."""

    async def talk() -> MCPError:
        async with Client(mcp_server(before("object"))) as client:
            with pytest.raises(MCPError) as raised:
                await client.call_tool("call_tool", {"name": "test_sampling"})
            with pytest.raises(MCPError, match="elicitation"):
                await client.get_prompt("test_input_required_result_prompt")
            return raised.value

    error = talked(talk)

    assert types.MISSING_REQUIRED_CLIENT_CAPABILITY == error.error.code
    assert {"requiredCapabilities": {"sampling": {}}} == error.error.data


def test_a_server_of_today_knows_what_the_client_can_do(before: Callable[[str], Gateway]) -> None:
    """It asks for no more, or refuses itself."""

    async def sampling_only(context: object, params: types.CreateMessageRequestParams) -> Any:
        return await Desk().sample(context, params)

    async def talk() -> tuple[types.CallToolResult, MCPError]:
        server = mcp_server(before("modern"))
        capable = "test_input_required_result_capabilities"
        async with Client(server, sampling_callback=sampling_only) as client:
            asked = await client.call_tool("call_tool", {"name": capable})
        async with Client(server) as client:
            with pytest.raises(MCPError) as raised:
                await client.call_tool("call_tool", {"name": "test_missing_capability"})
        return asked, raised.value

    asked, error = talked(talk)

    assert text_of(asked).startswith("model: the model on")
    assert "person" not in text_of(asked)
    assert {"requiredCapabilities": {"sampling": {}}} == error.error.data


async def first_round(client: Client, name: str = "test_elicitation") -> types.InputRequiredResult:
    """The first answer to a call that asks for something."""
    arguments = {"name": name, "arguments": {"message": "Who?"}}
    result = await client.session.call_tool("call_tool", arguments, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def next_round(
    client: Client, state: str | None, said: types.InputResponses, message: str = "Who?"
) -> types.CallToolResult | types.InputRequiredResult:
    """The answer to the second try."""
    arguments = {"name": "test_elicitation", "arguments": {"message": message}}
    return await client.session.call_tool(
        "call_tool",
        arguments,
        input_responses=said,
        request_state=state,
        allow_input_required=True,
    )


ACCEPTED = types.ElicitResult(action="accept", content={"username": "ada"})


@pytest.mark.parametrize("over", UPSTREAMS)
def test_a_token_serves_once_and_for_its_own_call(
    before: Callable[[str], Gateway], over: str
) -> None:
    """Guessed, changed, used twice, or for another call: it names nothing."""

    async def talk() -> tuple[list[int], types.CallToolResult | types.InputRequiredResult]:
        async with Desk().client(mcp_server(before(over)), "auto") as client:
            first = await first_round(client)
            (key,) = first.input_requests or {}
            said: types.InputResponses = {key: ACCEPTED}
            codes = []

            async def refused(state: str | None, message: str = "Who?") -> None:
                with pytest.raises(MCPError) as raised:
                    await next_round(client, state, said, message)
                codes.append(raised.value.error.code)

            await refused("guessed")
            await refused(f"{first.request_state}x")
            await refused(first.request_state, "Who else?")
            done = await next_round(client, first.request_state, said)
            await refused(first.request_state)
            return codes, done

    codes, done = talked(talk)

    assert [types.INVALID_PARAMS] * 4 == codes
    assert isinstance(done, types.CallToolResult)
    assert "accept" in text_of(done)


def test_what_is_missing_is_asked_for_again(before: Callable[[str], Gateway]) -> None:
    """Also if something of another kind was said."""

    async def talk() -> list[str]:
        async with Desk().client(mcp_server(before("modern")), "auto") as client:
            told = await first_round(client)
            (key,) = told.input_requests or {}
            for said in ({}, {key: types.ListRootsResult(roots=[])}, {"other": ACCEPTED}):
                again = await next_round(client, told.request_state, dict(said))
                assert isinstance(again, types.InputRequiredResult)
                assert [key] == list(again.input_requests or {})
                assert told.request_state != again.request_state
                told = again
            done = await next_round(client, told.request_state, {key: ACCEPTED, "more": ACCEPTED})
            assert isinstance(done, types.CallToolResult)
            return [text_of(done)]

    assert ["accept" in text for text in talked(talk)] == [True]


def test_a_client_that_never_comes_back_is_forgotten(open_gateway: OpenGateway) -> None:
    """Nothing waits for it longer than `ask_timeout_s`."""
    gateway = open_gateway(options=Options(upstream=UpstreamOptions(ask_timeout_s=0.2)))
    gateway.add_server("fixture", server=target("modern"))

    async def talk() -> MCPError:
        async with Desk().client(mcp_server(gateway), "auto") as client:
            told = await first_round(client)
            while True:
                try:
                    again = await next_round(client, told.request_state, {})
                except MCPError as error:
                    return error
                assert isinstance(again, types.InputRequiredResult)
                told = again

    assert types.INVALID_PARAMS == talked(talk).error.code


def test_a_client_that_refuses_ends_the_call_with_an_error(
    before: Callable[[str], Gateway],
) -> None:
    """The tool's server hears of it, or the model does."""

    async def refuse(context: object, params: types.ElicitRequestParams) -> Any:
        return types.ErrorData(code=-1, message="not today")

    async def talk(over: str) -> types.CallToolResult:
        server = mcp_server(before(over))
        async with Client(server, mode="legacy", elicitation_callback=refuse) as client:
            return await client.call_tool("call_tool", {"name": "test_elicitation"})

    results = [talked(lambda over=over: talk(over)) for over in UPSTREAMS]  # type: ignore[misc]  # bound at once

    assert [True] * 3 == [each.is_error for each in results]
    assert all("the client refused" in text_of(each) for each in results)


def alone(exchanges: PendingCalls) -> Server[Any]:
    """A server whose one tool asks for a name, without any other server."""

    async def call(context: Any, params: types.CallToolRequestParams) -> Any:
        async def work() -> types.CallToolResult:
            caller = CALLER.get()
            assert caller is not None
            said = await caller.ask({"name": NAME})
            return types.CallToolResult(content=[types.TextContent(text=str(said["name"]))])

        return await exchanges.run(context, params, work)

    async def tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    return Server("alone", on_list_tools=tools, on_call_tool=call)


@pytest.mark.parametrize("mode", ERAS)
def test_who_asks_may_be_on_the_same_loop(mode: str) -> None:
    """Nothing waits for itself."""
    desk = Desk()

    async def talk() -> types.CallToolResult:
        async with desk.client(alone(PendingCalls()), mode) as client:
            return await client.call_tool("ask", {})

    assert "Ada" in text_of(talked(talk))


def test_only_so_many_calls_wait() -> None:
    """A client that begins and never comes back costs a bounded amount."""

    async def talk() -> list[MCPError]:
        refusals = []
        async with Desk().client(alone(PendingCalls(max_pending=2)), "auto") as client:
            for _ in range(3):
                try:
                    await client.session.call_tool("ask", {}, allow_input_required=True)
                except MCPError as error:
                    refusals.append(error)
        return refusals

    (error,) = talked(talk)

    assert "too many" in error.error.message
