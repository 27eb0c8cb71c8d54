"""The Responses API: the same loop as for Chat Completions, and native tool search."""

from __future__ import annotations

from typing import Any

import openai as sdk
import pytest
from openai import OpenAI
from openai.types.responses import Response

from gateway import AutoDiscoveryClient, Gateway, accounting_of
from gateway.errors import InvalidRequestError
from gateway.options import DiscoveryOptions
from gateway.runtime.text import json_tokens
from gateway.testing import Call, ModelRequest, Turn
from tests.conftest import OpenGateway
from tests.core.chat.answering import Answering
from tests.core.chat.conftest import summing
from tests.core.chat.stage import SUM, WAYS, Role, Speaker, Stage, Way, find, look

META = ("search_tools", "call_tool")
MINE = {"type": "function", "name": "mine", "parameters": None, "strict": False}


def working_role(stage: Stage) -> Role:
    return stage.cast(find("add two numbers"), SUM, repeat)


def repeat(request: ModelRequest) -> Turn:
    """Return a turn that repeats the last tool result of *request*."""
    return Turn(f"It is {request.last_tool_results()[0]['content']}.")


def gateway_in_mode(open_gateway: OpenGateway, mode: Any) -> Gateway:
    return summing(open_gateway, discovery=DiscoveryOptions(mode=mode))


def calls(response: Response) -> list[str]:
    return [item.name for item in response.output if item.type == "function_call"]


