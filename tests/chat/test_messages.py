"""The caller's messages and tools as plain JSON. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from gateway.chat.conversation import to_json_items
from gateway.errors import InvalidRequestError

CALL = {"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}


@pytest.mark.parametrize("items", ["text", {"role": "user"}, 7, ["text"], [None], [[]]])
def test_what_is_no_list_of_objects_is_refused(items: Any) -> None:
    """With the argument's name."""
    with pytest.raises(InvalidRequestError, match="'messages' must be"):
        to_json_items(items, "messages")


def test_nothing_is_an_empty_list() -> None:
    """`tools=None` is what some callers pass."""
    assert [] == to_json_items(None, "tools")


def test_objects_of_the_sdk_are_written_as_the_sdk_writes_them() -> None:
    """What was said stays, also if it was null; what was not said is not made up."""
    fields: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}

    assert [fields] == to_json_items([ChatCompletionMessage.model_validate(fields)], "messages")


def test_objects_are_found_at_any_depth() -> None:
    """`{"role": …, "tool_calls": answer.tool_calls}` is in many tutorials."""
    answer = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [CALL]})
    mixed = MappingProxyType({"role": "assistant", "tool_calls": answer.tool_calls})

    assert [{"role": "assistant", "tool_calls": [CALL]}] == to_json_items((mixed,), "messages")
