"""Policies and what they see of a request."""

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


def test_a_script_is_read_by_how_far_the_conversation_came() -> None:
    """State in the conversation, not in the script: many conversations can share one."""
    play = script(Turn("one"), Turn("two"))

    texts = [
        play(asking(user("a"), CALLING, ANSWERED)).text,
        play(asking(user("b"))).text,
        play(asking(user("a"), CALLING, ANSWERED)).text,
    ]

    assert ["two", "one", "two"] == texts


def test_a_script_begins_again_after_a_user_message() -> None:
    """The next request of the user is a new task for the model."""
    play = script(Turn("one"), Turn("two"))

    assert Turn("one") == play(asking(user("a"), CALLING, ANSWERED, user("b")))


def test_a_turn_may_be_a_function_of_the_request() -> None:
    """A real model answers from what a tool said; a script must be able to."""
    play = script(lambda request: Turn(f"You said {request.user_text}."))

    assert Turn("You said hi.") == play(asking(user("hi")))


def test_the_last_tool_results_are_those_after_the_last_assistant_message() -> None:
    """Older results were answered already."""
    request = asking(user("a"), CALLING, ANSWERED, CALLING, ANSWERED, ANSWERED)

    assert [dict(ANSWERED)] * 2 == request.last_tool_results()


def test_a_request_shows_what_was_sent() -> None:
    """Tests read a request through these properties instead of nested subscripts."""
    function = {"name": "f", "description": "Add.", "parameters": {"type": "object"}}
    tool = {"type": "function", "function": function}
    request = asking(user("a"), tools=[tool], model="m", stream=True)

    seen = (request.tools, request.tool_names, request.functions, request.model, request.stream)

    assert ([tool], ("f",), {"f": function}, "m", True) == seen
