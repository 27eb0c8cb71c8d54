"""The Responses API: the same loop in another format, and the service's own tool search."""

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
MINE = {"type": "function", "name": "mine", "parameters": {"type": "object"}, "strict": False}


def working(stage: Stage) -> Role:
    return stage.cast(find("add two numbers"), SUM, repeat)


def repeat(request: ModelRequest) -> Turn:
    """Repeat what the last tool returned."""
    return Turn(f"It is {request.last_tool_results()[0]['content']}.")


def in_mode(open_gateway: OpenGateway, mode: Any) -> Gateway:
    return summing(open_gateway, discovery=DiscoveryOptions(mode=mode))


def calls(response: Response) -> list[str]:
    return [item.name for item in response.output if item.type == "function_call"]


@pytest.mark.parametrize("way", WAYS)
async def test_the_model_searches_calls_and_answers(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """As in chat completions: found tools are tools of their own, in this format's spelling."""
    role = working(stage)

    answer = await Answering(speaker, functions).ask(way, role)

    assert "It is 3." == answer.output_text
    assert META == role.tool_names[0]
    assert (*META, "add") == role.tool_names[1][:3] == role.tool_names[2][:3]
    assert {"type", "name", "description", "parameters"} == set(role.requests[1].tools[2])
    spent = accounting_of(answer)
    assert spent is not None
    assert (3, 1, 1, 0) == (spent.turns, spent.searches, spent.tool_calls, spent.errors)
    assert answer.usage is not None
    assert answer.usage.input_tokens == spent.prompt_tokens > 0
    assert answer.usage.total_tokens == spent.prompt_tokens + spent.completion_tokens


@pytest.mark.parametrize("way", WAYS)
async def test_the_hosts_calls_go_back(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """And come again with the caller's answer."""
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
async def test_a_conversation_that_the_service_keeps_goes_on(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """By the id alone: the found tools are still there, in the same place."""
    role = working(stage)
    client = Answering(speaker, functions)

    first = await client.ask(way, role)
    second = await client.ask(way, role, input="And again?", previous_response_id=first.id)

    assert "It is 3." == second.output_text
    assert role.tool_names[2] == role.tool_names[3]
    users = [each for each in role.requests[3].messages if each["role"] == "user"]
    assert ["Please help me.", "And again?"] == [each["content"] for each in users]


@pytest.mark.parametrize("way", WAYS)
async def test_calls_that_the_caller_was_not_told_of_are_answered_with_the_next_request(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The service waits for every call that it has kept, and nobody runs one twice."""
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


async def test_a_conversation_is_sent_what_is_new(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The service keeps what it was sent: twice would be twice in the prompt."""
    role = working(stage)

    answer = await Answering(speaker, functions).ask("whole", role, conversation="conv_new")

    inputs = [request.body["input"] for request in role.requests]
    assert "Please help me." == inputs[0]
    assert [["function_call_output"]] * 2 == [
        [item["type"] for item in each] for each in inputs[1:] if isinstance(each, list)
    ]
    assert "It is 3." == answer.output_text


async def test_what_the_service_may_not_keep_is_not_remembered(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """With `store=False` the whole conversation is in each request."""
    role = working(stage)

    text = "Please, and forget it."
    answer = await Answering(speaker, functions).ask("whole", role, input=text, store=False)

    assert "It is 3." == answer.output_text
    assert [1, 3, 5] == [len(request.messages) for request in role.requests]
    with pytest.raises(sdk.BadRequestError, match="not found"):
        await Answering(speaker, functions).ask("whole", role, previous_response_id=answer.id)


STREAMS: list[Way] = ["stream", "async stream"]


@pytest.mark.parametrize("way", STREAMS)
async def test_the_turns_of_a_stream_look_like_one_response(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """One beginning, one end, numbers without gaps, and an id that the service goes on from."""
    role = working(stage)
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
async def test_what_a_turn_says_before_it_calls_is_passed_on(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """It has lent its id to the whole, and the conversation goes on from the last turn all the
    same.
    """
    role = stage.cast(Turn("Let me see. ", (look("add two numbers"),)), Turn("Found."))
    client = Answering(speaker, functions)

    first = await client.ask(way, role)
    await client.ask(way, role, input="Go on.", previous_response_id=first.id)

    assert "Let me see. Found." == first.output_text
    assert 2 == len(first.output)
    texts = [str(each.get("content")) for each in role.requests[2].messages]
    assert "Found." in texts[-2]


def test_the_helper_of_the_sdk_reads_the_joined_stream(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """It checks that the response stays the same one and that every item has its place."""
    role = stage.cast(
        Turn("Let me see. ", (look("add two numbers"),)), Turn("Ask.", (Call("mine", {}),))
    )
    client = AutoDiscoveryClient(openai, functions)

    with client.responses.stream(model=role.model, input="Hi.", tools=[MINE]) as stream:  # type: ignore[list-item]  # plain JSON
        final = stream.get_final_response()

    assert ["message", "message", "function_call"] == [item.type for item in final.output]


@pytest.mark.parametrize("way", WAYS)
async def test_in_native_mode_the_service_loads_what_we_find(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """The list of tools never changes: found ones travel in our answer to the service's search."""
    search = Turn(calls=(Call("tool_search", {"query": "add two numbers"}),))
    role = stage.cast(search, SUM, repeat)

    answer = await Answering(speaker, in_mode(open_gateway, "native")).ask(way, role)

    assert "It is 3." == answer.output_text
    tools = [request.tools for request in role.requests]
    assert tools[0] == tools[1] == tools[2]
    (only,) = tools[0]
    assert ("tool_search", "client") == (only["type"], only["execution"])
    assert "The catalog holds 2 tools" in str(only["description"])
    (loaded, *_) = role.requests[1].loaded
    assert ("function", "add", True) == tuple(
        loaded[each] for each in ("type", "name", "defer_loading")
    )
    assert ["completed"] == [item["status"] for item in outputs(role.requests[1])]


def outputs(request: ModelRequest) -> list[dict[str, Any]]:
    """The answers to searches in a request."""
    items: Any = request.body["input"]
    return [item for item in items if item.get("type") == "tool_search_output"]


@pytest.mark.parametrize("truncation", ["disabled", "auto"])
async def test_in_native_mode_a_tool_is_loaded_once(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, truncation: str
) -> None:
    """What stands in the request is not written again, unless it is all that was found, or the
    service may have cut it off.
    """
    queries = ("add", "add divide", "add")
    searches = [Turn(calls=(Call("tool_search", {"query": each}),)) for each in queries]
    role = stage.cast(*searches, Turn("Done."))
    gateway = in_mode(open_gateway, "native")
    alone = [match.name for match in (await gateway.search("add")).matches]

    answer = await Answering(speaker, gateway).ask("whole", role, truncation=truncation)

    first, second, third = [
        [tool["name"] for tool in item["tools"]] for item in outputs(role.requests[-1])
    ]
    assert ["add"] == alone == first == third
    assert ({"divide"} if truncation == "disabled" else {"add", "divide"}) == {*second}
    spent = accounting_of(answer)
    assert spent is not None
    tokens = [json_tokens(request.tools) for request in role.requests]
    assert spent.definition_tokens > sum(tokens)


async def test_native_mode_refuses_what_has_no_tool_search(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """At the call, with what to do."""
    client = AutoDiscoveryClient(openai, in_mode(open_gateway, "native"))
    role = stage.cast(Turn("Hi."))

    with pytest.raises(InvalidRequestError, match=r"needs the Responses API.*mode 'auto'"):
        client.chat.completions.create(model=role.model, messages=[])
    with pytest.raises(InvalidRequestError, match="leave the host's out"):
        client.responses.create(model=role.model, input="x", tools=[{"type": "tool_search"}])


@pytest.mark.parametrize("catalog", [True, False])
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_search_of_the_host_is_the_hosts(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way, catalog: bool
) -> None:
    """It goes back to whoever offered it, beside a catalog and without."""
    gateway = in_mode(open_gateway, "proxy") if catalog else open_gateway()
    role = stage.cast(Turn(calls=(Call("tool_search", {"query": "add"}),)))
    kind = {"type": "tool_search", "execution": "client"}
    theirs = {**kind, "description": "Find.", "parameters": {}}

    answer = await Answering(speaker, gateway).ask(way, role, tools=[theirs])

    assert 1 == len(role.requests)
    assert ["tool_search_call"] == [item.type for item in answer.output]


@pytest.mark.parametrize("way", ["whole", "async whole"])
async def test_auto_is_native_until_the_service_refuses_it(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """Nobody assumes which services and models know it: they are asked once."""

    def old(asked: ModelRequest) -> Turn:
        if any(tool["type"] == "tool_search" for tool in asked.tools):
            raise InvalidRequestError("tools[0].type: 'tool_search' is not one of 'function'")
        return Turn("Hi.")

    role, new = stage.act(old), stage.cast(Turn("Hi."), Turn("Hi."))
    client = Answering(speaker, in_mode(open_gateway, "auto"))

    for _ in range(2):
        assert "Hi." == (await client.ask(way, role)).output_text
    await client.ask(way, new)

    assert [(), META, META] == role.tool_names
    assert ["tool_search"] == [tool["type"] for tool in new.requests[0].tools]


@pytest.mark.parametrize("way", WAYS)
async def test_in_stable_mode_the_tools_never_change(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """To the byte: the schemas travel in the result, and `call_tool` calls."""
    call = Turn(calls=(Call("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}}),))
    role = stage.cast(find("add two numbers"), call, repeat)

    answer = await Answering(speaker, in_mode(open_gateway, "stable")).ask(way, role)

    assert "It is 3." == answer.output_text
    assert [META] * 3 == role.tool_names
    (first, *_) = role.result(1)["tools"]
    assert "add" == first["name"]
    assert ["a", "b"] == first["needs"] == [*first["parameters"]]


@pytest.mark.parametrize("way", WAYS)
async def test_in_stable_mode_parameters_are_told_once(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """What stands in an earlier result is not written again; in both wire formats."""
    role = stage.cast(find("add two numbers"), find("add divide"), Turn("Done."))
    gateway = in_mode(open_gateway, "stable")

    await Answering(speaker, gateway).ask(way, role)
    other = stage.cast(find("add two numbers"), find("add divide"), Turn("Done."))
    await speaker.ask(way, gateway, other)

    for each in (role, other):
        first = {row["name"]: row for row in each.result(1)["tools"]}
        second = {row["name"]: row for row in each.result(2)["tools"]}
        assert ["a", "b"] == [*first["add"]["parameters"]]
        assert "told before" == second["add"]["parameters"]
        assert {"about", "needs"}.isdisjoint(second["add"])
        assert "divide" in second


async def test_a_broken_off_reply_is_given_as_it_is(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """Half a call is no call; the caller sees why."""
    role = stage.cast(Turn(calls=(look("add"),), finish_reason="length"))

    answer = await Answering(speaker, functions).ask("whole", role)

    assert "incomplete" == answer.status
    assert [] == answer.output


async def test_a_raw_response_is_the_whole(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Headers of the last turn, usage of all."""
    role = working(stage)
    client = AutoDiscoveryClient(openai, functions)

    raw = client.responses.with_raw_response.create(model=role.model, input="Please.")

    assert 200 == raw.http_response.status_code
    for answer in (raw.parse(), Response.model_validate(raw.http_response.json())):
        assert "It is 3." == answer.output_text
        assert answer.usage is not None
        assert answer.usage.input_tokens > 100