@pytest.mark.parametrize("way", WAYS)
async def test_model_searches_calls_and_answers(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """Found tools are listed in the format of the Responses API."""
    role = working_role(stage)

    answer = await Answering(speaker, functions).ask(way, role)

    assert "It is 3." == answer.output_text
    assert META == role.tool_names[0]
    assert (*META, "add") == role.tool_names[1][:3] == role.tool_names[2][:3]
    added = role.requests[1].tools[2]
    assert {"type", "name", "description", "parameters", "strict"} == set(added)
    assert added["strict"] is False
    spent = accounting_of(answer)
    assert spent is not None
    assert (3, 1, 1, 0) == (spent.turns, spent.searches, spent.tool_calls, spent.errors)
    assert answer.usage is not None
    assert answer.usage.input_tokens == spent.prompt_tokens > 0
    assert answer.usage.total_tokens == spent.prompt_tokens + spent.completion_tokens


@pytest.mark.parametrize("way", WAYS)
async def test_host_calls_are_returned_and_can_be_answered(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    role = stage.cast(Turn("One moment.", (Call("mine", {}, id="c1"),)), repeat)
    client = Answering(speaker, functions)

    answer = await client.ask(way, role, tools=[MINE])
    items: list[Any] = [
        {"role": "user", "content": "Please help me."},
        *(item.to_dict() for item in answer.output),
        {"type": "function_call_output", "call_id": "c1", "output": "noon"},
    ]
    final = await client.ask(way, role, tools=[MINE], input=items)

    assert ["mine"] == calls(answer)
    assert "One moment." == answer.output_text
    assert "It is noon." == final.output_text


@pytest.mark.parametrize("way", WAYS)
async def test_conversation_stored_by_the_service_keeps_found_tools(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The caller sends only the id of the previous response; the tools keep their position."""
    role = working_role(stage)
    client = Answering(speaker, functions)

    first = await client.ask(way, role)
    second = await client.ask(way, role, input="And again?", previous_response_id=first.id)

    assert "It is 3." == second.output_text
    assert role.tool_names[2] == role.tool_names[3]
    users = [entry for entry in role.requests[3].messages if entry["role"] == "user"]
    assert ["Please help me.", "And again?"] == [entry["content"] for entry in users]


@pytest.mark.parametrize("way", WAYS)
async def test_removed_gateway_calls_are_answered_with_the_next_request(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The service expects an answer to every stored call, and each call must run only once."""
    ran: list[int] = []

    def note(x: int) -> str:
        """Note a number."""
        ran.append(x)
        return "noted"

    functions.add_tool(note)
    mixed = Turn(calls=(Call("note", {"x": 1}, id="n1"), Call("mine", {}, id="c1")))
    role = stage.cast(mixed, Turn("Done."))
    client = Answering(speaker, functions)

    first = await client.ask(way, role, tools=[MINE])
    before = list(ran)
    output = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
    more: dict[str, Any] = {"input": [output], "previous_response_id": first.id}
    second = await client.ask(way, role, tools=[MINE], **more)

    assert ["mine"] == calls(first)
    assert [] == before
    assert [1] == ran
    assert "Done." == second.output_text
    assert ["noted", "noon"] == role.results()


async def test_stored_conversation_receives_only_new_items(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The service stores earlier items; repeated ones would be twice in the prompt."""
    role = working_role(stage)

    answer = await Answering(speaker, functions).ask("whole", role, conversation="conv_new")

    inputs = [request.body["input"] for request in role.requests]
    assert "Please help me." == inputs[0]
    assert [["function_call_output"]] * 2 == [
        [item["type"] for item in items] for items in inputs[1:] if isinstance(items, list)
    ]
    assert "It is 3." == answer.output_text


async def test_response_that_the_service_does_not_store_leaves_no_state(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """Each request contains the whole conversation if `store` is False."""
    role = working_role(stage)

    text = "Please, and forget it."
    answer = await Answering(speaker, functions).ask("whole", role, input=text, store=False)

    assert "It is 3." == answer.output_text
    assert [1, 3, 5] == [len(request.messages) for request in role.requests]
    with pytest.raises(sdk.BadRequestError, match="not found"):
        await Answering(speaker, functions).ask("whole", role, previous_response_id=answer.id)


STREAMS: list[Way] = ["stream", "async stream"]


@pytest.mark.parametrize("way", STREAMS)
async def test_streamed_turns_of_one_client_call_look_like_one_response(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The stream has one beginning, one end, consecutive numbers, and an id that a later request
    can refer to.
    """
    role = working_role(stage)
    client = Answering(speaker, functions)

    events = await client.events(way, role)

    kinds = [event.type for event in events]
    assert ["response.created", "response.in_progress"] == kinds[:2]
    assert 1 == kinds.count("response.created") == kinds.count("response.completed")
    assert list(range(len(events))) == [event.sequence_number for event in events]
    assert {0} == {event.output_index for event in events if hasattr(event, "output_index")}
    assert "It is 3." == "".join(
        event.delta for event in events if event.type == "response.output_text.delta"
    )


@pytest.mark.parametrize("way", STREAMS)
async def test_streamed_text_before_a_tool_call_is_passed_on(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The stream then has the response id of the first turn, but the next request must continue
    after the last turn.
    """
    role = stage.cast(Turn("Let me see. ", (look("add two numbers"),)), Turn("Found."))
    client = Answering(speaker, functions)

    first = await client.ask(way, role)
    await client.ask(way, role, input="Go on.", previous_response_id=first.id)

    assert "Let me see. Found." == first.output_text
    assert 2 == len(first.output)
    texts = [str(entry.get("content")) for entry in role.requests[2].messages]
    assert "Found." in texts[-2]


def test_sdk_stream_helper_reads_the_joined_stream(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """The SDK's helper checks the id of the response and the index of every item."""
    role = stage.cast(
        Turn("Let me see. ", (look("add two numbers"),)), Turn("Ask.", (Call("mine", {}),))
    )
    client = AutoDiscoveryClient(openai, functions)

    with client.responses.stream(model=role.model, input="Hi.", tools=[MINE]) as stream:  # type: ignore[list-item]  # plain JSON
        final = stream.get_final_response()

    assert ["message", "message", "function_call"] == [item.type for item in final.output]


@pytest.mark.parametrize("way", WAYS)
async def test_native_mode_loads_found_tools(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """The tool list never changes; the answer to the service's search contains the found tools."""
    search = Turn(calls=(Call("tool_search", {"query": "add two numbers"}),))
    role = stage.cast(search, SUM, repeat)

    answer = await Answering(speaker, gateway_in_mode(open_gateway, "native")).ask(way, role)

    assert "It is 3." == answer.output_text
    tools = [request.tools for request in role.requests]
    assert tools[0] == tools[1] == tools[2]
    (only,) = tools[0]
    assert ("tool_search", "client") == (only["type"], only["execution"])
    assert "The catalog holds 2 tools" in str(only["description"])
    (loaded, *_) = role.requests[1].loaded
    assert ("function", "add", True) == tuple(
        loaded[key] for key in ("type", "name", "defer_loading")
    )
    assert ["completed"] == [item["status"] for item in search_outputs(role.requests[1])]


def search_outputs(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the answers to native searches in a request."""
    items: Any = request.body["input"]
    return [item for item in items if item.get("type") == "tool_search_output"]


@pytest.mark.parametrize("truncation", ["disabled", "auto"])
async def test_native_mode_loads_each_tool_once(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, truncation: str
) -> None:
    """A tool that is loaded in the request is not loaded again, unless the search found no other
    tools, or the service may have truncated the request.
    """
    queries = ("add", "add divide", "add")
    searches = [Turn(calls=(Call("tool_search", {"query": query}),)) for query in queries]
    role = stage.cast(*searches, Turn("Done."))
    gateway = gateway_in_mode(open_gateway, "native")
    alone = [match.name for match in (await gateway.search("add")).matches]

    answer = await Answering(speaker, gateway).ask("whole", role, truncation=truncation)

    first, second, third = [
        [tool["name"] for tool in item["tools"]] for item in search_outputs(role.requests[-1])
    ]
    assert ["add"] == alone == first == third
    assert ({"divide"} if truncation == "disabled" else {"add", "divide"}) == {*second}
    spent = accounting_of(answer)
    assert spent is not None
    tokens = [json_tokens(request.tools) for request in role.requests]
    assert spent.definition_tokens > sum(tokens)


async def test_native_mode_refuses_chat_completions(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """The error is raised by the call of the client, and has a remedy."""
    client = AutoDiscoveryClient(openai, gateway_in_mode(open_gateway, "native"))
    role = stage.cast(Turn("Hi."))

    with pytest.raises(InvalidRequestError, match=r"needs the Responses API.*mode 'auto'"):
        client.chat.completions.create(model=role.model, messages=[])
    with pytest.raises(InvalidRequestError, match="leave the host's out"):
        client.responses.create(model=role.model, input="x", tools=[{"type": "tool_search"}])


@pytest.mark.parametrize("catalog", [True, False])
@pytest.mark.parametrize("way", WAYS)
async def test_native_search_of_the_host_is_returned_to_the_host(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way, catalog: bool
) -> None:
    gateway = gateway_in_mode(open_gateway, "proxy") if catalog else open_gateway()
    role = stage.cast(Turn(calls=(Call("tool_search", {"query": "add"}),)))
    kind = {"type": "tool_search", "execution": "client"}
    theirs = {**kind, "description": "Find.", "parameters": {}}

    answer = await Answering(speaker, gateway).ask(way, role, tools=[theirs])

    assert 1 == len(role.requests)
    assert ["tool_search_call"] == [item.type for item in answer.output]


@pytest.mark.parametrize("way", ["whole", "async whole"])
async def test_auto_mode_is_native_until_the_service_refuses(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """It is not known which services support native search, so each model is tried once."""

    def old(asked: ModelRequest) -> Turn:
        if any(tool["type"] == "tool_search" for tool in asked.tools):
            raise InvalidRequestError("tools[0].type: 'tool_search' is not one of 'function'")
        return Turn("Hi.")

    role, new = stage.act(old), stage.cast(Turn("Hi."), Turn("Hi."))
    client = Answering(speaker, gateway_in_mode(open_gateway, "auto"))

    for _ in range(2):
        assert "Hi." == (await client.ask(way, role)).output_text
    await client.ask(way, new)

    assert [(), META, META] == role.tool_names
    assert ["tool_search"] == [tool["type"] for tool in new.requests[0].tools]


@pytest.mark.parametrize("way", WAYS)
async def test_stable_mode_never_changes_the_tool_list(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """Search results contain the schemas, and the model calls the tools by `call_tool`."""
    call = Turn(calls=(Call("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}}),))
    role = stage.cast(find("add two numbers"), call, repeat)

    answer = await Answering(speaker, gateway_in_mode(open_gateway, "stable")).ask(way, role)

    assert "It is 3." == answer.output_text
    assert [META] * 3 == role.tool_names
    (first, *_) = role.result(1)["tools"]
    assert "add" == first["name"]
    assert ["a", "b"] == first["needs"] == [*first["parameters"]]


@pytest.mark.parametrize("way", WAYS)
async def test_stable_mode_shows_parameters_of_a_tool_once(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """Parameters in an earlier result are not repeated, in both wire formats."""
    role = stage.cast(find("add two numbers"), find("add divide"), Turn("Done."))
    gateway = gateway_in_mode(open_gateway, "stable")

    await Answering(speaker, gateway).ask(way, role)
    other = stage.cast(find("add two numbers"), find("add divide"), Turn("Done."))
    await speaker.ask(way, gateway, other)

    for asked_role in (role, other):
        first = {row["name"]: row for row in asked_role.result(1)["tools"]}
        second = {row["name"]: row for row in asked_role.result(2)["tools"]}
        assert ["a", "b"] == [*first["add"]["parameters"]]
        assert "told before" == second["add"]["parameters"]
        assert {"about", "needs"}.isdisjoint(second["add"])
        assert "divide" in second


async def test_reply_that_the_service_marks_incomplete_is_returned_unchanged(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The call in an incomplete reply may be incomplete too, so it is not answered."""
    role = stage.cast(Turn(calls=(look("add"),), finish_reason="length"))

    answer = await Answering(speaker, functions).ask("whole", role)

    assert "incomplete" == answer.status
    assert [] == answer.output


async def test_raw_response_has_last_headers_and_total_usage(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    role = working_role(stage)
    client = AutoDiscoveryClient(openai, functions)

    raw = client.responses.with_raw_response.create(model=role.model, input="Please.")

    assert 200 == raw.http_response.status_code
    for answer in (raw.parse(), Response.model_validate(raw.http_response.json())):
        assert "It is 3." == answer.output_text
        assert answer.usage is not None
        assert answer.usage.input_tokens > 100
