"""Policies of the scripted model, and properties of its requests."""

from __future__ import annotations

from gateway.testing import ModelRequest, Turn, script
from gateway.types import JsonObject

CALLING: JsonObject = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
ANSWERED: JsonObject = {"role": "tool", "tool_call_id": "1", "content": "four"}


def asking(*messages: JsonObject, **body: object) -> ModelRequest:
    return ModelRequest(path="/v1/chat/completions", body={"messages": list(messages), **body})


def user(text: object) -> JsonObject:
    return {"role": "user", "content": text}


def test_script_replays_the_turn_that_follows_in_the_conversation() -> None:
    """The script has no state of its own, so many conversations can share it."""
    play = script(Turn("one"), Turn("two"))

    texts = [
        play(asking(user("a"), CALLING, ANSWERED)).text,
        play(asking(user("b"))).text,
        play(asking(user("a"), CALLING, ANSWERED)).text,
    ]

    assert ["two", "one", "two"] == texts


def test_script_starts_again_after_a_user_message() -> None:
    play = script(Turn("one"), Turn("two"))

    assert Turn("one") == play(asking(user("a"), CALLING, ANSWERED, user("b")))


def test_turn_of_a_script_may_be_a_function_of_the_request() -> None:
    play = script(lambda request: Turn(f"You said {request.user_text}."))

    assert Turn("You said hi.") == play(asking(user("hi")))


def test_last_tool_results_returns_messages_after_the_last_assistant_message() -> None:
    request = asking(user("a"), CALLING, ANSWERED, CALLING, ANSWERED, ANSWERED)

    assert [dict(ANSWERED)] * 2 == request.last_tool_results()


def test_request_properties_contain_the_sent_values() -> None:
    function = {"name": "f", "description": "Add.", "parameters": {"type": "object"}}
    tool = {"type": "function", "function": function}
    request = asking(user("a"), tools=[tool], model="m", stream=True)

    observed = (request.tools, request.tool_names, request.functions, request.model, request.stream)

    assert ([tool], ("f",), {"f": function}, "m", True) == observed
