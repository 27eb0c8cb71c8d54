"""Requests of tools for input, which reach the client of the call in all protocol versions."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.server import Server

from gateway.mcp.server_requests import CALLING_CLIENT
from gateway.options import ChatOptions, Options, UpstreamOptions
from gateway.serve.client import PendingCalls
from gateway.serve.mcp_server import mcp_server
from gateway.types import Hints
from tests.apps.serve.asking import NAME
from tests.apps.serve.conftest import Make
from tests.apps.serve.test_mcp_server import text_of
from tests.apps.serve.upstream import ERAS, UPSTREAMS, piped, target
from tests.conftest import OpenGateway
from tests.fakes import tool


class Desk:
    """A client that answers requests for input: it has a person, a model and folders."""

    def __init__(self) -> None:
        self.done: list[tuple[float, float | None, str | None]] = []

    async def elicit(self, context: object, params: types.ElicitRequestParams) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Ada", "context": "c"})

    async def sample(self, context: object, params: types.CreateMessageRequestParams) -> Any:
        (message,) = params.messages
        answer = f"the model on {getattr(message.content, 'text', '')!r}"
        content = types.TextContent(text=answer)
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(self, context: object) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])  # type: ignore[arg-type]  # a URL is made of it

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.done.append((progress, total, message))

    def client(self, server: Server[Any], mode: str = "auto") -> Client:
        """Return an MCP client of *server* that supports all kinds of input."""
        return Client(
            server,
            mode=mode,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
        )


async def error_of(work: Any) -> MCPError:
    """Return the MCP error that *work* raises. It must fail."""
    with pytest.raises(MCPError) as raised:
        await work
    return raised.value


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("test_elicitation", {"message": "Who?"}, "accept"),
        ("test_sampling", {"prompt": "Why?"}, "the model on 'Why?'"),
        ("test_input_required_result_list_roots", {}, "file:///home/ada"),
        ("test_input_required_result_multiple_inputs", {}, "everything was said"),
        ("test_input_required_result_multi_round", {}, ""),
    ],
)
async def test_tool_asks_the_client_of_its_call(
    open_fixture_gateway: Make,
    mode: str,
    over: str,
    name: str,
    arguments: dict[str, object],
    answer: str,
) -> None:
    async with Desk().client(mcp_server(open_fixture_gateway(over)), mode) as client:
        result = await client.call_tool("call_tool", {"name": name, "arguments": arguments})

    assert not result.is_error, text_of(result)
    assert answer in text_of(result)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
async def test_server_of_a_prompt_asks_the_client_for_input(
    open_fixture_gateway: Make, mode: str, over: str
) -> None:
    async with Desk().client(mcp_server(open_fixture_gateway(over)), mode) as client:
        (message,) = (await client.get_prompt("fixture/test_input_required_result_prompt")).messages

    assert isinstance(message.content, types.TextContent)
    assert "'context': 'c'" in message.content.text


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("over", UPSTREAMS)
async def test_progress_reaches_only_clients_that_want_it(
    open_fixture_gateway: Make, mode: str, over: str
) -> None:
    desk, call = Desk(), {"name": "test_tool_with_progress"}
    server = mcp_server(open_fixture_gateway(over))
    async with Client(piped(server, legacy=mode == "legacy"), mode=mode) as client:
        await client.call_tool("call_tool", call)
        assert [] == desk.done
        await client.call_tool("call_tool", call, progress_callback=desk.progress)

    assert [(0, 100, "0 %"), (50, 100, "50 %"), (100, 100, "100 %")] == desk.done


@pytest.mark.parametrize("over", UPSTREAMS)
@pytest.mark.parametrize("name", ["test_elicitation", "test_input_required_result_list_roots"])
async def test_session_client_without_the_capability_gets_an_error(
    open_fixture_gateway: Make, over: str, name: str
) -> None:
    async with Client(mcp_server(open_fixture_gateway(over)), mode="legacy") as client:
        result = await client.call_tool("call_tool", {"name": name})

    assert result.is_error
    assert "the client does not support it" in text_of(result)


async def test_session_client_without_the_capability_gets_an_error_for_a_prompt(
    open_fixture_gateway: Make,
) -> None:
    async with Client(mcp_server(open_fixture_gateway("object")), mode="legacy") as client:
        error = await error_of(client.get_prompt("test_input_required_result_prompt"))
        await client.get_prompt("test_simple_prompt")

    assert types.INVALID_PARAMS == error.error.code
    assert "elicitation" in error.error.message


async def test_stateless_client_without_the_capability_gets_an_error(
    open_fixture_gateway: Make,
) -> None:
    async with Client(mcp_server(open_fixture_gateway("object"))) as client:
        error = await error_of(client.call_tool("call_tool", {"name": "test_sampling"}))
        of_prompt = await error_of(client.get_prompt("test_input_required_result_prompt"))

    assert types.MISSING_REQUIRED_CLIENT_CAPABILITY == error.error.code
    assert {"requiredCapabilities": {"sampling": {}}} == error.error.data
    assert "elicitation" in of_prompt.error.message


async def test_upstream_server_sees_the_capabilities_of_the_stateless_client(
    open_fixture_gateway: Make,
) -> None:
    server = mcp_server(open_fixture_gateway("modern"))
    async with Client(server, sampling_callback=Desk().sample) as client:
        call = {"name": "test_input_required_result_capabilities"}
        answer = await client.call_tool("call_tool", call)
    async with Client(server) as client:
        error = await error_of(client.call_tool("call_tool", {"name": "test_missing_capability"}))

    assert text_of(answer).startswith("model: the model on")
    assert "person" not in text_of(answer)
    assert {"requiredCapabilities": {"sampling": {}}} == error.error.data


ACCEPTED = types.ElicitResult(action="accept", content={"username": "ada"})
Answer = types.CallToolResult | types.InputRequiredResult


async def first_round(client: Client) -> types.InputRequiredResult:
    """Call a tool that asks for input, and return its result that requires input."""
    arguments = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
    result = await client.session.call_tool("call_tool", arguments, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def next_round(
    client: Client, state: str | None, responses: types.InputResponses, message: str = "Who?"
) -> Answer:
    """Repeat the call with *state* and *responses*, and return its answer."""
    return await client.session.call_tool(
        "call_tool",
        {"name": "test_elicitation", "arguments": {"message": message}},
        input_responses=responses,
        request_state=state,
        allow_input_required=True,
    )


@pytest.mark.parametrize("over", UPSTREAMS)
async def test_call_token_is_valid_once_and_for_its_call(
    open_fixture_gateway: Make, over: str
) -> None:
    async with Desk().client(mcp_server(open_fixture_gateway(over))) as client:
        first = await first_round(client)
        state = first.request_state
        (key,) = first.input_requests or {}
        responses: types.InputResponses = {key: ACCEPTED}
        refusals = [
            await error_of(next_round(client, "guessed", responses)),
            await error_of(next_round(client, f"{state}x", responses)),
            await error_of(next_round(client, state, responses, "Who else?")),
        ]
        done = await next_round(client, state, responses)
        refusals.append(await error_of(next_round(client, state, responses)))

    assert [types.INVALID_PARAMS] * 4 == [error.error.code for error in refusals]
    assert isinstance(done, types.CallToolResult)
    assert "accept" in text_of(done)


async def test_input_that_the_client_omits_is_requested_again(open_fixture_gateway: Make) -> None:
    async with Desk().client(mcp_server(open_fixture_gateway("modern"))) as client:
        latest = await first_round(client)
        (key,) = latest.input_requests or {}
        for responses in ({}, {key: types.ListRootsResult(roots=[])}, {"other": ACCEPTED}):
            again = await next_round(client, latest.request_state, dict(responses))
            assert isinstance(again, types.InputRequiredResult)
            assert [key] == list(again.input_requests or {})
            assert latest.request_state != again.request_state
            latest = again
        done = await next_round(client, latest.request_state, {key: ACCEPTED, "more": ACCEPTED})

    assert isinstance(done, types.CallToolResult)
    assert "accept" in text_of(done)


async def test_waiting_call_of_a_lost_client_times_out(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(options=Options(upstream=UpstreamOptions(ask_timeout_s=0.2)))
    gateway.add_server("fixture", server=target("modern"))
    async with Desk().client(mcp_server(gateway)) as client:
        error = await error_of(try_without_end(client))

    assert types.INVALID_PARAMS == error.error.code


async def try_without_end(client: Client) -> None:
    """Repeat the call without its input, until it raises an error."""
    latest: Answer = await first_round(client)
    while isinstance(latest, types.InputRequiredResult):
        latest = await next_round(client, latest.request_state, {})


@pytest.mark.parametrize("over", UPSTREAMS)
async def test_call_fails_if_the_client_refuses_the_request_for_input(
    open_fixture_gateway: Make, over: str
) -> None:

    async def refuse(context: object, params: types.ElicitRequestParams) -> Any:
        return types.ErrorData(code=-1, message="not today")

    server = mcp_server(open_fixture_gateway(over))
    async with Client(server, mode="legacy", elicitation_callback=refuse) as client:
        result = await client.call_tool("call_tool", {"name": "test_elicitation"})

    assert result.is_error
    assert "the client refused" in text_of(result)


SHELF = (
    tool("wipe", "Wipe the disk.", hints=Hints(destructive=True)),
    tool("stay_silent", "Do something."),
)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("action", "answer"), [("accept", "called wipe"), ("decline", "'wipe' was not approved")]
)
async def test_client_is_asked_to_approve_destructive_calls(
    open_gateway: OpenGateway, mode: str, action: Any, answer: str
) -> None:
    questions: list[str] = []

    async def elicit(context: object, params: types.ElicitRequestParams) -> Any:
        questions.append(params.message)
        return types.ElicitResult(action=action, content={} if action == "accept" else None)

    server = mcp_server(open_gateway(SHELF))
    async with Client(server, mode=mode, elicitation_callback=elicit) as client:
        arguments = {"name": "wipe", "arguments": {"disk": "C\u202e:"}}
        wiped = await client.call_tool("call_tool", arguments)
        silent = await client.call_tool("call_tool", {"name": "stay_silent"})

    assert (True, "called stay_silent") == (text_of(wiped).find(answer) >= 0, text_of(silent))
    assert ['May the model call shelf/wipe with {"disk": "C:"}?'] == questions


@pytest.mark.parametrize("mode", ERAS)
async def test_client_that_cannot_be_asked_calls_nothing_destructive(
    open_gateway: OpenGateway, mode: str
) -> None:
    """A client that sees the tool's hints may call it, and so may any client if the host says
    so.
    """
    never = Options(chat=ChatOptions(confirm="never"))
    call = ("call_tool", {"name": "wipe"})
    async with Client(mcp_server(open_gateway(SHELF)), mode=mode) as client:
        refused = await client.call_tool(*call)
    async with Client(mcp_server(open_gateway(SHELF), expose="all"), mode=mode) as client:
        listed = await client.call_tool("wipe")
    async with Client(mcp_server(open_gateway(SHELF, options=never)), mode=mode) as client:
        allowed = await client.call_tool(*call)

    assert refused.is_error
    assert "gateway serve --confirm never" in text_of(refused)
    assert ["called wipe"] * 2 == [text_of(listed), text_of(allowed)]


def standalone_server(calls: PendingCalls) -> Server[Any]:
    """Return an MCP server with one tool that asks its client for a name."""

    async def call(context: Any, params: types.CallToolRequestParams) -> Any:
        async def work() -> types.CallToolResult:
            caller = CALLING_CLIENT.get()
            assert caller is not None
            responses = await caller.ask({"name": NAME})
            text = types.TextContent(text=str(responses["name"]))
            return types.CallToolResult(content=[text])

        return await calls.run(context, params, work)

    async def tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    return Server("alone", on_list_tools=tools, on_call_tool=call)


@pytest.mark.parametrize("mode", ERAS)
async def test_client_on_the_same_loop_does_not_deadlock(mode: str) -> None:
    async with Desk().client(standalone_server(PendingCalls()), mode) as client:
        result = await client.call_tool("ask", {})

    assert "Ada" in text_of(result)


async def test_number_of_waiting_calls_is_limited() -> None:
    """Clients that start calls and never return must not use unlimited memory."""
    async with Desk().client(standalone_server(PendingCalls(max_pending=2))) as client:
        for _ in range(2):
            await client.session.call_tool("ask", {}, allow_input_required=True)
        error = await error_of(client.session.call_tool("ask", {}, allow_input_required=True))

    assert "too many" in error.error.message
