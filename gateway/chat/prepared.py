"""One turn for people with a loop of their own: which tools to send, and what to do with the calls.

    turn = client.prepare(messages, tools)
    reply = whatever_asks_a_model(messages, turn.tools)
    handled = turn.handle(reply)
    messages += handled.messages        # the model's own and the answers of ours
    …                                   # answer handled.calls yourself; done if there are no calls

A request that is JSON already, of Chat Completions or of the Responses API, is given whole:

    turn = client.prepare(body)
    handled = turn.handle(send(turn.body))
    body["messages"] += handled.messages        # or body["input"]

No state is held between two turns: the next `prepare` reads the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from gateway.chat.conversation import JsonItem
from gateway.chat.formats import ChatConversation, ResponsesConversation
from gateway.chat.loop import ClientContext, Loop
from gateway.discovery.call_handler import ToolCall
from gateway.errors import InvalidRequestError
from gateway.runtime.background_loop import Bridge


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A reply whose calls of ours were answered."""

    messages: tuple[JsonItem, ...]
    """To be added to the conversation: the reply, then the answers to calls of ours. Of a
    Responses body these are items."""
    calls: tuple[ToolCall, ...]
    """Calls of the host's own tools: the host answers them, behind those messages."""
    ours: int
    """How many calls of ours were answered."""

    @property
    def done(self) -> bool:
        """Whether the model's turn has ended: no call waits for an answer."""
        return not self.calls and not self.ours


class AsyncPrepared:
    """One turn, prepared."""

    def __init__(self, loop: Loop[Any], body: Mapping[str, object]) -> None:
        self._loop = loop
        self.body = body
        """The whole request as it may be sent, for one that was given whole."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools to send: the host's own, then ours. Leave ``tools`` out if it is empty."""
        return [dict(tool) for tool in self._loop.tool_list.tools]

    async def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """Run the calls of ours in *reply*.

        Args:
            reply: A completion, its message, or a response; an object of the SDK or its JSON.

        Raises:
            InvalidRequestError: If it is neither.
        """
        loop, conversation = self._loop, self._loop.conversation
        with loop.end_after():
            parsed = parse_reply(reply, conversation)
            calls = conversation.calls(parsed)
            ours = loop.our_calls(calls)
            await loop.run_turn(parsed, ours)
            theirs = tuple(call for call in calls if call not in ours)
            return Handled(messages=conversation.new_messages(), calls=theirs, ours=len(ours))


class Prepared:
    """One turn, prepared, for blocking callers."""

    def __init__(
        self, bridge: Bridge, work: Callable[[], Coroutine[Any, Any, AsyncPrepared]]
    ) -> None:
        self._bridge = bridge
        self._prepared = bridge.call(work)

    @property
    def body(self) -> Mapping[str, object]:
        """See `AsyncPrepared`."""
        return self._prepared.body

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools to send: the host's own, then ours. Leave ``tools`` out if it is empty."""
        return self._prepared.tools

    def handle(self, reply: BaseModel | Mapping[str, object]) -> Handled:
        """Run the calls of ours in *reply*; see `AsyncPrepared.handle`."""
        return self._bridge.call(lambda: self._prepared.handle(reply))


def to_body(
    messages: Iterable[Any] | Mapping[str, Any],
    tools: Iterable[Any] | None = None,
    model: str = "",
) -> dict[str, object]:
    """Write a chat request; one that is given whole, in either format, stays as it is."""
    if isinstance(messages, Mapping):
        return dict(messages) if tools is None else {**messages, "tools": list(tools)}
    body: dict[str, object] = {"messages": list(messages), "model": model}
    return body if tools is None else {**body, "tools": list(tools)}


async def prepare(context: ClientContext, body: Mapping[str, object]) -> AsyncPrepared:
    """Prepare one turn of *body*, a request of Chat Completions or of the Responses API as JSON."""
    loop = context.begin(begin_conversation(body, context))
    with loop.end_on_error():
        return AsyncPrepared(loop, await loop.next_request())


def begin_conversation(
    body: Mapping[str, object], context: ClientContext
) -> ChatConversation | ResponsesConversation:
    """Begin the conversation of a request.

    Raises:
        InvalidRequestError: If it is a request to no model.
    """
    if "messages" in body:
        return ChatConversation(body)
    if "input" in body or "previous_response_id" in body:
        return ResponsesConversation(body, context.store)
    raise InvalidRequestError("a request needs 'messages' (chat) or 'input' (responses)")


def parse_reply(reply: BaseModel | Mapping[str, object], conversation: object) -> Any:
    """Return *reply* as the SDK's object."""
    if isinstance(reply, ChatCompletion | Response):
        return reply
    fields = reply.model_dump(exclude_unset=True) if isinstance(reply, BaseModel) else dict(reply)
    if isinstance(conversation, ResponsesConversation):
        return Response.construct(None, **fields)
    if "choices" not in fields and "role" not in fields:
        raise InvalidRequestError("a reply is a completion, or an assistant's message")
    if "choices" not in fields:
        fields = {"choices": [{"index": 0, "message": fields, "finish_reason": "stop"}]}
    return ChatCompletion.construct(None, **fields)
