"""A conversation in the format of Chat Completions. Pure.

Of several choices (``n``) the first decides whether the loop goes on. Of the others only texts and
calls of the host's tools are returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice
from pydantic import BaseModel

from gateway.chat.choice import demanded, relaxed
from gateway.chat.messages import plain
from gateway.chat.wire import IsOurs, Loaded, Plain
from gateway.discovery.call_handler import Answer, ToolCall
from gateway.discovery.tool_list import Offer
from gateway.discovery.wire_formats import Form
from gateway.errors import InvalidRequestError


class ChatTalk:
    """One call of ``chat.completions``."""

    form: Form = "chat"
    recalled: tuple[str, ...] = ()
    owed: tuple[ToolCall, ...] = ()

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body
        self._messages: list[Plain] = plain(body.get("messages"), "messages")
        self._given = len(self._messages)
        self.host_tools: Sequence[Plain] = plain(body.get("tools"), "tools")
        self.model = str(body.get("model", ""))
        self.demanded = demanded(body.get("tool_choice"))

    def refuse(self) -> None:
        """Refuse the form of calls that tools replaced: a request cannot carry both."""
        if self._body.get("functions"):
            raise InvalidRequestError(
                "'functions' cannot go out together with found tools: give them as 'tools', or "
                "use the bare client as .openai"
            )

    def history(self) -> Sequence[Plain]:
        """Give the messages."""
        return self._messages

    def body(self, turn: int, offer: Offer) -> dict[str, object]:
        """Write the request of a turn; the first has the caller's own messages, byte for byte."""
        body = dict(self._body)
        if turn > 1:
            body["messages"] = list(self._messages)
            if "tool_choice" in body:
                body["tool_choice"] = relaxed(body["tool_choice"])
        if not offer.empty:
            body["tools"] = list(offer.tools)
        return body

    def readable(self, reply: object) -> bool:
        """Whether the reply has choices, and each a message."""
        choices = reply.choices if isinstance(reply, ChatCompletion) else None
        return isinstance(choices, list) and all(
            isinstance(getattr(choice, "message", None), BaseModel) for choice in choices
        )

    def calls(self, reply: ChatCompletion) -> tuple[ToolCall, ...]:
        """Give the calls of the first choice."""
        return tuple(_calls(reply.choices[0])) if reply.choices else ()

    def trimmed(self, reply: ChatCompletion, is_ours: IsOurs) -> ChatCompletion:
        """Leave out calls of our tools; a choice that is left without any has stopped."""
        choices = [_trimmed(choice, is_ours) for choice in reply.choices]
        if all(new is old for new, old in zip(choices, reply.choices, strict=True)):
            return reply
        return reply.model_copy(update={"choices": choices})

    def grow(self, reply: ChatCompletion, answers: Sequence[Answer], _loaded: Loaded) -> None:
        """Add the message of the first choice and the tool messages that answer it."""
        message = reply.choices[0].message
        self._messages.append(message.model_dump(exclude_none=True, exclude_unset=True))
        self._messages += [
            {"role": "tool", "tool_call_id": done.call.id, "content": done.text} for done in answers
        ]

    def repay(self, _answers: Sequence[Answer], _loaded: Loaded) -> None:
        """Do nothing: every message is in the request."""

    def keep(
        self, _final: ChatCompletion, _owed: tuple[ToolCall, ...], *, opened: str = ""
    ) -> None:
        """Remember nothing, for the same reason."""

    def gained(self) -> tuple[Plain, ...]:
        """Give the messages that came after the caller's."""
        return tuple(self._messages[self._given :])

    def text(self, reply: ChatCompletion) -> str:
        """Give the text of the first choice."""
        return (reply.choices[0].message.content or "") if reply.choices else ""

    def metered(self, reply: ChatCompletion) -> BaseModel | None:
        """Give the usage."""
        return reply.usage


def _calls(choice: Choice) -> list[ToolCall]:
    return [
        ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
        if call.type == "function"
        else ToolCall(id=call.id, name="", arguments="", foreign=True)
        for call in choice.message.tool_calls or ()
    ]


def _trimmed(choice: Choice, is_ours: IsOurs) -> Choice:
    calls = choice.message.tool_calls or []
    kept = [call for call in calls if call.type != "function" or not is_ours(call.function.name)]
    if len(kept) == len(calls):
        return choice
    message = choice.message.model_copy(update={"tool_calls": kept or None})
    reason = choice.finish_reason if kept or choice.finish_reason != "tool_calls" else "stop"
    return choice.model_copy(update={"message": message, "finish_reason": reason})
